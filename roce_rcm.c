// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm - RoCEv2 congestion management for soft-RoCE (InfiniBand Architecture
 * Specification, annex A17.9.3), without a change to rdma_rxe.
 *
 *	injector:		ECT(0) on the packets of data queue pairs
 *	notification point:	a valid packet with CE makes a CNP to its source, at most
 *				one per queue pair and cnp_interval_us
 *	reaction point:		a CNP cuts the rate of the queue pair that it names; the
 *				rate grows with time and bytes since: DCQCN
 *				(dcqcn_model.h), or LDCP as for adapters (ldcp_model.h)
 *
 * Everything is done in netfilter hooks, in every network namespace:
 *
 *	LOCAL_OUT	sees each packet of rdma_rxe with its queue pair: learns who
 *			talks to whom, sets ECT(0), holds back what is too early
 *	LOCAL_IN	sees CE marks before they are lost, and CNPs, which rdma_rxe
 *			does not know
 *
 * A data packet names only the queue pair that it is for. Whose it is, where a CNP
 * has to go, is learned from what the local queue pair sends (RC acknowledges, so
 * that the first ACK tells), from the datagram header (UD), or else asked of the
 * RDMA core, from a work item (UC).
 *
 * Pacing must not be seen by rdma_rxe: an error on transmission ends its queue
 * pair. Early packets are taken out of the stack's hands (NF_STOLEN, which rdma_rxe
 * takes for success) into a FIFO of their queue pair, and a timer puts them back.
 * Requests keep their reference to the queue pair there: rdma_rxe stops by itself
 * when 64 of its packets are on their way. Responses have no such limit: they are
 * let go of, and bounded by fifo_kb.
 *
 * Requests and responses have a lane each. Their sequence numbers are separate, and
 * an ACK must not wait for its own side's bulk data.
 *
 * Deviations from the specification:
 *  - LDCP's RTT is a parameter: RoCE has no request for it that any peer answers.
 *  - A UD queue pair is paced as a whole, whoever of its destinations is congested:
 *    the CNP names a queue pair.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/ethtool.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/inet.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "cc_compat.h"
#include "cc_param.h"
#include "dcqcn_model.h"
#include "ldcp_model.h"
#include "roce_wire.h"

#define CREATE_TRACE_POINTS
#include "roce_rcm_trace.h"

CC_PARAM(inject, 1, 0, 1, 0644, "0 is off, 1 is on", "set ECT(0) on data queue pairs' packets");
CC_PARAM(sport_min, 0, 0, 65535, 0644, "a UDP port",
	 "flows from this UDP source port on are injected, marked and paced");
CC_PARAM(sport_max, 65535, 0, 65535, 0644, "a UDP port", "... up to this one");
CC_PARAM(cnp_interval_us, 50, 0, 1000000, 0644, "microseconds, up to a second",
	 "one CNP per queue pair in this time, microseconds, 0 is one per marked packet");
CC_PARAM(cnp_dscp, 48, 0, 63, 0644, "a DSCP", "DSCP of CNPs");
CC_PARAM(cnp_ecn, 1, 0, 3, 0644, "an ECN field; 1 is 01", "ECN field of CNPs");
CC_PARAM(rate_min_mbps, 10, 1, 1000000, 0644,
	 "below 10 Mb/s retransmission timeouts of 64 packets come near",
	 "no CNP cuts below this rate, Mb/s");
CC_PARAM(line_rate_mbps, 0, 0, 2000000, 0644, "0 asks the device",
	 "rate of the line, Mb/s, 0 is what the device says");
CC_PARAM(reduce_gap_us, 4, 0, 1000000, 0644, "microseconds, up to a second",
	 "a CNP so soon after the last one of its queue pair is ignored, microseconds");
CC_PARAM(algorithm, 0, 0, 1, 0444, "0 is dcqcn, 1 is ldcp",
	 "reaction point: 0 is DCQCN, 1 is LDCP (draft 3.2)");
CC_PARAM(dcqcn_shift_g, 8, 1, 16, 0644, "g is 2^-1 to 2^-16", "DCQCN: g = 2^-dcqcn_shift_g");
CC_PARAM(dcqcn_cut, 512, 1, 1024, 0644, "1024 is the whole of alpha",
	 "DCQCN: a CNP cuts by this part of alpha, in 1/1024");
CC_PARAM(dcqcn_alpha_us, 55, 1, 1000000, 0644, "microseconds, up to a second",
	 "DCQCN: K, period of alpha, microseconds");
CC_PARAM(dcqcn_timer_us, 55, 1, 1000000, 0644, "microseconds, up to a second",
	 "DCQCN: T, period of the rate, microseconds");
CC_PARAM(dcqcn_bytes_kb, 10000, 1, 4000000, 0644, "1 kB to 4 GB",
	 "DCQCN: B, byte counter, kB");
CC_PARAM(dcqcn_f, 5, 1, 1000, 0644, "1 to 1000", "DCQCN: F, counts of fast recovery");
CC_PARAM(dcqcn_ai_mbps, 40, 1, 1000000, 0644, "1 Mb/s to 1 Tb/s",
	 "DCQCN: additive increase R_AI, Mb/s");
CC_PARAM(dcqcn_hai_mbps, 200, 1, 1000000, 0644, "1 Mb/s to 1 Tb/s",
	 "DCQCN: hyper increase R_HAI, Mb/s");
CC_PARAM(ldcp_rtt_us, 50, 1, 1000000, 0644, "microseconds, up to a second",
	 "LDCP: round-trip time of the network, microseconds");
CC_PARAM(ldcp_alpha, 1024, 1, 1024, 0644, "1024 is a packet",
	 "LDCP: increase per RTT, packets in 1/1024");
CC_PARAM(ldcp_beta, 1024, 1, 1024, 0644, "1024 is a packet",
	 "LDCP: decrease per CNP, packets in 1/1024");
CC_PARAM(fifo_kb, 8192, 64, 1000000, 0644, "64 kB to 1 GB",
	 "responses of a queue pair that are held back take at most this memory, kB");
CC_PARAM(fifo_total_mb, 256, 1, 100000, 0644, "1 MB to 100 GB",
	 "all that is held back takes at most this memory, MB");
CC_PARAM(max_qps, 16384, 1, 1000000, 0644, "1 to 1000000",
	 "queue pairs that are known at a time, local and remote ones each");
CC_PARAM(idle_s, 10, 1, 3600, 0644, "1 s to an hour",
	 "what was not heard of for so long is forgotten, seconds");

/* Destinations whose packets are injected, as prefixes; none is all */
#define PREFIXES	16

/**
 * struct prefixes - a list of prefixes
 * @n:		how many
 * @addr:	IPv4's as ::ffff:a.b.c.d
 * @bits:	of @addr that count
 */
struct prefixes {
	int n;
	struct in6_addr addr[PREFIXES];
	u8 bits[PREFIXES];
};

