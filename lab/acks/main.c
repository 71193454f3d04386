// SPDX-License-Identifier: GPL-2.0
/*
 * lowq_acks - the tracepoint lowq:lowq_ack, for each ACK that a sender gets: with more than
 * tcp:tcp_probe has, which it is called by, and the exact time.
 *
 * tcp_probe comes before the ACK is processed, so this is the state that the ACK has found. The
 * next ACK shows what it has changed.
 */
#include <linux/inet.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

#define CREATE_TRACE_POINTS
#include "acks_trace.h"

static struct tracepoint *tcp_probe;

static void fill_addresses(struct ack_seen *seen, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		seen->source.sin6_family = AF_INET6;
		seen->source.sin6_port = inet->inet_sport;
		seen->source.sin6_addr = inet6_sk(sk)->saddr;
		seen->dest.sin6_family = AF_INET6;
		seen->dest.sin6_port = inet->inet_dport;
		seen->dest.sin6_addr = sk->sk_v6_daddr;
		return;
	}
#endif
	*(struct sockaddr_in *)&seen->source = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = inet->inet_sport,
		.sin_addr.s_addr = inet->inet_saddr,
	};
	*(struct sockaddr_in *)&seen->dest = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = inet->inet_dport,
		.sin_addr.s_addr = inet->inet_daddr,
	};
}

static u64 delivery_bps(const struct tcp_sock *tp)
{
	u64 bits = 8ULL * tp->rate_delivered * tp->mss_cache;

	return tp->rate_interval_us ? div_u64(bits * USEC_PER_SEC, tp->rate_interval_us) : 0;
}

static void ack_arrives(void *data, struct sock *sk, struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	unsigned long pacing = READ_ONCE(sk->sk_pacing_rate);
	struct ack_seen seen = { .at = ktime_get_ns() };

	/* a socket with nothing in flight does not send */
	if (!tp->packets_out)
		return;
	fill_addresses(&seen, sk);
	seen.acked = tp->bytes_acked;
	seen.cwnd = tcp_snd_cwnd(tp);
	seen.ssthresh = tp->snd_ssthresh;
	seen.srtt_us = tp->srtt_us >> 3;
	seen.pacing_bps = pacing == ~0UL ? 0 : 8ULL * pacing;
	seen.delivery_bps = delivery_bps(tp);
	seen.inflight = tcp_packets_in_flight(tp);
	seen.delivered = tp->delivered;
	seen.marked = tp->delivered_ce;
	seen.retrans = tp->total_retrans;
	trace_lowq_ack(&seen);
}

static void find(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "tcp_probe"))
		tcp_probe = tp;
}

static int __init acks_init(void)
{
	for_each_kernel_tracepoint(find, NULL);
	if (!tcp_probe)
		return -ENOENT;
	return tracepoint_probe_register(tcp_probe, ack_arrives, NULL);
}

static void __exit acks_exit(void)
{
	tracepoint_probe_unregister(tcp_probe, ack_arrives, NULL);
	tracepoint_synchronize_unregister();
}

module_init(acks_init);
module_exit(acks_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A tracepoint for each ACK, with its sender's state");
