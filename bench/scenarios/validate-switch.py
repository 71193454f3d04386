# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import each, goal, hosts, incast, long, Network, Results, Run, Scenario

RTT, RATE = "100us", "1gbit"


def below_switch(net: Network, port: str, words: str) -> None:
    """A port with a part of the shared buffer, and below it what lowq-tc makes of these words"""
    program, profile, *more = words.split()
    net.prepare("sw", f"sh -c '{program} {profile} {port} --rate {RATE} --shape --quiet --dry-run {' '.join(more)} "
                      f">/tmp/queue && tc qdisc add dev {port} root handle f: switch && "
                      'sed -n "s/ root / parent f:1 /; s/^tc //p" /tmp/queue | tc -batch -\'')


def plan(run: Run) -> dict[str, Any]:
    shared, last = run["buffer"] == "shared", 49 if run["others"] else 40
    limit = "4000000b" if shared else f"{run['buffer'][:-2]}000b"
    queue = run.queue(RTT, k=20, limit=limit)
    net = Network()
    net.path = RATE, RTT
    net.switch("sw")
    net.host(*hosts(1, last), "r")
    for host in net.hosts:
        net.link(host, "sw", back=RTT if host in hosts(1, 46) else "")
    net.line_rate(RATE, *hosts(1, last))
    net.sysctl("net.ipv4.tcp_rto_min_us", 10000)
    pool = f"pool=4000000 alpha={run['alpha']}" if shared else "pool=1000000000 alpha=6400"
    net.prepare("", f"modprobe sch_switch {pool}")
    for port in ("r", *hosts(47, last)):
        below_switch(net, port, queue)
    run.prepare_hosts(net)
    net.stated("h1", "r", rate=RATE, rtt=RTT)
    longs = [long(f"h{number}", f"h{to}", duration="700ms", start=run.start(number, "100us"), control=run.control)
             for to in range(47, last + 1) for number in (2 * to - 53, 2 * to - 52)]
    return net.plan(*longs, incast(hosts(1, 40), "r", fan=40, size="25k", rounds=60, jitter="100us", timeout="5s",
                                   start="100ms" if longs else None, control=run.control),
                    observe=[("sw", "r")], count=("100ms", "800ms") if longs else ("0ms", "700ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    rounds = results.round_times()
    return {"late_share": sum(time > 18380 for time in rounds) / len(rounds),
            "timeouts": results.counter("TCPTimeouts", *hosts(1, 40))}


SCENARIO = Scenario(
    title="A buffer that a switch's ports share: the incast of DCTCP's paper, 40 servers and 1 MB, 1 Gb/s",
    question="""The lab's ports have a buffer each. What changes where they share one, with a threshold that follows
        what is free?""",
    topology="""
 h1..h40  25 kB each     -- sw ==== 1 Gb/s ==== r  asks
 h41..h46 a long flow each  sw ==== 1 Gb/s ==== h47, h48, h49
  1 Gb/s each            (the queue, behind the shared buffer)
                          base RTT 100 us""",
    rows=["cubic", "dctcp", "dctcp_ref", "ldcp"],
    reference="dctcp",
    variants=[*each(buffer=["100kB", "700kB"], others=0), *each(buffer="shared", alpha=100, others=0),
              *each(buffer="shared", alpha=25, others=[0, 3])],
    params={"buffer": "100 kB, 700 kB: of each port alone; shared: 4 MB for all ports, as in the paper",
            "alpha": "per cent: a port may hold so much of what is free in the shared buffer; 100: 2 MB for one"
                     " port alone, 25: 800 kB, and 500 kB for each of four",
            "others": "other ports, each with two long flows of the same control, which start 0.1 s before",
            "queries": "60, one after the other, on connections that are kept; each server is asked at random "
                       "within an RTT, by the seed",
            "K of dctcp": "20 packets",
            "least RTO": "10 ms, as in the paper",
            "all at full rate": "8.38 ms, with headers",
            "late": "queries that took 10 ms more than that: a timeout",
            "paper": "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Here: 60 queries, not 1000",
            "paper, fig. 19 (b)": """queries with a timeout, 40 servers, dynamic buffer (buffer=shared alpha=25
                others=0): none with DCTCP"""},
    words={"buffer": {"shared": "4 MB shared", "100kB": "100 kB a port", "700kB": "700 kB a port"},
           "alpha": "alpha {} %",
           "others": {0: "other ports idle", 3: "three busy ports"}},
    shown=["late_share", "round_mean_us", "round_p99_us", "timeouts", "drops"],
    goals=[goal("late_share", row="dctcp_ref", most=0, variant={"buffer": "shared"},
                text="shared buffer: no query with a timeout"),
           goal("late_share", row="ldcp", most=0, variant={"buffer": "shared"},
                text="shared buffer: no query with a timeout"),
           goal("round_p99_us", row="dctcp_ref", most=1, beside=["dctcp"])],
    conclusion="""DCTCP's long flows hold K packets at busy ports and leave the pool to the query; CUBIC's fill what
        they may have.

        LDCP loses packets of its first RTT above K_max, as intended.""",
    modules=["selftests/lib/sch_switch"],
    metrics=metrics,
    plan=plan)
