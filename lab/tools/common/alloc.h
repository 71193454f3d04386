/* SPDX-License-Identifier: GPL-2.0 */
/* Allocation; a failure ends the program with exit status 1. */
#ifndef TOOLS_ALLOC_H
#define TOOLS_ALLOC_H

#include <err.h>
#include <stdlib.h>

static inline void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		err(1, "memory");
	return p;
}

static inline void *xreallocarray(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n, size);
	if (!p)
		err(1, "memory");
	return p;
}

#endif
