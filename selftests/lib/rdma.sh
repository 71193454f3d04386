# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Soft-RoCE hosts in namespaces; needs lib.sh.
#
#	h1 --\                                           every host has a soft-RoCE
#	      sw ==== bottleneck (sw:egress) == r        device, named like its
#	hN --/                                           namespace
#
# RDMA devices are shared by all namespaces (the default): each device is visible
# everywhere, its packets use its own network namespace. A drop in the sender's own
# qdisc ends an RC connection: queues that drop belong on sw.

RCM_DEBUGFS=/sys/kernel/debug/roce_rcm
RCM_PARAM=/sys/module/roce_rcm/parameters
read -r KERNEL_RELEASE </proc/sys/kernel/osrelease

# The kernel refuses to create network namespaces (ENODEV) while an RDMA device is being
# removed: remove the devices, and wait, before their namespaces.
eval "$(declare -f teardown | sed '1s/teardown/teardown_namespaces/')"
teardown()
{
	local dev h words=''

	for h in h1 r; do	# of roce_pair: names of the first namespace, and not to be emptied
		[ "/run/netns/$NSP$h" -ef /proc/self/ns/net ] || continue
		! rdma link show "$NSP$h" >/dev/null 2>&1 || rdma link del "$NSP$h"
		ip netns del "$NSP$h"
	done
	for dev in $(compgen -G "/sys/class/infiniband/$NSP*"); do
		kill_in "${dev##*/}"
		words+="link del ${dev##*/}"$'\n'
	done
	[ -z "$words" ] || rdma -f -b - <<<"$words"
	wait_until no_devices
	[ ! -e /sys/class/net/roce_r ] || roce_pair_off
	teardown_namespaces
}

# roce_pair_off: undoes what roce_pair changed in the first namespace
roce_pair_off()
{
	local family pref job

	for job in $(jobs -p); do
		pkill -P "$job"
	done
	for family in -4 -6; do
		ip "$family" rule add pref 0 lookup local
		for pref in 10 11 30; do
			while ip "$family" rule del pref $pref 2>/dev/null; do :; done
		done
	done
	ip link del roce_h1
	ip link del roce_r
}

no_devices()
{
	! compgen -G "/sys/class/infiniband/$NSP*"
}

roce_kernel()
{
	command -v rdma >/dev/null || skip "no rdma program (iproute2)"
	[ -d /sys/class/infiniband_verbs ] || modprobe rdma_rxe 2>/dev/null || skip "no soft-RoCE"
}

# roce_dumbbell HOSTS RATE RTT: every host has a line of RATE; the caller sets the
# bottleneck's queue. ROCE_MTU is the links' MTU (1500: RoCE uses 1024; 4200: 4096).
roce_dumbbell()
{
	local n=$1 rate=$2 rtt=$3 h i

	[[ $KERNEL_RELEASE != [1-6].* ]] || skip "soft-RoCE knows no network namespaces before 7.x"
	roce_kernel
	MTU=${ROCE_MTU:-1500} SYSCTL=net.ipv4.conf.all.rp_filter=0 dumbbell "$n" "$rtt"
	for ((i = 0; i <= n; i++)); do
		h=h$i
		[ "$i" -gt 0 ] || h=r
		roce_line "$h" eth0 "$rate"
		roce_device "$h"
	done
}

# roce_pair RATE: only h1 and r, over sw, for kernels whose soft-RoCE works in the first
# namespace only: both names stand for that namespace. Rules route packets between them
# over their links.
roce_pair()
{
	local h

	[ "${LOWQ_LAB:-}" ] || skip "changes the machine's own routes"
	roce_kernel
	roomy
	add_ns sw
	for h in h1 r; do
		ip netns attach "$NSP$h" $$ || skip "ip cannot name the first namespace"
	done
	net 1 h1 roce_h1 sw p1
	NO_DEFAULT=1 net 0 r roce_r sw egress
	write_sysctls net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.roce_h1.accept_local=1 \
		net.ipv4.conf.roce_r.accept_local=1
	for h in "" -6; do
		ip $h rule add pref 30 lookup local
		ip $h rule del pref 0
	done
	roce_way h1 10.0.1.1 10.0.0.1 10.0.1.254
	roce_way r 10.0.0.1 10.0.1.1 10.0.0.254
	roce_way h1 fd00:1::1 fd00::1 fd00:1::254
	roce_way r fd00::1 fd00:1::1 fd00::254
	for h in h1 r; do
		roce_line "$h" "roce_$h" "$1"
		roce_device "$h" "roce_$h"
	done
}

# roce_way HOST FROM TO VIA: routes packets from one local address to another by a router
roce_way()
{
	local family=(-4) table=10

	[ "$1" = h1 ] || table=11
	[[ $2 != *:* ]] || family=(-6)
	ip "${family[@]}" rule add pref $table iif lo from "$2" to "$3" lookup $table
	ip "${family[@]}" route add default via "$4" dev "roce_$1" table $table
}

