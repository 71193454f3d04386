# SPDX-License-Identifier: GPL-2.0

from lowq_lab import goal, Scenario


def cell(rate: int, rtt: int, flows: int, kb: int, per_second: int,
         **more: int | float | str) -> dict[str, int | float | str]:
    return {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "flows": flows, "kb": kb, "per_second": per_second, **more}


SCENARIO = Scenario(
    title="Everyone on the link at once: requests, long flows and a third party, 8 to 400 Mb/s, 8 to 90 ms",
    question="""How long do requests take while others fill the link, what is left for these, and how long do the
        packets of a third party wait?""",
    topology=r"""
 h1 ..    long flows        --\
 next     answers requests  -- sw ==== rate ==== r
 last two a packet per 20 ms --/    (the queue)
                             base RTT rtt""",
    rows=["prague", "cubic_l4s", "cubic_fq", "prague_fq"],
    reference="cubic_l4s",
    variants=[cell(8, 45, 1, 8, 37, conn="kept"),
              cell(20, 30, 2, 20, 20, conn="kept"),
              cell(35, 8, 2, 250, 4, conn="fresh"),
              cell(35, 18, 2, 8, 54, conn="fresh"),
              cell(35, 45, 6, 35, 37, conn="kept"),
              cell(60, 65, 2, 100, 12, conn="kept"),
              cell(70, 30, 3, 100, 20, conn="fresh"),
              cell(100, 20, 2, 20, 40, conn="kept"),
              cell(100, 20, 2, 20, 40, conn="kept", tso=1),
              cell(100, 20, 8, 20, 80, conn="fresh"),
              cell(150, 8, 2, 35, 120, conn="kept"),
              cell(150, 90, 2, 8, 300, conn="kept"),
              cell(250, 25, 2, 60, 80, conn="fresh", tso=1),
              cell(400, 8, 2, 20, 250, conn="kept", tso=1)],
    params={"kb": "size of an answer, kB", "per_second": "requests, Poisson", "flows": "long flows beside",
            "conn": "a new connection for each request, or kept ones", "tso": "with segmentation offloads",
            "ect1, notect": "a third party's packets of UDP, 50 per second", "counted": "from 8 s to 22 s"},
    words={"kb": "{} kB", "per_second": "{} per second", "flows": "{} long flows",
           "conn": {"fresh": "new connections", "kept": "kept connections"}},
    shown=["rpc_p50_us", "rpc_p99_us", "beside_mbps", "ect1_p99_us", "notect_p99_us", "utilisation"],
    goals=[goal("rpc_p50_us", row="prague", most=1.05, median=0.85, beside=["cubic_l4s"], text="requests, p50"),
           goal("rpc_p99_us", row="prague", most=1, median=0.6, beside=["cubic_l4s"], text="requests, p99"),
           goal("beside_mbps", row="prague", least=0.7, median=0.85, beside=["cubic_l4s"], text="long flows' rate")],
    conclusion="""A third party's packets with ECT(1) share a queue with the answers' bursts over DualPI2, and have a
        queue of their own over FQ-CoDel: where one owns the bottleneck, take that.

        Packets without ECT(1) wait for CUBIC's long flows over DualPI2, and hardly at all beside Prague's.""",
    shell=r"""
	local i n=$flows pids=() udp=() persist=() from=8 secs=14

	[ "$conn" = fresh ] || persist=(--persist)
	dumbbell $((n + 3)) "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	serve h$((n + 1)) --cc "$CONTROL"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	LONG_FLOWS=$n
	watch_queue "$rate" ${from}s $((from + secs))s 20ms
	for ((i = 1; i <= n; i++)); do
		in_ns h$i flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration $((from + secs + 1))s \
			--start "$((i * 300 + SEED * 37 % 100))ms" >"$TMP/long$i" &
		pids+=($!)
	done
	for i in 0 1; do
		(sleep $from; exec "$RUNNER/app" --ecn $i --port $((5400 + i * 10)) --size 160 --duration $((secs - 1))s call \
			"${NSP}r" "${NSP}h$((n + 2 + i))" "10.0.$((n + 2 + i)).1" >"$TMP/udp$i") &
		udp+=($!)
	done
	in_ns r flowgen rpc --to "10.0.$((n + 1)).1" --cc "$CONTROL" "${persist[@]}" --size "${kb}k" \
		--rate "$per_second" --start ${from}s --duration ${secs}s --seed "$SEED" --timeout 20s >"$TMP/rpc" &
	requests_done $!
	all_done "${udp[@]}"
	all_done "${pids[@]}"
	cat "$TMP"/long[0-9]* "$TMP/rpc" >"$OUT/flows.jsonl"
	watched
	beside "${secs}000000000"
	completions
	metric notect_p99_us "$(jq '.p99_ns / 1000' "$TMP/udp0")"
	metric ect1_p99_us "$(jq '.p99_ns / 1000' "$TMP/udp1")"
""")
