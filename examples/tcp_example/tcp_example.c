// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_example - a congestion control to start from: Reno with ECN, whose window loses "cut"
 * percent at a mark or a loss. docs/tutorial.md changes it and shows the queue.
 */
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <net/tcp.h>

static unsigned int cut = 50;
module_param(cut, uint, 0644);
MODULE_PARM_DESC(cut, "what a mark or a loss takes from the window, percent (1 to 90)");

/* The window after a mark or a loss, in packets; the stack asks at most once per round trip. */
static u32 example_ssthresh(struct sock *sk)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	u32 percent = clamp(READ_ONCE(cut), 1U, 90U);

	return max(cwnd - mult_frac(cwnd, percent, 100U), 2U);
}

static struct tcp_congestion_ops example __read_mostly = {
	.name		= "example",
	.owner		= THIS_MODULE,
	.flags		= TCP_CONG_NEEDS_ECN,
	.ssthresh	= example_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,	/* a packet more per round trip */
	.undo_cwnd	= tcp_reno_undo_cwnd,	/* after a loss that was none */
};

static int __init example_init(void)
{
	return tcp_register_congestion_control(&example);
}

static void __exit example_exit(void)
{
	tcp_unregister_congestion_control(&example);
}

module_init(example_init);
module_exit(example_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A congestion control to start from");
