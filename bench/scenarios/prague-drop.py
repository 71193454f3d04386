# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="A link that drops to a fifth of its rate for 2 s: Prague over DualPI2",
    question="How long do packets wait during the second after the drop, and is the link full again afterwards?",
    topology="""
 h1  prague  -- sw ==== 100, 20, 100 Mb/s ==== r
               (dualpi2, defaults)
                base RTT rtt""",
    rows=["prague", "cubic_l4s"],
    variants=each(rtt=["2ms", "5ms", "10ms"]) + each(rtt="40ms"),
    # The packets sent before the first mark can return make a queue of four RTTs at a fifth of the rate, with any
    # control: bound_us
    params={"rate": "100mbit, from 10 s to 12 s 20mbit", "counted": "from 10 s to 11 s; util_after from 12 s to 16 s"},
    shown=["drop_p99_us", "drop_max_us", "bound_us", "util_after", "drops"],
    goals=[goal("drop_p99_us", row="prague", most=1, median=0.5, beside=["cubic_l4s"]),
           goal("drop_p99_us", row="prague", most=25000, variant={"rtt": "2ms"}, text="p99 after the drop, RTT 2 ms")],
    conclusion="""The queue gets the packets in flight and those sent until the first mark returns: no control can
        avoid that.

        CUBIC's packets wait in DualPI2's other queue, and longer at every RTT.""",
    shell="""
# The rates change 10 s and 12 s after the first packet, to within microseconds.
after_the_drop()
{
	awk -F, 'NR == 1 { next }
		!first { first = $1 }
		$1 >= first + 10e9 && $1 < first + 11e9 && $3 != "" { print $3 / 1000 }' "$OUT/packets.csv" |
		sort -n >"$TMP/delays"
	metric drop_p99_us "$(awk '{ d[NR] = $1 } END { print d[int(NR * 0.99 + 0.999)] }' "$TMP/delays")"
	metric bound_us "$((${rtt%ms} * 4000))"
	metric drop_max_us "$(tail -n1 "$TMP/delays")"
	metric util_after "$(awk -F, '$1 >= 12 && $1 < 16 { s += $2; n++ } END { print s / n / 1e8 }' "$OUT/queue.csv")"
	rm -f "$OUT/packets.csv"
}

run_scenario()
{
	local flow

	dumbbell 1 "$rtt"
	bottleneck 100mbit "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r 100mbit "$rtt"
	watch_queue 100mbit 0s 16s 10ms --packets "$OUT/packets.csv"
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 16s >"$OUT/flows.jsonl" &
	flow=$!
	sleep 10
	set_rate sw egress 10f0:1 20mbit
	sleep 2
	set_rate sw egress 10f0:1 100mbit
	all_done $flow
	watched
	capacity $((14 * 100000000 + 2 * 20000000))
	after_the_drop
}
""")
