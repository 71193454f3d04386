/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A control can be chosen before the handshake is done: by setsockopt() during
 * connect(), or by a BPF program when connect() starts. The stack then calls .init at
 * once and not again, though ECN is agreed on later. These two functions make it call
 * .init again, where it calls that of other connections: when the handshake is done.
 */
#ifndef _LOWQ_CC_HANDSHAKE_H
#define _LOWQ_CC_HANDSHAKE_H

#include <net/tcp.h>

/* For .init: has no handshake shown what the peer can do? Then only ask for ECN. */
static inline bool cc_handshake_pending(const struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT);
}

/*
 * For the start of .in_ack_event and .cong_control: true for the ACK that ends the
 * handshake, which the stack reports before it calls .init. Return then.
 */
static inline bool cc_before_init(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (sk->sk_state == TCP_SYN_SENT ||
	    (sk->sk_state == TCP_SYN_RECV && !tcp_passive_fastopen(sk)))
		icsk->icsk_ca_initialized = 0;
	return !icsk->icsk_ca_initialized;
}

#endif /* _LOWQ_CC_HANDSHAKE_H */
