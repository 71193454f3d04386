#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# qdelay against captures whose content is known to the byte, and live against
# the counters of real queues.
#
#   qdelay.sh [-v] [TEST...]
#
# $QDELAY and $QDELAY_PCAP name the programs; else they are looked for next to
# this script (and in unit/).  Live tests need root, iproute2 and ping; each
# kind of queue that the kernel does not have is skipped.
#
# Functions are called by name; "a && b || c" is meant: no b here fails.
# shellcheck disable=SC2317,SC2015

set -u
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
verbose=
failures=0
skips=0
number=0
why=
tmp=
pid=
spaces=

# ---- the programs ----

find_program()	# NAME VALUE-OF-VARIABLE
{
	local p

	for p in "$2" "$here/$1" "$here/unit/$1"; do
		[ -n "$p" ] && [ -x "$p" ] && [ ! -d "$p" ] && { echo "$p"; return 0; }
	done
	return 1
}

cleanup()
{
	local n

	[ -n "$pid" ] && kill "$pid" 2>/dev/null
	for n in $spaces; do
		ip netns pids "$n" 2>/dev/null | xargs -r kill 2>/dev/null
		ip netns del "$n" 2>/dev/null
	done
	[ -n "$tmp" ] && rm -rf "$tmp"
}

skip_all()
{
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit 4
}

# ---- checks: each adds to $why ----

fail()
{
	why="$why${why:+; }$*"
}

