// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/hpccpp_model.h against the draft in floating point (hpccpp_oracle.h):
 * H1 MeasureInflight, H2 ComputeWind, H5 W_ai, H7 a changed path, H16 wraps, zeros,
 * saturation and staleness.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hpccpp_oracle.h"

/* A port, and the same port up to @max_ns later, at any load up to its rate */
static void any_ports(struct port *a, struct port *b, u64 max_ns)
{
	u64 ns = rnd_range(INT_TS_NS, max_ns);

	a->speed = 1 + rnd() % (INT_SPEEDS - 1);
	a->ns = rnd_upto((u64)1 << 60);
	a->bytes = rnd_upto((u64)1 << 60);
	a->queue = rnd_upto((u64)1 << 24);
	b->speed = a->speed;
	b->ns = a->ns + ns;
	b->bytes = a->bytes + (u64)(port_rate(a) / 8 * ns * rnd_range(0, 1000) / 1000);
	b->queue = rnd_upto((u64)1 << 24);
}

/* For any values of the counters, across their wraps */
static void hpccpp_link_load__draft(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS >> rnd() % 20), u, dt;
		struct port a, b;
		struct int_hop old, new;

		any_ports(&a, &b, 30000000);	/* less than the shortest wrap */
		old = port_record(&a);
		new = port_record(&b);
		if (!hpccpp_link_load(&old, &new, t_ns, b.ns - a.ns, &u, &dt)) {
			expect(a.ns / INT_TS_NS == b.ns / INT_TS_NS, "%lu", b.ns - a.ns);
			continue;
		}
		expect(dt == (b.ns / INT_TS_NS - a.ns / INT_TS_NS) * INT_TS_NS, "%u %lu", dt,
		       b.ns - a.ns);
		expect_load(u, draft_load(&a, &b, t_ns));
	}
}

/* Without time or speed, with another speed, or without T, nothing can be computed */
static void hpccpp_link_load__nonsense(void **state)
{
	struct int_hop a = record(6, 5 * 64, 7 * 128, 9 * 80), b = a;
	u32 u = 0, dt;

	(void)state;
	assert_false(hpccpp_link_load(&a, &b, 10000, 0, &u, &dt));	/* no time has passed */
	b.ts = 6 * 64;
	assert_true(hpccpp_link_load(&a, &b, 10000, 64, &u, &dt));
	assert_false(hpccpp_link_load(&a, &b, 0, 64, &u, &dt));
	b.mbps = 20000;	/* twice as fast: the load is that of the new link */
	b.tx = a.tx + 128;
	assert_true(hpccpp_link_load(&a, &b, 10000, 64, &u, &dt));
	assert_int_equal(u / 16, (HPCCPP_U_ONE * 4 / 5 + 9 * 80 * HPCCPP_U_ONE / 25000) / 16);
	b.tx_bits++;	/* counts in another unit */
	assert_false(hpccpp_link_load(&a, &b, 10000, 64, &u, &dt));
	b.tx_bits--;
	b.ts_bits++;	/* another format */
	assert_false(hpccpp_link_load(&a, &b, 10000, 64, &u, &dt));
	b.ts_bits--;
	b.mbps = 0;
	a.mbps = 0;
	assert_false(hpccpp_link_load(&a, &b, 10000, 64, &u, &dt));	/* B = 0 */
}

/* Older than 3/4 of a wrap of either counter, or time that went backwards: no result */
static void hpccpp_link_load__stale(void **state)
{
	unsigned int speed;

	(void)state;
	for (speed = 1; speed < INT_SPEEDS; speed++) {
		struct port a = { .ns = 1000000, .bytes = 5000000, .speed = speed }, b = a;
		double wrap = fmin(16777216.0 * 64, 1048576.0 * int_tx_unit(speed) * 8000 /
						    int_speed_mbps(speed));
		struct int_hop old = port_record(&a), new;
		u32 u, dt;

		assert_true(fabs(hpccpp_wrap_ns(&old) - wrap) <= 1);
		b.ns = a.ns + wrap * 0.74;
		new = port_record(&b);
		assert_true(hpccpp_link_load(&old, &new, 10000, wrap * 0.74, &u, &dt));
		assert_false(hpccpp_link_load(&old, &new, 10000, wrap * 0.76, &u, &dt));
		assert_false(hpccpp_link_load(&old, &new, 10000, wrap * 1.5, &u, &dt));
		assert_false(hpccpp_link_load(&old, &new, 10000, (u64)1 << 62, &u, &dt));
		/* the later one first: almost 1.07 s, a whole wrap, after the other */
		assert_false(hpccpp_link_load(&new, &old, 10000, 100000, &u, &dt));
	}
}

/* qlen that saturates is still a queue; u' beyond its range is its largest value. */
static void hpccpp_link_load__saturation(void **state)
{
	struct int_hop a = record(1, 0, 0, 6000000), b = a;
	u32 u, dt;

	(void)state;
	b.ts = 100 * 64;
	assert_true(hpccpp_link_load(&a, &b, 5000, 6400, &u, &dt));
	assert_int_equal(u, U32_MAX);	/* 5.2 MB at 10 Mb/s are 4 s, T is 5 us */
}

/* More than the rate allows, and than a device's ring holds: the counter has restarted. */
static void hpccpp_link_load__restarted(void **state)
{
	unsigned int speed;

	(void)state;
	for (speed = 1; speed < INT_SPEEDS; speed++) {
		double rate = int_speed_mbps(speed) / 8000.0, unit = int_tx_unit(speed);
		double most = rate * 100 * 64 + fmax(2e6, rate * 3e6);
		struct int_hop a = record(speed, 5 * 64, 0xfffff * (u64)unit, 0), b = a;
		u32 u, dt;

		b.ts += 6400;
		b.tx = a.tx + (u64)(most / unit) * (u64)unit;
		assert_true(hpccpp_link_load(&a, &b, 10000, 6400, &u, &dt));
		b.tx += (u64)unit;
		assert_false(hpccpp_link_load(&a, &b, 10000, 6400, &u, &dt));
		b.tx = a.tx - (u64)unit;
		assert_false(hpccpp_link_load(&a, &b, 10000, 6400, &u, &dt));
	}
}

