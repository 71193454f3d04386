#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-tc on routers: what arrives (--ingress), what a line adds to packets (--overhead), and commands for a router
# without Python (--print commands).

# shellcheck source=lowq_tc_lib.sh
. "$(dirname "$0")/lowq_tc_lib.sh"

peer=${NSP}b

setup()
{
	rm -rf "$LOWQ_STATE_DIR" "$TMP/conf"
	mkdir "$TMP/conf"
	ip netns add "$ns"
	ip netns add "$peer"
	linked
}

linked()
{
	ip -n "$ns" link add name lq0 numtxqueues 1 type veth peer name lq1 netns "$peer"
	ip -n "$ns" link set lq0 up
	ip -n "$peer" link set lq1 up
	ip -n "$ns" addr add 10.71.0.1/24 dev lq0
	ip -n "$peer" addr add 10.71.0.2/24 dev lq1
}

teardown()
{
	kill_in "$ns"
	kill_in "$peer"
	ip netns del "$ns"
	ip netns del "$peer"
}

# blast FROM TO ADDRESS SIZE NUMBER: NUMBER packets of IP with SIZE bytes and ECT(1), as fast as the queue takes them.
# -> $count of those that arrived, $rate at which in packets per second, $ce of them marked
blast()
{
	count='' rate='' ce=''
	ip netns exec "$2" python3 -c '
import socket, sys, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(0, 13, 1)
one.setsockopt(1, 8, 1 << 22)
one.bind(("", 7001))
one.settimeout(2)
times, ce = [], 0
try:
    while True:
        _, told, _, _ = one.recvmsg(2048, 64)
        times.append(time.monotonic())
        ce += told[0][2][0] & 3 == 3
except TimeoutError:
    print(len(times), (len(times) - 101) / (times[-1] - times[100] or 1), ce)' >"$TMP/blast" &
	wait_until listening_udp "$2" 7001
	ip netns exec "$1" python3 -c '
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(0, 1, 1)
for _ in range(int(sys.argv[3])):
    one.sendto(bytes(int(sys.argv[2]) - 28), (sys.argv[1], 7001))' "$3" "$4" "$5"
	wait $!
	read -r count rate ce <"$TMP/blast"
}
listening_udp() { [[ $(ip netns exec "$1" ss -lunH "sport = :$2") ]]; }

# on_the_wire SIZE MBIT WHAT: what was counted of the last blast, with SIZE bytes for each packet, is MBIT within 1 %
on_the_wire()
{
	echo "# $3: $count packets, $ce marked, $(jq -n "($rate * $1 * 8 / 1e4 | round) / 100") Mb/s of $2"
	expect "$3: the rate is that of the line" "$(jq -n "$rate * $1 * 8 / 1e6 / $2 - 1 | fabs < 0.01")" = true
}

# flow: 3.5 MB of a Prague flow towards lq0, and packets with ECT(1) beside it. -> $mbit of its data, and how long the
# others wait in the mean, $wait_ms
flow()
{
	ip netns exec "$ns" sysctl -qw net.ipv4.tcp_ecn=3
	ip netns exec "$peer" sysctl -qw net.ipv4.tcp_ecn=3
	ip netns exec "$ns" python3 -c '
import socket, time
to, n, first = socket.create_server(("", 7001)).accept()[0], 0, 0
while data := to.recv(1 << 16):
    first = first or time.monotonic()
    n += len(data)
print(f"{n * 8 / (time.monotonic() - first) / 1e6:.2f}")' >"$TMP/flow" &
	wait_until ready 7001
	ip netns exec "$peer" python3 -c '
import socket
one = socket.socket()
one.setsockopt(6, 13, b"prague")
one.connect(("10.71.0.1", 7001))
one.sendall(bytes(3500000))' &
	ip netns exec "$peer" ping -q -Q 1 -i 0.02 -c 120 10.71.0.1 >"$TMP/ping" || fail "ping: $(<"$TMP/ping")"
	wait
	read -r mbit <"$TMP/flow"
	wait_ms=$(sed -n 's,.*= [^/]*/\([^/]*\)/.*,\1,p' "$TMP/ping")
	echo "# a Prague flow of $mbit Mb/s; others wait $wait_ms ms"
}
ready() { [[ $(ip netns exec "$ns" ss -ltnH "sport = :$1") ]]; }

aqm=dualpi2
have_qdisc dualpi2 || aqm=fq_codel

