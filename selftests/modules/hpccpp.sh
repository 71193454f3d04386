#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ end to end: tcp_hpccpp, int_reflector and sch_int, judged by packets and tracepoints.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"
# shellcheck source=../lib/telemetry.sh
. "$LIB/telemetry.sh"

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
	judged int-probes "$TMP/h.pcap" 98.5
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
	judged hpccpp-model "$TMP/h.pcap" "$TMP/trace" 10
	expect "windows" "$(field windows <"$TMP/judged")" -ge 180
	expect "largest difference of U" "$(field u_difference <"$TMP/judged")" -le 0.00001
	expect "largest difference of W, relative" "$(field w_difference <"$TMP/judged")" -le 0.0001
	expect "wrong stages" "$(field wrong_stages <"$TMP/judged")" -eq 0
}

# ifa_flow TO: utilisation and the queue's p99 of a long flow, and what its messages look like at the node
ifa_flow()
{
	dumbbell 1 100us
	node sw egress 10gbit switch-id 77
	serve r
	observe 10gbit --from 5ms --to 18ms
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "ip proto 253 or ip6 proto 253 or $MESSAGES"
	trace_on hpccpp/hpccpp_mode
	TO=$1 send --size 24M
	trace_off "$TMP/trace"
	stop_captures
	observed
	expect "changes of mode" "$(wc -l <"$TMP/trace")" -eq 0
	expect "wrong checksums" "$(($(counter r int_reflector Checksum) + $(counter h1 hpccpp Checksum)))" -eq 0
	expect "control in use" "$(flow_field cc)" = hpccpp
	expect "queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
}

# judged_stamps FIELD: what judge.py has found in ifa_flow's capture; scripts/int.lua sees the node in the same packets
judged_stamps()
{
	local found

	found=$(field found <"$TMP/judged")
	expect "probes that the node stamped, and their answers" "$found" -ge $((2 * $(counter r int_reflector Answered)))
	expect "probes and answers without metadata" "$(field bare <"$TMP/judged")" -eq 0
	expect "wrong lengths, checksums or metadata" "$(field wrong <"$TMP/judged")" -eq 0
	! command -v tshark >/dev/null || expect "$1 in Wireshark" "$(TSHARK=1 count "$TMP/r.pcap" "$1 == 77")" -eq "$found"
}

ifa()
{
	local to old

	needs_virtual
	ifa_flow 10.0.0.1
	old=$(seen utilisation)
	expect "packets of IFA and INT without format=1 and 2" "$(TSHARK=1 count "$TMP/r.pcap" 'ifa || int_md')" -eq 0
	teardown
	# INT: the metadata are in TCP's payload
	for to in 10.0.0.1 fd00:0::1; do
		load format=2
		PARAM=$INT_HOST parameter int_mbps=10000
		ifa_flow "$to"
		between "utilisation by INT / by the draft's format, to $to" "$(awk -v a="$(seen utilisation)" -v b="$old" 'BEGIN { print a / b }')" 0.99 1.01
		judged int-md "$TMP/r.pcap" 77
		judged_stamps int_md.node
		expect "responses accepted" "$(counter h1 hpccpp Accepted)" -ge $(($(counter h1 hpccpp Probes) - 2))
		expect "probes" "$(counter h1 hpccpp Probes)" -ge 180
		teardown
	done
	for to in 10.0.0.1 fd00:0::1; do
		load format=1
		ifa_flow "$to"
		between "utilisation by IFA / by the draft's format, to $to" "$(awk -v a="$(seen utilisation)" -v b="$old" 'BEGIN { print a / b }')" 0.99 1.01
		judged ifa "$TMP/r.pcap" 77 10000
		judged_stamps ifa.device
		expect "responses accepted" "$(counter h1 hpccpp Accepted)" -ge $(($(counter h1 hpccpp Probes) - 2))
		teardown
	done
	# a switch whose codes are others: 10 Gb/s are taken for 5
	load format=1
	PARAM=$INT_HOST parameter ifa_speeds=5000
	ifa_flow 10.0.0.1
	between "utilisation with ifa_speeds=5000 / without" "$(awk -v a="$(seen utilisation)" -v b="$old" 'BEGIN { print a / b }')" 0.48 0.53
}
declare_test ifa "H21 H22 H26" "probes of IFA 2.0 and INT-MD 2.1, IPv4 and IPv6: stamped as a switch would, the same utilisation and queue"

