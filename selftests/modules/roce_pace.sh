#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roce_rcm: the reaction point, which paces queue pairs, as their packets show it.
# shellcheck disable=SC2317,SC2119 # tests are called by name; arguments have defaults

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/rdma.sh
. "$LIB/rdma.sh"

DEBUGFS=$RCM_DEBUGFS
PARAM=$RCM_PARAM

command -v rocegen >/dev/null || skip_all "no rocegen (needs libibverbs-dev)"
modprobe -r roce_rcm 2>/dev/null
modprobe roce_rcm || skip_all "no module roce_rcm"

# Stages 6 to 10 of the specification: marks for a while, then none. In the capture of the
# sender the rate falls, as the model says, and grows again.
reaction()
{
	needs_virtual
	load line_rate_mbps=1000 dcqcn_ai_mbps=5 dcqcn_hai_mbps=20
	hosts 1
	mark_all
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	trace_on roce_rcm/roce_rcm_cut roce_rcm/roce_rcm_free
	roce h1 send --duration 60ms --depth 8 &
	sleep 0.02
	mark_none
	wait $!
	trace_off "$TMP/trace"
	stop_captures
	# Mb/s in windows of 5 ms from the first data packet
	packets "$TMP/h.pcap" 'ip.src == 10.0.1.1 && infiniband.bth.opcode <= 4' frame.time_epoch frame.len |
		awk '{ split($1, t, "."); s = (t[1] % 1000) + t[2] / 1e9; if (!n++) first = s
			w = int((s - first) / 0.005); b[w] += $2 }
			END { for (i = 0; i < 12; i++) printf "%d ", b[i] * 8 / 5000; print "" }' >"$TMP/rates"
	cat "$TMP/rates"
	expect "cuts" "$(grep -c roce_rcm_cut: "$TMP/trace")" -ge 50
	expect "the first cut, a half" "$(grep -m1 roce_rcm_cut: "$TMP/trace" | field rate_bps)" -eq 500000000
	expect "Mb/s from 10 to 15 ms, all marked" "$(cut -d' ' -f3 "$TMP/rates")" -le 100
	expect "Mb/s from 30 to 35 ms, unmarked for 10 ms" "$(cut -d' ' -f7 "$TMP/rates")" -ge "$(cut -d' ' -f3 "$TMP/rates")"
	expect "Mb/s from 50 to 55 ms" "$(cut -d' ' -f11 "$TMP/rates")" -ge 900
	expect "back at the line's rate" "$(grep -c roce_rcm_free: "$TMP/trace")" -ge 1
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	load
}
declare_test reaction "R6 R7 R8" "a CNP cuts the rate of its queue pair, which grows when no more come"

# A cut takes beta packets per RTT off the rate, an RTT without a CNP adds alpha packets per
# RTT; an incast shares its link.
ldcp()
{
	needs_virtual
	load algorithm=1 line_rate_mbps=1000 ldcp_rtt_us=500 ldcp_alpha=128 cnp_interval_us=0 reduce_gap_us=0
	hosts 4
	red 1gbit 10000 40000
	trace_on roce_rcm/roce_rcm_cut
	four_send
	trace_off "$TMP/trace"
	# a packet of 1082 + 14 bytes per RTT is 17.5 Mb/s
	head -n 3 "$TMP/trace"
	awk "$VALUES"'v["before_bps"] < 9e8 && v["rate_bps"] > 1.2e7 { print (v["before_bps"] - v["rate_bps"]) / 1e6 }' \
		"$TMP/trace" | sort -n >"$TMP/cuts"
	expect "Mb/s of a cut, least" "$(head -n1 "$TMP/cuts")" -ge 8.5
	expect "Mb/s of a cut, most" "$(tail -n1 "$TMP/cuts")" -le 17.7
	four_shared 800
	load
}
declare_test ldcp "R8 L16" "LDCP: a CNP takes beta packets per RTT off the rate, each RTT gives alpha"

# below_one ETA SHIFT_GAMMA: below one packet per RTT, which is 17.3 Mb/s, a cut is by ETA/1024, at
# most to gamma
below_one()
{
	load algorithm=1 line_rate_mbps=1000 rate_min_mbps=1 ldcp_rtt_us=500 ldcp_alpha=64 cnp_interval_us=0 \
		reduce_gap_us=0 "ldcp_eta=$1" "ldcp_shift_gamma=$2"
	hosts 1
	mark_all
	trace_on roce_rcm/roce_rcm_cut
	roce h1 send --duration 100ms --size 8192
	trace_off "$TMP/trace"
	awk "$VALUES"'v["before_bps"] < 1.7e7 { print v["before_bps"] / 17.3e6, v["rate_bps"] / 17.3e6 }' \
		"$TMP/trace" >"$TMP/cuts"
	expect "cuts" "$(wc -l <"$TMP/cuts")" -ge 10
	expect "cuts to another window, eta $1, shift_gamma $2" "$(awk -v eta="$1" -v shift="$2" '
		{ want = $1 * eta / 1024; if (want < 2 ^ -shift) want = 2 ^ -shift
		  if ($2 < want * 0.98 || $2 > want * 1.02) print }' "$TMP/cuts" | tee /dev/stderr | wc -l)" -eq 0
	teardown
}

