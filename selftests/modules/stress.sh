#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All of lowq's controls under harsh conditions: bad paths, changes in mid-flow, deleted
# namespaces, failed allocations. Data must arrive unchanged (SHA-256 at both ends), and the
# modules must unload.
# FULL=1: 10,000 connections per control, and more than 4 GiB in one flow.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

CONTROLS=()
for c in dctcp_ref prague ldcp hpccpp; do
	! modprobe "tcp_$c" 2>/dev/null || CONTROLS+=("$c")
done
[ ${#CONTROLS[@]} -gt 0 ] || skip_all "no module"

# connections per control
if [ "${FULL:-}" ]; then
	CONNECTIONS=10000
elif [ "${LOWQ_LAB:-}" = debug ]; then
	CONNECTIONS=40
else
	CONNECTIONS=400
fi

# thorough: skips a test that takes minutes with all checkers on, unless FULL=1; it also runs
# without the checkers
thorough()
{
	[ "${FULL:-}" ] || [ "${LOWQ_LAB:-}" != debug ] || skip "FULL=1 to try it with all checkers on"
}

# receiver NS: starts intact.py's server there
receiver()
{
	in_ns "$1" python3 "$LIB/intact.py" serve 5300 2>/dev/null &
	wait_until listening "$1" 5300
}

# intact TO [intact.py's options]: sends from h1 to r; all data must arrive. Appends the result to
# $TMP/said
intact()
{
	in_ns h1 timeout "3000" python3 "$LIB/intact.py" send "$1" 5300 "${@:2}" >"$TMP/one" ||
		fail "not intact: $(<"$TMP/one")"
	expect "failed connections" "$(jq .failed "$TMP/one")" -eq 0
	cat "$TMP/one" >>"$TMP/said"
}

# sum FIELD: over all results of intact.py in this test
sum()
{
	jq -s "map(.$1) | add" "$TMP/said"
}

# bottleneck RATE: a queue from sw to r that marks, so that each control has to react
bottleneck()
{
	shape "$1" fq_codel ce_threshold 1ms
	every sysctl -qw net.ipv4.tcp_ecn=3 2>/dev/null
}

# all_unload: unloads all modules and loads them again
all_unload()
{
	local c

	for c in "${CONTROLS[@]}"; do
		MODULE=tcp_$c unloaded
	done
	for c in "${CONTROLS[@]}"; do
		modprobe "tcp_$c" || fail "cannot load tcp_$c again"
	done
}

# come_and_go CONTROL: unloads and loads the other controls' modules in turn until $TMP/enough
# exists
come_and_go()
{
	local c n=0

	until [ -e "$TMP/enough" ]; do
		for c in "${CONTROLS[@]}"; do
			[ "$c" != "$1" ] || continue
			! modprobe -r "tcp_$c" 2>/dev/null || n=$((n + 1))
			sleep 0.01
			modprobe "tcp_$c"
		done
	done
	echo "$n" >"$TMP/unloads"
}

churn()
{
	local c churner

	for c in "${CONTROLS[@]}"; do
		: >"$TMP/said"
		rm -f "$TMP/enough"
		dumbbell 1 100us
		bottleneck 1gbit
		receiver r
		come_and_go "$c" &
		churner=$!
		intact 10.0.0.1 --connections $((CONNECTIONS / 2)) --parallel 20 --size 3000 --cc "$c"
		intact fd00:0::1 --connections $((CONNECTIONS / 2)) --parallel 20 --size 30000 --cc "$c" cubic reno
		touch "$TMP/enough"
		wait "$churner"
		teardown
		expect "connections" "$(sum connections)" -eq "$CONNECTIONS"
		expect "unloads of other modules meanwhile" "$(<"$TMP/unloads")" -ge 1
		measured "$c: $(sum connections) connections, $(sum switches) changes of control, $(<"$TMP/unloads") unloads"
	done
	all_unload
}
declare_test churn "" "thousands of connections that change their control, while other modules unload and load"

every_pair()
{
	local to

	dumbbell 1 1ms
	bottleneck 100mbit
	sink
	for to in 10.0.0.1 fd00:0::1; do
		switch_controls h1 "$to" "${CONTROLS[@]}" cubic reno dctcp bbr
	done
	teardown
	all_unload
}
declare_test every_pair "" "a flow changes from each control to each, in mid-flow"

# trace-cmd and perf read the stored event, where a pointer would be useless
traces()
{
	local c events=/sys/kernel/tracing/events

	for c in "${CONTROLS[@]}"; do
		expect "events of $c" "$(cat "$events/$c"/*/format | grep -c '^name:')" -ge 2
		expect "pointers in them" "$(cat "$events/$c"/*/format | grep -c 'field:.*\*')" -eq 0
	done
}
declare_test traces "" "events hold their values, not pointers to them"

bad_paths()
{
	local c spec size=400000

	for_full
	virtual || size=60000
	for c in "${CONTROLS[@]}"; do
		: >"$TMP/said"
		dumbbell 1 1ms
		bottleneck 100mbit
		receiver r
		for spec in "loss 1%" "loss 10%" "loss 30%" "delay 1ms reorder 30% gap 3" "duplicate 20%" \
			"corrupt 2%" "loss 5% 50% duplicate 5% corrupt 1% delay 1ms 1ms"; do
			# shellcheck disable=SC2086 # a list of words
			in_ns h1 tc qdisc replace dev eth0 root netem limit 10000 $spec
			intact 10.0.0.1 --size "$size" --cc "$c"
		done
		in_ns h1 tc qdisc del dev eth0 root
		for spec in "loss 10%" "loss 30%"; do
			# shellcheck disable=SC2086
			in_ns r tc qdisc replace dev eth0 root netem limit 10000 $spec
			intact fd00:0::1 --size "$size" --cc "$c"
		done
		teardown
		measured "$c: loss 1 to 30 %, reordering, duplicates, corruption, ACK loss 10 and 30 %: $(sum bytes) bytes"
	done
	all_unload
}
declare_test bad_paths "" "loss up to 30 %, reordering, duplicates, corruption, lost ACKs"

moving_ground()
{
	local c i flow

	thorough
	for c in "${CONTROLS[@]}"; do
		: >"$TMP/said"
		dumbbell 1 1ms
		bottleneck 100mbit
		# a second link from h1 to sw
		link h1 eth1 sw q1
		ip -n "${NSP}h1" addr add 10.9.0.1/24 dev eth1
		ip -n "${NSP}sw" addr add 10.9.0.254/24 dev q1
		receiver r
		intact 10.0.0.1 --size 3000000 --cc "$c" &
		flow=$!
		for i in 1400 1000 576 1500; do
			sleep 0.05
			ip -n "${NSP}h1" link set eth0 mtu "$i"
			ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.9.0.254 dev eth1
			sleep 0.05
			ip -n "${NSP}sw" link set egress mtu "$i"
			ip -n "${NSP}h1" route replace 10.0.0.0/24 via 10.0.1.254 dev eth0
		done
		# stop the receiver until its window closes, then let it continue
		kill_in "${NSP}r" STOP
		sleep 2
		kill_in "${NSP}r" CONT
		wait "$flow" || exit
		teardown
		measured "$c: MTU and route changed 8 times, the receiver stopped for 2 s, in one flow: $(sum bytes) bytes"
	done
	all_unload
}
declare_test moving_ground "" "MTU and routes change, the receiver is stopped and continued, in mid-flow"

destroyed()
{
	local c i times=2

	[ -z "${FULL:-}" ] || times=5
	virtual || times=1
	for c in "${CONTROLS[@]}"; do
		for ((i = 0; i < times; i++)); do
			dumbbell 2 1ms
			bottleneck 100mbit
			CC=$c storm 3
			sleep "0.$((i * 2 + 1))"
			vanish h2
			sleep 0.1
			vanish r
			sleep 0.1
			teardown
		done
		measured "$c: namespaces destroyed under traffic, the sender's and the receiver's: $((2 * times)) namespaces"
	done
	! virtual || all_unload
}
declare_test destroyed "" "namespaces destroyed under traffic, twice per control (FULL: five times)"

wrap()
{
	local c

	[ "${FULL:-}" ] || skip "FULL=1 for 4.4 GB per control"
	needs_virtual
	for c in "${CONTROLS[@]}"; do
		: >"$TMP/said"
		OFFLOADS=1 SYSCTL="net.ipv4.tcp_ecn=3 2>/dev/null" dumbbell 1 100us
		receiver r
		intact 10.0.0.1 --size 4400000000 --cc "$c"
		teardown
		measured "$c: the 32-bit sequence wraps: $(sum bytes) bytes in one flow"
	done
}
declare_test wrap "" "more than 4 GiB in one flow: sequence numbers wrap"

# sending: h1 has a connection to the receiver
sending()
{
	in_ns h1 ss -Htn state established dport = :5300 | grep -q .
}

FAILSLAB=/sys/kernel/debug/failslab
no_memory()
{
	local c flow

	[ -d "$FAILSLAB" ] || skip "this kernel has no fault injection (CONFIG_FAILSLAB)"
	for c in "${CONTROLS[@]}"; do
		: >"$TMP/said"
		dumbbell 1 1ms
		shape 10mbit fq_codel ce_threshold 1ms
		receiver r
		intact 10.0.0.1 --size 700000 --connections 4 --parallel 4 --cc "$c" cubic &
		flow=$!
		wait_until sending
		# Only atomic allocations fail, which are mostly the network's, and only in
		# mid-flow: Linux never retries a FIN that it could not allocate.
		echo Y >"$FAILSLAB/ignore-gfp-wait"
		echo 0 >"$FAILSLAB/verbose"
		echo -1 >"$FAILSLAB/times"
		echo 1 >"$FAILSLAB/probability"		# in a hundred
		sleep 1.5
		echo 0 >"$FAILSLAB/probability"
		wait "$flow" || exit
		teardown
		measured "$c: one in a hundred of the network's allocations fails for 1.5 s: $(sum bytes) bytes"
	done
	all_unload
}
declare_test no_memory "" "allocations that fail: nothing is lost, nothing breaks"

run_tests "$@"
