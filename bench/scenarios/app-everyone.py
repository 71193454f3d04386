# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, goal, hosts, long, requests, Results, Run, Scenario, udp


def cell(rate: int, rtt: int, flows: int, kb: int, per_second: int,
         **more: int | float | str) -> dict[str, int | float | str]:
    return {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "flows": flows, "kb": kb, "per_second": per_second, **more}


def plan(run: Run) -> dict[str, Any]:
    n, server = run["flows"], f"h{run['flows'] + 1}"
    net = dumbbell(n + 3, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]),
                   line="1gbit" if run.offloads else "", offloads=run.offloads)
    return net.measured(*(long(f"h{i}", "r", duration="23s", start=f"{i * 300 + run.seed * 37 % 100}ms",
                               control=run.control) for i in range(1, n + 1)),
                        *(udp(f"h{n + 2 + i}", "r", every="20ms", size=160, start="8s", duration="13s", ecn=ecn, label=ecn)
                          for i, ecn in enumerate(("not-ect", "ect1"))),
                        requests(server, "r", size=f"{run['kb']}k", rate=run["per_second"], persist=run["conn"] == "kept",
                                 start="8s", duration="14s", control=run.control, timeout="20s"),
                        count=("8s", "22s"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    beside = [results.flow(host)["payload_bytes"] for host in hosts(1, results.run["flows"])]
    return {"beside_mbps": sum(beside) * 8e-6 / 14, "notect_p99_us": results.udp("not-ect")["delay_p99_ns"] / 1000,
            "ect1_p99_us": results.udp("ect1")["delay_p99_ns"] / 1000}


SCENARIO = Scenario(
    title="Everyone on the link at once: requests, long flows and a third party, 8 to 400 Mb/s, 8 to 90 ms",
    question="""How long do requests take while others fill the link, what is left for these, and how long do the
        packets of a third party wait?""",
    topology=r"""
 h1 ..    long flows        --\
 next     answers requests  -- sw ==== rate ==== r
 last two a packet per 20 ms --/    (the queue)
                             base RTT rtt""",
    rows=["prague", "cubic_l4s", "cubic_fq", "prague_fq"],
    reference="cubic_l4s",
    variants=[cell(8, 45, 1, 8, 37, conn="kept"),
              cell(20, 30, 2, 20, 20, conn="kept"),
              cell(35, 8, 2, 250, 4, conn="fresh"),
              cell(35, 18, 2, 8, 54, conn="fresh"),
              cell(35, 45, 6, 35, 37, conn="kept"),
              cell(60, 65, 2, 100, 12, conn="kept"),
              cell(70, 30, 3, 100, 20, conn="fresh"),
              cell(100, 20, 2, 20, 40, conn="kept"),
              cell(100, 20, 2, 20, 40, conn="kept", tso=1),
              cell(100, 20, 8, 20, 80, conn="fresh"),
              cell(150, 8, 2, 35, 120, conn="kept"),
              cell(150, 90, 2, 8, 300, conn="kept"),
              cell(250, 25, 2, 60, 80, conn="fresh", tso=1),
              cell(400, 8, 2, 20, 250, conn="kept", tso=1)],
    params={"kb": "size of an answer, kB", "per_second": "requests, Poisson", "flows": "long flows beside",
            "conn": "a new connection for each request, or kept ones", "tso": "with segmentation offloads",
            "ect1, notect": "a third party's packets of UDP, 50 per second", "counted": "from 8 s to 22 s"},
    words={"kb": "{} kB", "per_second": "{} per second", "flows": "{} long flows",
           "conn": {"fresh": "new connections", "kept": "kept connections"}},
    shown=["rpc_p50_us", "rpc_p99_us", "beside_mbps", "ect1_p99_us", "notect_p99_us", "utilisation"],
    goals=[goal("rpc_p50_us", row="prague", most=1.05, median=0.85, beside=["cubic_l4s"], text="requests, p50"),
           goal("rpc_p99_us", row="prague", most=1, median=0.6, beside=["cubic_l4s"], text="requests, p99"),
           goal("beside_mbps", row="prague", least=0.7, median=0.85, beside=["cubic_l4s"], text="long flows' rate")],
    conclusion="""A third party's packets with ECT(1) share a queue with the answers' bursts over DualPI2, and have a
        queue of their own over FQ-CoDel: where one owns the bottleneck, take that.

        Packets without ECT(1) wait for CUBIC's long flows over DualPI2, and hardly at all beside Prague's.""",
    metrics=metrics,
    plan=plan)
