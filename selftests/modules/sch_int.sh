#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests sch_int through tc: defaults, options, errors, statistics, children, and what the
# options change in the stamps. hpccpp.sh shows that stamps are correct.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

tc_has_int || skip_all "tc has no q_int.so (see TC_LIB_DIR)"

modprobe -r sch_int 2>/dev/null
for module in sch_int tcp_hpccpp int_reflector; do
	modprobe "$module" || skip_all "no module $module"
done

# port: makes one port, x0 of namespace a
port()
{
	local PLAN=1

	add_ns a
	add_ns b
	link a x0 b y0
	PLAN='' build_plan
}

tca()
{
	in_ns a tc "$@"
}

# shown: the root qdisc of x0 as text
shown()
{
	tca qdisc show dev x0 root | sed 's/refcnt [0-9]* //; s/ *$//'
}

# option NAME, stat NAME: an option or a statistic of x0's root qdisc
option()
{
	tca -j qdisc show dev x0 root | jq -r ".[0].options.$1"
}

stat()
{
	tca -s -j qdisc show dev x0 root | jq -r ".[0].$1"
}

defaults()
{
	needs_virtual	# tc takes half a second with all checkers on
	port
	# as tc does it without the plugin
	TC_LIB_DIR=/nonexistent tca qdisc add dev x0 root int || fail "int without options and without the plugin"
	TC_LIB_DIR=/nonexistent tca qdisc show dev x0 | grep -q '^qdisc int 8' || fail "tc does not show it"
	expect "rate in use, bytes/s: veth's link speed" "$(stat rate_in_use)" -eq 1250000000
	expect "rate" "$(option rate)" = link
	between "switch ID in use" "$(stat switch_id_in_use)" 1 4095
	expect "DSCP" "$(option dscp)" -eq 23
	expect "child" "$(tca -j qdisc show dev x0 invisible | jq -r '[.[] | select(.kind != "int") | .kind] | join(" ")')" = pfifo
	# the qdisc's name is enough to load the module
	tca qdisc del dev x0 root
	wait_until modprobe -r sch_int
	tca qdisc add dev x0 root int || fail "int does not load its module"
}
declare_test defaults "H19" "without options, and without the plugin: link speed, an ID of its own, pfifo"

options()
{
	port
	tca qdisc add dev x0 root handle 1: int rate 100gbit switch-id 7 dscp 40 relative sojourn || fail "options"
	expect "as text" "$(shown)" = \
		"qdisc int 1: root rate 100Gbit switch-id 7 dscp 40 relative sojourn"
	expect "rate" "$(option rate)" -eq 12500000000
	expect "relative" "$(option relative)" = true
	# a change keeps the options that it does not name
	tca qdisc change dev x0 root int rate 25gbit || fail "change"
	expect "after a change" "$(shown)" = \
		"qdisc int 1: root rate 25Gbit switch-id 7 dscp 40 relative sojourn"
	tca qdisc change dev x0 root int norelative nosojourn switch-id 0 rate 0bit || fail "change"
	expect "after another" "$(shown)" = \
		"qdisc int 1: root rate link switch-id default dscp 40"
	tca qdisc change dev x0 root int ethernet || fail "ethernet"
	expect "ethernet" "$(shown)" = "qdisc int 1: root rate link switch-id default dscp 40 ethernet"
	tca qdisc change dev x0 root int noethernet || fail "noethernet"
	# children can be added and deleted; there is one class
	tca qdisc add dev x0 parent 1:1 handle 2: fq_codel || fail "graft"
	expect "children" "$(tca -j qdisc show dev x0 | jq -r '[.[] | select(.parent == "1:1") | .kind] | join(" ")')" = fq_codel
	expect "class" "$(tca class show dev x0 parent 1: | grep -c '^class int 1:1 parent 1: leaf 2:')" -eq 1
	! tca qdisc add dev x0 parent 1:2 pfifo 2>/dev/null || fail "a child at 1:2 was accepted"
	tca qdisc del dev x0 parent 1:1 || fail "child cannot be deleted"
	tca qdisc add dev x0 parent 1:1 handle 3: tbf rate 1gbit burst 3000 limit 100000 || fail "tbf"
	tca qdisc replace dev x0 root handle 9: pfifo || fail "int cannot be replaced"
}
declare_test options "H19" "options, changes, children: what tc shows is what was asked for"

# refused TEXT ARGUMENTS...: tc fails with a message that contains TEXT
refused()
{
	local text=$1

	shift
	! tca qdisc add dev x0 root int "$@" >"$TMP/out" 2>&1 || fail "accepted: $*"
	grep -q -- "$text" "$TMP/out" || fail "for $*: $(<"$TMP/out")"
	! tca qdisc show dev x0 | grep -q int || fail "int is there after: $*"
}

errors()
{
	needs_virtual	# tc takes half a second with all checkers on
	port
	# messages of the kernel
	refused 'rate has to be 10mbit to 1600gbit' rate 1mbit
	refused 'rate has to be 10mbit to 1600gbit' rate 2000gbit
	# messages of the plugin
	refused 'rate takes a rate' rate lots
	refused 'rate takes a rate' rate
	refused 'switch-id takes' switch-id 4096
	refused 'switch-id takes' switch-id -1
	refused 'dscp takes' dscp 64
	refused 'what is "frobnicate"' frobnicate
	refused 'Usage: ... int' help
	tca qdisc add dev x0 root int rate 1gbit
	! tca qdisc change dev x0 root int rate 1mbit 2>/dev/null || fail "a wrong change was accepted"
	expect "rate after a refused change" "$(option rate)" -eq 125000000
}
declare_test errors "H19" "wrong options are refused with a reason, and change nothing"

