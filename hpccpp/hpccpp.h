/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of tcp_hpccpp. Each file calls only those below it:
 *
 *	main.c		the callbacks of TCP; loading and unloading
 *	reno.c		the fallback: Reno while probes are not answered, or the bottleneck does
 *			not stamp
 *	sample.c	from a response to a window
 *	probe.c		probes
 *	mailbox.c	responses, from int_host to the socket
 *	device.c	the rate at which a connection's data can leave the host
 *	flow.c		a connection's state, and W over time
 *	param.c		the algorithm's parameters
 *	trace.h		tracepoints
 *
 * include/hpccpp_model.h is the arithmetic, int_wire.h, int_ifa.h and
 * int_md.h the formats.
 */
#ifndef _LOWQ_HPCCPP_H
#define _LOWQ_HPCCPP_H

#include <linux/rhashtable-types.h>
#include <net/tcp.h>

#include "cc_gso.h"
#include "cc_param.h"
#include "dctcp_model.h"
#include "ecn_feedback.h"
#include "hpccpp_model.h"
#include "int_host.h"

/* --- the connection ------------------------------------------------------------- */

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
 * @format:	of probes, enum int_format
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
	u8 format;
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

/* --- param.c ------------------------------------------------------------------------- */

extern struct cc_param hpccpp_base_rtt;

u32 hpccpp_eta(void);
void hpccpp_given_settings(struct hpccpp_settings *s);

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
	u32 t_ns = READ_ONCE(hpccpp_base_rtt.value);

	return t_ns ? max(t_ns, HPCCPP_T_MIN_NS) :
		      hpccpp_rtt_ns(READ_ONCE(f->rtt.base_us));
}

/* --- flow.c -------------------------------------------------------------------------- */

int hpccpp_flows_init(void);
void hpccpp_flows_exit(void);
struct hpccpp_flow *hpccpp_flow_find(const struct sock *sk);
struct hpccpp_flow *hpccpp_flow_new(const struct sock *sk, u64 secret);
void hpccpp_flow_release(struct sock *sk);
void hpccpp_integrate_window(const struct sock *sk, struct hpccpp_flow *f, u64 now);
u64 hpccpp_window_between(const struct hpccpp_probe *a, const struct hpccpp_probe *b);

/* --- device.c ------------------------------------------------------------------------ */

int hpccpp_devices_init(void);
void hpccpp_devices_exit(void);
u32 hpccpp_line_given(void);
u32 hpccpp_line_mbps(struct sock *sk);

/* --- mailbox.c ----------------------------------------------------------------------- */

enum {
	HPCCPP_COUNT_PROBES = INT_COUNT_SHARED,
	HPCCPP_COUNT_UNSENT,	/* no memory or no route, or dropped by this host's firewall */
	HPCCPP_COUNT_ACCEPTED,
	HPCCPP_COUNT_NOT_OURS,	/* the connection has no flow under this control */
	HPCCPP_COUNT_COOKIE,	/* not the cookie of a recent probe */
	HPCCPP_COUNT_OLD_ID,	/* replayed or overtaken */
	HPCCPP_COUNT_PARTIAL,	/* no records, or not of all nodes */
	HPCCPP_COUNT_FALLBACKS,
	HPCCPP_COUNT_RETURNS,
	HPCCPP_COUNT_UNSTAMPED,	/* fallbacks because a bottleneck does not stamp */
	HPCCPP_COUNT_TRANSLATED, /* connections that NAT on this host translates: no probes */
	HPCCPP_COUNT_REFUSED,	/* connections with a probe that a RST answered: no more probes */
	HPCCPP_COUNT_OLD_FORMAT, /* connections without full telemetry by IFA or INT */
};

extern unsigned int hpccpp_net_id;

static inline void hpccpp_count(const struct sock *sk, unsigned int counter)
{
	int_count(sock_net(sk), hpccpp_net_id, counter);
}

int hpccpp_mailbox_init(void);
void hpccpp_mailbox_exit(void);
u64 hpccpp_secret(const struct sock *sk, u64 now);
u64 hpccpp_cookie(const struct hpccpp_flow *f, u32 id);
bool hpccpp_read_response(struct hpccpp_flow *f, struct int_msg *m);
void hpccpp_release(struct sock *sk);

/* --- probe.c ------------------------------------------------------------------------- */

extern struct cc_param hpccpp_probe_rtts;

bool hpccpp_receiver_based(void);
u8 hpccpp_begins_with(void);
bool hpccpp_is_translated(const struct sock *sk);
u64 hpccpp_probe_interval(const struct sock *sk);
void hpccpp_send_probe(struct sock *sk, u64 now);

/* @interval, yet not so long that a counter in the records could wrap */
static inline u64 hpccpp_comparable(const struct hpccpp_flow *f, u64 interval)
{
	return f->comparable_ns ? min(interval, f->comparable_ns) : interval;
}

/* T, or the shortest RTT if that is longer, once or several times (probe_rtts) */
static inline u64 hpccpp_least_interval(const struct hpccpp_flow *f)
{
	return max_t(u64, hpccpp_base_rtt_ns(f), hpccpp_min_rtt_ns(f)) *
	       READ_ONCE(hpccpp_probe_rtts.value);
}

/*
 * Is the next probe due? Asked on every ACK: most come before the shortest interval that
 * hpccpp_probe_interval() can give.
 */
static inline bool hpccpp_probe_due(const struct sock *sk, u64 now)
{
	const struct hpccpp_flow *f = ((struct hpccpp *)inet_csk_ca(sk))->flow;
	u64 elapsed = now - f->probe_ns;

	if (elapsed < hpccpp_comparable(f, hpccpp_least_interval(f)))
		return false;
	return elapsed >= hpccpp_probe_interval(sk);
}

/*
 * Will data still wait for the window when a probe's response arrives, an RTT later? The window
 * that the response sets is for that data. A program that waits for room in the socket has more.
 */
static inline bool hpccpp_has_more(const struct sock *sk)
{
	const struct socket *sock = READ_ONCE(sk->sk_socket);
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->write_seq - tp->snd_nxt > (u64)tcp_snd_cwnd(tp) * tp->mss_cache ||
	       (sock && test_bit(SOCK_NOSPACE, &sock->flags));
}

/* Time until the next probe if nothing waits: the flow's share may shrink all the same. */
static inline u64 hpccpp_rare_interval(const struct hpccpp_flow *f)
{
	return hpccpp_comparable(f, 4 * hpccpp_least_interval(f));
}

/*
 * Is at least a full packet of data in flight, or about to be? Less, such as a request or a FIN,
 * is nothing that a window could hold back.
 */
static inline bool hpccpp_has_packet(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->write_seq - tp->snd_una >= tp->mss_cache;
}

/* --- sample.c ------------------------------------------------------------------------ */

bool hpccpp_on_response(struct sock *sk, const struct int_msg *m, u64 now);

/* --- reno.c -------------------------------------------------------------------------- */

void hpccpp_fall_back(struct sock *sk, const char *cause);
void hpccpp_fall_back_unstamped(struct sock *sk, u64 now);
size_t hpccpp_reno_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);

#endif /* _LOWQ_HPCCPP_H */
