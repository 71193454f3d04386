# SPDX-License-Identifier: GPL-2.0

import re
from pathlib import Path
from typing import Any

from lowq_lab import dumbbell, each, goal, long, program, Results, Run, Scenario

TRACING = Path("/sys/kernel/tracing")
ARRIVED = "nstat -asz IpExtInCEPkts IpExtInECT0Pkts IpExtInECT1Pkts"  # at the receiver
# alpha is read as a user would: ss, 1000 times a second, in mainline's units; dctcp_ref's is too fine for those units,
# and is read from its tracepoint
ALPHA = "i=0; while [ $i -lt 300 ]; do sleep 0.001; ss -Htin dport = :5201 | grep -o 'alpha:[0-9]*'; i=$((i + 1)); done"


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="10gbit", rtt="1ms")
    for command in ("modprobe -r tcp_dctcp_ref", "modprobe tcp_dctcp_ref alpha_init=0",
                    "sh -c 'echo 0 >/sys/module/tcp_dctcp/parameters/dctcp_alpha_on_init'",
                    f"sh -c 'echo 65536 >{TRACING}/buffer_size_kb'",
                    f"sh -c 'echo 1 >{TRACING}/events/dctcp_ref/dctcp_ref_window/enable'"):
        net.prepare("", command)
    net.prepare("h1", f"tc qdisc add dev sw root netem limit 1000000 loss {100 / run['one_in']}% ecn")
    net.stated("h1", "r", rate="10gbit", rtt="1ms")
    # the first quarter of the transfer is left out: alpha settles
    return net.plan(long("h1", "r", size="400M", control=run.control), program("h1", ALPHA, label="alpha", stop="end"),
                    program("r", ARRIVED, label="arrived", start="80ms"))


def marked(text: str) -> tuple[float, float]:
    """Packets marked CE, and all that were ECT"""
    counts = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("IpExt")}
    return counts["IpExtInCEPkts"], sum(counts.values())


def settled(values: list[str], one: int) -> float:
    """The mean without the first quarter, by what stands for 1"""
    later = [float(value) / one for value in values[max(0, len(values) // 4 - 1):]]
    return sum(later) / len(later)


def metrics(results: Results) -> dict[str, float | None]:
    (ce, every), (ce_before, before) = marked(results.ask("r", ARRIVED)), marked(results.text("arrived"))
    fraction = (ce - ce_before) / (every - before)
    if results.run.control == "dctcp_ref":
        trace = (TRACING / "trace").read_text(encoding="ascii")
        fraction, alpha = (settled(re.findall(f"\\b{name}_q30=([0-9]+)", trace), 1 << 30)
                           for name in ("fraction", "alpha"))
    else:
        alpha = settled(re.findall("alpha:([0-9]+)", results.text("alpha")), 1024)
    return {"mark_fraction": fraction, "alpha_mean": alpha, "alpha_over_fraction": alpha / fraction}


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
    metrics=metrics,
    plan=plan)
