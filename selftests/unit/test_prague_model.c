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
	m.cwnd = rnd_upto(U32_MAX);
	m.acked = rnd_upto(U32_MAX);
	m.marked = rnd_upto(U32_MAX);
	if (!m.cwnd)
		m.frac = fp_max(m.frac, PRAGUE_MIN_FRACTION);
	return m;
}

static void prague_ewma__is_the_drafts(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double frac, want;
		struct prague_model m = any_model();
		unsigned int shift = rnd_range(1, 10);

		m.acked = rnd_range(1, CWND_MOST);
		m.marked = rnd_upto(m.acked);
		frac = (long double)m.marked / m.acked;
		want = draft_ewma(alpha_of(&m), frac, ldexpl(1, -(int)shift));
		prague_ewma(&m, shift);
		expect_sane(&m, 0);
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
	assert_int_equal(prague_ewma(&m, 4), 0);
	assert_int_equal(m.alpha, alpha);
}

/* As many averages without a mark, at once; never more than before, and 0 in the end. */
static void prague_idle__is_periods_without_marks(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double keep;
		struct prague_model m = any_model(), before = m;
		unsigned int shift = rnd_range(1, 10);
		u32 periods = rnd_upto(1) ? rnd_upto(200) : rnd_upto(U32_MAX);

		keep = powl(1 - ldexpl(1, -(int)shift), periods);
		prague_idle(&m, periods, shift);
		assert_true(m.alpha <= before.alpha);
		/* of @keep's 32 bits each squaring doubles the error */
		expect(near_abs(alpha_of(&m), alpha_of(&before) * keep, ldexpl(1, -22)),
		       "%.12Lf, not %.12Lf", alpha_of(&m), alpha_of(&before) * keep);
		before.alpha = m.alpha;
		assert_memory_equal(&m, &before, sizeof(m));
		prague_idle(&m, 0, shift);
		assert_int_equal(m.alpha, before.alpha);
		prague_idle(&m, U32_MAX, shift);
		assert_int_equal(m.alpha, 0);
	}
}

/* alpha does not get stuck: without marks it falls to exactly 0. */
static void prague_ewma__reaches_zero(void **state)
{
	unsigned int shift;

	(void)state;
	for (shift = 1; shift <= 10; shift++) {
		struct prague_model m = { .alpha = PRAGUE_ONE };
		int rounds = 0;

		while (m.alpha) {
			u64 before = m.alpha;

			prague_count(&m, 10, 0);
			prague_ewma(&m, shift);
			expect(m.alpha < before, "stuck at %lu", m.alpha);
			assert_true(++rounds < 100000);
		}
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
		prague_ewma(&m, 4);
	}
	expect(near_rel(alpha_of(&m), 0.00001L, 0.001L), "%.9Lf", alpha_of(&m));
}

/* With the same fraction, updates per ACK converge to the same alpha as updates per round. */
static void prague_ewma_ack__as_per_round(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		long double alpha, frac;
		struct prague_model m = any_model();
		u64 round = rnd_log(2, 2000), left = round, marked, ack;
		unsigned int shift = rnd_range(4, 10);

		alpha = alpha_of(&m);
		/* a constant fraction, as draws of one packet each */
		marked = rnd_upto(1);
		frac = marked;
		while (left) {
			ack = fp_min(left, rnd_range(1, 4));
			prague_ewma_ack(&m, ack, marked * ack, round, shift);
			left -= ack;
		}
		expect_sane(&m, 0);
		/* the sum of small steps and the one large step differ by g^2 / 2 */
		expect(near_abs(alpha_of(&m), draft_ewma(alpha, frac, ldexpl(1, -(int)shift)),
				ldexpl(1, -2 * (int)shift)),
		       "%.9Lf, not %.9Lf", alpha_of(&m),
		       draft_ewma(alpha, frac, ldexpl(1, -(int)shift)));
	}
}

