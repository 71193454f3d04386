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

#define HPCCPP_TS_WRAP_NS	((u64)INT_TS_NS << INT_TS_BITS)

/**
 * struct hpccpp_model - one flow's view of its path
 * @wc:		reference window Wc, bytes in Q8
 * @w:		window W, bytes in Q8
 * @u:		U, normalised inflight bytes of the busiest link, Q20
 * @stage:	incStage
 * @nhop:	records in @hop; 0 is none yet
 * @path_id:	of the records
 * @busiest:	index of the link that the last measurement chose
 * @hop:	L, the records of the sample before
 */
struct hpccpp_model {
	u64 wc;
	u64 w;
	u32 u;
	u8 stage;
	u8 nhop;
	u8 busiest;
	u16 path_id;
	struct int_hop hop[INT_HOPS_MAX];
};

/**
 * struct hpccpp_config - what the operator has set
 * @t_ns:	T, base RTT, HPCCPP_T_MIN_NS to HPCCPP_T_MAX_NS
 * @eta:	target utilisation, Q20, above 0
 * @max_stage:	maxStage
 * @w_ai:	W_ai, bytes in Q8
 * @w_min:	least and ...
 * @w_max:	... largest window, bytes in Q8, at most HPCCPP_W_MAX
 */
struct hpccpp_config {
	u32 t_ns;
	u32 eta;
	u32 max_stage;
	u64 w_ai;
	u64 w_min;
	u64 w_max;
};

/* What a sample was good for. */
enum hpccpp_sample {
	HPCCPP_MEASURED,	/* U is new */
	HPCCPP_BASELINE,	/* the first, or another path: the records begin anew */
	HPCCPP_STALE,		/* older than a wrap of a counter, or odd: begin anew */
	HPCCPP_PARTIAL,		/* no records, or more nodes than room: nothing done */
};

