# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    short = run.get("short", "10ms")
    queue = "lowq-tc ldcp --min 1p --max 40p --k 1000p --exact --rtt " + short if run.get("ramp") else run.queue(short)
    net = dumbbell(2, rate="100mbit", rtt=[short, run["other"]], queue=queue)
    net.stated("h2", "r", rate="100mbit", rtt=run["other"])
    return net.measured(*run.longs(2, "r", duration="160s", within="20ms"), count=("80s", "160s"), bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    return results.pair(80, "short", "long")


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
    metrics=metrics,
    plan=plan)
