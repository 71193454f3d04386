// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: Congestion Notification Packets. The notification point answers a packet
 * that carries CE with a CNP to its source, at most one per queue pair and
 * cnp_interval_us. The reaction point handles a CNP that arrives: it cuts the rate of the
 * queue pair that the CNP names.
 *
 * Anybody can send marked packets and CNPs, with any source address. So a marked packet is
 * answered only if its ICRC is right, it is unicast, its queue pair is local, and it comes from
 * the peer of that queue pair, if it has one. Datagrams come from anybody: a namespace's CNPs for
 * them have a common limit.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/pkt_sched.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/xfrm.h>

#include "cc_param.h"
#include "roce_rcm.h"
#include "roce_rcm_trace.h"

CC_PARAM(cnp_interval_us, 50, 0, 1000000, 0644, "microseconds, up to a second",
	 "one CNP per queue pair in this time, microseconds, 0 is one per marked packet");
CC_PARAM(cnp_limit, 200000, 1, 10000000, 0644, "1 to 10 million",
	 "CNPs for datagrams that a network namespace sends per second at most");
CC_PARAM(cnp_dscp, 48, 0, 63, 0644, "a DSCP", "DSCP of CNPs");
CC_PARAM(cnp_ecn, 1, 0, 3, 0644, "an ECN field; 1 is 01", "ECN field of CNPs");
CC_PARAM(reduce_gap_us, 4, 0, 1000000, 0644, "microseconds, up to a second",
	 "a CNP is ignored for this time after the last one of its queue pair, microseconds");
/* CNPs follow soon after their data packet; forged ones must not slow down idle queue pairs. */
CC_PARAM(cnp_late_ms, 10, 0, 1000, 0644, "milliseconds, up to a second",
	 "a CNP is ignored if its queue pair has sent no data for this time, ms, 0 is never");

/* A burst of CNPs may use up the limit of this time at once. */
#define CNP_BURST_NS	(10 * NSEC_PER_MSEC)

/* Has @qp sent no data for cnp_late_ms? Then none is in the network that could be slowed down. */
static bool sent_nothing(const struct rcm_qp *qp)
{
	unsigned int ms = READ_ONCE(cnp_late_ms.value);

	return ms && time_after(jiffies, READ_ONCE(qp->sent_at) + msecs_to_jiffies(ms));
}

/* Is @now less than @us after @then? @then is 0 if there was no such time. */
static bool within(u64 now, u64 then, const struct cc_param *us)
{
	return then && now - then < READ_ONCE(us->value) * NSEC_PER_USEC;
}

/* --- notification point ---------------------------------------------------- */

/*
 * Returns an skb for a CNP to @dst, whose reference it takes over: room for the device,
 * an IP header of @ip_bytes zeros, room for the rest. NULL if there is no memory.
 */
static struct sk_buff *cnp_alloc(struct dst_entry *dst, unsigned int ip_bytes, __be16 protocol)
{
	/* once: the device may change what it needs, or @dst its device */
	unsigned int headroom = LL_RESERVED_SPACE(dst->dev);
	struct sk_buff *skb = alloc_skb(headroom + ip_bytes + ROCE_CNP_UDP_BYTES,
					GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		dst_release(dst);
		return NULL;
	}
	skb_reserve(skb, headroom);
	skb_dst_set(skb, dst);
	skb->protocol = protocol;
	skb_reset_network_header(skb);
	skb_put_zero(skb, ip_bytes);
	return skb;
}

/*
 * Returns an skb to the sender of @p, which is @in, with its IP header filled in. It is
 * routed in the VRF by which @in came, if any, and as IPsec policy demands. NULL if there is no
 * way: xfrm_lookup_route() would return a route that discards, as if the CNP had been sent.
 */
static struct sk_buff *answer4(struct net *net, const struct sk_buff *in,
			       const struct rcm_packet *p, u8 tos)
{
	struct flowi4 fl4 = {
		.daddr = p->saddr.s6_addr32[3],
		.saddr = p->daddr.s6_addr32[3],
		.flowi4_oif = l3mdev_master_ifindex_rcu(in->dev),
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(p->roce.sport),
		.fl4_dport = htons(ROCE_UDP_PORT),
	};
	struct rtable *rt = __ip_route_output_key(net, &fl4);
	struct dst_entry *dst;
	struct sk_buff *skb;
	struct iphdr *ip;

	if (IS_ERR(rt))
		return NULL;
	dst = xfrm_lookup(net, &rt->dst, flowi4_to_flowi(&fl4), NULL, 0);
	if (IS_ERR(dst))
		return NULL;
	skb = cnp_alloc(dst, sizeof(*ip), htons(ETH_P_IP));
	if (!skb)
		return NULL;
	ip = ip_hdr(skb);
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = tos;
	ip->tot_len = htons(sizeof(*ip) + ROCE_CNP_UDP_BYTES);
	ip->frag_off = htons(IP_DF);
	ip->ttl = ip4_dst_hoplimit(dst);
	ip->protocol = IPPROTO_UDP;
	ip->saddr = fl4.saddr;
	ip->daddr = fl4.daddr;
	return skb;
}

