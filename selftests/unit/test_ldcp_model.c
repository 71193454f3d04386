// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/ldcp_model.h, in its order, against the draft in floating
 * point (ldcp_oracle.h). L3, L5, L7, L16 are the requirements that a test is
 * about:
 *
 *	L3	2.2	n packets confirmed: cw += n * alpha / cw, cw -= n * beta
 *	L5	2.2	below one packet: cw += gamma, cw = max(gamma, eta * cw)
 *	L7	2.3	the initial window is the BDP
 *	L16	3.2	cw += alpha once per RTT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ldcp_oracle.h"

#define ACKS	(10 * CASES)	/* L3: the drift over this many ACKs */
#define DRIFT	0.0001L		/* ... is at most this part of cw */

static struct ldcp_gains any_gains(void)
{
	u64 alpha = rnd_upto(U32_MAX), beta = rnd_upto(U32_MAX);
	u64 eta = rnd_upto(U32_MAX), shift = rnd();

	return ldcp_gains_of(alpha, beta, eta, shift);
}

static u64 any_cw(const struct ldcp_gains *g)
{
	u64 cw = rnd_upto(LDCP_CW_MAX);

	return ldcp_model_bound(cw, g);
}

static void ldcp_model_bound__table(void **state)
{
	unsigned int shift;

	(void)state;
	for (shift = LDCP_SHIFT_GAMMA_MIN; shift <= LDCP_SHIFT_GAMMA_MAX; shift++) {
		struct ldcp_gains g = { .shift_gamma = shift };
		u64 least = LDCP_CW_ONE >> shift;

		assert_true(ldcp_model_gamma(&g) == least);
		assert_true(ldcp_model_bound(0, &g) == least);
		assert_true(ldcp_model_bound(least - 1, &g) == least);
		assert_true(ldcp_model_bound(least + 1, &g) == least + 1);
		assert_true(ldcp_model_bound(LDCP_CW_MAX + 1, &g) == LDCP_CW_MAX);
		assert_true(ldcp_model_bound(U64_MAX, &g) == LDCP_CW_MAX);
	}
}

/* The draft's own numbers, by hand; gains in 1/1024, windows in 1/1024 packets */
static void ldcp_model_ack__table(void **state)
{
	static const struct {
		u32 alpha, beta, shift, n;
		bool ece;
		u64 cw, after;
	} lines[] = {
		/* eq. (1) */
		{ 1024, 512, 4, 1, false, 4096, 4096 + 256 },
		{ 512, 512, 4, 1, false, 2048, 2048 + 256 },
		{ 1024, 512, 4, 1, true, 4096, 4096 - 512 },
		/* eq. (2) */
		{ 1024, 512, 4, 3, false, 4096, 4096 + 768 },
		{ 1024, 512, 4, 3, true, 4096, 4096 - 1536 },
		{ 1024, 1024, 4, 65536, false, 1048576, 1048576 + 65536 },
		/* below one packet: the number of packets confirmed does not matter */
		{ 1024, 512, 4, 1, false, 512, 512 + 64 },
		{ 1024, 512, 2, 5, false, 512, 512 + 256 },
		{ 1024, 512, 3, 5, false, 512, 512 + 128 },
		{ 1024, 512, 4, 1, true, 512, 256 },
		{ 1024, 512, 4, 7, true, 1023, 511 },	/* 511.5: Q40 keeps the half */
		{ 1024, 512, 4, 1, true, 100, 64 },
		{ 1024, 512, 4, 1, true, 64, 64 },
		/* from one packet and above to below it, and to the minimum */
		{ 1024, 1024, 4, 1, true, 1024, 64 },
		{ 1024, 512, 4, 1, true, 1024, 512 },
		{ 1024, 512, 2, 9, true, 4096, 256 },
		/* up to one packet the step is gamma, not alpha / cw */
		{ 1024, 512, 4, 1, false, 960, 1024 },
		{ 1024, 512, 2, 1, false, 1023, 1023 + 256 },
		/* nothing confirmed */
		{ 1024, 512, 4, 0, false, 4096, 4096 },
		{ 1024, 512, 4, 0, true, 4096, 4096 },
		{ 1024, 512, 4, 0, true, 512, 512 },
		/* the largest */
		{ 1024, 512, 4, 65536, false, 1048576 * 1024ULL, 1048576 * 1024ULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		struct ldcp_gains g = {
			.alpha = lines[i].alpha, .beta = lines[i].beta, .eta = 512,
			.shift_gamma = lines[i].shift,
		};
		u64 after = ldcp_model_ack(&g, lines[i].cw << 30, lines[i].n, lines[i].ece);

		expect(after >> 30 == lines[i].after, "line %zu: %lu / 1024", i, after >> 30);
	}
}

/* A step of its own below one packet: gamma is still the smallest window. In 1/1024 packets */
static void ldcp_model_clean__step(void **state)
{
	struct ldcp_gains g = { .alpha = 1024, .beta = 512, .eta = 512, .shift_gamma = 4,
				.step = 256 };

	(void)state;
	assert_int_equal(ldcp_model_clean(512ULL << 30, 5, &g) >> 30, 512 + 256);
	assert_int_equal(ldcp_model_clean(1000ULL << 30, 1, &g) >> 30, 1000 + 256);
	assert_int_equal(ldcp_model_clean(2048ULL << 30, 1, &g) >> 30, 2048 + 512);
	assert_int_equal(ldcp_model_marked(100ULL << 30, 1, &g) >> 30, 64);
	assert_int_equal(ldcp_model_round(512ULL << 30, &g) >> 30, 512 + 256);
}

/* L3: one ACK, from any window, for any n to 2^16 and any gains */
static void ldcp_model_ack__random(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g), n = rnd_upto(LDCP_PACKETS_MAX);

		ldcp_checked_ack(&g, cw, n, i % 2);
	}
}

