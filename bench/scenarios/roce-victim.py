# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import goal, Results, roce, Run, Scenario


SENT = "ip -s -j link show dev h3"  # what g's port has sent


def plan(run: Run) -> dict[str, Any]:
    net = roce.victim(10, {("sw", "sw2"): ("10gbit", "lowq-tc roce"), ("sw2", "h3"): ("1gbit", "lowq-tc roce"),
                           ("sw2", "h4"): ("10gbit", "lowq-tc roce")})
    roce.load_rcm(run, net, 10)
    net.stated("h1", "h3", rate="1gbit", rtt=None)
    net.stated("h2", "h4", rate="10gbit", rtt=None)
    net.prepare("sw2", f"{SENT} >$OUT/sent")
    clients = [roce.client(net, "h1", "h3", f"uc-write --duration 100ms --start {run.start(1, '100us')}", label="flow1")
               ] if run["with"] == "f" else []
    clients += [roce.client(net, "h2", "h4", f"send --duration 100ms --start {run.start(2, '100us')}", label="flow2")]
    return net.plan(*roce.serve(*net.hosts), *clients, observe=[("sw", "sw2")], count=roce.count(0, 100))


def metrics(results: Results) -> dict[str, float | None]:
    (flow,), f = results.program("flow2"), results.run["with"] == "f"
    # 1024 of 1082 bytes are payload
    made = {"victim_mbps": flow["rate_bps"] / 1e6,
            "victim_share": flow["rate_bps"] / (1e10 * 1024 / 1082 * (0.9 if f else 1))}
    # what g's port passed on, not what f sent: UC is not acknowledged
    sent = roce.bytes_sent(results.ask("sw2", SENT)) - roce.bytes_sent((results.directory / "sent").read_text("utf-8"))
    return made | {"congested_mbps": sent * 8 * 1024 / 1082 / 0.1 / 1e6 if f else None}


SCENARIO = Scenario(
    title="RoCEv2: the victim flow",
    question="""x -> y shares a link with f -> g, which is congested at a later link. Does x -> y get what f -> g cannot
        use?""",
    topology=r"""
 f --\                    /-- 1 Gb/s -- g    f -> g  UC WRITEs, as fast as f can
      sw  == 10 Gb/s == sw2                  x -> y  the victim, RC SENDs
 x --/                    \-- 10 Gb/s - y    (RED for UDP 4791 at all three)
      lines of 10 Gb/s""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=[{"with": "nothing"}, {"with": "f"}],
    params={"MTU of RoCE": 1024, "counted": "payload received in 100 ms",
            "solo share": "9 of 10 Gb/s, when f -> g has its 1 Gb/s"},
    words={"with": {"f": "beside f -> g", "nothing": "alone"}},
    shown=["victim_mbps", "congested_mbps", "victim_share"],
    goals=[goal("victim_share", row="roce_rcm", least=0.9),
           goal("victim_share", row="roce_ldcp", least=0.9)],
    conclusion="""x -> y starves without congestion management: f fills the shared link with packets that are dropped
        behind it.

        roce_rcm slows f to the rate of g's link, so that x -> y keeps its share.""",
    metrics=metrics,
    plan=plan)
