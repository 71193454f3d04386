/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prague's arithmetic on plain values (draft-briscoe-iccrg-prague-congestion-control,
 * July 2024). No socket, no packet, no clock. The window has a whole part, which the stack sees,
 * and a fraction, which is carried from ACK to ACK and from cut to cut. @srtt is in the stack's
 * unit, 1/8 us.
 */
#ifndef _LOWQ_PRAGUE_MODEL_H
#define _LOWQ_PRAGUE_MODEL_H

#include "fixedpoint.h"

/* alpha and the fraction of the window are in Q60 (the draft's upscaled alpha: 20 bits) */
#define PRAGUE_Q		60
#define PRAGUE_ONE		FP_ONE(PRAGUE_Q)

/* Increase per round trip in packets: Q40, below 2^24, a twentieth of 400 Gb/s over 10 s */
#define PRAGUE_AI_Q		40
#define PRAGUE_AI_ONE		FP_ONE(PRAGUE_AI_Q)

#define PRAGUE_MIN_CWND		2U	/* packets; MIN_CWND (2.4.2) */

/* What rtt_virt is (2.4.4); @target is RTT_VIRT_MIN, or AdditionalRTT */
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
 * @cwnd:	whole packets of the window
 * @acked:	packets acknowledged in this EWMA period; saturates
 * @marked:	those of them that came marked; saturates
 * @rtt_us:	shortest RTT measured in this EWMA period, microseconds; 0 is none yet
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

