# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, Goal, goal, Scenario, TSO

LIMITS = [*each(limit="window", bytes=[58000, 250000], flows=[1, 2]), *each(limit="opened", bytes=58000),
          *each(limit="stopped", unit=[128, 8192]), *each(limit="mtu", thresholds=[9000, 1500]), *each(limit="paced"),
          *each(limit="gone", bytes=[0, 2000000])]


def goals_of(row: str) -> list[Goal]:
    """The same for both controls"""
    delays = [goal("delay_p99_us", row=row, most=1.05, relative_to="dctcp", variant=variant,
                   text=f"{row}, {variant['limit']}: p99 delay at most 1.05 times dctcp's")
              for variant in (*each(limit="window", bytes=250000),
                              *each(limit=["opened", "stopped", "mtu", "paced", "gone"]))]
    filled = [goal("filled_us", row=row, most=1, relative_to="dctcp", variant={"limit": limit},
                   text=f"{row}, {limit}: the link is used as soon as with dctcp after the limit has gone (until 0.3: "
                        "within 5 RTTs)")
              for limit in ("opened", "stopped", "gone")]
    return [*delays, *filled,
            goal("utilisation", row=row, least=0.95, relative_to="dctcp",
                 text=f"{row}: at least 95 % of what dctcp uses"),
            goal("delay_p99_us", row=row, most=1.05, relative_to="dctcp", variant={"limit": "window", "bytes": 58000},
                 text=f"{row}, a window of half of the BDP: p99 delay at most 1.05 times dctcp's (until 0.3: at most "
                      "two packets)"),
            goal("ratio", row=row, most=1.05, relative_to="dctcp", variant={"limit": "mtu"},
                 text=f"{row}: ratio of rates at most 1.05 times dctcp's"),
            goal("app_gbps", row=row, least=0.95, relative_to="dctcp", variant={"limit": "paced"},
                 text=f"{row}: the application gets at least 95 % of its rate with dctcp"),
            goal("rpc_p99_us", row=row, most=1.05, relative_to="dctcp", variant={"limit": "paced"},
                 text=f"{row}: p99 of its writes at most 1.05 times dctcp's")]


