#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ end to end: tcp_hpccpp, int_reflector and sch_int, judged by packets and tracepoints.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"

export TC_LIB_DIR=$BIN		# q_int.so is there

# Modules that a test has removed are loaded again for the next.
eval "lib_$(declare -f teardown)"
teardown()
{
	lib_teardown
	modprobe -a sch_int int_reflector tcp_hpccpp
}

under_test hpccpp
modprobe -a -r int_reflector sch_int 2>/dev/null
modprobe -a int_reflector sch_int || skip_all "no module int_reflector or sch_int"
REFLECTOR=/sys/module/int_reflector/parameters

# node NS DEV RATE [INT-OPTIONS...]: makes a port that stamps, with a shaper below it. With all
# checkers on, packets take more CPU time than high rates allow.
node()
{
	local ns=$1 dev=$2 rate=$3

	shift 3
	virtual || rate=10mbit
	in_ns "$ns" tc qdisc add dev "$dev" root handle 1: int rate "$rate" "$@" || fail "tc int"
	shaper "$ns" "$dev" "$rate" parent 1:1 handle 2:
	in_ns "$ns" tc qdisc add dev "$dev" parent 2:1 bfifo limit 20000000
}

# counter NS FILE NAME: a counter in /proc/net/FILE
counter()
{
	in_ns "$1" cat "/proc/net/$2" | awk -v n="$3" '$1 == n { print $2 }'
}

# seen NAME: a value of the result that observed has left
seen()
{
	jq ".$1" "$TMP/q.json"
}

# chain N [RTT]: h1 -- s1 -- ... -- sN -- r; s1 delays packets to h1. Every node's device towards r
# is its "egress", towards h1 its "ingress". Neighbours as in net().
chain()
{
	local n=$1 rtt=${2:-100us} i

	roomy
	add_ns h1
	add_ns r
	for ((i = 1; i <= n; i++)); do
		add_ns "s$i"
	done
	net 1 h1 eth0 s1 ingress
	net 0 r eth0 "s$n" egress
	for ((i = 1; i < n; i++)); do
		link "s$i" egress "s$((i + 1))" ingress
		ip -n "${NSP}s$i" addr add "10.1.$i.1/24" dev egress
		ip -n "${NSP}s$((i + 1))" addr add "10.1.$i.2/24" dev ingress
		ip -n "${NSP}s$i" route add 10.0.0.0/24 via "10.1.$i.2"
		ip -n "${NSP}s$((i + 1))" route add 10.0.1.0/24 via "10.1.$i.1"
	done
	in_ns s1 tc qdisc add dev ingress root netem delay "$rtt" limit 1000000
}

end_to_end()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit switch-id 77
	serve r
	observe 10gbit --from 5ms --to 18ms
	trace_on hpccpp/hpccpp_window hpccpp/hpccpp_sample
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 24M
	stop_captures
	trace_off "$TMP/trace"
	observed
	between "utilisation" "$(seen utilisation)" 0.94 0.96
	expect "queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
	expect "packets lost" "$(seen dropped)" -eq 0
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 180
	expect "responses accepted" "$(counter h1 hpccpp Accepted)" -ge $(($(counter r int_reflector Answered) - 1))
	judge_probes
	judge_model
}
declare_test end_to_end "H1 H2 H3 H8 H9 H10 H11 H20" "one flow uses 95 % of the link, the queue stays near zero; probes and windows follow the draft"

# The probes in $TMP/h.pcap at the sender: the flow's addresses and ports, below its sequence
# numbers, once per RTT, only with data in flight, of equal length
judge_probes()
{
	judge int-probes "$TMP/h.pcap" 98.5 | tee "$TMP/judged"
	expect "probes sent" "$(field probes <"$TMP/judged")" -eq "$(counter h1 hpccpp Probes)"
	expect "kinds of probes (5-tuple, DSCP, DF, length)" "$(field kinds <"$TMP/judged")" -eq 1
	expect "DSCP" "$(field dscp <"$TMP/judged")" -eq 23
	expect "frame" "$(field frame <"$TMP/judged")" -eq 122
	expect "probes less than an RTT apart" "$(field sooner <"$TMP/judged")" -eq 0
	expect "mean distance of probes, us" "$(field mean_gap <"$TMP/judged")" -le 115
	expect "probes without data in flight" "$(field without_data <"$TMP/judged")" -eq 0
	expect "probes with a wrong sequence number" "$(field wrong_seq <"$TMP/judged")" -eq 0
}

# The draft's formulas on the telemetry of the responses in $TMP/h.pcap, against the U and W that
# the tracepoints show
judge_model()
{
	judge hpccpp-model "$TMP/h.pcap" "$TMP/trace" 10 | tee "$TMP/judged"
	expect "windows" "$(field windows <"$TMP/judged")" -ge 180
	expect "largest difference of U" "$(field u_difference <"$TMP/judged")" -le 0.00001
	expect "largest difference of W, relative" "$(field w_difference <"$TMP/judged")" -le 0.0001
	expect "wrong stages" "$(field wrong_stages <"$TMP/judged")" -eq 0
}

line_rate()
{
	needs_virtual
	load line_rate_mbps=10000 base_rtt_ns=100000
	dumbbell 1 99us
	node sw egress 10gbit
	serve r
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 10M
	stop_captures
	# The first RTT: W_init = B * T = 125 kB instead of 10 packets, but at most the 64 kB that
	# a SYN-ACK can offer. The stack itself does not pace the first ten.
	# After it a packet leaves every 1448 / R, R = W / T = 95 % of 10 Gb/s.
	judge first-flight "$TMP/h.pcap" --rtt 99 --flight 90 --pace 1.1 | tee "$TMP/judged"
	expect "bytes in the first RTT" "$(field bytes <"$TMP/judged")" -ge 64000
	between "how long they take to leave, us" "$(field until <"$TMP/judged")" 35 60
	expect "packets that leave sooner than the pace allows, %" "$(field sooner <"$TMP/judged")" -le 2
}
declare_test line_rate "H4" "a flow starts at line rate, W_init = B * T, and is paced at W / T"

# by_eth0 DEV: what h1 sends by DEV goes on by eth0
by_eth0()
{
	in_ns h1 tc qdisc add dev "$1" clsact
	in_ns h1 tc filter add dev "$1" egress matchall action mirred egress redirect dev eth0 || skip "no mirred"
	route_by "$1"
}

# route_by DEV: brings it up; h1 sends all by it
route_by()
{
	in_ns h1 ip link set "$1" up
	in_ns h1 ip neigh replace 10.0.1.254 lladdr 02:00:00:00:01:fe dev "$1" nud permanent
	in_ns h1 ip route replace default via 10.0.1.254 dev "$1" onlink src 10.0.1.1
}

# at_speed DEV MBPS: sets the speed of h1's tap DEV, and sends by it
at_speed()
{
	in_ns h1 ip link set "$1" down
	in_ns h1 ethtool -s "$1" speed "$2" duplex full autoneg off || fail "ethtool -s $1 speed $2"
	route_by "$1"
}

