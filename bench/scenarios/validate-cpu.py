# SPDX-License-Identifier: GPL-2.0
#
# A CPU that needs a fixed time for each packet is a queue whose packets all have that length: netem's rate with
# a cell that is longer than any packet. What a host receives and what it sends pass one such queue, an ifb.
# The other way, a hook in the kernel that lets virtual time pass, needs a patch of each kernel, and stops the
# timers of all hosts meanwhile, which have one clock.

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, Network, requests, Results, Run, Scenario


def shape(run: Run) -> tuple[str, str, int, int, int, int]:
    """Rate, base RTT, ms from which and until which is counted, requests per second, ns of CPU"""
    if run.row == "prague":
        return "100mbit", "10ms", 2000, 6000, 40, run["cost"] * 100
    return "10gbit", "100us", 100, 200, 2000, run["cost"]


def cpu(net: Network, host: str, cost: int) -> None:
    """Its CPU is ifb0"""
    redirect = "matchall action mirred egress redirect dev ifb0"
    for command in ("ip link add ifb0 txqueuelen 10000 type ifb", "ip link set ifb0 up",
                    f"tc qdisc add dev ifb0 root netem rate {65535 * 8000000 // cost}kbit 0 65535 limit 1000",
                    "tc qdisc add dev sw clsact", f"tc filter add dev sw ingress {redirect}",
                    f"tc filter add dev sw egress {redirect}"):
        net.prepare(host, command)


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, begin, end, per_second, cost = shape(run)
    net = dumbbell(3, rate=rate, rtt=rtt, queue=run.queue(rtt))
    run.prepare_hosts(net)
    net.stated("h1", "r", rate=rate, rtt=rtt)
    for host in net.hosts if cost else ():
        cpu(net, host, cost)
    return net.plan(*run.longs(2, "r", duration=f"{end + 10}ms"),
                    requests("h3", "r", size="20k", persist=True, rate=per_second, start=f"{begin}ms",
                             duration=f"{end - begin}ms", control=run.control, timeout="10s"),
                    observe=[("sw", "r")], count=(f"{begin}ms", f"{end}ms"))


def metrics(results: Results) -> dict[str, float | None]:
    _, _, _, end, _, cost = shape(results.run)
    if not cost:
        return {}
    seen = json.loads(results.ask("r", "tc -s -j qdisc show dev ifb0"))[0]
    return {"host_drops": seen["drops"], "host_cpu": seen["packets"] * cost / 1e6 / (end + 10)}


SCENARIO = Scenario(
    title="CPU time: hosts that need a fixed time for each packet, 10 Gb/s and 100 Mb/s",
    question="""The lab's hosts need no time for a packet. From which time on are they the limit, and does less
        change anything?""",
    topology=r"""
 h1 h2  a long flow each     --\
 h3     answers requests     ---- sw ==== rate ==== r
  each host: one CPU              (the queue)       one CPU""",
    rows=["dctcp", "dctcp_ref", "ldcp", "prague"],
    reference="dctcp",
    variants=each(cost=[0, 500, 1000, 2000]),
    params={"cost": "ns of a host's one CPU for each packet that it sends or receives, in the order in which "
                    "they come; 1000 wait at most, as in a backlog of Linux; 0: none, as in all other scenarios. "
                    "Prague, at 100 Mb/s: a hundred times as much, 50, 100 and 200 us",
            "requests": "20 kB, Poisson, 2000 a second; 40 at 100 Mb/s",
            "dctcp, dctcp_ref, ldcp": "10 Gb/s, base RTT 100 us; counted: 0.1 s to 0.2 s",
            "prague": "100 Mb/s, base RTT 10 ms; counted: 2 s to 6 s"},
    words={"cost": {0: "no CPU time", 500: "500 ns a packet", 1000: "1 us a packet", 2000: "2 us a packet"}},
    shown=["utilisation", "qlen_mean_pkts", "mark_fraction", "rpc_p50_us", "host_drops", "host_cpu"],
    goals=[goal("utilisation", row="dctcp", least=0.98, variant={"cost": 500},
                text="link used with 500 ns for a packet")],
    conclusion="""The receiver is the limit where a packet costs more than it takes on the link.

        The queue is then before the CPU, which marks nothing: no control over a switch's queue can help.""",
    metrics=metrics,
    plan=plan)
