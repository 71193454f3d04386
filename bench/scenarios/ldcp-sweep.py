# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Run, Scenario, TSO

STEPS = [128, 256, 512, 1024]


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, flows = run["path"].split(",")
    us, begin = (1000, 200) if rtt == "1ms" else (int(rtt[:-2]), 500)
    net = dumbbell(int(flows), rate=rate, rtt=rtt, queue=run.queue(rtt), line=rate if run.offloads else "",
                   offloads=run.offloads)
    run.parameters(net, "ldcp", alpha=run["alpha"], beta=run["beta"])
    return net.measured(*run.longs(int(flows), "r", duration=f"{(begin + 1020) * us}us"),
                        count=(f"{begin * us}us", f"{(begin + 1000) * us}us"))


SCENARIO = Scenario(
    title="LDCP's alpha and beta, over rates, RTTs and numbers of flows",
    question="""The draft leaves alpha and beta open: which pair keeps the link full, the queue short and steady, and
        the shares equal?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
                             (WRED: K_min = BDP/16, K_max = BDP/2)
                              base RTT""",
    rows=["ldcp"],
    variants=each(each(path=["10gbit,100us,2", "10gbit,100us,8", "10gbit,100us,32", "1gbit,1ms,8", "40gbit,50us,8"]),
                  each(alpha=STEPS, beta=STEPS) + each(alpha=512, beta=256, tso=1)),
    params={"tso": TSO.format("the rate of the path"),
            "path": "rate, base RTT, flows", "alpha, beta": "in 1/1024 packets, as the parameters",
            "counted": "1000 RTTs, from the 500th (1 ms: the 200th) on"},
    words={"path": "{}, {}, {} flows"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "jain", "mark_fraction", "drops"],
    goals=[goal("utilisation", row="ldcp", least=0.99, variant={"alpha": 512, "beta": 256},
                text="the defaults: link used"),
           goal("jain", row="ldcp", least=0.95, median=0.99, variant={"alpha": 512, "beta": 256},
                text="the defaults: Jain")],
    conclusion="""alpha / beta sets the length of the queue: a larger ratio makes a longer queue, larger steps a less
        steady one.

        Above the largest beta that fills the link, the queue runs empty.""",
    plan=plan)
