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
 * Source: draft-miao-rtgwg-hpccplus-00; the probe approach of 6.2.1.2 and 7.2. The
 * arithmetic is in hpccpp_model.h, the format in int_wire.h. Where probes are not
 * answered, or a node on the path does not stamp, a connection runs as Reno
 * (hpccpp_reno; with ECN its reduction is DCTCP's), and asks again now and then.
 *
 * Only for networks that one administration controls, switches included: the control
 * is restricted (net.ipv4.tcp_allowed_congestion_control).
 *
 * Deviations from the draft:
 *  - Wc (4.2): one response per RTT tells of the traffic sent between two probes, under
 *    the window of that time; since then one more window has been set. Wc is the window
 *    under which the measured bytes were sent, so that nothing is reacted to twice, as
 *    the draft's Wc. Scaling today's window by yesterday's load instead oscillates,
 *    undamped, with a period of 6 RTTs.
 *  - W is bounded by B * T of the slowest link, and W_ai is a part of that: the draft's
 *    flows cannot send faster than their own link either.
 *  - Loss and ECE (of nodes that do not stamp) halve W, once per window, as in any TCP;
 *    the draft says nothing about them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "cc_compat.h"
#include "cc_timeout.h"
#include "dctcp_model.h"
#include "ecn_feedback.h"
#include "hpccpp_model.h"
#include "hpccpp_param.h"
#include "int_host_impl.h"

#define CREATE_TRACE_POINTS
#include "hpccpp_trace.h"

CC_PARAM(w_ai_bytes, 0, 0, 1 << 20, 0644, "0 is the rule of thumb, from flows",
	 "additive increase W_ai in bytes, 0 derives it from flows (draft 5)");
CC_PARAM(base_rtt_ns, 0, 0, HPCCPP_T_MAX_NS, 0644, "0 is the measured minimum",
	 "base RTT T in nanoseconds, 0 is the measured minimum (draft 4.1)");
CC_PARAM(line_rate_mbps, 0, 0, 1600000, 0644, "0 starts with the initial window",
	 "the host's rate in Mb/s, at which flows start; 0 is TCP's initial window (draft 5)");
CC_PARAM(probe_rtts, 1, 1, 16, 0644, "1 is once per RTT",
	 "a probe every so many RTTs, 1 to 16 (draft 6.2.1.2)");
CC_PARAM(probe_packets, 8, 0, 64, 0644, "0 is once per RTT, however few they are",
	 "full packets from probe to probe where U is near eta, 0 to 64, at most 8 RTTs");
CC_PARAM(probe_room, INT_HOPS_DEFAULT, 1, INT_HOPS_MAX, 0644, "nHop has 4 bits",
	 "nodes on the path that a probe has room for, 1 to 15 (draft 6.1)");
CC_PARAM(probes_lost, 4, 1, 12, 0644, "so many probes without telemetry end HPCC++",
	 "unanswered probes after which a connection falls back, 1 to 12");
CC_PARAM(reprobe_max_ms, 1000, 1, 60000, 0644, "the interval doubles up to it",
	 "longest interval between probes in fallback, milliseconds");
CC_PARAM(receiver_based, 0, 0, 1, 0644, "0 is off, 1 is on",
	 "let the receiver compute the window (draft 6.3.2)");

#define PROBES_KEPT	16U	/* a power of 2 */

/**
 * struct hpccpp_probe - what is remembered of a probe
 * @sent_ns:	when it left
 * @integral:	W over time until then, bytes * ns; wraps
 * @inflight:	bytes in Q8 in flight then
 */
struct hpccpp_probe {
	u64 sent_ns;
	u64 integral;
	u64 inflight;
};

/**
 * struct hpccpp_flow - one connection; begins with its first data
 * @node:	in hpccpp_flows
 * @sk:		key there
 * @rcu:	for its end
 * @lock:	for what follows, down to @mail
 * @sent_id:	of the latest probe
 * @got_id:	of the latest response taken
 * @full:	there is a response in @mail
 * @mail:	the latest response
 *
 * Under the socket's lock only:
 * @model:	the algorithm's state
 * @probe:	by id modulo PROBES_KEPT
 * @prior_w:	W before the last loss, bytes in Q8, for undo
 * @integral:	W over time, bytes * ns, until @integral_ns; wraps
 * @integral_ns: the last change of W, or later
 * @sample:	the probe of the sample before; its sent_ns is 0 if there is none
 * @probe_ns:	when the latest probe left
 * @answer_ns:	when a response last came, or was first asked for
 * @retry_ns:	fallback: interval between probes
 * @unanswered:	probes since a response
 * @partial:	responses since telemetry of a whole path
 * @telemetry:	telemetry has come on this connection since it began or fell back
 */
struct hpccpp_flow {
	struct rhash_head node;
	const struct sock *sk;
	struct rcu_head rcu;

	spinlock_t lock;	/* sent_id to mail: between the hook and the socket */
	u32 sent_id;
	u32 got_id;
	bool full;
	struct int_msg mail;

	struct hpccpp_model model;
	struct hpccpp_probe probe[PROBES_KEPT];
	u64 prior_w;
	u64 integral;
	u64 integral_ns;
	struct hpccpp_probe sample;
	u64 probe_ns;
	u64 answer_ns;
	u64 retry_ns;
	u32 unanswered;
	u32 partial;
	bool telemetry;
};

/**
 * struct hpccpp - a connection's private area
 * @flow:	NULL before the first data, or where there is no memory for it
 * @dctcp:	fallback with ECN: the estimate
 * @fb:		likewise, what of the feedback is accounted for
 * @prior_cwnd:	fallback, packets: cwnd when the last reduction began
 * @ece:	fallback: the ACK being processed has ECE
 */
struct hpccpp {
	struct hpccpp_flow *flow;
	struct dctcp_model dctcp;
	struct ecn_feedback fb;
	u32 prior_cwnd;
	bool ece;
};

enum {
	HPCCPP_PROBES = INT_COUNT_SHARED,
	HPCCPP_UNSENT,		/* no memory or no route for a probe */
	HPCCPP_ACCEPTED,
	HPCCPP_NOT_OURS,	/* the connection has no flow with this control */
	HPCCPP_COOKIE,		/* not the cookie of its probe */
	HPCCPP_STALE_ID,	/* replayed, overtaken, or of a probe never sent */
	HPCCPP_PARTIAL_PATH,	/* no records, or not of all nodes */
	HPCCPP_FALLBACKS,
	HPCCPP_RETURNS,
};

static const char * const hpccpp_counters[] = {
	[INT_COUNT_MALFORMED]	= "Malformed",
	[INT_COUNT_CHECKSUM]	= "Checksum",
	[INT_COUNT_NO_SOCKET]	= "NoSocket",
	[INT_COUNT_SEQUENCE]	= "Sequence",
	[HPCCPP_PROBES]		= "Probes",
	[HPCCPP_UNSENT]		= "Unsent",
	[HPCCPP_ACCEPTED]	= "Accepted",
	[HPCCPP_NOT_OURS]	= "NotOurs",
	[HPCCPP_COOKIE]		= "Cookie",
	[HPCCPP_STALE_ID]	= "Stale",
	[HPCCPP_PARTIAL_PATH]	= "Partial",
	[HPCCPP_FALLBACKS]	= "Fallbacks",
	[HPCCPP_RETURNS]	= "Returns",
	NULL
};

static struct tcp_congestion_ops hpccpp_reno;
static struct tcp_congestion_ops hpccpp;

static struct rhashtable hpccpp_flows;
static const struct rhashtable_params hpccpp_flows_params = {
	.key_len = sizeof(const struct sock *),
	.key_offset = offsetof(struct hpccpp_flow, sk),
	.head_offset = offsetof(struct hpccpp_flow, node),
	.automatic_shrinking = true,
};

static siphash_key_t cookie_key __read_mostly;

static bool is_v4(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return sk->sk_family == AF_INET || ipv6_addr_v4mapped(&sk->sk_v6_daddr);
#else
	return true;
#endif
}

/* Keyed per boot, over flow and probe: nobody else can tell it. */
static u64 cookie_of(const struct sock *sk, u32 id)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct {
		struct in6_addr saddr;
		struct in6_addr daddr;
		__be16 sport;
		__be16 dport;
		u32 id;
	} flow = { .sport = inet->inet_sport, .dport = inet->inet_dport, .id = id };

	if (is_v4(sk)) {
		ipv6_addr_set_v4mapped(inet->inet_saddr, &flow.saddr);
		ipv6_addr_set_v4mapped(inet->inet_daddr, &flow.daddr);
#if IS_ENABLED(CONFIG_IPV6)
	} else {
		flow.saddr = inet6_sk(sk)->saddr;
		flow.daddr = sk->sk_v6_daddr;
#endif
	}
	return siphash(&flow, sizeof(flow), &cookie_key);
}