# Three flows whose probes have three formats, by one node: as three of the draft's format
formats_mixed()
{
	local kind i pids use='' jain

	needs_virtual
	for kind in "0 0 0" "0 1 2"; do
		PARAM=$INT_HOST parameter int_mbps=10000
		dumbbell 3 100us
		node sw egress 10gbit
		serve r
		observe 10gbit --from 10ms --to 30ms
		pids=()
		for i in 1 2 3; do
			parameter format="$(cut -d' ' -f"$i" <<<"$kind")"
			in_ns "h$i" flowgen long --to 10.0.0.1 --cc hpccpp --duration 30ms >/dev/null &
			pids+=($!)
			sleep 0.002
		done
		wait "${pids[@]}"
		observed
		for i in 1 2 3; do
			expect "$kind: connections of h$i that left the format" "$(counter "h$i" hpccpp OldFormat)" -eq 0
		done
		[ "$use" ] || { use=$(seen utilisation); jain=$(seen jain); }
		between "$kind: Jain's index / that of one format" "$(awk -v a="$(seen jain)" -v b="$jain" 'BEGIN { print a / b }')" 0.95 1.1
		expect "$kind: queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
		between "$kind: utilisation / that of one format" "$(awk -v a="$(seen utilisation)" -v b="$use" 'BEGIN { print a / b }')" 0.99 1.01
		teardown
	done
}
declare_test formats_mixed "H21 H22" "flows with probes of three formats at one node share it and use it as those of one"

