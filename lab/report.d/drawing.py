# SPDX-License-Identifier: GPL-2.0
"""Draws figures as SVG, the same bytes everywhere: panels with curves here, what compares variants in dots.py."""

from __future__ import annotations

import html
import math
from typing import Iterable, Sequence

from dots import BOLD, draw_dots, FONT, Frame, heads, PAD, place, px, text, ticks, wrap
from plots import colour_of, DASHES, Figure, INK, Plot, Point, Series

GAP = 16                    # between panels, px
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 20, 20     # from a panel's sides to its axes, px


def step(tenths: int) -> str:
    """A relative coordinate with one decimal."""
    return f"{tenths / 10:g}".replace("0.", ".", abs(tenths) < 10)


def path(points: Iterable[Point]) -> str:
    """A line through points, in relative steps."""
    out, here = [], (0, 0)
    for number, (x, y) in enumerate(points):
        at = (round(x * 10), round(y * 10))
        across, down = step(at[0] - here[0]), step(at[1] - here[1])
        if not number:
            out.append(f"M{at[0] / 10:g} {at[1] / 10:g}")
        elif at != here or number == 1:
            out.append(f"h{across}" if at[1] == here[1] else f"l{across}{'' if down[0] == '-' else ' '}{down}")
        here = at
    return "".join(out)


def curve(plot: Plot, series: Series, frame: Frame, foot: float) -> str:
    """One curve; a band is filled."""
    def spot(x: float, y: float) -> Point:
        return (place(plot.x, x, frame.left, frame.right), place(plot.y, y, foot, frame.top))
    colour = colour_of(series.colour)
    if series.style == "band":
        around = [spot(p[0], p[1]) for p in series.points] + [spot(p[0], p[2]) for p in reversed(series.points)]
        return f'<path d="{path(around)}z" fill="{colour}" fill-opacity=".25"/>'
    width = {"edge": .7, "thin": 1}.get(series.style, 1.6)
    more = ' stroke-opacity=".5"' if series.style == "edge" else \
        f' stroke-dasharray="{DASHES[series.style]}"' if series.style in DASHES else ""
    return f'<path d="{path(spot(p[0], p[1]) for p in series.points)}" fill="none" stroke="{colour}" ' \
        f'stroke-width="{width:g}"{more}/>'


def panel(plot: Plot, left: float, top: float) -> list[str]:
    """A plot whose upper left corner is there."""
    frame = Frame(left + LEFT, left + plot.size[0] - RIGHT, top + TOP)
    foot = top + plot.size[1] - BOTTOM
    rises = [(name, place(plot.y, at, foot, frame.top)) for name, at in plot.y.ticks]
    marks = ticks(plot.x, frame)
    out = [f'<path d="{"".join(f"M{px(frame.left)} {px(y)}H{px(frame.right)}" for _, y in rises)}" '
           f'stroke="{INK["grid"]}"/>',
           *(curve(plot, series, frame, foot) for series in plot.series if series.points),
           f'<path d="M{px(frame.left)} {px(frame.top)}V{px(foot)}H{px(frame.right)}'
           + "".join(f"M{px(x)} {px(foot)}v4" for _, x in marks) + f'" fill="none" stroke="{INK["frame"]}"/>',
           '<g text-anchor="middle">', *(text(x, foot + 16, name) for name, x in marks), "</g>",
           '<g text-anchor="end">', *(text(frame.left - 5, y + 4, name) for name, y in rises), "</g>"]
    return out + ([text(left, top + 11, plot.y.name)] if plot.y.name else [])


def svg(width: float, height: float, title: str, body: Sequence[str]) -> str:
    """A whole drawing."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(width)} {px(height)}" font-family="sans-serif" ' \
        f'font-size="{FONT}" fill="{INK["text"]}" role="img">\n<title>{html.escape(title, quote=False)}</title>\n' \
        f'<rect width="{px(width)}" height="{px(height)}" fill="{INK["paper"]}"/>\n' + "\n".join(body) + "\n</svg>\n"


def draw_file(figure: Figure, source: str) -> str:
    """A figure as one SVG file: heading, legend, panels in two columns."""
    if figure.dots:
        return draw_dots(figure, source)
    columns, (wide, high) = min(2, len(figure.plots)), figure.plots[0].size
    width = max(columns * (wide + GAP) - GAP + 2 * PAD, 500)
    out, y = heads(figure, f"{source}: {figure.heading}" if source else "", width)
    captions = [wrap(": ".join(filter(None, (plot.caption, plot.note))), wide / BOLD) for plot in figure.plots]
    line = 14 * max(map(len, captions)) if any(captions[0]) else 0
    for number, (plot, caption) in enumerate(zip(figure.plots, captions)):
        left, top = PAD + number % columns * (wide + GAP), y + GAP + number // columns * (high + line + GAP)
        out += [text(left, top + 10 + 14 * i, part, ' font-weight="bold"') for i, part in enumerate(caption) if part]
        out += panel(plot, left, top + line)
    rows = math.ceil(len(figure.plots) / columns)
    return svg(width, y + rows * (high + line + GAP) + PAD, source or figure.heading, [one for one in out if one])