ldcp_below_one()
{
	needs_virtual
	below_one 512 3
	below_one 768 4
	below_one 1 2
	load
}
declare_test ldcp_below_one "R8 L16" "LDCP: below one packet per RTT a CNP multiplies by eta, down to gamma"

# A queue pair that always has data stays paced at the line's rate, where its window must not grow on.
ldcp_at_line()
{
	needs_virtual
	load algorithm=1 line_rate_mbps=1000 ldcp_rtt_us=500 cnp_interval_us=0 reduce_gap_us=0
	hosts 1
	mark_all
	trace_on roce_rcm/roce_rcm_cut
	roce h1 send --duration 400ms --depth 8 &
	sleep 0.005
	mark_none
	sleep 0.35
	: >/sys/kernel/tracing/trace
	mark_all
	wait $!
	trace_off "$TMP/trace"
	# a packet per RTT is 17.5 Mb/s
	expect "bit/s after three CNPs, the first in 0.35 s" \
		"$(grep -m3 roce_rcm_cut: "$TMP/trace" | tail -n1 | field rate_bps)" -le 970000000
	load
}
declare_test ldcp_at_line "L16" "LDCP: after a long time at the line's rate CNPs cut it at once"

# windows FILE SOURCE: data packets that SOURCE sent, in whole windows of 50 ms from 100 ms
# after the first on
windows()
{
	packets "$1" "ip.src == $2 && infiniband.bth.opcode <= 11" frame.time_epoch |
		awk '{ split($1, t, "."); s = (t[1] % 1000) + t[2] / 1e9; if (!n++) first = s
			w = int((s - first) / 0.05); count[w]++; last = w }
			END { for (i = 2; i < last; i++) print count[i] + 0 }'
}

# One queue pair sends and receives: its ACKs, as many as the other side's data, are not
# charged to the rate of its own data.
both_ways()
{
	needs_virtual
	load line_rate_mbps=1000 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
	hosts 1
	mark_all
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791 and src host 10.0.1.1"
	roce h1 write --both --duration 500ms --size 1024 --depth 64
	stop_captures
	windows "$TMP/h.pcap" 10.0.1.1 >"$TMP/windows"
	paste -sd' ' "$TMP/windows"
	# 10 Mb/s, the least rate, are 57 packets of 1096 bytes in 50 ms
	expect "windows" "$(wc -l <"$TMP/windows")" -ge 5
	expect "data packets in the poorest window" "$(sort -n "$TMP/windows" | head -n1)" -ge 50
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	load
}
declare_test both_ways "R6" "a queue pair that sends and receives data is never slowed below rate_min_mbps"

# Requests and the answers to the other side's wait in lanes of their own, which take turns.
lanes()
{
	needs_virtual
	load line_rate_mbps=1000 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
	hosts 1
	mark_all
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	roce h1 write --read-back --duration 500ms --size 1024 --depth 8 &
	sleep 0.35
	awk '$2 == "local" && $3 == "::ffff:10.0.1.1" { print "waiting", $12 }' "$DEBUGFS"/qps | tee "$TMP/waiting"
	wait $!
	stop_captures
	# from 200 to 450 ms, at the least rate: WRITEs, and answers to READs
	packets "$TMP/h.pcap" 'ip.src == 10.0.1.1 && infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 16' \
		frame.time_relative infiniband.bth.opcode |
		awk '$1 < 0.2 || $1 > 0.45 { next }
			{ lane = $2 > 11; n[lane]++; run = lane == last ? run + 1 : 1; last = lane; if (run > longest) longest = run }
			END { print "writes", n[0] + 0; print "answers", n[1] + 0; print "longest", longest }' | tee "$TMP/lanes"
	expect "packets of WRITEs" "$(awk '$1 == "writes" { print $2 }' "$TMP/lanes")" -ge 100
	expect "packets that answer READs" "$(awk '$1 == "answers" { print $2 }' "$TMP/lanes")" -ge 100
	expect "most of one kind in a row" "$(awk '$1 == "longest" { print $2 }' "$TMP/lanes")" -le 3
	# eight of each kind are under way
	between "packets that wait" "$(awk '$1 == "waiting" { print $2 }' "$TMP/waiting")" 10 16
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	load
}
declare_test lanes "R6" "requests, and answers to the other side's requests, leave in turn"

