# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, long, requests, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(3, rate="100mbit", rtt="20ms", queue=run.queue("20ms"))
    net.stated("h1", "r", rate="100mbit", rtt="20ms")
    return net.plan(long("h1", "r", duration="20s", control=run.control),
                    long("h2", "r", start="1s", duration="19s", control=run.control),
                    requests("h3", "r", size="20k", persist=True, rate=40, start="5s", duration="15s", timeout="10s",
                             control=run.control),
                    observe=[("sw", "r")], count=("5s", "20s"), bin_="20ms")


SCENARIO = Scenario(
    title="Internet: two long flows and a request stream, 100 Mb/s, base RTT 20 ms",
    question="How long do packets wait, and how long do requests take, over DualPI2 and over a drop-tail queue?",
    topology=r"""
 h1  long flow   --\
 h2  long flow   ---- sw ==== 100 Mb/s ==== r
 h3  answers requests --/     (the queue)
                       base RTT 20 ms""",
    rows=["cubic", "bbr", "prague_fifo", "cubic_l4s", "bbr_l4s", "prague"],
    reference="cubic",
    params={"rate": "100mbit", "rtt": "20ms", "long flows": 2, "requests": "20 kB, Poisson, 40 per second",
            "counted": "5 s to 20 s"},
    shown=["rpc_p50_us", "rpc_p99_us", "utilisation", "delay_mean_us", "delay_p99_us", "failed", "marks", "drops",
           "jain"],
    conclusion="""DualPI2 holds CUBIC and BBR at its target, with random marks and drops; over drop-tail everyone
        waits for the buffer.

        Prague has a queue of its own there, with a step of a millisecond; over drop-tail it is as CUBIC.""",
    plan=plan)
