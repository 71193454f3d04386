/* SPDX-License-Identifier: GPL-2.0 */
/* Where packets come from, and the one order of time that they are put into. */
#ifndef QDELAY_SOURCE_H
#define QDELAY_SOURCE_H

#include <pcap/pcap.h>

#include "packet.h"
#include "ring.h"

#define REORDER		1000000ULL	/* ns; a capture may be out of order by that */

struct source {
	const char *name;	/* of a file or a device */
	bool out;		/* behind the queue, not before it */
	pcap_t *pcap;
	int dlt;		/* its link type, DLT_ of libpcap */
	struct ring q;		/* struct pkt, parsed, by time, not merged yet */
	u64 packets, ignored;
	u64 late;		/* packets too old for their place */
	u64 newest, merged;	/* times: read, given away */
	u64 clear;		/* live: nothing older is to come */
	u64 got;		/* live: packets from the kernel */
	u64 drops;		/* live: packets that the kernel lost */
	bool eof;
};

/* Those before the queue, then the one behind it. */
extern struct source source[];
extern u32 nsources;

#define for_each_source(s) \
	for ((s) = source; (s) < source + nsources; (s)++)

/* For the command line. @list: names with commas, chopped up */
void sources_add(char *list, bool out);

/* After opening: what both sides are sure to show. */
void source_opened(struct source *s);
/* --filter, as a program for the source. Free it with pcap_freecode(). */
void source_compile(struct source *s, struct bpf_program *prog);
void source_set_filter(struct source *s);

/* A packet of a capture, to the source's own queue. */
void source_take(struct source *s, const struct pcap_pkthdr *h, const u8 *data);
/* All packets of the source that are older than this time are in its queue. */
u64 source_complete(const struct source *s);

/*
 * Hands the oldest packet of all sources to account_packet() as long as none older can come. At
 * equal times what comes in comes first (sources are sorted so). @refill: reads on where more is
 * needed; NULL: what is there has to do
 */
void sources_merge(void (*refill)(struct source *s));

#endif
