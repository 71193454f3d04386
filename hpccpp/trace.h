/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_hpccpp: trace-cmd record -e hpccpp, or
 * echo 1 > /sys/kernel/tracing/events/hpccpp/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hpccpp

#if !defined(_LOWQ_HPCCPP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_HPCCPP_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

#include "hpccpp_model.h"

/*
 * An accepted response. result is enum hpccpp_result; ts (ns), tx and qlen (bytes) are the busiest
 * link's if the result is HPCCPP_MEASURED, else the first link's.
 */
TRACE_EVENT(hpccpp_sample,
	TP_PROTO(const struct sock *sk, const struct hpccpp_model *m, const struct int_msg *msg,
		 int result, u64 elapsed_ns),
	TP_ARGS(sk, m, msg, result, elapsed_ns),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, id)
		__field(int, result)
		__field(u8, nhop)
		__field(u32, path_id)
		__field(u8, busiest)
		__field(u32, mbps)
		__field(u64, ts)
		__field(u64, tx)
		__field(u32, qlen)
		__field(u64, elapsed_ns)
		__field(u32, u)
	),
	TP_fast_assign(
		const struct int_hop *hop = &msg->hop[result ? 0 : m->busiest];

		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->id = msg->id;
		__entry->result = result;
		__entry->nhop = msg->nhop;
		__entry->path_id = msg->path_id;
		__entry->busiest = m->busiest;
		__entry->mbps = hop->mbps;
		__entry->ts = hop->ts;
		__entry->tx = hop->tx;
		__entry->qlen = hop->qlen;
		__entry->elapsed_ns = elapsed_ns;
		__entry->u = m->u;
	),
	TP_printk("sport=%u dport=%u id=%u result=%d nhop=%u path_id=%u busiest=%u mbps=%u ts=%llu tx=%llu qlen=%u elapsed_ns=%llu u_q20=%u",
		  __entry->sport, __entry->dport, __entry->id, __entry->result,
		  __entry->nhop, __entry->path_id, __entry->busiest, __entry->mbps,
		  __entry->ts, __entry->tx, __entry->qlen, __entry->elapsed_ns, __entry->u)
);

/* A new window: from telemetry, from the receiver, or after a loss. */
TRACE_EVENT(hpccpp_window,
	TP_PROTO(const struct sock *sk, const char *cause, const struct hpccpp_model *m,
		 u32 t_ns),
	TP_ARGS(sk, cause, m, t_ns),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, cause, 12)
		__field(u64, reference)
		__field(u64, w)
		__field(u32, u)
		__field(u8, stage)
		__field(u32, t_ns)
		__field(u32, inflight)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->cause, cause, sizeof(__entry->cause));
		__entry->reference = m->reference;
		__entry->w = m->w;
		__entry->u = m->u;
		__entry->stage = m->stage;
		__entry->t_ns = t_ns;
		__entry->inflight = tcp_packets_in_flight(tcp_sk(sk));
	),
	TP_printk("sport=%u dport=%u cause=%s wc_q8=%llu w_q8=%llu u_q20=%u stage=%u t_ns=%u inflight=%u",
		  __entry->sport, __entry->dport, __entry->cause, __entry->reference,
		  __entry->w, __entry->u, __entry->stage, __entry->t_ns, __entry->inflight)
);

/*
 * Telemetry was lost ("unanswered", "partial", "unmeasured", "translated", "refused",
 * "no memory"), does not explain losses and marks ("unstamped"), or is back ("telemetry").
 */
TRACE_EVENT(hpccpp_mode,
	TP_PROTO(const struct sock *sk, const char *cause),
	TP_ARGS(sk, cause),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, cause, 12)
		__field(u32, cwnd)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->cause, cause, sizeof(__entry->cause));
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	),
	TP_printk("sport=%u dport=%u cause=%s cwnd=%u",
		  __entry->sport, __entry->dport, __entry->cause, __entry->cwnd)
);

#endif /* _LOWQ_HPCCPP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../hpccpp
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
