/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback about ECN marks, both ends of it.
 *
 * Sender (struct ecn_feedback): how many of the bytes that an ACK newly covers were
 *	marked. With Accurate ECN the peer counts marks exactly. Without it, an ACK
 *	with ECE means that all of them were marked, one without ECE that none was:
 *	the peer has to echo as below.
 * Receiver (struct ecn_echo): ECE on an ACK says whether the packets it covers
 *	were marked (RFC 8257 3.2), not RFC 3168's "until CWR".
 */
#ifndef _LOWQ_ECN_FEEDBACK_H
#define _LOWQ_ECN_FEEDBACK_H

#include "cc_compat.h"

/**
 * struct ecn_feedback - what the sender has already accounted for
 * @una:	SND.UNA
 * @delivered:	tp->delivered, packets that have arrived
 * @delivered_ce: tp->delivered_ce, packets that the peer says came marked
 * @ce_bytes:	bytes of payload that came marked, as far as they are counted
 */
struct ecn_feedback {
	u32 una;
	u32 delivered;
	u32 delivered_ce;
	u32 ce_bytes;
};

/**
 * struct ecn_sample - what one ACK added
 * @acked:	bytes newly acknowledged cumulatively; SACK is ignored
 * @marked:	how many of them the feedback says were marked. With Accurate ECN an ACK
 *		may report a few more or fewer marked bytes than it covers: compare sums
 */
struct ecn_sample {
	u32 acked;
	u32 marked;
};

static inline void ecn_feedback_init(struct ecn_feedback *fb, const struct tcp_sock *tp)
{
	fb->una = tp->snd_una;
	fb->delivered = tp->delivered;
	fb->delivered_ce = tp->delivered_ce;
	cc_accecn_bytes(tp, INET_ECN_CE, &fb->ce_bytes);
}

/*
 * To be called when sending starts with nothing in flight (CA_EVENT_TX_START). Marks
 * that came since the last data was acknowledged were on pure ACKs. The stack reports
 * a retransmission after a timeout as such a start, too: that one is ignored.
 */
static inline void ecn_feedback_restart(struct ecn_feedback *fb, const struct tcp_sock *tp)
{
	if (tp->packets_out)
		return;
	fb->delivered = tp->delivered;
	fb->delivered_ce = tp->delivered_ce;
}

/*
 * Accurate ECN: how many of @acked bytes were marked. AccECN options count bytes of payload. An ACK
 * without one has only ACE, which counts packets, pure ACKs included: take the marked share of the
 * packets that arrived; the next option corrects the sum. The stack's own guess is not used: it
 * assumes for all bytes what the last option reported, and a peer that has retransmitted data twice
 * stops its options.
 */
static noinline u32 ecn_feedback_accecn(struct ecn_feedback *fb, const struct tcp_sock *tp,
					u32 acked)
{
	u32 packets = tp->delivered - fb->delivered;
	u32 marked = min(tp->delivered_ce - fb->delivered_ce, packets);
	u32 ce_bytes;
	s32 news;

	fb->delivered = tp->delivered;
	fb->delivered_ce = tp->delivered_ce;
	if (cc_accecn_bytes(tp, INET_ECN_CE, &ce_bytes) && cc_accecn_option(tp))
		news = ce_bytes - fb->ce_bytes;
	else
		news = packets ? div_u64((u64)acked * marked, packets) : 0;
	if (news <= 0)
		return 0;
	fb->ce_bytes += news;
	return news;
}

/* To be called from in_ack_event with its @flags, once per ACK. */
static inline struct ecn_sample ecn_feedback_update(struct ecn_feedback *fb,
						    const struct tcp_sock *tp, u32 flags)
{
	struct ecn_sample s = { .acked = tp->snd_una - fb->una };

	/* marks on packets that were only SACKed wait for an ACK that covers bytes */
	if (cc_ecn_accecn(tp) && s.acked)
		s.marked = ecn_feedback_accecn(fb, tp, s.acked);
	else if (flags & CA_ACK_ECE)
		s.marked = s.acked;
	fb->una = tp->snd_una;
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

/* Acknowledges the packets before the latest one, with their CE state. */
static inline void ecn_echo_flush(struct sock *sk, const struct ecn_echo *echo)
{
	ecn_echo_set(tcp_sk(sk), echo->ce);
	cc_send_ack(sk, echo->rcv_nxt);
	inet_csk(sk)->icsk_ack.pending &= ~ICSK_ACK_NOW;
}

static inline void ecn_echo_latest(struct tcp_sock *tp, struct ecn_echo *echo, bool ce)
{
	echo->rcv_nxt = tp->rcv_nxt;
	echo->ce = ce;
	ecn_echo_set(tp, ce);
}

/*
 * On a change, an ACK that is still due is sent first, in the old state (the RFC's MAY
 * of two ACKs), and the packet itself is acknowledged at once in the new state (its
 * MUST). An ACK is due if it waits for its timer, or if it was requested and deferred:
 * while a program holds the socket, all packets of the backlog are processed before the
 * first of their ACKs leaves.
 */
static noinline void ecn_echo_change(struct sock *sk, struct ecn_echo *echo, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if ((icsk->icsk_ack.pending & (ICSK_ACK_TIMER | ICSK_ACK_NOW)) ||
	    before(tp->rcv_wup, echo->rcv_nxt))
		ecn_echo_flush(sk, echo);
	icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	ecn_echo_latest(tp, echo, ce);
}

/*
 * To be called from cwnd_event for a packet that came marked (@ce) or clean.
 * CWR on the same packet has been processed by then: CWR first, CE second. With
 * Accurate ECN the stack does all of this. Returns true if the state has changed.
 */
static inline bool ecn_echo_event(struct sock *sk, struct ecn_echo *echo, bool ce)
{
	if (cc_ecn_accecn(tcp_sk(sk)))
		return false;
	if (likely(echo->ce == ce)) {
		ecn_echo_latest(tcp_sk(sk), echo, ce);
		return false;
	}
	ecn_echo_change(sk, echo, ce);
	return true;
}

#endif /* _LOWQ_ECN_FEEDBACK_H */
