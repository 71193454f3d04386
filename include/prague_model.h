/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prague's arithmetic on plain values (draft-briscoe-iccrg-prague-congestion-control,
 * July 2024). No socket, no packet, no clock.
 *
 *	once per rtt_virt:	alpha += g * (frac - alpha)
 *	on a mark:		cwnd -= cwnd * alpha / 2, once per rtt_virt
 *	on an ACK:		cwnd += unmarked * (srtt / rtt_virt)^2 / cwnd
 *	pacing:			rate = packet * max(cwnd, inflight) / srtt
 *
 * The window has a whole part, which the stack sees, and a fraction that is carried
 * from ACK to ACK and from cut to cut, so that rounding errors stay below 2^-60 packets.
 * Round-trip times are in the stack's unit, 1/8 us, so that those below 128 us have
 * their full precision.
 */
#ifndef _LOWQ_PRAGUE_MODEL_H
#define _LOWQ_PRAGUE_MODEL_H

#include "fixedpoint.h"

/* alpha and the fraction of the window are in Q60 (the draft's upscaled alpha: 20 bits) */
#define PRAGUE_Q		60
#define PRAGUE_ONE		FP_ONE(PRAGUE_Q)

/* Increase per round trip in packets: Q58, below 64 */
#define PRAGUE_AI_Q		58
#define PRAGUE_AI_ONE		FP_ONE(PRAGUE_AI_Q)

#define PRAGUE_MIN_CWND		2U	/* packets; MIN_CWND (2.4.2) */
#define PRAGUE_MIN_FRACTION	(PRAGUE_ONE >> 4)	/* the smallest fractional window (3.5) */

/* What rtt_virt is (2.4.4, 3.4); @target is RTT_VIRT_MIN, or AdditionalRTT */
enum prague_rtt_mode {
	PRAGUE_RTT_OFF,		/* srtt */
	PRAGUE_RTT_MAX,		/* max(srtt, target) */
	PRAGUE_RTT_EXTRA,	/* srtt + target */
	PRAGUE_RTT_MODES
};

/**
 * struct prague_model - the sender's state for one connection
 * @alpha:	marked fraction, moving average, Q60, at most PRAGUE_ONE (2.3.2)
 * @frac:	part of a packet that the window has beyond @cwnd, Q60, below 1.0
 * @cwnd:	whole packets of the window; below PRAGUE_MIN_CWND only where a
 *		fractional window is allowed
 * @acked:	packets acknowledged in this EWMA period; saturates
 * @marked:	those of them that came marked; saturates
 * @rtt_us:	shortest RTT measured in this EWMA period, microseconds; 0 is none
 */
struct prague_model {
	u64 alpha;
	u64 frac;
	u32 cwnd;
	u32 acked;
	u32 marked;
	u32 rtt_us;
};

/* Sets the window to @cwnd whole packets, the stack's. */
static inline void prague_set_window(struct prague_model *m, u32 cwnd)
{
	m->cwnd = cwnd;
	m->frac = 0;
}

/* Starts an EWMA period. */
static inline void prague_clear_counts(struct prague_model *m)
{
	m->acked = 0;
	m->marked = 0;
	m->rtt_us = 0;
}

/* An RTT of @rtt_us was measured; true if it is the shortest of the period. */
static inline bool prague_rtt(struct prague_model *m, u32 rtt_us)
{
	rtt_us = fp_max(rtt_us, 1);
	if (m->rtt_us && rtt_us >= m->rtt_us)
		return false;
	m->rtt_us = rtt_us;
	return true;
}

static inline void prague_model_init(struct prague_model *m, u32 cwnd)
{
	m->alpha = 0;
	prague_clear_counts(m);
	prague_set_window(m, cwnd);
}

/* An ACK of @acked packets, @marked of them with a mark. */
static inline void prague_count(struct prague_model *m, u32 acked, u32 marked)
{
	m->acked = fp_add32(m->acked, acked);
	if (marked)
		m->marked = fp_add32(m->marked, marked);
}

