#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests flowgen, the traffic generator.
#
#	c                                      s
#	flowgen long/rpc/... eth0 ==== eth0 flowgen serve
#	                    1 Gb/s, 2 x 50 us
#
# netem provides the rate and the delay if the kernel has it. Without permission to make
# namespaces, everything runs over the loopback interface.
#
# CONNS     connections in the test "many" (default 1000)

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
CONNS=${CONNS:-1000}
PORT=5201

# ---- set-up ------------------------------------------------------------------

# All tests share two servers; a server that a test starts ends with the test.
setup() { SERVERS=(); }
teardown()
{
	kill -KILL "${SERVERS[@]}" 2>/dev/null
	wait 2>/dev/null
}

cleanup()
{
	teardown
	ip netns del "${NSP}c" 2>/dev/null
	ip netns del "${NSP}s" 2>/dev/null
	rm -rf "$TMP"
}

make_link()
{
	local ns

	PLAN=1 add_ns c
	PLAN=1 add_ns s
	OFFLOADS=1 net 1 c eth0 s eth0 2>/dev/null || return
	for ns in c s; do
		in_ns $ns tc qdisc add dev eth0 root netem \
			delay 50us rate 1gbit limit 100000 2>/dev/null
	done
	CLIENT=(ip netns exec "${NSP}c")
	SERVER=(ip netns exec "${NSP}s")
	TO=10.0.1.254
	TO6=fd00:1::254
}

over_loopback()
{
	CLIENT=()
	SERVER=()
	TO=127.0.0.1
	TO6=::1
	PORT=$((20000 + $$ % 10000))
}

# server ARGS...: starts a server and waits until it listens; its pid is in $PID.
server()
{
	: >"$TMP/ready"
	"${SERVER[@]}" flowgen serve "$@" >"$TMP/ready" 2>>"$TMP/server.err" &
	PID=$!
	SERVERS+=("$PID")
	wait_until contains "$TMP/ready" ready
}

# ---- one run and its result --------------------------------------------

# client MODE ARGS...: runs a client; its output is in $TMP/out, its exit status in $RC.
client()
{
	local mode=$1
	shift
	"${CLIENT[@]}" timeout 120 flowgen "$mode" --port "$PORT" "$@" \
		>"$TMP/out" 2>"$TMP/err"
	RC=$?
}

# field TYPE NAME: the field's values in lines of this type.
field()
{
	local line n value="^\{\"type\":\"$1\".*\"$2\":\"?([^\",}]*)"

	{
		for ((n = 0; n < 20; n++)); do	# a few need no sed
			IFS= read -r line || return 0
			[[ ! $line =~ $value ]] || printf '%s\n' "${BASH_REMATCH[1]}"
		done
		sed -n 's/^{"type":"'"$1"'".*"'"$2"'":"\{0,1\}\([^",}]*\).*/\1/p'
	} <"$TMP/out"
}

sum() { awk '{ s += $1 } END { printf "%.0f\n", s }'; }
distinct() { sort -u | wc -l; }

# between WHAT GOT LOW HIGH
between()
{
	expect "$1" "$2" -ge "$3"
	expect "$1" "$2" -le "$4"
}

