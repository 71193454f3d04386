# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, Scenario

SCENARIO = Scenario(
    title="Prague's longest burst (burst_us) over DualPI2: 10 us to 1 ms, one and four flows",
    question="How long do packets wait, if segmentation offload may send longer bursts at once?",
    topology="""
 h1..hN  a long flow each, TSO  -- 10 Gb/s -- sw ==== rate ==== r
                                            (dualpi2, defaults)
                                             base RTT 20 ms""",
    rows=["prague"],
    variants=[*each(rate="200mbit", flows=[1, 4], tso=1, opts=["burst_us:10", "burst_us:250", "burst_us:1000"]),
              *each(rate="1000mbit", flows=4, tso=1, opts=["burst_us:10", "burst_us:250", "burst_us:1000"])],
    params={"counted": "from 6 s to 12 s", "tso": "with segmentation offloads"},
    shown=["utilisation", "delay_p50_us", "delay_p99_us", "marks"],
    conclusion="""The marks hold the queue at the step, whatever the longest burst.

        With long bursts fewer packets are marked.""",
    shell="""
	BUFFER=33554432
	dumbbell "$flows" 20ms
	bottleneck "$rate" 20ms
	serve r --cc "$CONTROL"
	line_rate 10gbit
	check_path h1 r "$rate" 20ms
	merging
	watch_queue "$rate" 6s 12s 10ms
	long_flows "$flows" 12s 20000
	watched
""")
