#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tcp_ldcp against the LDCP draft, judged by its packets and tracepoints; and lowq-tc's WRED.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"
export LOWQ_STATE_DIR=$TMP/state

under_test ldcp
ECT_ONLY=1	# netem's marks would be drops for the first RTT's packets

# wred RATE [lowq-tc options]: makes the bottleneck, a shaper over the two profiles
wred()
{
	virtual || set -- 10mbit "${@:2}"
	"$LOWQ_TC" ldcp egress -n "${NSP}sw" --rate "$1" --rtt 100us --quiet --no-rehearsal "${@:2}" ||
		fail "lowq-tc ldcp $*"
}

# initial WINDOW: sets the initial window of h1's routes in packets, IPv4 and IPv6
initial()
{
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd "$1" initrwnd "$((2 * $1))"
	ip -n "${NSP}h1" -6 route replace default via fd00:1::254 initcwnd "$1"
	ip -n "${NSP}r" route replace default via 10.0.0.254 initrwnd "$((2 * $1))"
	ip -n "${NSP}r" -6 route replace default via fd00:0::254 initrwnd "$((2 * $1))"
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 $(($1 * 8000 + 131072)) 6291456"
}

# --- sender, stable stage ---------------------------------------------------

window_rule()
{
	local v a b

	needs_virtual
	for v in "1024 512" "300 64"; do
		read -r a b <<<"$v"
		load alpha="$a" beta="$b"
		dumbbell 1 1ms
		initial 10
		shape 100mbit
		data_meets h1 eth0 loss 10% ecn
		serve r --cc ldcp
		capture h1 eth0 "$TMP/h.pcap" tcp
		trace_on ldcp/ldcp_ack ldcp/ldcp_window
		send --size 8M
		trace_off "$TMP/trace"
		stop_captures
		judge ldcp-window "$TMP/h.pcap" "$TMP/trace" "$(flow_field sport)" --alpha "$a" --beta "$b" |
			tee "$TMP/judged"
		expect "ACKs" "$(field acks <"$TMP/judged")" -ge 5000
		expect "largest difference from the draft's cw" "$(field difference <"$TMP/judged")" -le 0.00001
		# nothing else moves the window: no response once per RTT
		expect "window set other than per ACK" "$(field set_otherwise <"$TMP/judged")" -eq 0
		expect "cwnd that is not cw in whole packets" "$(field not_whole <"$TMP/judged")" -eq 0
		expect "ACKs with ECE" "$(field marked <"$TMP/judged")" -ge 50
		teardown
	done
}
declare_test window_rule "L3 L4 L15" "cw is the draft's, ACK by ACK, from the ACKs of a capture, and nothing else moves it"

# Losses keep the window at its minimum for seconds: how far apart packets leave, and how
# soon the rate recovers afterwards.
below_one()
{
	local start again

	needs_virtual
	dumbbell 1 1ms
	shape 100mbit
	initial 10
	data_meets h1 eth0 loss 100% ecn
	# alpha is one packet per RTT, whatever the default
	parameter alpha=1024
	serve r --cc ldcp
	capture h1 eth0 "$TMP/h.pcap" "tcp dst port 5201"
	trace_on ldcp/ldcp_ack
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 8s >"$TMP/flow.json" &
	# losses start only now: a retransmitted SYN would not ask for ECN
	wait_until eval 'in_ns h1 ss -Htn state established dport = :5201 | grep -q .'
	in_ns sw tc qdisc add dev egress parent 1:1 netem limit 1000 loss 5%
	sleep 5
	in_ns h1 ss -Htin dport = :5201 >"$TMP/ss"
	in_ns sw tc qdisc del dev egress parent 1:1
	sleep 1
	in_ns h1 tc qdisc del dev eth0 root
	start=$(date +%s.%N)
	wait $!
	trace_off "$TMP/trace"
	stop_captures
	grep -q 'cwnd_gain:0.0625' "$TMP/ss" || fail "ss -ti does not show cw = 1/16: $(<"$TMP/ss")"
	# RTT / cw = 16 ms, or a little less: srtt may be just below a millisecond
	judged gaps "$TMP/h.pcap" 15800 17000 --start 0.5 --until "$start"
	again=$(field retransmitted <"$TMP/judged")
	expect "packets at one RTT / cw" "$(field within <"$TMP/judged")" -ge 100
	# after a pause, which a retransmission ends, the stack's pacing waits for half
	expect "packets sooner than RTT / cw" "$(field sooner <"$TMP/judged")" -le "$again"
	expect "retransmissions among them" "$again" -ge 3
	expect "packets later, without a loss before" "$(field later <"$TMP/judged")" -le $((again * 2))
	expect "least cw in 1/16" "$(field cw_q40 <"$TMP/trace" | sort -n | awk 'NR == 1 { print $1 / 2^36 }')" -eq 1
	# two steps of half a packet after RTT / cw, then one packet per RTT up to 8.3
	expect "seconds from the last mark to 95 % of the rate" "$(packets "$TMP/h.pcap" 'tcp.len > 0' frame.time_epoch frame.len |
		awk -F'\t' -v s="$start" '$1 > s { b[int(($1 - s) * 200)] += $2; m = int(($1 - s) * 200) }
		END { for (i = 0; i < m; i++) if (b[i] * 8 * 200 >= 95e6) { print (i + 1) / 200; exit } print 99 }')" -le 0.085
}
declare_test below_one "L5 L6 L15" "cw = 1/16 for seconds: a packet every RTT / cw, retransmitted or new; then growth at the rule's rate"

# --- fast start -------------------------------------------------------------