# The peer of a queue pair, or a host that forges its address, sends CNPs to keep it at its
# lowest rate, and the client is killed while packets are held back.
killed()
{
	local op pid i

	needs_virtual
	# read back: responses are held, too, which nobody waits for then
	for op in "write --both" "uc-write --both" "write --read-back"; do
		load line_rate_mbps=1000 rate_min_mbps=1 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
		hosts 2
		# shellcheck disable=SC2086 # words
		(fail() { :; }; roce h1 $op --duration 60s) &
		wait_until known_at ::ffff:10.0.1.1
		QP=$(qp_of_h1)
		forge --count 10400 --rate 8000	# 1.3 s
		expect "packets held back when the client is killed ($op)" "$(held_at ::ffff:10.0.1.1)" -ge 10
		pid=$(ip netns pids "${NSP}h1")
		kill -9 "$pid"
		for ((i = 0; i < 60; i++)); do
			[ -d "/proc/$pid" ] && [ "$(awk '/^State/ { print $2 }' "/proc/$pid/status")" != Z ] || break
			sleep 0.05
		done
		expect "tenths of a second until it is gone ($op)" $((i / 2)) -le 4
		expect "requests let go ($op)" "$(rcm_counter let_go)" -gt 0
		[[ $op != *read-back ]] || expect "responses dropped" "$(rcm_counter fifo_dropped)" -gt 0
		expect "packets held back after it ($op)" "$(held_at ::ffff:10.0.1.1)" -eq 0
		teardown
	done
	load
}
declare_test killed "R11" "a client killed while its packets are held back at 1 Mb/s is gone in 0.4 s, RC and UC"

# No request is held for more than hold_ms, whatever the rate: 64 packets in 100 ms.
hold()
{
	local least

	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=1 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
	ROCE_MTU=4200 hosts 1
	mark_all
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	roce h1 send --duration 1s --depth 8
	stop_captures
	windows "$TMP/h.pcap" 10.0.1.1 >"$TMP/windows"
	paste -sd' ' "$TMP/windows"
	# at 1 Mb/s there would be 1.5
	least=$(sort -n "$TMP/windows" | head -n1)
	expect "data packets in the poorest window of 50 ms" "$least" -ge 20
	expect "packets held back" "$(rcm_counter paced)" -ge 100
	refused hold_ms=0 hold_ms=151
	load
}
declare_test hold "R6" "a request is held back for at most hold_ms"

# CNPs for packets that are on the way all count, also those sent before the last cut. CNPs, forged,
# for a queue pair that sends nothing do not slow it down.
nothing_sent()
{
	local pid before

	needs_virtual
	load line_rate_mbps=1000 reduce_gap_us=0
	hosts 2
	roce h1 send --duration 300ms --depth 1 --size 1024 &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(qp_of_h1)
	pid=$(ip netns pids "${NSP}h1")
	kill -STOP "$pid"
	forge --count 20 --rate 8000
	sleep 0.005
	before=$(rcm_counter cnp_handled)
	expect "CNPs that cut the rate, just after the data" "$before" -ge 10
	sleep 0.05
	forge --count 1000 --rate 8000
	expect "CNPs that cut the rate later" "$(rcm_counter cnp_handled)" -eq "$before"
	expect "CNPs that did not" "$(rcm_counter cnp_nothing_sent)" -ge 900
	echo 0 >"$RCM_PARAM"/cnp_late_ms
	forge --count 20 --rate 8000
	kill -CONT "$pid"
	wait $!
	expect "CNPs that cut the rate with cnp_late_ms=0" $(($(rcm_counter cnp_handled) - before)) -ge 10
	load
}
declare_test nothing_sent "R6 R12" "all CNPs for packets on the way count; a queue pair that has sent no data for 10 ms is not cut, except with cnp_late_ms=0"

# verbs WHAT OPTIONS...: h1 runs verbs.py in the background; waits until its queue pair is known, whose
# number is then QP, and whose line in debugfs qp_line prints
verbs()
{
	local what=$1

	shift
	/usr/bin/python3 -c "import pyverbs.qp" 2>/dev/null || skip "no python3-pyverbs"
	in_ns h1 "$LIB/verbs.py" "$what" --dev "${NSP}h1" --gid "$(gid h1 4)" "$@" >"$TMP/verbs" &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(head -n1 "$TMP/verbs")
}

