# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# The command line: which options there are, and what was given.

# What each option takes. Profiles add their own with `option`.
declare -A option_type=(
	[rate]=rate [shape]=flag [no-shape]=flag [shape-burst]=size
	[rtt]=time [k]=size [limit]=size
	[gso-segs]=count [netns]=word
	[dry-run]=flag [json]=flag [force]=flag [quiet]=flag [help]=flag
	[no-rehearsal]=flag [all]=flag
	[route]=words [default]=flag [allow]=flag
	[initcwnd]=count [initrwnd]=count [quickack]=flag
)
readonly general='dry-run json force quiet no-rehearsal netns help'
readonly frame_options='rate shape no-shape shape-burst gso-segs'
readonly host_options='route default allow initcwnd initrwnd quickack'

declare -A opt=()	# option -> its value, checked: bit/s, ns, "65p", ...
declare -A given=()	# option -> as the user wrote it
routes=()
words=()		# what is not an option

option() {	# NAME TYPE
	option_type[$1]=$2
}

parse_arguments() {
	local name value type

	while (($#)); do
		case $1 in
		-n) name=netns ;;
		-q) name=quiet ;;
		-h) name=help ;;
		--) shift; words+=("$@"); break ;;
		--?*) name=${1#--} ;;
		-?*) refuse "unknown option '$1'" ;;
		*) words+=("$1"); shift; continue ;;
		esac
		value=
		if [[ $1 == --*=* ]]; then
			value=${name#*=}
			name=${name%%=*}
		fi
		type=${option_type[$name]:-}
		[[ $type ]] || refuse "unknown option '--$name'"
		if [[ $type == flag ]]; then
			[[ $1 != --*=* ]] || refuse "--$name takes no value"
			opt[$name]=1
			given[$name]=
			shift
			continue
		fi
		if [[ $1 != --*=* ]]; then
			(($# > 1)) || refuse "--$name needs a value"
			value=$2
			shift
		fi
		shift
		[[ $value ]] || refuse "--$name needs a value"
		given[$name]=$value
		if [[ $type == words ]]; then
			routes+=("$value")
			opt[$name]=1
		else
			"parse_$type" "--$name" "$value"
			opt[$name]=$REPLY
		fi
	done
}

has() { [[ -v opt[$1] ]]; }

# Every option that was given must mean something to what was asked.
only_options() {	# WHAT ALLOWED...
	local what=$1 name

	shift
	for name in "${!opt[@]}"; do
		[[ " $general $* " == *" $name "* ]] ||
			refuse "--$name does not go with '$what'"
	done
}

expect_words() {	# MOST WHAT
	((${#words[@]} <= $1)) || refuse "$2: what is '${words[$1]}'?"
}
