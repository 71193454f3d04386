// SPDX-License-Identifier: GPL-2.0
/* hpccpp: the algorithm's parameters. Others are where they are used. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hpccpp.h"
#include "hpccpp_param.h"

CC_PARAM_SHARED(hpccpp_base_rtt, base_rtt_ns, 0, 0, HPCCPP_T_MAX_NS, 0644,
		"0 is the measured minimum",
		"base RTT T in nanoseconds, 0 is the measured minimum (draft 4.1)");
CC_PARAM(w_ai_bytes, 0, 0, 1 << 20, 0644, "0 computes it from flows",
	 "additive increase W_ai in bytes, 0 derives it from flows (draft 5)");

/* The target utilisation, Q20 */
u32 hpccpp_eta(void)
{
	return fp_fraction(READ_ONCE(eta_permille.value), 1000, HPCCPP_U_Q);
}

/* Those of @s that the operator has given */
void hpccpp_given_settings(struct hpccpp_settings *s)
{
	s->eta_permille = READ_ONCE(eta_permille.value);
	s->max_stage = READ_ONCE(max_stage.value);
	s->w_ai_bytes = READ_ONCE(w_ai_bytes.value);
	s->flows = READ_ONCE(flows.value);
	s->wc_previous = READ_ONCE(wc_previous.value);
	s->queue_per_rtt = READ_ONCE(queue_per_rtt.value);
}
