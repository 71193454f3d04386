/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What rtnetlink says of an end of a link: IFLA_INFO_DATA of the kind "lowq_link". A change
 * replaces what it names, and keeps the rest. An end that has neither a rate nor a trace when its
 * device comes up for the first time is infinitely fast, and stays so.
 */
#ifndef LOWQ_LINK_H
#define LOWQ_LINK_H

#include <linux/types.h>

#define LOWQ_LINK_KIND	"lowq_link"

/* Probabilities are in Q32: 1 << 32 is certain. */
enum {
	IFLA_LOWQ_LINK_UNSPEC,
	/* struct ifinfomsg and attributes of the other end; only when both are made */
	IFLA_LOWQ_LINK_PEER,
	IFLA_LOWQ_LINK_RATE,		/* u64, bit/s */
	IFLA_LOWQ_LINK_DELAY,		/* u64, ns */
	IFLA_LOWQ_LINK_JITTER,		/* u64, ns: up to so much more delay, in order */
	IFLA_LOWQ_LINK_SEED,		/* u64, of all that happens by chance */
	IFLA_LOWQ_LINK_LOSS,		/* struct lowq_link_loss */
	IFLA_LOWQ_LINK_LATE,		/* struct lowq_link_late */
	IFLA_LOWQ_LINK_DUPLICATE,	/* u64, a probability */
	/* u64, a probability: of a wrong bit after Ethernet's header */
	IFLA_LOWQ_LINK_CORRUPT,
	/* u32: a trace of so many instants will come, before the device is up */
	IFLA_LOWQ_LINK_TRACE_SIZE,
	/* u32 each: its next instants, us from its beginning, none before the last one */
	IFLA_LOWQ_LINK_TRACE,
	IFLA_LOWQ_LINK_TRACE_START,	/* u64, ns of CLOCK_MONOTONIC when it begins */
	IFLA_LOWQ_LINK_PART,		/* struct lowq_link_part, before the device is up */
	__IFLA_LOWQ_LINK_MAX,
};

#define IFLA_LOWQ_LINK_MAX	(__IFLA_LOWQ_LINK_MAX - 1)
#define LOWQ_LINK_TRACE_MAX	4194304	/* instants */
#define LOWQ_LINK_PARTS_MAX	8	/* processes of one run */

/* Of a loss in the good and in the bad state, of becoming bad and good: Gilbert, Elliott */
struct lowq_link_loss {
	__u64 good, bad;
	__u64 worse, better;
};

/* The end's number, not 0; the processes that have its node and the other end's */
struct lowq_link_part {
	__u32 id;
	__u32 from, to;
};

/* This share of packets is held back for @by ns, and overtaken */
struct lowq_link_late {
	__u64 share;
	__u64 by;
};

#endif
