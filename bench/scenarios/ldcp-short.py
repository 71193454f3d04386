# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

SCENARIO = Scenario(
    title="LDCP: answers of up to one BDP on an idle path, 10 Gb/s, base RTT 100 us",
    question="How much longer does the first answer on a connection take than the link alone needs?",
    topology="""
 h1  answers, one after the other -- sw ==== 10 Gb/s ==== r  asks
  10 Gb/s                           (ldcp: WRED; dctcp: RED step)
                                     base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(size=[1000, 20000, 60000, 125000], tso=[None, 1]),
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: 10", "ideal": "RTT + size / rate, without headers",
            "answers": "20, each the first on its connection, begun at random within 100 us",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, section 2.3": """time by that at full speed: short flows could have finished in one round: a
                first RTT at full speed"""},
    shown=["rpc_p50_us", "rpc_p99_us", "ideal_us", "over_ideal"],
    goals=[goal("over_ideal", row="ldcp", most=1.1, median=1.05)],
    conclusion="""LDCP sends one BDP at once in the first RTT, where DCTCP needs several rounds.

        The smallest answers fit into any initial window.""",
    shell="""
	local i

	dumbbell 1 100us
	line_rate 10gbit
	bottleneck 10gbit 100us
	ldcp_hosts 87
	serve h1 --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	fixed_start
	for ((i = 1; i <= 20; i++)); do
		SEED=$((SEED * 100 + i)) incast 1 1 "$size" 100us
	done >"$OUT/flows.jsonl"
	completions
	metric ideal_us $((100 + size / 1250))
	metric over_ideal "$(jq -s --argjson size "$size" '
		[.[] | select(.type == "flow") | .duration_ns / 1000] | sort |
		.[length / 2 - 1] / (100 + $size / 1250)' "$OUT/flows.jsonl")"
""")
