#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-check: faults that are staged on a host or on the path must be named, and healthy set-ups
# must not be called faulty.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=check_lib.sh
. "$(dirname "$0")/check_lib.sh"

# --- this host ------------------------------------------------------------------

one_host()
{
	PLAN=1 add_ns h1
	PLAN=1 add_ns h2
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
	# none of them: one line, not one for each
	modprobe -r tcp_dctcp_ref tcp_prague tcp_hpccpp int_reflector
	check
	[[ "${FOUND[*]}" == *"none of lowq's modules is installed"* ]] || fail "does not say that none is installed"
	expect "lines about modules" "$(printf '%s\n' "${FOUND[@]}" | grep -c module-missing)" -eq 1
	AS=()
	modprobe -a tcp_dctcp_ref tcp_prague tcp_hpccpp int_reflector
	check --control ldcp
	named module-not-loaded "modprobe tcp_ldcp"
	# choosing it for the path would load it
	ip -n "${NSP}h1" addr add 10.0.1.1/24 dev eth0
	TO=10.0.1.1 FROM=h1 PEER=h1 peer
	check 10.0.1.1 --token secret --control ldcp
	named module-not-loaded
	skips "10.0.1.1: path"
	says 2 "no control 'ldcp' here" --listen --control ldcp
	! grep -q ^tcp_ldcp /proc/modules || fail "it has loaded a module"
	modprobe tcp_ldcp
	check --control ldcp
	healthy
}
declare_test module_missing "" "module missing; module not loaded, and it does not load it"

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
	in_ns h1 python3 "$LIB/talk.py" to 10.0.0.1 connect cc=dctcp_ref send=10000 sleep=30 >/dev/null &
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
	in_ns h1 "$LOWQ_TC" host prague -q --no-rehearsal
	check --control prague
	healthy
}
declare_test ecn_sysctl "" "tcp_ecn is 0 or 2"

no_marking_queue()
{
	one_host
	check --device eth0 --control dctcp_ref
	named no-marking "lowq-tc PROFILE eth0"
	queue h1 eth0 "${RED[@]}" ecn
	check --device eth0 --control dctcp_ref
	healthy
	check --device eth0 --control hpccpp
	named does-not-stamp
}
declare_test no_marking_queue "" "no queue that marks, or that stamps for hpccpp"

only_drops()
{
	one_host
	queue h1 eth0 "${RED[@]}"
	check --device eth0 --control dctcp_ref
	named drops-only
	in_ns h1 tc qdisc del dev eth0 root
	in_ns h1 "$LOWQ_TC" ldcp eth0 --rate 1gbit --rtt 100us -q --no-rehearsal || fail "lowq-tc ldcp"
	check --device eth0 --control ldcp
	healthy
}
declare_test only_drops "" "a queue that only drops"

wrong_device()
{
	one_host
	link h1 eth1 h2 eth1
	queue h1 eth0 "${RED[@]}" ecn
	check --device eth1 --control dctcp_ref
	named wrong-device eth0
	queue h1 eth1 fq_codel
	check --device eth1 --device eth0 --control dctcp_ref
	healthy
}
declare_test wrong_device "" "RED on the wrong device"

roles()
{
	one_host
	queue h1 eth0 "${RED[@]}" ecn
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=2 net.ipv4.ip_forward=1
	# a router's settings for connections of its own do not matter
	check --control prague --device eth0
	healthy
	tells role "a router"
	check --control prague --device eth0 --role sender
	named tcp-ecn-not-accurate
	in_ns h1 tc qdisc del dev eth0 root
	check --control prague --device eth0
	named no-marking
	# a receiver answers for others: it needs no module of the sender
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3 net.ipv4.ip_forward=0
	modprobe -r tcp_prague
	check --control prague --role receiver
	healthy
	check --control prague
	named module-not-loaded
	modprobe tcp_prague
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=2
	check --control prague --role receiver
	named tcp-ecn-not-accurate
}
declare_test roles "" "a router: its queues count; a receiver: not what senders need"

