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
# LOWQ_TC names the script to test (default: ../scripts/lowq-tc, or the installed one).

# shellcheck source=lowq_tc_lib.sh
. "$(dirname "$0")/lowq_tc_lib.sh"

RECORDS_TOO=1

# Two devices of the namespace a: lq0 with one queue, lqm with four.
fresh() {
	rm -rf "$LOWQ_STATE_DIR"
	ip -batch - <<-END &&
		netns add $ns
		netns add ${NSP}b
		link add name lq0 netns $ns type veth peer name lq1 netns ${NSP}b
		link add name lqm netns $ns numtxqueues 4 numrxqueues 4 type veth peer name lqp netns $ns numtxqueues 4 numrxqueues 4
	END
	ip -n "${NSP}b" -batch - <<-END && ipn -batch - <<-END
		addr add 10.71.0.2/24 dev lq1
		addr add fd71::2/64 dev lq1 nodad
		link set dev lq1 up
	END
		addr add 10.71.0.1/24 dev lq0
		addr add fd71::1/64 dev lq0 nodad
		link set dev lq0 up
		link set dev lqm up
		link set dev lqp up
	END
}

setup() {
	fresh || fail 'no fresh namespaces'
}

have_cls() {
	unshare -n sh -c 'tc qdisc add dev lo root handle 1: htb &&
		tc filter add dev lo parent 1: protocol ip u32 match ip dsfield 0x28 0xfc classid 1:1' 2>/dev/null
}

# --- numbers ----------------------------------------------------------------

declare_test t_threshold "D1" 'K is half of what the path holds in whole packets, at least 4, from rate, RTT and MTU'
t_threshold() {
	local rate rtt mtu want k bytes

	# rate rtt mtu -> K in packets, bytes
	while read -r rate rtt mtu k bytes; do
		[[ $rate ]] || continue
		ipn link set dev lq0 mtu "$mtu"
		must dctcp lq0 --rate "$rate" --rtt "$rtt" --no-tso --dry-run --json
		want=$(jq -c '[.params.k_packets, .params.k_bytes]' <<<"$out")
		same "[$k,$bytes]" "$want" "K for $rate, $rtt, mtu $mtu"
	done <<-END
		10gbit   100us   1500  42    63588
		10gbit   100us   9000  7     63098
		1gbit    100us   1500  5     7570
		1gbit    50us    1500  4     6056
		1gbit    10ms    1500  413   625282
		40gbit   50us    1500  83    125662
		100gbit  100us   1500  413   625282
		400gbit  12.5us  1500  207   313398
		2.5gbit  300us   1500  31    46934
		1000mbit 0.01s   1500  413   625282
		8gbit    105us   1486  35    52500
	END
}

declare_test t_formula "D1" 'the report shows the formula with its numbers'
t_formula() {
	gives 0 "K > RTT*C/7 = 100us * 10gbit / 7 = 17857 bytes = 11.79 packets of 1514 bytes" dctcp lq0 --rate 10gbit --rtt 100us --dry-run
	[[ $err == *"K = 55 packets = 83270 bytes = 66.616us, with 12 for RTT*C/7"* ]] || fail "no K in: $err"
	gives 0 "K = 42 packets = 63588 bytes = 50.871us, half of what the path holds" dctcp lq0 --rate 10gbit --rtt 100us --no-tso --dry-run
}

declare_test t_offloads "D1 L1" 'thresholds have room for what TSO sends, and coalescing holds back, at once'
t_offloads() {
	local k

	# packets: 12 + 43 that gso_max_size of 65536 bytes holds, or half of the path's 83; at 1 Gb/s: 4 + 9
	while read -r k words; do
		[[ $k ]] || continue
		# shellcheck disable=SC2086 # words are words
		must $words --rtt 100us --dry-run --json
		same "$k" "$(jq -c "[.params | .k_packets // empty, .min_bytes // empty, .max_bytes // empty] | map(if . > 1000 then . / 1514 else . end)" <<<"$out")" "thresholds of $words"
	done <<-END
		[55] dctcp lq0 --rate 10gbit
		[42] dctcp lq0 --rate 10gbit --gso-segs 1
		[42] dctcp lq0 --rate 10gbit --no-tso
		[84] dctcp lq0 --rate 10gbit --no-tso --coalesce 50us
		[97] dctcp lq0 --rate 10gbit --coalesce 50us
		[13] dctcp lq0 --rate 1gbit
		[55] segregate lq0 --rate 10gbit
		[6,42] ldcp lq0 --rate 10gbit
		[27,63] ldcp lq0 --rate 10gbit --coalesce 50us
	END
}

# --- dry run ----------------------------------------------------------------

dry() {	# EXPECTED ARGUMENTS...
	tc_of "${VERSION:-6.1.0}" must "${@:2}" --dry-run -q
	same "${1%$'\n'}" "$out" "${*:2}"
}

tc_of() {	# VERSION COMMAND...: tc says that it is of this version
	local real

	mkdir -p "$TMP/tc"
	real=$(type -P tc)
	printf '#!/bin/sh\n[ "$*" != -V ] || exec echo tc utility, iproute2-%s\nexec %s "$@"\n' "$1" "$real" >"$TMP/tc/tc"
	chmod +x "$TMP/tc/tc"
	PATH=$TMP/tc:$PATH "${@:2}"
}

declare_test t_dry_rounding "" "dry run: of a later tc, which rounds times up, the words that make the same shaper and estimate of idle time"
t_dry_rounding() {
	local commands="tc -n $ns qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 10gbit ceil 10gbit burst @ cburst @ quantum 1514
tc -n $ns qdisc add dev lq0 parent 10f0:1 handle 10f1: red limit 1514000 min 98410 max 98410 avpkt 1514 burst 65 bandwidth % probability 1 ecn"
	local version

	for version in 6.13.0 6.14.0 6.15.0 7.1; do
		# one packet is 1.2 us, of which the former made 15 ticks of 64 ns, and 15 are 1200 bytes
		VERSION=$version dry "$([ "$version" = 6.13.0 ] && sed 's/@/1514/g; s/%/10gbit/' <<<"$commands" ||
			sed 's/@/1200/g; s/%/13051724138bit/' <<<"$commands")" dctcp lq0 --rate 10gbit --k 65
	done
}

