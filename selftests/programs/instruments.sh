#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What all numbers rest on: qdelay held against a second analyser that shares no code with it
# (instruments.py, on tshark's fields), over captures of many kinds of traffic; and the lab's
# benches with a fault put in, each of which must turn the verdict to failed.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

PORTS=(p1)	# of sw, where packets come in

# record: captures what goes to r, on both sides of sw's queue, until agree
record()
{
	local dev

	for dev in "${PORTS[@]}" egress; do
		capture sw "$dev" "$TMP/$dev.pcap" "${FILTER:-dst host 10.0.0.1 or dst host fd00:0::1}"
	done
}

# agree [PROPERTY...]: qdelay's result and the other analyser's are the same; and the captures have
# what the test is about, such as "dropped -ge 10"
agree()
{
	local files=("${PORTS[@]/#/$TMP/}") list property name

	stop_captures
	files=("${files[@]/%/.pcap}")
	list=$(IFS=,; echo "${files[*]}")
	qdelay --in "$list" --out "$TMP/egress.pcap" --rate 100mbit ${MSS:+--mss "$MSS"} --json "$TMP/q.json" ||
		fail "qdelay ended with $?"
	python3 "$SELFTESTS/programs/instruments.py" --rate 100e6 ${MSS:+--mss "$MSS"} "$TMP/q.json" \
		"$TMP/egress.pcap" "${files[@]}" >"$TMP/agree" || fail "$(<"$TMP/agree")"
	cat "$TMP/agree"
	for property; do
		read -ra name <<<"$property"
		expect "${name[0]}" "$(field "${name[0]}" <"$TMP/agree")" "${name[@]:1}"
	done
}

# flows CONTROL [OPTION...]: a flow of 1 MB from each host
flows()
{
	local port pids=()

	for port in "${PORTS[@]}"; do
		in_ns "h${port#p}" flowgen long --to "${TO:-10.0.0.1}" --cc "$1" --size 1M --timeout 60s "${@:2}" \
			>"$TMP/flow.$port" &
		pids+=($!)
	done
	for port in "${pids[@]}"; do
		wait "$port" || fail "a flow ended with $?"
	done
}

# path [QDISC...]: three hosts behind 100 Mb/s
path()
{
	local n=${HOSTS:-3} i

	needs_virtual
	PORTS=()
	for ((i = 1; i <= n; i++)); do
		PORTS+=("p$i")
	done
	SYSCTL=net.ipv4.tcp_ecn=1 dumbbell "$n" 5ms
	shape 100mbit "$@"
	serve r --cc "${CC:-cubic}"
	record
}

marks()
{
	CC=dctcp path red limit 400000 min 30000 max 30001 avpkt 1000 burst 31 probability 1 bandwidth 100mbit ecn
	flows dctcp
	agree "marked -ge 50" "packets -ge 2000"
}
declare_test marks "" "DCTCP beside a RED step: marks, delays, queue, shares"

marks6()
{
	for_full
	CC=dctcp TO=fd00:0::1 path red limit 400000 min 30000 max 30001 avpkt 1000 burst 31 probability 1 bandwidth 100mbit ecn
	TO=fd00:0::1 flows dctcp
	agree "marked -ge 50"
}
declare_test marks6 "" "the same over IPv6"

drops()
{
	path pfifo limit 30
	flows cubic
	agree "dropped -ge 5" "retransmitted -ge 5"
}
declare_test drops "" "a short queue that drops: losses and retransmissions"

l4s()
{
	for_full
	needs_accecn
	modprobe tcp_prague || skip "no module tcp_prague"
	CC=prague path dualpi2
	flows prague
	agree "marked -ge 20"
}
declare_test l4s "" "Prague over DualPI2: ECT(1)"

telemetry()
{
	local dev

	for_full
	modprobe -a tcp_hpccpp int_reflector sch_int || skip "no modules for HPCC++"
	needs_virtual
	PORTS=(p1)
	dumbbell 1 100us
	TC_LIB_DIR=$BIN "$LOWQ_TC" hpccpp egress -n "${NSP}sw" --rate 1gbit --shape --switch-id 1 --quiet --no-rehearsal ||
		fail "lowq-tc hpccpp"
	serve r --cc hpccpp
	record
	flows hpccpp
	# a probe is no part of the stream: its bytes are no retransmission
	agree "packets -ge 650" "retransmitted -eq 0"
}
declare_test telemetry "" "HPCC++: probes are no retransmissions"

reordering()
{
	for_full
	HOSTS=1 path
	# sw's queue itself sends packets out of order
	in_ns sw tc qdisc replace dev egress root netem limit 10000 delay 2ms 1ms rate 100mbit
	flows cubic
	agree "packets -ge 650" "dropped -eq 0"
}
declare_test reordering "" "a queue that reorders"

