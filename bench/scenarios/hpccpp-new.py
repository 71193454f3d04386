# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="HPCC++: incast of new connections, 48 to 240 servers, 25 and 100 Gb/s",
    question="Many servers answer on connections that were just made, so that their first windows overflow the queue: "
             "when are the answers complete, and does any wait for a timeout?",
    topology="""
 h1..hN  one answer each, at once  -- sw ==== 25 or 100 Gb/s ==== r  asks
  at the bottleneck's rate          (1.5 MB)
                                     base RTT 12 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=each(rate=["25gbit", "100gbit"], servers=[48, 240], size=["10k", "80k"]),
    params={"N": "servers", "size": "of each answer", "first windows": "10 packets: 727 kB of 48 servers, 3.6 MB of 240",
            "limit": "1.5 MB"},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "drops", "retrans"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("timeouts", row="hpccpp", most=0)],
    conclusion="""New connections start with TCP's initial window, whatever the control.

        Together these overflow the queue, so that most flows lose a part before any feedback.""",
    shell="""
	local i to=10.0.1.1

	dumbbell "$servers" 12us
	line_rate "$rate"
	bottleneck "$rate" 12us --limit 1500000b
	ldcp_hosts
	hpccpp_hosts
	for ((i = 1; i <= servers; i++)); do
		serve "h$i" --cc "$CONTROL"
		[ "$i" -eq 1 ] || to+=,10.0.$i.1
	done
	check_path h1 r "$rate" 12us
	watch_queue "$rate" 0us 50ms 12us
	in_ns r flowgen rpc --to "$to" --closed "$servers" --requests "$servers" --size "$size" --cc "$CONTROL" \\
		--timeout 5s --seed "$SEED" >"$OUT/flows.jsonl" || fail "requests failed"
	watched
	completions
	metric timeouts "$(host_counter TCPTimeouts "$servers")"
""")
