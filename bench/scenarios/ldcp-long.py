# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(run["flows"], rate="10gbit", rtt="100us", queue=run.queue("100us", k=run["k"]),
                   line="10gbit" if run.offloads else "", offloads=run.offloads)
    net.stated("h1", "r", rate="10gbit", rtt="100us", mark_at=run.step(run["k"]))
    net.merging("r")
    return net.plan(*run.longs(run["flows"], "r", duration="410ms"), observe=[("sw", "r")], count=("100ms", "400ms"))


SCENARIO = Scenario(
    title="Long LDCP flows at 10 Gb/s, base RTT 100 us",
    question="""Does a window that moves with each ACK hold the queue steadier and shorter than DCTCP's, and the link as
        full?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== 10 Gb/s ==== r
                             (ldcp: WRED; dctcp: RED step at K)
                              base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(flows=[2, 8, 32], k=65) + each(flows=[2, 8, 32], k=12) + each(flows=[2, 8], k=65, tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "rate": "10gbit", "rtt": "100us",
            "K of dctcp, packets": "65 as its authors recommend; 12 as RFC 8257 computes", "counted": "0.1 s to 0.4 s"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "marks", "drops",
           "jain"],
    goals=[goal("qlen_stddev_pkts", row="ldcp", most=0.5, beside=["dctcp"]),
           goal("utilisation", row="ldcp", least=0.995, beside=["dctcp"]),
           goal("jain", row="ldcp", least=0.95)],
    conclusion="""DCTCP cuts once per RTT, and its queue swings; LDCP changes the window with every ACK.

        A smaller threshold makes DCTCP's queue as short, but it moves more, and many flows lose some of the link.""",
    plan=plan)
