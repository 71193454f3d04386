/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LDCP's window as arithmetic on plain values (draft 2.2, 2.3, 3.2): no connection,
 * packet or clock. tcp_ldcp uses it with ACKs, roce_rcm with CNPs.
 *
 *	n packets confirmed, not marked:	cw += n * alpha / cw
 *	n packets confirmed, marked:		cw -= n * beta
 *	below one packet, not marked:		cw += gamma
 *	below one packet, marked:		cw = max(gamma, eta * cw)
 *	once per RTT, where packets are not confirmed one by one:
 *						cw += alpha
 *
 * Three additions to the draft: after a few RTTs without a mark the window returns towards that of
 * before the marks; after many the increase doubles with each further RTT; below one packet the
 * increase may differ from gamma, the smallest window.
 */
#ifndef _LOWQ_LDCP_MODEL_H
#define _LOWQ_LDCP_MODEL_H

#include "fixedpoint.h"

/*
 * cw's format: packets in Q40. At 2^20 packets and the smallest alpha, a step of
 * alpha / cw is still 2^10 units; 2^20 packets need 61 of 64 bits.
 */
#define LDCP_CW_Q		40
#define LDCP_CW_ONE		FP_ONE(LDCP_CW_Q)
#define LDCP_CW_MAX		FP_ONE(LDCP_CW_Q + 20)
#define LDCP_PACKETS_LARGEST	((u32)(LDCP_CW_MAX >> LDCP_CW_Q))

/* Units of alpha, beta and eta: 1/1024 */
#define LDCP_GAIN_Q		10
#define LDCP_GAIN_ONE		((u32)FP_ONE(LDCP_GAIN_Q))

/* gamma is 2^-shift_gamma: 1/4, 1/8 or 1/16 (draft 2.2) */
#define LDCP_SHIFT_GAMMA_MIN	2
#define LDCP_SHIFT_GAMMA_MAX	4

#define LDCP_PACKETS_MAX	65536U	/* most packets that one confirmation counts for */

/**
 * struct ldcp_gains - how far one confirmation moves the window
 * @alpha:	increase, Q10, above 0 and at most 1 packet per RTT
 * @beta:	decrease, Q10, above 0 and at most 1 packet per marked packet
 * @eta:	factor of a decrease below one packet, Q10, above 0 and below 1
 * @shift_gamma: gamma, the smallest window, is 2^-shift_gamma packets;
 *		LDCP_SHIFT_GAMMA_MIN to _MAX
 * @step:	increase below one packet, Q10, at most 1 packet; 0: gamma, as the draft says
 */
struct ldcp_gains {
	u32 alpha;
	u32 beta;
	u32 eta;
	u32 shift_gamma;
	u32 step;
};

/* The smallest window, packets in Q40 */
static inline u64 ldcp_model_gamma(const struct ldcp_gains *g)
{
	return LDCP_CW_ONE >> g->shift_gamma;
}

/* The increase below one packet, packets in Q40 */
static inline u64 ldcp_model_step(const struct ldcp_gains *g)
{
	return g->step ? (u64)g->step << (LDCP_CW_Q - LDCP_GAIN_Q) : ldcp_model_gamma(g);
}

/* A window of so many packets, 2^20 at most, Q40 */
static inline u64 ldcp_model_cw(u32 packets)
{
	return fp_min((u64)packets, LDCP_PACKETS_LARGEST) << LDCP_CW_Q;
}

/* @cw, but at least gamma and at most 2^20 packets */
static inline u64 ldcp_model_bound(u64 cw, const struct ldcp_gains *g)
{
	return fp_min(fp_max(cw, ldcp_model_gamma(g)), LDCP_CW_MAX);
}

/*
 * The window after @n packets were confirmed without a mark (eq. 2, and its rule
 * below one packet, which counts confirmations and not packets). cw: Q40, within
 * ldcp_model_bound(), here and below.
 *
 * n * alpha is at most 2^26 in Q10; n * alpha * 2^50 divided by cw in Q20 is in Q40, and
 * where n * alpha < 2^14, as for nearly every ACK, the product fits 64 bits. The error of
 * rounding cw to Q20 does not accumulate: a larger cw makes the next step smaller.
 */
static inline u64 ldcp_model_clean(u64 cw, u32 n, const struct ldcp_gains *g)
{
	u64 step = (u64)n * g->alpha;

	if (!n)
		return cw;
	if (cw < LDCP_CW_ONE)
		return cw + ldcp_model_step(g);
	if (step < FP_ONE(14))
		step = fp_div(step << 50, cw >> 20);
	else
		step = fp_mul_div(fp_min(n, LDCP_PACKETS_MAX) * g->alpha, FP_ONE(50), cw >> 20);
	return fp_min(cw + step, LDCP_CW_MAX);
}

