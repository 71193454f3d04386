#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Situations that connections meet in real networks, each with every control and compared with
# Reno and CUBIC. A cell, one control in one situation, fails if it has more timeouts than they
# have, discards by PAWS, SACK reneging, a goodput below 0.8 of theirs, a kernel warning, or
# ECN fields that the control does not use. FULL=1 adds longer runs and all pairs of controls.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=lib_world.sh
. "$SELFTESTS/lib_world.sh"

YARDSTICK=(reno cubic)
SERVER=()	# options of the server
CONTROLS=()
for control in dctcp_ref ldcp prague hpccpp; do
	modprobe "tcp_$control" 2>/dev/null && CONTROLS+=("$control")
done
[ ${#CONTROLS[@]} -gt 0 ] || skip_all "none of the modules"
virtual || skip_all "judged in virtual time, where results are exact"

# ecn_of CONTROL: the value of tcp_ecn at both hosts with which its handshake negotiates ECN
ecn_of()
{
	case $1 in
	prague) has_accecn && echo 3 || echo 1 ;;
	dctcp_ref|ldcp) echo 1 ;;
	*) echo "${YARDSTICK_ECN:-2}" ;;
	esac
}

# ecn_table CONTROL: checks IP's counters at the receiver: packets must have arrived with the
# ECN field that the control sends, and none with another. Prints the fault, if any.
ecn_table()
{
	local ect0 ect1 ce

	ect0=$(($(counted r IpExtInECT0Pkts) + $(counted r Ip6InECT0Pkts)))
	ect1=$(($(counted r IpExtInECT1Pkts) + $(counted r Ip6InECT1Pkts)))
	ce=$(($(counted r IpExtInCEPkts) + $(counted r Ip6InCEPkts)))
	case $1 in
	dctcp_ref|ldcp) [ "$ect1" -eq 0 ] && [ $((ect0 + ce)) -gt 0 ] ;;
	hpccpp) [ $((ect0 + ce)) -eq 0 ] ;;	# its probes are ECT(1)
	prague) ! has_accecn || { [ "$ect0" -eq 0 ] && [ $((ect1 + ce)) -gt 0 ]; } ;;
	*) [ $((ect0 + ect1 + ce)) -eq 0 ] ;;
	esac || echo "ECN fields ECT(0) $ect0, ECT(1) $ect1, CE $ce"
}

# measure CONTROL FUNCTION: runs one connection with CONTROL and appends a line of results to
# $TMP/cells
measure()
{
	local window=10

	every sysctl -qw net.ipv4.tcp_ecn="$(ecn_of "$1")"
	# LDCP's initial window is the path's BDP
	[ "$1" != ldcp ] || window=43
	ip -n "${NSP}h1" route replace default via 10.0.1.254 initcwnd "$window"
	ip -n "${NSP}h1" -6 route replace default via fd00:1::254 initcwnd "$window"
	# start a new server: a listener whose control has no ECN refuses it to a SYN that is ECT
	ip netns pids "${NSP}r" | xargs -r kill
	wait_until eval '! listening r 5299'
	talk_server r --cc "$1" "${SERVER[@]}"
	sleep 0.1	# until the previous connection has ended
	counters
	"$2" "$1"
	printf '%s cc=%s seconds=%s timeouts=%s paws=%s reneging=%s retransmitted=%s %s\n' "$1" \
		"$(field cc <"$TMP/talk")" "$(field seconds <"$TMP/talk")" \
		"$(($(counted h1 TcpExtTCPTimeouts) + $(counted r TcpExtTCPTimeouts)))" \
		"$(($(counted h1 TcpExtPAWSEstab) + $(counted r TcpExtPAWSEstab)))" \
		"$(($(counted h1 TcpExtTCPSACKReneging) + $(counted r TcpExtTCPSACKReneging)))" \
		"$(counted h1 TcpRetransSegs)" \
		"$([ "${ECN_TABLE:-1}" = 0 ] || ecn_table "$1")" >>"$TMP/cells"
}

