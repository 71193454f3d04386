// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/ldcp_model.h. The input is gains and a window, then events: ACKs of
 * some packets with and without ECE, rounds, arbitrary windows. Each step is compared
 * with the draft in floating point; some calls have values out of every range.
 */
#include "ldcp_oracle.h"

enum {
	ACK,
	ACK_ECE,
	ROUND,
	ANY_WINDOW,
	ANY_RATE,
	QUIET,
	RETURN,
	OPERATIONS,
};

static void any_rate(struct fuzz_input *in, u64 cw)
{
	u32 rtt = fuzz_take(in, 4), packet = fuzz_take(in, 3), mbps = fuzz_take(in, 4);

	ldcp_model_rate(cw, packet, rtt);
	packet = ldcp_model_bdp(mbps, rtt, packet);
	expect(packet >= 1 && packet <= 1 << 20, "%u", packet);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	u64 alpha = fuzz_take(&in, 2), beta = fuzz_take(&in, 2), eta = fuzz_take(&in, 2);
	u64 shift = fuzz_take(&in, 1);
	struct ldcp_gains g = ldcp_gains_of(alpha, beta, eta, shift);
	u64 cw = fuzz_take(&in, 8), before, next;
	u32 quiet = 0, after, n;

	cw = ldcp_model_bound(cw, &g);
	while (in.size) {
		unsigned int op = fuzz_take(&in, 1) % OPERATIONS;

		switch (op) {
		case ACK:
		case ACK_ECE:
			cw = ldcp_checked_ack(&g, cw, fold(fuzz_take(&in, 3), LDCP_PACKETS_MAX),
					      op == ACK_ECE);
			break;
		case ROUND:
			cw = ldcp_model_round(cw, &g);
			expect(cw == ldcp_model_bound(cw, &g), "%lu", cw);
			break;
		case ANY_WINDOW:
			cw = fuzz_take(&in, 8);
			cw = ldcp_model_bound(cw, &g);
			break;
		case ANY_RATE:
			any_rate(&in, cw);
			break;
		case QUIET:
			n = fold(fuzz_take(&in, 3), LDCP_PACKETS_MAX);
			after = ldcp_model_quiet(quiet, cw, n);
			expect(after >= quiet, "%u %u", after, quiet);
			quiet = after;
			next = ldcp_model_faster(cw, n, &g, quiet >> LDCP_QUIET_Q);
			expect(next >= ldcp_model_clean(cw, n, &g), "%lu %lu", cw, next);
			expect(next <= LDCP_CW_MAX, "%lu %lu", cw, next);
			cw = next;
			break;
		case RETURN:
			n = fold(fuzz_take(&in, 3), LDCP_PACKETS_MAX);
			before = fuzz_take(&in, 8);
			before = ldcp_model_bound(before, &g);
			next = ldcp_model_return(cw, before, n, &g);
			expect(next >= ldcp_model_clean(cw, n, &g), "%lu %lu", cw, next);
			expect(next <= fp_max(before, ldcp_model_clean(cw, n, &g)), "%lu %lu", cw,
			       next);
			cw = next;
			break;
		}
	}
	return 0;
}
