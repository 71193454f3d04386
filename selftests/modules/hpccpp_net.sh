#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ in networks as they are: hosts and nodes without it, firewalls, routes, attackers, and
# bottlenecks that do not stamp.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"
# shellcheck source=../lib/telemetry.sh
. "$LIB/telemetry.sh"

# --- hosts and firewalls -----------------------------------------------------------

without_reflector()
{
	local reno with

	needs_virtual
	rmmod int_reflector
	dumbbell 1 1ms
	node sw egress 1gbit
	serve r
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "tcp src port 5201 or $MESSAGES"
	in_ns h1 flowgen long --to 10.0.0.1 --cc reno --size 20M >"$TMP/flow.json"
	reno=$(flow_field duration_ns)
	send --size 20M
	with=$(flow_field duration_ns)
	stop_captures
	expect "control" "$(flow_field cc)" = hpccpp_reno
	expect "fallbacks, counted" "$(counter h1 hpccpp Fallbacks)" -eq 1
	dmesg | grep -q 'no telemetry on a connection (unanswered)' || fail "the log does not say so"
	expect "time against Reno's" "$(awk -v a="$with" -v b="$reno" 'BEGIN { print a / b }')" -le 1.03
	# the peer does not answer probes: no duplicate ACKs, no resets, no data lost
	expect "resets from the peer" "$(count "$TMP/r.pcap" 'tcp.srcport == 5201 && tcp.flags.reset == 1')" -eq 0
	expect "probes that reached the peer" "$(count "$TMP/r.pcap" 'int.type == 1')" -ge 4
	expect "segments with SACK or DSACK from the peer" "$(count "$TMP/r.pcap" 'tcp.srcport == 5201 && tcp.options.sack_le')" -eq 0
	# later probes are sent at growing intervals
	expect "probes in all" "$(counter h1 hpccpp Probes)" -le 16
	# when the reflector is loaded, the same connection has telemetry again
	trace_on hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.3
	modprobe int_reflector
	wait $!
	trace_off "$TMP/trace"
	expect "causes" "$(field cause <"$TMP/trace" | paste -sd' ')" = "unanswered telemetry"
	expect "control in the end" "$(flow_field cc)" = hpccpp
	expect "returns, counted" "$(counter h1 hpccpp Returns)" -eq 1
}
declare_test without_reflector "H17" "a peer without the module: a transfer as with Reno, undisturbed and reported; then HPCC++ again"

# Paced packets would be lost less often than those of flows beside, or more often.
fallback_pace()
{
	local start

	needs_virtual
	rmmod int_reflector
	dumbbell 1 5ms
	node sw egress 100mbit
	serve r
	capture h1 eth0 "$TMP/h.pcap" tcp
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 5s >"$TMP/flow.json" &
	sleep 2
	modprobe int_reflector
	wait $!
	stop_captures
	expect "control in the end" "$(flow_field cc)" = hpccpp
	expect "packets together in fallback, %" "$(packets_together "$TMP/h.pcap" 1 2)" -ge 30
	expect "packets together after the return, %" "$(packets_together "$TMP/h.pcap" 4)" -le 10
	rmmod int_reflector
	sink
	start=$(date +%s%N)
	# SO_MAX_PACING_RATE
	client 10.0.0.1 set=1,47,2000000 send=4000000 acked
	expect "control of the second connection" "$(field cc <"$TMP/client")" = hpccpp_reno
	expect "ms for 4 MB at 2 MB/s" $((($(date +%s%N) - start) / 1000000)) -ge 1900
}
declare_test fallback_pace "H17" "in fallback packets leave as Reno's, or at the rate that the program asks for; after the return they are paced"

without_node()
{
	needs_virtual
	dumbbell 1 100us
	shape 1gbit
	serve r
	send --size 5M
	expect "control on a path that does not stamp" "$(flow_field cc)" = hpccpp_reno
	expect "partial telemetry, counted" "$(counter h1 hpccpp Partial)" -ge 4
	teardown
	# a node whose rate is unknown
	dumbbell 1 100us
	ip -n "${NSP}sw" link add d0 type dummy
	in_ns sw tc qdisc add dev d0 root int || fail "int on a device without speed"
	expect "rate in use" "$(in_ns sw tc -s -j qdisc show dev d0 | jq '.[0].rate_in_use')" -eq 0
}
declare_test without_node "H17" "a path without nodes: fallback"

# charged_to CONTROL: bytes in slabs that the cgroup of a program has while 200 of its connections stand that have sent data
charged_to()
{
	in_ns h1 sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec python3 -S - "$@"' - "$1" <<-'END'
		import os, re, socket, sys, time
		root = "/sys/fs/cgroup"
		group = f"{root}/lowq{os.getpid()}"
		def write(file, text):
		    with open(file, "w") as f:
		        f.write(text)
		write(f"{root}/cgroup.subtree_control", "+memory")
		os.mkdir(group)
		write(f"{group}/cgroup.procs", "0")
		all = []
		for _ in range(200):
		    all.append(socket.socket())
		    all[-1].setsockopt(socket.IPPROTO_TCP, 13, sys.argv[1].encode())
		    all[-1].connect(("10.0.0.1", 5299))
		    all[-1].send(bytes(3000))
		time.sleep(1)
		print(re.search(r"slab_unreclaimable (\d+)", open(f"{group}/memory.stat").read())[1])
		write(f"{root}/cgroup.procs", "0")
		os.rmdir(group)
	END
}

charged()
{
	local cubic

	unshare -m sh -c 'mount -t cgroup2 none /sys/fs/cgroup && grep -w memory /sys/fs/cgroup/cgroup.controllers' >/dev/null 2>&1 ||
		skip "no memory cgroups"
	dumbbell 1 100us
	node sw egress 100mbit
	sink
	cubic=$(charged_to cubic) || fail "no cgroup"
	expect "bytes per connection beyond CUBIC's" "$((($(charged_to hpccpp) - cubic) / 200))" -ge 800
}
declare_test charged "" "a connection's state is charged to the memory cgroup of its program"

# Each CPU has its own counters; flows of four processes are on all of them. Window is also counted as Answered.
counted()
{
	local i name n sum=0 pids=()

	dumbbell 1 100us
	node sw egress 1gbit
	serve r
	for i in 1 2 3 4; do
		in_ns h1 flowgen long --to 10.0.0.1 --flows 2 --cc hpccpp --duration 1s >/dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	sleep 0.5
	expect "probes" "$(counter h1 hpccpp Probes)" -ge 40
	while read -r name n; do
		[ "$name" = Window ] || sum=$((sum + n))
	done < <(in_ns r cat /proc/net/int_reflector)
	expect "probes that the receiver has counted" "$sum" -eq "$(counter h1 hpccpp Probes)"
}
declare_test counted "H9" "flows on several CPUs: the receiver has counted each probe, for what became of it"

