# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

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
              # the draft's first example for rtt_virt
              *each(rate="100mbit", rtt=["2ms", "10ms", "40ms"], opts="rtt_mode:1"),
              *each(rate="100mbit", rtt="80ms"), *each(rate="50mbit", rtt="20ms", requests=[None, 60]),
              *each(rate="100mbit", rtt="10ms", requests=120)],
    words={"requests": "{} requests of 8 kB per second beside"},
    params={"requests": "of Prague, Poisson, each on a new connection",
            "queue": "dualpi2 with the defaults of lowq-tc, which below 24 Mb/s are not the kernel's",
            "counted": "from 30 s to 90 s; at 1000 Mb/s from 15 s to 45 s, and from 60 s to 150 s at 40 ms",
            "paper": """arXiv 2209.01078 (DualPI2 with a scalable control, 4 to 200 Mb/s, RTT 5 to 100 ms). Here:
                Prague and CUBIC of this kernel; one flow of each""",
            "paper, rate ratio": """ratio of rates (rate=100mbit rtt=10ms): 1.00 (near 1 over the grid); ratio of
                rates (rate=100mbit rtt=40ms): 1.00 (near 1 over the grid)""",
            "paper, queueing delay": """Prague's delay, p99 (rate=100mbit rtt=10ms): 0 to 2000 µs; Prague's delay,
                p99 (rate=100mbit rtt=40ms): 0 to 2000 µs"""},
    shown=["ratio", "prague_mbps", "cubic_mbps", "prague_p99_us", "cubic_p99_us", "utilisation", "drops"],
    goals=[goal("ratio", row="prague", least=0.67, most=1.5, text="Prague to CUBIC"),
           goal("ratio", row="prague", least=0.67, most=1.5, variant={"opts": None, "rate": "100mbit"},
                text="the same at 100 Mb/s, defaults")],
    conclusion="""With random marks of probability p, and one cut per round, a Prague flow settles at a window of 2.7
        / p packets, not 2 / p.

        Where CUBIC is slow to return, Prague grows faster than additively, so that freed capacity is used soon.

        On a slow link with a short RTT the smallest window is more than half of the link.""",
    shell="""
	local from=30 to=90 pid

	case $rate-$rtt in
	# after slow start the shares need a minute
	1000mbit-40ms) from=60 to=150 ;;
	1000mbit-*) from=15 to=45 ;;
	esac
	if [ -n "${requests:-}" ]; then
		BUFFER=33554432
		dumbbell 3 "$rtt"
		bottleneck "$rate" "$rtt"
		serve r --cc prague
		serve h3 --cc prague
		check_path h1 r "$rate" "$rtt"
		watch_queue "$rate" "${from}s" "${to}s" 10ms
		in_ns r flowgen rpc --to 10.0.3.1 --cc prague --size 8k --rate "$requests" --start 5s \
			--duration $((to - 5))s --seed "$SEED" --timeout 20s >"$TMP/rpc" &
		pid=$!
		two_flows prague cubic "$to"
		wait "$pid" || fail "requests"
		watched
		metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
	else
		prague_beside cubic "$from" "$to"
	fi
	metric prague_mbps "$(of 1 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric cubic_mbps "$(of 2 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric prague_p99_us "$(of 1 .delay_us.p99)"
	metric cubic_p99_us "$(of 2 .delay_us.p99)"
""")