# JSON on standard input to lines "path=value": .flows[0].packets=3
flat()
{
	awk '
	function val(path,   i, key) {
		tok()
		if (t == "{") {
			tok()
			while (t != "}") {
				key = substr(t, 2, length(t) - 2)
				tok()			# :
				val(path "." key)
				tok()
				if (t == ",")
					tok()
			}
		} else if (t == "[") {
			i = 0
			sub(/^[ \t]+/, "", s)
			if (substr(s, 1, 1) == "]") {
				tok()
				return
			}
			do {
				val(path "[" i++ "]")
				tok()
			} while (t == ",")
		} else {
			if (substr(t, 1, 1) == "\"")
				t = substr(t, 2, length(t) - 2)
			print path "=" t
		}
	}
	function tok() {
		if (!match(s, /^[ \t]*("[^"]*"|[-+.0-9a-zA-Z]+|[][{}:,])/)) {
			print "broken=" substr(s, 1, 20)
			exit
		}
		t = substr(s, 1, RLENGTH)
		s = substr(s, RLENGTH + 1)
		sub(/^[ \t]+/, "", t)
	}
	{ s = s $0 " " }
	END { val("") }'
}

# Runs qdelay; JSON goes flat to $tmp/flat.  Wanted exit status first.
run()
{
	local want=$1 got

	shift
	"$qdelay" "$@" >"$tmp/json" 2>"$tmp/err"
	got=$?
	[ "$got" = "$want" ] ||
		fail "exit status $got, not $want ($(head -c 200 "$tmp/err"))"
	if [ -s "$tmp/json" ]; then
		flat <"$tmp/json" >"$tmp/flat"
	else
		: >"$tmp/flat"
	fi
}

get()	# PATH
{
	awk -v p="$1=" 'index($0, p) == 1 { print substr($0, length(p) + 1); exit }' \
		"$tmp/flat"
}

# want PATH=VALUE...: as numbers if both are
want()
{
	local w got

	for w in "$@"; do
		got=$(get "${w%%=*}")
		awk -v a="$got" -v b="${w#*=}" 'BEGIN { exit !(a == b) }' \
			</dev/null || fail "${w%%=*} is '$got', not '${w#*=}'"
	done
}

# near PATH VALUE RELATIVE-ERROR
near()
{
	awk -v a="$(get "$1")" -v b="$2" -v e="$3" \
		'BEGIN { d = a - b; exit !(a != "" && d <= e * b && -d <= e * b) }' \
		</dev/null || fail "$1 is $(get "$1"), not $2"
}

same()	# WHAT GOT WANTED
{
	[ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"
}

says()	# STRING: on standard error, in one line
{
	grep -qF -- "$1" "$tmp/err" || fail "no '$1' but '$(head -c 200 "$tmp/err")'"
}

silent()	# no result
{
	[ -s "$tmp/json" ] && fail "a result in spite of the error"
	[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line of error"
}

mk()	# NAME [OPTIONS]: packets on standard input
{
	local name=$1

	shift
	"$mkpcap" "$@" "$tmp/$name" || fail "cannot make $name"
}

A='10.0.0.1:1000>10.0.0.9:80'
B='10.0.0.2:2000>10.0.0.9:80'
A6='[fd00::1]:1000>[fd00::9]:80'

# ---- captures with known answers ----

# 1500 bytes of IP, 1514 on Ethernet; the queue takes 1 us per packet.
t_basic()
{
	mk in <<-E
		0    tcp $A id=1 seq=1000 len=1460 ecn=2
		0    tcp $A id=2 seq=2460 len=1460 ecn=2
		0    tcp $A id=3 seq=3920 len=1460 ecn=2
		0    tcp $A id=4 seq=5380 len=1460 ecn=1
		6000 tcp $A id=5 seq=6840 len=1460 ecn=0
	E
	mk out <<-E
		1000 tcp $A id=1 seq=1000 len=1460 ecn=2 ttl=63
		2000 tcp $A id=2 seq=2460 len=1460 ecn=3 ttl=63
		3000 tcp $A id=4 seq=5380 len=1460 ecn=3 ttl=63
		8000 tcp $A id=5 seq=6840 len=1460 ecn=0 ttl=63
	E
	run 0 --in "$tmp/in" --out "$tmp/out" --rate 10gbit --overhead 24
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
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .utilisation=null .bytes_out=6056
}

t_ipv6()
{
	mk in <<-E
		0    tcp $A6 label=0x12345 seq=1 len=1000 ecn=2 ttl=64
		100  tcp $A6 label=0x12345 seq=1001 len=1000 ecn=2 ttl=64 ext=1
		200  udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=1
		300  udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=2
		400  udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=3
		500  58 [fd00::1]:0>[fd00::9]:0 len=64 fill=0x80
		600  58 [fe80::1]:0>[ff02::1]:0 len=24 fill=0x87
	E
	mk out <<-E
		1000 tcp $A6 label=0x12345 seq=1 len=1000 ecn=3 ttl=63
		2000 tcp $A6 label=0x12345 seq=1001 len=1000 ecn=2 ttl=63 ext=1
		3000 udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=3 fill=1 ttl=63
		4000 udp [fd00::1]:5>[fd00::9]:6 len=500 ecn=1 fill=3 ttl=63
		5000 58 [fd00::1]:0>[fd00::9]:0 len=64 fill=0x80 ttl=63
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .packets_in=6 .matched=5 .dropped=1 .dropped_ect1=1 .marked=2 \
		.ignored=1 .delay_us.min=1 .delay_us.max=4.5 .delay_us.p50=2.8 \
		.delay_us.mean=2.76 ".flows[0].flow=$A6" .flows[0].packets=2 \
		.flows[0].payload_bytes=2000 \
		'.flows[1].flow=[fd00::1]:5>[fd00::9]:6' .flows[1].proto=udp \
		.flows[1].dropped=1 .flows[1].packets=2 \
		.flows[2].proto=icmp6 '.flows[2].flow=[fd00::1]:0>[fd00::9]:0'
}

# A loss, its retransmission, one that was not needed, a new connection
# between the same ports, and sequence numbers that wrap.
t_retransmission()
{
	mk in <<-E
		0    tcp $A id=1 seq=0xfffffc17 flags=2
		100  tcp $A id=2 seq=0xfffffc18 len=1000
		200  tcp $A id=3 seq=0 len=1000
		300  tcp $A id=4 seq=1000 len=1000
		400  tcp $A id=5 seq=0 len=1000
		500  tcp $A id=6 seq=1000 len=1000
		600  tcp $A id=7 seq=2000 len=1000 flags=0x11
		700  tcp $A id=8 seq=500 flags=2
		800  tcp $A id=8 seq=500 flags=2
		900  tcp $A id=9 seq=501 len=1000
	E
	mk out <<-E
		1000 tcp $A id=1 seq=0xfffffc17 flags=2
		1100 tcp $A id=2 seq=0xfffffc18 len=1000
		1300 tcp $A id=4 seq=1000 len=1000
		1400 tcp $A id=5 seq=0 len=1000
		1500 tcp $A id=6 seq=1000 len=1000
		1600 tcp $A id=7 seq=2000 len=1000 flags=0x11
		1700 tcp $A id=8 seq=500 flags=2
		1800 tcp $A id=8 seq=500 flags=2
		2000 tcp $A id=9 seq=501 len=1000
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	# 5000 bytes of 6000 are new; 2 us
	want .matched=9 .dropped=1 .flows[0].retransmitted=3 \
		.flows[0].payload_bytes=6000 .flows[0].goodput_bps=20000000000 \
		.delay_us.max=1.1 .delay_us.min=1 .flows[1].flow=
}

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
	cp "$tmp/in" "$tmp/out"
	run 0 --in "$tmp/in" --out "$tmp/out"
	# 5 overlaps a part of 6; 8 brings what was missing, 9 nothing
	want .matched=9 .flows[0].retransmitted=3 .flows[0].goodput_bps=2100000000000 \
		.flows[0].payload_bytes=4900 .delay_us.max=0 .qlen_pkts.max=0
}

# Packets that look the same pair in the order in which they came.
t_duplicates()
{
	mk in <<-E
		0    udp $A len=100
		1000 udp $A len=100
		2000 udp $A len=100
		3000 udp $B len=100
		9000 udp $A len=100
	E
	mk out <<-E
		5000  udp $A len=100
		6000  udp $A len=100
		8000  udp $B len=100
		10000 udp $A len=100
	E
	run 0 --in "$tmp/in" --out "$tmp/out" --packets "$tmp/p"
	# which of three equal ones was lost cannot be told: the youngest
	want .matched=4 .dropped=0 .unresolved=1 .unmatched_out=0 .delay_us.max=8
	same packets "$(cut -d, -f1-3 "$tmp/p" | sed 's/17000000000000//g' | tr '\n' ' ')" \
		"t_in_ns,t_out_ns,delay_ns 00000,05000,5000 01000,06000,5000 03000,08000,5000 02000,10000,8000 "
}

# A retransmission that looks like the segment that was lost (IPv6 has no id):
# what is older than the flow's last packet out does not come any more ...
t_alike()
{
	mk in <<-E
		0    tcp $A6 seq=0 len=100 ts=5
		1000 tcp $A6 seq=100 len=100 ts=5
		5000 tcp $A6 seq=0 len=100 ts=5
		6000 tcp $A6 seq=200 len=100 ts=5
	E
	mk out <<-E
		2000 tcp $A6 seq=100 len=100 ts=5
		6000 tcp $A6 seq=0 len=100 ts=5
		7000 tcp $A6 seq=200 len=100 ts=5
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .matched=3 .dropped=1 .delay_us.max=1 .delay_us.min=1 \
		.flows[0].retransmitted=1 .qlen_pkts.max=1
	# ... unless it does after all
	mk out <<-E
		2000 tcp $A6 seq=100 len=100 ts=5
		6000 tcp $A6 seq=0 len=100 ts=5
		7000 tcp $A6 seq=200 len=100 ts=5
		8000 tcp $A6 seq=0 len=100 ts=5
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .matched=4 .dropped=0 .unmatched_out=0 .delay_us.max=8
}

# B overtakes A, as in a queue with two bands; shares of the rate.
t_two_flows()
{
	mk in <<-E
		0    tcp $A id=1 seq=0 len=1000
		1000 tcp $B id=1 seq=0 len=1000
		2000 tcp $A id=2 seq=1000 len=1000
		3000 tcp $B id=2 seq=1000 len=1000
		4000 tcp $B id=3 seq=2000 len=1000
		5000 tcp 10.0.0.3:1>10.0.0.9:80 id=1 seq=5 len=0
	E
	mk out <<-E
		4000  tcp $B id=1 seq=0 len=1000
		5000  tcp $B id=2 seq=1000 len=1000
		6000  tcp $B id=3 seq=2000 len=1000
		7000  tcp $A id=1 seq=0 len=1000
		8000  tcp $A id=2 seq=1000 len=1000
		10000 tcp 10.0.0.3:1>10.0.0.9:80 id=1 seq=5 len=0
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	# (2 + 3)^2 / (2 * (4 + 9)): who sends no data does not count
	want .matched=6 .dropped=0 .jain=0.961538 ".flows[0].flow=$A" \
		".flows[1].flow=$B" .flows[0].delay_us.mean=6.5 \
		.flows[0].delay_us.p99=7 .flows[1].delay_us.mean=2.333333 \
		.flows[1].goodput_bps=2400000000 .qlen_pkts.max=4 \
		.qlen_pkts.mean=2.5
}

# What queues, routers and captures change does not matter.
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
			run 0 --in "$tmp/in.$l" --out "$tmp/out.$m"
			want .matched=3 .unmatched_out=0 .marked=1 .delay_us.max=0.3
		done
	done
	want .bytes_out=2170	# 40 + 12 + 1000, 60 + 12 + 1000, 28 + 9 + 9, raw
}

# ... but the rest does.
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
		"$qdelay" --in "$tmp/in" --out "$tmp/out" 2>&1 |
			grep -q '"unmatched_out":1' || fail "'$q' taken for '$p'"
	done
	for q in "label=2 len=10" "label=1 len=9"; do
		mk out <<<"1 tcp $A6 $q"
		"$qdelay" --in "$tmp/in6" --out "$tmp/out" 2>&1 |
			grep -q '"unmatched_out":1' || fail "IPv6: '$q'"
	done
	mk out <<<"1 udp $A id=0 len=10 fill=2"
	run 0 --in "$tmp/inu" --out "$tmp/out"
	want .unmatched_out=1 .unresolved=1
	says "1 packets came out that did not go in"
	run 0 --in "$tmp/inu" --out "$tmp/out" --prefix 0
	want .unmatched_out=0 .matched=1
}

