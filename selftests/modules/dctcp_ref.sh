#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tcp_dctcp_ref against RFC 8257, judged by its packets and tracepoints.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"

under_test dctcp_ref

# step RATE K: makes the bottleneck, a shaper over RED that marks from K packets on
step()
{
	local k=$(($2 * 1514))

	shape "$1" red limit $((k * 20)) min "$k" max $((k + 1514)) avpkt 1514 \
		burst $(($2 + 1)) bandwidth "$1" probability 1 ecn
}

# --- switch ------------------------------------------------------------------

# A packet waits as long as the queue that it meets on arrival takes to leave. CoDel's clock has
# ticks of 1024 ns, by which a wait may be off.
exact_step()
{
	local k=20 ticks

	needs_virtual
	dumbbell 2 100us
	"$LOWQ_TC" dctcp egress -n "${NSP}sw" --rate 1gbit --shape --k "$k" --aqm codel --quiet --no-rehearsal ||
		fail "lowq-tc dctcp --aqm codel"
	serve r --cc dctcp_ref
	observe 1gbit --packets "$TMP/packets"
	in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp_ref --duration 40ms >/dev/null &
	in_ns h2 flowgen long --to 10.0.0.1 --cc dctcp_ref --duration 40ms >/dev/null || fail "a flow failed"
	wait $!
	observed
	ticks=$((k * 1514 * 8 / 1024 + 1))
	# 2 is ECT(0), 3 is CE
	tail -n +2 "$TMP/packets" | awk -F, -v ticks="$ticks" '
		$1 && $2 != "" && $6 == 2 {
			wait = ($2 - $1) / 1024; marked = $7 == 3; n[marked]++
			if (marked ? wait < ticks : wait > ticks + 2) wrong++
		}
		END { printf "marked=%d clean=%d wrong=%d\n", n[1], n[0], wrong }' | tee "$TMP/judged"
	expect "packets that met more than K" "$(field marked <"$TMP/judged")" -ge 200
	expect "packets that met less" "$(field clean <"$TMP/judged")" -ge 200
	expect "packets whose mark is not that of the queue they met" "$(field wrong <"$TMP/judged")" -eq 0
}
declare_test exact_step "D1" "lowq-tc dctcp --aqm codel marks exactly the packets that meet a queue above K"

# --- receiver --------------------------------------------------------------

echo_state()
{
	needs_virtual
	dumbbell 1 100us
	lossy loss 5% ecn
	exactly_echoed r eth0 30M 2
	expect "ACKs" "$(field acks <"$TMP/judged")" -lt 18000	# delayed ACKs are still in use
	expect "changes not acknowledged at once" "$(field late <"$TMP/judged")" -eq 0
}
declare_test echo_state "D2 D3 D4" "ECE is the CE state; on a change the old state is acknowledged first, then the new one at once"

echo_not_ect()
{
	needs_virtual
	dumbbell 1 100us
	clean_is_not_ect
	exactly_echoed r eth0 5M 2
	capture r eth0 "$TMP/r.pcap" tcp
	TO=fd00:0::1 send --size 5M
	judge_echo 2
}
declare_test echo_not_ect "D2" "a clean packet that is Not-ECT ends the CE state, too: IPv4 and IPv6"

echo_half_closed()
{
	local receiver

	needs_virtual
	needs_series
	dumbbell 1 100us
	clean_is_not_ect
	in_ns r python3 -c '
import socket
server = socket.create_server(("", 5201))
server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dctcp_ref")
peer = server.accept()[0]
peer.shutdown(socket.SHUT_WR)
while peer.recv(1 << 20): pass' &
	receiver=$!
	wait_until listening r 5201
	capture r eth0 "$TMP/r.pcap" tcp
	in_ns h1 python3 -c '
import socket
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dctcp_ref")
s.connect(("10.0.0.1", 5201))
s.sendall(bytes(5 << 20))
s.close()' || fail "the sender"
	wait "$receiver" || fail "the receiver"
	judge_echo 2
}
declare_test echo_half_closed "D2" "it does after the receiver has closed its own direction, where the stack reports such packets"

echo_cwr_with_ce()
{
	needs_virtual
	dumbbell 1 100us
	lossy loss 30% ecn
	serve r --cc dctcp_ref
	capture r eth0 "$TMP/r.pcap" tcp
	send --size 2M
	stop_captures
	judged acks "$TMP/r.pcap" 2
	expect "packets with CWR and CE" "$(field cwr_ce <"$TMP/judged")" -ge 5
	expect "of those acknowledged without ECE" "$(field cwr_ce_wrong <"$TMP/judged")" -eq 0
	expect "wrong ECE" "$(field wrong <"$TMP/judged")" -eq 0
}
declare_test echo_cwr_with_ce "D5" "a packet with CWR and CE: CWR is processed first, then CE"

# --- sender ----------------------------------------------------------------

estimate()
{
	needs_virtual
	dumbbell 1 100us
	step 1gbit 8
	serve r --cc dctcp_ref
	capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on dctcp_ref/dctcp_ref_window
	send --size 5M
	trace_off "$TMP/trace"
	stop_captures
	judged dctcp-alpha "$TMP/h.pcap" "$TMP/trace" "$(flow_field sport)"
	expect "windows" "$(field windows <"$TMP/judged")" -ge 50
	expect "windows traced" "$(field traced <"$TMP/judged")" -eq "$(field windows <"$TMP/judged")"
	expect "largest difference from the RFC's alpha" "$(field difference <"$TMP/judged")" -le 0.000001
}
declare_test estimate "D6" "alpha is RFC 8257's, window by window, from the ACKs of a capture"

