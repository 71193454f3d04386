// SPDX-License-Identifier: GPL-2.0
/*
 * int_host - telemetry messages of HPCC++ that arrive at a host.
 *
 *	arriving packet -> special DSCP? -> a message of an established connection?
 *		-> probe: int_reflector; response: tcp_hpccpp
 *
 * Source: draft-miao-rtgwg-hpccplus-00, 6.1.1 and 7.2. Two formats. IFA (int_ifa.h) is an IP
 * protocol of its own: messages come as any transport's packets do, after routing, its filters, the
 * firewall's rules and IPsec policy. What TCP itself checks of data is checked here, too
 * (int_host_permitted()).
 *
 * The old format (int_wire.h) is a segment of the connection that TCP would discard. For it there
 * are netfilter hooks: in PRE_ROUTING messages are exempted from connection tracking, which would
 * call them invalid; last in LOCAL_IN they are taken. Every packet of a namespace with hooks pays
 * some 100 instructions for them. They are where a connection of tcp_hpccpp is, for responses, and
 * where int_reflector answers the old format.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/filter.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/addrconf.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/protocol.h>
#include <net/route.h>
#include <net/xfrm.h>

#include "cc_compat.h"
#include "cc_hook.h"
#include "cc_param.h"
#include "int_host.h"

CC_PARAM(dscp, INT_DSCP_DEFAULT, 0, 63, 0644, "a DSCP has 6 bits",
	 "DSCP of probes and responses, 0 to 63 (draft 7.2)");

CC_PARAM(cell, IFA_CELL_DEFAULT, 1, 65535, 0644, "a cell has bytes",
	 "bytes of a cell, in which switches count their queues, 1 to 65535 (draft 6.1.1)");
CC_PARAM(int_mbps, 0, 0, 1600000, 0644, "0 is unknown",
	 "INT: rate of the path's ports in Mb/s, which that format does not carry (draft 6.1.3)");

/* By code; those that a list does not reach are unknown */
static u32 ifa_speeds[IFA_CODES] = { IFA_MBPS };

static int ifa_speeds_set(const char *val, const struct kernel_param *kp)
{
	u32 mbps[IFA_CODES] = {};
	const char *at = val;
	unsigned int i = 0;
	int used;

	do {
		used = 0;
		if (i == IFA_CODES || sscanf(at, "%7u%n", &mbps[i], &used) < 1 ||
		    mbps[i] > IFA_MBPS_MAX || !strchr(",\n", at[used])) {
			pr_err("%s=%.*s refused: takes up to %u rates of 0 to %u, such as 10000,25000; stays as it was\n",
			       kp->name, (int)strcspn(val, "\n"), val, IFA_CODES, IFA_MBPS_MAX);
			return -EINVAL;
		}
		i++;
		at += used;
	} while (*at++ == ',');
	for (i = 0; i < IFA_CODES; i++)
		WRITE_ONCE(ifa_speeds[i], mbps[i]);
	return 0;
}

static int ifa_speeds_get(char *buffer, const struct kernel_param *kp)
{
	unsigned int i, n = IFA_CODES;
	int len = 0;

	while (n > 1 && !ifa_speeds[n - 1])
		n--;
	for (i = 0; i < n; i++)
		len += sysfs_emit_at(buffer, len, "%u%c", ifa_speeds[i], i == n - 1 ? '\n' : ',');
	return len;
}

static const struct kernel_param_ops ifa_speeds_ops = {
	.set = ifa_speeds_set,
	.get = ifa_speeds_get,
};

module_param_cb(ifa_speeds, &ifa_speeds_ops, NULL, 0644);
MODULE_PARM_DESC(ifa_speeds,
		 "IFA: the rates in Mb/s that codes 0 to 15 stand for; 0 is unknown (draft 6.1.1) (default "
		 __stringify(IFA_MBPS) ")");

/* By enum int_type */
static const struct int_handler __rcu *int_handlers[INT_WINDOW + 1];

static unsigned int int_host_net_id;

static struct cc_hook *int_host_hook(struct net *net)
{
	return net_generic(net, int_host_net_id);
}

