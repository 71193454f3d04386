# SPDX-License-Identifier: GPL-2.0
"""One metric against another: what a setting buys of one, and what it costs of the other. A point is a row in a
variant; a line joins the points of a row that differ in one setting only ("curve" in scenario.json).

Drawn here for the reasons that dots.py gives."""

from __future__ import annotations

import html
import math
from typing import Any, NamedTuple, Sequence

from metrics import Metric, metric
from results import Block, fail, has, order, Spread, varied
from words import say, with_unit
from plots import Axis, colour_of, Figure, INK, log_axis, short, value_axis
from dots import BOLD, FONT, Frame, heads, LINE, markers, PAD, place, px, text, text_width, ticks, WIDTH, wrap

HEIGHT = 190                # of a pair of axes, px
FOOT = 32                   # below them: labels of the marks, and the axis' name
LEFT, RIGHT = 44, 14        # beside them
MOST = 3                    # panels beside each other
SPREAD = 5                  # an axis is logarithmic if its largest mean is so many times its least
GAP = 12                    # from a caption to the name of its y axis, px
NEAR = 6                    # from a point to its label, px


class Spot(NamedTuple):
    """A point: its label, colour and place."""
    label: str
    colour: int
    x: Spread
    y: Spread


class Panel(NamedTuple):
    """Variants that differ in one setting only: a line for each row that has several, and what is a point."""
    caption: str
    x: Axis
    y: Axis
    lines: list[list[Spot]]


class Curves(NamedTuple):
    """A drawing."""
    figure: Figure          # heading, text and legend
    names: tuple[str, str]  # of the metrics, with their units
    scales: tuple[float, float]     # from the metrics to these units
    panels: list[Panel]


def axis_of(key: str, spots: Sequence[Spot], which: int) -> Axis:
    """An axis for a metric, with room for all intervals."""
    how = metric(key)
    spreads = [spot[which] for spot in spots]
    means = [s.mean * how.scale for s in spreads]
    ends = [end * how.scale for s in spreads for end in (s.mean - s.half, s.mean + s.half)]
    if min(*means, *ends) > 0 and max(means) > SPREAD * min(means):
        return log_axis(min(*means, *ends) * 0.8, max(*means, *ends) * 1.3, "", short)
    return value_axis(means, ends, "", how.style)


def panel(asked: dict[str, Any], blocks: Sequence[Block], names: Sequence[str]) -> Panel | None:
    """The variants `blocks`, if some row has several points; settings in `names` are in its caption."""
    along = asked["along"]
    rows: dict[int, list[tuple[Any, Spot]]] = {}
    for block in blocks:
        value = str(block.variant.get(along, "")) or str(asked.get("otherwise", ""))
        for r in block.results:
            if asked["x"] in r.metrics and asked["y"] in r.metrics:
                spot = Spot(with_unit(value), r.colour, r.metrics[asked["x"]], r.metrics[asked["y"]])
                rows.setdefault(r.colour, []).append((order(value), spot))
    lines = [[spot for _, spot in sorted(row, key=lambda one: one[0])] for _, row in sorted(rows.items())]
    if not any(len(line) > 1 for line in lines):
        return None
    # what has one point alone does not depend on the setting, or was not tried with another
    lines = [line if len(line) > 1 else [line[0]._replace(label="")] for line in lines]
    spots = [spot for line in lines for spot in line]
    return Panel(say(blocks[0].words[n] for n in names if n in blocks[0].words),
                 axis_of(asked["x"], spots, 2), axis_of(asked["y"], spots, 3), lines)


def axis_name(how: Metric) -> str:
    """A metric's name and unit."""
    return f"{how.name} ({how.unit})" if how.unit else how.name


def curves(scenario: dict[str, Any], blocks: Sequence[Block]) -> Curves | None:
    """What scenario.json asks for as "curve", if there is anything to draw."""
    asked = scenario.get("curve")
    if not asked:
        return None
    if not isinstance(asked, dict) or not all(isinstance(asked.get(k), str) for k in ("x", "y", "along")):
        fail(1, "scenario.json: curve needs x and y, two metrics, and along, a setting")
    want = asked.get("variant") or {}
    groups: dict[tuple[tuple[str, str], ...], list[Block]] = {}
    for block in blocks:
        if has(block, want):
            rest = tuple(sorted((k, str(v)) for k, v in block.variant.items() if k != asked["along"] and str(v)))
            groups.setdefault(rest, []).append(block)
    names = [n for n in varied(blocks) if n != asked["along"]]
    panels = [made for group in groups.values() if (made := panel(asked, group, names))]
    if not panels:
        return None
    seen = {spot.colour for one in panels for line in one.lines for spot in line}
    labels = {r.colour: r.label for b in blocks for r in b.results}
    x, y = metric(asked["x"]), metric(asked["y"])
    figure = Figure("curve", f"{y.name} against {x.name}", str(asked.get("text", "")),
                    [(labels[number], number, "marks") for number in sorted(seen)], [])
    return Curves(figure, (axis_name(x), axis_name(y)), (x.scale, y.scale), panels)


class Box(NamedTuple):
    """What is drawn already, px."""
    left: float
    top: float
    right: float
    bottom: float


def free(box: Box, taken: Sequence[Box], frame: Frame) -> bool:
    """Whether nothing else is there, and it is inside of the axes."""
    return frame.left < box.left and box.right < frame.right + RIGHT \
        and not any(box.left < b.right and b.left < box.right and box.top < b.bottom and b.top < box.bottom
                    for b in taken)