set_by_lowq_tc()
{
	one_host
	in_ns h1 "$LOWQ_TC" host hpccpp -q --rtt 20us --rate 10gbit --flows 7 || fail "host hpccpp"
	check --control hpccpp
	[[ "${FOUND[*]}" != *"[parameters-changed]"* && "${FOUND[*]}" == *"set by lowq-tc: "*"flows=7"* ]] || fail "what is set: ${FOUND[*]}"
	echo 9 >/sys/module/tcp_hpccpp/parameters/flows
	check --control hpccpp
	[[ "${FOUND[*]}" == *"flows=9 (default"*"[parameters-changed]"* ]] || fail "not by lowq-tc: ${FOUND[*]}"
	in_ns h1 "$LOWQ_TC" host reset --force -q || fail "host reset"
	# modprobe.d of an earlier version
	mkdir "$TMP/options"
	printf 'options tcp-prague fast_rounds=0 strict=1\noptions tcp_cubic none=1\n' >"$TMP/options/lowq.conf"
	# shellcheck disable=SC2016 # for the inner shell
	AS=(unshare -m sh -c 'mount --bind "$0" /etc/modprobe.d && exec "$@"' "$TMP/options")
	check --control prague
	[[ "${FOUND[*]}" == *"no parameter fast_rounds (/etc/modprobe.d/lowq.conf)"*"[parameters-gone]"* ]] || fail "what is gone: ${FOUND[*]}"
	AS=()
	# a route that no lookup takes
	ip -n "${NSP}h1" addr add 10.0.1.1/24 dev eth0
	ip -n "${NSP}h1" route add 10.9.0.0/16 via 10.0.1.2 congctl dctcp_ref
	check --control dctcp_ref
	healthy
	ip -n "${NSP}h1" route add default via 10.0.1.2 table 100
	ip -n "${NSP}h1" rule add pref 1000 from all lookup 100
	check --control dctcp_ref
	named route-without-effect "10.9.0.0/16 (other lookups: default in table 100 comes first)"
}
declare_test set_by_lowq_tc "" "parameters of modprobe.d that are gone; parameters that lowq-tc has set are known; a route that no lookup takes is named"

ack_filter()
{
	one_host
	queue h1 eth0 cake bandwidth 5mbit
	check --control prague
	[[ "${FOUND[*]}" != *"[ack-filter]"* ]] || fail "an ACK filter where none is"
	queue h1 eth0 cake bandwidth 5mbit ack-filter
	check --control prague
	[[ "${FOUND[*]}" == *"[ack-filter]"*"root cake no-ack-filter"* ]] || fail "no ACK filter"
	# below a shaper, which stays when the advice is followed
	in_ns h1 tc qdisc del dev eth0 root
	shaper h1 eth0 5mbit
	in_ns h1 tc qdisc add dev eth0 parent 1:1 handle 2: cake ack-filter
	check --control prague
	[[ "${FOUND[*]}" =~ "[ack-filter]: sudo "([^$'\n']*no-ack-filter) ]] || fail "no ACK filter below a shaper"
	# shellcheck disable=SC2086 # a command
	in_ns h1 ${BASH_REMATCH[1]} || fail "what it says: ${BASH_REMATCH[1]}"
	[[ $(in_ns h1 tc qdisc show dev eth0) == *"htb 1: root"*"cake 2: parent 1:1 "*" no-ack-filter "* ]] || fail "the shaper is gone"
}
declare_test ack_filter "" "an ACK filter on a device, with prague"

late_timer()
{
	one_host
	queue h1 eth0 fq
	check --control hpccpp
	[[ "${FOUND[*]}" =~ "[late-timer]: sudo "([^$'\n']*timer_slack\ 1000ns) ]] || fail "no note on the timer"
	# shellcheck disable=SC2086 # a command
	in_ns h1 ${BASH_REMATCH[1]} || fail "what it says: ${BASH_REMATCH[1]}"
	check --control hpccpp
	[[ "${FOUND[*]}" != *"[late-timer]"* ]] || fail "a note, with a slack of 1 us"
}
declare_test late_timer "" "fq sends late, with hpccpp"

varying_link()
{
	one_host
	queue h1 eth0 dualpi2
	check --control prague
	[[ "${FOUND[*]}" != *"[short-step]"* ]] || fail "a link of another kind"
	# what the kernel says of a Wi-Fi device; of a veth it says nothing
	printf 'DEVTYPE=wlan\nINTERFACE=eth0\n' >"$TMP/uevent"
	# shellcheck disable=SC2016 # sh expands them
	AS=(sh -c 'mount --bind "$0" /sys/class/net/eth0/uevent && exec "$@"' "$TMP/uevent")
	check --control prague
	[[ "${FOUND[*]}" == *"[short-step]: sudo tc qdisc change dev eth0 root dualpi2 step_thresh 10ms"* ]] || fail "no note on the step"
	queue h1 eth0 dualpi2 step_thresh 10ms
	check --control prague
	[[ "${FOUND[*]}" != *"[short-step]"* ]] || fail "a note, with a step of 10 ms"
	# lowq-tc's own is lowq-tc's to change: else its record no longer fits
	in_ns h1 tc qdisc del dev eth0 root
	in_ns h1 "$LOWQ_TC" prague eth0 --rate 50mbit -q --no-rehearsal
	check --control prague
	[[ "${FOUND[*]}" == *"[short-step]: sudo lowq-tc prague eth0 --varying, with"* ]] || fail "no note on lowq-tc's own queue"
}
declare_test varying_link "" "dualpi2 with the kernel's step on a Wi-Fi device, with prague"

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
	check --device eth0 --control dctcp_ref
	named mq-leaf-unmarked 1:4
	in_ns h1 tc qdisc add dev eth0 parent 1:4 "${RED[@]}" ecn
	check --device eth0 --control dctcp_ref
	healthy
}
declare_test mq_leaves "" "a transmit queue of mq that does not mark"

