# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario, TSO

LIMITS = [*each(limit="window", bytes=[58000, 250000], flows=[1, 2]), *each(limit="opened", bytes=58000),
          *each(limit="stopped", unit=[128, 8192]), *each(limit="mtu", thresholds=[9000, 1500]), *each(limit="paced"),
          *each(limit="gone", bytes=[0, 2000000])]

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
    goals=[goal("utilisation", row="ldcp", least=0.95, beside=["dctcp", "dctcp_ref"]),
           goal("utilisation", row="hpccpp", least=0.94, beside=["dctcp", "dctcp_ref"]),
           goal("delay_p99_us", row="ldcp", most=1.05, beside=["dctcp", "dctcp_ref"])],
    conclusion="""A window does not grow while a host is the limit, so that no queue waits when the limit goes away.

        DCTCP and LDCP add to the window by packets, so that flows with large packets get more; HPCC++ counts bytes.

        A receiver that offers its window in units larger than a packet stops LDCP until a timeout: keep
        net.core.rmem_max and net.ipv4.tcp_rmem below 64 MiB, or set net.ipv4.tcp_shrink_window.""",
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
