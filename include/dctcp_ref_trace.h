/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_dctcp_ref: trace-cmd record -e dctcp_ref, or
 * echo 1 > /sys/kernel/tracing/events/dctcp_ref/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dctcp_ref

#if !defined(_LOWQ_DCTCP_REF_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_DCTCP_REF_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

#include "dctcp_model.h"

/* The end of an observation window: alpha has its new value. */
TRACE_EVENT(dctcp_ref_window,
	TP_PROTO(const struct sock *sk, const struct dctcp_model *m, u32 acked, u32 marked,
		 u32 fraction),
	TP_ARGS(sk, m, acked, marked, fraction),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, acked)
		__field(u32, marked)
		__field(u32, fraction)
		__field(u32, alpha)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, srtt_us)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->acked = acked;
		__entry->marked = marked;
		__entry->fraction = fraction;
		__entry->alpha = m->alpha;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->srtt_us = tcp_sk(sk)->srtt_us >> 3;
	),
	TP_printk("sport=%u dport=%u acked=%u marked=%u fraction_q30=%u alpha_q30=%u cwnd=%u ssthresh=%u srtt_us=%u",
		  __entry->sport, __entry->dport, __entry->acked, __entry->marked,
		  __entry->fraction, __entry->alpha, __entry->cwnd, __entry->ssthresh,
		  __entry->srtt_us)
);

/*
 * A reduction: cause is "ecn", "loss" or "gate" (ECN above the RTT gate: cut by half); "due" is
 * a mark whose reduction waits for the window's end.
 */
TRACE_EVENT(dctcp_ref_cut,
	TP_PROTO(const struct sock *sk, const char *cause, u32 alpha, u32 cwnd, u32 ssthresh),
	TP_ARGS(sk, cause, alpha, cwnd, ssthresh),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, cause, 12)
		__field(u32, alpha)
		__field(u32, cwnd)
		__field(u32, ssthresh)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->cause, cause, sizeof(__entry->cause));
		__entry->alpha = alpha;
		__entry->cwnd = cwnd;
		__entry->ssthresh = ssthresh;
	),
	TP_printk("sport=%u dport=%u cause=%s alpha_q30=%u cwnd=%u ssthresh=%u",
		  __entry->sport, __entry->dport, __entry->cause, __entry->alpha,
		  __entry->cwnd, __entry->ssthresh)
);

#endif /* _LOWQ_DCTCP_REF_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE dctcp_ref_trace
#include <trace/define_trace.h>
