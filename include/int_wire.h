/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-band telemetry on the wire, as HPCC++ carries it over TCP
 * (draft-miao-rtgwg-hpccplus-00, figure 4 and 7.2): what tcp_hpccpp sends, sch_int
 * stamps and int_reflector returns. Bytes and integers only: it compiles in user space, too.
 *
 * A probe or a response is the payload of a TCP segment of its flow that has PSH as
 * its only flag and no options, so that no TCP stack accepts its payload as data.
 *
 *	 0                   1                   2                   3
 *	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *	+---------------------------------------------------------------+
 *	|                        magic "INT1"                           |
 *	|     type      |     room      |     flags     |   reserved    |
 *	|                          probe id                             |
 *	|                     cookie (64 bits)                          |
 *	|                                                               |
 *	+---------------------------------------------------------------+ figure 4
 *	| nHop  |        pathID         |           padding             |
 *	+---------------------------------------------------------------+ x room
 *	| speed |                  timestamp                    |txBytes|
 *	|       txBytes (lower)         |         queue length          |
 *	+---------------------------------------------------------------+
 *	|                 options                       |    padding    |
 *	+---------------------------------------------------------------+
 *
 * The sender chooses room, the number of records, and thus the length, which never changes
 * on the way. A node adds 1 to nHop, XORs its 12-bit switch ID into pathID, and fills in the
 * next record if there is room for it.
 */
#ifndef _LOWQ_INT_WIRE_H
#define _LOWQ_INT_WIRE_H

#include "fixedpoint.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

#define INT_MAGIC		0x494e5431U	/* "INT1" */
#define INT_TYPE_OFFSET		4U		/* one byte each: type, room, flags */
#define INT_ROOM_OFFSET		5U
#define INT_FLAGS_OFFSET	6U
#define INT_ID_OFFSET		8U
#define INT_COOKIE_OFFSET	12U
#define INT_HEAD_LEN		20U
#define INT_BASE_LEN		4U
#define INT_HOP_LEN		8U
#define INT_OPTIONS_LEN		4U
#define INT_BASE_OFFSET		INT_HEAD_LEN
#define INT_HOPS_OFFSET		(INT_BASE_OFFSET + INT_BASE_LEN)

#define INT_NHOP_MAX		15U		/* nHop has 4 bits; 15 means 15 or more */
#define INT_HOPS_MAX		(INT_NHOP_MAX - 1)	/* most nodes whose records fit */
#define INT_HOPS_DEFAULT	5		/* draft 6.1: "no more than 5" */
#define INT_MSG_LEN_MAX		(INT_HOPS_OFFSET + INT_HOPS_MAX * INT_HOP_LEN + INT_OPTIONS_LEN)

/* From the pool for local use (RFC 2474, xxxx11) */
#define INT_DSCP_DEFAULT	23

#define INT_SWITCH_ID_MAX	0xfffU

enum int_format {
	INT_FORMAT_OLD = 0,	/* this file's: records in the message */
	INT_FORMAT_IFA = 1,	/* int_ifa.h */
	INT_FORMAT_MD = 2,	/* int_md.h */
	INT_FORMATS
};

enum int_type {
	INT_PROBE = 1,
	INT_RESPONSE = 2,	/* the telemetry of a probe */
	INT_WINDOW = 3,		/* receiver-based: the window, in the options */
};

#define INT_FLAG_RECEIVER	0x01	/* the receiver is to run the algorithm (6.3.2) */

/* Units of a record's fields */
#define INT_TS_SHIFT		6U
#define INT_TS_NS		64U	/* timestamp: wraps after 1.07 s */
#define INT_TS_BITS		24U
#define INT_TX_BITS		20U	/* in units that depend on the speed, see below */
#define INT_QLEN_BYTES		80U	/* queue length: 5.2 MB, saturates */
#define INT_QLEN_MAX		0xffffU
/*
 * The options, receiver-based: in a probe the window under which the bytes since the previous
 * probe were sent, in the answer W; bytes in Q8 >> 14, that is in units of 64 bytes.
 */
#define INT_OPTION_W_SHIFT	14U
#define INT_OPTION_MAX		0xffffffU

/**
 * struct int_record - a node's record on the wire, one snapshot of its egress port
 * @ts:		when the packet left, INT_TS_NS, 24 bits
 * @tx:		all that has left the port, in units of int_tx_unit(speed) bytes, 20 bits
 * @qlen:	queue behind the packet, in units of INT_QLEN_BYTES; INT_QLEN_MAX: or more
 * @speed:	of the port: an index into int_speed_mbps(), 0 is unknown
 */
struct int_record {
	u32 ts;
	u32 tx;
	u16 qlen;
	u8 speed;
};

