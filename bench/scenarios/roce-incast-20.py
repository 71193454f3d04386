# SPDX-License-Identifier: GPL-2.0
"""Why the paper's own constants miss the paper's queue: DCQCN has its fixed point where

	p = cbrt(R_AI N^2 / (K C^2) * (1 / B + N / (T C))^2)

of the packets are marked (Zhu et al., ECN or Delay, CoNEXT 2016; rates and B in
packets). With 20 senders and R_AI = 40 Mb/s per 55 us that is 2.1 %. RED up to 1 % has
no such point below K_max, where it marks everything: all senders are cut together and
recover together. queue_at_rest is the queue at which RED marks with probability p."""

from typing import Any

from lowq_lab import dumbbell, each, goal, jain, Results, roce, Run, Scenario


SENDERS = 20


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(SENDERS, rate="40gbit", rtt="20us", queue="lowq-tc roce --min 5000b --max 200000b --limit 4000000b "
                                                             f"--probability {0.01 if run['marked'] == '1%' else 0.1}")
    small = {"dcqcn_ai_mbps": 5, "dcqcn_hai_mbps": 25, "dcqcn_timer_us": 300, "ldcp_alpha": 32}
    roce.load_rcm(run, net, 40, **(small if run["increase"] == "small" else {}))
    roce.rdma_hosts(net, 40)
    net.stated("h1", "r", rate="40gbit", rtt="20us")
    clients = [roce.client(net, f"h{i}", "r", f"send --duration 130ms --start {run.start(i, '100us')}", label=f"flow{i}")
               for i in range(1, SENDERS + 1)]
    return net.plan(*roce.serve("r"), *clients, observe=[("sw", "r")], count=roce.count(100, 130))


def at_rest(run: Run) -> float | None:
    """Bytes at which DCQCN's fluid model rests, unless that is more than RED marks for"""
    most = 0.01 if run["marked"] == "1%" else 0.1
    ai, us = (5, 300) if run["increase"] == "small" else (40, 55)
    bits = 1082 * 8
    capacity = 40e9 / bits
    p = (ai * 1e6 / bits * SENDERS ** 2 / (55e-6 * capacity ** 2) *
         (1082 / 1e7 + SENDERS / (us * 1e-6 * capacity)) ** 2) ** (1 / 3)
    return None if p > most else round(5000 + 195000 * p / most)


def metrics(results: Results) -> dict[str, float | None]:
    made: dict[str, float | None] = {
        "jain": jain([flow["rate_bps"] for flow in roce.results_of(results, SENDERS)]),
        "queue_p90_bytes": results.queues[0]["delay_us"]["p90"] * 5000}  # the wait at the link's rate
    return made | ({"queue_at_rest": at_rest(results.run)} if results.run.row == "roce_rcm" else {})


SCENARIO = Scenario(
    title="RoCEv2: twenty senders at 40 Gb/s",
    question="""DCQCN's paper shows a queue of 76.6 kB at the 90th percentile for 20:1 at 40 Gb/s. What is it here, and
        which constants reach it?""",
    topology="""
 h1..h20  a queue pair each, SENDs of 64 kB  -- sw ==== 40 Gb/s ==== r
                          (RED 5 kB to 200 kB, up to 1 % or 10 %)
                             lines of 40 Gb/s, base RTT 20 us""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=each(marked=["1%", "10%"], increase=["full", "small"]),
    params={"MTU of RoCE": 1024, "messages in flight": 4,
            "queue": "lowq-tc roce --min 5000b --max 200000b --limit 4000000b", "counted": "100 to 130 ms",
            "DCQCN": "full: the paper's (R_AI 40 Mb/s, T 55 us); small: R_AI 5 Mb/s, T 300 us",
            "queue_at_rest": "bytes, the queue at DCQCN's fixed point by the formula in the scenario; none: beyond "
                             "K_max",
            "LDCP": "a CNP per mark, beta 1, RTT 100 us; full: alpha 3/4; small: alpha 1/32; it rests "
                    "where N alpha / (C RTT) of the packets are marked, 3.2 % with the full increase",
            "paper": """Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015.
                Here: soft-RoCE without PFC; MTU 1024; 30 ms are counted""",
            "paper, evaluation, 20:1": """queue, p90 (marked=1% increase=full): 76.6 kB; queue, p90 (marked=10%
                increase=full): 76.6 kB; here marks up to 10 %, not 1 %"""},
    words={"marked": "at most {} marked", "increase": "{} increase"},
    shown=["utilisation", "queue_at_rest", "queue_p90_bytes", "delay_p99_us", "marks", "drops", "jain"],
    goals=[goal("queue_p90_bytes", row="roce_rcm", most=76600, text="queue, p90 (the paper)"),
           goal("utilisation", row="roce_rcm", least=0.9),
           goal("jain", row="roce_rcm", least=0.95)],
    conclusion="""DCQCN's fixed point needs more marks than RED gives below K_max with the paper's probability: all
        are cut together. LDCP needs more still: its windows fall at once, and half of the link is unused.

        RED up to a higher probability, or a smaller increase, has one.""",
    metrics=metrics,
    plan=plan)