overhead()
{
	each refused <<-'END'
		docsis, ethernet, pppoe-ptm, bridged-ptm|prague lq0 --rate 10mbit --overhead atm
		up to 256 bytes|prague lq0 --rate 10mbit --overhead 257
		up to 256 bytes|prague lq0 --rate 10mbit --overhead -4
		lq0 itself has 14 bytes|prague lq0 --rate 10mbit --overhead 13
		needs a shaper|prague lq0 --rate 10mbit --no-shape --overhead docsis
	END
	must prague lq0 --aqm "$aqm" --rate 10mbit --overhead docsis
	blast "$ns" "$peer" 10.71.0.2 200 1500
	on_the_wire 218 10 "docsis"
	must prague lq0 --aqm "$aqm" --rate 10mbit --overhead pppoe-ptm
	blast "$ns" "$peer" 10.71.0.2 200 1500
	on_the_wire "230 * 65 / 64" 10 "pppoe-ptm"
	must prague lq0 --aqm "$aqm" --rate 10mbit --overhead 14
	[[ $(tcn class show dev lq0) != *overhead* ]] || fail "what the device counts by itself: $(tcn class show dev lq0)"
	must show --check
	must reset --all
}
declare_test overhead "" "--overhead: docsis, PPPoE over PTM, a number: the rate on the wire within 1 %"

ingress()
{
	local before marked

	picture before
	each refused <<-'END'
		give --rate|prague lq0 --ingress
		no device 'lq7'|prague lq7 --ingress --rate 10mbit
	END
	same_picture "$before" "after refusals"
	lt prague lq0 --aqm "$aqm" --ingress --rate 10mbit --overhead docsis --dry-run || fail "a dry run: $err"
	[[ $out == "ip -n $ns link add name ifb4lq0 index "*"mirred egress redirect dev ifb4lq0"*"htb"*"$aqm"* ]] || fail "a dry run: $out"
	same_picture "$before" "after a dry run"
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit --overhead docsis
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit --overhead docsis
	must show ifb4lq0 --check
	blast "$peer" "$ns" 10.71.0.1 200 1500
	on_the_wire 218 10 "ingress, docsis"
	must show ifb4lq0 --json
	marked=$(jq '.[0].marked' <<<"$out")
	# dualpi2 counts a packet twice that both its probability and its step have marked
	expect "marks, as the receiver counts them" "$ce" -ge 100
	expect "marks, as the queue counts them" "$marked" -ge "$ce"
	# what leaves is not touched
	blast "$ns" "$peer" 10.71.0.2 200 300
	expect "packets out" "$count $ce" = "300 0"
	refused "what arrives, with the same clsact" ldcp lq0 --rate 10mbit --rtt 1ms
	must reset lq0
	same_picture "$before" "after reset"
	no_records
	# a clsact and a filter of someone else's stay
	tcn qdisc add dev lq0 clsact
	tcn filter add dev lq0 ingress pref 7 protocol ip matchall action ok
	picture before
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	must reset --all
	same_picture "$before" "beside a clsact of someone else's"
	tcn qdisc del dev lq0 clsact
	tcn qdisc add dev lq0 ingress
	refused "has an ingress qdisc" prague lq0 --ingress --rate 10mbit
	tcn qdisc del dev lq0 ingress
	ipn link add ifb4lq0 type ifb
	refused "that lowq-tc did not make" prague lq0 --ingress --rate 10mbit
	ipn link del ifb4lq0
	must ldcp lq0 --rate 10mbit --rtt 1ms
	refused "ldcp with --simple has none" prague lq0 --ingress --rate 10mbit
	must reset --all
	no_records
}
declare_test ingress "" "--ingress: queue, marks and rate of what arrives; others' filters; all is put back"

arriving()
{
	modprobe -q tcp_prague || skip "no prague"
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit --overhead docsis
	flow	# 1448 of 1518 bytes are data
	expect "the link is used" "$(jq -n "$mbit > 0.9 * 10 * 1448 / 1518")" = true
	expect "and its queue is short: two packets take 2.4 ms" "$(jq -n "$wait_ms < 6")" = true
	must show ifb4lq0 --json
	expect "marks" "$(jq '.[0].marked' <<<"$out")" -ge 100
}
declare_test arriving "" "--ingress: a Prague flow uses the link, and its queue is short"

