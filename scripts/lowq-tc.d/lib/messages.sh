# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# What the user is told: messages, and how an action reports, as text or as JSON.

lines=()	# how the numbers came about
notes=()	# what the user should know
unmet=()	# what was asked for and cannot be had from stock tc
declare -A param=()	# computed values, for --json
params=()	# their order

complain() {
	printf 'lowq-tc: %s\n' "$*" >&2
}

explain() { lines+=("$*"); }
note() { notes+=("$*"); }
not_honoured() { unmet+=("$*"); }

record() {	# NAME VALUE
	[[ -v param[$1] ]] || params+=("$1")
	param[$1]=$2
}

# JSON is read with jq, but written here: a jq per array would take longer than tc does.
json_string() {
	local t=${1//\\/\\\\}

	t=${t//\"/\\\"}
	t=${t//$'\n'/\\n}
	t=${t//$'\t'/\\t}
	REPLY="\"${t//[[:cntrl:]]/}\""
}

json_array() {	# STRINGS...
	local text=

	while (($#)); do
		json_string "$1"
		text+=${text:+,}$REPLY
		shift
	done
	REPLY="[$text]"
}

json_params() {
	local k text=

	for k in "${params[@]}"; do
		REPLY=${param[$k]}
		[[ $REPLY =~ ^(-?[0-9]+(\.[0-9]+)?|true|false)$ ]] || json_string "$REPLY"
		text+=${text:+,}\"$k\":$REPLY
	done
	REPLY="{$text}"
}

# The members that state, plan and result share.
json_report() {
	local text

	json_params
	text=\"params\":$REPLY
	json_array "${lines[@]}"
	text+=,\"explanation\":$REPLY
	json_array "${unmet[@]}"
	text+=,\"could_not_honour\":$REPLY
	json_array "${notes[@]}"
	REPLY=$text,\"notes\":$REPLY
}

report() {	# HEADLINE
	local l

	printf '%s\n' "$1"
	for l in "${lines[@]}"; do printf '  %s\n' "$l"; done
	for l in "${unmet[@]}"; do printf '  could not honour: %s\n' "$l"; done
	for l in "${notes[@]}"; do printf '  note: %s\n' "$l"; done
}

# The same as JSON. COMMANDS with namespace.
result() {	# ACTION WHAT STATUS COMMANDS...
	local text="{\"action\":\"$1\",\"status\":\"$3\""

	[[ ! $dev ]] || text+=",\"device\":\"$dev\""
	[[ ! $netns ]] || text+=",\"netns\":\"$netns\""
	if [[ $1 == host ]]; then
		text+=",\"control\":\"$2\""
	elif [[ $2 ]]; then
		text+=",\"profile\":\"$2\""
	fi
	json_report
	text+=,$REPLY
	json_array "${@:4}"
	jq . <<<"$text,\"commands\":$REPLY}"
}

# What every action ends with: the dry run prints, the real one reports.
present() {	# ACTION WHAT HEADLINE STATUS COMMANDS...
	local c all=()

	for c in "${@:5}"; do
		located "$c"
		all+=("$REPLY")
	done
	if has json; then
		result "$1" "$2" "$4" "${all[@]}"
	elif has dry-run; then
		has quiet || report "$3" >&2
		((!${#all[@]})) || printf '%s\n' "${all[@]}"
	elif ! has quiet; then
		report "$3"
	fi
}
