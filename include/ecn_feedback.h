/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback about ECN marks, both ends of it.
 *
 * Sender (struct ecn_feedback): how much of what an ACK newly covers was marked.
 *	With Accurate ECN the peer counts marked packets exactly; without it, an
 *	ACK with ECE says that all it covers was marked, one without that nothing
 *	was, provided that the peer echoes as below.
 * Receiver (struct ecn_echo): ECE on an ACK says whether the packets it covers
 *	came marked (RFC 8257 3.2), in place of RFC 3168's "until CWR".
 */
#ifndef _LOWQ_ECN_FEEDBACK_H
#define _LOWQ_ECN_FEEDBACK_H

#include "cc_compat.h"

/**
 * struct ecn_feedback - what the sender has already accounted for
 * @una:	SND.UNA
 * @delivered_ce: tp->delivered_ce, packets that the peer says came marked
 */
struct ecn_feedback {
	u32 una;
	u32 delivered_ce;
};

/**
 * struct ecn_sample - what one ACK added
 * @acked:	bytes newly acknowledged cumulatively; SACK is ignored
 * @marked:	bytes of them, as far as the feedback tells, that were marked. With
 *		Accurate ECN marks may come ahead of the bytes they belong to (on
 *		packets that were only SACKed): compare sums, not single samples
 */
struct ecn_sample {
	u32 acked;
	u32 marked;
};

static inline void ecn_feedback_init(struct ecn_feedback *fb, const struct tcp_sock *tp)
{
	fb->una = tp->snd_una;
	fb->delivered_ce = tp->delivered_ce;
}

/* To be called from in_ack_event with its @flags, once per ACK. */
static inline struct ecn_sample ecn_feedback_update(struct ecn_feedback *fb,
						    const struct tcp_sock *tp, u32 flags)
{
	struct ecn_sample s = { .acked = tp->snd_una - fb->una };
	u32 ce = tp->delivered_ce - fb->delivered_ce;

	if (cc_ecn_accecn(tp))
		s.marked = min_t(u64, (u64)ce * tp->mss_cache, U32_MAX);
	else if (flags & CA_ACK_ECE)
		s.marked = s.acked;
	ecn_feedback_init(fb, tp);
	return s;
}

/**
 * struct ecn_echo - the receiver's state (RFC 8257 3.2)
 * @rcv_nxt:	RCV.NXT with the latest packet: what an ACK in its state may cover
 * @ce:		DCTCP.CE: did the latest packet come marked?
 */
struct ecn_echo {
	u32 rcv_nxt;
	bool ce;
};

static inline void ecn_echo_init(struct ecn_echo *echo, const struct tcp_sock *tp)
{
	echo->rcv_nxt = tp->rcv_nxt;
	echo->ce = false;
}

static inline void ecn_echo_set(struct tcp_sock *tp, bool ece)
{
	if (ece)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* Acknowledges what came before the latest packet, in the state it came in. */
static inline void ecn_echo_flush(struct sock *sk, const struct ecn_echo *echo)
{
	ecn_echo_set(tcp_sk(sk), echo->ce);
	cc_send_ack(sk, echo->rcv_nxt);
	inet_csk(sk)->icsk_ack.pending &= ~ICSK_ACK_NOW;
}

/*
 * To be called from cwnd_event for a packet that came marked (@ce) or clean.
 * CWR on the same packet has been processed by then: CWR first, CE second. With
 * Accurate ECN the stack does all of this.
 *
 * On a change, an ACK that is still due goes out in the old state for what came
 * before (the RFC's MAY of two ACKs), and the packet itself is acknowledged at
 * once in the new one (its MUST). Due is one that waits for its timer, and one
 * that was asked for and put off: while a program has the socket, all packets of
 * its backlog are processed before the first of their ACKs leaves.
 */
static inline void ecn_echo_event(struct sock *sk, struct ecn_echo *echo, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (cc_ecn_accecn(tp))
		return;
	if (echo->ce != ce) {
		if ((icsk->icsk_ack.pending & (ICSK_ACK_TIMER | ICSK_ACK_NOW)) ||
		    before(tp->rcv_wup, echo->rcv_nxt))
			ecn_echo_flush(sk, echo);
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	echo->rcv_nxt = tp->rcv_nxt;
	echo->ce = ce;
	ecn_echo_set(tp, ce);
}

#endif /* _LOWQ_ECN_FEEDBACK_H */
