// SPDX-License-Identifier: GPL-2.0
/*
 * prague - Prague congestion control for L4S
 * (draft-briscoe-iccrg-prague-congestion-control, July 2024)
 *
 * The network marks packets (CE) when the queue of ECT(1) packets is longer than a very short time,
 * and Accurate ECN tells the sender. Its laws, in the order of this file; prague_model.h has the
 * arithmetic:
 *
 *	path:	rtt_virt is srtt before the 500th round, then srtt + 25 ms, so that a flow's share
 *		depends less on its RTT. A packet has met no queue if its RTT is less than .3 ms
 *		above the shortest and its time at the bottleneck, and less than 1 ms.
 *	start:	the window doubles per round. The ACKs of the first long flight show the time per
 *		packet at the bottleneck: from the window that fills the path on, a round adds a
 *		16th. Slow start ends when most packets of a round are marked, or by HyStart++.
 *	mark:	once per rtt_virt, frac = packets marked / packets acknowledged, alpha = alpha +
 *		(frac - alpha) / 16, and cwnd = cwnd * (1 - alpha / 2). A mark that met a queue of
 *		1 to 3.5 ms does not count while at least 30 % of the latest packets met none: that
 *		queue is another flow's burst.
 *	growth:	on an ACK cwnd += unmarked * (srtt / rtt_virt)^2 / cwnd; faster after ten
 *		rtt_virt without marks (3.1.2): otherwise a flow takes more than a minute to fill
 *		1 Gb/s at 40 ms after slow start
 *	loss:	as CUBIC or Reno
 *	pace:	packet * max(cwnd, inflight) / srtt
 *
 * A connection without Accurate ECN, with garbled feedback, or whose ECT(1) data do not arrive, is
 * Reno (the stack's own, "prague_reno") until it ends, and none of its packets is ECT(1).
 *
 * Deviations from the draft; strict=1 switches 1, 2 and 6 off, and the option of 3.1.2, too:
 *  1. A mark that met a queue of 1 to 3.5 ms does not count while at least 30 % of the packets of
 *     this round and, with less weight, those before met none, unless ten rtt_virt were without
 *     marks (2.4.2). Otherwise each burst of a short flow costs capacity that nobody uses.
 *  2. Slow start does not end with the first mark: an initial window alone is longer than a queue's
 *     threshold below 100 Mb/s. Its end leaves the window that the path has delivered, and alpha
 *     begins at 0, as after other first marks, which cut by a half: from 1 its average takes some
 *     ten rounds of large cuts to forget how the flow began (2.3.2, 2.4.5).
 *  3. Slow start also ends as RFC 9406 (HyStart++) says: without marks it would fill deep buffers.
 *     Until the first mark or loss the window then grows by a twentieth per round, as CUBIC's
 *     does in Linux (2.4.5).
 *  4. A reduction takes effect at once. The draft's code reduces by one packet per ACK at most,
 *     with which slow start overshoots (2.4.2, 2.4.5).
 *  5. After a loss, until the next mark, rtt_virt is srtt, and packets are paced by sch_fq alone,
 *     at 120 %, as those of the stack's controls are: in a queue that does not mark, a flow would
 *     get less than Reno's share, or four times CUBIC's. Recoveries follow PRR (2.4.1, 2.4.4).
 *  6. After a pause of more than an RTO slow start is that of a new connection, unless a loss was
 *     the latest limit. After a mark the window also grows while the program is the limit, up to
 *     twice what was in flight, as the stack's does in slow start (2.4.5).
 *  7. Packets of no connection have the stack's field; without TCP_CONG_ECT_1 so do SYN-ACKs with
 *     SYN cookies and TIME-WAIT. TCP_CONG_NO_FALLBACK_RFC3168 is not set: the stack would promise
 *     RFC 3168 feedback in a SYN-ACK and then not give it (2.2, 2.3.1).
 *  8. Bleaching is detected from the feedback to the first data, not by the handshake (2.3.1).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
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
#ifdef HAVE_TCP_CONG_ECT_1	/* the stack sends ECT(1) */
static inline void ecn_egress_attach(struct sock *sk) { }
static inline void ecn_egress_detach(struct sock *sk) { }
static inline int ecn_egress_register(void) { return 0; }
static inline void ecn_egress_unregister(void) { }
#else
#include "ecn_egress_impl.h"
#endif

#define CREATE_TRACE_POINTS
#include "prague_trace.h"

