# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Drop-tail queues from half to eight BDP, beside CUBIC and beside Reno",
    question="Where nothing marks, does Prague take and leave as much as CUBIC would in its place?",
    topology=r"""
 h1  first         --\
                      sw ==== rate ==== r
 h2  cubic or reno --/  (drop-tail, bdp)
                         base RTT rtt""",
    rows=["prague_fifo", "cubic"],
    reference="cubic",
    variants=[*each(beside="cubic", rate="10mbit", rtt="20ms", bdp=2),
              *each(beside="cubic", rate="10mbit", rtt="100ms", bdp=1),
              *each(beside="cubic", rate="40mbit", rtt="20ms", bdp=[0.5, 1, 4]),
              *each(beside="cubic", rate="100mbit", rtt="10ms", bdp=8),
              *each(beside="cubic", rate="100mbit", rtt="30ms", bdp=4),
              *each(beside="cubic", rate="100mbit", rtt="50ms", bdp=[0.5, 1, 4]),
              *each(beside="cubic", rate="100mbit", rtt="100ms", bdp=1),
              *each(beside="cubic", rate="400mbit", rtt="20ms", bdp=1),
              *each(beside="reno", rate="10mbit", rtt="20ms", bdp=2),
              *each(beside="reno", rate="40mbit", rtt="20ms", bdp=[1, 4]),
              *each(beside="reno", rate="100mbit", rtt="50ms", bdp=1),
              *each(beside="reno", rate="100mbit", rtt="30ms", bdp=4)],
    params={"bdp": "the longest queue, in products of rate and base RTT", "counted": "from 20 s to 100 s",
            "early_drops": "packets dropped in the first two seconds"},
    words={"beside": "beside {}", "bdp": "queue {} BDP"},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "early_drops", "drops"],
    goals=[goal("ratio", row="prague_fifo", least=0.75, most=1.25, beside=["cubic"],
                text="what Prague gets, to a CUBIC in its place"),
           goal("early_drops", row="prague_fifo", most=2, beside=["cubic"])],
    conclusion="""What counts is what another CUBIC gets in Prague's place: two CUBIC flows are not equal within the
        run, either.

        Prague is not paced in such a queue, except by sch_fq: paced, it took several times CUBIC's rate.""",
    shell="""
# packets MBIT MS BDP: the packets of 1514 bytes in that many BDPs
packets_of()
{
	awk -v r="$1" -v t="$2" -v b="$3" 'BEGIN { printf "%d", r * t * b * 1000 / 8 / 1514 + 0.5 }'
}

run_scenario()
{
	local from=20 to=100

	BUFFER=33554432
	dumbbell 2 "$rtt"
	QUEUE="fifo --limit $(packets_of "${rate%mbit}" "${rtt%ms}" "$bdp")p"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" "${from}s" "${to}s" 10ms
	{ sleep 2.1; in_ns sw tc -s -j qdisc show dev egress >"$TMP/early"; } &
	two_flows "$CONTROL" "$beside" "$to"
	watched
	two_rates "$((to - from))"
	metric early_drops "$(jq '[.[] | select(.kind != "htb") | .drops] | add' "$TMP/early")"
}
""")
