# SPDX-License-Identifier: GPL-2.0
"""What a plot is: curves, axes, colours, captions."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

from series import Point


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
    """Plots that belong together, under one heading."""
    slug: str
    heading: str
    text: str
    legend: list[tuple[str, int, str]]      # label, colour, style
    plots: list[Plot]


# shapes of points: gnuplot's number, a path for the legend
MARKS = ((7, "M9.5,5a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0z"), (5, "M9.7,1.7h6.6v6.6h-6.6z"),
         (9, "M13,0.5L17.5,8.5H8.5z"), (13, "M13,0L18,5L13,10L8,5z"), (11, "M13,9.5L17.5,1.5H8.5z"),
         (15, "M13,0.5L17.4,3.7L15.7,9H10.3L8.6,3.7z"))
PANEL, SINGLE, WIDE = (400, 210), (450, 290), (600, 290)
DASHES = {"dash1": "7 3", "dash2": "2 2.5", "dash3": "8 3 2 3"}
# (light, dark). Okabe and Ito's hues, moved until each has a contrast of 3 to its background
# and no two look alike with protanopia, deuteranopia or tritanopia; entry 0 is neutral
PALETTE = (("#6b6b6b", "#9a9a9a"), ("#0059ab", "#4a9df2"), ("#d55e00", "#ff8540"),
           ("#00805f", "#1bbf93"), ("#cf62ac", "#f195ca"), ("#6e5600", "#f0dc52"),
           ("#3597de", "#8fdcf8"), ("#6a1b6e", "#9d5acb"), ("#1f2937", "#f2f4f7"))
INK = {"text": ("#333333", "#d2d5da"), "frame": ("#8a8f98", "#737983"),
       "grid": ("#e2e5ea", "#33373e"), "paper": ("#ffffff", "#16181c")}


def colour_number(row: int) -> int:
    """The palette's entry for a row; more rows than colours begin anew."""
    return (row - 1) % (len(PALETTE) - 1) + 1 if row else 0


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


def time_axis(seconds: float) -> tuple[Axis, float]:
    """An axis from 0 to `seconds` and the factor to its unit."""
    seconds = max(seconds, 1e-6)
    factor, unit = next((f, u) for limit, f, u in ((2e-3, 1e6, "µs"), (2, 1e3, "ms"),
                                                   (math.inf, 1, "s")) if seconds < limit)
    high = seconds * factor
    ticks = [(f"{t:g}", t) for t in steps(0, high * 1.01, 5)]
    ticks[-1] = (f"{ticks[-1][0]} {unit}", ticks[-1][1])
    return Axis(0, max(high, ticks[-1][1]), ticks, ""), factor