window_cut()
{
	local cuts

	needs_virtual
	dumbbell 1 100us
	step 1gbit 8
	serve r --cc dctcp_ref
	capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on dctcp_ref/dctcp_ref_cut
	send --size 5M
	trace_off "$TMP/trace"
	stop_captures
	cuts=$(grep -c cause=ecn "$TMP/trace")
	expect "cuts" "$cuts" -ge 20
	expect "cuts that are not cwnd * (1 - alpha / 2)" "$(awk "$VALUES"'
		v["cause"] == "ecn" {
			cut = v["cwnd"] * v["alpha_q30"] / 2^31; got = v["cwnd"] - v["ssthresh"]
			owed += cut - got
			if (v["ssthresh"] > 2 && (owed < -0.001 || owed > 1.001)) bad++
			if (v["ssthresh"] <= 2) owed = 0
		}
		END { print bad + 0 }' "$TMP/trace")" -eq 0
	# CWR is set once per cut, on the first new data; after the last cut there may be
	# no more data. The next CWR is set only after all data that was sent before the
	# last one has been acknowledged.
	judged cwr "$TMP/h.pcap"
	between "packets with CWR" "$(field cwr <"$TMP/judged")" $((cuts - 1)) "$cuts"
	expect "cuts within one window" "$(field early <"$TMP/judged")" -eq 0
}
declare_test window_cut "D7" "cwnd * (1 - alpha / 2), once per window, CWR set once"

# same_time WHAT NS NS: equal, except for the time that reading the clock costs
same_time()
{
	local diff=$(($2 - $3))

	expect "$1, $2 ns against $3 ns, difference" "${diff#-}" -le 2000
}

growth()
{
	local ours reno

	needs_virtual
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 1ms
	shape 1gbit
	serve r --cc dctcp_ref
	send --size 30k
	ours=$(flow_field duration_ns)
	in_ns h1 flowgen long --to 10.0.0.1 --cc reno --size 30k >"$TMP/flow.json"
	reno=$(flow_field duration_ns)
	same_time "slow start" "$ours" "$reno"
	send --size 3M
	ours=$(flow_field duration_ns)
	in_ns h1 flowgen long --to 10.0.0.1 --cc reno --size 3M >"$TMP/flow.json"
	reno=$(flow_field duration_ns)
	same_time "a whole transfer" "$ours" "$reno"
}
declare_test growth "D8" "without marks, the same transfer takes Reno's time, to two microseconds"

# talked STEP...: a connection whose packets are marked from its steps on; its reductions are in $TMP/trace
talked()
{
	needs_virtual
	dumbbell 1 40ms
	lossy loss 0%
	# cwnd is the limit, not the buffer
	in_ns h1 sysctl -qw net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_wmem="4096 4194304 8388608"
	sink dctcp_ref
	trace_on dctcp_ref/dctcp_ref_cut
	client 10.0.0.1 send=100000 acked "$(instead loss 100% ecn)" "$@"
	trace_off "$TMP/trace"
	cat "$TMP/trace"
	expect "reduction, due and done" "$(field cause <"$TMP/trace" | head -n2 | paste -sd' ')" = "due ecn"
}

# The first answer is marked, and the program pauses: the window of the next is the one before the
# marks, until an acknowledgement of it ends the window of the first.
marks_after_pause()
{
	talked send=14480 acked "$(instead loss 0%)" send=14480 info=next- acked
	expect "window of the next answer" "$(field next-cwnd <"$TMP/client")" -ge "$(field cwnd <"$TMP/trace" | sed -n 1p)"
	expect "cut by alpha / 2" "$(awk "$VALUES"'v["cause"] == "ecn" {
		print v["ssthresh"] == v["cwnd"] - int(v["cwnd"] * v["alpha_q30"] / 2^31); exit }' "$TMP/trace")" -eq 1
}
declare_test marks_after_pause "D7" "after a pause marks reduce the window when it ends"

# small_window PYTHON: r accepts a connection c, has a window of a packet or two, and runs PYTHON
small_window()
{
	in_ns r python3 -c '
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dctcp_ref")
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
s.bind(("", 5299))
s.listen()
c = s.accept()[0]
exec(sys.argv[1])' "$1" &
	wait_until listening r 5299
}

# A receiver whose window is a packet or two: each ACK leaves nothing in flight, though the program always
# has more to send.
no_pause()
{
	needs_virtual
	dumbbell 1 1ms
	lossy loss 100% ecn
	small_window "while c.recv(1448): pass"
	trace_on dctcp_ref/dctcp_ref_cut
	client 10.0.0.1 send=200000 acked
	trace_off "$TMP/trace"
	expect "reductions" "$(grep -c cause=ecn "$TMP/trace")" -ge 50
	expect "reductions that wait for the window's end" "$(grep -c cause=due "$TMP/trace")" -le 4
}
declare_test no_pause "D7" "a flow that always has data has not paused when an ACK leaves nothing in flight"

# Flows that start at once reduce their first windows at these windows' ends. What is then in flight
# beyond cwnd leaves, too, though every window is marked.
queue_of_many()
{
	local k=20 flows=10

	needs_virtual
	dumbbell 1 100us
	"$LOWQ_TC" dctcp egress -n "${NSP}sw" --rate 1gbit --shape --k "$k" --quiet --no-rehearsal || fail "lowq-tc dctcp"
	serve r --cc dctcp_ref
	observe 1gbit --from 20ms --to 60ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp_ref --flows "$flows" --duration 70ms >/dev/null || fail "flows failed"
	observed
	expect "mean queue, packets, of $flows flows" "$(jq .qlen_pkts.mean "$TMP/q.json")" -le $((k + flows))
}
declare_test queue_of_many "D7" "ten flows keep the queue within K + N packets, as DCTCP's paper has it"

