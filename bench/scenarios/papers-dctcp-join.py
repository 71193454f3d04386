# SPDX-License-Identifier: GPL-2.0

import collections
import statistics

from typing import Any

from lowq_lab import dumbbell, each, goal, long, Results, Run, Scenario


def metrics(results: Results) -> dict[str, float]:
    """Shares, from the flows' rates in bins of 10 ms"""
    flows = results.run["flows"]
    rates: dict[str, dict[int, float]] = collections.defaultdict(dict)
    for row in results.table("flows.csv"):
        if row["flow"].endswith(":5201"):
            rates[row["flow"]][round(float(row["t_s"]) * 100)] = float(row["throughput_bps"])
    # flow i, in the order of starts, runs from step i to step i + 4
    ordered = sorted(rates, key=lambda flow: min(rates[flow]))
    parts = [(range(20 * step + 5, 20 * step + 19), ordered[max(0, step - 4):min(step, 4) + 1]) for step in range(1, 8)]
    if flows == 90:
        parts = [(range(30, 80), ordered)]
    jain, vary = [], []
    for bins, who in parts:
        means = [statistics.mean(rates[flow].get(at, 0) for at in bins) for flow in who]
        means += [0] * (flows - len(who)) * (flows == 90)
        jain.append(sum(means) ** 2 / (len(means) * sum(mean * mean for mean in means)))
        vary += [statistics.pstdev(rates[flow].get(at, 0) for at in bins) / mean
                 for flow, mean in zip(who, means) if mean]
    return {"jain_least": min(jain), "jain_mean": statistics.mean(jain), "variation": statistics.mean(vary)}


def plan(run: Run) -> dict[str, Any]:
    n = 5 if run["flows"] == 5 else 10
    net = dumbbell(n, rate="1gbit", rtt="100us", queue=run.queue("100us", k=20, limit="700000b"), line="1gbit")
    if run["flows"] == 90:
        return net.measured(*run.longs(10, "r", duration="810ms", flows=9, stagger="1ms"), count=("300ms", "800ms"),
                            bin_="10ms")
    return net.measured(*(long(f"h{i}", "r", duration="1s", control=run.control,
                               start=f"{(i - 1) * 200000 + int(run.start(i, '1ms')[:-2])}us") for i in range(1, 6)),
                        count=("0ms", "1790ms"), bin_="10ms")


SCENARIO = Scenario(
    title="DCTCP's paper, figure 16: five flows join and leave, and 90 flows together, 1 Gb/s, K = 20 packets",
    question="""DCTCP's paper shows flows that quickly come to their fair share when others join and leave, where TCP's
        are fair on average only. What is it here?""",
    topology="""
 h1..h5   a flow each, one more every 0.2 s, one less every 0.2 s  -- sw ==== 1 Gb/s ==== r
 or h1..h10  9 flows each, all the time                               (the queue, 700 kB)
  1 Gb/s each                                                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(flows=[5, 90]),
    params={"K of DCTCP": "20 packets", "limit": "700 kB",
            "least Jain": "of the seven intervals with 2 flows or more, each without its first 50 ms; with 90 flows, "
                          "of 0.3 s to 0.8 s",
            "variation": "standard deviation of each flow over intervals of 10 ms, by its mean",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: steps of 0.2 s (2000 RTTs),
                not of 30 s""",
            "paper, fig. 16": "Jain of up to 90 flows (flows=90): 0.990; here 9 flows on each of 10 hosts",
            "paper, fig. 16 (a)": """least Jain, flows join and leave (flows=5): quickly converge to their fair
                share; variation (flows=5): low in the drawing""",
            "paper, fig. 16 (b)": """variation, TCP (flows=5): fair on average, but much higher variation; here
                CUBIC, not New Reno; steps of 0.2 s"""},
    shown=["jain_least", "jain_mean", "variation", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("jain_least", row="dctcp_ref", least=0.99),
           goal("variation", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""A flow's rate varies far less with both DCTCPs than with CUBIC.""",
    metrics=metrics,
    plan=plan)
