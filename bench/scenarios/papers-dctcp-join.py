# SPDX-License-Identifier: GPL-2.0

import collections
import statistics

from lowq_lab import each, figure, goal, Paper, Results, Scenario


def metrics(results: Results) -> dict[str, float]:
    """Shares, from the flows' rates in bins of 10 ms"""
    flows = results.run["flows"]
    rates: dict[str, dict[int, float]] = collections.defaultdict(dict)
    for row in results.table("flows.csv"):
        if row["flow"].endswith(">10.0.0.1:5201"):
            rates[row["flow"]][round(float(row["t_s"]) * 100)] = float(row["throughput_bps"])
    # flow i, in the order of starts, runs from step i to step i + 4
    ordered = sorted(rates, key=lambda flow: min(rates[flow]))
    parts = [(range(20 * step + 5, 20 * step + 19), ordered[max(0, step - 4):min(step, 4) + 1]) for step in range(1, 8)]
    if flows == 90:
        parts = [(range(30, 80), ordered)]
    jain, vary = [], []
    for bins, who in parts:
        means = [statistics.mean(rates[flow].get(at, 0) for at in bins) for flow in who]
        means += [0] * (flows - len(who)) * (flows == 90)
        jain.append(sum(means) ** 2 / (len(means) * sum(mean * mean for mean in means)))
        vary += [statistics.pstdev(rates[flow].get(at, 0) for at in bins) / mean
                 for flow, mean in zip(who, means) if mean]
    return {"jain_least": min(jain), "jain_mean": statistics.mean(jain), "variation": statistics.mean(vary)}


SCENARIO = Scenario(
    title="DCTCP's paper, figure 16: five flows join and leave, and 90 flows together, 1 Gb/s, K = 20 packets",
    question="""DCTCP's paper shows flows that quickly come to their fair share when others join and leave, where TCP's
        are fair on average only. What is it here?""",
    topology="""
 h1..h5   a flow each, one more every 0.2 s, one less every 0.2 s  -- sw ==== 1 Gb/s ==== r
 or h1..h10  9 flows each, all the time                               (the queue, 700 kB)
  1 Gb/s each                                                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(flows=[5, 90]),
    params={"K of DCTCP": "20 packets", "limit": "700 kB",
            "least Jain": "of the seven intervals with 2 flows or more, each without its first 50 ms; with 90 flows, "
                          "of 0.3 s to 0.8 s",
            "variation": "standard deviation of each flow over intervals of 10 ms, by its mean"},
    shown=["jain_least", "jain_mean", "variation", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("jain_least", row="dctcp_ref", least=0.99, text="Jain >= 0.99 in each interval"),
           goal("variation", row="dctcp_ref", most=1, relative_to="dctcp",
                text="rates vary no more than those of dctcp")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="steps of 0.2 s (2000 RTTs), not of 30 s",
        figures=[figure("fig. 16", "jain_least", what="Jain of up to 90 flows", variant={"flows": 90}, value=0.99,
                        in_tree="dctcp", ours="dctcp_ref", differs="9 flows on each of 10 hosts"),
                 figure("fig. 16 (a)", "jain_least", what="least Jain, flows join and leave", variant={"flows": 5},
                        says="quickly converge to their fair share", in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 16 (b)", "variation", what="variation, TCP", variant={"flows": 5},
                        says="fair on average, but much higher variation", in_tree="cubic",
                        differs="CUBIC, not New Reno; steps of 0.2 s"),
                 figure("fig. 16 (a)", "variation", what="variation", variant={"flows": 5}, says="low in the drawing",
                        in_tree="dctcp", ours="dctcp_ref")]),
    answer="""Jain's index is {range jain_least dctcp flows=5} at least in each interval with Linux's dctcp, {range
        jain_least dctcp_ref flows=5} with dctcp_ref and {range jain_least cubic flows=5} with CUBIC; of 90 flows {range
        jain_least dctcp flows=90}, {range jain_least dctcp_ref flows=90} and {range jain_least cubic flows=90}.""",
    conclusion="""{range variation dctcp flows=5} is how much a flow's rate varies from one 10 ms to the next with
        Linux's dctcp, {range variation dctcp_ref flows=5} with dctcp_ref and {range variation cubic flows=5} with
        CUBIC.""",
    metrics=metrics,
    shell=r"""
	local i hosts=5 pids=()

	[ "$flows" = 5 ] || hosts=10
	dumbbell $hosts 100us
	line_rate 1gbit
	limited 1gbit 100us 700000b 20
	serve r --cc "$CONTROL"
	check_path h1 r 1gbit 100us
	if [ "$flows" = 90 ]; then
		watch_queue 1gbit 300ms 800ms 10ms
		start_flows 10 810ms 1000 --flows 9 --stagger 1ms
		LONG_FLOWS=90
	else
		watch_queue 1gbit 0ms 1790ms 10ms
		PIDS=()
		for i in 1 2 3 4 5; do
			in_ns "h$i" flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 1s \
				--start "$(((i - 1) * 200000 + $(start_us "$i" 1000)))us" >"$TMP/long$i" &
			PIDS+=($!)
		done
	fi
	# of 90 CUBIC flows some have nothing but losses
	requests_done "${PIDS[@]}"
	cat "$TMP"/long* >"$OUT/flows.jsonl"
	watched
""")
