// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/prague_model.h, in its order, against the draft in floating
 * point (prague_oracle.h), for RTTs of 10 us to 1 s and windows of 2 to 2^20
 * packets; what must never happen is tested with any values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "prague_oracle.h"

/* Round-trip times in the model's unit, 1/8 us */
#define US(x)		((u32)((x) * 8))
#define RTT_LEAST	US(10)
#define RTT_MOST	US(1000000)
#define CWND_MOST	0x100000U	/* 2^20 */

/* Spread over the orders of magnitude */
static u64 rnd_log(u64 min, u64 max)
{
	u64 x = expl(logl(min) + (logl(max) - logl(min)) * q(rnd(), 64));

	return fp_min(fp_max(x, min), max);
}

static struct prague_model any_model(void)
{
	struct prague_model m;

	m.alpha = rnd_upto(PRAGUE_ONE);
	m.frac = rnd_upto(PRAGUE_ONE - 1);
	m.cwnd = rnd_range(1, U32_MAX);
	m.acked = rnd_upto(U32_MAX);
	m.marked = rnd_upto(U32_MAX);
	return m;
}

static void prague_ewma__is_the_drafts(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double frac, want;
		struct prague_model m = any_model();

		m.acked = rnd_range(1, CWND_MOST);
		m.marked = rnd_upto(m.acked);
		frac = (long double)m.marked / m.acked;
		want = draft_ewma(alpha_of(&m), frac, 1 / 16.0L);
		prague_ewma(&m);
		expect_sane(&m);
		/* frac has 30 bits */
		expect(near_abs(alpha_of(&m), want, ldexpl(1, -30)), "%.12Lf, not %.12Lf",
		       alpha_of(&m), want);
		assert_int_equal(m.acked, 0);
		assert_int_equal(m.marked, 0);
	}
}

static void prague_ewma__nothing_acked(void **state)
{
	struct prague_model m = any_model();
	u64 alpha = m.alpha;

	(void)state;
	m.acked = 0;
	assert_int_equal(prague_ewma(&m), 0);
	assert_int_equal(m.alpha, alpha);
}

/* alpha does not get stuck: without marks it falls to exactly 0. */
static void prague_ewma__reaches_zero(void **state)
{
	struct prague_model m = { .alpha = PRAGUE_ONE };
	int rounds = 0;

	(void)state;
	while (m.alpha) {
		u64 before = m.alpha;

		prague_count(&m, 10, 0);
		prague_ewma(&m);
		expect(m.alpha < before, "stuck at %lu", m.alpha);
		assert_true(++rounds < 100000);
	}
}

/* 1 packet of 100000 is marked in every round: alpha converges to that fraction. */
static void prague_ewma__light_marking(void **state)
{
	struct prague_model m = { .alpha = PRAGUE_ONE };
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		prague_count(&m, 100000, 1);
		prague_ewma(&m);
	}
	expect(near_rel(alpha_of(&m), 0.00001L, 0.001L), "%.9Lf", alpha_of(&m));
}

static void prague_count__saturates(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prague_model m = any_model(), before = m;
		u32 a = rnd_upto(U32_MAX), b = rnd_upto(U32_MAX);

		prague_count(&m, a, b);
		expect(m.acked == fp_min((u64)before.acked + a, U32_MAX), "%u", m.acked);
		expect(m.marked == fp_min((u64)before.marked + b, U32_MAX), "%u", m.marked);
	}
}

static void prague_rtt_virt__modes(void **state)
{
	(void)state;
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_OFF, US(25000)), US(5000));
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_MAX, US(25000)), US(25000));
	assert_int_equal(prague_rtt_virt(US(26000), PRAGUE_RTT_MAX, US(25000)), US(26000));
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_EXTRA, US(25000)), US(30000));
	assert_int_equal(prague_rtt_virt(U32_MAX, PRAGUE_RTT_EXTRA, US(25000)), U32_MAX);
}

