# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, incast, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    n = run["servers"]
    net = dumbbell(n, rate="1gbit", rtt="100us", line="1gbit", offloads=run.offloads,
                   queue=run.queue("100us", k=20, limit="700000b"))
    run.prepare_hosts(net)
    return net.measured(incast("h*", "r", size="25k", jitter="100us", rounds=60, control=run.control, timeout="5s"),
                        count=("0ms", "500ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    return {"timeouts": results.counter("TCPTimeouts", *hosts(1, results.run["servers"]))}


SCENARIO = Scenario(
    title="Data centre: the incast of DCTCP's paper, 40 servers and 1 MB, 1 Gb/s",
    question="40 servers answer a query at once, 1 MB in all: when is the last answer complete?",
    topology="""
 h1..h40  25 kB each  -- sw ==== 1 Gb/s ==== r  asks
  1 Gb/s each            (the queue, 700 kB)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=each(servers=40, tso=[None, 1]),
    params={"tso": TSO.format("1 Gb/s"),
            "queries": "60, one after the other, on connections that are kept; each server is asked at random within "
                       "an RTT, by the seed",
            "limit": "700 kB", "K of dctcp": "20 packets, as in the paper",
            "all at full rate": "8.38 ms, with headers",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: 700 kB for this port, which
                in the paper is what a busy port gets of 4 MB that ports share""",
            "paper, fig. 19 (b)": "timeouts, 40 servers: 0",
            "paper, fig. 19 (a)": "mean query: about what the link needs, 8 ms"},
    shown=["round_mean_us", "round_p99_us", "rpc_p50_us", "timeouts", "qlen_p99_pkts", "drops"],
    goals=[goal("round_p99_us", row="dctcp_ref", most=1, beside=["dctcp"]),
           goal("round_p99_us", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("timeouts", row="ldcp", most=0)],
    conclusion="""The path holds a few packets, so that a window of one packet of each server already is a queue.

        LDCP goes below one packet, and the last answers wait for the departure of single packets.

        CUBIC's windows grow until the buffer is full, as TCP's do in the paper, and answers wait for timeouts.""",
    metrics=metrics,
    plan=plan)
