/* SPDX-License-Identifier: GPL-2.0 */
/* The fate of each packet: pairs the two sides, in order of time, and counts. */
#ifndef QDELAY_ACCOUNT_H
#define QDELAY_ACCOUNT_H

#include "dist.h"
#include "packet.h"

/* What was in the window. Counts are segments: a super-packet of TSO or GRO has several. */
struct totals {
	u64 in, out;			/* before and after the queue */
	u64 super_out;			/* super-packets after the queue */
	u64 bytes_out;			/* on the wire */
	u64 matched, dropped, unresolved;	/* of in */
	u64 unmatched_out, queued_at_start;	/* of out */
	u64 marked;			/* of matched */
	u64 ecn_in[4], ecn_out[4], dropped_ecn[4];	/* index NOT_ECT to CE */
	struct dist delay;		/* ns, by segments */
	u64 first;			/* time of the first packet of either side, ns since 1970 */
	u64 duration;			/* ns: the window, without --to up to the last packet */
};

extern struct totals totals;

/* @out: captured after the queue, not before it */
void account_packet(bool out, struct pkt *p);
/* Time has come to @t without a packet. */
void account_time(u64 t);
/* To be called after the last packet. */
void account_end(void);

#endif
