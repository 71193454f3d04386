#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tcp_prague: what it asks for in the handshake, the ECN field of each packet, and what it takes for a
# Classic ECN queue.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"

under_test prague

# peer KIND NS: sets how the other end, in namespace NS, and the path treat ECN
peer()
{
	local dev

	for dev in egress p1; do
		in_ns sw tc qdisc del dev "$dev" clsact 2>/dev/null
	done
	case $1 in
	accecn) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3 ;;
	rfc3168) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=1 ;;
	none) in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=0 ;;
	bleached)
		in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3
		for dev in egress p1; do
			in_ns sw tc qdisc add dev "$dev" clsact
			in_ns sw tc filter add dev "$dev" egress protocol ip pref 1 flower ip_proto tcp \
				action pedit munge offset 1 u8 set 0 retain 0x03 pipe csum ip4h &&
				in_ns sw tc filter add dev "$dev" egress protocol ipv6 pref 2 flower ip_proto tcp \
					action pedit munge offset 0 u32 set 0 retain 0x00300000 || fail pedit
		done
		;;
	ace-zeroed)
		in_ns "$2" sysctl -qw net.ipv4.tcp_ecn=3
		for dev in egress p1; do
			zero_ace "$dev"
		done
		;;
	esac || fail "cannot make a peer that is $1"
}

# Runs a flow for every role of Prague, kind of peer, and IP version. $TMP/flows has a line for each:
# role, kind of peer, address, client's port, control.
negotiate()
{
	local kind to port

	: >"$TMP/flows"
	for kind in accecn rfc3168 none bleached ace-zeroed; do
		peer "$kind" r
		in_ns h1 sysctl -qw net.ipv4.tcp_ecn=0	# the module still asks for it
		serve r --cc cubic
		for to in 10.0.0.1 fd00:0::1; do
			TO=$to send --size 200k
			echo "client $kind $to $(flow_field sport) $(flow_field cc)" >>"$TMP/flows"
		done
		in_ns r pkill -x flowgen
		wait_until not_listening r 5201

		peer "$kind" h1
		in_ns r sysctl -qw net.ipv4.tcp_ecn=0
		serve r --cc prague
		for to in 10.0.0.1 fd00:0::1; do
			in_ns h1 flowgen long --pull --to "$to" --cc cubic --timeout 60s --size 200k \
				>"$TMP/flow.json" || fail "flow failed, server, $kind, $to"
			echo "server $kind $to $(flow_field sport) -" >>"$TMP/flows"
		done
		in_ns r pkill -x flowgen
		wait_until not_listening r 5201
	done
}

not_listening()
{
	! listening "$@"
}

# fields FILE [FILTER]: a line per packet: source port, destination port, SYN, length, ECN field
fields()
{
	packets "$1" "${2:-tcp}" tcp.srcport tcp.dstport tcp.flags.syn tcp.len ip.dsfield.ecn ipv6.tclass.ecn |
		awk -F'\t' '{ print $1, $2, $3, $4, $5 $6 }'
}

negotiation()
{
	local role kind to port cc flow ect1 syn

	needs_virtual
	needs_accecn
	dumbbell 1 1ms
	capture h1 eth0 "$TMP/client.pcap" tcp
	capture r eth0 "$TMP/server.pcap" tcp
	negotiate
	stop_captures
	judge flow-ecn "$TMP/client.pcap" >"$TMP/client"
	judge flow-ecn "$TMP/server.pcap" >"$TMP/server"
	while read -r role kind to port cc; do
		flow=$(grep "^port=$port sender=$role " "$TMP/$role")
		echo "$role $kind $to: $flow control=$cc"
		expect "packets, $role, $kind, $to" "$(field packets <<<"$flow")" -ge 50
		ect1=$(field ect1 <<<"$flow") syn=$(field syn <<<"$flow")
		case $kind in
		accecn)
			expect "packets that are not ECT(1), $role, $kind, $to" "$(field other <<<"$flow")" -eq 0
			expect "ECN field of the SYN or SYN-ACK, $role, $to" "$syn" -eq 1
			;;
		bleached)
			# the stack ignores what the SYN-ACK says of the SYN; then the client learns
			# from feedback to its data that the path bleaches
			expect "ECT(1) after that, $role, $kind, $to" "$(field ect1_late <<<"$flow")" -eq 0
			[ "$role" = client ] && [ ! "$SERIES" ] || expect "ECT(1), $role, $kind, $to" "$ect1" -eq 0
			;;
		*)
			expect "packets that are ECT(1), $role, $kind, $to" "$ect1" -eq 0
			[ "$role" = client ] ||
				expect "ECN field of the SYN-ACK, $kind, $to" "$syn" != 1
			[ "$role" = server ] || expect "control, $kind" "$cc" = prague_reno
			;;
		esac
	done <"$TMP/flows"
	expect "flows" "$(wc -l <"$TMP/flows")" -eq 20
}
declare_test negotiation "P1 P3 P4 P23" "client and server, five kinds of peer, v4 and v6: ECT(1) with Accurate ECN only"

