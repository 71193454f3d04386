#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tcp_prague against the Prague draft, judged by its packets and tracepoints; prague_ecn.sh has the
# handshake and the ECN field.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"

under_test prague

# --- response to marks -----------------------------------------------------

response()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	parameter strict=1
	shape 100mbit dualpi2
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	trace_on prague/prague_period prague/prague_cut
	send --duration 9s
	trace_off "$TMP/trace"
	stop_captures
	judged prague-response "$TMP/trace"
	expect "cuts" "$(field cuts <"$TMP/judged")" -ge 50
	expect "EWMA periods" "$(field periods <"$TMP/judged")" -ge 500
	expect "retransmissions" "$(flow_field retrans)" -eq 0

	# P6, P15: at the first mark alpha is 1; half of the window is left, and slow start ends
	expect "alpha at the first cut" "$(field first_alpha <"$TMP/judged")" -eq 1
	expect "packets left beyond half at the first cut" "$(field first_excess <"$TMP/judged")" -eq 0
	expect "EWMA periods after it that grow by 1.5 packets" "$(field jumps <"$TMP/judged")" -eq 0

	# P5: alpha, from the marks and packets of each period
	expect "largest difference of alpha from the draft's" "$(field alpha_difference <"$TMP/judged")" -le 0.000001

	# P10: cwnd * (1 - alpha / 2), with its fraction
	expect "largest difference of a cut from the draft's, packets" "$(field cut_difference <"$TMP/judged")" -le 0.000001

	# P10, P12, P13: once per srtt for 500 rounds, then once per srtt + 25 ms
	between "shortest time between cuts in the first 500 rounds" "$(field early_gap <"$TMP/judged")" 0.0099 0.024
	expect "shortest time between cuts afterwards" "$(field late_gap <"$TMP/judged")" -ge 0.035
	expect "when the 500th round was, seconds after the start" "$(field independent_after <"$TMP/judged")" -ge 4.8

	# P11: without marks a window grows by 1 per srtt, then by (srtt / (srtt + 25 ms))^2
	between "growth per srtt before" "$(field early_growth <"$TMP/judged")" 0.93 1.07
	between "growth per srtt after, of (srtt / rtt_virt)^2" "$(field late_growth <"$TMP/judged")" 0.93 1.07

	# P24: the packets counted are the packets sent
	expect "data packets acknowledged, of those captured" "$(field acked <"$TMP/judged")" -ge \
		$(($(count "$TMP/h.pcap" 'tcp.dstport == 5201 && tcp.len > 0') * 99 / 100))

	# P11: with 30 % marked, nearly every round has a cut: unmarked packets alone grow the window, and
	# in CWR, too
	lossy loss 30% ecn
	trace_on prague/prague_period prague/prague_cut
	send --duration 4s
	trace_off "$TMP/trace"
	judged prague-marked-growth "$TMP/trace"
	expect "cuts with 30 % marked" "$(field cuts <"$TMP/judged")" -ge 150
	between "growth between cuts, of unmarked packets / cwnd" "$(field growth <"$TMP/judged")" 0.9 1.1
}
declare_test response "P5 P6 P10 P11 P12 P13 P15 P24" "first mark, average, cut, growth, once per rtt_virt, D rounds: all follow the draft's formulas"

# --- completion times ------------------------------------------------------

# transfer CONTROL BYTES: milliseconds from the connection's first SYN to the receiver's answer
transfer()
{
	in_ns h1 flowgen rpc --push --to 10.0.0.1 --cc "$1" --size "$2" --closed 1 --requests 1 >"$TMP/flow.json" ||
		fail "a transfer of $2 with $1"
	flow_field 'since_due_ns / 1e6 | round'
}

# The initial window alone is longer than the queue's threshold; a window for the path follows.
short_transfers()
{
	local path rate rtt size prague cubic

	needs_virtual
	needs_accecn
	for path in "20mbit 30ms" "60mbit 65ms" "100mbit 10ms"; do
		read -r rate rtt <<<"$path"
		accecn_dumbbell 1 "$rtt"
		shape "$rate" dualpi2
		serve r --cc prague
		for size in 30k 100k 300k 1M; do
			prague=$(transfer prague "$size")
			cubic=$(transfer cubic "$size")
			echo "$size at $rate, RTT $rtt: $prague ms, CUBIC $cubic"
			expect "ms of $size at $rate, RTT $rtt" "$prague" -le $((cubic * 105 / 100))
		done
		teardown
	done
}
declare_test short_transfers "P15" "transfers of 30 kB to 1 MB on an idle link take no longer than 1.05 times CUBIC's"

# opened_fast CONTROL: ms until 100 kB have arrived, of which a Fast Open SYN has carried 100 bytes
opened_fast()
{
	talk "cc=$1" fastopen=100 talk=100000,1
	field seconds <"$TMP/talk" | awk '{ printf "%d", $1 * 1000 }'
}

fast_open()
{
	local prague cubic

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 65ms
	every sysctl -qw net.ipv4.tcp_fastopen=3
	shape 60mbit dualpi2
	talk_server r --fastopen
	talk cc=cubic fastopen=100	# gets the cookie
	sleep 1
	cubic=$(opened_fast cubic)
	prague=$(opened_fast prague)
	expect "connections opened fast" "$(in_ns h1 nstat -asz TcpExtTCPFastOpenActive | awk '/Active/ { print $2 }')" -eq 2
	measured "100 kB after a Fast Open SYN: $prague ms, CUBIC $cubic"
	expect "ms of 100 kB" "$prague" -le $((cubic * 105 / 100))
}
declare_test fast_open "P15" "a transfer over a connection opened by Fast Open takes no longer than 1.05 times CUBIC's"

