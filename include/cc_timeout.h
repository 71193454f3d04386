/* SPDX-License-Identifier: GPL-2.0 */
/* Was it a timeout? For controls that have to tell, in set_state. */
#ifndef _LOWQ_CC_TIMEOUT_H
#define _LOWQ_CC_TIMEOUT_H

#include <net/tcp.h>

/*
 * The stack enters TCP_CA_Loss after a timeout; and with no loss at all, to send again
 * what the path's MTU has become too small for, or what a SYN carried in vain. Only the
 * timeout has set the window, to a packet more than what it still takes to be in flight.
 * CA_EVENT_LOSS tells of some timeouts only: not of those in CWR or in Recovery.
 */
static inline bool cc_timed_out(const struct sock *sk, u8 new_state)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return new_state == TCP_CA_Loss && tcp_snd_cwnd(tp) == tcp_packets_in_flight(tp) + 1;
}

#endif /* _LOWQ_CC_TIMEOUT_H */
