# SPDX-License-Identifier: GPL-2.0

import random
from typing import Any

from lowq_lab import dumbbell, each, goal, long, Network, Results, Run, Scenario


def drawn(run: Run) -> list[tuple[float, float]]:
    """When the rate changes, seconds, and to how many Mb/s: on a logarithmic scale, by the seed"""
    chance, low, high = random.Random(run.seed), float(run["rate"][:-4]), float(run["to"][:-4])
    return [(n * run["every"] / 1000, low * (high / low) ** chance.random()) for n in range(35 * 1000 // run["every"])]


def vary(net: Network, run: Run) -> None:
    """The way of data, or of ACKs"""
    share = float(run["rate"][:-4]) * 1000 / run.get("share", 1)
    node, command = {
        "slots": ("sw", "tc qdisc replace dev h1 root netem slot 4ms 4ms limit 1000000"),
        "asymmetric": ("r", f"tc qdisc replace dev sw root cake bandwidth {share:.0f}kbit ack-filter besteffort"),
        "two-way": ("r", f"tc qdisc replace dev sw root cake bandwidth {share:.0f}kbit ack-filter besteffort"),
        "reorder": ("h1", "tc qdisc add dev sw root netem delay 3ms reorder 99% limit 1000000"),
        "loss": ("h1", f"tc qdisc add dev sw root netem loss {run.get('percent')}% limit 1000000"),
    }.get(run["link"], ("", "true"))
    net.prepare(node, command)
    if run["link"] == "jitter":
        net.ends["sw", "h1"] |= {"delay": "15ms", "jitter": "10ms"}


def plan(run: Run) -> dict[str, Any]:
    rtt, step = run.get("rtt", "20ms"), f" --step {run['step']}" if run.get("step") else ""
    net = dumbbell(1, rate=run["rate"], rtt=rtt, queue=run.queue(rtt) + step, buffer=33554432)
    net.stated("h1", "r", rate=run["rate"], rtt=rtt)
    vary(net, run)
    if run.get("ecn"):
        net.sysctl("net.ipv4.tcp_ecn", run["ecn"])
    traffic = [long("h1", "r", duration="35s", control=run.control)]
    if run["link"] == "two-way":
        traffic.append(long("r", "h1", duration="35s", control="cubic", label="back"))
    changes = [{"at": f"{at * 1000:.0f}ms", "node": "sw", "dev": "r", "rate": f"{mbps * 1e6:.0f}bit"}
               for at, mbps in (drawn(run) if run.get("every") else ())]
    return net.plan(*traffic, observe=[("sw", "r")], count=("5s", "35s"), bin_="10ms", events=changes)


def metrics(results: Results) -> dict[str, float | None]:
    run = results.run
    if not run.get("every"):
        return {}
    return {"utilisation": results.share(sum(mbps * 1e6 * run["every"] / 1000 for at, mbps in drawn(run) if at >= 5))}


SCENARIO = Scenario(
    title="Links as they are: rates that change all the time, bursts, asymmetry, jitter, loss, reordering",
    question="How much of a link that does not stand still does Prague use, and how long do packets wait?",
    topology="""
 h1  a long flow --- sw ==== rate ==== r
                     (dualpi2, lowq-tc's defaults)
                      base RTT rtt, 20 ms where it is not given""",
    rows=["prague", "cubic_l4s", "bbr_l4s"],
    reference="cubic_l4s",
    variants=[*each(link="steady", rate=["500kbit", "1mbit", "4mbit", "10mbit", "50mbit"]),
              *each(link="steady", rate="4mbit", rtt="100ms"),
              *each(link="steady", rate="10mbit", rtt=["5ms", "100ms"]),
              *each(link="wifi", rate="20mbit", to="100mbit", every=[4, 20]),
              *each(link="lte", rate="5mbit", to="25mbit", every=100),
              *each(link="slots", rate="50mbit"),
              *each(link="asymmetric", rate="50mbit", share=[10, 100]),
              *each(link="asymmetric", rate="50mbit", share=100, ecn=3),
              *each(link="two-way", rate="50mbit", share=10),
              *each(link=["jitter", "reorder"], rate="50mbit"),
              *each(link="loss", rate="50mbit", percent=[0.01, 0.1, 1]),
              # the curve of use against delay: L4S marked above a longer time
              *(one for step in ("3ms", "6ms", "10ms")
                for one in each(link="wifi", rate="20mbit", to="100mbit", every=[4, 20], step=step)
                + each(link="lte", rate="5mbit", to="25mbit", every=100, step=step))],
    params={"wifi, lte": "each every ms the rate is drawn again between rate and to, on a logarithmic scale, by the "
                         "seed",
            "slots": "ACKs arrive in bursts, one every 4 ms",
            "asymmetric": "ACKs have 1/share of the rate, and an ACK filter (cake)",
            "ecn": "net.ipv4.tcp_ecn=3 on both hosts: Accurate ECN for CUBIC and BBR, too",
            "two-way": "the same, and r uploads there with CUBIC",
            "jitter": "the RTT varies by 5 ms either way, which reorders ACKs",
            "reorder": "1 % of the packets are 3 ms late", "loss": "at random, percent",
            "step": "ECT(1) is marked above it, lowq-tc's --step; where it is not given, 1 ms, or the time of 1.5 "
                    "packets (CUBIC and BBR are in the other queue)",
            "counted": "from 5 s to 35 s; the utilisation of wifi and lte is of what the link could carry"},
    words={"link": {"asymmetric": "few ACKs", "jitter": "jitter", "loss": "random loss", "lte": "LTE",
                    "reorder": "reordering", "slots": "bursts of ACKs", "steady": "steady", "two-way": "upload",
                    "wifi": "Wi-Fi"},
           "share": "ACKs 1/{}", "percent": "{} %", "step": "step {}", "every": "new rate each {} ms"},
    shown=["utilisation", "delay_mean_us", "delay_p99_us", "drops", "retrans"],
    goals=[goal("delay_p99_us", row="prague", most=1, median=0.5, beside=["cubic_l4s", "bbr_l4s"]),
           goal("utilisation", row="prague", least=0.5, median=0.95, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Where rates change all the time, a step of a millisecond keeps the wait short and leaves a part of
        the link unused.

        Random losses leave CUBIC and Prague alike; BBR does not respond to them.

        cake's filter drops no ACK with an option that it does not know, such as Accurate ECN's.""",
    metrics=metrics,
    plan=plan)