CC_PARAM(ect, 1, 0, 1, 0444, "0 is ECT(0), 1 is ECT(1)",
	 "which ECT packets carry: 1, or 0 for private networks (2.2)");
CC_PARAM(dctcp_feedback, 0, 0, 1, 0444, "0 is off, 1 is on",
	 "without Accurate ECN, on kernels that lack it: DCTCP's feedback and ECT(0), between two ends that both have this on; private networks only");
CC_PARAM(strict, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "by the letter of the draft: the first mark ends slow start, each mark counts, alpha begins at 1, and the increase is additive");
static_assert(PRAGUE_RTT_EXTRA == 2);	/* rtt_mode's default, which modinfo shows as it stands */
CC_PARAM(rtt_mode, 2, 0, PRAGUE_RTT_MODES - 1, 0644,
	 "0 is off, 1 max(srtt, target), 2 srtt + target",
	 "rtt_virt: 0 srtt, 1 max(srtt, rtt_target_us), 2 srtt + rtt_target_us (2.4.4)");
CC_PARAM(rtt_target_us, 25000, 100, 1000000, 0644, "100 us to 1 s",
	 "RTT_VIRT_MIN, or AdditionalRTT, microseconds, 100 to 1000000 (2.4.4)");
CC_PARAM(rtt_rounds, 500, 0, 65535, 0644, "0 is from the start",
	 "rounds before rtt_virt replaces srtt, and again after idling, 0 to 65535 (2.4.4, 3.4)");
CC_PARAM(loss_cubic, 1, 0, 1, 0644, "0 is Reno, 1 is CUBIC",
	 "response to loss: 0 Reno, 1 CUBIC, growth until the next mark or loss included (2.4.1)");
CC_PARAM(burst_us, 250, 10, 10000, 0644, "10 us to 10 ms",
	 "MAX_BURST_DELAY: longest burst at the pacing rate, microseconds, 10 to 10000 (2.5.2)");

#define GAP_SKIPPED		3	/* packets of the first flight before its gap is measured */
#define GAP_PACKETS		8	/* of a later flight: a bucket lets two leave at once */
#define GAP_ROUNDS		6	/* without a mark at a window that should fill the path */
#define START_ROUNDS		3	/* before them a flow's own bursts cause marks */
#define EARLY_ROUNDS		4
#define START_ROUNDS_MAX	12
#define CUBIC_MS_MAX		(FP_ONE(20) - 1)	/* the curve ends at 1000 s */
#define SUSPECT_PERIODS		2	/* of feedback that contradicts itself */
#define BLEACHED_PKTS		10	/* acknowledged, and no ECT was reported */

enum prague_phase {	/* what the window's growth follows */
	SLOW_START,	/* of a new connection or after idling, that nothing has ended yet */
	PROBING,	/* slow start has ended without a mark or loss, and there was none since */
	BY_MARKS,	/* additive increase: the latest reduction was for a mark */
	BY_RENO,	/* the same after a loss */
	BY_CUBIC,	/* CUBIC's, after a loss */
};

/**
 * struct prague_growth - how the window grows. A loss changes it, its undo restores it
 * @lost_at:	from a loss on: window before it, packets
 * @gap_from:	SLOW_START: tp->delivered where measure_gap() began to count
 * @cubic_ms:	BY_CUBIC: ms since the loss in which the window was the limit; saturates
 * @fast:	BY_CUBIC: the loss was below the window of the one before: fast convergence
 * @undoable:	the latest reduction was for a loss, and is not undone
 * @phase:	enum prague_phase; a byte of its own, since each ACK looks at it
 */
struct prague_growth {
	union {
		u32 lost_at;
		u32 gap_from;
	};
	u32 cubic_ms:20;
	bool fast:1;
	bool undoable:1;
	u8 phase;
};

/**
 * struct prague_marks - what marks have said, and how they are taken
 * @delivered_ce: tp->delivered_ce up to which they are accounted for, packets, low 16 bits
 * @silent:	periods (of rtt_virt) since the latest one; saturates
 * @reported:	there was one in this period, whether or not it counts
 * @suspect:	periods in a row in which ACE and AccECN options contradict each other
 * @ect_seen:	the peer has seen ECT on our packets
 * @first_flight: no packet beyond those sent before the first ACK is acknowledged: they do not
 *		count yet
 * @seen:	there has been one: alpha is valid
 * @in_round:	there was one in this round
 * @cwr:	a reduction is less than rtt_virt ago: they cause no other
 */
