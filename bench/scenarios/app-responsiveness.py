# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Responsiveness under working conditions, 20 to 100 Mb/s, 20 to 65 ms, up, down and both",
    question="How many round trips per minute does an application get while the link is loaded?",
    topology="""
 h1  -- sw ==== rate ==== r
          (the queue)
   base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="20mbit", rtt="30ms", way=["down", "up", "both"]),
              *each(rate="100mbit", rtt="20ms", way=["down", "up", "both"]),
              *each(rate="60mbit", rtt="65ms", way=["down", "up", "both"]),
              *each(rate="100mbit", rtt="20ms", way="down", tso=1)],
    params={"way": "down: r is the client; up: h1 is; both: r is, 4 connections send each way, and the way back has "
                   "the same rate and queue",
            "load": "4 connections of a multiplexing protocol without TLS, 16 kB unsent in the kernel",
            "counted": "from 4 s to 12 s", "source": "draft-ietf-ippm-responsiveness"},
    words={"way": {"down": "down", "up": "up", "both": "both ways"}},
    shown=["rpm", "own_us", "foreign_us", "delay_p99_us", "utilisation", "back_mbps"],
    goals=[goal("rpm", row="prague", least=1, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Prague's load keeps most of the responsiveness of an idle link, but uses less of slow ones.

        Over a long drop-tail queue some probes are not answered before the run ends; such a run counts as failed.""",
    shell="""
	local ends=("${NSP}r" "${NSP}h1" 10.0.1.1)

	case $way in
	up) ends=(--up "${NSP}h1" "${NSP}r" 10.0.0.1) ;;
	both) ends=(--both "${ends[@]}") ;;
	esac
	dumbbell 1 "$rtt"
	bottleneck "$rate" "$rtt"
	[ "$way" != both ] || way_back "$rate" "$rtt"
	serve r --cc "$CONTROL"
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	watch_queue "$rate" 4s 12s 20ms
	"$RUNNER/app" respond --cc "$CONTROL" --duration 12s --from 4s "${ends[@]}" >"$TMP/respond" || fail "respond"
	watched
	[ "$(jq .unanswered "$TMP/respond")" -eq 0 ] || fail "$(jq .unanswered "$TMP/respond") probes without an answer"
	metric failed 0
	metric rpm "$(jq .rpm "$TMP/respond")"
	metric own_us "$(jq '.own_ns / 1000' "$TMP/respond")"
	metric foreign_us "$(jq '.foreign_ns / 1000' "$TMP/respond")"
	[ "$way" != both ] || metric back_mbps "$(jq '.up_bps / 1e6' "$TMP/respond")"
""")
