# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, incast, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(10, rate="100gbit", rtt="10us", line="100gbit" if run.offloads else "", offloads=run.offloads,
                   queue=run.queue("10us", "--limit", "2000000b"))
    run.telemetry(net, max_stage=run["stage"], base_rtt_ns=10000)
    if run.control == "hpccpp":
        net.initcwnd(run["iw"], *hosts(1, 10))
    return net.measured(incast("h*", "r", fan=60, size="500k", jitter="1us", control=run.control, timeout="5s"),
                        count=("0ms", "10ms"), bin_="10us")


def metrics(results: Results) -> dict[str, float | None]:
    return {"queue_max_kb": max(row.get("qlen_bytes_max", 0) for row in results.series()) / 1000}


SCENARIO = Scenario(
    title="HPCC++: incast of 60 x 500 kB at 100 Gb/s, base RTT 10 us",
    question="How long does the queue get when 60 answers come at once, and is anything lost with 2 MB?",
    topology="""
 h1..h10  6 x 500 kB each, within 1 us     -- sw ==== 100 Gb/s ==== r
                                             (2 MB; stamps, or RED step)
                                              base RTT 10 us""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(stage=[5, 0], iw=10),
              *each(stage=[5, 0], iw=4),
              *each(stage=[5, 0], iw=3),
              *each(stage=1, iw=[10, 4]),
              *each(stage=1, iw=[10, 4], tso=1)],
    params={"tso": TSO.format("100 Gb/s"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "iw": "initial window of HPCC++, packets; DCTCP has 10", "starts": "at random within 1 us",
            "N": "not given: W_ai follows the mean of U", "T": "10 us", "limit": "2 MB",
            "first windows": "60 x 10 packets are 908 kB, 60 x 4 are 363 kB, 60 x 3 are 272 kB, sent before any "
                             "feedback; a probe for each flow is 7 kB more",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes, not RDMA""",
            "paper, abstract": """longest queue (stage=1 iw=4): little congestion even under large-scale incasts;
                packets lost (stage=1 iw=4): little congestion even under large-scale incasts"""},
    shown=["queue_max_kb", "drops", "rpc_p50_us", "rpc_p99_us", "retrans"],
    goals=[goal("queue_max_kb", row="hpccpp", most=0.5, beside=["dctcp"]),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""The longest queue is what leaves before any feedback can come: the first windows of all flows.

        The initial window decides, not the control: with few packets the goal is met.

        The answers take a little longer than with DCTCP, whose queue never runs empty.""",
    metrics=metrics,
    plan=plan)