/* An RTT of @rtt_us was measured. */
static inline void prague_rtt(struct prague_model *m, u32 rtt_us)
{
	rtt_us = fp_max(rtt_us, 1);
	if (!m->rtt_us || rtt_us < m->rtt_us)
		m->rtt_us = rtt_us;
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

#define PRAGUE_EWMA_SHIFT	4	/* g = 1/16 (2.3.2) */

/*
 * At the end of an EWMA period: alpha += g * (frac - alpha). Returns frac, Q30. A period without
 * packets leaves alpha as it is.
 */
static inline u32 prague_ewma(struct prague_model *m)
{
	u32 frac30 = fp_fraction(m->marked, m->acked, 30);
	u64 frac = (u64)frac30 << (PRAGUE_Q - 30);

	if (m->acked) {
		/* decreases by at least one unit, so that it does not get stuck above 0 */
		if (frac >= m->alpha)
			m->alpha += (frac - m->alpha) >> PRAGUE_EWMA_SHIFT;
		else
			m->alpha -= fp_max((m->alpha - frac) >> PRAGUE_EWMA_SHIFT, 1);
	}
	prague_clear_counts(m);
	return frac30;
}

/* rtt_virt, in the unit of @srtt and @target */
static inline u32 prague_rtt_virt(u32 srtt, enum prague_rtt_mode mode, u32 target)
{
	switch (mode) {
	case PRAGUE_RTT_MAX:
		return fp_max(srtt, target);
	case PRAGUE_RTT_EXTRA:
		return fp_add32(srtt, target);
	default:
		return srtt;
	}
}

/* ai_per_rtt = 1/M^2 packets, Q40, with M = rtt_virt / srtt, at least 1; 1 without an RTT */
static inline u64 prague_ai(u32 srtt, u32 rtt_virt)
{
	u64 ratio;	/* 1/M, Q32 */

	if (srtt >= rtt_virt)
		return PRAGUE_AI_ONE;
	ratio = fp_div((u64)srtt << 32, rtt_virt);
	return ratio * ratio >> (2 * 32 - PRAGUE_AI_Q);
}

/*
 * Faster than additive (3.1.2): from the PRAGUE_PATIENCE-th period in a row without a mark on, the
 * increase doubles with each period, up to a sixteenth of the window per round.
 */
#define PRAGUE_PATIENCE		10

static inline u64 prague_boost(u64 ai, u32 cwnd, u32 silent)
{
	u32 doublings;
	u64 most;

	if (silent < PRAGUE_PATIENCE)
		return ai;
	most = fp_mul_shr(PRAGUE_AI_ONE >> 4, cwnd, 0);
	doublings = fp_min(silent - PRAGUE_PATIENCE + 1, 32);
	return fp_max(ai, fp_min(fp_mul_shr(ai, FP_ONE(doublings), 0), most));
}

/* Another flow's burst is a queue that part of the latest packets has not met. */
#define PRAGUE_QUEUE_US		1000	/* above the shortest RTT: DualPI2 marks from here on */
#define PRAGUE_BURST_US		3500	/* a longer queue is not taken for a burst */
#define PRAGUE_QUEUE_IDLE	30	/* percent of the latest packets met none, */
#define PRAGUE_IDLE_US		300	/* which is: waited for no more than this */

/**
 * struct prague_queue - packets of this round, half those of the round before, and so on
 * @acked:	acknowledged; both counts are halved rather than overflow
 * @idle:	those of them that met no queue
 */
struct prague_queue {
	u16 acked;
	u16 idle;
};

static inline void prague_queue_round(struct prague_queue *q)
{
	q->acked >>= 1;
	q->idle >>= 1;
}

/* An RTT @wait_us above the shortest, perhaps a SYN's: data take @gap_ns more. 1 ms is a queue. */
static inline void prague_queue_count(struct prague_queue *q, u32 acked, u32 wait_us, u32 gap_ns)
{
	acked = fp_min(acked, U16_MAX / 2);
	if (q->acked + acked > U16_MAX)
		prague_queue_round(q);
	q->acked += acked;
	if (wait_us <= fp_min(PRAGUE_IDLE_US + gap_ns / 1000, PRAGUE_QUEUE_US))
		q->idle += acked;
}

/* ... for a packet that has waited for @wait_us */
static inline bool prague_queue_is_burst(const struct prague_queue *q, u32 wait_us)
{
	return wait_us > PRAGUE_QUEUE_US && wait_us <= PRAGUE_BURST_US &&
	       (u32)q->idle * 100 >= (u32)q->acked * PRAGUE_QUEUE_IDLE;
}

/* Adds @whole packets and @frac (Q60) to the window. */
static inline void prague_add(struct prague_model *m, u64 whole, u64 frac)
{
	frac += m->frac;
	m->cwnd = fp_min((u64)m->cwnd + whole + (frac >> PRAGUE_Q), U32_MAX);
	m->frac = frac & (PRAGUE_ONE - 1);
}

/* Adds @packets (Q40) to the window. */
static inline void prague_grow(struct prague_model *m, u64 packets)
{
	prague_add(m, packets >> PRAGUE_AI_Q,
		   (packets & (PRAGUE_AI_ONE - 1)) << (PRAGUE_Q - PRAGUE_AI_Q));
}

/* Additive increase (2.4.3) for @unmarked packets: @ai (Q40) per round, 1/cwnd of it per packet */
static inline void prague_increase(struct prague_model *m, u32 unmarked, u64 ai)
{
	u64 each, hi, lo;

	if (ai > PRAGUE_AI_ONE) {
		prague_grow(m, fp_mul_shr(fp_div(ai, m->cwnd), unmarked, 0));
		return;
	}
	/* in Q63; pacing uses the fraction of a small window: 10 bits of it count here */
	if (m->cwnd < 1024)
		each = fp_div(ai << 23, ((u64)m->cwnd << 10) | (m->frac >> (PRAGUE_Q - 10))) << 10;
	else
		each = fp_div(ai << 23, m->cwnd);
	hi = fp_mul_wide(each, unmarked, &lo);
	prague_add(m, (hi << 1) | (lo >> 63), (lo << 1) >> (64 - PRAGUE_Q));
}

/* Multiplies the window by 1 - @share (Q60, up to 1.0); at least two packets remain. */
static inline void prague_reduce(struct prague_model *m, u64 share)
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
	if (cwnd < PRAGUE_MIN_CWND) {
		cwnd = PRAGUE_MIN_CWND;
		frac = 0;
	}
	m->cwnd = cwnd;
	m->frac = frac;
}

