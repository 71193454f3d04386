// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/prr_model.h against RFC 6937 in floating point, for windows of up to 2^20
 * packets; what must never happen is tested with any values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oracle.h"
#include "prr_model.h"

#define CWND_MOST	0x100000U	/* 2^20 */

/* RFC 6937 3, with the slow start reduction bound where @advances, else the conservative one */
static inline long double rfc6937_sndcnt(const struct prr_state *p, u32 delivered_data,
					 bool advances)
{
	long double pipe = p->in_flight, ssthresh = p->ssthresh, prr_delivered = p->delivered;
	long double prr_out = p->out, limit;

	if (pipe > ssthresh)
		return ceill(prr_delivered * ssthresh / p->prior_cwnd) - prr_out;
	limit = fmaxl(prr_delivered - prr_out, delivered_data) + (advances ? 1 : 0);
	return fminl(ssthresh - pipe, limit);
}

/* A recovery from a window of up to @most packets */
static struct prr_state any_prr(u32 most)
{
	struct prr_state p = {
		.prior_cwnd = rnd_range(1, most),
		.delivered = rnd_upto(most),
		.out = rnd_upto(most),
		.repairing = rnd_upto(1),
	};

	p.ssthresh = rnd_upto(p.prior_cwnd);
	p.in_flight = rnd_upto(p.prior_cwnd);
	return p;
}

static void prr_window__is_rfc6937(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		long double sndcnt, want;
		struct prr_state p = any_prr(i % 2 ? 100 : CWND_MOST);
		u32 acked = rnd_range(1, i % 3 ? 3 : 100);
		bool advances = rnd_upto(1);
		u32 cwnd = prr_window(&p, rnd_upto(U32_MAX), acked, advances);

		sndcnt = rfc6937_sndcnt(&p, acked, advances);
		/* what is in flight cannot be called back; one leaves if nothing repairs */
		want = fmaxl(p.in_flight + fmaxl(sndcnt, p.out && p.repairing ? 0 : 1), 1);
		expect(cwnd == want, "ssthresh %u prior %u in flight %u: %u, not %Lf",
		       p.ssthresh, p.prior_cwnd, p.in_flight, cwnd, want);
	}
}

/* An ACK that only repeats what was reported before sends nothing. */
static void prr_window__nothing_delivered(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prr_state p = any_prr(CWND_MOST);
		u32 cwnd = rnd_upto(U32_MAX);

		assert_int_equal(prr_window(&p, cwnd, 0, rnd_upto(1)), cwnd);
	}
}

static void prr_window__any(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct prr_state p = {
			.ssthresh = rnd_upto(U32_MAX), .prior_cwnd = rnd_upto(U32_MAX),
			.in_flight = rnd_upto(U32_MAX), .delivered = rnd_upto(U32_MAX),
			.out = rnd_upto(U32_MAX),
		};
		u32 cwnd = prr_window(&p, 10, rnd_range(1, U32_MAX), rnd_upto(1));

		assert_true(cwnd >= 1 && cwnd >= p.in_flight);
	}
}

int main(void)
{
	const struct CMUnitTest prr_model[] = {
		cmocka_unit_test(prr_window__is_rfc6937),
		cmocka_unit_test(prr_window__nothing_delivered),
		cmocka_unit_test(prr_window__any),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(prr_model, NULL, NULL);
}
