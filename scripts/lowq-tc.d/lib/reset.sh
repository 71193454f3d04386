# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# lowq-tc reset

reset_device() {
	local commands=() c exact profile

	begin_change
	undo=()
	ifindex=0
	read_link
	if ((!ifindex)); then
		read_state
		[[ $state != null ]] || refuse "no device '$dev'$of_netns"
		has dry-run || drop_state
		present reset '' "$dev is gone: forgotten" applied
		return
	fi
	read_device
	read_device_state
	if [[ $state == null ]]; then
		has dry-run || drop_state 2>/dev/null
		present reset '' "$dev: nothing to undo" unchanged
		return
	fi
	if ((!ours)) && ! jq -e .pending <<<"$state" >/dev/null; then
		has force || refuse "the queue of $dev was changed by someone else since (it is '${root_is% *}' now): left alone; --force puts back what was there before"
	fi
	profile=$(jq -r .profile <<<"$state")
	exact=$(jq -r .exact <<<"$state")
	state_list .undo
	commands=("${list[@]}")
	[[ ! $root_is || $root_is == *" 0:" ]] || commands+=("tc qdisc del dev $dev root")
	state_list .restore
	commands+=("${list[@]}")
	c=$(jq -r '.original.txqlen' <<<"$state")
	((c == txqlen)) || commands+=("ip link set dev $dev txqueuelen $c")
	[[ $exact == true ]] || note "the kernel's default is back; what was there before could not be made again: $(jq -r '.previous.text' <<<"$state" | grep -v '^$' | paste -sd';')"

	if has dry-run; then
		present reset "$profile" "$dev: would run" planned "${commands[@]}"
		return
	fi
	if ! run_all "${commands[@]}"; then
		complain "$dev is put back only in part; what was recorded is kept"
		exit 1
	fi
	read_qdiscs
	if [[ $exact == true &&
	      $(jq -c .previous.qdiscs <<<"$state" | comparable) != \
	      "$(comparable <<<"$qdiscs")" ]]; then
		note "what is there now differs from what was recorded: see 'tc qdisc show dev $dev'"
	fi
	drop_state
	present reset "$profile" "$dev: put back" applied "${commands[@]}"
}

reset() {
	local all=() d

	if has all; then
		((${#words[@]} == 1)) || refuse "reset: --all, or a device, not both"
		our_devices
		all=("${list[@]}")
	else
		((${#words[@]} == 2)) || refuse "reset: which device? (or --all)"
		all=("${words[1]}")
	fi
	for d in "${all[@]}"; do
		take_device "$d"
		notes=()
		reset_device
	done
}
