// SPDX-License-Identifier: GPL-2.0
/*
 * ldcp - LDCP, the PFC-free low delay control protocol, over TCP
 * (Internet-Draft "PFC-Free Low Delay Control Protocol", April 2021).
 *
 *	switch:	  one queue, two profiles: ECT packets are marked by the queue's
 *		  length (K_min, K_max, P_max), Not-ECT packets dropped above K
 *	receiver: an ACK per packet, ECE on it says whether that packet came marked
 *	sender,
 *	  stable:	on an ACK of n packets	without ECE	cw += n * alpha / cw
 *						with ECE	cw -= n * beta
 *			below one packet	without ECE	cw += gamma
 *						with ECE	cw = max(gamma, eta * cw)
 *			and then a packet leaves every RTT / cw
 *	  fast start:	cw = the path's BDP, sent at once: Not-ECT, so that it goes
 *			before nobody, but for its last packet, by which the
 *			receiver tells losses before it. From the first ACK on
 *			everything is ECT. All of it acknowledged: stable with cw
 *			as it is; a loss: with cw = packets acknowledged before it
 *
 * The window is arithmetic in ldcp_model.h; the receiver's echo is in
 * ecn_feedback.h, the ECN field of single packets in ecn_egress_impl.h. Without ECN a
 * connection is Reno, and its packets leave as Not-ECT.
 *
 * Only for networks that one administration controls, switches included: the
 * control is restricted (net.ipv4.tcp_allowed_congestion_control).
 *
 * Beyond the draft, which leaves it open, and deviations from it:
 *  - The stack sends whole packets: cwnd is cw rounded down, one at least. Below
 *    one packet it is the departure time of the next that is set, to RTT / cw after
 *    the last, retransmissions included. RTO and tail loss probe run by their own
 *    timers, which are longer while RTT / gamma is under rto_min (200 ms).
 *  - cw grows only while it is what limits the sender, as Linux' other controls do.
 *  - Marks end fast start, too, once all first-RTT packets are acknowledged: a
 *    connection that never fills its initial window has to react to them.
 *  - Loss in the stable stage: half of cw, also below two packets, and no growth
 *    until it is repaired; after a timeout slow start from one packet (RFC 5681).
 *  - In the first RTT packets are not sent by TSO: all segments of one would have
 *    the same ECN field.
 *  - The end of a message is what the stack knows of it, the end of a write().
 *    Where one is longer than half of the peer's window, and its length to the
 *    byte that at which the stack sends the first part of it, its last packet may
 *    leave as Not-ECT.
 *  - A clean packet that is Not-ECT does not end the receiver's CE state: the stack
 *    tells modules about ECT and CE packets only.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_ether.h>
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_param.h"
#include "cc_timeout.h"
#include "ecn_egress_impl.h"
#include "ecn_feedback.h"
#include "ldcp_model.h"

#define CREATE_TRACE_POINTS
#include "ldcp_trace.h"

CC_PARAM(alpha, 256, 1, 1024, 0644, "1024 is one packet per RTT; 0 would never grow",
	 "increase per RTT in 1/1024 packets, 1 to 1024 (draft 2.2)");
CC_PARAM(beta, 512, 1, 1024, 0644, "1024 is one packet per marked packet; 0 would ignore marks",
	 "decrease per marked packet in 1/1024 packets, 1 to 1024 (draft 2.2)");
CC_PARAM(eta, 512, 1, 1023, 0644, "512 is 1/2; 1024 would ignore marks",
	 "factor of a decrease below one packet in 1/1024, 1 to 1023 (draft 2.2: 1/2)");
CC_PARAM(shift_gamma, 4, LDCP_SHIFT_GAMMA_MIN, LDCP_SHIFT_GAMMA_MAX, 0644,
	 "2 is 1/4, 3 is 1/8, 4 is 1/16",
	 "gamma = 2^-shift_gamma packets, the step and the least window, 2 to 4 (draft 2.2)");
CC_PARAM(ack_every, 1, 1, 64, 0644, "1 is an ACK per packet",
	 "receiver: at most so many packets to an ACK, 1 to 64 (draft 2.2: m)");
CC_PARAM(link_rate_mbps, 0, 0, 1000000, 0644, "0 is unknown",
	 "rate of the sender's link in Mb/s, for the initial window; 0 takes the route's initcwnd");
CC_PARAM(base_rtt_us, 0, 0, 1000000, 0644, "0 is unknown",
	 "RTT of the empty path in microseconds, for the initial window; 0 takes the route's initcwnd");
CC_PARAM(fast_start, 1, 0, 1, 0444, "0 is off, 1 is on",
	 "fast start with Not-ECT packets; 0 starts in the stable stage (draft 2.3)");

/* Where a connection's sender is. NEW: there was no handshake yet. */
enum ldcp_stage {
	LDCP_NEW,
	LDCP_FIRST_RTT,		/* fast start, nothing acknowledged: Not-ECT */
	LDCP_FAST_START,	/* fast start goes on, as ECT */
	LDCP_STABLE,
};