/* More packets than one ACK can confirm count as 2^16. */
static void ldcp_model_ack__too_many(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g);
		u32 n = LDCP_PACKETS_MAX + rnd_upto(U32_MAX - LDCP_PACKETS_MAX);
		bool ece = i % 2;

		assert_true(ldcp_model_ack(&g, cw, n, ece) ==
			    ldcp_model_ack(&g, cw, LDCP_PACKETS_MAX, ece));
	}
}

/* Which ACKs carry ECE: as many as hold cw, or a fixed share */
enum pattern {
	NO_MARKS,
	EQUILIBRIUM,	/* as many as hold cw where it is, at random */
	STRONG,		/* every fourth */
	BURSTS,
	RANDOM_MARKS,
	PATTERNS
};

static bool is_marked(enum pattern pattern, u64 ack, const struct ldcp_draft *d, long double cw)
{
	switch (pattern) {
	case NO_MARKS:
		return false;
	case EQUILIBRIUM:
		/* (1 - p) * alpha / cw = p * beta */
		return (rnd() >> 11) * ldexpl(1, -53) < d->alpha / (d->alpha + d->beta * cw);
	case STRONG:
		return ack % 4 == 3;
	case BURSTS:
		return ack % 4000 >= 3900;
	default:
		return !(rnd() % 50);
	}
}

/*
 * L3: the model and the draft get the same @acks ACKs; returns the largest difference, as
 * a part of cw. An ACK confirms at most the window, because no more can be in flight;
 * more would magnify differences in any arithmetic.
 *
 * The draft's rule jumps at one packet. Where the two lie on different sides of it,
 * closer than the limit, both continue from the model's value.
 */
static long double drift(const struct ldcp_gains *g, enum pattern pattern, u64 cw, u32 most,
			 int acks)
{
	struct ldcp_draft d = ldcp_draft(g);
	long double real = ldcp_real(cw), worst = 0;
	int i;

	for (i = 0; i < acks; i++) {
		u32 n = 1 + fold(rnd(), fp_min(ldcp_model_packets(cw), most) - 1);
		bool below, ece = is_marked(pattern, i, &d, real);
		long double apart;

		cw = ldcp_model_ack(g, cw, n, ece);
		real = ldcp_draft_ack(&d, real, n, ece);
		apart = fabsl(ldcp_real(cw) - real) / real;
		if (apart > worst)
			worst = apart;
		below = cw < LDCP_CW_ONE;
		if (apart < DRIFT && (below ? real >= 1 : real < 1))
			real = ldcp_real(cw);
	}
	return worst;
}

