# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

BURSTS = ["together", "staggered", "small", "big"]

SCENARIO = Scenario(
    title="Data centre: bursts of several senders, 10 Gb/s, base RTT 100 us",
    question="When several hosts answer at once, again and again, how long does it take?",
    topology="""
 h1..h8  answers  -- sw ==== 10 Gb/s ==== r
  10 Gb/s each       (the queue)
                      base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(each(burst=BURSTS), [{"iw": 10, "alpha": 512, "beta": 256}, {"iw": 87, "alpha": 512, "beta": 256},
                                       {"iw": 10, "alpha": 1024, "beta": 128}]),
              *each(burst=BURSTS, iw=10, alpha=512, beta=256, tso=1),
              # the causes of what is missed
              *each(burst="small", iw=10, alpha=512, beta=256, k=600),
              *each(burst="together", iw=10, alpha=1024, beta=64)],
    params={"together": "20 times every 10 ms: 8 x 500 kB at once", "staggered": "the same, each at random within 4 ms",
            "small": "20 times every 10 ms: 32 x 20 kB at once", "big": "256 x 64 kB once, and a buffer of 1 MB",
            "iw": "initial window of ldcp, packets: 10 are the stack's, 87 the BDP; the others have 10",
            "alpha, beta": "of ldcp, in 1/1024 packets: 512 and 256 are the defaults",
            "k": "from how many packets on ldcp's queue drops packets of a first RTT; 87, the BDP, if not stated",
            "tso": TSO.format("10 Gb/s")},
    words={"burst": {"big": "256 x 64 kB", "small": "32 x 20 kB", "staggered": "8 x 500 kB, staggered",
                     "together": "8 x 500 kB together"}},
    shown=["rpc_p50_us", "rpc_p90_us", "rpc_p99_us", "timeouts", "delay_p99_us", "marks", "drops"],
    goals=[goal("rpc_p99_us", row="ldcp", most=1.3, median=1, beside=["dctcp", "dctcp_ref"], variant={"alpha": 512}),
           goal("rpc_p99_us", row="hpccpp", most=1.3, median=1, beside=["dctcp", "dctcp_ref"], variant={"alpha": 512}),
           goal("timeouts", row="hpccpp", most=0, variant={"alpha": 512})],
    conclusion="""HPCC++'s staggered answers end sooner than DCTCP's: they begin with a large W_ai.

        LDCP's short queue has a price: what one answer leaves of the link is used later.

        A larger alpha and a smaller beta make LDCP's queue longer, and its answers end sooner.""",
    shell="""
	local i words=() fan=8 size=500k count=20 jitter=10us

	case $burst in
	staggered) jitter=4ms ;;
	small) fan=32 size=20k ;;
	big) fan=256 size=64k count=1 words=(--limit 1000000b) ;;
	esac
	dumbbell 8 100us
	line_rate 10gbit
	case $CONTROL in
	dctcp*) words+=(--k 65) ;;
	ldcp) words+=(${k:+--k "${k}p"}) ;;
	esac
	bottleneck 10gbit 100us "${words[@]}"
	if [ "$iw" = 87 ]; then ldcp_hosts 87; else ldcp_hosts; fi
	[ "$CONTROL" != ldcp ] || parameter alpha="$alpha" beta="$beta"
	hpccpp_hosts
	for ((i = 1; i <= 8; i++)); do
		serve "h$i" --cc "$CONTROL"
	done
	check_path h1 r 10gbit 100us
	merging
	watch_queue 10gbit 0us 200ms 100us
	incast 8 "$fan" "$size" "$jitter" --count "$count" --period 10ms >"$OUT/flows.jsonl"
	watched
	completions
	metric timeouts "$(host_counter TCPTimeouts 8)"
""")
