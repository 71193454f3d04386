/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of roce_rcm. Each file calls only those below it:
 *
 *	main.c		netfilter hooks; loading, unloading, namespaces
 *	debugfs.c	shows counters and queue pairs
 *	cnp.c		answers marked packets with CNPs, and handles CNPs that arrive
 *	policy.c	which flows take part
 *	ask.c		asks the RDMA core and network devices what only they know
 *	qp.c		the table of queue pairs
 *	pace.c		holds back packets that are too early for their queue pair's rate
 *	rxe.c		what a packet or a network device shows of rdma_rxe
 *	rate.c		a queue pair's rate: DCQCN or LDCP
 *	packet.c	reads a packet's headers and checks its ICRC
 *	state.c		counters, and the module's state
 *
 * Two headers see no kernel type except integers, and user space compiles them, too:
 * dcqcn_model.h is DCQCN's arithmetic, roce_wire.h RoCEv2's wire format.
 */
#ifndef _LOWQ_ROCE_RCM_H
#define _LOWQ_ROCE_RCM_H

#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/netfilter.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>

#include "dcqcn_model.h"
#include "roce_wire.h"

struct ib_device;
struct ib_qp;

/* state.c. Set while the module is being unloaded: no rate is cut, nothing is asked. */
extern bool rcm_stopping;

/**
 * struct rcm_net - the module's state in a network namespace
 * @lock:		protects @cnp_ready_ns
 * @cnp_ready_ns:	ns: when the CNPs sent so far have used up cnp_limit; a virtual clock
 * @answering:		number of queue pairs with responses in their FIFO
 */
struct rcm_net {
	spinlock_t lock;	/* protects @cnp_ready_ns */
	u64 cnp_ready_ns;
	atomic_t answering;
};

extern unsigned int rcm_net_id;

/* --- counters ----------------------------------------------------------- */

enum rcm_counter {
	RCM_NOT_A_QP,		/* packets whose socket points to no queue pair of rdma_rxe */
	RCM_ECT_SET,		/* packets set to ECT(0) */
	RCM_PACED,		/* packets held back */
	RCM_HELD_TOO_LONG,	/* requests sent early because of hold_ms */
	RCM_LET_GO,		/* requests sent early: their queue pair is being destroyed */
	RCM_STALE_DROPPED,	/* responses dropped: the peer has asked for them again */
	RCM_LOSSES,		/* responses repeated that had left: they cut a rate */
	RCM_FIFO_DROPPED,	/* packets dropped: fifo_kb, fifo_total_mb, queue pair gone */
	RCM_CE_RECEIVED,	/* packets received with CE */
	RCM_CE_NOT_UNICAST,	/* ... not from one host to one host */
	RCM_CE_POLICY,		/* ... without the IPsec that policy demands */
	RCM_CE_INVALID,		/* ... malformed, or not of a data transport */
	RCM_CE_BAD_ICRC,	/* ... with a wrong ICRC */
	RCM_CE_UNKNOWN_QP,	/* ... for a queue pair that is not known (yet) */
	RCM_CE_WRONG_SOURCE,	/* ... not from its peer, or of another transport */
	RCM_CE_COALESCED,	/* ... within cnp_interval_us */
	RCM_CNP_SENT,
	RCM_CNP_LIMITED,	/* CNPs not sent: cnp_limit */
	RCM_CNP_UNSENT,		/* ... no memory, no route, IPsec policy, firewall, own queue */
	RCM_CNP_RECEIVED,	/* CNPs received */
	RCM_CNP_HANDLED,	/* ... that cut a rate */
	RCM_CNP_POLICY,		/* ... without the IPsec that policy demands */
	RCM_CNP_MALFORMED,	/* ... of wrong length or version */
	RCM_CNP_UNKNOWN_QP,
	RCM_CNP_WRONG_SOURCE,
	RCM_CNP_BAD_ICRC,
	RCM_CNP_TOO_SOON,	/* ... within reduce_gap_us */
	RCM_CNP_NOTHING_SENT,	/* ... for a queue pair that has sent no data for cnp_late_ms */
	RCM_TABLE_FULL,		/* queue pairs not entered into the table: max_qps */
	RCM_ASKED,		/* times that the RDMA core was asked about a queue pair */
	RCM_ASKED_LINE,		/* times that a network device was asked for its speed */
	RCM_COUNTERS
};

