/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCTCP's sender in floating point, written from RFC 8257 section 3.3, and the
 * checks that compare dctcp_model.h with it: used by test_dctcp_model.c and by
 * fuzz_dctcp_model.c.
 *
 * Sequence numbers here have 64 bits and never wrap; the model sees the lower 32.
 */
#ifndef _LOWQ_DCTCP_ORACLE_H
#define _LOWQ_DCTCP_ORACLE_H

#include "dctcp_model.h"
#include "fixedpoint_oracle.h"

/* RFC 1323's largest window, bytes */
#define TCP_MAX_WINDOW	((u64)1 << 30)

/**
 * struct dctcp_rfc - the state variables of RFC 8257 3.3
 * @alpha:	DCTCP.Alpha
 * @g:		estimation gain
 * @m:		M of the window that ended last
 * @snd_una:	SND.UNA
 * @window_end:	DCTCP.WindowEnd
 * @bytes_acked: DCTCP.BytesAcked
 * @bytes_marked: DCTCP.BytesMarked
 */
struct dctcp_rfc {
	long double alpha;
	long double g;
	long double m;
	u64 snd_una;
	u64 window_end;
	u64 bytes_acked;
	u64 bytes_marked;
};

static inline struct dctcp_rfc dctcp_rfc_init(long double alpha, unsigned int shift_g,
					      u64 snd_una)
{
	return (struct dctcp_rfc) {
		.alpha = alpha,
		.g = ldexpl(1, -(int)shift_g),
		.snd_una = snd_una,
		.window_end = snd_una,
	};
}

/* Steps 1 to 8 for an acceptable ACK. Did the observation window end? */
static inline bool dctcp_rfc_ack(struct dctcp_rfc *s, u64 seg_ack, bool ece, u64 snd_nxt)
{
	u64 bytes_acked = seg_ack - s->snd_una;			/* 1 */

	s->snd_una = seg_ack;
	s->bytes_acked += bytes_acked;				/* 2 */
	if (ece)
		s->bytes_marked += bytes_acked;			/* 3 */
	if (seg_ack <= s->window_end)
		return false;					/* 4 */
	s->m = (long double)s->bytes_marked / s->bytes_acked;	/* 5 */
	s->alpha = s->alpha * (1 - s->g) + s->g * s->m;		/* 6 */
	s->window_end = snd_nxt;				/* 7 */
	s->bytes_acked = 0;					/* 8 */
	s->bytes_marked = 0;
	return true;
}

/* Step 9, in the unit of @cwnd */
static inline long double dctcp_rfc_cut(long double cwnd, long double alpha)
{
	return cwnd * (1 - alpha / 2);
}

/*
 * One window in the fixed point that RFC 8257 4.2 gives as an example, with any
 * scaling factor and shift: alpha after it.
 */
static inline u32 dctcp_rfc_scaled(u32 alpha, u64 acked, u64 marked, u32 scf, unsigned int shf)
{
	u32 m = scf * marked / acked;

	if (!(alpha >> shf))
		alpha = 0;
	alpha += (m >> shf) - (alpha >> shf);
	return alpha > scf ? scf : alpha;
}

/*
 * How far the model's alpha may be from the RFC's, units of Q30, given the same
 * ACKs and a start without error (a Q30 value is exact in floating point).
 *
 * A window rounds M down by f, 0 <= f < 1, and the average by e, |e| < 1, so with
 * g = 2^-shift the distance d from the RFC's alpha becomes
 *
 *	d' = (1 - g) * d + e - g * f
 *
 * Above the RFC's alpha only e adds up: d < 1 / g = 2^shift. Below it, the limit is
 * (1 + g) / g: d > -(2^shift + 1). At shift 10, the largest, that is 1e-6 of the whole
 * scale. long double rounds by less than 2^-20 of a unit.
 */
#define DCTCP_ALPHA_ABOVE(shift)	((long double)FP_ONE(shift))
#define DCTCP_ALPHA_BELOW(shift)	((long double)FP_ONE(shift) + 1)

/* Number of windows without marks after which any alpha is 0: see ewma_steps_to_zero(). */
static inline u64 dctcp_windows_to_zero(unsigned int shift)
{
	return ewma_steps_to_zero(DCTCP_ALPHA_Q, shift);
}

/* D6, D16: alpha is within the bound of the RFC's, and at most 1. */
static inline void dctcp_expect_alpha(u32 alpha, long double rfc, unsigned int shift)
{
	long double d = alpha - rfc * DCTCP_ALPHA_ONE;

	expect(d < DCTCP_ALPHA_ABOVE(shift) && -d < DCTCP_ALPHA_BELOW(shift),
	       "shift %u: alpha %u of 2^30, not %Lf", shift, alpha, rfc * DCTCP_ALPHA_ONE);
	expect(alpha <= DCTCP_ALPHA_ONE, "shift %u: alpha %u", shift, alpha);
}

