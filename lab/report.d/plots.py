# SPDX-License-Identifier: GPL-2.0
"""What a plot is: curves, axes, colours, captions."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple, Sequence

Point = tuple[float, ...]


class Series(NamedTuple):
    """One curve. Points: (x, y), for a band (x, low, high), for marks (x, y, low, high)."""
    name: str
    colour: int             # number of the row; 0 is neutral
    style: str              # "line", "thin", "edge", "band", "marks" or a key of DASHES
    points: list[Point]


class Axis(NamedTuple):
    """A range and the marks on it."""
    low: float
    high: float
    ticks: list[tuple[str, float]]
    name: str
    log: bool = False


class Plot(NamedTuple):
    """One pair of axes."""
    caption: str
    note: str
    colour: int
    desc: str
    size: tuple[int, int]
    x: Axis
    y: Axis
    series: list[Series]


class Figure(NamedTuple):
    """Related plots under one heading."""
    slug: str
    heading: str
    text: str
    legend: list[tuple[str, int, str]]      # label, colour, style
    plots: list[Plot]
    dots: bool = False      # y is a list of variants, x a value: drawn by dots.py


# Outlines around a point, within 3.4 px
SHAPES = ("M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z", "M-2.6-2.6h5.2v5.2h-5.2z", "M0-3.4L3.2 2.2h-6.4z",
          "M0-3.4L3.4 0L0 3.4L-3.4 0z", "M0 3.4L3.2-2.2h-6.4z",
          "M0-3.2L3.1-1L1.9 2.6h-3.8L-3.1-1z")
PANEL, SINGLE, WIDE = (400, 210), (450, 290), (600, 290)
DASHES = {"dash1": "7 3", "dash2": "2 2.5", "dash3": "8 3 2 3"}
# Okabe and Ito's hues, changed so that each has a contrast of 3 to white and no two look alike with
# protanopia, deuteranopia or tritanopia; entry 0 is neutral
PALETTE = ("#6b6b6b", "#0059ab", "#d55e00", "#00805f", "#cf62ac", "#6e5600", "#3597de", "#6a1b6e",
           "#1f2937")
# A row has the same colour and mark in every figure: the colour is its control's, and the mark tells its rows apart
CONTROLS = ("cubic", "bbr", "dctcp", "dctcp_ref", "hpccpp", "ldcp", "prague", "reno")
OTHER_ROWS = {"cubic_l4s": ("cubic", 1), "cubic_fq": ("cubic", 2), "cubic_red": ("cubic", 3), "cubic_aqm": ("cubic", 4),
              "bbr_l4s": ("bbr", 1), "prague_fifo": ("prague", 1), "prague_classic": ("prague", 2),
              "prague_aqm": ("prague", 3), "prague_fq": ("prague", 4), "dctcp_65": ("dctcp", 4), "rxe": ("reno", 1),
              "roce_rcm": ("dctcp", 1), "dcqcn_red": ("dctcp", 2),
              "dcqcn_today": ("dctcp", 3), "roce_ldcp": ("ldcp", 0), "udp": ("reno", 2)}
INK = {"text": "#333333", "frame": "#8a8f98", "grid": "#e2e5ea", "paper": "#ffffff"}


def numbers_of(rows: Sequence[str]) -> dict[str, int]:
    """A number for each row, which stands for its colour and mark. Rows that are not the project's come after all of
    its; one that ends with @ and a kernel has its row's colour."""
    found: dict[str, int] = {}
    for row in rows:
        name, _, kernel = row.partition("@")
        control, mark = OTHER_ROWS.get(name, (name, 0))
        own = 1 + sum(number > 5 * len(CONTROLS) for number in found.values())
        found[row] = 5 * len(CONTROLS) + own if control not in CONTROLS else \
            1 + CONTROLS.index(control) + len(CONTROLS) * (5 if kernel else mark)
    return found


def colour_of(row: int) -> str:
    """The colour of a row's number; 0 is neutral."""
    return PALETTE[(row - 1) % (len(PALETTE) - 1) + 1 if row else 0]


