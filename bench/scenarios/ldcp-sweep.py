# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

STEPS = [128, 256, 512, 1024]

SCENARIO = Scenario(
    title="LDCP's alpha and beta, over rates, RTTs and numbers of flows",
    question="""The draft leaves alpha and beta open: which pair keeps the link full, the queue short and steady, and
        the shares equal?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
                             (WRED: K_min = BDP/16, K_max = BDP/2)
                              base RTT""",
    rows=["ldcp"],
    variants=each(each(path=["10gbit,100us,2", "10gbit,100us,8", "10gbit,100us,32", "1gbit,1ms,8", "40gbit,50us,8"]),
                  each(alpha=STEPS, beta=STEPS) + each(alpha=512, beta=256, tso=1)),
    params={"tso": TSO.format("the rate of the path"),
            "path": "rate, base RTT, flows", "alpha, beta": "in 1/1024 packets, as the parameters",
            "counted": "1000 RTTs, from the 500th (1 ms: the 200th) on"},
    words={"path": "{}, {}, {} flows"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "jain", "mark_fraction", "drops"],
    goals=[goal("utilisation", row="ldcp", least=0.99, variant={"alpha": 512, "beta": 256},
                text="the defaults: utilisation >= 99 %"),
           goal("jain", row="ldcp", least=0.99, variant={"alpha": 512, "beta": 256},
                text="the defaults: Jain >= 0.99")],
    answer="""With the defaults alpha 1/2 and beta 1/4 the link is used to {range utilisation ldcp alpha=512 beta=256},
        the mean queue is {range qlen_mean_pkts ldcp alpha=512 beta=256} and Jain's index {range jain ldcp alpha=512
        beta=256}.""",
    conclusion="""alpha / beta sets the length of the queue: twice the ratio makes a longer queue, and twice both steps
        a less steady one.

        Shares are even with 32 flows, too, whose windows are a few packets: below one packet the increase is alpha in
        all of these runs (the parameter step).

        1/2 is the largest beta with which the link is full: above it the queue runs empty.

        7 to 15 packets is the queue of the defaults, 1/2 and 1/4; 1 and 1/8 make it steadier and 9 to 25 packets long
        (dc-field-bursts and ldcp-arrive show what that is good for).

        With offloads (TSO) the defaults keep the same queue.""",
    shell="""
	local rate rtt flows from us

	IFS=, read -r rate rtt flows <<<"$path"
	parameter alpha="$alpha" beta="$beta"
	us=${rtt%us} from=500
	[ "$rtt" != 1ms ] || us=1000 from=200
	dumbbell "$flows" "$rtt"
	[ -z "${tso:-}" ] || line_rate "$rate"
	bottleneck "$rate" "$rtt"
	serve r --cc ldcp
	check_path h1 r "$rate" "$rtt"
	merging
	watch_queue "$rate" "$((from * us))us" "$(((from + 1000) * us))us"
	long_flows "$flows" "$(((from + 1020) * us))us"
	watched
	# 160 plots over time would show nothing that the table does not
	rm "$OUT"/queue.csv "$OUT"/flows.csv
""")
