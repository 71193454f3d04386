/* SPDX-License-Identifier: GPL-2.0 */
/* The stack's pacing of a socket, which a control can turn on and off. sch_fq paces in any case. */
#ifndef _LOWQ_CC_PACE_H
#define _LOWQ_CC_PACE_H

#include <net/sock.h>

/* Packets leave at sk_pacing_rate: by sch_fq if it is the qdisc, else by the stack. */
static inline void cc_pace_on(struct sock *sk)
{
	if (unlikely(READ_ONCE(sk->sk_pacing_status) == SK_PACING_NONE))
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/*
 * Stops the stack's pacing, so that packets leave as those of the stack's controls: only sch_fq
 * paces these. Paced packets would have an advantage over others at a policer, where bursts are
 * lost more often. A rate that the program has set stays.
 */
static inline void cc_pace_off(struct sock *sk)
{
	if (READ_ONCE(sk->sk_pacing_status) == SK_PACING_NEEDED &&
	    READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

#endif /* _LOWQ_CC_PACE_H */
