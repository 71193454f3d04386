/* SPDX-License-Identifier: GPL-2.0 */
/* A queue in memory: a ring that grows. Entries are numbered as they come, for ever. */
#ifndef QDELAY_RING_H
#define QDELAY_RING_H

#include "../common/types.h"

struct ring {
	void *buf;
	u64 head, tail;		/* entries head..tail-1 are there */
	u64 cap;		/* entries; a power of two, or 0 */
};

/* @size: of an entry, in bytes. Makes room for twice as many. */
void ring_grow(struct ring *r, size_t size);

static inline bool ring_empty(const struct ring *r)
{
	return r->head == r->tail;
}

#define ring_at(r, type, i)	((type *)(r)->buf + ((i) & ((r)->cap - 1)))
#define ring_front(r, type)	ring_at(r, type, (r)->head)

/* A new last entry, with anything in it. */
#define ring_push(r, type) ({					\
	struct ring *_r = (r);					\
	if (_r->tail - _r->head == _r->cap)			\
		ring_grow(_r, sizeof(type));			\
	ring_at(_r, type, _r->tail++);				\
})

#endif