struct prague_marks {
	u16 delivered_ce;
	u16 silent;
	bool reported:1;
	u8 suspect:2;
	bool ect_seen:1;
	bool first_flight:1;
	bool seen:1;
	bool in_round:1;
	bool cwr:1;
};

/**
 * struct prague - one connection
 * @model:	window, alpha and the counts of this EWMA period
 * @hystart:	in SLOW_START: its end by RTT
 * @gap_ns:	time per packet at the bottleneck, nanoseconds, see measure_gap(); 0 is unknown
 * @growth:	how the window grows
 * @before_loss: the same before the latest loss, while @growth.undoable
 * @marks:	what they have said
 * @queue:	how many packets met a queue
 * @ce_bytes:	bytes marked, from AccECN options, that are accounted for
 * @start_seq:	SND.NXT when this control took over
 * @echo:	the receiver's DCTCP.CE
 * @period_us:	when this EWMA period began, low 32 bits of tcp_mstamp
 * @cwr_us:	when the latest reduction was, likewise; SLOW_START: when @growth.gap_from was set
 * @round_end:	SND.NXT when this round (of the real RTT) began
 * @una:	SND.UNA after the latest ACK
 * @rounds:	since the start or the latest idle time; saturates
 * @cubic_at_ms: BY_CUBIC: time up to which @growth.cubic_ms is counted, milliseconds, low 16 bits
 * @burst:	longest burst at the pacing rate, segments
 * @gso:	limit on the segments of a burst
 */
struct prague {
	struct prague_model model;
	struct prague_hystart hystart;
	u32 gap_ns;
	struct prague_growth growth;
	struct prague_growth before_loss;
	struct prague_marks marks;
	struct prague_queue queue;
	u16 rounds;
	u16 cubic_at_ms;
	u16 burst;
	struct cc_gso gso;
	union {		/* with Accurate ECN, and without: that does not change after .init */
		struct {
			u32 ce_bytes;
			u32 start_seq;
		};
		struct ecn_echo echo;
	};
	u32 period_us;
	u32 cwr_us;
	u32 round_end;
	u32 una;
};

static struct tcp_congestion_ops prague, prague_reno;

/* --- path --------------------------------------------------------------------- */

static u32 now_us(const struct tcp_sock *tp)
{
	return (u32)tp->tcp_mstamp;
}

static u16 now_ms(const struct tcp_sock *tp)
{
	return div_u64(tp->tcp_mstamp, USEC_PER_MSEC);
}

/* rtt_virt in 1/8 us, as tp->srtt_us: the real RTT while losses limit the window */
static u32 rtt_virt(const struct tcp_sock *tp, const struct prague *ca)
{
	if (ca->growth.phase != BY_MARKS || ca->rounds < READ_ONCE(rtt_rounds.value))
		return tp->srtt_us;
	return prague_rtt_virt(tp->srtt_us, READ_ONCE(rtt_mode.value),
			       READ_ONCE(rtt_target_us.value) << 3);
}

/* The window for the stack, in whole packets, rounded up. Pacing uses the exact one. */
static u32 whole_window(const struct prague *ca)
{
	return max(ca->model.cwnd + (ca->model.frac && ca->model.cwnd < U32_MAX), 1U);
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

/* Everything that the program has written is sent. */
static bool app_limited(const struct sock *sk)
{
	return !tcp_send_head(sk) && !tcp_sk(sk)->is_cwnd_limited;
}

/* --- start: how a flow starts, and what ends it ------------------------------- */

/* Is this the first slow start, and not that of the draft? */
static bool starting(const struct tcp_sock *tp, const struct prague *ca)
{
	return ca->growth.phase == SLOW_START && ca->model.cwnd < tp->snd_ssthresh &&
	       !READ_ONCE(strict.value);
}

/*
 * The first flight shows the time per packet: the shortest, as ACKs that wait only lengthen it. If
 * it was too short, ACKs of eight packets within an eighth of the RTT do, with more to send behind
 * them, once the window is near what they suggest. Others show our pace, or the program's writes.
 */
static noinline void measure_gap(const struct sock *sk, struct prague *ca, bool first)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = first ? ca->model.acked : tp->delivered - ca->growth.gap_from;
	u32 us = now_us(tp) - (first ? ca->period_us : ca->cwr_us), gap = prague_gap(packets, us);

	if (first) {
		if (ca->rounds == 1 && gap && (!ca->gap_ns || gap < ca->gap_ns))
			ca->gap_ns = gap;
		return;
	}
	if (packets < GAP_PACKETS && us <= tp->srtt_us >> 6)
		return;
	ca->growth.gap_from = tp->delivered;
	ca->cwr_us = now_us(tp);
	if (tcp_send_head(sk) && us <= tp->srtt_us >> 6 &&
	    prague_pipe(tcp_min_rtt(tp), gap) / 2 <= ca->model.cwnd)
		ca->gap_ns = gap;
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
	/* an answer of a few rounds is written whole */
	bool more_to_write = sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	u32 pipe = prague_pipe(tcp_min_rtt(tp), ca->gap_ns);

	return (ca->rounds < EARLY_ROUNDS && !more_to_write) ||
	       (ca->gap_ns && ca->model.cwnd < pipe / PRAGUE_SMALL);
}

