// SPDX-License-Identifier: GPL-2.0
/*
 * ldcp - LDCP, the PFC-free low delay control protocol, over TCP
 * (Internet-Draft "PFC-Free Low Delay Control Protocol", April 2021).
 *
 *	switch:	  one queue, two profiles: ECT packets are marked by the queue's
 *		  length (K_min, K_max, P_max), Not-ECT packets are dropped above K
 *	receiver: an ACK per packet; its ECE says whether that packet was marked
 *	sender,
 *	  stable:	on an ACK of n packets	without ECE	cw += n * alpha / cw
 *						with ECE	cw -= n * beta
 *			below one packet	without ECE	cw += step (the draft: gamma)
 *						with ECE	cw = max(gamma, eta * cw)
 *			and a packet leaves every RTT / cw
 *	  fast start:	cw = the path's BDP, sent as one burst. All packets but the
 *			last are Not-ECT, so the queue drops them first; the last is
 *			ECT and lets the receiver detect losses before it. After the
 *			first ACK everything is ECT. All of the burst acknowledged:
 *			stable stage with the same cw. A loss: stable stage with
 *			cw = packets of the burst that arrived
 *
 * The window is arithmetic in ldcp_model.h; the receiver's echo is in
 * ecn_feedback.h; ecn_egress_impl.h sets the ECN field of single packets. Without ECN
 * a connection uses Reno and sends Not-ECT packets.
 *
 * Only for networks that one administration controls, switches included: the
 * control is restricted (net.ipv4.tcp_allowed_congestion_control).
 *
 * What the draft leaves open, and deviations from it:
 *  - The stack sends whole packets: cwnd is cw rounded down, at least one. Below one
 *    packet a timer sets cwnd to 0 until RTT / cw after the latest packet, new or
 *    retransmitted, unless the stack can wait itself (tcp_set_data_gap()). Where that is longer
 *    than the socket's minimum of the RTO (200 ms), RTO and minimum grow with it; a tail loss
 *    probe keeps the minimum of a route that has one.
 *  - cw grows only while it limits the sender, as in Linux' other controls. Once marks have been
 *    absent for two RTTs it returns to what it was before them; after many RTTs it grows faster
 *    (parameter quiet_rtts=0: as the draft says).
 *  - Marks also end fast start once all first-RTT packets are acknowledged: a
 *    connection that never fills its initial window has to react to them.
 *  - After a loss in fast start cw is not the packets in order before it, but all of the
 *    burst that arrived, also after the loss: where bursts meet, the first loss comes by
 *    chance (parameter arrived=0: as the draft says). Marks of that burst report the same
 *    queue as its losses and do not reduce cw again.
 *  - Below one packet the increase is that at one packet, alpha, not gamma: with gamma, which is
 *    smaller, flows that have fallen below one packet stay there while others, in the same
 *    queue, keep several (parameter step=0: as the draft says).
 *  - The draft's initial window is the path's BDP. If neither the route nor parameters say
 *    it, the initial window is the stack's. Slow start follows until the first mark, the first
 *    loss, or until the RTT is a quarter above its minimum.
 *  - Loss in the stable stage halves cw, also below two packets, and cw does not grow
 *    until the loss is repaired. A timeout is followed by slow start from one packet
 *    (RFC 5681). A loss that a tail loss probe repaired, and a retransmission lost
 *    after a timeout, are losses too.
 *  - After idling for an RTO cw is at most the initial window (RFC 5681 4.1), where
 *    net.ipv4.tcp_slow_start_after_idle is set.
 *  - When an MTU probe succeeds, cw shrinks so that it stands for as many bytes as before.
 *  - After the first RTT packets are paced, and TSO packets are an eighth of the window:
 *    see ldcp_apply(). In the first RTT TSO is off.
 *  - The end of a message is the end of a write(); the stack knows no other. The last
 *    packet of a write may leave as Not-ECT if the write is longer than half of the
 *    peer's window and exactly as long as the first part that the stack sends of it,
 *    unless the stack says whether more follows (tp->write_open).
 *  - A clean Not-ECT packet that arrives in FIN-WAIT ends the receiver's CE state only where the
 *    stack reports it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_gso.h"
#include "cc_handshake.h"
#include "cc_pace.h"
#include "cc_param.h"
#include "cc_reno.h"
#include "cc_timeout.h"
#include "ecn_egress_impl.h"
#include "ecn_feedback.h"
#include "ldcp_model.h"

#define CREATE_TRACE_POINTS
#include "ldcp_trace.h"

CC_PARAM(alpha, 512, 1, 1024, 0644, "1024 is one packet per RTT; 0 would stop growth",
	 "increase per RTT in 1/1024 packets, 1 to 1024 (draft 2.2)");
CC_PARAM(beta, 256, 1, 1024, 0644, "1024 is one packet per marked packet; 0 would ignore marks",
	 "decrease per marked packet in 1/1024 packets, 1 to 1024 (draft 2.2)");
CC_PARAM(eta, 512, 1, 1023, 0644, "512 is 1/2; 1024 would ignore marks",
	 "factor of a decrease below one packet in 1/1024, 1 to 1023 (draft 2.2: 1/2)");
CC_PARAM(shift_gamma, 4, LDCP_SHIFT_GAMMA_MIN, LDCP_SHIFT_GAMMA_MAX, 0644,
	 "2 is 1/4, 3 is 1/8, 4 is 1/16",
	 "gamma = 2^-shift_gamma packets, the smallest window, 2 to 4 (draft 2.2)");
CC_PARAM(step, 512, 0, 1024, 0644, "1024 is one packet; 0 is gamma",
	 "increase per ACK below one packet in 1/1024 packets, 0 to 1024; 0 is gamma (draft 2.2)");
CC_PARAM(quiet_rtts, 8, 0, 255, 0644, "0 is never",
	 "RTTs without a mark after which the increase doubles with each further one; after a quarter as many cw returns to what it was before the marks, 0 to 255; 0 is never");
CC_PARAM(ack_every, 1, 1, 64, 0644, "1 is an ACK per packet",
	 "receiver: most packets per ACK, 1 to 64 (draft 2.2: m)");
CC_PARAM(link_rate_mbps, 0, 0, 1000000, 0644, "0 is unknown",
	 "rate of the sender's link in Mb/s, for the initial window; 0 uses the route's initcwnd");
CC_PARAM(base_rtt_us, 0, 0, 1000000, 0644, "0 is unknown",
	 "RTT of the empty path in microseconds, for the initial window; 0 uses the route's initcwnd");
CC_PARAM(arrived, 1, 0, 1, 0644, "0 is the packets before the loss, 1 all that arrived",
	 "cw after a loss in fast start: 0 packets in order before it (draft 3.1), 1 all that arrived");
CC_PARAM(fast_start, 1, 0, 1, 0444, "0 is off, 1 is on",
	 "fast start with Not-ECT packets; 0 starts in the stable stage (draft 2.3)");

/* Delayed ACKs wait for a tick at most (L2). */
#define LDCP_DELACK_MAX		1