#if IS_ENABLED(CONFIG_IPV6)
/* Likewise. A link-local address needs the interface by which @in came. */
static struct sk_buff *answer6(struct net *net, const struct sk_buff *in,
			       const struct rcm_packet *p, u8 tos)
{
	struct flowi6 fl6 = {
		.daddr = p->saddr,
		.saddr = p->daddr,
		.flowi6_oif = rt6_need_strict(&p->saddr) ? inet6_iif(in) :
				l3mdev_master_ifindex_rcu(in->dev),
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(p->roce.sport),
		.fl6_dport = htons(ROCE_UDP_PORT),
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl6);
	struct ipv6hdr *ip;
	struct sk_buff *skb;

	if (dst->error) {
		dst_release(dst);
		return NULL;
	}
	dst = xfrm_lookup(net, dst, flowi6_to_flowi(&fl6), NULL, 0);
	if (IS_ERR(dst))
		return NULL;
	skb = cnp_alloc(dst, sizeof(*ip), htons(ETH_P_IPV6));
	if (!skb)
		return NULL;
	ip = ipv6_hdr(skb);
	ip6_flow_hdr(ip, tos, 0);
	ip->payload_len = htons(ROCE_CNP_UDP_BYTES);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = ip6_dst_hoplimit(dst);
	ip->saddr = p->daddr;
	ip->daddr = p->saddr;
	return skb;
}
#else
static struct sk_buff *answer6(struct net *net, const struct sk_buff *in,
			       const struct rcm_packet *p, u8 tos)
{
	return NULL;
}
#endif

/* Sends a CNP to the sender of @p, which is @in, for its queue pair @number. */
static void cnp_send(const struct sk_buff *in, const struct nf_hook_state *state,
		     const struct rcm_packet *p, u32 number)
{
	u8 tos = READ_ONCE(cnp_dscp.value) << 2 | READ_ONCE(cnp_ecn.value);
	bool ipv4 = state->pf == NFPROTO_IPV4;
	struct net *net = state->net;
	struct sk_buff *skb = ipv4 ? answer4(net, in, p, tos) : answer6(net, in, p, tos);
	struct udphdr *udp;
	u8 *bth;
	u32 crc;
	int err;

	if (!skb) {
		rcm_count(RCM_CNP_UNSENT);
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
#if IS_ENABLED(CONFIG_IPV6)
	if (!ipv4)
		err = ip6_local_out(net, NULL, skb);
	else
#endif
		err = ip_local_out(net, NULL, skb);
	if (net_xmit_eval(err)) {
		rcm_count(RCM_CNP_UNSENT);
		return;
	}
	rcm_count(RCM_CNP_SENT);
	trace_roce_rcm_cnp_sent(&p->saddr, number);
}

/* May another CNP leave @net? A burst of CNP_BURST_NS worth is allowed. */
static bool cnp_within_limit(struct net *net, u64 now)
{
	struct rcm_net *rn = net_generic(net, rcm_net_id);
	u64 each = div_u64(NSEC_PER_SEC, READ_ONCE(cnp_limit.value));
	bool ok;

	spin_lock_bh(&rn->lock);
	ok = rn->cnp_ready_ns <= now + CNP_BURST_NS;
	if (ok)
		rn->cnp_ready_ns = max(rn->cnp_ready_ns, now) + each;
	spin_unlock_bh(&rn->lock);
	return ok;
}

/*
 * Was @skb sent from one host to this one alone? An answer to a multicast would come from
 * every host on the link.
 */
static bool is_unicast(const struct sk_buff *skb, const struct rcm_packet *p, u8 pf)
{
	const struct dst_entry *dst = skb_dst(skb);
	__be32 saddr = p->saddr.s6_addr32[3];

	if (skb->pkt_type != PACKET_HOST || !dst)
		return false;
	if (pf == NFPROTO_IPV4)
		return skb_rtable(skb)->rt_type == RTN_LOCAL && !ipv4_is_multicast(saddr) &&
		       !ipv4_is_zeronet(saddr) && !ipv4_is_lbcast(saddr);
	return ipv6_addr_type(&p->saddr) & IPV6_ADDR_UNICAST &&
	       ipv6_addr_type(&p->daddr) & IPV6_ADDR_UNICAST &&
	       !ipv6_anycast_destination(dst, &p->daddr);
}

/*
 * The queue pair that limits the CNPs for @p, a packet to @local. Connected: @local. UD: the
 * sender's, or @local if the table is full. NULL if the ICRC is wrong: a forged packet must not
 * add a sender to the table.
 */
static struct rcm_qp *coalesced_by(struct net *net, const struct sk_buff *skb,
				   const struct rcm_packet *p, struct rcm_qp *local)
{
	struct rcm_qp *qp;

	if (local->kind == RCM_CONNECTED)
		return local;
	qp = rcm_qp_find(net, &p->saddr, p->roce.source_qp, true);
	if (qp)
		return qp;
	if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CE_BAD_ICRC);
		return NULL;
	}
	return rcm_qp_get(net, &p->saddr, p->roce.source_qp, true) ?: local;
}

