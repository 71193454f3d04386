# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="HPCC++: a bottleneck that does not stamp",
    question="""Where the bottleneck is a policer, a tail-drop queue or a marking queue that does not stamp: how much is
        lost, and how is the rate shared?""",
    topology=r"""
 h1  a long flow       --\
                          sw: first ==== second ==== r
 h2  or beside another --/
     place=before:   the limit   stamps at 10 times its rate
     place=behind:   stamps      the limit                       base RTT rtt""",
    rows=["dctcp", "cubic", "hpccpp"],
    reference="dctcp",
    variants=[*each(limit=["policer", "fifo"], rate="100mbit", rtt="5ms", place=["before", "behind"],
                    beside=[None, "cubic"]),
              *each(limit="red", rate="1gbit", rtt="1ms", place=["before", "behind"], beside=[None, "dctcp"])],
    params={"policer": "burst 60 kB, drops", "fifo": "50 packets", "red": "marks from 20 packets on, drops beyond 3 MB",
            "node": "stamps 10 times the rate of the limit", "retransmitted_permille": "of the segments that h1 sent",
            "ratio": "rate of h1 by that of h2"},
    shown=["goodput_mbps", "retransmitted_permille", "ratio", "delay_p99_us", "drops"],
    goals=[goal("retransmitted_permille", row="hpccpp", most=2, relative_to="dctcp",
                text="at most twice the retransmissions of DCTCP, which is Reno where nothing marks"),
           goal("ratio", row="hpccpp", most=2, variant={"beside": "cubic"}, text="at most 2:1 beside CUBIC"),
           goal("ratio", row="hpccpp", most=2, variant={"beside": "dctcp"}, text="at most 2:1 beside DCTCP")],
    answer="""HPCC++ retransmits {range retransmitted_permille hpccpp} of 1000 segments, DCTCP {range
        retransmitted_permille dctcp}; beside another flow it gets {range ratio hpccpp} times that one's rate.""",
    conclusion="""{range retransmitted_permille hpccpp limit=policer beside=} of 1000 segments are retransmitted alone
        behind a policer, by DCTCP {range retransmitted_permille dctcp limit=policer beside=}; losses that go on
        although the records show a load below eta say that the bottleneck does not stamp, and HPCC++ then runs as Reno
        until a node that stamps is the bottleneck.

        {range ratio hpccpp limit=policer beside=cubic} times CUBIC's rate is what it gets there beside it, in a
        tail-drop queue {range ratio hpccpp limit=fifo beside=cubic}.

        {range drops hpccpp limit=red} packets are lost in a RED queue that marks: with marks it runs as DCTCP, and gets
        {range ratio hpccpp limit=red} times a DCTCP flow's rate.

        10 times the rate is the path whose window telemetry allows: this first window is what it loses before it
        knows.""",
    shell=r"""
# node DEV: a port of sw that stamps at 10 times the rate of the limit
node()
{
	local fast

	case $rate in
	*gbit) fast=$((${rate%gbit} * 10))gbit ;;
	*) fast=$((${rate%mbit} * 10))mbit ;;
	esac
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
	esac
}

run_scenario()
{
	local seconds=5 mac resent sent

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
	[ "$limit" = policer ] || check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" 1s "${seconds}s" 10ms
	read -r resent sent < <(in_ns h1 nstat -asz TcpRetransSegs TcpOutSegs |
		awk '/Tcp/ { n[$1] = $2 } END { print n["TcpRetransSegs"], n["TcpOutSegs"] }')
	if [ "${beside:-}" ]; then
		two_flows "$CONTROL" "$beside" "$seconds"
	else
		long_flows 1 "${seconds}s"
	fi
	in_ns h1 nstat -asz TcpRetransSegs TcpOutSegs | awk -v r="$resent" -v s="$sent" '
		/Tcp/ { n[$1] = $2 }
		END { print 1000 * (n["TcpRetransSegs"] - r) / (n["TcpOutSegs"] - s) }' >"$TMP/share"
	metric retransmitted_permille "$(cat "$TMP/share")"
	watched
	[ -z "${beside:-}" ] || metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
	metric goodput_mbps "$(jq -s 'map(select(.type == "flow"))[0].goodput_bps / 1e6' "$TMP/long1")"
}
""")
