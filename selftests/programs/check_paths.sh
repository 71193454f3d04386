#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-check: more paths than check.sh has, with a fault each, and healthy ones that look odd.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=check_lib.sh
. "$(dirname "$0")/check_lib.sh"

# --- healthy, though odd ----------------------------------------------------------------

# odd_path COMMAND...: dctcp_ref over a path of 4 ms at 100 Mb/s that marks, made odd by the command, is
# healthy also under load
odd_path()
{
	dumbbell 1 "${RTT:-4ms}"
	bottlenecks 100mbit "${RED[@]}" ecn
	"$@" || fail "$1: $?"
	prepared dctcp_ref
	peer
	path --load 0.3
	healthy
	tells control "dctcp_ref at both ends"
}

# delayed SPEC...: netem on both of sw's ways, before the bottleneck's queue and behind it
delayed()
{
	tc -n "${NSP}sw" qdisc replace dev p1 root netem limit 100000 "$@"
	tc -n "${NSP}h1" qdisc replace dev eth0 root netem limit 100000 "$@"
}

jitter()
{
	odd_path delayed delay 3ms 1ms 25%
}
declare_test jitter "" "healthy: jitter of 1 ms, which reorders"

jitter_prague()
{
	for_full
	has_accecn || skip "no Accurate ECN"
	dumbbell 1 10ms
	bottlenecks 40mbit dualpi2
	delayed delay 5ms 1ms
	prepared prague
	peer
	path --load 0.3
	healthy
}
declare_test jitter_prague "" "healthy: prague with jitter"

reordering()
{
	for_full
	odd_path delayed delay 2ms reorder 90% 50% gap 5
}
declare_test reordering "" "healthy: a path that reorders"

duplicates()
{
	for_full
	odd_path delayed delay 2ms duplicate 2%
}
declare_test duplicates "" "healthy: a path that duplicates 2 %"

long_path()
{
	for_full
	RTT=200ms odd_path true
}
declare_test long_path "" "healthy: 200 ms of RTT"

# NAT without state: r sees h1 as 10.0.3.9
translate()
{
	filters egress flower src_ip 10.0.1.1 action pedit ex munge ip src set 10.0.3.9 \
		pipe action csum ip4h tcp udp || return
	ip -n "${NSP}sw" route add 10.0.3.9 via 10.0.1.1 dev p1
	filters p1 flower dst_ip 10.0.3.9 action pedit ex munge ip dst set 10.0.1.1 \
		pipe action csum ip4h tcp udp
}

nat()
{
	odd_path translate
	tells path "addresses are translated (NAT)"
}
declare_test nat "" "healthy: NAT on the path"

telemetry_nat()
{
	command -v nft >/dev/null || skip "no nft"
	pair
	stamping egress
	# on the way: probes are from an address that the peer does not know
	in_ns sw nft -f - <<-END 2>/dev/null || skip "no NAT in this kernel"
		table inet nat { chain post { type nat hook postrouting priority 100; oifname egress masquerade; }; }
	END
	path --control hpccpp
	named probes-translated "at the peer"
}
declare_test telemetry_nat "" "hpccpp: NAT on the way"

# over KIND [OPTION...]: a tunnel from h1 to r, 10.9.0.1 to 10.9.0.2
over()
{
	local end near far

	for end in h1 r; do
		near=10.0.1.1 far=10.0.0.1
		[ "$end" = h1 ] || { near=10.0.0.1 far=10.0.1.1; }
		ip -n "$NSP$end" link add t0 type "$1" local "$near" remote "$far" "${@:2}" || return
	done
	tunnel_up
}

tunnel_up()
{
	local end

	for end in h1 r; do
		ip -n "$NSP$end" link set t0 mtu 1400 up
	done
	ip -n "${NSP}h1" addr add 10.9.0.1/24 dev t0
	ip -n "${NSP}r" addr add 10.9.0.2/24 dev t0
	TO=10.9.0.2
}

gre()
{
	for_full
	odd_path over gre ttl 64
	over_t0
}
declare_test gre "" "healthy: a GRE tunnel"

# over_t0: the test's packets have used the tunnel
over_t0()
{
	expect "packets of the tunnel" "$(in_ns h1 cat /sys/class/net/t0/statistics/tx_packets)" -gt 100
}

