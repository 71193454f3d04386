/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LOWQ_ACKS_H
#define _LOWQ_ACKS_H

#include <linux/in6.h>
#include <linux/types.h>

/**
 * struct ack_seen - an ACK, and the sender's state that it has found
 * @at:			CLOCK_MONOTONIC, ns
 * @source, @dest:	the sender and its peer; in_addr or in6_addr, with ports
 * @acked:		bytes, before it
 * @cwnd, @ssthresh:	packets
 * @srtt_us:		us
 * @pacing_bps:		bit/s
 * @delivery_bps:	bit/s, of the latest sample of the rate
 * @inflight:		packets
 * @delivered, @marked:	packets so far; those whose CE was heard of
 * @retrans:		packets so far
 */
struct ack_seen {
	u64 at, acked;
	struct sockaddr_in6 source, dest;
	u32 cwnd, ssthresh, srtt_us;
	u64 pacing_bps, delivery_bps;
	u32 inflight, delivered, marked, retrans;
};

#endif