# A call, and what it prints, a command in a line. "shaped": how each tree on lq0 at 1 Gb/s begins; "+": the queue below it
declare_test t_dry "D17" 'dry runs of each profile and queue: exact text'
t_dry() {
	local line want='' args=()

	while IFS= read -r line; do
		case $line in
		'> '*)
			((${#args[@]} == 0)) || dry "$want" "${args[@]}"
			want='' line=${line#> }
			read -ra args <<<"$line"
			continue
			;;
		shaped) line="qdisc add dev lq0 root handle 10f0: htb default 1
tc -n $ns class add dev lq0 parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514" ;;
		'+ '*) line="qdisc add dev lq0 parent 10f0:1 handle 10f1: ${line#+ }" ;;
		esac
		want+="tc -n $ns $line"$'\n'
	done <<-'END'
		> dctcp lq0 --rate 10gbit --k 65
		qdisc add dev lq0 root handle 10f0: htb default 1
		class add dev lq0 parent 10f0: classid 10f0:1 htb rate 10gbit ceil 10gbit burst 1514 cburst 1514 quantum 1514
		+ red limit 1514000 min 98410 max 98410 avpkt 1514 burst 65 bandwidth 10gbit probability 1 ecn
		> dctcp lq0 --rate 100gbit --k 100000b --limit 500000b --nodrop --shape-burst 2500b
		qdisc add dev lq0 root handle 10f0: htb default 1
		class add dev lq0 parent 10f0: classid 10f0:1 htb rate 100gbit ceil 100gbit burst 2500 cburst 2500 quantum 1514
		+ red limit 500000 min 100000 max 100000 avpkt 1516 burst 66 bandwidth 34gbit probability 1 ecn nodrop
		> dctcp lq0 --rate 1gbit --k 20 --aqm codel
		shaped
		+ codel limit 1000 target 5000us interval 100000us ecn ce_threshold 243us
		> dctcp lq0 --rate 1gbit --k 20 --aqm fq_codel
		shaped
		+ fq_codel limit 1000 target 5000us interval 100000us ecn ce_threshold 243us
		> dctcp lq0 --rate 1gbit --k 50us --aqm fq
		shaped
		+ fq limit 1000 flow_limit 1000 ce_threshold 50us
		> red lq0 --rate 1gbit --min 10 --max 30
		shaped
		+ red limit 1514000 min 15140 max 45420 avpkt 1514 burst 17 bandwidth 1gbit probability 0.1 ecn
		> red lq0 --rate 1gbit --min 10 --max 30 --probability 1 --limit 2mb --burst 40 --harddrop
		shaped
		+ red limit 2097152 min 15140 max 45420 avpkt 1514 burst 40 bandwidth 1gbit probability 0.99999999 ecn harddrop
		> fifo lq0 --rate 1gbit --limit 100
		shaped
		+ pfifo limit 100
		> fifo lq0 --rate 1gbit --limit 1mb
		shaped
		+ bfifo limit 1048576
		> dctcp lqm --k 20 --no-shape
		qdisc add dev lqm root handle 10f0: mq
		qdisc add dev lqm parent 10f0:1 handle 10f1: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		qdisc add dev lqm parent 10f0:2 handle 10f2: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		qdisc add dev lqm parent 10f0:3 handle 10f3: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		qdisc add dev lqm parent 10f0:4 handle 10f4: red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		> fifo lqm --rate 1gbit --shape
		qdisc add dev lqm root handle 10f0: htb default 1
		class add dev lqm parent 10f0: classid 10f0:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514
		qdisc add dev lqm parent 10f0:1 handle 10f1: pfifo limit 1000
		> segregate lq0 --rate 1gbit --k 20 --share 75% --rest-limit 500
		shaped
		+ ets bands 2 quanta 4542 1514 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		qdisc add dev lq0 parent 10f1:1 red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		qdisc add dev lq0 parent 10f1:2 bfifo limit 757000
		filter add dev lq0 parent 10f1: protocol ip pref 1 u32 match ip dsfield 0x28 0xfc classid 10f1:1
		filter add dev lq0 parent 10f1: protocol ipv6 pref 2 u32 match ip6 priority 0x28 0xfc classid 10f1:1
		> segregate lq0 --rate 1gbit --k 20 --sched prio --dscp ef
		shaped
		+ prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		qdisc add dev lq0 parent 10f1:1 red limit 1514000 min 30280 max 30280 avpkt 1514 burst 20 bandwidth 1gbit probability 1 ecn
		qdisc add dev lq0 parent 10f1:2 bfifo limit 1514000
		filter add dev lq0 parent 10f1: protocol ip pref 1 u32 match ip dsfield 0xb8 0xfc classid 10f1:1
		filter add dev lq0 parent 10f1: protocol ipv6 pref 2 u32 match ip6 priority 0xb8 0xfc classid 10f1:1
		> done
	END
	refused "do not go with --no-ecn" red lq0 --rate 1gbit --min 10 --max 30 --burst 40 --harddrop --no-ecn --dry-run
}

declare_test t_dry_changes_nothing "" 'dry run: changes nothing, leaves no record, works inside the namespace'
t_dry_changes_nothing() {
	local before inside

	picture before
	must dctcp lq0 --rate 1gbit --k 20 --gso-segs 1 --dry-run
	must dctcp lq0 --rate 1gbit --k 20 --dry-run --json
	must host reno --default --route 10.71.0.0/24 --dry-run
	same_picture "$before" 'after a dry run'
	[[ ! -e $LOWQ_STATE_DIR ]] || fail 'a dry run made a record'
	inside=$(in_ns a "$LOWQ_TC" dctcp lq0 --rate 1gbit --k 20 --dry-run -q)
	must dctcp lq0 --rate 1gbit --k 20 --dry-run -q
	same "${out//-n $ns /}" "$inside" 'the plan inside the namespace'
}

declare_test t_json "" 'plan, result, show and list are valid JSON'
t_json() {
	json '.status == "planned" and .profile == "fifo" and (.commands | length) == 3' fifo lq0 --rate 1gbit --dry-run
	json '.status == "applied" and .device == "lq0"' fifo lq0 --rate 1gbit
	json 'length == 1 and .[0].profile == "fifo" and .[0].set' show
	json '.status == "applied"' reset lq0
	json '.sysctl.tcp_ecn' host show
	json '.profiles | map(.profile) | index("dctcp")' list
}

json() {	# JQ-FILTER ARGUMENTS...: true of what is printed
	must "${@:2}" --json
	jq -e "$1" <<<"$out" >/dev/null || fail "${*:2}: not $1: $out"
}

# --- refused ----------------------------------------------------------------

# A table of them: PART|ARGUMENTS
# Without FULL=1 every fourth line, since each starts lowq-tc
refused_all() {	# <TABLE
	local before qdiscs n=0 line

	picture before
	qdiscs=$(tc -n "$ns" qdisc show)
	while IFS= read -r line; do
		[[ ${FULL:-} || $((n++ % 4)) -eq 0 ]] || continue
		each refused <<<"$line"
		[[ $qdiscs == "$(tc -n "$ns" qdisc show)" ]] || fail "$line: changed a queue"
	done
	same_picture "$before" 'after all of them'
}

declare_test t_refused "" 'nonsense is refused with one line and status 2, and changes nothing'
t_refused() {
	refused_all <<-'END'
		no device 'nosuch0'|dctcp nosuch0 --rate 10gbit --rtt 100us
		no device|dctcp 'a;b' --rate 10gbit --rtt 100us
		invalid choice: 'frobnicate'|frobnicate lq0
		required: DEV; see lowq-tc dctcp --help|dctcp
		required: ACTION; see lowq-tc --help|
		what is 'lq1'|dctcp lq0 lq1 --rate 1gbit --k 3
		a rate needs a unit|dctcp lq0 --rate 10000 --rtt 100us
		unknown unit 'mbps'|dctcp lq0 --rate 10mbps --rtt 100us
		not a rate|dctcp lq0 --rate fast --rtt 100us
		not a rate|dctcp lq0 --rate=-1gbit --rtt 100us
		out of range|dctcp lq0 --rate 0gbit --rtt 100us
		out of range|dctcp lq0 --rate 5tbit --rtt 100us
		a time needs a unit|dctcp lq0 --rate 10gbit --rtt 100
		unknown unit 'min'|dctcp lq0 --rate 10gbit --rtt 1min
		out of range|dctcp lq0 --rate 10gbit --rtt 10s
		must not be 0|dctcp lq0 --rate 10gbit --k 0
		not a length of queue|dctcp lq0 --rate 10gbit --k 1.5
		not a length of queue|dctcp lq0 --rate 10gbit --k many
		not a length of queue|dctcp lq0 --rate 10gbit --k -5
		must be at least one packet below it|dctcp lq0 --rate 10gbit --k 100 --limit 50
		must be at least one packet below it|dctcp lq0 --rate 10gbit --k 100 --limit 100
		must not be 0|dctcp lq0 --rate 10gbit --k 10 --limit 0
		more than 4 GB|dctcp lq0 --rate 10gbit --k 10 --limit 9999999kb
		the most is 512 MB|dctcp lq0 --rate 10gbit --k 800000kb
		less than 512 MB|red lq0 --rate 10gbit --min 5 --max 800000kb
		too far above|red lq0 --rate 10gbit --min 5 --max 250000kb --probability 0.01
		give --rtt|dctcp lq0 --rate 10gbit
		no line rate of its own|dctcp lq0 --rtt 100us
		give --rate|dctcp lq0 --no-shape --rtt 100us
		contradict|dctcp lq0 --rate 1gbit --k 5 --shape --no-shape
		--shape needs --rate|dctcp lq0 --shape --k 5
		--shape-burst needs a shaper|dctcp lq0 --no-shape --k 5 --shape-burst 5
		--aqm: invalid choice: 'blue'|dctcp lq0 --rate 1gbit --k 5 --aqm blue
		--coalesce is for a K that is computed|dctcp lq0 --rate 1gbit --k 5 --coalesce 50us
		--no-tso is for a K that is computed|dctcp lq0 --rate 1gbit --k 5 --no-tso
		--coalesce is for thresholds that are computed|ldcp lq0 --rate 1gbit --min 5 --max 9 --coalesce 50us
		--nodrop goes with --aqm red|dctcp lq0 --rate 1gbit --k 5 --aqm fq --nodrop
		give --rate|dctcp lq0 --no-shape --k 5 --aqm fq
		a time needs --rate|dctcp lq0 --no-shape --k 50us
		--k: expected one argument|dctcp lq0 --rate 1gbit --k
		--k needs a value|dctcp lq0 --rate 1gbit --k=
		unknown option '--bogus'|dctcp lq0 --rate 1gbit --bogus
		unknown option '--rat'|dctcp lq0 --rat 1gbit --k 3
		--shape: ignored explicit argument 'yes'|dctcp lq0 --rate 1gbit --k 3 --shape=yes
		--min does not go with 'dctcp'|dctcp lq0 --rate 1gbit --k 5 --min 3
		--rtt does not go with 'fifo'|fifo lq0 --rate 1gbit --rtt 1ms
		give --max|red lq0 --rate 1gbit --min 5
		is above --max|red lq0 --rate 1gbit --min 50 --max 5
		a probability is|red lq0 --rate 1gbit --min 5 --max 50 --probability 1.5
		a probability is|red lq0 --rate 1gbit --min 5 --max 50 --probability 0.0
		must be at least 6 packets|red lq0 --rate 1gbit --min 5 --max 50 --burst 1
		do not go with --no-ecn|red lq0 --rate 1gbit --min 5 --max 50 --no-ecn --nodrop
		less than one packet|fifo lq0 --rate 1gbit --limit 100b
		not a DSCP|segregate lq0 --rate 1gbit --k 5 --dscp 64
		not a DSCP|segregate lq0 --rate 1gbit --k 5 --dscp gold
		must be 1 to 99|segregate lq0 --rate 1gbit --k 5 --share 100
		--sched: invalid choice: 'rr'|segregate lq0 --rate 1gbit --k 5 --sched rr
		--share goes with --sched ets|segregate lq0 --rate 1gbit --k 5 --sched prio --share 20
		must not be 0|dctcp lq0 --rate 1gbit --k 5 --gso-segs 0
		which device|reset
		no device 'nosuch0'|reset nosuch0
		no device 'nosuch0'|show nosuch0
		not both|reset lq0 --all
		no network namespace|show -n "nowhere"
	END
}

declare_test t_refused_host "" 'host: nonsense is refused with one line and status 2, and changes nothing'
t_refused_host() {
	refused_all <<-'END'
		no congestion control 'nosuchcc'|host nosuchcc
		is not the name|host 'x;y'
		required: CONTROL; see lowq-tc host --help|host
		not a prefix|host reno --route junk
		not a prefix|host reno --route 10.0.0.0/64
		there is no way to it|host reno --route 198.51.100.0/24
		need --route|host reno --initcwnd 10
		must not be 0|host reno --route 10.71.0.0/24 --initcwnd 0
		--rate does not go with|host reno --rate 1gbit
	END
}

declare_test t_refused_queue "" 'a queue that the kernel lacks: named, and all is as before'
t_refused_queue() {
	local before

	if have_red; then
		# A kernel with everything: let tc play one without.
		# shellcheck disable=SC2016 # the wrapper expands
		wrapped tc 'case " $* " in
			*" red limit "*) echo "Error: Specified qdisc kind is unknown." >&2; exit 2 ;; esac'
		PATH=$TMP/wrapped:$PATH
	fi
	picture before
	ends 1 "this kernel has no 'red' queue (sch_red); rolled back" dctcp lq0 --rate 1gbit --k 20
	same_picture "$before" 'after it failed'
}

