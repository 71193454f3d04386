/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chooses the ECN field of single packets, for the sockets of one module. The stack decides
 * the field per socket; some controls need to decide it per packet.
 *
 * A socket hands its packets to IP by the function queue_xmit of its icsk_af_ops. An attached
 * socket has a copy of these, whose queue_xmit sets the socket's field for one packet; MPTCP and
 * SMC have such copies, too. Packets of other sockets are not affected. Tunnels and devices see
 * the field as the stack's own choice.
 *
 * SYN-ACKs leave by the request's functions, which are the same for all controls: a LOCAL_OUT
 * netfilter hook changes theirs, where a control asks for it, in namespaces where a socket of the
 * control listens. A control learns of its listeners only from two tracepoints, of state changes
 * and of retransmitted SYN-ACKs; other packets do not pass them.
 *
 * In the other direction, the stack tells a control of data that arrives as ECT or CE, but not as
 * Not-ECT. A control that waits for clean data can have Not-ECT data counted as ECT(0).
 *
 * At most one file of a module may include this: the state below is static.
 */
#ifndef _LOWQ_ECN_EGRESS_IMPL_H
#define _LOWQ_ECN_EGRESS_IMPL_H

#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rcupdate.h>
#include <linux/tracepoint.h>
#include <net/dsfield.h>
#include <net/inet_connection_sock.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_hook.h"

#define ECN_EGRESS_KEEP	(-1)

/**
 * struct ecn_egress - a control that chooses ECN fields
 * @ops:	the control, for @synack_not_ect
 * @data_only:	packets without data keep the stack's field
 * @lasting:	may the socket keep the chosen field after the packet? It may if the stack writes
 *		the field before each packet, and @sent has nothing to do. NULL: no
 * @wanted:	may @choose or @sent still have something to do for @sk? If not, it is detached.
 *		NULL: always
 * @awaits_clean: is @sk waiting for data that is not marked? NULL: never
 * @choose:	the ECN field for one packet of @sk: INET_ECN_NOT_ECT, _ECT_0, _ECT_1, or
 *		ECN_EGRESS_KEEP. @skb begins with its TCP header, @payload is in bytes
 * @synack_not_ect: shall this SYN-ACK, which answers @req, be Not-ECT, whatever the stack has
 *		chosen? The listener's control is @ops. Not called for SYN cookies, which have no
 *		request. NULL: the stack's choice
 * @sent:	called after @choose, for other work of the control on a packet that leaves.
 *		NULL: nothing
 *
 * All run in softirq or process context, all but @synack_not_ect with the socket locked.
 */
struct ecn_egress {
	const struct tcp_congestion_ops *ops;
	bool data_only;
	bool (*lasting)(void);
	bool (*wanted)(const struct sock *sk);
	bool (*awaits_clean)(const struct sock *sk);
	int (*choose)(const struct sock *sk, const struct sk_buff *skb, u32 payload);
	bool (*synack_not_ect)(const struct request_sock *req, const struct sk_buff *skb);
	void (*sent)(struct sock *sk, const struct sk_buff *skb, u32 payload);
};

/* The including file defines it: a constant, so that its functions are called directly. */
static const struct ecn_egress ecn_egress;

/* --- packets of sockets ----------------------------------------------------------- */

/**
 * struct ecn_egress_af - the functions of attached sockets
 * @ops:	a copy of the stack's functions, with our queue_xmit and sk_rx_dst_set
 * @stack:	the stack's; NULL: this entry and those behind it are free
 */
struct ecn_egress_af {
	struct inet_connection_sock_af_ops ops;
	const struct inet_connection_sock_af_ops *stack;
};

/* TCP and MPTCP, each with IPv4, IPv6, and IPv4 over a socket of IPv6. Entries stay. */
static struct ecn_egress_af ecn_egress_afs[8];
static DEFINE_SPINLOCK(ecn_egress_lock);	/* for new entries */

static int ecn_egress_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);
static void ecn_egress_rx_dst_set(struct sock *sk, const struct sk_buff *skb);

static inline bool ecn_egress_is_attached(const struct sock *sk)
{
	return inet_csk(sk)->icsk_af_ops->queue_xmit == ecn_egress_xmit;
}

