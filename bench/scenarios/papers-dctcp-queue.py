# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def metrics(results: Results) -> dict[str, float]:
    queue = results.queues[0]
    # percentiles of the wait, in packets at 1 Gb/s
    return {"goodput_bps": sum(results.rates()),
            "found_p50_pkts": queue["delay_us"]["p50"] / 12.112, "found_p99_pkts": queue["delay_us"]["p99"] / 12.112}


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(run["flows"], rate="1gbit", rtt="100us", queue=run.queue("100us", k=20, limit="700000b"),
                   line="1gbit")
    run.prepare_hosts(net)
    net.stated("h1", "r", rate="1gbit", rtt="100us")
    return net.plan(*run.longs(run["flows"], "r", duration="610ms"), observe=[("sw", "r")], count=("200ms", "600ms"))


SCENARIO = Scenario(
    title="DCTCP's paper, figure 13: the queue under 2 and 20 long flows, 1 Gb/s, K = 20 packets",
    question="""DCTCP's paper shows a queue that stays around K + N packets, a tenth of TCP's, at full throughput. Is it
        so here?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== 1 Gb/s ==== r
  1 Gb/s each                (the queue, 700 kB)
                              base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=each(flows=[2, 20]),
    params={"K of DCTCP": "20 packets", "LDCP": "its own thresholds, for RTT 100 us", "limit": "700 kB",
            "counted": "0.2 s to 0.6 s", "queue found": "how long packets waited, in packets of 1514 bytes at 1 Gb/s",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: hosts without CPU time;
                packets of the queue itself, not samples every 125 ms""",
            "paper, section 4.1": "throughput: 0.950 Gb/s; throughput of TCP: 0.950 Gb/s; here CUBIC, not New Reno",
            "paper, fig. 13": """queue, median (flows=2): 20.0 to 22.0 packets (around 20, K + n); queue, median
                (flows=20): 20.0 to 40.0 packets (around 20, K + n); queue of TCP, median: 10 times larger, varies
                widely; here CUBIC, not New Reno"""},
    shown=["goodput_bps", "found_p50_pkts", "found_p99_pkts", "qlen_stddev_pkts", "jain", "drops", "utilisation"],
    goals=[goal("found_p99_pkts", row="dctcp_ref", most=22, variant={"flows": 2},
                text="2 flows: p99 within K + N packets"),
           goal("found_p99_pkts", row="dctcp_ref", most=40, variant={"flows": 20},
                text="20 flows: p99 within K + N packets"),
           goal("goodput_bps", row="dctcp_ref", least=1, beside=["dctcp"])],
    conclusion="""Both DCTCPs keep the queue that the paper predicts, with two flows by two packets more.

        LDCP's is shorter, since it marks sooner.""",
    metrics=metrics,
    plan=plan)
