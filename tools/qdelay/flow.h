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
	u8 family;		/* 4, 6, or 0 for all beyond the most that are told apart */
	u8 zero[2];
};

struct flow {
	struct flow_key key;	/* first: what flows are found by */
	char *name;		/* NULL until somebody asks */
	u64 first;		/* ns; NEVER until there is a packet */
	/* on out; bytes are those on the wire, and payload; fresh: of TCP, not seen before */
	u64 packets, bytes, payload, fresh;
	u64 packets_in, retrans, marked, dropped;
	u64 unmatched_out;
	u32 max_in, max_out;	/* the largest payload, bytes */
	u64 matched_pos;	/* past the youngest that went out: number among those in */
	u64 last_in, last_out;	/* ns, for the gaps; NEVER at first */
	u64 bin_bytes;		/* on out, in the series' present bin */
	bool segmented;		/* on one side only */
	struct seen in, out;
	struct dist delay, gap_in, gap_out;	/* ns */
};

extern struct flow **flows;
extern u32 nflows;

/* The flow of @key, a new one if need be. */
struct flow *flow_find(const struct flow_key *key);
/* SRC:SPORT>DST:DPORT, or "other" */
const char *flow_name(struct flow *f);
/* Puts flows in the order of their first packets. */
void flows_sort(void);

#endif