# Messages of different numbers of packets; the initial window is 20
fast_start_wire()
{
	local v i size sizes=(1 3 19 20 21 60 500) flow mss

	needs_virtual
	for v in 4 6 tso; do
		OFFLOADS=
		[ "$v" != tso ] || OFFLOADS=1
		dumbbell 1 1ms
		initial 20
		shape 10gbit
		serve r --cc ldcp
		capture h1 eth0 "$TMP/h.pcap" tcp
		mss=1448 TO=10.0.0.1
		[ "$v" != 6 ] || { mss=1428; TO=fd00:0::1; }
		for size in "${sizes[@]}"; do
			# flowgen's header adds 24 bytes
			send --size $((size * mss - 100)) --dscp 10
		done
		stop_captures
		judge first-rtt "$TMP/h.pcap" --mss "$mss" >"$TMP/flows"
		if [ "$v" = tso ]; then
			capture h1 eth0 "$TMP/h.pcap" tcp
			in_ns h1 flowgen rpc --push --persist --closed 1 --requests 2 --size 20k --to 10.0.0.1 --cc ldcp >/dev/null
			stop_captures
			expect "TSO packets of a second message" "$(count "$TMP/h.pcap" "tcp.len > $mss")" -ge 1
		fi
		i=0
		while read -r flow; do
			size=${sizes[i++]}
			echo "$v: $size packets: $flow"
			expect "$v: first-RTT packets of a message of $size" "$(field first <<<"$flow")" -eq $((size < 20 ? size : 20))
			expect "$v: of them ECT before the last, message of $size" "$(field early <<<"$flow")" -eq 0
			expect "$v: ECN of the last first-RTT packet, message of $size" "$(field last <<<"$flow")" -eq 2
			expect "$v: Not-ECT packets after the first RTT, message of $size" "$(field late <<<"$flow")" -eq 0
			expect "$v: segments larger than MSS, message of $size" "$(field big <<<"$flow")" -eq 0
			expect "$v: DSCPs, message of $size" "$(field dscps <<<"$flow")" -eq 1
		done <"$TMP/flows"
		expect "$v: flows" "$i" -eq ${#sizes[@]}
		teardown
	done
}
declare_test fast_start_wire "L7 L8 L11" "messages shorter, equal and longer than the window; IPv4, IPv6, TSO: Not-ECT but the last, then ECT"

# The receiver's window limits the first RTT: the last packet that fits is ECT. One window
# is so small that the stack sends the write in parts.
fast_start_rwnd()
{
	local flow n

	needs_virtual
	dumbbell 1 1ms
	shape 10gbit
	initial 100
	ip -n "${NSP}r" route replace default via 10.0.0.254
	for n in 20000 60000 131072; do
		in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 $n $n"
		serve r --cc ldcp
		capture h1 eth0 "$TMP/h.pcap" tcp
		send --size 300000
		stop_captures
		flow=$(judge first-rtt "$TMP/h.pcap")
		echo "rmem $n: $flow"
		between "rmem $n: first-RTT packets" "$(field first <<<"$flow")" 5 99
		# the stack sends a long write in parts of half the window
		expect "rmem $n: of them ECT before the last" "$(field early <<<"$flow")" -le 2
		expect "rmem $n: ECN of the last first-RTT packet" "$(field last <<<"$flow")" -eq 2
		expect "rmem $n: Not-ECT packets after the first RTT" "$(field late <<<"$flow")" -eq 0
		kill_in "${NSP}r" TERM
		wait_until eval '! listening r 5201'
	done
}
declare_test fast_start_rwnd "L7 L8" "a window limited by the receiver: the last packet that fits is ECT"

# The stack sends a write in parts if it is longer than half of the peer's window, about 32 KB.
# Some of these writes end with the first part.
write_in_parts()
{
	local n

	needs_virtual
	dumbbell 1 1ms
	initial 50
	shape 10gbit
	sink ldcp
	for n in {20..26}; do
		capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5299'
		talk cc=ldcp send=$((n * 1448)) acked
		stop_captures
		packets "$TMP/h.pcap" 'tcp.len > 1000' tcp.len ip.dsfield.ecn >"$TMP/sent"
		expect "packets of $n" "$(wc -l <"$TMP/sent")" -eq "$n"
		expect "of $n: ECT before the last" "$(head -n -1 "$TMP/sent" | awk '$2' | wc -l)" -le 1
		expect "of $n: ECN field of the last" "$(tail -n 1 "$TMP/sent" | cut -f2)" -eq 2
	done
}
declare_test write_in_parts "L8" "the last packet of a write is ECT, also where the write ends with its first part"

# The initial window from parameters: 1 Gb/s x 1 ms = 83 packets. The server sends, because
# a client's first RTT has to fit the SYN-ACK's window of at most 64 KB.
fast_start_window()
{
	local iw=83 rtt=1000 flow

	needs_virtual
	# 6.1's receivers always start with 64 KB
	[[ $(uname -r) != 6.1.* ]] || iw=42 rtt=500
	load link_rate_mbps=1000 base_rtt_us="$rtt"
	dumbbell 1 1ms
	ip -n "${NSP}r" route replace default via 10.0.0.254 initrwnd 200
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 1000000 6291456"
	wred 1gbit --k 100 --min 100 --max 200
	serve h1 --cc ldcp
	capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on ldcp/ldcp_window ldcp/ldcp_ack
	in_ns r flowgen long --pull --to 10.0.1.1 --cc ldcp --size 400k >"$TMP/flow.json" || fail "flow failed"
	trace_off "$TMP/trace"
	stop_captures
	flow=$(judge first-rtt "$TMP/h.pcap" --server)
	echo "$flow"
	expect "first-RTT packets" "$(field first <<<"$flow")" -eq "$iw"
	expect "of them ECT before the last" "$(field early <<<"$flow")" -eq 0
	expect "ECN of the last first-RTT packet" "$(field last <<<"$flow")" -eq 2
	# sent at once: no pacing
	expect "us from the first packet to the last of the first RTT" "$(packets "$TMP/h.pcap" 'tcp.len > 1000 && tcp.srcport == 5201' frame.time_relative |
		awk -v iw="$iw" 'NR == 1 { t = $1 } NR == iw { printf "%.3f", ($1 - t) * 1e6 }')" -le 1
	# success: a full initial window acknowledged, cw = IW
	grep 'sport=5201 ' "$TMP/trace" >"$TMP/ours"
	expect "cw when all of it was acknowledged" "$(grep cause=full "$TMP/ours" | field cw_q40 | awk '{ print $1 / 2^40 }')" -eq "$iw"
	expect "packets acknowledged before" "$(awk '/cause=full/ { print n; exit } /ldcp_ack/ { match($0, /clean=[0-9]*/); n += substr($0, RSTART + 6, RLENGTH - 6) }' "$TMP/ours")" -eq $((iw - 1))
}
declare_test fast_start_window "L7 L11" "IW = link rate x base RTT, sent at once; all of it acknowledged: cw = IW"

# The WRED drops first-RTT packets: cw becomes what arrived of them, and they are retransmitted as ECT through
# the same queue.
fast_start_loss()
{
	local before got flow v

	needs_virtual
	for v in 4 6; do
		dumbbell 1 1ms
		initial 40
		wred 100mbit --k 7 --max 30
		serve r --cc ldcp
		TO=10.0.0.1
		[ "$v" != 6 ] || TO=fd00:0::1
		capture h1 eth0 "$TMP/h.pcap" tcp
		capture r eth0 "$TMP/r.pcap" tcp
		trace_on ldcp/ldcp_window ldcp/ldcp_ack
		send --size 400k
		trace_off "$TMP/trace"
		stop_captures
		flow=$(judge first-rtt "$TMP/h.pcap")
		expect "first-RTT packets" "$(field first <<<"$flow")" -eq 40
		# the stack sends the write in parts
		expect "of them ECT before the last" "$(field early <<<"$flow")" -le 1
		expect "retransmissions" "$(field again <<<"$flow")" -ge 10
		expect "retransmissions that are Not-ECT" "$(field again_not_ect <<<"$flow")" -eq 0
		expect "later packets that are Not-ECT" "$(field late <<<"$flow")" -eq 0
		# a packet for each that is confirmed, until the first retransmission is
		before=$((40 - $(vq_count 2 'forced_drop + .prob_drop')))
		got=$(ours "$TMP/trace" | awk "$VALUES"'
			/cause=loss/ { cw = v["cw_q40"]; lost = 1 }
			lost && /ldcp_ack/ && v["cw_q40"] - cw == v["clean"] * 2^40 { cw = v["cw_q40"] }
			END { print cw / 2^40 }')
		between "$v: cw: what arrived, then slow start to half of the burst" "$got" "$before" 20
		echo "$v: arrived: $before, cw: $got; $flow"
		expect "ended by a timeout" "$(ours "$TMP/trace" | grep -c cause=timeout)" -eq 0
		# the last packet is ECT and arrives; stable-stage packets are not dropped
		expect "ECT packets that were dropped" "$(vq_count 1 'forced_drop + .prob_drop + .pdrop')" -eq 0
		expect "Not-ECT packets that were dropped" "$(vq_count 2 'forced_drop + .prob_drop')" -ge 10
		# no new data: the window limits retransmissions
		trace_on ldcp/ldcp_ack
		send --size 50k
		trace_off "$TMP/trace"
		expect "steps of cw where only lost packets are left" "$(ours "$TMP/trace" | awk "$VALUES"'
			v["ca_state"] == 3 { if (cw && v["cw_q40"] > cw) up++; cw = v["cw_q40"] } END { print up + 0 }')" -ge 5
		teardown
	done
}
declare_test fast_start_loss "L8 L10 L12" "first-RTT packets are dropped: cw = what arrived, retransmitted as ECT, no timeout"

# vq_count VQ EXPRESSION: computed from the WRED's counters
vq_count()
{
	in_ns sw tc -s -j qdisc show dev egress |
		jq --argjson q "$1" "[.[] | select(.kind == \"gred\") | .options.vqs[] | select(.vq == \$q) | .$2] | add"
}

# --- switch -----------------------------------------------------------------

# The queue that each packet meets on arrival, in full packets, from captures on both sides,
# and whether it is marked, dropped or passed
wred_profiles()
{
	needs_virtual
	dumbbell 2 100us
	# a sender that hardly reacts to marks, so that the queue covers its whole range
	load alpha=1024 beta=1
	wred 1gbit --min 10 --max 60 --probability 0.5 --k 40 --limit 200
	serve r --cc ldcp
	observe 1gbit --packets "$TMP/packets"
	# one ECT flow, which fills the queue slowly, and Not-ECT ones beside it
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 400ms >/dev/null &
	in_ns h2 flowgen rpc --push --to 10.0.0.1 --cc cubic --size 1k --rate 3000 --duration 400ms >/dev/null 2>&1
	wait $!
	observed
	# the queue that a packet met: packets that arrived before it and left after that
	tail -n +2 "$TMP/packets" | awk -F, '$1 { print $1, $2 == "" ? 0 : $2, $6, $7 == "" ? "lost" : $7, $5 }' |
		sort -n | awk '
		NR == 1 { end = $1 + 400e6 }
		$1 > end { exit }	# afterwards timeouts send many packets at once
		{ n++; while (head < n - 1 && out[head + 1] <= $1) head++
		  q = 0; for (i = head + 1; i < n; i++) if (out[i] > $1) q += len[i]
		  out[n] = $2; len[n] = $5; print q / 1514, $3, $4, $5 }' >"$TMP/met"
	awk '$4 > 1000 && $2 == 2 { b = int($1 / 10); n[b]++; if ($3 == 3) m[b]++ }
		END { for (b in n) print b * 10, n[b], m[b] / n[b] }' "$TMP/met" | sort -n | tee "$TMP/marks"
	expect "ECT packets marked below K_min - 4" "$(awk '$2 == 2 && $1 < 6 && $3 == 3' "$TMP/met" | wc -l)" -eq 0
	expect "ECT packets not marked above K_max + 4" "$(awk '$2 == 2 && $1 > 64 && $3 == 2' "$TMP/met" | wc -l)" -eq 0
	expect "ECT packets dropped" "$(awk '$2 == 2 && $3 == "lost"' "$TMP/met" | wc -l)" -eq 0
	# the average lags by a packet when the queue drains or a burst arrives
	expect "Not-ECT packets dropped below K - 8" "$(awk '$2 == 0 && $4 > 60 && $1 < 32 && $3 == "lost"' "$TMP/met" | wc -l)" -le 5
	expect "Not-ECT packets let pass above K + 8" "$(awk '$2 == 0 && $1 > 48 && $3 != "lost"' "$TMP/met" | wc -l)" -le 5
	expect "Not-ECT packets that were dropped" "$(awk '$2 == 0 && $3 == "lost"' "$TMP/met" | wc -l)" -ge 10
	# p = (q - K_min) / (K_max - K_min) * P_max; RED spaces marks evenly by 1 to 1 / p
	# packets, so that it marks 2 p / (1 + p)
	expect "bins whose marks are off by more than a sixth" "$(awk '$1 >= 20 && $1 < 50 && $2 > 100 {
		p = ($1 + 5 - 10) / 50 * 0.5; want = 2 * p / (1 + p); d = $3 - want; if (d < 0) d = -d; if (d > want / 6) bad++ } END { print bad + 0 }' "$TMP/marks")" -eq 0
	expect "bins" "$(awk '$1 >= 20 && $1 < 50 && $2 > 100' "$TMP/marks" | wc -l)" -ge 2
}
declare_test wred_profiles "L1 L9" "ECT is marked by K_min, K_max, P_max and not dropped, Not-ECT dropped from K on"