/* H1: the maximum, its link's tau, and the EWMA over T, against the draft's lines 1 to 10 */
static void hpccpp_measure__draft(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		struct int_msg m1 = { .type = INT_RESPONSE, .room = INT_HOPS_MAX }, m2;
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, 10000000);
		struct port a[INT_HOPS_MAX], b[INT_HOPS_MAX];
		struct hpccpp_model m;
		long double u = 0, tau = 0, want;
		unsigned int k, busiest = 0;
		u64 elapsed = 0;

		m1.nhop = 1 + rnd() % INT_HOPS_MAX;
		m1.path_id = rnd() & 0xfff;
		m2 = m1;
		for (k = 0; k < m1.nhop; k++) {
			any_ports(&a[k], &b[k], 20000000);
			b[k].ns += INT_TS_NS;
			m1.hop[k] = port_record(&a[k]);
			m2.hop[k] = port_record(&b[k]);
			elapsed = fp_max(elapsed, b[k].ns - a[k].ns);
			if (!k || draft_load(&a[k], &b[k], t_ns) > u + 3 * U_UNIT) {
				u = draft_load(&a[k], &b[k], t_ns);
				busiest = k;
				tau = (b[k].ns / INT_TS_NS - a[k].ns / INT_TS_NS) * INT_TS_NS;
			} else if (fabsl(draft_load(&a[k], &b[k], t_ns) - u) <= 3 * U_UNIT) {
				u = -1;		/* almost equal: either may be chosen */
				break;
			}
		}
		if (u < 0 || u >= U_MAX)
			continue;
		hpccpp_model_init(&m, 0);
		expect(hpccpp_measure(&m, &m1, t_ns, t_ns, 0) == HPCCPP_BASELINE, "%u", m1.nhop);
		m.u = rnd_upto(U32_MAX);
		want = draft_ewma((long double)m.u / HPCCPP_U_ONE, u, tau, t_ns);
		expect(hpccpp_measure(&m, &m2, t_ns, t_ns, elapsed) == HPCCPP_MEASURED, "%lu",
		       elapsed);
		assert_int_equal(m.busiest, busiest);
		expect(fabsl((long double)m.u / HPCCPP_U_ONE - want) <= 4 * U_UNIT, "%Lf, not %Lf",
		       (long double)m.u / HPCCPP_U_ONE, want);
	}
}

/* H7: a new path or length starts from its first sample; H16: an incomplete path is not used. */
static void hpccpp_measure__path(void **state)
{
	struct int_msg m = {
		.room = 5, .nhop = 2, .path_id = 3,
		.hop = { record(6, 64, 0, 0), record(8, 128, 0, 0) },
	};
	struct hpccpp_model model;

	(void)state;
	hpccpp_model_init(&model, 0);
	assert_int_equal(hpccpp_slowest(&model), 0);
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 0), HPCCPP_BASELINE);
	assert_int_equal(hpccpp_slowest(&model), 10000);
	m.hop[0].ts += 12800;
	m.hop[1].ts += 12800;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_MEASURED);
	m.path_id = 4;
	m.hop[0].ts += 12800;
	m.hop[1].ts += 12800;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_BASELINE);
	m.nhop = 1;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_BASELINE);
	m.hop[0].ts += 12800;
	m.hop[0] = record(9, m.hop[0].ts, 0, 0);
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_STALE);
	m.hop[0].ts += 12800;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_MEASURED);
	m.nhop = 0;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_PARTIAL);
	m.nhop = 6;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_PARTIAL);
	m.room = INT_HOPS_MAX;
	m.nhop = INT_NHOP_MAX;		/* 15 or more: there may be nodes without a record */
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_PARTIAL);
	m.nhop = 2;
	m.hop[1].mbps = 0;
	assert_int_equal(hpccpp_measure(&model, &m, 10000, 10000, 12800), HPCCPP_PARTIAL);
	assert_int_equal(model.nhop, 1);	/* the records from before are kept */
	hpccpp_model_forget(&model);
	assert_int_equal(hpccpp_slowest(&model), 0);
}

/* T; below a packet the time from one packet to the next, up to 16 T */
static void hpccpp_drain_ns__bounds(void **state)
{
	int i;

	(void)state;
	assert_int_equal(hpccpp_drain_ns(1000 << HPCCPP_W_Q, 1000, 10000), 10000);
	assert_int_equal(hpccpp_drain_ns(250 << HPCCPP_W_Q, 1000, 10000), 40000);
	assert_int_equal(hpccpp_drain_ns(0, 1000, 10000), 160000);
	for (i = 0; i < CASES; i++) {
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS), mss = 1 + rnd_upto(65534);
		u64 w = 1 + rnd_upto((u64)2 * mss << HPCCPP_W_Q);
		long double want = (long double)t_ns * fminl(fmaxl(mss * 256.0L / w, 1), 16);

		want = fminl(want, U32_MAX);
		expect(near_abs(hpccpp_drain_ns(w, mss, t_ns), want, 1), "%lu %u %u", w, mss, t_ns);
	}
}

static struct hpccpp_config any_config(void)
{
	struct hpccpp_config c;

	c.t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
	c.eta = rnd_range(HPCCPP_U_ONE / 10, HPCCPP_U_ONE);
	c.max_stage = rnd() % 8;
	c.w_ai = rnd_upto((u64)1 << 28);
	c.w_min = rnd_upto((u64)1 << 20);
	c.w_max = rnd_upto(HPCCPP_W_MAX);
	return c;
}

/* H2 */
static void hpccpp_compute_wind__draft(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct hpccpp_config c = any_config();
		struct hpccpp_model m;

		hpccpp_model_init(&m, rnd_upto(HPCCPP_W_MAX));
		m.u = rnd_upto(U32_MAX);
		m.stage = rnd() % 8;
		expect_compute_wind(&m, &c);
	}
}

/* Six updates at U < eta with maxStage 5: five steps, then the jump */
static void hpccpp_compute_wind__stages(void **state)
{
	struct hpccpp_config c = {
		.eta = HPCCPP_U_ONE / 2, .max_stage = 5, .w_ai = 100, .w_max = HPCCPP_W_MAX,
	};
	struct hpccpp_model m;
	int i;

	(void)state;
	hpccpp_model_init(&m, 1000);
	m.u = HPCCPP_U_ONE / 8;
	for (i = 1; i <= 5; i++) {
		assert_int_equal(hpccpp_compute_wind(&m, &c), 1000 + i * 100);
		assert_int_equal(m.stage, i);
	}
	assert_int_equal(hpccpp_compute_wind(&m, &c), 1500 * 4 + 100);
	assert_int_equal(m.stage, 0);
	m.u = HPCCPP_U_ONE;
	assert_int_equal(hpccpp_compute_wind(&m, &c), 3050 + 100);
	/* eta itself, and the stage after the last, too, scale W and end the steps */
	m.u = c.eta;
	m.stage = 1;
	assert_int_equal(hpccpp_compute_wind(&m, &c), 3150 + 100);
	assert_int_equal(m.stage, 0);
	m.u = HPCCPP_U_ONE / 4;
	m.stage = 5;
	assert_int_equal(hpccpp_compute_wind(&m, &c), 3250 * 2 + 100);
	m.u = 0;	/* an idle path: W is at its limit */
	m.stage = 5;
	assert_int_equal(hpccpp_compute_wind(&m, &c), HPCCPP_W_MAX);
}

/* Wc lies between the window that the bytes were sent under and the one that the sample allows */
static void hpccpp_reference__bounds(void **state)
{
	struct hpccpp_config c = { .eta = HPCCPP_U_ONE / 2, .max_stage = 5 };
	struct hpccpp_model m;

	(void)state;
	hpccpp_model_init(&m, 1000);
	m.u = HPCCPP_U_ONE;		/* if W is to be scaled: the window of those bytes */
	assert_int_equal(hpccpp_reference(&m, &c, 700), 700);
	m.u = HPCCPP_U_ONE / 4;		/* there is room for twice that: W is kept */
	assert_int_equal(hpccpp_reference(&m, &c, 700), 1000);
	assert_int_equal(hpccpp_reference(&m, &c, 300), 600);	/* W is too large */
	assert_int_equal(hpccpp_reference(&m, &c, 1200), 1200);	/* W is too small */
	m.stage = 5;
	assert_int_equal(hpccpp_reference(&m, &c, 700), 700);
	m.stage = 0;
	m.u = 0;
	assert_int_equal(hpccpp_reference(&m, &c, 700), 1000);
}

