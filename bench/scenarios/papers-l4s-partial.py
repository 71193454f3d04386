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
    words={"aqm": "{}", "bdp": "{} BDP", "beside": "beside {}"},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, variant={"aqm": "dualpi2"}, text="DualPI2: ratio >= 0.5"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "dualpi2"}, text="DualPI2: ratio <= 2"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "ecn", "opts": "classic_fallback:1"},
                text="a drop-tail queue that marks, with detection: ratio <= 2"),
           goal("ratio", row="prague_classic", most=2, variant={"aqm": "fifo", "beside": "cubic"},
                text="drop-tail beside CUBIC: ratio <= 2")],
    paper=Paper(
        source="F. Sarpkaya et al., To switch or not to switch to TCP Prague?, arXiv 2407.00464, and To adopt or not "
               "to adopt L4S-compatible congestion control?, arXiv 2411.10952",
        differs="Prague of this project; the papers' Prague had wrong constants in its detection (L4STeam/linux, "
                "issue 38)",
        figures=[figure("FIFO", "ratio", what="Prague : CUBIC, drop-tail of 2 BDP",
                        variant={"aqm": "fifo", "bdp": 2, "beside": "cubic", "opts": None},
                        says="no gain for Prague where nothing marks", ours="prague_classic"),
                 figure("FIFO with ECN", "ratio", what="Prague : CUBIC, one queue that marks",
                        variant={"aqm": "ecn", "beside": "cubic", "opts": None},
                        says="Prague takes most of the link from a flow that takes marks for losses",
                        ours="prague_classic"),
                 figure("FIFO with ECN", "ratio", what="with detection",
                        variant={"aqm": "ecn", "beside": "cubic", "opts": "classic_fallback:1"},
                        says="detection does not help in all cases", ours="prague_classic"),
                 figure("FQ", "ratio", what="Prague : CUBIC, FQ-CoDel",
                        variant={"aqm": "fq_codel", "beside": "cubic", "opts": None}, says="fair by the queue",
                        ours="prague_classic"),
                 figure("DualPI2", "ratio", what="Prague : CUBIC, DualPI2",
                        variant={"aqm": "dualpi2", "beside": "cubic", "opts": None}, says="about fair",
                        ours="prague_classic")]),
    answer="""Beside CUBIC Prague gets {range ratio prague_classic aqm=fifo beside=cubic opts=} times its rate in
        drop-tail queues of half to four BDP, {range ratio prague_classic aqm=ecn beside=cubic opts=} where such a queue
        marks, {range ratio prague_classic aqm=ecn beside=cubic opts=classic_fallback:1} there with detection, {range
        ratio prague_classic aqm=fq_codel beside=cubic opts=} in FQ-CoDel and {range ratio prague_classic aqm=dualpi2
        beside=cubic opts=} in DualPI2.""",
    conclusion="""{range ratio prague_classic aqm=codel beside=cubic opts=} times CUBIC's rate in CoDel and {range ratio
        prague_classic aqm=pie beside=cubic opts=} in PIE is what Prague takes without detection, {range ratio
        prague_classic aqm=codel beside=cubic opts=classic_fallback:1} and {range ratio prague_classic aqm=pie
        beside=cubic opts=classic_fallback:1} with it.""",
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
