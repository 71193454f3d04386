#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-tc: what it computes and prints, what it sets and puts back, what it
# refuses, and that a failure half-way leaves nothing behind.
#
# Covers D1, D11, D17. Everything happens in network namespaces of its own; the
# one thing outside, the list of allowed congestion controls, is put back.
# Parts whose queue the kernel lacks are skipped.
#
# LOWQ_TC names the script to test (default: ../scripts/lowq-tc, or the installed one). Arguments name
# the tests to run, such as t_dctcp.
#
# shellcheck disable=SC2317	# the tests are called by name

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lowq_tc=${LOWQ_TC:-$here/../scripts/lowq-tc}
[ -x "$lowq_tc" ] || lowq_tc=$(command -v lowq-tc) ||
	{ echo "1..0 # SKIP lowq-tc is neither in ../scripts nor installed"; exit 4; }
lowq_tc=$(readlink -f "$lowq_tc")
ns=lowqtc-$$
ns2=lowqtc-$$-b
tmp=$(mktemp -d)
export LOWQ_STATE_DIR=$tmp/state LC_ALL=C

readonly allowed_key=net.ipv4.tcp_allowed_congestion_control
allowed=$(sysctl -n "$allowed_key" 2>/dev/null)

cleanup() {
	jobs -p | xargs -r kill 2>/dev/null
	ip netns del "$ns" 2>/dev/null
	ip netns del "$ns2" 2>/dev/null
	[[ $(sysctl -n "$allowed_key" 2>/dev/null) == "$allowed" ]] ||
		sysctl -q -w "$allowed_key=$allowed" 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT

# --- TAP --------------------------------------------------------------------

tests=()
declare -A about=()
why=		# why the present test fails or is skipped

a_test() {	# FUNCTION DESCRIPTION
	tests+=("$1")
	about[$1]=$2
}

fail() { why=$*; return 1; }
skip() { why=$*; return 4; }

same() {	# EXPECTED GOT WHAT
	[[ $1 == "$2" ]] && return
	why="$3 differs"
	diff <(printf '%s\n' "$1") <(printf '%s\n' "$2") | sed 's/^/# /'
	return 1
}

# Runs lowq-tc on $ns; puts its output into $out, $err, its status into $rc.
lt() {
	"$lowq_tc" -n "$ns" "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	out=$(<"$tmp/out")
	err=$(<"$tmp/err")
	return "$rc"
}

must() {	# ARGUMENTS...: lowq-tc has to succeed and say nothing bad
	lt "$@" || fail "lowq-tc $* gave $rc: $err"
}

tcn() { tc -n "$ns" "$@"; }
ipn() { ip -n "$ns" "$@"; }
in_ns() { ip netns exec "$ns" "$@"; }

# What a change could show in.
picture() {
	tcn -d qdisc show | sed 's/ refcnt [0-9]*//'
	tcn class show dev lq0
	tcn filter show dev lq0
	ipn -d -j link show | jq -c '.[] | [.ifname, .txqlen, .gso_max_segs]'
	ipn route show | sed 's/ linkdown//'	# the carrier comes when it comes
	ipn -6 route show | sed 's/ expires [0-9]*sec//; s/ linkdown//'
	in_ns sysctl net.ipv4.tcp_ecn net.ipv4.tcp_congestion_control
	sysctl "$allowed_key"
	find "$LOWQ_STATE_DIR" -name '*.json' -exec cat {} + 2>/dev/null
}

# Two devices of the namespace: lq0 with one queue, lqm with four.
fresh() {
	ip netns del "$ns" 2>/dev/null
	ip netns del "$ns2" 2>/dev/null
	rm -rf "$LOWQ_STATE_DIR"
	ip netns add "$ns" && ip netns add "$ns2" &&
	ipn link add name lq0 type veth peer name lq1 netns "$ns2" &&
	ipn link add name lqm numtxqueues 4 numrxqueues 4 type veth peer name lqp \
		numtxqueues 4 numrxqueues 4 &&
	ipn addr add 10.71.0.1/24 dev lq0 &&
	ipn addr add fd71::1/64 dev lq0 nodad &&
	ip -n "$ns2" addr add 10.71.0.2/24 dev lq1 &&
	ip -n "$ns2" addr add fd71::2/64 dev lq1 nodad &&
	ipn link set dev lq0 up && ipn link set dev lqm up && ipn link set dev lqp up &&
	ip -n "$ns2" link set dev lq1 up
}

have_qdisc() {	# KIND ARGUMENTS...
	unshare -n tc qdisc add dev lo root "$@" 2>/dev/null
}
have_red() {
	have_qdisc red limit 100000 min 3000 max 3000 avpkt 1500 burst 2 bandwidth 1gbit ecn
}
have_cls() {
	unshare -n sh -c 'tc qdisc add dev lo root handle 1: htb &&
		tc filter add dev lo parent 1: protocol ip u32 match ip dsfield 0x28 0xfc classid 1:1' 2>/dev/null
}

# --- numbers ----------------------------------------------------------------

a_test t_threshold 'D1: K is the first whole packet above RTT*C/7, at least 4, from rate, RTT and MTU'
t_threshold() {
	local rate rtt mtu want k bytes

	# rate rtt mtu -> K in packets, bytes
	while read -r rate rtt mtu k bytes; do
		[[ $rate ]] || continue
		ipn link set dev lq0 mtu "$mtu"
		must dctcp lq0 --rate "$rate" --rtt "$rtt" --dry-run --json || return
		want=$(jq -c '[.params.k_packets, .params.k_bytes]' <<<"$out")
		same "[$k,$bytes]" "$want" "K for $rate, $rtt, mtu $mtu" || return
	done <<-END
		10gbit   100us   1500  12    18168
		10gbit   100us   9000  4     36056
		1gbit    100us   1500  4     6056
		1gbit    10ms    1500  118   178652
		40gbit   50us    1500  24    36336
		100gbit  100us   1500  118   178652
		100gbit  20us    1500  24    36336
		400gbit  12.5us  1500  59    89326
		2.5gbit  300us   1500  9     13626
		1000mbit 0.01s   1500  118   178652
	END
	# exactly on a packet: above means one more
	ipn link set dev lq0 mtu 1486
	must dctcp lq0 --rate 8gbit --rtt 105us --dry-run --json || return
	same 11 "$(jq .params.k_packets <<<"$out")" 'K where RTT*C/7 is 10 packets'
}

a_test t_formula 'D1: the report shows the formula with its numbers'
t_formula() {
	must dctcp lq0 --rate 10gbit --rtt 100us --dry-run || return
	[[ $err == *"K > RTT*C/7 = 100us * 10gbit / 7 = 17857 bytes = 11.79 packets of 1514 bytes"* ]] ||
		fail "no formula in: $err" || return
	[[ $err == *"K = 12 packets = 18168 bytes = 14.535us"* ]] || fail "no K in: $err"
}

# --- dry run ----------------------------------------------------------------

dry() {	# WHAT EXPECTED ARGUMENTS...
	must "${@:3}" --dry-run -q || return
	same "$2" "$out" "$1"
}

a_test t_dry_dctcp 'dry run: dctcp, shaped, exact text'
t_dry_dctcp() {
	dry dctcp "tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 10gbit ceil 10gbit burst 1514 cburst 1514 quantum 1514
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1: red limit 1514000 min 98410 max 98410 avpkt 1514 burst 65 bandwidth 10gbit probability 1 ecn" \
		dctcp lq0 --rate 10gbit --k 65 || return
	dry 'dctcp at 100 Gb/s, nodrop' "tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 100gbit ceil 100gbit burst 2500 cburst 2500 quantum 1514
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1: red limit 500000 min 100000 max 100000 avpkt 1516 burst 66 bandwidth 34gbit probability 1 ecn nodrop" \
		dctcp lq0 --rate 100gbit --k 100000b --limit 500000b --nodrop --shape-burst 2500b
}

a_test t_dry_engines 'dry run: dctcp on codel, fq_codel and fq, exact text'
t_dry_engines() {
	local frame="tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1:"

	dry codel "$frame codel limit 1000 target 5000us interval 100000us ecn ce_threshold 243us" \
		dctcp lq0 --rate 1gbit --k 20 --aqm codel || return
	dry fq_codel "$frame fq_codel limit 1000 target 5000us interval 100000us ecn ce_threshold 243us" \
		dctcp lq0 --rate 1gbit --k 20 --aqm fq_codel || return
	dry fq "$frame fq limit 1000 flow_limit 1000 ce_threshold 50us" \
		dctcp lq0 --rate 1gbit --k 50us --aqm fq
}

a_test t_dry_red 'dry run: red and fifo, exact text'
t_dry_red() {
	local frame="tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1:"

	dry red "$frame red limit 1514000 min 15140 max 45420 avpkt 1514 burst 17 bandwidth 1gbit probability 0.1 ecn" \
		red lq0 --rate 1gbit --min 10 --max 30 || return
	dry 'red, probability 1' "$frame red limit 2097152 min 15140 max 45420 avpkt 1514 burst 40 bandwidth 1gbit probability 0.99999999 harddrop" \
		red lq0 --rate 1gbit --min 10 --max 30 --probability 1 --limit 2mb --burst 40 --harddrop --no-ecn && {
		fail 'red --harddrop --no-ecn was accepted'
		return
	}
	dry 'red, probability 1' "$frame red limit 2097152 min 15140 max 45420 avpkt 1514 burst 40 bandwidth 1gbit probability 0.99999999 ecn harddrop" \
		red lq0 --rate 1gbit --min 10 --max 30 --probability 1 --limit 2mb --burst 40 --harddrop || return
	dry pfifo "$frame pfifo limit 100" fifo lq0 --rate 1gbit --limit 100 || return
	dry bfifo "$frame bfifo limit 1048576" fifo lq0 --rate 1gbit --limit 1mb
}

a_test t_dry_mq 'dry run: every queue of a multi-queue device, exact text'
t_dry_mq() {
	dry mq "tc -n $ns qdisc add dev lqm root handle 10f0: mq
tc -n $ns qdisc add dev lqm parent 10f0:1 handle 10f1: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
tc -n $ns qdisc add dev lqm parent 10f0:2 handle 10f2: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
tc -n $ns qdisc add dev lqm parent 10f0:3 handle 10f3: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
tc -n $ns qdisc add dev lqm parent 10f0:4 handle 10f4: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn" \
		dctcp lqm --k 20 --no-shape || return
	dry 'mq, shaped' "tc -n $ns qdisc add dev lqm root handle 10f0: htb default 1
tc -n $ns class add dev lqm parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514
tc -n $ns qdisc add dev lqm parent 10f0:1 handle 10f1: pfifo limit 1000" \
		fifo lqm --rate 1gbit --shape
}

a_test t_dry_segregate 'D17: dry run: a queue for one DSCP, IPv4 and IPv6, exact text'
t_dry_segregate() {
	local frame="tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514"

	dry segregate "$frame
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1: ets bands 2 quanta 4542 1514 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
tc -n $ns qdisc add dev lq0 parent 10f1:1 red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
tc -n $ns qdisc add dev lq0 parent 10f1:2 bfifo limit 757000
tc -n $ns filter add dev lq0 parent 10f1: protocol ip pref 1 u32 match ip dsfield 0x28 0xfc classid 10f1:1
tc -n $ns filter add dev lq0 parent 10f1: protocol ipv6 pref 2 u32 match ip6 priority 0x28 0xfc classid 10f1:1" \
		segregate lq0 --rate 1gbit --k 20 --share 75% --rest-limit 500 || return
	dry 'segregate, prio, ef' "$frame
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
tc -n $ns qdisc add dev lq0 parent 10f1:1 red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
tc -n $ns qdisc add dev lq0 parent 10f1:2 bfifo limit 1514000
tc -n $ns filter add dev lq0 parent 10f1: protocol ip pref 1 u32 match ip dsfield 0xb8 0xfc classid 10f1:1
tc -n $ns filter add dev lq0 parent 10f1: protocol ipv6 pref 2 u32 match ip6 priority 0xb8 0xfc classid 10f1:1" \
		segregate lq0 --rate 1gbit --k 20 --sched prio --dscp ef
}

a_test t_dry_changes_nothing 'dry run: changes nothing, leaves no record, works inside the namespace'
t_dry_changes_nothing() {
	local before inside

	before=$(picture)
	must dctcp lq0 --rate 1gbit --k 20 --gso-segs 1 --dry-run || return
	must dctcp lq0 --rate 1gbit --k 20 --dry-run --json || return
	must host reno --default --route 10.71.0.0/24 --dry-run || return
	same "$before" "$(picture)" 'the picture' || return
	[[ ! -e $LOWQ_STATE_DIR ]] || fail 'a dry run made a record' || return
	inside=$(in_ns "$lowq_tc" dctcp lq0 --rate 1gbit --k 20 --dry-run -q)
	must dctcp lq0 --rate 1gbit --k 20 --dry-run -q || return
	same "${out//-n $ns /}" "$inside" 'the plan inside the namespace'
}

a_test t_json 'plan, result, show and list are valid JSON'
t_json() {
	must fifo lq0 --rate 1gbit --dry-run --json || return
	jq -e '.status == "planned" and .profile == "fifo" and (.commands | length) == 3' \
		<<<"$out" >/dev/null || fail "plan: $out" || return
	must fifo lq0 --rate 1gbit --json || return
	jq -e '.status == "applied" and .device == "lq0"' <<<"$out" >/dev/null || fail "result: $out" || return
	must show --json || return
	jq -e 'length == 1 and .[0].profile == "fifo" and .[0].set' <<<"$out" >/dev/null ||
		fail "show: $out" || return
	must reset lq0 --json || return
	jq -e '.status == "applied"' <<<"$out" >/dev/null || fail "reset: $out" || return
	must host show --json || return
	jq -e '.sysctl.tcp_ecn' <<<"$out" >/dev/null || fail "host show: $out" || return
	must list --json || return
	jq -e '.profiles | map(.profile) | index("dctcp")' <<<"$out" >/dev/null || fail "list: $out"
}

# --- refused ----------------------------------------------------------------

refused() {	# EXPECTED-PART ARGUMENTS...
	local want=$1 before

	shift
	before=$(picture)
	refused_so "$want" "$@" && same "$before" "$(picture)" "after '$*' the picture"
}

refused_so() {	# the same without looking at the picture
	local want=$1

	shift
	if lt "$@"; then
		fail "accepted: $*"
		return
	fi
	[[ $rc == 2 ]] || fail "$*: exit status $rc" || return
	[[ $err && $err != *$'\n'* ]] || fail "$*: not one line: $err" || return
	[[ ! $out ]] || fail "$*: spoke on stdout: $out" || return
	[[ $err == *"$want"* ]] || fail "$*: '$err' does not say '$want'"
}

# A table of them: EXPECTED-PART | ARGUMENTS
refused_all() {	# TABLE
	local before qdiscs want line
	local -a args

	before=$(picture)
	qdiscs=$(tcn qdisc show)
	while IFS= read -r line; do
		want=${line%% |*}
		eval "args=(${line#"$want"*|})"
		refused_so "$want" "${args[@]}" || return
		[[ $qdiscs == "$(tcn qdisc show)" ]] || fail "$line: changed a queue" || return
	done <<<"$1"
	same "$before" "$(picture)" 'after all of them the picture'
}

a_test t_refused 'nonsense is refused with one line and status 2, and changes nothing'
t_refused() {
	refused_all "$(cat <<-END
		no device 'nosuch0' | dctcp nosuch0 --rate 10gbit --rtt 100us
		no device | dctcp 'a;b' --rate 10gbit --rtt 100us
		unknown profile 'frobnicate' | frobnicate lq0
		on which device | dctcp
		what to do |
		what is 'lq1' | dctcp lq0 lq1 --rate 1gbit --k 3
		a rate needs a unit | dctcp lq0 --rate 10000 --rtt 100us
		unknown unit 'mbps' | dctcp lq0 --rate 10mbps --rtt 100us
		not a rate | dctcp lq0 --rate fast --rtt 100us
		not a rate | dctcp lq0 --rate=-1gbit --rtt 100us
		out of range | dctcp lq0 --rate 0gbit --rtt 100us
		out of range | dctcp lq0 --rate 5tbit --rtt 100us
		a time needs a unit | dctcp lq0 --rate 10gbit --rtt 100
		unknown unit 'min' | dctcp lq0 --rate 10gbit --rtt 1min
		out of range | dctcp lq0 --rate 10gbit --rtt 10s
		must not be 0 | dctcp lq0 --rate 10gbit --k 0
		not a length of queue | dctcp lq0 --rate 10gbit --k 1.5
		not a length of queue | dctcp lq0 --rate 10gbit --k many
		not a length of queue | dctcp lq0 --rate 10gbit --k -5
		must be at least one packet below it | dctcp lq0 --rate 10gbit --k 100 --limit 50
		must be at least one packet below it | dctcp lq0 --rate 10gbit --k 100 --limit 100
		must not be 0 | dctcp lq0 --rate 10gbit --k 10 --limit 0
		more than 4 GB | dctcp lq0 --rate 10gbit --k 10 --limit 9999999kb
		the most is 512 MB | dctcp lq0 --rate 10gbit --k 800000kb
		less than 512 MB | red lq0 --rate 10gbit --min 5 --max 800000kb
		too far above | red lq0 --rate 10gbit --min 5 --max 250000kb --probability 0.01
		give --rtt | dctcp lq0 --rate 10gbit
		no line rate of its own | dctcp lq0 --rtt 100us
		give --rate | dctcp lq0 --no-shape --rtt 100us
		contradict | dctcp lq0 --rate 1gbit --k 5 --shape --no-shape
		--shape needs --rate | dctcp lq0 --shape --k 5
		--shape-burst needs a shaper | dctcp lq0 --no-shape --k 5 --shape-burst 5
		red, codel, fq_codel or fq | dctcp lq0 --rate 1gbit --k 5 --aqm blue
		--nodrop goes with --aqm red | dctcp lq0 --rate 1gbit --k 5 --aqm fq --nodrop
		give --rate | dctcp lq0 --no-shape --k 5 --aqm fq
		a time needs --rate | dctcp lq0 --no-shape --k 50us
		--k needs a value | dctcp lq0 --rate 1gbit --k
		unknown option '--bogus' | dctcp lq0 --rate 1gbit --bogus
		takes no value | dctcp lq0 --rate 1gbit --k 3 --shape=yes
		--min does not go with 'dctcp' | dctcp lq0 --rate 1gbit --k 5 --min 3
		--rtt does not go with 'fifo' | fifo lq0 --rate 1gbit --rtt 1ms
		give --max | red lq0 --rate 1gbit --min 5
		is above --max | red lq0 --rate 1gbit --min 50 --max 5
		a probability is | red lq0 --rate 1gbit --min 5 --max 50 --probability 1.5
		a probability is | red lq0 --rate 1gbit --min 5 --max 50 --probability 0.0
		must be at least 6 packets | red lq0 --rate 1gbit --min 5 --max 50 --burst 1
		do not go with --no-ecn | red lq0 --rate 1gbit --min 5 --max 50 --no-ecn --nodrop
		less than one packet | fifo lq0 --rate 1gbit --limit 100b
		not a DSCP | segregate lq0 --rate 1gbit --k 5 --dscp 64
		not a DSCP | segregate lq0 --rate 1gbit --k 5 --dscp gold
		must be 1 to 99 | segregate lq0 --rate 1gbit --k 5 --share 100
		ets or prio | segregate lq0 --rate 1gbit --k 5 --sched rr
		--share goes with --sched ets | segregate lq0 --rate 1gbit --k 5 --sched prio --share 20
		must not be 0 | dctcp lq0 --rate 1gbit --k 5 --gso-segs 0
		which device | reset
		no device 'nosuch0' | reset nosuch0
		no device 'nosuch0' | show nosuch0
		not both | reset lq0 --all
		no network namespace | show -n "nowhere"
	END
	)"
}

