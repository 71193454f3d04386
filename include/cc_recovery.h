/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window during a recovery, for controls with a cong_control of their own.
 */
#ifndef _LOWQ_CC_RECOVERY_H
#define _LOWQ_CC_RECOVERY_H

#include <net/tcp.h>

#include "prr_model.h"

/*
 * For set_state. Resets the stack's PRR counts, which it does not do itself when Recovery follows
 * CWR. If RACK's timer starts the recovery, there is no ACK that opens the window: allow one
 * retransmission, as the stack's own PRR does. With none, the flow would wait for the timeout.
 */
static inline void cc_recovery_begin(struct tcp_sock *tp)
{
	tp->prr_delivered = 0;
	tp->prr_out = 0;
	tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + 1);
}

/*
 * Is a packet on its way that was sent since the recovery began: a retransmission, or, if no known
 * loss waits for one, new data?
 */
static inline bool cc_recovery_under_way(struct tcp_sock *tp)
{
	return tp->retrans_out || (!tp->lost_out && tp->snd_nxt != tp->high_seq &&
				   tcp_highest_sack_seq(tp) != tp->snd_nxt);
}

/*
 * Called on each ACK: proportional rate reduction towards @target packets (RFC 6937). Without it,
 * all lost packets would be retransmitted at once, into the queue that has just dropped them.
 * @advanced: the ACK advances SND.UNA.
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
		.repairing = cc_recovery_under_way(tp),
	};

	tp->prr_delivered = prr.delivered;
	tcp_snd_cwnd_set(tp, prr_window(&prr, tcp_snd_cwnd(tp), acked, advanced && !rs->losses));
}

#endif /* _LOWQ_CC_RECOVERY_H */
