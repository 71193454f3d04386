# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Prague flows of different RTTs over DualPI2, 100 Mb/s",
    question="After 500 rounds, how much more does the flow with the shorter RTT get?",
    topology=r"""
 h1  prague, short  --\
                       sw ==== 100 Mb/s ==== r
 h2  prague, other  --/  (dualpi2, or a ramp)""",
    rows=["prague"],
    variants=[*each(other=["20ms", "80ms", "160ms"]),
              *each(short="20ms", other="80ms"),
              *each(other="80ms", opts=["rtt_limit_us:65000", "rtt_mode:1,rtt_limit_us:25000"]),
              *each(other="20ms", opts="rtt_mode:0"),
              *each(other=["20ms", "80ms"], ramp=1)],
    params={"rate": "100mbit",
            "ramp": "instead of the step of 1 ms, RED on the queue itself, with marks from none at 1 packet to all at "
                    "40",
            "draft": "for 10 and 80 ms its two functions, max(srtt, 25 ms) and srtt + 25 ms, give ratios of 2.6 and "
                     "3.1, for 10 and 160 ms 6.4 and 5.3, for 20 and 80 ms 3.2 and 2.3; 1.3 times what srtt + 25 ms "
                     "gives is 4, 6.9 and 3",
            "short": "the base RTT of h1's flow; 10 ms if not stated",
            "counted": "from 80 s to 160 s"},
    words={"ramp": "ramp"},
    shown=["ratio", "short_mbps", "long_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague", most=1.3, variant={"other": "20ms"},
                text="10 ms : 20 ms <= 1.3 (heistp/l4s-tests: 1.9)"),
           goal("ratio", row="prague", most=4, variant={"other": "80ms", "short": None},
                text="10 ms : 80 ms <= 1.3 x the draft's own ratio (until 0.3: <= 3)"),
           goal("ratio", row="prague", most=6.9, variant={"other": "160ms"},
                text="10 ms : 160 ms <= 1.3 x the draft's own ratio (heistp/l4s-tests: 29)"),
           goal("ratio", row="prague", most=3, variant={"short": "20ms"},
                text="20 ms : 80 ms <= 1.3 x the draft's own ratio (heistp/l4s-tests: 7.2)")],
    answer="""The flow with 10 ms gets {range ratio prague other=20ms opts= ramp=} times the rate of one with 20 ms, and
        {range ratio prague short= other=80ms opts= ramp=} times that of one with 80 ms; where marks begin gradually (ramp),
        {range ratio prague other=20ms ramp=1} and {range ratio prague other=80ms ramp=1} times.""",
    conclusion="""{range ratio prague short= other=80ms opts= ramp=} times the rate is what a flow of 10 ms keeps beside
        one of 80 ms by default (srtt + 25 ms), where the draft's formula gives 3.0, {range ratio prague other=160ms}
        beside one of 160 ms (5.3), and {range ratio prague short=20ms} one of 20 ms beside 80 ms (2.3): marks in bursts
        favour flows that reduce less often (section 3.4 of the draft). A ramp changes that little ({range ratio prague
        other=80ms ramp=1}).

        {range ratio prague opts=rtt_limit_us:65000} times with rtt_limit_us=65000, at the cost of CUBIC at long RTTs
        (prague-field-cubic).""",
    shell="""
	dumbbell 2 "${short:=10ms}" "$other"
	[ -z "${ramp:-}" ] || QUEUE="ldcp --min 1p --max 40p --k 1000p --exact"
	bottleneck 100mbit "$short"
	serve r --cc prague
	check_path h1 r 100mbit "$short"
	check_path h2 r 100mbit "$other"
	watch_queue 100mbit 80s 160s 10ms
	long_flows 2 160s 20000
	watched
	metric short_mbps "$(of 1 '.payload_bytes * 8 / 1e6 / 80')"
	metric long_mbps "$(of 2 '.payload_bytes * 8 / 1e6 / 80')"
	metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
""")
