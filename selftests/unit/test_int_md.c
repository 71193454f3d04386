// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/int_md.h: INT-MD's layout byte by byte, its limits, and what nodes and ends do
 * with a stack of metadata (H22).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hpccpp_oracle.h"
#include "int_md.h"

/* The specification's example in its words, with what HPCC++ asks for, of two nodes */
static const u8 vector[] = {
	0x10, 15, 0, 0,			/* shim: type 1, length */
	0x20, 0, 6, 3,			/* version 2, hop ML 6, 3 hops remain */
	0xd5, 0x00, 0, 0,		/* bits 0, 1, 3, 5, 7 */
	0, 0, 0, 0,
	0, 0, 0, 200,			/* node ID */
	0, 9, 0, 203,			/* ports */
	3, 0, 1, 0,			/* queue 3: 256 cells */
	0, 0, 0, 1, 0, 0, 0, 5,		/* time of departure */
	0x00, 0x07, 0xa1, 0x20,		/* 500000 millionths */
	0, 0, 0, 1,
	0, 0, 0, 2,
	0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 9,
	0x00, 0x0f, 0x42, 0x40,
};

static void md_read__vector(void **state)
{
	struct int_msg m = { 0 };
	u8 other[sizeof(vector)];
	u32 path;

	(void)state;
	assert_true(md_valid(vector));
	assert_int_equal(md_stack_len(vector), 2 * MD_LEN);
	md_read(&m, vector, md_taken(vector), 208, 25000);
	assert_int_equal(m.nhop, 2);
	assert_int_equal(m.room, 2);
	/* the first node is the last of the stack */
	assert_int_equal(m.hop[0].node, 1);
	assert_int_equal(m.hop[0].util, 1 << 20);
	assert_int_equal(m.hop[1].node, 200);
	assert_int_equal(m.hop[1].port, 203);
	assert_int_equal(m.hop[1].qlen, 256 * 208);
	assert_true(m.hop[1].ts == ((u64)1 << 32) + 5);
	assert_int_equal(m.hop[1].util, 1 << 19);
	assert_int_equal(m.hop[1].mbps, 25000);
	assert_int_equal(m.hop[1].tx_bits, 0);
	path = m.path_id;
	/* another port is another path */
	memcpy(other, vector, sizeof(other));
	other[MD_HEADER_LEN + 7] = 204;
	md_read(&m, other, 2, 208, 25000);
	assert_true(m.path_id != path);
	/* a node had no room, which a response's own way cannot add or hide */
	other[4] |= 4;
	assert_int_equal(md_taken(other), 3);
	md_read(&m, other, md_taken(other), 208, 25000);
	assert_true(m.nhop > m.room);
	md_read(&m, other, 2, 208, 25000);
	assert_int_equal(m.nhop, m.room);
	/* a node that does not know its queue, and a path whose rate is not given */
	memset(other + MD_HEADER_LEN + 8, 0xff, 4);
	md_read(&m, other, 2, 208, 25000);
	assert_int_equal(m.hop[1].mbps, 0);
	md_read(&m, vector, 2, 208, 0);
	assert_int_equal(m.hop[0].mbps, 0);
}

/* Headers that ask for other metadata, or are too short, are none. */
static void md_valid__others(void **state)
{
	static const struct {
		u8 at, value;
	} bad[] = {
		{ 0, 0x20 }, { 0, 'I' }, { 1, 2 }, { 4, 0x10 }, { 6, 5 }, { 8, 0xd4 }, { 9, 1 },
	};
	u8 other[MD_HEADER_LEN];
	size_t i;

	(void)state;
	md_build(other, 5);
	assert_true(md_valid(other));
	assert_int_equal(md_stack_len(other), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		md_build(other, 5);
		other[bad[i].at] = bad[i].value;
		expect(!md_valid(other), "%zu", i);
	}
	md_build(other, 0);
	assert_false(md_has_room(other));
	md_build(other, 255);
	assert_true(md_has_room(other));
	other[1] = 250;
	assert_false(md_has_room(other));
}

/* What one writes the other reads, in units of the format. */
static void md_put_hop__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u32 cell = 1 + rnd_upto(65534), mbps = 1 + rnd_upto(1600000);
		const struct int_hop h = {
			.ts = rnd_upto(((u64)1 << 40) - 1), .util = rnd_upto(4 << 20),
			.qlen = rnd_upto(U32_MAX), .node = rnd_upto(U32_MAX),
			.port = rnd_upto(0xffff),
		};
		struct int_hop back;
		u8 md[MD_LEN];

		md_put_hop(md, &h, cell);
		md_get_hop(md, &back, cell, mbps);
		expect(back.node == h.node && back.port == h.port, "%u %u", back.node, back.port);
		expect(back.ts == h.ts && back.mbps == mbps, "%lu %u", back.ts, back.mbps);
		expect(h.util - back.util <= 3, "%u of %u", back.util, h.util);
		expect(back.qlen == fp_min(h.qlen / cell, 0xffffff) * cell, "%u of %u", back.qlen,
		       h.qlen);
	}
}

/* The load of a link is its utilisation, and the shorter queue: as by bytes at a constant rate */
static void md_load__as_by_bytes(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u64 ns = rnd_range(1000, 1000000), share = rnd_upto(1000);
		struct port a = { .speed = 6, .ns = rnd_upto(1 << 30), .queue = rnd_upto(1 << 20) };
		struct int_hop old, new;
		struct port b = a;
		u32 u, dt;

		b.ns += ns;
		b.bytes = ns * 10 * share / 8000;
		old = (struct int_hop){ .ts = a.ns, .ts_bits = 40, .mbps = 10000, .qlen = a.queue };
		new = (struct int_hop){
			.ts = b.ns, .ts_bits = 40, .mbps = 10000, .qlen = b.queue,
			.util = share * (1 << 20) / 1000,
		};
		assert_true(hpccpp_link_load(&old, &new, 100000, ns, &u, &dt));
		assert_int_equal(dt, ns);
		expect(near_abs(u / (long double)HPCCPP_U_ONE,
				share / 1000.0L + fp_min(a.queue, b.queue) / 125000.0L, 0.0001L),
		       "%u", u);
		/* time that stands still, or went back */
		assert_false(hpccpp_link_load(&new, &new, 100000, ns, &u, &dt));
		assert_false(hpccpp_link_load(&new, &old, 100000, ns, &u, &dt));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(md_read__vector),
		cmocka_unit_test(md_valid__others),
		cmocka_unit_test(md_put_hop__any),
		cmocka_unit_test(md_load__as_by_bytes),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