growth_in_reduction()
{
	# a first reduction, and half of the ACKs that one packet more takes, which a second alone just has not
	talked send=14480 acked "$(instead loss 0%)" send=60000 acked \
		"$(instead loss 100% ecn)" send=1448 sleep=0.01 "$(instead loss 0%)" send=600000 acked
	expect "the second reduction" "$(field cause <"$TMP/trace" | sed -n 3,4p | paste -sd' ')" = "due ecn"
	expect "window that it ends with" "$(field cwnd <"$TMP/trace" | sed -n 4p)" -gt "$(field cwnd <"$TMP/trace" | sed -n 3p)"
}
declare_test growth_in_reduction "D8" "ACKs without a mark let the window grow while it is reduced"

loss_recovery()
{
	needs_virtual
	dumbbell 1 1ms
	data_meets sw egress loss 0.5%
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_cut
	send --size 12M		# about 40 losses, some of them in one window
	trace_off "$TMP/trace"
	expect "losses reacted to" "$(grep -c cause=loss "$TMP/trace")" -ge 3
	expect "cuts that are not half" "$(awk "$VALUES"'
		v["cause"] == "loss" { half = int(v["cwnd"] / 2); if (half < 2) half = 2
			if (v["ssthresh"] != half) bad++ }
		END { print bad + 0 }' "$TMP/trace")" -eq 0
	expect "retransmissions" "$(flow_field retrans)" -ge 3
}
declare_test loss_recovery "D9" "a loss halves the window, as in conventional TCP"

timeout_loss()
{
	local before

	needs_virtual
	dumbbell 1 1ms
	shape 100mbit
	serve r --cc dctcp_ref
	in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp_ref --duration 3s >/dev/null 2>&1 &
	sleep 0.5
	before=$(in_ns h1 ss -Htin state established '( dport = :5201 )' | ss_field cwnd)
	lossy loss 100%
	sleep 1
	in_ns h1 ss -Htin state established '( dport = :5201 )' >"$TMP/ss"
	expect "cwnd before" "$before" -ge 4
	expect "cwnd after a timeout" "$(ss_field cwnd <"$TMP/ss")" -eq 1
	expect "ssthresh after a timeout" "$(ss_field ssthresh <"$TMP/ss")" -le $((before * 6 / 10))
}
declare_test timeout_loss "D9" "a timeout leaves the loss window of one segment"

timeout_after_mark()
{
	local before

	needs_virtual
	dumbbell 1 40ms
	timeout_in_cwr dctcp_ref/dctcp_ref_cut
	before=$(field cwnd <"$TMP/trace" | sed -n 1p)
	expect "ssthresh after the timeout" "$(field ssthresh <"$TMP/trace" | sed -n 2p)" -eq $((before / 2))
}
declare_test timeout_after_mark "D9" "a timeout in the window of a mark halves the window from before the mark"

undo()
{
	needs_virtual
	dumbbell 1 10ms
	# shellcheck disable=SC2119 # no steps follow
	undone
}
declare_test undo "D9" "a loss that was none is undone"

loss_after_ecn()
{
	dumbbell 1 1ms
	data_meets sw egress loss 1%
	# marks when packets leave h1, loss at the bottleneck: often both in one window
	in_ns h1 tc qdisc add dev eth0 root netem limit 100000 loss 4% ecn
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_cut
	send --size 3M
	trace_off "$TMP/trace"
	# after a loss that follows an ECN cut, half of the window before that cut is left
	expect "losses in a window that ECN had cut" "$(awk "$VALUES"'
		v["cause"] == "due" { cwnd = v["cwnd"]; due = 1; next }
		v["cause"] == "ecn" { if (!due) cwnd = v["cwnd"]; due = 0; next }
		v["cause"] == "loss" { n++; due = 0; half = int(cwnd / 2); if (half < 2) half = 2
			if (v["ssthresh"] != half || v["cwnd"] != cwnd) bad++ }
		END { print bad + 0 ":" (n > 0) }' "$TMP/trace")" = "0:1"
}
declare_test loss_after_ecn "D7 D9" "a loss in a window that ECN has cut: both together halve it"

tail_loss()
{
	needs_virtual
	dumbbell 1 10ms
	tail_losses dctcp_ref/dctcp_ref_cut
	echo "tail losses repaired by a probe: $REPAIRED"
	expect "tail losses repaired by a probe" "$REPAIRED" -ge 10
	between "reductions for losses" "$(grep -c cause=loss "$TMP/trace")" "$REPAIRED" "$LOSSES"
	expect "reductions that do not halve" "$(awk "$VALUES"'
		v["cause"] == "loss" { half = int(v["cwnd"] / 2); if (half < 2) half = 2; if (v["ssthresh"] != half) bad++ }
		END { print bad + 0 }' "$TMP/trace")" -eq 0
}
declare_test tail_loss "D9" "a loss that a tail loss probe repairs halves the window, too"

lost_retransmission()
{
	needs_virtual
	dumbbell 1 10ms
	lossy loss 0%
	lost_again dctcp_ref/dctcp_ref_cut
}
declare_test lost_retransmission "D9" "a retransmission lost after a timeout halves the window again"

# --- ECN field -------------------------------------------------------------