static void prague_ewma_ack__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prague_model m = any_model();
		u32 acked = rnd_upto(U32_MAX), marked = rnd_upto(U32_MAX);

		prague_ewma_ack(&m, acked, marked, rnd_upto(U64_MAX), rnd_range(1, 10));
		expect_sane(&m, 0);
	}
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
	const u32 most = US(65000);

	(void)state;
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_OFF, US(25000), 0), US(5000));
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_MAX, US(25000), 0), US(25000));
	assert_int_equal(prague_rtt_virt(US(26000), PRAGUE_RTT_MAX, US(25000), 0), US(26000));
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_EXTRA, US(25000), 0), US(30000));
	assert_int_equal(prague_rtt_virt(U32_MAX, PRAGUE_RTT_EXTRA, US(25000), 0), U32_MAX);
	assert_int_equal(prague_rtt_virt(US(80000), PRAGUE_RTT_MAX, US(25000), US(25000)),
			 US(25000));
	/* no longer than the limit, in every mode that has a target */
	assert_int_equal(prague_rtt_virt(US(5000), PRAGUE_RTT_EXTRA, US(25000), most), US(30000));
	assert_int_equal(prague_rtt_virt(US(80000), PRAGUE_RTT_EXTRA, US(25000), most), most);
	assert_int_equal(prague_rtt_virt(US(80000), PRAGUE_RTT_MAX, US(25000), most), most);
	assert_int_equal(prague_rtt_virt(U32_MAX, PRAGUE_RTT_EXTRA, US(25000), most), most);
	assert_int_equal(prague_rtt_virt(US(80000), PRAGUE_RTT_OFF, US(25000), most), US(80000));
}

static void prague_ai__is_one_over_m_squared(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double want;
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST), target = rnd_log(US(100), US(100000));
		u32 virt = prague_rtt_virt(srtt, PRAGUE_RTT_MAX, target, 0);

		want = draft_ai(srtt, virt);
		expect(near_rel(q(prague_ai(srtt, virt), PRAGUE_AI_Q), want, 0.0001L),
		       "%u / %u: %.12Lg, not %.12Lg", srtt, virt,
		       q(prague_ai(srtt, virt), PRAGUE_AI_Q), want);
	}
	assert_true(prague_ai(US(1000), US(1000)) == PRAGUE_AI_ONE);
	assert_true(prague_ai(US(1000), 0) == PRAGUE_AI_ONE);
	/* RTTs above the target (3.4): up to 64 packets a round */
	expect(near_rel(q(prague_ai(US(100000), US(25000)), PRAGUE_AI_Q), 16, 0.000001L), "%Lg",
	       q(prague_ai(US(100000), US(25000)), PRAGUE_AI_Q));
	expect(near_rel(q(prague_ai(U32_MAX, 1), PRAGUE_AI_Q), 64, 0.000001L), "%Lg",
	       q(prague_ai(U32_MAX, 1), PRAGUE_AI_Q));
}

static void prague_boost__doubles(void **state)
{
	u64 ai = PRAGUE_AI_ONE / 4;

	(void)state;
	assert_true(prague_boost(ai, 1000, 100, 0, 3) == ai);
	assert_true(prague_boost(ai, 1000, 3, 4, 3) == ai);
	assert_true(prague_boost(ai, 1000, 4, 4, 3) == 2 * ai);
	assert_true(prague_boost(ai, 1000, 6, 4, 3) == 8 * ai);
	/* an eighth or a sixteenth of the window, but never less than the additive increase */
	assert_true(prague_boost(ai, 16, 60, 4, 3) == 2 * PRAGUE_AI_ONE);
	assert_true(prague_boost(ai, 16, 60, 4, 4) == PRAGUE_AI_ONE);
	assert_true(prague_boost(PRAGUE_AI_ONE, 2, 60, 4, 3) == PRAGUE_AI_ONE);
	assert_true(prague_boost(ai, U32_MAX, U32_MAX, 1, 3) == U64_MAX);
}

static void prague_patience__beyond_the_usual(void **state)
{
	(void)state;
	assert_int_equal(prague_patience(4, 0), 4);
	assert_int_equal(prague_patience(4, 2), 4);
	assert_int_equal(prague_patience(4, 3), 5);
	assert_int_equal(prague_patience(4, 100), 127);
	assert_int_equal(prague_patience(1000, 100), 1000);
	assert_int_equal(prague_patience(0, 65535), 81920);
}