every_packet()
{
	local to size=2M rate=100mbit wait=0.01

	needs_accecn
	virtual || { size=300k rate=2mbit wait=0.3; }
	accecn_dumbbell 1 1ms
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	for to in 10.0.0.1 fd00:0::1; do
		# a retransmitted SYN does not ask for Accurate ECN, so losses begin after the SYN
		lossy rate "$rate"
		(sleep "$wait"; in_ns sw tc qdisc change dev egress root netem limit 100000 rate "$rate" loss 3%) &
		TO=$to send --size "$size"
		wait $!
	done
	stop_captures
	expect "retransmissions" "$(flow_field retrans)" -ge 1
	# without resets that have no ACK: they answer packets that belong to no socket
	fields "$TMP/h.pcap" 'tcp.flags.reset == 0 || tcp.flags.ack == 1' >"$TMP/h"
	expect "data packets" "$(awk '$4 > 0' "$TMP/h" | wc -l)" -ge 400
	expect "pure ACKs" "$(awk '$4 == 0 && !$3 && $1 == 5201' "$TMP/h" | wc -l)" -ge 80
	expect "packets that are not ECT(1)" "$(awk '$5 != 1' "$TMP/h" | wc -l)" -eq 0
}
declare_test every_packet "P1" "ECT(1) on data, retransmissions, pure ACKs, SYN, SYN-ACK and resets"

syn_again()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	# a path that drops SYNs that ask for ECN
	in_ns sw tc qdisc add dev egress clsact
	in_ns sw tc filter add dev egress egress protocol ip flower ip_proto tcp \
		tcp_flags 0xc2/0xc2 action drop
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 100k
	stop_captures
	expect "control" "$(flow_field cc)" = prague_reno
	fields "$TMP/h.pcap" | awk '$2 == 5201' >"$TMP/h"
	expect "first SYN" "$(awk '$3 { print $5; exit }' "$TMP/h")" -eq 1
	expect "SYNs" "$(awk '$3' "$TMP/h" | wc -l)" -ge 2
	expect "ECT(1) after the first SYN" "$(tail -n +2 "$TMP/h" | awk '$5 == 1' | wc -l)" -eq 0
}
declare_test syn_again "P1 P3" "where SYNs that ask for ECN are lost, the second retransmission does not ask; all after the first SYN is not ECT(1)"

synack_again()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=3
	# a path that drops ECT(1) packets
	in_ns sw tc qdisc add dev p1 clsact
	in_ns sw tc filter add dev p1 egress protocol ip flower ip_proto tcp ip_tos 0x1/0x3 action drop
	serve r --cc prague
	capture r eth0 "$TMP/r.pcap" tcp
	in_ns h1 flowgen long --pull --to 10.0.0.1 --cc cubic --timeout 20s --size 200k \
		>"$TMP/flow.json" || fail "no connection over a path that drops ECT(1)"
	stop_captures
	fields "$TMP/r.pcap" | awk '$1 == 5201' >"$TMP/r"
	expect "first SYN-ACK" "$(awk '$3 { print $5; exit }' "$TMP/r")" -eq 1
	expect "SYN-ACKs" "$(awk '$3' "$TMP/r" | wc -l)" -ge 2
	expect "ECT(1) after the first SYN-ACK" "$(tail -n +2 "$TMP/r" | awk '$5 == 1' | wc -l)" -eq 0
}
declare_test synack_again "P1 P3" "a retransmitted SYN-ACK and all later packets are not ECT(1): a path that drops ECT(1) is usable"

