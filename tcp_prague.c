// SPDX-License-Identifier: GPL-2.0
/*
 * prague - Prague congestion control for L4S
 * (draft-briscoe-iccrg-prague-congestion-control, July 2024)
 *
 *	network:  marks packets (CE) at once when the queue of ECT(1) packets is
 *		  longer than a very short time
 *	receiver: counts marks, Accurate ECN tells the sender
 *	sender:   once per rtt_virt, frac  = packets marked / packets acknowledged
 *				     alpha = alpha + g * (frac - alpha)
 *		  on a mark,	     cwnd  = cwnd * (1 - alpha / 2), once per rtt_virt
 *		  on an ACK,	     cwnd += unmarked * (srtt / rtt_virt)^2 / cwnd
 *		  on a loss,	     as Reno
 *		  paced,	     packet * max(cwnd, inflight) / srtt
 *
 * rtt_virt is srtt before the 500th round, then srtt + 25 ms: with it a flow's share
 * depends less on its RTT. The arithmetic is in prague_model.h.
 *
 * A connection whose handshake did not agree on Accurate ECN, or whose feedback
 * turns out to be garbled, is Reno (the stack's own, "prague_reno") until it ends, and
 * none of its packets is ECT(1).
 *
 * Deviations from the draft. Deviating defaults are parameters; bench/run prague
 * has the measurements behind them:
 *  - rtt_virt is the second of the draft's two examples, srtt + AdditionalRTT, not
 *    max(srtt, 25 ms): a classic flow in the other queue also has that queue's 15 ms in
 *    its RTT (2.4.4).
 *  - The response to loss is CUBIC's, not Reno's: in long drop-tail queues Reno gets less
 *    than half of CUBIC's rate (2.4.1 allows both).
 *  - An abrupt reduction resets the count of rounds, as idle time does (3.4), while
 *    fast_rounds is not 0.
 *  - A reduction takes effect at once. The draft's code reduces by one packet per ACK at
 *    most, with which slow start overshoots (2.4.2, 2.4.5).
 *  - Faster than additive increase, which the draft leaves for the future, is on:
 *    without it a flow of 1 Gb/s and 40 ms takes more than a minute to fill the link
 *    after slow start, and freed capacity is used late (3.1.2).
 *  - After a loss, until the next mark, rtt_virt is srtt, and packets are paced by sch_fq
 *    alone, at 120 %, as those of the stack's controls are: in a queue that does not mark,
 *    a flow would get less than Reno's share, or four times CUBIC's (2.4.4, 2.5.1).
 *  - Slow start also ends as RFC 9406 (HyStart++) says (hystart): without marks it would
 *    fill deep buffers (2.4.5). Until the first mark or loss the window then grows by a
 *    twentieth per round, as that of Linux's CUBIC does.
 *  - During a recovery the window is that of PRR (RFC 6937), as in the stack's own
 *    controls; after it, the draft's (2.4.1).
 *  - TCP_CONG_NO_FALLBACK_RFC3168 is not set: with it the stack would promise
 *    RFC 3168 feedback in a SYN-ACK and then not give it. A peer that only knows
 *    RFC 3168 gets ECT(0) and Reno.
 *  - Slow start (quick_start) does not end with the first mark: the initial window alone is
 *    longer than a queue's threshold below 100 Mb/s. Marks of the first flight do not count.
 *    The time between its ACKs is the bottleneck's per packet: slow start is paced no faster,
 *    and grows by a 16th per round once its window should fill the path. It ends when more
 *    than 7/8 of a round's packets are marked (from a full path on, a half) while the program is
 *    not the limit, with the window that the path has delivered. Below a fifth of what fills the
 *    path marked packets count for growth, and it ends only if all packets of the round have
 *    waited for longer than behind L4S flows, or after four such rounds (2.4.5). In the first
 *    three rounds this holds on any path for a program that does not wait to write more.
 *  - After the first cut, of a half, alpha's average begins at 0 (first_alpha): from 1 it takes
 *    some ten rounds of large cuts to forget how the flow began (2.3.2).
 *  - After a pause of more than an RTO, slow start is that of a new connection, unless a loss
 *    was the latest limit (2.4.5).
 *  - While the program is the limit, the window grows up to twice what was in flight, as the
 *    stack's does in slow start, and packets are paced at twice the rate: what an answer needs
 *    is one round (2.5.1).
 *  - Alpha averages over periods in which the program sends nothing, too, without marks in them
 *    (2.3.2): otherwise it is the marked fraction of the program's bursts.
 *  - Packets that the stack sends for no connection belong to no socket: the stack chooses
 *    their field. Where it has no TCP_CONG_ECT_1, this holds for SYN-ACKs with SYN cookies
 *    and for connections in TIME-WAIT, too.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/xarray.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_gso.h"
#include "cc_handshake.h"
#include "cc_pace.h"
#include "cc_param.h"
#include "cc_recovery.h"
#include "cc_reno.h"
#include "cc_timeout.h"
#include "ecn_feedback.h"
#include "prague_model.h"
#ifndef HAVE_TCP_CONG_ECT_1
#include "ecn_egress_impl.h"
#else

/* The stack sends ECT(1). */
static inline void ecn_egress_attach(struct sock *sk)
{
}

static inline void ecn_egress_detach(struct sock *sk)
{
}
#endif

#define CREATE_TRACE_POINTS
#include "prague_trace.h"

#define ALPHA_USER_Q	10	/* in ss: 1024 is 1.0 */

CC_PARAM(ect, 1, 0, 1, 0444, "0 is ECT(0), 1 is ECT(1)",
	 "which ECT packets carry: 1, or 0 for private networks (2.2)");
CC_PARAM(dctcp_feedback, 0, 0, 1, 0444, "0 is off, 1 is on",
	 "without Accurate ECN, on kernels that lack it: DCTCP's feedback and ECT(0), between two ends that both have this on; private networks only");
CC_PARAM(ewma_shift, 4, 1, 10, 0644,
	 "0 would be g = 1, no smoothing; beyond 10 alpha would hardly change",
	 "gain of alpha's average, g = 2^-ewma_shift, 1 to 10 (2.3.2: 1/16)");
CC_PARAM(per_ack, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "average with every ACK and spread a cut over the round that follows (3.1.3)");
CC_PARAM(first_alpha, 0, 0, 1, 0644, "0 is from 0, 1 is from 1",
	 "alpha's average begins at 0 after the first cut, which is a half, or at 1 (2.3.2: 1)");
CC_PARAM(quick_start, 1, 0, 1, 0644, "0 is off, 1 is on",
	 "slow start is paced by the rate at which the first flight arrived, and ends when 7/8 of a round's packets are marked; without it the first mark ends it (2.4.5: off)");
static_assert(PRAGUE_RTT_EXTRA == 2);	/* rtt_mode's default, which modinfo shows as it stands */
CC_PARAM(rtt_mode, 2, 0, PRAGUE_RTT_MODES - 1, 0644,
	 "0 is off, 1 max(srtt, target), 2 srtt + target",
	 "rtt_virt: 0 srtt, 1 max(srtt, rtt_target_us), 2 srtt + rtt_target_us (2.4.4)");