/*
 * At the end of an EWMA period: alpha += g * (frac - alpha) with g = 2^-shift,
 * shift 1 to 10. Returns frac, Q30. A period without packets leaves alpha as it is.
 */
static inline u32 prague_ewma(struct prague_model *m, unsigned int shift)
{
	u32 frac30 = fp_fraction(m->marked, m->acked, 30);
	u64 frac = (u64)frac30 << (PRAGUE_Q - 30);

	if (m->acked) {
		/* decreases by at least one unit, so that it does not get stuck above 0 */
		if (frac >= m->alpha)
			m->alpha += (frac - m->alpha) >> shift;
		else
			m->alpha -= fp_max((m->alpha - frac) >> shift, 1);
	}
	prague_clear_counts(m);
	return frac30;
}

/*
 * @periods EWMA periods in which nothing was sent, so that nothing was marked:
 * alpha *= (1 - 2^-shift)^periods.
 */
static inline void prague_idle(struct prague_model *m, u32 periods, unsigned int shift)
{
	u64 keep = FP_ONE(32) - (FP_ONE(32) >> shift);	/* of alpha, Q32 */

	for (; periods; periods >>= 1, keep = keep * keep >> 32)
		if (periods & 1)
			m->alpha = fp_mul_shr(m->alpha, keep, 32);
}

/*
 * The same in small steps, on every ACK (3.1.3), where a period has @round packets:
 * alpha += g * (marked - alpha * acked) / round.
 */
static inline void prague_ewma_ack(struct prague_model *m, u32 acked, u32 marked, u64 round,
				   unsigned int shift)
{
	u64 up, down;

	marked = fp_min(marked, acked);
	round = fp_max(round, fp_max(acked, 1));
	/* both at most 2^60, as marked <= acked <= round */
	up = fp_mul_div(PRAGUE_ONE >> shift, marked, round);
	down = fp_mul_div(m->alpha >> shift, acked, round);
	m->alpha = fp_min(fp_sub(m->alpha + up, down), PRAGUE_ONE);
}

/*
 * rtt_virt, in the unit of @srtt, @target and @limit. @limit is the longest rtt_virt, so that
 * longer RTTs grow faster, too (3.4); 0 is no limit.
 */
static inline u32 prague_rtt_virt(u32 srtt, enum prague_rtt_mode mode, u32 target, u32 limit)
{
	u64 virt;

	switch (mode) {
	case PRAGUE_RTT_MAX:
		virt = fp_max(srtt, target);
		break;
	case PRAGUE_RTT_EXTRA:
		virt = (u64)srtt + target;
		break;
	default:
		return srtt;
	}
	return fp_min(virt, limit ? limit : U32_MAX);
}

/* srtt / rtt_virt, which is 1/M: Q29, below 8.0. With rtt_virt = 0 it is 1. */
static inline u32 prague_ratio(u32 srtt, u32 rtt_virt)
{
	if (!rtt_virt || srtt == rtt_virt)
		return FP_ONE(29);
	return fp_min(fp_mul_div(srtt, FP_ONE(29), rtt_virt), U32_MAX);
}

/* ai_per_rtt = 1/M^2 packets: Q58, below 64 */
static inline u64 prague_ai(u32 srtt, u32 rtt_virt)
{
	u64 ratio = prague_ratio(srtt, rtt_virt);

	return ratio * ratio;
}

/* Fastest increase per round, as a shift of the window: an eighth after an abrupt cut, else 1/16 */
#define PRAGUE_BOOST_ABRUPT	3
#define PRAGUE_BOOST_STEADY	4

/*
 * Faster than additive (3.1.2): from the @after-th period without a mark on, the
 * increase doubles with each period, up to 2^-@most_shift of the window per round (and up
 * to 64 packets, the limit of Q58).
 */
