# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, incast, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads, queue=run.queue("100us"))
    run.prepare_hosts(net, initcwnd=87)
    return net.measured(*(incast("h1", "r", fan=1, size=run["size"], jitter="100us", start=f"{i}ms", control=run.control,
                                 timeout="5s") for i in range(20)), count=("0ms", "21ms"))


def metrics(results: Results) -> dict[str, float | None]:
    ideal = 100 + results.run["size"] // 1250
    times = sorted(flow["duration_ns"] / 1000 for flow in results.flows)
    return {"ideal_us": ideal, "over_ideal": times[len(times) // 2 - 1] / ideal}


SCENARIO = Scenario(
    title="LDCP: answers of up to one BDP on an idle path, 10 Gb/s, base RTT 100 us",
    question="How much longer does the first answer on a connection take than the link alone needs?",
    topology="""
 h1  answers, one after the other -- sw ==== 10 Gb/s ==== r  asks
  10 Gb/s                           (ldcp: WRED; dctcp: RED step)
                                     base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(size=[1000, 20000, 60000, 125000], tso=[None, 1]),
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: 10", "ideal": "RTT + size / rate, without headers",
            "answers": "20, each the first on its connection, begun at random within 100 us",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, section 2.3": """time by that at full speed: short flows could have finished in one round: a
                first RTT at full speed"""},
    shown=["rpc_p50_us", "rpc_p99_us", "ideal_us", "over_ideal"],
    goals=[goal("over_ideal", row="ldcp", most=1.1, median=1.05)],
    conclusion="""LDCP sends one BDP at once in the first RTT, where DCTCP needs several rounds.

        The smallest answers fit into any initial window.""",
    metrics=metrics,
    plan=plan)
