// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of roce/roce_wire.h: the CNP's bytes, and the ICRC against one that is
 * computed bit by bit from the specification (annex A17: Ethernet's CRC-32 over eight
 * bytes of ones, then the packet with its variable fields set to ones). R5, R12.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oracle.h"
#include "crc32_oracle.h"
#include "roce_wire.h"

static void roce_icrc_headers__seed(void **state)
{
	static const u8 ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };

	(void)state;
	assert_int_equal(crc32_le(0xffffffff, ones, sizeof(ones)), ROCE_ICRC_SEED);
}

/* Bits that routers change do not change the ICRC; all other bits do. */
static void roce_icrc_headers__variant_fields(void **state)
{
	static const struct {
		unsigned int ip_bytes, at;
		u8 mask;	/* bits of this byte that may change */
	} variant[] = {
		{ 20, 1, 0xff }, { 20, 8, 0xff }, { 20, 10, 0xff }, { 20, 11, 0xff },
		{ 20, 26, 0xff }, { 20, 27, 0xff }, { 20, 32, 0xff },
		{ 40, 0, 0x0f }, { 40, 1, 0xff }, { 40, 2, 0xff }, { 40, 3, 0xff },
		{ 40, 7, 0xff }, { 40, 46, 0xff }, { 40, 47, 0xff }, { 40, 52, 0xff },
	};
	u8 packet[60], changed[60];
	unsigned int v, i, k, n, bit;

	(void)state;
	for (v = 20; v <= 40; v += 20) {
		n = v + ROCE_UDP_BYTES + ROCE_BTH_BYTES;
		for (i = 0; i < sizeof(packet); i++)
			packet[i] = rnd();
		for (i = 0; i < n; i++)
			for (bit = 0; bit < 8; bit++) {
				bool may = false;

				for (k = 0; k < ARRAY_SIZE(variant); k++)
					may |= variant[k].ip_bytes == v && variant[k].at == i &&
					       variant[k].mask >> bit & 1;
				memcpy(changed, packet, sizeof(packet));
				changed[i] ^= 1 << bit;
				expect((roce_icrc_headers(packet, v) ==
					roce_icrc_headers(changed, v)) == may,
				       "IP of %u bytes, byte %u, bit %u", v, i, bit);
			}
	}
}

static void roce_cnp_write__bytes(void **state)
{
	static const u8 want[28] = { 0x81, 0, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56 };
	struct roce_bth bth;
	u8 b[28];

	(void)state;
	memset(b, 0xaa, sizeof(b));
	roce_cnp_write(b, 0x123456);
	assert_memory_equal(b, want, sizeof(want));
	roce_bth_read(&bth, b);
	assert_int_equal(bth.opcode, ROCE_OPCODE_CNP);
	assert_int_equal(bth.dest_qp, 0x123456);
	assert_int_equal(bth.psn, 0);
	assert_int_equal(bth.tver, 0);
	assert_true(bth.becn);
}

/* A datagram of each length that the UDP header and the link can give */
static void roce_read__lengths(void **state)
{
	static const u8 opcodes[] = { 4, 0x24, 0x64, ROCE_OPCODE_CNP };
	u8 b[80] = { 0xc0, 0x00, ROCE_UDP_PORT >> 8, ROCE_UDP_PORT & 0xff };
	struct roce_packet p;
	unsigned int o, len, left;

	(void)state;
	for (o = 0; o < ARRAY_SIZE(opcodes); o++)
		for (len = 0; len < sizeof(b); len++)
			for (left = 0; left < sizeof(b); left++) {
				unsigned int least = opcodes[o] == 0x64 ? 32 : 24;

				b[5] = len;
				b[8] = opcodes[o];
				memcpy(b + 13, "\x12\x34\x56", 3);
				memcpy(b + 25, "\xab\xcd\xef", 3);
				expect(roce_read(&p, b, left) == (len >= least && len <= left),
				       "opcode %x, length %u of %u", opcodes[o], len, left);
				if (len < least || len > left)
					continue;
				assert_int_equal(p.bth.dest_qp, 0x123456);
				assert_int_equal(p.source_qp, least == 32 ? 0xabcdef : 0);
				assert_int_equal(p.sport, 0xc000);
				assert_int_equal(p.ib_bytes, len - 8);
			}
	b[3]++;
	assert_false(roce_read(&p, b, sizeof(b)));
}

static void roce_icrc_ok__round_trip(void **state)
{
	u8 b[4];
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		u32 crc = rnd();

		roce_icrc_write(b, crc);
		assert_true(roce_icrc_ok(b, crc));
		b[i % 4] ^= 1 << (i / 4 % 8);
		assert_false(roce_icrc_ok(b, crc));
	}
	/* CRC-32 of "123456789" is cbf43926, sent low byte first */
	roce_icrc_write(b, crc32_le(0xffffffff, "123456789", 9));
	assert_memory_equal(b, "\x26\x39\xf4\xcb", 4);
}

/* Each RC operation, by name */
static void roce_is_response__opcodes(void **state)
{
	static const bool response[32] = {
		[13] = true, [14] = true, [15] = true, [16] = true, [17] = true, [18] = true
	};
	static const bool bare[32] = {
		[12] = true, [17] = true, [18] = true, [19] = true, [20] = true
	};
	static const bool starts[32] = { [13] = true, [16] = true };
	unsigned int opcode;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		expect(roce_is_response(opcode) == (opcode < 32 && response[opcode]), "%u", opcode);
		expect(roce_is_bare(opcode) == (opcode < 32 && bare[opcode]), "%u", opcode);
		expect(roce_starts_read(opcode) == (opcode < 32 && starts[opcode]), "%u", opcode);
	}
}

/* PSNs wrap at 24 bits: the half before a PSN is before it, the half after it is after it. */
static void roce_psn_after__wraps(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u32 psn = rnd() & 0xffffff;
		int distance = (int)(rnd() & 0xffffff) - 0x800000;

		expect(roce_psn_after((psn + distance) & 0xffffff, psn) == distance, "%d",
		       distance);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roce_icrc_headers__seed),
		cmocka_unit_test(roce_icrc_headers__variant_fields),
		cmocka_unit_test(roce_cnp_write__bytes),
		cmocka_unit_test(roce_read__lengths),
		cmocka_unit_test(roce_icrc_ok__round_trip),
		cmocka_unit_test(roce_is_response__opcodes),
		cmocka_unit_test(roce_psn_after__wraps),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests_name("roce_wire", tests, NULL, NULL);
}