CC_PARAM(rtt_target_us, 25000, 100, 1000000, 0644, "100 us to 1 s",
	 "RTT_VIRT_MIN, or AdditionalRTT, microseconds, 100 to 1000000 (2.4.4)");
CC_PARAM(rtt_limit_us, 0, 0, 1000000, 0644, "0 is none, up to 1 s",
	 "longest rtt_virt, for longer RTTs too, microseconds, 0 (none) to 1000000 (3.4)");
CC_PARAM(rtt_rounds, 500, 0, 65535, 0644, "0 is from the start",
	 "rounds before rtt_virt replaces srtt, and again after idling and abrupt cuts, 0 to 65535 (2.4.4, 3.4)");
CC_PARAM(loss_cubic, 1, 0, 1, 0644, "0 is Reno, 1 is CUBIC",
	 "response to loss: 0 Reno, 1 CUBIC, growth until the next mark or loss included (2.4.1)");
CC_PARAM(loss_combined, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "a loss less than a round after a cut for marks: (2 + alpha)/4, CUBIC (2 + alpha)/3, instead of another whole cut (3.2.1)");
CC_PARAM(hystart, 1, 0, 1, 0644, "0 is off, 1 is on",
	 "slow start ends when the RTT grows, too (RFC 9406), not at a mark or loss only (2.4.5: off)");
CC_PARAM(burst_us, 250, 10, 10000, 0644, "10 us to 10 ms",
	 "MAX_BURST_DELAY: longest burst at the pacing rate, microseconds, 10 to 10000 (2.5.2)");
CC_PARAM(iw_paced, 0, 0, 1, 0444, "0 is off, 1 is on",
	 "pace the initial window over half of the handshake's RTT (3.1.1); with ect=1 only");
CC_PARAM(fast_rounds, 4, 0, 1000, 0644, "0 is off",
	 "faster than additive increase after this many rtt_virt without marks, and a quarter more than were usual of late; right after slow start and cuts of more than a fifth after this many alone; 0 is off (3.1.2: off)");
CC_PARAM(classic_fallback, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "detect a Classic ECN AQM, and respond to its marks as to losses (3.3)");
CC_PARAM(fractional, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "let the window shrink below two packets, to 1/16, by pacing (3.5)");

/*
 * Classic AQMs keep a queue of several milliseconds, those for L4S one of 1 ms or less.
 * A period with marks and a queue longer than both of these counts for a classic one.
 */
#define CLASSIC_QUEUE_US	3000
#define CLASSIC_QUEUE_PKTS	4
#define CLASSIC_SCORE		8	/* such periods minus others */
#define CLASSIC_SCORE_MAX	16

#define GAP_SKIPPED		3	/* packets of the first flight before its gap is measured */
#define GAP_ROUNDS		5	/* without a mark at a window that should fill the path */
/* quick_start: before these rounds a flow's, or a program's, own bursts cause marks */
#define START_ROUNDS		3
#define EARLY_ROUNDS		4
#define START_ROUNDS_MAX	12
#define CUBIC_MS_MAX		(FP_ONE(20) - 1)	/* the curve ends at 1000 s */
#define ABRUPT_CWND		8	/* packets, before an abrupt cut of a long-running flow */
#define SUSPECT_PERIODS		2	/* of feedback that contradicts itself */
#define BLEACHED_PKTS		10	/* acknowledged, and no ECT was reported */

/**
 * enum prague_phase - what the window's growth follows
 * @SLOW_START:	slow start, of a new connection or after idling, that nothing has ended yet
 * @PROBING:	slow start has ended without a mark or loss, and there was none since
 * @BY_MARKS:	additive increase: the latest reduction was for a mark
 * @BY_RENO:	the same after a loss, or a mark of a Classic AQM
 * @BY_CUBIC:	CUBIC's, after these
 */
enum prague_phase {
	SLOW_START,
	PROBING,
	BY_MARKS,
	BY_RENO,
	BY_CUBIC,
};

/**
 * struct prague_growth - how the window grows. A loss changes it, its undo restores it
 * @lost_at:	from a loss on: window before it, packets
 * @cubic_ms:	BY_CUBIC: time since the loss in which the window was the limit, milliseconds;
 *		saturates at CUBIC_MS_MAX
 * @fast:	BY_CUBIC: the loss was below the window of the one before: fast convergence
 * @abrupt:	BY_MARKS: the reduction was larger than those of a steady state: slow start ended,
 *		or the link lost most of its rate
 * @undoable:	the latest reduction was for a loss, and is not undone
 * @phase:	enum prague_phase; a byte of its own, since each ACK looks at it
 */
struct prague_growth {
	u32 lost_at;
	u32 cubic_ms:20;
	bool fast:1;
	bool abrupt:1;
	bool undoable:1;
	u8 phase;
};

/**
 * struct prague_start - slow start
 * @hystart:	in SLOW_START: its end by RTT
 * @gap_ns:	until the first loss: time per packet at the bottleneck, nanoseconds, as the first
 *		flight has shown it; 0 is unknown
 */
struct prague_start {
	struct prague_hystart hystart;
	u32 gap_ns;
};

/**
 * struct prague_marks - what marks have said, and how they are taken
 * @delivered_ce: tp->delivered_ce up to which they are accounted for, packets, low 16 bits
 * @silent:	periods (of rtt_virt) since the latest one; saturates
 * @usual:	most periods without one, between two, in this @turn
 * @usual_before: the same of the turn before
 * @turn:	of 2^24 us, 17 seconds; modulo 2^8
 * @suspect:	periods in a row in which ACE and AccECN options contradict each other
 * @ect_seen:	the peer has seen ECT on our packets
 * @first_flight: no packet beyond those sent before the first ACK is acknowledged: they do not
 *		count yet
 * @seen:	there has been one: alpha is valid
 * @in_round:	there was one in this round
 * @cwr:	a reduction is less than rtt_virt ago: they cause no other
 * @classic:	the AQM is judged to be a classic one
 */
struct prague_marks {
	u16 delivered_ce;
	u16 silent;
	u16 usual;
	u16 usual_before;
	u8 turn;
	u8 suspect:2;
	bool ect_seen:1;
	bool first_flight:1;
	bool seen:1;
	bool in_round:1;
	bool cwr:1;
	bool classic:1;
};

/**
 * struct prague_accecn - feedback by Accurate ECN
 * @ce_bytes:	bytes marked, from its options, that are accounted for
 * @start_seq:	SND.NXT when this control took over
 */
struct prague_accecn {
	u32 ce_bytes;
	u32 start_seq;
};

/**
 * struct prague - one connection
 * @model:	window, alpha and the counts of this EWMA period
 * @start:	slow start
 * @growth:	how the window grows
 * @before_loss: the same before the latest loss, while @growth.undoable
 * @marks:	what they have said
 * @accecn:	feedback, if the handshake agreed on Accurate ECN: see accecn_of()
 * @echo:	otherwise the receiver's DCTCP.CE: see echo_of()
 * @period_us:	when this EWMA period began, low 32 bits of tcp_mstamp
 * @cwr_us:	when the latest reduction was, likewise
 * @round_end:	SND.NXT when this round (of the real RTT) began
 * @una:	SND.UNA after the latest ACK
 * @rounds:	since the start, the latest idle time or abrupt reduction; saturates
 * @cubic_at_ms: BY_CUBIC: time up to which @growth.cubic_ms is counted, milliseconds, low 16 bits
 * @burst:	longest burst at the pacing rate, segments
 * @gso:	limit on the segments of a burst
 */
