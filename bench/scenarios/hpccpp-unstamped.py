# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario, TSO


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, limit = run["rate"], run["rtt"], run["limit"]
    fast = f"{int(rate[:-4]) * 10}{rate[-4:]}"
    words = {"policer": "", "fifo": "pfifo limit 50", "codel": "codel limit 1000 ecn", "pie": "pie limit 1000 ecn",
             "red": f"red limit 3000000 min 30280 max 30281 avpkt 1514 burst 20 probability 1 bandwidth {rate} ecn"}[limit]
    slow = ("" if limit == "policer" else rate, words)
    stamps = (fast, f"lowq-tc hpccpp --switch-id 1 --rtt {rtt} --limit 20000000b")
    # in and sw: the first one is the limit, or stamps, the second one what is left
    first, second = (slow, stamps) if run["place"] == "before" else (stamps, slow)
    net = dumbbell(2, rate=second[0], rtt=rtt, queue=second[1], via=first, line=fast if run.offloads else "",
                   offloads=run.offloads)
    run.telemetry(net, base_rtt_ns=0)
    net.sysctl("net.ipv4.tcp_ecn", 1)
    if limit != "policer":
        net.stated("h1", "r", rate=rate, rtt=rtt)
    net.merging("r")
    node, to = at = ("in", "sw") if run["place"] == "before" else ("sw", "r")
    if limit == "policer":
        net.prepare(node, f"tc qdisc add dev {to} clsact")
        net.prepare(node, f"tc filter add dev {to} egress pref 1 matchall action police rate {rate} burst 60k "
                          "conform-exceed drop/ok")
    if limit == "red":  # forgets the average that the path's measurement has left, which would drop SYNs
        net.prepare(node, f"tc qdisc change dev {to} {net.place} {words}")
    net.prepare("h1", f"nstat -asz {COUNTERS} >$OUT/before")
    n = run.get("flows", 1)
    traffic = (run.two(run.control, run["beside"], duration="5s", receiver="dctcp", flows=n) if run.get("beside") else
               run.longs(1, "r", duration="5s", flows=n))
    return net.plan(*traffic, observe=[at], count=("1s", "5s"), bin_="10ms")


COUNTERS = "TcpRetransSegs TcpOutSegs"


def counted(text: str) -> list[float]:
    """Their values"""
    values = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith("Tcp")}
    return [values[name] for name in COUNTERS.split()]


def metrics(results: Results) -> dict[str, float | None]:
    run, queue = results.run, results.queues[0]
    bps = float(run["rate"][:-4]) * (1e9 if run["rate"].endswith("gbit") else 1e6)
    before = counted((results.directory / "before").read_text(encoding="utf-8"))
    resent, sent = (now - old for now, old in zip(counted(results.ask("h1", f"nstat -asz {COUNTERS}")), before))
    made = {"retransmitted_permille": 1000 * resent / sent, "utilisation": queue["throughput_bps"] / bps,
            "goodput_mbps": sum(results.goodputs(client="h1")) / 1e6}
    if run.get("beside"):
        one, other = (sum(flow["payload_bytes"] for flow in results.longs(host)) for host in ("h1", "h2"))
        made["ratio"] = one / other
    return made


SCENARIO = Scenario(
    title="HPCC++: a bottleneck that does not stamp",
    question="""Where the bottleneck is a policer, a tail-drop queue or a marking queue that does not stamp: how much is
        lost, and how is the rate shared?""",
    topology=r"""
 h1  a long flow, or several --\
                                sw: first ==== second ==== r
 h2  beside as many           --/
     place=before:   the limit   stamps at 10 times its rate
     place=behind:   stamps      the limit                       base RTT rtt""",
    rows=["dctcp", "cubic", "hpccpp"],
    reference="dctcp",
    variants=[*each(limit=["policer", "fifo"], rate="100mbit", rtt="5ms", place=["before", "behind"],
                    beside=[None, "cubic"]),
              *each(limit="red", rate="1gbit", rtt="1ms", place=["before", "behind"], beside=[None, "dctcp"]),
              # AQMs for the Internet, which mark now and then
              *each(limit=["codel", "pie"], rate="100mbit", rtt="5ms", place=["before", "behind"],
                    beside=[None, "cubic", "dctcp"]),
              # other rates, several flows, offloads
              *each(limit="fifo", rate="10mbit", rtt="20ms", place="before", beside="cubic"),
              *each(limit="policer", rate="1gbit", rtt="1ms", place="before", beside="cubic"),
              *each(limit="fifo", rate="10gbit", rtt="200us", place="before", beside="cubic"),
              *each(limit="policer", rate="10gbit", rtt="1ms", place="before", beside="cubic"),
              *each(limit=["policer", "fifo"], rate="100mbit", rtt="5ms", place="before", flows=4,
                    beside=[None, "cubic"]),
              *each(limit="red", rate="1gbit", rtt="1ms", place="before", flows=4, beside=[None, "dctcp"]),
              *each(limit=["fifo", "policer"], rate="100mbit", rtt="5ms", place="behind", beside=[None, "cubic"], tso=1),
              *each(limit="red", rate="1gbit", rtt="1ms", place="behind", beside=[None, "dctcp"], tso=1),
              *each(limit="red", rate="1gbit", rtt="1ms", place="behind", flows=4, beside="dctcp", tso=1),
              *each(limit=["codel", "pie"], rate="100mbit", rtt="5ms", place="behind", beside="cubic", tso=1)],
    params={"policer": "burst 60 kB, drops", "fifo": "50 packets", "red": "marks from 20 packets on, drops beyond 3 MB",
            "codel, pie": "with ECN, tc's defaults (targets 5 and 15 ms), 1000 packets",
            "node": "stamps 10 times the rate of the limit", "flows": "of h1, and as many of h2; one if not stated",
            "tso": TSO.format("the node's rate"), "retransmitted_permille": "of the segments that h1 sent",
            "ratio": "rate of h1 by that of h2"},
    shown=["goodput_mbps", "retransmitted_permille", "ratio", "delay_p99_us", "drops"],
    goals=[goal("retransmitted_permille", row="hpccpp", most=2, median=1.1, beside=["dctcp"]),
           goal("ratio", row="hpccpp", least=0.5, most=2, variant={"beside": "cubic"}),
           goal("ratio", row="hpccpp", most=2, variant={"beside": "dctcp"})],
    conclusion="""Losses that the records do not explain say that the bottleneck does not stamp: HPCC++ then runs as
        Reno.

        Where that queue marks it runs as DCTCP, and takes rare marks as losses.

        Beside DCTCP in CoDel or PIE it is left little, as CUBIC is: DCTCP hardly reduces there.""",
    metrics=metrics,
    plan=plan)
