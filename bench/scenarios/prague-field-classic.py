# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def words(aqm: str, bps: int) -> str:
    """Of tc"""
    return {"pie": "pie limit 10000 ecn", "tunnel": "fq_codel limit 10000 flows 1",
            "red": f"red limit {bps // 8} min {bps // 800} max {bps * 3 // 800} avpkt 1514 "
                   f"burst {bps // 800 // 1514 + 10} bandwidth {bps} probability 0.1 ecn"}[aqm]


def plan(run: Run) -> dict[str, Any]:
    queue = words(run["aqm"], int(run["rate"][:-4]) * 1000000)
    net = dumbbell(2, rate=run["rate"], rtt=run["rtt"], queue=queue)
    net.sysctl("net.ipv4.tcp_ecn", 3)  # CUBIC, too, asks for ECN
    return net.measured(*run.two(run["first"], "cubic", duration="70s", receiver="prague"), count=("10s", "70s"),
                        bin_="10ms", afresh=True)


def metrics(results: Results) -> dict[str, float | None]:
    return results.pair(60)


SCENARIO = Scenario(
    title="Queues that mark as RFC 3168 says: PIE, RED and a tunnel in FQ-CoDel, beside CUBIC",
    question="How do Prague and CUBIC share a queue that is not for L4S?",
    topology=r"""
 h1  first  --\
               sw ==== rate ==== r
 h2  cubic  --/  (aqm, with ECN)
                  base RTT rtt""",
    rows=["prague_classic"],
    variants=[{"aqm": aqm} | cell | first
              for cell in (*each(rate="10mbit", rtt="30ms"), *each(rate="40mbit", rtt="20ms"),
                           *each(rate="100mbit", rtt="50ms"))
              for aqm in ("pie", "red", "tunnel")
              for first in each(first=["prague", "cubic"])],
    params={"pie": "with ecn and its defaults", "red": "ecn, min 10 ms, max 30 ms of the rate, probability 0.1",
            "tunnel": "fq_codel, in one flow of which both are: CoDel",
            "counted": "from 10 s to 70 s"},
    words={"aqm": {"pie": "PIE", "red": "RED", "tunnel": "tunnel"}, "first": "{} beside CUBIC"},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, most=2, variant={"first": "prague"},
                text="Prague to CUBIC")],
    conclusion="""Prague takes a mark for the small reduction that it is with L4S, and gets nearly all of the link.
        Where such a queue carries many flows, use another control.""",
    metrics=metrics,
    plan=plan)