/* One is in use, the other is written: by one at a time, who has the parameters' lock */
static struct prefixes destination_lists[2];
static struct prefixes __rcu *destinations = RCU_INITIALIZER(&destination_lists[0]);

/* "10.0.0.0/8", "fd00::1": one prefix, up to the end or a comma */
static bool prefix_parse(const char *text, const char **end, struct in6_addr *addr, u8 *bits)
{
	unsigned int most = 128, len;
	int used = 0;
	u8 v4[4];

	if (in4_pton(text, -1, v4, -1, end)) {
		most = 32;
		ipv6_addr_set_v4mapped(get_unaligned((__be32 *)v4), addr);
	} else if (!in6_pton(text, -1, addr->s6_addr, -1, end)) {
		return false;
	}
	if (sscanf(*end, "/%3u%n", &len, &used) < 1)
		len = most;
	*end += used;
	*bits = 128 - most + len;
	return len <= most;
}

static int destinations_set(const char *val, const struct kernel_param *kp)
{
	struct prefixes *now = rcu_dereference_protected(destinations, 1);
	struct prefixes *list = &destination_lists[now == &destination_lists[0]];
	const char *at = skip_spaces(val);

	for (list->n = 0; *at && *at != '\n'; list->n++) {
		if (list->n == PREFIXES ||
		    !prefix_parse(at, &at, &list->addr[list->n], &list->bits[list->n]) ||
		    !strchr(",\n", *at)) {
			pr_err("%s=%.*s refused: takes up to %d prefixes, such as 10.0.0.0/8,fd00::/64; stays as it was\n",
			       kp->name, (int)strcspn(val, "\n"), val, PREFIXES);
			return -EINVAL;
		}
		if (*at == ',')
			at++;
	}
	rcu_assign_pointer(destinations, list);
	synchronize_rcu();	/* the other can be written from now on */
	return 0;
}

static int destinations_get(char *buffer, const struct kernel_param *kp)
{
	const struct prefixes *list = rcu_dereference_protected(destinations, 1);
	int i, len = 0;

	for (i = 0; i < list->n; i++) {
		const struct in6_addr *a = &list->addr[i];

		if (ipv6_addr_v4mapped(a) && list->bits[i] >= 96)
			len += sysfs_emit_at(buffer, len, "%s%pI4/%d", i ? "," : "",
					     &a->s6_addr32[3], list->bits[i] - 96);
		else
			len += sysfs_emit_at(buffer, len, "%s%pI6c/%d", i ? "," : "", a,
					     list->bits[i]);
	}
	return len + sysfs_emit_at(buffer, len, "\n");
}

static const struct kernel_param_ops destinations_ops = {
	.set = destinations_set,
	.get = destinations_get,
};

module_param_cb(destinations, &destinations_ops, NULL, 0644);
MODULE_PARM_DESC(destinations,
		 "flows to these prefixes, by commas, are injected, marked and paced (default all)");

/* Under RCU. */
static bool is_destination(const struct in6_addr *addr)
{
	const struct prefixes *list = rcu_dereference(destinations);
	int i;

	for (i = 0; i < list->n; i++)
		if (ipv6_prefix_equal(&list->addr[i], addr, list->bits[i]))
			return true;
	return !list->n;
}

/* What debugfs' file counters says */
enum {
	COUNT_ect_set,		/* packets made ECT(0) */
	COUNT_paced,		/* packets held back */
	COUNT_fifo_dropped,	/* ... and dropped: fifo_kb, fifo_total_mb */
	COUNT_ce_received,	/* packets that came with CE */
	COUNT_ce_invalid,	/* ... malformed, or of no data transport */
	COUNT_ce_bad_icrc,	/* ... with a wrong ICRC */
	COUNT_ce_unknown_qp,	/* ... for a queue pair not known (yet) */
	COUNT_ce_wrong_source,	/* ... not from its peer */
	COUNT_ce_coalesced,	/* ... within cnp_interval_us */
	COUNT_cnp_sent,
	COUNT_cnp_unsent,	/* no route or memory */
	COUNT_cnp_received,	/* CNPs that came, of any kind */
	COUNT_cnp_handled,	/* ... and cut a rate */
	COUNT_cnp_malformed,	/* ... of wrong length or version */
	COUNT_cnp_unknown_qp,
	COUNT_cnp_wrong_source,
	COUNT_cnp_bad_icrc,
	COUNT_cnp_too_soon,	/* ... within reduce_gap_us */
	COUNT_table_full,	/* a queue pair not taken in: max_qps */
	COUNT_asked,		/* questions to the RDMA core */
	COUNTS
};

static const char * const count_names[] = {
	[COUNT_ect_set] = "ect_set",
	[COUNT_paced] = "paced",
	[COUNT_fifo_dropped] = "fifo_dropped",
	[COUNT_ce_received] = "ce_received",
	[COUNT_ce_invalid] = "ce_invalid",
	[COUNT_ce_bad_icrc] = "ce_bad_icrc",
	[COUNT_ce_unknown_qp] = "ce_unknown_qp",
	[COUNT_ce_wrong_source] = "ce_wrong_source",
	[COUNT_ce_coalesced] = "ce_coalesced",
	[COUNT_cnp_sent] = "cnp_sent",
	[COUNT_cnp_unsent] = "cnp_unsent",
	[COUNT_cnp_received] = "cnp_received",
	[COUNT_cnp_handled] = "cnp_handled",
	[COUNT_cnp_malformed] = "cnp_malformed",
	[COUNT_cnp_unknown_qp] = "cnp_unknown_qp",
	[COUNT_cnp_wrong_source] = "cnp_wrong_source",
	[COUNT_cnp_bad_icrc] = "cnp_bad_icrc",
	[COUNT_cnp_too_soon] = "cnp_too_soon",
	[COUNT_table_full] = "table_full",
	[COUNT_asked] = "asked",
};

static atomic_long_t counts[COUNTS];

static void count(int what)
{
	atomic_long_inc(&counts[what]);
}

enum lane { REQUESTS, RESPONSES, LANES };

/* The destinations that a UD queue pair is known to send to */
#define UD_PEERS	8

