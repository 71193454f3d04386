// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of lab/link/link_model.h: times against exact fractions, opportunities against mahimahi's
 * own steps, losses against their laws.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oracle.h"
#include "link_model.h"

static const u32 sizes[] = { 1, 14, 64, 66, 1500, 1514, 9000, 9014, 66000 };

static u64 any_rate(void)
{
	static const u64 usual[] = { LINK_RATE_MIN, 1000000, 3000000, 10000000000, 400000000000,
				     800000000000, 1600000000000, LINK_RATE_MAX };
	u64 choice = rnd();

	return choice % 3 ? usual[choice / 3 % ARRAY_SIZE(usual)] :
			    LINK_RATE_MIN + rnd_upto(LINK_RATE_MAX - LINK_RATE_MIN);
}

/* Packets that wait leave at exactly the sum of their bits divided by the rate. */
static void send__is_exact(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct link_wire w = { .rate = any_rate() };
		u64 start = 1 + rnd_upto(FP_ONE(60)), end = start;
		u128 bits = 0;

		for (k = 0; k < 500; k++) {
			u32 bytes = sizes[rnd_range(0, ARRAY_SIZE(sizes) - 1)];

			/* it is asked for in the nanosecond in which the last one leaves */
			end = link_send(&w, end, bytes);
			bits += (u128)bytes * 8 * 1000000000;
			expect(end == start + (u64)(bits / w.rate), "packet %d at %lu bit/s: %lu",
			       k, w.rate, end);
		}
		/* after a pause, from the instant at which it is there */
		start = end + 1 + rnd_upto(1000);
		expect(link_send(&w, start, 1500) == start + 1500 * LINK_BYTE / w.rate, "rate %lu",
		       w.rate);
	}
}

/* A rate that changes at any instant: no bit is lost, and none is sent twice. */
static void rate_changes__lose_no_bit(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < CASES / 20; i++) {
		struct link_wire w = { .rate = any_rate() };
		u64 now = 1 + rnd_upto(FP_ONE(60)), end = link_send(&w, now, 9014);
		u128 left = 9014 * (u128)LINK_BYTE;

		for (k = 0; k < 5 && end > now; k++) {
			u64 at = rnd_range(now, end), rate = any_rate();

			left -= (u128)(at - now) * w.rate;
			link_set_rate(&w, at, rate);
			now = at;
			end = w.end;
			expect(end == now + (u64)(left / rate), "rate %lu: %lu", rate, end);
		}
		now = end;
		end = link_send(&w, now, 64);
		left = left % w.rate + 64 * (u128)LINK_BYTE;
		if (k)
			expect(end == now + (u64)(left / w.rate), "next packet: %lu", end);
	}
}

static void rates__within_1e4(void **state)
{
	static const u64 rates[] = { 1000000, 10000000000, 400000000000, 1600000000000 };
	static const u32 bytes[] = { 64, 1500, 9000 };
	size_t r, b;
	int k;

	(void)state;
	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		for (b = 0; b < ARRAY_SIZE(bytes); b++) {
			long double bits = 200000 * 8e9L * bytes[b];
			struct link_wire w = { .rate = rates[r] };
			u64 end = 12345;

			for (k = 0; k < 200000; k++)
				end = link_send(&w, end, bytes[b]);
			expect(near_rel(bits / (end - 12345), rates[r], 0.0001L),
			       "%lu bit/s, %u bytes", rates[r], bytes[b]);
		}
	}
}

#define TRACE	50

/* mahimahi's link, byte by byte: packets that wait use what opportunities they meet. */
struct naive {
	const u32 *at;
	u32 n;
	u64 k;		/* opportunities so far */
	u32 left;
};

static u64 naive_instant(const struct naive *o, u64 k)
{
	return (k / o->n * o->at[o->n - 1] + o->at[k % o->n]) * 1000;
}

static u64 naive_send(struct naive *o, u64 now, u32 bytes)
{
	while (bytes) {
		if (!o->left || naive_instant(o, o->k) < now) {
			o->k += o->left < LINK_TRACE_BYTES || naive_instant(o, o->k) < now;
			o->left = LINK_TRACE_BYTES;
			continue;
		}
		o->left--;
		bytes--;
	}
	return naive_instant(o, o->k);
}

static void trace__is_mahimahis(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < 400; i++) {
		u32 at[TRACE], n = rnd_range(1, TRACE), last = 0, j;
		struct link_trace t = { .at = at, .n = n };
		struct naive o = { .at = at, .n = n, .left = LINK_TRACE_BYTES };
		u64 now = 0, end, want;

		for (j = 0; j < n; j++)
			at[j] = last += rnd_range(0, 3) ? rnd_range(0, 3) * 1000 : 0;
		if (!last)
			at[n - 1] = 1000;
		link_trace_start(&t, 0);
		for (k = 0; k < 200; k++) {
			u32 bytes = rnd_range(14, k % 2 ? 1514 : 9014);

			end = link_trace_send(&t, now, bytes);
			want = naive_send(&o, now, bytes - 10);
			expect(end == want, "%u opportunities, packet %d of %u at %lu: %lu, not %lu",
			       n, k, bytes, now, end, want);
			expect(end >= now, "%lu before %lu", end, now);
			now = end + (rnd_range(0, 3) ? 0 : rnd_upto(1000000));
		}
	}
}