# The rate at which the first flight arrives paces slow start, so that its bursts make no queue.
start_up()
{
	local rate used

	needs_virtual
	needs_accecn
	for rate in 90 230; do
		used=()
		for _ in first second; do	# two starts: the phase of the timer's ticks makes 94.4 to 97.2 % of one at 90 Mb/s
			accecn_dumbbell 1 65ms
			shape "${rate}mbit" dualpi2
			serve r --cc prague
			observe "${rate}mbit" --from 0s --to 3s --packets "$TMP/packets.csv"
			send --duration 11s --interval 1s
			observed
			# of the rate of 1448 bytes in each 1514
			used+=("$(jq -rs "map(select(.type == \"interval\"))[2:11] | map(.goodput_bps) | add / length / $((rate * 9564))" \
				"$TMP/flow.json")")
			expect "longest delay at $rate Mb/s in the first three seconds, ms" \
				"$(awk -F, 'NR > 1 && $3 > most { most = $3 } END { printf "%d", most / 1000000 }' "$TMP/packets.csv")" -le 8
			teardown
		done
		between "% of $rate Mb/s used from the third to the eleventh second, mean of ${used[*]}" \
			"$(awk "BEGIN { print (${used[0]} + ${used[1]}) / 2 }")" 95 101
	done
}
declare_test start_up "P15 P16" "90 and 230 Mb/s, RTT 65 ms: two seconds after the start the link is used, and slow start makes no long queue"

# started WHAT COMMAND...: runs COMMAND before a flow with strict=1, and before one without. What the flow uses of
# 90 Mb/s from the second to the fourth second, and how long packets wait at most in the first three, in USED (%) and
# LONGEST (ms): [0] with strict=1, [1] without
started()
{
	local quick what=$1

	for quick in 0 1; do
		parameter "strict=$((1 - quick))"
		"${@:2}"
		observe 90mbit --from 0s --to 3s --packets "$TMP/packets.csv"
		send --duration 5s --interval 1s
		observed
		USED[quick]=$(jq -rs 'map(select(.type == "interval"))[1:4] | map(.goodput_bps) | add / length / 90 / 9564 * 10 |
			round / 10' "$TMP/flow.json")
		LONGEST[quick]=$(awk -F, 'NR > 1 && $3 > most { most = $3 } END { printf "%.1f", most / 1000000 }' "$TMP/packets.csv")
	done
	echo "$what: ${USED[1]} % used, longest delay ${LONGEST[1]} ms; strict=1: ${USED[0]} %, ${LONGEST[0]} ms"
	expect "% used, $what" "${USED[1]}" -ge "$(awk "BEGIN { print ${USED[0]} - 3 }")"
}

# bucket KB: a shaper that lets so much leave at once
bucket()
{
	in_ns sw tc -batch - <<-END
		qdisc replace dev egress root handle 1: tbf rate 90mbit burst ${1}kb limit 100mb
		qdisc replace dev egress parent 1: handle 2: dualpi2
	END
}

# faster_soon: 10 Mb/s while the first flight is on its way, then 90
faster_soon()
{
	shape 10mbit dualpi2
	(sleep 0.1; set_rate sw egress 1:1 90mbit) &
}

# ack_bursts: ACKs arrive in bursts, one every 4 ms
ack_bursts()
{
	shape 90mbit dualpi2
	in_ns sw tc qdisc replace dev p1 root netem delay 65ms slot 4ms 4ms limit 1000000
}

start_wrong_rate()
{
	local USED=() LONGEST=()

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 65ms
	serve r --cc prague
	started "a link that is faster after 100 ms" faster_soon
	expect "% used, a link that is faster after 100 ms" "${USED[1]}" -ge 85
	in_ns sw tc qdisc del dev egress root
	started "a bucket of 64 kB" bucket 64
	expect "ms of the longest delay, a bucket of 64 kB" "${LONGEST[1]}" -le "$(awk "BEGIN { print ${LONGEST[0]} + 1 }")"
	started "ACKs in bursts" ack_bursts
	expect "ms of the longest delay, ACKs in bursts" "${LONGEST[1]}" -le 40
}
declare_test start_wrong_rate "P15" "where a bucket, bursts of ACKs or a change of the rate make the first flight's rate wrong, a new flow uses as much as with strict=1"

# answers CONTROL RATE RTT SECONDS WORD...: the median of the times, ms, of the answers that WORDs of "flowgen rpc" ask
# for, beside two long flows of so many seconds
answers()
{
	local pids=()

	accecn_dumbbell 3 "$3"
	shape "$2" dualpi2
	serve r --cc "$1"
	serve h3 --cc "$1"
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$1" --duration "${4}s" >/dev/null &
	pids+=($!)
	in_ns h2 flowgen long --to 10.0.0.1 --cc "$1" --start 1s --duration "$(($4 - 1))s" >/dev/null &
	pids+=($!)
	in_ns r flowgen rpc --to 10.0.3.1 --cc "$1" --timeout 10s "${@:5}" >"$TMP/rpc" || fail "answers with $1"
	wait "${pids[@]}"
	teardown
	jq -rs 'map(select(.type == "flow") | .since_due_ns / 1e6) | sort | .[length / 2 | floor] | round' "$TMP/rpc"
}

# requests CONTROL [SIZE RATE]: on kept connections
requests()
{
	answers "$1" 100mbit 20ms 20 --persist --size "${2:-20k}" --rate "${3:-40}" --start 5s --duration 15s
}

# near_cubic FUNCTION WHAT: FUNCTION's time, ms, with prague is at most 1.1 times that with CUBIC
near_cubic()
{
	local prague cubic

	needs_virtual
	needs_accecn
	prague=$("$1" prague)
	cubic=$("$1" cubic)
	echo "$2: $prague ms, CUBIC $cubic"
	expect "$2, ms" "$prague" -le $((cubic * 11 / 10))
}

kept_connections()
{
	near_cubic requests "median of 20 kB beside two long flows"
}
declare_test kept_connections "P16" "answers of 20 kB on kept connections beside two long flows: the median is at most 1.1 times CUBIC's"

kept_idle()
{
	needs_virtual
	needs_accecn
	expect "median of 100 kB, five a second, beside two long flows, ms" "$(requests prague 100k 5)" -le 80
}
declare_test kept_idle "P15" "answers of 100 kB at 100 Mb/s, on connections that are idle between them, do not add a packet per round to an old window"

# A flow that joins another has more to write: marks slow its growth in the first rounds, too.
join()
{
	local pid

	needs_virtual
	needs_accecn
	accecn_dumbbell 2 20ms
	shape 40mbit dualpi2
	serve r --cc prague
	observe 40mbit --from 5s --to 7s
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 7s >/dev/null &
	pid=$!
	in_ns h2 flowgen long --to 10.0.0.1 --cc prague --start 5s --duration 2s >/dev/null || fail "the second flow"
	wait "$pid"
	observed
	expect "99th percentile of the delay, us, in 2 s after a flow has joined" "$(jq '.delay_us.p99 | round' "$TMP/q.json")" -le 5500
}
declare_test join "P15" "a flow that joins another at 40 Mb/s and 20 ms makes no queue of more than 5.5 ms"

# fresh_answers CONTROL: ten of 100 kB, on new connections
fresh_answers()
{
	answers "$1" 20mbit 65ms 14 --size 100k --closed 1 --requests 10 --start 8s
}

answer_beside()
{
	near_cubic fresh_answers "100 kB on new connections beside two long flows"
}
declare_test answer_beside "P15" "beside two long flows at 20 Mb/s and 65 ms, marks cost 100 kB on a new connection no more round: the median is at most 1.1 times CUBIC's"

# page CONTROL [FLOWS]: how long 60 objects of 20 kB take, ms, six connections at once, idle or beside long flows
page()
{
	local i pids=()

	accecn_dumbbell 3 65ms
	shape 60mbit dualpi2
	serve h1 --cc "$1"
	serve r --cc "$1"
	for ((i = 2; i < 2 + ${2:-0}; i++)); do
		in_ns "h$i" flowgen long --to 10.0.0.1 --cc "$1" --duration 12s >/dev/null &
		pids+=($!)
	done
	[ -z "${2:-}" ] || sleep 8
	in_ns r flowgen rpc --to 10.0.1.1 --cc "$1" --persist --size 20k --closed 6 --requests 60 \
		--timeout 10s >"$TMP/rpc" || fail "a page with $1"
	[ -z "${2:-}" ] || wait "${pids[@]}"
	teardown
	jq -rs 'map(select(.type == "flow")) | (map(.start_ns + .fct_ns) | max) - (map(.start_ns) | min) |
		. / 1e6 | round' "$TMP/rpc"
}

page_start()
{
	near_cubic page "60 objects on six connections"
}
declare_test page_start "P15" "six connections that begin together mark each other's bursts, and stay in slow start: a page takes at most 1.1 times CUBIC's time"

# page_beside_two CONTROL
page_beside_two()
{
	page "$1" 2
}

page_beside()
{
	near_cubic page_beside_two "60 objects on six connections beside two long flows"
}
declare_test page_beside "P15" "beside two long flows, whose queue marks every burst, a page takes at most 1.1 times CUBIC's time, too"

# mark_chosen [WORDS]: the switch marks each packet that nft's words choose (all)
mark_chosen()
{
	in_ns sw nft -f - <<-END || skip "no nft, or not numgen"
		table ip marks
		delete table ip marks
		table ip marks {
			chain f {
				type filter hook forward priority 0
				ip ecn ect1 meta length > 1000 $* ip ecn set ce
			}
		}
	END
}

# starts_ended: how many slow starts marks end in 2 s
starts_ended()
{
	trace_on prague/prague_cut
	send --duration 2s
	trace_off "$TMP/trace"
	grep -c cause=start "$TMP/trace"
}

start_share()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 40ms
	serve r
	mark_chosen numgen inc mod 5 '<' 3
	expect "slow starts that 3 marks of 5 ended" "$(starts_ended)" -eq 0
	mark_chosen
	expect "slow starts that marks of all packets ended" "$(starts_ended)" -eq 1
	expect "cuts for losses, when it is reset, too" "$(grep -c cause=loss "$TMP/trace")" -eq 0
}
declare_test start_share "P15" "slow start goes on in rounds with 3 marks of 5, as bursts beside others see them, and ends where all packets are marked"

steady_program()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 40ms
	serve h1 --cc prague
	lossy loss 100% ecn
	trace_on prague/prague_cut
	in_ns r flowgen rpc --to 10.0.1.1 --cc prague --persist --size 12k --closed 1 --requests 40 --timeout 10s >"$TMP/rpc" ||
		fail "requests"
	trace_off "$TMP/trace"
	expect "slow starts that marks ended" "$(grep -c cause=start "$TMP/trace")" -eq 1
}
declare_test steady_program "P15" "a program that sends steadily, and is always the limit, leaves slow start where all its packets are marked"

# cut_alpha N: alpha at the Nth cut
cut_alpha()
{
	field alpha_q30 <"$TMP/trace" | sed -n "$1p" | awk '{ print $1 / 2^30 }'
}

first_alpha()
{
	local from

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	shape 100mbit dualpi2
	serve r --cc prague
	for from in 0 1; do
		parameter "strict=$from"
		trace_on prague/prague_cut
		send --duration 3s
		trace_off "$TMP/trace"
		if [ "$from" = 1 ]; then
			expect "alpha at the first cut" "$(cut_alpha 1)" -eq 1
			expect "alpha at the second cut, strict=1" "$(cut_alpha 2)" -ge 0.4
		else
			expect "marks that end slow start" "$(sed -n 1p "$TMP/trace" | grep -c cause=start)" -eq 1
			expect "alpha at the second cut" "$(cut_alpha 2)" -le 0.2
		fi
	done
}
declare_test first_alpha "P6" "alpha's average begins at 0 after slow start, or with strict=1 at 1"

# --- loss ------------------------------------------------------------------

# left CAUSE SHARE [SLOPE]: reductions for this cause should leave SHARE + SLOPE * alpha of the
# window; prints the largest difference, or 1 if there were no reductions
left()
{
	judge prague-cuts "$TMP/trace" "$@" | field difference
}

loss()
{
	local cubic share prague other

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	data_meets sw egress loss 0.5%
	serve r --cc prague
	for cubic in 0 1; do
		parameter "loss_cubic=$cubic"
		share=0.5 other=reno
		[ "$cubic" -eq 0 ] || share=0.7 other=cubic
		trace_on prague/prague_cut
		send --duration 160s
		trace_off "$TMP/trace"
		prague=$(flow_field goodput_bps)
		expect "difference of a cut from $share, loss_cubic=$cubic" "$(left loss "$share")" -le 0.000001
		in_ns h1 flowgen long --to 10.0.0.1 --cc "$other" --duration 160s >"$TMP/flow.json"
		other=$(flow_field goodput_bps)
		echo "loss_cubic=$cubic: $prague, its model $other b/s"
		between "goodput against the conventional control's" "$(awk "BEGIN { print $prague / $other }")" 0.75 1.33
	done
}
declare_test loss "P8" "a loss leaves half of the window (CUBIC: 0.7); at 0.5 % loss goodput is Reno's (CUBIC's)"

loss_after_mark()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	data_meets sw egress loss 1%
	in_ns h1 tc qdisc add dev eth0 root netem limit 100000 loss 5% ecn
	serve r --cc prague
	parameter loss_cubic=0
	trace_on prague/prague_cut
	send --size 3M
	trace_off "$TMP/trace"
	expect "cuts for marks" "$(grep -c cause=ecn "$TMP/trace")" -ge 10
	expect "difference of a cut from a half" "$(left loss 0.5)" -le 0.000001
}
declare_test loss_after_mark "P8" "a loss in the round of a cut for marks leaves half again"