/**
 * struct rcm_qp - a local queue pair, or one that sends datagrams to a local one
 * @node:	in qp_table; under table_lock, readers under RCU
 * @dying:	taken out of it, readers may still be there
 * @net:	key: its network namespace
 * @addr:	key: its address; IPv4's as ::ffff:a.b.c.d
 * @number:	key: its number
 * @remote:	key: is it the peer's (UD)? Then it has @cnp_at alone
 * @lock:	of what follows
 * @timer:	runs out when the next packet of the FIFO may leave
 * @peer_addr:	whom it sends to; RC and UC use the first, UD all, oldest replaced
 * @peers:	how many of them are known
 * @peer_next:	UD: the one to be replaced next
 * @peer_qp:	RC, UC: number of the peer's queue pair
 * @connected:	RC or UC
 * @dead:	no longer in the table
 * @limited:	below line rate, or with packets in the FIFO; read without the lock
 * @sending:	a packet is out of the FIFO and not yet with the device
 * @sending_lane: ... of this lane
 * @turn:	the lane that is served next
 * @model:	its rate; LDCP uses of it @rate, and @timer_due, when the RTT ends
 * @cw:		LDCP: window, packets in Q40
 * @packet:	LDCP: bytes of the largest packet seen
 * @line:	bit/s, what @model was made with; 0 before the device was asked
 * @next_ns:	when the next packet may leave
 * @fifo:	what is held back
 * @fifo_bytes:	memory of it
 * @cnp_at:	ns: when the last CNP because of it was sent
 * @cut_at:	ns: when the last CNP for it was taken
 * @used:	jiffies, last sign of life
 * @cnps_in:	CNPs that cut its rate
 * @cnps_out:	CNPs sent because of packets for it (local) or from it (remote)
 * @dropped:	packets that found no room in the FIFO
 * @rcu:	for kfree_rcu()
 */
struct rcm_qp {
	struct hlist_node node;
	struct hlist_node dying;
	struct net *net;
	struct in6_addr addr;
	u32 number;
	bool remote;
	spinlock_t lock;	/* of all below */
	struct hrtimer timer;
	struct in6_addr peer_addr[UD_PEERS];
	u8 peers;
	u8 peer_next;
	u32 peer_qp;
	bool connected;
	bool dead;
	bool limited;
	bool sending;
	u8 sending_lane;
	u8 turn;
	struct dcqcn_model model;
	u64 cw;
	u32 packet;
	u64 line;
	u64 next_ns;
	struct sk_buff_head fifo[LANES];
	u64 fifo_bytes;
	u64 cnp_at;
	u64 cut_at;
	unsigned long used;
	u64 cnps_in;
	u64 cnps_out;
	u64 dropped;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(qp_table, 12);
static DEFINE_SPINLOCK(table_lock);	/* additions to and removals from qp_table */
static unsigned int known[2];		/* by @remote; under table_lock */
static u32 hash_seed __read_mostly;
static atomic_long_t fifo_total;	/* bytes in all FIFOs */
static bool stopping;			/* the module is going: no rate is cut any more */

static u64 mbps(const struct cc_param *p)
{
	return READ_ONCE(p->value) * 1000000ULL;
}

/* bit/s, for a device that has no speed to tell, and for as long as it is not asked */
#define LINE_UNKNOWN	10000000000ULL

static struct dcqcn_params qp_params(const struct rcm_qp *qp)
{
	u64 line = mbps(&line_rate_mbps) ?: qp->line ?: LINE_UNKNOWN;

	return (struct dcqcn_params){
		.line = line,
		.floor = min(mbps(&rate_min_mbps), line),
		.ai = mbps(&dcqcn_ai_mbps),
		.hai = mbps(&dcqcn_hai_mbps),
		.bytes = READ_ONCE(dcqcn_bytes_kb.value) * 1000ULL,
		.alpha_ns = READ_ONCE(dcqcn_alpha_us.value) * NSEC_PER_USEC,
		.timer_ns = READ_ONCE(dcqcn_timer_us.value) * NSEC_PER_USEC,
		.f = READ_ONCE(dcqcn_f.value),
		.shift_g = READ_ONCE(dcqcn_shift_g.value),
		.cut = READ_ONCE(dcqcn_cut.value),
	};
}

/* --- the algorithms -------------------------------------------------------- */

/* The draft's eta and gamma, below one packet: 1/2 and 1/8 */
static struct ldcp_gains ldcp_gains(void)
{
	return (struct ldcp_gains){
		.alpha = READ_ONCE(ldcp_alpha.value), .beta = READ_ONCE(ldcp_beta.value),
		.eta = LDCP_GAIN_ONE / 2, .shift_gamma = 3,
	};
}

static void ldcp_set_rate(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	u64 rate = 8 * ldcp_model_rate(qp->cw, qp->packet, READ_ONCE(ldcp_rtt_us.value));

	qp->model.rate = clamp(rate, p->floor, p->line);
	qp->model.target = qp->model.rate;
}

/* A CNP comes to a queue pair that has the line's rate, whatever that was before. */
static void rate_from_line(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	qp->model.rate = p->line;
	qp->model.target = p->line;
	if (algorithm.value) {
		qp->cw = LDCP_CW_ONE * ldcp_model_bdp(div_u64(p->line, 1000000),
						      READ_ONCE(ldcp_rtt_us.value), qp->packet);
		qp->model.timer_due = now + READ_ONCE(ldcp_rtt_us.value) * NSEC_PER_USEC;
	}
}

static void rate_advance(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	u64 rtt = READ_ONCE(ldcp_rtt_us.value) * NSEC_PER_USEC, rounds;
	struct ldcp_gains g = ldcp_gains();

	if (!algorithm.value) {
		dcqcn_advance(&qp->model, p, now);
		return;
	}
	if (now < qp->model.timer_due || !qp->limited)
		return;
	rounds = fp_div(now - qp->model.timer_due, rtt) + 1;
	qp->model.timer_due += rounds * rtt;
	for (; rounds && qp->cw < LDCP_CW_ONE; rounds--)
		qp->cw = ldcp_model_round(qp->cw, &g);
	/* the others are all alike; 2^20 packets are more than any line holds */
	rounds = fp_min(rounds, LDCP_CW_MAX >> LDCP_CW_Q);
	if (rounds)
		qp->cw = fp_min(ldcp_model_round(qp->cw, &g) +
				(((rounds - 1) * g.alpha) << (LDCP_CW_Q - LDCP_GAIN_Q)),
				LDCP_CW_MAX);
	ldcp_set_rate(qp, p);
}

static void rate_sent(struct rcm_qp *qp, const struct dcqcn_params *p, u32 bytes)
{
	if (!algorithm.value)
		dcqcn_sent(&qp->model, p, bytes);
}

static void rate_cnp(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	struct ldcp_gains g = ldcp_gains();

	if (!algorithm.value) {
		dcqcn_cnp(&qp->model, p, now);
		return;
	}
	qp->cw = ldcp_model_marked(qp->cw, 1, &g);
	ldcp_set_rate(qp, p);
}

/* --- packets ------------------------------------------------------------- */

/**
 * struct rcm_packet - a packet and its addresses
 * @roce:	from the UDP header on
 * @saddr:	source; IPv4's as ::ffff:a.b.c.d
 * @daddr:	destination, likewise
 * @ip_bytes:	of the IP header
 * @ecn:	the ECN field
 */
struct rcm_packet {
	struct roce_packet roce;
	struct in6_addr saddr;
	struct in6_addr daddr;
	u16 ip_bytes;
	u8 ecn;
};

/* Is @skb, at its IP header, RoCEv2? Then *@p is filled in. */
static bool parse(const struct sk_buff *skb, u8 pf, struct rcm_packet *p)
{
	int at = skb_network_offset(skb);
	u8 buf[ROCE_READ_BYTES];
	unsigned int left;
	const u8 *udp;

	if (pf == NFPROTO_IPV4) {
		const struct iphdr *ip = ip_hdr(skb);

		if (ip->protocol != IPPROTO_UDP || ip->ihl != 5 || ip_is_fragment(ip))
			return false;
		p->ip_bytes = sizeof(*ip);
	} else {
		if (ipv6_hdr(skb)->nexthdr != IPPROTO_UDP)
			return false;
		p->ip_bytes = sizeof(struct ipv6hdr);
	}
	at += p->ip_bytes;
	left = skb->len > at ? skb->len - at : 0;
	udp = skb_header_pointer(skb, at, min_t(unsigned int, sizeof(buf), left), buf);
	if (!udp || !roce_read(&p->roce, udp, left))
		return false;
	if (pf == NFPROTO_IPV4) {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &p->saddr);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &p->daddr);
		p->ecn = ip_hdr(skb)->tos & INET_ECN_MASK;
	} else {
		p->saddr = ipv6_hdr(skb)->saddr;
		p->daddr = ipv6_hdr(skb)->daddr;
		p->ecn = ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	}
	return true;
}