/* --- T, W and cwnd ----------------------------------------------------------- */

static u64 mss_q8(const struct sock *sk)
{
	return (u64)max_t(u32, tcp_sk(sk)->mss_cache, 1) << HPCCPP_W_Q;
}

/* The least RTT seen; 0 before there is one. */
static u32 min_rtt_ns(const struct sock *sk)
{
	u32 us = tcp_min_rtt(tcp_sk(sk));

	return us == ~0U ? 0 : clamp_t(u64, (u64)us * NSEC_PER_USEC, HPCCPP_T_MIN_NS,
				       HPCCPP_T_MAX_NS);
}

static u64 srtt_ns(const struct sock *sk)
{
	return (u64)(tcp_sk(sk)->srtt_us >> 3) * NSEC_PER_USEC;
}

/* T, 0 while it is unknown */
static u32 base_rtt(const struct sock *sk)
{
	u32 t_ns = READ_ONCE(base_rtt_ns.value);

	return t_ns ? max(t_ns, HPCCPP_T_MIN_NS) : min_rtt_ns(sk);
}

static void config_of(const struct sock *sk, const struct hpccpp_model *m,
		      struct hpccpp_config *c)
{
	/* a measured minimum is rounded down */
	hpccpp_config_set(c, m, base_rtt(sk), max(base_rtt(sk), min_rtt_ns(sk)) + NSEC_PER_USEC,
			  READ_ONCE(eta_permille.value), READ_ONCE(max_stage.value),
			  READ_ONCE(w_ai_bytes.value), READ_ONCE(flows.value),
			  max_t(u32, tcp_sk(sk)->mss_cache, 1), READ_ONCE(line_rate_mbps.value));
}