qp_line()
{
	awk -v qp="$QP" '$2 == "local" && $4 == qp' "$DEBUGFS"/qps
}

sends_to()
{
	[ "$(qp_line | awk '{ print $5 }')" = "$1" ]
}

# cnps_from ADDR...: a CNP from each; prints how many of them cut the rate, and how many came from a
# host that the queue pair does not send to
cnps_from()
{
	local addr handled wrong

	handled=$(rcm_counter cnp_handled) wrong=$(rcm_counter cnp_wrong_source)
	for addr; do
		forge --src "$addr" --count 1
	done
	sleep 0.01
	echo $(($(rcm_counter cnp_handled) - handled)) $(($(rcm_counter cnp_wrong_source) - wrong))
}

# A queue pair for datagrams sends to several hosts: a CNP of each of the last eight counts.
peers()
{
	local to all=() pid

	needs_virtual
	load line_rate_mbps=1000 reduce_gap_us=0
	hosts 2
	verbs ud --rounds 2 --duration 1 10.0.0.{1..3}
	pid=$!
	wait_until grep -q last "$TMP/verbs"
	expect "CNPs that count, of three hosts and a stranger" "$(cnps_from 10.0.0.{1..4})" = "3 1"
	kill "$pid"
	wait "$pid"
	for to in {1..10}; do all+=("10.0.0.$to"); done
	load line_rate_mbps=1000 reduce_gap_us=0
	verbs ud --duration 1 "${all[@]}"
	pid=$!
	wait_until grep -q last "$TMP/verbs"
	expect "CNPs that count, of the last eight" "$(cnps_from "${all[@]:2}")" = "8 0"
	expect "CNPs that count, of the two before" "$(cnps_from "${all[@]:0:2}")" = "0 2"
	kill "$pid"
	wait "$pid"
	load
}
declare_test peers "R7 R12" "CNPs of the last eight hosts count that a UD queue pair has sent to"

# The IP header's ECN field is the traffic class's, with and without the injector, unless that has none.
traffic_class()
{
	local class

	needs_virtual
	load
	hosts 1
	for class in 0 1 2 105; do
		capture h1 eth0 "$TMP/out.pcap" "udp dst port 4791"
		verbs ud --traffic-class "$class" --rounds 20 --duration 0 10.0.0.1
		wait $!
		stop_captures
		expect "TOS of packets with traffic class $class" "$(packets "$TMP/out.pcap" 'udp.dstport == 4791' ip.dsfield | sort -u | tr -d '\n')" = "$(printf '0x%02x' $((class ? class : 2)))"
	done
	load
}
declare_test traffic_class "R1" "a program's traffic class decides about ECN, where it says something"

# A queue pair is connected again while its packets are held back: they leave first, at the rate
# that it has; without any, it starts at line rate.
reconnect()
{
	local rate pid

	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=1 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000 reduce_gap_us=0
	hosts 2
	verbs reconnect --duration 0.2 10.0.0.1 10.0.0.2
	pid=$!
	forge --count 100 --rate 8000
	rate=$(qp_line | awk '{ print $7 }')
	expect "Mb/s after 100 CNPs" "$rate" -lt 3
	expect "packets held back" "$(held_at ::ffff:10.0.1.1)" -ge 1
	wait_until grep -q 10.0.0.2 "$TMP/verbs"
	wait_until sends_to ::ffff:10.0.0.2
	expect "Mb/s to the next peer" "$(qp_line | awk '{ print $7 }')" -le "$rate"
	expect "CNPs that count, of the old peer and of the new" "$(cnps_from 10.0.0.{1..2})" = "1 1"
	wait "$pid"
	load
}
declare_test reconnect "R7 R11" "a queue pair that is connected again while its packets are held back keeps its rate"

# CNPs that come sooner after a cut than reduce_gap_us cut nothing.
reduce_gap()
{
	needs_virtual
	load line_rate_mbps=1000 cnp_interval_us=0 reduce_gap_us=2000
	hosts 1
	mark_all
	trace_on roce_rcm/roce_rcm_cut
	roce h1 send --duration 50ms --depth 8
	trace_off "$TMP/trace"
	awk 'match($0, /[0-9]+\.[0-9]+: roce_rcm_cut:/) { t = substr($0, RSTART) + 0
		if (n++) printf "%d\n", (t - last) * 1e6; last = t }' "$TMP/trace" | sort -n >"$TMP/gaps"
	expect "cuts" "$(wc -l <"$TMP/gaps")" -ge 10
	expect "shortest time between two cuts, us" "$(head -n1 "$TMP/gaps")" -ge 1999
	load
}
declare_test reduce_gap "R6" "a rate is cut at most once in reduce_gap_us"

