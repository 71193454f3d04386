# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153,SC2154
TITLE="Data centre: hosts with segmentation offload and coalescing"
QUESTION="Do flows fill the link and share it when hosts send 64 kB at once, and receivers hold packets back?"
TOPOLOGY='
 h1..hN  a long flow each  -- sw ==== rate ==== r
  rate each                  (the queue)         GRO, packets held for up to "held"
                              base RTT rtt'
ROWS="dctcp dctcp_ref ldcp hpccpp"
VARIANTS=("rate=10gbit rtt=100us flows=2 tso=0 held=0us" "rate=10gbit rtt=100us flows=8 tso=0 held=0us"
	"rate=10gbit rtt=100us flows=2 tso=1 held=0us" "rate=10gbit rtt=100us flows=8 tso=1 held=0us"
	"rate=10gbit rtt=100us flows=2 tso=1 held=50us" "rate=10gbit rtt=100us flows=8 tso=1 held=50us"
	"rate=100gbit rtt=20us flows=8 tso=0 held=0us" "rate=100gbit rtt=20us flows=8 tso=1 held=0us"
	"rate=100gbit rtt=20us flows=2 tso=1 held=20us" "rate=100gbit rtt=20us flows=8 tso=1 held=20us")
PARAMS='{"tso":"1: hosts segment packets of up to 64 kB in their NIC, at line rate","held":"the receiver holds packets for up to this long, and merges them (GRO)","thresholds":"what lowq-tc computes","counted":"0.1 s to 0.4 s at 10 Gb/s, 20 to 60 ms at 100 Gb/s"}'
WORDS='{"held":"held back {}"}'
COLUMNS_SHOWN='["utilisation","jain","delay_mean_us","delay_p99_us","marks","drops"]'
REFERENCE=dctcp
GOALS='[
	{"metric":"utilisation","row":"dctcp","op":">=","value":0.98,"variant":"*","text":"dctcp with the thresholds of lowq-tc: at least 98 % of the link used"},
	{"metric":"utilisation","row":"dctcp_ref","op":">=","value":0.98,"variant":"*","text":"dctcp_ref, likewise"},
	{"metric":"utilisation","row":"ldcp","op":">=","value":0.97,"variant":"*","text":"ldcp: at least 97 % used"},
	{"metric":"jain","row":"ldcp","op":">=","value":0.95,"variant":"*","text":"ldcp: Jain >= 0.95"},
	{"metric":"jain","row":"hpccpp","op":">=","value":0.95,"variant":{"flows":8},"text":"hpccpp, 8 flows: Jain >= 0.95"}]'
ANSWER="DCTCP uses {range utilisation dctcp} of the link, LDCP {range utilisation ldcp}, HPCC++ {range utilisation hpccpp}."
CONCLUSION="Hosts that send 64 kB at once (TSO) need room in the queue: DCTCP has it in its threshold.
1/8 of the window at once is what LDCP and HPCC++ send, as they pace: their queue stays short.
Receivers that hold packets back make all of them burst again; thresholds then grow by what is held back.
HPCC++'s shares are even, except for eight flows at 100 Gb/s: there they depend on the seed, and where packets are held back for an RTT they are less even than DCTCP's. With eight flows and packets held back at 10 Gb/s dctcp_ref's shares are uneven, too."

run_scenario()
{
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
		in_ns r sh -c "echo 1 >/sys/class/net/eth0/napi_defer_hard_irqs; echo ${held%us}000 >/sys/class/net/eth0/gro_flush_timeout"
	fi
	if [ "$rate" = 100gbit ]; then
		watch_queue "$rate" 20ms 60ms
		long_flows "$flows" 62ms
	else
		watch_queue "$rate" 100ms 400ms
		long_flows "$flows" 410ms
	fi
	watched
}