# --- receiver ---------------------------------------------------------------

receiver()
{
	local m accecn gro most late what flags acks n

	needs_virtual
	BUFFER=500000 dumbbell 1 100us
	shape 1gbit
	data_meets h1 eth0 loss 5% ecn
	has_accecn || echo "this kernel has no Accurate ECN"
	for gro in off on; do
		if [ "$gro" = on ]; then
			# packets arrive one by one: hold them, so that GRO can merge; veth does
			# not merge where its peer has TSO
			in_ns sw ethtool -K egress tso off
			in_ns r ethtool -K eth0 gro on || skip "no GRO on veth"
			in_ns r sh -c 'echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs; echo 40000 >/sys/class/net/eth0/gro_flush_timeout'
		else
			in_ns r ethtool -K eth0 gro off
		fi
		late=1
		[ "$gro" = off ] || late=1000000	# as long as GRO holds packets
		for accecn in 0 1; do
			[ "$accecn" = 0 ] || has_accecn || continue
			every sysctl -qw net.ipv4.tcp_ecn=$((accecn * 3))
			for m in 1 ${FULL:+2} 4; do
				parameter ack_every="$m"
				serve r --cc ldcp
				capture sw egress "$TMP/r.pcap" tcp
				send --size 1M
				stop_captures
				kill_in "${NSP}r" TERM
				wait_until eval '! listening r 5201'
				# a merged packet is one to the receiver
				most=$m
				[ "$gro" = off ] || most=45
				what="GRO $gro, AccECN $accecn, m=$m"
				flags=()
				[ "$accecn" = 0 ] || flags=(--accecn)
				judge acks "$TMP/r.pcap" "$most" --late-us "$late" "${flags[@]}" >"$TMP/judged"
				echo "$what: $(<"$TMP/judged")"
				acks=$(field acks <"$TMP/judged") n=$(field packets <"$TMP/judged")
				expect "$what: marked packets" "$(field marks <"$TMP/judged")" -ge 10
				expect "$what: ACKs with a wrong mark" "$(field wrong <"$TMP/judged")" -eq 0
				expect "$what: ACKs of too many packets" "$(field many <"$TMP/judged")" -eq 0
				expect "$what: marks not acknowledged at once" "$(field delayed <"$TMP/judged")" -eq 0
				[ "$m" != 1 ] || [ "$gro" = on ] || expect "$what: packets without an ACK of their own" "$((n - acks))" -eq 0
				[ "$m" = 1 ] && [ "$gro" = off ] || expect "$what: ACKs" "$acks" -lt $((n * 9 / 10))
			done
		done
	done
}
declare_test receiver "L2 L14" "ECE is each packet's mark, or ACE counts it; at once; GRO on and off, m = 1 and 4 (FULL: also 2), AccECN and not"

receiver_not_ect()
{
	needs_virtual
	dumbbell 1 100us
	initial 10
	clean_is_not_ect
	exactly_echoed sw egress 2M 1
}
declare_test receiver_not_ect "L2" "a clean packet that is Not-ECT ends the CE state, too"

# A window of one packet, for m = 1, 2, 4: a packet per RTT, without delayed ACKs
window_of_one()
{
	local m accecn

	needs_virtual
	dumbbell 1 1ms
	shape 1gbit
	ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.0.1.254 cwnd lock 1 initcwnd 1
	serve r --cc ldcp
	# the stack reads the limit from its metrics of the peer
	in_ns h1 sysctl -qw net.ipv4.tcp_no_metrics_save=0
	in_ns h1 bash -c ": >/dev/tcp/10.0.0.1/5201"
	wait_until in_ns h1 sh -c "ip tcp_metrics show | grep -q ."
	in_ns r python3 -c '
import socket
s = socket.create_server(("", 5299))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"ldcp")
open_ones = []
while True: open_ones.append(s.accept()[0])' &
	wait_until listening r 5299
	for accecn in 0 3; do
		every sysctl -qw net.ipv4.tcp_ecn="$accecn"
		for m in 1 2 4; do
			parameter ack_every="$m"
			send --size 144k	# 100 packets
			echo "m=$m tcp_ecn=$accecn: $(flow_field duration_ns) ns"
			between "m=$m, tcp_ecn=$accecn: ms for 100 packets at 1 ms" "$(flow_field 'duration_ns / 1000000')" 95 115
			# a program that reads has the stack acknowledge what it has read; this one does not
			talk cc=ldcp send=58000 acked
			between "m=$m, tcp_ecn=$accecn: ms for 41 packets, not read" "$(field seconds <"$TMP/talk" | awk '{ print $1 * 1000 }')" 40 48
		done
	done
}
declare_test window_of_one "L2" "a window of one packet takes an RTT per packet, whatever m"

# --- loss, and no ECN ---------------------------------------------------------

fast_start_undo()
{
	needs_virtual
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
	initial 40
	# the late packet arrives while its retransmission is on the way: timestamps show it
	lossy delay 20ms
	fates h1 eth0 18ms
	talk_server r --cc ldcp
	counters
	talk cc=ldcp up=14480 fate=2 up=1448 fate=0 up=30000 acked up=300000 acked info
	cat "$TMP/talk"
	expect "losses undone" $(($(counted h1 TcpExtTCPFullUndo) + $(counted h1 TcpExtTCPPartialUndo))) -eq 1
	# the stable stage adds a quarter of a packet per RTT; slow start would double the window
	expect "cwnd 300 kB later" "$(field cwnd <"$TMP/talk")" -le 60
}
declare_test fast_start_undo "L12 L13" "a loss of the first RTT that was none: the stable stage, not slow start"

undo()
{
	needs_virtual
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
	initial 10
	# shellcheck disable=SC2119 # no steps follow
	undone
}
declare_test undo "L13" "a loss of the stable stage that was none is undone"

loss_recovery()
{
	needs_virtual
	dumbbell 1 1ms
	initial 10
	shape 1gbit
	data_meets h1 eth0 loss 0.5%
	serve r --cc ldcp
	trace_on ldcp/ldcp_window ldcp/ldcp_ack
	send --size 3M
	trace_off "$TMP/trace"
	ours "$TMP/trace" >"$TMP/ours"
	expect "losses reacted to" "$(grep -c cause=loss "$TMP/ours")" -ge 3
	expect "timeouts" "$(grep -c cause=timeout "$TMP/ours")" -eq 0
	expect "cuts that are not half" "$(awk "$VALUES"'/cause=loss/ {
		d = v["cw_q40"] - v["before_q40"] / 2; if (d < -1 || d > 1) bad++ } END { print bad + 0 }' "$TMP/ours")" -eq 0
	# no growth while it is repaired
	expect "growth in recovery" "$(awk "$VALUES"'/ldcp_ack/ { if (v["ca_state"] == 3 && state == 3 && v["cw_q40"] > cw) bad++; state = v["ca_state"]; cw = v["cw_q40"] }
		END { print bad + 0 }' "$TMP/ours")" -eq 0
}
declare_test loss_recovery "L13" "loss in the stable stage halves cw, once, and nothing grows until it is repaired"

