# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions that tests and scenarios share: namespaces, topologies, waiting, and TAP.
#
#	h1 --\                                          hosts h1..hN send,
#	      sw ==== bottleneck (sw:egress) == r       r receives
#	hN --/
#
# The name of every namespace begins with $NSP, so that no other one is touched. The
# base RTT is a delay of ACKs (netem on sw's ports to the hosts); only the bottleneck's
# queue adds to it.

SELFTESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LOWQ_ROOT=$(cd "$SELFTESTS/.." && pwd)
BIN=${LOWQ_BIN:-$SELFTESTS}		# where flowgen and qdelay are
LOWQ_TC=${LOWQ_TC:-$LOWQ_ROOT/scripts/lowq-tc}	# a kernel tree has none: use the installed one
[ -x "$LOWQ_TC" ] || LOWQ_TC=$(command -v lowq-tc)
PATH=$BIN:$PATH
NSP=lowq$$-

# shellcheck source=tap.sh
. "$SELFTESTS/tap.sh"

# before each test
setup()
{
	command -v flowgen qdelay >/dev/null || fail "build flowgen first: make -C selftests tools"
	[ "$EUID" -eq 0 ] || skip "needs root (of a namespace or the lab)"
}

# --- namespaces ------------------------------------------------------------

# in_ns HOST COMMAND...
in_ns()
{
	local ns=$NSP$1

	shift
	ip netns exec "$ns" "$@"
}

# A topology is planned, and then built by few programs: their starts take longer than they do.
# Where PLAN is set, add_ns, link and net only note what build_plan does at the end.
PLAN=			# set: only plan
PLANNED_NS=()		# new namespaces
PLANNED_LINKS=		# between them, for "ip -batch"
declare -A PLANNED_IN	# for "ip -batch" in a namespace

# plan_in NS WORD...: a line for the namespace
plan_in()
{
	PLANNED_IN[$1]+="${*:2}"$'\n'
}

# batch LINES [ip's options]
batch()
{
	ip "${@:2}" -batch - <<<"$1"
}