static inline const struct inet_connection_sock_af_ops *ecn_egress_stack(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_af_ops, struct ecn_egress_af, ops)->stack;
}

/* The entry for @stack, or the first free one; NULL if there is neither. */
static inline struct ecn_egress_af *
ecn_egress_find(const struct inet_connection_sock_af_ops *stack)
{
	const struct inet_connection_sock_af_ops *of;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ecn_egress_afs); i++) {
		of = smp_load_acquire(&ecn_egress_afs[i].stack);	/* @ops is complete */
		if (!of || of == stack)
			return &ecn_egress_afs[i];
	}
	return NULL;
}

static noinline struct ecn_egress_af *
ecn_egress_add(const struct inet_connection_sock_af_ops *stack)
{
	struct ecn_egress_af *af;

	spin_lock_bh(&ecn_egress_lock);
	af = ecn_egress_find(stack);
	if (af && !af->stack) {
		af->ops = *stack;
		af->ops.queue_xmit = ecn_egress_xmit;
		if (ecn_egress.awaits_clean)
			af->ops.sk_rx_dst_set = ecn_egress_rx_dst_set;
		smp_store_release(&af->stack, stack);	/* after @ops */
	}
	spin_unlock_bh(&ecn_egress_lock);
	return af;
}

/*
 * From now on the module chooses @sk's fields. To be called when @sk has a peer, and once per
 * round, since IPV6_ADDRFORM gives an IPv6 socket with an IPv4 peer the stack's functions. A second
 * call changes nothing.
 */
static inline void ecn_egress_attach(struct sock *sk)
{
	const struct inet_connection_sock_af_ops *stack = inet_csk(sk)->icsk_af_ops;
	struct ecn_egress_af *af;

	if (ecn_egress_is_attached(sk))
		return;
	af = ecn_egress_find(stack);
	if (!af || !af->stack)
		af = ecn_egress_add(stack);
	if (af)
		WRITE_ONCE(inet_csk(sk)->icsk_af_ops, &af->ops);
	else
		pr_warn_once("a socket of an unknown kind: its ECN fields are the stack's\n");
}

/* To be called when a socket leaves the control. A second call changes nothing. */
static inline void ecn_egress_detach(struct sock *sk)
{
	if (ecn_egress_is_attached(sk))
		WRITE_ONCE(inet_csk(sk)->icsk_af_ops, ecn_egress_stack(sk));
}

static __always_inline bool ecn_egress_awaits_clean(const struct sock *sk)
{
	return ecn_egress.awaits_clean && ecn_egress.awaits_clean(sk);
}

/* The ECN field of @sk's packets is in these bits. */
static __always_inline u8 *ecn_egress_field(struct sock *sk,
					    const struct inet_connection_sock_af_ops *stack)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (stack->net_header_len == sizeof(struct ipv6hdr))
		return (u8 *)&inet_sk(sk)->pinet6->tclass;	/* no request: no inet6_sk() */
#endif
	return &inet_sk(sk)->tos;
}

static __always_inline void ecn_egress_set(u8 *field, u8 ecn)
{
	WRITE_ONCE(*field, (READ_ONCE(*field) & ~INET_ECN_MASK) | ecn);
}

/* Sets the field for this packet alone. noinline, so that others cost no saved registers */
static noinline int ecn_egress_xmit_once(struct sock *sk, struct sk_buff *skb, struct flowi *fl,
					 u32 payload)
{
	const struct inet_connection_sock_af_ops *stack = ecn_egress_stack(sk);
	u8 *field = ecn_egress_field(sk, stack), before;
	int ecn, err;

	if (ecn_egress.wanted && !ecn_egress.wanted(sk)) {
		if (!ecn_egress_awaits_clean(sk))
			ecn_egress_detach(sk);
		return stack->queue_xmit(sk, skb, fl);
	}
	ecn = ecn_egress.choose(sk, skb, payload);
	if (ecn_egress.sent)
		ecn_egress.sent(sk, skb, payload);
	if (ecn == ECN_EGRESS_KEEP)
		return stack->queue_xmit(sk, skb, fl);
	before = READ_ONCE(*field) & INET_ECN_MASK;
	ecn_egress_set(field, ecn);
	err = stack->queue_xmit(sk, skb, fl);
	ecn_egress_set(field, before);
	return err;
}

