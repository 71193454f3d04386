# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, each, goal, hosts, jain, long, Network, program, Results, Run, Scenario, TSO

RATE, RTT, LINE = "10gbit", "100us", "25gbit"


def window(run: Run) -> tuple[int, int]:
    """ms from which and until which is counted"""
    if run["limit"] == "stopped" and run["unit"] != 128:
        return 50, 260
    return {"window": (30, 60), "mtu": (50, 130), "paced": (50, 110)}.get(run["limit"], (50, 70))


def network(run: Run, senders: int, large: list[str]) -> Network:
    """large: hosts whose paths to r have an MTU of 9000 bytes from the start"""
    net = Network(offloads=run.offloads)
    net.path = RATE, RTT
    net.switch("sw")
    net.host(*hosts(1, senders), "r")
    for host in net.hosts:
        words: dict[str, Any] = {"mtu": 9000} if host in large else {}
        net.link(*(("sw", "r") if host == "r" else (host, "sw")), back="" if host == "r" else RTT, **words)
    net.queue("sw", "r", run.queue(RTT), rate=RATE)
    net.line_rate(LINE, *hosts(1, senders))
    return net


def enlarge(net: Network, large: list[str]) -> None:
    """These hosts' paths have an MTU of 9000 bytes from now on"""
    for host in large:
        net.prepare(host, "ip link set sw mtu 9000")
        net.prepare("sw", f"ip link set {host} mtu 9000")
        if net.offloads and host != "r":
            net.prepare(host, f"tc qdisc change dev sw root tbf rate {LINE} burst 9100 limit 64mb")


def streams(run: Run, senders: int, address: str) -> dict[str, Any]:
    """Connections that a program or its buffers limit, by lab/runner/stream"""
    begin, end = window(run)
    options = {"window": f"--window {run.get('bytes')}", "opened": f"--window {run.get('bytes')} --opens {begin}ms",
               "stopped": f"--stops 30ms --reads {begin}ms",
               "paced": f"--port 5202 --write 14480 --every 40us --count-from {begin}ms",
               "gone": f"--first {run.get('bytes')} --write 14480 --every 40us --until {begin}ms"}[run["limit"]]
    return program("r", f'"$RUNNER/stream" --cc {run.control} --begin 1ms --spread 1ms --seed {run.seed} {options} '
                        f"--duration {end + 10}ms {','.join(hosts(1, senders))} r {address}", label="streams")


def plan(run: Run) -> dict[str, Any]:
    begin, end = window(run)
    large, early = ["h3", "h4", "r"] if run["limit"] == "mtu" else [], run.get("thresholds") == 9000
    senders = {"mtu": 4, "paced": 2}.get(run["limit"], run.get("flows", 1))
    net = network(run, senders, large if early else [])
    if run.get("unit", 8192) != 8192:  # the kernel makes the unit of the window so large that its field can hold this
        net.prepare("", f"sysctl -qw net.core.rmem_max={run['unit'] * 32768}")
    run.telemetry(net)
    if early:
        enlarge(net, large)
    net.stated("h1", "r", rate=RATE, rtt=RTT, burst=8 if early else None)
    if not early:
        enlarge(net, large)
    net.merging("r")
    traffic = (run.longs(4, "r", duration=f"{end + 10}ms") if large else
               [streams(run, 1 if run["limit"] == "paced" else senders, net.address("r"))])
    if run["limit"] == "paced":
        traffic += [long("h2", "r", start="1ms", duration=f"{end + 10}ms", control=run.control)]
    late = 0 if large else 1  # ms, when streams begin
    return net.plan(*traffic, observe=[("sw", "r")], count=(f"{begin + late}ms", f"{end + late}ms"), bin_="100us")


