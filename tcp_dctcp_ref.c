// SPDX-License-Identifier: GPL-2.0
/*
 * dctcp_ref - Data Center TCP as RFC 8257 specifies it.
 *
 *	switch:   marks packets (CE) that arrive at a queue above a threshold K
 *	receiver: ECE on an ACK says whether the packets it covers were marked;
 *		  a change is acknowledged at once
 *	sender:   once per window,   M = bytes marked / bytes acknowledged
 *				     alpha = (1 - g) * alpha + g * M
 *		  on congestion,     cwnd = cwnd * (1 - alpha / 2), at once, or at the
 *				     window's end if the flow has paused lately
 *		  otherwise as Reno: growth (RFC 5681), loss, timeouts
 *
 * The estimate and the cut are arithmetic in dctcp_model.h; feedback, in both
 * directions, is in ecn_feedback.h. Without ECN a connection is Reno, and its
 * packets leave as Not-ECT.
 *
 * The marked fraction of a window also feeds the stack's protective load balancing (PLB,
 * net.ipv4.tcp_plb_*, IPv6 only), as in Linux's dctcp: a flow on a congested path changes its
 * flow label.
 *
 * Only for networks that one administration controls, switches included: the
 * control is restricted (net.ipv4.tcp_allowed_congestion_control).
 *
 * What the RFC leaves open:
 *  - When cwnd is reduced. RFC 3168 suggests the first mark of a window; in 3.3 step 9 stands
 *    after the window's end. A flow that always has data reduces at once, which keeps the queue
 *    short. One that has paused lately answers requests: it reduces at the window's end, when
 *    a short answer has left.
 *  - Growth while cwnd is reduced, by ACKs that report no mark. RFC 5681, by which cwnd grows
 *    (3.3), does not stop it; the stack does. A flow that has paused lately grows, and its next
 *    answer fits fewer round trips. One that always has data does not, as with Linux' dctcp:
 *    what it would gain are marks.
 *  - cwnd after a pause in a reduction. The stack keeps what was left to send; all of the
 *    reduced window has arrived, so that the reduction is complete: cwnd is the reduced one.
 *  - A RST that answers a segment without a socket belongs to no connection: the stack sends
 *    it, Not-ECT. One that a socket sends is ECT (3.5).
 *
 * Deviations from RFC 8257:
 *  - cwnd is counted in packets, as the stack does; a reduction carries its fraction of
 *    a packet over to the next one (3.3, step 9).
 *  - A loss in a window that ECN has already reduced extends that reduction to the half
 *    that a conventional TCP would have left, and no further: a loss has its conventional
 *    effect, and no window is reduced twice (3.3, 3.4).
 *  - A clean Not-ECT packet (a retransmission by an RFC 3168 sender) that arrives in FIN-WAIT ends
 *    DCTCP.CE only where the stack reports such packets to modules (3.2).
 *  - mainline=1 does as Linux' dctcp does where that is milder: the fraction of a reduction
 *    is dropped; a window also ends with an ACK of exactly its last byte; a window in
 *    which nothing was acknowledged lowers alpha, too. What the RFC leaves open is the
 *    stack's choice then, as it is for Linux' dctcp.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_handshake.h"
#include "cc_param.h"
#include "cc_reno.h"
#include "cc_timeout.h"
#include "dctcp_model.h"
#include "ecn_egress_impl.h"
#include "ecn_feedback.h"

#define CREATE_TRACE_POINTS
#include "dctcp_ref_trace.h"

/* alpha in ss and in parameters: 1024 is 1.0, as in mainline */
#define ALPHA_USER_Q	10

CC_PARAM(shift_g, DCTCP_SHIFT_G_DEFAULT, DCTCP_SHIFT_G_MIN, DCTCP_SHIFT_G_MAX, 0644,
	 "0 would be g = 1, no smoothing; beyond 10 alpha would hardly change",
	 "estimation gain g = 2^-shift_g, 1 to 10 (RFC 8257 4.2)");