# A class would be stamped as if it were the port; a single class is all of it. Not all kernels have taprio.
classes()
{
	local kind tried=

	add_ns a
	ip -n "${NSP}a" link add x0 numtxqueues 2 type veth peer name y0 numrxqueues 2
	for kind in prio "ets bands 2" "taprio num_tc 2 map 0 1 queues 1@0 1@1 base-time 0 sched-entry S 01 500000 sched-entry S 02 500000 clockid CLOCK_TAI"; do
		# shellcheck disable=SC2086 # words
		tca qdisc add dev x0 root handle 9: $kind 2>"$TMP/out" || continue
		! tca qdisc replace dev x0 parent 9:1 handle 8: int rate 1gbit 2>"$TMP/out" || fail "int below $kind was accepted"
		grep -q 'int stamps a port' "$TMP/out" || fail "below $kind: $(<"$TMP/out")"
		tca qdisc del dev x0 root
		tried+=" ${kind%% *}"
	done
	echo "tried:$tried"
	[[ $tried == *prio* ]] || fail "no prio: $(<"$TMP/out")"
	tca qdisc add dev x0 root handle 9: htb default 1
	tca class add dev x0 parent 9: classid 9:1 htb rate 1gbit
	tca qdisc add dev x0 parent 9:1 handle 8: int rate 1gbit || fail "int in an only class was refused"
	tca qdisc del dev x0 parent 9:1
	tca class add dev x0 parent 9: classid 9:2 htb rate 1gbit
	! tca qdisc add dev x0 parent 9:1 handle 8: int rate 1gbit 2>/dev/null || fail "int in one of two classes was accepted"
	tca qdisc del dev x0 root
}
declare_test classes "H19" "below prio, ets and taprio, and in one class of several, int is refused, as it would stamp a part as the port"

# loaded OPTION...: sends probes through sw's egress, a port with these options, while CUBIC fills
# its queue; leaves $TMP/trace and $TMP/flow.json
loaded()
{
	dumbbell 2 100us
	checksums_sent h1
	in_ns sw tc qdisc add dev egress root handle 1: int "$@" || fail "int $*"
	shaper sw egress "${RATE:-1gbit}" parent 1:1 handle 2:
	in_ns sw tc qdisc add dev egress parent 2:1 bfifo limit 20000000
	serve r
	trace_on hpccpp/hpccpp_sample
	in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --size 3M >/dev/null &
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --size 500k >"$TMP/flow.json" || fail "flow failed"
	wait $!
	trace_off "$TMP/trace"
}

# mean_u: the mean U of measured samples
mean_u()
{
	grep 'result=0' "$TMP/trace" | field u_q20 | awk '{ s += $1 } END { printf "%.4f", s / NR / 2^20 }'
}

relative()
{
	local u

	needs_virtual
	wait_until modprobe -r tcp_hpccpp
	# where records hide the rate, W_ai and the limit on W follow from the host's own
	modprobe tcp_hpccpp line_rate_mbps=25000
	RATE=25gbit loaded rate 25gbit switch-id 5
	u=$(mean_u)
	expect "speed stamped" "$(field mbps <"$TMP/trace" | sort -u)" -eq 25000
	teardown
	RATE=25gbit loaded rate 25gbit switch-id 5 relative
	expect "speed stamped" "$(field mbps <"$TMP/trace" | sort -u)" -eq 100000
	between "mean U, relative / absolute" "$(awk -v a="$(mean_u)" -v b="$u" 'BEGIN { print a / b }')" 0.97 1.03
	expect "flow's control" "$(jq -rs '.[0].cc' "$TMP/flow.json")" = hpccpp
	teardown
	# a rate that the enum lacks is stamped as the next lower one, with the same load
	RATE=1300mbit loaded rate 1300mbit switch-id 5
	expect "speed stamped for 1.3 Gb/s" "$(field mbps <"$TMP/trace" | sort -u)" -eq 1000
	expect "least U" "$(grep 'result=0 ' "$TMP/trace" | field u_q20 | sort -n | head -n1 | awk '{ print $1 / 2^20 }')" -le 1
	teardown
	wait_until modprobe -r tcp_hpccpp
	modprobe tcp_hpccpp
}
declare_test relative "H14" "relative: stamps show another rate and the same load; rates that the enum lacks"

sojourn()
{
	needs_virtual
	loaded rate 1gbit switch-id 5
	field qlen <"$TMP/trace" >"$TMP/queue"
	teardown
	loaded rate 1gbit switch-id 5 sojourn
	field qlen <"$TMP/trace" >"$TMP/wait"
	expect "wrong checksums" "$(in_ns r cat /proc/net/int_reflector | awk '$1 == "Checksum" { print $2 }')" -eq 0
	# behind one fifo both are the same, except for packets that arrived while the probe waited
	expect "longest wait x rate, bytes" "$(sort -n "$TMP/wait" | tail -n1)" -ge 40000
	between "longest, sojourn / backlog" "$(awk -v a="$(sort -n "$TMP/wait" | tail -n1)" -v b="$(sort -n "$TMP/queue" | tail -n1)" 'BEGIN { print a / b }')" 0.7 1.3
	teardown
	# a separate queue beside a full one: its probes wait for a short time, although the
	# port's backlog is long
	dumbbell 2 100us
	in_ns sw tc qdisc add dev egress root handle 1: int rate 1gbit switch-id 5 sojourn
	shaper sw egress 1gbit parent 1:1 handle 2:
	in_ns sw tc qdisc add dev egress parent 2:1 handle 3: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
	in_ns sw tc filter add dev egress parent 3: protocol ip pref 1 u32 match ip src 10.0.1.1/32 classid 3:1
	serve r
	trace_on hpccpp/hpccpp_sample
	in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --size 3M >/dev/null &
	sleep 0.005
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --size 300k >"$TMP/flow.json" || fail "flow failed"
	wait $!
	trace_off "$TMP/trace"
	# the flow's own slow start makes a queue of some packets; the port's is over 100 kB
	expect "longest wait in the queue that goes first, bytes" "$(field qlen <"$TMP/trace" | sort -n | tail -n1)" -le 20000
}
declare_test sojourn "H15" "sojourn: the probe's own wait times the rate"