/* H5: W_ai = W_init * (1 - eta) / N, and the other products */
static void hpccpp_bdp__products(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u32 mbps = int_speed_mbps(1 + rnd() % 15);
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
		u32 eta = rnd_upto(HPCCPP_U_ONE), n = 1 + rnd_upto(1000000 - 1);
		long double bdp = (long double)mbps * t_ns / 8000;
		u64 got = hpccpp_bdp(mbps, t_ns), w = rnd_upto(HPCCPP_W_MAX);

		expect(near_abs(got / 256.0L, bdp, 1 / 256.0L), "%lu, not %Lf", got, bdp);
		expect(near_abs(hpccpp_w_ai(got, eta, n),
				got * (1 - (long double)eta / HPCCPP_U_ONE) / n, 1),
		       "%lu", hpccpp_w_ai(got, eta, n));
		expect(near_abs(hpccpp_rate(w, t_ns), w / 256.0L / t_ns * 1e9L, 1.001L), "%lu",
		       hpccpp_rate(w, t_ns));
	}
}

/* H5, N not given: W_ai is that of few flows at eta and below; it falls with U and with W. */
static void hpccpp_w_ai_by_load__oracle(void **state)
{
	const u32 eta = HPCCPP_U_ONE / 20 * 19;
	const u64 mss = 1448 << HPCCPP_W_Q;
	u64 bdp = 125000 << HPCCPP_W_Q, w, least = U64_MAX, got;
	int i;

	(void)state;
	assert_int_equal(hpccpp_w_ai_by_load(bdp, eta, 0, mss, mss), hpccpp_w_ai(bdp, eta, 10));
	assert_int_equal(hpccpp_w_ai_by_load(bdp, eta, eta, 0, mss), hpccpp_w_ai(bdp, eta, 10));
	got = hpccpp_w_ai_by_load(bdp, eta, HPCCPP_U_ONE, mss, mss);
	expect(near_rel(got, hpccpp_w_ai(bdp, eta, 80), 0.001L), "%lu", got);
	got = hpccpp_w_ai_by_load(bdp, eta, HPCCPP_U_ONE, 0, mss);
	expect(near_rel(got, hpccpp_w_ai(bdp, eta, 320), 0.001L), "%lu", got);
	assert_int_equal(hpccpp_w_ai_by_load(bdp, eta, U32_MAX, mss, mss), 0);
	assert_int_equal(hpccpp_w_ai_by_load(bdp, HPCCPP_U_ONE, U32_MAX, mss, mss), 0);
	for (i = 0; i < 1000; i++) {	/* never rises with U */
		u64 w_ai = hpccpp_w_ai_by_load(bdp, eta, eta + i * (HPCCPP_U_ONE - eta) / 100,
					       mss / 2, mss);

		expect(w_ai <= least, "%d: %lu", i, w_ai);
		least = w_ai;
	}
	for (i = 0; i < CASES; i++) {
		u32 e = rnd_range(HPCCPP_U_ONE / 10, HPCCPP_U_ONE), mean;
		long double want, slack;

		bdp = rnd_upto((u64)1 << 59);
		w = rnd_upto(2 * mss);
		mean = rnd() % 2 ? rnd_upto(U32_MAX) :
				   fp_min(e + rnd_upto(12 * (u64)(HPCCPP_U_ONE - e)), U32_MAX);
		want = load_w_ai(bdp, (long double)e / HPCCPP_U_ONE,
				 (long double)mean / HPCCPP_U_ONE, (long double)w / mss);
		/*
		 * Halvings are rounded down to a unit of Q20, and what W lacks of a packet up to
		 * one; each product loses one.
		 */
		slack = 2 + 4 * fmaxl(mean - (long double)e, 0) / (HPCCPP_U_ONE - e + 1);
		got = hpccpp_w_ai_by_load(bdp, e, mean, w, mss);
		expect(near_abs(got, want, 2 + want * slack * U_UNIT) || want < bdp / 4e9L,
		       "%lu, not %Lf: eta %u mean %u", got, want, e, mean);
	}
}

/* The mean of U: of about 64 samples, and none counts as further than 4 (1 - eta) from eta */
static void hpccpp_mean_update__bounds(void **state)
{
	struct hpccpp_model m;
	long double mean, low;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		u32 eta = rnd_range(HPCCPP_U_ONE / 10, HPCCPP_U_ONE), k;
		u32 far = 4 * (HPCCPP_U_ONE - eta);

		hpccpp_model_init(&m, 0);
		mean = eta;
		for (k = 0; k < 1000; k++) {
			m.u = rnd() % 2 ? rnd_upto(U32_MAX) : rnd_range(0, 2 * HPCCPP_U_ONE);
			low = fmaxl((long double)eta - far, 0);
			mean += (fminl(fmaxl(m.u, low), (long double)eta + far) - mean) / 64;
			hpccpp_mean_update(&m, eta);
			/* each step rounds both quotients by less than a unit, and keeps 63/64 */
			expect(near_abs(m.mean_u, mean, 64), "%u, not %Lf", m.mean_u, mean);
		}
	}
}

/* H5: what follows from the operator's settings, from the path, and from the host's own link */
static void hpccpp_config_set__draft(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
		u32 fill_ns = t_ns + rnd_upto(HPCCPP_T_MAX_NS), eta = rnd_range(100, 1000);
		u32 flows = rnd() % 3 ? 1 + rnd_upto(1000000 - 1) : 0, mss = 1 + rnd_upto(65000);
		u32 own = rnd() % 3 ? rnd_upto(1600000) : 0;
		u32 given = rnd() % 3 ? 0 : rnd_upto(1 << 20);
		long double mbps = INFINITY, bdp, w_ai;
		struct hpccpp_model m = {
			.nhop = 1 + rnd() % INT_HOPS_MAX,
			.mean_u = rnd_upto(2 * (u64)HPCCPP_U_ONE),
			.w = rnd_upto((u64)2 * mss << HPCCPP_W_Q),
		};
		struct hpccpp_settings set;
		struct hpccpp_config c;
		unsigned int k;

		for (k = 0; k < m.nhop; k++) {
			m.hop[k].mbps = int_speed_mbps(1 + rnd() % 15);
			mbps = fminl(mbps, m.hop[k].mbps);
		}
		if (own)
			mbps = fminl(mbps, own);
		bdp = mbps * fill_ns / 8000;
		w_ai = given ? given :
		       flows ? mbps * t_ns / 8000 * (1000 - eta) / 1000 / flows :
		       load_w_ai(mbps * t_ns / 8000, eta / 1000.0L,
				 (long double)m.mean_u / HPCCPP_U_ONE, m.w / 256.0L / mss);
		set = (struct hpccpp_settings){
			.t_ns = t_ns, .fill_ns = fill_ns, .eta_permille = eta,
			.max_stage = i & 0xff, .w_ai_bytes = given, .flows = flows, .mss = mss,
			.w_limit = HPCCPP_W_MAX, .line_mbps = own,
		};
		hpccpp_config_set(&c, &m, &set);
		assert_int_equal(c.t_ns, t_ns);
		assert_int_equal(c.max_stage, i & 0xff);
		expect(near_abs((long double)c.eta / HPCCPP_U_ONE, eta / 1000.0L, U_UNIT), "%u",
		       c.eta);
		/* eta is rounded to a unit of Q20: so is 1 - eta */
		expect(near_abs(c.w_ai / 256.0L, w_ai,
				3 / 256.0L + bdp * U_UNIT / fp_max(flows, 1)),
		       "%lu, not %Lf", c.w_ai, w_ai);
		expect(near_abs(c.w_max / 256.0L, fminl(bdp + 2 * mss, HPCCPP_W_MAX / 256.0L),
				1 / 256.0L), "%lu, not %Lf", c.w_max, bdp);
		expect(near_abs(c.bdp / 256.0L, mbps * t_ns / 8000, 1 / 256.0L), "%lu", c.bdp);
		expect(near_abs(c.w_min / 256.0L, mss / 32.0L, 1 / 256.0L), "%lu", c.w_min);
	}
}