static void prague_ai__is_one_over_m_squared(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double want;
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST), target = rnd_log(US(100), US(100000));
		u32 virt = prague_rtt_virt(srtt, PRAGUE_RTT_MAX, target);

		want = draft_ai(srtt, virt);
		expect(near_rel(q(prague_ai(srtt, virt), PRAGUE_AI_Q), want, 0.001L),
		       "%u / %u: %.12Lg, not %.12Lg", srtt, virt,
		       q(prague_ai(srtt, virt), PRAGUE_AI_Q), want);
	}
	assert_true(prague_ai(US(1000), US(1000)) == PRAGUE_AI_ONE);
	assert_true(prague_ai(US(1000), 0) == PRAGUE_AI_ONE);
}

static void prague_boost__doubles(void **state)
{
	u64 ai = PRAGUE_AI_ONE / 4;

	(void)state;
	assert_true(prague_boost(ai, 1000, PRAGUE_PATIENCE - 1) == ai);
	assert_true(prague_boost(ai, 1000, PRAGUE_PATIENCE) == 2 * ai);
	assert_true(prague_boost(ai, 1000, PRAGUE_PATIENCE + 2) == 8 * ai);
	/* a sixteenth of the window, but never less than the additive increase */
	assert_true(prague_boost(ai, 16, 60) == PRAGUE_AI_ONE);
	assert_true(prague_boost(ai, 32, 60) == 2 * PRAGUE_AI_ONE);
	assert_true(prague_boost(PRAGUE_AI_ONE, 2, 60) == PRAGUE_AI_ONE);
	/* 400 Gb/s and 300 ms are ten million packets */
	assert_true(prague_boost(ai, 10000000, U32_MAX) == 625000 * PRAGUE_AI_ONE);
}

/* A burst: three of ten packets, or more, met no queue. Older rounds count less. */
static void prague_queue__of_a_burst(void **state)
{
	struct prague_queue queue = { 0 };
	int i;

	(void)state;
	prague_queue_count(&queue, 69, PRAGUE_IDLE_US + 1, 0);
	prague_queue_count(&queue, 31, PRAGUE_IDLE_US, 0);
	assert_true(prague_queue_is_burst(&queue, 2000));
	/* marks without a queue, and with a long one, always count */
	assert_false(prague_queue_is_burst(&queue, PRAGUE_QUEUE_US));
	assert_true(prague_queue_is_burst(&queue, PRAGUE_BURST_US));
	assert_false(prague_queue_is_burst(&queue, PRAGUE_BURST_US + 1));
	prague_queue_count(&queue, 4, U32_MAX, 0);
	assert_false(prague_queue_is_burst(&queue, 2000));
	prague_queue_count(&queue, 100, 0, 0);
	for (i = 0; i < 2; i++) {
		prague_queue_round(&queue);
		prague_queue_count(&queue, 100, 1000, 0);
	}
	assert_false(prague_queue_is_burst(&queue, 2000));
	/* large windows, and ACKs of any number of packets, do not overflow */
	for (i = 0; i < 1000; i++)
		prague_queue_count(&queue, i % 10 ? 1000 : U32_MAX, i % 2 * 1000, 0);
	assert_true(queue.idle <= queue.acked);
	assert_true(prague_queue_is_burst(&queue, 2000));
}

/* At 50 Mb/s a packet needs 240 us, also where the shortest RTT is that of a SYN. */
static void prague_queue__own_time(void **state)
{
	struct prague_queue queue = { 0 };

	(void)state;
	prague_queue_count(&queue, 10, PRAGUE_IDLE_US + 240, 240000);
	assert_int_equal(queue.idle, 10);
	prague_queue_count(&queue, 10, PRAGUE_IDLE_US + 241, 240000);
	assert_int_equal(queue.idle, 10);
	/* where a packet takes longer, or seems to, one that waits for 1 ms has met a queue */
	prague_queue_count(&queue, 10, PRAGUE_QUEUE_US + 1, 1200000);
	assert_int_equal(queue.idle, 10);
	/* it says when a packet met no queue, not how long one that met one is */
	assert_false(prague_queue_is_burst(&queue, PRAGUE_QUEUE_US));
	assert_true(prague_queue_is_burst(&queue, PRAGUE_QUEUE_US + 1));
	prague_queue_count(&queue, 1, U32_MAX, U32_MAX);
	assert_int_equal(queue.idle, 10);
}

