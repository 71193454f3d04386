/* SPDX-License-Identifier: GPL-2.0 */
/*
 * HPCC++'s algorithm as arithmetic on plain values (draft-miao-rtgwg-hpccplus-00, 4.2
 * and 6.3.2). No socket, no packet, no clock.
 *
 *	per link:	txRate = d(txBytes) / d(ts)
 *			u' = min(qlen) / (B * T) + txRate / B
 *	busiest link:	U = (1 - tau / T) * U + tau / T * max(u'), tau = min(d(ts), T)
 *	window:		U >= eta or stages used up:  W = Wc / (U / eta) + W_ai
 *			else			     W = Wc + W_ai
 */
#ifndef _LOWQ_HPCCPP_MODEL_H
#define _LOWQ_HPCCPP_MODEL_H

#include "int_wire.h"

/* U, u' and eta: Q20, up to almost 4096 */
#define HPCCPP_U_Q		20
#define HPCCPP_U_ONE		((u32)FP_ONE(HPCCPP_U_Q))
/* windows: bytes in Q8, up to 2^31 bytes: TCP's largest is 2^30 */
#define HPCCPP_W_Q		8
#define HPCCPP_W_MAX		(FP_ONE(31) << HPCCPP_W_Q)

#define HPCCPP_T_MIN_NS		1000U		/* 1 us */
#define HPCCPP_T_MAX_NS		1000000000U	/* 1 s */
#define HPCCPP_MBPS_MAX		1600000U	/* the fastest port of int_wire.h */

/* N of the largest W_ai, where N is not given */
#define HPCCPP_FEW_FLOWS	10U
#define HPCCPP_MEAN_SHIFT	6	/* of U: 64 samples */
#define HPCCPP_NEWCOMER		32U	/* samples for which a flow is a newcomer */
#define HPCCPP_CROWD		(2 * HPCCPP_U_ONE)	/* a crowd's queue, by B * T */
#define HPCCPP_W_MIN_SHIFT	5	/* the smallest window is a 32nd of a packet */

/* By so much a node's time may be ahead of the host's between two samples: a probe that waits */
#define HPCCPP_TS_AHEAD_NS	((u64)1 << 28)

/* What a device may hold that is counted as sent: bytes, or what the rate sends in that time */
#define HPCCPP_RING_BYTES	2000000U
#define HPCCPP_RING_NS		3000000U

/**
 * struct hpccpp_model - one flow's view of its path
 * @wc:		reference window Wc, bytes in Q8
 * @reference:	Wc from which the latest update computed W, bytes in Q8
 * @w:		window W, bytes in Q8
 * @u:		U, normalised inflight bytes of the busiest link, Q20
 * @mean_u:	mean of U over about 64 samples, Q20; 0: no sample yet
 * @stage:	incStage
 * @newcomer:	samples for which the flow is still a newcomer
 * @crowded:	it has met a queue of HPCCPP_CROWD meanwhile: many began together, an incast
 * @nhop:	number of records in @hop; 0: none yet
 * @path_id:	pathID of the records
 * @busiest:	index of the link that the latest measurement chose
 * @hop:	L, the records of the previous sample
 */
struct hpccpp_model {
	u64 wc;
	u64 reference;
	u64 w;
	u32 u;
	u32 mean_u;
	u8 stage;
	u8 newcomer;
	bool crowded;
	u8 nhop;
	u8 busiest;
	u32 path_id;
	struct int_hop hop[INT_HOPS_MAX];
};

/**
 * struct hpccpp_settings - the operator's parameters, and what the end host knows
 * @t_ns:	T, base RTT, HPCCPP_T_MIN_NS to HPCCPP_T_MAX_NS
 * @fill_ns:	time that the largest window has to fill: T, or longer where T is rounded
 * @eta_permille: target utilisation in 1/1000, 100 to 1000
 * @max_stage:	maxStage, 0 to 255
 * @w_ai_bytes:	W_ai in bytes; 0: derived from @flows
 * @flows:	N of section 5; 0: W_ai follows the mean of U
 * @mss:	bytes, at least 1
 * @w_limit:	limit on W that is none of the path's, bytes in Q8: snd_cwnd_clamp
 * @carried:	hpccpp_carried() between this sample and the one before, bytes in Q8; 0: unknown
 * @line_mbps:	the host's own link, Mb/s; 0: unknown. Where nodes hide their rates (9.1)
 *		it is the only rate that is known
 * @wc_previous: Wc is the previous W, as in the draft
 * @queue_per_rtt: the queue always counts against B * T, as in the draft
 */
