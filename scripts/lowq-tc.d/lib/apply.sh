# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# lowq-tc PROFILE DEV

# Takes the device back to CLEAN-DEVICE plus the commands given; what is not
# there any more does not count as a failure.
roll_back() {
	local c

	for c in "${undo[@]}" "tc qdisc del dev $dev root"; do
		run "$c" || :
	done
	take_back "$@"
}

apply() {
	local profile=$1 previous restore exact=true commands=() c old_state before=()
	local original

	only_options "$profile" "$frame_options ${profile_options[$profile]}"
	begin_change
	read_device
	read_device_state
	((ours)) || [[ $state == null ]] || jq -e '.pending' <<<"$state" >/dev/null || {
		note "the queue of $dev was changed by someone else since; what is there now counts as what was there before"
		state=null
	}
	# What we changed ourselves is not what was there before.
	((!ours)) || gso_segs=$(jq -r .original.gso_max_segs <<<"$state")
	settle_rate "$profile"
	"${profile}_compute"
	make_frame "$profile"

	# What was there before, and how it comes back.
	if [[ $state != null ]]; then
		previous=$(jq -c .previous <<<"$state")
		original=$(jq -c .original <<<"$state")
		exact=$(jq -r .exact <<<"$state")
		restore=$(jq -c .restore <<<"$state")
		state_list .undo
		commands=("${list[@]}")
		state_list 'if .pending then .restore else .build end'
		before=("${list[@]}")
	else
		if ! remake_qdiscs; then
			has force || refuse "the root qdisc of $dev, $REPLY, cannot be put back exactly by 'reset'; --force replaces it all the same"
			note "what was there, $REPLY, cannot be put back exactly: reset will leave the kernel's default"
			exact=false
			remade=()
		fi
		json_array "${remade[@]}"
		restore=$REPLY
		json_string "$(tc_ qdisc show dev "$dev"; tc_ class show dev "$dev"; tc_ filter show dev "$dev")"
		previous="{\"qdiscs\":$qdiscs,\"text\":$REPLY}"
		original="{\"txqlen\":$txqlen,\"gso_max_segs\":$gso_segs}"
		before=("${remade[@]}")
	fi
	[[ ! $root_is || $root_is == *" 0:" ]] || commands+=("tc qdisc del dev $dev root")
	commands+=("${build[@]}")
	record previous_exact "$exact"

	if has dry-run; then
		present apply "$profile" "$profile on $dev: would run" planned "${commands[@]}"
		return
	fi
	if ! has no-rehearsal; then
		rehearse "${build[@]}"
		(($? != 1)) || refuse "$REPLY; nothing was changed"
	fi

	old_state=$state
	new_state "$profile" "$previous" "$original" "$exact" "$restore" true
	write_state "$REPLY"
	trap 'interrupted=1' INT TERM HUP
	for c in "${commands[@]}"; do
		run "$c" || give_up "$c" "$REPLY" "$old_state" roll_back "${before[@]}"
	done
	trap - INT TERM HUP
	new_state "$profile" "$previous" "$original" "$exact" "$restore" false
	write_state "$REPLY"
	present apply "$profile" "$profile on $dev: set" applied "${commands[@]}"
}

# The state of the device; `pending` until all commands have run.
new_state() {	# PROFILE PREVIOUS ORIGINAL EXACT RESTORE PENDING
	local text

	text="{\"device\":\"$dev\",\"ifindex\":$ifindex,\"address\":\"$address\",\"profile\":\"$1\""
	json_report
	text+=,$REPLY
	json_array "${build[@]}"
	text+=,\"build\":$REPLY
	json_array "${undo[@]}"
	text+=,\"undo\":$REPLY
	REPLY="$text,\"previous\":$2,\"original\":$3,\"exact\":$4,\"restore\":$5,\"pending\":$6}"
}
