#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Compares qdelay with captures whose content is known to the byte, and live with the
# counters of real queues.
#
# Live tests need root, iproute2 and ping; kinds of queue that the kernel lacks are
# skipped.

export LC_ALL=C
# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

setup() { :; }	# only live tests need more
declare -A JSON	# the last result, by path: .flows[0].packets

# got [FILE]: prints a result of qdelay; FILE has tc's counters, added as .tc.KIND
got()
{
	local path value

	JSON=()
	while IFS='=' read -r path value; do
		JSON[$path]=$value
	done < <(jq -rs '.[0] + {tc: (.[1] // [] | INDEX(.kind))} |
		paths(type != "object" and type != "array") as $p |
		($p | map(if type == "number" then "[\(.)]" else ".\(.)" end) | add) +
		"=\(getpath($p))"' "$TMP/json" "$@")
}

# run STATUS [qdelay options]: runs qdelay, which must exit with STATUS
run()
{
	local want=$1 rc

	shift
	qdelay "$@" >"$TMP/json" 2>"$TMP/err"
	rc=$?
	[ "$rc" = "$want" ] || fail "exit status $rc, not $want ($(head -c 200 "$TMP/err"))"
	JSON=()
	[ ! -s "$TMP/json" ] || got
}

PAIR=(--in "$TMP/in" --out "$TMP/out")

# measure [qdelay options]: runs qdelay on the captures that traffic made
measure()
{
	run 0 "${PAIR[@]}" "$@"
}

# want PATH=VALUE...: the result has these values; compares numbers as numbers
want()
{
	local w is

	for w; do
		is=${JSON[${w%%=*}]-}
		[ "$is" = "${w#*=}" ] ||
			awk -v a="$is" -v b="${w#*=}" 'BEGIN { exit !(a == b) }' ||
			fail "${w%%=*} is '$is', not '${w#*=}'"
	done
}

# near PATH VALUE RELATIVE-ERROR
near()
{
	awk -v a="${JSON[$1]-}" -v b="$2" -v e="$3" \
		'BEGIN { d = a - b; exit !(a != "" && d <= e * b && -d <= e * b) }' ||
		fail "$1 is ${JSON[$1]-}, not $2"
}

says()	# STRING: on standard error, in one line
{
	grep -qF -- "$1" "$TMP/err" || fail "no '$1' but '$(head -c 200 "$TMP/err")'"
}

silent()	# no result
{
	[ ! -s "$TMP/json" ] || fail "a result in spite of the error"
	[ "$(wc -l <"$TMP/err")" = 1 ] || fail "not one line of error"
}

mk()	# NAME [OPTIONS]: packets on standard input
{
	python3 "$SELFTESTS/programs/qdelay_pcap.py" "${@:2}" "$TMP/$1" || fail "cannot make $1"
}

# traffic: makes the captures in and out from packets on standard input, each with two times
traffic()
{
	python3 "$SELFTESTS/programs/qdelay_pcap.py" "$TMP/in" "$TMP/out" || fail "cannot make in and out"
}

A='10.0.0.1:1000>10.0.0.9:80'
B='10.0.0.2:2000>10.0.0.9:80'
A6='[fd00::1]:1000>[fd00::9]:80'

# ---- captures with known answers ----

# 1500 bytes of IP, 1514 on Ethernet; the queue takes 1 us per packet.
t_basic()
{
	traffic <<-E
		0    1000 tcp $A id=1 seq=1000 len=1460 ecn=2
		0    2000 tcp $A id=2 seq=2460 len=1460 ecn=2>3
		0    -    tcp $A id=3 seq=3920 len=1460 ecn=2
		0    3000 tcp $A id=4 seq=5380 len=1460 ecn=1>3
		6000 8000 tcp $A id=5 seq=6840 len=1460 ecn=0
	E
	measure --rate 10gbit --overhead 24
	# 4 * 1538 * 8 bits in 8 us
	want .packets_in=5 .packets_out=4 .bytes_out=6152 .matched=4 .dropped=1 \
		.unresolved=0 .unmatched_out=0 .queued_at_start=0 .segmented=0 \
		.ignored=0 .duration_ns=8000 .first_ns=1700000000000000000 \
		.throughput_bps=6152000000 .utilisation=0.615200 \
		.delay_us.mean=2 .delay_us.min=1 .delay_us.p50=2 .delay_us.p90=3 \
		.delay_us.p99=3 .delay_us.p999=3 .delay_us.max=3 \
		.ecn.in.not_ect=1 .ecn.in.ect0=3 .ecn.in.ect1=1 .ecn.in.ce=0 \
		.ecn.out.not_ect=1 .ecn.out.ect0=1 .ecn.out.ect1=0 .ecn.out.ce=2 \
		.marked=2 .mark_fraction=0.5 .dropped_ect0=1 .dropped_ect1=0 \
		.dropped_not_ect=0 .dropped_ce=0 .jain=1
	# 3 for 1 us, 2 for 1 us, 1 for 3 us, 0 for 3 us (not the dropped one)
	want .qlen_pkts.mean=1 .qlen_pkts.max=3 .qlen_pkts.p99=3 \
		.qlen_pkts.stddev=1.000000 .qlen_bytes.mean=1538 \
		.qlen_bytes.max=4614 .qlen_bytes.stddev=1538
	want ".flows[0].flow=$A" .flows[0].proto=tcp .flows[0].packets=4 \
		.flows[0].packets_in=5 .flows[0].bytes=6152 \
		.flows[0].payload_bytes=5840 .flows[0].goodput_bps=5840000000 \
		.flows[0].marked=2 .flows[0].dropped=1 \
		.flows[0].retransmitted=0 .flows[0].delay_us.mean=2 \
		.flows[0].delay_us.p99=3 .flows[1].flow=
	measure
	want .utilisation=null .bytes_out=6056
}
declare_test t_basic "" "packets, delays, queue lengths, marks and a drop that are known exactly"

t_ipv6()
{
	traffic <<-E
		0   1000 tcp $A6 label=0x12345 seq=1 len=1000 ecn=2>3
		100 2000 tcp $A6 label=0x12345 seq=1001 len=1000 ecn=2 ext=1
		200 3000 udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1>3 fill=1
		300 -    udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=2
		400 4000 udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=3
		500 5000 58 [fd00::1]:0>[fd00::9]:0 len=64 fill=0x80
		600 -    58 [fe80::1]:0>[ff02::1]:0 len=24 fill=0x87
	E
	measure
	want .packets_in=6 .matched=5 .dropped=1 .dropped_ect1=1 .marked=2 \
		.ignored=1 .delay_us.min=1 .delay_us.max=4.5 .delay_us.p50=2.8 \
		.delay_us.mean=2.76 ".flows[0].flow=$A6" .flows[0].packets=2 \
		.flows[0].payload_bytes=2000 \
		'.flows[1].flow=[fd00::1]:5>[fd00::9]:6' .flows[1].proto=udp \
		.flows[1].dropped=1 .flows[1].packets=2 \
		.flows[2].proto=icmp6 '.flows[2].flow=[fd00::1]:0>[fd00::9]:0'
}
declare_test t_ipv6 "" "IPv6, extension headers, ICMPv6"

# A loss and its retransmission, a needless retransmission, a new connection
# between the same ports, and sequence numbers that wrap.
t_retransmission()
{
	traffic <<-E
		0   1000 tcp $A id=1 seq=0xfffffc17 flags=2
		100 1100 tcp $A id=2 seq=0xfffffc18 len=1000
		200 -    tcp $A id=3 seq=0 len=1000
		300 1300 tcp $A id=4 seq=1000 len=1000
		400 1400 tcp $A id=5 seq=0 len=1000
		500 1500 tcp $A id=6 seq=1000 len=1000
		600 1600 tcp $A id=7 seq=2000 len=1000 flags=0x11
		700 1700 tcp $A id=8 seq=500 flags=2
		800 1800 tcp $A id=8 seq=500 flags=2
		900 2000 tcp $A id=9 seq=501 len=1000
	E
	measure
	# 5000 bytes of 6000 are new; 2 us
	want .matched=9 .dropped=1 .flows[0].retransmitted=3 \
		.flows[0].payload_bytes=6000 .flows[0].goodput_bps=20000000000 \
		.delay_us.max=1.1 .delay_us.min=1 .flows[1].flow=
}
declare_test t_retransmission "" "a loss, retransmissions, a new connection, numbers that wrap"

# Parts of holes filled: from below, above, within, across.
t_holes()
{
	mk in <<-E
		0 tcp $A id=1 seq=0 len=100
		1 tcp $A id=2 seq=1000 len=100
		2 tcp $A id=3 seq=100 len=100
		3 tcp $A id=4 seq=900 len=100
		4 tcp $A id=5 seq=400 len=100
		5 tcp $A id=6 seq=450 len=100
		6 tcp $A id=7 seq=2000 len=100
		7 tcp $A id=8 seq=0 len=2100
		8 tcp $A id=9 seq=0 len=2100
	E
	cp "$TMP/in" "$TMP/out"
	measure
	# 5 overlaps a part of 6; 8 fills the hole, 9 adds nothing
	want .matched=9 .flows[0].retransmitted=3 .flows[0].goodput_bps=2100000000000 \
		.flows[0].payload_bytes=4900 .delay_us.max=0 .qlen_pkts.max=0
}
declare_test t_holes "" "parts of holes filled"

# Packets that look the same are matched in the order of their arrival.
t_duplicates()
{
	traffic <<-E
		0    5000  udp $A len=100
		1000 6000  udp $A len=100
		2000 10000 udp $A len=100
		3000 8000  udp $B len=100
		9000 -     udp $A len=100
	E
	measure --packets "$TMP/p"
	# B arrived after the third copy and left before it could: the third copy is lost, not
	# the fourth
	want .matched=4 .dropped=1 .unresolved=0 .unmatched_out=0 .delay_us.max=5
	expect "packets" "$(cut -d, -f1-3 "$TMP/p" | sed 's/17000000000000//g' | tr '\n' ' ')" = \
		"t_in_ns,t_out_ns,delay_ns 00000,05000,5000 01000,06000,5000 03000,08000,5000 09000,10000,1000 02000,, "
}
declare_test t_duplicates "" "packets that look the same"

# A retransmission that looks like the lost segment (IPv6 has no id): a packet is lost if it
# is older than the last packet of its flow that left ...
t_alike()
{
	traffic <<-E
		0    -    tcp $A6 seq=0 len=100 ts=5
		1000 2000 tcp $A6 seq=100 len=100 ts=5
		5000 6000 tcp $A6 seq=0 len=100 ts=5
		6000 7000 tcp $A6 seq=200 len=100 ts=5
	E
	measure
	want .matched=3 .dropped=1 .delay_us.max=1 .delay_us.min=1 \
		.flows[0].retransmitted=1 .qlen_pkts.max=1
	# ... unless it leaves after all
	traffic <<-E
		0    8000 tcp $A6 seq=0 len=100 ts=5
		1000 2000 tcp $A6 seq=100 len=100 ts=5
		5000 6000 tcp $A6 seq=0 len=100 ts=5
		6000 7000 tcp $A6 seq=200 len=100 ts=5
	E
	measure
	want .matched=4 .dropped=0 .unmatched_out=0 .delay_us.max=8
}
declare_test t_alike "" "a retransmission that looks like the lost segment"

# A lost last segment looks like its retransmission; another flow's packet overtook it.
t_alike_tail()
{
	traffic <<-E
		0         -         tcp $A6 seq=0 len=100
		1000      2000      tcp $B id=1 seq=0 len=100
		206000000 207000000 tcp $A6 seq=0 len=100
	E
	measure
	want .matched=2 .dropped=1 .delay_us.max=1000
}
declare_test t_alike_tail "" "a lost last segment that another flow overtook"

# B overtakes A, as in a queue with two bands; shares of the rate.
t_two_flows()
{
	traffic <<-E
		0    7000  tcp $A id=1 seq=0 len=1000
		1000 4000  tcp $B id=1 seq=0 len=1000
		2000 8000  tcp $A id=2 seq=1000 len=1000
		3000 5000  tcp $B id=2 seq=1000 len=1000
		4000 6000  tcp $B id=3 seq=2000 len=1000
		5000 10000 tcp 10.0.0.3:1>10.0.0.9:80 id=1 seq=5 len=0
	E
	measure
	# (2 + 3)^2 / (2 * (4 + 9)): a flow without data does not count
	want .matched=6 .dropped=0 .jain=0.961538 ".flows[0].flow=$A" \
		".flows[1].flow=$B" .flows[0].delay_us.mean=6.5 \
		.flows[0].delay_us.p99=7 .flows[1].delay_us.mean=2.333333 \
		.flows[1].goodput_bps=2400000000 .qlen_pkts.max=4 \
		.qlen_pkts.mean=2.5
}
declare_test t_two_flows "" "two flows, shares of the rate"

# Matching ignores what queues, routers and captures change.
t_link_types()
{
	local l m

	for l in eth vlan qinq sll sll2 raw; do
		mk "in.$l" -l "$l" <<-E
			0 tcp $A id=1 seq=0 len=1000 ecn=2 ts=77 ttl=64
			0 tcp $A6 label=9 seq=0 len=1000 ecn=2 ts=77 ttl=64
			0 udp $B id=0 len=9 ecn=2 ttl=64
		E
		mk "out.$l" -l "$l" <<-E
			100 tcp $A id=1 seq=0 len=1000 ecn=3 ts=77 ttl=1
			200 tcp $A6 label=9 seq=0 len=1000 ecn=0 ts=77 ttl=1
			300 udp $B id=0 len=9 ecn=2 ttl=1 pad=9
		E
	done
	for l in eth vlan qinq sll sll2 raw; do
		for m in eth vlan qinq sll sll2 raw; do
			run 0 --in "$TMP/in.$l" --out "$TMP/out.$m"
			want .matched=3 .unmatched_out=0 .marked=1 .delay_us.max=0.3
		done
	done
	want .bytes_out=2170	# 40 + 12 + 1000, 60 + 12 + 1000, 28 + 9 + 9, raw
}
declare_test t_link_types "" "every link type against every other"

# ... and nothing else.
t_key()
{
	local p="tcp $A id=1 frag=0 seq=5 ack=6 flags=16 ts=7 len=10" q

	mk in <<<"0 $p"
	mk in6 <<<"0 tcp $A6 label=1 len=10"
	mk inu <<<"0 udp $A id=0 len=10 fill=1"
	for q in "${p/1000/1001}" "${p/80/81}" "${p/0.1/0.3}" "${p/0.9/0.8}" \
		 "${p/id=1/id=2}" "${p/frag=0/frag=0x4000}" "${p/seq=5/seq=4}" \
		 "${p/ack=6/ack=4}" "${p/16/24}" "${p/ts=7/ts=8}" \
		 "${p/ts=7/}" "${p/len=10/len=11}"; do
		mk out <<<"1 $q"
		qdelay --in "$TMP/in" --out "$TMP/out" 2>&1 |
			grep -q '"unmatched_out":1' || fail "'$q' taken for '$p'"
	done
	for q in "label=2 len=10" "label=1 len=9"; do
		mk out <<<"1 tcp $A6 $q"
		qdelay --in "$TMP/in6" --out "$TMP/out" 2>&1 |
			grep -q '"unmatched_out":1' || fail "IPv6: '$q'"
	done
	mk out <<<"1 udp $A id=0 len=10 fill=2"
	run 0 --in "$TMP/inu" --out "$TMP/out"
	want .unmatched_out=1 .unresolved=1
	says "1 packets left that had not come in"
	run 0 --in "$TMP/inu" --out "$TMP/out" --prefix 0
	want .unmatched_out=0 .matched=1
}
declare_test t_key "" "packets that differ are not matched"

t_snaplen()
{
	local i

	for i in in out; do
		{
			echo "${#i}000 tcp $A id=1 seq=0 len=1000 ts=5"
			echo "${#i}000 udp $A6 len=1000 fill=7"
			echo "${#i}000 udp $A6 len=10 fill=7"
		} >"$TMP/$i.txt"
		mk "$i" <"$TMP/$i.txt"
		mk "$i.96" -s 96 <"$TMP/$i.txt"
		mk "$i.110" -s 110 -l vlan <"$TMP/$i.txt"
		mk "$i.cut" -S 90 <"$TMP/$i.txt"
		mk "$i.60" -s 60 <"$TMP/$i.txt"
	done
	for i in "in out.96" "in.96 out" "in.110 out" "in.96 out.110"; do
		run 0 --in "$TMP/${i% *}" --out "$TMP/${i#* }"
		want .matched=3 .delay_us.mean=1
	done
	# lengths are those on the wire: 14 + 52 + 1000, 14 + 48 + 1000, 14 + 58
	run 0 --in "$TMP/in.110" --out "$TMP/out.96"
	want .matched=3 .bytes_out=2200 .delay_us.mean=1
	run 1 --in "$TMP/in" --out "$TMP/out.cut"
	silent
	says "out.cut: packet 2 has only 90 of its 1062 bytes"
	run 0 --in "$TMP/in" --out "$TMP/out.cut" --snaplen 90
	want .matched=3
	run 1 --in "$TMP/in" --out "$TMP/out.60"
	silent
	says "out.60: snapshot length too small: at least 82"
}
declare_test t_snaplen "" "captures cut short"

t_formats()
{
	cat >"$TMP/txt" <<-E
		1000 tcp $A id=1 seq=0 len=1000
		3000 tcp $A id=2 seq=1000 len=1000
	E
	mk in -u <"$TMP/txt"
	mk in.ng -g <"$TMP/txt"
	mk in.ngu -g -u <"$TMP/txt"
	sed 's/000 tcp/123 tcp/' "$TMP/txt" | mk out -g
	local i

	for i in in in.ng in.ngu; do
		run 0 --in "$TMP/$i" --out - <"$TMP/out"
		want .matched=2 .delay_us.max=0.123
		run 0 --in "$TMP/$i" --out "$TMP/out"
		want .matched=2 .delay_us.max=0.123
	done
}
declare_test t_formats "" "pcap and pcapng, us and ns, standard input"

t_several_in()
{
	mk in1 <<-E
		0    tcp $A id=1 seq=0 len=1000
		2000 tcp $A id=2 seq=1000 len=1000
	E
	mk in2 -l raw <<-E
		1000 tcp $B id=1 seq=0 len=1000
		4000 tcp $B id=2 seq=1000 len=1000
	E
	: | mk in3
	# the last packet has a delay of 0
	mk out <<-E
		2000 tcp $A id=1 seq=0 len=1000
		3000 tcp $B id=1 seq=0 len=1000
		4000 tcp $A id=2 seq=1000 len=1000
		4000 tcp $B id=2 seq=1000 len=1000
		5000 tcp $B id=2 seq=1000 len=1000
	E
	run 0 --in "$TMP/in1,$TMP/in2" --in "$TMP/in3" --out "$TMP/out"
	want .packets_in=4 .matched=4 .unmatched_out=1 .delay_us.min=0 \
		.delay_us.mean=1.5 .qlen_pkts.max=2 .qlen_pkts.mean=1.2
	says "1 packets left that had not come in"
}
declare_test t_several_in "" "several devices before the queue"

t_window()
{
	traffic <<-E
		0    1500 tcp $A id=1 seq=0 len=1000
		1000 2000 tcp $A id=2 seq=1000 len=1000 ecn=2>3
		2000 -    tcp $A id=3 seq=2000 len=1000 ecn=2
		3000 4500 tcp $A id=4 seq=3000 len=1000 ecn=2>3
		4000 6000 tcp $A id=5 seq=4000 len=1000 ecn=2>3
	E
	measure --from 1us --to 4us
	want .packets_in=3 .matched=2 .packets_out=2 .dropped=1 .marked=2 \
		.duration_ns=3000 .delay_us.min=1 .delay_us.max=1.5 \
		.flows[0].dropped=1 .ecn.in.ect0=3 .ecn.out.ce=1 \
		.flows[0].payload_bytes=2000
	# [1,1.5): 2, [1.5,2): 1, [2,3): 0, [3,4): 1
	want .qlen_pkts.max=2 .qlen_pkts.mean=0.833333
	measure --from 5us
	want .packets_in=0 .packets_out=1 .matched=0 .delay_us.mean=null \
		.duration_ns=1000 .mark_fraction=null .qlen_pkts.max=1
	run 1 "${PAIR[@]}" --from 1s --to 2s
	silent
	says "no packets between --from and --to"
	# the link is idle at the end of the window: 2028 bytes in 10 ms, not in 1 us
	traffic <<-E
		0    1000 tcp $A id=1 seq=0 len=960
		1000 2000 tcp $A id=2 seq=960 len=960
	E
	measure --to 10ms --rate 10gbit
	want .duration_ns=10000000 .throughput_bps=1622400
	near .qlen_pkts.mean 0.0002 1e-6
}
declare_test t_window "" "a part of the time"

t_csv()
{
	traffic <<-E
		0    1000 tcp $A id=1 seq=7 len=946 ecn=2
		500  1500 tcp $B id=9 seq=0 len=946 ecn=1>3
		600  -    tcp $A id=2 seq=953 len=946 ecn=2
		2600 3600 udp $A id=3 len=58
	E
	measure --bin 1us --packets "$TMP/p" \
		--series "$TMP/s" --flow-series "$TMP/f"
	cat >"$TMP/p.want" <<-E
		t_in_ns,t_out_ns,delay_ns,flow,len,ecn_in,ecn_out,seq,payload
		1700000000000000000,1700000000000001000,1000,$A,1000,2,2,7,946
		1700000000000000500,1700000000000001500,1000,$B,1000,1,3,0,946
		1700000000000002600,1700000000000003600,1000,$A,100,0,0,3,58
		1700000000000000600,,,$A,1000,2,,953,946
	E
	cat >"$TMP/s.want" <<-E
		t_s,throughput_bps,qlen_pkts_mean,qlen_pkts_max,qlen_bytes_mean,qlen_bytes_max,delay_us_mean,delay_us_max,marked,dropped
		0.000000000,0.000,1.500000,2,1500.000,2000,,,0,1
		0.000001000,16000000000.000,0.500000,1,500.000,1000,1.000000,1.000,1,0
		0.000002000,0.000,0.400000,1,40.000,100,,,0,0
		0.000003000,800000000.000,1.000000,1,100.000,100,1.000000,1.000,0,0
	E
	cat >"$TMP/f.want" <<-E
		t_s,flow,throughput_bps
		0.000001000,$A,8000000000.000
		0.000001000,$B,8000000000.000
		0.000003000,$A,800000000.000
	E
	local f

	for f in p s f; do
		cmp -s "$TMP/$f" "$TMP/$f.want" ||
			fail "$f: $(diff "$TMP/$f.want" "$TMP/$f" | head -3 | tr '\n' ' ')"
	done
	measure --json "$TMP/j" --packets -
	cmp -s "$TMP/json" "$TMP/p.want" || fail "--packets - differs"
	[ -s "$TMP/j" ] || fail "no --json FILE"
	run 1 "${PAIR[@]}" --bin 1ns --series /dev/full
	says "cannot write"
}
declare_test t_csv "" "packets and series as CSV"

t_gaps()
{
	traffic <<-E
		0    2000 tcp $A id=1 seq=0 len=100
		1000 3500 tcp $A id=2 seq=100 len=100
		1500 3600 tcp $B id=1 seq=0 len=100
		2000 6000 tcp $A id=3 seq=200 len=100
	E
	measure --gaps
	want .flows[0].gap_us.mean=2 .flows[0].gap_us.p50=1.5 \
		.flows[0].gap_us.p99=2.5 .flows[0].gap_us.max=2.5 \
		.flows[0].gap_us.min=1.5 .flows[0].gap_in_us.mean=1 \
		.flows[0].gap_in_us.max=1 .flows[1].gap_us.mean=null
}
declare_test t_gaps "" "gaps between a flow's packets"

# Packets are in the queue when a capture starts or ends.
t_edges()
{
	traffic <<-E
		1000 3500 tcp $A id=3 seq=200 len=100
		2000 -    tcp $A id=4 seq=300 len=100
		2500 4500 tcp $A id=5 seq=400 len=100
		3000 -    tcp $A id=6 seq=500 len=100
		4000 -    tcp $A id=7 seq=600 len=100
		-    500  tcp $A id=1 seq=0 len=100
		-    1500 tcp $A id=2 seq=100 len=100
	E
	measure
	want .queued_at_start=2 .unmatched_out=0 .matched=2 .dropped=1 \
		.unresolved=2 .flows[0].unmatched_out=0
	# older than --gap, so lost
	measure --gap 1400ns
	want .matched=0 .unmatched_out=4 .dropped=4 .unresolved=1
	measure --gap 0
	want .dropped=5
}
declare_test t_edges "" "packets in the queue when a capture starts or ends"

# Segments on one side of the queue, super-packets on the other.
t_segmented()
{
	traffic <<-E
		0   1000 tcp $A id=1 seq=0 flags=2
		100 -    tcp $A id=2 seq=1 len=2920
		200 -    tcp $B id=1 seq=1 len=1460
		300 1300 tcp $B id=2 seq=1461 len=1460
		-   1100 tcp $A id=2 seq=1 len=1460
		-   1200 tcp $A id=3 seq=1461 len=1460
	E
	run 1 "${PAIR[@]}"
	want .segmented=2 .unmatched_out=2 .dropped=null .flows[0].dropped=null \
		.flows[1].dropped=1 .matched=2
	says "turn offloads off"
}
declare_test t_segmented "" "segments on one side, super-packets on the other"

# The largest packet is lost, and another one leaves that never arrived: no segmentation.
t_not_segmented()
{
	traffic <<-E
		0    1000 tcp $A id=1 seq=0 len=100
		2000 -    tcp $A id=2 seq=100 len=1400
		3000 4000 tcp $A id=3 seq=1500 len=100
		-    5000 tcp $A id=9 seq=90000 len=100
	E
	measure
	want .segmented=0 .unmatched_out=1 .dropped=1 .dropped_not_ect=1 .flows[0].dropped=1
	says "1 packets left that had not come in"
}
declare_test t_not_segmented "" "a lost largest packet does not look like segmentation"

# Super-packets on both sides count as the segments that the wire would carry, of MSS 1460
# from the SYN less 12 bytes of timestamps.
t_super_packets()
{
	traffic <<-E
		0     1000  tcp $A id=1 seq=0 flags=2 mss=1460 ts=1
		10000 20000 tcp $A id=2 seq=1 len=14480 ecn=2>3 ts=2
		12000 21000 tcp $A id=12 seq=14481 len=1000 ecn=2 ts=2
		13000 -     tcp $A id=13 seq=15481 len=2896 ecn=2 ts=2
		30000 40000 tcp $A id=14 seq=15481 len=2897 ecn=2 ts=2
	E
	run 0 "${PAIR[@]}" --rate 10gbit --overhead 24
	# segments: 1, 10, 1, 2 lost, 3; each with 14 + 20 + 32 + 24 bytes around the payload
	want .packets_in=17 .packets_out=15 .matched=15 .marked=10 .dropped=2 .dropped_ect0=2 \
		.bytes_out=$((94 + 14480 + 10 * 90 + 1090 + 2897 + 3 * 90)) .super_packets=2 \
		.mark_fraction=0.666666667 .qlen_pkts.max=11 .flows[0].packets=15 \
		.flows[0].marked=10 .flows[0].retransmitted=2 .flows[0].goodput_bps=3675400000
	near .delay_us.mean $(((1 + 10 * 10 + 9 + 3 * 10) * 1000000 / 15))e-6 1e-5
	says "2 super-packets (TSO, GSO or GRO) counted as segments"
	# no SYN in the capture: no guess
	traffic <<-E
		0 1000 tcp $A id=2 seq=1 len=14480 ts=2
	E
	run 1 "${PAIR[@]}"
	silent
	says "no SYN says the MSS"
	run 0 "${PAIR[@]}" --mss 1460
	want .packets_in=10 .packets_out=10
	# the peer's MSS is smaller, and limits the segments
	traffic <<-E
		0    500  tcp $A id=1 seq=0 flags=2 mss=1460
		1000 1500 tcp 10.0.0.9:80>10.0.0.1:1000 id=1 seq=7 flags=0x12 mss=500
		2000 3000 tcp $A id=2 seq=1 len=1000
	E
	run 0 "${PAIR[@]}"
	want .flows[0].packets=3
}
declare_test t_super_packets "" "super-packets on both sides count as their segments"

# TCP packets without SYN and ACK, such as HPCC++'s probes, are not part of the stream.
t_probes()
{
	traffic <<-E
		0    1000 tcp $A id=1 seq=1000 len=100
		1000 2000 tcp $A id=2 seq=1099 len=40 flags=0
		2000 3000 tcp $A id=3 seq=1100 len=100
		3000 4000 tcp $A id=4 seq=1199 len=40 flags=0
	E
	measure
	want .flows[0].retransmitted=0 .flows[0].packets=4 .flows[0].goodput_bps=400000000
}
declare_test t_probes "" "packets without SYN and ACK are neither retransmissions nor goodput"

# Nodes add metadata to probes of INT and IFA. What they change of these, they change of no other packet.
t_probes_grow()
{
	traffic <<-E
		0    1000 tcp $A id=1 seq=1000 len=44>68 flags=8
		1000 2000 tcp $A6 seq=1000 len=44>68 flags=8
		2000 3000 253 10.0.0.1:0>10.0.0.9:0 id=2 len=56>88
		3000 4000 253 [fd00::1]:0>[fd00::9]:0 len=56>88
	E
	measure
	want .matched=4 .dropped=0 .delay_us.mean=1
	traffic <<-E
		0    1000 tcp $A id=1 seq=1000 len=44>68 flags=0x18
		1000 2000 udp $A id=2 len=44>68
	E
	run 1 "${PAIR[@]}"
	want .matched=0
}
declare_test t_probes_grow "" "probes that get longer in the queue are the same packets"

# A capture that starts in mid-flow, with a segment that overtook another one.
t_mid_flow()
{
	traffic <<-E
		0    1000 tcp $A id=2 seq=5100 len=100
		1000 2000 tcp $A id=1 seq=5000 len=100
		2000 3000 tcp $A id=3 seq=5000 len=100
	E
	measure
	want .flows[0].retransmitted=1
	expect "a time beyond 2^53 is a string" "$(jq -r '.first_ns | type' "$TMP/json")" = string
}
declare_test t_mid_flow "" "reordering at the start of a capture is not counted as retransmission"

# A series with too many rows is cut off; the result is printed, and the exit status tells.
t_many_rows()
{
	traffic <<-E
		0          1000       tcp $A id=1 seq=0 len=100
		5000000000 5000001000 tcp $A id=2 seq=100 len=100
	E
	run 1 "${PAIR[@]}" --bin 1us --series "$TMP/s"
	want .matched=2 .duration_ns=5000001000
	says "the series has no more than 2000000 rows"
	expect "rows" "$(wc -l <"$TMP/s")" -le 2000001
}
declare_test t_many_rows "" "a series that is too long does not prevent the result"

# Captures made on several CPUs are slightly out of order; a clock that steps
# back must not break the arithmetic.
t_out_of_order()
{
	mk in <<-E
		1000 tcp $A id=1 seq=0 len=100
		9000 tcp $A id=2 seq=100 len=100
		2000 tcp $A id=3 seq=200 len=100
	E
	mk out <<-E
		2000  tcp $A id=1 seq=0 len=100
		10000 tcp $A id=2 seq=100 len=100
		3000  tcp $A id=3 seq=200 len=100
	E
	measure
	want .matched=3 .delay_us.max=1 .delay_us.min=1 .qlen_pkts.max=1 \
		.qlen_pkts.mean=0.333333 .duration_ns=9000
	expect "warnings" "$(<"$TMP/err")" = ""
	mk in <<-E
		1000000  tcp $A id=1 seq=0 len=100
		9000000  tcp $A id=2 seq=100 len=100
		12000000 tcp $A id=3 seq=200 len=100
		2000000  tcp $A id=4 seq=300 len=100
	E
	mk out <<-E
		2000000  tcp $A id=1 seq=0 len=100
		10000000 tcp $A id=2 seq=100 len=100
		13000000 tcp $A id=3 seq=200 len=100
		3000000  tcp $A id=4 seq=300 len=100
	E
	measure --series "$TMP/s"
	want .matched=4 .delay_us.max=1000 .delay_us.min=1000 .packets_out=4
	expect "queue length" "${JSON[.qlen_pkts.max]}" -ge 1
	expect "queue length" "${JSON[.qlen_pkts.max]}" -le 2
	says "1 packets are out of order by more than 1 ms"
}
declare_test t_out_of_order "" "captures that are out of order"

t_other_protocols()
{
	traffic <<-E
		0  -    arp
		10 1010 1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=8
		20 1020 1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=9
		30 1030 udp $A id=8 frag=0x2000 len=1472
		40 1040 udp $A id=8 frag=0x00b9 len=500
		50 1050 47 10.0.0.1:0>10.0.0.9:0 len=64
		60 -    2 10.0.0.1:0>224.0.0.22:0 len=8
		70 1070 udp $A id=9 len=1400
	E
	measure
	want .packets_in=6 .matched=6 .dropped=0 .ignored=2 .delay_us.max=1 \
		.flows[0].proto=icmp .flows[1].proto=udp .flows[1].packets=2 \
		.flows[2].proto=udp .flows[3].proto=47
	measure --filter 'udp port 80'
	want .packets_in=2 .matched=2
	run 1 "${PAIR[@]}" --filter 'tcp'
	silent
	says "no packets that pass --filter"
}
declare_test t_other_protocols "" "fragments, ICMP, GRE, ARP, a filter"

t_bad_captures()
{
	local n

	for n in 1 2 3; do
		echo "${n}000 tcp $A id=$n seq=$n len=1000"
	done >"$TMP/txt"
	mk in <"$TMP/txt"
	mk in.ng -g <"$TMP/txt"
	: | mk none
	echo "0 arp" | mk arp
	: >"$TMP/zero"
	echo "this is no capture" >"$TMP/text"
	head -c -500 "$TMP/in" >"$TMP/cut"
	head -c -500 "$TMP/in.ng" >"$TMP/cut.ng"
	# link type 105: IEEE 802.11
	{ head -c 20 "$TMP/in"; printf '\151\0\0\0'; tail -c +25 "$TMP/in"; } \
		>"$TMP/wifi"
	for n in "none:no packets" "arp:none of 1 packets is IP" \
		 "zero:empty file" "text:unknown file format" \
		 "cut:after 2 packets: truncated" \
		 "cut.ng:after 2 packets: truncated" \
		 "missing:No such file" "wifi:link type IEEE802_11"; do
		run 1 --in "$TMP/in" --out "$TMP/${n%%:*}" --series "$TMP/s" \
			--packets "$TMP/p" --flow-series "$TMP/f"
		silent
		says "${n#*:}"
		says "/${n%%:*}: "
		run 1 --in "$TMP/${n%%:*}" --out "$TMP/in"
		silent
		says "${n#*:}"
		[[ $n != cut* || ! -e $TMP/s$TMP/p$TMP/f ]] || fail "${n%%:*}: half a result stays"
	done
	[ ! -e "$TMP/s" ] || fail "half a series stays"
}
declare_test t_bad_captures "" "files that are not captures are refused"

# However a capture is cut or damaged: a result or one line of error, never a crash.
t_corrupt()
{
	local n size st=0 i step=${FULL:+11}

	for n in 1 2 3 4; do
		echo "${n}000 tcp $A id=$n seq=$n len=40 ts=$n"
		echo "${n}100 udp $A6 len=30 ext=1"
	done >"$TMP/txt"
	mk in <"$TMP/txt"
	mk in.ng -g <"$TMP/txt"
	mk out -l vlan <"$TMP/txt"
	for i in in in.ng; do
		size=$(wc -c <"$TMP/$i")
		for ((n = 0; n < size; n += ${step:-53})); do
			head -c "$n" "$TMP/$i" >"$TMP/a"
			qdelay --in "$TMP/a" --out "$TMP/out" >"$TMP/json" \
				2>"$TMP/err"
			st=$?
			[ "$st" -le 1 ] || fail "$i cut to $n: exit status $st"
			{ head -c "$n" "$TMP/$i"; printf '\377'
			  tail -c +$((n + 2)) "$TMP/$i"; } >"$TMP/a"
			qdelay --in "$TMP/a" --out "$TMP/out" --series "$TMP/s" \
				--packets "$TMP/p" --gaps >"$TMP/json" 2>"$TMP/err"
			st=$?
			[ "$st" -le 1 ] || fail "$i broken at $n: exit status $st"
		done
	done
}
declare_test t_corrupt "" "damaged captures: a result or one line of error"

t_usage()
{
	local a

	mk in <<<"0 udp $A len=1"
	while read -r a; do
		# shellcheck disable=SC2086 # words
		run 2 ${a//IN/$TMP/in}
		silent
	done <<-E

		--in IN
		--out IN
		--in IN --out IN --nonsense
		--in IN --out IN word
		--in IN --out IN,IN
		--in IN --out IN --out IN
		--in IN, --out IN
		--in IN --out IN --bin 5
		--in IN --out IN --bin 0
		--in IN --out IN --bin -1ms
		--in IN --out IN --bin ms
		--in IN --out IN --gap nan
		--in IN --out IN --from 2s --to 1s
		--in IN --out IN --rate 0
		--in IN --out IN --rate 5furlong
		--in IN --out IN --rate
		--in IN --out IN --overhead -1
		--in IN --out IN --snaplen 10
		--in IN --out IN --duration 1s
		--in IN --out IN --series - --packets -
		--in IN --out IN --filter (
	E
	run 0 --in "$TMP/in" --out "$TMP/in" --rate 1.5gbit --bin 1.5us --gap 1s
	qdelay --help | grep -q -- --overhead || fail "no --help"
}
declare_test t_usage "" "an invalid argument is refused"

# Random traffic through a queue, compared with the same numbers computed by brute force.
t_random()
{
	awk -v A="$A" -v B="$B" -v in_="$TMP/in.txt" -v out="$TMP/out.txt" '
	function rnd(n) {
		x = (x * 16807) % 2147483647
		return x % n
	}
	BEGIN {
		x = 4711
		for (i = 0; i < 20000; i++) {
			t += rnd(2300)
			len = 100 + rnd(1361)
			flow = rnd(3) ? A : B
			p = "tcp " flow " id=" i % 65536 " seq=" (seq[flow] + 0) \
				" len=" len
			seq[flow] += len
			print t, p, "ecn=2" >in_
			q = n - head		# in the queue now
			while (q && done[head] <= t) {
				head++
				q--
			}
			if (q >= 40)
				continue
			busy = (busy > t ? busy : t) + len + 54
			done[n++] = busy
			print busy, p, "ttl=63 ecn=" (q >= 20 ? 3 : 2) >out
		}
	}' </dev/null
	mk in <"$TMP/in.txt"
	mk out <"$TMP/out.txt"
	# delays by sorting, queue lengths by sorting events
	awk '
	NR == FNR { out[$3 $5] = $1; ce[$3 $5] = $NF == "ecn=3"; next }
	{
		k = $3 $5
		split($6, l, "=")
		if (!(k in out)) {
			print "drop" >"/dev/stderr"
			next
		}
		if (ce[k])
			print "mark" >"/dev/stderr"
		print $1, 1, l[2] + 54, "in"
		print out[k], -1, -(l[2] + 54), "out", out[k] - $1
	}' "$TMP/out.txt" "$TMP/in.txt" 2>"$TMP/counts" | sort -n >"$TMP/ev"
	measure
	want ".dropped=$(grep -c drop "$TMP/counts")" \
		".marked=$(grep -c mark "$TMP/counts")" \
		".matched=$(grep -c out "$TMP/ev")" .packets_in=20000
	awk '$4 == "out" { print $5 }' "$TMP/ev" | sort -n | awk '
		function pct(p,   r) {
			r = int(n * p / 1000)
			return v[r + (r < n * p / 1000)] / 1000
		}
		{ v[++n] = $1; s += $1 }
		END {
			printf ".delay_us.mean=%.6f .delay_us.max=%.3f ", s / n / 1000, v[n] / 1000
			printf ".delay_us.min=%.3f .delay_us.p50=%.3f .delay_us.p90=%.3f ", v[1] / 1000, pct(500), pct(900)
			printf ".delay_us.p99=%.3f .delay_us.p999=%.3f\n", pct(990), pct(999)
		}' >"$TMP/wants"
	# shellcheck disable=SC2046 # words
	want $(<"$TMP/wants")
	awk -v first="$(head -1 "$TMP/in.txt")" '
		function state(d) {
			if (!d)
				return
			sp += q * d; sp2 += q * q * d; w[q] += d
			sb += b * d; sb2 += b * b * d; total += d
			if (q > mp) mp = q
			if (b > mb) mb = b
		}
		BEGIN { split(first, f, " "); last = f[1] }
		{ state($1 - last); last = $1; q += $2; b += $3 }
		END {
			for (i = 0; sum < 0.99 * total; i++)
				sum += w[i]
			printf ".qlen_pkts.mean %.6f 1e-6\n.qlen_pkts.max %d 0\n", sp / total, mp
			printf ".qlen_bytes.mean %.6f 1e-6\n.qlen_bytes.max %d 0\n", sb / total, mb
			printf ".qlen_pkts.stddev %.6f 1e-6\n", sqrt(sp2 / total - (sp / total) ^ 2)
			printf ".qlen_bytes.stddev %.6f 1e-6\n", sqrt(sb2 / total - (sb / total) ^ 2)
			printf ".qlen_pkts.p99 %d 0\n", i - 1
		}' "$TMP/ev" >"$TMP/wants"
	local p v e

	while read -r p v e; do
		near "$p" "$v" "$e"
	done <"$TMP/wants"
	# the histogram instead of exact percentiles: per flow, over 256 packets
	awk -v A="$A" 'NR == FNR { t[$3 $5] = $1; next }
		$3 == A { print $1 - t[$3 $5] }' "$TMP/in.txt" "$TMP/out.txt" |
		sort -n | awk '{ v[++n] = $1 }
			END { r = int(n * 0.99); r += r < n * 0.99; print v[r] / 1000 }' \
		>"$TMP/wants"
	near .flows[0].delay_us.p99 "$(<"$TMP/wants")" 0.001
}
declare_test t_random "" "random traffic, compared with numbers computed by brute force"

# ---- live ----

# h1 -- sw -- (the queue) -- r, with only our own packets
need_live()
{
	[ "$EUID" -eq 0 ] || skip "not root"
	command -v ip >/dev/null && command -v tc >/dev/null || skip "no iproute2"
	command -v ping >/dev/null || skip "no ping"
	ip netns add "${NSP}try" 2>"$TMP/err" || skip "no namespaces: $(head -1 "$TMP/err")"
	dumbbell 1 0
	# the file is missing in a kernel without IPv6
	every sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6' 2>/dev/null
}

qdisc()	# ARGUMENTS of tc qdisc add: the test is skipped if the kernel has it not
{
	in_ns sw tc qdisc add dev egress "$@" 2>"$TMP/err" ||
		skip "no $(echo "$*" | grep -owE 'htb|tbf|red|netem|pfifo'): $(head -1 "$TMP/err")"
}

# shape RATE BURST: a shaper; the queue goes below its class 1:1
shape()
{
	qdisc root handle 1: htb default 1
	in_ns sw tc class add dev egress parent 1: classid 1:1 htb rate "$1" \
		burst "$2" cburst "$2" quantum 1514
}

begin()	# OPTIONS of qdelay
{
	: >"$TMP/err"
	rm -f "$TMP/json"
	ip netns exec "${NSP}sw" qdelay --live --in p1 --out egress --json "$TMP/json" "$@" \
		2>"$TMP/err" &
	pid=$!
	WAIT=20 wait_until grep -qx ready "$TMP/err"
}

# stop SIGNAL STATUS: stops qdelay with SIGNAL; its exit status must be STATUS
stop()
{
	kill "-$1" "$pid" 2>/dev/null
	wait "$pid"
	expect "exit status" $? = "$2"
}

# end SIGNAL: stops qdelay, and collects its result and the queue's counters
end()
{
	stop "$1" 0
	in_ns sw tc -s -j qdisc show dev egress >"$TMP/tc"
	got "$TMP/tc"
}

wakeups()
{
	awk '$1 == "voluntary_ctxt_switches:" { print $2 }' "/proc/$pid/status"
}

# A burst of N pings with the ECN field of $2; replies may fail to come.
burst()
{
	in_ns h1 ping -q -n -c "$1" -l "$1" -s 1000 -Q "$2" -W 2 10.0.0.1 \
		>/dev/null 2>&1
}

counters_agree()	# KIND
{
	want ".packets_out=${JSON[.tc.$1.packets]}" \
		".bytes_out=${JSON[.tc.$1.bytes]}" \
		".dropped=${JSON[.tc.$1.drops]}" .unmatched_out=0 .unresolved=0 \
		.capture_drops=0 .queued_at_start=0
	expect "packets in the queue" "${JSON[.tc.$1.qlen]}" = 0
}

t_live_drops()
{
	need_live
	# 50 packets of 1042 bytes; ten of them are one burst
	qdisc root handle 1: tbf rate 20mbit burst 10420 limit 52100
	begin --gap 400ms --rate 20mbit
	burst 150 2
	burst 20 0
	sleep 0.5
	end TERM
	counters_agree tbf
	want .packets_in=170 .ecn.in.ect0=150 .ecn.in.not_ect=20 .marked=0 \
		.flows[0].proto=icmp .flows[1].flow=
	[ "${JSON[.tc.tbf.drops]}" != 0 ] || skip "too slow to fill the queue"
	expect "dropped of 150" "${JSON[.dropped]}" -gt 0
	expect "dropped of 150" "${JSON[.dropped]}" -le 100
	# 50 packets that take 417 us each; in real time they may be later, but not earlier
	expect "delay, us" "${JSON[.delay_us.max]}" -ge 20000
	expect "delay, us" "${JSON[.delay_us.max]}" -lt 1e6
	expect "queue length" "${JSON[.qlen_pkts.max]}" -ge 50
	expect "queue length" "${JSON[.qlen_pkts.max]}" -le 51
}
declare_test t_live_drops "" "live: drops of tbf"

t_live_marks()
{
	need_live
	shape 20mbit 1042
	qdisc parent 1:1 handle 10: red limit 200k min 10420 max 10421 avpkt 1042 \
		burst 11 bandwidth 20mbit probability 1.0 ecn
	begin --gap 400ms --rate 20mbit
	burst 100 2
	burst 60 1
	burst 60 0
	sleep 0.5
	end TERM
	counters_agree red
	want ".marked=${JSON[.tc.red.marked]}" .ecn.in.ect0=100 .ecn.in.ect1=60 \
		".dropped_not_ect=${JSON[.dropped]}" \
		".ecn.out.ce=${JSON[.tc.red.marked]}"
	[ "${JSON[.tc.red.marked]}" != 0 ] || skip "too slow to fill the queue"
}
declare_test t_live_marks "" "live: marks of red"

t_live_delay()
{
	need_live
	qdisc root handle 1: netem delay 5ms limit 1000
	begin --gap 400ms
	burst 50 0
	sleep 0.1
	end INT
	counters_agree netem
	want .packets_in=50 .matched=50
	expect "queue length" "${JSON[.qlen_pkts.max]}" -ge 1
	expect "queue length" "${JSON[.qlen_pkts.max]}" -le 50
	expect "shortest delay, us" "${JSON[.delay_us.min]}" -ge 5000
}
declare_test t_live_delay "" "live: a delay of netem"

# Bulk TCP with many packets per wakeup
t_live_tcp()
{
	local wakeups slow=

	need_live
	command -v iperf3 >/dev/null || skip "no iperf3"
	shape 200mbit 3028
	qdisc parent 1:1 handle 10: pfifo limit 60
	in_ns r iperf3 -s -1 >/dev/null 2>&1 &
	wait_until listening r 5201
	begin --gap 400ms --rate 200mbit --gaps
	in_ns h1 timeout 60 iperf3 -c 10.0.0.1 -n 20M -P 2 >"$TMP/iperf" 2>&1 ||
		slow="too slow: $(tail -1 "$TMP/iperf")"
	sleep 0.5
	wakeups=$(wakeups)
	end TERM
	counters_agree htb
	want .segmented=0
	# two devices with 20 wakeups per second each, and one per full block
	awk -v w="$wakeups" -v p="${JSON[.packets_out]}" -v t="${JSON[.duration_ns]}" \
		'BEGIN { exit !(w < p / 20 + 60 * (t / 1e9 + 1)) }' ||
		fail "$wakeups wakeups for ${JSON[.packets_out]} packets"
	[ -z "$slow" ] || skip "$slow"
	expect "packets" "${JSON[.packets_out]}" -gt 13000
	expect "utilisation" "${JSON[.utilisation]}" -gt 0
	expect "utilisation" "${JSON[.utilisation]}" -lt 1.01
}
declare_test t_live_tcp "" "live: bulk TCP with many packets per wakeup"

# Packets that the capture lost must not count as drops of the queue
t_live_capture_loss()
{
	need_live
	begin --buffer 2
	kill -STOP "$pid"
	burst 10000 0
	kill -CONT "$pid"
	stop TERM 1
	says "p1: the kernel lost"
	got
	expect "capture_drops" "${JSON[.capture_drops]}" -gt 0
}
declare_test t_live_capture_loss "" "live: packets that the capture missed are not counted as drops"

# rings_kib PID: the memory of its rings, which the kernel fills with captured packets
rings_kib()
{
	awk '$NF ~ /^socket:/ { split($1, a, "-"); print a[1], a[2] }' "/proc/$1/maps" |
		while read -r from to; do echo $(((0x$to - 0x$from) / 1024)); done |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# One budget of memory for all devices; how it is divided changes no digit
t_live_buffer()
{
	local i ports="" other

	need_live
	for i in {1..14}; do
		in_ns sw ip link add "v$i" type veth peer "w$i" || skip "no veth"
		in_ns sw ip link set "v$i" up
		ports+=,v$i
	done
	begin --in "${ports#,}"
	expect "rings by default, KiB" "$(rings_kib "$pid")" -le $((64 * 1024))
	expect "rings by default, KiB" "$(rings_kib "$pid")" -ge $((48 * 1024))
	ip netns exec "${NSP}sw" qdelay --live --in "p1$ports" --out egress --buffer 16 \
		--json "$TMP/json16" 2>"$TMP/err16" &
	other=$!
	WAIT=20 wait_until grep -qx ready "$TMP/err16"
	expect "rings with --buffer 16, KiB" "$(rings_kib "$other")" -eq $((16 * 1024))
	burst 100 2
	sleep 0.2
	kill -TERM "$other"
	stop TERM 0
	wait "$other"
	expect "exit status with --buffer 16" $? = 0
	cmp "$TMP/json" "$TMP/json16" >"$TMP/cmp" 2>&1 || fail "another result: $(<"$TMP/cmp")"
	got
	want .packets_in=100 .matched=100 .capture_drops=0
	run 2 --live --in "p1$ports" --out egress --buffer 15
	silent
	says "--buffer: 15 MiB are too few for 16 devices: at least 16 (see qdelay --help)"
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -lt 8000000 ] ||
		skip "too much memory to ask for more"
	in_ns sw qdelay --live --in p1 --out egress --buffer 4094 >"$TMP/json" 2>"$TMP/err"
	expect "exit status" $? = 1
	silent
	says "--buffer: 4094 MiB do not fit"
}
declare_test t_live_buffer "" "live: one budget of memory for all devices"

# No traffic: hardly any wakeups, and a clear message at the end
t_live_idle()
{
	local wakeups

	need_live
	begin
	sleep 1
	wakeups=$(wakeups)
	[ "$wakeups" -lt 30 ] || fail "$wakeups wakeups while idle"
	stop TERM 1
	says "p1: no packets"
	[ ! -s "$TMP/json" ] || fail "a result"
	in_ns sw qdelay --live --in p1 --out egress --duration 100ms >"$TMP/json" \
		2>"$TMP/err"
	expect "exit status" $? = 1
	says "p1: no packets"
	in_ns sw qdelay --live --in nosuchdev --out egress >"$TMP/json" 2>"$TMP/err"
	expect "exit status" $? = 1
	silent
	says "nosuchdev: "
}
declare_test t_live_idle "" "live: no traffic"

command -v qdelay >/dev/null || skip_all "qdelay is not built"
run_tests "$@"
