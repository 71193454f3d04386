#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-check: faults that are staged on a host or on the path must be named, and healthy set-ups
# must not be called faulty.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=lib_world.sh
. "$SELFTESTS/lib_world.sh"
# shellcheck source=lib_roce.sh
. "$SELFTESTS/lib_roce.sh"

LOWQ_CHECK=${LOWQ_CHECK:-$LOWQ_ROOT/scripts/lowq-check}
[ -x "$LOWQ_CHECK" ] || LOWQ_CHECK=$(command -v lowq-check) || skip_all "lowq-check is not installed"
LOWQ_CHECK=$(readlink -f "$LOWQ_CHECK")
[ "${LOWQ_LAB:-}" ] || skip_all "loads and unloads modules"
export TC_LIB_DIR=$BIN	# tc's plugin for int
for module in tcp_dctcp tcp_dctcp_ref tcp_ldcp tcp_prague tcp_hpccpp int_reflector; do
	modprobe "$module" || skip_all "no module $module"
done

# check ARGUMENT...: runs lowq-check in h1, or in the host FROM; the result is in $TMP/check.json
# and RC
check()
{
	in_ns "${FROM:-h1}" "${AS[@]}" "$LOWQ_CHECK" --json "$@" >"$TMP/check.json" 2>"$TMP/check.err"
	RC=$?
	[ "$RC" -ne 2 ] || fail "lowq-check $*: $(cat "$TMP/check.err")"
	jq -r '.findings[] | select(.state != "fine") | "\(.state) \(.where) \(.check) [\(.fault)] \(.says)"' "$TMP/check.json"
}
AS=()

# named FAULT [TEXT]: the last check calls it wrong, with that text in what it says or in where or
# in the mend; the exit status is 1
named()
{
	expect "exit status" "$RC" -eq 1
	jq -e --arg f "$1" --arg t "${2:-}" 'any(.findings[]; .fault == $f and .state == "wrong" and
		(.mend != "") and (.where + " " + .says + " " + .mend | contains($t)))' "$TMP/check.json" >/dev/null ||
		fail "not named: $*"
}

# not_named FAULT: the last check does not call it wrong
not_named()
{
	! jq -e --arg f "$1" 'any(.findings[]; .fault == $f and .state == "wrong")' "$TMP/check.json" >/dev/null ||
		fail "'$1' is named"
}

# healthy: the last check found nothing wrong
healthy()
{
	jq -c '.findings[] | select(.state == "wrong")' "$TMP/check.json"
	expect "exit status" "$RC" -eq 0
}

# --- this host ------------------------------------------------------------------

one_host()
{
	add_ns h1
	add_ns h2
	link h1 eth0 h2 eth0
}

module_missing()
{
	one_host
	modprobe -r tcp_ldcp
	mkdir "$TMP/empty"
	# only lowq-check sees what is bound over the modules
	# shellcheck disable=SC2016 # for the inner shell
	AS=(unshare -m sh -c 'mount --bind "$0" "/lib/modules/$(uname -r)" && exec "$@"' "$TMP/empty")
	check --control ldcp
	named module-missing tcp_ldcp
	AS=()
	check --control ldcp
	named module-not-loaded "modprobe tcp_ldcp"
	modprobe tcp_ldcp
	check --control ldcp
	healthy
}
declare_test module_missing "" "module missing; module not loaded"

not_allowed()
{
	one_host
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	check --control ldcp
	named not-allowed "lowq-tc host ldcp --allow"
	check --control prague
	not_named not-allowed
	AS=()
}
declare_test not_allowed "" "a restricted control that this user may not choose"

after_handshake()
{
	dumbbell 1 100us
	sink
	in_ns h1 python3 "$SELFTESTS/talk.py" to 10.0.0.1 connect cc=dctcp_ref send=10000 sleep=30 >/dev/null &
	wait_until eval 'in_ns h1 ss -Htni state established | grep -q dctcp_ref_reno'
	check --control dctcp_ref
	named control-after-handshake 10.0.0.1
}
declare_test after_handshake "" "control set after the handshake"

ecn_sysctl()
{
	one_host
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=0
	check --control dctcp_ref
	named tcp-ecn-off "lowq-tc host dctcp_ref"
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=2
	check --control dctcp_ref
	healthy
	check --control prague
	named tcp-ecn-not-accurate "lowq-tc host prague"
	in_ns h1 "$LOWQ_TC" host prague -q
	check --control prague
	healthy
}
declare_test ecn_sysctl "" "tcp_ecn is 0 or 2"