def shape_of(row: int) -> str:
    """The outline of its mark."""
    return SHAPES[((row - 1) % len(CONTROLS) + (row - 1) // len(CONTROLS)) % len(SHAPES)]


def line_style(row: int) -> str:
    """The line of a row; rows that share a colour differ in the dashes."""
    return ["line", *DASHES][(row - 1) // (len(PALETTE) - 1) % (len(DASHES) + 1)]


def steps(low: float, high: float, count: int = 4) -> list[float]:
    """Round values from `low` to `high`, about `count` of them."""
    raw = (high - low) / count or 1.0
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * f for f in (1, 2, 2.5, 5, 10) if unit * f >= raw * 0.999)
    start = math.ceil(low / step - 1e-9)
    return [i * step for i in range(start, math.floor(high / step + 1e-9) + 1)]


def linear_axis(high: float, name: str, low: float = 0.0, count: int = 4) -> Axis:
    """From `low` to `high` or to the next mark if that is near."""
    high = high if high > low else low + 1
    ticks = steps(low, high, count)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    if ticks[-1] < high and ticks[-1] + step - high < step / 2:
        ticks.append(ticks[-1] + step)
    return Axis(low, max(high, ticks[-1]), [(f"{t:g}", t) for t in ticks], name)


def log_axis(low: float, high: float, name: str,
             label: Callable[[float], str] = "{:g}".format) -> Axis:
    """A logarithmic axis with marks at powers of ten, more if there are few."""
    if high < 1.5 * low:
        low, high = low / 1.5, high * 1.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [10.0 ** d * f for d in decades for f in factors
                 if low * 0.999 <= 10.0 ** d * f <= high * 1.001]
        if len(ticks) >= 4:
            break
    return Axis(low, high, [(label(t), t) for t in ticks], name, True)


def short(value: float) -> str:
    """`value` for a mark on an axis: 20k is 20,000."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit * 0.999:
            return f"{value / (1e3 if letter == 'k' else limit):g}{letter}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def value_axis(means: Sequence[float], ends: Sequence[float], name: str, style: str) -> Axis:
    """An axis on which all `means` and, on a linear one, all `ends` of intervals have a place. It
    is logarithmic where the means are far from each other; 0 is then at its foot."""
    positive = [v for v in means if v > 0]
    low, high = min(means), max(*means, *ends)
    if low >= 0 and positive and max(positive) > 30 * min(positive):
        foot = min(positive) * 0.8
        if low > 0:
            return log_axis(foot, high * 1.05, f"{name}, log scale".lstrip(", "), short)
        axis = log_axis(foot / 3, high * 1.05, f"{name}, log scale".lstrip(", "), short)
        return axis._replace(ticks=[("0", axis.low),
                                    *(t for t in axis.ticks if t[1] >= foot * 0.999)])
    low = min(low, *ends)
    if low > 0.5 * high and style in ("percent", "index"):
        top = {"percent": 100.0, "index": 1.0}[style]
        pad = (max(high, top) - low) * 0.1
        axis = linear_axis(max(high, top), name, min(low - pad, 0.95 * top), 3)
    else:
        axis = linear_axis(max(high, 0.0), name, min(0.0, low), 3)
    return axis._replace(ticks=[(short(at), at) for _, at in axis.ticks])


def round_log(value: float, up: bool) -> float:
    """The next of 1, 2, 3, 5, 7 times a power of ten at or above, or at or below `value`."""
    unit = 10.0 ** math.floor(math.log10(value))
    rounds = [f * unit for f in (1, 2, 3, 5, 7, 10)]
    return min(r for r in rounds if r >= value * 0.999999) if up \
        else max(r for r in rounds if r <= value * 1.000001)


def duration(us: float) -> str:
    """Microseconds as a short text."""
    for limit, unit in ((1e6, "s"), (1e3, "ms"), (1, "µs")):
        if us >= limit * 0.999:
            return f"{us / limit:g} {unit}"
    return f"{us * 1e3:g} ns"


def time_axis(start: float, seconds: float) -> tuple[Axis, float]:
    """An axis from where the data begin, or 0 if they begin near, to `seconds`, and the factor to its unit."""
    seconds = max(seconds, 1e-6)
    factor, unit = next((f, u) for limit, f, u in ((2e-3, 1e6, "µs"), (2, 1e3, "ms"),
                                                   (math.inf, 1, "s")) if seconds < limit)
    low, high = start * factor if start > 0.1 * seconds else 0.0, seconds * factor
    ticks = [(f"{t:g}", t) for t in steps(low, high * 1.01 - low * 0.01, 5)]
    ticks[-1] = (f"{ticks[-1][0]} {unit}", ticks[-1][1])
    return Axis(min(low, ticks[0][1]), max(high, ticks[-1][1]), ticks, ""), factor
