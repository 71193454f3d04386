# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario

SCENARIO = Scenario(
    title="L4S deployed in parts: Prague beside CUBIC, BBR and Prague in six kinds of queue, 100 Mb/s, 25 ms",
    question="""Where the queue is not for L4S, what does Prague gain or lose beside others, with and without detection
        of Classic queues?""",
    topology=r"""
 h1  prague  --\
                sw ==== 100 Mb/s ==== r
 h2  beside  --/  (aqm)
                   base RTT 25 ms""",
    rows=["prague_classic"],
    variants=[*each(each(aqm="fifo", bdp=[0.5, 1, 2, 4]) + each(aqm="ecn", bdp=2)
                    + each(aqm=["codel", "fq_codel", "pie", "dualpi2"]),
                    beside="cubic", opts=[None, "classic_fallback:1"]),
              *each(each(aqm="fifo", bdp=[1, 4]) + each(aqm="ecn", bdp=2) + each(aqm=["codel", "fq_codel", "dualpi2"]),
                    beside=["bbr", "prague"])],
    params={"ecn": "drop-tail that marks ECT packets from 5 ms of the rate on",
            "bdp": "the longest queue, in products of rate and base RTT",
            "codel": "codel, fq_codel and pie with ecn and their defaults", "dualpi2": "lowq-tc's defaults",
            "opts": "classic_fallback=1: detection is on", "counted": "from 10 s to 60 s"},
    words={"aqm": {"fifo": "drop-tail", "ecn": "drop-tail that marks", "codel": "CoDel", "fq_codel": "FQ-CoDel",
                   "pie": "PIE", "dualpi2": "DualPI2"},
           "bdp": "{} BDP", "beside": {"cubic": "beside CUBIC", "bbr": "beside BBR", "prague": "beside Prague"}},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, variant={"aqm": "dualpi2"}, text="DualPI2: ratio >= 0.5"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "dualpi2"}, text="DualPI2: ratio <= 2"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "ecn", "opts": "classic_fallback:1"},
                text="a drop-tail queue that marks, with detection: ratio <= 2"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "codel", "opts": "classic_fallback:1"},
                text="the same for CoDel"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "pie", "opts": "classic_fallback:1"},
                text="the same for PIE"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "fifo", "beside": "cubic"},
                text="drop-tail beside CUBIC: ratio <= 2")],
    paper=Paper(
        source="F. Sarpkaya et al., To switch or not to switch to TCP Prague?, arXiv 2407.00464, and To adopt or not "
               "to adopt L4S-compatible congestion control?, arXiv 2411.10952, and its artifacts "
               "(github.com/fatihsarpkaya/L4S)",
        differs="Prague of this project. The papers' Prague had constants of another scale in its detection, which "
                "then always takes the queue for a Classic one (L4STeam/linux, issue 38): figures with detection do "
                "not compare",
        figures=[figure("FIFO", "ratio", what="Prague : CUBIC",
                        variant={"aqm": "fifo", "bdp": 2, "beside": "cubic", "opts": None},
                        says="neither dominates, CUBIC has somewhat more", ours="prague_classic"),
                 figure("FIFO with ECN", "ratio", what="Prague : CUBIC",
                        variant={"aqm": "ecn", "beside": "cubic", "opts": None},
                        says="Prague has much more, at any threshold and buffer", ours="prague_classic"),
                 figure("CoDel", "ratio", what="Prague : CUBIC",
                        variant={"aqm": "codel", "beside": "cubic", "opts": None}, says="Prague has much more",
                        ours="prague_classic"),
                 figure("FIFO with ECN", "ratio", what="with detection",
                        variant={"aqm": "ecn", "beside": "cubic", "opts": "classic_fallback:1"},
                        says="fair with a threshold of 5 ms, not with 1 ms", ours="prague_classic"),
                 figure("FQ", "ratio", what="Prague : CUBIC",
                        variant={"aqm": "fq_codel", "beside": "cubic", "opts": None}, says="mostly equal",
                        ours="prague_classic"),
                 figure("DualPI2", "ratio", what="Prague : CUBIC",
                        variant={"aqm": "dualpi2", "beside": "cubic", "opts": None}, says="generally fair",
                        ours="prague_classic"),
                 figure("DualPI2", "ratio", what="with detection",
                        variant={"aqm": "dualpi2", "beside": "cubic", "opts": "classic_fallback:1"},
                        says="Prague falls back there, too (issue 38)", ours="prague_classic")]),
    answer="""Beside CUBIC Prague gets {range ratio prague_classic aqm=fifo beside=cubic opts=} times its rate in
        drop-tail queues of half to four BDP, {range ratio prague_classic aqm=ecn beside=cubic opts=} where such a queue
        marks, {range ratio prague_classic aqm=ecn beside=cubic opts=classic_fallback:1} there with detection, which
        misses it with two of five seeds, {range ratio prague_classic aqm=fq_codel beside=cubic opts=} in FQ-CoDel and
        {range ratio prague_classic aqm=dualpi2 beside=cubic opts=} in DualPI2.""",
    conclusion="""{range ratio prague_classic aqm=codel beside=cubic opts=} times CUBIC's rate in CoDel and {range ratio
        prague_classic aqm=pie beside=cubic opts=} in PIE is what Prague takes without detection, {range ratio
        prague_classic aqm=codel beside=cubic opts=classic_fallback:1} and {range ratio prague_classic aqm=pie
        beside=cubic opts=classic_fallback:1} with it.

        With 2 of 5 seeds the drop-tail queue that marks above 5 ms is not detected: Prague keeps 36 and 42 times
        CUBIC's rate there. With the other three it gets 1.4 to 1.8 times, so that the mean says little.

        {range ratio prague_classic aqm=dualpi2 beside=cubic} is the ratio in DualPI2, with detection and without: it
        does not take that queue for a Classic one. Nor does it matter in drop-tail queues, which mark nothing.

        {range ratio prague_classic aqm=dualpi2 beside=bbr} times BBR's rate is what Prague gets in DualPI2, {range
        ratio prague_classic aqm=codel beside=bbr} in CoDel and {range ratio prague_classic aqm=ecn beside=bbr} in the
        drop-tail queue that marks: BBR (version 1) does not respond to marks, Prague does. In FQ-CoDel it is {range
        ratio prague_classic aqm=fq_codel beside=bbr}.

        {range ratio prague_classic aqm=fifo bdp=1 beside=bbr} times BBR's rate in a drop-tail queue of one BDP and
        {range ratio prague_classic aqm=fifo bdp=4 beside=bbr} in one of four is what a control that responds to losses
        gets beside BBR.

        {range ratio prague_classic beside=prague} is the ratio of two Prague flows in all these queues.""",
    shell="""
# queue_of AQM BDP: tc's words for it at 100 Mb/s; one BDP is 312500 bytes
queue_of()
{
	local bytes

	bytes=$(awk -v b="${2:-2}" 'BEGIN { printf "%d", 312500 * b }')
	case $1 in
	fifo) echo bfifo limit "$bytes" ;;
	codel) echo codel limit 10000 ecn ;;
	fq_codel) echo fq_codel limit 10000 ;;
	pie) echo pie limit 10000 ecn ;;
	esac
}

run_scenario()
{
	local from=10 to=60 words=()

	BUFFER=33554432
	dumbbell 2 25ms
	case $aqm in
	dualpi2) bottleneck 100mbit 25ms ;;
	ecn) QUEUE=dctcp bottleneck 100mbit 25ms --k 41 --limit 625000b ;;
	*)
		shaper sw egress 100mbit
		read -ra words < <(queue_of "$aqm" "${bdp:-}")
		in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "${words[@]}" || fail "no ${words[*]}"
		;;
	esac
	# the others, too, ask for ECN
	every sysctl -qw net.ipv4.tcp_ecn=3
	serve r --cc prague
	check_path h1 r 100mbit 25ms
	# a new one, whose average knows nothing of that
	[ ${#words[@]} -eq 0 ] || in_ns sw tc qdisc replace dev egress parent 1:1 handle 3: "${words[@]}"
	watch_queue 100mbit "${from}s" "${to}s" 10ms
	two_flows "$CONTROL" "$beside" "$to"
	watched
	two_rates "$((to - from))"
}
""")