# --- set, show, put back ----------------------------------------------------

round_trip() {	# DEV ROOT-KIND LEAF-KIND ARGUMENTS...: set, look, reset, compare
	local dev=$1 root=$2 leaf=$3 before tree

	shift 3
	picture before
	must "$@"
	tree=$'\n'$(tc -n "$ns" qdisc show dev "$dev")
	[[ $tree =~ $'\n'"qdisc $root "[0-9a-f]+": root " ]] || fail "$*: the root is not $root"
	[[ $tree == *"qdisc $leaf "* ]] || fail "$*: no $leaf"
	json ".[0].set and (.[0].queues | map(.kind) | index(\"$leaf\"))" show "$dev"
	gives 0 "$dev: $1" show "$dev"
	must reset "$dev"
	same_picture "$before" "after reset of '$*'"
	no_records
}

declare_test t_round_trips "D17" 'every profile and queue: set, show, reset'
t_round_trips() {
	local needs words done=0

	while IFS='|' read -r needs words; do
		# shellcheck disable=SC2086 # words are words
		have_qdisc $needs && { [[ $words != *segregate* ]] || { have_red && have_cls; }; } || continue
		# shellcheck disable=SC2086
		round_trip $words
		: $((done++))
	done <<-'END'
		htb|lq0 htb pfifo fifo lq0 --rate 1gbit
		htb|lq0 htb bfifo fifo lq0 --rate 1gbit --limit 1mb --gso-segs 1
		pfifo|lq0 pfifo pfifo fifo lq0 --no-shape
		pfifo|lqm mq pfifo fifo lqm --no-shape
		codel|lq0 htb codel dctcp lq0 --rate 1gbit --k 20 --aqm codel
		fq_codel|lq0 htb fq_codel dctcp lq0 --rate 1gbit --rtt 1ms --aqm fq_codel
		fq|lq0 htb fq dctcp lq0 --rate 1gbit --rtt 1ms --aqm fq
		fq|lqm mq fq dctcp lqm --rate 1gbit --no-shape --rtt 1ms --aqm fq
		ets bands 2|lq0 htb ets segregate lq0 --rate 1gbit --k 20
		ets bands 2|lqm mq ets segregate lqm --no-shape --k 20
		prio|lq0 htb prio segregate lq0 --rate 1gbit --k 20 --sched prio
	END
	((done >= 4)) || skip "only $done profiles here"
	must fifo lqm --no-shape
	same 4 "$(tc -n "$ns" qdisc show dev lqm | grep -c pfifo\ )" 'number of queues'
}

declare_test t_mq_grows "" 'more queues by ethtool -L: shown, set again and reset; not taken for someone else'"'"'s'
t_mq_grows() {
	local before

	command -v ethtool >/dev/null || skip 'no ethtool'
	in_ns a ethtool -L lqm tx 2 || skip 'no ethtool -L'
	before=$(tc -n "$ns" qdisc show dev lqm)
	must fifo lqm --no-shape
	in_ns a ethtool -L lqm tx 4
	checks 3 show lqm
	must fifo lqm --no-shape
	same 4 "$(tc -n "$ns" qdisc show dev lqm | grep -c pfifo\ )" 'number of queues'
	checks 0 show lqm
	must reset lqm
	in_ns a ethtool -L lqm tx 2
	must fifo lqm --no-shape
	in_ns a ethtool -L lqm tx 3
	must reset lqm
	same "$before" "$(tc -n "$ns" qdisc show dev lqm)" 'the queue'
	# a queue that the user adds there is the user's
	must fifo lqm --no-shape
	in_ns a ethtool -L lqm tx 4
	tcn qdisc add dev lqm parent 10f0:4 handle 5: pfifo limit 5
	! lt reset lqm || fail "a queue of the user's is gone: $out"
}

declare_test t_hpccpp "H19" 'hpccpp: set, show, reset; one int in each queue of a multi-queue device, one below a shaper'
t_hpccpp() {
	TC_LIB_DIR=$TMP refused "has no 'rate' for 'int': it lacks the plugin q_int.so (make install puts it in place)" \
		hpccpp lq0 --rate 10gbit
	tc_has_int
	have_qdisc int rate 1gbit || skip 'no int'
	round_trip lq0 htb int hpccpp lq0 --rate 10gbit
	round_trip lqm htb int hpccpp lqm --rate 10gbit --shape
	round_trip lqm mq int hpccpp lqm --rate 10gbit --no-shape --switch-id 7
	gives 0 "4 queues, each with an int" hpccpp lqm --rate 10gbit --no-shape --switch-id 7
	same '10f0:1 10f0:2 10f0:3 10f0:4' "$(tc -n "$ns" -j qdisc show dev lqm |
		jq -r '[.[] | select(.kind == "int" and .options.switch_id == 7).parent] | sort | join(" ")')" 'places of int'
}

declare_test t_dctcp "D1" 'dctcp on red: set, show, reset; the kernel has min = max = K, weight 1/2'
t_dctcp() {
	have_red || skip 'no red'
	round_trip lq0 htb red dctcp lq0 --rate 10gbit --rtt 100us &&
	round_trip lq0 htb red dctcp lq0 --rate 100gbit --k 200 --limit 8mb --nodrop &&
	round_trip lq0 red red dctcp lq0 --no-shape --k 20 &&
	round_trip lqm mq red dctcp lqm --no-shape --k 20
	must dctcp lq0 --rate 10gbit --rtt 100us --no-tso
	same '[63588,63588,true,1]' "$(tc -n "$ns" -d -j qdisc show dev lq0 | jq -c '.[] |
		select(.kind == "red").options | [.min, .max, .ecn, .ewma]')" 'red'
}

weights() {	# DEV: the weight of each red and gred, as the exponent of 1/2
	tc -n "$ns" -d -j qdisc show dev "$1" | jq -c '[.[].options | .ewma // empty, (.vqs // [] | .[].ewma)]'
}

shown() {	# DEV: its qdiscs, without the handles that the kernel chooses, which set the order of tc's list
	tc -n "$ns" -d -j qdisc show dev "$1" | jq -c 'sort_by(.parent)' | sed 's/"[89a-f][0-9a-f][0-9a-f][0-9a-f]:/"auto:/g'
}

