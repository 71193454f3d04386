/* SPDX-License-Identifier: GPL-2.0 */
/* The sources of packets, and how their packets are merged in order of time. */
#ifndef QDELAY_SOURCE_H
#define QDELAY_SOURCE_H

#include <pcap/pcap.h>

#include "account.h"
#include "ring.h"

#define REORDER		1000000ULL	/* ns; a capture may be out of order by this much */

struct source {
	const char *name;	/* of a file or a device */
	bool out;		/* captured after the queue, not before it */
	pcap_t *pcap;
	int dlt;		/* its link type, DLT_ of libpcap */
	struct ring q;		/* struct pkt, parsed, by time, not merged yet */
	u64 packets, ignored;
	u64 late;		/* packets too old for their place */
	u64 newest;		/* time of the newest packet read */
	u64 merged;		/* time of the newest packet handed to account.c */
	u64 clear;		/* live: no packet older than this will follow */
	u64 got;		/* live: packets from the kernel */
	u64 drops;		/* live: packets that the kernel lost */
	bool eof;
};

/* opt.nsources of them: those before the queue, then the one behind it. */
extern struct source source[];

#define for_each_source(s) \
	for ((s) = source; (s) < source + opt.nsources; (s)++)

/* Sets up source[] from the options. @h: with one queue, which all packets are of */
void sources_init(struct hop *h);

/* To be called for each source once it is open: finds out which bytes all sources show. */
void source_opened(struct source *s);
/* Compiles --filter for the source. Free @prog with pcap_freecode(). */
void source_compile(struct source *s, struct bpf_program *prog);
void source_set_filter(struct source *s);

/* Parses a captured packet and adds it to the source's own queue. */
void source_add_packet(struct source *s, const struct pcap_pkthdr *h, const u8 *data);
/* Every packet of the source before this time is in its queue already. */
u64 source_complete(const struct source *s);

/*
 * Hands packets to account_packet(), oldest first, as long as no older one can follow. At equal
 * times a packet before the queue goes first, because source[] is sorted so. @refill reads more
 * of a source; NULL: only merge what has been read.
 */
void sources_merge(void (*refill)(struct source *s));

#endif