/* A port between two rates of the format: what the flow carried limits W, up to the next rate. */
static void hpccpp_config_set__rate_between(void **state)
{
	struct hpccpp_model m = { .nhop = 1, .hop = { { .mbps = 100 } } };
	struct hpccpp_settings set = {
		.t_ns = 10000000, .fill_ns = 10000000, .eta_permille = 950, .max_stage = 5,
		.flows = 10, .mss = 1000, .w_limit = HPCCPP_W_MAX,
	};
	struct hpccpp_config c;
	int i;

	(void)state;
	for (i = 0; i < CASES / 10; i++) {
		u32 own = rnd() % 3 ? 0 : 1 + rnd_upto(2000);
		long double bdp = (own ? fminl(own, 100) : 100) * 1250.0L, most, load, carried;
		long double next = own ? fminl(own, 1000) : 1000;

		m.u = 1 + rnd_upto(HPCCPP_U_ONE);
		set.carried = rnd_upto(3000000ULL << HPCCPP_W_Q);
		set.line_mbps = own;
		carried = set.carried / 256.0L;
		load = bdp * m.u / HPCCPP_U_ONE;
		most = bdp;
		if (carried >= bdp * 7 / 8 && carried > load * 17 / 16 + 4000)
			most = fmaxl(most, fminl(carried * HPCCPP_U_ONE / m.u, next * 1250));
		hpccpp_config_set(&c, &m, &set);
		/* near a threshold rounding decides otherwise */
		if (fabsl(carried - load * 17 / 16 - 4000) > 1 && fabsl(carried - bdp * 7 / 8) > 1)
			expect(near_abs(c.w_max / 256.0L, most + 2000, 1 / 128.0L), "%lu, not %Lf",
			       c.w_max, most);
	}
}

/* The host's own link limits W if it is slower than the path; without records nothing does. */
static void hpccpp_config_set__own_link(void **state)
{
	struct hpccpp_model m = { .nhop = 2, .hop = { { .mbps = 100000 }, { .mbps = 25000 } } };
	struct hpccpp_settings set = {
		.t_ns = 10000, .fill_ns = 10000, .eta_permille = 950, .max_stage = 5,
		.flows = 10, .mss = 1000, .w_limit = HPCCPP_W_MAX,
	};
	struct hpccpp_config c;

	(void)state;
	hpccpp_config_set(&c, &m, &set);
	assert_int_equal(c.w_max >> HPCCPP_W_Q, 31250 + 2000);	/* 25 Gb/s * 10 us */
	assert_int_equal(c.w_ai >> HPCCPP_W_Q, 156);
	set.line_mbps = 10000;
	hpccpp_config_set(&c, &m, &set);
	assert_int_equal(c.w_max >> HPCCPP_W_Q, 12500 + 2000);
	assert_int_equal(c.w_ai >> HPCCPP_W_Q, 62);
	set.line_mbps = 400000;
	hpccpp_config_set(&c, &m, &set);
	assert_int_equal(c.w_max >> HPCCPP_W_Q, 31250 + 2000);
	set.w_limit = 5000 << HPCCPP_W_Q;
	hpccpp_config_set(&c, &m, &set);
	assert_int_equal(c.w_max >> HPCCPP_W_Q, 5000);
	set.w_limit = HPCCPP_W_MAX;
	set.line_mbps = 10000;
	m.nhop = 0;
	hpccpp_config_set(&c, &m, &set);
	assert_true(c.w_max == HPCCPP_W_MAX && !c.w_ai);
}

/* As many W_ai as whole RTTs between samples, 1 to 64; more than one within (1 - eta) W */
static void hpccpp_increase__rounds(void **state)
{
	struct hpccpp_config c = { .t_ns = 10000, .eta = HPCCPP_U_ONE / 20 * 19, .w_ai = 100 };
	int i;

	(void)state;
	assert_int_equal(hpccpp_increase(&c, HPCCPP_W_MAX, 0), 100);
	assert_int_equal(hpccpp_increase(&c, HPCCPP_W_MAX, 19999), 100);
	assert_int_equal(hpccpp_increase(&c, HPCCPP_W_MAX, 20000), 200);
	assert_int_equal(hpccpp_increase(&c, HPCCPP_W_MAX, 649999), 6400);
	assert_int_equal(hpccpp_increase(&c, HPCCPP_W_MAX, U64_MAX), 6400);
	assert_int_equal(hpccpp_increase(&c, 10000, 50000), 500);
	assert_int_equal(hpccpp_increase(&c, 10000, 60000), 500);	/* 5 % of W */
	assert_int_equal(hpccpp_increase(&c, 1000, 60000), 100);	/* at least one W_ai */
	for (i = 0; i < CASES; i++) {
		u64 w = rnd_upto(HPCCPP_W_MAX), elapsed;
		long double want, most;

		c.t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
		c.eta = rnd_upto(HPCCPP_U_ONE);
		c.w_ai = rnd_upto(HPCCPP_W_MAX);
		elapsed = rnd_upto((u64)c.t_ns * 80);
		want = fminl(fmaxl(floorl((long double)elapsed / c.t_ns), 1), 64) * c.w_ai;
		most = (1 - (long double)c.eta / HPCCPP_U_ONE) * w;
		want = fmaxl(fminl(want, most), c.w_ai);
		expect(near_abs(hpccpp_increase(&c, w, elapsed), want, 1), "%lu %lu", w, elapsed);
	}
}

