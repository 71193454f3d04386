# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Commands, from plan to run.
#
# A command is kept as one line of shell, as it will be printed and run, still
# without namespace; `located` adds that.

build=()	# make the new tree from a clean device
undo=()		# take back what is not below the root qdisc

quote() {
	local w out=

	for w in "$@"; do
		if [[ $w =~ ^[A-Za-z0-9_./:=@%+,-]+$ ]]; then
			out+=" $w"
		else
			out+=" '${w//\'/\'\\\'\'}'"
		fi
	done
	REPLY=${out# }
}

plan() {
	quote "$@"
	build+=("$REPLY")
}

# For commands beside the queue: how to do it, how to take it back.
extra() {	# UNDO-AS-ONE-LINE COMMAND...
	undo=("$1" "${undo[@]}")
	plan "${@:2}"
}

add_qdisc() {	# PLACE HANDLE KIND ARGUMENTS...
	local place handle=()

	read -ra place <<<"$1"
	[[ ! $2 ]] || handle=(handle "$2:")
	plan tc qdisc add dev "$dev" "${place[@]}" "${handle[@]}" "${@:3}"
}

located() {
	local ns

	REPLY=$1
	if [[ $1 == "global "* ]]; then
		REPLY=${1#global }
		return
	fi
	[[ $netns ]] || return
	quote "$netns"
	ns=$REPLY
	case $1 in
	"tc "*) REPLY="tc -n $ns ${1#tc }" ;;
	"ip "*) REPLY="ip -n $ns ${1#ip }" ;;
	*) REPLY="ip netns exec $ns $1" ;;
	esac
}

interrupted=0

# Runs one command; on failure REPLY holds what it said, on one line.
run() {
	local out

	((!interrupted)) || { REPLY=interrupted; return 1; }
	located "$1"
	if out=$(eval "$REPLY" 2>&1 </dev/null); then
		return 0
	fi
	out=${out//$'\n'We have an error talking to the kernel/}
	REPLY=${out//$'\n'/; }
	REPLY=${REPLY:-no reason given}
	return 1
}

# Runs all, whatever becomes of each.
run_all() {	# COMMANDS...
	local c failed=0

	for c; do
		run "$c" || { complain "'$c' failed: $REPLY"; failed=1; }
	done
	return $failed
}

# The same on the way back from what has failed.
take_back() {	# COMMANDS...
	local c failed=0

	for c; do
		run "$c" || { complain "rolling back failed at '$c': $REPLY"; failed=1; }
	done
	return $failed
}

# Runs the commands on a device of the same name, MTU and number of queues in a
# network namespace that nobody else sees and that goes with the process.
# 0: they work, REPLY is the JSON of the outcome; 1: REPLY says what did not;
# 2: could not try (no veth, no right to make a namespace, the device "lo").
rehearse() {
	local out status

	# shellcheck disable=SC2016
	out=$(unshare -n bash -c '
		dev=$1 mtu=$2 queues=$3
		shift 3
		ip link add name "$dev" mtu "$mtu" numtxqueues "$queues" type veth \
			peer name lowq-peer || exit 99
		ip link set dev "$dev" up
		ip link set dev lowq-peer up
		for c; do
			out=$(eval "$c" 2>&1) || { printf "%s\n%s" "$c" "$out"; exit 97; }
		done
		tc -d -j qdisc show dev "$dev"' \
		bash "$dev" "$mtu" "$queues" "$@" 2>/dev/null </dev/null)
	status=$?
	case $status in
	0)
		REPLY=$(mend_json <<<"$out")
		return 0
		;;
	97)
		rehearsal_error "$out"
		return 1
		;;
	esac
	return 2
}

# What tc said, as one clear line.
rehearsal_error() {
	local command=${1%%$'\n'*} said=${1#*$'\n'} w

	if [[ $said == *"kind is unknown"* ]]; then
		read -ra w <<<"$command"
		while [[ ${w[0]:-} && ${w[0]} != handle && ${w[0]} != parent && ${w[0]} != root ]]; do
			w=("${w[@]:1}")
		done
		while [[ ${w[0]:-} == @(root|parent|handle|pref|protocol|ip|ipv6|[0-9a-f]*:*|[0-9]*) ]]; do
			w=("${w[@]:1}")
		done
		if [[ $command == *" filter "* ]]; then
			REPLY="this kernel has no '${w[0]:-?}' classifier (cls_${w[0]:-?})"
		else
			REPLY="this kernel has no '${w[0]:-?}' queue (sch_${w[0]:-?})"
		fi
		return
	fi
	said=${said//$'\n'We have an error talking to the kernel/}
	REPLY="'$command' would fail: ${said//$'\n'/; }"
}