# tunnels_at END FROM TO: ip's lines for a host's end of tunnels t1 to t8, over IPv4 and over IPv6; FROM and TO are the
# host's network's number and the other's. tN has fd09:N::END, and 10.9.N.END over IPv4
tunnels_at()
{
	local n name options

	while read -r n name options; do
		echo "link add t$n type $name $options"
		echo "link set t$n up"
		echo "addr add 10.9.$n.$1/24 dev t$n"
		echo "addr add fd09:$n::$1/64 dev t$n nodad"
	done <<-END
		1 vxlan id 4 local 10.0.$2.1 remote 10.0.$3.1 dstport 4789
		2 geneve id 4 remote 10.0.$3.1
		3 gre local 10.0.$2.1 remote 10.0.$3.1
		4 ipip local 10.0.$2.1 remote 10.0.$3.1
		5 vxlan id 6 local fd00:$2::1 remote fd00:$3::1 dstport 4789
		6 geneve id 6 remote fd00:$3::1
		7 ip6gre local fd00:$2::1 remote fd00:$3::1
		8 ip6tnl mode any local fd00:$2::1 remote fd00:$3::1
	END
}

# The node stamps inside of them. qdelay tells packets by what is behind the outer header, up to what a stamp changes.
overlays()
{
	local offloads n to

	needs_virtual
	for offloads in '' 1; do
		OFFLOADS=$offloads dumbbell 1 100us
		node sw egress 1gbit
		ip -n "${NSP}h1" -batch - <<<"$(tunnels_at 1 1 0)" && ip -n "${NSP}r" -batch - <<<"$(tunnels_at 2 0 1)" || fail "no tunnels"
		serve r
		for n in 1 2 3 4 5 6 7 8; do
			to=10.9.$n.2
			[ "$n" -le 4 ] || to=fd09:$n::2
			observe 1gbit --filter "" --prefix 36 --from 50ms --to 380ms
			in_ns h1 flowgen long --to "$to" --cc hpccpp --flows 2 --duration 400ms >"$TMP/flow.json" || fail "flow failed"
			observed
			expect "control over t$n${offloads:+, offloads}" "$(jq -r '.cc // empty' "$TMP/flow.json" | sort -u)" = hpccpp
			measured "t$n${offloads:+, offloads}: $(seen qlen_bytes.p99) bytes wait, at most $(seen qlen_bytes.max)"
			expect "bytes waiting over t$n${offloads:+, offloads}" "$(seen qlen_bytes.p99)" -lt 20000
			expect "most of them over t$n${offloads:+, offloads}" "$(seen qlen_bytes.max)" -lt 40000
			between "utilisation over t$n${offloads:+, offloads}" "$(seen utilisation)" 0.9 1
		done
		teardown
	done
}
declare_test overlays "H19" "VXLAN, Geneve, GRE and IPIP over IPv4 and IPv6, with and without offloads: at 1 Gb/s less than 20 kB wait"

conntrack()
{
	local ns

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	# connection tracking on both hosts, which drop packets in state invalid
	dumbbell 1 100us
	node sw egress 1gbit
	for ns in h1 r; do
		in_ns "$ns" nft -f - <<-'END' || fail "nft"
			table inet t {
				chain in { type filter hook input priority 0; ct state invalid drop; }
				chain out { type filter hook output priority 0; ct state invalid drop; }
			}
		END
	done
	serve r
	send --size 5M
	expect "control between tracking hosts" "$(flow_field cc)" = hpccpp
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 20
	# ... and on the router between them, which drops the probes
	in_ns sw nft -f - <<-'END' || fail "nft"
		table inet t {
			chain f { type filter hook forward priority 0; ct state invalid counter drop; }
		}
	END
	send --size 5M
	expect "control through a tracking router" "$(flow_field cc)" = hpccpp_reno
	expect "goodput through it, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 800
	expect "packets that it dropped" "$(in_ns sw nft -j list ruleset | jq '[.. | .counter? // empty | .packets] | add')" -ge 4
}
declare_test conntrack "H17 H18" "dropping ct state invalid: no effect on the hosts; on a router fallback, and the transfer is unharmed"

# firewalled NS [RULE]: packets enter and leave NS only if conntrack knows them, or by the rule
firewalled()
{
	in_ns "$1" nft -f - <<-END || fail "nft"
		table inet t {
			chain in { type filter hook input priority 0; policy drop; iif lo accept; ct state new,established,related accept; ${2:+$2;} }
			chain out { type filter hook output priority 0; policy drop; oif lo accept; ct state new,established,related accept; ${2:+$2;} }
		}
	END
}

stateful()
{
	local who

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	for who in r h1; do
		dumbbell 1 100us
		node sw egress 1gbit
		firewalled "$who"
		serve r
		send --size 5M
		expect "control, firewall at $who" "$(flow_field cc)" = hpccpp_reno
		if [ "$who" = r ]; then
			expect "answers" "$(counter r int_reflector Answered)" -eq 0
		else
			expect "probes that were not sent" "$(counter h1 hpccpp Unsent)" -ge 4
			expect "probes" "$(counter h1 hpccpp Probes)" -eq 0
		fi
		in_ns "$who" nft flush ruleset
		firewalled "$who" "ct state untracked ip dscp 23 accept"
		send --size 5M
		expect "control with the rule of tcp_hpccpp(7), firewall at $who" "$(flow_field cc)" = hpccpp
		teardown
	done
}
declare_test stateful "H17 H18" "a stateful firewall that accepts tracked packets only: counted as unsent; one rule lets probes through"

# publish: over a dumbbell of one host, port 80 of r is its port 5201, by NAT
publish()
{
	dumbbell 1 100us
	node sw egress 1gbit
	in_ns r nft -f - <<-'END' || fail "nft"
		table inet nat { chain pre {
			type nat hook prerouting priority -100;
			tcp dport 80 dnat ip to 10.0.0.1:5201
			tcp dport 80 dnat ip6 to [fd00:0::1]:5201
		}; }
	END
	serve r
}

