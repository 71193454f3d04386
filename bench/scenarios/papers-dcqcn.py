# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, jain, Results, roce, Run, Scenario


TODAY = {"dcqcn_timer_us": 300, "dcqcn_bytes_kb": 32, "dcqcn_alpha_us": 1, "dcqcn_ai_mbps": 5, "dcqcn_hai_mbps": 50,
         "dcqcn_f": 1, "cnp_interval_us": 4}


def port(run: Run, gbps: int) -> str:
    """The row's RED"""
    words = ("--min 5000b --max 200000b --probability 0.01" if run.row == "roce_rcm" else
             f"--min {gbps * 4000}b --max {gbps * 16000}b --probability 0.2")
    return f"lowq-tc roce {words} --limit 4000000b"


def client(run: Run, net: Any, number: int, to: str, command: str, ms: int) -> dict[str, Any]:
    return roce.client(net, f"h{number}", to, f"{command} --duration {ms}ms --start {run.start(number, '100us')}",
                       label=f"flow{number}")


def plan(run: Run) -> dict[str, Any]:
    senders = run["senders"]
    if senders == "victim":
        net = roce.victim(40, {("sw", "sw2"): ("40gbit", port(run, 40)), ("sw2", "h3"): ("10gbit", port(run, 10)),
                               ("sw2", "h4"): ("40gbit", port(run, 40))})
    else:
        net = dumbbell(senders, rate="40gbit", rtt="20us", queue=port(run, 40))
        roce.rdma_hosts(net, 40)
    roce.load_rcm(run, net, 40, **(TODAY if run.row == "dcqcn_today" else {}))
    if senders == "victim":
        net.stated("h1", "h3", rate="10gbit", rtt=None)
        net.stated("h2", "h4", rate="40gbit", rtt=None)
        return net.plan(*roce.serve(*net.hosts), client(run, net, 1, "h3", "uc-write", 100),
                        client(run, net, 2, "h4", "send", 100), observe=[("sw", "sw2")], count=roce.count(0, 100))
    net.stated("h1", "r", rate="40gbit", rtt="20us")
    return net.plan(*roce.serve("r"), *(client(run, net, i, "r", "send", 150) for i in range(1, senders + 1)),
                    observe=[("sw", "r")], count=roce.count(100, 150))


def metrics(results: Results) -> dict[str, float | None]:
    if results.run["senders"] == "victim":
        (flow,) = results.program("flow2")
        # 1024 of 1082 bytes are payload
        return {"victim_share": flow["rate_bps"] / (3e10 * 1024 / 1082), "victim_mbps": flow["rate_bps"] / 1e6}
    return {"queue_p90_bytes": results.queues[0]["delay_us"]["p90"] * 5000,  # what waits: the wait at the link's rate
            "jain": jain([flow["rate_bps"] for flow in roce.results_of(results, results.run["senders"])])}


SCENARIO = Scenario(
    title="DCQCN's paper: four senders, twenty senders and a victim at 40 Gb/s, with the paper's constants and today's",
    question="""DCQCN's paper (2015) shows equal shares, a short queue for 20:1 and an unharmed victim. What do its
        constants do here, and what do those in use today?""",
    topology=r"""
 senders=N: h1..hN  a queue pair each, SENDs of 64 kB -- sw ==== 40 Gb/s ==== r

 victim:    f --\                    /-- 10 Gb/s -- g   f -> g  UC WRITEs, as fast as f can
                 sw  == 40 Gb/s == sw2                  x -> y  the victim, RC SENDs
            x --/                    \-- 40 Gb/s -- y
            lines of 40 Gb/s, base RTT 20 us""",
    rows=["rxe", "roce_rcm", "dcqcn_red", "dcqcn_today"],
    reference="rxe",
    variants=each(senders=[4, 20, "victim"]),
    params={"MTU of RoCE": 1024, "messages in flight": 4, "limit": "4 MB at each port",
            "counted": "50 ms, from 100 ms on; victim: 100 ms from the start",
            "roce_rcm": "the paper's: RED 5 to 200 kB, up to 1 %, at all ports; T = K = 55 us, R_AI 40, R_HAI 200 "
                        "Mb/s, F 5, a CNP per 50 us",
            "dcqcn_red": "K_min 100 kB, K_max 400 kB per 25 Gb/s of the port, up to 20 %; senders as in the paper",
            "dcqcn_today": "that RED; adapters' defaults: T = 300 us, B = 32 kB, F 1, K = 1 us, R_AI 5, R_HAI 50 "
                           "Mb/s, a CNP per 4 us",
            "victim's share": "of the 30 Gb/s that f -> g leaves",
            "paper": """Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015.
                Here: soft-RoCE without PFC; MTU 1024; one path, not a Clos network; one sender to a port of 10 Gb/s
                in place of four to one of 40 Gb/s""",
            "paper, four senders": "Jain (senders=4): all four get equal shares",
            "paper, evaluation, 20:1": "queue, p90 (senders=20): 76.6 kB",
            "paper, victim flow": """its share (senders=victim): as much as without the congestion that it does not
                cause"""},
    words={"senders": {4: "four senders", 20: "twenty senders", "victim": "victim"}},
    shown=["utilisation", "queue_p90_bytes", "jain", "victim_share", "delay_p99_us", "marks", "drops"],
    goals=[goal("queue_p90_bytes", row="roce_rcm", most=76600, variant={"senders": 20},
                text="twenty senders: the paper's queue, p90"),
           goal("victim_share", row="roce_rcm", least=0.9, variant={"senders": "victim"}, text="the victim's share"),
           goal("jain", row="roce_rcm", least=0.95, variant={"senders": 4}, text="four senders: Jain")],
    conclusion="""The queue for twenty senders is longer than the paper's: its RED marks too little below K_max (roce-
        incast-20).

        The paper's RED marks the victim, too; today's does not.

        Today's senders raise their target with each few kilobytes, and the queue swings.""",
    metrics=metrics,
    plan=plan)