line_rate_device()
{
	local cases=() bytes i name least most

	needs_virtual
	load base_rtt_ns=100000
	dumbbell 1 99us
	node sw egress 10gbit
	serve r
	in_ns h1 sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0
	# made elsewhere, so that it has moved
	in_ns r ip tuntap add dev x0 mode tap 2>/dev/null || skip "no tap devices"
	in_ns r ip link set x0 up
	ip -n "${NSP}r" link set x0 netns "${NSP}h1"
	by_eth0 x0
	capture h1 eth0 "$TMP/h.pcap" tcp
	at_speed x0 2000
	sends "line_rate_device=0" 14480 14480
	parameter line_rate_device=1
	sends "2 Gb/s" 24500 26100
	in_ns h1 ip link set x0 down
	in_ns h1 ip link set x0 name x1
	at_speed x1 3000
	sends "3 Gb/s, renamed" 36200 37700
	at_speed x1 0
	sends "no speed" 14480 14480
	at_speed x1 3000
	sends "3 Gb/s again" 36200 37700
	parameter line_rate_mbps=2000
	sends "2 Gb/s given" 24500 26100
	parameter line_rate_mbps=0
	in_ns h1 ip link del x1
	# a device whose driver says nothing about a link
	in_ns h1 ip link add x2 type dummy
	by_eth0 x2
	sends "no link" 14480 14480
	in_ns h1 ip link del x2
	ip -n "${NSP}h1" route replace default via 10.0.1.254 dev eth0
	# veth says 10 Gb/s, W is 125 kB, and the SYN-ACK offers 64 kB
	sends "veth" 62000 66000
	# devices that are up when the module comes
	load base_rtt_ns=100000 line_rate_device=1
	sends "veth, module loaded later" 62000 66000
	stop_captures
	packets "$TMP/h.pcap" 'ip.src == 10.0.1.1 && tcp.len > 100' tcp.srcport frame.time_relative tcp.len |
		awk '!($1 in start) { start[$1] = $2; flow[++n] = $1 }
			$2 - start[$1] < 95e-6 { bytes[$1] += $3 }
			END { for (i = 1; i <= n; i++) print bytes[flow[i]] }' >"$TMP/bytes"
	mapfile -t bytes <"$TMP/bytes"
	expect "flows" "${#bytes[@]}" -eq ${#cases[@]}
	for i in "${!cases[@]}"; do
		IFS=: read -r name least most <<<"${cases[i]}"
		between "bytes in the first RTT, $name" "${bytes[i]}" "$least" "$most"
	done
}

# sends NAME LEAST MOST: line_rate_device's: a flow, and the bytes that its first RTT has to have. The
# initial window is 10 packets
sends()
{
	send --size 200k
	cases+=("$1:$2:$3")
}
declare_test line_rate_device "H4" "a flow starts at the speed of the device that it leaves by: set, renamed, moved, unknown, removed"

stamps()
{
	local n i id path records bytes rate

	needs_virtual
	for n in 1 ${FULL:+3 5} 6; do
		[ "$n" -le 5 ] || parameter probe_room="$n"
		chain "$n"
		path=0
		for ((i = 1; i <= n; i++)); do
			id=$((i * 257 + n))
			path=$((path ^ id))
			rate=10gbit
			[ "$i" -lt "$n" ] || rate=5gbit
			node "s$i" egress "$rate" switch-id "$id"
			SNAPLEN=192 capture "s$i" egress "$TMP/s$i.pcap"
		done
		SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
		serve r
		send --size 2M
		stop_captures
		expect "$n nodes: pathID and nHop of the responses" \
			"$(packets "$TMP/h.pcap" 'int.type == 2' int.path_id int.nhop | sort -u)" = \
			"$(printf '0x%04x\t%d' "$path" "$n")"
		for ((i = 1; i <= n; i++)); do
			judge int-stamps "$TMP/s$i.pcap" "$(in_ns "s$i" cat /sys/class/net/egress/address)" "$i" | tee "$TMP/judged"
			records=$(field records <"$TMP/judged") bytes=$(field bytes <"$TMP/judged")
			rate=10000
			[ "$i" -lt "$n" ] || rate=5000
			expect "node $i of $n: speed" "$(field speed <"$TMP/judged")" = "$rate"
			expect "node $i of $n: records" "$records" -ge 10
			expect "node $i of $n: time, worst, ns" "$(field time_difference <"$TMP/judged")" -le 64
			expect "node $i of $n: txBytes, worst, units" "$(field tx_difference <"$TMP/judged")" -le 1
			in_ns "s$i" tc -s -j qdisc show dev egress root >"$TMP/tc.json"
			expect "node $i of $n: stamped, by tc" "$(jq '.[0].stamped' "$TMP/tc.json")" -eq "$records"
			# tc also counts what the port sent to its neighbours before the capture
			between "node $i of $n: bytes, by tc" "$(jq '.[0].bytes' "$TMP/tc.json")" "$bytes" $((bytes + 1000))
		done
		expect "checksums that are wrong behind $n nodes" "$(counter r int_reflector Checksum)" -eq 0
		expect "control in use" "$(flow_field cc)" = hpccpp
		teardown
	done
}
declare_test stamps "H6 H7" "over 1 and 6 nodes (FULL: also 3 and 5): time, bytes, speed and pathID agree with captures at the ports and tc"

over_room()
{
	local i

	needs_virtual
	chain 6
	for ((i = 1; i <= 6; i++)); do
		# the last one also notes when probes arrive, in a record that this one lacks
		node "s$i" egress 10gbit switch-id "$i" "$([ "$i" -lt 6 ] && echo nosojourn || echo sojourn)"
	done
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	serve r
	send --size 5M
	stop_captures
	expect "nHop, lengths" "$(packets "$TMP/h.pcap" 'int.type == 2' int.nhop int.room frame.len | sort -u)" = "$(printf '6\t5\t122')"
	expect "control behind 6 nodes with room for 5" "$(flow_field cc)" = hpccpp_reno
	expect "partial telemetry, counted" "$(counter h1 hpccpp Partial)" -ge 4
	expect "over room, by tc" "$(in_ns s6 tc -s -j qdisc show dev egress root | jq '.[0].over_room')" -ge 4
	parameter probe_room=6
	send --size 5M
	expect "control with room for 6" "$(flow_field cc)" = hpccpp
}
declare_test over_room "H6 H16 H17" "6 nodes and room for 5: probes do not grow, telemetry is not used; with room for 6 it is used"

queue_stamped()
{
	needs_virtual
	dumbbell 2 100us
	node sw egress 1gbit
	serve r
	SNAPLEN=192 capture sw any "$TMP/any.pcap" tcp
	in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --size 3M >/dev/null &
	send --size 500k
	wait $!
	stop_captures
	judge int-queue "$TMP/any.pcap" 10.0.0.1 | tee "$TMP/judged"
	expect "probes" "$(field probes <"$TMP/judged")" -ge 20
	expect "longest queue at a probe, bytes" "$(field longest <"$TMP/judged")" -ge 50000
	# 80 bytes of rounding, and a pure ACK between tap and queue
	expect "largest difference of qlen, bytes" "$(field difference <"$TMP/judged")" -le 160
}
declare_test queue_stamped "H6" "the stamped queue length agrees with captures on both sides of the port"

# receiver_decides: h1 sends to r, which computes the window
receiver_decides()
{
	load receiver_based=1 base_rtt_ns=100000
	PARAM=$REFLECTOR parameter base_rtt_ns=100000
	dumbbell 1 99us
	node sw egress 10gbit
}

receiver_based()
{
	needs_virtual
	receiver_decides
	serve r
	observe 10gbit --from 5ms --to 30ms
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on hpccpp/hpccpp_window
	send --size 40M
	trace_off "$TMP/trace"
	stop_captures
	observed
	PARAM=$REFLECTOR parameter base_rtt_ns=0
	between "utilisation" "$(seen utilisation)" 0.94 0.96
	expect "queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
	# one answer per probe, once per T, and shorter than the probe: it has no telemetry
	judge receiver-windows "$TMP/h.pcap" "$TMP/trace" 99 | tee "$TMP/judged"
	expect "windows received" "$(field windows <"$TMP/judged")" -ge 300
	expect "windows taken" "$(field taken <"$TMP/judged")" -ge 300
	expect "lengths of probes and windows" "$(packets "$TMP/h.pcap" 'int.type == 1 || int.type == 3' int.type frame.len | sort -u | paste -sd' ')" = "$(printf '1\t122 3\t82')"
	expect "windows less than T apart" "$(field sooner <"$TMP/judged")" -eq 0
	expect "windows that differ from the receiver's" "$(field different <"$TMP/judged")" -eq 0
	# a receiver that is not set up for it answers with telemetry, which works as well
	send --size 10M
	expect "control" "$(flow_field cc)" = hpccpp
}
declare_test receiver_based "H12" "the receiver computes the window and answers with it once per T"

# A window goes on from the one that the probe before it reported.
receiver_lost_probe()
{
	needs_virtual
	receiver_decides
	data_meets h1 eth0 loss 10%
	in_ns h1 tc filter del dev eth0
	# probes have PSH without ACK
	in_ns h1 tc filter add dev eth0 parent 1: protocol ip flower ip_proto tcp tcp_flags 0x08/0x18 classid 1:1
	serve r
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" tcp
	send --size 20M
	stop_captures
	PARAM=$REFLECTOR parameter base_rtt_ns=0
	packets "$TMP/r.pcap" 'int.type == 1 || int.type == 3' int.type int.id | awk '
		$1 == 1 { after_gap = $2 > last + 1; gaps += after_gap; probes++; last = $2 }
		$1 == 3 { windows++; wrong += after_gap }
		END { printf "probes=%d gaps=%d windows=%d wrong=%d\n", probes, gaps, windows, wrong }' | tee "$TMP/judged"
	expect "probes lost" "$(field gaps <"$TMP/judged")" -ge 5
	expect "windows after others" "$(field windows <"$TMP/judged")" -ge 50
	expect "windows after a lost probe" "$(field wrong <"$TMP/judged")" -eq 0
}
declare_test receiver_lost_probe "H12" "after a lost probe the receiver answers with telemetry, not with a window"

# --- robustness ---------------------------------------------------------------

# results RESULT: the number of samples in $TMP/trace with this result (enum hpccpp_result)
results()
{
	grep -c "hpccpp_sample:.* result=$1 " "$TMP/trace"
}

idle_beyond_wrap()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	sink
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	# three requests on one connection, pauses of 0.9 s (txBytes has wrapped 8 times)
	# and of 2.3 s (the timestamp twice)
	client 10.0.0.1 send=5000000 sleep=0.9 send=5000000 sleep=2.3 send=5000000
	trace_off "$TMP/trace"
	expect "measured samples" "$(results 0)" -ge 100
	# after each pause the flow starts again
	expect "first samples" "$(results 1)" -eq 3
	expect "stale samples" "$(results 2)" -eq 0
	expect "samples above U = 2" "$(field u_q20 <"$TMP/trace" | awk '$1 > 2^21 { n++ } END { print n + 0 }')" -eq 0
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
}
declare_test idle_beyond_wrap "H16" "pauses longer than a wrap of txBytes and of the timestamp: the measurement restarts"

# A flow that begins beside one that has the link
newcomer()
{
	needs_virtual
	dumbbell 2 100us
	node sw egress 10gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 60ms >/dev/null &
	sleep 0.02
	in_ns h2 flowgen long --to 10.0.0.1 --cc hpccpp --size 1M >"$TMP/flow.json" || fail "flow failed"
	wait $!
	# a fair share takes 1.8 ms, 10 packets per RTT take 7
	expect "1 MB beside a long flow, us" "$(($(flow_field duration_ns) / 1000))" -le 3500
}
declare_test newcomer "H5" "a flow that begins beside a long one gets its share within 32 RTTs"