CC_PARAM(alpha_init, 1024, 0, 1024, 0644, "1024 is alpha = 1",
	 "alpha of a new connection in 1/1024, 0 to 1024 (RFC 8257 3.3: 1)");
CC_PARAM(alpha_reset_on_loss, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "set alpha back to alpha_init when loss starts (RFC 8257 4.2)");
CC_PARAM(rtt_gate_us, 0, 0, 10000000, 0644, "0 is off",
	 "above this smoothed RTT halve on ECN like RFC 3168, microseconds, 0 is off (RFC 8257 4.1: 10000)");
CC_PARAM(mainline, 0, 0, 1, 0644, "0 is RFC 8257, 1 is Linux' dctcp",
	 "where Linux' dctcp is milder than RFC 8257, do as it does");
CC_PARAM(ect_control, 1, 0, 1, 0444, "0 is off, 1 is on",
	 "ECT on pure ACKs, retransmissions and window probes too (RFC 8257 4.1)");

/* Windows after a pause in which a reduction waits for the window's end: a short answer's */
#define DCTCP_PAUSE_WINDOWS	2

/**
 * struct dctcp_ref - one connection
 * @model:	sender: the estimate
 * @fb:		sender: how far the peer's feedback is accounted for
 * @echo:	receiver: DCTCP.CE
 * @plb:	sender: the stack's protective load balancing
 * @prior_cwnd:	packets: cwnd when the last reduction began, for loss in the same
 *		window and for undo
 * @paused:	for so many more windows a reduction waits until the window ends
 * @cut_due:	this window's reduction waits for its end
 */
struct dctcp_ref {
	struct dctcp_model model;
	struct ecn_feedback fb;
	struct ecn_echo echo;
	struct tcp_plb_state plb;
	u32 prior_cwnd;
	u8 paused;
	bool cut_due;
};

static struct tcp_congestion_ops dctcp_ref_reno;

static u32 alpha_init_q30(void)
{
	return READ_ONCE(alpha_init.value) << (DCTCP_ALPHA_Q - ALPHA_USER_Q);
}

/*
 * Called after the handshake and when the control is changed. Also called before the
 * handshake: then it only makes the socket ask for ECN.
 */
static void dctcp_ref_init(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp_ref *ca = inet_csk_ca(sk);

	if (!cc_handshake_pending(sk) && !cc_ecn_any(tp)) {
		pr_info_once("a connection did not negotiate ECN and uses Reno (set net.ipv4.tcp_ecn, and the control before connect)\n");
		/* on which DCTCP builds (RFC 8257 4.2) */
		cc_use_reno(sk, &dctcp_ref_reno);
		return;
	}
	dctcp_model_init(&ca->model, alpha_init_q30(), tp->snd_una);
	ecn_feedback_init(&ca->fb, tp);
	ecn_echo_init(&ca->echo, tp);
	tcp_plb_init(sk, &ca->plb);
	ca->prior_cwnd = tcp_snd_cwnd(tp);
	ca->paused = 0;
	ca->cut_due = false;
	if (!ect_control.value && !cc_handshake_pending(sk))
		ecn_egress_attach(sk);
}

/* mainline=1: a window without data lowers alpha as an unmarked one does. */
static noinline void age_alpha(struct dctcp_ref *ca)
{
	if (!ca->model.acked)
		ca->model.alpha = fp_ewma(ca->model.alpha, 0, READ_ONCE(shift_g.value));
}

/*
 * Has the window ended? With mainline=1 as in Linux' dctcp: by the ACK that reaches its end, not
 * by the first one beyond.
 */
static bool window_ended(struct dctcp_ref *ca, u32 una)
{
	if (una != ca->model.window_end || !READ_ONCE(mainline.value))
		return dctcp_model_window_ended(&ca->model, una);
	age_alpha(ca);
	return true;
}

