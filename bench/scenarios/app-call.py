# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="A call beside long flows, 10 to 100 Mb/s, base RTT 20 ms",
    question="How late are the packets of a call while others fill the link, and how many are lost?",
    topology=r"""
 h1, h2  long flows --\
                       sw ==== rate ==== r
 h3  call           --/    (the queue)
                      base RTT 20 ms, all of it on the way back""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=each(rate=["10mbit", "30mbit", "100mbit"], ecn=[0, 1]) + each(rate="30mbit", ecn=1, tso=1),
    params={"call": "50 packets of UDP per second, 160 bytes each, one way",
            "ecn": "their ECN field: 0 Not-ECT, 1 ECT(1)", "long flows": 2, "counted": "from 6 s to 26 s"},
    words={"ecn": {0: "Not-ECT", 1: "ECT(1)"}},
    shown=["call_p50_us", "call_p99_us", "call_p999_us", "call_lost", "delay_p99_us", "utilisation"],
    goals=[goal("call_p99_us", row="prague", most=1, beside=["cubic_l4s", "bbr_l4s"], variant={"ecn": 0},
                text="p99 without ECT(1)"),
           goal("call_p99_us", row="prague", most=3300, text="p99: 2 ms and a packet above the base"),
           goal("call_lost", row="prague", most=0)],
    conclusion="""Without ECT(1) a call waits for DualPI2's scheduler alone: Prague's flows have left the Classic
        queue to it.

        With ECT(1) it waits in the queue of Prague's flows, at low rates longer than beside CUBIC.

        In fq_codel a call has a queue of its own.""",
    shell=r"""
	local i pids=() q

	dumbbell 3 20ms
	bottleneck "$rate" 20ms
	serve r --cc "$CONTROL"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" 20ms
	merging
	LONG_FLOWS=2
	watch_queue "$rate" 6s 26s 20ms
	for i in 1 2; do
		in_ns h$i flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 27s \
			--start "$((i * 300 + SEED * 104729 % 300))ms" >"$TMP/long$i" &
		pids+=($!)
	done
	sleep 6
	"$RUNNER/app" call --duration 20s --ecn "$ecn" "${NSP}r" "${NSP}h3" 10.0.3.1 >"$TMP/call" || fail "call"
	all_done "${pids[@]}"
	cat "$TMP"/long? >"$OUT/flows.jsonl"
	watched
	for q in 50 99 999; do
		metric "call_p${q}_us" "$(jq ".p${q}_ns / 1000" "$TMP/call")"
	done
	metric call_lost "$(jq '.sent - .received' "$TMP/call")"
""")