vxlan()
{
	for_full
	odd_path over vxlan id 7 dstport 4789
	over_t0
}
declare_test vxlan "" "healthy: VXLAN"

guard()
{
	local keys=() end hosts=(h1 r) peers=(10.0.0.1 10.0.1.1)

	keys=("$(wg genkey)" "$(wg genkey)") || return
	for end in 0 1; do
		ip -n "$NSP${hosts[end]}" link add t0 type wireguard
		in_ns "${hosts[end]}" wg set t0 listen-port 51820 private-key <(echo "${keys[end]}") \
			peer "$(wg pubkey <<<"${keys[1 - end]}")" allowed-ips 10.9.0.0/24 endpoint "${peers[end]}:51820" || return
	done
	tunnel_up
}

wireguard()
{
	odd_path guard
	over_t0
}
declare_test wireguard "" "healthy: a VPN (WireGuard)"

# ESP between h1 and r, as IPsec's transport mode
encrypt()
{
	local end spi ends key

	key=0x$(printf '%040d' 7)
	for end in h1 r; do
		for spi in 1 2; do
			ends=(src 10.0.1.1 dst 10.0.0.1)
			[ "$spi" = 1 ] || ends=(src 10.0.0.1 dst 10.0.1.1)
			ip -n "$NSP$end" xfrm state add "${ends[@]}" proto esp spi "$spi" mode transport \
				aead 'rfc4106(gcm(aes))' "$key" 128 || return
			ip -n "$NSP$end" xfrm policy add "${ends[@]}" dir "$([[ $end$spi == h11 || $end$spi == r2 ]] && echo out || echo in)" \
				tmpl proto esp mode transport || return
		done
	done
}

ipsec()
{
	for_full
	odd_path encrypt
	expect "packets with ESP" "$(ip -n "${NSP}h1" -s xfrm state list | grep -oE '[0-9]+\(packets\)' | sort -n | tail -n 1 |
		tr -cd 0-9)" -gt 100
}
declare_test ipsec "" "healthy: IPsec (ESP, transport mode)"

telemetry_ipsec()
{
	dumbbell 1 1ms
	encrypt || skip "no ESP"
	peer
	stamping egress
	path --control hpccpp
	named probes-encrypted "no node on the way can stamp them"
	not_named nothing-stamps
	not_named hop-unstamped
}
declare_test telemetry_ipsec "" "hpccpp: IPsec encrypts the probes"

asymmetric()
{
	local ns PLAN=1

	roomy
	for ns in h1 sw sw2 r; do
		add_ns "$ns"
	done
	net 1 h1 eth0 sw p1
	net 3 r eth1 sw2 egress
	NO_DEFAULT=1 net 0 r eth0 sw egress
	NO_DEFAULT=1 net 2 h1 eth1 sw2 p1 4ms	# back: r, sw2, h1
	route sw2 10.0.1.0/24 10.0.2.1
	PLAN='' SYSCTL="net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0" build_plan
	shaper sw egress 100mbit
	in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "${RED[@]}" ecn
	shaper r eth1 100mbit
	in_ns r tc qdisc add dev eth1 parent 1:1 handle 2: "${RED[@]}" ecn
	prepared dctcp_ref
	peer
	path --load 0.3
	healthy
	expect "packets on the way back" "$(in_ns sw2 cat /sys/class/net/p1/statistics/tx_packets)" -gt 100
	# and a fault of one way is not one of the other
	AT=sw2 rewrite_at p1 ip_proto tcp -- tos set 0 retain 3
	path
	named ecn-bleached "ECN from the peer"
	[[ "${FOUND[*]}" != *"WRONG   10.0.0.1: ECN to the peer"* ]] || fail "bleached both ways?"
}
declare_test asymmetric "" "healthy: asymmetric routes; one of the ways bleaches"

# a fault that a device of the router AT makes
rewrite_at()
{
	(in_ns() { local ns=$1; shift; [ "$ns" != sw ] || ns=$AT; ip netns exec "$NSP$ns" "$@"; }; rewrite "$@")
}