again()
{
	needs_virtual
	needs_accecn
	connected_again
}
declare_test again "P4" "a socket in fallback that is disconnected and connected again is prague again"

# A server whose SYN-ACK was lost is Reno: the path may drop ECT(1)
one_of_handshake()
{
	local packet

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	for packet in syn synack ack marked; do
		expect "ECT packets of 50 of the client, $packet lost" "$(one_lost client "$packet")" -eq 50
	done
	for packet in syn ack; do
		expect "ECT packets of 50 of the server, $packet lost" "$(one_lost server "$packet")" -eq 50
	done
}
declare_test one_of_handshake "P3" "a SYN or ACK that is lost by chance does not end Accurate ECN; nor does a SYN-ACK for the client"

# A listener that is given the control after listen(), as a program does whose library has made the socket
listens_late()
{
	local least=2 most=3

	[ ! "$SERIES" ] || least=1 most=1	# the stack knows the control
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 1ms
	# a path that drops ECT(1) packets
	in_ns sw tc qdisc add dev p1 clsact
	in_ns sw tc filter add dev p1 egress protocol ip flower ip_proto tcp ip_tos 0x1/0x3 action drop
	in_ns r python3 - <<-'END' &
		import socket
		server = socket.create_server(("10.0.0.1", 5299))
		server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"prague")
		while server.accept()[0].recv(1 << 20):
		    pass
	END
	wait_until listening r 5299
	sleep 0.1
	capture r eth0 "$TMP/r.pcap" tcp
	client 10.0.0.1 cc=cubic connect send=1000 acked
	stop_captures
	fields "$TMP/r.pcap" | awk '$1 == 5299' >"$TMP/r"
	# the first, its retransmission, and by chance another for a SYN that is repeated at that time
	between "SYN-ACKs that are ECT(1)" "$(awk '$5 == 1' "$TMP/r" | wc -l)" "$least" "$most"
	expect "seconds until the connection is made" "$(field seconds <"$TMP/client")" -le 4
}
declare_test listens_late "P1 P3" "... also where the listener was given the control after listen()"

# hooks NS...: how many netfilter hooks the module has there; one for IPv4 and IPv6 counts twice
hooks()
{
	local ns

	for ns; do
		in_ns "$ns" nft list hooks | grep -c ' \[tcp_prague\]'
	done | paste -sd' '
}

hooks_are()
{
	[ "$(hooks r)" = "$1" ]
}

# listens PORT: in r, with Prague, until it is killed
listens()
{
	nsenter --net="/run/netns/${NSP}r" python3 "$LIB/talk.py" sink --port "$1" --cc prague &
	LISTENER=$!
	wait_until listening r "$1"
}

# A hook makes each packet of its namespace pass netfilter.
hooks_on_demand()
{
	needs_accecn
	[ ! "$SERIES" ] || skip "the stack sends ECT(1): there is no hook"
	command -v nft >/dev/null && modprobe -q nfnetlink_hook || skip "no nft, or a kernel without NETFILTER_NETLINK_HOOK"
	accecn_dumbbell 1 1ms
	sink cubic
	client 10.0.0.1 send=100000 acked
	expect "control" "$(field cc <"$TMP/client")" = prague
	sleep 0.5
	expect "hooks in h1, r and sw while no socket listens" "$(hooks h1 r sw)" = "0 0 0"
	listens 5300
	wait_until hooks_are 2
	expect "hooks in h1, r and sw while one listens in r" "$(hooks h1 r sw)" = "0 2 0"
	kill "$LISTENER"
	load ect=0
	expect "hooks after the module has gone" "$(hooks h1 r sw)" = "0 0 0"
	listens 5301
	sleep 0.5
	expect "hooks with ect=0" "$(hooks h1 r sw)" = "0 0 0"
}
declare_test hooks_on_demand "" "a netfilter hook is only in the namespace where a socket listens; none with ect=0"