u8 int_host_dscp(void)
{
	return READ_ONCE(dscp.value);
}
EXPORT_SYMBOL_GPL(int_host_dscp);

/* --- from a packet to a connection ------------------------------------------------- */

/* The connection that a segment belongs to, with a reference; NULL if there is none. */
static struct sock *int_host_socket(struct net *net, const struct sk_buff *skb,
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
static bool int_host_sequence_fits(const struct sock *sk, u32 seq, u32 len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 behind = READ_ONCE(tp->rcv_nxt) - (seq + len + 1);

	return behind <= max_t(u32, READ_ONCE(tp->window_clamp), 65535);
}

/* Is the packet for this host, not for a host behind it? */
static bool int_host_is_local(struct net *net, const struct sk_buff *skb,
			      const struct int_segment *s)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (s->ipv6)
		return ipv6_chk_addr(net, &ipv6_hdr(skb)->daddr, NULL, 0);
#endif
	return inet_addr_type_dev_table(net, skb->dev, ip_hdr(skb)->daddr) == RTN_LOCAL;
}

/* --- from a connection to a handler ------------------------------------------------ */

/* Does the connection sign its segments? Messages have no options, and so no signature. */
static bool int_host_signed(const struct sock *sk)
{
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tcp_sk(sk)->ao_info))
		return true;
#endif
#ifdef CONFIG_TCP_MD5SIG
	return rcu_access_pointer(tcp_sk(sk)->md5sig_info);
#else
	return false;
#endif
}

/* Has the packet crossed more routers than the program allows (GTSM, RFC 5082)? */
static bool int_host_too_far(const struct sock *sk, const struct sk_buff *skb, bool ipv6)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (ipv6)
		return sk->sk_family == AF_INET6 &&
		       ipv6_hdr(skb)->hop_limit < READ_ONCE(inet6_sk(sk)->min_hopcount);
#endif
	return ip_hdr(skb)->ttl < READ_ONCE(inet_sk(sk)->min_ttl);
}

/* The filters of the socket, its cgroup and security modules; they see the segment, as from TCP. */
static bool int_host_filtered(struct sock *sk, struct sk_buff *skb, const struct int_segment *s)
{
	bool filtered;

	__skb_pull(skb, s->th);
	/* a filter may also cut the segment */
	filtered = sk_filter(sk, skb) || skb->len < s->payload - s->th + s->len;
	__skb_push(skb, s->th);
	return filtered;
}

/* What TCP checks of a connection's segments before it looks at their flags */
static bool int_host_permitted(struct sock *sk, struct sk_buff *skb, const struct int_segment *s)
{
	/* ESP's transport mode calls the hook again with what it has decrypted */
	return !int_host_too_far(sk, skb, s->ipv6) && !int_host_signed(sk) &&
	       xfrm_policy_check(sk, XFRM_POLICY_IN, skb, s->ipv6 ? AF_INET6 : AF_INET) &&
	       !int_host_filtered(sk, skb, s);
}

/*
 * Is TCP's checksum wrong? With IFA's headers it is that of the segment without them, and no device
 * or hook has looked at it.
 */
static bool int_host_mangled(struct sk_buff *skb, const struct int_segment *s, u8 pf)
{
	const unsigned int len = sizeof(struct tcphdr) + s->len;
	__wsum sum;

	if (s->format != INT_FORMAT_IFA)
		return nf_checksum(skb, NF_INET_LOCAL_IN, s->th, IPPROTO_TCP, pf);
	sum = csum_partial(skb->data + s->th, sizeof(struct tcphdr), 0);
	sum = csum_partial(skb->data + s->payload, s->len, sum);
#if IS_ENABLED(CONFIG_IPV6)
	if (s->ipv6)
		return csum_ipv6_magic(&ipv6_hdr(skb)->saddr, &ipv6_hdr(skb)->daddr, len,
				       IPPROTO_TCP, sum);
#endif
	return csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, len, IPPROTO_TCP, sum);
}