/**
 * struct ldcp - one connection
 * @cw:		window, packets in Q40
 * @prior_cw:	@cw before the latest loss, for undo
 * @sent_ns:	while @spaced: when the latest packet left, monotonic clock
 * @arrived_us:	receiver: when the latest packet came, tp->tcp_mstamp
 * @echo:	receiver: the CE state
 * @delivered:	tp->delivered, packets that are accounted for
 * @delivered_ce: tp->delivered_ce, likewise
 * @start_delivered: tp->delivered when the connection started
 * @iw:		initial window, packets
 * @first_end:	sequence number behind the last first-RTT packet
 * @pushed_seq:	tp->pushed_seq when the latest first-RTT packet left
 * @data_segs:	while @spaced: tp->data_segs_out at @sent_ns
 * @rtt_us:	latest sample of the RTT. The smoothed one is stale below one packet:
 *		there is a sample per RTT / cw only
 * @gso_max_segs: sk->sk_gso_max_segs, which is 1 in the first RTT
 * @stage:	enum ldcp_stage
 * @unacked:	receiver: packets since an ACK was asked for
 * @spaced:	tp->tcp_wstamp_ns is when the next packet may leave, not when the
 *		latest did
 * @repairing:	a loss of the stable stage is being repaired: no growth
 */
struct ldcp {
	u64 cw;
	u64 prior_cw;
	u64 sent_ns;
	u64 arrived_us;
	struct ecn_echo echo;
	u32 delivered;
	u32 delivered_ce;
	u32 start_delivered;
	u32 iw;
	u32 first_end;
	u32 pushed_seq;
	u32 data_segs;
	u32 rtt_us;
	u16 gso_max_segs;
	u8 stage;
	u8 unacked;
	bool spaced;
	bool repairing;
};

static struct tcp_congestion_ops ldcp_reno;

static struct ldcp_gains ldcp_gains(void)
{
	return (struct ldcp_gains) {
		.alpha = READ_ONCE(alpha.value),
		.beta = READ_ONCE(beta.value),
		.eta = READ_ONCE(eta.value),
		.shift_gamma = READ_ONCE(shift_gamma.value),
	};
}

/* --- the window and what the stack is told of it --- */

/*
 * Below one packet: the next packet leaves RTT / cw after the latest one. The
 * stack knows the time of departure only while it paces; as no pacing rate is set
 * then, tcp_wstamp_ns is the latest packet's until we move it on.
 */
static void ldcp_space(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 interval = ldcp_model_interval(ca->cw, (u64)ca->rtt_us * NSEC_PER_USEC);

	if (!interval) {
		if (ca->spaced)
			tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
		ca->spaced = false;
		return;
	}
	if (!ca->spaced || ca->data_segs != tp->data_segs_out) {
		ca->sent_ns = tp->tcp_wstamp_ns;
		ca->data_segs = tp->data_segs_out;
	}
	ca->spaced = true;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	tp->tcp_wstamp_ns = ca->sent_ns + interval;
}

/*
 * The RTT for ldcp_space(). What the stack says of a retransmission it has from
 * timestamps, in milliseconds; below one packet it is the only one on its way.
 */
static void ldcp_sample_rtt(struct sock *sk, const struct rate_sample *rs, u32 confirmed)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (rs->rtt_us > 0 && !rs->is_retrans)
		ca->rtt_us = rs->rtt_us;
	else if (confirmed && ca->spaced && ca->data_segs != tp->data_segs_out &&
		 !tcp_packets_in_flight(tp) && tp->tcp_clock_cache > tp->tcp_wstamp_ns)
		ca->rtt_us = max_t(u64, tcp_min_rtt(tp),
				   div_u64(tp->tcp_clock_cache - tp->tcp_wstamp_ns, NSEC_PER_USEC));
}

/*
 * The rate is for sizing TSO packets and, once a window was below one packet or fq
 * is on the way, for pacing: twice the window's on the empty path, so that ACKs
 * clock the packets.
 */