def label_of(spot: Spot, x: float, y: float, taken: list[Box], frame: Frame) -> str:
    """A point's label, at the first place beside it that is free; none if there is none."""
    wide = text_width(spot.label)
    for left, base in ((x + NEAR, y + 10), (x + NEAR, y + 4), (x - NEAR - wide, y - 3), (x - NEAR - wide, y + 4),
                       (x + NEAR, y - 4), (x - wide / 2, y - NEAR), (x - wide / 2, y + NEAR + 9),
                       (x + 2 * NEAR, y - 6), (x + 2 * NEAR, y + 20)):
        box = Box(left, base - FONT + 2, left + wide, base + 2)
        if free(box, taken, frame):
            taken.append(box)
            return text(left, base, spot.label)
    return ""


def bars(spot: Spot, x: float, y: float, ends: Sequence[float]) -> str:
    """The intervals of a point, where they are longer than its mark: left, right, lower and upper end."""
    left, right, low, high = ends
    return (f"M{px(left)} {px(y)}H{px(right)}" if right - left > 7 else "") \
        + (f"M{px(x)} {px(low)}V{px(high)}" if low - high > 7 else "")


def draw_panel(one: Panel, scales: tuple[float, float], names: tuple[str, str], left: float, top: float,
               width: float) -> list[str]:
    """A panel whose caption ends at `top`."""
    frame = Frame(left + LEFT, left + width - RIGHT, top + LINE)
    end = frame.top + HEIGHT

    def across(value: float) -> float:
        return place(one.x, value * scales[0], frame.left, frame.right)

    def up(value: float) -> float:
        return place(one.y, value * scales[1], end, frame.top)

    marks = ticks(one.x, frame)
    rises = [(name, place(one.y, at, end, frame.top)) for name, at in one.y.ticks]
    grid = "".join(f"M{px(at)} {px(frame.top)}V{px(end)}" for _, at in marks) \
        + "".join(f"M{px(frame.left)} {px(at)}H{px(frame.right)}" for _, at in rises)
    out = [f"<g><title>{html.escape(one.caption, quote=False)}</title>",
           f'<path d="{grid}" stroke="{INK["grid"]}"/>'
           f'<path d="M{px(frame.left)} {px(frame.top)}V{px(end)}H{px(frame.right)}" fill="none" '
           f'stroke="{INK["frame"]}"/>',
           '<g text-anchor="middle">', *(text(at, end + 13, name) for name, at in marks),
           text((frame.left + frame.right) / 2, end + 27, names[0]), "</g>",
           '<g text-anchor="end">', *(text(frame.left - 5, at + 4, name) for name, at in rises), "</g>",
           text(left, frame.top - 8, names[1])]
    spots = [(spot, across(spot.x.mean), up(spot.y.mean)) for line in one.lines for spot in line]
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for _, x, y in spots]
    for line in one.lines:
        places = [(across(spot.x.mean), up(spot.y.mean)) for spot in line]
        lengths = "".join(bars(spot, x, y, (
            across(spot.x.mean - spot.x.half), across(spot.x.mean + spot.x.half),
            up(spot.y.mean - spot.y.half), up(spot.y.mean + spot.y.half))) for spot, (x, y) in zip(line, places))
        colour = colour_of(line[0].colour)
        mark = f"url(#m{line[0].colour})"
        points = " ".join(f"{px(x)},{px(y)}" for x, y in (places * 2 if len(places) == 1 else places))
        out.append((f'<path d="{lengths}" stroke="{colour}" stroke-opacity=".5"/>' if lengths else "")
                   + f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4" '
                     f'marker-start="{mark}" marker-mid="{mark}" marker-end="{mark}"/>')
    out += [label_of(spot, x, y, taken, frame) for spot, x, y in spots if spot.label]
    return [*filter(None, out), "</g>"]


def draw_curves(made: Curves, title: str, alone: bool = True) -> str:
    """The drawing, as SVG; where it is not alone, the page has the text."""
    out, y = heads(made.figure if alone else made.figure._replace(text=""), title)
    columns = min(MOST, len(made.panels))
    cell = (WIDTH - 2 * PAD) / max(columns, 2)
    for i in range(0, len(made.panels), columns):
        beside = made.panels[i:i + columns]
        captions = [wrap(one.caption, (cell - 8) / BOLD) for one in beside]
        top = y + LINE * max(map(len, captions)) + 8
        for number, (one, caption) in enumerate(zip(beside, captions)):
            left = PAD + number * cell
            out += [text(left, top - LINE * (len(caption) - 1 - k), part, ' font-weight="bold"')
                    for k, part in enumerate(caption)]
            out += draw_panel(one, made.scales, made.names, left, top + GAP, cell)
        y = top + GAP + LINE + HEIGHT + FOOT
    height = math.ceil(y + PAD)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" ' \
        f'font-family="sans-serif" font-size="{FONT}" fill="{INK["text"]}" role="img">\n' \
        f"<title>{html.escape(title or made.figure.heading, quote=False)}</title>\n" \
        f'<rect width="{WIDTH}" height="{height}" fill="{INK["paper"]}"/>\n' \
        + markers(made.figure.legend) + "\n" + "\n".join(filter(None, out)) + "\n</svg>\n"