a_test t_refused_host 'host: nonsense is refused with one line and status 2, and changes nothing'
t_refused_host() {
	refused_all "$(cat <<-END
		no congestion control 'nosuchcc' | host nosuchcc
		is not the name | host 'x;y'
		which congestion control | host
		not a prefix | host reno --route junk
		not a prefix | host reno --route 10.0.0.0/64
		there is no way to it | host reno --route 198.51.100.0/24
		need --route | host reno --initcwnd 10
		must not be 0 | host reno --route 10.71.0.0/24 --initcwnd 0
		--rate does not go with | host reno --rate 1gbit
	END
	)"
}

a_test t_refused_queue 'a queue or option that the kernel lacks is refused before anything changes'
t_refused_queue() {
	local saved

	if have_red; then
		# A kernel with everything: let tc play one without.
		mkdir -p "$tmp/lacking"
		cat >"$tmp/lacking/tc" <<-END
			#!/bin/sh
			case " \$* " in *" red limit "*) echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2 ;; esac
			exec $(command -v tc) "\$@"
		END
		chmod +x "$tmp/lacking/tc"
		saved=$PATH
		PATH=$tmp/lacking:$PATH
		refused "this kernel has no 'red' queue" dctcp lq0 --rate 1gbit --k 20
		set -- $?
		PATH=$saved
		return "$1"
	fi
	refused "this kernel has no 'red' queue" dctcp lq0 --rate 1gbit --k 20
}

