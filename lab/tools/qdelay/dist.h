/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A distribution. The first `exact` values are kept unchanged. With more values, or with weights,
 * it becomes a log-linear histogram: 2^bits buckets per octave, one for each value below
 * 2^(bits + 1). A percentile is then the middle of its bucket, with a relative error of at most
 * 2^-(bits + 1).
 */
#ifndef QDELAY_DIST_H
#define QDELAY_DIST_H

#include "../common/types.h"

struct dist {
	u64 n;			/* sum of weights */
	u64 min, max;
	long double sum, sq;
	u64 *val;
	u32 nval, cap, exact;
	u32 bits;
	u64 **octave;		/* buckets; NULL until there is a histogram */
};

void dist_init(struct dist *d, u32 bits, u32 exact);
void dist_add(struct dist *d, u64 v);
/* Only for distributions with exact = 0. */
void dist_add_weighted(struct dist *d, u64 v, u64 weight);

/* All of these return NAN if there are no values. */
double dist_mean(const struct dist *d);
double dist_stddev(const struct dist *d);
double dist_min(const struct dist *d);
double dist_max(const struct dist *d);
/* Nearest rank: the smallest value that num/den of all values do not exceed. Sorts d->val. */
double dist_percentile(struct dist *d, u32 num, u32 den);

#endif