translated()
{
	local to

	needs_virtual
	command -v nft >/dev/null || skip "no nft"
	# the sender's own address is translated
	dumbbell 1 100us
	node sw egress 1gbit
	in_ns h1 nft -f - <<-'END' 2>/dev/null || skip "no NAT in this kernel"
		table inet nat { chain post { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }
	END
	in_ns h1 ip addr add 10.0.9.1/32 dev lo
	in_ns h1 ip addr add fd00:9::1/128 dev lo nodad
	in_ns h1 ip route replace default via 10.0.1.254 src 10.0.9.1
	in_ns h1 ip route replace default via fd00:1::254 src fd00:9::1
	serve r
	capture sw p1 "$TMP/p.pcap"
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 1M
		expect "control with a translated address, to $to" "$(flow_field cc)" = hpccpp_reno
	done
	stop_captures
	expect "packets with the address from before" "$(count "$TMP/p.pcap" 'ip.src == 10.0.9.1 || ipv6.src == fd00:9::1')" -eq 0
	expect "probes" "$(counter h1 hpccpp Probes)" -eq 0
	expect "connections counted" "$(counter h1 hpccpp Translated)" -eq 2
	# NAT that has nothing to translate
	in_ns h1 ip route replace default via 10.0.1.254
	send --size 1M
	expect "control with an address that stays" "$(flow_field cc)" = hpccpp
	teardown
	# a published port at the receiver: probes are to no socket that it knows, and TCP does not see them
	for to in 10.0.0.1 "[fd00:0::1]"; do
		publish
		trace_on tcp/tcp_receive_reset
		TO=$to:80 send --duration 1s
		trace_off "$TMP/trace"
		expect "control to a published port, $to" "$(flow_field cc)" = hpccpp_reno
		expect "probes counted there, $to" "$(counter r int_reflector NoSocket)" -ge 2
		expect "RSTs that TCP took from there, $to" "$(grep -c tcp_receive_reset "$TMP/trace")" -eq 0
		capture h1 eth0 "$TMP/h.pcap" tcp
		TO=$to:80 send --size 1M
		stop_captures
		expect "control of the next connection, $to" "$(flow_field cc)" = hpccpp_reno
		expect "RSTs to its client, $to" "$(count "$TMP/h.pcap" 'tcp.flags.reset == 1 && tcp.srcport == 80')" -eq 0
		teardown
	done
	# ... by a host without the reflector: the first RST is the last
	for to in 10.0.0.1 "[fd00:0::1]"; do
		modprobe -r int_reflector
		publish
		trace_on tcp/tcp_receive_reset
		TO=$to:80 send --duration 1s
		trace_off "$TMP/trace"
		expect "control, without the reflector, $to" "$(flow_field cc)" = hpccpp_reno
		expect "probes, without the reflector, $to" "$(counter h1 hpccpp Probes)" -le 2
		expect "connections counted, $to" "$(counter h1 hpccpp Refused)" -eq 1
		expect "RSTs that TCP took, $to" "$(grep -c tcp_receive_reset "$TMP/trace")" -eq 0
		teardown
	done
}
declare_test translated "H17 H18" "NAT: no probe leaves with an address that is translated; a published port sends no RST, and a host without the reflector one"

# esp NS MINE PEER SPI SPI: all between the two addresses must be ESP in transport mode
esp()
{
	local key=0x0123456789abcdef0123456789abcdef01234567

	ip -n "$NSP$1" -batch - <<-END || skip "no ESP"
		xfrm state add src $2 dst $3 proto esp spi $4 mode transport aead rfc4106(gcm(aes)) $key 128
		xfrm state add src $3 dst $2 proto esp spi $5 mode transport aead rfc4106(gcm(aes)) $key 128
		xfrm policy add src $2 dst $3 dir out tmpl src $2 dst $3 proto esp mode transport
		xfrm policy add src $3 dst $2 dir in tmpl src $3 dst $2 proto esp mode transport
	END
}

# answered N: has r answered so many probes?
answered()
{
	[ "$(counter r int_reflector Answered)" -ge "$1" ]
}

# secured V DELAY: h1 and r, $h and $r, with IPv4 or IPv6, whose policies demand ESP
secured()
{
	h=10.0.1.1 r=10.0.0.1
	[ "$1" = 4 ] || h=fd00:1::1 r=fd00:0::1
	dumbbell 1 "$2"
	shape 1gbit
	esp h1 "$h" "$r" 0x100 0x200
	esp r "$r" "$h" 0x200 0x100
	serve r
}

ipsec()
{
	local v who h r sent came unsent

	needs_virtual
	for v in 4 6; do
		secured "$v" 200us
		capture sw egress "$TMP/s.pcap" "host $h"
		TO=$r send --size 1M
		sleep 0.1
		stop_captures
		expect "IPv$v: ESP packets" "$(count "$TMP/s.pcap" esp)" -ge 100
		expect "IPv$v: TCP in the clear" "$(count "$TMP/s.pcap" 'tcp && !esp')" -eq 0
		expect "IPv$v: answers" "$(counter r int_reflector Answered)" -ge 1
		expect "IPv$v: responses accepted" "$(counter h1 hpccpp Accepted)" -ge 1
		teardown
	done
	# a host whose key goes: nothing leaves it, and what does not leave is not counted as sent
	for v in 4 6; do
		for who in h1 r; do
			# acknowledgements that are on their way bring the next probes
			secured "$v" 100ms
			in_ns h1 flowgen long --to "$r" --cc hpccpp --flows 4 --duration 5s >"$TMP/flow.json" &
			wait_until answered 4
			if [ "$who" = h1 ]; then
				ip -n "${NSP}h1" xfrm state delete src "$h" dst "$r" proto esp spi 0x100
			else
				ip -n "${NSP}r" xfrm state delete src "$r" dst "$h" proto esp spi 0x200
			fi
			sleep 0.3
			sent=$(counter h1 hpccpp Probes) came=$(counter r int_reflector Answered) unsent=$(counter h1 hpccpp Unsent)
			[ "$who" = h1 ] || sent=$came came=$(counter h1 hpccpp Accepted) unsent=$(counter r int_reflector Unsent)
			expect "IPv$v: messages unsent without a key of $who" "$unsent" -ge 4
			expect "IPv$v: messages counted as sent by $who, of those that came" "$sent" -eq "$came"
			kill $!
			teardown
		done
	done
	# a receiver without the policy: its answers come in the clear
	dumbbell 1 200us
	node sw egress 1gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.2
	ip -n "${NSP}h1" xfrm policy add src 10.0.0.1 dst 10.0.1.1 dir in \
		tmpl src 10.0.0.1 dst 10.0.1.1 proto esp mode transport
	sleep 0.1
	sleep 0.2
	ip -n "${NSP}h1" xfrm policy deleteall
	wait $!
	expect "responses dropped because of policy" "$(counter h1 hpccpp Policy)" -ge 1
}
declare_test ipsec "H13 H18" "where IPsec is demanded, answers leave as ESP in both families, and others are not accepted"

in_vrf()
{
	local to

	needs_virtual
	SYSCTL=net.ipv4.conf.all.rp_filter=0 dumbbell 1 100us
	node sw egress 1gbit
	ip -n "${NSP}r" link add vrf0 type vrf table 10 || skip "no VRF in this kernel"
	ip -n "${NSP}r" link set vrf0 up
	ip -n "${NSP}r" link set eth0 master vrf0
	ip -n "${NSP}r" addr replace fd00:0::1/64 dev eth0 nodad
	ip -n "${NSP}r" neigh replace 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
	ip -n "${NSP}r" neigh replace fd00:0::254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
	ip -n "${NSP}r" route replace default via 10.0.0.254 dev eth0 table 10
	ip -n "${NSP}r" route replace default via fd00:0::254 dev eth0 table 10
	in_ns r sysctl -qw net.ipv4.tcp_l3mdev_accept=1
	serve r
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 3M
		expect "control to $to" "$(flow_field cc)" = hpccpp
	done
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 20
	expect "probes without a socket" "$(counter r int_reflector NoSocket)" -eq 0
}
declare_test in_vrf "H18" "a receiver in a VRF: a probe that is answered is not counted as one without a socket"

# --- routes ----------------------------------------------------------------------

path_change()
{
	needs_virtual
	# h1 -- a -- (b | c) -- d -- r: later, one hop of the path is replaced by another
	roomy
	local ns PLAN=1
	for ns in h1 a b c d r; do
		add_ns "$ns"
	done
	net 1 h1 eth0 a ingress 100us
	net 0 r eth0 d egress
	inner a tob b ina 10.2.1; inner a toc c ina 10.2.2; inner b tod d inb 10.2.3; inner c tod d inc 10.2.4
	route b 10.0.0.0/24 10.2.3.2; route c 10.0.0.0/24 10.2.4.2
	route b 10.0.1.0/24 10.2.1.1; route c 10.0.1.0/24 10.2.2.1
	route d 10.0.1.0/24 10.2.3.1
	route a 10.0.0.0/24 10.2.1.2 10.2.2.2
	PLAN='' build_plan
	# ECMP by ports: flows take different paths, and a flow's probes take its path
	in_ns a sysctl -qw net.ipv4.fib_multipath_hash_policy=1
	node a tob 10gbit switch-id 1
	node a toc 10gbit switch-id 1
	node b tod 10gbit switch-id 2
	node c tod 5gbit switch-id 4
	serve r
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	# the chance that all take one path is one in 2^31
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 32 --size 1M >"$TMP/flow.json" || fail "flows failed"
	trace_off "$TMP/trace"
	judged paths "$TMP/trace"
	expect "paths of 32 flows" "$(field paths <"$TMP/judged")" = 3,5
	expect "changes of a flow's path" "$(field switches <"$TMP/judged")" -eq 0
	# now the path changes during a flow
	ip -n "${NSP}a" route replace 10.0.0.0/24 via 10.2.1.2
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 40ms >"$TMP/flow.json" &
	sleep 0.02
	ip -n "${NSP}a" route replace 10.0.0.0/24 via 10.2.2.2
	wait $!
	trace_off "$TMP/trace"
	expect "first samples, one of each path" "$(results 1)" -eq 2
	expect "paths" "$(field path_id <"$TMP/trace" | uniq | paste -sd' ')" = "3 5"
	between "mean U of the last 100 samples, of a link of half the rate" "$(judge busiest "$TMP/trace" | field u)" 0.93 0.98
	expect "changes of mode" "$(grep -c hpccpp_mode "$TMP/trace")" -eq 0
}
declare_test path_change "H7 H18" "ECMP: probes take the flow's path; a new path is measured from its start, and filled"

# At the receiver, only sockets with a mark have a route back
policy_route()
{
	local v to

	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	for v in -4 -6; do
		ip "$v" -n "${NSP}r" rule add fwmark 5 table 100
		ip "$v" -n "${NSP}r" route del default
	done
	ip -n "${NSP}r" route add default via 10.0.0.254 table 100
	ip -n "${NSP}r" route add default via fd00:0::254 table 100
	MARK=5 sink
	for to in 10.0.0.1 fd00:0::1; do
		client "$to" send=1000000
		expect "answers without a route, $to" "$(counter r int_reflector Unsent)" -eq 0
	done
	expect "responses" "$(counter h1 hpccpp Accepted)" -ge 10
}
declare_test policy_route "H9" "answers take the route of the connection's own packets, also if it depends on a mark"

# Link-local addresses: the way back is the link that the probe came by.
link_local()
{
	local to steps=() i

	needs_virtual
	dumbbell 1 100us
	node sw egress 1gbit
	# another link has such a route, too
	ip -n "${NSP}r" link add other type dummy
	ip -n "${NSP}r" link set other up
	ip -n "${NSP}r" -6 route add fe80::/64 dev other metric 1
	to=$(ip -j -n "${NSP}r" -6 addr show dev eth0 scope link | jq -r '.[].addr_info[]? | .local // empty')
	# the receiver's route expires while nothing is in flight: the next packet is a probe
	for ((i = 1; i <= 10; i++)); do
		steps+=("run=ip -n ${NSP}r -6 route add fe80::/64 dev other metric $((i + 1))" send=10000 sleep=0.01)
	done
	sink
	FROM=sw client "$to%egress" send=100000 sleep=0.05 "${steps[@]}" info
	expect "answers that were not sent" "$(counter r int_reflector Unsent)" -eq 0
	expect "answers" "$(counter r int_reflector Answered)" -ge 11
	expect "responses" "$(counter sw hpccpp Accepted)" -ge $(($(counter r int_reflector Answered) - 1))
	expect "control" "$(field cc <"$TMP/client" | tail -n1)" = hpccpp
}
declare_test link_local "H9" "answers to link-local addresses leave by the link that the probes came by"

# The receiver has no way back for a while, then one again.
no_way_back()
{
	local v to look="nsenter --net=/run/netns/${NSP}r cat /proc/net/int_reflector"

	needs_virtual
	dumbbell 1 1ms
	node sw egress 1gbit
	serve r
	for v in -4 -6; do
		to=10.0.0.1
		[ "$v" = -4 ] || to=fd00:0::1
		in_ns h1 flowgen long --to "$to" --cc hpccpp --duration 1s >"$TMP/flow.json" &
		sleep 0.1
		ip "$v" -n "${NSP}r" rule add pref 1 ipproto tcp unreachable || fail "no rule"
		sleep 0.1
		expect "answers that found no way, $v" "$(counter r int_reflector Unsent)" -ge $((${v#-} / 6 + 1))
		ip "$v" -n "${NSP}r" rule del pref 1
		wait $! || fail "flow failed"
		expect "control" "$(flow_field cc)" = hpccpp
		expect "goodput, Mb/s, $v" "$(($(flow_field goodput_bps) / 1000000))" -ge 300
	done
	# the way goes while nothing is in flight: the next packet is a probe
	sink
	for v in -4 -6; do
		[ "$v" = -4 ] && to=10.0.0.1 || to=fd00:0::1
		client "$to" send=100000 sleep=0.1 "run=$look >$TMP/before" "run=ip $v -n ${NSP}r rule add pref 1 ipproto tcp unreachable" \
			send=10000 sleep=0.1 "run=$look >$TMP/after" "run=ip $v -n ${NSP}r rule del pref 1" acked
		expect "answers without a way, $v" "$(grep Answered "$TMP/after")" = "$(grep Answered "$TMP/before")"
	done
}
declare_test no_way_back "H9 H17" "a receiver without a way back for a while counts it, and the flow goes on"

probe_route()
{
	local steps=() i

	needs_virtual
	dumbbell 1 1ms
	# rules know the DSCPs of the old TOS bits everywhere, others on new kernels and with a new ip
	PARAM=$INT_HOST parameter dscp=5
	node sw egress 1gbit dscp 5
	# what has the probes' DSCP goes elsewhere
	ip -n "${NSP}h1" link add elsewhere type dummy
	ip -n "${NSP}h1" link set elsewhere up
	ip -n "${NSP}h1" route add default dev elsewhere table 200
	ip -n "${NSP}h1" rule add dsfield 0x14 table 200 || fail "no rule"
	# the socket's route expires while nothing is in flight: then the probe is sent first
	for ((i = 1; i <= 20; i++)); do
		steps+=("run=ip -n ${NSP}h1 route replace 192.0.2.0/24 via 10.0.1.254 metric $i" send=1000 sleep=0.01)
	done
	sink
	client 10.0.0.1 send=100000 sleep=0.05 "${steps[@]}" info
	expect "packets that went elsewhere" "$(in_ns h1 cat /sys/class/net/elsewhere/statistics/tx_packets)" -le 1
	expect "control" "$(field cc <"$TMP/client" | tail -n1)" = hpccpp
}
declare_test probe_route "H8 H18" "a probe's DSCP does not change the route of its flow"

path_alternates()
{
	local i

	needs_virtual
	dumbbell 1 5ms
	node sw egress 1gbit switch-id 1
	serve r
	trace_on hpccpp/hpccpp_sample hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	for ((i = 0; i < 90; i++)); do
		in_ns sw tc qdisc change dev egress root int switch-id $((i % 4000 + 1))
		sleep 0.003
	done
	wait $!
	trace_off "$TMP/trace"
	expect "first mode" "$(grep hpccpp_mode "$TMP/trace" | field cause | head -n1)" = unmeasured
	expect "mode after the last change" "$(grep hpccpp_mode "$TMP/trace" | field cause | tail -n1)" = telemetry
	expect "goodput, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 100
}
declare_test path_alternates "H16 H17" "a path that changes with every probe: fallback, not a window that stands still; HPCC++ again when it stays"

# --- an attacker -----------------------------------------------------------------

# sent TYPE KIND...: messages of these kinds that the attacker has sent, from $TMP/hostile
sent()
{
	local type=$1

	shift
	awk -v t="$type" -v k=" $* " '$1 == t && index(k, " " $2 " ") { n += $3 } END { print n + 0 }' "$TMP/hostile"
}

# gained NS FILE NAME: by how much the counter has increased since $TMP/before.NS.FILE
gained()
{
	echo $(($(counter "$1" "$2" "$3") - $(awk -v n="$3" '$1 == n { print $2 }' "$TMP/before.$1.$2")))
}

# attacked IP TO [int_hostile's -6]: runs a flow to TO while its telemetry is forged
attacked()
{
	local ip=$1 to=$2 alone goodput answered replays=replay

	shift 2
	# a message behind IPv4 options is recognised, one behind an IPv6 extension header is not
	[ "$ip" = ipv6 ] || replays="replay options"
	TO=$to send --size 26M
	alone=$(flow_field goodput_bps)
	in_ns h1 cat /proc/net/hpccpp >"$TMP/before.h1.hpccpp"
	in_ns r cat /proc/net/int_reflector >"$TMP/before.r.int_reflector"
	SNAPLEN=192 capture r eth0 "$TMP/r.pcap" "${ip/ipv6/ip6}"
	in_ns sw int_hostile "$@" 100000 0.022 >"$TMP/hostile" &
	TO=$to send --size 26M
	wait $!
	stop_captures
	goodput=$(flow_field goodput_bps)
	cat "$TMP/hostile"
	in_ns h1 cat /proc/net/hpccpp
	in_ns r cat /proc/net/int_reflector
	# the switch looks at what it stamps: it does so before the attacker, too
	expect "malformed at the switch" "$(in_ns sw tc -s -j qdisc show dev egress | jq '[.[].malformed // 0] | add')" -ge \
		"$(($(sent probe truncated overlong) * 8 / 10))"
	expect "forged messages" "$(sent probe replay cookie checksum truncated overlong flow future sequence options fragment)" -ge 700
	between "goodput under attack / alone" "$(awk -v a="$goodput" -v b="$alone" 'BEGIN { printf "%.4f", a / b }')" 0.99 1.01
	expect "control under attack" "$(flow_field cc)" = hpccpp
	# each kind has its own counter. Copies that race with the real message, or arrive when the
	# flow ends, may be counted elsewhere.
	near "probes with a wrong checksum" "$(gained r int_reflector Checksum)" "$(sent probe checksum)"
	near "malformed at the receiver" "$(gained r int_reflector Malformed)" "$(sent probe truncated overlong)"
	near "probes of a wrong flow" "$(gained r int_reflector NoSocket)" "$(sent probe flow)"
	near "probes out of the window" "$(gained r int_reflector Sequence)" "$(sent probe sequence)"
	near "responses with a wrong checksum" "$(gained h1 hpccpp Checksum)" "$(sent response checksum)"
	near "malformed at the sender" "$(gained h1 hpccpp Malformed)" "$(sent response truncated overlong)"
	near "responses of a wrong flow" "$(gained h1 hpccpp NoSocket)" "$(sent response flow)"
	# answers to forged probes have a wrong cookie, or are too late
	answered=$(gained r int_reflector Answered)
	near "wrong cookies" "$(gained h1 hpccpp Cookie)" "$(($(sent response cookie future) + $(sent probe cookie future)))"
	# shellcheck disable=SC2086 # words
	near "replays" "$(gained h1 hpccpp Stale)" "$(($(sent response $replays) + $(sent probe $replays)))"
	expect "responses accepted, of probes sent" "$(gained h1 hpccpp Accepted)" -le "$(gained h1 hpccpp Probes)"
	# the receiver sends only answers to the flow's peer, one per probe and no longer than it
	expect "responses sent" "$(count "$TMP/r.pcap" "int.type == 2 && $ip.src == $to")" -eq "$answered"
	expect "responses to others, or longer than probes" "$(packets "$TMP/r.pcap" "int.type == 2 && $ip.src == $to" "$ip.dst" tcp.srcport tcp.dstport frame.len | sort -u | wc -l)" -eq 1
}

# near WHAT GOT WANT: equal to within 5 % plus 5
near()
{
	between "$1" "$2" $(($3 * 95 / 100 - 5)) $(($3 * 105 / 100 + 5))
}

not_dropped()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 1gbit
	serve r
	trace_on skb/kfree_skb
	send --size 3M
	trace_off "$TMP/trace"
	expect "answers" "$(counter r int_reflector Answered)" -ge 100
	expect "packets that netfilter drops" "$(grep -c NETFILTER_DROP "$TMP/trace")" -eq 0
	expect "messages that TCP discards" "$(grep -c TCP_FLAGS "$TMP/trace")" -eq 0
}
declare_test not_dropped "H20" "probes and responses that are handled are not reported as dropped packets"

# odd_message [NS FROM TO]: NS sends the headers of a message, and no valid message; by default r does, to h1. The hook
# there counts it.
odd_message()
{
	in_ns "${1:-r}" python3 -I - "${2:-10.0.0.1}" "${3:-10.0.1.1}" <<-'END' || fail "r cannot send"
		import socket, struct, sys
		addresses = b"".join(map(socket.inet_aton, sys.argv[1:]))
		packet = struct.pack("!BBHHHBBH8s", 0x45, 23 << 2, 60, 0, 0, 64, 6, 0, addresses)
		packet += struct.pack("!HHIIBBHHH", 5201, 40000, 0, 0, 5 << 4, 8, 0, 0, 0) + bytes(20)
		socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).sendto(packet, (sys.argv[2], 0))
	END
	sleep 0.01
}

# hook_sees N WHEN: h1 sends an odd message; then the receiver's hook has seen N of them, the switch none
hook_sees()
{
	odd_message h1 10.0.1.1 10.0.0.1
	expect "messages that the receiver's hook saw $2" "$(counter r int_reflector Malformed)" -eq "$1"
	expect "messages that a hook of the switch saw $2" "$(counter sw int_reflector Malformed)" -eq 0
}

old_format()
{
	local to

	needs_virtual	# as hook_goes
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	hook_sees 1 "before the first probe"
	# without the old format: no hook, and IFA all the same
	wait_until modprobe -r int_reflector
	modprobe int_reflector old_format=0 || fail "int_reflector old_format=0"
	sleep 67
	hook_sees 0 "with old_format=0"
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 3M
		expect "control of the old format, to $to" "$(flow_field cc)" = hpccpp_reno
	done
	parameter format=1
	sleep 67
	for to in 10.0.0.1 fd00:0::1; do
		TO=$to send --size 3M
		expect "control of IFA, to $to" "$(flow_field cc)" = hpccpp
	done
	expect "connections that left IFA" "$(counter h1 hpccpp OldFormat)" -eq 0
	hook_sees 0 "after probes of IFA"
	odd_message
	expect "messages that the sender's hook saw" "$(counter h1 hpccpp Malformed)" -eq 0
	modprobe -r int_reflector
}
declare_test old_format "H9 H21" "old_format=0: a receiver has no hook, answers IFA and not the old format; nor has a sender of IFA"

hook_goes()
{
	needs_virtual	# it stays for a minute; Linux lets a timer of that be 5 s late
	wait_until modprobe -r int_reflector
	dumbbell 1 100us
	serve r
	odd_message
	expect "before the first connection: messages that the hook saw" "$(counter h1 hpccpp Malformed)" -eq 0
	send --size 1M
	expect "control, without a node" "$(flow_field cc)" = hpccpp_reno
	in_ns h1 python3 -I -c 'import socket, time
s = socket.socket()
s.setsockopt(6, 13, b"hpccpp")
s.connect(("10.0.0.1", 5201))
time.sleep(70)' &
	sleep 67
	odd_message
	expect "... while there is one" "$(counter h1 hpccpp Malformed)" -eq 1
	wait $!
	sleep 67
	odd_message
	expect "... 67 s after the last one" "$(counter h1 hpccpp Malformed)" -eq 1
	modprobe int_reflector
	node sw egress 1gbit
	send --size 1M
	expect "control of a later one" "$(flow_field cc)" = hpccpp
	odd_message
	expect "messages that the hook saw then" "$(counter h1 hpccpp Malformed)" -eq 2
}
declare_test hook_goes "H9" "the hook for responses goes a minute after the namespace's last connection, and comes back with the next"

# forged WORD...: forge.py sends a probe, see there
forged()
{
	local line

	echo "$*" >&"${FORGE[1]}"
	read -r -u "${FORGE[0]}" line || fail "forge.py"
	sleep 0.01
}

# What holds for a connection's data holds for its probes, in both formats
policy()
{
	local line kind n=0

	needs_virtual
	dumbbell 1 100us
	in_ns r python3 -I "$LIB/forge.py" serve 5299 60 &
	wait_until listening r 5299
	coproc FORGE { in_ns h1 python3 -I "$LIB/forge.py" 10.0.0.1 5299; }
	read -r -u "${FORGE[0]}" line || fail "forge.py"
	forged 64 elsewhere
	forged 64 bad
	in_ns r nft -f - <<-'END' || fail "nft"
		table ip t {
			chain pre { type filter hook prerouting priority -150; ip ttl 62 drop; }
			chain in { type filter hook input priority 0; ip ttl 61 drop; }
		}
	END
	forged 62 bad
	expect "answers to forged probes" "$(counter r int_reflector Answered)" -eq 0
	for kind in "" " ifa"; do
		forged "64$kind"
		forged "63$kind"
		forged "62$kind"
		forged "61$kind"
		forged "60$kind"
		n=$((n + 1))
		expect "answers that nft's rules and IP_MINTTL allow$kind" "$(counter r int_reflector Answered)" -eq $((2 * n))
		expect "probes that IP_MINTTL forbids$kind" "$(counter r int_reflector Policy)" -eq "$n"
	done
	in_ns r sysctl -qw net.ipv4.conf.eth0.rp_filter=1
	ip -n "${NSP}r" -batch - <<-'END'
		link add d0 up type dummy
		route add 10.0.1.1/32 dev d0
	END
	forged 64
	forged "64 ifa"
	expect "answers to probes by another device than the route's, with rp_filter" "$(counter r int_reflector Answered)" -eq $((2 * n))
}
declare_test policy "H9 H18 H21" "nft's rules, IP_MINTTL and rp_filter hold for probes of both formats; forged ones are not answered"

# Packets of protocol 253 with odd lengths, headers and metadata, to a flow's receiver
ifa_odd()
{
	needs_virtual
	load format=1
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 100ms >"$TMP/flow.json" &
	in_ns sw python3 -I - <<-'END' || fail "sw cannot send"
		import random, socket, time
		rnd = random.Random(1)
		raw = {"10.0.0.1": socket.socket(socket.AF_INET, socket.SOCK_RAW, 253),
		       "fd00:0::1": socket.socket(socket.AF_INET6, socket.SOCK_RAW, 253)}
		for to, sock in raw.items():
		    if ":" in to:
		        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 23 << 2)
		    else:
		        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 23 << 2)
		for number in range(3000):
		    time.sleep(0.00002)
		    for to, sock in raw.items():
		        words = rnd.choice((0, 8, 16, rnd.randrange(256)))
		        ports = (5201).to_bytes(2, "big") + (5201).to_bytes(2, "big")
		        tcp = ports + rnd.randbytes(8) + bytes([0x50, 8]) + rnd.randbytes(6)
		        message = b"INT1" + bytes([rnd.choice((1, 2, 3)), rnd.choice((0, 0, 5, 15)), 0, 0]) + rnd.randbytes(20)
		        packet = bytes([0x2f, 6, 0, rnd.randrange(256)]) + tcp + bytes([255, 0, rnd.randrange(256), words]) \
		            + rnd.randbytes(4 * words) + message
		        if number % 3 == 0:
		            packet = packet[:rnd.randrange(1, len(packet))]
		        if number % 7 == 0:
		            packet = rnd.randbytes(len(packet))
		        try:
		            sock.sendto(packet, (to, 0))
		        except OSError as error:
		            raise SystemExit(f"{len(packet)} bytes: {error}")
	END
	wait $!
	expect "control" "$(flow_field cc)" = hpccpp
	expect "answers to what was no probe" "$(counter r int_reflector Answered)" -le "$(counter h1 hpccpp Probes)"
	expect "malformed ones" "$(counter r int_reflector Malformed)" -ge 500
	expect "ones of no connection" "$(counter r int_reflector NoSocket)" -ge 500
	expect "connections that left IFA" "$(counter h1 hpccpp OldFormat)" -eq 0
}
declare_test ifa_odd "H13 H21" "6,000 packets of protocol 253 with odd lengths, headers and metadata: counted, not answered, and the flow goes on"

