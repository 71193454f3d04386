// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp - HPCC++ over TCP, the data sender.
 *
 *	once per RTT, while data is in flight:
 *		probe -> nodes stamp their egress ports' load -> int_reflector -> response
 *	on a response:
 *		U = normalised inflight bytes of the busiest link	(MeasureInflight)
 *		W = Wc / (U / eta) + W_ai, or Wc + W_ai			(ComputeWind)
 *		window W, pacing rate W / T
 *
 * Source: draft-miao-rtgwg-hpccplus-00, with the probes of 6.2.1.2 and 7.2. This file has the
 * callbacks of TCP; hpccpp.h lists the other files.
 *
 * Only for networks that one administration controls, switches included: the control
 * is restricted (net.ipv4.tcp_allowed_congestion_control).
 *
 * Deviations from the draft:
 *  - Wc (4.2): a response reports on the traffic between two probes, and one more window
 *    has been set since that traffic left. Wc is the window under which the measured
 *    bytes were sent, so that no load is reacted to twice, as in the draft. Scaling the
 *    present window by that load instead oscillates, undamped, with a period of 6 RTTs.
 *  - W is limited to B * T of the slowest link, and W_ai is a fraction of that: the draft's
 *    flows cannot send faster than their own link either. Where the format lacks the link's
 *    rate, B is estimated from what the flow carried.
 *  - W_ai follows the mean of U, unless N is given (5): flows share evenly when they are
 *    few, and hardly make a queue when they are a thousand. For its first 32 samples a flow
 *    uses W_ai of N = 1, so that it gets a share while its burst lasts.
 *  - Flows that begin together, and so meet a queue of 2 B * T, keep it for a while: for their
 *    first 32 samples the target is above eta, by 2 at first. An incast else ends late, on an idle
 *    link.
 *  - maxStage is 1: freed bandwidth is used sooner than with 5, the draft's. With 0 shares are
 *    uneven where receivers hold packets back.
 *  - A first response that shows a queue sets U: a port with a queue sends at rate B. T is the
 *    RTT less the queues, if a flow begins behind one.
 *  - A flow that had nothing to send for 4 RTTs starts as a new one does.
 *  - With a window below a packet the queue counts against the time between packets, not T.
 *  - Probes come once per 4 RTTs while no data will wait for their response.
 *  - W grows by a packet where it would more than double, if the sample's RTT is longer than the
 *    queues in the records explain: a bottleneck may not stamp.
 *  - Probes come more often than once per RTT if a counter of figure 4 could wrap between
 *    two of them. Without a measured sample W grows as in slow start.
 *  - Loss, and ECE from nodes that do not stamp, halve W once per window, as in any TCP;
 *    the draft does not mention them. If they go on while the records show a load below eta,
 *    a bottleneck does not stamp: the flow falls back until a node reaches eta.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_pace.h"
#include "cc_recovery.h"
#include "cc_timeout.h"
#include "hpccpp.h"

/* Last: each later inclusion would define the tracepoints once more. */
#define CREATE_TRACE_POINTS
#include "trace.h"

#define HPCCPP_IDLE_RTTS	4	/* a pause after which a flow starts as a new one does */
#define HPCCPP_PROBES_LOST	4	/* without telemetry: the connection falls back */

/* --- the algorithm ------------------------------------------------------------ */

/* Divisions: on most ACKs nothing has changed. */
static noinline void hpccpp_convert_window(struct hpccpp_applied *a, u64 w, u64 mss, u32 t_ns)
{
	u64 rate = t_ns ? hpccpp_rate(w, t_ns) : 0;

	*a = (struct hpccpp_applied){
		.w = w,
		.mss = mss >> HPCCPP_W_Q,
		.t_ns = t_ns,
		.cwnd = div64_u64(w + mss - 1, mss) + 1,
		.rate = rate,
		.swift = rate > 2 * HZ * (mss >> HPCCPP_W_Q),
	};
}

