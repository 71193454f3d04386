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
 * struct cc_gso - a limit on sk_gso_max_segs; all 0 before the first
 * @dev:	as the stack sets it, from the device
 * @set:	as the control has set it, or 0
 */
struct cc_gso {
	u16 dev;
	u16 set;
};

/*
 * Segments of a TSO packet where the window of @cwnd packets is to be spread over the RTT:
 * an eighth of it, but two, because what is sent as one segment the receiver's GRO holds
 * back for others that may follow.
 */
static inline u32 cc_gso_spread(u32 cwnd)
{
	return max(cwnd / 8, 2U);
}

/*
 * Limits TSO packets to @segs segments, at least 1; returns how many there may be. For
 * .min_tso_segs, which is called before each burst: another route may have set the field.
 */
static inline u32 cc_gso_limit(struct sock *sk, struct cc_gso *g, u32 segs)
{
	if (sk->sk_gso_max_segs != g->set)
		g->dev = sk->sk_gso_max_segs;
	g->set = min_t(u32, g->dev, max(segs, 1U));
	sk->sk_gso_max_segs = g->set;
	return g->set;
}

/* Takes the limit back, unless the field was set since. */
static inline void cc_gso_release(struct sock *sk, struct cc_gso *g)
{
	if (g->set && sk->sk_gso_max_segs == g->set)
		sk->sk_gso_max_segs = g->dev;
	g->set = 0;
}

#endif /* _LOWQ_CC_GSO_H */