declare_test t_exact "D1 L1 L9" '--exact: red and gred get weight 1, all else as tc sets it; undone like the rest; as printed by hand'
t_exact() {
	local without before profile

	have_red || skip 'no red'
	picture before
	for profile in 'dctcp lq0 --rate 10gbit --rtt 100us --nodrop' 'segregate lq0 --rate 1gbit --k 20' \
		'dctcp lqm --no-shape --k 20' 'ldcp lq0 --rate 10gbit --rtt 100us --probability 0.3' \
		'ldcp lq0 --rate 10gbit --rtt 100us --simple'; do
		# shellcheck disable=SC2086 # words are words
		lt $profile || skip "$err"
		[[ $out == *"instantaneous queue"* ]] || fail "$profile does not tell of the average"
		# shellcheck disable=SC2086
		set -- $profile
		without=$(shown "$2")
		[[ $(weights "$2") =~ ^\[1(,1)*\]$ ]] || fail "$profile: weights $(weights "$2")"
		must "$@" --exact
		[[ $out == *"looks at the queue itself"* && $out != *"instantaneous"* && $out != *"refuses"* ]] || fail "$profile --exact: $out"
		[[ $(weights "$2") =~ ^\[0(,0)*\]$ ]] || fail "$profile --exact: weights $(weights "$2")"
		same "${without//\"ewma\":1,/\"ewma\":0,}" "$(shown "$2")" "beside the weights, $profile"
		checks 0 show "$2"
		must reset "$2"
		same_picture "$before" "after reset of '$*'"
		must "$@" --exact --dry-run -q
		PATH=${LOWQ_TC%/*}:$PATH sh -e <<<"$out" || fail "as printed: $out"
		[[ $(weights "$2") =~ ^\[0(,0)*\]$ ]] || fail "$profile as printed: weights $(weights "$2")"
		tcn qdisc del dev "$2" root
		tcn qdisc del dev "$2" clsact 2>/dev/null
	done
	must dctcp lq0 --rate 1gbit --k 20
	must exact lq0 --dry-run
	same "[1]$out" "$(weights lq0)lowq-tc -n $ns exact dev lq0" 'a dry run'
	refused "what is 'lq0'?" exact lqm lq0
	must reset lq0
	refused "has no queue of lowq-tc" exact lq0
	refused "has no queue 1:" exact dev lq0 handle 1:
	refused "'one:' is not the handle of a qdisc" exact lq0 handle one:
	refused "goes with --aqm red" dctcp lq0 --rate 1gbit --k 20 --aqm codel --exact
}

declare_test t_exact_refused "" '--exact where the kernel refuses: what tc can do is set, and that is said'
t_exact_refused() {
	have_red || skip 'no red'
	python3 - "$LOWQ_TC" "$ns" >"$TMP/out" <<-'END' || fail "$(<"$TMP/out")"
		import os, sys
		sys.path.insert(0, os.path.dirname(sys.argv[1]))
		from lowq_tc import cli, exact
		exact.RTM_NEWQDISC = 250  # no message that a kernel knows
		sys.exit(cli.main(["dctcp", "lq0", "-n", sys.argv[2], "--rate", "1gbit", "--k", "20", "--exact"]))
	END
	[[ $(<"$TMP/out") == *"could not honour: --exact: this kernel refuses it"* ]] || fail "$(<"$TMP/out")"
	same '[1]' "$(weights lq0)" 'the weight'
	checks 0 show lq0
	[[ $out == *"this kernel refuses it"* ]] || fail "show: $out"
	must reset lq0
}

declare_test t_exact_marks "D1" '--exact: of packets that come at once those are marked that meet K, none other'
t_exact_marks() {
	local word marked

	have_red || skip 'no red'
	in_ns a ping -q -c 1 10.71.0.2 >/dev/null || fail 'no ping'
	for word in --exact ''; do
		# shellcheck disable=SC2086
		must dctcp lq0 --rate 1mbit --k 5 --gso-segs 1 $word
		in_ns a python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 1, 2);
[s.sendto(bytes(1472), ("10.71.0.2", 9)) for at in range(20)]'	# TOS 2: ECT(0)
		marked=$(counter .marked)
		# htb lets the first two out at once; the n-th meets n - 3
		[[ $word ]] && same 13 "$marked" 'packets that meet 5 others'
		[[ $word ]] || ((marked < 13)) || fail "the average of tc marks them all: $marked"
	done
}

declare_test t_red_probability "" 'red: a probability of 1 arrives as 1'
t_red_probability() {
	have_red || skip 'no red'
	must red lq0 --rate 10gbit --min 10 --max 30 --probability 1
	same 1 "$(tc -n "$ns" -d -j qdisc show dev lq0 | jq '.[] | select(.kind == "red").options.probability')" \
		probability
	# thresholds around which tc's estimate of the weight fails
	local q

	for q in '1 1' '1 100' '2 3' '100b 200b' '1000 4000'; do
		must red lq0 --rate 10gbit --min "${q% *}" --max "${q#* }" --no-rehearsal
	done
	for q in 1 1515b 4000b 5000; do
		must dctcp lq0 --rate 10gbit --k "$q" --no-rehearsal
		same 1 "$(tc -n "$ns" -d -j qdisc show dev lq0 | jq '.[] | select(.kind == "red").options.ewma')" \
			"weight for K $q"
	done
}

declare_test t_again "" 'set again: what was there first is what comes back; reset twice is harmless'
t_again() {
	local before

	picture before
	must fifo lq0 --rate 1gbit --gso-segs 1
	must fifo lq0 --rate 2gbit
	must fifo lq0 --rate 2gbit --gso-segs 4
	must fifo lq0 --no-shape
	must reset lq0
	same_picture "$before" 'after reset'
	gives 0 "nothing to undo" reset lq0
	same_picture "$before" 'after a second reset'
	must fifo lq0 --rate 1gbit
	must fifo lqm --no-shape
	must reset --all
	same_picture "$before" 'after reset --all'
}

declare_test t_foreign "" 'a change by someone else is noticed: reset leaves it alone'
t_foreign() {
	must fifo lq0 --rate 1gbit
	tcn qdisc del dev lq0 root
	tcn qdisc add dev lq0 root handle 5: pfifo limit 55
	gives 0 "someone else changed it" show lq0
	must reset lq0
	[[ $(tc -n "$ns" qdisc show dev lq0) == *"pfifo 5:"*"limit 55p"* ]] || fail 'the pfifo is gone'
	refused "has a queue that lowq-tc did not make, 'pfifo'" fifo lq0 --rate 2gbit
	tcn qdisc del dev lq0 root
	# a device that went away, and another one of the same name
	must fifo lq0 --rate 1gbit
	ipn link del dev lq0
	gives 0 "is gone" reset lq0
}

declare_test t_check "" 'show --check, host show --check: status 3 if anything differs from what was set'
t_check() {
	checks 0 show
	checks 0 host show
	must fifo lq0 --rate 1gbit
	checks 0 show
	checks 0 show lq0
	tcn qdisc del dev lq0 root
	checks 3 show
	checks 3 show lq0 --json
	jq -e '.[0].changed_since' <<<"$out" >/dev/null || fail "no JSON: $out"
	checks 0 show lqm
	must reset lq0
	checks 0 show
	must host reno --route 10.71.0.0/24 --initcwnd 9
	checks 0 host show
	ipn route replace 10.71.0.0/24 dev lq0 scope link src 10.71.0.1
	checks 3 host show
	checks 3 host show -q
	[[ ! $out ]] || fail "-q: $out"
	! lt host reset || fail 'reset: says that all is put back'
	[[ $err == *" dev lq0 "* && $err != *"#"* ]] || fail "names no device: $err"
	must host reset --force
	checks 0 host show
}

declare_test t_out_of_date "" 'show says when the thresholds were computed for another MTU, or with TSO that is off now'
t_out_of_date() {
	must dctcp lq0 --rate 10gbit --rtt 100us --dry-run --json
	[[ $(jq .params.k_packets <<<"$out") == 55 ]] || skip 'no TSO on veth'
	have_red || skip 'no red'
	must dctcp lq0 --rate 10gbit --rtt 100us
	checks 0 show lq0
	ipn link set dev lq0 mtu 9000
	checks 3 show lq0
	[[ $out == *"out of date: computed for an MTU of 1500, which is 9000 now; set it again"* ]] || fail "$out"
	must dctcp lq0 --rate 10gbit --rtt 100us
	checks 0 show lq0
	command -v ethtool >/dev/null || return 0
	in_ns a ethtool -K lq0 tso off
	checks 3 show lq0
	[[ $out == *"out of date: computed for TSO on, which is off now; set it again"* ]] || fail "$out"
	gives 0 "TSO is off on lq0" dctcp lq0 --rate 10gbit --rtt 100us
	checks 0 show lq0
	must reset lq0
}

# --- failure half-way -------------------------------------------------------

# A tc, ip and sysctl that fail at the change whose number is in the file n.
failing() {
	local tool

	for tool in tc ip sysctl; do
		# shellcheck disable=SC2016 # the wrapper expands
		wrapped "$tool" 'case " $* " in
			*" show "* | *" help "* | *" -n net."* | *" get "*) ;;
			*" netns exec "*" sysctl -q -w "*) ;;
			*" add "* | *" del "* | *" replace "* | *" set "* | *" -w "*)
				read -r n <$TMP/n
				echo $((--n)) >$TMP/n
				if ((n == 0)); then echo "made to fail" >&2; exit 1; fi
			esac'
	done
}

# Every command of the plan fails once; each time all is as before.
fails_everywhere() {	# ARGUMENTS...
	local n=0 before

	failing
	picture before
	while ((++n < 20)); do
		echo "$n" >"$TMP/n"
		if PATH=$TMP/wrapped:$PATH lt "$@" --no-rehearsal; then
			((n > 2)) || fail "'$*' never failed"
			return
		fi
		[[ $rc == 1 ]] || fail "command $n: exit status $rc: $err"
		[[ $err == *"made to fail; rolled back to what was there before" ]] ||
			fail "command $n: $err"
		same_picture "$before" "after command $n failed"
	done
	fail 'does not end'
}

declare_test t_rollback "" 'a failing command is rolled back, whichever it is'
t_rollback() {
	fails_everywhere fifo lq0 --rate 1gbit --gso-segs 1
	# over an earlier one of ours: that one comes back
	fails_everywhere fifo lq0 --rate 2gbit
	fails_everywhere fifo lqm --no-shape
	must reset --all
}

declare_test t_rollback_host "" 'host: a failing command is rolled back, whichever it is'
t_rollback_host() {
	ipn route add default via 10.71.0.2
	fails_everywhere host reno --default --route 10.71.0.0/24 --route fd71::/64 --route default \
		--route 10.99.0.0/16
	fails_everywhere host cubic --route 10.71.0.0/24 --route 10.99.0.0/16 --initcwnd 20
}

declare_test t_killed "" 'killed half-way: the record is there already, and reset puts back'
t_killed() {
	local before

	picture before
	# shellcheck disable=SC2016 # the wrapper expands
	wrapped tc 'case " $* " in *" class add "*) kill -KILL $caller; exit 1 ;; esac'
	PATH=$TMP/wrapped:$PATH lt fifo lq0 --rate 1gbit --no-rehearsal
	expect "status" "$rc" -eq 137
	gives 0 "cut short" show
	must reset lq0
	same_picture "$before" 'after reset'
}

# --- traffic ----------------------------------------------------------------

traffic() {	# IPERF3-ARGUMENTS...
	command -v iperf3 >/dev/null || skip 'no iperf3'
	local tries

	in_ns b iperf3 -s -1 -D >/dev/null 2>&1
	sleep 0.5	# the new devices' MLD reports go first: they are Not-ECT
	for ((tries = 0; tries < 50; tries++)); do
		[ -z "$(in_ns b ss -Hltn 'sport = :5201')" ] || break
		# the server before may still have had the port
		((tries % 10 != 9)) || in_ns b iperf3 -s -1 -D >/dev/null 2>&1
		sleep 0.1
	done
	# Several flows: the queue of a single one at its own sender is kept
	# short by TSQ.
	in_ns a timeout 60 iperf3 -t 1 -P 4 "$@" >"$TMP/iperf3" 2>&1 ||
		fail "iperf3: $(grep -i error "$TMP/iperf3")"
}

# 400 datagrams of 1400 bytes without ECN, as fast as they can be written.
datagrams() {
	# shellcheck disable=SC2016
	in_ns a bash -c 'exec 3>/dev/udp/10.71.0.2/9
		for ((i = 0; i < 400; i++)); do printf %1400s >&3; done' 2>/dev/null
	sleep 0.5
}

counter() {	# JQ-FILTER on the device's JSON
	lt show lq0 --json
	jq ".[0] | $1" <<<"$out"
}

declare_test t_alias "" "an alias with control characters, which ip does not escape in its JSON: no device suffers"
t_alias() {
	local alias

	must fifo lq0 --no-shape
	for alias in $'rack\t7' $'rack 7\r' $'\e[31mred' $'f\xfcr Rack 7' 'a "rack"'; do
		ipn link set lqm alias "$alias"
		checks 0 show
		must fifo lqm --no-shape --dry-run
	done
	must reset lq0
}

declare_test t_busybox "" "busybox's ip and tc first in PATH: those of iproute2 are used, or named as missing"
t_busybox() {
	local tool

	mkdir "$TMP/bb"
	: >"$TMP/bb/busybox"
	chmod +x "$TMP/bb/busybox"
	for tool in ip tc; do
		ln -s busybox "$TMP/bb/$tool"
	done
	PATH=$TMP/bb:$PATH must host reno --route 10.71.0.0/24
	PATH=$TMP/bb:$PATH must host reset
	PATH=$TMP/bb:$PATH must fifo lq0 --no-shape
	PATH=$TMP/bb:$PATH must reset lq0
}

declare_test t_in_container "" "in a namespace that may not load modules: says which module to load, and where"
t_in_container() {
	grep -q '^tcp_prague ' /proc/modules && { modprobe -r tcp_prague 2>/dev/null || skip 'prague is in use'; }
	modprobe -n -q tcp_prague || skip 'no tcp_prague'
	! in_ns a setpriv --bounding-set -sys_module "$LOWQ_TC" host prague --default >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
	[[ $(<"$TMP/out") == *"'modprobe tcp_prague' fails here"*"first namespace"* ]] || fail "$(<"$TMP/out")"
	# root of the machine: it is loaded, and not restricted
	must host prague --default
	[[ $out != *restricted* ]] || fail "restricted: $out"
	must host reset
}

declare_test t_counted "" "what each queue that a profile makes has marked and dropped, read without tc: DualPI2's marks, too; for Prometheus"
t_counted() {
	local profile tried=0

	in_ns a sysctl -qw net.ipv4.tcp_ecn=1
	in_ns b sysctl -qw net.ipv4.tcp_ecn=1
	in_ns a sysctl -qw net.ipv6.conf.lq0.disable_ipv6=1
	for profile in 'prague' 'prague --aqm fq_codel --step 10us' 'dctcp --k 3' 'dctcp --k 3 --aqm codel' 'dctcp --k 3 --aqm fq_codel' \
		'dctcp --k 3 --aqm fq' 'ldcp --min 2 --max 3 --limit 100' 'segregate --k 3 --dscp 0' 'red --min 2 --max 3 --probability 1'; do
		# shellcheck disable=SC2086 # words are words
		lt ${profile%% *} lq0 --rate 10mbit --gso-segs 1 ${profile#"${profile%% *}"} || continue
		# 60 packets at once, with ECT(1) and ECT(0)
		in_ns a python3 -c 'import socket
for tos in 1, 2:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 1, tos)
    [s.sendto(bytes(1400), ("10.71.0.2", 9)) for at in range(30)]'
		sleep 0.2
		(($(counter .marked) > 0)) || fail "$profile: nothing marked: $out"
		[[ $(tcn -s qdisc show dev lq0 root) == *" $(counter '.queues[] | select(.place == "root").packets') pkt "* ]] ||
			fail "$profile: not as many packets as tc shows: $out, $(tcn -s qdisc show dev lq0 root)"
		: $((tried++))
		PATH='' must show --prometheus
		[[ $out =~ lowq_queue_marked_packets\{[^}]*device=\"lq0\"[^}]*\}\ [1-9] ]] || fail "$profile: $out"
		[[ $profile != prague ]] || [[ $out == *'kind="dualpi2",place="10f0:1",class="L4S"} 30'* ]] ||
			fail "classes: $out"
	done
	((tried > 3)) || skip "only $tried profiles here"
}

marks() {	# ARGUMENTS of dctcp
	in_ns a sysctl -q -w net.ipv4.tcp_ecn=1
	in_ns b sysctl -q -w net.ipv4.tcp_ecn=1
	# neither MLD reports nor router solicitations: above K what is Not-ECT is dropped
	in_ns a sysctl -q -w net.ipv6.conf.lq0.disable_ipv6=1
	must dctcp lq0 "$@"
	traffic -c 10.71.0.2
	(($(counter .marked) > 0)) || fail "$*: nothing marked: $out"
	(($(counter '[.queues[].packets] | max') > 1000)) || fail "$*: hardly a packet counted: $out"
}

declare_test t_marks_red "D1" 'TCP with ECN is marked by red at K, not dropped'
t_marks_red() {
	have_red || skip 'no red'
	marks --rate 50mbit --k 10 --gso-segs 1
	same 0 "$(counter .dropped)" 'packets dropped'
}

declare_test t_marks "" 'TCP with ECN is marked by codel, fq_codel and fq'
t_marks() {
	local aqm done=0

	for aqm in codel fq_codel fq; do
		have_qdisc "$aqm" || continue
		marks --rate 50mbit --k 10 --gso-segs 1 --aqm "$aqm"
		: $((done++))
	done
	((done)) || skip 'none of them'
}

declare_test t_drops_not_ect "" 'Not-ECT is dropped above K, and let pass with --nodrop'
t_drops_not_ect() {
	have_red || skip 'no red'
	must dctcp lq0 --rate 20mbit --k 10
	datagrams
	same 0 "$(counter .marked)" 'packets marked'
	(($(counter '[.queues[].dropped] | max') > 100)) || fail "hardly a packet dropped: $out"
	must dctcp lq0 --rate 20mbit --k 10 --nodrop --limit 40mb
	datagrams
	same 0 "$(counter '[.queues[].dropped] | max')" 'packets dropped with --nodrop'
}

declare_test t_segregates "D17" 'the DSCP has its queue, IPv4 and IPv6; ARP and the rest go to the other'
t_segregates() {
	local sched=ets at

	have_red || skip 'no red'
	have_cls || skip 'no u32'
	have_qdisc ets bands 2 || sched=prio
	have_qdisc prio || [[ $sched == ets ]] || skip 'neither ets nor prio'
	# Without the DSCP first: what an earlier flow with it still sends would
	# be counted, too.
	for at in 10.71.0.2 fd71::2; do
		must segregate lq0 --rate 50mbit --k 20 --sched "$sched"
		ipn neigh flush dev lq0
		traffic -c "$at"
		same 0 "$(counter '.queues[] | select(.place == "10f1:1").packets')" \
			"$at: the number of packets without the DSCP in its queue"
		(($(counter '.queues[] | select(.place == "10f1:2").packets') > 1000)) ||
			fail "$at: the rest is not in its queue: $out"
	done
	for at in 10.71.0.2 fd71::2; do
		must segregate lq0 --rate 50mbit --k 20 --sched "$sched"
		traffic -c "$at" -S 0x28
		(($(counter '.queues[] | select(.place == "10f1:1").packets') > 1000)) ||
			fail "$at: packets with the DSCP are not in its queue: $out"
	done
}

# --- host -------------------------------------------------------------------

declare_test t_host_default "D11" 'host --default: sysctls set, shown, put back'
t_host_default() {
	local before control=reno

	[[ $(in_ns a sysctl -n net.ipv4.tcp_congestion_control) != reno ]] || control=cubic
	picture before
	must host "$control" --default
	same "$control" "$(in_ns a sysctl -n net.ipv4.tcp_congestion_control)" 'the default'
	must host show
	[[ $out == *"tcp_congestion_control from"*"to $control"* ]] || fail "host show: $out"
	must host reset
	same_picture "$before" 'after host reset'
	gives 0 "nothing to undo" host reset
}

declare_test t_host_route "D11" 'host --route: routes changed, added and put back, IPv4 and IPv6'
t_host_route() {
	local before r several=()

	ipn route add default via 10.71.0.2
	ipn -6 route add default via fd71::2
	ipn route add 10.72.0.0/16 via 10.71.0.2 proto static metric 7 mtu 1400 initcwnd 5
	if ipn route add 10.73.0.0/16 proto static nexthop via 10.71.0.2 dev lq0 weight 1 \
		nexthop via 10.71.0.3 dev lq0 weight 2 2>/dev/null; then
		several=(--route 10.73.0.0/16)
	fi
	picture before
	must host reno "${several[@]}" --route 10.71.0.0/24 --route default --route 10.72.0.0/16 \
		--route 10.99.0.0/16 --route fd71::/64 --route ::/0 --route fd99::/32 \
		--initcwnd 33 --initrwnd 44 --quickack
	for r in '-4 10.71.0.0/24' '-4 default' '-4 10.72.0.0/16' '-4 10.99.0.0/16' \
		 '-6 fd71::/64' '-6 ::/0' '-6 fd99::/32'; do
		# shellcheck disable=SC2086
		[[ $(ip -n "$ns" ${r% *} route show exact ${r#* }) == *"initcwnd 33"*"initrwnd 44"*"congctl reno"* ]] ||
			fail "route $r: $(ip -n "$ns" ${r% *} route show exact ${r#* })"
	done
	[[ $(ip -n "$ns" route show exact 10.72.0.0/16) == *"proto static metric 7"*"mtu 1400"* ]] ||
		fail "10.72.0.0/16 lost something: $(ip -n "$ns" route show exact 10.72.0.0/16)"
	# another control on top starts from what was there before
	must host cubic --route 10.72.0.0/16 --route 10.99.0.0/16
	[[ $(ip -n "$ns" route show exact 10.72.0.0/16) == *"initcwnd 5"*"congctl cubic"* ]] ||
		fail "second control: $(ip -n "$ns" route show exact 10.72.0.0/16)"
	must host reset
	[[ $out$err != *"dev #"* ]] || fail "a device by its index: $out$err"
	same_picture "$before" 'after host reset'
}

# used ADDRESS [FROM [DEVICE]]: the control of a socket of a that is connected to it
used() {
	in_ns a python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
s.setblocking(False)
if len(sys.argv) > 3: s.setsockopt(1, 25, sys.argv[3].encode())
s.bind((sys.argv[2] if len(sys.argv) > 2 else "", 0))
s.connect_ex((sys.argv[1], 9))
print(s.getsockopt(6, 13, 16).split(b"\0")[0].decode())' "$@"
}

# by_rules WHAT [FROM [DEVICE]]: "host --route" reaches such a socket, says so, and is undone
by_rules() {
	local before

	picture before
	must host reno --route 10.99.0.0/16
	[[ $out != *"without effect"* ]] || fail "$1: $out"
	same reno "$(used 10.99.0.1 "${@:2}")" "the control, $1"
	same reno "$(used 10.99.0.1 10.71.0.1)" "the control from this address, $1"
	checks 0 host show
	must host reset
	same_picture "$before" "$1, after host reset"
}

declare_test t_host_rules "" 'host --route under policy routing: in the tables to which the rules lead, also of a VRF, and the effect is checked'
t_host_rules() {
	in_ns a sysctl -qw net.ipv4.tcp_congestion_control=cubic
	ipn route add default via 10.71.0.2
	ipn -b - <<-END
		route add default via 10.71.0.2 dev lq0 table 100
		route add default via 10.71.0.2 dev lq0 table 101
		rule add pref 1000 from all lookup 100
	END
	by_rules 'a table of its own for all'
	ipn rule del pref 1000
	ipn rule add pref 1001 from 10.71.0.1 lookup 100
	ipn rule add pref 1002 fwmark 7 lookup 101
	by_rules 'by source and mark'
	must host reno --route 10.99.0.0/16
	same 3 "$(ipn route show table all 10.99.0.0/16 | grep -c 'congctl reno')" 'routes in three tables'
	# someone takes one away: that is seen, and the rest goes
	ipn route del 10.99.0.0/16 table 100
	checks 3 host show
	[[ $out == *"from 10.71.0.1: default in table 100 comes first"* ]] || fail "which lookup: $out"
	must host reset
	same 0 "$(ipn route show table all 10.99.0.0/16 | wc -l)" 'routes that are left'
	# a rule that leads nowhere, and one of an address that is elsewhere
	ipn rule del pref 1001
	ipn rule add pref 1001 from 10.71.0.1 lookup 77
	ipn rule add pref 1003 from 192.0.2.9 lookup 78
	by_rules 'a rule that leads nowhere'
	# no default route in main, as with a VPN's client
	ipn route del default
	ipn rule add pref 1000 from all lookup 100
	by_rules 'nothing in main'
	ipn rule del pref 1000
	ipn rule del pref 1002
	ipn -b - <<-END
		route add 0.0.0.0/1 via 10.71.0.2
		route add 128.0.0.0/1 via 10.71.0.2
	END
	refused 'narrower routes come first everywhere: 0.0.0.0/1' host reno --route default
	ipn link add blue type vrf table 200 2>/dev/null || skip 'no VRF'
	ipn -b - <<-END
		link set blue up
		link set lq0 master blue
		route add default via 10.71.0.2 dev lq0 table 200
	END
	# and one without a table of its own: nothing leads there
	ipn link add void type vrf table 201
	ipn link set void up
	must host reno --route 10.99.0.0/16
	same reno "$(used 10.99.0.1 10.71.0.1 blue)" 'the control in the VRF'
	same 0 "$(ipn route show table 201 10.99.0.0/16 2>/dev/null | wc -l)" 'routes in the empty VRF'
	checks 0 host show
	must host reset
}

declare_test t_host_foreign "" 'host reset leaves alone what someone else changed since; --force does not'
t_host_foreign() {
	local before other

	# neither what was there before nor what lowq-tc sets
	before=$(in_ns a sysctl -n net.ipv4.tcp_congestion_control)
	for other in bbr cubic none; do
		[[ $other != "$before" ]] &&
			in_ns a sysctl -q -w net.ipv4.tcp_congestion_control="$other" 2>/dev/null && break
	done
	[[ $other != none ]] || skip 'no third congestion control'
	in_ns a sysctl -q -w net.ipv4.tcp_congestion_control="$before"
	must host reno --default
	must host reno --route 10.71.0.0/24
	in_ns a sysctl -q -w net.ipv4.tcp_congestion_control="$other"
	ipn route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1 mtu 1300
	ends 1 "changed by someone else" host reset
	[[ $err == *"changed by someone else"*"changed by someone else"* ]] || fail "host reset: $err"
	[[ $(ip -n "$ns" route show exact 10.71.0.0/24) == *"mtu 1300"* ]] || fail 'the route was touched'
	must host reset --force
	[[ $(ip -n "$ns" route show exact 10.71.0.0/24) != *"mtu 1300"* ]] || fail '--force left the route'
}

declare_test t_host_dctcp "D11" 'host dctcp: ECN asked for, allowed for all, per route, put back'
t_host_dctcp() {
	local before

	[[ " $(in_ns a sysctl -n net.ipv4.tcp_available_congestion_control) " == *" dctcp "* ]] ||
		modprobe -q tcp_dctcp 2>/dev/null || skip 'no dctcp'
	[[ $(stat -c %a /proc/sys/net/ipv4/tcp_allowed_congestion_control) == 644 ]] ||
		skip 'not in the first namespace'
	picture before
	must host dctcp
	same 1 "$(in_ns a sysctl -n net.ipv4.tcp_ecn)" tcp_ecn
	[[ " $(sysctl -n "$allowed_key") " == *" dctcp "* ]] || fail 'not allowed'
	must host dctcp --default --route 10.71.0.0/24
	same dctcp "$(in_ns a sysctl -n net.ipv4.tcp_congestion_control)" 'the default'
	[[ $(ip -n "$ns" route show exact 10.71.0.0/24) == *"features ecn"*"congctl dctcp"* ]] ||
		fail "route: $(ip -n "$ns" route show exact 10.71.0.0/24)"
	must host reset
	same_picture "$before" 'after host reset'
}

# --- around it --------------------------------------------------------------

declare_test t_installed "" 'works from an installed layout and through a link'
t_installed() {
	local out

	mkdir -p "$TMP/usr/bin" "$TMP/usr/share/lowq"
	cp "$LOWQ_TC" "$TMP/usr/bin/lowq-tc"
	cp -r "${LOWQ_TC%/*}"/lowq_{common,tc} "$TMP/usr/share/lowq/" 2>/dev/null ||
		skip 'profiles are elsewhere'
	ln -s "$TMP/usr/bin/lowq-tc" "$TMP/link"
	out=$("$TMP/usr/bin/lowq-tc" list)
	[[ $out == *dctcp* ]] || fail "installed: $out"
	out=$("$TMP/link" list)
	[[ $out == *dctcp* ]] || fail "link: $out"
}

declare_test t_units "" 'systemd units: valid; what they start sets, what they stop puts back'
t_units() {
	local before unit

	[[ -e $LOWQ_ROOT/debian/rules ]] || skip 'no units here'
	for unit in lowq-tc@ lowq-tc-host lowq-tc-apply; do
		sed "s|/usr/sbin/lowq-tc|$LOWQ_TC|; s|/etc/lowq|$TMP/lowq|" "$LOWQ_ROOT/debian/lowq-tools.$unit.service" >"$TMP/$unit.service"
		! command -v systemd-analyze >/dev/null ||
			systemd-analyze verify --man=no "$TMP/$unit.service" >"$TMP/verify" 2>&1 && [[ ! -s $TMP/verify ]] ||
			fail "$unit: $(<"$TMP/verify")"
	done
	picture before
	mkdir "$TMP/lowq"
	unit lowq-tc@ ExecStart lq0 'LOWQ_TC="fifo --rate 1gbit"' || fail "start: $(<"$TMP/err")"
	[[ $(tc -n "$ns" qdisc show dev lq0) == *"htb 10f0:"* ]] || fail 'the queue is not set'
	unit lowq-tc@ ExecStop || fail "stop: $(<"$TMP/err")"
	same_picture "$before" 'after the stop'
	# a speed that is not known yet: systemd tries again after a failure
	! unit lowq-tc@ ExecStart lq0 'LOWQ_TC="dctcp --rtt 100us"' || fail 'set without a speed'
	grep -q '^Restart=on-failure' "$TMP/lowq-tc@.service" || fail 'not tried again'
	unit lowq-tc-host ExecStart host 'LOWQ_HOST="reno --default --route 10.71.0.0/24"' || fail "start: $(<"$TMP/err")"
	[[ $(ip -n "$ns" route show) == *"congctl reno"* ]] || fail 'the route is not set'
	unit lowq-tc-host ExecStop || fail "stop: $(<"$TMP/err")"
	rm "$TMP/lowq/lq0.conf"
	unit lowq-tc-apply ExecStart host '# nothing' || fail "apply: $(<"$TMP/err")"
	same_picture "$before" 'after the stop of the host'
}

# Runs a line of a unit as systemd does
unit() {	# UNIT KEY [FILE LINE]
	[[ $# -lt 4 ]] || echo "$4" >"$TMP/lowq/$3.conf"
	in_ns a sh -c "$(sed -n "s/^$2=//p" "$TMP/$1.service" | sed 's/%I/lq0/')" >/dev/null 2>"$TMP/err" ||
		grep -q "^SuccessExitStatus=$?$" "$TMP/$1.service"
}

# maintainer SCRIPT ARGUMENT: as dpkg runs it, with an /etc and a /run/lowq of our own
maintainer() {
	local records=$LOWQ_STATE_DIR

	# shellcheck disable=SC2016
	env -u LOWQ_STATE_DIR PATH="${LOWQ_TC%/*}:$PATH" unshare -m bash -c '
		mount --bind "$2" /etc || exit 9
		case $3 in *prerm) mkdir -p /run/lowq && mount --bind "$1" /run/lowq || exit 9 ;; esac
		sh "$3" "$4"' - "$records" "$TMP/etc" "$LOWQ_ROOT/debian/lowq-tools.$1" "$2" >"$TMP/said" 2>&1
}

declare_test t_package "" 'removal of the package puts everything back or is refused in one line; purge leaves nothing'
t_package() {
	local before

	[[ -e $LOWQ_ROOT/debian/rules ]] || skip 'no package here'
	unshare -m true && [[ ${LOWQ_TC##*/} == lowq-tc ]] || skip 'no mount namespaces'
	! compgen -G '/run/lowq/*.json' >/dev/null || skip 'lowq-tc is in use'
	picture before
	must fifo lq0 --rate 1gbit --gso-segs 2
	must host reno --route 10.71.0.0/24 --initcwnd 9
	mkdir -p "$TMP"/etc/lowq "$TMP"/etc/systemd/system/{net.device,multi-user.target}.wants
	touch "$TMP/etc/lowq/eth0.conf" "$TMP/etc/systemd/system/multi-user.target.wants/other.service"
	ln -s /usr/lib/systemd/system/lowq-tc@.service "$TMP/etc/systemd/system/net.device.wants/lowq-tc@eth0.service"
	ln -s /usr/lib/systemd/system/lowq-tc.service "$TMP/etc/systemd/system/multi-user.target.wants/"
	ln -s /usr/lib/systemd/system/lowq-tc-host.service "$TMP/etc/systemd/system/multi-user.target.wants/"
	# "make uninstall"; the modules of this machine are none of it
	# shellcheck disable=SC2016
	! unshare -m bash -c '{ [ ! -d /lib/modules ] || mount -t tmpfs none /lib/modules; } && mkdir -p /run/lowq && mount --bind "$1" /run/lowq &&
		"$2/scripts/install.sh" uninstall "" /no/where' - "$LOWQ_STATE_DIR" "$LOWQ_ROOT" >"$TMP/said" 2>&1 ||
		fail "uninstalled, and a queue is set"
	[[ $(<"$TMP/said") == "install.sh: not removed: lowq-tc has set something"* ]] || fail "said: $(<"$TMP/said")"
	maintainer prerm upgrade || fail "upgrade: $(<"$TMP/said")"
	must show lq0 --check
	# what someone else has changed since
	ipn link set lq0 gso_max_segs 7
	! maintainer prerm remove || fail 'removed, and a queue is not as it was'
	[[ $(<"$TMP/said") == "lowq-tools: not removed: "*"changed by someone else"* && $(wc -l <"$TMP/said") == 1 ]] ||
		fail "said: $(<"$TMP/said")"
	must reset lq0 --force
	must fifo lq0 --rate 1gbit
	touch "/run/netns/${NSP}gone"	# a name without a namespace
	maintainer prerm remove || fail "remove: $(rm "/run/netns/${NSP}gone"; cat "$TMP/said")"
	rm "/run/netns/${NSP}gone"
	same_picture "$before" 'after the removal'
	maintainer postrm remove || fail "postrm: $(<"$TMP/said")"
	[[ -e $TMP/etc/lowq/eth0.conf ]] || fail 'removal takes the configuration, too'
	maintainer postrm purge || fail "purge: $(<"$TMP/said")"
	[[ ! -e /run/lowq ]] || fail 'purge leaves /run/lowq'
	same "$TMP/etc/systemd/system/multi-user.target.wants/other.service" "$(find "$TMP/etc" ! -type d)" 'what purge leaves'
	rm -rf "${TMP:?}/etc"
}

