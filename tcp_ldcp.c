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
 * What the draft leaves open:
 *  - Loss in the stable stage halves cw (RFC 5681), also below two packets, and cw does not grow
 *    until the loss is repaired; a loss that a tail loss probe repaired, or of a retransmission
 *    after a timeout, is one, too. A timeout is followed by slow start from one packet, or from
 *    half of a smaller cw; after an idle RTO cw is at most the initial window.
 *  - cw grows only while it limits the sender. When an MTU probe succeeds it stays in bytes.
 *  - Marks end fast start once all first-RTT packets are acknowledged, for a connection that never
 *    fills its initial window. They report the same queue as a loss in that burst, and then do not
 *    reduce cw again.
 *  - A message ends where a write() does. A long write may be sent in parts: each ends with ECT.
 *  - After the first RTT packets are paced, and TSO packets are an eighth of the window: see
 *    ldcp_apply(). In the first RTT TSO is off.
 *
 * Deviations:
 *  - The stack sends whole packets: cwnd is cw rounded down, at least one. Below one packet the
 *    stack's pacing delays the next one by RTT / cw as of when the latest left, or half of that
 *    after a pause; after an ACK without a mark it leaves at once (2.2). With sch_fq pure ACKs
 *    wait for it, too.
 *  - Once marks have been absent for two RTTs cw returns to what it was before them; after many
 *    RTTs it grows faster (2.2).
 *  - Below one packet the increase is half a packet, not gamma: with gamma, flows that have fallen
 *    there stay there while others, in the same queue, keep several (2.2).
 *  - After a loss in fast start cw is not the packets in order before it, but all of the burst that
 *    arrived: where bursts meet, the first loss comes by chance (3.1).
 *  - If neither the route nor parameters say the path's BDP, the initial window is the stack's.
 *    Slow start follows until the first mark, loss, or an RTT a quarter above its minimum (2.3).
 *  - A clean Not-ECT packet that arrives in FIN-WAIT ends the receiver's CE state only where the
 *    stack reports it (2.2).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_ether.h>
#include <linux/inet_diag.h>
#include <linux/module.h>
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
CC_PARAM(shift_gamma, 4, LDCP_SHIFT_GAMMA_MIN, LDCP_SHIFT_GAMMA_MAX, 0644,
	 "2 is 1/4, 3 is 1/8, 4 is 1/16",
	 "gamma = 2^-shift_gamma packets, the smallest window, 2 to 4 (draft 2.2)");
CC_PARAM(ack_every, 1, 1, 64, 0644, "1 is an ACK per packet",
	 "receiver: most packets per ACK, 1 to 64 (draft 2.2: m)");
CC_PARAM(link_rate_mbps, 0, 0, 1000000, 0644, "0 is unknown",
	 "rate of the sender's link in Mb/s, for the initial window; 0 uses the route's initcwnd");
CC_PARAM(base_rtt_us, 0, 0, 1000000, 0644, "0 is unknown",
	 "RTT of the empty path in microseconds, for the initial window; 0 uses the route's initcwnd");
#define LDCP_ETA	512	/* factor of a decrease below one packet, 1/1024 (draft 2.2: 1/2) */
#define LDCP_STEP	512	/* increase per ACK below one packet, 1/1024 */

/* RTTs without a mark after which the increase doubles with each further one */
#define LDCP_QUIET_RTTS		8U

/*
 * sch_fq holds pure ACKs until the next data packet may leave. With data both ways each end would
 * measure that as RTT, and wait for longer: below one packet the RTT counts up to so many minima.
 */
#define LDCP_FQ_RTTS		8U

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
 * @arrived_us:	receiver: when the latest packet arrived, tp->tcp_mstamp; if ack_every > 1
 * @echo:	receiver: the CE state
 * @delivered:	value of tp->delivered that @cw accounts for, packets
 * @delivered_ce: value of tp->delivered_ce that @cw accounts for, packets
 * @start_delivered: tp->delivered when the connection started
 * @iw:		initial window, packets
 * @burst:	first-RTT packets that arrived
 * @first_end:	sequence number after the last first-RTT packet
 * @quiet:	RTTs in which the window was the limit, since the latest mark or loss, Q16
 * @rtt_us:	latest sample of the RTT. Below one packet the smoothed RTT is stale:
 *		there is only one sample per RTT / cw
 * @smooth_us8:	smoothed RTT, 1/8 us; 0: none yet. Includes the RTTs of retransmissions, as
 *		RACK measures them
 * @gso:	limit on the segments of a TSO packet
 * @delack_max:	the socket's own icsk_delack_max, jiffies; this control uses 1
 * @mss:	tp->mss_cache, bytes, to which @cw belongs
 * @stage:	enum ldcp_stage
 * @unacked:	receiver: packets since an ACK was requested
 * @start_lost:	a loss has ended fast start, and is being repaired
 * @repairing:	a loss of the stable stage is being repaired: no growth
 * @may_return:	@prior_cw is a window that marks have reduced
 */
