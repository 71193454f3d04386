/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The Prague draft (July 2024) and RFC 9438 in floating point, formula by formula:
 * what the tests and the fuzz target of include/prague_model.h compare with. Times
 * are in microseconds, windows in packets.
 */
#ifndef _LOWQ_PRAGUE_ORACLE_H
#define _LOWQ_PRAGUE_ORACLE_H

#include "oracle.h"
#include "prague_model.h"

typedef long double real;

/* 2.3.2: alpha += g * (frac - alpha) */
static inline real draft_ewma(real alpha, real frac, real g)
{
	return alpha + g * (frac - alpha);
}

/* 2.4.4: the increase per round is (srtt / rtt_virt)^2 */
static inline real draft_ai(real srtt, real rtt_virt)
{
	return (srtt / rtt_virt) * (srtt / rtt_virt);
}

/* 2.4.3: cwnd += unmarked * ai_per_rtt / cwnd */
static inline real draft_increase(real unmarked, real ai, real cwnd)
{
	return unmarked * ai / cwnd;
}

/* 2.5.1: pacing_rate = MTU * max(cwnd, inflight) / srtt, here bytes per second */
static inline real draft_pacing(real mss, real cwnd, real srtt_us)
{
	return mss * cwnd / srtt_us * 1e6L;
}

/* RFC 9438 4.2 and 4.3 (with alpha_cubic throughout, as RFC 8312) */
static inline real rfc9438_window(real w_max, real t, real rtt)
{
	real k = cbrtl(w_max * 0.3L / 0.4L);
	real cubic = 0.4L * (t - k) * (t - k) * (t - k) + w_max;
	real reno = w_max * 0.7L + 3 * (1 - 0.7L) / (1 + 0.7L) * (rtt ? t / rtt : 0);

	return fmaxl(fmaxl(cubic, reno), 0);
}

static inline real q(u64 x, unsigned int bits)
{
	return ldexpl(x, -(int)bits);
}

static inline real alpha_of(const struct prague_model *m)
{
	return q(m->alpha, PRAGUE_Q);
}

static inline real window_of(const struct prague_model *m)
{
	return m->cwnd + q(m->frac, PRAGUE_Q);
}

/* What holds of any state, whatever brought it about */
static inline void expect_sane(const struct prague_model *m, u32 floor)
{
	expect(m->alpha <= PRAGUE_ONE, "alpha %lu", m->alpha);
	expect(m->frac < PRAGUE_ONE, "frac %lu", m->frac);
	expect(m->cwnd >= floor, "cwnd %u, floor %u", m->cwnd, floor);
	expect(m->cwnd || m->frac, "window 0, floor %u", floor);
}

/* A reduction by @share, Q60, against window * (1 - share). */
static inline void checked_reduce(struct prague_model *m, u64 share, u32 floor)
{
	real want = window_of(m) * (1 - q(share, PRAGUE_Q));
	/* a long double has 64 bits for window and fraction together */
	real tolerance = ldexpl(window_of(m) + 4, -60);

	prague_reduce(m, share, floor);
	expect_sane(m, floor);
	if (floor && want < floor)
		want = floor;
	if (want < q(PRAGUE_MIN_FRACTION, PRAGUE_Q))
		want = q(PRAGUE_MIN_FRACTION, PRAGUE_Q);
	expect(near_abs(window_of(m), want, tolerance), "share %lu: %.15Lf, not %.15Lf", share,
	       window_of(m), want);
}

#endif /* _LOWQ_PRAGUE_ORACLE_H */
