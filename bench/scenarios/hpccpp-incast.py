# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, figure, goal, Paper, Scenario, TSO

SCENARIO = Scenario(
    title="HPCC++: incast of 60 x 500 kB at 100 Gb/s, base RTT 10 us",
    question="How long does the queue get when 60 answers come at once, and is anything lost with 2 MB?",
    topology="""
 h1..h10  6 x 500 kB each, within 1 us     -- sw ==== 100 Gb/s ==== r
                                             (2 MB; stamps, or RED step)
                                              base RTT 10 us""",
    rows=["dctcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(stage=[5, 0], iw=10),
              *each(stage=[5, 0], iw=4),
              *each(stage=[5, 0], iw=3),
              *each(stage=1, iw=[10, 4]),
              *each(stage=1, iw=[10, 4], tso=1)],
    params={"tso": TSO.format("100 Gb/s"),
            "eta": "95 %", "stage": "maxStage of HPCC++; 1 is the default, 5 is from the draft",
            "iw": "initial window of HPCC++, packets; DCTCP has 10", "starts": "at random within 1 us",
            "N": "not given: W_ai follows the mean of U", "T": "10 us", "limit": "2 MB",
            "first windows": "60 x 10 packets are 908 kB, 60 x 4 are 363 kB, 60 x 3 are 272 kB, sent before any "
                             "feedback; a probe for each flow is 7 kB more"},
    shown=["queue_max_kb", "drops", "rpc_p50_us", "rpc_p99_us", "retrans"],
    goals=[goal("queue_max_kb", row="hpccpp", most=0.5, relative_to="dctcp",
                text="longest queue at most half of dctcp's"),
           goal("drops", row="hpccpp", most=0, text="no loss with 2 MB")],
    paper=Paper(
        source="Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019",
        differs="TCP with telemetry in probes, not RDMA",
        figures=[figure("abstract", "queue_max_kb", what="longest queue", variant={"stage": 1, "iw": 4},
                        says="little congestion even under large-scale incasts", in_tree="dctcp", ours="hpccpp"),
                 figure("abstract", "drops", what="packets lost", variant={"stage": 1, "iw": 4},
                        says="little congestion even under large-scale incasts", in_tree="dctcp", ours="hpccpp")]),
    answer="""The longest queue is {range queue_max_kb hpccpp iw=10} with an initial window of 10 packets, {range
        queue_max_kb hpccpp iw=4} with 4 and {range queue_max_kb hpccpp iw=3} with 3; DCTCP's is {range queue_max_kb
        dctcp}.""",
    conclusion="""The longest queue is what leaves before any feedback can come: the first windows of all 60 flows, and
        a probe of each. That is 915 kB with 10 packets, 371 kB with 4 and 280 kB with 3, and the longest queues are up to
        a tenth shorter. After that HPCC++ lets nothing more queue.

        The goal is missed with the usual initial window of 10 packets and met with 4 or fewer: with 10 the first
        windows alone are twice the limit. The initial window decides, not the control.

        The answers take a tenth longer than with DCTCP, the price of the empty queue: DCTCP's never runs empty.

        With offloads (TSO) it is the same: a flow's first window leaves its host as one burst at the line rate.""",
    shell="""
	local i

	dumbbell 10 10us
	[ -z "${tso:-}" ] || line_rate 100gbit
	bottleneck 100gbit 10us --limit 2000000b
	hpccpp_hosts max_stage="$stage" base_rtt_ns=10000
	for ((i = 1; i <= 10; i++)); do
		[ "$CONTROL" != hpccpp ] || ip -n "${NSP}h$i" route replace default via "10.0.$i.254" initcwnd "$iw"
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r 100gbit 10us
	merging
	watch_queue 100gbit 0us 10ms 10us
	incast 10 60 500k 1us >"$OUT/flows.jsonl"
	watched
	completions
	metric queue_max_kb "$(awk -F, 'NR > 1 && $6 > m { m = $6 } END { print m / 1000 }' "$OUT/queue.csv")"
""")