declare_test t_prague "" 'prague: a longer step and target at slow rates; --varying: 10 ms; all as given where given'
t_prague() {
	# two packets of 1514 bytes: 6056 us at 4 Mb/s, 24224 at 1; with dualpi2 1.5: 4542 us, and less than 1 ms from
	# 18.2 Mb/s on; a target of two: 48448 us at 500 kb/s
	each gives 0 <<-'END'
		 ce_threshold 6056us|prague lq0 --aqm fq_codel --rate 4mbit --dry-run
		 ce_threshold 1000us|prague lq0 --aqm fq_codel --rate 100mbit --dry-run
		 ce_threshold 2000us|prague lq0 --aqm fq_codel --rate 4mbit --step 2ms --dry-run
		 ce_threshold 10000us|prague lq0 --aqm fq_codel --rate 20mbit --varying --dry-run
		 ce_threshold 24224us|prague lq0 --aqm fq_codel --rate 1mbit --varying --dry-run
		 --varying |prague --help
	END
	refused '--varying sets the step' prague lq0 --rate 20mbit --varying --step 2ms --dry-run
	[[ ! -e $BIN/q_dualpi2.so ]] || export TC_LIB_DIR=$BIN
	tc qdisc add dev lo root dualpi2 help 2>&1 | grep -q step_thresh || skip 'this tc does not know dualpi2'
	each gives 0 <<-'END'
		 dualpi2 step_thresh 4542us min_qlen_step 1|prague lq0 --rate 4mbit --dry-run -q
		 dualpi2 min_qlen_step 1|prague lq0 --rate 20mbit --dry-run -q
		 dualpi2 step_thresh 2000us|prague lq0 --rate 4mbit --step 2ms --dry-run -q
		 dualpi2 step_thresh 4542us min_qlen_step 3|prague lq0 --rate 4mbit --step-min 3 --dry-run -q
		 target 48448us|prague lq0 --rate 500kbit --dry-run -q
		 target 20000us|prague lq0 --rate 500kbit --target 20ms --dry-run -q
	END
	gives 0 " dualpi2" prague lq0 --rate 25mbit --dry-run -q
	[[ $out == *" dualpi2" ]] || fail "dualpi2 at 25 Mb/s: $out"
}