/*
 * RFC 8257 3.3, step 9. In the reduction the stack brings cwnd to ssthresh, in proportion to
 * what is acknowledged (RFC 6937).
 */
static u32 cut(struct sock *sk, u32 cwnd)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);
	u32 ssthresh;

	if (READ_ONCE(mainline.value))
		ca->model.cut_frac = 0;
	ssthresh = dctcp_model_cut(&ca->model, cwnd);
	trace_dctcp_ref_cut(sk, "ecn", ca->model.alpha, cwnd, ssthresh);
	return ssthresh;
}

/* Step 9 at the end of the window, which no reduction for ECN ends before */
static void cut_at_end(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->cut_due = false;
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_CWR)
		WRITE_ONCE(tp->snd_ssthresh, cut(sk, tp->snd_ssthresh));
}

/* RFC 8257 3.3, steps 5 to 8. */
static noinline void end_window(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);
	u32 acked = ca->model.acked, marked = ca->model.marked, fraction;

	fraction = dctcp_model_window(&ca->model, READ_ONCE(shift_g.value), tcp_sk(sk)->snd_nxt);
	trace_dctcp_ref_window(sk, &ca->model, acked, marked, fraction);
	if (!ect_control.value)
		ecn_egress_attach(sk);
	if (ca->paused)
		ca->paused--;
	if (ca->cut_due)
		cut_at_end(sk);
	if (!acked)
		return;
	/* of this window alone: alpha follows too slowly to choose a path by */
	tcp_plb_update_state(sk, &ca->plb, fraction >> (DCTCP_ALPHA_Q - TCP_PLB_SCALE));
	tcp_plb_check_rehash(sk, &ca->plb);
}

/*
 * Congestion avoidance (RFC 5681) in a reduction: the stack does not call cong_avoid, and
 * ends with cwnd = ssthresh.
 */
static noinline void grow_in_reduction(struct tcp_sock *tp, u32 acked)
{
	if (!tp->is_cwnd_limited || READ_ONCE(mainline.value))
		return;
	tp->snd_cwnd_cnt += DIV_ROUND_UP(acked, tp->mss_cache);
	if (tp->snd_cwnd_cnt >= tp->snd_ssthresh) {
		tp->snd_cwnd_cnt -= tp->snd_ssthresh;
		WRITE_ONCE(tp->snd_ssthresh, min(tp->snd_ssthresh + 1, tp->snd_cwnd_clamp));
	}
}

/* RFC 8257 3.3, steps 1 to 4. */
static noinline void count_ack(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp_ref *ca = inet_csk_ca(sk);
	struct ecn_sample s = ecn_feedback_update(&ca->fb, tp, flags);

	if (ca->paused && inet_csk(sk)->icsk_ca_state == TCP_CA_CWR && s.acked && !s.marked)
		grow_in_reduction(tp, s.acked);
	dctcp_model_ack(&ca->model, s.acked, s.marked);
	if (window_ended(ca, tp->snd_una))
		end_window(sk);
}

/*
 * Called for each segment, also for one that only carries data. Rare work is in noinline
 * functions, so that the common path saves no registers. The ACK that ends a handshake before which
 * .init was called advances SND.UNA: cc_before_init() sees it.
 */
static void dctcp_ref_in_ack_event(struct sock *sk, u32 flags)
{
	const struct dctcp_ref *ca = inet_csk_ca(sk);

	if (tcp_sk(sk)->snd_una == ca->fb.una && !READ_ONCE(mainline.value))
		return;
	if (!cc_before_init(sk))
		count_ack(sk, flags);
}

/* RFC 8257 4.1: is the path too long to be inside a data centre? */
static bool gate_shut(const struct tcp_sock *tp)
{
	u32 gate = READ_ONCE(rtt_gate_us.value);

	return gate && tp->srtt_us >> 3 > gate;
}