stacked()
{
	local i device DEVICES=()

	one_host
	for i in 1 2 3; do
		link h1 "eth$i" h2 "eth$i"
	done
	add_ns h3
	in_ns h1 ip -batch - <<-END || fail "no stacked devices"
		link set eth0 down
		link set eth1 down
		link add bond0 type bond mode balance-rr
		link set eth0 master bond0
		link set eth1 master bond0
		link set bond0 up
		link add v5 link bond0 type vlan id 5
		link set v5 up
		link add iv0 link bond0 type ipvlan
		link set iv0 up
		addr add 10.9.0.1/24 dev eth2
		link add mv0 link eth2 type macvlan mode bridge
		link set mv0 up
		link add mv1 link eth2 netns ${NSP}h3 type macvlan mode bridge
		link add vx0 type vxlan id 7 remote 10.9.0.2 dstport 4789
		link set vx0 up
		link add wg0 type wireguard
		link set wg0 up
		link add br0 type bridge
		link set eth3 master br0
		link add pod0 type veth peer name eth0 netns ${NSP}h3
		link set pod0 master br0
		link set pod0 up
		link set br0 up
	END
	ip -n "${NSP}h3" link set mv1 up
	in_ns h1 wg set wg0 private-key <(wg genkey) peer "$(wg genkey | wg pubkey)" endpoint 10.9.0.2:51820
	queue h1 eth0 "${RED[@]}" ecn
	queue h1 eth2 "${RED[@]}" ecn
	queue h1 eth3 "${RED[@]}" ecn
	for device in bond0 v5 iv0 mv0 vx0 wg0 br0; do DEVICES+=(--device "$device"); done
	check --control dctcp_ref "${DEVICES[@]}"
	for device in bond0 v5; do
		tells "device $device" "its packets wait in eth0, eth1: eth1 does not mark [lower-unmarked]"
	done
	named lower-unmarked "eth1: eth1 does not mark [lower-unmarked]: sudo lowq-tc PROFILE eth1 ("
	tells "device iv0" "eth1 does not mark"
	for device in mv0 vx0 wg0; do
		tells "device $device" "its packets wait in eth2, which marks"
	done
	tells "device br0" "its packets wait in"
	[[ "${FOUND[*]}" != *reset* ]] || fail "it advises to reset a queue"
	# a queue on the upper device is none
	queue h1 bond0 "${RED[@]}" ecn
	check --control dctcp_ref --device bond0 --device eth1
	named lower-unmarked "its own queue never fills"
	named queue-above bond0
	# with a rate int stamps, and limits nothing
	queue h1 v5 int rate 1gbit
	check --control hpccpp --device v5
	named lower-unmarked "sudo lowq-tc hpccpp eth0; sudo lowq-tc hpccpp eth1"
	queue h1 eth1 "${RED[@]}" ecn
	queue h1 pod0 "${RED[@]}" ecn	# where all ports are veth, all count
	check --control dctcp_ref "${DEVICES[@]}"
	healthy
	FROM=h3 check --control dctcp_ref --device mv1
	healthy
	tells "device mv1" "which is not known here"
}
declare_test stacked "" "bond, VLAN, macvlan, ipvlan, VXLAN, WireGuard, bridge: the lowest device counts, and none is reset"

# --- paths ----------------------------------------------------------------------

peer_without_ecn()
{
	pair
	in_ns r sysctl -qw net.ipv4.tcp_ecn=0
	path --control dctcp_ref
	named peer-ecn-off 10.0.0.1
	# no fault of a control that asks for none
	path --control cubic
	healthy
	tells handshake "tcp_ecn is 0 at the peer [no-ecn]"
	in_ns r sysctl -qw net.ipv4.tcp_ecn=2
	path --control dctcp_ref
	named peer-control cubic
}
declare_test peer_without_ecn "" "a peer with tcp_ecn 0; one with another control"

peer_without_accecn()
{
	pair
	in_ns r sysctl -qw net.ipv4.tcp_ecn=1
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	path --control prague
	named peer-without-accecn "tcp_ecn is 1"
}
declare_test peer_without_accecn "" "a peer without Accurate ECN"

bleaches()
{
	pair --control dctcp_ref
	rewrite egress ip_proto tcp -- tos set 0 retain 3
	path --control dctcp_ref
	named ecn-bleached "behind hop 1 (10.0.1.254)"
	[[ "${FOUND[*]}" != *"WRONG   10.0.0.1: ECN from"* ]] || fail "bleached both ways?"
}
declare_test bleaches "" "a path that bleaches ECN one way"

always_ce()
{
	pair --control dctcp_ref
	rewrite p1 ip_proto tcp ip_tos 2/2 -- tos set 3 retain 3
	path --control dctcp_ref
	named ce-always "behind hop 1 (10.0.0.254)"
	not_named ecn-bleached
}
declare_test always_ce "" "a path that sets CE always"

drops_ect_syns()
{
	pair --control dctcp_ref
	filters egress flower ip_proto tcp tcp_flags 0x2/0x12 ip_tos 2/3 action drop
	path --control dctcp_ref
	named ect-syn-dropped
}
declare_test drops_ect_syns "" "a path that drops SYNs with ECT"

