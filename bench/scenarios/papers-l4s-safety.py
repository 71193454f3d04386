# SPDX-License-Identifier: GPL-2.0

import re
from typing import Callable
from typing import Any

from lowq_lab import dumbbell, each, goal, long, Network, requests, Results, Run, Scenario, udp


def words(run: Run) -> str:
    """Of the queue"""
    aqm = {"step": "fq_codel", "variable": "fq_codel", "video": "dualpi2", "replay": "dualpi2"}.get(run["test"]) or run["aqm"]
    step = f" --step {run['step']}" if run.get("step") else ""
    return {"fq_codel": "fq_codel limit 10240", "one": "fq_codel limit 10240 flows 1", "pie": "pie limit 10000 ecn",
            "dualpi2": f"lowq-tc prague{step}"}[aqm]


def path(run: Run, hosts_: int, rate: str, rtt: str) -> Network:
    """The network, with the queue at sw, whose average, if it has one, knows nothing of what has measured the path"""
    net = dumbbell(hosts_, rate=rate, rtt=rtt, queue=words(run), buffer=33554432)
    net.sysctl("net.ipv4.tcp_ecn", 3)
    if run.get("ecn") == 0:
        net.sysctl("net.ipv4.tcp_ecn", 0, "h2")
    net.stated("h1", "r", rate=rate, rtt=rtt)
    net.afresh("sw", "r")
    return net


def rate_at(seconds: int, mbit: str) -> dict[str, Any]:
    return {"at": f"{seconds}s", "node": "sw", "dev": "r", "rate": mbit}


def step(run: Run) -> dict[str, Any]:
    return path(run, 1, "50mbit", run["rtt"]).plan(
        *run.longs(1, "r", duration="60s", within="20ms"), observe=[("sw", "r")], count=("30s", "60s"), bin_="10ms",
        events=[rate_at(30, run["to"])])


def variable(run: Run) -> dict[str, Any]:
    return path(run, 1, "100mbit", run["rtt"]).plan(
        *run.longs(1, "r", duration="60s", within="20ms"), observe=[("sw", "r")], count=("10s", "60s"), bin_="10ms",
        events=[rate_at(at, rate) for at, rate in ((25, "50mbit"), (30, "10mbit"), (35, "90mbit"), (50, "5mbit"))])


def shared(run: Run) -> dict[str, Any]:
    return path(run, 2, "50mbit", "20ms").plan(
        *run.two(run.control, run["beside"], duration="60s", receiver=run.control), observe=[("sw", "r")],
        count=("20s", "60s"), bin_="10ms")


def bursts(run: Run) -> dict[str, Any]:
    net = path(run, 1, "50mbit", "20ms")
    for host in ("h1", "r"):
        net.prepare(host, "tc qdisc replace dev sw root netem delay 200us slot 800us 5ms packets 16 limit 10000")
    return net.plan(*run.longs(1, "r", duration="40s", within="20ms"), observe=[("sw", "r")], count=("10s", "40s"),
                    bin_="10ms")


def two_way(run: Run) -> dict[str, Any]:
    down, up = ("100mbit", "5mbit") if run["share"] == 20 else ("10mbit", "1mbit")
    net = path(run, 1, down, "20ms")
    net.queue("r", "sw", words(run), rate=up)
    return net.plan(*run.longs(1, "r", duration="40s", within="20ms", flows=4),
                    long("r", "h1", duration="40s", start=run.start(2, "20ms"), flows=4, control=run.control, label="back"),
                    observe=[("sw", "r")], count=("10s", "40s"), bin_="10ms")


def video(run: Run) -> dict[str, Any]:
    traffic = run.longs(1, "r", duration="120s", within="20ms")
    if run["frames"] != "none":
        traffic.append(udp("h2", "r", every="33333333ns", burst=6, size=1250, start=f"{run.seed * 104729 % 33333}us",
                           duration="119s", ecn="not-ect" if run["frames"] == "classic" else "ect1", label="video"))
    return path(run, 2, "20mbit", "160ms").plan(*traffic, observe=[("sw", "r")], count=("60s", "120s"), bin_="10ms")


def esp(net: Network, host: str, ends: str, way: str, spi: str) -> None:
    """One way of the tunnel, as that host sees it"""
    net.prepare(host, f"ip xfrm state add {ends} proto esp spi {spi} mode tunnel aead 'rfc4106(gcm(aes))' "
                      "0x0102030405060708090a0b0c0d0e0f1011121314 128")
    net.prepare(host, f"ip xfrm policy add {ends} proto tcp dir {way} tmpl {ends} proto esp mode tunnel")


