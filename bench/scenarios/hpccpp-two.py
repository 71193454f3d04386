# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, long, program, Results, Run, Scenario, TSO

FIRST, SECOND = ("in", "sw"), ("sw", "r")
DOWN, UP, END = 200, 400, 600  # RTTs of 100 us
CHANGES = (DOWN, FIRST, 5), (DOWN, SECOND, 25), (UP, SECOND, 10), (UP, FIRST, 25)  # Gb/s


def plan(run: Run) -> dict[str, Any]:
    queue = run.queue("100us", k=104)
    net = dumbbell(1, rate="10gbit", rtt="100us", queue=queue, line="25gbit" if run.offloads else "",
                   via=("25gbit", queue.replace("switch-id 1", "switch-id 2")), offloads=run.offloads)
    run.telemetry(net, max_stage=run["stage"], flows=run.get("N", 16), base_rtt_ns=100000)
    # a node stamps the rate that it is told
    stamps = [program(node, f"tc qdisc change dev {dev} {net.place} int rate {rate}gbit", start=f"{at}00us")
              for at, (node, dev), rate in CHANGES if run.control == "hpccpp"]
    net.stated("h1", "r", rate="10gbit", rtt="100us")
    net.merging("r")
    return net.plan(long("h1", "r", duration="60ms", start=f"{run.seed * 7919 % 100}us", control=run.control), *stamps,
                    observe=[SECOND, FIRST], count=("0us", "60ms"), bin_="100us",
                    events=[{"at": f"{at}00us", "node": node, "dev": dev, "rate": f"{rate}gbit"}
                            for at, (node, dev), rate in CHANGES])


def together(results: Results) -> list[dict[str, float]]:
    """What leaves the second queue, and what waits: the mean of both, the longest of either"""
    rows: dict[float, dict[str, float]] = {}
    for row in results.table("series.csv"):
        one = rows.setdefault(float(row["t_s"]), {
            "t_s": float(row["t_s"]), "throughput_bps": 0, "qlen_pkts_mean": 0, "qlen_pkts_max": 0})
        one["qlen_pkts_mean"] += float(row["qlen_pkts_mean"])
        one["qlen_pkts_max"] = max(one["qlen_pkts_max"], float(row["qlen_pkts_max"]))
        if (row["node"], row["dev"]) == SECOND:
            one["throughput_bps"] = float(row["throughput_bps"])
    return [rows[at] for at in sorted(rows)]


def metrics(results: Results) -> dict[str, float | None]:
    rows, eta = together(results), 0.95 if results.run.control == "hpccpp" else 1
    made: dict[str, float | None] = {
        f"{name}_{also}rtts": results.followed(begin, eta * bps, end, 1e-4, bool(also), rows)
        for name, begin, bps, end in (("down", DOWN, 5e9, UP), ("up", UP, 10e9, END)) for also in ("", "together_")}
    after = [row["qlen_pkts_mean"] for row in rows if DOWN + 20 <= round(row["t_s"] * 1e4) < UP]
    return made | {
        "down_queue_max": max(row["qlen_pkts_max"] for row in rows if DOWN <= round(row["t_s"] * 1e4) < DOWN + 20),
        "queue_after_mean": sum(after) / len(after), "drops": sum(queue["dropped"] for queue in results.queues),
        "utilisation": results.share(1e-4 * (1e10 * DOWN + 5e9 * (UP - DOWN) + 1e10 * (END - UP)))}


SCENARIO = Scenario(
    title="HPCC++: two bottlenecks in series, the tighter one changes",
    question="When the other one of two links becomes the bottleneck, how many RTTs does the flow need to follow?",
    topology="""
 h1  a long flow -- sw: first ==== second ==== r
                        (stamps, or RED step: each of the two)
     0 to 200 RTTs       25 Gb/s  10 Gb/s       base RTT 100 us
     to 400 RTTs          5 Gb/s  25 Gb/s
     to 600 RTTs         25 Gb/s  10 Gb/s""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=each(stage=[0, 1, 2, 3, 5]) + each(stage=1, N=0) + each(stage=1, N=[None, 0], tso=1),
    params={"tso": TSO.format("25 Gb/s"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "16; or, where stated, 0, the default: W_ai follows the mean of U",
            "T": "the base RTT, as a parameter", "queue": "both queues together; the longest, of either",
            "followed": "RTTs from the change to the first of 5 in a row with the rate within 5 % of eta*C of the "
                        "tighter link and no more than 5 packets waiting",
            "K of DCTCP": "for 25 Gb/s, at both ports"},
    shown=["down_rtts", "up_rtts", "down_together_rtts", "up_together_rtts", "down_queue_max", "queue_after_mean",
           "drops"],
    goals=[goal("down_together_rtts", row="hpccpp", most=10, median=5),
           goal("up_together_rtts", row="hpccpp", most=10, median=5),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""HPCC++ takes the maximum of both links' loads, so it follows when the tighter of the two changes.

        How soon depends on when the change falls between two probes, which the seed decides.

        Stage 5 is slower upwards: additive increases come before a multiplicative one.""",
    metrics=metrics,
    plan=plan)