clears_dscp()
{
	pair --control dctcp_ref
	rewrite egress ip_proto tcp -- tos set 0 retain 0xfc
	path --control dctcp_ref
	named dscp-cleared "behind hop 1"
	not_named ecn-bleached
}
declare_test clears_dscp "" "a path that clears the DSCP"

mtu_black_hole()
{
	pair --control dctcp_ref
	filters egress u32 match u16 0x0500 0xff00 at 2 action drop
	path --control dctcp_ref
	named mtu-black-hole "segments of 1448 bytes vanish, 1220 do"
	named mtu-black-hole "or here, which sends them: ip route replace"
}
declare_test mtu_black_hole "" "an MTU black hole"

# --- HPCC++ -----------------------------------------------------------------------

no_reflector()
{
	pair
	stamping egress
	modprobe -r int_reflector
	path --control hpccpp
	modprobe int_reflector
	named no-reflector "lowq-tc host hpccpp"
	named service-missing
}
declare_test no_reflector "" "a receiver without int_reflector"

probes_filtered()
{
	pair
	stamping egress
	filters egress flower ip_proto tcp tcp_flags 0x8/0x3f action drop
	path --control hpccpp
	named probes-filtered "on the way there"
}
declare_test probes_filtered "" "a path that drops telemetry probes"

hop_unstamped()
{
	two_routers
	# routers are counted by what the sender itself starts with
	in_ns h1 sysctl -qw net.ipv4.ip_default_ttl=100
	in_ns r sysctl -qw net.ipv4.ip_default_ttl=77
	peer
	stamping egress
	path --control hpccpp
	named hop-unstamped "2 routers"
}
declare_test hop_unstamped "" "one of two routers does not stamp"

probe_room()
{
	two_routers
	peer
	stamping egress
	AT=sw2 stamping egress
	modprobe tcp_hpccpp
	echo 1 >/sys/module/tcp_hpccpp/parameters/probe_room
	path --control hpccpp
	echo 5 >/sys/module/tcp_hpccpp/parameters/probe_room
	named probe-room "echo 2 > /sys/module/tcp_hpccpp/parameters/probe_room"
}
declare_test probe_room "" "more nodes stamp than probes have room for"

base_rtt()
{
	pair
	stamping egress
	under_test hpccpp
	parameter base_rtt_ns=5000000
	path --control hpccpp
	named wrong-base-rtt "it is 1"
	[[ "${FOUND[*]}" == *"[parameters-changed]: "*"echo 0 | sudo tee /sys/module/tcp_hpccpp/parameters/base_rtt_ns"* ]] ||
		fail "does not say how to set it back"
}
declare_test base_rtt "" "wrong base RTT"

# --- RoCE -----------------------------------------------------------------------

congestion_notification()
{
	roce_dumbbell 1 1gbit 20us
	modprobe roce_rcm
	peer --control roce
	filters p1 flower ip_proto udp dst_port 4791 action drop
	path --control roce
	named cnps-lost
	modprobe -r roce_rcm
	says 2 "roce_rcm is not loaded here" --listen --control roce
	path --control roce
	named peer-without-rcm
	named module-not-loaded "modprobe roce_rcm"
	rdma link del "${NSP}r"
	path --control roce
	named peer-without-rdma
}
declare_test congestion_notification "" "RoCE: CNPs are lost; there is no roce_rcm; no device at the peer"

# --- under load ------------------------------------------------------------------

clamped()
{
	pair --control dctcp_ref
	bottlenecks 100mbit "${RED[@]}" ecn
	ip -n "${NSP}h1" route replace default via 10.0.1.254 cwnd lock 4
	path --control dctcp_ref
	named cwnd-clamped "to 4 packets"
}
declare_test clamped "" "a clamped cwnd"

receive_window()
{
	dumbbell 1 1ms
	in_ns r sysctl -qw net.ipv4.tcp_rmem="4096 8192 8192"
	peer --control dctcp_ref
	bottlenecks 100mbit "${RED[@]}" ecn
	path --control dctcp_ref --load 0.2
	named receive-window "at the peer"
}
declare_test receive_window "" "a receive window that limits"

unmarked_queues()
{
	pair --control dctcp_ref
	bottlenecks 20mbit bfifo limit 10000000
	path --control dctcp_ref --load 0.5
	named queue-unmarked "lowq-tc dctcp"
	[ "${FULL:-}" ] || return 0
	bottlenecks 20mbit "${RED[@]}"
	path --control dctcp_ref --load 0.5
	named queue-drops "lowq-tc dctcp"
}
declare_test unmarked_queues "" "a bottleneck that does not mark, under load; FULL=1: one that only drops"

send_buffer()
{
	dumbbell 1 20ms
	in_ns h1 sysctl -qw net.ipv4.tcp_wmem="4096 8192 8192"
	peer --control dctcp_ref
	bottlenecks 100mbit "${RED[@]}" ecn
	path --control dctcp_ref --load 0.5
	named send-buffer "where the data is sent, here"
	not_named receive-window
}
declare_test send_buffer "" "a send buffer that limits"

