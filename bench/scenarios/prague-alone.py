# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Prague alone over DualPI2: 10 to 1000 Mb/s, 2 to 40 ms, one and four flows",
    question="Is the link full, and how long do packets wait, once the flows have settled?",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
                             (dualpi2, defaults)
                              base RTT rtt""",
    rows=["prague"],
    variants=[*each(rate=["10mbit", "100mbit", "1000mbit"], rtt=["2ms", "10ms", "40ms"], flows=[1, 4]),
              *each(rate="10mbit", rtt="2ms", flows=[1, 4], opts="fractional:1"),
              *each(rate="10mbit", rtt="2ms", flows=4, step="300us", opts="fractional:1"),
              *each(rate="10mbit", rtt=["10ms", "40ms"], flows=4, step="300us"),
              *each(rate="10mbit", rtt="40ms", flows=1, opts="rtt_target_us:100000,rtt_rounds:100"),
              *each(rate="1000mbit", rtt="40ms", flows=1, opts="fast_rounds:0")],
    params={"queue": "dualpi2 with the defaults of the kernel, except step (default 1 ms; at 10 Mb/s the time of 1.5 "
                     "packets)",
            "counted": "the second half of 40 s, at 1000 Mb/s of 24 s"},
    words={"step": "step {}"},
    shown=["utilisation", "delay_p50_us", "delay_p99_us", "marks", "drops", "jain"],
    goals=[goal("delay_p99_us", row="prague", most=1500, text="p99 of the queueing delay <= 1.5 ms"),
           goal("utilisation", row="prague", least=0.98, variant={"rtt": "2ms"}, text="utilisation >= 98 % at 2 ms"),
           goal("utilisation", row="prague", least=0.98, variant={"rtt": "10ms"}, text="utilisation >= 98 % at 10 ms"),
           goal("utilisation", row="prague", least=0.95, variant={"rtt": "40ms"}, text="utilisation >= 95 % at 40 ms"),
           goal("drops", row="prague", most=0, text="no loss")],
    answer="""Prague uses {range utilisation prague rate=100mbit} of a link of 100 Mb/s with a queueing delay of {range
        delay_p99_us prague rate=100mbit} at p99.""",
    conclusion="""1 ms, the step threshold, is how long packets wait at 100 and 1000 Mb/s, and no longer.

        1.2 ms is the time of one packet at 10 Mb/s, and the threshold is the time of 1.5, for packets that find another
        one (prague-slow): with 1 ms for all, Prague gets a tenth of CUBIC's rate beside it (prague-cubic).

        {range delay_p99_us prague rate=10mbit flows=1 opts= step=} at p99 is what packets of one flow wait at 10 Mb/s,
        two or three packets: the window grows by whole packets, and its mark is heard a round later
        (prague-field-links, where CUBIC's wait 27 ms at 20 ms).

        2.6 ms at p99 is the wait of four perfectly paced flows with random phases at 98 % load. A threshold of 300 us,
        alone on the link, comes closest to 1.5 ms, and leaves 95 to 98 % of the rate.

        {range utilisation prague rate=10mbit rtt=10ms flows=4 step=} of 10 Mb/s is used by four flows at 10 ms, and
        {range utilisation prague rate=10mbit rtt=10ms flows=4 step=300us} with the threshold of 300 us: all grow by a
        packet in the same round (prague-field-flows).""",
    shell="""
	local seconds=40

	[ "$rate" != 1000mbit ] || seconds=24
	# 1000 Mb/s times 40 ms and what slow start adds, in flight
	BUFFER=33554432
	dumbbell "$flows" "$rtt"
	QUEUE+=${step:+ --step $step}
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" "$((seconds / 2))s" "${seconds}s" 10ms
	long_flows "$flows" "${seconds}s" 20000
	watched
""")
