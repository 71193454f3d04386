/* SPDX-License-Identifier: GPL-2.0 */
/* splitmix64. Not from a library, because the draws of a seed must never change. */
#ifndef FLOWGEN_RNG_H
#define FLOWGEN_RNG_H

#include "../common/types.h"

/* One stream per use: drawing more from one does not change another. */
struct rng {
	u64 state;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline void rng_seed(struct rng *r, u64 seed, u64 stream)
{
	r->state = stream;
	r->state = seed ^ rng_next(r);
	r->state = rng_next(r);
}

/* Uniform in [0, 1). */
static inline double rng_unit(struct rng *r)
{
	return (rng_next(r) >> 11) / 9007199254740992.0;	/* 2^53 */
}

#endif