/* @w: initial window, bytes in Q8 */
static inline void hpccpp_model_init(struct hpccpp_model *m, u64 w)
{
	memset(m, 0, sizeof(*m));
	m->u = HPCCPP_U_ONE;
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

/* How long two records of a port of this speed can be told apart, ns. */
static inline u64 hpccpp_wrap_ns(unsigned int speed)
{
	u32 mbps = int_speed_mbps(speed);

	if (!mbps)
		return 0;
	/* 2^20 * 2^13 * 8000 < 2^46 */
	return fp_min(fp_mul_div((u64)int_tx_unit(speed) << INT_TX_BITS, 8000, mbps),
		      HPCCPP_TS_WRAP_NS);
}

/*
 * Lines 4 and 5 for one link: u' in Q20, saturated; *@dt_ns is d(ts). @elapsed_ns is
 * the receiver of the samples' own time between the two: the counters wrap, and it
 * says how often. False if the records cannot be compared.
 */
static inline bool hpccpp_link_load(const struct int_hop *old, const struct int_hop *new,
				    u32 t_ns, u64 elapsed_ns, u32 *u, u32 *dt_ns)
{
	u32 dt = (new->ts - old->ts) & (((u32)1 << INT_TS_BITS) - 1);
	u32 dtx = (new->tx - old->tx) & (((u32)1 << INT_TX_BITS) - 1);
	u32 mbps = int_speed_mbps(new->speed);
	u64 q = old->qlen < new->qlen ? old->qlen : new->qlen;
	u64 load;

	/* a port's speed may change, and so may the unit that it counts in */
	if (!mbps || int_tx_shift(new->speed) != int_tx_shift(old->speed) || !dt || !t_ns)
		return false;
	/* a quarter of a wrap is left for what queues add to the time between them */
	if (elapsed_ns > hpccpp_wrap_ns(new->speed) / 4 * 3 ||
	    (u64)dt * INT_TS_NS > elapsed_ns + HPCCPP_TS_WRAP_NS / 4)
		return false;
	/* tx bits / (ns * Mb/s / 1000): 2^20 * 2^13 * 8000 / 64 << 20 < 2^61 */
	load = fp_mul_div((u64)dtx * int_tx_unit(new->speed) * (8000 / INT_TS_NS),
			  HPCCPP_U_ONE, (u64)dt * mbps);
	/* qlen / (B * T): 2^16 * 80 * 8000 << 20 < 2^56 */
	load = fp_add(load, fp_mul_div(q * INT_QLEN_BYTES * 8000, HPCCPP_U_ONE,
				       (u64)mbps * t_ns));
	*u = fp_min(load, U32_MAX);
	*dt_ns = dt * INT_TS_NS;
	return true;
}

/* The smallest speed on the path, Mb/s; 0 if there are no records. */
static inline u32 hpccpp_slowest_mbps(const struct hpccpp_model *m)
{
	u32 least = 0;
	unsigned int i;

	for (i = 0; i < m->nhop; i++) {
		u32 mbps = int_speed_mbps(m->hop[i].speed);

		if (!least || mbps < least)
			least = mbps;
	}
	return least;
}

/*
 * What follows from what the operator has set and from the path: @eta_permille in 1/1000,
 * W_ai as @w_ai_bytes or, if that is 0, from @flows; @rtt_ns is T or a longer time that
 * W has to fill; @mss bytes; @line_mbps Mb/s is the host's own link, 0 if that is not the
 * slowest: where nodes hide their rates (9.1) it is all that is known.
 */
static inline void hpccpp_config_set(struct hpccpp_config *c, const struct hpccpp_model *m,
				     u32 t_ns, u32 rtt_ns, u32 eta_permille, u32 max_stage,
				     u32 w_ai_bytes, u32 flows, u32 mss, u32 line_mbps)
{
	u32 mbps = hpccpp_slowest_mbps(m);
	u64 bdp;

	if (line_mbps && line_mbps < mbps)
		mbps = line_mbps;
	bdp = hpccpp_bdp(mbps, rtt_ns);
	c->t_ns = t_ns;
	c->eta = fp_fraction(eta_permille, 1000, HPCCPP_U_Q);
	c->max_stage = max_stage;
	c->w_ai = (u64)w_ai_bytes << HPCCPP_W_Q;
	if (!w_ai_bytes)
		c->w_ai = hpccpp_w_ai(bdp, c->eta, flows);
	c->w_min = ((u64)mss << HPCCPP_W_Q) / 16;
	/* two packets that a delayed ACK holds back */
	c->w_max = mbps ? fp_min(bdp + ((u64)mss << HPCCPP_W_Q) * 2, HPCCPP_W_MAX) :
			  HPCCPP_W_MAX;
}

/*
 * W_ai for a sample that stands for @elapsed_ns: as many as RTTs, up to 64, or flows that
 * sample less often, because probes are rarer or their windows below a packet, would fall
 * behind. But more than one only up to 4 * (1 - eta) * @w: many more flows than the operator
 * has thought of would else add to a queue that no cut can keep short.
 */
static inline u64 hpccpp_increase(const struct hpccpp_config *c, u64 w, u64 elapsed_ns)
{
	u64 rounds = fp_max(fp_min(fp_mul_div(elapsed_ns, 1, c->t_ns), 64), 1);
	u64 most = fp_mul_div(w, 4 * (u64)fp_sub(HPCCPP_U_ONE, c->eta), HPCCPP_U_ONE);

	return fp_max(fp_min(fp_mul_div(c->w_ai, rounds, 1), most), c->w_ai);
}

/*
 * From probe to probe: T, or while U is within 1/4 of eta the time in which W lets @least
 * pass (bytes in Q8), at most 8 T. Where windows are a few packets, one more or less in an
 * RTT is much of a link's load: many flows that react to it each RTT swing, and probes are
 * too large a part.
 */
static inline u64 hpccpp_probe_ns(const struct hpccpp_model *m, u32 eta, u32 t_ns, u64 least)
{
	u32 off = m->u > eta ? m->u - eta : eta - m->u;

	if (off > HPCCPP_U_ONE / 4)
		return t_ns;
	return fp_max(fp_min(fp_mul_div(t_ns, least, m->w), (u64)t_ns * 8), t_ns);
}

/* Throws the records away: the next sample begins anew. */
static inline void hpccpp_model_forget(struct hpccpp_model *m)
{
	m->nhop = 0;
}

/*
 * MeasureInflight (lines 1 to 10): takes the records of @msg, and if they go on from
 * those before, updates U. A path is whole, or it is not used: the node that
 * found no room may be the congested one.
 */
static inline enum hpccpp_sample hpccpp_measure(struct hpccpp_model *m,
						const struct int_msg *msg, u32 t_ns,
						u64 elapsed_ns)
{
	enum hpccpp_sample result = HPCCPP_MEASURED;
	u32 u = 0, tau = 0, load, dt;
	unsigned int i;

	if (!msg->nhop || msg->nhop > msg->room || msg->nhop > INT_HOPS_MAX)
		return HPCCPP_PARTIAL;
	for (i = 0; i < msg->nhop; i++)
		if (!int_speed_mbps(msg->hop[i].speed))
			return HPCCPP_PARTIAL;

	if (m->nhop != msg->nhop || m->path_id != msg->path_id)
		result = HPCCPP_BASELINE;
	for (i = 0; i < msg->nhop && result == HPCCPP_MEASURED; i++) {
		if (!hpccpp_link_load(&m->hop[i], &msg->hop[i], t_ns, elapsed_ns, &load, &dt)) {
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
		m->u = fp_mul_div((u64)m->u * (t_ns - tau) + (u64)u * tau, 1, t_ns);
	}
	m->nhop = msg->nhop;
	m->path_id = msg->path_id;
	memcpy(m->hop, msg->hop, sizeof(m->hop));
	return result;
}

/*
 * Wc for a sample of traffic that was sent under window @sent, before W was set to what
 * it is (both bytes in Q8): W as far as the sample bears it out. With the load U that
 * @sent made, windows from @sent to @sent / (U / eta) are none too large; beyond the
 * one and below the other, the sample knows better than W. Where it is to be scaled, it
 * is @sent.
 */
static inline u64 hpccpp_reference(const struct hpccpp_model *m, const struct hpccpp_config *c,
				   u64 sent)
{
	if (m->u >= c->eta || m->stage >= c->max_stage)
		return sent;
	return fp_max(sent, fp_min(m->w, fp_mul_div(sent, c->eta, m->u)));
}

/* ComputeWind (lines 11 to 20). @update_wc: line 23, not line 26. Returns W. */
static inline u64 hpccpp_compute_wind(struct hpccpp_model *m, const struct hpccpp_config *c,
				      bool update_wc)
{
	u64 w;

	if (m->u >= c->eta || m->stage >= c->max_stage) {
		/* 2^39 * 2^32 may not fit 64 bits; U = 0 is an idle path: the maximum */
		w = fp_add(fp_mul_div(m->wc, c->eta, m->u), c->w_ai);
		if (update_wc)
			m->stage = 0;
	} else {
		w = fp_add(m->wc, c->w_ai);
		if (update_wc)
			m->stage++;
	}
	w = fp_max(fp_min(w, c->w_max), c->w_min);
	if (update_wc)
		m->wc = w;
	m->w = w;
	return w;
}

/* R = W / T, bytes per second (line 27); 2^39 * 1e9 may not fit, but fp_mul_div() does */
static inline u64 hpccpp_rate(u64 w, u32 t_ns)
{
	return fp_mul_div(w, 1000000000, (u64)t_ns << HPCCPP_W_Q);
}

#endif /* _LOWQ_HPCCPP_MODEL_H */