# queue NS DEV KIND...: at the root
queue()
{
	in_ns "$1" tc qdisc replace dev "$2" root "${@:3}"
}
RED=(red limit 1000000 min 30000 max 30000 avpkt 1500 burst 21 bandwidth 1gbit)

marking_queues()
{
	dumbbell 1 0
	check --device eth0
	named no-marking
	queue h1 eth0 "${RED[@]}"
	check --device eth0
	named drops-only
	queue h1 eth0 "${RED[@]}" ecn
	check --device eth0
	healthy
	in_ns h1 "$LOWQ_TC" ldcp eth0 --rate 1gbit --rtt 100us -q
	check --device eth0
	healthy
	FROM=sw
	queue sw p1 "${RED[@]}" ecn
	check --device egress
	named wrong-device p1
	queue sw egress fq_codel
	check --device egress --device p1
	healthy
	check --device p1 --control hpccpp
	named does-not-stamp
}
declare_test marking_queues "" "no queue that marks; one that only drops; RED on the wrong device"

mq_leaves()
{
	local i

	add_ns h1
	add_ns h2
	ip link add eth0 netns "${NSP}h1" numtxqueues 4 numrxqueues 4 type veth peer name eth0 netns "${NSP}h2" \
		numtxqueues 4 numrxqueues 4
	ip -n "${NSP}h1" link set eth0 up
	in_ns h1 tc qdisc add dev eth0 root handle 1: mq
	for i in 1 2 3; do
		in_ns h1 tc qdisc add dev eth0 parent "1:$i" "${RED[@]}" ecn
	done
	check --device eth0
	named mq-leaf-unmarked 1:4
	in_ns h1 tc qdisc add dev eth0 parent 1:4 "${RED[@]}" ecn
	check --device eth0
	healthy
}
declare_test mq_leaves "" "a transmit queue of mq that does not mark"

# --- paths ----------------------------------------------------------------------

# peer [OPTION...]: the listener at r; debugfs, which "ip netns exec" hides, stays visible
peer()
{
	nsenter --net="/run/netns/${NSP}r" "$LOWQ_CHECK" --listen --token secret --timeout 300 "$@" >"$TMP/listener" 2>&1 &
	wait_until listening r 5388
}

# path [OPTION...]: checks the path from h1 to r
path()
{
	check "${TO:-10.0.0.1}" --token secret "$@"
}

# rewrite DEV FILTER... -- PEDIT...: what sw does to IPv4 packets that leave by DEV
rewrite()
{
	local dev=$1 filter=()

	shift
	in_ns sw tc qdisc add dev "$dev" clsact
	while [ "$1" != -- ]; do
		filter+=("$1")
		shift
	done
	shift
	in_ns sw tc filter add dev "$dev" egress protocol ip flower "${filter[@]}" action pedit ex munge ip "$@" \
		pipe action csum ip4h || fail "no tc flower or pedit"
}

ends_agree()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	path --control dctcp_ref
	healthy
	TO=fd00:0::1 path --control dctcp_ref
	healthy
}
declare_test ends_agree "" "dctcp_ref at both ends of a healthy path, IPv4 and IPv6"

peer_refuses()
{
	dumbbell 1 1ms
	peer
	in_ns r sysctl -qw net.ipv4.tcp_ecn=0
	path --control dctcp_ref
	named peer-ecn-off 10.0.0.1
	in_ns r sysctl -qw net.ipv4.tcp_ecn=2
	path --control dctcp_ref
	named peer-control cubic
	in_ns r sysctl -qw net.ipv4.tcp_ecn=1
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	path --control prague
	named peer-without-accecn "tcp_ecn is 1"
	in_ns r sysctl -qw net.ipv4.tcp_ecn=3
	path --control prague
	healthy
}
declare_test peer_refuses "" "a peer with tcp_ecn 0, with another control, without Accurate ECN"

bleaches()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	rewrite egress ip_proto tcp -- tos set 0 retain 3
	path --control dctcp_ref
	named ecn-bleached "behind hop 1 (10.0.1.254)"
	jq -e '[.findings[] | select(.fault == "ecn-bleached") | .check] == ["ECN to the peer"]' "$TMP/check.json" ||
		fail "which way?"
}
declare_test bleaches "" "a path that bleaches ECN one way"

