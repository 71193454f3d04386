# SPDX-License-Identifier: GPL-2.0

import math
from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def metrics(results: Results) -> dict[str, float | None]:
    flows, k = results.run["flows"], results.run["k"]
    queue = [float(row["qlen_pkts_mean"]) for row in results.table("queue.csv") if .1 <= float(row["t_s"]) < .5]
    ordered = sorted(queue)
    low, high = ordered[len(ordered) // 100], ordered[len(ordered) * 99 // 100]
    # a period: from one crossing of the middle upwards to the next, with half of the amplitude between
    middle, ups, below = (low + high) / 2, [], False
    for number, length in enumerate(queue):
        if length < middle - (high - low) / 4:
            below = True
        elif below and length > middle + (high - low) / 4:
            ups.append(number)
            below = False
    pipe = 10e9 * 100e-6 / 8 / 1514 + k
    rtt = 100 + k * 1514 * 8 / 10e3
    period = (ups[-1] - ups[0]) * 10 / (len(ups) - 1) if len(ups) > 1 else None
    found: dict[str, float | None] = {}
    for name, unit, value, theory in (
            ("q_max", "", ordered[-1], k + flows), ("amplitude", "", high - low, math.sqrt(2 * flows * pipe) / 2),
            ("period", "_us", period, math.sqrt(2 * pipe / flows) / 2 * rtt)):
        found |= {name + unit: value, f"{name}_theory{unit}": theory, f"{name}_over": value and value / theory}
    return {name: None if value is None else round(value, 3) for name, value in found.items()}


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(run["flows"], rate="10gbit", rtt="100us", queue=run.queue("100us", "--exact", k=run["k"]))
    net.stated("h1", "r", rate="10gbit", rtt="100us", mark_at=run["k"])
    return net.plan(*run.longs(run["flows"], "r", duration="510ms"), observe=[("sw", "r")], count=("100ms", "500ms"),
                    bin_="10us")


SCENARIO = Scenario(
    title="DCTCP's sawtooth: queue beside the analysis of its paper",
    question="Do N flows of DCTCP make the queue that the paper's analysis predicts?",
    topology="""
 h1..hN  one long flow each -- sw ==== 10 Gb/s ==== r
                               (step at K, exact)
                                base RTT 100 us""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(flows=[2, 10, 40], k=40),
    params={"k": "packets",
            "theory": "SIGCOMM 2010, section 3.3, for N flows that move together: longest queue K + N packets; "
                      "amplitude sqrt(2 N (C RTT + K)) / 2; period sqrt(2 (C RTT + K) / N) / 2 RTTs",
            "amplitude": "from the 1st to the 99th percentile of the queue length, mean of bins of 10 us",
            "counted": "0.1 s to 0.5 s"},
    shown=["q_max", "q_max_theory", "amplitude", "amplitude_theory", "period_us", "period_theory_us"],
    goals=[goal("q_max_over", row="dctcp", least=0.8, most=1.25, variant={"flows": 2},
                text="2 flows: longest queue, to the analysis"),
           goal("amplitude_over", row="dctcp", least=0.8, most=1.25, variant={"flows": 2},
                text="2 flows: amplitude, to the analysis"),
           goal("q_max_over", row="dctcp", least=0.8, most=1.25, variant={"flows": 10},
                text="10 flows: longest queue, to the analysis")],
    conclusion="""Many flows are not cut together, which the analysis assumes and the paper says of them.

        A period is longer than in the analysis, which leaves out that a cut takes a round trip to reach the queue.""",
    metrics=metrics,
    plan=plan)