declare_test t_plugin "" 'commands that need a plugin of tc run as printed'
t_plugin() {
	local printed

	[[ -e $BIN/q_dualpi2.so ]] || skip 'no plugin here'
	have_qdisc dualpi2 || skip 'no dualpi2'
	! tc qdisc add dev lo root dualpi2 help 2>&1 | grep -q step_thresh || skip 'this tc knows dualpi2'
	mkdir -p "$TMP/plug/bin" "$TMP/plug/share/lowq" "$TMP/plug/lib/lowq"
	cp "$LOWQ_TC" "$TMP/plug/bin/lowq-tc"
	cp -r "${LOWQ_TC%/*}"/lowq_{tc,common} "$TMP/plug/share/lowq/"
	cp "$BIN/q_dualpi2.so" "$TMP/plug/lib/lowq/"
	printed=$("$TMP/plug/bin/lowq-tc" -n "$ns" prague lq0 --rate 100mbit --step 500us --dry-run -q)
	[[ $printed == *"TC_LIB_DIR=$TMP/plug/lib/lowq tc "*"step_thresh 500us"* ]] || fail "printed: $printed"
	sh -e <<<"$printed" || fail "as printed: $printed"
	[[ $(TC_LIB_DIR=$BIN tc -n "$ns" qdisc show dev lq0) == *"step_thresh 500us"* ]] ||
		fail "tc shows: $(TC_LIB_DIR=$BIN tc -n "$ns" qdisc show dev lq0)"
}

