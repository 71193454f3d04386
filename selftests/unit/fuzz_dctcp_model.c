// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/dctcp_model.h: the input is a connection's gain, initial alpha and
 * sequence number, then events: ACKs with and without ECE, new data sent, windows marked
 * alike, cuts. After each event the model is compared with RFC 8257 in floating point.
 * Other calls use states and values that no connection would reach.
 */
#include "dctcp_oracle.h"

enum {
	ACK,
	ACK_ECE,
	SEND,
	STEADY,
	CUT,
	ANY_WINDOW,
	ANY_SEQ,
	OPERATIONS,
};

/* A model in any state: for any counters alpha stays within its range. */
static void any_window(struct fuzz_input *in)
{
	struct dctcp_model m;
	u32 acked, marked, alpha, fraction;
	unsigned int shift = fuzz_take(in, 1) % 32;
	int i;

	dctcp_model_init(&m, fuzz_take(in, 4), 0);
	alpha = m.alpha;
	for (i = 0; i < 2; i++) {
		u32 more = fuzz_take(in, 4), more_marked = fuzz_take(in, 4);

		acked = m.acked;
		marked = m.marked;
		dctcp_model_ack(&m, more, more_marked);
		expect(m.acked == saturate((u64)acked + more, U32_MAX), "%u + %u -> %u", acked,
		       more, m.acked);
		expect(m.marked == saturate((u64)marked + more_marked, U32_MAX), "%u + %u -> %u",
		       marked, more_marked, m.marked);
	}
	acked = m.acked;
	marked = m.marked;

	fraction = dctcp_model_window(&m, shift, 0);
	expect(fraction == fp_fraction(marked, acked, DCTCP_ALPHA_Q), "%u / %u -> %u", marked,
	       acked, fraction);
	expect(fraction <= DCTCP_ALPHA_ONE, "%u / %u -> %u", marked, acked, fraction);
	expect(m.alpha <= fp_max(alpha, fraction), "%u, %u -> %u", alpha, fraction, m.alpha);
	expect(acked || m.alpha == alpha, "%u -> %u", alpha, m.alpha);
	expect(!m.acked && !m.marked, "%u %u", m.acked, m.marked);
}

/* Up to 32 windows of two ACKs, the second of at most as many bytes and with ECE. */
static u64 steady(struct fuzz_input *in, struct dctcp_pair *p, u64 snd_nxt)
{
	u64 unmarked = 1 + fold(fuzz_take(in, 4), TCP_MAX_WINDOW / 2 - 1);
	u64 marked = unmarked >> (fuzz_take(in, 1) & 31);
	int times;

	for (times = fuzz_take(in, 1) % 32; times >= 0; times--) {
		u64 una = p->rfc.snd_una + unmarked;

		snd_nxt = fp_max(snd_nxt, una + marked);
		dctcp_pair_ack(p, una, false, snd_nxt);
		if (marked)
			dctcp_pair_ack(p, una + marked, true, snd_nxt);
	}
	return snd_nxt;
}

/* Window ends up to 2^31 - 1 bytes away, in either direction */
static void any_seq(struct fuzz_input *in)
{
	struct dctcp_model m;
	u32 end = fuzz_take(in, 4);
	u32 distance = fuzz_take(in, 4) >> 1;

	dctcp_model_init(&m, 0, end);
	expect(dctcp_model_window_ended(&m, end + distance) == distance > 0, "%u %u", end,
	       distance);
	expect(!dctcp_model_window_ended(&m, end - distance), "%u %u", end, distance);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	unsigned int shift = DCTCP_SHIFT_G_MIN +
			     fuzz_take(&in, 1) % (DCTCP_SHIFT_G_MAX - DCTCP_SHIFT_G_MIN + 1);
	u32 alpha = fold(fuzz_take(&in, 4), DCTCP_ALPHA_ONE);
	u64 snd_nxt = fuzz_take(&in, 4);
	struct dctcp_pair p = dctcp_pair_init(alpha, shift, snd_nxt);
	u128 exact = 0;		/* to be cut, units of 2^-31 packets */
	unsigned int cuts = 0;
	u64 cut = 0;

	while (in.size) {
		unsigned int op = fuzz_take(&in, 1) % OPERATIONS;
		u64 una = p.rfc.snd_una, flight = snd_nxt - una;
		struct dctcp_model copy;
		s128 owed;
		u32 cwnd;

		switch (op) {
		case ACK:
		case ACK_ECE:
			if (flight)
				dctcp_pair_ack(&p, una + 1 + fold(fuzz_take(&in, 4), flight - 1),
					       op == ACK_ECE, snd_nxt);
			break;
		case SEND:
			snd_nxt += fold(fuzz_take(&in, 4), TCP_MAX_WINDOW - flight);
			break;
		case STEADY:
			snd_nxt = steady(&in, &p, snd_nxt);
			break;
		case CUT:
			cwnd = fuzz_take(&in, 4);
			if (cwnd < 4) {	/* where the minimum of 2 packets may limit the cut */
				copy = p.model;
				dctcp_checked_cut(&copy, cwnd);
				break;
			}
			exact += (u128)cwnd * p.model.alpha;
			cut += cwnd - dctcp_checked_cut(&p.model, cwnd);
			cuts++;
			owed = exact - ((u128)cut << 31);
			expect(owed >= 0 && owed < (s128)FP_ONE(31) + cuts,
			       "cwnd %u, %u cuts", cwnd, cuts);
			break;
		case ANY_WINDOW:
			any_window(&in);
			break;
		case ANY_SEQ:
			any_seq(&in);
			break;
		}
	}
	return 0;
}
