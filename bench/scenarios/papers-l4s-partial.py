# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def queue_of(run: Run) -> str:
    """One BDP is 312500 bytes"""
    size = int(312500 * run.get("bdp", 2))
    return {"fifo": f"bfifo limit {size}", "codel": "codel limit 10000 ecn", "fq_codel": "fq_codel limit 10000",
            "pie": "pie limit 10000 ecn", "dualpi2": run.queue("25ms"),
            "ecn": "lowq-tc dctcp --rtt 25ms --k 41 --limit 625000b"}[run["aqm"]]


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate="100mbit", rtt="25ms", queue=queue_of(run), buffer=33554432)
    net.sysctl("net.ipv4.tcp_ecn", 3)  # the others, too, ask for ECN
    return net.measured(*run.two(run.control, run["beside"], duration="60s", receiver="prague"), count=("10s", "60s"),
                        bin_="10ms", afresh=True)


def metrics(results: Results) -> dict[str, float | None]:
    return results.pair(50)


SCENARIO = Scenario(
    title="L4S deployed in parts: Prague beside CUBIC, BBR and Prague in six kinds of queue, 100 Mb/s, 25 ms",
    question="""Where the queue is not for L4S, what does Prague gain or lose beside others, with and without detection
        of Classic queues?""",
    topology=r"""
 h1  prague  --\
                sw ==== 100 Mb/s ==== r
 h2  beside  --/  (aqm)
                   base RTT 25 ms""",
    rows=["prague_classic"],
    variants=[*each(each(aqm="fifo", bdp=[0.5, 1, 2, 4]) + each(aqm="ecn", bdp=2)
                    + each(aqm=["codel", "fq_codel", "pie", "dualpi2"]),
                    beside="cubic"),
              *each(each(aqm="fifo", bdp=[1, 4]) + each(aqm="ecn", bdp=2) + each(aqm=["codel", "fq_codel", "dualpi2"]),
                    beside=["bbr", "prague"])],
    params={"ecn": "drop-tail that marks ECT packets from 5 ms of the rate on",
            "bdp": "the longest queue, in products of rate and base RTT",
            "codel": "codel, fq_codel and pie with ecn and their defaults", "dualpi2": "lowq-tc's defaults",
            "counted": "from 10 s to 60 s",
            "paper": """F. Sarpkaya et al., To switch or not to switch to TCP Prague?, arXiv 2407.00464, and To adopt
                or not to adopt L4S-compatible congestion control?, arXiv 2411.10952, and its artifacts
                (github.com/fatihsarpkaya/L4S). Here: Prague of this project, without detection of
                Classic queues""",
            "paper, FIFO": "Prague : CUBIC (aqm=fifo bdp=2 beside=cubic): neither dominates, CUBIC has somewhat more",
            "paper, FIFO with ECN": """Prague : CUBIC (aqm=ecn beside=cubic): Prague has much more, at any threshold
                and buffer""",
            "paper, CoDel": "Prague : CUBIC (aqm=codel beside=cubic): Prague has much more",
            "paper, FQ": "Prague : CUBIC (aqm=fq_codel beside=cubic): mostly equal",
            "paper, DualPI2": "Prague : CUBIC (aqm=dualpi2 beside=cubic): generally fair"},
    words={"aqm": {"fifo": "drop-tail", "ecn": "drop-tail that marks", "codel": "CoDel", "fq_codel": "FQ-CoDel",
                   "pie": "PIE", "dualpi2": "DualPI2"},
           "bdp": "{} BDP", "beside": {"cubic": "beside CUBIC", "bbr": "beside BBR", "prague": "beside Prague"}},
    shown=["ratio", "first_mbps", "second_mbps", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("ratio", row="prague_classic", least=0.5, most=2, variant={"aqm": "dualpi2"},
                text="DualPI2: Prague to the other"),
           goal("ratio", row="prague_classic", least=0.5, most=2, variant={"aqm": "pie"}, text="PIE"),
           goal("ratio", row="prague_classic", least=0.5, most=2, variant={"aqm": "fifo", "beside": "cubic"},
                text="drop-tail, beside CUBIC")],
    conclusion="""Prague takes a queue with RFC 3168 marks from CUBIC.

        BBR does not respond to marks, and takes what Prague leaves.""",
    metrics=metrics,
    plan=plan)