after_pause()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	sink
	trace_on hpccpp/hpccpp_window
	client 10.0.0.1 send=3000000 acked sleep=0.01 send=3000000 acked sleep=0.01 send=3000000 acked
	trace_off "$TMP/trace"
	expect "starts after a pause" "$(grep -c cause=idle "$TMP/trace")" -eq 2
	expect "W then, packets" "$(windows idle | awk '{ print $1 / 1448 }' | sort -u)" = 10
	expect "measured again after the last pause" "$(tac "$TMP/trace" | sed '/cause=idle/q' | grep -c cause=telemetry)" -ge 5
}
declare_test after_pause "H4" "a flow that had nothing to send for 4 RTTs starts as a new one does"

# The last two probes before a pause are lost, and two are enough for fallback
idle_after_loss()
{
	needs_virtual
	parameter probes_lost=2
	dumbbell 1 1ms
	node sw egress 1gbit
	sink
	in_ns sw tc qdisc add dev p1 clsact
	trace_on hpccpp/hpccpp_mode
	# answers to probes come back by p1; they are PSH without ACK
	client 10.0.0.1 send=2000000 acked \
		"run=tc -n ${NSP}sw filter add dev p1 egress protocol ip pref 1 flower ip_proto tcp tcp_flags 0x08/0x1f action drop" \
		sleep=0.1 send=20000 acked sleep=0.01 send=20000 acked "run=tc -n ${NSP}sw filter del dev p1 egress pref 1" \
		sleep=1 send=2000000 acked
	trace_off "$TMP/trace"
	parameter probes_lost=4
	cat "$TMP/client" "$TMP/trace"
	expect "control in the end" "$(field cc <"$TMP/client")" = hpccpp
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
}
declare_test idle_after_loss "H17" "a probe that was lost before a pause does not count after it"

reprobe()
{
	needs_virtual
	rmmod int_reflector
	parameter reprobe_max_ms=10
	dumbbell 1 1ms
	node sw egress 1gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 2s >/dev/null || fail "flow failed"
	parameter reprobe_max_ms=1000
	between "probes in 2 s" "$(counter h1 hpccpp Probes)" 150 220
}
declare_test reprobe "H17" "in fallback the interval between probes grows to reprobe_max_ms"

mtu_and_ipv6()
{
	local mtu to

	needs_virtual
	for mtu in 1500 9000; do
		dumbbell 1 100us
		every sh -c "for d in /sys/class/net/*; do d=\${d##*/}; [ \$d = lo ] || ip link set \$d mtu $mtu; done" 2>/dev/null
		node sw egress 10gbit
		set_rate sw egress 2:1 10gbit $((mtu + 14))
		serve r
		for to in 10.0.0.1 fd00:0::1; do
			observe 10gbit --from 3ms --to 9ms
			SNAPLEN=192 capture r eth0 "$TMP/r.pcap" tcp
			TO=$to send --size 14M
			stop_captures
			observed
			expect "MTU $mtu to $to: control" "$(flow_field cc)" = hpccpp
			between "MTU $mtu to $to: utilisation" "$(seen utilisation)" 0.93 0.97
			expect "MTU $mtu to $to: queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
			expect "MTU $mtu to $to: kinds of probes" "$(packets "$TMP/r.pcap" 'int.type == 1' \
				ip.dsfield.dscp ipv6.tclass.dscp tcp.srcport int.nhop int.path_id | sort -u | wc -l)" -eq 1
		done
		teardown
	done
}
declare_test mtu_and_ipv6 "H18" "MTU 1500 and 9000, IPv4 and IPv6"

offloads()
{
	needs_virtual
	OFFLOADS=1 dumbbell 1 100us
	# GRO on the receiving ends, so that packets are merged
	in_ns sw ethtool -K p1 gro on 2>/dev/null
	in_ns r ethtool -K eth0 gro on 2>/dev/null
	in_ns sw ethtool -K egress tso on gso on 2>/dev/null
	node sw egress 10gbit
	serve r
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" tcp
	send --size 40M
	stop_captures
	expect "data segments longer than a packet" "$(packets "$TMP/h.pcap" 'tcp.len > 3000' frame.number | wc -l)" -ge 100
	expect "probes, their lengths" "$(packets "$TMP/r.pcap" 'int.type == 1' frame.len ip.dsfield.dscp | sort -u)" = "$(printf '122\t23')"
	expect "probes at the receiver" "$(packets "$TMP/r.pcap" 'int.type == 1' int.id | wc -l)" -eq "$(counter h1 hpccpp Probes)"
	# order: a probe arrives after the same data segments after which it was sent
	judge overtaken "$TMP/r.pcap" "$TMP/h.pcap" | tee "$TMP/judged"
	expect "probes that another segment has overtaken" "$(field overtaken <"$TMP/judged")" -eq 0
	expect "control" "$(flow_field cc)" = hpccpp
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 7500
}
declare_test offloads "H10" "TSO and GRO on: probes are never merged, split or overtaken"

without_reflector()
{
	local reno with

	needs_virtual
	rmmod int_reflector
	dumbbell 1 1ms
	node sw egress 1gbit
	serve r
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" tcp
	in_ns h1 flowgen long --to 10.0.0.1 --cc reno --size 20M >"$TMP/flow.json"
	reno=$(flow_field duration_ns)
	send --size 20M
	with=$(flow_field duration_ns)
	stop_captures
	expect "control" "$(flow_field cc)" = hpccpp_reno
	expect "fallbacks, counted" "$(counter h1 hpccpp Fallbacks)" -eq 1
	dmesg | grep -q 'no telemetry on a connection (unanswered)' || fail "the log does not say so"
	expect "time against Reno's" "$(awk -v a="$with" -v b="$reno" 'BEGIN { print a / b }')" -le 1.03
	# the peer does not answer probes: no duplicate ACKs, no resets, no data lost
	expect "resets from the peer" "$(count "$TMP/r.pcap" 'tcp.srcport == 5201 && tcp.flags.reset == 1')" -eq 0
	expect "probes that reached the peer" "$(packets "$TMP/r.pcap" 'int.type == 1' int.id | wc -l)" -ge 4
	expect "segments with SACK or DSACK from the peer" "$(count "$TMP/r.pcap" 'tcp.srcport == 5201 && tcp.options.sack_le')" -eq 0
	# later probes are sent at growing intervals
	expect "probes in all" "$(counter h1 hpccpp Probes)" -le 16
	# when the reflector is loaded, the same connection has telemetry again
	trace_on hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.3
	modprobe int_reflector
	wait $!
	trace_off "$TMP/trace"
	expect "causes" "$(field cause <"$TMP/trace" | paste -sd' ')" = "unanswered telemetry"
	expect "control in the end" "$(flow_field cc)" = hpccpp
	expect "returns, counted" "$(counter h1 hpccpp Returns)" -eq 1
}
declare_test without_reflector "H17" "a peer without the module: a transfer as with Reno, undisturbed and reported; then HPCC++ again"

without_node()
{
	needs_virtual
	dumbbell 1 100us
	shape 1gbit
	serve r
	send --size 5M
	expect "control on a path that does not stamp" "$(flow_field cc)" = hpccpp_reno
	expect "partial telemetry, counted" "$(counter h1 hpccpp Partial)" -ge 4
	teardown
	# a node whose rate is unknown
	dumbbell 1 100us
	ip -n "${NSP}sw" link add d0 type dummy
	in_ns sw tc qdisc add dev d0 root int || fail "int on a device without speed"
	expect "rate in use" "$(in_ns sw tc -s -j qdisc show dev d0 | jq '.[0].rate_in_use')" -eq 0
}
declare_test without_node "H17" "a path without nodes: fallback"

conntrack()
{
	local ns

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	# connection tracking on both hosts, which drop packets in state invalid
	dumbbell 1 100us
	node sw egress 1gbit
	for ns in h1 r; do
		in_ns "$ns" nft -f - <<-'END' || fail "nft"
			table inet t {
				chain in { type filter hook input priority 0; ct state invalid drop; }
				chain out { type filter hook output priority 0; ct state invalid drop; }
			}
		END
	done
	serve r
	send --size 5M
	expect "control between tracking hosts" "$(flow_field cc)" = hpccpp
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 20
	# ... and on the router between them, which drops the probes
	in_ns sw nft -f - <<-'END' || fail "nft"
		table inet t {
			chain f { type filter hook forward priority 0; ct state invalid counter drop; }
		}
	END
	send --size 5M
	expect "control through a tracking router" "$(flow_field cc)" = hpccpp_reno
	expect "goodput through it, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 800
	expect "packets that it dropped" "$(in_ns sw nft -j list ruleset | jq '[.. | .counter? // empty | .packets] | add')" -ge 4
}
declare_test conntrack "H17 H18" "dropping ct state invalid: no effect on the hosts; on a router fallback, and the transfer is unharmed"

# firewalled NS RULE...: NS's own packets leave only if a rule lets them through
firewalled()
{
	in_ns "$1" nft -f - <<-END || fail "nft"
		table inet t {
			chain in { type filter hook input priority 0; policy drop; iif lo accept; ct state new,established,related accept; }
			chain out { type filter hook output priority 0; policy drop; oif lo accept; ct state new,established,related accept; ${2:+$2;} }
		}
	END
}

