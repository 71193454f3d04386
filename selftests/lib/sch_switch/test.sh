#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# sch_switch: what ports share, and who is paused. programs/lab.sh runs this in the lab with --module.

# shellcheck source=../lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib.sh"

# loaded NAME=VALUE...: the module, with these parameters
loaded()
{
	modprobe -r sch_switch && modprobe sch_switch "$@" || fail "sch_switch $*"
}

# port NS DEV WORD...: makes it a port, with this child
port()
{
	in_ns "$1" tc qdisc replace dev "$2" root handle f: switch &&
		in_ns "$1" tc qdisc add dev "$2" parent f:1 "${@:3}" || fail "port $2 of $1"
}

# of NS DEV FIELD: of the port, as tc has it
of()
{
	in_ns "$1" tc -s -j qdisc show dev "$2" | jq ".[] | select(.kind == \"switch\") | .$3"
}

# send_to ADDRESS COUNT: h1 sends so many packets of 1000 bytes with all headers
send_to()
{
	in_ns h1 python3 - "$@" <<-'END' || fail "h1 cannot send"
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)
		for _ in range(int(sys.argv[2])):
		    s.sendto(bytes(1000 - 42), (sys.argv[1], 9))
	END
}

# sent NS DEV: packets
sent()
{
	in_ns "$1" cat "/sys/class/net/$2/statistics/tx_packets"
}

all_sent()
{
	[ "$(sent sw egress)" -ge "$((BEFORE + $1))" ]
}

shared_buffer()
{
	loaded pool=100000 alpha=100
	dumbbell 2 0
	port sw egress netem delay 100s
	port sw p2 netem delay 100s
	send_to 10.0.0.1 200
	expect "a port alone holds half of the pool" "$(of sw egress backlog)" -eq 50000
	expect "what it drops" "$(of sw egress drops)" -eq 150
	send_to 10.0.2.1 200
	expect "the next holds half of the rest" "$(of sw p2 backlog)" -eq 25000
	in_ns sw tc qdisc del dev egress root
	send_to 10.0.2.1 200
	expect "and half of all when that is empty" "$(of sw p2 backlog)" -eq 50000
	# what a child drops of what it has is given back
	port sw egress handle 5: tbf rate 8mbit burst 2000 limit 1000000
	in_ns sw tc qdisc add dev egress parent 5:1 fq_codel limit 10
	send_to 10.0.0.1 200
	in_ns sw tc qdisc del dev p2 root
	port sw p2 tbf rate 8mbit burst 2000 limit 20000
	send_to 10.0.2.1 200
	expect "the child's own limit" "$(of sw p2 backlog)" -le 20000
	sleep 0.2
	expect "empty" "$(of sw p2 backlog)" -eq 0
	in_ns sw tc qdisc replace dev p2 parent f:1 netem delay 100s
	send_to 10.0.2.1 200
	expect "half of the pool again" "$(of sw p2 backlog)" -eq 50000
	loaded_in_use
}
declare_test shared_buffer "" "a port holds alpha of what the others leave, exactly, and gives all back"

loaded_in_use()
{
	! modprobe -r sch_switch 2>/dev/null || fail "unloaded while in use"
}

paused()
{
	loaded pool=1000000 alpha=800 xoff=20000 xon=10000
	dumbbell 2 0
	port h1 eth0 tbf rate 80mbit burst 2000 limit 1000000
	port sw egress tbf rate 8mbit burst 2000 limit 1000000
	BEFORE=$(sent sw egress)
	send_to 10.0.0.1 500
	sleep 0.03
	# in real time all may be through by now
	if virtual; then
		between "bytes in the switch" "$(of sw egress backlog)" 10000 21000
		expect "packets that wait at the sender" "$(of h1 eth0 qlen)" -ge 400
	fi
	# what others send through the paused port waits, too
	send_to 10.0.2.1 1
	wait_until all_sent 500
	expect "lost" "$(of sw egress drops)" -eq 0
	between "pauses" "$(of h1 eth0 overlimits)" "$(virtual && echo 30 || echo 1)" 60
	expect "packets that wait at the end" "$(of h1 eth0 qlen)" -eq 0
}
declare_test paused "" "PFC: a sender is paused and resumed between xoff and xon, and nothing is lost"

# What pauses a port goes: the port sends again, or goes as well
removed()
{
	local how

	for how in 'in_ns sw tc qdisc del dev egress root' 'in_ns sw ip link set egress down' 'in_ns sw tc qdisc del dev egress parent f:1' \
		'in_ns h1 tc qdisc del dev eth0 root' 'in_ns h1 ip link set eth0 down' 'in_ns h1 ip link del eth0' 'vanish sw' 'vanish h1'; do
		loaded pool=1000000 alpha=800 xoff=20000 xon=10000
		dumbbell 1 0
		port h1 eth0 pfifo limit 10000
		port sw egress netem delay 100s limit 10000
		send_to 10.0.0.1 100
		expect "packets that wait at the sender" "$(of h1 eth0 qlen)" -ge 70
		$how || fail "$how"
		case $how in
		*' sw tc '*|*egress*down) wait_until resumed ;;
		*eth0*down)
			# its neighbour and default route went with it
			in_ns h1 ip link set eth0 up
			in_ns h1 ip neigh replace 10.0.1.254 lladdr 02:00:00:00:01:fe dev eth0 nud permanent
			in_ns h1 ip route replace default via 10.0.1.254
			BEFORE=$(sent h1 eth0)
			send_to 10.0.0.1 10
			expect "packets that leave after it is up again" "$(($(sent h1 eth0) - BEFORE))" -ge 10
			;;
		esac
		teardown
		wait_until modprobe -r sch_switch	# namespaces go in the background
	done
}
declare_test removed "" "a queue, a device or a namespace goes while its port is paused: no port stays so, and the module can be unloaded"

resumed()
{
	[ "$(of h1 eth0 qlen)" -eq 0 ]
}

refused()
{
	local p

	modprobe -r sch_switch
	for p in pool=0 pool=2000000000 alpha=0 alpha=7000 xoff=5000000 'xoff=10 xon=10' xon=1; do
		# shellcheck disable=SC2086 # two parameters
		! modprobe sch_switch $p 2>/dev/null || fail "loaded with $p"
	done
	loaded
	in_ns_none=$(ip link add one type dummy && tc qdisc add dev one root handle 1: prio && ! tc qdisc add dev one parent 1:1 switch 2>&1) ||
		fail "not at the root, and accepted"
	[[ $in_ns_none == *root* ]] || fail "no reason: $in_ns_none"
	ip link del one
}
declare_test refused "" "parameters out of range, and a place that is no port"

run_tests "$@"
