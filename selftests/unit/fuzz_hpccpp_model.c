// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/hpccpp_model.h: the input is a configuration and then responses as they
 * might arrive, forged ones included, in bytes. No value may leave its range, no step may
 * differ from the draft in floating point.
 */
#include "hpccpp_oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct hpccpp_config c = { 0 };
	struct hpccpp_model m;

	c.t_ns = HPCCPP_T_MIN_NS + (u32)fold(fuzz_take(&in, 4), HPCCPP_T_MAX_NS - HPCCPP_T_MIN_NS);
	c.eta = 1 + (u32)fold(fuzz_take(&in, 3), HPCCPP_U_ONE - 1);
	c.max_stage = fuzz_take(&in, 1);
	c.w_ai = fold(fuzz_take(&in, 4), (u64)1 << 28);
	c.w_min = fold(fuzz_take(&in, 3), (u64)1 << 20);
	c.w_max = fold(fuzz_take(&in, 8), HPCCPP_W_MAX);
	hpccpp_model_init(&m, fuzz_take(&in, 8));
	expect(m.w <= HPCCPP_W_MAX && m.wc == m.w, "%lu", m.w);

	while (in.size) {
		struct int_msg msg = { .type = INT_RESPONSE, .room = INT_HOPS_MAX };
		u64 elapsed = fuzz_take(&in, 5), sent = fold(fuzz_take(&in, 5), HPCCPP_W_MAX);
		u8 bytes[INT_HOP_LEN], before = m.nhop;
		enum hpccpp_sample result;
		unsigned int i, k;
		u64 wc;

		msg.nhop = (u8)(fuzz_take(&in, 1) & 0xf);
		msg.path_id = (u16)(fuzz_take(&in, 1) & 3);
		for (i = 0; i < msg.nhop; i++) {
			for (k = 0; k < INT_HOP_LEN; k++)
				bytes[k] = (u8)fuzz_take(&in, 1);
			int_get_hop(bytes, &msg.hop[i]);
		}
		result = hpccpp_measure(&m, &msg, c.t_ns, elapsed);
		expect(result != HPCCPP_PARTIAL || m.nhop == before, "%u", m.nhop);
		expect(m.nhop <= INT_HOPS_MAX, "%u", m.nhop);
		if (result != HPCCPP_MEASURED)
			continue;
		expect(m.busiest < m.nhop, "%u of %u", m.busiest, m.nhop);
		wc = hpccpp_reference(&m, &c, sent);
		expect(wc >= sent, "%lu %lu", wc, sent);
		m.wc = fp_min(wc, HPCCPP_W_MAX);
		wc = hpccpp_increase(&c, m.w, elapsed);
		expect(wc >= c.w_ai && (wc == c.w_ai || wc <= 4 * m.w), "%lu %lu", wc, m.w);
		wc = hpccpp_probe_ns(&m, c.eta, c.t_ns, sent);
		expect(wc >= c.t_ns && wc <= 8 * (u64)c.t_ns, "%lu", wc);
		expect_compute_wind(&m, &c, fuzz_take(&in, 1) & 1);
		expect(hpccpp_rate(m.w, c.t_ns) <= ((u64)1 << 31) * 1000000, "%lu", m.w);
	}
	return 0;
}
