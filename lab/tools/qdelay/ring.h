/* SPDX-License-Identifier: GPL-2.0 */
/* A FIFO in memory: a ring that grows. Entries are numbered in order, without wrap. */
#ifndef QDELAY_RING_H
#define QDELAY_RING_H

#include "../common/types.h"

struct ring {
	void *buf;
	u64 head, tail;		/* entries head..tail-1 are there */
	u64 cap;		/* entries; a power of two, or 0 */
};

/* Doubles the room. @size: bytes per entry */
void ring_grow(struct ring *r, size_t size);

static inline bool ring_empty(const struct ring *r)
{
	return r->head == r->tail;
}

#define ring_at(r, type, i)	((type *)(r)->buf + ((i) & ((r)->cap - 1)))
#define ring_front(r, type)	ring_at(r, type, (r)->head)

/* Adds an uninitialised last entry. */
#define ring_push(r, type) ({					\
	struct ring *_r = (r);					\
	if (_r->tail - _r->head == _r->cap)			\
		ring_grow(_r, sizeof(type));			\
	ring_at(_r, type, _r->tail++);				\
})

#endif