/* One ACK, with any values of the range. */
static void prague_increase__is_the_drafts(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double before, want;
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST);
		u32 virt = prague_rtt_virt(srtt, PRAGUE_RTT_MAX, US(25000));
		struct prague_model m = { .cwnd = rnd_log(2, CWND_MOST),
					  .frac = rnd_upto(PRAGUE_ONE - 1) };
		u32 unmarked = rnd_range(0, fp_min(m.cwnd, 64));

		before = window_of(&m);
		want = draft_increase(unmarked, draft_ai(srtt, virt), before);
		prague_increase(&m, unmarked, prague_ai(srtt, virt));
		expect_sane(&m);
		expect(near_abs(window_of(&m) - before, want,
				want * 0.001L + ldexpl(before + 2, -63)),
		       "cwnd %u, rtt %u: %.12Lg, not %.12Lg", m.cwnd, srtt / 8,
		       window_of(&m) - before, want);
	}
}

/* A million ACKs of a window of 2^20 at an RTT of 10 us: nothing is lost. */
static void prague_increase__adds_up(void **state)
{
	struct prague_model m = { .cwnd = CWND_MOST };
	u64 ai = prague_ai(US(10), US(25000));
	int i;

	(void)state;
	for (i = 0; i < CASES; i++)
		prague_increase(&m, 1, ai);
	expect(near_rel(window_of(&m) - CWND_MOST,
			(long double)CASES * draft_ai(10, 25000) / CWND_MOST, 0.0001L),
	       "%.12Lg", window_of(&m) - CWND_MOST);
}

static void prague_increase__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prague_model m = any_model(), before = m;

		prague_increase(&m, rnd_upto(U32_MAX), rnd_upto(U64_MAX));
		expect_sane(&m);
		expect(m.cwnd >= before.cwnd, "%u -> %u", before.cwnd, m.cwnd);
	}
}

static void prague_reduce_holds(const u64 v[4])
{
	struct prague_model m = { .alpha = v[0], .cwnd = v[1], .frac = v[2] };

	checked_reduce(&m, m.alpha >> 1);
}

static const struct check prague_reduce_exact = {
	prague_reduce_holds, { PRAGUE_ONE, U32_MAX, PRAGUE_ONE - 1 }
};

static void prague_reduce__random(void **state)
{
	(void)state;
	check_random(&prague_reduce_exact);
}

static void prague_reduce__extremes(void **state)
{
	static const u64 alphas[] = { 0, 1, 2, PRAGUE_ONE / 2, PRAGUE_ONE - 1, PRAGUE_ONE };
	static const u64 fracs[] = { 0, 1, PRAGUE_ONE / 2, PRAGUE_ONE - 1 };
	u64 cwnds[EXTREMES];
	size_t a, f;
	int c, n = extremes(U32_MAX, cwnds);

	(void)state;
	for (a = 0; a < ARRAY_SIZE(alphas); a++)
		for (f = 0; f < ARRAY_SIZE(fracs); f++)
			for (c = 0; c < n; c++) {
				u64 v[4] = { alphas[a], cwnds[c], fracs[f] };

				prague_reduce_holds(v);
			}
}

/* A steady sawtooth, carried over 100000 cuts, against the same in floating point */
static void prague_reduce__sawtooth(void **state)
{
	static const u32 one_in[] = { 1, 2, 10, 100, 1000, 100000 };
	size_t a;
	int i;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(one_in); a++) {
		long double want, alpha;
		struct prague_model m = { .alpha = PRAGUE_ONE / one_in[a], .cwnd = 40 };

		want = 40;
		alpha = alpha_of(&m);
		for (i = 0; i < 100000; i++) {
			prague_grow(&m, PRAGUE_AI_ONE);
			want += 1;
			checked_reduce(&m, m.alpha >> 1);
			want = fmaxl(want * (1 - alpha / 2), 2);
		}
		expect(near_rel(window_of(&m), want, ldexpl(1, -30)), "1/%u: %.12Lf, not %.12Lf",
		       one_in[a], window_of(&m), want);
	}
}

