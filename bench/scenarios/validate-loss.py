# SPDX-License-Identifier: GPL-2.0

import math
from typing import Any

from lowq_lab import dumbbell, each, goal, long, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(1, rate="10gbit", rtt=run["rtt"], queue=run.queue(run["rtt"]))
    how = "inc" if run["losses"] == "even" else "random"
    drop = f'iifname "h1" ip length > 500 numgen {how} mod {run["one_in"]} 0 counter drop'
    return net.measured(long("h1", "r", duration="201s", control=run.control), count=("50s", "200s"), bin_="100ms",
                        also=[f"nft 'table ip t {{ chain f {{ type filter hook forward priority 0; {drop}; }}; }}'"])


def theory(run: Run) -> float | None:
    """Packets per RTT"""
    n, rtt = run["one_in"], float(run["rtt"][:-2]) / 1000
    reno = math.sqrt(1.5 * n) if run["losses"] == "even" else 1.31 * math.sqrt(n)
    if run.control == "reno":
        return reno
    return max(1.054 * (rtt * n) ** 0.75, reno) if run["losses"] == "even" else None


def metrics(results: Results) -> dict[str, float | None]:
    flow, law = results.flow("h1"), theory(results.run)
    packets = flow["payload_bytes"] / 1448 / 150 * float(results.run["rtt"][:-2]) / 1000
    return {"lost_share": flow["retransmitted"] / flow["packets"], "pkts_per_rtt": packets, "theory_pkts": law,
            "over_theory": packets / law if law else None}


SCENARIO = Scenario(
    title="One flow and losses: its rate beside Reno's and CUBIC's laws",
    question="Do Reno and CUBIC get the rate that their laws say for this loss?",
    topology="""
 h1  one long flow -- (1 packet in N is lost) -- sw ==== 10 Gb/s ==== r
                                                   base RTT rtt""",
    rows=["reno", "cubic"],
    variants=[*each(rtt="20ms", one_in=[500, 8000], losses="even"),
              *each(rtt="100ms", one_in=[2000, 32000], losses="even"),
              *each(rtt="20ms", one_in=[500, 8000], losses="random")],
    params={"losses": "even: each Nth packet; random: each packet with a probability of 1/N",
            "theory": "packets per RTT: Reno sqrt(3 / 2p), with random losses 1.31 / sqrt(p) (Ott, Kemperman, Mathis "
                      "1996); CUBIC (RFC 9438, 5.1) the larger of Reno's and 1.054 (RTT / p)^(3/4) with the RTT in "
                      "seconds, even losses only",
            "counted": "50 s to 200 s"},
    words={"one_in": "1 in {} lost"},
    shown=["pkts_per_rtt", "theory_pkts", "over_theory", "lost_share"],
    goals=[goal("over_theory", row="reno", least=0.9, most=1.1, text="Reno's rate, to its law"),
           goal("over_theory", row="cubic", least=0.9, most=1.1, variant={"losses": "even"},
                text="CUBIC's rate, to its law")],
    conclusion="""A round in which a loss is repaired is not in the laws, and costs more the more often there is a
        loss.""",
    metrics=metrics,
    plan=plan)
