# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

SCENARIO = Scenario(
    title="HPCC++: WebSearch and Hadoop at 25, 50 and 60 % load on a leaf-spine of 10 Gb/s",
    question="How much longer do short flows take under realistic loads than alone?",
    topology=r"""
 a1 a2 a3 a4 -- leaf1 --- spine1 --- leaf2 -- b1 b2 b3 b4
                     \--- spine2 ---/
 all links 10 Gb/s; every port on the way, the sender too, stamps (or has a RED step); base RTT rtt
 a1..a4 send to b1..b4 at random, share % of the two trunks""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(load=["websearch", "hadoop"], rtt=["100us", "20us"], stage=[5, 0], share=50),
              # more load, on defaults
              *each(load=["websearch", "hadoop"], rtt=["100us", "20us"], stage=1, share=60, tso=[None, 1]),
              # half of the load: what starting flows make of the misses
              *each(load="websearch", rtt="20us", stage=[5, 0], share=25),
              *each(load="hadoop", rtt="20us", stage=0, share=25),
              # and of starts that are not at line rate
              *each(load="websearch", rtt="20us", stage=0, share=50, start=4)],
    params={"tso": TSO.format("10 Gb/s, unstamped and unmarked"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "N": "not given: W_ai follows the mean of U",
            "start": "packets that HPCC++ begins with; if not stated, flows begin at line rate, 10 Gb/s",
            "slowdown": "completion time / (2 RTTs, one of them the handshake's, + size with headers / 10 Gb/s)",
            "requests": "Poisson, a connection each, share=50: 2.39 Gb/s of payload from each of 4 hosts for 1 s, "
                        "with headers 10 Gb/s; share=25: half of that, share=60: a fifth more",
            "drawn": "the load that the seed drew, % of the two trunks"},
    words={"load": {"hadoop": "Hadoop", "websearch": "WebSearch"}, "share": "load {} %", "start": "first window {}"},
    shown=["excess_p95_small", "slow_p99_small", "slow_p99_medium", "slow_p99_large", "slow_p50_small",
           "slow_p95_small", "drawn_load", "count_small", "slow_p50_large", "failed"],
    # a ratio of slowdowns, which are never below 1, says little where dctcp's is near 2: what is compared is
    # what waiting adds, at the paper's percentile (HPCC, SIGCOMM 2019, fig. 11)
    goals=[goal("excess_p95_small", row="hpccpp", most=1, median=0.5, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p99_small", row="hpccpp", most=1, median=0.6, beside=["dctcp", "dctcp_ref"])],
    conclusion="""Small flows find nearly empty queues; what they wait for are first windows of others.

        The slowest of the large flows take longer with HPCC++, which leaves a part of each link unused.

        Where hosts send bursts, DCTCP's small flows wait behind them in the host; the others pace.""",
    shell=r"""
# port NS DEV ID: a port with the row's queue
port()
{
	local words

	read -ra words <<<"$QUEUE"
	words=("${words[0]}")
	[ "${words[0]}" != hpccpp ] || words+=(--switch-id "$3")
	"$LOWQ_TC" "${words[0]}" "$2" -n "$NSP$1" --rate 10gbit --shape --rtt "$rtt" \
		--no-rehearsal --quiet "${words[@]:1}" || fail "lowq-tc ${words[*]}"
}

# trunk LEAF SPINE N: a link with addresses 10.9.N.1 and .2
trunk()
{
	link "$1" "$2" "$2" "$1"
	ip -n "$NSP$1" addr add "10.9.$3.1/24" dev "$2"
	ip -n "$NSP$2" addr add "10.9.$3.2/24" dev "$1"
}

run_scenario()
{
	local i s id=1 pids=() ns=${rtt%us}000

	start=${start:-}
	hpccpp_hosts max_stage="$stage" line_rate_mbps="$([ "$start" ] && echo 0 || echo 10000)" \
		base_rtt_ns=$((ns + 2000))
	roomy
	for s in leaf1 leaf2 spine1 spine2; do
		add_ns "$s"
		in_ns "$s" sysctl -qw net.ipv4.fib_multipath_hash_policy=1
	done
	for i in 1 2 3 4; do
		add_ns "a$i"
		add_ns "b$i"
		net "$i" "a$i" eth0 leaf1 "p$i"
		[ -z "$start" ] || [ "$CONTROL" != hpccpp ] ||
			ip -n "${NSP}a$i" route replace default via "10.0.$i.254" initcwnd "$start"
		net "1$i" "b$i" eth0 leaf2 "p$i"
		[ "${tso:-}" ] || port "a$i" eth0 $((id++))
		port leaf2 "p$i" $((id++))
		# the way back carries ACKs: its delay is the base RTT's
		in_ns leaf1 tc qdisc add dev "p$i" root netem delay "$rtt" limit 1000000
	done
	[ -z "${tso:-}" ] || line_rate 10gbit a
	trunk leaf1 spine1 1
	trunk leaf1 spine2 2
	trunk leaf2 spine1 3
	trunk leaf2 spine2 4
	for i in 1 2; do
		port leaf1 "spine$i" $((id++))
		port "spine$i" leaf2 $((id++))
		ip -n "${NSP}spine$i" route add 10.0.0.0/21 via "10.9.$i.1"
		ip -n "${NSP}spine$i" route add 10.0.8.0/21 via "10.9.$((i + 2)).1"
	done
	ip -n "${NSP}leaf1" route add 10.0.8.0/21 nexthop via 10.9.1.2 nexthop via 10.9.2.2
	ip -n "${NSP}leaf2" route add 10.0.0.0/21 nexthop via 10.9.3.2 nexthop via 10.9.4.2
	for i in 1 2 3 4; do
		serve "b$i" --cc "$CONTROL"
	done
	ADDRESS=10.0.11.1 check_path a1 b1 10gbit "$rtt"
	for i in 1 2 3 4; do
		merging "b$i" leaf2 "p$i"
	done
	fixed_start
	for i in 1 2 3 4; do
		in_ns "a$i" flowgen rpc --push --to 10.0.11.1,10.0.12.1,10.0.13.1,10.0.14.1 --cc "$CONTROL" \
			--cdf "$LIB/cdf/$load.cdf" --load "$((share * 478 / 10))mbit" --duration 1s \
			--seed $((SEED * 10 + i)) \
			--timeout 10s >"$TMP/rpc$i" &
		pids+=($!)
	done
	requests_done "${pids[@]}"
	cat "$TMP"/rpc? >"$OUT/flows.jsonl"
	drawn_load 2e10
	slowdown small 0 100000 50 95 99
	metric excess_p95_small "$(slow_at 95 1)"
	slowdown medium 100000 1000000
	slowdown large 1000000 1e12
}
""")
