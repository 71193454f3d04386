# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Slow links over DualPI2: 0.5 to 12 Mb/s, 5 to 100 ms, one to five flows, alone and beside CUBIC",
    question="From how long a queue on should a slow link mark L4S packets, and does Prague share it with CUBIC?",
    topology=r"""
 h1..hn        prague  --\
                          sw ==== rate ==== r
 h(n+1)..h(2n) (cubic) --/  (dualpi2)
                             base RTT rtt""",
    rows=["prague"],
    variants=each(each(rate=["500kbit", "2mbit", "7mbit", "12mbit"], rtt=["5ms", "28ms", "100ms"], flows=[1, 2, 5],
                       beside=[None, "cubic"]),
                  [{"step": 1.5, "min": 1}, {"step": 2}, {"step": 1, "min": 1}]),
    params={"step": "ECT(1) is marked above this many packets' time at the rate, and not below 1 ms",
            "min": "min_qlen_step: only a packet that found so many of L4S in the queue is marked",
            "beside": "as many flows of that control",
            "counted": "from 20 s to 60 s; delays are the means of each flow's p99, the ratio is that of the "
                       "controls' mean rates"},
    words={"beside": "beside {}", "step": "step of {} packets", "min": "min {}"},
    shown=["utilisation", "prague_p99_us", "ratio", "cubic_p99_us"],
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, variant={"beside": "cubic", "step": 1.5},
                text="Prague to CUBIC, lowq-tc's rule"),
           goal("utilisation", row="prague", least=0.9, median=0.99, variant={"step": 1.5},
                text="link used, lowq-tc's rule")],
    conclusion="""A step of more than a packet's time, for packets that find another one, keeps the queue short and
        most shares even.

        Below a few Mb/s the path holds less than the smallest windows, which are the queue, whatever the step.""",
    shell=r"""
	local from=20 to=60 i pids=() step_us

	BUFFER=33554432
	dumbbell "$((flows * (${beside:+1} + 1)))" "$rtt"
	step_us=$(jq -n --arg rate "$rate" "$step * 1514 * 8"' / ($rate |
		(.[:-4] | tonumber) as $n | if endswith("kbit") then $n / 1000 else $n end) | floor')
	QUEUE+=" --step $((step_us > 1000 ? step_us : 1000))us ${min:+--step-min $min}"
	bottleneck "$rate" "$rtt"
	serve r --cc prague
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" "${from}s" "${to}s" 10ms
	for ((i = 1; i <= flows * (${beside:+1} + 1); i++)); do
		in_ns "h$i" flowgen long --to 10.0.0.1 --cc "$( ((i <= flows)) && echo "$CONTROL" || echo "$beside")" \
			--duration "${to}s" --start "$(start_us "$i" 20000)us" >"$TMP/long$i" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/long* >"$OUT/flows.jsonl"
	watched
	metric prague_p99_us "$(mean_of 1 "$flows" .delay_us.p99)"
	[ -n "${beside:-}" ] || return 0
	metric cubic_p99_us "$(mean_of $((flows + 1)) $((2 * flows)) .delay_us.p99)"
	metric ratio "$(jq -n "$(mean_of 1 "$flows" .payload_bytes) /
		$(mean_of $((flows + 1)) $((2 * flows)) .payload_bytes)")"
""")
