// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm - RoCEv2 congestion management for soft-RoCE (InfiniBand Architecture
 * Specification, annex A17.9.3). rdma_rxe itself is not changed.
 *
 *	injector:		sets ECT(0) on the packets of data queue pairs, where the
 *				program's traffic class leaves the ECN field at 0
 *	notification point:	answers a valid packet that carries CE with a CNP to its
 *				source, at most one per queue pair and cnp_interval_us
 *	reaction point:		a CNP cuts the rate of the queue pair that it names; the
 *				rate grows again with time and bytes sent: DCQCN
 *				(dcqcn_model.h), or LDCP for adapters (ldcp_model.h)
 *
 * All of it is done in netfilter hooks, in every network namespace:
 *
 *	LOCAL_OUT	sees each packet of rdma_rxe with its queue pair: learns the peer,
 *			sets ECT(0), holds back packets that are too early
 *	LOCAL_IN	sees CE, which rdma_rxe does not read, and CNPs, which rdma_rxe
 *			does not know
 *
 * This file contains the hooks; roce_rcm.h lists the other files.
 *
 * Deviations from the specification:
 *  - LDCP's RTT is a parameter: RoCE has no message for measuring it that peers answer.
 *  - A UD queue pair is paced as a whole, even if only one of its destinations is
 *    congested: the CNP names a queue pair, not a destination.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_ether.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/dsfield.h>
#include <net/dst.h>
#include <net/inet_ecn.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <rdma/ib_verbs.h>

#include "cc_param.h"
#include "roce_rcm.h"

#define CREATE_TRACE_POINTS
#include "roce_rcm_trace.h"

CC_PARAM(inject, 1, 0, 1, 0644, "0 is off, 1 is on", "set ECT(0) on data queue pairs' packets");

/* Headers of outgoing packets are not shared: no copy is needed. */
static void set_ect(struct sk_buff *skb, u8 pf)
{
	if (pf == NFPROTO_IPV4)
		ipv4_change_dsfield(ip_hdr(skb), ~INET_ECN_MASK, INET_ECN_ECT_0);
	else
		ipv6_change_dsfield(ipv6_hdr(skb), ~INET_ECN_MASK, INET_ECN_ECT_0);
	rcm_count(RCM_ECT_SET);
}

/*
 * Learns from @skb, which is *@p and sent by @ibqp, about its queue pair. Returns the queue
 * pair's entry in the table; NULL if there is no room.
 */
static struct rcm_qp *learn_from_sent(struct sk_buff *skb, const struct rcm_packet *p,
				      const struct ib_qp *ibqp, struct net *net)
{
	struct rcm_qp *qp = rcm_qp_get(net, &p->saddr, ibqp->qp_num, false);
	u64 line;

	if (!qp)
		return NULL;
	WRITE_ONCE(qp->used, jiffies);
	if (skb->len + ETH_HLEN > READ_ONCE(qp->rate.packet_bytes))
		WRITE_ONCE(qp->rate.packet_bytes, skb->len + ETH_HLEN);
	rcm_qp_learn(qp, &p->daddr, p->roce.bth.dest_qp,
		     ibqp->qp_type == IB_QPT_UD ? RCM_DATAGRAM : RCM_CONNECTED);
	if (time_after_eq(jiffies, READ_ONCE(qp->line_until))) {
		line = rcm_ask_line(skb_dst(skb)->dev, net);
		if (line) {
			WRITE_ONCE(qp->line, line);
			WRITE_ONCE(qp->line_until, jiffies + HZ);
		}
	}
	rcm_pace_note(qp, &p->roce.bth);
	return qp;
}

/*
 * UDP that this host sends. Not inlined: kernels that initialise all variables would clear @p for
 * each packet of TCP, too.
 */