/* What has been applied still holds: so on most ACKs. */
static __always_inline bool hpccpp_is_applied(const struct sock *sk)
{
	const struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	const struct hpccpp_applied *a = &f->applied;

	return likely(f->model.w == a->w && hpccpp_mss_q8(sk) >> HPCCPP_W_Q == a->mss &&
		      hpccpp_base_rtt_ns(f) == a->t_ns && a->swift &&
		      inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery &&
		      tcp_snd_cwnd(tcp_sk(sk)) == a->cwnd &&
		      tcp_packets_in_flight(tcp_sk(sk)) < a->cwnd &&
		      READ_ONCE(sk->sk_pacing_rate) == a->rate);
}

/*
 * Nothing has left for an RTT, because more than W is in flight. Or seems to be: of a first window
 * the end may be lost, and if nothing follows it, no SACK shows that.
 */
static bool hpccpp_is_silent(const struct sock *sk)
{
	return ktime_get_ns() >= tcp_sk(sk)->tcp_wstamp_ns + hpccpp_srtt_ns(sk);
}

/*
 * cwnd is W rounded up, and one packet more, because an ACK may be delayed. The pacing
 * rate W / T does the rest, also where W is less than a packet; no packet waits for its pace
 * longer than half the RTO. In recovery what is lost leaves again as other packets arrive
 * (RFC 6937): where an incast's answers lose most of their first windows together, the
 * retransmissions would overflow the queue again. After a timeout each ACK that delivers
 * something (@rs) lets at least one packet out, even if more than W is in flight; else one per RTT.
 */
static noinline void hpccpp_apply_window(struct sock *sk, const struct rate_sample *rs)
{
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_applied *a = &ca->flow->applied;
	struct tcp_sock *tp = tcp_sk(sk);
	u64 mss = hpccpp_mss_q8(sk), w = ca->flow->model.w;
	u32 t_ns = hpccpp_base_rtt_ns(ca->flow), rto;
	u64 cwnd, rate, two_packets;

	if (w != a->w || mss >> HPCCPP_W_Q != a->mss || t_ns != a->t_ns)
		hpccpp_convert_window(a, w, mss, t_ns);
	cwnd = a->cwnd;
	if (rs && rs->acked_sacked > 0 && state != TCP_CA_Recovery &&
	    (state == TCP_CA_Loss || hpccpp_is_silent(sk)))
		cwnd = max(cwnd, tcp_packets_in_flight(tp) + 1ULL);
	cwnd = clamp_t(u64, cwnd, 2, tp->snd_cwnd_clamp);
	if (unlikely(rs && state == TCP_CA_Recovery)) {
		cc_recovery_window(tp, rs, cwnd, ca->una != tp->snd_una);
		ca->una = tp->snd_una;
	} else {
		tcp_snd_cwnd_set(tp, cwnd);
	}
	if (!t_ns)
		return;
	rate = a->rate;
	rto = max_t(u32, inet_csk(sk)->icsk_rto, 1);
	two_packets = 2 * HZ * (mss >> HPCCPP_W_Q);
	if (!a->swift && rate * rto <= two_packets)
		rate = div_u64(two_packets, rto) + 1;
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* TCP's initial window, packets */
static u32 hpccpp_initial_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 cwnd = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return cwnd ? cwnd : TCP_INIT_CWND;
}

/* W_init: the line rate's B * T if that is known, else @cwnd packets */
static void hpccpp_start(struct sock *sk, struct hpccpp_flow *f, u32 cwnd)
{
	u32 mbps = hpccpp_line_mbps(sk), t_ns = hpccpp_base_rtt_ns(f);

	f->line_rate = mbps && t_ns;
	hpccpp_model_init(&f->model, f->line_rate ? hpccpp_bdp(mbps, t_ns) :
						    cwnd * hpccpp_mss_q8(sk));
	f->prior_w = f->model.w;
}

