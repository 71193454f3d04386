# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="RoCEv2: one host reads from eight",
    question="""Many queue pairs READ from eight hosts at once. Is the goodput with roce_rcm at least that of soft-RoCE
        alone, and are the responses that pass the bottleneck useful?""",
    topology="""
 h1..h8  answer READs  -- sw ==== RATE ==== r
              (RED for UDP 4791, CNPs first)
              lines of RATE, base RTT 20 us""",
    rows=["rxe", "roce_rcm"],
    reference="rxe",
    variants=each(qps=[16, 64, 256], rate="1gbit") + each(qps=[16, 64, 256], rate="10gbit"),
    params={"MTU of RoCE": 1024,
            "READs": "4 of 64 KiB in flight per queue pair; new ones for 400 ms at 1 Gb/s, for 60 ms at 10",
            "queue": "lowq-tc roce --shape",
            "goodput": "all READs that were answered, divided by the time from the first to the end of the last",
            "DCQCN": "defaults at 10 Gb/s; at 1 Gb/s lowq-tc host roce --rate 1gbit"},
    words={"qps": {16: "16 queue pairs", 64: "64 queue pairs", 256: "256 queue pairs"}},
    shown=["goodput_mbps", "useful", "drops", "marks", "last_ms", "go_back_n"],
    goals=[goal("goodput_mbps", row="roce_rcm", least=1, beside=["rxe"]),
           goal("useful", row="roce_rcm", least=0.9)],
    conclusion="""A READ that has lost one response has to be repeated from there on, and what follows the loss is
        useless.

        roce_rcm starts the answers of many queue pairs slowly, and lets those of a host grow together as one.""",
    shell=r"""
	local i h ms=60 pids=()

	# shellcheck source=selftests/lib/rdma.sh
	. "$LIB/rdma.sh"
	[ "$rate" = 10gbit ] || ms=400
	roce_row "$rate"
	roce_dumbbell 8 "$rate" 20us
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$rate" --shape --no-rehearsal --quiet || fail "lowq-tc roce"
	for h in r h1 h2 h3 h4 h5 h6 h7 h8; do
		roce_serve "$h"
	done
	check_path h1 r "$rate" 20us
	fixed_start
	for i in 1 2 3 4 5 6 7 8; do
		TO_HOST=h$i LOG=flow$i roce r read --qps $((qps / 8)) --size 64Ki --depth 4 \
			--duration "${ms}ms" --start "$((100000 + $(start_us $i)))us" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	in_ns sw tc -s -j qdisc show dev egress | jq '[.[] | select(.kind == "red")][0]' >"$OUT/red.json"
	metric goodput_mbps "$(jq -s '
		(map(.bytes) | add * 8e3) / ((map(.start_ns + .duration_ns) | max) - (map(.start_ns) | min))' \
		"$OUT/flows.jsonl")"
	metric last_ms "$(jq -s '((map(.start_ns + .duration_ns) | max) - (map(.start_ns) | min)) / 1e6' \
		"$OUT/flows.jsonl")"
	metric useful "$(jq -s --slurpfile red "$OUT/red.json" '(map(.bytes) | add / 1024) / $red[0].packets' \
		"$OUT/flows.jsonl")"
	metric drops "$(jq .drops "$OUT/red.json")"
	metric marks "$(jq .marked "$OUT/red.json")"
	metric go_back_n "$(cat /sys/class/infiniband/"$NSP"*/ports/1/hw_counters/completer_retry_err |
		awk '{ n += $1 } END { print n }')"
""")
