# SPDX-License-Identifier: GPL-2.0
#
# A CPU that needs a fixed time for each packet is a queue whose packets all have that length: netem's rate with
# a cell that is longer than any packet. What a host receives and what it sends pass one such queue, an ifb.
# The other way, a hook in the kernel that lets virtual time pass, needs a patch of each kernel, and stops the
# timers of all hosts meanwhile, which have one clock.

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="CPU time: hosts that need a fixed time for each packet, 10 Gb/s and 100 Mb/s",
    question="""The lab's hosts need no time for a packet. From which time on are they the limit, and does less
        change anything?""",
    topology=r"""
 h1 h2  a long flow each     --\
 h3     answers requests     ---- sw ==== rate ==== r
  each host: one CPU              (the queue)       one CPU""",
    rows=["dctcp", "dctcp_ref", "ldcp", "prague"],
    reference="dctcp",
    variants=each(cost=[0, 500, 1000, 2000]),
    params={"cost": "ns of a host's one CPU for each packet that it sends or receives, in the order in which "
                    "they come; 1000 wait at most, as in a backlog of Linux; 0: none, as in all other scenarios. "
                    "Prague, at 100 Mb/s: a hundred times as much, 50, 100 and 200 us",
            "requests": "20 kB, Poisson, 2000 a second; 40 at 100 Mb/s",
            "dctcp, dctcp_ref, ldcp": "10 Gb/s, base RTT 100 us; counted: 0.1 s to 0.2 s",
            "prague": "100 Mb/s, base RTT 10 ms; counted: 2 s to 6 s"},
    words={"cost": {0: "no CPU time", 500: "500 ns a packet", 1000: "1 us a packet", 2000: "2 us a packet"}},
    shown=["utilisation", "qlen_mean_pkts", "mark_fraction", "rpc_p50_us", "host_drops", "host_cpu"],
    goals=[goal("utilisation", row="dctcp", least=0.98, variant={"cost": 500},
                text="link used with 500 ns for a packet")],
    conclusion="""The receiver is the limit where a packet costs more than it takes on the link.

        The queue is then before the CPU, which marks nothing: no control over a switch's queue can help.""",
    shell=r"""
# cpu HOST: its CPU, which is ifb0
cpu()
{
	in_ns "$1" sh -c "ip link add ifb0 txqueuelen 10000 type ifb && ip link set ifb0 up &&
		tc qdisc add dev ifb0 root netem rate $((65535 * 8000000 / cost))kbit 0 65535 limit 1000 &&
		tc qdisc add dev eth0 clsact &&
		tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0 &&
		tc filter add dev eth0 egress matchall action mirred egress redirect dev ifb0" || fail "$1 has no CPU"
}

run_scenario()
{
	local h rate=10gbit rtt=100us from=100 to=200 requests=2000 pid

	[ "$ROW" != prague ] || rate=100mbit rtt=10ms from=2000 to=6000 requests=40 cost=$((cost * 100))
	dumbbell 3 "$rtt"
	bottleneck "$rate" "$rtt"
	ldcp_hosts
	serve r --cc "$CONTROL"
	serve h3 --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	for h in h1 h2 h3 r; do
		[ "$cost" = 0 ] || cpu "$h"
	done
	LONG_FLOWS=2
	watch_queue "$rate" "${from}ms" "${to}ms"
	in_ns r flowgen rpc --to 10.0.3.1 --cc "$CONTROL" --persist --size 20k --rate "$requests" \
		--start "${from}ms" --duration "$((to - from))ms" --seed "$SEED" --timeout 10s >"$TMP/rpc" &
	pid=$!
	start_flows 2 "$((to + 10))ms" 1000
	requests_done "$pid"
	# shellcheck disable=SC2153 # start_flows sets PIDS
	all_done "${PIDS[@]}"
	cat "$TMP"/long* "$TMP/rpc" >"$OUT/flows.jsonl"
	watched
	completions
	if [ "$cost" != 0 ]; then
		in_ns r tc -s -j qdisc show dev ifb0 >"$TMP/cpu"
		metric host_drops "$(jq '.[0].drops' "$TMP/cpu")"
		metric host_cpu "$(jq --argjson c "$cost" --argjson ms $((to + 10)) '.[0].packets * $c / 1e6 / $ms' "$TMP/cpu")"
	fi
}
""")