static inline u64 prague_boost(u64 ai, u32 cwnd, u32 silent, u32 after, unsigned int most_shift)
{
	u32 doublings;
	u64 most;

	if (!after || silent < after)
		return ai;
	most = fp_mul_shr(PRAGUE_AI_ONE >> most_shift, cwnd, 0);
	doublings = fp_min(silent - after + 1, 32);
	return fp_max(ai, fp_min(fp_mul_shr(ai, FP_ONE(doublings), 0), most));
}

/*
 * After so many periods without marks capacity is taken to be free: @least, or 5/4 of the
 * periods that are @usual between marks and two more, whichever is larger
 */
static inline u32 prague_patience(u32 least, u32 usual)
{
	return fp_max(least, (u64)usual + usual / 4 + 2);
}

/* Reduction for a mark: alpha / 2 (2.4.2) */
static inline u64 prague_ecn_share(const struct prague_model *m)
{
	return m->alpha >> 1;
}

/* Above this alpha a cut is more than a fifth: larger than in a steady state. */
#define PRAGUE_ABRUPT		(PRAGUE_ONE / 5 * 2)

/* Adds @packets (Q58) to the window. */
static inline void prague_grow(struct prague_model *m, u64 packets)
{
	u64 frac = m->frac + ((packets & (PRAGUE_AI_ONE - 1)) << (PRAGUE_Q - PRAGUE_AI_Q));
	u64 whole = (u64)m->cwnd + (packets >> PRAGUE_AI_Q) + (frac >> PRAGUE_Q);

	m->cwnd = fp_min(whole, U32_MAX);
	m->frac = frac & (PRAGUE_ONE - 1);
}

/* The square root of a number below 2^62, rounded down */
static inline u32 prague_sqrt(u64 x)
{
	u64 root = 0;
	int bit;

	for (bit = 30; bit >= 0; bit--) {
		u64 r = root | FP_ONE(bit);

		if (r * r <= x)
			root = r;
	}
	return root;
}

/*
 * Additive increase (2.4.3) for @unmarked packets: @ai (Q58) per round, that is 1/cwnd
 * of it per packet. Below two packets (3.5) it is 1/sqrt(2 cwnd) of it per packet, at
 * most 1, which equals 1/cwnd at two. There a whole packet per round would outweigh any
 * cut, and an increase in proportion to the window would let the flows' shares drift.
 */
static inline void prague_increase(struct prague_model *m, u32 unmarked, u64 ai)
{
	u64 each;

	if (m->cwnd >= 1024)
		each = fp_div(ai, m->cwnd);
	else if (m->cwnd >= 2)
		/* pacing uses the fraction of the window, so 10 bits of it count here */
		each = fp_div(ai, ((u64)m->cwnd << 10) | (m->frac >> (PRAGUE_Q - 10))) << 10;
	else
		/* the root is in Q30, and not below 1 */
		each = fp_mul_div(ai, FP_ONE(30),
				  fp_max(prague_sqrt((((u64)m->cwnd << PRAGUE_Q) | m->frac) << 1),
					 FP_ONE(30)));
	prague_grow(m, fp_mul_shr(each, unmarked, 0));
}

/* Multiplies the window by 1 - @share (Q60, up to 1.0); at least @floor packets remain. */
static inline void prague_reduce(struct prague_model *m, u64 share, u32 floor)
{
	u64 lo, hi = fp_mul_wide(share, m->cwnd, &lo);
	u64 whole = (hi << (64 - PRAGUE_Q)) | (lo >> PRAGUE_Q);
	u64 part = (lo & (PRAGUE_ONE - 1)) + fp_mul_shr(share, m->frac, PRAGUE_Q);
	u64 cwnd = m->cwnd, frac = m->frac;

	/* part < 2.0, and the cut is no larger than the window */
	whole += part >> PRAGUE_Q;
	part &= PRAGUE_ONE - 1;
	if (part > frac) {
		frac += PRAGUE_ONE;
		whole++;
	}
	cwnd = fp_sub(cwnd, whole);
	frac -= part;
	if (cwnd < floor) {
		cwnd = floor;
		frac = 0;
	}
	if (!cwnd)
		frac = fp_max(frac, PRAGUE_MIN_FRACTION);
	m->cwnd = cwnd;
	m->frac = frac;
}