# A packet that waits when the rate is halved waits twice as long for the rest: 31 Mb/s to 4 Mb/s.
cut_while_waiting()
{
	local i

	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=1 reduce_gap_us=0 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
	hosts 2
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	roce h1 send --duration 150ms --depth 8 --size 1024 &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(qp_of_h1)
	forge --count 5 --rate 8000
	for i in 1 2 3; do
		sleep 0.02
		forge --count 1
	done
	wait $!
	stop_captures
	# of each gap between two packets with one CNP in it: its length, of what it should be
	packets "$TMP/h.pcap" 'infiniband.bth.opcode == 4 && ip.src == 10.0.1.1 || infiniband.bth.opcode == 129 && ip.dst == 10.0.1.1' \
		frame.time_relative infiniband.bth.opcode |
		awk '$2 == 129 { if (n++ >= 5 && !cnp) cnp = $1; next }
			{ if (cnp && gap) printf "%.3f %.2f\n", ($1 - last) / (cnp - last + 2 * (gap - cnp + last)), (cnp - last) / gap
			  gap = cnp ? 0 : $1 - last; cnp = 0; last = $1 }' | tee "$TMP/gaps"
	expect "gaps" "$(wc -l <"$TMP/gaps")" -eq 3
	expect "the shortest, of what it should be" "$(sort -n "$TMP/gaps" | awk 'NR == 1 { print $1 }')" -ge 0.97
	expect "the longest" "$(sort -n "$TMP/gaps" | awk 'END { print $1 }')" -le 1.03
	load
}
declare_test cut_while_waiting "R6 R7" "what waits when the rate is cut waits longer by as much as the rate is lower"

# timers FILE: how often a queue pair's timer has expired in a trace
timers()
{
	grep -c 'hrtimer_expire_entry:.*function=roce_rcm_release' "$1"
}

# timers_per_packet N SECONDS: of N queue pairs of h1, SECONDS after the beginning
timers_per_packet()
{
	local flow sent

	hosts 1
	mark_all
	(fail() { :; }; roce h1 send --duration "$(awk -v s="$2" 'BEGIN { print s + 0.1 }')s" --qps "$1" \
		--size 8192 --timeout 20) &
	flow=$!
	sleep "$2"
	expect "queue pairs that wait" "$(awk '$2 == "local" && $3 == "::ffff:10.0.1.1" && $12 > 0' "$DEBUGFS"/qps | wc -l)" -ge $(($1 * 9 / 10))
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791 and src host 10.0.1.1"
	trace_on timer/hrtimer_expire_entry
	sleep 0.03
	trace_off "$TMP/trace"
	stop_captures
	wait "$flow"
	sent=$(count "$TMP/h.pcap" 'infiniband.bth.opcode <= 4')
	measured "$1 queue pairs: $(timers "$TMP/trace") timers, $sent packets"
	expect "packets sent, of $1 queue pairs" "$sent" -ge 30
	expect "timers per packet, of $1 queue pairs" "$(awk -v t="$(timers "$TMP/trace")" -v s="$sent" 'BEGIN { print t / s }')" -le 1.2
	teardown
}

# One timer per packet, for the time at which the growing rate lets it leave.
wakeups()
{
	needs_virtual
	load line_rate_mbps=1000
	timers_per_packet 1 0.02
	load line_rate_mbps=1000 rate_min_mbps=1 dcqcn_timer_us=5000 dcqcn_alpha_us=5000
	timers_per_packet 50 0.3
	# with hold_ms each sends at 5.6 Mb/s, whatever its rate: the line must not be what limits
	[ -z "${FULL:-}" ] || LINE=10gbit timers_per_packet 1000 0.3
	load
}
declare_test wakeups "R6" "at most 1.2 timers per packet sent, with one queue pair and with many"

# softirq_us: of 1000 backlogged queue pairs of h1: softirq time per packet, microseconds
softirq_us()
{
	local flow ticks packets count=/sys/class/infiniband/${NSP}h1/ports/1/hw_counters/sent_pkts

	(fail() { :; }; roce h1 send --duration 600s --qps 1000 --size 8192) &
	flow=$!
	sleep 5
	ticks=$(awk '$1 == "cpu" { print $8 }' /proc/stat)
	packets=$(<"$count")
	sleep 5
	awk -v t="$ticks" -v p="$packets" -v sent="$(<"$count")" '
		$1 == "cpu" { printf "%.1f\n", ($8 - t) * 10000 / (sent - p) }' /proc/stat
	kill_in "${NSP}h1"
	wait "$flow"
}