no_bottleneck()
{
	one_host
	ip -n "${NSP}h1" addr add 10.0.0.1/24 dev eth0
	ip -n "${NSP}h2" addr add 10.0.0.2/24 dev eth0
	PEER=h2 peer --control dctcp_ref
	TO=10.0.0.2 path --control dctcp_ref --load 0.02
	healthy
}
declare_test no_bottleneck "" "healthy: under load, with no bottleneck"

large_threshold()
{
	pair --control dctcp_ref
	bottlenecks 20mbit red limit 3000000 min 150000 max 150001 avpkt 1500 burst 101 bandwidth 20mbit ecn
	path --control dctcp_ref --load 0.5
	named threshold-too-large "lowq-tc dctcp"
}
declare_test large_threshold "" "a marking threshold that is far too large"

policers()
{
	dumbbell 1 10ms
	peer --control dctcp_ref
	bottlenecks 100mbit "${RED[@]}" ecn
	policed drop
	path --control dctcp_ref --load 0.5
	named loss-without-queue "as at a policer"
	in_ns sw tc qdisc del dev egress clsact
	policed pipe/ok action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h
	path --control dctcp_ref --load 0.5
	named marks-without-queue "load to the peer"
}
declare_test policers "" "a policer that drops, and one that sets CE"

unstamped_policer()
{
	dumbbell 1 0
	peer
	stamping egress p1
	in_ns r tc qdisc add dev eth0 root netem delay 5ms limit 100000	# lowq-tc takes dumbbell's
	policed drop
	path --control hpccpp --load 1
	named bottleneck-unstamped "/proc/net/hpccpp"
	named loss-without-queue "lowq-tc hpccpp DEVICE"
	[[ "${FOUND[*]}" != *"load from the peer"*"[loss-without-queue]"* ]] || fail "the way back has no policer"
	check --control hpccpp
	[[ "${FOUND[*]}" == *"[unstamped]"* ]] || fail "the counter is not told"
}
declare_test unstamped_policer "" "hpccpp behind a policer that does not stamp"

beside_cubic()
{
	pair
	stamping egress
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc cubic --duration 60s >/dev/null 2>&1 &
	sleep 1
	path --control hpccpp
	named beside-others "at one of them"
}
declare_test beside_cubic "" "hpccpp at a port whose queue CUBIC fills"

drops_ecn_syns()
{
	pair
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	in_ns r sysctl -qw net.ipv4.tcp_ecn=3
	filters egress flower ip_proto tcp tcp_flags 0xc2/0xd2 action drop
	path --control prague
	named ecn-syn-dropped "AE, ECE and CWR"
}
declare_test drops_ecn_syns "" "a path that drops SYNs that ask for ECN"

proxied()
{
	pair --control dctcp_ref
	in_ns sw python3 -B "$SELFTESTS/programs/check_faults.py" proxy 10.0.0.1 &
	wait_until listening sw 5388
	TO=10.0.1.254 path --control dctcp_ref
	named tcp-proxy "the peer 10.0.0.254"
}
declare_test proxied "" "a TCP proxy on the path"

own_firewall()
{
	pair
	stamping egress
	in_ns r nft -f - <<-END || skip "no nft"
		table inet filter {
			chain output {
				type filter hook output priority 0; policy accept
				ip dscp 23 drop
			}
		}
	END
	path --control hpccpp
	named answers-unsent "ct state untracked"
	in_ns r nft flush ruleset
	in_ns h1 nft "add table inet filter; add chain inet filter output { type filter hook output priority 0; };
		add rule inet filter output ip dscp 23 drop"
	path --control hpccpp
	named probes-unsent "here: nft insert rule inet filter output ct state untracked ip dscp 23 accept"
	# the lab's nft has no "ct"
	in_ns h1 nft insert rule inet filter output ip dscp 23 accept
	path --control hpccpp
	healthy
}
declare_test own_firewall "" "a firewall at either end that drops probes or answers"

bound()
{
	dumbbell 1 0
	ip -n "${NSP}h1" addr add 10.0.1.77/24 dev eth0
	AS=()
	peer --control reno --bind 10.0.0.1
	TO=fd00:0::1 says 2 "no listener at fd00" fd00:0::1 --token secret --control reno
	path --control reno --bind 10.0.1.77 --json
	jq -e '.measured[0] | .info.there.way[0] == "10.0.1.77" and .info.back.way[1] == "10.0.1.77" and
		.tests.there.data["3"] == [3, 3]' "$TMP/check" >/dev/null || fail "not from that address"
	path --control reno --bind eth0
	healthy
	says 2 "nodev9" 10.0.0.1 --token secret --control reno --bind nodev9
}
declare_test bound "" "--bind: an address, a device, at either end"

silent_port()
{
	dumbbell 1 0
	in_ns r nft "add table inet filter; add chain inet filter input { type filter hook input priority 0; };
		add rule inet filter input tcp dport 5388 drop" || skip "no nft"
	says 2 "no answer from 10.0.0.1 port 5388: a firewall drops it" 10.0.0.1 --token secret --control reno
}
declare_test silent_port "" "a port that a firewall drops is not called one without a listener"