# roce_device HOST [NETDEV]: a soft-RoCE device over its eth0, named like its namespace
roce_device()
{
	in_ns "$1" rdma link add "$NSP$1" type rxe netdev "${2:-eth0}" ||
		fail "no soft-RoCE device on $1"
}

# roce_line NS DEV RATE: a line that never drops; a drop would end RC connections of
# soft-RoCE on the same host
roce_line()
{
	shape_dev "$1" "$2" "$3" $((${ROCE_MTU:-1500} + 14)) pfifo limit 100000
}

# gid HOST [4|6|link]: index of the host's address in its device's table of GIDs
gid()
{
	local dir want i found

	dir=/sys/class/infiniband/$NSP$1/ports/1/gids
	case ${2:-4} in
	4) want=0000:0000:0000:0000:0000:ffff:0a00: ;;
	6) want=fd00: ;;
	link) want=fe80: ;;
	esac
	if [ ! -d "$dir" ]; then		# exclusive
		found=$(in_ns "$1" grep -l "^$want" "$dir"/{0..7} 2>/dev/null | head -n1)
		[ -z "$found" ] || { echo "${found##*/}"; return; }
	else
		for i in {0..7}; do
			{ read -r found <"$dir/$i"; } 2>/dev/null || continue
			[[ $found != "$want"* ]] || { echo "$i"; return; }
		done
	fi
	fail "no GID $want on $NSP$1"
}

# roce_serve HOST: starts rocegen servers (IPv4, IPv6) and waits until they listen
roce_serve()
{
	in_ns "$1" rocegen serve --dev "$NSP$1" --gid "$(gid "$1" 4)" 2>"$TMP/roce_serve.$1" &
	in_ns "$1" rocegen serve --dev "$NSP$1" --gid "$(gid "$1" 6)" --port 5306 \
		2>"$TMP/roce_serve6.$1" &
	wait_until listening "$1" 5301
	wait_until listening "$1" 5306
}

# roce HOST [rocegen's client options]: traffic from HOST to TO_HOST (r), over IP V (4),
# into LOG.json (flow.json)
roce()
{
	local host=$1 to=${TO_HOST:-r} addr port=5301

	shift
	addr=10.0.${to#h}.1
	[ "$to" != r ] || addr=10.0.0.1
	[ "${V:-4}" = 4 ] || { to=${addr#10.0.}; addr=fd00:${to%.1}::1; port=5306; }
	# no timeouts because of checkers: 4 s
	virtual || set -- "$@" --timeout 20
	in_ns "$host" rocegen "$@" --dev "$NSP$host" --gid "$(gid "$host" "${V:-4}")" \
		--to "$addr" --port $port >"$TMP/${LOG:-flow}.json" || fail "rocegen $*"
}

# roce_tuned RATE [dcqcn|ldcp]: prints the algorithm's parameters, as options of the module.
# DCQCN's defaults are the paper's, for 40 Gb/s, and also work at 10; at 1 Gb/s its periods
# are six packets long, so all periods are made longer. LDCP counts every marked packet;
# its RTT is the network's with the queue at K_max.
roce_tuned()
{
	local words=("line_rate_mbps=$((${1%gbit} * 1000))")

	case ${2:-dcqcn},$1 in
	dcqcn,1gbit)
		words+=(dcqcn_ai_mbps=5 dcqcn_hai_mbps=10 dcqcn_timer_us=500 dcqcn_alpha_us=500
			cnp_interval_us=400 dcqcn_shift_g=4 rate_min_mbps=1) ;;
	ldcp,1gbit)
		words+=(algorithm=1 cnp_interval_us=0 reduce_gap_us=0 ldcp_alpha=256 ldcp_rtt_us=400) ;;
	ldcp,*)
		words+=(algorithm=1 cnp_interval_us=0 reduce_gap_us=0 ldcp_alpha=768 ldcp_rtt_us=100) ;;
	esac
	echo "${words[@]}"
}

# lose_cnps: sw drops half of the CNPs that it forwards, at random
lose_cnps()
{
	in_ns sw nft -f - <<-END || skip "no nft, or not numgen"
		table inet lose {
			chain forward {
				type filter hook forward priority 0
				udp dport 4791 @th,64,8 0x81 numgen random mod 2 0 counter drop
			}
		}
	END
}

# lose_nth OPCODES N: sw drops the Nth packet with one of these opcodes (0-4)
lose_nth()
{
	in_ns sw nft -f - <<-END || skip "no nft, or not numgen"
		table inet lose {
			chain forward {
				type filter hook forward priority 0
				udp dport 4791 @th,64,8 $1 numgen inc mod 1000000 $(($2 - 1)) counter drop
			}
		}
	END
}

