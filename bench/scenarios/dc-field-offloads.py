# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Data centre: hosts with segmentation offload and coalescing",
    question="Do flows fill the link and share it when hosts send 64 kB at once, and receivers hold packets back?",
    topology="""
 h1..hN  a long flow each  -- sw ==== rate ==== r
  rate each                  (the queue)         GRO, packets held for up to "held"
                              base RTT rtt""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(rate="10gbit", rtt="100us", flows=[2, 8], tso=0, held="0us"),
              *each(rate="10gbit", rtt="100us", flows=[2, 8], tso=1, held="0us"),
              *each(rate="10gbit", rtt="100us", flows=[2, 8], tso=1, held="50us"),
              *each(rate="100gbit", rtt="20us", flows=8, tso=[0, 1], held="0us"),
              *each(rate="100gbit", rtt="20us", flows=[2, 8], tso=1, held="20us")],
    params={"tso": "1: hosts segment packets of up to 64 kB in their NIC, at line rate",
            "held": "the receiver holds packets for up to this long, and merges them (GRO)",
            "thresholds": "what lowq-tc computes", "counted": "0.1 s to 0.4 s at 10 Gb/s, 20 to 60 ms at 100 Gb/s"},
    words={"held": "held back {}"},
    shown=["utilisation", "jain", "delay_mean_us", "delay_p99_us", "marks", "drops"],
    goals=[goal("utilisation", row="dctcp", least=0.98,
                text="dctcp with the thresholds of lowq-tc: at least 98 % of the link used"),
           goal("utilisation", row="dctcp_ref", least=0.98, text="dctcp_ref, likewise"),
           goal("utilisation", row="ldcp", least=0.97, text="ldcp: at least 97 % used"),
           goal("jain", row="ldcp", least=0.95, text="ldcp: Jain >= 0.95"),
           goal("jain", row="hpccpp", least=0.95, variant={"flows": 8}, text="hpccpp, 8 flows: Jain >= 0.95")],
    answer="""DCTCP uses {range utilisation dctcp} of the link, LDCP {range utilisation ldcp}, HPCC++ {range utilisation
        hpccpp}.""",
    conclusion="""Hosts that send 64 kB at once (TSO) need room in the queue: DCTCP has it in its threshold.

        1/8 of the window at once is what LDCP and HPCC++ send, as they pace: their queue stays short.

        {range jain ldcp rate=10gbit flows=2 tso=1 held=0us} is Jain's index of two flows of LDCP with TSO at 10 Gb/s,
        {range jain dctcp rate=10gbit flows=2 tso=1 held=0us} that of DCTCP. LDCP's bursts
        lock in: captures show that one of each flow follows the other, of 4 and 7 packets with seed 1, of 3 and 8 with
        seed 3. As many packets of one flow as of the other are marked (4.9 and 5.0 thousand with seed 1, 4.8 and 4.9
        with seed 3), so nothing draws the shares together. Which sizes they lock into depends on the seed.

        Receivers that hold packets back make all of them burst again; thresholds then grow by what is held back.

        HPCC++'s shares are even, except for eight flows at 100 Gb/s: there they depend on the seed, and where packets
        are held back for an RTT they are less even than DCTCP's. With eight flows and packets held back at 10 Gb/s
        dctcp_ref's shares are uneven, too.""",
    shell="""
	local words=()

	dumbbell "$flows" "$rtt"
	line_rate "$rate"
	[ "$CONTROL" = hpccpp ] || [ "$held" = 0us ] || words=(--coalesce "$held")
	hpccpp_hosts
	bottleneck "$rate" "$rtt" "${words[@]}"
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	merging
	if [ "$held" != 0us ]; then
		in_ns r sh -c "echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs
			echo ${held%us}000 >/sys/class/net/eth0/gro_flush_timeout"
	fi
	if [ "$rate" = 100gbit ]; then
		watch_queue "$rate" 20ms 60ms
		long_flows "$flows" 62ms
	else
		watch_queue "$rate" 100ms 400ms
		long_flows "$flows" 410ms
	fi
	watched
""")
