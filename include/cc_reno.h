/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reno under a name of its own, for connections that lack what their control needs, such as ECN.
 * It is never registered: the control switches a connection to it.
 */
#ifndef _LOWQ_CC_RENO_H
#define _LOWQ_CC_RENO_H

#include <net/inet_ecn.h>
#include <net/tcp.h>

/*
 * Defines @_cc ## _reno for the control @_cc; more callbacks may follow. A socket that is connected
 * again after connect(AF_UNSPEC), before which the stack calls .release, starts with @_cc.
 */
#define CC_DEFINE_RENO(_cc, ...)						\
	static void _cc ## _reno_release(struct sock *sk)			\
	{									\
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &(_cc));			\
	}									\
	static struct tcp_congestion_ops _cc ## _reno __read_mostly = {		\
		.release	= _cc ## _reno_release,				\
		.cong_avoid	= tcp_reno_cong_avoid,				\
		.ssthresh	= tcp_reno_ssthresh,				\
		.undo_cwnd	= tcp_reno_undo_cwnd,				\
		.owner		= THIS_MODULE,					\
		.name		= #_cc "_reno",					\
		__VA_ARGS__							\
	}

/* TCP_CONG_NEEDS_ECN made the socket send ECT: that ends, too. */
static inline void cc_use_reno(struct sock *sk, const struct tcp_congestion_ops *reno)
{
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, reno);
	INET_ECN_dontxmit(sk);
}

#endif /* _LOWQ_CC_RENO_H */
