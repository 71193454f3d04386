# SPDX-License-Identifier: GPL-2.0

import json
import math
from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, n = run["rate"], run["rtt"], run["flows"]
    ms = {"10gbit 100us": 80, "10gbit 50us": 80, "10gbit 10us": 40, "100gbit 100us": 20, "100gbit 10us": 8}[f"{rate} {rtt}"]
    net = dumbbell(n, rate=rate, rtt=rtt, line=rate if run.offloads else "", offloads=run.offloads, queue=run.queue(rtt))
    run.telemetry(net, max_stage=run["stage"], flows=run["N"], base_rtt_ns=run.get("T", f"{rtt[:-2]}000"))
    step = math.ceil(float(rate[:-4]) * 1000 * float(rtt[:-2]) / 8 / 2 / 1514)
    return net.measured(*run.longs(n, "r", duration=f"{ms + 1}ms", within="100us"), count=(f"{ms // 2}ms", f"{ms}ms"),
                        mark_at=run.step(step), also=["tc -s -j qdisc show dev r >$OUT/before.json"])


def metrics(results: Results) -> dict[str, float | None]:
    """Probes, as the reflector counts them, 122 bytes each, of what the port has sent"""
    if results.run.control != "hpccpp":
        return {}
    before = json.loads((results.directory / "before.json").read_text(encoding="utf-8"))
    after = json.loads(results.ask("sw", "tc -s -j qdisc show dev r"))
    answered = next(int(line.split()[1]) for line in results.ask("r", "cat /proc/net/int_reflector").splitlines()
                    if line.startswith("Answered"))
    return {"probe_share": answered * 122 / (after[0]["bytes"] - before[0]["bytes"])}


SCENARIO = Scenario(
    title="HPCC++: long flows at 10 and 100 Gb/s, base RTT 10 and 100 us",
    question="Does HPCC++ use 95 % of the link with a queue near zero, where DCTCP keeps a queue of K packets?",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
                             (stamps, or RED step at RTT*C/7, 4 packets at least)
                              base RTT rtt""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(each(rate=["10gbit", "100gbit"], rtt=["10us", "100us"]),
                    [*each(flows=[1, 2, 16], stage=[5, 0], N=0),
                     *each(flows=[1, 2, 16], stage=1, N=0, tso=[None, 1]),  # the defaults
                     *each(flows=[2, 16], stage=[5, 0], N=100)]),  # what W_ai makes of a miss
              # what a path of 41 packets makes of one: with 8, the goal for probes is not required
              *each(rate="10gbit", rtt="50us", flows=16, stage=[5, 0], N=0),
              # the RTT that such a host has: a packet time more
              *each(rate="10gbit", rtt="10us", flows=1, stage=1, N=0, tso=1, T=11230)],
    params={"tso": TSO.format("the rate of the path"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "parameter flows; with 0, the default, W_ai follows the mean of U",
            "T": "the base RTT, as a parameter, in ns; that of the path if not stated",
            "start": "initial window of 10 packets",
            "counted": "the second half; 10 Gb/s: 40 ms of 80 ms at 50 and 100 us, 20 ms of 40 ms at 10 us; 100 "
                       "Gb/s: 10 ms of 20 ms, 4 ms of 8 ms"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_p99_pkts", "delay_p99_us", "drops", "jain", "probe_share"],
    goals=[goal("utilisation", row="hpccpp", least=0.94, most=0.96),
           goal("qlen_p99_pkts", row="hpccpp", most=0.5, median=0.25, beside=["dctcp"]),
           goal("probe_share", row="hpccpp", most=0.01)],
    conclusion="""HPCC++ rests at eta, the intended load, and a little above with many flows: W_ai comes on top.

        Its queue at p99 is that of evenly spaced streams that start at random.

        Where hosts send bursts the queue is longer, as an eighth of the window leaves at once.""",
    metrics=metrics,
    plan=plan)
