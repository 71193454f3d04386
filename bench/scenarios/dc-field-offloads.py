# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    held, n = run["held"], run["flows"]
    coalesce = () if held == "0us" or run.control == "hpccpp" else ("--coalesce", held)
    net = dumbbell(n, rate=run["rate"], rtt=run["rtt"], line=run["rate"], offloads=run.offloads,
                   queue=run.queue(run["rtt"], *coalesce))
    run.telemetry(net)
    begin, end, last = (20, 60, 62) if run["rate"] == "100gbit" else (100, 400, 410)
    net.stated("h1", "r", rate=run["rate"], rtt=run["rtt"])
    net.merging("r")
    if held != "0us":
        net.packets_held("r", "sw", int(held[:-2]) * 1000)
    return net.plan(*run.longs(n, "r", duration=f"{last}ms"), observe=[("sw", "r")], count=(f"{begin}ms", f"{end}ms"))


SCENARIO = Scenario(
    title="Data centre: hosts with segmentation offload and coalescing",
    question="Do flows fill the link and share it when hosts send 64 kB at once, and receivers hold packets back?",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
  rate each                  (the queue)         GRO, packets held for up to "held"
                              base RTT rtt""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(rate="10gbit", rtt="100us", flows=[2, 8], tso=0, held="0us"),
              *each(rate="10gbit", rtt="100us", flows=[2, 8], tso=1, held="0us"),
              *each(rate="10gbit", rtt="100us", flows=[2, 8], tso=1, held="50us"),
              *each(rate="100gbit", rtt="20us", flows=8, tso=[0, 1], held="0us"),
              *each(rate="100gbit", rtt="20us", flows=[2, 8], tso=1, held="20us")],
    params={"tso": "1: hosts segment packets of up to 64 kB in their NIC, at line rate",
            "held": "the receiver holds packets for up to this long, and merges them (GRO)",
            "thresholds": "what lowq-tc computes", "counted": "0.1 s to 0.4 s at 10 Gb/s, 20 to 60 ms at 100 Gb/s"},
    words={"held": "held back {}"},
    shown=["utilisation", "jain", "delay_mean_us", "delay_p99_us", "marks", "drops"],
    goals=[goal("utilisation", row="ldcp", least=0.97),
           goal("delay_p99_us", row="ldcp", most=0.6, beside=["dctcp", "dctcp_ref"]),
           goal("jain", row="ldcp", least=0.95)],
    conclusion="""DCTCP has room for hosts' bursts in its threshold; LDCP and HPCC++ pace, and their queue stays
        short.

        Bursts of two flows can lock in, so that one gets more: which sizes they lock into depends on the seed.

        Receivers that hold packets back make all of them burst again.""",
    plan=plan)