stateful()
{
	local who

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	for who in r h1; do
		dumbbell 1 100us
		node sw egress 1gbit
		firewalled "$who"
		serve r
		send --size 5M
		expect "control, firewall at $who" "$(flow_field cc)" = hpccpp_reno
		if [ "$who" = r ]; then
			expect "answers that were not sent" "$(counter r int_reflector Unsent)" -ge 4
			expect "answers" "$(counter r int_reflector Answered)" -eq 0
		else
			expect "probes that were not sent" "$(counter h1 hpccpp Unsent)" -ge 4
			expect "probes" "$(counter h1 hpccpp Probes)" -eq 0
		fi
		in_ns "$who" nft flush ruleset
		firewalled "$who" "ct state untracked ip dscp 23 accept"
		send --size 5M
		expect "control with the rule of tcp_hpccpp(7), firewall at $who" "$(flow_field cc)" = hpccpp
		teardown
	done
}
declare_test stateful "H17 H18" "a stateful firewall that accepts tracked packets only: counted as unsent; one rule lets probes through"

# esp NS MINE PEER SPI SPI: all between the two addresses must be ESP in transport mode
esp()
{
	local key=0x0123456789abcdef0123456789abcdef01234567

	ip -n "$NSP$1" -batch - <<-END || skip "no ESP"
		xfrm state add src $2 dst $3 proto esp spi $4 mode transport aead rfc4106(gcm(aes)) $key 128
		xfrm state add src $3 dst $2 proto esp spi $5 mode transport aead rfc4106(gcm(aes)) $key 128
		xfrm policy add src $2 dst $3 dir out tmpl src $2 dst $3 proto esp mode transport
		xfrm policy add src $3 dst $2 dir in tmpl src $3 dst $2 proto esp mode transport
	END
}

ipsec()
{
	local v h r

	needs_virtual
	for v in 4 6; do
		h=10.0.1.1 r=10.0.0.1
		[ "$v" = 4 ] || h=fd00:1::1 r=fd00:0::1
		dumbbell 1 200us
		shape 1gbit
		esp h1 "$h" "$r" 0x100 0x200
		esp r "$r" "$h" 0x200 0x100
		serve r
		capture sw egress "$TMP/s.pcap" "host $h"
		TO=$r send --size 1M
		sleep 0.1
		stop_captures
		expect "IPv$v: ESP packets" "$(count "$TMP/s.pcap" esp)" -ge 100
		expect "IPv$v: TCP in the clear" "$(count "$TMP/s.pcap" 'tcp && !esp')" -eq 0
		expect "IPv$v: answers" "$(counter r int_reflector Answered)" -ge 1
		expect "IPv$v: responses accepted" "$(counter h1 hpccpp Accepted)" -ge 1
		teardown
	done
	# a receiver without the policy: its answers come in the clear
	dumbbell 1 200us
	node sw egress 1gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.2
	ip -n "${NSP}h1" xfrm policy add src 10.0.0.1 dst 10.0.1.1 dir in \
		tmpl src 10.0.0.1 dst 10.0.1.1 proto esp mode transport
	sleep 0.1
	sleep 0.2
	ip -n "${NSP}h1" xfrm policy deleteall
	wait $!
	expect "responses dropped because of policy" "$(counter h1 hpccpp Policy)" -ge 1
}
declare_test ipsec "H13 H18" "where IPsec is demanded, answers leave as ESP in both families, and others are not accepted"

in_vrf()
{
	local to

	needs_virtual
	dumbbell 1 100us
	node sw egress 1gbit
	every sysctl -qw net.ipv4.conf.all.rp_filter=0
	ip -n "${NSP}r" link add vrf0 type vrf table 10 || skip "no VRF in this kernel"
	ip -n "${NSP}r" link set vrf0 up
	ip -n "${NSP}r" link set eth0 master vrf0
	ip -n "${NSP}r" addr replace fd00:0::1/64 dev eth0 nodad
	ip -n "${NSP}r" neigh replace 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
	ip -n "${NSP}r" neigh replace fd00:0::254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
	ip -n "${NSP}r" route replace default via 10.0.0.254 dev eth0 table 10
	ip -n "${NSP}r" route replace default via fd00:0::254 dev eth0 table 10
	in_ns r sysctl -qw net.ipv4.tcp_l3mdev_accept=1
	serve r
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 3M
		expect "control to $to" "$(flow_field cc)" = hpccpp
	done
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 20
	expect "probes without a socket" "$(counter r int_reflector NoSocket)" -eq 0
}
declare_test in_vrf "H18" "a receiver in a VRF: a probe that is answered is not counted as one without a socket"

path_change()
{
	needs_virtual
	# h1 -- a -- (b | c) -- d -- r: later, one hop of the path is replaced by another
	roomy
	local ns
	for ns in h1 a b c d r; do
		add_ns "$ns"
	done
	net 1 h1 eth0 a ingress
	net 0 r eth0 d egress
	link a tob b ina; link a toc c ina; link b tod d inb; link c tod d inc
	ip -n "${NSP}a" addr add 10.2.1.1/24 dev tob; ip -n "${NSP}b" addr add 10.2.1.2/24 dev ina
	ip -n "${NSP}a" addr add 10.2.2.1/24 dev toc; ip -n "${NSP}c" addr add 10.2.2.2/24 dev ina
	ip -n "${NSP}b" addr add 10.2.3.1/24 dev tod; ip -n "${NSP}d" addr add 10.2.3.2/24 dev inb
	ip -n "${NSP}c" addr add 10.2.4.1/24 dev tod; ip -n "${NSP}d" addr add 10.2.4.2/24 dev inc
	ip -n "${NSP}b" route add 10.0.0.0/24 via 10.2.3.2; ip -n "${NSP}c" route add 10.0.0.0/24 via 10.2.4.2
	ip -n "${NSP}b" route add 10.0.1.0/24 via 10.2.1.1; ip -n "${NSP}c" route add 10.0.1.0/24 via 10.2.2.1
	ip -n "${NSP}d" route add 10.0.1.0/24 via 10.2.3.1
	# ECMP by ports: flows take different paths, and a flow's probes take its path
	in_ns a sysctl -qw net.ipv4.fib_multipath_hash_policy=1
	ip -n "${NSP}a" route add 10.0.0.0/24 nexthop via 10.2.1.2 nexthop via 10.2.2.2
	in_ns a tc qdisc add dev ingress root netem delay 100us limit 1000000
	node a tob 10gbit switch-id 1
	node a toc 10gbit switch-id 1
	node b tod 10gbit switch-id 2
	node c tod 5gbit switch-id 4
	serve r
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	# the chance that all take one path is one in 2^31
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 32 --size 1M >"$TMP/flow.json" || fail "flows failed"
	trace_off "$TMP/trace"
	judge paths "$TMP/trace" | tee "$TMP/judged"
	expect "paths of 32 flows" "$(field paths <"$TMP/judged")" = 3,5
	expect "changes of a flow's path" "$(field switches <"$TMP/judged")" -eq 0
	# now the path changes during a flow
	ip -n "${NSP}a" route replace 10.0.0.0/24 via 10.2.1.2
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 40ms >"$TMP/flow.json" &
	sleep 0.02
	ip -n "${NSP}a" route replace 10.0.0.0/24 via 10.2.2.2
	wait $!
	trace_off "$TMP/trace"
	expect "first samples, one of each path" "$(results 1)" -eq 2
	expect "paths" "$(field path_id <"$TMP/trace" | uniq | paste -sd' ')" = "3 5"
	between "mean U of the last 100 samples, of a link of half the rate" "$(judge busiest "$TMP/trace" | field u)" 0.93 0.98
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
}
declare_test path_change "H7 H18" "ECMP: probes take the flow's path; a new path is measured from its start, and filled"

# At the receiver, only sockets with a mark have a route back
policy_route()
{
	local v to

	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	for v in -4 -6; do
		ip "$v" -n "${NSP}r" rule add fwmark 5 table 100
		ip "$v" -n "${NSP}r" route del default
	done
	ip -n "${NSP}r" route add default via 10.0.0.254 table 100
	ip -n "${NSP}r" route add default via fd00:0::254 table 100
	MARK=5 sink
	for to in 10.0.0.1 fd00:0::1; do
		client "$to" send=1000000
		expect "answers without a route, $to" "$(counter r int_reflector Unsent)" -eq 0
	done
	expect "responses" "$(counter h1 hpccpp Accepted)" -ge 10
}
declare_test policy_route "H9" "answers take the route of the connection's own packets, also if it depends on a mark"

# Link-local addresses: the way back is the link that the probe came by.
link_local()
{
	local to

	needs_virtual
	dumbbell 1 100us
	node sw egress 1gbit
	# another link has such a route, too
	ip -n "${NSP}r" link add other type dummy
	ip -n "${NSP}r" link set other up
	ip -n "${NSP}r" -6 route add fe80::/64 dev other metric 1
	serve r
	to=$(ip -j -n "${NSP}r" -6 addr show dev eth0 scope link | jq -r '.[].addr_info[]? | .local // empty')
	in_ns sw flowgen long --to "$to%egress" --cc hpccpp --size 500k >"$TMP/flow.json" || fail "flow failed"
	expect "answers that were not sent" "$(counter r int_reflector Unsent)" -eq 0
	expect "responses" "$(counter sw hpccpp Accepted)" -ge 10
	expect "control" "$(flow_field cc)" = hpccpp
}
declare_test link_local "H9" "answers to link-local addresses leave by the link that the probes came by"

