// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/hpccpp_model.h: the input is settings, and then responses as they might
 * arrive, forged ones included. No value may leave its range, and no step may differ from
 * the draft in floating point.
 */
#include "hpccpp_oracle.h"

/* Any settings that a module may pass */
static struct hpccpp_settings fuzz_settings(struct fuzz_input *in)
{
	struct hpccpp_settings s = {
		.t_ns = HPCCPP_T_MIN_NS +
			(u32)fold(fuzz_take(in, 4), HPCCPP_T_MAX_NS - HPCCPP_T_MIN_NS),
		.eta_permille = 100 + (u32)fold(fuzz_take(in, 2), 900),
		.max_stage = (u8)fuzz_take(in, 1),
		.w_ai_bytes = (u32)fold(fuzz_take(in, 4), 1 << 20),
		.flows = (u32)fold(fuzz_take(in, 3), 1000000),
		.mss = 1 + (u32)fold(fuzz_take(in, 2), 65534),
		.w_limit = fold(fuzz_take(in, 5), HPCCPP_W_MAX),
		.line_mbps = (u32)fold(fuzz_take(in, 3), 1600000),
		.carried = fold(fuzz_take(in, 5), HPCCPP_W_MAX),
	};

	s.fill_ns = s.t_ns + (u32)fold(fuzz_take(in, 4), HPCCPP_T_MAX_NS);
	return s;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct hpccpp_settings settings = fuzz_settings(&in);
	struct hpccpp_model m;
	s32 doubt = 0;

	hpccpp_model_init(&m, fuzz_take(&in, 8));
	expect(m.w <= HPCCPP_W_MAX && m.wc == m.w, "%lu", m.w);

	while (in.size) {
		struct int_msg msg = { .type = INT_RESPONSE, .room = INT_HOPS_MAX };
		u8 bytes[INT_HOP_LEN];
		struct hpccpp_model before = m, draft;
		enum hpccpp_result result;
		struct hpccpp_config c;
		struct hpccpp_sample s = {
			.msg = &msg, .settings = settings,
			.elapsed_ns = fuzz_take(&in, 5),
			.sent_w = fold(fuzz_take(&in, 5), HPCCPP_W_MAX),
		};
		unsigned int i, k;
		u32 most;
		u64 value;

		msg.nhop = (u8)(fuzz_take(&in, 1) & 0xf);
		msg.path_id = (u16)(fuzz_take(&in, 1) & 3);
		for (i = 0; i < msg.nhop && i < INT_HOPS_MAX; i++) {
			for (k = 0; k < INT_HOP_LEN; k++)
				bytes[k] = (u8)fuzz_take(&in, 1);
			int_get_hop(bytes, &msg.hop[i]);
		}
		most = hpccpp_most_load(&m, &msg, settings.t_ns, s.elapsed_ns);
		doubt = hpccpp_doubt(doubt,
				     hpccpp_suffered(msg.path_id, msg.nhop & 1, msg.nhop & 2), most,
				     fp_fraction(settings.eta_permille, 1000, HPCCPP_U_Q));
		expect(doubt >= -HPCCPP_DOUBT_MAX && doubt <= HPCCPP_DOUBT_MAX, "%d", doubt);
		result = hpccpp_step(&m, &s);
		expect(result != HPCCPP_PARTIAL || m.nhop == before.nhop, "%u", m.nhop);
		expect(m.nhop <= INT_HOPS_MAX, "%u", m.nhop);
		if (result != HPCCPP_MEASURED) {
			/* the first of all may show a queue: then the link is full */
			if (result != HPCCPP_BASELINE || before.nhop ||
			    before.newcomer != HPCCPP_NEWCOMER)
				expect(m.w == before.w && m.u == before.u, "%lu %u", m.w, m.u);
			else
				expect(m.w == before.w || m.u > HPCCPP_U_ONE, "%lu %u", m.w, m.u);
			continue;
		}
		expect(m.busiest < m.nhop, "%u of %u", m.busiest, m.nhop);
		/* what was measured with the shorter queues, and T or longer to drain them */
		value = hpccpp_carried(s.sent_w, s.elapsed_ns, settings.t_ns);
		expect(value <= HPCCPP_W_MAX, "%lu", value);
		expect(m.u <= fp_max(most, before.u), "%u %u %u", most, m.u, before.u);
		hpccpp_config_set(&c, &m, &settings);
		/* W_ai depends on the W before */
		if (!settings.w_ai_bytes && !settings.flows)
			c.w_ai = hpccpp_w_ai_by_load(c.bdp, c.eta, m.mean_u, before.w,
						     (u64)settings.mss << HPCCPP_W_Q);
		expect(m.w >= c.w_min && (m.w <= c.w_max || m.w == c.w_min), "%lu", m.w);
		expect(m.reference >= s.sent_w, "%lu %lu", m.reference, s.sent_w);
		value = hpccpp_increase(&c, before.w, s.elapsed_ns);
		expect(value >= c.w_ai && (value == c.w_ai || value <= before.w), "%lu %lu",
		       value, before.w);
		/* the same step, as the draft has it */
		c.w_ai = value;
		draft = before;
		draft.u = m.u;
		draft.crowded = m.crowded;
		c.eta = hpccpp_target(&draft, c.eta);
		expect(!m.crowded || (before.newcomer && c.eta <= HPCCPP_CROWD + HPCCPP_U_ONE),
		       "%u %u", before.newcomer, c.eta);
		if (before.newcomer && !m.crowded && !settings.w_ai_bytes && !settings.flows) {
			c.w_ai = hpccpp_newcomer_w_ai(&draft, &c);
			expect(c.w_ai >= value, "%lu %lu", c.w_ai, value);
		}
		draft.wc = m.reference;
		expect_compute_wind(&draft, &c);
		expect(draft.w == m.w && draft.stage == m.stage, "%lu %lu", draft.w, m.w);
		value = hpccpp_probe_ns(&m, c.eta, c.t_ns, s.sent_w);
		expect(value >= c.t_ns && value <= 8 * (u64)c.t_ns, "%lu", value);
		expect(hpccpp_rate(m.w, c.t_ns) <= ((u64)1 << 31) * 1000000, "%lu", m.w);
	}
	return 0;
}
