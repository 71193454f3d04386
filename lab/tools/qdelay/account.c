// SPDX-License-Identifier: GPL-2.0
#include "../common/alloc.h"
#include "account.h"
#include "options.h"
#include "output.h"

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
	struct queue *queue;	/* that it left by, or was lost in; NULL: not known */
	u32 len;		/* bytes */
	u32 segs;
	u32 rec;		/* or a fate */
};

static bool in_window(const struct hop *h, u64 t)
{
	return t >= h->from && t < h->to;
}

static void line(const struct hop *h, const struct pkt *in, const struct pkt *out)
{
	if (in_window(h, in ? in->t : out->t))
		packet_line(in, out);
}

/* Where a packet of @f that has not left is */
static struct queue *queue_of(struct hop *h, const struct flow *f)
{
	return h->queues == 1 ? h->queue : f->queue;
}

static void count_in(struct queue *q, const struct pkt *p)
{
	q->totals.in += p->segs;
	q->totals.ecn_in[p->ecn] += p->segs;
}

static void lose(struct hop *h, struct in_ev *e)
{
	u32 i = e->rec;
	struct pkt *p = &rec_get(i)->p;
	struct queue *q = queue_of(h, p->flow);

	rec_remove(&h->table, i);
	if (in_window(h, p->t)) {
		if (q) {
			count_in(q, p);
			q->totals.dropped += p->segs;
			q->totals.dropped_ecn[p->ecn] += p->segs;
		} else {
			h->lost += p->segs;
		}
		p->flow->dropped += p->segs;
	}
	line(h, p, NULL);
	e->rec = FATE_DROPPED;
	e->queue = q;
	rec_free(i);
}

/*
 * Hands a queue's events before @limit to its timeline. At equal times arrivals go first, so that
 * no packet leaves before it came.
 */
static void merge(struct queue *q, u64 limit)
{
	for (;;) {
		struct in_ev *in = ring_empty(&q->ins) ? NULL : ring_front(&q->ins, struct in_ev);
		struct out_ev *out = ring_empty(&q->outs) ? NULL :
				     ring_front(&q->outs, struct out_ev);

		if (out && (!in || out->t < in->t)) {
			if (out->t >= limit)
				return;
			timeline_out(&q->timeline, out);
			q->outs.head++;
			continue;
		}
		if (!in || in->t >= limit)
			return;
		if (in->rec == FATE_GONE)
			timeline_in(&q->timeline, in->t, in->segs, in->len);
		else if (in->rec == FATE_DROPPED)
			timeline_drop(&q->timeline, in->t, in->segs);
		else
			timeline_to(&q->timeline, in->t);
		q->ins.head++;
	}
}

/*
 * Hands events to the timelines up to the first packet whose fate is open. Later events happen
 * at now or after.
 */
static void sweep(struct hop *h)
{
	struct in_ev *in = NULL, *to;
	u32 i;

	for (; !ring_empty(&h->ins); h->ins.head++) {
		in = ring_front(&h->ins, struct in_ev);
		if (in->rec < FATE_MIN && h->now > in->t && h->now - in->t > opt.gap)
			lose(h, in);
		if (in->rec < FATE_MIN)
			break;
		if (!in->queue || !in->queue->reported)
			continue;
		to = ring_push(&in->queue->ins, struct in_ev);
		*to = *in;
		to->t += in->queue->delay;
	}
	for (i = 0; i < h->queues; i++) {
		struct queue *q = &h->queue[i];

		if (q->reported)
			merge(q, ring_empty(&h->ins) ? NEVER : in->t + q->delay);
	}
}

void hop_init(struct hop *h, u32 queues)
{
	h->from = opt.from;
	h->to = opt.to;
	h->queues = queues;
	h->queue = xcalloc(queues, sizeof(*h->queue));
	for (u32 i = 0; i < queues; i++) {
		h->queue[i].hop = h;
		dist_init(&h->queue[i].totals.delay, 12, 65536);
	}
}

