/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LDCP's window in floating point, written from the draft's formulas (2.2, 2.3,
 * 3.2), and the checks that compare ldcp_model.h with it: used by
 * test_ldcp_model.c and by fuzz_ldcp_model.c.
 */
#ifndef _LOWQ_LDCP_ORACLE_H
#define _LOWQ_LDCP_ORACLE_H

#include "ldcp_model.h"
#include "oracle.h"

/* struct ldcp_gains as numbers */
struct ldcp_draft {
	long double alpha;
	long double beta;
	long double eta;
	long double gamma;
	long double step;	/* below one packet: the draft's is gamma */
};

static inline struct ldcp_draft ldcp_draft(const struct ldcp_gains *g)
{
	return (struct ldcp_draft) {
		.alpha = g->alpha / (long double)LDCP_GAIN_ONE,
		.beta = g->beta / (long double)LDCP_GAIN_ONE,
		.eta = g->eta / (long double)LDCP_GAIN_ONE,
		.gamma = ldexpl(1, -(int)g->shift_gamma),
		.step = g->step ? g->step / (long double)LDCP_GAIN_ONE :
				  ldexpl(1, -(int)g->shift_gamma),
	};
}

#define LDCP_CW_LARGEST	((long double)(1 << 20))

static inline long double ldcp_draft_bound(const struct ldcp_draft *d, long double cw)
{
	return fminl(fmaxl(cw, d->gamma), LDCP_CW_LARGEST);
}

/* Eq. (2) and the rule for cw < 1, for an ACK of @n packets */
static inline long double ldcp_draft_ack(const struct ldcp_draft *d, long double cw, u32 n,
					 bool ece)
{
	if (!n)
		return cw;
	if (cw >= 1)
		cw = ece ? cw - n * d->beta : cw + n * d->alpha / cw;
	else
		cw = ece ? fmaxl(d->gamma, d->eta * cw) : cw + d->step;
	return ldcp_draft_bound(d, cw);
}

static inline long double ldcp_real(u64 cw)
{
	return ldexpl(cw, -LDCP_CW_Q);
}

/* Any gains that the parameters accept. @shift picks gamma, and the step. */
static inline struct ldcp_gains ldcp_gains_of(u64 alpha, u64 beta, u64 eta, u64 shift)
{
	return (struct ldcp_gains) {
		.alpha = 1 + fold(alpha, LDCP_GAIN_ONE - 1),
		.beta = 1 + fold(beta, LDCP_GAIN_ONE - 1),
		.eta = 1 + fold(eta, LDCP_GAIN_ONE - 2),
		.shift_gamma = LDCP_SHIFT_GAMMA_MIN +
			       fold(shift, LDCP_SHIFT_GAMMA_MAX - LDCP_SHIFT_GAMMA_MIN),
		.step = shift % 2 ? 0 : fold(shift / 2 ^ alpha, LDCP_GAIN_ONE),
	};
}

static inline u64 ldcp_model_ack(const struct ldcp_gains *g, u64 cw, u32 n, bool ece)
{
	return ece ? ldcp_model_marked(cw, n, g) : ldcp_model_clean(cw, n, g);
}

/*
 * One ACK, @n up to 2^16: the model's cw is the draft's value within one unit of Q40
 * plus the error of rounding cw to Q20, less than 2^-20 of the step.
 */
static inline u64 ldcp_checked_ack(const struct ldcp_gains *g, u64 cw, u32 n, bool ece)
{
	struct ldcp_draft d = ldcp_draft(g);
	long double before = ldcp_real(cw), want = ldcp_draft_ack(&d, before, n, ece);
	u64 after = ldcp_model_ack(g, cw, n, ece);
	long double slack = ldexpl(1.01L, -LDCP_CW_Q);

	if (!ece && before >= 1)
		slack += n * d.alpha / before * ldexpl(1, -20) / before;
	expect(near_abs(ldcp_real(after), want, slack), "cw %Lf, n %u, ece %d: %.12Lf, not %.12Lf",
	       before, n, ece, ldcp_real(after), want);
	expect(after == ldcp_model_bound(after, g), "cw %Lf, n %u, ece %d: %Lf", before, n, ece,
	       ldcp_real(after));
	expect(ece ? after <= cw : after >= cw, "cw %Lf, n %u, ece %d: %Lf", before, n, ece,
	       ldcp_real(after));
	return after;
}

#endif /* _LOWQ_LDCP_ORACLE_H */
