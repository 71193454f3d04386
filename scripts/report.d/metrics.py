# SPDX-License-Identifier: GPL-2.0
"""How each metric is named, scaled and written."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """How one metric is shown; values in result.json times scale give unit."""
    head: tuple[str, str]   # the two lines of its heading in a text table
    name: str
    unit: str
    scale: float
    style: str              # "percent", "count", "index" or "number"
    what: str

METRICS: dict[str, Metric] = {
    "utilisation": Metric(("util", "%"), "utilisation", "%", 100, "percent",
                          "share of the bottleneck's rate that was used"),
    "delay_mean_us": Metric(("delay", "mean us"), "queueing delay, mean", "µs", 1, "number",
                            "how long packets waited in the bottleneck's queue, on average"),
    "delay_p99_us": Metric(("delay", "p99 us"), "queueing delay, p99", "µs", 1, "number",
                           "99 of 100 packets waited no longer than this"),
    "rpc_p50_us": Metric(("request", "p50 us"), "request, p50", "µs", 1, "number",
                         "half of the requests were answered in this time or less"),
    "rpc_p99_us": Metric(("request", "p99 us"), "request, p99", "µs", 1, "number",
                         "99 of 100 requests were answered in this time or less"),
    "marks": Metric(("marks", ""), "marks", "", 1, "count",
                    "packets that the queue marked CE (congestion experienced)"),
    "drops": Metric(("drops", ""), "drops", "", 1, "count", "packets that the queue dropped"),
    "jain": Metric(("Jain", ""), "Jain", "", 1, "index",
                   "Jain's fairness index of the long flows: 1 is equal shares, "
                   "1/n is one of n flows taking all"),
    "goodput_bps": Metric(("goodput", "Gb/s"), "goodput", "Gb/s", 1e-9, "number",
                          "payload delivered per second, all flows together"),
    "qlen_mean_pkts": Metric(("queue", "mean pk"), "queue, mean", "packets", 1, "number",
                             "queue length averaged over time"),
    "qlen_stddev_pkts": Metric(("queue", "sd pk"), "queue, std. deviation", "packets", 1, "number",
                               "how much the queue length moves"),
    "qlen_p99_pkts": Metric(("queue", "p99 pk"), "queue, p99", "packets", 1, "number",
                            "the queue was no longer than this in 99 % of the time"),
    "rpc_count": Metric(("requests", ""), "requests", "", 1, "count", "requests completed"),
    "retrans": Metric(("retrans", ""), "retransmits", "", 1, "count",
                      "segments that were sent again"),
}
EXTRA = ("goodput_bps", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "rpc_count",
         "retrans")         # known, but shown by default only where there is room


def metric(key: str) -> Metric:
    """How to show `key`; one that is not known goes by its own name."""
    return METRICS.get(key) or Metric((key, ""), key, "", 1, "number", "")


def show_number(value: float, style: str = "number") -> str:
    """`value` with as many digits as it deserves."""
    size = abs(value)
    if style == "percent":
        return f"{value:.1f}"
    if style == "index":
        return f"{value:.3f}"
    if value == int(value) and (style == "count" or size >= 100 or value == 0):
        return f"{value:.0f}"
    if style == "count":
        return f"{value:.0f}" if size >= 100 else f"{value:.1f}"
    for limit, digits in ((100, 0), (10, 1), (1, 2), (0.01, 3)):
        if size >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def rough(value: float) -> str:
    """`value` with two digits, or all before the point."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def show(key: str, value: float) -> str:
    """A value of metric `key` in the unit of its heading."""
    how = metric(key)
    return show_number(value * how.scale, how.style)
