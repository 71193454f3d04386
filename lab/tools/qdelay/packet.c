// SPDX-License-Identifier: GPL-2.0
#include <netinet/in.h>
#include <pcap/dlt.h>
#include <string.h>

#include "options.h"
#include "packet.h"

static inline u64 mix64(u64 h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

/* Two different 64-bit hashes: equal fingerprints are taken for equal packets. */
static inline void fp_add(u64 fp[2], u64 w)
{
	fp[0] = (fp[0] ^ w) * 0x9e3779b97f4a7c15ULL;
	fp[0] ^= fp[0] >> 29;
	fp[1] = (fp[1] + w) * 0xc2b2ae3d27d4eb4fULL;
	fp[1] ^= fp[1] >> 32;
}

static void fp_bytes(u64 fp[2], const u8 *p, u32 n)
{
	u64 w;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		fp_add(fp, w);
	}
	w = (u64)n << 56;	/* fewer than 8 are left */
	memcpy(&w, p, n);
	fp_add(fp, w);
}

static inline u16 be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline u32 be32(const u8 *p)
{
	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

int link_room(int dlt)
{
	switch (dlt) {
	case DLT_EN10MB:
		return 14 + 8;
	case DLT_LINUX_SLL:
		return 16 + 8;
	case DLT_LINUX_SLL2:
		return 20 + 8;
	case DLT_NULL:
	case DLT_LOOP:
		return 4;
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	}
	return -1;
}

/* Offset of the IP header, -1 if there is none. */
static int link_skip(int dlt, const u8 *d, u32 n)
{
	u32 off, tags;
	u16 type;

	switch (dlt) {
	case DLT_EN10MB:
		off = 14;
		break;
	case DLT_LINUX_SLL:
		off = 16;
		break;
	case DLT_LINUX_SLL2:
		off = 20;
		break;
	case DLT_NULL:
	case DLT_LOOP:
		return n >= 4 ? 4 : -1;
	default:
		return 0;
	}
	if (n < off)
		return -1;
	type = be16(d + (dlt == DLT_LINUX_SLL2 ? 0 : off - 2));
	for (tags = 0; type == 0x8100 || type == 0x88a8 || type == 0x9100;
	     tags++) {
		if (n < off + 4 || tags == 2)
			return -1;
		type = be16(d + off + 2);
		off += 4;
	}
	return type == 0x0800 || type == 0x86dd ? (int)off : -1;
}

/* The visible part of an IP packet. */
struct view {
	const u8 *d;
	u32 end;		/* bytes that may be read */
	u32 wire;		/* bytes on the wire */
	u32 reach;		/* bytes that both sides have, unless the packet is shorter */
	bool cut;
};

static inline bool have(struct view *v, u32 n)
{
	if (n <= v->end)
		return true;
	if (n <= v->reach && n <= v->wire)
		v->cut = true;
	return false;
}

/* How many of the bytes [off, off + n) may be read. */
static inline u32 part(struct view *v, u32 off, u32 n)
{
	u32 want = off + n;

	if (want > v->reach)
		want = v->reach;
	if (want > v->wire)
		want = v->wire;
	if (want <= off)
		return 0;
	if (want > v->end) {
		v->cut = true;
		return 0;
	}
	return want - off;
}

/* Between neighbours only: never forwarded, so never in the queue. */
static bool link_control(u8 proto, const u8 *d, u32 n)
{
	if (proto == IPPROTO_IGMP)
		return true;
	return proto == IPPROTO_ICMPV6 && n &&
	       ((d[0] >= 130 && d[0] <= 137) || d[0] == 143);
}

/* The fields of an IP header. */
struct ip {
	struct flow_key key;	/* without ports */
	u32 l4, l4len;		/* offset and length of what follows the IP headers, bytes */
	u32 id, label;
	u32 frag;		/* as in the header of IPv4 */
	u8 ecn;
};

#define FRAG_OFFSET	0x1fff	/* of ip.frag */

static bool read_ipv4(struct view *v, struct ip *ip)
{
	const u8 *d = v->d;
	u32 total;

	ip->l4 = (d[0] & 15) * 4;
	if (ip->l4 < 20 || !have(v, 20))
		return false;
	total = be16(d + 2);
	if (!total)		/* longer than 64 KiB */
		total = v->wire;
	if (total < ip->l4)
		return false;
	ip->l4len = total - ip->l4;
	ip->ecn = d[1] & 3;
	ip->id = be16(d + 4);
	ip->frag = be16(d + 6);
	ip->key.proto = d[9];
	memcpy(ip->key.src, d + 12, 4);
	memcpy(ip->key.dst, d + 16, 4);
	ip->key.family = 4;
	return true;
}

/* Skips the extension headers that were captured. */
static void skip_extensions(struct view *v, struct ip *ip)
{
	u8 *proto = &ip->key.proto;
	u32 n;

	for (int i = 0; i < 8; i++) {
		const u8 *d = v->d + ip->l4;

		if (*proto != IPPROTO_HOPOPTS && *proto != IPPROTO_ROUTING &&
		    *proto != IPPROTO_DSTOPTS && *proto != IPPROTO_FRAGMENT)
			return;
		if (ip->l4len < 8 || !have(v, ip->l4 + 8))
			return;
		if (*proto == IPPROTO_FRAGMENT) {
			ip->frag = be16(d + 2);
			ip->frag = ip->frag >> 3 | (ip->frag & 1) << 13;
			ip->id = be32(d + 4);
			n = 8;
		} else {
			n = (d[1] + 1) * 8;
		}
		if (n > ip->l4len)
			return;
		*proto = d[0];
		ip->l4 += n;
		ip->l4len -= n;
		if (ip->frag & FRAG_OFFSET)
			return;
	}
}

static bool read_ipv6(struct view *v, struct ip *ip)
{
	const u8 *d = v->d;

	if (!have(v, 40))
		return false;
	ip->ecn = d[1] >> 4 & 3;
	ip->label = be32(d) & 0xfffff;
	ip->l4 = 40;
	ip->l4len = be16(d + 4);
	if (!ip->l4len && v->wire > 40)		/* jumbogram */
		ip->l4len = v->wire - 40;
	ip->key.proto = d[6];
	memcpy(ip->key.src, d + 8, 16);
	memcpy(ip->key.dst, d + 24, 16);
	ip->key.family = 6;
	skip_extensions(v, ip);
	return true;
}

static bool read_ip(struct view *v, struct ip *ip)
{
	switch (v->d[0] >> 4) {
	case 4:
		return read_ipv4(v, ip);
	case 6:
		return read_ipv6(v, ip);
	}
	return false;
}

/* Length of a header of TCP or UDP, 0 if there is none. */
static u32 l4_header(struct view *v, const struct ip *ip)
{
	u32 n;

	if (ip->frag & FRAG_OFFSET)
		return 0;
	if (ip->key.proto == IPPROTO_TCP && ip->l4len >= 20 && have(v, ip->l4 + 20)) {
		n = (v->d[ip->l4 + 12] >> 4) * 4;
		return n >= 20 && n <= ip->l4len ? n : 0;
	}
	if (ip->key.proto == IPPROTO_UDP && ip->l4len >= 8 && have(v, ip->l4 + 8))
		return 8;
	return 0;
}

/* The MSS option of a SYN with @n bytes of options; 0 if it has none. */
static u16 mss_option(const u8 *d, u32 n)
{
	u32 i = 0;

	while (i + 1 < n && d[i]) {
		if (d[i] == 1) {	/* no-operation has no length */
			i++;
			continue;
		}
		if (d[i] == 2 && d[i + 1] == 4 && i + 4 <= n)
			return be16(d + i + 2);
		if (d[i + 1] < 2)
			return 0;
		i += d[i + 1];
	}
	return 0;
}

/*
 * May nodes on the way make the packet longer? Probes of HPCC++: INT's are TCP with PSH as their
 * only flag; IFA's are a protocol of its own, whose header and the flow's TCP header do not change.
 */
#define IFA_PROTOCOL	253
#define IFA_CONSTANT	24U

static bool may_grow(const struct ip *ip, const u8 *l4, u32 header)
{
	return ip->key.proto == IFA_PROTOCOL ||
	       (header && ip->key.proto == IPPROTO_TCP && (be16(l4 + 12) & 0xfff) == 0x08);
}

/* @d: the TCP header; @n bytes of its options may be read */
static void read_tcp(struct pkt *p, const u8 *d, u32 n)
{
	u16 flags = be16(d + 12) & 0xfff;

	p->tcp = true;
	p->stream = flags & 0x12;
	p->seq = be32(d + 4);
	p->syn = flags & 2;
	p->seqspace = p->syn + (flags & 1);
	p->options = (d[12] >> 4) * 4 - 20;
	if (p->syn)
		p->mss = mss_option(d + 20, n);
	fp_add(p->fp, (u64)p->seq << 32 | be32(d + 8));
	fp_add(p->fp, flags);
	/* timestamps and SACK distinguish copies of a segment */
	fp_bytes(p->fp, d + 20, n);
}

enum parsed packet_parse(struct pkt *p, struct flows *flows, int dlt, u32 reach, const u8 *data,
			 u32 caplen, u32 len)
{
	int off = link_skip(dlt, data, caplen);
	struct ip ip = { 0 };
	struct view v;
	const u8 *l4;
	u32 header, prefix = opt.prefix;
	bool grows;

	if (off < 0 || (u32)off >= caplen)
		return NO_PACKET;
	v = (struct view) {
		.d = data + off,
		.end = caplen - off < reach ? caplen - off : reach,
		.wire = len - off,
		.reach = reach,
	};
	if (!read_ip(&v, &ip))
		return v.cut ? CUT : NO_PACKET;
	l4 = v.d + ip.l4;
	if (!(ip.frag & FRAG_OFFSET) &&
	    link_control(ip.key.proto, l4, part(&v, ip.l4, ip.l4len ? 1 : 0)))
		return v.cut ? CUT : NO_PACKET;
	header = l4_header(&v, &ip);
	if (header) {
		ip.key.sport = be16(l4);
		ip.key.dport = be16(l4 + 2);
	}
	*p = (struct pkt) {
		.flow = flow_find(flows, &ip.key),
		.len = len + opt.overhead,
		.payload = ip.l4len - header,
		.segs = 1,
		.seq = ip.id,
		.ecn = ip.ecn,
	};
	p->header = p->len > p->payload ? p->len - p->payload : 0;
	fp_bytes(p->fp, (const u8 *)&ip.key, sizeof(ip.key));
	fp_add(p->fp, (u64)ip.id << 32 | ip.frag << 16);
	grows = may_grow(&ip, l4, header);
	if (grows && prefix > IFA_CONSTANT)
		prefix = IFA_CONSTANT;
	fp_add(p->fp, (u64)ip.label << 32 | (grows ? 0 : p->payload));
	if (header && ip.key.proto == IPPROTO_TCP)
		read_tcp(p, l4, part(&v, ip.l4 + 20, header - 20));
	else
		fp_bytes(p->fp, l4 + header,
			 part(&v, ip.l4 + header, p->payload < prefix ? p->payload : prefix));
	p->fp[0] = mix64(p->fp[0]);
	return v.cut ? CUT : PACKET;
}