# The receiver has no way back for a while, then one again.
no_way_back()
{
	local v to

	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	serve r
	for v in -4 -6; do
		to=10.0.0.1
		[ "$v" = -4 ] || to=fd00:0::1
		in_ns h1 flowgen long --to "$to" --cc hpccpp --duration 1s >"$TMP/flow.json" &
		sleep 0.1
		ip "$v" -n "${NSP}r" rule add pref 1 ipproto tcp unreachable || fail "no rule"
		sleep 0.1
		expect "answers that found no way, $v" "$(counter r int_reflector Unsent)" -ge $((${v#-} / 6 + 1))
		ip "$v" -n "${NSP}r" rule del pref 1
		wait $! || fail "flow failed"
		expect "control" "$(flow_field cc)" = hpccpp
		expect "goodput, Mb/s, $v" "$(($(flow_field goodput_bps) / 1000000))" -ge 300
	done
}
declare_test no_way_back "H9 H17" "a receiver without a way back for a while counts it, and the flow goes on"

two_bottlenecks()
{
	needs_virtual
	chain 2
	node s1 egress 10gbit switch-id 1
	node s2 egress 5gbit switch-id 2
	serve r
	trace_on hpccpp/hpccpp_sample
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 40ms >"$TMP/flow.json" &
	sleep 0.02
	# the bottleneck changes: the first link gets 2.5, the second 10 Gb/s
	set_rate s2 egress 2:1 10gbit
	in_ns s2 tc qdisc change dev egress root int rate 10gbit
	set_rate s1 egress 2:1 2500mbit
	in_ns s1 tc qdisc change dev egress root int rate 2500mbit
	wait $!
	trace_off "$TMP/trace"
	judge busiest "$TMP/trace" | tee "$TMP/judged"
	expect "the busiest link, before and after" "$(field links <"$TMP/judged")" = 1:5000,0:2500
	between "mean U at the end" "$(field u <"$TMP/judged")" 0.93 0.98
}
declare_test two_bottlenecks "H1" "two bottlenecks in series: the tighter one controls the flow, also after it changes"

# sent TYPE KIND...: messages of these kinds that the attacker has sent, from $TMP/hostile
sent()
{
	local type=$1

	shift
	awk -v t="$type" -v k=" $* " '$1 == t && index(k, " " $2 " ") { n += $3 } END { print n + 0 }' "$TMP/hostile"
}

# gained NS FILE NAME: by how much the counter has increased since $TMP/before.NS.FILE
gained()
{
	echo $(($(counter "$1" "$2" "$3") - $(awk -v n="$3" '$1 == n { print $2 }' "$TMP/before.$1.$2")))
}

# attacked IP TO [int_hostile's -6]: runs a flow to TO while its telemetry is forged
attacked()
{
	local ip=$1 to=$2 alone goodput answered replays=replay

	shift 2
	# a message behind IPv4 options is recognised, one behind an IPv6 extension header is not
	[ "$ip" = ipv6 ] || replays="replay options"
	TO=$to send --size 26M
	alone=$(flow_field goodput_bps)
	in_ns h1 cat /proc/net/hpccpp >"$TMP/before.h1.hpccpp"
	in_ns r cat /proc/net/int_reflector >"$TMP/before.r.int_reflector"
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "${ip/ipv6/ip6}"
	in_ns sw int_hostile "$@" 100000 0.022 >"$TMP/hostile" &
	TO=$to send --size 26M
	wait $!
	stop_captures
	goodput=$(flow_field goodput_bps)
	cat "$TMP/hostile"
	in_ns h1 cat /proc/net/hpccpp
	in_ns r cat /proc/net/int_reflector
	# the switch looks at what it stamps: it does so before the attacker, too
	expect "malformed at the switch" "$(in_ns sw tc -s -j qdisc show dev egress | jq '[.[].malformed // 0] | add')" -ge \
		"$(($(sent probe truncated overlong) * 8 / 10))"
	expect "forged messages" "$(sent probe replay cookie checksum truncated overlong flow future sequence options fragment)" -ge 700
	between "goodput under attack / alone" "$(awk -v a="$goodput" -v b="$alone" 'BEGIN { printf "%.4f", a / b }')" 0.99 1.01
	expect "control under attack" "$(flow_field cc)" = hpccpp
	# each kind has its own counter. Copies that race with the real message, or arrive when the
	# flow ends, may be counted elsewhere.
	near "probes with a wrong checksum" "$(gained r int_reflector Checksum)" "$(sent probe checksum)"
	near "malformed at the receiver" "$(gained r int_reflector Malformed)" "$(sent probe truncated overlong)"
	near "probes of a wrong flow" "$(gained r int_reflector NoSocket)" "$(sent probe flow)"
	near "probes out of the window" "$(gained r int_reflector Sequence)" "$(sent probe sequence)"
	near "responses with a wrong checksum" "$(gained h1 hpccpp Checksum)" "$(sent response checksum)"
	near "malformed at the sender" "$(gained h1 hpccpp Malformed)" "$(sent response truncated overlong)"
	near "responses of a wrong flow" "$(gained h1 hpccpp NoSocket)" "$(sent response flow)"
	# answers to forged probes have a wrong cookie, or are too late
	answered=$(gained r int_reflector Answered)
	near "wrong cookies" "$(gained h1 hpccpp Cookie)" "$(($(sent response cookie future) + $(sent probe cookie future)))"
	# shellcheck disable=SC2086 # words
	near "replays" "$(gained h1 hpccpp Stale)" "$(($(sent response $replays) + $(sent probe $replays)))"
	expect "responses accepted, of probes sent" "$(gained h1 hpccpp Accepted)" -le "$(gained h1 hpccpp Probes)"
	# the receiver sends only answers to the flow's peer, one per probe and no longer than it
	expect "responses sent" "$(packets "$TMP/r.pcap" "int.type == 2 && $ip.src == $to" int.id | wc -l)" -eq "$answered"
	expect "responses to others, or longer than probes" "$(packets "$TMP/r.pcap" "int.type == 2 && $ip.src == $to" "$ip.dst" tcp.srcport tcp.dstport frame.len | sort -u | wc -l)" -eq 1
}

hostile()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	attacked ip 10.0.0.1
	attacked ipv6 fd00:0::1 -6
	# limited: at a rate of 64, the bucket's depth of 1/64 s allows one answer
	PARAM=$REFLECTOR parameter max_rate=64
	in_ns r cat /proc/net/int_reflector >"$TMP/before.r.int_reflector"
	send --size 5M
	expect "answers in 5 ms at 64 per second" "$(gained r int_reflector Answered)" -le 3
	expect "refused" "$(gained r int_reflector OverRate)" -ge 1
}
declare_test hostile "H9 H13" "100,000 forged messages per second, IPv4 and IPv6: counted by reason, the rate stays, no third party gets a message"

# near WHAT GOT WANT: equal to within 5 % plus 5
near()
{
	between "$1" "$2" $(($3 * 95 / 100 - 5)) $(($3 * 105 / 100 + 5))
}

# --- the start of a flow, and losses -----------------------------------------------

# A flow starts with its first data, which may have left with the SYN or under another control
begins_late()
{
	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	every sysctl -qw net.ipv4.tcp_fastopen=0x607
	sink
	client 10.0.0.1 fastopen=1000 writes=20,1000,0.01
	expect "data in the SYN, accepted" "$(in_ns h1 nstat -saz TcpExtTCPFastOpenActive | awk '/Active/ { print $2 }')" -eq 1
	expect "probes" "$(counter h1 hpccpp Probes)" -ge 19
	expect "responses" "$(counter h1 hpccpp Accepted)" -ge 18
	expect "fall-backs" "$(counter h1 hpccpp Fallbacks)" -eq 0
	trace_on hpccpp/hpccpp_window
	client 10.0.0.1 cc=cubic send=20000000 cc=hpccpp send=20000000
	trace_off "$TMP/trace"
	expect "windows after a change in mid-flow" "$(grep -c cause=telemetry "$TMP/trace")" -ge 50
	expect "fall-backs" "$(counter h1 hpccpp Fallbacks)" -eq 0
}
declare_test begins_late "H8" "data in the SYN, or in flight when the control is chosen: the flow gets probes and windows"

# A path of 1 Gb/s and 50 ms whose sender begins with 20 packets; tests choose which are lost
twenty_at_once()
{
	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	dumbbell 1 50ms
	node sw egress 1gbit
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 20
	sink
}

timeout_in_recovery()
{
	twenty_at_once
	# the first of 20 packets is lost, and so is its retransmission
	drop_data '{ 0, 20 }'
	trace_on hpccpp/hpccpp_window tcp/tcp_cong_state_set
	client 10.0.0.1 send=28960
	trace_off "$TMP/trace"
	judge hpccpp-timeouts "$TMP/trace" $((2 * 1448)) | tee "$TMP/judged"
	expect "timeouts in mid-recovery" "$(field in_recovery <"$TMP/judged")" -eq 1
	expect "timeouts that do not set the smallest window" "$(field wrong <"$TMP/judged")" -eq 0
}
declare_test timeout_in_recovery "" "a timeout in mid-recovery sets the smallest window, too"

# messages_of N: steps of talk.py: N messages, acknowledged one by one
messages_of()
{
	local i

	for ((i = 0; i < $1; i++)); do echo up=80000 acked; done
}

# In fallback: a loss in the window of a mark, then one that a tail loss probe repairs
fallback_losses()
{
	local before ssthresh

	needs_virtual
	rmmod int_reflector
	dumbbell 1 10ms
	every sysctl -qw net.ipv4.tcp_ecn=1
	fates h1 eth0
	in_ns sw tc qdisc add dev egress root netem limit 100000 loss 0%
	talk_server r --cc reno
	counters
	# shellcheck disable=SC2046 # words
	talk cc=hpccpp $(messages_of 60) info=before_ \
		"$(change loss 100% ecn)" \
		up=29000 fate=1 up=2900 fate=0 up=29000 \
		"$(change loss 0%)" \
		acked info
	cat "$TMP/talk"
	before=$(field before_cwnd <"$TMP/talk")
	ssthresh=$(field ssthresh <"$TMP/talk")
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -eq 0
	between "ssthresh after a loss in the window of a mark" "$ssthresh" $((before * 2 / 5)) $((before / 2))
	# shellcheck disable=SC2046 # words
	talk cc=hpccpp $(messages_of 60) info=before_ up=30000 fate=1 up=100 fate=0 acked up=3000 acked info
	cat "$TMP/talk"
	before=$(field before_cwnd <"$TMP/talk")
	expect "tail losses that a probe repaired" "$(counted h1 TcpExtTCPLossProbeRecovery)" -eq 1
	expect "ssthresh after one" "$(field ssthresh <"$TMP/talk")" -eq $((before / 2))
	# shellcheck disable=SC2046 # words
	talk cc=hpccpp $(messages_of 60) info=before_ fate=1 up=28900 sleep=0.4 fate=0 acked info
	cat "$TMP/talk"
	expect "window before a timeout" "$(field before_cwnd <"$TMP/talk")" -ge 40
	expect "ssthresh after it, half of the 20 packets in flight" "$(field ssthresh <"$TMP/talk")" -eq 10
}
declare_test fallback_losses "H17" "in fallback a loss halves the window, also in CWR, also if a tail loss probe repairs it; a timeout half of what is in flight"

# A packet is late by less than its retransmission's RTT: a loss that was none.
fallback_undo()
{
	local before

	needs_virtual
	rmmod int_reflector
	dumbbell 1 10ms
	every sysctl -qw net.ipv4.tcp_ecn=1
	in_ns h1 sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
	lossy delay 20ms
	fates h1 eth0 18ms
	talk_server r --cc reno
	counters
	talk cc=hpccpp up=450000 acked info=before_ fate=2 up=1448 fate=0 up=100000 acked info
	cat "$TMP/talk"
	before=$(field before_cwnd <"$TMP/talk")
	expect "losses undone" $(($(counted h1 TcpExtTCPFullUndo) + $(counted h1 TcpExtTCPPartialUndo) + $(counted h1 TcpExtTCPDSACKUndo))) -ge 1
	expect "window after it" "$(field cwnd <"$TMP/talk")" -ge "$before"
}
declare_test fallback_undo "H17" "in fallback a loss that was none is undone"

# The stack repairs the loss of a burst's last packet with a tail loss probe, without Recovery
tail_loss()
{
	needs_virtual
	dumbbell 1 10ms
	node sw egress 1gbit
	tail_losses hpccpp/hpccpp_window
	echo "tail losses repaired by a probe: $REPAIRED"
	expect "tail losses repaired by a probe" "$REPAIRED" -ge 10
	expect "fall-backs" "$(counter h1 hpccpp Fallbacks)" -eq 0
	between "reductions for losses" "$(grep -c cause=loss "$TMP/trace")" "$REPAIRED" "$LOSSES"
	expect "reductions that do not halve, down to 2 packets" "$(awk "$VALUES"'
		v["cause"] == "loss" { half = int(v["wc_q8"] / 2); if (half < 2 * 1448 * 256) half = 2 * 1448 * 256
			if (v["w_q8"] != half && v["w_q8"] != v["wc_q8"]) bad++ }
		END { print bad + 0 }' "$TMP/trace")" -eq 0
	expect "of those that halved" "$(awk "$VALUES"'v["cause"] == "loss" && v["w_q8"] < 0.51 * v["wc_q8"] { n++ }
		END { print n + 0 }' "$TMP/trace")" -ge 5
}
declare_test tail_loss "" "a loss that a tail loss probe repairs halves W"

# 256 first windows are four times what the queue holds. If what was lost left again at once, it would
# be lost again, and with nothing else in flight only the timeout would be left.
incast_losses()
{
	local i to=()

	needs_virtual
	dumbbell 8 100us
	node sw egress 10gbit
	in_ns sw tc qdisc change dev egress parent 2:1 bfifo limit 1000000
	for i in {1..8}; do
		serve "h$i" --cc hpccpp
		to+=("10.0.$i.1")
	done
	in_ns r flowgen incast --to "$(IFS=,; echo "${to[*]}")" --fan 256 --size 64k --cc hpccpp --timeout 5s \
		--jitter 10us >"$TMP/flows" || fail "incast failed"
	for i in {1..8}; do
		in_ns "h$i" nstat -asz TcpExtTCPTimeouts TcpRetransSegs
	done | awk '$1 ~ /Tcp/ { n[$1] += $2 } END { printf "timeouts=%d retrans=%d\n", n["TcpExtTCPTimeouts"], n["TcpRetransSegs"] }' |
		tee "$TMP/counts"
	expect "retransmissions" "$(field retrans <"$TMP/counts")" -ge 1000
	expect "timeouts" "$(field timeouts <"$TMP/counts")" -eq 0
}
declare_test incast_losses "" "256 answers that lose most of their first windows: no timeout"

# --- bottlenecks that do not stamp ---------------------------------------------------

# unstamped KIND PLACE: h1 -- s1 -- s2 -- r, with a node of 1 Gb/s (red: 10 Gb/s), and, "before" or
# "behind" it, a bottleneck of a tenth of that which does not stamp: a policer, a tail-drop queue,
# or RED that marks from a queue of 20 packets on
unstamped()
{
	local node=s1 limit=s2

	[ "$2" = behind ] || { node=s2; limit=s1; }
	case $1 in
	policer)
		chain 2 5ms
		node "$node" egress 1gbit
		in_ns "$limit" tc qdisc add dev ingress clsact &&
			in_ns "$limit" tc filter add dev ingress ingress pref 1 matchall action police \
				rate 100mbit burst 60k conform-exceed drop/ok || fail "no policer" ;;
	fifo)
		chain 2 5ms
		node "$node" egress 1gbit
		shaper "$limit" egress 100mbit
		in_ns "$limit" tc qdisc add dev egress parent 1:1 handle 2: pfifo limit 50 ;;
	red)
		chain 2 1ms
		node "$node" egress 10gbit
		shaper "$limit" egress 1gbit
		in_ns "$limit" tc qdisc add dev egress parent 1:1 handle 2: red limit 3000000 min 30280 \
			max 30281 avpkt 1514 burst 20 probability 1 bandwidth 1gbit ecn || fail "no red" ;;
	esac
	every sysctl -qw net.ipv4.tcp_ecn=1
	serve r --cc dctcp
	LIMITED=$limit
}

