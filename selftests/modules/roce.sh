#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# roce_rcm: congestion management for soft-RoCE, as its packets show it.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/rdma.sh
. "$LIB/rdma.sh"

DEBUGFS=$RCM_DEBUGFS
PARAM=$RCM_PARAM

command -v rocegen >/dev/null || skip_all "no rocegen (needs libibverbs-dev)"
modprobe -r roce_rcm 2>/dev/null
modprobe roce_rcm || skip_all "no module roce_rcm"

# --- namespaces ------------------------------------------------------------

# Each namespace has its own devices. The kernel creates all of them in the first one and
# they are moved afterwards. The mode can only be changed while there are no other
# namespaces, so this is the first test.
exclusive()
{
	local h op

	needs_virtual
	[[ $KERNEL_RELEASE != [1-6].* ]] || skip "soft-RoCE knows no network namespaces before 7.x"
	load
	wait_until rdma system set netns exclusive
	# A connection whose last packets are still on their way keeps its namespace until it
	# times out, after 107 s, and the namespace keeps the mode
	trap 'sleep 0.1; teardown; WAIT=300 wait_until rdma system set netns shared' EXIT
	dumbbell 1 20us
	for h in r h1; do
		roce_line "$h" eth0 1gbit
		roce_device "$h"
		rdma dev set "$NSP$h" netns "$NSP$h" || fail "no device of its own for $h"
	done
	expect "devices that h1 has" "$(in_ns h1 rdma link | awk '{ print $2 }')" = "${NSP}h1/1"
	roce_serve r
	mark_all
	for op in send uc-write ud-send; do
		roce h1 "$op" --duration 20ms
		V=6 LOG="$op" roce h1 "$op" --duration 20ms
	done
	expect "flows that ended well" "$(cat "$TMP"/*.json | jq -r .status | grep -cx ok)" -eq 4
	expect "CNPs taken" "$(rcm_counter cnp_handled)" -ge 100
	expect "packets held back" "$(rcm_counter paced)" -gt 0
}
declare_test exclusive "R11" "RDMA devices that only their own network namespace sees (rdma system: exclusive)"

# --- programs --------------------------------------------------------------

# rocegen_refused PATTERN ARGUMENT...: exit status 2, one line on stderr that matches, nothing else
rocegen_refused()
{
	local status=0

	timeout 20 rocegen "${@:2}" >"$TMP/out" 2>"$TMP/err" || status=$?
	[ "$status" -eq 2 ] && [ ! -s "$TMP/out" ] && [ "$(wc -l <"$TMP/err")" -eq 1 ] &&
		grep -qF -- "$1" "$TMP/err" ||
		fail "rocegen ${*:2}: status $status, said '$(<"$TMP/err")', expected 2 and '$1'"
}

rocegen_usage()
{
	local one=(--dev x --to y --messages 1)

	rocegen_refused "say what to do"
	rocegen_refused "unknown option '--frob'" --frob
	rocegen_refused "'fly' is not serve, send" fly "${one[@]}"
	rocegen_refused "needs --dev" serve
	rocegen_refused "--qps has no place in serve" serve --dev x --qps 3
	rocegen_refused "'extra' is one argument too many" serve --dev x extra
	rocegen_refused "needs --to" send --dev x --messages 1
	rocegen_refused "one of --duration and --messages" send --dev x --to y
	rocegen_refused "one of --duration and --messages" send "${one[@]}" --duration 1ms
	rocegen_refused "--size needs a value" send "${one[@]}" --size
	rocegen_refused "out of range (1 to 256Mi)" send "${one[@]}" --size 257Mi
	rocegen_refused "out of range (more than 0)" send --dev x --to y --duration 0
	rocegen_refused "from 1 to 4096" send "${one[@]}" --qps 4097
	rocegen_refused "--both takes" send "${one[@]}" --both
	rocegen_refused "--read-back takes" uc-write "${one[@]}" --read-back
	rocegen_refused "exclude each other" write "${one[@]}" --both --read-back
	rocegen --help >"$TMP/out" || fail "no --help"
	grep -q -- "--read-back" "$TMP/out" || fail "an option is not in --help"
}
declare_test rocegen_usage "" "rocegen refuses an invalid argument in one line"

pingpong()
{
	local v

	needs_virtual
	roce_dumbbell 1 1gbit 20us
	for v in 4 6; do	# of RoCE; the programs meet over IPv4
		in_ns r ibv_rc_pingpong -e -d "${NSP}r" -g "$(gid r "$v")" -n 200 >/dev/null &
		wait_until listening r 18515
		in_ns h1 ibv_rc_pingpong -e -d "${NSP}h1" -g "$(gid h1 "$v")" -n 200 10.0.0.1 \
			>"$TMP/pingpong" || fail "ibv_rc_pingpong over IPv$v: $(tail -n1 "$TMP/pingpong")"
		wait $!
		grep -q '^200 iters in' "$TMP/pingpong" || fail "$(<"$TMP/pingpong")"
	done
}
declare_test pingpong "R11" "ibv_rc_pingpong -e over a router hop, IPv4 and IPv6"

rping_works()
{
	needs_virtual
	roce_dumbbell 1 1gbit 20us
	in_ns r timeout 10 rping -s -a 10.0.0.1 -C 20 >/dev/null 2>&1 &
	sleep 0.2
	in_ns h1 timeout 10 rping -c -a 10.0.0.1 -C 20 -v >"$TMP/rping" || fail "rping: $(tail -n2 "$TMP/rping")"
	expect "pings" "$(grep -c '^ping data' "$TMP/rping")" -eq 20
}
declare_test rping_works "R11" "rping (RDMA CM, READ and WRITE) over a router hop"

# perftest PROGRAM [OPTION...]: h1 to r. It reports no rates in the lab, whose processor
# has no frequency.
perftest()
{
	local args=("$@" -F -u 20)

	in_ns r timeout 300 "${args[@]}" -d "${NSP}r" -x "$(gid r)" >"$TMP/server" 2>&1 &
	wait_until listening r 18515
	in_ns h1 timeout 300 "${args[@]}" -d "${NSP}h1" -x "$(gid h1)" 10.0.0.1 \
		>"$TMP/client" 2>&1 || fail "$*: $(tail -n3 "$TMP/client")"
	wait $! || fail "$*, server: $(tail -n3 "$TMP/server")"
}

# sent HOST: bytes that its device has sent so far
sent()
{
	in_ns "$1" cat /sys/class/net/eth0/statistics/tx_bytes
}

# Of perftest's programs that sleep ib_send_bw, with FULL=1 ib_read_bw as well. Each first
# measures the processor's clock, which takes real seconds, up to a minute on a busy machine;
# so ib_read_lat and ib_atomic_bw, which also sleep, are not run.
perftest_sleeps()
{
	local before

	for_full
	command -v ib_send_bw >/dev/null || skip "no perftest"
	needs_virtual
	load
	hosts 1
	mark_all
	before=$(sent h1)
	perftest ib_send_bw -e -n 100 -s 4096 -q 2
	expect "bytes of ib_send_bw" $(($(sent h1) - before)) -ge 819200
	expect "CNPs taken" "$(rcm_counter cnp_handled)" -ge 20
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	if [ "${FULL:-}" ]; then
		before=$(sent r)
		perftest ib_read_bw -e -n 100 -s 4096
		expect "bytes of ib_read_bw" $(($(sent r) - before)) -ge 409600
	fi
	load
}
declare_test perftest_sleeps "R11" "perftest's programs that sleep (-e): ib_send_bw, marked and paced, and ib_read_bw"

