# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

SCENARIO = Scenario(
    title="HPCC++: a bottleneck that does not stamp",
    question="""Where the bottleneck is a policer, a tail-drop queue or a marking queue that does not stamp: how much is
        lost, and how is the rate shared?""",
    topology=r"""
 h1  a long flow, or several --\
                                sw: first ==== second ==== r
 h2  beside as many           --/
     place=before:   the limit   stamps at 10 times its rate
     place=behind:   stamps      the limit                       base RTT rtt""",
    rows=["dctcp", "cubic", "hpccpp"],
    reference="dctcp",
    variants=[*each(limit=["policer", "fifo"], rate="100mbit", rtt="5ms", place=["before", "behind"],
                    beside=[None, "cubic"]),
              *each(limit="red", rate="1gbit", rtt="1ms", place=["before", "behind"], beside=[None, "dctcp"]),
              # AQMs for the Internet, which mark now and then
              *each(limit=["codel", "pie"], rate="100mbit", rtt="5ms", place=["before", "behind"],
                    beside=[None, "cubic", "dctcp"]),
              # other rates, several flows, offloads
              *each(limit="fifo", rate="10mbit", rtt="20ms", place="before", beside="cubic"),
              *each(limit="policer", rate="1gbit", rtt="1ms", place="before", beside="cubic"),
              *each(limit="fifo", rate="10gbit", rtt="200us", place="before", beside="cubic"),
              *each(limit="policer", rate="10gbit", rtt="1ms", place="before", beside="cubic"),
              *each(limit=["policer", "fifo"], rate="100mbit", rtt="5ms", place="before", flows=4,
                    beside=[None, "cubic"]),
              *each(limit="red", rate="1gbit", rtt="1ms", place="before", flows=4, beside=[None, "dctcp"]),
              *each(limit=["fifo", "policer"], rate="100mbit", rtt="5ms", place="behind", beside=[None, "cubic"], tso=1),
              *each(limit="red", rate="1gbit", rtt="1ms", place="behind", beside=[None, "dctcp"], tso=1),
              *each(limit="red", rate="1gbit", rtt="1ms", place="behind", flows=4, beside="dctcp", tso=1),
              *each(limit=["codel", "pie"], rate="100mbit", rtt="5ms", place="behind", beside="cubic", tso=1)],
    params={"policer": "burst 60 kB, drops", "fifo": "50 packets", "red": "marks from 20 packets on, drops beyond 3 MB",
            "codel, pie": "with ECN, tc's defaults (targets 5 and 15 ms), 1000 packets",
            "node": "stamps 10 times the rate of the limit", "flows": "of h1, and as many of h2; one if not stated",
            "tso": TSO.format("the node's rate"), "retransmitted_permille": "of the segments that h1 sent",
            "ratio": "rate of h1 by that of h2"},
    shown=["goodput_mbps", "retransmitted_permille", "ratio", "delay_p99_us", "drops"],
    goals=[goal("retransmitted_permille", row="hpccpp", most=2, median=1.1, beside=["dctcp"]),
           goal("ratio", row="hpccpp", least=0.5, most=2, variant={"beside": "cubic"}),
           goal("ratio", row="hpccpp", most=2, variant={"beside": "dctcp"})],
    conclusion="""Losses that the records do not explain say that the bottleneck does not stamp: HPCC++ then runs as
        Reno.

        Where that queue marks it runs as DCTCP, and takes rare marks as losses.

        Beside DCTCP in CoDel or PIE it is left little, as CUBIC is: DCTCP hardly reduces there.""",
    shell=r"""
# node DEV: a port of sw that stamps at $fast
node()
{
	in_ns sw tc qdisc add dev "$1" root handle 1: int rate "$fast" switch-id 1 || fail "tc int"
	shaper sw "$1" "$fast" parent 1:1 handle 2:
	in_ns sw tc qdisc add dev "$1" parent 2:1 bfifo limit 20000000
}

# limit DEV: the bottleneck at a port of sw
limit()
{
	if [ "$limit" = policer ]; then
		in_ns sw tc qdisc add dev "$1" clsact
		in_ns sw tc filter add dev "$1" egress pref 1 matchall action police rate "$rate" burst 60k \
			conform-exceed drop/ok || fail "no policer"
		return
	fi
	shaper sw "$1" "$rate"
	case $limit in
	fifo) in_ns sw tc qdisc add dev "$1" parent 1:1 handle 2: pfifo limit 50 ;;
	red)
		in_ns sw tc qdisc add dev "$1" parent 1:1 handle 2: red limit 3000000 min 30280 max 30281 \
			avpkt 1514 burst 20 probability 1 bandwidth "$rate" ecn || fail "no red" ;;
	*) in_ns sw tc qdisc add dev "$1" parent 1:1 handle 2: "$limit" limit 1000 ecn || fail "no $limit" ;;
	esac
}

run_scenario()
{
	local seconds=5 fast mac resent sent

	# 10 times the rate of the limit
	case $rate in
	*gbit) fast=$((${rate%gbit} * 10))gbit ;;
	*) fast=$((${rate%mbit} * 10))mbit ;;
	esac
	hpccpp_hosts base_rtt_ns=0
	dumbbell 2 "$rtt"
	every sysctl -qw net.ipv4.tcp_ecn=1
	# what comes from h1 and h2 leaves sw by "first", comes back by "second", leaves by "egress"
	link sw first sw second
	mac=$(in_ns sw cat /sys/class/net/second/address)
	ip -n "${NSP}sw" neigh add 10.0.0.1 lladdr "$mac" dev first nud permanent
	ip -n "${NSP}sw" route add default dev first table 100
	ip -n "${NSP}sw" rule add iif p1 lookup 100
	ip -n "${NSP}sw" rule add iif p2 lookup 100
	if [ "$place" = before ]; then
		limit first
		node egress
	else
		node first
		limit egress
	fi
	serve r --cc dctcp
	[ -z "${tso:-}" ] || line_rate "$fast"
	[ "$limit" = policer ] || check_path h1 r "$rate" "$rtt"
	merging
	watch_queue "$rate" 1s "${seconds}s" 10ms
	read -r resent sent < <(in_ns h1 nstat -asz TcpRetransSegs TcpOutSegs |
		awk '/Tcp/ { n[$1] = $2 } END { print n["TcpRetransSegs"], n["TcpOutSegs"] }')
	if [ "${beside:-}" ]; then
		two_flows "$CONTROL" "$beside" "$seconds" --flows "${flows:-1}"
	else
		long_flows 1 "${seconds}s" 1000 --flows "${flows:-1}"
	fi
	in_ns h1 nstat -asz TcpRetransSegs TcpOutSegs | awk -v r="$resent" -v s="$sent" '
		/Tcp/ { n[$1] = $2 }
		END { print 1000 * (n["TcpRetransSegs"] - r) / (n["TcpOutSegs"] - s) }' >"$TMP/share"
	metric retransmitted_permille "$(cat "$TMP/share")"
	watched
	[ -z "${beside:-}" ] || metric ratio "$(jq '
		[("10.0.1.1:", "10.0.2.1:") as $host | [.flows[] | select(.flow | startswith($host)).payload_bytes] | add] |
		.[0] / .[1]' "$OUT/qdelay.json")"
	metric goodput_mbps "$(jq -s '[.[] | select(.type == "flow").goodput_bps] | add / 1e6' "$TMP/long1")"
}
""")
