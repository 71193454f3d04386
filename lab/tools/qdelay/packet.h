/* SPDX-License-Identifier: GPL-2.0 */
/* A captured frame: those of its headers that a queue does not change. */
#ifndef QDELAY_PACKET_H
#define QDELAY_PACKET_H

#include "flow.h"

enum { NOT_ECT, ECT1, ECT0, CE };	/* the ECN field */

struct pkt {
	u64 t;			/* ns since 1970 */
	u64 fp[2];		/* fingerprint of all that a queue does not change */
	struct flow *flow;
	u32 len;		/* bytes on the wire of all its segments, each with --overhead */
	u32 header;		/* bytes of @len that each segment has: all but the payload */
	u32 payload;		/* bytes */
	u32 seq;		/* TCP's, else the IP id */
	u32 segs;		/* segments; more than 1: a super-packet of TSO or GRO */
	u16 mss;		/* option of a SYN, bytes; 0: none */
	u8 options;		/* bytes of TCP options */
	u8 ecn;
	u8 seqspace;		/* SYN and FIN take one number each */
	bool tcp, syn;
	bool stream;		/* TCP with SYN or ACK: not HPCC++'s probes */
};

/* The most bytes that can precede an IP header; -1: link type @dlt (DLT_ of libpcap) unknown. */
int link_room(int dlt);

enum parsed {
	PACKET,
	NO_PACKET,	/* not IP, or link control: never goes through a router */
	CUT,		/* too few bytes were captured to tell */
};

/*
 * Fills *p except its time. @flows: to find its flow in. @caplen: bytes of @data; @len: bytes on
 * the wire. Both sides must look at the same bytes: bytes beyond @reach from the IP header are not
 * used even if captured, and the result is CUT if a byte before that is needed and was not
 * captured.
 */
enum parsed packet_parse(struct pkt *p, struct flows *flows, int dlt, u32 reach, const u8 *data,
			 u32 caplen, u32 len);

#endif