always_ce()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	rewrite p1 ip_proto tcp ip_tos 2/2 -- tos set 3 retain 3
	path --control dctcp_ref
	named ce-always "behind hop 1 (10.0.0.254)"
	not_named ecn-bleached
}
declare_test always_ce "" "a path that sets CE always"

drops_ect_syns()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp tcp_flags 0x2/0x12 ip_tos 2/3 action drop
	path --control dctcp_ref
	named ect-syn-dropped
}
declare_test drops_ect_syns "" "a path that drops SYNs with ECT"

clears_dscp()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	rewrite egress ip_proto tcp -- tos set 0 retain 0xfc
	path --control dctcp_ref
	named dscp-cleared "behind hop 1"
	not_named ecn-bleached
}
declare_test clears_dscp "" "a path that clears the DSCP"

mtu_black_hole()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip u32 match u16 0x0500 0xff00 at 2 action drop
	path --control dctcp_ref
	named mtu-black-hole "segments of 1448 bytes vanish, 1220 do"
}
declare_test mtu_black_hole "" "an MTU black hole"

# --- HPCC++ -----------------------------------------------------------------------

# stamping DEV...: sch_int at ports of sw
stamping()
{
	local dev

	for dev; do
		in_ns sw "$LOWQ_TC" hpccpp "$dev" --rate 100mbit --shape -q || fail "no sch_int on $dev"
	done
}

telemetry()
{
	dumbbell 1 1ms
	peer
	stamping egress
	path --control hpccpp
	healthy
	jq -e '.findings[] | select(.check == "telemetry") | .says | contains("1 nodes stamped: 100 Mb/s")' \
		"$TMP/check.json" || fail "rate and number of nodes"
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp tcp_flags 0x8/0x3f action drop
	path --control hpccpp
	named probes-filtered "on the way there"
	in_ns sw tc filter del dev egress egress
	modprobe -r int_reflector
	path --control hpccpp
	modprobe int_reflector
	named no-reflector
	named service-missing
}
declare_test telemetry "" "hpccpp with telemetry; probes filtered; a receiver without int_reflector"

# h1 - sw - sw2 - r
two_routers()
{
	local ns

	roomy
	for ns in h1 sw sw2 r; do
		add_ns "$ns"
	done
	net 1 h1 eth0 sw p1
	net 0 r eth0 sw2 egress
	link sw egress sw2 p1
	ip -n "${NSP}sw" addr add 10.0.2.1/24 dev egress
	ip -n "${NSP}sw2" addr add 10.0.2.2/24 dev p1
	ip -n "${NSP}sw" route add 10.0.0.0/24 via 10.0.2.2
	ip -n "${NSP}sw2" route add 10.0.1.0/24 via 10.0.2.1
}

hop_unstamped()
{
	two_routers
	peer
	stamping egress
	path --control hpccpp
	named hop-unstamped "2 routers"
}
declare_test hop_unstamped "" "one of two routers does not stamp"

base_rtt()
{
	dumbbell 1 1ms
	peer
	stamping egress
	under_test hpccpp
	parameter base_rtt_ns=5000000
	path --control hpccpp
	named wrong-base-rtt "it is 1"
}
declare_test base_rtt "" "wrong base RTT"

# --- RoCE -----------------------------------------------------------------------

congestion_notification()
{
	roce_dumbbell 1 1gbit 20us
	modprobe roce_rcm
	peer
	path --control roce
	healthy
	TO=fd00:0::1 path --control roce
	healthy
	in_ns sw tc qdisc add dev p1 clsact
	in_ns sw tc filter add dev p1 egress protocol ip flower ip_proto udp dst_port 4791 action drop
	path --control roce
	named cnps-lost
	modprobe -r roce_rcm
	path --control roce
	named peer-without-rcm
	named module-not-loaded "modprobe roce_rcm"
	rdma link del "$(roce_dev r)"
	path --control roce
	named peer-without-rdma
}
declare_test congestion_notification "" "RoCE: CNPs come back; or are lost, or there is no roce_rcm, or no device"

# --- under load ------------------------------------------------------------------

clamped()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	shape 100mbit "${RED[@]}" ecn
	ip -n "${NSP}h1" route replace default via 10.0.1.254 cwnd lock 4
	path --control dctcp_ref
	named cwnd-clamped "to 4 packets"
	ip -n "${NSP}h1" route replace default via 10.0.1.254
	path --control dctcp_ref --load 0.5
	healthy
}
declare_test clamped "" "a clamped cwnd"

