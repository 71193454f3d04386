# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario

SCENARIO = Scenario(
    title="Prague beside CUBIC over DualPI2: 10 to 1000 Mb/s, 2 to 40 ms",
    question="Do a Prague flow and a CUBIC flow of the same base RTT get the same rate?",
    topology=r"""
 h1  prague  --\
                sw ==== rate ==== r
 h2  cubic   --/  (dualpi2, defaults)
                   base RTT rtt""",
    rows=["prague"],
    variants=[*each(rate=["10mbit", "100mbit", "1000mbit"], rtt=["2ms", "10ms", "40ms"]),
              *each(rate="10mbit", rtt="2ms", opts="fractional:1"),
              # the draft's first example for rtt_virt, and a larger gain
              *each(rate="100mbit", rtt=["2ms", "10ms", "40ms"], opts="rtt_mode:1"),
              *each(rate="100mbit", rtt="40ms", opts="ewma_shift:3"),
              *each(rate="100mbit", rtt="80ms")],
    params={"queue": "dualpi2 with the defaults of lowq-tc, which below 24 Mb/s are not the kernel's",
            "counted": "from 30 s to 90 s; at 1000 Mb/s from 15 s to 45 s, and from 60 s to 150 s at 40 ms"},
    shown=["ratio", "prague_mbps", "cubic_mbps", "prague_p99_us", "cubic_p99_us", "utilisation", "drops"],
    goals=[goal("ratio", row="prague", least=0.67, text="Prague : CUBIC >= 0.67"),
           goal("ratio", row="prague", most=1.5, text="Prague : CUBIC <= 1.5 (heistp/l4s-tests: 2.6)")],
    paper=Paper(
        source="arXiv 2209.01078 (DualPI2 with a scalable control, 4 to 200 Mb/s, RTT 5 to 100 ms)",
        differs="Prague and CUBIC of this kernel; one flow of each",
        figures=[figure("rate ratio", "ratio", variant={"rate": "100mbit", "rtt": "10ms", "opts": None}, value=1,
                        says="near 1 over the grid", ours="prague"),
                 figure("rate ratio", "ratio", variant={"rate": "100mbit", "rtt": "40ms", "opts": None}, value=1,
                        says="near 1 over the grid", ours="prague"),
                 figure("queueing delay", "prague_p99_us", variant={"rate": "100mbit", "rtt": "10ms", "opts": None},
                        value=(0, 2000), ours="prague"),
                 figure("queueing delay", "prague_p99_us", variant={"rate": "100mbit", "rtt": "40ms", "opts": None},
                        value=(0, 2000), ours="prague")]),
    answer="""At 100 Mb/s Prague gets {range ratio prague rate=100mbit opts=} times CUBIC's rate at 2 to 80 ms, while
        its packets wait {range prague_p99_us prague rate=100mbit opts=} at p99 and CUBIC's {range cubic_p99_us prague
        rate=100mbit opts=}.""",
    conclusion="""With random marks of probability p, and one cut per round, a Prague flow settles at a window of
        2.7 / p packets, not 2 / p.

        1 to 2 s is the length of the waves in which CUBIC's queue marks; an average with the gain of 1/16 follows them
        late (ewma_shift=3 is 1/8).

        {max ratio prague rate=1000mbit} times CUBIC's rate is what Prague gets at most at 1 Gb/s, where CUBIC is slow
        to return: when marks are absent for much longer than usual, counted in rtt_virt, Prague grows faster than
        additively, so that freed capacity is used soon (prague-field-follow).

        2 packets, the smallest window, are more than half of the link at 10 Mb/s and 2 ms; fractional=1 allows less.

        The lines with rtt_mode=1 use the first of the draft's two examples.""",
    shell="""
	local from=30 to=90

	case $rate-$rtt in
	# after slow start the shares need a minute
	1000mbit-40ms) from=60 to=150 ;;
	1000mbit-*) from=15 to=45 ;;
	esac
	prague_beside cubic "$from" "$to"
	metric prague_mbps "$(of 1 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric cubic_mbps "$(of 2 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric prague_p99_us "$(of 1 .delay_us.p99)"
	metric cubic_p99_us "$(of 2 .delay_us.p99)"
""")
