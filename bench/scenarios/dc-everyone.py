# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, hosts, incast, long, requests, Results, Run, Scenario, TSO
from lowq_lab.networks import nanoseconds

# Incasts: rounds of answers from eight hosts, fan of them at once
INCASTS: list[dict[str, int | str]] = [dict(rate="10gbit", rtt="100us", fan=40, kb=20, period="2ms", flows=1),
           dict(rate="25gbit", rtt="60us", fan=200, kb=80, period="15ms", flows=1),
           dict(rate="40gbit", rtt="60us", fan=200, kb=10, period="1500us", flows=3),
           dict(rate="25gbit", rtt="20us", fan=12, kb=400, period="4ms", flows=2),
           dict(rate="10gbit", rtt="250us", fan=100, kb=20, period="4ms", flows=2)]
# Requests: Poisson, 30 % of the link, a connection each
REQUESTS: list[dict[str, int | str]] = [dict(rate="10gbit", rtt="100us", kb=100, flows=1),
                                        dict(rate="25gbit", rtt="60us", kb=100, flows=2)]


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, n = run["rate"], run["rtt"], run["flows"]
    gbps, us = int(rate[:-4]), int(rtt[:-2])
    net = dumbbell(8 + n, rate=rate, rtt=rtt, line=rate, offloads=run.offloads,
                   queue=run.queue(rtt, k=gbps * us * 65 // 1000 if run.row == "dctcp_65" else None))
    run.prepare_hosts(net)
    if run.get("fan"):
        period = nanoseconds(run["period"])
        answers = incast(hosts(1, 8), "r", fan=run["fan"], size=f"{run['kb']}k", jitter=rtt, period=run["period"],
                         rounds=int(1e8 / period), start="20ms", control=run.control, timeout="5s")
    else:
        answers = requests("h1", "r", size=f"{run['kb']}k", load=f"{gbps * 300}mbit", duration="100ms", start="20ms",
                           control=run.control, timeout="5s")
    return net.measured(*(long(f"h{8 + i}", "r", duration="122ms", start=run.start(i, "1ms"), control=run.control)
                          for i in range(1, n + 1)), answers, count=("20ms", "120ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    times = [flow["since_due_ns"] / 1e3 for flow in results.flows if flow["kind"] != "long" and flow["status"] == "ok"]
    queues = json.loads(results.ask("sw", "tc -j qdisc show dev r"))
    carried = [results.flow(host)["payload_bytes"] for host in hosts(9, 8 + results.run["flows"])]
    return {"answer_p50_us": at_share(times, 0.5), "answer_p99_us": at_share(times, 0.99),
            "long_gbps": sum(carried) * 8 / 1e8,
            "k_bytes": next((queue["options"]["min"] for queue in queues if queue["kind"] == "red"), None),
            "timeouts": results.counter("TCPTimeouts", *hosts(1, 8))}


SCENARIO = Scenario(
    title="Data centre: answers and the long flows beside them",
    question="""Answers and long flows share a link: how long do the answers take, what do the long flows carry, how
        full is the link, and how long do packets wait, at once?""",
    topology=r"""
 h1 ... h8   answers to r  --\
                              sw ==== rate ==== r
 h9, h10 ... long flows    --/    base RTT""",
    rows=["dctcp", "dctcp_65", "ldcp"],
    reference="dctcp_65",
    variants=each(INCASTS + REQUESTS, tso=[None, 1]),
    params={"tso": TSO.format("the link's rate"),
            "fan": "answers at once, in rounds; without it requests, Poisson, 30 %",
            "kb": "an answer's size, kB", "period": "of the rounds", "flows": "long flows",
            "dctcp_65": "K = 65 packets per 10 Gb/s and 100 us; dctcp: as lowq-tc sets it",
            "counted": "20 ms to 120 ms"},
    words={"fan": "{} at once", "flows": {1: "1 long flow", 2: "2 long flows", 3: "3 long flows"}},
    shown=["answer_p99_us", "long_gbps", "utilisation", "delay_p99_us", "timeouts", "answer_p50_us", "drops",
           "k_bytes"],
    goals=[goal("answer_p99_us", row="ldcp", most=1, median=0.8, beside=["dctcp", "dctcp_65"]),
           goal("long_gbps", row="ldcp", least=0.7, median=0.85, beside=["dctcp", "dctcp_65"]),
           goal("timeouts", row="ldcp", most=0)],
    conclusion="""Where 200 answers begin at once, DCTCP's lose their last packets and wait for a timeout; the long flow
        has the link for itself meanwhile. LDCP's answers are done in a quarter of that time or less.

        Beside requests LDCP's long flow carries less than DCTCP's: a tenth of the link and more stays idle. If it cut
        its window in proportion to the marked share, as DCTCP does, it would carry 11 to 22 % more, but the slowest
        answers of 12 and of 40 servers would take longer than DCTCP's.""",
    metrics=metrics,
    plan=plan)