timeout_loss()
{
	local before

	needs_virtual
	dumbbell 1 1ms
	shape 100mbit
	serve r --cc ldcp
	trace_on ldcp/ldcp_window ldcp/ldcp_ack
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 4s >"$TMP/flow.json" 2>&1 &
	sleep 0.5
	before=$(in_ns h1 ss -Htin state established '( dport = :5201 )' | ss_field cwnd)
	in_ns sw tc qdisc add dev egress parent 1:1 netem limit 100000 loss 100%
	sleep 1
	in_ns h1 ss -Htin state established '( dport = :5201 )' >"$TMP/ss"
	expect "cwnd before" "$before" -ge 4
	expect "cwnd after a timeout" "$(ss_field cwnd <"$TMP/ss")" -eq 1
	expect "ssthresh after a timeout" "$(ss_field ssthresh <"$TMP/ss")" -le $((before * 6 / 10))
	in_ns sw tc qdisc del dev egress parent 1:1
	wait $!
	trace_off "$TMP/trace"
	expect "timeouts" "$(grep -c cause=timeout "$TMP/trace")" -ge 1
	# slow start up to ssthresh: cw doubles per round trip, not alpha more
	expect "steps of slow start, a packet per ACK" "$(ours "$TMP/trace" | awk "$VALUES"'/cause=timeout/ { slow = 1 } /ldcp_ack/ { if (slow && v["cw_q40"] - cw == v["clean"] * 2^40) n++; cw = v["cw_q40"] } END { print n + 0 }')" -ge 3
	expect "goodput after it, Mb/s over all" "$(jq -rs 'map(select(.type == "flow"))[0].goodput_bps / 1e6' "$TMP/flow.json")" -ge 40
}
declare_test timeout_loss "L13" "a timeout: one packet, slow start up to half, then the per-ACK rule"

# The path's MTU shrinks: packets that are too long are retransmitted; that is no congestion
smaller_mtu()
{
	needs_virtual
	load
	dumbbell 1 1ms
	shape 100mbit
	serve r --cc ldcp
	trace_on ldcp/ldcp_window
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 1s >"$TMP/flow.json" 2>&1 &
	sleep 0.5
	ip -n "${NSP}sw" link set egress mtu 1000
	wait $!
	trace_off "$TMP/trace"
	expect "path MTU" "$(ip -n "${NSP}h1" route get 10.0.0.1 | grep -o 'mtu [0-9]*')" = "mtu 1000"
	expect "reductions" "$(grep -cE 'cause=(timeout|loss)' "$TMP/trace")" -eq 0
}
declare_test smaller_mtu "L13" "packets that have become too long for the path are no loss"

# A route limits cwnd: cw must not grow beyond that, or marks would first have to undo the
# growth
clamp()
{
	needs_virtual
	load
	dumbbell 1 1ms
	ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.0.1.254 cwnd lock 12
	serve r --cc ldcp
	# the stack reads the limit from its metrics of the peer
	in_ns h1 sysctl -qw net.ipv4.tcp_no_metrics_save=0
	in_ns h1 bash -c ": >/dev/tcp/10.0.0.1/5201"
	wait_until in_ns h1 sh -c "ip tcp_metrics show | grep -q ."
	trace_on ldcp/ldcp_ack
	send --duration 1s
	trace_off "$TMP/trace"
	expect "cw at the end, whole packets" "$(ours "$TMP/trace" | tail -n1 | field cw_q40 | awk '{ print int($1 / 2^40) }')" -eq 12
}
declare_test clamp "" "cw grows no further than the route lets cwnd"

without_ecn()
{
	needs_virtual
	reno_without_ecn
}
declare_test without_ecn "L13" "a peer without ECN: Reno, and Not-ECT packets"

again()
{
	needs_virtual
	connected_again
}
declare_test again "L13" "a socket in fallback that is disconnected and connected again has the control again"

one_of_handshake()
{
	needs_virtual
	needs_accecn
	handshake_lost
}
declare_test one_of_handshake "L13" "a SYN, SYN-ACK or ACK that is lost by chance does not end ECN, for client or server"

# served WHAT STEP...: on such a connection r, with LDCP, is Reno
served()
{
	talk cc=cubic "${@:2}" "run=ip netns exec ${NSP}r ss -Htin state established sport = :5299 >$TMP/ss"
	expect "connections whose control is Reno, $1" "$(grep -c '[[:space:]]ldcp_reno ' "$TMP/ss")" -eq 1
}

# With Accurate ECN the stack ends ECN, too, where the handshake's last ACK was garbled
ace_garbled()
{
	needs_virtual
	needs_accecn
	SYSCTL='net.ipv4.tcp_ecn=3 net.ipv4.tcp_fastopen=3' dumbbell 1 1ms
	talk_server r --cc ldcp --fastopen
	talk cc=cubic fastopen=100 talk=100,100
	# the kernel creates the child before it records the SYN-ACK's field, which the last ACK then does not fit
	served "Fast Open" fastopen=100 talk=100,300000
	zero_ace egress tcp_flags 0x0/0x2
	served "ACE is zeroed" talk=100,300000
}
declare_test ace_garbled "L13 L14" "a server that sends Not-ECT, since the handshake has garbled Accurate ECN's ACE, is Reno"

ect_syn_dropped()
{
	dumbbell 1 1ms
	shape 1gbit
	syn_dropped
}
declare_test ect_syn_dropped "L13" "a path that drops SYNs with ECT: the retransmitted one is Not-ECT, and the connection is made"

# Accurate ECN's counts, with 30 % of the ACKs lost
accecn()
{
	local marked marks

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	shape 100mbit
	data_meets h1 eth0 loss 2% ecn
	# the SYN-ACK is not lost
	in_ns r tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
	in_ns r tc qdisc add dev eth0 parent 1:2 netem loss 30% limit 100000
	in_ns r tc filter add dev eth0 parent 1: protocol ip flower ip_proto tcp tcp_flags 0x2/0x2 classid 1:1
	serve r --cc ldcp
	capture sw egress "$TMP/r.pcap" tcp
	trace_on ldcp/ldcp_ack
	send --size 5M
	trace_off "$TMP/trace"
	stop_captures
	expect "SYN with AE" "$(count "$TMP/r.pcap" 'tcp.flags.syn == 1 && tcp.dstport == 5201 && tcp.flags.ae == 1')" -ge 1
	marks=$(count "$TMP/r.pcap" 'tcp.dstport == 5201 && tcp.len > 0 && ip.dsfield.ecn == 3')
	marked=$(ours "$TMP/trace" | field marked | awk '{ s += $1 } END { print s }')
	echo "marked $marks, accounted for $marked"
	expect "packets marked" "$marks" -ge 40
	expect "marks accounted for, more than there were" "$((marked - marks))" -le 0
	expect "marks accounted for, short by" "$((marks - marked))" -le 2
}
declare_test accecn "L14" "with Accurate ECN the peer's counts are used, so lost ACKs do not matter"

# --- situations that connections meet ------------------------------------------

# talked EVENT...: traces these events of ldcp while talk does STEPS, an array of steps; the
# lines of its socket are in $TMP/ours.
talked()
{
	trace_on "${@/#/ldcp/}"
	talk "${STEPS[@]}"
	trace_off "$TMP/trace"
	awk -v p="$(field sport <"$TMP/talk")" '$0 ~ "sport=" p " "' "$TMP/trace" >"$TMP/ours"
	cat "$TMP/talk"
}

# Both ends send below one packet, with and without fq on the way: timestamps are monotonic. ACKs are not held
# for the next packet without fq; with it they are, for 8 RTTs / cw at most.
two_way_below_one()
{
	local q ns rtt most

	needs_virtual
	for q in pfifo fq; do
		rtt=5000 most=7000
		[ "$q" = pfifo ] || rtt=500 most=64000
		dumbbell 1 "${rtt}us"
		initial 10
		data_meets sw egress loss 100% ecn
		in_ns sw tc qdisc del dev p1 root
		data_meets sw p1 delay "${rtt}us" loss 100% ecn
		# pure ACKs are as late as data
		in_ns sw tc qdisc add dev p1 parent 1:2 netem limit 100000 delay "${rtt}us"
		in_ns h1 tc qdisc add dev eth0 root "$q"
		in_ns r tc qdisc add dev eth0 root "$q"
		talk_server r --cc ldcp
		STEPS=(cc=ldcp "talk=200000,200000")
		counters
		capture h1 eth0 "$TMP/h.pcap" "tcp src port 5299"
		talked ldcp_ack
		stop_captures
		for ns in h1 r; do
			echo "$q $ns: PAWS $(counted "$ns" TcpExtPAWSEstab), timeouts $(counted "$ns" TcpExtTCPTimeouts), retransmissions $(counted "$ns" TcpRetransSegs)"
			expect "$q: PAWS discards at $ns" "$(counted "$ns" TcpExtPAWSEstab)" -eq 0
			expect "$q: timeouts at $ns" "$(counted "$ns" TcpExtTCPTimeouts)" -eq 0
			expect "$q: retransmissions at $ns" "$(counted "$ns" TcpRetransSegs)" -eq 0
		done
		expect "$q: least cw in 1/16" "$(field cw_q40 <"$TMP/ours" | sort -n | awk 'NR == 1 { print $1 / 2^36 }')" -eq 1
		# only its own ACKs tell h1's RTT
		expect "$q: smoothed RTT at h1, us" "$(field srtt_us <"$TMP/ours" | tail -n1)" -le "$most"
		# the server's data packets: an RTT / cw
		judged gaps "$TMP/h.pcap" $((rtt * 158 / 10)) $((rtt * 164 / 10)) --start 1
		if [ "$q" = pfifo ]; then
			expect "packets sooner than RTT / cw" "$(field sooner <"$TMP/judged")" -eq 0
			expect "packets later" "$(field later <"$TMP/judged")" -le 2
		fi
		teardown
	done
}
declare_test two_way_below_one "L6" "two-way data below one packet: no PAWS discard, no timeout; ACKs are not held, with fq not for long"