/* H5, N not given: a newcomer adds W_ai of N = 1, at most W / 2, unless the link is overloaded */
static void hpccpp_newcomer_w_ai__bounds(void **state)
{
	struct hpccpp_config c = {
		.eta = HPCCPP_U_ONE / 4 * 3, .bdp = 100000 << HPCCPP_W_Q,
		.w_ai = 1000 << HPCCPP_W_Q,
	};
	struct hpccpp_model m;
	int i;

	(void)state;
	hpccpp_model_init(&m, 80000 << HPCCPP_W_Q);
	m.u = c.eta;
	assert_int_equal(hpccpp_newcomer_w_ai(&m, &c), 25000 << HPCCPP_W_Q);
	m.w = 20000 << HPCCPP_W_Q;
	assert_int_equal(hpccpp_newcomer_w_ai(&m, &c), 10000 << HPCCPP_W_Q);
	m.w = 1000 << HPCCPP_W_Q;		/* never less than others add */
	assert_int_equal(hpccpp_newcomer_w_ai(&m, &c), 1000 << HPCCPP_W_Q);
	m.w = 20000 << HPCCPP_W_Q;
	m.u = HPCCPP_U_ONE / 4 * 7 - 1;
	assert_int_equal(hpccpp_newcomer_w_ai(&m, &c), 10000 << HPCCPP_W_Q);
	m.u++;					/* overload: 0.75 + 4 * 0.25 */
	assert_int_equal(hpccpp_newcomer_w_ai(&m, &c), 1000 << HPCCPP_W_Q);
	for (i = 0; i < CASES; i++) {
		u32 eta = rnd_range(HPCCPP_U_ONE / 10, HPCCPP_U_ONE);
		long double one = HPCCPP_U_ONE, want;

		c.eta = eta;
		c.bdp = rnd_upto((u64)1 << 59);
		c.w_ai = rnd_upto((u64)1 << 50);
		m.w = rnd_upto(HPCCPP_W_MAX);
		m.u = rnd_upto(2 * (u64)HPCCPP_U_ONE);
		want = fminl(c.bdp * (1 - eta / one), m.w / 2);
		want = m.u / one < eta / one + 4 * (1 - eta / one) ? fmaxl(want, c.w_ai) : c.w_ai;
		expect(near_abs(hpccpp_newcomer_w_ai(&m, &c), want, 1 + want / 1e15L), "%lu %lu",
		       c.bdp, m.w);
	}
}

/* H8: a probe per RTT; near eta one per @least bytes that W sends, at most 8 RTTs apart */
static void hpccpp_probe_ns__bounds(void **state)
{
	const u32 eta = HPCCPP_U_ONE / 100 * 95;
	struct hpccpp_model m = { .w = 100, .u = eta };
	int i;

	(void)state;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 0), 10000);
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 99), 10000);
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 25000);
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 100000), 80000);
	m.u = eta + HPCCPP_U_ONE / 4;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 25000);
	m.u++;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 10000);
	m.u = eta - HPCCPP_U_ONE / 4;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 25000);
	m.u--;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 10000);
	m.u = U32_MAX;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 250), 10000);
	m.u = eta;
	m.w = 0;
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, 1), 80000);
	assert_int_equal(hpccpp_probe_ns(&m, eta, 0, 1), 0);	/* T is not known yet */
	for (i = 0; i < CASES; i++) {
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
		u64 least = rnd_upto((u64)64 * 65535 << HPCCPP_W_Q);
		long double want;

		m.w = 1 + rnd_upto(HPCCPP_W_MAX - 1);
		want = (long double)t_ns * fminl(fmaxl((long double)least / m.w, 1), 8);
		expect(near_abs(hpccpp_probe_ns(&m, eta, t_ns, least), want, 1), "%lu %u %lu", m.w,
		       t_ns, least);
	}
}

/* Half of the path's shortest wrap; W after a loss */
static void hpccpp_reduced__never_above(void **state)
{
	struct hpccpp_model m = { .nhop = 2, .hop = { record(1, 0, 0, 0), record(8, 0, 0, 0) } };

	(void)state;
	assert_int_equal(hpccpp_reduced(10000, 1000), 5000);
	assert_int_equal(hpccpp_reduced(3000, 1000), 2000);
	assert_int_equal(hpccpp_reduced(1999, 1000), 1999);
	assert_int_equal(hpccpp_reduced(62, 1000), 62);
	assert_int_equal(hpccpp_comparable_ns(&m), hpccpp_wrap_ns(&m.hop[1]) / 2);
	m.nhop = 0;
	assert_int_equal(hpccpp_comparable_ns(&m), 0);
}

/* T follows a longer RTT after a period, unless queues explain it, and a shorter one at once */
static void hpccpp_rtt__follows(void **state)
{
	struct hpccpp_model m = { .nhop = 1, .hop = { record(6, 0, 0, 10000) } };
	struct hpccpp_rtt r;
	unsigned int i;

	(void)state;
	assert_int_equal(hpccpp_queued_us(&m), 9);	/* 10 kB at 10 Gb/s, rounded up */
	hpccpp_rtt_init(&r, 100);
	for (i = 0; i < 2 * HPCCPP_RTT_PERIOD - 1; i++) {
		assert_int_equal(r.min_us, 100);
		hpccpp_rtt_sample(&r, 310);
		/* queues explain the first period */
		hpccpp_rtt_follow(&r, i < HPCCPP_RTT_PERIOD ? 200 : 10);
	}
	hpccpp_rtt_sample(&r, 305);
	hpccpp_rtt_follow(&r, 0);
	assert_int_equal(r.min_us, 295);
	assert_int_equal(r.base_us, 295);
	hpccpp_rtt_sample(&r, 90);
	assert_int_equal(r.min_us, 90);
	assert_int_equal(r.base_us, 90);
	/* a period without an RTT says nothing */
	hpccpp_rtt_init(&r, 100);
	for (i = 0; i < HPCCPP_RTT_PERIOD; i++)
		hpccpp_rtt_follow(&r, 0);
	assert_int_equal(r.base_us, 100);
}

/* T is the RTT less the queues; the smallest RTT remains what was measured */
static void hpccpp_rtt__unqueued(void **state)
{
	struct hpccpp_model m = {
		.nhop = 2, .path_id = 7,
		.hop = { record(6, 0, 0, 100000), record(6, 0, 0, 240000) },
	};
	struct int_msg msg = {
		.nhop = 2, .path_id = 7,
		.hop = { record(6, 0, 0, 200000), record(6, 0, 0, 10000) },
	};
	struct hpccpp_rtt r;
	unsigned int i;

	(void)state;
	/* of each queue the smaller one: 100 kB and 10 kB at 10 Gb/s; no third one */
	m.hop[2] = record(6, 0, 0, 100000);
	msg.hop[2] = m.hop[2];
	assert_int_equal(hpccpp_standing_us(&m, &msg), 88);
	msg.path_id = 8;
	assert_int_equal(hpccpp_standing_us(&m, &msg), 0);
	msg.path_id = 7;
	msg.nhop = 1;
	assert_int_equal(hpccpp_standing_us(&m, &msg), 0);
	hpccpp_rtt_init(&r, 300);
	hpccpp_rtt_unqueued(&r, 310, 200);
	assert_int_equal(r.base_us, 110);
	assert_int_equal(r.min_us, 300);
	hpccpp_rtt_unqueued(&r, 400, 210);	/* the mean of both */
	assert_int_equal(r.base_us, 150);
	hpccpp_rtt_unqueued(&r, 200, 200);	/* nothing left: the probe did not wait that long */
	assert_int_equal(r.base_us, 150);
	hpccpp_rtt_unqueued(&r, 400, 390);	/* not below an eighth */
	assert_int_equal(r.base_us, 116);
	hpccpp_rtt_unqueued(&r, 400, 199);	/* a short queue says nothing */
	assert_int_equal(r.base_us, 187);
	/* single probes hardly matter, old ones are forgotten; at most the smallest RTT */
	for (i = 0; i < 20 * HPCCPP_RTT_PERIOD; i++)
		hpccpp_rtt_unqueued(&r, 400, i % 8 ? 300 : 349);
	assert_in_range(r.base_us, 93, 94);
	for (i = 0; i < 20 * HPCCPP_RTT_PERIOD; i++)
		hpccpp_rtt_unqueued(&r, 900, 500);
	assert_int_equal(r.base_us, 300);
	assert_int_equal(r.min_us, 300);
	r.base_us = 50;
	/* a T that was too small is corrected after a period */
	for (i = 0; i < HPCCPP_RTT_PERIOD; i++) {
		hpccpp_rtt_sample(&r, 310);
		hpccpp_rtt_follow(&r, 30);
	}
	assert_int_equal(r.base_us, 280);
	assert_int_equal(r.min_us, 300);
	hpccpp_rtt_unqueued(&r, 900, 740);	/* of the path as it is now */
	assert_int_equal(r.base_us, 160);
}

