// SPDX-License-Identifier: GPL-2.0
/*
 * sch_int - the network node of HPCC++: stamps in-band telemetry into probes.
 *
 *	packet -> child (shaper, AQM, fifo) -> out: count its bytes;
 *					       into a probe write speed, time, bytes
 *					       sent, bytes waiting
 *
 * Source: draft-miao-rtgwg-hpccplus-00, sections 3, 6.1 and 9, the format of figure 4
 * (int_wire.h). A classful qdisc with one child. It is normally the root, with the shaper
 * or the queue below it, because probes are stamped as they leave the child.
 *
 *	tc qdisc add dev eth0 root handle 1: int rate 100gbit switch-id 7
 *	tc qdisc add dev eth0 parent 1:1 ...
 *
 * A device with several hardware queues may instead have one int for each, as the children of mq
 * or mqprio. Each keeps its own counters under its own lock; a stamp sums them up. While a queue
 * has none, nothing is stamped. What a deleted int has counted stays in the port's sum, so that a
 * replaced qdisc and a changed number of queues do not restart the counter.
 *
 * A probe is also found inside of IPIP, GRE, VXLAN and Geneve, over IPv4 and IPv6. Outer checksums
 * stay valid: the probe's own TCP checksum makes up for each word that is written.
 *
 * Probes of IFA 2.0 (int_ifa.h) and INT-MD (int_md.h) are stamped as a switch of that kind would:
 * metadata are put into the packet, which grows. Whatever the ends have chosen, a node stamps all
 * formats. A port below 10 Gb/s has no code in IFA, and a sojourn time no place in both: such a
 * node says so in the hop limit or the flags and leaves no metadata, and the sender uses the old
 * format. Within a tunnel they are not stamped: its lengths and checksums would not stay valid.
 *
 * Without the rate option the rate is the link's speed, and follows it; bytes then include
 * Ethernet's preamble, FCS and gap. While the rate is unknown, nothing is stamped: senders treat a
 * path with a gap as one without telemetry.
 *
 * Deviations from the draft:
 *  - The fields hold units, not bytes and nanoseconds (int_wire.h): 24, 20 and 16 bits
 *    would wrap within microseconds.
 *  - A rate that is not in figure 4's 4-bit enum is stamped as the next lower one that is,
 *    with bytes and queue scaled by the same factor. The algorithm uses qlen / B and
 *    txRate / B only, and these stay exact. The option "relative" (9.1) does so with all
 *    rates.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/if_tunnel.h>
#include <linux/if_vlan.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <net/checksum.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "cc_link.h"
#include "int_packet.h"
#include "int_sched.h"

#define INT_RATE_MIN		((u64)10 * 1000 * 1000 / 8)		/* bytes/s */
#define INT_RATE_MAX		((u64)1600 * 1000 * 1000 * 1000 / 8)
#define INT_SPEED_RELATIVE	11U					/* 100 Gb/s */
#define INT_VLAN_TAGS_MAX	8U
#define INT_TUNNELS_MAX		2U	/* a tunnel in a tunnel */
#define INT_VXLAN_PORT		4789
#define INT_VXLAN_PORT_LINUX	8472	/* Linux's default, older than IANA's */
#define INT_GENEVE_PORT		6081
#define INT_TUNNEL_HEADER	8U	/* of VXLAN, and of Geneve without options */
/* What Ethernet adds to a frame that tc does not count: preamble 8, FCS 4, gap 12 bytes */
#define INT_ETHERNET_EXTRA	24U

/**
 * struct int_port - what the qdiscs of a device share
 * @users:	their number
 * @retired:	what deleted ones have sent, as int_sched_data's @tx
 * @ifa_retired: likewise, as its @ifa_tx
 */
struct int_port {
	unsigned int users;
	u64 retired;
	u64 ifa_retired;
};

/**
 * struct int_sched_data - one port, or one of its hardware queues
 * @qdisc:	the child
 * @rate:	bytes/s: the option, or 0 for the link's
 * @link_rate:	bytes/s: of the device; 0 is unknown
 * @tx:		all that was sent, in units of txBytes, Q32; wraps as txBytes does
 * @tx_per_byte: units of txBytes per byte, Q32
 * @ifa_tx:	all that was sent, as IFA shows it: bytes, Q32; wraps as IFA's field does
 * @ifa_per_byte: of these, of the port's rate, per byte, Q32
 * @ifa_speed:	IFA's code of the speed; IFA_SPEEDS: it has none
 * @util_ns:	INT: when @util was measured
 * @util_tx:	what the port had sent then, as @tx
 * @util:	what it sent of its rate in the time before, Q20
 * @qlen_per_byte: units of qlen per byte, Q32
 * @bytes_per_ns: the rate, Q32, for the sojourn option
 * @speed:	of the records, an index; 0: do not stamp
 * @dscp:	of probes
 * @switch_id:	1 to 4095
 * @switch_id_opt: as it was given; 0 for a default
 * @flags:	INT_SCHED_...
 * @ethernet:	bytes count as on Ethernet
 * @arrival_tag: marks arrival times that this port wrote into probes
 * @st:		statistics; its rate and switch_id are filled in when shown
 * @list:	all of them, for the notifier
 * @sch:	the qdisc that this is the private data of
 * @port:	shared with the others of the device
 */