# cells FUNCTION [CONTROL...]: runs FUNCTION CONTROL for each control in the topology that the
# test has made, and judges the results
cells()
{
	local control list=("${@:2}")

	[ $# -gt 1 ] || list=("${CONTROLS[@]}")
	: >"$TMP/cells"
	dmesg -C
	for control in "${YARDSTICK[@]}" "${list[@]}"; do
		measure "$control" "$1"
	done
	cat "$TMP/cells"
	! dmesg | grep -E 'WARNING|BUG:|Oops' || fail "the kernel warned"
	python3 "$SELFTESTS/judge.py" cells "$TMP/cells" --yardstick "${YARDSTICK[*]}" \
		--share "${SHARE:-0.8}" || fail "cells: see above"
}

# The topology of most situations
path()
{
	dumbbell 1 5ms
	shape 100mbit
}

# --- ordinary traffic --------------------------------------------------------

bulk() { talk cc="$1" up=$((${FULL:+10}0 + 2))000000 acked; }

plain()
{
	path
	cells bulk
}
declare_test plain "" "one flow"

offloads()
{
	OFFLOADS=1 path
	# the sender's GRO holds ACKs for 50 us
	in_ns sw ethtool -K p1 tso off
	in_ns h1 ethtool -K eth0 gro on
	in_ns h1 sh -c 'echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs; echo 50000 >/sys/class/net/eth0/gro_flush_timeout'
	cells bulk
}
declare_test offloads "" "TSO, GRO and coalesced ACKs"

both_ways() { talk cc="$1" "talk=1500000,1500000"; }

two_way()
{
	path
	cells both_ways
}
declare_test two_way "" "data in both directions on one connection"

requests()
{
	local steps=() gap

	for gap in 0.1 0.3 1 3 ${FULL:+10 30}; do
		steps+=("talk=100000,100" "sleep=$gap" "talk=300000,100000")
	done
	talk cc="$1" "${steps[@]}"
}

idle_gaps()
{
	path
	cells requests
}
declare_test idle_gaps "" "requests and responses, idle for 0.1 to 3 s in between (FULL: 30 s)"

slow_program()
{
	local steps=() i

	for ((i = 0; i < 100; i++)); do
		steps+=(up=5000 sleep=0.004)
	done
	talk cc="$1" "${steps[@]}" up=1000000 acked
}

application_limited()
{
	path
	cells slow_program
}
declare_test application_limited "" "a program that sends 10 Mb/s, then all it can"

# --- tunnels and devices -----------------------------------------------------

# Runs the cells through each tunnel that this kernel supports, with IPv4 outside, or IPv6 if
# V6 is 1
through_tunnels()
{
	local kind made=0

	for kind in "${TUNNELS[@]}"; do
		path
		if tunnel "$kind"; then
			echo "$kind, IPv$([ "${V6:-}" ] && echo 6 || echo 4):"
			made=$((made + 1))
			cells short_bulk
		else
			echo "$kind: $(head -n1 "$TMP/tunnel")"
		fi
		teardown
	done
	[ "$made" -gt 0 ] || skip "this kernel has none of these devices"
}

tunnels()
{
	through_tunnels
}
declare_test tunnels "" "GRE, IPIP, SIT, VXLAN, Geneve, ESP, WireGuard, VRF, IPVLAN, macvlan over IPv4"

tunnels6()
{
	V6=1 through_tunnels
}
declare_test tunnels6 "" "the same over IPv6"

# --- losses and what the stack does about them --------------------------------

tails()
{
	local steps=(cc="$1" up=50000 acked) i

	for i in 1 2 3 4 5; do
		steps+=(up=8000 fate=1 up=100 fate=0 acked)
	done
	talk "${steps[@]}"
}

tail_loss()
{
	path
	fates h1 eth0
	cells tails
}
declare_test tail_loss "" "the last packet of each message is lost: tail loss probes"

# In Recovery: the retransmission is lost as well
lost_again() { talk cc="$1" up=100000 acked fate=1 up=1448 fate=0 up=13000 fate=1 sleep=0.0055 fate=0 acked up=100000 acked; }

lost_retransmission()
{
	path
	fates h1 eth0
	cells lost_again
}
declare_test lost_retransmission "" "a retransmission is lost"

# A timeout in Open: all packets are lost. In Recovery: all packets sent after SACKs are lost.
# In Loss: the retransmission of the first timeout is lost.
from_open() { talk cc="$1" up=100000 acked fate=1 up=10000 sleep=0.1 fate=0 acked up=100000 acked; }
from_recovery() { talk cc="$1" up=100000 acked fate=1 up=1448 fate=0 up=10136 fate=1 sleep=0.15 fate=0 acked up=100000 acked; }
from_loss() { talk cc="$1" up=100000 acked fate=1 up=10000 sleep=0.5 fate=0 acked up=100000 acked; }

# From Disorder: one SACK, too few for Recovery, and the probe is lost as well.
from_disorder() { talk cc="$1" up=100000 acked fate=1 up=1448 fate=0 up=1448 fate=1 sleep=0.3 fate=0 acked up=100000 acked; }

# From CWR: marks first, then all is lost
from_cwr()
{
	local del="tc -n ${NSP}sw qdisc del dev egress root" add="tc -n ${NSP}sw qdisc add dev egress root netem limit 100000"

	talk cc="$1" up=100000 acked "run=$del; $add loss 100% ecn" up=30000 sleep=0.004 "run=$del; $add loss 100%" \
		up=30000 sleep=0.4 "run=$del; $add" acked up=100000 acked
}

timeouts()
{
	local state

	path
	fates h1 eth0
	for state in open recovery loss; do
		echo "from $state:"
		cells "from_$state"
	done
	echo "from disorder:"
	in_ns h1 sysctl -qw net.ipv4.tcp_recovery=0
	cells from_disorder
	teardown
	echo "from CWR:"
	dumbbell 1 5ms
	in_ns sw tc qdisc add dev egress root netem limit 100000
	YARDSTICK_ECN=1 ECN_TABLE=0 cells from_cwr
}
declare_test timeouts "" "timeouts in Open, Disorder, CWR, Recovery and Loss"

late_packet() { talk cc="$1" up=100000 acked fate=2 up=1448 fate=0 up=13000 acked up=300000 acked; }

undo()
{
	path
	fates h1 eth0 15ms
	cells late_packet
}
declare_test undo "" "a packet is late: its loss is undone"

reordering()
{
	path
	in_ns h1 tc qdisc add dev eth0 root netem limit 100000 delay 1ms reorder 99%
	cells bulk
}
declare_test reordering "" "1 % of the packets are late by 1 ms"

# --- the control changes, or comes early ----------------------------------------

pairs()
{
	local steps=() other

	for other in "${YARDSTICK[@]}" "${CONTROLS[@]}"; do
		[ "$other" = "$1" ] || steps+=("cc=$other" up=100000 "cc=$1" up=100000)
	done
	talk cc="$1" "${steps[@]}" acked
}

# the same, with losses at the time of the change
lossy_pairs()
{
	local steps=() other

	for other in "${YARDSTICK[@]}" "${CONTROLS[@]}"; do
		[ "$other" = "$1" ] || steps+=(fate=1 up=1448 fate=0 up=10136 "cc=$other" up=14480
			fate=1 up=1448 fate=0 up=10136 sleep=0.0055 "cc=$1" up=100000 acked)
	done
	talk cc="$1" "${steps[@]}" acked
}

switches()
{
	path
	ECN_TABLE=0 cells pairs
	fates h1 eth0
	[ -z "${FULL:-}" ] || SHARE=0.5 ECN_TABLE=0 cells lossy_pairs
}
declare_test switches "" "the control changes mid-flow, from each to each (FULL: while losses are repaired)"

while_connecting() { talk connect-cc="$1" up=500000 acked; }

early_choice()
{
	path
	# the SYN leaves before the control is chosen: only tcp_ecn decides about ECN
	ECN_TABLE=0 cells while_connecting
}
declare_test early_choice "" "the control is chosen between SYN and SYN-ACK"

# The server sends; its control comes from the listener, or changes after accept()
from_listener() { talk cc="$1" "talk=100,1000000"; }

from_child()
{
	talk_server r --cc reno --child-cc "$1" --port 5300
	PORT=5300 talk cc="$1" "talk=100,1000000"
}

listener()
{
	dumbbell 1 5ms
	ECN_TABLE=0 cells from_listener
	ECN_TABLE=0 cells from_child
}
declare_test listener "" "the server's control, from its listener or set after accept()"

# --- handshakes ------------------------------------------------------------------

with_fast_open() { talk cc="$1" fastopen=1000 up=500000 acked; }

fast_open()
{
	dumbbell 1 5ms
	shape 100mbit
	every sysctl -qw net.ipv4.tcp_fastopen=3
	talk_server r --fastopen
	talk cc=reno fastopen=100 acked		# the cookie
	SERVER=(--fastopen)
	cells with_fast_open
}
declare_test fast_open "" "Fast Open"

short_bulk() { talk cc="$1" up=500000 acked; }

syn_cookies()
{
	path
	in_ns r sysctl -qw net.ipv4.tcp_syncookies=2 2>/dev/null || skip "no SYN cookies in this kernel"
	cells short_bulk
}
declare_test syn_cookies "" "SYN cookies"

repaired()
{
	local TCP_REPAIR=19

	talk cc="$1" up=200000 acked "set=6,$TCP_REPAIR,1" sleep=0.01 "set=6,$TCP_REPAIR,0" up=300000 acked
}

repair()
{
	path
	cells repaired
}
declare_test repair "" "a socket in TCP_REPAIR, and out of it"

# --- sizes -------------------------------------------------------------------------

mtu_probe()
{
	path
	every sysctl -qw net.ipv4.tcp_mtu_probing=2 net.ipv4.tcp_base_mss=512
	cells short_bulk
}
declare_test mtu_probe "" "probes of the path's MTU"

segments()
{
	local TCP_MAXSEG=2

	talk "set=6,$TCP_MAXSEG,$MSS" cc="$1" up=$((MSS * 1000)) acked
}

sizes()
{
	local dev

	path
	for dev in h1:eth0 sw:p1 sw:egress r:eth0; do
		ip -n "$NSP${dev%:*}" link set "${dev#*:}" mtu 9100
	done
	for MSS in 100 9000 ${FULL:+536 4000}; do
		echo "MSS $MSS:"
		cells segments
	done
}
declare_test sizes "" "MSS 100 and 9000 (FULL: 536 and 4000)"

small_window()
{
	path
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 12000 12000"
	cells short_bulk
}
declare_test small_window "" "the receiver's window is four packets"

# --- the path changes --------------------------------------------------------------

new_path()
{
	local change="ip netns exec ${NSP}sw tc qdisc change dev p1 root netem limit 1000000 delay"

	talk cc="$1" up=500000 "run=$change 25ms" up=1000000 acked "run=$change 5ms" up=1000000 acked
}

path_switch()
{
	path
	cells new_path
}
declare_test path_switch "" "the RTT changes from 5 to 25 ms and back"

# The peer stops sending AccECN options
fewer_options()
{
	in_ns r sysctl -qw net.ipv4.tcp_ecn_option=2
	talk cc="$1" up=300000 "run=ip netns exec ${NSP}r sysctl -qw net.ipv4.tcp_ecn_option=0" up=700000 acked
}

no_options()
{
	needs_accecn
	path
	cells fewer_options
}
declare_test no_options "" "the peer stops sending AccECN options"

run_tests "$@"