declare_test t_generated "" 'generated options: the dry run is what the kernel has then; numbers are those that were meant'
t_generated() {
	[[ ${FULL:-} ]] || skip 'takes minutes: FULL=1'
	export LOWQ_TC
	[[ ! -e $BIN/q_dualpi2.so ]] || export TC_LIB_DIR=$BIN
	unshare -n python3 "$SELFTESTS/programs/lowq_tc_generated.py" 100 >"$TMP/generated" 2>&1
	case $? in
	0) cat "$TMP/generated" >&3 ;;
	4) skip "$(<"$TMP/generated")" ;;
	*) fail "$(<"$TMP/generated")" ;;
	esac
}

declare_test t_schema "" 'JSON: every key is in the manual, and every key of the manual is printed'
t_schema() {
	local man=$LOWQ_ROOT/man/lowq-tc.8

	[[ -e $man ]] || skip 'no manual here'
	sed -n '/^\.Ss JSON/,/^\.Sh/s/^\.\(It \)\?Va //p' "$man" | tr -s ' ,.' '\n' | sort -u >"$TMP/documented"
	{
		must fifo lq0 --rate 1gbit --dry-run --json && jq 'keys[]' <<<"$out"
		must fifo lq0 --rate 1gbit && must show --json && jq '.[] | keys[], (.queues[] | keys[])' <<<"$out"
		if have_red; then
			must ldcp lq0 --rate 1gbit --rtt 100us && must show --json && jq '.[].queues[] | keys[]' <<<"$out"
			must dctcp lq0 --rate 1gbit --k 20 && must show --json && jq '.[].queues[] | keys[]' <<<"$out"
		fi
		must reset --all --json && jq 'keys[], (.devices[] | keys[])' <<<"$out"
		echo 'LOWQ_TC="fifo --rate 1gbit"' >"$TMP/lq0.conf"
		lt apply --dry-run --json "$TMP/lq0.conf"	# status 4: it would change something
		jq 'keys[], (.results[] | keys[])' <<<"$out"
		must host reno --route 10.71.0.0/24 --json && jq 'keys[]' <<<"$out"
		must host show --json && jq 'keys[], (.changes[] | keys[])' <<<"$out"
		must host reset --json && jq 'keys[]' <<<"$out"
		must list --json && jq 'keys[], (.profiles[], .controls[] | keys[])' <<<"$out"
	} | tr -d '"' | sort -u >"$TMP/printed"
	same "$(<"$TMP/documented")" "$(<"$TMP/printed")" 'what is documented'
}

