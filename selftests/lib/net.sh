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

	case $2 in
	ip|tc) "$2" -n "$ns" "${@:3}" ;;	# one start less
	ss) ss -N "$ns" "${@:3}" ;;
	python3) nsenter --net="/run/netns/$ns" "$2" -S "${@:3}" ;;	# as in lib.sh
	flowgen|nstat|sysctl) nsenter --net="/run/netns/$ns" "${@:2}" ;;
	*) ip netns exec "$ns" "${@:2}" ;;	# with a /sys of the namespace
	esac
}

# A topology is planned, and then built by one labnet: starts of programs take longer than what they do.
# Where PLAN is set, add_ns, link, net and route only note what build_plan builds at the end.
PLAN=			# set: only plan
PLANNED=()		# names of nodes
declare -A NODE ROUTES	# what labnet's plan says of each
LINKS=			# ... and of links

# plan_node NS [JSON]: the plan has it
plan_node()
{
	[ -z "${NODE[$1]:-}" ] || return 0
	PLANNED+=("$1")
	NODE[$1]="\"name\": \"$1\"${2:-}"
	ROUTES[$1]=
}

# The buffers are Linux's defaults, or up to BUFFER bytes. Larger ones change the results:
# while its window grows, a receiver acknowledges every packet at once. SYSCTL has words
# NAME=VALUE for the new namespaces.
build_plan()
{
	local word ns nodes='' sysctls='' rc

	[ -z "$PLAN" ] || return 0
	for word in ${SYSCTL:-}; do
		sysctls+="\"${word%%=*}\": \"${word#*=}\", "
	done
	for ns in "${PLANNED[@]}"; do
		nodes+=", {${NODE[$ns]}, \"routes\": [${ROUTES[$ns]:2}]}"
	done
	labnet - <<-END
		{ "prefix": "$NSP", "exact": false, "nodes": [${nodes:2}], "links": [${LINKS:2}],
		  "sysctl": {
			"net.ipv4.tcp_rmem": "4096 131072 ${BUFFER:-6291456}",
			"net.ipv4.tcp_wmem": "4096 16384 ${BUFFER:-6291456}",
			"net.ipv4.conf.all.forwarding": 1, "net.ipv6.conf.all.forwarding": 1,
			"net.ipv6.conf.all.accept_dad": 0, "net.ipv6.conf.default.accept_dad": 0,
			$sysctls "net.ipv4.tcp_no_metrics_save": 1, "net.ipv4.tcp_timestamps": 1 } }
	END
	rc=$?
	PLANNED=() NODE=() ROUTES=() LINKS=
	return $rc
}

add_ns()
{
	plan_node "$1"
	build_plan
}