# --- ordinary loss ----------------------------------------------------------------

# What is lost by chance is no fault. LOWQ_CHECK_RUNS runs each with other losses.
ordinary_loss()
{
	local run percent

	dumbbell 1 2ms
	prepared dctcp_ref
	peer
	for ((run = 0; run < ${LOWQ_CHECK_RUNS:-${FULL:+20}} + 0 || run < 2; run++)); do
		for percent in 1 5; do
			tc -n "${NSP}sw" qdisc replace dev egress root netem loss "$percent%" limit 100000
			tc -n "${NSP}sw" qdisc replace dev p1 root netem delay 2ms loss "$percent%" limit 100000
			path --control dctcp_ref --load 0.2
			healthy
			[[ "${FOUND[*]}" == *"Not-ECT test packets were lost"* ]] || fail "it does not tell the loss"
		done
	done
	# and a fault is seen in spite of loss
	rewrite egress ip_proto tcp -- tos set 0 retain 3
	path --control dctcp_ref
	named ecn-bleached
}
declare_test ordinary_loss "" "healthy: 1 and 5 percent of loss; and a fault is named in spite of them"

# --- healthy set-ups --------------------------------------------------------------

# sound CONTROL ADDRESS...: the default control works over a path whose bottleneck has its queue
sound()
{
	local to

	prepared "$1"
	peer
	for to in "${@:2}"; do
		[ "$to" ] || continue	# only with FULL=1
		TO=$to path --load 0.2
		healthy
		tells control "$1 at both ends"
	done
}

sound_dctcp()
{
	dumbbell 1 1ms
	bottlenecks 100mbit "${RED[@]}" ecn
	sound dctcp_ref 10.0.0.1 fd00:0::1
}
declare_test sound_dctcp "" "healthy: dctcp_ref, IPv4 and IPv6"

sound_ldcp()
{
	dumbbell 1 1ms
	in_ns sw "$LOWQ_TC" ldcp egress --rate 100mbit --rtt 1ms --shape -q --no-rehearsal
	in_ns r "$LOWQ_TC" ldcp eth0 --rate 100mbit --rtt 1ms --shape -q --no-rehearsal
	sound ldcp 10.0.0.1 "${FULL:+fd00:0::1}"
}
declare_test sound_ldcp "" "healthy: ldcp over WRED, IPv4; FULL=1: IPv6"

sound_prague()
{
	has_accecn || skip "no Accurate ECN"
	dumbbell 1 10ms
	bottlenecks 40mbit dualpi2
	sound prague 10.0.0.1 fd00:0::1
}
declare_test sound_prague "" "healthy: prague over DualPI2, IPv4 and IPv6"

sound_hpccpp()
{
	dumbbell 1 0
	in_ns h1 sysctl -qw net.ipv4.ip_default_ttl=100	# not one of the usual values
	stamping egress p1
	sound hpccpp 10.0.0.1 "${FULL:+fd00:0::1}"
	tells telemetry "1 nodes stamped: 100 Mb/s"
}
declare_test sound_hpccpp "" "healthy: hpccpp, IPv4; FULL=1: IPv6"

sound_roce()
{
	roce_dumbbell 1 1gbit 20us
	modprobe roce_rcm
	in_ns sw "$LOWQ_TC" roce egress --rate 1gbit -q --no-rehearsal || fail "lowq-tc roce"
	peer
	path --control roce
	healthy
	[ "${FULL:-}" ] || return 0
	TO=fd00:0::1 path --control roce
	healthy
}
declare_test sound_roce "" "healthy: RoCE with roce_rcm, IPv4; FULL=1: IPv6"

sound_direct()
{
	local host

	for_full
	add_ns h1
	add_ns r
	net 1 h1 eth0 r eth0
	for host in h1 r; do
		shaper "$host" eth0 100mbit
		in_ns "$host" tc qdisc add dev eth0 parent 1:1 handle 2: "${RED[@]}" ecn
	done
	sound dctcp_ref 10.0.1.254
}
declare_test sound_direct "" "healthy: dctcp_ref without a router between"

sound_routers()
{
	for_full
	two_routers
	stamping egress p1
	AT=sw2 stamping egress p1
	sound hpccpp 10.0.0.1
	tells telemetry "2 nodes stamped"
}
declare_test sound_routers "" "healthy: hpccpp through two routers that stamp"

sound_vlan()
{
	dumbbell 1 1ms
	bottlenecks 100mbit "${RED[@]}" ecn
	ip -n "${NSP}h1" link add v5 link eth0 type vlan id 5
	ip -n "${NSP}sw" link add v5 link p1 type vlan id 5
	ip -n "${NSP}h1" addr add 10.0.9.1/24 dev v5
	ip -n "${NSP}sw" addr add 10.0.9.254/24 dev v5
	ip -n "${NSP}h1" link set v5 up
	ip -n "${NSP}sw" link set v5 up
	ip -n "${NSP}h1" route add 10.0.0.0/24 via 10.0.9.254
	sound dctcp_ref 10.0.0.1
	[ "$(in_ns h1 cat /sys/class/net/v5/statistics/tx_packets)" -gt 100 ] || fail "not over the VLAN"
}
declare_test sound_vlan "" "healthy: dctcp_ref over a VLAN"