/* What leaves before the first ACK is W, not a packet more: there is no ACK to be delayed yet. */
static void hpccpp_apply_first_window(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!hpccpp_is_applied(sk))
		hpccpp_apply_window(sk, NULL);
	tcp_snd_cwnd_set(tp, clamp_t(u64, DIV64_U64_ROUND_UP(ca->flow->model.w, hpccpp_mss_q8(sk)),
				     2, tp->snd_cwnd_clamp));
}

/* Nothing is in flight, and what was sent last is an RTO ago. */
static bool hpccpp_paused(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return !tp->packets_out && tcp_jiffies32 - tp->lsndtime > inet_csk(sk)->icsk_rto;
}

/* Responses by IFA come by IP's table of protocols, others by a hook, which is there soon. */
static void hpccpp_need_hook(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	if (!ca->needs_hook)
		int_host_get(sock_net(sk));
	ca->needs_hook = true;
}

/*
 * With the first data that is a packet, see hpccpp_has_packet(): a connection that sends less
 * needs no state. Or with an ACK, if data was in flight when the control was chosen. Not before
 * the handshake is done, although Fast Open sends data then, and the control may be chosen:
 * cwnd and MSS are not known yet, and init() may still follow.
 */
static void hpccpp_begin_flow(struct sock *sk, u64 now)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f;

	if (!hpccpp_has_packet(sk) || !inet_csk(sk)->icsk_ca_initialized ||
	    (1 << sk->sk_state) & (TCPF_SYN_SENT | TCPF_SYN_RECV))
		return;
	if (hpccpp_is_translated(sk)) {
		hpccpp_count(sk, HPCCPP_COUNT_TRANSLATED);
		hpccpp_fall_back(sk, "translated");
		return;
	}
	f = hpccpp_flow_new(sk, hpccpp_secret(sk, now));
	ca->flow = f;
	if (!f) {
		hpccpp_fall_back(sk, "no memory");
		return;
	}
	f->format = hpccpp_begins_with();
	if (f->format != INT_FORMAT_IFA)
		hpccpp_need_hook(sk);
	hpccpp_rtt_init(&f->rtt, tcp_min_rtt(tcp_sk(sk)));
	/* a timeout of less than a packet may have reduced cwnd long ago */
	hpccpp_start(sk, f, hpccpp_paused(sk) ? hpccpp_initial_window(sk) :
						tcp_snd_cwnd(tcp_sk(sk)));
	f->integral_ns = now;
	f->answer_ns = now;
	hpccpp_apply_first_window(sk);
	hpccpp_send_probe(sk, now);
}

/* A probe before the first data of a burst: once that is a packet */
static void hpccpp_probe_burst(struct sock *sk, u64 now)
{
	struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;

	if (hpccpp_has_packet(sk))
		hpccpp_send_probe(sk, now);
	else
		f->waits = true;
}

/* Called before each burst: the stack's own, 64 kB at short RTTs, may be the whole window. */
static u32 hpccpp_min_tso_segs(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	if (unlikely(!ca->flow)) {
		/* more data while less than a packet is in flight */
		if (tcp_sk(sk)->packets_out && hpccpp_has_packet(sk))
			hpccpp_begin_flow(sk, ktime_get_ns());
		if (!ca->flow)
			return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
	} else if (unlikely(ca->flow->waits && tcp_sk(sk)->packets_out)) {
		hpccpp_probe_burst(sk, ktime_get_ns());
	}
	return cc_gso_limit(sk, &ca->flow->gso, cc_gso_spread(tcp_snd_cwnd(tcp_sk(sk))));
}

CC_DEFINE_TSO_SEGS(hpccpp_tso_segs, hpccpp_min_tso_segs)

/*
 * Why telemetry is lost, or NULL. Responses may take as long as ACKs do, with queues: srtt, or the
 * latest RTT where a link has become slower all at once. Not without telemetry so far: in slow
 * start the flow's own queue grows as fast as time goes by.
 */
