// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: reads a RoCEv2 packet from an skb and checks its ICRC. */
#include <linux/netfilter.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "roce_rcm.h"

/* Is @skb, UDP whose data begins at the IP header, RoCEv2? If so, fills in *@p. */
bool rcm_packet_read(struct rcm_packet *p, const struct sk_buff *skb, u8 pf)
{
	unsigned int at = skb_network_offset(skb), left;
	u8 buf[ROCE_READ_BYTES];
	const u8 *udp;

	if (pf == NFPROTO_IPV4) {
		const struct iphdr *ip = ip_hdr(skb);

		if (ip->ihl != 5 || ip_is_fragment(ip))
			return false;
		p->ip_bytes = sizeof(*ip);
	} else {
		p->ip_bytes = sizeof(struct ipv6hdr);
	}
	at += p->ip_bytes;
	left = skb->len > at ? skb->len - at : 0;
	udp = skb_header_pointer(skb, at, min_t(unsigned int, sizeof(buf), left), buf);
	if (!udp || !roce_read(&p->roce, udp, left))
		return false;
	p->udp_checksum = roce_get16(udp + 6);
	if (pf == NFPROTO_IPV4) {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &p->saddr);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &p->daddr);
		p->ecn = ip_hdr(skb)->tos & INET_ECN_MASK;
	} else {
		p->saddr = ipv6_hdr(skb)->saddr;
		p->daddr = ipv6_hdr(skb)->daddr;
		p->ecn = ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	}
	return true;
}

/* Does @skb, UDP, carry CE, or perhaps a CNP? Most do not; this is cheaper than reading them. */
bool rcm_packet_signals(const struct sk_buff *skb, u8 pf)
{
	unsigned int at = skb_network_offset(skb);
	u8 buf[ROCE_UDP_BYTES + 1], ecn;
	const u8 *udp;

	if (pf == NFPROTO_IPV4) {
		at += sizeof(struct iphdr);
		ecn = ip_hdr(skb)->tos;
	} else {
		at += sizeof(struct ipv6hdr);
		ecn = ipv6_get_dsfield(ipv6_hdr(skb));
	}
	if (INET_ECN_is_ce(ecn))
		return true;
	udp = skb_header_pointer(skb, at, sizeof(buf), buf);
	return udp && udp[ROCE_UDP_BYTES] == ROCE_OPCODE_CNP;
}

/* Does @skb, which is *@p, end with the right ICRC? */
bool rcm_packet_icrc_ok(const struct rcm_packet *p, const struct sk_buff *skb)
{
	u8 buf[256];
	u8 want[ROCE_ICRC_BYTES];
	int at = skb_network_offset(skb);
	int left = p->roce.ib_bytes - ROCE_BTH_BYTES - ROCE_ICRC_BYTES;
	u32 crc;

	if (skb_copy_bits(skb, at, buf, p->ip_bytes + ROCE_UDP_BYTES + ROCE_BTH_BYTES))
		return false;
	crc = roce_icrc_headers(buf, p->ip_bytes);
	at += p->ip_bytes + ROCE_UDP_BYTES + ROCE_BTH_BYTES;
	while (left > 0) {
		int n = min_t(int, left, sizeof(buf));

		if (skb_copy_bits(skb, at, buf, n))
			return false;
		crc = crc32_le(crc, buf, n);
		at += n;
		left -= n;
	}
	return !skb_copy_bits(skb, at, want, sizeof(want)) && roce_icrc_ok(want, crc);
}