/* Should slow start grow slowly: after HyStart++ has triggered, or once the path is full? */
static bool conservative(const struct tcp_sock *tp, struct prague *ca)
{
	struct prague_hystart *h = &ca->hystart;

	if (!h->css && !READ_ONCE(strict.value) &&
	    ca->model.cwnd >= prague_pipe(tcp_min_rtt(tp), ca->gap_ns))
		h->css = 1;
	return h->css;
}

/*
 * At a full path the rounds that follow are marked. Without marks the gap was too long, or there is
 * a queue that does not mark: then the RTT has grown with the window, a 16th per round, and slow
 * start ends as by HyStart++. So it does where the RTT has grown by half though there are marks:
 * CoDel, beside other flows, may never mark the half of a round that would end it.
 */
static noinline void judge_gap(const struct tcp_sock *tp, struct prague *ca)
{
	struct prague_hystart *h = &ca->hystart;
	u32 base = tcp_min_rtt(tp), rtt = (u32)h->round_min << PRAGUE_HYSTART_SHIFT;

	if (h->css < GAP_ROUNDS || h->css_base)
		return;
	if (rtt >= base + (base >> (ca->marks.in_round ? 1 : 4))) {
		h->css_base = h->round_min;
	} else if (!ca->marks.in_round) {
		ca->gap_ns = 0;
		h->no_gap = !tp->app_limited;
		h->css = 0;
	}
}

/* Slow start ended, but no mark or loss ended it: HyStart++ did, or an ssthresh set earlier. */
static noinline void start_probing(struct tcp_sock *tp, struct prague *ca)
{
	ca->growth.phase = PROBING;
	WRITE_ONCE(tp->snd_ssthresh, max(ca->model.cwnd, PRAGUE_MIN_CWND));
}

/*
 * A period of slow start has ended: do its marks end slow start? Marks of a program's own bursts do
 * not say that the path is full. Yet one that sends steadily, and is always the limit, has to
 * respond, too.
 */
static bool start_is_marked(const struct sock *sk, struct prague *ca)
{
	return ca->rounds >= START_ROUNDS &&
	       (ca->rounds >= START_ROUNDS_MAX || !app_limited(sk)) &&
	       prague_start_ends(&ca->hystart, &ca->model, tcp_min_rtt(tcp_sk(sk)),
				 small_window(sk));
}

/*
 * After more than an RTO slow start is that of a new connection. From an old window additive
 * increase would take dozens of answers to reach today's share, since it only runs while the
 * program sends. Not after a loss: a queue that does not mark may be deep.
 */
static void start_again(struct tcp_sock *tp, struct prague *ca)
{
	memset(&ca->growth, 0, sizeof(ca->growth));
	memset(&ca->hystart, 0, sizeof(ca->hystart));
	ca->marks.seen = false;
	if (tp->total_retrans)
		ca->gap_ns = 0;	/* the path may not be what the first flight has shown */
	WRITE_ONCE(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
}

/* As tcp_init_cwnd(), which modules cannot call */
static u32 initial_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 cwnd = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return min_t(u32, cwnd ? cwnd : TCP_INIT_CWND, tcp_sk(sk)->snd_cwnd_clamp);
}

/* --- mark: what it means ------------------------------------------------------ */

static void enter_cwr(const struct tcp_sock *tp, struct prague *ca, enum prague_phase phase)
{
	ca->growth.phase = phase;
	ca->marks.cwr = true;
	ca->cwr_us = now_us(tp);
}

