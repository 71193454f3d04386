/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telemetry as switches send it: IFA 2.0 (draft-kumar-ippm-ifa), HPCC++'s format of
 * draft-miao-rtgwg-hpccplus-00, 6.1.1. Bytes and integers only: it compiles in user space, too.
 *
 *	IP, protocol 253
 *	IFA header	| version 2 | GNS 15 | next header | flags | max length |	4 bytes
 *	TCP header	of the flow, PSH alone: what a message is, see int_wire.h
 *	metadata header	| request | action | hop limit | length |			4 bytes
 *	metadata	of the latest node; ... of the first node		32 bytes each
 *	message		int_wire.h's, without records (room 0)
 *
 * Lengths are in words of 4 bytes, and are those of the metadata alone. A node takes 1 from the hop
 * limit, and puts its metadata before those that are there, unless that exceeds max length. TCP's
 * checksum and the length in its pseudo-header are those without IFA's headers and metadata.
 *
 * What comes from where: headers, the order of the metadata and the unchanged checksum from the
 * examples that a maker of switches publishes with its SDK; protocol 253 from these and from the
 * design of SONiC's telemetry (TAM); the 32 bytes of LNS 1 and the codes of speeds from the layer
 * that Scapy has for revision 08 of the draft. What could not be read: the draft's own text on
 * request and action vectors, which switches of one domain (GNS 15) do not look at, and the size
 * of a cell. Cells and codes of speeds differ between chips and are parameters; a chip whose
 * metadata differ is another struct ifa_layout.
 */
#ifndef _LOWQ_INT_IFA_H
#define _LOWQ_INT_IFA_H

#include "int_wire.h"

#define IFA_PROTOCOL		253	/* RFC 3692: for experiments */
#define IFA_HEADER_LEN		4U
#define IFA_MD_HEADER_LEN	4U
#define IFA_MD_LEN		32U
#define IFA_MD_WORDS		(IFA_MD_LEN / 4)
#define IFA_VERSION_GNS		0x2fU	/* version 2; GNS 15: each node's namespace is its LNS */
#define IFA_NEXT_TCP		6U
#define IFA_HOP_LIMIT		255U	/* of a probe that no node has seen */
#define IFA_CELL_DEFAULT	208	/* bytes */

/* A field of the metadata: its first bit, from the most significant one of the first byte */
struct ifa_field {
	u16 at;
	u8 bits;
};

/**
 * struct ifa_layout - where nodes of a kind write what
 * @lns:	local namespace: which layout this is
 * @device:	ID of the node
 * @speed:	of the egress port, a code
 * @rx_s:	arrival, seconds
 * @port:	egress port
 * @rx_ns:	arrival, nanoseconds of the second
 * @residence:	ns from arrival to departure
 * @tx:		bytes that have left by the port
 * @cells:	queue, in cells
 */
struct ifa_layout {
	struct ifa_field lns, device, speed, rx_s, port, rx_ns, residence, tx, cells;
};

static const struct ifa_layout ifa_lns1 = {
	.lns		= { 0, 4 },
	.device		= { 4, 20 },	/* then the packet's TTL, 8 bits */
	.speed		= { 32, 4 },	/* then ECN, 2, and the queue's number, 6 bits */
	.rx_s		= { 44, 20 },
	.port		= { 64, 16 },	/* then the ingress port, 16 bits */
	.rx_ns		= { 96, 32 },
	.residence	= { 128, 32 },
	.tx		= { 160, 32 },
	.cells		= { 208, 16 },	/* reserved: 16 bits before, 32 after it */
};

#define IFA_CODES	16U	/* of speeds: 4 bits */
#define IFA_SPEEDS	7U	/* of these, known */
#define IFA_MBPS	10000, 25000, 40000, 50000, 100000, 200000, 400000
#define IFA_MBPS_MAX	1600000U

/* The speed that a code stands for, Mb/s; 0 for unknown codes */
static inline u32 ifa_speed_mbps(unsigned int code)
{
	static const u32 mbps[IFA_CODES] = { IFA_MBPS };

	return code < IFA_CODES ? mbps[code] : 0;
}

/* The code for a rate, or for the next lower one; IFA_SPEEDS: there is none */
static inline unsigned int ifa_speed_of(u64 bits_per_s)
{
	unsigned int code = IFA_SPEEDS;

	while (code-- > 0)
		if ((u64)ifa_speed_mbps(code) * 1000000 <= bits_per_s)
			return code;
	return IFA_SPEEDS;
}

static inline u32 ifa_get(const u8 *md, struct ifa_field f)
{
	unsigned int end = f.at + f.bits, i;
	u64 x = 0;

	for (i = f.at / 8; i * 8 < end; i++)
		x = x << 8 | md[i];
	return x >> (i * 8 - end) & (((u64)1 << f.bits) - 1);
}