static const char *hpccpp_telemetry_lost(const struct sock *sk, const struct hpccpp_flow *f,
					 u64 now)
{
	u64 rtt_ns, latest_ns;

	if (READ_ONCE(f->refused))
		return "refused";
	if (f->partial >= HPCCPP_PROBES_LOST)
		return "partial";
	if (f->unmeasured >= HPCCPP_PROBES_LOST)
		return "unmeasured";
	if (f->unanswered < HPCCPP_PROBES_LOST)
		return NULL;
	latest_ns = f->telemetry ? hpccpp_rtt_ns(f->rtt.latest_us) : 0;
	rtt_ns = max3((u64)hpccpp_base_rtt_ns(f), hpccpp_srtt_ns(sk), latest_ns);
	return now - f->answer_ns > 2 * rtt_ns ? "unanswered" : NULL;
}

/*
 * The first response has shown a queue of more than T / 8: as in an incast, whose flows start
 * together.
 */
static bool hpccpp_queue_at_start(const struct hpccpp_flow *f)
{
	return hpccpp_queued_us(&f->model) * (8ULL * NSEC_PER_USEC) > hpccpp_base_rtt_ns(f);
}

/*
 * Until U is first measured, W grows as in slow start, unless the flow started at line rate. After
 * the first response, which tells a queue but no rate, it grows half as fast, and if there is a
 * queue, not at all.
 */
static void hpccpp_slow_start(struct sock *sk, const struct rate_sample *rs, u64 now)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 delivered;

	if (f->telemetry || f->line_rate || rs->acked_sacked <= 0 ||
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Open || !tcp_is_cwnd_limited(sk) ||
	    (f->unmeasured == 1 && hpccpp_queue_at_start(f)))
		return;
	hpccpp_integrate_window(sk, f, now);
	delivered = rs->acked_sacked * hpccpp_mss_q8(sk);
	f->model.w = min3(f->model.w + (f->unmeasured == 1 ? delivered / 2 : delivered),
			  (u64)HPCCPP_W_MAX, tcp_sk(sk)->snd_cwnd_clamp * hpccpp_mss_q8(sk));
}

/* Not inlined: kernels that initialise all variables would clear @m on every ACK. */
static noinline void hpccpp_take_response(struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	struct int_msg m;

	if (hpccpp_read_response(f, &m))
		hpccpp_on_response(sk, &m, now);
}

/*
 * The peer does not know the format, a firewall drops it, or a node has no place for what it
 * knows: once more with the old format, which all nodes and receivers of ours know.
 */
static void hpccpp_old_format(struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	f->format = INT_FORMAT_OLD;
	hpccpp_need_hook(sk);
	f->unanswered = 0;
	f->partial = 0;
	f->unmeasured = 0;
	f->answer_ns = now;
	hpccpp_count(sk, HPCCPP_COUNT_OLD_FORMAT);
	trace_hpccpp_mode(sk, "old format");
	hpccpp_send_probe(sk, now);
}

/* Data is in flight or waits to be sent. */
static bool hpccpp_has_data(const struct sock *sk)
{
	return tcp_sk(sk)->packets_out || tcp_sk(sk)->write_seq != tcp_sk(sk)->snd_nxt;
}

