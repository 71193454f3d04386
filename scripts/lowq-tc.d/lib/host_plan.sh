# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# What a host needs for a control, and the commands and items that follow from it. An
# item is a change: what it was, what it becomes, as JSON.

modules=()
services=()
parameters=()	# MODULE NAME VALUE
ecn_value='' ecn_fine=''
sysctls=()	# KEY=VALUE
route_words=() route_features=()

needs_module() { modules+=("$@"); }
needs_service() { services+=("$@"); }
wants_parameter() { parameters+=("$*"); }
no_tcp_control() { tcp_control=; }
wants_ecn() { ecn_value=$1 ecn_fine=" $* "; }
wants_sysctl() { sysctls+=("$1=$2"); }
route_option() { route_words+=("$@"); }
route_feature() { route_features+=("$@"); }

host_plain() { :; }	# a control of which nothing special is known

tcp_control=1
items=()	# one JSON object per change: what it was, what it becomes

get_sysctl() {	# KEY -> value, blanks made single
	REPLY=$(within sysctl -n "$1" 2>/dev/null) || return 1
	REPLY=${REPLY//$'\t'/ }
}

has_word() { [[ " $2 " == *" $1 "* ]]; }

plan_sysctl() {	# KEY VALUE
	get_sysctl "$1" || refuse "this kernel has no sysctl '$1'"
	[[ $REPLY != "$2" ]] || return 0
	items+=("$(jq -cn --arg k "$1" --arg o "$REPLY" --arg n "$2" \
		'{kind: "sysctl", key: $k, old: $o, new: $n}')")
	plan sysctl -q -w "$1=$2"
}

# Reset unloads it.
plan_service() {	# MODULE
	[[ ! -e /sys/module/$1 ]] || return 0
	modprobe -n -q "$1" 2>/dev/null || refuse "no module '$1'"
	items+=("$(jq -cn --arg n "$1" '{kind: "module", name: $n}')")
	build+=("global modprobe $1")
}

parameter_file() { REPLY=/sys/module/${1%%.*}/parameters/${1#*.}; }	# MODULE.NAME

# What it was is known now, or once the module is loaded.
plan_parameter() {	# MODULE NAME VALUE
	local old=

	parameter_file "$1.$2"
	if [[ -e /sys/module/$1 ]]; then
		old=$(cat "$REPLY" 2>/dev/null) || refuse "this '$1' has no parameter '$2'"
		[[ $old != "$3" ]] || return 0
	fi
	items+=("$(jq -cn --arg k "$1.$2" --arg o "$old" --arg n "$3" \
		'{kind: "parameter", key: $k, old: $o, new: $n}')")
	build+=("global echo $3 >$REPLY")
}

# Unprivileged use is a property of the first namespace: one list for all.
plan_allow() {	# CONTROL MUST
	local key=net.ipv4.tcp_allowed_congestion_control now

	now=$(sysctl -n $key 2>/dev/null)
	! has_word "$1" "$now" || return 0
	if [[ $(stat -c %a /proc/sys/net/ipv4/tcp_allowed_congestion_control 2>/dev/null) != 644 ]]; then
		[[ ! $2 ]] || refuse "'$1' is restricted and only the first namespace can allow it: run there 'sysctl -w $key=\"$now $1\"'"
		note "'$1' is restricted: here only root can choose it per socket, until the first namespace allows it ($key)"
		return
	fi
	items+=("$(jq -cn --arg n "$1" '{kind: "allowed", name: $n}')")
	quote sysctl -q -w "$key=$now $1"
	build+=("global $REPLY")
}

plan_default() {	# CONTROL AVAILABLE
	local first=1

	[[ $(stat -c %a /proc/sys/net/ipv4/tcp_allowed_congestion_control 2>/dev/null) == 644 ]] || first=0
	# Elsewhere than in the first namespace the default must be an allowed one.
	if [[ $netns ]] || ((!first)); then
		plan_allow "$1" 1
	fi
	plan_sysctl net.ipv4.tcp_congestion_control "$1"
}
