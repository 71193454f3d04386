/* SPDX-License-Identifier: GPL-2.0 */
/* Flows: packets of the same addresses, protocol and ports, in one direction. */
#ifndef QDELAY_FLOW_H
#define QDELAY_FLOW_H

#include "dist.h"
#include "seen.h"

struct flow_key {
	u8 src[16], dst[16];
	u16 sport, dport;
	u8 proto;		/* IPPROTO_ */
	u8 family;		/* 4, 6, or 0 for the flow that collects all beyond MAX_FLOWS */
	u8 zero[2];
};

struct queue;

/* All flows of a hop */
struct flows {
	struct flow **at;
	u32 n;
	void *tree;		/* of struct flow, by key */
	struct flow *recent;
};

struct flow {
	struct flow_key key;	/* first: the tree compares it */
	struct flows *of;
	struct queue *queue;	/* that it left by last; NULL: none yet */
	char *name;		/* NULL until it is asked for */
	u64 first;		/* time of its first packet, ns; NEVER before that */
	/* after the queue: segments, bytes on the wire, payload, new payload (seen first) */
	u64 packets, bytes, payload, fresh;
	/* before the queue, segments; marked, dropped and retransmitted ones among them */
	u64 packets_in, retrans, marked, dropped;
	u64 unmatched_out;
	u64 split_out;		/* of these, packets that came in with another size */
	u32 max_in, max_out;	/* the largest payload, bytes */
	u16 mss_option;		/* of its SYN, bytes; 0: not captured */
	u32 gso_size;		/* most payload of a segment, bytes; 0: not known yet */
	u64 uncounted;		/* super-packets whose segments could not be counted */
	u64 matched_pos;	/* one past the newest packet that left: number among those in */
	u64 last_in, last_out;	/* ns, for the gaps; NEVER at first */
	u64 bin_bytes;		/* after the queue, in the current bin of the series */
	bool segmented;		/* on one side only */
	struct seen in, out;
	struct dist delay, gap_in, gap_out;	/* ns */
};

/* The flow of @key; makes a new one if there is none. */
struct flow *flow_find(struct flows *all, const struct flow_key *key);
/* The flow in the other direction, or NULL. */
struct flow *flow_reverse(const struct flow *f);
/* SRC:SPORT>DST:DPORT, or "other" */
const char *flow_name(struct flow *f);
/* Sorts flows by the time of their first packets. */
void flows_sort(struct flows *all);

#endif
