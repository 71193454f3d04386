# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Capacity that changes: flows leave and join, links change their rate, over DualPI2",
    question="""How long does it take until Prague uses capacity that has become free, and until a new flow has its
        share?""",
    topology=r"""
 h1  a long flow       --\
                          sw ==== rate ==== r
 h2  another: leave, join /  (dualpi2, defaults)
                              base RTT rtt""",
    rows=["prague", "cubic_l4s"],
    variants=[*each(event="leave", rate=["40mbit", "100mbit", "400mbit"], rtt="20ms"),
              *each(event="up", rate="25mbit", to="100mbit", rtt="20ms"),
              *each(event="up", rate="50mbit", to="100mbit", rtt="50ms"),
              *each(event="up", rate="200mbit", to="400mbit", rtt="20ms"),
              *each(event="join", rate=["40mbit", "400mbit"], rtt="20ms"),
              *each(event="join", rate="100mbit", rtt="50ms"),
              *each(event="start", rate=["90mbit", "230mbit"], rtt="65ms"),
              *each(event="start", rate="100mbit", rtt="100ms"),
              *each(event="start", rate="400mbit", rtt=["20ms", "50ms"])],
    params={"leave": "the second of two flows ends after 20 s",
            "up": "the rate changes to the value in column to after 20 s", "join": "a second flow starts after 20 s",
            "start": "a flow alone, from its first packet",
            "right": "at least 90 % of the link, on average over the half second that follows (join: 80 % of the "
                     "share, over 2 s)"},
    words={"event": {"join": "a flow joins", "leave": "a flow leaves", "start": "a flow starts",
                     "up": "the link gets faster"}},
    shown=["settled_s", "phase_p99_us", "used_from_2s", "start_max_us", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("settled_s", row="prague", most=3, median=1.5),
           goal("phase_p99_us", row="prague", most=5000),
           goal("used_from_2s", row="prague", least=0.95)],
    conclusion="""Prague takes capacity for free after a silence longer than it has seen; the increase then doubles
        with each period.

        Marks of others' queues do not end the slow start of a window that is small for the path.

        A flow that starts alone makes the queue of slow start: packets sent before the first mark returns.""",
    shell=r"""
# settled RATE BINS [FLOW]: seconds after $event_at until the mean rate of the BINS (10 ms) that follow is
# RATE bits per second
settled()
{
	awk -F, -v at="$event_at" -v rate="$1" -v n="$2" -v flow="${3:-}" '
		NR == 1 { next }
		flow != "" && index($2, flow) != 1 { next }
		{ r[int($1 * 100 + 0.5)] = flow == "" ? $2 : $3; last = int($1 * 100 + 0.5) }
		END {
			for (i = int(at * 100); i + n <= last; i++) {
				if (i == int(at * 100)) for (j = i; j < i + n; j++) sum += r[j]
				else sum += r[i + n - 1] - r[i - 1]
				if (sum / n >= rate) { printf "%.2f\n", i / 100 - at; exit }
			}
			print "null"
		}' "$OUT/$([ -n "${3:-}" ] && echo flows || echo queue).csv"
}

# used FROM TO: share of the link between these seconds after the start
used()
{
	awk -F, -v from="$1" -v to="$2" -v rate="$bps" '
		NR > 1 && $1 >= from - 0.001 && $1 < to - 0.001 { sum += $2; n++ } END { print sum / n / rate }' "$OUT/queue.csv"
}

# longest SECONDS: the longest delay in the first SECONDS, us
longest()
{
	awk -F, -v to="$1" 'NR > 1 && $1 < to && $8 + 0 > most { most = $8 + 0 } END { print most + 0 }' "$OUT/queue.csv"
}

run_scenario()
{
	local seconds=60 event_at=20 bps=${rate%mbit}000000 s pids=()

	case $event in
	up) bps=${to%mbit}000000 ;;
	start) event_at=0 seconds=40 ;;
	esac
	BUFFER=33554432
	dumbbell 2 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" 0s "${seconds}s" 10ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration "${seconds}s" \
		--start "$((SEED * 104729 % 20000))us" >"$TMP/long1" &
	pids+=($!)
	case $event in
	leave) in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 20s >"$TMP/long2" & pids+=($!) ;;
	join) in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --start "$((20000000 + SEED * 7919 % 20000))us" \
		--duration "$((seconds - 20))s" >"$TMP/long2" & pids+=($!) ;;
	up) sleep 20; set_rate sw egress 10f0:1 "$to" ;;
	esac
	all_done "${pids[@]}"
	cat "$TMP"/long? >"$OUT/flows.jsonl"
	watched
	[ "$event" != up ] || capacity $((20 * ${rate%mbit}000000 + 40 * ${to%mbit}000000))
	if [ "$event" = join ]; then
		s=$(settled "$((bps * 4 / 10))" 200 10.0.2.1:)
	else
		s=$(settled "$((bps * 9 / 10))" 50)
	fi
	[ "$event" != start ] || { metric used_from_2s "$(used 2 11)"; metric start_max_us "$(longest 3)"; }
	metric settled_s "$s"
	[ "$s" != null ] || s=2
	metric phase_p99_us "$(awk -F, -v a="$event_at" -v s="$s" '
		NR > 1 && $1 >= a && $1 <= a + (s > 2 ? s : 2) && $8 != "" { print $8 }' "$OUT/queue.csv" |
		sort -n | awk '{ d[NR] = $1 } END { print d[int(NR * 0.99 + 0.999)] }')"
}
""")
