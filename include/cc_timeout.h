/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which changes of the stack's congestion state mean a loss? For a control's
 * set_state, which is called before the state changes.
 */
#ifndef _LOWQ_CC_TIMEOUT_H
#define _LOWQ_CC_TIMEOUT_H

#include <net/tcp.h>

/*
 * TCP_CA_Loss does not always mean a timeout: the stack also enters it to retransmit
 * after the path MTU shrank, or when a Fast Open SYN's data was not accepted. Only a
 * timeout sets cwnd to packets_in_flight + 1, so that is what we test. CA_EVENT_LOSS
 * cannot be used: it is not sent for timeouts in CWR or Recovery.
 */
static inline bool cc_timed_out(const struct sock *sk, u8 new_state)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return new_state == TCP_CA_Loss && tcp_snd_cwnd(tp) == tcp_packets_in_flight(tp) + 1;
}

/* The second timeout, or a later one, since the latest data was acknowledged */
static inline bool cc_timed_out_again(const struct sock *sk, u8 new_state)
{
	return cc_timed_out(sk, new_state) && inet_csk(sk)->icsk_retransmits;
}

/*
 * Does a recovery start? The stack enters it from TCP_CA_Loss, too, when a packet
 * retransmitted after the timeout is lost again: that is a new loss (RFC 5681 4.3).
 */
static inline bool cc_recovery_starts(const struct sock *sk, u8 new_state)
{
	return new_state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery;
}

/*
 * Did a tail loss probe repair a loss (RFC 8985 7.4.2)? The stack then enters CWR, with
 * high_seq at SND.NXT, and leaves it on the same ACK. A reduction for ECN leaves CWR with
 * the ACK of something beyond high_seq, and tcp_disconnect(), after .release, at any time.
 */
static inline bool cc_probe_repaired(const struct sock *sk, u8 new_state)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_CWR && new_state < TCP_CA_CWR &&
	       sk->sk_state != TCP_CLOSE &&
	       !after(tcp_sk(sk)->snd_una, tcp_sk(sk)->high_seq);
}

#endif /* _LOWQ_CC_TIMEOUT_H */