# good_run N [BYTES]: the run has N flows, all ok, with BYTES in total (by default any number).
good_run()
{
	local facts bytes

	expect "exit status" "$RC" = 0
	expect "errors" "$(<"$TMP/err")" = ""
	read -r bytes facts < <(jq -rs 'map(select(.type == "flow")) as $flows | map(select(.type == "summary")) as $sums |
		[ $sums[0].bytes, ($flows | length), ($flows | map(select(.status == "ok")) | length),
		  ($flows | map(.id) | unique | length), $sums[0].flows, $sums[0].ok, $sums[0].failed,
		  $sums[0].bytes - ($flows | map(.size) | add), ($sums | length), .[-1].type ] | map(tostring) | join(" ")' "$TMP/out")
	expect "flow lines, ok, ids; in the summary flows, ok, failed, bytes that no flow has; summaries; last line" \
		"$facts" = "$1 $1 $1 $1 $1 0 0 1 summary"
	[ $# -lt 2 ] || expect "bytes" "$bytes" = "$2"
}

# ---- tests: long -------------------------------------------------------------

long_push()
{
	client long --to "$TO" --flows 3 --size 2M
	good_run 3 6000000
	expect "sizes" "$(field flow size | sort -u)" = 2000000
	expect "direction" "$(field flow dir | sort -u)" = push
	expect "retrans is a number" "$(field flow retrans | grep -cE '^[0-9]+$')" = 3
	expect "ports of the server" "$(field flow dport | sort -u)" = "$PORT"
	expect "address of the server" "$(field flow dst | sort -u)" = "$TO"
	expect "ports of the client" "$(field flow sport | distinct)" = 3
}
declare_test long_push "" "three flows to the server: all bytes, ports, addresses"

long_pull()
{
	client long --to "$TO" --flows 3 --size 2Mi --pull
	good_run 3 6291456
	expect "direction" "$(field flow dir | sort -u)" = pull
	expect "retrans" "$(field flow retrans | sort -u)" = null
}
declare_test long_pull "" "three flows from the server"

long_one_byte()
{
	client long --to "$TO" --size 1
	good_run 1 1
	client long --to "$TO" --size 1 --pull
	good_run 1 1
}
declare_test long_one_byte "" "one byte each way"

# Sizes around which the sender or the receiver changes its method.
sizes_around_limits()
{
	local size dir

	for size in 1399 1400 1401 32767 32768 32769 65535 65536 65537 1048577 9000000; do
		for dir in "" --pull; do
			# shellcheck disable=SC2086 # $dir is one word or none
			client long --to "$TO" --size $size $dir --timeout 30s
			good_run 1 "$size"
		done
	done
}
declare_test sizes_around_limits "" "sizes around the limits of buffers, each way"

long_timed()
{
	local dir

	for dir in "" --pull; do
		# shellcheck disable=SC2086
		client long --to "$TO" --flows 2 --duration 200ms $dir
		good_run 2
		between "duration$dir" "$(field flow duration_ns | head -n 1)" 200000000 400000000
		between "bytes$dir" "$(field summary bytes)" 1000000 1e12
	done
	# The server continues.
	client long --to "$TO" --size 1k
	good_run 1 1000
}
declare_test long_timed "" "flows of a given duration, each way"

long_stagger()
{
	local first last

	client long --to "$TO" --flows 4 --size 1k --stagger 50ms
	good_run 4
	first=$(field flow start_ns | sort -n | head -n 1)
	last=$(field flow start_ns | sort -n | tail -n 1)
	between "first to last start" $((last - first)) 149000000 400000000
}
declare_test long_stagger "" "flows that start one after the other"

intervals()
{
	local dir

	for dir in "" --pull; do
		# shellcheck disable=SC2086
		client long --to "$TO" --flows 2 --duration 200ms --interval 20ms $dir
		good_run 2
		between "interval lines" "$(field interval id | wc -l)" 10 24
		expect "bytes of the intervals" "$(field interval bytes | sum)" \
			= "$(field summary bytes)"
		# shellcheck disable=SC2086
		client long --to "$TO" --size 5M --interval 5ms $dir
		good_run 1 5000000
		expect "bytes of the intervals" "$(field interval bytes | sum)" = 5000000
	done
}
declare_test intervals "" "the intervals' bytes add up to the flow's"

start_delay()
{
	local begin

	begin=$(date +%s%N)
	client long --to "$TO" --size 1k --start 300ms
	good_run 1 1000
	between "start" $(($(field flow start_ns) - begin)) 300000000 3000000000
}
declare_test start_delay "" "a delayed start"

# ---- tests: rpc --------------------------------------------------------------

rpc_pull()
{
	client rpc --to "$TO" --size 10k --rate 2000 --requests 100
	good_run 100 1000000
	expect "kind" "$(field flow kind | sort -u)" = rpc
	expect "direction" "$(field flow dir | sort -u)" = pull
	expect "connections" "$(field flow sport | distinct)" = 100
}
declare_test rpc_pull "" "requests for answers"

rpc_first_byte()
{
	local size

	for size in 1 1448 20k 3M; do
		client rpc --to "$TO" --size "$size" --closed 1 --requests 5 --first-byte
		good_run 5
		jq -se '[.[] | select(.type == "flow")] | all(.first_byte_ns > 0 and .first_byte_ns <= .since_due_ns)' \
			"$TMP/out" >/dev/null || fail "$size: first byte after the start, and at most at the end"
	done
	# 3 MB take 24 ms at 1 Gb/s, the first byte two round trips
	[ -z "${CLIENT[*]}" ] || jq -se '[.[] | select(.type == "flow")] |
		all(.first_byte_ns > 200000 and .first_byte_ns < .since_due_ns / 3)' "$TMP/out" >/dev/null ||
		fail "3M: first bytes after $(field flow first_byte_ns | paste -sd' ') ns"
	client rpc --to "$TO" --size 20k --rate 500 --duration 100ms --persist --first-byte
	good_run "$(field summary flows)"
	jq -se '[.[] | select(.type == "flow")] | all(.first_byte_ns > 0 and .first_byte_ns <= .since_due_ns)' "$TMP/out" \
		>/dev/null || fail "kept connections"
	client rpc --to "$TO" --size 20k --closed 1 --requests 1
	expect "first bytes without --first-byte" "$(field flow first_byte_ns)" = ""
}
declare_test rpc_first_byte "" "the time until the first byte of an answer"

rpc_push()
{
	client rpc --to "$TO" --size 10k --rate 2000 --requests 100 --push
	good_run 100 1000000
	expect "direction" "$(field flow dir | sort -u)" = push
}
declare_test rpc_push "" "requests that carry the bytes"

rpc_persist()
{
	local dir

	for dir in "" --push; do
		# shellcheck disable=SC2086
		client rpc --to "$TO" --size 200k --closed 4 --requests 60 --persist $dir
		good_run 60 12000000
		expect "connections$dir" "$(field flow sport | distinct)" = 4
	done
	client rpc --to "$TO" --size 5k --rate 200 --periodic --requests 30 --persist
	good_run 30 150000
	between "connections, open loop" "$(field flow sport | distinct)" 1 10
}
declare_test rpc_persist "" "requests over persistent connections"

rpc_closed()
{
	client rpc --to "$TO" --size 3k --closed 5 --requests 200
	good_run 200 600000
	expect "connections" "$(field flow sport | distinct)" = 200
	client rpc --to "$TO" --size 100k --closed 2 --duration 200ms
	good_run "$(field summary flows)"
	between "last start after the first" $(($(field flow start_ns | sort -n | tail -n 1) - \
		$(field summary start_ns))) 0 200000000
}
declare_test rpc_closed "" "a closed loop"

rpc_rate()
{
	client rpc --to "$TO" --size 1k --rate 400 --duration 1s --seed 3
	good_run "$(field summary flows)"
	between "requests in a second at 400/s" "$(field summary flows)" 340 460
}
declare_test rpc_rate "" "a rate of requests"

# A client that is stopped for 200 ms is late in starting the requests that were due meanwhile.
# Each is fast once it has started, but its user has waited since it was due.
rpc_due()
{
	local pid

	client rpc --to "$TO" --size 1k --rate 400 --duration 200ms --periodic
	good_run "$(field summary flows)"
	jq -se '[.[] | select(.type == "flow")] | all(.since_due_ns >= .duration_ns)' "$TMP/out" \
		>/dev/null || fail "due after the start"
	"${CLIENT[@]}" flowgen rpc --port "$PORT" --to "$TO" --size 1k --rate 400 \
		--duration 500ms --periodic >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	sleep 0.1
	pkill -STOP -f 'flowgen rpc .*--rate 400 --duration 500ms' || fail "no client to stop"
	sleep 0.2
	pkill -CONT -f 'flowgen rpc .*--rate 400 --duration 500ms'
	wait "$pid"
	RC=$?
	good_run "$(field summary flows)"
	between "ms later than due, at most" "$(jq -s '[.[] | select(.type == "flow") |
		(.since_due_ns - .duration_ns) / 1e6] | max' "$TMP/out")" 150 450
	between "... on the whole" "$(jq -s '[.[] | select(.type == "flow") |
		select(.since_due_ns - .duration_ns > 1e6)] | length' "$TMP/out")" 40 140
}
declare_test rpc_due "" "times from the instant at which a request was due"

