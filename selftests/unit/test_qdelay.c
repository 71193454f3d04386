// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of two parts of lab/tools/qdelay: percentiles (dist.c) against sorted values, and
 * sequence space (seen.c) against a byte map.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../lab/tools/qdelay/dist.c"
#include "../../lab/tools/qdelay/seen.c"

#define VALUES	20000

static const struct {
	u32 num, den;
} percentiles[] = { { 1, 2 }, { 9, 10 }, { 99, 100 }, { 999, 1000 } };

/* Of all magnitudes up to 2^47. */
static u64 any_value(void)
{
	u64 v = (u64)random() << 16 ^ random();

	return v >> random() % 47;
}

static int cmp(const void *a, const void *b)
{
	return cmp_u64(a, b);
}

/* The value of nearest rank of @n sorted values; @weight of each, NULL: 1 */
static u64 percentile(const u64 *v, const u64 *weight, u32 n, u32 num, u32 den)
{
	u64 total = 0, seen = 0;
	u32 i;

	for (i = 0; i < n; i++)
		total += weight ? weight[i] : 1;
	for (i = 0; i < n; i++) {
		seen += weight ? weight[i] : 1;
		if (seen * den >= total * num)
			break;
	}
	return v[i];
}

static void check(struct dist *d, const u64 *v, const u64 *weight, u32 n, double error)
{
	for (u32 i = 0; i < ARRAY_SIZE(percentiles); i++) {
		u32 num = percentiles[i].num, den = percentiles[i].den;
		double want = percentile(v, weight, n, num, den);
		double is = dist_percentile(d, num, den);

		if (fabs(is - want) > error * want)
			fail_msg("%u/%u of %u: %.3f, not %.3f", num, den, n, is, want);
	}
	assert_true(dist_min(d) == v[0]);
	assert_true(dist_max(d) == v[n - 1]);
}

static void free_dist(struct dist *d)
{
	for (u32 o = 0; d->octave && o < NOCTAVES(d); o++)
		free(d->octave[o]);
	free(d->octave);
	free(d->val);
}

/* Exact up to 256 values, then to 2^-10 */
static void dist__percentiles(void **state)
{
	static const u32 counts[] = { 1, 2, 3, 255, 256, 257, 1000, VALUES };
	static u64 v[VALUES];

	(void)state;
	for (u32 c = 0; c < ARRAY_SIZE(counts); c++) {
		u32 n = counts[c];
		double sum = 0;
		struct dist d;

		dist_init(&d, 9, 256);
		for (u32 i = 0; i < n; i++) {
			v[i] = any_value();
			sum += v[i];
			dist_add(&d, v[i]);
		}
		assert_true(fabs(dist_mean(&d) * n - sum) <= sum / 1e9);
		qsort(v, n, sizeof(*v), cmp);
		check(&d, v, NULL, n, n > 256 ? 1.0 / 1024 : 0);
		free_dist(&d);
	}
}

/* Values below 2^13 have a bucket each. */
static void dist__weights(void **state)
{
	static u64 v[8000], weight[8000];
	struct dist d;

	(void)state;
	dist_init(&d, 12, 0);
	for (u32 i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = i;
		weight[i] = random() % 1000000;
		dist_add_weighted(&d, v[i], weight[i]);
	}
	check(&d, v, weight, ARRAY_SIZE(v), 0);
	free_dist(&d);
}

static void dist__empty(void **state)
{
	struct dist d;

	(void)state;
	dist_init(&d, 9, 256);
	assert_true(isnan(dist_mean(&d)) && isnan(dist_stddev(&d)) && isnan(dist_min(&d)) &&
		    isnan(dist_max(&d)) && isnan(dist_percentile(&d, 1, 2)));
}

#define SPACE	20000

/* Segments in any order, also below the first one. The numbers wrap. */
static void seen__byte_map(void **state)
{
	(void)state;
	for (u32 round = 0; round < 200; round++) {
		u32 base = (u32)random() * 2, start = random() % (SPACE / 2);
		u32 longest = 1 + random() % 2000;
		bool map[SPACE] = { false };
		struct seen s = { 0 };

		for (u32 i = 0; i < 300; i++) {
			u32 n = 1 + random() % longest, at = i ? random() % (SPACE - n) : start;
			u32 want = 0, is;

			if (at + n > SPACE)
				n = SPACE - at;
			for (u32 k = at; k < at + n; k++) {
				want += !map[k];
				map[k] = true;
			}
			assert_int_equal(seen_has(&s, base + at, n), !want);
			is = seen_add(&s, base + at, n, false);
			assert_true(seen_has(&s, base + at, n));
			if (is != want)
				fail_msg("round %u, [%u, %u): %u new, not %u", round, at, at + n,
					 is, want);
		}
		free(s.hole);
	}
}

/* A SYN starts a new connection, unless it repeats the last SYN. */
static void seen__syn(void **state)
{
	struct seen s = { 0 };

	(void)state;
	assert_int_equal(seen_add(&s, 1000, 1, true), 1);
	assert_int_equal(seen_add(&s, 1001, 100, false), 100);
	assert_int_equal(seen_add(&s, 1000, 1, true), 0);
	assert_int_equal(seen_add(&s, 1001, 100, false), 0);
	assert_int_equal(seen_add(&s, 500, 1, true), 1);
	assert_int_equal(seen_add(&s, 501, 100, false), 100);
	/* nothing precedes a SYN */
	assert_int_equal(seen_add(&s, 400, 100, false), 0);
}

/* Without a SYN: data far below the first segment is from an earlier connection, not reordered. */
static void seen__far_below(void **state)
{
	struct seen s = { 0 };

	(void)state;
	assert_int_equal(seen_add(&s, 1U << 30, 1, false), 1);
	assert_int_equal(seen_add(&s, (1U << 30) - REORDER_BYTES - 1, 10, false), 0);
	assert_int_equal(seen_add(&s, (1U << 30) - REORDER_BYTES, 10, false), 10);
	free(s.hole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dist__percentiles),
		cmocka_unit_test(dist__weights),
		cmocka_unit_test(dist__empty),
		cmocka_unit_test(seen__byte_map),
		cmocka_unit_test(seen__syn),
		cmocka_unit_test(seen__far_below),
	};

	srandom(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
