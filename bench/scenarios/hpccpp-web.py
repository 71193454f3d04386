# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, CDF, each, flows, goal, Network, Results, Run, Scenario, TSO
from lowq_lab.slowdown import slowdowns


def plan(run: Run) -> dict[str, Any]:
    rtt, ns = run["rtt"], int(run["rtt"][:-2]) * 1000
    start, hpccpp = run.get("start"), run.control == "hpccpp"
    net = Network(offloads=run.offloads)
    net.switch("leaf1", "leaf2", "spine1", "spine2")
    for i in range(1, 5):
        net.host(f"a{i}", f"b{i}")
        # the way back carries ACKs: its delay is the base RTT's
        net.link(f"a{i}", "leaf1", back=rtt)
        net.link(f"b{i}", "leaf2")
    ports = [("leaf2", f"b{i}") for i in range(1, 5)]
    if run.offloads:
        net.line_rate("10gbit", *(f"a{i}" for i in range(1, 5)))
    else:
        ports += [(f"a{i}", "leaf1") for i in range(1, 5)]
    for spine in ("spine1", "spine2"):
        for leaf in ("leaf1", "leaf2"):
            net.link(leaf, spine)
        ports += [("leaf1", spine), (spine, "leaf2")]
    for number, port in enumerate(ports, 1):
        more = f" --switch-id {number}" if hpccpp else ""
        net.queue(*port, f"lowq-tc {run.profile.split()[0]} --rtt {rtt}{more}", rate="10gbit")
    run.telemetry(net, max_stage=run["stage"], line_rate_mbps=0 if start else 10000, base_rtt_ns=ns + 2000)
    if start and hpccpp:
        net.initcwnd(start, *(f"a{i}" for i in range(1, 5)))
    net.stated("a1", "b1", rate="10gbit", rtt=rtt)
    net.merging(*(f"b{i}" for i in range(1, 5)))
    return net.plan(*(flows(f"a{i}", "b*", cdf=str(CDF / f"{run['load']}.cdf"), load=f"{run['share'] * 478 / 10:.0f}mbit",
                            duration="1s", control=run.control, timeout="10s") for i in range(1, 5)))


def metrics(results: Results) -> dict[str, float | None]:
    run, times = results.run, slowdowns(plan(results.run), results.flows)
    ns = int(run["rtt"][:-2]) * 1000
    excess = [flow["since_due_ns"] / (2 * ns + flow["size"] * 8 / 10 * 1514 / 1448) - 1
              for flow in results.flows if flow["status"] == "ok" and flow["size"] < 100000]
    return {"slow_p95_small": at_share(times["small"], 0.95), "excess_p95_small": at_share(excess, 0.95),
            "drawn_load": results.drawn_load(2e10, run["share"] / 100)}


SCENARIO = Scenario(
    title="HPCC++: WebSearch and Hadoop at 25, 50 and 60 % load on a leaf-spine of 10 Gb/s",
    question="How much longer do short flows take under realistic loads than alone?",
    topology=r"""
 a1 a2 a3 a4 -- leaf1 --- spine1 --- leaf2 -- b1 b2 b3 b4
                     \--- spine2 ---/
 all links 10 Gb/s; every port on the way, the sender too, stamps (or has a RED step); base RTT rtt
 a1..a4 send to b1..b4 at random, share % of the two trunks""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(load=["websearch", "hadoop"], rtt=["100us", "20us"], stage=[5, 0], share=50),
              # more load, on defaults
              *each(load=["websearch", "hadoop"], rtt=["100us", "20us"], stage=1, share=60, tso=[None, 1]),
              # half of the load: what starting flows make of the misses
              *each(load="websearch", rtt="20us", stage=[5, 0], share=25),
              *each(load="hadoop", rtt="20us", stage=0, share=25),
              # and of starts that are not at line rate
              *each(load="websearch", rtt="20us", stage=0, share=50, start=4)],
    params={"tso": TSO.format("10 Gb/s, unstamped and unmarked"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "not given: W_ai follows the mean of U",
            "start": "packets that HPCC++ begins with; if not stated, flows begin at line rate, 10 Gb/s",
            "slowdown": "completion time / (2 RTTs, one of them the handshake's, + size with headers / 10 Gb/s)",
            "requests": "Poisson, a connection each, share=50: 2.39 Gb/s of payload from each of 4 hosts for 1 s, "
                        "with headers 10 Gb/s; share=25: half of that, share=60: a fifth more",
            "drawn": "the load that the seed drew, % of the two trunks"},
    words={"load": {"hadoop": "Hadoop", "websearch": "WebSearch"}, "share": "load {} %", "start": "first window {}"},
    shown=["excess_p95_small", "slow_p99_small", "slow_p99_medium", "slow_p99_large", "slow_p50_small",
           "slow_p95_small", "drawn_load", "count_small", "slow_p50_large", "failed"],
    # a ratio of slowdowns, which are never below 1, says little where dctcp's is near 2: what is compared is
    # what waiting adds, at the paper's percentile (HPCC, SIGCOMM 2019, fig. 11)
    goals=[goal("excess_p95_small", row="hpccpp", most=1, median=0.5, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p99_small", row="hpccpp", most=1, median=0.6, beside=["dctcp", "dctcp_ref"])],
    conclusion="""Small flows find nearly empty queues; what they wait for are first windows of others.

        The slowest of the large flows take longer with HPCC++, which leaves a part of each link unused.

        Where hosts send bursts, DCTCP's small flows wait behind them in the host; the others pace.""",
    metrics=metrics,
    plan=plan)