static void expect_no_drift(const struct ldcp_gains *g, enum pattern pattern, u64 cw, u32 most,
			    int acks)
{
	long double worst = drift(g, pattern, cw, most, acks);

	expect(worst < DRIFT, "alpha %u beta %u, pattern %d, cw %Lf, n up to %u: off by %Lg",
	       g->alpha, g->beta, pattern, ldcp_real(cw), most, worst);
}

/*
 * L3: 10^7 ACKs of one packet and of up to 2^16, from the smallest and the largest
 * window, around equilibrium with the defaults; shorter otherwise
 */
static void ldcp_model_ack__drift(void **state)
{
	static const struct ldcp_gains gains[] = {
		{ 512, 256, 512, 4, 512 }, { 1024, 512, 512, 4, 0 }, { 1, 1, 512, 4, 0 },
		{ 333, 77, 700, 2, 0 },
	};
	size_t i;
	int pattern;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(gains); i++) {
		for (pattern = 0; pattern < PATTERNS; pattern++) {
			int acks = i || pattern != EQUILIBRIUM ? ACKS / 10 : ACKS;

			expect_no_drift(&gains[i], pattern, ldcp_model_gamma(&gains[i]), 1, acks);
			expect_no_drift(&gains[i], pattern, LDCP_CW_MAX, LDCP_PACKETS_MAX, acks);
		}
	}
}

/* The same for windows, gains and packets per ACK of all kinds, shorter */
static void ldcp_model_ack__random_streams(void **state)
{
	int run;

	(void)state;
	for (run = 0; run < CASES / 1000; run++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g), most = 1 + rnd_upto(LDCP_PACKETS_MAX - 1);

		expect_no_drift(&g, run % PATTERNS, cw, most, 5000);
	}
}

/* At 2^20 packets the smallest alpha is not rounded away: 2^20 ACKs add alpha. */
static void ldcp_model_clean__largest(void **state)
{
	struct ldcp_gains g = { .alpha = 1, .beta = 1, .eta = 512, .shift_gamma = 4 };
	u64 cw = LDCP_CW_MAX - LDCP_CW_ONE, before = cw;
	int i;

	(void)state;
	for (i = 0; i < 1 << 20; i++)
		cw = ldcp_model_clean(cw, 1, &g);
	assert_true(near_rel(ldcp_real(cw - before), 1.0L / 1024, 0.001));
}

/* Rounds without a mark: @n packets of a window of cw are n / cw rounds, never less than before */
static void ldcp_model_quiet__rounds(void **state)
{
	u32 quiet = 0;
	int i;

	(void)state;
	for (i = 0; i < 40; i++)
		quiet = ldcp_model_quiet(quiet, 10 * LDCP_CW_ONE, 1);
	expect(near_abs(quiet, 4 << LDCP_QUIET_Q, 40), "%u", quiet);
	assert_int_equal(ldcp_model_quiet(0, LDCP_CW_ONE / 16, 1), 1 << LDCP_QUIET_Q);
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g);
		u32 n = rnd_upto(LDCP_PACKETS_MAX), got;
		long double want;

		quiet = rnd_upto(U32_MAX);
		got = ldcp_model_quiet(quiet, cw, n);
		want = quiet + ldexpl(n, LDCP_QUIET_Q) / fmaxl(floorl(ldcp_real(cw)), 1);
		expect(near_abs(got, fminl(want, U32_MAX), 1), "%u, not %Lf", got, want);
	}
}