hostile()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	attacked ip 10.0.0.1
	attacked ipv6 fd00:0::1 -6
	# limited: at a rate of 64, the bucket's depth of 1/64 s allows one answer
	PARAM=$REFLECTOR parameter max_rate=64
	in_ns r cat /proc/net/int_reflector >"$TMP/before.r.int_reflector"
	send --size 5M
	expect "answers in 5 ms at 64 per second" "$(gained r int_reflector Answered)" -le 3
	expect "refused" "$(gained r int_reflector OverRate)" -ge 1
}
declare_test hostile "H9 H13" "100,000 forged messages per second, IPv4 and IPv6: counted by reason, the rate stays, no third party gets a message"

# --- bottlenecks that do not stamp ---------------------------------------------------

# unstamped KIND PLACE [RTT]: h1 -- s1 -- s2 -- r, with a node of 1 Gb/s (red: 10 Gb/s), and, "before" or
# "behind" it, a bottleneck of a tenth of that which does not stamp: a policer, a tail-drop queue,
# CoDel that marks, or RED that marks from a queue of 20 packets on
unstamped()
{
	local node=s1 limit=s2

	[ "$2" = behind ] || { node=s2; limit=s1; }
	case $1 in
	policer)
		chain 2 "${3:-5ms}"
		node "$node" egress 1gbit
		in_ns "$limit" tc qdisc add dev ingress clsact &&
			in_ns "$limit" tc filter add dev ingress ingress pref 1 matchall action police \
				rate 100mbit burst 60k conform-exceed drop/ok || fail "no policer" ;;
	fifo)
		chain 2 5ms
		node "$node" egress 1gbit
		shaper "$limit" egress 100mbit
		in_ns "$limit" tc qdisc add dev egress parent 1:1 handle 2: pfifo limit 50 ;;
	codel)
		chain 2 5ms
		node "$node" egress 1gbit
		shaper "$limit" egress 100mbit
		in_ns "$limit" tc qdisc add dev egress parent 1:1 handle 2: codel limit 1000 ecn || fail "no codel" ;;
	red)
		chain 2 1ms
		node "$node" egress 10gbit
		shaper "$limit" egress 1gbit
		in_ns "$limit" tc qdisc add dev egress parent 1:1 handle 2: red limit 3000000 min 30280 \
			max 30281 avpkt 1514 burst 20 probability 1 bandwidth 1gbit ecn || fail "no red" ;;
	esac
	every sysctl -qw net.ipv4.tcp_ecn=1
	serve r --cc dctcp
	LIMITED=$limit
}