struct prague {
	struct prague_model model;
	struct prague_start start;
	struct prague_growth growth;
	struct prague_growth before_loss;
	struct prague_marks marks;
	u16 rounds;
	u16 cubic_at_ms;
	u16 burst;
	struct cc_gso gso;
	/* which one it is does not change after .init */
	union {
		struct prague_accecn accecn;
		struct ecn_echo echo;
	};
	u32 period_us;
	u32 cwr_us;
	u32 round_end;
	u32 una;
};

/**
 * struct prague_detection - of a Classic AQM; with classic_fallback only
 * @oneway:	what is known of the delay of the way to the peer, by its time stamps
 * @stamp:	of the ACK with the shortest RTT in this period
 * @sent_us:	when what it acknowledges was sent, low 32 bits of tcp_mstamp
 * @stamped:	it has a stamp
 * @use_stamps:	the peer's feedback works, and it sends time stamps
 * @score:	0 to CLASSIC_SCORE_MAX, evidence for a classic AQM, in periods
 */
struct prague_detection {
	struct prague_oneway oneway;
	u32 stamp;
	u32 sent_us;
	bool stamped;
	bool use_stamps;
	u8 score;
};

/*
 * By socket: its private area has no room for them. Each is used under its socket's lock.
 */
static DEFINE_XARRAY_FLAGS(detections, XA_FLAGS_LOCK_BH);

static struct tcp_congestion_ops prague, prague_reno;

static u32 now_us(const struct tcp_sock *tp)
{
	return (u32)tp->tcp_mstamp;
}

static u16 now_ms(const struct tcp_sock *tp)
{
	return div_u64(tp->tcp_mstamp, USEC_PER_MSEC);
}

/* Smoothed RTT in 1/8 us; 0 before the first */
static u32 srtt(const struct tcp_sock *tp)
{
	return tp->srtt_us;
}

/* rtt_virt in 1/8 us: the real RTT while losses limit the window. */
static u32 rtt_virt(const struct tcp_sock *tp, const struct prague *ca)
{
	if (ca->marks.classic || ca->growth.phase != BY_MARKS ||
	    ca->rounds < READ_ONCE(rtt_rounds.value))
		return srtt(tp);
	return prague_rtt_virt(srtt(tp), READ_ONCE(rtt_mode.value),
			       READ_ONCE(rtt_target_us.value) << 3,
			       READ_ONCE(rtt_limit_us.value) << 3);
}

static u32 window_floor(void)
{
	return READ_ONCE(fractional.value) ? 0 : PRAGUE_MIN_CWND;
}

/* The window for the stack, in whole packets, rounded up. Pacing uses the exact one. */
static u32 whole_window(const struct prague *ca)
{
	u32 cwnd = ca->model.cwnd + (ca->model.frac && ca->model.cwnd < U32_MAX);

	if (likely(cwnd >= PRAGUE_MIN_CWND))
		return cwnd;
	return READ_ONCE(fractional.value) ? PRAGUE_MIN_CWND : 1;
}

static __always_inline void window_to_stack(struct tcp_sock *tp, struct prague *ca)
{
	if (unlikely(ca->model.cwnd >= tp->snd_cwnd_clamp))
		prague_set_window(&ca->model, tp->snd_cwnd_clamp);
	tcp_snd_cwnd_set(tp, whole_window(ca));
}

/* The stack sets the window after timeouts, undo and MTU probes: take it over. */
static void window_from_stack(const struct tcp_sock *tp, struct prague *ca)
{
	if (tcp_snd_cwnd(tp) != whole_window(ca))
		prague_set_window(&ca->model, tcp_snd_cwnd(tp));
}

/* Is this the first slow start, with quick_start? */
static bool starting(const struct tcp_sock *tp, const struct prague *ca)
{
	return ca->growth.phase == SLOW_START && ca->model.cwnd < tp->snd_ssthresh &&
	       READ_ONCE(quick_start.value);
}

/* Does the program wait for room to write more? An answer of a few rounds is written whole. */
static bool more_to_write(const struct sock *sk)
{
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/*
 * In slow start: is the window small for the path, as far as the first flight tells? The window of
 * an answer counts as small in its first rounds, on any path: growth that marks prevent often costs
 * one more round. A longer flow gains nothing by it, and would make a longer queue.
 */
static bool small_window(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct prague *ca = inet_csk_ca(sk);
	u32 gap_ns = ca->start.gap_ns;

	return (ca->rounds < EARLY_ROUNDS && !more_to_write(sk)) ||
	       (gap_ns && prague_small(ca->model.cwnd, prague_pipe(tcp_min_rtt(tp), gap_ns)));
}

/* Everything that the program has written is sent, and the window has not stopped it. */
static bool app_limited(const struct sock *sk)
{
	return !tcp_send_head(sk) && !tcp_sk(sk)->is_cwnd_limited;
}

/* --- the feedback's state, by what the handshake agreed on ----------------- */

static struct prague_accecn *accecn_of(const struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);

	return likely(cc_ecn_accecn(tcp_sk(sk))) ? &ca->accecn : NULL;
}

static struct ecn_echo *echo_of(const struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);

	return unlikely(!cc_ecn_accecn(tcp_sk(sk))) ? &ca->echo : NULL;
}

/* --- detection of a Classic AQM -------------------------------------------- */

/* No two sockets begin in the same cache line. */
static unsigned long detection_index(const struct sock *sk)
{
	return (unsigned long)sk / L1_CACHE_BYTES;
}

static struct prague_detection *detection_of(const struct sock *sk)
{
	return xa_load(&detections, detection_index(sk));
}

static void forget_detection(const struct sock *sk)
{
	if (unlikely(!xa_empty(&detections)))
		kfree(xa_erase_bh(&detections, detection_index(sk)));
}

/* Without memory there is no detection. */
static struct prague_detection *begin_detection(const struct sock *sk)
{
	struct prague_detection *d = kzalloc_obj(*d, GFP_ATOMIC | __GFP_NOWARN);

	if (d && xa_insert_bh(&detections, detection_index(sk), d, GFP_ATOMIC | __GFP_NOWARN)) {
		kfree(d);
		d = NULL;
	}
	return d;
}

/* This ACK has the shortest RTT of the period. */
static noinline void note_stamp(const struct sock *sk, u32 rtt_us)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague_detection *d = detection_of(sk);

	if (!d || !d->use_stamps)
		return;
	d->stamped = tp->rx_opt.saw_tstamp;
	d->stamp = tp->rx_opt.rcv_tsval;
	d->sent_us = now_us(tp) - rtt_us;
}

/*
 * The queue in this period: by the RTT, and of it what is on the way there, as far as that is
 * known. Without time stamps all of it may be there.
 */
static struct prague_queue queue_there(const struct sock *sk, struct prague_detection *d)
{
	const struct prague *ca = inet_csk_ca(sk);
	u32 rtt = ca->model.rtt_us, min_rtt = tcp_min_rtt(tcp_sk(sk));
	u32 by_rtt = rtt - min(rtt, min_rtt);
	struct prague_queue queue = { by_rtt, by_rtt };