# Twelve messages whose last packet is lost
tail_loss()
{
	local i

	needs_virtual
	load alpha=1024
	dumbbell 1 10ms
	initial 10
	fates h1 eth0
	talk_server r --cc ldcp
	STEPS=(cc=ldcp)
	for i in {1..12}; do
		STEPS+=(up=200000 acked up=3000 fate=1 up=100 fate=0 acked)
	done
	STEPS+=(up=3000 acked)
	counters
	talked ldcp_window
	grep ldcp_window "$TMP/ours" | sed 's/.*ldcp_window/ldcp_window/'
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -eq 0
	expect "tails that a probe repaired" "$(counted h1 TcpExtTCPLossProbeRecovery)" -ge 11
	expect "responses to them" "$(grep -c cause=probe "$TMP/ours")" -eq "$(counted h1 TcpExtTCPLossProbeRecovery)"
	expect "cuts that are not half" "$(awk "$VALUES"'/cause=probe/ {
		d = v["cw_q40"] - v["before_q40"] / 2; if (d < -1 || d > 1) bad++ } END { print bad + 0 }' "$TMP/ours")" -eq 0
}
declare_test tail_loss "L13" "a loss that a tail loss probe repairs halves cw"

# Half of 60 packets and all their retransmissions are lost, until a timeout in Recovery
lost_retransmissions()
{
	needs_virtual
	dumbbell 1 20ms
	initial 10
	fates h1 eth0
	talk_server r --cc ldcp
	STEPS=(cc=ldcp connect up=400000 acked fate=1 up=40000 fate=0 up=43440
		fate=1 sleep=0.2 fate=0 acked up=300000 acked)
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 100
	counters
	talked ldcp_window ldcp_ack
	grep ldcp_window "$TMP/ours" | sed 's/.*ldcp_window/ldcp_window/'
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -ge 1
	expect "timeouts that were traced" "$(grep -c cause=timeout "$TMP/ours")" -eq "$(counted h1 TcpExtTCPTimeouts)"
	# in Loss: slow start, not one packet per RTT
	expect "ACKs in Loss that open the window" "$(awk "$VALUES"'/ldcp_ack/ {
		if (v["ca_state"] == 4 && state == 4 && v["cw_q40"] > cw) n++; state = v["ca_state"]; cw = v["cw_q40"] }
		END { print n + 0 }' "$TMP/ours")" -ge 5
	expect "seconds" "$(field seconds <"$TMP/talk")" -le 1.2
}
declare_test lost_retransmissions "L13" "a timeout while a loss is repaired: slow start repairs the rest"

# After a timeout, some of what slow start retransmits is lost again, and SACKs show it
lost_in_loss()
{
	needs_virtual
	dumbbell 1 20ms
	initial 10
	fates h1 eth0
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 100
	talk_server r --cc ldcp
	# 80 packets and their probe are lost; from the timeout on, a fifth
	STEPS=(cc=ldcp connect up=400000 acked fate=1 up=115840 sleep=0.1 fate=3 acked)
	counters
	talked ldcp_window ldcp_ack
	grep ldcp_window "$TMP/ours" | sed 's/.*ldcp_window/ldcp_window/'
	# from Loss, 4, to Recovery, 3; a reduction leaves at least two packets of two or more
	awk "$VALUES"'/ldcp_ack/ { if (state == 4 && v["ca_state"] == 3) n++; state = v["ca_state"] }
		/cause=loss/ && state == 4 {
			cw = v["cw_q40"] / 2^40; before = v["before_q40"] / 2^40
			if (cw > before / 2 + 1e-9 && cw != (before < 2 ? 1 / 16 : 2)) bad++
			cuts++
		}
		/cause=timeout/ { state = 4 }
		END { print n + 0, cuts + 0, bad + 0 }' "$TMP/ours" >"$TMP/cuts"
	echo "recoveries after a timeout, reductions, not by half: $(<"$TMP/cuts")"
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -ge 1
	expect "retransmissions that were found lost" "$(counted h1 TcpExtTCPLostRetransmit)" -ge 1
	expect "recoveries after a timeout" "$(cut -d' ' -f1 "$TMP/cuts")" -ge 1
	expect "reductions for them" "$(cut -d' ' -f2 "$TMP/cuts")" -ge "$(cut -d' ' -f1 "$TMP/cuts")"
	expect "reductions that are not half" "$(cut -d' ' -f3 "$TMP/cuts")" -eq 0
}
declare_test lost_in_loss "L13" "a retransmission lost after a timeout is a new loss: cw is halved"

# The peer sends, and our pure ACKs are marked; then we send data
marks_on_acks()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	initial 10
	# what h1 sends is marked where it is ECT; the SYN has passed by then
	talk_server r --cc ldcp
	STEPS=(cc=ldcp connect
		"run=ip netns exec ${NSP}sw tc qdisc add dev egress root netem limit 100000 loss 100% ecn"
		"talk=100,1000000" sleep=0.1
		"run=ip netns exec ${NSP}sw tc qdisc del dev egress root"
		up=100000 acked)
	talked ldcp_ack ldcp_window
	sed 's/.*: ldcp_/ldcp_/' "$TMP/ours" | tail -n 60 | head -n 5
	expect "marks of one ACK, more than it confirms" "$(awk "$VALUES"'/ldcp_ack/ { if (v["marked"] > 2) n++ } END { print n + 0 }' "$TMP/ours")" -eq 0
	# what leaves meanwhile is marked: the request, and the first packet after it
	expect "marked packets of data, at most" "$(awk "$VALUES"'/ldcp_ack/ { n += v["marked"] } END { print n + 0 }' "$TMP/ours")" -le 3
	expect "cw at the end" "$(grep ldcp_ack "$TMP/ours" | tail -n1 | field cw_q40 | awk '{ print $1 / 2^40 }')" -ge 8
}
declare_test marks_on_acks "L14" "marks on pure ACKs while nothing is in flight are not the data's"

# Chosen between SYN and SYN-ACK: the handshake's result counts
chosen_while_connecting()
{
	local v

	needs_virtual
	# SYN_SENT lasts as long as the RTT
	for v in 0 1; do
		SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 5ms
		in_ns r sysctl -qw net.ipv4.tcp_ecn="$v"
		initial 20
		talk_server r --cc "$([ "$v" = 0 ] && echo cubic || echo ldcp)"
		capture h1 eth0 "$TMP/h.pcap" tcp
		STEPS=(connect-cc=ldcp up=100000 acked)
		talked ldcp_window
		stop_captures
		judged ecn "$TMP/h.pcap" --port 5299
		if [ "$v" = 0 ]; then
			expect "control in use without ECN" "$(field cc <"$TMP/talk")" = ldcp_reno
			expect "ECT packets without ECN" "$(field ect0 <"$TMP/judged")" -eq 0
		else
			expect "control in use with ECN" "$(field cc <"$TMP/talk")" = ldcp
			expect "fast starts" "$(grep -c cause=start "$TMP/ours")" -eq 1
			expect "ECT packets with ECN" "$(field ect0 <"$TMP/judged")" -ge 40
		fi
		teardown
	done
}
declare_test chosen_while_connecting "L13 L14" "chosen before the handshake is done: as if chosen before connect()"

