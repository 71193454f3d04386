// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_example as a BPF program: Reno with ECN, whose window loses an eighth at a mark or a loss.
 * devel/qemu-plan --bpf compiles it and runs a plan with it.
 */
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define TCP_CONG_NEEDS_ECN	2

/* What is used of the kernel's types; where a member is, the kernel's BTF says. */
struct sock {
};

struct tcp_sock {
	__u32 snd_cwnd;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 flags;
	char name[16];
};

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* The window after a mark or a loss, in packets; the stack asks at most once per round trip. */
SEC("struct_ops/example_ssthresh")
__u32 BPF_PROG(example_ssthresh, struct sock *sk)
{
	__u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
	__u32 less = cwnd - cwnd / 8;

	return less < 2 ? 2 : less;
}

/* A packet more per round trip */
SEC("struct_ops/example_cong_avoid")
void BPF_PROG(example_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

/* After a loss that was none */
SEC("struct_ops/example_undo_cwnd")
__u32 BPF_PROG(example_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops example = {
	.ssthresh	= (void *)example_ssthresh,
	.cong_avoid	= (void *)example_cong_avoid,
	.undo_cwnd	= (void *)example_undo_cwnd,
	.flags		= TCP_CONG_NEEDS_ECN,
	.name		= "bpf_example",
};

char _license[] SEC("license") = "GPL";