/* The sender's stage. NEW: no handshake yet. */
enum ldcp_stage {
	LDCP_NEW,
	LDCP_FIRST_RTT,		/* fast start, nothing acknowledged: Not-ECT */
	LDCP_FAST_START,	/* fast start after the first ACK: ECT */
	LDCP_STABLE,
};

/**
 * struct ldcp - one connection
 * @cw:		window, packets in Q40
 * @prior_cw:	@cw before the latest loss, for undo, or before the latest marks (@may_return)
 * @gate:	timer for a window below one packet, or NULL; unused where the stack has one
 * @arrived_us:	receiver: when the latest packet arrived, tp->tcp_mstamp; if ack_every > 1
 * @echo:	receiver: the CE state
 * @delivered:	value of tp->delivered that @cw accounts for, packets
 * @delivered_ce: value of tp->delivered_ce that @cw accounts for, packets
 * @start_delivered: tp->delivered when the connection started
 * @iw:		initial window, packets
 * @burst:	first-RTT packets that arrived
 * @first_end:	sequence number after the last first-RTT packet
 * @pushed_seq:	tp->pushed_seq when the latest first-RTT packet left
 * @quiet:	RTTs in which the window was the limit, since the latest mark or loss, Q16
 * @rtt_us:	latest sample of the RTT. Below one packet the smoothed RTT is stale:
 *		there is only one sample per RTT / cw
 * @smooth_us8:	smoothed RTT, 1/8 us; 0: none yet. Includes the RTTs of retransmissions, as
 *		RACK measures them
 * @rto_min:	the socket's own icsk_rto_min while it is longer, jiffies; 0: it is its own
 * @gso:	limit on the segments of a TSO packet
 * @delack_max:	the socket's own icsk_delack_max, jiffies; this control uses 1
 * @mss:	tp->mss_cache, bytes, to which @cw belongs
 * @reordering:	the socket's own tp->reordering while it is 1, packets; 0: it is its own
 * @stage:	enum ldcp_stage
 * @unacked:	receiver: packets since an ACK was requested
 * @start_lost:	a loss has ended fast start, and is being repaired
 * @repairing:	a loss of the stable stage is being repaired: no growth
 * @may_return:	@prior_cw is a window that marks have reduced
 */
struct ldcp {
	u64 cw;
	u64 prior_cw;
	struct ldcp_gate *gate;
	u64 arrived_us;
	struct ecn_echo echo;
	u32 delivered;
	u32 delivered_ce;
	u32 start_delivered;
	u32 iw;
	u32 burst;
	u32 first_end;
	u32 pushed_seq;
	u32 quiet;
	u32 rtt_us;
	u32 smooth_us8;
	u32 rto_min;
	struct cc_gso gso;
	u16 delack_max;
	u16 mss;
	u16 reordering;
	u8 stage;
	u8 unacked;
	bool start_lost;
	bool repairing;
	bool may_return;
};

static struct tcp_congestion_ops ldcp_reno;

static struct ldcp_gains ldcp_gains(void)
{
	return (struct ldcp_gains) {
		.alpha = READ_ONCE(alpha.value),
		.beta = READ_ONCE(beta.value),
		.eta = READ_ONCE(eta.value),
		.shift_gamma = READ_ONCE(shift_gamma.value),
		.step = READ_ONCE(step.value),
	};
}

/* --- below one packet: a timer between packets (draft 2.2) --- */

/* When the latest data packet or retransmission left, us, monotonic clock */
static u64 ldcp_last_sent_us(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 sent = tp->first_tx_mstamp;		/* of the latest that is acknowledged */

	if (!list_empty(&tp->tsorted_sent_queue))
		sent = max(sent, tcp_skb_timestamp_us(list_last_entry(&tp->tsorted_sent_queue,
								      struct sk_buff,
								      tcp_tsorted_anchor)));
	return sent;
}

#ifdef HAVE_TCP_DATA_GAP
static void ldcp_set_cwnd(struct sock *sk, u32 cwnd)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	tcp_set_data_gap(sk, min_t(u64, ldcp_model_interval(ca->cw, ca->rtt_us), U32_MAX));
	tcp_snd_cwnd_set(tcp_sk(sk), cwnd);
}

/* Does a gap remain from when the window was below one packet? */
static bool ldcp_has_gap(const struct sock *sk)
{
	return tcp_sk(sk)->data_gap_us;
}

static void ldcp_gate_release(struct sock *sk)
{
	tcp_set_data_gap(sk, 0);
}
#else
/**
 * struct ldcp_gate - lets the next packet leave, RTT / cw after the latest one. The stack's own
 * means do not do: a departure time in the future would delay ACKs, too, and a pacing rate is
 * that of the latest packet (docs/upstream.md)
 * @timer:	runs while cwnd is 0
 * @sk:		the connection; the timer holds a reference while it is armed
 * @users:	the connection, and the timer while it is armed
 * @released:	the connection has left the control
 */
struct ldcp_gate {
	struct hrtimer timer;
	struct sock *sk;
	refcount_t users;
	bool released;
};

