# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="A buffer that a switch's ports share: the incast of DCTCP's paper, 40 servers and 1 MB, 1 Gb/s",
    question="""The lab's ports have a buffer each. What changes where they share one, with a threshold that follows
        what is free?""",
    topology="""
 h1..h40  25 kB each     -- sw ==== 1 Gb/s ==== r  asks
 h41..h46 a long flow each  sw ==== 1 Gb/s ==== h47, h48, h49
  1 Gb/s each            (the queue, behind the shared buffer)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=[*each(buffer=["100kB", "700kB"], others=0), *each(buffer="shared", alpha=100, others=0),
              *each(buffer="shared", alpha=25, others=[0, 3])],
    params={"buffer": "100 kB, 700 kB: of each port alone; shared: 4 MB for all ports, as in the paper",
            "alpha": "per cent: a port may hold so much of what is free in the shared buffer; 100: 2 MB for one"
                     " port alone, 25: 800 kB, and 500 kB for each of four",
            "others": "other ports, each with two long flows of the same control, which start 0.1 s before",
            "queries": "60, one after the other, on connections that are kept; each server is asked at random "
                       "within an RTT, by the seed",
            "K of dctcp": "20 packets",
            "least RTO": "10 ms, as in the paper",
            "all at full rate": "8.38 ms, with headers",
            "late": "queries that took 10 ms more than that: a timeout",
            "paper": "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: 60 queries, not 1000",
            "paper, fig. 19 (b)": """queries with a timeout, 40 servers, dynamic buffer (buffer=shared alpha=25
                others=0): none with DCTCP"""},
    words={"buffer": {"shared": "4 MB shared", "100kB": "100 kB a port", "700kB": "700 kB a port"},
           "alpha": "alpha {} %",
           "others": {0: "other ports idle", 3: "three busy ports"}},
    shown=["late_share", "round_mean_us", "round_p99_us", "timeouts", "drops"],
    goals=[goal("late_share", row="dctcp_ref", most=0, variant={"buffer": "shared"},
                text="shared buffer: no query with a timeout"),
           goal("late_share", row="ldcp", most=0, variant={"buffer": "shared"},
                text="shared buffer: no query with a timeout"),
           goal("round_p99_us", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""DCTCP's long flows hold K packets at busy ports and leave the pool to the query; CUBIC's fill what
        they may have.

        LDCP loses packets of its first RTT above K_max, as intended.""",
    modules=["selftests/lib/sch_switch"],
    shell=r"""
# below_switch WORD...: what lowq-tc makes with these words, as the child of the port's switch
below_switch()
{
	in_ns sw tc qdisc del dev "$2" root 2>/dev/null
	"$ROOT_TC" "$@" --dry-run >"$TMP/queue" && in_ns sw tc qdisc add dev "$2" root handle f: switch &&
		sed -n 's/ root / parent f:1 /; s/^tc \(-n [^ ]* \)\?//p' "$TMP/queue" | in_ns sw tc -batch -
}

run_scenario()
{
	local i port hosts=40 words=() pids=() shared=(pool=1000000000 alpha=6400) ROOT_TC=$LOWQ_TC

	if [ "$buffer" = shared ]; then
		shared=(pool=4000000 alpha="$alpha")
		words=(--limit 4000000b)
	else
		words=(--limit "${buffer%kB}000b")
	fi
	modprobe sch_switch "${shared[@]}" || fail "no sch_switch"
	[ "$others" = 0 ] || hosts=49
	dumbbell "$hosts" 100us
	every sysctl -qw net.ipv4.tcp_rto_min_us=10000
	for ((i = 1; i <= hosts; i++)); do
		tc -n "${NSP}h$i" -batch - <<-END || fail "no line of h$i"
			qdisc add dev eth0 root handle 1: htb default 1 direct_qlen 100000
			class add dev eth0 parent 1: classid 1:1 htb rate 1gbit ceil 1gbit burst 1514 cburst 1514 quantum 1514
		END
	done
	case $CONTROL in
	dctcp*) words+=(--k 20) ;;
	cubic) QUEUE+=" ${words[*]}" ;;
	esac
	for port in egress $([ "$others" = 0 ] || echo p47 p48 p49); do
		LOWQ_TC=below_switch DEV=$port bottleneck 1gbit 100us "${words[@]}"
	done
	ldcp_hosts
	for i in $(seq 2 40) $(seq 47 "$hosts"); do
		in_ns "h$i" flowgen serve --cc "$CONTROL" >/dev/null 2>&1 &
	done
	# when this one listens, the others do: they take no time
	serve h1 --cc "$CONTROL"
	check_path h1 r 1gbit 100us
	watch_queue 1gbit 0us 700ms 100us --filter "tcp and dst host 10.0.0.1"
	for ((i = 47; i <= hosts; i++)); do
		for port in $((2 * i - 53)) $((2 * i - 52)); do
			in_ns "h$port" flowgen long --to "10.0.$i.1" --cc "$CONTROL" --duration 700ms --start "$(start_us "$port")us" >"$TMP/long$port" &
			pids+=($!)
		done
	done
	[ "$others" = 0 ] || sleep 0.1
	incast 40 40 25k 100us --count 60 >"$OUT/flows.jsonl"
	watched
	rounds_done
	metric late_share "$(rounds '(map(select(. > 18380)) | length) / length')"
	metric timeouts "$(host_counter TCPTimeouts 40)"
	all_done "${pids[@]}"
}
""")