sound_offloads()
{
	OFFLOADS=1 dumbbell 1 1ms
	in_ns h1 ethtool -K eth0 gro on
	in_ns r ethtool -K eth0 gro on
	bottlenecks 100mbit "${RED[@]}" ecn
	sound dctcp_ref 10.0.0.1
}
declare_test sound_offloads "" "healthy: dctcp_ref with TSO, GSO and GRO"

# --- bad input, bad peers, sudden ends ----------------------------------------------

# FAULTS ARGUMENT...
faults()
{
	python3 -B "$SELFTESTS/programs/check_faults.py" "$@"
}

wrong_use()
{
	dumbbell 1 0
	picture >"$TMP/before"
	says 2 "nohost.invalid" nohost.invalid --token secret
	says 2 "not the name of a host" a..b --token secret
	says 2 "no listener at 10.0.0.1 port 5388" 10.0.0.1 --token secret --control reno
	[ ! "${FULL:-}" ] || says 2 "no answer from 10.0.7.7" 10.0.7.7 --token secret --control reno
	says 2 "--token is missing" 10.0.0.1
	says 2 "no device 'nodev0'" --device nodev0
	ip -n "${NSP}h1" link add down0 type veth
	says 2 "no device 'down0' that is up" --device down0
	ip -n "${NSP}h1" link del down0
	if [ "${FULL:-}" ]; then
		says 2 "--load" 10.0.0.1 --token secret --load 31
		says 2 "not a port" 10.0.0.1 --token secret --port 0
		says 2 "not a name" --control 'a b'
		says 2 "--listen goes with" --listen 10.0.0.1
		says 2 "--nonsense" --nonsense
	fi
	AS=("${USER_IDS[@]}")
	says 2 "cannot listen at port 80" --listen --port 80
	AS=()
	peer --control reno
	says 2 "wrong token" 10.0.0.1 --token other --control reno
	FROM=r says 2 "cannot listen at port 5388: Address already in use" --listen
	picture >"$TMP/after"
	diff "$TMP/before" "$TMP/after" || fail "it has changed something"
}
declare_test wrong_use "" "unknown host, no listener, wrong token, no such device: one line, nothing changed"

other_listeners()
{
	local port=5401 text

	add_ns h1
	in_ns h1 python3 -B "$SELFTESTS/programs/check_faults.py" listeners &
	wait_until listening h1 5413
	for text in "another version of lowq-check (protocol 2, not 1)" "something else" "does not answer" "something else" \
		"something else" "?[2Jgone?second line" "broke" "does not answer" "not understood" "has ended" "has ended" \
		"does not answer" "not understood"; do
		says 2 "$text" 127.0.0.1 --token secret --control reno --port "$port"
		port=$((port + 1))
	done
}
declare_test other_listeners "" "listeners of another version, or that are none: one line each"

strangers()
{
	dumbbell 1 0
	peer --control reno
	in_ns h1 python3 -B "$SELFTESTS/programs/check_faults.py" strangers 10.0.0.1 secret || fail "strangers"
	expect "what the listener says" "$(wc -l <"$TMP/listener")" -eq 2
	between "memory of the listener, kB" "$(awk '/^VmHWM/ { print $2 }' "/proc/$LISTENER/status")" 1000 60000
	path --control reno
	healthy
	grep -q '^lowq-check ADDRESS --token secret$' "$TMP/listener" || fail "no command for the other host"
}
declare_test strangers "" "a listener that gets random, long, deep and wrong messages, and idle connections"

parsers()
{
	faults parsers && faults chance
}
declare_test parsers "" "random packets and messages; the exact test against counted cases"

timeout_ends()
{
	local token

	add_ns h1
	in_ns h1 "$LOWQ_CHECK" --listen --timeout 3 >"$TMP/listener" &
	wait_until listening h1 5388
	token=$(sed -n 's/^lowq-check ADDRESS --token \([0-9a-f]\{32\}\)$/\1/p' "$TMP/listener")
	[ "$token" ] || fail "no token: $(<"$TMP/listener")"
	says 2 "wrong token" 127.0.0.1 --token "${token%?}" --control reno
	check 127.0.0.1 --token "$token" --control reno
	healthy
	wait $! || fail "the listener fails at the end of its time"
	says 2 "no listener" 127.0.0.1 --token "$token" --control reno
}
declare_test timeout_ends "" "a listener makes a token, and ends in time"

no_root()
{
	dumbbell 1 1ms
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	in_ns r sysctl -qw net.ipv4.tcp_ecn=3
	AS=("${USER_IDS[@]}")
	peer --control prague
	path --control prague
	healthy
	skips "without root here"
	AS=()
	path --control prague
	healthy
	skips "without root at the peer"
}
declare_test no_root "" "without root at both ends, or at the peer: healthy, and says what it skipped"

