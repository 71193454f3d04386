// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp: probes (draft-miao-rtgwg-hpccplus-00, 6.2.1.2 and 7.2): when the next one is due, what
 * the sender remembers of it, and how it is sent.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <net/ipv6.h>
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_core.h>
#include <net/netfilter/nf_conntrack_zones.h>
#endif

#include "hpccpp.h"

CC_PARAM_SHARED(hpccpp_probe_rtts, probe_rtts, 1, 1, 16, 0644, "1 is once per RTT",
		"RTTs between probes, 1 to 16 (draft 6.2.1.2)");
CC_PARAM(probe_packets, 8, 0, 64, 0644, "0 is once per RTT, however few packets that is",
	 "full packets between probes while U is near eta, 0 to 64; at most 8 RTTs");
CC_PARAM(probe_room, INT_HOPS_DEFAULT, 1, INT_HOPS_MAX, 0644, "nHop of 15 means 15 or more",
	 "nodes on the path that a probe has room for, 1 to 14 (draft 6.1)");
static_assert(!INT_FORMAT_OLD);
CC_PARAM(format, 0, 0, INT_FORMATS - 1, 0644, "0 is figure 4, 1 IFA 2.0, 2 INT-MD",
	 "of probes: 0 the draft's own, 1 IFA 2.0, 2 INT-MD 2.1 (draft 6.1.1 and 6.1.3)");
CC_PARAM(receiver_based, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "let the receiver compute the window (draft 6.3.2)");

/* Is the receiver to compute the window? */
bool hpccpp_receiver_based(void)
{
	return READ_ONCE(receiver_based.value);
}

/* In which format does a connection begin? A host without IFA's protocol would see no answer. */
u8 hpccpp_begins_with(void)
{
	u8 first = READ_ONCE(format.value);

	return first == INT_FORMAT_IFA && !int_host_has_ifa() ? INT_FORMAT_OLD : first;
}

/*
 * Time until the next probe: T, or longer where W is a few packets; not so long that a
 * counter in the records could wrap; never so short that more probes are in flight than
 * the sender remembers.
 */
u64 hpccpp_probe_interval(const struct sock *sk)
{
	const struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	u64 least = f->telemetry ? hpccpp_mss_q8(sk) * READ_ONCE(probe_packets.value) : 0;
	u64 interval = hpccpp_probe_ns(&f->model, hpccpp_eta(), hpccpp_base_rtt_ns(f), least);

	interval = max_t(u64, interval, hpccpp_min_rtt_ns(f)) * READ_ONCE(hpccpp_probe_rtts.value);
	interval = hpccpp_comparable(f, interval);
	return max(interval, hpccpp_srtt_ns(sk) / (HPCCPP_PROBES_KEPT / 2));
}

static bool hpccpp_is_v4(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return sk->sk_family == AF_INET || ipv6_addr_v4mapped(&sk->sk_v6_daddr);
#else
	return true;
#endif
}

/*
 * By the route that the data takes, the socket's. If it has expired, the next data looks
 * up a new one: __ip_queue_xmit() would do so with the probe's DSCP.
 */
static int hpccpp_xmit4(struct sock *sk, struct sk_buff *skb, u8 tos)
{
	struct inet_sock *inet = inet_sk(sk);

	if (!__sk_dst_check(sk, 0)) {
		kfree_skb(skb);
		return -EHOSTUNREACH;
	}
	int_host_checksum4(skb, inet->inet_saddr, inet->inet_daddr);
	return __ip_queue_xmit(sk, skb, &inet->cork.fl, tos);
}