/*
 * cwnd lets W pass, and a packet more, for which the ACK may be delayed; the pacing
 * rate W / T does the rest, also where W is less than a packet.
 */
static void apply_window(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 w = ca->flow->model.w;
	u32 t_ns = base_rtt(sk);
	u64 cwnd = div64_u64(w + mss_q8(sk) - 1, mss_q8(sk)) + 1;

	tcp_snd_cwnd_set(tp, clamp_t(u64, cwnd, 2, tp->snd_cwnd_clamp));
	if (t_ns)
		WRITE_ONCE(sk->sk_pacing_rate,
			   min_t(u64, max_t(u64, hpccpp_rate(w, t_ns), 1),
				 READ_ONCE(sk->sk_max_pacing_rate)));
}

/* --- probes ------------------------------------------------------------------ */

static int send_probe4(struct sock *sk, struct sk_buff *skb, u8 tos)
{
	struct inet_sock *inet = inet_sk(sk);

	int_host_checksum4(skb, inet->inet_saddr, inet->inet_daddr);
	return __ip_queue_xmit(sk, skb, &inet->cork.fl, tos);
}

#if IS_ENABLED(CONFIG_IPV6)
/* By the route that the data takes. */
static int send_probe6(struct sock *sk, struct sk_buff *skb, u8 tclass)
{
	struct ipv6_pinfo *np = inet6_sk(sk);
	struct flowi6 fl6 = {
		.flowi6_proto = IPPROTO_TCP,
		.saddr = np->saddr,
		.daddr = sk->sk_v6_daddr,
		.flowlabel = np->flow_label,
		.flowi6_oif = sk->sk_bound_dev_if,
		.fl6_sport = inet_sk(sk)->inet_sport,
		.fl6_dport = inet_sk(sk)->inet_dport,
	};
	struct dst_entry *dst = __sk_dst_check(sk, np->dst_cookie);
	int err;

	if (!dst) {
		kfree_skb(skb);
		return -EHOSTUNREACH;
	}
	int_host_checksum6(skb, &np->saddr, &sk->sk_v6_daddr);
	rcu_read_lock();
	skb_dst_set_noref(skb, dst);
	err = ip6_xmit(sk, skb, &fl6, sk->sk_mark, rcu_dereference(np->opt), tclass,
		       sk->sk_priority);
	rcu_read_unlock();
	return err;
}
#endif

