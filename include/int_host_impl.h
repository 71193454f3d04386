/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-band telemetry at the two ends of a connection: a hook that takes messages out of
 * the arriving packets before connection tracking sees them; counters of accepted and
 * rejected messages in /proc/net; and the segments that carry messages.
 *
 * Each module that includes this file has its own copy of the state below.
 */
#ifndef _LOWQ_INT_HOST_IMPL_H
#define _LOWQ_INT_HOST_IMPL_H

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter_ipv4.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/addrconf.h>
#include <net/ip6_checksum.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/tcp.h>
#include <net/xfrm.h>

#include "cc_compat.h"
#include "cc_hook.h"
#include "cc_param.h"
#include "int_packet.h"

CC_PARAM(dscp, INT_DSCP_DEFAULT, 0, 63, 0644, "a DSCP has 6 bits",
	 "DSCP of probes and responses, 0 to 63 (draft 7.2)");

/* Counters of both ends; a module's own counters follow. */
enum {
	INT_COUNT_MALFORMED,	/* headers of a message, but no valid message */
	INT_COUNT_CHECKSUM,	/* wrong TCP checksum */
	INT_COUNT_NO_SOCKET,	/* no such connection on this host */
	INT_COUNT_SEQUENCE,	/* a sequence number that the peer would not have used */
	INT_COUNT_POLICY,	/* not as IPsec policy demands: in the clear, or by another state */
	INT_COUNT_SHARED,
};

#define INT_COUNTERS_MAX	24

/**
 * struct int_host - what a module does with messages
 * @on_demand:	the hook is only in namespaces that int_host_get() was called for
 * @name:	of the file in /proc/net
 * @counters:	names of the counters; the shared ones (INT_COUNT_...) first
 * @types:	bit mask of enum int_type: the messages that the module handles
 * @handle_message: called for each message with valid checksum and sequence number, as in softirq:
 *		softirqs are disabled. @sk is established, not locked, and valid during the call
 *		only. True if it handled the message: then that is no drop
 * @handle_reset: likewise for each RST that has the DSCP of messages, as a peer's stack answers a
 *		message with: true if it answers one of ours, which is dropped. NULL: none
 */
struct int_host {
	bool on_demand;
	const char *name;
	const char * const *counters;
	u32 types;
	bool (*handle_message)(struct net *net, struct sock *sk, const struct sk_buff *skb,
			       const struct int_segment *s, const struct int_msg *m);
	bool (*handle_reset)(struct net *net, const struct sock *sk, u32 ack);
};

/* Of int_host_register() */
static const struct int_host *int_host __read_mostly;

struct int_host_net {
	atomic64_t count[INT_COUNTERS_MAX];
	atomic64_t next_ns;	/* int_host_within_rate() */
	struct cc_hook hook;
};

static unsigned int int_host_net_id;

static inline struct int_host_net *int_host_net(struct net *net)
{
	return net_generic(net, int_host_net_id);
}

static inline void int_host_count(struct net *net, unsigned int counter)
{
	atomic64_inc(&int_host_net(net)->count[counter]);
}

/* A token bucket: @per_s per second, with bursts of up to 1/64 of that. */
static inline bool int_host_within_rate(struct net *net, u32 per_s)
{
	atomic64_t *next_ns = &int_host_net(net)->next_ns;
	s64 now = ktime_get_ns(), old = atomic64_read(next_ns), from;

	do {
		from = max_t(s64, old, now - NSEC_PER_SEC / 64);
		if (from > now)
			return false;
	} while (!atomic64_try_cmpxchg(next_ns, &old, from + NSEC_PER_SEC / per_s));
	return true;
}

/* The connection that a segment belongs to, with a reference; NULL if there is none. */
static inline struct sock *int_host_socket(struct net *net, const struct sk_buff *skb,
					   const struct int_segment *s)
{
	struct tcphdr _th;
	const struct tcphdr *th = skb_header_pointer(skb, s->th, sizeof(_th), &_th);
	struct sock *sk = NULL;

	if (!s->ipv6)
		sk = cc_lookup4(net, ip_hdr(skb)->saddr, th->source, ip_hdr(skb)->daddr,
				th->dest, skb->dev->ifindex);
#if IS_ENABLED(CONFIG_IPV6)
	else
		sk = cc_lookup6(net, &ipv6_hdr(skb)->saddr, th->source, &ipv6_hdr(skb)->daddr,
				th->dest, skb->dev->ifindex);
#endif
	if (!sk)
		return NULL;
	if (sk_fullsock(sk) && ((1 << READ_ONCE(sk->sk_state)) &
				(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 |
				 TCPF_CLOSE_WAIT)))
		return sk;
	sock_gen_put(sk);
	return NULL;
}

/*
 * A message ends just below its sender's SND.UNA, and SND.UNA is at most a window below our
 * RCV.NXT. The socket is not locked, so both may be a few segments old.
 */
