/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A control can be chosen before the handshake is done: by setsockopt() during
 * connect(), or by a BPF program when connect() starts. The stack then calls .init at
 * once and not again, although ECN is negotiated later. With these two functions .init
 * is called again when the handshake is done, as for every other connection.
 */
#ifndef _LOWQ_CC_HANDSHAKE_H
#define _LOWQ_CC_HANDSHAKE_H

#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "cc_compat.h"

/* For .init: is the handshake still to come? If so, only ask for ECN. */
static inline bool cc_handshake_pending(const struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT);
}

/*
 * To be called first in .in_ack_event and .cong_control. Returns true for the ACK that
 * ends the handshake, which the stack reports before it calls .init: ignore that ACK. Releases
 * what an earlier .init has allocated.
 */
static inline bool cc_before_init(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u8 state = sk->sk_state;

	if (unlikely(state == TCP_SYN_SENT ||
		     (state == TCP_SYN_RECV && !tcp_passive_fastopen(sk)))) {
		if (icsk->icsk_ca_initialized && icsk->icsk_ca_ops->release)
			icsk->icsk_ca_ops->release(sk);
		icsk->icsk_ca_initialized = 0;
	}
	return !icsk->icsk_ca_initialized;
}

/*
 * To be called first in .set_state. The SYN of a control that needs ECN is ECT. If it was lost,
 * the path perhaps drops ECT: retransmit it as Not-ECT. The stack only clears the TCP flags
 * that ask for ECN (tcp_ecn_fallback): its SYNs would still be ECT, and all be dropped.
 */
static inline void cc_syn_timed_out(struct sock *sk)
{
	if (unlikely(sk->sk_state == TCP_SYN_SENT)) {
		INET_ECN_dontxmit(sk);
		cc_accecn_syn_is_not_ect(tcp_sk(sk));
	}
}

#endif /* _LOWQ_CC_HANDSHAKE_H */
