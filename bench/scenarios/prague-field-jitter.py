# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, long, Network, program, Results, Run, Scenario


def vary(net: Network, run: Run) -> None:
    """The way of ACKs from r to h1"""
    path, ms = run["path"], int(run["rtt"][:-2])
    if path.startswith("jitter"):
        most = min(int(path[6:]), ms)
        net.ends["sw", "h1"] |= {"delay": f"{ms - most}ms", "jitter": f"{2 * most}ms"}
    elif path == "slots":
        net.prepare("sw", "tc qdisc replace dev h1 root netem slot 4ms 4ms limit 1000000")
    elif path == "thinned":
        net.prepare("r", f"tc qdisc replace dev sw root cake bandwidth {int(run['rate'][:-4]) * 10}kbit ack-filter "
                         "besteffort")


def plan(run: Run) -> dict[str, Any]:
    rate, rtt, path = run["rate"], run["rtt"], run["path"]
    kbps = int(rate[:-4]) * 100
    upload = (f"{kbps}kbit", f"bfifo limit {kbps * 100 // 8}") if path == "upload" else None
    net = dumbbell(2, rate=rate, rtt=rtt, queue=run.queue(rtt), buffer=33554432, back=upload)
    net.stated("h1", "r", rate=rate, rtt=rtt)
    vary(net, run)
    if run.get("beside"):
        traffic = run.two("prague", run["beside"], duration="40s", receiver="prague")
    else:
        traffic = run.longs(1, "r", duration="40s")
    if path == "upload":
        traffic.append(long("r", "h1", duration="40s", control="cubic", label="upload"))
    if path == "there":
        traffic.append(program("h1", "tc qdisc add dev sw root netem delay 10ms limit 1000000", start="15s"))
    longer = [{"at": "15s", "node": "sw", "dev": "h1", "delay": f"{int(rtt[:-2]) + 10}ms"}] if path == "back" else []
    return net.plan(*traffic, observe=[("sw", "r")], count=("5s", "40s"), bin_="10ms", events=longer)


def metrics(results: Results) -> dict[str, float | None]:
    return {"ratio": results.ratio(["h1"], ["h2"])} if results.run.get("beside") else {}


SCENARIO = Scenario(
    title="Prague over DualPI2, on paths whose RTT varies and whose ACKs are thinned",
    question="How much of the link does Prague use, and how long is its queue, where the RTT varies for other reasons?",
    topology=r"""
 h1  prague --\
               sw ==== rate ==== r
 h2  (cubic)--/  (dualpi2, defaults)
                  base RTT rtt, on the way of ACKs: path""",
    rows=["prague"],
    variants=[*each([*each(rate=["1mbit", "10mbit"], rtt="20ms"), *each(rate="40mbit", rtt=["5ms", "20ms", "100ms"]),
                     *each(rate="100mbit", rtt="20ms")],
                    path=["still", "jitter2", "jitter5", "jitter10", "slots", "thinned"]),
              *(one for path in ("still", "jitter5", "slots", "thinned")
                for one in (*each(rate="1000mbit", rtt="20ms", path=path),
                            *each(rate="40mbit", rtt="20ms", path=path, beside="cubic"))),
              *each(rate="40mbit", rtt="20ms", path="upload", beside=[None, "cubic"]),
              *each(rate="40mbit", rtt="20ms", path=["there", "back"])],
    params={"jitterN": "ACKs are delayed by up to N ms more or less, each at random",
            "slots": "ACKs arrive in bursts, one every 4 ms",
            "thinned": "ACKs have 1/100 of the rate, with cake and its ACK filter",
            "upload": "ACKs have 1/10 of the rate, in a drop-tail queue of 100 ms in which r uploads with CUBIC",
            "there, back": "from 15 s on that way is 10 ms longer",
            "counted": "from 5 s to 40 s"},
    words={"beside": "beside {}",
           "path": {"jitter2": "jitter 2 ms", "jitter5": "jitter 5 ms", "jitter10": "jitter 10 ms",
                    "slots": "bursts of ACKs", "still": "still path", "thinned": "ACKs thinned", "upload": "upload",
                    "there": "longer there", "back": "longer back"}},
    shown=["utilisation", "delay_p99_us", "ratio"],
    goals=[goal("utilisation", row="prague", least=0.9, variant={"path": "still", "beside": None}, text="still path"),
           goal("utilisation", row="prague", least=0.8, variant={"path": "jitter5", "beside": None},
                text="5 ms of jitter")],
    conclusion="""Where the RTT varies by more than the step, each mark counts, and a part of the link is unused.

        cake marks ACKs with Accurate ECN instead of thinning them, because they are ECT.""",
    metrics=metrics,
    plan=plan)
