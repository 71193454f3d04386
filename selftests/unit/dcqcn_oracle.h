/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCQCN's reaction point in floating point, event by event, from the formulas of
 * the paper (section 3.1 and figure 7), and with what the model has beyond it: a loss halves both
 * rates; with only_sent, periods in which nothing is sent do not count, and R_T grows by R_C at
 * most. A pair of it and the model gets the same events and is compared.
 */
#ifndef _LOWQ_DCQCN_ORACLE_H
#define _LOWQ_DCQCN_ORACLE_H

#include "oracle.h"
#include "dcqcn_model.h"

struct dcqcn_paper {
	long double rc;
	long double rt;
	long double alpha;
	u64 t;
	u64 bc;
	u64 bytes;
	u64 alpha_due;
	u64 timer_due;
	bool only_sent;
	bool alpha_sent;
	bool timer_sent;
};

static inline void dcqcn_paper_increase(struct dcqcn_paper *o, const struct dcqcn_params *p)
{
	if (fp_min(o->t, o->bc) > p->f)
		o->rt += o->only_sent ? fminl(p->hai, o->rc) : p->hai;
	else if (fp_max(o->t, o->bc) >= p->f)
		o->rt += o->only_sent ? fminl(p->ai, o->rc) : p->ai;
	o->rt = fminl(o->rt, p->line);
	o->rc = (o->rt + o->rc) / 2;
}

static inline void dcqcn_paper_advance(struct dcqcn_paper *o, const struct dcqcn_params *p, u64 now)
{
	long double keep = 1 - powl(2, -(int)p->shift_g);

	while (o->alpha_due <= now) {
		if (!o->only_sent || o->alpha_sent || o->rc >= p->line)
			o->alpha *= keep;
		o->alpha_sent = false;
		o->alpha_due += p->alpha_ns;
	}
	while (o->timer_due <= now) {
		if (!o->only_sent || o->timer_sent) {
			o->t++;
			dcqcn_paper_increase(o, p);
		}
		o->timer_sent = false;
		o->timer_due += p->timer_ns;
	}
}

static inline void dcqcn_paper_sent(struct dcqcn_paper *o, const struct dcqcn_params *p, u64 bytes)
{
	o->alpha_sent = true;
	o->timer_sent = true;
	o->bytes += bytes;
	while (o->bytes >= p->bytes) {
		o->bytes -= p->bytes;
		o->bc++;
		dcqcn_paper_increase(o, p);
	}
}

static inline void dcqcn_paper_reset(struct dcqcn_paper *o, const struct dcqcn_params *p, u64 now)
{
	o->t = 0;
	o->bc = 0;
	o->bytes = 0;
	o->alpha_sent = false;
	o->timer_sent = false;
	o->alpha_due = now + p->alpha_ns;
	o->timer_due = now + p->timer_ns;
}

static inline void dcqcn_paper_cnp(struct dcqcn_paper *o, const struct dcqcn_params *p, u64 now)
{
	long double g = powl(2, -(int)p->shift_g);

	o->rt = o->rc;
	o->rc = fmaxl(o->rc * (1 - o->alpha * p->cut / 1024), p->floor);
	o->alpha = (1 - g) * o->alpha + g;
	dcqcn_paper_reset(o, p, now);
}

static inline void dcqcn_paper_loss(struct dcqcn_paper *o, const struct dcqcn_params *p, u64 now)
{
	o->rc = fmaxl(o->rc / 2, p->floor);
	o->rt = o->rc;
	dcqcn_paper_reset(o, p, now);
}

struct dcqcn_pair {
	struct dcqcn_params p;
	struct dcqcn_model m;
	struct dcqcn_paper o;
	u64 now;
};

static inline void dcqcn_pair_init(struct dcqcn_pair *d, u64 now, bool only_sent)
{
	d->now = now;
	dcqcn_init(&d->m, &d->p, now);
	d->m.only_sent = only_sent;
	d->o = (struct dcqcn_paper){
		.rc = d->p.line, .rt = d->p.line, .alpha = 1, .only_sent = only_sent,
		.alpha_due = now + d->p.alpha_ns, .timer_due = now + d->p.timer_ns,
	};
}

/*
 * Equal, except for the rounding of up to three events: units of alpha, bits per second in
 * halvings, and the effect of one on the other.
 */
static inline void dcqcn_pair_compare(struct dcqcn_pair *d, const char *what)
{
	long double unit = 1.0L / DCQCN_ALPHA_ONE;
	const struct dcqcn_model *m = &d->m;

	expect(m->rate >= d->p.floor && m->rate <= d->p.line, "%s: %lu outside %lu to %lu", what,
	       m->rate, d->p.floor, d->p.line);
	expect(m->target <= d->p.line && m->rate <= m->target, "%s: %lu, target %lu", what, m->rate,
	       m->target);
	expect(m->alpha <= DCQCN_ALPHA_ONE, "%s: alpha %u", what, m->alpha);
	expect(m->sent < d->p.bytes, "%s: %lu bytes", what, m->sent);
	expect(near_abs(m->alpha * unit, d->o.alpha, 3 * unit), "%s: alpha %.10Lf, paper %.10Lf",
	       what, m->alpha * unit, d->o.alpha);
	expect(near_abs(m->target, d->o.rt, 6), "%s: target %lu, paper %.1Lf", what, m->target,
	       d->o.rt);
	expect(near_abs(m->rate, d->o.rc, 6 + d->p.line * 2 * unit), "%s: rate %lu, paper %.1Lf",
	       what, m->rate, d->o.rc);
	expect(m->timer_count == fp_min(d->o.t, U32_MAX), "%s: %u timer events, paper %lu", what,
	       m->timer_count, d->o.t);
	expect(m->byte_count == fp_min(d->o.bc, U32_MAX), "%s: %u byte events, paper %lu", what,
	       m->byte_count, d->o.bc);
	expect(m->alpha_due == d->o.alpha_due && m->timer_due == d->o.timer_due,
	       "%s: due %lu %lu, paper %lu %lu", what, m->alpha_due, m->timer_due, d->o.alpha_due,
	       d->o.timer_due);
	/* from here on both continue from the same state */
	d->o.alpha = m->alpha * unit;
	d->o.rc = m->rate;
	d->o.rt = m->target;
}

static inline void dcqcn_pair_advance(struct dcqcn_pair *d, u64 ns)
{
	d->now += ns;
	dcqcn_advance(&d->m, &d->p, d->now);
	dcqcn_paper_advance(&d->o, &d->p, d->now);
	dcqcn_pair_compare(d, "advance");
}

static inline void dcqcn_pair_sent(struct dcqcn_pair *d, u64 bytes)
{
	dcqcn_sent(&d->m, &d->p, bytes);
	dcqcn_paper_sent(&d->o, &d->p, bytes);
	dcqcn_pair_compare(d, "sent");
}

static inline void dcqcn_pair_cnp(struct dcqcn_pair *d)
{
	dcqcn_cnp(&d->m, &d->p, d->now);
	dcqcn_paper_cnp(&d->o, &d->p, d->now);
	dcqcn_pair_compare(d, "cnp");
}

static inline void dcqcn_pair_loss(struct dcqcn_pair *d)
{
	dcqcn_loss(&d->m, &d->p, d->now);
	dcqcn_paper_loss(&d->o, &d->p, d->now);
	dcqcn_pair_compare(d, "loss");
}

#endif /* _LOWQ_DCQCN_ORACLE_H */
