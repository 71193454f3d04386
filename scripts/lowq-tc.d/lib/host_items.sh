# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Items that were changed: whether they stand, how they are taken back, how they are
# recorded.

# Item N of this call is about to be changed: what was it?
learn_old() {	# N
	local old

	(($1 >= 0)) && jq -e '.kind == "parameter" and .old == ""' <<<"${items[$1]}" >/dev/null ||
		return 1
	parameter_file "$(jq -r .key <<<"${items[$1]}")"
	old=$(cat "$REPLY" 2>/dev/null) || return 1
	items[$1]=$(jq -c --arg o "$old" '.old = $o' <<<"${items[$1]}")
}

# Modules, their parameters and the list of allowed controls are one for all namespaces:
# is another one set up with the control NAME, or, without NAME, with one of ours?
lives_elsewhere() {	# [NAME]
	local f own

	state_file
	own=$REPLY
	for f in "$statedir"/[0-9]*.json; do
		[[ -e $f && $f != "$own" && $f != *-*.json ]] || continue
		if jq -e --arg n "${1:-}" --argjson s "$state" '.controls | any(. as $c |
			if $n == "" then $s.controls | index($c) else $c == $n end)' "$f" >/dev/null 2>&1; then
			return 0
		fi
	done
	return 1
}

# Does what an item changed still stand?
item_stands() {	# JSON
	local k key new

	k=$(jq -r .kind <<<"$1")
	case $k in
	sysctl)
		IFS=$'\t' read -r key new <<<"$(jq -r '[.key, .new] | @tsv' <<<"$1")"
		get_sysctl "$key" && [[ $REPLY == "$new" ]]
		;;
	parameter)
		IFS=$'\t' read -r key new <<<"$(jq -r '[.key, .new] | @tsv' <<<"$1")"
		parameter_file "$key"
		[[ $(cat "$REPLY" 2>/dev/null) == "$new" ]]
		;;
	module) [[ -e /sys/module/$(jq -r .name <<<"$1") ]] ;;
	allowed)
		has_word "$(jq -r .name <<<"$1")" \
			"$(sysctl -n net.ipv4.tcp_allowed_congestion_control 2>/dev/null)"
		;;
	route)
		route_now "$(jq -r .family <<<"$1")" "$(jq -r .prefix <<<"$1")"
		[[ $REPLY && $REPLY == "$(jq -r '.after // ""' <<<"$1")" ]]
		;;
	esac
}

# The commands that take an item back, into `list`.
item_undo() {	# JSON
	local name now w keep=()

	list=()
	name=$(jq -r '.name // .key' <<<"$1")
	case $(jq -r .kind <<<"$1") in
	sysctl)
		quote sysctl -q -w "$(jq -r '"\(.key)=\(.old)"' <<<"$1")"
		list=("$REPLY")
		;;
	parameter | module)
		if lives_elsewhere; then
			note "'$name' stays: another namespace was set up with the same control"
			return
		fi
		parameter_file "$name"
		list=("global modprobe -r $name")
		[[ $name != *.* ]] || list=("global echo $(jq -r .old <<<"$1") >$REPLY")
		;;
	allowed)
		if lives_elsewhere "$name"; then
			note "'$name' stays allowed: another namespace was set up with it"
			return
		fi
		now=$(sysctl -n net.ipv4.tcp_allowed_congestion_control)
		for w in $now; do
			[[ $w == "$name" ]] || keep+=("$w")
		done
		quote sysctl -q -w "net.ipv4.tcp_allowed_congestion_control=${keep[*]}"
		list=("global $REPLY")
		;;
	route) list=("$(jq -r .undo <<<"$1")") ;;
	esac
}

# The state with this call in it: of everything that stands the oldest value.
# What an earlier call changed and somebody else since is dropped.
host_record() {	# CONTROL
	local i standing=()

	while IFS= read -r i; do
		{ [[ ! $i ]] || ! item_stands "$i"; } || standing+=("$i")
	done <<<"$(jq -c '.items // [] | .[]' <<<"$state")"
	REPLY=$(jq -cn --arg c "$1" --argjson s "$state" \
		--argjson old "$(printf '%s\n' "${standing[@]}" | jq -cs .)" \
		--argjson new "$(printf '%s\n' "${items[@]}" | jq -cs 'map(del(.back))')" '
		def same($o): .kind == $o.kind and .key == $o.key and .name == $o.name
			and .family == $o.family and .prefix == $o.prefix;
		{controls: ((($s.controls // []) + [$c]) | unique),
		 items: (($old | map(. as $o | $o + ([$new[] | select(same($o))
				| del(.old, .undo, .before)] | .[0] // {})))
			 + ($new | map(select(. as $n | any($old[]; same($n)) | not))))}')
}

# Takes back the first N items of this call, last first.
host_roll_back() {
	local j failed=0

	for ((j = $1 - 1; j >= 0; j--)); do
		item_undo "$(jq -c 'if .back then .undo = .back else . end' <<<"${items[j]}")"
		take_back "${list[@]}" || failed=1
	done
	return $failed
}