struct hpccpp_settings {
	u32 t_ns;
	u32 fill_ns;
	u32 eta_permille;
	u32 max_stage;
	u32 w_ai_bytes;
	u32 flows;
	u32 mss;
	u64 w_limit;
	u64 carried;
	u32 line_mbps;
	bool wc_previous;
	bool queue_per_rtt;
};

/**
 * struct hpccpp_config - the algorithm's constants on a given path
 * @t_ns:	T, base RTT, HPCCPP_T_MIN_NS to HPCCPP_T_MAX_NS
 * @eta:	target utilisation, Q20, above 0
 * @max_stage:	maxStage
 * @bdp:	B * T of the slowest link, bytes in Q8
 * @w_ai:	W_ai, bytes in Q8
 * @w_min:	smallest window, bytes in Q8
 * @w_max:	largest window, bytes in Q8, at most HPCCPP_W_MAX
 */
struct hpccpp_config {
	u32 t_ns;
	u32 eta;
	u32 max_stage;
	u64 bdp;
	u64 w_ai;
	u64 w_min;
	u64 w_max;
};

/**
 * struct hpccpp_sample - one response (or probe) and how its bytes were sent
 * @msg:	the telemetry
 * @elapsed_ns:	time since the previous sample
 * @sent_w:	window under which the bytes between the two samples were sent, bytes in Q8
 * @settings:	see there
 */
struct hpccpp_sample {
	const struct int_msg *msg;
	u64 elapsed_ns;
	u64 sent_w;
	struct hpccpp_settings settings;
};

/* What a sample was good for. */
enum hpccpp_result {
	HPCCPP_MEASURED,	/* U was updated */
	HPCCPP_BASELINE,	/* the first sample of a path: its records are kept */
	HPCCPP_STALE,		/* a counter wrapped, restarted, or is odd: the records are kept */
	HPCCPP_PARTIAL,		/* no records, or not of all nodes: ignored */
};

/* @w: initial window, bytes in Q8 */
static inline void hpccpp_model_init(struct hpccpp_model *m, u64 w)
{
	memset(m, 0, sizeof(*m));
	m->u = HPCCPP_U_ONE;
	m->newcomer = HPCCPP_NEWCOMER;
	m->w = fp_min(w, HPCCPP_W_MAX);
	m->wc = m->w;
}

/* B * T, bytes in Q8; 1.6e6 Mb/s * 1e9 ns << 8 < 2^59. */
static inline u64 hpccpp_bdp(u32 mbps, u32 t_ns)
{
	return fp_mul_div((u64)mbps << HPCCPP_W_Q, t_ns, 8000);
}

/* W_ai = W_init * (1 - eta) / N, bytes in Q8 (section 5); n >= 1 */
static inline u64 hpccpp_w_ai(u64 w_init, u32 eta, u32 n)
{
	return fp_mul_div(w_init, fp_sub(HPCCPP_U_ONE, eta), (u64)n << HPCCPP_U_Q);
}

/*
 * W_ai where N is not given. Windows come to rest where what all flows add is what the
 * multiplicative decrease takes: U - eta shows that sum, and all flows of a link see the
 * same U. So W_ai is that of a few flows, and an eighth of it for each (1 - eta) that the
 * mean of U is above eta: 2 flows rest at U = 0.96, 100 at 0.99 (eta = 0.95). Where W is below a
 * packet there are more flows than packets: then it falls to a 32nd, in proportion to what W lacks
 * of a packet, and 1000 flows rest at 1.01, not at 1.04. Steeper for all, it would multiply
 * differences between the U that flows measure behind their own bursts.
 * A flow's own share alone would not do: W_ai in proportion to W evens nothing out.
 * Between powers of two linear. @w and @mss: bytes in Q8.
 */
static inline u64 hpccpp_w_ai_by_load(u64 w_init, u32 eta, u32 mean_u, u64 w, u64 mss)
{
	u64 w_ai = hpccpp_w_ai(w_init, eta, HPCCPP_FEW_FLOWS);
	u64 lacks = fp_sub(HPCCPP_U_ONE, fp_mul_div(w, HPCCPP_U_ONE, mss));
	u64 halvings = fp_mul_div(fp_sub(mean_u, eta), 3 * (u64)HPCCPP_U_ONE + 2 * lacks,
				  fp_sub(HPCCPP_U_ONE, eta));

	if (halvings >> HPCCPP_U_Q >= 32)
		return 0;
	w_ai >>= halvings >> HPCCPP_U_Q;
	return w_ai - fp_mul_shr(w_ai, halvings & (HPCCPP_U_ONE - 1), HPCCPP_U_Q + 1);
}

