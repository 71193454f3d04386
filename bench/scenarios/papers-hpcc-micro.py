# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, incast, jain, long, requests, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    test = run["test"]
    cc: dict[str, Any] = {"control": run.control}
    ms, n = {"incast": (8, 16), "join": (16, 4), "short": (12, 4), "mice": (8, 4)}[test]
    net = dumbbell(n, rate="25gbit", rtt="10us", line="25gbit", queue=run.queue("10us", "--limit", "2000000b", k=50))
    run.telemetry(net, base_rtt_ns=10000)
    run.prepare_hosts(net, initcwnd=21)

    def after(us: int, i: int, **fields: Any) -> dict[str, Any]:
        """A long flow, within an RTT of that time"""
        return long(f"h{i}", "r", start=f"{us + int(run.start(i, '10us')[:-2])}us", **fields, **cc)

    traffic = {"short": [after(0, 1, duration="12100us"), after(3000, 2, size=1000000)],
               "mice": [after(0, 1, duration="8100us"), after(0, 2, duration="8100us"),
                        requests("h3", "r", size="1k", persist=True, closed=1, start="3ms", duration="5ms", timeout="5s",
                                 **cc)],
               "incast": [incast("h*", "r", fan=16, size="500k", jitter="1us", timeout="5s", **cc)],
               "join": [after((i - 1) * 4000, i, duration=f"{16100 - (i - 1) * 4000}us") for i in range(1, 5)]}
    return net.measured(*traffic[test], count=("0ms", f"{ms}ms"), bin_="10us")


def metrics(results: Results) -> dict[str, float | None]:
    queue = results.series()
    made: dict[str, float | None] = {"queue_max_kb": max(row.get("qlen_bytes_max", 0) for row in queue) / 1000}
    if results.run["test"] == "short":
        made["short_us"] = next(flow["duration_ns"] / 1000 for flow in results.flows if flow["client"] == "h2")
        end = max(row["t_s"] for row in results.series("h2") if row["throughput_bps"])
        made["reclaimed_rtts"] = next((round((row["t_s"] - end) * 1e5) for row in queue
                                       if row["t_s"] > end and row["throughput_bps"] >= 0.95 * 0.95 * 25e9), None)
    if results.run["test"] == "join":
        made["jain_end"] = jain([sum(row["throughput_bps"] for row in results.series(host) if 0.015 <= row["t_s"] < 0.016)
                                 for host in hosts(1, 4)])
    return made


SCENARIO = Scenario(
    title="HPCC's paper, micro-benchmarks at 25 Gb/s: long and short, elephants and mice, incast, four joining",
    question="""HPCC's paper: a long flow takes a short one's rate back at once, mice beside elephants wait for nothing,
        an incast keeps a short queue, and flows that join get equal shares. Is it so here?""",
    topology=r"""
 short:   h1 a long flow, h2 1 MB of its own after 3 ms --\
 mice:    h1, h2 a long flow each; h3 answers of 1 kB    --\
 incast:  h1..h16 an answer of 500 kB each, within 1 us  -- sw ==== 25 Gb/s ==== r
 join:    h1..h4 a long flow each, 4 ms after each other --/  (2 MB; stamps, WRED or RED step)
          25 Gb/s each                                        base RTT 10 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=each(test=["short", "mice", "incast", "join"]),
    params={"K of DCTCP": "50 packets: 75 kB, as in the paper",
            "initial window": "ldcp: 21 packets, the BDP; the others: 10", "HPCC++": "defaults, base_rtt_ns=10000",
            "reclaimed": "RTTs from the end of the short flow to the first with 95 % of eta*C; eta is 95 %",
            "mice": "one after the other on a connection that is kept, from 3 ms to 8 ms",
            "Jain at the end": "of the last of the 4 ms in which all four send", "hosts": "without offloads",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes beside DCTCP, not RDMA beside DCQCN; 16 ms for four flows, not seconds""",
            "paper, section 5.2": """RTTs until the long flow has its rate again (test=short): it recovers at once
                when the short flow has ended; mice beside elephants, p99 (test=mice): near the base RTT; incast,
                longest queue (test=incast): the first windows, which are gone after an RTT; Jain, four flows
                (test=join): fair shares, on short time scales, too"""},
    words={"test": {"short": "long and short", "mice": "elephants and mice", "incast": "incast 16:1",
                    "join": "four joining"}},
    shown=["short_us", "rpc_p99_us", "queue_max_kb", "jain_end", "reclaimed_rtts", "rpc_p50_us", "utilisation",
           "drops"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1.1, median=1, beside=["dctcp", "dctcp_ref"]),
           goal("jain_end", row="hpccpp", least=0.95, variant={"test": "join"}, text="four joining: Jain"),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""DCTCP's newcomer with ten packets is a small part of the long flow's queue.

        First windows of the incast are sent before any feedback: half of DCTCP's queue cannot be reached.""",
    metrics=metrics,
    plan=plan)