# The buffers are Linux's defaults, or up to BUFFER bytes. Larger ones change the results:
# while its window grows, a receiver acknowledges every packet at once.
build_plan()
{
	local ns rc=0

	[ -z "$PLAN" ] || return 0
	[ ${#PLANNED_NS[@]} -eq 0 ] || batch "$(printf "netns add $NSP%s\n" "${PLANNED_NS[@]}")" || rc=1
	# before there are devices, which take over some of it
	for ns in "${PLANNED_NS[@]}"; do
		in_ns "$ns" sysctl -qw net.ipv4.tcp_rmem="4096 131072 ${BUFFER:-6291456}" \
			net.ipv4.tcp_wmem="4096 16384 ${BUFFER:-6291456}" \
			net.ipv4.conf.all.forwarding=1 net.ipv6.conf.all.forwarding=1 \
			net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
			net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_timestamps=1 || rc=1
	done
	[ -z "$PLANNED_LINKS" ] || batch "$PLANNED_LINKS" || rc=1
	for ns in "${!PLANNED_IN[@]}"; do
		batch "${PLANNED_IN[$ns]}" -n "$NSP$ns" || rc=1
	done
	PLANNED_NS=() PLANNED_LINKS='' PLANNED_IN=()
	return $rc
}

add_ns()
{
	PLANNED_NS+=("$1")
	plan_in "$1" link set lo up
	build_plan
}

# link NS1 DEV1 NS2 DEV2 [MAC1 MAC2]: a veth pair, up; OFFLOADS=1 keeps TSO and GRO
link()
{
	local segs=1

	[ -z "${OFFLOADS:-}" ] || segs=65535
	PLANNED_LINKS+="link add $2 netns $NSP$1 gso_max_segs $segs txqueuelen 10000 ${5:+address $5} "
	PLANNED_LINKS+="type veth peer name $4 netns $NSP$3 gso_max_segs $segs txqueuelen 10000 "
	PLANNED_LINKS+="${6:+address $6}"$'\n'
	plan_in "$1" link set "$2" up
	plan_in "$3" link set "$4" up
	build_plan
}

# net N NS1 DEV1 NS2 DEV2: a link with addresses 10.0.N.1 and fd00:N::1 for the
# host NS1, .254 and ::254 for the router NS2, NS1's default gateway. Neighbour entries are
# permanent, so that no ARP packet delays a test or enters a queue.
net()
{
	local n=$1 host=$2 hdev=$3 router=$4 rdev=$5 hmac rmac

	printf -v hmac '02:00:00:%02x:%02x:01' $((n >> 8)) $((n & 255))
	rmac=${hmac%01}fe
	PLAN=1 link "$host" "$hdev" "$router" "$rdev" "$hmac" "$rmac"
	plan_in "$host" addr add "10.0.$n.1/24" dev "$hdev"
	plan_in "$host" addr add "fd00:$n::1/64" dev "$hdev" nodad
	plan_in "$host" neigh replace "10.0.$n.254" lladdr "$rmac" dev "$hdev" nud permanent
	plan_in "$host" neigh replace "fd00:$n::254" lladdr "$rmac" dev "$hdev" nud permanent
	plan_in "$host" route add default via "10.0.$n.254"
	plan_in "$host" route add default via "fd00:$n::254"
	plan_in "$router" addr add "10.0.$n.254/24" dev "$rdev"
	plan_in "$router" addr add "fd00:$n::254/64" dev "$rdev" nodad
	plan_in "$router" neigh replace "10.0.$n.1" lladdr "$hmac" dev "$rdev" nud permanent
	plan_in "$router" neigh replace "fd00:$n::1" lladdr "$hmac" dev "$rdev" nud permanent
	build_plan
}

# Raises the machine-wide limits that a guest with 2 GB reaches first.
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
	local n=$1 i rtt=$2 delays='' PLAN=1

	shift
	roomy
	add_ns sw
	add_ns r
	net 0 r eth0 sw egress
	for ((i = 1; i <= n; i++)); do
		add_ns "h$i"
		net "$i" "h$i" eth0 sw "p$i"
		rtt=${!i:-$rtt}
		[ "$rtt" = 0 ] || delays+="qdisc add dev p$i root netem delay $rtt limit 1000000"$'\n'
	done
	PLAN=
	build_plan
	[ -z "$delays" ] || tc -n "${NSP}sw" -batch - <<<"$delays"
}

# our_ns: the paths of the topology's namespaces, in NAMESPACES
our_ns()
{
	NAMESPACES=(/run/netns/"$NSP"*)
	[ -e "${NAMESPACES[0]}" ] || NAMESPACES=()
}

# every COMMAND...: runs it in each of the topology's namespaces
every()
{
	local ns NAMESPACES

	our_ns
	for ns in "${NAMESPACES[@]##*/}"; do
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

# default_control NAME: makes it the default of this and of new namespaces, until teardown. A
# restricted control can be the default of the first namespace only.
default_control()
{
	[ "${LOWQ_LAB:-}" ] || skip "changes the machine's default control"
	[ -n "${CONTROL_BEFORE:-}" ] || CONTROL_BEFORE=$(sysctl -n net.ipv4.tcp_congestion_control)
	sysctl -qw net.ipv4.tcp_congestion_control="$1" || fail "cannot make $1 the default"
}

# listening NS PORT: does a TCP server listen there?
listening()
{
	in_ns "$1" ss -Hltn "sport = :$2" | grep -q .
}

# serve NS [flowgen options]: starts a flowgen server in the background, and waits until it is
# ready
serve()
{
	local ns=$1

	shift
	in_ns "$ns" flowgen serve "$@" >/dev/null 2>"$TMP/serve.$ns" &
	wait_until listening "$ns" 5201
}

# iperf_client FROM ARGUMENT...: runs iperf3's client; its JSON is in $TMP/iperf.json. Just
# after a test the server refuses the next one, so it tries again.
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

# sink [CONTROL]: r reads and discards all data that arrives at port 5299; MARK is the mark of
# its own packets
sink()
{
	in_ns r python3 "$SELFTESTS/talk.py" sink ${1:+--cc "$1"} ${MARK:+--mark "$MARK"} &
	wait_until listening r 5299
}

# switch_controls FROM TO CONTROL...: one connection from host FROM to a sink at address TO
# changes its control 200 times, at random, with data in between. Meanwhile another process
# reads the controls' state without a lock, as ss does.
switch_controls()
{
	in_ns "$1" timeout 60 python3 - "${@:2}" <<-'END' || fail "a socket that changes its control"
		import os, random, signal, socket, sys, time
		TCP_CC_INFO = 26
		s = socket.create_connection((sys.argv[1], 5299))
		looks = os.fork()
		if not looks:
		    while True:
		        for i in range(50):
		            s.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64)
		        time.sleep(0.0001)
		random.seed(1)
		for i in range(200):
		    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, random.choice(sys.argv[2:]).encode())
		    s.sendall(b"x" * 20000)
		os.kill(looks, signal.SIGKILL)
		s.shutdown(socket.SHUT_WR)
		s.recv(1)
	END
}