# It polls whatever its options are, and in virtual time that never ends (the same holds
# for ib_send_lat and ib_write_lat).
perftest_polls()
{
	! virtual || skip "polls: no end in virtual time"
	command -v ib_write_bw >/dev/null || skip "no perftest"
	load
	hosts 1
	mark_all
	perftest ib_write_bw -n 20 -s 2048
	load
}
declare_test perftest_polls "R11" "ib_write_bw, which polls, in real time"

# --- injector --------------------------------------------------------------

# roce_packets FILE: the lines that cnp.py prints about a capture
roce_packets()
{
	python3 "$LIB/cnp.py" check "$1"
}

inject()
{
	needs_virtual
	load
	hosts 1
	capture sw egress "$TMP/in.pcap" "udp port 4791"
	capture r eth0 "$TMP/out.pcap" "udp port 4791"
	roce h1 send --messages 50 --size 32
	roce h1 ud-send --messages 50 --size 32
	echo 0 >"$PARAM"/inject
	roce h1 send --messages 50 --size 32
	echo 1 >"$PARAM"/inject
	stop_captures
	roce_packets "$TMP/in.pcap" >"$TMP/in"
	roce_packets "$TMP/out.pcap" >"$TMP/out"
	expect "packets" "$(wc -l <"$TMP/in")" -ge 150
	expect "wrong ICRCs, of the injected and the others" "$(awk '$8 != "ok"' "$TMP/in" "$TMP/out" | wc -l)" -eq 0
	expect "ECT(0) requests" "$(awk '$2 == "10.0.1.1" && $4 == 2' "$TMP/in" | wc -l)" -eq 100
	expect "requests while it is off, Not-ECT" "$(awk '$2 == "10.0.1.1" && $4 == 0' "$TMP/in" | wc -l)" -eq 50
	expect "acknowledgements with ECT(0)" "$(awk '$5 == 17 && $4 == 2' "$TMP/out" | wc -l)" -ge 50
}
declare_test inject "R1" "ECT(0) on the packets of data queue pairs, ICRC as it was; can be turned off"

# ect FILE: destination, UDP source port and ECN field of what h1 sent, a line per packet
ect()
{
	packets "$1" 'ip.src == 10.0.1.1 || ipv6.src == fd00:1::1' ip.dst ipv6.dst udp.srcport \
		ip.dsfield.ecn ipv6.tclass.ecn | awk '{ print $1, $2, $3 }'
}

inject_policy()
{
	local ports v to

	needs_virtual
	load
	hosts 2
	roce_serve h2
	capture h1 eth0 "$TMP/in.pcap" "udp dst port 4791"
	roce h1 send --qps 4 --messages 5 --size 32
	stop_captures
	ect "$TMP/in.pcap" | awk '{ print $2 }' | sort -nu >"$TMP/ports"
	expect "UDP source ports of 4 queue pairs" "$(wc -l <"$TMP/ports")" -ge 2
	ports=$(head -n1 "$TMP/ports")
	load sport_min="$ports" sport_max="$ports"
	capture h1 eth0 "$TMP/in2.pcap" "udp dst port 4791"
	roce h1 send --qps 400 --messages 1 --size 32
	stop_captures
	ect "$TMP/in2.pcap" >"$TMP/in2"
	expect "ECT(0) outside of the range" "$(awk -v p="$ports" '$2 != p && $3 != 0' "$TMP/in2" | wc -l)" -eq 0
	expect "packets outside of the range" "$(awk -v p="$ports" '$2 != p' "$TMP/in2" | wc -l)" -gt 0
	# by destination: r over IPv4, h2 over IPv6
	load destinations=10.0.0.0/24,fd00:2::1
	expect "destinations, read back" "$(<"$PARAM/destinations")" = 10.0.0.0/24,fd00:2::1/128
	capture h1 eth0 "$TMP/in3.pcap" "udp dst port 4791"
	for to in r h2; do
		for v in 4 6; do
			TO_HOST=$to V=$v roce h1 send --messages 20 --size 32
			TO_HOST=$to V=$v roce h1 ud-send --messages 20 --size 32
		done
	done
	stop_captures
	ect "$TMP/in3.pcap" | sort | awk '{ n[$1 " " $3]++ } END { for (i in n) print i, n[i] }' | sort >"$TMP/in3"
	expect "destinations and ECN fields" "$(awk '$3 >= 40 { print $1, $2 }' "$TMP/in3" | paste -sd,)" = \
		"10.0.0.1 2,10.0.2.1 0,fd00:2::1 2,fd00::1 0"
	expect "other combinations" "$(wc -l <"$TMP/in3")" -eq 4
	for v in 10.0.0.0/33 fd00::/129 10.0.0 '10.0.0.0/8;' /8 \
		"$(seq -f '10.%g.0.0/16' 17 | paste -sd,)"; do
		refused "destinations=$v"
	done
	echo >"$PARAM/destinations"
	expect "destinations, all" "$(<"$PARAM/destinations")" = ""
	# no longer chosen while packets are held back: order is kept, nothing is retransmitted
	mark_all
	roce h1 send --duration 40ms &
	sleep 0.02
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	echo 192.0.2.0/24 >"$PARAM/destinations"
	wait $!
	expect "retries" "$(<"/sys/class/infiniband/${NSP}h1/ports/1/hw_counters/completer_retry_err")" -eq 0
	load
}
declare_test inject_policy "R1" "only flows to the chosen destinations, or of the chosen UDP source ports, are injected"

# --- notification point ----------------------------------------------------

cnp_format()
{
	local v src n

	needs_virtual
	load
	hosts 1
	mark_all
	for v in 4 6; do
		capture r eth0 "$TMP/r$v.pcap" "udp port 4791"
		V=$v roce h1 send --messages 4 --size 4096
		stop_captures
		roce_packets "$TMP/r$v.pcap" | awk '$5 == 129' >"$TMP/cnps"
		n=$(wc -l <"$TMP/cnps")
		src=$(jq -r .qp "$TMP/flow.json")
		expect "CNPs over IPv$v" "$n" -ge 1
		expect "CNPs that are wrong in any byte" "$(awk -v want="$(printf '8100ffff40%06x%040d' "$src" 0)" \
			'$9 != want || $8 != "ok" || $7 != 40 || $4 != 48 * 4 + 1' "$TMP/cnps" | wc -l)" -eq 0
		expect "CNPs not from the receiver to the sender" "$(awk '$2 !~ /^(10.0.0.1|fd00::1)$/ || $3 !~ /^(10.0.1.1|fd00:1::1)$/' "$TMP/cnps" | wc -l)" -eq 0
		# ... and as Wireshark's dissector reads them
		expect "CNPs that tshark knows" "$(TSHARK=1 count "$TMP/r$v.pcap" "infiniband.bth.opcode == 0x81 && infiniband.bth.destqp == $src && infiniband.bth.p_key == 0xffff && infiniband.bth.psn == 0")" -eq "$n"
		expect "malformed to tshark" "$(count "$TMP/r$v.pcap" _ws.malformed)" -eq 0
	done
	echo 46 >"$PARAM"/cnp_dscp
	echo 2 >"$PARAM"/cnp_ecn
	capture r eth0 "$TMP/r.pcap" "udp port 4791"
	roce h1 send --messages 2 --size 4096
	stop_captures
	expect "CNPs with the DSCP and ECN asked for" "$(roce_packets "$TMP/r.pcap" | awk '$5 == 129 && $4 == 46 * 4 + 2' | wc -l)" -ge 1
	load
}
declare_test cnp_format "R3 R5" "CE makes a CNP, right in every byte, by an ICRC of our own and by tshark"

