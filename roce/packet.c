// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: reads a RoCEv2 packet from an skb and checks its ICRC. */
#include <net/ip.h>

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
		p->ecn = ip->tos & INET_ECN_MASK;
		ipv6_addr_set_v4mapped(ip->saddr, &p->saddr);
		ipv6_addr_set_v4mapped(ip->daddr, &p->daddr);
	} else {
		const struct ipv6hdr *ip = ipv6_hdr(skb);

		p->ip_bytes = sizeof(*ip);
		p->ecn = ipv6_get_dsfield(ip) & INET_ECN_MASK;
		p->saddr = ip->saddr;
		p->daddr = ip->daddr;
	}
	at += p->ip_bytes;
	left = skb->len > at ? skb->len - at : 0;
	udp = skb_header_pointer(skb, at, min_t(unsigned int, sizeof(buf), left), buf);
	if (!udp || !roce_read(&p->roce, udp, left))
		return false;
	p->udp_checksum = roce_get16(udp + 6);
	return true;
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