going()
{
	local before step=0 state=begin

	picture before
	# DEV goes
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	ipn link del lq0
	checks 3 show
	must reset --all
	expect "devices" "$(ipn -br link | grep -c lq0)" -eq 0
	no_records
	linked
	picture before
	# it goes and comes back under the same name
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	ipn link del lq0
	linked
	must prague lq0 --aqm "$aqm" --ingress --rate 20mbit
	checks 0 show
	must reset lq0
	no_records
	picture before
	# ifb4DEV goes: what arrives is dropped
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	ipn link del ifb4lq0
	checks 3 show
	[[ $out == *"what arrives at lq0 is dropped"* ]] || fail "says $out"
	must reset lq0 --dry-run
	[[ $out == *"tc -n $ns qdisc del dev lq0 clsact"* ]] || fail "the dry run says $out"
	must reset lq0
	same_picture "$before" "after reset"
	no_records
	# the records are gone: its index tells
	must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	rm "$LOWQ_STATE_DIR"/*.json
	must reset --all
	same_picture "$before" "after a reset without records"
	# a command fails
	wrapped tc '[[ " $* " != *" htb default "* ]] || { echo made to fail >&2; exit 1; }'
	PATH=$TMP/wrapped:$PATH ends 1 "made to fail" prague lq0 --aqm "$aqm" --ingress --rate 10mbit
	same_picture "$before" "after a failure"
	no_records
	# killed before any command; then reset, or set again
	for tool in tc ip; do
		# shellcheck disable=SC2016 # the tool's shell expands
		wrapped "$tool" 'n=$(<$TMP/left); echo $((n - 1)) >$TMP/left; ((n != 1)) || { kill -KILL $caller; exit 1; }'
	done
	while [[ $state != ended ]]; do
		echo $((++step)) >"$TMP/left"
		PATH=$TMP/wrapped:$PATH lt prague lq0 --aqm "$aqm" --ingress --rate 10mbit && state=ended
		if ((step % 2)); then
			must prague lq0 --aqm "$aqm" --ingress --rate 10mbit
			must show ifb4lq0 --check
		fi
		must reset lq0
		same_picture "$before" "killed at step $step, then reset"
		no_records
	done
	echo "# $step steps"
	expect "steps" "$step" -ge 6
}
declare_test going "" "--ingress: a device that goes away, and comes back; a failure; killed at any step, then reset"

files()
{
	local before saved after

	picture before
	cat >"$TMP/conf/lowq.toml" <<-END
		[[queue]]
		device = "lq0"
		profile = "fifo"
		rate = "20mbit"

		[[queue]]
		device = "lq0"
		profile = "prague"
		aqm = "$aqm"
		ingress = true
		rate = "10mbit"
	END
	lt apply "$TMP/conf" --dry-run -q
	grep '^[a-z]* -n ' <<<"$out" >"$TMP/planned"
	for want in 4 0; do
		lt apply "$TMP/conf" --json
		expect "apply" "$rc" -eq "$want" || fail "$err$out"
		((want == 0)) || same "$(<"$TMP/planned")" "$(jq -r '.results[].commands[]' <<<"$out")" "the dry run"
	done
	must show --check
	# the commands of the dry run do the same
	picture after
	must reset --all
	sh -e "$TMP/planned" || fail "the dry run's commands fail"
	same_picture "$after" "by the dry run's commands"
	must reset --all
	same_picture "$before" "after a reset without records"
	lt apply "$TMP/conf" -q
	must save "$TMP/saved.toml"
	saved=$(grep -v '^#' "$TMP/saved.toml" | grep -c 'device = "lq0"')
	expect "devices in what save writes" "$saved" -eq 2
	lt apply "$TMP/saved.toml"
	expect "apply of what save wrote" "$rc" -eq 0
	tcn filter del dev lq0 ingress	# someone
	checks 3 show
	lt apply "$TMP/conf"
	expect "apply sets the redirect again" "$rc" -eq 4
	must show --check
	sed -i 's/"lq0"/"lq*"/' "$TMP/conf/lowq.toml"
	lt apply "$TMP/conf"
	expect "a pattern" "$rc$(grep -c 'ingress goes with the name of a device' <<<"$err")" = 21
	rm "$TMP/conf/lowq.toml"
	lt apply "$TMP/conf"
	same_picture "$before" "after apply of nothing"
	no_records
}
declare_test files "" "lowq.toml: a device's two queues, out and in; apply, save, and apply again"

commands()
{
	local shell='sh' line words said plugins

	lt prague lq0 --rate 10mbit --dry-run
	plugins=$(grep -om1 'TC_LIB_DIR=[^ ]*' <<<"$out")
	[[ $plugins || $out == *step_thresh* ]] || aqm=fq_codel	# which this tc has words for
	! command -v busybox >/dev/null || shell='busybox sh'
	for line in "prague lq0 --aqm $aqm --rate 10mbit --overhead docsis" "prague lq0 --aqm $aqm --ingress --rate 10mbit --overhead pppoe-ptm" \
			"dctcp lq0 --rate 10mbit --rtt 10ms"; do
		read -ra words <<<"$line"
		must "${words[@]}"
		said=$(tcn qdisc show; tcn class show dev lq0; tcn class show dev ifb4lq0 2>/dev/null)
		must reset --all
		must "${words[@]}" --print commands -q
		for _ in once again; do
			# shellcheck disable=SC2086 # words
			ip netns exec "$ns" env $plugins $shell <<<"$out" || fail "${words[*]}: $out"
		done
		same "$said" "$(tcn qdisc show; tcn class show dev lq0; tcn class show dev ifb4lq0 2>/dev/null)" "what ${words[*]} makes"
		line=${out%%$'\n'*}
		# shellcheck disable=SC2086 # words
		ip netns exec "$ns" $shell -c "${line#*away: }" || fail "to take it away"
		ipn link del ifb4lq0 2>/dev/null
		tcn qdisc del dev lq0 clsact 2>/dev/null
	done
	refused "no words for prague" prague lq0 --rate 10mbit --print sonic
	refused "simple needs none" ldcp lq0 --rate 10mbit --rtt 1ms --print commands
}
declare_test commands "" "--print commands: a shell without Python makes the same queues of them, also twice"

run_tests "$@"
