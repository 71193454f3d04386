#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tcp_prague against the Prague draft, as its packets show it.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

modprobe -r tcp_prague 2>/dev/null
modprobe tcp_prague || { echo "1..0 # SKIP no module tcp_prague"; exit $KSFT_SKIP; }

PARAM=/sys/module/tcp_prague/parameters

# load [NAME=VALUE...]: the module anew, as it comes or with parameters
load()
{
	wait_until modprobe -r tcp_prague
	modprobe tcp_prague "$@" || fail "cannot load with $*"
}

# set NAME=VALUE...: parameters of the loaded module; the next test has defaults
parameter()
{
	local p

	for p; do
		echo "${p#*=}" >"$PARAM/${p%%=*}" || fail "parameter $p"
	done
}

needs_accecn()
{
	[ -e /proc/sys/net/ipv4/tcp_ecn_option ] || skip "this kernel has no Accurate ECN"
}

# shape RATE [QDISC...]: the bottleneck. With all checkers on a packet takes longer
# than at the rate asked for: a timer that is always late leaves no CPU to programs.
shape()
{
	local rate=$1

	shift
	virtual || rate=10mbit
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	in_ns sw tc qdisc add dev egress root handle 1: htb default 1 direct_qlen 100000
	in_ns sw tc class add dev egress parent 1: classid 1:1 htb rate "$rate" ceil "$rate" \
		burst 1514 cburst 1514 quantum 1514
	[ $# -eq 0 ] || in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "$@"
}

# lossy SPEC...: netem in place of a bottleneck; "loss X% ecn" marks, not drops
lossy()
{
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	in_ns sw tc qdisc add dev egress root netem limit 100000 "$@"
}

# accecn: both ends of the topology speak it
accecn()
{
	every sysctl -qw net.ipv4.tcp_ecn=3
}

# send [flowgen options]: one flow h1 -> r, IPv4 unless TO says otherwise
send()
{
	in_ns h1 flowgen long --to "${TO:-10.0.0.1}" --cc prague "$@" \
		>"$TMP/flow.json" || fail "flow failed: $(head -c 500 "$TMP/flow.json")"
}

flow_field()
{
	jq -rs "map(select(.type == \"flow\"))[0].$1" "$TMP/flow.json"
}

# For awk: lines of name=value into v[], with the time stamp as v["t"]
# shellcheck disable=SC2016 # it is awk's
VALUES='{ for (i = 1; i <= NF; i++) { split($i, a, "="); v[a[1]] = a[2] } t = $0; sub(/: prague_.*/, "", t); sub(/.* /, "", t); v["t"] = t + 0 }'

# --- ECN field -------------------------------------------------------------

# peer KIND NS: what the other end, in namespace NS, and the path make of ECN
peer()
{
	local dev

	for dev in egress p1; do
		in_ns sw tc qdisc del dev "$dev" clsact 2>/dev/null
	done
	case $1 in
	accecn) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3 ;;
	rfc3168) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=1 ;;
	none) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=0 ;;
	bleached)
		in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3
		for dev in egress p1; do
			in_ns sw tc qdisc add dev "$dev" clsact
			in_ns sw tc filter add dev "$dev" egress protocol ip pref 1 flower ip_proto tcp \
				action pedit munge offset 1 u8 set 0 retain 0x03 pipe csum ip4h &&
				in_ns sw tc filter add dev "$dev" egress protocol ipv6 pref 2 flower ip_proto tcp \
					action pedit munge offset 0 u32 set 0 retain 0x00300000 || fail pedit
		done
		;;
	ace-zeroed)
		in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3
		for dev in egress p1; do
			zero_ace "$dev"
		done
		;;
	esac || fail "cannot make a peer that is $1"
}