# link NS1 DEV1 NS2 DEV2 [JSON1 JSON2]: a veth pair, up, of MTU bytes; OFFLOADS=1 keeps TSO and GRO.
# JSON is what the plan says of the ends. Neighbour entries are permanent, so that no ARP packet delays a test or
# enters a queue.
link()
{
	local offloads=false

	[ -z "${OFFLOADS:-}" ] || offloads=true
	plan_node "$1" ', "exists": true'
	plan_node "$3" ', "exists": true'
	LINKS+=", {\"mtu\": ${MTU:-1500}, \"offloads\": $offloads, \"neighbours\": true, \"ends\": [
		{\"node\": \"$1\", \"dev\": \"$2\"${5:-}}, {\"node\": \"$3\", \"dev\": \"$4\"${6:-}}]}"
	build_plan
}

# inner NS1 DEV1 NS2 DEV2 NET: a link of routers, with addresses NET.1 and NET.2
inner()
{
	link "${@:1:4}" ", \"addresses\": [\"$5.1/24\"]" ", \"addresses\": [\"$5.2/24\"]"
}

# route NS TO VIA...
route()
{
	local via

	printf -v via '"%s",' "${@:3}"
	plan_node "$1" ', "exists": true'
	ROUTES[$1]+=", {\"to\": \"$2\", \"via\": [${via%,}]}"
	build_plan
}

# net N NS1 DEV1 NS2 DEV2 [DELAY]: a link with addresses 10.0.N.1 and fd00:N::1 for the
# host NS1, .254 and ::254 for the router NS2, NS1's default gateway unless NO_DEFAULT is set. The router
# delays what it sends to the host.
net()
{
	local n=$1 format host router

	format=', "mac": "02:00:00:%02x:%02x:%s", "addresses": ["10.0.%d.%d/24", "fd00:%d::%d/64"]'
	# shellcheck disable=SC2059 # both ends have this format
	printf -v host "$format" $((n >> 8)) $((n & 255)) 01 "$n" 1 "$n" 1
	# shellcheck disable=SC2059
	printf -v router "$format, \"delay\": \"${6:-0}\"" $((n >> 8)) $((n & 255)) fe "$n" 254 "$n" 254
	PLAN=1 link "${@:2:4}" "$host" "$router"
	if [ -z "${NO_DEFAULT:-}" ]; then
		PLAN=1 route "$2" default "10.0.$n.254"
		PLAN=1 route "$2" default "fd00:$n::254"
	fi
	build_plan
}

# write_sysctls NAME=VALUE...: in this namespace; no process is started
write_sysctls()
{
	local s file

	for s; do
		file=${s%%=*}
		echo "${s#*=}" >"/proc/sys/${file//.//}" || fail "cannot set $s"
	done
}

# Raises the machine-wide limits that a guest with 2 GB reaches first.
roomy()
{
	[ "${LOWQ_LAB:-}" ] || return 0		# not on a user's machine
	write_sysctls net.ipv4.tcp_mem="262144 393216 524288" \
		net.core.netdev_max_backlog=1000000 net.core.rmem_max=268435456 \
		net.core.wmem_max=268435456 net.core.somaxconn=65535 \
		net.core.optmem_max=1048576
}

# dumbbell HOSTS RTT [RTT_OF_HOST2...]: as drawn above. Addresses: host i is
# 10.0.i.1 and fd00:i::1, r is 10.0.0.1 and fd00:0::1.
dumbbell()
{
	local n=$1 i rtt=$2 PLAN=1

	shift
	roomy
	add_ns sw
	add_ns r
	net 0 r eth0 sw egress
	for ((i = 1; i <= n; i++)); do
		add_ns "h$i"
		rtt=${!i:-$rtt}
		net "$i" "h$i" eth0 sw "p$i" "$rtt"
	done
	PLAN='' build_plan
}

# accecn_dumbbell N RTT...: whose hosts all have Accurate ECN enabled, where the kernel has it
accecn_dumbbell()
{
	local SYSCTL=

	! has_accecn || SYSCTL=net.ipv4.tcp_ecn=3
	dumbbell "$@"
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

	sleep 0.000001		# what was just started runs first
	for ((i = 0; i < ${WAIT:-10} * 20; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	fail "timed out waiting for: $*"
}

# listening NS PORT: does a TCP server listen there? Asks the kernel through a process of NS.
listening()
{
	local process port file address state

	printf -v port %04X "$2"
	for process in /proc/[0-9]*; do
		[ "$process/ns/net" -ef "/run/netns/$NSP$1" ] || continue
		for file in "$process"/net/tcp{,6}; do
			while read -r _ address _ state _; do
				[ "${address#*:} $state" != "$port 0A" ] || return 0
			done <"$file"
		done
	done
	return 1
}

# serve NS [flowgen options]: starts a flowgen server in the background, and waits until it is
# ready
serve()
{
	nsenter --net="/run/netns/$NSP$1" flowgen serve "${@:2}" >/dev/null 2>"$TMP/serve.$1" &
	wait_until listening "$1" 5201
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

# Kills all processes in the namespaces, lets connections end, then deletes the namespaces.
teardown()
{
	local NAMESPACES

	our_ns
	[ ${#NAMESPACES[@]} -eq 0 ] || labnet --remove "$NSP"
	[ -z "${CONTROL_BEFORE:-}" ] || write_sysctls net.ipv4.tcp_congestion_control="$CONTROL_BEFORE"
	wait 2>/dev/null
}

# kill_in NAMESPACE [SIGNAL]: its processes
kill_in()
{
	local process

	for process in /proc/[0-9]*; do
		[ ! "$process/ns/net" -ef "/run/netns/$1" ] || kill -"${2:-KILL}" "${process#/proc/}" 2>/dev/null
	done
}

# vanish HOST: deletes a host and all its processes while traffic runs
vanish()
{
	kill_in "$NSP$1"
	ip netns del "$NSP$1"
}

# checksums_sent NS: packets of eth0 leave with their checksums. A veth would leave them to the last
# device, and the receiver would not look at them.
checksums_sent()
{
	in_ns "$1" ethtool -K eth0 tx off >/dev/null || fail "ethtool"
}

# shaper NS DEV RATE [PLACE... handle H:]: htb with one class that sends packet by packet; by
# default at the root
shaper()
{
	local place=("${@:4}") CLASS

	[ $# -gt 3 ] || place=(root handle 1:)
	rate_class "$2" "${place[-1]}1" "$3"
	in_ns "$1" tc -batch - <<-END || fail "no rate of $3 at $1's $2"
		qdisc add dev $2 ${place[*]} htb default 1 direct_qlen 100000
		$CLASS
	END
}

# rate_class DEV CLASS RATE [FRAME]: tc's words for its class, in CLASS
rate_class()
{
	local frame=${4:-1514}

	CLASS="class replace dev $1 parent ${2%:*}: classid $2 htb rate $3 ceil $3 burst $frame cburst $frame quantum $frame"
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
	local CLASS

	rate_class "${@:2}"
	in_ns "$1" tc -batch - <<<"$CLASS" || fail "no rate of $4 at $1's $2"
}

# shape RATE [QDISC...]: makes the bottleneck, a shaper over QDISC. With all checkers on, a
# packet takes more CPU time than its slot at high rates; the shaper's timer would then always
# be late and leave no CPU time to programs.
shape()
{
	local rate=$1

	virtual || rate=10mbit
	shape_dev sw egress "$rate" 1514 "${@:2}"
}

# shape_dev NS DEV RATE FRAME [QDISC...]: a shaper over QDISC in place of what was there
shape_dev()
{
	local CLASS

	rate_class "$2" 1:1 "$3" "$4"
	# a root of another kind removes what was there
	in_ns "$1" tc -batch - <<-END
		qdisc replace dev $2 root pfifo
		qdisc replace dev $2 root handle 1: htb default 1 direct_qlen 100000
		$CLASS
		${5:+qdisc add dev $2 parent 1:1 handle 2: ${*:5}}
	END
}

# lossy SPEC...: netem instead of a bottleneck; "loss X% ecn" marks packets, it does not drop them
lossy()
{
	in_ns sw tc -batch - <<-END
		qdisc replace dev egress root pfifo
		qdisc replace dev egress root netem limit 100000 $*
	END
}

# send [flowgen options]: one flow from h1 to r, over IPv4 unless TO is another address;
# flow_field NAME prints a field of its result, or what jq makes of an expression of fields
send()
{
	[[ " $* " == *" --duration "* ]] || set -- --timeout 120s "$@"
	in_ns h1 flowgen long --to "${TO:-10.0.0.1}" --cc "$CC" "$@" \
		>"$TMP/flow.json" || fail "flow failed: $(head -c 500 "$TMP/flow.json")"
}

flow_field()
{
	local line value="\"$1\":\"?([^\",}]*)"

	while read -r line; do
		[[ $line != *'"type":"flow"'* || ! $line =~ $value ]] || { echo "${BASH_REMATCH[1]}"; return; }
	done <"$TMP/flow.json"
	jq -rs "map(select(.type == \"flow\"))[0].$1" "$TMP/flow.json"
}