static inline bool int_host_sequence_fits(const struct sock *sk, u32 seq, u32 len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 behind = READ_ONCE(tp->rcv_nxt) - (seq + len + 1);

	return behind <= max_t(u32, READ_ONCE(tp->window_clamp), 65535);
}

/* Is the packet for this host, not for a host behind it? */
static inline bool int_host_is_local(struct net *net, const struct sk_buff *skb,
				     const struct int_segment *s)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (s->ipv6)
		return ipv6_chk_addr(net, &ipv6_hdr(skb)->daddr, NULL, 0);
#endif
	return inet_addr_type_dev_table(net, skb->dev, ip_hdr(skb)->daddr) == RTN_LOCAL;
}

/* A RST with the DSCP of messages: TCP copies it from the packet that it answers. */
static unsigned int int_host_reset(struct sk_buff *skb, const struct nf_hook_state *state,
				   const struct int_segment *s)
{
	struct tcphdr _th;
	const struct tcphdr *th;
	struct sock *sk;
	bool ours;

	if (nf_checksum(skb, state->hook, s->th, IPPROTO_TCP, state->pf))
		return NF_ACCEPT;
	sk = int_host_socket(state->net, skb, s);
	if (!sk)
		return NF_ACCEPT;
	th = skb_header_pointer(skb, s->th, sizeof(_th), &_th);
	local_bh_disable();
	ours = int_host->handle_reset(state->net, sk, ntohl(th->ack_seq));
	local_bh_enable();
	sock_gen_put(sk);
	return ours ? NF_DROP : NF_ACCEPT;
}

/* A packet that NFQUEUE has held comes to the hook in a process, which a softirq may interrupt. */
static bool int_host_handle(struct net *net, struct sock *sk, const struct sk_buff *skb,
			    const struct int_segment *s, const struct int_msg *m)
{
	bool taken;

	local_bh_disable();
	taken = int_host->handle_message(net, sk, skb, s, m);
	local_bh_enable();
	return taken;
}

/*
 * A packet with the DSCP of messages. Not inlined: most packets have another one, and kernels that
 * initialise all variables would clear these for each of them.
 */
static noinline unsigned int int_host_message(struct sk_buff *skb,
					      const struct nf_hook_state *state, u8 ds)
{
	bool ipv6 = state->pf == NFPROTO_IPV6;
	struct int_segment s;
	struct int_msg m;
	struct tcphdr _th;
	const struct tcphdr *th;
	struct sock *sk;
	bool taken = false;
	u8 type;

	/* TCP takes no broadcast or multicast, either */
	if (skb->pkt_type != PACKET_HOST)
		return NF_ACCEPT;
	if (!int_segment_find(skb, skb_network_offset(skb),
			      ipv6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP), ds, &s))
		return NF_ACCEPT;
	if (s.flags == (TCPHDR_RST | TCPHDR_ACK) && int_host->handle_reset)
		return int_host_reset(skb, state, &s);
	if (s.flags != TCPHDR_PSH)
		return NF_ACCEPT;
	/* Packets that are not messages, or not for this host, go on to the stack. */
	type = int_segment_type(skb, &s);
	if (!type)
		int_host_count(state->net, INT_COUNT_MALFORMED);
	if (!(int_host->types & BIT(type)))
		return NF_ACCEPT;
	sk = int_host_socket(state->net, skb, &s);
	if (!sk) {
		/* a VRF calls the hook again, with its own device */
		if (netif_is_l3_slave(skb->dev))
			return NF_ACCEPT;
		int_host_count(state->net, INT_COUNT_NO_SOCKET);
		/*
		 * TCP would answer a probe by a RST: to a live client, if its connection is to a
		 * port that NAT translates.
		 */
		return type == INT_PROBE && int_host_is_local(state->net, skb, &s) ?
		       NF_DROP : NF_ACCEPT;
	}
	th = skb_header_pointer(skb, s.th, sizeof(_th), &_th);
	/* policy as in TCP; ESP's transport mode calls the hook again with what it has decrypted */
	if (nf_checksum(skb, state->hook, s.th, IPPROTO_TCP, state->pf))
		int_host_count(state->net, INT_COUNT_CHECKSUM);
	else if (!xfrm_policy_check(sk, XFRM_POLICY_IN, skb, ipv6 ? AF_INET6 : AF_INET))
		int_host_count(state->net, INT_COUNT_POLICY);
	else if (!int_host_sequence_fits(sk, ntohl(th->seq), s.len))
		int_host_count(state->net, INT_COUNT_SEQUENCE);
	else if (int_segment_read(skb, &s, &m))
		taken = int_host_handle(state->net, sk, skb, &s, &m);
	sock_gen_put(sk);
	if (!taken)
		return NF_DROP;
	/* handled: tools that watch drops must not see one */
	consume_skb(skb);
	return NF_STOLEN;
}

/*
 * Most packets are not messages: the family's own hook looks at one field of them. The stack has
 * checked that the IP header is there.
 */
static unsigned int int_host_ipv4_hook(void *priv, struct sk_buff *skb,
				       const struct nf_hook_state *state)
{
	u8 ds = READ_ONCE(dscp.value);

	if (likely(ip_hdr(skb)->tos >> 2 != ds))
		return NF_ACCEPT;
	return int_host_message(skb, state, ds);
}