/* To be called before W changes. */
static void integrate_window(struct hpccpp_flow *f, u64 now)
{
	f->integral += (f->model.w >> HPCCPP_W_Q) * (now - f->integral_ns);
	f->integral_ns = now;
}

/*
 * The window under which the bytes between two probes were sent: the mean of W over the
 * time between them; or what was in flight, where W has been cut and that much had not
 * drained yet. Of two values of that the smaller, as of the queues.
 */
static u64 window_between(const struct hpccpp_probe *a, const struct hpccpp_probe *b)
{
	u64 mean = div64_u64(b->integral - a->integral, max_t(u64, b->sent_ns - a->sent_ns, 1));

	return max(mean << HPCCPP_W_Q, min(a->inflight, b->inflight));
}

/* The socket is locked by its user, or by softirq. */
static void send_probe(struct sock *sk, u64 now)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	const struct tcp_sock *tp = tcp_sk(sk);
	/* but for two packets whose ACK may be delayed: those have arrived */
	u64 inflight = fp_sub(tcp_packets_in_flight(tp), 2) * mss_q8(sk);
	struct hpccpp_probe *probe;
	struct int_msg m = { .type = INT_PROBE, .room = READ_ONCE(probe_room.value) };
	struct sk_buff *skb;
	const struct hpccpp_probe *before;
	u8 ds = READ_ONCE(dscp.value) << 2;
	int err;

	m.id = f->sent_id + 1;
	m.cookie = cookie_of(sk, m.id);
	probe = &f->probe[m.id % PROBES_KEPT];
	probe->sent_ns = now;
	integrate_window(f, now);
	probe->integral = f->integral;
	probe->inflight = inflight;
	if (READ_ONCE(receiver_based.value)) {
		before = &f->probe[(m.id - 1) % PROBES_KEPT];
		m.flags = INT_FLAG_RECEIVER;
		m.options = min_t(u64, window_between(before, probe) >> INT_OPTION_W_SHIFT,
				  INT_OPTION_MAX);
	}
	f->probe_ns = now;
	f->unanswered++;
	spin_lock_bh(&f->lock);
	f->sent_id = m.id;
	spin_unlock_bh(&f->lock);

	skb = int_host_segment(inet_sk(sk)->inet_sport, inet_sk(sk)->inet_dport, tp->snd_una, &m);
	if (!skb) {
		int_host_count(sock_net(sk), HPCCPP_UNSENT);
		return;
	}
	/* the data's queues, in the host and in nodes that look at ECN */
	skb_set_owner_w(skb, sk);
	skb_set_hash_from_sk(skb, sk);
#if IS_ENABLED(CONFIG_IPV6)
	if (!is_v4(sk))
		err = send_probe6(sk, skb, ds | (inet6_sk(sk)->tclass & INET_ECN_MASK));
	else
#endif
		err = send_probe4(sk, skb, ds | (inet_sk(sk)->tos & INET_ECN_MASK));
	int_host_count(sock_net(sk), err ? HPCCPP_UNSENT : HPCCPP_PROBES);
}

