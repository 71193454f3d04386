// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/int_ifa.h: the documented layout byte by byte, its limits, and what nodes and
 * ends do with a stack of metadata (H21, H26).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "int_ifa.h"
#include "int_wire_oracle.h"

/* Two nodes of 100 Gb/s and 25 Gb/s, by hand */
static const u8 vector[] = {
	0xff, 0, 253, 16,		/* request, action, hop limit, words */
	0x10, 0x00, 0xc8, 0x3f,		/* LNS 1, device 200, TTL */
	0x40, 0x06, 0x78, 0x00,		/* speed 4, queue 0, seconds 0x67800 */
	0x00, 0xcb, 0x00, 0xc9,		/* egress port 203, ingress port */
	0x09, 0xff, 0x44, 0x36,		/* nanoseconds */
	0x00, 0x00, 0x03, 0xe8,		/* residence: 1000 ns */
	0xff, 0xff, 0xff, 0xfe,		/* bytes */
	0x00, 0x00, 0x01, 0x00,		/* 256 cells */
	0x00, 0x00, 0x00, 0x00,
	0x1f, 0xff, 0xff, 0xff,		/* LNS 1, device 0xfffff, TTL 255 */
	0x1c, 0x00, 0x00, 0x01,		/* speed 1, ECN 3, second 1 */
	0x00, 0x01, 0x00, 0x02,
	0x00, 0x00, 0x00, 0x05,
	0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x07,
	0xde, 0xad, 0x00, 0x00,		/* reserved bits do not count */
	0xde, 0xad, 0xbe, 0xef,
};

static const u32 codes[IFA_CODES] = { IFA_MBPS };
/* of switches whose codes are others; no rate is above what the model takes */
static const u32 others[IFA_CODES] = { [1] = 50000, [4] = 1600001 };

static void ifa_read__vector(void **state)
{
	struct int_msg m = { 0 };
	u32 path;

	(void)state;
	ifa_read(&m, vector, 2, 208, codes);
	assert_int_equal(m.nhop, 2);
	assert_int_equal(m.room, 2);
	/* the first node is the last of the stack */
	assert_int_equal(m.hop[0].node, 0xfffff);
	assert_int_equal(m.hop[0].port, 1);
	assert_int_equal(m.hop[0].mbps, 25000);
	assert_int_equal(m.hop[0].ts, 1000000005);
	assert_int_equal(m.hop[0].tx, 7);
	assert_int_equal(m.hop[0].qlen, 0);
	assert_int_equal(m.hop[1].node, 200);
	assert_int_equal(m.hop[1].port, 203);
	assert_int_equal(m.hop[1].mbps, 100000);
	assert_true(m.hop[1].ts == 0x67800ULL * 1000000000 + 0x09ff4436 + 1000);
	assert_int_equal(m.hop[1].tx, 0xfffffffe);
	assert_int_equal(m.hop[1].qlen, 256 * 208);
	assert_int_equal(m.hop[1].tx_bits, 32);
	path = m.path_id;
	assert_true(path >> 31);
	ifa_read(&m, vector, 2, 208, others);
	assert_int_equal(m.hop[0].mbps, 50000);
	assert_int_equal(m.hop[1].mbps, 0);
	/* a node that has left no metadata */
	ifa_read(&m, vector, 3, 208, codes);
	assert_true(m.nhop > m.room);
	assert_int_equal(m.path_id, path);
}

/* Two links between the same switches are two paths, and the order of nodes counts. */
static void ifa_read__path(void **state)
{
	u8 other[sizeof(vector)];
	struct int_msg a = { 0 }, b = { 0 };

	(void)state;
	ifa_read(&a, vector, 2, 208, codes);
	memcpy(other, vector, sizeof(other));
	other[4 + 9] ^= 1;	/* the egress port */
	ifa_read(&b, other, 2, 208, codes);
	assert_true(a.path_id != b.path_id);
	memcpy(other + 4, vector + 4 + IFA_MD_LEN, IFA_MD_LEN);
	memcpy(other + 4 + IFA_MD_LEN, vector + 4, IFA_MD_LEN);
	ifa_read(&b, other, 2, 208, codes);
	assert_true(a.path_id != b.path_id);
}

