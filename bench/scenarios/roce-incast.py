# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="RoCEv2: four senders, one receiver",
    question="""Soft-RoCE has no congestion control. Does roce_rcm prevent drops in an incast of SENDs or READs and keep
        the link in use, even if half of the CNPs are lost?""",
    topology="""
 h1..h4  a queue pair each, 64 kB messages  -- sw ==== RATE ==== r
                                    (RED for UDP 4791, CNPs first)
                                    lines of RATE, base RTT 20 us""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=[*each(op=["send", "read"], rate="1gbit"),
              *each(op=["send", "read"], rate="10gbit"),
              *each(op="send", rate="10gbit", lost="half")],
    params={"MTU of RoCE": 1024, "messages in flight": 4, "queue": "lowq-tc roce --limit 400000b",
            "counted": "from 2 ms on; 1 Gb/s: 400 ms, 10 Gb/s: 60 ms",
            "DCQCN": "defaults at 10 Gb/s; at 1 Gb/s T = K = 500 us, one CNP per 400 us, R_AI 5 and R_HAI 10 Mb/s, g "
                     "= 1/16",
            "LDCP": "a CNP per mark, beta 1; RTT 400 us and alpha 1/4 at 1 Gb/s, 100 us and 3/4 at 10 Gb/s",
            "paper": """Y. Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015.
                Here: soft-RoCE without PFC; one switch, not a Clos network""",
            "paper, four senders": "Jain (op=send rate=10gbit): all four get equal shares"},
    words={"op": {"read": "READ", "send": "SEND"}, "lost": {"half": "half of the CNPs lost"}},
    shown=["utilisation", "drops", "qlen_p99_over_kmax", "goodput_mbps", "delay_p99_us", "marks", "jain", "go_back_n"],
    goals=[goal("drops", row="roce_rcm", most=0),
           goal("utilisation", row="roce_rcm", least=0.9),
           goal("drops", row="roce_ldcp", most=0)],
    conclusion="""Soft-RoCE goes back N packets after each loss, which costs READs most of their goodput.

        LDCP leaves some of a fast link unused, because its RTT is a fixed parameter here.""",
    shell="""
	local i h ms=60 kmax pids=()

	# shellcheck source=selftests/lib/rdma.sh
	. "$LIB/rdma.sh"
	[ "$rate" = 10gbit ] || ms=400
	roce_row "$rate"
	roce_dumbbell 4 "$rate" 20us
	[ -z "${lost:-}" ] || lose_cnps
	kmax=$("$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$rate" --limit 400000b --dry-run --json |
		jq .params.max_bytes)
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$rate" --limit 400000b --no-rehearsal --quiet ||
		fail "lowq-tc roce"
	for h in r h1 h2 h3 h4; do
		roce_serve "$h"
	done
	check_path h1 r "$rate" 20us
	watch_queue "$rate" 2ms "${ms}ms" 1ms --filter "udp dst port 4791"
	for i in 1 2 3 4; do
		if [ "$op" = read ]; then
			TO_HOST=h$i LOG=flow$i roce r read --duration "${ms}ms" --start "$(start_us $i)us" &
		else
			LOG=flow$i roce "h$i" send --duration "${ms}ms" --start "$(start_us $i)us" &
		fi
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	watched
	metric qlen_p99_over_kmax "$(jq --argjson k "$kmax" '.qlen_bytes.p99 / $k' "$OUT/qdelay.json")"
	metric goodput_mbps "$(jq -s 'map(.rate_bps) | add / 1e6' "$OUT/flows.jsonl")"
	even_rates
	metric go_back_n "$(cat /sys/class/infiniband/"$NSP"*/ports/1/hw_counters/completer_retry_err |
		awk '{ n += $1 } END { print n }')"
""")