struct int_sched_data {
	struct Qdisc *qdisc;
	u64 rate;
	u64 link_rate;
	u64 tx;
	u64 tx_per_byte;
	u64 ifa_tx;
	u64 ifa_per_byte;
	u64 qlen_per_byte;
	u64 bytes_per_ns;
	u64 util_ns;
	u64 util_tx;
	u32 util;
	u8 speed;
	u8 ifa_speed;
	u8 dscp;
	u16 switch_id;
	u16 switch_id_opt;
	u32 flags;
	bool ethernet;
	u16 arrival_tag;
	struct tc_int_xstats st;
	struct list_head list;
	struct Qdisc *sch;
	struct int_port *port;
};

static struct Qdisc_ops int_qdisc_ops;
static LIST_HEAD(int_ports);
static DEFINE_SPINLOCK(int_ports_lock);

static u64 rate_in_use(const struct int_sched_data *q)
{
	u64 rate = q->rate ?: q->link_rate;

	return rate < INT_RATE_MIN || rate > INT_RATE_MAX ? 0 : rate;
}

/*
 * Computes what depends on the rate. The caller holds the tree lock, or the qdisc is not in
 * use yet.
 */
static void int_set_scale(struct int_sched_data *q)
{
	u64 rate = rate_in_use(q), stamped;

	q->ethernet = q->flags & INT_SCHED_ETHERNET ||
		      (!q->rate && qdisc_dev(q->sch)->type == ARPHRD_ETHER);
	q->speed = rate ? int_speed_of(rate * 8) : 0;
	if (!q->speed)
		return;
	if (q->flags & INT_SCHED_RELATIVE)
		q->speed = INT_SPEED_RELATIVE;
	stamped = (u64)int_speed_mbps(q->speed) * 1000000 / 8;
	/* 100 Gb/s instead of 10 Mb/s is a factor of 10^4 and 2^32 / 80: below 2^40 */
	q->tx_per_byte = fp_mul_div(stamped, FP_ONE(32) >> int_tx_shift(q->speed), rate);
	q->qlen_per_byte = fp_mul_div(stamped, FP_ONE(32) / INT_QLEN_BYTES, rate);
	q->bytes_per_ns = fp_mul_div(rate, FP_ONE(32), NSEC_PER_SEC);
	q->ifa_speed = ifa_speed_of(q->flags & INT_SCHED_RELATIVE ?
				    (u64)int_speed_mbps(q->speed) * 1000000 : rate * 8);
	stamped = (u64)ifa_speed_mbps(q->ifa_speed) * 1000000 / 8;
	q->ifa_per_byte = fp_mul_div(stamped, FP_ONE(32), rate);
}

static void int_replace_word(struct sk_buff *skb, const struct int_segment *s,
			     unsigned int offset, u32 to)
{
	struct tcphdr *th = (struct tcphdr *)(skb->data + s->th);
	u8 *p = skb->data + s->payload + offset;

	/* a device that is to compute a tunnel's checksum leaves the probe's as it is */
	if (skb->ip_summed != CHECKSUM_PARTIAL || skb_checksum_start_offset(skb) != (int)s->th)
		csum_replace4(&th->check, htonl(int_get32(p)), htonl(to));
	int_put32(p, to);
}

/* The type (ETH_P_) of what follows the Ethernet header at @off and its VLAN tags; moves @off. */
static __be16 int_skip_ethernet(const struct sk_buff *skb, unsigned int *off)
{
	struct ethhdr _eth;
	const struct ethhdr *eth = skb_header_pointer(skb, *off, sizeof(_eth), &_eth);
	struct vlan_hdr _vlan;
	const struct vlan_hdr *vlan;
	unsigned int depth;
	__be16 proto;

	if (!eth)
		return 0;
	proto = eth->h_proto;
	*off += sizeof(_eth);
	for (depth = 0; eth_type_vlan(proto) && depth < INT_VLAN_TAGS_MAX; depth++) {
		vlan = skb_header_pointer(skb, *off, sizeof(_vlan), &_vlan);
		if (!vlan)
			return 0;
		proto = vlan->h_vlan_encapsulated_proto;
		*off += sizeof(_vlan);
	}
	return proto;
}

/*
 * Returns the type (ETH_P_) of the packet's IP header, and in *@nhoff where it begins. A
 * bridged packet may have VLAN tags before it; skb's network header is then the first tag.
 */