# Link-local addresses: the way back is the link that the marked packet came by.
cnp_link_local()
{
	local op

	needs_virtual
	load
	hosts 1
	roce_device sw p1
	mark_all eth0 h1
	in_ns sw rocegen serve --dev "${NSP}sw" --gid "$(gid sw link)" 2>"$TMP/roce_serve.sw" &
	wait_until listening sw 5301
	for op in send ud-send; do
		in_ns h1 rocegen "$op" --dev "${NSP}h1" --gid "$(gid h1 link)" --to 10.0.1.254 \
			--duration 5ms >"$TMP/flow.json" || fail "rocegen $op"
		sleep 0.1
		expect "CNPs sent for $op" "$(rcm_counter cnp_sent)" -ge 1
		expect "CNPs that came, of those" "$(rcm_counter cnp_received)" -eq "$(rcm_counter cnp_sent)"
	done
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	load
}
declare_test cnp_link_local "R3" "CNPs to link-local addresses leave by the link that the marked packets came by"

# The marked packets come by a VLAN over the link of the soft-RoCE device.
cnp_vlan()
{
	local gids op

	needs_virtual
	load
	hosts 1
	gids=/sys/class/infiniband/${NSP}r/ports/1/gids
	ip -n "${NSP}sw" link add link egress name egress.5 type vlan id 5
	ip -n "${NSP}r" link add link eth0 name eth0.5 type vlan id 5
	ip -n "${NSP}sw" addr add 10.0.5.254/24 dev egress.5
	ip -n "${NSP}r" addr add 10.0.5.1/24 dev eth0.5
	ip -n "${NSP}sw" link set egress.5 up
	ip -n "${NSP}r" link set eth0.5 up
	ip -n "${NSP}r" route add 10.0.1.0/24 via 10.0.5.254
	mark_all egress.5
	wait_until grep 0000:ffff:0a00:0501 "$gids"/{0..7}
	in_ns r rocegen serve --dev "${NSP}r" --port 5305 2>"$TMP/roce_serve.vlan" \
		--gid "$(basename "$(grep -l 0000:ffff:0a00:0501 "$gids"/{0..7} 2>/dev/null)")" &
	wait_until listening r 5305
	for op in send ud-send; do
		in_ns h1 rocegen "$op" --dev "${NSP}h1" --gid "$(gid h1)" --to 10.0.5.1 --port 5305 \
			--duration 20ms >"$TMP/flow.json" || fail "rocegen $op"
		sleep 0.1
		expect "CNPs sent for $op" "$(rcm_counter cnp_sent)" -ge 10
		expect "CNPs that came, of those" "$(rcm_counter cnp_received)" -eq "$(rcm_counter cnp_sent)"
		expect "packets held back" "$(rcm_counter paced)" -gt 0
		load
	done
}
declare_test cnp_vlan "R3" "marked packets that come by a VLAN are answered"

# A host without a way back counts the CNPs that it cannot send, and nothing else happens.
cnp_no_way()
{
	local v unsent=0 more

	needs_virtual
	load
	hosts 1
	mark_all
	for v in -4 -6; do
		V=${v#-} roce h1 ud-send --duration 50ms &
		sleep 0.02
		ip "$v" -n "${NSP}r" rule add pref 1 ipproto udp unreachable || fail "no rule"
		sleep 0.01
		ip "$v" -n "${NSP}r" rule del pref 1
		wait $! || fail "rocegen"
		more=$(rcm_counter cnp_unsent)
		expect "CNPs without a way, IPv${v#-}" "$more" -gt "$unsent"
		unsent=$more
	done
	sleep 0.1
	expect "CNPs that came, of those sent" "$(rcm_counter cnp_received)" -eq "$(rcm_counter cnp_sent)"
	load
}
declare_test cnp_no_way "R3" "CNPs that find no way back are counted"

# What the host itself drops was not sent.
cnp_dropped_here()
{
	local v unsent=0 more

	needs_virtual
	load
	hosts 1
	mark_all
	in_ns r nft -f - <<-'END' || skip "no nft"
		table inet t { chain out { type filter hook output priority 0; udp dport 4791 @th,64,8 0x81 drop; }; }
	END
	for v in 4 6; do
		V=$v roce h1 ud-send --duration 10ms
		more=$(rcm_counter cnp_unsent)
		expect "CNPs that the firewall dropped, IPv$v" "$more" -gt "$unsent"
		unsent=$more
	done
	in_ns r nft flush ruleset
	in_ns r tc qdisc add dev eth0 clsact
	in_ns r tc filter add dev eth0 egress protocol ip flower ip_proto udp dst_port 4791 action drop
	roce h1 ud-send --duration 10ms
	expect "CNPs that the queue dropped" "$(rcm_counter cnp_unsent)" -gt "$unsent"
	expect "CNPs sent" "$(rcm_counter cnp_sent)" -eq 0
	expect "CNPs that came" "$(rcm_counter cnp_received)" -eq 0
	load
}
declare_test cnp_dropped_here "R3" "CNPs that the host's own firewall or queue drops are counted as unsent"

# as_esp NS DIR FROM TO: RoCE packets from FROM to TO must be ESP, at NS
as_esp()
{
	ip -n "$NSP$1" xfrm policy add src "$3" dst "$4" proto udp dport 4791 dir "$2" \
		tmpl src "$3" dst "$4" proto esp mode transport || skip "no IPsec"
}

# esp_key NS FROM TO: with this key
esp_key()
{
	ip -n "$NSP$1" xfrm state add src "$2" dst "$3" proto esp spi 0x100 mode transport \
		aead "rfc4106(gcm(aes))" 0x0123456789abcdef0123456789abcdef01234567 128 || skip "no ESP"
}

cnp_ipsec()
{
	local v h r sent

	needs_virtual
	load
	hosts 1
	mark_all
	for v in 4 6; do
		h=10.0.1.1 r=10.0.0.1
		[ "$v" = 4 ] || h=fd00:1::1 r=fd00::1
		as_esp r out "$r" "$h"
		esp_key r "$r" "$h"
		esp_key h1 "$r" "$h"
		capture r eth0 "$TMP/r$v.pcap" "src host $r and (udp port 4791 or esp)"
		V=$v roce h1 ud-send --duration 10ms
		stop_captures
		expect "IPv$v: CNPs in the clear" "$(count "$TMP/r$v.pcap" 'udp.port == 4791')" -eq 0
		expect "IPv$v: CNPs as ESP" "$(count "$TMP/r$v.pcap" esp)" -ge 1
		expect "IPv$v: of those sent" "$(rcm_counter cnp_sent)" -ge "$(count "$TMP/r$v.pcap" esp)"
		expect "IPv$v: CNPs that cut a rate" "$(rcm_counter cnp_handled)" -ge 1
		# without a key nothing may leave
		ip -n "${NSP}r" xfrm state deleteall
		sent=$(rcm_counter cnp_sent)
		V=$v roce h1 ud-send --duration 10ms
		expect "IPv$v: CNPs that count as sent without a key" "$(rcm_counter cnp_sent)" -eq "$sent"
		expect "IPv$v: CNPs unsent" "$(rcm_counter cnp_unsent)" -ge 1
		ip -n "${NSP}r" xfrm policy deleteall
		load
		# a sender that accepts ESP only: CNPs come in the clear
		as_esp h1 in "$r" "$h"
		V=$v roce h1 ud-send --duration 10ms
		expect "IPv$v: CNPs sent in the clear" "$(rcm_counter cnp_sent)" -ge 1
		expect "IPv$v: of those refused" "$(rcm_counter cnp_policy)" -eq "$(rcm_counter cnp_received)"
		expect "IPv$v: CNPs in the clear that cut a rate" "$(rcm_counter cnp_handled)" -eq 0
		ip -n "${NSP}h1" xfrm policy deleteall
		ip -n "${NSP}h1" xfrm state deleteall
		load
		# a receiver that accepts ESP only: marked packets come in the clear
		as_esp r in "$h" "$r"
		V=$v roce h1 ud-send --duration 10ms
		expect "IPv$v: marked packets refused" "$(rcm_counter ce_policy)" -eq "$(rcm_counter ce_received)"
		expect "IPv$v: CNPs for them" "$(rcm_counter cnp_sent)" -eq 0
		ip -n "${NSP}r" xfrm policy deleteall
		load
	done
}
declare_test cnp_ipsec "R3 R12" "where IPsec is demanded CNPs leave as ESP or not at all, in both families, and what comes without it is ignored"

# vrf_host: a dumbbell of h1 and r, where r is in a VRF: the main table has no way back.
# Packets seem to arrive by the VRF's device, so soft-RoCE belongs on that.
vrf_host()
{
	SYSCTL=net.ipv4.conf.all.rp_filter=0 dumbbell 1 20us
	ip -n "${NSP}r" link add vrf0 type vrf table 10 || skip "no VRF in this kernel"
	ip -n "${NSP}r" -batch - <<-END
		link set vrf0 up
		link set eth0 master vrf0
		addr del 10.0.0.1/24 dev eth0
		addr add 10.0.0.2/24 dev eth0
		addr add 10.0.0.1/32 dev vrf0
		addr add fd00::1/128 dev vrf0 nodad
		addr replace fd00::2/64 dev eth0 nodad
		neigh replace 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
		neigh replace fd00::254 lladdr 02:00:00:00:00:fe dev eth0 nud permanent
		route add default via 10.0.0.254 dev eth0 table 10
		route add default via fd00::254 dev eth0 table 10
	END
	in_ns r sysctl -qw net.ipv4.tcp_l3mdev_accept=1 net.ipv4.udp_l3mdev_accept=1
	expect "ways in the main table" "$(ip -n "${NSP}r" route show default; ip -n "${NSP}r" -6 route show default)" = ""
	roce_line h1 eth0 1gbit
	roce_line r eth0 1gbit
	roce_device h1
	roce_device r vrf0
	roce_serve h1
	roce_serve r
}

cnp_vrf()
{
	local v op

	needs_virtual
	load
	vrf_host
	mark_all
	for v in 4 6; do
		for op in send ud-send; do
			V=$v roce h1 "$op" --duration 10ms
		done
	done
	expect "CNPs that found no way" "$(rcm_counter cnp_unsent)" -eq 0
	expect "CNPs sent" "$(rcm_counter cnp_sent)" -ge 100
	expect "CNPs that came, of those" "$(rcm_counter cnp_received)" -eq "$(rcm_counter cnp_sent)"
	load
}
declare_test cnp_vrf "R3" "CNPs from a host in a VRF leave by the VRF's routes"

# Linux calls the hook twice for a packet of a VRF, with the VRF's device and with the real
# one. A message of one packet at a time, one per RTT of 40 us, is less than 500 Mb/s.
paced_vrf()
{
	local v handled=0

	needs_virtual
	load line_rate_mbps=1000 rate_min_mbps=500 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000
	vrf_host
	mark_all p1
	for v in 4 6; do
		V=$v roce h1 write --both --duration 50ms --depth 1 --size 1024
		expect "CNPs that r took over IPv$v" "$(rcm_counter cnp_handled)" -gt "$handled"
		handled=$(rcm_counter cnp_handled)
		expect "packets held back, sent slower than the rate, IPv$v" "$(rcm_counter paced)" -eq 0
	done
	# ... and faster
	V=4 roce h1 write --both --duration 50ms
	expect "packets held back" "$(rcm_counter paced)" -gt 100
	load
}
declare_test paced_vrf "R6" "a packet in a VRF is charged to its queue pair's rate once"

# gaps FILE: shortest time between two CNPs for the same queue pair in a capture, us
gaps()
{
	roce_packets "$1" | awk '$5 == 129 {
		split($1, t, ".")
		us = (t[1] % 100000) * 1000000 + t[2] / 1000
		if (($3, $6) in last && (!n++ || us - last[$3, $6] < least)) least = us - last[$3, $6]
		last[$3, $6] = us
	} END { printf "%.3f\n", n ? least : 0 }'
}