/* Is the ICRC that @skb ends with the right one? */
static bool icrc_ok(const struct sk_buff *skb, const struct rcm_packet *p)
{
	u8 buf[256];
	u8 want[ROCE_ICRC_BYTES];
	int at = skb_network_offset(skb);
	int left = p->roce.ib_bytes - ROCE_BTH_BYTES - ROCE_ICRC_BYTES;
	u32 crc;

	if (skb_copy_bits(skb, at, buf, p->ip_bytes + ROCE_UDP_BYTES + ROCE_BTH_BYTES))
		return false;
	crc = roce_icrc_headers(buf, p->ip_bytes);
	at += p->ip_bytes + ROCE_UDP_BYTES + ROCE_BTH_BYTES;
	while (left > 0) {
		int n = min_t(int, left, sizeof(buf));

		if (skb_copy_bits(skb, at, buf, n))
			return false;
		crc = crc32_le(crc, buf, n);
		at += n;
		left -= n;
	}
	return !skb_copy_bits(skb, at, want, sizeof(want)) && roce_icrc_ok(want, crc);
}

/* --- what is known ------------------------------------------------------- */

static u32 qp_hash(const struct net *net, const struct in6_addr *addr, u32 number, bool remote)
{
	return jhash_3words(jhash2((const u32 *)addr->s6_addr32, 4, hash_seed), number,
			    net_hash_mix(net), remote);
}

/* Under RCU. */
static struct rcm_qp *qp_find(const struct net *net, const struct in6_addr *addr, u32 number,
			      bool remote)
{
	struct rcm_qp *qp;

	hash_for_each_possible_rcu(qp_table, qp, node, qp_hash(net, addr, number, remote))
		if (qp->number == number && qp->net == net && qp->remote == remote &&
		    ipv6_addr_equal(&qp->addr, addr))
			return qp;
	return NULL;
}

static enum hrtimer_restart qp_release(struct hrtimer *timer);

/* Finds it or takes it in. Under RCU, in any context but hardirq's. */
static struct rcm_qp *qp_get(struct net *net, const struct in6_addr *addr, u32 number,
			     bool remote)
{
	struct rcm_qp *qp = qp_find(net, addr, number, remote), *other;
	int i;

	if (qp)
		return qp;
	qp = kzalloc_obj(*qp, GFP_ATOMIC | __GFP_NOWARN);
	if (!qp)
		return NULL;
	qp->net = net;
	qp->addr = *addr;
	qp->number = number;
	qp->remote = remote;
	qp->used = jiffies;
	spin_lock_init(&qp->lock);
	for (i = 0; i < LANES; i++)
		__skb_queue_head_init(&qp->fifo[i]);
	cc_hrtimer_setup(&qp->timer, qp_release, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);

	spin_lock_bh(&table_lock);
	other = qp_find(net, addr, number, remote);
	if (other || known[remote] >= READ_ONCE(max_qps.value)) {
		spin_unlock_bh(&table_lock);
		kfree(qp);
		if (!other)
			count(COUNT_table_full);
		return other;
	}
	known[remote]++;
	hash_add_rcu(qp_table, &qp->node, qp_hash(net, addr, number, remote));
	spin_unlock_bh(&table_lock);
	return qp;
}

/* --- reaction point: pacing ---------------------------------------------- */

static bool fifo_empty(const struct rcm_qp *qp)
{
	return skb_queue_empty(&qp->fifo[REQUESTS]) && skb_queue_empty(&qp->fifo[RESPONSES]);
}

/* A wait that has begun goes on at the new rate. */
static void qp_rate_changed(struct rcm_qp *qp, u64 before, u64 now)
{
	if (qp->model.rate != before && qp->next_ns > now)
		qp->next_ns = now + fp_mul_div(qp->next_ns - now, before, qp->model.rate);
}

static void qp_advance(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	u64 before = qp->model.rate;

	rate_advance(qp, p, now);
	qp_rate_changed(qp, before, now);
}

/* A packet of @len bytes leaves. */
static void qp_charge(struct rcm_qp *qp, const struct dcqcn_params *p, unsigned int len, u64 now)
{
	len += ETH_HLEN;
	qp->next_ns = max(qp->next_ns, now) + dcqcn_duration(len, qp->model.rate);
	rate_sent(qp, p, len);
}