/*
 * Spreads the response to a mark over the round that follows it (3.1.3): each of @packets
 * acknowledged reduces the window by alpha / 2 packets, or by 1/M of that if a round of
 * rtt_virt has M times the window's packets. @ratio is 1/M in Q29.
 */
static inline void prague_reduce_spread(struct prague_model *m, u32 packets, u32 ratio,
					u32 floor)
{
	u64 window = fp_max(m->cwnd, 1);
	u64 share = fp_mul_shr(prague_ecn_share(m), fp_min(ratio, FP_ONE(29)), 29);

	/* as a share of the window: at most all of its packets count */
	share = fp_mul_div(share, fp_min(packets, window), window);
	prague_reduce(m, share, floor);
}

/*
 * Reduction for a loss: half like Reno, or 3/10 like CUBIC. After a cut for marks in the
 * same round it is smaller, so that (2 + alpha)/4 or (2 + alpha)/3 is left (3.2.1).
 */
static inline u64 prague_loss_share(const struct prague_model *m, bool cubic, bool combined)
{
	if (combined)
		return cubic ? fp_div(PRAGUE_ONE - m->alpha, 3) :
			       (2 * PRAGUE_ONE - m->alpha) >> 2;
	return cubic ? PRAGUE_ONE / 10 * 3 : PRAGUE_ONE >> 1;
}

/*
 * Bytes per second for @packets and @frac (Q60) of @mss bytes per @srtt (1/8 us),
 * twice that in early slow start (2.5.1). 0 while there is no srtt.
 */
static inline u64 prague_pacing_rate(u32 mss, u32 packets, u64 frac, u32 srtt, bool twice)
{
	u64 lo, bytes = (u64)mss * packets + fp_mul_wide(frac << (64 - PRAGUE_Q), mss, &lo);

	if (!srtt)
		return 0;
	return fp_mul_div(bytes, 8000000U << twice, srtt);
}

/* Packets of @mss bytes that @rate sends in @burst_us: 1 to 65535 (2.5.2) */
static inline u32 prague_burst(u64 rate, u32 burst_us, u32 mss)
{
	u64 packets = fp_mul_div(rate, burst_us, 1000000ULL * mss);

	return fp_min(fp_max(packets, 1), U16_MAX);
}

/* The cube root of a number below 2^63, rounded down */
static inline u32 prague_cbrt(u64 x)
{
	u64 root = 0;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		u64 r = root | FP_ONE(bit);

		if (r * r * r <= x)
			root = r;
	}
	return root;
}

/*
 * What CUBIC's curve aims at after a loss at a window of @cwnd packets: that window, or,
 * with fast convergence, (1 + beta) / 2 = 0.85 of it (RFC 9438 4.7)
 */
static inline u32 prague_cubic_max(u32 cwnd, bool fast)
{
	return fast ? (u64)cwnd * 17 / 20 : cwnd;
}

/*
 * CUBIC's window (RFC 9438 4.2, 4.3) @t_ms after a loss at a window of @lost_at
 * packets, for a round-trip time of @srtt (1/8 us): the larger of
 * C (t - K)^3 + W_max and Reno's estimated window, in whole packets. C = 0.4,
 * beta = 0.7, W_max = prague_cubic_max(), K = cbrt((W_max - beta lost_at) / C) seconds.
 */
static inline u32 prague_cubic_window(u32 lost_at, bool fast, u32 t_ms, u32 srtt)
{
	u32 w_max = prague_cubic_max(lost_at, fast);
	/* K in ms: 0.3 / C is 0.75, with fast convergence 0.15 / C; below 2^62 */
	u64 k_ms = prague_cbrt((u64)lost_at * (fast ? 375000000 : 750000000));
	u64 off, delta, cubic, reno;

	t_ms = fp_min(t_ms, 1000000);
	off = t_ms > k_ms ? t_ms - k_ms : k_ms - t_ms;
	/* off < 2^21: off^3 < 2^63 */
	delta = fp_div(off * off * off, 2500000000ULL);
	cubic = t_ms > k_ms ? w_max + delta : fp_sub(w_max, delta);
	/* beta lost_at + 3 (1 - beta) / (1 + beta) t / RTT */
	reno = fp_mul_div(lost_at, 7, 10);
	if (srtt)
		reno += fp_mul_div((u64)t_ms * 8000, 9, (u64)srtt * 17);
	return fp_min(fp_max(cubic, reno), U32_MAX);
}

