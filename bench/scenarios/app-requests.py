# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Requests on kept connections beside long flows, 20 to 100 Mb/s, 20 to 65 ms",
    question="How long do requests on connections that are kept open take while others fill the link?",
    topology=r"""
 h1, h2  long flows    --\
                          sw ==== rate ==== r
 h3  answers requests  --/    (the queue)
                         base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="100mbit", rtt="20ms", kb=[1, 5, 20, 100]),
              *each(rate="100mbit", rtt="20ms", kb=5, per_second=80),
              *each(rate="100mbit", rtt="20ms", kb=20, per_second=[5, 80]),
              *each(rate="100mbit", rtt="20ms", kb=20, beside="cubic"),
              *each(rate="100mbit", rtt="20ms", kb=20, flows=8),
              *each(rate="100mbit", rtt="20ms", kb=20, tso=1),
              *each(rate="20mbit", rtt="30ms", kb=20),
              *each(rate="60mbit", rtt="65ms", kb=[20, 100])],
    params={"kb": "size of an answer, kB",
            "per_second": "requests, Poisson; where it is not given, 40, at 20 Mb/s 10, of 100 kB 5",
            "flows": "long flows beside (2), of the same control or of beside", "counted": "from 6 s to 26 s",
            "tso": "with segmentation offloads"},
    words={"kb": "{} kB", "per_second": "{} per second", "flows": "{} long flows",
           "beside": {"cubic": "beside CUBIC"}},
    shown=["rpc_p50_us", "rpc_p90_us", "rpc_p99_us", "delay_p99_us", "utilisation", "failed"],
    goals=[goal("rpc_p50_us", row="prague", most=1.1, median=1, beside=["cubic_l4s", "bbr_l4s"]),
           goal("rpc_p99_us", row="prague", most=1, median=0.7, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Small answers wait for the queue and nothing else, and Prague's is short.

        Answers that need a new connection take its handshake and rounds with any control.

        The answers' bursts mark the long flows, too, which leave more of the link unused than CUBIC's.""",
    shell=r"""
	local i n=${flows:-2} pids=() usual=40

	[ "$rate" != 20mbit ] || usual=10
	[ "$kb" != 100 ] || usual=5
	dumbbell 3 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc "${beside:-$CONTROL}"
	serve h3 --cc "$CONTROL"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	LONG_FLOWS=$n
	watch_queue "$rate" 6s 26s 20ms
	for i in 1 2; do
		in_ns h$i flowgen long --to 10.0.0.1 --cc "${beside:-$CONTROL}" --duration 26s --flows $((n / 2)) \
			--start "$((i * 300))ms" --stagger 100ms >"$TMP/long$i" &
		pids+=($!)
	done
	in_ns r flowgen rpc --to 10.0.3.1 --cc "$CONTROL" --persist --size "${kb}k" --rate "${per_second:-$usual}" \
		--start 6s --duration 20s --seed "$SEED" --timeout 20s >"$TMP/rpc" &
	requests_done $!
	all_done "${pids[@]}"
	cat "$TMP"/long? "$TMP/rpc" >"$OUT/flows.jsonl"
	watched
	completions
""")
