# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

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
                             "feedback; a probe for each flow is 7 kB more",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: TCP with telemetry
                in probes, not RDMA""",
            "paper, abstract": """longest queue (stage=1 iw=4): little congestion even under large-scale incasts;
                packets lost (stage=1 iw=4): little congestion even under large-scale incasts"""},
    shown=["queue_max_kb", "drops", "rpc_p50_us", "rpc_p99_us", "retrans"],
    goals=[goal("queue_max_kb", row="hpccpp", most=0.5, beside=["dctcp"]),
           goal("drops", row="hpccpp", most=0)],
    conclusion="""The longest queue is what leaves before any feedback can come: the first windows of all flows.

        The initial window decides, not the control: with few packets the goal is met.

        The answers take a little longer than with DCTCP, whose queue never runs empty.""",
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
