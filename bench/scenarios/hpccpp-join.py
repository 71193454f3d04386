# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, jain, long, Results, Run, Scenario, TSO

PATHS = [{"rate": "10gbit", "rtt": "100us"}, {"rate": "100gbit", "rtt": "10us"}]


def plan(run: Run) -> dict[str, Any]:
    rate, rtt = run["rate"], run["rtt"]
    us = int(rtt[:-2])
    net = dumbbell(2, rate=rate, rtt=rtt, line=rate if run.offloads else "", offloads=run.offloads, queue=run.queue(rtt))
    run.telemetry(net, max_stage=run["stage"], flows=run.get("N", 16), base_rtt_ns=f"{us}000")
    # within an RTT of the first and of the 200th, by the seed
    return net.measured(long("h1", "r", duration=f"{us * 905}us", start=f"{run.seed * 7919 % us}us", control=run.control),
                        long("h2", "r", duration=f"{us * 500}us", start=f"{us * 200 + run.seed * 104729 % us}us",
                             control=run.control),
                        count=("0us", f"{us * 900}us"), bin_=rtt, mark_at=run.step(42))


def metrics(results: Results) -> dict[str, float | None]:
    us, bps = int(results.run["rtt"][:-2]), float(results.run["rate"][:-4]) * 1e9
    eta = 0.95 if results.run.control == "hpccpp" else 1
    queue, rates = results.series(), [{round(row["t_s"] * 1e6 / us): row["throughput_bps"] for row in results.series(host)
                                       if row["throughput_bps"] > 0} for host in ("h1", "h2")]
    at = [(round(row["t_s"] * 1e6 / us), row) for row in queue]
    begin, end = min(rates[1]), max(rates[1])
    last = [sum(rate for number, rate in one.items() if end - 50 < number < end) for one in rates]
    return {"joined_rtts": results.followed(begin, eta * bps, end, us / 1e6),
            "joined_together_rtts": results.followed(begin, eta * bps, end, us / 1e6, together=True),
            "reclaimed_rtts": next((number - end for number, row in at
                                    if number > end and row["throughput_bps"] >= 0.95 * 0.95 * bps), None),
            "join_queue_max": max((row.get("qlen_pkts_max", 0) for number, row in at if begin <= number < begin + 20),
                                  default=0),
            "jain_end": jain(last)}


SCENARIO = Scenario(
    title="HPCC++: a second flow joins and leaves",
    question="""How many RTTs does it take until the total rate is right and the queue is gone, and until freed
        bandwidth is used?""",
    topology=r"""
 h1  a long flow                  --\
 h2  another, from 200 to 700 RTTs -- sw ==== rate ==== r
                                     (stamps, or RED step at RTT*C/7)
                                      base RTT rtt""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(PATHS, stage=1), *each(PATHS, stage=[5, 0]), *each(PATHS, stage=1, tso=1),
              *each(PATHS, stage=1, N=0, tso=1), *each(PATHS, stage=1, N=0)],
    params={"tso": TSO.format("the rate of the path"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "16; or, where stated, 0, the default: W_ai follows the mean of U",
            "joins, leaves": "after 200 and 700 RTTs",
            "joined": "RTTs from the second flow to 5 in a row with the total within 5 % of eta*C and no more than 5 "
                      "packets waiting",
            "reclaimed": "RTTs from its end to the first with 95 % of eta*C",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes, not RDMA; two flows""",
            "paper, abstract": """RTTs until the rate is right and the queue is short (stage=1 N=0): avoids
                congestion; RTTs until free bandwidth is used (stage=1 N=0): can quickly converge to utilize free
                bandwidth; longest queue while a flow joins (stage=1 N=0): near-zero in-network queues; Jain (stage=1
                N=0): fair"""},
    shown=["joined_rtts", "joined_together_rtts", "reclaimed_rtts", "join_queue_max", "jain_end", "drops"],
    goals=[goal("joined_together_rtts", row="hpccpp", most=10, median=5),
           goal("reclaimed_rtts", row="hpccpp", most=10),
           goal("jain_end", row="hpccpp", least=0.95)],
    conclusion="""Both senders read the link's load from telemetry; DCTCP learns one bit per packet.

        Stage 0 uses freed bandwidth sooner than stage 5, because each step may multiply the window at once.

        With a small W_ai and offloads the larger flow has the longer bursts, and keeps its larger share.""",
    metrics=metrics,
    plan=plan)