/* How many of @marked packets count? After a silence, in which the window may grow fast, all do. */
static u32 marks_that_count(const struct tcp_sock *tp, struct prague *ca, u32 acked, u32 marked,
			    s32 rtt_us)
{
	u32 wait = rtt_us > 0 ? rtt_us - min_t(u32, rtt_us, tcp_min_rtt(tp)) : 0;

	prague_queue_count(&ca->queue, acked, wait, ca->gap_ns);
	ca->marks.reported |= !!marked;
	if (ca->marks.silent >= PRAGUE_PATIENCE || READ_ONCE(strict.value))
		return marked;
	return prague_queue_is_burst(&ca->queue, wait) ? 0 : marked;
}

/*
 * Reduces the window for the first mark within rtt_virt. After a round with enough marks (@start)
 * it ends slow start with the window that the path has @delivered in the latest RTT.
 */
static noinline void respond_to_mark(struct sock *sk, bool start, u32 delivered)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_model before = ca->model;

	ca->growth.undoable = false;	/* nor does the stack undo an older loss */
	enter_cwr(tp, ca, BY_MARKS);
	if (start) {
		ca->marks.seen = true;
		ca->model.alpha = 0;
		prague_set_window(&ca->model, prague_start_window(before.cwnd, delivered,
								  tcp_min_rtt(tp),
								  tp->srtt_us >> 3));
	} else {
		prague_reduce(&ca->model, ca->model.alpha >> 1);	/* 2.4.2 */
	}
	WRITE_ONCE(tp->snd_ssthresh, max(ca->model.cwnd, PRAGUE_MIN_CWND));
	trace_prague_cut(sk, start ? "start" : "ecn", &before, &ca->model);
}

/* --- growth ------------------------------------------------------------------- */

/* CUBIC's increase per round, after a loss */
static noinline u64 cubic_ai(const struct tcp_sock *tp, const struct prague *ca)
{
	const struct prague_growth *g = &ca->growth;
	u32 t = g->cubic_ms + (tp->srtt_us >> 3) / USEC_PER_MSEC;

	return prague_cubic_ai(ca->model.cwnd,
			       prague_cubic_window(g->lost_at, g->fast, t, tp->srtt_us));
}

static u64 increase_per_round(const struct tcp_sock *tp, const struct prague *ca, u32 virt)
{
	const struct prague_growth *g = &ca->growth;
	u64 ai;

	if (unlikely(g->phase == BY_CUBIC))
		return cubic_ai(tp, ca);
	if (unlikely(g->phase == PROBING))
		return prague_probe_ai(ca->model.cwnd);
	ai = prague_ai(tp->srtt_us, virt);
	if (ca->marks.silent < PRAGUE_PATIENCE || g->phase != BY_MARKS || READ_ONCE(strict.value))
		return ai;
	return prague_boost(ai, ca->model.cwnd, ca->marks.silent);
}

/*
 * Is the window the limit, not the program or the receiver? While pacing holds data back, up to
 * a burst of the window may be unused. With short RTTs a burst is longer than the window, so
 * that without such data it says nothing. After a mark the window may grow up to twice an answer,
 * as the stack's does in slow start: a smaller one would cost each answer one more round.
 */
static bool window_is_limit(const struct sock *sk, const struct prague *ca,
			    const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_is_cwnd_limited(sk) ||
	    (tcp_send_head(sk) &&
	     rs->prior_in_flight + max_t(u32, ca->gso.set, 1) >= tcp_snd_cwnd(tp)))
		return true;
	return ca->growth.phase == BY_MARKS && app_limited(sk) &&
	       tcp_snd_cwnd(tp) < 2 * tp->max_packets_out;
}

static void increase_window(struct sock *sk, u32 unmarked, u32 virt, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_growth *g = &ca->growth;
	struct prague_model *m = &ca->model;
	bool limit = window_is_limit(sk, ca, rs);

	if (unlikely(g->phase == BY_CUBIC)) {
		u16 passed = now_ms(tp) - ca->cubic_at_ms;

		/* time passes only while the window is the limit (RFC 9438 5.8) */
		ca->cubic_at_ms += passed;
		if (limit)
			g->cubic_ms = min_t(u32, g->cubic_ms + passed, CUBIC_MS_MAX);
	}
	if (!limit)
		return;
	if (m->cwnd < tp->snd_ssthresh) {
		u32 step = min(unmarked, tp->snd_ssthresh - m->cwnd);

		if (ca->growth.phase == SLOW_START && conservative(tp, ca)) {
			prague_grow(m, prague_css_growth(&ca->hystart, step));
			return;
		}
		m->cwnd += step;
		unmarked -= step;
	} else if (ca->growth.phase == SLOW_START) {
		start_probing(tp, ca);
	}
	prague_increase(m, unmarked, increase_per_round(tp, ca, virt));
}