rpc_cdf()
{
	local dir

	client rpc --to "$TO" --cdf "$LIB/cdf/hadoop.cdf" --rate 1000 --requests 60 --seed 2
	good_run 60
	field flow size | sort -n >"$TMP/sizes"
	client rpc --to "$TO" --cdf "$LIB/cdf/hadoop.cdf" --rate 1000 --requests 60 --seed 2 \
		--plan
	field plan size | sort -n >"$TMP/planned"
	expect "sizes as planned" "$(<"$TMP/sizes")" = "$(<"$TMP/planned")"
	# Large and small answers in turn on the same connection.
	for dir in "" --push; do
		# shellcheck disable=SC2086
		client rpc --to "$TO" --cdf "$LIB/cdf/hadoop.cdf" --closed 2 --requests 100 \
			--persist --timeout 20s $dir
		good_run 100
		expect "connections$dir" "$(field flow sport | distinct)" = 2
	done
}
declare_test rpc_cdf "" "sizes from a distribution, as --plan shows them"

rpc_hosts()
{
	client rpc --to "$TO,$TO:$((PORT + 1))" --size 1k --rate 5000 --requests 200
	good_run 200
	between "requests to the second" "$(field flow dport | grep -cx $((PORT + 1)))" 60 140
}
declare_test rpc_hosts "" "several servers"