/* The load from which on U says little about the number of flows, as in an incast. */
static inline u32 hpccpp_overload(u32 eta)
{
	return eta + 4 * fp_sub(HPCCPP_U_ONE, eta);
}

/*
 * A sample of U joins the mean, which starts at eta. One that is further from eta than
 * hpccpp_overload() counts as that far away.
 */
static inline void hpccpp_mean_update(struct hpccpp_model *m, u32 eta)
{
	u32 most = hpccpp_overload(eta), mean = m->mean_u ? m->mean_u : eta;
	u64 u = fp_max(fp_min(m->u, most), fp_sub(eta, most - eta));

	m->mean_u = mean - (mean >> HPCCPP_MEAN_SHIFT) + (u >> HPCCPP_MEAN_SHIFT);
}

/* Time after which a counter of the port begins again, ns; 0: its rate is unknown. */
static inline u64 hpccpp_wrap_ns(const struct int_hop *h)
{
	if (!h->mbps)
		return 0;
	if (!h->tx_bits)
		return (u64)1 << h->ts_bits;
	return fp_min(fp_mul_div((u64)1 << h->tx_bits, 8000, h->mbps), (u64)1 << h->ts_bits);
}

/* qlen / (B * T) of a port, Q20: a queue is below 2^32 bytes. @mbps, @t_ns: above 0 */
static inline u64 hpccpp_queue_load(u64 qlen, u32 mbps, u32 t_ns)
{
	return fp_mul_div(qlen * 8000, HPCCPP_U_ONE, (u64)mbps * t_ns);
}

/*
 * Can a port of this speed have sent @bytes within @dt_ns? If not, its counter has restarted: a
 * rebooted switch, a replaced qdisc. @bytes: below 2^50
 */
static inline bool hpccpp_can_send(u64 bytes, u64 dt_ns, u32 mbps)
{
	return fp_div(bytes * 8000, mbps) <=
	       dt_ns + fp_max(HPCCPP_RING_NS, fp_div((u64)HPCCPP_RING_BYTES * 8000, mbps));
}

/*
 * Lines 4 and 5 for one link: u' in Q20, saturated; *@dt_ns is d(ts). @t_ns is T, or longer:
 * the time that the next window has to drain the queue. @elapsed_ns is the
 * time between the two samples by the clock of the host that compares them: it shows
 * whether a counter may have wrapped. Returns false if the records cannot be compared.
 */
static inline bool hpccpp_link_load(const struct int_hop *old, const struct int_hop *new,
				    u32 t_ns, u64 elapsed_ns, u32 *u, u32 *dt_ns)
{
	u64 dt = (new->ts - old->ts) & (((u64)1 << new->ts_bits) - 1);
	u64 bytes = (new->tx - old->tx) & (((u64)1 << new->tx_bits) - 1), load;
	u64 q = old->qlen < new->qlen ? old->qlen : new->qlen;
	u32 mbps = new->mbps;

	/* another speed may have another unit, and its counter wraps elsewhere */
	if (!mbps || new->tx_bits != old->tx_bits || new->ts_bits != old->ts_bits || !dt || !t_ns)
		return false;
	/* a quarter of a wrap is the margin for queueing between the two probes */
	if (elapsed_ns > hpccpp_wrap_ns(new) / 4 * 3 || dt > elapsed_ns + HPCCPP_TS_AHEAD_NS ||
	    !hpccpp_can_send(bytes, dt, mbps))
		return false;
	/* tx bits / (ns * Mb/s / 1000) */
	load = new->tx_bits ? fp_mul_div(bytes * 8000, HPCCPP_U_ONE, dt * mbps) : new->util;
	load = fp_add(load, hpccpp_queue_load(q, mbps, t_ns));
	*u = fp_min(load, U32_MAX);
	*dt_ns = fp_min(dt, U32_MAX);
	return true;
}