void hop_start(struct hop *h, u64 zero)
{
	h->started = true;
	h->from += zero;
	if (h->to != NEVER)
		h->to += zero;
	for (u32 i = 0; i < h->queues; i++)
		timeline_start(&h->queue[i].timeline, zero, h->from, h->to);
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

static void on_in(struct hop *h, const struct pkt *p)
{
	struct flow *f = p->flow;
	u64 pos = h->ins.tail;
	struct in_ev *e;
	u32 n = p->payload + p->seqspace, again = 0;

	e = ring_push(&h->ins, struct in_ev);
	*e = (struct in_ev) { .t = h->now, .len = p->len, .segs = p->segs };
	e->rec = rec_new(&h->table, p, pos);
	if (p->stream && n)
		again = n - seen_add(&f->in, p->seq, n, p->syn);
	if (p->payload > f->max_in)
		f->max_in = p->payload;
	if (!in_window(h, p->t))
		return;
	f->packets_in += p->segs;
	if (again)
		f->retrans += p->segs > 1 ? (again + f->gso_size - 1) / f->gso_size : 1;
	add_gap(&f->gap_in, &f->last_in, p->t);
}

/* Packets that left before the first match were in the queue from the start. */
static void first_match(struct queue *q)
{
	struct flows *all = &q->hop->flows;

	q->totals.queued_at_start = q->totals.unmatched_out;
	q->totals.unmatched_out = 0;
	for (u32 i = 0; i < all->n; i++) {
		if (all->at[i]->queue != q)
			continue;
		all->at[i]->unmatched_out = 0;
		all->at[i]->split_out = 0;
	}
}

/* The packet that came in as @rec left by @q as @p. */
static void matched(struct queue *q, const struct rec *rec, const struct pkt *p, struct out_ev *e)
{
	const struct pkt *in = &rec->p;
	struct flow *f = p->flow;
	struct in_ev *arrival = ring_at(&q->hop->ins, struct in_ev, rec->pos);

	if (!q->last_matched_in)
		first_match(q);
	if (in->t >= q->last_matched_in)
		q->last_matched_in = in->t + 1;
	if (rec->pos >= q->next_pos)
		q->next_pos = rec->pos + 1;
	if (rec->pos >= f->matched_pos)
		f->matched_pos = rec->pos + 1;
	e->matched = true;
	e->len_in = in->len;
	e->marked = p->ecn == CE && in->ecn != CE;
	e->delay = p->t > in->t + q->delay ? p->t - in->t - q->delay : 0;
	arrival->rec = FATE_GONE;
	arrival->queue = q;
	if (in_window(q->hop, in->t)) {
		count_in(q, in);
		q->totals.matched += in->segs;
		for (u32 i = 0; i < in->segs; i++) {
			dist_add(&q->totals.delay, e->delay);
			dist_add(&f->delay, e->delay);
		}
		q->totals.marked += e->marked ? in->segs : 0;
		f->marked += e->marked ? in->segs : 0;
	}
}

static void on_out(struct queue *q, const struct pkt *p)
{
	struct hop *h = q->hop;
	struct flow *f = p->flow;
	u32 i = rec_match(&h->table, p, q->next_pos), n = p->payload + p->seqspace, fresh;
	struct out_ev ev = { .t = h->now, .len = p->len, .segs = p->segs, .flow = f }, *e = &ev;

	f->queue = q;
	if (q->reported)
		e = ring_push(&q->outs, struct out_ev);
	*e = ev;
	fresh = p->tcp ? 0 : n;
	if (p->stream && n)
		fresh = seen_add(&f->out, p->seq, n, p->syn);
	if (fresh > p->payload)
		fresh = p->payload;
	if (p->payload > f->max_out)
		f->max_out = p->payload;

	if (i) {
		matched(q, rec_get(i), p, e);
		line(h, &rec_get(i)->p, p);
		rec_free(i);
	} else {
		if (in_window(h, p->t)) {
			q->totals.unmatched_out += p->segs;
			f->unmatched_out += p->segs;
			if (!p->tcp || (p->stream && n && seen_has(&f->in, p->seq, n)))
				f->split_out += p->segs;
		}
		line(h, NULL, p);
	}
	if (!in_window(h, p->t))
		return;
	q->totals.out += p->segs;
	q->totals.super_out += p->segs > 1;
	q->totals.bytes_out += p->len;
	q->totals.ecn_out[p->ecn] += p->segs;
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

void account_packet(struct hop *h, struct queue *q, struct pkt *p)
{
	count_segments(p);
	if (!h->started)
		hop_start(h, p->t);
	if (!h->first)
		h->first = p->t;
	account_time(h, p->t);
	if (p->t > h->last)
		h->last = p->t;
	if (p->flow->first == NEVER)
		p->flow->first = p->t;
	if (q)
		on_out(q, p);
	else
		on_in(h, p);
	sweep(h);
}

void account_time(struct hop *h, u64 t)
{
	if (t > h->now)
		h->now = t;
}

/* A packet that any other has overtaken is lost. */
static bool is_lost(struct hop *h, const struct in_ev *e)
{
	const struct queue *q = queue_of(h, rec_get(e->rec)->p.flow);

	return (q && e->t + 1 < q->last_matched_in) || (h->now > e->t && h->now - e->t > opt.gap);
}

void account_end(struct hop *h, u64 last)
{
	u64 end = h->to == NEVER || last > h->to ? last : h->to;
	const struct pkt *p;
	struct in_ev *e;
	u64 i;

	for (i = h->ins.head; i != h->ins.tail; i++) {
		e = ring_at(&h->ins, struct in_ev, i);
		if (e->rec >= FATE_MIN)
			continue;
		if (is_lost(h, e)) {
			lose(h, e);
			continue;
		}
		p = &rec_get(e->rec)->p;
		e->queue = queue_of(h, p->flow);
		if (e->queue && in_window(h, p->t))
			count_in(e->queue, p);
		if (e->queue && in_window(h, e->t))
			e->queue->totals.unresolved += e->segs;
		e->rec = FATE_OPEN;
	}
	sweep(h);
	/* a window given by --to counts to its end, although the link is idle there */
	for (i = 0; i < h->queues; i++)
		if (h->queue[i].reported)
			timeline_end(&h->queue[i].timeline, end);
	if (h->started && last >= h->from)
		h->duration = (end < h->to ? end : h->to) - h->from;
}
