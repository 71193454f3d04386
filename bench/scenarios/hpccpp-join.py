# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

PATHS = [{"rate": "10gbit", "rtt": "100us"}, {"rate": "100gbit", "rtt": "10us"}]

SCENARIO = Scenario(
    title="HPCC++: a second flow joins and leaves",
    question="""How many RTTs does it take until the total rate is right and the queue is gone, and until freed
        bandwidth is used?""",
    topology=r"""
 h1  a long flow                  --\
 h2  another, from 200 to 700 RTTs -- sw ==== rate ==== r
                                     (stamps, or RED step at RTT*C/7)
                                      base RTT rtt""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(PATHS, stage=1), *each(PATHS, stage=[5, 0]), *each(PATHS, stage=1, tso=1),
              *each(PATHS, stage=1, N=0, tso=1), *each(PATHS, stage=1, N=0)],
    params={"tso": TSO.format("the rate of the path"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "16; or, where stated, 0, the default: W_ai follows the mean of U",
            "joins, leaves": "after 200 and 700 RTTs",
            "joined": "RTTs from the second flow to 5 in a row with the total within 5 % of eta*C and no more than 5 "
                      "packets waiting",
            "reclaimed": "RTTs from its end to the first with 95 % of eta*C",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes, not RDMA; two flows""",
            "paper, abstract": """RTTs until the rate is right and the queue is short (stage=1 N=0): avoids
                congestion; RTTs until free bandwidth is used (stage=1 N=0): can quickly converge to utilize free
                bandwidth; longest queue while a flow joins (stage=1 N=0): near-zero in-network queues; Jain (stage=1
                N=0): fair"""},
    shown=["joined_rtts", "joined_together_rtts", "reclaimed_rtts", "join_queue_max", "jain_end", "drops"],
    goals=[goal("joined_together_rtts", row="hpccpp", most=10, median=5),
           goal("reclaimed_rtts", row="hpccpp", most=10),
           goal("jain_end", row="hpccpp", least=0.95)],
    conclusion="""Both senders read the link's load from telemetry; DCTCP learns one bit per packet.

        Stage 0 uses freed bandwidth sooner than stage 5, because each step may multiply the window at once.

        With a small W_ai and offloads the larger flow has the longer bursts, and keeps its larger share.""",
    shell=r"""
	local us=${rtt%us} gbps=${rate%gbit}

	hpccpp_hosts max_stage="$stage" flows="${N:-16}" base_rtt_ns="${us}000"
	dumbbell 2 "$rtt"
	[ -z "${tso:-}" ] || line_rate "$rate"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	# one host at its line rate makes no queue: no step to be found
	check_path h1 r "$rate" "$rtt" "$([ "${tso:-}" ] || echo 42)"
	merging
	LONG_FLOWS=2
	watch_queue "$rate" 0us "$((us * 900))us" "$rtt"
	# within an RTT of the first and of the 200th, by the seed
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration "$((us * 905))us" \
		--start "$((SEED * 7919 % us))us" >"$TMP/long1" &
	local a=$!
	in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --start "$((us * 200 + SEED * 104729 % us))us" \
		--duration "$((us * 500))us" >"$TMP/long2" &
	all_done $a $!
	cat "$TMP"/long? >"$OUT/flows.jsonl"
	watched
	# a line per RTT: bin, total, longest and mean queue; what h2 sends
	awk -F, -v us="$us" 'NR > 1 { print int($1 * 1e6 / us + 0.5), $2, $4, $3 }' "$OUT/queue.csv" >"$TMP/bins"
	awk -F, -v us="$us" -v first="$TMP/first" -v second="$TMP/second" 'NR > 1 && $2 ~ /^10\.0\.[12]\.1:/ && $3 > 0 {
		print int($1 * 1e6 / us + 0.5), $3 >($2 ~ /^10\.0\.1/ ? first : second) }' "$OUT/flows.csv"
	local begin end
	begin=$(head -n1 "$TMP/second" | cut -d' ' -f1)
	end=$(tail -n1 "$TMP/second" | cut -d' ' -f1)
	metric joined_rtts "$(followed "$begin" "${gbps}e9" "$end")"
	metric joined_together_rtts "$(followed "$begin" "${gbps}e9" "$end" together)"
	metric reclaimed_rtts "$(awk -v e="$end" -v c="${gbps}e9" '
		$1 > e && $2 >= 0.95 * 0.95 * c { print $1 - e; exit }' "$TMP/bins")"
	metric join_queue_max "$(awk -v b="$begin" '
		$1 >= b && $1 < b + 20 && $3 > m { m = $3 } END { print m + 0 }' "$TMP/bins")"
	metric jain_end "$(awk -v e="$end" '
		FNR == NR { if ($1 > e - 50 && $1 < e) a += $2; next }
		$1 > e - 50 && $1 < e { b += $2 }
		END { print (a + b) ^ 2 / (2 * (a * a + b * b)) }' "$TMP/first" "$TMP/second")"
""")
