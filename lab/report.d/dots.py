# SPDX-License-Identifier: GPL-2.0
"""Draws a figure of dots as one SVG: a line per variant, a plot per metric beside each other."""

from __future__ import annotations

import html
import math
from typing import Mapping, NamedTuple, Sequence

from plots import Axis, colour_of, DASHES, Figure, INK, Plot, Series, shape_of

WIDTH = 880                 # of the drawing, px: what a README page shows without shrinking it
FONT, LINE = 11, 13         # size of letters, distance of lines, px
PAD = 10                    # around the drawing, px
GAP = 16                    # from a plot's axis to the end of its cell, px: room for tick labels
LABEL = 270                 # a variant's name that is wider is wrapped, px
CELL = 130                  # a plot's cell is at least this wide, px
LONG = 20                   # with more variants the axis is repeated at the foot
BOLD = 1.12                 # how much wider bold letters are
STRIPE = "#f5f6f8"

# Advance widths in 1/1000 of the font's size: DejaVu Sans, which is wider than other sans fonts
WIDTHS = {c: w for w, letters in (
    (278, "ijl'"), (300, "IJ"), (318, " ,."), (337, "/:;\\|"), (352, "f"), (361, "-"),
    (390, "()[]t"), (411, "r!"), (460, '"'), (500, "*_`–"), (525, "sz?"), (550, "c"), (557, "L"),
    (579, "Fk"), (592, "vxy"), (612, "PTYoae"), (635, "EhnuSbdgpq$0123456789{}µ"), (686, "KAVXZB"),
    (698, "RC"), (752, "UNH"), (787, "DG&OQ"), (838, "w#+<=>^~×≥≤±"), (863, "M"), (1000, "%mW@"))
    for c in letters}


class Frame(NamedTuple):
    """Where one plot is drawn, px: its axis, and the top of its captions."""
    left: float
    right: float
    top: float


def text_width(text: str, size: float = FONT) -> float:
    """The width of `text` in px."""
    return sum(WIDTHS.get(c, 1000) for c in text) * size / 1000


def wrap(text: str, width: float, size: float = FONT) -> list[str]:
    """`text` in lines of at most `width` px; a word that is wider stays whole."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def wrap_name(name: str) -> list[str]:
    """A variant's name in lines of at most LABEL px, broken between settings if possible."""
    lines: list[str] = []
    for part in name.split(", "):
        if lines and text_width(f"{lines[-1]}, {part}") <= LABEL:
            lines[-1] += f", {part}"
        else:
            if lines:
                lines[-1] += ","
            lines += wrap(part, LABEL)
    return lines