	if (!rtt || !d->stamped)
		return queue;
	return prague_oneway_sample(&d->oneway, d->stamp, d->sent_us, rtt, min_rtt);
}

/* --- pace ------------------------------------------------------------------ */

/* The pace of the first slow start, where @rate is that of its window */
static noinline u64 start_rate(const struct sock *sk, u64 rate)
{
	const struct prague *ca = inet_csk_ca(sk);

	return prague_start_rate(rate, tcp_sk(sk)->mss_cache, ca->start.gap_ns,
				 ca->rounds < EARLY_ROUNDS || app_limited(sk));
}

static __always_inline void update_pacing(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), in_flight = tcp_packets_in_flight(tp);
	bool start = starting(tp, ca);
	bool twice = !start && (cwnd < tp->snd_ssthresh / 2 || app_limited(sk));
	u64 rate, most = READ_ONCE(sk->sk_max_pacing_rate);

	if (in_flight > cwnd || inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		rate = prague_pacing_rate(tp->mss_cache, max(cwnd, in_flight), 0, srtt(tp), false);
	else
		rate = prague_pacing_rate(tp->mss_cache, ca->model.cwnd, ca->model.frac, srtt(tp),
					  twice);
	if (unlikely(start) && !ca->start.hystart.css)
		rate = ca->start.gap_ns ? start_rate(sk, rate) :
					  prague_start_rate(rate, 0, 0, false);
	/* while losses limit the window, ACKs time the packets (tcp_pacing_ca_ratio) */
	if (unlikely(ca->growth.phase == BY_CUBIC)) {
		rate += rate / 5;
		cc_pace_off(sk);
	} else {
		cc_pace_on(sk);
	}
	rate = rate ? min(rate, most) : READ_ONCE(sk->sk_pacing_rate);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	ca->burst = prague_burst(rate, READ_ONCE(burst_us.value), tp->mss_cache);
}

/* Called before each burst. */
static u32 prague_min_tso_segs(struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);

	if (ca->growth.phase == BY_CUBIC) {
		cc_gso_release(sk, &ca->gso);
		return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
	}
	return cc_gso_limit(sk, &ca->gso, ca->burst);
}

CC_DEFINE_TSO_SEGS(prague_tso_segs, prague_min_tso_segs)

static void prague_release(struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);

	cc_gso_release(sk, &ca->gso);
	forget_detection(sk);
	ecn_egress_detach(sk);
}

/* --- Prague or Reno ---------------------------------------------- */

/* Otherwise packets have the stack's field, which is ECT(0) or Not-ECT. */
static bool sends_ect_1(void)
{
	return ect.value && !dctcp_feedback.value && cc_accecn_flags(true);
}

static void fall_back(struct sock *sk, const char *reason)
{
	trace_prague_mode(sk, "reno", reason);
	prague_release(sk);
	cc_accecn_give_up(tcp_sk(sk));
	cc_use_reno(sk, &prague_reno);
}

/*
 * Called after the handshake, on a change of the control, and, before there was a
 * handshake, for sockets that ask for Accurate ECN later. A server whose SYN-ACK was
 * retransmitted is Reno: the path may drop ECT(1) or Accurate ECN's flags.
 */
static void prague_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_accecn *accecn;

	memset(ca, 0, sizeof(*ca));
	if (cc_handshake_pending(sk))
		return;
	if (sk->sk_state == TCP_SYN_RECV && tp->total_retrans && !dctcp_feedback.value) {
		fall_back(sk, "synack");
		return;
	}
	if (!cc_accecn_works(tp) &&
	    !(dctcp_feedback.value && cc_ecn_any(tp) && !cc_ecn_accecn(tp))) {
		pr_info_once("a connection has no Accurate ECN: it is Reno, and not ECT(1) (see also net.ipv4.tcp_ecn on the server)\n");
		fall_back(sk, cc_ecn_accecn(tp) ? "ace" : "no-accecn");
		return;
	}
	prague_model_init(&ca->model, tcp_snd_cwnd(tp));
	accecn = accecn_of(sk);
	if (accecn) {
		cc_accecn_bytes(tp, INET_ECN_CE, &accecn->ce_bytes);
		accecn->start_seq = tp->snd_nxt;
	} else {
		ecn_echo_init(echo_of(sk), tp);
	}
	ca->marks.delivered_ce = tp->delivered_ce;
	ca->period_us = now_us(tp);
	ca->cwr_us = now_us(tp);
	ca->round_end = tp->snd_nxt;
	ca->una = tp->snd_una;
	/* the data of a Fast Open SYN is no flight */
	ca->marks.first_flight = tp->data_segs_out == tp->syn_data;
	update_pacing(sk);
	if (sends_ect_1())
		ecn_egress_attach(sk);
}

/*
 * Called at the end of each EWMA period: the reason why feedback cannot be trusted, or
 * NULL. With feedback that is missing or contradicts itself marks would not slow us down,
 * and the queue would grow.
 */
static const char *feedback_fault(const struct sock *sk, u32 marked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague_accecn *accecn = accecn_of(sk);
	struct prague_marks *marks = &((struct prague *)inet_csk_ca(sk))->marks;
	u8 ect_sent = ect.value && !dctcp_feedback.value ? INET_ECN_ECT_1 : INET_ECN_ECT_0;
	u32 ce_bytes, ect_bytes, news;

	if (!accecn || !cc_accecn_bytes(tp, INET_ECN_CE, &ce_bytes))
		return NULL;
	cc_accecn_bytes(tp, ect_sent, &ect_bytes);
	if (ce_bytes || ect_bytes)
		marks->ect_seen = true;
	else if (!marks->ect_seen &&
		 after(tp->snd_una, accecn->start_seq + BLEACHED_PKTS * tp->mss_cache))
		return "bleached";
	if (marked)
		marks->suspect = 0;
	/* without an option the count is the stack's guess */
	if (!cc_accecn_option(tp))
		return NULL;
	/* AccECN options report marked bytes, yet ACE reports no marked packets */
	news = ce_bytes - accecn->ce_bytes;
	accecn->ce_bytes = ce_bytes;
	if (!marked && news >= tp->mss_cache && news < FP_ONE(23))
		marks->suspect++;
	else
		marks->suspect = 0;
	return marks->suspect >= SUSPECT_PERIODS ? "ace" : NULL;
}

static void set_classic(struct sock *sk, bool classic)
{
	struct prague *ca = inet_csk_ca(sk);

	ca->marks.classic = classic;
	trace_prague_mode(sk, classic ? "classic" : "l4s", "queue");
}

/*
 * Judges the kind of AQM by the shortest @queue in a period with marks (3.3). The mean RTT
 * would not do: on radio links it varies by more than a Classic queue is long.
 */
