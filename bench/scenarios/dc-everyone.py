# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

# Incasts: rounds of answers from eight hosts, fan of them at once
INCASTS: list[dict[str, int | str]] = [dict(rate="10gbit", rtt="100us", fan=40, kb=20, period="2ms", flows=1),
           dict(rate="25gbit", rtt="60us", fan=200, kb=80, period="15ms", flows=1),
           dict(rate="40gbit", rtt="60us", fan=200, kb=10, period="1500us", flows=3),
           dict(rate="25gbit", rtt="20us", fan=12, kb=400, period="4ms", flows=2),
           dict(rate="10gbit", rtt="250us", fan=100, kb=20, period="4ms", flows=2)]
# Requests: Poisson, 30 % of the link, a connection each
REQUESTS: list[dict[str, int | str]] = [dict(rate="10gbit", rtt="100us", kb=100, flows=1),
                                        dict(rate="25gbit", rtt="60us", kb=100, flows=2)]

SCENARIO = Scenario(
    title="Data centre: answers and the long flows beside them",
    question="""Answers and long flows share a link: how long do the answers take, what do the long flows carry, how
        full is the link, and how long do packets wait, at once?""",
    topology=r"""
 h1 ... h8   answers to r  --\
                              sw ==== rate ==== r
 h9, h10 ... long flows    --/    base RTT""",
    rows=["dctcp", "dctcp_65", "ldcp"],
    reference="dctcp_65",
    variants=each(INCASTS + REQUESTS, tso=[None, 1]),
    params={"tso": TSO.format("the link's rate"),
            "fan": "answers at once, in rounds; without it requests, Poisson, 30 %",
            "kb": "an answer's size, kB", "period": "of the rounds", "flows": "long flows",
            "dctcp_65": "K = 65 packets per 10 Gb/s and 100 us; dctcp: as lowq-tc sets it",
            "counted": "20 ms to 120 ms"},
    words={"fan": "{} at once", "flows": {1: "1 long flow", 2: "2 long flows", 3: "3 long flows"}},
    shown=["answer_p99_us", "long_gbps", "utilisation", "delay_p99_us", "timeouts", "answer_p50_us", "drops",
           "k_bytes"],
    goals=[goal("answer_p99_us", row="ldcp", most=1, median=0.8, beside=["dctcp", "dctcp_65"]),
           goal("long_gbps", row="ldcp", least=0.7, median=0.85, beside=["dctcp", "dctcp_65"]),
           goal("timeouts", row="ldcp", most=0)],
    conclusion="""Where 200 answers begin at once, DCTCP's lose their last packets and wait for a timeout; the long flow
        has the link for itself meanwhile. LDCP's answers are done in a quarter of that time or less.

        Beside requests LDCP's long flow carries less than DCTCP's: a tenth of the link and more stays idle. If it cut
        its window in proportion to the marked share, as DCTCP does, it would carry 11 to 22 % more, but the slowest
        answers of 12 and of 40 servers would take longer than DCTCP's.""",
    shell=r"""
# answers: rounds of them, or requests
answers()
{
	local us=${period:-0}

	if [ "${fan:-}" ]; then
		case $us in *ms) us=$((${us%ms} * 1000)) ;; *) us=${us%us} ;; esac
		incast 8 "$fan" "${kb}k" "$rtt" --count $((100000 / us)) --period "$period" >"$OUT/flows.jsonl"
	else
		in_ns r flowgen rpc --to 10.0.1.1 --size "${kb}k" --load $((${rate%gbit} * 300))mbit --duration 100ms \
			--cc "$CONTROL" --seed "$SEED" --timeout 5s >"$OUT/flows.jsonl"
	fi
}

run_scenario()
{
	local i opt=() pids=() bdp=$((${rate%gbit} * 1000 * ${rtt%us} / 8 / 1514))

	dumbbell $((8 + flows)) "$rtt"
	line_rate "$rate"
	[ "$ROW" != dctcp_65 ] || opt=(--k $((${rate%gbit} * ${rtt%us} * 65 / 1000)))
	bottleneck "$rate" "$rtt" "${opt[@]}"
	ldcp_hosts
	serve r --cc "$CONTROL"
	for ((i = 1; i <= 8; i++)); do
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r "$rate" "$rtt"
	merging
	LONG_FLOWS=$flows
	watch_queue "$rate" 20ms 120ms 100us
	for ((i = 1; i <= flows; i++)); do
		in_ns h$((8 + i)) flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 122ms \
			--start "$(start_us $i 1000)us" >"$TMP/long$i" &
		pids+=($!)
	done
	sleep 0.020
	answers
	all_done "${pids[@]}"
	watched
	# shellcheck disable=SC2016 # jq's
	metrics '[.[] | select(.type == "flow" and .status == "ok") | .since_due_ns / 1000] | sort |
		def at($q): if length == 0 then null else .[((length * $q / 100) | ceil) - 1] end;
		{ answer_p50_us: at(50), answer_p99_us: at(99) }' "$OUT/flows.jsonl" -s
	metric long_gbps "$(jq '[.flows[] | select(.flow | endswith(">10.0.0.1:5201")) | .payload_bytes] |
		add * 8 / 1e8' "$OUT/qdelay.json")"
	metric k_bytes "$(in_ns sw tc -j qdisc show dev egress | jq '[.[] | select(.kind == "red") | .options.min][0]')"
	metric timeouts "$(host_counter TCPTimeouts 8)"
}
""")
