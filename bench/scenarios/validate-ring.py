# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="A network card's ring: what waits where the queueing discipline does not see it",
    question="""The lab's link takes one packet at a time. What changes where a network card's ring takes 64, 256 or
        1024 from the queue, and with BQL?""",
    topology="""
 h1 h2  a long flow each  -- sw: the queue -> ring descriptors -> ==== rate ==== r
                              (marks here)   (not here)""",
    rows=["dctcp", "ldcp", "prague"],
    variants=each(ring=[1, 4, 64, 256, 1024]),
    params={"ring": "descriptors: htb over the queue lets so many packets through at once, to a link of the "
                    "same rate (netem), where they wait: so many, or one more, are always behind the queue "
                    "while the link is busy; 1: as in all other scenarios; 4: what BQL leaves there, two packets "
                    "being sent and fetched and two that an interrupt completes",
            "dctcp, ldcp": "10 Gb/s, base RTT 100 us; counted: 0.1 s to 0.2 s",
            "prague": "100 Mb/s, base RTT 10 ms; counted: 5 s to 10 s",
            "queue, delay": "in the queueing discipline and in the ring together, with the packet that is being"
                            " sent"},
    words={"ring": "ring of {}"},
    shown=["utilisation", "delay_mean_us", "seen_pkts", "ring_pkts", "delay_p99_us", "qlen_mean_pkts"],
    goals=[goal("utilisation", row="dctcp", least=0.98),
           goal("ring_pkts", row="dctcp", most=5, variant={"ring": 4},
                text="with BQL: packets that the queue does not see")],
    conclusion="""Marks limit the queue in the qdisc, not what waits in the ring behind it.

        With BQL the wait is that of the marks again: the lab stands for a switch's port, and for a network card with
        BQL.""",
    shell=r"""
run_scenario()
{
	local rate=10gbit rtt=100us from=100 to=200 seen

	[ "$ROW" != prague ] || rate=100mbit rtt=10ms from=5000 to=10000
	dumbbell 2 "$rtt"
	# packets pass ifb0, which has the queue, before the link
	in_ns sw ip link add ifb0 txqueuelen 10000 type ifb && in_ns sw ip link set ifb0 up || fail "no ifb"
	in_ns sw tc qdisc add dev egress clsact && in_ns sw tc filter add dev egress egress matchall \
		action mirred egress redirect dev ifb0 || fail "no redirection"
	QUEUE+=" --shape-burst $((ring * 1514))b"
	DEV=ifb0 bottleneck "$rate" "$rtt"
	in_ns sw tc qdisc add dev egress root netem rate "$rate" limit 100000 || fail "no link"
	ldcp_hosts
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" -
	# what the queueing discipline sees
	ip netns exec "${NSP}sw" qdelay --live --in p1,p2 --out ifb0 --filter tcp --rate "$rate" --from "${from}ms" --to "${to}ms" \
		--json "$OUT/seen.json" 2>"$TMP/seen" &
	seen=$!
	wait_until grep -q ready "$TMP/seen"
	watch_queue "$rate" "${from}ms" "${to}ms"
	long_flows 2 "$((to + 10))ms"
	watched
	kill -TERM $seen && wait $seen || fail "qdelay: $(tail -n1 "$TMP/seen")"
	metric seen_pkts "$(jq .qlen_pkts.mean "$OUT/seen.json")"
	metric ring_pkts "$(jq -s '.[1].qlen_pkts.mean - .[0].qlen_pkts.mean' "$OUT/seen.json" "$OUT/qdelay.json")"
}
""")
