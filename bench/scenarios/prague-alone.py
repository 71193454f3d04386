# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    seconds = 24 if run["rate"] == "1000mbit" else 40
    step = f" --step {run['step']}" if run.get("step") else ""
    # 1000 Mb/s times 40 ms and what slow start adds, in flight
    net = dumbbell(run["flows"], rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]) + step, buffer=33554432)
    return net.measured(*run.longs(run["flows"], "r", duration=f"{seconds}s", within="20ms"),
                        count=(f"{seconds // 2}s", f"{seconds}s"), bin_="10ms")


SCENARIO = Scenario(
    title="Prague alone over DualPI2: 10 to 1000 Mb/s, 2 to 40 ms, one and four flows",
    question="Is the link full, and how long do packets wait, once the flows have settled?",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
                             (dualpi2, defaults)
                              base RTT rtt""",
    rows=["prague"],
    variants=[*each(rate=["10mbit", "100mbit", "1000mbit"], rtt=["2ms", "10ms", "40ms"], flows=[1, 4]),
              *each(rate="10mbit", rtt=["10ms", "40ms"], flows=4, step="300us"),
              *each(rate="10mbit", rtt="40ms", flows=1, opts="rtt_target_us:100000,rtt_rounds:100"),
              *each(rate="100mbit", rtt="20ms", flows=20),
              *each(rate="1000mbit", rtt="40ms", flows=1, opts="strict:1")],
    params={"queue": "dualpi2 with the defaults of the kernel, except step (default 1 ms; at 10 Mb/s the time of 1.5 "
                     "packets)",
            "counted": "the second half of 40 s, at 1000 Mb/s of 24 s"},
    words={"step": "step {}"},
    shown=["utilisation", "delay_p50_us", "delay_p99_us", "marks", "drops", "jain"],
    goals=[goal("delay_p99_us", row="prague", most=4500, median=1500),
           goal("utilisation", row="prague", least=0.95, median=0.98),
           goal("drops", row="prague", most=0)],
    conclusion="""Packets wait as long as the step at fast links, and a packet or two more at slow ones.

        At slow links windows grow by whole packets, and the mark is heard a round later.""",
    plan=plan)
