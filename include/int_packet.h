/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds a telemetry message (int_wire.h) in a packet. A probe or response is a TCP
 * segment with the special DSCP, PSH as its only flag, no options and no fragment; or
 * such a segment with IFA's headers (int_ifa.h).
 */
#ifndef _LOWQ_INT_PACKET_H
#define _LOWQ_INT_PACKET_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/dsfield.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "int_ifa.h"
#include "int_md.h"

/**
 * struct int_segment - position of a message in a packet; offsets from skb->data
 * @nh:		offset of the IP header
 * @th:		offset of the TCP header
 * @payload:	offset of the message
 * @len:	length of the message, according to the IP header
 * @md:		offset of the metadata's header; 0: the records are in the message
 * @stack:	offset of the metadata
 * @stack_len:	their length
 * @format:	enum int_format
 * @flags:	the TCP flags: PSH alone is a message, others may be an answer of the stack to one
 * @ipv6:	true for IPv6, false for IPv4
 */
struct int_segment {
	unsigned int nh;
	unsigned int th;
	unsigned int payload;
	unsigned int len;
	unsigned int md;
	unsigned int stack;
	unsigned int stack_len;
	u8 format;
	u8 flags;
	bool ipv6;
};

/* IFA's headers around TCP's: moves @s->th, and sets @s->md. */
static inline bool int_segment_find_ifa(const struct sk_buff *skb, struct int_segment *s)
{
	u8 _ifa[IFA_HEADER_LEN];
	const u8 *ifa = skb_header_pointer(skb, s->th, sizeof(_ifa), _ifa);

	if (!ifa || !ifa_valid(ifa))
		return false;
	s->format = INT_FORMAT_IFA;
	s->th += IFA_HEADER_LEN;
	s->md = s->th + sizeof(struct tcphdr);
	return true;
}

/*
 * Does the packet have the headers of a message, except for the TCP flags? Its network header is at
 * @nhoff and of type @proto (ETH_P_). Reads headers only.
 */
static inline bool int_segment_find(const struct sk_buff *skb, unsigned int nhoff,
				    __be16 proto, u8 dscp, struct int_segment *s)
{
	u8 _md[MD_HEADER_LEN], carried;
	struct tcphdr _th;
	const struct tcphdr *th;
	unsigned int total;
	const u8 *md;

	if (proto == htons(ETH_P_IP)) {
		struct iphdr _iph;
		const struct iphdr *iph = skb_header_pointer(skb, nhoff, sizeof(_iph), &_iph);

		if (!iph || iph->tos >> 2 != dscp || iph->ihl < 5 || ip_is_fragment(iph))
			return false;
		carried = iph->protocol;
		s->ipv6 = false;
		s->th = nhoff + iph->ihl * 4;
		total = nhoff + ntohs(iph->tot_len);
	} else if (proto == htons(ETH_P_IPV6)) {
		struct ipv6hdr _ip6h;
		const struct ipv6hdr *ip6h = skb_header_pointer(skb, nhoff, sizeof(_ip6h), &_ip6h);

		if (!ip6h || ipv6_get_dsfield(ip6h) >> 2 != dscp)
			return false;
		carried = ip6h->nexthdr;
		s->ipv6 = true;
		s->th = nhoff + sizeof(_ip6h);
		total = s->th + ntohs(ip6h->payload_len);
	} else {
		return false;
	}
	s->nh = nhoff;
	s->md = 0;
	s->stack_len = 0;
	s->format = INT_FORMAT_OLD;
	if (carried != IPPROTO_TCP && (carried != IFA_PROTOCOL || !int_segment_find_ifa(skb, s)))
		return false;
	th = skb_header_pointer(skb, s->th, sizeof(_th), &_th);
	if (!th || th->doff != sizeof(_th) / 4)
		return false;
	s->flags = tcp_flag_byte(th);
	s->payload = s->th + sizeof(_th);
	if (s->format == INT_FORMAT_IFA) {
		md = skb_header_pointer(skb, s->md, IFA_MD_HEADER_LEN, _md);
		if (!md)
			return false;
		s->stack = s->md + IFA_MD_HEADER_LEN;
		s->stack_len = ifa_stack_len(md);
		s->payload = s->stack + s->stack_len;
	} else if (total >= s->payload + MD_HEADER_LEN) {
		/* the message's first byte is no shim's */
		md = skb_header_pointer(skb, s->payload, MD_HEADER_LEN, _md);
		if (md && md_valid(md)) {
			s->format = INT_FORMAT_MD;
			s->md = s->payload;
			s->stack = s->md + MD_HEADER_LEN;
			s->stack_len = md_stack_len(md);
			s->payload = s->stack + s->stack_len;
		}
	}
	if (total < s->payload || total > skb->len)
		return false;
	s->len = total - s->payload;
	return true;
}

/* The message, of @s->len bytes, perhaps in @buf; NULL if its head is not valid. */
static inline const u8 *int_segment_message(const struct sk_buff *skb, const struct int_segment *s,
					    u8 buf[INT_MSG_LEN_MAX])
{
	const u8 *p;

	if (s->len > INT_MSG_LEN_MAX)
		return NULL;
	p = skb_header_pointer(skb, s->payload, s->len, buf);
	return p && int_head_valid(p, s->len) ? p : NULL;
}

#endif /* _LOWQ_INT_PACKET_H */
