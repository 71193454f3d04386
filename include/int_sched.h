/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between sch_int and its tc plugin: netlink attributes and statistics.
 */
#ifndef _LOWQ_INT_SCHED_H
#define _LOWQ_INT_SCHED_H

#include <linux/types.h>

enum {
	TCA_INT_UNSPEC,
	TCA_INT_RATE64,		/* u64, bytes/s; 0: the device's link speed */
	TCA_INT_SWITCH_ID,	/* u16, 0 to 4095; 0: from the device's address */
	TCA_INT_DSCP,		/* u8, 0 to 63 */
	TCA_INT_FLAGS,		/* u32, INT_SCHED_... */
	TCA_INT_PAD,
	__TCA_INT_MAX,
};

#define TCA_INT_MAX (__TCA_INT_MAX - 1)

/* Records look like those of a 100 Gb/s port with the same load: they hide the rate */
#define INT_SCHED_RELATIVE	0x1
/* Queue length is the probe's own wait times the rate: for ports with many queues */
#define INT_SCHED_SOJOURN	0x2
/* Bytes count as on Ethernet: with preamble, FCS and gap, and at least 84 per frame */
#define INT_SCHED_ETHERNET	0x4
#define INT_SCHED_FLAGS		(INT_SCHED_RELATIVE | INT_SCHED_SOJOURN | INT_SCHED_ETHERNET)

/**
 * struct tc_int_xstats - what tc -s shows
 * @rate:	in use, bytes/s; 0: unknown, nothing is stamped
 * @stamped:	probes with a record of this node
 * @over_room:	probes that had no room for it
 * @no_rate:	probes not stamped because the rate is unknown, or not all queues have an int
 * @malformed:	packets that look like probes but are not, or that cannot be written to
 * @switch_id:	in use
 * @pad:	0
 */
struct tc_int_xstats {
	__u64 rate;
	__u64 stamped;
	__u64 over_room;
	__u64 no_rate;
	__u64 malformed;
	__u32 switch_id;
	__u32 pad;
};

#endif /* _LOWQ_INT_SCHED_H */
