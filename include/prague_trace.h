/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_prague: trace-cmd record -e prague, or
 * echo 1 > /sys/kernel/tracing/events/prague/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM prague

#if !defined(_LOWQ_PRAGUE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_PRAGUE_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

#include "prague_model.h"

/* The end of an EWMA period: alpha has its new value. */
TRACE_EVENT(prague_period,
	TP_PROTO(const struct sock *sk, const struct prague_model *m, u32 acked, u32 marked,
		 u32 rtt_virt, u32 rounds, u32 silent),
	TP_ARGS(sk, m, acked, marked, rtt_virt, rounds, silent),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, acked)
		__field(u32, marked)
		__field(u32, alpha)
		__field(u32, cwnd)
		__field(u32, frac)
		__field(u32, ssthresh)
		__field(u32, srtt_us)
		__field(u32, rtt_virt_us)
		__field(u32, rounds)
		__field(u32, silent)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->acked = acked;
		__entry->marked = marked;
		__entry->alpha = m->alpha >> (PRAGUE_Q - 30);
		__entry->cwnd = m->cwnd;
		__entry->frac = m->frac >> (PRAGUE_Q - 30);
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->srtt_us = tcp_sk(sk)->srtt_us >> 3;
		__entry->rtt_virt_us = rtt_virt >> 3;
		__entry->rounds = rounds;
		__entry->silent = silent;
	),
	TP_printk("sport=%u dport=%u acked=%u marked=%u alpha_q30=%u cwnd=%u frac_q30=%u ssthresh=%u srtt_us=%u rtt_virt_us=%u rounds=%u silent=%u",
		  __entry->sport, __entry->dport, __entry->acked, __entry->marked,
		  __entry->alpha, __entry->cwnd, __entry->frac, __entry->ssthresh,
		  __entry->srtt_us, __entry->rtt_virt_us, __entry->rounds,
		  __entry->silent)
);

/*
 * A reduction. cause is "ecn", "start" (marks that end slow start) or "loss". Both
 * windows are given as whole packets and a fraction (Q30).
 */
TRACE_EVENT(prague_cut,
	TP_PROTO(const struct sock *sk, const char *cause, const struct prague_model *before,
		 const struct prague_model *after),
	TP_ARGS(sk, cause, before, after),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, cause, 12)
		__field(u32, alpha)
		__field(u32, cwnd)
		__field(u32, frac)
		__field(u32, cwnd_after)
		__field(u32, frac_after)
		__field(u32, srtt_us)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->cause, cause, sizeof(__entry->cause));
		__entry->alpha = before->alpha >> (PRAGUE_Q - 30);
		__entry->cwnd = before->cwnd;
		__entry->frac = before->frac >> (PRAGUE_Q - 30);
		__entry->cwnd_after = after->cwnd;
		__entry->frac_after = after->frac >> (PRAGUE_Q - 30);
		__entry->srtt_us = tcp_sk(sk)->srtt_us >> 3;
	),
	TP_printk("sport=%u dport=%u cause=%s alpha_q30=%u cwnd=%u frac_q30=%u cwnd_after=%u frac_after_q30=%u srtt_us=%u",
		  __entry->sport, __entry->dport, __entry->cause, __entry->alpha,
		  __entry->cwnd, __entry->frac, __entry->cwnd_after,
		  __entry->frac_after, __entry->srtt_us)
);

/* A change of mode: "reno", which is final; reason: no-accecn, synack, ace, bleached or timeouts */
TRACE_EVENT(prague_mode,
	TP_PROTO(const struct sock *sk, const char *mode, const char *reason),
	TP_ARGS(sk, mode, reason),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, mode, 12)
		__array(char, reason, 12)
		__field(u32, srtt_us)
		__field(u32, min_rtt_us)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->mode, mode, sizeof(__entry->mode));
		strscpy(__entry->reason, reason, sizeof(__entry->reason));
		__entry->srtt_us = tcp_sk(sk)->srtt_us >> 3;
		__entry->min_rtt_us = tcp_min_rtt(tcp_sk(sk));
	),
	TP_printk("sport=%u dport=%u mode=%s reason=%s srtt_us=%u min_rtt_us=%u",
		  __entry->sport, __entry->dport, __entry->mode, __entry->reason,
		  __entry->srtt_us, __entry->min_rtt_us)
);

#endif /* _LOWQ_PRAGUE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE prague_trace
#include <trace/define_trace.h>
