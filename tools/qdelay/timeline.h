/* SPDX-License-Identifier: GPL-2.0 */
/* Queue length over time, and the two series. Events come in order of time. */
#ifndef QDELAY_TIMELINE_H
#define QDELAY_TIMELINE_H

#include "dist.h"
#include "flow.h"

/* Weighted by time. Packets are segments. */
extern struct dist queue_packets, queue_bytes;

/* @t: time of the first packet. Only [from, to) counts. */
void timeline_start(u64 t, u64 from, u64 to);

/* The queue did not change up to @t. */
void timeline_to(u64 t);
/* A packet of @segs segments and @len bytes enters the queue and will leave it. */
void timeline_in(u64 t, u32 segs, u32 len);
/* A packet of @segs segments arrives and is lost. */
void timeline_drop(u64 t, u32 segs);

/* A packet that leaves the queue. */
struct out_ev {
	u64 t;			/* ns */
	u64 delay;		/* ns */
	u32 len_in, len;	/* bytes, before and after the queue */
	u32 segs;		/* segments */
	struct flow *flow;
	bool matched;		/* false: it did not come in, and has no delay and no len_in */
	bool marked;
};

void timeline_out(const struct out_ev *e);

/* Ends the measurement at @t. */
void timeline_end(u64 t);
/* Rows of the series that were left out, because it has too many; 0: none. */
u64 timeline_rows_left_out(void);

#endif
