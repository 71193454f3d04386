/* SPDX-License-Identifier: GPL-2.0 */
/* The fate of each packet: pairs the two sides, in order of time, and counts. */
#ifndef QDELAY_ACCOUNT_H
#define QDELAY_ACCOUNT_H

#include "dist.h"
#include "match.h"
#include "packet.h"
#include "ring.h"
#include "timeline.h"

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
};

/**
 * struct queue - where packets leave by one device
 * @hop:	where that is
 * @dev:	its name in a plan, or NULL
 * @ifindex:	its number, with @dev
 * @reported:	its result is wanted
 * @rate:	of the link, bit/s; 0: not given
 * @delay:	that packets have before the queue, ns
 * @totals:	what is counted
 * @timeline:	length over time
 * @ins, @outs:	arrivals and departures that are not in the timeline yet
 * @last_matched_in: one past the arrival of the newest packet that left, ns
 * @next_pos:	one past the number of that packet among those of the hop
 */
struct queue {
	struct hop *hop;
	const char *dev;
	unsigned int ifindex;
	bool reported;
	double rate;
	u64 delay;
	struct totals totals;
	struct timeline timeline;
	struct ring ins, outs;
	u64 last_matched_in, next_pos;
};

/**
 * struct hop - a node that packets go through, by one of its queues
 * @name:	in a plan, or NULL
 * @netns:	its namespace, in a plan
 * @queue:	its queues. A packet that does not leave is lost in the only queue, or in the one by
 *		which another packet of its flow has left
 * @queues:	how many
 * @flows:	all that come in or leave
 * @table:	packets that came in and have not left
 * @ins:	their arrivals, up to the oldest whose fate is open
 * @started:	there was a packet
 * @whole:	without --to the window ends with the run, not with the last packet
 * @first:	time of the first one, ns since 1970
 * @now:	time of the newest event
 * @last:	time of the newest packet
 * @from, @to:	the window: [from, to). Before hop_start() from its @zero on
 * @duration:	ns: of the window, without --to up to the last packet
 * @lost:	packets that did not leave, of flows of which none has left
 * @ignored:	packets that are not IP
 * @drops:	packets that the captures lost
 */
struct hop {
	const char *name, *netns;
	struct queue *queue;
	u32 queues;
	struct flows flows;
	struct table table;
	struct ring ins;
	bool started, whole;
	u64 first, now, last, from, to, duration;
	u64 lost, ignored, drops;
};

/* Its window is that of the command line. */
void hop_init(struct hop *h, u32 queues);
/* @zero: when the window counts from */
void hop_start(struct hop *h, u64 zero);

/* @q: captured when it left this queue; NULL: when it came in */
void account_packet(struct hop *h, struct queue *q, struct pkt *p);
/* Time has come to @t without a packet. */
void account_time(struct hop *h, u64 t);
/* To be called after the last packet, of any hop at @last. */
void account_end(struct hop *h, u64 last);

#endif
