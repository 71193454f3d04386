/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The properties of fixedpoint.h, one struct check for each, in its order: used by
 * test_fixedpoint.c and by fuzz_fixedpoint.c.
 *
 * "_exact" compares with 128-bit arithmetic. "_monotone" checks that a larger input
 * gives no smaller (or no larger) output.
 */
#ifndef _LOWQ_FIXEDPOINT_ORACLE_H
#define _LOWQ_FIXEDPOINT_ORACLE_H

#include "oracle.h"

static inline u64 saturate(u128 x, u64 max)
{
	return x > max ? max : (u64)x;
}

static inline void fp_min_holds(const u64 v[4])
{
	u64 r = fp_min(v[0], v[1]);

	expect(r == v[0] || r == v[1], "%lu %lu -> %lu", v[0], v[1], r);
	expect(r <= v[0] && r <= v[1], "%lu %lu -> %lu", v[0], v[1], r);
}

static const struct check fp_min_exact = { fp_min_holds, { U64_MAX, U64_MAX } };

static inline void fp_max_holds(const u64 v[4])
{
	u64 r = fp_max(v[0], v[1]);

	expect(r == v[0] || r == v[1], "%lu %lu -> %lu", v[0], v[1], r);
	expect(r >= v[0] && r >= v[1], "%lu %lu -> %lu", v[0], v[1], r);
}

static const struct check fp_max_exact = { fp_max_holds, { U64_MAX, U64_MAX } };

static inline void fp_add32_holds(const u64 v[4])
{
	u32 r = fp_add32(v[0], v[1]);

	expect(r == saturate((u128)v[0] + v[1], U32_MAX), "%lu + %lu -> %u", v[0], v[1], r);
}

static const struct check fp_add32_exact = { fp_add32_holds, { U32_MAX, U32_MAX } };

static inline void fp_add_holds(const u64 v[4])
{
	u64 r = fp_add(v[0], v[1]);

	expect(r == saturate((u128)v[0] + v[1], U64_MAX), "%lu + %lu -> %lu", v[0], v[1], r);
}

static const struct check fp_add_exact = { fp_add_holds, { U64_MAX, U64_MAX } };

/* v[2]: the increase of the input */
static inline void fp_add_grows(const u64 v[4])
{
	u64 a = v[0], b = v[1], more = saturate((u128)a + v[2], U64_MAX);

	expect(fp_add(more, b) >= fp_add(a, b), "%lu or %lu, %lu", a, more, b);
	expect(fp_add(b, more) >= fp_add(b, a), "%lu, %lu or %lu", b, a, more);
}

static const struct check fp_add_monotone = { fp_add_grows, { U64_MAX, U64_MAX, U64_MAX } };

static inline void fp_sub_holds(const u64 v[4])
{
	s128 want = (s128)v[0] - v[1];
	u64 r = fp_sub(v[0], v[1]);

	expect(r == (want < 0 ? 0 : want), "%lu - %lu -> %lu", v[0], v[1], r);
}

static const struct check fp_sub_exact = { fp_sub_holds, { U64_MAX, U64_MAX } };

static inline void fp_sub_grows(const u64 v[4])
{
	u64 a = v[0], b = v[1], more = saturate((u128)a + v[2], U64_MAX);

	expect(fp_sub(more, b) >= fp_sub(a, b), "%lu or %lu, %lu", a, more, b);
	expect(fp_sub(b, more) <= fp_sub(b, a), "%lu, %lu or %lu", b, a, more);
}

static const struct check fp_sub_monotone = { fp_sub_grows, { U64_MAX, U64_MAX, U64_MAX } };

static inline void fp_mul_wide_holds(const u64 v[4])
{
	u128 want = (u128)v[0] * v[1];
	u64 lo, hi = fp_mul_wide(v[0], v[1], &lo);

	expect(lo == (u64)want, "%lu * %lu -> lo %lu", v[0], v[1], lo);
	expect(hi == (u64)(want >> 64), "%lu * %lu -> hi %lu", v[0], v[1], hi);
}

static const struct check fp_mul_wide_exact = { fp_mul_wide_holds, { U64_MAX, U64_MAX } };

static inline void fp_mul_shr_holds(const u64 v[4])
{
	u64 r = fp_mul_shr(v[0], v[1], v[2]);

	expect(r == saturate((u128)v[0] * v[1] >> v[2], U64_MAX),
	       "%lu * %lu >> %lu -> %lu", v[0], v[1], v[2], r);
}

