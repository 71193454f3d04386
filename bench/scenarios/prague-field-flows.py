# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Eight flows at once over DualPI2, 10 to 400 Mb/s, base RTT 20 ms",
    question="With several flows on a slow link, how long do packets wait, and does each flow get its share?",
    topology="""
 h1..h8  a long flow each  -- sw ==== rate ==== r
                             (dualpi2, lowq-tc's defaults)
                              base RTT 20 ms""",
    rows=["prague", "cubic_l4s"],
    reference="cubic_l4s",
    variants=each(rate=["10mbit", "40mbit", "400mbit"]),
    params={"counted": "from 20 s to 40 s"},
    shown=["utilisation", "delay_mean_us", "delay_p99_us", "jain", "drops"],
    goals=[goal("delay_p99_us", row="prague", most=0.4, median=0.1, beside=["cubic_l4s"]),
           goal("utilisation", row="prague", least=0.98),
           goal("jain", row="prague", least=0.95)],
    conclusion="""Packets wait a small part of what CUBIC's do, and the shares are equal.

        On the slowest link all flows grow by a packet in the same round, and the path holds two of each.""",
    shell="""
	BUFFER=33554432
	dumbbell 8 20ms
	bottleneck "$rate" 20ms
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" 20ms
	watch_queue "$rate" 20s 40s 10ms
	long_flows 8 40s 20000
	watched
""")