/* The field was 0. What does not fit is cut off. */
static inline void ifa_put(u8 *md, struct ifa_field f, u32 value)
{
	unsigned int end = f.at + f.bits, i = (end - 1) / 8;
	u64 x = ((u64)value & (((u64)1 << f.bits) - 1)) << ((i + 1) * 8 - end);

	for (; x; x >>= 8)
		md[i--] |= x & 0xff;
}

/* Writes the headers before and after TCP's. @words: of metadata that fit */
static inline void ifa_build(u8 *ifa, u8 *md_header, unsigned int words, unsigned int hop_limit)
{
	ifa[0] = IFA_VERSION_GNS;
	ifa[1] = IFA_NEXT_TCP;
	ifa[2] = 0;
	ifa[3] = words;
	md_header[0] = 0xff;
	md_header[1] = 0;
	md_header[2] = hop_limit;
	md_header[3] = 0;
}

/* Is this the header of a packet that may have a message? */
static inline bool ifa_valid(const u8 *ifa)
{
	return ifa[0] == IFA_VERSION_GNS && ifa[1] == IFA_NEXT_TCP;
}

static inline u32 ifa_stack_len(const u8 *md_header)
{
	return md_header[3] * 4U;
}

/* May a node add its metadata? */
static inline bool ifa_has_room(const u8 *ifa, const u8 *md_header)
{
	return md_header[2] && md_header[3] + IFA_MD_WORDS <= ifa[3];
}

/* Writes a node's metadata: @h with its speed as @code. @cell: bytes, above 0 */
static inline void ifa_put_hop(u8 *md, const struct int_hop *h, unsigned int code, u32 cell)
{
	const struct ifa_layout *l = &ifa_lns1;
	u64 s = fp_div(h->ts, 1000000000);

	memset(md, 0, IFA_MD_LEN);
	ifa_put(md, l->lns, 1);
	ifa_put(md, l->device, h->node);
	ifa_put(md, l->speed, code);
	ifa_put(md, l->rx_s, (u32)s);
	ifa_put(md, l->port, h->port);
	ifa_put(md, l->rx_ns, (u32)(h->ts - s * 1000000000));
	ifa_put(md, l->tx, (u32)h->tx);
	ifa_put(md, l->cells, fp_min(h->qlen / cell, 0xffff));
}

/*
 * Reads them. Returns false if they are of another layout. @speeds: Mb/s by code, since switches
 * differ; 0, and what is above IFA_MBPS_MAX, is unknown
 */
static inline bool ifa_get_hop(const u8 *md, struct int_hop *h, u32 cell,
			       const u32 speeds[IFA_CODES])
{
	const struct ifa_layout *l = &ifa_lns1;
	u32 mbps;

	memset(h, 0, sizeof(*h));
	if (ifa_get(md, l->lns) != 1)
		return false;
	h->node = ifa_get(md, l->device);
	h->port = ifa_get(md, l->port);
	mbps = speeds[ifa_get(md, l->speed)];
	h->mbps = mbps <= IFA_MBPS_MAX ? mbps : 0;
	/* of the seconds 20 bits: after 12 days one sample cannot be compared */
	h->ts = (u64)ifa_get(md, l->rx_s) * 1000000000 + ifa_get(md, l->rx_ns) +
		ifa_get(md, l->residence);
	h->ts_bits = 40;
	h->tx = ifa_get(md, l->tx);
	h->tx_bits = 32;
	h->qlen = fp_min((u64)ifa_get(md, l->cells) * cell, U32_MAX);
	return true;
}

/*
 * Reads the stack that follows @md_header into @m, the first node first. @taken: by so many nodes
 * the probe has come; if not all have left metadata that can be read, nhop is above room.
 */
static inline void ifa_read(struct int_msg *m, const u8 *md_header, unsigned int taken, u32 cell,
			    const u32 speeds[IFA_CODES])
{
	unsigned int n = ifa_stack_len(md_header) / IFA_MD_LEN, i;
	const u8 *md = md_header + IFA_MD_HEADER_LEN;

	m->nhop = fp_max(n, taken);
	m->room = 0;
	m->path_id = (u32)1 << 31;
	if (n > INT_HOPS_MAX || n * IFA_MD_LEN != ifa_stack_len(md_header))
		return;
	for (i = n; i-- > 0; md += IFA_MD_LEN)
		if (!ifa_get_hop(md, &m->hop[i], cell, speeds))
			return;
	m->path_id = int_path_of(m->hop, n);
	m->room = n;
}

#endif /* _LOWQ_INT_IFA_H */