# SYN-ACKs with cookies belong to no request
cookies()
{
	local to

	needs_virtual
	needs_accecn
	needs_series
	accecn_dumbbell 1 1ms
	in_ns r sysctl -qw net.ipv4.tcp_syncookies=2
	sink prague
	capture r eth0 "$TMP/r.pcap" tcp
	capture h1 eth0 "$TMP/h.pcap" tcp
	for to in 10.0.0.1 fd00:0::1; do
		client "$to" send=20000 acked
	done
	stop_captures
	expect "SYN-ACKs with cookies" "$(in_ns r nstat -asz TcpExtSyncookiesSent | awk '/Sent/ { print $2 }')" -ge 2
	expect "packets of the server that are not ECT(1)" "$(fields "$TMP/r.pcap" 'tcp.srcport == 5299' | awk '$5 != 1' | wc -l)" -eq 0
	expect "packets of the client that are not ECT(1)" "$(fields "$TMP/h.pcap" 'tcp.dstport == 5299' | awk '$5 != 1' | wc -l)" -eq 0
	# without Accurate ECN, not even the SYN-ACK is
	in_ns h1 sysctl -qw net.ipv4.tcp_ecn=0
	capture r eth0 "$TMP/r.pcap" tcp
	for to in 10.0.0.1 fd00:0::1; do
		client "$to" cc=cubic send=20000 acked
	done
	stop_captures
	expect "SYN-ACKs without Accurate ECN" "$(count "$TMP/r.pcap" 'tcp.srcport == 5299 && tcp.flags.syn == 1')" -eq 2
	expect "ECT(1) without Accurate ECN" "$(fields "$TMP/r.pcap" 'tcp.srcport == 5299' | awk '$5 == 1' | wc -l)" -eq 0
}
declare_test cookies "P1 P3" "SYN-ACKs with SYN cookies are ECT(1) only if they agree on Accurate ECN, where the stack sends ECT(1)"

# tunnel KIND: makes t0 at h1 and r, with 10.9.0.1 and fd09::1 at h1, .2 and ::2 at r
tunnel()
{
	local end near far key

	ip -n "${NSP}h1" link del t0 2>/dev/null
	ip -n "${NSP}r" link del t0 2>/dev/null
	[ "$1" = gre ] || key=7
	for end in h1 r; do
		near=10.0.1.1 far=10.0.0.1
		[ "$end" = h1 ] || { near=10.0.0.1 far=10.0.1.1; }
		ip -n "$NSP$end" link add t0 type gre local "$near" remote "$far" ttl 64 ${key:+key "$key"} || return
		ip -n "$NSP$end" link set t0 mtu 1280 up
	done
	ip -n "${NSP}h1" addr add 10.9.0.1/24 dev t0
	ip -n "${NSP}r" addr add 10.9.0.2/24 dev t0
	ip -n "${NSP}h1" addr add fd09::1/64 dev t0 nodad
	ip -n "${NSP}r" addr add fd09::2/64 dev t0 nodad
}

# outer_ecn WHAT LEAST: in the capture $TMP/h.pcap, h1 sends at least LEAST data packets, and the
# outermost ECN field of each is ECT(1) or CE; the numbers are in $TMP/judged
outer_ecn()
{
	judge outer-ecn "$TMP/h.pcap" 'ip.src == 10.0.1.1 || ip.src == 10.0.1.2 || ipv6.src == fd00:1::1' >"$TMP/judged"
	echo "$1: $(<"$TMP/judged"), $(<"$TMP/client")"
	expect "data packets, $1" "$(field packets <"$TMP/judged")" -ge "$2"
	expect "data packets whose outermost field is not ECT(1), $1" "$(field other <"$TMP/judged")" -eq 0
	expect "control, $1" "$(field cc <"$TMP/client")" = prague
}

# over_tunnel KIND ADDRESS: runs a flow to ADDRESS over a bottleneck that marks. By RFC 6040 the
# outer header has the inner one's ECN field, and marks on it reach the flow.
over_tunnel()
{
	capture sw p1 "$TMP/h.pcap" 'src net 10.0.1.0/24 or src net fd00:1::/64'
	trace_on prague/prague_cut
	client "$2" send=3000000 acked info
	trace_off "$TMP/trace"
	stop_captures
	outer_ecn "$1, $2" 900
	expect "reductions for marks on the outer header, $1, $2" "$(grep -c cause=ecn "$TMP/trace")" -ge 1
	expect "retransmissions, $1, $2" "$(field retrans <"$TMP/client")" -eq 0
}

