# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

SCENARIO = Scenario(
    title="HPCC++: two bottlenecks in series, the tighter one changes",
    question="When the other one of two links becomes the bottleneck, how many RTTs does the flow need to follow?",
    topology="""
 h1  a long flow -- sw: first ==== second ==== r
                        (stamps, or RED step: each of the two)
     0 to 200 RTTs       25 Gb/s  10 Gb/s       base RTT 100 us
     to 400 RTTs          5 Gb/s  25 Gb/s
     to 600 RTTs         25 Gb/s  10 Gb/s""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=each(stage=[0, 1, 2, 3, 5]) + each(stage=1, N=0) + each(stage=1, N=[None, 0], tso=1),
    params={"tso": TSO.format("25 Gb/s"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "16; or, where stated, 0, the default: W_ai follows the mean of U",
            "T": "the base RTT, as a parameter", "queue": "both queues together",
            "followed": "RTTs from the change to the first of 5 in a row with the rate within 5 % of eta*C of the "
                        "tighter link and no more than 5 packets waiting",
            "K of DCTCP": "for 25 Gb/s, at both ports"},
    shown=["down_rtts", "up_rtts", "down_together_rtts", "up_together_rtts", "down_queue_max", "queue_after_mean",
           "drops"],
    goals=[goal("down_together_rtts", row="hpccpp", most=10, median=5),
           goal("up_together_rtts", row="hpccpp", most=10, median=5),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""HPCC++ takes the maximum of both links' loads, so it follows when the tighter of the two changes.

        How soon depends on when the change falls between two probes, which the seed decides.

        Stage 5 is slower upwards: additive increases come before a multiplicative one.""",
    shell=r"""
# retune DEV RATE: the port's shaper, and what it stamps
retune()
{
	local class

	class=$(in_ns sw tc class show dev "$1" | awk '$2 == "htb" { print $3 }')
	set_rate sw "$1" "$class" "$2"
	[ "$CONTROL" = hpccpp ] || return 0
	in_ns sw tc qdisc change dev "$1" parent "$class" int rate "$2" || fail "tc qdisc change"
}

run_scenario()
{
	local i mac change=() first_ns flow

	hpccpp_hosts max_stage="$stage" flows="${N:-16}" base_rtt_ns=100000
	dumbbell 1 100us
	[ -z "${tso:-}" ] || line_rate 25gbit
	# what comes from h1 leaves sw by "first", comes back by "second", and leaves by
	# "egress": both queues are between sw's p1 and egress, and are watched as one
	link sw first sw second
	mac=$(in_ns sw cat /sys/class/net/second/address)
	ip -n "${NSP}sw" neigh add 10.0.0.1 lladdr "$mac" dev first nud permanent
	ip -n "${NSP}sw" route add default dev first table 100
	ip -n "${NSP}sw" rule add iif p1 lookup 100
	bottleneck 25gbit 100us
	QUEUE=${QUEUE/switch-id 1/switch-id 2} DEV=first bottleneck 25gbit 100us
	retune egress 10gbit
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	watch_queue 25gbit 0us 60ms 100us
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 60ms \
		--start "$((SEED * 7919 % 100))us" >"$OUT/flows.jsonl" &
	flow=$!
	sleep 0.02
	change+=("$(date +%s%N)")
	retune first 5gbit
	retune egress 25gbit
	sleep 0.02
	change+=("$(date +%s%N)")
	retune egress 10gbit
	retune first 25gbit
	all_done $flow
	watched
	# a line per RTT: bin, rate, longest and mean queue; the changes in bins
	awk -F, 'NR > 1 { print int($1 * 1e4 + 0.5), $2, $4, $3 }' "$OUT/queue.csv" >"$TMP/bins"
	first_ns=$(jq -r .first_ns "$OUT/qdelay.json")
	for i in 0 1; do
		change[i]=$(awk -v a="${change[i]}" -v b="$first_ns" '
			BEGIN { printf "%.2f", (a % 1e12 - b % 1e12) / 1e5 }')
	done
	capacity "$(awk -v a="${change[0]}" -v b="${change[1]}" '
		BEGIN { print 1e-4 * (1e10 * a + 5e9 * (b - a) + 1e10 * (600 - b)) }')"
	metric down_rtts "$(followed "${change[0]}" 5e9 "${change[1]}")"
	metric up_rtts "$(followed "${change[1]}" 10e9 600)"
	metric down_together_rtts "$(followed "${change[0]}" 5e9 "${change[1]}" together)"
	metric up_together_rtts "$(followed "${change[1]}" 10e9 600 together)"
	metric down_queue_max "$(awk -v b="${change[0]}" '
		$1 >= b && $1 < b + 20 && $3 > m { m = $3 } END { print m + 0 }' "$TMP/bins")"
	metric queue_after_mean "$(awk -v b="${change[0]}" -v e="${change[1]}" '
		$1 >= b + 20 && $1 < e { s += $4; n++ } END { print s / n }' "$TMP/bins")"
}
""")
