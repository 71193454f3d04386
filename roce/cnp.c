// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: Congestion Notification Packets. The notification point answers a packet
 * that came with CE with a CNP to its source, at most one per queue pair and
 * cnp_interval_us; the reaction point takes one that came, and the queue pair that it
 * names is slowed down.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/pkt_sched.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "cc_param.h"
#include "roce_rcm.h"
#include "roce_rcm_trace.h"

CC_PARAM(cnp_interval_us, 50, 0, 1000000, 0644, "microseconds, up to a second",
	 "one CNP per queue pair in this time, microseconds, 0 is one per marked packet");
CC_PARAM(cnp_dscp, 48, 0, 63, 0644, "a DSCP", "DSCP of CNPs");
CC_PARAM(cnp_ecn, 1, 0, 3, 0644, "an ECN field; 1 is 01", "ECN field of CNPs");
CC_PARAM(reduce_gap_us, 4, 0, 1000000, 0644, "microseconds, up to a second",
	 "a CNP so soon after the last one of its queue pair is ignored, microseconds");

/* Less than @us since @then, if that ever was? */
static bool within(u64 now, u64 then, const struct cc_param *us)
{
	return then && now - then < READ_ONCE(us->value) * NSEC_PER_USEC;
}

/* --- notification point ---------------------------------------------------- */

/*
 * An skb for a CNP by way of @dst, which it takes over: room for the device, an IP
 * header of @ip_bytes zeros, room for the rest. NULL if there is no memory.
 */
static struct sk_buff *cnp_alloc(struct dst_entry *dst, unsigned int ip_bytes, __be16 protocol)
{
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(dst->dev) + ip_bytes +
					ROCE_CNP_UDP_BYTES, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		dst_release(dst);
		return NULL;
	}
	skb_reserve(skb, LL_RESERVED_SPACE(dst->dev));
	skb_dst_set(skb, dst);
	skb->protocol = protocol;
	skb_reset_network_header(skb);
	skb_put_zero(skb, ip_bytes);
	return skb;
}

