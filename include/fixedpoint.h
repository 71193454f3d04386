/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixed-point helpers shared by the models.
 *
 * A value in Qn is an unsigned integer that stands for itself divided by 2^n:
 * in Q30, FP_ONE(30) = 1 << 30 is 1.0. Within the stated ranges of n and shift no
 * input makes a helper divide by zero or wrap: results saturate at the largest value.
 * The helpers use integers only and also compile in user space, where selftests/unit
 * compares them with floating point.
 */
#ifndef _LOWQ_FIXEDPOINT_H
#define _LOWQ_FIXEDPOINT_H

#ifdef __KERNEL__
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#endif

/* 1.0 in Qn; 0 <= n <= 63 */
#define FP_ONE(n)	((u64)1 << (n))

static inline u64 fp_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 fp_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a + b, at most U32_MAX */
static inline u32 fp_add32(u32 a, u32 b)
{
	u32 sum = a + b;

	return sum < a ? U32_MAX : sum;
}

/* a + b, at most U64_MAX */
static inline u64 fp_add(u64 a, u64 b)
{
	return a + b < a ? U64_MAX : a + b;
}

/* a - b, at least 0 */
static inline u64 fp_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* a / b, rounded down; U64_MAX when b is 0 */
static inline u64 fp_div(u64 a, u64 b)
{
	if (!b)
		return U64_MAX;
#ifdef __KERNEL__
	return div64_u64(a, b);
#else
	return a / b;
#endif
}

/* The upper and the lower half of the 128-bit product a * b. */
static inline u64 fp_mul_wide(u64 a, u64 b, u64 *lo)
{
#ifdef __x86_64__
	u64 hi;

	/* for __int128 the kernel's functions would align their stack, on each call */
	asm("mulq %3" : "=a" (*lo), "=d" (hi) : "%0" (a), "rm" (b) : "cc");
	return hi;
#elif defined(__SIZEOF_INT128__)
	__uint128_t product = (__uint128_t)a * b;	/* one instruction */

	*lo = (u64)product;
	return product >> 64;
#else
	u64 a_hi = a >> 32, a_lo = a & U32_MAX, b_hi = b >> 32, b_lo = b & U32_MAX;
	u64 ll = a_lo * b_lo, mid = a_hi * b_lo + (ll >> 32);
	u64 mid2 = a_lo * b_hi + (u32)mid;

	/*
	 * Neither sum wraps: (2^32 - 1)^2 + 2^32 - 1 < 2^64.
	 */
	*lo = (mid2 << 32) | (u32)ll;
	return a_hi * b_hi + (mid >> 32) + (mid2 >> 32);
#endif
}

/* (a * b) >> n, rounded down, at most U64_MAX; 0 <= n <= 63. */
static inline u64 fp_mul_shr(u64 a, u64 b, unsigned int n)
{
	u64 lo, hi = fp_mul_wide(a, b, &lo);

	if (hi >> n)
		return U64_MAX;
	return n ? (hi << (64 - n)) | (lo >> n) : lo;
}

/* (hi * 2^64 + lo) / c, rounded down, where hi < c: the quotient fits 64 bits. */
static inline u64 fp_div_wide(u64 hi, u64 lo, u64 c)
{
#ifdef __x86_64__
	u64 q, rest;

	asm("divq %4" : "=a" (q), "=d" (rest) : "0" (lo), "1" (hi), "rm" (c) : "cc");
	return q;
#else
	u64 q = 0;
	int i;

	if (!hi)
		return fp_div(lo, c);
	/* long division bit by bit: hi < c throughout */
	for (i = 0; i < 64; i++) {
		bool carry = hi >> 63;

		hi = (hi << 1) | (lo >> 63);
		lo <<= 1;
		q <<= 1;
		if (carry || hi >= c) {
			hi -= c;
			q |= 1;
		}
	}
	return q;
#endif
}

/*
 * a * b / c, rounded down, at most U64_MAX. With c = 0 the result is 0 if the product
 * is 0, else U64_MAX. One division if the product fits 64 bits, and on x86-64 always.
 * Elsewhere a larger product is slow: see fp_div_wide().
 */
static inline u64 fp_mul_div(u64 a, u64 b, u64 c)
{
	u64 lo, hi = fp_mul_wide(a, b, &lo);

	if (hi < c)
		return fp_div_wide(hi, lo, c);
	return hi || lo ? U64_MAX : 0;
}

/*
 * part / whole in Qn, rounded down, at most 1.0; 0 when whole is 0. n <= 32:
 * with 32-bit operands part << n fits 64 bits. In Q32 1.0 is U32_MAX.
 */
static inline u32 fp_fraction(u32 part, u32 whole, unsigned int n)
{
	if (!whole)
		return 0;
	if (part >= whole)
		return n < 32 ? (u32)FP_ONE(n) : U32_MAX;
#ifdef __KERNEL__
	return div_u64((u64)part << n, whole);
#else
	return ((u64)part << n) / whole;
#endif
}

/*
 * One step of an exponentially weighted moving average with gain 2^-shift:
 * avg + 2^-shift * (sample - avg), all in the same Q format, rounded down once;
 * shift <= 31. For constant samples the average settles at most 2^shift - 1 units
 * below the sample and never above it; for samples of 0 it decreases by at least one
 * unit per step and reaches exactly 0. The sum is at most (2^32 - 1) * 2^31, the
 * result at most the larger of avg and sample.
 */
static inline u32 fp_ewma(u32 avg, u32 sample, unsigned int shift)
{
	return (((u64)avg << shift) - avg + sample) >> shift;
}

/*
 * Adds x (Qn) to a fraction that is carried from call to call (Qn, below 1.0), keeps
 * the new fraction and returns the whole part: over many calls no rounding error adds up.
 * 0 <= n <= 32; x is at most U64_MAX - (2^n - 1), or the sum saturates.
 */
static inline u64 fp_carry(u32 *frac, u64 x, unsigned int n)
{
	u64 sum = fp_add(x, *frac);

	*frac = sum & (FP_ONE(n) - 1);
	return sum >> n;
}

#endif /* _LOWQ_FIXEDPOINT_H */