# connections_end NAMESPACE...: without their processes and without queues that hold or drop packets,
# connections end. If the path went first, they would send again for two minutes: what they do then
# is in the next test's trace, and their namespaces and the module stay.
connections_end()
{
	local ns wait open

	for ns; do
		tc -n "$ns" qdisc show 2>/dev/null | awk '
			/ root / && $2 != "noqueue" { print "qdisc del dev " $5 " root" }
			$2 == "clsact" || $2 == "ingress" { print "qdisc del dev " $5 " " $2 }' |
			tc -n "$ns" -force -batch - 2>/dev/null
	done
	for wait in 0.01 0.03 0.1 0.3 0.5 1 1; do
		open=
		for ns; do
			open+=$(ss -N "$ns" -Htn state established state fin-wait-1 state close-wait state last-ack state closing)
		done
		[ "$open" ] || return
		sleep "$wait"
	done
}

# Kills all processes in the namespaces, then deletes the namespaces.
teardown()
{
	local ns process NAMESPACES

	our_ns
	for process in ${NAMESPACES:+/proc/[0-9]*}; do
		for ns in "${NAMESPACES[@]}"; do
			[ ! "$process/ns/net" -ef "$ns" ] || kill -9 "${process#/proc/}" 2>/dev/null
		done
	done
	connections_end "${NAMESPACES[@]##*/}"
	[ ${#NAMESPACES[@]} -eq 0 ] || batch "$(printf 'netns del %s\n' "${NAMESPACES[@]##*/}")"
	[ -z "${CONTROL_BEFORE:-}" ] || sysctl -qw net.ipv4.tcp_congestion_control="$CONTROL_BEFORE"
	wait 2>/dev/null
}

# --- the control under test --------------------------------------------------

LOADED=		# the parameters with which a test has loaded the module
CHANGED=()	# FILE=VALUE for each parameter that a test has changed, with its old value

# under_test CONTROL: reloads its module with default parameters. The other functions of this
# part refer to this control.
under_test()
{
	CC=$1
	MODULE=tcp_$1
	PARAM=/sys/module/$MODULE/parameters
	modprobe -r "$MODULE" 2>/dev/null
	modprobe "$MODULE" || skip_all "no module $MODULE"
}

# unloaded: unloads the module. Orphaned sockets, and before 7.x a namespace's default control,
# keep it in use until their last retransmission.
unloaded()
{
	local i

	for ((i = 0; i < 300; i++)); do
		! modprobe -r "$MODULE" 2>/dev/null || return 0
		sleep "$(virtual && echo 1 || echo 0.1)"
	done
	fail "$MODULE cannot be unloaded"
}

# load [NAME=VALUE...]: reloads the module; the parameters hold until the end of the test
# shellcheck disable=SC2120 # the scripts give parameters
load()
{
	unloaded
	modprobe "$MODULE" "$@" || fail "cannot load with $*"
	LOADED=$*${CHANGED[*]}
}

# parameter NAME=VALUE...: changes parameters of the loaded module until the end of the test
parameter()
{
	local p file

	for p; do
		file=$PARAM/${p%%=*}
		CHANGED=("$file=$(cat "$file")" "${CHANGED[@]}")
		echo "${p#*=}" 2>/dev/null >"$file" || fail "$p was refused"
	done
}

# After a test: restores the module's default parameters
put_back()
{
	local p

	[ "${MODULE:-}" ] || return 0
	for p in "${CHANGED[@]}"; do
		[ ! -w "${p%%=*}" ] || echo "${p#*=}" >"${p%%=*}"
	done
	CHANGED=()
	# shellcheck disable=SC2119
	[ -z "$LOADED" ] && [ -d "$PARAM" ] || load
}

# refused NAME=VALUE...: the module refuses each value, logs a reason, and keeps the old value
refused()
{
	local p name old

	for p; do
		name=${p%%=*}
		old=$(cat "$PARAM/$name")
		dmesg -C
		! echo "${p#*=}" 2>/dev/null >"$PARAM/$name" || fail "$p was accepted"
		expect "$name after a refused '$p'" "$(cat "$PARAM/$name")" = "$old"
		dmesg | grep -q "$name=.* refused" || fail "no reason in the log for $p"
	done
}

# refused_at_load NAME=VALUE: the module does not load with it; afterwards it is not loaded
refused_at_load()
{
	unloaded
	! modprobe "$MODULE" "$1" 2>/dev/null || fail "loaded with $1"
}

# in_use: over a dumbbell, the module cannot be unloaded during a flow, but can be afterwards
in_use()
{
	serve r --cc "$CC"
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CC" --duration 1s >/dev/null &
	sleep 0.3
	! rmmod "$MODULE" 2>/dev/null || fail "unloaded while in use"
	wait $!
	teardown
	unloaded
	! dmesg | grep -q "$MODULE.*leak" || fail "leak"
	modprobe "$MODULE" || fail "cannot load again"
}

# chosen_each_way: the control can be chosen per socket, per route and by sysctl; IPv4 and IPv6
chosen_each_way()
{
	default_control cubic
	dumbbell 1 100us
	shape 1gbit
	serve r --cc "$CC"
	send --size 100k
	expect "per socket" "$(flow_field cc)" = "$CC"
	ip -n "${NSP}h1" route replace default via 10.0.1.254 congctl "$CC"
	in_ns h1 flowgen long --to 10.0.0.1 --size 100k >"$TMP/flow.json"
	expect "per route" "$(flow_field cc)" = "$CC"
	ip -n "${NSP}h1" -6 route replace default via fd00:1::254 congctl "$CC"
	in_ns h1 flowgen long --to fd00:0::1 --size 100k >"$TMP/flow.json"
	expect "per route, IPv6" "$(flow_field cc)" = "$CC"
	teardown
	# a restricted control can only be the default of the first namespace; namespaces
	# made after that inherit it
	default_control "$CC"
	dumbbell 1 100us
	shape 1gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --size 100k >"$TMP/flow.json"
	expect "by sysctl" "$(flow_field cc)" = "$CC"
}

# client ADDRESS STEP...: a connection from h1, or from the host FROM, to a sink at ADDRESS with
# the control under test (talk.py --help); its results are in $TMP/client
client()
{
	in_ns "${FROM:-h1}" timeout 300 python3 "$SELFTESTS/talk.py" to "$1" --close "cc=$CC" "${@:2}" \
		>"$TMP/client" || fail "talk.py to $*"
}

# change SPEC...: a step of talk.py that changes the bottleneck's netem
change()
{
	echo "run=tc -n ${NSP}sw qdisc change dev egress root netem limit 100000 $*"
}

# instead SPEC...: a step of talk.py that puts another netem in place of the bottleneck's
# (a change would leave "ecn" on)
instead()
{
	echo "run=tc -n ${NSP}sw qdisc del dev egress root; tc -n ${NSP}sw qdisc add dev egress root netem limit 100000 $*"
}

# limit_given_back: the control under test limits TSO packets of a small window; the next control's
# are long again. With offloads.
limit_given_back()
{
	OFFLOADS=1 dumbbell 1 1ms
	every sysctl -qw net.ipv4.tcp_ecn=3
	sink "$CC"
	SNAPLEN=96 capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5299'
	client 10.0.0.1 send=20000 acked cc=cubic send=5000000 acked
	stop_captures
	# the first 20000 bytes are the control's under test
	packets "$TMP/h.pcap" 'tcp.len > 0' tcp.len | awk '
		(sum += $1) <= 20000 && $1 > first { first = $1 }
		$1 > longest { longest = $1 }
		END { printf "first=%d longest=%d\n", first, longest }' | tee "$TMP/judged"
	expect "longest TSO packet of this one, bytes" "$(field first <"$TMP/judged")" -le 10000
	expect "longest TSO packet of the next control, bytes" "$(field longest <"$TMP/judged")" -ge 30000
}

# tail_losses EVENT: twelve bursts whose last packet is lost and repaired by a tail loss
# probe, without marks. REPAIRED is the number that probes repaired, as counted by the stack,
# LOSSES that of all repairs: now and then a probe comes too early. The trace of EVENT is in
# $TMP/trace. RTT 10 ms.
tail_losses()
{
	local steps=() i

	for ((i = 0; i < 12; i++)); do
		# the last packet of a write has PSH and ACK (HPCC++'s probes have only PSH); the
		# tail loss probe follows it after two RTTs
		steps+=("run=tc -n ${NSP}sw filter add dev egress egress protocol ip pref 1 flower ip_proto tcp tcp_flags 0x18/0x18 action drop"
			send=10000 sleep=0.014 "run=tc -n ${NSP}sw filter del dev egress egress pref 1" acked sleep=0.05)
	done
	in_ns sw tc qdisc add dev egress clsact
	sink "$CC"
	trace_on "$1"
	client 10.0.0.1 send=100000 acked sleep=0.1 "${steps[@]}"
	trace_off "$TMP/trace"
	# shellcheck disable=SC2034 # for the scripts
	read -r REPAIRED LOSSES < <(in_ns h1 nstat -asz TcpExtTCPLossProbeRecovery TcpExtTCPSackRecovery \
		TcpExtTCPTimeouts | awk '/Probe/ { probes = $2 } NR > 1 { n += $2 } END { print probes + 0, n + 0 }')
}

# lost_again EVENT: a flow whose retransmissions after timeouts are lost, too. The stack changes
# from CA_Loss to Recovery at least once, and each time EVENT, a reduction for loss, follows.
# RTT 10 ms.
lost_again()
{
	local i

	sink "$CC"
	trace_on "$1" tcp/tcp_cong_state_set
	for i in 1 2 3 4; do
		client 10.0.0.1 send=300000 "$(change loss 100%)" \
			send=100000 sleep=0.3 "$(change loss 25%)" \
			sleep=1 "$(change loss 0%)" send=200000 acked
	done
	trace_off "$TMP/trace"
	judge recovery-cuts "$TMP/trace" | tee "$TMP/judged"
	expect "changes from Loss to Recovery" "$(field recoveries <"$TMP/judged")" -ge 1
	expect "of those without a reduction for loss" "$(field without_cut <"$TMP/judged")" -eq 0
}

# Can a BPF program choose a control here? That needs cgroup v2.
has_sock_ops()
{
	grep -qw cgroup2 /proc/filesystems
}

# chosen_early HOW CLIENT SERVER WANT: chooses the control before the handshake is done. HOW is
# "during" (setsockopt after connect() has started) or "bpf" (when connect() starts). CLIENT and
# SERVER are tcp_ecn of the two ends. WANT is the control that the connection should have
# afterwards; the capture is $TMP/early.pcap.
chosen_early()
{
	local run=() first="connect-cc=$CC"

	in_ns h1 sysctl -qw net.ipv4.tcp_ecn="$2"
	in_ns r sysctl -qw net.ipv4.tcp_ecn="$3"
	if [ "$1" = bpf ]; then
		run=("$SELFTESTS/sock_ops.py" "$CC") first=connect
	fi
	capture h1 eth0 "$TMP/early.pcap" tcp
	in_ns h1 timeout 60 "${run[@]}" python3 "$SELFTESTS/talk.py" to 10.0.0.1 --close "$first" send=300000 acked \
		>"$TMP/client" || fail "chosen early, $1"
	stop_captures
	expect "control chosen early, $1, tcp_ecn $2 to $3" "$(field cc <"$TMP/client")" = "$4"
}

# only_if_allowed: an ordinary user may not choose the control. (Once it has been the default,
# the restriction is lifted until the module is reloaded.)
only_if_allowed()
{
	expect "allowed controls" "$(sysctl -n net.ipv4.tcp_allowed_congestion_control | grep -cw "$CC")" -eq 0
	setpriv --reuid 65534 --regid 65534 --clear-groups flowgen long --to 127.0.0.1 --size 1k --cc "$CC" >"$TMP/out" 2>&1
	expect "exit status for an ordinary user" "$?" -eq 2
}

# iperf_transfers MBPS: iperf3 reaches MBPS over a dumbbell on which the control is the default;
# IPv4 and IPv6
iperf_transfers()
{
	local to

	in_ns r iperf3 -s >/dev/null 2>&1 &
	wait_until listening r 5201
	for to in 10.0.0.1 fd00:0::1; do
		iperf_client h1 -c "$to" -C "$CC" -n 10M
		expect "control that iperf3 reports" "$(jq -r .end.sender_tcp_congestion "$TMP/iperf.json")" = "$CC"
		expect "rate, Mb/s" "$(jq '.end.sum_received.bits_per_second / 1e6' "$TMP/iperf.json")" -ge "$1"
	done
}

# reno_without_ecn: with a peer without ECN, the connection uses Reno and sends Not-ECT packets
reno_without_ecn()
{
	dumbbell 1 100us
	shape 1gbit
	every sysctl -qw net.ipv4.tcp_ecn=0
	serve r --cc cubic
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 500k
	stop_captures
	expect "control in use" "$(flow_field cc)" = "${CC}_reno"
	expect "packets that are ECT after the handshake" "$(count "$TMP/h.pcap" 'tcp.flags.syn == 0 && tcp.dstport == 5201 && ip.dsfield.ecn != 0')" -eq 0
}

# storm FLOWS: 2 s of long flows and requests, IPv4 and IPv6, over a dumbbell of two hosts, with
# lost packets and with lost, duplicated and reordered ACKs
storm()
{
	local to

	in_ns h1 tc qdisc add dev eth0 root netem limit 1000 loss 1%
	in_ns r tc qdisc add dev eth0 root netem limit 1000 loss 5% duplicate 1% reorder 1% delay 1ms
	serve r --cc "$CC"
	for to in 10.0.0.1 fd00:0::1; do
		in_ns h1 flowgen long --to "$to" --flows "$1" --cc "$CC" --duration 2s >/dev/null 2>&1 &
		in_ns h2 flowgen rpc --push --to "$to" --size 20k --rate 50 --cc "$CC" --duration 2s >/dev/null 2>&1 &
	done
}

# vanish HOST: deletes a host and all its processes while traffic runs
vanish()
{
	ip netns pids "$NSP$1" | xargs -r kill -9
	ip netns del "$NSP$1"
}

# shaper NS DEV RATE [PLACE... handle H:]: htb with one class that sends packet by packet; by
# default at the root
shaper()
{
	local place=("${@:4}")

	[ $# -gt 3 ] || place=(root handle 1:)
	in_ns "$1" tc qdisc add dev "$2" "${place[@]}" htb default 1 direct_qlen 100000
	set_rate "$1" "$2" "${place[-1]}1" "$3"
}

# set_rate NS DEV CLASS RATE [FRAME]: sets the rate of a shaper's class
set_rate()
{
	local frame=${5:-1514}

	in_ns "$1" tc class replace dev "$2" parent "${3%:*}:" classid "$3" htb rate "$4" ceil "$4" \
		burst "$frame" cburst "$frame" quantum "$frame" || fail "no rate of $4 at $1's $2"
}

# shape RATE [QDISC...]: makes the bottleneck, a shaper over QDISC. With all checkers on, a
# packet takes more CPU time than its slot at high rates; the shaper's timer would then always
# be late and leave no CPU time to programs.
shape()
{
	local rate=$1

	shift
	virtual || rate=10mbit
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	shaper sw egress "$rate"
	[ $# -eq 0 ] || in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "$@"
}

# lossy SPEC...: netem instead of a bottleneck; "loss X% ecn" marks packets, it does not drop them
lossy()
{
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	in_ns sw tc qdisc add dev egress root netem limit 100000 "$@"
}

# send [flowgen options]: one flow from h1 to r, over IPv4 unless TO is another address;
# flow_field NAME prints a field of its result
send()
{
	[[ " $* " == *" --duration "* ]] || set -- --timeout 120s "$@"
	in_ns h1 flowgen long --to "${TO:-10.0.0.1}" --cc "$CC" "$@" \
		>"$TMP/flow.json" || fail "flow failed: $(head -c 500 "$TMP/flow.json")"
}

flow_field()
{
	jq -rs "map(select(.type == \"flow\"))[0].$1" "$TMP/flow.json"
}

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

# --- observing -------------------------------------------------------------

# capture NS DEV FILE [FILTER]: captures the headers of packets in both directions, in the
# background, until stop_captures
capture()
{
	local log

	command -v tshark >/dev/null || skip "no tshark to read captures with"
	log=$TMP/tcpdump.$(basename "$3")
	: >"$log"	# that of an earlier capture contains "listening"
	ip netns exec "$NSP$1" tcpdump -i "$2" -Z root -s "${SNAPLEN:-128}" -B 65536 -n \
		--time-stamp-precision=nano -w "$3" ${4:+"$4"} 2>"$log" &
	CAPTURES+=($!)
	wait_until grep -q listening "$log"
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
	local ports

	ports=$(ip -n "${NSP}sw" -br link | awk '$1 ~ /^p[0-9]+@/ { sub(/@.*/, "", $1); print $1 }' | paste -sd,)
	ip netns exec "${NSP}sw" qdelay --live --in "$ports" --out egress --filter tcp --rate "$1" "${@:2}" \
		--json "$TMP/q.json" 2>"$TMP/qdelay.err" &
	OBSERVER=$!
	wait_until grep -q ready "$TMP/qdelay.err"
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
	python3 "$SELFTESTS/judge.py" "$@" || fail "judge $*"
}

# packets FILE FILTER FIELD...: tshark's fields, a line per packet, separated by tabs (dissect.py)
packets()
{
	python3 -I -S "$SELFTESTS/dissect.py" "$@" || fail "dissect $*"
}

# count FILE FILTER: the number of packets
count()
{
	packets "$1" "$2" frame.number | wc -l
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

# field NAME: its value from each line of name=value words on standard input
field()
{
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

# Is this the lab in virtual time? Results are exact there. In real time (the debug flavour, a
# user's machine) tests judge only what does not depend on the machine's speed.
virtual()
{
	[ "${LOWQ_LAB:-}" = virtual ]
}

has_accecn()
{
	[ -e /proc/sys/net/ipv4/tcp_ecn_option ]
}

needs_accecn()
{
	has_accecn || skip "this kernel has no Accurate ECN"
}

needs_virtual()
{
	virtual || skip "judged in virtual time, where results are exact"
}