SCENARIO = Scenario(
    title="Data centre: hosts that limit a flow: receive window, MTU, application",
    question="What do flows use, and how long is the queue, where a host limits them, and when the limit goes away?",
    topology="""
 h1..hN  flows        -- sw ==== 10 Gb/s ==== r
  25 Gb/s each          (the queue)
                         base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=LIMITS + each(LIMITS, tso=1),
    params={"tso": TSO.format("25 Gb/s"),
            "window": "the receiver offers bytes at most: half of the BDP, or twice the BDP",
            "opened": "bytes is the limit until 50 ms",
            "stopped": "the receiver does not read from 30 ms to 50 ms; unit: the window's, bytes. 128 is that of "
                       "Linux' defaults, 8192 that of net.core.rmem_max = 256 MB",
            "mtu": "two flows have an MTU of 1500 bytes, two of 9000; ratio: the rate of these two by that of the "
                   "others; thresholds: the MTU for which lowq-tc computed them",
            "paced": "an application writes 14480 bytes every 40 us (2.9 Gb/s), beside a long flow; request: from the "
                     "instant at which a write was due until it has been read",
            "gone": "the same application, alone, has more than fits from 50 ms on; bytes: what it wrote at its very "
                    "beginning, in addition",
            "counted": "from 50 ms on: 20 ms (opened, stopped with unit 128, gone), 60 ms (paced), 80 ms (mtu), 210 "
                       "ms (stopped with unit 8192); 30 ms to 60 ms (window)"},
    words={"limit": {"gone": "limit goes away", "mtu": "two MTUs", "opened": "window opens",
                     "paced": "application at 2.9 Gb/s", "stopped": "receiver stops reading", "window": "window"},
           "bytes": "{} bytes", "thresholds": "thresholds for {} bytes", "unit": "unit {} bytes"},
    shown=["utilisation", "jain", "ratio", "app_gbps", "rpc_p50_us", "rpc_p99_us", "filled_us", "delay_p99_us",
           "delay_mean_us", "delay_max_us", "retrans"],
    goals=goals_of("ldcp") + goals_of("hpccpp"),
    answer="""A window of half of the BDP lets LDCP use {range utilisation ldcp limit=window bytes=58000 flows=1} of the
        link, HPCC++ {range utilisation hpccpp limit=window bytes=58000 flows=1} and DCTCP {range utilisation dctcp
        limit=window bytes=58000 flows=1}, the least where hosts send 64 kB at once. 90 % of the link are used {range
        filled_us ldcp limit=opened} after the window has opened with LDCP, {range filled_us hpccpp limit=opened} with
        HPCC++ and {range filled_us dctcp limit=opened} with DCTCP. An application that writes 2.9 Gb/s beside a
        long flow gets {range app_gbps ldcp} with LDCP, {range app_gbps hpccpp} with HPCC++ and {range app_gbps dctcp}
        with DCTCP. Flows with
        packets of 9000 bytes get {range ratio ldcp thresholds=9000} times the rate of those with 1500 with LDCP, {range
        ratio hpccpp thresholds=9000} times with HPCC++ and {range ratio dctcp thresholds=9000} times with DCTCP.""",
    conclusion="""No queue waits when the limit goes away: a window does not grow while a host is the limit.

        {range delay_max_us ldcp limit=gone bytes=0} is the longest wait of LDCP where it was never marked before (limit
        goes away, 0 bytes): it is still in slow start, and its window is twice what was in flight at its beginning.

        {range filled_us dctcp limit=gone bytes=0} is what DCTCP needs to fill the link there: its first packets leave
        as a burst, which was marked.

        2 MB at the beginning end slow start: LDCP's queue is then shorter than DCTCP's.

        6 times the rate goes to flows with 9000 bytes: DCTCP and LDCP add to the window by packets and reduce it by
        marked packets, whatever their size. HPCC++ counts bytes.

        21 % of LDCP's large packets are marked and 24 % of the small ones, as a packet never meets itself in the queue:
        with LDCP the factor is larger.

        288 kB is LDCP's K_max in this mix, at least 32 packets of the device's MTU: its queue is longer than DCTCP's,
        and shorter with thresholds for 1500 bytes.

        8192 bytes as the unit of the window, more than a packet, stop LDCP (receiver stops reading): it acknowledges
        each packet, the window does not shrink until the buffer overflows, all that is in flight is lost, and the flow
        waits for a timeout.

        {range delay_p99_us ldcp limit=stopped unit=8192 tso=} is LDCP's p99 delay there without offloads, DCTCP's
        {range delay_p99_us dctcp limit=stopped unit=8192 tso=}, because LDCP sends in only 19 of the 210 ms that are
        counted. The end of its slow start after the timeout, 0.3 ms with up to 26 packets waiting, is more than 1 % of
        that; 5 ms after it goes on no packet waits longer than 9.02 µs (seed 1).

        128 bytes, the unit of Linux' defaults, let it go on at once: keep net.core.rmem_max and net.ipv4.tcp_rmem below
        64 MiB, or set net.ipv4.tcp_shrink_window.

        With offloads (TSO) data leave as bursts at 25 Gb/s, which wait before the link at 10 Gb/s: a window of half of
        the BDP has a queue then, and all controls use less of the link.

        {range utilisation hpccpp limit=paced tso=1} of the link is used by HPCC++ beside the application with offloads,
        and {range utilisation hpccpp thresholds=1500 tso=1} in one mix of packet sizes; flows with 9000 bytes get more
        of the link than without offloads with DCTCP and HPCC++, not with LDCP.

        2 of 5 runs of LDCP's application with offloads began in the long flow's first burst, with 8 packets in flight
        instead of 40: it got less than it wrote for 17 ms, and what waited then was sent by 62 ms, which is its
        p99.""",
    shell=r"""
# jumbo HOST...: MTU 9000 on these hosts' paths to r
jumbo()
{
	local host

	ip -n "${NSP}r" link set eth0 mtu 9000
	ip -n "${NSP}sw" link set egress mtu 9000
	for host; do
		ip -n "$NSP$host" link set eth0 mtu 9000
		ip -n "${NSP}sw" link set "p${host#h}" mtu 9000
		if [ "${tso:-}" ]; then
			tc -n "$NSP$host" qdisc change dev eth0 root tbf rate 25gbit burst 9100 limit 64mb
		else
			set_rate "$host" eth0 1:1 25gbit 9014
		fi
	done
}

# streams HOSTS [OPTIONS]: connections from h1 to hHOSTS, each limited as stream's options say
streams()
{
	local i from=''

	for ((i = 1; i <= $1; i++)); do
		from+=${from:+,}${NSP}h$i
	done
	LONG_FLOWS=$1
	"$RUNNER/stream" --cc "$CONTROL" --spread 1ms --seed "$SEED" "${@:2}" "$from" "${NSP}r" 10.0.0.1 \
		>"$OUT/flows.jsonl" || fail "stream $*"
}

# filled MS: microseconds from that instant until 90 % of the link are used for half a millisecond
filled()
{
	awk -F, -v from="$1" 'NR > 1 && $1 >= from / 1000 - 1e-9 {
		run = $2 >= 0.9e10 ? run + 1 : 0
		if (run == 5) { printf "%d\n", ($1 - from / 1000) * 1e6 - 400 + 0.5; exit }
	}' "$OUT/queue.csv"
}