cnp_coalesced()
{
	local us

	needs_virtual
	hosts 2
	mark_all
	echo 400 >"$PARAM"/rate_min_mbps
	for us in 50 200; do
		echo "$us" >"$PARAM"/cnp_interval_us
		capture r eth0 "$TMP/r$us.pcap" "udp port 4791"
		roce h1 send --qps 3 --duration 10ms &
		V=6 LOG=flow2 roce h2 ud-send --duration 10ms
		wait $!
		stop_captures
		expect "CNPs" "$(roce_packets "$TMP/r$us.pcap" | awk '$5 == 129' | wc -l)" -ge $((10000 / us))
		expect "shortest time between CNPs of a queue pair, us" "$(gaps "$TMP/r$us.pcap")" -ge "$us"
	done
	# no coalescing: one per marked packet, once the receiver knows the peer
	load cnp_interval_us=0
	capture r eth0 "$TMP/r0.pcap" "udp port 4791"
	roce h1 send --messages 2 --size 8192
	stop_captures
	expect "too early to know the sender, of 16 marked packets" "$(rcm_counter ce_unknown_qp)" -le 8
	expect "CNPs, one for each of the others" "$(roce_packets "$TMP/r0.pcap" | awk '$5 == 129' | wc -l)" \
		-eq $((16 - $(rcm_counter ce_unknown_qp)))
	load
}
declare_test cnp_coalesced "R4" "at most one CNP per queue pair in the time asked for"

# --- incast ----------------------------------------------------------------

incast()
{
	needs_virtual
	load line_rate_mbps=1000 dcqcn_ai_mbps=2 dcqcn_hai_mbps=10 dcqcn_timer_us=300
	hosts 4
	red 1gbit 10000 40000
	four_send
	four_shared 800
	expect "marks" "$(queue_counts sw egress | cut -f1)" -ge 100
	load
}
declare_test incast "R2 R6" "four senders share a RED bottleneck"

cnp_loss()
{
	local options

	needs_virtual
	read -ra options < <(roce_tuned 1gbit)
	load "${options[@]}"
	hosts 4
	red 1gbit 10000 40000
	lose_cnps
	four_send
	expect "CNPs lost on the way" $(($(rcm_counter cnp_sent) - $(rcm_counter cnp_handled))) -ge $(($(rcm_counter cnp_sent) / 3))
	expect "CNPs that arrived" "$(rcm_counter cnp_handled)" -ge $(($(rcm_counter cnp_sent) / 3))
	four_shared 700
	load
}
declare_test cnp_loss "R6 R7" "with half of the CNPs lost the senders still share the link"

