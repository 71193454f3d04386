/* SPDX-License-Identifier: GPL-2.0 */
/*
 * HPCC++ in floating point, written from draft-miao-rtgwg-hpccplus-00 4.2, and the rules of
 * hpccpp_model.h where the draft is silent: used by test_hpccpp_model.c and by
 * fuzz_hpccpp_model.c. A port here has counters that never wrap; the model sees the bits
 * that figure 4 has room for.
 */
#ifndef _LOWQ_HPCCPP_ORACLE_H
#define _LOWQ_HPCCPP_ORACLE_H

#include "hpccpp_model.h"
#include "int_wire_oracle.h"

/**
 * struct port - a node's egress port, at the moment a probe leaves
 * @ns:		the time
 * @bytes:	bytes sent in all
 * @queue:	bytes in the queue
 * @speed:	index of the speed
 */
struct port {
	u64 ns;
	u64 bytes;
	u64 queue;
	unsigned int speed;
};

/* The record that sch_int makes of the port, as its reader sees it */
static inline struct int_hop port_record(const struct port *p)
{
	const struct int_record r = {
		.ts = p->ns / INT_TS_NS & 0xffffff,
		.tx = p->bytes / int_tx_unit(p->speed) & 0xfffff,
		.qlen = fp_min(p->queue / INT_QLEN_BYTES, INT_QLEN_MAX),
		.speed = p->speed,
	};
	struct int_hop h;
	u8 wire[INT_HOP_LEN];

	int_put32(wire, int_record_word0(&r));
	int_put32(wire + 4, int_record_word1(&r));
	int_get_hop(wire, &h);
	return h;
}

/* A port of @speed, at @ns and after @bytes, with @queue behind the probe */
static inline struct int_hop record(unsigned int speed, u64 ns, u64 bytes, u64 queue)
{
	const struct port p = { .ns = ns, .bytes = bytes, .queue = queue, .speed = speed };

	return port_record(&p);
}

/* Bits per nanosecond */
static inline long double port_rate(const struct port *p)
{
	return (long double)int_speed_mbps(p->speed) / 1000;
}

/* Lines 4 and 5, with the resolution of the records: values are rounded down to their units. */
static inline long double draft_load(const struct port *old, const struct port *new,
				     long double t_ns)
{
	long double ns = (new->ns / INT_TS_NS - old->ns / INT_TS_NS) * INT_TS_NS;
	long double unit = int_tx_unit(new->speed);
	long double bits = (new->bytes / int_tx_unit(new->speed) -
			    old->bytes / int_tx_unit(old->speed)) * unit * 8;
	u64 q = fp_min(fp_min(new->queue, old->queue) / INT_QLEN_BYTES, INT_QLEN_MAX);

	return bits / ns / port_rate(new) +
	       q * INT_QLEN_BYTES * 8.0L / (port_rate(new) * t_ns);
}

/* U's largest value, and one unit of it */
#define U_MAX		((long double)U32_MAX / HPCCPP_U_ONE)
#define U_UNIT		(1.0L / HPCCPP_U_ONE)

/* The model's two quotients are each rounded down by less than a unit. */
static inline void expect_load(u32 got, long double want)
{
	long double u = (long double)got / HPCCPP_U_ONE;

	if (want >= U_MAX)
		expect(got >= U32_MAX - 2, "%u, not %Lf", got, want);
	else
		expect(u <= want + U_UNIT / 16 && want - u < 2.001L * U_UNIT, "%Lf, not %Lf", u,
		       want);
}

/* Line 9 */
static inline long double draft_ewma(long double u_old, long double u, long double tau_ns,
				     long double t_ns)
{
	long double tau = fminl(tau_ns, t_ns);

	return (1 - tau / t_ns) * u_old + tau / t_ns * u;
}

/*
 * W_ai where N is not given, in bytes: that of 10 flows, divided by 8 for each (1 - eta) that
 * the mean of U is above eta, by up to 32 if W is only this part of a packet; linear between
 * halvings.
 */