static void judge_aqm(struct sock *sk, struct prague_detection *d, struct prague_queue queue)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct prague *ca = inet_csk_ca(sk);
	/* the time of these packets at our own rate: a slow link is no classic AQM */
	u32 pkts = (srtt(tp) >> 3) / max(tcp_snd_cwnd(tp), 1U) * CLASSIC_QUEUE_PKTS;
	u32 limit = max_t(u32, CLASSIC_QUEUE_US, pkts);

	if (queue.least > limit)
		d->score = min(d->score + 1, CLASSIC_SCORE_MAX);
	else if (queue.most <= limit && d->score)
		d->score--;

	if (!ca->marks.classic && d->score >= CLASSIC_SCORE) {
		set_classic(sk, true);
		pr_info_once("a connection has found a queue that looks like a Classic ECN AQM (%u us with marks): it responds to marks as to losses\n",
			     queue.least);
	} else if (ca->marks.classic && !d->score) {
		set_classic(sk, false);
	}
}

/* At the end of each EWMA period; classic_fallback may change during a connection */
static void look_at_queue(struct sock *sk, bool marked)
{
	const struct prague *ca = inet_csk_ca(sk);
	struct prague_detection *d;
	struct prague_queue queue;

	if (likely(!READ_ONCE(classic_fallback.value))) {
		forget_detection(sk);
		if (unlikely(ca->marks.classic) && marked)
			set_classic(sk, false);
		return;
	}
	d = detection_of(sk);
	if (!d)
		d = begin_detection(sk);
	if (!d)
		return;
	queue = queue_there(sk, d);
	d->use_stamps = ca->marks.ect_seen && tcp_sk(sk)->rx_opt.tstamp_ok;
	if (marked)
		judge_aqm(sk, d, queue);
}

/* --- response -------------------------------------------------------------- */

/*
 * Slow start ended, but no mark or loss ended it: HyStart++ did, or an ssthresh that was set
 * earlier, by idling, the route or another control.
 */
static noinline void start_probing(struct tcp_sock *tp, struct prague *ca)
{
	ca->growth.phase = PROBING;
	WRITE_ONCE(tp->snd_ssthresh, max(ca->model.cwnd, PRAGUE_MIN_CWND));
}

static void enter_cwr(const struct tcp_sock *tp, struct prague *ca, enum prague_phase phase)
{
	ca->growth.phase = phase;
	ca->marks.cwr = true;
	ca->cwr_us = now_us(tp);
}

/* Periods without marks from which on capacity counts as free; 0 is never */
static u32 patience(const struct prague *ca)
{
	const struct prague_marks *marks = &ca->marks;
	u32 least = READ_ONCE(fast_rounds.value);

	if (!least || ca->growth.phase != BY_MARKS)
		return 0;
	return ca->growth.abrupt ? least :
				   prague_patience(least, max(marks->usual, marks->usual_before));
}

/*
 * A mark ends the silence. Beside CUBIC the longest silences of the latest 17 to 34 seconds
 * are part of the steady state; much longer ones say that capacity was free, and those after an
 * abrupt cut that growth began low. Silence is counted in rtt_virt: a flow with a short RTT
 * must not take what CUBIC, after a reduction, returns to within seconds.
 */
static void end_silence(const struct tcp_sock *tp, struct prague *ca)
{
	u8 turn = now_us(tp) >> 24;

	if (turn != ca->marks.turn) {
		ca->marks.usual_before = (u8)(turn - ca->marks.turn) == 1 ? ca->marks.usual : 0;
		ca->marks.usual = 0;
		ca->marks.turn = turn;
	}
	if (!ca->growth.abrupt)
		ca->marks.usual = max_t(u32, ca->marks.usual,
					min_t(u32, ca->marks.silent, 2 * patience(ca)));
}

/* Reduces the window by @share, and grows it again as after a loss: for losses and classic AQMs. */
static void reduce_as_for_loss(struct sock *sk, u64 share, const char *cause)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_growth *g = &ca->growth;
	struct prague_model before = ca->model;

	g->fast = g->phase == BY_CUBIC && before.cwnd < prague_cubic_max(g->lost_at, g->fast);
	g->lost_at = before.cwnd;
	g->cubic_ms = 0;
	g->abrupt = false;
	enter_cwr(tp, ca, READ_ONCE(loss_cubic.value) ? BY_CUBIC : BY_RENO);
	ca->cubic_at_ms = now_ms(tp);
	prague_reduce(&ca->model, share, PRAGUE_MIN_CWND);
	WRITE_ONCE(tp->snd_ssthresh, ca->model.cwnd);
	trace_prague_cut(sk, cause, &before, &ca->model);
}

/* Reduces the window for the first mark within rtt_virt. */
static noinline void respond_to_mark(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_model before = ca->model;
	bool abrupt = ca->model.alpha > PRAGUE_ABRUPT;
	bool one_round = ca->model.alpha <= PRAGUE_ONE >> READ_ONCE(ewma_shift.value);

	end_silence(tp, ca);
	ca->growth.undoable = false;	/* nor does the stack undo an older loss */
	if (ca->marks.classic) {
		reduce_as_for_loss(sk, prague_loss_share(&ca->model, READ_ONCE(loss_cubic.value),
							 false), "classic");
		return;
	}
	enter_cwr(tp, ca, BY_MARKS);
	/* the cuts of one more round with marks belong to the start's end, which left alpha at 0 */
	ca->growth.abrupt = abrupt || (ca->growth.abrupt && !ca->marks.silent && one_round);
	/* no longer converged: a steady state with so many marks has a smaller window */
	if (abrupt && ca->model.cwnd >= ABRUPT_CWND && READ_ONCE(fast_rounds.value))
		ca->rounds = 0;
	if (!READ_ONCE(per_ack.value))
		prague_reduce(&ca->model, prague_ecn_share(&ca->model), window_floor());
	WRITE_ONCE(tp->snd_ssthresh, max(ca->model.cwnd, PRAGUE_MIN_CWND));
	trace_prague_cut(sk, "ecn", &before, &ca->model);
}

/* Ends slow start after a round with enough marks; @delivered in the latest RTT. */
static noinline void respond_to_marked_start(struct sock *sk, u32 delivered)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_model before = ca->model;
	u32 cwnd = prague_start_window(before.cwnd, delivered, tcp_min_rtt(tp), srtt(tp) >> 3);

	end_silence(tp, ca);
	ca->growth.undoable = false;
	enter_cwr(tp, ca, BY_MARKS);
	ca->growth.abrupt = true;
	ca->marks.seen = true;
	ca->model.alpha = READ_ONCE(first_alpha.value) ? PRAGUE_ONE : 0;
	prague_set_window(&ca->model, cwnd);
	WRITE_ONCE(tp->snd_ssthresh, cwnd);
	trace_prague_cut(sk, "start", &before, &ca->model);
}

/* A loss with a window of @cwnd packets. */
static noinline void respond_to_loss(struct sock *sk, u32 cwnd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	bool combined = READ_ONCE(loss_combined.value) && ca->marks.cwr &&
			now_us(tp) - ca->cwr_us < srtt(tp) >> 3;

	if (cwnd != whole_window(ca))
		prague_set_window(&ca->model, cwnd);
	ca->before_loss = ca->growth;
	ca->growth.undoable = true;
	ca->start.gap_ns = 0;
	reduce_as_for_loss(sk, prague_loss_share(&ca->model, READ_ONCE(loss_cubic.value), combined),
			   combined ? "combined" : "loss");
}