/* RTT / cw; 0 from one packet on. Not longer than a timer of the stack may be */
static u32 ldcp_interval_us(const struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	return min_t(u64, ldcp_model_interval(ca->cw, ca->rtt_us), jiffies_to_usecs(TCP_RTO_MAX));
}

/* When the next packet may leave, us; 0 is at once */
static u64 ldcp_next_departure_us(const struct sock *sk)
{
	u32 interval = ldcp_interval_us(sk);

	return interval ? ldcp_last_sent_us(sk) + interval : 0;
}

static void ldcp_gate_put(struct ldcp_gate *gate)
{
	if (refcount_dec_and_test(&gate->users))
		kfree(gate);
}

/* The stack's own pacing timer then sends the packet that waits, new or lost. */
static void ldcp_gate_open(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, 1);
	if (sk->sk_state == TCP_CLOSE || hrtimer_is_queued(&tp->pacing_timer))
		return;
	hrtimer_start(&tp->pacing_timer, 0, HRTIMER_MODE_ABS_PINNED_SOFT);
	sock_hold(sk);
}

static enum hrtimer_restart ldcp_gate_timer(struct hrtimer *timer)
{
	struct ldcp_gate *gate = container_of(timer, struct ldcp_gate, timer);
	enum hrtimer_restart again = HRTIMER_NORESTART;
	struct sock *sk = gate->sk;
	u64 next;

	bh_lock_sock(sk);
	if (READ_ONCE(gate->released))
		goto out;
	if (sock_owned_by_user(sk)) {
		hrtimer_forward_now(timer, ns_to_ktime(100 * NSEC_PER_USEC));
		again = HRTIMER_RESTART;
		goto out;
	}
	next = ldcp_next_departure_us(sk);
	if (next * NSEC_PER_USEC > ktime_get_ns()) {
		hrtimer_set_expires(timer, ns_to_ktime(next * NSEC_PER_USEC));
		again = HRTIMER_RESTART;
	} else if (!tcp_snd_cwnd(tcp_sk(sk))) {
		ldcp_gate_open(sk);
	}
out:
	bh_unlock_sock(sk);
	if (again == HRTIMER_NORESTART) {
		ldcp_gate_put(gate);
		sock_put(sk);
	}
	return again;
}

/* Arms the timer. Returns false if there is no memory: the window is one packet then. */
static bool ldcp_gate_close(struct sock *sk, u64 next_us)
{
	struct ldcp *ca = inet_csk_ca(sk);
	struct ldcp_gate *gate = ca->gate;
	int cancelled;

	if (!gate) {
		gate = kzalloc_obj(*gate, GFP_ATOMIC | __GFP_NOWARN);
		if (!gate)
			return false;
		cc_hrtimer_setup(&gate->timer, ldcp_gate_timer, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_SOFT);
		gate->sk = sk;
		refcount_set(&gate->users, 1);
		ca->gate = gate;
	}
	cancelled = hrtimer_try_to_cancel(&gate->timer);
	if (cancelled < 0)	/* it waits for the socket, then computes the time again */
		return true;
	if (!cancelled) {
		refcount_inc(&gate->users);
		sock_hold(sk);
	}
	hrtimer_start(&gate->timer, ns_to_ktime(next_us * NSEC_PER_USEC),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
	return true;
}

/* Below one packet: does the next one have to wait? If so, the timer is armed. */
static bool ldcp_has_to_wait(struct sock *sk)
{
	u64 next = ldcp_next_departure_us(sk);

	return next > tcp_sk(sk)->tcp_mstamp && ldcp_gate_close(sk, next);
}

/*
 * The stack's timers wait for RTT / cw, too, where that is longer than their own minimum: the RTO,
 * window probes with nothing in flight, which wait as long, and by the minimum tail loss probes.
 */
static void ldcp_set_timers(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 wait = usecs_to_jiffies(ldcp_interval_us(sk));
	struct ldcp *ca = inet_csk_ca(sk);
	u32 own = ca->rto_min ?: icsk->icsk_rto_min;

	ca->rto_min = wait > own ? own : 0;
	WRITE_ONCE(icsk->icsk_rto_min, max(wait, own));
	if (ca->rto_min) {
		wait += usecs_to_jiffies(tcp_sk(sk)->srtt_us >> 3);
		icsk->icsk_rto = max(icsk->icsk_rto, wait);
	}
}

/* Below one packet, or for the first time no longer */
static noinline void ldcp_set_cwnd_below_one(struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ldcp_set_timers(sk);
	if (ca->cw < LDCP_CW_ONE && ldcp_has_to_wait(sk))
		WRITE_ONCE(tp->snd_cwnd, 0);	/* tcp_snd_cwnd_set() refuses 0 */
	else
		tcp_snd_cwnd_set(tp, ldcp_model_packets(ca->cw));
}

static void ldcp_set_cwnd(struct sock *sk, u32 cwnd)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	if (unlikely(ca->cw < LDCP_CW_ONE || ca->rto_min))
		ldcp_set_cwnd_below_one(sk);
	else
		tcp_snd_cwnd_set(tcp_sk(sk), cwnd);
}

static bool ldcp_has_gap(const struct sock *sk)
{
	return false;
}

static void ldcp_gate_release(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	struct ldcp_gate *gate = ca->gate;

	/* other controls do not expect a cwnd of 0 */
	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), 1U));
	tp->prior_cwnd = max(tp->prior_cwnd, 1U);
	if (ca->rto_min)
		WRITE_ONCE(inet_csk(sk)->icsk_rto_min, ca->rto_min);
	if (!gate)
		return;
	WRITE_ONCE(gate->released, true);
	if (hrtimer_try_to_cancel(&gate->timer) == 1) {
		ldcp_gate_put(gate);
		__sock_put(sk);
	}
	ldcp_gate_put(gate);
	ca->gate = NULL;
}
#endif

/* --- the window, and cwnd and pacing rate that follow from it --- */

/*
 * The RTTs for the gate and for pacing. The stack's sample of a retransmission is in
 * milliseconds, from timestamps; many of them make its smoothed RTT ten times too large in a data
 * centre. RACK measures it in microseconds. Below one packet there is only one packet in flight,
 * and we know when it left.
 */
