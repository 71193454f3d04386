# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# lowq-tc host

host_apply() {
	local c=$1 available i record old_state loads

	only_options "host $c" "$host_options ${control_options[$c]:-}"
	[[ $c =~ ^[A-Za-z0-9_]+$ ]] || refuse "'$c' is not the name of a congestion control"
	begin_change
	"${control_function[$c]:-host_plain}"
	((${#modules[@]})) || [[ ! $tcp_control ]] || needs_module "tcp_$c"

	get_sysctl net.ipv4.tcp_available_congestion_control ||
		refuse "this kernel shows no net.ipv4.tcp_available_congestion_control"
	available=$REPLY
	read_state
	build=()
	if ! has_word "$c" "$available"; then
		for i in "${modules[@]}"; do
			modprobe -n -q "$i" 2>/dev/null ||
				refuse "no congestion control '$c': neither loaded nor found as module '$i'"
			build+=("global modprobe $i")
		done
	fi

	for i in "${services[@]}"; do
		plan_service "$i"
	done
	for i in "${parameters[@]}"; do
		# shellcheck disable=SC2086	# three words
		plan_parameter $i
	done
	if has initcwnd || has initrwnd || has quickack; then
		has route || refuse "--initcwnd, --initrwnd and --quickack need --route"
	fi
	if has default; then
		plan_default "$c" "$available"
	fi
	if has allow || { [[ $tcp_control ]] && ! has route && ! has default; }; then
		plan_allow "$c" "${opt[allow]:-}"
	fi
	# A route asks for ECN by itself; what is not on it stays as it is.
	if [[ $ecn_value ]] && { ! has route || has default; }; then
		get_sysctl net.ipv4.tcp_ecn || refuse "this kernel has no sysctl 'net.ipv4.tcp_ecn'"
		has_word "$REPLY" "$ecn_fine" || plan_sysctl net.ipv4.tcp_ecn "$ecn_value"
	fi
	for i in "${sysctls[@]}"; do
		plan_sysctl "${i%%=*}" "${i#*=}"
	done
	if has route; then
		route_words=(congctl "$c" "${route_words[@]}")
		! has initcwnd || route_words+=(initcwnd "${opt[initcwnd]}")
		! has initrwnd || route_words+=(initrwnd "${opt[initrwnd]}")
		! has quickack || route_words+=(quickack 1)
		for i in "${routes[@]}"; do
			plan_route "$i"
		done
	fi
	has default || has route || [[ ! $tcp_control ]] ||
		explain "chosen per socket (TCP_CONGESTION); --default and --route choose it for all, or for a prefix"
	((${#build[@]})) || explain "nothing to change"

	if has dry-run; then
		present host "$c" "host for $c: would run" planned "${build[@]}"
		return
	fi
	old_state=$state
	loads=$((${#build[@]} - ${#items[@]}))	# commands before those of items
	host_record "$c"
	record=$REPLY
	# What is one for all namespaces and was there already is ours to live off, too.
	((${#items[@]} + ${#services[@]} + ${#parameters[@]} == 0)) || write_state "$record"
	trap 'interrupted=1' INT TERM HUP
	for ((i = 0; i < ${#build[@]}; i++)); do
		if learn_old $((i - loads)); then
			host_record "$c"
			record=$REPLY
			write_state "$record"
		fi
		run "${build[i]}" || give_up "${build[i]}" "$REPLY" "$old_state" host_roll_back $((i - loads))
	done
	trap - INT TERM HUP
	# How the kernel shows the routes now, to know them again.
	for i in "${items[@]}"; do
		[[ $(jq -r .kind <<<"$i") == route ]] || continue
		route_now "$(jq -r .family <<<"$i")" "$(jq -r .prefix <<<"$i")"
		record=$(jq -c --argjson i "$i" --arg a "$REPLY" '.items |= map(
			if .kind == "route" and .family == $i.family and .prefix == $i.prefix
			then .after = $a else . end)' <<<"$record")
	done
	((!${#items[@]})) || write_state "$record"
	present host "$c" "host for $c: set" applied "${build[@]}"
}

host_reset() {
	local all=() i

	only_options 'host reset' ''
	begin_change
	read_state
	if [[ $state == null ]]; then
		present host reset "host: nothing to undo" unchanged
		return
	fi
	build=()
	while IFS= read -r i; do
		if ! item_stands "$i" && ! has force; then
			note "$(jq -r '.key // .prefix // .name' <<<"$i") was changed by someone else since: left alone (--force puts it back)"
			continue
		fi
		item_undo "$i"
		((!${#list[@]})) || all+=("${list[@]}")
	done <<<"$(jq -c '.items | reverse | .[]' <<<"$state")"
	if has dry-run; then
		present host reset "host: would run" planned "${all[@]}"
		return
	fi
	if ! run_all "${all[@]}"; then
		complain "the host is put back only in part; what was recorded is kept"
		exit 1
	fi
	drop_state
	present host reset "host: put back" applied "${all[@]}"
}

host_show() {
	local i key now out

	only_options 'host show' ''
	read_state
	out=$(for key in tcp_ecn tcp_congestion_control tcp_available_congestion_control \
		tcp_allowed_congestion_control; do
		get_sysctl "net.ipv4.$key" || continue
		jq -cn --arg k "$key" --arg v "$REPLY" '{($k): $v}'
	done | jq -cs add)
	now=$(while IFS= read -r i; do
		[[ $i ]] || continue
		item_stands "$i" && key=true || key=false
		jq -c --argjson s "$key" '. + {stands: $s}' <<<"$i"
	done <<<"$(jq -c '.items // [] | .[]' <<<"$state")" | jq -cs .)
	out=$(jq -n --argjson o "${out:-{\}}" --argjson i "$now" --argjson s "$state" \
		'{sysctl: $o, controls: ($s.controls // []), changes: $i}')
	if has json; then
		printf '%s\n' "$out"
		return
	fi
	jq -r '(.sysctl | to_entries[] | "net.ipv4.\(.key) = \(.value)"),
		(if .changes == [] then "nothing changed by lowq-tc" else empty end),
		(.changes[] | "changed by lowq-tc: "
		 + (if .old then "\(.key) from \(.old) to \(.new)"
		    elif .kind == "allowed" then "\(.name) allowed"
		    elif .kind == "module" then "\(.name) loaded"
		    else "route \(.after // .prefix)" end)
		 + (if .stands then "" else " (changed by someone else since)" end))' <<<"$out"
}
