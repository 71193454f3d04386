/* SPDX-License-Identifier: GPL-2.0 */
/* A distribution of flow sizes. */
#ifndef TOOLS_CDF_H
#define TOOLS_CDF_H

#include "types.h"

struct cdf {
	size_t n;		/* points */
	double *bytes;
	double *frac;		/* fraction of flows of at most this size, 0 to 1 */
	double mean;		/* bytes */
};

/*
 * Reads a file of two columns: bytes, and the fraction of flows of at most that size, linear in
 * between. @option is for messages. A wrong file ends the program with exit status 2.
 */
void cdf_load(struct cdf *c, const char *option, const char *path);

/* The @u quantile of the sizes, 1 byte or more; @u is in [0, 1). */
u64 cdf_draw(const struct cdf *c, double u);

#endif
