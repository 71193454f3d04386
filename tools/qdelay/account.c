// SPDX-License-Identifier: GPL-2.0
#include "account.h"
#include "match.h"
#include "options.h"
#include "output.h"
#include "ring.h"
#include "timeline.h"

/* Fate of a packet in ins: a rec while open. */
#define FATE_GONE	0xffffffffU	/* matched */
#define FATE_DROPPED	0xfffffffeU
#define FATE_OPEN	0xfffffffdU	/* not known at the end of the run */
#define FATE_MIN	FATE_OPEN

/* A packet that came in. */
struct in_ev {
	u64 t;			/* never before that of the entry before */
	u32 len;
	u32 rec;
};

struct totals totals;

static struct ring ins, outs;	/* struct in_ev, struct out_ev: what the timeline waits for */
static bool started;
static u64 now, last;		/* times: of all, and of packets */
static u64 from, to;		/* the window: [from, to) */
static u64 last_matched_in;	/* past the in time of the youngest that went out */

static bool in_window(u64 t)
{
	return t >= from && t < to;
}

static void line(const struct pkt *in, const struct pkt *out)
{
	if (in_window(in ? in->t : out->t))
		packet_line(in, out);
}

static void lose(struct in_ev *e)
{
	u32 i = e->rec;
	struct pkt *p = &rec_get(i)->p;

	rec_remove(i);
	if (in_window(p->t)) {
		totals.dropped++;
		totals.dropped_ecn[p->ecn]++;
		p->flow->dropped++;
	}
	line(p, NULL);
	e->rec = FATE_DROPPED;
	rec_free(i);
}

/*
 * Goes on as far as every packet's fate is known.  What comes later happens
 * at now or after.  At the same time, in goes before out: a state that does
 * not last does not count, and no packet goes out before it came in.
 */
static void sweep(void)
{
	struct in_ev *in = NULL;
	struct out_ev *out;

	for (;;) {
		in = NULL;
		if (!ring_empty(&ins)) {
			in = ring_front(&ins, struct in_ev);
			if (in->rec < FATE_MIN && now > in->t &&
			    now - in->t > opt.gap)
				lose(in);
		}
		if (!ring_empty(&outs)) {
			out = ring_front(&outs, struct out_ev);
			if (!in || out->t < in->t) {
				timeline_out(out);
				outs.head++;
				continue;
			}
		}
		if (!in || in->rec < FATE_MIN)
			return;
		if (in->rec == FATE_GONE)
			timeline_in(in->t, in->len);
		else if (in->rec == FATE_DROPPED)
			timeline_drop(in->t);
		else
			timeline_to(in->t);
		ins.head++;
	}
}

static void start(u64 t)
{
	started = true;
	totals.first = t;
	from = t + opt.from;
	to = opt.to == NEVER ? NEVER : t + opt.to;
	dist_init(&totals.delay, 12, 65536);
	timeline_start(t, from, to);
}

/* From a packet to the next one at @t. */
static void add_gap(struct dist *gaps, u64 *before, u64 t)
{
	if (!opt.gaps)
		return;
	if (*before != NEVER && t >= *before)
		dist_add(gaps, t - *before);
	*before = t;
}

static void on_in(const struct pkt *p)
{
	struct flow *f = p->flow;
	u64 pos = ins.tail;
	struct in_ev *e;
	u32 n = p->payload + p->seqspace;
	bool again = false;

	e = ring_push(&ins, struct in_ev);
	e->t = now;
	e->len = p->len;
	e->rec = rec_new(p, pos);
	if (p->tcp && n)
		again = seen_add(&f->in, p->seq, n, p->syn) < n;
	if (p->payload > f->max_in)
		f->max_in = p->payload;
	if (!in_window(p->t))
		return;
	totals.in++;
	totals.ecn_in[p->ecn]++;
	f->packets_in++;
	f->retrans += again;
	add_gap(&f->gap_in, &f->last_in, p->t);
}

/* All that went out before the first match was in the queue already. */
static void first_match(void)
{
	totals.queued_at_start = totals.unmatched_out;
	totals.unmatched_out = 0;
	for (u32 i = 0; i < nflows; i++)
		flows[i]->unmatched_out = 0;
}

/* What came in as @rec went out as @p. */
static void matched(const struct rec *rec, const struct pkt *p, struct out_ev *e)
{
	const struct pkt *in = &rec->p;
	struct flow *f = p->flow;

	if (!last_matched_in)
		first_match();
	if (in->t >= last_matched_in)
		last_matched_in = in->t + 1;
	if (rec->pos >= f->matched_pos)
		f->matched_pos = rec->pos + 1;
	e->matched = true;
	e->len_in = in->len;
	e->marked = p->ecn == CE && in->ecn != CE;
	e->delay = p->t > in->t ? p->t - in->t : 0;
	ring_at(&ins, struct in_ev, rec->pos)->rec = FATE_GONE;
	if (in_window(in->t)) {
		totals.matched++;
		dist_add(&totals.delay, e->delay);
		dist_add(&f->delay, e->delay);
		totals.marked += e->marked;
		f->marked += e->marked;
	}
}

static void on_out(const struct pkt *p)
{
	struct flow *f = p->flow;
	u32 i = rec_match(p), n = p->payload + p->seqspace, fresh;
	struct out_ev *e = ring_push(&outs, struct out_ev);

	*e = (struct out_ev) { .t = now, .len = p->len, .flow = f };
	fresh = n;
	if (p->tcp && n)
		fresh = seen_add(&f->out, p->seq, n, p->syn);
	if (fresh > p->payload)
		fresh = p->payload;
	if (p->payload > f->max_out)
		f->max_out = p->payload;

	if (i) {
		matched(rec_get(i), p, e);
		line(&rec_get(i)->p, p);
		rec_free(i);
	} else {
		if (in_window(p->t)) {
			totals.unmatched_out++;
			f->unmatched_out++;
		}
		line(NULL, p);
	}
	if (!in_window(p->t))
		return;
	totals.out++;
	totals.bytes_out += p->len;
	totals.ecn_out[p->ecn]++;
	f->packets++;
	f->bytes += p->len;
	f->payload += p->payload;
	f->fresh += fresh;
	add_gap(&f->gap_out, &f->last_out, p->t);
}

void account_packet(bool out, const struct pkt *p)
{
	if (!started)
		start(p->t);
	account_time(p->t);
	if (p->t > last)
		last = p->t;
	if (p->flow->first == NEVER)
		p->flow->first = p->t;
	if (out)
		on_out(p);
	else
		on_in(p);
	sweep();
}

void account_time(u64 t)
{
	if (t > now)
		now = t;
}

void account_end(void)
{
	struct in_ev *e;
	u64 i;

	/* whatever overtook it: it is not coming any more */
	for (i = ins.head; i != ins.tail; i++) {
		e = ring_at(&ins, struct in_ev, i);
		if (e->rec >= FATE_MIN)
			continue;
		if (e->t + 1 < last_matched_in ||
		    (now > e->t && now - e->t > opt.gap)) {
			lose(e);
			continue;
		}
		totals.unresolved += in_window(e->t);
		e->rec = FATE_OPEN;
	}
	sweep();
	timeline_end(last);
	if (last > from)
		totals.duration = (last < to ? last : to) - from;
}
