/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes random messages of int_wire.h and compares them: used by the tests and the fuzzers.
 */
#ifndef _LOWQ_INT_WIRE_ORACLE_H
#define _LOWQ_INT_WIRE_ORACLE_H

#include "int_wire.h"
#include "oracle.h"

/* Any record that a node may write */
static inline struct int_hop any_hop(void)
{
	const struct int_record r = {
		.speed = rnd_upto(15), .ts = rnd_upto(0xffffff), .tx = rnd_upto(0xfffff),
		.qlen = rnd_upto(INT_QLEN_MAX),
	};
	struct int_hop h;
	u8 p[INT_HOP_LEN];

	int_put32(p, int_record_word0(&r));
	int_put32(p + 4, int_record_word1(&r));
	int_get_hop(p, &h);
	return h;
}

/* Any values that fit the fields */
static inline struct int_msg any_message(void)
{
	struct int_msg m = { .type = 1 };
	unsigned int i;

	m.type += rnd() % 3;
	m.room = rnd_upto(INT_HOPS_MAX);
	m.flags = rnd_upto(255);
	m.nhop = rnd_upto(15);
	m.path_id = rnd_upto(0xfff);
	m.id = rnd_upto(U32_MAX);
	m.cookie = rnd_upto(U64_MAX);
	m.options = rnd_upto(INT_OPTION_MAX);
	for (i = 0; i < m.room && i < m.nhop; i++)
		m.hop[i] = any_hop();
	return m;
}

static inline void int_msg_expect_equal(const struct int_msg *a, const struct int_msg *b)
{
	unsigned int i;

	expect(a->type == b->type && a->room == b->room && a->flags == b->flags,
	       "%u %u %u", b->type, b->room, b->flags);
	expect(a->id == b->id && a->cookie == b->cookie && a->options == b->options,
	       "%u %lu %u", b->id, b->cookie, b->options);
	expect(a->nhop == b->nhop && a->path_id == b->path_id, "%u %u", b->nhop, b->path_id);
	for (i = 0; i < INT_HOPS_MAX; i++)
		expect(!memcmp(&a->hop[i], &b->hop[i], sizeof(a->hop[i])),
		       "hop %u: %u %lu %lu %u", i, b->hop[i].mbps, b->hop[i].ts, b->hop[i].tx,
		       b->hop[i].qlen);
}

#endif /* _LOWQ_INT_WIRE_ORACLE_H */