def replay(run: Run) -> dict[str, Any]:
    net = path(run, 1, "20mbit", "20ms")
    there, back = (f"src {net.address(one)} dst {net.address(other)}" for one, other in (("h1", "r"), ("r", "h1")))
    esp(net, "h1", there, "out", "1")
    esp(net, "r", there, "in", f"1 replay-window {run['window']}")
    esp(net, "r", back, "out", "2")
    esp(net, "h1", back, "in", "2")
    return net.plan(*(long("h1", "r", duration="60s", start=run.start(i, "20ms"), control={"from": control, "to": run.control})
                      for i, control in enumerate((run.control, "cubic"), 1)))


def short(run: Run) -> dict[str, Any]:
    return path(run, 2, "50mbit", "20ms").plan(
        *run.longs(1, "r", duration="50s", within="20ms"),
        requests("h2", "r", size="100k", rate=4, start="10s", duration="39s", control="cubic", timeout="20s"),
        observe=[("sw", "r")], count=("10s", "50s"), bin_="10ms")


def plan(run: Run) -> dict[str, Any]:
    tests: dict[str, Callable[[Run], dict[str, Any]]] = {
        "step": step, "variable": variable, "shared": shared, "bursts": bursts, "two-way": two_way, "video": video,
        "replay": replay, "short": short}
    return tests[run["test"]](run)


def metrics(results: Results) -> dict[str, float | None]:
    run, made = results.run, dict[str, float | None]()
    test = run["test"]
    if test in ("step", "variable"):  # the seconds, in steps of 0.1 s, in which a packet waited longer than 50 ms
        made["over_s"] = len({int(row["t_s"] * 10 + 1e-6) for row in results.series() if row.get("delay_us_max", 0) > 5e4}) / 10
    if test == "step":
        made["utilisation"] = results.share(30e6 * float(run["to"][:-4]))
    if test == "variable":
        made["utilisation"] = results.share((15 * 100 + 5 * 50 + 5 * 10 + 15 * 90 + 10 * 5) * 1e6)
    if test == "shared":
        made |= results.pair(40)
    if test == "two-way":
        made["back_mbps"] = sum(results.goodputs(label="back")) / 1e6
    if test in ("video", "short"):
        made["first_mbps"] = results.mbps("h1", 60 if test == "video" else 40)
    if test == "replay":
        made["first_mbps"], made["second_mbps"] = (rate / 1e6 for rate in results.goodputs())
        said = re.findall(r"replay-window \d+ replay (\d+)", results.ask("r", "ip -s xfrm state"))
        made["replayed"] = sum(map(int, said))
    return made


