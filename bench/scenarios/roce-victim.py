# SPDX-License-Identifier: GPL-2.0

from lowq_lab import goal, Scenario

SCENARIO = Scenario(
    title="RoCEv2: the victim flow",
    question="""x -> y shares a link with f -> g, which is congested at a later link. Does x -> y get what f -> g cannot
        use?""",
    topology=r"""
 f --\                    /-- 1 Gb/s -- g    f -> g  UC WRITEs, as fast as f can
      sw  == 10 Gb/s == sw2                  x -> y  the victim, RC SENDs
 x --/                    \-- 10 Gb/s - y    (RED for UDP 4791 at all three)
      lines of 10 Gb/s""",
    rows=["rxe", "roce_rcm", "roce_ldcp"],
    reference="rxe",
    variants=[{"with": "nothing"}, {"with": "f"}],
    params={"MTU of RoCE": 1024, "counted": "payload received in 100 ms",
            "solo share": "9 of 10 Gb/s, when f -> g has its 1 Gb/s"},
    words={"with": {"f": "beside f -> g", "nothing": "alone"}},
    shown=["victim_mbps", "congested_mbps", "victim_share"],
    goals=[goal("victim_share", row="roce_rcm", least=0.9),
           goal("victim_share", row="roce_ldcp", least=0.9)],
    conclusion="""x -> y starves without congestion management: f fills the shared link with packets that are dropped
        behind it.

        roce_rcm slows f to the rate of g's link, so that x -> y keeps its share.""",
    shell="""
# queue SWITCH DEV RATE
queue()
{
	"$LOWQ_TC" roce "$2" -n "$NSP$1" --rate "$3" --no-rehearsal --quiet || fail "lowq-tc roce $2"
}

# port_bytes: what g's port has sent
port_bytes()
{
	in_ns sw2 cat /sys/class/net/p3/statistics/tx_bytes
}

run_scenario()
{
	local pids=() share=0.9 sent

	# shellcheck source=selftests/lib/rdma.sh
	. "$LIB/rdma.sh"
	roce_row 10gbit
	roce_victim 10gbit
	queue sw egress 10gbit
	queue sw2 p3 1gbit
	queue sw2 p4 10gbit
	check_path h1 h3 1gbit -
	check_path h2 h4 10gbit -
	sent=$(port_bytes)
	watch_queue 10gbit 0ms 100ms 1ms --filter "udp dst port 4791"
	if [ "$with" = f ]; then
		TO_HOST=h3 LOG=flow1 roce h1 uc-write --duration 100ms --start "$(start_us 1)us" &
		pids+=($!)
	fi
	TO_HOST=h4 LOG=flow2 roce h2 send --duration 100ms --start "$(start_us 2)us" &
	pids+=($!)
	all_done "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	watched
	[ "$with" = f ] || share=1
	metric victim_mbps "$(jq '.rate_bps / 1e6' "$TMP/flow2.json")"
	# what g's port passed on, not what f sent: UC is not acknowledged
	metric congested_mbps "$([ "$with" != f ] || jq -n "($(port_bytes) - $sent) * 8 * 1024 / 1082 / 0.1 / 1e6")"
	# 1024 of 1082 bytes are payload
	metric victim_share "$(jq --argjson s $share '.rate_bps / (1e10 * 1024 / 1082 * $s)' "$TMP/flow2.json")"
}
""")