/*
 * Called when the stack enters CWR, where prague_ack() sets the window, and on a loss,
 * whose response follows in prague_set_state().
 */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static void prague_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	cc_syn_timed_out(sk);
	if (cc_recovery_starts(sk, new_state)) {
		respond_to_loss(sk, tcp_snd_cwnd(tp));
		tp->prior_cwnd = max(ca->growth.lost_at, 1U);
		cc_recovery_begin(tp);
	} else if (cc_probe_repaired(sk, new_state)) {
		respond_to_loss(sk, tcp_snd_cwnd(tp));
		window_to_stack(tp, ca);
	} else if (state == TCP_CA_CWR && cc_timed_out(sk, new_state) &&
		   after(tp->high_seq, tp->snd_una)) {
		/* without CA_EVENT_LOSS: the stack's window is gone, the model's is still there */
		respond_to_loss(sk, whole_window(ca));
	} else if (state == TCP_CA_Recovery && new_state < TCP_CA_Recovery) {
		window_to_stack(tp, ca);
	}
}

/* As tcp_init_cwnd(), which modules cannot call */
static u32 initial_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 cwnd = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return min_t(u32, cwnd ? cwnd : TCP_INIT_CWND, tcp_sk(sk)->snd_cwnd_clamp);
}

/*
 * Periods in which the program sends nothing have no marks. Without them alpha would be the marked
 * fraction of its bursts, and a flow that is idle most of the time would be cut as one that fills
 * the queue all the time.
 */
static void average_idle(const struct tcp_sock *tp, struct prague *ca)
{
	u32 virt = rtt_virt(tp, ca) >> 3, passed = now_us(tp) - ca->period_us;

	if (!ca->marks.seen || !virt || passed < virt)
		return;
	/* the period that was interrupted ends with the first ACK, an RTT from now */
	prague_idle(&ca->model, passed / virt, READ_ONCE(ewma_shift.value));
	ca->period_us = now_us(tp) - passed % virt;
}

/*
 * After more than an RTO slow start is that of a new connection. From an old window additive
 * increase would take dozens of answers to reach today's share, since it only runs while the
 * program sends. Not after a loss: a queue that does not mark may be deep.
 */
static void start_again(struct tcp_sock *tp, struct prague *ca)
{
	memset(&ca->growth, 0, sizeof(ca->growth));
	memset(&ca->start.hystart, 0, sizeof(ca->start.hystart));
	ca->marks.usual = 0;
	ca->marks.seen = false;
	if (tp->total_retrans)
		ca->start.gap_ns = 0;	/* the path may not be what the first flight has shown */
	WRITE_ONCE(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
}

/*
 * Sending starts with nothing in flight. The stack reports a retransmission after a
 * timeout as such a start, too: that is no idle time.
 */
static void prague_tx_start(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	s32 idle = tcp_jiffies32 - tp->lsndtime, rto = inet_csk(sk)->icsk_rto;
	u32 cwnd = tcp_snd_cwnd(tp), restart = min(initial_window(sk), cwnd);

	if (tp->packets_out)
		return;
	/* marks on pure ACKs do not count for data */
	ca->marks.delivered_ce = tp->delivered_ce;
	ca->cubic_at_ms = now_ms(tp);	/* RFC 9438 4.2: idle time does not count */
	/* a window below two packets has such gaps while it sends */
	if (ca->model.cwnd < PRAGUE_MIN_CWND)
		return;
	average_idle(tp, ca);
	if (idle <= rto || !tp->data_segs_out)
		return;
	ca->rounds = 0;		/* 3.4 */
	ca->marks.silent = 0;
	/* RFC 2861: the stack leaves it to controls that set the window themselves */
	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle))
		return;
	if (ca->growth.phase == BY_MARKS && READ_ONCE(quick_start.value))
		start_again(tp, ca);
	else
		WRITE_ONCE(tp->snd_ssthresh, tcp_current_ssthresh(sk));
	while ((idle -= rto) > 0 && cwnd > restart)
		cwnd >>= 1;
	tcp_snd_cwnd_set(tp, max(cwnd, restart));
	window_from_stack(tp, ca);
	update_pacing(sk);
}

/* Called for each packet received, too */
static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (likely(ev == CA_EVENT_ECN_IS_CE || ev == CA_EVENT_ECN_NO_CE)) {
		struct ecn_echo *echo = echo_of(sk);

		if (unlikely(echo))
			ecn_echo_event(sk, echo, ev == CA_EVENT_ECN_IS_CE);
		return;
	}
	if (ev == CA_EVENT_LOSS)
		respond_to_loss(sk, tcp_snd_cwnd(tcp_sk(sk)));
	else if (cc_event_is_tx_start(ev))
		prague_tx_start(sk);
}

/*
 * No packet was lost: the window and the way it grows are as before (RFC 9438 4.9). With
 * the curve of the false loss it would not grow until time K. The loss may be from before this
 * control was chosen.
 */
static u32 prague_undo_cwnd(struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);
	struct prague_growth *g = &ca->growth;
	u32 before = g->undoable ? g->lost_at : whole_window(ca);

	prague_set_window(&ca->model, max3(tcp_snd_cwnd(tcp_sk(sk)), before, 1U));
	if (g->undoable)
		*g = ca->before_loss;
	g->undoable = false;
	return whole_window(ca);
}

/* CUBIC's increase per round, after a loss */
static noinline u64 cubic_ai(const struct tcp_sock *tp, const struct prague *ca)
{
	const struct prague_growth *g = &ca->growth;
	u32 t = g->cubic_ms + (srtt(tp) >> 3) / USEC_PER_MSEC;

	return prague_cubic_ai(ca->model.cwnd,
			       prague_cubic_window(g->lost_at, g->fast, t, srtt(tp)));
}

static u64 increase_per_round(const struct tcp_sock *tp, const struct prague *ca, u32 virt)
{
	const struct prague_growth *g = &ca->growth;
	u64 ai;

	if (unlikely(g->phase == BY_CUBIC))
		return cubic_ai(tp, ca);
	if (unlikely(g->phase == PROBING))
		return prague_probe_ai(ca->model.cwnd);
	ai = prague_ai(srtt(tp), virt);
	if (ca->marks.silent < READ_ONCE(fast_rounds.value))	/* patience() is no less */
		return ai;
	return prague_boost(ai, ca->model.cwnd, ca->marks.silent, patience(ca),
			    g->abrupt ? PRAGUE_BOOST_ABRUPT : PRAGUE_BOOST_STEADY);
}

/*
 * Is the window the limit, not the program or the receiver? While pacing holds data back, up to
 * a burst of the window may be unused. With short RTTs a burst is longer than the window, so
 * that without such data it says nothing.
 */
static bool window_is_limit(const struct sock *sk, const struct prague *ca,
			    const struct rate_sample *rs)
{
	return tcp_is_cwnd_limited(sk) ||
	       (tcp_send_head(sk) && rs->prior_in_flight + max_t(u32, ca->gso.set, 1) >=
				     tcp_snd_cwnd(tcp_sk(sk)));
}