static const struct check fp_mul_shr_exact = { fp_mul_shr_holds, { U64_MAX, U64_MAX, 63 } };

static inline void fp_mul_shr_grows(const u64 v[4])
{
	u64 a = v[0], b = v[1], n = v[2], more = saturate((u128)a + v[3], U64_MAX);

	expect(fp_mul_shr(more, b, n) >= fp_mul_shr(a, b, n),
	       "%lu or %lu, %lu, %lu", a, more, b, n);
	expect(fp_mul_shr(b, more, n) >= fp_mul_shr(b, a, n),
	       "%lu, %lu or %lu, %lu", b, a, more, n);
	if (n)
		expect(fp_mul_shr(a, b, n) <= fp_mul_shr(a, b, n - 1), "%lu, %lu, %lu", a, b, n);
}

static const struct check fp_mul_shr_monotone = {
	fp_mul_shr_grows, { U64_MAX, U64_MAX, 63, U64_MAX }
};

static inline void fp_mul_div_holds(const u64 v[4])
{
	u64 a = v[0], b = v[1], c = v[2], r = fp_mul_div(a, b, c);
	u128 product = (u128)a * b;

	if (c)
		expect(r == saturate(product / c, U64_MAX),
		       "%lu * %lu / %lu -> %lu", a, b, c, r);
	else
		expect(r == (product ? U64_MAX : 0), "%lu * %lu / 0 -> %lu", a, b, r);
}

static const struct check fp_mul_div_exact = {
	fp_mul_div_holds, { U64_MAX, U64_MAX, U64_MAX }
};

/* Around the largest quotient that fits: c is the product's upper half, or one more. */
static inline void fp_mul_div_holds_at_limit(const u64 v[4])
{
	u64 hi = (u128)v[0] * v[1] >> 64;
	/* the last two are exact quotients */
	const u64 c[] = { fp_sub(hi, 1), hi, fp_add(hi, 1), v[0], v[1] };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		const u64 line[4] = { v[0], v[1], c[i] };

		fp_mul_div_holds(line);
	}
}

static const struct check fp_mul_div_at_limit = {
	fp_mul_div_holds_at_limit, { U64_MAX, U64_MAX }
};

static inline void fp_mul_div_grows(const u64 v[4])
{
	u64 a = v[0], b = v[1], c = v[2], more = saturate((u128)a + v[3], U64_MAX);

	expect(fp_mul_div(more, b, c) >= fp_mul_div(a, b, c),
	       "%lu or %lu, %lu, %lu", a, more, b, c);
	expect(fp_mul_div(b, more, c) >= fp_mul_div(b, a, c),
	       "%lu, %lu or %lu, %lu", b, a, more, c);
	expect(fp_mul_div(c, b, more) <= fp_mul_div(c, b, a),
	       "%lu, %lu, %lu or %lu", c, b, a, more);
}

static const struct check fp_mul_div_monotone = {
	fp_mul_div_grows, { U64_MAX, U64_MAX, U64_MAX, U64_MAX }
};

/* At n = 32, 1.0 does not fit; the largest value stands for it. */
static inline void fp_fraction_holds(const u64 v[4])
{
	u32 part = v[0], whole = v[1], n = v[2], r = fp_fraction(part, whole, n);
	u64 most = fp_min(FP_ONE(n), U32_MAX);

	if (!whole) {
		expect(r == 0, "%u / 0 in Q%u -> %u", part, n, r);
		return;
	}
	expect(r == saturate(((u128)part << n) / whole, most), "%u / %u in Q%u -> %u",
	       part, whole, n, r);
}

static const struct check fp_fraction_exact = { fp_fraction_holds, { U32_MAX, U32_MAX, 32 } };

static inline void fp_fraction_grows(const u64 v[4])
{
	u32 part = v[0], whole = v[1], n = v[2], more = saturate((u128)part + v[3], U32_MAX);

	expect(fp_fraction(more, whole, n) >= fp_fraction(part, whole, n),
	       "%u or %u, %u, Q%u", part, more, whole, n);
	if (part)
		expect(fp_fraction(whole, more, n) <= fp_fraction(whole, part, n),
		       "%u, %u or %u, Q%u", whole, part, more, n);
}

static const struct check fp_fraction_monotone = {
	fp_fraction_grows, { U32_MAX, U32_MAX, 32, U32_MAX }
};