SCENARIO = Scenario(
    title="heistp/l4s-tests: rate steps and tunnels in fq_codel, bursts, two-way traffic, video, anti-replay windows",
    question="""heistp/l4s-tests finds the reference Prague unsafe in queues that mark as RFC 3168 says, and L4S
        wasteful with bursts. What does this Prague do there?""",
    topology=r"""
 h1  the row's control  --\
                            sw ==== rate ==== r
 h2  beside it          --/  (the queue)
                              base RTT rtt, all of it on the way back""",
    rows=["prague_aqm", "cubic_aqm"],
    reference="cubic_aqm",
    variants=[*each(test="step", rtt="80ms", to=["25mbit", "5mbit", "1mbit"]),
              *each(test="step", rtt="20ms", to="5mbit"),
              *each(test="variable", rtt="80ms"),
              *each(test="shared", aqm=["one", "pie"], beside=["cubic", "reno"], ecn=0),
              *each(test="shared", aqm="one", beside="reno", ecn=3),
              *each(test="bursts", aqm=["fq_codel", "dualpi2"]),
              *each(test="bursts", aqm="dualpi2", step="10ms"),
              *each(test="two-way", aqm=["fq_codel", "dualpi2"], share=[10, 20]),
              *each(test="video", frames=["none", "classic", "l4s"]),
              *each(test="replay", window=[0, 32, 64, 256]),
              *each(test="short", aqm=["one", "dualpi2"])],
    params={"step": "fq_codel, 50 Mb/s, from 30 s on to; counted from 30 s to 60 s",
            "variable": "fq_codel, 100 Mb/s, from 25 s on 50, from 30 s 10, from 35 s 90, from 50 s 5 Mb/s; counted "
                        "from 10 s to 60 s",
            "shared": "50 Mb/s, 20 ms; one: fq_codel with one flow, as for all that a VPN carries (in one kernel a "
                      "real tunnel keeps the inner hash); pie: with ecn; ecn: of the other, 0 none, 3 Accurate ECN",
            "bursts": "50 Mb/s, 20 ms; data and ACKs arrive 16 at a time, 0.8 to 5 ms apart; step: of the L4S queue",
            "two-way": "4 flows each way, 20 ms; 100 and 5, or 20 and 1 Mb/s: share 20; 10 and 1 Mb/s: share 10",
            "video": "dualpi2, 20 Mb/s, 160 ms; 30 times a second 6 packets of UDP, 1.8 Mb/s in all, with ECT(1) "
                     "(l4s) or without; counted from 60 s to 120 s",
            "replay": "dualpi2, 20 Mb/s, 20 ms; both flows in one ESP tunnel with this anti-replay window, 0: none; "
                      "whole 60 s",
            "short": "50 Mb/s, 20 ms; 4 CUBIC answers of 100 kB a second, Poisson, beside a long flow",
            "hosts": "Accurate ECN on all, except with ecn=0; no offloads",
            "paper": """P. Heist, J. Morton, github.com/heistp/l4s-tests (2020 and 2021), with the reference Prague
                of that time. Here: one kernel; CUBIC has Accurate ECN; counted as above, not in the last minute of
                three""",
            "paper, fig. 10": "CUBIC: waits above 50 ms (test=step rtt=80ms to=25mbit): a brief spike",
            "paper, fig. 11": "Prague: waits above 50 ms (test=step rtt=80ms to=25mbit): some 100 ms for around 5 s",
            "paper, fig. 13": """Prague: longest wait (test=step rtt=80ms to=1mbit): 4266000 µs (RTT 4346 ms, over 30
                s)""",
            "paper, table of scenario 6": """Prague : CUBIC (test=shared aqm=one beside=cubic): 25.0; Prague : CUBIC
                (test=shared aqm=pie beside=cubic): 23.0; Prague : Reno (test=shared aqm=one beside=reno ecn=0): 40.0;
                Prague : Reno (test=shared aqm=pie beside=reno): 48.0; Prague : Reno (test=shared aqm=one
                ecn=3): 42.0""",
            "paper, fig. 14": "CUBIC, bursts (test=bursts aqm=fq_codel): the link is used",
            "paper, fig. 15": "Prague, bursts (test=bursts aqm=dualpi2): about half of the link is lost",
            "paper, fig. 6": """goodput alone (test=video frames=none): 18.3 Mb/s; goodput beside video in the L4S
                queue (test=video frames=l4s): 2.29 Mb/s; here frames of equal size, not Skype; goodput beside video
                in the Classic queue (test=video frames=classic): 12.6 Mb/s; here frames of equal size, not Skype""",
            "paper, fig. 16": """CUBIC's rate, replay window 32 (test=replay window=32): much lower than without
                anti-replay"""},
    words={"test": {"step": "the rate drops from 50 Mb/s", "variable": "variable rate", "shared": "shared queue",
                    "bursts": "bursts", "two-way": "two-way", "video": "video", "replay": "ESP",
                    "short": "short CUBIC flows"},
           "aqm": {"one": "one flow of fq_codel", "pie": "PIE", "fq_codel": "fq_codel", "dualpi2": "DualPI2"},
           "beside": {"cubic": "beside CUBIC", "reno": "beside Reno"}, "ecn": {0: "without ECN", 3: "with ECN"},
           "frames": {"none": "no frames", "classic": "Not-ECT frames", "l4s": "ECT(1) frames"},
           "window": {0: "no replay window", 32: "replay window 32", 64: "replay window 64", 256: "replay window 256"},
           "share": {10: "10 and 1 Mb/s", 20: "100 and 5 Mb/s"}, "step": "step {}", "to": "to {}"},
    shown=["over_s", "ratio", "rpc_p50_us", "rpc_p99_us", "first_mbps", "second_mbps", "replayed", "utilisation",
           "back_mbps", "delay_p99_us", "delay_max_us"],
    goals=[goal("over_s", row="prague_aqm", most=1, beside=["cubic_aqm"],
                text="waits above 50 ms after a drop of the rate"),
           goal("ratio", row="prague_aqm", most=2, variant={"test": "shared"}, text="one queue: Prague to the other"),
           goal("utilisation", row="prague_aqm", least=0.9, beside=["cubic_aqm"])],
    conclusion="""Behind fq_codel Prague takes a mark that asks for half of the window for one of many.

        Bursts of many packets are marked at the step of a millisecond; lowq-tc prague --varying sets a longer one.

        A larger anti-replay window is the remedy where DualPI2 reorders a tunnel's packets.""",
    metrics=metrics,
    plan=plan)