t_snaplen()
{
	local i

	for i in in out; do
		{
			echo "${#i}000 tcp $A id=1 seq=0 len=1000 ts=5"
			echo "${#i}000 udp $A6 len=1000 fill=7"
			echo "${#i}000 udp $A6 len=10 fill=7"
		} >"$tmp/$i.txt"
		mk "$i" <"$tmp/$i.txt"
		mk "$i.96" -s 96 <"$tmp/$i.txt"
		mk "$i.110" -s 110 -l vlan <"$tmp/$i.txt"
		mk "$i.cut" -S 90 <"$tmp/$i.txt"
		mk "$i.60" -s 60 <"$tmp/$i.txt"
	done
	for i in "in out.96" "in.96 out" "in.110 out" "in.96 out.110"; do
		run 0 --in "$tmp/${i% *}" --out "$tmp/${i#* }"
		want .matched=3 .delay_us.mean=1
	done
	# lengths are those on the wire: 14 + 52 + 1000, 14 + 48 + 1000, 14 + 58
	run 0 --in "$tmp/in.110" --out "$tmp/out.96"
	want .matched=3 .bytes_out=2200 .delay_us.mean=1
	run 1 --in "$tmp/in" --out "$tmp/out.cut"
	silent
	says "out.cut: packet 2 has only 90 of its 1062 bytes"
	run 0 --in "$tmp/in" --out "$tmp/out.cut" --snaplen 90
	want .matched=3
	run 1 --in "$tmp/in" --out "$tmp/out.60"
	silent
	says "out.60: snapshot length too small: at least 82"
}

t_formats()
{
	cat >"$tmp/txt" <<-E
		1000 tcp $A id=1 seq=0 len=1000
		3000 tcp $A id=2 seq=1000 len=1000
	E
	mk in -u <"$tmp/txt"
	mk in.ng -g <"$tmp/txt"
	mk in.ngu -g -u <"$tmp/txt"
	sed 's/000 tcp/123 tcp/' "$tmp/txt" | mk out -g
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .matched=2 .delay_us.max=0.123
	run 0 --in "$tmp/in.ng" --out "$tmp/out"
	want .matched=2 .delay_us.max=0.123
	run 0 --in "$tmp/in.ngu" --out - <"$tmp/out"
	want .matched=2 .delay_us.max=0.123
}

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
	# the last passes in no time
	mk out <<-E
		2000 tcp $A id=1 seq=0 len=1000
		3000 tcp $B id=1 seq=0 len=1000
		4000 tcp $A id=2 seq=1000 len=1000
		4000 tcp $B id=2 seq=1000 len=1000
		5000 tcp $B id=2 seq=1000 len=1000
	E
	run 0 --in "$tmp/in1,$tmp/in2" --in "$tmp/in3" --out "$tmp/out"
	want .packets_in=4 .matched=4 .unmatched_out=1 .delay_us.min=0 \
		.delay_us.mean=1.5 .qlen_pkts.max=2 .qlen_pkts.mean=1.2
	says "1 packets came out that did not go in"
}

