// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/fixedpoint.h, in its order: tables of typical and special cases, then
 * every combination of extreme inputs and a million random ones against 128-bit
 * arithmetic (fixedpoint_oracle.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixedpoint_oracle.h"

/* Defines a test function that runs the check @c with @inputs: extremes or random */
#define CHECK_TEST(name, inputs, c)			\
static void name(void **state)				\
{							\
	(void)state;					\
	check_##inputs(c);				\
}

/* A line of a table: inputs and expected result. */
struct line {
	u64 a, b, c;
	u64 want;
};

static void FP_ONE__table(void **state)
{
	(void)state;
	assert_int_equal(FP_ONE(0), 1);
	assert_int_equal(FP_ONE(30), 1073741824);
	assert_int_equal(FP_ONE(32), (u64)U32_MAX + 1);
	assert_int_equal(FP_ONE(63), U64_MAX / 2 + 1);
}

static void fp_min__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .want = 0 },
		{ .a = 0, .b = 1, .want = 0 },
		{ .a = U64_MAX, .b = 0, .want = 0 },
		{ .a = U64_MAX, .b = U64_MAX, .want = U64_MAX },
		{ .a = (u64)1 << 32, .b = U32_MAX, .want = U32_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_min(lines[i].a, lines[i].b), lines[i].want);
}

CHECK_TEST(fp_min__extremes, extremes, &fp_min_exact)
CHECK_TEST(fp_min__random, random, &fp_min_exact)

static void fp_max__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .want = 0 },
		{ .a = 0, .b = 1, .want = 1 },
		{ .a = U64_MAX, .b = 0, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX, .want = U64_MAX },
		{ .a = (u64)1 << 32, .b = U32_MAX, .want = (u64)1 << 32 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_max(lines[i].a, lines[i].b), lines[i].want);
}

CHECK_TEST(fp_max__extremes, extremes, &fp_max_exact)
CHECK_TEST(fp_max__random, random, &fp_max_exact)

static void fp_add32__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .want = 0 },
		{ .a = 2, .b = 3, .want = 5 },
		{ .a = U32_MAX - 1, .b = 1, .want = U32_MAX },
		/* where a + b would wrap: to 0, to 1, and to the largest value */
		{ .a = U32_MAX, .b = 1, .want = U32_MAX },
		{ .a = U32_MAX, .b = 2, .want = U32_MAX },
		{ .a = U32_MAX, .b = U32_MAX, .want = U32_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_add32(lines[i].a, lines[i].b), lines[i].want);
}

CHECK_TEST(fp_add32__extremes, extremes, &fp_add32_exact)
CHECK_TEST(fp_add32__random, random, &fp_add32_exact)

static void fp_add__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .want = 0 },
		{ .a = 0, .b = U64_MAX, .want = U64_MAX },
		{ .a = U64_MAX - 1, .b = 1, .want = U64_MAX },
		/* where a + b would wrap: to 0, to 1, and to the largest value */
		{ .a = U64_MAX, .b = 1, .want = U64_MAX },
		{ .a = U64_MAX, .b = 2, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX, .want = U64_MAX },
		{ .a = (u64)1 << 63, .b = (u64)1 << 63, .want = U64_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_add(lines[i].a, lines[i].b), lines[i].want);
}

CHECK_TEST(fp_add__extremes, extremes, &fp_add_exact)
CHECK_TEST(fp_add__random, random, &fp_add_exact)
CHECK_TEST(fp_add__monotone, random, &fp_add_monotone)

static void fp_sub__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .want = 0 },
		{ .a = 1, .b = 1, .want = 0 },
		{ .a = U64_MAX, .b = 0, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX - 1, .want = 1 },
		/* where a - b would wrap */
		{ .a = 0, .b = 1, .want = 0 },
		{ .a = 0, .b = U64_MAX, .want = 0 },
		{ .a = U64_MAX - 1, .b = U64_MAX, .want = 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_sub(lines[i].a, lines[i].b), lines[i].want);
}

CHECK_TEST(fp_sub__extremes, extremes, &fp_sub_exact)
CHECK_TEST(fp_sub__random, random, &fp_sub_exact)
CHECK_TEST(fp_sub__monotone, random, &fp_sub_monotone)