DECLARE_PER_CPU(unsigned long [RCM_COUNTERS], rcm_counters);

static inline void rcm_count(enum rcm_counter what)
{
	this_cpu_inc(rcm_counters[what]);
}

void rcm_debugfs_init(void);
void rcm_debugfs_exit(void);

/* --- packets: packet.c ------------------------------------------------ */

/**
 * struct rcm_packet - what is read of a RoCEv2 packet
 * @roce:	from the UDP header on
 * @saddr:	source address; IPv4 as ::ffff:a.b.c.d
 * @daddr:	destination address, likewise
 * @ip_bytes:	length of the IP header
 * @udp_checksum: of the UDP header; 0 is none
 * @ecn:	ECN field
 */
struct rcm_packet {
	struct roce_packet roce;
	struct in6_addr saddr;
	struct in6_addr daddr;
	u16 ip_bytes;
	u16 udp_checksum;
	u8 ecn;
};

/* Is @skb UDP, as all RoCEv2 is? The hooks ask this first, for most packets are not. */
static inline bool rcm_packet_is_udp(const struct sk_buff *skb, u8 pf)
{
	return pf == NFPROTO_IPV4 ? ip_hdr(skb)->protocol == IPPROTO_UDP :
				    ipv6_hdr(skb)->nexthdr == IPPROTO_UDP;
}

/* Does @skb, UDP, carry CE, or perhaps a CNP? Most do not; this is cheaper than reading them. */
static inline bool rcm_packet_signals(const struct sk_buff *skb, u8 pf)
{
	unsigned int at = skb_network_offset(skb) + ROCE_UDP_BYTES;
	const u8 *opcode;
	u8 buf, ecn;

	if (pf == NFPROTO_IPV4) {
		at += sizeof(struct iphdr);
		ecn = ip_hdr(skb)->tos;
	} else {
		at += sizeof(struct ipv6hdr);
		ecn = ipv6_get_dsfield(ipv6_hdr(skb));
	}
	if (INET_ECN_is_ce(ecn))
		return true;
	opcode = skb_header_pointer(skb, at, sizeof(buf), &buf);
	return opcode && *opcode == ROCE_OPCODE_CNP;
}

bool rcm_packet_read(struct rcm_packet *p, const struct sk_buff *skb, u8 pf);
bool rcm_packet_icrc_ok(const struct rcm_packet *p, const struct sk_buff *skb);

/* --- rates: rate.c ---------------------------------------------------- */

/* bit/s, assumed for a device that reports no speed, and until it has been asked */
#define RCM_LINE_UNKNOWN	10000000000ULL

/**
 * struct rcm_rate - the rate of a queue pair
 * @model:	DCQCN's state; LDCP uses its @rate, @target and @timer_due (end of the RTT)
 * @cw:		LDCP: congestion window, packets in Q40
 * @packet_bytes: LDCP: size of the largest packet seen, bytes, above 0
 * @starting:	the rate doubles in each period, until the first CNP or the line's rate
 * @doublings:	... how often it has
 * @share:	... what it started with, bit/s
 */
struct rcm_rate {
	struct dcqcn_model model;
	u64 cw;
	u32 packet_bytes;
	bool starting;
	u8 doublings;
	u64 share;
};

