# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="DCTCP's paper, figure 20: all-to-all incast of 41 machines, 1 Gb/s, K = 20 packets",
    question="""41 machines ask all others for 25 kB each, at once: DCTCP's paper has no timeout with DCTCP, and one in
        over 55 % of TCP's queries. How many here?""",
    topology=r"""
 h1  --\
 ..     sw   each asks the other 40 for 25 kB, 1 MB in all
 h41 --/     (a queue at each port of sw, 1 Gb/s)
  1 Gb/s each; base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(limit=["700kB", "100kB"]),
    params={"queries": "5 of each machine, one after the other, on connections that are kept",
            "limit": "of each port: 700 kB, or 100 kB: 4 MB by 41 ports", "K of DCTCP": "20 packets",
            "least RTO": "10 ms, as in the paper", "starts": "within 10 us, at random",
            "RTOs": "of all hosts, in 205 queries; the link alone needs 8.4 ms for a query",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: a limit for each port
                instead of 4 MB that ports share""",
            "paper, fig. 20": """timeouts (limit=700kB): 0; timeouts, TCP: in over 55 % of the queries; here CUBIC,
                not New Reno; a limit for each port"""},
    words={"limit": "{} a port"},
    shown=["timeouts", "round_mean_us", "round_p99_us"],
    goals=[goal("timeouts", row="dctcp_ref", most=0, variant={"limit": "700kB"}, text="no timeout (the paper)"),
           goal("round_p99_us", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""All first windows together are more than a small buffer holds: no control that waits for marks
        avoids losses there.""",
    shell=r"""
	local i j to pids=() PLAN=1

	roomy
	add_ns sw
	for ((i = 1; i <= 41; i++)); do
		add_ns "h$i"
		net "$i" "h$i" eth0 sw "p$i"
	done
	PLAN=
	build_plan
	every sysctl -qw net.ipv4.tcp_rto_min_us=10000
	line_rate 1gbit
	for ((i = 1; i <= 41; i++)); do
		in_ns "h$i" tc qdisc add dev eth0 parent 1:1 netem delay 50us limit 100000
		QUEUE=$QUEUE DEV=p$i limited 1gbit 100us "${limit%kB}000b" 20
		in_ns "h$i" flowgen serve --cc "$CONTROL" >/dev/null &
	done
	wait_until listening h41 5201
	# h1's own delay is before its device, where the path is measured
	check_path h1 h41 1gbit 50us
	fixed_start
	for ((i = 1; i <= 41; i++)); do
		to=
		for ((j = 1; j <= 41; j++)); do
			[ "$i" = "$j" ] || to+=${to:+,}10.0.$j.1
		done
		in_ns "h$i" flowgen incast --to "$to" --fan 40 --size 25k --cc "$CONTROL" --timeout 5s --jitter 10us \
			--count 5 --start 20ms --seed "$((SEED * 100 + i))" >"$TMP/round$i" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/round* >"$OUT/flows.jsonl"
	rounds_done
	metric timeouts "$(host_counter TCPTimeouts 41)"
""")