static void fp_mul_wide__table(void **state)
{
	/* want is the upper half, c the lower */
	static const struct line lines[] = {
		{ .a = 0, .b = U64_MAX, .c = 0, .want = 0 },
		{ .a = 1, .b = U64_MAX, .c = U64_MAX, .want = 0 },
		{ .a = (u64)1 << 32, .b = (u64)1 << 32, .c = 0, .want = 1 },
		{ .a = U32_MAX, .b = U32_MAX, .c = 0xfffffffe00000001, .want = 0 },
		/* every partial sum has its largest value */
		{ .a = U64_MAX, .b = U64_MAX, .c = 1, .want = U64_MAX - 1 },
		{ .a = U64_MAX, .b = 2, .c = U64_MAX - 1, .want = 1 },
	};
	size_t i;
	u64 lo;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(fp_mul_wide(lines[i].a, lines[i].b, &lo), lines[i].want);
		assert_int_equal(lo, lines[i].c);
	}
}

CHECK_TEST(fp_mul_wide__extremes, extremes, &fp_mul_wide_exact)
CHECK_TEST(fp_mul_wide__random, random, &fp_mul_wide_exact)

static void fp_mul_shr__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = U64_MAX, .c = 0, .want = 0 },
		{ .a = 1, .b = 1, .c = 1, .want = 0 },
		{ .a = 3, .b = 1, .c = 1, .want = 1 },
		{ .a = 1, .b = U64_MAX, .c = 0, .want = U64_MAX },
		{ .a = 2, .b = U64_MAX, .c = 1, .want = U64_MAX },
		/* 1.0 * x = x in the widest format */
		{ .a = (u64)1 << 63, .b = U64_MAX, .c = 63, .want = U64_MAX },
		/* just too large */
		{ .a = 2, .b = (u64)1 << 63, .c = 0, .want = U64_MAX },
		{ .a = 4, .b = (u64)1 << 63, .c = 1, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX, .c = 63, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX, .c = 0, .want = U64_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_mul_shr(lines[i].a, lines[i].b, lines[i].c), lines[i].want);
}

CHECK_TEST(fp_mul_shr__extremes, extremes, &fp_mul_shr_exact)
CHECK_TEST(fp_mul_shr__random, random, &fp_mul_shr_exact)
CHECK_TEST(fp_mul_shr__monotone, random, &fp_mul_shr_monotone)

static void fp_mul_div__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 7, .b = 3, .c = 2, .want = 10 },
		{ .a = 0, .b = U64_MAX, .c = 1, .want = 0 },
		/* division by 0: 0 if the product is 0, else the largest value */
		{ .a = 0, .b = 0, .c = 0, .want = 0 },
		{ .a = 0, .b = U64_MAX, .c = 0, .want = 0 },
		{ .a = 1, .b = 1, .c = 0, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX, .c = 0, .want = U64_MAX },
		/* a product of 128 bits */
		{ .a = U64_MAX, .b = U64_MAX, .c = U64_MAX, .want = U64_MAX },
		{ .a = U64_MAX, .b = U64_MAX - 1, .c = U64_MAX, .want = U64_MAX - 1 },
		{ .a = U64_MAX, .b = U64_MAX, .c = U64_MAX - 1, .want = U64_MAX },
		{ .a = (u64)1 << 63, .b = (u64)1 << 63, .c = U64_MAX, .want = (u64)1 << 62 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_mul_div(lines[i].a, lines[i].b, lines[i].c), lines[i].want);
}

CHECK_TEST(fp_mul_div__extremes, extremes, &fp_mul_div_exact)
CHECK_TEST(fp_mul_div__random, random, &fp_mul_div_exact)
CHECK_TEST(fp_mul_div__quotient_at_limit_extremes, extremes, &fp_mul_div_at_limit)
CHECK_TEST(fp_mul_div__quotient_at_limit_random, random, &fp_mul_div_at_limit)
CHECK_TEST(fp_mul_div__monotone, random, &fp_mul_div_monotone)