static __always_inline void ldcp_sample_rtt(struct sock *sk, const struct rate_sample *rs,
					    u32 confirmed, bool usual)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 us;

	if (usual || likely(rs->rtt_us > 0 && !rs->is_retrans)) {
		us = rs->rtt_us;
		ca->rtt_us = us;
	} else {
		us = rs->is_retrans ? tp->rack.rtt_us : 0;
		if (confirmed && ca->cw < LDCP_CW_ONE && !tcp_packets_in_flight(tp))
			ca->rtt_us = max_t(u64, tcp_min_rtt(tp),
					   tp->tcp_mstamp - ldcp_last_sent_us(sk));
	}
	if (usual || (confirmed && us))
		ca->smooth_us8 += ca->smooth_us8 ? us - ca->smooth_us8 / 8 : us * 8;
}

/* The RTT that the pacing rate is for, microseconds, above 0: @smooth_us8 is 0, or 8 and more */
static u32 ldcp_pace_rtt_us(const struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	if (likely(ca->smooth_us8))
		return ca->smooth_us8 >> 3;
	return max(tcp_sk(sk)->srtt_us >> 3, 1U);
}

/* All segments of a TSO packet have one ECN field: in the first RTT it is one segment. */
static void ldcp_limit_gso(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);
	u32 segs = 1;

	if (ca->stage != LDCP_FIRST_RTT)
		segs = cc_gso_spread(ca->cw >> LDCP_CW_Q);
	cc_gso_limit(sk, &ca->gso, segs);
}

/*
 * cwnd is cw in whole packets, and 0 until the next packet below one may leave. After the
 * first RTT packets are paced at cw / RTT, in slow start at twice that. Without pacing,
 * flows whose bursts overlap get most of the marks, whatever their share of the link is.
 */
static __always_inline void ldcp_apply_cw(struct sock *sk, bool usual)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 cwnd = usual ? ca->cw >> LDCP_CW_Q : ldcp_model_packets(ca->cw);
	u64 rate = ~0UL;

	if (unlikely(cwnd > tp->snd_cwnd_clamp)) {
		ca->cw = (u64)tp->snd_cwnd_clamp << LDCP_CW_Q;
		cwnd = ldcp_model_packets(ca->cw);
	}
	/* now, because sendmsg() makes packets of that size already */
	if (!usual || cwnd != tcp_snd_cwnd(tp))
		ldcp_limit_gso(sk);
	if (usual)
		tcp_snd_cwnd_set(tp, cwnd);
	else
		ldcp_set_cwnd(sk, cwnd);
	if (usual || (ca->stage != LDCP_FIRST_RTT && ca->cw >= LDCP_CW_ONE)) {
		rate = ldcp_model_rate(ca->cw, tp->mss_cache, ldcp_pace_rtt_us(sk));
		if (!usual && cwnd < tp->snd_ssthresh)
			rate *= 2;
	}
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static noinline void ldcp_apply(struct sock *sk)
{
	ldcp_apply_cw(sk, false);
}

/* Called before each burst. Another route may have set the limit of TSO packets. */
static u32 ldcp_min_tso_segs(struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	if (unlikely(sk->sk_gso_max_segs != ca->gso.set))
		ldcp_limit_gso(sk);
	return ca->gso.set;
}

CC_DEFINE_TSO_SEGS(ldcp_tso_segs, ldcp_min_tso_segs)

/* Sets the window for another cause than an ACK's: see ldcp_window in ldcp_trace.h. */
static void ldcp_set(struct sock *sk, const char *cause, u64 cw, u8 stage)
{
	struct ldcp_gains gains = ldcp_gains();
	struct ldcp *ca = inet_csk_ca(sk);
	u64 before = ca->cw;

	ca->cw = ldcp_model_bound(cw, &gains);
	ca->may_return = false;
	WRITE_ONCE(ca->stage, stage);
	trace_ldcp_window(sk, cause, before, ca->cw, stage);
}

/* From fast start, or after a change of the control: no slow start. */
static void ldcp_go_stable(struct sock *sk, const char *cause, u64 cw)
{
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, ldcp_model_packets(cw));
	ldcp_set(sk, cause, cw, LDCP_STABLE);
}

/* --- fast start (draft 2.3, 3.1) --- */

static bool ldcp_route_has_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);

	return dst && dst_metric(dst, RTAX_INITCWND);
}

/* Is the path's BDP known, from the route or from parameters? */
static bool ldcp_bdp_is_given(struct sock *sk)
{
	return ldcp_route_has_window(sk) ||
	       (READ_ONCE(link_rate_mbps.value) && READ_ONCE(base_rtt_us.value));
}

/* The route's initcwnd, else from the parameters, else the stack's default; packets. */
static u32 ldcp_initial_window(struct sock *sk)
{
	u32 rate = READ_ONCE(link_rate_mbps.value), rtt = READ_ONCE(base_rtt_us.value);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* one packet: the handshake had to be retransmitted */
	if (tcp_snd_cwnd(tp) == 1 || !rate || !rtt || ldcp_route_has_window(sk))
		return tcp_snd_cwnd(tp);
	return ldcp_model_bdp(rate, rtt, tp->mss_cache + tp->tcp_header_len +
			      inet_csk(sk)->icsk_af_ops->net_header_len + ETH_HLEN);
}

/* Has no data been sent, apart from that of a Fast Open SYN? */
static bool ldcp_nothing_sent(const struct tcp_sock *tp)
{
	return tp->data_segs_out == tp->syn_data;
}

static void ldcp_start(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	ca->iw = ldcp_initial_window(sk);
	ca->pushed_seq = tcp_sk(sk)->pushed_seq;
	/* what an undo restores */
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, ca->iw);
	ldcp_set(sk, "start", (u64)ca->iw << LDCP_CW_Q, LDCP_FIRST_RTT);
}

/* Packets acknowledged cumulatively since the connection started */
static u32 ldcp_in_order(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);

	return tp->delivered - ca->start_delivered - tp->sacked_out;
}

