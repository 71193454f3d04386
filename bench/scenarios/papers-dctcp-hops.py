# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario

SCENARIO = Scenario(
    title="DCTCP's paper, figure 17: two bottlenecks one after the other, 10 and 1 Gb/s",
    question="""DCTCP's paper gives 46, 54 and 475 Mb/s per flow for three groups that share two bottlenecks, within 10
        % of their fair shares. What do they get here?""",
    topology=r"""
 S1  h1..h10   --\
                  t1 ==== 10 Gb/s ==== sw ==== 1 Gb/s ==== r    (S1, S3)
 S2  h11..h30  --/     (K = 65)       / \ (K = 20)
 S3  h31..h40  ----------------------/   \---------------- far  (S2)
  1 Gb/s each                              base RTT 100 us""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(hosts=40),
    params={"flows": "one of each host, with S1 and S3 to r, S2 to far",
            "K of DCTCP": "65 packets at 10 Gb/s, 20 at 1 Gb/s", "limit": "4 MB at 10 Gb/s, 700 kB at 1 Gb/s",
            "counted": "0.3 s to 0.5 s, with headers, as in the paper: its rates add up to the links",
            "columns of the queue": "of the 1 Gb/s link"},
    shown=["s1_mbps", "s3_mbps", "s2_mbps", "share_off", "timeouts", "delay_p99_us", "drops"],
    goals=[goal("share_off", row="dctcp_ref", most=0.1,
                text="each group within 10 % of the fair shares, 50, 50 and 475 Mb/s"),
           goal("timeouts", row="dctcp_ref", most=0, text="no RTO")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="one receiver for all of S2; RTT 100 us for all",
        figures=[figure("fig. 17", "s1_mbps", what="each sender of S1", value=46, in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 17", "s3_mbps", what="each sender of S3", value=54, in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 17", "s2_mbps", what="each sender of S2", value=475, in_tree="dctcp", ours="dctcp_ref")]),
    answer="""A sender of S1 gets {range s1_mbps dctcp}, of S3 {range s3_mbps dctcp} and of S2 {range s2_mbps dctcp}
        with Linux's dctcp; {range s1_mbps dctcp_ref}, {range s3_mbps dctcp_ref} and {range s2_mbps dctcp_ref} with
        dctcp_ref.""",
    conclusion="""{range share_off dctcp_ref} is how far S1 is below its fair share of 50 Mb/s with dctcp_ref, and S3
        above it; {range share_off dctcp} with Linux's dctcp; in the paper 8 %. S1's packets pass two queues that mark,
        and both senders are at windows of few packets.

        {range s2_mbps dctcp_ref} is S2's rate with dctcp_ref: what S1 does not take of the 10 Gb/s, as in the paper.

        No flow has a timeout.""",
    shell=r"""
# rate_of FIRST LAST: mean rate of the flows of these hosts in their last two whole intervals, Mb/s, with headers
rate_of()
{
	local i

	for ((i = $1; i <= $2; i++)); do
		jq -s '[.[] | select(.type == "interval" and .duration_ns > 99e6)][-2:] |
			map(.goodput_bps) | add / length * 1514 / 1448 / 1e6' "$TMP/long$i"
	done | jq -s 'add / length'
}

run_scenario()
{
	local i PLAN=1 to pids=() delays='' words=() mine=$QUEUE s1 s2 s3

	roomy
	for i in sw t1 r far; do
		add_ns "$i"
	done
	net 0 r eth0 sw egress
	net 100 far eth0 sw out
	net 99 sw p0 t1 trunk
	for ((i = 1; i <= 40; i++)); do
		add_ns "h$i"
		if [ "$i" -le 30 ]; then
			net "$i" "h$i" eth0 t1 "p$i"
			route sw "10.0.$i.0/24" 10.0.99.254
		else
			net "$i" "h$i" eth0 sw "p$i"
		fi
		delays+="qdisc add dev p$i root netem delay 100us limit 1000000"$'\n'
	done
	route t1 10.0.0.0/24 10.0.99.1
	route t1 10.0.100.0/24 10.0.99.1
	PLAN=
	build_plan
	tc -n "${NSP}t1" -batch - <<<"$(head -n30 <<<"$delays")"
	tc -n "${NSP}sw" -batch - <<<"$(tail -n+31 <<<"$delays")"
	line_rate 1gbit
	limited 1gbit 100us 700000b 20
	QUEUE=$mine
	case ${QUEUE%% *} in
	dctcp) words=(--rtt 100us --k 65) ;;
	esac
	# shellcheck disable=SC2086 # the row's words
	"$LOWQ_TC" $QUEUE trunk -n "${NSP}t1" --rate 10gbit --shape --limit 4000000b "${words[@]}" \
		--no-rehearsal --quiet || fail "lowq-tc at t1"
	serve r --cc "$CONTROL"
	serve far --cc "$CONTROL"
	check_path h1 r 1gbit 100us
	watch_queue 1gbit 300ms 500ms 1ms --filter "tcp and dst host 10.0.0.1"
	for ((i = 1; i <= 40; i++)); do
		to=10.0.0.1
		[ "$i" -le 10 ] || [ "$i" -gt 30 ] || to=10.0.100.1
		in_ns "h$i" flowgen long --to "$to" --cc "$CONTROL" --duration 510ms --interval 100ms \
			--start "$(start_us "$i" 5000)us" >"$TMP/long$i" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/long* >"$OUT/flows.jsonl"
	watched
	s1=$(rate_of 1 10) s2=$(rate_of 11 30) s3=$(rate_of 31 40)
	metric s1_mbps "$s1"
	metric s2_mbps "$s2"
	metric s3_mbps "$s3"
	metric share_off "$(jq -n "[$s1 / 50 - 1, $s3 / 50 - 1, $s2 / 475 - 1 | fabs] | max")"
	metric timeouts "$(host_counter TCPTimeouts 40)"
}
""")