/* The rate of the slowest link on the path, Mb/s; 0: no records. */
static inline u32 hpccpp_slowest(const struct hpccpp_model *m)
{
	u32 least = 0;
	unsigned int i;

	for (i = 0; i < m->nhop; i++)
		if (!least || m->hop[i].mbps < least)
			least = m->hop[i].mbps;
	return least;
}

/*
 * The longest time between two probes whose records are sure to be comparable: half a wrap
 * of the counter that wraps first. 0 if there are no records yet.
 */
static inline u64 hpccpp_comparable_ns(const struct hpccpp_model *m)
{
	u64 least = 0;
	unsigned int i;

	for (i = 0; i < m->nhop; i++) {
		u64 wrap = hpccpp_wrap_ns(&m->hop[i]);

		if (!least || wrap < least)
			least = wrap;
	}
	return least / 2;
}

/* W after a loss or a mark: half, but not below 2 packets, and never above @w itself. */
static inline u64 hpccpp_reduced(u64 w, u64 mss_q8)
{
	return fp_min(fp_max(w / 2, 2 * mss_q8), w);
}

/*
 * A rate that the format lacks is stamped as the next lower one, @mbps, with the port's load. A
 * flow that carried nearly @bdp, B * T of that rate, and more than this load of it, by more than a
 * few packets, shows such a port: its B * T, less than the next higher rate's. Else 0.
 */
static inline u64 hpccpp_shown_bdp(const struct hpccpp_model *m, u32 mbps, u64 bdp, u64 mss,
				   const struct hpccpp_settings *s)
{
	u64 load = fp_mul_div(bdp, m->u, HPCCPP_U_ONE);
	u32 most;

	if (s->carried < bdp - bdp / 8 || s->carried <= load + load / 16 + 4 * mss)
		return 0;
	most = int_next_mbps(mbps);
	if (s->line_mbps && s->line_mbps < most)
		most = s->line_mbps;
	return fp_min(fp_mul_div(s->carried, HPCCPP_U_ONE, m->u), hpccpp_bdp(most, s->t_ns));
}

/* The constants for the path of @m's records and the settings @s. */
static inline void hpccpp_config_set(struct hpccpp_config *c, const struct hpccpp_model *m,
				     const struct hpccpp_settings *s)
{
	u32 shown = hpccpp_slowest(m), mbps = shown;
	u64 mss = (u64)s->mss << HPCCPP_W_Q;
	u64 full;

	if (s->line_mbps && s->line_mbps < mbps)
		mbps = s->line_mbps;
	/* W_ai is a part of B * T: the measured RTT may include a queue, and W_ai grow with it */
	c->t_ns = s->t_ns;
	c->eta = fp_fraction(s->eta_permille, 1000, HPCCPP_U_Q);
	c->max_stage = s->max_stage;
	c->w_ai = (u64)s->w_ai_bytes << HPCCPP_W_Q;
	c->bdp = hpccpp_bdp(mbps, s->t_ns);
	if (!s->w_ai_bytes)
		c->w_ai = s->flows ? hpccpp_w_ai(c->bdp, c->eta, s->flows) :
				     hpccpp_w_ai_by_load(c->bdp, c->eta, m->mean_u, m->w, mss);
	c->w_min = mss >> HPCCPP_W_MIN_SHIFT;
	/* A delayed ACK may cover two packets: W has to let them wait. */
	full = fp_max(hpccpp_bdp(mbps, s->fill_ns), hpccpp_shown_bdp(m, shown, c->bdp, mss, s));
	c->w_max = fp_min(mbps ? full + mss * 2 : HPCCPP_W_MAX, fp_min(s->w_limit, HPCCPP_W_MAX));
}

/*
 * The additive increase for a sample that covers @elapsed_ns: one W_ai per RTT, at most 64.
 * Without this, flows that sample less often (rare probes, windows below a packet) would
 * fall behind. Above one W_ai the sum is limited to (1 - eta) * @w, with which U comes to rest
 * below 1. Without the limit, far more flows than W_ai was sized for would grow the queue faster
 * than the multiplicative decrease drains it.
 */
static inline u64 hpccpp_increase(const struct hpccpp_config *c, u64 w, u64 elapsed_ns)
{
	u64 rounds = fp_max(fp_min(fp_div(elapsed_ns, c->t_ns), 64), 1);
	u64 most = fp_mul_div(w, fp_sub(HPCCPP_U_ONE, c->eta), HPCCPP_U_ONE);

	return fp_max(fp_min(fp_mul_div(c->w_ai, rounds, 1), most), c->w_ai);
}

