# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# red: RED with the thresholds that the user gives.

profile red 'RED: marks with growing probability between --min and --max' \
	min max probability limit burst nodrop harddrop no-ecn

option min size
option max size
option probability probability
option burst count
option harddrop flag
option no-ecn flag

red_min=0
red_max=0
red_burst=auto

red_compute() {
	local least text

	has min || refuse "red: give --min"
	has max || refuse "red: give --max"
	to_bytes min
	red_min=$REPLY
	to_bytes max
	red_max=$REPLY
	((red_min <= red_max)) || refuse "--min ${given[min]} is above --max ${given[max]}"
	((red_max < 536870912)) || refuse "--max ${given[max]}: red takes less than 512 MB"
	# tc: P / (max - min) has to be more than 2^-31
	scale "${opt[probability]:-0.1}" 9
	(((red_max - red_min) * 1000000000 < REPLY * 2147483648)) ||
		refuse "--max ${given[max]}: too far above --min for this probability"
	if has no-ecn && { has nodrop || has harddrop; }; then
		refuse "--nodrop and --harddrop say what ECN does; they do not go with --no-ecn"
	fi
	fmt_queue "$red_min"
	text=$REPLY
	fmt_queue "$red_max"
	explain "min $text, max $REPLY"
	record rate_bps "$rate"
	record frame_bytes "$frame"
	record min_bytes "$red_min"
	record max_bytes "$red_max"
	record probability "${opt[probability]:-0.1}"
	settle_limit "$red_max" --max

	red_burst=${opt[burst]:-auto}
	if has burst; then
		least=$((red_min / frame + 1))
		((red_burst >= least)) || refuse "--burst ${given[burst]}: must be at least $least packets with this --min"
		text="burst $red_burst packets"
	else
		text='burst as Floyd recommends'
	fi
	explain "probability up to ${param[probability]}, $text"
	advise "$red_min"
}

red_tree() {	# PLACE HANDLE
	local flags=(ecn)

	! has no-ecn || flags=()
	! has nodrop || flags+=(nodrop)
	! has harddrop || flags+=(harddrop)
	red_queue "$1" "$2" "$limit" "$red_min" "$red_max" "${param[probability]}" "$red_burst" \
		"${flags[@]}"
}
