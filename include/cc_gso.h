/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many segments the stack puts into one TSO packet, where a control limits it. Only
 * sk_gso_max_segs limits the stack's own choice (1 ms at the pacing rate, more below an
 * RTT of 3 ms), so that is where the limit goes.
 */
#ifndef _LOWQ_CC_GSO_H
#define _LOWQ_CC_GSO_H

#include <net/tcp.h>

/**
 * struct cc_gso - a limit on sk_gso_max_segs; starts as zeros
 * @dev:	sk_gso_max_segs as the stack has set it from the device, segments
 * @set:	sk_gso_max_segs as the control has set it, segments; 0: no limit is set
 */
struct cc_gso {
	u16 dev;
	u16 set;
};

/*
 * Segments per TSO packet for a window of @cwnd packets that is paced over the RTT: an
 * eighth of the window, at least two. The stack sets PSH only on TSO packets of two or more
 * segments; without PSH, GRO at the receiver may hold a segment for a tick.
 */
static inline u32 cc_gso_spread(u32 cwnd)
{
	return max(cwnd / 8, 2U);
}

/*
 * Limits TSO packets to @segs segments, 1 or more; returns how many there may be. For
 * .min_tso_segs, which is called before each burst: another route may have set the field.
 */
static inline u32 cc_gso_limit(struct sock *sk, struct cc_gso *g, u32 segs)
{
	if (unlikely(sk->sk_gso_max_segs != g->set))
		g->dev = sk->sk_gso_max_segs;
	g->set = min_t(u32, g->dev, segs);
	sk->sk_gso_max_segs = g->set;
	return g->set;
}

/* Restores the device's limit, unless somebody else has set the field since. */
static inline void cc_gso_release(struct sock *sk, struct cc_gso *g)
{
	if (g->set && sk->sk_gso_max_segs == g->set)
		sk->sk_gso_max_segs = g->dev;
	g->set = 0;
}

#endif /* _LOWQ_CC_GSO_H */