/*
 * W_ai of a newcomer: that of N = 1, but at most half of W, unless the link is overloaded. It
 * begins with a few packets where others have whole shares, and its burst may be over before
 * @w_ai has brought it a share. When all flows of a link are newcomers, the overload ends this.
 */
static inline u64 hpccpp_newcomer_w_ai(const struct hpccpp_model *m,
				       const struct hpccpp_config *c)
{
	u64 most = fp_min(hpccpp_w_ai(c->bdp, c->eta, 1), m->w / 2);

	return m->u < hpccpp_overload(c->eta) ? fp_max(c->w_ai, most) : c->w_ai;
}

/*
 * The target load: eta, and for a crowd of newcomers up to 2 more, less with each sample. Their
 * windows are below a packet. If a cut left no queue, the link would be idle until their next
 * packets are due, and the last flows of an incast would end later.
 */
static inline u32 hpccpp_target(const struct hpccpp_model *m, u32 eta)
{
	return m->crowded ? eta + HPCCPP_CROWD / HPCCPP_NEWCOMER * m->newcomer : eta;
}

/*
 * Time between probes: T; while U is within 1/4 of eta, or in a crowd, the time in which W sends
 * @least bytes (Q8), if that is longer, up to 8 T. Where windows are a few packets, one packet more
 * or less per RTT changes a link's load a lot: many flows that react to it every RTT
 * oscillate, and their probes are too large a part of the traffic.
 */
static inline u64 hpccpp_probe_ns(const struct hpccpp_model *m, u32 eta, u32 t_ns, u64 least)
{
	u32 off = m->u > eta ? m->u - eta : eta - m->u;

	if (off > HPCCPP_U_ONE / 4 && !m->crowded)
		return t_ns;
	return fp_max(fp_min(fp_mul_div(t_ns, least, m->w), (u64)t_ns * 8), t_ns);
}

/* Drops the records: the next sample is the first of its path. */
static inline void hpccpp_model_forget(struct hpccpp_model *m)
{
	m->nhop = 0;
}

/*
 * The time that a queue counts against: T, or with a window below a packet the time from one
 * packet to the next, at most 16 T. Such a window acts only then; if each of many drained the
 * queue within T, the link would be idle for the rest.
 */
static inline u32 hpccpp_drain_ns(u64 w, u32 mss, u32 t_ns)
{
	u64 packet_ns = fp_mul_div(t_ns, (u64)mss << HPCCPP_W_Q, w);

	return fp_max(fp_min(fp_min(packet_ns, 16 * (u64)t_ns), U32_MAX), t_ns);
}

/*
 * MeasureInflight (lines 1 to 10): keeps the records of @msg, and updates U if they can be
 * compared with the previous ones. A path without the records of all its nodes is not
 * used: the node that found no room may be the congested one. @drain_ns: see
 * hpccpp_drain_ns().
 */
static inline enum hpccpp_result hpccpp_measure(struct hpccpp_model *m,
						const struct int_msg *msg, u32 t_ns,
						u32 drain_ns, u64 elapsed_ns)
{
	enum hpccpp_result result = HPCCPP_MEASURED;
	u32 u = 0, tau = 0, load, dt;
	unsigned int i;

	if (!msg->nhop || msg->nhop > msg->room || msg->nhop > INT_HOPS_MAX)
		return HPCCPP_PARTIAL;
	for (i = 0; i < msg->nhop; i++)
		if (!msg->hop[i].mbps)
			return HPCCPP_PARTIAL;

	if (m->nhop != msg->nhop || m->path_id != msg->path_id)
		result = HPCCPP_BASELINE;
	for (i = 0; i < msg->nhop && result == HPCCPP_MEASURED; i++) {
		if (!hpccpp_link_load(&m->hop[i], &msg->hop[i], drain_ns, elapsed_ns, &load,
				      &dt)) {
			result = HPCCPP_STALE;
		} else if (load > u || !i) {
			u = load;
			tau = dt;
			m->busiest = i;
		}
	}
	if (result == HPCCPP_MEASURED) {
		tau = fp_min(tau, t_ns);
		/* both products are below 2^32 * 2^30, and so is their weighted mean */
		m->u = fp_div((u64)m->u * (t_ns - tau) + (u64)u * tau, t_ns);
	}
	m->nhop = msg->nhop;
	m->path_id = msg->path_id;
	for (i = 0; i < msg->nhop; i++)
		m->hop[i] = msg->hop[i];
	return result;
}