timeout_loss()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	shape 100mbit
	serve r --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 3s >/dev/null 2>&1 &
	sleep 0.5
	in_ns h1 ss -Htin dport = :5201 >"$TMP/before"
	lossy loss 100%
	sleep 1
	in_ns h1 ss -Htin dport = :5201 >"$TMP/after"
	expect "cwnd after a timeout" "$(ss_field cwnd <"$TMP/after")" -eq 1
	expect "ssthresh after a timeout" "$(ss_field ssthresh <"$TMP/after")" -le \
		$(($(ss_field cwnd <"$TMP/before") * 8 / 10))
}
declare_test timeout_loss "P8" "a timeout sets cwnd to one segment, and ssthresh to 0.7 of the window"

tail_loss()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	tail_losses prague/prague_cut
	echo "tail losses repaired by a probe: $REPAIRED"
	expect "tail losses repaired by a probe" "$REPAIRED" -ge 10
	between "reductions for losses" "$(grep -c cause=loss "$TMP/trace")" "$REPAIRED" "$LOSSES"
	expect "difference of a reduction from 0.7" "$(left loss 0.7)" -le 0.000001
}
declare_test tail_loss "P8" "a loss that a tail loss probe repairs reduces the window, too"

lost_retransmission()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	lossy loss 0%
	lost_again prague/prague_cut prague/prague_mode 0.15
}
declare_test lost_retransmission "P8" "a retransmission lost after a timeout reduces the window again"

