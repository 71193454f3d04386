/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_ldcp: trace-cmd record -e ldcp, or
 * echo 1 > /sys/kernel/tracing/events/ldcp/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ldcp

#if !defined(_LOWQ_LDCP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_LDCP_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

/*
 * An ACK was processed. clean, marked: packets that it confirms, without and with a
 * mark. cw: the window after it, packets in Q40.
 */
TRACE_EVENT(ldcp_ack,
	TP_PROTO(const struct sock *sk, u64 cw, u32 clean, u32 marked, u8 stage),
	TP_ARGS(sk, cw, clean, marked, stage),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u64, cw)
		__field(u32, clean)
		__field(u32, marked)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, srtt_us)
		__field(u8, stage)
		__field(u8, ca_state)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->cw = cw;
		__entry->clean = clean;
		__entry->marked = marked;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->srtt_us = tcp_sk(sk)->srtt_us >> 3;
		__entry->stage = stage;
		__entry->ca_state = inet_csk(sk)->icsk_ca_state;
	),
	TP_printk("sport=%u dport=%u stage=%u clean=%u marked=%u cw_q40=%llu cwnd=%u ssthresh=%u srtt_us=%u ca_state=%u",
		  __entry->sport, __entry->dport, __entry->stage, __entry->clean,
		  __entry->marked, __entry->cw, __entry->cwnd, __entry->ssthresh,
		  __entry->srtt_us, __entry->ca_state)
);

/*
 * The window was set for another cause than the per-ACK rule: "start", "first_rtt"
 * (its end), "full" (a full initial window confirmed), "marked" (fast start ends with
 * marks), "switched" (control changed mid-flow), "loss", "probe" (a tail loss probe
 * repaired a loss), "timeout", "undo" or "idle".
 */
TRACE_EVENT(ldcp_window,
	TP_PROTO(const struct sock *sk, const char *cause, u64 before, u64 after, u8 stage),
	TP_ARGS(sk, cause, before, after, stage),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__array(char, cause, 12)
		__field(u64, before)
		__field(u64, after)
		__field(u32, ssthresh)
		__field(u8, stage)
	),
	TP_fast_assign(
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		strscpy(__entry->cause, cause, sizeof(__entry->cause));
		__entry->before = before;
		__entry->after = after;
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->stage = stage;
	),
	TP_printk("sport=%u dport=%u cause=%s stage=%u before_q40=%llu cw_q40=%llu ssthresh=%u",
		  __entry->sport, __entry->dport, __entry->cause, __entry->stage,
		  __entry->before, __entry->after, __entry->ssthresh)
);

#endif /* _LOWQ_LDCP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ldcp_trace
#include <trace/define_trace.h>