/* Another layout, half of a record, or more nodes than a sender has room for: not all records */
static void ifa_read__nonsense(void **state)
{
	u8 other[IFA_MD_HEADER_LEN + 256 * 4];
	struct int_msg m = { 0 };
	unsigned int words;

	(void)state;
	memset(other, 0, sizeof(other));
	memcpy(other, vector, sizeof(vector));
	other[4] = 0x20;
	ifa_read(&m, other, 2, 208, codes);
	assert_true(m.nhop > m.room);
	memcpy(other, vector, sizeof(vector));
	for (words = 0; words < 256; words++) {
		unsigned int i;

		for (i = 0; i < 31; i++)
			memcpy(other + 4 + i * IFA_MD_LEN, vector + 4, IFA_MD_LEN);
		other[3] = words;
		ifa_read(&m, other, words / 8, 208, codes);
		if (words % 8 || words / 8 > INT_HOPS_MAX)
			expect(!m.room && (m.nhop || words < 8), "%u words: %u", words,
			       m.room);
		else
			expect(m.nhop == words / 8 && m.room == m.nhop, "%u words: %u", words,
			       m.nhop);
	}
}

/* What one writes the other reads, in units of the format. */
static void ifa_put_hop__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u32 cell = 1 + rnd_upto(65534);
		unsigned int code = rnd() % IFA_SPEEDS;
		const struct int_hop h = {
			.ts = rnd_upto((u64)1 << 50), .tx = rnd_upto(U64_MAX),
			.qlen = rnd_upto(U32_MAX), .node = rnd_upto(0xfffff),
			.port = rnd_upto(0xffff),
		};
		struct int_hop back;
		u8 md[IFA_MD_LEN];

		ifa_put_hop(md, &h, code, cell);
		assert_true(ifa_get_hop(md, &back, cell, codes));
		expect(back.node == h.node && back.port == h.port, "%u %u", back.node, back.port);
		expect(back.mbps == ifa_speed_mbps(code), "%u", back.mbps);
		expect(back.tx == (u32)h.tx, "%lu", back.tx);
		expect(back.ts % 1000000000 == h.ts % 1000000000, "%lu", back.ts);
		expect(back.ts / 1000000000 == (h.ts / 1000000000 & 0xfffff), "%lu", back.ts);
		expect(back.qlen == fp_min((u64)fp_min(h.qlen / cell, 0xffff) * cell, U32_MAX),
		       "%u of %u", back.qlen, h.qlen);
	}
}

/* A probe that passes nodes until it has no room; each takes one from the hop limit. */
static void ifa_has_room__grows(void **state)
{
	u8 ifa[IFA_HEADER_LEN], md[IFA_MD_HEADER_LEN];
	unsigned int nodes;

	(void)state;
	ifa_build(ifa, md, 3 * IFA_MD_WORDS, IFA_HOP_LIMIT);
	assert_true(ifa_valid(ifa));
	assert_int_equal(ifa_stack_len(md), 0);
	for (nodes = 0; ifa_has_room(ifa, md); nodes++)
		md[3] += IFA_MD_WORDS;
	assert_int_equal(nodes, 3);
	/* an answer: nobody adds to it */
	ifa_build(ifa, md, 255, 0);
	assert_false(ifa_has_room(ifa, md));
	ifa[0] = 0x1f;
	assert_false(ifa_valid(ifa));
	ifa[0] = IFA_VERSION_GNS;
	ifa[1] = 17;
	assert_false(ifa_valid(ifa));
}

/* On the wire: a code must never stand for another speed. */
static void ifa_speed_mbps__codes(void **state)
{
	static const u32 gbps[] = { 10, 25, 40, 50, 100, 200, 400 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(gbps); i++) {
		assert_int_equal(ifa_speed_mbps(i), gbps[i] * 1000);
		assert_int_equal(ifa_speed_of(gbps[i] * 1000000000ULL), i);
		assert_int_equal(ifa_speed_of(gbps[i] * 1000000000ULL - 1), i ? i - 1 : IFA_SPEEDS);
	}
	assert_int_equal(ifa_speed_mbps(IFA_SPEEDS), 0);
	assert_int_equal(ifa_speed_of(U64_MAX), IFA_SPEEDS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ifa_read__vector),
		cmocka_unit_test(ifa_read__path),
		cmocka_unit_test(ifa_read__nonsense),
		cmocka_unit_test(ifa_put_hop__any),
		cmocka_unit_test(ifa_has_room__grows),
		cmocka_unit_test(ifa_speed_mbps__codes),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