/* Full-size packets that wait use each opportunity, also beside an outage. */
static void trace__is_used_whole(void **state)
{
	static const u32 at[] = { 0, 1000, 1000, 2000, 1502000, 1502000, 1503000 };
	struct link_trace t = { .at = at, .n = ARRAY_SIZE(at) };
	u64 now = 7, k;

	(void)state;
	link_trace_start(&t, 7);
	for (k = 0; k < 700; k++) {
		now = link_trace_send(&t, now, 1514);
		expect(now == 7 + (k / 7 * 1503000 + at[k % 7]) * 1000, "packet %lu: %lu", k, now);
	}
	/* long after: the first opportunity that comes */
	now = link_trace_send(&t, 7 + 1503000000ULL * 1000000 + 2001000, 1514);
	expect(now == 7 + 1503000000ULL * 1000000 + 1502000000, "%lu", now);
}

static u64 q32(double p)
{
	return p * LINK_ONE;
}

static void losses__follow_their_law(void **state)
{
	static const struct { double good, bad, worse, better; } laws[] = {
		{ 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 0.01, 0, 0, 0 }, { 0, 1, 0.01, 0.25 },
		{ 0.001, 0.6, 0.05, 0.1 },
	};
	u64 seed = rnd();
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(laws); i++) {
		struct link_loss l = { q32(laws[i].good), q32(laws[i].bad), q32(laws[i].worse),
				       q32(laws[i].better), false };
		double bad = laws[i].worse ? laws[i].worse / (laws[i].worse + laws[i].better) : 0;
		double want = bad * laws[i].bad + (1 - bad) * laws[i].good;
		u64 lost = 0, runs = 0;
		bool last = false;

		for (k = 0; k < 2000000; k++) {
			bool now = link_loses(&l, &seed);

			lost += now;
			runs += now && !last;
			last = now;
		}
		expect(near_abs((double)lost / k, want, 0.02 * want), "law %zu: %lu lost", i, lost);
		/* of Gilbert: as long as the bad state lasts; independent: as theory says */
		if (laws[i].bad == 1)
			want = 1 - laws[i].better;
		if (laws[i].bad == 1 || (want > 0 && want < 1 && !laws[i].worse))
			expect(near_rel((double)lost / runs, 1 / (1 - want), 0.02L), "%lu runs",
			       runs);
	}
}

static void arrivals__keep_their_order(void **state)
{
	struct link_path p = { .delay = 5000000, .jitter = 1000000 };
	u64 seed = rnd(), last = 0, end = 0, sum = 0, least = U64_MAX, most = 0;
	int k, late = 0;

	(void)state;
	/* far apart: uniform from delay to delay + jitter */
	for (k = 0; k < 1000000; k++, end += 2000000) {
		u64 took = link_arrival(&p, end, &seed) - end;

		sum += took;
		least = fp_min(least, took);
		most = fp_max(most, took);
	}
	expect(near_rel((double)sum / k, 5500000, 0.001L), "mean %lu", sum / k);
	expect(least >= 5000000 && least < 5000100, "least %lu", least);
	expect(most <= 6000000 && most > 5999900, "most %lu", most);
	/* close together: none overtakes */
	for (k = 0; k < 1000000; k++, end += 1000) {
		u64 at = link_arrival(&p, end, &seed);

		expect(at >= last && at <= end + 6000000, "packet %d", k);
		last = at;
	}
	/* late ones are, and others are not held back by them */
	p = (struct link_path){ .delay = 100, .late = LINK_ONE / 10, .late_by = 77 };
	for (k = 0; k < 1000000; k++, end += 10) {
		u64 took = link_arrival(&p, end, &seed) - end;

		expect(took == 100 || took == 177, "%lu", took);
		late += took == 177;
	}
	expect(near_rel(late, 100000, 0.02L), "%d late", late);
	/* a shorter delay: those sent from now on overtake */
	p = (struct link_path){ .delay = 1000, .jitter = 10 };
	last = link_arrival(&p, end, &seed);
	link_set_delay(&p, 10);
	expect(link_arrival(&p, end, &seed) < last, "it waits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__is_exact),
		cmocka_unit_test(rate_changes__lose_no_bit),
		cmocka_unit_test(rates__within_1e4),
		cmocka_unit_test(trace__is_mahimahis),
		cmocka_unit_test(trace__is_used_whole),
		cmocka_unit_test(losses__follow_their_law),
		cmocka_unit_test(arrivals__keep_their_order),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
