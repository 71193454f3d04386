/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-band telemetry at the two ends of a connection: int_host finds the messages among the
 * arriving packets and gives them to the module of their kind, tcp_hpccpp or int_reflector.
 */
#ifndef _LOWQ_INT_HOST_H
#define _LOWQ_INT_HOST_H

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <net/ip6_checksum.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "int_packet.h"

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

/* What a module counts in a network namespace on one CPU, by INT_COUNT_... */
struct int_counts {
	u64 count[INT_COUNTERS_MAX];
};

/**
 * struct int_counters - what a module counts in a network namespace
 * @counts:	on each CPU
 *
 * The module's area in the namespace begins with them.
 */
struct int_counters {
	struct int_counts __percpu *counts;
};

/**
 * struct int_handler - what a module does with messages
 * @name:	of the file in /proc/net that shows the counters
 * @counters:	their names; the shared ones (INT_COUNT_...) first
 * @net_id:	the module's area in each namespace, for net_generic()
 * @types:	bit mask of enum int_type: the messages that the module handles
 * @handle_message: called for each message with valid checksum and sequence number, as in softirq:
 *		softirqs are disabled. @p is the message, @s->len bytes, whose head is valid. @sk
 *		is established and valid during the call only; it may be locked or not. True if it
 *		handled the message: then that is no drop
 * @handle_reset: likewise for each RST that has the DSCP of messages, as a peer's stack answers a
 *		message with: true if it answers one of ours, which is dropped. NULL: none
 */
struct int_handler {
	const char *name;
	const char * const *counters;
	const unsigned int *net_id;
	u32 types;
	bool (*handle_message)(struct sock *sk, const struct sk_buff *skb,
			       const struct int_segment *s, const u8 *p);
	bool (*handle_reset)(const struct sock *sk, u32 ack);
};

/* --- int_host.c ------------------------------------------------------------------ */

/* The DSCP of messages */
u8 int_host_dscp(void);

/*
 * A connection in @net expects messages, until int_host_put(): netfilter hooks see them soon.
 * Without such connections, the first message that comes makes the hooks.
 */
void int_host_get(struct net *net);
void int_host_put(struct net *net);

/* Messages of its types are @h's from now on: one handler per type. Its areas are there. */
void int_handler_register(const struct int_handler *h);

/* ... and no more: returns when @h is not used. May sleep */
void int_handler_unregister(const struct int_handler *h);

/* @h's counters in @net, and the file with them. 0, or an error */
int int_handler_proc_create(struct net *net, const struct int_handler *h);
void int_handler_proc_remove(struct net *net, const struct int_handler *h);

/* Counts in the area @net_id of @net. */
static inline void int_count(struct net *net, unsigned int net_id, unsigned int counter)
{
	const struct int_counters *c = net_generic(net, net_id);

	this_cpu_inc(c->counts->count[counter]);
}

/* --- messages that leave ----------------------------------------------------------- */

/*
 * A segment of the flow from @sport to @dport whose SND.UNA is @una, for a message of @len bytes,
 * which the caller writes to *@p. Its flags and its sequence number each keep any stack from taking
 * data from it. It has no IP header yet; its checksum is left to the device, as that of TCP's own
 * segments is. It is not tracked by conntrack, and is never split or merged. NULL if there is no
 * memory.
 */
static inline struct sk_buff *int_host_segment(__be16 sport, __be16 dport, u32 una, u32 len,
					       u8 **p)
{
	/* of IP with options, and below; the stack makes more room where it has to */
	const u32 headers = MAX_HEADER + 60;
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
	*p = skb_put(skb, len);
	skb_set_nfct(skb, IP_CT_UNTRACKED);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	return skb;
}

static inline void int_host_checksum4(struct sk_buff *skb, __be32 saddr, __be32 daddr)
{
	tcp_hdr(skb)->check = ~tcp_v4_check(skb->len, saddr, daddr, 0);
}

#if IS_ENABLED(CONFIG_IPV6)
static inline void int_host_checksum6(struct sk_buff *skb, const struct in6_addr *saddr,
				      const struct in6_addr *daddr)
{
	tcp_hdr(skb)->check = ~tcp_v6_check(skb->len, saddr, daddr, 0);
}
#endif

#endif /* _LOWQ_INT_HOST_H */