static __be16 int_network_header(const struct sk_buff *skb, unsigned int *nhoff)
{
	if (!skb->dev || skb->dev->type != ARPHRD_ETHER) {
		*nhoff = skb_network_offset(skb);
		return skb->protocol;
	}
	*nhoff = 0;
	return int_skip_ethernet(skb, nhoff);
}

/* As int_skip_ethernet(), for what a tunnel says is of type @proto */
static __be16 int_tunnelled(const struct sk_buff *skb, unsigned int *off, __be16 proto)
{
	return proto == htons(ETH_P_TEB) ? int_skip_ethernet(skb, off) : proto;
}

static __be16 int_skip_gre(const struct sk_buff *skb, unsigned int *off)
{
	__be16 _gre[2];
	const __be16 *gre = skb_header_pointer(skb, *off, sizeof(_gre), _gre);

	if (!gre || gre[0] & (GRE_VERSION | GRE_ROUTING))
		return 0;
	/* checksum, key and sequence number have four bytes each */
	*off += sizeof(_gre) +
		4 * hweight16((__force u16)(gre[0] & (GRE_CSUM | GRE_KEY | GRE_SEQ)));
	return int_tunnelled(skb, off, gre[1]);
}

/* VXLAN's and Geneve's ports are all that tells them from other UDP. */
static __be16 int_skip_udp(const struct sk_buff *skb, unsigned int *off)
{
	__be16 _udp[4 + INT_TUNNEL_HEADER / 2];
	const __be16 *udp = skb_header_pointer(skb, *off, sizeof(_udp), _udp);

	if (!udp)
		return 0;
	switch (ntohs(udp[1])) {
	case INT_VXLAN_PORT:
	case INT_VXLAN_PORT_LINUX:
		*off += sizeof(_udp);
		return int_skip_ethernet(skb, off);
	case INT_GENEVE_PORT:
		/* version 0; the options' length in words */
		if (ntohs(udp[4]) >> 14)
			return 0;
		*off += sizeof(_udp) + (ntohs(udp[4]) >> 8 & 0x3f) * 4;
		return int_tunnelled(skb, off, udp[5]);
	}
	return 0;
}

/* The same for the IP header of type @proto at @off: 0 if that is no tunnel's. */
static __be16 int_skip_tunnel(const struct sk_buff *skb, unsigned int *off, __be16 proto)
{
	u8 carried;

	if (proto == htons(ETH_P_IP)) {
		struct iphdr _iph;
		const struct iphdr *iph = skb_header_pointer(skb, *off, sizeof(_iph), &_iph);

		if (!iph || iph->ihl < 5 || ip_is_fragment(iph))
			return 0;
		carried = iph->protocol;
		*off += iph->ihl * 4;
	} else if (proto == htons(ETH_P_IPV6)) {
		struct ipv6hdr _ip6h;
		const struct ipv6hdr *ip6h = skb_header_pointer(skb, *off, sizeof(_ip6h), &_ip6h);
		struct ipv6_opt_hdr _opt;
		const struct ipv6_opt_hdr *opt;

		if (!ip6h)
			return 0;
		carried = ip6h->nexthdr;
		*off += sizeof(_ip6h);
		if (carried == IPPROTO_DSTOPTS) {	/* the encapsulation limit */
			opt = skb_header_pointer(skb, *off, sizeof(_opt), &_opt);
			if (!opt)
				return 0;
			carried = opt->nexthdr;
			*off += ipv6_optlen(opt);
		}
	} else {
		return 0;
	}
	switch (carried) {
	case IPPROTO_IPIP:
		return htons(ETH_P_IP);
	case IPPROTO_IPV6:
		return htons(ETH_P_IPV6);
	case IPPROTO_GRE:
		return int_skip_gre(skb, off);
	case IPPROTO_UDP:
		return int_skip_udp(skb, off);
	}
	return 0;
}

static bool int_find_segment(const struct sk_buff *skb, const struct int_sched_data *q,
			     struct int_segment *s)
{
	unsigned int nhoff, depth;
	__be16 proto = int_network_header(skb, &nhoff);

	for (depth = 0; proto && depth <= INT_TUNNELS_MAX; depth++) {
		if (int_segment_find(skb, nhoff, proto, q->dscp, s))
			return s->flags == TCPHDR_PSH && !(depth && s->md);
		proto = int_skip_tunnel(skb, &nhoff, proto);
	}
	return false;
}

/*
 * Sojourn: writes the arrival time into the record that this port will fill in: its tag, then
 * 48 bits of nanoseconds. The checksum is updated, because the probe may leave unstamped
 * if options change while it waits.
 */