# together SECONDS CONTROL...: one flow each from h1 to r. Leaves what they retransmitted in
# RETRANS, and their Mb/s in MBPS
together()
{
	local seconds=$1 i=0 cc before

	shift
	before=$(retransmitted)
	for cc; do
		in_ns h1 flowgen long --to 10.0.0.1 --cc "$cc" --duration "${seconds}s" >"$TMP/flow.$i" &
		i=$((i + 1))
	done
	# shellcheck disable=SC2046 # numbers
	wait $(jobs -p | tail -n $#)
	RETRANS=$(($(retransmitted) - before)) MBPS=()
	for ((i = 0; i < $#; i++)); do
		MBPS+=("$(jq -rs 'map(select(.type == "flow"))[0].goodput_bps / 1e6 | round' "$TMP/flow.$i")")
	done
	echo "$*: ${MBPS[*]} Mb/s, $RETRANS retransmissions"
}

retransmitted()
{
	in_ns h1 nstat -asz TcpRetransSegs | awk '/Tcp/ { print $2 }'
}

# sent_segments: h1's, since nstat -n
sent_segments()
{
	in_ns h1 nstat -s TcpOutSegs | awk '/Tcp/ { print $2 }'
}

# as_reno KIND RIVAL [PLACE]: in such a bottleneck hpccpp loses what Reno loses, and leaves RIVAL its share
as_reno()
{
	local place reno

	needs_virtual
	for place in ${3:-before behind}; do
		echo "# $1 $place the node"
		unstamped "$1" "$place"
		together 4 reno
		reno=$RETRANS
		RATE=${MBPS[0]}
		trace_on hpccpp/hpccpp_mode
		together 4 hpccpp
		trace_off "$TMP/trace"
		expect "causes of fallbacks" "$(field cause <"$TMP/trace" | paste -sd' ')" = unstamped
		expect "fallbacks as unstamped, counted" "$(counter h1 hpccpp Unstamped)" -eq 1
		expect "retransmissions, Reno's $reno" "$RETRANS" -le $((2 * reno))
		expect "Mb/s, Reno's $RATE" "${MBPS[0]}" -ge $((RATE * 8 / 10))
		together 4 hpccpp "$2"
		expect "Mb/s, of twice $2's" "${MBPS[0]}" -le $((2 * MBPS[1]))
		teardown
	done
}

unstamped_policer()
{
	as_reno policer cubic
}
declare_test unstamped_policer "H17" "a policer before or behind a node: hpccpp runs as Reno, also beside CUBIC"

unstamped_receiver()
{
	load receiver_based=1 base_rtt_ns=5000000
	PARAM=$REFLECTOR parameter base_rtt_ns=5000000
	as_reno policer cubic before
	unstamped policer before
	together 1 hpccpp
	expect "windows from the receiver" "$(counter r int_reflector Window)" -ge 10
	PARAM=$REFLECTOR parameter base_rtt_ns=0
}
declare_test unstamped_receiver "H12 H17" "the same where the receiver computes the window, and answers carry no telemetry"

unstamped_fifo()
{
	as_reno fifo cubic
}
declare_test unstamped_fifo "H17" "a tail-drop queue before or behind a node: hpccpp runs as Reno, also beside CUBIC"

unstamped_red()
{
	local i

	as_reno red dctcp
	unstamped red behind
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" &
	sleep 0.3
	for ((i = 0; i < 30; i++)); do
		sleep 0.02
		in_ns s2 tc -s -j qdisc show dev egress
	done >"$TMP/shown"
	jq 'map(select(.kind == "red"))[0].qlen' "$TMP/shown" | sort -n >"$TMP/queue"
	wait $!
	echo "queue, packets: $(paste -sd' ' "$TMP/queue")"
	expect "longest queue, packets" "$(tail -n 1 "$TMP/queue")" -le 60
}
declare_test unstamped_red "H17" "RED that marks before or behind a node: hpccpp runs as DCTCP, also beside it"

# Bursts of 64 kB (TSO) cross the threshold although no queue stands. Those of two flows lock in: one stays at a fifth
# of the other's rate.
unstamped_bursts()
{
	local dctcp

	needs_virtual
	OFFLOADS=1
	unstamped red behind
	tc -n "${NSP}h1" qdisc add dev eth0 root tbf rate 10gbit burst 1600 limit 64mb || fail "no tbf"
	in_ns s2 ethtool -K egress tso off
	in_ns r ethtool -K eth0 gro on
	together 4 dctcp
	dctcp=${MBPS[0]}
	together 4 hpccpp
	expect "fallbacks as unstamped, counted" "$(counter h1 hpccpp Unstamped)" -eq 1
	expect "Mb/s, alone, 1.3 times DCTCP's $dctcp" "${MBPS[0]}" -ge $((13 * dctcp / 10))
	together 4 hpccpp dctcp
	# Bursts lock in by the phase: 0.26 to 1.07, DCTCP beside DCTCP 0.29 to 4.4. CUBIC gets 0.03.
	expect "Mb/s, of a fifth of DCTCP's" "${MBPS[0]}" -ge $((MBPS[1] / 5))
	expect "Mb/s, of twice DCTCP's" "${MBPS[0]}" -le $((2 * MBPS[1]))
}
declare_test unstamped_bursts "H17" "RED that marks, and hosts that send 64 kB at once: hpccpp uses more of the link than DCTCP, and is not starved beside it"

# It marks a packet now and then, on which CUBIC cuts by 30 %.
unstamped_codel()
{
	as_reno codel cubic behind
}
declare_test unstamped_codel "H17" "CoDel that marks behind a node: hpccpp runs as Reno, also beside CUBIC"

# Each flow finds out by itself.
unstamped_flows()
{
	local reno

	needs_virtual
	unstamped policer before
	together 4 reno reno reno reno
	reno=$RETRANS
	together 4 hpccpp hpccpp hpccpp hpccpp
	expect "probes of 4 flows of 800 RTTs" "$(counter h1 hpccpp Probes)" -le 130
	expect "fallbacks as unstamped, counted" "$(counter h1 hpccpp Unstamped)" -ge 4
	expect "retransmissions, Reno's $reno" "$RETRANS" -le $((2 * reno))
}
declare_test unstamped_flows "H17" "four flows behind a policer lose no more than twice what four of Reno's do"

# The records allow 40 times the window that the queue has room for.
unstamped_first()
{
	local reno

	needs_virtual
	unstamped fifo before
	together 1 reno reno reno reno
	reno=$RETRANS
	sleep 0.2	# the queue of the flows before empties
	together 1 hpccpp hpccpp hpccpp hpccpp
	expect "retransmissions, Reno's $reno" "$RETRANS" -le $((2 * reno))
}
declare_test unstamped_first "H17" "four flows that start in a tail-drop queue lose no more than twice what four of Reno's do"

# Paced packets find a policer's bucket empty less often than CUBIC's bursts do: Reno that sch_fq paces takes 3.5 times
# what CUBIC gets.
unstamped_share()
{
	needs_virtual
	unstamped policer before
	together 4 hpccpp hpccpp hpccpp hpccpp cubic cubic cubic cubic
	expect "Mb/s of four, CUBIC's twice" $((MBPS[0] + MBPS[1] + MBPS[2] + MBPS[3])) -le $((2 * (MBPS[4] + MBPS[5] + MBPS[6] + MBPS[7])))
}
declare_test unstamped_share "H17" "four flows beside four of CUBIC behind a policer: at most twice their rate"

# The bucket lets bursts pass as fast as the node does, which its records show, and the losses of a burst
# end it: a timeout follows, and then some clean packets.
unstamped_short()
{
	local rtt reno

	needs_virtual
	for rtt in 2us 100us; do
		unstamped policer before "$rtt"
		together 2 reno
		reno=$((1000 * RETRANS / $(sent_segments)))
		in_ns h1 nstat -n
		together 2 hpccpp
		expect "fallbacks as unstamped, RTT $rtt" "$(counter h1 hpccpp Unstamped)" -ge 1
		# not their number: Reno sends a tenth of what hpccpp does
		expect "retransmissions per 1000 segments, RTT $rtt, Reno's $reno" $((1000 * RETRANS / $(sent_segments))) -le $((2 * reno))
		teardown
	done
}
declare_test unstamped_short "H17" "a policer, and an RTT of 2 and 100 us: fallback, and no larger share of retransmissions than twice Reno's"

# The limit goes after a second: Reno's window grows until the node is the bottleneck.
unstamped_return()
{
	needs_virtual
	unstamped policer behind
	trace_on hpccpp/hpccpp_mode
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 6s --interval 500ms >"$TMP/flow.json" &
	sleep 1
	in_ns "$LIMITED" tc filter del dev ingress ingress pref 1 || fail "no policer to remove"
	wait $!
	trace_off "$TMP/trace"
	expect "causes" "$(field cause <"$TMP/trace" | paste -sd' ')" = "unstamped telemetry"
	expect "control in the end" "$(flow_field cc)" = hpccpp
	expect "returns, counted" "$(counter h1 hpccpp Returns)" -eq 1
	expect "goodput of the whole flow, Mb/s" "$(flow_field 'goodput_bps / 1e6')" -ge 450
}
declare_test unstamped_return "H17" "when the unstamped limit goes, hpccpp returns"

# The format lacks the rate: the node stamps 100 Mb/s. 95 % of 200 Mb/s, and slow start.
between_rates()
{
	needs_virtual
	dumbbell 1 10ms
	node sw egress 200mbit
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --size 6M >"$TMP/flow.json" || fail "flow failed"
	expect "Mb/s of 6 MB" "$(flow_field 'goodput_bps / 1e6')" -ge 145
}
declare_test between_rates "H4 H6" "a rate that the format lacks: one flow uses all of it, not the next lower rate"

# A response is for data that still waits when it arrives: of 14 packets four wait after the first window.
few_probes()
{
	needs_virtual
	dumbbell 1 10ms
	node sw egress 1gbit
	serve r
	in_ns h1 flowgen rpc --push --size 20k --rate 20 --periodic --requests 20 --to 10.0.0.1 --cc hpccpp \
		>"$TMP/flow.json" || fail "requests failed"
	expect "probes of 20 requests" "$(counter h1 hpccpp Probes)" -le 22
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 1s >"$TMP/flow.json" || fail "flow failed"
	expect "probes of a flow of 100 RTTs, and those" "$(counter h1 hpccpp Probes)" -ge 90
}
declare_test few_probes "H8" "a request of a few packets is worth one probe; a long flow probes each RTT"

# Losses at a node, however many: its queue explains them.
stamped_losses()
{
	needs_virtual
	dumbbell 8 100us
	node sw egress 1gbit
	in_ns sw tc qdisc change dev egress parent 2:1 bfifo limit 60000
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --flows 32 --duration 1s >"$TMP/flow.json" || fail "flows failed"
	expect "retransmissions" "$(retransmitted)" -ge 10
	expect "fallbacks" "$(counter h1 hpccpp Fallbacks)" -eq 0
}
declare_test stamped_losses "H17" "losses at a node are no reason to fall back"

run_tests "$@"