/* 2.4.1 */
static void prague_loss_share__factors(void **state)
{
	(void)state;
	expect(near_abs(q(prague_loss_share(false), PRAGUE_Q), 0.5L, ldexpl(1, -50)), "Reno");
	expect(near_abs(q(prague_loss_share(true), PRAGUE_Q), 0.3L, ldexpl(1, -50)), "CUBIC");
}

static void prague_pacing_rate__is_the_drafts(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double want;
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST), cwnd = rnd_log(1, CWND_MOST);
		u32 mss = rnd_range(88, 65535);

		want = draft_pacing(mss, cwnd, srtt / 8.0L);
		expect(near_abs(prague_pacing_rate(mss, cwnd, 0, srtt, false), want, 1), "%Lf",
		       want);
		expect(near_abs(prague_pacing_rate(mss, cwnd, 0, srtt, true), 2 * want, 1), "%Lf",
		       want);
	}
	assert_int_equal(prague_pacing_rate(1448, 10, 0, 0, true), 0);
	assert_true(prague_pacing_rate(U32_MAX, U32_MAX, 0, 1, true) == U64_MAX);
}

static void prague_pacing_rate__fraction(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		long double want;
		struct prague_model m = {
			.cwnd = rnd_range(1, 4), .frac = rnd_upto(PRAGUE_ONE - 1),
		};
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST);

		want = draft_pacing(1448, window_of(&m), srtt / 8.0L);
		/* bytes per round are whole */
		expect(near_abs(prague_pacing_rate(1448, m.cwnd, m.frac, srtt, false), want,
				8000000.0L / srtt + 1), "%Lf", want);
		assert_int_equal(prague_pacing_rate(1448, m.cwnd, m.frac, 0, false), 0);
	}
}

static void prague_burst__table(void **state)
{
	(void)state;
	/* 1 Gb/s: 31250 bytes in 250 us */
	assert_int_equal(prague_burst(125000000, 250, 1448), 21);
	assert_int_equal(prague_burst(1250000, 250, 1448), 1);
	assert_int_equal(prague_burst(0, 250, 0), 1);
	assert_int_equal(prague_burst(U64_MAX, U32_MAX, 1), U16_MAX);
}

static void prague_cbrt__exact(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u64 x = rnd_upto(FP_ONE(63) - 1), r = prague_cbrt(x);

		expect((u128)r * r * r <= x, "%lu: %lu", x, r);
		expect(r == FP_ONE(21) - 1 || (u128)(r + 1) * (r + 1) * (r + 1) > x,
		       "%lu: %lu", x, r);
	}
}

static void prague_cubic_window__is_rfc9438(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double want;
		u32 lost_at = rnd_log(2, CWND_MOST), t = rnd_log(1, 100000);
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST), got;
		bool fast = rnd_upto(1);

		want = rfc9438_window(lost_at, fast, t / 1e3L, srtt / 8e6L);
		/* K is rounded to a millisecond, windows to packets */
		long double k = cbrtl((fast ? 0.375L : 0.75L) * lost_at);
		long double off = fabsl(t / 1e3L - k) + 0.001L;
		long double tolerance = 3 + 1.2L * off * off * 0.001L;

		got = prague_cubic_window(lost_at, fast, t, srtt);
		expect(near_abs(got, fminl(want, U32_MAX), tolerance),
		       "lost at %u, fast %d, t %u, srtt %u: %u, not %Lf", lost_at, fast, t, srtt,
		       got, want);
	}
}

/* After 1000 s the curve is flat: it must not overflow. */
static void prague_cubic_window__long_ago(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u32 lost_at = rnd_log(2, CWND_MOST), t = rnd_range(1000000, U32_MAX);
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST);

		assert_int_equal(prague_cubic_window(lost_at, true, t, srtt),
				 prague_cubic_window(lost_at, true, 1000000, srtt));
	}
}

static void prague_cubic_max__fast_convergence(void **state)
{
	(void)state;
	assert_int_equal(prague_cubic_max(100, false), 100);
	assert_int_equal(prague_cubic_max(100, true), 85);
	assert_int_equal(prague_cubic_max(1, true), 0);
	assert_int_equal(prague_cubic_max(U32_MAX, true), 3650722200U);
}

