// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "units.h"
#include "cdf.h"

void cdf_load(struct cdf *c, const char *option, const char *path)
{
	FILE *fp = fopen(path, "re");
	size_t room = 0, len = 0, no = 0;
	char *line = NULL;
	double b, f;
	char junk;
	int got;

	if (!fp)
		err(2, "%s: %s", option, path);
	while (getline(&line, &len, fp) >= 0) {
		no++;
		line[strcspn(line, "#\n")] = 0;
		if (!line[strspn(line, " \t\r")])
			continue;
		got = sscanf(line, "%lf %lf %c", &b, &f, &junk);
		if (got != 2)
			errx(2, "%s: %s:%zu: want two numbers, bytes and fraction", option, path,
			     no);
		if (!(b >= 0 && b <= (double)SIZE_LIMIT))
			errx(2, "%s: %s:%zu: bytes out of range", option, path, no);
		if (!(f >= 0 && f <= 1))
			errx(2, "%s: %s:%zu: the fraction must be from 0 to 1", option, path, no);
		if (c->n && (b < c->bytes[c->n - 1] || f < c->frac[c->n - 1]))
			errx(2, "%s: %s:%zu: bytes and fraction must not fall", option, path, no);
		if (c->n == room) {
			room = room ? 2 * room : 32;
			c->bytes = xreallocarray(c->bytes, room, sizeof(double));
			c->frac = xreallocarray(c->frac, room, sizeof(double));
		}
		c->bytes[c->n] = b;
		c->frac[c->n] = f;
		/* If the first fraction is above 0, that many flows have exactly this size. */
		c->mean += c->n ? (f - c->frac[c->n - 1]) * (b + c->bytes[c->n - 1]) / 2 : f * b;
		c->n++;
	}
	if (ferror(fp))
		err(2, "%s: %s", option, path);
	free(line);
	fclose(fp);
	if (!c->n)
		errx(2, "%s: %s: no points in it", option, path);
	if (c->frac[c->n - 1] != 1)
		errx(2, "%s: %s: the last fraction is %g, want 1", option, path, c->frac[c->n - 1]);
	if (c->bytes[c->n - 1] < 1)
		errx(2, "%s: %s: no flow is larger than 0 bytes", option, path);
}

u64 cdf_draw(const struct cdf *c, double u)
{
	size_t lo = 0, hi = c->n - 1;	/* the first point with frac > u lies in (lo, hi] */
	double b;

	if (u < c->frac[0] || !hi) {
		b = c->bytes[0];
	} else {
		while (hi - lo > 1) {
			size_t mid = lo + (hi - lo) / 2;

			if (c->frac[mid] > u)
				hi = mid;
			else
				lo = mid;
		}
		b = c->bytes[lo] + (u - c->frac[lo]) / (c->frac[hi] - c->frac[lo]) *
				   (c->bytes[hi] - c->bytes[lo]);
	}
	return b < 1 ? 1 : (u64)(b + 0.5);
}
