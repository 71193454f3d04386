# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario, TSO

SCENARIO = Scenario(
    title="LDCP: 1000 and 2000 long flows at 1 Gb/s, base RTT 100 us",
    question="The path holds 8 packets. How long is the queue of 1000 flows if windows can be smaller than one packet?",
    topology="""
 h1..h8  as many flows each -- sw ==== 1 Gb/s ==== r
                              (ldcp: WRED; dctcp: RED step)
                               base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=each(flows=[1000, 2000]) + each(flows=[1000, 2000], tso=1),
    params={"tso": TSO.format("1 Gb/s"),
            "rate": "1gbit", "rtt": "100us", "limit": "10000 packets", "counted": "0.6 s to 1.6 s"},
    shown=["utilisation", "qlen_mean_pkts", "jain", "qlen_stddev_pkts", "qlen_p99_pkts", "delay_p99_us", "marks",
           "drops"],
    goals=[goal("qlen_mean_pkts", row="ldcp", most=0.25, relative_to="dctcp",
                text="mean queue at most a quarter of dctcp's"),
           goal("utilisation", row="ldcp", least=0.95, text="utilisation >= 95 %")],
    paper=Paper(
        source="H. Dai et al., PFC-Free Low Delay Control Protocol, draft-dai-tsvwg-pfc-free-congestion-control-01",
        differs="TCP, not RoCEv2 on a NIC; the draft names no set-up",
        figures=[figure("section 1", "qlen_p99_pkts", what="longest queue for 99 % of the time", variant={"tso": None},
                        says="with a window below one packet the number of flows that it can endure increases "
                             "remarkably compared with DCTCP", in_tree="dctcp", ours="ldcp"),
                 figure("abstract", "utilisation", what="link used", variant={"tso": None},
                        says="very low queue occupancy even under high network utilization", in_tree="dctcp",
                        ours="ldcp"),
                 figure("abstract", "drops", what="packets lost", variant={"tso": None}, says="almost no packet loss",
                        in_tree="dctcp", ours="ldcp")]),
    answer="""With more flows than the path holds packets, LDCP's mean queue is {range qlen_mean_pkts ldcp} and DCTCP's
        {range qlen_mean_pkts dctcp}.""",
    conclusion="""1.5 packets per flow is DCTCP's queue, 2 where hosts have offloads (TSO): its smallest window is two
        packets, so that the queue holds what the path cannot. LDCP spaces packets further apart than an RTT.

        1/16 of a packet is LDCP's smallest window, so that 2000 flows always send more than the path holds, and each
        sends 40 packets in the second that is counted: the price is less fairness (Jain).""",
    shell="""
	dumbbell 8 100us
	[ -z "${tso:-}" ] || line_rate 1gbit
	bottleneck 1gbit 100us --limit 10000
	serve r --cc "$CONTROL"
	check_path h1 r 1gbit 100us
	merging
	watch_queue 1gbit 600ms 1600ms
	many_flows "$flows" 800us 1700ms
	watched
""")