static void prague_cubic_ai__bounded(void **state)
{
	(void)state;
	assert_true(prague_cubic_ai(100, 90) == 0);
	assert_true(prague_cubic_ai(100, 101) == PRAGUE_AI_ONE);
	assert_true(prague_cubic_ai(100, 1000) == 50 * PRAGUE_AI_ONE);
	assert_true(prague_cubic_ai(1, 1000) == PRAGUE_AI_ONE);
	assert_true(prague_cubic_ai(U32_MAX, U32_MAX) == 0);
	/* 400 Gb/s and 300 ms */
	assert_true(prague_cubic_ai(7000000, 10000000) == 3000000 * PRAGUE_AI_ONE);
}

/* A round of @n samples of @rtt_us; true if slow start ends with it */
static void prague_rtt__shortest(void **state)
{
	struct prague_model m;

	(void)state;
	prague_model_init(&m, 10);
	assert_int_equal(m.rtt_us, 0);
	prague_rtt(&m, 30000);
	prague_rtt(&m, 20000);
	prague_rtt(&m, 40000);
	assert_int_equal(m.rtt_us, 20000);
	prague_rtt(&m, 0);	/* 0 is none: the shortest there is */
	assert_int_equal(m.rtt_us, 1);
	prague_ewma(&m);
	assert_int_equal(m.rtt_us, 0);
}

static bool hystart(struct prague_hystart *h, u32 rtt_us, unsigned int n)
{
	while (n--)
		prague_hystart_rtt(h, rtt_us);
	return prague_hystart_round(h);
}

static void prague_hystart__ends(void **state)
{
	struct prague_hystart h = { 0 };
	int i;

	(void)state;
	assert_false(hystart(&h, 40000, 10));
	/* the limit is an eighth of the RTT, 4 to 16 ms */
	assert_false(hystart(&h, 44999, 10));
	assert_int_equal(h.css, 0);
	assert_false(hystart(&h, 50624, 10));
	assert_int_equal(h.css, 2);	/* conservative slow start began in this round */
	for (i = 0; i < 3; i++)
		assert_false(hystart(&h, 60000, 10));
	assert_true(hystart(&h, 60000, 10));
}

static void prague_hystart__few_samples(void **state)
{
	struct prague_hystart h = { 0 };

	(void)state;
	assert_false(hystart(&h, 40000, 10));
	assert_false(hystart(&h, 80000, PRAGUE_HYSTART_SAMPLES - 1));
	assert_int_equal(h.css, 0);
}

static void prague_hystart__goes_on(void **state)
{
	struct prague_hystart h = { 0 };

	(void)state;
	hystart(&h, 40000, 10);
	hystart(&h, 50000, 10);
	assert_int_equal(h.css, 2);
	/* a moment of delay only */
	hystart(&h, 49900, 10);
	assert_int_equal(h.css, 0);
}

/* Beyond what the state can hold there is no end by RTT, and none at once. */
static void prague_hystart__long_rtt(void **state)
{
	struct prague_hystart h = { 0 };

	(void)state;
	assert_false(hystart(&h, 4100000, 10));
	assert_false(hystart(&h, 4116000, 10));
	assert_int_equal(h.css, 2);
	h = (struct prague_hystart){ 0 };
	assert_false(hystart(&h, U32_MAX / 2, 10));
	assert_false(hystart(&h, U32_MAX, 10));
	assert_int_equal(h.css, 0);
	h = (struct prague_hystart){ 0 };
	hystart(&h, 0, 10);
	assert_int_equal(h.last_min, 1);
}

static void prague_probe_ai__twentieth(void **state)
{
	(void)state;
	assert_true(prague_probe_ai(2) == PRAGUE_AI_ONE);
	assert_true(prague_probe_ai(20) <= PRAGUE_AI_ONE);
	assert_true(prague_probe_ai(1000) <= 50 * PRAGUE_AI_ONE);
	assert_true(prague_probe_ai(1000) > 50 * PRAGUE_AI_ONE - 1000);
	assert_true(prague_probe_ai(10000000) > 499999 * PRAGUE_AI_ONE);
	assert_true(prague_probe_ai(U32_MAX) == U64_MAX);
}

