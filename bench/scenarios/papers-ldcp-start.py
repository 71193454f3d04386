# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, goal, long, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads, queue=run.queue("100us"))
    run.prepare_hosts(net, initcwnd=87)
    server = run["from"] == "server"
    # counted from the first packet at the queue: of a server the answer to a SYN, which takes an RTT
    return net.measured(long("h1", "r", duration="1200us", start=run.start(1, "1ms"), control=run.control, pull=server),
                        count=("100us", "1200us") if server else ("0us", "1100us"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    series = results.series()
    used = {round((row["t_s"] - series[0]["t_s"]) * 1e4): row["throughput_bps"] / 1e10 for row in series}
    # the first bin begins with a packet of the handshake, the next with the first packet of data
    ten = [used.get(i, 0) for i in range(1, 11)]
    return {"used_rtt1": ten[0], "used_rtt2": ten[1], "used_rtt3": ten[2], "used_ten": sum(ten) / 10}


SCENARIO = Scenario(
    title="LDCP's draft, sections 1 and 3.1: the first RTTs of a new flow on an idle path",
    question="""LDCP's draft: a new flow starts at full speed, and does not stop sending after its first RTT. How much
        of the link does it use in each of its first RTTs?""",
    topology="""
 h1  one flow -- sw ==== 10 Gb/s ==== r
  10 Gb/s        (ldcp: WRED; dctcp: RED step)
                  base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=[{"from": "server"}, {"from": "server", "tso": 1}, {"from": "client"}],
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: 10",
            "client": "connects and sends at once: TCP has no window above 64 kB in a SYN-ACK",
            "first RTT": "from the first packet of data on; the handshake was an RTT before", "counted": "10 RTTs",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, abstract": """link used in the first RTT (from=server): a new flow jump starts at full speed at
                the very beginning""",
            "paper, section 3.1": """link used in the second RTT (from=server): after the first RTT the flow does not
                stop sending"""},
    words={"from": {"server": "a server sends", "client": "a client sends"}},
    shown=["used_rtt1", "used_rtt2", "used_rtt3", "used_ten", "retrans", "drops"],
    goals=[goal("used_rtt1", row="ldcp", least=0.95, variant={"from": "server"}, text="a server's first RTT"),
           goal("used_rtt2", row="ldcp", least=0.95),
           goal("drops", row="ldcp", most=0)],
    conclusion="""A server's flow fills its first RTT, as the draft says, and sends a little less in the second.

        A client's cannot: the window in a SYN-ACK is not scaled.""",
    metrics=metrics,
    plan=plan)
