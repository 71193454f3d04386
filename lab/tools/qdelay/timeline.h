/* SPDX-License-Identifier: GPL-2.0 */
/* Queue length over time, and the two series. Events come in order of time. */
#ifndef QDELAY_TIMELINE_H
#define QDELAY_TIMELINE_H

#include "dist.h"
#include "flow.h"

/* A row of the series: [i, i + 1) * opt.bin from the window's start. */
struct bin {
	u64 i;
	u64 bytes, delay_n, delay_max, marked, dropped;
	u64 time;			/* ns of it that have passed */
	long double delay_sum;
	long double packets, octets;	/* queue length * ns */
	u64 packets_max, octets_max;
};

/* Of one queue */
struct timeline {
	const char *name;		/* begins each row; NULL: nothing does */
	u64 zero;			/* when the time in rows counts from */
	u64 from, to;			/* the window: [from, to) */
	u64 now;			/* the queue length is known up to here */
	u64 packets, octets;		/* in the queue now; packets are segments */
	struct dist queue_packets, queue_bytes;	/* weighted by time */
	struct bin bin;
	u64 rows_left_out;		/* of the series, because it has too many */
	struct flow **touched;		/* flows with packets in the bin */
	u32 ntouched, touchedcap;
};

/* @at: time of the first packet. Only [from, to) counts. */
void timeline_start(struct timeline *t, u64 at, u64 from, u64 to);

/* The queue did not change up to @at. */
void timeline_to(struct timeline *t, u64 at);
/* A packet of @segs segments and @len bytes enters the queue and will leave it. */
void timeline_in(struct timeline *t, u64 at, u32 segs, u32 len);
/* A packet of @segs segments arrives and is lost. */
void timeline_drop(struct timeline *t, u64 at, u32 segs);

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

void timeline_out(struct timeline *t, const struct out_ev *e);

/* Ends the measurement at @at. */
void timeline_end(struct timeline *t, u64 at);

#endif
