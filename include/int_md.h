/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telemetry as P4 switches send it: INT-MD (P4.org, In-band Network Telemetry dataplane
 * specification 2.1, 5.7.2 and 5.8), HPCC++'s format of draft-miao-rtgwg-hpccplus-00, 6.1.3. Bytes
 * and integers only: it compiles in user space, too.
 *
 *	IP, TCP header of the flow with PSH alone
 *	shim		| type 1, NPT 0 | length | reserved | DSCP |			4 bytes
 *	INT-MD header	| version 2, D, E, M | hop ML | remaining hops |		12 bytes
 *			| instructions | domain | DS instructions | DS flags |
 *	metadata	of the latest node; ... of the first node		24 bytes each
 *	message		int_wire.h's, without records (room 0)
 *
 * Lengths are in words of 4 bytes; the shim's is that of all up to the message. Asked for are: node
 * ID; ports; queue; time of departure; utilisation of the egress port, which takes the place of
 * txBytes. There is no rate: that is a parameter of the path. What a node does not know it
 * fills with ones. A node that adds nothing does not count itself: it cannot be told from one that
 * does not know INT. TCP's checksum is that of the whole segment.
 *
 * The specification leaves units open: here utilisation is in millionths, averaged over 50 us or
 * more, and the queue is in the bytes of a cell.
 */
#ifndef _LOWQ_INT_MD_H
#define _LOWQ_INT_MD_H

#include "int_wire.h"

#define MD_SHIM_LEN		4U
#define MD_HEADER_LEN		16U	/* with the shim */
#define MD_LEN			24U
#define MD_WORDS		(MD_LEN / 4)
#define MD_FIXED_WORDS		((MD_HEADER_LEN - MD_SHIM_LEN) / 4)
#define MD_SHIM			0x10U
#define MD_VERSION		0x20U
#define MD_EXCEEDED		0x06U	/* E, M: a node had no room */
#define MD_INSTRUCTIONS		0xd500U	/* bits 0, 1, 3, 5 and 7 from the left */
#define MD_UTIL_ONE		1000000U
#define MD_WINDOW_NS		50000U

/* Writes shim and header of a probe that has room for @nodes. */
static inline void md_build(u8 *p, unsigned int nodes)
{
	memset(p, 0, MD_HEADER_LEN);
	p[0] = MD_SHIM;
	p[1] = MD_FIXED_WORDS;
	p[4] = MD_VERSION;
	p[6] = MD_WORDS;
	p[7] = nodes;
	int_put32(p + 8, MD_INSTRUCTIONS << 16);
}

/* Is this a shim and a header that ask for what we know? */
static inline bool md_valid(const u8 *p)
{
	return p[0] == MD_SHIM && p[1] >= MD_FIXED_WORDS && (p[4] & 0xf0) == MD_VERSION &&
	       (p[6] & 0x1f) == MD_WORDS && int_get32(p + 8) >> 16 == MD_INSTRUCTIONS;
}

static inline u32 md_stack_len(const u8 *p)
{
	return (p[1] - MD_FIXED_WORDS) * 4U;
}

/* May a node add its metadata? */
static inline bool md_has_room(const u8 *p)
{
	return p[7] && p[1] + MD_WORDS <= 255;
}

/* @h with the load of its link; @h->util: Q20. @cell: bytes, above 0 */
static inline void md_put_hop(u8 *md, const struct int_hop *h, u32 cell)
{
	int_put32(md, h->node);
	int_put32(md + 4, h->port);
	int_put32(md + 8, fp_min(h->qlen / cell, 0xffffffU));
	int_put32(md + 12, h->ts >> 32);
	int_put32(md + 16, (u32)h->ts);
	int_put32(md + 20, fp_mul_shr(h->util, MD_UTIL_ONE, 20));
}

/* @mbps: of the path's ports; 0: unknown */
static inline void md_get_hop(const u8 *md, struct int_hop *h, u32 cell, u32 mbps)
{
	u32 cells = int_get32(md + 8) & 0xffffff, util = int_get32(md + 20);

	memset(h, 0, sizeof(*h));
	h->node = int_get32(md);
	h->port = int_get32(md + 4) & 0xffff;
	h->ts = int_get64(md + 12) & (((u64)1 << 40) - 1);
	h->ts_bits = 40;
	h->util = fp_min(fp_mul_div(util, 1 << 20, MD_UTIL_ONE), U32_MAX);
	h->qlen = fp_min((u64)cells * cell, U32_MAX);
	/* all ones: the node does not know */
	if (util != U32_MAX && int_get32(md + 8) != U32_MAX && int_get64(md + 12) != U64_MAX)
		h->mbps = mbps;
}

/* The nodes that a probe with the header @p has come by, as far as they tell. */
static inline unsigned int md_taken(const u8 *p)
{
	return md_stack_len(p) / MD_LEN + (p[4] & MD_EXCEEDED ? 1 : 0);
}

/*
 * Reads the stack after the header @p into @m, the first node first. @taken: md_taken() when the
 * probe arrived; nodes on a response's way may set the header's flags, too.
 */
static inline void md_read(struct int_msg *m, const u8 *p, unsigned int taken, u32 cell, u32 mbps)
{
	unsigned int n = md_stack_len(p) / MD_LEN, i;
	const u8 *md = p + MD_HEADER_LEN;

	m->nhop = fp_max(n, taken);
	m->room = 0;
	m->path_id = (u32)1 << 31;
	if (n > INT_HOPS_MAX || n * MD_LEN != md_stack_len(p))
		return;
	for (i = n; i-- > 0; md += MD_LEN)
		md_get_hop(md, &m->hop[i], cell, mbps);
	m->path_id = int_path_of(m->hop, n);
	m->room = n;
}

#endif /* _LOWQ_INT_MD_H */
