# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, incast, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(32, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads,
                   queue=run.queue("100us", "--limit", "1000000b", k=65))
    run.prepare_hosts(net, initcwnd=87)
    if run.control != "ldcp":
        net.initcwnd(run["iw"], *hosts(1, 32))
    return net.measured(incast(hosts(1, 32), "r", fan=256, size="64k", jitter="10us", control=run.control, timeout="5s"),
                        count=("0ms", "100ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    queue = results.queues[0]
    return {"timeouts": results.counter("TCPTimeouts", *hosts(1, 32)), "first_rtt_drops": queue["dropped_not_ect"],
            "stable_drops": queue["dropped_ect0"] + queue["dropped_ce"]}


SCENARIO = Scenario(
    title="LDCP: incast of 256 x 64 kB at 10 Gb/s, base RTT 100 us",
    question="256 answers start at full speed at once: do they complete without a timeout, and sooner than with DCTCP?",
    topology="""
 h1..h32  8 x 64 kB each, within 10 us   -- sw ==== 10 Gb/s ==== r
  10 Gb/s each                             (ldcp: WRED; dctcp: RED step; 1 MB)
                                            base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(iw=[10, 87]) + each(iw=[10, 87], tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: iw", "K of dctcp": "65 packets", "limit": "1 MB",
            "starts": "at random within 10 us", "all at full rate": "13.8 ms",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, section 2.3": """packets after the first RTT that are lost (iw=87): they experience seldom packet
                loss; packets of the first RTT that are lost (iw=87): dropped if the queue exceeds K, by intention""",
            "paper, section 3.1": """timeouts (iw=87): the last packet of a first RTT is ECN-capable, so that no tail
                loss waits for one"""},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "stable_drops", "first_rtt_drops", "qlen_p99_pkts", "marks",
           "retrans"],
    goals=[goal("timeouts", row="ldcp", most=0),
           goal("stable_drops", row="ldcp", most=0),
           goal("rpc_p99_us", row="ldcp", most=1.2, median=1, beside=["dctcp"])],
    conclusion="""DCTCP has timeouts with an initial window as large as LDCP's; LDCP has none.

        The queue drops most of LDCP's first RTT, as intended; windows then begin with the packets that arrived.

        LDCP's last few answers do not fill the link, because their windows are a few packets.""",
    metrics=metrics,
    plan=plan)
