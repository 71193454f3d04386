// SPDX-License-Identifier: GPL-2.0
#include <err.h>

#include "../common/alloc.h"
#include "match.h"

/* A list of recs with the same lower bits in fp[0], oldest first; 0: none. */
struct bucket {
	u32 head, tail;
};

static struct rec *rec;			/* the pool; rec[0] is not used */
static u32 nrec, reccap, freerec;	/* freerec: a list by next */
static struct bucket *tab;
static u64 tabsize;			/* a power of two, or 0 */
static u64 open_recs;			/* in the table */

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

static void tab_grow(void)
{
	u64 size = tabsize ? tabsize * 2 : 4096, k;
	struct bucket *new = xcalloc(size, sizeof(*new));
	u32 i, next;

	for (k = 0; k < tabsize; k++) {
		for (i = tab[k].head; i; i = next) {
			next = rec[i].next;
			tab_append(&new[rec[i].p.fp[0] & (size - 1)], i);
		}
	}
	free(tab);
	tab = new;
	tabsize = size;
}

static inline struct bucket *bucket(const struct pkt *p)
{
	return &tab[p->fp[0] & (tabsize - 1)];
}

u32 rec_new(const struct pkt *p, u64 pos)
{
	u32 i;

	if (open_recs >= tabsize)
		tab_grow();
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
	tab_append(bucket(p), i);
	open_recs++;
	return i;
}

static void tab_remove(struct bucket *b, u32 i, u32 prev)
{
	if (prev)
		rec[prev].next = rec[i].next;
	else
		b->head = rec[i].next;
	if (b->tail == i)
		b->tail = prev;
	open_recs--;
}

u32 rec_match(const struct pkt *p, u64 next_pos)
{
	u64 after = p->flow->matched_pos;
	u32 i, prev = 0, best = 0, best_prev = 0, best_rank = 0, tries = 16;
	struct bucket *b;

	if (!tabsize)
		return 0;
	b = bucket(p);
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
		tab_remove(b, best, best_prev);
	return best;
}

void rec_remove(u32 want)
{
	struct bucket *b = bucket(&rec[want].p);
	u32 i, prev = 0;

	for (i = b->head; i != want; i = rec[i].next)
		prev = i;
	tab_remove(b, i, prev);
}

void rec_free(u32 i)
{
	rec[i].next = freerec;
	freerec = i;
}