# The options change while probes wait in the queue
sojourn_changes()
{
	local i pids=() options=("nosojourn" "sojourn dscp 40" "sojourn dscp 23" "nosojourn rate 2gbit" "sojourn rate 1gbit")

	needs_virtual
	dumbbell 2 1ms
	checksums_sent h1
	in_ns sw tc qdisc add dev egress root handle 1: int rate 1gbit switch-id 5 sojourn || fail "int"
	shaper sw egress 1gbit parent 1:1 handle 2:
	in_ns sw tc qdisc add dev egress parent 2:1 bfifo limit 20000000
	serve r
	in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --duration 100ms >/dev/null &
	pids+=($!)
	in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --duration 100ms >"$TMP/flow.json" &
	pids+=($!)
	for ((i = 0; i < 30; i++)); do
		# shellcheck disable=SC2086 # words
		in_ns sw tc qdisc change dev egress root int ${options[i % 5]} || fail "change"
		sleep 0.003
	done
	wait "${pids[@]}"
	expect "probes stamped" "$(in_ns sw tc -s -j qdisc show dev egress root | jq '.[0].stamped')" -ge 10
	expect "wrong checksums" "$(in_ns r cat /proc/net/int_reflector | awk '$1 == "Checksum" { print $2 }')" -eq 0
}
declare_test sojourn_changes "H15" "options that change while probes wait: all checksums stay correct"

# tagged NS ADDRESS: eth0 of NS gets 802.1ad and 802.1Q tags and this address
tagged()
{
	ip -n "$NSP$1" link add link eth0 name outer type vlan proto 802.1ad id 10
	ip -n "$NSP$1" link add link outer name inner type vlan id 20
	ip -n "$NSP$1" link set outer up
	ip -n "$NSP$1" link set inner up
	ip -n "$NSP$1" addr add "$2" dev inner
}

qinq()
{
	local PLAN=1

	needs_virtual
	add_ns h1
	add_ns sw
	add_ns r
	link h1 eth0 sw p1
	link r eth0 sw egress
	PLAN='' build_plan
	ip -n "${NSP}sw" link add br0 type bridge 2>/dev/null || skip "no bridge in this kernel"
	ip -n "${NSP}sw" link set p1 master br0
	ip -n "${NSP}sw" link set egress master br0
	ip -n "${NSP}sw" link set br0 up
	tagged h1 10.9.0.1/24 2>/dev/null || skip "no VLANs in this kernel"
	tagged r 10.9.0.2/24
	in_ns sw tc qdisc add dev p1 root netem delay 1ms limit 100000
	in_ns sw tc qdisc add dev egress root handle 1: int rate 1gbit switch-id 5 || fail "int"
	shaper sw egress 1gbit parent 1:1 handle 2:
	serve r
	in_ns h1 flowgen long --to 10.9.0.2 --cc hpccpp --size 2M >"$TMP/flow.json" || fail "flow failed"
	expect "probes stamped" "$(in_ns sw tc -s -j qdisc show dev egress root | jq '.[0].stamped')" -ge 5
	expect "control" "$(jq -rs '.[0].cc' "$TMP/flow.json")" = hpccpp
	expect "wrong checksums" "$(in_ns r cat /proc/net/int_reflector | awk '$1 == "Checksum" { print $2 }')" -eq 0
}
declare_test qinq "H6 H19" "a bridge port stamps behind two VLAN tags, too"

# A port whose rate is unknown does not stamp: probes leave as they came, with a correct
# checksum. It gets copies of the packets.
no_rate()
{
	local option

	needs_virtual
	command -v tshark >/dev/null || skip "no tshark to read captures with"
	for option in nosojourn sojourn; do
		dumbbell 1 100us
		checksums_sent h1
		in_ns sw ip link add d0 type dummy
		in_ns sw ip link set d0 up
		in_ns sw tc qdisc add dev d0 root int switch-id 5 "$option" || fail "int $option"
		in_ns sw tc qdisc add dev p1 clsact
		in_ns sw tc filter add dev p1 ingress matchall action mirred egress mirror dev d0
		serve r
		SNAPLEN=0 capture sw d0 "$TMP/d.pcap" tcp
		in_ns h1 flowgen long --to 10.0.0.1 --cc hpccpp --size 100k >"$TMP/flow.json" || fail "flow failed"
		stop_captures
		expect "rate" "$(in_ns sw tc -s -j qdisc show dev d0 root | jq '.[0].rate_in_use')" -eq 0
		expect "probes that pass, $option" "$(in_ns sw tc -s -j qdisc show dev d0 root | jq '.[0].no_rate')" -ge 2
		expect "wrong checksums of probes, $option" "$(tshark -r "$TMP/d.pcap" -n -o tcp.check_checksum:TRUE -Y 'tcp.flags == 8' -T fields -e tcp.checksum.status 2>/dev/null | sort | uniq -c | awk '$2 != 1 { n += $1 } $2 == 1 { g += $1 } END { print (g ? n + 0 : "no probe") }')" = 0
		teardown
	done
}
declare_test no_rate "H15 H19" "a port without a rate does not change probes"

