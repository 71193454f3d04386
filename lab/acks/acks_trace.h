/* SPDX-License-Identifier: GPL-2.0 */
/* The tracepoint of lowq_acks. Its text is a line of CSV. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lowq

#if !defined(_LOWQ_ACKS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LOWQ_ACKS_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>

#include "acks.h"

TRACE_EVENT(lowq_ack,
	TP_PROTO(const struct ack_seen *seen),
	TP_ARGS(seen),
	TP_STRUCT__entry(
		__field_struct(struct ack_seen, seen)
	),
	TP_fast_assign(
		__entry->seen = *seen;
	),
	TP_printk("%llu,%pISpc>%pISpc,%llu,%u,%u,%u,%llu,%llu,%u,%u,%u,%u",
		  __entry->seen.at, &__entry->seen.source, &__entry->seen.dest,
		  __entry->seen.acked, __entry->seen.cwnd, __entry->seen.ssthresh,
		  __entry->seen.srtt_us, __entry->seen.pacing_bps, __entry->seen.delivery_bps,
		  __entry->seen.inflight, __entry->seen.delivered, __entry->seen.marked,
		  __entry->seen.retrans)
);

#endif /* _LOWQ_ACKS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE acks_trace
#include <trace/define_trace.h>
