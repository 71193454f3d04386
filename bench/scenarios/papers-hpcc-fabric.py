# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, CDF, each, fat_tree, flows, goal, Results, Run, Scenario
from lowq_lab.slowdown import slowdowns


def plan(run: Run) -> dict[str, Any]:
    net = fat_tree(4, rate="10gbit", delay="4us")
    # every port has a queue, hosts' too; each that stamps has an identity of its own
    for number, (node, to) in enumerate(net.ends, 1):
        net.queue(node, to, {"hpccpp": f"lowq-tc hpccpp --switch-id {number}", "ldcp": "lowq-tc ldcp --rtt 50us"}.get(
            run.control, "lowq-tc dctcp --rtt 50us"))
    run.telemetry(net, line_rate_mbps=10000, base_rtt_ns=50000, probe_room=6)
    net.stated("h0-0-0", "h2-0-0", rate="10gbit", rtt="48us")
    cdf = str(CDF / f"{run['load']}.cdf")
    return net.plan(*(flows(f"h[{one}]-*", f"h[{other}]-*", cdf=cdf, load=f"{8 * run['share'] * 478 / 5:.0f}mbit",
                            duration="50ms", timeout="5s", control=run.control)
                      for one, other in (("01", "23"), ("23", "01"))))


def metrics(results: Results) -> dict[str, float | None]:
    times = slowdowns(plan(results.run), results.flows)
    return {f"slow_p95_{name}": at_share(of, 0.95) for name, of in times.items()} | {
        "drawn_load": results.drawn_load(8e9, results.run["share"] / 100)}


SCENARIO = Scenario(
    title="HPCC's paper, section 5.3: WebSearch at 30 and 50 %, Hadoop at 50 %, on a fat-tree of 10 Gb/s",
    question="""HPCC's paper: on a fat-tree short flows take up to 95 % less at the tail than with DCQCN. What is it
        here, beside DCTCP?""",
    topology="""
 c0-0 c0-1 c1-0 c1-1                       4 core switches
 a0-0 .. a3-1, e0-0 .. e3-1                4 pods of 2 + 2 switches
 h0-0-0 .. h3-1-1                          16 hosts
 all links 10 Gb/s; every port, the hosts' too, stamps (or has a RED step); base RTT 48 us
 pods 0 and 1 send to pods 2 and 3, and these to those, share % of what the links to the core carry""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=each(load="websearch", share=[30, 50]) + each(load="hadoop", share=50),
    params={"slowdown": "completion time / (2 RTTs, one of them the handshake's, + size with headers / 10 Gb/s)",
            "requests": "Poisson, a connection each, for 50 ms; paths by ECMP",
            "probe_room": "6: a sender that stamps and five switches; the default, 5, has no room for the sixth record",
            "K, thresholds": "lowq-tc's, for 10 Gb/s and an RTT of 50 us",
            "drawn": "the load that the seed drew, % of the links to the core",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: 16 hosts of 10
                Gb/s, not 320 of 100 Gb/s; TCP with telemetry in probes, beside DCTCP, not DCQCN; flows pass the
                core""",
            "paper, fig. 10, 11": """small flows, p95 (load=websearch share=50): less than with the others, at 30 %
                and at 50 %; large flows, p95 (load=websearch share=50): somewhat more: 5 % of each link is left
                unused""",
            "paper, fig. 12": "small flows, p95, Hadoop (load=hadoop): less than with the others"},
    words={"load": {"hadoop": "Hadoop", "websearch": "WebSearch"}, "share": "load {} %"},
    shown=["slow_p50_small", "slow_p95_small", "slow_p99_small", "slow_p95_medium", "slow_p95_large", "drawn_load"],
    goals=[goal("slow_p95_small", row="hpccpp", most=0.75, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p95_small", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p95_small", row="dctcp_ref", most=1.1, beside=["dctcp"])],
    conclusion="""HPCC++ shortens the tail of small flows; their median hardly changes under Hadoop.

        Flows of medium size take least with LDCP and HPCC++; the largest take longer with HPCC++.""",
    metrics=metrics,
    plan=plan)
