# SPDX-License-Identifier: GPL-2.0
"""What a plan has recorded: cwnd and queues over time, in one picture."""

from __future__ import annotations

from pathlib import Path

from figures import MAX_CURVES
from plots import Axis, Figure, linear_axis, Plot, Point, Series, time_axis, WIDE
from results import fail
from series import read_csv, thin

STYLES = ("line", "dash1", "dash2", "dash3")


def windows(place: Path, bins: int) -> dict[str, list[Point]]:
    """cwnd over time of the flows with most ACKs, in the order of their first one"""
    found: dict[str, list[tuple[float, float]]] = {}
    for at, cwnd, flow in zip(*read_csv(place / "acks.csv", ("t_ns", "cwnd"), ("flow",))):
        found.setdefault(flow, []).append((at / 1e9, cwnd))
    large = sorted(found, key=lambda flow: -len(found[flow]))[:MAX_CURVES]
    return {flow: [point[:2] for point in thin(bins, [at for at, _ in found[flow]], *2 * [[w for _, w in found[flow]]])]
            for flow in found if flow in large}


def queues(place: Path, bins: int) -> dict[str, list[Point]]:
    """The longest that each queue was in each bin"""
    found: dict[str, list[tuple[float, float]]] = {}
    for at, packets, node, dev in zip(*read_csv(place / "series.csv", ("t_s", "qlen_pkts_max"), ("node", "dev"))):
        found.setdefault(f"{node} {dev}", []).append((at, packets))
    return {name: [(point[0], point[2]) for point in thin(bins, [at for at, _ in points], *2 * [[n for _, n in points]])]
            for name, points in found.items() if any(n for _, n in points)}


def panel(caption: str, curves: dict[str, list[Point]], x: Axis, factor: float) -> Plot:
    most = max(value for points in curves.values() for _, value in points)
    lines = [Series(name, number % 8 + 1, STYLES[number // 8 % len(STYLES)], [(at * factor, value) for at, value in points])
             for number, (name, points) in enumerate(curves.items())]
    return Plot(caption, "", 0, f"{caption}: at most {most:g} packets", WIDE, x, linear_axis(most, "packets"), lines)


def recorded_figure(place: Path, bins: int) -> Figure:
    """Panels below each other would need no legend of their own: flows and queues have one each"""
    found = [(caption, curves) for caption, curves in (("Congestion window", windows(place, bins)),
                                                       ("Queue", queues(place, bins))) if curves]
    if not found:
        fail(1, f"{place}: neither ACKs nor queues are recorded: \"record\": [\"acks\", \"queue\"] in the plan")
    times = [at for _, curves in found for points in curves.values() for at, _ in points]
    x, factor = time_axis(max(min(times), 0), max(times))
    plots = [panel(caption, curves, x, factor) for caption, curves in found]
    legend = [(series.name, series.colour, series.style) for plot in plots for series in plot.series]
    return Figure("recorded", "Windows and queues over time", "", legend, plots)