# zero_ace DEV [flower MATCH...]: AE, CWR and ECE of what leaves sw there are 0
zero_ace()
{
	local dev=$1

	shift
	in_ns sw tc qdisc add dev "$dev" clsact 2>/dev/null
	in_ns sw tc filter add dev "$dev" egress protocol ip pref 1 flower ip_proto tcp "$@" \
		action pedit munge offset 32 u16 set 0 retain 0x01c0 pipe csum tcp || fail pedit
	in_ns sw tc filter add dev "$dev" egress protocol ipv6 pref 2 flower ip_proto tcp "$@" \
		action pedit munge offset 52 u16 set 0 retain 0x01c0 pipe csum tcp || fail pedit
}

# Every role of Prague, kind of peer and family: a line of words for each flow in
# $TMP/flows: role kind family client's port, control. One capture at each end.
negotiate()
{
	local kind to port

	: >"$TMP/flows"
	for kind in accecn rfc3168 none bleached ace-zeroed; do
		peer "$kind" r
		in_ns h1 sysctl -qw net.ipv4.tcp_ecn=0	# the module asks all the same
		serve r --cc cubic
		for to in 10.0.0.1 fd00:0::1; do
			TO=$to send --size 200k
			echo "client $kind $to $(flow_field sport) $(flow_field cc)" >>"$TMP/flows"
		done
		in_ns r pkill -x flowgen
		wait_until not_listening r 5201

		peer "$kind" h1
		in_ns r sysctl -qw net.ipv4.tcp_ecn=0
		serve r --cc prague
		for to in 10.0.0.1 fd00:0::1; do
			in_ns h1 flowgen long --pull --to "$to" --cc cubic --timeout 60s --size 200k \
				>"$TMP/flow.json" || fail "flow failed, server, $kind, $to"
			echo "server $kind $to $(flow_field sport) -" >>"$TMP/flows"
		done
		in_ns r pkill -x flowgen
		wait_until not_listening r 5201
	done
}

not_listening()
{
	! listening "$@"
}

# fields FILE: what the field was on each packet: sport dport syn len ecn
fields()
{
	packets "$1" tcp tcp.srcport tcp.dstport tcp.flags.syn tcp.len ip.dsfield.ecn ipv6.tclass.ecn |
		awk -F'\t' '{ print $1, $2, ($3 == "1" || $3 == "True"), $4, $5 $6 }'
}

negotiation()
{
	local role kind to port cc file

	needs_virtual
	needs_accecn
	dumbbell 1 1ms
	capture h1 eth0 "$TMP/client.pcap" tcp
	capture r eth0 "$TMP/server.pcap" tcp
	negotiate
	stop_captures
	fields "$TMP/client.pcap" >"$TMP/client"
	fields "$TMP/server.pcap" >"$TMP/server"
	while read -r role kind to port cc; do
		file=$TMP/$role
		[ "$role" = client ] && set -- 1 || set -- 2
		# all packets of Prague's; ECT(1) but SYN; ECT(1) in the second half; not ECT(1)
		read -r all early late other syn < <(awk -v port="$port" -v col="$1" '
			$col == port { if ($3) { syn = $5; next } n++; e[n] = $5 }
			END {
				for (i = 1; i <= n; i++)
					if (e[i] == 1) { if (i > n / 2) late++; early++ } else other++
				print n, early + 0, late + 0, other + 0, syn }' "$file")
		echo "$role $kind $to: packets $all, ECT(1) $early, in the second half $late, SYN $syn, control $cc"
		expect "packets, $role, $kind, $to" "$all" -ge 50
		case $kind in
		accecn)
			expect "packets that are not ECT(1), $role, $kind, $to" "$other" -eq 0
			expect "field of the SYN or SYN-ACK, $role, $to" "$syn" -eq 1
			;;
		bleached)
			# the client sees only in feedback to its data that the path bleaches
			expect "ECT(1) after that, $role, $kind, $to" "$late" -eq 0
			[ "$role" = client ] || expect "ECT(1), $role, $kind, $to" "$early" -eq 0
			;;
		*)
			expect "packets that are ECT(1), $role, $kind, $to" "$early" -eq 0
			[ "$role" = client ] ||
				expect "field of the SYN-ACK, $kind, $to" "$syn" != 1
			[ "$role" = server ] || expect "control, $kind" "$cc" = prague_reno
			;;
		esac
	done <"$TMP/flows"
	expect "flows" "$(wc -l <"$TMP/flows")" -eq 20
}
declare_test negotiation "P1 P3 P4" "client and server, five kinds of peer, v4 and v6: ECT(1) with Accurate ECN only"