static void int_note_arrival(struct sk_buff *skb, const struct int_sched_data *q)
{
	u64 now = ktime_get_ns();
	struct int_segment s;
	unsigned int nhop, record;
	u8 *p;

	if (!q->speed)	/* it will not be stamped */
		return;
	if (!int_find_segment(skb, q, &s) || s.md || s.len > INT_MSG_LEN_MAX ||
	    skb_ensure_writable(skb, s.payload + s.len))
		return;
	p = skb->data + s.payload;
	if (!int_head_valid(p, s.len) || p[INT_TYPE_OFFSET] != INT_PROBE)
		return;
	nhop = int_get32(p + INT_BASE_OFFSET) >> 28;
	if (nhop >= p[INT_ROOM_OFFSET])
		return;
	record = INT_HOPS_OFFSET + nhop * INT_HOP_LEN;
	int_replace_word(skb, &s, record, (u32)q->arrival_tag << 16 | (now >> 32 & 0xffff));
	int_replace_word(skb, &s, record + 4, (u32)now);
}

/* Takes the arrival time out of the record; returns the wait in ns, 0 if there is none. */
static u64 int_take_wait(struct sk_buff *skb, const struct int_sched_data *q,
			 const struct int_segment *s, unsigned int record, u64 now)
{
	const u8 *p = skb->data + s->payload + record;
	u32 high = int_get32(p), low = int_get32(p + 4);

	if (high >> 16 != q->arrival_tag)
		return 0;
	int_replace_word(skb, s, record, 0);
	int_replace_word(skb, s, record + 4, 0);
	return (now - ((u64)high << 32 | low)) & GENMASK_ULL(47, 0);
}

/* The bytes that a packet takes of the port's rate */
static unsigned int int_len(const struct sk_buff *skb, const struct int_sched_data *q)
{
	unsigned int len = qdisc_pkt_len(skb), frames;

	if (!q->ethernet)
		return len;
	frames = skb_is_gso(skb) ? max_t(unsigned int, skb_shinfo(skb)->gso_segs, 1) : 1;
	return max(len, frames * ETH_ZLEN) + frames * INT_ETHERNET_EXTRA;
}

/**
 * struct int_port_load - what a port has sent, and what waits
 * @tx:		as in struct int_sched_data
 * @ifa_tx:	likewise
 * @waiting:	bytes
 */
struct int_port_load {
	u64 tx;
	u64 ifa_tx;
	u64 waiting;
};

static void int_add_load(struct int_port_load *load, const struct int_sched_data *q)
{
	load->tx += READ_ONCE(q->tx);
	load->ifa_tx += READ_ONCE(q->ifa_tx);
	load->waiting += READ_ONCE(q->sch->qstats.backlog);
	if (q->ethernet)
		load->waiting += READ_ONCE(q->sch->q.qlen) * INT_ETHERNET_EXTRA;
}

/*
 * Of all queues of the port; false if one of them has no int. Queues that are not in use any more
 * have sent, too.
 */
static bool int_port_load(const struct int_sched_data *q, struct int_port_load *load)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct Qdisc *sch;
	unsigned int i;
	bool all = true;

	*load = (struct int_port_load){
		.tx = READ_ONCE(q->port->retired), .ifa_tx = READ_ONCE(q->port->ifa_retired),
	};
	if (!(q->sch->flags & TCQ_F_NOPARENT)) {
		int_add_load(load, q);
		return true;
	}
	rcu_read_lock();
	for (i = 0; i < dev->num_tx_queues && all; i++) {
		sch = rcu_dereference(netdev_get_tx_queue(dev, i)->qdisc);
		if (sch->ops == &int_qdisc_ops)
			int_add_load(load, qdisc_priv(sch));
		else
			all = i >= READ_ONCE(dev->real_num_tx_queues);
	}
	rcu_read_unlock();
	return all;
}

static void int_fill_record(struct sk_buff *skb, struct int_sched_data *q,
			    const struct int_segment *s, unsigned int record,
			    const struct int_port_load *load)
{
	u64 now = ktime_get_ns(), wait = int_take_wait(skb, q, s, record, now);
	u64 waiting = q->flags & INT_SCHED_SOJOURN ? fp_mul_shr(wait, q->bytes_per_ns, 32) :
						     load->waiting;
	const struct int_record r = {
		.speed = q->speed,
		.ts = div_u64(now, INT_TS_NS),
		.tx = load->tx >> 32,
		.qlen = fp_min(fp_mul_shr(waiting, q->qlen_per_byte, 32), INT_QLEN_MAX),
	};

	int_replace_word(skb, s, record, int_record_word0(&r));
	int_replace_word(skb, s, record + 4, int_record_word1(&r));
}

/* --- IFA ------------------------------------------------------------------- */