/* In softirq, from the hook. */
static void hpccpp_take(struct net *net, struct sock *sk, const struct sk_buff *skb,
			const struct int_segment *s, const struct int_msg *m)
{
	struct hpccpp_flow *f;
	unsigned int verdict;

	rcu_read_lock();
	f = rhashtable_lookup(&hpccpp_flows, &sk, hpccpp_flows_params);
	if (!f) {
		verdict = HPCCPP_NOT_OURS;
	} else if (m->cookie != cookie_of(sk, m->id)) {
		verdict = HPCCPP_COOKIE;
	} else {
		spin_lock(&f->lock);
		if ((s32)(m->id - f->got_id) > 0 && (s32)(f->sent_id - m->id) >= 0 &&
		    f->sent_id - m->id < PROBES_KEPT) {
			f->mail = *m;
			f->got_id = m->id;
			f->full = true;
			verdict = HPCCPP_ACCEPTED;
		} else {
			verdict = HPCCPP_STALE_ID;
		}
		spin_unlock(&f->lock);
	}
	rcu_read_unlock();
	int_host_count(net, verdict);
}

static const struct int_host int_host = {
	.name = "hpccpp",
	.counters = hpccpp_counters,
	.types = BIT(INT_RESPONSE) | BIT(INT_WINDOW),
	.take = hpccpp_take,
};

static bool take_mail(struct hpccpp_flow *f, struct int_msg *m)
{
	bool full;

	if (!READ_ONCE(f->full))
		return false;
	spin_lock_bh(&f->lock);
	full = f->full;
	*m = f->mail;
	f->full = false;
	spin_unlock_bh(&f->lock);
	return full;
}

/* --- the algorithm ------------------------------------------------------------ */

/* W is that of a flow that starts, and so is the view of the path. */
static void start_flow(struct sock *sk, struct hpccpp_flow *f, u64 w, u64 now)
{
	hpccpp_model_init(&f->model, w);
	f->prior_w = f->model.w;
	f->integral_ns = now;
	f->sample.sent_ns = 0;
	f->answer_ns = now;
	f->unanswered = 0;
	f->partial = 0;
	f->telemetry = false;
}

static void fall_back(struct sock *sk, const char *cause)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct hpccpp_flow *f = ca->flow;

	pr_info_once("no telemetry on a connection (%s): it is Reno while that lasts; see /proc/net/hpccpp\n",
		     cause);
	/* what telemetry has found is a fair window; without it, slow start goes on */
	if (f && f->telemetry)
		WRITE_ONCE(tp->snd_ssthresh, max(tcp_snd_cwnd(tp), 2U));
	if (f) {
		f->telemetry = false;
		f->retry_ns = max_t(u64, 16 * srtt_ns(sk), NSEC_PER_MSEC);
	}
	dctcp_model_init(&ca->dctcp, DCTCP_ALPHA_ONE, tp->snd_una);
	ecn_feedback_init(&ca->fb, tp);
	ca->prior_cwnd = tcp_snd_cwnd(tp);
	ca->ece = false;
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &hpccpp_reno);
	int_host_count(sock_net(sk), HPCCPP_FALLBACKS);
	trace_hpccpp_mode(sk, cause);
}

static struct hpccpp_flow *new_flow(struct sock *sk)
{
	struct hpccpp_flow *f = kzalloc(sizeof(*f), GFP_ATOMIC | __GFP_NOWARN);

	if (!f)
		return NULL;
	f->sk = sk;
	spin_lock_init(&f->lock);
	f->sent_id = get_random_u32();
	f->got_id = f->sent_id;
	if (rhashtable_insert_fast(&hpccpp_flows, &f->node, hpccpp_flows_params)) {
		kfree(f);
		return NULL;
	}
	return f;
}

/* With the first data; with an ACK where data was in flight when we were chosen. */
static void begin_flow(struct sock *sk, u64 now)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	u32 mbps = READ_ONCE(line_rate_mbps.value), t_ns = base_rtt(sk);

	ca->flow = new_flow(sk);
	if (!ca->flow) {
		fall_back(sk, "no memory");
		return;
	}
	start_flow(sk, ca->flow, mbps && t_ns ? hpccpp_bdp(mbps, t_ns) :
		   tcp_snd_cwnd(tcp_sk(sk)) * mss_q8(sk), now);
	apply_window(sk);
	send_probe(sk, now);
}