/* A RST with the DSCP of messages: TCP copies it from the packet that it answers. */
static unsigned int int_host_reset(struct net *net, struct sk_buff *skb, u8 pf,
				   const struct int_segment *s)
{
	const struct int_handler *h = rcu_dereference(int_handlers[INT_RESPONSE]);
	struct tcphdr _th;
	const struct tcphdr *th;
	struct sock *sk;
	bool ours;

	if (!h || !h->handle_reset ||
	    nf_checksum(skb, NF_INET_LOCAL_IN, s->th, IPPROTO_TCP, pf))
		return NF_ACCEPT;
	sk = int_host_socket(net, skb, s);
	if (!sk)
		return NF_ACCEPT;
	th = skb_header_pointer(skb, s->th, sizeof(_th), &_th);
	local_bh_disable();
	ours = h->handle_reset(sk, ntohl(th->ack_seq));
	local_bh_enable();
	sock_gen_put(sk);
	return ours ? NF_DROP : NF_ACCEPT;
}

/* Packets that NFQUEUE has held, and those of a socket's backlog, come in a process. */
static bool int_host_handle(const struct int_handler *h, struct sock *sk,
			    const struct sk_buff *skb, const struct int_segment *s, const u8 *p)
{
	bool taken;

	local_bh_disable();
	taken = h->handle_message(sk, skb, s, p);
	local_bh_enable();
	return taken;
}

static void int_host_malformed(struct net *net)
{
	const struct int_handler *h, *other = NULL;
	unsigned int type;

	for (type = INT_PROBE; type <= INT_WINDOW; type++) {
		h = rcu_dereference(int_handlers[type]);
		if (h && h != other)
			int_count(net, *h->net_id, INT_COUNT_MALFORMED);
		other = h;
	}
}

/*
 * Has the headers of a message to this host, or of a RST that may answer one. TCP takes no
 * broadcast or multicast, either.
 */
static bool int_host_shaped(struct sk_buff *skb, u8 pf, u8 ds, struct int_segment *s)
{
	return skb->pkt_type == PACKET_HOST &&
	       int_segment_find(skb, skb_network_offset(skb),
				pf == NFPROTO_IPV6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP), ds, s) &&
	       (s->flags == TCPHDR_PSH || (s->flags == (TCPHDR_RST | TCPHDR_ACK) && !s->md));
}

/*
 * A packet with the DSCP of messages that policy has let pass, with RCU's read lock: NF_STOLEN, and
 * still the caller's, if it was handled. @ifa: it came as IFA's protocol
 */
static noinline unsigned int int_host_message(struct net *net, struct sk_buff *skb, u8 pf, u8 ds,
					      bool ifa)
{
	const struct int_handler *h;
	struct int_segment s;
	u8 buf[INT_MSG_LEN_MAX];
	bool taken = false;
	struct tcphdr _th;
	const struct tcphdr *th;
	struct sock *sk;
	const u8 *p;
	u8 type;

	if (!int_host_shaped(skb, pf, ds, &s))
		return NF_ACCEPT;
	if ((ifa ? s.format != INT_FORMAT_IFA : s.format == INT_FORMAT_IFA) ||
	    (s.md && skb_linearize(skb)))
		return NF_ACCEPT;
	if (s.flags != TCPHDR_PSH)
		return int_host_reset(net, skb, pf, &s);
	/* Packets that are not messages go on to the stack. */
	p = int_segment_message(skb, &s, buf);
	if (!p) {
		int_host_malformed(net);
		return NF_ACCEPT;
	}
	type = p[INT_TYPE_OFFSET];
	h = rcu_dereference(int_handlers[type]);
	if (!h)
		return NF_ACCEPT;
	sk = int_host_socket(net, skb, &s);
	if (!sk) {
		int_count(net, *h->net_id, INT_COUNT_NO_SOCKET);
		/*
		 * TCP would answer a probe by a RST: to a live client, if its connection is to a
		 * port that NAT translates.
		 */
		return type == INT_PROBE ? NF_DROP : NF_ACCEPT;
	}
	th = skb_header_pointer(skb, s.th, sizeof(_th), &_th);
	if (int_host_mangled(skb, &s, pf))
		int_count(net, *h->net_id, INT_COUNT_CHECKSUM);
	else if (!int_host_sequence_fits(sk, ntohl(th->seq), s.len))
		int_count(net, *h->net_id, INT_COUNT_SEQUENCE);
	else if (!int_host_permitted(sk, skb, &s))
		int_count(net, *h->net_id, INT_COUNT_POLICY);
	else
		taken = int_host_handle(h, sk, skb, &s, p);
	sock_gen_put(sk);
	return taken ? NF_STOLEN : NF_DROP;
}