duplication()
{
	for_full
	HOSTS=1 path
	in_ns sw tc qdisc replace dev egress root netem limit 10000 duplicate 5%
	flows cubic
	agree "unmatched_out -ge 10"
}
declare_test duplication "" "a queue that duplicates"

loss()
{
	HOSTS=2 path
	in_ns sw tc qdisc replace dev egress root netem limit 10000 delay 1ms loss 2%
	flows cubic
	agree "dropped -ge 5" "retransmitted -ge 5"
}
declare_test loss "" "random loss"

# Handshakes and ends are lost, too: SYN and FIN are retransmitted like data
lost_ends()
{
	HOSTS=1 path
	in_ns sw tc qdisc replace dev egress root netem limit 10000 delay 1ms loss 10%
	in_ns h1 flowgen rpc --push --to 10.0.0.1 --size 5k --rate 500 --requests 60 --timeout 20s >"$TMP/rpc" ||
		fail "requests"
	agree "dropped -ge 5" "retransmitted -ge 5"
}
declare_test lost_ends "" "60 connections, some of which lose their SYN or FIN"

no_timestamps()
{
	for_full
	HOSTS=2 path pfifo limit 30
	every sysctl -qw net.ipv4.tcp_timestamps=0
	flows cubic
	agree "dropped -ge 5"
}
declare_test no_timestamps "" "losses without TCP timestamps"

many_connections()
{
	for_full
	HOSTS=1 path
	in_ns h1 flowgen rpc --push --to 10.0.0.1 --size 5k --rate 500 --requests 60 --timeout 20s >"$TMP/rpc" ||
		fail "requests"
	agree "packets -ge 300"
}
declare_test many_connections "" "60 connections of five packets"

offloads()
{
	OFFLOADS=1 HOSTS=2 path pfifo limit 100
	MSS='' flows cubic
	agree "packets -ge 1300"
	expect "super-packets" "$(jq .super_packets "$TMP/q.json")" -ge 50
}
declare_test offloads "" "TSO on both sides of the queue: counted by segments"

datagrams()
{
	HOSTS=1 path
	in_ns h1 python3 - <<-'END' || fail "datagrams"
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(300):
		    s.sendto(i.to_bytes(4, "big") + bytes(i), ("10.0.0.1", 4000))
	END
	in_ns h1 ping -qc 20 -i 0.01 10.0.0.1 >/dev/null || fail ping
	agree "packets -ge 320"
}
declare_test datagrams "" "UDP and ICMP"

# esp_to ADDRESS FROM: UDP to port 9 of ADDRESS leaves h1 as ESP, which nobody there can read
esp_to()
{
	in_ns h1 ip xfrm policy add src "$2" dst "$1" proto udp dport 9 dir out tmpl src "$2" dst "$1" proto esp mode transport &&
		in_ns h1 ip xfrm state add src "$2" dst "$1" proto esp spi 0x100 mode transport \
			aead "rfc4106(gcm(aes))" 0x0123456789abcdef0123456789abcdef01234567 128 || skip "no ESP"
}

headers()
{
	local to netem what count

	modprobe -a tcp_hpccpp int_reflector sch_int || skip "no modules for HPCC++"
	accecn_dumbbell 1 1ms
	serve r --cc cubic
	esp_to 10.0.0.1 10.0.1.1
	esp_to fd00::1 fd00:1::1
	SNAPLEN=192 capture h1 eth0 "$TMP/h.pcap" 'tcp or udp or esp or arp or ip6 proto 0 or icmp6[0] >= 128'
	for netem in "loss 5%" "loss 5% ecn"; do
		lossy "$netem"
		for to in 10.0.0.1 fd00::1; do
			TO=$to CC=cubic send --size 200k
		done
	done
	TC_LIB_DIR=$BIN tc -n "${NSP}sw" qdisc replace dev egress root int rate 1gbit switch-id 5 || fail "tc int"
	for to in 10.0.0.1 fd00::1; do
		TO=$to CC=hpccpp send --size 200k
	done
	# RoCE's header in UDP, ESP, a message of HPCC++ with bits in all fields, and what is asked of neighbours
	in_ns h1 python3 - <<-'END' || fail "datagrams"
		import socket, struct
		for family, to, nobody in (socket.AF_INET, "10.0.0.1", "10.0.1.7"), (socket.AF_INET6, "fd00::1", "fd00:1::7"):
		    s = socket.socket(family, socket.SOCK_DGRAM)
		    for opcode in (0, 1, 2, 4, 6, 10, 13, 16, 17, 0x64, 0x81):
		        s.sendto(struct.pack("!BBHII", opcode, 0, 0xffff - opcode, 0x40001000 + opcode, opcode << 16) + bytes(60), (to, 4791))
		    s.sendto(b"secret", (to, 9))
		    s.sendto(b"", (nobody, 7))
		    message = b"INT1\2\2" + bytes(range(1, 15)) + bytes.fromhex("2abc0000 b23456789abcdef0 c3456789abcdef01 fedcba98")
		    socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP).sendto(
		        struct.pack("!HHIIHHHH", 7, 8, 9, 0, 0x5008, 0, 0, 0) + message, (to, 0))
		s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(family, "ff05::7") + bytes(4))
	END
	stop_captures
	alike.py "$TMP/h.pcap" >"$TMP/alike" || fail "not as tshark reads them: $(<"$TMP/alike")"
	while read -r what count; do
		expect "packets with $what" "$count" -ge 1
	done <"$TMP/alike"
}
declare_test headers "" "what is read of captures without tshark is what tshark reads: IPv4, IPv6, SACK, Accurate ECN, HPCC++, RoCE, ESP"

