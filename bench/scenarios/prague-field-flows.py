# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(8, rate=run["rate"], rtt="20ms", queue=run.queue("20ms"), buffer=33554432)
    return net.measured(*run.longs(8, "r", duration="40s", within="20ms"), count=("20s", "40s"), bin_="10ms")


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
    plan=plan)
