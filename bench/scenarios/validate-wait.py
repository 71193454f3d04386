# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Packets that arrive at random: waiting times beside queueing theory",
    question="Do packets wait in the lab's queue as long as in an M/G/1 queue?",
    topology="""
 h1  UDP, Poisson -- sw ==== 100 Mb/s ==== r
                       (drop-tail, never full)""",
    rows=["udp"],
    variants=[*each(link=["htb", "netem"], sizes="fixed", load=[0.5, 0.7, 0.9]),
              *each(link="netem", sizes="varied", load=[0.5, 0.7, 0.9])],
    params={"load": "the share of the link that the packets need",
            "link": "htb: as in all scenarios, with a burst of one full packet; netem: its rate, with the time that "
                    "the packet itself takes subtracted",
            "sizes": "fixed: full packets, M/D/1; varied: exponentially distributed with a mean of 400 bytes, none "
                     "above 1500, nearly M/M/1",
            "theory": "Pollaczek and Khinchine: arrival rate x mean square of the sending time / 2 / (1 - load), with "
                      "the load and the mean square of the packets that were sent; htb has saved up one packet, so "
                      "that a packet waits for what is before it without one sending time S: S (1 - (1 - load) "
                      "(e^load - 1) / load) less in the mean (M/D/1)",
            "counted": "20 s"},
    shown=["packets", "wait_us", "theory_us", "over_theory"],
    goals=[goal("over_theory", row="udp", least=0.95, most=1.05, text="mean wait, to the theory")],
    conclusion="""The clock, the queue and the capture add nothing that the mean would show.

        htb, the shaper of all other scenarios, sends one packet before its time, as a card with a packet in its ring
        does.""",
    shell=r"""
	local size=1472 gap varied=() own theory

	[ "$sizes" = fixed ] || { size=358; varied=(--varied); }
	gap=$(awk -v s=$((size + 42)) -v l="$load" 'BEGIN { print s * 8 / 100 / l }')
	dumbbell 1 1ms
	if [ "$link" = htb ]; then
		shape 100mbit pfifo limit 100000
		check_path h1 r 100mbit 1ms
	else
		in_ns sw tc qdisc replace dev egress root netem rate 100mbit limit 100000
	fi
	watch_queue 100mbit 0s 30s 10ms --filter udp
	"$RUNNER/app" poisson --gap "${gap}us" --size "$size" "${varied[@]}" --seed "$SEED" --duration 20s \
		"${NSP}h1" "${NSP}r" 10.0.0.1 >"$TMP/sent" || fail "poisson"
	watched
	metric failed 0
	metric packets "$(jq .sent "$TMP/sent")"
	# us: the mean time of a packet on the link, and the theory's waiting time
	jq -r --arg link "$link" '(8 / 100) as $s | (.duration_ns / 1e3) as $t | (.bytes * $s / $t) as $load |
		(.bytes * $s / .sent) as $own |
		(.squares * $s * $s / $t / 2 / (1 - $load)) as $wait |
		"\($own) \($wait -
			if $link == "htb" then $own * (1 - (1 - $load) * (($load | exp) - 1) / $load) else 0 end)"' \
		"$TMP/sent" >"$TMP/theory"
	read -r own theory <"$TMP/theory"
	[ "$link" = netem ] || own=0
	metric theory_us "$theory"
	metric wait_us "$(jq --argjson own "$own" '.delay_us.mean - $own' "$OUT/qdelay.json")"
	metric over_theory "$(jq --argjson own "$own" --argjson theory "$theory" '
		(.delay_us.mean - $own) / $theory' "$OUT/qdelay.json")"
""")
