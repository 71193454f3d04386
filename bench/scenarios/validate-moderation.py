# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    ns, n = int(run["held"][:-2]) * 1000, run["flows"]
    net = dumbbell(n, rate="10gbit", rtt="100us", queue=run.queue("100us", k=run["k"]),
                   exact=False)
    net.stated("h1", "r", rate="10gbit", rtt="100us", mark_at=run.step(run["k"]))
    for host in net.hosts:
        net.packets_held(host, "sw", ns)
    return net.plan(*run.longs(n, "r", duration="510ms"), observe=[("sw", "r")], count=("100ms", "500ms"))


SCENARIO = Scenario(
    title="Interrupt moderation: what DCTCP loses where hosts wait before they take packets, 10 Gb/s",
    question="""The lab's hosts take each packet when it arrives. What changes where they wait for more, as network
        cards do?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== 10 Gb/s ==== r
  packets held               (RED: a step at K)     packets held
                              base RTT 100 us""",
    rows=["dctcp"],
    variants=[*each(flows=2, k=65, held=["0us", "10us", "50us", "100us"]),
              *each(flows=8, k=65, held=["0us", "50us"]),
              *each(flows=[2, 8], k=120, held="50us")],
    params={"held": "both hosts take packets only so long after the first of them arrived, and merge those of a flow "
                    "(napi_defer_hard_irqs, gro_flush_timeout, GRO); 0: at once",
            "k": "packets, RED's step; 120 is 65 and what arrives in 50 us, and a little", "counted": "0.1 s to 0.5 s"},
    words={"held": "held {}", "k": "K {}"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "jain"],
    goals=[goal("utilisation", row="dctcp", least=0.98, variant={"held": "0us"},
                text="link used, packets taken at once"),
           goal("utilisation", row="dctcp", least=0.98, variant={"k": 120},
                text="link used, with room for what is held")],
    conclusion="""Held packets are acknowledged at once, and the ACKs let as many leave at once: the queue is full and
        empty in turns.

        A threshold with room for what is held (lowq-tc --coalesce) fills the link again; the shares stay uneven.""",
    plan=plan)
