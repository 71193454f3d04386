# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Results, Scenario


def metrics(results: Results) -> dict[str, float]:
    burst = int(results.run["burst"].removesuffix("kb")) * 1024
    out = sorted((int(row["t_out_ns"]), int(row["len"])) for row in results.table("packets.csv") if row["t_out_ns"])
    level = most = 0.0
    last = out[0][0]
    for when, size in out:
        # a bucket that empties at the rate: its highest level is the largest burst
        level = max(0, level - (when - last) * 100e6 / 8e9) + size
        most, last = max(most, level), when
    return {"largest_burst": round(most), "burst_bytes": burst, "over_theory": round(most / burst, 6)}


SCENARIO = Scenario(
    title="A token bucket: what leaves in any time, beside its envelope",
    question="Does a token bucket of the lab let through at most its burst and its rate, and as much if there is data?",
    topology="""
 h1  64 answers at once, three times -- sw ==== 100 Mb/s ==== r
                       (tbf, burst)
                        base RTT 10 ms""",
    rows=["cubic"],
    variants=each(burst=["3kb", "15kb", "60kb", "240kb"]),
    params={"theory": "in any time t at most burst + rate x t bytes leave, and as many where there is enough data",
            "largest_burst": "the largest excess of what left over rate x t, of all times between two packets"},
    shown=["largest_burst", "burst_bytes", "over_theory"],
    goals=[goal("over_theory", row="cubic", least=0.95, most=1, text="the largest burst, to the bucket")],
    metrics=metrics,
    shell="""
	dumbbell 1 10ms
	in_ns sw tc qdisc replace dev egress root tbf rate 100mbit burst "$burst" limit 2mb || fail "tbf"
	serve r --cc cubic
	BURST=$((${burst%kb} * 1024 / 1514)) check_path h1 r 100mbit 10ms
	serve h1 --cc cubic
	watch_queue 100mbit 0s 5s 10ms --packets "$OUT/packets.csv"
	for _ in 1 2 3; do
		incast 1 64 100000 0us >>"$OUT/flows.jsonl"
		sleep 0.2
	done
	watched
""")
