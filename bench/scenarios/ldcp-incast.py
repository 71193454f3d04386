# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario, TSO

SCENARIO = Scenario(
    title="LDCP: incast of 256 x 64 kB at 10 Gb/s, base RTT 100 us",
    question="256 answers start at full speed at once: do they complete without a timeout, and sooner than with DCTCP?",
    topology="""
 h1..h32  8 x 64 kB each, within 10 us   -- sw ==== 10 Gb/s ==== r
  10 Gb/s each                             (ldcp: WRED; dctcp: RED step; 1 MB)
                                            base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(iw=[10, 87]) + each(iw=[10, 87], tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: iw", "K of dctcp": "65 packets", "limit": "1 MB",
            "starts": "at random within 10 us", "all at full rate": "13.8 ms"},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "stable_drops", "first_rtt_drops", "qlen_p99_pkts", "marks",
           "retrans"],
    goals=[goal("timeouts", row="ldcp", most=0, text="no RTO"),
           goal("stable_drops", row="ldcp", most=0, text="no ECT packet dropped"),
           goal("rpc_p99_us", row="ldcp", most=0.5, relative_to="dctcp",
                text="p99 completion at most half of dctcp's")],
    paper=Paper(
        source="H. Dai et al., PFC-Free Low Delay Control Protocol, draft-dai-tsvwg-pfc-free-congestion-control-01",
        differs="TCP, not RoCEv2 on a NIC; the draft names no set-up",
        figures=[figure("section 2.3", "stable_drops", what="packets after the first RTT that are lost",
                        variant={"iw": 87}, says="they experience seldom packet loss", in_tree="dctcp", ours="ldcp"),
                 figure("section 2.3", "first_rtt_drops", what="packets of the first RTT that are lost",
                        variant={"iw": 87}, says="dropped if the queue exceeds K, by intention", ours="ldcp"),
                 figure("section 3.1", "timeouts", what="timeouts", variant={"iw": 87},
                        says="the last packet of a first RTT is ECN-capable, so that no tail loss waits for one",
                        in_tree="dctcp", ours="ldcp")]),
    answer="""LDCP's answers take {range rpc_p99_us ldcp} at p99, with {range timeouts ldcp} timeouts. DCTCP's take
        {range rpc_p99_us dctcp iw=10} with an initial window of 10 packets, and {range rpc_p99_us dctcp iw=87} with
        {range timeouts dctcp iw=87} timeouts with one as large as LDCP's.""",
    conclusion="""13.8 ms is the least that all answers together need, so that half of DCTCP's time with its usual ten
        packets cannot be reached: DCTCP's row is at that bound, and LDCP takes a tenth to a seventh longer.

        {range rpc_p50_us ldcp iw=10} is when half of LDCP's answers have ended: its shares are less even, and the last
        few, from 14 ms on, do not fill the link, because their windows are a few packets and grow by half a packet per
        RTT.

        DCTCP has timeouts with an initial window as large as LDCP's; with offloads (TSO) it has some with ten packets,
        too, and LDCP none.

        94 % of LDCP's first RTT is dropped by the queue, as intended; the windows that repair these losses begin with
        the few packets that arrived.""",
    shell="""
	local i

	dumbbell 32 100us
	line_rate 10gbit
	if [ "$ROW" = dctcp ]; then
		bottleneck 10gbit 100us --limit 1000000b --k 65
	else
		bottleneck 10gbit 100us --limit 1000000b
	fi
	ldcp_hosts 87
	for ((i = 1; i <= 32; i++)); do
		[ "$CONTROL" = ldcp ] || ip -n "${NSP}h$i" route replace default via "10.0.$i.254" initcwnd "$iw"
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r 10gbit 100us
	merging
	watch_queue 10gbit 0us 100ms 100us
	incast 32 256 64k 10us >"$OUT/flows.jsonl"
	watched
	completions
	metric timeouts "$(host_counter TCPTimeouts 32)"
	metric stable_drops "$(jq '.dropped_ect0 + .dropped_ce' "$OUT/qdelay.json")"
	metric first_rtt_drops "$(jq .dropped_not_ect "$OUT/qdelay.json")"
""")