/* One ACK, with any values of the range. */
static void prague_increase__is_the_drafts(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double before, want;
		u32 srtt = rnd_log(RTT_LEAST, RTT_MOST);
		u32 virt = prague_rtt_virt(srtt, PRAGUE_RTT_MAX, US(25000), 0);
		struct prague_model m = { .cwnd = rnd_log(2, CWND_MOST),
					  .frac = rnd_upto(PRAGUE_ONE - 1) };
		u32 unmarked = rnd_range(0, fp_min(m.cwnd, 64));

		before = window_of(&m);
		want = draft_increase(unmarked, draft_ai(srtt, virt), before);
		prague_increase(&m, unmarked, prague_ai(srtt, virt));
		expect_sane(&m, 2);
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
		expect_sane(&m, 0);
		expect(m.cwnd >= before.cwnd, "%u -> %u", before.cwnd, m.cwnd);
	}
}

static void prague_sqrt__exact(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u64 x = rnd_upto(FP_ONE(62) - 1), r = prague_sqrt(x);

		expect((u128)r * r <= x && (u128)(r + 1) * (r + 1) > x, "%lu: %lu", x, r);
	}
}

/* Below two packets the increase shrinks with the square root of the window. */
static void prague_increase__fractional(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		long double before;
		struct prague_model m = { .cwnd = rnd_upto(1) };

		m.frac = rnd_range(PRAGUE_MIN_FRACTION, PRAGUE_ONE - 1);
		before = window_of(&m);
		prague_increase(&m, 1, PRAGUE_AI_ONE);
		expect(near_rel(window_of(&m) - before, fminl(1, 1 / sqrtl(2 * before)),
				0.000001L),
		       "%Lf: %Lf", before, window_of(&m) - before);
	}
}

static void prague_reduce_holds(const u64 v[4])
{
	struct prague_model m = { .alpha = v[0], .cwnd = v[1], .frac = v[2] };
	u32 floor = v[3];

	if (!m.cwnd)
		m.frac = fp_max(m.frac, PRAGUE_MIN_FRACTION);
	checked_reduce(&m, prague_ecn_share(&m), floor);
}

static const struct check prague_reduce_exact = {
	prague_reduce_holds, { PRAGUE_ONE, U32_MAX, PRAGUE_ONE - 1, 2 }
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
				u64 v[4] = { alphas[a], cwnds[c], fracs[f], 0 };

				prague_reduce_holds(v);
				v[3] = 2;
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
			checked_reduce(&m, prague_ecn_share(&m), PRAGUE_MIN_CWND);
			want = fmaxl(want * (1 - alpha / 2), 2);
		}
		expect(near_rel(window_of(&m), want, ldexpl(1, -30)), "1/%u: %.12Lf, not %.12Lf",
		       one_in[a], window_of(&m), want);
	}
}

static void prague_reduce__fractional(void **state)
{
	struct prague_model m = { .alpha = PRAGUE_ONE, .cwnd = 2 };
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		checked_reduce(&m, prague_ecn_share(&m), 0);
	assert_int_equal(m.cwnd, 0);
	assert_true(m.frac == PRAGUE_MIN_FRACTION);
}

/* Spread over a round of 1/ratio windows, the reduction is almost the same as at once. */
static void prague_reduce_spread__as_at_once(void **state)
{
	static const u32 ratios[] = { 1, 2, 10 };
	size_t r;

	(void)state;
	for (r = 0; r < ARRAY_SIZE(ratios); r++) {
		struct prague_model m = { .alpha = PRAGUE_ONE / 10, .cwnd = 100 };
		u32 i, packets = 100 * ratios[r];

		for (i = 0; i < packets; i++)
			prague_reduce_spread(&m, 1, FP_ONE(29) / ratios[r], 2);
		/* slightly less than at once, because each step reduces a smaller window */
		expect(near_abs(window_of(&m), 95, 0.2L), "%Lf", window_of(&m));
	}
}

static void prague_reduce_spread__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prague_model m = any_model();
		u32 floor = rnd_upto(2);

		prague_reduce_spread(&m, rnd_upto(U32_MAX), rnd_upto(U32_MAX), floor);
		expect_sane(&m, floor);
	}
}

/* The window after a loss, compared with @want */
static void loss_leaves(const struct prague_model *m, bool cubic, bool combined, long double want)
{
	expect(near_abs(1 - q(prague_loss_share(m, cubic, combined), PRAGUE_Q), want,
			ldexpl(1, -50)),
	       "alpha %Lf, cubic %d, combined %d: not %Lf", alpha_of(m), cubic, combined, want);
}

