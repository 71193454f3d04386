# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="DCQCN's paper: four senders, twenty senders and a victim at 40 Gb/s, with the paper's constants and today's",
    question="""DCQCN's paper (2015) shows equal shares, a short queue for 20:1 and an unharmed victim. What do its
        constants do here, and what do those in use today?""",
    topology=r"""
 senders=N: h1..hN  a queue pair each, SENDs of 64 kB -- sw ==== 40 Gb/s ==== r

 victim:    f --\                    /-- 10 Gb/s -- g   f -> g  UC WRITEs, as fast as f can
                 sw  == 40 Gb/s == sw2                  x -> y  the victim, RC SENDs
            x --/                    \-- 40 Gb/s -- y
            lines of 40 Gb/s, base RTT 20 us""",
    rows=["rxe", "roce_rcm", "dcqcn_red", "dcqcn_today"],
    reference="rxe",
    variants=each(senders=[4, 20, "victim"]),
    params={"MTU of RoCE": 1024, "messages in flight": 4, "limit": "4 MB at each port",
            "counted": "50 ms, from 100 ms on; victim: 100 ms from the start",
            "roce_rcm": "the paper's: RED 5 to 200 kB, up to 1 %, at all ports; T = K = 55 us, R_AI 40, R_HAI 200 "
                        "Mb/s, F 5, a CNP per 50 us",
            "dcqcn_red": "K_min 100 kB, K_max 400 kB per 25 Gb/s of the port, up to 20 %; senders as in the paper",
            "dcqcn_today": "that RED; adapters' defaults: T = 300 us, B = 32 kB, F 1, K = 1 us, R_AI 5, R_HAI 50 "
                           "Mb/s, a CNP per 4 us",
            "victim's share": "of the 30 Gb/s that f -> g leaves",
            "paper": """Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015.
                Here: soft-RoCE without PFC; MTU 1024; one path, not a Clos network; one sender to a port of 10 Gb/s
                in place of four to one of 40 Gb/s""",
            "paper, four senders": "Jain (senders=4): all four get equal shares",
            "paper, evaluation, 20:1": "queue, p90 (senders=20): 76.6 kB",
            "paper, victim flow": """its share (senders=victim): as much as without the congestion that it does not
                cause"""},
    words={"senders": {4: "four senders", 20: "twenty senders", "victim": "victim"}},
    shown=["utilisation", "queue_p90_bytes", "jain", "victim_share", "delay_p99_us", "marks", "drops"],
    goals=[goal("queue_p90_bytes", row="roce_rcm", most=76600, variant={"senders": 20},
                text="twenty senders: the paper's queue, p90"),
           goal("victim_share", row="roce_rcm", least=0.9, variant={"senders": "victim"}, text="the victim's share"),
           goal("jain", row="roce_rcm", least=0.95, variant={"senders": 4}, text="four senders: Jain")],
    conclusion="""The queue for twenty senders is longer than the paper's: its RED marks too little below K_max (roce-
        incast-20).

        The paper's RED marks the victim, too; today's does not.

        Today's senders raise their target with each few kilobytes, and the queue swings.""",
    shell="""
# port SWITCH DEV GBPS: the row's RED
port()
{
	local words=(--min $(($3 * 4000))b --max $(($3 * 16000))b --probability 0.2)

	[ "$ROW" != roce_rcm ] || words=(--min 5000b --max 200000b --probability 0.01)
	"$LOWQ_TC" roce "$2" -n "$NSP$1" --rate "$3gbit" "${words[@]}" --limit 4000000b --no-rehearsal --quiet ||
		fail "lowq-tc roce $2"
}

# sender HOST N MS COMMAND: a queue pair on hHOST, the Nth to start
sender()
{
	LOG=flow$2 roce "h$1" "$4" --duration "$3ms" --start "$(start_us "$2")us" &
	pids+=($!)
}

run_scenario()
{
	local i pids=() words=()

	# shellcheck source=selftests/lib/rdma.sh
	. "$LIB/rdma.sh"
	[ "$ROW" != dcqcn_today ] ||
		words=(dcqcn_timer_us=300 dcqcn_bytes_kb=32 dcqcn_alpha_us=1 dcqcn_ai_mbps=5 dcqcn_hai_mbps=50
		dcqcn_f=1 cnp_interval_us=4)
	[ "$ROW" = rxe ] || modprobe roce_rcm line_rate_mbps=40000 "${words[@]}" || fail "no roce_rcm"
	if [ "$senders" = victim ]; then
		roce_victim 40gbit
		port sw egress 40
		port sw2 p3 10
		port sw2 p4 40
		check_path h1 h3 10gbit -
		check_path h2 h4 40gbit -
		watch_queue 40gbit 0ms 100ms 1ms --filter "udp dst port 4791"
		TO_HOST=h3 sender 1 1 100 uc-write
		TO_HOST=h4 sender 2 2 100 send
	else
		roce_dumbbell "$senders" 40gbit 20us
		port sw egress 40
		roce_serve r
		check_path h1 r 40gbit 20us
		watch_queue 40gbit 100ms 150ms 1ms --filter "udp dst port 4791"
		for ((i = 1; i <= senders; i++)); do
			sender "$i" "$i" 150 send
		done
	fi
	all_done "${pids[@]}"
	cat "$TMP"/flow*.json >"$OUT/flows.jsonl"
	watched
	if [ "$senders" = victim ]; then
		# 1024 of 1082 bytes are payload
		metric victim_share "$(jq '.rate_bps / (3e10 * 1024 / 1082)' "$TMP/flow2.json")"
		metric victim_mbps "$(jq '.rate_bps / 1e6' "$TMP/flow2.json")"
		return
	fi
	# what waits, in bytes: the wait at the link's rate
	metric queue_p90_bytes "$(jq '.delay_us.p90 * 5000' "$OUT/qdelay.json")"
	even_rates
}
""")