static noinline unsigned int udp_out(struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct ib_qp *ibqp;
	struct rcm_packet p;
	struct rcm_qp *qp;

	/* a packet of a VRF comes twice: with the VRF's device, then with the real one */
	if (netif_is_l3_master(state->out) || !rcm_packet_read(&p, skb, state->pf) ||
	    p.roce.bth.opcode == ROCE_OPCODE_CNP)
		return NF_ACCEPT;
	ibqp = rcm_rxe_qp(skb);
	if (!ibqp || ibqp->qp_type == IB_QPT_GSI)
		return NF_ACCEPT;
	if (rcm_takes_part(&p)) {
		/* a program's traffic class may have an ECN field of its own */
		if (p.ecn == INET_ECN_NOT_ECT && READ_ONCE(inject.value))
			set_ect(skb, state->pf);
		qp = learn_from_sent(skb, &p, ibqp, state->net);
	} else {
		/* it took part before: the packets in its FIFO must leave first */
		qp = rcm_qp_find(state->net, &p.saddr, ibqp->qp_num, false);
	}
	if (!qp)
		return NF_ACCEPT;
	if (READ_ONCE(qp->limited))
		return rcm_pace(qp, skb, ibqp, &p.roce.bth);
	if (!roce_is_bare(p.roce.bth.opcode))
		WRITE_ONCE(qp->sent_at, jiffies);
	return NF_ACCEPT;
}

static unsigned int rcm_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (!skb->sk || !rcm_packet_is_udp(skb, state->pf))
		return NF_ACCEPT;
	return udp_out(skb, state);
}

/* UDP that arrives and carries CE, or perhaps a CNP. Not inlined, likewise. */
static noinline unsigned int signal_in(struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct rcm_packet p;

	if (!rcm_packet_read(&p, skb, state->pf) ||
	    (p.roce.bth.opcode != ROCE_OPCODE_CNP && p.ecn != INET_ECN_CE))
		return NF_ACCEPT;
	/* Most senders leave UDP's checksum out. UDP drops and counts wrong ones. */
	if (p.udp_checksum &&
	    nf_checksum(skb, state->hook, p.ip_bytes, IPPROTO_UDP, state->pf))
		return NF_ACCEPT;
	if (p.roce.bth.opcode == ROCE_OPCODE_CNP) {
		/* rdma_rxe does not know CNPs and would drop it */
		if (!rcm_cnp_received(skb, &p, state))
			return NF_DROP;
		/* handled: tools that watch drops must not see one */
		consume_skb(skb);
		return NF_STOLEN;
	}
	rcm_cnp_for(skb, &p, state);
	return NF_ACCEPT;
}

static unsigned int rcm_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (!rcm_packet_is_udp(skb, state->pf) || !rcm_packet_signals(skb, state->pf))
		return NF_ACCEPT;
	return signal_in(skb, state);
}

/* IPv4 and IPv6 */
static const struct nf_hook_ops hooks[] = {
	{
		.hook = rcm_out,
		.pf = NFPROTO_INET,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = rcm_in,
		.pf = NFPROTO_INET,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	},
};

static int __net_init rcm_net_init(struct net *net)
{
	struct rcm_net *rn = net_generic(net, rcm_net_id);

	spin_lock_init(&rn->lock);
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

/* Before the grace period: a hook that still runs may add another queue pair. */
static void __net_exit rcm_net_pre_exit(struct net *net)
{
	rcm_qps_drain(net);
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit rcm_net_exit(struct net *net)
{
	rcm_qps_forget(net);
}

static struct pernet_operations rcm_net_ops = {
	.init = rcm_net_init,
	.pre_exit = rcm_net_pre_exit,
	.exit = rcm_net_exit,
	.id = &rcm_net_id,
	.size = sizeof(struct rcm_net),
};

static int __init rcm_init(void)
{
	int err;

	rcm_qps_init();
	err = register_pernet_subsys(&rcm_net_ops);
	if (err) {
		rcm_qps_exit();
		return err;
	}
	rcm_debugfs_init();
	return 0;
}

static void __exit rcm_exit(void)
{
	/* no CNP is handled once all hooks have seen this */
	WRITE_ONCE(rcm_stopping, true);
	synchronize_net();
	rcm_debugfs_exit();
	rcm_qps_exit();
	rcm_ask_exit();
	unregister_pernet_subsys(&rcm_net_ops);
}

module_init(rcm_init);
module_exit(rcm_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("RoCEv2 congestion management for soft-RoCE");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