/*
 * One step: within 2^shift units of the real value, which is a whole number of
 * units of 2^-shift: avg * (2^shift - 1) + sample <= (2^32 - 1) * 2^31 + 2^32.
 * Never above the larger of the two, exactly.
 */
static inline void fp_ewma_holds(const u64 v[4])
{
	u32 avg = v[0], sample = v[1], shift = v[2], r = fp_ewma(avg, sample, shift);
	s128 real = (s128)avg * (FP_ONE(shift) - 1) + sample;
	s128 error = ((s128)r << shift) - real, bound = (s128)1 << (2 * shift);

	expect(error < bound && -error < bound, "%u, %u >> %u -> %u", avg, sample, shift, r);
	expect(r <= fp_max(avg, sample), "%u, %u >> %u -> %u", avg, sample, shift, r);
}

static const struct check fp_ewma_step = { fp_ewma_holds, { U32_MAX, U32_MAX, 31 } };

static inline void fp_ewma_grows(const u64 v[4])
{
	u32 a = v[0], b = v[1], shift = v[2], more = saturate((u128)a + v[3], U32_MAX);

	expect(fp_ewma(more, b, shift) >= fp_ewma(a, b, shift),
	       "%u or %u, %u >> %u", a, more, b, shift);
	expect(fp_ewma(b, more, shift) >= fp_ewma(b, a, shift),
	       "%u, %u or %u >> %u", b, a, more, shift);
}

static const struct check fp_ewma_monotone = {
	fp_ewma_grows, { U32_MAX, U32_MAX, 31, U32_MAX }
};

/*
 * Many steps. Let each be rounded by e, less than one unit: |e| < 1. The distance d
 * from the real average then becomes
 *
 *	d' = d * (1 - 2^-shift) + e	so that |d| < 1 / 2^-shift = 2^shift
 *
 * for any samples, if that holds at the start.
 */
static inline long double ewma_error(unsigned int shift)
{
	return FP_ONE(shift);
}

/*
 * The number of steps with sample 0 after which any average up to 2^@bits, @bits <= 32,
 * is 0. As (1 - 2^-shift)^(2^shift) < 1/e, the real average is less than one unit after
 * bits * ln(2) * 2^shift steps. An average that is rounded down is never above it, so it
 * is 0. One that is rounded up, and set to 0 once it is below 2^shift (RFC 8257 4.2),
 * exceeds 2^shift - 1 by a distance that shrinks in the same way; one more step sets it
 * to 0.
 */
static inline u64 ewma_steps_to_zero(unsigned int bits, unsigned int shift)
{
	return ceill(bits * logl(2) * FP_ONE(shift)) + 2;
}

/**
 * struct ewma_pair - fp_ewma and its floating-point model, step by step
 * @real:	in floating point, from the same samples and the same start
 * @avg:	of fp_ewma
 * @shift:	up to 16, so that the error of @real is negligible: 2^-32 per step
 */
struct ewma_pair {
	long double real;
	u32 avg;
	unsigned int shift;
};

static inline struct ewma_pair ewma_pair_init(u32 avg, unsigned int shift)
{
	return (struct ewma_pair) { .real = avg, .avg = avg, .shift = shift };
}

static inline void ewma_pair_step(struct ewma_pair *p, u32 sample)
{
	u32 avg = p->avg;

	p->avg = fp_ewma(avg, sample, p->shift);
	p->real += (sample - p->real) / FP_ONE(p->shift);
	expect(near_abs(p->avg, p->real, ewma_error(p->shift)),
	       "%u, %u >> %u -> %u, not %Lf", avg, sample, p->shift, p->avg, p->real);
}

/* n <= 32: the fraction is a u32 */
static inline void fp_carry_holds(const u64 v[4])
{
	u32 frac = v[1], n = v[2];
	u64 whole = fp_carry(&frac, v[0], n);

	expect(frac < FP_ONE(n), "%lu + %lu in Q%u leaves %u", v[0], v[1], n, frac);
	expect(((u128)whole << n) + frac == saturate((u128)v[0] + v[1], U64_MAX),
	       "%lu + %lu in Q%u -> %lu and %u", v[0], v[1], n, whole, frac);
}

static const struct check fp_carry_exact = { fp_carry_holds, { U64_MAX, U32_MAX, 32 } };

#endif /* _LOWQ_FIXEDPOINT_ORACLE_H */