/* Makes @len bytes of room at @off, of what the IP header's length and checksum know. */
static bool int_grow(struct sk_buff *skb, const struct int_segment *s, unsigned int off,
		     unsigned int len)
{
	struct iphdr *iph;
	__be16 old;

	if ((skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb)) ||
	    skb_cow_head(skb, len))
		return false;
	skb_push(skb, len);
	memmove(skb->data, skb->data + len, off);
	skb->mac_header -= len;
	skb->network_header -= len;
	skb->transport_header -= len;
	if (s->ipv6) {
		be16_add_cpu(&((struct ipv6hdr *)(skb->data + s->nh))->payload_len, len);
	} else {
		iph = (struct iphdr *)(skb->data + s->nh);
		old = iph->tot_len;
		be16_add_cpu(&iph->tot_len, len);
		csum_replace2(&iph->check, old, iph->tot_len);
	}
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->ip_summed = CHECKSUM_NONE;
	return true;
}

/* The egress port's metadata before those of the nodes that the probe has passed */
static void int_stamp_ifa(struct sk_buff *skb, struct int_sched_data *q,
			  const struct int_segment *s)
{
	unsigned int first = s->md + IFA_MD_HEADER_LEN;
	u8 *ifa = skb->data + s->th - IFA_HEADER_LEN, *md_header = skb->data + s->md;
	struct int_port_load load;
	struct int_hop hop;

	if (!q->speed || !int_port_load(q, &load)) {
		q->st.no_rate++;
		return;
	}
	if (!md_header[2])
		return;
	if (q->ifa_speed == IFA_SPEEDS || q->flags & INT_SCHED_SOJOURN) {
		md_header[2]--;
		q->st.no_rate++;
		return;
	}
	if (!ifa_has_room(ifa, md_header) || !int_grow(skb, s, first, IFA_MD_LEN)) {
		md_header[2]--;
		q->st.over_room++;
		return;
	}
	hop = (struct int_hop){
		.node = q->switch_id,
		.port = qdisc_dev(q->sch)->ifindex,
		.ts = ktime_get_ns(),
		.tx = load.ifa_tx >> 32,
		.qlen = fp_min(fp_mul_shr(load.waiting, q->ifa_per_byte, 32), U32_MAX),
	};
	md_header = skb->data + s->md;
	md_header[2]--;
	md_header[3] += IFA_MD_WORDS;
	ifa_put_hop(skb->data + first, &hop, q->ifa_speed, IFA_CELL_DEFAULT);
	q->st.stamped++;
}

/* The port's utilisation in the latest MD_WINDOW_NS or more, Q20 */
static u32 int_utilisation(struct int_sched_data *q, const struct int_port_load *load, u64 now)
{
	u64 ns = now - q->util_ns, bytes;

	if (ns < MD_WINDOW_NS)
		return q->util;
	bytes = fp_mul_shr(load->tx - q->util_tx, int_tx_unit(q->speed), 32);
	q->util = fp_min(fp_mul_div(bytes, 8000 * FP_ONE(20), ns * int_speed_mbps(q->speed)),
			 U32_MAX);
	q->util_ns = now;
	q->util_tx = load->tx;
	return q->util;
}

/* A word of what TCP's checksum covers, at an even distance from its header */
static void int_set_word(struct tcphdr *th, u8 *p, u32 to)
{
	csum_replace4(&th->check, htonl(int_get32(p)), htonl(to));
	int_put32(p, to);
}

/* Likewise by INT: its metadata are a part of TCP's payload, and of its checksum. */
static void int_stamp_md(struct sk_buff *skb, struct int_sched_data *q,
			 const struct int_segment *s)
{
	unsigned int len = sizeof(struct tcphdr) + s->payload - s->md + s->len, i;
	struct tcphdr *th = (struct tcphdr *)(skb->data + s->th);
	u8 *p = skb->data + s->md, md[MD_LEN];
	struct int_port_load load;
	struct int_hop hop;

	if (!q->speed || !int_port_load(q, &load)) {
		q->st.no_rate++;
		return;
	}
	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb)) {
		q->st.malformed++;
		return;
	}
	if (!md_has_room(p) || q->flags & INT_SCHED_SOJOURN ||
	    !int_grow(skb, s, s->stack, MD_LEN)) {
		int_set_word(th, p + 4, int_get32(p + 4) | MD_EXCEEDED << 24);
		q->st.over_room++;
		return;
	}
	hop = (struct int_hop){
		.node = q->switch_id,
		.port = qdisc_dev(q->sch)->ifindex,
		.ts = ktime_get_ns(),
		.qlen = fp_min(load.waiting, U32_MAX),
	};
	hop.util = int_utilisation(q, &load, hop.ts);
	md_put_hop(md, &hop, IFA_CELL_DEFAULT);
	th = (struct tcphdr *)(skb->data + s->th);
	p = skb->data + s->md;
	memset(skb->data + s->stack, 0, MD_LEN);
	for (i = 0; i < MD_LEN; i += 4)
		int_set_word(th, skb->data + s->stack + i, int_get32(md + i));
	csum_replace2(&th->check, htons(len), htons(len + MD_LEN));
	int_set_word(th, p, int_get32(p) + (MD_WORDS << 16));
	int_set_word(th, p + 4, int_get32(p + 4) - 1);
	q->st.stamped++;
}