# What the module adds to a packet's softirq time: without it, with it, and with all packets
# marked, so that every queue pair has a rate, a timer and a FIFO, and CNPs come.
softirq()
{
	local absent idle marked

	[ "${LOWQ_LAB:-stock}" = stock ] || skip "by the real clock, on a real kernel"
	roce_dumbbell 1 10gbit 20us
	roce_serve r
	rmmod roce_rcm || fail "cannot unload"
	absent=$(softirq_us)
	modprobe roce_rcm line_rate_mbps=1000 rate_min_mbps=1 dcqcn_timer_us=5000 dcqcn_alpha_us=5000
	idle=$(softirq_us)
	mark_all
	marked=$(softirq_us)
	measured "softirq time per packet, us: $absent without the module, $idle with it, $marked with marks"
	expect "softirq time per packet with the module, of $absent us without" "$idle" -le \
		"$(awk -v a="$absent" 'BEGIN { print a * 2 }')"
	expect "softirq time per packet with marks, of $absent us without" "$marked" -le \
		"$(awk -v a="$absent" 'BEGIN { print a * 5 }')"
	load
}
declare_test softirq "R6" "softirq time per packet of 1000 backlogged queue pairs, beside the module's absence"

# read_rates FILE: Mb/s of READ responses in windows of 5 ms from the first
read_rates()
{
	packets "$1" 'ip.src == 10.0.1.1 && infiniband.bth.opcode >= 13 && infiniband.bth.opcode <= 16' \
		frame.time_epoch frame.len |
		awk '{ split($1, t, "."); s = (t[1] % 1000) + t[2] / 1e9; if (!n++) first = s
			w = int((s - first) / 0.005); b[w] += $2 }
			END { for (i = 0; i < 20; i++) printf "%d ", b[i] * 8 / 5000; print "" }'
}

# read_capture NAME [OPTION...]: READs from h1, captured there; $TMP/NAME has the rates
read_capture()
{
	capture h1 eth0 "$TMP/$1.pcap" "udp port 4791"
	TO_HOST=h1 roce r read --duration 40ms "${@:2}"
	stop_captures
	read_rates "$TMP/$1.pcap" | tee "$TMP/$1"
}

# One queue pair answers READs at the line's rate from the first packet on. Eight of a host start
# together with an eighth of it, which doubles in each period.
read_start()
{
	local i want=125

	needs_virtual
	load line_rate_mbps=1000 dcqcn_timer_us=5000
	hosts 1
	roce_serve h1
	read_capture one
	expect "Mb/s of one in the first period" "$(cut -d' ' -f1 "$TMP/one")" -ge 900
	read_capture eight --qps 8
	for i in 1 2 3; do
		expect "Mb/s of eight in period $i" "$(cut -d' ' -f"$i" "$TMP/eight")" -ge $((want * 8 / 10))
		expect "Mb/s of eight in period $i" "$(cut -d' ' -f"$i" "$TMP/eight")" -le $((want * 13 / 10))
		want=$((want * 2))
	done
	expect "Mb/s of eight in period 5" "$(cut -d' ' -f5 "$TMP/eight")" -ge 900
	load algorithm=1 line_rate_mbps=1000 ldcp_rtt_us=5000
	read_capture ldcp --qps 8
	expect "Mb/s in the first period, LDCP" "$(cut -d' ' -f1 "$TMP/ldcp")" -le 165
	expect "Mb/s in period 5, LDCP" "$(cut -d' ' -f5 "$TMP/ldcp")" -ge 900
	expect "losses" "$(rcm_counter losses)" -eq 0
	load
}
declare_test read_start "R14" "READ responses of one queue pair start with the line's rate, of eight with an eighth of it"

# Eight queue pairs that answer READs grow together as one does: by R_AI per period.
read_growth()
{
	local rates

	needs_virtual
	load line_rate_mbps=1000 dcqcn_timer_us=1000 dcqcn_ai_mbps=4
	hosts 1
	roce_serve h1
	mark_all
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	TO_HOST=h1 roce r read --qps 8 --duration 90ms &
	sleep 0.02
	mark_none
	wait $!
	stop_captures
	read_rates "$TMP/h.pcap" | tee "$TMP/rates"
	read -ra rates <"$TMP/rates"
	between "Mb/s that eight queue pairs grew by in 40 periods" $((rates[15] - rates[7])) 80 240
	load
}
declare_test read_growth "R14" "eight queue pairs of a host that answer READs grow together as one does"

