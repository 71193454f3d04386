# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, program, Results, Run, Scenario


def packets(rate: str, rtt: str, bdp: float) -> int:
    """Of 1514 bytes, in so many products of rate and base RTT"""
    return int(float(rate[:-4]) * float(rtt[:-2]) * bdp * 1000 / 8 / 1514 + 0.5)


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate=run["rate"], rtt=run["rtt"], buffer=33554432,
                   queue=f"lowq-tc fifo --limit {packets(run['rate'], run['rtt'], run['bdp'])}p")
    return net.measured(*run.two(run.control, run["beside"], duration="100s", receiver=run.control),
                        program("sw", "tc -s -j qdisc show dev r", start="2100ms", label="early"),
                        count=("20s", "100s"), bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    queues = json.loads(results.text("early"))
    return results.pair(80) | {"early_drops": sum(one["drops"] for one in queues if one["kind"] not in ("htb", "netem"))}


SCENARIO = Scenario(
    title="Drop-tail queues from half to eight BDP, beside CUBIC and beside Reno",
    question="Where nothing marks, does Prague take and leave as much as CUBIC would in its place?",
    topology=r"""
 h1  first         --\
                      sw ==== rate ==== r
 h2  cubic or reno --/  (drop-tail, bdp)
                         base RTT rtt""",
    rows=["prague_fifo", "cubic"],
    reference="cubic",
    variants=[*each(beside="cubic", rate="10mbit", rtt="20ms", bdp=2),
              *each(beside="cubic", rate="10mbit", rtt="100ms", bdp=1),
              *each(beside="cubic", rate="40mbit", rtt="20ms", bdp=[0.5, 1, 4]),
              *each(beside="cubic", rate="100mbit", rtt="10ms", bdp=8),
              *each(beside="cubic", rate="100mbit", rtt="30ms", bdp=4),
              *each(beside="cubic", rate="100mbit", rtt="50ms", bdp=[0.5, 1, 4]),
              *each(beside="cubic", rate="100mbit", rtt="100ms", bdp=1),
              *each(beside="cubic", rate="400mbit", rtt="20ms", bdp=1),
              *each(beside="reno", rate="10mbit", rtt="20ms", bdp=2),
              *each(beside="reno", rate="40mbit", rtt="20ms", bdp=[1, 4]),
              *each(beside="reno", rate="100mbit", rtt="50ms", bdp=1),
              *each(beside="reno", rate="100mbit", rtt="30ms", bdp=4)],
    params={"bdp": "the longest queue, in products of rate and base RTT", "counted": "from 20 s to 100 s",
            "early_drops": "packets dropped in the first two seconds"},
    words={"beside": "beside {}", "bdp": "queue {} BDP"},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "early_drops", "drops"],
    goals=[goal("ratio", row="prague_fifo", least=0.75, most=1.25, beside=["cubic"],
                text="what Prague gets, to a CUBIC in its place"),
           goal("early_drops", row="prague_fifo", most=2, beside=["cubic"])],
    conclusion="""What counts is what another CUBIC gets in Prague's place: two CUBIC flows are not equal within the
        run, either.

        Prague is not paced in such a queue, except by sch_fq: paced, it took several times CUBIC's rate.""",
    metrics=metrics,
    plan=plan)
