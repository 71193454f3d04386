/* SPDX-License-Identifier: GPL-2.0 */
/* What became of each packet: takes them in the order of time, pairs them and counts. */
#ifndef QDELAY_ACCOUNT_H
#define QDELAY_ACCOUNT_H

#include "dist.h"
#include "packet.h"

/* With a window: of what is in it. By ECN field: index NOT_ECT to CE. */
struct totals {
	u64 in, out;			/* packets */
	u64 bytes_out;
	u64 matched, dropped, unresolved;	/* of in */
	u64 unmatched_out, queued_at_start;	/* of out */
	u64 marked;			/* of matched */
	u64 ecn_in[4], ecn_out[4], dropped_ecn[4];
	struct dist delay;		/* ns */
	u64 first;			/* ns since 1970: the first packet of either side */
	u64 duration;			/* ns of the window, up to the last packet */
};

extern struct totals totals;

/* @out: it was seen behind the queue, not before it */
void account_packet(bool out, const struct pkt *p);
/* It is @t now, without a packet. */
void account_time(u64 t);
/* There are no more packets. */
void account_end(void);

#endif
