/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of roce_rcm: trace-cmd record -e roce_rcm, or
 * echo 1 > /sys/kernel/tracing/events/roce_rcm/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM roce_rcm

#if !defined(_LOWQ_ROCE_RCM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_ROCE_RCM_TRACE_H

#include <linux/in6.h>
#include <linux/tracepoint.h>

/* Notification point: a CNP for queue pair @qp of @to is sent. */
TRACE_EVENT(roce_rcm_cnp_sent,
	TP_PROTO(const struct in6_addr *to, u32 qp),
	TP_ARGS(to, qp),
	TP_STRUCT__entry(
		__field_struct(struct in6_addr, to)
		__field(u32, qp)
	),
	TP_fast_assign(
		__entry->to = *to;
		__entry->qp = qp;
	),
	TP_printk("to=%pI6c qp=%u", &__entry->to, __entry->qp)
);

/* Reaction point: a CNP for queue pair @qp has cut its rate, in bit/s. */
TRACE_EVENT(roce_rcm_cut,
	TP_PROTO(const struct in6_addr *addr, u32 qp, u64 before, u64 rate, u32 alpha,
		 u32 queued),
	TP_ARGS(addr, qp, before, rate, alpha, queued),
	TP_STRUCT__entry(
		__field_struct(struct in6_addr, addr)
		__field(u32, qp)
		__field(u64, before)
		__field(u64, rate)
		__field(u32, alpha)
		__field(u32, queued)
	),
	TP_fast_assign(
		__entry->addr = *addr;
		__entry->qp = qp;
		__entry->before = before;
		__entry->rate = rate;
		__entry->alpha = alpha;
		__entry->queued = queued;
	),
	TP_printk("addr=%pI6c qp=%u before_bps=%llu rate_bps=%llu alpha_q30=%u queued=%u",
		  &__entry->addr, __entry->qp, __entry->before, __entry->rate, __entry->alpha,
		  __entry->queued)
);

/* Reaction point: queue pair @qp is back at its line's rate and no longer paced. */
TRACE_EVENT(roce_rcm_free,
	TP_PROTO(const struct in6_addr *addr, u32 qp),
	TP_ARGS(addr, qp),
	TP_STRUCT__entry(
		__field_struct(struct in6_addr, addr)
		__field(u32, qp)
	),
	TP_fast_assign(
		__entry->addr = *addr;
		__entry->qp = qp;
	),
	TP_printk("addr=%pI6c qp=%u", &__entry->addr, __entry->qp)
);

#endif /* _LOWQ_ROCE_RCM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../roce
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE roce_rcm_trace
#include <trace/define_trace.h>