/* Is this the end of a write, not only of its first part (see the top)? */
static bool ldcp_ends_write(const struct tcp_sock *tp, const struct ldcp *ca,
			    const struct tcphdr *th, u32 seq, u32 end)
{
#ifdef HAVE_TCP_WRITE_OPEN
	return th->psh && end + th->fin == tp->write_seq && !tp->write_open;
#else
	u32 part = tp->max_window >> 1;

	if (!th->psh || end + th->fin != tp->write_seq)
		return false;
	return end - seq < tp->mss_cache || end - ca->pushed_seq <= part ||
	       seq - ca->pushed_seq > part;
#endif
}

/*
 * Only new data of the first RTT differs from what the stack sends. A receiver stays in that stage,
 * but is attached only once it sends data, in ldcp_tx_start().
 */
static bool ldcp_egress_wanted(const struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	return ca->stage == LDCP_FIRST_RTT && !ldcp_nothing_sent(tcp_sk(sk));
}

static bool ldcp_awaits_clean(const struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	return ca->echo.ce;
}

/*
 * In the first RTT: is this new data? A retransmission lies below SND.NXT; new data does
 * not, because SND.NXT advances after the packet has left.
 */
static bool ldcp_is_new_data(const struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	const struct tcphdr *th = tcp_hdr(skb);

	return payload && !th->syn && !before(ntohl(th->seq), tcp_sk(sk)->snd_nxt);
}

/*
 * First-RTT packets are Not-ECT except the last one: the IW-th, the last of a shorter
 * message, or the last that fits the peer's window.
 */
static int ldcp_egress_ecn(const struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seq = ntohl(tcp_hdr(skb)->seq), end = seq + payload, next;
	bool last;

	if (!ldcp_is_new_data(sk, skb, payload))
		return ECN_EGRESS_KEEP;
	/* write_seq is only what a write() has queued so far; a full packet may follow */
	next = end == tp->write_seq ? tp->mss_cache : min(tp->write_seq - end, tp->mss_cache);
	last = tp->packets_out + 1 >= tcp_snd_cwnd(tp) || tcp_wnd_end(tp) - end < next ||
	       ldcp_ends_write(tp, inet_csk_ca(sk), tcp_hdr(skb), seq, end);
	return last ? ECN_EGRESS_KEEP : INET_ECN_NOT_ECT;
}

static void ldcp_egress_sent(struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	struct ldcp *ca = inet_csk_ca(sk);

	if (ldcp_is_new_data(sk, skb, payload))
		ca->pushed_seq = tcp_sk(sk)->pushed_seq;
}

/*
 * Counts first-RTT packets that arrive. Returns true after a loss (which is reported before
 * this): the packets were added to cw. Their marks are ignored, because they report the same
 * queue as that loss.
 */
static bool ldcp_count_burst(struct sock *sk, const struct rate_sample *rs, u32 confirmed)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT && confirmed)
		ca->first_end = tp->snd_nxt;
	if (!confirmed || rs->is_retrans || after(rs->last_end_seq, ca->first_end) ||
	    (ca->stage == LDCP_STABLE && !ca->start_lost))
		return false;
	ca->burst += confirmed;
	if (!ca->start_lost)
		return false;
	ca->cw = min(ca->cw + ((u64)confirmed << LDCP_CW_Q), (u64)ca->iw << LDCP_CW_Q);
	WRITE_ONCE(tp->snd_ssthresh, max(tp->snd_ssthresh, ldcp_model_packets(ca->cw)));
	return true;
}

/*
 * Called before the stack looks for losses. When the last packet of the first RTT, which is ECT,
 * has arrived, the packets missing before it are lost. With fewer than three packets beyond a hole
 * the stack would wait for reordered ones, for a tick of its timer, which is 4 ms at 250 Hz. The
 * limit is the socket's own again in ldcp_acked(), for the same ACK. A control cannot mark packets
 * as lost (docs/upstream.md).
 */
static void ldcp_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 end;

	if (likely(!tp->sacked_out) ||
	    (ca->stage != LDCP_FIRST_RTT && ca->stage != LDCP_FAST_START))
		return;
	end = ca->stage == LDCP_FIRST_RTT ? tp->snd_nxt : ca->first_end;
	if (!tp->reord_seen && !before(tcp_highest_sack_seq(tp), end)) {
		ca->reordering = tp->reordering;
		WRITE_ONCE(tp->reordering, 1);
	}
}

/* An ACK in fast start. Losses are reported to ldcp_set_state() before this. */
static void ldcp_fast_start(struct sock *sk, u32 confirmed, u32 marked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT && confirmed)
		ldcp_set(sk, "first_rtt", ca->cw, LDCP_FAST_START);
	if (ldcp_in_order(sk) >= ca->iw) {
		ldcp_go_stable(sk, "full", (u64)ca->iw << LDCP_CW_Q);
		if (!ldcp_bdp_is_given(sk))
			WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	} else if (marked && !before(tp->snd_una, ca->first_end)) {
		struct ldcp_gains gains = ldcp_gains();

		ldcp_go_stable(sk, "marked", ldcp_model_marked(ca->cw, marked, &gains));
	}
}

/* --- stable stage (draft 2.2) --- */

/*
 * Does the window limit the sender? The stack's test covers new data only; after fast start
 * only lost packets may wait. Pacing follows the window, so data that pacing holds back
 * counts as well, if at least half of the window is in use. The stack's test misses it: ACKs
 * that arrive sooner than srtt keep the packets in flight below cwnd.
 */
static __always_inline bool ldcp_is_limit(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_is_cwnd_limited(sk) || tp->lost_out > tp->retrans_out ||
	       (tcp_send_head(sk) && 2 * tp->max_packets_out >= tcp_snd_cwnd(tp));
}

/*
 * Is the RTT near its minimum, so that there is no queue? A flow whose bottleneck is its own host
 * gets no marks; without this test its window would grow until a queue elsewhere holds it.
 */
