# SPDX-License-Identifier: GPL-2.0
"""A near and a far host send through one switch: far.sh in Python."""

from typing import Any

from lowq_lab import goal, long, Network, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = Network()
    net.switch("sw")
    net.host("h1", "h2", "r")
    net.link("h1", "sw")
    net.link("h2", "sw", delay=f"{(run['far'] - 100) / 2:.0f}us")
    net.link("sw", "r", rate="1gbit", delay="50us", queue=run.queue("100us", "--k", "10"))
    return net.plan(long("h*", "r", duration="410ms", control=run.control),
                    observe=[("sw", "r")], count=("100ms", "400ms"))


def metrics(results: Results) -> dict[str, float]:
    near, far = (next(flow for flow in results.flows if flow["client"] == name) for name in ("h1", "h2"))
    return {"ratio": far["goodput_bps"] / near["goodput_bps"]}


SCENARIO = Scenario(
    title="A near and a far host, 1 Gb/s, base RTT 100 us and more",
    question="How much of the link does the far host get?",
    rows=["dctcp", "example"], variants=[{"far": 200}, {"far": 400}], plan=plan, metrics=metrics,
    params={"rate": "1gbit", "far": "the far host's base RTT, us", "counted": "0.1 s to 0.4 s"},
    shown=["utilisation", "ratio", "qlen_mean_pkts", "delay_p99_us", "marks", "drops"], reference="dctcp",
    goals=[goal("utilisation", row="dctcp", least=0.97)])