# --- set, show, put back ----------------------------------------------------

round_trip() {	# DEV ROOT-KIND LEAF-KIND ARGUMENTS...: set, look, reset, compare
	local dev=$1 root=$2 leaf=$3 before

	shift 3
	before=$(picture)
	must "$@" || return
	[[ $(tcn -j qdisc show dev "$dev" | jq -r '.[] | select(.root).kind') == "$root" ]] ||
		fail "$*: the root is not $root" || return
	[[ $(tcn qdisc show dev "$dev") == *"qdisc $leaf "* ]] || fail "$*: no $leaf" || return
	must show "$dev" --json || return
	jq -e --arg l "$leaf" '.[0].set and (.[0].queues | map(.kind) | index($l))' <<<"$out" >/dev/null ||
		fail "show: $out" || return
	must show "$dev" || return
	[[ $out == "$dev: $1"* ]] || fail "show: $out" || return
	must reset "$dev" || return
	same "$before" "$(picture)" "after reset of '$*' the picture"
}

a_test t_fifo 'fifo: set, show, reset'
t_fifo() {
	have_qdisc htb || skip 'no htb' || return
	round_trip lq0 htb pfifo fifo lq0 --rate 1gbit &&
	round_trip lq0 htb bfifo fifo lq0 --rate 1gbit --limit 1mb --gso-segs 1 &&
	round_trip lq0 pfifo pfifo fifo lq0 --no-shape
}