static __always_inline bool ldcp_rtt_is_base(const struct sock *sk)
{
	u32 base = tcp_min_rtt(tcp_sk(sk));

	return ldcp_pace_rtt_us(sk) <= base + base / 4 + 1;
}

/* Have a quarter of @after RTTs had no mark? */
static __always_inline bool ldcp_is_quiet(const struct ldcp *ca, u32 after)
{
	return ca->quiet >= after << (LDCP_QUIET_Q - 2);
}

/*
 * The window after @clean packets, if at least a quarter of @after RTTs have had no mark, and there
 * is no queue. First the window returns to what it was before the marks: a burst of other flows,
 * which marks many packets at once, is over by then. Later it grows faster: a flow at its fair
 * share is marked alpha / beta times per RTT. If it gets no mark for many times as long, other
 * flows have left, or a loss was not caused by a queue.
 */
static noinline u64 ldcp_grown_faster(const struct ldcp *ca, u32 clean, u32 after)
{
	struct ldcp_gains gains = ldcp_gains();
	u32 rounds = ca->quiet >> LDCP_QUIET_Q;

	if (ca->may_return && ca->cw < ca->prior_cw)
		return ldcp_model_return(ca->cw, ca->prior_cw, clean, &gains);
	after = max(after, after * gains.beta / gains.alpha);
	if (rounds < after)
		return ldcp_model_clean(ca->cw, clean, &gains);
	return ldcp_model_faster(ca->cw, clean, &gains, rounds - after + 1);
}

/* The window after @clean packets */
static __always_inline u64 ldcp_grown(struct sock *sk, u32 clean, bool usual)
{
	u32 after = READ_ONCE(quiet_rtts.value);
	struct ldcp *ca = inet_csk_ca(sk);
	struct ldcp_gains gains = {};

	ca->quiet = ldcp_model_quiet(ca->quiet, ca->cw, clean);
	if (unlikely(ldcp_is_quiet(ca, after) && after && ldcp_rtt_is_base(sk)))
		return ldcp_grown_faster(ca, clean, after);
	/* from one packet on the others are for marks */
	if (usual)
		gains.alpha = READ_ONCE(alpha.value);
	else
		gains = ldcp_gains();
	return ldcp_model_clean(ca->cw, clean, &gains);
}

/* ssthresh as a window, Q40 */
static u64 ldcp_ssthresh_cw(const struct tcp_sock *tp)
{
	return fp_min((u64)tp->snd_ssthresh, LDCP_CW_MAX >> LDCP_CW_Q) << LDCP_CW_Q;
}

static noinline void ldcp_marked(struct sock *sk, u32 marked)
{
	struct ldcp_gains gains = ldcp_gains();
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (!ca->may_return || ldcp_is_quiet(ca, READ_ONCE(quiet_rtts.value))) {
		ca->prior_cw = ca->cw;
		ca->may_return = true;
	}
	ca->quiet = 0;
	ca->cw = ldcp_model_marked(ca->cw, marked, &gains);
	if (ca->cw < ldcp_ssthresh_cw(tp))
		WRITE_ONCE(tp->snd_ssthresh, ldcp_model_packets(ca->cw));
}

static __always_inline void ldcp_stable(struct sock *sk, u32 clean, u32 marked, bool usual)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	/* a queue that does not mark, such as the host's own, ends slow start, too */
	if (tp->snd_ssthresh == TCP_INFINITE_SSTHRESH && !ldcp_rtt_is_base(sk))
		WRITE_ONCE(tp->snd_ssthresh, ldcp_model_packets(ca->cw));
	if (!usual && (ca->repairing || ca->start_lost) &&
	    inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery) {
		ca->repairing = false;
		ca->start_lost = false;
	}
	if (marked)
		ldcp_marked(sk, marked);
	if (!clean || ca->repairing || !ldcp_is_limit(sk))
		return;
	/* slow start: after a timeout (RFC 5681), or after fast start with an unknown BDP */
	if (!usual && !marked && ca->cw >= LDCP_CW_ONE && ca->cw < ldcp_ssthresh_cw(tp))
		ca->cw = min(ca->cw + ((u64)clean << LDCP_CW_Q), ldcp_ssthresh_cw(tp));
	else
		ca->cw = ldcp_grown(sk, clean, usual);
}

/* Stable stage: RFC 5681, since the draft says nothing. Fast start: draft 3.1. */
static void ldcp_loss(struct sock *sk, const char *cause, bool timeout)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool stable = ca->stage == LDCP_STABLE;
	u64 cw = ldcp_model_lost(ca->cw);

	if (ca->stage == LDCP_FIRST_RTT)
		ca->first_end = tp->snd_nxt;
	ca->start_lost = !stable && !timeout && READ_ONCE(arrived.value);
	if (!stable)
		cw = (u64)(ca->start_lost ? ca->burst : ldcp_in_order(sk)) << LDCP_CW_Q;
	ca->prior_cw = ca->cw;
	ca->quiet = 0;
	ca->repairing = stable && !timeout;
	WRITE_ONCE(tp->snd_ssthresh, timeout ? max(ldcp_model_packets(cw), 2U) :
					       ldcp_model_packets(cw));
	/* if few arrived: slow start, up to half of the burst or the first mark */
	if (ca->start_lost)
		WRITE_ONCE(tp->snd_ssthresh, max(tp->snd_ssthresh, ca->iw / 2));
	if (timeout)
		cw = min(cw, LDCP_CW_ONE);
	ldcp_set(sk, cause, cw, LDCP_STABLE);
}

/* A timeout while a loss is being repaired: ssthresh has been reduced already. */
static void ldcp_timeout_again(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	ca->repairing = false;
	ca->start_lost = false;
	ldcp_set(sk, "timeout", min(ca->cw, LDCP_CW_ONE), LDCP_STABLE);
}

/* --- callbacks --- */

/* Does the stack send ECT? Not after a handshake that has garbled Accurate ECN's ACE field. */
static bool ldcp_has_ecn(const struct tcp_sock *tp)
{
	return cc_ecn_any(tp) && !cc_accecn_failed(tp);
}

