# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# segregate: a queue of its own for DCTCP, chosen by DSCP, beside a drop-tail
# queue for all the rest (RFC 8257 section 5). The step is dctcp's.

profile segregate 'the step for one DSCP, drop-tail for the rest (RFC 8257 5)' \
	rtt k limit aqm nodrop dscp share sched rest-limit

option dscp dscp
option share percent
option sched word
option rest-limit size

segregate_share=50
segregate_rest=0

segregate_compute() {
	local sched=${opt[sched]:-ets}

	[[ $sched == @(ets|prio) ]] || refuse "--sched $sched: ets or prio"
	[[ $sched == ets ]] || ! has share || refuse "--share goes with --sched ets; prio serves DCTCP first"
	segregate_share=${opt[share]:-50}
	record sched "$sched"
	record dscp "${opt[dscp]:-10}"
	if [[ $sched == ets ]]; then
		record share_percent "$segregate_share"
		explain "DSCP ${param[dscp]} has its own queue, with at least $segregate_share % of the link while both wait"
	else
		explain "DSCP ${param[dscp]} has its own queue and goes first"
		note "prio lets the DSCP ${param[dscp]} queue starve the rest"
	fi
	step_compute
	segregate_rest=$limit
	if has rest-limit; then
		to_bytes rest-limit
		segregate_rest=$REPLY
		((segregate_rest >= frame)) || refuse "--rest-limit ${given[rest-limit]}: less than one packet ($frame bytes)"
	fi
	record rest_limit_bytes "$segregate_rest"
	fmt_queue "$segregate_rest"
	explain "the rest, ARP and all that is not IP included: drop-tail, limit $REPLY"
	note "the hosts have to set DSCP ${param[dscp]} on DCTCP's packets, ACKs included"
}

segregate_tree() {	# PLACE HANDLE
	local to_rest=(1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1) tos s=$segregate_share q1=$frame q2=$frame

	if [[ ${param[sched]} == ets ]]; then
		((s <= 50)) || q1=$((frame * s / (100 - s)))
		((s >= 50)) || q2=$((frame * (100 - s) / s))
		add_qdisc "$1" "$2" ets bands 2 quanta "$q1" "$q2" priomap "${to_rest[@]}"
	else
		add_qdisc "$1" "$2" prio bands 2 priomap "${to_rest[@]}"
	fi
	step_queue "parent $2:1" ''
	add_qdisc "parent $2:2" '' bfifo limit "$segregate_rest"
	printf -v tos '0x%02x' $((param[dscp] << 2))
	plan tc filter add dev "$dev" parent "$2:" protocol ip pref 1 \
		u32 match ip dsfield "$tos" 0xfc classid "$2:1"
	plan tc filter add dev "$dev" parent "$2:" protocol ipv6 pref 2 \
		u32 match ip6 priority "$tos" 0xfc classid "$2:1"
}
