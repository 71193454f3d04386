# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario, TSO

SCENARIO = Scenario(
    title="Data centre: the incast of DCTCP's paper, 40 servers and 1 MB, 1 Gb/s",
    question="40 servers answer a query at once, 1 MB in all: when is the last answer complete?",
    topology="""
 h1..h40  25 kB each  -- sw ==== 1 Gb/s ==== r  asks
  1 Gb/s each            (the queue, 700 kB)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=each(servers=40, tso=[None, 1]),
    params={"tso": TSO.format("1 Gb/s"),
            "queries": "60, one after the other, on connections that are kept; each server is asked at random within "
                       "an RTT, by the seed",
            "limit": "700 kB", "K of dctcp": "20 packets, as in the paper",
            "all at full rate": "8.38 ms, with headers"},
    shown=["round_mean_us", "round_p99_us", "rpc_p50_us", "timeouts", "qlen_p99_pkts", "drops"],
    goals=[goal("round_mean_us", row="ldcp", most=1, relative_to="dctcp", text="ldcp: mean at most dctcp's"),
           goal("round_p99_us", row="ldcp", most=1, relative_to="dctcp", text="ldcp: p99 at most dctcp's"),
           goal("round_p99_us", row="dctcp_ref", most=1, relative_to="dctcp", text="dctcp_ref: p99 at most dctcp's"),
           goal("timeouts", row="ldcp", most=0, text="ldcp: no RTO")],
    paper=Paper(
        source="M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
        differs="700 kB for this port, which in the paper is what a busy port gets of 4 MB that ports share",
        figures=[figure("fig. 19 (b)", "timeouts", what="timeouts, 40 servers", value=0, in_tree="dctcp",
                        ours="dctcp_ref"),
                 figure("fig. 19 (a)", "round_mean_us", what="mean query", says="about what the link needs, 8 ms",
                        in_tree="dctcp", ours="dctcp_ref")]),
    answer="""A query takes {range round_mean_us dctcp} in the mean with DCTCP, {range round_mean_us ldcp} with LDCP and
        {range round_mean_us cubic} with CUBIC; at p99 {range round_p99_us dctcp}, {range round_p99_us ldcp} and {range
        round_p99_us cubic}.""",
    conclusion="""8.38 ms is what the link alone needs for all answers. The path holds 8 packets, so that 40 windows of
        one packet already are a queue: LDCP's go below one packet, and the last answers of a query wait for the
        departure of single packets.

        9.0 to 9.4 ms in the mean is what other settings of LDCP gave (gamma 1/4 and 1/8, eta 7/8): the queue of 2000 flows
        is up to four times as long then, or shares are less even (tcp_ldcp(7)), so that the defaults stay.

        288 packets of LDCP's first query are dropped: a first RTT of 400 packets finds room for 64, and the rest is
        retransmitted without a timeout.

        {range timeouts cubic} timeouts of 200 ms are what CUBIC has in 60 queries: 40 windows that grow until they are
        cut fill the 700 kB, as TCP's do in the paper.""",
    shell="""
	local i

	dumbbell "$servers" 100us
	line_rate 1gbit
	limited 1gbit 100us 700000b 20
	ldcp_hosts
	for ((i = 1; i <= servers; i++)); do
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r 1gbit 100us
	merging
	watch_queue 1gbit 0us 500ms 100us
	incast "$servers" "$servers" 25k 100us --count 60 >"$OUT/flows.jsonl"
	watched
	completions
	rounds_done
	metric timeouts "$(host_counter TCPTimeouts "$servers")"
""")
