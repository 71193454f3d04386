#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A plan in several processes (lab run --cores): the same bytes for each number of them, from the host
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
LAB=$LOWQ_ROOT/scripts/lab

# plan NAME NETWORK TRAFFIC: writes a plan; both are Python's
plan()
{
	command -v labnet >/dev/null || skip "no labnet"
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$LOWQ_ROOT/lab:$LOWQ_ROOT/scripts python3 - "$2" "$3" >"$TMP/$1.json" <<-'END' || fail "no plan"
	import json, sys
	from lowq_lab.networks import *
	net = eval(sys.argv[1])
	net.sysctl("net.ipv4.tcp_ecn", 1)
	observe = [(name, peer) for name in net.switches for peer in net.peers[name]][:8]
	print(json.dumps(net.plan(*eval(sys.argv[2]), observe=observe) | {"record": ["pcap"]}))
	END
}

# run CORES PLAN [OPTION...]
run()
{
	"$LAB" run --cores "$1" --timeout 120 "${@:3}" --out "$TMP/$2.$1" "$TMP/$2.json" >"$TMP/said" 2>&1
}

# same PLAN CORES...: all of them leave the same
same()
{
	local plan=$1 first=$2 cores files

	shift
	for cores; do
		run "$cores" "$plan" || fail "$plan in $cores: $(tail -n 5 "$TMP/said")"
		rm "$TMP/$plan.$cores"/kernel-*.log
		files=$(cd "$TMP/$plan.$first" && ls)
		expect "files of $plan in $cores" "$(cd "$TMP/$plan.$cores" && ls)" = "$files"
		diff -rq "$TMP/$plan.$first" "$TMP/$plan.$cores" >"$TMP/differ" || fail "$plan: $(<"$TMP/differ")"
	done
	[ "$(jq -s 'map(select(.type == "summary"))[0].ok' "$TMP/$plan.$first/flows.jsonl")" -gt 1 ] || fail "$plan: no flows"
}

dumbbell()
{
	plan bell 'parking_lot(1, rate="1gbit", delay="20us", queue="red limit 1000000 min 20000 max 60000 avpkt 1500 burst 20 probability 0.1 ecn", exact=True)' \
		'[{"kind": "long", "from": "h0", "to": "r0", "duration": "20ms", "control": control} for control in ("dctcp", "bbr", "cubic")] + [
		{"kind": "program", "node": "*", "start": "30ms", "command": "cd /proc/net && cat dev snmp snmp6 netstat; tc -s qdisc"}]'
	# losses, after which receivers hold ACKs back, and programs that sleep: timers that could have slack
	jq '(.links[] | select(.ends[0].node[:1] == "h" or .ends[1].node[:1] == "r") | .delay) = "3us" |
		(.links[] | select(.rate)).ends[0].loss = 0.005 | .record += [ "acks", "ss" ] |
		.events = [ { at: "7ms", node: "s0", dev: "s1", rate: "500mbit" } ]' "$TMP/bell.json" >"$TMP/four.json"
	same four 1 4 ${FULL:+2}
}
declare_test dumbbell "" "a dumbbell: flows, queues, series, captures, ACKs and all counters of one and four processes, FULL=1: and of two"

# A process computes at an instant, while the other sends for a window: more than its ring has room for if it begins
# again too soon
ring()
{
	plan ring 'parking_lot(1, rate="100gbit", delay="100us", exact=True)' '[{"kind": "long", "from": "h0", "to": "r0", "duration": "4ms"},
		{"kind": "program", "node": "r0", "command": "seq 300000 | sort -R >/dev/null", "start": "3ms"}]'
	run 2 ring || fail "$(tail -n 5 "$TMP/said")"
}
declare_test ring "" "what a process sends in a window while another one computes has room"

fabric()
{
	for_full
	plan tree 'fat_tree(4, rate="10gbit", delay="2us", queue="red limit 2000000 min 30000 max 90000 avpkt 1500 burst 30 probability 0.1 ecn", exact=True)' \
		'[{"kind": "flows", "from": "h*", "to": "h*", "control": control, "size": "50kB", "load": {"tier": "core", "share": 0.2}, "duration": "2ms", "timeout": "9s"}
		for control in ("dctcp", "bbr")]'
	same tree 1 2 4
}
declare_test fabric "" "FULL=1: a fat-tree of 16 hosts in one, two and four processes"

application()
{
	for_full
	plan app 'parking_lot(1, rate="1gbit", delay="20us", exact=True)' \
		'[{"kind": "program", "node": "r0", "stop": "1s", "command": "cd /lowq/docs && exec python3 -c \"import http.server as h, " +
		"socketserver as s; s.TCPServer((str(), 80), h.SimpleHTTPRequestHandler).serve_forever()\""},
		{"kind": "program", "node": "h0", "start": "200ms", "command": "exec curl -s http://" +
		net.links[1]["ends"][1]["addresses"][0].split("/")[0] + "/validation.md"},
		{"kind": "long", "from": "h1", "to": "r1", "duration": "300ms"}]'
	same app 1 2
}
declare_test application "" "FULL=1: a client and a web server, each in a process of its own"

