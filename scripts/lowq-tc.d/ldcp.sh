# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# ldcp: one queue with two profiles (LDCP draft 2.1 and 2.3). ECT packets are
# marked with a probability that grows from --min to --max, and dropped only when the
# queue is full; Not-ECT packets, those of a first RTT, are dropped from --k on.
#
# From stock parts: gred in WRED mode, whose virtual queues share one backlog when
# they have the same prio, and filters that pick the virtual queue by the ECN field.

profile ldcp 'WRED: ECT is marked from --min to --max, Not-ECT dropped from --k on (LDCP)' \
	rtt min max probability k limit simple

option min size
option max size
option probability probability
option simple flag

control ldcp 'LDCP' host_ldcp

# Both ends: ECN, an ACK per packet, and a receive window that holds a first RTT.
# A sender pushes what is longer than half of that window in parts: twice, then.
host_ldcp() {
	needs_module tcp_ldcp
	host_asks_for_ecn
	has route || return 0
	has quickack || route_option quickack 1
	has initcwnd || return 0
	has initrwnd || route_option initrwnd $((2 * opt[initcwnd] + 2))
	host_ldcp_buffer $(((2 * opt[initcwnd] + 2) * 1460))
}

# The default receive buffer has to hold that window: twice the bytes, as half of a
# buffer counts for overhead at the default tcp_adv_win_scale.
host_ldcp_buffer() {	# BYTES
	local least now middle

	get_sysctl net.ipv4.tcp_rmem || return 0
	read -r least middle now <<<"$REPLY"
	((middle < 2 * $1)) || return 0
	((now > 2 * $1)) || now=$((2 * $1))
	wants_sysctl net.ipv4.tcp_rmem "$least $((2 * $1)) $now"
}

ldcp_min=0
ldcp_max=0
ldcp_k=0

# The BDP that --rate and --rtt make, in packets, for the defaults
ldcp_compute() {
	local bdp=0

	record rate_bps "$rate"
	record frame_bytes "$frame"
	if ((rate)) && has rtt; then
		record rtt_ns "${opt[rtt]}"
		bytes_in "${opt[rtt]}"
		packets_of "$REPLY"
		bdp=$REPLY
	fi
	ldcp_threshold min "$bdp" 16 4 'K_min' 'BDP / 16'
	ldcp_min=$REPLY
	ldcp_threshold max "$bdp" 1 64 'K_max' 'the BDP'
	ldcp_max=$REPLY
	((ldcp_min < ldcp_max)) || refuse "--min ($ldcp_min bytes) must be below --max ($ldcp_max bytes)"
	((ldcp_max < 536870912)) || refuse "--max: red takes less than 512 MB"
	record probability "${opt[probability]:-1}"
	explain "P_max = ${param[probability]}"
	if has simple; then
		! has k || refuse "--k is of the profile for Not-ECT, which --simple leaves away"
		explain "one profile: red, which drops Not-ECT packets where it marks ECT ones"
		settle_limit "$ldcp_max" K_max
	else
		if has k; then
			to_bytes k
		else
			REPLY=$ldcp_max
		fi
		ldcp_k=$REPLY
		record k_bytes "$ldcp_k"
		fmt_queue "$ldcp_k"
		explain "K = $REPLY: Not-ECT packets that find so much are dropped"
		settle_limit "$((ldcp_k > ldcp_max ? ldcp_k : ldcp_max))" 'K and K_max'
		explain "gred in WRED mode: virtual queue 1 for ECT and what is not IP, 2 for Not-ECT, chosen by filters at clsact"
		ldcp_filters
	fi
	not_honoured "thresholds on the instantaneous queue: tc halves the distance to it with every packet (EWMA weight 1/2)"
	not_honoured "marks independent of each other: RED spaces them by 1 to 1 / p packets, alike, which marks 2p / (1 + p)"
	advise "$ldcp_min"
}

# A threshold as given, or as a part of the BDP, at least LEAST packets. -> bytes
ldcp_threshold() {	# OPTION BDP DIVISOR LEAST NAME FORMULA
	local packets

	if has "$1"; then
		to_bytes "$1"
		packets=$REPLY
		fmt_queue "$packets"
		explain "$5 = $REPLY, as given"
	else
		(($2)) || refuse "give --rtt, from which $5 is computed, or --$1"
		packets=$((($2 + $3 - 1) / $3))
		((packets >= $4)) || packets=$4
		packets=$((packets * frame))
		fmt_queue "$packets"
		explain "$5 = $REPLY ($6, at least $4 packets)"
	fi
	record "$1_bytes" "$packets"
	REPLY=$packets
}

# Whoever made a clsact has filters there that ours would come before or after.
ldcp_filters() {
	local f

	if ((!ours)) && [[ $(tc_ qdisc show dev "$dev" 2>/dev/null) == *clsact* ]]; then
		refuse "$dev has a clsact already, which --simple does without"
	fi
	extra "tc qdisc del dev $dev clsact" tc qdisc add dev "$dev" clsact
	for f in 'ip pref 1' 'ipv6 pref 2'; do
		read -ra f <<<"$f"
		plan tc filter add dev "$dev" egress protocol "${f[@]}" flower ip_tos 0x0/0x3 classid :2
	done
	plan tc filter add dev "$dev" egress protocol all pref 3 matchall classid :1
}

ldcp_tree() {	# PLACE HANDLE
	if has simple; then
		red_queue "$1" "$2" "$limit" "$ldcp_min" "$ldcp_max" "${param[probability]}" step ecn
		return
	fi
	add_qdisc "$1" "$2" gred setup vqs 3 default 1 grio limit "$limit"
	ldcp_vq "$1" "$2" 1 "$ldcp_min" "$ldcp_max" "${param[probability]}" ecn
	ldcp_vq "$1" "$2" 2 "$ldcp_k" "$ldcp_k" 1
}

ldcp_vq() {	# PLACE HANDLE VQ MIN MAX PROBABILITY FLAGS...
	local place

	read -ra place <<<"$1"
	red_parameters "$limit" "${@:4:3}" step
	plan tc qdisc change dev "$dev" "${place[@]}" handle "$2:" gred vq "$3" prio 1 \
		"${red_words[@]}" "${@:7}"
}