/*
 * Increase (Q58) per round towards @target, to be reached in one round; at most half of
 * the window (and at most 64 packets, the limit of Q58).
 */
static inline u64 prague_cubic_ai(u32 cwnd, u32 target)
{
	u64 most = fp_max(cwnd >> 1, 1), gap = fp_sub(target, cwnd);

	return fp_mul_shr(PRAGUE_AI_ONE, fp_min(gap, most), 0);
}

/*
 * Increase (Q58) per round after a slow start that no mark or loss has ended: a twentieth of the
 * window (and at most 64 packets), as Linux's CUBIC grows before its first loss.
 */
static inline u64 prague_probe_ai(u32 cwnd)
{
	return fp_max(fp_mul_shr(PRAGUE_AI_ONE / 20, cwnd, 0), PRAGUE_AI_ONE);
}

/*
 * HyStart++ (RFC 9406 4.3); its L, the limit of growth per ACK, is for senders without pacing.
 * Conservative slow start grows by an eighth, not a quarter, per round: in five rounds by 1.8.
 * With a quarter it would be 3, and a queue of four BDPs would overflow.
 */
#define PRAGUE_HYSTART_MIN_US	4000
#define PRAGUE_HYSTART_MAX_US	16000
#define PRAGUE_HYSTART_SAMPLES	8
#define PRAGUE_CSS_DIVISOR	8
#define PRAGUE_CSS_ROUNDS	5

#define PRAGUE_HYSTART_SHIFT	6	/* RTTs are kept in 64 us, so that the state is small */

/**
 * struct prague_hystart - the end of slow start where no mark reports a queue (RFC 9406)
 * @round_min:	shortest RTT of this round, 64 us, at most 4.2 s; 0 is none yet
 * @last_min:	shortest RTT of the round before, likewise
 * @css_base:	shortest RTT when conservative slow start began, likewise
 * @samples:	of the RTT in this round; saturates
 * @marked:	rounds in a row in which nearly all packets were marked; saturates
 * @css:	rounds of conservative slow start that have begun; 0 is slow start
 */
struct prague_hystart {
	u16 round_min;
	u16 last_min;
	u16 css_base;
	u8 samples:4;
	u8 marked:4;
	u8 css;
};

/* Has conservative slow start begun because the window should fill the path? */
static inline bool prague_hystart_full(const struct prague_hystart *h)
{
	return h->css && !h->css_base;
}

/* An RTT of @rtt_us was measured at such a window: only the shortest counts. */
static inline void prague_hystart_min(struct prague_hystart *h, u32 rtt_us)
{
	u32 rtt = fp_min(fp_max(rtt_us >> PRAGUE_HYSTART_SHIFT, 1), U16_MAX);

	if (!h->round_min || rtt < h->round_min)
		h->round_min = rtt;
}

/* An RTT of @rtt_us was measured in slow start; true if prague_hystart_judge() has to follow. */
static inline bool prague_hystart_rtt(struct prague_hystart *h, u32 rtt_us)
{
	prague_hystart_min(h, rtt_us);
	if (h->samples < PRAGUE_HYSTART_SAMPLES)
		h->samples++;
	return h->samples == PRAGUE_HYSTART_SAMPLES && h->last_min;
}