a_test t_mq 'every queue of a multi-queue device: set, show, reset'
t_mq() {
	round_trip lqm mq pfifo fifo lqm --no-shape || return
	must fifo lqm --no-shape || return
	same 4 "$(tcn qdisc show dev lqm | grep -c pfifo\ )" 'number of queues' || return
	must reset lqm
}

a_test t_dctcp 'D1: dctcp on red: set, show, reset; the kernel has min = max = K, weight 1/2'
t_dctcp() {
	have_red || skip 'no red' || return
	round_trip lq0 htb red dctcp lq0 --rate 10gbit --rtt 100us &&
	round_trip lq0 htb red dctcp lq0 --rate 100gbit --k 200 --limit 8mb --nodrop &&
	round_trip lq0 red red dctcp lq0 --no-shape --k 20 &&
	round_trip lqm mq red dctcp lqm --no-shape --k 20 || return
	must dctcp lq0 --rate 10gbit --rtt 100us || return
	same '[18168,18168,true,1]' "$(tcn -d -j qdisc show dev lq0 | jq -c '.[] |
		select(.kind == "red").options | [.min, .max, .ecn, .ewma]')" 'red'
}

a_test t_red_probability 'red: a probability of 1 arrives as 1'
t_red_probability() {
	have_red || skip 'no red' || return
	must red lq0 --rate 10gbit --min 10 --max 30 --probability 1 || return
	same 1 "$(tcn -d -j qdisc show dev lq0 | jq '.[] | select(.kind == "red").options.probability')" \
		probability || return
	# thresholds around which tc's estimate of the weight fails
	local q

	for q in '1 1' '1 100' '2 3' '100b 200b' '1000 4000'; do
		must red lq0 --rate 10gbit --min "${q% *}" --max "${q#* }" || return
	done
	for q in 1 1515b 4000b 5000; do
		must dctcp lq0 --rate 10gbit --k "$q" || return
		same 1 "$(tcn -d -j qdisc show dev lq0 | jq '.[] | select(.kind == "red").options.ewma')" \
			"weight for K $q" || return
	done
}