/* ... to the sender of @p, routed, its IP header in place */
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
	skb = cnp_alloc(&rt->dst, sizeof(*ip), htons(ETH_P_IP));
	if (!skb)
		return NULL;
	ip = ip_hdr(skb);
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
/* @dev: where @p came in; a link-local address means nothing without */
static struct sk_buff *answer6(struct net *net, const struct net_device *dev,
			       const struct rcm_packet *p, u8 tos)
{
	struct flowi6 fl6 = {
		.daddr = p->saddr,
		.saddr = p->daddr,
		.flowi6_oif = rt6_need_strict(&p->saddr) ? dev->ifindex : 0,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl6);
	struct ipv6hdr *ip;
	struct sk_buff *skb;

	if (dst->error) {
		dst_release(dst);
		return NULL;
	}
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
static struct sk_buff *answer6(struct net *net, const struct net_device *dev,
			       const struct rcm_packet *p, u8 tos)
{
	return NULL;
}
#endif

/* A CNP to the sender of @p, which came in by @dev, for its queue pair @number. */
static void cnp_send(const struct net_device *dev, const struct nf_hook_state *state,
		     const struct rcm_packet *p, u32 number)
{
	u8 tos = READ_ONCE(cnp_dscp.value) << 2 | READ_ONCE(cnp_ecn.value);
	bool ipv4 = state->pf == NFPROTO_IPV4;
	struct net *net = state->net;
	struct sk_buff *skb = ipv4 ? answer4(net, p, tos) : answer6(net, dev, p, tos);
	struct udphdr *udp;
	u8 *bth;
	u32 crc;

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
	rcm_count(RCM_CNP_SENT);
	trace_roce_rcm_cnp_sent(&p->saddr, number);
	if (ipv4)
		ip_local_out(net, NULL, skb);
#if IS_ENABLED(CONFIG_IPV6)
	else
		ip6_local_out(net, NULL, skb);
#endif
}

/*
 * The queue pair that CNPs for @p are counted by: of UD the sender's, which a forged
 * packet does not bring in; else the one that it came for. NULL if that is not known.
 */
static struct rcm_qp *counted_by(struct net *net, const struct sk_buff *skb,
				 const struct rcm_packet *p, bool ud)
{
	struct rcm_qp *qp;

	if (ud) {
		qp = rcm_qp_find(net, &p->saddr, p->roce.source_qp, true);
		if (qp)
			return qp;
		if (!rcm_packet_icrc_ok(p, skb)) {
			rcm_count(RCM_CE_BAD_ICRC);
			return NULL;
		}
		qp = rcm_qp_get(net, &p->saddr, p->roce.source_qp, true);
	} else {
		qp = rcm_qp_find(net, &p->daddr, p->roce.bth.dest_qp, false);
		if (qp && READ_ONCE(qp->peers))
			return qp;
		qp = NULL;
		rcm_rxe_ask(skb->dev, net, &p->daddr, p->roce.bth.dest_qp);
	}
	if (!qp)
		rcm_count(RCM_CE_UNKNOWN_QP);
	return qp;
}

/* @skb came with CE. */
void rcm_cnp_for(const struct sk_buff *skb, const struct rcm_packet *p,
		 const struct nf_hook_state *state)
{
	u8 transport = ROCE_TRANSPORT(p->roce.bth.opcode);
	bool ud = transport == ROCE_UD;
	struct rcm_qp *qp;
	u32 number;
	u64 now;

	rcm_count(RCM_CE_RECEIVED);
	if (p->roce.bth.tver || (transport != ROCE_RC && transport != ROCE_UC && !ud)) {
		rcm_count(RCM_CE_INVALID);
		return;
	}
	qp = counted_by(state->net, skb, p, ud);
	if (!qp)
		return;
	now = ktime_get_ns();
	spin_lock_bh(&qp->lock);
	number = ud ? p->roce.source_qp : qp->peer_qp;
	if (!ud && (!qp->connected || !rcm_qp_is_peer(qp, &p->saddr))) {
		rcm_count(RCM_CE_WRONG_SOURCE);
		goto out;
	}
	qp->used = jiffies;
	if (within(now, qp->cnp_at, &cnp_interval_us)) {
		rcm_count(RCM_CE_COALESCED);
		goto out;
	}
	if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CE_BAD_ICRC);
		goto out;
	}
	qp->cnp_at = now;
	qp->cnps_out++;
	spin_unlock_bh(&qp->lock);
	cnp_send(skb->dev, state, p, number);
	return;
out:
	spin_unlock_bh(&qp->lock);
}

/* --- reaction point -------------------------------------------------------- */

/* @skb is a CNP, or looks like one. */
void rcm_cnp_received(const struct sk_buff *skb, const struct rcm_packet *p,
		      const struct nf_hook_state *state)
{
	struct rcm_qp *qp;
	u64 now;

	rcm_count(RCM_CNP_RECEIVED);
	if (p->roce.ib_bytes != ROCE_CNP_UDP_BYTES - ROCE_UDP_BYTES || p->roce.bth.tver) {
		rcm_count(RCM_CNP_MALFORMED);
		return;
	}
	qp = rcm_qp_find(state->net, &p->daddr, p->roce.bth.dest_qp, false);
	if (!qp) {
		rcm_count(RCM_CNP_UNKNOWN_QP);
		return;
	}
	spin_lock_bh(&qp->lock);
	now = ktime_get_ns();
	if (!rcm_qp_is_peer(qp, &p->saddr)) {
		rcm_count(RCM_CNP_WRONG_SOURCE);
	} else if (!rcm_packet_icrc_ok(p, skb)) {
		rcm_count(RCM_CNP_BAD_ICRC);
	} else if (within(now, qp->cut_at, &reduce_gap_us)) {
		rcm_count(RCM_CNP_TOO_SOON);
	} else if (!qp->dead && !READ_ONCE(rcm_stopping)) {
		rcm_count(RCM_CNP_HANDLED);
		qp->cut_at = now;
		qp->cnps_in++;
		rcm_pace_cut(qp, now);
	}
	spin_unlock_bh(&qp->lock);
}