/* Wakes up when a packet is due, or when the rate changes before. */
static void qp_arm(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	u64 at = qp->next_ns;

	if (dcqcn_limited(&qp->model, p))
		at = min(at, qp->model.timer_due);
	hrtimer_start(&qp->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* Is it free again? */
static void qp_settle(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	if (!qp->limited || dcqcn_limited(&qp->model, p) || qp->sending || !fifo_empty(qp))
		return;
	WRITE_ONCE(qp->limited, false);
	trace_roce_rcm_free(&qp->addr, qp->number);
}

static struct sk_buff *fifo_take(struct rcm_qp *qp)
{
	struct sk_buff *skb;

	qp->sending_lane = skb_queue_empty(&qp->fifo[qp->turn]) ? !qp->turn : qp->turn;
	skb = __skb_dequeue(&qp->fifo[qp->sending_lane]);
	if (skb) {
		qp->turn = !qp->sending_lane;
		qp->fifo_bytes -= skb->truesize;
		atomic_long_sub(skb->truesize, &fifo_total);
	}
	return skb;
}

/*
 * Sends what is due, or, with @all, everything. Under the lock, which is let go of
 * while a packet is on its way; @sending keeps the order until then.
 */
static void fifo_send(struct rcm_qp *qp, bool all)
	__must_hold(&qp->lock)
{
	struct dcqcn_params p = qp_params(qp);
	struct sk_buff *skb;

	qp->sending = true;
	for (;;) {
		u64 now = ktime_get_ns();

		qp_advance(qp, &p, now);
		if (!all && qp->next_ns > now)
			break;
		skb = fifo_take(qp);
		if (!skb)
			break;
		/* from when it was due: a timer that is late costs no rate */
		qp_charge(qp, &p, skb->len, qp->next_ns);
		spin_unlock(&qp->lock);
		dst_output(qp->net, skb->sk, skb);
		spin_lock(&qp->lock);
	}
	qp->sending = false;
}

static enum hrtimer_restart qp_release(struct hrtimer *timer)
{
	struct rcm_qp *qp = container_of(timer, struct rcm_qp, timer);
	struct dcqcn_params p;

	spin_lock(&qp->lock);
	if (!qp->sending) {
		fifo_send(qp, false);
		p = qp_params(qp);
		if (!fifo_empty(qp))
			qp_arm(qp, &p);
		else
			qp_settle(qp, &p);
	}
	spin_unlock(&qp->lock);
	return HRTIMER_NORESTART;
}

/* May @skb leave now? Else it is in the FIFO, or gone. */
static unsigned int qp_pace(struct rcm_qp *qp, struct sk_buff *skb, u8 opcode)
{
	enum lane lane = roce_is_response(opcode) ? RESPONSES : REQUESTS;
	unsigned int verdict = NF_STOLEN;
	struct dcqcn_params p;
	u64 now;
	bool first;

	spin_lock_bh(&qp->lock);
	p = qp_params(qp);
	now = ktime_get_ns();
	qp_advance(qp, &p, now);
	first = fifo_empty(qp);
	if (first && !qp->sending && !dcqcn_limited(&qp->model, &p))
		qp_settle(qp, &p);
	if (qp->dead || !qp->limited ||
	    (skb_queue_empty(&qp->fifo[lane]) && !(qp->sending && qp->sending_lane == lane) &&
	     (roce_is_bare(opcode) || (first && qp->next_ns <= now)))) {
		qp_charge(qp, &p, skb->len, now);
		verdict = NF_ACCEPT;
		goto out;
	}
	/*
	 * rdma_rxe counts requests itself, until they are freed. It does not wait
	 * for responses: what holds the queue pair back would be its own requests.
	 */
	if (lane == RESPONSES)
		skb_orphan(skb);
	if ((lane == RESPONSES && qp->fifo_bytes > READ_ONCE(fifo_kb.value) * 1024ULL) ||
	    atomic_long_read(&fifo_total) > READ_ONCE(fifo_total_mb.value) * 1048576ULL ||
	    !skb_dst_force(skb)) {
		qp->dropped++;
		count(COUNT_fifo_dropped);
		kfree_skb(skb);
		goto out;
	}
	count(COUNT_paced);
	qp->fifo_bytes += skb->truesize;
	atomic_long_add(skb->truesize, &fifo_total);
	__skb_queue_tail(&qp->fifo[lane], skb);
	if (first && !qp->sending)
		qp_arm(qp, &p);
out:
	spin_unlock_bh(&qp->lock);
	return verdict;
}

/* --- injector ------------------------------------------------------------ */

/*
 * The queue pair that @skb comes from. rdma_rxe gives each a kernel UDP socket that
 * is never bound, as no other sender of packets to this port has; its user data is
 * the driver's queue pair, which begins with the RDMA core's.
 */
static const struct ib_qp *rxe_qp(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	const struct ib_qp *ibqp;

	if (!sk || !sk_fullsock(sk) || !sk->sk_kern_sock || sk->sk_type != SOCK_DGRAM ||
	    sk->sk_protocol != IPPROTO_UDP || inet_sk(sk)->inet_num || !skb->destructor)
		return NULL;
	ibqp = READ_ONCE(sk->sk_user_data);
	if (!ibqp || (uintptr_t)ibqp & 7 || ibqp->device->ops.driver_id != RDMA_DRIVER_RXE)
		return NULL;
	return ibqp;
}

static bool is_peer(const struct rcm_qp *qp, const struct in6_addr *addr)
{
	int i;

	for (i = 0; i < qp->peers; i++)
		if (ipv6_addr_equal(&qp->peer_addr[i], addr))
			return true;
	return false;
}

/* Whom it sends to. A connected queue pair with another peer is a new one. */
static void qp_learn(struct rcm_qp *qp, const struct in6_addr *addr, u32 number, bool connected)
{
	struct dcqcn_params p;

	if (READ_ONCE(qp->peers) && ipv6_addr_equal(&qp->peer_addr[0], addr) &&
	    READ_ONCE(qp->connected) == connected && (!connected || qp->peer_qp == number))
		return;
	spin_lock_bh(&qp->lock);
	p = qp_params(qp);
	if (!qp->peers || connected || qp->connected) {
		qp->connected = connected;
		qp->peer_qp = number;
		qp->peer_addr[0] = *addr;
		qp->peer_next = 1;
		WRITE_ONCE(qp->peers, 1);
		if (fifo_empty(qp) && !qp->sending) {
			dcqcn_init(&qp->model, &p, ktime_get_ns());
			qp->next_ns = 0;
			WRITE_ONCE(qp->limited, false);
		}
	} else if (!is_peer(qp, addr)) {
		qp->peer_addr[qp->peer_next] = *addr;
		qp->peers = max(qp->peers, qp->peer_next + 1);
		qp->peer_next = (qp->peer_next + 1) % UD_PEERS;
	}
	spin_unlock_bh(&qp->lock);
}

static void ask_core(const struct net_device *dev, struct net *net, const struct in6_addr *addr,
		     u32 number);

/* Is its flow one that takes part? Under RCU. */
static bool is_chosen(const struct rcm_packet *p)
{
	return p->roce.sport >= READ_ONCE(sport_min.value) &&
	       p->roce.sport <= READ_ONCE(sport_max.value) && is_destination(&p->daddr);
}

static unsigned int rcm_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct ib_qp *ibqp;
	struct rcm_packet p;
	struct rcm_qp *qp;

	if (!skb->sk || !parse(skb, state->pf, &p) || p.roce.bth.opcode == ROCE_OPCODE_CNP)
		return NF_ACCEPT;
	ibqp = rxe_qp(skb);
	if (!ibqp || ibqp->qp_type == IB_QPT_GSI)
		return NF_ACCEPT;
	if (!is_chosen(&p)) {
		/* what has been held back since it was leaves first */
		qp = qp_find(state->net, &p.saddr, ibqp->qp_num, false);
		if (!qp)
			return NF_ACCEPT;
		goto pace;
	}
	if (READ_ONCE(inject.value)) {
		/* The headers of a packet that leaves are its own: no copy is needed. */
		if (state->pf == NFPROTO_IPV4)
			ipv4_change_dsfield(ip_hdr(skb), ~INET_ECN_MASK, INET_ECN_ECT_0);
		else
			ipv6_change_dsfield(ipv6_hdr(skb), ~INET_ECN_MASK, INET_ECN_ECT_0);
		count(COUNT_ect_set);
	}
	qp = qp_get(state->net, &p.saddr, ibqp->qp_num, false);
	if (!qp)
		return NF_ACCEPT;
	WRITE_ONCE(qp->used, jiffies);
	if (skb->len + ETH_HLEN > READ_ONCE(qp->packet))
		WRITE_ONCE(qp->packet, skb->len + ETH_HLEN);
	qp_learn(qp, &p.daddr, p.roce.bth.dest_qp, ibqp->qp_type != IB_QPT_UD);
	if (!READ_ONCE(qp->line))
		ask_core(skb_dst(skb)->dev, state->net, &p.saddr, ibqp->qp_num);
pace:
	if (!READ_ONCE(qp->limited))
		return NF_ACCEPT;
	return qp_pace(qp, skb, p.roce.bth.opcode);
}

/* --- notification point -------------------------------------------------- */

/* An skb that is routed to @p's sender, its IP header in place. */
static struct sk_buff *answer4(struct net *net, const struct rcm_packet *p, u8 tos)
{
	struct flowi4 fl4 = {
		.daddr = p->saddr.s6_addr32[3],
		.saddr = p->daddr.s6_addr32[3],
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *rt = ip_route_output_key(net, &fl4);
	struct sk_buff *skb;
	struct iphdr *ip;

	if (IS_ERR(rt))
		return NULL;
	skb = alloc_skb(LL_RESERVED_SPACE(rt->dst.dev) + sizeof(*ip) + ROCE_CNP_UDP_BYTES,
			GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		ip_rt_put(rt);
		return NULL;
	}
	skb_reserve(skb, LL_RESERVED_SPACE(rt->dst.dev));
	skb_dst_set(skb, &rt->dst);
	skb->protocol = htons(ETH_P_IP);
	skb_reset_network_header(skb);
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = tos;
	ip->tot_len = htons(sizeof(*ip) + ROCE_CNP_UDP_BYTES);
	ip->frag_off = htons(IP_DF);
	ip->ttl = ip4_dst_hoplimit(&rt->dst);
	ip->protocol = IPPROTO_UDP;
	ip->saddr = fl4.saddr;
	ip->daddr = fl4.daddr;
	return skb;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct sk_buff *answer6(struct net *net, const struct rcm_packet *p, u8 tos)
{
	struct flowi6 fl6 = {
		.daddr = p->saddr,
		.saddr = p->daddr,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl6);
	struct ipv6hdr *ip;
	struct sk_buff *skb;

	if (dst->error)
		goto put;
	skb = alloc_skb(LL_RESERVED_SPACE(dst->dev) + sizeof(*ip) + ROCE_CNP_UDP_BYTES,
			GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		goto put;
	skb_reserve(skb, LL_RESERVED_SPACE(dst->dev));
	skb_dst_set(skb, dst);
	skb->protocol = htons(ETH_P_IPV6);
	skb_reset_network_header(skb);
	ip = skb_put_zero(skb, sizeof(*ip));
	ip6_flow_hdr(ip, tos, 0);
	ip->payload_len = htons(ROCE_CNP_UDP_BYTES);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = ip6_dst_hoplimit(dst);
	ip->saddr = p->daddr;
	ip->daddr = p->saddr;
	return skb;
put:
	dst_release(dst);
	return NULL;
}
#else
static struct sk_buff *answer6(struct net *net, const struct rcm_packet *p, u8 tos)
{
	return NULL;
}
#endif

/* A CNP to the sender of @p, for its queue pair @number. */
static void cnp_send(struct net *net, u8 pf, const struct rcm_packet *p, u32 number)
{
	u8 tos = READ_ONCE(cnp_dscp.value) << 2 | READ_ONCE(cnp_ecn.value);
	struct sk_buff *skb = pf == NFPROTO_IPV4 ? answer4(net, p, tos) : answer6(net, p, tos);
	struct udphdr *udp;
	u8 *bth;
	u32 crc;

	if (!skb) {
		count(COUNT_cnp_unsent);
		return;
	}
	skb_set_transport_header(skb, skb->len);
	udp = skb_put(skb, ROCE_CNP_UDP_BYTES);
	udp->source = htons(p->roce.sport);
	udp->dest = htons(ROCE_UDP_PORT);
	udp->len = htons(ROCE_CNP_UDP_BYTES);
	udp->check = 0;
	bth = (u8 *)(udp + 1);
	roce_cnp_write(bth, number);
	crc = roce_icrc_headers(skb_network_header(skb), p->ip_bytes);
	crc = crc32_le(crc, bth + ROCE_BTH_BYTES, ROCE_CNP_RESERVED);
	roce_icrc_write(bth + ROCE_BTH_BYTES + ROCE_CNP_RESERVED, crc);
	skb->priority = TC_PRIO_CONTROL;
	count(COUNT_cnp_sent);
	trace_roce_rcm_cnp_sent(&p->saddr, number);
	if (pf == NFPROTO_IPV4)
		ip_local_out(net, NULL, skb);
#if IS_ENABLED(CONFIG_IPV6)
	else
		ip6_local_out(net, NULL, skb);
#endif
}

/* A packet that came with CE. */
static void ce_received(struct sk_buff *skb, const struct rcm_packet *p,
			const struct nf_hook_state *state)
{
	u8 transport = ROCE_TRANSPORT(p->roce.bth.opcode);
	bool ud = transport == ROCE_UD;
	struct rcm_qp *qp;
	u32 number;
	u64 now;

	count(COUNT_ce_received);
	if (p->roce.bth.tver || (transport != ROCE_RC && transport != ROCE_UC && !ud)) {
		count(COUNT_ce_invalid);
		return;
	}
	qp = ud ? qp_get(state->net, &p->saddr, p->roce.source_qp, true) :
		  qp_find(state->net, &p->daddr, p->roce.bth.dest_qp, false);
	if (!qp || (!ud && !READ_ONCE(qp->peers))) {
		count(COUNT_ce_unknown_qp);
		if (!ud)
			ask_core(skb->dev, state->net, &p->daddr, p->roce.bth.dest_qp);
		return;
	}
	now = ktime_get_ns();
	spin_lock_bh(&qp->lock);
	number = ud ? p->roce.source_qp : qp->peer_qp;
	if (!ud && (!qp->connected || !is_peer(qp, &p->saddr))) {
		count(COUNT_ce_wrong_source);
		goto out;
	}
	qp->used = jiffies;
	if (qp->cnp_at && now - qp->cnp_at < READ_ONCE(cnp_interval_us.value) * NSEC_PER_USEC) {
		count(COUNT_ce_coalesced);
		goto out;
	}
	if (!icrc_ok(skb, p)) {
		count(COUNT_ce_bad_icrc);
		goto out;
	}
	qp->cnp_at = now;
	qp->cnps_out++;
	spin_unlock_bh(&qp->lock);
	cnp_send(state->net, state->pf, p, number);
	return;
out:
	spin_unlock_bh(&qp->lock);
}

/* --- reaction point: notifications --------------------------------------- */

static void cnp_received(const struct sk_buff *skb, const struct rcm_packet *p,
			 const struct nf_hook_state *state)
{
	struct dcqcn_params params;
	struct rcm_qp *qp;
	u64 before, now;

	count(COUNT_cnp_received);
	if (p->roce.ib_bytes != ROCE_CNP_UDP_BYTES - ROCE_UDP_BYTES || p->roce.bth.tver) {
		count(COUNT_cnp_malformed);
		return;
	}
	qp = qp_find(state->net, &p->daddr, p->roce.bth.dest_qp, false);
	if (!qp) {
		count(COUNT_cnp_unknown_qp);
		return;
	}
	spin_lock_bh(&qp->lock);
	now = ktime_get_ns();
	if (!is_peer(qp, &p->saddr)) {
		count(COUNT_cnp_wrong_source);
		goto out;
	}
	if (!icrc_ok(skb, p)) {
		count(COUNT_cnp_bad_icrc);
		goto out;
	}
	if (qp->cut_at && now - qp->cut_at < READ_ONCE(reduce_gap_us.value) * NSEC_PER_USEC) {
		count(COUNT_cnp_too_soon);
		goto out;
	}
	if (qp->dead || READ_ONCE(stopping))
		goto out;
	count(COUNT_cnp_handled);
	qp->cut_at = now;
	qp->cnps_in++;
	params = qp_params(qp);
	if (!qp->limited)
		rate_from_line(qp, &params, now);
	qp_advance(qp, &params, now);
	before = qp->model.rate;
	rate_cnp(qp, &params, now);
	qp_rate_changed(qp, before, now);
	WRITE_ONCE(qp->limited, true);
	trace_roce_rcm_cut(&qp->addr, qp->number, before, qp->model.rate, qp->model.alpha,
			   qp->fifo[REQUESTS].qlen + qp->fifo[RESPONSES].qlen);
	if (!qp->sending && !fifo_empty(qp))
		qp_arm(qp, &params);
out:
	spin_unlock_bh(&qp->lock);
}

static unsigned int rcm_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct rcm_packet p;

	if (!parse(skb, state->pf, &p))
		return NF_ACCEPT;
	if (p.roce.bth.opcode == ROCE_OPCODE_CNP) {
		/* rdma_rxe would only look for what to do with it, and drop it */
		cnp_received(skb, &p, state);
		return NF_DROP;
	}
	if (p.ecn == INET_ECN_CE)
		ce_received(skb, &p, state);
	return NF_ACCEPT;
}

/* --- what only the RDMA core and the device know -------------------------- */

/*
 * One question at a time; who finds it taken asks again with the next packet. So
 * nobody on the network can make more of them than one after the other.
 */
static struct {
	spinlock_t lock;	/* of @taken, and of the rest for who takes it */
	bool taken;
	struct net *net;
	struct net_device *dev;
	netdevice_tracker tracker;
	struct in6_addr addr;
	u32 number;
} question = { .lock = __SPIN_LOCK_UNLOCKED(question.lock) };

static u64 line_of(struct net_device *dev)
{
	struct ethtool_link_ksettings link = {};
	int err;

	rtnl_lock();
	err = __ethtool_get_link_ksettings(dev, &link);
	rtnl_unlock();
	if (err || !link.base.speed || link.base.speed == (u32)SPEED_UNKNOWN)
		return LINE_UNKNOWN;
	return link.base.speed * 1000000ULL;
}

/* The peer of connected queue pair @number on @dev. Returns 0 and fills in, or an error. */
static int peer_of(struct net_device *dev, u32 number, struct in6_addr *addr, u32 *peer)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(dev, RDMA_DRIVER_RXE);
	struct rdma_restrack_entry *entry;
	struct ib_qp_init_attr *init;
	struct ib_qp_attr *attr;
	struct ib_qp *ibqp;
	int err = -ENOMEM;

	if (!ibdev)
		return -ENODEV;
	entry = rdma_restrack_get_byid(ibdev, RDMA_RESTRACK_QP, number);
	if (IS_ERR(entry)) {
		err = PTR_ERR(entry);
		goto put_device;
	}
	ibqp = container_of(entry, struct ib_qp, res);
	attr = kzalloc_obj(*attr, GFP_KERNEL);
	init = kzalloc_obj(*init, GFP_KERNEL);
	if (attr && init)
		err = ib_query_qp(ibqp, attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN, init);
	if (!err && (ibqp->qp_type != IB_QPT_RC && ibqp->qp_type != IB_QPT_UC))
		err = -EINVAL;
	if (!err) {
		memcpy(addr, &attr->ah_attr.grh.dgid, sizeof(*addr));
		*peer = attr->dest_qp_num;
	}
	kfree(attr);
	kfree(init);
	rdma_restrack_put(entry);
put_device:
	ib_device_put(ibdev);
	return err;
}

static void answer_question(struct work_struct *work)
{
	struct in6_addr addr;
	struct rcm_qp *qp;
	u32 number;
	u64 line;
	int err;

	line = line_of(question.dev);
	err = peer_of(question.dev, question.number, &addr, &number);
	rcu_read_lock();
	qp = err ? qp_find(question.net, &question.addr, question.number, false) :
		   qp_get(question.net, &question.addr, question.number, false);
	if (qp) {
		WRITE_ONCE(qp->line, line);
		if (!err && !READ_ONCE(qp->peers))
			qp_learn(qp, &addr, number, true);
	}
	rcu_read_unlock();
	netdev_put(question.dev, &question.tracker);
	put_net(question.net);
	spin_lock_bh(&question.lock);
	question.taken = false;
	spin_unlock_bh(&question.lock);
}

static DECLARE_WORK(question_work, answer_question);

static void ask_core(const struct net_device *dev, struct net *net, const struct in6_addr *addr,
		     u32 number)
{
	spin_lock_bh(&question.lock);
	if (!question.taken && !READ_ONCE(stopping) && maybe_get_net(net)) {
		question.taken = true;
		question.net = net;
		question.dev = (struct net_device *)dev;
		question.addr = *addr;
		question.number = number;
		netdev_hold(question.dev, &question.tracker, GFP_ATOMIC);
		count(COUNT_asked);
		schedule_work(&question_work);
	}
	spin_unlock_bh(&question.lock);
}

/* --- ageing --------------------------------------------------------------- */

/* Takes out of the table what @net (or, NULL, any) has not used for @idle jiffies. */
static void forget(const struct net *net, unsigned long idle)
{
	struct hlist_head gone = HLIST_HEAD_INIT;
	struct hlist_node *next;
	struct rcm_qp *qp;
	struct sk_buff *skb;
	int i;

	for (i = 0; i < HASH_SIZE(qp_table); i++) {
		spin_lock_bh(&table_lock);
		hlist_for_each_entry_safe(qp, next, &qp_table[i], node) {
			if (net ? qp->net != net :
				  time_before(jiffies, READ_ONCE(qp->used) + idle))
				continue;
			spin_lock(&qp->lock);
			qp->dead = net || (fifo_empty(qp) && !qp->sending);
			spin_unlock(&qp->lock);
			if (!qp->dead)
				continue;
			hash_del_rcu(&qp->node);
			known[qp->remote]--;
			hlist_add_head(&qp->dying, &gone);
		}
		spin_unlock_bh(&table_lock);
	}
	hlist_for_each_entry_safe(qp, next, &gone, dying) {
		hrtimer_cancel(&qp->timer);
		spin_lock_bh(&qp->lock);
		while ((skb = fifo_take(qp)))
			kfree_skb(skb);
		spin_unlock_bh(&qp->lock);
		kfree_rcu(qp, rcu);
	}
}

static void age(struct work_struct *work);
static DECLARE_DELAYED_WORK(age_work, age);

static void age(struct work_struct *work)
{
	forget(NULL, READ_ONCE(idle_s.value) * HZ);
	schedule_delayed_work(&age_work, HZ);
}

/* --- debugfs --------------------------------------------------------------- */

static struct dentry *debugfs;

static int counters_show(struct seq_file *m, void *v)
{
	int i;

	for (i = 0; i < COUNTS; i++)
		seq_printf(m, "%s %lu\n", count_names[i], atomic_long_read(&counts[i]));
	seq_printf(m, "local_qps %u\nremote_qps %u\nfifo_bytes %ld\n", known[false],
		   known[true], atomic_long_read(&fifo_total));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* A line per queue pair; the file's position is the hash table's. */
static void *qps_start(struct seq_file *m, loff_t *pos)
{
	if (!*pos)
		return SEQ_START_TOKEN;
	return *pos <= HASH_SIZE(qp_table) ? &qp_table[*pos - 1] : NULL;
}

static void *qps_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return qps_start(m, pos);
}

static void qps_stop(struct seq_file *m, void *v)
{
}

static int qps_show(struct seq_file *m, void *v)
{
	struct hlist_head *bucket = v;
	struct rcm_qp *qp;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "netns side addr qp peer peer_qp rate_mbps target_mbps alpha cnps_in cnps_out fifo_packets fifo_kb dropped\n");
		return 0;
	}
	rcu_read_lock();
	hlist_for_each_entry_rcu(qp, bucket, node) {
		struct dcqcn_params p;

		spin_lock_bh(&qp->lock);
		p = qp_params(qp);
		if (qp->limited)
			qp_advance(qp, &p, ktime_get_ns());
		seq_printf(m, "%u %s %pI6c %u ", qp->net->ns.inum,
			   qp->remote ? "remote" : "local", &qp->addr, qp->number);
		if (qp->remote)
			seq_puts(m, "- - - - -");
		else
			seq_printf(m, "%pI6c %u %llu %llu %llu.%03llu", &qp->peer_addr[0],
				   qp->connected ? qp->peer_qp : 0,
				   div_u64(qp->limited ? qp->model.rate : p.line, 1000000),
				   div_u64(qp->limited ? qp->model.target : p.line, 1000000),
				   (u64)qp->model.alpha >> DCQCN_ALPHA_Q,
				   ((u64)qp->model.alpha * 1000 >> DCQCN_ALPHA_Q) % 1000);
		seq_printf(m, " %llu %llu %u %llu %llu\n", qp->cnps_in, qp->cnps_out,
			   qp->fifo[REQUESTS].qlen + qp->fifo[RESPONSES].qlen,
			   qp->fifo_bytes >> 10, qp->dropped);
		spin_unlock_bh(&qp->lock);
	}
	rcu_read_unlock();
	return 0;
}