a_test t_codel 'dctcp on codel: set, show, reset'
t_codel() {
	have_qdisc codel || skip 'no codel' || return
	round_trip lq0 htb codel dctcp lq0 --rate 1gbit --k 20 --aqm codel
}

a_test t_fq_codel 'dctcp on fq_codel: set, show, reset'
t_fq_codel() {
	have_qdisc fq_codel || skip 'no fq_codel' || return
	round_trip lq0 htb fq_codel dctcp lq0 --rate 1gbit --rtt 1ms --aqm fq_codel
}

a_test t_fq 'dctcp on fq: set, show, reset'
t_fq() {
	have_qdisc fq || skip 'no fq' || return
	round_trip lq0 htb fq dctcp lq0 --rate 1gbit --rtt 1ms --aqm fq &&
	round_trip lqm mq fq dctcp lqm --rate 1gbit --no-shape --rtt 1ms --aqm fq
}

a_test t_segregate_ets 'D17: segregate on ets: set, show, reset'
t_segregate_ets() {
	have_red || skip 'no red' || return
	have_qdisc ets bands 2 || skip 'no ets' || return
	have_cls || skip 'no u32' || return
	round_trip lq0 htb ets segregate lq0 --rate 1gbit --k 20 &&
	round_trip lqm mq ets segregate lqm --no-shape --k 20
}

a_test t_segregate_prio 'D17: segregate on prio: set, show, reset'
t_segregate_prio() {
	have_red || skip 'no red' || return
	have_qdisc prio || skip 'no prio' || return
	have_cls || skip 'no u32' || return
	round_trip lq0 htb prio segregate lq0 --rate 1gbit --k 20 --sched prio
}

a_test t_again 'set again: what was there first is what comes back; reset twice is harmless'
t_again() {
	local before

	before=$(picture)
	must fifo lq0 --rate 1gbit --gso-segs 1 || return
	must fifo lq0 --rate 2gbit || return
	must fifo lq0 --rate 2gbit --gso-segs 4 || return
	must fifo lq0 --no-shape || return
	must reset lq0 || return
	same "$before" "$(picture)" 'after reset the picture' || return
	must reset lq0 || return
	[[ $out == *"nothing to undo"* ]] || fail "second reset: $out" || return
	same "$before" "$(picture)" 'after a second reset the picture' || return
	must fifo lq0 --rate 1gbit || return
	must fifo lqm --no-shape || return
	must reset --all || return
	same "$before" "$(picture)" 'after reset --all the picture'
}

a_test t_previous 'a queue of the user comes back as it was, handle and options'
t_previous() {
	local q before kept=0

	while read -r q; do
		# shellcheck disable=SC2086
		tcn qdisc add dev lq0 root handle 77: $q 2>/dev/null || continue
		kept=$((kept + 1))
		before=$(picture)
		must fifo lq0 --rate 1gbit || return
		must reset lq0 || return
		same "$before" "$(picture)" "'$q'" || return
		tcn qdisc del dev lq0 root
	done <<-END
		pfifo limit 77
		bfifo limit 12345
		prio bands 4 priomap 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3
		codel ce_threshold 21us
		fq_codel target 3ms interval 33ms limit 99 noecn ce_threshold 22us
		fq limit 1000 flow_limit 300 ce_threshold 40us maxrate 1gbit nopacing
		netem delay 3ms 1ms
	END
	((kept > 2)) || fail 'nothing tried' || return
	tcn qdisc add dev lqm root handle 77: mq
	tcn qdisc add dev lqm parent 77:2 handle 78: pfifo limit 78
	before=$(picture)
	must fifo lqm --rate 1gbit || return
	must reset lqm || return
	same "$before" "$(picture)" 'mq with a pfifo of its own'
}