#if IS_ENABLED(CONFIG_IPV6)
/* Likewise. */
static int hpccpp_xmit6(struct sock *sk, struct sk_buff *skb, u8 tclass)
{
	struct ipv6_pinfo *np = inet6_sk(sk);
	struct flowi6 fl6 = {
		.flowi6_proto = IPPROTO_TCP,
		.saddr = np->saddr,
		.daddr = sk->sk_v6_daddr,
		.flowlabel = np->flow_label,
		.flowi6_oif = sk->sk_bound_dev_if,
		.fl6_sport = inet_sk(sk)->inet_sport,
		.fl6_dport = inet_sk(sk)->inet_dport,
	};
	struct dst_entry *dst = __sk_dst_check(sk, np->dst_cookie);
	int err;

	if (!dst) {
		kfree_skb(skb);
		return -EHOSTUNREACH;
	}
	int_host_checksum6(skb, &np->saddr, &sk->sk_v6_daddr);
	rcu_read_lock();
	skb_dst_set_noref(skb, dst);
	err = ip6_xmit(sk, skb, &fl6, sk->sk_mark, rcu_dereference(np->opt), tclass,
		       sk->sk_priority);
	rcu_read_unlock();
	return err;
}
#endif

/* With IFA's headers. Not by the stack's functions: these write the socket's own protocol. */
static int hpccpp_xmit_ifa(struct sock *sk, struct sk_buff *skb, unsigned int nodes)
{
	struct int_way way = {
		.ipv6 = !hpccpp_is_v4(sk), .format = INT_FORMAT_IFA, .ds = int_host_dscp() << 2,
	};

	ifa_build(skb_transport_header(skb), int_host_md(skb, INT_FORMAT_IFA),
		  nodes * IFA_MD_WORDS, IFA_HOP_LIMIT);
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
#if IS_ENABLED(CONFIG_IPV6)
	if (way.ipv6) {
		way.ds |= inet6_sk(sk)->tclass & INET_ECN_MASK;
		way.saddr6 = inet6_sk(sk)->saddr;
		way.daddr6 = sk->sk_v6_daddr;
		return int_host_send(sk, skb, &way);
	}
#endif
	way.ds |= inet_sk(sk)->tos & INET_ECN_MASK;
	way.saddr4 = inet_sk(sk)->inet_saddr;
	way.daddr4 = inet_sk(sk)->inet_daddr;
	return int_host_send(sk, skb, &way);
}

/* Gives the next probe its id, and remembers it together with W and the bytes in flight. */
static void hpccpp_fill_probe(struct sock *sk, struct int_msg *m, u64 now)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	const struct hpccpp_probe *previous;
	struct hpccpp_probe *probe;

	m->id = f->sent_id + 1;
	m->cookie = hpccpp_cookie(f, m->id);
	m->room = READ_ONCE(probe_room.value);
	hpccpp_integrate_window(sk, f, now);
	probe = &f->probe[m->id % HPCCPP_PROBES_KEPT];
	probe->sent_ns = now;
	probe->integral = f->integral;
	/* Two packets may have arrived already: their ACK is delayed. */
	probe->inflight = fp_sub(tcp_packets_in_flight(tcp_sk(sk)), 2) * hpccpp_mss_q8(sk);
	if (READ_ONCE(receiver_based.value)) {
		previous = &f->probe[(m->id - 1) % HPCCPP_PROBES_KEPT];
		m->flags = INT_FLAG_RECEIVER;
		m->options = fp_min(hpccpp_window_between(previous, probe) >> INT_OPTION_W_SHIFT,
				    INT_OPTION_MAX);
	}
	f->probe_ns = now;
	f->waits = false;
	f->unanswered++;
	spin_lock_bh(&f->lock);
	f->sent_id = m->id;
	probe->cookie = m->cookie;
	probe->end = tcp_sk(sk)->snd_una - 1;
	spin_unlock_bh(&f->lock);
}

/*
 * Does NAT on this host translate the connection? Conntrack does not know probes, and they would
 * leave with addresses that the peer does not know. Asked once: a connection's translation does
 * not change. Conntrack may be a module, and need not be loaded.
 */
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
static bool hpccpp_has_post_routing(const struct sock *sk)
{
	const struct net *net = sock_net(sk);

	return rcu_access_pointer(net->nf.hooks_ipv4[NF_INET_POST_ROUTING]) ||
	       rcu_access_pointer(net->nf.hooks_ipv6[NF_INET_POST_ROUTING]);
}