def metrics(results: Results) -> dict[str, float | None]:
    run, seen = results.run, results.queues[0]["flows"]
    if run["limit"] == "mtu":
        return {"ratio": results.ratio(["h3", "h4"], ["h1", "h2"], "goodput_bps")}
    if run["limit"] == "window":
        rates = [flow.get("goodput_bps") or 0 for flow in seen if flow["flow"].endswith(":5201")]
        return {"jain": jain(rates) if len(rates) > 1 else None}
    if run["limit"] == "paced":
        times = [line["since_due_ns"] / 1e3 for line in results.program("streams") if line.get("since_due_ns")]
        app = max((flow for flow in seen if flow["flow"].endswith(":5202")), key=lambda flow: float(flow["payload_bytes"]))
        return {"rpc_p50_us": at_share(times, 0.5), "rpc_p99_us": at_share(times, 0.99), "rpc_count": len(times),
                "app_gbps": app["goodput_bps"] / 1e9, "jain": None}
    begin, full = (window(run)[0] + 1) / 1e3, 0
    for row in results.series():  # until 90 % of the link are used for half a millisecond
        full = full + 1 if row["t_s"] >= begin - 1e-9 and row["throughput_bps"] >= 0.9e10 else 0
        if full == 5:
            return {"filled_us": round((row["t_s"] - begin) * 1e6 - 400)}
    return {"filled_us": None}


LIMITS = [*each(limit="window", bytes=[58000, 250000], flows=[1, 2]), *each(limit="opened", bytes=58000),
          *each(limit="stopped", unit=[128, 8192]), *each(limit="mtu", thresholds=[9000, 1500]), *each(limit="paced"),
          *each(limit="gone", bytes=[0, 2000000])]

SCENARIO = Scenario(
    title="Data centre: hosts that limit a flow: receive window, MTU, application",
    question="What do flows use, and how long is the queue, where a host limits them, and when the limit goes away?",
    topology="""
 h1..hN  flows        -- sw ==== 10 Gb/s ==== r
  25 Gb/s each          (the queue)
                         base RTT 100 us""",
    rows=["dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="dctcp",
    variants=LIMITS + each(LIMITS, tso=1),
    params={"tso": TSO.format("25 Gb/s"),
            "window": "the receiver offers bytes at most: half of the BDP, or twice the BDP",
            "opened": "bytes is the limit until 50 ms",
            "stopped": "the receiver does not read from 30 ms to 50 ms; unit: the window's, bytes. 128 is that of "
                       "Linux' defaults, 8192 that of net.core.rmem_max = 256 MB",
            "mtu": "two flows have an MTU of 1500 bytes, two of 9000; ratio: the rate of these two by that of the "
                   "others; thresholds: the MTU for which lowq-tc computed them",
            "paced": "an application writes 14480 bytes every 40 us (2.9 Gb/s), beside a long flow; request: from the "
                     "instant at which a write was due until it has been read",
            "gone": "the same application, alone, has more than fits from 50 ms on; bytes: what it wrote at its very "
                    "beginning, in addition",
            "counted": "from 50 ms on: 20 ms (opened, stopped with unit 128, gone), 60 ms (paced), 80 ms (mtu), 210 "
                       "ms (stopped with unit 8192); 30 ms to 60 ms (window)"},
    words={"limit": {"gone": "limit goes away", "mtu": "two MTUs", "opened": "window opens",
                     "paced": "application at 2.9 Gb/s", "stopped": "receiver stops reading", "window": "window"},
           "bytes": "{} bytes", "thresholds": "thresholds for {} bytes", "unit": "unit {} bytes"},
    shown=["utilisation", "jain", "ratio", "app_gbps", "rpc_p50_us", "rpc_p99_us", "filled_us", "delay_p99_us",
           "delay_mean_us", "delay_max_us", "retrans"],
    goals=[goal("utilisation", row="ldcp", least=0.95, beside=["dctcp", "dctcp_ref"]),
           goal("utilisation", row="hpccpp", least=0.94, beside=["dctcp", "dctcp_ref"]),
           goal("delay_p99_us", row="ldcp", most=1.05, beside=["dctcp", "dctcp_ref"])],
    conclusion="""A window does not grow while a host is the limit, so that no queue waits when the limit goes away.

        DCTCP and LDCP add to the window by packets, so that flows with large packets get more; HPCC++ counts bytes.

        A receiver that offers its window in units larger than a packet stops LDCP until a timeout: keep
        net.core.rmem_max and net.ipv4.tcp_rmem below 64 MiB, or set net.ipv4.tcp_shrink_window.""",
    metrics=metrics,
    plan=plan)