/* CUBIC's time passes only while the window is the @limit (RFC 9438 5.8). */
static noinline void count_cubic_time(const struct tcp_sock *tp, struct prague *ca, bool limit)
{
	u16 passed = now_ms(tp) - ca->cubic_at_ms;

	ca->cubic_at_ms += passed;
	if (limit)
		ca->growth.cubic_ms = min_t(u32, ca->growth.cubic_ms + passed, CUBIC_MS_MAX);
}

/*
 * Should slow start grow slowly? Yes after HyStart++ has triggered, or once cwnd reaches the BDP
 * that the first flight suggests.
 */
static bool conservative(const struct tcp_sock *tp, struct prague *ca)
{
	struct prague_hystart *h = &ca->start.hystart;

	if (!h->css && READ_ONCE(quick_start.value) &&
	    ca->model.cwnd >= prague_pipe(tcp_min_rtt(tp), ca->start.gap_ns))
		h->css = 1;
	return h->css;
}

static void increase_window(struct sock *sk, u32 unmarked, u32 virt, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_model *m = &ca->model;
	bool limit = window_is_limit(sk, ca, rs) ||
		     (app_limited(sk) && m->cwnd < 2 * tp->max_packets_out);

	if (ca->growth.phase == BY_CUBIC)
		count_cubic_time(tp, ca, limit);
	if (!limit)
		return;
	/* a fractional window is no slow start, though ssthresh has no fractions */
	if (m->cwnd < tp->snd_ssthresh && tp->snd_ssthresh > PRAGUE_MIN_CWND) {
		u32 step = min(unmarked, tp->snd_ssthresh - m->cwnd);

		if (ca->growth.phase == SLOW_START && conservative(tp, ca)) {
			prague_grow(m, prague_css_growth(&ca->start.hystart, step));
			return;
		}
		m->cwnd += step;
		unmarked -= step;
	} else if (ca->growth.phase == SLOW_START) {
		start_probing(tp, ca);
	}
	prague_increase(m, unmarked, increase_per_round(tp, ca, virt));
}

static noinline void judge_rtt(struct prague *ca)
{
	prague_hystart_judge(&ca->start.hystart);
}

/* An RTT in the first slow start */
static void sample_slow_start(struct prague *ca, u32 rtt_us)
{
	if (prague_hystart_full(&ca->start.hystart))
		prague_hystart_min(&ca->start.hystart, rtt_us);
	else if (READ_ONCE(hystart.value) && prague_hystart_rtt(&ca->start.hystart, rtt_us))
		judge_rtt(ca);
}

/*
 * At a full path the rounds that follow are marked. Without marks the gap was too long, or there is
 * a queue that does not mark: then the RTT has grown with the window, a 16th per round, and slow
 * start ends as by HyStart++. So it does where the RTT has grown by half though there are marks:
 * CoDel, beside other flows, may never mark the half of a round that would end it.
 */
static void judge_gap(const struct tcp_sock *tp, struct prague *ca)
{
	struct prague_hystart *h = &ca->start.hystart;
	u32 base = tcp_min_rtt(tp), rtt = (u32)h->round_min << PRAGUE_HYSTART_SHIFT;

	if (h->css < GAP_ROUNDS || h->css_base)
		return;
	if (ca->marks.in_round ? rtt >= base + (base >> 1) :
	    READ_ONCE(hystart.value) && rtt >= base + (base >> 4)) {
		h->css_base = h->round_min;
	} else if (!ca->marks.in_round) {
		ca->start.gap_ns = 0;
		h->css = 0;
	}
}

/* Counts rounds; true at the end of an EWMA period. */
static bool update_round(struct tcp_sock *tp, struct prague *ca, u32 virt)
{
	bool begins = false;

	if (!before(tp->snd_una, ca->round_end)) {
		ca->round_end = tp->snd_nxt;
		ca->rounds = min(ca->rounds + 1, U16_MAX);
		if (ca->marks.first_flight) {
			begins = ca->rounds == 1;
			ca->marks.first_flight = begins;
		}
		if (unlikely(ca->growth.phase == SLOW_START))
			judge_gap(tp, ca);
		if (ca->growth.phase == SLOW_START && prague_hystart_round(&ca->start.hystart))
			start_probing(tp, ca);
		ca->marks.in_round = false;
	}
	if (ca->marks.cwr && now_us(tp) - ca->cwr_us >= virt >> 3)
		ca->marks.cwr = false;
	/*
	 * A period begins from which the gap is measured. A shaper's bucket lets the first two
	 * packets leave at once, so that the time to the first few ACKs says nothing.
	 */
	if (unlikely(ca->marks.first_flight) && tp->bytes_acked <= GAP_SKIPPED * tp->mss_cache + 1)
		begins = true;
	return begins || now_us(tp) - ca->period_us >= virt >> 3;
}

static noinline const char *end_period(struct sock *sk, u32 virt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 acked = ca->model.acked, marked = ca->model.marked;

	look_at_queue(sk, marked);
	ca->marks.silent = marked ? 0 : min(ca->marks.silent + 1, U16_MAX);
	/* before the first mark alpha is not valid; with per_ack each ACK has updated it */
	if (ca->marks.seen && !READ_ONCE(per_ack.value))
		prague_ewma(&ca->model, READ_ONCE(ewma_shift.value));
	else
		prague_clear_counts(&ca->model);
	ca->period_us = now_us(tp);
	trace_prague_period(sk, &ca->model, acked, marked, virt, ca->rounds, ca->marks.silent,
			    ca->marks.classic);
	if (sends_ect_1())
		ecn_egress_attach(sk);
	return feedback_fault(sk, marked);
}

/* per_ack: this ACK's share of an EWMA period */
static noinline void average_ack(const struct tcp_sock *tp, struct prague *ca, u32 acked,
				 u32 marked, u32 virt)
{
	prague_ewma_ack(&ca->model, acked, marked,
			fp_mul_div(tcp_snd_cwnd(tp), virt, srtt(tp)), READ_ONCE(ewma_shift.value));
}

/* per_ack: this ACK's share of a reduction that is spread over a round */
static noinline void spread_cut(struct tcp_sock *tp, struct prague *ca, u32 acked, u32 virt)
{
	prague_reduce_spread(&ca->model, acked, prague_ratio(srtt(tp), virt), window_floor());
	if (ca->model.cwnd < tp->snd_ssthresh)
		WRITE_ONCE(tp->snd_ssthresh, max(ca->model.cwnd, PRAGUE_MIN_CWND));
}

/* The shortest time per packet of the first flight's ACKs: those that wait only lengthen it. */
static void measure_gap(const struct tcp_sock *tp, struct prague *ca)
{
	u32 gap = prague_gap(ca->model.acked, now_us(tp) - ca->period_us);

	if (gap && (!ca->start.gap_ns || gap < ca->start.gap_ns))
		ca->start.gap_ns = gap;
}

