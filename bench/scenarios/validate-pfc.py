# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="RoCEv2 with PFC: switches pause their senders, 10 Gb/s",
    question="""The lab's RoCE loses packets where a lossless network stops the sender. Does congestion management
        matter where nothing is lost, and does it keep PFC from firing?""",
    topology=r"""
 victim:
 f --\                    /-- 1 Gb/s -- g    f -> g  UC WRITEs, as fast as f can
      sw  == 10 Gb/s == sw2                  x -> y  the victim, RC SENDs
 x --/                    \-- 10 Gb/s - y
 incast:
 h1..h4  RC SENDs  -- sw ==== 10 Gb/s ==== r
 (RED for UDP 4791 at all ports to the right; PFC towards the left)""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=each(net=["victim", "incast"], pfc=["off", "on"]),
    params={"pfc": "on: a switch that holds more than 80 kB from a neighbour pauses it, a switch or a host, "
                   "until it holds 40 kB; one priority",
            "MTU of RoCE": 1024,
            "counted": "victim: 100 ms; incast: 60 ms",
            "queue": "lowq-tc roce --limit 400000b",
            "victim share": "of 9 Gb/s",
            "pauses": "of hosts and of the switch before the congested port, together"},
    words={"net": {"victim": "victim flow", "incast": "four senders"},
           "pfc": {"on": "PFC", "off": "no PFC"}},
    shown=["victim_share", "congested_mbps", "goodput_mbps", "lost", "pauses", "go_back_n"],
    goals=[goal("lost", row="rxe", most=0, variant={"pfc": "on"}, text="nothing is lost with PFC"),
           goal("victim_share", row="roce_rcm", least=0.9, variant={"net": "victim"}, text="the victim's share"),
           goal("victim_share", row="roce_ldcp", least=0.9, variant={"net": "victim"}, text="the victim's share")],
    conclusion="""Head-of-line blocking: packets for g fill sw2, which pauses the link that x shares, and x with it.

        With congestion management few pauses are left, and the victim keeps its share with PFC and without.""",
    modules=["selftests/lib/sch_switch"],
    shell=r"""
# port NS DEV: the commands of tc on standard input, below switch
port()
{
	in_ns "$1" tc qdisc del dev "$2" root 2>/dev/null
	in_ns "$1" tc qdisc add dev "$2" root handle f: switch &&
		sed -n 's/ root / parent f:1 /; s/^tc \(-n [^ ]* \)\?//p' | in_ns "$1" tc -batch - || fail "no port $2 of $1"
}

# queue SWITCH DEV RATE
queue()
{
	"$LOWQ_TC" roce "$2" -n "$NSP$1" --rate "$3" --limit 400000b --no-rehearsal --quiet --dry-run >"$TMP/queue" || fail "lowq-tc roce $2"
	port "$1" "$2" <"$TMP/queue"
	PORTS+=("$1 $2")
}

# host NS: its line of 10 Gb/s, which can be paused
host()
{
	port "$1" eth0 <<-END
		tc qdisc add dev eth0 root handle 1: htb default 1 direct_qlen 100000
		tc class add dev eth0 parent 1: classid 1:1 htb rate 10gbit ceil 10gbit burst 1514 cburst 1514 quantum 1514
		tc qdisc add dev eth0 parent 1:1 handle 2: pfifo limit 100000
	END
	PORTS+=("$1 eth0")
}

# counted FIELD: the sum of a count of all ports
counted()
{
	local port

	for port in "${PORTS[@]}"; do
		in_ns "${port% *}" tc -s -j qdisc show dev "${port#* }"
	done | jq -s "[.[][] | select(.kind == \"switch\") | .$1] | add"
}

# port_bytes: what g's port has sent
port_bytes()
{
	in_ns sw2 cat /sys/class/net/p3/statistics/tx_bytes
}

victim()
{
	local pids=() sent

	roce_victim 10gbit
	queue sw egress 10gbit
	queue sw2 p3 1gbit
	queue sw2 p4 10gbit
	host h1
	host h2
	check_path h1 h3 1gbit -
	check_path h2 h4 10gbit -
	LOST=$(counted drops) PAUSES=$(counted overlimits)
	sent=$(port_bytes)
	watch_queue 10gbit 0ms 100ms 1ms --filter "udp dst port 4791"
	TO_HOST=h3 LOG=flow1 roce h1 uc-write --duration 100ms --start "$(start_us 1)us" &
	pids+=($!)
	TO_HOST=h4 LOG=flow2 roce h2 send --duration 100ms --start "$(start_us 2)us" &
	pids+=($!)
	all_done "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	watched
	metric congested_mbps "$(jq -n "($(port_bytes) - $sent) * 8 * 1024 / 1082 / 0.1 / 1e6")"
	# 1024 of 1082 bytes are payload
	metric victim_share "$(jq '.rate_bps / (1e10 * 1024 / 1082 * 0.9)' "$TMP/flow2.json")"
}

incast_of_four()
{
	local i pids=()

	roce_dumbbell 4 10gbit 20us
	queue sw egress 10gbit
	roce_serve r
	for i in 1 2 3 4; do
		host "h$i"
	done
	check_path h1 r 10gbit 20us
	LOST=$(counted drops) PAUSES=$(counted overlimits)
	watch_queue 10gbit 2ms 60ms 1ms --filter "udp dst port 4791"
	for i in 1 2 3 4; do
		LOG=flow$i roce "h$i" send --duration 60ms --start "$(start_us $i)us" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	watched
	even_rates
	metric goodput_mbps "$(jq -s 'map(.rate_bps) | add / 1e6' "$OUT/flows.jsonl")"
}

run_scenario()
{
	local xoff=()

	# shellcheck source=selftests/lib/rdma.sh
	. "$LIB/rdma.sh"
	PORTS=()
	[ "$pfc" = off ] || xoff=(xoff=80000 xon=40000)
	# all that RED lets in has room
	modprobe sch_switch pool=100000000 alpha=6400 "${xoff[@]}" || fail "no sch_switch"
	roce_row 10gbit
	if [ "$net" = victim ]; then victim; else incast_of_four; fi
	metric lost "$(($(counted drops) - LOST))"
	metric pauses "$(($(counted overlimits) - PAUSES))"
	metric go_back_n "$(cat /sys/class/infiniband/"$NSP"*/ports/1/hw_counters/completer_retry_err |
		awk '{ n += $1 } END { print n }')"
}
""")