# ---- tests: random draws ----------------------------------------------------

plan()
{
	client rpc --to "$TO" "$@" --plan
	expect "exit status" "$RC" = 0
}

seeds()
{
	plan --cdf "$LIB/cdf/websearch.cdf" --rate 1000 --requests 1000 --seed 7
	cp "$TMP/out" "$TMP/first"
	plan --cdf "$LIB/cdf/websearch.cdf" --rate 1000 --requests 1000 --seed 7
	cmp -s "$TMP/out" "$TMP/first" || fail "seed 7 twice gave different draws"
	plan --cdf "$LIB/cdf/websearch.cdf" --rate 1000 --requests 1000 --seed 8
	! cmp -s "$TMP/out" "$TMP/first" || fail "seeds 7 and 8 gave the same draws"
	expect "requests planned" "$(field plan id | distinct)" = 1000
	# A run uses the draws that --plan shows.
	client rpc --to "$TO" --cdf "$LIB/cdf/hadoop.cdf" --rate 1000 --requests 40 --seed 7
	paste <(field flow id) <(field flow size) | sort -n >"$TMP/first"
	client rpc --to "$TO" --cdf "$LIB/cdf/hadoop.cdf" --rate 1000 --requests 40 --seed 7
	paste <(field flow id) <(field flow size) | sort -n >"$TMP/second"
	cmp -s "$TMP/first" "$TMP/second" || fail "two runs of seed 7 had different sizes"
}
declare_test seeds "" "the seed determines all draws"

# Exponential: the standard deviation is the mean.
poisson()
{
	local mean cv

	plan --size 1k --rate 2000 --requests 20000 --seed 5
	read -r mean cv < <(field plan at_ns | awk '
		{ g = $1 - last; last = $1; s += g; q += g * g }
		END { m = s / NR; printf "%.1f %.4f\n", m, sqrt(q / NR - m * m) / m }')
	between "mean gap (ns)" "$mean" 485000 515000
	between "deviation over mean" "$cv" 0.96 1.04
}
declare_test poisson "" "gaps are exponential"

periodic()
{
	plan --size 1k --rate 3 --requests 4 --periodic
	expect "times" "$(field plan at_ns | tr '\n' ' ')" = "0 333333333 666666667 1000000000 "
}
declare_test periodic "" "gaps are equal"

load()
{
	plan --size 125k --load 100Mbit --duration 10s --periodic
	expect "requests in 10 s" "$(field plan id | wc -l)" = 1000
	plan --cdf "$LIB/cdf/websearch.cdf" --load 10gbit --duration 40s --seed 4
	between "load drawn (bit/s)" "$(field plan size |
		awk '{ s += $1 } END { printf "%.0f", s * 8 / 40 }')" 9.5e9 10.5e9
}
declare_test load "" "a load determines the rate"