/* --- from the network to a packet ---------------------------------------------------- */

/*
 * Most packets are not messages: the hooks look at one field of them. The stack has checked that
 * the IP header is there.
 */
static bool int_host_marked(const struct sk_buff *skb, u8 pf, u8 ds)
{
	if (pf == NFPROTO_IPV6)
		return unlikely(ipv6_get_dsfield(ipv6_hdr(skb)) >> 2 == ds);
	return unlikely(ip_hdr(skb)->tos >> 2 == ds);
}

/* Not inlined: kernels that initialise all variables would clear @s for each packet. */
static noinline void int_host_untrack(struct net *net, struct sk_buff *skb, u8 pf, u8 ds)
{
	struct int_segment s;

	if (!skb_nfct(skb) && int_host_shaped(skb, pf, ds, &s) && int_host_is_local(net, skb, &s))
		skb_set_nfct(skb, IP_CT_UNTRACKED);
}

static unsigned int int_host_pre_routing(void *priv, struct sk_buff *skb,
					 const struct nf_hook_state *state)
{
	u8 ds = READ_ONCE(dscp.value);

	if (int_host_marked(skb, state->pf, ds))
		int_host_untrack(state->net, skb, state->pf, ds);
	return NF_ACCEPT;
}

static unsigned int int_host_local_in(void *priv, struct sk_buff *skb,
				      const struct nf_hook_state *state)
{
	u8 ds = READ_ONCE(dscp.value);
	unsigned int verdict;

	if (!int_host_marked(skb, state->pf, ds))
		return NF_ACCEPT;
	verdict = int_host_message(state->net, skb, state->pf, ds, false);
	/* handled: tools that watch drops must not see one */
	if (verdict == NF_STOLEN)
		consume_skb(skb);
	return verdict;
}

static const struct nf_hook_ops int_host_hook_ops[] = {
	{
		.hook = int_host_pre_routing,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_RAW,
	}, {
		.hook = int_host_local_in,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = int_host_pre_routing,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_RAW,
	}, {
		.hook = int_host_local_in,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	},
};

/* --- IFA's protocol -------------------------------------------------------------------- */

/*
 * A packet of protocol 253 to this host: routing, its filters, the firewall and IPsec policy have
 * let it pass. Consumes it.
 */
static int int_host_receive_ifa(struct sk_buff *skb, u8 pf)
{
	struct net *net = dev_net(skb->dev);
	u8 ds = int_host_dscp();
	unsigned int verdict = NF_ACCEPT;

	if (skb->len <= IFA_HEADER_LEN + sizeof(struct tcphdr) + IFA_MD_HEADER_LEN + 255 * 4 +
			INT_MSG_LEN_MAX && !skb_linearize(skb)) {
		__skb_push(skb, -skb_network_offset(skb));
		rcu_read_lock();
		verdict = int_host_message(net, skb, pf, ds, true);
		rcu_read_unlock();
	}
	if (verdict == NF_STOLEN)
		consume_skb(skb);
	else
		kfree_skb(skb);
	return 0;
}

static int int_host_ifa4(struct sk_buff *skb)
{
	return int_host_receive_ifa(skb, NFPROTO_IPV4);
}

static const struct net_protocol int_host_protocol = {
	.handler = int_host_ifa4,
};

#if IS_ENABLED(CONFIG_IPV6)
static int int_host_ifa6(struct sk_buff *skb)
{
	return int_host_receive_ifa(skb, NFPROTO_IPV6);
}

static const struct inet6_protocol int_host_protocol6 = {
	.handler = int_host_ifa6,
	.flags = INET6_PROTO_FINAL,
};
#endif

