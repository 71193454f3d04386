/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Proportional rate reduction (RFC 6937) as arithmetic on plain values: no connection, packet or
 * clock. For controls with a cong_control of their own, for which the stack does not do it.
 */
#ifndef _LOWQ_PRR_MODEL_H
#define _LOWQ_PRR_MODEL_H

#include "fixedpoint.h"

/**
 * struct prr_state - what proportional rate reduction knows of a recovery, in packets
 * @ssthresh:	what the window is to become
 * @prior_cwnd:	the window before the recovery (RecoverFS)
 * @in_flight:	not acknowledged and not taken for lost (pipe)
 * @delivered:	since the recovery began, with this ACK's (prr_delivered)
 * @out:	sent since the recovery began (prr_out)
 * @repairing:	one of those is still on its way
 */
struct prr_state {
	u32 ssthresh;
	u32 prior_cwnd;
	u32 in_flight;
	u32 delivered;
	u32 out;
	bool repairing;
};

/*
 * Proportional rate reduction (RFC 6937): the window after an ACK that delivers @acked
 * packets, where @cwnd is the one before. An ACK that delivers nothing sends nothing. One
 * packet more than delivered may leave only if the ACK @advances SND.UNA and reports no
 * further loss. While nothing is on its way that was sent since the recovery began, one packet may
 * leave: what else is in flight may be lost, too, and no later ACK would come to show it.
 */
static inline u32 prr_window(const struct prr_state *p, u32 cwnd, u32 acked, bool advances)
{
	u64 send;

	if (!acked)
		return cwnd;
	if (p->in_flight > p->ssthresh) {
		u64 wide = (u64)p->ssthresh * p->delivered, prior = fp_max(p->prior_cwnd, 1);

		send = fp_sub(fp_div(wide + prior - 1, prior), p->out);
	} else {
		send = fp_min(p->ssthresh - p->in_flight,
			      fp_max(fp_sub(p->delivered, p->out), acked) + advances);
	}
	send = fp_max(send, !p->out || !p->repairing);
	return fp_min(fp_max(p->in_flight + send, 1), U32_MAX);
}

#endif /* _LOWQ_PRR_MODEL_H */
