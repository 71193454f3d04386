/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCQCN's reaction point as arithmetic on plain values (Zhu et al., Congestion
 * Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1). No queue
 * pair, no packet, no clock of its own: times are the caller's.
 *
 *	on a CNP:		R_T = R_C; R_C *= 1 - alpha / 2
 *				alpha = (1 - g) * alpha + g; both counters from 0
 *	K without a CNP:	alpha = (1 - g) * alpha
 *	every T, every B bytes:	count it, then
 *	    max(counts) < F	fast recovery
 *	    min(counts) > F	hyper increase:		R_T += R_HAI
 *	    else		additive increase:	R_T += R_AI
 *				in each:		R_C = (R_T + R_C) / 2
 *
 * Timers are evaluated when somebody looks: dcqcn_advance() makes up for any number
 * of them at once, in closed form where there are many.
 */
#ifndef _LOWQ_DCQCN_MODEL_H
#define _LOWQ_DCQCN_MODEL_H

#include "fixedpoint.h"

#define DCQCN_ALPHA_Q		30
#define DCQCN_ALPHA_ONE		((u32)FP_ONE(DCQCN_ALPHA_Q))
#define DCQCN_CUT_Q		10	/* of @cut; 1/2 is the paper's */
#define DCQCN_RATE_MAX		FP_ONE(41)	/* bit/s, 2.2 Tb/s */

/* With so many events gone by one by one, what R_C was before no longer matters. */
#define DCQCN_EXACT_EVENTS	64U

/**
 * struct dcqcn_params - what holds for all queue pairs of a device
 * @line:	bit/s: rate of the line, where everything begins; 1 to DCQCN_RATE_MAX
 * @floor:	bit/s: no cut goes below; 1 to @line
 * @ai:		bit/s: R_AI, at most DCQCN_RATE_MAX
 * @hai:	bit/s: R_HAI, at most DCQCN_RATE_MAX
 * @bytes:	B of the byte counter, at least 1
 * @alpha_ns:	K, at least 1
 * @timer_ns:	T, at least 1
 * @f:		F, counts of fast recovery; at most 1000
 * @shift_g:	g = 2^-shift_g, 1 to 16
 * @cut:	Q10: the part of alpha by which a CNP cuts, 512 is alpha / 2; at most 1.0
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
 * struct dcqcn_model - one queue pair
 * @rate:	R_C, bit/s, @floor to @line
 * @target:	R_T, bit/s, at most @line
 * @alpha_due:	ns: when alpha's period ends
 * @timer_due:	ns: when the rate's period ends
 * @sent:	bytes towards the next count of the byte counter, below @bytes
 * @alpha:	Q30, 0 to DCQCN_ALPHA_ONE
 * @timer_count: T's events since the last CNP; saturates
 * @byte_count:	the byte counter's events since the last CNP; saturates
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
};

static inline void dcqcn_init(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	m->rate = p->line;
	m->target = p->line;
	m->alpha = DCQCN_ALPHA_ONE;
	m->timer_count = 0;
	m->byte_count = 0;
	m->sent = 0;
	m->alpha_due = now + p->alpha_ns;
	m->timer_due = now + p->timer_ns;
}

/* Is there anything to pace? */
static inline bool dcqcn_limited(const struct dcqcn_model *m, const struct dcqcn_params *p)
{
	return m->rate < p->line;
}

/* x^n, Q63, at most 1.0; off by n * 2^-61 of itself at most: squarings double errors */
static inline u64 dcqcn_power(u64 x, u64 n)
{
	u64 result = FP_ONE(63);

	for (; n && result; n >>= 1, x = fp_mul_shr(x, x, 63))
		if (n & 1)
			result = fp_mul_shr(result, x, 63);
	return result;
}

/*
 * @n increase events of one of the counters, *@count. Once that is beyond F all
 * events are alike: all but the last DCQCN_EXACT_EVENTS only move R_T, and R_C,
 * which halves its distance with each, forgets in the rest where it came from.
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
		/* as many steps as it takes from 0 to the line are enough */
		if (step && times > DCQCN_RATE_MAX / step)
			m->target = p->line;
		else
			m->target = fp_min(m->target + step * times, p->line);
		if (times == 1)	/* rounded up, or R_T would never be reached */
			m->rate = (m->target + m->rate + 1) >> 1;
		n -= times;
	}
}

/* Everything that was due up to @now, which is not before any earlier time given. */
static inline void dcqcn_advance(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	u64 n;

	if (now >= m->alpha_due) {
		n = fp_div(now - m->alpha_due, p->alpha_ns) + 1;
		m->alpha = fp_mul_shr(m->alpha, dcqcn_power(FP_ONE(63) - FP_ONE(63 - p->shift_g),
							    n), 63);
		m->alpha_due += n * p->alpha_ns;
	}
	if (now >= m->timer_due) {
		n = fp_div(now - m->timer_due, p->timer_ns) + 1;
		dcqcn_increase(m, p, &m->timer_count, n);
		m->timer_due += n * p->timer_ns;
	}
}

/* @bytes have left. */
static inline void dcqcn_sent(struct dcqcn_model *m, const struct dcqcn_params *p, u64 bytes)
{
	u64 n;

	m->sent = fp_add(m->sent, bytes);
	if (m->sent < p->bytes)
		return;
	n = fp_div(m->sent, p->bytes);
	m->sent -= n * p->bytes;
	dcqcn_increase(m, p, &m->byte_count, n);
}

/* A CNP has come at @now; dcqcn_advance() has been there. */
static inline void dcqcn_cnp(struct dcqcn_model *m, const struct dcqcn_params *p, u64 now)
{
	u64 cut = fp_mul_shr(m->rate, (u64)m->alpha * p->cut, DCQCN_ALPHA_Q + DCQCN_CUT_Q);
	u32 less = m->alpha >> p->shift_g;

	m->target = m->rate;
	m->rate = fp_max(fp_sub(m->rate, cut), p->floor);
	m->alpha = fp_min(m->alpha - less + (DCQCN_ALPHA_ONE >> p->shift_g), DCQCN_ALPHA_ONE);
	m->timer_count = 0;
	m->byte_count = 0;
	m->sent = 0;
	m->alpha_due = now + p->alpha_ns;
	m->timer_due = now + p->timer_ns;
}

/* ns that @bytes take at @rate bit/s, rounded up; @bytes below 2^28 */
static inline u64 dcqcn_duration(u64 bytes, u64 rate)
{
	return fp_div(bytes * 8 * 1000000000ULL + rate - 1, rate);
}

#endif /* _LOWQ_DCQCN_MODEL_H */