/* Receiver-based: the answer is the window itself. */
static bool on_window(struct sock *sk, const struct int_msg *m, u64 now)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 w = (u64)m->options << INT_OPTION_W_SHIFT;

	if (!READ_ONCE(receiver_based.value) || !w)
		return false;
	f->telemetry = true;
	f->partial = 0;
	integrate_window(f, now);
	f->model.w = fp_min(fp_max(w, mss_q8(sk) >> 4), HPCCPP_W_MAX);
	trace_hpccpp_window(sk, "receiver", &f->model, f->model.w, base_rtt(sk));
	return true;
}

/* A response has come. Was it telemetry of the whole path? */
static bool on_response(struct sock *sk, const struct int_msg *m, u64 now)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	const struct hpccpp_probe *probe = &f->probe[m->id % PROBES_KEPT];
	u64 elapsed = f->sample.sent_ns ? probe->sent_ns - f->sample.sent_ns : 0;
	u32 t_ns = base_rtt(sk);
	enum hpccpp_sample result;
	struct hpccpp_config c;
	u64 reference;

	f->unanswered = 0;
	f->answer_ns = now;
	if (m->type == INT_WINDOW)
		return on_window(sk, m, now);
	if (!t_ns)
		return false;
	if (!f->sample.sent_ns)
		hpccpp_model_forget(&f->model);
	result = hpccpp_measure(&f->model, m, t_ns, elapsed);
	trace_hpccpp_sample(sk, &f->model, m, result, elapsed);
	if (result == HPCCPP_PARTIAL) {
		int_host_count(sock_net(sk), HPCCPP_PARTIAL_PATH);
		f->partial++;
		return false;
	}
	f->telemetry = true;
	f->partial = 0;
	if (result == HPCCPP_MEASURED) {
		config_of(sk, &f->model, &c);
		c.w_ai = hpccpp_increase(&c, f->model.w, elapsed);
		reference = hpccpp_reference(&f->model, &c, window_between(&f->sample, probe));
		f->model.wc = reference;
		integrate_window(f, now);
		hpccpp_compute_wind(&f->model, &c, true);
		trace_hpccpp_window(sk, "telemetry", &f->model, reference, t_ns);
	}
	f->sample = *probe;
	return true;
}

/* Why there is no telemetry any more, or NULL. Answers may take as long as ACKs do. */
static const char *telemetry_lost(const struct sock *sk, const struct hpccpp_flow *f, u64 now)
{
	u32 lost = READ_ONCE(probes_lost.value);

	if (f->partial >= lost)
		return "partial";
	if (f->unanswered >= lost &&
	    now - f->answer_ns > 2 * max_t(u64, base_rtt(sk), srtt_ns(sk)))
		return "unanswered";
	return NULL;
}

/*
 * Once per base RTT; less often where W is a few packets, or queues are so long that too
 * many were on the way.
 */
static u64 probe_interval(const struct sock *sk)
{
	const struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	u64 least = f->telemetry ? mss_q8(sk) * READ_ONCE(probe_packets.value) : 0;
	u32 eta = fp_fraction(READ_ONCE(eta_permille.value), 1000, HPCCPP_U_Q);

	return max3(hpccpp_probe_ns(&f->model, eta, base_rtt(sk), least),
		    (u64)min_rtt_ns(sk), srtt_ns(sk) / (PROBES_KEPT / 2)) *
	       READ_ONCE(probe_rtts.value);
}

/* On every ACK. */
static void hpccpp_main(struct sock *sk, const struct rate_sample *rs)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 now = ktime_get_ns();
	struct int_msg m;

	if (!f) {
		if (inet_csk(sk)->icsk_ca_initialized)	/* no SYN's ACK */
			begin_flow(sk, now);
		return;
	}
	if (take_mail(f, &m))
		on_response(sk, &m, now);
	/* Before the first telemetry, and with no line rate to start at: slow start. */
	if (!f->telemetry && !READ_ONCE(line_rate_mbps.value) && rs->acked_sacked > 0 &&
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Open && tcp_is_cwnd_limited(sk)) {
		integrate_window(f, now);
		f->model.w = fp_min(f->model.w + rs->acked_sacked * mss_q8(sk), HPCCPP_W_MAX);
	}
	apply_window(sk);
	if (tp->packets_out && now - f->probe_ns >= probe_interval(sk)) {
		const char *lost = telemetry_lost(sk, f, now);

		if (lost)
			fall_back(sk, lost);
		else
			send_probe(sk, now);
	}
}