/* On every ACK. */
static void hpccpp_main(struct sock *sk, const struct rate_sample *rs)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 now = ktime_get_ns();
	const char *lost;

	if (!f) {
		hpccpp_begin_flow(sk, now);
		return;
	}
	if (READ_ONCE(f->full)) {
		hpccpp_take_response(sk, f, now);
		if (unlikely(f->doubt >= HPCCPP_DOUBT_MAX)) {
			hpccpp_fall_back_unstamped(sk, now);
			return;
		}
	}
	/* that of a retransmission is from timestamps, in whole milliseconds */
	if (rs->rtt_us > 0 && !rs->is_retrans)
		hpccpp_rtt_sample(&f->rtt, rs->rtt_us);
	hpccpp_slow_start(sk, rs, now);
	if (!hpccpp_is_applied(sk))
		hpccpp_apply_window(sk, rs);
	f->idle_ns = hpccpp_has_data(sk) ? 0 : max(now, tcp_sk(sk)->tcp_wstamp_ns);
	if (!tcp_sk(sk)->packets_out || !hpccpp_has_packet(sk) ||
	    (!f->unanswered && !hpccpp_has_more(sk) &&
	     now - f->probe_ns < hpccpp_rare_interval(f)) ||
	    !hpccpp_probe_due(sk, now))
		return;
	lost = hpccpp_telemetry_lost(sk, f, now);
	if (lost && f->format)
		hpccpp_old_format(sk, f, now);
	else if (lost)
		hpccpp_fall_back(sk, lost);
	else
		hpccpp_send_probe(sk, now);
}

CC_DEFINE_CONG_CONTROL(hpccpp_cong_control, hpccpp_main)

/* --- the connection ------------------------------------------------------------ */

static void hpccpp_init(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	ca->flow = NULL;
	if (hpccpp_begins_with() != INT_FORMAT_IFA)
		hpccpp_need_hook(sk);
	cc_pace_on(sk);
}

/*
 * After a pause a flow starts as a new one does: W is from a network of a while ago, and a sample
 * that covers the pause shows the load of that time.
 */
static void hpccpp_restart(struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	hpccpp_integrate_window(sk, f, now);
	hpccpp_start(sk, f, hpccpp_initial_window(sk));
	f->sample.sent_ns = 0;
	f->comparable_ns = 0;
	f->tally.sent_ns = 0;
	f->telemetry = false;
	f->idle_ns = 0;
	trace_hpccpp_window(sk, "idle", &f->model, hpccpp_base_rtt_ns(f));
	hpccpp_apply_first_window(sk);
}

/* Nothing was sent for HPCCPP_IDLE_RTTS, because there was nothing to send. */
static bool hpccpp_was_idle(const struct sock *sk, const struct hpccpp_flow *f, u64 now)
{
	u64 rtt = max_t(u64, hpccpp_base_rtt_ns(f), hpccpp_srtt_ns(sk));

	return f->idle_ns && now > f->idle_ns + HPCCPP_IDLE_RTTS * rtt;
}

/* Data is about to be sent, with nothing in flight. */
static void hpccpp_tx_start(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	u64 now = ktime_get_ns();

	if (ca->flow && hpccpp_was_idle(sk, ca->flow, now))
		hpccpp_restart(sk, ca->flow, now);
	if (!ca->flow) {
		hpccpp_begin_flow(sk, now);
	} else if (hpccpp_probe_due(sk, now)) {
		/* Probes before the pause do not count, whatever became of them. */
		ca->flow->answer_ns = now;
		ca->flow->unmeasured = 0;
		hpccpp_probe_burst(sk, now);
	}
}

static void hpccpp_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (cc_event_is_tx_start(ev))
		hpccpp_tx_start(sk);
}

static void hpccpp_set_window(struct sock *sk, u64 w, const char *cause)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	hpccpp_integrate_window(sk, f, ktime_get_ns());
	f->model.reference = f->model.w;
	f->model.w = w;
	f->model.wc = f->model.w;
	/* A sample of traffic sent under the old window would restore that window. */
	f->sample.sent_ns = 0;
	trace_hpccpp_window(sk, cause, &f->model, hpccpp_base_rtt_ns(f));
}

/* Once per window, on loss or ECE. */
static u32 hpccpp_ssthresh(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	if (!f)
		return tcp_reno_ssthresh(sk);
	f->prior_w = f->model.w;
	/* the queue cannot hold the crowd */
	if (f->model.crowded)
		f->model.newcomer /= 2;
	hpccpp_set_window(sk, hpccpp_reduced(f->model.w, hpccpp_mss_q8(sk)), "loss");
	return max_t(u64, div64_u64(f->model.w, hpccpp_mss_q8(sk)), 2);
}

