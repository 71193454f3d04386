// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of roce/dcqcn_model.h, in its order, against DCQCN in floating point
 * (dcqcn_oracle.h). R6, R7, R8 are the requirements that a test is about:
 *
 *	R6	a CNP cuts the rate, by a configurable amount
 *	R7	the rate grows with time and with bytes sent since the last CNP
 *	R8	... by the rules of DCQCN
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dcqcn_oracle.h"

#define G	1000000000ULL
#define M	1000000ULL
#define US	1000ULL

/* The paper's parameters, on a 40 Gb/s line */
static const struct dcqcn_params paper = {
	.line = 40 * G, .floor = 10 * M, .ai = 40 * M, .hai = 200 * M, .bytes = 10 * M,
	.alpha_ns = 55 * US, .timer_ns = 55 * US, .f = 5, .shift_g = 8, .cut = 512,
};

static struct dcqcn_params any_params(void)
{
	struct dcqcn_params p;

	p.line = 1 + rnd_upto(DCQCN_RATE_MAX - 1);
	p.floor = 1 + rnd_upto(p.line - 1);
	p.ai = rnd_upto(DCQCN_RATE_MAX);
	p.hai = rnd_upto(DCQCN_RATE_MAX);
	p.bytes = 1 + rnd_upto(U32_MAX);
	p.alpha_ns = 1 + rnd_upto(1000000000);
	p.timer_ns = 1 + rnd_upto(1000000000);
	p.f = rnd_upto(1000);
	p.shift_g = rnd_range(1, 16);
	p.cut = rnd_upto(1024);
	return p;
}

static void dcqcn_init__line_rate(void **state)
{
	struct dcqcn_model m;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		struct dcqcn_params p = any_params();

		memset(&m, 0xff, sizeof(m));
		dcqcn_init(&m, &p, 5);
		assert_int_equal(m.rate, p.line);
		assert_int_equal(m.target, p.line);
		assert_int_equal(m.alpha, DCQCN_ALPHA_ONE);
		assert_int_equal(m.alpha_due, 5 + p.alpha_ns);
		assert_int_equal(m.timer_due, 5 + p.timer_ns);
		assert_false(dcqcn_limited(&m, &p));
	}
}

static void dcqcn_power__floating_point(void **state)
{
	long double want;
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u64 x = rnd_upto(FP_ONE(63)), n = rnd_upto(FP_ONE(40));
		u64 got = dcqcn_power(x, n);

		want = powl(x / (long double)FP_ONE(63), n) * FP_ONE(63);
		expect(got <= FP_ONE(63), "%lu^%lu -> %lu", x, n, got);
		/* long double rounds as coarsely */
		expect(near_abs(got, want, FP_ONE(14) + n * 8.0L),
		       "%lu^%lu -> %lu, not %.1Lf", x, n, got, want);
	}
}

/* By hand: the first CNP halves the rate (alpha is 1), alpha stays 1, the counters are reset. */
static void dcqcn_cnp__table(void **state)
{
	struct dcqcn_model m;

	(void)state;
	dcqcn_init(&m, &paper, 0);
	dcqcn_cnp(&m, &paper, 10 * US);
	assert_int_equal(m.rate, 20 * G);
	assert_int_equal(m.target, 40 * G);
	assert_int_equal(m.alpha, DCQCN_ALPHA_ONE);
	assert_int_equal(m.timer_due, 65 * US);
	dcqcn_cnp(&m, &paper, 20 * US);
	assert_int_equal(m.rate, 10 * G);
	assert_int_equal(m.target, 20 * G);
	/* one period: fast recovery; alpha = 255/256 */
	dcqcn_advance(&m, &paper, 75 * US);
	assert_int_equal(m.rate, 15 * G);
	assert_int_equal(m.target, 20 * G);
	assert_int_equal(m.alpha, DCQCN_ALPHA_ONE / 256 * 255);
	/* three more: 17.5, 18.75, 19.375; the fifth count is F: additive */
	dcqcn_advance(&m, &paper, 240 * US);
	assert_int_equal(m.rate, 19375 * M);
	dcqcn_advance(&m, &paper, 295 * US);
	assert_int_equal(m.target, 20040 * M);
	assert_int_equal(m.rate, (20040 * M + 19375 * M) / 2);
	/* hyper increase once both counts are above F */
	dcqcn_sent(&m, &paper, 60 * M);
	assert_int_equal(m.byte_count, 6);
	assert_int_equal(m.timer_count, 5);
	dcqcn_advance(&m, &paper, 350 * US);
	assert_int_equal(m.timer_count, 6);
	assert_int_equal(m.target, 20040 * M + 6 * 40 * M + 200 * M);
}