/* Does the RTT of this round show a queue? */
static inline void prague_hystart_judge(struct prague_hystart *h)
{
	u32 last_us, limit;

	if (h->css) {
		/* the RTT had grown for a moment only */
		if (h->round_min < h->css_base)
			h->css = 0;
		return;
	}
	last_us = (u32)h->last_min << PRAGUE_HYSTART_SHIFT;
	limit = fp_min(fp_max(last_us >> 3, PRAGUE_HYSTART_MIN_US), PRAGUE_HYSTART_MAX_US);
	if ((u32)h->round_min << PRAGUE_HYSTART_SHIFT >= last_us + limit) {
		h->css_base = h->round_min;
		h->css = 1;
	}
}

/*
 * A round has ended; true if slow start ends with it. At a path that should be full (no @css_base)
 * marks end it, with the window that the path has delivered.
 */
static inline bool prague_hystart_round(struct prague_hystart *h)
{
	h->last_min = h->round_min;
	h->round_min = 0;
	h->samples = 0;
	if (!h->css)
		return false;
	if (h->css <= PRAGUE_CSS_ROUNDS)
		h->css++;
	return h->css_base && h->css > PRAGUE_CSS_ROUNDS;
}

/*
 * Growth (Q58) of conservative slow start for @packets. Without a @css_base it began because the
 * window should fill the path. Growth is half as fast then: a round trip passes until marks of a
 * longer queue arrive, and up to two rounds until they end slow start.
 */
static inline u64 prague_css_growth(const struct prague_hystart *h, u32 packets)
{
	u32 divisor = h->css_base ? PRAGUE_CSS_DIVISOR : 2 * PRAGUE_CSS_DIVISOR;

	return fp_mul_shr(PRAGUE_AI_ONE / divisor, packets, 0);
}

/*
 * The first flight leaves as one burst, and the bottleneck spreads it: the time between its ACKs is
 * that of a packet there. Fewer packets than these say too little.
 */
#define PRAGUE_GAP_PACKETS	4

/* Time per packet, nanoseconds, of @packets acknowledged in @us microseconds; 0: cannot be said */
static inline u32 prague_gap(u32 packets, u32 us)
{
	if (packets < PRAGUE_GAP_PACKETS || !us)
		return 0;
	return fp_min(fp_max(fp_div((u64)us * 1000, packets), 1), U32_MAX);
}

/* Window, packets, that fills a path of @rtt_us with a packet per @gap_ns; no limit if that is 0 */
static inline u32 prague_pipe(u32 rtt_us, u32 gap_ns)
{
	if (!gap_ns)
		return U32_MAX;
	return fp_min(fp_max(fp_div((u64)rtt_us * 1000, gap_ns), PRAGUE_MIN_CWND), U32_MAX);
}

/*
 * Pacing rate of slow start, bytes per second, where @rate sends a window per RTT: twice that
 * (2.5.1), yet no faster than packets of @mss bytes can leave the bottleneck, one per @gap_ns.
 * @early, 5/8 of that, up to eight windows per RTT, if that is faster: the second and third
 * flight, and answers of a program that is the limit, then take little longer than their ACKs.
 */
static inline u64 prague_start_rate(u64 rate, u32 mss, u32 gap_ns, bool early)
{
	u64 path;

	rate = fp_min(rate, U64_MAX >> 3);
	if (!gap_ns)
		return rate << 1;
	path = fp_div((u64)mss * 1000000000, gap_ns);
	if (rate << 1 > path)
		return fp_max(rate, path);
	return early ? fp_max(rate << 1, fp_min(path * 5 / 8, rate << 3)) : rate << 1;
}

/* Does a window of @cwnd packets fill less than a fifth of a path that takes @pipe packets? */
static inline bool prague_small(u32 cwnd, u32 pipe)
{
	return cwnd < pipe / 5;
}

/* A queue that others keep at the usual threshold, 1 ms, is shorter */
#define PRAGUE_START_QUEUE_US	1500
#define PRAGUE_START_MARKED	4	/* marked rounds in a row end slow start without it */

/*
 * Do the marks of the round that @m has counted end slow start? Once the path is full, half of the
 * round must be marked; before, more than 7/8 of a round that used a quarter of the window. With a
 * @small window the round's shortest RTT must show a queue, too, or several such rounds must follow
 * each other: other flows may already hold the queue at the threshold. Nearly all packets of a new
 * flow are then marked long before it has its share.
 */
