# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, Results, roce, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    gbps = int(run["rate"][:-4])
    net = dumbbell(8, rate=run["rate"], rtt="20us", queue="lowq-tc roce")
    roce.load_rcm(run, net, gbps)
    roce.rdma_hosts(net, gbps)
    net.stated("h1", "r", rate=run["rate"], rtt="20us")
    words = f"read --qps {run['qps'] // 8} --size 64Ki --depth 4 --duration {60 if gbps == 10 else 400}ms"
    return net.plan(*roce.serve(*net.hosts), *(
        roce.client(net, "r", host, f"{words} --start {100000 + int(run.start(i, '100us')[:-2])}us", label=f"flow{i}")
        for i, host in enumerate(hosts(1, 8), 1)))


def metrics(results: Results) -> dict[str, float | None]:
    flows = roce.results_of(results, 8)
    (red,) = (queue for queue in json.loads(results.ask("sw", "tc -s -j qdisc show dev r")) if queue["kind"] == "red")
    size = sum(flow["bytes"] for flow in flows)
    took = max(flow["start_ns"] + flow["duration_ns"] for flow in flows) - min(flow["start_ns"] for flow in flows)
    return {"goodput_mbps": size * 8e3 / took, "last_ms": took / 1e6, "useful": size / 1024 / red["packets"],
            "drops": red["drops"], "marks": red["marked"], "go_back_n": roce.went_back()}


SCENARIO = Scenario(
    title="RoCEv2: one host reads from eight",
    question="""Many queue pairs READ from eight hosts at once. Is the goodput with roce_rcm at least that of soft-RoCE
        alone, and are the responses that pass the bottleneck useful?""",
    topology="""
 h1..h8  answer READs  -- sw ==== RATE ==== r
              (RED for UDP 4791, CNPs first)
              lines of RATE, base RTT 20 us""",
    rows=["rxe", "roce_rcm"],
    reference="rxe",
    variants=each(qps=[16, 64, 256], rate="1gbit") + each(qps=[16, 64, 256], rate="10gbit"),
    params={"MTU of RoCE": 1024,
            "READs": "4 of 64 KiB in flight per queue pair; new ones for 400 ms at 1 Gb/s, for 60 ms at 10",
            "queue": "lowq-tc roce --shape",
            "goodput": "all READs that were answered, divided by the time from the first to the end of the last",
            "DCQCN": "defaults at 10 Gb/s; at 1 Gb/s lowq-tc host roce --rate 1gbit"},
    words={"qps": {16: "16 queue pairs", 64: "64 queue pairs", 256: "256 queue pairs"}},
    shown=["goodput_mbps", "useful", "drops", "marks", "last_ms", "go_back_n"],
    goals=[goal("goodput_mbps", row="roce_rcm", least=1, beside=["rxe"]),
           goal("useful", row="roce_rcm", least=0.9)],
    conclusion="""A READ that has lost one response has to be repeated from there on, and what follows the loss is
        useless.

        roce_rcm starts the answers of many queue pairs slowly, and lets those of a host grow together as one.""",
    metrics=metrics,
    plan=plan)