/* A configurable part of alpha (R6), and the floor */
static void dcqcn_cnp__cut(void **state)
{
	struct dcqcn_params p = paper;
	struct dcqcn_model m;
	int i;

	(void)state;
	p.cut = 256;
	dcqcn_init(&m, &p, 0);
	dcqcn_cnp(&m, &p, 0);
	assert_int_equal(m.rate, 30 * G);
	p.cut = 1024;
	dcqcn_cnp(&m, &p, 0);
	assert_int_equal(m.rate, p.floor);
	p.cut = 512;
	dcqcn_init(&m, &p, 0);
	for (i = 0; i < 1000; i++)
		dcqcn_cnp(&m, &p, 0);
	assert_int_equal(m.rate, p.floor);
}

/* In the end the rate is exactly the line rate, and alpha is 0. */
static void dcqcn_advance__recovers(void **state)
{
	struct dcqcn_model a, b;
	u64 now;
	int i;

	(void)state;
	dcqcn_init(&a, &paper, 0);
	for (i = 0; i < 30; i++)
		dcqcn_cnp(&a, &paper, 0);
	b = a;
	for (now = 0; now < 10 * G; now += 55 * US)
		dcqcn_advance(&a, &paper, now);
	dcqcn_advance(&b, &paper, now - 55 * US);
	assert_int_equal(a.rate, paper.line);
	assert_int_equal(b.rate, paper.line);
	assert_int_equal(b.alpha, 0);
	assert_false(dcqcn_limited(&a, &paper));
}

/* Periods in which nothing was sent change nothing, however many there are. */
static void dcqcn_advance__nothing_sent(void **state)
{
	struct dcqcn_model m, before;

	(void)state;
	dcqcn_init(&m, &paper, 0);
	m.only_sent = true;
	dcqcn_cnp(&m, &paper, 0);
	before = m;
	dcqcn_advance(&m, &paper, 10 * G);
	assert_int_equal(m.rate, before.rate);
	assert_int_equal(m.alpha, before.alpha);
	assert_int_equal(m.timer_count, 0);
	/* of the periods after a packet the first counts */
	dcqcn_sent(&m, &paper, 1);
	dcqcn_advance(&m, &paper, 20 * G);
	assert_int_equal(m.rate, 30 * G);
	assert_int_equal(m.alpha, DCQCN_ALPHA_ONE / 256 * 255);
	assert_int_equal(m.timer_count, 1);
}

/* R_AI is more than a low rate can take at once. */
static void dcqcn_increase__at_most_the_rate(void **state)
{
	struct dcqcn_model m;
	int i;

	(void)state;
	dcqcn_init(&m, &paper, 0);
	for (i = 0; i < 30; i++)
		dcqcn_cnp(&m, &paper, 0);
	m.only_sent = true;
	m.target = m.rate;
	m.timer_count = paper.f;
	dcqcn_sent(&m, &paper, 1);
	dcqcn_advance(&m, &paper, 55 * US);
	assert_int_equal(m.target, 20 * M);
	assert_int_equal(m.rate, 15 * M);
}