/* --- loss --------------------------------------------------------------------- */

/* A loss with a window of @cwnd packets: reduces it, and grows it again as CUBIC or Reno. */
static noinline void respond_to_loss(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_growth *g = &ca->growth;
	bool cubic = READ_ONCE(loss_cubic.value);
	struct prague_model before;

	if (cwnd != whole_window(ca))
		prague_set_window(&ca->model, cwnd);
	before = ca->model;
	ca->before_loss = *g;
	g->undoable = true;
	g->fast = g->phase == BY_CUBIC && before.cwnd < prague_cubic_max(g->lost_at, g->fast);
	g->lost_at = before.cwnd;
	g->cubic_ms = 0;
	enter_cwr(tp, ca, cubic ? BY_CUBIC : BY_RENO);
	ca->cubic_at_ms = now_ms(tp);
	prague_reduce(&ca->model, prague_loss_share(cubic));
	WRITE_ONCE(tp->snd_ssthresh, ca->model.cwnd);
	trace_prague_cut(sk, "loss", &before, &ca->model);
}

/* prague_ack() sets the window in CWR, prague_set_state() after a loss. */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static void fall_back(struct sock *sk, const char *reason);

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
	} else if (cc_timed_out_again(sk, new_state) && cc_ecn_accecn(tp)) {
		/* the path perhaps drops data with ECT, though the handshake's packets passed */
		fall_back(sk, "timeouts");
	}
}

/*
 * No packet was lost: the window and the way it grows are as before (RFC 9438 4.9). The loss may be
 * from before this control was chosen.
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

/* --- pace --------------------------------------------------------------------- */

static __always_inline void update_pacing(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), in_flight = tcp_packets_in_flight(tp), mss = tp->mss_cache;
	u64 rate, most = READ_ONCE(sk->sk_max_pacing_rate);
	bool start = starting(tp, ca);

	if (in_flight > cwnd || inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		rate = prague_pacing_rate(mss, max(cwnd, in_flight), 0, tp->srtt_us, false);
	else
		rate = prague_pacing_rate(mss, ca->model.cwnd, ca->model.frac, tp->srtt_us,
					  !start && cwnd < tp->snd_ssthresh / 2);
	if (unlikely(start) && !ca->hystart.css)
		rate = prague_start_rate(rate, mss, ca->gap_ns,
					 ca->gap_ns ? ca->rounds < EARLY_ROUNDS || app_limited(sk) :
					 !ca->hystart.no_gap);
	/* while losses limit the window, ACKs time the packets (tcp_pacing_ca_ratio) */
	if (unlikely(ca->growth.phase == BY_CUBIC)) {
		rate += rate / 5;
		cc_pace_off(sk);
	} else {
		cc_pace_on(sk);
	}
	rate = rate ? min(rate, most) : READ_ONCE(sk->sk_pacing_rate);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
	ca->burst = prague_burst(rate, READ_ONCE(burst_us.value), mss);
}

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

/* --- Prague or Reno ----------------------------------------------------------- */

/* Otherwise packets have the stack's field, which is ECT(0) or Not-ECT. */
static bool sends_ect_1(void)
{
	return ect.value && !dctcp_feedback.value && cc_accecn_flags(true);
}