small_mtu()
{
	for_full
	odd_path narrow
}
narrow()
{
	ip -n "${NSP}sw" link set egress mtu 1300
	ip -n "${NSP}r" link set eth0 mtu 1300
}
declare_test small_mtu "" "healthy: a smaller MTU on the way, which ICMP tells"

stateful()
{
	for_full
	odd_path keep_state
}
keep_state()
{
	in_ns sw nft "add table inet filter; add chain inet filter forward { type filter hook forward priority 0; policy drop; };
		add rule inet filter forward ct state established,related accept;
		add rule inet filter forward tcp flags & (syn | ack) == syn accept;
		add rule inet filter forward meta l4proto icmp accept"
}
declare_test stateful "" "healthy: a firewall that keeps state"

bridged()
{
	for_full
	odd_path container
}
# h1's device becomes a port of a bridge, and h1's address is the bridge's, as of a host of containers
container()
{
	in_ns h1 ip -batch - <<-END
		link add br0 type bridge
		link set br0 address 02:00:00:00:01:01
		addr flush dev eth0
		link set eth0 master br0
		link set br0 up
		addr add 10.0.1.1/24 dev br0
		neigh replace 10.0.1.254 lladdr 02:00:00:00:01:fe dev br0 nud permanent
		route replace default via 10.0.1.254
	END
}
declare_test bridged "" "healthy: the host's address is a bridge's"

bonded()
{
	for_full
	odd_path bond
}
bond()
{
	in_ns h1 ip -batch - <<-END
		addr flush dev eth0
		link set eth0 down
		link add bond0 type bond mode active-backup
		link set bond0 address 02:00:00:00:01:01
		link set eth0 master bond0
		link set bond0 up
		addr add 10.0.1.1/24 dev bond0
		neigh replace 10.0.1.254 lladdr 02:00:00:00:01:fe dev bond0 nud permanent
		route replace default via 10.0.1.254
	END
}
declare_test bonded "" "healthy: a bond"

old_peer()
{
	dumbbell 1 4ms
	bottlenecks 100mbit fq_codel
	in_ns r sysctl -qw net.ipv4.tcp_ecn=2 net.ipv4.tcp_congestion_control=reno
	AS=(unshare -m setarch --uname-2.6)	# and none of our modules' counters
	peer
	AS=()
	path --control cubic --load 0.3
	healthy
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=1
	path --control cubic
	healthy
	tells handshake "RFC 3168"
}
declare_test old_peer "" "healthy: cubic, without ECN and with it, to a peer that knows none of this"

other_lab_controls()
{
	for_full
	dumbbell 1 4ms
	bottlenecks 100mbit cake bandwidth 90mbit
	prepared dctcp_ref
	peer
	path
	healthy
	path --control dctcp
	healthy
}
declare_test other_lab_controls "" "healthy: Linux's dctcp with dctcp_ref at the peer; cake"

# --- faults of this host -----------------------------------------------------------------

host_faults()
{
	add_ns h1
	add_ns h2
	link h1 eth0 h2 eth0
	modprobe roce_rcm
	check --control roce
	named no-rdma-device
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	if has_accecn; then
		in_ns h1 sysctl -qw net.ipv4.tcp_ecn_option=0
		check --control prague
		named accecn-option-off
	fi
}
declare_test host_faults "" "no soft-RoCE device; tcp_ecn_option is 0"

reno_instead()
{
	for_full
	dumbbell 1 1ms
	sink cubic
	modprobe -r int_reflector
	in_ns h1 python3 "$LIB/talk.py" to 10.0.0.1 cc=hpccpp flood=0.3 sleep=100 >/dev/null 2>&1 &
	wait_until eval 'in_ns h1 ss -Htni state established | grep -q hpccpp_reno'
	check --control hpccpp
	modprobe int_reflector
	named no-telemetry 10.0.0.1
	has_accecn || return 0
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=1
	in_ns r sysctl -qw net.ipv4.tcp_ecn=1
	in_ns h1 python3 "$LIB/talk.py" to 10.0.0.1 cc=prague send=10000 sleep=100 >/dev/null 2>&1 &
	wait_until eval 'in_ns h1 ss -Htni state established | grep -q prague_reno'
	check --control prague
	named fell-back "with rfc3168 negotiated"
}
declare_test reno_instead "" "connections that run as Reno: without telemetry; prague with RFC 3168"

