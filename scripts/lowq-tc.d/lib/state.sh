# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# What is remembered between calls.
#
# One file per namespace and device, one per namespace for the host side. Made
# before the first change, removed by reset.

readonly statedir=${LOWQ_STATE_DIR:-/run/lowq}
state=null	# what the file holds
ours=0		# the device still has what the file says

# Before anything is read that is to be changed.
begin_change() {
	local caps

	! has dry-run || return 0
	caps=$(awk '/^CapEff/ { print $2 }' /proc/self/status)
	(((16#${caps:-0} >> 12) & 1)) ||
		refuse "needs the right to administer the network (root); --dry-run does not"
	mkdir -p "$statedir" 2>/dev/null || refuse "cannot make $statedir"
	{ exec 9>"$statedir/lock"; } 2>/dev/null || refuse "cannot write to $statedir"
	flock -w 10 9 2>/dev/null
	[[ $? != 1 ]] || refuse "another lowq-tc is at work"
}

namespace_id() {
	if [[ $netns ]]; then
		REPLY=$(stat -Lc %i "/run/netns/$netns" 2>/dev/null)
	else
		REPLY=$(stat -Lc %i /proc/self/ns/net 2>/dev/null)
	fi
	[[ $REPLY ]] || refuse "cannot tell the network namespace"
}

state_file() {
	namespace_id
	REPLY=$statedir/$REPLY${dev:+-$dev}.json
}

read_state() {
	state_file
	state=$(jq -c . "$REPLY" 2>/dev/null) || state=null
	[[ $state ]] || state=null
}

read_device_state() {
	read_state
	ours=0
	[[ $state != null ]] || return 0
	# Another device, or another namespace with the same number, is not it.
	if ! jq -e --argjson i "$ifindex" --arg a "$address" \
	     '.ifindex == $i and .address == $a' <<<"$state" >/dev/null; then
		state=null
		return
	fi
	[[ $root_is != *" $root_handle:" ]] || ours=1
}

write_state() {	# JSON
	state_file
	if ! printf '%s\n' "$1" >"$REPLY.new" || ! mv -f "$REPLY.new" "$REPLY"; then
		refuse "cannot write $REPLY"
	fi 2>/dev/null
}

drop_state() {
	state_file
	rm -f "$REPLY"
}

# A command has failed: takes back what ran before it, by ROLL-BACK, and ends.
give_up() {	# COMMAND SAID OLD-STATE ROLL-BACK...
	interrupted=0
	trap '' INT TERM HUP
	if "${@:4}"; then
		if [[ $3 == null ]]; then
			drop_state
		else
			write_state "$3"
		fi
		complain "'$1' failed: $2; rolled back to what was there before"
	else
		complain "'$1' failed: $2; rolled back only in part"
	fi
	exit 1
}

# Reads a JSON array of strings, .PATH of the state, into the array `list`.
list=()
state_list() {	# PATH
	local text

	text=$(jq -r "$1 // [] | .[]" <<<"$state")
	list=()
	[[ ! $text ]] || mapfile -t list <<<"$text"
}
