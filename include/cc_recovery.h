/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window during a recovery, for controls with a cong_control of their own.
 */
#ifndef _LOWQ_CC_RECOVERY_H
#define _LOWQ_CC_RECOVERY_H

#include <net/tcp.h>

#include "prr_model.h"

/*
 * For set_state. Entered from CWR, the stack has not reset its counts. RACK's timer may start the
 * recovery, without an ACK: one retransmission leaves whatever the window is, or the flow waits for
 * the timeout, and no more than one, as with the stack's own PRR.
 */
static inline void cc_recovery_begin(struct tcp_sock *tp)
{
	tp->prr_delivered = 0;
	tp->prr_out = 0;
	tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + 1);
}

/*
 * On each ACK the window follows what arrives, towards @target packets (RFC 6937); @advanced: the
 * ACK advances SND.UNA. Without that, all lost packets would leave at once, into the queue that has
 * just dropped them.
 */
static noinline void cc_recovery_window(struct tcp_sock *tp, const struct rate_sample *rs,
					u32 target, bool advanced)
{
	u32 acked = max(rs->acked_sacked, 0);
	struct prr_state prr = {
		.ssthresh = target,
		.prior_cwnd = tp->prior_cwnd,
		.in_flight = tcp_packets_in_flight(tp),
		.delivered = tp->prr_delivered + acked,
		.out = tp->prr_out,
	};

	tp->prr_delivered = prr.delivered;
	tcp_snd_cwnd_set(tp, prr_window(&prr, tcp_snd_cwnd(tp), acked, advanced && !rs->losses));
}

#endif /* _LOWQ_CC_RECOVERY_H */
