# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, requests, Results, Run, Scenario, TSO

ANSWERS = each(size=125000, load=["1gbit", "3gbit"]) + each(size=20000, load="1gbit")
STEPS = each(alpha=512, beta=256) + each(alpha=1024, beta=128)


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads, queue=run.queue("100us"))
    run.parameters(net, "ldcp", alpha=run["alpha"], beta=run["beta"])
    run.prepare_hosts(net, initcwnd=run.get("iw", 87))
    if run.control != "ldcp" and run.get("iw"):
        net.initcwnd(run["iw"], "h2")
    return net.measured(*run.longs(1, "r", duration="410ms"),
                        requests("h2", "r", size=run["size"], load=run["load"], start="90ms", duration="310ms",
                                 control=run.control, timeout="5s"), count=("100ms", "400ms"))


def metrics(results: Results) -> dict[str, float | None]:
    long_ = results.flow("h1")
    return {"long_gbps": long_["goodput_bps"] / 1e9, "long_drops": long_["dropped"],
            "timeouts": results.counter("TCPTimeouts", "h1", "h2")}


SCENARIO = Scenario(
    title="LDCP: answers of one BDP beside a long flow, 10 Gb/s, base RTT 100 us",
    question="""Answers start at full speed while a long flow fills the link: what does the long flow lose, and how long
        do the answers take?""",
    topology=r"""
 h1  a long flow      --\
                         sw ==== 10 Gb/s ==== r
 h2  short answers    --/ (ldcp: WRED; dctcp: RED step)
  10 Gb/s each            base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=[*each(ANSWERS, STEPS + each(STEPS, tso=1)),
              # the cause of what is missed: the same first RTT for both
              *each(size=125000, load=["1gbit", "3gbit"], alpha=512, beta=256, iw=10),
              *each(size=125000, load=["1gbit", "3gbit"], alpha=512, beta=256, tso=1, iw=10),
              *each(size=125000, load="3gbit", alpha=1024, beta=128, iw=87)],
    params={"tso": TSO.format("10 Gb/s"),
            "iw": "initial window of the answers, packets; without it 87, the BDP, with ldcp, and 10 with dctcp",
            "load": "of the answers: Poisson, a new connection each",
            "alpha, beta": "LDCP's, in 1/1024 packets: the defaults, and values with which the long flow yields less",
            "counted": "0.1 s to 0.4 s"},
    words={"load": "{} of answers"},
    shown=["long_gbps", "long_drops", "rpc_p99_us", "utilisation", "qlen_mean_pkts", "qlen_p99_pkts", "rpc_count",
           "rpc_p50_us", "drops", "timeouts"],
    goals=[goal("long_drops", row="ldcp", most=0),
           goal("long_gbps", row="ldcp", least=0.5, median=0.9, beside=["dctcp"]),
           goal("rpc_p99_us", row="ldcp", most=0.5, beside=["dctcp"])],
    conclusion="""Each answer that starts at full speed fills the queue for an RTT, and marks the long flow, which
        gives way.

        A larger ratio of alpha to beta leaves it nearly all of its rate, with a longer queue.

        With an initial window as the stack's, the long flow keeps more than DCTCP's.""",
    metrics=metrics,
    plan=plan)