/* In the place of queue_xmit */
static int ecn_egress_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	const struct inet_connection_sock_af_ops *stack = ecn_egress_stack(sk);
	u32 payload = skb->len - tcp_hdrlen(skb);
	int ecn;

	if (ecn_egress.data_only && !payload)
		return stack->queue_xmit(sk, skb, fl);
	if (!ecn_egress.lasting || !ecn_egress.lasting())
		return ecn_egress_xmit_once(sk, skb, fl, payload);
	ecn = ecn_egress.choose(sk, skb, payload);
	if (ecn != ECN_EGRESS_KEEP)
		ecn_egress_set(ecn_egress_field(sk, stack), ecn);
	return stack->queue_xmit(sk, skb, fl);
}

/* --- data that arrives ------------------------------------------------------------ */

/*
 * Replaces sk_rx_dst_set. If a packet arrives while the socket has no input route, the stack calls
 * this before it looks at the packet, except in FIN-WAIT.
 */
static void ecn_egress_rx_dst_set(struct sock *sk, const struct sk_buff *skb)
{
	if (!ecn_egress_awaits_clean(sk))
		ecn_egress_stack(sk)->sk_rx_dst_set(sk, skb);
	else if (INET_ECN_is_not_ect(TCP_SKB_CB(skb)->ip_dsfield))
		TCP_SKB_CB(skb)->ip_dsfield |= INET_ECN_ECT_0;
}

/*
 * To be called where @awaits_clean has changed, which is rare. While it is true, the socket keeps
 * no input route, and the host's routes are looked up for its packets.
 */
static noinline __maybe_unused void ecn_egress_awaits_changed(struct sock *sk)
{
	if (cc_reports_not_ect())
		return;
	if (ecn_egress_awaits_clean(sk)) {
		ecn_egress_attach(sk);
		dst_release(unrcu_pointer(xchg(&sk->sk_rx_dst, NULL)));
	} else if (ecn_egress.wanted && !ecn_egress.wanted(sk)) {
		ecn_egress_detach(sk);
	}
}

/* --- SYN-ACKs ----------------------------------------------------------------------- */

/*
 * noinline, so that the hook itself saves no registers. An outgoing packet does not share its
 * headers, so they can be changed in place. A packet may come here twice: from a tunnel with its
 * outer header, which has the inner one's field (RFC 6040); from VRF and IPVLAN devices after a
 * queue that may have marked it. So CE is never changed.
 */
static noinline unsigned int ecn_egress_synack(struct sk_buff *skb, u8 pf)
{
	const struct request_sock *req = inet_reqsk(skb->sk);
	const struct sock *listener = READ_ONCE(req->rsk_listener);

	if (!listener || READ_ONCE(inet_csk(listener)->icsk_ca_ops) != ecn_egress.ops ||
	    !ecn_egress.synack_not_ect(req, skb))
		return NF_ACCEPT;
	if (pf == NFPROTO_IPV4) {
		if (!INET_ECN_is_ce(ipv4_get_dsfield(ip_hdr(skb))))
			ipv4_change_dsfield(ip_hdr(skb), ~INET_ECN_MASK, INET_ECN_NOT_ECT);
	} else if (!INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb)))) {
		ipv6_change_dsfield(ipv6_hdr(skb), ~INET_ECN_MASK, INET_ECN_NOT_ECT);
	}
	return NF_ACCEPT;
}

static unsigned int ecn_egress_hook(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	if (likely(!skb->sk || skb->sk->sk_state != TCP_NEW_SYN_RECV))
		return NF_ACCEPT;
	return ecn_egress_synack(skb, state->pf);
}

/* INET: IPv4 and IPv6, whose priorities have the same numbers */
static const struct nf_hook_ops ecn_egress_hook_ops = {
	.hook = ecn_egress_hook,
	.pf = NFPROTO_INET,
	.hooknum = NF_INET_LOCAL_OUT,
	.priority = NF_IP_PRI_LAST,
};

static unsigned int ecn_egress_net_id;
static bool ecn_egress_on_demand;	/* this kernel has the tracepoints */

static int __net_init ecn_egress_net_init(struct net *net)
{
	struct cc_hook *hook = net_generic(net, ecn_egress_net_id);

	cc_hook_init(hook, net, &ecn_egress_hook_ops, 1);
	return ecn_egress_on_demand ? 0 : cc_hook_register(hook);
}

