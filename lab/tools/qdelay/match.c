// SPDX-License-Identifier: GPL-2.0
#include <err.h>

#include "../common/alloc.h"
#include "match.h"

static struct rec *rec;			/* the pool of all tables; rec[0] is not used */
static u32 nrec, reccap, freerec;	/* freerec: a list by next */

struct rec *rec_get(u32 i)
{
	return &rec[i];
}

static void tab_append(struct bucket *b, u32 i)
{
	rec[i].next = 0;
	if (b->head)
		rec[b->tail].next = i;
	else
		b->head = i;
	b->tail = i;
}

static void tab_grow(struct table *t)
{
	u64 size = t->size ? t->size * 2 : 4096, k;
	struct bucket *new = xcalloc(size, sizeof(*new));
	u32 i, next;

	for (k = 0; k < t->size; k++) {
		for (i = t->bucket[k].head; i; i = next) {
			next = rec[i].next;
			tab_append(&new[rec[i].p.fp[0] & (size - 1)], i);
		}
	}
	free(t->bucket);
	t->bucket = new;
	t->size = size;
}

static inline struct bucket *bucket(const struct table *t, const struct pkt *p)
{
	return &t->bucket[p->fp[0] & (t->size - 1)];
}

u32 rec_new(struct table *t, const struct pkt *p, u64 pos)
{
	u32 i;

	if (t->open >= t->size)
		tab_grow(t);
	if (freerec) {
		i = freerec;
		freerec = rec[i].next;
	} else {
		if (nrec + 1 >= reccap) {
			if (reccap >= 1U << 31)
				errx(1, "more than 2^31 packets in the queue");
			reccap = reccap ? reccap * 2 : 4096;
			rec = xreallocarray(rec, reccap, sizeof(*rec));
		}
		i = ++nrec;
	}
	rec[i].p = *p;
	rec[i].pos = pos;
	tab_append(bucket(t, p), i);
	t->open++;
	return i;
}

static void tab_remove(struct table *t, struct bucket *b, u32 i, u32 prev)
{
	if (prev)
		rec[prev].next = rec[i].next;
	else
		b->head = rec[i].next;
	if (b->tail == i)
		b->tail = prev;
	t->open--;
}

u32 rec_match(struct table *t, const struct pkt *p, u64 next_pos)
{
	u64 after = p->flow->matched_pos;
	u32 i, prev = 0, best = 0, best_prev = 0, best_rank = 0, tries = 16;
	struct bucket *b;

	if (!t->size)
		return 0;
	b = bucket(t, p);
	for (i = b->head; i && tries && best_rank < 3; prev = i, i = rec[i].next) {
		u32 rank;

		if (rec[i].p.fp[0] != p->fp[0] ||
		    rec[i].p.fp[1] != p->fp[1])
			continue;
		rank = 1 + (rec[i].pos >= after) + (rec[i].pos >= next_pos);
		if (rank > best_rank) {
			best_rank = rank;
			best = i;
			best_prev = prev;
		}
		tries--;
	}
	if (best)
		tab_remove(t, b, best, best_prev);
	return best;
}

void rec_remove(struct table *t, u32 want)
{
	struct bucket *b = bucket(t, &rec[want].p);
	u32 i, prev = 0;

	for (i = b->head; i != want; i = rec[i].next)
		prev = i;
	tab_remove(t, b, i, prev);
}

void rec_free(u32 i)
{
	rec[i].next = freerec;
	freerec = i;
}