def px(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.") or "0"


def text(x: float, y: float, words: str, more: str = "") -> str:
    """A text whose baseline begins, or is centred or ends, at a place."""
    return f'<text x="{px(x)}" y="{px(y)}"{more}>{html.escape(words, quote=False)}</text>'


def place(axis: Axis, value: float, left: float, right: float) -> float:
    """The place of `value` on an axis from `left` to `right`, px."""
    low, high = axis.low, axis.high
    if axis.log:
        low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
    share = (value - low) / (high - low) if high > low else 0.5
    return left + min(max(share, 0.0), 1.0) * (right - left)


def ticks(axis: Axis, frame: Frame) -> list[tuple[str, float]]:
    """The marks of an axis, as many as have room for their labels: label and place, px."""
    marks = [(name, place(axis, at, frame.left, frame.right)) for name, at in axis.ticks]
    step = 1
    while step < len(marks) and any(
            b[1] - a[1] < (text_width(a[0]) + text_width(b[0])) / 2 + 6
            for a, b in zip(marks[::step], marks[step::step])):
        step += 1
    return marks[::step]


def markers(curves: Sequence[tuple[str, int, str]]) -> str:
    """The shapes of the rows, by their colours."""
    return "<defs>" + "".join(
        f'<marker id="m{number}" viewBox="-4 -4 8 8" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse"><path d="{shape_of(number)}" '
        f'fill="{colour_of(number)}" stroke="#fff" stroke-width=".6"/></marker>'
        for number in sorted({number for _, number, _ in curves})) + "</defs>"


def curve(plot: Plot, series: Series, frame: Frame, middles: Mapping[int, float],
          unit: float) -> str:
    """The points of one row in one plot, with their intervals. Points are (value, line + shift,
    low, high); a line's shift of 1 is `unit` px."""
    spots, bars = [], []
    for value, line, low, high in series.points:
        at = round(line)
        x, y = place(plot.x, value, frame.left, frame.right), middles[at] + (line - at) * unit
        ends = [place(plot.x, v, frame.left, frame.right) for v in (low, high)]
        spots.append(f"{px(x)},{px(y)}")
        if ends[1] - ends[0] > 6:       # a shorter one is hidden by the point
            bars.append(f"M{px(ends[0])} {px(y)}H{px(ends[1])}")
    if len(spots) == 1:                 # a line of one point has no markers in some browsers
        spots *= 2
    mark = f"url(#m{series.colour})"
    return (f'<path d="{"".join(bars)}" stroke="{colour_of(series.colour)}"/>' if bars else "") \
        + f'<polyline points="{" ".join(spots)}" fill="none" marker-start="{mark}" ' \
          f'marker-mid="{mark}" marker-end="{mark}"/>'


def heads(figure: Figure, title: str, width: float = WIDTH) -> tuple[list[str], float]:
    """Title, text and legend; where they end, px."""
    out, y = [], float(PAD)
    for size, words in ((14, title), (FONT, figure.text)):
        for line in wrap(words, width - 2 * PAD, size) if words else ():
            y += size + 3
            out.append(text(PAD, y - 3, line, f' font-size="{size}"' if size != FONT else ""))
    x, y = float(PAD), y + 20 * bool(figure.legend)
    for label, number, style in figure.legend:
        need = 12 + text_width(label)
        if x > PAD and x + need > width - PAD:
            x, y = float(PAD), y + 16
        if style == "marks":
            out.append(f'<path transform="translate({px(x + 4)} {px(y - 7)})" '
                       f'd="{shape_of(number)}" fill="{colour_of(number)}"/>')
        else:
            dash = f' stroke-dasharray="{DASHES[style]}"' if style in DASHES else ""
            out.append(f'<path d="M{px(x - 8)} {px(y - 7)}h17" stroke="{colour_of(number)}" stroke-width="2"{dash}/>')
        out.append(text(x + 12, y - 3, label))
        x += need + 20
    return out, y + 4


def names_of(lines: Sequence[Sequence[str]], middles: Mapping[int, float], right: float) -> str:
    """The variants' names, which end at `right`."""
    return '<g text-anchor="end">' + "".join(
        text(right, middle + 4 - LINE * ((len(lines[at]) - 1) / 2 - i), part)
        for at, middle in middles.items() for i, part in enumerate(lines[at])) + "</g>"


def band(plots: Sequence[Plot], lines: Sequence[Sequence[str]], left: float,
         top: float) -> tuple[list[str], float]:
    """Plots beside each other, with the variants' names (`lines` of each) left of them, from `top`
    px on downwards; where they end. A variant without a point in them has no line."""
    cell = (WIDTH - PAD - left) / len(plots)
    captions = [wrap(p.caption, (cell - 8) / BOLD) + [p.x.name] * bool(p.x.name) for p in plots]
    start = top + LINE * max(map(len, captions)) + 20
    rows = 5 * max(len({s.colour for s in p.series}) for p in plots) + 5
    have = sorted({round(p[1]) for plot in plots for s in plot.series for p in s.points})
    heights = [max(15, rows, LINE * len(lines[at]) + 4) for at in have]
    tops = [start + sum(heights[:i]) for i in range(len(heights) + 1)]
    middles = {at: top + height / 2 for at, top, height in zip(have, tops, heights)}
    end = tops[-1]
    stripes = "".join(f"M0 {px(t)}h{WIDTH}v{px(h)}h-{WIDTH}z"
                      for t, h in list(zip(tops, heights))[1::2])
    out = [f'<path d="{stripes}" fill="{STRIPE}"/>' if stripes else "",
           names_of(lines, middles, left - 4)]
    for number, (plot, caption) in enumerate(zip(plots, captions)):
        frame = Frame(left + number * cell + GAP, left + (number + 1) * cell - GAP, start)
        marks = ticks(plot.x, frame)
        grid = "".join(f"M{px(at)} {px(start)}V{px(end)}" for _, at in marks)
        out += [f"<g><title>{html.escape(plot.caption, quote=False)}</title>",
                f'<path d="{grid}" stroke="{INK["grid"]}"/>'
                f'<path d="M{px(frame.left)} {px(start)}H{px(frame.right)}" '
                f'stroke="{INK["frame"]}"/>']
        out += [text(frame.left - GAP + 4, start - 20 - LINE * (len(caption) - 1 - i), part,
                     ' font-weight="bold"' if i < len(caption) - bool(plot.x.name) else "")
                for i, part in enumerate(caption)]
        feet = [start - 5] + ([end + 11] if len(have) > LONG else [])
        out += ['<g text-anchor="middle">',
                *(text(at, y, name) for y in feet for name, at in marks), "</g>"]
        out += [curve(plot, s, frame, middles, min(heights)) for s in plot.series]
        out.append("</g>")
    return out, end + (14 if len(have) > LONG else 0)


def draw_dots(figure: Figure, title: str) -> str:
    """The drawing."""
    names = [name for name, _ in figure.plots[0].y.ticks]
    lines = [wrap_name(name) for name in names]
    left = PAD + 4 + max(text_width(part) for parts in lines for part in parts)
    most = max(1, int((WIDTH - PAD - left) // CELL))
    bands = math.ceil(len(figure.plots) / most)
    count = math.ceil(len(figure.plots) / bands)
    out, y = heads(figure, title)
    for i in range(0, len(figure.plots), count):
        drawn, y = band(figure.plots[i:i + count], lines, left, y + 14)
        out += drawn
    height = math.ceil(y + PAD)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" ' \
        f'font-family="sans-serif" font-size="{FONT}" fill="{INK["text"]}" role="img">\n' \
        f"<title>{html.escape(title or figure.heading, quote=False)}</title>\n" \
        f'<rect width="{WIDTH}" height="{height}" fill="{INK["paper"]}"/>\n' \
        + markers(figure.legend) + "\n" + "\n".join(filter(None, out)) + "\n</svg>\n"
