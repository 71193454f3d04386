// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <string.h>

#include "../common/alloc.h"
#include "dist.h"

#define NOCTAVES(d)	(65 - (d)->bits)

void dist_init(struct dist *d, u32 bits, u32 exact)
{
	memset(d, 0, sizeof(*d));
	d->bits = bits;
	d->exact = exact;
	d->min = NEVER;
}

static void dist_bucket(struct dist *d, u64 v, u64 weight)
{
	u32 o = 0;
	u64 i = v;

	if (v >> d->bits) {
		u32 shift = 63 - __builtin_clzll(v) - d->bits;

		o = shift + 1;
		i = (v >> shift) - (1ULL << d->bits);
	}
	if (!d->octave)
		d->octave = xcalloc(NOCTAVES(d), sizeof(*d->octave));
	if (!d->octave[o])
		d->octave[o] = xcalloc(1ULL << d->bits, sizeof(u64));
	d->octave[o][i] += weight;
}

static inline void dist_moments(struct dist *d, u64 v, u64 weight)
{
	long double x = v, w = weight;

	d->n += weight;
	d->sum += x * w;
	d->sq += x * x * w;
	if (v < d->min)
		d->min = v;
	if (v > d->max)
		d->max = v;
}

void dist_add_weighted(struct dist *d, u64 v, u64 weight)
{
	dist_moments(d, v, weight);
	dist_bucket(d, v, weight);
}

void dist_add(struct dist *d, u64 v)
{
	u32 i;

	dist_moments(d, v, 1);
	if (d->octave) {
		dist_bucket(d, v, 1);
		return;
	}
	if (d->nval == d->cap && d->cap < d->exact) {
		d->cap = d->cap ? d->cap * 4 : 16;
		d->val = xreallocarray(d->val, d->cap, sizeof(*d->val));
	}
	if (d->nval < d->cap) {
		d->val[d->nval++] = v;
		return;
	}
	for (i = 0; i < d->nval; i++)
		dist_bucket(d, d->val[i], 1);
	dist_bucket(d, v, 1);
	free(d->val);
	d->val = NULL;
	d->nval = 0;
}

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

double dist_percentile(struct dist *d, u32 num, u32 den)
{
	u64 rank = d->n / den * num + (d->n % den * num + den - 1) / den;
	u64 seen = 0, size = 1ULL << d->bits, i;
	double v;
	u32 o;

	if (!d->n)
		return NAN;
	if (!d->octave) {
		qsort(d->val, d->nval, sizeof(*d->val), cmp_u64);
		return d->val[rank - 1];
	}
	for (o = 0; o < NOCTAVES(d); o++) {
		for (i = 0; d->octave[o] && i < size; i++) {
			seen += d->octave[o][i];
			if (seen < rank)
				continue;
			if (o < 2)
				return o ? size + i : i;
			v = ldexp(size + i, o - 1) + (ldexp(1, o - 1) - 1) / 2;
			if (v < d->min)
				return d->min;
			return v > d->max ? d->max : v;
		}
	}
	return d->max;
}

double dist_mean(const struct dist *d)
{
	return d->sum / d->n;	/* 0 / 0 is NAN */
}

double dist_stddev(const struct dist *d)
{
	long double m = d->sum / d->n, var = d->sq / d->n - m * m;

	if (!d->n)
		return NAN;
	return var > 0 ? sqrtl(var) : 0;
}

double dist_min(const struct dist *d)
{
	return d->n ? (double)d->min : NAN;	/* NAN is a float */
}

double dist_max(const struct dist *d)
{
	return d->n ? (double)d->max : NAN;
}
