# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(run["flows"], rate=run["rate"], rtt="20ms", queue=run.queue("20ms"), line="10gbit",
                   offloads=run.offloads, buffer=33554432)
    return net.measured(*run.longs(run["flows"], "r", duration="12s", within="20ms"), count=("6s", "12s"), bin_="10ms")


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
    plan=plan)
