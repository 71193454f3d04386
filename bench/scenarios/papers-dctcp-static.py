# SPDX-License-Identifier: GPL-2.0

import statistics
from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, incast, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(run["servers"], rate="1gbit", rtt="100us", queue=run.queue("100us", k=20, limit="100p"),
                   line="1gbit")
    for node in net.hosts:
        net.prepare(node, "sysctl -qw net.ipv4.tcp_rto_min_us=10000")
    net.stated("h1", "r", rate="1gbit", rtt="100us")
    queries = incast("h*", "r", size=1000000 // run["servers"], rounds=60, jitter="10us", control=run.control)
    return net.plan(queries, observe=[("sw", "r")], count=("0us", "500ms"))


def metrics(results: Results) -> dict[str, float | None]:
    times = results.round_times()
    return {"round_mean_us": statistics.mean(times), "round_p99_us": at_share(times, 0.99),
            "late_share": sum(time > 18400 for time in times) / len(times),
            "timeouts": results.counter("TCPTimeouts", *(f"h{i}" for i in range(1, results.run["servers"] + 1)))}


SCENARIO = Scenario(
    title="DCTCP's paper, figure 18: incast into 100 packets of buffer, 20 and 40 servers, 1 Gb/s",
    question="""DCTCP's paper: with 100 packets of buffer TCP has timeouts from 10 servers on, DCTCP from 35 on. From
        how many on here?""",
    topology="""
 h1..hN  1 MB / N each  -- sw ==== 1 Gb/s ==== r  asks
  1 Gb/s each            (the queue, 100 packets)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(servers=[20, 40]),
    params={"queries": "60, one after the other, on connections that are kept", "limit": "100 packets",
            "K of DCTCP": "20 packets", "least RTO": "10 ms, as in the paper", "starts": "within 10 us, at random",
            "all at full rate": "8.4 ms", "late": "queries that took 10 ms more than that: a timeout",
            "paper": "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: 60 queries, not 1000",
            "paper, fig. 18 (b)": """queries with a timeout, TCP: from more than 10 servers on; here CUBIC with its
                initial window of 10, not New Reno; queries with a timeout: from 35 servers on""",
            "paper, fig. 18 (a)": "mean query (servers=20): about 8 ms at the least"},
    shown=["late_share", "round_mean_us", "round_p99_us", "timeouts", "drops"],
    goals=[goal("late_share", row="dctcp_ref", most=0, variant={"servers": 20},
                text="20 servers: no query with a timeout"),
           goal("round_mean_us", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""With twice as many servers first windows alone overflow the buffer: every control has timeouts.""",
    metrics=metrics,
    plan=plan)