# Data in the SYN, accepted or not, is followed by a first RTT
fast_open()
{
	local v

	needs_virtual
	load
	SYSCTL=net.ipv4.tcp_fastopen=3 dumbbell 1 5ms
	initial 20
	talk_server r --cc ldcp --fastopen
	# the cookie
	STEPS=(cc=ldcp fastopen=100 acked)
	talked ldcp_window
	for v in accepted refused; do
		[ "$v" = accepted ] || in_ns r sysctl -qw net.ipv4.tcp_fastopen=0
		capture h1 eth0 "$TMP/h.pcap" tcp
		STEPS=(cc=ldcp fastopen=500 up=60000 acked)
		talked ldcp_window
		stop_captures
		expect "$v: SYNs with data" "$(count "$TMP/h.pcap" 'tcp.flags.syn == 1 && tcp.len > 0')" -eq 1
		expect "$v: fast starts" "$(grep -c cause=start "$TMP/ours")" -eq 1
		judged ecn "$TMP/h.pcap" --port 5299
		between "$v: Not-ECT packets" "$(field not_ect <"$TMP/judged")" 17 21
		expect "$v: ECT packets" "$(field ect0 <"$TMP/judged")" -ge 20
	done
}
declare_test fast_open "L7 L8 L11" "a Fast Open connection has a first RTT, too"

# All of the first RTT except its last packet is lost
first_rtt_lost()
{
	needs_virtual
	dumbbell 1 100ms
	fates h1 eth0
	initial 20
	talk_server r --cc ldcp
	STEPS=(cc=ldcp connect fate=1 up=27512 fate=0 up=1448 acked)
	counters
	talked ldcp_window
	grep ldcp_window "$TMP/ours" | sed 's/.*ldcp_window/ldcp_window/'
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -eq 0
}
declare_test first_rtt_lost "L13" "all but the last packet of a first RTT is lost: all is sent again before a timeout"

# All of the first RTT is lost: slow start from one packet to half of what was sent, not from gamma
first_rtt_times_out()
{
	local cc

	needs_virtual
	dumbbell 1 20ms
	fates h1 eth0
	initial 20
	talk_server r --cc ldcp
	trace_on ldcp/ldcp_window
	for cc in cubic ldcp; do
		talk cc="$cc" connect fate=1 up=28960 sleep=0.1 fate=0 acked
		field seconds <"$TMP/talk" >"$TMP/$cc"
	done
	trace_off "$TMP/trace"
	echo "seconds: CUBIC $(<"$TMP/cubic"), LDCP $(<"$TMP/ldcp")"
	grep cause=timeout "$TMP/trace"
	expect "cw after the timeout" "$(grep -m1 cause=timeout "$TMP/trace" | field cw_q40 | awk '{ print $1 / 2^40 }')" -eq 1
	expect "ssthresh after the timeout" "$(grep -m1 cause=timeout "$TMP/trace" | field ssthresh)" -eq 10
	expect "milliseconds longer than with CUBIC" "$(awk '{ print ($1 - was) * 1000; was = $1 }' "$TMP/cubic" "$TMP/ldcp" | tail -n1)" -le 20
}
declare_test first_rtt_times_out "L13" "all of a first RTT is lost: slow start from one packet, no slower than CUBIC"

# An initial window beyond what cw can hold
large_initial_window()
{
	local n

	needs_virtual
	dumbbell 1 100us
	for n in 16777216 33554432; do
		initial 10
		ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd "$n"
		serve r --cc ldcp
		trace_on ldcp/ldcp_window
		send --size 100k
		trace_off "$TMP/trace"
		kill_in "${NSP}r" TERM
		wait_until eval '! listening r 5201'
		expect "cw with initcwnd $n" "$(grep -m1 cause=start "$TMP/trace" | field cw_q40 | awk '{ print $1 / 2^40 }')" -eq 1048576
	done
}
declare_test large_initial_window "L7" "a route's initcwnd of 2^24 packets and more"

# All data are marked: cw falls to 1/16, where RTT / cw is 1.6 s. The RTO of this path is 0.3 s, and with
# nothing in flight the stack's probe timer sends an RTO after the ACK
wait_beyond_rto()
{
	needs_virtual
	dumbbell 1 100ms
	initial 10
	data_meets h1 eth0 loss 100% ecn
	talk_server r --cc ldcp
	SNAPLEN=96 capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5299'
	STEPS=(cc=ldcp up=95000 acked)
	counters
	talked ldcp_ack
	stop_captures
	expect "least cw in 1/16" "$(field cw_q40 <"$TMP/ours" | sort -n | awk 'NR == 1 { print $1 / 2^36 }')" -eq 1
	packets "$TMP/h.pcap" 'tcp.len > 0' frame.time_relative >"$TMP/sent"
	cat "$TMP/sent"
	between "longest gap between packets, ms" "$(awk 'NR > 1 && $1 - t > m { m = $1 - t } { t = $1 } END { printf "%.0f", m * 1000 }' "$TMP/sent")" 1580 1700
	expect "timeouts" "$(counted h1 TcpExtTCPTimeouts)" -eq 0
}
declare_test wait_beyond_rto "L6" "below one packet, each waits for RTT / cw, also where that is longer than the RTO was"

# A probe of the path's MTU succeeds: the same bytes now fill fewer packets
mtu_probe()
{
	needs_virtual
	SYSCTL="net.ipv4.tcp_mtu_probing=2 net.ipv4.tcp_base_mss=512" dumbbell 1 5ms
	initial 10
	in_ns h1 sysctl -qw net.ipv4.tcp_probe_interval=1
	talk_server r --cc ldcp
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 60
	STEPS=(cc=ldcp up=300000 acked)
	counters
	talked ldcp_ack
	echo "probes that arrived: $(counted h1 TcpExtTCPMTUPSuccess)"
	sed 's/.*: ldcp_/ldcp_/' "$TMP/ours" | awk 'NR < 5 || NR % 40 == 0'
	expect "probes that arrived" "$(counted h1 TcpExtTCPMTUPSuccess)" -ge 1
	# 60 packets of 500 bytes
	expect "cw at the end" "$(grep ldcp_ack "$TMP/ours" | tail -n1 | field cw_q40 | awk '{ print $1 / 2^40 }')" -le 45
}
declare_test mtu_probe "L13" "cw follows the MSS after a probe of the path's MTU"

# After a pause the window is not sent as one burst
idle_restart()
{
	needs_virtual
	load alpha=1024 beta=1
	dumbbell 1 5ms
	initial 20
	shape 1gbit
	talk_server r --cc ldcp
	STEPS=(cc=ldcp up=10000000 acked sleep=0.1 up=1000 acked sleep=2 up=100000 acked)
	talked ldcp_window ldcp_ack
	expect "cw before the pause" "$(awk "$VALUES"'/cause=idle/ { print int(v["before_q40"] / 2^40); exit }' "$TMP/ours")" -ge 25
	expect "windows reduced after a pause" "$(grep -c cause=idle "$TMP/ours")" -eq 1
	expect "cw after the pause" "$(awk "$VALUES"'/cause=idle/ { print v["cw_q40"] / 2^40 }' "$TMP/ours")" -eq 20
}
declare_test idle_restart "L13" "after idling for an RTO cw is IW at most"

# The socket gets its own limits back when it switches to another control
own_limits()
{
	local TCP_DELACK_MAX_US=46

	needs_virtual
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 5ms
	talk_server r --cc ldcp
	talk cc=cubic connect "set=6,$TCP_DELACK_MAX_US,50000" 2>/dev/null ||
		skip "this kernel has no TCP_DELACK_MAX_US"
	talk cc=cubic connect "set=6,$TCP_DELACK_MAX_US,50000" cc=ldcp up=10000 \
		"get=during,6,$TCP_DELACK_MAX_US" cc=cubic "get=after,6,$TCP_DELACK_MAX_US"
	expect "longest delay of ACKs after the control, us" "$(field after <"$TMP/talk")" -eq 50000
	# one jiffy, at most 10 ms
	expect "longest delay of ACKs with it, us" "$(field during <"$TMP/talk")" -le 10000
	talk cc=cubic connect cc=ldcp up=10000 "set=6,$TCP_DELACK_MAX_US,20000" cc=cubic "get=after,6,$TCP_DELACK_MAX_US"
	expect "longest delay of ACKs, set meanwhile, us" "$(field after <"$TMP/talk")" -eq 20000
}
declare_test own_limits "" "a socket's delack_max is its own again after the control"

limits_after() { needs_virtual; limit_given_back; }
declare_test limits_after "" "TSO packets are as long as before when another control takes over"

# --- many -------------------------------------------------------------------

