# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, long, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(10, rate="40mbit", rtt="10ms", queue=run.queue("10ms"), buffer=33554432)
    return net.measured(*(long(f"h{i}", "r", duration="60s", start=run.start(i, "1s"),
                               control={"from": run.control if i <= run["prague"] else "cubic", "to": "prague"})
                          for i in range(1, 11)), count=("20s", "60s"), bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    ours, theirs = hosts(1, results.run["prague"]), hosts(results.run["prague"] + 1, 10)
    return {"ratio": results.ratio(ours, theirs), "prague_p99_us": results.mean(ours, "delay_us.p99"),
            "cubic_p99_us": results.mean(theirs, "delay_us.p99")}


SCENARIO = Scenario(
    title="DualPI2's paper: ten flows, from all CUBIC to all Prague, 40 Mb/s, base RTT 10 ms",
    question="""DualPI2's paper: whatever the mix of ten flows, a scalable one and a classic one get about the same
        rate, and L4S packets wait about a millisecond. Is it so with Prague?""",
    topology=r"""
 h1..hP      prague  --\
                        sw ==== 40 Mb/s ==== r
 h(P+1)..h10 cubic   --/  (dualpi2, lowq-tc's defaults)
                           base RTT 10 ms""",
    rows=["prague"],
    variants=each(prague=[0, 1, 2, 5, 8, 9, 10]),
    params={"prague": "so many of the ten flows, the others are CUBIC",
            "counted": "from 20 s to 60 s; ratio is that of the mean rates, delays are the means of each flow's p99",
            "paper": """K. De Schepper et al., Dual Queue Coupled AQM, arXiv 2209.01078. Here: Prague and CUBIC of
                this kernel, not its DCTCP""",
            "paper, mixes of flows": """Prague : CUBIC, one Prague (prague=1): 1.00 (near 1 in each mix); Prague :
                CUBIC, five (prague=5): 1.00 (near 1 in each mix); Prague : CUBIC, nine (prague=9): 1.00 (near 1 in
                each mix); L4S delay at p99, five (prague=5): 0 to 2000 µs (1 to 2 ms)"""},
    words={"prague": "{} of 10 are Prague"},
    shown=["ratio", "prague_p99_us", "cubic_p99_us", "utilisation", "jain", "drops"],
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, text="Prague to CUBIC, of each flow"),
           goal("utilisation", row="prague", least=0.97)],
    conclusion="""Where nearly all flows are Prague's, the path holds few packets of each, and a CUBIC flow has its
        own queue.""",
    metrics=metrics,
    plan=plan)