/* Reduction for a loss: half like Reno, or 3/10 like CUBIC */
static inline u64 prague_loss_share(bool cubic)
{
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

/* W_max after a loss at @cwnd packets; with fast convergence (1 + beta) / 2 of it (RFC 9438 4.7) */
static inline u32 prague_cubic_max(u32 cwnd, bool fast)
{
	return fast ? (u64)cwnd * 17 / 20 : cwnd;
}

/*
 * CUBIC's window (RFC 9438 4.2, 4.3) @t_ms after a loss at a window of @lost_at packets: the larger
 * of C (t - K)^3 + W_max and Reno's estimated window, in whole packets. C = 0.4, beta = 0.7,
 * K = cbrt((W_max - beta lost_at) / C) seconds.
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

/* Increase (Q40) per round, which reaches @target in one round; at most half of the window */
static inline u64 prague_cubic_ai(u32 cwnd, u32 target)
{
	u64 most = fp_max(cwnd >> 1, 1), gap = fp_sub(target, cwnd);

	return fp_mul_shr(PRAGUE_AI_ONE, fp_min(gap, most), 0);
}

/* Increase (Q40) per round after a slow start that no mark or loss has ended: as Linux's CUBIC */
static inline u64 prague_probe_ai(u32 cwnd)
{
	return fp_max(fp_mul_shr(PRAGUE_AI_ONE / 20, cwnd, 0), PRAGUE_AI_ONE);
}

/*
 * HyStart++ (RFC 9406 4.3). Conservative slow start grows by an eighth, not a quarter, per round:
 * in five rounds by 1.8. With a quarter it would be 3, and a queue of four BDPs would overflow.
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
 * @no_gap:	the time per packet at the bottleneck cannot be measured, or was wrong
 */
struct prague_hystart {
	u16 round_min;
	u16 last_min;
	u16 css_base;
	u8 samples:4;
	u8 marked:4;
	u8 css:4;
	u8 no_gap:1;
};

/* An RTT of @rtt_us was measured in slow start: does the shortest of this round show a queue? */
static inline void prague_hystart_rtt(struct prague_hystart *h, u32 rtt_us)
{
	u32 rtt = fp_min(fp_max(rtt_us >> PRAGUE_HYSTART_SHIFT, 1), U16_MAX), last_us, limit;

	if (!h->round_min || rtt < h->round_min)
		h->round_min = rtt;
	if (h->css && !h->css_base)
		return;		/* it began because the window should fill the path */
	if (h->samples < PRAGUE_HYSTART_SAMPLES)
		h->samples++;
	if (h->samples < PRAGUE_HYSTART_SAMPLES || !h->last_min)
		return;
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

/* A round has ended; true if slow start ends with it. At a full path marks end it. */
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
 * Growth (Q40) of conservative slow start for @packets. At a full path (no @css_base) it is half as
 * fast: marks of a longer queue end slow start after up to three rounds.
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
#define PRAGUE_GAP_PACKETS	3

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
 * Before a gap is known a flight leaves as fast, so that the bottleneck spreads it.
 */
static inline u64 prague_start_rate(u64 rate, u32 mss, u32 gap_ns, bool early)
{
	u64 path;

	rate = fp_min(rate, U64_MAX >> 3);
	if (!gap_ns)
		return early ? rate << 3 : rate << 1;
	path = fp_div((u64)mss * 1000000000, gap_ns);
	if (rate << 1 > path)
		return fp_max(rate, path);
	return early ? fp_max(rate << 1, fp_min(path * 5 / 8, rate << 3)) : rate << 1;
}

#define PRAGUE_SMALL	5	/* a window is small below a fifth of what fills the path */
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

#endif /* _LOWQ_PRAGUE_MODEL_H */