static void int_stamp_probe(struct sk_buff *skb, struct int_sched_data *q)
{
	struct int_port_load load;
	struct int_segment s;
	unsigned int nhop, record;
	u32 base;
	u8 *p;

	if (!int_find_segment(skb, q, &s))
		return;
	if (s.len > INT_MSG_LEN_MAX || skb_ensure_writable(skb, s.payload + s.len)) {
		q->st.malformed++;
		return;
	}
	p = skb->data + s.payload;
	if (!int_head_valid(p, s.len)) {
		q->st.malformed++;
		return;
	}
	if (p[INT_TYPE_OFFSET] != INT_PROBE)
		return;
	if (s.format == INT_FORMAT_IFA) {
		int_stamp_ifa(skb, q, &s);
		return;
	}
	if (s.format == INT_FORMAT_MD) {
		int_stamp_md(skb, q, &s);
		return;
	}
	base = int_get32(p + INT_BASE_OFFSET);
	nhop = base >> 28;
	record = INT_HOPS_OFFSET + nhop * INT_HOP_LEN;
	if (!q->speed || !int_port_load(q, &load)) {
		/* remove an arrival time that was written while the rate was known */
		if (nhop < p[INT_ROOM_OFFSET])
			int_take_wait(skb, q, &s, record, 0);
		q->st.no_rate++;
		return;
	}
	if (nhop < p[INT_ROOM_OFFSET]) {
		int_fill_record(skb, q, &s, record, &load);
		q->st.stamped++;
	} else {
		q->st.over_room++;
	}
	int_replace_word(skb, &s, INT_BASE_OFFSET, int_base_next(base, q->switch_id));
}

