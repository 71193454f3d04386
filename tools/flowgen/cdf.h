/* SPDX-License-Identifier: GPL-2.0 */
/* A distribution of flow sizes. */
#ifndef FLOWGEN_CDF_H
#define FLOWGEN_CDF_H

#include "../common/types.h"

struct cdf {
	size_t n;		/* points */
	double *bytes;
	double *frac;		/* of the flows that are no larger: 0 to 1 */
	double mean;		/* bytes */
};

/*
 * From a file of two columns, bytes and the fraction of flows that are no larger; straight
 * lines between. What is wrong with it ends the program with exit status 2.
 */
void cdf_load(struct cdf *c, const char *path);

/* The size, 1 byte or more, that a fraction @u of [0, 1) of the flows do not exceed. */
u64 cdf_draw(const struct cdf *c, double u);

#endif