# lowq-tc: RED marks RoCEv2, CNPs have a band of their own, TCP another.
companion()
{
	local rules

	needs_virtual
	load
	hosts 2
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate 20mbit --min 10000b --max 40000b --quiet || fail "lowq-tc roce"
	in_ns sw tc qdisc del dev p1 root
	"$LOWQ_TC" roce p1 -n "${NSP}sw" --rate 20mbit --quiet || fail "lowq-tc roce p1"
	roce h1 send --duration 300ms --qps 2 &
	V=6 LOG=flow2 roce h2 send --duration 300ms
	wait $!
	in_ns sw tc -s -j qdisc show dev egress >"$TMP/egress"
	in_ns sw tc -s -j qdisc show dev p1 >"$TMP/p1"
	expect "marks" "$(jq '[.[] | select(.kind == "red")][0].marked' "$TMP/egress")" -gt 0
	expect "packets in RED" "$(jq '[.[] | select(.kind == "red")][0].packets' "$TMP/egress")" -ge 200
	expect "packets of TCP in the rest" "$(jq '[.[] | select(.parent == "10f1:3")][0].packets' "$TMP/egress")" -gt 0
	expect "CNPs in their band, towards h1" "$(jq '[.[] | select(.parent == "10f1:1")][0].packets' "$TMP/p1")" -gt 0
	expect "CNPs in the bands of data" "$(jq '[.[] | select(.parent == "10f1:1")][0].packets' "$TMP/egress")" -eq 0
	"$LOWQ_TC" reset egress -n "${NSP}sw" --quiet || fail "lowq-tc reset"
	rules=$("$LOWQ_TC" roce egress -n "${NSP}sw" --rate 10gbit --dry-run --json | jq -r .params.max_bytes)
	expect "K_max at 10 Gb/s, 80 us" "$rules" -eq 100000
	modprobe -r roce_rcm
	"$LOWQ_TC" host roce --quiet || fail "lowq-tc host roce"
	grep -q ^roce_rcm /proc/modules || fail "lowq-tc host roce has not loaded the module"
	! "$LOWQ_TC" host roce --default 2>/dev/null || fail "lowq-tc host roce --default was not refused"
	load
}
declare_test companion "R2 R9" "lowq-tc: RED for UDP 4791, CNPs first, the rest apart; host roce loads the module"

# parameters_are NAME=VALUE...: of the module
parameters_are()
{
	local word

	for word; do
		expect "${word%=*}" "$(cat "$PARAM/${word%=*}")" -eq "${word#*=}"
	done
}

