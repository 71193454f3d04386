/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long the queue was, from one instant to the next, and the two series. It is told what
 * happened in the order of time.
 */
#ifndef QDELAY_TIMELINE_H
#define QDELAY_TIMELINE_H

#include "dist.h"
#include "flow.h"

/* Weighted with time. */
extern struct dist queue_packets, queue_bytes;

/* @t: of the first packet. What is not in [from, to) does not count. */
void timeline_start(u64 t, u64 from, u64 to);

/* The queue stayed as it is up to @t. */
void timeline_to(u64 t);
/* A packet of @len bytes that goes out again comes in. */
void timeline_in(u64 t, u32 len);
/* One that is lost comes in. */
void timeline_drop(u64 t);

/* A packet that goes out. */
struct out_ev {
	u64 t;			/* ns */
	u64 delay;		/* ns */
	u32 len_in, len;	/* bytes, before the queue and behind it */
	struct flow *flow;
	bool matched;		/* else it did not come in, and has no delay and no len_in */
	bool marked;
};

void timeline_out(const struct out_ev *e);

/* All ends at @t. */
void timeline_end(u64 t);

#endif