static u32 hpccpp_undo_cwnd(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->flow) {
		ca->flow->doubt = 0;
		if (ca->flow->model.w < ca->flow->prior_w)
			hpccpp_set_window(sk, ca->flow->prior_w, "undo");
	}
	return max(tcp_snd_cwnd(tp), tp->prior_cwnd);
}

static void hpccpp_set_state(struct sock *sk, u8 new_state)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ca->flow)
		return;
	if (cc_recovery_starts(sk, new_state)) {
		ca->una = tp->snd_una;
		cc_recovery_begin(tp);
	}
	if (cc_timed_out(sk, new_state))
		hpccpp_set_window(sk, fp_min(ca->flow->model.w, 2 * hpccpp_mss_q8(sk)),
				  "timeout");
}

static struct tcp_congestion_ops hpccpp;

/*
 * For ss -ti, in BBR's fields: bw is W / T, mrtt T, pacing_gain U, cwnd_gain eta. The socket
 * is not locked: it may have switched to another control, which owns the private area then.
 */
static size_t hpccpp_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	size_t size = hpccpp_reno_get_info(sk, ext, attr, info);
	u64 rate = READ_ONCE(sk->sk_pacing_rate);
	const struct hpccpp_flow *f;

	if (!size)
		return 0;
	rcu_read_lock();
	f = hpccpp_flow_find(sk);
	if (f && READ_ONCE(inet_csk(sk)->icsk_ca_ops) == &hpccpp) {
		info->bbr.bbr_bw_lo = (u32)rate;
		info->bbr.bbr_bw_hi = (u32)(rate >> 32);
		info->bbr.bbr_min_rtt = hpccpp_base_rtt_ns(f) / NSEC_PER_USEC;
		info->bbr.bbr_pacing_gain = READ_ONCE(f->model.u) >> (HPCCPP_U_Q - 8);
		info->bbr.bbr_cwnd_gain = hpccpp_eta() >> (HPCCPP_U_Q - 8);
	}
	rcu_read_unlock();
	return size;
}

static struct tcp_congestion_ops hpccpp __read_mostly = {
	.init		= hpccpp_init,
	.release	= hpccpp_release,
	.cong_control	= hpccpp_cong_control,
	.ssthresh	= hpccpp_ssthresh,
	.set_state	= hpccpp_set_state,
	.undo_cwnd	= hpccpp_undo_cwnd,
	CC_TSO_SEGS(hpccpp_tso_segs, hpccpp_min_tso_segs)
	.cwnd_event	= hpccpp_cwnd_event,
	CC_CWND_EVENT_TX_START(hpccpp_tx_start)
	.get_info	= hpccpp_get_info,
	.owner		= THIS_MODULE,
	.name		= "hpccpp",
};

static int __init hpccpp_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct hpccpp) > ICSK_CA_PRIV_SIZE);

	err = hpccpp_flows_init();
	if (err)
		return err;
	err = hpccpp_devices_init();
	if (err)
		goto err_flows;
	err = hpccpp_mailbox_init();
	if (err)
		goto err_devices;
	err = tcp_register_congestion_control(&hpccpp);
	if (err)
		goto err_mailbox;
	return 0;

err_mailbox:
	hpccpp_mailbox_exit();
err_devices:
	hpccpp_devices_exit();
err_flows:
	hpccpp_flows_exit();
	return err;
}

static void __exit hpccpp_module_exit(void)
{
	tcp_unregister_congestion_control(&hpccpp);
	hpccpp_mailbox_exit();
	hpccpp_devices_exit();
	hpccpp_flows_exit();
}

module_init(hpccpp_module_init);
module_exit(hpccpp_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("HPCC++ over TCP: the data sender");
/* so that the peer's probes are answered */
MODULE_SOFTDEP("post: int_reflector");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