/*
 * Called after the handshake, on a change of the control, and for sockets without a
 * handshake (listeners, unconnected ones): those only ask for ECN later.
 */
static void ldcp_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool connected = !cc_handshake_pending(sk);

	if (connected && !ldcp_has_ecn(tp)) {
		pr_info_once("a connection did not negotiate ECN and uses Reno (set net.ipv4.tcp_ecn, and the control before connect)\n");
		cc_use_reno(sk, &ldcp_reno);
		return;
	}
	memset(ca, 0, sizeof(*ca));
	if (!connected)
		return;
	ecn_echo_init(&ca->echo, tp);
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	ca->start_delivered = tp->delivered;
	ca->rtt_us = tp->srtt_us >> 3;
	/* Not-ECT packets cause no event: the stack acknowledges them at once */
	if (READ_ONCE(ack_every.value) == 1)
		inet_csk(sk)->icsk_ack.quick = U8_MAX;
	cc_pace_on(sk);
	ca->delack_max = inet_csk(sk)->icsk_delack_max;
	inet_csk(sk)->icsk_delack_max = LDCP_DELACK_MAX;
	ca->mss = tp->mss_cache;

	ca->iw = TCP_INIT_CWND;
	if (fast_start.value && ldcp_nothing_sent(tp))
		ldcp_start(sk);
	else
		ldcp_go_stable(sk, "switched", (u64)tcp_snd_cwnd(tp) << LDCP_CW_Q);
	ldcp_apply(sk);
}

/* What ldcp_in_ack_event() has changed, unless the stack has found reordering since */
static void ldcp_give_back_reordering(struct tcp_sock *tp, struct ldcp *ca)
{
	WRITE_ONCE(tp->reordering, max_t(u32, tp->reordering, ca->reordering));
	ca->reordering = 0;
}

static void ldcp_release(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	/* 6.1 also calls this without .init: the private area is then the listener's copy */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	ecn_egress_detach(sk);
	cc_gso_release(sk, &ca->gso);
	ldcp_gate_release(sk);
	ldcp_give_back_reordering(tcp_sk(sk), ca);
	if (ca->delack_max && inet_csk(sk)->icsk_delack_max == LDCP_DELACK_MAX)
		inet_csk(sk)->icsk_delack_max = ca->delack_max;
}

/*
 * The receiver (draft 2.2) acknowledges a marked packet at once, and clean ones when
 * there are ack_every of them. A sender whose window is one packet waits for each ACK:
 * packets that arrive half an RTT apart or more are acknowledged at once, too.
 */
static __always_inline void ldcp_choose_ack(struct sock *sk, bool ce)
{
	u32 every = READ_ONCE(ack_every.value);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool now = ce || every == 1;

	if (every > 1) {
		ca->unacked++;
		now |= ca->unacked >= every ||
		       tp->tcp_mstamp - ca->arrived_us >= tcp_min_rtt(tp) / 2;
		ca->arrived_us = tp->tcp_mstamp;
	}
	if (now) {
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		ca->unacked = 0;
	}
}

/* The CE state has changed, or an ACK was delayed while a program holds the socket. */
static noinline void ldcp_received_flush(struct sock *sk, bool ce)
{
	struct ldcp *ca = inet_csk_ca(sk);

	/* send the delayed ACK before the next one */
	if ((inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW) && !cc_ecn_accecn(tcp_sk(sk)))
		ecn_echo_flush(sk, &ca->echo);
	if (ecn_echo_event(sk, &ca->echo, ce))
		ecn_egress_awaits_changed(sk);
	ldcp_choose_ack(sk, ce);
}

static __always_inline void ldcp_received(struct sock *sk, bool ce)
{
	struct ldcp *ca = inet_csk_ca(sk);

	if (unlikely(ca->echo.ce != ce || (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW))) {
		ldcp_received_flush(sk, ce);
	} else {
		ecn_echo_event(sk, &ca->echo, ce);
		ldcp_choose_ack(sk, ce);
	}
}

/* After idling for an RTO, the initial window at most (RFC 5681 4.1). */
static void ldcp_restart(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 restart = (u64)ca->iw << LDCP_CW_Q;

	if (ca->stage != LDCP_STABLE || ca->cw <= restart ||
	    !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) ||
	    (s32)(tcp_jiffies32 - tp->lsndtime) <= (s32)inet_csk(sk)->icsk_rto)
		return;
	ldcp_set(sk, "idle", restart, LDCP_STABLE);
	ldcp_apply(sk);
}

/*
 * Data is sent with nothing in flight, as the first always is. Accurate ECN has counted marks on
 * pure ACKs since. A retransmission after a timeout is reported as such a start, too.
 */
static void ldcp_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT)
		ecn_egress_attach(sk);
	if (ca->stage == LDCP_NEW || tp->packets_out)
		return;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	ldcp_restart(sk);
}

static void ldcp_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_ECN_NO_CE)
		ldcp_received(sk, false);
	else if (ev == CA_EVENT_ECN_IS_CE)
		ldcp_received(sk, true);
	else if (cc_event_is_tx_start(ev))
		ldcp_tx_start(sk);
}

/*
 * With a larger MSS, after an MTU probe, the same bytes are fewer packets: in cw, and in
 * ssthresh, or slow start would bring the packets back.
 */
static noinline void ldcp_scale_to_mss(struct sock *sk)
{
	struct ldcp_gains gains = ldcp_gains();
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 mss = tp->mss_cache;

	if (mss > ca->mss) {
		ca->cw = ldcp_model_bound(fp_mul_div(ca->cw, ca->mss, mss), &gains);
		if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
			tp->snd_ssthresh = max_t(u64, 1,
						 fp_mul_div(tp->snd_ssthresh, ca->mss, mss));
	}
	ca->mss = mss;
}

/*
 * Packets confirmed and marked are the stack's counts: with Accurate ECN the
 * peer's, else all that an ACK with ECE confirms are marked. Accurate ECN also counts
 * marks on pure ACKs: no more packets are marked than are confirmed.
 */