/* 2.4.1, 3.2.1 */
static void prague_loss_share__factors(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		long double a;
		struct prague_model m = any_model();

		a = alpha_of(&m);
		loss_leaves(&m, false, false, 0.5L);
		loss_leaves(&m, true, false, 0.7L);
		loss_leaves(&m, false, true, (2 + a) / 4);
		loss_leaves(&m, true, true, (2 + a) / 3);
		/* with the cut before it, at least the reduction of a loss alone */
		assert_true((1 - a / 2) * (2 + a) / 4 <= 0.5L + ldexpl(1, -50));
	}
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
		struct prague_model m = { .cwnd = rnd_upto(4),
					  .frac = rnd_range(PRAGUE_MIN_FRACTION, PRAGUE_ONE - 1) };
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
	assert_true(prague_cubic_ai(1 << 30, U32_MAX) == U64_MAX);
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
	prague_ewma(&m, 3);
	assert_int_equal(m.rtt_us, 0);
}

static bool hystart(struct prague_hystart *h, u32 rtt_us, unsigned int n)
{
	while (n--)
		if (prague_hystart_rtt(h, rtt_us))
			prague_hystart_judge(h);
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
	assert_true(prague_probe_ai(1300) == U64_MAX);
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

				if (prague_hystart_rtt(&h, rtt))
					prague_hystart_judge(&h);
				rfc9406_rtt(&want, rtt / 1e3L);
			}
			rfc9406_round(&want);
			expect(prague_hystart_round(&h) == want.over, "case %d, round %d", i, j);
			expect(!!h.css == want.css, "case %d, round %d: %u", i, j, h.css);
			base += rnd_upto(base / 16);
		}
	}
}

/* There the shortest RTT alone gives the same next round as all samples do. */
static void prague_hystart__full_path(void **state)
{
	int i, k, n;

	(void)state;
	for (i = 0; i < CASES / 20; i++) {
		struct prague_hystart all = {
			.round_min = rnd_upto(2000),
			.last_min = rnd_upto(2000),
			.samples = rnd_upto(PRAGUE_HYSTART_SAMPLES),
			.css = 1 + rnd_upto(5),
		}, least = all;

		assert_true(prague_hystart_full(&all));
		n = rnd_upto(20);
		for (k = 0; k < n; k++) {
			u32 rtt = rnd_log(1, 1000000);

			if (prague_hystart_rtt(&all, rtt))
				prague_hystart_judge(&all);
			prague_hystart_min(&least, rtt);
			assert_true(prague_hystart_full(&all));
		}
		assert_int_equal(prague_hystart_round(&all), prague_hystart_round(&least));
		expect(!memcmp(&all, &least, sizeof(all)), "case %d", i);
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
	assert_int_equal(prague_start_rate(1000, 1448, 0, true), 2000);
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

static void prague_small__is_below_a_fifth(void **state)
{
	(void)state;
	assert_true(prague_small(12, 65));
	assert_false(prague_small(13, 65));
	assert_false(prague_small(2, 2));
	assert_true(prague_small(1000, U32_MAX));
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
					prague_reduce(&m, prague_ecn_share(&m), 2);
					cut = true;
				} else if (!mark) {
					prague_increase(&m, 1, PRAGUE_AI_ONE);
				}
			}
			prague_ewma(&m, 4);
			sum += window_of(&m);
		}
		/* rounds without a mark (13 %) make it somewhat larger */
		expect(sum / rounds / want > 0.95L && sum / rounds / want < 1.25L,
		       "p %Lf: %Lf, not %Lf", p, sum / rounds, want);
	}
}

/*
 * A path with a queue each way, and a peer with a clock, in floating point. Each period of 30 to
 * 50 ms has a sample; what it is judged by is the stack's: the shortest RTT of the latest 300 s.
 */
struct clock {
	const char *name;
	double tick_us, ppm, stops_s;	/* stops_s: 0 is never */
};

enum { L4S, PIE, CODEL };

struct phase {
	double until_s;
	int queue;
	bool upload;			/* a queue of 20 to 100 ms on the way back */
};

#define WINDOW_S	300

struct world {
	const struct clock *clock;
	struct prague_oneway oneway;
	double there_us, back_us;	/* delays without a queue */
	double of_second[WINDOW_S], shortest;	/* RTT */
	unsigned int second;
	u32 offset;
	unsigned int score;
	bool classic;
	double now_s;
	double classic_s, first_s;	/* in a phase: time in classic mode; until it began */
};

