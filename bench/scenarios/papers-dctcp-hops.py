# SPDX-License-Identifier: GPL-2.0

import statistics
from typing import Any

from lowq_lab import each, goal, jain, long, Network, Results, Run, Scenario


GROUPS = {"s1": range(1, 11), "s2": range(11, 31), "s3": range(31, 41)}


def plan(run: Run) -> dict[str, Any]:
    net = Network()
    net.switch("t1", "sw")
    net.host(*(f"h{i}" for i in range(1, 41)), "r", "far")
    for i in range(1, 41):
        net.link(f"h{i}", "sw" if i in GROUPS["s3"] else "t1", back="100us")
    net.line_rate("1gbit", *net.hosts[:40])
    for node, to in (("t1", "sw"), ("sw", "r"), ("sw", "far")):
        net.link(node, to)
    net.queue("t1", "sw", run.queue("100us", k=65, limit="4000000b"), rate="10gbit")
    net.queue("sw", "r", run.queue("100us", k=20, limit="700000b"), rate="1gbit")
    net.stated("h1", "r", rate="1gbit", rtt="100us")
    flows = [long(f"h{i}", "far" if i in GROUPS["s2"] else "r", duration="510ms", start=run.start(i, "5ms"),
                  control=run.control) for i in range(1, 41)]
    return net.plan(*flows, observe=[("sw", "r"), ("t1", "sw")], count=("300ms", "500ms"))


def metrics(results: Results) -> dict[str, float]:
    rates = {name: [results.flow(f"h{i}")["goodput_bps"] or 0 for i in group] for name, group in GROUPS.items()}
    mean = {name: statistics.mean(group) * 1514 / 1448 / 1e6 for name, group in rates.items()}
    off = (abs(mean[name] / fair - 1) for name, fair in (("s1", 50), ("s3", 50), ("s2", 475)))
    return {"jain": jain(rates["s1"] + rates["s3"]), "share_off": max(off),
            "timeouts": results.counter("TCPTimeouts", *(f"h{i}" for i in range(1, 41)))} | {
                f"{name}_mbps": rate for name, rate in mean.items()}


SCENARIO = Scenario(
    title="DCTCP's paper, figure 17: two bottlenecks one after the other, 10 and 1 Gb/s",
    question="""DCTCP's paper gives 46, 54 and 475 Mb/s per flow for three groups that share two bottlenecks, within 10
        % of their fair shares. What do they get here?""",
    topology=r"""
 S1  h1..h10   --\
                  t1 ==== 10 Gb/s ==== sw ==== 1 Gb/s ==== r    (S1, S3)
 S2  h11..h30  --/     (K = 65)       / \ (K = 20)
 S3  h31..h40  ----------------------/   \---------------- far  (S2)
  1 Gb/s each                              base RTT 100 us""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(hosts=40),
    params={"flows": "one of each host, with S1 and S3 to r, S2 to far",
            "K of DCTCP": "65 packets at 10 Gb/s, 20 at 1 Gb/s", "limit": "4 MB at 10 Gb/s, 700 kB at 1 Gb/s",
            "counted": "0.3 s to 0.5 s, with headers, as in the paper: its rates add up to the links",
            "columns of the queue": "of the 1 Gb/s link",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: one receiver for all of S2;
                RTT 100 us for all""",
            "paper, fig. 17": """each sender of S1: 46.0 Mb/s; each sender of S3: 54.0 Mb/s; each sender of S2: 475
                Mb/s"""},
    shown=["s1_mbps", "s3_mbps", "s2_mbps", "share_off", "timeouts", "delay_p99_us", "drops"],
    goals=[goal("share_off", row="dctcp_ref", most=0.1, text="each group within 10 % of its fair share"),
           goal("timeouts", row="dctcp_ref", most=0)],
    conclusion="""S1's packets pass two queues that mark, and it is at a window of few packets: it gets less than its
        share.""",
    metrics=metrics,
    plan=plan)