every_packet()
{
	local to

	needs_accecn
	dumbbell 1 1ms
	accecn
	lossy loss 2%
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 2M
	done
	stop_captures
	expect "retransmissions" "$(flow_field retrans)" -ge 3
	fields "$TMP/h.pcap" >"$TMP/h"
	expect "data packets" "$(awk '$4 > 0' "$TMP/h" | wc -l)" -ge 2700
	expect "pure ACKs" "$(awk '$4 == 0 && !$3 && $1 == 5201' "$TMP/h" | wc -l)" -ge 500
	expect "packets that are not ECT(1)" "$(awk '$5 != 1' "$TMP/h" | wc -l)" -eq 0
}
declare_test every_packet "P1" "ECT(1) on data, retransmissions, pure ACKs, SYN, SYN-ACK and resets"

syn_again()
{
	needs_virtual
	needs_accecn
	dumbbell 1 1ms
	accecn
	# a path that drops SYNs that ask for ECN
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp \
		tcp_flags 0xc2/0xc2 action drop
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 100k
	stop_captures
	expect "control" "$(flow_field cc)" = prague_reno
	fields "$TMP/h.pcap" | awk '$2 == 5201' >"$TMP/h"
	expect "first SYN" "$(awk '$3 { print $5; exit }' "$TMP/h")" -eq 1
	expect "SYNs" "$(awk '$3' "$TMP/h" | wc -l)" -ge 2
	expect "ECT(1) after the first SYN" "$(tail -n +2 "$TMP/h" | awk '$5 == 1' | wc -l)" -eq 0
}
declare_test syn_again "P1 P3" "a SYN sent again without asking for Accurate ECN, and all after it, is not ECT(1)"

ect0()
{
	needs_virtual
	needs_accecn
	load ect=0
	dumbbell 1 1ms
	accecn
	shape 100mbit
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 500k
	stop_captures
	expect "control" "$(flow_field cc)" = prague
	expect "packets that are not ECT(0)" "$(fields "$TMP/h.pcap" | awk '$5 != 2' | wc -l)" -eq 0
	teardown
	load
}
declare_test ect0 "P2" "ect=0: ECT(0) on all packets"

ace_later()
{
	needs_virtual
	needs_accecn
	dumbbell 1 10ms
	accecn
	shape 100mbit dualpi2
	zero_ace p1 tcp_flags 0x0/0x2
	serve r --cc prague
	trace_on prague/prague_mode
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --duration 3s
	trace_off "$TMP/trace"
	stop_captures
	cat "$TMP/trace"
	expect "reason" "$(field reason <"$TMP/trace" | head -n1)" = ace
	# the last second
	expect "ECT packets at the end" "$(packets "$TMP/h.pcap" 'tcp.dstport == 5201' frame.time_relative \
		ip.dsfield.ecn | awk '$1 > 2 && $2 != 0' | wc -l)" -eq 0
}
declare_test ace_later "P3" "a path that zeroes ACE after the handshake: seen from AccECN options, Reno and Not-ECT"

# --- response to marks -----------------------------------------------------

# One flow, 100 Mb/s, 10 ms, dualpi2: what many checks read.
steady_flow()
{
	dumbbell 1 10ms
	accecn
	shape 100mbit dualpi2
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on prague/prague_period prague/prague_cut
	send --duration 12s
	trace_off "$TMP/trace"
	stop_captures
	grep prague_period "$TMP/trace" >"$TMP/periods"
	grep prague_cut "$TMP/trace" >"$TMP/cuts"
}