/**
 * struct int_hop - a node's egress port when a probe left it, in whatever format it was sent
 * @ts:		the time, ns; begins again after 2^@ts_bits
 * @tx:		bytes that have left the port; begins again after 2^@tx_bits
 * @qlen:	queue behind the probe, bytes
 * @mbps:	the port's rate, Mb/s; 0: unknown
 * @node:	ID of the node; 0: unknown
 * @util:	what the port has sent of its rate of late, Q20, where @tx_bits is 0
 * @port:	ID of the port
 * @ts_bits:	1 to 40
 * @tx_bits:	1 to 40; 0: the format has @util in place of @tx
 */
struct int_hop {
	u64 ts;
	u64 tx;
	u32 qlen;
	u32 mbps;
	u32 node;
	u32 util;
	u16 port;
	u8 ts_bits;
	u8 tx_bits;
};

/**
 * struct int_msg - a probe or a response, parsed
 * @id:		of the probe, in serial arithmetic
 * @cookie:	the sender's; the response returns it unchanged
 * @options:	24 bits
 * @path_id:	of the nodes' IDs: another one is another path
 * @type:	enum int_type
 * @room:	number of records that fit
 * @flags:	INT_FLAG_...
 * @nhop:	nodes on the way; may be more than @room
 * @hop:	records; the first min(nhop, room) are filled in
 */
struct int_msg {
	u32 id;
	u64 cookie;
	u32 options;
	u32 path_id;
	u8 type;
	u8 room;
	u8 flags;
	u8 nhop;
	struct int_hop hop[INT_HOPS_MAX];
};

#define INT_SPEEDS	16U

/* The speed that an index stands for, Mb/s; 0 for unknown indices. */
static inline u32 int_speed_mbps(unsigned int speed)
{
	static const u32 mbps[INT_SPEEDS] = {
		0, 10, 100, 1000, 2500, 5000, 10000, 20000, 25000, 40000, 50000,
		100000, 200000, 400000, 800000, 1600000,
	};

	return speed < INT_SPEEDS ? mbps[speed] : 0;
}

/*
 * log2 of the unit of txBytes: 128 bytes up to 25 Gb/s, and doubled with the speed
 * beyond, so that the field wraps after 43 ms at least.
 */
static inline unsigned int int_tx_shift(unsigned int speed)
{
	u32 mbps = int_speed_mbps(speed);
	unsigned int shift = 7;

	while (mbps > 25000) {
		mbps = (mbps + 1) / 2;
		shift++;
	}
	return shift;
}

static inline u32 int_tx_unit(unsigned int speed)
{
	return (u32)1 << int_tx_shift(speed);
}

/* The speed index for a rate: that of the rate or the next lower; 0 if there is none. */
static inline unsigned int int_speed_of(u64 bits_per_s)
{
	unsigned int speed = INT_SPEEDS - 1;

	while (speed && (u64)int_speed_mbps(speed) * 1000000 > bits_per_s)
		speed--;
	return speed;
}

/* The path of nodes that tell their IDs and ports: FNV-1, in which the order counts */
static inline u32 int_path_of(const struct int_hop *hop, unsigned int n)
{
	u32 path = (u32)1 << 31;
	unsigned int i;

	for (i = 0; i < n; i++) {
		path = (path ^ hop[i].node) * 0x01000193U;
		path = (path ^ hop[i].port) * 0x01000193U | (u32)1 << 31;
	}
	return path;
}

/* The next higher speed that a record can show, Mb/s; 0: none */
static inline u32 int_next_mbps(u32 mbps)
{
	return int_speed_mbps(int_speed_of((u64)mbps * 1000000) + 1);
}

static inline u32 int_length(unsigned int room)
{
	return INT_HOPS_OFFSET + room * INT_HOP_LEN + INT_OPTIONS_LEN;
}

