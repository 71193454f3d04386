# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, hosts, long, requests, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    servers, others = run["servers"], run.get("long", 0)
    n, rtt = servers if servers <= 60 else servers // 4, run.get("rtt", "12us")
    net = dumbbell(n + others, rate=run["rate"], rtt=rtt, line=run["rate"], queue=run.queue(rtt, "--limit", "1500000b"))
    run.prepare_hosts(net)
    run.telemetry(net)
    return net.measured(*(long(f"h{n + i}", "r", duration="40ms", control=run.control) for i in range(1, others + 1)),
                        requests(hosts(1, n), "r", size=run["size"], closed=servers, flows=servers, control=run.control,
                                 start="10ms" if others else None, timeout="5s"),
                        count=("0ms", "50ms"), bin_=rtt)


def metrics(results: Results) -> dict[str, float | None]:
    n = results.run["servers"]
    return {"timeouts": results.counter("TCPTimeouts", *hosts(1, n if n <= 60 else n // 4))}


SCENARIO = Scenario(
    title="HPCC++: incast of new connections, 48 to 240 servers, 25 and 100 Gb/s",
    question="Many servers answer on connections that were just made, so that their first windows overflow the queue: "
             "when are the answers complete, and does any wait for a timeout?",
    topology="""
 h1..hN  one answer each, at once  -- sw ==== 25 or 100 Gb/s ==== r  asks
  at the bottleneck's rate          (1.5 MB)
                                     base RTT 12 us, or rtt""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=[*each(rate=["25gbit", "100gbit"], servers=[48, 240], size=["10k", "80k"]),
              *each(rate="40gbit", servers=200, size="10k", rtt="60us", long=3)],
    params={"servers": "each on a host of its own, or more than 60 of them four to a host", "size": "of each answer", "first windows": "10 packets: 727 kB of 48 servers, 3.6 MB of 240",
            "limit": "1.5 MB", "long": "so many long flows send to r, too, from hosts of their own"},
    shown=["rpc_p50_us", "rpc_p99_us", "timeouts", "drops", "retrans"],
    goals=[goal("rpc_p99_us", row="hpccpp", most=1, beside=["dctcp", "dctcp_ref"]),
           goal("timeouts", row="hpccpp", most=0)],
    conclusion="""New connections start with TCP's initial window, whatever the control.

        Together these overflow the queue, so that most flows lose a part before any feedback.

        At 40 Gb/s many of the smallest answers wait for the least RTO with HPCC++ and DCTCP, though their senders know
        of no loss. Of most the last packet alone is lost, and Linux's tail loss probe of a single packet waits for
        rto_min. Of a few all packets are lost; the probe's SACK comes sooner than the SYN's did, and Linux does not
        trust that of a retransmission.""",
    metrics=metrics,
    plan=plan)
