/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences between kernels 6.1 to 7.3, and nothing else. Kbuild looks at the
 * kernel's headers and defines HAVE_...; no other file depends on the kernel version.
 */
#ifndef _LOWQ_CC_COMPAT_H
#define _LOWQ_CC_COMPAT_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/tcp.h>
#ifdef HAVE_TCP_ACCECN
#include <net/tcp_ecn.h>
#endif

/* Did the handshake agree on ECN in any form? */
static inline bool cc_ecn_any(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ECN_MODE
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

#define TCP_ACCECN_ACE_FAIL	(TCP_ACCECN_ACE_FAIL_SEND | TCP_ACCECN_ACE_FAIL_RECV)

/*
 * Is Accurate ECN still in use? The stack disables it permanently, and sends Not-ECT,
 * when the handshake or the path has garbled the ACE field.
 */
static inline bool cc_accecn_works(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	return tcp_ecn_mode_accecn(tp) && !(tp->accecn_fail_mode & TCP_ACCECN_ACE_FAIL);
#else
	return false;
#endif
}

/* Has it been in use, and is not any more? */
static inline bool cc_accecn_failed(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	return unlikely(tp->accecn_fail_mode & TCP_ACCECN_ACE_FAIL) && tcp_ecn_mode_accecn(tp);
#else
	return false;
#endif
}

/* Does the stack report clean data that is Not-ECT as CA_EVENT_ECN_NO_CE, too? */
static inline bool cc_reports_not_ect(void)
{
#ifdef HAVE_TCP_REPORTS_NOT_ECT
	return true;
#else
	return false;
#endif
}

/*
 * The SYN leaves as Not-ECT. The stack compares that with what the SYN-ACK says of the SYN, and
 * sends Not-ECT for good if they differ.
 */
static inline void cc_accecn_syn_is_not_ect(struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	tp->syn_ect_snt = INET_ECN_NOT_ECT;
#endif
}

/* From now on the stack sends Not-ECT, as if the handshake had shown a broken path. */
static inline void cc_accecn_give_up(struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN
	if (tcp_ecn_mode_accecn(tp))
		tcp_accecn_fail_mode_set(tp, TCP_ACCECN_ACE_FAIL_RECV);
#endif
}

/*
 * Bytes that arrived with the ECN field @ecn, according to the peer's AccECN options;
 * false if there were no such options.
 */
static inline bool cc_accecn_bytes(const struct tcp_sock *tp, u8 ecn, u32 *bytes)
{
#ifdef HAVE_TCP_ACCECN_OPTION
	*bytes = tp->delivered_ecn_bytes[ecn - 1];
	return tp->saw_accecn_opt == TCP_ACCECN_OPT_COUNTER_SEEN &&
	       !tcp_accecn_opt_fail_recv(tp);
#else
	*bytes = 0;
	return false;
#endif
}

/*
 * Does the ACK that in_ack_event is called for have an AccECN option? Without one, the stack's
 * count of bytes is only its guess.
 */
static inline bool cc_accecn_option(const struct tcp_sock *tp)
{
#ifdef HAVE_TCP_ACCECN_OPTION
	return tp->rx_opt.accecn;
#else
	return false;
#endif
}

/* Does the answer to this request agree on it? */
static inline bool cc_accecn_request(const struct request_sock *req)
{
#ifdef HAVE_TCP_ACCECN
	return tcp_rsk(req)->accecn_ok;
#else
	return false;
#endif
}

/* What the series for a kernel tree adds to the stack (docs/upstream.md) */
#ifndef HAVE_TCP_CONG_ECT_1
#define TCP_CONG_ECT_1		0
#endif

/*
 * Flags of a control whose handshake asks for Accurate ECN, with ECT(1) if @ect_1, there and,
 * where the stack can do that, afterwards.
 */
static inline u32 cc_accecn_flags(bool ect_1)
{
#ifdef HAVE_TCP_ACCECN
	return TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN |
	       (ect_1 ? TCP_CONG_ECT_1_NEGOTIATION | TCP_CONG_ECT_1 : 0);
#else
	return 0;
#endif
}

/*
 * "Data is sent with nothing in flight" is an event (.cwnd_event) in older kernels and a
 * callback in newer ones: name the function in the ops, and call it for the event.
 */
#ifdef HAVE_CWND_EVENT_TX_START
#define CC_CWND_EVENT_TX_START(_f)	.cwnd_event_tx_start = (_f),
#else
#define CC_CWND_EVENT_TX_START(_f)
#endif

static inline bool cc_event_is_tx_start(enum tcp_ca_event ev)
{
#ifdef HAVE_CWND_EVENT_TX_START
	return false;
#else
	return ev == CA_EVENT_TX_START;
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

/* Defines @_name, for .cong_control of the ops, as a call of @_f(sk, rs). */
#ifdef HAVE_CONG_CONTROL_ACK
#define CC_DEFINE_CONG_CONTROL(_name, _f)					\
	static void _name(struct sock *sk, u32 ack, int flag,			\
			  const struct rate_sample *rs)				\
	{									\
		_f(sk, rs);							\
	}
#else
#define CC_DEFINE_CONG_CONTROL(_name, _f)					\
	static void _name(struct sock *sk, const struct rate_sample *rs)	\
	{									\
		_f(sk, rs);							\
	}
#endif

/*
 * For .min_tso_segs of the ops: @_f(sk), the least number of segments of a TSO packet. Kernels with
 * the BBRv3 patch ask for the number itself instead: there CC_DEFINE_TSO_SEGS defines @_name.
 */
#ifdef HAVE_TSO_SEGS
/* As tcp_tso_autosize() */
static inline u32 cc_tso_autosize(const struct sock *sk, unsigned int mss_now, u32 least)
{
	u32 r = tcp_min_rtt(tcp_sk(sk)) >> READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_tso_rtt_log);
	unsigned long bytes = READ_ONCE(sk->sk_pacing_rate) >> READ_ONCE(sk->sk_pacing_shift);

	if (r < BITS_PER_TYPE(sk->sk_gso_max_size))
		bytes += sk->sk_gso_max_size >> r;
	return max_t(u32, min_t(unsigned long, bytes, sk->sk_gso_max_size) / mss_now, least);
}

#define CC_TSO_SEGS(_name, _f)	.tso_segs = (_name),
#define CC_DEFINE_TSO_SEGS(_name, _f)						\
	static u32 _name(struct sock *sk, unsigned int mss_now)			\
	{									\
		return cc_tso_autosize(sk, mss_now, _f(sk));			\
	}
#else
#define CC_TSO_SEGS(_name, _f)	.min_tso_segs = (_f),
#define CC_DEFINE_TSO_SEGS(_name, _f)
#endif

/* The established socket that a packet from saddr:sport came for, with a reference. */
static inline struct sock *cc_lookup4(struct net *net, __be32 saddr, __be16 sport,
				      __be32 daddr, __be16 dport, int dif)
{
#ifdef HAVE_LOOKUP_HASHINFO
	return __inet_lookup_established(net, net->ipv4.tcp_death_row.hashinfo, saddr, sport,
					 daddr, ntohs(dport), dif, 0);
#else
	return __inet_lookup_established(net, saddr, sport, daddr, ntohs(dport), dif, 0);
#endif
}

#if IS_ENABLED(CONFIG_IPV6)
static inline struct sock *cc_lookup6(struct net *net, const struct in6_addr *saddr,
				      __be16 sport, const struct in6_addr *daddr,
				      __be16 dport, int dif)
{
#ifdef HAVE_LOOKUP_HASHINFO
	return __inet6_lookup_established(net, net->ipv4.tcp_death_row.hashinfo, saddr, sport,
					  daddr, ntohs(dport), dif, 0);
#else
	return __inet6_lookup_established(net, saddr, sport, daddr, ntohs(dport), dif, 0);
#endif
}
#endif

/* The link's settings, for callers in a qdisc or a netdevice notifier. */
static inline int cc_get_link_ksettings(struct net_device *dev,
					struct ethtool_link_ksettings *link)
{
#ifdef HAVE_NETIF_GET_LINK_KSETTINGS
	return netif_get_link_ksettings(dev, link);
#else
	return __ethtool_get_link_ksettings(dev, link);
#endif
}

#ifndef HAVE_TCP_PLB
/* Protective load balancing, which this kernel lacks: nothing happens */
#define TCP_PLB_SCALE	8

struct tcp_plb_state {
};

static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb)
{
}

static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb,
					const int cong_ratio)
{
}

static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb)
{
}

static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb)
{
}
#endif

#ifndef kzalloc_obj
#define kzalloc_obj(obj, flags)	kzalloc(sizeof(obj), flags)
#endif

static inline void cc_hrtimer_setup(struct hrtimer *timer,
				    enum hrtimer_restart (*function)(struct hrtimer *),
				    clockid_t clock, enum hrtimer_mode mode)
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

#endif /* _LOWQ_CC_COMPAT_H */