struct ldcp {
	u64 cw;
	u64 prior_cw;
	u64 arrived_us;
	struct ecn_echo echo;
	u32 delivered;
	u32 delivered_ce;
	u32 start_delivered;
	u32 iw;
	u32 burst;
	u32 first_end;
	u32 quiet;
	u32 rtt_us;
	u32 smooth_us8;
	struct cc_gso gso;
	u16 delack_max;
	u16 mss;
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
		.eta = LDCP_ETA,
		.shift_gamma = READ_ONCE(shift_gamma.value),
		.step = LDCP_STEP,
	};
}

/* --- the window, and cwnd and pacing rate that follow from it --- */

/*
 * The stack's sample of a retransmission is in milliseconds, from timestamps; many of them make its
 * smoothed RTT ten times too large in a data centre. RACK measures it in microseconds.
 */
static void ldcp_sample_rtt(struct sock *sk, const struct rate_sample *rs, u32 confirmed)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 us = rs->rtt_us > 0 && !rs->is_retrans ? rs->rtt_us : tp->rack.rtt_us;

	if (!confirmed || !us)
		return;
	ca->rtt_us = us;
	ca->smooth_us8 += ca->smooth_us8 ? us - ca->smooth_us8 / 8 : us * 8;
}

/*
 * The RTT that the pacing rate is for, microseconds, above 0: @smooth_us8 is 0, or 8 and more.
 * Below one packet the smoothed RTT is stale.
 */
static u32 ldcp_pace_rtt_us(const struct sock *sk)
{
	const struct ldcp *ca = inet_csk_ca(sk);

	if (unlikely(ca->cw < LDCP_CW_ONE && ca->rtt_us)) {
		if (READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ)
			return min(ca->rtt_us, LDCP_FQ_RTTS * max(tcp_min_rtt(tcp_sk(sk)), 1U));
		return ca->rtt_us;
	}
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
 * cwnd is cw in whole packets. After the first RTT packets are paced at cw / RTT, in slow start at
 * twice that. Without pacing, flows whose bursts overlap get most of the marks, whatever their
 * share of the link is.
 */
static void ldcp_apply(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 cwnd = ldcp_model_packets(ca->cw);
	u64 rate = ~0UL;

	if (unlikely(cwnd > tp->snd_cwnd_clamp)) {
		cwnd = max(tp->snd_cwnd_clamp, 1U);
		ca->cw = ldcp_model_cw(cwnd);
	}
	/* now, because sendmsg() makes packets of that size already */
	ldcp_limit_gso(sk);
	tcp_snd_cwnd_set(tp, cwnd);
	if (ca->stage != LDCP_FIRST_RTT) {
		rate = ldcp_model_rate(ca->cw, tp->mss_cache, ldcp_pace_rtt_us(sk));
		if (cwnd < tp->snd_ssthresh && ca->cw >= LDCP_CW_ONE)
			rate *= 2;
	}
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
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
		return min(tcp_snd_cwnd(tp), LDCP_PACKETS_LARGEST);
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
	/* what an undo restores */
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, ca->iw);
	ldcp_set(sk, "start", ldcp_model_cw(ca->iw), LDCP_FIRST_RTT);
}

/* Packets acknowledged cumulatively since the connection started */
static u32 ldcp_in_order(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);

	return tp->delivered - ca->start_delivered - tp->sacked_out;
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
 * First-RTT packets are Not-ECT except the last one: the IW-th, the last of a shorter
 * message, or the last that fits the peer's window.
 */
static int ldcp_egress_ecn(const struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct tcphdr *th = tcp_hdr(skb);
	u32 seq = ntohl(th->seq), end = seq + payload, next;
	bool last;

	/* a retransmission lies below SND.NXT, which advances after a packet has left */
	if (!payload || th->syn || before(seq, tp->snd_nxt))
		return ECN_EGRESS_KEEP;
	/* write_seq is only what a write() has queued so far; a full packet may follow */
	next = end == tp->write_seq ? tp->mss_cache : min(tp->write_seq - end, tp->mss_cache);
	last = tp->packets_out + 1 >= tcp_snd_cwnd(tp) || tcp_wnd_end(tp) - end < next ||
	       (th->psh && end + th->fin == tp->write_seq);
	return last ? ECN_EGRESS_KEEP : INET_ECN_NOT_ECT;
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
	ca->cw = min(ca->cw + ldcp_model_cw(confirmed), ldcp_model_cw(ca->iw));
	WRITE_ONCE(tp->snd_ssthresh, max(tp->snd_ssthresh, ldcp_model_packets(ca->cw)));
	return true;
}

