/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCQCN's reaction point as arithmetic on plain values (Zhu et al., Congestion
 * Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1). It knows no
 * queue pair, no packet and no clock: the caller passes the time.
 *
 *	on a CNP:		R_T = R_C; R_C *= 1 - alpha / 2
 *				alpha = (1 - g) * alpha + g; both counters = 0
 *	K without a CNP:	alpha = (1 - g) * alpha
 *	every T, every B bytes:	add 1 to its counter, then
 *	    max(counts) < F	fast recovery
 *	    min(counts) > F	hyper increase:		R_T += R_HAI
 *	    else		additive increase:	R_T += R_AI
 *				in each:		R_C = (R_T + R_C) / 2
 *
 * Timers are not run but caught up with: dcqcn_advance() applies all periods that have
 * ended since the last call, in closed form if there are many.
 *
 * Beyond the paper, with @only_sent, for rates of less than a packet per period:
 *
 *  - A period in which nothing was sent does not count: it has shown nothing of the path. For
 *    alpha it counts at the line's rate, when the caller does not tell what is sent.
 *  - R_T grows by R_C at most at a time.
 *
 * A loss halves R_C, and R_T is then the same: there is no fast recovery from it.
 */
#ifndef _LOWQ_DCQCN_MODEL_H
#define _LOWQ_DCQCN_MODEL_H

#include "fixedpoint.h"

#define DCQCN_ALPHA_Q		30
#define DCQCN_ALPHA_ONE		((u32)FP_ONE(DCQCN_ALPHA_Q))
#define DCQCN_CUT_Q		10	/* of @cut; 1/2 is the paper's */
#define DCQCN_RATE_MAX		FP_ONE(41)	/* bit/s, 2.2 Tb/s */

/* After this many events, one by one, R_C no longer depends on its value before. */
#define DCQCN_EXACT_EVENTS	64U

/**
 * struct dcqcn_params - parameters, common to all queue pairs of a device
 * @line:	bit/s: rate of the line, the initial rate; 1 to DCQCN_RATE_MAX
 * @floor:	bit/s: lower limit of the rate; 1 to @line
 * @ai:		bit/s: R_AI, at most DCQCN_RATE_MAX
 * @hai:	bit/s: R_HAI, at most DCQCN_RATE_MAX
 * @bytes:	B, period of the byte counter, bytes, at least 1
 * @alpha_ns:	K, ns, at least 1
 * @timer_ns:	T, ns, at least 1
 * @f:		F, counts of fast recovery; at most 1000
 * @shift_g:	g = 2^-shift_g, 1 to 16
 * @cut:	Q10: a CNP cuts the rate by this part of alpha; 512 is alpha / 2; at most 1.0
 */
struct dcqcn_params {
	u64 line;
	u64 floor;
	u64 ai;
	u64 hai;
	u64 bytes;
	u32 alpha_ns;
	u32 timer_ns;
	u32 f;
	u32 shift_g;
	u32 cut;
};

/**
 * struct dcqcn_model - state of one queue pair
 * @rate:	R_C, bit/s, @floor to @line
 * @target:	R_T, bit/s, at most @line
 * @alpha_due:	ns: when alpha's period ends
 * @timer_due:	ns: when the rate's period ends
 * @sent:	bytes sent since the last event of the byte counter, below @bytes
 * @alpha:	Q30, 0 to DCQCN_ALPHA_ONE
 * @timer_count: events of T since the last CNP; saturates
 * @byte_count:	events of the byte counter since the last CNP; saturates
 * @only_sent:	periods count only if something was sent in them
 * @alpha_sent:	something was sent in alpha's period
 * @timer_sent:	... in the rate's
 */
struct dcqcn_model {
	u64 rate;
	u64 target;
	u64 alpha_due;
	u64 timer_due;
	u64 sent;
	u32 alpha;
	u32 timer_count;
	u32 byte_count;
	bool only_sent;
	bool alpha_sent;
	bool timer_sent;
};

static inline void dcqcn_init(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	m->rate = p->line;
	m->target = p->line;
	m->alpha = DCQCN_ALPHA_ONE;
	m->timer_count = 0;
	m->byte_count = 0;
	m->sent = 0;
	m->only_sent = false;
	m->alpha_sent = false;
	m->timer_sent = false;
	m->alpha_due = now + p->alpha_ns;
	m->timer_due = now + p->timer_ns;
}

/* Is the rate below the line's? */
static inline bool dcqcn_limited(const struct dcqcn_model *m, const struct dcqcn_params *p)
{
	return m->rate < p->line;
}

