/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that came in and have not left yet, found by fingerprint. */
#ifndef QDELAY_MATCH_H
#define QDELAY_MATCH_H

#include "packet.h"

struct rec {
	struct pkt p;
	u64 pos;		/* number of the packet among those that came in */
	u32 next;		/* newer one in the same hash bucket */
};

/* A list of recs with the same lower bits in fp[0], oldest first; 0: none. */
struct bucket {
	u32 head, tail;
};

/* Recs by fingerprint */
struct table {
	struct bucket *bucket;
	u64 size;		/* a power of two, or 0 */
	u64 open;		/* recs in it */
};

/* Recs are known by numbers from 1 on, because the pool moves when it grows. */
struct rec *rec_get(u32 i);
u32 rec_new(struct table *t, const struct pkt *p, u64 pos);
/*
 * Finds the rec that left as *p, and takes it out of the table; 0 if there is none. A lost packet
 * looks like its retransmission. Of several copies the oldest is chosen that no packet of any flow
 * has overtaken, else the oldest that none of its own flow has, else the oldest of all.
 * @next_pos: one past the newest packet of any flow that has left by this queue.
 */
u32 rec_match(struct table *t, const struct pkt *p, u64 next_pos);
/* Takes rec @i out of the table. */
void rec_remove(struct table *t, u32 i);
/* Gives rec @i back, after rec_match() or rec_remove(). */
void rec_free(u32 i);

#endif
