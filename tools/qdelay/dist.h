/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A distribution. Values are kept as they are up to `exact` of them. Then, or from the start
 * with weights, they go to a log-linear histogram: 2^bits buckets per octave, every value below
 * 2^(bits + 1) has its own. A percentile is the middle of its bucket: off by at most
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
	u64 **octave;		/* of buckets; NULL as long as there is no histogram */
};

void dist_init(struct dist *d, u32 bits, u32 exact);
void dist_add(struct dist *d, u64 v);
/* For distributions with exact = 0. */
void dist_add_weighted(struct dist *d, u64 v, u64 weight);

/* NAN if there are no values, all of them. */
double dist_mean(const struct dist *d);
double dist_stddev(const struct dist *d);
double dist_min(const struct dist *d);
double dist_max(const struct dist *d);
/* Nearest rank: the smallest value that num/den of all do not exceed. Sorts what is exact. */
double dist_percentile(struct dist *d, u32 num, u32 den);

#endif
