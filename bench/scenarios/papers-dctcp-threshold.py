# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    begin, end = (200, 600) if run["rate"] == "1gbit" else (50, 150)
    net = dumbbell(2, rate=run["rate"], rtt="100us", queue=run.queue("100us", k=run["k"]),
                   line=run["rate"] if run.offloads else "", offloads=run.offloads)
    net.stated("h1", "r", rate=run["rate"], rtt="100us", mark_at=run.step(run["k"]))
    net.merging("r")
    return net.plan(*run.longs(2, "r", duration=f"{end + 10}ms"), observe=[("sw", "r")],
                    count=(f"{begin}ms", f"{end}ms"))


SCENARIO = Scenario(
    title="DCTCP's paper, figure 14: throughput against the threshold K, 1 and 10 Gb/s",
    question="""DCTCP's paper finds full throughput at 10 Gb/s from K = 65 packets on, and at 1 Gb/s even with K = 5.
        What is it here?""",
    topology="""
 h1, h2  a long flow each  -- sw ==== rate ==== r
                             (RED step at K packets)
                              base RTT 100 us""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(rate="1gbit", k=5) + each(rate="10gbit", k=[10, 65]) + each(rate="10gbit", k=65, tso=1),
    params={"tso": TSO.format("the link's rate"),
            "flows": 2, "counted": "50 to 150 ms at 10 Gb/s, 0.2 s to 0.6 s at 1 Gb/s",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: hosts without CPU time; RTT
                100 us""",
            "paper, section 4.1": "throughput (rate=1gbit k=5): insensitive to K at 1 Gb/s, even for K = 5",
            "paper, fig. 14": """throughput below K = 65 (rate=10gbit k=10): less than that of TCP; throughput from K
                = 65 on (rate=10gbit k=65): that of TCP: the whole link"""},
    shown=["utilisation", "qlen_mean_pkts", "qlen_p99_pkts", "delay_p99_us", "jain", "drops"],
    goals=[goal("utilisation", row="dctcp_ref", least=0.98, variant={"k": 65}, text="K 65 at 10 Gb/s: link used"),
           goal("utilisation", row="dctcp_ref", least=0.98, variant={"rate": "1gbit"},
                text="1 Gb/s: link used, with K 5, too"),
           goal("utilisation", row="dctcp_ref", least=0.99, beside=["dctcp"])],
    conclusion="""At the paper's thresholds the link is full, at the low rate with a much smaller one, too.""",
    plan=plan)