profile()
{
	local out

	needs_virtual	# tc takes half a second with all checkers on
	port
	"$LOWQ_TC" -n "${NSP}a" hpccpp x0 --rate 10gbit --shape --switch-id 7 >"$TMP/out" 2>&1 || fail "lowq-tc: $(<"$TMP/out")"
	expect "queues" "$(tca -j qdisc show dev x0 | jq -r '[.[] | select(.kind != "noqueue") | .kind] | sort | join(" ")')" = "bfifo htb int"
	expect "rate and ID in use" "$(tca -s -j qdisc show dev x0 | jq -r '.[] | select(.kind == "int") | "\(.rate_in_use) \(.switch_id_in_use)"')" = "1250000000 7"
	"$LOWQ_TC" -n "${NSP}a" reset x0 >/dev/null || fail "reset"
	! tca qdisc show dev x0 | grep -q 'qdisc int' || fail "int is there after reset"
	out=$("$LOWQ_TC" -n "${NSP}a" hpccpp x0 --rate 25gbit --no-shape --sojourn --relative --dscp 40 --dry-run --json) || fail "dry run"
	expect "commands" "$(jq -r '.commands[] | select(test(" int "))' <<<"$out")" = \
		"tc -n ${NSP}a qdisc add dev x0 root handle 10f0: int rate 25gbit dscp 40 relative sojourn"
	! "$LOWQ_TC" -n "${NSP}a" hpccpp x0 --rate 1mbit --shape --dry-run >/dev/null 2>&1 || fail "1mbit was taken"
	! "$LOWQ_TC" -n "${NSP}a" hpccpp x0 --rate 1gbit --shape --switch-id 4096 --dry-run >/dev/null 2>&1 || fail "switch ID 4096 was taken"
	# without the plugin it is refused with a reason
	! TC_LIB_DIR=/nonexistent "$LOWQ_TC" -n "${NSP}a" hpccpp x0 --rate 1gbit --shape --dry-run >"$TMP/out" 2>&1 || fail "set without the plugin"
	grep -q "has no 'rate' for 'int'" "$TMP/out" || fail "does not say what is missing: $(<"$TMP/out")"
	# Ethernet hardware without a shaper: its rate is that of the wire. Netlink shows no kind of it.
	cat >"$TMP/hardware" <<-END
		import sys
		sys.path[:0] = ["$(dirname "$(readlink -f "$LOWQ_TC")")", "/usr/share/lowq"]
		from lowq_common import devices
		from lowq_tc.cli import main
		real = devices.read_links
		devices.read_links = lambda route: [one._replace(kind="") if one.name == "x0" else one for one in real(route)]
		sys.exit(main(sys.argv[1:]))
	END
	expect "on hardware" "$(python3 "$TMP/hardware" -n "${NSP}a" hpccpp x0 --rate 25gbit --switch-id 3 --dry-run --json |
		jq -r '.commands[] | select(test(" int "))')" = "tc -n ${NSP}a qdisc add dev x0 root handle 10f0: int rate 25gbit switch-id 3 ethernet"
	# several hardware queues: an int in each
	ip -n "${NSP}a" link add m0 numtxqueues 4 type veth peer name m1
	out=$("$LOWQ_TC" -n "${NSP}a" hpccpp m0 --rate 10gbit --no-shape --switch-id 3 --dry-run --json) || fail "dry run with 4 queues"
	expect "root of a device with 4 queues" "$(jq -r '[.commands[] | select(test("qdisc add"))] | .[0]' <<<"$out")" = \
		"tc -n ${NSP}a qdisc add dev m0 root handle 10f0: mq"
	expect "int below it" "$(jq '[.commands[] | select(test("parent 10f0:[1-4] .*int rate 10gbit switch-id 3"))] | length' <<<"$out")" -eq 4
}
declare_test profile "H19" "lowq-tc hpccpp: what it sets, restores and refuses"

# values MODULE.NAME...: the parameters' values in one line
values()
{
	local p

	for p; do
		cat "/sys/module/${p%.*}/parameters/${p#*.}" 2>/dev/null || echo none
	done | paste -sd' '
}

# slack: what fq on x8 may send late
slack()
{
	tc qdisc show dev x8 | grep -o 'timer_slack [^ ]*'
}

