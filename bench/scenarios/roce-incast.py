# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, jain, Results, roce, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    gbps = int(run["rate"][:-4])
    ms = 60 if gbps == 10 else 400
    net = dumbbell(4, rate=run["rate"], rtt="20us", queue="lowq-tc roce --limit 400000b")
    roce.load_rcm(run, net, gbps)
    roce.rdma_hosts(net, gbps)
    if run.get("lost"):  # half of the CNPs, at random
        net.prepare("sw", "nft 'table inet lose { chain forward { type filter hook forward priority 0; "
                          "udp dport 4791 @th,64,8 0x81 numgen random mod 2 0 counter drop; }; }'")
    net.stated("h1", "r", rate=run["rate"], rtt="20us")
    read = run["op"] == "read"
    clients = [roce.client(net, "r" if read else f"h{i}", f"h{i}" if read else "r",
                           f"{run['op']} --duration {ms}ms --start {run.start(i, '100us')}", label=f"flow{i}")
               for i in range(1, 5)]
    return net.plan(*roce.serve(*net.hosts), *clients, observe=[("sw", "r")], count=roce.count(2, ms))


def metrics(results: Results) -> dict[str, float | None]:
    rates = [flow["rate_bps"] for flow in roce.results_of(results, 4)]
    (red,) = (queue for queue in json.loads(results.ask("sw", "tc -j qdisc show dev r")) if queue["kind"] == "red")
    return {"qlen_p99_over_kmax": results.queues[0]["qlen_bytes"]["p99"] / red["options"]["max"],
            "goodput_mbps": sum(rates) / 1e6, "jain": jain(rates), "go_back_n": roce.went_back()}


SCENARIO = Scenario(
    title="RoCEv2: four senders, one receiver",
    question="""Soft-RoCE has no congestion control. Does roce_rcm prevent drops in an incast of SENDs or READs and keep
        the link in use, even if half of the CNPs are lost?""",
    topology="""
 h1..h4  a queue pair each, 64 kB messages  -- sw ==== RATE ==== r
                                    (RED for UDP 4791, CNPs first)
                                    lines of RATE, base RTT 20 us""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=[*each(op=["send", "read"], rate="1gbit"),
              *each(op=["send", "read"], rate="10gbit"),
              *each(op="send", rate="10gbit", lost="half")],
    params={"MTU of RoCE": 1024, "messages in flight": 4, "queue": "lowq-tc roce --limit 400000b",
            "counted": "from 2 ms on; 1 Gb/s: 400 ms, 10 Gb/s: 60 ms",
            "DCQCN": "defaults at 10 Gb/s; at 1 Gb/s T = K = 500 us, one CNP per 400 us, R_AI 5 and R_HAI 10 Mb/s, g "
                     "= 1/16",
            "LDCP": "a CNP per mark, beta 1; RTT 400 us and alpha 1/4 at 1 Gb/s, 100 us and 3/4 at 10 Gb/s",
            "paper": """Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015.
                Here: soft-RoCE without PFC; one switch, not a Clos network""",
            "paper, four senders": "Jain (op=send rate=10gbit): all four get equal shares"},
    words={"op": {"read": "READ", "send": "SEND"}, "lost": {"half": "half of the CNPs lost"}},
    shown=["utilisation", "drops", "qlen_p99_over_kmax", "goodput_mbps", "delay_p99_us", "marks", "jain", "go_back_n"],
    goals=[goal("drops", row="roce_rcm", most=0),
           goal("utilisation", row="roce_rcm", least=0.9),
           goal("drops", row="roce_ldcp", most=0)],
    conclusion="""Soft-RoCE goes back N packets after each loss, which costs READs most of their goodput.

        LDCP leaves some of a fast link unused, because its RTT is a fixed parameter here.""",
    metrics=metrics,
    plan=plan)
