# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Captures, traces, and what they show. Part of lib.sh.

# ss_field NAME: prints a number from the output of ss -ti on standard input
ss_field()
{
	sed -n "s/.*[ (,]$1:\([0-9]*\).*/\1/p"
}

# ours FILE: the lines of a trace that come from the last flow's sender
ours()
{
	awk -v p="$(flow_field sport)" '$0 ~ "sport=" p " "' "$1"
}

# contains FILE WORD: is it in this small file?
contains()
{
	local lines

	mapfile lines <"$1"
	[[ ${lines[*]} = *"$2"* ]]
}

# capture NS DEV FILE [FILTER]: captures the headers of packets in both directions, in the
# background, until stop_captures
capture()
{
	local log

	command -v tshark >/dev/null || skip "no tshark to read captures with"
	log=$TMP/tcpdump.${3##*/}
	: >"$log"	# that of an earlier capture contains "listening"
	nsenter --net="/run/netns/$NSP$1" tcpdump -i "$2" -Z root -s "${SNAPLEN:-128}" -B 65536 -n \
		--time-stamp-precision=nano -w "$3" ${4:+"$4"} 2>"$log" &
	CAPTURES+=($!)
	wait_until contains "$log" listening
}

stop_captures()
{
	# tcpdump gets the last packets when its read times out
	sleep 1.5
	kill -TERM "${CAPTURES[@]}"
	wait "${CAPTURES[@]}" 2>/dev/null
	CAPTURES=()
}

# observe RATE [QDELAY OPTION...]: starts qdelay on both sides of sw's egress. observed stops it
# and leaves the result in $TMP/q.json
observe()
{
	local ports='' dev

	while read -r dev _; do
		[[ $dev != p[0-9]*@* ]] || ports+=${ports:+,}${dev%@*}
	done < <(ip -n "${NSP}sw" -br link)
	nsenter --net="/run/netns/${NSP}sw" qdelay --live --in "$ports" --out egress --filter tcp --rate "$1" "${@:2}" \
		--json "$TMP/q.json" 2>"$TMP/qdelay.err" &
	OBSERVER=$!
	wait_until contains "$TMP/qdelay.err" ready
}

observed()
{
	sleep 0.2
	kill -TERM "$OBSERVER"
	wait "$OBSERVER" || fail "qdelay: $(tail -n1 "$TMP/qdelay.err")"
}

# judge CHECK ARGUMENT...: prints what a capture or a trace shows, as name=value words
# (judge.py --help)
judge()
{
	PYTHONPATH=$LIB python3 -m judge "$@" || fail "judge $*"	# as a module it is compiled already
}

# judged CHECK ARGUMENT...: the same, in $TMP/judged and in the test's log
judged()
{
	judge "$@" >"$TMP/judged"
	printf '%s\n' "$(<"$TMP/judged")"
}

# packets FILE FILTER FIELD...: tshark's fields, a line per packet, separated by tabs (dissect.py)
packets()
{
	python3 "$LIB/dissect.py" "$@" || fail "dissect $*"
}

# count FILE FILTER: the number of packets
count()
{
	packets "$1" "$2" --count
}

# packets_together FILE [FROM [TO]]: the share of data packets, in percent, that left within 10 us of the one before,
# from a second on (3) until another
packets_together()
{
	packets "$1" "tcp.dstport == 5201 && tcp.len > 0 && frame.time_relative > ${2:-3}${3:+ && frame.time_relative < $3}" frame.time_epoch |
		awk '{ split($1, t, "."); now = t[1] % 1000 * 1e9 + t[2] }
			NR > 1 { n++; if (now - last < 10000) close_by++ }
			{ last = now }
			END { printf "%d", n ? 100 * close_by / n : -1 }'
}

# trace_on EVENT...: starts a trace of these events, given as system/event
trace_on()
{
	local t=/sys/kernel/tracing e

	echo 65536 >$t/buffer_size_kb
	echo >$t/trace
	for e; do
		echo 1 >"$t/events/$e/enable"
	done
}

# trace_off FILE: stops the trace and moves it to FILE
trace_off()
{
	local t=/sys/kernel/tracing

	echo 0 >$t/events/enable
	grep -v '^#' $t/trace >"$1"
	echo >$t/trace
}

# field NAME: its value from each line of name=value words on standard input. A few need no sed.
field()
{
	local line word="^.*\\b$1=([^ ]*)" n

	for ((n = 0; n < 20; n++)); do
		IFS= read -r line || return 0
		[[ ! $line =~ $word ]] || printf '%s\n' "${BASH_REMATCH[1]}"
	done
	sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"
}

# For awk: the words name=value of a line into v[], a trace's time stamp into v["t"]
# shellcheck disable=SC2016,SC2034 # it is awk's, for the scripts
VALUES='{ for (i = 1; i <= NF; i++) { split($i, kv, "="); v[kv[1]] = kv[2] } t = $0; sub(/: [a-z_]*: .*/, "", t); sub(/.* /, "", t); v["t"] = t + 0 }'

# queue_counts NS DEV: the queue's own counts of CE marks and drops ("MARKS DROPS")
queue_counts()
{
	in_ns "$1" tc -s -j qdisc show dev "$2" |
		jq -r '[.[] | select(.marked? != null or .ecn_mark? != null)] |
			[(map(.marked // .ecn_mark) | add // 0), (map(.drops // 0) | add // 0)] | @tsv'
}