CC_DEFINE_CONG_CONTROL(hpccpp_cong_control, hpccpp_main)

/* --- the connection ------------------------------------------------------------ */

static void hpccpp_init(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	ca->flow = NULL;
	/* the stack's own pacing, unless fq does it */
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void hpccpp_release(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	if (!f)
		return;
	ca->flow = NULL;
	rhashtable_remove_fast(&hpccpp_flows, &f->node, hpccpp_flows_params);
	kfree_rcu(f, rcu);
}

/* The first packet of a burst is about to leave, with nothing in flight. */
static void hpccpp_tx_start(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	u64 now = ktime_get_ns();

	if (!ca->flow) {
		begin_flow(sk, now);
	} else if (now - ca->flow->probe_ns >= probe_interval(sk)) {
		/* what was not answered before the pause says nothing about now */
		ca->flow->answer_ns = now;
		send_probe(sk, now);
	}
}

static void hpccpp_set_window(struct sock *sk, u64 w, const char *cause)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	integrate_window(f, ktime_get_ns());
	f->model.w = fp_max(w, 2 * mss_q8(sk));
	f->model.wc = f->model.w;
	/* what was measured under the larger window would bring that back */
	f->sample.sent_ns = 0;
	trace_hpccpp_window(sk, cause, &f->model, f->prior_w, base_rtt(sk));
}

/* Once per window, on loss or ECE. */
static u32 hpccpp_ssthresh(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	if (!f)
		return tcp_reno_ssthresh(sk);
	f->prior_w = f->model.w;
	hpccpp_set_window(sk, f->model.w / 2, "loss");
	return max_t(u64, div64_u64(f->model.w, mss_q8(sk)), 2);
}

static u32 hpccpp_undo_cwnd(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->flow && ca->flow->model.w < ca->flow->prior_w)
		hpccpp_set_window(sk, ca->flow->prior_w, "undo");
	return max(tcp_snd_cwnd(tp), tp->prior_cwnd);
}

static void hpccpp_set_state(struct sock *sk, u8 new_state)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	if (ca->flow && cc_timed_out(sk, new_state))	/* the loss window */
		hpccpp_set_window(sk, 0, "timeout");
}

#ifndef HAVE_CWND_EVENT_TX_START
static void hpccpp_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_TX_START)
		hpccpp_tx_start(sk);
}
#endif

/*
 * ss -ti, in BBR's words: bw is W / T, mrtt is T, pacing_gain is U, cwnd_gain eta. The
 * socket is not locked: it may be another control's by now, and so may its private area.
 */
static size_t hpccpp_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct hpccpp_flow *f;
	u64 rate = READ_ONCE(sk->sk_pacing_rate);

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	rcu_read_lock();
	f = rhashtable_lookup(&hpccpp_flows, &sk, hpccpp_flows_params);
	if (f && READ_ONCE(inet_csk(sk)->icsk_ca_ops) == &hpccpp) {
		info->bbr.bbr_bw_lo = (u32)rate;
		info->bbr.bbr_bw_hi = (u32)(rate >> 32);
		info->bbr.bbr_min_rtt = base_rtt(sk) / NSEC_PER_USEC;
		info->bbr.bbr_pacing_gain = READ_ONCE(f->model.u) >> (HPCCPP_U_Q - 8);
		info->bbr.bbr_cwnd_gain = fp_fraction(READ_ONCE(eta_permille.value), 1000, 8);
	}
	rcu_read_unlock();
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

static struct tcp_congestion_ops hpccpp __read_mostly = {
	.init		= hpccpp_init,
	.release	= hpccpp_release,
	.cong_control	= hpccpp_cong_control,
	.ssthresh	= hpccpp_ssthresh,
	.set_state	= hpccpp_set_state,
	.undo_cwnd	= hpccpp_undo_cwnd,
#ifdef HAVE_CWND_EVENT_TX_START
	.cwnd_event_tx_start = hpccpp_tx_start,
#else
	.cwnd_event	= hpccpp_cwnd_event,
#endif
	.get_info	= hpccpp_get_info,
	.owner		= THIS_MODULE,
	.name		= "hpccpp",
};

