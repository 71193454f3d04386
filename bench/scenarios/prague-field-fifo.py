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
    goals=[goal("ratio", row="prague_fifo", least=0.5, text="ratio >= 0.5"),
           goal("ratio", row="prague_fifo", most=2, text="ratio <= 2"),
           goal("ratio", row="prague_fifo", least=0.75, relative_to="cubic",
                text="at least 0.75 of what CUBIC gets in its place"),
           goal("ratio", row="prague_fifo", most=1.25, relative_to="cubic",
                text="at most 1.25 of what CUBIC gets in its place"),
           goal("early_drops", row="prague_fifo", most=2, relative_to="cubic",
                text="at most twice the drops of CUBIC in its place in the first two seconds")],
    answer="""Beside CUBIC, Prague gets {range ratio prague_fifo beside=cubic} times its rate, and another CUBIC in its
        place {range ratio cubic beside=cubic}; beside Reno {range ratio prague_fifo beside=reno} and {range ratio cubic
        beside=reno}.""",
    conclusion="""80 seconds are not enough for two CUBIC flows in one queue to get the same rate either: what counts is
        what another CUBIC gets in Prague's place.

        Another CUBIC gets up to {max ratio cubic beside=reno} times Reno's rate, where the window of Reno takes minutes
        to grow.

        A paced Prague got 3.5 times CUBIC's rate at 100 Mb/s, 50 ms and one BDP: therefore it is not paced here, except
        by sch_fq.

        {range early_drops prague_fifo beside=cubic} packets are dropped in the first two seconds beside CUBIC, {range
        early_drops cubic beside=cubic} where CUBIC is in Prague's place: it ends its slow start by the spacing of ACKs,
        too, which pacing hides from Prague.""",
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
