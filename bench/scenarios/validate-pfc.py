# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, jain, Network, Results, roce, Run, Scenario


SENT = "ip -s -j link show dev h3"  # what g's port has sent
BELOW = 'sed -n "s/ root / parent f:1 /; s/^tc //p" /tmp/queue | tc -batch -'
# all ports that can be paused: node, device, and rate of its queue, "" for a host's line
PORTS = {"victim": [("sw", "sw2", "10gbit"), ("sw2", "h3", "1gbit"), ("sw2", "h4", "10gbit"), ("h1", "sw", ""),
                    ("h2", "sw", "")],
         "incast": [("sw", "r", "10gbit"), *((f"h{i}", "sw", "") for i in range(1, 5))]}
LINE = """tc qdisc add dev sw root handle 1: htb default 1 direct_qlen 100000
tc class add dev sw parent 1: classid 1:1 htb rate 10gbit ceil 10gbit burst 1514 cburst 1514 quantum 1514
tc qdisc add dev sw parent 1:1 handle 2: pfifo limit 100000
"""


def paused_ports(net: Network, kind: str) -> None:
    """What these ports have, below sch_switch"""
    for node, dev, rate in PORTS[kind]:
        words = (f"lowq-tc roce {dev} --rate {rate} --limit 400000b --quiet --dry-run" if rate else
                 "printf %s " + json.dumps(LINE).replace("\\n", "\n"))
        net.prepare(node, f"sh -c 'tc qdisc del dev {dev} root 2>/dev/null; {words} >/tmp/queue && "
                          f"tc qdisc add dev {dev} root handle f: switch && {BELOW}'")


def plan(run: Run) -> dict[str, Any]:
    kind = run["net"]
    net = roce.victim(10, {}, exact=False) if kind == "victim" else dumbbell(4, rate="", rtt="20us", exact=False)
    if kind == "incast":
        roce.rdma_hosts(net, 10)
    # all that RED lets in has room
    pauses = " xoff=80000 xon=40000" if run["pfc"] == "on" else ""
    net.prepare("", f"modprobe sch_switch pool=100000000 alpha=6400{pauses}")
    roce.load_rcm(run, net, 10)
    paused_ports(net, kind)
    if kind == "victim":
        net.stated("h1", "h3", rate="1gbit", rtt=None)
        net.stated("h2", "h4", rate="10gbit", rtt=None)
        net.prepare("sw2", f"{SENT} >$OUT/sent")
        clients = [roce.client(net, f"h{i}", f"h{i + 2}", f"{command} --duration 100ms --start {run.start(i, '100us')}",
                               label=f"flow{i}") for i, command in ((1, "uc-write"), (2, "send"))]
    else:
        net.stated("h1", "r", rate="10gbit", rtt="20us")
        clients = [roce.client(net, f"h{i}", "r", f"send --duration 60ms --start {run.start(i, '100us')}",
                               label=f"flow{i}") for i in range(1, 5)]
    for number, (node, dev, _) in enumerate(PORTS[kind]):
        net.prepare(node, f"tc -s -j qdisc show dev {dev} >$OUT/before{number}")
    return net.plan(*roce.serve(*(net.hosts if kind == "victim" else ["r"])), *clients,
                    observe=[("sw", "sw2" if kind == "victim" else "r")],
                    count=roce.count(0, 100) if kind == "victim" else roce.count(2, 60))


def counted(text: str) -> tuple[int, int]:
    """Drops and pauses of a port's switch"""
    (switch,) = (queue for queue in json.loads(text) if queue["kind"] == "switch")
    return switch["drops"], switch["overlimits"]


def metrics(results: Results) -> dict[str, float | None]:
    lost = pauses = 0
    for number, (node, dev, _) in enumerate(PORTS[results.run["net"]]):
        before = counted((results.directory / f"before{number}").read_text(encoding="utf-8"))
        now = counted(results.ask(node, f"tc -s -j qdisc show dev {dev}"))
        lost, pauses = lost + now[0] - before[0], pauses + now[1] - before[1]
    made: dict[str, float | None] = {"lost": lost, "pauses": pauses, "go_back_n": roce.went_back()}
    if results.run["net"] == "victim":
        sent = roce.bytes_sent(results.ask("sw2", SENT)) - roce.bytes_sent((results.directory / "sent").read_text("utf-8"))
        (flow,) = results.program("flow2")
        # 1024 of 1082 bytes are payload
        return made | {"congested_mbps": sent * 8 * 1024 / 1082 / 0.1 / 1e6,
                       "victim_share": flow["rate_bps"] / (1e10 * 1024 / 1082 * 0.9)}
    rates = [flow["rate_bps"] for flow in roce.results_of(results, 4)]
    return made | {"jain": jain(rates), "goodput_mbps": sum(rates) / 1e6}


SCENARIO = Scenario(
    title="RoCEv2 with PFC: switches pause their senders, 10 Gb/s",
    question="""The lab's RoCE loses packets where a lossless network stops the sender. Does congestion management
        matter where nothing is lost, and does it keep PFC from firing?""",
    topology=r"""
 victim:
 f --\                    /-- 1 Gb/s -- g    f -> g  UC WRITEs, as fast as f can
      sw  == 10 Gb/s == sw2                  x -> y  the victim, RC SENDs
 x --/                    \-- 10 Gb/s - y
 incast:
 h1..h4  RC SENDs  -- sw ==== 10 Gb/s ==== r
 (RED for UDP 4791 at all ports to the right; PFC towards the left)""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=each(net=["victim", "incast"], pfc=["off", "on"]),
    params={"pfc": "on: a switch that holds more than 80 kB from a neighbour pauses it, a switch or a host, "
                   "until it holds 40 kB; one priority",
            "MTU of RoCE": 1024,
            "counted": "victim: 100 ms; incast: 60 ms",
            "queue": "lowq-tc roce --limit 400000b",
            "victim share": "of 9 Gb/s",
            "pauses": "of hosts and of the switch before the congested port, together"},
    words={"net": {"victim": "victim flow", "incast": "four senders"},
           "pfc": {"on": "PFC", "off": "no PFC"}},
    shown=["victim_share", "congested_mbps", "goodput_mbps", "lost", "pauses", "go_back_n"],
    goals=[goal("lost", row="rxe", most=0, variant={"pfc": "on"}, text="nothing is lost with PFC"),
           goal("victim_share", row="roce_rcm", least=0.9, variant={"net": "victim"}, text="the victim's share"),
           goal("victim_share", row="roce_ldcp", least=0.9, variant={"net": "victim"}, text="the victim's share")],
    conclusion="""Head-of-line blocking: packets for g fill sw2, which pauses the link that x shares, and x with it.

        With congestion management few pauses are left, and the victim keeps its share with PFC and without.""",
    modules=["selftests/lib/sch_switch"],
    metrics=metrics,
    plan=plan)