ect_on_control()
{
	local v

	needs_virtual
	dumbbell 1 100us
	step 1gbit 8
	serve r --cc dctcp_ref
	for v in 10.0.0.1 fd00:0::1; do
		capture h1 eth0 "$TMP/h.pcap" tcp
		TO=$v send --size 500k
		# a socket sends a reset when it is aborted with data in flight
		in_ns h1 flowgen long --to "$v" --cc dctcp_ref --duration 5ms >/dev/null 2>&1
		stop_captures
		expect "SYN that are not ECT(0), to $v" "$(count "$TMP/h.pcap" 'tcp.flags.syn == 1 && !(ip.dsfield.ecn == 2 || ipv6.tclass.ecn == 2)')" -eq 0
		expect "SYN and SYN-ACK, to $v" "$(count "$TMP/h.pcap" 'tcp.flags.syn == 1')" -ge 4
		# a RST with ACK comes from the socket; a RST without answers stray segments
		expect "RST of the sender, to $v" "$(count "$TMP/h.pcap" 'tcp.flags.reset == 1 && tcp.flags.ack == 1 && tcp.dstport == 5201')" -ge 1
		expect "RST of the sender that are Not-ECT, to $v" "$(count "$TMP/h.pcap" 'tcp.flags.reset == 1 && tcp.flags.ack == 1 && tcp.dstport == 5201 && (ip.dsfield.ecn == 0 || ipv6.tclass.ecn == 0)')" -eq 0
		expect "other packets that are Not-ECT, to $v" "$(count "$TMP/h.pcap" 'tcp.flags.reset == 0 && (ip.dsfield.ecn == 0 || ipv6.tclass.ecn == 0)')" -eq 0
	done
}
declare_test ect_on_control "D10 D12" "SYN, SYN-ACK, RST and pure ACKs are ECT, IPv4 and IPv6"

ce_on_syn()
{
	needs_virtual
	dumbbell 1 100us
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp tcp_flags 0x2/0x2 \
		action pedit ex munge ip tos set 3 retain 3 pipe csum ip
	serve r --cc dctcp_ref
	capture r eth0 "$TMP/r.pcap" tcp
	send --size 500k
	stop_captures
	expect "SYNs that arrived with CE" "$(count "$TMP/r.pcap" 'tcp.flags.syn == 1 && tcp.dstport == 5201 && ip.dsfield.ecn == 3')" -eq 1
	expect "ACKs with ECE" "$(count "$TMP/r.pcap" 'tcp.srcport == 5201 && tcp.flags.syn == 0 && tcp.flags.ece == 1')" -eq 0
}
declare_test ce_on_syn "D10" "CE on a SYN is ignored"

ect_control_off()
{
	needs_virtual
	load ect_control=0
	dumbbell 1 100us
	data_meets sw egress loss 1%
	serve r --cc dctcp_ref
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 2M
	TO=fd00:0::1 send --size 2M
	stop_captures
	expect "new data" "$(count "$TMP/h.pcap" 'tcp.len > 0 && !tcp.analysis.retransmission && !tcp.analysis.out_of_order && (ip.dsfield.ecn == 2 || ipv6.tclass.ecn == 2)')" -ge 1000
	expect "retransmissions" "$(flow_field retrans)" -ge 1
	# a retransmission is a packet whose bytes are in an earlier one; none is ECT
	expect "retransmissions that are ECT" "$(packets "$TMP/h.pcap" 'tcp.dstport == 5201 && tcp.len > 0' \
		tcp.srcport tcp.seq tcp.len ip.dsfield.ecn ipv6.tclass.ecn | awk -F'\t' '
		$2 < nxt[$1] { if (($4 $5) != 0) bad++ }
		{ if ($2 + $3 > nxt[$1]) nxt[$1] = $2 + $3 }
		END { print bad + 0 }')" -eq 0
	expect "new data that is not ECT" "$(packets "$TMP/h.pcap" 'tcp.dstport == 5201 && tcp.len > 0' \
		tcp.srcport tcp.seq tcp.len ip.dsfield.ecn ipv6.tclass.ecn | awk -F'\t' '
		$2 >= nxt[$1] { if (($4 $5) != 2) bad++ }
		{ if ($2 + $3 > nxt[$1]) nxt[$1] = $2 + $3 }
		END { print bad + 0 }')" -eq 0
	expect "pure ACKs of the receiver that are ECT" "$(count "$TMP/h.pcap" 'tcp.srcport == 5201 && tcp.len == 0 && tcp.flags.syn == 0 && tcp.flags.fin == 0 && tcp.flags.reset == 0 && (ip.dsfield.ecn == 2 || ipv6.tclass.ecn == 2)')" -eq 0
}
declare_test ect_control_off "D12" "ect_control=0: only new data, SYNs and resets are ECT"

# IPV6_ADDRFORM (41, 1) gives a socket of IPv6 whose peer is v4-mapped the stack's functions of IPv4.
addrform()
{
	needs_virtual
	load ect_control=0
	dumbbell 1 1ms
	lossy loss 0%
	sink dctcp_ref
	capture h1 eth0 "$TMP/h.pcap" tcp
	client ::ffff:10.0.0.1 send=100000 acked set=41,1,2 get=domain,1,39 send=14480 acked \
		"$(instead loss 2%)" send=1000000 acked
	stop_captures
	expect "the socket's family" "$(field domain <"$TMP/client")" -eq 2
	packets "$TMP/h.pcap" 'tcp.dstport == 5299 && tcp.len > 0' tcp.seq tcp.len ip.dsfield.ecn | awk -F'\t' '
		{ print ($1 < next_seq ? "again" : "new"), $3 }
		$1 + $2 > next_seq { next_seq = $1 + $2 }' >"$TMP/sent"
	expect "new data that is ECT" "$(grep -c "new 2" "$TMP/sent")" -ge 700
	expect "retransmissions" "$(grep -c again "$TMP/sent")" -ge 5
	expect "retransmissions that are ECT" "$(grep -c "again 2" "$TMP/sent")" -eq 0
}
declare_test addrform "D12" "ect_control=0: a retransmission is Not-ECT, too, once the program has turned an IPv6 socket into one of IPv4 (IPV6_ADDRFORM)"