# useful_reads RATE QPS MS: h1 to h8 answer READs of r, QPS queue pairs each. Prints how many of
# the responses that left the bottleneck a READ needed, %
useful_reads()
{
	local h i ms=$3 pids=()

	LINE=$1 hosts 8
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$1" --shape --no-rehearsal --quiet || fail "lowq-tc roce"
	for h in 1 2 3 4 5 6 7 8; do
		roce_serve "h$h"
	done
	for i in 1 2 3 4 5 6 7 8; do
		TO_HOST=h$i LOG=flow$i roce r read --qps "$2" --size 64Ki --depth 4 --start 50ms --duration "${ms}ms" &
		pids+=($!)
	done
	wait "${pids[@]}"
	expect "queue pairs that ended well" "$(jq -r .status "$TMP"/flow?.json | grep -cx ok)" -eq $((8 * $2))
	measured "$((8 * $2)) queue pairs at $1: $(jq -s '(map(.bytes) | add * 8e3) / ((map(.start_ns + .duration_ns) | max) -
		(map(.start_ns) | min)) | floor' "$TMP"/flow?.json) Mb/s, drops: $(queue_counts sw egress | cut -f2)"
	in_ns sw tc -s -j qdisc show dev egress | jq --argjson bytes "$(jq -s 'map(.bytes) | add' "$TMP"/flow?.json)" \
		'$bytes / 1024 * 100 / ([.[] | select(.kind == "red")][0].packets) | floor' >"$TMP/useful"
}

read_fanin()
{
	local options

	needs_virtual
	read -ra options < <(roce_tuned 1gbit)
	load "${options[@]}"
	useful_reads 1gbit 8 60
	expect "useful responses, %" "$(<"$TMP/useful")" -ge 90
	expect "packets lost" "$(queue_counts sw egress | cut -f2)" -eq 0
	load
}
declare_test read_fanin "R14" "READs of 64 queue pairs from eight hosts: nine of ten responses that arrive are useful"

# The FIFO holds 28 responses of a READ's 64: the rest is dropped. rdma_rxe asks for it again when it sees
# a response of the next READ, or after 67 ms. Nothing is lost on the way.
read_overflow()
{
	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=50 dcqcn_ai_mbps=1 dcqcn_hai_mbps=1 fifo_kb=64
	hosts 1
	roce_serve h1
	mark_all
	capture r eth0 "$TMP/r.pcap" "udp port 4791"
	TO_HOST=h1 roce r read --messages 16 --size 64Ki --depth 4
	stop_captures
	jq '.duration_ns / 1e6 | floor' "$TMP/flow.json" >"$TMP/ms"
	measured "$(<"$TMP/ms") ms, $(rcm_counter losses) losses, $(rcm_counter stale_dropped) stale"
	expect "READs that ended well" "$(jq .messages "$TMP/flow.json")" -eq 16
	expect "responses dropped" "$(rcm_counter fifo_dropped)" -ge 500
	expect "losses" "$(rcm_counter losses)" -eq 0
	# 1024 responses are needed. After each gap one more is sent, which shows the gap to the peer.
	expect "responses that arrived" "$(count "$TMP/r.pcap" \
		'ip.src == 10.0.1.1 && infiniband.bth.opcode >= 13 && infiniband.bth.opcode <= 16')" -le 1080
	expect "ms" "$(<"$TMP/ms")" -le 400
	load
}
declare_test read_overflow "R14" "READs whose responses find no room in the FIFO: those after the gap are dropped, and no rate is cut"

# One response is lost while 250 wait. The requester asks again for it and all that follow: what
# waits is stale. It is dropped, not sent.
read_stale()
{
	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=50
	hosts 1
	roce_serve h1
	mark_all
	lose_nth 13-16 100
	capture r eth0 "$TMP/r.pcap" "udp port 4791"
	TO_HOST=h1 roce r read --messages 16 --size 64Ki --depth 4
	stop_captures
	expect "READs that ended well" "$(jq .messages "$TMP/flow.json")" -eq 16
	expect "stale responses dropped" "$(rcm_counter stale_dropped)" -ge 100
	# 1024 responses are needed. Of the READ that has lost one, 28 more are on the way before the next READ begins.
	expect "responses that arrived" "$(count "$TMP/r.pcap" \
		'ip.src == 10.0.1.1 && infiniband.bth.opcode >= 13 && infiniband.bth.opcode <= 16')" -le 1080
	load
}
declare_test read_stale "R14" "responses that wait when their READ is repeated are dropped, not sent"

# rate_of HOST: the rate of the slowest queue pair there, Mb/s
rate_of()
{
	awk -v a="::ffff:10.0.${1#h}.1" '$2 == "local" && $3 == a { print $7 }' "$RCM_DEBUGFS/qps" | sort -n | head -n1
}