/* An ACK in fast start. Losses are reported to ldcp_set_state() before this. */
static void ldcp_fast_start(struct sock *sk, u32 confirmed, u32 marked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT && confirmed)
		ldcp_set(sk, "first_rtt", ca->cw, LDCP_FAST_START);
	if (ldcp_in_order(sk) >= ca->iw) {
		ldcp_go_stable(sk, "full", ldcp_model_cw(ca->iw));
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
static bool ldcp_is_limit(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_is_cwnd_limited(sk) || tp->lost_out > tp->retrans_out ||
	       (tcp_send_head(sk) && 2 * tp->max_packets_out >= tcp_snd_cwnd(tp));
}

/*
 * Is the RTT near its minimum, so that there is no queue? A flow whose bottleneck is its own host
 * gets no marks; without this test its window would grow until a queue elsewhere holds it.
 */
static bool ldcp_rtt_is_base(const struct sock *sk)
{
	u32 base = tcp_min_rtt(tcp_sk(sk));

	return ldcp_pace_rtt_us(sk) <= base + base / 4 + 1;
}

/* Have a quarter of LDCP_QUIET_RTTS had no mark? */
static bool ldcp_is_quiet(const struct ldcp *ca)
{
	return ca->quiet >= LDCP_QUIET_RTTS << (LDCP_QUIET_Q - 2);
}

/*
 * The window after @clean packets. Where there is no queue, it first returns to what it was before
 * the marks: a burst of other flows, which marks many packets at once, is over by then. Later it
 * grows faster: a flow at its fair share is marked alpha / beta times per RTT. If it gets no mark
 * for many times as long, other flows have left, or a loss was not caused by a queue.
 */
static u64 ldcp_grown(struct sock *sk, u32 clean)
{
	struct ldcp_gains gains = ldcp_gains();
	struct ldcp *ca = inet_csk_ca(sk);
	u32 rounds, after;

	ca->quiet = ldcp_model_quiet(ca->quiet, ca->cw, clean);
	if (likely(!ldcp_is_quiet(ca)) || !ldcp_rtt_is_base(sk))
		return ldcp_model_clean(ca->cw, clean, &gains);
	if (ca->may_return && ca->cw < ca->prior_cw)
		return ldcp_model_return(ca->cw, ca->prior_cw, clean, &gains);
	rounds = ca->quiet >> LDCP_QUIET_Q;
	after = max(LDCP_QUIET_RTTS, LDCP_QUIET_RTTS * gains.beta / gains.alpha);
	if (rounds < after)
		return ldcp_model_clean(ca->cw, clean, &gains);
	return ldcp_model_faster(ca->cw, clean, &gains, rounds - after + 1);
}

static void ldcp_marked(struct sock *sk, u32 marked)
{
	struct ldcp_gains gains = ldcp_gains();
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (!ca->may_return || ldcp_is_quiet(ca)) {
		ca->prior_cw = ca->cw;
		ca->may_return = true;
	}
	ca->quiet = 0;
	ca->cw = ldcp_model_marked(ca->cw, marked, &gains);
	if (ca->cw < ldcp_model_cw(tp->snd_ssthresh))
		WRITE_ONCE(tp->snd_ssthresh, ldcp_model_packets(ca->cw));
}

static void ldcp_stable(struct sock *sk, u32 clean, u32 marked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 ssthresh;

	/* a queue that does not mark, such as the host's own, ends slow start, too */
	if (tp->snd_ssthresh == TCP_INFINITE_SSTHRESH && !ldcp_rtt_is_base(sk))
		WRITE_ONCE(tp->snd_ssthresh, ldcp_model_packets(ca->cw));
	if (inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery) {
		ca->repairing = false;
		ca->start_lost = false;
	}
	if (marked)
		ldcp_marked(sk, marked);
	if (!clean || ca->repairing || !ldcp_is_limit(sk))
		return;
	ssthresh = ldcp_model_cw(tp->snd_ssthresh);
	/* slow start: after a timeout (RFC 5681), or after fast start with an unknown BDP */
	if (!marked && ca->cw >= LDCP_CW_ONE && ca->cw < ssthresh) {
		ca->cw = min(ca->cw + ldcp_model_cw(clean), ssthresh);
		return;
	}
	/*
	 * Its ACK reports a short queue: do not wait for the time that was set, by the window of
	 * then, when it left. The stack has no accessor for that time. Without this, 2000 flows use
	 * 90 % of 10 Gb/s, not 98 %; also if the next wait is shortened instead. With eta 3/4 they
	 * use 96 %, and the queue is longer by half.
	 */
	if (!marked && ca->cw < LDCP_CW_ONE)
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	ca->cw = ldcp_grown(sk, clean);
}

/* Stable stage: RFC 5681, since the draft says nothing. Fast start: draft 3.1. */
static void ldcp_loss(struct sock *sk, const char *cause, bool timeout)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool stable = ca->stage == LDCP_STABLE;
	u64 cw = stable ? ldcp_model_lost(ca->cw) : ldcp_model_cw(ca->burst);

	if (ca->stage == LDCP_FIRST_RTT)
		ca->first_end = tp->snd_nxt;
	ca->start_lost = !stable && !timeout;
	ca->repairing = stable && !timeout;
	ca->prior_cw = ca->cw;
	ca->quiet = 0;
	WRITE_ONCE(tp->snd_ssthresh, max(ldcp_model_packets(cw), timeout ? 2U : 1U));
	/* if few arrived: slow start, up to half of the burst or the first mark */
	if (!stable) {
		WRITE_ONCE(tp->snd_ssthresh, max(tp->snd_ssthresh, ca->iw / 2));
		cw = timeout ? LDCP_CW_ONE : cw;
	} else if (timeout) {
		cw = min(cw, LDCP_CW_ONE);
	}
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
	WRITE_ONCE(inet_csk(sk)->icsk_delack_max, LDCP_DELACK_MAX);
	ca->mss = tp->mss_cache;

	ca->iw = TCP_INIT_CWND;
	if (ldcp_nothing_sent(tp))
		ldcp_start(sk);
	else
		ldcp_go_stable(sk, "switched", ldcp_model_cw(tcp_snd_cwnd(tp)));
	ldcp_apply(sk);
}