static void prague_release(struct sock *sk)
{
	struct prague *ca = inet_csk_ca(sk);

	cc_gso_release(sk, &ca->gso);
	ecn_egress_detach(sk);
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
	if (cc_ecn_accecn(tp)) {
		cc_accecn_bytes(tp, INET_ECN_CE, &ca->ce_bytes);
		ca->start_seq = tp->snd_nxt;
	} else {
		ecn_echo_init(&ca->echo, tp);
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
 * Called at the end of each EWMA period: the reason why feedback cannot be trusted, or NULL. With
 * feedback that is missing or contradicts itself marks would not slow us down, and the queue would
 * grow. Only an ACK with AccECN options says something: a path may strip them, and ACE still works
 * then (RFC 9768 3.2.3.2). Without an option the stack's counts of bytes are its guess.
 */
static const char *feedback_fault(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	struct prague_marks *marks = &ca->marks;
	u8 ect_sent = ect.value && !dctcp_feedback.value ? INET_ECN_ECT_1 : INET_ECN_ECT_0;
	u32 ce_bytes, ect_bytes, news;

	if (!cc_ecn_accecn(tp) || !cc_accecn_bytes(tp, INET_ECN_CE, &ce_bytes))
		return NULL;
	if (marks->reported)
		marks->suspect = 0;
	if (!cc_accecn_option(tp))
		return NULL;
	cc_accecn_bytes(tp, ect_sent, &ect_bytes);
	if (ce_bytes || ect_bytes)
		marks->ect_seen = true;
	else if (!marks->ect_seen &&
		 after(tp->snd_una, ca->start_seq + BLEACHED_PKTS * tp->mss_cache))
		return "bleached";
	/* AccECN options report marked bytes, yet ACE reports no marked packets */
	news = ce_bytes - ca->ce_bytes;
	ca->ce_bytes = ce_bytes;
	if (!marks->reported && news >= tp->mss_cache && news < FP_ONE(23))
		marks->suspect++;
	else
		marks->suspect = 0;
	return marks->suspect >= SUSPECT_PERIODS ? "ace" : NULL;
}

/* --- the stack's callbacks ---------------------------------------------------- */

/* Sending starts with nothing in flight; or a retransmission after a timeout: no idle time */
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
	if (idle <= rto || !tp->data_segs_out)
		return;
	ca->rounds = 0;		/* 3.4 */
	ca->marks.silent = 0;
	/* RFC 2861: the stack leaves it to controls that set the window themselves */
	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle))
		return;
	if (ca->growth.phase == BY_MARKS && !READ_ONCE(strict.value))
		start_again(tp, ca);
	else
		WRITE_ONCE(tp->snd_ssthresh, tcp_current_ssthresh(sk));
	while ((idle -= rto) > 0 && cwnd > restart)
		cwnd >>= 1;
	tcp_snd_cwnd_set(tp, max(cwnd, restart));
	window_from_stack(tp, ca);
	update_pacing(sk);
}

static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (likely(ev == CA_EVENT_ECN_IS_CE || ev == CA_EVENT_ECN_NO_CE)) {
		struct prague *ca = inet_csk_ca(sk);

		if (unlikely(!cc_ecn_accecn(tcp_sk(sk))))
			ecn_echo_event(sk, &ca->echo, ev == CA_EVENT_ECN_IS_CE);
		return;
	}
	if (ev == CA_EVENT_LOSS)
		respond_to_loss(sk, tcp_snd_cwnd(tcp_sk(sk)));
	else if (cc_event_is_tx_start(ev))
		prague_tx_start(sk);
}

/* Counts rounds; true at the end of an EWMA period. */
static bool update_round(struct tcp_sock *tp, struct prague *ca, u32 virt)
{
	bool begins = false;

	if (!before(tp->snd_una, ca->round_end)) {
		ca->round_end = tp->snd_nxt;
		ca->rounds = min(ca->rounds + 1, U16_MAX);
		ca->marks.first_flight &= ca->rounds == 1;
		begins = ca->marks.first_flight;
		if (unlikely(ca->growth.phase == SLOW_START)) {
			/* the first flight was long enough to show it */
			if (ca->rounds == 2 && !ca->gap_ns)
				ca->hystart.no_gap = tp->bytes_acked > GAP_PACKETS * tp->mss_cache;
			judge_gap(tp, ca);
			if (prague_hystart_round(&ca->hystart))
				start_probing(tp, ca);
		}
		ca->marks.in_round = false;
		prague_queue_round(&ca->queue);
	}
	if (ca->marks.cwr && now_us(tp) - ca->cwr_us >= virt >> 3)
		ca->marks.cwr = false;
	/* the gap is measured from here: a bucket lets the first two packets leave at once */
	if (unlikely(ca->marks.first_flight) && tp->bytes_acked <= GAP_SKIPPED * tp->mss_cache + 1)
		begins = true;
	return begins || now_us(tp) - ca->period_us >= virt >> 3;
}

