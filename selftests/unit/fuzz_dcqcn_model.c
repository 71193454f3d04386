// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes roce/dcqcn_model.h: the input is a set of parameters, then steps: time that
 * passes, bytes sent, losses, CNPs. After each step the model is compared with the paper in
 * floating point.
 */
#include "dcqcn_oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct dcqcn_pair d;
	u64 period, most;

	d.p.line = 1 + fold(fuzz_take(&in, 6), DCQCN_RATE_MAX - 1);
	d.p.floor = 1 + fold(fuzz_take(&in, 6), d.p.line - 1);
	d.p.ai = fold(fuzz_take(&in, 6), DCQCN_RATE_MAX);
	d.p.hai = fold(fuzz_take(&in, 6), DCQCN_RATE_MAX);
	d.p.bytes = 1 + fuzz_take(&in, 4);
	d.p.alpha_ns = 1 + fold(fuzz_take(&in, 4), 1000000000);
	d.p.timer_ns = 1 + fold(fuzz_take(&in, 4), 1000000000);
	d.p.f = fold(fuzz_take(&in, 2), 1000);
	d.p.shift_g = 1 + fuzz_take(&in, 1) % 16;
	d.p.cut = fold(fuzz_take(&in, 2), 1024);
	period = fp_min(d.p.alpha_ns, d.p.timer_ns);
	dcqcn_pair_init(&d, fuzz_take(&in, 7), fuzz_take(&in, 1) & 1);
	most = (d.m.only_sent ? 3 : 500) * d.p.bytes;
	while (in.size) {
		u8 op = fuzz_take(&in, 1) % 4;
		u64 x = fuzz_take(&in, 4);

		if (op == 0)
			dcqcn_pair_advance(&d, fold(x, 500 * period));
		else if (op == 1)
			dcqcn_pair_sent(&d, fold(x, fp_min(most, FP_ONE(31))));
		else if (op == 2)
			dcqcn_pair_loss(&d);
		else
			dcqcn_pair_cnp(&d);
	}
	return 0;
}