static bool int_host_ifa_ours __ro_after_init;

bool int_host_has_ifa(void)
{
	return int_host_ifa_ours;
}
EXPORT_SYMBOL_GPL(int_host_has_ifa);

/* Another module may have the number, which is for experiments: then there is no IFA. */
static void __init int_host_ifa_init(void)
{
	if (inet_add_protocol(&int_host_protocol, IFA_PROTOCOL))
		goto taken;
#if IS_ENABLED(CONFIG_IPV6)
	if (inet6_add_protocol(&int_host_protocol6, IFA_PROTOCOL)) {
		inet_del_protocol(&int_host_protocol, IFA_PROTOCOL);
		goto taken;
	}
#endif
	int_host_ifa_ours = true;
	return;
taken:
	pr_warn("IP protocol %u is another module's: no telemetry by IFA\n", IFA_PROTOCOL);
}

static void __exit int_host_ifa_exit(void)
{
	if (!int_host_ifa_ours)
		return;
#if IS_ENABLED(CONFIG_IPV6)
	inet6_del_protocol(&int_host_protocol6, IFA_PROTOCOL);
#endif
	inet_del_protocol(&int_host_protocol, IFA_PROTOCOL);
}

void int_host_parse(struct int_msg *m, const struct sk_buff *skb, const struct int_segment *s,
		    const u8 *p, unsigned int taken)
{
	int_parse(m, p, s->len);
	if (s->format == INT_FORMAT_IFA)
		ifa_read(m, skb->data + s->md, taken, READ_ONCE(cell.value), ifa_speeds);
	else if (s->format == INT_FORMAT_MD)
		md_read(m, skb->data + s->md, taken, READ_ONCE(cell.value),
			READ_ONCE(int_mbps.value));
}
EXPORT_SYMBOL_GPL(int_host_parse);

/* --- messages that leave ---------------------------------------------------------------- */

struct sk_buff *int_host_segment(const struct sock *sk, u8 format, u32 una, u32 len, u32 stack,
				 u8 **p)
{
	const u32 around = format == INT_FORMAT_IFA ? IFA_HEADER_LEN : 0;
	const u32 before = format == INT_FORMAT_IFA ? IFA_MD_HEADER_LEN + stack :
			   format == INT_FORMAT_MD ? MD_HEADER_LEN + stack : 0;
	/* of IP with options, and below; the stack makes more room where it has to */
	const u32 headers = MAX_HEADER + 60;
	struct sk_buff *skb = alloc_skb(headers + around + sizeof(struct tcphdr) + before + len,
					GFP_ATOMIC | __GFP_NOWARN);
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reserve(skb, headers);
	skb_reset_transport_header(skb);
	skb_put(skb, around);
	th = skb_put_zero(skb, sizeof(*th));
	th->source = inet_sk(sk)->inet_sport;
	th->dest = inet_sk(sk)->inet_dport;
	th->seq = htonl(una - before - len - 1);
	th->doff = sizeof(*th) / 4;
	th->psh = 1;
	th->window = htons(65535);	/* monitoring tools report a window of 0 as a fault */
	skb_put(skb, before);
	*p = skb_put(skb, len);
	skb_set_nfct(skb, IP_CT_UNTRACKED);
	if (format == INT_FORMAT_IFA)
		return skb;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	return skb;
}
EXPORT_SYMBOL_GPL(int_host_segment);

/* With IFA's headers: no device can sum up what is on both sides of the metadata. */
static void int_host_checksum_ifa(struct sk_buff *skb, const struct int_way *way)
{
	struct tcphdr *th = (struct tcphdr *)(skb_transport_header(skb) + IFA_HEADER_LEN);
	const u8 *md_header = int_host_md(skb, INT_FORMAT_IFA);
	const u8 *message = md_header + IFA_MD_HEADER_LEN + ifa_stack_len(md_header);
	unsigned int len = skb_tail_pointer(skb) - message;
	__wsum sum = csum_partial(th, sizeof(*th), 0);

	sum = csum_partial(message, len, sum);
	len += sizeof(*th);
#if IS_ENABLED(CONFIG_IPV6)
	if (way->ipv6) {
		th->check = csum_ipv6_magic(&way->saddr6, &way->daddr6, len, IPPROTO_TCP, sum);
		return;
	}
#endif
	th->check = csum_tcpudp_magic(way->saddr4, way->daddr4, len, IPPROTO_TCP, sum);
}