static inline bool prague_start_ends(struct prague_hystart *h, const struct prague_model *m,
				     u32 min_rtt_us, bool small)
{
	if (h->css)
		return (u64)m->marked * 2 > m->acked;
	if ((u64)m->acked * 4 < m->cwnd)
		return false;
	if ((u64)m->marked * 8 <= (u64)m->acked * 7) {
		h->marked = 0;
		return false;
	}
	h->marked = fp_min(h->marked + 1, PRAGUE_START_MARKED);
	return !small || h->marked == PRAGUE_START_MARKED ||
	       m->rtt_us > (u64)min_rtt_us + PRAGUE_START_QUEUE_US;
}

/*
 * Window after slow start that marks have ended: what the path has delivered in the latest RTT,
 * without the part of it that waited, between a half and all of @cwnd.
 */
static inline u32 prague_start_window(u32 cwnd, u32 delivered, u32 min_rtt_us, u32 rtt_us)
{
	u64 sent = fp_mul_div(delivered, fp_min(min_rtt_us, rtt_us), fp_max(rtt_us, 1));

	return fp_max(fp_max(fp_min(sent, cwnd), cwnd >> 1), PRAGUE_MIN_CWND);
}

/*
 * Which way does a queue stand? The RTT does not tell. The peer's time stamp (RFC 7323) less the
 * time at which the data was sent is the delay of the way there, except for an offset. Without a
 * queue that delay is the base. A sample says where the base is: not above its delay, and not
 * below it by more than the queue that its RTT shows. Each sample narrows this interval, drift of
 * the clocks widens it. Times are microseconds, modulo 2^32.
 */
#define PRAGUE_DRIFT_SHIFT	12		/* 244 ppm, of both clocks together */
#define PRAGUE_TICK_SPAN_US	1000000		/* over which the peer's clock is measured */
#define PRAGUE_CLOCK_SLACK_US	1000		/* between an RTT and the stamp of its ACK */
#define PRAGUE_CLOCK_FAULTS	4		/* then the clock is not what it seemed */

/**
 * struct prague_queue - how long the queue on the way there is, microseconds
 * @least:	at least
 * @most:	at most
 */
struct prague_queue {
	u32 least;
	u32 most;
};

/**
 * struct prague_oneway - delay of the way there; starts as zeros
 * @tick_us:	of the peer's clock; 0: not known yet
 * @stamp:	of the sample from which the clock is measured: the one with the shortest RTT
 * @at_us:	when that was sent; once @tick_us is known: when @low and @high were valid
 * @rtt_us:	its RTT; 0: no sample yet
 * @min_rtt_us:	shortest RTT of the path at the latest sample
 * @low:	the base is not below this
 * @high:	nor above this
 * @faults:	samples that contradict @low and @high; saturates
 */
struct prague_oneway {
	u32 tick_us;
	u32 stamp;
	u32 at_us;
	u32 rtt_us;
	u32 min_rtt_us;
	u32 low;
	u32 high;
	u32 faults;
};

/* The clock is not known: it has another tick, has stopped, or has jumped several times. */
static inline bool prague_oneway_useless(const struct prague_oneway *o)
{
	return o->faults >= PRAGUE_CLOCK_FAULTS;
}

/* a - b, of times modulo 2^32, at least 0 */
static inline u32 prague_since(u32 a, u32 b)
{
	return (s32)(a - b) > 0 ? a - b : 0;
}

/* Have @stamps of @tick_us taken about @span_us? */
static inline bool prague_ticks(u32 stamps, u32 tick_us, u32 span_us)
{
	u64 us = (u64)stamps * tick_us;

	return us > span_us - span_us / 4 && us < (u64)span_us + span_us / 4;
}