run_scenario()
{
	local from=50 to hosts=${flows:-1} long

	case $limit in
	window) from=30 to=60 ;;
	opened|gone) to=70 ;;
	stopped)
		to=70
		[ "$unit" = 128 ] || to=260
		;;
	mtu) to=130 hosts=4 ;;
	paced) to=110 hosts=2 ;;
	esac
	dumbbell "$hosts" 100us
	line_rate 25gbit
	# the kernel makes the unit of the window so large that its field can hold this
	[ "${unit:-8192}" = 8192 ] || sysctl -qw net.core.rmem_max=$((unit * 32768))
	hpccpp_hosts
	[ "${thresholds:-1500}" = 1500 ] || jumbo h3 h4
	bottleneck 10gbit 100us
	BURST=$([ "${thresholds:-1500}" = 1500 ] || echo 8) check_path h1 r 10gbit 100us
	[ "${thresholds:-9000}" = 9000 ] || jumbo h3 h4
	merging
	case $limit in mtu|paced) serve r --cc "$CONTROL" ;; esac
	watch_queue 10gbit "${from}ms" "${to}ms" 100us
	case $limit in
	window) streams "$hosts" --window "$bytes" --duration "$((to + 10))ms" ;;
	opened) streams 1 --window "$bytes" --opens "${from}ms" --duration "$((to + 10))ms" ;;
	stopped) streams 1 --stops 30ms --reads "${from}ms" --duration "$((to + 10))ms" ;;
	mtu) long_flows 4 "$((to + 10))ms" ;;
	paced)
		in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration "$((to + 10))ms" >"$TMP/long" &
		long=$!
		streams 1 --port 5202 --write 14480 --every 40us --count-from "${from}ms" --duration "$((to + 10))ms"
		all_done "$long"
		cat "$TMP/long" >>"$OUT/flows.jsonl"
		;;
	gone) streams 1 --first "$bytes" --write 14480 --every 40us --until "${from}ms" --duration "$((to + 10))ms" ;;
	esac
	watched
	case $limit in
	opened|stopped|gone) metric filled_us "$(filled "$from")" ;;
	mtu) metric ratio "$(jq '
		def rate(hosts): [.flows[] | select(.flow | test("^10\\.0\\." + hosts + "\\.1:")) |
			.goodput_bps // 0] | add;
		rate("[34]") / rate("[12]")' "$OUT/qdelay.json")" ;;
	paced)
		completions
		metric app_gbps "$(of 1 '.goodput_bps / 1e9')"
		;;
	esac
}
""")
