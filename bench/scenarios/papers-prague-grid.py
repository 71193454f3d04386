# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario

RATES = ["4mbit", "12mbit", "40mbit", "120mbit", "200mbit"]
RTTS = ["5ms", "10ms", "20ms", "50ms", "100ms"]

SCENARIO = Scenario(
    title="DualPI2's paper: one scalable and one classic flow, 4 to 200 Mb/s, RTT 5 to 100 ms",
    question="""DualPI2's paper: a scalable and a classic flow get about the same rate in all of 25 cells, and L4S
        packets wait about a millisecond. Is it so with Prague?""",
    topology=r"""
 h1  prague  --\
                sw ==== rate ==== r
 h2  cubic   --/  (dualpi2, lowq-tc's defaults)
                   base RTT rtt""",
    rows=["prague"],
    variants=each(rate=RATES, rtt=RTTS),
    params={"queue": "dualpi2 with the defaults of lowq-tc, which below 24 Mb/s are not the kernel's",
            "counted": "from 20 s to 80 s; delays are of all packets of a flow, by percentiles"},
    shown=["ratio", "prague_p50_us", "prague_p99_us", "cubic_p99_us", "utilisation", "prague_p90_us",
           "prague_p999_us", "cubic_p50_us", "cubic_p90_us", "cubic_p999_us", "drops"],
    goals=[goal("ratio", row="prague", least=0.6, text="Prague : CUBIC >= 0.6"),
           goal("ratio", row="prague", most=1.8, text="Prague : CUBIC <= 1.8")],
    paper=Paper(
        source="K. De Schepper et al., Dual Queue Coupled AQM, arXiv 2209.01078",
        differs="Prague and CUBIC of this kernel, one flow of each, not its DCTCP",
        figures=[*(figure("rate ratio", "ratio", what=f"Prague : CUBIC, {rate.removesuffix('mbit')} Mb/s, 20 ms",
                          variant={"rate": rate, "rtt": "20ms"}, value=1, says="near 1 in each cell", ours="prague")
                   for rate in RATES),
                 *(figure("queueing delay", "prague_p99_us",
                          what=f"L4S delay at p99, {rate.removesuffix('mbit')} Mb/s, 20 ms",
                          variant={"rate": rate, "rtt": "20ms"}, value=(0, 2000), says="1 to 2 ms", ours="prague")
                   for rate in ("40mbit", "120mbit", "200mbit"))]),
    answer="""Prague gets {range ratio prague} times CUBIC's rate, {range ratio prague rtt=20ms} at 20 ms; its packets
        wait {range prague_p99_us prague rate=40mbit} at p99 at 40 Mb/s and {range prague_p99_us prague rate=200mbit} at
        200 Mb/s, CUBIC's {range cubic_p99_us prague rate=40mbit} and {range cubic_p99_us prague rate=200mbit}.""",
    conclusion="""{max ratio prague} and {min ratio prague} times CUBIC's rate are the most and the least in the
        grid.""",
    shell="""
	local q

	prague_beside cubic 20 80
	for q in p50 p90 p99 p999; do
		metric "prague_${q}_us" "$(of 1 ".delay_us.$q")"
		metric "cubic_${q}_us" "$(of 2 ".delay_us.$q")"
	done
""")