timeout_after_mark()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 40ms
	parameter strict=1
	timeout_in_cwr prague/prague_cut
	# at the loss the window is what the mark left, plus a packet or two of growth
	expect "window when the timeout came" "$(field cwnd <"$TMP/trace" | sed -n 2p)" -le \
		$(($(field cwnd_after <"$TMP/trace" | sed -n 1p) + 3))
}
declare_test timeout_after_mark "P8" "a timeout after a mark reduces the window that the mark left"

# lose_last BYTES: steps of talk.py: a message whose last packet is lost
lose_last()
{
	printf '%s\n' "run=tc -n ${NSP}sw filter add dev egress egress protocol ip pref 1 flower ip_proto tcp tcp_flags 0x8/0x8 action drop" \
		"send=$1" sleep=0.014 "run=tc -n ${NSP}sw filter del dev egress egress pref 1" acked
}

# window_after_pause SECONDS: of a flow that has lost a packet, then sends for half a second,
# pauses, and sends for a second; RTT 10 ms
window_after_pause()
{
	local steps

	mapfile -t steps < <(lose_last 300000)
	client 10.0.0.1 send=450000 acked "${steps[@]}" flood=0.5 acked "sleep=$1" flood=1 info
	field cwnd <"$TMP/client"
}

idle_cubic()
{
	local short long

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	in_ns h1 sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
	in_ns sw tc qdisc add dev egress clsact
	sink
	trace_on prague/prague_cut
	short=$(window_after_pause 0.05)
	long=$(window_after_pause 30)
	trace_off "$TMP/trace"
	expect "losses" "$(grep -c cause=loss "$TMP/trace")" -eq 2
	expect "window after a pause of 50 ms" "$short" -ge 100
	echo "window after a pause of 30 s: $long"
	expect "the same after 30 s" "$long" -le $((short * 11 / 10))
}
declare_test idle_cubic "P8" "CUBIC's clock stands still while the flow is idle"

# lose_one: steps of talk.py: the first packet of a message is lost, too few follow to fill the window
lose_one()
{
	echo fate=1 send=1448 fate=0 send=28960 acked
}

# steady_losses RTT: a path on which h1 chooses its losses and a pause does not shrink the window
steady_losses()
{
	needs_virtual
	accecn_dumbbell 1 "$1"
	fates h1 eth0
	in_ns h1 sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
	sink
}

# In recovery, PRR lets out what arrives: at its end cwnd may be a packet or two
recovered()
{
	local before

	steady_losses 40ms
	# shellcheck disable=SC2046 # words
	client 10.0.0.1 send=450000 acked info=before- $(lose_one) send=1448 acked info=after-
	cat "$TMP/client"
	before=$(field before-cwnd <"$TMP/client")
	expect "window before the loss" "$before" -ge 40
	between "window after it" "$(field after-cwnd <"$TMP/client")" $((before * 65 / 100)) $((before * 75 / 100))
}
declare_test recovered "P8" "the window after a recovery is 0.7 of that before the loss, however little was in flight"

# Ten packets are lost, two behind them arrive: RACK waits for a quarter of the RTT, and no ACK comes
# when it starts the recovery. The first retransmission's ACK releases the next ones.
rack_timer()
{
	steady_losses 80ms
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" 'tcp dst port 5299'
	client 10.0.0.1 send=450000 acked info=before- fate=1 send=14360 fate=0 send=2872 acked
	stop_captures
	cat "$TMP/client"
	expect "window before the loss" "$(field before-cwnd <"$TMP/client")" -ge 40
	packets "$TMP/r.pcap" 'tcp.len > 0' frame.time_relative | tail -n 11 >"$TMP/arrived"
	cat "$TMP/arrived"
	# the timeout comes after 280 ms or more
	between "first retransmission behind the last new packet, ms" "$(awk 'NR == 1 { t = $1 } NR == 2 { printf "%.1f", ($1 - t) * 1000 }' "$TMP/arrived")" 95 115
	expect "retransmissions in half an RTT" "$(awk 'NR == 2 { t = $1 } NR > 1 && $1 < t + 0.04' "$TMP/arrived" | wc -l)" -eq 1
}
declare_test rack_timer "P8" "RACK's timer starts a recovery: one retransmission leaves, not a window of them"

# A second loss below W_max: W_max is 0.85 of the window (RFC 9438 4.7), and CUBIC stays there
fast_convergence()
{
	local at

	steady_losses 400ms
	# shellcheck disable=SC2046 # words
	client 10.0.0.1 send=450000 acked $(lose_one) info=at- $(lose_one) flood=3 info=after-
	cat "$TMP/client"
	at=$(field at-cwnd <"$TMP/client")
	expect "window at the second loss" "$at" -ge 30
	between "window 4 s later" "$(field after-cwnd <"$TMP/client")" $((at * 80 / 100)) $((at * 92 / 100))
}
declare_test fast_convergence "P8" "CUBIC's fast convergence: after a second loss the window settles at 0.85 of what it was"

idle_pace()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	sink
	capture r eth0 "$TMP/r.pcap" 'tcp dst port 5299'
	client 10.0.0.1 send=5000000 acked sleep=10 send=14480 acked
	stop_captures
	packets "$TMP/r.pcap" 'tcp.len > 0' frame.time_relative |
		awk '$1 > prev + 5 { begun = $1; n = 0 } { prev = $1; n++ } n == 10 { tenth = $1 }
		END { print n, (tenth - begun) * 1000 }' >"$TMP/paced"
	cat "$TMP/paced"
	expect "packets after the pause" "$(cut -d' ' -f1 "$TMP/paced")" -ge 10
	# ten packets in an RTT; half of that where slow start paces at twice the rate
	expect "ms until the tenth" "$(cut -d' ' -f2 "$TMP/paced")" -ge 7
}
declare_test idle_pace "P16" "after idling packets leave at the pace of the window that is left"