/*
 * The reference window Wc: W clamped to the range that this sample supports. The sample
 * was produced by window @sent and measured load U, so any window between @sent and
 * @sent / (U / eta) is plausible. Where W is to be scaled by U, Wc is @sent.
 */
static inline u64 hpccpp_reference(const struct hpccpp_model *m, const struct hpccpp_config *c,
				   u64 sent)
{
	if (m->u >= c->eta || m->stage >= c->max_stage)
		return sent;
	return fp_max(sent, fp_min(m->w, fp_mul_div(sent, c->eta, m->u)));
}

/*
 * ComputeWind (lines 11 to 20), always with updateWc (line 23): samples come once per T, so that
 * line 26 never applies. Returns W.
 */
static inline u64 hpccpp_compute_wind(struct hpccpp_model *m, const struct hpccpp_config *c)
{
	u64 w;

	if (m->u >= c->eta || m->stage >= c->max_stage) {
		/* 2^39 * 2^32 may not fit 64 bits; U = 0 is an idle path: the maximum */
		w = fp_add(fp_mul_div(m->wc, c->eta, m->u), c->w_ai);
		m->stage = 0;
	} else {
		w = fp_add(m->wc, c->w_ai);
		m->stage++;
	}
	w = fp_max(fp_min(w, c->w_max), c->w_min);
	m->wc = w;
	m->w = w;
	return w;
}

/* --- bottlenecks that do not stamp ------------------------------------------------ */

#define HPCCPP_DOUBT_STEP	8
#define HPCCPP_DOUBT_MAX	16
/*
 * Packets without a loss or mark that count as one sample without. 256 of them make up for one
 * with: where a sample is a few packets, a policer's bursts would else make its losses forgotten.
 */
#define HPCCPP_DOUBT_PACKETS	32U

/*
 * The largest load that the records of @msg and of the previous sample allow, Q20: as u', but
 * with the longer of each node's two queues, because a packet that was dropped between the two
 * samples met that one. U32_MAX if the records cannot be compared.
 */
static inline u32 hpccpp_most_load(const struct hpccpp_model *m, const struct int_msg *msg,
				   u32 t_ns, u64 elapsed_ns)
{
	u32 most = 0, load, dt;
	unsigned int i;

	if (!msg->nhop || m->nhop != msg->nhop || m->path_id != msg->path_id ||
	    msg->nhop > msg->room || msg->nhop > INT_HOPS_MAX)
		return U32_MAX;
	for (i = 0; i < msg->nhop; i++) {
		struct int_hop old = m->hop[i], new = msg->hop[i];

		old.qlen = fp_max(old.qlen, new.qlen);
		new.qlen = old.qlen;
		if (!hpccpp_link_load(&old, &new, t_ns, elapsed_ns, &load, &dt))
			return U32_MAX;
		most = fp_max(most, load);
	}
	return most;
}

/* So many were lost or marked that it counts: one in 128, or any of fewer. */
static inline bool hpccpp_suffered(u32 delivered, u32 lost, u32 marked)
{
	u64 bad = (u64)lost + marked;

	return bad && bad * 128 >= (u64)delivered + lost;
}

/*
 * How much speaks for a bottleneck that does not stamp, after one more sample: -HPCCPP_DOUBT_MAX
 * to HPCCPP_DOUBT_MAX, where the telemetry is not to be trusted. @suffered: hpccpp_suffered() of
 * the packets that the sample covers; @most: hpccpp_most_load(). Losses and marks below eta are no
 * node's: two such samples in a row suffice, or three among ten. A node with a queue of T / 8 or
 * more explains them, and also those that are detected late. Between the two nothing is known.
 */
static inline s32 hpccpp_doubt(s32 doubt, bool suffered, u32 most, u32 eta)
{
	if (!suffered)
		return doubt > 0 ? doubt - 1 : doubt < 0 ? doubt + 1 : 0;
	if (most < eta)
		return doubt < HPCCPP_DOUBT_MAX - HPCCPP_DOUBT_STEP ? doubt + HPCCPP_DOUBT_STEP :
								      HPCCPP_DOUBT_MAX;
	if (most != U32_MAX && most >= HPCCPP_U_ONE + HPCCPP_U_ONE / 8)
		return -HPCCPP_DOUBT_MAX;
	return doubt;
}