host()
{
	local all=(tcp_hpccpp.base_rtt_ns tcp_hpccpp.flows int_reflector.flows tcp_hpccpp.line_rate_mbps
		int_host.dscp tcp_hpccpp.format int_host.cell) bad
	local wanted=(--rtt 100us --flows 16 --rate 10gbit --dscp 40 --format ifa --cell 256)

	needs_virtual	# with all checkers on each command takes half a second
	wait_until modprobe -r tcp_hpccpp int_reflector
	ip link add x8 type dummy
	ip link set x8 up
	tc qdisc add dev x8 root handle 5: fq limit 77
	"$LOWQ_TC" host hpccpp "${wanted[@]}" --dry-run >"$TMP/out" 2>&1 || fail "dry run: $(<"$TMP/out")"
	grep -qx 'echo 100000 >/sys/module/tcp_hpccpp/parameters/base_rtt_ns' "$TMP/out" || fail "dry run: $(<"$TMP/out")"
	expect "modules after a dry run" "$(values "${all[@]}")" = "none none none none none none none"
	# it loads the modules, and still records their values from before
	"$LOWQ_TC" host hpccpp "${wanted[@]}" >"$TMP/out" 2>&1 || fail "set: $(<"$TMP/out")"
	expect "set" "$(values "${all[@]}")" = "100000 16 16 10000 40 1 256"
	expect "fq at the sender" "$(slack)" = "timer_slack 1us"
	"$LOWQ_TC" host hpccpp --rtt 50us >/dev/null || fail "set again"
	"$LOWQ_TC" host show >"$TMP/out"
	grep -q 'tcp_hpccpp.base_rtt_ns from 0 to 50000$' "$TMP/out" || fail "show: $(<"$TMP/out")"
	grep -q 'int_reflector loaded$' "$TMP/out" || fail "show: $(<"$TMP/out")"
	# what is refused changes nothing
	for bad in "--rtt 2s" "--flows 1000001" "--rate 100kbit" "--dscp 64" "--format int" "--format x" "--cell 0"; do
		# shellcheck disable=SC2086 # two words
		! "$LOWQ_TC" host hpccpp $bad >/dev/null 2>&1 || fail "$bad was accepted"
	done
	# if one of several steps fails, all are undone
	mount --bind /proc/sys/net/ipv4/tcp_congestion_control /proc/sys/net/ipv4/tcp_congestion_control &&
		mount -o remount,bind,ro /proc/sys/net/ipv4/tcp_congestion_control || fail "no read-only sysctl"
	! "$LOWQ_TC" host hpccpp --rtt 70us --flows 17 --default >"$TMP/out" 2>&1 || fail "sysctl fails, lowq-tc does not"
	umount /proc/sys/net/ipv4/tcp_congestion_control
	grep -q 'rolled back to what was there before' "$TMP/out" || fail "roll back: $(<"$TMP/out")"
	expect "after what was refused" "$(values "${all[@]}")" = "50000 16 16 10000 40 1 256"
	# another namespace uses the settings until it is reset
	add_ns a
	"$LOWQ_TC" -n "${NSP}a" host hpccpp --flows 16 >/dev/null || fail "in a namespace"
	"$LOWQ_TC" host reset >"$TMP/out" 2>&1 || fail "reset: $(<"$TMP/out")"
	grep -q 'stays: another namespace' "$TMP/out" || fail "reset: $(<"$TMP/out")"
	expect "left to the other namespace" "$(values "${all[@]}")" = "50000 16 16 10000 40 1 256"
	expect "fq, as it was" "$(slack)" = "timer_slack 10us"
	ip link del x8
	"$LOWQ_TC" -n "${NSP}a" host reset >/dev/null || fail "reset in a namespace"
	# without another namespace everything is reset
	wait_until modprobe -r tcp_hpccpp int_reflector
	modprobe tcp_hpccpp flows=7
	rmmod int_reflector 2>/dev/null
	"$LOWQ_TC" host hpccpp "${wanted[@]}" >/dev/null || fail "set"
	echo 25 >/sys/module/int_host/parameters/dscp
	! "$LOWQ_TC" host reset >"$TMP/out" 2>&1 || fail "says that all is put back: $(<"$TMP/out")"
	grep -q 'int_host.dscp was changed by someone else' "$TMP/out" || fail "reset: $(<"$TMP/out")"
	expect "after reset" "$(values "${all[@]}")" = "0 7 none 0 25 0 208"
	modprobe -r tcp_hpccpp
	"$LOWQ_TC" host reset >"$TMP/out" 2>&1 || fail "reset without the module: $(<"$TMP/out")"
	modprobe -a tcp_hpccpp int_reflector
}
declare_test host "H5 H19" "lowq-tc host hpccpp: T, N, line rate, DSCP and the reflector; shown, restored, left to others"

# set_speed DEV MBPS: a tap device says what ethtool told it
set_speed()
{
	in_ns a ethtool -s "$1" speed "$2" duplex full autoneg off || fail "ethtool -s $1 speed $2"
}

# Without the rate option the port follows the link's speed when the link comes up again.
link_speed()
{
	local dev

	add_ns a
	for dev in x0 x1; do
		in_ns a ip tuntap add dev "$dev" mode tap 2>/dev/null || skip "no tap devices"
		set_speed "$dev" 10000
		tca qdisc add dev "$dev" root int || fail "int on a tap"
	done
	expect "rate at 10 Gb/s" "$(stat rate_in_use)" -eq 1250000000
	set_speed x0 25000
	in_ns a ip link set x0 up
	expect "rate at 25 Gb/s" "$(stat rate_in_use)" -eq 3125000000
	expect "rate of the other port" "$(tca -s -j qdisc show dev x1 root | jq -r '.[0].rate_in_use')" -eq 1250000000
	tca qdisc change dev x0 root int rate 1gbit
	set_speed x0 40000
	in_ns a ip link set x0 down
	in_ns a ip link set x0 up
	expect "rate that was given" "$(stat rate_in_use)" -eq 125000000
	tca qdisc change dev x0 root int rate 0bit
	expect "rate at 40 Gb/s" "$(stat rate_in_use)" -eq 5000000000
}
declare_test link_speed "H19" "a port without the rate option follows the speed of its link"

# wire RATE QUEUES: h1 -- sw -- wire -- r. sw's egress is a port with QUEUES hardware queues, a child of
# mq each; the wire behind takes RATE and does not stamp. Base RTT 100 us.
wire()
{
	local i PLAN=1

	roomy
	for i in h1 sw wire r; do
		add_ns "$i"
	done
	net 1 h1 eth0 sw p1 100us
	net 0 r eth0 wire out
	PLAN='' build_plan
	ip -n "${NSP}sw" link add egress numtxqueues "$2" gso_max_segs 1 txqueuelen 10000 type veth peer name in netns "${NSP}wire" \
		numrxqueues "$2" gso_max_segs 1
	ip -n "${NSP}sw" addr add 10.1.1.1/24 dev egress
	ip -n "${NSP}wire" addr add 10.1.1.2/24 dev in
	ip -n "${NSP}sw" link set egress up
	ip -n "${NSP}wire" link set in up
	ip -n "${NSP}sw" route add 10.0.0.0/24 via 10.1.1.2
	ip -n "${NSP}wire" route add 10.0.1.0/24 via 10.1.1.1
	shaper wire out "$1"
	in_ns wire tc qdisc add dev out parent 1:1 handle 2: bfifo limit 2000000
	in_ns sw tc qdisc add dev egress root handle 1: mq || fail "mq"
	serve r
}