/* Random RTTs, in the state's unit, beside RFC 9406 4.3 in floating point */
static void prague_hystart__is_rfc9406(void **state)
{
	int i, j, k, n;

	(void)state;
	for (i = 0; i < CASES / 20; i++) {
		struct prague_hystart h = { 0 };
		struct rfc9406 want = rfc9406_init();
		u32 base = rnd_log(100, 1000000);

		for (j = 0; j < 30 && !want.over; j++) {
			n = rnd_upto(20);
			for (k = 0; k < n; k++) {
				u32 rtt = (base + rnd_upto(base / 8 + 6000)) & ~63U;

				prague_hystart_rtt(&h, rtt);
				rfc9406_rtt(&want, rtt / 1e3L);
			}
			rfc9406_round(&want);
			expect(prague_hystart_round(&h) == want.over, "case %d, round %d", i, j);
			expect(!!h.css == want.css, "case %d, round %d: %u", i, j, h.css);
			base += rnd_upto(base / 16);
		}
	}
}

/* There RTTs change nothing but the shortest. */
static void prague_hystart__full_path(void **state)
{
	int i, k, n;

	(void)state;
	for (i = 0; i < CASES / 20; i++) {
		struct prague_hystart before, h = {
			.last_min = rnd_upto(2000), .css = 1 + rnd_upto(5),
		};

		before = h;
		n = rnd_upto(20);
		for (k = 0; k < n; k++)
			prague_hystart_rtt(&h, rnd_log(1, 1000000));
		assert_int_equal(!!h.round_min, !!n);
		h.round_min = 0;
		expect(!memcmp(&h, &before, sizeof(h)), "case %d", i);
		assert_false(prague_hystart_round(&h));
	}
}

/* In a round all packets of the window are acknowledged. */
static void prague_css_growth__is_an_eighth_or_half_of_that(void **state)
{
	struct prague_hystart by_rtt = { .css = 1, .css_base = 100 }, full_path = { .css = 1 };
	u32 n;

	(void)state;
	for (n = 1; n < 512; n++) {
		u64 rtt = prague_css_growth(&by_rtt, n), path = prague_css_growth(&full_path, n);

		expect(near_abs(rtt, ldexpl(n / 8.0L, PRAGUE_AI_Q), 1), "%u: %lu", n, rtt);
		expect(near_abs(path, ldexpl(n / 16.0L, PRAGUE_AI_Q), 1), "%u: %lu", n, path);
	}
	assert_true(prague_css_growth(&by_rtt, U32_MAX) == U64_MAX);
}

static void prague_gap__is_time_per_packet(void **state)
{
	int i;

	(void)state;
	assert_int_equal(prague_gap(PRAGUE_GAP_PACKETS - 1, 1000), 0);
	assert_int_equal(prague_gap(PRAGUE_GAP_PACKETS, 0), 0);
	assert_int_equal(prague_gap(9, 1818), 202000);
	assert_int_equal(prague_gap(U32_MAX, 1), 1);
	assert_true(prague_gap(PRAGUE_GAP_PACKETS, U32_MAX) == U32_MAX);
	assert_true(prague_pipe(65000, 0) == U32_MAX);
	assert_int_equal(prague_pipe(0, 1000), PRAGUE_MIN_CWND);
	for (i = 0; i < CASES; i++) {
		long double want, pipe;
		u32 us = rnd_log(1, 4000000), packets = rnd_log(PRAGUE_GAP_PACKETS, 1000000);
		u32 rtt = rnd_log(10, 1000000), gap = prague_gap(packets, us);

		want = 1000.0L * us / packets;
		expect(near_abs(gap, fmaxl(want, 1), 1), "%u in %u us: %u", packets, us, gap);
		pipe = 1000.0L * rtt / gap;
		pipe = fmaxl(fminl(pipe, U32_MAX), 2);
		expect(near_abs(prague_pipe(rtt, gap), pipe, 1), "%u us, %u ns", rtt, gap);
	}
}