/*
 * The window that the path can carry without a queue, bytes in Q8: what arrived, @delivered bytes
 * in Q8 within @elapsed_ns, as a rate, times T.
 */
static inline u64 hpccpp_carried(u64 delivered, u64 elapsed_ns, u32 t_ns)
{
	return fp_min(fp_mul_div(delivered, t_ns, elapsed_ns), HPCCPP_W_MAX);
}

/* --- the base RTT, where T is not given ---------------------------------------- */

#define HPCCPP_RTT_UNKNOWN	U32_MAX
#define HPCCPP_RTT_PERIOD	32U	/* samples */

/**
 * struct hpccpp_rtt - the path's RTT without queues, as ACKs and telemetry show it
 * @base_us:	T in microseconds; HPCCPP_RTT_UNKNOWN before the first measurement
 * @min_us:	the smallest RTT, with what waited in queues then
 * @latest_us:	the latest RTT
 * @period_us:	the smallest RTT of the present period
 * @queued_us:	the longest wait in the path's queues in the present period
 * @samples:	telemetry samples in the present period
 * @probes:	probes in @unqueued_us, at most 2 * HPCCPP_RTT_PERIOD
 * @unqueued_us: sum of what they took without queues
 */
struct hpccpp_rtt {
	u32 base_us;
	u32 min_us;
	u32 latest_us;
	u32 period_us;
	u32 queued_us;
	u32 samples;
	u32 probes;
	u64 unqueued_us;
};

static inline void hpccpp_rtt_init(struct hpccpp_rtt *r, u32 us)
{
	memset(r, 0, sizeof(*r));
	r->base_us = us;
	r->min_us = us;
	r->latest_us = us;
	r->period_us = HPCCPP_RTT_UNKNOWN;
}

/* An RTT of @us was measured. */
static inline void hpccpp_rtt_sample(struct hpccpp_rtt *r, u32 us)
{
	r->latest_us = us;
	r->base_us = fp_min(r->base_us, us);
	r->min_us = fp_min(r->min_us, us);
	r->period_us = fp_min(r->period_us, us);
}

/*
 * A probe took @us, of which @queued_us in queues. Without this a flow that begins while there is
 * a queue takes that for a part of T, and so for none. The probe may have found another queue than
 * the records show, if others send in bursts. So T is the mean of 32 to 64 probes: their minimum
 * may be a fraction of the path's RTT, and then many flows at the smallest window keep a queue. A
 * probe counts with an eighth of @us at least, and with all of it if the queue is less than half.
 */
static inline void hpccpp_rtt_unqueued(struct hpccpp_rtt *r, u64 us, u64 queued_us)
{
	if (us <= queued_us)
		return;
	if (r->probes == 2 * HPCCPP_RTT_PERIOD) {
		r->probes /= 2;
		r->unqueued_us /= 2;
	}
	r->probes++;
	r->unqueued_us += queued_us < us / 2 ? us : fp_max(us - queued_us, us / 8);
	r->base_us = fp_min(r->min_us, fp_div(r->unqueued_us, r->probes));
}

/*
 * How long the queues were at both of two samples, @m's and @msg, microseconds; 0 if they are
 * not of the same path.
 */
static inline u32 hpccpp_standing_us(const struct hpccpp_model *m, const struct int_msg *msg)
{
	u64 us = 0;
	unsigned int i;

	if (m->nhop != msg->nhop || m->path_id != msg->path_id)
		return 0;
	for (i = 0; i < m->nhop; i++)
		us += fp_mul_div(fp_min(m->hop[i].qlen, msg->hop[i].qlen), 8, msg->hop[i].mbps);
	return fp_min(us, U32_MAX);
}

/* How long a packet waits in the queues of the latest sample, microseconds, rounded up. */
static inline u32 hpccpp_queued_us(const struct hpccpp_model *m)
{
	u64 us = 0;
	unsigned int i;

	for (i = 0; i < m->nhop; i++)
		us += fp_mul_div(m->hop[i].qlen, 8, m->hop[i].mbps) + 1;
	return fp_min(us, U32_MAX);
}

/*
 * A probe took @rtt_ns, on a path that takes @fill_ns without queues and has records of queues of
 * @queued_us. Has it waited where no node stamps?
 */