a_test t_previous_lost 'what cannot be put back exactly is refused, and replaced with --force'
t_previous_lost() {
	tcn qdisc add dev lq0 root handle 1: htb default 1
	tcn class add dev lq0 parent 1: classid 1:1 htb rate 3gbit quantum 1514
	refused "cannot be put back exactly" fifo lq0 --rate 1gbit || return
	must fifo lq0 --rate 1gbit --force || return
	[[ $out == *"cannot be put back exactly"* ]] || fail "said nothing of the loss: $out" || return
	must reset lq0 || return
	[[ $out == *"class htb 1:1"* ]] || fail "reset does not tell what was there: $out" || return
	same noqueue "$(tcn -j qdisc show dev lq0 | jq -r '.[0].kind')" 'the queue after reset' || return
	tcn qdisc add dev lq0 root handle 1: prio 2>/dev/null || return 0
	have_cls || return 0
	tcn filter add dev lq0 parent 1: protocol ip u32 match ip dsfield 0x28 0xfc classid 1:1 || return 0
	refused "(its filters)" fifo lq0 --rate 1gbit
}

a_test t_foreign 'a change by someone else is noticed: reset leaves it alone'
t_foreign() {
	must fifo lq0 --rate 1gbit || return
	tcn qdisc del dev lq0 root
	tcn qdisc add dev lq0 root handle 5: pfifo limit 55
	must show lq0 || return
	[[ $out == *"someone else changed it"* ]] || fail "show: $out" || return
	refused "changed by someone else" reset lq0 || return
	# a new profile takes what is there now for what was there before
	must fifo lq0 --rate 2gbit || return
	must reset lq0 || return
	[[ $(tcn qdisc show dev lq0) == *"pfifo 5:"*"limit 55p"* ]] || fail 'the pfifo did not come back' || return
	tcn qdisc del dev lq0 root
	# a device that went away, and another one of the same name
	must fifo lq0 --rate 1gbit || return
	ipn link del dev lq0
	must reset lq0 || return
	[[ $out == *"is gone"* ]] || fail "reset of a device that is gone: $out"
}

# --- failure half-way -------------------------------------------------------

# A tc, ip or sysctl that fails at its Nth change.
failing() {	# N
	local tool

	mkdir -p "$tmp/failing"
	for tool in tc ip sysctl; do
		cat >"$tmp/failing/$tool" <<-END
			#!/bin/bash
			case " \$* " in
			*" show "* | *" help "* | *" -n net."* | *" get "*) ;;
			*" netns exec "*" sysctl -q -w "*) ;;
			*" add "* | *" del "* | *" replace "* | *" set "* | *" -w "*)
				n=\$((\$(<$tmp/failing/n) - 1))
				echo \$n >$tmp/failing/n
				if ((n == 0)); then echo 'made to fail' >&2; exit 1; fi
				;;
			esac
			exec $(command -v "$tool") "\$@"
		END
		chmod +x "$tmp/failing/$tool"
	done
	echo "$1" >"$tmp/failing/n"
}

# Every command of the plan fails once; each time all is as before.
fails_everywhere() {	# ARGUMENTS...
	local n=0 before

	before=$(picture)
	while ((++n < 20)); do
		failing "$n"
		if PATH=$tmp/failing:$PATH lt "$@" --no-rehearsal; then
			((n > 2)) || fail "'$*' never failed"
			return
		fi
		[[ $rc == 1 ]] || fail "command $n: exit status $rc: $err" || return
		[[ $err == *"made to fail; rolled back to what was there before" ]] ||
			fail "command $n: $err" || return
		same "$before" "$(picture)" "after command $n failed the picture" || return
	done
	fail 'does not end'
}

a_test t_rollback 'a failing command is rolled back, whichever it is'
t_rollback() {
	fails_everywhere fifo lq0 --rate 1gbit --gso-segs 1 || return
	# over an earlier one of ours: that one comes back
	fails_everywhere fifo lq0 --rate 2gbit || return
	fails_everywhere fifo lqm --no-shape || return
	must reset --all || return
	# over a queue of the user
	tcn qdisc add dev lq0 root handle 77: pfifo limit 77
	fails_everywhere fifo lq0 --rate 1gbit
}

a_test t_rollback_host 'host: a failing command is rolled back, whichever it is'
t_rollback_host() {
	ipn route add default via 10.71.0.2
	fails_everywhere host reno --default --route 10.71.0.0/24 --route fd71::/64 --route default \
		--route 10.99.0.0/16 || return
	fails_everywhere host cubic --route 10.71.0.0/24 --route 10.99.0.0/16 --initcwnd 20
}

a_test t_killed 'killed half-way: the record is there already, and reset puts back'
t_killed() {
	local before

	before=$(picture)
	mkdir -p "$tmp/killing"
	cat >"$tmp/killing/tc" <<-END
		#!/bin/sh
		case " \$* " in *" class add "*) kill -KILL "\$(cat "$tmp/pid")" ;; esac
		exec $(command -v tc) "\$@"
	END
	chmod +x "$tmp/killing/tc"
	# shellcheck disable=SC2016
	bash -c 'echo $$ >"$1"; shift; exec "$@"' sh "$tmp/pid" env "PATH=$tmp/killing:$PATH" \
		"$lowq_tc" -n "$ns" fifo lq0 --rate 1gbit --no-rehearsal >/dev/null 2>&1 &
	{ wait $!; } 2>/dev/null
	must show || return
	[[ $out == *"cut short"* ]] || fail "show: $out" || return
	must reset lq0 || return
	same "$before" "$(picture)" 'after reset the picture'
}

# --- traffic ----------------------------------------------------------------

traffic() {	# IPERF3-ARGUMENTS...
	command -v iperf3 >/dev/null || skip 'no iperf3' || return
	ip netns exec "$ns2" iperf3 -s -1 -D >/dev/null 2>&1
	sleep 0.5
	# Several flows: the queue of a single one at its own sender is kept
	# short by TSQ.
	in_ns timeout 60 iperf3 -t 1 -P 4 "$@" >"$tmp/iperf3" 2>&1 ||
		fail "iperf3: $(grep -i error "$tmp/iperf3")"
}