# flows_through N DURATION [LEAST]: GOODPUT of N flows of HPCC++ through the wire in Gb/s, DROPS there, and sw's queues
# in $TMP/qdiscs. In the end LEAST of them (all) still run as HPCC++.
flows_through()
{
	DROPS=$(wire_drops)
	# where a SYN is dropped, its flow does not start in so short a time
	in_ns h1 flowgen long --to 10.0.0.1 --flows "$1" --cc hpccpp --duration "$2" >"$TMP/flow.json" ||
		[ "${3:-}" ] || fail "flow failed"
	in_ns sw tc -s -j qdisc show dev egress >"$TMP/qdiscs"
	DROPS=$(($(wire_drops) - DROPS))
	GOODPUT=$(jq -s '[.[] | select(.type == "flow").goodput_bps] | add / 1e9' "$TMP/flow.json")
	expect "flows under hpccpp" "$(jq -s '[.[] | select(.type == "flow" and .status == "ok" and .cc == "hpccpp")] | length' "$TMP/flow.json")" -ge "${3:-$1}"
	echo "$1 flows: $GOODPUT Gb/s, $DROPS drops"
}

# int_in_queues N RATE: an int in each of the first N hardware queues of sw's port
int_in_queues()
{
	local i

	for ((i = 1; i <= $1; i++)); do
		printf 'qdisc add dev egress parent 1:%x int rate %s switch-id 5\n' "$i" "$2"
	done | in_ns sw tc -batch - || fail "int in $1 queues"
}

wire_drops()
{
	in_ns wire tc -s -j qdisc show dev out root | jq '.[0].drops'
}

multiqueue()
{
	local mq drops

	needs_virtual
	wire 10gbit 8
	# not all queues have int: nothing is stamped
	int_in_queues 7 10gbit
	in_ns h1 flowgen long --to 10.0.0.1 --flows 8 --cc hpccpp --size 300k >"$TMP/flow.json" || fail "flow failed"
	expect "stamped while a queue has no int" "$(in_ns sw tc -s -j qdisc show dev egress | jq '[.[].stamped // 0] | add')" -eq 0
	# the last one takes over the others' options, and its own become theirs
	in_ns sw tc qdisc add dev egress parent 1:8 int dscp 23 || fail "int in queue 8"
	expect "options of the last queue" "$(in_ns sw tc -j qdisc show dev egress | jq -r '[.[] | select(.parent == "1:8").options | .rate, .switch_id] | join(" ")')" = "1250000000 5"
	in_ns sw tc qdisc change dev egress parent 1:3 int switch-id 6 || fail "change"
	expect "switch IDs" "$(in_ns sw tc -j qdisc show dev egress | jq -r '[.[].options.switch_id // empty] | unique | join(" ")')" = 6
	flows_through 16 60ms
	expect "queues that carried flows" "$(jq '[.[] | select(.kind == "int" and .packets > 1000)] | length' "$TMP/qdiscs")" -ge 5
	mq=$GOODPUT drops=$DROPS
	# below a child of mq there is a part of the port only
	in_ns sw tc qdisc replace dev egress parent 1:1 handle 9: prio
	! in_ns sw tc qdisc add dev egress parent 9:1 int rate 10gbit 2>"$TMP/out" || fail "int below a child of mq was accepted"
	grep -q 'the child of mq or mqprio' "$TMP/out" || fail "reason: $(<"$TMP/out")"
	# the same with one queue in place of eight
	in_ns sw tc qdisc replace dev egress root handle 7: int rate 10gbit switch-id 5 || fail "int as the root"
	flows_through 16 60ms
	between "goodput, mq / one queue" "$(awk -v a="$mq" -v b="$GOODPUT" 'BEGIN { print a / b }')" 0.98 1.02
	expect "packets that the wire dropped, with one queue $DROPS" "$drops" -le $((DROPS + DROPS / 4 + 10))
}
declare_test multiqueue "H19" "one int in each hardware queue: the port's load, and the port's options; refused where it would see a part"

# A stamp with the load of its own queue alone would show a tenth of U, and all senders would fall back. With
# the port's load one or another still does for a while, because thousands of packets are lost at the start.
multiqueue_fast()
{
	local mq

	needs_virtual
	wire 100gbit 16
	int_in_queues 16 100gbit
	trace_on hpccpp/hpccpp_sample
	flows_through 32 20ms 28
	trace_off "$TMP/trace"
	mq=$GOODPUT
	expect "queues that carried flows" "$(jq '[.[] | select(.kind == "int" and .packets > 1000)] | length' "$TMP/qdiscs")" -ge 10
	expect "goodput of 100 Gb/s" "$(awk -v g="$mq" 'BEGIN { print int(g) }')" -ge 90
	between "mean U" "$(mean_u)" 0.9 1
	in_ns sw tc qdisc replace dev egress root handle 7: int rate 100gbit switch-id 5 || fail "int as the root"
	flows_through 32 20ms 28
	between "goodput, mq / one queue" "$(awk -v a="$mq" -v b="$GOODPUT" 'BEGIN { print a / b }')" 0.98 1.02
}
declare_test multiqueue_fast "H19" "100 Gb/s through 16 hardware queues: the load is the port's, and the rate that of one queue"

