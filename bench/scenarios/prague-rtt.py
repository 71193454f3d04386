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
    goals=[goal("ratio", row="prague", most=1.3, variant={"other": "20ms", "opts": None},
                text="10 to 20 ms: the shorter RTT's rate"),
           goal("ratio", row="prague", most=6.9, variant={"opts": None},
                text="10 to 160 ms: at most 1.3 x the draft's own ratio")],
    conclusion="""Marks in bursts favour flows that reduce less often, so that the shorter RTT gets more than the
        draft's formula says.""",
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