static int int_sched_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct int_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	if (q->flags & INT_SCHED_SOJOURN)
		int_note_arrival(skb, q);
	ret = qdisc_enqueue(skb, q->qdisc, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *int_sched_dequeue(struct Qdisc *sch)
{
	struct int_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_peeked(q->qdisc);
	unsigned int len;

	if (!skb)
		return NULL;
	qdisc_bstats_update(sch, skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	len = int_len(skb, q);
	WRITE_ONCE(q->tx, q->tx + len * q->tx_per_byte);
	WRITE_ONCE(q->ifa_tx, q->ifa_tx + len * q->ifa_per_byte);
	int_stamp_probe(skb, q);
	return skb;
}

static void int_sched_reset(struct Qdisc *sch)
{
	struct int_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
}

/* --- options --------------------------------------------------------------- */

static const struct nla_policy int_policy[TCA_INT_MAX + 1] = {
	[TCA_INT_RATE64]	= { .type = NLA_U64 },
	[TCA_INT_SWITCH_ID]	= NLA_POLICY_MAX(NLA_U16, INT_SWITCH_ID_MAX),
	[TCA_INT_DSCP]		= NLA_POLICY_MAX(NLA_U8, 63),
	[TCA_INT_FLAGS]		= NLA_POLICY_MASK(NLA_U32, INT_SCHED_FLAGS),
};

static u16 default_switch_id(const struct net_device *dev)
{
	u32 hash = jhash(dev->dev_addr, dev->addr_len, dev->ifindex);

	return hash % INT_SWITCH_ID_MAX + 1;
}

/* The int of the port's hardware queue @i, or NULL. RTNL is held. */
static struct int_sched_data *int_of_queue(struct net_device *dev, unsigned int i)
{
	struct Qdisc *sch = rtnl_dereference(netdev_get_tx_queue(dev, i)->qdisc_sleeping);

	return sch && sch->ops == &int_qdisc_ops && sch->flags & TCQ_F_NOPARENT ?
	       qdisc_priv(sch) : NULL;
}

static void int_copy_options(struct int_sched_data *q, const struct int_sched_data *from)
{
	q->rate = from->rate;
	q->switch_id_opt = from->switch_id_opt;
	q->switch_id = from->switch_id;
	q->dscp = from->dscp;
	q->flags = from->flags;
}

/* Below mq options are the port's: a stamp sums up counters that have one scale. */
static void int_share_options(struct Qdisc *sch)
{
	struct net_device *dev = qdisc_dev(sch);
	struct int_sched_data *q = qdisc_priv(sch), *other;
	unsigned int i;

	for (i = 0; i < dev->num_tx_queues; i++) {
		other = int_of_queue(dev, i);
		if (!other || other == q)
			continue;
		sch_tree_lock(other->sch);
		int_copy_options(other, q);
		int_set_scale(other);
		sch_tree_unlock(other->sch);
	}
}

/* Is @sch a child of the root, which is mq or mqprio? RTNL is held. */
static bool int_child_of_mq(const struct Qdisc *sch)
{
	const struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	return root->flags & TCQ_F_MQROOT && TC_H_MAJ(sch->parent) == root->handle &&
	       strcmp(root->ops->id, "taprio");
}

/* The qdisc of the class that @sch is in, or NULL. RTNL is held. */
static struct Qdisc *int_parent(const struct Qdisc *sch)
{
	struct net_device *dev = qdisc_dev(sch);
	struct Qdisc *root = rtnl_dereference(dev->qdisc), *other;
	u32 handle = TC_H_MAJ(sch->parent);

	if (root->handle == handle)
		return root;
	hash_for_each_possible(dev->qdisc_hash, other, hash, handle)
		if (other->handle == handle)
			return other;
	return NULL;
}

static int int_count_class(struct Qdisc *sch, unsigned long cl, struct qdisc_walker *walker)
{
	return 0;
}

/*
 * Does tc add @sch where not all of the port's packets pass? If the qdiscs above have a single
 * class each, as a shaper's, all do. What mq itself makes has no handle. RTNL is held.
 */
static bool int_sees_a_part(const struct Qdisc *sch)
{
	if (!sch->handle || int_child_of_mq(sch))
		return false;
	while (sch->parent != TC_H_ROOT) {
		struct qdisc_walker classes = { .fn = int_count_class };
		struct Qdisc *parent = int_parent(sch);

		if (!parent || !parent->ops->cl_ops)
			return true;
		parent->ops->cl_ops->walk(parent, &classes);
		if (classes.count > 1)
			return true;
		sch = parent;
	}
	return false;
}

/* Shares the port's sum with the device's other qdiscs. RTNL is held. */
static int int_port_join(struct int_sched_data *q)
{
	struct int_sched_data *other;
	struct int_port *port = NULL;

	spin_lock(&int_ports_lock);
	list_for_each_entry(other, &int_ports, list)
		if (qdisc_dev(other->sch) == qdisc_dev(q->sch))
			port = other->port;
	spin_unlock(&int_ports_lock);
	if (!port)
		port = kzalloc_obj(*port, GFP_KERNEL);
	if (!port)
		return -ENOMEM;
	port->users++;
	q->port = port;
	return 0;
}

/* What @q has sent stays in the sum. RTNL is held. */
static void int_port_leave(struct int_sched_data *q)
{
	if (!--q->port->users) {
		kfree(q->port);
		return;
	}
	WRITE_ONCE(q->port->retired, q->port->retired + q->tx);
	WRITE_ONCE(q->port->ifa_retired, q->port->ifa_retired + q->ifa_tx);
}

static int int_sched_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct int_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_INT_MAX + 1];
	u64 rate = q->rate;
	int err;

	err = nla_parse_nested(tb, TCA_INT_MAX, opt, int_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_INT_RATE64]) {
		rate = nla_get_u64(tb[TCA_INT_RATE64]);
		if (rate && (rate < INT_RATE_MIN || rate > INT_RATE_MAX)) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_INT_RATE64],
					    "rate has to be 10mbit to 1600gbit, or 0 for the link's speed");
			return -EINVAL;
		}
	}

	sch_tree_lock(sch);
	q->rate = rate;
	if (tb[TCA_INT_SWITCH_ID]) {
		q->switch_id_opt = nla_get_u16(tb[TCA_INT_SWITCH_ID]);
		q->switch_id = q->switch_id_opt ?: default_switch_id(qdisc_dev(sch));
	}
	if (tb[TCA_INT_DSCP])
		q->dscp = nla_get_u8(tb[TCA_INT_DSCP]);
	if (tb[TCA_INT_FLAGS])
		q->flags = nla_get_u32(tb[TCA_INT_FLAGS]);
	int_set_scale(q);
	sch_tree_unlock(sch);
	if (int_child_of_mq(sch))
		int_share_options(sch);
	return 0;
}

static u64 link_rate(struct net_device *dev)
{
	return (u64)cc_link_mbps(dev) * 1000000 / 8;
}