# The mean of many draws is that of the file (trapezoids).
cdf_means()
{
	local name want got

	for name in websearch hadoop; do
		want=$(awk '!/^#/ && NF { if (n++) m += ($2 - f) * ($1 + b) / 2; b = $1; f = $2 }
			END { print m }' "$LIB/cdf/$name.cdf")
		plan --cdf "$LIB/cdf/$name.cdf" --rate 1000 --requests 50000 --seed 11
		got=$(field plan size | awk '{ s += $1 } END { print s / NR }')
		between "$name: mean drawn, as part of the file's" \
			"$(awk -v a="$got" -v b="$want" 'BEGIN { print a / b }')" 0.95 1.05
	done
	# A probability mass at the first point, and a step.
	printf '100 0.5\n2000 0.5\n2000 1\n' >"$TMP/step.cdf"
	plan --cdf "$TMP/step.cdf" --rate 1000 --requests 2000
	expect "sizes of a step" "$(field plan size | sort -un | tr '\n' ' ')" = "100 2000 "
	between "how many are small" "$(field plan size | grep -cx 100)" 900 1100
}
declare_test cdf_means "" "the mean of the draws is the distribution's"

# ---- tests: incast -----------------------------------------------------------

incast()
{
	client incast --to "$TO" --fan 32 --size 20k --count 3
	good_run 96 1920000
	expect "rounds" "$(field round round | tr '\n' ' ')" = "0 1 2 "
	expect "ok in each" "$(field round ok | tr '\n' ' ')" = "32 32 32 "
	expect "connections" "$(field flow sport | distinct)" = 32
	expect "starts" "$(field flow start_ns | distinct)" = 3
	expect "round's bytes" "$(field round bytes | sort -u)" = 640000
}
declare_test incast "" "rounds of answers at the same time"

incast_period()
{
	local begin end

	client incast --to "$TO,$TO:$((PORT + 1))" --fan 8 --size 20k --count 3 --period 100ms
	good_run 24
	expect "requests to the second" "$(field flow dport | grep -cx $((PORT + 1)))" = 12
	begin=$(field round start_ns | head -n 1)
	end=$(field round start_ns | tail -n 1)
	between "first to third round" $((end - begin)) 199000000 300000000
}
declare_test incast_period "" "rounds at equal times, from several servers"

incast_overdue()
{
	client incast --to "$TO" --fan 4 --size 1M --count 3 --period 1ms
	good_run 12
	between "late_max_ns, of rounds that wait for the last one" "$(field summary late_max_ns)" 0 5000000
}
declare_test incast_overdue "" "a round that waits for the last one is not called late"

incast_jitter()
{
	local first begin

	client incast --to "$TO" --fan 64 --size 1k --jitter 100ms --seed 7
	good_run 64 64000
	expect "starts" "$(field flow start_ns | distinct)" -ge 60
	begin=$(field round start_ns)
	between "last start after the round's" $(($(field flow start_ns | sort -n | tail -n 1) - begin)) 80000000 110000000
	# the same seed, the same instants; each of them is when its request was due
	first=$(offsets)
	client incast --to "$TO" --fan 64 --size 1k --jitter 100ms --seed 7
	expect "order of the starts" "$(offsets)" = "$first"
	client incast --to "$TO" --fan 64 --size 1k --jitter 100ms --seed 8
	expect "order with another seed" "$(offsets)" != "$first"
}
declare_test incast_jitter "" "requests that start at random instants, by the seed"

# offsets: ids of the flows in the order in which they started
offsets()
{
	jq -r 'select(.type == "flow") | [.start_ns, .id] | @tsv' "$TMP/out" | sort -n | cut -f2 | paste -sd' '
}

# ---- tests: scale, addresses, options ----------------------------------------

many()
{
	client long --to "$TO" --flows "$CONNS" --size 10k --timeout 100s
	good_run "$CONNS" $((CONNS * 10000))
	client incast --to "$TO" --fan "$CONNS" --size 10k --count 2 --timeout 100s
	good_run $((CONNS * 2)) $((CONNS * 20000))
	expect "connections at once" "$(field flow sport | distinct)" = "$CONNS"
}
declare_test many "" "a thousand connections at once"

ipv6()
{
	local to

	"${SERVER[@]}" ip -6 addr show to "$TO6" 2>/dev/null | grep -q inet6 || skip "no IPv6"
	for to in "[$TO6]:$PORT" "[$TO6]" "$TO6"; do
		client rpc --to "$to" --size 10k --rate 1000 --requests 5
		good_run 5 50000
		expect "destination" "$(field flow dst | sort -u)" = "$TO6"
	done
	client incast --to "$TO,$TO6" --fan 4 --size 10k
	good_run 4 40000
	expect "IPv6 of both" "$(field flow dst | grep -cx "$TO6")" = 2
}
declare_test ipv6 "" "IPv6, in every notation of an address"

control()
{
	client long --to "$TO" --size 1k --cc reno
	good_run 1
	expect "control" "$(field flow cc)" = reno
}
declare_test control "" "the congestion control that was asked for"

options()
{
	client rpc --to "$TO" --size 100k --rate 1000 --requests 10 --label 'a "b"' --dscp 8 \
		--mss 500 --sndbuf 64Ki --rcvbuf 64Ki --out "$TMP/file"
	expect "stdout with --out" "$(<"$TMP/out")" = ""
	cp "$TMP/file" "$TMP/out"
	good_run 10 1000000
	expect "label" "$(grep -cF '"label":"a \"b\""' "$TMP/out")" = 11
}
declare_test options "" "labels, DSCP, MSS, buffers, output to a file"

# ---- tests: errors --------------------------------------------------

# refused PATTERN MODE ARGS...: exit 2, one line on stderr that matches, nothing else.
refused()
{
	local pattern=$1 said

	shift
	"${CLIENT[@]}" timeout 20 flowgen "$@" >"$TMP/out" 2>"$TMP/err"
	RC=$?
	mapfile -t said <"$TMP/err"
	if [ "$RC" -ne 2 ] || [ -s "$TMP/out" ] || [ ${#said[@]} -ne 1 ] || [[ ! ${said[0]} =~ $pattern ]]; then
		fail "'$*': status $RC, said '$(<"$TMP/err")', expected 2 and '$pattern'"
	fi
}

bad_control()
{
	refused "no congestion control 'nosuch'" long --to "$TO" --size 1k --cc nosuch
	refused "no congestion control 'nosuch'" serve --cc nosuch
	refused "is not a congestion control's name" serve --cc a_name_that_is_too_long
}
declare_test bad_control "" "an unknown congestion control is refused"

bad_cdf()
{
	local text

	: >"$TMP/empty.cdf"
	refused "no points" rpc --to "$TO" --cdf "$TMP/empty.cdf" --rate 1 --requests 1
	refused "No such file" rpc --to "$TO" --cdf "$TMP/none.cdf" --rate 1 --requests 1
	for text in '10 1 5' 'ten 1' '10' '10 -1' '-1 1' '10 0.5' '10 0.9\n5 1' \
		    '10 0.9\n20 0.8' '0 1' '10 50\n20 100' 'nan 1' '10 nan' '10 1 # x\n9 1'; do
		# shellcheck disable=SC2059
		printf -- "$text\n" >"$TMP/bad.cdf"
		refused "--cdf: $TMP/bad.cdf" rpc --to "$TO" --cdf "$TMP/bad.cdf" --rate 1 \
			--requests 1
	done
}
declare_test bad_cdf "" "a broken distribution is refused"

bad_units()
{
	local x

	for x in "" 10x 10m -1 1e6 0x10 . 1.2.3 0 0.2 inf nan " 1k" "1 k" 99999999T; do
		refused "--size" long --to "$TO" --size "$x"
	done
	for x in "" 10 1.5 5m 5min -1s 1S "1 s" s inf; do
		refused "--duration" long --to "$TO" --duration "$x"
	done
	for x in "" 100 100k 100kb 1mbps -1mbit mbit; do
		refused "--load" rpc --to "$TO" --size 1k --requests 1 --load "$x"
	done
	for x in "" 0 -5 5/s 1k nan; do
		refused "--rate" rpc --to "$TO" --size 1k --requests 1 --rate "$x"
	done
	for x in "" 0 -1 1.5 1k 99999999999; do
		refused "--flows" long --to "$TO" --size 1k --flows "$x"
	done
}
declare_test bad_units "" "an invalid number is refused"

bad_usage()
{
	refused "say what to do"
	refused "is not serve" drink
	refused "unknown option" long --to "$TO" --size 1k --frob
	refused "needs a value" long --to "$TO" --size
	refused "one argument too many" long --to "$TO" --size 1k extra
	refused "given twice" long --to "$TO" --size 1k --size 2k
	refused "needs --to" long --size 1k
	refused "empty destination" long --to "" --size 1k
	refused "empty destination" long --to "$TO,,$TO" --size 1k
	refused "cannot resolve" long --to no.such.host.invalid --size 1k
	refused "cannot resolve" long --to 192.0.2.2 -6 --size 1k
	refused "port" long --to "$TO:0" --size 1k
	refused "port" long --to "$TO:x" --size 1k
	refused "ADDR" long --to "[::1" --size 1k
	refused "one of --duration and --size" long --to "$TO"
	refused "one of --duration and --size" long --to "$TO" --size 1k --duration 1s
	refused "one of --size and --cdf" rpc --to "$TO" --rate 1 --requests 1
	refused "one of --rate, --load and --closed" rpc --to "$TO" --size 1 --requests 1
	refused "one of --rate, --load and --closed" rpc --to "$TO" --size 1 --requests 1 \
		--rate 1 --load 1mbit
	refused "only one of" rpc --to "$TO" --size 1 --requests 1 --closed 1 --poisson
	refused "not with --push" rpc --to "$TO" --size 1 --closed 1 --requests 1 --push --first-byte
	refused "needs --requests or --duration" rpc --to "$TO" --size 1 --rate 1
	refused "needs --fan and --size" incast --to "$TO" --fan 3
	refused "has no place in incast" incast --to "$TO" --fan 3 --size 1k --pull
	refused "has no place in serve" serve --to "$TO"
	refused "not an open descriptor" serve --ready-fd 77
	refused "ECN" long --to "$TO" --size 1k --tos 1
	refused "--out" long --to "$TO" --size 1k --out /nosuch/dir/file
	refused "exclude each other" long --to "$TO" --size 1k -4 -6
}
declare_test bad_usage "" "an invalid argument is refused"

help_text()
{
	flowgen --help >"$TMP/out" 2>"$TMP/err"
	expect "exit status" $? = 0
	grep -q "^Usage:" "$TMP/out" || fail "no usage in --help"
}
declare_test help_text "" "--help"

# raw SECONDS PAUSE FORMAT...: sends each FORMAT (for printf) over one connection, with
# PAUSE in between, and counts the bytes that come back within SECONDS.
raw()
{
	# shellcheck disable=SC2016
	"${CLIENT[@]}" timeout 60 bash -c '
		exec 3<>"/dev/tcp/$1/$2" || exit
		seconds=$3 pause=$4
		shift 4
		for i in "$@"; do
			printf "$i" >&3
			sleep "$pause"
		done
		timeout "$seconds" cat <&3 | wc -c' - "$TO" "$PORT" "$@" 2>/dev/null
}

# No input may end or confuse the server.
garbage()
{
	local one='\0\0\0\0\0\0\0\1' big i

	expect "a good request" "$(raw 0.1 0 'LQFG\1\1\0\0'"$one")" = 1
	expect "half a request" "$(raw 0.1 0 'LQFG\1\1')" = 0
	expect "in two halves" "$(raw 0.1 0.05 'LQFG\1\1' '\0\0'"$one")" = 1
	expect "bad magic" "$(raw 0.1 0 'LQFX\1\1\0\0'"$one")" = 0
	expect "bad version" "$(raw 0.1 0 'LQFG\2\1\0\0'"$one")" = 0
	expect "bad operation" "$(raw 0.1 0 'LQFG\1\3\0\0'"$one")" = 0
	expect "bad flags" "$(raw 0.1 0 'LQFG\1\1\2\0'"$one")" = 0
	expect "bad padding" "$(raw 0.1 0 'LQFG\1\1\0\1'"$one")" = 0
	expect "no bytes" "$(raw 0.1 0 'LQFG\1\1\0\0\0\0\0\0\0\0\0\0')" = 0
	expect "too many bytes" "$(raw 0.1 0 'LQFG\1\1\0\0\xff\0\0\0\0\0\0\0')" = 0
	expect "another protocol" "$(raw 0.1 0 'GET / HTTP/1.1\r\n\r\n')" = 0
	for i in /dev/zero /dev/urandom; do
		head -c 1M "$i" >"$TMP/garbage"
		# shellcheck disable=SC2016
		"${CLIENT[@]}" timeout 20 bash -c 'cat "$3" >"/dev/tcp/$1/$2"' \
			- "$TO" "$PORT" "$TMP/garbage" 2>/dev/null
	done
	# A client asks for 2^60 bytes and disconnects.
	between "endless" "$(raw 0.1 0 'LQFG\1\1\0\0\x10\0\0\0\0\0\0\0')" 1000000 1e12
	# A second request arrives while the first is being answered: 30 MB do not fit into buffers.
	big='\0\0\0\0\1\xc9\xc3\x80'
	expect "two requests at once" "$(raw 2 0.05 'LQFG\1\1\0\0'"$big" \
		'LQFG\1\1\0\0'"$one")" = 30000001

	kill -0 "$MAIN" || fail "the server is gone"
	for i in 1 2 3; do
		client rpc --to "$TO" --size 10k --rate 1000 --requests 5
		good_run 5 50000
	done
	expect "the server's stdout" "$(<"$TMP/main.ready")" = ready
}
declare_test garbage "" "no input ends or confuses the server"

connection_refused()
{
	client rpc --to "$TO:$((PORT + 7))" --size 10k --rate 1000 --requests 3
	expect "exit status" "$RC" = 1
	expect "status" "$(field flow status | sort -u)" = "error: Connection refused"
	expect "summary" "$(field summary ok) $(field summary failed)" = "0 3"
	client rpc --to "$TO:$((PORT + 7))" --size 10k --closed 2 --duration 20ms
	expect "exit status" "$RC" = 1
	client incast --to "$TO:$((PORT + 7))" --fan 3 --count 2 --size 10k
	expect "exit status" "$RC" = 1
	expect "failed in each round" "$(field round failed | tr '\n' ' ')" = "3 3 "
}
declare_test connection_refused "" "no server: reported for each flow"

# A server that does not answer: its kernel accepts the connection and the data.
timeouts()
{
	local pid

	server --port $((PORT + 2))
	pid=$PID
	kill -STOP "$pid"
	client rpc --to "$TO:$((PORT + 2))" --size 1k --rate 1000 --requests 3 --timeout 100ms
	expect "exit status" "$RC" = 1
	expect "status" "$(field flow status | sort -u)" = timeout
	between "duration" "$(field flow duration_ns | head -n 1)" 100000000 2000000000
	# The number of acknowledged bytes is known exactly.
	client long --to "$TO:$((PORT + 2))" --size 100 --timeout 100ms
	expect "status" "$(field flow status)" = timeout
	expect "size acknowledged" "$(field flow size)" = 100
	client incast --to "$TO:$((PORT + 2))" --fan 3 --count 2 --size 1k --timeout 100ms
	expect "exit status" "$RC" = 1
	expect "failed in each round" "$(field round failed | tr '\n' ' ')" = "3 3 "
	kill -CONT "$pid"
	client rpc --to "$TO:$((PORT + 2))" --size 1k --rate 1000 --requests 3
	good_run 3
	kill "$pid"
	wait "$pid"
	expect "the server's exit status" $? = 0
}
declare_test timeouts "" "a server that does not answer: reported, with the acknowledged bytes"

server_dies()
{
	local pid client

	server --port $((PORT + 3))
	pid=$PID
	"${CLIENT[@]}" timeout 60 flowgen rpc --to "$TO:$((PORT + 3))" --size 1k --rate 10 \
		--duration 600ms --persist >"$TMP/out" 2>"$TMP/err" &
	client=$!
	sleep 0.2
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	wait "$client"
	expect "exit status" $? = 1
	expect "last line" "$(tail -n 1 "$TMP/out" | grep -c '"type":"summary"')" = 1
}
declare_test server_dies "" "a server that dies: the client ends with a summary"

interrupt()
{
	local client

	"${CLIENT[@]}" flowgen long --to "$TO" --port "$PORT" --flows 3 --size 1000G \
		>"$TMP/out" 2>"$TMP/err" &
	client=$!
	sleep 0.2
	kill -TERM "$client"
	wait "$client"
	expect "exit status" $? = 1
	expect "status" "$(field flow status | sort -u)" = "error: interrupted"
	expect "failed" "$(field summary failed)" = 3
}
declare_test interrupt "" "an interrupted client reports what it did"

once_idle()
{
	local pid

	server --port $((PORT + 4)) --once-idle=50ms
	pid=$PID
	client long --to "$TO:$((PORT + 4))" --size 1M --flows 2
	good_run 2
	wait "$pid"
	expect "the server's exit status" $? = 0
}
declare_test once_idle "" "a server that ends when it is idle"

ready_fd()
{
	"${SERVER[@]}" flowgen serve --port $((PORT + 5)) --ready-fd 9 9>"$TMP/fd" \
		>"$TMP/out" 2>&1 &
	PID=$!
	SERVERS+=("$PID")
	wait_until test -s "$TMP/fd"
	expect "descriptor 9" "$(<"$TMP/fd")" = ready
	client long --to "$TO:$((PORT + 5))" --size 1k
	kill "$PID"
	wait "$PID"
	expect "the server's exit status" $? = 0
	good_run 1
}
declare_test ready_fd "" "the server says when it is ready"

port_in_use()
{
	"${SERVER[@]}" timeout 20 flowgen serve --port "$PORT" >"$TMP/out" 2>"$TMP/err"
	expect "exit status" $? = 1
	grep -q "in use" "$TMP/err" || fail "said '$(<"$TMP/err")'"
	expect "stdout" "$(<"$TMP/out")" = ""
}
declare_test port_in_use "" "a port in use is refused"

# ---- main --------------------------------------------------------------------

command -v flowgen >/dev/null || skip_all "no flowgen: make -C selftests tools"
trap cleanup EXIT
make_link || over_loopback
server --port "$((PORT + 1))"
server --port "$PORT" --cc reno
MAIN=$PID
mv "$TMP/ready" "$TMP/main.ready"
run_tests "$@"