static void prague_start_rate__between_window_and_path(void **state)
{
	int i;

	(void)state;
	assert_int_equal(prague_start_rate(1000, 1448, 0, true), 8000);
	assert_int_equal(prague_start_rate(1000, 1448, 0, false), 2000);
	for (i = 0; i < CASES; i++) {
		long double want;
		u64 rate = rnd_log(1000, 100000000000ULL), got;
		u32 mss = rnd_log(88, 65495), gap = rnd_log(1, U32_MAX);
		bool early = rnd_upto(1);

		want = start_rate(rate, mss * 1e9L / gap, early);
		got = prague_start_rate(rate, mss, gap, early);
		expect(near_abs(got, want, 2), "%lu, gap %u: %lu, not %Lf", rate, gap, got, want);
		expect(got >= rate && got <= rate * 8, "%lu of %lu", got, rate);
	}
	assert_true(prague_start_rate(U64_MAX, 1, 1, true) >= U64_MAX >> 3);
}

/* Do marks end slow start in the first marked round of a window of @acked packets? */
static bool start_ends(u32 acked, u32 marked, u32 queue_us, bool full, bool small)
{
	struct prague_model m = { .cwnd = acked, .acked = acked, .marked = marked };
	struct prague_hystart h = { .css = full };

	m.rtt_us = 10000 + queue_us;
	return prague_start_ends(&h, &m, 10000, small);
}

static void prague_start_ends__with_most_marked(void **state)
{
	u32 acked, marked;

	(void)state;
	assert_false(start_ends(0, 0, 5000, true, false));
	assert_true(start_ends(1, 1, 0, false, false));
	assert_true(start_ends(U32_MAX, U32_MAX, 0, false, false));
	for (acked = 1; acked < 300; acked++) {
		for (marked = 0; marked <= acked; marked++) {
			double share = (double)marked / acked;

			assert_int_equal(start_ends(acked, marked, 0, false, false), share > 0.875);
			assert_int_equal(start_ends(acked, marked, 1501, false, true),
					 share > 0.875);
			assert_false(start_ends(acked, marked, 1500, false, true));
			assert_int_equal(start_ends(acked, marked, 0, true, false), share > 0.5);
		}
	}
}

/* A small window without a queue: four rounds in a row do; those that used little say nothing. */
static void prague_start_ends__with_marked_rounds(void **state)
{
	struct prague_model full = { .cwnd = 40, .acked = 10, .marked = 10, .rtt_us = 10000 };
	struct prague_model half = { .cwnd = 40, .acked = 10, .marked = 5, .rtt_us = 10000 };
	struct prague_model little = { .cwnd = 40, .acked = 9, .marked = 9, .rtt_us = 50000 };
	struct prague_hystart h = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_false(prague_start_ends(&h, &full, 10000, true));
	assert_false(prague_start_ends(&h, &half, 10000, true));
	for (i = 0; i < 3; i++) {
		assert_false(prague_start_ends(&h, &full, 10000, true));
		assert_false(prague_start_ends(&h, &little, 10000, true));
	}
	assert_true(prague_start_ends(&h, &full, 10000, true));
	assert_true(prague_start_ends(&h, &full, 10000, true));
}

static void prague_start_window__is_what_was_delivered(void **state)
{
	int i;

	(void)state;
	/* the last doubling is undone; growth by an eighth, too; what waited does not count */
	assert_int_equal(prague_start_window(40, 20, 10000, 10000), 20);
	assert_int_equal(prague_start_window(45, 40, 10000, 10000), 40);
	assert_int_equal(prague_start_window(45, 40, 10000, 12500), 32);
	/* no less than a half, no more than there was */
	assert_int_equal(prague_start_window(40, 3, 10000, 10000), 20);
	assert_int_equal(prague_start_window(40, 90, 10000, 10000), 40);
	assert_int_equal(prague_start_window(2, 0, 0, 0), PRAGUE_MIN_CWND);
	for (i = 0; i < CASES; i++) {
		long double want;
		u32 cwnd = rnd_log(2, CWND_MOST), delivered = rnd_log(1, CWND_MOST);
		u32 min_rtt = rnd_log(10, 1000000), rtt = min_rtt + rnd_upto(min_rtt);
		u32 got = prague_start_window(cwnd, delivered, min_rtt, rtt);

		want = (long double)delivered * min_rtt / rtt;
		want = fmaxl(fmaxl(fminl(want, cwnd), cwnd / 2), 2);
		expect(near_abs(got, want, 1), "%u of %u: %u, not %Lf", delivered, cwnd, got, want);
	}
}