t_window()
{
	mk in <<-E
		0    tcp $A id=1 seq=0 len=1000
		1000 tcp $A id=2 seq=1000 len=1000 ecn=2
		2000 tcp $A id=3 seq=2000 len=1000 ecn=2
		3000 tcp $A id=4 seq=3000 len=1000 ecn=2
		4000 tcp $A id=5 seq=4000 len=1000 ecn=2
	E
	mk out <<-E
		1500 tcp $A id=1 seq=0 len=1000
		2000 tcp $A id=2 seq=1000 len=1000 ecn=3
		4500 tcp $A id=4 seq=3000 len=1000 ecn=3
		6000 tcp $A id=5 seq=4000 len=1000 ecn=3
	E
	run 0 --in "$tmp/in" --out "$tmp/out" --from 1us --to 4us
	want .packets_in=3 .matched=2 .packets_out=2 .dropped=1 .marked=2 \
		.duration_ns=3000 .delay_us.min=1 .delay_us.max=1.5 \
		.flows[0].dropped=1 .ecn.in.ect0=3 .ecn.out.ce=1 \
		.flows[0].payload_bytes=2000
	# [1,1.5): 2, [1.5,2): 1, [2,3): 0, [3,4): 1
	want .qlen_pkts.max=2 .qlen_pkts.mean=0.833333
	run 0 --in "$tmp/in" --out "$tmp/out" --from 5us
	want .packets_in=0 .packets_out=1 .matched=0 .delay_us.mean=null \
		.duration_ns=1000 .mark_fraction=null .qlen_pkts.max=1
	run 0 --in "$tmp/in" --out "$tmp/out" --from 1s --to 2s
	want .packets_in=0 .packets_out=0 .throughput_bps=null .jain=null \
		.qlen_pkts.mean=null .flows[0].flow=
}

t_csv()
{
	mk in <<-E
		0    tcp $A id=1 seq=7 len=946 ecn=2
		500  tcp $B id=9 seq=0 len=946 ecn=1
		600  tcp $A id=2 seq=953 len=946 ecn=2
		2600 udp $A id=3 len=58
	E
	mk out <<-E
		1000 tcp $A id=1 seq=7 len=946 ecn=2
		1500 tcp $B id=9 seq=0 len=946 ecn=3
		3600 udp $A id=3 len=58
	E
	run 0 --in "$tmp/in" --out "$tmp/out" --bin 1us --packets "$tmp/p" \
		--series "$tmp/s" --flow-series "$tmp/f"
	cat >"$tmp/p.want" <<-E
		t_in_ns,t_out_ns,delay_ns,flow,len,ecn_in,ecn_out,seq,payload
		1700000000000000000,1700000000000001000,1000,$A,1000,2,2,7,946
		1700000000000000500,1700000000000001500,1000,$B,1000,1,3,0,946
		1700000000000002600,1700000000000003600,1000,$A,100,0,0,3,58
		1700000000000000600,,,$A,1000,2,,953,946
	E
	cat >"$tmp/s.want" <<-E
		t_s,throughput_bps,qlen_pkts_mean,qlen_pkts_max,qlen_bytes_mean,qlen_bytes_max,delay_us_mean,delay_us_max,marked,dropped
		0.000000000,0.000,1.500000,2,1500.000,2000,,,0,1
		0.000001000,16000000000.000,0.500000,1,500.000,1000,1.000000,1.000,1,0
		0.000002000,0.000,0.400000,1,40.000,100,,,0,0
		0.000003000,800000000.000,1.000000,1,100.000,100,1.000000,1.000,0,0
	E
	cat >"$tmp/f.want" <<-E
		t_s,flow,throughput_bps
		0.000001000,$A,8000000000.000
		0.000001000,$B,8000000000.000
		0.000003000,$A,800000000.000
	E
	local f

	for f in p s f; do
		cmp -s "$tmp/$f" "$tmp/$f.want" ||
			fail "$f: $(diff "$tmp/$f.want" "$tmp/$f" | head -3 | tr '\n' ' ')"
	done
	run 0 --in "$tmp/in" --out "$tmp/out" --json "$tmp/j" --packets -
	cmp -s "$tmp/json" "$tmp/p.want" || fail "--packets - differs"
	[ -s "$tmp/j" ] || fail "no --json FILE"
	run 1 --in "$tmp/in" --out "$tmp/out" --bin 1ns --series /dev/full
	says "cannot write"
}

t_gaps()
{
	mk in <<-E
		0    tcp $A id=1 seq=0 len=100
		1000 tcp $A id=2 seq=100 len=100
		1500 tcp $B id=1 seq=0 len=100
		2000 tcp $A id=3 seq=200 len=100
	E
	mk out <<-E
		2000 tcp $A id=1 seq=0 len=100
		3500 tcp $A id=2 seq=100 len=100
		3600 tcp $B id=1 seq=0 len=100
		6000 tcp $A id=3 seq=200 len=100
	E
	run 0 --in "$tmp/in" --out "$tmp/out" --gaps
	want .flows[0].gap_us.mean=2 .flows[0].gap_us.p50=1.5 \
		.flows[0].gap_us.p99=2.5 .flows[0].gap_us.max=2.5 \
		.flows[0].gap_us.min=1.5 .flows[0].gap_in_us.mean=1 \
		.flows[0].gap_in_us.max=1 .flows[1].gap_us.mean=null
}

