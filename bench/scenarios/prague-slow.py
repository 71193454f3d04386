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
    goals=[goal("ratio", row="prague", least=0.6, variant={"beside": "cubic", "step": 1.5},
                text="Prague : CUBIC >= 0.6"),
           goal("ratio", row="prague", most=1.8, variant={"beside": "cubic", "step": 1.5},
                text="Prague : CUBIC <= 1.8"),
           goal("utilisation", row="prague", least=0.95, variant={"step": 1.5}, text="utilisation >= 95 %")],
    answer="""With the rule of lowq-tc, 1.5 packets and min 1, Prague uses {range utilisation prague step=1.5 beside=}
        of such links alone and gets {range ratio prague step=1.5 beside=cubic} times CUBIC's rate beside as many flows;
        with two packets it uses {range utilisation prague step=2 beside=} and gets {range ratio prague step=2
        beside=cubic}, with one packet and min 1 {range utilisation prague step=1 beside=} and {range ratio prague
        step=1 beside=cubic}.""",
    conclusion="""1.5 packets' time, and not for a packet that finds the queue empty, marks a packet that finds two
        others, and half of those that find one. Alone, packets wait less at p99 than with two packets' time in 29 of 36
        cells and as long in 6; beside CUBIC the ratio is within 0.6 to 1.8 in 23 of 36 cells, with two packets in 22.

        1 packet's time marks all that find another one. The queue is shorter still in 27 of 36 cells, but beside CUBIC
        Prague gets less than 0.6 of its rate in 12 of 36, with the rule in 9.

        2 Mb/s and less is where these 9 are, six of them at 5 ms: the path holds less than a packet, and two packets,
        the smallest window of each flow, are the queue, whatever the step.

        {max ratio prague step=1.5 min=1 beside=cubic} times CUBIC's rate is the most, at 12 Mb/s and 5 ms with five
        flows of each: ten smallest windows are more than the path and the step hold. So are they at 7 Mb/s and 5 ms,
        {range ratio prague rate=7mbit rtt=5ms flows=5 step=1.5 min=1 beside=cubic} times with five flows of each and
        {range ratio prague rate=7mbit rtt=5ms flows=2 step=1.5 min=1 beside=cubic} with two. One flow of each at 2 Mb/s
        and 100 ms: {range ratio prague rate=2mbit rtt=100ms flows=1 step=1.5 min=1 beside=cubic} times, {range ratio
        prague rate=2mbit rtt=100ms flows=1 step=1 min=1 beside=cubic} with the step of one packet.

        93.9 and 94.8 % is what five flows use alone at 2 Mb/s and 100 ms and at 7 Mb/s and 28 ms, and 93.0 to 96.0 with
        the other steps: they grow by a packet each in the same round (prague-field-flows), whatever the step.

        24 Mb/s is where two packets take 1 ms: from there on lowq-tc leaves the kernel's step.""",
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