static void fp_fraction__table(void **state)
{
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .c = 30, .want = 0 },
		{ .a = U32_MAX, .b = 0, .c = 30, .want = 0 },
		{ .a = 0, .b = U32_MAX, .c = 30, .want = 0 },
		{ .a = 1, .b = 2, .c = 30, .want = 1 << 29 },
		{ .a = 1, .b = 3, .c = 30, .want = 357913941 },
		{ .a = 1, .b = U32_MAX, .c = 30, .want = 0 },
		{ .a = 1, .b = U32_MAX, .c = 32, .want = 1 },
		/* 1.0, and larger quotients */
		{ .a = 1, .b = 1, .c = 0, .want = 1 },
		{ .a = U32_MAX, .b = U32_MAX, .c = 31, .want = (u64)1 << 31 },
		{ .a = U32_MAX, .b = 1, .c = 30, .want = 1 << 30 },
		{ .a = 2, .b = 1, .c = 31, .want = (u64)1 << 31 },
		/* Q32 has no 1.0 in 32 bits */
		{ .a = 1, .b = 1, .c = 32, .want = U32_MAX },
		{ .a = U32_MAX - 1, .b = U32_MAX, .c = 32, .want = U32_MAX - 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_fraction(lines[i].a, lines[i].b, lines[i].c), lines[i].want);
}

CHECK_TEST(fp_fraction__extremes, extremes, &fp_fraction_exact)
CHECK_TEST(fp_fraction__random, random, &fp_fraction_exact)
CHECK_TEST(fp_fraction__monotone, random, &fp_fraction_monotone)

static void fp_ewma__table(void **state)
{
	/* a: average, b: sample, c: shift; a whole number of units, not rounded */
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .c = 4, .want = 0 },
		{ .a = 1 << 30, .b = 0, .c = 4, .want = (1 << 30) - (1 << 26) },
		{ .a = 0, .b = 1 << 30, .c = 4, .want = 1 << 26 },
		{ .a = 1 << 30, .b = 1 << 30, .c = 10, .want = 1 << 30 },
		/* no smoothing */
		{ .a = 1 << 30, .b = 7, .c = 0, .want = 7 },
		{ .a = U32_MAX, .b = 0, .c = 0, .want = 0 },
		/* the largest value stays, without wrapping */
		{ .a = U32_MAX, .b = U32_MAX, .c = 0, .want = U32_MAX },
		{ .a = U32_MAX, .b = U32_MAX, .c = 4, .want = U32_MAX },
		{ .a = U32_MAX, .b = U32_MAX, .c = 31, .want = U32_MAX },
		/* a value too small for the shift decays to 0 */
		{ .a = 1, .b = 0, .c = 1, .want = 0 },
		{ .a = 1, .b = 0, .c = 31, .want = 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(fp_ewma(lines[i].a, lines[i].b, lines[i].c), lines[i].want);
}

CHECK_TEST(fp_ewma__extremes, extremes, &fp_ewma_step)
CHECK_TEST(fp_ewma__random, random, &fp_ewma_step)
CHECK_TEST(fp_ewma__monotone, random, &fp_ewma_monotone)

static void fp_ewma__reaches_zero(void **state)
{
	unsigned int shift;

	(void)state;
	for (shift = 0; shift <= 16; shift++) {
		u64 most = ewma_steps_to_zero(32, shift), steps = 0;
		u32 avg = U32_MAX;

		while (avg && steps <= most) {
			u32 next = fp_ewma(avg, 0, shift);

			expect(next < avg, "shift %u: %u -> %u", shift, avg, next);
			avg = next;
			steps++;
		}
		expect(steps <= most, "shift %u: %u is left", shift, avg);
	}
}

/*
 * For a constant sample the average comes within the bound, from 0 and from above: the
 * smallest samples, those that a shift makes 0 or almost 0, and the largest.
 */
static void fp_ewma__follows_constant(void **state)
{
	u64 samples[EXTREMES];
	unsigned int shift;
	int i, n = extremes(U32_MAX, samples);

	(void)state;
	for (shift = 0; shift <= 10; shift++) {
		for (i = 0; i < n; i++) {
			u64 steps = ewma_steps_to_zero(32, shift);
			u32 up = 0, down = U32_MAX;

			while (steps--) {
				up = fp_ewma(up, samples[i], shift);
				down = fp_ewma(down, samples[i], shift);
			}
			expect(near_abs(up, samples[i], ewma_error(shift)),
			       "shift %u: from 0, %lu is followed to %u", shift, samples[i], up);
			expect(near_abs(down, samples[i], ewma_error(shift)),
			       "shift %u: from above, %lu is followed to %u", shift, samples[i],
			       down);
		}
	}
}

