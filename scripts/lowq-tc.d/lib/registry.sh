# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Which profiles and controls there are. Their files register them.

profiles=()
declare -A profile_about=() profile_options=()
controls=()
declare -A control_about=() control_function=() control_options=()

# profile NAME ABOUT OPTION...
#   NAME_compute       checks the options, computes, explains; may call
#                      `extra` for commands beside the queue
#   NAME_tree PLACE H  adds the queue at PLACE ("root" or "parent X:Y"); H is
#                      the handle to use for its top, with `add_qdisc`
profile() {
	profiles+=("$1")
	profile_about[$1]=$2
	profile_options[$1]="${*:3}"
}

# control NAME ABOUT FUNCTION OPTION...: the function says what the host needs, with
#   needs_module MODULE
#   needs_service MODULE           beside the control's own; reset unloads it
#   wants_parameter MODULE NAME VALUE
#   wants_ecn VALUE ALSO-FINE...   for net.ipv4.tcp_ecn
#   wants_sysctl KEY VALUE
#   route_option WORD...           for ip route, beside congctl
#   route_feature WORD             likewise, for its `features`
#   no_tcp_control                 it is none that sockets can choose
control() {
	controls+=("$1")
	control_about[$1]=$2
	control_function[$1]=$3
	control_options[$1]="${*:4}"
}

list_text() {
	local p

	for p in "${profiles[@]}"; do
		printf '  %-12s %s\n' "$p" "${profile_about[$p]}"
		printf '  %-12s   --%s\n' '' "${profile_options[$p]// / --}"
	done
}

list_controls() {
	local p

	for p in "${controls[@]}"; do
		printf '  %-12s %s\n' "$p" "${control_about[$p]}"
		[[ ! ${control_options[$p]} ]] ||
			printf '  %-12s   --%s\n' '' "${control_options[$p]// / --}"
	done
}

list_all() {
	local p

	only_options list ''
	if has json; then
		{
			for p in "${profiles[@]}"; do
				jq -cn --arg n "$p" --arg a "${profile_about[$p]}" \
					--arg o "$frame_options ${profile_options[$p]}" \
					'{profile: $n, about: $a, options: ($o | split(" "))}'
			done
			for p in "${controls[@]}"; do
				jq -cn --arg n "$p" --arg a "${control_about[$p]}" \
					--arg o "$host_options ${control_options[$p]}" \
					'{control: $n, about: $a, options: ($o | split(" ") - [""])}'
			done
		} | jq -s '{profiles: map(select(.profile)), controls: map(select(.control))}'
		return
	fi
	printf 'profiles\n'
	list_text
	printf 'controls, for "lowq-tc host"\n'
	list_controls
}