static int int_sched_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct int_sched_data *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	const struct int_sched_data *other;
	unsigned int i;

	q->sch = sch;
	q->qdisc = &noop_qdisc;
	q->dscp = INT_DSCP_DEFAULT;
	q->switch_id = default_switch_id(dev);
	get_random_bytes(&q->arrival_tag, sizeof(q->arrival_tag));
	q->arrival_tag |= 1;	/* never that of an empty record */
	q->link_rate = link_rate(dev);
	INIT_LIST_HEAD(&q->list);
	if (int_sees_a_part(sch)) {
		NL_SET_ERR_MSG(extack,
			       "int stamps a port: at the root, as the child of mq or mqprio itself, or in an only class");
		return -EOPNOTSUPP;
	}
	if (int_port_join(q))
		return -ENOMEM;
	for (i = 0; i < dev->num_tx_queues && int_child_of_mq(sch); i++) {
		other = int_of_queue(dev, i);
		if (other)
			int_copy_options(q, other);
	}
	int_set_scale(q);
	if (opt) {
		int err = int_sched_change(sch, opt, extack);

		if (err)
			return err;
	}
	q->qdisc = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
				     TC_H_MAKE(sch->handle, 1), extack);
	if (!q->qdisc) {
		q->qdisc = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->qdisc, true);
	spin_lock(&int_ports_lock);
	list_add(&q->list, &int_ports);
	spin_unlock(&int_ports_lock);
	return 0;
}

static void int_sched_destroy(struct Qdisc *sch)
{
	struct int_sched_data *q = qdisc_priv(sch);

	/* Also called if init() failed or was not reached. */
	if (q->list.next) {
		spin_lock(&int_ports_lock);
		list_del(&q->list);
		spin_unlock(&int_ports_lock);
	}
	if (q->port)
		int_port_leave(q);
	if (q->qdisc)
		qdisc_put(q->qdisc);
}

static int int_sched_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct int_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -1;
	if (nla_put_u64_64bit(skb, TCA_INT_RATE64, q->rate, TCA_INT_PAD) ||
	    nla_put_u16(skb, TCA_INT_SWITCH_ID, q->switch_id_opt) ||
	    nla_put_u8(skb, TCA_INT_DSCP, q->dscp) ||
	    nla_put_u32(skb, TCA_INT_FLAGS, q->flags)) {
		nla_nest_cancel(skb, nest);
		return -1;
	}
	return nla_nest_end(skb, nest);
}

static int int_sched_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct int_sched_data *q = qdisc_priv(sch);
	struct tc_int_xstats st = q->st;

	st.rate = rate_in_use(q);
	st.switch_id = q->switch_id;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

/* --- one class, the child's ------------------------------------------------- */

static int int_sched_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			   struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct int_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->qdisc);
	return 0;
}

static struct Qdisc *int_sched_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct int_sched_data *q = qdisc_priv(sch);

	return q->qdisc;
}

static unsigned long int_sched_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == 1;
}

static int int_sched_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
				struct tcmsg *tcm)
{
	struct int_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static void int_sched_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static const struct Qdisc_class_ops int_class_ops = {
	.graft		= int_sched_graft,
	.leaf		= int_sched_leaf,
	.find		= int_sched_find,
	.walk		= int_sched_walk,
	.dump		= int_sched_dump_class,
};

static struct Qdisc_ops int_qdisc_ops __read_mostly = {
	.cl_ops		= &int_class_ops,
	.id		= "int",
	.priv_size	= sizeof(struct int_sched_data),
	.enqueue	= int_sched_enqueue,
	.dequeue	= int_sched_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= int_sched_init,
	.reset		= int_sched_reset,
	.destroy	= int_sched_destroy,
	.change		= int_sched_change,
	.dump		= int_sched_dump,
	.dump_stats	= int_sched_dump_stats,
	.owner		= THIS_MODULE,
};

/* A link came up or changed: its speed may have changed, too. */
static int int_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct int_sched_data *q;
	u64 rate = 0;
	bool ours = false;

	if (event != NETDEV_UP && event != NETDEV_CHANGE)
		return NOTIFY_DONE;
	spin_lock(&int_ports_lock);
	list_for_each_entry(q, &int_ports, list)
		ours |= qdisc_dev(q->sch) == dev;
	spin_unlock(&int_ports_lock);
	if (!ours)
		return NOTIFY_DONE;
	rate = link_rate(dev);
	spin_lock(&int_ports_lock);
	list_for_each_entry(q, &int_ports, list) {
		if (qdisc_dev(q->sch) != dev)
			continue;
		sch_tree_lock(q->sch);
		q->link_rate = rate;
		int_set_scale(q);
		sch_tree_unlock(q->sch);
	}
	spin_unlock(&int_ports_lock);
	return NOTIFY_DONE;
}

static struct notifier_block int_notifier = {
	.notifier_call = int_netdev_event,
};

static int __init int_module_init(void)
{
	int err = register_netdevice_notifier(&int_notifier);

	if (err)
		return err;
	err = register_qdisc(&int_qdisc_ops);
	if (err)
		unregister_netdevice_notifier(&int_notifier);
	return err;
}

static void __exit int_module_exit(void)
{
	unregister_qdisc(&int_qdisc_ops);
	unregister_netdevice_notifier(&int_notifier);
}

module_init(int_module_init);
module_exit(int_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("In-band network telemetry for HPCC++: stamps probes as they leave a queue");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
MODULE_ALIAS("net-sch-int");