static double uniform(double low, double high)
{
	return low + (high - low) * (rnd() >> 11) / FP_ONE(53);
}

/* A sawtooth between @low and @high with @period seconds */
static double tooth(double t, double period, double low, double high)
{
	return low + (high - low) * (t / period - floor(t / period));
}

static double queue_there(int kind, double t)
{
	return kind == PIE ? tooth(t, 1.7, 8000, 25000) :
	       kind == CODEL ? tooth(t, 0.9, 5000, 9000) : tooth(t, 0.3, 0, 1300);
}

static struct world begin(const struct clock *clock)
{
	struct world w = { .clock = clock, .offset = (u32)rnd(), .second = WINDOW_S,
			   .there_us = 10000, .back_us = 15000 };
	unsigned int i;

	for (i = 0; i < WINDOW_S; i++)
		w.of_second[i] = INFINITY;
	return w;
}

static void remember_rtt(struct world *w, double rtt)
{
	unsigned int i, second = w->now_s;

	if (second != w->second) {
		w->second = second;
		w->shortest = INFINITY;
		w->of_second[second % WINDOW_S] = INFINITY;
		for (i = 0; i < WINDOW_S; i++)
			w->shortest = fmin(w->shortest, w->of_second[i]);
	}
	w->of_second[second % WINDOW_S] = fmin(w->of_second[second % WINDOW_S], rtt);
	w->shortest = fmin(w->shortest, rtt);
}

/* One sample. @exact: the shortest RTT is the path's, so that the bounds must hold */
static void sample(struct world *w, const struct phase *phase, bool exact)
{
	const struct clock *c = w->clock;
	double there = queue_there(phase->queue, w->now_s);
	double back = phase->upload ? tooth(w->now_s, 3.1, 20000, 100000) : 0;
	double sent = w->now_s * 1e6, arrives = sent + w->there_us + there;
	double reads = c->stops_s ? fmin(arrives, c->stops_s * 1e6) : arrives;
	double rtt = arrives - sent + w->back_us + back + uniform(0, 100);
	u32 stamp = w->offset + (u32)(u64)(reads * (1 + c->ppm / 1e6) / c->tick_us);
	struct prague_queue q;

	remember_rtt(w, rtt);
	q = prague_oneway_sample(&w->oneway, stamp, (u32)(u64)sent, (u32)rtt, (u32)w->shortest);
	expect(q.least <= q.most, "%s, %f s: %u > %u", c->name, w->now_s, q.least,
	       q.most);
	if (exact && w->now_s > 1)
		expect(q.least <= there + 2 && q.most + 102 >= there,
		       "%s, %f s: %f is not in %u to %u", c->name, w->now_s, there, q.least,
		       q.most);
	if (q.least > 3000)
		w->score = fp_min(w->score + 1, 16);
	else if (q.most <= 3000 && w->score)
		w->score--;
}

static void run(struct world *w, bool exact, struct phase phase)
{
	double from_s = w->now_s, step;

	w->classic_s = 0;
	w->first_s = 0;
	for (; w->now_s < phase.until_s; w->now_s += step) {
		step = uniform(0.03, 0.05);
		sample(w, &phase, exact);
		if (w->score >= 8 && !w->classic) {
			w->classic = true;
			if (!w->classic_s)
				w->first_s = w->now_s - from_s;
		} else if (!w->score) {
			w->classic = false;
		}
		if (w->classic)
			w->classic_s += step;
	}
}

static const struct clock clocks[] = {
	{ "1 us", 1, 0, 0 }, { "1 us, slow", 1, -200, 0 }, { "1 us, fast", 1, 200, 0 },
	{ "1 ms", 1000, 0, 0 }, { "1 ms, slow", 1000, -200, 0 }, { "1 ms, fast", 1000, 200, 0 },
	{ "4 ms", 4000, 0, 0 }, { "4 ms, slow", 4000, -200, 0 }, { "4 ms, fast", 4000, 200, 0 },
	{ "10 ms", 10000, 0, 0 }, { "10 ms, slow", 10000, -200, 0 },
	{ "10 ms, fast", 10000, 200, 0 },
};

#define CLOCKS	(sizeof(clocks) / sizeof(*clocks))