/*
 * Steady state of the whole model: with a marking probability p per packet, the window tends
 * to 2 (1 - p) / p, by the draft's formula.
 */
static void steady_state__window(void **state)
{
	static const u32 one_in[] = { 10, 20, 50, 100 };
	size_t a;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(one_in); a++) {
		long double sum, p, want;
		struct prague_model m;
		int round, rounds = 20000;

		sum = 0;
		p = 1.0L / one_in[a];
		want = 2 * (1 - p) / p;
		prague_model_init(&m, want);
		m.alpha = PRAGUE_ONE / one_in[a];
		for (round = 0; round < rounds; round++) {
			bool cut = false;
			u32 i, packets = m.cwnd;

			for (i = 0; i < packets; i++) {
				bool mark = rnd() % one_in[a] == 0;

				prague_count(&m, 1, mark);
				if (mark && !cut) {
					prague_reduce(&m, m.alpha >> 1);
					cut = true;
				} else if (!mark) {
					prague_increase(&m, 1, PRAGUE_AI_ONE);
				}
			}
			prague_ewma(&m);
			sum += window_of(&m);
		}
		/* rounds without a mark (13 %) make it somewhat larger */
		expect(sum / rounds / want > 0.95L && sum / rounds / want < 1.25L,
		       "p %Lf: %Lf, not %Lf", p, sum / rounds, want);
	}
}

int main(void)
{
	const struct CMUnitTest prague_model[] = {
		cmocka_unit_test(prague_count__saturates),
		cmocka_unit_test(prague_ewma__is_the_drafts),
		cmocka_unit_test(prague_ewma__nothing_acked),
		cmocka_unit_test(prague_ewma__reaches_zero),
		cmocka_unit_test(prague_ewma__light_marking),
		cmocka_unit_test(prague_rtt_virt__modes),
		cmocka_unit_test(prague_ai__is_one_over_m_squared),
		cmocka_unit_test(prague_boost__doubles),
		cmocka_unit_test(prague_queue__of_a_burst),
		cmocka_unit_test(prague_queue__own_time),
		cmocka_unit_test(prague_increase__is_the_drafts),
		cmocka_unit_test(prague_increase__adds_up),
		cmocka_unit_test(prague_increase__any),
		cmocka_unit_test(prague_reduce__random),
		cmocka_unit_test(prague_reduce__extremes),
		cmocka_unit_test(prague_reduce__sawtooth),
		cmocka_unit_test(prague_loss_share__factors),
		cmocka_unit_test(prague_pacing_rate__is_the_drafts),
		cmocka_unit_test(prague_pacing_rate__fraction),
		cmocka_unit_test(prague_burst__table),
		cmocka_unit_test(prague_cbrt__exact),
		cmocka_unit_test(prague_cubic_window__is_rfc9438),
		cmocka_unit_test(prague_cubic_window__long_ago),
		cmocka_unit_test(prague_cubic_max__fast_convergence),
		cmocka_unit_test(prague_cubic_ai__bounded),
		cmocka_unit_test(prague_rtt__shortest),
		cmocka_unit_test(prague_hystart__ends),
		cmocka_unit_test(prague_hystart__few_samples),
		cmocka_unit_test(prague_hystart__goes_on),
		cmocka_unit_test(prague_hystart__long_rtt),
		cmocka_unit_test(prague_probe_ai__twentieth),
		cmocka_unit_test(prague_hystart__is_rfc9406),
		cmocka_unit_test(prague_hystart__full_path),
		cmocka_unit_test(prague_gap__is_time_per_packet),
		cmocka_unit_test(prague_css_growth__is_an_eighth_or_half_of_that),
		cmocka_unit_test(prague_start_rate__between_window_and_path),
		cmocka_unit_test(prague_start_ends__with_most_marked),
		cmocka_unit_test(prague_start_ends__with_marked_rounds),
		cmocka_unit_test(prague_start_window__is_what_was_delivered),
		cmocka_unit_test(steady_state__window),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(prague_model, NULL, NULL);
}
