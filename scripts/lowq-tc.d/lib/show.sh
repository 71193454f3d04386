# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# lowq-tc show

# Devices of this namespace that have a state file, into `list`.
our_devices() {
	local f id

	namespace_id
	id=$REPLY
	list=()
	for f in "$statedir/$id"-*.json; do
		[[ -e $f ]] || continue
		f=${f#"$statedir/$id-"}
		list+=("${f%.json}")
	done
}

# One device as JSON: what was set, and what its queues counted.
device_json() {
	local live

	live=$(tc_ -s -d -j qdisc show dev "$dev" 2>/dev/null | mend_json)
	jq -cn --arg dev "$dev" --arg netns "$netns" --argjson s "$state" --argjson ours "$ours" \
		--argjson live "${live:-[]}" '
		($live | map(select(.kind != "ingress" and .kind != "clsact"))
			| sort_by(.parent // "", .handle)) as $q
		| ($q | map({kind, place: (.parent // "root"), handle,
			packets: (.packets // 0), bytes: (.bytes // 0),
			marked: ((.marked // 0) + (.ce_mark // 0) + (.ecn_mark // 0)
				+ ([.options.vqs[]? | .prob_mark + .forced_mark] | add // 0)),
			dropped: (.drops // 0), backlog_bytes: (.backlog // 0),
			backlog_packets: (.qlen // 0)})) as $c
		| (if $netns == "" then {} else {netns: $netns} end)
		+ {device: $dev, set: ($s != null and $ours == 1)}
		+ (if $s == null then {} else
			{profile: $s.profile, params: $s.params, explanation: $s.explanation,
			 could_not_honour: $s.could_not_honour, notes: $s.notes,
			 previous: $s.previous.qdiscs, previous_exact: $s.exact,
			 changed_since: ($ours == 0), cut_short: $s.pending} end)
		+ {queues: $c,
		   marked: ($c | map(.marked) | add // 0),
		   dropped: ($c | map(select(.place == "root")) | .[0].dropped // 0)}'
}

device_text() {
	jq -r '
		(if .cut_short then "\(.device): \(.profile), cut short while it was being set"
		 elif .set then "\(.device): \(.profile)"
		 elif .profile then "\(.device): \(.profile) was set, but someone else changed it since"
		 else "\(.device): not set by lowq-tc" end),
		(if .set then (.explanation[] | "  " + .),
			(.could_not_honour[] | "  could not honour: " + .),
			(.notes[] | "  note: " + .) else empty end),
		(.queues[] | "  \(.kind) at \(.place): \(.packets) packets, \(.marked) marked, \(.dropped) dropped, \(.backlog_packets) packets (\(.backlog_bytes) bytes) waiting")'
}

show() {
	local all=() each=() d

	only_options show ''
	if ((${#words[@]} > 1)); then
		all=("${words[@]:1}")
	else
		our_devices
		all=("${list[@]}")
	fi
	for d in "${all[@]}"; do
		take_device "$d"
		ifindex=0 software=0
		if ((${#words[@]} == 1)); then
			read_link
			((ifindex)) || continue
		fi
		read_device
		read_device_state
		each+=("$(device_json)")
	done
	if has json; then
		printf '%s\n' "${each[@]}" | jq -s .
		return
	fi
	for d in "${each[@]}"; do
		device_text <<<"$d"
	done
	if ((!${#each[@]} && ${#words[@]} == 1)); then
		printf 'nothing set by lowq-tc on the devices of this namespace\n'
	fi
}
