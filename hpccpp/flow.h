/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a connection under HPCC++: struct hpccpp in the socket's private area,
 * struct hpccpp_flow beside it, and the table in which the hook for responses finds
 * flows.
 */
#ifndef _LOWQ_HPCCPP_FLOW_H
#define _LOWQ_HPCCPP_FLOW_H

#include <linux/rhashtable.h>
#include <net/tcp.h>

#include "cc_gso.h"
#include "cc_param.h"
#include "dctcp_model.h"
#include "ecn_feedback.h"
#include "hpccpp_model.h"

CC_PARAM(base_rtt_ns, 0, 0, HPCCPP_T_MAX_NS, 0644, "0 is the measured minimum",
	 "base RTT T in nanoseconds, 0 is the measured minimum (draft 4.1)");

#define HPCCPP_PROBES_KEPT	16U	/* a power of 2 */

/**
 * struct hpccpp_probe - a probe, as the sender remembers it
 * @sent_ns:	when it was sent; 0: no probe
 * @integral:	integral of W over time until then, bytes * ns; wraps
 * @inflight:	bytes in flight then, Q8
 * @cookie:	that its response must have
 * @end:	sequence number that follows the probe
 */
struct hpccpp_probe {
	u64 sent_ns;
	u64 integral;
	u64 inflight;
	u64 cookie;
	u32 end;
};

/**
 * struct hpccpp_tally - how the flow's packets fared until a response
 * @sent_ns:	when the response's probe was sent; 0: there was no response
 * @arrived_ns:	when the response arrived
 * @delivered:	tp->delivered, packets
 * @marked:	tp->delivered_ce, packets
 * @lost:	tp->lost, packets
 */
struct hpccpp_tally {
	u64 sent_ns;
	u64 arrived_ns;
	u32 delivered;
	u32 marked;
	u32 lost;
};

/**
 * struct hpccpp_applied - a window in the stack's terms, computed again only if it has changed
 * @w:		the window, bytes in Q8
 * @mss:	that it was computed with
 * @t_ns:	T that it was computed with
 * @cwnd:	packets
 * @rate:	W / T, bytes/s
 * @swift:	more than a packet leaves in any RTO
 */
struct hpccpp_applied {
	u64 w;
	u32 mss;
	u32 t_ns;
	u64 cwnd;
	u64 rate;
	bool swift;
};

/**
 * struct hpccpp_flow - a connection from its first data on
 * @node:	in hpccpp_flows
 * @sk:		the key in hpccpp_flows
 * @rcu:	frees the flow after the hook's readers
 * @secret:	of which cookies are made, see hpccpp_secret()
 * @lock:	protects the fields from @sent_id to @response, and @probe's @cookie and @end
 * @sent_id:	id of the latest probe
 * @got_id:	id of the latest accepted response
 * @full:	@response has not been read yet
 * @answered:	a response was accepted
 * @refused:	a probe was answered by a RST: no more probes
 * @response_ns: when @response arrived
 * @response:	the mailbox: the latest accepted response
 *
 * The socket's lock protects the rest:
 * @model:	the algorithm's state
 * @rtt:	the base RTT as measured
 * @probe:	the latest probes, by id modulo HPCCPP_PROBES_KEPT
 * @prior_w:	W before the latest loss, for undo, bytes in Q8
 * @integral:	integral of the W in force over time until @integral_ns, bytes * ns; wraps
 * @integral_ns: when @integral was last updated
 * @paced_w:	the W in force until @paced_ns, bytes in Q8
 * @paced_ns:	when @model.w takes effect: the next packet's departure, which was
 *		scheduled under @paced_w
 * @sample:	the probe of the previous sample
 * @probe_ns:	when the latest probe was sent
 * @arrived_ns:	when the response that was read last arrived
 * @answer_ns:	when the latest response was read, or the wait for one began
 * @comparable_ns: hpccpp_comparable_ns() of @model's records, or 0 if there are none
 * @retry_ns:	fallback: time between probes
 * @idle_ns:	from when on a packet could have left, but there was none; 0: there was one
 * @tally:	at the latest response
 * @carried:	hpccpp_carried() between the latest two responses, bytes in Q8; 0: unknown
 * @reduced_ns:	fallback: when the window was last reduced
 * @doubt:	hpccpp_doubt()
 * @clean:	packets without a loss or mark that @doubt does not know of yet
 * @clean_rtts:	fallback as unstamped: RTTs without a reduction before the return
 * @unanswered:	probes sent since the latest response
 * @partial:	responses since the latest one with the records of all nodes
 * @unmeasured:	responses since the latest one that measured U, while data was sent
 * @queued_us:	hpccpp_queued_us() of the latest response
 * @applied:	@model.w as it was applied last
 * @gso:	limit on the segments of a TSO packet
 * @telemetry:	U has been measured since the connection began, fell back or was idle
 * @line_rate:	the first W was the line rate's, not the initial window
 * @waits:	a probe waits until there is a packet of data
 * @second:	fallback: one more probe is due soon, to compare with the first one
 * @unstamped:	fallback: a bottleneck on the path does not stamp
 */
