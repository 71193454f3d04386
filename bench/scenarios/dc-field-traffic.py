# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

TRAFFIC = [*each(traffic="requests"), *each(traffic="requests", keep=1), *each(traffic="requests", rate="10gbit"),
           *each(traffic=["both-ways", "cubic-back", "row"])]

SCENARIO = Scenario(
    title="Data centre: requests beside a long flow, traffic both ways, and three links in a row",
    question="What does a flow get beside requests, against traffic on the way back, and across several full links?",
    topology=r"""
 h1  a long flow --\                                      /-- r
                    sw == 10 Gb/s == 10 Gb/s == 10 Gb/s ==
 others, by row  --/   (the last queue; in a row: three)
  10 Gb/s each         base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=TRAFFIC + each(TRAFFIC, tso=1),
    params={"tso": TSO.format("10 Gb/s (both-ways, cubic-back: 25 Gb/s)"),
            "K of dctcp": "65 packets", "requests": "h2 answers requests of 100 kB, Poisson, 3 Gb/s, a connection each",
            "keep": "1: on connections that are kept",
            "rate": "the host's, for HPCC++, at which flows start; if not stated, they start with 10 packets",
            "both-ways": "r sends a long flow to h1, too, through a queue of the same kind on the way back",
            "cubic-back": "four flows of CUBIC on the way back, through a FIFO of 1 MB: acknowledgements wait there",
            "row": "three links in a row, each with a queue and a flow of its own beside the long flow",
            "counted": "0.1 s to 0.4 s; rates back and beside: all of 0.41 s"},
    words={"traffic": {"both-ways": "both ways", "cubic-back": "CUBIC on the way back", "requests": "requests",
                       "row": "three full links"},
           "keep": {1: "kept connections"}, "rate": "start at {}"},
    shown=["long_gbps", "back_gbps", "beside_gbps", "rpc_p50_us", "rpc_p99_us", "delay_mean_us", "delay_p99_us",
           "timeouts"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1, beside=["dctcp", "dctcp_ref"], variant={"traffic": "requests"}),
           goal("rpc_p99_us", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"], variant={"traffic": "requests"}),
           goal("long_gbps", row="hpccpp", least=0.9, median=1, beside=["dctcp", "dctcp_ref"])],
    conclusion="""None of HPCC++'s packets is lost, so that its slowest requests take a small part of DCTCP's time.

        Acknowledgements that wait in CUBIC's queue cost DCTCP and LDCP most of their rate, and HPCC++ little.

        Across three full links HPCC++ takes the busiest, and loses least, unless hosts send bursts.""",
    shell=r"""
# port DEV ID: the row's queue there
port()
{
	local k=()

	[[ $CONTROL != dctcp* ]] || k=(--k 65)
	QUEUE=${QUEUE/switch-id 1/switch-id $2} DEV=$1 bottleneck 10gbit 100us "${k[@]}"
}

# hop TABLE OUT BACK ID DESTINATION...: packets that table TABLE is looked up for leave sw by OUT,
# with a queue of the row, and come back by BACK
hop()
{
	local mac to

	link sw "$2" sw "$3"
	mac=$(in_ns sw cat "/sys/class/net/$3/address")
	for to in "${@:5}"; do
		ip -n "${NSP}sw" neigh add "$to" lladdr "$mac" dev "$2" nud permanent
	done
	ip -n "${NSP}sw" route add default dev "$2" table "$1"
	[ "$4" = fifo ] || port "$2" "$4"
}

# via TABLE IIF [DESTINATION]
via()
{
	ip -n "${NSP}sw" rule add iif "$2" ${3:+to "$3"} lookup "$1"
}

# flow FROM ADDRESS CONTROL [flowgen's options]
flow()
{
	in_ns "$1" flowgen long --to "$2" --cc "$3" --duration 410ms --start "$(start_us $((${#pids[@]} + 1)) 1000)us" \
		"${@:4}" >"$TMP/flow-$1" &
	pids+=($!)
}

# gbps FILE...: the sum of their flows' goodputs
gbps()
{
	jq -s '[.[] | select(.type == "flow") | .goodput_bps / 1e9] | add' "$@"
}

# The hosts and the rates of their links. The switch, not the host, is where traffic both ways meets.
make_hosts()
{
	local start=()

	hosts=1
	case $traffic in
	requests) hosts=2 ;;
	row) hosts=6 ;;
	esac
	dumbbell "$hosts" 100us
	case $traffic-${tso:-} in
	requests-*|row-*) line_rate 10gbit ;;
	*-1) line_rate 25gbit; line_rate 25gbit r ;;
	esac
	[ -z "${rate:-}" ] || start=(line_rate_mbps="${rate%gbit}000")
	hpccpp_hosts "${start[@]}"
}

