# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, long, Results, Run, Scenario, udp


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(3, rate=run["rate"], rtt="20ms", queue=run.queue("20ms"), line="1gbit" if run.offloads else "",
                   offloads=run.offloads)
    return net.measured(*(long(f"h{i}", "r", start=f"{i * 300 + run.seed * 104729 % 300}ms", duration="27s",
                               control=run.control) for i in (1, 2)),
                        udp("h3", "r", every="20ms", size=160, start="6s", duration="20s", label="call",
                            ecn=("not-ect", "ect1")[run["ecn"]]),
                        count=("6s", "26s"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    call = results.udp("call")
    return {f"call_{q}_us": call[f"delay_{q}_ns"] / 1000 for q in ("p50", "p99", "p999")} | {
        "call_lost": call["sent"] - call["received"]}


SCENARIO = Scenario(
    title="A call beside long flows, 10 to 100 Mb/s, base RTT 20 ms",
    question="How late are the packets of a call while others fill the link, and how many are lost?",
    topology=r"""
 h1, h2  long flows --\
                       sw ==== rate ==== r
 h3  call           --/    (the queue)
                      base RTT 20 ms, all of it on the way back""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=each(rate=["10mbit", "30mbit", "100mbit"], ecn=[0, 1]) + each(rate="30mbit", ecn=1, tso=1),
    params={"call": "50 packets of UDP per second, 160 bytes each, one way",
            "ecn": "their ECN field: 0 Not-ECT, 1 ECT(1)", "long flows": 2, "counted": "from 6 s to 26 s"},
    words={"ecn": {0: "Not-ECT", 1: "ECT(1)"}},
    shown=["call_p50_us", "call_p99_us", "call_p999_us", "call_lost", "delay_p99_us", "utilisation"],
    goals=[goal("call_p99_us", row="prague", most=1, beside=["cubic_l4s", "bbr_l4s"], variant={"ecn": 0},
                text="p99 without ECT(1)"),
           goal("call_p99_us", row="prague", most=3300, text="p99: 2 ms and a packet above the base"),
           goal("call_lost", row="prague", most=0)],
    conclusion="""Without ECT(1) a call waits for DualPI2's scheduler alone: Prague's flows have left the Classic
        queue to it.

        With ECT(1) it waits in the queue of Prague's flows, at low rates longer than beside CUBIC.

        In fq_codel a call has a queue of its own.""",
    metrics=metrics,
    plan=plan)