# rcm_counter NAME: one of debugfs' counters
rcm_counter()
{
	local name value

	while read -r name value; do
		[ "$name" != "$1" ] || echo "$value"
	done <"$RCM_DEBUGFS"/counters
}

# mark_all [DEV [NS]]: marks every ECT(0) packet of RoCE that leaves NS (sw) by DEV (egress,
# to r); mark_none: ends that
mark_all()
{
	local dev=${1:-egress} ns=${2:-sw}

	in_ns "$ns" tc qdisc add dev "$dev" clsact
	in_ns "$ns" tc filter add dev "$dev" egress protocol ip pref 1 flower ip_proto udp \
		dst_port 4791 ip_tos 2/3 action pedit ex munge ip tos set 3 retain 3 pipe \
		action csum ip4h || skip "no tc flower or pedit"
	in_ns "$ns" tc filter add dev "$dev" egress protocol ipv6 pref 2 flower ip_proto udp \
		dst_port 4791 ip_tos 2/3 action pedit ex munge ip6 traffic_class set 3 retain 3 ||
		skip "no tc flower or pedit"
}

mark_none()
{
	in_ns sw tc qdisc del dev egress clsact
}

# hosts N: N hosts that send to r, with lines of LINE (1 Gb/s), the only queues. In the debug
# flavour, in real time, lines and rates are a fiftieth of that.
hosts()
{
	local rate=${LINE:-1gbit}

	if ! virtual; then
		rate=20mbit
		echo 20 >"$RCM_PARAM"/line_rate_mbps
		echo 5 >"$RCM_PARAM"/rate_min_mbps
	fi
	roce_dumbbell "$1" "$rate" "${RTT:-20us}"
	roce_serve r
}

mac_of()
{
	in_ns "$1" cat "/sys/class/net/$2/address"
}

# forge [cnp.py send's options]: from h2, as if from r unless told otherwise
forge()
{
	in_ns h2 python3 "$LIB/cnp.py" send --src 10.0.0.1 --dst 10.0.1.1 \
		--from-mac "$(mac_of h2 eth0)" --to-mac "$(mac_of sw p2)" --qp "$QP" "$@" ||
		fail "cnp.py $*"
}

# known_at ADDR: is a queue pair there known?
known_at()
{
	awk -v a="$1" '$2 == "local" && $3 == a { n = 1 } END { exit !n }' "$RCM_DEBUGFS"/qps
}

# qp_of_h1: the number of its newest queue pair
qp_of_h1()
{
	awk '$2 == "local" && $3 == "::ffff:10.0.1.1" && $4 > n { n = $4 } END { print n }' "$RCM_DEBUGFS"/qps
}

# held_at ADDR: packets in the FIFOs of the queue pairs there
held_at()
{
	awk -v a="$1" '$2 == "local" && $3 == a { n += $12 } END { print n + 0 }' "$RCM_DEBUGFS"/qps
}

# load [NAME=VALUE...]: reloads the module, with its defaults or with these parameters
load()
{
	modprobe -r roce_rcm || fail "cannot unload"
	modprobe roce_rcm "$@" || fail "cannot load with $*"
}

# red RATE MIN MAX: bottleneck of RATE with RED, thresholds in bytes. Its buffer holds all that
# the senders send before the first CNP: after a loss, go-back-N waits for a timeout of 67 ms
# or not, as chance will have it.
red()
{
	shape_dev sw egress "$1" $((${ROCE_MTU:-1500} + 14)) red limit 4000000 min "$2" max "$3" \
		avpkt 1086 burst $(($2 / 1086 + 1)) bandwidth "$1" probability "${4:-0.1}" ecn
}

# four_send: h1 to h4 to r, for 200 ms. They are connected before: RED drops packets of TCP.
four_send()
{
	local i pids=()

	for i in 1 2 3 4; do
		LOG=flow$i roce "h$i" send --start 20ms --duration 200ms &
		pids+=($!)
	done
	wait "${pids[@]}"
}

# four_shared MBPS: all ended well, with at least MBPS together, in equal shares
four_shared()
{
	jq -c .rate_bps "$TMP"/flow?.json
	expect "queue pairs that ended well" "$(jq -r .status "$TMP"/flow?.json | grep -cx ok)" -eq 4
	expect "packets out of sequence at r" "$(<"/sys/class/infiniband/${NSP}r/ports/1/hw_counters/out_of_seq_request")" -eq 0
	expect "Mb/s together" "$(jq -s 'map(.bytes) | add * 8 / 200000' "$TMP"/flow?.json)" -ge "$1"
	expect "fairness" "$(jq -s 'map(.bytes) | (add * add) / (4 * (map(. * .) | add))' "$TMP"/flow?.json)" -ge 0.9
}