static unsigned int int_host_ipv6_hook(void *priv, struct sk_buff *skb,
				       const struct nf_hook_state *state)
{
	u8 ds = READ_ONCE(dscp.value);

	if (likely(ipv6_get_dsfield(ipv6_hdr(skb)) >> 2 != ds))
		return NF_ACCEPT;
	return int_host_message(skb, state, ds);
}

static const struct nf_hook_ops int_host_hook_ops[] = {
	{
		.hook = int_host_ipv4_hook,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_RAW,
	}, {
		.hook = int_host_ipv6_hook,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_RAW,
	},
};

/*
 * A connection in @net needs the hook until int_host_put(). Until it is there the stack discards
 * messages: they have no ACK flag, and RSTs that answer them are outside of its window.
 */
static inline void int_host_get(struct net *net)
{
	cc_hook_get(&int_host_net(net)->hook);
}

static inline void int_host_put(struct net *net)
{
	cc_hook_put(&int_host_net(net)->hook);
}

static int int_host_show(struct seq_file *seq, void *v)
{
	struct int_host_net *n = int_host_net(seq_file_single_net(seq));
	unsigned int i;

	for (i = 0; int_host->counters[i]; i++)
		seq_printf(seq, "%s %lld\n", int_host->counters[i],
			   (long long)atomic64_read(&n->count[i]));
	return 0;
}

static int __net_init int_host_net_init(struct net *net)
{
	struct cc_hook *hook = &int_host_net(net)->hook;
	int err = 0;

	cc_hook_init(hook, net, int_host_hook_ops, ARRAY_SIZE(int_host_hook_ops));
	if (!proc_create_net_single(int_host->name, 0444, net->proc_net, int_host_show, NULL))
		return -ENOMEM;
	if (!int_host->on_demand)
		err = cc_hook_register(hook);
	if (err)
		remove_proc_entry(int_host->name, net->proc_net);
	return err;
}

/* Before the grace period: a hook that is still running uses counters that exit() frees. */
static void __net_exit int_host_net_pre_exit(struct net *net)
{
	cc_hook_leave(&int_host_net(net)->hook);
}

static void __net_exit int_host_net_exit(struct net *net)
{
	remove_proc_entry(int_host->name, net->proc_net);
}

static struct pernet_operations int_host_net_ops = {
	.init = int_host_net_init,
	.pre_exit = int_host_net_pre_exit,
	.exit = int_host_net_exit,
	.id = &int_host_net_id,
	.size = sizeof(struct int_host_net),
};

/* @host handles this host's messages from now on, in all namespaces. 0, or an error */
static int __init int_host_register(const struct int_host *host)
{
	int_host = host;
	return register_pernet_subsys(&int_host_net_ops);
}

static void int_host_unregister(void)
{
	unregister_pernet_subsys(&int_host_net_ops);
}

/*
 * A segment with @m for the flow from @sport to @dport whose SND.UNA is @una. Its flags and
 * its sequence number each keep any stack from taking data from it. It has no IP header and
 * no checksum yet, is not tracked by conntrack, and is never split or merged. NULL if there
 * is no memory.
 */
static inline struct sk_buff *int_host_segment(__be16 sport, __be16 dport, u32 una,
					       const struct int_msg *m)
{
	/* of IP with options, and below; the stack makes more room where it has to */
	const u32 headers = MAX_HEADER + 60;
	u32 len = int_length(m->room);
	struct sk_buff *skb = alloc_skb(headers + sizeof(struct tcphdr) + len,
					GFP_ATOMIC | __GFP_NOWARN);
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reserve(skb, headers);
	th = skb_put_zero(skb, sizeof(*th));
	skb_reset_transport_header(skb);
	th->source = sport;
	th->dest = dport;
	th->seq = htonl(una - len - 1);
	th->doff = sizeof(*th) / 4;
	th->psh = 1;
	th->window = htons(65535);	/* monitoring tools report a window of 0 as a fault */
	int_build(skb_put(skb, len), m);
	skb_set_nfct(skb, IP_CT_UNTRACKED);
	skb->ip_summed = CHECKSUM_NONE;
	return skb;
}

static inline void int_host_checksum4(struct sk_buff *skb, __be32 saddr, __be32 daddr)
{
	struct tcphdr *th = tcp_hdr(skb);

	th->check = tcp_v4_check(skb->len, saddr, daddr, csum_partial(th, skb->len, 0));
}

#if IS_ENABLED(CONFIG_IPV6)
static inline void int_host_checksum6(struct sk_buff *skb, const struct in6_addr *saddr,
				      const struct in6_addr *daddr)
{
	struct tcphdr *th = tcp_hdr(skb);

	th->check = tcp_v6_check(skb->len, saddr, daddr, csum_partial(th, skb->len, 0));
}
#endif

#endif /* _LOWQ_INT_HOST_IMPL_H */
