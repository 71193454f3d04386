// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp_reno: the control of a connection without telemetry, or whose telemetry does not explain
 * its losses and marks: a bottleneck does not stamp. Reno; with ECN the reduction is DCTCP's
 * (RFC 8257). It sends probes at growing intervals, and the connection returns to HPCC++ as soon
 * as they are answered; from an unstamped bottleneck, as soon as a node is the bottleneck.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>

#include "cc_compat.h"
#include "cc_pace.h"
#include "cc_timeout.h"
#include "hpccpp.h"
#include "trace.h"

/* In fallback the interval between probes doubles up to this. */
#define HPCCPP_REPROBE_MAX_NS	(1ULL * NSEC_PER_SEC)

/* Unstamped: RTTs, and an RTO, without a reduction before the return; doubled with each fallback */
#define HPCCPP_CLEAN_RTTS	16U
#define HPCCPP_CLEAN_RTTS_MAX	1024U

/*
 * Which reduction do marks ask for? DCTCP's queue marks all that arrives above a threshold, so
 * much of a window that has marks is marked. CoDel and PIE mark a packet now and then, for senders
 * that take a mark as a loss: DCTCP would hardly reduce there, and starve them. They mark only
 * where a queue stands, of more than an eighth of the RTT. Without one rare marks are DCTCP's, too:
 * short bursts have crossed its threshold.
 */
#define HPCCPP_DENSITY_SHIFT	1
#define HPCCPP_DENSE		(DCTCP_ALPHA_ONE / 8)
#define HPCCPP_STANDING_SHIFT	3

/*
 * At DCTCP's threshold the bursts (TSO) of two flows lock in: one flow's packets are marked five
 * times as often as the other's, and it stays at a fifth of the rate. So packets are paced there,
 * if the window is at least this, packets. Smaller windows got less with pacing than with bursts.
 */
#define HPCCPP_SPREAD_CWND	32U

static void hpccpp_reno_update_ecn(struct sock *sk, u32 flags)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ecn_sample s = ecn_feedback_update(&ca->fb, tp, flags);
	u32 fraction;

	dctcp_model_ack(&ca->dctcp, s.acked, s.marked);
	if (dctcp_model_window_ended(&ca->dctcp, tp->snd_una)) {
		ca->prior_rtt_us = ca->rtt_us;
		ca->rtt_us = HPCCPP_RTT_UNKNOWN;
		fraction = dctcp_model_window(&ca->dctcp, DCTCP_SHIFT_G_DEFAULT, tp->snd_nxt);
		if (fraction)
			ca->density = fp_ewma(ca->density, fraction, HPCCPP_DENSITY_SHIFT);
	}
	ca->ece = s.marked;
}

/* The window is cwnd here: what a probe remembers of it is for the first sample. */
static void hpccpp_reno_track_window(struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	hpccpp_integrate_window(sk, f, now);
	f->model.w = fp_min(tcp_snd_cwnd(tcp_sk(sk)) * hpccpp_mss_q8(sk), HPCCPP_W_MAX);
}

/*
 * Has a connection that fell back as unstamped run long enough without a reduction to trust
 * telemetry? On short RTTs a policer's bursts pass in between, as fast as the node allows.
 */
static bool hpccpp_reno_is_clean(const struct sock *sk, const struct hpccpp_flow *f, u64 now)
{
	u64 rto_ns = jiffies_to_nsecs(inet_csk(sk)->icsk_rto);

	return now - f->reduced_ns >= max(f->clean_rtts * hpccpp_srtt_ns(sk), rto_ns);
}

/*
 * May a connection that fell back as unstamped trust the telemetry again, which has just set
 * model.w? Not before a node has reached its target, or the receiver allows no more than cwnd, @w:
 * until then losses and marks are the tighter limit. And not soon after one of those.
 */
static bool hpccpp_reno_trusts(const struct sock *sk, const struct hpccpp_flow *f,
			       const struct int_msg *m, u64 w, u64 now)
{
	if (!hpccpp_reno_is_clean(sk, f, now))
		return false;
	if (m->type == INT_WINDOW)
		return f->model.w <= w;
	return f->model.u >= hpccpp_eta();
}

/*
 * Two responses in a row are needed to measure U. After the first one, the second probe
 * follows soon; if it measures nothing either, the next pair waits for retry_ns.
 */