tunnels()
{
	local kind to

	needs_virtual
	needs_accecn
	# few marks are random here: without strict=1 they would not end slow start
	parameter strict=1
	accecn_dumbbell 1 2ms
	lossy loss 0.5% ecn
	sink
	for kind in gre gre-key; do
		tunnel "$kind" 2>"$TMP/err" || fail "$kind: $(<"$TMP/err")"
		for to in 10.9.0.2 fd09::2; do
			over_tunnel "$kind" "$to"
		done
	done
}
declare_test tunnels "P1" "GRE with and without key: the outer ECN field follows RFC 6040, and marks on it arrive"

# Devices with which the TCP packet itself, or its ESP packet, passes the hook twice.
devices()
{
	local key mode ns from to spi dir

	needs_virtual
	needs_accecn
	# few marks are random here: without strict=1 they would not end slow start
	parameter strict=1
	accecn_dumbbell 1 2ms
	lossy loss 0.5% ecn
	sink
	key=0x$(printf '%040d' 7)
	while read -r ns from to spi dir; do
		ip -n "$NSP$ns" xfrm state add src "$from" dst "$to" proto esp spi "$spi" mode transport \
			aead 'rfc4106(gcm(aes))' "$key" 128
		ip -n "$NSP$ns" xfrm policy add src "$from" dst "$to" proto tcp dir "$dir" \
			tmpl src "$from" dst "$to" proto esp mode transport || fail "xfrm policy"
	done <<-END
		h1 10.0.1.1 10.0.0.1 1 out
		h1 10.0.0.1 10.0.1.1 2 in
		h1 fd00:1::1 fd00:0::1 3 out
		h1 fd00:0::1 fd00:1::1 4 in
		r 10.0.1.1 10.0.0.1 1 in
		r 10.0.0.1 10.0.1.1 2 out
		r fd00:1::1 fd00:0::1 3 in
		r fd00:0::1 fd00:1::1 4 out
	END
	over_tunnel "ESP transport" 10.0.0.1
	over_tunnel "ESP transport" fd00:0::1
	every ip xfrm policy flush
	every ip xfrm state flush

	add_ns c1
	for mode in "macvlan mode bridge" "ipvlan mode l2" "ipvlan mode l3"; do
		# shellcheck disable=SC2086 # words
		ip -n "${NSP}h1" link add link eth0 name c0 type $mode || fail "$mode"
		ip -n "${NSP}h1" link set c0 netns "${NSP}c1"
		ip -n "${NSP}c1" addr add 10.0.1.2/24 dev c0
		ip -n "${NSP}c1" link set c0 up
		ip -n "${NSP}c1" route replace default via 10.0.1.254
		every sysctl -qw net.ipv4.tcp_ecn=3
		capture sw p1 "$TMP/h.pcap" 'src net 10.0.1.0/24'
		FROM=c1 client 10.0.0.1 send=2000000 acked info
		stop_captures
		outer_ecn "$mode" 1300
		ip -n "${NSP}c1" link del c0
	done

	# a VRF's queue marks packets before they pass the hook for the second time
	ip -n "${NSP}h1" link add v0 type vrf table 100 || fail vrf
	ip -n "${NSP}h1" link set v0 up
	ip -n "${NSP}h1" link set eth0 master v0
	ip -n "${NSP}h1" route replace default via 10.0.1.254 table 100
	in_ns h1 tc qdisc replace dev v0 root netem limit 100000 loss 1% ecn || fail "no queue on a VRF"
	lossy loss 0%
	capture sw p1 "$TMP/h.pcap" 'src net 10.0.1.0/24'
	client 10.0.0.1 bind=v0 send=3000000 acked info
	stop_captures
	outer_ecn VRF 1800
	expect "marks of the VRF's queue that are left" "$(field ce <"$TMP/judged")" -ge 5
}
declare_test devices "P1" "ESP transport, MACVLAN, IPVLAN, VRF: ECT(1), and marks stay"

early_choice()
{
	local how

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	sink
	for how in during $(has_sock_ops && echo bpf); do
		chosen_early "$how" 3 3 prague
		expect "data packets that are not ECT(1), $how" \
			"$(fields "$TMP/early.pcap" 'tcp.dstport == 5299 && tcp.len > 0' | awk '$5 != 1' | wc -l)" -eq 0
		chosen_early "$how" 3 0 prague_reno
		expect "packets after the handshake that are ECT, $how" \
			"$(fields "$TMP/early.pcap" 'tcp.dstport == 5299' | awk '!$3 && $5 != 0' | wc -l)" -eq 0
	done
}
declare_test early_choice "P3 P4" "chosen during connect() or by BPF: Prague where Accurate ECN was agreed, else Reno"

