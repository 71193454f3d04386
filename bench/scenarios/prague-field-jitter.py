# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Prague over DualPI2, on paths whose RTT varies and whose ACKs are thinned",
    question="How much of the link does Prague use, and how long is its queue, where the RTT varies for other reasons?",
    topology=r"""
 h1  prague --\
               sw ==== rate ==== r
 h2  (cubic)--/  (dualpi2, defaults)
                  base RTT rtt, on the way of ACKs: path""",
    rows=["prague"],
    variants=[*each([*each(rate=["1mbit", "10mbit"], rtt="20ms"), *each(rate="40mbit", rtt=["5ms", "20ms", "100ms"]),
                     *each(rate="100mbit", rtt="20ms")],
                    path=["still", "jitter2", "jitter5", "jitter10", "slots", "thinned"]),
              *(one for path in ("still", "jitter5", "slots", "thinned")
                for one in (*each(rate="1000mbit", rtt="20ms", path=path),
                            *each(rate="40mbit", rtt="20ms", path=path, beside="cubic"))),
              *each(rate="40mbit", rtt="20ms", path="upload", beside=[None, "cubic"]),
              *each(rate="40mbit", rtt="20ms", path=["there", "back"])],
    params={"jitterN": "ACKs are delayed by up to N ms more or less, each at random",
            "slots": "ACKs arrive in bursts, one every 4 ms",
            "thinned": "ACKs have 1/100 of the rate, with cake and its ACK filter",
            "upload": "ACKs have 1/10 of the rate, in a drop-tail queue of 100 ms in which r uploads with CUBIC",
            "there, back": "from 15 s on that way is 10 ms longer",
            "counted": "from 5 s to 40 s"},
    words={"beside": "beside {}",
           "path": {"jitter2": "jitter 2 ms", "jitter5": "jitter 5 ms", "jitter10": "jitter 10 ms",
                    "slots": "bursts of ACKs", "still": "still path", "thinned": "ACKs thinned", "upload": "upload",
                    "there": "longer there", "back": "longer back"}},
    shown=["utilisation", "delay_p99_us", "ratio"],
    goals=[goal("utilisation", row="prague", least=0.9, variant={"path": "still", "beside": None}, text="still path"),
           goal("utilisation", row="prague", least=0.8, variant={"path": "jitter5", "beside": None},
                text="5 ms of jitter")],
    conclusion="""Where the RTT varies by more than the step, each mark counts, and a part of the link is unused.

        cake marks ACKs with Accurate ECN instead of thinning them, because they are ECT.""",
    shell="""
# vary PATH RTT: makes the way of ACKs from r to h1
vary()
{
	local ms=${2%ms}

	case $1 in
	still) ;;
	jitter*)
		in_ns sw tc qdisc replace dev p1 root netem delay "$2" "$((${1#jitter} > ms ? ms : ${1#jitter}))ms" \
			limit 1000000
		;;
	slots) in_ns sw tc qdisc replace dev p1 root netem delay "$2" slot 4ms 4ms limit 1000000 ;;
	thinned)
		in_ns r tc qdisc replace dev eth0 root cake bandwidth "$((${rate%mbit} * 10))kbit" ack-filter besteffort
		;;
	there|back) ;;
	upload)
		slow_way_back "$rate"
		;;
	esac || fail "no path $1"
}

run_scenario()
{
	local from=5 to=40 upload=

	BUFFER=33554432
	dumbbell 2 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc prague
	serve h1 --cc cubic
	check_path h1 r "$rate" "$rtt"
	vary "$path" "$rtt"
	watch_queue "$rate" "${from}s" "${to}s" 10ms
	case $path in
	there) (sleep 15; in_ns h1 tc qdisc add dev eth0 root netem delay 10ms limit 1000000) & ;;
	back) (sleep 15; in_ns sw tc qdisc change dev p1 root netem delay $((${rtt%ms} + 10))ms limit 1000000) & ;;
	esac
	if [ "$path" = upload ]; then
		in_ns r flowgen long --to 10.0.1.1 --cc cubic --duration "${to}s" >"$TMP/back" &
		upload=$!
	fi
	if [ -n "${beside:-}" ]; then
		two_flows prague "$beside" "$to"
	else
		long_flows 1 "${to}s"
	fi
	[ -z "$upload" ] || all_done "$upload"
	watched
	[ -z "${beside:-}" ] || metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
}
""")
