# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, figure, goal, Paper, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    queue = run.queue("100us", k=65)
    if run.control == "cubic":
        least, most = (int(packets) * 1514 for packets in run["red"].split("-"))
        # burst 171: tc's weight becomes 1/512
        queue = (f"red limit 3028000 min {least} max {most} avpkt 1514 burst 171 bandwidth 10gbit probability 0.1 ecn")
    net = dumbbell(2, rate="10gbit", rtt="100us", queue=queue)
    for host in net.hosts if run.control == "cubic" else ():
        net.prepare(host, "sysctl -qw net.ipv4.tcp_ecn=1")
    net.stated("h1", "r", rate="10gbit", rtt="100us", mark_at=run.step(65))
    return net.plan(*run.longs(2, "r", duration="260ms"), observe=[("sw", "r")], count=("50ms", "250ms"))


SCENARIO = Scenario(
    title="DCTCP's paper, figure 15: DCTCP's step beside TCP with RED, two flows, 10 Gb/s",
    question="""DCTCP's paper: RED with ECN needs a queue of 150 packets and more for the throughput that DCTCP has with
        65, and it oscillates. What is it here?""",
    topology="""
 h1, h2  a long flow each  -- sw ==== 10 Gb/s ==== r
                             (RED: a step, or between min and max)
                              base RTT 100 us""",
    rows=["cubic_red", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(red=["50-150", "150-450"]),
    params={"red": "for CUBIC, which asks for ECN: marks between so many packets, probability 0.1, weight 1/512; for "
                   "DCTCP a step at 65 packets",
            "counted": "50 to 250 ms"},
    words={"red": "CUBIC: RED {}"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "drops"],
    goals=[goal("utilisation", row="dctcp_ref", least=0.98, text="at least 98 % used"),
           goal("qlen_p99_pkts", row="dctcp_ref", most=1.1, relative_to="dctcp",
                text="longest queue at most 1.1 times dctcp's")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="CUBIC, not New Reno; hosts without CPU time; RTT 100 us",
        figures=[figure("fig. 15", "qlen_p99_pkts", what="queue with RED at full throughput",
                        variant={"red": "150-450"}, says="over 150 packets, with large oscillations",
                        in_tree="cubic_red"),
                 figure("fig. 15", "utilisation", what="throughput with RED, min 50", variant={"red": "50-150"},
                        says="less than the whole link", in_tree="cubic_red"),
                 figure("fig. 15", "qlen_p99_pkts", what="queue with DCTCP", variant={"red": "150-450"},
                        says="near K = 65, and stable", in_tree="dctcp", ours="dctcp_ref")]),
    answer="""With CUBIC, ECN and RED from 150 packets on {range utilisation cubic_red red=150-450} of the link is used
        with {range qlen_mean_pkts cubic_red red=150-450} in the queue, from 50 on {range utilisation cubic_red
        red=50-150} with {range qlen_mean_pkts cubic_red red=50-150}; with a step at 65 Linux's dctcp uses {range
        utilisation dctcp red=150-450} with {range qlen_mean_pkts dctcp red=150-450} and dctcp_ref {range utilisation
        dctcp_ref red=150-450} with {range qlen_mean_pkts dctcp_ref red=150-450}.""",
    conclusion="""{range qlen_stddev_pkts cubic_red} is by how much the queue varies (standard deviation) with CUBIC and
        RED, {range qlen_stddev_pkts dctcp} with DCTCP's step.""",
    plan=plan)