static void prague_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	u32 virt = rtt_virt(tp, ca);
	u32 acked = rs->acked_sacked;
	u32 marked = min_t(u32, (u16)(tp->delivered_ce - ca->marks.delivered_ce), acked);
	bool una_advanced = ca->una != tp->snd_una, start = starting(tp, ca);
	bool first_flight = start && ca->marks.first_flight, start_marked = false;
	bool small = false, first_mark = false, smooth = READ_ONCE(per_ack.value);
	const char *fault = NULL;
	s32 rtt_us = rs->rtt_us;

	if (cc_before_init(sk))
		return;
	if (cc_accecn_failed(tp)) {
		fall_back(sk, "ace");
		return;
	}
	ca->marks.delivered_ce = tp->delivered_ce;
	ca->una = tp->snd_una;
	if (state != TCP_CA_Recovery)
		window_from_stack(tp, ca);

	if (marked) {
		first_mark = !start && !ca->marks.seen;
		if (first_mark) {
			ca->marks.seen = true;
			ca->model.alpha = PRAGUE_ONE;	/* 2.3.2 */
		}
		ca->marks.in_round |= !first_flight;
		small = start && small_window(sk);
	}
	prague_count(&ca->model, acked, marked);
	if (unlikely(first_flight) && ca->rounds == 1)
		measure_gap(tp, ca);
	if (smooth && ca->marks.seen && srtt(tp))
		average_ack(tp, ca, acked, marked, virt);
	if (rtt_us > 0) {
		if (prague_rtt(&ca->model, rtt_us) && unlikely(READ_ONCE(classic_fallback.value)))
			note_stamp(sk, rtt_us);
		if (unlikely(ca->growth.phase == SLOW_START))
			sample_slow_start(ca, rtt_us);
	}
	if (update_round(tp, ca, virt)) {
		/*
		 * Marks of a program's own bursts do not say that the path is full. Yet one that
		 * sends steadily, and is always the limit, has to respond, too.
		 */
		start_marked = start && ca->rounds >= START_ROUNDS &&
			       (ca->rounds >= START_ROUNDS_MAX || !app_limited(sk)) &&
			       prague_start_ends(&ca->start.hystart, &ca->model, tcp_min_rtt(tp),
						 small_window(sk));
		fault = end_period(sk, virt);
	}

	if (state == TCP_CA_Recovery) {
		cc_recovery_window(tp, rs, tp->snd_ssthresh, una_advanced);
	} else {
		if (start_marked && state != TCP_CA_Loss)
			respond_to_marked_start(sk, max(rs->delivered, 0));
		else if (marked && !start && !ca->marks.cwr && state != TCP_CA_Loss)
			respond_to_mark(sk);
		if (ca->marks.cwr && smooth && ca->growth.phase == BY_MARKS)
			spread_cut(tp, ca, acked, virt);
		increase_window(sk, first_flight || small ? acked : acked - marked, virt, rs);
		window_to_stack(tp, ca);
	}
	/* the cut was a half: the average begins with the next period (per_ack: still cuts) */
	if (first_mark && !READ_ONCE(first_alpha.value) && !smooth)
		ca->model.alpha = 0;
	update_pacing(sk);
	if (fault)
		fall_back(sk, fault);
}

CC_DEFINE_CONG_CONTROL(prague_cong_control, prague_ack)

/* ss -ti shows DCTCP's record. Counts are packets. */
static size_t prague_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops) == &prague) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = ca->marks.classic;
		info->dctcp.dctcp_alpha = READ_ONCE(ca->model.alpha) >> (PRAGUE_Q - ALPHA_USER_Q);
		info->dctcp.dctcp_ab_ecn = ca->model.marked;
		info->dctcp.dctcp_ab_tot = ca->model.acked;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

static struct tcp_congestion_ops prague __read_mostly = {
	.init		= prague_init,
	.release	= prague_release,
	.cong_control	= prague_cong_control,
	.ssthresh	= prague_ssthresh,
	.set_state	= prague_set_state,
	.cwnd_event	= prague_cwnd_event,
	CC_CWND_EVENT_TX_START(prague_tx_start)
	.undo_cwnd	= prague_undo_cwnd,
	CC_TSO_SEGS(prague_tso_segs, prague_min_tso_segs)
	.get_info	= prague_get_info,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

CC_DEFINE_RENO(prague, .get_info = prague_get_info);

/* What the handshake asks for. With DCTCP's feedback unfit for the open Internet. */
static u32 prague_flags(void)
{
	if (dctcp_feedback.value)
		return TCP_CONG_NEEDS_ECN;
	return TCP_CONG_NON_RESTRICTED | cc_accecn_flags(ect.value) |
	       (iw_paced.value ? TCP_CONG_PACE_START : 0);
}

/* --- ECN field: where the stack cannot send ECT(1) ---------------------------- */

#ifdef HAVE_TCP_CONG_ECT_1
static int prague_register(void)
{
	return tcp_register_congestion_control(&prague);
}

static void prague_unregister(void)
{
	tcp_unregister_congestion_control(&prague);
}
#else
static DEFINE_STATIC_KEY_FALSE(paces_start);	/* iw_paced: no packet pays for it otherwise */

/* ECT(1) on everything while Accurate ECN works. Until the handshake is done the stack chooses. */
static __always_inline int prague_egress_ecn(const struct sock *sk, const struct sk_buff *skb,
					     u32 payload)
{
	return cc_accecn_works(tcp_sk(sk)) ? INET_ECN_ECT_1 : INET_ECN_NOT_ECT;
}

/*
 * A SYN-ACK is ECT(1) if it agrees on Accurate ECN and is the first: a retransmission is
 * Not-ECT, as the first may have been lost for its field. The request counts
 * retransmissions after they are sent, yet keeps the first one's time.
 */
static bool prague_synack_not_ect(const struct request_sock *req, const struct sk_buff *skb)
{
	bool again = req->num_timeout || req->num_retrans ||
		     tcp_skb_timestamp_us(skb) > tcp_rsk(req)->snt_synack;

	return again || !cc_accecn_request(req);
}

/*
 * Paces the initial window (3.1.1). The stack does not pace the first ten segments, yet
 * sends no packet before tcp_wstamp_ns: move that on by each packet's time.
 */
static void prague_egress_sent(struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = READ_ONCE(sk->sk_pacing_rate);

	if (payload && tp->data_segs_out < 10 && rate)
		tp->tcp_wstamp_ns += div64_u64((u64)payload * NSEC_PER_SEC, rate);
}

/* tcp_ecn_send() writes the field, with Accurate ECN. */
static __always_inline bool prague_egress_lasting(void)
{
	return !static_branch_unlikely(&paces_start);
}

static const struct ecn_egress ecn_egress = {
	.ops	= &prague,
	.lasting = prague_egress_lasting,
	.choose	= prague_egress_ecn,
	.synack_not_ect = prague_synack_not_ect,
	.sent	= prague_egress_sent,
};

static int prague_register(void)
{
	int err = 0;

	if (iw_paced.value)
		static_branch_enable(&paces_start);
	if (sends_ect_1())
		err = ecn_egress_register();
	if (err)
		return err;
	err = tcp_register_congestion_control(&prague);
	if (err && sends_ect_1())
		ecn_egress_unregister();
	return err;
}

static void prague_unregister(void)
{
	tcp_unregister_congestion_control(&prague);
	if (sends_ect_1())
		ecn_egress_unregister();
}
#endif

static int __init prague_module_init(void)
{
	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);

	prague.flags = prague_flags();
	return prague_register();
}

static void __exit prague_module_exit(void)
{
	prague_unregister();
}

module_init(prague_module_init);
module_exit(prague_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("Prague congestion control for L4S");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
