# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the tests and the scenarios share: TAP, namespaces, topologies, waiting.
#
#	h1 --\                                          hosts h1..hN send,
#	      sw ==== bottleneck (sw:egress) == r       r receives
#	hN --/
#
# Every namespace carries $NSP as a prefix, so that nothing outside is touched.
# The base RTT is a delay on the way back (netem on sw's ports to the hosts), so
# that the bottleneck's queue is the only other thing that adds to it.

SELFTESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LOWQ_ROOT=$(cd "$SELFTESTS/.." && pwd)
BIN=${LOWQ_BIN:-$SELFTESTS}		# where flowgen and qdelay are
LOWQ_TC=${LOWQ_TC:-$LOWQ_ROOT/scripts/lowq-tc}	# in a kernel tree: the installed one
[ -x "$LOWQ_TC" ] || LOWQ_TC=$(command -v lowq-tc)
PATH=$BIN:$PATH
NSP=lowq$$-
TMP=$(mktemp -d)
readonly KSFT_SKIP=4

# --- TAP -------------------------------------------------------------------

TESTS=()	# "function|REQUIREMENT IDS|what is shown"

# declare_test FUNCTION "IDS" "WHAT": adds a test; runs in declared order
declare_test()
{
	TESTS+=("$1|$2|$3")
}

# In a test: fail "why" or skip "why" ends it; else it has passed.
fail()
{
	printf '%s\n' "$*" >"$TMP/why"
	exit 1
}

skip()
{
	printf '%s\n' "$*" >"$TMP/why"
	exit $KSFT_SKIP
}

# expect WHAT GOT OP WANT, OP one of -eq -ne -lt -le -gt -ge (floats too), = !=
expect()
{
	case $3 in
	=|!=) test "$2" "$3" "$4" ;;
	*) awk -v a="$2" -v op="$3" -v b="$4" 'BEGIN {
		if (a !~ /^[-+0-9.eE]+$/) exit 1
		a += 0; b += 0
		if (op == "-eq") exit !(a == b)
		if (op == "-ne") exit !(a != b)
		if (op == "-lt") exit !(a < b)
		if (op == "-le") exit !(a <= b)
		if (op == "-gt") exit !(a > b)
		exit !(a >= b) }' ;;
	esac || fail "$1: got '$2', expected $3 '$4'"
}

# run_tests [FUNCTION...]: all, or the named; prints TAP, exits as kselftest has it
run_tests()
{
	local entry func ids what n=0 failed=0 rc start

	[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root (of a namespace or the lab)"; exit $KSFT_SKIP; }
	echo "TAP version 13"
	echo "1..${#TESTS[@]}"
	for entry in "${TESTS[@]}"; do
		IFS='|' read -r func ids what <<<"$entry"
		n=$((n + 1))
		: >"$TMP/why"
		if [ $# -gt 0 ] && [[ " $* " != *" $func "* ]]; then
			echo "ok $n $func # SKIP not asked for"
			continue
		fi
		start=$(date +%s%N)
		(trap teardown EXIT; "$func") >"$TMP/log" 2>&1
		rc=$?
		printf '# %s took %d ms\n' "$func" $((($(date +%s%N) - start) / 1000000))
		case $rc in
		0) echo "ok $n $func [$ids] $what" ;;
		"$KSFT_SKIP") echo "ok $n $func [$ids] $what # SKIP $(cat "$TMP/why")" ;;
		*)
			failed=$((failed + 1))
			echo "not ok $n $func [$ids] $what"
			sed 's/^/# /' "$TMP/log" "$TMP/why" | tail -n 40
			;;
		esac
	done
	rm -rf "$TMP"
	[ $failed -eq 0 ]
	exit
}

# --- namespaces ------------------------------------------------------------

# in_ns HOST COMMAND...
in_ns()
{
	local ns=$NSP$1

	shift
	ip netns exec "$ns" "$@"
}

# Buffers as Linux has them by default, up to BUFFER bytes. Larger is not better:
# while a receiver's window still grows it acknowledges every packet at once.
add_ns()
{
	ip netns add "$NSP$1"
	ip -n "$NSP$1" link set lo up
	in_ns "$1" sysctl -qw net.ipv4.tcp_rmem="4096 131072 ${BUFFER:-6291456}" \
		net.ipv4.tcp_wmem="4096 16384 ${BUFFER:-6291456}" \
		net.ipv4.conf.all.forwarding=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
		net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_timestamps=1
}

