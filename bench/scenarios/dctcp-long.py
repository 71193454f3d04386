# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    exact = ["--exact"] if run.settings.get("exact") else []
    net = dumbbell(run["flows"], rate="10gbit", rtt="100us", queue=run.queue("100us", *exact, k=65),
                   line="10gbit" if run.offloads else "", offloads=run.offloads)
    # one host at its line rate makes no queue: no step to be found
    net.stated("h1", "r", rate="10gbit", rtt="100us", mark_at=run.step(65))
    net.merging("r")
    return net.plan(*run.longs(run["flows"], "r", duration="510ms"), observe=[("sw", "r")], count=("100ms", "500ms"))


SCENARIO = Scenario(
    title="Long DCTCP flows at 10 Gb/s, base RTT 100 us, K = 65 packets",
    question="Does dctcp_ref, written from RFC 8257, use the link and keep the queue as Linux's own dctcp does?",
    topology="""
 h1..hN  a long flow each  -- sw ==== 10 Gb/s ==== r
                             (RED step at 65 packets)
                              base RTT 100 us""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(flows=[2, 8]) + each(flows=[2, 8], exact=1) + each(flows=[2, 8], tso=1),
    params={"exact": "marks by the queue's length at that instant (lowq-tc --exact), not by RED's average of two lengths",
            "tso": TSO.format("10 Gb/s"),
            "rate": "10gbit", "rtt": "100us", "K": "65 packets", "counted": "0.1 s to 0.5 s"},
    words={"exact": "exact marks"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "marks", "drops",
           "jain"],
    goals=[goal("utilisation", row="dctcp_ref", least=0.99, beside=["dctcp"]),
           goal("qlen_mean_pkts", row="dctcp_ref", most=1.1, beside=["dctcp"]),
           goal("jain", row="dctcp_ref", least=0.95)],
    conclusion="""Both hold the queue just under the threshold at which the RED step marks.

        More flows, and hosts that send bursts, make it move more, not longer.""",
    plan=plan)
