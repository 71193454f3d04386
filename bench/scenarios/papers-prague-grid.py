# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario

RATES = ["4mbit", "12mbit", "40mbit", "120mbit", "200mbit"]
RTTS = ["5ms", "10ms", "20ms", "50ms", "100ms"]


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]), buffer=33554432)
    return net.measured(*run.two("prague", "cubic", duration="80s", receiver="prague"), count=("20s", "80s"),
                        bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    return {"ratio": results.ratio(["h1"], ["h2"])} | {
        f"{name}_{q}_us": results.mean([host], f"delay_us.{q}") for q in ("p50", "p90", "p99", "p999")
        for name, host in (("prague", "h1"), ("cubic", "h2"))}


SCENARIO = Scenario(
    title="DualPI2's paper: one scalable and one classic flow, 4 to 200 Mb/s, RTT 5 to 100 ms",
    question="""DualPI2's paper: a scalable and a classic flow get about the same rate in all of 25 cells, and L4S
        packets wait about a millisecond. Is it so with Prague?""",
    topology=r"""
 h1  prague  --\
                sw ==== rate ==== r
 h2  cubic   --/  (dualpi2, lowq-tc's defaults)
                   base RTT rtt""",
    rows=["prague"],
    variants=each(rate=RATES, rtt=RTTS),
    params={"queue": "dualpi2 with the defaults of lowq-tc, which below 24 Mb/s are not the kernel's",
            "counted": "from 20 s to 80 s; delays are of all packets of a flow, by percentiles",
            "paper": """K. De Schepper et al., Dual Queue Coupled AQM, arXiv 2209.01078. Here: Prague and CUBIC of
                this kernel, one flow of each, not its DCTCP""",
            "paper, rate ratio": """Prague : CUBIC, 4 Mb/s, 20 ms (rate=4mbit rtt=20ms): 1.00 (near 1 in each cell);
                Prague : CUBIC, 12 Mb/s, 20 ms (rate=12mbit rtt=20ms): 1.00 (near 1 in each cell); Prague : CUBIC, 40
                Mb/s, 20 ms (rate=40mbit rtt=20ms): 1.00 (near 1 in each cell); Prague : CUBIC, 120 Mb/s, 20 ms
                (rate=120mbit rtt=20ms): 1.00 (near 1 in each cell); Prague : CUBIC, 200 Mb/s, 20 ms (rate=200mbit
                rtt=20ms): 1.00 (near 1 in each cell)""",
            "paper, queueing delay": """L4S delay at p99, 40 Mb/s, 20 ms (rate=40mbit rtt=20ms): 0 to 2000 µs (1 to 2
                ms); L4S delay at p99, 120 Mb/s, 20 ms (rate=120mbit rtt=20ms): 0 to 2000 µs (1 to 2 ms); L4S delay at
                p99, 200 Mb/s, 20 ms (rate=200mbit rtt=20ms): 0 to 2000 µs (1 to 2 ms)"""},
    shown=["ratio", "prague_p50_us", "prague_p99_us", "cubic_p99_us", "utilisation", "prague_p90_us",
           "prague_p999_us", "cubic_p50_us", "cubic_p90_us", "cubic_p999_us", "drops"],
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, text="Prague to CUBIC")],
    conclusion="""Prague and CUBIC share over the whole grid; most uneven are slow links with short RTTs.""",
    metrics=metrics,
    plan=plan)