static __always_inline void ldcp_count_ack(struct sock *sk, const struct rate_sample *rs,
					   bool usual)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 confirmed = tp->delivered - ca->delivered;
	u32 marked = min(tp->delivered_ce - ca->delivered_ce, confirmed);
	u32 clean = confirmed - marked;

	if (ca->reordering)
		ldcp_give_back_reordering(tp, ca);
	ldcp_sample_rtt(sk, rs, confirmed, usual);
	if (tp->mss_cache != ca->mss)
		ldcp_scale_to_mss(sk);
	ca->delivered = tp->delivered;
	if (!usual && confirmed)
		ca->delivered_ce = tp->delivered_ce;
	if (usual || (ca->stage == LDCP_STABLE && !ca->start_lost) ||
	    !ldcp_count_burst(sk, rs, confirmed)) {
		if (usual || ca->stage == LDCP_STABLE)
			ldcp_stable(sk, clean, marked, usual);
		else
			ldcp_fast_start(sk, confirmed, marked);
	}
	ldcp_apply_cw(sk, usual);
	if (!usual)
		trace_ldcp_ack(sk, ca->cw, clean, marked, ca->stage);
}

/*
 * Is this an ACK without a mark in the stable stage, beyond slow start, after which nothing is to
 * be corrected? Most are, and for them the compiler leaves out all else. None is while the
 * tracepoint is on.
 */
static bool ldcp_is_usual(const struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);
	u32 cwnd = ca->cw >> LDCP_CW_Q;

	return !trace_ldcp_ack_enabled() && ca->stage == LDCP_STABLE && !ca->start_lost &&
	       !ca->repairing && !ca->reordering && tp->delivered_ce == ca->delivered_ce &&
	       cwnd && cwnd >= tp->snd_ssthresh && !ldcp_has_gap(sk) && tp->mss_cache == ca->mss &&
	       ca->smooth_us8 && (s32)rs->rtt_us > 0 && !rs->is_retrans;
}

static noinline void ldcp_unusual_ack(struct sock *sk, const struct rate_sample *rs)
{
	if (cc_before_init(sk))
		return;
	if (ldcp_has_ecn(tcp_sk(sk))) {
		ldcp_count_ack(sk, rs, false);
	} else {	/* a Fast Open server's handshake ends after .init */
		ldcp_release(sk);
		cc_use_reno(sk, &ldcp_reno);
	}
}

static void ldcp_acked(struct sock *sk, const struct rate_sample *rs)
{
	if (likely(ldcp_is_usual(sk, rs)))
		ldcp_count_ack(sk, rs, true);
	else
		ldcp_unusual_ack(sk, rs);
}

CC_DEFINE_CONG_CONTROL(ldcp_cong_control, ldcp_acked)

/* ECE alone reduces nothing here (L4); losses are handled in ldcp_set_state(). */
static u32 ldcp_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static void ldcp_set_state(struct sock *sk, u8 new_state)
{
	struct ldcp *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	cc_syn_timed_out(sk);
	if (ca->stage == LDCP_NEW)
		return;
	if (cc_timed_out(sk, new_state)) {
		if (state < TCP_CA_Recovery)
			ldcp_loss(sk, "timeout", true);
		else
			ldcp_timeout_again(sk);
	} else if (cc_recovery_starts(sk, new_state)) {
		ldcp_loss(sk, "loss", false);
	} else if (cc_probe_repaired(sk, new_state)) {
		ldcp_loss(sk, "probe", false);
	} else {
		return;
	}
	/* Not only on the next ACK: a packet that a timer found lost is retransmitted before it. */
	ldcp_apply(sk);
}

static u32 ldcp_undo_cwnd(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	ca->repairing = false;
	ldcp_set(sk, "undo", max(ca->cw, ca->prior_cw), LDCP_STABLE);
	return ldcp_model_packets(ca->cw);
}

/*
 * For ss -ti, in BBR's record: bw is cw packets per smoothed RTT, pacing_gain the
 * stage, cwnd_gain cw itself. ss asks for all records with the bit for Vegas.
 */
static size_t ldcp_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);
	u64 bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	bw = ldcp_model_rate(READ_ONCE(ca->cw), tp->mss_cache, ldcp_pace_rtt_us(sk));
	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = tcp_min_rtt(tp);
	info->bbr.bbr_pacing_gain = ca->stage << 8;
	info->bbr.bbr_cwnd_gain = ca->cw >> (LDCP_CW_Q - 8);
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

static struct tcp_congestion_ops ldcp __read_mostly = {
	.init		= ldcp_init,
	.release	= ldcp_release,
	.in_ack_event	= ldcp_in_ack_event,
	.cong_control	= ldcp_cong_control,
	.ssthresh	= ldcp_ssthresh,
	.set_state	= ldcp_set_state,
	.cwnd_event	= ldcp_cwnd_event,
	CC_CWND_EVENT_TX_START(ldcp_tx_start)
	.undo_cwnd	= ldcp_undo_cwnd,
	CC_TSO_SEGS(ldcp_tso_segs, ldcp_min_tso_segs)
	.get_info	= ldcp_get_info,
	.flags		= TCP_CONG_NEEDS_ECN,
	.owner		= THIS_MODULE,
	.name		= "ldcp",
};

CC_DEFINE_RENO(ldcp);

static const struct ecn_egress ecn_egress = {
	.ops	= &ldcp,
	.data_only = true,
	.wanted	= ldcp_egress_wanted,
	.awaits_clean = ldcp_awaits_clean,
	.choose	= ldcp_egress_ecn,
	.sent	= ldcp_egress_sent,
};

static int __init ldcp_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct ldcp) > ICSK_CA_PRIV_SIZE);

	err = ecn_egress_register();
	if (err)
		return err;
	err = tcp_register_congestion_control(&ldcp);
	if (err)
		ecn_egress_unregister();
	return err;
}

static void __exit ldcp_module_exit(void)
{
	tcp_unregister_congestion_control(&ldcp);
	ecn_egress_unregister();
}

module_init(ldcp_module_init);
module_exit(ldcp_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("LDCP (PFC-free low delay control protocol) over TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
