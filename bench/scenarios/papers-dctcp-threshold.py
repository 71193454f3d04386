# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, figure, goal, Paper, Run, Scenario, TSO


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
            "flows": 2, "counted": "50 to 150 ms at 10 Gb/s, 0.2 s to 0.6 s at 1 Gb/s"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_p99_pkts", "delay_p99_us", "jain", "drops"],
    goals=[goal("utilisation", row="dctcp_ref", least=0.98, variant={"k": 65},
                text="K 65 at 10 Gb/s: at least 98 % used"),
           goal("utilisation", row="dctcp_ref", least=0.98, variant={"rate": "1gbit"},
                text="1 Gb/s: at least 98 % used, with K 5, too"),
           goal("utilisation", row="dctcp_ref", least=0.99, relative_to="dctcp", text="within 1 % of dctcp")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="hosts without CPU time; RTT 100 us",
        figures=[figure("section 4.1", "utilisation", what="throughput", variant={"rate": "1gbit", "k": 5},
                        says="insensitive to K at 1 Gb/s, even for K = 5", in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 14", "utilisation", what="throughput below K = 65", variant={"rate": "10gbit", "k": 10},
                        says="less than that of TCP", in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 14", "utilisation", what="throughput from K = 65 on", variant={"rate": "10gbit", "k": 65},
                        says="that of TCP: the whole link", in_tree="dctcp", ours="dctcp_ref")]),
    answer="""With K 65 dctcp_ref uses {range utilisation dctcp_ref rate=10gbit k=65} of 10 Gb/s and Linux's dctcp
        {range utilisation dctcp rate=10gbit k=65}; with K 10 {range utilisation dctcp_ref rate=10gbit k=10} and {range
        utilisation dctcp rate=10gbit k=10}.""",
    conclusion="""{range utilisation dctcp_ref rate=1gbit k=5} of 1 Gb/s is used with K 5.""",
    plan=plan)