/* The bound of ewma_error() holds after every step, for any samples. */
static void fp_ewma__error_random(void **state)
{
	unsigned int shift;
	int run, i;

	(void)state;
	for (shift = 0; shift <= 16; shift++) {
		for (run = 0; run < 60; run++) {
			u32 max = run % 3 ? U32_MAX >> rnd() % 32 : U32_MAX;
			struct ewma_pair p = ewma_pair_init(rnd_upto(max), shift);

			for (i = 0; i < 1000; i++)
				ewma_pair_step(&p, rnd_upto(max));
		}
	}
}

/* Two samples in turn, and in bursts */
static void fp_ewma__error_alternating(void **state)
{
	unsigned int shift;
	int run, i;

	(void)state;
	for (shift = 0; shift <= 12; shift++) {
		for (run = 0; run < 60; run++) {
			u64 zero = FP_ONE(shift) - 1;	/* the largest that a shift makes 0 */
			u32 low = run % 2 ? zero : rnd_upto(U32_MAX);
			u32 high = run % 3 ? (zero << shift) + zero : rnd_upto(U32_MAX);
			struct ewma_pair p = ewma_pair_init(0, shift);
			int burst = 1 + run % 5;

			for (i = 0; i < CASES / 50; i++)
				ewma_pair_step(&p, i / burst % 2 ? low : high);
		}
	}
}

/* An adversary who knows the code: always the sample that moves the two further apart. */
static void fp_ewma__error_adversarial(void **state)
{
	unsigned int shift;
	int run, i, k;

	(void)state;
	for (shift = 0; shift <= 12; shift++) {
		for (run = 0; run < 4; run++) {
			long double sign = run & 2 ? 1 : -1;
			struct ewma_pair p = ewma_pair_init(run & 1 ? U32_MAX : 0, shift);

			for (i = 0; i < CASES / 50; i++) {
				long double furthest = -LDBL_MAX;
				u64 one = FP_ONE(shift);
				u32 any = rnd_upto(U32_MAX), small = rnd_upto(one * one);
				u32 tries[] = { 0, 1, one - 1, one, one + 1, p.avg,
						(u32)-p.avg & (one - 1), one * one - 1, one * one,
						any, small };
				u32 best = 0;

				for (k = 0; k < (int)ARRAY_SIZE(tries); k++) {
					long double real = p.real + (tries[k] - p.real) / one;
					long double d = fp_ewma(p.avg, tries[k], shift) - real;

					if (sign * d > furthest) {
						furthest = sign * d;
						best = tries[k];
					}
				}
				ewma_pair_step(&p, best);
			}
		}
	}
}

