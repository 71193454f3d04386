# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, long, Results, Run, Scenario, TSO

PATHS = [*each(path="lossy", loss=[0.01, 0.1]), *each(path="longer", flows=[1, 2]), *each(path="slower", flows=2),
         *each(path="shared")]


def plan(run: Run) -> dict[str, Any]:
    path = run["path"]
    begin, end = {"lossy": (100, 1100), "longer": (100, 300), "slower": (90, 300), "shared": (100, 500)}[path]
    net = dumbbell(2, rate="10gbit", rtt="100us", line="10gbit", offloads=run.offloads, queue=run.queue("100us"))
    if path == "lossy" and run.offloads:  # netem at a host that sends 64 kB at once would lose all of it
        net.prepare("sw", "nft 'table ip t { chain f { type filter hook forward priority 0; "
                          f'iifname "h1" numgen random mod 10000 < {run["loss"] * 100:.0f} drop; }}; }}\'')
    elif path == "lossy":
        net.queue("h1", "sw", f"netem loss {run['loss']}% limit 100000")
    run.telemetry(net)
    last = f"{end + 10}ms"
    if path == "shared":
        traffic = [long(host, "r", flows=2, duration=last, start=run.start(i, "1ms"), control={"from": control, "to": run.control})
                   for i, (host, control) in enumerate((("h1", run.control), ("h2", "dctcp")), 1)]
    else:
        traffic = run.longs(run.get("flows", 1), "r", duration=last)
    changes = {"longer": [{"at": "100ms", "node": "sw", "dev": host, "delay": "300us"} for host in ("h1", "h2")],
               "slower": [{"at": at, "node": "sw", "dev": "r", "rate": rate}
                          for at, rate in (("100ms", "5gbit"), ("200ms", "10gbit"))]}
    return net.measured(*traffic, count=(f"{begin}ms", f"{end}ms"), bin_="100us", events=changes.get(path, ()))


def metrics(results: Results) -> dict[str, float | None]:
    made: dict[str, float | None] = {"timeouts": results.counter("TCPTimeouts", "h1", "h2")}
    if results.run["path"] == "slower":
        made["utilisation"] = results.share(1600000000)
    if results.run["path"] == "shared":
        one, other = (sum(flow["goodput_bps"] or 0 for flow in results.longs(host)) for host in ("h1", "h2"))
        made["ratio"] = one / other
    return made


SCENARIO = Scenario(
    title="Data centre: paths that lose packets, get longer or slower, and another control in the queue",
    question="What is left of the link when the path is not the one that the thresholds were computed for?",
    topology=r"""
 h1  flows             --\
                          sw ==== 10 Gb/s ==== r
 h2  flows, or DCTCP's /  (the queue)
  10 Gb/s each            base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=PATHS + each(PATHS, tso=1),
    params={"tso": TSO.format("10 Gb/s"),
            "lossy": "one flow; loss percent of its packets are lost before the queue, at random; counted from 0.1 s "
                     "to 1.1 s",
            "longer": "the base RTT is 300 us from 0.1 s to 0.3 s, which is what is counted",
            "slower": "the link has 5 Gb/s from 0.1 s to 0.2 s; counted from 0.09 s to 0.3 s",
            "shared": "two flows of the row, and two of DCTCP in the same queue; counted from 0.1 s to 0.5 s; ratio: "
                      "their rates"},
    words={"path": {"longer": "longer path", "lossy": "random loss", "shared": "shared queue",
                    "slower": "slower link"}},
    shown=["utilisation", "ratio", "jain", "delay_p99_us", "delay_max_us", "drops", "timeouts"],
    goals=[goal("utilisation", row="ldcp", least=0.9, beside=["dctcp", "dctcp_ref"]),
           goal("utilisation", row="hpccpp", least=0.94, beside=["dctcp", "dctcp_ref"]),
           goal("jain", row="hpccpp", least=0.95, beside=["dctcp", "dctcp_ref"],
                variant={"path": "longer", "flows": 2})],
    conclusion="""On a path that gets longer LDCP's threshold is too low to fill it; HPCC++ measures its new T.

        LDCP and DCTCP share a queue evenly with LDCP's two profiles.

        HPCC++ leaves a shared queue to DCTCP: beside other TCP it needs a queue of its own (lowq-tc segregate).""",
    metrics=metrics,
    plan=plan)
