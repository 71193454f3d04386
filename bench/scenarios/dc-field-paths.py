# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

PATHS = [*each(path="lossy", loss=[0.01, 0.1]), *each(path="longer", flows=[1, 2]), *each(path="slower", flows=2),
         *each(path="shared")]

SCENARIO = Scenario(
    title="Data centre: paths that lose packets, get longer or slower, and another control in the queue",
    question="What is left of the link when the path is not the one that the thresholds were computed for?",
    topology=r"""
 h1  flows             --\
                          sw ==== 10 Gb/s ==== r
 h2  flows, or DCTCP's /  (the queue)
  10 Gb/s each            base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=PATHS + each(PATHS, tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "lossy": "one flow; loss percent of its packets are lost before the queue, at random; counted from 0.1 s "
                     "to 1.1 s",
            "longer": "the base RTT is 300 us from 0.1 s to 0.3 s, which is what is counted",
            "slower": "the link has 5 Gb/s from 0.1 s to 0.2 s; counted from 0.09 s to 0.3 s",
            "shared": "two flows of the row, and two of DCTCP in the same queue; counted from 0.1 s to 0.5 s; ratio: "
                      "their rates"},
    words={"path": {"longer": "longer path", "lossy": "random loss", "shared": "shared queue",
                    "slower": "slower link"}},
    shown=["utilisation", "ratio", "jain", "delay_p99_us", "delay_max_us", "drops", "timeouts"],
    goals=[goal("utilisation", row="ldcp", least=0.9, beside=["dctcp", "dctcp_ref"]),
           goal("utilisation", row="hpccpp", least=0.94, beside=["dctcp", "dctcp_ref"]),
           goal("jain", row="hpccpp", least=0.95, beside=["dctcp", "dctcp_ref"],
                variant={"path": "longer", "flows": 2})],
    conclusion="""On a path that gets longer LDCP's threshold is too low to fill it; HPCC++ measures its new T.

        LDCP and DCTCP share a queue evenly with LDCP's two profiles.

        HPCC++ leaves a shared queue to DCTCP: beside other TCP it needs a queue of its own (lowq-tc segregate).""",
    shell=r"""
# lose: packets of h1, each by itself; netem at a host that sends 64 kB at once would lose all of it
lose()
{
	if [ "${tso:-}" ]; then
		in_ns sw nft "add table ip t; add chain ip t f { type filter hook forward priority 0; }
			add rule ip t f iifname p1 numgen random mod 10000 < \
				$(awk "BEGIN { print $loss * 100 }") drop" || fail "nft"
	else
		in_ns h1 tc qdisc add dev eth0 parent 1:1 netem loss "$loss%" limit 100000
	fi
}

# changes: what happens to the path while traffic runs
changes()
{
	local port

	case $path in
	longer)
		sleep 0.1
		for port in p1 p2; do
			in_ns sw tc qdisc change dev "$port" root netem delay 300us limit 1000000
		done
		;;
	slower)
		sleep 0.1
		set_rate sw egress 10f0:1 5gbit
		sleep 0.1
		set_rate sw egress 10f0:1 10gbit
		;;
	esac
}

# shared FOR: two flows of the row from h1, two of DCTCP from h2
shared()
{
	local host=1 cc pids=()

	for cc in "$CONTROL" dctcp; do
		in_ns "h$host" flowgen long --to 10.0.0.1 --cc "$cc" --flows 2 --duration "$1" \
			--start "$(start_us $host 1000)us" >"$TMP/long$host" &
		pids+=($!)
		((host++))
	done
	all_done "${pids[@]}"
	cat "$TMP"/long? >"$OUT/flows.jsonl"
}

run_scenario()
{
	local from=100 to=500 changing

	case $path in
	lossy) to=1100 ;;
	longer) to=300 ;;
	slower) from=90 to=300 ;;
	esac
	dumbbell 2 100us
	line_rate 10gbit
	[ "$path" != lossy ] || lose
	hpccpp_hosts
	bottleneck 10gbit 100us
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	watch_queue 10gbit "${from}ms" "${to}ms" 100us
	changes &
	changing=$!
	if [ "$path" = shared ]; then
		shared "$((to + 10))ms"
	else
		long_flows "${flows:-1}" "$((to + 10))ms"
	fi
	all_done "$changing"
	watched
	[ "$path" != slower ] || capacity 1600000000
	metric timeouts "$(host_counter TCPTimeouts 2)"
	[ "$path" != shared ] || metric ratio "$(jq '
		def rate(from): [.flows[] | select(.flow | startswith(from)) | .goodput_bps // 0] | add;
		rate("10.0.1.1:") / rate("10.0.2.1:")' "$OUT/qdelay.json")"
}
""")