# restart_window: the window after ten seconds of idling
restart_window()
{
	client 10.0.0.1 send=5000000 acked sleep=10 send=1448 info
	field cwnd <"$TMP/client"
}

idle_initcwnd()
{
	local iw

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	sink
	expect "window after idling" "$(restart_window)" -eq 10
	for iw in 4 40; do
		ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd "$iw"
		expect "window after idling, route with initcwnd $iw" "$(restart_window)" -eq "$iw"
	done
}
declare_test idle_initcwnd "" "after idling the window is the route's initcwnd"

# With offloads and an RTT shorter than a burst, all of the window fits into a burst. The first flight of two
# packets does not show the bottleneck's rate, later ACKs do: 8 MB must not overflow a queue of 100 packets.
app_limited()
{
	local rtt lost

	needs_virtual
	needs_accecn
	for rtt in 100us 1ms 5ms; do
		OFFLOADS=1 accecn_dumbbell 1 "$rtt"
		shape 1gbit bfifo limit 150000
		sink
		client 10.0.0.1 writes=1500,2896,0.0004 info=small- writes=500,28960,0.001 info=large- send=8000000 acked info=bulk-
		cat "$TMP/client"
		lost=$(field bulk-retrans <"$TMP/client")
		measured "$lost packets lost after writes at an RTT of $rtt"
		expect "packets lost afterwards, of 5500, at an RTT of $rtt" "$lost" -le 120	# CUBIC: 24, 132, 0
		if [ "$rtt" = 100us ]; then
			expect "window after writes of two packets" "$(field small-cwnd <"$TMP/client")" -le 12
			expect "window after writes of twenty packets" "$(field large-cwnd <"$TMP/client")" -le 60
		fi
		teardown
	done
}
declare_test app_limited "" "while the program is the limit the window does not grow, and a bulk transfer afterwards does not overflow a short queue"

undo()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	parameter strict=1
	# after a mark growth is additive; on CUBIC's curve of a false loss it would be flat for seconds
	undone "$(instead delay 20ms loss 100% ecn)" send=14480 acked "$(instead delay 20ms)" send=100000 acked \
		fate=2 send=1448 fate=0 send=100000 acked info=late- send=4000000 acked info=grown-
	expect "growth in 4 MB, packets" $(($(field grown-cwnd <"$TMP/client") - $(field late-cwnd <"$TMP/client"))) -ge 10
}
declare_test undo "P8" "a loss that was none is undone, growth included"

clamp()
{
	local steps i

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 5ms
	parameter strict=1
	lossy loss 0%
	# after a mark it grows by fractions of a packet
	steps=("$(instead loss 100% ecn)" send=14480 acked "$(instead loss 0%)")
	ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.0.1.254 cwnd lock 12
	sink
	# the stack reads the limit from its metrics of the peer
	in_ns h1 sysctl -qw net.ipv4.tcp_no_metrics_save=0
	client 10.0.0.1 send=1000 acked
	wait_until in_ns h1 sh -c "ip tcp_metrics show | grep -q ."
	for ((i = 0; i < 30; i++)); do steps+=(flood=0.021 "info=$i-"); done
	client 10.0.0.1 "${steps[@]}"
	expect "largest window" "$(tr ' ' '\n' <"$TMP/client" | field cwnd | sort -n | tail -n1)" -eq 12
}
declare_test clamp "" "the window grows no further than the route lets cwnd"

reordering()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	# out of order by up to 3 ms, less than a quarter of the RTT
	lossy delay 3ms 1500us
	serve r --cc prague
	trace_on prague/prague_cut
	capture r eth0 "$TMP/r.pcap" 'tcp dst port 5201'
	send --size 20M
	trace_off "$TMP/trace"
	stop_captures
	expect "packets out of order" "$(packets "$TMP/r.pcap" 'tcp.len > 0' tcp.seq |
		awk '$1 < max { n++ } $1 > max { max = $1 } END { print n + 0 }')" -ge 500
	echo "retransmissions $(flow_field retrans), cuts for loss $(grep -c cause=loss "$TMP/trace")"
	expect "false retransmissions" "$(flow_field retrans)" -le 30
	# until the kernel has seen that this path reorders, three packets out of order are a loss to it
	expect "cuts for false loss" "$(grep -c cause=loss "$TMP/trace")" -le 6
}
limits_after() { needs_virtual; needs_accecn; limit_given_back; }
declare_test limits_after "" "TSO packets are as long as before when another control takes over"

# Requests whose answer's ACKs are all marked, by ACE without options: of the data nothing is
pure_ack_marks()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	every sysctl -qw net.ipv4.tcp_ecn_option=0
	lossy loss 0%
	talk_server r --cc prague
	trace_on prague/prague_period
	talk cc=prague up=50000 acked "$(instead loss 100% ecn)" talk=1000,1000000 "$(instead loss 0%)" sleep=0.1 \
		up=200000 acked up=200000 acked
	trace_off "$TMP/trace"
	expect "packets acknowledged" "$(field acked <"$TMP/trace" | awk '{ n += $1 } END { print n }')" -ge 250
	# what leaves meanwhile is marked: the request, and the first packet after it
	expect "marked packets of data, at most" "$(field marked <"$TMP/trace" | awk '{ n += $1 } END { print n }')" -le 3
}
declare_test pure_ack_marks "P3" "marks on pure ACKs are not counted against data"

declare_test reordering "P7" "packets out of order by less than a quarter of the RTT are not mistaken for losses"

# --- RTT independence ------------------------------------------------------

# silence RTT DURATION: one flow with marks for 0.3 s, so that slow start ends, and none afterwards.
silence()
{
	accecn_dumbbell 1 "$1"
	parameter strict=1
	lossy loss 3% ecn
	serve r --cc prague
	trace_on prague/prague_period
	(sleep 0.3; in_ns sw tc qdisc change dev egress root netem limit 100000 loss 0%) &
	send --duration "$2"
	trace_off "$TMP/trace"
}

# growth RTT_VIRT [--plus-srtt]: growth per srtt in silence, divided by the draft's for this virtual
# RTT (us)
growth()
{
	judge prague-growth "$TMP/trace" "$@" | tee -a "$TMP/judged" | field growth
}