/* Half of the way per RTT: after ten RTTs a thousandth is left, or the draft's growth is more */
static void ldcp_model_return__half(void **state)
{
	struct ldcp_gains g = { .alpha = 1, .beta = 256, .eta = 512, .shift_gamma = 4 };
	u64 before = 90 * LDCP_CW_ONE, cw = 60 * LDCP_CW_ONE;
	int i, acks;

	(void)state;
	for (i = 1; i <= 10; i++) {
		/* as many packets as half of the way closes while the window grows */
		for (acks = cw >> LDCP_CW_Q; acks; acks--)
			cw = ldcp_model_return(cw, before, 1, &g);
		expect(near_abs(ldcp_real(before - cw), 30 * powl(0.607L, i), 1), "%d: %Lf", i,
		       ldcp_real(cw));
	}
	/* beyond it, and below one packet, as without */
	for (i = 0; i < CASES; i++) {
		u32 n = rnd_upto(LDCP_PACKETS_MAX);

		g = any_gains();
		cw = any_cw(&g);
		before = rnd_upto(cw);
		assert_int_equal(ldcp_model_return(cw, before, n, &g), ldcp_model_clean(cw, n, &g));
		before = cw + rnd_upto(LDCP_CW_MAX - cw);
		if (cw < LDCP_CW_ONE)
			assert_int_equal(ldcp_model_return(cw, before, n, &g),
					 ldcp_model_clean(cw, n, &g));
	}
}

/* The draft's step times 2^doublings, at most an eighth of a packet per packet and never less */
static void ldcp_model_faster__oracle(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		struct ldcp_draft d = ldcp_draft(&g);
		u64 cw = any_cw(&g), clean, got;
		u32 n = rnd_upto(LDCP_PACKETS_MAX), times = rnd_upto(300);
		long double step;

		clean = ldcp_model_clean(cw, n, &g);
		got = ldcp_model_faster(cw, n, &g, times);
		step = fmaxl(fminl(ldexpl(n * d.alpha / ldcp_real(cw), times), n / 8.0L),
			     n * d.alpha / ldcp_real(cw));
		if (cw < LDCP_CW_ONE)
			expect(got == clean, "%lu %lu", got, clean);
		else if (clean < LDCP_CW_MAX)
			expect(near_abs(ldcp_real(got - cw),
					fminl(step, LDCP_CW_LARGEST - ldcp_real(cw)),
					ldexpl(1, fp_min(times, 40)) / FP_ONE(39) +
					step * 0.000002L),
			       "%Lf, not %Lf", ldcp_real(got - cw), step);
		expect(got >= clean && got <= LDCP_CW_MAX, "%lu %lu", got, clean);
		assert_true(ldcp_model_faster(cw, n, &g, 0) == clean);
	}
}

/* L5: from 1/16, the window is one packet after as many ACKs as the rule implies */
static void ldcp_model_clean__from_the_least(void **state)
{
	unsigned int shift;

	(void)state;
	for (shift = LDCP_SHIFT_GAMMA_MIN; shift <= LDCP_SHIFT_GAMMA_MAX; shift++) {
		struct ldcp_gains g = { 1024, 512, 512, shift, 0 };
		u64 cw = ldcp_model_gamma(&g);
		u32 acks = 0;

		for (; cw < LDCP_CW_ONE; acks++)
			cw = ldcp_model_clean(cw, 1, &g);
		assert_true(cw == LDCP_CW_ONE);
		assert_int_equal(acks, (1 << shift) - 1);
	}
}

/* L13: half, at least two packets; from below two, half */
static void ldcp_model_lost__oracle(void **state)
{
	int i;

	(void)state;
	assert_true(ldcp_model_lost(10 * LDCP_CW_ONE) == 5 * LDCP_CW_ONE);
	assert_true(ldcp_model_lost(3 * LDCP_CW_ONE) == 2 * LDCP_CW_ONE);
	assert_true(ldcp_model_lost(2 * LDCP_CW_ONE) == 2 * LDCP_CW_ONE);
	assert_true(ldcp_model_lost(LDCP_CW_ONE) == LDCP_CW_ONE / 2);
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g), after = ldcp_model_lost(cw);
		long double before = ldcp_real(cw);
		long double want = before < 2 ? before / 2 : fmaxl(before / 2, 2);

		expect(near_abs(ldcp_real(after), want, ldexpl(1, -LDCP_CW_Q)), "%Lf: %Lf", before,
		       ldcp_real(after));
		expect(after <= cw, "%lu: %lu", cw, after);
	}
}

/* L16 */
static void ldcp_model_round__random(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		struct ldcp_draft d = ldcp_draft(&g);
		u64 cw = any_cw(&g), after = ldcp_model_round(cw, &g);
		long double step = cw < LDCP_CW_ONE ? d.step : d.alpha;

		assert_true(ldcp_real(after) == ldcp_draft_bound(&d, ldcp_real(cw) + step));
	}
}