declare_test t_documented "" 'every option is in the manual and in --help'
t_documented() {
	local man=$LOWQ_ROOT/man/lowq-tc.8 help items o

	[[ -e $man ]] || skip 'no manual here'
	items=$(grep '^\.It.*Fl Fl ' "$man")
	for o in "" dctcp hpccpp prague red segregate ldcp host reset show apply save; do
		lt ${o:+"$o"} --help || fail "$o --help gave $rc"
		help+=$out
	done
	for o in $("$LOWQ_TC" list --json | jq -r '(.profiles, .controls)[].options[]' | sort -u) \
		 dry-run json force quiet no-rehearsal netns all help \
		 route default allow initcwnd initrwnd quickack; do
		[[ $items =~ "Fl Fl $o"([^[:alnum:]_]|$) ]] || fail "--$o is not in the manual"
		[[ $help == *" --$o "* ]] || fail "--$o is not in --help"
	done
	# what texts tell operators to type, and the units that they name
	lt --help
	grep -ohE '(sudo |`|^)lowq-tc [a-z]+' "$LOWQ_ROOT"/docs/*.md "$LOWQ_ROOT/README.md" | sed 's/.*lowq-tc //' | sort -u >"$TMP/named"
	while read -r o; do
		[[ $out == *$'\n'"    $o "* ]] || fail "the documents name an action that is not there: lowq-tc $o"
	done <"$TMP/named"
	grep -ohE 'lowq-tc[a-z-]*@?\.?(service|timer)' "$LOWQ_ROOT"/docs/*.md "$man" | sort -u >"$TMP/named"
	while read -r o; do
		[[ -e $LOWQ_ROOT/debian/lowq-tools.$o ]] || fail "the documents name a unit that is not there: $o"
	done <"$TMP/named"
}

exec 3>&1
run_tests "$@"