static void fp_carry__table(void **state)
{
	/* a: the addend, b: the fraction, c: n */
	static const struct line lines[] = {
		{ .a = 0, .b = 0, .c = 30, .want = 0 },
		{ .a = 0, .b = (1 << 30) - 1, .c = 30, .want = 0 },
		{ .a = 1, .b = (1 << 30) - 1, .c = 30, .want = 1 },
		{ .a = 3 << 28, .b = 1 << 29, .c = 30, .want = 1 },
		{ .a = 1, .b = U32_MAX, .c = 32, .want = 1 },
		{ .a = 42, .b = 0, .c = 0, .want = 42 },
		{ .a = U64_MAX, .b = 0, .c = 30, .want = U64_MAX >> 30 },
		/* the sum does not fit */
		{ .a = U64_MAX, .b = (1 << 30) - 1, .c = 30, .want = U64_MAX >> 30 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		u32 frac = lines[i].b;

		assert_int_equal(fp_carry(&frac, lines[i].a, lines[i].c), lines[i].want);
		assert_true(frac < FP_ONE(lines[i].c));
	}
}

CHECK_TEST(fp_carry__extremes, extremes, &fp_carry_exact)
CHECK_TEST(fp_carry__random, random, &fp_carry_exact)

/* The bound: as long as the sum of x and the fraction fits 64 bits. */
static void fp_carry__loses_nothing(void **state)
{
	static const unsigned int formats[] = { 0, 1, 16, 30, 32 };
	size_t f;
	int i;

	(void)state;
	for (f = 0; f < ARRAY_SIZE(formats); f++) {
		unsigned int n = formats[f];
		u64 max = U64_MAX - (FP_ONE(n) - 1);
		u128 added = 0, taken = 0;
		u32 frac = 0;

		for (i = 0; i < 10 * CASES; i++) {
			/* sometimes less than 1.0, otherwise any value */
			u64 x = i % 2 ? fold(rnd(), FP_ONE(n)) : rnd() >> (i & 63);

			x = fp_min(x, max);
			added += x;
			taken += fp_carry(&frac, x, n);
		}
		expect((taken << n) + frac == added, "Q%u", n);
	}
}

/* Every addend is less than 1.0, and the sum is still exact. */
static void fp_carry__small_amounts_add_up(void **state)
{
	u32 frac = 0, third = fp_fraction(1, 3, 30);
	u64 taken = 0;
	int i;

	(void)state;
	for (i = 0; i < 3000000; i++)
		taken += fp_carry(&frac, third, 30);
	/* three thirds, rounded down, are a unit less than 1.0 */
	assert_int_equal(taken, 999999);
	assert_int_equal((taken << 30) + frac, 3000000 * (u64)third);
}

int main(void)
{
	const struct CMUnitTest fixedpoint[] = {
		cmocka_unit_test(FP_ONE__table),
		cmocka_unit_test(fp_min__table),
		cmocka_unit_test(fp_min__extremes),
		cmocka_unit_test(fp_min__random),
		cmocka_unit_test(fp_max__table),
		cmocka_unit_test(fp_max__extremes),
		cmocka_unit_test(fp_max__random),
		cmocka_unit_test(fp_add32__table),
		cmocka_unit_test(fp_add32__extremes),
		cmocka_unit_test(fp_add32__random),
		cmocka_unit_test(fp_add__table),
		cmocka_unit_test(fp_add__extremes),
		cmocka_unit_test(fp_add__random),
		cmocka_unit_test(fp_add__monotone),
		cmocka_unit_test(fp_sub__table),
		cmocka_unit_test(fp_sub__extremes),
		cmocka_unit_test(fp_sub__random),
		cmocka_unit_test(fp_sub__monotone),
		cmocka_unit_test(fp_mul_wide__table),
		cmocka_unit_test(fp_mul_wide__extremes),
		cmocka_unit_test(fp_mul_wide__random),
		cmocka_unit_test(fp_mul_shr__table),
		cmocka_unit_test(fp_mul_shr__extremes),
		cmocka_unit_test(fp_mul_shr__random),
		cmocka_unit_test(fp_mul_shr__monotone),
		cmocka_unit_test(fp_mul_div__table),
		cmocka_unit_test(fp_mul_div__extremes),
		cmocka_unit_test(fp_mul_div__random),
		cmocka_unit_test(fp_mul_div__quotient_at_limit_extremes),
		cmocka_unit_test(fp_mul_div__quotient_at_limit_random),
		cmocka_unit_test(fp_mul_div__monotone),
		cmocka_unit_test(fp_fraction__table),
		cmocka_unit_test(fp_fraction__extremes),
		cmocka_unit_test(fp_fraction__random),
		cmocka_unit_test(fp_fraction__monotone),
		cmocka_unit_test(fp_ewma__table),
		cmocka_unit_test(fp_ewma__extremes),
		cmocka_unit_test(fp_ewma__random),
		cmocka_unit_test(fp_ewma__monotone),
		cmocka_unit_test(fp_ewma__reaches_zero),
		cmocka_unit_test(fp_ewma__follows_constant),
		cmocka_unit_test(fp_ewma__error_random),
		cmocka_unit_test(fp_ewma__error_alternating),
		cmocka_unit_test(fp_ewma__error_adversarial),
		cmocka_unit_test(fp_carry__table),
		cmocka_unit_test(fp_carry__extremes),
		cmocka_unit_test(fp_carry__random),
		cmocka_unit_test(fp_carry__loses_nothing),
		cmocka_unit_test(fp_carry__small_amounts_add_up),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(fixedpoint, NULL, NULL);
}
