/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the user-space tests and fuzz targets of this folder: wide and
 * floating-point types to compare with, random and extreme inputs, and expect(),
 * which fails the test under cmocka and aborts under libFuzzer.
 *
 * Include it after cmocka.h, if you use cmocka.
 */
#ifndef _LOWQ_ORACLE_H
#define _LOWQ_ORACLE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixedpoint.h"

/* A machine with __int128 has a long of 64 bits: u64 is printed with %lu. */
typedef unsigned __int128 u128;
typedef __int128 s128;

/* A u64, and a u32 in Qn with its rounding, fit a long double exactly. */
_Static_assert(LDBL_MANT_DIG >= 64, "long double holds less than 64 bits");

#ifdef fail_msg
#define expect(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			fail_msg("%s: " fmt, #cond, ##__VA_ARGS__);	\
	} while (0)
#else
#define expect(cond, fmt, ...)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s: " fmt "\n",		\
				__FILE__, __LINE__, #cond, ##__VA_ARGS__); \
			abort();					\
		}							\
	} while (0)
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* The number of random cases that a test tries for one function. */
#ifndef CASES
#define CASES		1000000
#endif

#define UNIT_SEED	0x6c6f7771	/* where the environment has none */

/*
 * State of splitmix64 (Steele, Lea, Flood 2014). Make at most one draw per statement: the
 * compiler may not change their order then, and a seed gives the same inputs in every
 * build.
 */
static u64 rnd_state = UNIT_SEED;

/* To be called first in main(): prints the seed as a TAP comment. */
static inline void rnd_seed_from_env(void)
{
	const char *seed = getenv("UNIT_SEED");

	rnd_state = seed ? strtoull(seed, NULL, 0) : UNIT_SEED;
	printf("# UNIT_SEED=%#lx\n", rnd_state);
	fflush(stdout);
}

static inline u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* @x folded into 0 to @max */
static inline u64 fold(u64 x, u64 max)
{
	return max == U64_MAX ? x : x % (max + 1);
}

/* Uniform from @min to @max */
static inline u64 rnd_range(u64 min, u64 max)
{
	return min + fold(rnd(), max - min);
}

/*
 * From 0 to @max, not uniform: small, large and round values are as frequent as values
 * from the middle.
 */
static inline u64 rnd_upto(u64 max)
{
	u64 choice = rnd(), bit = choice >> 58, x = rnd();

	switch (choice % 5) {
	case 0:
		return fold(x, max);
	case 1:	/* any number of bits */
		return fold(x >> bit, max);
	case 2:	/* near a power of two */
		return fold(FP_ONE(bit) + x % 5 - 2, max);
	case 3:
		return max - fp_min(x % 5, max);
	default:
		return fp_min(x % 5, max);
	}
}

#define EXTREMES	200

/*
 * 0, 1, 2, every power of two and its neighbours, and the largest three, up to @max; all
 * values if @max is less than 128. Returns how many.
 */
static inline int extremes(u64 max, u64 v[EXTREMES])
{
	int k, d, n = 0;

	if (max < 128) {
		for (n = 0; (u64)n <= max; n++)
			v[n] = n;
		return n;
	}
	for (k = 0; k < 64; k++)
		for (d = k < 2 ? 0 : -1; d <= 1; d++)
			if (FP_ONE(k) + d < max - 2)
				v[n++] = k ? FP_ONE(k) + d : (u64)d;
	for (d = 2; d >= 0; d--)
		v[n++] = max - d;
	return n;
}

/* Is @x within @tolerance of @want? */
static inline bool near_abs(long double x, long double want, long double tolerance)
{
	return fabsl(x - want) <= tolerance;
}

/* Is @x within @fraction (0.1 is 10 %) of @want? */
static inline bool near_rel(long double x, long double want, long double fraction)
{
	return near_abs(x, want, fraction * fabsl(want));
}

/**
 * struct check - a property that holds for every input
 * @holds:	fails if it does not hold for @v
 * @max:	largest value of each input; 0 for one that is not used
 */
struct check {
	void (*holds)(const u64 v[4]);
	u64 max[4];
};

/* Every combination of extreme inputs. */
static inline void check_extremes(const struct check *c)
{
	static u64 e[4][EXTREMES];
	u64 v[4];
	int n[4], i[4];
	int k;

	for (k = 0; k < 4; k++)
		n[k] = extremes(c->max[k], e[k]);
	for (i[0] = 0; i[0] < n[0]; i[0]++)
		for (i[1] = 0; i[1] < n[1]; i[1]++)
			for (i[2] = 0; i[2] < n[2]; i[2]++)
				for (i[3] = 0; i[3] < n[3]; i[3]++) {
					for (k = 0; k < 4; k++)
						v[k] = e[k][i[k]];
					c->holds(v);
				}
}

static inline void check_random(const struct check *c)
{
	u64 v[4];
	int i, k;

	for (i = 0; i < CASES; i++) {
		for (k = 0; k < 4; k++)
			v[k] = rnd_upto(c->max[k]);
		c->holds(v);
	}
}

/* The rest of a fuzz target's input. */
struct fuzz_input {
	const u8 *data;
	size_t size;
};

/*
 * The next @bytes (at most 8) of the input, little endian; 0 beyond its end. At most one
 * call per statement, for the same reason as with rnd().
 */
static inline u64 fuzz_take(struct fuzz_input *in, size_t bytes)
{
	u64 x = 0;
	size_t i;

	for (i = 0; i < bytes && in->size; i++, in->data++, in->size--)
		x |= (u64)*in->data << (8 * i);
	return x;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif /* _LOWQ_ORACLE_H */
