# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Queues that mark as RFC 3168 says: PIE, RED and a tunnel in FQ-CoDel, beside CUBIC",
    question="Does Prague find out that a queue is not for L4S, how soon, and does it then share with CUBIC?",
    topology=r"""
 h1  first  --\
               sw ==== rate ==== r
 h2  cubic  --/  (aqm, with ECN)
                  base RTT rtt""",
    rows=["prague_classic"],
    variants=[{"aqm": aqm} | cell | first
              for cell in (*each(rate="10mbit", rtt="30ms"), *each(rate="40mbit", rtt="20ms"),
                           *each(rate="100mbit", rtt="50ms"))
              for aqm in ("pie", "red", "tunnel")
              for first in (*each(first="prague", opts=["classic_fallback:1", "classic_fallback:0"]),
                            *each(first="cubic"))]
    # r uploads, and fills the way back
    + each(aqm=["pie", "tunnel"], rate="40mbit", rtt="20ms", first="prague", back="upload", opts="classic_fallback:1"),
    params={"back": "ACKs have 1/10 of the rate, in a drop-tail queue of 100 ms in which r uploads with CUBIC",
            "pie": "with ecn and its defaults", "red": "ecn, min 10 ms, max 30 ms of the rate, probability 0.1",
            "tunnel": "fq_codel, in one flow of which both are: CoDel",
            "detect_s": "from the start until Prague took the queue for a Classic one, by its tracepoint",
            "counted": "from 10 s to 70 s"},
    words={"aqm": {"pie": "PIE", "red": "RED", "tunnel": "tunnel"}, "first": "{} beside CUBIC", "back": "{}"},
    shown=["ratio", "detect_s", "classic_share", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, most=2,
                variant={"first": "prague", "opts": "classic_fallback:1"}, text="Prague to CUBIC, with detection"),
           goal("detect_s", row="prague_classic", most=12, median=5,
                variant={"first": "prague", "opts": "classic_fallback:1"}, text="detected after")],
    conclusion="""Prague without detection takes a mark for the small reduction that it is with L4S, and gets nearly
        all of the link.

        Detection is off by default all the same: see prague-field-jitter.""",
    shell=r"""
# aqm_of NAME BPS: tc's words for it
aqm_of()
{
	case $1 in
	pie) echo pie limit 10000 ecn ;;
	red) echo red limit $(($2 / 8)) min $(($2 / 800)) max $(($2 * 3 / 800)) avpkt 1514 \
		burst $(($2 / 800 / 1514 + 10)) bandwidth "$2" probability 0.1 ecn ;;
	tunnel) echo fq_codel limit 10000 flows 1 ;;
	esac
}

run_scenario()
{
	local from=10 to=70 words upload=

	dumbbell 2 "$rtt"
	shaper sw egress "$rate"
	read -ra words < <(aqm_of "$aqm" "${rate%mbit}000000")
	in_ns sw tc qdisc add dev egress parent 1:1 handle 2: "${words[@]}" || fail "no ${words[*]}"
	# CUBIC, too, asks for ECN
	every sysctl -qw net.ipv4.tcp_ecn=3
	serve r --cc prague
	check_path h1 r "$rate" "$rtt"
	# a new one, whose average knows nothing of that
	in_ns sw tc qdisc replace dev egress parent 1:1 handle 3: "${words[@]}"
	watch_queue "$rate" "${from}s" "${to}s" 10ms
	if [ "${back:-}" ]; then
		serve h1 --cc cubic
		slow_way_back "$rate"
	fi
	classic_watch
	if [ "${back:-}" ]; then
		in_ns r flowgen long --to 10.0.1.1 --cc cubic --duration "${to}s" >"$TMP/back" &
		upload=$!
	fi
	two_flows "$first" cubic "$to"
	[ -z "$upload" ] || all_done "$upload"
	[ "$first" != prague ] || classic_watched "$to"
	watched
	two_rates "$((to - from))"
}
""")