rtt_modes()
{
	needs_virtual
	needs_accecn
	# below 128 us: srtt^2 / rtt_virt^2 is 0.000016
	parameter rtt_rounds=0 rtt_mode=1
	silence 100us 1500ms
	between "growth at an RTT of 100 us, of (srtt / 25 ms)^2" "$(growth 25000)" 0.95 1.05
	# slow start has some that are shorter
	between "EWMA periods in the last second, at an RTT of 100 us" "$(awk 'match($0, /[0-9]+\.[0-9]+:/) {
		at[NR] = substr($0, RSTART) + 0 } END { for (i in at) n += at[i] > at[NR] - 1; print n }' "$TMP/trace")" 39 41
	teardown
	parameter rtt_mode=2
	silence 10ms 3s
	between "growth with srtt + target, of (srtt / (srtt + 25 ms))^2" "$(growth 25000 --plus-srtt)" 0.93 1.07
	teardown
	parameter rtt_mode=0
	silence 5ms 2s
	between "growth with rtt_mode=0, of 1" "$(growth 0 --plus-srtt)" 0.93 1.07
	cat "$TMP/judged"
}
declare_test rtt_modes "P12" "growth follows the formula of each rtt_mode, at 100 us, 5 and 10 ms"

idle()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 2ms
	shape 100mbit dualpi2
	sink
	trace_on prague/prague_period
	# after the bulk, 200 small messages without a mark
	client 10.0.0.1 send=30000000 acked writes=200,3000,0.003 sleep=3 send=5000000
	trace_off "$TMP/trace"
	judged prague-idle "$TMP/trace"
	expect "rounds before idling" "$(field rounds_before <"$TMP/judged")" -ge 500
	expect "rounds after idling" "$(field rounds_after <"$TMP/judged")" -le 3
	expect "periods without a mark before idling" "$(field silent_before <"$TMP/judged")" -ge 15
	expect "periods without a mark after idling" "$(field silent_after <"$TMP/judged")" -le 3
	expect "rtt_virt after idling" "$(field rtt_virt <"$TMP/judged")" -eq "$(field srtt <"$TMP/judged")"
}
declare_test idle "P14" "after idling the count of rounds restarts, with the real RTT"

capacity()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	shape 100mbit dualpi2
	serve r --cc prague
	trace_on prague/prague_period
	(sleep 8; set_rate sw egress 1:1 20mbit; sleep 2; set_rate sw egress 1:1 100mbit) &
	send --duration 14s --interval 500ms
	trace_off "$TMP/trace"
	judged prague-rounds "$TMP/trace" 7.9
	expect "silent, beyond the periods without a mark" "$(field silent_beyond <"$TMP/judged")" -eq 0
	expect "goodput of the last 2 s, Mb/s" "$(jq -s 'map(select(.type == "interval"))[-4:] | map(.goodput_bps) | add / length / 1e6' \
		"$TMP/flow.json")" -ge 85
}
declare_test capacity "P19" "a link that loses most of its rate for 2 s: silence counts in rtt_virt, and the link is soon full again"

# --- pacing ----------------------------------------------------------------

pacing()
{
	needs_virtual
	needs_accecn
	# a path with occasional marks and no bottleneck, so that only the sender causes gaps
	accecn_dumbbell 1 20ms
	parameter strict=1
	lossy loss 0.5% ecn
	serve r --cc prague
	trace_on prague/prague_period
	capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5201'
	send --duration 5s
	trace_off "$TMP/trace"
	stop_captures
	judged prague-pace "$TMP/h.pcap" "$TMP/trace"
	between "mean gap, of srtt / cwnd" "$(field mean <"$TMP/judged")" 0.93 1.07
	expect "share of gaps shorter than 0.4 of that" "$(field short <"$TMP/judged")" -le 0.02
}
declare_test pacing "P16" "packets leave srtt / cwnd apart"

bursts()
{
	local us want got

	needs_virtual
	needs_accecn
	# segmentation offload, and an RTT for which the stack allows 64 kB at once
	OFFLOADS=1 accecn_dumbbell 1 200us
	shape 1gbit dualpi2
	serve r --cc prague
	for us in 250 50; do
		parameter "burst_us=$us"
		capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5201'
		send --duration 500ms
		stop_captures
		# 1 Gb/s, plus 10 % because the pacing rate is sometimes above the line's rate
		want=$((us * 125 * 110 / 100))
		got=$(packets "$TMP/h.pcap" 'frame.time_relative > 0.1' tcp.len | sort -n | tail -n1)
		echo "burst_us=$us: $got bytes, want $want"
		between "longest burst, bytes, burst_us=$us" "$got" $((want / 2)) "$want"
	done
}
declare_test bursts "P17" "no burst is longer than burst_us at the pacing rate, at an RTT of 200 us too"

# --- options ---------------------------------------------------------------

loss_pacing()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	serve r --cc prague
	shape 20mbit pfifo limit 30
	capture h1 eth0 "$TMP/loss.pcap" tcp
	send --duration 6s
	stop_captures
	expect "packets together, drop-tail, %" "$(packets_together "$TMP/loss.pcap")" -ge 30
	in_ns h1 tc qdisc replace dev eth0 root fq
	capture h1 eth0 "$TMP/fq.pcap" tcp
	send --duration 6s
	stop_captures
	expect "packets together, drop-tail, sch_fq, %" "$(packets_together "$TMP/fq.pcap")" -le 10
	in_ns h1 tc qdisc del dev eth0 root
	shape 20mbit dualpi2
	capture h1 eth0 "$TMP/mark.pcap" tcp
	send --duration 6s
	stop_captures
	expect "packets together, dualpi2, %" "$(packets_together "$TMP/mark.pcap")" -le 10
	parameter loss_cubic=0
	shape 20mbit pfifo limit 30
	capture h1 eth0 "$TMP/reno.pcap" tcp
	send --duration 6s
	stop_captures
	expect "packets together, drop-tail, loss_cubic=0, %" "$(packets_together "$TMP/reno.pcap")" -le 10
}
declare_test loss_pacing "P16" "between a loss and the next mark packets are paced by sch_fq alone, as the stack's controls are"

# Two long flows, and requests whose answers are bursts of six packets: 2 ms at the rate. Their marks
# do not say that the long flows are too fast. With strict=1 these get 17 to 19 Mb/s.
others_bursts()
{
	local pids=()

	needs_virtual
	needs_accecn
	accecn_dumbbell 3 18ms
	shape 35mbit dualpi2
	serve r --cc prague
	serve h3 --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 12s >"$TMP/long1" &
	pids+=($!)
	in_ns h2 flowgen long --to 10.0.0.1 --cc prague --duration 12s --start 100ms >"$TMP/long2" &
	pids+=($!)
	in_ns r flowgen rpc --to 10.0.3.1 --cc prague --size 8k --rate 54 --start 1s --duration 11s --seed 1 >"$TMP/rpc" &
	pids+=($!)
	wait "${pids[@]}"
	expect "goodput of the long flows, Mb/s" "$(cat "$TMP"/long[12] | jq -s 'map(select(.type == "flow").goodput_bps) | add / 1e6')" -ge 22
}
declare_test others_bursts "P10" "marks that another flow's bursts cause cost a long flow little: two of them use 22 of 35 Mb/s beside requests"