/* An RTT more than an eighth above the path's and its queues */
static void hpccpp_waits__unstamped(void **state)
{
	u64 rtt_ns, fill_ns, queued_us;
	long double most;
	unsigned int i;

	(void)state;
	assert_false(hpccpp_waits_unstamped(112, 100, 0));
	assert_true(hpccpp_waits_unstamped(113, 100, 0));
	assert_false(hpccpp_waits_unstamped(1112, 100, 1));
	for (i = 0; i < CASES; i++) {
		fill_ns = rnd_upto(2ULL * HPCCPP_T_MAX_NS);
		queued_us = rnd_upto(2ULL * U32_MAX);
		most = 1.125L * fill_ns + 1000.0L * queued_us;
		rtt_ns = rnd_range(most / 2, 2 * most);
		expect(hpccpp_waits_unstamped(rtt_ns, fill_ns, queued_us) ? rtt_ns > most - 1 :
									 rtt_ns <= most,
		       "%lu %lu %lu, at most %Lf", rtt_ns, fill_ns, queued_us, most);
	}
}

/* Two records of one port, 10 us apart at 10 Gb/s, with this many bytes sent in between */
static void two_samples(struct int_msg *first, struct int_msg *second, u32 bytes)
{
	*first = (struct int_msg){ .room = 5, .nhop = 1, .hop = { record(6, 64, 0, 0) } };
	*second = *first;
	second->hop[0] = record(6, 64 + 10000, bytes, 0);
}

/* H3: a sample updates U, and W is computed from the window that the sample was sent under */
static void hpccpp_step__window(void **state)
{
	struct hpccpp_sample s = {
		.elapsed_ns = 10000, .sent_w = 12500 << HPCCPP_W_Q,
		.settings = {
			.t_ns = 10000, .fill_ns = 10000, .eta_permille = 950, .flows = 100,
			.mss = 1000, .w_limit = HPCCPP_W_MAX,
		},
	};
	struct int_msg first, second;
	struct hpccpp_config c;
	struct hpccpp_model m;
	long double u;
	u64 w_ai;

	(void)state;
	two_samples(&first, &second, 12480);
	hpccpp_model_init(&m, 25000 << HPCCPP_W_Q);
	s.msg = &first;
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_int_equal(m.w, 25000 << HPCCPP_W_Q);	/* nothing is measured: W is kept */
	m.u = 0;
	s.msg = &second;
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_MEASURED);
	u = (long double)m.u / HPCCPP_U_ONE;
	expect(near_abs(u, 0.999L, 0.01L), "%Lf", u);
	hpccpp_config_set(&c, &m, &s.settings);
	w_ai = hpccpp_increase(&c, 25000 << HPCCPP_W_Q, s.elapsed_ns);
	assert_int_equal(m.reference, s.sent_w);	/* not the present W */
	expect(near_abs(m.w, s.sent_w / (u / 0.95L) + w_ai, 16), "%lu", m.w);
	assert_true(m.wc == m.w);
	/* the same telemetry again: no time has passed on the node */
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_STALE);
	assert_true(m.wc == m.w);
}

/* H3, H1: with wc_previous Wc is the previous W; with queue_per_rtt a queue counts against B * T */
static void hpccpp_step__letter(void **state)
{
	struct hpccpp_sample s = {
		.elapsed_ns = 10000, .sent_w = 6000 << HPCCPP_W_Q,
		.settings = {
			.t_ns = 10000, .fill_ns = 10000, .eta_permille = 950, .flows = 1000000,
			.mss = 1000, .w_limit = HPCCPP_W_MAX, .wc_previous = true,
		},
	};
	struct int_msg first, second;
	struct hpccpp_model m;
	long double u;
	int per_rtt;

	(void)state;
	two_samples(&first, &second, 12480);
	hpccpp_model_init(&m, 12000 << HPCCPP_W_Q);
	s.msg = &first;
	hpccpp_step(&m, &s);
	s.msg = &second;
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_MEASURED);
	u = (long double)m.u / HPCCPP_U_ONE;
	assert_int_equal(m.reference, 12000 << HPCCPP_W_Q);
	expect(near_abs(m.w, m.reference / (u / 0.95L), 300), "%lu", m.w);
	/* half a packet, and a queue of B * T: it counts as 1, by default as 1/2 */
	first.hop[0].qlen = 12480;
	second.hop[0].qlen = first.hop[0].qlen;
	for (per_rtt = 0; per_rtt < 2; per_rtt++) {
		s.settings.queue_per_rtt = per_rtt;
		hpccpp_model_init(&m, 500 << HPCCPP_W_Q);
		m.newcomer = 0;
		s.msg = &first;
		hpccpp_step(&m, &s);
		s.msg = &second;
		hpccpp_step(&m, &s);
		expect(near_abs(m.u / (long double)HPCCPP_U_ONE, u + (per_rtt ? 1 : 0.5L), 0.02L),
		       "%u", m.u);
	}
}

/* The first sample of a flow sets U and W if it shows a queue of T / 8 or more, as full links do */
static void hpccpp_step__first_queue(void **state)
{
	struct hpccpp_sample s = {
		.settings = {
			.t_ns = 10000, .fill_ns = 10000, .eta_permille = 950,
			.mss = 1000, .w_limit = HPCCPP_W_MAX,
		},
	};
	struct int_msg first, second;
	struct hpccpp_model m;

	(void)state;
	two_samples(&first, &second, 12480);
	s.msg = &first;
	hpccpp_model_init(&m, 12500 << HPCCPP_W_Q);
	first.hop[0].qlen = 1520;		/* at 10 Gb/s 1.2 us */
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_int_equal(m.w, 12500 << HPCCPP_W_Q);
	hpccpp_model_init(&m, 12500 << HPCCPP_W_Q);
	first.nhop = 2;
	first.hop[1] = record(8, 64, 0, 1520);
	first.hop[0].qlen = 12000;		/* 0.96 B * T */
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_int_equal(m.busiest, 0);
	expect(near_rel(m.u / (long double)HPCCPP_U_ONE, 1.96L, 0.00001L), "%u", m.u);
	expect(near_rel(m.w, (12500 << HPCCPP_W_Q) * 0.95L / 1.96L, 0.00001L), "%lu", m.w);
	/* the longer queue decides, wherever it is */
	hpccpp_model_init(&m, 12500 << HPCCPP_W_Q);
	first.hop[1] = first.hop[0];
	first.hop[0].qlen = 8000;
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_int_equal(m.busiest, 1);
	expect(near_rel(m.u / (long double)HPCCPP_U_ONE, 1.96L, 0.00001L), "%u", m.u);
	/* later, a new path with a queue: the old path's W has to do until it is measured */
	m.newcomer--;
	first.path_id = 9;
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	expect(near_rel(m.w, (12500 << HPCCPP_W_Q) * 0.95L / 1.96L, 0.00001L), "%lu", m.w);
}