# IFA where it cannot be: the old format once, then Reno; the cause is counted
ifa_refused()
{
	local i

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	# a port below 10 Gb/s has no code in IFA; with sojourn there is no place for it; INT has no rate
	for i in "1 1gbit" "1 10gbit sojourn" "2 10gbit sojourn" "2 10gbit"; do
		load format="${i%% *}"
		dumbbell 1 100us
		# shellcheck disable=SC2086 # words
		node sw egress ${i#* }
		serve r
		send --size 3M
		expect "$i: control in use" "$(flow_field cc)" = hpccpp
		expect "$i: connections that left IFA" "$(counter h1 hpccpp OldFormat)" -eq 1
		expect "$i: fallbacks" "$(counter h1 hpccpp Fallbacks)" -eq 0
		teardown
	done
	# a firewall drops the protocol; a receiver of 0.2 knows no metadata before a message
	for i in "1 meta l4proto 253" "2 tcp flags psh @th,160,8 0x10"; do
		load format="${i%% *}"
		PARAM=$INT_HOST parameter int_mbps=10000
		dumbbell 1 100us
		node sw egress 10gbit
		in_ns r nft "add table inet t; add chain inet t c { type filter hook prerouting priority -500; }; add rule inet t c ${i#* } drop" || fail "nft"
		serve r
		send --size 10M
		expect "$i: control in use" "$(flow_field cc)" = hpccpp
		expect "$i: connections that left the format" "$(counter h1 hpccpp OldFormat)" -eq 1
		expect "$i: probes answered" "$(counter r int_reflector Answered)" -ge 20
		in_ns h1 "$(dirname "$LOWQ_TC")/lowq-check" --control hpccpp >"$TMP/check" 2>&1
		expect "$i: lowq-check names it" "$(grep -c 'old-format' "$TMP/check")" -eq 1
		teardown
	done
	# no node at all: IFA, the old format, Reno
	load format=1
	dumbbell 1 100us
	shape 10gbit
	serve r
	send --size 10M
	expect "no node: control in use" "$(flow_field cc)" = hpccpp_reno
	expect "no node: connections that left IFA" "$(counter h1 hpccpp OldFormat)" -eq 1
	expect "no node: fallbacks" "$(counter h1 hpccpp Fallbacks)" -eq 1
}
declare_test ifa_refused "H17 H21 H22" "where IFA or INT cannot be, the old format once, then Reno: slow ports, sojourn, no rate, a firewall, an older receiver, no node"

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
	judged first-flight "$TMP/h.pcap" --rtt 99 --flight 90 --pace 1.1
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
		checksums_sent h1
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
			judged int-stamps "$TMP/s$i.pcap" "$(in_ns "s$i" cat /sys/class/net/egress/address)" "$i"
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
	judged int-queue "$TMP/any.pcap" 10.0.0.1
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
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" "$MESSAGES"
	trace_on hpccpp/hpccpp_window
	send --size 40M
	trace_off "$TMP/trace"
	stop_captures
	observed
	PARAM=$REFLECTOR parameter base_rtt_ns=0
	between "utilisation" "$(seen utilisation)" 0.94 0.96
	expect "queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
	# one answer per probe, once per T, and shorter than the probe: it has no telemetry
	judged receiver-windows "$TMP/h.pcap" "$TMP/trace" 99
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
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "$MESSAGES"
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

# The last probe before each of six pauses is lost, and four are enough for fallback
idle_after_loss()
{
	local i sends=()

	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	sink
	for i in 1 2 3 4 5 6; do
		sends+=(send=20000 acked sleep=0.01)
	done
	in_ns sw tc qdisc add dev p1 clsact
	trace_on hpccpp/hpccpp_mode
	# answers to probes come back by p1; they are PSH without ACK
	client 10.0.0.1 send=2000000 acked \
		"run=tc -n ${NSP}sw filter add dev p1 egress protocol ip pref 1 flower ip_proto tcp tcp_flags 0x08/0x1f action drop" \
		sleep=0.1 "${sends[@]}" "run=tc -n ${NSP}sw filter del dev p1 egress pref 1" \
		sleep=1 send=2000000 acked
	trace_off "$TMP/trace"
	cat "$TMP/client" "$TMP/trace"
	expect "control in the end" "$(field cc <"$TMP/client")" = hpccpp
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
}
declare_test idle_after_loss "H17" "a probe that was lost before a pause does not count after it"

reprobe()
{
	needs_virtual
	rmmod int_reflector
	dumbbell 1 1ms
	node sw egress 10mbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 30s >/dev/null || fail "flow failed"
	between "probes in 30 s" "$(counter h1 hpccpp Probes)" 30 50
}
declare_test reprobe "H17" "in fallback the interval between probes grows to a second"

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
			SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "$MESSAGES"
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
	expect "data segments longer than a packet" "$(count "$TMP/h.pcap" 'tcp.len > 3000')" -ge 100
	expect "probes, their lengths" "$(packets "$TMP/r.pcap" 'int.type == 1' frame.len ip.dsfield.dscp | sort -u)" = "$(printf '122\t23')"
	expect "probes at the receiver" "$(count "$TMP/r.pcap" 'int.type == 1')" -eq "$(counter h1 hpccpp Probes)"
	# order: a probe arrives after the same data segments after which it was sent
	judged overtaken "$TMP/r.pcap" "$TMP/h.pcap"
	expect "probes that another segment has overtaken" "$(field overtaken <"$TMP/judged")" -eq 0
	expect "control" "$(flow_field cc)" = hpccpp
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 7500
}
declare_test offloads "H10" "TSO and GRO on: probes are never merged, split or overtaken"

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
	judged busiest "$TMP/trace"
	expect "the busiest link, before and after" "$(field links <"$TMP/judged")" = 1:5000,0:2500
	between "mean U at the end" "$(field u <"$TMP/judged")" 0.93 0.98
}
declare_test two_bottlenecks "H1" "two bottlenecks in series: the tighter one controls the flow, also after it changes"

slower_link()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 4 --duration 40ms >"$TMP/flow.json" &
	sleep 0.02
	set_rate sw egress 2:1 500mbit
	in_ns sw tc qdisc change dev egress root int rate 500mbit
	wait $!
	expect "fall-backs" "$(counter h1 hpccpp Fallbacks)" -eq 0
}
declare_test slower_link "H17" "a link that becomes 20 times slower makes answers late: that is no loss of telemetry"

# --- the start of a flow, and losses -----------------------------------------------