static void ldcp_release(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	/* 6.1 also calls this without .init: the private area is then the listener's copy */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	ecn_egress_detach(sk);
	cc_gso_release(sk, &ca->gso);
	if (ca->delack_max && inet_csk(sk)->icsk_delack_max == LDCP_DELACK_MAX)
		WRITE_ONCE(inet_csk(sk)->icsk_delack_max, ca->delack_max);
}

/*
 * The receiver (draft 2.2) acknowledges a marked packet at once, and clean ones when
 * there are ack_every of them. A sender whose window is one packet waits for each ACK:
 * packets that arrive half an RTT apart or more are acknowledged at once, too.
 */
static void ldcp_choose_ack(struct sock *sk, bool ce)
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

static void ldcp_received(struct sock *sk, bool ce)
{
	struct ldcp *ca = inet_csk_ca(sk);

	/* a program holds the socket, and delays an ACK: send that before the next one */
	if ((inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW) && !cc_ecn_accecn(tcp_sk(sk)))
		ecn_echo_flush(sk, &ca->echo);
	if (ecn_echo_event(sk, &ca->echo, ce))
		ecn_egress_awaits_changed(sk);
	ldcp_choose_ack(sk, ce);
}

/* After idling for an RTO, the initial window at most (RFC 5681 4.1). */
static void ldcp_restart(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 restart = ldcp_model_cw(ca->iw);

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
			WRITE_ONCE(tp->snd_ssthresh,
				   max_t(u64, 1, fp_mul_div(tp->snd_ssthresh, ca->mss, mss)));
	}
	ca->mss = mss;
}

/*
 * Packets confirmed and marked are the stack's counts: with Accurate ECN the
 * peer's, else all that an ACK with ECE confirms are marked. Accurate ECN also counts
 * marks on pure ACKs: no more packets are marked than are confirmed.
 */
static void ldcp_count_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 confirmed = tp->delivered - ca->delivered;
	u32 marked = min(tp->delivered_ce - ca->delivered_ce, confirmed);
	u32 clean = confirmed - marked;

	ldcp_sample_rtt(sk, rs, confirmed);
	if (unlikely(tp->mss_cache != ca->mss))
		ldcp_scale_to_mss(sk);
	ca->delivered = tp->delivered;
	if (confirmed)
		ca->delivered_ce = tp->delivered_ce;
	if (ldcp_count_burst(sk, rs, confirmed))
		;
	else if (ca->stage == LDCP_STABLE)
		ldcp_stable(sk, clean, marked);
	else
		ldcp_fast_start(sk, confirmed, marked);
	ldcp_apply(sk);
	trace_ldcp_ack(sk, ca->cw, clean, marked, ca->stage);
}

static void ldcp_acked(struct sock *sk, const struct rate_sample *rs)
{
	if (unlikely(cc_before_init(sk)))
		return;
	if (likely(ldcp_has_ecn(tcp_sk(sk)))) {
		ldcp_count_ack(sk, rs);
	} else {	/* a Fast Open server's handshake ends after .init */
		ldcp_release(sk);
		cc_use_reno(sk, &ldcp_reno);
	}
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