chosen_late()
{
	local i

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	sink
	# until the change, cubic with Accurate ECN sends ECT(0)
	for i in 1 2 3; do
		client 10.0.0.1 cc=cubic send=$((i * 1000000)) cc=prague send=3000000 acked info
		expect "control after a change from cubic" "$(field cc <"$TMP/client")" = prague
	done
	teardown
	load dctcp_feedback=1
	accecn_dumbbell 1 10ms
	sink
	client 10.0.0.1 send=1000000 acked info
	expect "control, dctcp_feedback=1 with Accurate ECN" "$(field cc <"$TMP/client")" = prague
}
declare_test chosen_late "P3 P23" "a change from cubic in mid-flow, and dctcp_feedback=1, are not mistaken for bleaching"

ect0()
{
	needs_virtual
	needs_accecn
	load ect=0
	accecn_dumbbell 1 1ms
	shape 100mbit
	serve r --cc prague
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 500k
	stop_captures
	expect "control" "$(flow_field cc)" = prague
	expect "packets that are not ECT(0)" "$(fields "$TMP/h.pcap" | awk '$5 != 2' | wc -l)" -eq 0
}
declare_test ect0 "P2" "ect=0: ECT(0) on all packets"

ace_later()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	shape 100mbit dualpi2
	zero_ace p1 tcp_flags 0x0/0x2
	serve r --cc prague
	trace_on prague/prague_mode
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --duration 3s
	trace_off "$TMP/trace"
	stop_captures
	cat "$TMP/trace"
	expect "reason" "$(field reason <"$TMP/trace" | head -n1)" = ace
	# the last second
	expect "ECT packets at the end" "$(packets "$TMP/h.pcap" 'tcp.dstport == 5201' frame.time_relative \
		ip.dsfield.ecn | awk '$1 > 2 && $2 != 0' | wc -l)" -eq 0
}
declare_test ace_later "P3" "a path that zeroes ACE after the handshake is detected by AccECN options: Reno and Not-ECT"

# stripped RULE...: a router on the way back takes the AccECN options off packets that match RULE
stripped()
{
	in_ns sw nft -f - <<-END
		table ip t {
			chain f {
				type filter hook forward priority 0
				ip saddr 10.0.0.1 $* reset tcp option 172
				ip saddr 10.0.0.1 $* reset tcp option 174
			}
		}
	END
}

# Without options the ACE field still counts marks (RFC 9768 3.2.3.2).
options_stripped()
{
	local rule

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	shape 50mbit dualpi2
	serve r --cc prague
	for rule in "tcp flags & syn == 0" "tcp flags & syn == 0 numgen inc mod 2 0" "tcp flags & syn == syn" ""; do
		stripped "$rule"
		trace_on prague/prague_mode prague/prague_cut
		send --duration 2s
		trace_off "$TMP/trace"
		in_ns sw nft flush ruleset
		expect "changes to Reno, options stripped: ${rule:-all}" "$(grep -c mode=reno "$TMP/trace")" -eq 0
		expect "cuts for marks, options stripped: ${rule:-all}" "$(grep -c cause=ecn "$TMP/trace")" -ge 5
	done
}
declare_test options_stripped "P3" "a path that takes AccECN options off all packets, off those after the handshake or off some is no fault: Prague stays, and ACE reports marks"

# A path lets the handshake pass, and then drops data with ECT: from the start, or from the middle of a flow on.
ect_data_dropped()
{
	local drop="ip netns exec ${NSP}sw nft add rule ip t f ip saddr 10.0.1.1 ip ecn != not-ect meta length gt 100 drop"

	needs_virtual
	needs_accecn
	accecn_dumbbell 1 20ms
	sink prague
	in_ns sw nft -f - <<<"table ip t { chain f { type filter hook forward priority 0; }; }"
	trace_on prague/prague_mode
	client 10.0.0.1 send=300000 acked "run=$drop" send=300000 acked info=late- || fail "nothing arrives, from mid-flow on"
	client 10.0.0.1 send=300000 acked || fail "nothing arrives, from the start on"
	trace_off "$TMP/trace"
	cat "$TMP/trace"
	expect "changes to Reno" "$(grep -c 'mode=reno reason=timeouts' "$TMP/trace")" -eq 2
}
declare_test ect_data_dropped "P3" "a path that drops data with ECT, from the start or from mid-flow on: after the second timeout Reno and Not-ECT, and the data arrive"

