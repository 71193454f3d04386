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

/* Messages of the old format are expected in @net, until int_host_put(): hooks see them soon. */
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

/* --- messages ---------------------------------------------------------------------- */

/* Is IFA's protocol ours? */
bool int_host_has_ifa(void);

/*
 * Parses the message @p of @s->len bytes, whose head is valid, with the records that came with it.
 * @taken: the nodes that the probe has passed, where the records are not in the message
 */
void int_host_parse(struct int_msg *m, const struct sk_buff *skb, const struct int_segment *s,
		    const u8 *p, unsigned int taken);

/* The nodes that a probe has passed on its way here, where its records are not in the message */
static inline unsigned int int_host_taken(const struct sk_buff *skb, const struct int_segment *s)
{
	if (s->format == INT_FORMAT_IFA)
		return IFA_HOP_LIMIT - skb->data[s->md + 2];
	return s->format == INT_FORMAT_MD ? md_taken(skb->data + s->md) : 0;
}

/**
 * struct int_way - how a message leaves
 * @ipv6:	true for IPv6, false for IPv4
 * @format:	enum int_format
 * @ds:		the IP header's DSCP and ECN field
 * @saddr4:	addresses for IPv4
 * @daddr4:	likewise
 * @saddr6:	addresses for IPv6
 * @daddr6:	likewise
 */
struct int_way {
	bool ipv6;
	u8 format;
	u8 ds;
	union {
		struct {
			__be32 saddr4;
			__be32 daddr4;
		};
		struct {
			struct in6_addr saddr6;
			struct in6_addr daddr6;
		};
	};
};

/*
 * A segment of @sk whose SND.UNA is @una, for a message of @len bytes, which the caller writes to
 * *@p. Its flags and its sequence number each keep any stack from taking data from it. It has no IP
 * header yet. It is not tracked by conntrack, and is never split or merged. Its checksum is left to
 * the device, as that of TCP's own segments is, except with IFA. It has room for the headers of
 * @format and @stack bytes of metadata, which the caller writes, too. NULL: no memory
 */
struct sk_buff *int_host_segment(const struct sock *sk, u8 format, u32 una, u32 len, u32 stack,
				 u8 **p);

/* The metadata's header of such a segment */
static inline u8 *int_host_md(const struct sk_buff *skb, u8 format)
{
	return skb_transport_header(skb) + (format == INT_FORMAT_IFA ? IFA_HEADER_LEN : 0) +
	       sizeof(struct tcphdr);
}

/*
 * Sends it by the route of @sk's own packets, which IPsec policy may change; @sk need not be
 * locked. Consumes @skb. 0, or why it was not sent: a negative error, or NET_XMIT_DROP.
 */
int int_host_send(struct sock *sk, struct sk_buff *skb, const struct int_way *way);

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