# The port's sum goes on while flows run: windows of a few hundred bytes would be a goodput of 1 Gb/s
multiqueue_changed()
{
	local how

	needs_virtual
	for how in queue channels; do
		wire 10gbit 4
		int_in_queues 4 10gbit
		: >/sys/kernel/tracing/trace
		trace_on hpccpp/hpccpp_sample
		in_ns h1 flowgen long --to 10.0.0.1 --flows 12 --cc hpccpp --duration 60ms >"$TMP/flow.json" &
		sleep 0.03
		case $how in
		queue) in_ns sw tc qdisc replace dev egress parent 1:3 handle 13: int rate 10gbit switch-id 5 ;;
		channels) in_ns sw ethtool -L egress tx 3 >/dev/null ;;
		esac || fail "$how"
		wait $!
		trace_off "$TMP/trace"
		expect "$how: samples that cannot be compared" "$(grep -c 'hpccpp_sample:.* result=2 ' "$TMP/trace")" -le 8
		expect "$how: samples with U above 4" "$(field u_q20 <"$TMP/trace" | awk '$1 > 4 * 2 ^ 20' | wc -l)" -eq 0
		expect "$how: goodput, Gb/s" "$(jq -s '[.[] | select(.type == "flow").goodput_bps] | add / 1e9' "$TMP/flow.json")" -ge 8
		teardown
	done
}
declare_test multiqueue_changed "H16 H19" "a queue's int is replaced, and the number of queues changes, under load: U and goodput stay"

# What lowq-tc sets on such a port
multiqueue_companion()
{
	needs_virtual
	wire 10gbit 8
	in_ns sw tc qdisc del dev egress root 2>/dev/null	# what wire made; lowq-tc replaces no queue of others
	in_ns sw "$LOWQ_TC" hpccpp egress --rate 10gbit --no-shape --switch-id 5 >"$TMP/out" 2>&1 || fail "lowq-tc: $(<"$TMP/out")"
	flows_through 16 60ms
	expect "goodput in Gb/s" "$GOODPUT" -ge 8.5
	expect "queues that carried flows" "$(jq '[.[] | select(.kind == "int" and .packets > 1000)] | length' "$TMP/qdiscs")" -ge 5
	expect "probes not stamped" "$(jq '[.[].no_rate // 0] | add' "$TMP/qdiscs")" -eq 0
	in_ns sw "$LOWQ_TC" reset egress >/dev/null || fail "lowq-tc reset"
	expect "root after reset" "$(in_ns sw tc -j qdisc show dev egress root | jq -r '.[0] | .kind + " " + .handle')" = "noqueue 0:"
}
declare_test multiqueue_companion "H19" "lowq-tc hpccpp keeps mq, with an int in each hardware queue: 16 flows spread over them and fill the port"

ethernet()
{
	local option CC=hpccpp

	needs_virtual
	for option in noethernet ethernet; do
		dumbbell 1 1ms
		in_ns sw tc qdisc add dev egress root handle 1: int rate 100mbit switch-id 5 "$option" || fail "int"
		in_ns sw tc qdisc add dev egress parent 1:1 handle 2: htb default 1 direct_qlen 100000
		# a wire: each frame takes 24 bytes more, and 84 at least
		in_ns sw tc class add dev egress parent 2: classid 2:1 htb rate 100mbit ceil 100mbit burst 200 cburst 200 quantum 200 overhead 24 mpu 84
		in_ns sw tc qdisc add dev egress parent 2:1 bfifo limit 20000000
		ip -n "${NSP}h1" route replace default via 10.0.1.254 advmss 88
		ip -n "${NSP}r" route replace default via 10.0.0.254 advmss 88
		serve r
		observe 100mbit --from 300ms --to 900ms
		send --duration 900ms
		observed
		expect "control, $option" "$(flow_field cc)" = hpccpp
		jq '.qlen_pkts.p99' "$TMP/q.json" >"$TMP/p99.$option"
		teardown
	done
	cat "$TMP/p99.noethernet" "$TMP/p99.ethernet"
	expect "queue with small packets, p99, as on Ethernet" "$(<"$TMP/p99.ethernet")" -le 5
	expect "queue without, p99" "$(<"$TMP/p99.noethernet")" -ge 10
}
declare_test ethernet "H19" "packets of 142 bytes: B is right with Ethernet's preamble, FCS and gap"

# The kernel's default: a port of the link's speed, on devices with one queue and with several
as_default()
{
	local before

	[ "${LOWQ_LAB:-}" ] || skip "changes the machine's default"
	before=$(sysctl -n net.core.default_qdisc)
	sysctl -qw net.core.default_qdisc=int || fail "int as the default"
	add_ns a
	ip -n "${NSP}a" link add m0 numtxqueues 4 type veth peer name m1
	ip -n "${NSP}a" link set m1 up
	tca qdisc replace dev m0 root handle 1: mq || fail "mq"
	ip -n "${NSP}a" link set m0 up
	tca qdisc replace dev m0 root handle 2: mq || fail "mq in place of mq"
	sysctl -qw net.core.default_qdisc="$before"
	expect "queues with int" "$(tca -j qdisc show dev m0 | jq '[.[] | select(.kind == "int")] | length')" -eq 4
	expect "rate in use" "$(tca -s -j qdisc show dev m0 | jq '[.[].rate_in_use // empty] | unique | .[0]')" -eq 1250000000
	expect "options" "$(tca -j qdisc show dev m0 | jq -r '[.[].options.rate // empty] | unique | .[0]')" = link
}
declare_test as_default "H19" "int as net.core.default_qdisc: in each queue, with the link's speed"

