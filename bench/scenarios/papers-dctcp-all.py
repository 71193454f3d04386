# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import each, goal, hosts, incast, Network, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    limit = run["limit"].replace("kB", "000b")
    net = Network()
    net.switch("sw")
    net.host(*hosts(1, 41))
    for host in net.hosts:
        net.link(host, "sw", rate="1gbit", queue=run.queue("100us", k=20, limit=limit))
        net.ends[host, "sw"]["delay"] = "50us"
    net.sysctl("net.ipv4.tcp_rto_min_us", 10000)
    net.stated("h1", "h41", rate="1gbit", rtt="100us")
    return net.plan(*(incast([other for other in net.hosts if other != host], host, fan=40, size="25k", rounds=5,
                             jitter="10us", start="20ms", control=run.control, timeout="5s") for host in net.hosts))


def metrics(results: Results) -> dict[str, float | None]:
    return {"timeouts": results.counter("TCPTimeouts", *hosts(1, 41))}


SCENARIO = Scenario(
    title="DCTCP's paper, figure 20: all-to-all incast of 41 machines, 1 Gb/s, K = 20 packets",
    question="""41 machines ask all others for 25 kB each, at once: DCTCP's paper has no timeout with DCTCP, and one in
        over 55 % of TCP's queries. How many here?""",
    topology=r"""
 h1  --\
 ..     sw   each asks the other 40 for 25 kB, 1 MB in all
 h41 --/     (a queue at each port of sw, 1 Gb/s)
  1 Gb/s each; base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref"],
    reference="dctcp",
    variants=each(limit=["700kB", "100kB"]),
    params={"queries": "5 of each machine, one after the other, on connections that are kept",
            "limit": "of each port: 700 kB, or 100 kB: 4 MB by 41 ports", "K of DCTCP": "20 packets",
            "least RTO": "10 ms, as in the paper", "starts": "within 10 us, at random",
            "RTOs": "of all hosts, in 205 queries; the link alone needs 8.4 ms for a query",
            "paper": """M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: a limit for each port
                instead of 4 MB that ports share""",
            "paper, fig. 20": """timeouts (limit=700kB): 0; timeouts, TCP: in over 55 % of the queries; here CUBIC,
                not New Reno; a limit for each port"""},
    words={"limit": "{} a port"},
    shown=["timeouts", "round_mean_us", "round_p99_us"],
    goals=[goal("timeouts", row="dctcp_ref", most=0, variant={"limit": "700kB"}, text="no timeout (the paper)"),
           goal("round_p99_us", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""All first windows together are more than a small buffer holds: no control that waits for marks
        avoids losses there.""",
    metrics=metrics,
    plan=plan)
