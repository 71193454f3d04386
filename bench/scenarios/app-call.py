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
    goals=[goal("call_p99_us", row="prague", most=3300, variant={"rate": "10mbit"},
                text="p99 at most 2 ms, and a packet of 1.2 ms, above the base"),
           goal("call_p99_us", row="prague", most=2500, variant={"rate": "30mbit"},
                text="p99 at most 2 ms, and a packet, above the base"),
           goal("call_p99_us", row="prague", most=2200, variant={"rate": "100mbit"},
                text="p99 at most 2 ms, and a packet, above the base"),
           goal("call_lost", row="prague", most=0, text="no packet is lost")],
    answer="""Beside two Prague flows 99 of 100 packets of a call with ECT(1) arrive within {range call_p99_us prague
        ecn=1}, without within {range call_p99_us prague ecn=0}; beside CUBIC over the same queue within {range
        call_p99_us cubic_l4s ecn=1} and {range call_p99_us cubic_l4s ecn=0}.""",
    conclusion="""{range call_p99_us prague rate=10mbit ecn=1} at p99 with ECT(1) beside Prague at 10 Mb/s is more than
        the goal of 3.3 ms: the call waits in the queue of the long flows, {range delay_p99_us prague rate=10mbit ecn=1}
        at p99; beside CUBIC it has the L4S queue for itself. In its first 500 rounds, here to the eleventh second, each
        of the two flows adds a packet per RTT of 20 ms, together 12 % of the link, and a mark needs an RTT to come
        back: from 14 packets per RTT they rise to 20, of which 16.5 fit, and five or six wait, 1.2 ms each. In a run of
        seed 1 the call has 7 ms at p99 until then, and 4.1 ms afterwards, when growth follows an RTT that is longer by
        25 ms; with rtt_rounds=0, which makes it so from the start, 4.3 ms in all.

        {range call_p99_us prague rate=10mbit ecn=0} without ECT(1) is what DualPI2's scheduler takes, before and after
        the eleventh second: a packet of the call is alone in the Classic queue, which has a tenth of the rate while the
        L4S queue is not empty, and two packets of the L4S queue at most go first while a third is being sent, 3.6 ms
        together.

        {range call_p99_us cubic_l4s ecn=0} is what a call without ECT(1) waits beside CUBIC over the same queue, {range
        call_p99_us prague ecn=0} beside Prague: the long flows have left the Classic queue to it.

        {range call_lost bbr_l4s ecn=0} packets of 1000 are lost beside BBR without ECT(1), 0 beside Prague in every
        cell.

        {range call_p99_us cubic_fq} is the p99 in fq_codel, where a call has a queue of its own.""",
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