/* Rounds without a mark, in Q16: a round is a window of packets, at least one. */
#define LDCP_QUIET_Q		16

/* @quiet after @n more packets were confirmed without a mark; saturates */
static inline u32 ldcp_model_quiet(u32 quiet, u64 cw, u32 n)
{
	return fp_min(quiet + fp_div((u64)n << LDCP_QUIET_Q, fp_max(cw >> LDCP_CW_Q, 1)),
		      U32_MAX);
}

/*
 * As ldcp_model_clean(), with the increase doubled @doublings times, but at most an eighth of
 * a packet per packet: the window grows by an eighth per RTT.
 */
static inline u64 ldcp_model_faster(u64 cw, u32 n, const struct ldcp_gains *g, u32 doublings)
{
	u64 next = ldcp_model_clean(cw, n, g), step = next - cw;
	u64 most = fp_max(step, fp_min(n, LDCP_PACKETS_MAX) << (LDCP_CW_Q - 3));

	if (cw < LDCP_CW_ONE)
		return next;
	if (doublings >= 32 || step > most >> doublings)
		step = most;
	else
		step <<= doublings;
	return fp_min(cw + step, LDCP_CW_MAX);
}

/*
 * As ldcp_model_clean(), but half of the way to @before per RTT, a window that the flow had: Q40,
 * at most LDCP_CW_MAX.
 */
static inline u64 ldcp_model_return(u64 cw, u64 before, u32 n, const struct ldcp_gains *g)
{
	u64 next = ldcp_model_clean(cw, n, g), packets = cw >> LDCP_CW_Q;

	if (!packets || before <= next)
		return next;
	n = fp_min(n, packets);
	return fp_max(next, cw + fp_mul_div(before - cw, n, 2 * packets));
}

/* The window after @n packets were confirmed with a mark, or after @n CNPs. */
static inline u64 ldcp_model_marked(u64 cw, u32 n, const struct ldcp_gains *g)
{
	u64 cut;

	if (!n)
		return cw;
	if (cw < LDCP_CW_ONE)
		cut = cw - ((cw * g->eta) >> LDCP_GAIN_Q);
	else
		cut = (fp_min(n, LDCP_PACKETS_MAX) * g->beta) << (LDCP_CW_Q - LDCP_GAIN_Q);
	return fp_max(fp_sub(cw, cut), ldcp_model_gamma(g));
}

/*
 * The window after a loss: half of it, and at least two packets (RFC 5681 equation 4). Windows
 * below two packets, which RFC 5681 does not have, are halved, too.
 */
static inline u64 ldcp_model_lost(u64 cw)
{
	return cw < 2 * LDCP_CW_ONE ? cw / 2 : fp_max(cw / 2, 2 * LDCP_CW_ONE);
}

/* The window after a round trip, where the increase comes once per RTT (draft 3.2). */
static inline u64 ldcp_model_round(u64 cw, const struct ldcp_gains *g)
{
	if (cw < LDCP_CW_ONE)
		return cw + ldcp_model_step(g);
	return fp_min(cw + ((u64)g->alpha << (LDCP_CW_Q - LDCP_GAIN_Q)), LDCP_CW_MAX);
}

/* How many packets may be in flight: whole ones, at least one. */
static inline u32 ldcp_model_packets(u64 cw)
{
	return fp_max(cw >> LDCP_CW_Q, 1);
}

/*
 * The rate that the window stands for, bytes per second. @packet: bytes, below
 * 2^24; @rtt_us: microseconds. cw in Q20 times packet is below 2^64.
 */
static inline u64 ldcp_model_rate(u64 cw, u32 packet, u32 rtt_us)
{
	return fp_mul_div((cw >> 20) * packet, 1000000, rtt_us) >> (LDCP_CW_Q - 20);
}

/*
 * Packets that a path holds: the initial window (draft 2.3). @rate_mbps: Mb/s,
 * @rtt_us: microseconds; their product, bits, fits 64 bits. @packet: bytes on the
 * line. Rounded up; 1 at least, 2^20 at most.
 */
static inline u32 ldcp_model_bdp(u32 rate_mbps, u32 rtt_us, u32 packet)
{
	u64 packets = fp_div((u64)rate_mbps * rtt_us, 8 * (u64)packet);
	u64 whole = packets * 8 * packet == (u64)rate_mbps * rtt_us ? packets : packets + 1;

	return fp_min(fp_max(whole, 1), LDCP_CW_MAX >> LDCP_CW_Q);
}

#endif /* _LOWQ_LDCP_MODEL_H */