receive_window()
{
	dumbbell 1 1ms
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 8192 8192"
	peer --control dctcp_ref
	shape 100mbit "${RED[@]}" ecn
	path --control dctcp_ref --load 0.5
	named receive-window "at the peer"
}
declare_test receive_window "" "a receive window that limits"

unmarked_queues()
{
	dumbbell 1 1ms
	peer --control dctcp_ref
	shape 20mbit bfifo limit 10000000
	path --control dctcp_ref --load 1
	named queue-unmarked "lowq-tc dctcp"
	shape 20mbit "${RED[@]}"
	path --control dctcp_ref --load 1
	named queue-drops "lowq-tc dctcp"
}
declare_test unmarked_queues "" "a bottleneck that does not mark, or only drops, under load"

# --- healthy set-ups --------------------------------------------------------------

# prepared CONTROL: both hosts as lowq-tc sets them up for it, as the default
prepared()
{
	local host

	# for a restricted one the first namespace must allow that
	sysctl -qw net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_allowed_congestion_control) $1"
	for host in h1 r; do
		in_ns "$host" "$LOWQ_TC" host "$1" --default -q --no-rehearsal 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	done
}

# sound CONTROL ADDRESS...: the default control works over a path whose bottleneck has its queue
sound()
{
	local to

	prepared "$1"
	peer
	for to in "${@:2}"; do
		TO=$to path --load 0.3
		healthy
		expect "control" "$(jq -r '.measured[0].info.there.control' "$TMP/check.json")" = "$1"
	done
}

# marking: bottlenecks both ways that mark
marking()
{
	shape 100mbit "${RED[@]}" ecn
	shaper r eth0 100mbit
	in_ns r tc qdisc add dev eth0 parent 1:1 handle 2: "${RED[@]}" ecn
}

sound_dctcp()
{
	dumbbell 1 1ms
	marking
	sound dctcp_ref 10.0.0.1 fd00:0::1
}
declare_test sound_dctcp "" "healthy: dctcp_ref, IPv4 and IPv6"

sound_ldcp()
{
	dumbbell 1 1ms
	in_ns sw "$LOWQ_TC" ldcp egress --rate 100mbit --rtt 1ms --shape -q
	in_ns r "$LOWQ_TC" ldcp eth0 --rate 100mbit --rtt 1ms --shape -q
	sound ldcp 10.0.0.1 fd00:0::1
}
declare_test sound_ldcp "" "healthy: ldcp over WRED, IPv4 and IPv6"

sound_prague()
{
	has_accecn || skip "no Accurate ECN"
	dumbbell 1 10ms
	shape 40mbit dualpi2
	shaper r eth0 40mbit
	in_ns r tc qdisc add dev eth0 parent 1:1 handle 2: dualpi2
	sound prague 10.0.0.1 fd00:0::1
}
declare_test sound_prague "" "healthy: prague over DualPI2, IPv4 and IPv6"

sound_hpccpp()
{
	dumbbell 1 0
	stamping egress p1
	sound hpccpp 10.0.0.1 fd00:0::1
}
declare_test sound_hpccpp "" "healthy: hpccpp, IPv4 and IPv6"

sound_tunnel()
{
	dumbbell 1 1ms
	marking
	tunnel gre || skip "no GRE"
	sound dctcp_ref "$TO"
}
declare_test sound_tunnel "" "healthy: dctcp_ref through a tunnel"

sound_vlan()
{
	dumbbell 1 1ms
	marking
	ip -n "${NSP}h1" link add v5 link eth0 type vlan id 5
	ip -n "${NSP}sw" link add v5 link p1 type vlan id 5
	ip -n "${NSP}h1" addr add 10.0.9.1/24 dev v5
	ip -n "${NSP}sw" addr add 10.0.9.254/24 dev v5
	ip -n "${NSP}h1" link set v5 up
	ip -n "${NSP}sw" link set v5 up
	ip -n "${NSP}h1" route add 10.0.0.0/24 via 10.0.9.254
	sound dctcp_ref 10.0.0.1
	expect "device" "$(jq -r '.measured[0].route.dev' "$TMP/check.json")" = v5
}
declare_test sound_vlan "" "healthy: dctcp_ref over a VLAN"

sound_offloads()
{
	OFFLOADS=1 dumbbell 1 1ms
	in_ns h1 ethtool -K eth0 gro on
	in_ns r ethtool -K eth0 gro on
	marking
	sound dctcp_ref 10.0.0.1
}
declare_test sound_offloads "" "healthy: dctcp_ref with TSO, GSO and GRO"

run_tests "$@"
