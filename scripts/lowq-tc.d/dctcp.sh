# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# dctcp: one step (RFC 8257). Everything that arrives above K is marked.

profile dctcp 'one step: what arrives above K is marked (RFC 8257)' \
	rtt k limit aqm nodrop

option aqm word
option nodrop flag

control dctcp "mainline's DCTCP" host_dctcp
control dctcp_ref 'DCTCP by the letter of RFC 8257' host_dctcp_ref

host_dctcp() {
	needs_module tcp_dctcp
	host_asks_for_ecn
}

host_dctcp_ref() {
	needs_module tcp_dctcp_ref
	host_asks_for_ecn
}

host_asks_for_ecn() {
	wants_ecn 1 3 4
	route_feature ecn
}

# Fewer mark the pair of packets that a delayed ACK lets go.
readonly step_min=4

step_bytes=0	# K
step_us=0	# K as time, for queues that mark by sojourn time
step_aqm=red

# K from --k, or from --rate and --rtt; the engine from --aqm.
step_compute() {
	local seventh='' packets text

	step_aqm=${opt[aqm]:-red}
	[[ $step_aqm == @(red|codel|fq_codel|fq) ]] ||
		refuse "--aqm $step_aqm: red, codel, fq_codel or fq"
	record rate_bps "$rate"
	record frame_bytes "$frame"
	if ((rate)) && has rtt; then
		# RTT * C / 7 in bytes; kbit/s * ns / (8 * 10^6 * 7)
		seventh=$((rate_k * opt[rtt] / 56000000))
		record rtt_ns "${opt[rtt]}"
	fi
	if has k; then
		to_bytes k
		step_bytes=$REPLY
		fmt_queue "$step_bytes"
		explain "K = $REPLY, as given (packets of $frame bytes)"
		if [[ $seventh ]] && ((step_bytes <= seventh)); then
			note "K is not above RTT*C/7 = $seventh bytes: the queue will run empty, and the link with it"
		fi
	else
		has rtt || refuse "give --rtt, from which the threshold is computed, or --k"
		packets=$((rate_k * opt[rtt] / (56000000 * frame) + 1))
		fmt_time "${opt[rtt]}"
		text=$REPLY
		fmt_rate "$rate"
		text="K > RTT*C/7 = $text * $REPLY / 7 = $seventh bytes"
		unscale $((seventh * 100 / frame)) 2
		text+=" = $REPLY packets of $frame bytes (RFC 8257 3.1)"
		explain "$text"
		text=
		if ((packets < step_min)); then
			packets=$step_min
			text=', the least that lets pairs of packets pass'
		fi
		step_bytes=$((packets * frame))
		fmt_queue "$step_bytes"
		explain "K = $REPLY$text"
	fi
	((step_bytes < 536870912)) || refuse "K is $step_bytes bytes: the most is 512 MB"
	packets_of "$step_bytes"
	record k_packets "$REPLY"
	record k_bytes "$step_bytes"
	if ((rate)); then
		drain_time "$step_bytes"
		record k_ns "$REPLY"
	fi
	record aqm "$step_aqm"
	settle_limit "$step_bytes" K
	step_engine
	advise "$step_bytes"
}

step_engine() {
	local want ticks

	if [[ $step_aqm == red ]]; then
		if has nodrop; then
			explain "red, min = max = K: above K ECT is marked and Not-ECT let pass, up to the limit"
		else
			explain "red, min = max = K: above K ECT is marked and Not-ECT dropped, ARP and UDP too (--nodrop lets it pass)"
		fi
		not_honoured "a threshold on the instantaneous queue: tc's red halves the distance to it with every packet (EWMA weight 1/2); --aqm codel or fq mark by the time that each packet waited"
		return
	fi

	! has nodrop || refuse "--nodrop goes with --aqm red; $step_aqm does not drop Not-ECT at the threshold"
	((rate)) || refuse "--aqm $step_aqm marks by time: give --rate"
	tc_offers "$step_aqm" ce_threshold
	drain_time "$step_bytes"
	want=$REPLY
	if [[ $step_aqm == fq ]]; then
		step_us=$(((want + 999) / 1000))
		REPLY=$((step_us * 1000))
	else
		# CoDel's clock ticks every 1024 ns.
		ticks=$(((want + 1023) / 1024))
		step_us=$(((ticks * 1024 + 999) / 1000))
		REPLY=$((ticks * 1024))
	fi
	record threshold_ns "$REPLY"
	if ((REPLY == want)); then
		fmt_time "$want"
		explain "$step_aqm: what waited longer than $REPLY is marked; Not-ECT is not dropped at the threshold"
	else
		fmt_time "$REPLY"
		explain "$step_aqm: what waited longer than $REPLY is marked (K as time, rounded up to its clock); Not-ECT is not dropped at the threshold"
	fi
}

step_queue() {	# PLACE HANDLE
	local packets target flags=(ecn)

	packets_of "$limit"
	packets=$REPLY
	# CoDel's own law is for what does not answer the marks: keep it above them.
	target=$((step_us > 2500 ? 2 * step_us : 5000))
	case $step_aqm in
	red)
		! has nodrop || flags+=(nodrop)
		red_queue "$1" "$2" "$limit" "$step_bytes" "$step_bytes" 1 step "${flags[@]}"
		;;
	codel)
		add_qdisc "$1" "$2" codel limit "$packets" target "${target}us" \
			interval "$((20 * target))us" ecn ce_threshold "${step_us}us"
		;;
	fq_codel)
		add_qdisc "$1" "$2" fq_codel limit "$packets" target "${target}us" \
			interval "$((20 * target))us" ecn ce_threshold "${step_us}us"
		;;
	fq)
		add_qdisc "$1" "$2" fq limit "$packets" flow_limit "$packets" \
			ce_threshold "${step_us}us"
		;;
	esac
}

dctcp_compute() { step_compute; }
dctcp_tree() { step_queue "$@"; }
