/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The Prague draft (July 2024) and RFC 9438 in floating point, formula by formula. The
 * tests and the fuzz target compare include/prague_model.h with it. Times are in
 * microseconds, windows in packets.
 */
#ifndef _LOWQ_PRAGUE_ORACLE_H
#define _LOWQ_PRAGUE_ORACLE_H

#include "oracle.h"
#include "prague_model.h"

/* 2.3.2: alpha += g * (frac - alpha) */
static inline long double draft_ewma(long double alpha, long double frac, long double g)
{
	return alpha + g * (frac - alpha);
}

/* 2.4.4: the increase per round is (srtt / rtt_virt)^2 */
static inline long double draft_ai(long double srtt, long double rtt_virt)
{
	return (srtt / rtt_virt) * (srtt / rtt_virt);
}

/* 2.4.3: cwnd += unmarked * ai_per_rtt / cwnd */
static inline long double draft_increase(long double unmarked, long double ai, long double cwnd)
{
	return unmarked * ai / cwnd;
}

/* 2.5.1: pacing_rate = MTU * max(cwnd, inflight) / srtt, here bytes per second */
static inline long double draft_pacing(long double mss, long double cwnd, long double srtt_us)
{
	return mss * cwnd / srtt_us * 1e6L;
}

/* RFC 9438 4.2, 4.3 (with alpha_cubic throughout, as RFC 8312) and 4.7 */
static inline long double rfc9438_window(long double lost_at, bool fast, long double t,
					 long double rtt)
{
	long double w_max = fast ? lost_at * (1 + 0.7L) / 2 : lost_at;
	long double epoch = lost_at * 0.7L;
	long double k = cbrtl((w_max - epoch) / 0.4L);
	long double cubic = 0.4L * (t - k) * (t - k) * (t - k) + w_max;
	long double reno = epoch + 3 * (1 - 0.7L) / (1 + 0.7L) * (rtt ? t / rtt : 0);

	return fmaxl(fmaxl(cubic, reno), 0);
}

/* RFC 9406 4.3, times in milliseconds; a round ends with rfc9406_round() */
struct rfc9406 {
	long double last_round_min, current_round_min, css_baseline;
	int rtt_sample_count, css_rounds;
	bool css, over;
};

static inline struct rfc9406 rfc9406_init(void)
{
	return (struct rfc9406){ .last_round_min = INFINITY, .current_round_min = INFINITY,
				 .css_baseline = INFINITY };
}

static inline void rfc9406_rtt(struct rfc9406 *h, long double rtt)
{
	long double thresh;

	h->current_round_min = fminl(h->current_round_min, rtt);
	h->rtt_sample_count++;
	if (h->rtt_sample_count < 8 || isinf(h->last_round_min))
		return;
	if (h->css) {
		if (h->current_round_min < h->css_baseline) {
			h->css = false;
			h->css_baseline = INFINITY;
		}
		return;
	}
	/* MIN_RTT_DIVISOR 8, MIN_RTT_THRESH 4 ms, MAX_RTT_THRESH 16 ms */
	thresh = fmaxl(4, fminl(h->last_round_min / 8, 16));
	if (h->current_round_min >= h->last_round_min + thresh) {
		h->css_baseline = h->current_round_min;
		h->css = true;
		h->css_rounds = 0;
	}
}

/* CSS lasts at most CSS_ROUNDS, 5, the partial one at its begin included */
static inline void rfc9406_round(struct rfc9406 *h)
{
	h->last_round_min = h->current_round_min;
	h->current_round_min = INFINITY;
	h->rtt_sample_count = 0;
	if (h->css && ++h->css_rounds >= 5)
		h->over = true;
}

static inline long double q(u64 x, unsigned int bits)
{
	return ldexpl(x, -(int)bits);
}

static inline long double alpha_of(const struct prague_model *m)
{
	return q(m->alpha, PRAGUE_Q);
}

static inline long double window_of(const struct prague_model *m)
{
	return m->cwnd + q(m->frac, PRAGUE_Q);
}

/* Pacing rate of slow start, from the window's rate and the bottleneck's, bytes per second */
static inline long double start_rate(long double rate, long double path, bool early)
{
	if (2 * rate > path)
		return fmaxl(rate, path);
	return early ? fmaxl(2 * rate, fminl(path * 5 / 8, 8 * rate)) : 2 * rate;
}

/* What must hold in every state */
static inline void expect_sane(const struct prague_model *m)
{
	expect(m->alpha <= PRAGUE_ONE, "alpha %lu", m->alpha);
	expect(m->frac < PRAGUE_ONE, "frac %lu", m->frac);
	expect(m->cwnd, "window %u", m->cwnd);
}

/* Compares a reduction by @share (Q60) with window * (1 - share), at least two packets. */
static inline void checked_reduce(struct prague_model *m, u64 share)
{
	long double want = fmaxl(window_of(m) * (1 - q(share, PRAGUE_Q)), PRAGUE_MIN_CWND);
	/* a long double has 64 bits for window and fraction together */
	long double tolerance = ldexpl(window_of(m) + 4, -60);

	prague_reduce(m, share);
	expect_sane(m);
	expect(near_abs(window_of(m), want, tolerance), "share %lu: %.15Lf, not %.15Lf", share,
	       window_of(m), want);
}

#endif /* _LOWQ_PRAGUE_ORACLE_H */