/* An hour: an upload is not taken for a Classic queue; that is found, with an upload, too. */
static void prague_oneway__an_hour(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLOCKS; i++) {
		struct world w = begin(&clocks[i]);
		const char *name = clocks[i].name;

		run(&w, true, (struct phase) { 600, L4S, false });
		expect(!w.classic_s, "%s: %f s", name, w.classic_s);
		run(&w, true, (struct phase) { 890, L4S, true });
		expect(!w.classic_s, "%s, upload: %f s", name, w.classic_s);
		run(&w, false, (struct phase) { 2400, L4S, true });
		expect(!w.classic_s, "%s, long upload: %f s", name, w.classic_s);
		run(&w, false, (struct phase) { 3000, L4S, false });
		expect(!w.classic_s, "%s, after the upload: %f s", name, w.classic_s);
		run(&w, true, (struct phase) { 3290, CODEL, true });
		expect(w.classic && w.first_s < 5, "%s, CoDel and upload: %f s", name, w.first_s);
		run(&w, false, (struct phase) { 3600, L4S, false });
		expect(!w.classic && w.classic_s < 5, "%s, L4S again: %f s", name, w.classic_s);
		expect(!prague_oneway_useless(&w.oneway), "%s is not trusted", name);
	}
}

/*
 * A Classic queue from the first second on: found within 5 s, except one that is shorter than the
 * tick: the base is never known well enough.
 */
static void prague_oneway__classic(void **state)
{
	unsigned int i;
	int kind, upload;

	(void)state;
	for (i = 0; i < CLOCKS * 4; i++) {
		const struct clock *clock = &clocks[i / 4];
		struct world w = begin(clock);

		kind = i & 1 ? PIE : CODEL;
		upload = i & 2;
		run(&w, true, (struct phase) { 0.2, L4S, false });
		run(&w, true, (struct phase) { 290, kind, upload });
		if (clock->tick_us > 9000 && kind == CODEL)
			continue;
		expect(w.first_s > 0 && w.first_s < 4.8, "%s: after %f s", clock->name, w.first_s);
		expect(w.classic_s > 284, "%s: %f s of 290", clock->name, w.classic_s);
	}
}

/* An upload that is there from the start on, and ends, and comes again */
static void prague_oneway__upload_first(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLOCKS; i++) {
		struct world w = begin(&clocks[i]);
		const char *name = clocks[i].name;

		run(&w, false, (struct phase) { 100, L4S, true });
		expect(!w.classic_s, "%s, upload: %f s", name, w.classic_s);
		run(&w, false, (struct phase) { 200, L4S, false });
		run(&w, true, (struct phase) { 290, L4S, true });
		expect(!w.classic_s, "%s, upload again: %f s", name, w.classic_s);
	}
}

/* A Classic queue from before the first packet on: found once it has been empty for a while. */
static void prague_oneway__queue_first(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLOCKS; i++) {
		struct world w = begin(&clocks[i]);
		const char *name = clocks[i].name;

		run(&w, false, (struct phase) { 20, PIE, false });
		run(&w, false, (struct phase) { 40, L4S, false });
		expect(!w.classic, "%s: Classic, and L4S for 20 s", name);
		run(&w, true, (struct phase) { 60, PIE, true });
		expect(w.classic && w.first_s < 5, "%s: after %f s", name, w.first_s);
		expect(!w.oneway.faults, "%s: %u faults", name, w.oneway.faults);
	}
}

