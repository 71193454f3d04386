# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="DCTCP's estimate under light marking",
    question="When fewer than 1 in 64 packets are marked, does alpha follow the marked fraction?",
    topology="""
 h1  one long flow -- (marks 1 in N at random) -- sw ==== 10 Gb/s ==== r
                                                    base RTT 1 ms""",
    rows=["dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(one_in=[100, 200, 400, 1000]),
    params={"rate": "10gbit", "rtt": "1ms", "transfer": "400 MB", "alpha at start": 0},
    words={"one_in": "1 in {} marked"},
    shown=["mark_fraction", "alpha_mean", "alpha_over_fraction"],
    goals=[goal("alpha_over_fraction", row="dctcp_ref", least=0.9, most=1.1, text="alpha / marked")],
    conclusion="""Linux's dctcp rounds a window with few marks to none, and does not respond until marks are frequent.

        dctcp_ref has more bits for alpha, which follows the fraction at every marking rate.""",
    shell=r"""
# alpha is read as a user would: ss, 2000 times a second, in mainline's units;
# dctcp_ref's is too fine for those units, and is read from its tracepoint.
# The first quarter of the transfer is left out: alpha settles.
# arrived: packets marked CE, and all that were ECT, at the receiver
arrived()
{
	in_ns r nstat -asz IpExtInCEPkts IpExtInECT0Pkts IpExtInECT1Pkts |
		awk '!/^#/ { all += $2 } /CE/ { ce = $2 } END { print ce + 0, all + 0 }'
}

# settled ONE: the mean of numbers without their first quarter, by what stands for 1
settled()
{
	awk -v one="$1" '{ v[NR] = $1 }
		END { for (i = int(NR / 4); i <= NR; i++) { s += v[i]; n++ } print s / n / one }'
}

run_scenario()
{
	local i alpha fraction

	modprobe -r tcp_dctcp_ref 2>/dev/null
	modprobe tcp_dctcp_ref alpha_init=0
	echo 0 >/sys/module/tcp_dctcp/parameters/dctcp_alpha_on_init
	dumbbell 1 1ms
	shape 10gbit
	in_ns h1 tc qdisc add dev eth0 root netem limit 1000000 \
		loss "$(awk -v n="$one_in" 'BEGIN { print 100 / n }')%" ecn
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit 1ms
	fixed_start
	trace_on dctcp_ref/dctcp_ref_window
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --size 400M >"$OUT/flows.jsonl" &
	for ((i = 0; i < 300; i++)); do
		# the marks are counted as alpha is: from the first quarter on
		[ $i -ne 75 ] || arrived >"$TMP/arrived"
		sleep 0.001
		in_ns h1 ss -Htin dport = :5201 | grep -o 'alpha:[0-9]*'
	done | cut -d: -f2 >"$OUT/alpha.ss"
	all_done $!
	trace_off "$OUT/trace"
	fraction=$({ cat "$TMP/arrived"; arrived; } | awk '{ ce = $1 - ce; all = $2 - all } END { print ce / all }')
	if [ "$CONTROL" = dctcp_ref ]; then
		fraction=$(field fraction_q30 <"$OUT/trace" | settled $((1 << 30)))
		alpha=$(field alpha_q30 <"$OUT/trace" | settled $((1 << 30)))
	else
		alpha=$(settled 1024 <"$OUT/alpha.ss")
	fi
	metric mark_fraction "$fraction"
	metric alpha_mean "$alpha"
	metric alpha_over_fraction "$(awk -v a="$alpha" -v f="$fraction" 'BEGIN { print a / f }')"
}
""")
