#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-stat: what it says of connections that are there, beside what ss says of them.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

LOWQ_STAT=${LOWQ_STAT:-$LOWQ_ROOT/scripts/lowq-stat}
[ -x "$LOWQ_STAT" ] || LOWQ_STAT=$(command -v lowq-stat) || skip_all "lowq-stat is not installed"
[ "${LOWQ_LAB:-}" ] || skip_all "loads modules"
for module in tcp_dctcp_ref tcp_prague tcp_hpccpp; do
	modprobe "$module" || skip_all "no module $module"
done

# stat OPTION...: lowq-stat in h1; what it prints is in $TMP/stat
stat()
{
	in_ns h1 "$LOWQ_STAT" "$@" >"$TMP/stat" 2>"$TMP/stat.err" || fail "lowq-stat $*: $(<"$TMP/stat.err")"
}

# open_at NUMBER [PATTERN]: has h1 so many established connections, with this in what ss says?
open_at()
{
	[ "$(in_ns h1 ss -Htni state established | grep -c "${2:-cwnd}")" -eq "$1" ]
}

# connection PORT STEP...: one that stays, from h1 to r
connection()
{
	in_ns h1 python3 "$LIB/talk.py" to 10.0.0.1 --port "$1" "${@:2}" sleep=1000 >/dev/null 2>&1 &
}

# crowd: connections of four controls, of which three run as Reno; then all are idle
crowd()
{
	local i

	dumbbell 1 4ms
	shape 20mbit red limit 1000000 min 15000 max 15001 avpkt 1500 burst 11 bandwidth 20mbit ecn
	in_ns r sysctl -qw net.ipv4.tcp_ecn=1
	sink dctcp_ref
	in_ns r python3 "$LIB/talk.py" sink --port 5298 --cc cubic &
	wait_until listening r 5298
	modprobe -r int_reflector
	for i in 1 2; do
		connection 5299 cc=dctcp_ref flood=0.5
		connection 5298 cc=cubic send=$((i * 30000))
	done
	connection 5299 connect cc=dctcp_ref send=20000	# too late for ECN
	connection 5298 cc=prague send=20000		# its peer has no Accurate ECN
	connection 5298 cc=hpccpp flood=0.3		# no reflector answers
	wait_until open_at 3 _reno
	sleep 2
}

# by_ss: what lowq-stat should say of each control, from ss
by_ss()
{
	in_ns h1 ss -tinHO state established | python3 -c '
import json, re, sys
rows = {}
for line in sys.stdin:
    base = re.sub("[-_]reno$", "", re.search(r"\s(cubic|dctcp_ref(?:_reno)?|prague(?:_reno)?|hpccpp(?:_reno)?)\s", line)[1])
    fell = re.search(r"\s\w+_reno\s", line) is not None
    row = rows.setdefault(base, {"connections": 0, "reno": 0, "marked": 0, "sent": 0, "resent": 0, "rtts": []})
    number = lambda pattern: float(m[1]) if (m := re.search(r"\s" + pattern, line)) else 0
    row["connections"] += 1
    row["reno"] += fell
    row["marked"] += int(number(r"delivered_ce:(\d+)"))
    row["sent"] += int(number(r"data_segs_out:(\d+)"))
    row["resent"] += int(number(r"retrans:\d+/(\d+)"))
    row["rtts"].append(round(number(r"rtt:([\d.]+)") * 1000))
for row in rows.values():
    row["rtts"].sort()
    row["p90"] = row["rtts"][min(len(row["rtts"]) - 1, int(0.9 * len(row["rtts"])))]
    del row["rtts"]
print(json.dumps(rows, sort_keys=True))'
}

counts()
{
	crowd
	stat --json
	jq -cS '[.rows[] | {key: .control, value: {connections, reno: (.fallen_back | add // 0), marked, sent,
		resent: .retransmitted, p90: .srtt_us.p90}}] | from_entries' "$TMP/stat" >"$TMP/got"
	by_ss | jq -cS . >"$TMP/expected"
	diff "$TMP/expected" "$TMP/got" || fail "ss says something else"
	expect "marks of dctcp_ref" "$(jq '.rows[] | select(.control == "dctcp_ref") | .marked' "$TMP/stat")" -gt 10
	expect "why" "$(jq -r '.rows[] | .control + " " + (.fallen_back | to_entries[] | .key + " \(.value)")' "$TMP/stat" | paste -sd,)" = \
		"dctcp_ref no-ecn 1,hpccpp no-telemetry 1,prague no-accecn 1"
	expect "minimum RTT" "$(jq '.rows[] | select(.control == "cubic") | .min_rtt_us.p50' "$TMP/stat")" -ge 4000
	between "rate of cubic, bytes/s" "$(jq '.rows[] | select(.control == "cubic") | .delivery_rate.p99' "$TMP/stat")" 100000 3000000
	stat
	cat "$TMP/stat"
	grep -qE '^dctcp_ref +3 +1 ' "$TMP/stat" || fail "no row for dctcp_ref"
	grep -q '^prague: 1 run as Reno: the peer has no Accurate ECN$' "$TMP/stat" || fail "does not say why"
	between "columns" "$(wc -L <"$TMP/stat")" 80 140
}
declare_test counts "" "connections of four controls, three fallen back: as ss shows them, and why"