# A probe repeats the last byte's sequence number, without payload.
window_probes()
{
	local v

	needs_virtual
	for v in 1 0; do
		load ect_control="$v"
		dumbbell 1 1ms
		# does not read: the window closes
		small_window "time.sleep(60)"
		capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5299'
		in_ns h1 timeout 3 flowgen long --to 10.0.0.1 --port 5299 --cc dctcp_ref --size 1M >/dev/null 2>&1
		stop_captures
		packets "$TMP/h.pcap" 'tcp.flags.syn == 0 && tcp.flags.fin == 0 && tcp.flags.reset == 0' \
			tcp.seq tcp.len ip.dsfield.ecn | awk -F'\t' '
			$2 { if ($1 + $2 > end) end = $1 + $2; next }
			end && $1 == end - 1 { n++; ect += $3 == 2 }
			END { printf "probes=%d ect=%d\n", n, ect }' | tee "$TMP/judged"
		expect "window probes, ect_control=$v" "$(field probes <"$TMP/judged")" -ge 3
		expect "ECT(0) ones, ect_control=$v" "$(field ect <"$TMP/judged")" -eq $((v * $(field probes <"$TMP/judged")))
		teardown
	done
}
declare_test window_probes "D12" "window probes are ECT, and Not-ECT with ect_control=0"

without_ecn()
{
	needs_virtual
	reno_without_ecn
}
declare_test without_ecn "D13" "a peer without ECN: Reno, and Not-ECT packets"

again()
{
	needs_virtual
	connected_again
}
declare_test again "D13" "a socket in fallback that is disconnected and connected again has the control again"

one_of_handshake()
{
	needs_virtual
	needs_accecn
	handshake_lost
}
declare_test one_of_handshake "D13" "a SYN, SYN-ACK or ACK that is lost by chance does not end ECN, for client or server"

early_choice()
{
	needs_virtual
	dumbbell 1 10ms
	sink
	chosen_early during 1 0 dctcp_ref_reno
	expect "packets after the handshake that are ECT" \
		"$(count "$TMP/early.pcap" 'tcp.flags.syn == 0 && tcp.dstport == 5299 && ip.dsfield.ecn != 0')" -eq 0
	chosen_early during 1 1 dctcp_ref
	expect "data packets that are not ECT(0)" \
		"$(count "$TMP/early.pcap" 'tcp.len > 0 && tcp.dstport == 5299 && ip.dsfield.ecn != 2')" -eq 0
	has_sock_ops || return 0
	chosen_early bpf 0 0 dctcp_ref_reno
	expect "packets after the handshake that are ECT, BPF" \
		"$(count "$TMP/early.pcap" 'tcp.flags.syn == 0 && tcp.dstport == 5299 && ip.dsfield.ecn != 0')" -eq 0
	has_accecn || return 0
	chosen_early bpf 3 3 dctcp_ref
}
declare_test early_choice "D11 D13" "chosen during connect() or by BPF: Reno and Not-ECT, or DCTCP, by what the handshake shows"

plb()
{
	local v

	needs_virtual
	[ -e /proc/sys/net/ipv4/tcp_plb_enabled ] || skip "this kernel has no PLB"
	modprobe -q tcp_dctcp	# or it is built in
	sysctl -n net.ipv4.tcp_available_congestion_control | grep -qw dctcp || skip "no dctcp to compare with"
	# 0: no rehash; 1: after three rounds with more than half of the packets marked
	for v in dctcp_ref:0 dctcp:1 dctcp_ref:1; do
		dumbbell 1 1ms
		lossy delay 1ms loss 80% ecn
		serve r --cc "${v%:*}"
		in_ns h1 sysctl -qw net.ipv4.tcp_plb_enabled="${v#*:}" net.ipv4.tcp_plb_rehash_rounds=3 \
			net.ipv4.tcp_plb_idle_rehash_rounds=0 net.ipv6.auto_flowlabels=1
		capture h1 eth0 "$TMP/h.pcap" 'ip6 and tcp'
		TO=fd00:0::1 CC=${v%:*} send --size 200k
		stop_captures
		echo "${v/:/ } $(in_ns h1 nstat -asz TcpExtTCPPLBRehash | awk 'NR > 1 { print $2 }')" \
			"$(packets "$TMP/h.pcap" 'tcp.dstport == 5201' ipv6.flow | sort -u | wc -l)"
		teardown
	done | tee "$TMP/rehashed"
	expect "rehashes without PLB" "$(awk '$1 == "dctcp_ref" && !$2 { print $3 }' "$TMP/rehashed")" -eq 0
	expect "flow labels without PLB" "$(awk '$1 == "dctcp_ref" && !$2 { print $4 }' "$TMP/rehashed")" -eq 1
	between "rehashes, beside Linux's dctcp" "$(awk '$1 == "dctcp_ref" && $2 { print $3 }' "$TMP/rehashed")" \
		"$(awk '$1 == "dctcp" { print int($3 / 2) }' "$TMP/rehashed")" "$(awk '$1 == "dctcp" { print $3 * 2 }' "$TMP/rehashed")"
	expect "flow labels" "$(awk '$1 == "dctcp_ref" && $2 { print $4 }' "$TMP/rehashed")" -ge 3
}
declare_test plb "" "with net.ipv4.tcp_plb_enabled a flow whose path marks most packets changes its flow label, as Linux's dctcp does"

ect_syn_dropped()
{
	dumbbell 1 1ms
	shape 1gbit
	syn_dropped
}
declare_test ect_syn_dropped "D10 D13" "a path that drops SYNs with ECT: the retransmitted one is Not-ECT, and the connection is made"

# --- parameters ------------------------------------------------------------

# median_rpc CONTROL: median time of 20 kB requests beside two long flows, in microseconds
median_rpc()
{
	local long rpc

	in_ns h1 flowgen long --to 10.0.0.1 --cc "$1" --flows 2 --duration 300ms >/dev/null &
	long=$!
	in_ns r flowgen rpc --to 10.0.1.1 --cc "$1" --persist --size 20k --rate 2000 --start 50ms \
		--duration 250ms --seed 1 --timeout 5s >"$TMP/rpc.jsonl" &
	rpc=$!
	wait "$long" || fail "the long flows failed"
	wait "$rpc" || fail "the requests failed"
	jq -s '[.[] | select(.type == "flow" and .status == "ok") | .since_due_ns / 1000] | sort |
		.[length / 2 | floor] | floor' "$TMP/rpc.jsonl"
}