/* Called on ECE and on loss alike; dctcp_ref_set_state() knows which, and corrects. */
static u32 dctcp_ref_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp_ref *ca = inet_csk_ca(sk);
	u32 ssthresh;

	ca->prior_cwnd = tcp_snd_cwnd(tp);
	/*
	 * After a reduction at a window's end more is in flight than cwnd. PRR sends ssthresh /
	 * prior_cwnd of what arrives: by cwnd, what is in flight would stay.
	 */
	if (!READ_ONCE(mainline.value))
		tp->prior_cwnd = max(tp->prior_cwnd, tcp_packets_in_flight(tp));
	if (gate_shut(tp)) {
		ssthresh = tcp_reno_ssthresh(sk);
		trace_dctcp_ref_cut(sk, "gate", ca->model.alpha, ca->prior_cwnd, ssthresh);
		return ssthresh;
	}
	ca->cut_due = ca->paused && !READ_ONCE(mainline.value);
	if (!ca->cut_due)
		return cut(sk, ca->prior_cwnd);
	trace_dctcp_ref_cut(sk, "due", ca->model.alpha, ca->prior_cwnd, ca->prior_cwnd);
	return ca->prior_cwnd;
}

/* RFC 8257 3.4: half of the window that the reduction of this window began with. */
static void react_to_loss(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ssthresh = max(ca->prior_cwnd >> 1, DCTCP_MIN_CWND);

	trace_dctcp_ref_cut(sk, "loss", ca->model.alpha, ca->prior_cwnd, ssthresh);
	WRITE_ONCE(tp->snd_ssthresh, ssthresh);
	ca->model.cut_frac = 0;
	if (READ_ONCE(alpha_reset_on_loss.value))
		ca->model.alpha = alpha_init_q30();
}

/*
 * A loss in TCP_CA_Open or Disorder has just called ssthresh(). A loss in the window of
 * an ECN reduction (CWR) has not: prior_cwnd is still the window before that reduction.
 */
static void dctcp_ref_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	cc_syn_timed_out(sk);
	if (cc_recovery_starts(sk, new_state) ||
	    (state == TCP_CA_CWR && cc_timed_out(sk, new_state))) {
		react_to_loss(sk);
	} else if (cc_probe_repaired(sk, new_state)) {
		/* the stack has set cwnd to what ssthresh() returned */
		react_to_loss(sk);
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	}
}

/*
 * Has the flow paused? Nothing is in flight, and there was nothing to send. (An ACK of the whole
 * window leaves nothing in flight, too, while the program has more to send.) In TCP_CA_CWR all of
 * the reduced window has arrived, but the stack waits for one more ACK before it sets cwnd to
 * ssthresh.
 */
static void note_pause(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->packets_out || !tp->app_limited)
		return;
	/* the first window is what the pause is in */
	ca->paused = DCTCP_PAUSE_WINDOWS + 1;
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_CWR && !READ_ONCE(mainline.value))
		tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), tp->snd_ssthresh));
}

/*
 * Sending starts with nothing in flight: earlier marks were on pure ACKs. A retransmission
 * after a timeout is reported as such a start, too.
 */
static void dctcp_ref_tx_start(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);

	ecn_feedback_restart(&ca->fb, tcp_sk(sk));
	note_pause(sk);
	/* with nothing in flight another path reorders nothing */
	tcp_plb_check_rehash(sk, &ca->plb);
}

/* A timeout that has just called ssthresh() */
static noinline void dctcp_ref_timeout(struct sock *sk)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);

	tcp_plb_update_state_upon_rto(sk, &ca->plb);
	react_to_loss(sk);
}

static __always_inline void dctcp_ref_received(struct sock *sk, bool ce)
{
	struct dctcp_ref *ca = inet_csk_ca(sk);

	if (ecn_echo_event(sk, &ca->echo, ce))
		ecn_egress_awaits_changed(sk);
}

