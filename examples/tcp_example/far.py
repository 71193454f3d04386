# SPDX-License-Identifier: GPL-2.0
"""A near and a far host send through one switch."""

from typing import Any

from lowq_lab import goal, Network, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = Network()
    net.switch("sw")
    net.host("h1", "h2", "r")
    net.link("h1", "sw", back="100us")
    net.link("h2", "sw", back=f"{run['far']}us")
    net.link("sw", "r")
    net.queue("sw", "r", run.queue("100us", "--k", "10"), rate="1gbit")
    net.stated("h2", "r", rate="1gbit", rtt=f"{run['far']}us", mark_at=10)
    return net.plan(*run.longs(2, "r", duration="410ms"), observe=[("sw", "r")], count=("100ms", "400ms"))


def metrics(results: Results) -> dict[str, float]:
    near, far = results.flow("h1"), results.flow("h2")
    return {"ratio": far["goodput_bps"] / near["goodput_bps"]}


SCENARIO = Scenario(
    title="A near and a far host, 1 Gb/s, base RTT 100 us and more",
    question="How much of the link does the far host get?",
    rows=["dctcp", "example"], variants=[{"far": 200}, {"far": 400}], plan=plan, metrics=metrics,
    params={"rate": "1gbit", "far": "the far host's base RTT, us", "counted": "0.1 s to 0.4 s"},
    shown=["utilisation", "ratio", "qlen_mean_pkts", "delay_p99_us", "marks", "drops"], reference="dctcp",
    goals=[goal("utilisation", row="dctcp", least=0.97)])