requests()
{
	local theirs rfc

	needs_virtual
	dumbbell 1 100us
	step 10gbit 13
	serve r --cc dctcp_ref
	serve h1 --cc dctcp_ref
	rfc=$(median_rpc dctcp_ref)
	theirs=$(median_rpc dctcp)
	echo "median request: dctcp $theirs us, RFC 8257 $rfc us"
	expect "median request, of dctcp's, percent" $((100 * rfc / theirs)) -le 108
}
declare_test requests "D7" "requests beside long flows take as long as with Linux' dctcp"

mainline()
{
	local theirs ours

	needs_virtual
	dumbbell 1 100us
	step 10gbit 13
	serve r --cc dctcp_ref
	serve h1 --cc dctcp_ref
	parameter mainline=1
	trace_on dctcp_ref/dctcp_ref_cut
	send --size 100M
	trace_off "$TMP/trace"
	expect "cuts" "$(grep -c cause=ecn "$TMP/trace")" -ge 20
	expect "cuts that are not rounded down for good" "$(awk "$VALUES"'
		v["cause"] == "ecn" && v["ssthresh"] > 2 && v["cwnd"] - v["ssthresh"] != int(v["cwnd"] * v["alpha_q30"] / 2^31) { bad++ }
		END { print bad + 0 }' "$TMP/trace")" -eq 0
	ours=$(median_rpc dctcp_ref)
	theirs=$(median_rpc dctcp)
	echo "median request: dctcp $theirs us, mainline=1 $ours us"
	between "median request with mainline=1, of dctcp's, percent" $((100 * ours / theirs)) 92 108
}
declare_test mainline "D7" "mainline=1: reductions are rounded down, and requests take as long as with Linux' dctcp"

ways_to_choose()
{
	needs_virtual
	chosen_each_way
}
declare_test ways_to_choose "D11" "per socket, by sysctl, per route; IPv4 and IPv6"

restricted()
{
	load
	only_if_allowed
}
declare_test restricted "D11" "restricted: an ordinary user cannot choose it unless allowed"

rtt_gate()
{
	needs_virtual
	load rtt_gate_us=2000
	dumbbell 2 100us 5ms
	step 1gbit 8
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_cut
	send --size 3M
	trace_off "$TMP/trace"
	! virtual || expect "below the gate: conventional cuts" "$(grep -c cause=gate "$TMP/trace")" -eq 0
	! virtual || expect "below the gate: scalable cuts" "$(grep -c cause=ecn "$TMP/trace")" -ge 5
	trace_on dctcp_ref/dctcp_ref_cut
	in_ns h2 flowgen long --to 10.0.0.1 --timeout 120s --cc dctcp_ref --size 6M >"$TMP/flow.json" || fail "flow failed"
	trace_off "$TMP/trace"
	expect "above the gate: conventional cuts" "$(grep -c cause=gate "$TMP/trace")" -ge 1
	expect "above the gate: scalable cuts" "$(grep -c cause=ecn "$TMP/trace")" -eq 0
	expect "cuts that are not half" "$(awk "$VALUES"'{
		half = int(v["cwnd"] / 2); if (half < 2) half = 2; if (v["ssthresh"] != half) bad++ }
		END { print bad + 0 }' "$TMP/trace")" -eq 0
}
declare_test rtt_gate "D11" "above the RTT gate ECN halves, below it cuts by alpha / 2"

