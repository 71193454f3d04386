# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario, TSO


FLOWS = [*each(flows=1000, buffer=["default", "1MB"]), *each(flows=[200, 2000], buffer="default"),
         # the cause of what hpccpp misses
         *each(flows=1000, buffer="1MB", stagger="1500us")]


def plan(run: Run) -> dict[str, Any]:
    limit = () if run["buffer"] == "default" else ("--limit", "1000000b")
    net = dumbbell(8, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads, queue=run.queue("100us", *limit))
    run.telemetry(net)
    return net.measured(*run.longs(8, "r", duration="520ms", flows=run["flows"] // 8,
                                   stagger=run.get("stagger", "500us")), count=("200ms", "500ms"))


def metrics(results: Results) -> dict[str, float | None]:
    return {"moving": sum(rate > 0 for rate in results.rates())}


SCENARIO = Scenario(
    title="Data centre: hundreds and thousands of flows, 10 Gb/s, base RTT 100 us",
    question="How long is the queue with more flows than the path holds packets, and do all of them move?",
    topology="""
 h1..h8  25 to 250 each -- sw ==== 10 Gb/s ==== r
                           (the queue)
                            base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=FLOWS + each(FLOWS, tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "path": "87 packets", "buffer": "default: what lowq-tc sets, 1 MB: 660 packets",
            "stagger": "between two flows of a host: 500 us if not stated", "counted": "0.2 s to 0.5 s",
            "moving": "flows that delivered a packet in that time"},
    words={"buffer": "buffer {}"},
    shown=["utilisation", "delay_mean_us", "delay_p99_us", "moving", "jain", "marks", "drops"],
    goals=[goal("moving", row="ldcp", least=1, beside=["dctcp", "dctcp_ref"]),
           goal("moving", row="hpccpp", least=1, beside=["dctcp", "dctcp_ref"]),
           goal("utilisation", row="ldcp", least=0.95)],
    conclusion="""DCTCP's smallest window is two packets: the queue is full, and flows wait for timeouts.

        LDCP and HPCC++ go below one packet per RTT, and keep a small part of that queue.

        First windows of many HPCC++ flows that begin together overflow a small buffer, SYNs included.""",
    metrics=metrics,
    plan=plan)