/* Clocks with other ticks or more drift, or that stop, are not trusted: the RTT alone counts. */
static void prague_oneway__bad_clocks(void **state)
{
	static const struct clock bad[] = {
		{ "300 Hz", 1e6 / 300, 0, 0 }, { "200 Hz", 5000, 0, 0 }, { "64 Hz", 15625, 0, 0 },
		{ "500 Hz", 2000, 0, 0 }, { "2 Hz", 500000, 0, 0 }, { "3000 ppm", 1000, 3000, 0 },
		{ "minus 3000 ppm", 1000, -3000, 0 }, { "stopped", 1000, 0, 0.000001 },
		{ "1 ms, stops", 1000, 0, 30 }, { "10 ms, stops", 10000, 0, 30 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * sizeof(bad) / sizeof(*bad); i++) {
		struct world w = begin(&bad[i / 2]);
		const char *name = bad[i / 2].name;
		bool upload = i & 1;

		run(&w, false, (struct phase) { 29, L4S, false });
		expect(!w.classic_s, "%s: %f s", name, w.classic_s);
		run(&w, false, (struct phase) { 200, L4S, upload });
		expect(prague_oneway_useless(&w.oneway), "%s is trusted", name);
		run(&w, false, (struct phase) { 250, PIE, upload });
		expect(w.classic_s > 49, "%s: %f s of 50", name, w.classic_s);
	}
}

/*
 * Another route: longer or shorter on the way back, it is no queue; longer on the way there, it
 * looks like one until the shortest RTT is the new route's.
 */
static void prague_oneway__routes(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLOCKS; i++) {
		struct world w = begin(&clocks[i]);
		const char *name = clocks[i].name;

		run(&w, true, (struct phase) { 100, L4S, false });
		w.back_us = 35000;
		run(&w, false, (struct phase) { 500, L4S, false });
		expect(!w.classic_s, "%s, longer back: %f s", name, w.classic_s);
		w.back_us = 15000;
		run(&w, false, (struct phase) { 600, L4S, false });
		expect(!w.classic_s, "%s, as before: %f s", name, w.classic_s);
		w.there_us = 4000;
		w.back_us = 9000;
		run(&w, false, (struct phase) { 700, L4S, false });
		expect(!w.classic_s, "%s, shorter: %f s", name, w.classic_s);
		w.there_us = 30000;
		run(&w, false, (struct phase) { 1300, L4S, false });
		expect(!w.classic && w.classic_s < WINDOW_S + 5, "%s, longer there: %f s", name,
		       w.classic_s);
		expect(!w.oneway.faults, "%s: %u faults", name, w.oneway.faults);
	}
}

static void prague_tick__known_ones(void **state)
{
	static const u32 known[] = { 1, 1000, 4000, 10000 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(prague_tick(2000000 / known[i], 2000000), known[i]);
		assert_int_equal(prague_tick(2000000 / known[i] * 5 / 6, 2000000), known[i]);
		assert_int_equal(prague_tick(2000000 / known[i] * 2 / 3, 2000000), 0);
		assert_int_equal(prague_tick(2000000 / known[i] * 3 / 2, 2000000), 0);
	}
	assert_int_equal(prague_tick(0, 2000000), 0);
	assert_int_equal(prague_tick(U32_MAX, 2000000), 0);
	assert_int_equal(prague_tick(U32_MAX, U32_MAX), 1);
}

int main(void)
{
	const struct CMUnitTest prague_model[] = {
		cmocka_unit_test(prague_count__saturates),
		cmocka_unit_test(prague_ewma__is_the_drafts),
		cmocka_unit_test(prague_ewma__nothing_acked),
		cmocka_unit_test(prague_idle__is_periods_without_marks),
		cmocka_unit_test(prague_ewma__reaches_zero),
		cmocka_unit_test(prague_ewma__light_marking),
		cmocka_unit_test(prague_ewma_ack__as_per_round),
		cmocka_unit_test(prague_ewma_ack__any),
		cmocka_unit_test(prague_rtt_virt__modes),
		cmocka_unit_test(prague_ai__is_one_over_m_squared),
		cmocka_unit_test(prague_boost__doubles),
		cmocka_unit_test(prague_patience__beyond_the_usual),
		cmocka_unit_test(prague_increase__is_the_drafts),
		cmocka_unit_test(prague_increase__adds_up),
		cmocka_unit_test(prague_increase__any),
		cmocka_unit_test(prague_sqrt__exact),
		cmocka_unit_test(prague_increase__fractional),
		cmocka_unit_test(prague_reduce__random),
		cmocka_unit_test(prague_reduce__extremes),
		cmocka_unit_test(prague_reduce__sawtooth),
		cmocka_unit_test(prague_reduce__fractional),
		cmocka_unit_test(prague_reduce_spread__as_at_once),
		cmocka_unit_test(prague_reduce_spread__any),
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
		cmocka_unit_test(prague_small__is_below_a_fifth),
		cmocka_unit_test(prague_start_window__is_what_was_delivered),
		cmocka_unit_test(steady_state__window),
		cmocka_unit_test(prague_tick__known_ones),
		cmocka_unit_test(prague_oneway__an_hour),
		cmocka_unit_test(prague_oneway__classic),
		cmocka_unit_test(prague_oneway__upload_first),
		cmocka_unit_test(prague_oneway__queue_first),
		cmocka_unit_test(prague_oneway__bad_clocks),
		cmocka_unit_test(prague_oneway__routes),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(prague_model, NULL, NULL);
}
