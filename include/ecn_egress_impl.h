/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rewrites the ECN field of single packets on their way out, for the sockets of
 * one module. The stack decides the field per socket; some controls need to
 * decide it per packet. A LOCAL_OUT netfilter hook is the way in that a module
 * has: it sees every packet with its socket, before queues and taps.
 *
 * One user per module: the state below is the including file's own.
 */
#ifndef _LOWQ_ECN_EGRESS_IMPL_H
#define _LOWQ_ECN_EGRESS_IMPL_H

#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#define ECN_EGRESS_KEEP	(-1)

/**
 * ecn_egress_choose_t - the ECN field for one packet
 * @sk:	a full TCP socket whose control is the registered one
 * @skb:	the packet; its headers are in place, its data is not to be touched
 * @payload:	bytes of TCP payload
 *
 * Runs for every packet of the module's sockets, in softirq or process context.
 * Return: INET_ECN_NOT_ECT, _ECT_0, _ECT_1, or ECN_EGRESS_KEEP.
 */
typedef int (*ecn_egress_choose_t)(const struct sock *sk, const struct sk_buff *skb,
				   u32 payload);

/**
 * ecn_egress_synack_t - the ECN field for a SYN-ACK
 * @req:	the request that it answers; its listener's control is the
 *		registered one. With SYN cookies there is none, and no call
 *
 * Return: as of ecn_egress_choose_t.
 */
typedef int (*ecn_egress_synack_t)(const struct request_sock *req);

static const struct tcp_congestion_ops *ecn_egress_ops;
static ecn_egress_choose_t ecn_egress_choose;
static ecn_egress_synack_t ecn_egress_synack;	/* NULL: SYN-ACKs are left alone */

/* The headers of a packet that leaves are its own: no copy is needed. */
static unsigned int ecn_egress_set(struct sk_buff *skb, u8 pf, int ecn)
{
	if (ecn == ECN_EGRESS_KEEP)
		return NF_ACCEPT;
	if (pf == NFPROTO_IPV4)
		ipv4_change_dsfield(ip_hdr(skb), ~INET_ECN_MASK, ecn);
	else
		ipv6_change_dsfield(ipv6_hdr(skb), ~INET_ECN_MASK, ecn);
	return NF_ACCEPT;
}

static unsigned int ecn_egress_hook(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;
	u32 header;
	int ecn;

	if (sk && ecn_egress_synack && sk->sk_state == TCP_NEW_SYN_RECV) {
		const struct request_sock *req = inet_reqsk(sk);
		const struct sock *listener = READ_ONCE(req->rsk_listener);

		if (!listener || READ_ONCE(inet_csk(listener)->icsk_ca_ops) != ecn_egress_ops)
			return NF_ACCEPT;
		return ecn_egress_set(skb, state->pf, ecn_egress_synack(req));
	}
	/* The stack's own RSTs and ACKs come from raw sockets of protocol TCP. */
	if (!sk || !sk_fullsock(sk) || sk->sk_type != SOCK_STREAM ||
	    sk->sk_protocol != IPPROTO_TCP ||
	    READ_ONCE(inet_csk(sk)->icsk_ca_ops) != ecn_egress_ops)
		return NF_ACCEPT;
	header = skb_transport_offset(skb) + tcp_hdrlen(skb);
	ecn = ecn_egress_choose(sk, skb, skb->len - min(header, skb->len));
	return ecn_egress_set(skb, state->pf, ecn);
}

/* INET: IPv4 and IPv6, whose priorities have the same numbers */
static const struct nf_hook_ops ecn_egress_hook_ops = {
	.hook = ecn_egress_hook,
	.pf = NFPROTO_INET,
	.hooknum = NF_INET_LOCAL_OUT,
	.priority = NF_IP_PRI_LAST,
};

static int __net_init ecn_egress_net_init(struct net *net)
{
	return nf_register_net_hook(net, &ecn_egress_hook_ops);
}

static void __net_exit ecn_egress_net_exit(struct net *net)
{
	nf_unregister_net_hook(net, &ecn_egress_hook_ops);
}

static struct pernet_operations ecn_egress_net_ops = {
	.init = ecn_egress_net_init,
	.exit = ecn_egress_net_exit,
};

/* In every namespace, those to come included. May sleep. */
static inline int ecn_egress_register(const struct tcp_congestion_ops *ops,
				      ecn_egress_choose_t choose)
{
	ecn_egress_ops = ops;
	ecn_egress_choose = choose;
	return register_pernet_subsys(&ecn_egress_net_ops);
}

/* The same, for SYN-ACKs too. */
static inline int ecn_egress_register_synack(const struct tcp_congestion_ops *ops,
					     ecn_egress_choose_t choose,
					     ecn_egress_synack_t synack)
{
	ecn_egress_synack = synack;
	return ecn_egress_register(ops, choose);
}

static inline void ecn_egress_unregister(void)
{
	unregister_pernet_subsys(&ecn_egress_net_ops);
}

#endif /* _LOWQ_ECN_EGRESS_IMPL_H */