static void __net_exit ecn_egress_net_pre_exit(struct net *net)
{
	cc_hook_leave(net_generic(net, ecn_egress_net_id));
}

static struct pernet_operations ecn_egress_net_ops = {
	.init = ecn_egress_net_init,
	.pre_exit = ecn_egress_net_pre_exit,
	.id = &ecn_egress_net_id,
	.size = sizeof(struct cc_hook),
};

/* Until the hook is registered, SYN-ACKs keep the stack's field. */
static void ecn_egress_need_hook(const struct sock *sk)
{
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops) == ecn_egress.ops)
		cc_hook_need(net_generic(sock_net(sk), ecn_egress_net_id));
}

/*
 * At listen(), before the first SYN; if a listener was given the control later, with its first
 * child.
 */
static void ecn_egress_state(void *data, const struct sock *sk, int before, int after)
{
	if ((after == TCP_LISTEN || after == TCP_SYN_RECV) && sk->sk_protocol == IPPROTO_TCP)
		ecn_egress_need_hook(sk);
}

/*
 * For a listener that was given the control later and whose SYN-ACKs are lost, so that it has no
 * child: they are right from the second retransmission on.
 */
static void ecn_egress_synack_again(void *data, const struct sock *sk,
				    const struct request_sock *req)
{
	ecn_egress_need_hook(sk);
}

/**
 * struct ecn_egress_probe - what is called at a tracepoint
 * @name:	the tracepoint's. It is not exported: modules find it by its name
 * @probe:	the function
 * @tp:		the tracepoint; NULL: this kernel has none
 */
struct ecn_egress_probe {
	const char *name;
	void *probe;
	struct tracepoint *tp;
};

static struct ecn_egress_probe ecn_egress_probes[] = {
	{ "inet_sock_set_state", ecn_egress_state },
	{ "tcp_retransmit_synack", ecn_egress_synack_again },
};

static void ecn_egress_find_tracepoint(struct tracepoint *tp, void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ecn_egress_probes); i++)
		if (!strcmp(tp->name, ecn_egress_probes[i].name))
			ecn_egress_probes[i].tp = tp;
}

/* Removes the first @n probes. May sleep. */
static void ecn_egress_unprobe(unsigned int n)
{
	while (n--)
		tracepoint_probe_unregister(ecn_egress_probes[n].tp, ecn_egress_probes[n].probe,
					    NULL);
	tracepoint_synchronize_unregister();
}

static inline int ecn_egress_probe_all(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(ecn_egress_probes); i++) {
		err = tracepoint_probe_register(ecn_egress_probes[i].tp, ecn_egress_probes[i].probe,
						NULL);
		if (err) {
			ecn_egress_unprobe(i);
			return err;
		}
	}
	return 0;
}

static inline int ecn_egress_register_synack(void)
{
	int err;

	for_each_kernel_tracepoint(ecn_egress_find_tracepoint, NULL);
	ecn_egress_on_demand = ecn_egress_probes[0].tp && ecn_egress_probes[1].tp;
	err = register_pernet_subsys(&ecn_egress_net_ops);
	if (err || !ecn_egress_on_demand)
		return err;
	err = ecn_egress_probe_all();
	if (err)
		unregister_pernet_subsys(&ecn_egress_net_ops);
	return err;
}

static inline void ecn_egress_unregister_synack(void)
{
	if (ecn_egress_on_demand)
		ecn_egress_unprobe(ARRAY_SIZE(ecn_egress_probes));
	unregister_pernet_subsys(&ecn_egress_net_ops);
}

/* Before the control is registered. May sleep. */
static inline int ecn_egress_register(void)
{
	return ecn_egress.synack_not_ect ? ecn_egress_register_synack() : 0;
}

/*
 * To be called after the control is unregistered, when no socket is attached or listens. Waits for
 * setsockopt(), which reads icsk_af_ops without the socket's lock and may be preempted before it
 * uses them.
 */
static inline void ecn_egress_unregister(void)
{
	if (ecn_egress.synack_not_ect)
		ecn_egress_unregister_synack();
	synchronize_rcu_tasks();
}

#endif /* _LOWQ_ECN_EGRESS_IMPL_H */
