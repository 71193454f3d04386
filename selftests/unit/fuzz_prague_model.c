// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/prague_model.h: the input is a connection, its parameters, and events.
 * After each event the state must be valid; reductions must equal those in floating point,
 * and an increase must never shrink the window.
 */
#include "prague_oracle.h"

enum {
	ACK,
	EWMA,
	CUT,
	LOSS,
	INCREASE,
	SET,
	RTT,
	ROUND,
	QUEUE,
	OUTPUTS,
	OPERATIONS,
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	u32 srtt = fuzz_take(&in, 4), target = fuzz_take(&in, 4);
	enum prague_rtt_mode mode = fuzz_take(&in, 1) % PRAGUE_RTT_MODES;
	struct prague_hystart h = { 0 };
	struct prague_queue queue = { 0 };
	struct prague_model m;

	prague_model_init(&m, fp_max(fuzz_take(&in, 4), 2));
	while (in.size) {
		unsigned int op = fuzz_take(&in, 1) % OPERATIONS;
		u32 x = fuzz_take(&in, 4), y = fuzz_take(&in, 4);
		u32 virt = prague_rtt_virt(srtt, mode, target);
		u32 cwnd = m.cwnd;
		u64 alpha = m.alpha, ai;

		switch (op) {
		case ACK:
			prague_count(&m, x, y);
			break;
		case EWMA:
			x = prague_ewma(&m);
			expect(x <= FP_ONE(30), "%u", x);
			break;
		case CUT:
			checked_reduce(&m, m.alpha >> 1);
			break;
		case LOSS:
			checked_reduce(&m, prague_loss_share(x & 1));
			break;
		case INCREASE:
			ai = prague_boost(prague_ai(srtt, virt), m.cwnd, x);
			expect(ai >= prague_ai(srtt, virt), "%lu", ai);
			prague_increase(&m, x, ai);
			expect(m.cwnd >= cwnd, "%u -> %u", cwnd, m.cwnd);
			break;
		case SET:
			prague_set_window(&m, fp_max(x, 1));
			srtt = y;
			break;
		case RTT:
			prague_hystart_rtt(&h, x);
			expect(h.samples <= PRAGUE_HYSTART_SAMPLES && h.round_min, "%u", h.samples);
			break;
		case ROUND:
			if (prague_hystart_round(&h))
				h.css = 0;
			expect(h.css <= PRAGUE_CSS_ROUNDS, "%u", h.css);
			break;
		case QUEUE:
			if (y & 1)
				prague_queue_round(&queue);
			prague_queue_count(&queue, x, y >> 1, srtt);
			expect(queue.idle <= queue.acked, "%u %u", queue.idle, queue.acked);
			srtt = fuzz_take(&in, 4);
			break;
		case OUTPUTS:
			prague_pacing_rate(x, y, m.frac, srtt, x & 1);
			expect(prague_burst(fuzz_take(&in, 8), x, y) >= 1, "%u %u", x, y);
			expect(prague_start_window(m.cwnd, x, y, srtt) >= PRAGUE_MIN_CWND, "%u %u",
			       x, y);
			expect(prague_pipe(x, prague_gap(y, srtt)) >= PRAGUE_MIN_CWND, "%u %u",
			       x, y);
			prague_start_rate((u64)x << (y & 31), y, srtt, x & 1);
			prague_cubic_ai(m.cwnd, prague_cubic_window(x, x & 1, y, srtt));
			expect(prague_probe_ai(x) >= PRAGUE_AI_ONE, "%u", x);
			break;
		}
		expect_sane(&m);
		expect(op == EWMA || m.alpha == alpha, "%lu", m.alpha);
	}
	return 0;
}