# Where a capture begins and ends, and what lies in the queue then.
t_edges()
{
	mk in <<-E
		1000 tcp $A id=3 seq=200 len=100
		2000 tcp $A id=4 seq=300 len=100
		2500 tcp $A id=5 seq=400 len=100
		3000 tcp $A id=6 seq=500 len=100
		4000 tcp $A id=7 seq=600 len=100
	E
	mk out <<-E
		500  tcp $A id=1 seq=0 len=100
		1500 tcp $A id=2 seq=100 len=100
		3500 tcp $A id=3 seq=200 len=100
		4500 tcp $A id=5 seq=400 len=100
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .queued_at_start=2 .unmatched_out=0 .matched=2 .dropped=1 \
		.unresolved=2 .flows[0].unmatched_out=0
	# older than --gap: lost
	run 0 --in "$tmp/in" --out "$tmp/out" --gap 1400ns
	want .matched=0 .unmatched_out=4 .dropped=4 .unresolved=1
	run 0 --in "$tmp/in" --out "$tmp/out" --gap 0
	want .dropped=5
}

# A queue of segments on one side, of super-packets on the other.
t_segmented()
{
	mk in <<-E
		0    tcp $A id=1 seq=0 flags=2
		100  tcp $A id=2 seq=1 len=2920
		200  tcp $B id=1 seq=1 len=1460
		300  tcp $B id=2 seq=1461 len=1460
	E
	mk out <<-E
		1000 tcp $A id=1 seq=0 flags=2
		1100 tcp $A id=2 seq=1 len=1460
		1200 tcp $A id=3 seq=1461 len=1460
		1300 tcp $B id=2 seq=1461 len=1460
	E
	run 1 --in "$tmp/in" --out "$tmp/out"
	want .segmented=2 .unmatched_out=2 .dropped=null .flows[0].dropped=null \
		.flows[1].dropped=1 .matched=2
	says "turn offloads off"
}

# Captures with several CPUs are a little out of order; a clock that steps
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
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .matched=3 .delay_us.max=1 .delay_us.min=1 .qlen_pkts.max=1 \
		.qlen_pkts.mean=0.333333 .duration_ns=9000
	same warnings "$(cat "$tmp/err")" ""
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
	run 0 --in "$tmp/in" --out "$tmp/out" --series "$tmp/s"
	want .matched=4 .delay_us.max=1000 .delay_us.min=1000 .packets_out=4
	awk -v q="$(get .qlen_pkts.max)" 'BEGIN { exit !(q >= 1 && q <= 2) }' \
		</dev/null || fail "queue length $(get .qlen_pkts.max)"
	says "1 packets are out of order by more than 1 ms"
}

t_other_protocols()
{
	mk in <<-E
		0   arp
		10  1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=8
		20  1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=9
		30  udp $A id=8 frag=0x2000 len=1472
		40  udp $A id=8 frag=0x00b9 len=500
		50  47 10.0.0.1:0>10.0.0.9:0 len=64
		60  2 10.0.0.1:0>224.0.0.22:0 len=8
		70  udp $A id=9 len=1400
	E
	mk out <<-E
		1010 1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=8 ttl=9
		1020 1 10.0.0.1:0>10.0.0.9:0 id=7 len=64 fill=9 ttl=9
		1030 udp $A id=8 frag=0x2000 len=1472 ttl=64
		1040 udp $A id=8 frag=0x00b9 len=500 ttl=9
		1050 47 10.0.0.1:0>10.0.0.9:0 len=64 ttl=9
		1070 udp $A id=9 len=1400 ttl=9
	E
	run 0 --in "$tmp/in" --out "$tmp/out"
	want .packets_in=6 .matched=6 .dropped=0 .ignored=2 .delay_us.max=1 \
		.flows[0].proto=icmp .flows[1].proto=udp .flows[1].packets=2 \
		.flows[2].proto=udp .flows[3].proto=47
	run 0 --in "$tmp/in" --out "$tmp/out" --filter 'udp port 80'
	want .packets_in=2 .matched=2
	run 1 --in "$tmp/in" --out "$tmp/out" --filter 'tcp'
	silent
	says "no packets that pass --filter"
}

t_bad_captures()
{
	local n

	for n in 1 2 3; do
		echo "${n}000 tcp $A id=$n seq=$n len=1000"
	done >"$tmp/txt"
	mk in <"$tmp/txt"
	mk in.ng -g <"$tmp/txt"
	: | mk none
	echo "0 arp" | mk arp
	: >"$tmp/zero"
	echo "this is no capture" >"$tmp/text"
	head -c -500 "$tmp/in" >"$tmp/cut"
	head -c -500 "$tmp/in.ng" >"$tmp/cut.ng"
	# link type 105: IEEE 802.11
	{ head -c 20 "$tmp/in"; printf '\151\0\0\0'; tail -c +25 "$tmp/in"; } \
		>"$tmp/wifi"
	for n in "none:no packets" "arp:none of 1 packets is IP" \
		 "zero:empty file" "text:unknown file format" \
		 "cut:after 2 packets: truncated" \
		 "cut.ng:after 2 packets: truncated" \
		 "missing:No such file" "wifi:link type IEEE802_11"; do
		run 1 --in "$tmp/in" --out "$tmp/${n%%:*}" --series "$tmp/s" \
			--packets "$tmp/p" --flow-series "$tmp/f"
		silent
		says "${n#*:}"
		says "/${n%%:*}: "
		run 1 --in "$tmp/${n%%:*}" --out "$tmp/in"
		silent
		says "${n#*:}"
		[ "$n" != "${n#cut}" ] && [ -e "$tmp/s$tmp/p$tmp/f" ] &&
			fail "${n%%:*}: half a result stays"
	done
	[ -e "$tmp/s" ] && fail "half a series stays"
}

