# SPDX-License-Identifier: GPL-2.0

import struct
from pathlib import Path
from typing import Iterator
from typing import Any

from lowq_lab import dumbbell, each, goal, incast, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="", rtt="10ms")
    net.prepare("sw", f"tc qdisc replace dev r root tbf rate 100mbit burst {run['burst']} limit 2mb")
    net.stated("h1", "r", rate="100mbit", rtt="10ms", burst=int(run["burst"][:-2]) * 1024 // 1514)
    return net.plan(*(incast("h1", "r", fan=64, size=100000, start=f"{i}s", control="cubic", timeout="5s")
                      for i in range(3)), observe=[("sw", "r")], bin_="10ms") | {"record": ["pcap"]}


def packets(path: Path) -> Iterator[tuple[int, int]]:
    """When each left, ns, and its length: of a pcap file in this machine's byte order, with ns"""
    data = path.read_bytes()
    at = 24
    while at < len(data):
        seconds, ns, kept, length = struct.unpack_from("=IIII", data, at)
        yield seconds * 10 ** 9 + ns, length
        at += 16 + kept


def metrics(results: Results) -> dict[str, float | None]:
    burst = int(results.run["burst"].removesuffix("kb")) * 1024
    level = most = 0.0
    last = 0
    for when, size in packets(results.directory / "sw-r.pcap"):
        # a bucket that empties at the rate: its highest level is the largest burst
        level = max(0, level - (when - last) * 100e6 / 8e9) + size
        most, last = max(most, level), when
    return {"largest_burst": round(most), "burst_bytes": burst, "over_theory": round(most / burst, 6)}


SCENARIO = Scenario(
    title="A token bucket: what leaves in any time, beside its envelope",
    question="Does a token bucket of the lab let through at most its burst and its rate, and as much if there is data?",
    topology="""
 h1  64 answers at once, three times -- sw ==== 100 Mb/s ==== r
                       (tbf, burst)
                        base RTT 10 ms""",
    rows=["cubic"],
    variants=each(burst=["3kb", "15kb", "60kb", "240kb"]),
    params={"theory": "in any time t at most burst + rate x t bytes leave, and as many where there is enough data",
            "largest_burst": "the largest excess of what left over rate x t, of all times between two packets"},
    shown=["largest_burst", "burst_bytes", "over_theory"],
    goals=[goal("over_theory", row="cubic", least=0.95, most=1, text="the largest burst, to the bucket")],
    metrics=metrics,
    plan=plan)
