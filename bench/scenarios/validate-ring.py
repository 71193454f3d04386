# SPDX-License-Identifier: GPL-2.0

import json
from typing import Any

from lowq_lab import dumbbell, each, goal, program, Results, Run, Scenario


def shape(run: Run) -> tuple[str, str, int, int]:
    """Rate, base RTT, ms from which and until which is counted"""
    return ("100mbit", "10ms", 5000, 10000) if run.row == "prague" else ("10gbit", "100us", 100, 200)


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, begin, end = shape(run)
    _, profile, *words = run.queue(rtt).split()
    net = dumbbell(2, rate="", rtt=rtt)
    # packets pass ifb0, which has the queue, before the link
    for command in ("ip link add ifb0 txqueuelen 10000 type ifb", "ip link set ifb0 up", "tc qdisc add dev r clsact",
                    "tc filter add dev r egress matchall action mirred egress redirect dev ifb0",
                    f"lowq-tc {profile} ifb0 --rate {rate} --shape --no-rehearsal --quiet {' '.join(words)} "
                    f"--shape-burst {run['ring'] * 1514}b",
                    f"tc qdisc add dev r root netem rate {rate} limit 100000"):
        net.prepare("sw", command)
    run.prepare_hosts(net)
    net.stated("h1", "r", rate=rate, rtt=None)
    # what the queueing discipline sees
    seen = program("sw", f"exec qdelay --live --in h1,h2 --out ifb0 --filter tcp --rate {rate} --from {begin}ms "
                         f'--to {end}ms --json "$OUT/seen.json"', label="seen", stop="end")
    return net.plan(seen, *run.longs(2, "r", duration=f"{end + 10}ms"), observe=[("sw", "r")],
                    count=(f"{begin}ms", f"{end}ms"))


def metrics(results: Results) -> dict[str, float | None]:
    queue, bps = results.queues[0], 1e8 if results.run.row == "prague" else 1e10
    seen = json.loads((results.directory / "seen.json").read_text(encoding="utf-8"))["qlen_pkts"]["mean"]
    return {"utilisation": queue["throughput_bps"] / bps, "seen_pkts": seen,
            "ring_pkts": queue["qlen_pkts"]["mean"] - seen}


SCENARIO = Scenario(
    title="A network card's ring: what waits where the queueing discipline does not see it",
    question="""The lab's link takes one packet at a time. What changes where a network card's ring takes 64, 256 or
        1024 from the queue, and with BQL?""",
    topology="""
 h1 h2  a long flow each  -- sw: the queue -> ring descriptors -> ==== rate ==== r
                              (marks here)   (not here)""",
    rows=["dctcp", "ldcp", "prague"],
    variants=each(ring=[1, 4, 64, 256, 1024]),
    params={"ring": "descriptors: htb over the queue lets so many packets through at once, to a link of the "
                    "same rate (netem), where they wait: so many, or one more, are always behind the queue "
                    "while the link is busy; 1: as in all other scenarios; 4: what BQL leaves there, two packets "
                    "being sent and fetched and two that an interrupt completes",
            "dctcp, ldcp": "10 Gb/s, base RTT 100 us; counted: 0.1 s to 0.2 s",
            "prague": "100 Mb/s, base RTT 10 ms; counted: 5 s to 10 s",
            "queue, delay": "in the queueing discipline and in the ring together, with the packet that is being"
                            " sent"},
    words={"ring": "ring of {}"},
    shown=["utilisation", "delay_mean_us", "seen_pkts", "ring_pkts", "delay_p99_us", "qlen_mean_pkts"],
    goals=[goal("utilisation", row="dctcp", least=0.98),
           goal("ring_pkts", row="dctcp", most=5, variant={"ring": 4},
                text="with BQL: packets that the queue does not see")],
    conclusion="""Marks limit the queue in the qdisc, not what waits in the ring behind it.

        With BQL the wait is that of the marks again: the lab stands for a switch's port, and for a network card with
        BQL.""",
    metrics=metrics,
    plan=plan)