# Whatever is cut or broken anywhere: an answer or one line, never a crash.
t_corrupt()
{
	local n size st=0 i

	for n in 1 2 3 4; do
		echo "${n}000 tcp $A id=$n seq=$n len=40 ts=$n"
		echo "${n}100 udp $A6 len=30 ext=1"
	done >"$tmp/txt"
	mk in <"$tmp/txt"
	mk in.ng -g <"$tmp/txt"
	mk out -l vlan <"$tmp/txt"
	for i in in in.ng; do
		size=$(wc -c <"$tmp/$i")
		for ((n = 0; n < size; n += 11)); do
			head -c "$n" "$tmp/$i" >"$tmp/a"
			"$qdelay" --in "$tmp/a" --out "$tmp/out" >"$tmp/json" \
				2>"$tmp/err"
			st=$?
			[ "$st" -le 1 ] || fail "$i cut to $n: exit status $st"
			{ head -c "$n" "$tmp/$i"; printf '\377'
			  tail -c +$((n + 2)) "$tmp/$i"; } >"$tmp/a"
			"$qdelay" --in "$tmp/a" --out "$tmp/out" --series "$tmp/s" \
				--packets "$tmp/p" --gaps >"$tmp/json" 2>"$tmp/err"
			st=$?
			[ "$st" -le 1 ] || fail "$i broken at $n: exit status $st"
		done
	done
}

t_usage()
{
	local a

	mk in <<<"0 udp $A len=1"
	while read -r a; do
		# shellcheck disable=SC2086 # words
		run 2 ${a//IN/$tmp/in}
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
	run 0 --in "$tmp/in" --out "$tmp/in" --rate 1.5gbit --bin 1.5us --gap 1s
	"$qdelay" --help | grep -q -- --overhead || fail "no --help"
}

# A queue with random traffic, and the same numbers worked out the slow way.
t_random()
{
	awk -v A="$A" -v B="$B" -v in_="$tmp/in.txt" -v out="$tmp/out.txt" '
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
			p = "tcp " flow " id=" i % 65536 " seq=" seq[flow] \
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
	mk in <"$tmp/in.txt"
	mk out <"$tmp/out.txt"
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
	}' "$tmp/out.txt" "$tmp/in.txt" 2>"$tmp/counts" | sort -n >"$tmp/ev"
	run 0 --in "$tmp/in" --out "$tmp/out"
	want ".dropped=$(grep -c drop "$tmp/counts")" \
		".marked=$(grep -c mark "$tmp/counts")" \
		".matched=$(grep -c out "$tmp/ev")" .packets_in=20000
	awk '$4 == "out" { print $5 }' "$tmp/ev" | sort -n | awk '
		function pct(p,   r) {
			r = int(n * p / 1000)
			return v[r + (r < n * p / 1000)] / 1000
		}
		{ v[++n] = $1; s += $1 }
		END {
			printf ".delay_us.mean=%.6f .delay_us.max=%.3f ", s / n / 1000, v[n] / 1000
			printf ".delay_us.min=%.3f .delay_us.p50=%.3f .delay_us.p90=%.3f ", v[1] / 1000, pct(500), pct(900)
			printf ".delay_us.p99=%.3f .delay_us.p999=%.3f\n", pct(990), pct(999)
		}' >"$tmp/wants"
	# shellcheck disable=SC2046 # words
	want $(cat "$tmp/wants")
	awk -v first="$(head -1 "$tmp/in.txt")" '
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
		}' "$tmp/ev" >"$tmp/wants"
	local p v e

	while read -r p v e; do
		near "$p" "$v" "$e"
	done <"$tmp/wants"
	# the histogram in place of exact percentiles: per flow, over 256 packets
	awk -v A="$A" 'NR == FNR { t[$3 $5] = $1; next }
		$3 == A { print $1 - t[$3 $5] }' "$tmp/in.txt" "$tmp/out.txt" |
		sort -n | awk '{ v[++n] = $1 }
			END { r = int(n * 0.99); r += r < n * 0.99; print v[r] / 1000 }' \
		>"$tmp/wants"
	near .flows[0].delay_us.p99 "$(cat "$tmp/wants")" 0.001
}

# ---- live ----

in_s() { ip netns exec "$ns" "$@"; }
in_r() { ip netns exec "$nr" "$@"; }
in_d() { ip netns exec "$nd" "$@"; }

# A device that sends each packet as it is, and an address on it
device()	# NETNS DEV MAC ADDRESS
{
	ip -n "$1" link set "$2" address "$3"
	ip -n "$1" link set "$2" gso_max_segs 1 gso_max_size 1514 2>/dev/null
	ip netns exec "$1" ethtool -K "$2" tso off gso off gro off \
		>/dev/null 2>&1
	ip -n "$1" addr add "$4/24" dev "$2"
	ip -n "$1" link set "$2" up
}

neighbour()	# NETNS DEV ADDRESS MAC
{
	ip -n "$1" neigh replace "$3" lladdr "$4" dev "$2" nud permanent
}

