# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, long, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    bps = float(run["rate"][:-4]) * (1e3 if run["rate"].endswith("kbit") else 1e6)
    step = max(1000, int(run["step"] * 1514 * 8 / bps * 1e6))
    least = f" --step-min {run['min']}" if run.get("min") else ""
    n = run["flows"]
    net = dumbbell(2 * n if run.get("beside") else n, rate=run["rate"], rtt=run["rtt"],
                   queue=f"{run.queue(run['rtt'])} --step {step}us{least}", buffer=33554432)
    return net.measured(*(long(host, "r", duration="60s", start=run.start(i, "20ms"),
                               control={"from": run.control if i <= n else run["beside"], "to": "prague"})
                          for i, host in enumerate(net.hosts[:-1], 1)), count=("20s", "60s"), bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    n = results.run["flows"]
    ours, theirs = hosts(1, n), hosts(n + 1, 2 * n)
    made = {"prague_p99_us": results.mean(ours, "delay_us.p99")}
    return made if not results.run.get("beside") else made | {
        "cubic_p99_us": results.mean(theirs, "delay_us.p99"), "ratio": results.ratio(ours, theirs)}


SCENARIO = Scenario(
    title="Slow links over DualPI2: 0.5 to 12 Mb/s, 5 to 100 ms, one to five flows, alone and beside CUBIC",
    question="From how long a queue on should a slow link mark L4S packets, and does Prague share it with CUBIC?",
    topology=r"""
 h1..hn        prague  --\
                          sw ==== rate ==== r
 h(n+1)..h(2n) (cubic) --/  (dualpi2)
                             base RTT rtt""",
    rows=["prague"],
    variants=each(each(rate=["500kbit", "2mbit", "7mbit", "12mbit"], rtt=["5ms", "28ms", "100ms"], flows=[1, 2, 5],
                       beside=[None, "cubic"]),
                  [{"step": 1.5, "min": 1}, {"step": 2}, {"step": 1, "min": 1}]),
    params={"step": "ECT(1) is marked above this many packets' time at the rate, and not below 1 ms",
            "min": "min_qlen_step: only a packet that found so many of L4S in the queue is marked",
            "beside": "as many flows of that control",
            "counted": "from 20 s to 60 s; delays are the means of each flow's p99, the ratio is that of the "
                       "controls' mean rates"},
    words={"beside": "beside {}", "step": "step of {} packets", "min": "min {}"},
    shown=["utilisation", "prague_p99_us", "ratio", "cubic_p99_us"],
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, variant={"beside": "cubic", "step": 1.5},
                text="Prague to CUBIC, lowq-tc's rule"),
           goal("utilisation", row="prague", least=0.9, median=0.99, variant={"step": 1.5},
                text="link used, lowq-tc's rule")],
    conclusion="""A step of more than a packet's time, for packets that find another one, keeps the queue short and
        most shares even.

        Below a few Mb/s the path holds less than the smallest windows, which are the queue, whatever the step.""",
    metrics=metrics,
    plan=plan)
