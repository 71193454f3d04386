/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that came in and did not go out so far, by their fingerprints. */
#ifndef QDELAY_MATCH_H
#define QDELAY_MATCH_H

#include "packet.h"

struct rec {
	struct pkt p;
	u64 pos;		/* number of the packet among those that came in */
	u32 next;		/* younger one in the same hash bucket */
};

/* Recs are known by numbers from 1 on: the pool moves when it grows. */
struct rec *rec_get(u32 i);
u32 rec_new(const struct pkt *p, u64 pos);
/*
 * The oldest rec that is like *p, 0 if there is none. But a flow stays in order as a rule: one
 * that is older than what already went out (a lost segment, of which *p is the retransmission)
 * comes last. It is not found again.
 */
u32 rec_match(const struct pkt *p);
/* Not to be found again. */
void rec_remove(u32 i);
/* After rec_match() or rec_remove(). */
void rec_free(u32 i);

#endif
