# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# roce: the congestion point of RoCEv2 congestion management. CNPs go first, RoCEv2
# (UDP 4791) goes through RED, and all the rest through a drop-tail queue.

profile roce 'RED for RoCEv2, CNPs first, drop-tail for the rest (DCQCN)' \
	min max probability limit share rest-limit

control roce 'soft-RoCE: injector, notification and reaction point' host_roce

host_roce() {
	local o

	for o in route default allow initcwnd initrwnd quickack; do
		! has "$o" || refuse "--$o does not go with 'host roce': it is no control of TCP"
	done
	no_tcp_control
	needs_service roce_rcm	# it works while it is loaded
}

readonly roce_port=4791 roce_cnp=0x81	# a CNP is known by its opcode, never by its ECN field

roce_min=0
roce_max=0
roce_rest=0
roce_share=50

roce_compute() {
	local text how=

	# 16 and 80 us, tried with DCQCN's defaults at 10 Gb/s; at least 8 and 32 packets
	if has min; then
		to_bytes min
		roce_min=$REPLY
	else
		((rate)) || refuse "roce: give --rate, or --min and --max"
		bytes_in 16000
		roce_min=$((REPLY > 8 * frame ? REPLY : 8 * frame)) how=' (default)'
	fi
	if has max; then
		to_bytes max
		roce_max=$REPLY
	else
		((rate)) || refuse "roce: give --rate, or --min and --max"
		bytes_in 80000
		roce_max=$((REPLY > 4 * roce_min ? REPLY : 4 * roce_min)) how=' (default)'
	fi
	((roce_min <= roce_max)) || refuse "--min $roce_min is above --max $roce_max bytes"
	((roce_max < 536870912)) || refuse "--max: red takes less than 512 MB"
	record rate_bps "$rate"
	record frame_bytes "$frame"
	record min_bytes "$roce_min"
	record max_bytes "$roce_max"
	record probability "${opt[probability]:-0.1}"
	fmt_queue "$roce_min"
	text=$REPLY
	fmt_queue "$roce_max"
	explain "RED for UDP $roce_port: min $text, max $REPLY$how, probability up to ${param[probability]}"
	settle_limit "$roce_max" --max
	roce_share=${opt[share]:-50}
	record share_percent "$roce_share"
	explain "CNPs go first; RoCEv2 has at least $roce_share % of the link while both wait"
	roce_rest=$limit
	if has rest-limit; then
		to_bytes rest-limit
		roce_rest=$REPLY
		((roce_rest >= frame)) || refuse "--rest-limit ${given[rest-limit]}: less than one packet ($frame bytes)"
	fi
	record rest_limit_bytes "$roce_rest"
	advise "$roce_min"
}

roce_tree() {	# PLACE HANDLE
	local to_rest=(2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2) s=$roce_share q1=$frame q2=$frame
	local family proto ip pref at match

	((s <= 50)) || q1=$((frame * s / (100 - s)))
	((s >= 50)) || q2=$((frame * (100 - s) / s))
	add_qdisc "$1" "$2" ets bands 3 strict 1 quanta "$q1" "$q2" priomap "${to_rest[@]}"
	add_qdisc "parent $2:1" '' bfifo limit $((100 * frame))
	red_queue "parent $2:2" '' "$limit" "$roce_min" "$roce_max" "${param[probability]}" step ecn nodrop
	add_qdisc "parent $2:3" '' bfifo limit "$roce_rest"
	# the opcode is the first byte behind IP and UDP headers
	for family in 'ip ip 1 28' 'ipv6 ip6 3 48'; do
		read -r proto ip pref at <<<"$family"
		match=(match "$ip" protocol 17 0xff match "$ip" dport "$roce_port" 0xffff)
		plan tc filter add dev "$dev" parent "$2:" protocol "$proto" pref "$pref" \
			u32 "${match[@]}" match u8 "$roce_cnp" 0xff at "$at" classid "$2:1"
		plan tc filter add dev "$dev" parent "$2:" protocol "$proto" pref $((pref + 1)) \
			u32 "${match[@]}" classid "$2:2"
	done
}
