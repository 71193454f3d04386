# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, long, Results, Run, Scenario


def rates(run: Run) -> tuple[float, float, int]:
    """Of the link at last, bit/s; when something happens, and when all ends, seconds"""
    bps = float(run.get("to", run["rate"])[:-4]) * 1e6
    return (bps, 0, 40) if run["event"] == "start" else (bps, 20, 60)


def plan(run: Run) -> dict[str, Any]:
    event, (_, at, end) = run["event"], rates(run)
    net = dumbbell(2, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]), buffer=33554432)
    traffic = [long("h1", "r", duration=f"{end}s", start=f"{run.seed * 104729 % 20000}us", control=run.control)]
    if event == "leave":
        traffic.append(long("h2", "r", duration="20s", control=run.control))
    if event == "join":
        traffic.append(long("h2", "r", duration=f"{end - 20}s", start=f"{20000000 + run.seed * 7919 % 20000}us",
                            control=run.control))
    faster = [{"at": f"{at}s", "node": "sw", "dev": "r", "rate": run["to"]}] if event == "up" else []
    return net.measured(*traffic, count=("0s", f"{end}s"), bin_="10ms", events=faster)


def settled(rows: list[dict[str, float]], at: float, bps: float, bins: int) -> float | None:
    """Seconds from then on until the mean rate of so many bins (10 ms) that follow is that"""
    rate = {round(row["t_s"] * 100): row["throughput_bps"] for row in rows}
    for i in range(round(at * 100), max(rate) - bins + 1):
        if sum(rate.get(k, 0) for k in range(i, i + bins)) / bins >= bps:
            return i / 100 - at
    return None


def metrics(results: Results) -> dict[str, float | None]:
    run, queue = results.run, results.series()
    bps, at, _ = rates(run)
    time = (settled(results.series("h2"), at, bps * 0.4, 200) if run["event"] == "join" else
            settled(queue, at, bps * 0.9, 50))
    end = at + max(2, time if time is not None else 2)
    delays = [row["delay_us_max"] for row in queue if at <= row["t_s"] <= end and "delay_us_max" in row]
    made = {"settled_s": time, "phase_p99_us": at_share(delays, 0.99)}
    if run["event"] == "up":
        made["utilisation"] = results.share(20e6 * float(run["rate"][:-4]) + 40 * bps)
    if run["event"] == "start":
        used = [row["throughput_bps"] for row in queue if 1.999 <= row["t_s"] < 10.999]
        made["used_from_2s"] = sum(used) / len(used) / bps
        made["start_max_us"] = max(row.get("delay_us_max", 0) for row in queue if row["t_s"] < 3)
    return made


SCENARIO = Scenario(
    title="Capacity that changes: flows leave and join, links change their rate, over DualPI2",
    question="""How long does it take until Prague uses capacity that has become free, and until a new flow has its
        share?""",
    topology=r"""
 h1  a long flow       --\
                          sw ==== rate ==== r
 h2  another: leave, join /  (dualpi2, defaults)
                              base RTT rtt""",
    rows=["prague", "cubic_l4s"],
    variants=[*each(event="leave", rate=["40mbit", "100mbit", "400mbit"], rtt="20ms"),
              *each(event="up", rate="25mbit", to="100mbit", rtt="20ms"),
              *each(event="up", rate="50mbit", to="100mbit", rtt="50ms"),
              *each(event="up", rate="200mbit", to="400mbit", rtt="20ms"),
              *each(event="join", rate=["40mbit", "400mbit"], rtt="20ms"),
              *each(event="join", rate="100mbit", rtt="50ms"),
              *each(event="start", rate=["90mbit", "230mbit"], rtt="65ms"),
              *each(event="start", rate="100mbit", rtt="100ms"),
              *each(event="start", rate="400mbit", rtt=["20ms", "50ms"])],
    params={"leave": "the second of two flows ends after 20 s",
            "up": "the rate changes to the value in column to after 20 s", "join": "a second flow starts after 20 s",
            "start": "a flow alone, from its first packet",
            "right": "at least 90 % of the link, on average over the half second that follows (join: 80 % of the "
                     "share, over 2 s)"},
    words={"event": {"join": "a flow joins", "leave": "a flow leaves", "start": "a flow starts",
                     "up": "the link gets faster"}},
    shown=["settled_s", "phase_p99_us", "used_from_2s", "start_max_us", "utilisation", "delay_p99_us", "drops"],
    goals=[goal("settled_s", row="prague", most=3, median=1.5),
           goal("phase_p99_us", row="prague", most=5000),
           goal("used_from_2s", row="prague", least=0.95)],
    conclusion="""Prague takes capacity for free after a silence longer than it has seen; the increase then doubles
        with each period.

        Marks of others' queues do not end the slow start of a window that is small for the path.

        A flow that starts alone makes the queue of slow start: packets sent before the first mark returns.""",
    metrics=metrics,
    plan=plan)
