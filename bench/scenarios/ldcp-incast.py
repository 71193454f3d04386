# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

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
            "starts": "at random within 10 us", "all at full rate": "13.8 ms",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, section 2.3": """packets after the first RTT that are lost (iw=87): they experience seldom packet
                loss; packets of the first RTT that are lost (iw=87): dropped if the queue exceeds K, by intention""",
            "paper, section 3.1": """timeouts (iw=87): the last packet of a first RTT is ECN-capable, so that no tail
                loss waits for one"""},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "stable_drops", "first_rtt_drops", "qlen_p99_pkts", "marks",
           "retrans"],
    goals=[goal("timeouts", row="ldcp", most=0),
           goal("stable_drops", row="ldcp", most=0),
           goal("rpc_p99_us", row="ldcp", most=1.2, median=1, beside=["dctcp"])],
    conclusion="""DCTCP has timeouts with an initial window as large as LDCP's; LDCP has none.

        The queue drops most of LDCP's first RTT, as intended; windows then begin with the packets that arrived.

        LDCP's last few answers do not fill the link, because their windows are a few packets.""",
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
