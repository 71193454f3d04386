#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Situations that connections meet in real networks, each with every control and compared with
# Reno and CUBIC. A cell, one control in one situation, fails if it has more timeouts than they
# have, discards by PAWS, SACK reneging, a goodput below 0.8 of theirs, a kernel warning, or
# ECN fields that the control does not use (world.py). Where a control's task is to be slower, or
# a situation takes ECN away from it, the test says so with the reason.
# FULL=1 adds IPv6 inside IPv4 and IPv4 inside IPv6 to the tunnels, longer flows and more sizes.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

tc_has_int || skip_all "tc has no q_int.so (see TC_LIB_DIR)"

CONTROLS=()
for control in dctcp_ref ldcp prague hpccpp; do
	modprobe "tcp_$control" 2>/dev/null && CONTROLS+=("$control")
done
[ ${#CONTROLS[@]} -gt 0 ] || skip_all "none of the modules"
modprobe -a int_reflector sch_int 2>/dev/null
# HPCC++ starts at its host's rate (draft 5)
echo 100 2>/dev/null >/sys/module/tcp_hpccpp/parameters/line_rate_mbps
virtual || skip_all "judged in virtual time, where results are exact"

# LDCP grows by 1/4 packet per RTT after its first window (draft 2.3), Reno and CUBIC by four times
# that or more. Where a flow does not start with that window, or has lost part of it, LDCP needs
# up to four times as long.
SLOW_LDCP=(--yields=ldcp=0.25)

# cells [OPTION...] STEP...: runs and judges a situation (world.py --help). An option and its value
# are one word. The results are appended to the file CELLS, too.
cells()
{
	local options=()

	while [[ ${1:-} == --* ]]; do
		options+=("$1")
		shift
	done
	python3 "$LIB/world.py" --ns "$NSP" "${options[@]}" "${CONTROLS[@]}" -- "$@" | tee -a "${CELLS:-/dev/null}"
	[ "${PIPESTATUS[0]}" -eq 0 ] || fail "$(grep -c FAULT "$TMP/log") faults, see above"
}

# path [QUEUE]: three hosts (h1, h2, h3), which all tests share, because building it takes
# seconds; what a test may have changed is reset. 100 Mb/s and 5 ms are a BDP of 42 packets. The
# bottleneck is a node of HPCC++; QUEUE is its queue, instead of one that never marks or drops.
# SO_PRIORITY (the step fate=) decides about packets that leave h1: 0 pass, 1 are lost, 2 are
# late by 18 ms, 3 are marked, and of 4 a hundredth is late by 1 ms.
path()
{
	[ -e "/run/netns/${NSP}sw" ] || build_path
	tc -n "${NSP}sw" -force -batch - 2>/dev/null <<-END || true
		qdisc del dev egress root
		qdisc replace dev p1 root netem limit 1000000 delay 5ms
	END
	tc -n "${NSP}sw" -batch - <<-END || fail "no bottleneck"
		qdisc add dev egress root handle 1: int rate 100mbit
		qdisc add dev egress parent 1:1 handle 2: ${LONG_LINK:-htb default 1 direct_qlen 100000}
		${LONG_LINK:+#}class add dev egress parent 2: classid 2:1 htb rate 100mbit burst 1514 cburst 1514 quantum 1514
		${1:+qdisc add dev egress parent 2:1 handle 3: $1}
	END
}

# marks every ECT packet that has waited for longer than 1 ms
MARKING="fq_codel ce_threshold 1ms"

build_path()
{
	local host

	dumbbell 3 5ms
	tc -n "${NSP}h1" -batch - <<-END || fail "no fates"
		qdisc add dev eth0 root handle 1: prio bands 5 priomap 0 1 2 3 4 0 0 0 0 0 0 0 0 0 0 0
		qdisc add dev eth0 parent 1:2 netem limit 100000 loss 100%
		qdisc add dev eth0 parent 1:3 netem limit 100000 delay 18ms
		qdisc add dev eth0 parent 1:4 netem limit 100000 loss 100% ecn
		qdisc add dev eth0 parent 1:5 netem limit 100000 delay 1ms reorder 99%
	END
	# LDCP's initial window is the BDP: its sockets have the mark 42 (world.py)
	for host in "h1 1" "r 0"; do
		ip -n "$NSP${host% *}" rule add fwmark 42 table 42
		ip -n "$NSP${host% *}" -6 rule add fwmark 42 table 42
		ip -n "$NSP${host% *}" -batch - <<-END || fail "no routes for LDCP"
			route add default via 10.0.${host#* }.254 table 42 initcwnd 42
			route add default via fd00:${host#* }::254 table 42 initcwnd 42
		END
	done
}

# The path stays until the end of the script.
eval "lib_$(declare -f teardown)"
teardown() { :; }
trap lib_teardown EXIT

# --- ordinary traffic --------------------------------------------------------

plain()
{
	path "$MARKING"
	# the first mark halves the window of Prague and DCTCP; Reno and CUBIC see no marks
	cells --sees-marks --yields=dctcp_ref=0.7 --yields=prague=0.7 --way=v4 --way=v6,to=fd00:0::1 up="${FULL:+1}2000000" acked
}
declare_test plain "" "one flow through a queue that marks; IPv4 and IPv6"

offloads()
{
	# a path of its own
	lib_teardown
	OFFLOADS=1 path
	# the sender's GRO holds ACKs for 50 us
	in_ns sw ethtool -K p1 tso off
	in_ns h1 ethtool -K eth0 gro on
	in_ns h1 sh -c 'echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs; echo 50000 >/sys/class/net/eth0/gro_flush_timeout'
	cells up=2000000 acked
	lib_teardown
}
declare_test offloads "" "TSO, GRO and coalesced ACKs"

two_way()
{
	path
	cells talk=1500000,1500000
}
declare_test two_way "L6" "data in both directions on one connection"

idle_gaps()
{
	local steps=() gap

	path
	for gap in 0.1 0.3 1 3 10 30; do
		steps+=("talk=100000,100" "sleep=$gap" "talk=300000,100000")
	done
	cells --limit=240 "${SLOW_LDCP[@]}" "${steps[@]}"
}
declare_test idle_gaps "P8" "requests and responses, idle for 0.1 to 30 s in between"

application_limited()
{
	path
	cells slowly=100,5000,0.004 up=1000000 acked
}
declare_test application_limited "" "a program that sends 10 Mb/s, then all it can"

# --- tunnels and devices -----------------------------------------------------

# device_lines VERSION LOCAL REMOTE: a tunnel per line: its name, and its options for "ip link add"
device_lines()
{
	if [ "$1" = 6 ]; then
		# without "inherit" the kernel's GRE over IPv6 copies no ECN field
		echo "gre type ip6gre local $2 remote $3 tclass inherit"
		echo "grekey type ip6gre local $2 remote $3 key 7 tclass inherit"
		echo "ip6tnl type ip6tnl mode any local $2 remote $3"
	else
		echo "gre type gre local $2 remote $3"
		echo "grekey type gre local $2 remote $3 key 7"
		echo "ipip type ipip local $2 remote $3"
		echo "sit type sit local $2 remote $3"
	fi
	echo "vxlan type vxlan id $1 local $2 remote $3 dstport 4789"
	echo "geneve type geneve id $1 remote $3"
	echo "wireguard type wireguard"
}

# make_tunnels VERSION: makes the tunnels at both ends. The N-th has 10.9.N.1 and fd09:N::1 at h1, .2
# and ::2 at r. WAYS become world.py's ways through them. Inside and outside are the same version
# of IP, except with SIT, which carries IPv6; FULL=1: all four where the tunnel carries both (IPIP
# carries IPv4).
make_tunnels()
{
	local host from to end n name options reno

	while read -r host from to end; do
		n=$((10 * $1))
		while read -r name options; do
			n=$((n + 1))
			echo "link add t$n $options"
			echo "link set t$n up"
			echo "addr add fd09:$n::$end/64 dev t$n nodad"
			echo "route add fd09:$n::/64 dev t$n table 42 initcwnd 42"
			if [ "$name" != sit ]; then
				echo "addr add 10.9.$n.$end/24 dev t$n"
				echo "route add 10.9.$n.0/24 dev t$n table 42 initcwnd 42"
			fi
			[ "$host" = h1 ] || continue
			reno=
			[ "$name" != wireguard ] || reno=,$HIDDEN
			[ "$name" = sit ] || [ "$1-${FULL:-}" = 6- ] || WAYS+=("--way=$name,to=10.9.$n.2$reno")
			[ "$name" = ipip ] || { [ "$name" != sit ] && [ "$1-${FULL:-}" = 4- ]; } || WAYS+=("--way=${name}6,to=fd09:$n::2$reno")
		done < <(device_lines "$1" "$from" "$to") >"$TMP/batch"
		ip -n "$NSP$host" -batch "$TMP/batch" || fail "no tunnels"
		wireguard "$host" "t$n" "$1" "$to"
	done < <(ends "$1")
}

# ends VERSION: a line for each end: host, its address, the other end's, last number of addresses
ends()
{
	if [ "$1" = 6 ]; then
		echo "h1 fd00:1::1 fd00:0::1 1"
		echo "r fd00:0::1 fd00:1::1 2"
	else
		echo "h1 10.0.1.1 10.0.0.1 1"
		echo "r 10.0.0.1 10.0.1.1 2"
	fi
}

# wireguard HOST DEV VERSION PEER: keys, and the peer's address
wireguard()
{
	local own=s/CyUGr1ubl7VbCUXeU1hOql8rLh8bH2J7FQvUdp/SE= to=$4
	local peer=gOlAAnt8+I9+EhwamFIqpQSpcXlBE7ObeaMGhA5AGz4=

	if [ "$1" = r ]; then
		own=uyLvDKCKqg9pa2k9sAcqcaGbCOdKyCsPtBVpl/kP5fU=
		peer=Wq6bdkEpWo09txapAtZoiaWQ1WKf6+FxCvaS4bhCpGU=
	fi
	[ "$3" = 4 ] || to="[$4]"
	in_ns "$1" wg set "$2" listen-port "5182$3" private-key <(echo "$own") \
		peer "$peer" endpoint "$to:5182$3" allowed-ips 0.0.0.0/0,::/0 || fail "no WireGuard"
}

# make_esp VERSION: ESP between h1 and r for TCP, in transport mode to port 5301, in tunnel mode to
# port 5302; two more WAYS
make_esp()
{
	local host from to end mode port key=0x0102030405060708090a0b0c0d0e0f1011121314

	while read -r host from to end; do
		for mode in transport tunnel; do
			port=5301
			[ "$mode" = transport ] || port=5302
			esp_lines "$from" "$to" "$((port + end))" out "$([ "$host" = h1 ] && echo d || echo s)"
			esp_lines "$to" "$from" "$((port + 3 - end))" in "$([ "$host" = h1 ] && echo s || echo d)"
		done >"$TMP/batch"
		ip -n "$NSP$host" -batch "$TMP/batch" || fail "no ESP"
	done < <(ends "$1")
	WAYS+=("--way=esp_transport,to=$(server "$1"),port=5301,$HIDDEN" "--way=esp_tunnel,to=$(server "$1"),port=5302,$HIDDEN")
}

# esp_lines FROM TO SPI DIRECTION SIDE: for ip, with make_esp's variables
esp_lines()
{
	echo "xfrm state add src $1 dst $2 proto esp spi $3 mode $mode reqid $port aead rfc4106(gcm(aes)) $key 128"
	echo "xfrm policy add src $1 dst $2 proto tcp ${5}port $port dir $4 tmpl src $1 dst $2 proto esp reqid $port mode $mode"
}

# server VERSION: r's address
server()
{
	[ "$1" = 6 ] && echo fd00:0::1 || echo 10.0.0.1
}

# make_devices: h2's eth0 in a VRF, to which connections bind, and containers c1 and c3 with a
# macvlan and an ipvlan on top of h1's and h3's eth0
make_devices()
{
	local n mode

	ip -n "${NSP}h2" -batch - <<-END || fail "no VRF"
		link add vrf0 type vrf table 10
		link set vrf0 up
		link set eth0 master vrf0
		addr replace fd00:2::1/64 dev eth0 nodad
		route add default via 10.0.2.254 table 10 initcwnd 42
		route add default via fd00:2::254 table 10 initcwnd 42
	END
	while read -r n mode; do
		add_ns "c$n"
		ip -n "${NSP}h$n" -batch - <<<"link add cont0 link eth0 netns ${NSP}c$n type $mode" || fail "no $mode"
		ip -n "${NSP}c$n" -batch - <<-END || fail "no $mode"
			link set cont0 up
			addr add 10.0.$n.2/24 dev cont0
			addr add fd00:$n::2/64 dev cont0 nodad
			route add default via 10.0.$n.254 initcwnd 42
			route add default via fd00:$n::254 initcwnd 42
		END
	done <<-END
		1 macvlan mode bridge
		3 ipvlan mode l2
	END
}

# By RFC 6040 the outer header has the inner one's ECN field, and marks on it reach the sender.
# HPCC++'s nodes do not see what is encrypted: there it becomes Reno (HIDDEN).
through()
{
	local to

	to=$(server "$1")
	HIDDEN=reno=hpccpp WAYS=()
	path "$MARKING"
	make_tunnels "$1"
	make_esp "$1"
	[ -e "/run/netns/${NSP}c1" ] || make_devices
	WAYS+=("--way=vrf,to=$to,host=h2,device=vrf0,wire=p2" "--way=macvlan,to=$to,host=c1" "--way=ipvlan,to=$to,host=c3,wire=p3")
	# 500 KB end before Prague and DCTCP have recovered from their first mark, which halves the window
	cells --sees-marks --yields=prague=0.5 --yields=dctcp_ref=0.5 "${WAYS[@]}" up=500000 acked
}

tunnels() { through 4; }
declare_test tunnels "P1" "GRE, IPIP, SIT, VXLAN, Geneve, WireGuard, ESP, VRF, macvlan, ipvlan over IPv4"

tunnels6() { through 6; }
declare_test tunnels6 "P1" "the same over IPv6"

# --- losses and what the stack does about them --------------------------------

tail_loss()
{
	local steps=(up=50000 acked) i

	path
	for i in 1 2 3 4 5; do
		steps+=(up=8000 fate=1 up=100 fate=0 acked)
	done
	cells --shows=TCPLossProbeRecovery "${steps[@]}"
}
declare_test tail_loss "P8 D9 L13" "the last packet of each message is lost: tail loss probes"

# The retransmission in Recovery is lost as well
lost_retransmission()
{
	path
	cells --shows=TCPLostRetransmit "${SLOW_LDCP[@]}" \
		up=100000 acked fate=1 up=1448 fate=0 up=13000 fate=1 sleep=0.0055 fate=0 acked up=100000 acked
}
declare_test lost_retransmission "P8 D9 L13" "a retransmission is lost"

# lost_of WINDOW KIND: numbers of the packets to lose, of WINDOW that leave together
lost_of()
{
	case $2 in
	all-but-the-first) seq -s, 1 "$(($1 - 1))" ;;
	all-but-the-last) seq -s, 0 "$(($1 - 2))" ;;
	every-second) seq -s, 1 2 "$(($1 - 1))" ;;
	two-and-the-second-half) echo "1,3,$(($1 / 2))-$(($1 - 1))" ;;
	esac
}

# Others' queue takes tens of RTTs: HPCC++'s first response sets a window of less than a packet, while
# most of the first window is lost. More data waits, so that a known loss needs no timeout.
lost_windows()
{
	local kind window nft="hook input priority 0; meta length > 1000 tcp dport 5299 numgen inc mod 65536"

	path
	tc -n "${NSP}sw" -batch - <<-END
		qdisc change dev egress root handle 1: int rate 10mbit
		class change dev egress parent 2: classid 2:1 htb rate 10mbit burst 1514 cburst 1514 quantum 1514
		qdisc change dev p1 root netem limit 1000000 delay 500us
	END
	echo 0 2>/dev/null >/sys/module/tcp_hpccpp/parameters/line_rate_mbps
	serve r
	nsenter --net="/run/netns/${NSP}h2" flowgen long --to 10.0.0.1 --cc reno --sndbuf 60k --duration 1000s >/dev/null &
	for window in ${FULL:+2 3 5 6 7 9 10 11} 4 8 12; do
		ip -n "${NSP}h1" route change default via 10.0.1.254 initcwnd "$window"
		for kind in all-but-the-first all-but-the-last every-second two-and-the-second-half; do
			[ "$window" -ge 4 ] || [ "$kind" != two-and-the-second-half ] || continue
			echo "table inet lose; flush table inet lose; table inet lose { chain c { type filter $nft { $(lost_of "$window" "$kind") } drop; }; }" >"$TMP/$kind"
			echo "$kind of $window:"
			# LDCP's first window is another one; HPCC++ gives way to the queue
			cells --ecn=off --without=ldcp --yields=hpccpp=0.05 "run=ip netns exec ${NSP}r nft -f $TMP/$kind" up=40000 acked
		done
	done
	kill $!
	in_ns r nft delete table inet lose
	ip -n "${NSP}h1" route change default via 10.0.1.254
	echo 100 2>/dev/null >/sys/module/tcp_hpccpp/parameters/line_rate_mbps
}
declare_test lost_windows "P8 D9" "most of a window is lost: no timeout that Reno and CUBIC do not have"

timeouts()
{
	local begin=(up=100000 acked fate=1) end=(fate=0 acked up=100000 acked)

	path
	echo "from Open: all packets are lost"
	cells "${SLOW_LDCP[@]}" --shows=TCPTimeouts "${begin[@]}" up=10000 sleep=0.1 "${end[@]}"
	echo "from Recovery: all packets are lost that are sent after SACKs"
	cells "${SLOW_LDCP[@]}" --shows=TCPSackRecoveryFail "${begin[@]}" up=1448 fate=0 up=10136 fate=1 sleep=0.15 "${end[@]}"
	echo "from Loss: the first timeout's retransmission is lost"
	# two timeouts in a row look like a path that drops ECT: Prague is Reno from then on
	cells --without=prague "${SLOW_LDCP[@]}" --shows=TCPTimeouts "${begin[@]}" up=10000 sleep=0.5 "${end[@]}"
	echo "from CWR: marks first, then all is lost; HPCC++ has no ECN"
	cells --without=hpccpp --becomes-reno=prague "${SLOW_LDCP[@]}" --shows=TCPTimeouts --plain-ecn=1 --ecn=off up=100000 acked fate=3 up=30000 sleep=0.004 fate=1 up=30000 sleep=0.4 "${end[@]}"
	echo "from Disorder: one SACK, and the probe is lost; kernels with RACK only are in Recovery by then"
	cells --without=prague --sysctl=h1:tcp_recovery=0 "${SLOW_LDCP[@]}" --shows=TCPSackFailures,TCPSackRecoveryFail "${begin[@]}" up=1448 fate=0 up=1448 fate=1 sleep=0.3 "${end[@]}"
}
declare_test timeouts "P8 D9 L13" "timeouts in Open, Disorder, CWR, Recovery and Loss"

# The late packet arrives while its retransmission is on the way: timestamps show it
undo()
{
	LONG_LINK="pfifo limit 100000" path
	# on the way back: HPCC++ would take packets under way behind the stamps for a queue
	in_ns sw tc qdisc replace dev p1 root netem limit 1000000 delay 25ms
	# HPCC++ waits for the telemetry of an RTT with each step
	cells --yields=hpccpp=0.7 --shows=TCPFullUndo,TCPPartialUndo "${SLOW_LDCP[@]}" \
		up=450000 acked fate=2 up=1448 fate=0 up=100000 acked sleep=0.1 up=2000000 acked
}
declare_test undo "P8 L13" "a packet is late: its loss is undone"

reordering()
{
	path
	cells fate=4 up=2000000 acked
}
declare_test reordering "" "1 % of the packets are late by 1 ms"

# --- the control changes, or comes early ----------------------------------------

switches()
{
	local steps=(up=100000 acked) other

	path
	cells --ecn=off pairs=100000 acked
	for other in reno cubic "${CONTROLS[@]}"; do
		steps+=(fate=1 up=1448 fate=0 up=10136 sleep=0.0055 "cc=$other" up=14480 acked
			fate=1 up=1448 fate=0 up=10136 sleep=0.0055 "cc=%" up=100000 acked)
	done
	# losses of an idle path are those of a bottleneck that does not stamp: HPCC++ returns after a while
	steps+=(up=6000000 acked)
	echo "while losses are repaired:"
	cells --ecn=off --share=0.5 "${steps[@]}"
}
declare_test switches "" "the control changes mid-flow, from each to each, also while losses are repaired"

early_choice()
{
	path
	# the SYN leaves before the control is chosen: only tcp_ecn decides about ECN
	cells connect-cc=% up=500000 acked
}
declare_test early_choice "D13 L13" "the control is chosen between SYN and SYN-ACK"

# The server sends
listener()
{
	path
	echo "from the listener:"
	cells "${SLOW_LDCP[@]}" --ecn=server talk=100,1000000
	echo "set after accept(); the way to h1 has no node of HPCC++:"
	cells --becomes-reno=hpccpp "${SLOW_LDCP[@]}" --child --ecn=off talk=100,1000000
}
declare_test listener "" "the server's control, from its listener or set after accept()"

# --- handshakes ------------------------------------------------------------------

fast_open()
{
	path
	# the kernel creates a Fast Open child before it records the SYN-ACK's ECN field; the client's
	# feedback about that field then looks wrong to it, and the server sends Not-ECT
	cells --sysctl=h1:tcp_fastopen=3 --sysctl=r:tcp_fastopen=3 --ecn=client --fastopen --shows=TCPFastOpenActive fastopen=1000 up=500000 acked
}
declare_test fast_open "L11" "Fast Open"

syn_cookies()
{
	path
	cells --sysctl=r:tcp_syncookies=2 --shows=SyncookiesRecv up=500000 acked
}
declare_test syn_cookies "" "SYN cookies"

repair()
{
	path
	# TCP_REPAIR does not restore ECN. HPCC++ learns the path again.
	cells --becomes-reno=dctcp_ref,ldcp,prague --ecn=off "${SLOW_LDCP[@]}" --yields=hpccpp=0.7 \
		up=200000 acked restore up=300000 acked
}
declare_test repair "" "a socket is checkpointed, and another one continues the connection (TCP_REPAIR)"

# --- sizes -------------------------------------------------------------------------

mtu_probe()
{
	path
	cells "${SLOW_LDCP[@]}" --sysctl=h1:tcp_mtu_probing=2 --sysctl=h1:tcp_base_mss=512 --shows=TCPMTUPSuccess up=500000 acked
}
declare_test mtu_probe "L13" "probes of the path's MTU"

mtu_of_all()
{
	local dev

	for dev in h1:eth0 sw:p1 sw:egress r:eth0; do
		ip -n "$NSP${dev%:*}" link set "${dev#*:}" mtu "$1"
	done
}

sizes()
{
	local mss TCP_MAXSEG=2

	path
	mtu_of_all 9100
	for mss in 100 9000 ${FULL:+536 4000}; do
		echo "MSS $mss:"
		cells "${SLOW_LDCP[@]}" "set=6,$TCP_MAXSEG,$mss" up=$((mss * 1000)) acked
	done
	mtu_of_all 1500
}
declare_test sizes "" "MSS 100 and 9000 (FULL: 536 and 4000)"

small_window()
{
	path
	cells --sysctl=r:tcp_rmem="4096 12000 12000" up=500000 acked
}
declare_test small_window "" "the receiver's window is four packets"

# --- the path changes --------------------------------------------------------------

path_switch()
{
	local change="tc -n ${NSP}sw qdisc change dev p1 root netem limit 1000000 delay"	# path resets it

	path
	# HPCC++ follows a path that gets longer within 100 RTTs, and LDCP grows by 1/4 packet per RTT
	cells --yields=hpccpp=0.5 --yields=ldcp=0.5 up=500000 "run=$change 25ms" up=1000000 acked "run=$change 5ms" up=1000000 acked
}
declare_test path_switch "" "the RTT changes from 5 to 25 ms and back"

no_options()
{
	needs_accecn
	path
	cells --sysctl=r:tcp_ecn_option=2 sysctl=r:tcp_ecn_option=2 up=300000 sysctl=r:tcp_ecn_option=0 up=700000 acked
}
declare_test no_options "" "the peer stops sending AccECN options"

# --- above, around and inside of the segments ------------------------------------------

mptcp()
{
	local n

	[ -e /proc/sys/net/mptcp/enabled ] || skip "the kernel has no MPTCP"
	path
	for n in h1 r; do
		ip -n "$NSP$n" mptcp limits set subflows 2 || fail "no MPTCP"
	done
	ip -n "${NSP}h1" -batch - <<-END || fail "no second address"
		addr add 10.0.1.9/24 dev eth0
		mptcp endpoint add 10.0.1.9 dev eth0 subflow
	END
	cells --with=mptcp --shows=MPTcpExtMPJoinSynAckRx up=1000000 acked
	ip -n "${NSP}h1" -batch - <<-END
		mptcp endpoint flush
		addr del 10.0.1.9/24 dev eth0
	END
}
declare_test mptcp "" "two subflows of MPTCP"

tls()
{
	[ -e /proc/net/tls_stat ] || skip "the kernel has no TLS"
	path
	cells --with=tls sendfile=1000000 acked
}
declare_test tls "" "TLS in the kernel, sendfile()"

signatures()
{
	path
	# HPCC++'s messages are not signed
	cells --with=md5 --becomes-reno=hpccpp up=500000 acked
	! grep -q TCPAOGood /proc/net/netstat ||
		cells --with=ao --becomes-reno=hpccpp --shows=TCPAOGood up=500000 acked
}
declare_test signatures "" "segments signed with MD5 (RFC 2385) and by TCP-AO (RFC 5925)"

least_ttl()
{
	path
	# int_reflector answers with the host's TTL
	cells --with=minttl --sysctl=h1:ip_default_ttl=255 --sysctl=r:ip_default_ttl=255 up=500000 acked
}
declare_test least_ttl "" "sockets that take segments from one hop away only (IP_MINTTL, RFC 5082)"

# --- what handles packets between the socket and the wire ---------------------------------

# A program, such as an intrusion detection system, holds what both hosts send and receive, HPCC++'s messages
# too: later hooks then run in a process.
held()
{
	local host programs=()

	path "$MARKING"
	for host in h1 r; do
		in_ns "$host" nft -f - <<-END || skip "the kernel or nft has no NFQUEUE"
			table inet held {
				chain in { type filter hook prerouting priority -301; meta l4proto tcp queue num 7; }
				chain out { type filter hook output priority 0; meta l4proto tcp queue num 7; }
			}
		END
		nsenter --net="/run/netns/$NSP$host" python3 -S "$LIB/nfqueue.py" 7 >"$TMP/held-$host" 2>&1 &
		programs+=($!)
	done
	wait_until grep -q ready "$TMP/held-h1"
	wait_until grep -q ready "$TMP/held-r"
	cells --sees-marks --yields=dctcp_ref=0.5 --yields=prague=0.5 --way=v4 --way=v6,to=fd00:0::1 up=500000 acked
	kill "${programs[@]}"
	wait "${programs[@]}"
	for host in h1 r; do
		in_ns "$host" nft delete table inet held
		expect "packets that $host's program has accepted" "$(tail -n 1 "$TMP/held-$host")" -ge 5000
	done
}
declare_test held "" "a program accepts each packet (NFQUEUE), at both hosts, IPv4 and IPv6"

# Routes say what packets are put into (LWTUNNEL); the devices have no other end of their own.
lightweight()
{
	local host from to end name n version net WAYS=()

	path "$MARKING"
	while read -r n name version net; do
		while read -r host from to end; do
			ip -n "$NSP$host" -batch - <<-LINES || fail "no route that encapsulates, by $name"
				link add lw$n type $name external
				link set lw$n mtu 1400 up
				addr add $net$end dev lw$n
				route add $net$((3 - end)) encap ip${version#4} src $from dst $to dev lw$n
				route add $net$((3 - end)) encap ip${version#4} src $from dst $to dev lw$n table 42 initcwnd 42
			LINES
		done < <(ends "$version")
		WAYS+=("--way=$name,to=${net}2")
	done <<-END
		1 gre 4 10.8.1.
		2 ipip 4 10.8.2.
		3 vxlan 4 10.8.3.
		4 ip6tnl 6 fd08::
	END
	cells --sees-marks --yields=dctcp_ref=0.5 --yields=prague=0.5 "${WAYS[@]}" up=500000 acked
}
declare_test lightweight "" "routes that encapsulate (LWTUNNEL, encap ip and ip6): GRE, IPIP, VXLAN and IPv6 in IPv6"

# HPCC++'s messages are not translated: it becomes Reno
translated()
{
	path "$MARKING"
	in_ns sw nft -f - <<-END || skip "the kernel or nft has no NAT"
		table inet translated {
			chain to { type nat hook prerouting priority dstnat; ip daddr 10.0.1.254 tcp dport 5299 dnat ip to 10.0.0.1; }
			chain from { type nat hook postrouting priority srcnat; oifname "egress" masquerade; }
		}
	END
	cells --sees-marks --yields=dctcp_ref=0.5 --yields=prague=0.5 --becomes-reno=hpccpp \
		--way=snat --way=snat6,to=fd00:0::1 --way=dnat,to=10.0.1.254 up=500000 acked
	in_ns sw nft delete table inet translated
}
declare_test translated "" "nftables' NAT between the hosts: a source that is translated, IPv4 and IPv6, and a published port"

# --- receivers that no stack is -----------------------------------------------------

# scripted SITUATION: each control sends to a program that answers as TCP (scripted.py --help)
scripted()
{
	[ -c /dev/net/tun ] || skip "no TUN devices"
	path
	in_ns h1 python3 "$LIB/scripted.py" "$1" "${CONTROLS[@]}" || fail "$(grep -c FAULT "$TMP/log") faults, see above"
}

ack_division()
{
	scripted division
}
declare_test ack_division "" "a receiver that acknowledges a segment in eight pieces gets no more for that"

reneging()
{
	scripted reneging
}
declare_test reneging "" "a receiver drops what it has reported by SACK: all data arrive"

odd_ace()
{
	needs_accecn
	scripted ace
}
declare_test odd_ace "" "ACE is at random for five round trips: the window grows again"

options_come_and_go()
{
	needs_accecn
	scripted options
}
declare_test options_come_and_go "" "AccECN options come and go, of all lengths and both orders: each mark counts once"

ce_in_handshake()
{
	scripted handshake
}
declare_test ce_in_handshake "" "SYN and SYN-ACK arrive with CE: that is reported, and the window is as without"

run_tests "$@"
