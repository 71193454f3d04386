# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, long, requests, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(3, rate="10gbit", rtt="100us", queue=run.queue("100us"))
    net.stated("h1", "r", rate="10gbit", rtt="100us")
    return net.plan(long("h1", "r", duration="400ms", control=run.control),
                    long("h2", "r", start="30ms", duration="370ms", control=run.control),
                    requests("h3", "r", size="20k", persist=True, rate=2000, start="100ms", duration="300ms",
                             timeout="5s", control=run.control),
                    observe=[("sw", "r")], count=("100ms", "400ms"))


SCENARIO = Scenario(
    title="Data centre: two long flows and a request stream, 10 Gb/s, base RTT 100 us",
    question="How long do packets wait, and how long do requests take, under each congestion control with its queue?",
    topology=r"""
 h1  long flow   --\
 h2  long flow   ---- sw ==== 10 Gb/s ==== r
 h3  answers requests --/     (the queue)
                       base RTT 100 us""",
    rows=["cubic", "bbr", "dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="cubic",
    params={"rate": "10gbit", "rtt": "100us", "long flows": 2, "requests": "20 kB, Poisson, 2000 per second",
            "counted": "0.1 s to 0.4 s"},
    shown=["rpc_p50_us", "rpc_p99_us", "utilisation", "delay_mean_us", "delay_p99_us", "failed", "marks", "drops",
           "jain"],
    conclusion="""With a drop-tail queue CUBIC and BBR fill the buffer, and every packet of every flow waits in it.

        DCTCP, LDCP and HPCC++ keep the queues that they are made for nearly empty, so that requests finish several
        times sooner.

        LDCP and HPCC++ leave a small part of the link unused.""",
    plan=plan)