# link NS1 DEV1 NS2 DEV2 [MAC1 MAC2]: a veth pair, up; OFFLOADS=1 keeps TSO and GRO
link()
{
	local segs=1

	[ -z "${OFFLOADS:-}" ] || segs=65535
	ip link add "$2" netns "$NSP$1" gso_max_segs $segs txqueuelen 10000 ${5:+address "$5"} \
		type veth peer name "$4" netns "$NSP$3" gso_max_segs $segs txqueuelen 10000 \
		${6:+address "$6"}
	ip -n "$NSP$1" link set "$2" up
	ip -n "$NSP$3" link set "$4" up
}

# net N NS1 DEV1 NS2 DEV2: a link with addresses 10.0.N.1 and fd00:N::1 for the
# host NS1, .254 and ::254 for the router NS2, which is NS1's way out. Neighbours
# are known from the start: no test pays for ARP, no queue sees it.
net()
{
	local n=$1 host=$2 hdev=$3 router=$4 rdev=$5 hmac rmac

	printf -v hmac '02:00:00:%02x:%02x:01' $((n >> 8)) $((n & 255))
	rmac=${hmac%01}fe
	link "$host" "$hdev" "$router" "$rdev" "$hmac" "$rmac"
	ip -n "$NSP$host" -batch - <<-END
		addr add 10.0.$n.1/24 dev $hdev
		addr add fd00:$n::1/64 dev $hdev nodad
		neigh replace 10.0.$n.254 lladdr $rmac dev $hdev nud permanent
		neigh replace fd00:$n::254 lladdr $rmac dev $hdev nud permanent
		route add default via 10.0.$n.254
		route add default via fd00:$n::254
	END
	ip -n "$NSP$router" -batch - <<-END
		addr add 10.0.$n.254/24 dev $rdev
		addr add fd00:$n::254/64 dev $rdev nodad
		neigh replace 10.0.$n.1 lladdr $hmac dev $rdev nud permanent
		neigh replace fd00:$n::1 lladdr $hmac dev $rdev nud permanent
	END
}

# The machine-wide limits that a guest of 2 GB runs into first.
roomy()
{
	[ "${LOWQ_LAB:-}" ] || return 0		# not on a user's machine
	sysctl -qw net.ipv4.tcp_mem="262144 393216 524288" \
		net.core.netdev_max_backlog=1000000 net.core.rmem_max=268435456 \
		net.core.wmem_max=268435456 net.core.somaxconn=65535 \
		net.core.optmem_max=1048576
}

# dumbbell HOSTS RTT [RTT_OF_HOST2...]: as drawn above. Addresses: host i is
# 10.0.i.1 and fd00:i::1, r is 10.0.0.1 and fd00:0::1.
dumbbell()
{
	local n=$1 i rtt=$2

	shift
	roomy
	add_ns sw
	add_ns r
	net 0 r eth0 sw egress
	for ((i = 1; i <= n; i++)); do
		add_ns "h$i"
		net "$i" "h$i" eth0 sw "p$i"
		rtt=${!i:-$rtt}
		[ "$rtt" = 0 ] || in_ns sw tc qdisc add dev "p$i" root netem delay "$rtt" limit 1000000
	done
}

# every NS COMMAND...: in all of the topology's namespaces
every()
{
	local ns

	for ns in $(ip netns list | awk -v p="^$NSP" '$1 ~ p { print $1 }'); do
		ip netns exec "$ns" "$@"
	done
}

