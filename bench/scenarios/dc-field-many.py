# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Results, Scenario, TSO


def metrics(results: Results) -> dict[str, float]:
    return {"moving": sum(flow["flow"].endswith(">10.0.0.1:5201") and (flow.get("goodput_bps") or 0) > 0
                          for flow in results.queues[0]["flows"])}


FLOWS = [*each(flows=1000, buffer=["default", "1MB"]), *each(flows=[200, 2000], buffer="default"),
         # the cause of what hpccpp misses
         *each(flows=1000, buffer="1MB", stagger="1500us")]

SCENARIO = Scenario(
    title="Data centre: hundreds and thousands of flows, 10 Gb/s, base RTT 100 us",
    question="How long is the queue with more flows than the path holds packets, and do all of them move?",
    topology="""
 h1..h8  25 to 250 each -- sw ==== 10 Gb/s ==== r
                           (the queue)
                            base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=FLOWS + each(FLOWS, tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "path": "87 packets", "buffer": "default: what lowq-tc sets, 1 MB: 660 packets",
            "stagger": "between two flows of a host: 500 us if not stated", "counted": "0.2 s to 0.5 s",
            "moving": "flows that delivered a packet in that time"},
    words={"buffer": "buffer {}"},
    shown=["utilisation", "delay_mean_us", "delay_p99_us", "moving", "jain", "marks", "drops"],
    goals=[goal("delay_p99_us", row="hpccpp", most=300, variant={"flows": 1000, "buffer": "default"},
                text="hpccpp: p99 delay <= 300 us"),
           goal("jain", row="ldcp", least=0.95, relative_to="dctcp", variant={"buffer": "default"},
                text="ldcp: Jain's index at least 0.95 times dctcp's (until 0.3: 0.9)"),
           goal("moving", row="hpccpp", least=1000, variant={"flows": 1000}, text="hpccpp: all flows move"),
           goal("moving", row="ldcp", least=1000, variant={"flows": 1000}, text="ldcp: all flows move"),
           goal("utilisation", row="ldcp", least=0.95, text="ldcp: at least 95 % used"),
           goal("utilisation", row="hpccpp", least=0.94, relative_to="dctcp",
                text="hpccpp: at least 94 % of what dctcp uses, as eta is 95 % +- 1 (until 0.3: 90 % of the link)")],
    answer="""With a thousand flows packets wait {range delay_mean_us dctcp buffer=default flows=1000} with DCTCP,
        {range delay_mean_us ldcp buffer=default flows=1000} with LDCP and {range delay_mean_us hpccpp buffer=default
        flows=1000} with HPCC++.""",
    conclusion="""{range moving dctcp flows=1000} of a thousand DCTCP flows move: the smallest window is two packets,
        the queue is full, and the others wait for a timeout. Fewer move with a buffer of 1 MB, and with offloads (TSO).

        1/20 of DCTCP's queue is enough for LDCP to use 96 % of the link and for HPCC++ to use 98 to 99 %: both go below
        one packet per RTT.

        16 flows that begin in each millisecond overflow the queue with HPCC++'s first windows, with a buffer of 1 MB
        and with 2000 flows. It drops SYNs, too, which are retransmitted after a second: such a flow has not begun when
        the run ends, after 0.52 s.

        Nothing is dropped where a thousand flows begin a third as fast (stagger 1500 µs), and all move. LDCP's flows
        all move.

        {range moving hpccpp flows=2000} of 2000 HPCC++ flows move, the fewest with offloads; its queue is a quarter
        longer with a thousand flows and offloads, LDCP's is the same.""",
    metrics=metrics,
    shell=r"""
	local words=()

	[ "$buffer" = default ] || words=(--limit 1000000b)
	dumbbell 8 100us
	line_rate 10gbit
	hpccpp_hosts
	bottleneck 10gbit 100us "${words[@]}"
	serve r --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	watch_queue 10gbit 200ms 500ms
	many_flows "$flows" "${stagger:-500us}" 520ms
	watched
""")