struct hpccpp_flow {
	struct rhash_head node;
	const struct sock *sk;
	struct rcu_head rcu;
	u64 secret;

	spinlock_t lock;	/* between the hook and the socket */
	u32 sent_id;
	u32 got_id;
	bool full;
	bool answered;
	bool refused;
	u64 response_ns;
	struct int_msg response;

	struct hpccpp_model model;
	struct hpccpp_rtt rtt;
	struct hpccpp_probe probe[HPCCPP_PROBES_KEPT];
	u64 prior_w;
	u64 integral;
	u64 integral_ns;
	u64 paced_w;
	u64 paced_ns;
	struct hpccpp_probe sample;
	u64 probe_ns;
	u64 arrived_ns;
	u64 answer_ns;
	u64 comparable_ns;
	u64 retry_ns;
	u64 idle_ns;
	struct hpccpp_tally tally;
	u64 carried;
	u64 reduced_ns;
	s32 doubt;
	u32 clean;
	u32 clean_rtts;
	u32 unanswered;
	u32 partial;
	u32 unmeasured;
	u32 queued_us;
	struct hpccpp_applied applied;
	struct cc_gso gso;
	bool telemetry;
	bool line_rate;
	bool waits;
	bool second;
	bool unstamped;
};

/**
 * struct hpccpp - a connection's private area
 * @flow:	NULL before the first data, or if there was no memory for it
 * @ops:	fallback: the control to which the connection returns
 * @una:	in recovery: SND.UNA at the ACK before
 * @dctcp:	fallback with ECN: the estimate of marked bytes
 * @density:	fallback with ECN: mean marked fraction of the windows that had marks, Q30
 * @rtt_us:	fallback with ECN: smallest RTT in this window
 * @prior_rtt_us: fallback with ECN: smallest RTT in the window before
 * @fb:		fallback with ECN: the feedback counted so far
 * @prior_cwnd:	fallback: cwnd before the latest reduction, packets
 * @ece:	fallback: the ACK being processed reports marks
 * @spread:	fallback with ECN: packets are paced, an eighth of the window at once
 * @needs_hook:	the connection has called int_host_get()
 */
struct hpccpp {
	struct hpccpp_flow *flow;
	const struct tcp_congestion_ops *ops;
	u32 una;
	struct dctcp_model dctcp;
	u32 density;
	u32 rtt_us;
	u32 prior_rtt_us;
	struct ecn_feedback fb;
	u32 prior_cwnd;
	bool ece;
	bool spread;
	bool needs_hook;
};

static struct rhashtable hpccpp_flows;
static const struct rhashtable_params hpccpp_flows_params = {
	.key_len = sizeof(const struct sock *),
	.key_offset = offsetof(struct hpccpp_flow, sk),
	.head_offset = offsetof(struct hpccpp_flow, node),
	.automatic_shrinking = true,
};