/* Tick of a clock that has advanced by @stamps in @span_us: 1 us, 1, 4 or 10 ms; 0: none of them */
static inline u32 prague_tick(u32 stamps, u32 span_us)
{
	if (prague_ticks(stamps, 1000, span_us))
		return 1000;
	if (prague_ticks(stamps, 4000, span_us))
		return 4000;
	if (prague_ticks(stamps, 10000, span_us))
		return 10000;
	return prague_ticks(stamps, 1, span_us) ? 1 : 0;
}

/*
 * The base is between @low and @high, says a sample. If that contradicts what is known by a little,
 * what is known and nearest to it holds; if by more, the sample holds, and the clock is in doubt.
 */
static inline void prague_oneway_narrow(struct prague_oneway *o, u32 low, u32 high)
{
	u32 above = prague_since(low, o->high), below = prague_since(o->low, high);

	if (fp_max(above, below) > PRAGUE_CLOCK_SLACK_US) {
		o->faults++;
		o->low = low;
		o->high = high;
	} else if (above) {
		o->low = o->high;
	} else if (below) {
		o->high = o->low;
	} else {
		if (prague_since(low, o->low))
			o->low = low;
		if (prague_since(o->high, high))
			o->high = high;
	}
}

/*
 * Measures the clock with a sample; true once its tick is known. The base is then that of the
 * sample with the shortest RTT.
 */
static inline bool prague_oneway_measure(struct prague_oneway *o, u32 stamp, u32 sent_us,
					 u32 rtt_us, u32 min_rtt_us)
{
	u32 span = sent_us - o->at_us, delay;

	if (!o->rtt_us || rtt_us + PRAGUE_CLOCK_SLACK_US / 2 < o->rtt_us) {
		o->stamp = stamp;
		o->at_us = sent_us;
		o->rtt_us = rtt_us;
		return false;
	}
	if ((s32)span < PRAGUE_TICK_SPAN_US)
		return false;
	o->tick_us = prague_tick(stamp - o->stamp, span);
	if (!o->tick_us) {
		o->faults = PRAGUE_CLOCK_FAULTS;
		return false;
	}
	delay = o->stamp * o->tick_us - o->at_us;
	o->low = delay - prague_since(o->rtt_us, min_rtt_us);
	o->high = delay + o->tick_us;
	o->min_rtt_us = min_rtt_us;
	return true;
}

/*
 * A packet was sent at @sent_us, and acknowledged after @rtt_us with @stamp; @min_rtt_us is the
 * shortest RTT of the path; both below 2^30. Returns what is known of the queue on the way there.
 */
static inline struct prague_queue prague_oneway_sample(struct prague_oneway *o, u32 stamp,
						       u32 sent_us, u32 rtt_us, u32 min_rtt_us)
{
	struct prague_queue queue = { 0, prague_since(fp_max(rtt_us, 1), min_rtt_us) };
	u32 delay, drift;

	if (!prague_oneway_useless(o) && !o->tick_us &&
	    !prague_oneway_measure(o, stamp, sent_us, fp_max(rtt_us, 1), min_rtt_us) &&
	    !prague_oneway_useless(o))
		return queue;
	if (prague_oneway_useless(o)) {
		queue.least = queue.most;
		return queue;
	}
	drift = prague_since(sent_us, o->at_us) >> PRAGUE_DRIFT_SHIFT;
	o->at_us += drift << PRAGUE_DRIFT_SHIFT;
	/* another route, or an older shortest RTT that is no longer remembered */
	o->low -= drift + prague_since(o->min_rtt_us, min_rtt_us);
	o->high += drift + prague_since(min_rtt_us, o->min_rtt_us);
	o->min_rtt_us = min_rtt_us;

	/* the clock may have been about to tick */
	delay = stamp * o->tick_us - sent_us;
	prague_oneway_narrow(o, delay - queue.most, delay + o->tick_us);
	queue.most = fp_min(queue.most, prague_since(delay + o->tick_us, o->low));
	queue.least = fp_min(queue.most, prague_since(delay, o->high));
	return queue;
}

#endif /* _LOWQ_PRAGUE_MODEL_H */
