/* SPDX-License-Identifier: GPL-2.0 */
/* What a captured frame says, as far as a queue leaves it alone. */
#ifndef QDELAY_PACKET_H
#define QDELAY_PACKET_H

#include "flow.h"

enum { NOT_ECT, ECT1, ECT0, CE };	/* the ECN field */

struct pkt {
	u64 t;			/* ns since 1970 */
	u64 fp[2];		/* fingerprint of all that a queue leaves alone */
	struct flow *flow;
	u32 len;		/* bytes on the wire, and --overhead */
	u32 payload;		/* bytes */
	u32 seq;		/* TCP's, else the IP id */
	u8 ecn;
	u8 seqspace;		/* SYN, FIN: take one number each */
	bool tcp, syn;
};

/* The most bytes that can be in front of an IP header, or -1: unknown. @dlt: DLT_ of libpcap */
int link_room(int dlt);

enum parsed {
	PACKET,
	NO_PACKET,	/* not IP, or link control: never goes through a router */
	CUT,		/* too few bytes were captured to tell */
};

/*
 * Fills *p but for its time. @caplen: bytes of @data, @len: bytes that there were on the wire.
 * Both sides must look at the same bytes, so nothing beyond @reach bytes from the IP header on
 * is used even if it was captured, and something below that was not captured is CUT.
 */
enum parsed packet_parse(struct pkt *p, int dlt, u32 reach, const u8 *data, u32 caplen, u32 len);

#endif