old_kernel()
{
	one_host
	mkdir "$TMP/ipv4"
	cat /proc/sys/net/ipv4/tcp_ecn >"$TMP/ipv4/tcp_ecn"
	for name in tcp_available_congestion_control tcp_allowed_congestion_control tcp_congestion_control; do
		cat "/proc/sys/net/ipv4/$name" >"$TMP/ipv4/$name"
	done
	# shellcheck disable=SC2016 # for the inner shell
	AS=(unshare -m sh -c 'mount --bind "$0" /proc/sys/net/ipv4 && exec setarch --uname-2.6 "$@"' "$TMP/ipv4")
	check --control prague
	named kernel-without-accecn "Linux 2.6"
	check --control dctcp_ref
	healthy
	AS=()
}
declare_test old_kernel "" "a kernel without Accurate ECN"

killed()
{
	local calls client i part

	dumbbell 1 1ms
	stamping egress p1
	peer
	picture >"$TMP/before"
	calls=$(in_ns h1 python3 -B "$SELFTESTS/programs/check_faults.py" kill 1 0 10.0.0.1 --token secret --control hpccpp --load 0.1 \
		2>&1 >/dev/null)
	expect "function calls" "$calls" -gt 5000
	RANDOM=${LOWQ_SEED:-1}
	for ((i = 0; i < ${FULL:+30} + 3; i++)); do
		part=0.$((RANDOM % 90 + 10))
		in_ns h1 python3 -B "$SELFTESTS/programs/check_faults.py" kill "$part" "$calls" 10.0.0.1 --token secret --control hpccpp \
			--load 0.1 >/dev/null 2>&1
		expect "status of one that is killed at $part" "$?" -eq 137
	done
	# the listener, in the midst of a check
	for ((i = 0; i < ${FULL:+10} + 1; i++)); do
		kill -KILL "$LISTENER"
		wait_until eval '! listening r 5388'
		peer
		in_ns h1 "$LOWQ_CHECK" 10.0.0.1 --token secret --control hpccpp --load 0.1 >"$TMP/out" 2>"$TMP/err" &
		client=$!
		sleep "0.0$((RANDOM % 90 + 10))"
		sleep "0.$((RANDOM % 4))"
		kill -KILL "$LISTENER"
		wait "$client"
		RC=$?
		mapfile -t FOUND <"$TMP/err"
		[[ $RC -eq 2 && ${#FOUND[@]} -eq 1 && ${FOUND[0]} == "lowq-check: 10.0.0.1: "* ]] ||
			fail "when the listener is killed: status $RC: ${FOUND[*]}"
	done
	picture >"$TMP/after"
	diff "$TMP/before" "$TMP/after" || fail "it has left something"
	peer
	path --control hpccpp
	healthy
}
declare_test killed "" "killed at random moments, either end: nothing is left, the other end says so"

documented()
{
	local man=$LOWQ_ROOT/man/lowq-check.8

	[ -e "$man" ] || skip "no manual here"
	dumbbell 1 1ms
	stamping egress p1
	peer
	in_ns h1 "$LOWQ_CHECK" --json 10.0.0.1 --token secret --control hpccpp --load 0.1 >"$TMP/check.json"
	sed -n '/^\.Ss JSON/,/^\.Sh/s/^\.\(It \)\?Va //p' "$man" | tr -s ' ,.' '\n' | sort -u >"$TMP/documented"
	jq -r 'keys[], (.findings[] | keys[]), (.host | keys[]), (.host.controls[] | keys[]), (.host.devices[] | keys[])' "$TMP/check.json" | sort -u >"$TMP/printed"
	comm -13 "$TMP/documented" "$TMP/printed" >"$TMP/missing"
	[ ! -s "$TMP/missing" ] || fail "not in the manual: $(paste -sd' ' "$TMP/missing")"
	# names of faults are the only lower-case words in quotes that have a hyphen
	grep -ohE '"[a-z]+(-[a-z]+)+"' "$(faults package)"/{judge,verdicts}.py | tr -d '"' | sort -u | while read -r name; do
		grep -q "^\.It Sy $name\b" "$man" || echo "$name"
	done >"$TMP/missing"
	[ ! -s "$TMP/missing" ] || fail "faults that the manual does not explain: $(paste -sd' ' "$TMP/missing")"
	expect "version" "$("$LOWQ_CHECK" --version)" = "lowq-check $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$LOWQ_ROOT/dkms.conf")"
}
declare_test documented "" "every key of the JSON but those below measured, and every fault, is in the manual"

completes()
{
	local word

	add_ns h1
	for word in "--li --listen" "--control ld ldcp" "-d l lo"; do
		# shellcheck disable=SC2086 # words, of which the last is what is offered
		completed h1 "$LOWQ_CHECK" ${word% *}
		expect "completion of ${word% *}" "$(<"$TMP/completed")" = "${word##* } "
	done
}
declare_test completes "" "completion knows options, controls and devices"

run_tests "$@"