# s -- (veth) -- r -- (veth, the queue) -- d, nothing but our own packets
topology()
{
	local n mac=02:00:00:00:00

	[ -n "$spaces" ] && return 0
	ns=qd-s-$$ nr=qd-r-$$ nd=qd-d-$$
	for n in $ns $nr $nd; do
		ip netns add "$n" 2>"$tmp/err" || return 1
		spaces="$spaces $n"
		# without IPv6 it is not there
		ip netns exec "$n" sh -c '
			echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
			echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' \
			2>/dev/null
		ip -n "$n" link set lo up
	done
	ip -n "$nr" link add r0 type veth peer name s0 netns "$ns" \
		2>"$tmp/err" || return 1
	ip -n "$nr" link add r1 type veth peer name d0 netns "$nd" \
		2>"$tmp/err" || return 1
	in_r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	device "$ns" s0 "$mac:01" 10.77.0.1
	device "$nr" r0 "$mac:02" 10.77.0.2
	device "$nr" r1 "$mac:03" 10.77.1.2
	device "$nd" d0 "$mac:04" 10.77.1.1
	ip -n "$ns" route add default via 10.77.0.2
	ip -n "$nd" route add default via 10.77.1.2
	neighbour "$ns" s0 10.77.0.2 "$mac:02"
	neighbour "$nr" r0 10.77.0.1 "$mac:01"
	neighbour "$nr" r1 10.77.1.1 "$mac:04"
	neighbour "$nd" d0 10.77.1.2 "$mac:03"
}

need_live()
{
	[ "$(id -u)" = 0 ] || { skip="not root"; return 1; }
	command -v ip >/dev/null && command -v tc >/dev/null ||
		{ skip="no iproute2"; return 1; }
	command -v ping >/dev/null || { skip="no ping"; return 1; }
	topology || { skip="no namespaces: $(head -1 "$tmp/err")"; return 1; }
	in_r tc qdisc del dev r1 root 2>/dev/null
	return 0
}

qdisc()	# ARGUMENTS of tc qdisc add: false and $skip if the kernel has it not
{
	in_r tc qdisc add dev r1 "$@" 2>"$tmp/err" && return 0
	skip="no $(echo "$*" | grep -owE 'htb|tbf|red|netem|pfifo'): $(head -1 "$tmp/err")"
	return 1
}

begin()	# OPTIONS of qdelay
{
	local i

	: >"$tmp/err"
	rm -f "$tmp/json"
	ip netns exec "$nr" "$qdelay" --live --in r0 --out r1 \
		--json "$tmp/json" "$@" 2>"$tmp/err" &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		grep -qx ready "$tmp/err" && return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	fail "qdelay is not ready: $(cat "$tmp/err")"
	return 1
}

end()	# SIGNAL: $tmp/flat from qdelay, $tmp/tc from the queue's counters
{
	kill "-$1" "$pid" 2>/dev/null
	wait "$pid"
	same "exit status" $? 0
	pid=
	flat <"$tmp/json" >"$tmp/flat"
	in_r tc -s -j qdisc show dev r1 | flat >"$tmp/tc"
}

# Counter KEY of the first qdisc of KIND
counter()
{
	awk -v kind="$1" -v key="$2" -F= '
		{ i = substr($1, 1, index($1, "]")); k = substr($1, length(i) + 2) }
		k == "kind" { hit = $2 == kind }
		hit && k == key { print $2; exit }' "$tmp/tc"
}

# A burst of N pings with the ECN field of $2; replies may fail to come.
burst()
{
	in_s ping -q -n -c "$1" -l "$1" -s 1000 -Q "$2" -W 2 10.77.1.1 \
		>/dev/null 2>&1
}

counters_agree()	# KIND
{
	want ".packets_out=$(counter "$1" packets)" \
		".bytes_out=$(counter "$1" bytes)" \
		".dropped=$(counter "$1" drops)" .unmatched_out=0 .unresolved=0 \
		.capture_drops=0 .queued_at_start=0
	same "packets in the queue" "$(counter "$1" qlen)" 0
}

t_live_drops()
{
	need_live || return
	# 50 packets of 1042 bytes; one burst is ten packets of them
	qdisc root handle 1: tbf rate 20mbit burst 10420 limit 52100 || return
	begin --gap 400ms --rate 20mbit || return
	burst 150 2
	burst 20 0
	sleep 0.5
	end TERM
	counters_agree tbf
	want .packets_in=170 .ecn.in.ect0=150 .ecn.in.not_ect=20 .marked=0 \
		.flows[0].proto=icmp .flows[1].flow=
	[ "$(counter tbf drops)" != 0 ] ||
		{ skip="too slow to fill the queue"; return; }
	awk -v d="$(get .dropped)" 'BEGIN { exit !(d > 0 && d <= 100) }' \
		</dev/null || fail "dropped $(get .dropped) of 150"
	# 50 packets of 417 us wait; real time may be late but not early
	awk -v d="$(get .delay_us.max)" 'BEGIN { exit !(d >= 20000 && d < 1e6) }' \
		</dev/null || fail "delay $(get .delay_us.max) us"
	awk -v q="$(get .qlen_pkts.max)" 'BEGIN { exit !(q >= 50 && q <= 51) }' \
		</dev/null || fail "queue length $(get .qlen_pkts.max)"
}

t_live_marks()
{
	need_live || return
	qdisc root handle 1: htb default 1 || return
	in_r tc class add dev r1 parent 1: classid 1:1 htb rate 20mbit \
		burst 1042 cburst 1042 quantum 1514
	qdisc parent 1:1 handle 10: red limit 200k min 10420 max 10421 avpkt 1042 \
		burst 11 bandwidth 20mbit probability 1.0 ecn || return
	begin --gap 400ms --rate 20mbit || return
	burst 100 2
	burst 60 1
	burst 60 0
	sleep 0.5
	end TERM
	counters_agree red
	want ".marked=$(counter red marked)" .ecn.in.ect0=100 .ecn.in.ect1=60 \
		".dropped_not_ect=$(get .dropped)" \
		".ecn.out.ce=$(counter red marked)"
	[ "$(counter red marked)" != 0 ] || skip="too slow to fill the queue"
}

