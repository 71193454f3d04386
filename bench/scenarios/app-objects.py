# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, program, Results, Run, Scenario


SIZES = (3, 12, 30, 100, 300, 1000, 3000)  # kB


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]), line="1gbit" if run.offloads else "",
                   offloads=run.offloads)
    # the next request once the last one is over
    ask = (f"flowgen rpc --to {net.address('h1')} --cc {run.control} --size ${{size}}k --closed 1 --requests 3 "
           f"--first-byte --seed {run.seed} --timeout 60s")
    return net.measured(program("h1", f"exec flowgen serve --cc {run.control}", stop="end"),
                        program("r", f"for size in {' '.join(map(str, SIZES))}; do {ask} || exit; done", start="1ms",
                                label="objects"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    flows = [line for line in results.program("objects") if line["type"] == "flow"]
    made: dict[str, float | None] = {}
    for size in SIZES:
        of = [flow for flow in flows if flow["size"] == size * 1000]
        for name, field in (("", "since_due_ns"), ("first", "first_byte_ns")):
            times = [flow[field] / 1000 for flow in of]
            made[f"k{size}_{name or 'p50'}_us"] = at_share(times, 0.5)
            made[f"k{size}_{name + '99' if name else 'p99'}_us"] = at_share(times, 0.99)
    return made


SCENARIO = Scenario(
    title="Transfers of 3 kB to 3 MB on new connections, 6 to 250 Mb/s, 10 to 65 ms, on an idle link",
    question="""How long does a transfer on a new connection take, from the handshake to the first and to the last
        byte?""",
    topology=r"""
 h1  answers requests  -- sw ==== rate ==== r
                          (the queue)
                                base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="60mbit", rtt="65ms", tso=[None, 1]), *each(rate="20mbit", rtt="30ms"),
              *each(rate="100mbit", rtt="10ms"), *each(rate="6mbit", rtt="30ms"), *each(rate="250mbit", rtt="30ms")],
    params={"transfers": "one after another, 3 of each size", "tso": "with segmentation offloads"},
    shown=["k100_first99_us", "k30_p50_us", "k100_p50_us", "k300_p50_us", "k1000_p50_us", "k100_first_us",
           "k3000_p50_us", "delay_p99_us"],
    goals=[goal("k100_p50_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="100 kB, p50"),
           goal("k3000_p50_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="3 MB, p50"),
           goal("k12_p99_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="12 kB, p99")],
    conclusion="""Pacing makes a transfer a little longer: its last packets do not leave in a burst.""",
    metrics=metrics,
    plan=plan)
