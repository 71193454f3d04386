# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="HPCC's paper, section 5.3: WebSearch at 30 and 50 %, Hadoop at 50 %, on a fat-tree of 10 Gb/s",
    question="""HPCC's paper: on a fat-tree short flows take up to 95 % less at the tail than with DCQCN. What is it
        here, beside DCTCP?""",
    topology="""
 c0-0 c0-1 c1-0 c1-1                       4 core switches
 a0-0 .. a3-1, e0-0 .. e3-1                4 pods of 2 + 2 switches
 h0-0-0 .. h3-1-1                          16 hosts
 all links 10 Gb/s; every port, the hosts' too, stamps (or has a RED step); base RTT 48 us
 pods 0 and 1 send to pods 2 and 3, and these to those, share % of what the links to the core carry""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=each(load="websearch", share=[30, 50]) + each(load="hadoop", share=50),
    params={"slowdown": "completion time / (2 RTTs, one of them the handshake's, + size with headers / 10 Gb/s)",
            "requests": "Poisson, a connection each, for 50 ms; paths by ECMP",
            "probe_room": "6: a sender that stamps and five switches; the default, 5, has no room for the sixth record",
            "K, thresholds": "lowq-tc's, for 10 Gb/s and an RTT of 50 us",
            "drawn": "the load that the seed drew, % of the links to the core",
            "paper": """Y. Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019. Here: 16 hosts of 10
                Gb/s, not 320 of 100 Gb/s; TCP with telemetry in probes, beside DCTCP, not DCQCN; flows pass the
                core""",
            "paper, fig. 10, 11": """small flows, p95 (load=websearch share=50): less than with the others, at 30 %
                and at 50 %; large flows, p95 (load=websearch share=50): somewhat more: 5 % of each link is left
                unused""",
            "paper, fig. 12": "small flows, p95, Hadoop (load=hadoop): less than with the others"},
    words={"load": {"hadoop": "Hadoop", "websearch": "WebSearch"}, "share": "load {} %"},
    shown=["slow_p50_small", "slow_p95_small", "slow_p99_small", "slow_p95_medium", "slow_p95_large", "drawn_load"],
    goals=[goal("slow_p95_small", row="hpccpp", most=0.75, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p95_small", row="ldcp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("slow_p95_small", row="dctcp_ref", most=1.1, beside=["dctcp"])],
    conclusion="""HPCC++ shortens the tail of small flows; their median hardly changes under Hadoop.

        Flows of medium size take least with LDCP and HPCC++; the largest take longer with HPCC++.""",
    shell=r"""
	local pods='{"h[01]-*":"h[23]-*","h[23]-*":"h[01]-*"}' rtt=48us

	hpccpp_hosts line_rate_mbps=10000 base_rtt_ns=50000 probe_room=6
	roomy
	# what every port has, hosts' too; each that stamps has an identity of its own
	python3 "$LIB/fat_tree.py" 4 "$NSP" |
		jq --arg cc "$CONTROL" --arg load "$LIB/cdf/$load.cdf" --arg bits "$((8 * share * 478 / 5))mbit" \
			--argjson pods "$pods" '
			.machine_sysctl = {"net.core.netdev_max_backlog": 100000} | .sysctl += {"net.ipv4.tcp_ecn": 1} |
			reduce range(.links | length) as $i (.; .links[$i] |= (.neighbours = true | .delay = "4us" |
				reduce (0, 1) as $e (.; .ends[$e].queue = "lowq-tc " +
					(if $cc == "hpccpp" then "hpccpp --switch-id \(2 * $i + $e + 1)"
					elif $cc == "ldcp" then "ldcp --rtt 50us" else "dctcp --rtt 50us" end)))) |
			.traffic = [$pods | to_entries[] |
				{kind: "flows", from: .key, to: .value, cdf: $load, load: $bits, duration: "50ms",
				timeout: "5s", control: $cc}]' >"$TMP/plan.json" || fail "no plan"
	PATH=$(dirname "$LOWQ_TC"):$PATH labnet "$TMP/plan.json" 2>"$TMP/labnet" ||
		fail "no network: $(head -n1 "$TMP/labnet")"
	# a host's own delay is before its device, where the path is measured
	ADDRESS=10.2.0.1 check_path h0-0-0 h2-0-0 10gbit 44us
	fixed_start
	flowgen plan "$TMP/plan.json" --seed "$SEED" --out "$OUT/flows.jsonl" >/dev/null || [ $? -eq 1 ] ||
		fail "flowgen broke off"
	drawn_load 8e9
	slowdown small 0 100000 50 95 99
	slowdown medium 100000 1000000 50 95
	slowdown large 1000000 1e12 50 95
""")
