# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Links as they are: rates that change all the time, bursts, asymmetry, jitter, loss, reordering",
    question="How much of a link that does not stand still does Prague use, and how long do packets wait?",
    topology="""
 h1  a long flow --- sw ==== rate ==== r
                     (dualpi2, lowq-tc's defaults)
                      base RTT rtt, 20 ms where it is not given""",
    rows=["prague", "cubic_l4s", "bbr_l4s"],
    reference="cubic_l4s",
    variants=[*each(link="steady", rate=["500kbit", "1mbit", "4mbit", "10mbit", "50mbit"]),
              *each(link="steady", rate="4mbit", rtt="100ms"),
              *each(link="steady", rate="10mbit", rtt=["5ms", "100ms"]),
              *each(link="wifi", rate="20mbit", to="100mbit", every=[4, 20]),
              *each(link="lte", rate="5mbit", to="25mbit", every=100),
              *each(link="slots", rate="50mbit"),
              *each(link="asymmetric", rate="50mbit", share=[10, 100]),
              *each(link="asymmetric", rate="50mbit", share=100, ecn=3),
              *each(link="two-way", rate="50mbit", share=10),
              *each(link=["jitter", "reorder"], rate="50mbit"),
              *each(link="loss", rate="50mbit", percent=[0.01, 0.1, 1]),
              # the curve of use against delay: L4S marked above a longer time
              *(one for step in ("3ms", "6ms", "10ms")
                for one in each(link="wifi", rate="20mbit", to="100mbit", every=[4, 20], step=step)
                + each(link="lte", rate="5mbit", to="25mbit", every=100, step=step))],
    params={"wifi, lte": "each every ms the rate is drawn again between rate and to, on a logarithmic scale, by the "
                         "seed",
            "slots": "ACKs arrive in bursts, one every 4 ms",
            "asymmetric": "ACKs have 1/share of the rate, and an ACK filter (cake)",
            "ecn": "net.ipv4.tcp_ecn=3 on both hosts: Accurate ECN for CUBIC and BBR, too",
            "two-way": "the same, and r uploads there with CUBIC",
            "jitter": "the RTT varies by 5 ms either way, which reorders ACKs",
            "reorder": "1 % of the packets are 3 ms late", "loss": "at random, percent",
            "step": "ECT(1) is marked above it, lowq-tc's --step; where it is not given, 1 ms, or the time of 1.5 "
                    "packets (CUBIC and BBR are in the other queue)",
            "counted": "from 5 s to 35 s; the utilisation of wifi and lte is of what the link could carry"},
    words={"link": {"asymmetric": "few ACKs", "jitter": "jitter", "loss": "random loss", "lte": "LTE",
                    "reorder": "reordering", "slots": "bursts of ACKs", "steady": "steady", "two-way": "upload",
                    "wifi": "Wi-Fi"},
           "share": "ACKs 1/{}", "percent": "{} %", "step": "step {}", "every": "new rate each {} ms"},
    shown=["utilisation", "delay_mean_us", "delay_p99_us", "drops", "retrans"],
    goals=[goal("delay_p99_us", row="prague", most=1, median=0.5, beside=["cubic_l4s", "bbr_l4s"]),
           goal("utilisation", row="prague", least=0.5, median=0.95, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Where rates change all the time, a step of a millisecond keeps the wait short and leaves a part of
        the link unused.

        Random losses leave CUBIC and Prague alike; BBR does not respond to them.

        cake's filter drops no ACK with an option that it does not know, such as Accurate ECN's.""",
    shell=r"""
# draw SECONDS: changes the rate for so long, and leaves the bits that it could carry from 5 s on in
# $TMP/bits
draw()
{
	python3 - "$1" "$every" "${rate%mbit}" "${to%mbit}" "$SEED" 3>"$TMP/bits" <<-'END' | in_ns sw tc -batch -
		import os, random, sys, time
		seconds, every, low, high, seed = map(int, sys.argv[1:])
		random.seed(seed)
		bits, begin = 0.0, time.monotonic()
		for n in range(seconds * 1000 // every):
		    bps = round(1e6 * low * (high / low) ** random.random())
		    bits += bps * every / 1000 if n * every >= 5000 else 0
		    print("class replace dev egress parent 10f0: classid 10f0:1 htb"
		          f" rate {bps} ceil {bps} burst 1514 cburst 1514 quantum 1514", flush=True)
		    time.sleep(max(0, begin + (n + 1) * every / 1000 - time.monotonic()))
		os.write(3, f"{bits:.0f}\n".encode())
	END
}

# make_link: the way of data, or of ACKs, as the link has it
make_link()
{
	case $link in
	steady|wifi|lte) ;;
	slots) in_ns sw tc qdisc replace dev p1 root netem delay 20ms slot 4ms 4ms limit 1000000 ;;
	asymmetric|two-way)
		in_ns r tc qdisc replace dev eth0 root cake bandwidth "$((${rate%mbit} * 1000 / share))kbit" \
			ack-filter besteffort
		;;
	jitter) in_ns sw tc qdisc replace dev p1 root netem delay 20ms 5ms limit 1000000 ;;
	reorder) in_ns h1 tc qdisc add dev eth0 root netem delay 3ms reorder 99% limit 1000000 ;;
	loss) in_ns h1 tc qdisc add dev eth0 root netem loss "$percent%" limit 1000000 ;;
	esac || fail "no link $link"
}

run_scenario()
{
	local from=5 to_s=35 pids=()

	BUFFER=33554432
	rtt=${rtt:-20ms}
	dumbbell 1 "$rtt"
	QUEUE+=${step:+ --step $step}
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	serve h1 --cc cubic
	check_path h1 r "$rate" "$rtt"
	[ -z "${ecn:-}" ] || every sysctl -qw "net.ipv4.tcp_ecn=$ecn"
	make_link
	watch_queue "$rate" "${from}s" "${to_s}s" 10ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration "${to_s}s" >"$TMP/long1" &
	pids+=($!)
	if [ "$link" = two-way ]; then
		in_ns r flowgen long --to 10.0.1.1 --cc cubic --duration "${to_s}s" >"$TMP/back" &
		pids+=($!)
	fi
	[ -z "${every:-}" ] || draw "$to_s"
	all_done "${pids[@]}"
	cp "$TMP/long1" "$OUT/flows.jsonl"
	watched
	[ -z "${every:-}" ] || capacity "$(cat "$TMP/bits")"
}
""")
