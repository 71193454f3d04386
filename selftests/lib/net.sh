# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Namespaces, topologies, queues, and traffic in them. Part of lib.sh.
#
#	h1 --\                                          hosts h1..hN send,
#	      sw ==== bottleneck (sw:egress) == r       r receives
#	hN --/
#
# The name of every namespace begins with $NSP, so that no other one is touched. The
# base RTT is a delay of ACKs (netem on sw's ports to the hosts); only the bottleneck's
# queue adds to it.

NSP=lowq$$-

# in_ns HOST COMMAND...
in_ns()
{
	local ns=$NSP$1

	shift
	ip netns exec "$ns" "$@"
}

# A topology is planned, and then built by few programs: their starts take longer than they do.
# Where PLAN is set, add_ns, link and net only note what build_plan does at the end.
PLAN=			# set: only plan
PLANNED_NS=()		# new namespaces
PLANNED_LINKS=		# between them, for "ip -batch"
declare -A PLANNED_IN	# for "ip -batch" in a namespace

# plan_in NS WORD...: a line for the namespace
plan_in()
{
	PLANNED_IN[$1]+="${*:2}"$'\n'
}

# batch LINES [ip's options]
batch()
{
	ip "${@:2}" -batch - <<<"$1"
}

# The buffers are Linux's defaults, or up to BUFFER bytes. Larger ones change the results:
# while its window grows, a receiver acknowledges every packet at once.
build_plan()
{
	local ns rc=0

	[ -z "$PLAN" ] || return 0
	[ ${#PLANNED_NS[@]} -eq 0 ] || batch "$(printf "netns add $NSP%s\n" "${PLANNED_NS[@]}")" || rc=1
	# before there are devices, which take over some of it
	for ns in "${PLANNED_NS[@]}"; do
		in_ns "$ns" sysctl -qw net.ipv4.tcp_rmem="4096 131072 ${BUFFER:-6291456}" \
			net.ipv4.tcp_wmem="4096 16384 ${BUFFER:-6291456}" \
			net.ipv4.conf.all.forwarding=1 net.ipv6.conf.all.forwarding=1 \
			net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
			net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_timestamps=1 || rc=1
	done
	[ -z "$PLANNED_LINKS" ] || batch "$PLANNED_LINKS" || rc=1
	for ns in "${!PLANNED_IN[@]}"; do
		batch "${PLANNED_IN[$ns]}" -n "$NSP$ns" || rc=1
	done
	PLANNED_NS=() PLANNED_LINKS='' PLANNED_IN=()
	return $rc
}

add_ns()
{
	PLANNED_NS+=("$1")
	plan_in "$1" link set lo up
	build_plan
}

# link NS1 DEV1 NS2 DEV2 [MAC1 MAC2]: a veth pair, up; OFFLOADS=1 keeps TSO and GRO
link()
{
	local segs=1

	[ -z "${OFFLOADS:-}" ] || segs=65535
	PLANNED_LINKS+="link add $2 netns $NSP$1 gso_max_segs $segs txqueuelen 10000 ${5:+address $5} "
	PLANNED_LINKS+="type veth peer name $4 netns $NSP$3 gso_max_segs $segs txqueuelen 10000 "
	PLANNED_LINKS+="${6:+address $6}"$'\n'
	plan_in "$1" link set "$2" up
	plan_in "$3" link set "$4" up
	build_plan
}

# net N NS1 DEV1 NS2 DEV2: a link with addresses 10.0.N.1 and fd00:N::1 for the
# host NS1, .254 and ::254 for the router NS2, NS1's default gateway. Neighbour entries are
# permanent, so that no ARP packet delays a test or enters a queue.
net()
{
	local n=$1 host=$2 hdev=$3 router=$4 rdev=$5 hmac rmac

	printf -v hmac '02:00:00:%02x:%02x:01' $((n >> 8)) $((n & 255))
	rmac=${hmac%01}fe
	PLAN=1 link "$host" "$hdev" "$router" "$rdev" "$hmac" "$rmac"
	plan_in "$host" addr add "10.0.$n.1/24" dev "$hdev"
	plan_in "$host" addr add "fd00:$n::1/64" dev "$hdev" nodad
	plan_in "$host" neigh replace "10.0.$n.254" lladdr "$rmac" dev "$hdev" nud permanent
	plan_in "$host" neigh replace "fd00:$n::254" lladdr "$rmac" dev "$hdev" nud permanent
	plan_in "$host" route add default via "10.0.$n.254"
	plan_in "$host" route add default via "fd00:$n::254"
	plan_in "$router" addr add "10.0.$n.254/24" dev "$rdev"
	plan_in "$router" addr add "fd00:$n::254/64" dev "$rdev" nodad
	plan_in "$router" neigh replace "10.0.$n.1" lladdr "$hmac" dev "$rdev" nud permanent
	plan_in "$router" neigh replace "fd00:$n::1" lladdr "$hmac" dev "$rdev" nud permanent
	build_plan
}

# Raises the machine-wide limits that a guest with 2 GB reaches first.
roomy()
{
	[ "${LOWQ_LAB:-}" ] || return 0		# not on a user's machine
	sysctl -qw net.ipv4.tcp_mem="262144 393216 524288" \
		net.core.netdev_max_backlog=1000000 net.core.rmem_max=268435456 \
		net.core.wmem_max=268435456 net.core.somaxconn=65535 \
		net.core.optmem_max=1048576
}

# dumbbell HOSTS RTT [RTT_OF_HOST2...]: as drawn above. Addresses: host i is
# 10.0.i.1 and fd00:i::1, r is 10.0.0.1 and fd00:0::1.
dumbbell()
{
	local n=$1 i rtt=$2 delays='' PLAN=1

	shift
	roomy
	add_ns sw
	add_ns r
	net 0 r eth0 sw egress
	for ((i = 1; i <= n; i++)); do
		add_ns "h$i"
		net "$i" "h$i" eth0 sw "p$i"
		rtt=${!i:-$rtt}
		[ "$rtt" = 0 ] || delays+="qdisc add dev p$i root netem delay $rtt limit 1000000"$'\n'
	done
	PLAN=
	build_plan
	[ -z "$delays" ] || tc -n "${NSP}sw" -batch - <<<"$delays"
}

# accecn_dumbbell N RTT...: whose hosts all have Accurate ECN enabled
accecn_dumbbell()
{
	dumbbell "$@"
	every sysctl -qw net.ipv4.tcp_ecn=3
}

# our_ns: the paths of the topology's namespaces, in NAMESPACES
our_ns()
{
	NAMESPACES=(/run/netns/"$NSP"*)
	[ -e "${NAMESPACES[0]}" ] || NAMESPACES=()
}

# every COMMAND...: runs it in each of the topology's namespaces
every()
{
	local ns NAMESPACES

	our_ns
	for ns in "${NAMESPACES[@]##*/}"; do
		ip netns exec "$ns" "$@"
	done
}

# wait_until COMMAND...: polls for up to WAIT seconds (10)
wait_until()
{
	local i

	for ((i = 0; i < ${WAIT:-10} * 20; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	fail "timed out waiting for: $*"
}

# listening NS PORT: does a TCP server listen there?
listening()
{
	in_ns "$1" ss -Hltn "sport = :$2" | grep -q .
}

# serve NS [flowgen options]: starts a flowgen server in the background, and waits until it is
# ready
serve()
{
	local ns=$1

	shift
	in_ns "$ns" flowgen serve "$@" >/dev/null 2>"$TMP/serve.$ns" &
	wait_until listening "$ns" 5201
}

# iperf_client FROM ARGUMENT...: runs iperf3's client; its JSON is in $TMP/iperf.json. Just
# after a test the server refuses the next one, so it tries again.
iperf_client()
{
	local try

	for try in 1 2 3 4 5; do
		in_ns "$1" iperf3 -J "${@:2}" >"$TMP/iperf.json"
		[ -n "$(jq -r '.error // empty' "$TMP/iperf.json")" ] || return 0
		sleep 0.2
	done
	fail "iperf3 ${*:2}, $try times: $(jq -r .error "$TMP/iperf.json")"
}

# sink [CONTROL]: r reads and discards all data that arrives at port 5299; MARK is the mark of
# its own packets
sink()
{
	in_ns r python3 "$LIB/talk.py" sink ${1:+--cc "$1"} ${MARK:+--mark "$MARK"} &
	wait_until listening r 5299
}

# connections_end NAMESPACE...: without their processes and without queues that hold or drop packets,
# connections end. If the path went first, they would send again for two minutes: what they do then
# is in the next test's trace, and their namespaces and the module stay.
connections_end()
{
	local ns wait open

	for ns; do
		tc -n "$ns" qdisc show 2>/dev/null | awk '
			/ root / && $2 != "noqueue" { print "qdisc del dev " $5 " root" }
			$2 == "clsact" || $2 == "ingress" { print "qdisc del dev " $5 " " $2 }' |
			tc -n "$ns" -force -batch - 2>/dev/null
	done
	for wait in 0.01 0.03 0.1 0.3 0.5 1 1; do
		open=
		for ns; do
			open+=$(ss -N "$ns" -Htn state established state fin-wait-1 state close-wait state last-ack state closing)
		done
		[ "$open" ] || return
		sleep "$wait"
	done
}

# Kills all processes in the namespaces, then deletes the namespaces.
teardown()
{
	local ns process NAMESPACES

	our_ns
	for process in ${NAMESPACES:+/proc/[0-9]*}; do
		for ns in "${NAMESPACES[@]}"; do
			[ ! "$process/ns/net" -ef "$ns" ] || kill -9 "${process#/proc/}" 2>/dev/null
		done
	done
	connections_end "${NAMESPACES[@]##*/}"
	[ ${#NAMESPACES[@]} -eq 0 ] || batch "$(printf 'netns del %s\n' "${NAMESPACES[@]##*/}")"
	[ -z "${CONTROL_BEFORE:-}" ] || sysctl -qw net.ipv4.tcp_congestion_control="$CONTROL_BEFORE"
	wait 2>/dev/null
}

# vanish HOST: deletes a host and all its processes while traffic runs
vanish()
{
	ip netns pids "$NSP$1" | xargs -r kill -9
	ip netns del "$NSP$1"
}

# shaper NS DEV RATE [PLACE... handle H:]: htb with one class that sends packet by packet; by
# default at the root
shaper()
{
	local place=("${@:4}")

	[ $# -gt 3 ] || place=(root handle 1:)
	in_ns "$1" tc qdisc add dev "$2" "${place[@]}" htb default 1 direct_qlen 100000
	set_rate "$1" "$2" "${place[-1]}1" "$3"
}

# tc_has_int: lets tc find the plugin that knows int's options, beside the tools or where TC_LIB_DIR
# says: a kernel tree has none
tc_has_int()
{
	export TC_LIB_DIR=${TC_LIB_DIR:-$BIN}
	tc qdisc add dev lo root int help 2>&1 | grep -q switch-id
}

# set_rate NS DEV CLASS RATE [FRAME]: sets the rate of a shaper's class
set_rate()
{
	local frame=${5:-1514}

	in_ns "$1" tc class replace dev "$2" parent "${3%:*}:" classid "$3" htb rate "$4" ceil "$4" \
		burst "$frame" cburst "$frame" quantum "$frame" || fail "no rate of $4 at $1's $2"
}

# shape RATE [QDISC...]: makes the bottleneck, a shaper over QDISC. With all checkers on, a
# packet takes more CPU time than its slot at high rates; the shaper's timer would then always
# be late and leave no CPU time to programs.
shape()
{
	local rate=$1

	shift
	virtual || rate=10mbit
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	shaper sw egress "$rate"
	[ $# -eq 0 ] || in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "$@"
}

# lossy SPEC...: netem instead of a bottleneck; "loss X% ecn" marks packets, it does not drop them
lossy()
{
	in_ns sw tc qdisc del dev egress root 2>/dev/null
	in_ns sw tc qdisc add dev egress root netem limit 100000 "$@"
}

# send [flowgen options]: one flow from h1 to r, over IPv4 unless TO is another address;
# flow_field NAME prints a field of its result
send()
{
	[[ " $* " == *" --duration "* ]] || set -- --timeout 120s "$@"
	in_ns h1 flowgen long --to "${TO:-10.0.0.1}" --cc "$CC" "$@" \
		>"$TMP/flow.json" || fail "flow failed: $(head -c 500 "$TMP/flow.json")"
}

flow_field()
{
	jq -rs "map(select(.type == \"flow\"))[0].$1" "$TMP/flow.json"
}
