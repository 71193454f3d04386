# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario

SCENARIO = Scenario(
    title="DCTCP's paper, figure 18: incast into 100 packets of buffer, 20 and 40 servers, 1 Gb/s",
    question="""DCTCP's paper: with 100 packets of buffer TCP has timeouts from 10 servers on, DCTCP from 35 on. From
        how many on here?""",
    topology="""
 h1..hN  1 MB / N each  -- sw ==== 1 Gb/s ==== r  asks
  1 Gb/s each            (the queue, 100 packets)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(servers=[20, 40]),
    params={"queries": "60, one after the other, on connections that are kept", "limit": "100 packets",
            "K of DCTCP": "20 packets", "least RTO": "10 ms, as in the paper", "starts": "within 10 us, at random",
            "all at full rate": "8.4 ms", "late": "queries that took 10 ms more than that: a timeout"},
    shown=["late_share", "round_mean_us", "round_p99_us", "timeouts", "drops"],
    goals=[goal("late_share", row="dctcp_ref", most=0, variant={"servers": 20},
                text="20 servers: no query with a timeout"),
           goal("round_mean_us", row="dctcp_ref", most=1, relative_to="dctcp", text="mean at most dctcp's")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="60 queries, not 1000",
        figures=[figure("fig. 18 (b)", "late_share", what="queries with a timeout, TCP",
                        says="from more than 10 servers on", in_tree="cubic",
                        differs="CUBIC with its initial window of 10, not New Reno"),
                 figure("fig. 18 (b)", "late_share", what="queries with a timeout", says="from 35 servers on",
                        in_tree="dctcp", ours="dctcp_ref"),
                 figure("fig. 18 (a)", "round_mean_us", what="mean query", variant={"servers": 20},
                        says="about 8 ms at the least", in_tree="dctcp", ours="dctcp_ref")]),
    answer="""With 40 servers {range late_share cubic servers=40} of the queries wait for a timeout with CUBIC, {range
        late_share dctcp servers=40} with Linux's dctcp and {range late_share dctcp_ref servers=40} with dctcp_ref; with
        20 servers {range late_share cubic servers=20}, {range late_share dctcp servers=20} and {range late_share
        dctcp_ref servers=20}.""",
    conclusion="""{range round_mean_us dctcp servers=40} is the mean with Linux's dctcp and 40 servers and {range
        round_mean_us dctcp_ref servers=40} with dctcp_ref.""",
    shell="""
	local i

	dumbbell "$servers" 100us
	every sysctl -qw net.ipv4.tcp_rto_min_us=10000
	line_rate 1gbit
	limited 1gbit 100us 100p 20
	for ((i = 1; i <= servers; i++)); do
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r 1gbit 100us
	watch_queue 1gbit 0us 500ms
	incast "$servers" "$servers" $((1000000 / servers)) 10us --count 60 >"$OUT/flows.jsonl"
	watched
	rounds_done
	metric late_share "$(rounds '(map(select(. > 18400)) | length) / length')"
	metric timeouts "$(host_counter TCPTimeouts "$servers")"
""")
