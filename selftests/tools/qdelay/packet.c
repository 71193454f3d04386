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

/* Two unlike 64-bit hashes in one: taken for the packet itself. */
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

/* What is visible of an IP packet. */
struct view {
	const u8 *d;
	u32 end;		/* bytes to look at */
	u32 wire;		/* bytes that there were */
	u32 reach;		/* bytes that both sides have if there were so many */
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

/* How many of the bytes [off, off + n) to look at. */
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

/* Between neighbours only, never through a router: not the queue's. */
static bool link_control(u8 proto, const u8 *d, u32 n)
{
	if (proto == IPPROTO_IGMP)
		return true;
	return proto == IPPROTO_ICMPV6 && n &&
	       ((d[0] >= 130 && d[0] <= 137) || d[0] == 143);
}

enum parsed packet_parse(struct pkt *p, int dlt, u32 reach, const u8 *data, u32 caplen, u32 len)
{
	u32 l4, l4len, id = 0, frag = 0, label = 0, total, hdr, n, i;
	struct flow_key key;
	struct view v = { 0 };
	const u8 *d;
	int off;
	u8 proto;

	off = link_skip(dlt, data, caplen);
	if (off < 0 || (u32)off >= caplen)
		return NO_PACKET;
	d = data + off;
	v.d = d;
	v.end = caplen - off < reach ? caplen - off : reach;
	v.wire = len - off;
	v.reach = reach;
	memset(&key, 0, sizeof(key));
	memset(p, 0, sizeof(*p));
	p->len = len + opt.overhead;

	switch (d[0] >> 4) {
	case 4:
		l4 = (d[0] & 15) * 4;
		if (l4 < 20 || !have(&v, 20))
			goto no;
		total = be16(d + 2);
		if (!total)		/* longer than 64 KiB */
			total = v.wire;
		if (total < l4)
			goto no;
		l4len = total - l4;
		p->ecn = d[1] & 3;
		id = be16(d + 4);
		frag = be16(d + 6);
		proto = d[9];
		memcpy(key.src, d + 12, 4);
		memcpy(key.dst, d + 16, 4);
		key.family = 4;
		break;
	case 6:
		if (!have(&v, 40))
			goto no;
		p->ecn = d[1] >> 4 & 3;
		label = be32(d) & 0xfffff;
		l4len = be16(d + 4);
		proto = d[6];
		if (!l4len && v.wire > 40)	/* jumbogram */
			l4len = v.wire - 40;
		memcpy(key.src, d + 8, 16);
		memcpy(key.dst, d + 24, 16);
		key.family = 6;
		l4 = 40;
		for (i = 0; i < 8; i++) {
			if (proto != IPPROTO_HOPOPTS &&
			    proto != IPPROTO_ROUTING &&
			    proto != IPPROTO_DSTOPTS &&
			    proto != IPPROTO_FRAGMENT)
				break;
			if (l4len < 8 || !have(&v, l4 + 8))
				break;
			if (proto == IPPROTO_FRAGMENT) {
				frag = be16(d + l4 + 2);
				/* same shape as in IPv4 */
				frag = frag >> 3 | (frag & 1) << 13;
				id = be32(d + l4 + 4);
				n = 8;
			} else {
				n = (d[l4 + 1] + 1) * 8;
			}
			if (n > l4len)
				break;
			proto = d[l4];
			l4 += n;
			l4len -= n;
			if (frag & 0x1fff)
				break;
		}
		break;
	default:
		return NO_PACKET;
	}

	key.proto = proto;
	p->payload = l4len;
	p->seq = id;
	hdr = 0;
	if (!(frag & 0x1fff)) {
		if (link_control(proto, d + l4, part(&v, l4, l4len ? 1 : 0)))
			goto no;
		if (proto == IPPROTO_TCP && l4len >= 20 && have(&v, l4 + 20)) {
			hdr = (d[l4 + 12] >> 4) * 4;
			if (hdr < 20 || hdr > l4len)
				hdr = 0;
			else
				p->tcp = true;
		} else if (proto == IPPROTO_UDP && l4len >= 8 &&
			   have(&v, l4 + 8)) {
			hdr = 8;
		}
	}
	if (hdr) {
		key.sport = be16(d + l4);
		key.dport = be16(d + l4 + 2);
		p->payload = l4len - hdr;
	}
	p->flow = flow_find(&key);

	fp_bytes(p->fp, (const u8 *)&key, sizeof(key));
	fp_add(p->fp, (u64)id << 32 | frag << 16);
	fp_add(p->fp, (u64)label << 32 | p->payload);
	if (p->tcp) {
		u16 flags = be16(d + l4 + 12) & 0xfff;

		p->seq = be32(d + l4 + 4);
		p->syn = flags & 2;
		p->seqspace = p->syn + (flags & 1);
		fp_add(p->fp, (u64)p->seq << 32 | be32(d + l4 + 8));
		fp_add(p->fp, flags);
		/* timestamps, SACK: tell copies of a segment apart */
		n = part(&v, l4 + 20, hdr - 20);
		fp_bytes(p->fp, d + l4 + 20, n);
	} else {
		n = p->payload < opt.prefix ? p->payload : opt.prefix;
		n = part(&v, l4 + hdr, n);
		fp_bytes(p->fp, d + l4 + hdr, n);
	}
	p->fp[0] = mix64(p->fp[0]);
	return v.cut ? CUT : PACKET;
no:
	return v.cut ? CUT : NO_PACKET;
}