/* A loss halves the rate, whatever alpha is, and there is nothing to recover to. */
static void dcqcn_loss__halves(void **state)
{
	struct dcqcn_model m;
	int i;

	(void)state;
	dcqcn_init(&m, &paper, 0);
	m.alpha = 0;
	dcqcn_loss(&m, &paper, 10 * US);
	assert_int_equal(m.rate, 20 * G);
	assert_int_equal(m.target, 20 * G);
	assert_int_equal(m.timer_due, 65 * US);
	for (i = 0; i < 30; i++)
		dcqcn_loss(&m, &paper, 10 * US);
	assert_int_equal(m.rate, paper.floor);
}

/* Random histories of random queue pairs; each step is compared */
static void dcqcn__random_lives(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < 3000; i++) {
		struct dcqcn_pair d = { .p = any_params() };
		u64 period = fp_min(d.p.alpha_ns, d.p.timer_ns), most;

		dcqcn_pair_init(&d, rnd_upto(FP_ONE(60)), rnd() & 1);
		/* R_T + R_C doubles rounding errors */
		most = fp_min((d.m.only_sent ? 3 : 2000) * d.p.bytes, FP_ONE(31));
		for (k = 0; k < 60; k++) {
			switch (rnd() % 4) {
			case 0:	/* up to 2000 periods of the faster timer */
				dcqcn_pair_advance(&d, rnd_upto(2000 * period));
				break;
			case 1:
				dcqcn_pair_sent(&d, rnd_upto(most));
				break;
			case 2:
				dcqcn_pair_loss(&d);
				break;
			default:
				dcqcn_pair_cnp(&d);
			}
		}
	}
}

/* The paper's parameters over a long history without resynchronisation: no drift */
static void dcqcn__no_drift(void **state)
{
	struct dcqcn_pair d = { .p = paper };
	int i;

	(void)state;
	dcqcn_pair_init(&d, 0, false);
	for (i = 0; i < CASES / 5; i++) {
		d.now += 1000 + rnd() % 4000;
		dcqcn_advance(&d.m, &d.p, d.now);
		dcqcn_paper_advance(&d.o, &d.p, d.now);
		dcqcn_sent(&d.m, &d.p, 4200);
		dcqcn_paper_sent(&d.o, &d.p, 4200);
		if (!(rnd() % 100)) {
			dcqcn_cnp(&d.m, &d.p, d.now);
			dcqcn_paper_cnp(&d.o, &d.p, d.now);
		}
		expect(near_abs(d.m.alpha / (long double)DCQCN_ALPHA_ONE, d.o.alpha, 0.000001),
		       "alpha %u, paper %Lf", d.m.alpha, d.o.alpha);
		expect(near_rel(d.m.rate, d.o.rc, 0.0001), "rate %lu, paper %Lf", d.m.rate, d.o.rc);
	}
}

static void dcqcn_duration__exact(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		u64 bytes = rnd_upto(FP_ONE(28) - 1), rate = 1 + rnd_upto(DCQCN_RATE_MAX - 1);
		u128 bits = (u128)bytes * 8 * 1000000000;

		assert_int_equal(dcqcn_duration(bytes, rate), (u64)((bits + rate - 1) / rate));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dcqcn_init__line_rate),
		cmocka_unit_test(dcqcn_power__floating_point),
		cmocka_unit_test(dcqcn_cnp__table),
		cmocka_unit_test(dcqcn_cnp__cut),
		cmocka_unit_test(dcqcn_advance__recovers),
		cmocka_unit_test(dcqcn_advance__nothing_sent),
		cmocka_unit_test(dcqcn_increase__at_most_the_rate),
		cmocka_unit_test(dcqcn_loss__halves),
		cmocka_unit_test(dcqcn__random_lives),
		cmocka_unit_test(dcqcn__no_drift),
		cmocka_unit_test(dcqcn_duration__exact),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests_name("dcqcn_model", tests, NULL, NULL);
}