response()
{
	local n

	needs_virtual
	needs_accecn
	steady_flow
	n=$(wc -l <"$TMP/cuts")
	echo "cuts $n, periods $(wc -l <"$TMP/periods")"
	expect "cuts" "$n" -ge 50
	expect "EWMA periods" "$(wc -l <"$TMP/periods")" -ge 500
	expect "retransmissions" "$(flow_field retrans)" -eq 0

	# P6, P15: at the first mark alpha is 1; half of the window is left, and slow start
	head -n1 "$TMP/cuts" | awk "$VALUES"' {
		exit !(v["alpha_q30"] == 2^30 && v["cwnd_after"] + v["frac_after_q30"] / 2^30 == (v["cwnd"] + v["frac_q30"] / 2^30) / 2) }' ||
		fail "first cut: $(head -n1 "$TMP/cuts")"
	expect "windows of more than a packet's growth per period after that" "$(awk "$VALUES"'
		FILENAME ~ /cuts/ { if (!first) first = v["t"]; next }
		v["t"] < first { next }
		{ w = v["cwnd"] + v["frac_q30"] / 2^30 }
		prev && w > prev + 1.15 { n++ }
		{ prev = w }
		END { print n + 0 }' "$TMP/cuts" "$TMP/periods")" -eq 0

	# P5: alpha, from the marks and packets of each period
	expect "largest difference of alpha from the draft's" "$(awk "$VALUES"'
		BEGIN { g = 1 / 16 }
		!seen && v["marked"] > 0 { alpha = 1; seen = 1 }
		seen { alpha += g * (v["marked"] / v["acked"] - alpha)
			d = alpha - v["alpha_q30"] / 2^30; if (d < 0) d = -d; if (d > m) m = d }
		END { printf "%.7f", (seen ? m : 1) }' "$TMP/periods")" -le 0.000001

	# P10: cwnd * (1 - alpha / 2), fraction and all
	expect "largest difference of a cut from the draft's, packets" "$(awk "$VALUES"'
		{ d = (v["cwnd"] + v["frac_q30"] / 2^30) * (1 - v["alpha_q30"] / 2^31) - (v["cwnd_after"] + v["frac_after_q30"] / 2^30)
		if (d < 0) d = -d; if (d > m) m = d } END { printf "%.7f", m }' "$TMP/cuts")" -le 0.000001

	# P10, P12, P13: once per srtt for 500 rounds, then once per 25 ms
	awk "$VALUES"'FILENAME ~ /periods/ { if (v["rounds"] < 500) change = v["t"]; else if (!begin) begin = v["t"]; next }
		prev && v["t"] <= change { if (!e || v["t"] - prev < e) e = v["t"] - prev }
		prev > begin { if (!l || v["t"] - prev < l) l = v["t"] - prev }
		{ prev = v["t"] } END { print e, l, begin }' "$TMP/periods" "$TMP/cuts" >"$TMP/gaps"
	cat "$TMP/gaps"
	expect "shortest time between cuts in the first 500 rounds" "$(cut -d' ' -f1 "$TMP/gaps")" -ge 0.0099
	expect "the same" "$(cut -d' ' -f1 "$TMP/gaps")" -le 0.024
	expect "shortest time between cuts afterwards" "$(cut -d' ' -f2 "$TMP/gaps")" -ge 0.025
	expect "when the 500th round was, seconds after the start" "$(awk "$VALUES"'
		!b { b = v["t"] } v["rounds"] >= 500 { print v["t"] - b; exit }' "$TMP/periods")" -ge 4.8

	# P11: without marks a window grows by 1 per srtt, then by (srtt / 25 ms)^2
	awk "$VALUES"'
		{ w = v["cwnd"] + v["frac_q30"] / 2^30 }
		prev && v["marked"] == 0 && prevm == 0 && v["silent"] > 2 && v["t"] - pt > 0 {
			per = (w - prev) / ((v["t"] - pt) * 1e6 / v["srtt_us"])
			if (v["rounds"] > 100 && v["rounds"] < 490) { x += per; xn++ }
			if (v["rounds"] > 510) { want = v["srtt_us"] * v["srtt_us"] / 25000 / 25000; y += per / want; yn++ } }
		{ prev = w; prevm = v["marked"]; pt = v["t"] }
		END { print x / xn, y / yn, xn, yn }' "$TMP/periods" >"$TMP/growth"
	cat "$TMP/growth"
	expect "growth per srtt before" "$(cut -d' ' -f1 "$TMP/growth")" -ge 0.93
	expect "growth per srtt before" "$(cut -d' ' -f1 "$TMP/growth")" -le 1.07
	expect "growth per srtt after, of (srtt / rtt_virt)^2" "$(cut -d' ' -f2 "$TMP/growth")" -ge 0.93
	expect "growth per srtt after, of (srtt / rtt_virt)^2" "$(cut -d' ' -f2 "$TMP/growth")" -le 1.07

	# what was counted is what came: marks echoed in ACE against the trace
	expect "data packets acknowledged, against those captured" "$(echo "$(field acked <"$TMP/periods" | awk '{ s += $1 } END { print s }')" \
		"$(count "$TMP/h.pcap" 'tcp.dstport == 5201 && tcp.len > 0')" | awk '{ print $1 / $2 }')" -ge 0.99
}
declare_test response "P5 P6 P10 P11 P12 P13 P15 P24" "first mark, average, cut, growth, once per rtt_virt, D rounds: as the draft's formulas"