many_flows()
{
	local i

	needs_virtual
	dumbbell 4 100us
	wred 1gbit --limit 2000
	serve r --cc ldcp
	observe 1gbit --from 400ms --duration 700ms
	for i in 1 2 3 4; do
		in_ns "h$i" flowgen long --to 10.0.0.1 --cc ldcp --flows 500 --stagger 400us --duration 700ms >"$TMP/flows$i" &
	done
	wait "$OBSERVER"
	jq -c '{utilisation, dropped_ect0, dropped_not_ect, delay: .delay_us.mean, qlen: .qlen_pkts.mean}' "$TMP/q.json"
	expect "utilisation" "$(jq .utilisation "$TMP/q.json")" -ge 0.95
	expect "ECT packets dropped" "$(jq '.dropped_ect0 + .dropped_ce' "$TMP/q.json")" -eq 0
	# 2000 flows of 1/16 are 125 packets; of one packet each they would be 2000
	expect "mean queue, packets" "$(jq .qlen_pkts.mean "$TMP/q.json")" -le 300
}
declare_test many_flows "L5 L6" "2000 flows through 1 Gb/s: it is full, the queue a fraction of a packet per flow, no drop"

# Answers that start together: most first-RTT packets are dropped. The few flows whose windows
# stay above one packet must not starve the others.
incast()
{
	local to i

	needs_virtual
	dumbbell 4 100us
	for i in 1 2 3 4; do
		ip -n "${NSP}h$i" route replace default via "10.0.$i.254" initcwnd 87
		serve "h$i" --cc ldcp
		to+=${to:+,}10.0.$i.1
	done
	ip -n "${NSP}r" route replace default via 10.0.0.254 initrwnd 180
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 1000000 6291456"
	wred 10gbit --limit 300
	# 64 of them: 3.5 ms of the link
	in_ns r flowgen incast --to "$to" --fan 64 --size 64k --cc ldcp --timeout 5s >"$TMP/flows" || fail "incast failed"
	for i in 1 2 3 4; do
		in_ns "h$i" nstat -asz TcpExtTCPTimeouts TcpRetransSegs
	done | awk '$1 ~ /Tcp/ { n[$1] += $2 } END { print n["TcpExtTCPTimeouts"], n["TcpRetransSegs"] }' >"$TMP/counts"
	jq -s '[.[] | select(.kind == "incast" and .type == "flow") | .duration_ns / 1e6] | sort | .[32], .[63]' "$TMP/flows" >"$TMP/ms"
	echo "ms: median, last; timeouts, retransmissions:" "$(paste -sd' ' "$TMP/ms" "$TMP/counts")"
	expect "retransmissions" "$(cut -d' ' -f2 "$TMP/counts")" -ge 1000
	expect "timeouts" "$(cut -d' ' -f1 "$TMP/counts")" -eq 0
	# what a timer finds lost is not retransmitted all at once
	expect "ECT packets dropped" "$(vq_count 1 'forced_drop + .prob_drop + .pdrop')" -eq 0
	# 53 RTT from 1/16 to one packet, 30 more to the end
	expect "ms until the last is done" "$(tail -n1 "$TMP/ms")" -le 20
}
declare_test incast "L6 L10 L12" "64 answers at once: no timeout, no ECT packet dropped, windows grow with retransmissions"

# regrown: how long after a second flow has ended the first one delivers 8.5 of 10 Gb/s, us
regrown()
{
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 80ms --interval 500us >"$TMP/long.jsonl" &
	in_ns h2 flowgen long --to 10.0.0.1 --cc ldcp --duration 40ms >/dev/null
	wait $!
	jq -rs '[.[] | select(.type == "interval")] | .[0].start_ns as $t |
		[.[] | [(.end_ns - $t) / 1000, .goodput_bps] | select(.[0] > 40000 and .[1] > 8.5e9) | .[0] - 40000][0] // 40000 | floor' \
		"$TMP/long.jsonl"
}

freed()
{
	local us

	needs_virtual
	dumbbell 2 100us
	wred 10gbit
	serve r --cc ldcp
	us=$(regrown)
	# by the draft's increase, alpha per RTT: 5300
	expect "time until 8.5 Gb/s, us" "$us" -le 4000
}
declare_test freed "L3" "bandwidth that another flow frees is used within 40 RTTs; by the draft's increase in more than 50"

# after_burst: what a long flow delivers in 0.8 ms, from 1 ms after another host's burst of one BDP on, Mb/s
after_burst()
{
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --duration 50ms --interval 200us >"$TMP/long.jsonl" &
	sleep 0.04
	in_ns h2 flowgen long --to 10.0.0.1 --cc ldcp --size 125k >/dev/null
	wait $!
	jq -rs '[.[] | select(.type == "interval")] | .[0].start_ns as $t | [.[] |
		select(.start_ns - $t >= 41e6 and .end_ns - $t <= 41.8e6) | .goodput_bps / 1e6] | add / length | floor' \
		"$TMP/long.jsonl"
}

returns()
{
	local mbps

	needs_virtual
	dumbbell 2 100us
	wred 10gbit
	ip -n "${NSP}h2" route replace default via 10.0.2.254 initcwnd 87
	serve r --cc ldcp
	mbps=$(after_burst)
	# by the draft's increase: 7500
	expect "Mb/s after a burst" "$mbps" -ge 9000
}
declare_test returns "L3" "after a burst of another flow the window returns within a few RTTs; by the draft's increase in tens"

# The host's link is as fast as the bottleneck: the flow's queue is in its host, where nothing marks
# jain_of FLOWS: Jain's index of FLOWS long flows of 2.6 packets each at 10 Gb/s, after 40 ms
jain_of()
{
	serve r --cc ldcp
	observe 10gbit --from 40ms --duration 200ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --flows "$1" --stagger 100us --duration 210ms >/dev/null
	wait "$OBSERVER"
	kill_in "${NSP}r" TERM
	wait_until eval '! listening r 5201'
	jq '[.flows[] | .goodput_bps // 0 | select(. > 0)] | pow(add; 2) / (length * (map(. * .) | add))' "$TMP/q.json"
}

# Flows that fall below one packet come back: shares are even. With gamma, the draft's step, they stay there
# while alpha / beta is large.
even_shares()
{
	needs_virtual
	dumbbell 1 100us
	wred 10gbit
	parameter alpha=1024 beta=128
	expect "Jain's index" "$(jain_of 32)" -ge 0.97
}
declare_test even_shares "L5" "below one packet the increase is half a packet: flows that fell there get their share again"

# The first RTT is the stack's ten packets if nobody says what the BDP is
unknown_bdp()
{
	local ours given

	needs_virtual
	dumbbell 1 100us
	wred 10gbit
	serve r --cc ldcp
	trace_on ldcp/ldcp_window ldcp/ldcp_ack
	send --size 400k
	trace_off "$TMP/trace"
	ours=$(field cw_q40 <"$TMP/trace" | sort -n | tail -n1 | awk '{ printf "%d", $1 / 2^40 }')
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 10
	trace_on ldcp/ldcp_window ldcp/ldcp_ack
	send --size 400k
	trace_off "$TMP/trace"
	given=$(field cw_q40 <"$TMP/trace" | sort -n | tail -n1 | awk '{ printf "%d", $1 / 2^40 }')
	echo "largest cw $ours, with initcwnd 10 $given"
	# 83 packets are the BDP
	expect "largest cw" "$ours" -ge 80
	expect "largest cw, overshoot included" "$ours" -le 250
	expect "largest cw where ten packets are said to be the BDP" "$given" -le 40
}
declare_test unknown_bdp "L7 L11" "slow start follows an initial window that nobody said is the BDP"

# Of the first RTT only its last packet arrives, which is ECT, and marked. The stack waits for reordered packets
# for a tick of its timer, 10 ms here.
last_arrives()
{
	local us

	needs_virtual
	dumbbell 1 100us
	wred 10gbit
	in_ns sw nft -f - <<-END || skip "no nft"
		table ip t {
			chain f {
				type filter hook forward priority 0
				ip ecn not-ect meta length > 1000 counter drop
				ip ecn ect0 meta length > 1000 limit rate 1/hour burst 1 packets ip ecn set ce
			}
		}
	END
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd 20
	serve r --cc ldcp
	trace_on ldcp/ldcp_window
	send --size 20k
	trace_off "$TMP/trace"
	us=$(($(flow_field duration_ns) / 1000))
	echo "14 packets, of which 13 were dropped, took $us us"
	expect "first-RTT packets dropped" "$(in_ns sw nft list table ip t | grep -o 'packets [0-9]*' | head -n1 | cut -d' ' -f2)" -eq 13
	expect "losses found" "$(grep -c cause=loss "$TMP/trace")" -eq 1
	expect "us" "$us" -le 15000
}
declare_test last_arrives "L8 L10" "only the last packet of the first RTT arrives: the others are found lost before a timeout, and its mark counts with them"

own_queue()
{
	needs_virtual
	dumbbell 1 100us
	shaper h1 eth0 10gbit
	wred 10gbit
	serve r --cc ldcp
	trace_on ldcp/ldcp_ack
	send --duration 150ms
	trace_off "$TMP/trace"
	# 83 packets are the BDP; alpha alone, half a packet per RTT of a growing queue, makes it 370
	expect "largest cw" "$(field cw_q40 <"$TMP/trace" | sort -n | tail -n1 | awk '{ printf "%d", $1 / 2^40 }')" -le 450
}
declare_test own_queue "L3" "without marks the window does not grow fast while the RTT says that a queue grows"