alpha_reset()
{
	local lost

	needs_virtual
	load alpha_reset_on_loss=1
	dumbbell 1 1ms
	data_meets sw egress loss 0.3%
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_cut dctcp_ref/dctcp_ref_window
	send --size 12M
	trace_off "$TMP/trace"
	# there are no marks, so alpha is (1 - g) again one window after a loss
	lost=$(awk "$VALUES"'/cause=loss/ { lost = 1; next }
		/dctcp_ref_window/ && lost { n++; if (v["alpha_q30"] == 2^30 * 15 / 16) good++; lost = 0 }
		END { print n + 0 ":" (n && n == good) }' "$TMP/trace")
	expect "losses seen, and alpha back at 1 after each" "${lost#*:}" -eq 1
}
declare_test alpha_reset "D14" "alpha_reset_on_loss=1 sets alpha back"

parameters()
{
	refused shift_g=0 shift_g=11 shift_g=-1 shift_g=x alpha_init=1025 alpha_init=-1 \
		rtt_gate_us=10000001 alpha_reset_on_loss=2 shift_g= shift_g=99999999999
	[ ! -w "$PARAM"/ect_control ] || ! echo 1 2>/dev/null >"$PARAM"/ect_control || fail "ect_control can be changed"
	refused_at_load shift_g=0
	load shift_g=7 alpha_init=0
	expect "shift_g" "$(<"$PARAM"/shift_g)" -eq 7
}
declare_test parameters "D15" "wrong parameters are refused with a reason, the old value stays"

light_marking()
{
	local true_fraction theirs

	needs_virtual
	load alpha_init=0
	dumbbell 1 1ms
	shape 10gbit
	# 1/400 of the packets, far below 1/64, the least that mainline's alpha follows
	in_ns h1 tc qdisc add dev eth0 root netem limit 1000000 loss 0.25% ecn
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_window
	send --size 400M
	trace_off "$TMP/trace"
	echo "windows: $(wc -l <"$TMP/trace")"
	true_fraction=$(awk "$VALUES"'NR > 60 { acked += v["acked"]; marked += v["marked"] } END { print marked / acked }' "$TMP/trace")
	# alpha weights all windows equally, so compare it with the mean of the windows' fractions
	between "mean alpha / mean fraction" "$(awk "$VALUES"'NR > 60 { alpha += v["alpha_q30"]; m += v["fraction_q30"] } END { printf "%.3f", alpha / m }' "$TMP/trace")" 0.9 1.1
	expect "alpha at 0, windows" "$(grep -c 'alpha_q30=0 ' "$TMP/trace")" -le 10
	echo "fraction $true_fraction"
	# for comparison mainline's alpha, from ss: zero in nearly all samples
	in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp --size 400M >/dev/null &
	sleep 0.15
	theirs=$(for _ in $(seq 50); do sleep 0.002; in_ns h1 ss -Htin dport = :5201; done | ss_field alpha | sort -n | awk '{ a[NR] = $1 } END { print a[int(NR / 2) + 1] }')
	wait $!
	expect "mainline's median alpha at the same marking" "${theirs:-none}" -eq 0
}
declare_test light_marking "D16" "a marked fraction of 1/400 is followed within 10 %, where mainline's alpha is 0"

ack_loss()
{
	needs_virtual
	dumbbell 1 1ms
	step 100mbit 8
	serve r --cc dctcp_ref
	trace_on dctcp_ref/dctcp_ref_window
	# keep the SYN-ACK: a retransmitted SYN does not ask for ECN
	(sleep 0.01; in_ns r tc qdisc add dev eth0 root netem loss 20% limit 100000) &
	send --size 5M
	trace_off "$TMP/trace"
	expect "alpha above 1, windows" "$(field alpha_q30 <"$TMP/trace" | awk '$1 > 2^30 { n++ } END { print n + 0 }')" -eq 0
	# the estimate stays within a factor of 3 of the fraction that the queue marked
	expect "mean alpha against the marked fraction, ratio" "$(awk -v f="$(queue_counts sw egress |
		awk '{ print $1 / (5000000 / 1448) }')" "$VALUES"'NR > 20 { s += v["alpha_q30"]; n++ } END { r = s / n / 2^30 / f; print (r > 1 ? r : 1 / r) }' "$TMP/trace")" -le 3
}
declare_test ack_loss "D18" "with 20 % of the ACKs lost the estimate stays in bounds"

info()
{
	needs_virtual
	dumbbell 1 100us
	step 1gbit 8
	serve r --cc dctcp_ref
	in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp_ref --duration 1s >/dev/null &
	sleep 0.5
	in_ns h1 ss -Htin dport = :5201 >"$TMP/ss"
	wait $!
	grep -q 'dctcp:(ce_state:[01],alpha:[0-9]*,ab_ecn:[0-9]*,ab_tot:[0-9]*)' "$TMP/ss" ||
		fail "ss -ti does not show DCTCP: $(<"$TMP/ss")"
	expect "alpha of 1024" "$(ss_field alpha <"$TMP/ss")" -le 1024
	expect "alpha of 1024" "$(ss_field alpha <"$TMP/ss")" -gt 0
}
declare_test info "D19" "ss -ti shows alpha, CE state, marked and total bytes"

# marked_bytes, counted_bytes: of the connection of "client" to the sink: those that arrive marked in
# the capture, those that the trace accounts for. A connection of the test before may still end.
marked_bytes()
{
	packets "$TMP/r.pcap" 'tcp.dstport == 5299 && ip.dsfield.ecn == 3 && tcp.len > 0' tcp.len | awk '{ s += $1 } END { print s + 0 }'
}

counted_bytes()
{
	awk -v port="$(field sport <"$TMP/client")" "$VALUES"'v["sport"] == port { s += v["marked"] } END { print s + 0 }' "$TMP/trace"
}

accecn()
{
	local marks acks="tc -n ${NSP}r qdisc"

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	lossy loss 2% ecn
	sink dctcp_ref
	SNAPLEN=96 capture r eth0 "$TMP/r.pcap" 'tcp dst port 5299'
	trace_on dctcp_ref/dctcp_ref_window
	# In mid-flow a tenth of the ACKs is lost; AccECN's counters repeat what they said. Not at the start
	# and the end: where the only ACK is lost, twice, the data comes again, and the receiver ends its
	# options (accecn_options_end). Without marks at the end: the window that counts the latest ones ends.
	client 10.0.0.1 send=1000000 "run=$acks add dev eth0 root netem loss 10% limit 100000" send=9000000 \
		"run=$acks del dev eth0 root" acked "$(instead loss 0%)" send=1000000 acked
	trace_off "$TMP/trace"
	stop_captures
	expect "SYN with AE" "$(count "$TMP/r.pcap" 'tcp.flags.syn == 1 && tcp.flags.ae == 1')" -ge 1
	marks=$(marked_bytes)
	# 2 % of 6900 packets
	between "marked bytes that arrive" "$marks" 140000 270000
	expect "marked bytes that are accounted for" "$(counted_bytes)" -eq "$marks"
}
declare_test accecn "D20" "with Accurate ECN each marked byte counts once, though a tenth of the ACKs is lost"

# A receiver that gets the same data again, twice, takes its AccECN options for the cause, and sends no
# more of them. The stack then adds all bytes to what the last option reported. The rate keeps ACKs
# short: from 8 packets on ACE is ambiguous.
accecn_options_end()
{
	local first marks

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	sink dctcp_ref
	# percent of marks that the last options report
	for first in 100 0.01; do
		lossy loss "$first%" ecn rate 1gbit
		SNAPLEN=96 capture r eth0 "$TMP/r.pcap" 'tcp port 5299'
		trace_on dctcp_ref/dctcp_ref_window
		client_without_options "$(change loss 4% rate 1gbit)" send=3000000 acked "$(instead rate 1gbit)" send=500000 acked
		trace_off "$TMP/trace"
		stop_captures
		expect "ACKs without an option" "$(count "$TMP/r.pcap" 'tcp.srcport == 5299 && tcp.option_kind != 172 && tcp.option_kind != 174')" -ge 500
		marks=$(marked_bytes)
		echo "after $first % of marks: $marks bytes marked, $(counted_bytes) counted"
		# ACE counts packets, and not all are full; what is repeated arrives more than once
		between "marked bytes that are counted, percent, first $first" $((100 * $(counted_bytes) / marks)) 94 104
	done
}
declare_test accecn_options_end "D20" "marks are counted by ACE after the peer has stopped sending AccECN options"

small_segments()
{
	local option

	needs_virtual
	needs_accecn
	load alpha_init=0
	accecn_dumbbell 1 10ms
	lossy loss 5% ecn
	sink dctcp_ref
	for option in 2 0; do
		every sysctl -qw net.ipv4.tcp_ecn_option="$option"
		trace_on dctcp_ref/dctcp_ref_window
		client 10.0.0.1 writes=8000,100,0.0005 acked
		trace_off "$TMP/trace"
		# 100-byte segments, 5 % of them marked
		between "mean alpha, tcp_ecn_option=$option" "$(awk "$VALUES"'NR > 60 { s += v["alpha_q30"] / 2^30; n++ }
			END { printf "%.4f", s / n }' "$TMP/trace")" 0.04 0.065
	done
}
declare_test small_segments "D6 D20" "with Accurate ECN and 100-byte segments alpha is the marked fraction"

# answered OPTION UPTO: requests, none of whose packets is marked; the pure ACKs of the first UPTO
# bytes of each answer are. The peer's Accurate ECN has options (OPTION 1) or ACE alone (0).
answered()
{
	every sysctl -qw net.ipv4.tcp_ecn_option="$1"
	trace_on dctcp_ref/dctcp_ref_window
	in_ns h1 timeout 60 python3 - "$NSP" "$2" <<-'END' || fail "requests"
		import socket, subprocess, sys, time
		def marks(percent):
		    subprocess.run(f"tc -n {sys.argv[1]}sw qdisc change dev egress root netem limit 100000 loss {percent}", shell=True, check=True)
		s = socket.socket()
		s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dctcp_ref")
		s.connect(("10.0.0.1", 5299))
		for i in range(20):
		    s.sendall(b"?" * 4000)
		    time.sleep(0.011)
		    marks("100% ecn")
		    left, rest = 400000, 400000 - int(sys.argv[2])
		    while left:
		        left -= len(s.recv(min(left, 4096)))
		        if left < rest:
		            marks("0%")
		            rest = 0
		    time.sleep(0.05)
		    marks("0%")
		s.close()
	END
	trace_off "$TMP/trace"
	expect "windows of the requests" "$(wc -l <"$TMP/trace")" -ge 15
	expect "mean marked fraction of the requests, none of which was marked" "$(awk "$VALUES"'v["dport"] == 5299 {
		s += v["fraction_q30"] / 2^30; n++ } END { printf "%.4f", s / n }' "$TMP/trace")" -le 0.02
}

