/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a packet has left a link, when it arrives at the other end, and what happens to it on the
 * way. Integers only, so that it also compiles in user space.
 */
#ifndef _LOWQ_LINK_MODEL_H
#define _LOWQ_LINK_MODEL_H

#include "fixedpoint.h"

#define LINK_RATE_MIN	1000ULL			/* bit/s */
#define LINK_RATE_MAX	2000000000000ULL
#define LINK_TIME_MAX	100000000000ULL		/* ns, of delay and jitter */
#define LINK_BYTE	8000000000ULL		/* bits, times the nanoseconds of a second */
#define LINK_ONE	FP_ONE(32)		/* probability 1 */

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline u64 link_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Whether what has the probability @p, Q32, happens */
static inline bool link_chance(u64 *state, u64 p)
{
	return p && link_random(state) >> 32 < p;
}

/**
 * struct link_wire - a line of a rate, on which packets follow each other without a gap
 * @rate:	bit/s, LINK_RATE_MIN to LINK_RATE_MAX
 * @end:	when the last packet has left, ns
 * @part:	this instant's fraction of a nanosecond, times @rate
 */
struct link_wire {
	u64 rate;
	u64 end;
	u64 part;
};

/*
 * When a packet of @bytes, up to 2^30, has left that is there at @now; rounded down, so that the
 * next packet is asked for in time to begin at the exact instant. The product is below 2^63.
 */
static inline u64 link_send(struct link_wire *w, u64 now, u32 bytes)
{
	u64 bits = bytes * LINK_BYTE;

	if (now > w->end)
		w->end = now;
	else
		bits += w->part;
	w->end += fp_div(bits, w->rate);
	w->part = bits - fp_div(bits, w->rate) * w->rate;
	return w->end;
}

/* From @now on the rate is another one, also for the rest of the packet that is leaving. */
static inline void link_set_rate(struct link_wire *w, u64 now, u64 rate)
{
	if (w->end >= now) {
		/* the rest of one packet: below 2^63, as above */
		u64 bits = (w->end - now) * w->rate + w->part;

		w->end = now + fp_div(bits, rate);
		w->part = bits - fp_div(bits, rate) * rate;
	} else {
		w->part = 0;
	}
	w->rate = rate;
}

#define LINK_TRACE_BYTES	1504	/* of an opportunity, as mahimahi's */
#define LINK_TRACE_US		1000	/* ns in the unit of its instants */

/**
 * struct link_trace - a line that carries LINK_TRACE_BYTES at given instants, and nothing else
 * @at:		the instants, microseconds from the start of the cycle; none before the last one
 * @n:		how many; the last one ends the cycle, and is not 0
 * @begin:	when the cycle began, ns
 * @next:	the first opportunity that is not used up
 * @left:	bytes of it that are left, never 0
 */
struct link_trace {
	const u32 *at;
	u32 n;
	u32 next;
	u32 left;
	u64 begin;
};

static inline u64 link_trace_instant(const struct link_trace *t, u32 i)
{
	return t->begin + (u64)t->at[i] * LINK_TRACE_US;
}

static inline void link_trace_start(struct link_trace *t, u64 begin)
{
	t->begin = begin;
	t->next = 0;
	t->left = LINK_TRACE_BYTES;
}

static inline void link_trace_next(struct link_trace *t)
{
	u64 end = link_trace_instant(t, t->n - 1);

	t->left = LINK_TRACE_BYTES;
	if (++t->next == t->n)
		link_trace_start(t, end);
}

/* Opportunities before @now are lost. */
static inline void link_trace_skip(struct link_trace *t, u64 now)
{
	u64 cycle = (u64)t->at[t->n - 1] * LINK_TRACE_US;
	u32 last;

	if (link_trace_instant(t, t->next) >= now)
		return;
	t->left = LINK_TRACE_BYTES;
	/* an instant that ends a cycle belongs to it */
	if (now - t->begin > cycle)
		link_trace_start(t, t->begin + fp_div(now - t->begin - 1, cycle) * cycle);
	for (last = t->n - 1; t->next < last; ) {
		u32 middle = t->next + (last - t->next) / 2;

		if (link_trace_instant(t, middle) < now)
			t->next = middle + 1;
		else
			last = middle;
	}
}

/*
 * When a packet of @bytes, with Ethernet's header, has left that is there at @now. mahimahi counts
 * four bytes more than IP's.
 */
static inline u64 link_trace_send(struct link_trace *t, u64 now, u32 bytes)
{
	u64 end;

	bytes = bytes > 14 ? bytes - 10 : 4;
	link_trace_skip(t, now);
	while (bytes > t->left) {
		bytes -= t->left;
		link_trace_next(t);
	}
	end = link_trace_instant(t, t->next);
	t->left -= bytes;
	if (!t->left)
		link_trace_next(t);
	return end;
}

/**
 * struct link_loss - losses by two states (Gilbert, Elliott); all probabilities are in Q32
 * @good:	of a loss in the good state; where the bad one never comes, losses are independent
 * @bad:	of a loss in the bad state
 * @worse:	of becoming bad, for each packet
 * @better:	of becoming good
 * @is_bad:	the state
 */
struct link_loss {
	u64 good, bad;
	u64 worse, better;
	bool is_bad;
};

static inline bool link_loses(struct link_loss *l, u64 *state)
{
	if (link_chance(state, l->is_bad ? l->better : l->worse))
		l->is_bad = !l->is_bad;
	return link_chance(state, l->is_bad ? l->bad : l->good);
}

/**
 * struct link_path - from one end to the other
 * @delay:	ns
 * @jitter:	up to so many ns more, all equally likely; packets stay in order
 * @late:	probability, Q32, that a packet is held back, and others overtake it
 * @late_by:	for so many ns
 * @last:	when the last packet that is not late arrives
 */
struct link_path {
	u64 delay;
	u64 jitter;
	u64 late;
	u64 late_by;
	u64 last;
};

/* When a packet arrives that has left at @end */
static inline u64 link_arrival(struct link_path *p, u64 end, u64 *state)
{
	u64 at = end + p->delay;

	if (p->jitter) {
		at += fp_mul_shr(link_random(state), p->jitter + 1, 63) >> 1;
		at = fp_max(at, p->last);
		p->last = at;
	}
	return link_chance(state, p->late) ? at + p->late_by : at;
}

/* From now on the delay is another one: with a shorter one, packets overtake those on the way. */
static inline void link_set_delay(struct link_path *p, u64 delay)
{
	p->delay = delay;
	p->last = 0;
}

#endif
