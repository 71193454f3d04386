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
                text="the defaults: link used"),
           goal("jain", row="ldcp", least=0.95, median=0.99, variant={"alpha": 512, "beta": 256},
                text="the defaults: Jain")],
    conclusion="""alpha / beta sets the length of the queue: a larger ratio makes a longer queue, larger steps a less
        steady one.

        Above the largest beta that fills the link, the queue runs empty.""",
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