bool hpccpp_is_translated(const struct sock *sk)
{
	struct nf_conntrack_tuple_hash *(*find)(struct net *net,
						const struct nf_conntrack_zone *zone,
						const struct nf_conntrack_tuple *tuple);
	const struct inet_sock *inet = inet_sk(sk);
	struct nf_conntrack_tuple_hash *h;
	struct nf_conntrack_tuple tuple = {
		.src.u.tcp.port = inet->inet_sport,
		.dst.u.tcp.port = inet->inet_dport,
		.dst.protonum = IPPROTO_TCP,
	};
	bool translated = false;

	/*
	 * The look-up of a symbol takes thousands of instructions. Where conntrack is active it has
	 * hooks in POST_ROUTING.
	 */
	if (!rcu_access_pointer(nf_ct_hook) || !hpccpp_has_post_routing(sk))
		return false;
	find = symbol_get(nf_conntrack_find_get);
	if (!find)
		return false;
	if (hpccpp_is_v4(sk)) {
		tuple.src.l3num = AF_INET;
		tuple.src.u3.ip = inet->inet_saddr;
		tuple.dst.u3.ip = inet->inet_daddr;
#if IS_ENABLED(CONFIG_IPV6)
	} else {
		tuple.src.l3num = AF_INET6;
		tuple.src.u3.in6 = inet6_sk(sk)->saddr;
		tuple.dst.u3.in6 = sk->sk_v6_daddr;
#endif
	}
	h = find(sock_net(sk), &nf_ct_zone_dflt, &tuple);
	if (h) {
		translated = nf_ct_tuplehash_to_ctrack(h)->status & IPS_NAT_MASK;
		nf_conntrack_put(&nf_ct_tuplehash_to_ctrack(h)->ct_general);
	}
	symbol_put(nf_conntrack_find_get);
	return translated;
}
#else
bool hpccpp_is_translated(const struct sock *sk)
{
	return false;
}
#endif

/* The socket is locked by its user or by softirq. */
void hpccpp_send_probe(struct sock *sk, u64 now)
{
	struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	struct int_msg m = { .type = INT_PROBE };
	u8 ds = int_host_dscp() << 2;
	unsigned int nodes;
	struct sk_buff *skb;
	u8 *p;
	int err;

	if (READ_ONCE(f->refused))
		return;
	hpccpp_fill_probe(sk, &m, now);
	nodes = m.room;
	if (f->format)
		m.room = 0;	/* the records are not in the message */
	skb = int_host_segment(sk, f->format, tcp_sk(sk)->snd_una, int_length(m.room), 0, &p);
	if (!skb) {
		hpccpp_count(sk, HPCCPP_COUNT_UNSENT);
		return;
	}
	int_build(p, &m);
	if (f->format == INT_FORMAT_MD)
		md_build(int_host_md(skb, f->format), nodes);
	/* Owner, hash and ECN field are the data's, so that the queues are the same. */
	skb_set_owner_w(skb, sk);
	skb_set_hash_from_sk(skb, sk);
	if (f->format == INT_FORMAT_IFA)
		err = hpccpp_xmit_ifa(sk, skb, nodes);
#if IS_ENABLED(CONFIG_IPV6)
	else if (!hpccpp_is_v4(sk))
		err = hpccpp_xmit6(sk, skb, ds | (inet6_sk(sk)->tclass & INET_ECN_MASK));
	else
#endif
		err = hpccpp_xmit4(sk, skb, ds | (inet_sk(sk)->tos & INET_ECN_MASK));
	hpccpp_count(sk, err ? HPCCPP_COUNT_UNSENT : HPCCPP_COUNT_PROBES);
}
