# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Interrupt moderation: what DCTCP loses where hosts wait before they take packets, 10 Gb/s",
    question="""The lab's hosts take each packet when it arrives. What changes where they wait for more, as network
        cards do?""",
    topology="""
 h1..hN  a long flow each  -- sw ==== 10 Gb/s ==== r
  packets held               (RED: a step at K)     packets held
                              base RTT 100 us""",
    rows=["dctcp"],
    variants=[*each(flows=2, k=65, held=["0us", "10us", "50us", "100us"]),
              *each(flows=8, k=65, held=["0us", "50us"]),
              *each(flows=[2, 8], k=120, held="50us")],
    params={"held": "both hosts take packets only so long after the first of them arrived, and merge those of a flow "
                    "(napi_defer_hard_irqs, gro_flush_timeout, GRO); 0: at once",
            "k": "packets, RED's step; 120 is 65 and what arrives in 50 us, and a little", "counted": "0.1 s to 0.5 s"},
    words={"held": "held {}", "k": "K {}"},
    shown=["utilisation", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "jain"],
    goals=[goal("utilisation", row="dctcp", least=0.98, variant={"held": "0us"},
                text="link used, packets taken at once"),
           goal("utilisation", row="dctcp", least=0.98, variant={"k": 120},
                text="link used, with room for what is held")],
    conclusion="""Held packets are acknowledged at once, and the ACKs let as many leave at once: the queue is full and
        empty in turns.

        A threshold with room for what is held (lowq-tc --coalesce) fills the link again; the shares stay uneven.""",
    shell="""
# hold HOST PORT: what arrives at the host behind this port of sw, for up to $held
hold()
{
	# veth has NAPI, which can wait, only for what comes from a device without TSO
	in_ns sw ethtool -K "$2" tso off && in_ns "$1" ethtool -K eth0 gro on &&
		in_ns "$1" sh -c "echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs
			echo ${held%us}000 >/sys/class/net/eth0/gro_flush_timeout" ||
		fail "$1 does not hold packets"
}

run_scenario()
{
	local i

	dumbbell "$flows" 100us
	bottleneck 10gbit 100us --k "$k"
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit 100us "$k"
	for ((i = 1; i <= flows; i++)); do
		hold "h$i" "p$i"
	done
	hold r egress
	watch_queue 10gbit 100ms 500ms
	long_flows "$flows" 510ms
	watched
}
""")