static inline u32 int_get32(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static inline u64 int_get64(const u8 *p)
{
	return (u64)int_get32(p) << 32 | int_get32(p + 4);
}

static inline void int_put32(u8 *p, u32 x)
{
	p[0] = x >> 24;
	p[1] = x >> 16 & 0xff;
	p[2] = x >> 8 & 0xff;
	p[3] = x & 0xff;
}

/* Figure 4's first word; the padding is kept as 0. */
static inline u32 int_base_word(unsigned int nhop, unsigned int path_id)
{
	return (u32)(nhop & 0xf) << 28 | (u32)(path_id & 0xfff) << 16;
}

/* The word after the node with @switch_id has updated it. nHop saturates. */
static inline u32 int_base_next(u32 base, unsigned int switch_id)
{
	unsigned int nhop = base >> 28;

	return int_base_word(nhop < INT_NHOP_MAX ? nhop + 1 : nhop, (base >> 16) ^ switch_id) |
	       (base & 0xffff);
}

static inline u32 int_record_word0(const struct int_record *r)
{
	return (u32)(r->speed & 0xf) << 28 | (r->ts & 0xffffff) << 4 | (r->tx >> 16 & 0xf);
}

static inline u32 int_record_word1(const struct int_record *r)
{
	return (r->tx & 0xffff) << 16 | r->qlen;
}

static inline void int_put_hop(u8 *p, const struct int_hop *h)
{
	unsigned int speed = int_speed_of((u64)h->mbps * 1000000);
	const struct int_record r = {
		.ts = (u32)(h->ts >> INT_TS_SHIFT),
		.tx = (u32)(h->tx >> int_tx_shift(speed)),
		.qlen = fp_min(h->qlen / INT_QLEN_BYTES, INT_QLEN_MAX),
		.speed = speed,
	};

	int_put32(p, int_record_word0(&r));
	int_put32(p + 4, int_record_word1(&r));
}

static inline void int_get_hop(const u8 *p, struct int_hop *h)
{
	u32 a = int_get32(p), b = int_get32(p + 4);
	unsigned int speed = a >> 28;

	memset(h, 0, sizeof(*h));
	h->mbps = int_speed_mbps(speed);
	h->ts = (u64)(a >> 4 & 0xffffff) << INT_TS_SHIFT;
	h->ts_bits = INT_TS_BITS + INT_TS_SHIFT;
	h->tx = (u64)((a & 0xf) << 16 | b >> 16) << int_tx_shift(speed);
	h->tx_bits = INT_TX_BITS + int_tx_shift(speed);
	h->qlen = (b & 0xffff) * INT_QLEN_BYTES;
}

/*
 * Is this the head of a message? @len is the length of the whole payload. If it is at least
 * INT_HEAD_LEN, then that many bytes can be read at @p.
 */
static inline bool int_head_valid(const u8 *p, u32 len)
{
	return len >= INT_HEAD_LEN && int_get32(p) == INT_MAGIC &&
	       p[INT_TYPE_OFFSET] >= INT_PROBE && p[INT_TYPE_OFFSET] <= INT_WINDOW &&
	       p[INT_ROOM_OFFSET] <= INT_HOPS_MAX && len == int_length(p[INT_ROOM_OFFSET]);
}

/* Parses @len bytes at @p. Returns false, and leaves *@m as it is, if they are malformed. */
static inline bool int_parse(struct int_msg *m, const u8 *p, u32 len)
{
	u32 base;
	unsigned int i;

	if (!int_head_valid(p, len))
		return false;
	memset(m, 0, sizeof(*m));
	m->type = p[INT_TYPE_OFFSET];
	m->room = p[INT_ROOM_OFFSET];
	m->flags = p[INT_FLAGS_OFFSET];
	m->id = int_get32(p + INT_ID_OFFSET);
	m->cookie = int_get64(p + INT_COOKIE_OFFSET);
	base = int_get32(p + INT_BASE_OFFSET);
	m->nhop = base >> 28;
	m->path_id = base >> 16 & 0xfff;
	for (i = 0; i < m->room && i < m->nhop; i++)
		int_get_hop(p + INT_HOPS_OFFSET + i * INT_HOP_LEN, &m->hop[i]);
	m->options = int_get32(p + INT_HOPS_OFFSET + m->room * INT_HOP_LEN) >> 8;
	return true;
}

/* Writes a message of int_length(m->room) bytes to @p; room <= INT_HOPS_MAX. */
static inline void int_build(u8 *p, const struct int_msg *m)
{
	unsigned int i;

	memset(p, 0, int_length(m->room));
	int_put32(p, INT_MAGIC);
	p[INT_TYPE_OFFSET] = m->type;
	p[INT_ROOM_OFFSET] = m->room;
	p[INT_FLAGS_OFFSET] = m->flags;
	int_put32(p + INT_ID_OFFSET, m->id);
	int_put32(p + INT_COOKIE_OFFSET, m->cookie >> 32);
	int_put32(p + INT_COOKIE_OFFSET + 4, (u32)m->cookie);
	int_put32(p + INT_BASE_OFFSET, int_base_word(m->nhop, m->path_id));
	for (i = 0; i < m->room && i < m->nhop; i++)
		int_put_hop(p + INT_HOPS_OFFSET + i * INT_HOP_LEN, &m->hop[i]);
	int_put32(p + INT_HOPS_OFFSET + m->room * INT_HOP_LEN, m->options << 8);
}

/*
 * Writes the answer to @probe, whose head is valid, to @p: int_length(@room) bytes, where @room is
 * at most the probe's. Without a window @w it is the telemetry; @w is in units of the options.
 */
static inline void int_answer(u8 *p, const u8 *probe, unsigned int room, u32 w)
{
	u32 options = INT_HOPS_OFFSET + room * INT_HOP_LEN;

	memcpy(p, probe, options);
	p[INT_TYPE_OFFSET] = w ? INT_WINDOW : INT_RESPONSE;
	p[INT_ROOM_OFFSET] = room;
	int_put32(p + options, w << 8);
}

#endif /* _LOWQ_INT_WIRE_H */
