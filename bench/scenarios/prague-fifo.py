# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate="100mbit", rtt=run["rtt"], queue=f"lowq-tc fifo --limit {run['limit']}p")
    return net.measured(*run.two(run["first"], "cubic", duration="80s", receiver="prague"), count=("20s", "80s"),
                        bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    return results.pair(60, second="cubic")


SCENARIO = Scenario(
    title="Prague beside CUBIC in one drop-tail queue without ECN, 100 Mb/s",
    question="In a queue that does not mark, is Prague as friendly to CUBIC as Reno is?",
    topology=r"""
 h1  first   --\
                sw ==== 100 Mb/s ==== r
 h2  cubic   --/  (drop-tail, one BDP)
                   base RTT rtt""",
    rows=["prague_fifo"],
    variants=[*each(rtt="10ms", limit=84, first="prague"),
              *each(rtt="40ms", limit=333, first="prague", opts=[None, "loss_cubic:0"]),
              *each(rtt="10ms", limit=84, first="reno"),
              *each(rtt="40ms", limit=333, first="reno")],
    params={"rate": "100mbit", "queue": "pfifo, limit packets", "counted": "from 20 s to 80 s"},
    words={"limit": "queue {} packets", "first": "{} beside CUBIC"},
    shown=["ratio", "first_mbps", "cubic_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_fifo", least=0.5, most=2, variant={"first": "prague"}, text="Prague to CUBIC")],
    conclusion="""By default Prague reacts to a loss like CUBIC, with loss_cubic=0 like Reno.""",
    metrics=metrics,
    plan=plan)
