// SPDX-License-Identifier: GPL-2.0
#include "account.h"
#include "match.h"
#include "options.h"
#include "output.h"
#include "ring.h"
#include "timeline.h"

/* Fate of a packet in ins: the number of its rec while it is open. */
#define FATE_GONE	0xffffffffU	/* matched */
#define FATE_DROPPED	0xfffffffeU
#define FATE_OPEN	0xfffffffdU	/* still unknown at the end of the run */
#define FATE_MIN	FATE_OPEN

/* Bytes of payload that not even a jumbo frame can have: there are several segments. */
#define SUPER_PAYLOAD	9216

/* A packet that came in. */
struct in_ev {
	u64 t;			/* never before the entry before it */
	u32 len;		/* bytes */
	u32 segs;
	u32 rec;		/* or a fate */
};

struct totals totals;

static struct ring ins, outs;	/* struct in_ev, struct out_ev not yet in the timeline */
static bool started;
static u64 now;			/* time of the newest event */
static u64 last;		/* time of the newest packet */
static u64 from, to;		/* the window: [from, to) */
static u64 last_matched_in;	/* one past the arrival of the newest packet that left, ns */
static u64 next_pos;		/* one past the number of that packet among those in */

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
		totals.dropped += p->segs;
		totals.dropped_ecn[p->ecn] += p->segs;
		p->flow->dropped += p->segs;
	}
	line(p, NULL);
	e->rec = FATE_DROPPED;
	rec_free(i);
}

/*
 * Hands events to the timeline up to the first packet whose fate is open. Later events happen
 * at now or after. At equal times arrivals go first, so that no packet leaves before it came.
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
			timeline_in(in->t, in->segs, in->len);
		else if (in->rec == FATE_DROPPED)
			timeline_drop(in->t, in->segs);
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

/* Adds the gap between the previous packet and the one at @t. */
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
	u32 n = p->payload + p->seqspace, again = 0;

	e = ring_push(&ins, struct in_ev);
	e->t = now;
	e->len = p->len;
	e->segs = p->segs;
	e->rec = rec_new(p, pos);
	if (p->stream && n)
		again = n - seen_add(&f->in, p->seq, n, p->syn);
	if (p->payload > f->max_in)
		f->max_in = p->payload;
	if (!in_window(p->t))
		return;
	totals.in += p->segs;
	totals.ecn_in[p->ecn] += p->segs;
	f->packets_in += p->segs;
	if (again)
		f->retrans += p->segs > 1 ? (again + f->gso_size - 1) / f->gso_size : 1;
	add_gap(&f->gap_in, &f->last_in, p->t);
}

/* Packets that left before the first match were in the queue from the start. */
static void first_match(void)
{
	totals.queued_at_start = totals.unmatched_out;
	totals.unmatched_out = 0;
	for (u32 i = 0; i < nflows; i++) {
		flows[i]->unmatched_out = 0;
		flows[i]->split_out = 0;
	}
}

/* The packet that came in as @rec left as @p. */
static void matched(const struct rec *rec, const struct pkt *p, struct out_ev *e)
{
	const struct pkt *in = &rec->p;
	struct flow *f = p->flow;

	if (!last_matched_in)
		first_match();
	if (in->t >= last_matched_in)
		last_matched_in = in->t + 1;
	if (rec->pos >= next_pos)
		next_pos = rec->pos + 1;
	if (rec->pos >= f->matched_pos)
		f->matched_pos = rec->pos + 1;
	e->matched = true;
	e->len_in = in->len;
	e->marked = p->ecn == CE && in->ecn != CE;
	e->delay = p->t > in->t ? p->t - in->t : 0;
	ring_at(&ins, struct in_ev, rec->pos)->rec = FATE_GONE;
	if (in_window(in->t)) {
		totals.matched += in->segs;
		for (u32 i = 0; i < in->segs; i++) {
			dist_add(&totals.delay, e->delay);
			dist_add(&f->delay, e->delay);
		}
		totals.marked += e->marked ? in->segs : 0;
		f->marked += e->marked ? in->segs : 0;
	}
}

static void on_out(const struct pkt *p)
{
	struct flow *f = p->flow;
	u32 i = rec_match(p, next_pos), n = p->payload + p->seqspace, fresh;
	struct out_ev *e = ring_push(&outs, struct out_ev);

	*e = (struct out_ev) { .t = now, .len = p->len, .segs = p->segs, .flow = f };
	fresh = p->tcp ? 0 : n;
	if (p->stream && n)
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
			totals.unmatched_out += p->segs;
			f->unmatched_out += p->segs;
			if (!p->tcp || (p->stream && n && seen_has(&f->in, p->seq, n)))
				f->split_out += p->segs;
		}
		line(NULL, p);
	}
	if (!in_window(p->t))
		return;
	totals.out += p->segs;
	totals.super_out += p->segs > 1;
	totals.bytes_out += p->len;
	totals.ecn_out[p->ecn] += p->segs;
	f->packets += p->segs;
	f->bytes += p->len;
	f->payload += p->payload;
	f->fresh += fresh;
	add_gap(&f->gap_out, &f->last_out, p->t);
}

/*
 * The most payload that the sender puts into a segment of @p's flow, bytes: its MSS less the TCP
 * options. 0: unknown, because no SYN was captured and --mss is not given.
 */
static u32 gso_size(const struct pkt *p)
{
	const struct flow *back = flow_reverse(p->flow);
	u32 mss = p->flow->mss_option;

	if (back && back->mss_option && (!mss || back->mss_option < mss))
		mss = back->mss_option;
	if (opt.mss)
		mss = opt.mss;
	return mss > p->options ? mss - p->options : 0;
}

/* Counts a super-packet as the segments that the wire carries, each with all headers. */
static void count_segments(struct pkt *p)
{
	struct flow *f = p->flow;

	if (p->mss)
		f->mss_option = p->mss;
	if (!p->stream || !p->payload)
		return;
	f->gso_size = gso_size(p);
	if (f->gso_size && p->payload > f->gso_size) {
		p->segs = (p->payload + f->gso_size - 1) / f->gso_size;
		p->len += (p->segs - 1) * p->header;
	} else if (!f->gso_size && p->payload > SUPER_PAYLOAD) {
		f->uncounted++;
	}
}

void account_packet(bool out, struct pkt *p)
{
	count_segments(p);
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
	u64 end = opt.to == NEVER || last > to ? last : to;
	struct in_ev *e;
	u64 i;

	/* a packet that any other has overtaken is lost */
	for (i = ins.head; i != ins.tail; i++) {
		e = ring_at(&ins, struct in_ev, i);
		if (e->rec >= FATE_MIN)
			continue;
		if (e->t + 1 < last_matched_in ||
		    (now > e->t && now - e->t > opt.gap)) {
			lose(e);
			continue;
		}
		if (in_window(e->t))
			totals.unresolved += e->segs;
		e->rec = FATE_OPEN;
	}
	sweep();
	/* a window given by --to counts to its end, although the link is idle there */
	timeline_end(end);
	if (started && last >= from)
		totals.duration = (end < to ? end : to) - from;
}