parameters()
{
	local p

	for p in ewma_shift=0 ewma_shift=11 rtt_mode=4 rtt_target_us=99 rtt_rounds=65536 burst_us=9 \
		loss_cubic=2 fast_rounds=1001 per_ack=x fractional=-1 classic_fallback=2 iw_paced=2 loss_combined=7; do
		! echo "${p#*=}" 2>/dev/null >"$PARAM/${p%%=*}" || fail "$p was taken"
	done
	expect "ewma_shift" "$(cat "$PARAM/ewma_shift")" -eq 4
	dmesg | grep -q 'ewma_shift=11 refused: takes 1 to 10' || fail "no reason in the log"
	wait_until modprobe -r tcp_prague
	! modprobe tcp_prague ect=2 2>/dev/null || fail "ect=2 was taken"
	modprobe tcp_prague
}
declare_test parameters "" "what is out of range is refused, with a reason"

info()
{
	needs_virtual
	needs_accecn
	dumbbell 1 10ms
	accecn
	shape 100mbit dualpi2
	serve r --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 2s >/dev/null &
	sleep 1
	in_ns h1 ss -Htin dport = :5201 >"$TMP/ss"
	wait $!
	grep -q 'prague .*dctcp:(ce_state:0,alpha:[0-9]*,ab_ecn:[0-9]*,ab_tot:[0-9]*)' "$TMP/ss" ||
		fail "ss -ti does not show Prague: $(cat "$TMP/ss")"
	expect "alpha of 1024" "$(grep -o 'alpha:[0-9]*' "$TMP/ss" | cut -d: -f2)" -le 1024
}
declare_test info "P24" "ss -ti shows alpha, marked and acknowledged packets"

switch_mid_flow()
{
	dumbbell 1 1ms
	accecn
	in_ns r iperf3 -s -p 5202 >/dev/null 2>&1 &
	wait_until listening r 5202
	in_ns h1 python3 - <<-'END' || fail "a socket that changes its control"
		import socket
		s = socket.create_connection(("10.0.0.1", 5202))
		for i in range(200):
		    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, (b"prague", b"cubic", b"reno", b"prague")[i % 4])
		    s.sendall(b"x" * 20000)
		s.close()
	END
}
declare_test switch_mid_flow "" "the control changes mid-flow, to and fro"

unload()
{
	dumbbell 1 1ms
	accecn
	shape 100mbit
	serve r --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 1s >/dev/null &
	sleep 0.3
	! rmmod tcp_prague 2>/dev/null || fail "unloaded while in use"
	wait $!
	teardown
	wait_until rmmod tcp_prague
	modprobe tcp_prague || fail "cannot load again"
}
declare_test unload "" "unload is refused while in use, and clean afterwards"

run_tests "$@"