# The queue that all variants have, and what the way back or the further links have.
make_queues()
{
	local i

	port egress 1
	case $traffic in
	both-ways)
		hop 100 first second 2 10.0.1.1
		via 100 egress
		;;
	cubic-back)
		hop 100 first second fifo 10.0.1.1
		shaper sw first 10gbit
		in_ns sw tc qdisc add dev first parent 1:1 bfifo limit 1000000
		via 100 egress
		;;
	row)
		# h5 and h6 receive: their way back has the delay
		for i in 5 6; do
			in_ns sw tc qdisc del dev "p$i" root
			serve "h$i" --cc "$CONTROL"
		done
		hop 100 first second 2 10.0.0.1 10.0.5.1
		hop 101 third fourth 3 10.0.0.1 10.0.6.1
		via 100 p1
		via 100 p2
		via 101 second 10.0.0.1
		via 101 p3
		;;
	esac
}

# Where offloads merge packets: at the receiver, and where packets of the other way arrive.
merge_all()
{
	merging
	case $traffic in
	both-ways|cubic-back) merging h1 sw p1 ;;
	row) merging h5 sw p5; merging h6 sw p6 ;;
	esac
}

# The long flow, and what it meets; into $TMP/flow-* and $TMP/rpc.
send_all()
{
	local pids=()

	flow h1 10.0.0.1 "$CONTROL"
	case $traffic in
	requests)
		in_ns r flowgen rpc --to 10.0.2.1 ${keep:+--persist} --size 100k --load 3gbit --start 90ms \
			--duration 310ms --cc "$CONTROL" --seed "$SEED" --timeout 5s >"$TMP/rpc"
		;;
	both-ways) flow r 10.0.1.1 "$CONTROL" ;;
	cubic-back) flow r 10.0.1.1 cubic --flows 4 ;;
	row)
		flow h2 10.0.5.1 "$CONTROL"
		flow h3 10.0.6.1 "$CONTROL"
		flow h4 10.0.0.1 "$CONTROL"
		;;
	esac
	requests_done "${pids[@]}"
	cat "$TMP"/flow-* >"$OUT/flows.jsonl"
	[ "$traffic" != requests ] || cat "$TMP/rpc" >>"$OUT/flows.jsonl"
}

measure()
{
	metric long_gbps "$(of 1 '.goodput_bps / 1e9')"
	case $traffic in
	requests) completions ;;
	both-ways|cubic-back) metric back_gbps "$(gbps "$TMP/flow-r")" ;;
	row) metric beside_gbps "$(gbps "$TMP"/flow-h[234] | jq '. / 3')" ;;
	esac
	metric timeouts "$(host_counter TCPTimeouts "$hosts")"
}

run_scenario()
{
	local hosts

	make_hosts
	make_queues
	serve r --cc "$CONTROL"
	serve h1 --cc "$CONTROL"
	[ "$traffic" != requests ] || serve h2 --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merge_all
	watch_queue 10gbit 100ms 400ms 1ms --filter "dst host 10.0.0.1"
	send_all
	watched
	measure
}
""")
