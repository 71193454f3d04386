# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Routes that choose a control: as they are shown, as they become, and back.

# Splits a route as `ip route show` prints it into `route_head` and, from its
# first nexthop on, `route_tail`, without the words that tell state. With REPLACE
# also without the metrics that ours replace; REPLY is then what `features` had.
route_head=()
route_tail=()
split_route() {	# LINE [REPLACE]
	local w i features=''
	local -a t

	read -ra t <<<"$1"
	route_head=()
	route_tail=()
	for ((i = 0; i < ${#t[@]}; i++)); do
		w=${t[i]}
		case $w in
		linkdown | offload | rt_offload | trap | rt_trap | offload_failed) continue ;;
		dead) return 1 ;;
		expires) t[i + 1]=${t[i + 1]%sec} ;;
		nexthop)
			route_tail+=(nexthop)
			continue
			;;
		congctl | initcwnd | initrwnd | quickack)
			if [[ ${2:-} ]] && has_word "$w" "${route_words[*]}"; then
				[[ ${t[i + 1]} != lock ]] || ((++i))
				((++i))
				continue
			fi
			;;
		features)
			if [[ ${2:-} ]]; then
				while [[ ${t[i + 1]:-} == @(ecn|tcp_usec_ts) ]]; do
					features+=" ${t[++i]}"
				done
				continue
			fi
			;;
		esac
		if ((${#route_tail[@]})); then
			route_tail+=("$w")
		else
			route_head+=("$w")
		fi
	done
	REPLY=$features
}

plan_route() {	# PREFIX
	local p=$1 fam=-4 ip=(ip) verb=add shown n w features=()
	local gateway via source earlier was='' back undo_it

	[[ $p != *:* ]] || fam=-6 ip=(ip -6)
	if [[ $p != default && ! $p =~ ^[0-9A-Fa-f.:]+(/[0-9]+)?$ ]] ||
	   ! shown=$(ip_ $fam route show exact "$p" 2>/dev/null); then
		refuse "--route $p: not a prefix"
	fi
	n=$(ip_ $fam -j route show exact "$p" 2>/dev/null | jq length)
	((${n:-0} < 2)) || refuse "--route $p: there are $n routes to it; take a narrower prefix"
	shown=${shown//[$'\n\t']/ }
	quote "${ip[@]}" route del "$p"
	back=$REPLY
	if [[ $shown ]]; then
		verb=replace
		[[ ! $shown =~ ^(local|broadcast|multicast|unreachable|blackhole|prohibit|throw)\  ]] ||
			refuse "--route $p: is no route to another host (${shown%% *})"
		# A route without metrics that names a nexthop object finds the one
		# with metrics again in the kernel's tables: they would stay.
		! has_word nhid "$shown" || refuse "--route $p: uses a nexthop object; the kernel does not take metrics off such a route again"
		split_route "$shown" || refuse "--route $p: the route is dead"
		quote "${ip[@]}" route replace "${route_head[@]}" "${route_tail[@]}"
		back=$REPLY
		was=$shown
	fi
	undo_it=$back

	# Where an earlier call of ours stands, start from what was there before it.
	earlier=$(jq -c --arg f "$fam" --arg p "$p" '.items // [] | .[] | select(.kind == "route"
		and .family == $f and .prefix == $p)' <<<"$state")
	if [[ $earlier ]] && item_stands "$earlier"; then
		was=$(jq -r .before <<<"$earlier")
		undo_it=$(jq -r .undo <<<"$earlier")
	fi

	if [[ $was ]]; then
		split_route "$was" replace
	else
		# None of its own: one beside the route that is taken today.
		shown=$(ip_ $fam -j route get "${p%/*}" 2>/dev/null | jq -r '.[0]
			| select((.type // "unicast") == "unicast" and .dev != "lo" and (.via | not))
			| [.gateway // "-", .dev, .prefsrc // "-"] | @tsv')
		[[ $shown ]] || refuse "--route $p: there is no way to it"
		IFS=$'\t' read -r gateway via source <<<"$shown"
		route_head=("$p")
		[[ $gateway == - ]] || route_head+=(via "$gateway")
		route_head+=(dev "$via")
		# IPv6 addresses come and go; the kernel chooses well by itself.
		[[ $source == - || $fam == -6 ]] || route_head+=(src "$source")
		route_tail=()
		REPLY=
	fi
	for w in $REPLY "${route_features[@]}"; do
		has_word "$w" "${features[*]}" || features+=("$w")
	done
	((!${#features[@]})) || features=(features "${features[@]}")
	plan "${ip[@]}" route $verb "${route_head[@]}" "${route_words[@]}" "${features[@]}" \
		"${route_tail[@]}"
	items+=("$(jq -cn --arg f "$fam" --arg p "$p" --arg u "$undo_it" --arg b "$was" \
		--arg k "$back" '{kind: "route", family: $f, prefix: $p, before: $b, undo: $u,
		back: $k}')")
}

# A route as the kernel shows it, for "is it still ours?".
route_now() {	# FAMILY PREFIX
	REPLY=$(ip_ "$1" route show exact "$2" 2>/dev/null | sed 's/ expires [0-9]*sec//')
	REPLY=${REPLY//$'\n'/ }
}
