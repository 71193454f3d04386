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

#define WINDOW_MOST	12U
#define SENT_MOST	64U

/* A connection in recovery, by packets. They arrive in the order in which they were sent. */
struct recovery {
	struct prr_state prr;
	u32 cwnd, una, nxt, high;		/* high: SND.NXT when the recovery began */
	bool sacked[SENT_MOST], lost[SENT_MOST], again[SENT_MOST];
	u32 way[2 * SENT_MOST], first, last;	/* what is on its way, and arrives */
};

static u32 count(const bool *of, u32 n)
{
	u32 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += of[i];
	return sum;
}

static u32 in_flight(const struct recovery *r)
{
	return r->nxt - count(r->sacked, r->nxt) - count(r->lost, r->nxt) +
	       count(r->again, r->nxt);
}

/* As cc_recovery_under_way() */
static bool under_way(const struct recovery *r)
{
	return count(r->again, r->nxt) ||
	       (!count(r->lost, r->nxt) && r->nxt != r->high && !r->sacked[r->nxt - 1]);
}

/* Known losses first, then new data */
static void send_allowed(struct recovery *r)
{
	while (in_flight(r) < r->cwnd) {
		u32 i = 0;

		while (i < r->nxt && (!r->lost[i] || r->again[i]))
			i++;
		if (i == r->nxt) {
			if (r->nxt == SENT_MOST)
				return;
			r->nxt++;
		} else {
			r->again[i] = true;
		}
		r->way[r->last++] = i;
		r->prr.out++;
	}
}

/* What was sent before packet @i, which has arrived, is lost, if it has not been sent again. */
static void sack(struct recovery *r, u32 i)
{
	u32 j;

	r->sacked[i] = true;
	r->lost[i] = false;
	r->again[i] = false;
	for (j = 0; j < i && i < r->high; j++)
		r->lost[j] |= !r->sacked[j];
	for (j = 0; j < r->high && i >= r->high; j++)
		r->lost[j] |= !r->sacked[j];
	while (r->una < r->nxt && r->sacked[r->una])
		r->una++;
}

/* Of a first window those of @lost are lost. True if all of it arrives without a timer. */
static bool recovers(u32 window, u32 ssthresh, u32 lost)
{
	struct recovery r = {
		.cwnd = window, .nxt = window, .high = window,
		.prr = { .ssthresh = ssthresh, .prior_cwnd = window },
	};
	bool began = false;
	u32 i;

	for (i = 0; i < window; i++)
		if (!(lost & 1U << i))
			r.way[r.last++] = i;
	while (r.first < r.last && r.una < r.high) {
		u32 una = r.una, known = count(r.lost, r.nxt);

		sack(&r, r.way[r.first++]);
		if (!began && count(r.lost, r.nxt)) {
			began = true;
			r.cwnd = in_flight(&r) + 1;	/* as cc_recovery_begin() */
		} else if (began) {
			r.prr.delivered++;
			r.prr.in_flight = in_flight(&r);
			r.prr.repairing = under_way(&r);
			r.cwnd = prr_window(&r.prr, r.cwnd, 1,
					    r.una != una && count(r.lost, r.nxt) <= known);
		}
		if (began)
			send_allowed(&r);
	}
	/* without a later packet that arrives, only a tail loss probe finds the loss */
	return r.una >= r.high || !began;
}

/* All but the first, all but one, every second, and any others */
static void prr_window__never_silent(void **state)
{
	u32 window, ssthresh, lost;

	(void)state;
	for (window = 1; window <= WINDOW_MOST; window++)
		for (ssthresh = 1; ssthresh <= window; ssthresh++)
			for (lost = 0; lost < 1U << window; lost++)
				expect(recovers(window, ssthresh, lost),
				       "window %u, ssthresh %u: stands still if %x are lost",
				       window, ssthresh, lost);
}

int main(void)
{
	const struct CMUnitTest prr_model[] = {
		cmocka_unit_test(prr_window__is_rfc6937),
		cmocka_unit_test(prr_window__nothing_delivered),
		cmocka_unit_test(prr_window__any),
		cmocka_unit_test(prr_window__never_silent),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(prr_model, NULL, NULL);
}