host_rate()
{
	local options before

	modprobe -r roce_rcm || fail "cannot unload"
	export LOWQ_STATE_DIR=$TMP/state
	mkdir "$LOWQ_STATE_DIR"
	"$LOWQ_TC" host roce --rate 1gbit --dry-run >"$TMP/dry" 2>/dev/null || fail "lowq-tc host roce --rate --dry-run"
	grep -q dcqcn_timer_us "$TMP/dry" || fail "--dry-run shows no parameter"
	[ ! -d "$PARAM" ] || fail "--dry-run has loaded the module"
	"$LOWQ_TC" host roce --rate 1gbit --quiet || fail "lowq-tc host roce --rate 1gbit"
	read -ra options < <(roce_tuned 1gbit)
	parameters_are "${options[@]}"
	"$LOWQ_TC" host roce --rate 2.5gbit --quiet || fail "lowq-tc host roce --rate 2.5gbit"
	parameters_are line_rate_mbps=2500 dcqcn_timer_us=200 cnp_interval_us=160 dcqcn_shift_g=6
	"$LOWQ_TC" host reset --quiet || fail "lowq-tc host reset"
	[ ! -d "$PARAM" ] || fail "reset has not unloaded the module"
	load dcqcn_timer_us=77
	before=$(grep -H . "$PARAM"/*)
	"$LOWQ_TC" host roce --rate 40gbit --quiet || fail "lowq-tc host roce --rate 40gbit"
	parameters_are line_rate_mbps=40000 dcqcn_timer_us=55 dcqcn_alpha_us=55 cnp_interval_us=50 \
		dcqcn_shift_g=8 dcqcn_ai_mbps=40 dcqcn_hai_mbps=200 rate_min_mbps=10
	"$LOWQ_TC" host reset --quiet || fail "lowq-tc host reset, loaded"
	diff - <(grep -H . "$PARAM"/*) <<<"$before" || fail "reset has left something"
	! "$LOWQ_TC" host roce --rate 500kbit 2>"$TMP/err" || fail "500kbit was not refused"
	grep -q "1mbit to 1600gbit" "$TMP/err" || fail "$(<"$TMP/err")"
	load
}
declare_test host_rate "R8" "lowq-tc host roce --rate: DCQCN's constants for the link's rate, undone by reset"

# picture: everything on the switch and the machine that lowq-tc could have changed
picture()
{
	local dev

	for dev in egress p1; do
		in_ns sw tc -d qdisc show dev "$dev" | sed 's/ refcnt [0-9]*//'
		in_ns sw tc class show dev "$dev"
		in_ns sw tc filter show dev "$dev"
		ip -n "${NSP}sw" -d -o link show "$dev"
	done
	every ip route show
	every ip -6 route show
	every sysctl net
	sysctl net
	grep -o ^roce_rcm /proc/modules
	find "$LOWQ_STATE_DIR" -name '*.json'
}

# Set up and undone while a flow is paced: afterwards the switch is as before, the module
# is unloaded, and the flow ends well.
undone()
{
	local before flow

	needs_virtual
	modprobe -r roce_rcm
	export LOWQ_STATE_DIR=$TMP/state
	mkdir "$LOWQ_STATE_DIR"
	hosts 1
	before=$(picture)
	"$LOWQ_TC" host roce --quiet || fail "lowq-tc host roce"
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate 200mbit --quiet || fail "lowq-tc roce egress"
	[ "$(picture)" != "$before" ] || fail "nothing has changed"
	roce h1 send --duration 2s &
	flow=$!
	sleep 0.3
	expect "CNPs taken" "$(rcm_counter cnp_handled)" -gt 0
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	"$LOWQ_TC" host reset --quiet || fail "lowq-tc host reset"
	"$LOWQ_TC" reset --all -n "${NSP}sw" --quiet || fail "lowq-tc reset"
	picture >"$TMP/picture"
	diff - "$TMP/picture" <<<"$before" || fail "something is left"
	wait "$flow"
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	# a module that was there already stays
	modprobe roce_rcm
	"$LOWQ_TC" host roce --quiet || fail "lowq-tc host roce, loaded"
	"$LOWQ_TC" host reset --quiet || fail "lowq-tc host reset, loaded"
	[ -d "$DEBUGFS" ] || fail "a module that lowq-tc did not load is gone"
}
declare_test undone "R2 R11" "lowq-tc reset and host reset: queues, settings and module as before, the flow goes on"

# CNPs sent by a host whose own data is held back, and CNPs that are marked
cnp_way()
{
	needs_virtual
	load cnp_ecn=2 line_rate_mbps=1000
	hosts 1
	roce_serve h1
	mark_all
	mark_all p1
	capture r eth0 "$TMP/r.pcap" "udp port 4791"
	roce h1 send --duration 20ms &
	TO_HOST=h1 LOG=flow2 roce r send --duration 20ms
	wait $!
	stop_captures
	roce_packets "$TMP/r.pcap" >"$TMP/r"
	expect "packets of r held back" "$(rcm_counter paced)" -gt 0
	# a CNP leaves in the instant in which the marked packet arrives, ahead of packets held
	# back; in the first 3 ms the line is busy with packets sent before the first cut
	expect "CNPs of r, more than 10 us after any marked packet" "$(awk '{ split($1, t, "."); us = (t[1] % 1000) * 1e6 + t[2] / 1e3 }
		NR == 1 { first = us }
		$2 == "10.0.1.1" && $4 % 4 == 3 { came = us }
		$2 == "10.0.0.1" && $5 == 129 && us > first + 3000 && us - came > 10 { n++ } END { print n + 0 }' "$TMP/r")" -eq 0
	expect "CNPs of r" "$(awk '$2 == "10.0.0.1" && $5 == 129' "$TMP/r" | wc -l)" -ge 50
	expect "CNPs that came marked" "$(awk '$2 == "10.0.1.1" && $5 == 129 && $4 % 4 == 3' "$TMP/r" | wc -l)" -ge 50
	# ... were handled as CNPs, and not answered
	expect "answers to CNPs" "$(rcm_counter ce_invalid)" -eq 0
	expect "CNPs taken" $(($(rcm_counter cnp_handled) + $(rcm_counter cnp_too_soon) +
		$(rcm_counter cnp_nothing_sent))) -eq "$(rcm_counter cnp_sent)"
	load
}
declare_test cnp_way "R9" "CNPs are not paced, whatever waits, and marked ones are not answered"

# --- pause -----------------------------------------------------------------

# stop_and_go HOST: packets of HOST wait for up to a millisecond, as with pause frames
stop_and_go()
{
	in_ns "$1" tc qdisc replace dev eth0 root netem slot 1ms 1ms limit 100000 ||
		fail "no netem slot"
}

# paused: a flow from h1 for 50 ms; nothing is lost, retransmitted or out of order
paused()
{
	roce h1 send --duration 50ms
	expect "the flow's end" "$(jq -r .status "$TMP/flow.json")" = ok
	expect "sent again, or out of sequence" "$(cat "/sys/class/infiniband/${NSP}h1/ports/1/hw_counters/completer_retry_err" \
		"/sys/class/infiniband/${NSP}r/ports/1/hw_counters/out_of_seq_request" | awk '{ n += $1 } END { print n }')" -eq 0
	expect "packets dropped in FIFOs" "$(rcm_counter fifo_dropped)" -eq 0
}

pause()
{
	needs_virtual
	load line_rate_mbps=1000
	hosts 1
	stop_and_go h1
	paused
	# 64 packets of a queue pair in a millisecond
	expect "Mb/s while h1 is stopped again and again" "$(jq '.rate_bps / 1e6' "$TMP/flow.json")" -ge 400
	expect "packets held back for no mark" "$(rcm_counter paced)" -eq 0
	mark_all
	paused
	expect "CNPs taken by h1" "$(rcm_counter cnp_handled)" -ge 20
	expect "packets of h1 held back" "$(rcm_counter paced)" -gt 0
	stop_and_go r	# CNPs and ACKs come by the millisecond
	paused
	roce_line h1 eth0 1gbit
	paused
	load
}
declare_test pause "R10" "lines that stop and go as pause frames make them: no cut for it, nothing lost, CNPs count"

# --- hostile ---------------------------------------------------------------

hostile()
{
	local n=2000

	needs_virtual
	load
	hosts 2
	roce h1 send --duration 3s --depth 8 &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(qp_of_h1)
	forge --icrc bad --count "$n" --rate 100000
	expect "with a wrong ICRC" "$(rcm_counter cnp_bad_icrc)" -eq "$n"
	forge --checksum bad --count "$n" --rate 100000
	expect "with a wrong UDP checksum, by the stack" "$(in_ns h1 nstat -asz UdpInCsumErrors | awk '/UdpInCsumErrors/ { print $2 }')" -eq "$n"
	forge --src 10.0.9.9 --count "$n" --rate 100000
	expect "from a stranger" "$(rcm_counter cnp_wrong_source)" -eq "$n"
	QP=1000-16777215 forge --count "$n" --rate 100000
	expect "for queue pairs that are not" "$(rcm_counter cnp_unknown_qp)" -eq "$n"
	forge --tver 3 --count "$n" --rate 100000
	forge --length 27 --count "$n" --rate 100000
	forge --length 60 --count "$n" --rate 100000
	expect "of another version or length" "$(rcm_counter cnp_malformed)" -eq $((3 * n))
	forge --random --count "$n" --rate 100000
	expect "CNPs that did anything" "$(rcm_counter cnp_handled)" -eq 0
	expect "queue pairs known" "$(rcm_counter local_qps)" -le 2
	wait $!
	expect "Mb/s of the flow meanwhile" "$(jq '.rate_bps / 1e6' "$TMP/flow.json")" -ge 930
	expect "packets held back" "$(rcm_counter paced)" -eq 0
	# the same CNP, valid, does count
	roce h1 send --duration 1s &
	sleep 0.5
	QP=$(qp_of_h1)
	forge --checksum good
	wait $!
	expect "handled" "$(rcm_counter cnp_handled)" -eq 1
	load max_qps=100
	# marked datagrams for queue pairs that do not exist enter no sender into the table
	QP=1000-16777215 forge --opcode 0x64 --tos 3 --icrc bad --count "$n" --rate 100000
	expect "marked datagrams with a wrong ICRC" "$(rcm_counter ce_bad_icrc)" -eq "$n"
	expect "senders known by them" "$(rcm_counter remote_qps)" -eq 0
	QP=1000-16777215 forge --opcode 0x64 --tos 3 --count "$n" --rate 100000
	expect "senders known by those with a right ICRC" "$(rcm_counter remote_qps)" -eq 0
	expect "CNPs for them" "$(rcm_counter cnp_sent)" -eq 0
	load
}
declare_test hostile "R12" "forged and malformed CNPs, 100,000 a second, are counted and change nothing"

# A CNP slows a sender down, so a marked packet brings one only if it is what it claims to be.
marked_forged()
{
	local n=50 marked=(--tos 3 --count 50)

	needs_virtual
	load
	hosts 2
	roce h1 send --duration 300ms &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(qp_of_h1)
	forge --opcode 0x11 --src 10.0.9.9 "${marked[@]}"
	expect "from a stranger" "$(rcm_counter ce_wrong_source)" -eq "$n"
	forge --opcode 0x64 --source-qp 17 "${marked[@]}"
	expect "datagrams for a connected queue pair" "$(rcm_counter ce_wrong_source)" -eq $((2 * n))
	forge --opcode 0x11 --icrc bad "${marked[@]}"
	expect "with a wrong ICRC" "$(rcm_counter ce_bad_icrc)" -eq "$n"
	wait $!
	roce h1 ud-send --duration 300ms &
	sleep 0.1
	QP=$(qp_of_h1)
	forge --opcode 0x64 --source-qp 17 --icrc bad "${marked[@]}"
	expect "datagrams with a wrong ICRC" "$(rcm_counter ce_bad_icrc)" -eq $((2 * n))
	forge --opcode 0x11 "${marked[@]}"
	expect "connected, for a queue pair of datagrams" "$(rcm_counter ce_wrong_source)" -eq $((3 * n))
	expect "senders known by them" "$(rcm_counter remote_qps)" -eq 0
	expect "CNPs for them" "$(rcm_counter cnp_sent)" -eq 0
	forge --opcode 0x64 --source-qp 17 --tos 3
	expect "CNPs for a valid one" "$(rcm_counter cnp_sent)" -eq 1
	wait $!
	load
}
declare_test marked_forged "R7 R12" "marked packets with a wrong source, transport or ICRC bring no CNP"

# half_open: a client of r that has its server create a UC queue pair, prints the number of
# that, and then sends nothing for 2 s
half_open()
{
	in_ns h1 python3 - <<-'END'
		import socket, struct, sys, time
		s = socket.create_connection(("10.0.0.1", 5301))
		s.sendall(struct.pack("<QIIIII4x", 0x726f636567656e31, 3, 1, 65536, 4, 3))
		print(struct.unpack_from("<I", s.recv(40, socket.MSG_WAITALL), 16)[0], flush=True)
		time.sleep(2)
	END
}

# A marked packet for a queue pair that is not connected yet: the RDMA core knows no peer.
too_early()
{
	needs_virtual
	load
	hosts 2
	half_open >"$TMP/half_open" &
	wait_until test -s "$TMP/half_open"
	QP=$(<"$TMP/half_open") forge --src 10.0.1.1 --dst 10.0.0.1 --opcode 0x24 --tos 3 --count 3
	sleep 0.5
	expect "questions asked" "$(rcm_counter asked)" -ge 1
	expect "queue pairs known, of one without a peer" "$(rcm_counter local_qps)" -eq 0
	expect "marked packets for it" "$(rcm_counter ce_unknown_qp)" -eq 3
	load
}
declare_test too_early "R12" "a marked packet for a queue pair that is not connected yet teaches no peer"

# --- observing -------------------------------------------------------------

observability()
{
	needs_virtual
	load
	hosts 1
	mark_all
	trace_on roce_rcm/roce_rcm_cnp_sent roce_rcm/roce_rcm_cut skb/kfree_skb
	roce h1 send --duration 500ms &
	sleep 0.1
	column -t "$DEBUGFS"/qps >"$TMP/qps"
	wait $!
	trace_off "$TMP/trace"
	cat "$TMP/qps"
	expect "columns" "$(awk 'NF != 14' "$TMP/qps" | wc -l)" -eq 0
	awk '$3 == "::ffff:10.0.1.1" && $5 == "::ffff:10.0.0.1" && $7 >= 5 && $7 < 10000 && $9 > 0 && $9 <= 1 && $10 > 0' "$TMP/qps" |
		grep -q . || fail "no sender with rate, alpha and CNPs in: $(<"$TMP/qps")"
	awk '$3 == "::ffff:10.0.0.1" && $11 > 0' "$TMP/qps" | grep -q . || fail "no receiver with CNPs out"
	expect "packets in the FIFO" "$(awk '$3 == "::ffff:10.0.1.1" { print $12 }' "$TMP/qps")" -gt 0
	expect "tracepoints: CNPs sent" "$(grep -c 'roce_rcm_cnp_sent: to=::ffff:10.0.1.1 qp=' "$TMP/trace")" -gt 0
	expect "tracepoints: cuts" "$(grep -c 'roce_rcm_cut: addr=::ffff:10.0.1.1 qp=' "$TMP/trace")" -gt 0
	expect "CNPs that netfilter drops" "$(grep -c NETFILTER_DROP "$TMP/trace")" -eq 0
	expect "packets whose socket points to no queue pair" "$(rcm_counter not_a_qp)" -eq 0
	load
}
declare_test observability "R13" "debugfs and tracepoints: rate, alpha, CNPs in and out, FIFO"

# look FILE: reads it 20 times in 42 ms
look()
{
	local i

	for ((i = 0; i < 20; i++)); do
		cat "$1" >/dev/null
		sleep 0.0021
	done
}

# sender_stopped: h1's sender stands still, so that nothing looks at its rate: process $STOPPED, queue
# pair $QP, alpha's clock 1 ms
sender_stopped()
{
	load dcqcn_alpha_us=1000 line_rate_mbps=1000
	roce h1 send --duration 400ms --depth 1 --size 1024 &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(qp_of_h1)
	sleep 0.1
	STOPPED=$(ip netns pids "${NSP}h1")
	kill -STOP "$STOPPED"
	sleep 0.002
}

# alpha_between COMMAND: alpha (Q30) of the second of two cuts, 100 ms apart, with COMMAND
# in between
alpha_between()
{
	sender_stopped
	trace_on roce_rcm/roce_rcm_cut
	forge
	sleep 0.0105
	"$@"
	sleep 0.05
	kill -CONT "$STOPPED"
	sleep 0.0052
	forge
	wait $!
	trace_off "$TMP/trace"
	expect "cuts" "$(grep -c roce_rcm_cut: "$TMP/trace")" -eq 2
	tail -n1 "$TMP/trace" | field alpha_q30
}

# Each CPU has its own counters: nothing is lost that two of them count at the same time, nor with a namespace. A module
# that is loaded again begins with 0.
counted()
{
	local cpu n=300 pids=()

	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	load
	hosts 2
	for cpu in 0 1; do
		# a packet on a veth is received by its sender's CPU
		(taskset -pc "$cpu" "$BASHPID" >/dev/null && QP=1000 forge --count "$n" --rate 100000) &
		pids+=($!)
	done
	wait "${pids[@]}"
	expect "CNPs of both CPUs, counted" "$(rcm_counter cnp_unknown_qp)" -eq $((2 * n))
	teardown
	expect "without the namespaces" "$(rcm_counter cnp_unknown_qp)" -eq $((2 * n))
	load
	expect "after loading it again" "$(rcm_counter cnp_unknown_qp)" -eq 0
}
declare_test counted "R13" "counters on two CPUs lose nothing, also as namespaces go; a new module begins with 0"

# Alpha is rounded whenever its clock advances: more often, and its last bits differ.
reading()
{
	local alone looked_at

	needs_virtual
	load
	hosts 2
	alone=$(alpha_between look /dev/null) || fail "$(<"$TMP/why")"
	looked_at=$(alpha_between look "$DEBUGFS"/qps) || fail "$(<"$TMP/why")"
	expect "alpha, read 20 times in between" "$looked_at" = "$alone"
	load
}
declare_test reading "R13" "reading debugfs changes nothing of what is read"

# as_read COLUMN: of the stopped sender, in debugfs
as_read()
{
	awk -v qp="$QP" -v column="$1" '$2 == "local" && $3 == "::ffff:10.0.1.1" && $4 == qp { print $column }' "$DEBUGFS"/qps
}

# After a cut alpha falls by 1/256 per ms, and the rate grows, though nothing is sent
read_later()
{
	local alpha rate

	needs_virtual
	hosts 2
	sender_stopped
	parameter dcqcn_timer_us=10000
	expect "alpha before the first CNP" "$(as_read 9)" = 1.000
	forge --rate 100000	# which ends at once
	sleep 0.0005
	alpha=$(as_read 9) rate=$(as_read 7)
	sleep 0.02
	echo "alpha $alpha, then $(as_read 9); rate $rate Mb/s, then $(as_read 7)"
	between "alpha after 20 ms, of what it was" "$(awk -v a="$alpha" -v b="$(as_read 9)" 'BEGIN { print b / a }')" 0.92 0.93
	between "rate, Mb/s" "$rate" 500 800
	between "rate after 20 ms" "$(as_read 7)" 900 1000
	kill -CONT "$STOPPED"
	wait $!
	load
}
declare_test read_later "R13" "what debugfs shows is of now, not of the last packet"

# Ten thousand queue pairs come and go; then the table is empty. Beyond max_qps no queue
# pair is added, and its traffic goes on unpaced.
churn()
{
	local i most=0 slab

	needs_virtual
	load idle_s=1
	hosts 1
	roce h1 write --qps 1000 --messages 1 --size 32	# other parts allocate only once
	sleep 3
	slab=$(awk '/^Slab:/ { print $2 }' /proc/meminfo)
	for ((i = 0; i < 10; i++)); do
		roce h1 write --qps 1000 --messages 1 --size 32
		[ "$(rcm_counter local_qps)" -le "$most" ] || most=$(rcm_counter local_qps)
	done
	expect "queue pairs known at a time" "$most" -ge 1000
	sleep 4
	expect "queue pairs known 4 s later" "$(rcm_counter local_qps)" -eq 0
	expect "kB of slab more than before" $(($(awk '/^Slab:/ { print $2 }' /proc/meminfo) - slab)) -le 4000
	echo 100 >"$PARAM/max_qps"
	roce h1 write --qps 500 --messages 2 --size 32
	expect "queue pairs known, of 100" "$(rcm_counter local_qps)" -le 100
	expect "turned away" "$(rcm_counter table_full)" -gt 0
	expect "messages that arrived anyway" "$(jq -s 'map(select(.status == "ok").messages) | add' "$TMP/flow.json")" -eq 1000
	load
}
declare_test churn "R12" "10,000 queue pairs come and go, and leave nothing; max_qps bounds them"

# --- kinds of traffic ------------------------------------------------------

kinds()
{
	local op v handled=0 more

	needs_virtual
	load
	hosts 1
	roce_serve h1
	mark_all
	for v in 4 6; do
		for op in send write uc-send uc-write ud-send; do
			V=$v roce h1 "$op" --duration 20ms
			more=$(rcm_counter cnp_handled)
			expect "CNPs taken: $op over IPv$v" "$more" -gt "$handled"
			handled=$more
		done
		# the data are the responses: r reads from h1
		V=$v TO_HOST=h1 roce r read --duration 20ms
		more=$(rcm_counter cnp_handled)
		expect "CNPs taken: read over IPv$v" "$more" -gt "$handled"
		handled=$more
	done
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	expect "packets dropped in FIFOs" "$(rcm_counter fifo_dropped)" -eq 0
	load
}
declare_test kinds "R11" "RC SEND, WRITE, READ, UC and UD, IPv4 and IPv6: marked, notified, paced"

# The same where soft-RoCE knows no namespaces: both hosts are in the first one.
first_namespace()
{
	local op v i more messages handled=0

	needs_virtual
	load rate_min_mbps=100
	roce_pair 1gbit
	roce_serve r
	mark_all
	mark_all p1
	capture sw egress "$TMP/egress.pcap" "udp port 4791"
	for v in 4 6; do
		for op in send write read uc-write ud-send; do
			# the kind of a UD queue pair has to be asked for before a CNP is sent
			messages=20
			[ "$op" != ud-send ] || messages=1000
			V=$v LOG=$op$v roce h1 "$op" --messages "$messages" --size 16384
			more=$(rcm_counter cnp_handled)
			expect "CNPs taken: $op over IPv$v" "$more" -gt "$handled"
			handled=$more
		done
	done
	stop_captures
	roce_packets "$TMP/egress.pcap" >"$TMP/egress"
	expect "packets with a wrong ICRC" "$(awk '$8 == "bad"' "$TMP/egress" | wc -l)" -eq 0
	expect "requests that came marked" "$(awk '$2 ~ /^(10.0.1.1|fd00:1::1)$/ && $4 % 4 == 3' "$TMP/egress" | wc -l)" -ge 200
	expect "CNPs of r" "$(awk '$5 == 129 && $2 ~ /^(10.0.0.1|fd00::1)$/' "$TMP/egress" | wc -l)" -ge 10
	expect "packets held back" "$(rcm_counter paced)" -gt 0
	roce h1 send --duration 1s --size 8192 &
	for ((i = 0; i < 10; i++)); do
		sleep 0.05
		rmmod roce_rcm || fail "cannot unload"
		modprobe roce_rcm || fail "cannot load"
	done
	wait $!
	expect "queue pairs that ended well" "$(cat "$TMP"/{send,write,read,uc-write,ud-send}[46].json "$TMP/flow.json" | jq -r .status | grep -cx ok)" -eq 11
	load
}
declare_test first_namespace "R11" "both hosts in the first namespace, as before 7.x: all kinds of traffic, loads and unloads"

# --- life ------------------------------------------------------------------

unload()
{
	local i n=100 pids=() paced=0

	needs_virtual
	load
	hosts 2
	mark_all
	roce_serve h2
	roce h1 send --duration "$((n * 30))ms" --size 8192 --qps 2 &
	pids+=($!)
	TO_HOST=h2 LOG=flow2 roce r read --duration "$((n * 30))ms" &
	pids+=($!)
	for ((i = 0; i < n; i++)); do
		sleep 0.0$((RANDOM % 3))
		paced=$((paced + ($(rcm_counter paced) > 0)))
		rmmod roce_rcm || fail "cannot unload"
		modprobe roce_rcm || fail "cannot load"
	done
	wait "${pids[@]}"
	expect "times that packets were held back" "$paced" -ge $((n / 2))
	expect "queue pairs that ended well" "$(jq -r .status "$TMP/flow.json" "$TMP/flow2.json" | grep -cx ok)" -eq 3
}
declare_test unload "R11" "loaded and unloaded a hundred times under traffic that is being paced"

# Everything at once, for the checkers of the debug flavour: all kinds of traffic, marks,
# CNPs, forged CNPs, changes of parameters, loads and unloads, a namespace that is deleted.
stress()
{
	local i op pids=() tick=0.1

	virtual || tick=0.5
	load
	hosts 2
	mark_all
	roce_serve h1
	for op in send uc-write ud-send; do
		LOG=$op roce h1 "$op" --duration "$(awk -v t="$tick" 'BEGIN { print t * 8 }')s" --qps 2 --size 4096 &
		pids+=($!)
	done
	V=6 TO_HOST=h1 LOG=read roce r read --duration "$(awk -v t="$tick" 'BEGIN { print t * 8 }')s" --size 32768 &
	pids+=($!)
	LOG=gone roce h2 send --duration 60s 2>/dev/null &
	wait_until grep -q local "$DEBUGFS/qps"
	for ((i = 0; i < 6; i++)); do
		sleep "$tick"
		echo $((i % 2)) >"$PARAM/inject"
		echo $((i * 10)) >"$PARAM/cnp_interval_us"
		cat "$DEBUGFS"/qps >/dev/null
		case $i in
		1) load line_rate_mbps=20 rate_min_mbps=5 dcqcn_ai_mbps=1 idle_s=1 fifo_kb=64 ;;
		2) LOG=many roce h1 write --qps 50 --messages 1 --size 32 & pids+=($!) ;;
		3) load line_rate_mbps=20 rate_min_mbps=5 algorithm=1 ldcp_rtt_us=20000 max_qps=8 ;;
		4) echo 10.0.0.0/24,fd00::/16 >"$PARAM/destinations" ;;
		5) load line_rate_mbps=20 rate_min_mbps=5 dcqcn_ai_mbps=1 destinations=192.0.2.0/24 ;;
		esac
	done
	echo >"$PARAM/destinations"
	QP=16-40 forge --random --count 200 --rate 1000
	QP=16-40 forge --count 100 --rate 1000
	rdma link del "${NSP}h2"
	kill_in "${NSP}h2"
	ip netns del "${NSP}h2"
	wait "${pids[@]}"
	# in the debug flavour, in real time, retries may run out: there only the checkers'
	# reports count
	! virtual || expect "RC queue pairs that ended well" "$(jq -r .status "$TMP/send.json" "$TMP/read.json" | grep -cx ok)" -eq 3
	teardown
	modprobe -r roce_rcm || fail "cannot unload"
	modprobe roce_rcm || fail "cannot load"
}
declare_test stress "R11 R12" "all kinds of traffic, forged CNPs, loads and unloads, a namespace that goes: nothing breaks"

run_tests "$@"
