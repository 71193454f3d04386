# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Prague beside CUBIC in one drop-tail queue without ECN, 100 Mb/s",
    question="In a queue that does not mark, is Prague as friendly to CUBIC as Reno is?",
    topology=r"""
 h1  first   --\
                sw ==== 100 Mb/s ==== r
 h2  cubic   --/  (drop-tail, one BDP)
                   base RTT rtt""",
    rows=["prague_fifo"],
    variants=[*each(rtt="10ms", limit=84, first="prague"),
              *each(rtt="40ms", limit=333, first="prague", opts=[None, "loss_cubic:0"]),
              *each(rtt="10ms", limit=84, first="reno"),
              *each(rtt="40ms", limit=333, first="reno")],
    params={"rate": "100mbit", "queue": "pfifo, limit packets", "counted": "from 20 s to 80 s"},
    words={"limit": "queue {} packets", "first": "{} beside CUBIC"},
    shown=["ratio", "first_mbps", "cubic_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_fifo", least=0.5, most=2, variant={"first": "prague"}, text="Prague to CUBIC")],
    conclusion="""By default Prague reacts to a loss like CUBIC, with loss_cubic=0 like Reno.""",
    shell="""
	dumbbell 2 "$rtt"
	QUEUE="fifo --limit ${limit}p"
	bottleneck 100mbit "$rtt"
	serve r --cc prague
	check_path h1 r 100mbit "$rtt"
	watch_queue 100mbit 20s 80s 10ms
	two_flows "$first" cubic 80
	watched
	metric first_mbps "$(of 1 '.payload_bytes * 8 / 1e6 / 60')"
	metric cubic_mbps "$(of 2 '.payload_bytes * 8 / 1e6 / 60')"
	metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
""")