static const struct seq_operations qps_sops = {
	.start = qps_start,
	.next = qps_next,
	.stop = qps_stop,
	.show = qps_show,
};
DEFINE_SEQ_ATTRIBUTE(qps);

/* --- init and exit --------------------------------------------------------- */

static const struct nf_hook_ops hooks[] = {
	{
		.hook = rcm_out,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = rcm_in,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	},
#if IS_ENABLED(CONFIG_IPV6)
	{
		.hook = rcm_out,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP6_PRI_LAST,
	},
	{
		.hook = rcm_in,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	},
#endif
};

static int __net_init rcm_net_init(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit rcm_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
	forget(net, 0);
}

static struct pernet_operations rcm_net_ops = {
	.init = rcm_net_init,
	.exit = rcm_net_exit,
};

/* Lets go of everything that is held back, in order, and paces nothing from then on. */
static void drain(void)
{
	struct rcm_qp *qp;
	int i;

	rcu_read_lock();
	hash_for_each_rcu(qp_table, i, qp, node) {
		spin_lock_bh(&qp->lock);
		while (qp->sending) {	/* by its timer, on another processor */
			spin_unlock_bh(&qp->lock);
			cpu_relax();
			spin_lock_bh(&qp->lock);
		}
		fifo_send(qp, true);
		WRITE_ONCE(qp->limited, false);
		spin_unlock_bh(&qp->lock);
	}
	rcu_read_unlock();
}

static int __init rcm_init(void)
{
	int err;

	hash_seed = get_random_u32();
	err = register_pernet_subsys(&rcm_net_ops);
	if (err)
		return err;
	debugfs = debugfs_create_dir("roce_rcm", NULL);
	debugfs_create_file("counters", 0444, debugfs, NULL, &counters_fops);
	debugfs_create_file("qps", 0444, debugfs, NULL, &qps_fops);
	schedule_delayed_work(&age_work, HZ);
	return 0;
}

static void __exit rcm_exit(void)
{
	/* no CNP is taken once all hooks have seen this */
	WRITE_ONCE(stopping, true);
	synchronize_net();
	debugfs_remove(debugfs);
	cancel_delayed_work_sync(&age_work);
	flush_work(&question_work);
	drain();
	unregister_pernet_subsys(&rcm_net_ops);
}

module_init(rcm_init);
module_exit(rcm_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("RoCEv2 congestion management for soft-RoCE");
MODULE_LICENSE("GPL");