static void ldcp_apply(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 rate = ~0UL;

	if (ldcp_model_packets(ca->cw) > tp->snd_cwnd_clamp)
		ca->cw = (u64)tp->snd_cwnd_clamp << LDCP_CW_Q;
	tcp_snd_cwnd_set(tp, ldcp_model_packets(ca->cw));
	if (ca->stage != LDCP_FIRST_RTT && ca->cw >= LDCP_CW_ONE)
		rate = 2 * ldcp_model_rate(ca->cw, tp->mss_cache, max(tcp_min_rtt(tp), 1U));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
	ldcp_space(sk);
}

/* Not by the per-ACK rule, but for a cause: see ldcp_window in ldcp_trace.h. */
static void ldcp_set(struct sock *sk, const char *cause, u64 cw, u8 stage)
{
	struct ldcp_gains gains = ldcp_gains();
	struct ldcp *ca = inet_csk_ca(sk);
	u64 before = ca->cw;

	if (ca->stage == LDCP_FIRST_RTT && stage != LDCP_FIRST_RTT && sk->sk_gso_max_segs == 1)
		sk->sk_gso_max_segs = ca->gso_max_segs;
	ca->cw = ldcp_model_bound(cw, &gains);
	WRITE_ONCE(ca->stage, stage);
	trace_ldcp_window(sk, cause, before, ca->cw, stage);
}

/* From fast start, or from another control: no slow start. */
static void ldcp_go_stable(struct sock *sk, const char *cause, u64 cw)
{
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, ldcp_model_packets(cw));
	ldcp_set(sk, cause, cw, LDCP_STABLE);
}

/* --- fast start (draft 2.3, 3.1) --- */

/* The route's initcwnd, else what the parameters say, else the stack's. */
static u32 ldcp_initial_window(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 rate = READ_ONCE(link_rate_mbps.value), rtt = READ_ONCE(base_rtt_us.value);

	/* one packet: the handshake has lost packets */
	if (tcp_snd_cwnd(tp) == 1 || !rate || !rtt || (dst && dst_metric(dst, RTAX_INITCWND)))
		return tcp_snd_cwnd(tp);
	return ldcp_model_bdp(rate, rtt, tp->mss_cache + tp->tcp_header_len +
			      inet_csk(sk)->icsk_af_ops->net_header_len + ETH_HLEN);
}

static void ldcp_start(struct sock *sk)
{
	struct ldcp *ca = inet_csk_ca(sk);

	ca->iw = ldcp_initial_window(sk);
	ca->pushed_seq = tcp_sk(sk)->pushed_seq;
	ca->gso_max_segs = sk->sk_gso_max_segs;
	sk->sk_gso_max_segs = 1;
	ldcp_set(sk, "start", (u64)ca->iw << LDCP_CW_Q, LDCP_FIRST_RTT);
}

/* Packets acknowledged cumulatively since the connection started */
static u32 ldcp_in_order(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);

	return tp->delivered - ca->start_delivered - tp->sacked_out;
}

/* Is this the end of a write, or only of its first part (see the top)? */
static bool ldcp_ends_write(const struct tcp_sock *tp, const struct ldcp *ca,
			    const struct tcphdr *th, u32 seq, u32 end)
{
	u32 part = tp->max_window >> 1;

	if (!th->psh || end + th->fin != tp->write_seq)
		return false;
	return end - seq < tp->mss_cache || end - ca->pushed_seq <= part ||
	       seq - ca->pushed_seq > part;
}

/*
 * First-RTT packets are Not-ECT but for the last one: the IW-th, the last of a
 * shorter message, or the last that fits the peer's window. A retransmission
 * lies below SND.NXT: new data raises that only once it has been sent.
 */
static int ldcp_egress_ecn(const struct sock *sk, const struct sk_buff *skb, u32 payload)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	const struct tcphdr *th = tcp_hdr(skb);
	u32 seq, end, next;
	bool last;

	if (READ_ONCE(ca->stage) != LDCP_FIRST_RTT || !payload || th->syn)
		return ECN_EGRESS_KEEP;
	seq = ntohl(th->seq);
	if (before(seq, tp->snd_nxt))
		return ECN_EGRESS_KEEP;
	end = seq + payload;
	/* a write that goes on has only queued what we see */
	next = end == tp->write_seq ? tp->mss_cache : min(tp->write_seq - end, tp->mss_cache);
	last = tp->packets_out + 1 >= tcp_snd_cwnd(tp) || tcp_wnd_end(tp) - end < next ||
	       ldcp_ends_write(tp, ca, th, seq, end);
	ca->pushed_seq = tp->pushed_seq;
	return last ? ECN_EGRESS_KEEP : INET_ECN_NOT_ECT;
}

