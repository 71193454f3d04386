# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Transfers of 3 kB to 3 MB on new connections, 6 to 250 Mb/s, 10 to 65 ms, on an idle link",
    question="""How long does a transfer on a new connection take, from the handshake to the first and to the last
        byte?""",
    topology=r"""
 h1  answers requests  -- sw ==== rate ==== r
                          (the queue)
                                base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="60mbit", rtt="65ms", tso=[None, 1]), *each(rate="20mbit", rtt="30ms"),
              *each(rate="100mbit", rtt="10ms"), *each(rate="6mbit", rtt="30ms"), *each(rate="250mbit", rtt="30ms")],
    params={"transfers": "one after another, 3 of each size", "tso": "with segmentation offloads"},
    shown=["k100_first99_us", "k30_p50_us", "k100_p50_us", "k300_p50_us", "k1000_p50_us", "k100_first_us",
           "k3000_p50_us", "delay_p99_us"],
    goals=[goal("k100_p50_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="100 kB, p50"),
           goal("k3000_p50_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="3 MB, p50"),
           goal("k12_p99_us", row="prague", most=1.05, median=1, beside=["cubic_l4s"], text="12 kB, p99")],
    conclusion="""Pacing makes a transfer a little longer: its last packets do not leave in a burst.""",
    shell=r"""
	local size q

	dumbbell 1 "$rtt"
	bottleneck "$rate" "$rtt"
	serve h1 --cc "$CONTROL"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	watch_queue "$rate" 0s 600s 20ms
	for size in 3 12 30 100 300 1000 3000; do
		# the next request once the last one is over
		in_ns r flowgen rpc --to 10.0.1.1 --cc "$CONTROL" --size "${size}k" --closed 1 --requests 3 \
			--first-byte --seed "$SEED" --timeout 60s >"$TMP/size" || fail "transfers of $size kB"
		cat "$TMP/size" >>"$OUT/flows.jsonl"
		for q in 50 99; do
			metric "k${size}_p${q}_us" "$(jq -s --argjson q $q '
				[.[] | select(.type == "flow") | .since_due_ns / 1000] | sort |
				.[((length * $q / 100) | ceil) - 1]' "$TMP/size")"
		done
	done
	while read -r size first most; do
		metric "k${size}_first_us" "$first"
		metric "k${size}_first99_us" "$most"
	done < <(jq -rs 'def at(q): sort | .[(length * q / 100 | ceil) - 1];
		map(select(.type == "flow")) | group_by(.size)[] | [.[0].size / 1000,
			(map(.first_byte_ns / 1000) | at(50), at(99))] | join(" ")' "$OUT/flows.jsonl")
	watched
""")
