# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="HPCC's paper, micro-benchmarks at 25 Gb/s: long and short, elephants and mice, incast, four joining",
    question="""HPCC's paper: a long flow takes a short one's rate back at once, mice beside elephants wait for nothing,
        an incast keeps a short queue, and flows that join get equal shares. Is it so here?""",
    topology=r"""
 short:   h1 a long flow, h2 1 MB of its own after 3 ms --\
 mice:    h1, h2 a long flow each; h3 answers of 1 kB    --\
 incast:  h1..h16 an answer of 500 kB each, within 1 us  -- sw ==== 25 Gb/s ==== r
 join:    h1..h4 a long flow each, 4 ms after each other --/  (2 MB; stamps, WRED or RED step)
          25 Gb/s each                                        base RTT 10 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=each(test=["short", "mice", "incast", "join"]),
    params={"K of DCTCP": "50 packets: 75 kB, as in the paper",
            "initial window": "ldcp: 21 packets, the BDP; the others: 10", "HPCC++": "defaults, base_rtt_ns=10000",
            "reclaimed": "RTTs from the end of the short flow to the first with 95 % of eta*C; eta is 95 %",
            "mice": "one after the other on a connection that is kept, from 3 ms to 8 ms",
            "Jain at the end": "of the last of the 4 ms in which all four send", "hosts": "without offloads",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes beside DCTCP, not RDMA beside DCQCN; 16 ms for four flows, not seconds""",
            "paper, section 5.2": """RTTs until the long flow has its rate again (test=short): it recovers at once
                when the short flow has ended; mice beside elephants, p99 (test=mice): near the base RTT; incast,
                longest queue (test=incast): the first windows, which are gone after an RTT; Jain, four flows
                (test=join): fair shares, on short time scales, too"""},
    words={"test": {"short": "long and short", "mice": "elephants and mice", "incast": "incast 16:1",
                    "join": "four joining"}},
    shown=["short_us", "rpc_p99_us", "queue_max_kb", "jain_end", "reclaimed_rtts", "rpc_p50_us", "utilisation",
           "drops"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1.1, median=1, beside=["dctcp", "dctcp_ref"]),
           goal("jain_end", row="hpccpp", least=0.95, variant={"test": "join"}, text="four joining: Jain"),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""DCTCP's newcomer with ten packets is a small part of the long flow's queue.

        First windows of the incast are sent before any feedback: half of DCTCP's queue cannot be reached.""",
    shell=r"""
# rate_of FLOW FROM TO: what hFLOW's long flow sent in these bins of 10 us, summed
rate_of()
{
	awk -F, -v h="10.0.$1.1:" -v a="$2" -v b="$3" 'NR > 1 && index($2, h) == 1 {
		bin = int($1 * 1e5 + 0.5); if (bin >= a && bin < b) sum += $3 } END { print sum + 0 }' "$OUT/flows.csv"
}

# after START HOST [OPTIONS]: a long flow from hHOST, within an RTT of START us
after()
{
	in_ns "h$2" flowgen long --to 10.0.0.1 --cc "$CONTROL" --start "$(($1 + $(start_us "$2" 10)))us" \
		"${@:3}" >"$TMP/long$2" &
	pids+=($!)
}

run_scenario()
{
	local i hosts=4 ms=8 pids=() words=(--limit 2000000b)

	case $test in
	incast) hosts=16 ;;
	join) ms=16 ;;
	short) ms=12 ;;
	esac
	hpccpp_hosts base_rtt_ns=10000
	dumbbell $hosts 10us
	line_rate 25gbit
	[ "${QUEUE%% *}" != dctcp ] || words+=(--k 50)
	bottleneck 25gbit 10us "${words[@]}"
	ldcp_hosts 21
	serve r --cc "$CONTROL"
	[ "$test" != incast ] || for ((i = 1; i <= 16; i++)); do
		serve "h$i" --cc "$CONTROL"
	done
	[ "$test" != mice ] || serve h3 --cc "$CONTROL"
	check_path h1 r 25gbit 10us
	watch_queue 25gbit 0us "${ms}ms" 10us
	case $test in
	short)
		after 0 1 --duration 12100us
		after 3000 2 --size 1000000
		;;
	mice)
		after 0 1 --duration 8100us
		after 0 2 --duration 8100us
		in_ns r flowgen rpc --to 10.0.3.1 --cc "$CONTROL" --persist --size 1k --closed 1 --start 3ms \
			--duration 5ms --seed "$SEED" --timeout 5s >"$TMP/rpc" &
		requests_done $!
		;;
	incast) incast 16 16 500k 1us >"$TMP/rpc" ;;
	join)
		for i in 1 2 3 4; do
			after $(((i - 1) * 4000)) "$i" --duration $((16100 - (i - 1) * 4000))us
		done
		;;
	esac
	all_done "${pids[@]}"
	cat "$TMP"/long? "$TMP/rpc" >"$OUT/flows.jsonl" 2>/dev/null
	watched
	metric queue_max_kb "$(awk -F, 'NR > 1 && $6 > m { m = $6 } END { print m / 1000 }' "$OUT/queue.csv")"
	case $test in
	short)
		metric short_us "$(jq -s '[.[] | select(.type == "flow")][1].duration_ns / 1000' "$OUT/flows.jsonl")"
		metric reclaimed_rtts "$(awk -F, 'FNR == 1 { file++; next } { bin = int($1 * 1e5 + 0.5) }
			file == 1 { if (index($2, "10.0.2.1:") == 1 && $3 > 0) end = bin; next }
			bin > end && $2 >= 0.95 * 0.95 * 25e9 { print bin - end; exit }' \
			"$OUT/flows.csv" "$OUT/queue.csv")"
		;;
	join)
		for i in 1 2 3 4; do
			rate_of "$i" 1500 1600
		done >"$TMP/shares"
		metric jain_end "$(awk '{ s += $1; q += $1 * $1 } END { print s * s / (4 * q) }' "$TMP/shares")"
		;;
	*) completions ;;
	esac
}
""")