/* An ACK in fast start. Losses have come to ldcp_set_state() before. */
static void ldcp_fast_start(struct sock *sk, u32 confirmed, u32 marked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT && confirmed) {
		ca->first_end = tp->snd_nxt;
		ldcp_set(sk, "first_rtt", ca->cw, LDCP_FAST_START);
	}
	if (ldcp_in_order(sk) >= ca->iw) {
		ldcp_go_stable(sk, "full", (u64)ca->iw << LDCP_CW_Q);
	} else if (marked && !before(tp->snd_una, ca->first_end)) {
		struct ldcp_gains gains = ldcp_gains();

		ldcp_go_stable(sk, "marked", ldcp_model_marked(ca->cw, marked, &gains));
	}
}

/* --- stable stage (draft 2.2) --- */

/* The stack says so of new data; lost packets may be all that waits, after fast start. */
static bool ldcp_is_limit(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_is_cwnd_limited(sk) || tp->lost_out > tp->retrans_out;
}

static void ldcp_stable(struct sock *sk, u32 clean, u32 marked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	struct ldcp_gains gains = ldcp_gains();
	u64 ssthresh = (u64)tp->snd_ssthresh << LDCP_CW_Q;

	if (inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery)
		ca->repairing = false;
	if (marked) {
		ca->cw = ldcp_model_marked(ca->cw, marked, &gains);
		if (ca->cw < ssthresh)
			WRITE_ONCE(tp->snd_ssthresh, ldcp_model_packets(ca->cw));
	}
	if (!clean || ca->repairing || !ldcp_is_limit(sk))
		return;
	/* slow start, after a timeout: RFC 5681 */
	if (!marked && ca->cw >= LDCP_CW_ONE && ca->cw < ssthresh)
		ca->cw = min3(ca->cw + ((u64)clean << LDCP_CW_Q), ssthresh, LDCP_CW_MAX);
	else
		ca->cw = ldcp_model_clean(ca->cw, clean, &gains);
}

/* RFC 5681 where the draft is silent; in fast start the draft (3.1). */
static void ldcp_loss(struct sock *sk, bool timeout)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool stable = ca->stage == LDCP_STABLE;
	u64 cw = stable ? ca->cw >> 1 : (u64)ldcp_in_order(sk) << LDCP_CW_Q;

	ca->prior_cw = ca->cw;
	ca->repairing = stable && !timeout;
	WRITE_ONCE(tp->snd_ssthresh, timeout ? max(ldcp_model_packets(cw), 2U) :
					       ldcp_model_packets(cw));
	if (timeout)
		cw = min(cw, LDCP_CW_ONE);
	ldcp_set(sk, timeout ? "timeout" : "loss", cw, LDCP_STABLE);
}

/* --- callbacks --- */

/*
 * Called after the handshake, on a change of the control, and, before there was
 * a handshake, for listeners and unconnected sockets: those ask for ECN later.
 */
static void ldcp_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	bool connected = !((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE));

	if (!cc_ecn_any(tp) && connected) {
		pr_info_once("a connection did not negotiate ECN: it is Reno (see also net.ipv4.tcp_ecn, and set the control before connect)\n");
		/* NEEDS_ECN has made us ECT: undo. */
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &ldcp_reno);
		INET_ECN_dontxmit(sk);
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
	/* as the receiver of packets that bring no event, Not-ECT ones */
	if (READ_ONCE(ack_every.value) == 1)
		inet_csk(sk)->icsk_ack.quick = U8_MAX;
	/* no delayed ACK is worth more than a tick (L2) */
	inet_csk(sk)->icsk_delack_max = 1;

	if (fast_start.value && !tp->data_segs_out && !tp->packets_out)
		ldcp_start(sk);
	else
		ldcp_go_stable(sk, "switched", (u64)tcp_snd_cwnd(tp) << LDCP_CW_Q);
	ldcp_apply(sk);
}

static void ldcp_release(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);

	if (ca->stage == LDCP_FIRST_RTT && sk->sk_gso_max_segs == 1)
		sk->sk_gso_max_segs = ca->gso_max_segs;
	if (ca->spaced)
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	inet_csk(sk)->icsk_delack_max = TCP_DELACK_MAX;
}

