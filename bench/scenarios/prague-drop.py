# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, long, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="100mbit", rtt=run["rtt"], queue=run.queue(run["rtt"]))
    return net.measured(long("h1", "r", duration="16s", control=run.control), count=("0s", "16s"),
                        events=[{"at": at, "node": "sw", "dev": "r", "rate": rate}
                                for at, rate in (("10s", "20mbit"), ("12s", "100mbit"))])


def metrics(results: Results) -> dict[str, float | None]:
    queue = results.series()
    # at 20 Mb/s a bin has one packet or two
    drop = [row["delay_us_max"] for row in queue if 10 <= row["t_s"] < 11 and "delay_us_max" in row]
    after = [row["throughput_bps"] for row in queue if 12 <= row["t_s"] < 16]
    return {"utilisation": results.share(14 * 100e6 + 2 * 20e6), "drop_p99_us": at_share(drop, 0.99),
            "bound_us": int(results.run["rtt"][:-2]) * 4000, "drop_max_us": max(drop, default=None),
            "util_after": sum(after) / 4000 / 1e8}


SCENARIO = Scenario(
    title="A link that drops to a fifth of its rate for 2 s: Prague over DualPI2",
    question="How long do packets wait during the second after the drop, and is the link full again afterwards?",
    topology="""
 h1  prague  -- sw ==== 100, 20, 100 Mb/s ==== r
               (dualpi2, defaults)
                base RTT rtt""",
    rows=["prague", "cubic_l4s"],
    variants=each(rtt=["2ms", "5ms", "10ms"]) + each(rtt="40ms"),
    # The packets sent before the first mark can return make a queue of four RTTs at a fifth of the rate, with any
    # control: bound_us
    params={"rate": "100mbit, from 10 s to 12 s 20mbit", "counted": "from 10 s to 11 s; util_after from 12 s to 16 s"},
    shown=["drop_p99_us", "drop_max_us", "bound_us", "util_after", "drops"],
    goals=[goal("drop_p99_us", row="prague", most=1, median=0.5, beside=["cubic_l4s"]),
           goal("drop_p99_us", row="prague", most=25000, variant={"rtt": "2ms"}, text="p99 after the drop, RTT 2 ms")],
    conclusion="""The queue gets the packets in flight and those sent until the first mark returns: no control can
        avoid that.

        CUBIC's packets wait in DualPI2's other queue, and longer at every RTT.""",
    metrics=metrics,
    plan=plan)
