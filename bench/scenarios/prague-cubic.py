# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, requests, Results, Run, Scenario


def times(run: Run) -> tuple[int, int]:
    """From when and until when is counted, seconds: after slow start the shares need a minute"""
    if run["rate"] != "1000mbit":
        return 30, 90
    return (60, 150) if run["rtt"] == "40ms" else (15, 45)


def plan(run: Run) -> dict[str, Any]:
    begin, end = times(run)
    net = dumbbell(3 if run.get("requests") else 2, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]),
                   buffer=33554432)
    traffic = run.two("prague", "cubic", duration=f"{end}s", receiver="prague")
    if run.get("requests"):
        traffic.append(requests("h3", "r", size="8k", rate=run["requests"], start="5s", duration=f"{end - 5}s",
                                control="prague", timeout="20s"))
    return net.measured(*traffic, count=(f"{begin}s", f"{end}s"), bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    begin, end = times(results.run)
    return results.pair(end - begin, "prague", "cubic") | {
        "prague_p99_us": results.mean(["h1"], "delay_us.p99"), "cubic_p99_us": results.mean(["h2"], "delay_us.p99")}


SCENARIO = Scenario(
    title="Prague beside CUBIC over DualPI2: 10 to 1000 Mb/s, 2 to 40 ms",
    question="Do a Prague flow and a CUBIC flow of the same base RTT get the same rate?",
    topology=r"""
 h1  prague  --\
                sw ==== rate ==== r
 h2  cubic   --/  (dualpi2, defaults)
                   base RTT rtt""",
    rows=["prague"],
    variants=[*each(rate=["10mbit", "100mbit", "1000mbit"], rtt=["2ms", "10ms", "40ms"]),
              # the draft's first example for rtt_virt
              *each(rate="100mbit", rtt=["2ms", "10ms", "40ms"], opts="rtt_mode:1"),
              *each(rate="100mbit", rtt="80ms"), *each(rate="50mbit", rtt="20ms", requests=[None, 60]),
              *each(rate="100mbit", rtt="10ms", requests=120)],
    words={"requests": "{} requests of 8 kB per second beside"},
    params={"requests": "of Prague, Poisson, each on a new connection",
            "queue": "dualpi2 with the defaults of lowq-tc, which below 24 Mb/s are not the kernel's",
            "counted": "from 30 s to 90 s; at 1000 Mb/s from 15 s to 45 s, and from 60 s to 150 s at 40 ms",
            "paper": """arXiv 2209.01078 (DualPI2 with a scalable control, 4 to 200 Mb/s, RTT 5 to 100 ms). Here:
                Prague and CUBIC of this kernel; one flow of each""",
            "paper, rate ratio": """ratio of rates (rate=100mbit rtt=10ms): 1.00 (near 1 over the grid); ratio of
                rates (rate=100mbit rtt=40ms): 1.00 (near 1 over the grid)""",
            "paper, queueing delay": """Prague's delay, p99 (rate=100mbit rtt=10ms): 0 to 2000 µs; Prague's delay,
                p99 (rate=100mbit rtt=40ms): 0 to 2000 µs"""},
    shown=["ratio", "prague_mbps", "cubic_mbps", "prague_p99_us", "cubic_p99_us", "utilisation", "drops"],
    goals=[goal("ratio", row="prague", least=0.67, most=1.5, text="Prague to CUBIC"),
           goal("ratio", row="prague", least=0.67, most=1.5, variant={"opts": None, "rate": "100mbit"},
                text="the same at 100 Mb/s, defaults")],
    conclusion="""With random marks of probability p, and one cut per round, a Prague flow settles at a window of 2.7
        / p packets, not 2 / p.

        Where CUBIC is slow to return, Prague grows faster than additively, so that freed capacity is used soon.

        On a slow link with a short RTT the smallest window is more than half of the link.""",
    metrics=metrics,
    plan=plan)
