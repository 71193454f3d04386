// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "../common/alloc.h"
#include "ring.h"

void ring_grow(struct ring *r, size_t size)
{
	u64 cap = r->cap ? r->cap * 2 : 256, i;
	char *buf = xreallocarray(NULL, cap, size);

	for (i = r->head; i != r->tail; i++)
		memcpy(buf + (i & (cap - 1)) * size,
		       (char *)r->buf + (i & (r->cap - 1)) * size, size);
	free(r->buf);
	r->buf = buf;
	r->cap = cap;
}
