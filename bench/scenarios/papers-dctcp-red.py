# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario


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
            "counted": "50 to 250 ms",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: CUBIC, not New Reno; hosts
                without CPU time; RTT 100 us""",
            "paper, fig. 15": """queue with RED at full throughput (red=150-450): over 150 packets, with large
                oscillations; throughput with RED, min 50 (red=50-150): less than the whole link; queue with DCTCP
                (red=150-450): near K = 65, and stable"""},
    words={"red": "CUBIC: RED {}"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "drops"],
    goals=[goal("utilisation", row="dctcp_ref", least=0.98),
           goal("qlen_p99_pkts", row="dctcp_ref", most=1.1, beside=["dctcp"])],
    conclusion="""CUBIC's queue with RED varies several times as much as DCTCP's with a step.""",
    plan=plan)