static inline long double load_w_ai(long double bdp, long double eta, long double mean_u,
				    long double packets)
{
	long double per = 3 + 2 * (1 - fminl(packets, 1));
	long double halvings = eta < 1 ? per * fmaxl(mean_u - eta, 0) / (1 - eta) : 0;
	long double whole = floorl(halvings);

	return bdp * (1 - eta) / 10 * exp2l(-whole) * (1 - (halvings - whole) / 2);
}

/**
 * struct draft - the state of lines 11 to 27, windows in bytes
 * @wc:		Wc
 * @stage:	incStage
 */
struct draft {
	long double wc;
	unsigned int stage;
};

/* Lines 11 to 20 with updateWc, and the bounds */
static inline long double draft_compute_wind(struct draft *d, const struct hpccpp_config *c,
					     long double u)
{
	long double one = FP_ONE(HPCCPP_W_Q), w;
	long double eta = (long double)c->eta / HPCCPP_U_ONE;

	if (u >= eta || d->stage >= c->max_stage) {
		w = (d->wc > 0 ? d->wc / (u / eta) : 0) + c->w_ai / one;
		d->stage = 0;
	} else {
		w = d->wc + c->w_ai / one;
		d->stage++;
	}
	w = fmaxl(fminl(w, c->w_max / one), c->w_min / one);
	d->wc = w;
	return w;
}

/* One step of both from the same state: W to a unit of Q8, its quotient rounded down */
static inline void expect_compute_wind(struct hpccpp_model *m, const struct hpccpp_config *c)
{
	struct draft d = { .wc = (long double)m->wc / FP_ONE(HPCCPP_W_Q), .stage = m->stage };
	long double want = draft_compute_wind(&d, c, (long double)m->u / HPCCPP_U_ONE);
	u64 wc = m->wc, w = hpccpp_compute_wind(m, c);
	long double got = (long double)w / FP_ONE(HPCCPP_W_Q);

	expect(fabsl(got - want) <= 1.01L / FP_ONE(HPCCPP_W_Q) + want / 1e15L,
	       "%Lf, not %Lf: wc %lu u %u", got, want, wc, m->u);
	expect(w == m->w && w >= c->w_min && (w <= c->w_max || w == c->w_min), "%lu", w);
	expect(m->wc == w, "%lu %lu", m->wc, w);
	expect(m->stage == (u8)d.stage, "%u, not %u", m->stage, d.stage);
}

/* A flow whose samples are the messages that @take makes of a fuzzer's input, if it makes one. */
static inline void fuzz_samples(const u8 *data, size_t size,
				bool (*take)(struct fuzz_input *in, struct int_msg *m))
{
	struct fuzz_input in = { data, size };
	struct int_msg msg;
	struct hpccpp_model m;
	struct hpccpp_sample s = {
		.msg = &msg,
		.settings = {
			.t_ns = HPCCPP_T_MIN_NS + (u32)fold(fuzz_take(&in, 4), 999999000),
			.eta_permille = 950, .mss = 1448, .w_limit = HPCCPP_W_MAX,
		},
	};

	s.settings.fill_ns = s.settings.t_ns;
	hpccpp_model_init(&m, fuzz_take(&in, 5));
	while (in.size) {
		enum hpccpp_result result;

		s.elapsed_ns = fuzz_take(&in, 5);
		s.sent_w = fold(fuzz_take(&in, 5), HPCCPP_W_MAX);
		if (!take(&in, &msg))
			continue;
		result = hpccpp_step(&m, &s);
		expect(result != HPCCPP_MEASURED || m.busiest < m.nhop,
		       "%u of %u", m.busiest, m.nhop);
		expect(m.nhop <= INT_HOPS_MAX && m.w <= HPCCPP_W_MAX, "%u %lu", m.nhop, m.w);
		hpccpp_comparable_ns(&m);
		hpccpp_queued_us(&m);
	}
}

#endif /* _LOWQ_HPCCPP_ORACLE_H */