# 400 datagrams of 1400 bytes without ECN, as fast as they can be written.
datagrams() {
	# shellcheck disable=SC2016
	in_ns bash -c 'exec 3>/dev/udp/10.71.0.2/9
		for ((i = 0; i < 400; i++)); do printf %1400s >&3; done' 2>/dev/null
	sleep 0.5
}

counter() {	# JQ-FILTER on the device's JSON
	lt show lq0 --json
	jq ".[0] | $1" <<<"$out"
}

marks() {	# ARGUMENTS of dctcp
	in_ns sysctl -q -w net.ipv4.tcp_ecn=1
	ip netns exec "$ns2" sysctl -q -w net.ipv4.tcp_ecn=1
	must dctcp lq0 "$@" || return
	traffic -c 10.71.0.2 || return
	(($(counter .marked) > 0)) || fail "$*: nothing marked: $out" || return
	(($(counter '[.queues[].packets] | max') > 1000)) || fail "$*: hardly a packet counted: $out"
}

a_test t_marks_red 'D1: TCP with ECN is marked by red at K, not dropped'
t_marks_red() {
	have_red || skip 'no red' || return
	marks --rate 50mbit --k 10 --gso-segs 1 || return
	same 0 "$(counter .dropped)" 'packets dropped'
}

a_test t_marks_codel 'TCP with ECN is marked by codel'
t_marks_codel() {
	have_qdisc codel || skip 'no codel' || return
	marks --rate 50mbit --k 10 --gso-segs 1 --aqm codel
}

a_test t_marks_fq_codel 'TCP with ECN is marked by fq_codel'
t_marks_fq_codel() {
	have_qdisc fq_codel || skip 'no fq_codel' || return
	marks --rate 50mbit --k 10 --gso-segs 1 --aqm fq_codel
}

a_test t_marks_fq 'TCP with ECN is marked by fq'
t_marks_fq() {
	have_qdisc fq || skip 'no fq' || return
	marks --rate 50mbit --k 10 --gso-segs 1 --aqm fq
}

a_test t_drops_not_ect 'Not-ECT is dropped above K, and let pass with --nodrop'
t_drops_not_ect() {
	have_red || skip 'no red' || return
	must dctcp lq0 --rate 20mbit --k 10 || return
	datagrams
	same 0 "$(counter .marked)" 'packets marked' || return
	(($(counter '[.queues[].dropped] | max') > 100)) || fail "hardly a packet dropped: $out" || return
	must dctcp lq0 --rate 20mbit --k 10 --nodrop --limit 40mb || return
	datagrams
	same 0 "$(counter '[.queues[].dropped] | max')" 'packets dropped with --nodrop'
}

a_test t_segregates 'D17: the DSCP has its queue, IPv4 and IPv6; ARP and the rest go to the other'
t_segregates() {
	local sched=ets at

	have_red || skip 'no red' || return
	have_cls || skip 'no u32' || return
	have_qdisc ets bands 2 || sched=prio
	have_qdisc prio || [[ $sched == ets ]] || skip 'neither ets nor prio' || return
	# Without the DSCP first: what an earlier flow with it still sends would
	# be counted, too.
	for at in 10.71.0.2 fd71::2; do
		must segregate lq0 --rate 50mbit --k 20 --sched "$sched" || return
		ipn neigh flush dev lq0
		traffic -c "$at" || return
		same 0 "$(counter '.queues[] | select(.place == "10f1:1").packets')" \
			"$at: the number of packets without the DSCP in its queue" || return
		(($(counter '.queues[] | select(.place == "10f1:2").packets') > 1000)) ||
			fail "$at: the rest is not in its queue: $out" || return
	done
	for at in 10.71.0.2 fd71::2; do
		must segregate lq0 --rate 50mbit --k 20 --sched "$sched" || return
		traffic -c "$at" -S 0x28 || return
		(($(counter '.queues[] | select(.place == "10f1:1").packets') > 1000)) ||
			fail "$at: packets with the DSCP are not in its queue: $out" || return
	done
}

# --- host -------------------------------------------------------------------

a_test t_host_default 'D11: host --default: sysctls set, shown, put back'
t_host_default() {
	local before control=reno

	[[ $(in_ns sysctl -n net.ipv4.tcp_congestion_control) != reno ]] || control=cubic
	before=$(picture)
	must host "$control" --default || return
	same "$control" "$(in_ns sysctl -n net.ipv4.tcp_congestion_control)" 'the default' || return
	must host show || return
	[[ $out == *"tcp_congestion_control from"*"to $control"* ]] || fail "host show: $out" || return
	must host reset || return
	same "$before" "$(picture)" 'after host reset the picture' || return
	must host reset || return
	[[ $out == *"nothing to undo"* ]] || fail "second host reset: $out"
}

