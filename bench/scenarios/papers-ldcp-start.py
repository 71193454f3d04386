# SPDX-License-Identifier: GPL-2.0

from lowq_lab import goal, Scenario, TSO

SCENARIO = Scenario(
    title="LDCP's draft, sections 1 and 3.1: the first RTTs of a new flow on an idle path",
    question="""LDCP's draft: a new flow starts at full speed, and does not stop sending after its first RTT. How much
        of the link does it use in each of its first RTTs?""",
    topology="""
 h1  one flow -- sw ==== 10 Gb/s ==== r
  10 Gb/s        (ldcp: WRED; dctcp: RED step)
                  base RTT 100 us""",
    rows=["dctcp", "ldcp"],
    reference="dctcp",
    variants=[{"from": "server"}, {"from": "server", "tso": 1}, {"from": "client"}],
    params={"tso": TSO.format("10 Gb/s"),
            "initial window": "ldcp: 87 packets, the BDP; dctcp: 10",
            "client": "connects and sends at once: TCP has no window above 64 kB in a SYN-ACK",
            "first RTT": "from the first packet of data on; the handshake was an RTT before", "counted": "10 RTTs",
            "paper": """H. Dai et al., PFC-Free Low Delay Control Protocol,
                draft-dai-tsvwg-pfc-free-congestion-control-01. Here: TCP, not RoCEv2 on a NIC; the draft names no
                set-up""",
            "paper, abstract": """link used in the first RTT (from=server): a new flow jump starts at full speed at
                the very beginning""",
            "paper, section 3.1": """link used in the second RTT (from=server): after the first RTT the flow does not
                stop sending"""},
    words={"from": {"server": "a server sends", "client": "a client sends"}},
    shown=["used_rtt1", "used_rtt2", "used_rtt3", "used_ten", "retrans", "drops"],
    goals=[goal("used_rtt1", row="ldcp", least=0.95, variant={"from": "server"}, text="a server's first RTT"),
           goal("used_rtt2", row="ldcp", least=0.95),
           goal("drops", row="ldcp", most=0)],
    conclusion="""A server's flow fills its first RTT, as the draft says, and sends a little less in the second.

        A client's cannot: the window in a SYN-ACK is not scaled.""",
    shell=r"""
	local i used=() from_ns=h1 to=10.0.0.1 words=()

	dumbbell 1 100us
	line_rate 10gbit
	bottleneck 10gbit 100us
	ldcp_hosts 87
	serve r --cc "$CONTROL"
	serve h1 --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	[ "$from" = client ] || from_ns=r to=10.0.1.1 words=(--pull)
	watch_queue 10gbit 0us 1100us 100us
	in_ns "$from_ns" flowgen long --to "$to" --cc "$CONTROL" --duration 1200us \
		--start "$(start_us 1 1000)us" "${words[@]}" >"$OUT/flows.jsonl" || fail "no flow"
	watched
	# the first bin begins with a packet of the handshake, the next with the first packet of data
	mapfile -t used < <(awk -F, 'NR > 1 { u[int($1 * 1e4 + 0.5)] = $2 / 1e10 }
		END { for (i = 1; i <= 10; i++) { print u[i] + 0; s += u[i] } print s / 10 }' "$OUT/queue.csv")
	for i in 1 2 3; do
		metric "used_rtt$i" "${used[i - 1]}"
	done
	metric used_ten "${used[10]}"
""")