without_accecn()
{
	needs_virtual
	load
	dmesg -C
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
	shape 100mbit
	serve r --cc cubic
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 2M
	send --size 2M
	stop_captures
	expect "control" "$(flow_field cc)" = prague_reno
	expect "lines in the log" "$(dmesg | grep -c 'no Accurate ECN: it is Reno')" -eq 1
	expect "packets" "$(count "$TMP/h.pcap" tcp)" -ge 4000
	expect "ECT(1) packets other than SYNs" "$(fields "$TMP/h.pcap" | awk '!$3 && $5 == 1' | wc -l)" -eq 0
	if ! has_accecn; then
		expect "packets that are ECT(1)" "$(fields "$TMP/h.pcap" | awk '$5 == 1' | wc -l)" -eq 0
	fi
}
declare_test without_accecn "P3 P23" "without Accurate ECN: Reno, no ECT(1), one line in the log"

dctcp_feedback()
{
	needs_virtual
	load dctcp_feedback=1
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell 1 10ms
	shape 100mbit codel limit 1000 target 50ms interval 500ms ecn ce_threshold 1ms
	serve r --cc prague
	trace_on prague/prague_period prague/prague_cut
	capture h1 eth0 "$TMP/h.pcap" tcp
	send --size 40M
	trace_off "$TMP/trace"
	stop_captures
	expect "control" "$(flow_field cc)" = prague
	expect "packets that are not ECT(0)" "$(fields "$TMP/h.pcap" | awk '$5 != 2' | wc -l)" -eq 0
	expect "cuts for marks" "$(grep -c cause=ecn "$TMP/trace")" -ge 5
	expect "alpha at the end" "$(field alpha_q30 <"$TMP/trace" | tail -n1 | awk '{ print $1 / 2^30 }')" -le 0.5
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 75
}
declare_test dctcp_feedback "P23" "dctcp_feedback=1 without Accurate ECN: DCTCP's feedback, ECT(0)"

left()
{
	# shellcheck disable=SC2119 # default parameters
	outlived
}
declare_test left "" "a connection that has left the control outlives its module"

# By IPV6_ADDRFORM (41, 1) the program turns a socket of IPv6 into one of IPv4: the stack gives it IPv4's functions.
addrform()
{
	needs_virtual
	needs_accecn
	accecn_dumbbell 1 10ms
	sink
	capture h1 eth0 "$TMP/h.pcap" tcp
	client ::ffff:10.0.0.1 send=100000 acked set=41,1,2 get=domain,1,39 send=14480 acked send=1000000 acked info
	stop_captures
	cat "$TMP/client"
	expect "the socket's family" "$(field domain <"$TMP/client")" -eq 2
	expect "control" "$(field cc <"$TMP/client")" = prague
	fields "$TMP/h.pcap" | awk '$2 == 5299' >"$TMP/h"
	expect "data packets" "$(awk '$4 > 0' "$TMP/h" | wc -l)" -ge 700
	# those that left before the next round began
	expect "packets that are not ECT(1)" "$(awk '$5 != 1' "$TMP/h" | wc -l)" -le 12
}
declare_test addrform "P1" "ECT(1) from the next round on, once the program has turned an IPv6 socket into one of IPv4 (IPV6_ADDRFORM)"

# Namespaces that go, and a module that goes, just after a socket began to listen
listeners_go()
{
	local i ns

	for i in 1 2 3 4 5 6; do
		for ns in "${NSP}l$i" "${NSP}m$i"; do
			ip netns add "$ns"
			ip netns exec "$ns" python3 -c 'import socket as s; l = s.socket(); l.setsockopt(6, 13, b"prague"); l.listen()' &
		done
		wait
		ip netns del "${NSP}l$i"
		[ $((i % 2)) -eq 0 ] || load
		ip netns del "${NSP}m$i"
	done
}
declare_test listeners_go "" "namespaces and the module go while the hook for SYN-ACKs comes"

run_tests "$@"