/* The model and the RFC, fed with the same ACKs */
struct dctcp_pair {
	struct dctcp_model model;
	struct dctcp_rfc rfc;
	unsigned int shift;
};

/* @alpha: Q30, up to 1.0 */
static inline struct dctcp_pair dctcp_pair_init(u32 alpha, unsigned int shift, u64 snd_una)
{
	struct dctcp_pair p = {
		.rfc = dctcp_rfc_init((long double)alpha / DCTCP_ALPHA_ONE, shift, snd_una),
		.shift = shift,
	};

	dctcp_model_init(&p.model, alpha, (u32)snd_una);
	return p;
}

/*
 * Both process an ACK of all bytes below @seg_ack; then their states are compared. Returns
 * whether the window ended.
 */
static inline bool dctcp_pair_ack(struct dctcp_pair *p, u64 seg_ack, bool ece, u64 snd_nxt)
{
	u32 bytes = seg_ack - p->rfc.snd_una;
	bool ended, rfc_ended;
	u32 fraction = 0;

	dctcp_model_ack(&p->model, bytes, ece ? bytes : 0);
	/* the bound in struct dctcp_model: two windows are less than 2^32 bytes */
	expect(p->model.acked == p->rfc.bytes_acked + bytes, "%u bytes", p->model.acked);

	ended = dctcp_model_window_ended(&p->model, (u32)seg_ack);
	if (ended)
		fraction = dctcp_model_window(&p->model, p->shift, (u32)snd_nxt);

	rfc_ended = dctcp_rfc_ack(&p->rfc, seg_ack, ece, snd_nxt);
	expect(ended == rfc_ended, "%d %d: una %lu, window_end %u", ended, rfc_ended, seg_ack,
	       p->model.window_end);
	expect(p->model.acked == p->rfc.bytes_acked, "%u %lu", p->model.acked,
	       p->rfc.bytes_acked);
	expect(p->model.marked == p->rfc.bytes_marked, "%u %lu", p->model.marked,
	       p->rfc.bytes_marked);
	expect(p->model.window_end == (u32)p->rfc.window_end, "%u %lu", p->model.window_end,
	       p->rfc.window_end);
	if (ended) {
		long double d = p->rfc.m * DCTCP_ALPHA_ONE - fraction;

		expect(d >= 0 && d < 1, "M %u of 2^30, not %Lf", fraction,
		       p->rfc.m * DCTCP_ALPHA_ONE);
	}
	dctcp_expect_alpha(p->model.alpha, p->rfc.alpha, p->shift);
	return ended;
}

/*
 * D7: cuts @cwnd and checks all properties of a cut. Returns the new window.
 *
 * cwnd * alpha <= (2^32 - 1) * 2^30 fits 64 bits, and half of it plus the fraction
 * carried over (below 2^30) is below 2^61 + 2^30.
 */
static inline u32 dctcp_checked_cut(struct dctcp_model *m, u32 cwnd)
{
	long double alpha = (long double)m->alpha / DCTCP_ALPHA_ONE;
	long double real = dctcp_rfc_cut(cwnd, alpha);
	u64 owed = (u64)cwnd * m->alpha + m->cut_frac;
	u32 after = dctcp_model_cut(m, cwnd);
	u32 want = fp_max(fp_sub(cwnd, owed >> (DCTCP_ALPHA_Q + 1)), DCTCP_MIN_CWND);

	expect(after == want, "%u -> %u, not %u", cwnd, after, want);
	expect(m->cut_frac == (owed & (2 * DCTCP_ALPHA_ONE - 1)), "%u -> %u, owed %u", cwnd, after,
	       m->cut_frac);
	expect(after >= DCTCP_MIN_CWND, "%u -> %u", cwnd, after);
	if (cwnd >= DCTCP_MIN_CWND)
		expect(after <= cwnd, "%u -> %u", cwnd, after);
	/*
	 * Less than one packet off, except at the minimum of 2; half is left: cut <=
	 * cwnd / 2 + owed, owed < 1, so that after > cwnd / 2 - 1.
	 */
	if (after > DCTCP_MIN_CWND)
		expect(near_abs(after, real, 1), "%u -> %u, not %Lf", cwnd, after, real);
	expect(after >= cwnd / 2, "%u -> %u", cwnd, after);
	return after;
}

#endif /* _LOWQ_DCTCP_ORACLE_H */