t_live_delay()
{
	need_live || return
	qdisc root handle 1: netem delay 5ms limit 1000 || return
	begin --gap 400ms || return
	burst 50 0
	sleep 0.1
	end INT
	counters_agree netem
	want .packets_in=50 .matched=50
	awk -v q="$(get .qlen_pkts.max)" 'BEGIN { exit !(q >= 1 && q <= 50) }' \
		</dev/null || fail "queue length $(get .qlen_pkts.max)"
	awk -v a="$(get .delay_us.min)" 'BEGIN { exit !(a >= 5000) }' </dev/null ||
		fail "shortest delay $(get .delay_us.min) us"
}

# Bulk TCP at many packets per wakeup
t_live_tcp()
{
	local i wakeups

	need_live || return
	command -v iperf3 >/dev/null || { skip="no iperf3"; return; }
	qdisc root handle 1: htb default 1 || return
	in_r tc class add dev r1 parent 1: classid 1:1 htb rate 200mbit \
		burst 3028 cburst 3028 quantum 1514
	qdisc parent 1:1 handle 10: pfifo limit 60 || return
	in_d iperf3 -s -1 >/dev/null 2>&1 &
	for ((i = 0; i < 200; i++)); do
		in_d ss -Hltn "sport = :5201" | grep -q . && break
		sleep 0.05
	done
	begin --gap 400ms --rate 200mbit --gaps || return
	in_s timeout 60 iperf3 -c 10.77.1.1 -n 20M -P 2 >"$tmp/iperf" 2>&1 ||
		skip="too slow: $(tail -1 "$tmp/iperf")"
	sleep 0.5
	wakeups=$(awk '$1 == "voluntary_ctxt_switches:" { print $2 }' \
		"/proc/$pid/status")
	end TERM
	counters_agree htb
	want .segmented=0
	# two devices, 20 times a second each, and full blocks
	awk -v w="$wakeups" -v p="$(get .packets_out)" -v t="$(get .duration_ns)" \
		'BEGIN { exit !(w < p / 20 + 60 * (t / 1e9 + 1)) }' </dev/null ||
		fail "$wakeups wakeups for $(get .packets_out) packets"
	[ -n "$skip" ] && return
	[ "$(get .packets_out)" -gt 13000 ] || fail "only $(get .packets_out) packets"
	awk -v u="$(get .utilisation)" 'BEGIN { exit !(u > 0 && u < 1.01) }' \
		</dev/null || fail "utilisation $(get .utilisation)"
	wait
}

# What the kernel could not hand over must not be taken for drops of the queue
t_live_capture_loss()
{
	need_live || return
	begin --buffer 1 || return
	kill -STOP "$pid"
	burst 10000 0
	kill -CONT "$pid"
	kill -TERM "$pid"
	wait "$pid"
	same "exit status" $? 1
	pid=
	says "r0: the kernel lost"
	flat <"$tmp/json" >"$tmp/flat"
	[ "$(get .capture_drops)" -gt 0 ] || fail "no capture_drops"
}

# Nothing to see: hardly a wakeup, and a clear end
t_live_idle()
{
	local wakeups

	need_live || return
	begin || return
	sleep 1
	wakeups=$(awk '$1 == "voluntary_ctxt_switches:" { print $2 }' \
		"/proc/$pid/status")
	[ "$wakeups" -lt 30 ] || fail "$wakeups wakeups while idle"
	kill -TERM "$pid"
	wait "$pid"
	same "exit status" $? 1
	pid=
	says "r0: no packets"
	[ -s "$tmp/json" ] && fail "a result"
	in_r "$qdelay" --live --in r0 --out r1 --duration 100ms >"$tmp/json" \
		2>"$tmp/err"
	same "exit status" $? 1
	says "r0: no packets"
	in_r "$qdelay" --live --in nosuchdev --out r1 >"$tmp/json" 2>"$tmp/err"
	same "exit status" $? 1
	silent
	says "nosuchdev: "
}

# ---- main ----

tests="basic ipv6 retransmission holes duplicates alike two_flows link_types key
	snaplen formats several_in window csv gaps edges segmented
	out_of_order other_protocols bad_captures corrupt usage random
	live_drops live_marks live_delay live_tcp
	live_capture_loss live_idle"

while getopts v opt; do
	case $opt in
	v) verbose=1 ;;
	*) echo "usage: qdelay.sh [-v] [TEST...]" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] && tests=$*

qdelay=$(find_program qdelay "${QDELAY-}") || skip_all "qdelay is not built"
mkpcap=$(find_program qdelay_pcap "${QDELAY_PCAP-}") ||
	skip_all "qdelay_pcap is not built"

trap cleanup EXIT
trap 'exit 1' INT TERM HUP
tmp=$(mktemp -d) || exit 1

echo "TAP version 13"
# shellcheck disable=SC2086 # words
set -- $tests
echo "1..$#"
for name; do
	number=$((number + 1))
	why=
	skip=
	declare -F "t_$name" >/dev/null || fail "no such test"
	[ -z "$why" ] && "t_$name"
	if [ -n "$pid" ]; then
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
		pid=
	fi
	if [ -n "$why" ]; then
		echo "not ok $number $name"
		echo "# $why"
		[ -n "$verbose" ] && sed 's/^/#   /' "$tmp/flat"
		failures=$((failures + 1))
	elif [ -n "$skip" ]; then
		echo "ok $number $name # SKIP $skip"
		skips=$((skips + 1))
	else
		echo "ok $number $name"
	fi
done
echo "# $((number - failures - skips)) passed, $failures failed, $skips skipped"
[ "$failures" = 0 ] || exit 1
[ "$skips" = "$number" ] && exit 4
exit 0