# --- benches with a fault in them -----------------------------------------------------------

# bench STATEMENT...: a run of lab/runner/guest whose scenario is the demo's topology and these lines;
# its result is in $TMP/out/result.json
bench()
{
	[ -x "$LOWQ_ROOT/lab/runner/guest" ] || skip "no bench/ here"
	needs_virtual
	{
		printf 'from lowq_lab import Scenario\nSCENARIO = Scenario(title="Staged", question="Is a fault seen?", '
		printf 'topology="h1..h3 -- r", rows=["cubic"], shell=r"""\n'
		printf '\tdumbbell 3 1ms\n\tbottleneck 100mbit 1ms\n\tserve r --cc cubic\n\twatch_queue 100mbit 0s 1s\n'
		printf '\t%s\n' "$@"
		printf '""")\n'
	} >"$TMP/staged.py"
	mkdir -p "$TMP/out"
	"$LOWQ_ROOT/lab/runner/guest" "$TMP/staged.py" '' cubic 1 "$TMP/out" >"$TMP/bench.log" 2>&1
	echo "exit status $?: $(jq -c '[.status, .metrics]' "$TMP/out/result.json")"
}

status() { jq -r .status "$TMP/out/result.json"; }

# what no fault is in passes
no_fault()
{
	bench 'check_path h1 r 100mbit 1ms' 'long_flows 3 1s' watched
	expect "status" "$(status)" = ok
	expect "failed flows" "$(jq .metrics.failed "$TMP/out/result.json")" -eq 0
	expect "Jain of three flows" "$(jq .metrics.jain "$TMP/out/result.json")" -ge 0.8
}
declare_test no_fault "" "a bench without a fault: status ok"

dead_sender()
{
	# shellcheck disable=SC2016 # the scenario's own
	bench '(sleep 0.5; ip netns pids ${NSP}h2 | xargs kill -KILL) &' 'long_flows 3 1s' watched
	expect "status" "$(status)" = "failed: a traffic generator ended with status 137"
}
declare_test dead_sender "" "a sender that dies: failed"

never_connects()
{
	for_full
	# shellcheck disable=SC2016
	bench 'ip -n ${NSP}h2 route replace blackhole 10.0.0.0/24' 'long_flows 3 1s' watched
	expect "status" "$(status | cut -c1-41)" = "failed: a traffic generator ended with st"
	# the same where a scenario counts failures itself: the flow counts for fairness, with 0
	# shellcheck disable=SC2016
	bench 'ip -n ${NSP}h2 route replace blackhole 10.0.0.0/24' \
		'for i in 1 2 3; do in_ns h$i flowgen long --to 10.0.0.1 --cc cubic --duration 1s >$TMP/l$i & pids+=($!); done' \
		'requests_done ${pids[@]}' 'cat $TMP/l? >$OUT/flows.jsonl' watched
	expect "failed flows" "$(jq .metrics.failed "$TMP/out/result.json")" -eq 1
	expect "Jain" "$(jq .metrics.jain "$TMP/out/result.json")" -le 0.67
}
declare_test never_connects "" "a flow that never connects: failed, and unfair"

timed_out()
{
	for_full
	# shellcheck disable=SC2016
	bench 'serve h1 --cc cubic' \
		'in_ns r flowgen rpc --to 10.0.1.1 --size 1M --rate 50 --requests 20 --timeout 20ms >$OUT/flows.jsonl' \
		watched
	expect "failed requests" "$(jq .metrics.failed "$TMP/out/result.json")" -eq 20
	expect "p99 of none" "$(jq .metrics.rpc_p99_us "$TMP/out/result.json")" = null
}
declare_test timed_out "" "requests that time out: counted, no percentile"

other_network()
{
	for_full
	bench 'check_path h1 r 100mbit 1030us'
	expect "another RTT" "$(status | grep -c 'not as stated.*rtt')" -eq 1
	bench 'check_path h1 r 103mbit 1ms'
	expect "another rate" "$(status | grep -c 'not as stated.*rate')" -eq 1
	bench 'QUEUE=dctcp' 'check_path h1 r 100mbit 1ms 20'
	expect "another step" "$(status | grep -c 'not as stated.*mark_at')" -eq 1
}
declare_test other_network "" "a network that is not as stated by 3 %: failed"

run_tests "$@"