/* Must @p, a packet to @local, be answered with a CNP? Then *@number is its queue pair. */
static bool cnp_due(struct net *net, const struct sk_buff *skb, const struct rcm_packet *p,
		    struct rcm_qp *local, u32 *number)
{
	bool ud = ROCE_TRANSPORT(p->roce.bth.opcode) == ROCE_UD, valid, due = false;
	u8 kind = READ_ONCE(local->kind);
	u64 now = ktime_get_ns();
	struct rcm_qp *qp;

	spin_lock_bh(&local->lock);
	*number = kind == RCM_CONNECTED ? local->peer_qp : p->roce.source_qp;
	if (kind == RCM_CONNECTED)
		valid = !ud && rcm_qp_is_peer(local, &p->saddr);
	else
		valid = ud;
	spin_unlock_bh(&local->lock);
	if (!valid) {
		rcm_count(RCM_CE_WRONG_SOURCE);
		return false;
	}
	qp = coalesced_by(net, skb, p, local);
	if (!qp)
		return false;
	spin_lock_bh(&qp->lock);
	if (qp->remote)
		qp->used = jiffies;
	if (within(now, qp->cnp_at, &cnp_interval_us)) {
		rcm_count(RCM_CE_COALESCED);
	} else if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CE_BAD_ICRC);
	} else if (ud && !cnp_within_limit(net, now)) {
		rcm_count(RCM_CNP_LIMITED);
	} else {
		qp->cnp_at = now;
		qp->cnps_out++;
		due = true;
	}
	spin_unlock_bh(&qp->lock);
	return due;
}

/* Handles @skb, which arrived with CE. */
void rcm_cnp_for(struct sk_buff *skb, const struct rcm_packet *p,
		 const struct nf_hook_state *state)
{
	u8 transport = ROCE_TRANSPORT(p->roce.bth.opcode);
	struct rcm_qp *local;
	u32 number;

	rcm_count(RCM_CE_RECEIVED);
	if (!xfrm_policy_check(NULL, XFRM_POLICY_IN, skb, state->pf)) {
		rcm_count(RCM_CE_POLICY);
		return;
	}
	if (!is_unicast(skb, p, state->pf)) {
		rcm_count(RCM_CE_NOT_UNICAST);
		return;
	}
	if (p->roce.bth.tver ||
	    (transport != ROCE_RC && transport != ROCE_UC && transport != ROCE_UD)) {
		rcm_count(RCM_CE_INVALID);
		return;
	}
	local = rcm_qp_find(state->net, &p->daddr, p->roce.bth.dest_qp, false);
	if (local && READ_ONCE(local->kind) != RCM_KIND_UNKNOWN) {
		if (cnp_due(state->net, skb, p, local, &number))
			cnp_send(skb, state, p, number);
	} else if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CE_BAD_ICRC);
	} else {
		rcm_count(RCM_CE_UNKNOWN_QP);
		rcm_ask_qp(skb->dev, state->net, &p->daddr, p->roce.bth.dest_qp);
	}
}

/* --- reaction point -------------------------------------------------------- */

/* Handles @skb, whose opcode is that of a CNP. Returns true if it is a valid one. */
bool rcm_cnp_received(struct sk_buff *skb, const struct rcm_packet *p,
		      const struct nf_hook_state *state)
{
	bool valid = false;
	struct rcm_qp *qp;
	u64 now;

	rcm_count(RCM_CNP_RECEIVED);
	if (!xfrm_policy_check(NULL, XFRM_POLICY_IN, skb, state->pf)) {
		rcm_count(RCM_CNP_POLICY);
		return false;
	}
	if (p->roce.ib_bytes != ROCE_CNP_UDP_BYTES - ROCE_UDP_BYTES || p->roce.bth.tver) {
		rcm_count(RCM_CNP_MALFORMED);
		return false;
	}
	qp = rcm_qp_find(state->net, &p->daddr, p->roce.bth.dest_qp, false);
	if (!qp) {
		rcm_count(RCM_CNP_UNKNOWN_QP);
		return false;
	}
	spin_lock_bh(&qp->lock);
	now = ktime_get_ns();
	if (!rcm_qp_is_peer(qp, &p->saddr)) {
		rcm_count(RCM_CNP_WRONG_SOURCE);
	} else if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CNP_BAD_ICRC);
	} else {
		valid = true;
		if (within(now, qp->cut_at, &reduce_gap_us)) {
			rcm_count(RCM_CNP_TOO_SOON);
		} else if (sent_nothing(qp)) {
			rcm_count(RCM_CNP_NOTHING_SENT);
		} else if (!qp->dead && !READ_ONCE(rcm_stopping)) {
			rcm_count(RCM_CNP_HANDLED);
			qp->cut_at = now;
			qp->cnps_in++;
			rcm_pace_cut(qp, now);
		}
	}
	spin_unlock_bh(&qp->lock);
	return valid;
}