/*
 * Two flows: one has all of the link, one begins with an 8th of it. Both get a sample per RTT. The
 * newcomer has a third of the link after 32 RTTs, not only half of that; if N is given, W_ai is as
 * given from the start.
 */
static u64 newcomer_share(u32 flows)
{
	const u64 bdp = 125000 << HPCCPP_W_Q;
	struct hpccpp_model m[2];
	u64 sent[2], now = 1000000, bytes = 0;
	struct int_msg msg = { .room = 5, .nhop = 1, .hop = { record(6, 0, 0, 0) } };
	struct hpccpp_sample s = {
		.msg = &msg, .elapsed_ns = 100000,
		.settings = {
			.t_ns = 100000, .fill_ns = 100000, .eta_permille = 950, .flows = flows,
			.mss = 1448, .w_limit = HPCCPP_W_MAX,
		},
	};
	int i, k;

	hpccpp_model_init(&m[0], bdp / 100 * 95);
	m[0].newcomer = 0;
	hpccpp_model_init(&m[1], bdp / 8);
	sent[0] = m[0].w;
	sent[1] = m[1].w;
	for (i = 0; i < 33; i++) {
		u64 load = sent[0] + sent[1];

		now += 100000;
		bytes += fp_min(load, bdp) >> HPCCPP_W_Q;
		msg.hop[0] = record(6, now, bytes, fp_sub(load, bdp) >> HPCCPP_W_Q);
		for (k = 0; k < 2; k++) {
			s.sent_w = sent[k];
			sent[k] = m[k].w;
			hpccpp_step(&m[k], &s);
		}
	}
	return 100 * m[1].w / (m[0].w + m[1].w);
}

static void hpccpp_loop__newcomer(void **state)
{
	(void)state;
	expect(newcomer_share(0) >= 33, "%lu", newcomer_share(0));
	expect(newcomer_share(100) <= 20, "%lu", newcomer_share(100));
}

/*
 * Many flows begin together, in an incast: their windows come to rest at a load of 2.95, which
 * falls with each sample as a newcomer; then they rest at eta again. One that meets a short queue
 * is no crowd.
 */
static void hpccpp_step__crowd(void **state)
{
	struct int_msg msg = { .room = 5, .nhop = 1, .hop = { record(6, 0, 0, 0) } };
	struct hpccpp_sample s = {
		.msg = &msg, .elapsed_ns = 10000,
		.settings = {
			.t_ns = 10000, .fill_ns = 10000, .eta_permille = 950,
			.mss = 1000, .w_limit = HPCCPP_W_MAX,
		},
	};
	u32 eta = fp_fraction(950, 1000, HPCCPP_U_Q), i;
	struct hpccpp_model m;

	(void)state;
	hpccpp_model_init(&m, 10000 << HPCCPP_W_Q);
	msg.hop[0].qlen = 24240;		/* 1.94 B * T */
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_false(m.crowded);
	assert_int_equal(hpccpp_target(&m, eta), eta);
	hpccpp_model_init(&m, 10000 << HPCCPP_W_Q);
	msg.hop[0].qlen = 112480;		/* 9 B * T */
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_BASELINE);
	assert_true(m.crowded);
	expect(near_rel(m.w, (10000 << HPCCPP_W_Q) * 2.95L / 10, 0.001L), "%lu", m.w);
	assert_int_equal(hpccpp_probe_ns(&m, eta, 10000, m.w * 4), 40000);
	for (i = 0; i < HPCCPP_NEWCOMER; i++) {
		u32 target = hpccpp_target(&m, eta);

		expect(target == eta + HPCCPP_CROWD / HPCCPP_NEWCOMER * (HPCCPP_NEWCOMER - i),
		       "%u: %u", i, target);
		/* at its target a window stays as it is, up to W_ai */
		msg.hop[0].ts += 10000 / INT_TS_NS * INT_TS_NS;
		msg.hop[0].tx += 12480 / int_tx_unit(6) * int_tx_unit(6);
		msg.hop[0].qlen = fp_sub(target, HPCCPP_U_ONE) * 12500ULL / INT_QLEN_BYTES /
				  HPCCPP_U_ONE * INT_QLEN_BYTES;
		m.w = 10000 << HPCCPP_W_Q;
		s.sent_w = m.w;
		assert_int_equal(hpccpp_step(&m, &s), HPCCPP_MEASURED);
		if (i)	/* the first one's queue is the shorter of two */
			expect(near_rel(m.w, 10000 << HPCCPP_W_Q, 0.06L), "%u: %lu", i, m.w);
	}
	assert_false(hpccpp_target(&m, eta) != eta);
	assert_int_equal(hpccpp_step(&m, &s), HPCCPP_STALE);
}

/*
 * A flow alone on a link, so that its window alone causes the load. It gets one sample per RTT,
 * about the RTT before. It converges and stays there; with Wc = W it would oscillate.
 */
static void hpccpp_loop__converges(void **state)
{
	struct hpccpp_config c = {
		.eta = HPCCPP_U_ONE * 95 / 100, .max_stage = 0, .w_ai = 62 << HPCCPP_W_Q,
		.w_max = HPCCPP_W_MAX,
	};
	const u64 bdp = 125000 << HPCCPP_W_Q;
	struct hpccpp_model m;
	u64 sent;
	int i;

	(void)state;
	hpccpp_model_init(&m, bdp / 10);
	sent = m.w;
	for (i = 0; i < 50; i++) {
		u64 measured = sent;

		m.u = measured * HPCCPP_U_ONE / bdp;
		sent = m.w;
		m.wc = hpccpp_reference(&m, &c, measured);
		hpccpp_compute_wind(&m, &c);
		if (i > 4)
			expect(near_rel(m.w, 0.95L * bdp, 0.01L), "step %d: %lu", i, m.w / 256);
	}
}

/* The load with the longer queue is what the draft gives for a queue that stood all the time */
static void hpccpp_most_load__draft(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS >> rnd() % 20);
		struct int_msg msg = { .nhop = 2, .room = 5, .path_id = 7 };
		struct hpccpp_model m = { .nhop = 2, .path_id = 7 };
		long double want = 0;
		struct port a, b;
		unsigned int hop;
		u64 ns = 0;

		for (hop = 0; hop < 2; hop++) {
			any_ports(&a, &b, 30000000);
			if (hop) {	/* the same time at both */
				b.ns = a.ns + ns;
				b.bytes = a.bytes + (u64)(port_rate(&a) / 16 * ns);
			}
			ns = b.ns - a.ns;
			m.hop[hop] = port_record(&a);
			msg.hop[hop] = port_record(&b);
			if (b.ns / INT_TS_NS == a.ns / INT_TS_NS)
				break;
			a.queue = fp_max(a.queue, b.queue);
			b.queue = a.queue;
			want = fmaxl(want, draft_load(&a, &b, t_ns));
		}
		if (hop == 2)
			expect_load(hpccpp_most_load(&m, &msg, t_ns, ns), want);
	}
}

