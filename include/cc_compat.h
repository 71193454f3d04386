/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels 6.1 and 7.3, and nothing else. Kbuild looks at the
 * kernel's headers and defines HAVE_...; no other file asks for a version.
 */
#ifndef _LOWQ_CC_COMPAT_H
#define _LOWQ_CC_COMPAT_H

#include <net/tcp.h>
#ifdef HAVE_TCP_ACCECN
#include <net/tcp_ecn.h>
#endif

/* Did the handshake agree on ECN in any form? */
static inline bool cc_ecn_any(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	return tcp_ecn_mode_any(tp);
#else
	return tp->ecn_flags & TCP_ECN_OK;
#endif
}

/* ... on Accurate ECN, whose ACKs count marks exactly? */
static inline bool cc_ecn_accecn(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	return tcp_ecn_mode_accecn(tp);
#else
	return false;
#endif
}

/* An ACK at once, of everything up to @rcv_nxt. */
static inline void cc_send_ack(struct sock *sk, u32 rcv_nxt)
{
#ifdef HAVE_TCP_SEND_ACK_FLAGS
	__tcp_send_ack(sk, rcv_nxt, 0);
#else
	__tcp_send_ack(sk, rcv_nxt);
#endif
}

#endif /* _LOWQ_CC_COMPAT_H */