void rcm_rate_params(struct dcqcn_params *p, u64 device_line);
void rcm_rate_init(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_from_line(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_start(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_share(struct rcm_rate *rate, const struct dcqcn_params *p, u64 share);
bool rcm_rate_grows(const struct rcm_rate *rate, const struct dcqcn_params *p);
void rcm_rate_loss(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_advance(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_sent(struct rcm_rate *rate, const struct dcqcn_params *p, u32 bytes);
void rcm_rate_cnp(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);

/* --- queue pairs: qp.c ------------------------------------------------ */

/*
 * Requests and responses have a FIFO each. Their sequence numbers are separate, and
 * an ACK must not wait behind the data of its own side.
 */
enum rcm_lane { RCM_REQUESTS, RCM_RESPONSES, RCM_LANES };

/* Destinations that are remembered of a UD queue pair */
#define RCM_UD_PEERS	8

/* Jiffies: a queue pair that has sent no data for this time starts again */
#define RCM_START_AFTER	HZ

#define RCM_NO_PSN	U32_MAX		/* PSNs have 24 bits */

/* Kinds of local queue pairs. UNKNOWN: the RDMA core has not been asked yet. */
enum rcm_kind { RCM_KIND_UNKNOWN, RCM_CONNECTED, RCM_DATAGRAM };

/**
 * struct rcm_qp - a local queue pair, or a remote one that sends datagrams to a local one
 * @node:	in rcm_qp_table; readers under RCU
 * @dying:	in a list of those removed from the table; readers may still see it
 * @net:	key: network namespace; exists until no reader under RCU is left
 * @netns:	number of @net, for debugfs
 * @addr:	key: address of its host; IPv4 as ::ffff:a.b.c.d
 * @number:	key: queue pair number
 * @remote:	key: it is remote (UD only); then only @cnp_at and @cnps_out are used
 * @lock:	protects all fields below
 * @timer:	expires when the next packet in the FIFO may leave
 * @peer_addr:	where it sends to; connected: the first entry, UD: all, the oldest replaced
 * @peers:	number of entries of @peer_addr in use
 * @peer_next:	UD: index of the entry to replace next
 * @peer_qp:	connected: number of the peer's queue pair
 * @kind:	enum rcm_kind
 * @dead:	removed from the table
 * @destroyed:	the RDMA core is destroying the queue pair: nothing is held back any more
 * @limited:	paced: below line rate, starting, or with packets in the FIFO; read without the lock
 * @sending:	a packet has left the FIFO and is on its way to the device
 * @sending_lane: lane of that packet
 * @turn:	lane to serve next
 * @rate:	its rate
 * @response_psn: PSN of the last response with data, or RCM_NO_PSN
 * @missing_psn: PSN of the first response that the FIFO had no room for, until the peer repeats
 *		its READ, or RCM_NO_PSN
 * @gap_shown:	a response after that one was let into the FIFO: it shows the peer the gap
 * @line:	bit/s: speed of its device; 0 before the device was asked
 * @line_until:	jiffies: when the device is asked again
 * @next_ns:	when the next packet may leave
 * @fifo:	packets held back
 * @fifo_bytes:	memory of @fifo
 * @cnp_at:	ns: when the last CNP was sent because of this queue pair
 * @cut_at:	ns: when the last CNP cut its rate
 * @used:	jiffies: when a packet of it was last seen
 * @sent_at:	jiffies: when data of it last left; set without the lock
 * @cnps_in:	CNPs that cut its rate
 * @cnps_out:	CNPs sent because of packets to it (local) or from it (remote)
 * @dropped:	packets dropped because the FIFO was full or the queue pair gone
 * @rcu:	for kfree_rcu()
 */
struct rcm_qp {
	struct hlist_node node;
	struct hlist_node dying;
	struct net *net;
	u32 netns;
	struct in6_addr addr;
	u32 number;
	bool remote;
	spinlock_t lock;	/* protects all fields below */
	struct hrtimer timer;
	struct in6_addr peer_addr[RCM_UD_PEERS];
	u8 peers;
	u8 peer_next;
	u32 peer_qp;
	u8 kind;
	bool dead;
	bool destroyed;
	bool limited;
	bool sending;
	u8 sending_lane;
	u8 turn;
	struct rcm_rate rate;
	u32 response_psn;
	u32 missing_psn;
	bool gap_shown;
	u64 line;
	unsigned long line_until;
	u64 next_ns;
	struct sk_buff_head fifo[RCM_LANES];
	u64 fifo_bytes;
	u64 cnp_at;
	u64 cut_at;
	unsigned long used;
	unsigned long sent_at;
	u64 cnps_in;
	u64 cnps_out;
	u64 dropped;
	struct rcu_head rcu;
};

#define RCM_QP_TABLE_BITS	12
extern DECLARE_HASHTABLE(rcm_qp_table, RCM_QP_TABLE_BITS);

struct rcm_qp *rcm_qp_find(const struct net *net, const struct in6_addr *addr, u32 number,
			   bool remote);
struct rcm_qp *rcm_qp_add(struct net *net, const struct in6_addr *addr, u32 number, bool remote);
bool rcm_qp_is_peer(const struct rcm_qp *qp, const struct in6_addr *addr);
void rcm_qp_learn_peer(struct rcm_qp *qp, const struct in6_addr *addr, u32 number,
		       enum rcm_kind kind);
unsigned int rcm_qps_known(bool remote);
void rcm_qps_drain(const struct net *net);
void rcm_qps_forget(const struct net *net);
void rcm_qps_init(void);
void rcm_qps_exit(void);

/* Finds it or adds it; NULL if there is no room. Under RCU, not in hardirq. */
static inline struct rcm_qp *rcm_qp_get(struct net *net, const struct in6_addr *addr, u32 number,
					bool remote)
{
	return rcm_qp_find(net, addr, number, remote) ?: rcm_qp_add(net, addr, number, remote);
}

/*
 * @qp, of @kind, sends to @addr; if connected, to queue pair @number there. A connected
 * queue pair with another peer is a new one.
 */
static inline void rcm_qp_learn(struct rcm_qp *qp, const struct in6_addr *addr, u32 number,
				enum rcm_kind kind)
{
	/*
	 * Usually nothing has changed. A reader that sees half of a change goes on to
	 * take the lock.
	 */
	if (!READ_ONCE(qp->peers) || !ipv6_addr_equal(&qp->peer_addr[0], addr) ||
	    READ_ONCE(qp->kind) != kind ||
	    (kind == RCM_CONNECTED && READ_ONCE(qp->peer_qp) != number))
		rcm_qp_learn_peer(qp, addr, number, kind);
}

/* --- pacing: pace.c --------------------------------------------------- */

/* Number of packets in the FIFO. Under the lock. */
static inline u32 rcm_pace_waiting(const struct rcm_qp *qp)
{
	return qp->fifo[RCM_REQUESTS].qlen + qp->fifo[RCM_RESPONSES].qlen;
}

/* No packet is in the FIFO or on its way from there to the device. Under the lock. */
static inline bool rcm_pace_idle(const struct rcm_qp *qp)
{
	return !rcm_pace_waiting(qp) && !qp->sending;
}

void rcm_pace_init(struct rcm_qp *qp);
void rcm_pace_start(struct rcm_qp *qp, enum rcm_lane lane);
void rcm_pace_repeated(struct rcm_qp *qp, u32 psn);
unsigned int rcm_pace(struct rcm_qp *qp, struct sk_buff *skb, const struct ib_qp *ibqp,
		      const struct roce_bth *bth);
void rcm_pace_cut(struct rcm_qp *qp, u64 now);
void rcm_pace_params(const struct rcm_qp *qp, struct dcqcn_params *p);
void rcm_pace_drain(struct rcm_qp *qp);
void rcm_pace_stop(struct rcm_qp *qp);
long rcm_pace_memory(void);

/* @qp sends a packet with @bth, which has not been paced yet. */
static inline void rcm_pace_note(struct rcm_qp *qp, const struct roce_bth *bth)
{
	enum rcm_lane lane = roce_is_response(bth->opcode) ? RCM_RESPONSES : RCM_REQUESTS;
	u32 last = READ_ONCE(qp->response_psn);

	if (roce_is_bare(bth->opcode))
		return;
	if (time_after_eq(jiffies, READ_ONCE(qp->sent_at) + RCM_START_AFTER))
		rcm_pace_start(qp, lane);
	if (lane == RCM_REQUESTS)
		return;
	WRITE_ONCE(qp->response_psn, bth->psn);
	if (last != RCM_NO_PSN && roce_psn_after(bth->psn, last) <= 0)
		rcm_pace_repeated(qp, bth->psn);
}

/* --- the rest -------------------------------------------------------------- */

/* policy.c. Under RCU. */
bool rcm_takes_part(const struct rcm_packet *p);

/* ask.c */
void rcm_ask_qp(struct net_device *dev, struct net *net, const struct in6_addr *addr, u32 number);
u64 rcm_ask_line(struct net_device *dev, struct net *net);
void rcm_ask_exit(void);

/* rxe.c */
const struct ib_qp *rcm_rxe_qp(const struct sk_buff *skb);
bool rcm_rxe_destroyed(const struct ib_qp *ibqp);
struct ib_device *rcm_rxe_device(struct net_device *dev);

/* cnp.c. Under RCU. */
void rcm_cnp_for(struct sk_buff *skb, const struct rcm_packet *p,
		 const struct nf_hook_state *state);
bool rcm_cnp_received(struct sk_buff *skb, const struct rcm_packet *p,
		      const struct nf_hook_state *state);

#endif /* _LOWQ_ROCE_RCM_H */