# Beside a second flow no round is silent for long: silence says that its capacity is free.
freed()
{
	local strict took=()

	needs_virtual
	needs_accecn
	accecn_dumbbell 2 20ms
	shape 40mbit dualpi2
	serve r --cc prague
	for strict in 1 0; do
		parameter "strict=$strict"
		in_ns h2 flowgen long --to 10.0.0.1 --cc prague --duration 10s >"$TMP/second" &
		send --duration 18s --interval 100ms
		wait $! || fail "the second flow failed"
		# when goodput first reaches 90 % after the second flow has ended
		took[strict]=$(jq -rs '(map(select(.type == "flow"))[0].start_ns + 10e9) as $left |
			map(select(.type == "interval" and .start_ns >= $left and .goodput_bps > 34200000)) |
			if length > 0 then ((.[0].start_ns - $left) / 1e6 | round) else 8000 end' "$TMP/flow.json")
	done
	echo "90 % after ${took[0]} ms, with strict=1 after ${took[1]} ms"
	expect "ms to 90 %" "${took[0]}" -le 1500
	expect "ms to 90 %" "${took[0]}" -le $((took[1] / 2))
}
declare_test freed "P19" "capacity that another flow leaves is used within 1.5 s, in half of the time of additive increase"

# Drops of a flow with CONTROL that starts in a drop-tail queue of four BDPs
drops_at_start()
{
	shape 100mbit pfifo limit 1650
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$1" --duration 3s >"$TMP/flow.json"
	in_ns sw tc -s -j qdisc show dev egress | jq '[.[] | select(.kind == "pfifo").drops] | add'
}

deep_queue()
{
	local prague cubic

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 50ms
	serve r --cc prague
	prague=$(drops_at_start prague)
	cubic=$(drops_at_start cubic)
	echo "drops in the first 3 s: $prague, CUBIC $cubic"
	expect "drops" "$prague" -le $((2 * cubic + 200))
}
declare_test deep_queue "P15" "slow start ends before it fills a drop-tail queue of four BDPs: few packets are lost"

# late_at_start CONTROL: drops in a drop-tail queue of four BDPs of a flow one of whose first packets
# is late: a loss that was none
late_at_start()
{
	shape 100mbit pfifo limit 1650
	client 10.0.0.1 "cc=$1" send=60000 acked fate=2 send=1448 fate=0 flood=3
	cat "$TMP/client" >&2
	in_ns sw tc -s -j qdisc show dev egress | jq '[.[] | select(.kind == "pfifo").drops] | add'
}

late_deep_queue()
{
	local prague cubic undone

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 50ms
	fates h1 eth0 30ms
	sink
	prague=$(late_at_start prague)
	undone=$(in_ns h1 nstat -asz | awk '$1 ~ /TCP.*Undo$/ { n += $2 } END { print n + 0 }')
	cubic=$(late_at_start cubic)
	echo "drops in the first 3 s: $prague, CUBIC $cubic; losses undone: $undone"
	expect "losses that were undone" "$undone" -ge 1
	expect "drops" "$prague" -le $((2 * cubic + 400))
}
declare_test late_deep_queue "P15" "... after a loss that was none, too"

# goodput_at SECONDS: Mb/s in the half-second that begins so long after the flow
goodput_at()
{
	jq -rs "map(select(.type == \"interval\"))[$(($1 * 2))].goodput_bps / 1e6 | round" "$TMP/flow.json"
}

# hystart_flow CONTROL BACK DURATION: a flow of 200 Mb/s, 60 ms, whose ACKs are 12 ms later from early slow start
# on, for BACK seconds
hystart_flow()
{
	in_ns sw tc qdisc replace dev p1 root netem delay 60ms limit 1000000
	(sleep 0.22; in_ns sw tc qdisc change dev p1 root netem delay 72ms limit 1000000
		sleep "$2"; in_ns sw tc qdisc change dev p1 root netem delay 60ms limit 1000000) &
	CC=$1 send --duration "$3" --interval 500ms
	wait $!
	echo "$1, $2 s: at 2, 4 s $(goodput_at 2) $(goodput_at 4) Mb/s, retransmissions $(flow_field retrans)"
}

hystart_exit()
{
	needs_virtual
	needs_accecn
	local marking

	accecn_dumbbell 1 60ms
	serve r --cc prague
	# before the first mark
	shape 200mbit dualpi2
	trace_on prague/prague_cut
	hystart_flow prague 1 4500ms
	trace_off "$TMP/trace"
	marking=$(goodput_at 4)
	expect "Mb/s after four seconds, DualPI2" "$marking" -ge 125
	expect "cuts, DualPI2" "$(wc -l <"$TMP/trace")" -eq 0
	shape 200mbit pfifo limit 1000
	trace_on prague/prague_cut
	hystart_flow prague 1 9s
	trace_off "$TMP/trace"
	expect "difference of the two queues after four seconds, %" $((100 * marking / $(goodput_at 4) - 100)) -ge -5
	expect "Mb/s in the fifth second, RTT longer for a second" "$(goodput_at 5)" -ge 170
	expect "cuts" "$(wc -l <"$TMP/trace")" -le 2
	hystart_flow prague 9 5500ms
	expect "Mb/s in the fifth second, RTT longer for good" "$(goodput_at 5)" -ge 90
}
declare_test hystart_exit "P15" "once HyStart++ has ended slow start, the window grows by a twentieth per round, as CUBIC's, over DualPI2, too"

# CUBIC has lost packets in a queue of five, and left an ssthresh of a few packets. Prague's slow start ends
# there, without mark or loss. RTT 60 ms, 200 Mb/s: 1000 packets fill the path, and with one packet per RTT
# the window would have some 100 more after 6 s.
ssthresh_growth()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 60ms
	shape 200mbit pfifo limit 5
	sink
	client 10.0.0.1 send=1000 acked cc=cubic send=300000 acked info=cubic_ \
		"run=tc -n ${NSP}sw qdisc change dev egress parent 1:1 pfifo limit 1000" cc=prague flood=6 info
	cat "$TMP/client"
	expect "ssthresh that CUBIC left" "$(field cubic_ssthresh <"$TMP/client")" -le 100
	expect "window after 6 s" "$(field cwnd <"$TMP/client")" -ge 350
}
declare_test ssthresh_growth "P15" "... nor does it stay with one packet per RTT where slow start ends at an ssthresh"

# A drop-tail queue of one BDP, 1000 packets: when the window is longer than the path is known, so a queue
# grows, and no mark ends slow start.
start_drop_tail()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 60ms
	shape 200mbit pfifo limit 1000
	sink
	client 10.0.0.1 flood=6 info
	cat "$TMP/client"
	expect "packets retransmitted" "$(field retrans <"$TMP/client")" -le 100
	expect "window after 6 s" "$(field cwnd <"$TMP/client")" -ge 1000
}
declare_test start_drop_tail "P15" "slow start does not overflow a drop-tail queue of one BDP"