# together SECONDS CONTROL...: one flow each from h1 to r. Leaves what they retransmitted in
# RETRANS, and their Mb/s in MBPS
together()
{
	local seconds=$1 i=0 cc before

	shift
	before=$(retransmitted)
	for cc; do
		in_ns h1 flowgen long --to 10.0.0.1 --cc "$cc" --duration "${seconds}s" >"$TMP/flow.$i" &
		i=$((i + 1))
	done
	# shellcheck disable=SC2046 # numbers
	wait $(jobs -p | tail -n $#)
	RETRANS=$(($(retransmitted) - before)) MBPS=()
	for ((i = 0; i < $#; i++)); do
		MBPS+=("$(jq -rs 'map(select(.type == "flow"))[0].goodput_bps / 1e6 | round' "$TMP/flow.$i")")
	done
	echo "$*: ${MBPS[*]} Mb/s, $RETRANS retransmissions"
}

retransmitted()
{
	in_ns h1 nstat -asz TcpRetransSegs | awk '/Tcp/ { print $2 }'
}

# as_reno KIND RIVAL: in such a bottleneck hpccpp loses what Reno loses, and leaves RIVAL its share
as_reno()
{
	local place reno

	needs_virtual
	for place in before behind; do
		echo "# $1 $place the node"
		unstamped "$1" "$place"
		together 4 reno
		reno=$RETRANS
		RATE=${MBPS[0]}
		trace_on hpccpp/hpccpp_mode
		together 4 hpccpp
		trace_off "$TMP/trace"
		expect "causes of fallbacks" "$(field cause <"$TMP/trace" | paste -sd' ')" = unstamped
		expect "fallbacks as unstamped, counted" "$(counter h1 hpccpp Unstamped)" -eq 1
		expect "retransmissions, Reno's $reno" "$RETRANS" -le $((2 * reno))
		expect "Mb/s, Reno's $RATE" "${MBPS[0]}" -ge $((RATE * 8 / 10))
		together 4 hpccpp "$2"
		expect "Mb/s, of twice $2's" "${MBPS[0]}" -le $((2 * MBPS[1]))
		teardown
	done
}

unstamped_policer()
{
	as_reno policer cubic
}
declare_test unstamped_policer "H17" "a policer before or behind a node: hpccpp runs as Reno, also beside CUBIC"

unstamped_fifo()
{
	as_reno fifo cubic
}
declare_test unstamped_fifo "H17" "a tail-drop queue before or behind a node: hpccpp runs as Reno, also beside CUBIC"

unstamped_red()
{
	local i

	as_reno red dctcp
	unstamped red behind
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.3
	for ((i = 0; i < 30; i++)); do
		sleep 0.02
		in_ns s2 tc -s -j qdisc show dev egress | jq 'map(select(.kind == "red"))[0].qlen'
	done | sort -n >"$TMP/queue"
	wait $!
	echo "queue, packets: $(paste -sd' ' "$TMP/queue")"
	expect "longest queue, packets" "$(tail -n 1 "$TMP/queue")" -le 60
}
declare_test unstamped_red "H17" "RED that marks before or behind a node: hpccpp runs as DCTCP, also beside it"

# Each flow finds out by itself.
unstamped_flows()
{
	local reno

	needs_virtual
	unstamped policer before
	together 4 reno reno reno reno
	reno=$RETRANS
	together 4 hpccpp hpccpp hpccpp hpccpp
	expect "fallbacks as unstamped, counted" "$(counter h1 hpccpp Unstamped)" -ge 4
	expect "retransmissions, Reno's $reno" "$RETRANS" -le $((2 * reno))
}
declare_test unstamped_flows "H17" "four flows behind a policer lose no more than twice what four of Reno's do"

# The limit goes after a second: Reno's window grows until the node is the bottleneck.
unstamped_return()
{
	needs_virtual
	unstamped policer behind
	trace_on hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 6s --interval 500ms >"$TMP/flow.json" &
	sleep 1
	in_ns "$LIMITED" tc filter del dev ingress ingress pref 1 || fail "no policer to remove"
	wait $!
	trace_off "$TMP/trace"
	expect "causes" "$(field cause <"$TMP/trace" | paste -sd' ')" = "unstamped telemetry"
	expect "control in the end" "$(flow_field cc)" = hpccpp
	expect "returns, counted" "$(counter h1 hpccpp Returns)" -eq 1
	expect "goodput of the whole flow, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 450
}
declare_test unstamped_return "H17" "when the unstamped limit goes, hpccpp returns"

# Losses at a node, however many: its queue explains them.
stamped_losses()
{
	needs_virtual
	dumbbell 8 100us
	node sw egress 1gbit
	in_ns sw tc qdisc change dev egress parent 2:1 bfifo limit 60000
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 32 --duration 1s >"$TMP/flow.json" || fail "flows failed"
	expect "retransmissions" "$(retransmitted)" -ge 10
	expect "fallbacks" "$(counter h1 hpccpp Fallbacks)" -eq 0
}
declare_test stamped_losses "H17" "losses at a node are no reason to fall back"

# --- earlier faults: each test fails if its fault comes back -------------------------

# windows CAUSE: the W (bytes) of each hpccpp_window line of that cause in $TMP/trace
windows()
{
	grep "cause=$1 " "$TMP/trace" | field w_q8 | awk '{ print $1 / 256 }'
}

# drop_data SET: sw drops the data packets from h1 whose number, from 0, is in the nft set
drop_data()
{
	in_ns sw nft -f - <<-END || fail "nft"
		table ip t {
			chain f {
				type filter hook forward priority 0;
				iifname "p1" ip length > 500 numgen inc mod 1000000 $1 drop
			}
		}
	END
}

counters_wrap()
{
	needs_virtual
	# txBytes wraps after 43 ms at 25 Gb/s: two probes an RTT apart cannot be compared
	dumbbell 1 40ms
	node sw egress 25gbit
	serve r
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	send --duration 500ms
	trace_off "$TMP/trace"
	expect "measured samples" "$(results 0)" -ge 5
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
	# the receiver's buffer limits it, not the first window: 10 packets per RTT are 2.9 Mb/s
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 100
}
declare_test counters_wrap "H16" "an RTT as long as a counter's wrap: probes are more frequent, and the window grows"

path_alternates()
{
	local i

	needs_virtual
	dumbbell 1 5ms
	node sw egress 1gbit switch-id 1
	serve r
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	for ((i = 0; i < 90; i++)); do
		in_ns sw tc qdisc change dev egress root int switch-id $((i % 4000 + 1))
		sleep 0.003
	done
	wait $!
	trace_off "$TMP/trace"
	expect "first mode" "$(grep hpccpp_mode "$TMP/trace" | field cause | head -n1)" = unmeasured
	expect "mode after the last change" "$(grep hpccpp_mode "$TMP/trace" | field cause | tail -n1)" = telemetry
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 100
}
declare_test path_alternates "H16 H17" "a path that changes with every probe: fallback, not a window that stands still; HPCC++ again when it stays"

loss_never_raises()
{
	needs_virtual
	load base_rtt_ns=1000000
	dumbbell 1 1ms
	node sw egress 50mbit
	in_ns h1 tc qdisc add dev eth0 root netem limit 100000 loss 2%
	serve r
	trace_on hpccpp/hpccpp_window
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 40 --duration 800ms >/dev/null 2>&1
	trace_off "$TMP/trace"
	expect "losses with W below 2 packets" "$(grep cause=loss "$TMP/trace" | field wc_q8 | awk '$1 < 2 * 1448 * 256 { n++ } END { print n + 0 }')" -ge 10
	expect "losses that raised W" "$(awk "$VALUES"'/cause=(loss|timeout)/ && v["w_q8"] > v["wc_q8"] { n++ } END { print n + 0 }' "$TMP/trace")" -eq 0
}
declare_test loss_never_raises "" "40 flows with windows below two packets: no loss or timeout raises W"

connected_again()
{
	needs_virtual
	rmmod int_reflector
	dumbbell 1 1ms
	node sw egress 1gbit
	sink
	in_ns h1 python3 - <<-'END' >"$TMP/controls" || fail "transfer failed"
		import ctypes, socket, time
		def control():
		    return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
		s = socket.socket()
		s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"hpccpp")
		s.connect(("10.0.0.1", 5299))
		s.sendall(b"x" * 2000000)
		time.sleep(0.1)
		print(control())
		ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
		s.connect(("10.0.0.1", 5299))
		print(control())
	END
	expect "control before and after" "$(paste -sd' ' "$TMP/controls")" = "hpccpp_reno hpccpp"
}
declare_test connected_again "H17" "a socket in fallback that is disconnected and connected again is hpccpp again"

cwnd_clamp()
{
	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.0.1.254 cwnd lock 20
	serve r
	# the stack reads the limit from its metrics of the peer
	in_ns h1 sysctl -qw net.ipv4.tcp_no_metrics_save=0
	in_ns h1 bash -c ": >/dev/tcp/10.0.0.1/5201"
	wait_until in_ns h1 sh -c "ip tcp_metrics show | grep -q ."
	trace_on hpccpp/hpccpp_window
	send --size 2M
	trace_off "$TMP/trace"
	expect "windows" "$(windows telemetry | wc -l)" -ge 10
	expect "largest W, packets" "$(windows telemetry | sort -g | tail -n1 | awk '{ print $1 / 1448 }')" -le 20
}
declare_test cwnd_clamp "H5" "the route's cwnd limits W, too"

probe_route()
{
	local steps=() i

	needs_virtual
	dumbbell 1 1ms
	# rules know the DSCPs of the old TOS bits everywhere, others on new kernels and with a new ip
	parameter dscp=5
	PARAM=$REFLECTOR parameter dscp=5
	node sw egress 1gbit dscp 5
	# what has the probes' DSCP goes elsewhere
	ip -n "${NSP}h1" link add elsewhere type dummy
	ip -n "${NSP}h1" link set elsewhere up
	ip -n "${NSP}h1" route add default dev elsewhere table 200
	ip -n "${NSP}h1" rule add dsfield 0x14 table 200 || fail "no rule"
	# the socket's route expires while nothing is in flight: then the probe is sent first
	for ((i = 1; i <= 20; i++)); do
		steps+=("run=ip -n ${NSP}h1 route replace 192.0.2.0/24 via 10.0.1.254 metric $i" send=1000 sleep=0.01)
	done
	sink
	client 10.0.0.1 send=100000 sleep=0.05 "${steps[@]}" info
	expect "packets that went elsewhere" "$(in_ns h1 cat /sys/class/net/elsewhere/statistics/tx_packets)" -le 1
	expect "control" "$(field cc <"$TMP/client" | tail -n1)" = hpccpp
}
declare_test probe_route "H8 H18" "a probe's DSCP does not change the route of its flow"

chosen_in_handshake()
{
	needs_virtual
	dumbbell 1 20ms
	node sw egress 1gbit
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 3
	sink
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	in_ns h1 timeout 60 python3 "$LIB/talk.py" to 10.0.0.1 --close connect-cc=hpccpp send=100000 >"$TMP/client" ||
		fail "transfer failed"
	stop_captures
	packets "$TMP/h.pcap" 'tcp.dstport == 5299' int.type tcp.len frame.time_relative tcp.flags.syn >"$TMP/sent"
	expect "packets until the handshake's ACK, kinds" "$(awk -F'\t' '{ print $1 ":" $2 } NR == 2 { exit }' "$TMP/sent" | paste -sd' ')" = ":0 :0"
	expect "data packets in the first RTT" "$(awk -F'\t' '$1 == "" && $2 > 500 { if (!n) t = $3; if ($3 - t < 0.018) n++ } END { print n }' "$TMP/sent")" -le 4
}
declare_test chosen_in_handshake "H8" "chosen during the handshake: no probe before its end, and the route's initcwnd applies"

retransmits_at_once()
{
	twenty_at_once
	# only the second to the fourth of 20 packets arrive: three SACKs, 16 packets in flight, and
	# W is 10
	drop_data '{ 0, 4-19 }'
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	client 10.0.0.1 send=28960
	stop_captures
	expect "packets sent at once" "$(packets "$TMP/h.pcap" 'tcp.dstport == 5299 && tcp.len > 500 && frame.time_relative < 0.09' tcp.seq | sort -u | wc -l)" -eq 20
	packets "$TMP/h.pcap" 'tcp.dstport == 5299 && tcp.len > 500' tcp.seq frame.time_relative >"$TMP/data"
	expect "first retransmission after the first data, ms" "$(awk -F'\t' 'NR == 1 { t = $2 } seen[$1]++ { printf "%.1f\n", ($2 - t) * 1000; exit }' "$TMP/data")" -le 80
}
declare_test retransmits_at_once "" "in recovery an ACK releases a retransmission, although more than W is in flight"

rack_retransmits()
{
	twenty_at_once
	every sysctl -qw net.ipv4.tcp_ecn=1
	# Only the second and the third of 20 packets arrive: two SACKs, so that RACK waits for a
	# quarter of the RTT. They are marked, so W is 10; 17 packets are in flight, and no ACK comes.
	drop_data '{ 0, 3-19 }'
	in_ns sw nft add rule ip t f iifname p1 ip length '>' 500 ip ecn set ce || fail "nft"
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	client 10.0.0.1 send=28960
	stop_captures
	packets "$TMP/h.pcap" 'tcp.dstport == 5299 && tcp.len > 500' tcp.seq frame.time_relative >"$TMP/data"
	# the timeout comes after 250 ms or more
	between "first retransmission after the first data, ms" "$(awk -F'\t' 'NR == 1 { t = $2 } seen[$1]++ { printf "%.1f\n", ($2 - t) * 1000; exit }' "$TMP/data")" 62 90
}
declare_test rack_retransmits "" "RACK's timer starts recovery: the retransmission leaves at once, although more than W is in flight"

longer_path()
{
	local t

	needs_virtual
	dumbbell 1 100us
	node sw egress 1gbit
	serve r
	trace_on hpccpp/hpccpp_window
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 100ms >"$TMP/flow.json" &
	sleep 0.03
	in_ns sw tc qdisc change dev p1 root netem delay 1ms limit 1000000
	sleep 0.06
	t=$(grep cause=telemetry /sys/kernel/tracing/trace | field t_ns | tail -n1)
	wait $!
	trace_off "$TMP/trace"
	between "T after 60 RTTs, us" "$((t / 1000))" 990 1200
	expect "W at the end, packets" "$(windows telemetry | tail -n1 | awk '{ print $1 / 1448 }')" -ge 70
}
declare_test longer_path "H5" "T follows a path that gets longer, within 100 RTTs"

# t_behind MOST OPTION...: T of a flow of h1 that begins beside a flow of h2 with these options
# of flowgen, microseconds: 90 to MOST
t_behind()
{
	local most=$1

	shift
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on hpccpp/hpccpp_window
	in_ns h2 flowgen long --to 10.0.0.1 --cc reno --duration 80ms "$@" >/dev/null &
	sleep 0.04
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 30ms >/dev/null || fail "flow failed"
	trace_off "$TMP/trace"
	stop_captures
	wait $!
	expect "RTT of the handshake, us" "$(packets "$TMP/h.pcap" 'tcp.flags.syn == 1' frame.time_relative | awk 'END { print int($1 * 1e6) }')" -ge 900
	between "T, us ($*)" "$(($(grep cause=telemetry "$TMP/trace" | field t_ns | tail -n1) / 1000))" 90 "$most"
}

behind_a_queue()
{
	needs_virtual
	dumbbell 2 100us
	node sw egress 1gbit
	# the receive window limits the other flow: most of it waits
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 131072 262144"
	serve r
	t_behind 250
	# the send buffer does: it is refilled by thirds, and the queue rises and falls
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 131072 6291456"
	t_behind 600 --sndbuf 512Ki
}
declare_test behind_a_queue "H5" "a flow that begins behind a queue does not take the queue for a part of T"

retransmission_rtt()
{
	local i

	needs_virtual
	dumbbell 1 1900us
	node sw egress 1gbit
	data_meets h1 eth0 loss 3%
	serve r
	trace_on hpccpp/hpccpp_window
	# more than one: losses that no node explains soon end HPCC++
	for ((i = 0; i < 8; i++)); do
		in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 50ms >/dev/null
	done
	trace_off "$TMP/trace"
	expect "losses" "$(grep -c cause=loss "$TMP/trace")" -ge 5
	expect "smallest T, ns" "$(field t_ns <"$TMP/trace" | sort -n | head -n1)" -ge 1890000
}
declare_test retransmission_rtt "" "T, 1.9 ms, is not the RTT of a retransmission, which is in whole milliseconds"

# --- parameters, unloading -------------------------------------------------------

parameters()
{
	needs_virtual	# with all checkers on each refusal takes half a second
	refused eta_permille=99 eta_permille=1001 max_stage=256 flows=1000001 w_ai_bytes=1048577 base_rtt_ns=1000000001 \
		line_rate_mbps=1600001 line_rate_device=2 probe_rtts=0 probe_rtts=17 probe_room=0 probe_room=15 probes_lost=0 \
		probes_lost=13 probe_packets=65 reprobe_max_ms=0 dscp=64 receiver_based=2 wc_previous=2 queue_per_rtt=2 eta_permille=x dscp=-1
	PARAM=$REFLECTOR refused dscp=64 max_rate=0
	refused_at_load eta_permille=0
	load eta_permille=900 flows=10
}
declare_test parameters "H5" "wrong parameters are refused with a reason, the old value stays"

eta_and_pace()
{
	needs_virtual
	load eta_permille=800 flows=100 base_rtt_ns=100000 probe_rtts=3 dscp=40
	PARAM=$REFLECTOR parameter dscp=40
	dumbbell 1 99us
	node sw egress 10gbit dscp 40
	serve r
	observe 10gbit --from 10ms --to 30ms
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 40M
	stop_captures
	observed
	between "utilisation at eta 80 %" "$(seen utilisation)" 0.79 0.82
	expect "DSCP" "$(packets "$TMP/h.pcap" int.type ip.dsfield.dscp | sort -u)" = 40
	expect "probes less than 3 RTTs apart" "$(packets "$TMP/h.pcap" 'int.type == 1' frame.time_epoch | awk 'NR > 1 && $1 - last < 0.000295 { n++ } { last = $1 } END { print n + 0 }')" -eq 0
}
declare_test eta_and_pace "H5 H8 H10" "eta 80 %, a probe per 3 RTTs, another DSCP"

unload()
{
	dumbbell 1 100us
	node sw egress 1gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >/dev/null &
	sleep 0.3
	! rmmod tcp_hpccpp 2>/dev/null || fail "unloaded while in use"
	! rmmod sch_int 2>/dev/null || fail "sch_int unloaded while in use"
	rmmod int_reflector || fail "the reflector cannot be unloaded under traffic"
	modprobe int_reflector
	wait $!
	teardown
	unloaded
	wait_until rmmod sch_int
	rmmod int_reflector
	modprobe -a sch_int int_reflector tcp_hpccpp || fail "cannot load again"
}
declare_test unload "" "unloading is refused while in use, except for the reflector, and works afterwards"

# Everything at once, so that the kernel's checkers see it
stress()
{
	local i

	dumbbell 2 1ms
	every sysctl -qw net.ipv4.tcp_ecn=1
	node sw egress 100mbit sojourn
	storm 3
	in_ns sw int_hostile 1000 2 >/dev/null &
	in_ns sw int_hostile -6 1000 2 >/dev/null &
	sink
	for i in 1 2 3; do
		sleep 0.3
		parameter receiver_based=$((i % 2)) probe_room=$((i * 2)) line_rate_device=$((i % 2))
		in_ns h1 ip link add "v$i" type veth peer name "w$i"
		in_ns h1 ip link set "v$i" up
		in_ns h1 ip link set "w$i" up
		in_ns h1 ip link set "w$i" netns "${NSP}r"
		in_ns sw tc qdisc change dev egress root int rate $((i * 10))mbit switch-id "$i"
		rmmod int_reflector
		sleep 0.05
		modprobe int_reflector
	done
	switch_controls h1 10.0.0.1 hpccpp cubic reno dctcp
	in_ns sw tc qdisc replace dev egress parent 1:1 pfifo limit 10
	vanish h2
	sleep 0.3
	in_ns sw tc qdisc del dev egress root
	in_ns r cat /proc/net/int_reflector
	teardown
	load
}
declare_test stress "" "loss, switches, parameters, nodes and namespaces that are added and deleted: nothing breaks"

run_tests "$@"
