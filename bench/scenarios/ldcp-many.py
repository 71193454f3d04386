# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(8, rate="1gbit", rtt="100us", queue=run.queue("100us", "--limit", "10000"),
                   line="1gbit" if run.offloads else "", offloads=run.offloads)
    return net.measured(*run.longs(8, "r", duration="1700ms", flows=run["flows"] // 8, stagger="800us"),
                        count=("600ms", "1600ms"))


SCENARIO = Scenario(
    title="LDCP: 1000 and 2000 long flows at 1 Gb/s, base RTT 100 us",
    question="The path holds 8 packets. How long is the queue of 1000 flows if windows can be smaller than one packet?",
    topology="""
 h1..h8  as many flows each -- sw ==== 1 Gb/s ==== r
                              (ldcp: WRED; dctcp: RED step)
                               base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(flows=[1000, 2000]) + each(flows=[1000, 2000], tso=1),
    params={"tso": TSO.format("1 Gb/s"),
            "rate": "1gbit", "rtt": "100us", "limit": "10000 packets", "counted": "0.6 s to 1.6 s",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, section 1": """longest queue for 99 % of the time: with a window below one packet the number of
                flows that it can endure increases remarkably compared with DCTCP""",
            "paper, abstract": """link used: very low queue occupancy even under high network utilization; packets
                lost: almost no packet loss"""},
    shown=["utilisation", "qlen_mean_pkts", "jain", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "marks",
           "drops"],
    goals=[goal("qlen_mean_pkts", row="ldcp", most=0.25, beside=["dctcp"]),
           goal("utilisation", row="ldcp", least=0.95)],
    conclusion="""DCTCP's smallest window is two packets, so that the queue holds what the path cannot.

        LDCP spaces packets further apart than an RTT; the price is less fairness in a short time.""",
    plan=plan)
