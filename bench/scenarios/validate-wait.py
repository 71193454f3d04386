# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, program, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    size = 1472 if run["sizes"] == "fixed" else 358
    gap = (size + 42) * 8 / 100 / run["load"]
    net = dumbbell(1, rate="100mbit", rtt="1ms", queue="pfifo limit 100000")
    net.stated("h1", "r", rate="100mbit", rtt="1ms")
    varied = "" if run["sizes"] == "fixed" else "--varied "
    return net.plan(program("h1", f'"$RUNNER/app" poisson --gap {gap:g}us --size {size} {varied}--seed {run.seed} '
                                  f"--duration 20s h1 r {net.address('r')}", label="poisson"),
                    observe=[("sw", "r")], bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    (sent,) = results.program("poisson")
    per_byte, time = 8 / 100, sent["duration_ns"] / 1e3  # us
    load = sent["bytes"] * per_byte / time
    theory, waited = sent["squares"] * per_byte ** 2 / time / 2 / (1 - load), results.queues[0]["delay_us"]["mean"]
    return {"failed": 0, "packets": sent["sent"], "theory_us": theory, "wait_us": waited, "over_theory": waited / theory}


SCENARIO = Scenario(
    title="Packets that arrive at random: waiting times beside queueing theory",
    question="Do packets wait in the lab's queue as long as in an M/G/1 queue?",
    topology="""
 h1  UDP, Poisson -- sw ==== 100 Mb/s ==== r
                       (drop-tail, never full)""",
    rows=["udp"],
    variants=each(sizes=["fixed", "varied"], load=[0.5, 0.7, 0.9]),
    params={"load": "the share of the link that the packets need",
            "sizes": "fixed: full packets, M/D/1; varied: exponentially distributed with a mean of 400 bytes, none "
                     "above 1500, nearly M/M/1",
            "theory": "Pollaczek and Khinchine: arrival rate x mean square of the sending time / 2 / (1 - load), with "
                      "the load and the mean square of the packets that were sent",
            "counted": "20 s"},
    shown=["packets", "wait_us", "theory_us", "over_theory"],
    goals=[goal("over_theory", row="udp", least=0.95, most=1.05, text="mean wait, to the theory")],
    conclusion="""The clock, the queue and the capture add nothing that the mean would show.""",
    metrics=metrics,
    plan=plan)
