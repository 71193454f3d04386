# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, requests, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(3, rate="1gbit", rtt="100us", queue=run.queue("100us", k=20, limit="700000b"), line="1gbit")
    run.prepare_hosts(net)
    net.stated("h1", "r", rate="1gbit", rtt="100us")
    asked = requests("h3", "r", size=f"{run['kb']}k", closed=1, persist=True, start="300ms", duration="1s",
                     timeout="5s", control=run.control)
    return net.plan(*run.longs(2, "r", duration="1310ms"), asked, observe=[("sw", "r")], count=("300ms", "1300ms"))


def metrics(results: Results) -> dict[str, float | None]:
    return {"timeouts": results.counter("TCPTimeouts", "h1", "h2", "h3")}


SCENARIO = Scenario(
    title="DCTCP's paper, figure 21: 20 kB at a time beside two long flows, 1 Gb/s",
    question="""DCTCP's paper: 20 kB take less than 1 ms beside two long flows with DCTCP, and 19 ms with TCP. How long
        here?""",
    topology=r"""
 h1, h2  a long flow each  --\
                              sw ==== 1 Gb/s ==== r  asks h3
 h3      20 kB at a time   --/  (the queue, 700 kB)
  1 Gb/s each                    base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=each(kb=20),
    params={"requests": "one after the other on a connection that is kept, from 0.3 s to 1.3 s",
            "K of DCTCP": "20 packets", "limit": "700 kB", "the link alone": "0.27 ms",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: requests of 1 s, not 1000 of
                them""",
            "paper, fig. 21": """20 kB, median: 0 to 1000 µs (less than 1 ms); 20 kB, median, TCP: 19000 µs; here
                CUBIC with an initial window of 10, not New Reno with 3""",
            "paper, section 4.2.2": "timeouts: 0"},
    shown=["rpc_p50_us", "rpc_p99_us", "rpc_count", "delay_p50_us", "utilisation", "timeouts", "drops"],
    goals=[goal("rpc_p50_us", row="dctcp_ref", most=1000, text="median below 1 ms (the paper)"),
           goal("rpc_p99_us", row="dctcp_ref", most=1, beside=["dctcp"]),
           goal("rpc_p50_us", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"])],
    conclusion="""What a packet waits in the queue is most of the difference.

        CUBIC's answers are sooner than TCP's in the paper: hosts here begin with a larger window.""",
    metrics=metrics,
    plan=plan)
