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
    goals=[goal("delay_p99_us", row="prague", most=9100, variant={"rate": "10mbit"},
                text="p99 delay at most that of the L4S team's Prague, 10 Mb/s"),
           goal("delay_p99_us", row="prague", most=3800, variant={"rate": "40mbit"}, text="the same at 40 Mb/s"),
           goal("delay_p99_us", row="prague", most=1140, variant={"rate": "400mbit"}, text="the same at 400 Mb/s"),
           goal("utilisation", row="prague", least=0.98, text="utilisation >= 98 %"),
           goal("jain", row="prague", least=0.95, text="Jain >= 0.95")],
    answer="""At p99 packets of eight Prague flows wait {range delay_p99_us prague rate=10mbit} at 10 Mb/s, {range
        delay_p99_us prague rate=40mbit} at 40 and {range delay_p99_us prague rate=400mbit} at 400, those of CUBIC
        {range delay_p99_us cubic_l4s}.""",
    conclusion="""1 or 2 ms is how long packets wait from 40 Mb/s on, a tenth as long as with CUBIC, and the shares are
        equal.

        9 ms is what they wait at 10 Mb/s, when all flows grow by a packet in the same round: the path holds 16 packets,
        two of each flow, which is the smallest window.""",
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