/* The caller holds the RCU read lock. */
static inline struct hpccpp_flow *hpccpp_flow_find(const struct sock *sk)
{
	return rhashtable_lookup(&hpccpp_flows, &sk, hpccpp_flows_params);
}

/* Ids begin anywhere: who forges probes has to guess them. NULL if there is no memory */
static inline struct hpccpp_flow *hpccpp_flow_new(const struct sock *sk, u64 secret)
{
	struct hpccpp_flow *f = kzalloc(sizeof(*f), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);

	if (!f)
		return NULL;
	f->sk = sk;
	f->secret = secret;
	spin_lock_init(&f->lock);
	f->sent_id = (u32)secret;
	f->got_id = f->sent_id;
	if (rhashtable_insert_fast(&hpccpp_flows, &f->node, hpccpp_flows_params)) {
		kfree(f);
		return NULL;
	}
	return f;
}

static inline void hpccpp_flow_free(struct hpccpp_flow *f)
{
	rhashtable_remove_fast(&hpccpp_flows, &f->node, hpccpp_flows_params);
	kfree_rcu(f, rcu);
}

static inline void hpccpp_flow_release(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	if (!f)
		return;
	ca->flow = NULL;
	cc_gso_release(sk, &f->gso);
	hpccpp_flow_free(f);
}

/* --- quantities of the connection ---------------------------------------------- */

static inline u64 hpccpp_mss_q8(const struct sock *sk)
{
	return (u64)max_t(u32, tcp_sk(sk)->mss_cache, 1) << HPCCPP_W_Q;
}

static inline u64 hpccpp_srtt_ns(const struct sock *sk)
{
	return (u64)(tcp_sk(sk)->srtt_us >> 3) * NSEC_PER_USEC;
}

static inline u32 hpccpp_rtt_ns(u32 us)
{
	return us == HPCCPP_RTT_UNKNOWN ? 0 : clamp_t(u64, (u64)us * NSEC_PER_USEC,
						      HPCCPP_T_MIN_NS, HPCCPP_T_MAX_NS);
}

/* The smallest RTT; 0 before the first measurement */
static inline u32 hpccpp_min_rtt_ns(const struct hpccpp_flow *f)
{
	return hpccpp_rtt_ns(READ_ONCE(f->rtt.min_us));
}

/* T; 0 while it is unknown */
static inline u32 hpccpp_base_rtt_ns(const struct hpccpp_flow *f)
{
	u32 t_ns = READ_ONCE(base_rtt_ns.value);

	return t_ns ? max(t_ns, HPCCPP_T_MIN_NS) :
		      hpccpp_rtt_ns(READ_ONCE(f->rtt.base_us));
}

/* --- W over time ----------------------------------------------------------------- */

/*
 * To be called before W changes. A new W takes effect when the next packet leaves; that time is
 * already set, and with a window below a packet it may be many RTTs away. If the integral took up
 * the new W at once, flows would react to the same load twice: 1000 flows then oscillate.
 */
static inline void hpccpp_integrate_window(const struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	u64 old_ns = fp_sub(fp_min(now, f->paced_ns), f->integral_ns);

	f->integral += (f->paced_w >> HPCCPP_W_Q) * old_ns +
		       (f->model.w >> HPCCPP_W_Q) * (now - f->integral_ns - old_ns);
	f->integral_ns = now;
	if (now >= f->paced_ns) {
		f->paced_w = f->model.w;
		f->paced_ns = tcp_sk(sk)->tcp_wstamp_ns;
	}
}

/*
 * The window under which the bytes between two probes were sent: the mean of W between
 * them. After a cut of W, more than W may still be in flight: then the smaller of the two
 * probes' bytes in flight counts.
 */
static inline u64 hpccpp_window_between(const struct hpccpp_probe *a,
					const struct hpccpp_probe *b)
{
	u64 mean = div64_u64(b->integral - a->integral, max_t(u64, b->sent_ns - a->sent_ns, 1));

	return max(mean << HPCCPP_W_Q, min(a->inflight, b->inflight));
}

#endif /* _LOWQ_HPCCPP_FLOW_H */
