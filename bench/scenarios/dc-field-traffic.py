# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, long, Network, requests, Results, Run, Scenario, TSO

RATE, RTT = "10gbit", "100us"


def queue(run: Run, number: int) -> str:
    """The row's, at the switch of this number"""
    return run.queue(RTT).replace("switch-id 1", f"switch-id {number}")


def three_links(run: Run) -> Network:
    """a to b to sw to r, each link with a queue; the way back has the delay"""
    net = Network(offloads=run.offloads)
    net.path = RATE, RTT
    net.switch("a", "b", "sw")
    net.host(*hosts(1, 6), "r")
    for host, switch in (("h1", "a"), ("h2", "a"), ("h3", "b"), ("h4", "sw")):
        net.link(host, switch, back=RTT)
    net.link("h5", "b")
    net.link("h6", "sw")
    for number, (switch, to) in enumerate((("a", "b"), ("b", "sw"), ("sw", "r")), 1):
        net.link(switch, to)
        net.queue(switch, to, queue(run, number), rate=RATE)
    return net


def plan(run: Run) -> dict[str, Any]:
    kind = run["traffic"]
    both = kind in ("both-ways", "cubic-back")
    if kind == "row":
        net = three_links(run)
    else:
        back = (RATE, queue(run, 2) if kind == "both-ways" else "bfifo limit 1000000") if both else None
        net = dumbbell(1 if both else 2, rate=RATE, rtt=RTT, queue=queue(run, 1), back=back, offloads=run.offloads)
    if not both:
        net.line_rate(RATE, *(host for host in net.hosts if host != "r"))
    elif run.offloads:  # the switch, not the host, is where traffic both ways meets
        net.line_rate("25gbit", *net.hosts)
    run.telemetry(net, **({"line_rate_mbps": int(run["rate"][:-4]) * 1000} if run.get("rate") else {}))

    def flow(number: int, from_: str, to: str, control: str = run.control, **fields: Any) -> dict[str, Any]:
        return long(from_, to, duration="410ms", start=run.start(number, "1ms"), control=control, **fields)

    traffic, merging = [flow(1, "h1", "r")], ["r"]
    if kind == "requests":
        traffic += [requests("h2", "r", persist=bool(run.get("keep")) or None, size=100000, load="3gbit", start="90ms",
                             duration="310ms", control=run.control, timeout="5s")]
    elif kind == "row":
        traffic += [flow(number, f"h{number}", to, label="beside") for number, to in ((2, "h5"), (3, "h6"), (4, "r"))]
        merging += ["h5", "h6"]
    else:
        traffic += [flow(2, "r", "h1", *(["cubic"] if kind == "cubic-back" else []), label="back",
                         flows=4 if kind == "cubic-back" else None)]
        merging += ["h1"]
    net.stated("h1", "r", rate=RATE, rtt=RTT)
    net.merging(*merging)
    return net.plan(*traffic, observe=[("sw", "r")], count=("100ms", "400ms"))


def metrics(results: Results) -> dict[str, float | None]:
    senders = {"requests": 2, "row": 6}.get(results.run["traffic"], 1)
    made = {"long_gbps": results.flow("h1")["goodput_bps"] / 1e9,
            "timeouts": results.counter("TCPTimeouts", *hosts(1, senders))}
    return made | {f"{label}_gbps": sum(rates) / flows / 1e9 for label, flows in (("back", 1), ("beside", 3))
                   if (rates := results.goodputs(label=label))}


TRAFFIC = [*each(traffic="requests"), *each(traffic="requests", keep=1), *each(traffic="requests", rate="10gbit"),
           *each(traffic=["both-ways", "cubic-back", "row"])]

SCENARIO = Scenario(
    title="Data centre: requests beside a long flow, traffic both ways, and three links in a row",
    question="What does a flow get beside requests, against traffic on the way back, and across several full links?",
    topology=r"""
 h1  a long flow --\                                      /-- r
                    sw == 10 Gb/s == 10 Gb/s == 10 Gb/s ==
 others, by row  --/   (the last queue; in a row: three)
  10 Gb/s each         base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=TRAFFIC + each(TRAFFIC, tso=1),
    params={"tso": TSO.format("10 Gb/s (both-ways, cubic-back: 25 Gb/s)"),
            "requests": "h2 answers requests of 100 kB, Poisson, 3 Gb/s, a connection each",
            "keep": "1: on connections that are kept",
            "rate": "the host's, for HPCC++, at which flows start; if not stated, they start with 10 packets",
            "both-ways": "r sends a long flow to h1, too, through a queue of the same kind on the way back",
            "cubic-back": "four flows of CUBIC on the way back, through a FIFO of 1 MB: acknowledgements wait there",
            "row": "three links in a row, each with a queue and a flow of its own beside the long flow",
            "counted": "0.1 s to 0.4 s; rates back and beside: all of 0.41 s"},
    words={"traffic": {"both-ways": "both ways", "cubic-back": "CUBIC on the way back", "requests": "requests",
                       "row": "three full links"},
           "keep": {1: "kept connections"}, "rate": "start at {}"},
    shown=["long_gbps", "back_gbps", "beside_gbps", "rpc_p50_us", "rpc_p99_us", "delay_mean_us", "delay_p99_us",
           "timeouts"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1, beside=["dctcp", "dctcp_ref"], variant={"traffic": "requests"}),
           goal("rpc_p99_us", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"], variant={"traffic": "requests"}),
           goal("long_gbps", row="hpccpp", least=0.9, median=1, beside=["dctcp", "dctcp_ref"])],
    conclusion="""None of HPCC++'s packets is lost, so that its slowest requests take a small part of DCTCP's time.

        Acknowledgements that wait in CUBIC's queue cost DCTCP and LDCP most of their rate, and HPCC++ little.

        Across three full links HPCC++ takes the busiest, and loses least, unless hosts send bursts.""",
    metrics=metrics,
    plan=plan)