/*
 * The route by which @sk sends its own packets, which depends on IPsec policy, too, or NULL. The
 * socket is not locked: a cookie of another route only means a look-up.
 */
static struct dst_entry *int_host_route(struct sock *sk, u32 cookie)
{
	struct dst_entry *dst = sk_dst_get(sk);

	if (!dst || dst_check(dst, cookie))
		return dst;
	dst_release(dst);
	return NULL;
}

/*
 * @skb is to leave by @dst, whose reference it takes over. 0, or an error if @dst is one, or
 * discards packets and reports success: where IPsec lacks a key, a look-up returns such a route.
 */
static int int_host_set_route(struct sk_buff *skb, struct dst_entry *dst)
{
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	skb_dst_set(skb, dst);
	return dst->output == dst_discard_out ? -EHOSTUNREACH : 0;
}

static int int_host_send4(struct sock *sk, struct sk_buff *skb, const struct int_way *way)
{
	struct net *net = sock_net(sk);
	struct dst_entry *dst = int_host_route(sk, 0);
	struct flowi4 fl4;
	struct rtable *rt;
	struct iphdr *iph;
	int err;

	if (!dst) {
		rt = ip_route_output_ports(net, &fl4, sk, way->daddr4, way->saddr4,
					   inet_sk(sk)->inet_dport, inet_sk(sk)->inet_sport,
					   IPPROTO_TCP, 0, READ_ONCE(sk->sk_bound_dev_if));
		dst = IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
	}
	err = int_host_set_route(skb, dst);
	if (err) {
		kfree_skb(skb);
		return err;
	}
	if (way->format != INT_FORMAT_IFA)
		int_host_checksum4(skb, way->saddr4, way->daddr4);
	iph = skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	memset(iph, 0, sizeof(*iph));
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = way->ds;
	iph->frag_off = htons(IP_DF);
	iph->ttl = ip4_dst_hoplimit(dst);
	iph->protocol = way->format == INT_FORMAT_IFA ? IFA_PROTOCOL : IPPROTO_TCP;
	iph->saddr = way->saddr4;
	iph->daddr = way->daddr4;
	skb->protocol = htons(ETH_P_IP);
	err = ip_local_out(net, sk, skb);
	return net_xmit_eval(err);
}

#if IS_ENABLED(CONFIG_IPV6)
/* Likewise. */
static int int_host_send6(struct sock *sk, struct sk_buff *skb, const struct int_way *way)
{
	struct net *net = sock_net(sk);
	struct flowi6 fl6 = {
		.flowi6_proto = IPPROTO_TCP,
		.saddr = way->saddr6,
		.daddr = way->daddr6,
		.fl6_sport = inet_sk(sk)->inet_sport,
		.fl6_dport = inet_sk(sk)->inet_dport,
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_oif = READ_ONCE(sk->sk_bound_dev_if),	/* set with link-local addresses */
	};
	struct dst_entry *dst = int_host_route(sk, READ_ONCE(inet6_sk(sk)->dst_cookie));
	struct ipv6hdr *ip6h;
	int err;

	if (!dst)
		dst = ip6_dst_lookup_flow(net, sk, &fl6, NULL);
	err = int_host_set_route(skb, dst);
	if (err) {
		kfree_skb(skb);
		return err;
	}
	if (way->format != INT_FORMAT_IFA)
		int_host_checksum6(skb, &way->saddr6, &way->daddr6);
	ip6h = skb_push(skb, sizeof(*ip6h));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip6h, way->ds, 0);
	ip6h->payload_len = htons(skb->len - sizeof(*ip6h));
	ip6h->nexthdr = way->format == INT_FORMAT_IFA ? IFA_PROTOCOL : IPPROTO_TCP;
	ip6h->hop_limit = ip6_dst_hoplimit(dst);
	ip6h->saddr = way->saddr6;
	ip6h->daddr = way->daddr6;
	skb->protocol = htons(ETH_P_IPV6);
	err = ip6_local_out(net, sk, skb);
	return net_xmit_eval(err);
}
#endif

