# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, incast, Results, Run, Scenario, TSO

BURSTS = ["together", "staggered", "small", "big"]


# answers at once, size, rounds, within what time
SHAPES = {"together": (8, "500k", 20, "10us"), "staggered": (8, "500k", 20, "4ms"), "small": (32, "20k", 20, "10us"),
          "big": (256, "64k", 1, "10us")}


def plan(run: Run) -> dict[str, Any]:
    fan, size, rounds, jitter = SHAPES[run["burst"]]
    words = ["--limit", "1000000b"] if run["burst"] == "big" else []
    words += ["--k", f"{run['k']}p"] if run.get("k") and run.control == "ldcp" else []
    net = dumbbell(8, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads,
                   queue=run.queue("100us", *words))
    run.prepare_hosts(net, initcwnd=87 if run["iw"] == 87 else None)
    run.parameters(net, "ldcp", alpha=run["alpha"], beta=run["beta"])
    run.telemetry(net)
    return net.measured(incast(hosts(1, 8), "r", fan=fan, size=size, rounds=rounds, period="10ms", jitter=jitter,
                               control=run.control, timeout="5s"), count=("0ms", "200ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    return {"timeouts": results.counter("TCPTimeouts", *hosts(1, 8))}


SCENARIO = Scenario(
    title="Data centre: bursts of several senders, 10 Gb/s, base RTT 100 us",
    question="When several hosts answer at once, again and again, how long does it take?",
    topology="""
 h1..h8  answers  -- sw ==== 10 Gb/s ==== r
  10 Gb/s each       (the queue)
                      base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(each(burst=BURSTS), [{"iw": 10, "alpha": 512, "beta": 256}, {"iw": 87, "alpha": 512, "beta": 256},
                                       {"iw": 10, "alpha": 1024, "beta": 128}]),
              *each(burst=BURSTS, iw=10, alpha=512, beta=256, tso=1),
              # the causes of what is missed
              *each(burst="small", iw=10, alpha=512, beta=256, k=600),
              *each(burst="together", iw=10, alpha=1024, beta=64)],
    params={"together": "20 times every 10 ms: 8 x 500 kB at once", "staggered": "the same, each at random within 4 ms",
            "small": "20 times every 10 ms: 32 x 20 kB at once", "big": "256 x 64 kB once, and a buffer of 1 MB",
            "iw": "initial window of ldcp, packets: 10 are the stack's, 87 the BDP; the others have 10",
            "alpha, beta": "of ldcp, in 1/1024 packets: 512 and 256 are the defaults",
            "k": "from how many packets on ldcp's queue drops packets of a first RTT; 87, the BDP, if not stated",
            "tso": TSO.format("10 Gb/s")},
    words={"burst": {"big": "256 x 64 kB", "small": "32 x 20 kB", "staggered": "8 x 500 kB, staggered",
                     "together": "8 x 500 kB together"}},
    shown=["rpc_p50_us", "rpc_p90_us", "rpc_p99_us", "timeouts", "delay_p99_us", "marks", "drops"],
    goals=[goal("rpc_p99_us", row="ldcp", most=1.3, median=1, beside=["dctcp", "dctcp_ref"], variant={"alpha": 512}),
           goal("rpc_p99_us", row="hpccpp", most=1.3, median=1, beside=["dctcp", "dctcp_ref"], variant={"alpha": 512}),
           goal("timeouts", row="hpccpp", most=0, variant={"alpha": 512})],
    conclusion="""HPCC++'s staggered answers end sooner than DCTCP's: they begin with a large W_ai.

        LDCP's short queue has a price: what one answer leaves of the link is used later.

        A larger alpha and a smaller beta make LDCP's queue longer, and its answers end sooner.""",
    metrics=metrics,
    plan=plan)
