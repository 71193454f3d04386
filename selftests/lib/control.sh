# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The congestion control under test: its module, its parameters, and tests that all controls
# have. Part of lib.sh.

# default_control NAME: makes it the default of this and of new namespaces, until teardown. A
# restricted control can be the default of the first namespace only.
default_control()
{
	[ "${LOWQ_LAB:-}" ] || skip "changes the machine's default control"
	[ -n "${CONTROL_BEFORE:-}" ] || CONTROL_BEFORE=$(sysctl -n net.ipv4.tcp_congestion_control)
	sysctl -qw net.ipv4.tcp_congestion_control="$1" || fail "cannot make $1 the default"
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
	local i users

	for ((i = 0; i < 300; i++)); do
		[ -d "/sys/module/$MODULE" ] || return 0
		read -r users <"/sys/module/$MODULE/refcnt"
		[ "$users" -ne 0 ] || ! modprobe -r "$MODULE" 2>/dev/null || return 0
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
	local p file old

	for p; do
		file=$PARAM/${p%%=*}
		read -r old <"$file"
		CHANGED=("$file=$old" "${CHANGED[@]}")
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
	local p name old now

	dmesg -C
	for p; do
		name=${p%%=*}
		read -r old <"$PARAM/$name"
		! echo "${p#*=}" 2>/dev/null >"$PARAM/$name" || fail "$p was accepted"
		read -r now <"$PARAM/$name"
		expect "$name after a refused '$p'" "$now" = "$old"
		[[ $(dmesg -c) = *"$name="*" refused"* ]] || fail "no reason in the log for $p"
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

# outlived [NAME=VALUE...]: a connection that has left the control outlives its module, which is
# loaded again with these parameters; IPv4 and IPv6
outlived()
{
	local to

	[ $# -eq 0 ] || load "$@"
	accecn_dumbbell 1 1ms
	sink cubic
	for to in 10.0.0.1 fd00:0::1; do
		client "$to" connect cc=cubic "run=until modprobe -r $MODULE; do sleep 0.2; done" send=200000 acked \
			"run=modprobe $MODULE $*" "cc=$CC" send=200000 acked cc=cubic send=200000 acked info
		expect "control, $to" "$(field cc <"$TMP/client")" = cubic
	done
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
	in_ns "${FROM:-h1}" timeout 300 python3 "$LIB/talk.py" to "$1" --close "cc=$CC" "${@:2}" \
		>"$TMP/client" || fail "talk.py to $*"
}

# client_without_options STEP...: client to r, which sends no more AccECN options from these steps on: the
# ACKs of a segment are lost, for less than two timeouts, and a Linux receiver ends its options when data arrives twice again
client_without_options()
{
	local netem="tc -n ${NSP}r qdisc change dev eth0 root netem limit 100000 loss"

	in_ns r tc qdisc replace dev eth0 root netem limit 100000
	client 10.0.0.1 send=50000 acked "run=$netem 100%" send=1448 sleep=0.5 "run=$netem 0%" acked "$@"
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
	OFFLOADS=1 accecn_dumbbell 1 1ms
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

# lost_again EVENT [MODE OUTAGE]: a flow whose retransmissions after timeouts are lost, too. The stack changes
# from CA_Loss to Recovery at least once, and each time EVENT, a reduction for loss, follows, unless the
# event MODE has said that the connection is Reno now. OUTAGE is 0.3 seconds. RTT 10 ms.
lost_again()
{
	local i reno

	sink "$CC"
	trace_on "$1" ${2:+"$2"} tcp/tcp_cong_state_set
	for i in 1 2 3 4 5 6 7 8; do
		client 10.0.0.1 send=300000 "$(change loss 100%)" \
			send=100000 sleep="${3:-0.3}" "$(change loss 25%)" \
			sleep=1 "$(change loss 0%)" send=200000 acked
	done
	trace_off "$TMP/trace"
	reno=$(sed -n 's/.*sport=\([0-9]*\) .*mode=reno.*/\1/p' "$TMP/trace" | sort -u | paste -sd'|')
	grep -vE "sport=(${reno:-none}) " "$TMP/trace" >"$TMP/trace.others"
	judged recovery-cuts "$TMP/trace.others"
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
		run=("$LIB/sock_ops.py" "$CC") first=connect
	fi
	capture h1 eth0 "$TMP/early.pcap" tcp
	in_ns h1 timeout 60 "${run[@]}" python3 "$LIB/talk.py" to 10.0.0.1 --close "$first" send=300000 acked \
		>"$TMP/client" || fail "chosen early, $1"
	stop_captures
	expect "control chosen early, $1, tcp_ecn $2 to $3" "$(field cc <"$TMP/client")" = "$4"
}

# syn_dropped: where a path drops SYNs that are ECT, a connection is made without ECN, IPv4 and IPv6.
# Over a dumbbell.
syn_dropped()
{
	local to

	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp tcp_flags 0x2/0x12 ip_tos 2/3 action drop
	in_ns sw tc filter add dev egress egress protocol ipv6 flower ip_proto tcp tcp_flags 0x2/0x12 ip_tos 2/3 action drop
	serve r --cc "$CC"
	for to in 10.0.0.1 fd00:0::1; do
		capture h1 eth0 "$TMP/h.pcap" 'tcp dst port 5201 or ip6'
		TO=$to send --size 100k
		stop_captures
		expect "control, to $to" "$(flow_field cc)" = "${CC}_reno"
		packets "$TMP/h.pcap" 'tcp.dstport == 5201' tcp.flags.syn ip.dsfield.ecn ipv6.tclass.ecn |
			awk '{ print $1, $2 + $3 }' >"$TMP/h"
		expect "SYNs to $to" "$(awk '$1 { printf "%s", $2 }' "$TMP/h")" = 20
		expect "ECT packets after the first SYN, to $to" "$(awk 'NR > 1 && $2' "$TMP/h" | wc -l)" -eq 0
	done
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

# zero_ace DEV [flower MATCH...]: clears AE, CWR and ECE in packets that leave sw there
zero_ace()
{
	local dev=$1

	shift
	in_ns sw tc qdisc add dev "$dev" clsact 2>/dev/null
	in_ns sw tc filter add dev "$dev" egress protocol ip pref 1 flower ip_proto tcp "$@" \
		action pedit munge offset 32 u16 set 0 retain 0x01c0 pipe csum tcp || fail pedit
	in_ns sw tc filter add dev "$dev" egress protocol ipv6 pref 2 flower ip_proto tcp "$@" \
		action pedit munge offset 52 u16 set 0 retain 0x01c0 pipe csum tcp || fail pedit
}

# reno_without_ecn: with a peer without ECN, the connection uses Reno and sends Not-ECT packets
reno_without_ecn()
{
	SYSCTL=net.ipv4.tcp_ecn=0 dumbbell 1 100us
	shape 1gbit
	serve r --cc cubic
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 500k
	stop_captures
	expect "control in use" "$(flow_field cc)" = "${CC}_reno"
	expect "packets that are ECT after the handshake" "$(count "$TMP/h.pcap" 'tcp.flags.syn == 0 && tcp.dstport == 5201 && ip.dsfield.ecn != 0')" -eq 0
}

# one_lost ROLE PACKET: of a connection whose SYN, SYN-ACK or ACK is lost once, how many of the last 50 data
# packets of the client or the server, which has the control, are ECT. Over a dumbbell. PACKET marked:
# the SYN is lost, and the SYN-ACK arrives marked
one_lost()
{
	local flags dev=egress

	[ "$1" = client ] || dev=p1
	case $2 in
	syn | marked) flags='tcp flags & (syn | ack) == syn' ;;
	synack) flags='tcp flags & (syn | ack) == syn | ack' ;;
	ack) flags='tcp flags & (syn | ack) == ack meta length < 80' ;;
	esac
	in_ns sw nft -f - <<-END || skip "no nft"
		table ip t {
			chain f {
				type filter hook forward priority 0
				$flags limit rate 1/hour burst 1 packets counter drop
				$([ "$2" != marked ] || echo "tcp flags & (syn | ack) == syn | ack ip ecn set ce")
			}
		}
	END
	serve r --cc "$([ "$1" = server ] && echo "$CC" || echo cubic)"
	capture sw "$dev" "$TMP/lost.pcap" tcp
	if [ "$1" = server ]; then
		in_ns h1 flowgen long --pull --to 10.0.0.1 --cc cubic --size 300k >"$TMP/flow.json" || fail "flow failed"
	else
		send --size 300k
	fi
	stop_captures
	expect "$2 packets lost" "$(in_ns sw nft list table ip t | grep -o 'packets 1 bytes' | wc -l)" -eq 1
	in_ns sw nft delete table ip t
	kill_in "${NSP}r" TERM
	wait_until eval '! listening r 5201'
	packets "$TMP/lost.pcap" 'tcp.len > 500' ip.dsfield.ecn | tail -n 50 | grep -vc 0
}

# handshake_lost: one packet of the handshake is lost by chance: ECN stays in use, in both roles. (Where the
# stack retransmits a lost SYN-ACK twice, for the client's SYN and by its own timer, it gives up ECN.)
handshake_lost()
{
	local lost all=(client\ {syn,synack,ack,marked} server\ {syn,ack})

	[ ! "$SERIES" ] || all+=("server synack")
	accecn_dumbbell 1 1ms
	for lost in "${all[@]}"; do
		# shellcheck disable=SC2086 # two words
		expect "ECT packets of 50, role and loss: $lost" "$(one_lost $lost)" -eq 50
	done
}

# connected_again: a socket whose peer has no ECN falls back; connected again to a peer that has it, it has
# the control again
connected_again()
{
	local ecn=1

	! has_accecn || ecn=3
	SYSCTL=net.ipv4.tcp_ecn=0 dumbbell 1 1ms
	sink cubic
	client 10.0.0.1 send=20000 acked control=before \
		"run=sysctl -qw net.ipv4.tcp_ecn=$ecn; ip netns exec ${NSP}r sysctl -qw net.ipv4.tcp_ecn=$ecn" \
		reconnect send=20000 acked
	expect "control before and after" "$(field before <"$TMP/client") $(field cc <"$TMP/client")" = "${CC}_reno $CC"
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

# clean_is_not_ect: what arrives at r over a dumbbell that marks 5 % of the packets is marked or Not-ECT
clean_is_not_ect()
{
	lossy loss 5% ecn
	in_ns r tc qdisc add dev eth0 clsact
	in_ns r tc filter add dev eth0 ingress protocol ip pref 1 flower ip_proto tcp ip_tos 2/3 \
		action pedit munge offset 1 u8 set 0 retain 0x03 pipe csum ip4h || fail pedit
	in_ns r tc filter add dev eth0 ingress protocol ipv6 pref 2 flower ip_proto tcp ip_tos 2/3 \
		action pedit munge offset 1 u8 set 0 retain 0x30 || fail pedit
}

# exactly_echoed HOST DEVICE SIZE MOST: r acknowledges SIZE bytes, MOST packets at once at most, and the ECE
# of its ACKs is the CE of what they acknowledge, as a capture of DEVICE at HOST shows
exactly_echoed()
{
	serve r --cc "$CC"
	capture "$1" "$2" "$TMP/r.pcap" tcp
	send --size "$3"
	judge_echo "$4"
}

# judge_echo MOST: so does the capture that runs
judge_echo()
{
	stop_captures
	judged acks "$TMP/r.pcap" "$1"
	expect "changes of mark" "$(field changes <"$TMP/judged")" -ge 50
	expect "ACKs that cover clean and marked packets" "$(field mixed <"$TMP/judged")" -eq 0
	expect "ACKs whose ECE is not the packets' CE" "$(field wrong <"$TMP/judged")" -eq 0
}

# needs_series: skips the test unless the kernel has the patches of the stack that docs/upstream.md
# describes; SERIES=1 says so
SERIES=${SERIES:-}
needs_series()
{
	[ "$SERIES" ] || skip "the stack lacks the patches of docs/upstream.md (SERIES=1 if it has them)"
}