# --- faults of the path --------------------------------------------------------------------

# faulty: a path of 1 ms to a listener with dctcp_ref, and a way to change packets
faulty()
{
	pair --control dctcp_ref
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc qdisc add dev p1 clsact
}

# at DEV MATCH... -- ACTION...: what sw does to IPv4 packets that leave by DEV
at()
{
	local dev=$1 match=()

	shift
	while [ "$1" != -- ]; do
		match+=("$1")
		shift
	done
	in_ns sw tc filter add dev "$dev" egress protocol ip flower ip_proto tcp "${match[@]}" action "${@:2}" || fail "no tc flower"
}

ect_data_dropped()
{
	faulty
	at egress tcp_flags 0x10/0x12 ip_tos 2/3 -- drop
	path --control dctcp_ref
	named ect-dropped "ECT(0) is dropped"
	named no-connection "one with reno is"
}
declare_test ect_data_dropped "" "a path that drops data with ECT(0)"

ecn_swapped()
{
	for_full
	faulty
	at egress ip_tos 2/3 -- pedit ex munge ip tos set 1 retain 3 pipe action csum ip4h
	path --control dctcp_ref
	named ecn-changed "ECT(0) arrives as ECT(1)"
}
declare_test ecn_swapped "" "a path that makes ECT(1) of ECT(0)"

other_dscp()
{
	faulty
	at egress -- pedit ex munge ip tos set 32 retain 0xfc pipe action csum ip4h
	path --control dctcp_ref
	named dscp-changed "arrives as 8"
	not_named ecn-changed
}
declare_test other_dscp "" "a path that sets a DSCP of its own"

syn_flags()
{
	for_full
	faulty
	at egress tcp_flags 0x02/0x12 -- pedit ex munge tcp flags set 0x02 pipe action csum tcp
	path --control dctcp_ref
	named syn-flags-changed "ECE and CWR"
}
declare_test syn_flags "" "a path that clears ECE and CWR of SYNs"

synack_flags()
{
	faulty
	at p1 tcp_flags 0x12/0x12 -- pedit ex munge tcp flags set 0x12 pipe action csum tcp
	path --control dctcp_ref
	named ecn-refused
}
declare_test synack_flags "" "a path that clears ECE of SYN-ACKs"

no_echo()
{
	faulty
	at p1 tcp_flags 0x10/0x12 -- pedit ex munge tcp flags set 0x10 pipe action csum tcp
	path --control dctcp_ref
	named marks-not-echoed "to the peer"
	[[ "${FOUND[*]}" != *"marks from the peer"*"[marks-not-echoed]"* ]] || fail "not echoed both ways?"
}
declare_test no_echo "" "a path that clears ECE of ACKs"

without_root()
{
	for_full
	faulty
	at egress tcp_flags 0x2/0x12 ip_tos 2/3 -- drop
	AS=("${USER_IDS[@]}")
	sysctl -qw net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_allowed_congestion_control) dctcp_ref"
	path --control dctcp_ref
	AS=()
	named ecn-refused
}
declare_test without_root "" "without root: a path that drops SYNs with ECT"

instead()
{
	faulty
	AS=(python3 "$LIB/sock_ops.py" reno)
	path --control dctcp_ref
	AS=()
	named other-control "reno runs in place of dctcp_ref"
}
declare_test instead "" "another program (BPF) chooses another control"

nowhere_stamped()
{
	for_full
	pair
	modprobe int_reflector
	path --control hpccpp
	named hop-unstamped "0 nodes stamped"
	PEER=sw peer
	TO=10.0.1.254 path --control hpccpp
	named nothing-stamps "lowq-tc hpccpp DEVICE"
}
declare_test nowhere_stamped "" "hpccpp where no node stamps"

roce_faults()
{
	for_full
	roce_dumbbell 1 1gbit 20us
	modprobe roce_rcm
	peer
	filters egress flower ip_proto udp dst_port 4791 ip_tos 3/3 action pedit ex munge ip tos \
		set 2 retain 3 pipe action csum ip4h || skip "no pedit"
	path --control roce
	named roce-filtered
}
declare_test roce_faults "" "RoCE: a path that clears CE"

run_tests "$@"