prometheus()
{
	crowd
	stat --prometheus
	awk '/^# HELP / { help[$3] = 1; next }
		/^# TYPE [a-z_]+ gauge$/ { if (!help[$3]) exit 1; type[$3] = 1; next }
		!/^[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+$/ { print; exit 1 }
		{ split($0, part, /[ {]/); if (!type[part[1]] || seen[$0]++) { print; exit 1 } }' "$TMP/stat" || fail "not Prometheus's format"
	grep -qxF 'lowq_tcp_fallback_connections{control="hpccpp",group="",reason="no-telemetry"} 1' "$TMP/stat" ||
		fail "does not count what fell back: $(<"$TMP/stat")"
	grep -q '^lowq_tcp_srtt_seconds{control="cubic",group="",quantile="0.5"} 0\.00[4-9]' "$TMP/stat" || fail "no RTT"
	expect "families" "$(grep -c '^# TYPE' "$TMP/stat")" -eq 10
	# a reader of the file sees it whole
	in_ns h1 "$LOWQ_STAT" --prometheus --interval 0.1 --count 20 --output "$TMP/lowq.prom" &
	wait_until [ -e "$TMP/lowq.prom" ]
	while kill -0 $! 2>/dev/null; do
		[[ $(tail -n 1 "$TMP/lowq.prom") == "lowq_stat_cpu_seconds "* ]] || fail "half a file"
		sleep 0.013
	done
	wait $! || fail "status $?"
	expect "files" "$(find "$TMP" -name '*lowq.prom*' | wc -l)" -eq 1
	expect "mode" "$(command stat -c %a "$TMP/lowq.prom")" = 644
}
declare_test prometheus "" "--prometheus: the format; --output: a reader never sees half a file"

intervals()
{
	dumbbell 1 4ms
	shape 20mbit bfifo limit 100000
	sink dctcp_ref
	connection 5299 cc=dctcp_ref flood=2.5
	sleep 1
	in_ns h1 "$LOWQ_STAT" --json --interval 1 --count 3 >"$TMP/stat" || fail "status $?"
	cat "$TMP/stat"
	expect "samples" "$(wc -l <"$TMP/stat")" -eq 3
	between "packets of 1 s at 20 Mb/s" "$(jq -s '.[0].rows[0].sent' "$TMP/stat")" 1500 1750
	expect "packets after the end" "$(jq -s '.[2].rows[0].sent' "$TMP/stat")" -le 100
	between "seconds" "$(jq -s '.[1].seconds' "$TMP/stat")" 0.99 1.01
}
declare_test intervals "" "--interval: the counts are those of the interval"

groups()
{
	local folder=$TMP/cgroup

	dumbbell 1 1ms
	sink cubic
	connection 5299 cc=cubic send=3000
	in_ns h1 python3 "$LIB/talk.py" to fd00:0::1 send=3000 sleep=1000 >/dev/null 2>&1 &
	mkdir "$folder"
	mount -t cgroup2 none "$folder" && mkdir -p "$folder/web/inner" || skip "no cgroups"
	# shellcheck disable=SC2016 # for the inner shell
	in_ns h1 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$folder/web/inner" python3 "$LIB/talk.py" to 10.0.0.1 cc=reno \
		send=3000 sleep=1000 >/dev/null 2>&1 &
	wait_until open_at 3
	stat --json --group "web=$folder/web" --group six=fd00::/16
	expect "groups" "$(jq -r '.rows[] | "\(.group) \(.control) \(.connections)"' "$TMP/stat" | paste -sd,)" = " cubic 1,six cubic 1,web reno 1"
	stat --json --group four=10.0.0.0/24
	expect "by prefix" "$(jq -r '.rows[] | "\(.group) \(.control) \(.connections)"' "$TMP/stat" | paste -sd,)" = " cubic 1,four cubic 1,four reno 1"
	stat --group "web=$folder/web"
	grep -q '^web: reno ' "$TMP/stat" || fail "no group in the table"
	ip netns pids "${NSP}h1" | xargs kill -9
	sleep 0.5
	umount "$folder"
}
declare_test groups "" "--group: by prefix and by cgroup, with those below it"

thousand()
{
	dumbbell 1 1ms
	sink cubic
	in_ns h1 python3 - <<-'END' &
		import socket, time
		socks = [socket.create_connection(("10.0.0.1", 5299)) for _ in range(1000)]
		for sock in socks:
		    sock.send(bytes(2000))
		time.sleep(1000)
	END
	WAIT=60 wait_until open_at 1000
	sleep 0.5
	stat --json
	expect "connections" "$(jq -c '[.rows[] | [.control, .connections, .sent]]' "$TMP/stat")" = '[["cubic",1000,2000]]'
}
declare_test thousand "" "1000 connections"

refuses()
{
	local words

	add_ns h1
	while read -r words; do
		# shellcheck disable=SC2086 # words
		in_ns h1 "$LOWQ_STAT" $words >"$TMP/out" 2>"$TMP/err"
		expect "status of $words" "$?" -eq 2
		[[ ! -s $TMP/out && $(wc -l <"$TMP/err") -eq 1 && $(<"$TMP/err") == "lowq-stat: "* ]] || fail "$words: $(<"$TMP/err")"
	done <<-END
		--nonsense
		--json --prometheus
		--interval 0
		--count 3
		--group x
		--group x=10.0.0.1/8
		--group x=/tmp
		--group x"y=10.0.0.0/8
		--output /no/such/file
		extra
	END
	mkdir "$TMP/full"
	mount -t tmpfs -o size=8k none "$TMP/full"
	echo old >"$TMP/full/lowq.prom"
	head -c 4096 /dev/zero >"$TMP/full/other"
	in_ns h1 "$LOWQ_STAT" --prometheus --output "$TMP/full/lowq.prom" 2>"$TMP/err"
	expect "status on a full disk" "$?" -eq 2
	expect "what is left" "$(find "$TMP/full" -type f -printf '%f\n' | sort | paste -sd' ')" = "lowq.prom other"
	expect "the file of before" "$(<"$TMP/full/lowq.prom")" = old
	umount "$TMP/full"
	mknod "$TMP/dev-full" c 1 7
	"$LOWQ_STAT" >"$TMP/dev-full" 2>"$TMP/err"
	expect "status where nothing can be written, and what it says" "$? $(<"$TMP/err")" = "2 lowq-stat: No space left on device"
	# what is no file stays what it is, and so does a link
	mknod "$TMP/null" c 1 3
	ln -s file "$TMP/link"
	in_ns h1 "$LOWQ_STAT" --output "$TMP/null"
	in_ns h1 "$LOWQ_STAT" --output "$TMP/link"
	[[ -c $TMP/null && -L $TMP/link && -s $TMP/file ]] || fail "a device or a link is a file now: $(ls -l "$TMP")"
	expect "version" "$("$LOWQ_STAT" --version)" = "lowq-stat $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$LOWQ_ROOT/dkms.conf")"
}
declare_test refuses "" "wrong use, no such file, a full disk: one line, nothing left; --output to a device or a link"

completes()
{
	add_ns h1
	completed h1 "$LOWQ_STAT" --pro
	expect "options" "$(<"$TMP/completed")" = "--prometheus "
}
declare_test completes "" "completion knows options"

dashboard()
{
	local board=$LOWQ_ROOT/deploy/grafana/lowq.json name

	[ -e "$board" ] || skip "no dashboard here"
	add_ns h1
	stat --prometheus
	in_ns h1 "$LOWQ_TC" show --prometheus >>"$TMP/stat" || fail "no metrics of lowq-tc"
	jq -r '.. | .expr? // empty' "$board" >"$TMP/queries"
	expect "queries" "$(wc -l <"$TMP/queries")" -ge 6
	grep -oE '\b(lowq_[a-z_]+)' "$TMP/queries" | sort -u >"$TMP/used"
	sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$TMP/stat" | sort -u >"$TMP/there"
	comm -23 "$TMP/used" "$TMP/there" >"$TMP/unknown"
	[ ! -s "$TMP/unknown" ] || fail "the dashboard asks for what there is not: $(paste -sd' ' "$TMP/unknown")"
	comm -13 "$TMP/used" "$TMP/there" >"$TMP/unused"
	[ ! -s "$TMP/unused" ] || fail "the dashboard does not show: $(paste -sd' ' "$TMP/unused")"
	while read -r name; do
		! [ -e "$LOWQ_ROOT/man/lowq-stat.8" ] || grep -q "$name" "$LOWQ_ROOT"/man/lowq-{stat,tc}.8 || fail "not in the manual: $name"
	done <"$TMP/there"
}
declare_test dashboard "" "the dashboard's queries name the metrics there are, and so does the manual"

run_tests "$@"