# wait_until COMMAND...: polls for up to WAIT seconds (10)
wait_until()
{
	local i

	for ((i = 0; i < ${WAIT:-10} * 20; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	fail "timed out waiting for: $*"
}

# default_control NAME: of this and of new namespaces, until teardown. A restricted
# control can be the default of the first namespace only.
default_control()
{
	[ "${LOWQ_LAB:-}" ] || skip "changes the machine's default control"
	[ -n "${CONTROL_BEFORE:-}" ] || CONTROL_BEFORE=$(sysctl -n net.ipv4.tcp_congestion_control)
	sysctl -qw net.ipv4.tcp_congestion_control="$1" || fail "cannot make $1 the default"
}

# listening NS PORT
listening()
{
	in_ns "$1" ss -Hltn "sport = :$2" | grep -q .
}

# serve NS [flowgen options]: a flowgen server in the background, ready
serve()
{
	local ns=$1

	shift
	in_ns "$ns" flowgen serve "$@" >/dev/null 2>"$TMP/serve.$ns" &
	wait_until listening "$ns" 5201
}

# iperf_client FROM ARGUMENT...: iperf3's client, its JSON in $TMP/iperf.json. Just after a
# test the server turns the next one away.
iperf_client()
{
	local try

	for try in 1 2 3 4 5; do
		in_ns "$1" iperf3 -J "${@:2}" >"$TMP/iperf.json"
		[ -n "$(jq -r '.error // empty' "$TMP/iperf.json")" ] || return 0
		sleep 0.2
	done
	fail "iperf3 ${*:2}, $try times: $(jq -r .error "$TMP/iperf.json")"
}

# switch_controls FROM TO CONTROL...: one connection from host FROM to r at address
# TO changes its control 200 times, with data in between
switch_controls()
{
	local from=$1 to=$2

	shift 2
	in_ns r python3 -c 'import socket
c = socket.create_server(("", 5299)).accept()[0]
while c.recv(65536): pass' &
	wait_until listening r 5299
	in_ns "$from" python3 - "$to" "$@" <<-'END'
		import socket, sys
		s = socket.create_connection((sys.argv[1], 5299))
		for i in range(200):
		    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2 + i % (len(sys.argv) - 2)].encode())
		    s.sendall(b"x" * 20000)
		s.close()
	END
}

# Ends what runs in the namespaces, then the namespaces.
teardown()
{
	local ns

	for ns in $(ip netns list 2>/dev/null | awk -v p="^$NSP" '$1 ~ p { print $1 }'); do
		ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 2>/dev/null
		ip netns del "$ns"
	done
	[ -z "${CONTROL_BEFORE:-}" ] || sysctl -qw net.ipv4.tcp_congestion_control="$CONTROL_BEFORE"
	wait 2>/dev/null
}

# --- looking ---------------------------------------------------------------

# capture NS DEV FILE [FILTER]: packets' headers, both directions, in the
# background until stop_captures
capture()
{
	local log

	log=$TMP/tcpdump.$(basename "$3")
	ip netns exec "$NSP$1" tcpdump -i "$2" -Z root -s "${SNAPLEN:-128}" -B 65536 -n \
		--time-stamp-precision=nano -w "$3" ${4:+"$4"} 2>"$log" &
	CAPTURES+=($!)
	wait_until grep -q listening "$log"
}

stop_captures()
{
	# tcpdump learns of the last packets when its read times out
	sleep 1.5
	kill -TERM "${CAPTURES[@]}"
	wait "${CAPTURES[@]}" 2>/dev/null
	CAPTURES=()
}

# packets FILE FILTER FIELD...: tshark's fields, a line per packet, by tabs
packets()
{
	local file=$1 filter=$2 args=() f

	shift 2
	for f; do
		args+=(-e "$f")
	done
	tshark -r "$file" -n -o tcp.relative_sequence_numbers:FALSE \
		-Y "$filter" -T fields "${args[@]}" 2>/dev/null
}

# count FILE FILTER
count()
{
	packets "$1" "$2" frame.number | wc -l
}

# trace_on EVENT...: as system/event
trace_on()
{
	local t=/sys/kernel/tracing e

	echo 65536 >$t/buffer_size_kb
	echo >$t/trace
	for e; do
		echo 1 >"$t/events/$e/enable"
	done
}

# trace_off FILE: takes what was traced
trace_off()
{
	local t=/sys/kernel/tracing

	echo 0 >$t/events/enable
	grep -v '^#' $t/trace >"$1"
	echo >$t/trace
}

# field NAME: from lines of name=value words on standard input
field()
{
	sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"
}

# marks NS DEV: CE marks and drops that the queue counts ("marks drops")
queue_counts()
{
	in_ns "$1" tc -s -j qdisc show dev "$2" |
		jq -r '[.[] | select(.marked? != null or .ecn_mark? != null)] |
			[(map(.marked // .ecn_mark) | add // 0), (map(.drops // 0) | add // 0)] | @tsv'
}

# In virtual time results are exact; in real time (the debug flavour, a user's
# machine) only what does not depend on speed can be judged.
virtual()
{
	[ "${LOWQ_LAB:-}" = virtual ]
}

needs_virtual()
{
	virtual || skip "judged in virtual time, where results are exact"
}