refusals()
{
	plan few 'parking_lot(1, rate="1gbit", delay="20us", exact=True)' '[{"kind": "long", "from": "h0", "to": "r0", "duration": "1s"}]'
	! run 8 few || fail "8 parts for 6 nodes"
	expect "said" "$(<"$TMP/said")" = "labnet: $TMP/few.json: 8 processes for 6 nodes"
	! run 3 few || fail "3 parts with one delay"
	expect "said" "$(<"$TMP/said")" = "labnet: $TMP/few.json: cannot be cut in 3: links without a delay in both directions: h0-s0 s1-r0 h1-s0 s1-r1"
	jq '.exact = false' "$TMP/few.json" >"$TMP/veth.json"
	! run 2 veth || fail "veth"
	expect "said" "$(<"$TMP/said")" = "labnet: $TMP/veth.json: links[0] is not exact, as several processes need it"
	expect "results" "$(ls -d "$TMP"/{few,veth}.[0-9] 2>/dev/null)" = ""
}
declare_test refusals "" "more processes than nodes or delays, and links that are not exact, are refused with their names"

# One process of two ends; the run does, too
one_ends()
{
	plan end 'parking_lot(1, rate="1gbit", delay="20us", exact=True)' '[{"kind": "long", "from": "h0", "to": "r0", "duration": "100s"}]'
	mkdir "$TMP/left"
	TMPDIR=$TMP/left run 2 end &
	# [l]: so that the pattern does not match the process that searches for it
	wait_until sh -c "[ \$(pgrep -fc -- '^bwrap .*--bind $TMP/[l]eft') -ge 4 ]"
	sleep 1
	kill -KILL "$(pgrep -of -- "^bwrap .*--bind $TMP/[l]eft")"
	! wait $! || fail "a process was killed, and the run succeeded"
	expect "said" "$(sed 's/[12] of/N of/' "$TMP/said")" = "lab: the guest was killed
lab: process N of 2 has failed; the others are ended"
	nothing_left "a killed process"
}

# nothing_left AFTER: no process and no file of runs in $TMP/left, and no results
nothing_left()
{
	wait_until sh -c "! pgrep -f '$TMP/[l]eft'" || fail "$1 leaves $(pgrep -fa "$TMP/left")"
	wait_until sh -c "[ -z \"\$(ls -A '$TMP/left')\" ]" || fail "$1 leaves $(find "$TMP/left")"
	[ ! -e "$TMP/end.2" ] || fail "$1 leaves results: $(ls -A "$TMP/end.2")"
}

# Ctrl-C, which is for all processes in the foreground, and kill -9, which is for one
all_end()
{
	local how pid

	for how in "INT 0.3 -" "INT 1 -" "INT 3 -" "KILL 0.3" "KILL 3"; do
		# shellcheck disable=SC2086 # signal, seconds, which
		set -- $how
		TMPDIR=$TMP/left env --default-signal=INT setsid "$LAB" run --cores 2 --out "$TMP/end.2" "$TMP/end.json" >"$TMP/said" 2>&1 &
		pid=$!
		sleep "$2"
		kill -s "$1" -- "${3:-}$pid"
		wait "$pid"
		nothing_left "SIG$1 after $2 s"
	done
}

ends()
{
	one_ends && all_end
}
declare_test ends "" "one of two processes is killed, Ctrl-C or kill -9 for the run: all end, and nothing is left"

two_at_once()
{
	local pid

	plan one 'parking_lot(1, rate="1gbit", delay="20us", exact=True)' '[{"kind": "long", "from": "h0", "to": "r0", "duration": "50ms"}]'
	cp "$TMP/one.json" "$TMP/other.json"
	run 2 one & pid=$!
	"$LAB" run --cores 2 --out "$TMP/other.2" "$TMP/other.json" >"$TMP/said2" 2>&1 || fail "$(<"$TMP/said2")"
	wait "$pid" || fail "$(<"$TMP/said")"
	rm "$TMP"/o*.2/kernel-*.log
	diff -rq "$TMP/one.2" "$TMP/other.2" || fail "they differ"
}
declare_test two_at_once "" "two such runs at once, with the same results"

panics()
{
	plan panic 'parking_lot(1, rate="1gbit", delay="20us", exact=True)' '[{"kind": "long", "from": "h0", "to": "r0", "duration": "100s"},
		{"kind": "program", "node": "r0", "command": "echo 2 >/proc/sys/vm/panic_on_oom; exec tail /dev/zero", "start": "1ms"}]'
	! run 2 panic --mem 400M || fail "a kernel panicked, and the run succeeded"
	grep -q '^Kernel panic' "$TMP/said" || fail "$(<"$TMP/said")"
	expect "last line" "$(tail -n1 "$TMP/said" | sed 's/[12] of/N of/')" = "lab: process N of 2 has failed; the others are ended"
	[ ! -e "$TMP/panic.2" ] || fail "it leaves results"
}
declare_test panics "" "when the memory of one of two processes runs out and its kernel panics, the other ends"

run_tests "$@"