/* x^n, Q63, at most 1.0. Relative error at most n * 2^-61, as squaring doubles it. */
static inline u64 dcqcn_power(u64 x, u64 n)
{
	u64 result = FP_ONE(63);

	for (; n && result; n >>= 1, x = fp_mul_shr(x, x, 63))
		if (n & 1)
			result = fp_mul_shr(result, x, 63);
	return result;
}

/*
 * Applies @n increase events of one of the counters, *@count. Beyond F all events do the
 * same: all but the last DCQCN_EXACT_EVENTS are applied to R_T alone, at once. R_C halves
 * its distance to R_T with each of the last, so its earlier value does not matter.
 */
static inline void dcqcn_increase(struct dcqcn_model *m, const struct dcqcn_params *p,
				  u32 *count, u64 n)
{
	while (n) {
		u64 step = 0, times = 1;
		u32 most, least;

		if (*count > p->f && n > DCQCN_EXACT_EVENTS)
			times = n - DCQCN_EXACT_EVENTS;
		*count = fp_min(fp_add(*count, times), U32_MAX);
		most = fp_max(m->timer_count, m->byte_count);
		least = fp_min(m->timer_count, m->byte_count);
		if (least > p->f)
			step = p->hai;
		else if (most >= p->f)
			step = p->ai;
		if (m->only_sent)
			step = fp_min(step, m->rate);
		/* no more steps than from 0 to the line, or the product overflows */
		if (step && times > fp_div(DCQCN_RATE_MAX, step))
			m->target = p->line;
		else
			m->target = fp_min(m->target + step * times, p->line);
		if (times == 1)	/* rounded up: otherwise R_C never reaches R_T */
			m->rate = (m->target + m->rate + 1) >> 1;
		n -= times;
	}
}

/* Ends the periods that are due up to @now. @now never decreases. */
static inline void dcqcn_advance(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	u64 n;

	if (now >= m->alpha_due) {
		n = fp_div(now - m->alpha_due, p->alpha_ns) + 1;
		m->alpha_due += n * p->alpha_ns;
		if (m->only_sent && dcqcn_limited(m, p))
			n = m->alpha_sent;
		m->alpha = fp_mul_shr(m->alpha, dcqcn_power(FP_ONE(63) - FP_ONE(63 - p->shift_g),
							    n), 63);
		m->alpha_sent = false;
	}
	if (now >= m->timer_due) {
		n = fp_div(now - m->timer_due, p->timer_ns) + 1;
		m->timer_due += n * p->timer_ns;
		if (m->only_sent)
			n = m->timer_sent;
		dcqcn_increase(m, p, &m->timer_count, n);
		m->timer_sent = false;
	}
}

/* @bytes have been sent. */
static inline void dcqcn_sent(struct dcqcn_model *m, const struct dcqcn_params *p, u64 bytes)
{
	u64 n;

	m->alpha_sent = true;
	m->timer_sent = true;
	m->sent = fp_add(m->sent, bytes);
	if (m->sent < p->bytes)
		return;
	n = fp_div(m->sent, p->bytes);
	m->sent -= n * p->bytes;
	dcqcn_increase(m, p, &m->byte_count, n);
}

/* Sets R_C to @rate, and starts all periods again. */
static inline void dcqcn_set_rate(struct dcqcn_model *m, const struct dcqcn_params *p, u64 rate,
				  u64 now)
{
	m->rate = fp_max(rate, p->floor);
	m->timer_count = 0;
	m->byte_count = 0;
	m->sent = 0;
	m->alpha_sent = false;
	m->timer_sent = false;
	m->alpha_due = now + p->alpha_ns;
	m->timer_due = now + p->timer_ns;
}

/* A CNP arrives at @now, up to which dcqcn_advance() has been called. */
static inline void dcqcn_cnp(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	u64 cut = fp_mul_shr(m->rate, (u64)m->alpha * p->cut, DCQCN_ALPHA_Q + DCQCN_CUT_Q);
	u32 less = m->alpha >> p->shift_g;

	m->target = m->rate;
	m->alpha = fp_min(m->alpha - less + (DCQCN_ALPHA_ONE >> p->shift_g), DCQCN_ALPHA_ONE);
	dcqcn_set_rate(m, p, fp_sub(m->rate, cut), now);
}

/* A packet was lost, which is known at @now, up to which dcqcn_advance() has been called. */
static inline void dcqcn_loss(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	dcqcn_set_rate(m, p, m->rate / 2, now);
	m->target = m->rate;
}

/* Time that @bytes take at @rate bit/s, ns, rounded up; @bytes below 2^28 */
static inline u64 dcqcn_duration(u64 bytes, u64 rate)
{
	return fp_div(bytes * 8 * 1000000000ULL + rate - 1, rate);
}

#endif /* _LOWQ_DCQCN_MODEL_H */