int int_host_send(struct sock *sk, struct sk_buff *skb, const struct int_way *way)
{
	if (way->format == INT_FORMAT_IFA)
		int_host_checksum_ifa(skb, way);
#if IS_ENABLED(CONFIG_IPV6)
	if (way->ipv6)
		return int_host_send6(sk, skb, way);
#endif
	return int_host_send4(sk, skb, way);
}
EXPORT_SYMBOL_GPL(int_host_send);

/* --- connections and handlers ------------------------------------------------------- */

void int_host_get(struct net *net)
{
	cc_hook_get(int_host_hook(net));
}
EXPORT_SYMBOL_GPL(int_host_get);

void int_host_put(struct net *net)
{
	cc_hook_put(int_host_hook(net));
}
EXPORT_SYMBOL_GPL(int_host_put);

void int_handler_register(const struct int_handler *h)
{
	unsigned int type;

	for (type = INT_PROBE; type <= INT_WINDOW; type++)
		if (h->types & BIT(type))
			rcu_assign_pointer(int_handlers[type], h);
}
EXPORT_SYMBOL_GPL(int_handler_register);

void int_handler_unregister(const struct int_handler *h)
{
	unsigned int type;

	for (type = INT_PROBE; type <= INT_WINDOW; type++)
		if (h->types & BIT(type))
			RCU_INIT_POINTER(int_handlers[type], NULL);
	synchronize_net();
}
EXPORT_SYMBOL_GPL(int_handler_unregister);

static int int_handler_show(struct seq_file *seq, void *v)
{
	const struct int_handler *h = pde_data(file_inode(seq->file));
	const struct int_counters *c = net_generic(seq_file_single_net(seq), *h->net_id);
	unsigned int i, cpu;

	for (i = 0; h->counters[i]; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu_ptr(c->counts, cpu)->count[i]);
		seq_printf(seq, "%s %llu\n", h->counters[i], sum);
	}
	return 0;
}

int int_handler_proc_create(struct net *net, const struct int_handler *h)
{
	struct int_counters *c = net_generic(net, *h->net_id);

	c->counts = alloc_percpu(struct int_counts);
	if (!c->counts)
		return -ENOMEM;
	if (proc_create_net_single(h->name, 0444, net->proc_net, int_handler_show, (void *)h))
		return 0;
	free_percpu(c->counts);
	return -ENOMEM;
}
EXPORT_SYMBOL_GPL(int_handler_proc_create);

void int_handler_proc_remove(struct net *net, const struct int_handler *h)
{
	struct int_counters *c = net_generic(net, *h->net_id);

	remove_proc_entry(h->name, net->proc_net);
	free_percpu(c->counts);
}
EXPORT_SYMBOL_GPL(int_handler_proc_remove);

/* --- namespaces --------------------------------------------------------------------- */

static int __net_init int_host_net_init(struct net *net)
{
	cc_hook_init(int_host_hook(net), net, int_host_hook_ops, ARRAY_SIZE(int_host_hook_ops));
	return 0;
}

/* Before the grace period: a hook that is still running uses counters that go with the handlers. */
static void __net_exit int_host_net_pre_exit(struct net *net)
{
	cc_hook_leave(int_host_hook(net));
}

static struct pernet_operations int_host_net_ops = {
	.init = int_host_net_init,
	.pre_exit = int_host_net_pre_exit,
	.id = &int_host_net_id,
	.size = sizeof(struct cc_hook),
};

static int __init int_host_init(void)
{
	int err = register_pernet_subsys(&int_host_net_ops);

	if (!err)
		int_host_ifa_init();
	return err;
}

static void __exit int_host_exit(void)
{
	int_host_ifa_exit();
	unregister_pernet_subsys(&int_host_net_ops);
}

module_init(int_host_init);
module_exit(int_host_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("Telemetry messages of HPCC++ that arrive at a host");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