static void ldcp_model_packets__table(void **state)
{
	(void)state;
	assert_int_equal(ldcp_model_packets(LDCP_CW_ONE / 16), 1);
	assert_int_equal(ldcp_model_packets(LDCP_CW_ONE), 1);
	assert_int_equal(ldcp_model_packets(2 * LDCP_CW_ONE - 1), 1);
	assert_int_equal(ldcp_model_packets(2 * LDCP_CW_ONE), 2);
	assert_int_equal(ldcp_model_packets(LDCP_CW_MAX), 1 << 20);
}

/* L7: an initial window from a route may be any number */
static void ldcp_model_cw__largest(void **state)
{
	(void)state;
	assert_int_equal(ldcp_model_cw(0), 0);
	assert_int_equal(ldcp_model_cw(10), 10 * LDCP_CW_ONE);
	assert_int_equal(ldcp_model_cw(1 << 20), LDCP_CW_MAX);
	assert_int_equal(ldcp_model_cw(1 << 24), LDCP_CW_MAX);
	assert_int_equal(ldcp_model_cw(U32_MAX), LDCP_CW_MAX);
}

static void ldcp_model_rate__random(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct ldcp_gains g = any_gains();
		u64 cw = any_cw(&g), packet = rnd_range(64, 65535), rtt = 1 + rnd_upto(10000000);
		u64 got = ldcp_model_rate(cw, packet, rtt);
		long double want = ldcp_real(cw) * packet * 1e6L / rtt;

		/* the intermediate product saturates at U64_MAX: 2^44 bytes per second */
		want = fminl(want, ldexpl(1, 44) - 1);
		expect(near_abs(got, want, 1 + want * ldexpl(1, -15)), "cw %Lf, %lu bytes, %lu us: %lu",
		       ldcp_real(cw), packet, rtt, got);
	}
	/* 10 Gb/s, 100 us, 1250 bytes: 100 packets */
	assert_int_equal(ldcp_model_rate(100 * LDCP_CW_ONE, 1250, 100), 1250000000);
}

/* L7 */
static void ldcp_model_bdp__table(void **state)
{
	static const struct {
		u32 mbps, us, packet, want;
	} lines[] = {
		{ 10000, 100, 1514, 83 },	/* 125000 bytes, 82.6 packets */
		{ 10000, 100, 1250, 100 },	/* exactly */
		{ 10000, 100, 1249, 101 },
		{ 1000, 100, 1514, 9 },
		{ 100000, 20, 1514, 166 },
		{ 100, 10, 1514, 1 },
		{ 0, 0, 1514, 1 },
		{ U32_MAX, U32_MAX, 1, 1 << 20 },
		{ 1, 1, 0, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(ldcp_model_bdp(lines[i].mbps, lines[i].us, lines[i].packet),
				 lines[i].want);
}

int main(void)
{
	const struct CMUnitTest ldcp_model[] = {
		cmocka_unit_test(ldcp_model_bound__table),
		cmocka_unit_test(ldcp_model_ack__table),
		cmocka_unit_test(ldcp_model_clean__step),
		cmocka_unit_test(ldcp_model_ack__random),
		cmocka_unit_test(ldcp_model_ack__too_many),
		cmocka_unit_test(ldcp_model_ack__drift),
		cmocka_unit_test(ldcp_model_ack__random_streams),
		cmocka_unit_test(ldcp_model_clean__largest),
		cmocka_unit_test(ldcp_model_quiet__rounds),
		cmocka_unit_test(ldcp_model_return__half),
		cmocka_unit_test(ldcp_model_faster__oracle),
		cmocka_unit_test(ldcp_model_lost__oracle),
		cmocka_unit_test(ldcp_model_clean__from_the_least),
		cmocka_unit_test(ldcp_model_round__random),
		cmocka_unit_test(ldcp_model_packets__table),
		cmocka_unit_test(ldcp_model_cw__largest),
		cmocka_unit_test(ldcp_model_rate__random),
		cmocka_unit_test(ldcp_model_bdp__table),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(ldcp_model, NULL, NULL);
}