/* Another path, no records, or more nodes than records: nothing is known */
static void hpccpp_most_load__unknown(void **state)
{
	struct int_msg msg = { .nhop = 1, .room = 5, .hop[0] = record(6, 9 * 64, 9 * 128, 0) };
	struct hpccpp_model m = { .nhop = 1, .hop[0] = record(6, 5 * 64, 7 * 128, 0) };

	(void)state;
	assert_true(hpccpp_most_load(&m, &msg, 1000, 300) < U32_MAX);
	msg.path_id = 1;
	assert_int_equal(hpccpp_most_load(&m, &msg, 1000, 300), U32_MAX);
	msg.path_id = 0;
	m.nhop = 0;
	assert_int_equal(hpccpp_most_load(&m, &msg, 1000, 300), U32_MAX);
	msg.nhop = 0;
	assert_int_equal(hpccpp_most_load(&m, &msg, 1000, 300), U32_MAX);
	msg.nhop = 6;
	m.nhop = 6;
	assert_int_equal(hpccpp_most_load(&m, &msg, 1000, 300), U32_MAX);
	/* the same record twice: no time has passed */
	msg.nhop = 1;
	m.nhop = 1;
	msg.hop[0] = m.hop[0];
	assert_int_equal(hpccpp_most_load(&m, &msg, 1000, 300), U32_MAX);
}

/* One in 128 counts */
static void hpccpp_suffered__share(void **state)
{
	(void)state;
	assert_false(hpccpp_suffered(0, 0, 0));
	assert_false(hpccpp_suffered(1000, 0, 0));
	assert_true(hpccpp_suffered(10, 1, 0));
	assert_true(hpccpp_suffered(127, 1, 0));
	assert_false(hpccpp_suffered(128, 1, 0));
	assert_true(hpccpp_suffered(128, 0, 1));
	assert_false(hpccpp_suffered(129, 0, 1));
	assert_true(hpccpp_suffered(0, 1, 0));
	assert_true(hpccpp_suffered(U32_MAX, U32_MAX, U32_MAX));
}

/* Two samples in a row, or three among ten, end the trust; a queue restores it */
static void hpccpp_doubt__rises(void **state)
{
	const u32 eta = HPCCPP_U_ONE / 20 * 19, low = eta - 1;
	s32 d = 0;
	int i;

	(void)state;
	d = hpccpp_doubt(hpccpp_doubt(0, true, low, eta), true, 0, eta);
	assert_int_equal(d, HPCCPP_DOUBT_MAX);
	assert_int_equal(hpccpp_doubt(d, true, low, eta), HPCCPP_DOUBT_MAX);
	/* among ten: at the first, fifth and tenth */
	d = 0;
	for (i = 1; i <= 10; i++) {
		assert_true(d < HPCCPP_DOUBT_MAX);
		d = hpccpp_doubt(d, i == 1 || i == 5 || i == 10, low, eta);
	}
	assert_int_equal(d, HPCCPP_DOUBT_MAX);
	/* one in nine never does */
	d = 0;
	for (i = 0; i < 1000; i++) {
		d = hpccpp_doubt(d, i % 9 == 0, low, eta);
		assert_true(d <= HPCCPP_DOUBT_STEP);
	}
	/* from eta on, or unknown: it stays */
	assert_int_equal(hpccpp_doubt(5, true, eta, eta), 5);
	assert_int_equal(hpccpp_doubt(5, true, U32_MAX, eta), 5);
	assert_int_equal(hpccpp_doubt(-5, true, HPCCPP_U_ONE / 8 * 9 - 1, eta), -5);
	/* a queue of T / 8 */
	d = hpccpp_doubt(15, true, HPCCPP_U_ONE / 8 * 9, eta);
	assert_int_equal(d, -HPCCPP_DOUBT_MAX);
	for (i = 0; i < 3; i++) {
		d = hpccpp_doubt(d, true, low, eta);
		assert_true(d < HPCCPP_DOUBT_MAX);
	}
	/* without losses back to 0, from both sides */
	for (i = 0; i < HPCCPP_DOUBT_MAX; i++)
		d = hpccpp_doubt(d, false, 0, eta);
	assert_int_equal(d, 0);
	assert_int_equal(hpccpp_doubt(-1, false, low, eta), 0);
}

static void hpccpp_carried__rate(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u64 bytes = rnd_upto((u64)1 << 40), ns = rnd_range(1, (u64)1 << 34);
		u32 t_ns = rnd_range(HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
		long double want = fminl((long double)bytes * t_ns / ns, HPCCPP_W_MAX);
		u64 got = hpccpp_carried(bytes, ns, t_ns);

		expect(got <= want + 1 && want - got < 1.001L, "%lu, not %Lf", got, want);
	}
	/* responses that arrive together */
	assert_int_equal(hpccpp_carried(1, 0, 1000), HPCCPP_W_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hpccpp_link_load__draft),
		cmocka_unit_test(hpccpp_link_load__nonsense),
		cmocka_unit_test(hpccpp_link_load__stale),
		cmocka_unit_test(hpccpp_link_load__saturation),
		cmocka_unit_test(hpccpp_link_load__restarted),
		cmocka_unit_test(hpccpp_measure__draft),
		cmocka_unit_test(hpccpp_measure__path),
		cmocka_unit_test(hpccpp_drain_ns__bounds),
		cmocka_unit_test(hpccpp_compute_wind__draft),
		cmocka_unit_test(hpccpp_compute_wind__stages),
		cmocka_unit_test(hpccpp_reference__bounds),
		cmocka_unit_test(hpccpp_bdp__products),
		cmocka_unit_test(hpccpp_w_ai_by_load__oracle),
		cmocka_unit_test(hpccpp_mean_update__bounds),
		cmocka_unit_test(hpccpp_config_set__draft),
		cmocka_unit_test(hpccpp_config_set__own_link),
		cmocka_unit_test(hpccpp_config_set__rate_between),
		cmocka_unit_test(hpccpp_increase__rounds),
		cmocka_unit_test(hpccpp_newcomer_w_ai__bounds),
		cmocka_unit_test(hpccpp_probe_ns__bounds),
		cmocka_unit_test(hpccpp_reduced__never_above),
		cmocka_unit_test(hpccpp_rtt__follows),
		cmocka_unit_test(hpccpp_rtt__unqueued),
		cmocka_unit_test(hpccpp_waits__unstamped),
		cmocka_unit_test(hpccpp_step__window),
		cmocka_unit_test(hpccpp_step__letter),
		cmocka_unit_test(hpccpp_step__first_queue),
		cmocka_unit_test(hpccpp_loop__newcomer),
		cmocka_unit_test(hpccpp_step__crowd),
		cmocka_unit_test(hpccpp_loop__converges),
		cmocka_unit_test(hpccpp_most_load__draft),
		cmocka_unit_test(hpccpp_most_load__unknown),
		cmocka_unit_test(hpccpp_suffered__share),
		cmocka_unit_test(hpccpp_doubt__rises),
		cmocka_unit_test(hpccpp_carried__rate),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