static void dctcp_ref_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_ECN_NO_CE)
		dctcp_ref_received(sk, false);
	else if (ev == CA_EVENT_ECN_IS_CE)
		dctcp_ref_received(sk, true);
	else if (ev == CA_EVENT_LOSS)
		dctcp_ref_timeout(sk);
	else if (cc_event_is_tx_start(ev))
		dctcp_ref_tx_start(sk);
}

static u32 dctcp_ref_undo_cwnd(struct sock *sk)
{
	const struct dctcp_ref *ca = inet_csk_ca(sk);

	return max(tcp_snd_cwnd(tcp_sk(sk)), ca->prior_cwnd);
}

/* ss -ti. ss asks for every control's record with Vegas' bit, too. */
static size_t dctcp_ref_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct dctcp_ref *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops) != &dctcp_ref_reno) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = ca->echo.ce;
		info->dctcp.dctcp_alpha = READ_ONCE(ca->model.alpha) >>
					  (DCTCP_ALPHA_Q - ALPHA_USER_Q);
		info->dctcp.dctcp_ab_ecn = ca->model.marked;
		info->dctcp.dctcp_ab_tot = ca->model.acked;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

/*
 * ect_control=0: only new data is ECT (RFC 3168), and packets that open and reset a
 * connection (RFC 8257 3.5). A retransmission is below SND.NXT; new data is not,
 * because the stack advances SND.NXT after it has sent it.
 */
static int dctcp_ref_egress_ecn(const struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	const struct tcphdr *th = tcp_hdr(skb);

	if (th->syn || th->fin || th->rst)
		return ECN_EGRESS_KEEP;
	if (!payload || before(ntohl(th->seq), tcp_sk(sk)->snd_nxt))
		return INET_ECN_NOT_ECT;
	return ECN_EGRESS_KEEP;
}

static bool dctcp_ref_egress_wanted(const struct sock *sk)
{
	return !ect_control.value;
}

/* Any unmarked data clears DCTCP.CE, even Not-ECT data (RFC 8257 3.2). */
static bool dctcp_ref_awaits_clean(const struct sock *sk)
{
	const struct dctcp_ref *ca = inet_csk_ca(sk);

	return ca->echo.ce;
}

static struct tcp_congestion_ops dctcp_ref __read_mostly = {
	.init		= dctcp_ref_init,
	.release	= ecn_egress_detach,
	.in_ack_event	= dctcp_ref_in_ack_event,
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= dctcp_ref_ssthresh,
	.set_state	= dctcp_ref_set_state,
	.cwnd_event	= dctcp_ref_cwnd_event,
	CC_CWND_EVENT_TX_START(dctcp_ref_tx_start)
	.undo_cwnd	= dctcp_ref_undo_cwnd,
	.get_info	= dctcp_ref_get_info,
	.flags		= TCP_CONG_NEEDS_ECN,
	.owner		= THIS_MODULE,
	.name		= "dctcp_ref",
};

CC_DEFINE_RENO(dctcp_ref, .get_info = dctcp_ref_get_info);

static const struct ecn_egress ecn_egress = {
	.ops	= &dctcp_ref,
	.wanted	= dctcp_ref_egress_wanted,
	.awaits_clean = dctcp_ref_awaits_clean,
	.choose	= dctcp_ref_egress_ecn,
};

static int __init dctcp_ref_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct dctcp_ref) > ICSK_CA_PRIV_SIZE);

	err = ecn_egress_register();
	if (err)
		return err;
	err = tcp_register_congestion_control(&dctcp_ref);
	if (err)
		ecn_egress_unregister();
	return err;
}

static void __exit dctcp_ref_module_exit(void)
{
	tcp_unregister_congestion_control(&dctcp_ref);
	ecn_egress_unregister();
}

module_init(dctcp_ref_module_init);
module_exit(dctcp_ref_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("Data Center TCP (RFC 8257), reference implementation");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