/* --- without telemetry ----------------------------------------------------------- */

static void hpccpp_reno_in_ack_event(struct sock *sk, u32 flags)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 now = ktime_get_ns();
	struct int_msg m;

	if (cc_ecn_any(tp)) {
		struct ecn_sample s = ecn_feedback_update(&ca->fb, tp, flags);

		dctcp_model_ack(&ca->dctcp, s.acked, s.marked);
		if (dctcp_model_window_ended(&ca->dctcp, tp->snd_una))
			dctcp_model_window(&ca->dctcp, DCTCP_SHIFT_G_DEFAULT, tp->snd_nxt);
		ca->ece = s.marked;
	}
	if (!f)
		return;
	if (take_mail(f, &m)) {
		start_flow(sk, f, tcp_snd_cwnd(tp) * mss_q8(sk), now);
		if (on_response(sk, &m, now)) {
			WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &hpccpp);
			int_host_count(sock_net(sk), HPCCPP_RETURNS);
			trace_hpccpp_mode(sk, "telemetry");
			return;
		}
	}
	if (tp->packets_out && now - f->probe_ns >= f->retry_ns) {
		f->retry_ns = min(2 * f->retry_ns, (u64)READ_ONCE(reprobe_max_ms.value) *
						   NSEC_PER_MSEC);
		send_probe(sk, now);
	}
}

static u32 hpccpp_reno_ssthresh(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	ca->prior_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	return ca->ece ? dctcp_model_cut(&ca->dctcp, ca->prior_cwnd) : tcp_reno_ssthresh(sk);
}

/* What ECN has cut by less, loss halves. */
static void hpccpp_reno_set_state(struct sock *sk, u8 new_state)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state == TCP_CA_Recovery || cc_timed_out(sk, new_state))
		WRITE_ONCE(tp->snd_ssthresh, min(tp->snd_ssthresh, max(ca->prior_cwnd / 2, 2U)));
}

static u32 hpccpp_reno_undo_cwnd(struct sock *sk)
{
	const struct hpccpp *ca = inet_csk_ca(sk);

	return max(tcp_snd_cwnd(tcp_sk(sk)), ca->prior_cwnd);
}

/* Never registered, only switched to. */
static struct tcp_congestion_ops hpccpp_reno __read_mostly = {
	.release	= hpccpp_release,
	.in_ack_event	= hpccpp_reno_in_ack_event,
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= hpccpp_reno_ssthresh,
	.set_state	= hpccpp_reno_set_state,
	.undo_cwnd	= hpccpp_reno_undo_cwnd,
	.get_info	= hpccpp_get_info,
	.owner		= THIS_MODULE,
	.name		= "hpccpp_reno",
};

static int __init hpccpp_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct hpccpp) > ICSK_CA_PRIV_SIZE);
	BUILD_BUG_ON(ARRAY_SIZE(hpccpp_counters) > INT_COUNTERS_MAX);

	get_random_bytes(&cookie_key, sizeof(cookie_key));
	err = rhashtable_init(&hpccpp_flows, &hpccpp_flows_params);
	if (err)
		return err;
	err = register_pernet_subsys(&int_host_net_ops);
	if (err)
		goto err_flows;
	err = tcp_register_congestion_control(&hpccpp);
	if (err)
		goto err_net;
	return 0;

err_net:
	unregister_pernet_subsys(&int_host_net_ops);
err_flows:
	rhashtable_destroy(&hpccpp_flows);
	return err;
}

static void __exit hpccpp_module_exit(void)
{
	tcp_unregister_congestion_control(&hpccpp);
	unregister_pernet_subsys(&int_host_net_ops);
	rhashtable_destroy(&hpccpp_flows);
}

module_init(hpccpp_module_init);
module_exit(hpccpp_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("HPCC++ over TCP: the data sender");
/* the peer's probes are answered, too */
MODULE_SOFTDEP("post: int_reflector");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