a_test t_host_route 'D11: host --route: routes changed, added and put back, IPv4 and IPv6'
t_host_route() {
	local before r several=()

	ipn route add default via 10.71.0.2
	ipn -6 route add default via fd71::2
	ipn route add 10.72.0.0/16 via 10.71.0.2 proto static metric 7 mtu 1400 initcwnd 5
	if ipn route add 10.73.0.0/16 proto static nexthop via 10.71.0.2 dev lq0 weight 1 \
		nexthop via 10.71.0.3 dev lq0 weight 2 2>/dev/null; then
		several=(--route 10.73.0.0/16)
	fi
	before=$(picture)
	must host reno "${several[@]}" --route 10.71.0.0/24 --route default --route 10.72.0.0/16 \
		--route 10.99.0.0/16 --route fd71::/64 --route ::/0 --route fd99::/32 \
		--initcwnd 33 --initrwnd 44 --quickack || return
	for r in '-4 10.71.0.0/24' '-4 default' '-4 10.72.0.0/16' '-4 10.99.0.0/16' \
		 '-6 fd71::/64' '-6 ::/0' '-6 fd99::/32'; do
		# shellcheck disable=SC2086
		[[ $(ipn ${r% *} route show exact ${r#* }) == *"initcwnd 33"*"initrwnd 44"*"congctl reno"* ]] ||
			fail "route $r: $(ipn ${r% *} route show exact ${r#* })" || return
	done
	[[ $(ipn route show exact 10.72.0.0/16) == *"proto static metric 7"*"mtu 1400"* ]] ||
		fail "10.72.0.0/16 lost something: $(ipn route show exact 10.72.0.0/16)" || return
	# another control on top starts from what was there before
	must host cubic --route 10.72.0.0/16 --route 10.99.0.0/16 || return
	[[ $(ipn route show exact 10.72.0.0/16) == *"initcwnd 5"*"congctl cubic"* ]] ||
		fail "second control: $(ipn route show exact 10.72.0.0/16)" || return
	must host reset || return
	same "$before" "$(picture)" 'after host reset the picture'
}

a_test t_host_foreign 'host reset leaves alone what someone else changed since; --force does not'
t_host_foreign() {
	in_ns sysctl -q -w net.ipv4.tcp_congestion_control=cubic 2>/dev/null || skip 'no cubic' || return
	must host reno --default || return
	must host reno --route 10.71.0.0/24 || return
	in_ns sysctl -q -w net.ipv4.tcp_congestion_control=cubic
	ipn route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1 mtu 1300
	must host reset || return
	[[ $out == *"changed by someone else"*"changed by someone else"* ]] || fail "host reset: $out" || return
	[[ $(ipn route show exact 10.71.0.0/24) == *"mtu 1300"* ]] || fail 'the route was touched'
}

a_test t_host_dctcp 'D11: host dctcp: ECN asked for, allowed for all, per route, put back'
t_host_dctcp() {
	local before

	[[ " $(in_ns sysctl -n net.ipv4.tcp_available_congestion_control) " == *" dctcp "* ]] ||
		modprobe -q tcp_dctcp 2>/dev/null || skip 'no dctcp' || return
	[[ $(stat -c %a /proc/sys/net/ipv4/tcp_allowed_congestion_control) == 644 ]] ||
		skip 'not in the first namespace' || return
	before=$(picture)
	must host dctcp || return
	same 1 "$(in_ns sysctl -n net.ipv4.tcp_ecn)" tcp_ecn || return
	[[ " $(sysctl -n "$allowed_key") " == *" dctcp "* ]] || fail 'not allowed' || return
	must host dctcp --default --route 10.71.0.0/24 || return
	same dctcp "$(in_ns sysctl -n net.ipv4.tcp_congestion_control)" 'the default' || return
	[[ $(ipn route show exact 10.71.0.0/24) == *"features ecn"*"congctl dctcp"* ]] ||
		fail "route: $(ipn route show exact 10.71.0.0/24)" || return
	must host reset || return
	same "$before" "$(picture)" 'after host reset the picture'
}

# --- around it --------------------------------------------------------------

a_test t_installed 'works from an installed layout and through a link'
t_installed() {
	local out

	mkdir -p "$tmp/usr/bin" "$tmp/usr/share/lowq"
	cp "$lowq_tc" "$tmp/usr/bin/lowq-tc"
	cp -r "${lowq_tc%/*}/lowq-tc.d" "$tmp/usr/share/lowq/" 2>/dev/null ||
		skip 'profiles are elsewhere' || return
	ln -s "$tmp/usr/bin/lowq-tc" "$tmp/link"
	out=$("$tmp/usr/bin/lowq-tc" list)
	[[ $out == *dctcp* ]] || fail "installed: $out" || return
	out=$("$tmp/link" list)
	[[ $out == *dctcp* ]] || fail "link: $out"
}

a_test t_documented 'every option is in the manual and in --help'
t_documented() {
	local man=$here/../man/lowq-tc.8 help o

	[[ -e $man ]] || skip 'no manual here' || return
	lt --help || fail "--help gave $rc" || return
	help=$out
	for o in $("$lowq_tc" list --json | jq -r '(.profiles, .controls)[].options[]' | sort -u) \
		 dry-run json force quiet no-rehearsal netns all help \
		 route default allow initcwnd initrwnd quickack; do
		grep -q -- "^\\.It.*Fl Fl $o\\b" "$man" || fail "--$o is not in the manual" || return
		[[ $o == help || $help == *"--$o"* ]] || fail "--$o is not in --help" || return
	done
}

# ----------------------------------------------------------------------------

(($# == 0)) || tests=("$@")
printf 'TAP version 13\n1..%d\n' "${#tests[@]}"

missing=
for tool in ip tc jq sysctl unshare; do
	command -v $tool >/dev/null || missing="no $tool"
done
((EUID == 0)) || missing='not root'
[[ $missing ]] || fresh >/dev/null 2>&1 || missing='no veth or no network namespaces'

failed=0
skipped=0
for ((i = 0; i < ${#tests[@]}; i++)); do
	t=${tests[i]}
	why=$missing
	if [[ $missing ]]; then
		status=4
	elif ! fresh >"$tmp/fresh" 2>&1; then
		status=1
		why="no fresh namespaces: $(<"$tmp/fresh")"
	else
		$t
		status=$?
	fi
	case $status in
	0) printf 'ok %d - %s\n' $((i + 1)) "${about[$t]}" ;;
	4)
		printf 'ok %d - %s # SKIP %s\n' $((i + 1)) "${about[$t]}" "$why"
		skipped=$((skipped + 1))
		;;
	*)
		printf '# %s: %s\n' "$t" "${why:-status $status}"
		printf 'not ok %d - %s\n' $((i + 1)) "${about[$t]}"
		failed=$((failed + 1))
		;;
	esac
done
printf '# Totals: pass:%d fail:%d skip:%d\n' \
	$((${#tests[@]} - failed - skipped)) $failed $skipped
((!failed)) || exit 1
((skipped < ${#tests[@]})) || exit 4
exit 0
