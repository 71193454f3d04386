# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, figure, goal, Paper, Results, Run, Scenario


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
            "counted": "0.2 s to 0.6 s", "queue found": "how long packets waited, in packets of 1514 bytes at 1 Gb/s"},
    shown=["goodput_bps", "found_p50_pkts", "found_p99_pkts", "qlen_stddev_pkts", "jain", "drops", "utilisation"],
    goals=[goal("found_p99_pkts", row="dctcp_ref", most=22, variant={"flows": 2},
                text="2 flows: p99 within K + N packets"),
           goal("found_p99_pkts", row="dctcp_ref", most=40, variant={"flows": 20},
                text="20 flows: p99 within K + N packets"),
           goal("goodput_bps", row="dctcp_ref", least=1, relative_to="dctcp", text="at least the goodput of dctcp")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="hosts without CPU time; packets of the queue itself, not samples every 125 ms",
        figures=[figure("section 4.1", "goodput_bps", what="throughput", value=950000000, in_tree="dctcp",
                        ours="dctcp_ref"),
                 figure("section 4.1", "goodput_bps", what="throughput of TCP", value=950000000, in_tree="cubic",
                        differs="CUBIC, not New Reno"),
                 figure("fig. 13", "found_p50_pkts", what="queue, median", variant={"flows": 2}, value=(20, 22),
                        says="around 20, K + n", in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 13", "found_p50_pkts", what="queue, median", variant={"flows": 20}, value=(20, 40),
                        says="around 20, K + n", in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 13", "found_p50_pkts", what="queue of TCP, median", says="10 times larger, varies widely",
                        in_tree="cubic", differs="CUBIC, not New Reno")]),
    answer="""The queue's median is {range found_p50_pkts dctcp} with Linux's dctcp and {range found_p50_pkts dctcp_ref}
        with dctcp_ref, p99 {range found_p99_pkts dctcp} and {range found_p99_pkts dctcp_ref}; with CUBIC the median is
        {range found_p50_pkts cubic}.""",
    conclusion="""{range found_p99_pkts dctcp_ref flows=20} is p99 with 20 flows of dctcp_ref, {range found_p99_pkts
        dctcp flows=20} with Linux's dctcp: within K + N = 40, as the paper predicts.

        2 flows pass their bound of 22 packets by two at p99, with both controls alike.

        {range found_p50_pkts cubic} is the median of CUBIC's queue, which the limit of 700 kB ends (462 packets): the
        paper's ten times, and more.

        {range found_p50_pkts ldcp} is LDCP's: it marks from 4 packets on, not from 20.

        {range goodput_bps dctcp_ref} is the goodput of all rows, 1448 of 1514 bytes of each packet at 1 Gb/s: the
        paper's 0.95.""",
    metrics=metrics,
    plan=plan)
