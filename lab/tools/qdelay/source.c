// SPDX-License-Identifier: GPL-2.0
#include <err.h>

#include "options.h"
#include "source.h"

struct source source[MAX_SOURCES];

static struct hop *hop;
static u32 reach;	/* bytes from the IP header on that all sources show */

void sources_init(struct hop *h)
{
	u32 i;

	hop = h;
	hop_init(h, 1);
	h->queue->reported = true;
	h->queue->rate = opt.rate;
	for (i = 0; i < opt.nsources; i++) {
		source[i].name = opt.source[i];
		source[i].out = i == opt.nsources - 1;
	}
}

void source_compile(struct source *s, struct bpf_program *prog)
{
	if (pcap_compile(s->pcap, prog, opt.filter ? opt.filter : "", 1,
			 PCAP_NETMASK_UNKNOWN))
		usage_error("--filter: %s", pcap_geterr(s->pcap));
}

void source_set_filter(struct source *s)
{
	struct bpf_program prog;

	source_compile(s, &prog);
	if (pcap_setfilter(s->pcap, &prog))
		errx(1, "%s: cannot set the filter: %s", s->name,
		     pcap_geterr(s->pcap));
	pcap_freecode(&prog);
}

void source_opened(struct source *s)
{
	int room, snap = pcap_snapshot(s->pcap);

	s->dlt = pcap_datalink(s->pcap);
	room = link_room(s->dlt);
	if (room < 0) {
		const char *name = pcap_datalink_val_to_name(s->dlt);

		errx(1, "%s: link type %s (%d) is not one of Ethernet, Linux cooked, raw IP, null",
		     s->name, name ? name : "unknown", s->dlt);
	}
	if (snap <= 0 || snap > 1 << 20)
		snap = 1 << 20;
	if (opt.snaplen && snap > (int)opt.snaplen)
		snap = opt.snaplen;
	snap -= room;
	if (snap < 60)
		errx(1, "%s: snapshot length too small: at least %d is needed",
		     s->name, 60 + room);
	if (!reach || (u32)snap < reach)
		reach = snap;
}

/*
 * Sorted by time: with several CPUs a packet can get an earlier time stamp than another
 * and still be captured after it.
 */
static void enqueue(struct source *s, const struct pkt *p)
{
	u64 i;

	ring_push(&s->q, struct pkt);
	for (i = s->q.tail - 1; i != s->q.head; i--) {
		if (ring_at(&s->q, struct pkt, i - 1)->t <= p->t)
			break;
		*ring_at(&s->q, struct pkt, i) =
			*ring_at(&s->q, struct pkt, i - 1);
	}
	*ring_at(&s->q, struct pkt, i) = *p;
	if (p->t > s->newest)
		s->newest = p->t;
	if (p->t < s->merged)
		s->late++;
}

void source_add_packet(struct source *s, const struct pcap_pkthdr *h, const u8 *data)
{
	u32 len = h->len < h->caplen ? h->caplen : h->len;
	u32 caplen = h->caplen;
	struct pkt p;
	u64 t;

	s->packets++;
	if (h->ts.tv_sec < 0 || h->ts.tv_sec > 9000000000LL ||
	    h->ts.tv_usec < 0 || h->ts.tv_usec >= (long)NSEC)
		errx(1, "%s: packet %llu has an impossible time: corrupt capture",
		     s->name, s->packets);
	if (len > 1U << 30)
		errx(1, "%s: packet %llu has an impossible length: corrupt capture",
		     s->name, s->packets);
	if (opt.snaplen && caplen > opt.snaplen)
		caplen = opt.snaplen;
	t = h->ts.tv_sec * NSEC + h->ts.tv_usec;	/* tv_usec holds nanoseconds */
	switch (packet_parse(&p, &hop->flows, s->dlt, reach, data, caplen, len)) {
	case PACKET:
		p.t = t;
		enqueue(s, &p);
		break;
	case NO_PACKET:
		s->ignored++;
		break;
	case CUT:
		errx(1, "%s: packet %llu has only %u of its %u bytes: if the capture is cut to that size, say --snaplen %u",
		     s->name, s->packets, caplen, len, caplen);
	}
}

u64 source_complete(const struct source *s)
{
	u64 t = s->newest > REORDER ? s->newest - REORDER : 0;

	if (s->eof)
		return NEVER;
	return t > s->clear ? t : s->clear;
}

void sources_merge(void (*refill)(struct source *s))
{
	struct source *s, *best;
	u64 t, limit;

	for (;;) {
		best = NULL;
		t = NEVER;
		limit = NEVER;
		for_each_source(s) {
			while (refill && !s->eof &&
			       (ring_empty(&s->q) ||
				ring_front(&s->q, struct pkt)->t >= source_complete(s)))
				refill(s);
			if (source_complete(s) < limit)
				limit = source_complete(s);
			if (!ring_empty(&s->q) &&
			    ring_front(&s->q, struct pkt)->t < t) {
				t = ring_front(&s->q, struct pkt)->t;
				best = s;
			}
		}
		if (!best || t >= limit)
			return;
		account_packet(hop, best->out ? hop->queue : NULL,
			       ring_front(&best->q, struct pkt));
		if (t > best->merged)
			best->merged = t;
		best->q.head++;
	}
}