# CoDel, in which another flow is, too, never marks half of the packets, however long its queue is
start_codel()
{
	needs_virtual
	needs_accecn
	local pids=()

	BUFFER=33554432 accecn_dumbbell 2 50ms
	shape 100mbit fq_codel limit 10000 flows 1
	serve r --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 8s --start 3600us >/dev/null &
	pids+=($!)
	in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --duration 8s --start 19000us >/dev/null &
	pids+=($!)
	sleep 7
	in_ns h1 ss -Htin dport = :5201 >"$TMP/ss"
	wait "${pids[@]}"
	# the path holds 413 packets
	expect "window after 7 s" "$(ss_field cwnd <"$TMP/ss")" -le 1000
}
declare_test start_codel "P15" "slow start ends where a queue grows and less than half of the packets are marked"

queue_profile()
{
	needs_virtual
	has_accecn || skip "this kernel has no dualpi2"
	dumbbell 1 10ms
	"$LOWQ_TC" prague egress -n "${NSP}sw" --rate 100mbit --step 500us --json >"$TMP/lt" || fail "lowq-tc prague"
	expect "queue" "$(in_ns sw tc qdisc show dev egress | grep -c dualpi2)" -eq 1
	if ! tc qdisc add dev lo root dualpi2 help 2>&1 | grep -q step_thresh; then
		expect "options said to be without effect" "$(jq -r '.could_not_honour | length' "$TMP/lt")" -eq 1
	fi
	# with the plugin for an old tc, options reach the kernel and are shown
	if [ -e "$BIN/q_dualpi2.so" ]; then
		"$LOWQ_TC" reset egress -n "${NSP}sw" -q || fail "lowq-tc reset"
		TC_LIB_DIR=$BIN "$LOWQ_TC" prague egress -n "${NSP}sw" --rate 100mbit --step 500us --step-min 1 \
			--target 20ms --coupling 3 --json >"$TMP/lt" || fail "lowq-tc prague with the plugin"
		expect "options said to be without effect" "$(jq -r '.could_not_honour | length' "$TMP/lt")" -eq 0
		TC_LIB_DIR=$BIN in_ns sw tc qdisc show dev egress >"$TMP/shown"
		grep -q 'limit 10000 target 20000us step_thresh 500us min_qlen_step 1 coupling_factor 3' "$TMP/shown" ||
			fail "tc shows: $(grep dualpi2 "$TMP/shown")"
		! TC_LIB_DIR=$BIN in_ns sw tc qdisc change dev egress root dualpi2 coupling_factor 256 2>/dev/null || fail "coupling_factor 256 was accepted"
	fi
	"$LOWQ_TC" reset egress -n "${NSP}sw" -q || fail "lowq-tc reset"
	expect "queue after reset" "$(in_ns sw tc qdisc show dev egress | grep -c dualpi2)" -eq 0
	"$LOWQ_TC" prague egress -n "${NSP}sw" --rate 100mbit --aqm fq_codel --dry-run -q |
		grep -q 'fq_codel limit 10240 ecn ce_threshold 1000us ce_threshold_selector 0x01/0x03$' || fail "fq_codel"
	! "$LOWQ_TC" prague egress -n "${NSP}sw" --rate 100mbit --aqm red --dry-run 2>/dev/null || fail "--aqm red was accepted"
	in_ns r sysctl -qw net.ipv4.tcp_ecn=2
	"$LOWQ_TC" host prague -n "${NSP}r" -q || fail "lowq-tc host prague"
	expect "tcp_ecn" "$(in_ns r sysctl -n net.ipv4.tcp_ecn)" -eq 3
	"$LOWQ_TC" host reset -n "${NSP}r" -q || fail "lowq-tc host reset"
	expect "tcp_ecn after reset" "$(in_ns r sysctl -n net.ipv4.tcp_ecn)" -eq 2
}
declare_test queue_profile "" "lowq-tc prague sets dualpi2 or fq_codel, lowq-tc host prague Accurate ECN, and both restore"

# --- parameters, switching, unloading --------------------------------------

parameters()
{
	refused rtt_mode=3 rtt_target_us=99 rtt_target_us=1000001 rtt_rounds=65536 burst_us=9 burst_us=10001 loss_cubic=2 strict=x
	! echo 0 2>/dev/null >"$PARAM/ect" || fail "ect was changed in a loaded module"
	refused_at_load burst_us=0
	refused_at_load ect=2
}
declare_test parameters "" "values out of range are refused, with a reason"

info()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	shape 100mbit dualpi2
	serve r --cc prague
	in_ns h1 flowgen long --to 10.0.0.1 --cc prague --duration 2s >/dev/null &
	sleep 1
	in_ns h1 ss -Htin dport = :5201 >"$TMP/ss"
	wait $!
	grep -q 'prague .*dctcp:(ce_state:0,alpha:[0-9]*,ab_ecn:[0-9]*,ab_tot:[0-9]*)' "$TMP/ss" ||
		fail "ss -ti does not show Prague: $(<"$TMP/ss")"
	expect "alpha of 1024" "$(ss_field alpha <"$TMP/ss")" -le 1024
}
declare_test info "P24" "ss -ti shows alpha, marked and acknowledged packets"

switch_mid_flow()
{
	accecn_dumbbell 1 1ms
	sink
	switch_controls h1 10.0.0.1 prague cubic reno
}
declare_test switch_mid_flow "" "the control changes mid-flow, to and from this one"

unload()
{
	accecn_dumbbell 1 1ms
	shape 100mbit
	in_use
}
declare_test unload "" "unloading is refused while in use, and works afterwards"

# Everything at once, so that the kernel's checkers see it: marks, loss, lost and reordered ACKs,
# IPv4 and IPv6, changes of control and parameters, a namespace that is deleted under traffic.
stress()
{
	local i p flows=5

	virtual || flows=2
	for i in 3 1; do
		dumbbell 2 1ms
		every sysctl -qw net.ipv4.tcp_ecn="$i"
		shape 100mbit fq_codel ce_threshold 1ms
		storm "$flows"
		for p in strict=1 loss_cubic=0 rtt_rounds=0 rtt_mode=1 rtt_mode=2 burst_us=10 strict=0 loss_cubic=1; do
			sleep 0.1
			parameter "$p"
		done
		sleep 0.2
		vanish h2
		sleep 0.3
		teardown
		put_back
	done
}
declare_test stress "" "marks, loss, switches, parameters, a deleted namespace: nothing breaks"

run_tests "$@"