static bool hpccpp_reno_on_response(struct sock *sk, const struct int_msg *m, u64 now)
{
	struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	bool first = !f->sample.sent_ns;
	u64 w = f->model.w;

	if (hpccpp_on_response(sk, m, now)) {
		if (!f->unstamped || hpccpp_reno_trusts(sk, f, m, w, now))
			return true;
		f->model.w = w;
		first = false;
	}
	f->second = first && f->sample.sent_ns;
	if (!first)
		f->sample.sent_ns = 0;
	return false;
}

/* Back to HPCC++ */
static void hpccpp_reno_return(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	ca->flow->prior_w = ca->flow->model.w;
	ca->flow->doubt = 0;
	ca->flow->tally.sent_ns = 0;
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, ca->ops);
	cc_pace_on(sk);
	hpccpp_count(sk, HPCCPP_COUNT_RETURNS);
	trace_hpccpp_mode(sk, "telemetry");
}

static void hpccpp_reno_probe(struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	u64 wait = f->second ? hpccpp_probe_interval(sk) : f->retry_ns;

	if (!tcp_sk(sk)->packets_out || now - f->probe_ns < wait ||
	    (f->unstamped && !hpccpp_reno_is_clean(sk, f, now)))
		return;
	if (!f->second && !f->unstamped)
		f->retry_ns = min(2 * f->retry_ns, HPCCPP_REPROBE_MAX_NS);
	f->second = false;
	hpccpp_send_probe(sk, now);
}

static void hpccpp_reno_in_ack_event(struct sock *sk, u32 flags)
{
	struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	u64 now = ktime_get_ns();
	struct int_msg m;

	if (cc_ecn_any(tcp_sk(sk)))
		hpccpp_reno_update_ecn(sk, flags);
	if (f && READ_ONCE(f->refused)) {
		hpccpp_flow_release(sk);
		return;
	}
	if (!f)
		return;
	hpccpp_reno_track_window(sk, f, now);
	if (hpccpp_read_response(f, &m) && hpccpp_reno_on_response(sk, &m, now))
		hpccpp_reno_return(sk);
	else
		hpccpp_reno_probe(sk, f, now);
}

/* Not in recovery: the RTT of a retransmission may be from timestamps, in whole milliseconds. */
static void hpccpp_reno_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	if (sample->rtt_us > 0 && inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery)
		ca->rtt_us = min_t(u32, ca->rtt_us, sample->rtt_us);
}

/* Has every packet of this window and the one before met a queue? */
static bool hpccpp_reno_queue_stands(const struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	u32 base_us = tcp_min_rtt(tcp_sk(sk));

	return min(ca->rtt_us, ca->prior_rtt_us) > base_us + (base_us >> HPCCPP_STANDING_SHIFT);
}

static u32 hpccpp_reno_min_tso_segs(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	if (ca->spread && ca->flow)
		return cc_gso_limit(sk, &ca->flow->gso, cc_gso_spread(tcp_snd_cwnd(tcp_sk(sk))));
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

CC_DEFINE_TSO_SEGS(hpccpp_reno_tso_segs, hpccpp_reno_min_tso_segs)

/* Packets are paced if @dctcp, the reduction is DCTCP's, and if they would leave in bursts. */
static void hpccpp_reno_spread(struct sock *sk, bool dctcp)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	bool spread = dctcp && sk->sk_gso_max_segs > 1 && ca->prior_cwnd >= HPCCPP_SPREAD_CWND;

	if (spread == ca->spread)
		return;
	ca->spread = spread;
	if (spread) {
		cc_pace_on(sk);
	} else {
		cc_pace_off(sk);
		if (ca->flow)
			cc_gso_release(sk, &ca->flow->gso);
	}
}

static u32 hpccpp_reno_ssthresh(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	bool dctcp = ca->ece && (ca->density >= HPCCPP_DENSE || !hpccpp_reno_queue_stands(sk));

	if (ca->flow)
		ca->flow->reduced_ns = ktime_get_ns();
	ca->prior_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	hpccpp_reno_spread(sk, dctcp);
	if (dctcp)
		return dctcp_model_cut(&ca->dctcp, ca->prior_cwnd);
	return tcp_reno_ssthresh(sk);
}

/*
 * Loss halves, also where ECN has just reduced by less (RFC 8257 3.5). A timeout halves what
 * is in flight (RFC 5681 equation 4): less than prior_cwnd if CWR or Recovery has already
 * reduced that.
 */
