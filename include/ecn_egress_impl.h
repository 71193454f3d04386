/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rewrites the ECN field of single packets on their way out, for the sockets of
 * one module. The stack decides the field per socket; some controls need to
 * decide it per packet. A module can do that in a LOCAL_OUT netfilter hook, which
 * sees every packet with its socket, before queues and taps.
 *
 * Only the socket's own TCP packet is changed. A tunnel (GRE, VXLAN, ESP, WireGuard)
 * keeps skb->sk and passes LOCAL_OUT again with its outer header, whose field is the
 * tunnel's (RFC 6040). VRF and IPVLAN devices bring the TCP packet itself here a
 * second time, after a queue that may have marked it: CE is never changed.
 *
 * At most one file of a module may include this: the state below is static.
 */
#ifndef _LOWQ_ECN_EGRESS_IMPL_H
#define _LOWQ_ECN_EGRESS_IMPL_H

#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#define ECN_EGRESS_KEEP	(-1)

/**
 * struct ecn_egress - a control that chooses ECN fields
 * @ops:	the control; packets of sockets with another one are not changed
 * @wanted:	may @choose or @sent have something to do for a packet of @sk now? Asked before
 *		the packet is looked at. NULL: always
 * @choose:	the ECN field for one packet of @sk: INET_ECN_NOT_ECT, _ECT_0, _ECT_1, or
 *		ECN_EGRESS_KEEP. @sk is a full TCP socket, @skb's headers are in place,
 *		@payload is in bytes
 * @synack:	the same for a SYN-ACK that answers @req, whose listener's control is @ops.
 *		With SYN cookies there is no request, and no call. NULL: the stack's choice
 * @sent:	called after @choose for what else the control does with a packet that
 *		leaves; may be called twice for a packet (see above). NULL: nothing
 *
 * All run in softirq or process context.
 */
struct ecn_egress {
	const struct tcp_congestion_ops *ops;
	bool (*wanted)(const struct sock *sk);
	int (*choose)(const struct sock *sk, const struct sk_buff *skb, u32 payload);
	int (*synack)(const struct request_sock *req, const struct sk_buff *skb);
	void (*sent)(struct sock *sk, const struct sk_buff *skb, u32 payload);
};

/* The including file defines it: a constant, so that its functions are called directly. */
static const struct ecn_egress ecn_egress;

/* Are @skb's first headers those of IP and TCP? */
static __always_inline bool ecn_egress_is_tcp(const struct sk_buff *skb, u8 pf)
{
	u8 protocol;
	int offset;

	if (pf == NFPROTO_IPV4) {
		protocol = ip_hdr(skb)->protocol;
		offset = ip_hdrlen(skb);
#if IS_ENABLED(CONFIG_IPV6)
	} else if (pf == NFPROTO_IPV6) {
		__be16 frag_off;

		protocol = ipv6_hdr(skb)->nexthdr;
		offset = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &protocol, &frag_off);
#endif
	} else {
		return false;
	}
	return protocol == IPPROTO_TCP && offset == skb_transport_offset(skb);
}

/* An outgoing packet does not share its headers, so they can be changed in place. */
static __always_inline void ecn_egress_set(struct sk_buff *skb, u8 pf, int ecn)
{
	if (ecn == ECN_EGRESS_KEEP)
		return;
	if (pf == NFPROTO_IPV4) {
		if (!INET_ECN_is_ce(ipv4_get_dsfield(ip_hdr(skb))))
			ipv4_change_dsfield(ip_hdr(skb), ~INET_ECN_MASK, ecn);
	} else {
		if (!INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb))))
			ipv6_change_dsfield(ipv6_hdr(skb), ~INET_ECN_MASK, ecn);
	}
}

static noinline unsigned int ecn_egress_synack(struct sk_buff *skb, u8 pf)
{
	const struct request_sock *req = inet_reqsk(skb->sk);
	const struct sock *listener = READ_ONCE(req->rsk_listener);

	if (ecn_egress.synack && ecn_egress_is_tcp(skb, pf) && listener &&
	    READ_ONCE(inet_csk(listener)->icsk_ca_ops) == ecn_egress.ops)
		ecn_egress_set(skb, pf, ecn_egress.synack(req, skb));
	return NF_ACCEPT;
}

static __always_inline unsigned int ecn_egress_packet(struct sk_buff *skb, u8 pf)
{
	struct sock *sk = skb->sk;
	u32 header, payload;

	if (!ecn_egress_is_tcp(skb, pf))
		return NF_ACCEPT;
	header = skb_transport_offset(skb) + tcp_hdrlen(skb);
	payload = skb->len - min(header, skb->len);
	ecn_egress_set(skb, pf, ecn_egress.choose(sk, skb, payload));
	if (ecn_egress.sent)
		ecn_egress.sent(sk, skb, payload);
	return NF_ACCEPT;
}

/* noinline, as the next one, so that the hook itself saves no registers. */
static noinline unsigned int ecn_egress_ipv4(struct sk_buff *skb)
{
	return ecn_egress_packet(skb, NFPROTO_IPV4);
}

static noinline unsigned int ecn_egress_not_ipv4(struct sk_buff *skb, u8 pf)
{
	return ecn_egress_packet(skb, pf);
}

/*
 * The socket is looked at before the packet: most packets are of other sockets. Those in
 * TIME-WAIT are no full sockets. The stack's own RSTs and ACKs come from raw sockets of
 * protocol TCP.
 */
static unsigned int ecn_egress_hook(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;
	u8 tcp_state;

	if (!sk)
		return NF_ACCEPT;
	tcp_state = sk->sk_state;
	if (unlikely(tcp_state == TCP_NEW_SYN_RECV))
		return ecn_egress_synack(skb, state->pf);
	if (tcp_state == TCP_TIME_WAIT || sk->sk_type != SOCK_STREAM ||
	    sk->sk_protocol != IPPROTO_TCP ||
	    READ_ONCE(inet_csk(sk)->icsk_ca_ops) != ecn_egress.ops ||
	    (ecn_egress.wanted && !ecn_egress.wanted(sk)))
		return NF_ACCEPT;
	if (state->pf == NFPROTO_IPV4)
		return ecn_egress_ipv4(skb);
	return ecn_egress_not_ipv4(skb, state->pf);
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

/* In every network namespace, also in those created later. May sleep. */
static inline int ecn_egress_register(void)
{
	return register_pernet_subsys(&ecn_egress_net_ops);
}

static inline void ecn_egress_unregister(void)
{
	unregister_pernet_subsys(&ecn_egress_net_ops);
}

#endif /* _LOWQ_ECN_EGRESS_IMPL_H */
