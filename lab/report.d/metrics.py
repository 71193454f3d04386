# SPDX-License-Identifier: GPL-2.0
"""How each metric is named, scaled and written."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Mapping, NamedTuple


class Metric(NamedTuple):
    """How one metric is shown; values in result.json times scale give unit."""
    head: tuple[str, str]   # the two lines of its heading in a text table
    name: str
    unit: str
    scale: float
    style: str              # "percent", "count", "index" or "number"
    what: str

def read_table() -> dict[str, Metric]:
    """metrics.csv: a line for each known metric, in the order of columns."""
    with Path(__file__).with_name("metrics.csv").open(encoding="utf-8", newline="") as file:
        return {line["metric"]: Metric((line["head"], line["below"]), line["name"], line["unit"], float(line["scale"]),
                                       line["style"], line["what"]) for line in csv.DictReader(file)}


METRICS = read_table()
EXTRA = ("goodput_bps", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "rpc_count",
         "retrans", "delay_p50_us", "delay_max_us", "throughput_bps", "mark_fraction")
#          known, and shown by default only where there is room


TIMES = ("µs", "ms", "s")
FITTED: dict[str, Metric] = {}


def metric(key: str) -> Metric:
    """How to show `key`; an unknown one is shown under its own name."""
    return FITTED.get(key) or METRICS.get(key) or Metric((key, ""), key, "", 1, "number", "")


def fit_times(largest: Mapping[str, float]) -> None:
    """Until the next call, a time whose `largest` value has five digits or more is shown in a longer unit."""
    FITTED.clear()
    for key, how in METRICS.items():
        at, value = TIMES.index(how.unit) if how.unit in TIMES else len(TIMES), largest.get(key, 0) * how.scale
        for unit in TIMES[at + 1:]:
            if value < 1e4:
                break
            value /= 1e3
            FITTED[key] = how = how._replace(unit=unit, scale=how.scale / 1e3, head=(
                how.head[0], " ".join([*how.head[1].split()[:-1], unit])))


def show_number(value: float, style: str = "number") -> str:
    """`value` with a sensible number of digits."""
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


def show(key: str, value: float) -> str:
    """A value of metric `key` in the unit of its heading."""
    how = metric(key)
    return show_number(value * how.scale, how.style)