# A flow starts with its first data, which may have left with the SYN or under another control
begins_late()
{
	needs_virtual
	SYSCTL=net.ipv4.tcp_fastopen=0x607 dumbbell 1 1ms
	node sw egress 1gbit
	sink
	client 10.0.0.1 fastopen=1000 writes=20,3000,0.01
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

small_flights()
{
	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	sink
	client 10.0.0.1 writes=20,1000,0.01 acked info "run=ss -N ${NSP}h1 -tiH >$TMP/small" \
		send=100000 acked "run=ss -N ${NSP}h1 -tiH >$TMP/large"
	expect "probes of a connection that sends less than a packet at a time, and then 69" "$(counter h1 hpccpp Probes)" -le 20
	expect "its control" "$(field cc <"$TMP/client")" = hpccpp
	expect "T with a state, and without" "$(grep -o 'mrtt:[0-9.]*' "$TMP/large" "$TMP/small" | cut -d: -f3 | paste -sd' ')" = "1 0"
	# more data follows before the first is acknowledged: a probe leaves ahead of it
	client 10.0.0.1 send=100 send=1000000 acked
	expect "probes of one that sends more" "$(counter h1 hpccpp Probes)" -ge 5
	expect "fall-backs" "$(counter h1 hpccpp Fallbacks)" -eq 0
}
declare_test small_flights "H8" "less than a packet in flight: no state, no probe, and no fall-back"

# RTT 40 ms: 30 packets follow at once, while the first byte is in flight
small_behind()
{
	needs_virtual
	dumbbell 1 40ms
	node sw egress 1gbit
	sink
	capture h1 eth0 "$TMP/h.pcap" tcp
	client 10.0.0.1 set=6,1,1 send=1 sleep=0.001 send=43440 acked
	stop_captures
	expect "data packets before the first probe" "$(packets "$TMP/h.pcap" 'tcp.len > 0 && tcp.dstport == 5299' 'int.type' | awk '$1 == 1 { exit } { n++ } END { print n + 0 }')" -eq 1
}
declare_test small_behind "H8" "data while less than a packet is in flight: its probe leaves ahead of it"

# A timeout of less than a packet leaves cwnd at one, and nothing raises that before a flow begins.
small_timeout()
{
	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	dumbbell 1 20ms
	node sw egress 1gbit
	sink
	# and its tail loss probe
	drop_data '{ 0, 1 }'
	client 10.0.0.1 send=800 acked info=small_ sleep=1 send=20000 info=large_ acked
	expect "retransmissions" "$(field small_retrans <"$TMP/client")" -eq 2
	expect "cwnd after the timeout" "$(field small_cwnd <"$TMP/client")" -le 2
	expect "cwnd after a pause" "$(field large_cwnd <"$TMP/client")" -eq 10
}
declare_test small_timeout "H4" "a flow whose first packet of data follows a small one's timeout and a pause starts as a new one does"

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
	judged hpccpp-timeouts "$TMP/trace" $((2 * 1448))
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
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
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
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
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
# be lost again, and with nothing else in flight only the timeout would be left. The windows of new
# connections are less than a packet then, and what seems to be in flight may all be lost.
incast_losses()
{
	local i to=() how

	needs_virtual
	dumbbell 8 100us
	node sw egress 10gbit
	in_ns sw tc qdisc change dev egress parent 2:1 bfifo limit 1000000
	for i in {1..8}; do
		serve "h$i" --cc hpccpp
		to+=("10.0.$i.1")
	done
	for how in "incast --fan 256 --jitter 10us" "rpc --closed 256 --requests 256"; do
		# shellcheck disable=SC2086 # words
		in_ns r flowgen $how --to "$(IFS=,; echo "${to[*]}")" --size 64k --cc hpccpp --timeout 5s >"$TMP/flows" || fail "incast failed"
		for i in {1..8}; do
			in_ns "h$i" nstat -sz TcpExtTCPTimeouts TcpRetransSegs
		done | awk '$1 ~ /Tcp/ { n[$1] += $2 } END { printf "timeouts=%d retrans=%d\n", n["TcpExtTCPTimeouts"], n["TcpRetransSegs"] }' |
			tee "$TMP/counts"
		expect "$how: retransmissions" "$(field retrans <"$TMP/counts")" -ge 1000
		expect "$how: timeouts" "$(field timeouts <"$TMP/counts")" -eq 0
	done
}
declare_test incast_losses "" "256 answers that lose most of their first windows, on kept and on new connections: no timeout"

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

# largest_u: U in thousandths, of the samples in $TMP/trace
largest_u()
{
	grep hpccpp_sample "$TMP/trace" | field u_q20 | awk '$1 > m { m = $1 } END { printf "%d\n", m * 1000 / 2 ^ 20 }'
}

# restarted HOW STALE <LINES: four flows for 60 ms; in their middle tc does LINES, and the port begins
# to count again. At most STALE samples cannot be compared.
restarted()
{
	dumbbell 1 100us
	node sw egress 10gbit switch-id 5
	serve r
	: >/sys/kernel/tracing/trace
	trace_on hpccpp/hpccpp_sample
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 4 --duration 60ms >"$TMP/flow.json" &
	sleep 0.03
	in_ns sw tc -batch - || fail "tc"
	wait $!
	trace_off "$TMP/trace"
	expect "$1: largest U, thousandths" "$(largest_u)" -le 4000
	expect "$1: samples that cannot be compared" "$(results 2)" -le "$2"
	expect "$1: goodput of all flows, Gb/s" "$(jq -s '[.[] | select(.type == "flow").goodput_bps] | add / 1e9 | floor' "$TMP/flow.json")" -ge 8
	teardown
}

# the port's queue again, as node() makes it, with other handles
port_again()
{
	cat <<-'END'
		qdisc replace dev egress root handle 11: int rate 10gbit switch-id 5
		qdisc add dev egress parent 11:1 handle 12: htb default 1 direct_qlen 100000
		class add dev egress parent 12: classid 12:1 htb rate 10gbit burst 1514 cburst 1514 quantum 1514
		qdisc add dev egress parent 12:1 bfifo limit 20000000
	END
}

counters_restart()
{
	needs_virtual
	restarted "a replaced qdisc" 8 < <(port_again)
	restarted "a new port" 8 < <(echo "qdisc del dev egress root"; port_again)
}
declare_test counters_restart "H16" "a port whose counters begin again: its samples are a new baseline, windows stay"

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

# Where each of many flows begins behind the others' queue, some probes waited less than the records show.
short_path()
{
	needs_virtual
	dumbbell 1 5us
	node sw egress 10gbit
	serve r
	observe 10gbit --from 10ms --to 20ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 64 --duration 21ms >"$TMP/flow.json"
	observed
	expect "queue, mean, packets" "$(printf %.0f "$(seen qlen_pkts.mean)")" -le 10
	between "utilisation" "$(seen utilisation)" 0.93 0.98
}
declare_test short_path "H5" "64 flows at 10 Gb/s, whose RTT of 5 us is 4 packets long, keep no queue"

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
		line_rate_mbps=1600001 line_rate_device=2 probe_rtts=0 probe_rtts=17 probe_room=0 probe_room=15 \
		probe_packets=65 receiver_based=2 wc_previous=2 queue_per_rtt=2 eta_permille=x eta_permille=-1
	PARAM=$REFLECTOR refused max_rate=0
	PARAM=$INT_HOST refused dscp=64 dscp=-1 ifa_speeds= ifa_speeds=x ifa_speeds=-1 ifa_speeds=1600001 ifa_speeds=10000, \
		ifa_speeds=4294977296 ifa_speeds=10000,,25000 "ifa_speeds=10000 25000" ifa_speeds=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
	PARAM=$INT_HOST parameter ifa_speeds=0,0,1600000
	expect "ifa_speeds" "$(<"$INT_HOST/ifa_speeds")" = 0,0,1600000
	wait_until modprobe -r int_reflector
	! modprobe int_reflector old_format=2 2>/dev/null || fail "loaded with old_format=2"
	modprobe int_reflector
	refused_at_load eta_permille=0
	load eta_permille=900 flows=10
}
declare_test parameters "H5" "wrong parameters are refused with a reason, the old value stays"

eta_and_pace()
{
	needs_virtual
	load eta_permille=800 flows=100 base_rtt_ns=100000 probe_rtts=3
	PARAM=$INT_HOST parameter dscp=40
	dumbbell 1 99us
	node sw egress 10gbit dscp 40
	serve r
	observe 10gbit --from 10ms --to 30ms
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" "$MESSAGES"
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

	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 2 1ms
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