# No packet is marked, and one response is lost: the rate is halved, and does not recover at once.
losses()
{
	needs_virtual
	load line_rate_mbps=1000 dcqcn_timer_us=10000 dcqcn_ai_mbps=1 dcqcn_hai_mbps=1
	hosts 1
	roce_serve h1
	lose_nth 13-16 2000
	capture h1 eth0 "$TMP/h.pcap" "udp port 4791"
	TO_HOST=h1 roce r read --duration 100ms
	stop_captures
	expect "losses" "$(rcm_counter losses)" -eq 1
	read_rates "$TMP/h.pcap" | tee "$TMP/rates"
	expect "Mb/s from 10 to 15 ms, before it" "$(cut -d' ' -f3 "$TMP/rates")" -ge 900
	expect "Mb/s from 25 to 30 ms, after it" "$(cut -d' ' -f6 "$TMP/rates")" -ge 450
	expect "Mb/s from 80 to 85 ms, after it" "$(cut -d' ' -f17 "$TMP/rates")" -le 530
	load
}
declare_test losses "R14" "a READ response that is lost without marks halves the rate"

# At 1 Mb/s a response takes 9 ms. The requester asks again after 4 for what is still held back:
# that is no loss.
read_impatient()
{
	needs_virtual
	load line_rate_mbps=1 rate_min_mbps=1
	hosts 1
	roce_serve h1
	TO_HOST=h1 roce r read --messages 2 --size 32Ki --depth 2 --timeout 10
	expect "READs that ended well" "$(jq .messages "$TMP/flow.json")" -eq 2
	expect "stale responses dropped" "$(rcm_counter stale_dropped)" -ge 100
	expect "losses" "$(rcm_counter losses)" -eq 0
	load
}
declare_test read_impatient "R14" "a READ that is repeated while its responses are held back is no loss"

# A queue pair that answers READs was cut, and then sends nothing: it learns nothing of the path.
idle_rate()
{
	local rate

	needs_virtual
	load line_rate_mbps=1000 dcqcn_ai_mbps=5
	hosts 1
	roce_serve h1
	mark_all
	TO_HOST=h1 roce r read --duration 10ms
	rate=$(rate_of h1)
	expect "Mb/s after the marks" "$rate" -lt 200
	sleep 0.5
	expect "Mb/s after half a second without data" "$(rate_of h1)" -eq "$rate"
	load
}
declare_test idle_rate "R7 R14" "the rate of READ responses does not grow while none is sent"

# A tap device has the speed that it is given. h1 sends by it, and it by eth0.
line_follows()
{
	needs_virtual
	load
	LINE=20mbit hosts 1
	rdma link del "${NSP}h1"
	in_ns h1 python3 -I -c 'if 1:
		import fcntl, struct, time
		tun = open("/dev/net/tun", "r+b", buffering=0)
		fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"x0", 0x1002))	# TUNSETIFF: tap
		time.sleep(100)' &
	wait_until in_ns h1 ip link show x0
	in_ns h1 ip link set x0 address "$(mac_of h1 eth0)"
	in_ns h1 ip addr del 10.0.1.1/24 dev eth0
	in_ns h1 ip addr add 10.0.1.1/24 dev x0
	in_ns h1 ip link set x0 up
	in_ns h1 ip neigh replace 10.0.1.254 lladdr "$(mac_of sw p1)" dev x0 nud permanent
	in_ns h1 ip route replace default via 10.0.1.254 dev x0 onlink src 10.0.1.1
	in_ns h1 tc qdisc add dev x0 clsact
	in_ns h1 tc qdisc add dev eth0 clsact
	in_ns h1 tc filter add dev x0 egress matchall action mirred egress redirect dev eth0 &&
		in_ns h1 tc filter add dev eth0 ingress matchall action mirred ingress redirect dev x0 ||
		skip "no mirred"
	in_ns h1 ethtool -s x0 speed 2000 duplex full autoneg off || fail "ethtool -s"
	roce_device h1 x0
	roce h1 send --duration 3s &
	sleep 0.5
	expect "Mb/s" "$(rate_of h1)" -eq 2000
	in_ns h1 ethtool -s x0 speed 3000 duplex full autoneg off || fail "ethtool -s"
	sleep 2.3
	expect "Mb/s after the link's speed has changed" "$(rate_of h1)" -eq 3000
	expect "questions, of 3 s" "$(rcm_counter asked_line)" -le 10
	wait $!
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	load
}
declare_test line_follows "R6" "the line's rate follows a link whose speed changes while the queue pair is busy"

run_tests "$@"