/*
 * The receiver's duty (draft 2.2): a marked packet is acknowledged at once, clean
 * ones at the latest when there are ack_every of them. A sender whose window is one
 * packet waits for that ACK; its packets come at least an RTT apart.
 */
static void ldcp_received(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u64 gap = tp->tcp_mstamp - ca->arrived_us;

	ca->arrived_us = tp->tcp_mstamp;
	/* asked for, and put off while a program has the socket: not to be merged */
	if ((inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW) && !cc_ecn_accecn(tp))
		ecn_echo_flush(sk, &ca->echo);
	ecn_echo_event(sk, &ca->echo, ce);
	ca->unacked++;
	if (ce || ca->unacked >= READ_ONCE(ack_every.value) || gap >= tcp_min_rtt(tp) / 2) {
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		ca->unacked = 0;
	}
}

static void ldcp_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_ECN_IS_CE || ev == CA_EVENT_ECN_NO_CE)
		ldcp_received(sk, ev == CA_EVENT_ECN_IS_CE);
}

/*
 * Packets confirmed and marked are the stack's counts: with Accurate ECN the
 * peer's, else all that an ACK with ECE confirms are marked. Marks may come ahead
 * of their packets with Accurate ECN; the model bounds them.
 */
static void ldcp_acked(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ldcp *ca = inet_csk_ca(sk);
	u32 confirmed = tp->delivered - ca->delivered;
	u32 marked = tp->delivered_ce - ca->delivered_ce;
	u32 clean = confirmed - min(confirmed, marked);

	if (ca->stage == LDCP_NEW)	/* the ACK of our SYN */
		return;
	ldcp_sample_rtt(sk, rs, confirmed);
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
	if (ca->stage == LDCP_STABLE)
		ldcp_stable(sk, clean, marked);
	else
		ldcp_fast_start(sk, confirmed, marked);
	ldcp_apply(sk);
	trace_ldcp_ack(sk, ca->cw, clean, marked, ca->stage);
}

CC_DEFINE_CONG_CONTROL(ldcp_cong_control, ldcp_acked)

/* ECN alone never comes to a reduction here (L4); of losses set_state tells. */
static u32 ldcp_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static void ldcp_set_state(struct sock *sk, u8 new_state)
{
	const struct ldcp *ca = inet_csk_ca(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	bool first = state < TCP_CA_Recovery;	/* else reduced already */
	bool timeout = cc_timed_out(sk, new_state);

	if (ca->stage == LDCP_NEW || (new_state != TCP_CA_Recovery && !timeout))
		return;
	if (first)
		ldcp_loss(sk, timeout);
	else if (timeout)
		ldcp_set(sk, "timeout", min(ca->cw, LDCP_CW_ONE), LDCP_STABLE);
	/* Now: what a timer found lost is sent again before an ACK comes. */
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
 * ss -ti, in BBR's record: bw is cw packets per smoothed RTT, pacing_gain the
 * stage, cwnd_gain cw itself. Vegas' bit stands for all kinds there is room for.
 */
static size_t ldcp_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ldcp *ca = inet_csk_ca(sk);
	u64 bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	bw = ldcp_model_rate(READ_ONCE(ca->cw), tp->mss_cache, max(tp->srtt_us >> 3, 1U));
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
	.undo_cwnd	= ldcp_undo_cwnd,
	.get_info	= ldcp_get_info,
	.flags		= TCP_CONG_NEEDS_ECN,
	.owner		= THIS_MODULE,
	.name		= "ldcp",
};

/* A connection without ECN: never registered, only switched to. */
static struct tcp_congestion_ops ldcp_reno __read_mostly = {
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "ldcp_reno",
};

static const struct ecn_egress ldcp_egress = {
	.ops	= &ldcp,
	.choose	= ldcp_egress_ecn,
};

static int __init ldcp_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct ldcp) > ICSK_CA_PRIV_SIZE);

	if (fast_start.value) {
		err = ecn_egress_register(&ldcp_egress);
		if (err)
			return err;
	}
	err = tcp_register_congestion_control(&ldcp);
	if (err && fast_start.value)
		ecn_egress_unregister();
	return err;
}

static void __exit ldcp_module_exit(void)
{
	tcp_unregister_congestion_control(&ldcp);
	if (fast_start.value)
		ecn_egress_unregister();
}

module_init(ldcp_module_init);
module_exit(ldcp_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("LDCP (PFC-free low delay control protocol) over TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
