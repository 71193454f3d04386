// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/int_wire.h: the layout of figure 4, byte by byte, sizes, units, and the
 * changes that nodes make on the way (H6, H7, H16).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "int_wire_oracle.h"

static void int_length__sizes(void **state)
{
	(void)state;
	assert_int_equal(int_length(0), 28);
	assert_int_equal(int_length(INT_HOPS_DEFAULT), 68);
	assert_int_equal(int_length(INT_HOPS_MAX), INT_MSG_LEN_MAX);
	assert_int_equal(INT_MSG_LEN_MAX, 140);
	assert_true(INT_HOPS_DEFAULT >= 5);
}

/* Figure 4 with its two hops, by hand */
static void int_build__figure_4(void **state)
{
	static const u8 want[] = {
		'I', 'N', 'T', '1', 1, 2, 1, 0,			/* head */
		0x01, 0x23, 0x45, 0x67,				/* id */
		0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10,	/* cookie */
		0x2a, 0xbc, 0, 0,				/* nHop 2, pathID, padding */
		0x61, 0x23, 0x45, 0x6f,				/* speed, timestamp, txBytes */
		0x0f, 0x0f, 0xff, 0xff,				/* txBytes, queue length */
		0xbf, 0xff, 0xff, 0xf0, 0, 1, 0, 2,
		0xab, 0xcd, 0xef, 0,				/* options, padding */
	};
	struct int_msg m = {
		.type = INT_PROBE, .room = 2, .flags = INT_FLAG_RECEIVER, .id = 0x1234567,
		.cookie = 0xfedcba9876543210, .nhop = 2, .path_id = 0xabc, .options = 0xabcdef,
		.hop = {
			{ .mbps = 10000, .ts = 0x123456 * 64, .tx = 0xf0f0f * 128,
			  .qlen = 0xffff * 80, .ts_bits = 30, .tx_bits = 27 },
			{ .mbps = 100000, .ts = 0xffffff * 64, .tx = 1 * 512, .qlen = 2 * 80,
			  .ts_bits = 30, .tx_bits = 29 },
		},
	}, back;
	u8 got[INT_MSG_LEN_MAX];

	(void)state;
	assert_int_equal(sizeof(want), int_length(2));
	int_build(got, &m);
	assert_memory_equal(got, want, sizeof(want));
	assert_true(int_parse(&back, want, sizeof(want)));
	int_msg_expect_equal(&m, &back);
}

static void int_parse__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		struct int_msg m = any_message(), back;
		u8 buf[INT_MSG_LEN_MAX];

		int_build(buf, &m);
		expect(int_parse(&back, buf, int_length(m.room)), "room %u", m.room);
		int_msg_expect_equal(&m, &back);
		/* a byte less, a byte more, another type, more room than the length allows */
		expect(!int_parse(&back, buf, int_length(m.room) - 1), "room %u", m.room);
		expect(!int_parse(&back, buf, int_length(m.room) + 1), "room %u", m.room);
		buf[4] = 3 + 1 + rnd() % 200;
		expect(!int_parse(&back, buf, int_length(m.room)), "type %u", buf[4]);
		buf[4] = INT_PROBE;
		buf[5] ^= 1 << rnd() % 8;
		expect(!int_parse(&back, buf, int_length(m.room)), "room %u", buf[5]);
	}
}

/* The answer to any probe: its telemetry, or a window without it; head, pathID and nHop stay. */
static void int_answer__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		struct int_msg m = any_message(), want = m, back;
		u8 probe[INT_MSG_LEN_MAX], answer[INT_MSG_LEN_MAX];
		u32 w = rnd() & INT_OPTION_MAX;

		int_build(probe, &m);
		int_answer(answer, probe, m.room, 0);
		expect(int_parse(&back, answer, int_length(m.room)), "room %u", m.room);
		want.type = INT_RESPONSE;
		want.options = 0;
		int_msg_expect_equal(&want, &back);
		if (!w)
			continue;
		int_answer(answer, probe, 0, w);
		expect(int_parse(&back, answer, int_length(0)), "room %u", m.room);
		want.type = INT_WINDOW;
		want.room = 0;
		memset(want.hop, 0, sizeof(want.hop));
		want.options = w;
		int_msg_expect_equal(&want, &back);
	}
}

/* A path of any length: nHop counts up to 15, the IDs are XORed, the rest stays. */
static void int_base_next__path(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		unsigned int nodes = rnd() % 20, path = 0, n;
		u32 base = int_base_word(0, 0) | 0x1234;

		for (n = 0; n < nodes; n++) {
			unsigned int id = rnd() & 0xfff;

			path ^= id;
			base = int_base_next(base, id);
		}
		expect(base >> 28 == fp_min(nodes, 15), "%u nodes: %x", nodes, base);
		expect((base >> 16 & 0xfff) == path, "%u nodes: %x", nodes, base);
		expect((base & 0xffff) == 0x1234, "%u nodes: %x", nodes, base);
	}
}

/* On the wire: a code must never stand for another speed. Ethernet's, in Gb/s */
static void int_speed_mbps__codes(void **state)
{
	static const double gbps[] = {
		0, .01, .1, 1, 2.5, 5, 10, 20, 25, 40, 50, 100, 200, 400, 800, 1600,
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(gbps); i++)
		assert_int_equal(int_speed_mbps(i), lround(gbps[i] * 1000));
}

/* The unit is 128 bytes * max(1, B / 25 Gb/s), up to a power of 2; wraps in 43 ms or more. */
static void int_tx_unit__wraps(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 1; i < INT_SPEEDS; i++) {
		double mbps = int_speed_mbps(i), unit = fmax(1, mbps / 25000) * 128;

		assert_true(int_tx_unit(i) >= unit && int_tx_unit(i) < 2 * unit);
		assert_true(unit * (1 << INT_TX_BITS) * 8 / (mbps * 1e6) > 0.0429);
		assert_true(int_speed_mbps(i) > int_speed_mbps(i - 1));
		assert_int_equal(int_speed_of((u64)int_speed_mbps(i) * 1000000), i);
		assert_int_equal(int_speed_of((u64)int_speed_mbps(i) * 1000000 - 1), i - 1);
	}
	assert_int_equal(int_speed_mbps(INT_SPEEDS), 0);
	assert_int_equal(int_speed_mbps(U32_MAX), 0);
	assert_int_equal(int_speed_of(0), 0);
	assert_int_equal(int_speed_of(U64_MAX), INT_SPEEDS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(int_length__sizes),
		cmocka_unit_test(int_build__figure_4),
		cmocka_unit_test(int_parse__any),
		cmocka_unit_test(int_answer__any),
		cmocka_unit_test(int_base_next__path),
		cmocka_unit_test(int_speed_mbps__codes),
		cmocka_unit_test(int_tx_unit__wraps),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