retransmissions_pace()
{
	local ms

	needs_virtual
	dumbbell 1 100us
	wred 10gbit
	initial 87
	serve r --cc ldcp
	# the first RTT of all together is eight times what the path holds
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --flows 8 --size 500k >"$TMP/flow.json" || fail "flows failed"
	ms=$(jq -s '[.[] | select(.type == "flow") | .duration_ns / 1e6] | max | floor' "$TMP/flow.json")
	expect "packets dropped" "$(vq_count 2 'forced_drop + .prob_drop')" -ge 100
	expect "time of the slowest of 8 x 500 kB, 3.2 ms of the link, in ms" "$ms" -le 15
}
declare_test retransmissions_pace "" "after many losses the RTTs of retransmissions, in milliseconds, do not slow the pace"

# ss shows the rate at which packets leave, also where srtt has the RTTs of retransmissions
rate_shown()
{
	local i

	needs_virtual
	dumbbell 1 100us
	wred 10gbit
	initial 87
	serve r --cc ldcp
	in_ns h1 flowgen long --to 10.0.0.1 --cc ldcp --flows 8 --size 2M >"$TMP/flow.json" &
	for ((i = 0; i < 40; i++)); do
		sleep 0.0005
		in_ns h1 ss -Htin state established '( dport = :5201 )' >>"$TMP/ss"
	done
	wait $!
	# in slow start packets leave at twice the rate, in the first RTT as fast as they can
	sed -nE 's/.*bw:([0-9]+)bps.*pacing_gain:([0-9]+).* pacing_rate ([0-9]+)bps.*/\1 \3/p' "$TMP/ss" >"$TMP/rates"
	expect "samples" "$(wc -l <"$TMP/rates")" -ge 100
	expect "samples whose rate is another" "$(awk '{ r = $2 / $1; if (r < 100 && (r < 0.98 || r > 1.02) && (r < 1.96 || r > 2.04)) n++ } END { print n + 0 }' "$TMP/rates")" -eq 0
}
declare_test rate_shown "L15" "ss shows cw / RTT as bw, the rate at which packets leave"

# --- parameters, switching, unloading -----------------------------------------

parameters()
{
	refused alpha=0 alpha=1025 alpha=-1 alpha=x beta=0 beta=1025 shift_gamma=1 shift_gamma=5 \
		ack_every=0 ack_every=65 link_rate_mbps=1000001 base_rtt_us=1000001
	parameter alpha=1 alpha=1024 beta=1 beta=1024 shift_gamma=2 shift_gamma=4 ack_every=64 \
		link_rate_mbps=1000000 base_rtt_us=1000000
	refused_at_load alpha=0
	load alpha=7
	expect "alpha" "$(<"$PARAM"/alpha)" -eq 7
}
declare_test parameters "L3 L5" "wrong parameters are refused with a reason, the old value stays"

ways_to_choose()
{
	needs_virtual
	chosen_each_way
}
declare_test ways_to_choose "" "per socket, by sysctl, per route; IPv4 and IPv6"

restricted()
{
	load
	only_if_allowed
}
declare_test restricted "" "restricted: an ordinary user cannot choose it unless allowed"

iperf()
{
	needs_virtual
	default_control ldcp
	dumbbell 1 100us
	wred 1gbit
	iperf_transfers 800
}
declare_test iperf "" "iperf3 -C ldcp, IPv4 and IPv6"

# sw_queue: the bottleneck's qdiscs, and how many filters there are
sw_queue()
{
	in_ns sw tc -j qdisc show dev egress | jq -r '[.[] | select(.kind != "noqueue") | .kind] | sort | join(" ")'
	in_ns sw tc filter show dev egress egress | grep -c 'handle'
}

# picture NS: the settings in NS that lowq-tc host can change
picture()
{
	in_ns "$1" ip route
	in_ns "$1" ip -6 route
	in_ns "$1" sysctl net.ipv4.tcp_rmem net.ipv4.tcp_ecn
}

companion()
{
	local lt="$LOWQ_TC" before v

	needs_virtual	# tc takes half a second with all checkers on
	dumbbell 1 100us
	"$lt" ldcp egress -n "${NSP}sw" --rate 10gbit --rtt 100us --json >"$TMP/lt" || fail "lowq-tc ldcp"
	# the BDP is 83 packets
	expect "thresholds" "$(jq -r '.params | "\(.min_bytes / 1514) \(.max_bytes / 1514) \(.k_bytes / 1514)"' "$TMP/lt")" = "6 42 83"
	expect "said to be not honoured" "$(jq -r '.could_not_honour[]' "$TMP/lt" | grep -c 'instantaneous\|independent')" -eq 2
	expect "queue" "$(sw_queue | paste -sd' ')" = "clsact gred htb 3"
	"$lt" ldcp egress -n "${NSP}sw" --rate 10gbit --rtt 100us --simple --min 20 --max 70 --quiet || fail "lowq-tc ldcp --simple"
	expect "queue with --simple" "$(sw_queue | paste -sd' ')" = "htb red 0"
	expect "red's thresholds" "$(in_ns sw tc -j qdisc show dev egress | jq -r '.[] | select(.kind == "red") | .options | "\(.min / 1514) \(.max / 1514) \(.ecn)"')" = "20 70 true"
	"$lt" ldcp egress -n "${NSP}sw" --rate 10gbit --rtt 100us --quiet || fail "lowq-tc ldcp again"
	"$lt" reset egress -n "${NSP}sw" --quiet || fail "lowq-tc reset"
	expect "queue after reset" "$(sw_queue | paste -sd' ')" = " 0"
	! "$lt" ldcp egress -n "${NSP}sw" --rate 10gbit --rtt 100us --simple --k 9 --dry-run 2>/dev/null || fail "--simple --k was taken"
	! "$lt" ldcp egress -n "${NSP}sw" --rate 10gbit --rtt 100us --min 90 --dry-run 2>/dev/null || fail "K_min above K_max was taken"

	in_ns r sysctl -qw net.ipv4.tcp_ecn=2
	before=$(picture r)
	"$lt" host ldcp -n "${NSP}r" --quiet || fail "lowq-tc host ldcp"
	expect "tcp_ecn" "$(in_ns r sysctl -n net.ipv4.tcp_ecn)" -eq 1
	"$lt" host ldcp -n "${NSP}r" --route default --route 10.0.1.0/24 --initcwnd 87 --quiet || fail "lowq-tc host ldcp --route"
	for v in default 10.0.1.0/24; do
		expect "route to $v" "$(in_ns r ip route show "$v" | grep -c 'initcwnd 87 .*initrwnd 176 quickack 1 congctl ldcp')" -eq 1
	done
	expect "default receive buffer holds twice the first RTT" "$(in_ns r sysctl -n net.ipv4.tcp_rmem | awk '{ print $2 }')" -ge $((87 * 2 * 1460 * 2))
	"$lt" host reset -n "${NSP}r" --quiet || fail "lowq-tc host reset"
	expect "host after reset" "$(picture r)" = "$before"
}
declare_test companion "L1 L7 L9" "lowq-tc ldcp, --simple, reset; host ldcp with --route: what they set, report, refuse and restore"

switch_mid_flow()
{
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 100us
	wred 1gbit
	serve r --cc ldcp
	# one socket through all controls
	sink
	switch_controls h1 10.0.0.1 ldcp cubic reno dctcp
}
declare_test switch_mid_flow "" "the control changes mid-flow, to and from this one"

unload()
{
	dumbbell 1 100us
	wred 1gbit
	in_use
}
declare_test unload "" "unloading is refused while in use, and works afterwards"

left()
{
	# shellcheck disable=SC2119 # default parameters
	outlived
}
declare_test left "" "a connection that has left the control outlives its module"

# Everything at once, so that the kernel's checkers see it: marks, first-RTT drops, loss, lost
# ACKs, IPv4 and IPv6, Accurate ECN, changes of parameters, a deleted namespace.
stress()
{
	local i v

	for i in 0 3; do
		dumbbell 2 1ms
		every sysctl -qw net.ipv4.tcp_ecn="$i"
		initial 40
		wred 100mbit --k 10
		storm 5
		for v in 1 1024 512; do
			sleep 0.3
			parameter alpha="$v" ack_every=$((v % 64 + 1)) beta=$((1025 - v))
		done
		sleep 0.5
		vanish h2
		sleep 0.5
		teardown
	done
	! virtual || load
}
declare_test stress "" "marks, drops, loss, parameters, a deleted namespace: nothing breaks"

run_tests "$@"
