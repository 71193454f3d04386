# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="DualPI2's paper: ten flows, from all CUBIC to all Prague, 40 Mb/s, base RTT 10 ms",
    question="""DualPI2's paper: whatever the mix of ten flows, a scalable one and a classic one get about the same
        rate, and L4S packets wait about a millisecond. Is it so with Prague?""",
    topology=r"""
 h1..hP      prague  --\
                        sw ==== 40 Mb/s ==== r
 h(P+1)..h10 cubic   --/  (dualpi2, lowq-tc's defaults)
                           base RTT 10 ms""",
    rows=["prague"],
    variants=each(prague=[0, 1, 2, 5, 8, 9, 10]),
    params={"prague": "so many of the ten flows, the others are CUBIC",
            "counted": "from 20 s to 60 s; ratio is that of the mean rates, delays are the means of each flow's p99",
            "paper": """K. De Schepper et al., Dual Queue Coupled AQM, arXiv 2209.01078. Here: Prague and CUBIC of
                this kernel, not its DCTCP""",
            "paper, mixes of flows": """Prague : CUBIC, one Prague (prague=1): 1.00 (near 1 in each mix); Prague :
                CUBIC, five (prague=5): 1.00 (near 1 in each mix); Prague : CUBIC, nine (prague=9): 1.00 (near 1 in
                each mix); L4S delay at p99, five (prague=5): 0 to 2000 µs (1 to 2 ms)"""},
    words={"prague": "{} of 10 are Prague"},
    shown=["ratio", "prague_p99_us", "cubic_p99_us", "utilisation", "jain", "drops"],
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, text="Prague to CUBIC, of each flow"),
           goal("utilisation", row="prague", least=0.97)],
    conclusion="""Where nearly all flows are Prague's, the path holds few packets of each, and a CUBIC flow has its
        own queue.""",
    shell=r"""
	local from=20 to=60 i pids=() ours theirs

	BUFFER=33554432
	dumbbell 10 10ms
	bottleneck 40mbit 10ms
	serve r --cc prague
	check_path h1 r 40mbit 10ms
	LONG_FLOWS=10
	watch_queue 40mbit "${from}s" "${to}s" 10ms
	for ((i = 1; i <= 10; i++)); do
		in_ns "h$i" flowgen long --to 10.0.0.1 --cc "$( ((i <= prague)) && echo "$CONTROL" || echo cubic)" \
			--duration "${to}s" --start "$(start_us "$i" 1000000)us" >"$TMP/long$i" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/long* >"$OUT/flows.jsonl"
	watched
	ours=$(mean_of 1 "$prague" .payload_bytes)
	theirs=$(mean_of $((prague + 1)) 10 .payload_bytes)
	metric ratio "$(jq -n "$ours as \$p | $theirs as \$c | if \$p and \$c then \$p / \$c else null end")"
	metric prague_p99_us "$(mean_of 1 "$prague" .delay_us.p99)"
	metric cubic_p99_us "$(mean_of $((prague + 1)) 10 .delay_us.p99)"
""")