pure_ack_marks()
{
	needs_virtual
	needs_accecn
	load alpha_init=0
	accecn_dumbbell 1 10ms
	in_ns sw tc qdisc add dev egress root netem limit 100000 loss 0%
	in_ns r python3 -c '
import socket
s = socket.create_server(("", 5299))
while True:
	with s.accept()[0] as c:
		try:
			while c.recv(1 << 16): c.sendall(b"x" * 400000)
		except ConnectionError: pass' &
	wait_until listening r 5299
	# the answer's last ACKs are reported with the next request's: ACE does not say which were marked
	answered 1 400000
	answered 0 200000
}
declare_test pure_ack_marks "D20" "marks on pure ACKs are not counted against the next data"

# --- switching and unloading -----------------------------------------------

iperf()
{
	needs_virtual
	default_control dctcp_ref
	dumbbell 1 100us
	step 1gbit 20
	iperf_transfers 800
}
declare_test iperf "D11" "iperf3 -C dctcp_ref, IPv4 and IPv6"

switch_mid_flow()
{
	local i c

	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 100us
	step 1gbit 8
	# iperf3 sets its control after connect: that is a switch mid-flow, with ECN
	in_ns r iperf3 -s -p 5202 >/dev/null 2>&1 &
	wait_until listening r 5202
	for i in 1 2; do
		for c in dctcp_ref cubic reno dctcp; do
			iperf_client h1 -c 10.0.0.1 -p 5202 -C "$c" -n 500k
			expect "control" "$(jq -r .end.sender_tcp_congestion "$TMP/iperf.json")" = "$c"
		done
	done
	# and many times on one connection
	sink
	switch_controls h1 10.0.0.1 dctcp_ref cubic reno dctcp
}
declare_test switch_mid_flow "" "the control changes mid-flow, to and from this one"

unload()
{
	dumbbell 1 100us
	step 1gbit 8
	in_use
}
declare_test unload "" "unloading is refused while in use, and works afterwards"

left()
{
	outlived ect_control=0
}
declare_test left "" "a connection that has left the control outlives its module"

# Everything at once, so that the kernel's checkers see it: marks, loss, lost ACKs, IPv4 and IPv6,
# the egress hook, Accurate ECN, changes of control and parameters, and a namespace that is
# deleted under traffic.
stress()
{
	local i v

	load ect_control=0 alpha_reset_on_loss=1
	for i in 0 3; do
		dumbbell 2 1ms
		every sysctl -qw net.ipv4.tcp_ecn="$i"
		step 100mbit 8
		storm 5
		for v in 1 10 4; do
			sleep 0.3
			parameter shift_g="$v" rtt_gate_us=$((v * 100))
		done
		sleep 0.5
		vanish h2
		sleep 0.5
		teardown
	done
	virtual || LOADED=	# no reload: the last socket may keep the module for minutes
}
declare_test stress "" "marks, loss, switches, parameters, a deleted namespace: nothing breaks"

run_tests "$@"