static noinline const char *end_period(struct sock *sk, u32 virt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 acked = ca->model.acked, marked = ca->model.marked;
	const char *fault = feedback_fault(sk);

	/* capacity is not free while there are marks, though they do not count */
	ca->marks.silent = ca->marks.reported ? 0 : min(ca->marks.silent + 1, U16_MAX);
	ca->marks.reported = false;
	if (ca->marks.seen)	/* before the first mark alpha is not valid */
		prague_ewma(&ca->model);
	else
		prague_clear_counts(&ca->model);
	ca->period_us = now_us(tp);
	trace_prague_period(sk, &ca->model, acked, marked, virt, ca->rounds, ca->marks.silent);
	if (sends_ect_1())
		ecn_egress_attach(sk);
	return fault;
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
	bool small = false, first_mark = false;
	const char *fault = NULL;

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

	if (start)
		ca->marks.reported |= !!marked;
	else
		marked = marks_that_count(tp, ca, acked, marked, rs->rtt_us);
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
	if (unlikely(start) && (first_flight || (!ca->gap_ns && !ca->hystart.no_gap)))
		measure_gap(sk, ca, first_flight);
	if (rs->rtt_us > 0) {
		prague_rtt(&ca->model, rs->rtt_us);
		if (unlikely(ca->growth.phase == SLOW_START))
			prague_hystart_rtt(&ca->hystart, rs->rtt_us);
	}
	if (update_round(tp, ca, virt)) {
		start_marked = start && start_is_marked(sk, ca);
		fault = end_period(sk, virt);
	}

	if (state == TCP_CA_Recovery) {
		cc_recovery_window(tp, rs, tp->snd_ssthresh, una_advanced);
	} else {
		if ((start_marked || (marked && !start && !ca->marks.cwr)) && state != TCP_CA_Loss)
			respond_to_mark(sk, start_marked, max(rs->delivered, 0));
		increase_window(sk, first_flight || small ? acked : acked - marked, virt, rs);
		window_to_stack(tp, ca);
	}
	if (first_mark && !READ_ONCE(strict.value))
		ca->model.alpha = 0;
	update_pacing(sk);
	if (fault)
		fall_back(sk, fault);
}

CC_DEFINE_CONG_CONTROL(prague_cong_control, prague_ack)

/* ss -ti shows DCTCP's record. alpha 1024 is 1.0; counts are packets. */
static size_t prague_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops) == &prague) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_alpha = READ_ONCE(ca->model.alpha) >> (PRAGUE_Q - 10);
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

/* --- ECN field: where the stack cannot send ECT(1) ---------------------------- */

#ifndef HAVE_TCP_CONG_ECT_1
/* ECT(1) on everything while Accurate ECN works. Until the handshake is done the stack chooses. */
static __always_inline int prague_egress_ecn(const struct sock *sk, const struct sk_buff *skb,
					     u32 payload)
{
	return cc_accecn_works(tcp_sk(sk)) ? INET_ECN_ECT_1 : INET_ECN_NOT_ECT;
}

/*
 * Only the first SYN-ACK is ECT(1): it may have been lost for its field. The request counts
 * retransmissions after they are sent, yet keeps the first one's time.
 */
static bool prague_synack_not_ect(const struct request_sock *req, const struct sk_buff *skb)
{
	bool again = req->num_timeout || req->num_retrans ||
		     tcp_skb_timestamp_us(skb) > tcp_rsk(req)->snt_synack;

	return again || !cc_accecn_request(req);
}

/* tcp_ecn_send() writes the field, with Accurate ECN. */
static __always_inline bool prague_egress_lasting(void)
{
	return true;
}

static const struct ecn_egress ecn_egress = {
	.ops	= &prague,
	.lasting = prague_egress_lasting,
	.choose	= prague_egress_ecn,
	.synack_not_ect = prague_synack_not_ect,
};
#endif

static int __init prague_module_init(void)
{
	int err = 0;

	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);
	prague.flags = dctcp_feedback.value ? TCP_CONG_NEEDS_ECN :
					      TCP_CONG_NON_RESTRICTED | cc_accecn_flags(ect.value);
	if (sends_ect_1())
		err = ecn_egress_register();
	if (err)
		return err;
	err = tcp_register_congestion_control(&prague);
	if (err && sends_ect_1())
		ecn_egress_unregister();
	return err;
}

static void __exit prague_module_exit(void)
{
	tcp_unregister_congestion_control(&prague);
	if (sends_ect_1())
		ecn_egress_unregister();
}

module_init(prague_module_init);
module_exit(prague_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("Prague congestion control for L4S");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
