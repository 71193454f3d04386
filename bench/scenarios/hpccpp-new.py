# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="HPCC++: incast of new connections, 48 to 240 servers, 25 and 100 Gb/s",
    question="Many servers answer on connections that were just made, so that their first windows overflow the queue: "
             "when are the answers complete, and does any wait for a timeout?",
    topology="""
 h1..hN  one answer each, at once  -- sw ==== 25 or 100 Gb/s ==== r  asks
  at the bottleneck's rate          (1.5 MB)
                                     base RTT 12 us, or rtt""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(rate=["25gbit", "100gbit"], servers=[48, 240], size=["10k", "80k"]),
              *each(rate="40gbit", servers=200, size="10k", rtt="60us", long=3)],
    params={"servers": "each on a host of its own, or more than 60 of them four to a host", "size": "of each answer", "first windows": "10 packets: 727 kB of 48 servers, 3.6 MB of 240",
            "limit": "1.5 MB", "long": "so many long flows send to r, too, from hosts of their own"},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "drops", "retrans"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("timeouts", row="hpccpp", most=0)],
    conclusion="""New connections start with TCP's initial window, whatever the control.

        Together these overflow the queue, so that most flows lose a part before any feedback.""",
    shell="""
	local i to=10.0.1.1 others=${long:-0} hosts=$servers

	[ "$servers" -le 60 ] || hosts=$((servers / 4))
	rtt=${rtt:-12us}
	dumbbell "$((hosts + others))" "$rtt"
	line_rate "$rate"
	bottleneck "$rate" "$rtt" --limit 1500000b
	ldcp_hosts
	hpccpp_hosts
	for ((i = 1; i <= hosts; i++)); do
		serve "h$i" --cc "$CONTROL"
		[ "$i" -eq 1 ] || to+=,10.0.$i.1
	done
	check_path h1 r "$rate" "$rtt"
	[ "$others" -eq 0 ] || serve r --cc "$CONTROL"
	watch_queue "$rate" 0us 50ms "$rtt"
	for ((i = hosts + 1; i <= hosts + others; i++)); do
		in_ns "h$i" flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 40ms >/dev/null &
	done
	[ "$others" -eq 0 ] || sleep 0.01
	in_ns r flowgen rpc --to "$to" --closed "$servers" --requests "$servers" --size "$size" --cc "$CONTROL" \\
		--timeout 5s --seed "$SEED" >"$OUT/flows.jsonl" || fail "requests failed"
	watched
	completions
	metric timeouts "$(host_counter TCPTimeouts "$hosts")"
""")
