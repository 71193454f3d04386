# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Video in segments of 333 ms beside a long CUBIC flow, 20 to 60 Mb/s, 14 to 65 ms",
    question="How many segments of a video come late beside another flow, and how long do they take?",
    topology=r"""
 h1  a long flow        --\
                           sw ==== rate ==== r  player
 h3  server of segments --/    (the queue)
                          base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="30mbit", rtt="28ms", beside=[None, "cubic"]),
              *each(rate="30mbit", rtt="28ms", bits="2400000,4800000,9600000"),
              *each(rate="20mbit", rtt="65ms", beside="cubic", bits="2400000,4800000,9600000"),
              *each(rate="60mbit", rtt="14ms", beside="cubic"),
              *each(rate="30mbit", rtt="28ms", beside="cubic", tso=1)],
    params={"bits": "rates of the video, bit/s; one: 9600000, 400 kB a segment",
            "beside": "control of the long flow; otherwise that of the video",
            "segments": "60, one every 333 ms, from the eighth second on"},
    words={"beside": {"cubic": "beside CUBIC"}, "bits": {"2400000,4800000,9600000": "three rates"}},
    shown=["late_segments", "rpc_p50_us", "rpc_p99_us", "video_mbps", "delay_p99_us", "utilisation"],
    goals=[goal("late_segments", row="prague", most=1, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Over drop-tail beside CUBIC all segments are late, whatever the rate.

        With Prague beside a CUBIC flow over DualPI2 none is, as over fq_codel.""",
    shell="""
	local long

	dumbbell 3 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc "${beside:-$CONTROL}"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	watch_queue "$rate" 8s 28s 20ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "${beside:-$CONTROL}" --duration 28s \
		--start "$((SEED * 104729 % 300))ms" >"$TMP/long" &
	long=$!
	sleep 8
	"$RUNNER/app" video --cc "$CONTROL" ${bits:+--rates "$bits"} "${NSP}r" "${NSP}h3" 10.0.3.1 \
		>"$TMP/video" || fail "video"
	all_done "$long"
	cat "$TMP/long" "$TMP/video" >"$OUT/flows.jsonl"
	watched
	completions
	metric late_segments "$(jq -s 'map(select(.type == "summary"))[0].late' "$TMP/video")"
	metric video_mbps "$(jq -s 'map(select(.type == "summary"))[0].rate_bps / 1e6' "$TMP/video")"
""")