static inline bool hpccpp_waits_unstamped(u64 rtt_ns, u64 fill_ns, u64 queued_us)
{
	return rtt_ns > fill_ns + fill_ns / 8 + queued_us * 1000;
}

/*
 * A telemetry sample was taken. If no RTT of a whole period came near T, and the queues on
 * the path do not explain that, the path is longer now: T is the smallest RTT of the
 * period, less the queues.
 */
static inline void hpccpp_rtt_follow(struct hpccpp_rtt *r, u32 queued_us)
{
	r->queued_us = fp_max(r->queued_us, queued_us);
	if (++r->samples < HPCCPP_RTT_PERIOD)
		return;
	if (r->period_us != HPCCPP_RTT_UNKNOWN &&
	    r->period_us > (u64)r->base_us + r->base_us / 4 + r->queued_us) {
		r->base_us = r->period_us - r->queued_us;
		r->min_us = fp_max(r->min_us, r->base_us);
		r->probes = 0;
		r->unqueued_us = 0;
	}
	r->period_us = HPCCPP_RTT_UNKNOWN;
	r->queued_us = 0;
	r->samples = 0;
}

/*
 * The U that a flow's first sample shows: there is no txRate yet, but a port with a queue sends at
 * rate B. 0: none of the queues takes T / 8 or longer.
 */
static inline u32 hpccpp_first_load(struct hpccpp_model *m, u32 t_ns)
{
	u64 load = 0;
	unsigned int i;

	for (i = 0; i < m->nhop; i++) {
		u64 u = hpccpp_queue_load(m->hop[i].qlen, m->hop[i].mbps, t_ns);

		if (u > load) {
			load = u;
			m->busiest = i;
		}
	}
	return load < HPCCPP_U_ONE / 8 ? 0 : fp_min(load + HPCCPP_U_ONE, U32_MAX);
}

/*
 * Procedure NewAck (lines 21 to 27), or NewINT at the receiver (lines 28 to 34): one sample
 * updates U, and then W. Every sample updates Wc, because there is one per T.
 */
static inline enum hpccpp_result hpccpp_step(struct hpccpp_model *m,
					     const struct hpccpp_sample *s)
{
	const struct hpccpp_settings *set = &s->settings;
	u32 drain_ns = set->queue_per_rtt ? set->t_ns :
					    hpccpp_drain_ns(m->w, set->mss, set->t_ns);
	bool begins = !m->nhop && m->newcomer == HPCCPP_NEWCOMER;
	enum hpccpp_result result = hpccpp_measure(m, s->msg, set->t_ns, drain_ns, s->elapsed_ns);
	u32 first = begins && result == HPCCPP_BASELINE ? hpccpp_first_load(m, set->t_ns) : 0;
	struct hpccpp_config c;

	if (first) {
		m->u = first;
		m->crowded = first >= HPCCPP_U_ONE + HPCCPP_CROWD;
		hpccpp_config_set(&c, m, set);
		c.eta = hpccpp_target(m, c.eta);
		c.w_ai = 0;
		m->reference = m->w;
		m->wc = m->w;
		hpccpp_compute_wind(m, &c);
		return HPCCPP_BASELINE;
	}
	if (result != HPCCPP_MEASURED)
		return result;
	hpccpp_mean_update(m, fp_fraction(set->eta_permille, 1000, HPCCPP_U_Q));
	hpccpp_config_set(&c, m, set);
	c.w_ai = hpccpp_increase(&c, m->w, s->elapsed_ns);
	m->crowded = m->newcomer && (m->crowded || m->u >= HPCCPP_U_ONE + HPCCPP_CROWD);
	c.eta = hpccpp_target(m, c.eta);
	if (m->newcomer) {
		m->newcomer--;
		if (!m->crowded && !set->w_ai_bytes && !set->flows)
			c.w_ai = hpccpp_newcomer_w_ai(m, &c);
	}
	m->reference = set->wc_previous ? m->w : hpccpp_reference(m, &c, s->sent_w);
	m->wc = m->reference;
	hpccpp_compute_wind(m, &c);
	return result;
}

/* R = W / T, bytes per second (line 27); 2^39 * 1e9 may not fit, but fp_mul_div() does */
static inline u64 hpccpp_rate(u64 w, u32 t_ns)
{
	return fp_mul_div(w, 1000000000, (u64)t_ns << HPCCPP_W_Q);
}

#endif /* _LOWQ_HPCCPP_MODEL_H */
