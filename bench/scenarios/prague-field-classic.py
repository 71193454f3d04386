# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Queues that mark as RFC 3168 says: PIE, RED and a tunnel in FQ-CoDel, beside CUBIC",
    question="How do Prague and CUBIC share a queue that is not for L4S?",
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
              for first in each(first=["prague", "cubic"])],
    params={"pie": "with ecn and its defaults", "red": "ecn, min 10 ms, max 30 ms of the rate, probability 0.1",
            "tunnel": "fq_codel, in one flow of which both are: CoDel",
            "counted": "from 10 s to 70 s"},
    words={"aqm": {"pie": "PIE", "red": "RED", "tunnel": "tunnel"}, "first": "{} beside CUBIC"},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, most=2, variant={"first": "prague"},
                text="Prague to CUBIC")],
    conclusion="""Prague takes a mark for the small reduction that it is with L4S, and gets nearly all of the link.
        Where such a queue carries many flows, use another control.""",
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
	local from=10 to=70 words

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
	two_flows "$first" cubic "$to"
	watched
	two_rates "$((to - from))"
}
""")