# of_kind KIND NAME: a statistic of the qdisc of this kind, from $TMP/qdiscs
of_kind()
{
	jq -r --arg kind "$1" ".[] | select(.kind == \$kind) | .$2" "$TMP/qdiscs"
}

# drained: does nothing wait at sw? Its qdiscs are in $TMP/qdiscs
drained()
{
	in_ns sw tc -s -j qdisc show dev egress >"$TMP/qdiscs"
	[ "$(of_kind int qlen)" -eq 0 ] && [ "$(of_kind pfifo qlen)" -eq 0 ]
}

# What the child drops is counted, and not as waiting.
child_drops()
{
	dumbbell 1 100us
	in_ns sw tc qdisc add dev egress root handle 1: int rate 1gbit || fail "int"
	# so slow that a host fills it in real time, too, whatever else its machine does
	shaper sw egress 20mbit parent 1:1 handle 2:
	in_ns sw tc qdisc replace dev egress parent 2:1 handle 3: pfifo limit 5
	serve r
	in_ns h1 flowgen long --to 10.0.0.1 --cc cubic --size 2M >/dev/null || fail "flow failed"
	wait_until drained
	expect "drops of the child" "$(of_kind pfifo drops)" -ge 1
	expect "drops of int" "$(of_kind int drops)" -ge "$(of_kind pfifo drops)"
	expect "bytes waiting" "$(of_kind int backlog)" -eq 0
}
declare_test child_drops "H19" "packets that a child drops are counted, and do not wait"

# dumped_meanwhile: asks for sw's queues and their counters until $TMP/enough exists
dumped_meanwhile()
{
	while [ ! -e "$TMP/enough" ] && [ -e "/run/netns/${NSP}sw" ]; do
		printf '%s\n' "qdisc show dev egress" "class show dev egress" "qdisc show dev many" "class show dev many" |
			in_ns sw tc -s -force -batch - >/dev/null 2>&1
		sleep 0.003
	done
}

# loaded_meanwhile REQUESTS: flows over both of sw's ports, and REQUESTS a second, until they are stopped; their
# processes are in the caller's pids
loaded_meanwhile()
{
	in_ns h1 flowgen long --to 10.0.0.1 --flows 2 --cc hpccpp --duration 1000s >/dev/null 2>&1 &
	pids+=($!)
	in_ns h1 flowgen long --to 10.5.0.1 --flows 8 --cc hpccpp --duration 1000s >/dev/null 2>&1 &
	pids+=($!)
	in_ns h1 flowgen rpc --push --to fd00:0::1 --size 20k --rate "$1" --cc hpccpp --duration 1000s >/dev/null 2>&1 &
	pids+=($!)
}

# Many ports, changed, dumped and deleted under traffic
churn()
{
	local i j pids=() format=/sys/module/tcp_hpccpp/parameters/format requests=200

	dumbbell 1 100us
	# an emulated CPU would do nothing else, and have more and more requests at once
	[ "${LOWQ_LAB:-}" != stock ] ||
		{ requests=10; in_ns h1 tc qdisc add dev eth0 root netem rate 5mbit limit 1000 || fail "netem"; }
	serve r
	# a port with four hardware queues, an int in each
	ip -n "${NSP}sw" link add many numtxqueues 4 type veth peer name many1 netns "${NSP}r" numrxqueues 4
	ip -n "${NSP}sw" addr add 10.5.0.254/24 dev many
	ip -n "${NSP}sw" link set many up
	ip -n "${NSP}r" addr add 10.5.0.1/24 dev many1
	ip -n "${NSP}r" link set many1 up
	rm -f "$TMP/enough"
	loaded_meanwhile "$requests"
	dumped_meanwhile &
	for ((i = 0; i < 20; i++)); do
		echo $((i % 3)) >"$format"	# of new connections
		in_ns sw tc qdisc replace dev egress root handle $((i % 2 + 1)): int rate $((i + 1))00mbit sojourn
		in_ns sw tc qdisc replace dev egress parent $((i % 2 + 1)):1 pfifo limit $((i * 10 + 5))
		in_ns sw tc qdisc change dev egress root int rate $((i + 2))00mbit nosojourn
		[ $((i % 5)) -ne 4 ] || in_ns sw tc qdisc del dev egress root
		[ $((i % 5)) -ne 0 ] || in_ns sw tc qdisc replace dev many root handle 8: mq
		for ((j = 1; j <= 4; j++)); do
			echo "qdisc replace dev many parent 8:$j handle $((i % 2 + 1))$j: int rate $((i + 1))00mbit switch-id $((i + j))"
		done | in_ns sw tc -batch - || fail "int below mq"
		[ $((i % 5)) -ne 3 ] || in_ns sw ethtool -L many tx $((i % 3 + 2)) >/dev/null 2>&1
		ip -n "${NSP}sw" link set egress mtu $((1500 - i))
		sleep 0.02
	done
	expect "probes" "$(in_ns h1 sed -n 's/^Probes //p' /proc/net/hpccpp)" -ge 100
	ip -n "${NSP}sw" link set egress down
	ip -n "${NSP}sw" link set egress up
	ip -n "${NSP}sw" link del egress
	ip -n "${NSP}sw" link del many
	touch "$TMP/enough"
	kill "${pids[@]}"
	wait "${pids[@]}" || true
	echo 0 >"$format"
}
declare_test churn "" "ports that are replaced, changed, dumped, deleted and taken down under traffic, also below mq"

run_tests "$@"
