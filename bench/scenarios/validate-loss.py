# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="One flow and losses: its rate beside Reno's and CUBIC's laws",
    question="Do Reno and CUBIC get the rate that their laws say for this loss?",
    topology="""
 h1  one long flow -- (1 packet in N is lost) -- sw ==== 10 Gb/s ==== r
                                                   base RTT rtt""",
    rows=["reno", "cubic"],
    variants=[*each(rtt="20ms", one_in=[500, 8000], losses="even"),
              *each(rtt="100ms", one_in=[2000, 32000], losses="even"),
              *each(rtt="20ms", one_in=[500, 8000], losses="random")],
    params={"losses": "even: each Nth packet; random: each packet with a probability of 1/N",
            "theory": "packets per RTT: Reno sqrt(3 / 2p), with random losses 1.31 / sqrt(p) (Ott, Kemperman, Mathis "
                      "1996); CUBIC (RFC 9438, 5.1) the larger of Reno's and 1.054 (RTT / p)^(3/4) with the RTT in "
                      "seconds, even losses only",
            "counted": "50 s to 200 s"},
    words={"one_in": "1 in {} lost"},
    shown=["pkts_per_rtt", "theory_pkts", "over_theory", "lost_share"],
    goals=[goal("over_theory", row="reno", least=0.9, most=1.1, text="Reno's rate, to its law"),
           goal("over_theory", row="cubic", least=0.9, most=1.1, variant={"losses": "even"},
                text="CUBIC's rate, to its law")],
    conclusion="""A round in which a loss is repaired is not in the laws, and costs more the more often there is a
        loss.""",
    shell="""
run_scenario()
{
	local drop

	[ "$losses" = even ] && drop="numgen inc mod $one_in 0" || drop="numgen random mod $one_in 0"
	dumbbell 1 "$rtt"
	bottleneck 10gbit "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit "$rtt"
	in_ns sw nft -f - <<-END || fail "nft"
		table ip t {
			chain f {
				type filter hook forward priority 0;
				iifname "p1" ip length > 500 $drop counter drop
			}
		}
	END
	watch_queue 10gbit 50s 200s 100ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 201s >"$OUT/flows.jsonl" &
	all_done $!
	watched
	metric lost_share "$(jq '.flows[0].retransmitted / .flows[0].packets' "$OUT/qdelay.json")"
	metric pkts_per_rtt "$(jq --arg rtt "${rtt%ms}" '
		.flows[0].payload_bytes / 1448 / 150 * ($rtt | tonumber) / 1000' "$OUT/qdelay.json")"
	metric theory_pkts "$(theory)"
	metric over_theory "$(jq -n --arg rtt "${rtt%ms}" --argjson theory "$(theory)" \
		--slurpfile q "$OUT/qdelay.json" '
		if $theory then $q[0].flows[0].payload_bytes / 1448 / 150 * ($rtt | tonumber) / 1000 / $theory
		else null end')"
}

# theory: packets per RTT, or null
theory()
{
	awk -v n="$one_in" -v rtt="${rtt%ms}" -v how="$losses" -v cc="$CONTROL" 'BEGIN {
		reno = how == "even" ? sqrt(1.5 * n) : 1.31 * sqrt(n)
		cubic = 1.054 * (rtt / 1000 * n)^0.75
		if (cc == "reno") print reno
		else if (how == "even") print (cubic > reno ? cubic : reno)
		else print "null" }'
}
""")