static void hpccpp_reno_set_state(struct sock *sk, u8 new_state)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 window = ca->prior_cwnd;

	if (cc_timed_out(sk, new_state))
		window = min(window, tp->packets_out);
	else if (!cc_recovery_starts(sk, new_state) && !cc_probe_repaired(sk, new_state))
		return;
	WRITE_ONCE(tp->snd_ssthresh, min(tp->snd_ssthresh, max(window / 2, 2U)));
}

static u32 hpccpp_reno_undo_cwnd(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	return max(tcp_snd_cwnd(tcp_sk(sk)), ca->prior_cwnd);
}

/* A socket that is connected again after connect(AF_UNSPEC) starts with HPCC++. */
static void hpccpp_reno_release(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	hpccpp_release(sk);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, ca->ops);
}

/* For ss -ti: BBR's fields, as with HPCC++, all 0 */
size_t hpccpp_reno_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

/* Never registered: connections are switched to it. */
static struct tcp_congestion_ops hpccpp_reno __read_mostly = {
	.release	= hpccpp_reno_release,
	.in_ack_event	= hpccpp_reno_in_ack_event,
	.pkts_acked	= hpccpp_reno_pkts_acked,
	CC_TSO_SEGS(hpccpp_reno_tso_segs, hpccpp_reno_min_tso_segs)
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= hpccpp_reno_ssthresh,
	.set_state	= hpccpp_reno_set_state,
	.undo_cwnd	= hpccpp_reno_undo_cwnd,
	.get_info	= hpccpp_reno_get_info,
	.owner		= THIS_MODULE,
	.name		= "hpccpp_reno",
};

/* From HPCC++ to hpccpp_reno. @cause is for the tracepoint. */
static void hpccpp_reno_enter(struct sock *sk, const char *cause)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct hpccpp_flow *f = ca->flow;

	/* A window found by telemetry is a fair one. Without it, slow start continues. */
	if (f && f->telemetry)
		WRITE_ONCE(tp->snd_ssthresh, max(tcp_snd_cwnd(tp), 2U));
	if (f) {
		cc_gso_release(sk, &f->gso);
		f->telemetry = false;
		f->second = false;
		f->unstamped = false;
		f->sample.sent_ns = 0;
		f->retry_ns = max_t(u64, 16 * hpccpp_srtt_ns(sk), NSEC_PER_MSEC);
	}
	dctcp_model_init(&ca->dctcp, DCTCP_ALPHA_ONE, tp->snd_una);
	ca->density = DCTCP_ALPHA_ONE;
	ca->rtt_us = HPCCPP_RTT_UNKNOWN;
	ca->prior_rtt_us = HPCCPP_RTT_UNKNOWN;
	ecn_feedback_init(&ca->fb, tp);
	ca->prior_cwnd = tcp_snd_cwnd(tp);
	ca->ece = false;
	ca->spread = false;
	ca->ops = inet_csk(sk)->icsk_ca_ops;
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &hpccpp_reno);
	cc_pace_off(sk);
	hpccpp_count(sk, HPCCPP_COUNT_FALLBACKS);
	trace_hpccpp_mode(sk, cause);
}

/* There is no telemetry, or not enough. */
void hpccpp_fall_back(struct sock *sk, const char *cause)
{
	pr_info_once("no telemetry on a connection (%s): it runs as Reno until telemetry arrives; see /proc/net/hpccpp\n",
		     cause);
	hpccpp_reno_enter(sk, cause);
}

/*
 * A bottleneck does not stamp. The first window in fallback is what the path has carried, so that
 * no queue stands before losses and marks take over. In recovery PRR leads cwnd there.
 */
void hpccpp_fall_back_unstamped(struct sock *sk, u64 now)
{
	struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 carried = clamp_t(u64, div64_u64(f->carried, hpccpp_mss_q8(sk)), 2,
			      tp->snd_cwnd_clamp);

	pr_info_once("a bottleneck does not stamp: a connection runs as Reno until a node that does is its bottleneck; see /proc/net/hpccpp\n");
	hpccpp_reno_enter(sk, "unstamped");
	f->unstamped = true;
	f->reduced_ns = now;
	f->clean_rtts = clamp(2 * f->clean_rtts, HPCCPP_CLEAN_RTTS, HPCCPP_CLEAN_RTTS_MAX);
	WRITE_ONCE(tp->snd_ssthresh, carried);
	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), carried));
	hpccpp_count(sk, HPCCPP_COUNT_UNSTAMPED);
}
