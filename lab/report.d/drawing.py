# SPDX-License-Identifier: GPL-2.0
"""Draws plots with gnuplot, as SVG. Axes, marks and colours come from plots.py; gnuplot chooses
none of them."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Iterable, NamedTuple, Sequence

from results import fail, read_text
from dots import draw_dots
from plots import Axis, colour_of, DASHES, Figure, INK, Plot, WIDE

GAP = 16                    # pixels between panels, and around them
MARKS = (7, 5, 9, 13, 11, 15)  # gnuplot's numbers of shapes
# what gnuplot writes before each piece of an axis, and the same as a style
PEN = '<g fill="none" color="black" stroke="currentColor" stroke-width="1.00" ' \
      'stroke-linecap="butt" stroke-linejoin="miter">'
PEN_STYLE = "fill: none; color: black; stroke: currentColor"


class Place(NamedTuple):
    """A panel's place in the drawing, in fractions of its width and height, from the lower left."""
    x: float
    y: float
    width: float
    height: float


def quote(text: str) -> str:
    """A gnuplot string."""
    return "'" + re.sub(r"\s+", " ", text).replace("'", "''") + "'"


def dashes(style: str) -> str:
    """A line's dashes in gnuplot's notation."""
    return f" dt ({','.join(DASHES[style].split())})" if style in DASHES else ""


def axis_commands(letter: str, axis: Axis) -> list[str]:
    """Range and ticks of one axis."""
    ticks = ", ".join(f"{quote(text.replace('%', '%%'))} {at:.9g}" for text, at in axis.ticks)
    return [f"set {letter}range [{axis.low:.9g}:{axis.high:.9g}]", f"set {letter}tics ({ticks})",
            f"set logscale {letter}" if axis.log else f"unset logscale {letter}"]


def panel_commands(plot: Plot, place: Place, title: str = "") -> list[str]:
    """Commands that draw `plot` in its place."""
    slanted = plot.size == WIDE
    foot = 1.6 + min(3.4, 0.3 * max(len(text) for text, _ in plot.x.ticks)) * slanted
    lines = [f"set size {place.width:.6f},{place.height:.6f}",
             f"set origin {place.x:.6f},{place.y:.6f}",
             f"set lmargin {11 if slanted else 6.5}", f"set tmargin {3.3 if title else 1.9}",
             f"set bmargin {foot + (1.4 if plot.x.name else 0)}",
             *axis_commands("x", plot.x), *axis_commands("y", plot.y),
             f"set label 101 {quote(plot.y.name)} at graph 0, graph 1 left"
             f" offset {-7 if slanted else -5.5},1.1",
             f"set xlabel {quote(plot.x.name)} offset 0,{1.2 if slanted else 0.6}",
             "set xtics rotate by 35 right" if slanted else "set xtics norotate"]
    if title:
        lines.append(f"set label 102 {quote(title)} at graph 0, graph 1 left offset "
                     f"{-7 if slanted else -5.5},2.3 tc rgb "
                     f"'{colour_of(plot.colour) if plot.colour else INK['text']}'")
    draws = []
    for i, s in enumerate(plot.series):
        lines += [f"$d{i} << END", *(" ".join(f"{v:.9g}" for v in p) for p in s.points), "END"]
        colour = colour_of(s.colour)
        bars = s.style == "marks" and any(p[2] != p[3] for p in s.points)
        shape = MARKS[(s.colour - 1) % len(MARKS)]
        draws.append(f"$d{i} using " + {
            "band": f"1:2:3 with filledcurves lc rgb '{colour}' fs transparent solid 0.25 noborder",
            "marks": f"{'1:2:3:4 with yerrorbars' if bars else '1:2 with points'}"
                     f" lc rgb '{colour}' lw 1 pt {shape} ps 0.65",
            "edge": f"1:2 with lines lc rgb '#80{colour[1:]}' lw 0.7",
            "thin": f"1:2 with lines lc rgb '{colour}' lw 1",
        }.get(s.style, f"1:2 with lines lc rgb '{colour}' lw 1.6{dashes(s.style)}") + " notitle")
    return [*lines, "plot " + ", ".join(draws), "unset label", "unset arrow"]


def begin(size: tuple[int, int], out: Path) -> list[str]:
    """Commands that start a drawing."""
    return ["reset", "set encoding utf8",
            f"set terminal svg size {size[0]},{size[1]} dynamic noenhanced"
            f" font 'sans,12' linewidth 1 background '{INK['paper']}'",
            f"set output {quote(str(out))}", f"set border 3 lc rgb '{INK['frame']}'",
            f"set tics nomirror out scale 0.4,0 textcolor rgb '{INK['text']}'",
            f"set grid ytics lt 1 lw 1 lc rgb '{INK['grid']}'", "unset key", "set rmargin 3.2",
            "set bars 0", "set pointintervalbox 0"]


def legend_commands(figure: Figure, size: tuple[int, int], top: int) -> tuple[list[str], int]:
    """Commands for the legend, from `top` pixels on downwards; where it ends."""
    width, height = size
    lines: list[str] = []
    x, need = GAP, 42 + max((7 * len(label) for label, _, _ in figure.legend), default=0)
    for label, number, style in figure.legend:
        if x > GAP and x + need > width:
            x, top = GAP, top + 18
        y, colour = 1 - (top + 9) / height, colour_of(number)
        at = f"screen {(x + 13) / width:.6f},{y:.6f}"
        if style == "marks":
            lines.append(f"set label {quote(label)} at {at} left offset 2.4,0 point "
                         f"pt {MARKS[(number - 1) % len(MARKS)]} ps 0.65 lc rgb '{colour}'")
        else:
            lines += [f"set arrow from screen {x / width:.6f},{y:.6f} to "
                      f"screen {(x + 26) / width:.6f},{y:.6f} nohead lw 2 lc rgb '{colour}'"
                      + dashes(style),
                      f"set label {quote(label)} at screen {(x + 32) / width:.6f},{y:.6f} left"]
        x += need
    return lines, top + (26 if figure.legend else 0)


def figure_commands(figure: Figure, source: str, out: Path) -> list[str]:
    """Commands that draw a figure as one file: heading, legend, panels in two columns."""
    columns = min(2, len(figure.plots))
    titled = any(plot.caption for plot in figure.plots)
    cell_w, cell_h = figure.plots[0].size[0] + GAP, figure.plots[0].size[1] + 16 * titled
    width = columns * cell_w + GAP
    texts = textwrap.wrap(source, (width - 2 * GAP) // 7)
    top = 34 + 17 * len(texts)
    _, legend_end = legend_commands(figure, (width, 1000), top)
    rows = (len(figure.plots) + columns - 1) // columns
    height = legend_end + rows * cell_h + GAP
    legend, _ = legend_commands(figure, (width, height), top)
    lines = [*begin((width, height), out), "set multiplot",
             *(f"set label {quote(text)} at screen {GAP / width:.6f},{1 - y / height:.6f} left "
               f"font ',{15 if not i else 12}'"
               for i, (text, y) in enumerate([(figure.heading, 18),
                                              *((t, 40 + 17 * n) for n, t in enumerate(texts))])),
             *legend]
    for i, plot in enumerate(figure.plots):
        place = Place((GAP + i % columns * cell_w) / width,
                      1 - (legend_end + (i // columns + 1) * cell_h) / height,
                      cell_w / width, cell_h / height)
        title = ": ".join(filter(None, (plot.caption, plot.note)))
        lines += panel_commands(plot, place, title or (" " if titled else ""))
    return [*lines, "unset multiplot", "unset output"]


def run_gnuplot(lines: Sequence[str]) -> None:
    """Draws."""
    run = subprocess.run(["gnuplot", "-d", "-"], input="\n".join(lines) + "\n", text=True,
                         encoding="utf-8", capture_output=True,
                         env={**os.environ, "LC_ALL": "C.UTF-8"})
    if run.returncode:
        fail(1, f"gnuplot: {run.stderr}")


def steps_of(places: Iterable[tuple[str, str, str]]) -> str:
    """A path's commands, relative and with one decimal, from M or L and two coordinates each;
    points on one horizontal line become one step."""
    out: list[str] = []
    here = (0, 0)
    for letter, x_text, y_text in places:
        x, y = round(float(x_text) * 10), round(float(y_text) * 10)
        step = [f"{v / 10:g}".replace("0.", ".", abs(v) < 10) for v in (x - here[0], y - here[1])]
        if letter == "M":
            out.append(f"M{x / 10:g} {y / 10:g}")
        elif y == here[1]:
            out.append(f"h{step[0]}")
        else:
            out.append(f"l{step[0]}{'' if step[1][0] == '-' else ' '}{step[1]}")
        here = (x, y)
    return "".join(out)


def short_path(found: re.Match[str]) -> str:
    """A path of gnuplot's, which are of M and L, shorter."""
    places = re.findall(r"([ML]?)\s*(-?[\d.]+),(-?[\d.]+)", found[1])
    return f"d='{steps_of(places)}'"


def short_polygon(found: re.Match[str]) -> str:
    """A polygon of gnuplot's as a path."""
    places = re.findall(r"([-.0-9]+),([-.0-9]+)", found[2])
    return f"<path{found[1]}d='" \
           + steps_of(("L" if i else "M", x, y) for i, (x, y) in enumerate(places)) + "z'"


def plain(source: str) -> str:
    """gnuplot's SVG in less than half of its bytes, and without what names gnuplot's version: no
    comments, symbols that are not used or empty groups; paths in relative steps."""
    source = re.sub(r"<desc>Produced by GNUPLOT.*?</desc>|<!--.*?-->|<title>Gnuplot</title>"
                    r"|<filter.*?</filter>", "", source, flags=re.S)
    head, end, body = source.partition("</defs>")
    used = set(re.findall(r"href='#(\w+)'", body))
    bases = dict((b, a) for a, b in re.findall(r"href='#(\w+)' id='(\w+)'", head))
    while more := {bases[name] for name in used if name in bases} - used:
        used |= more                # a symbol may be made of another
    head = re.sub(r"<(?:circle|path|rect|use)[^>]*\bid='(\w+)'[^>]*/>",
                  lambda m: m[0] if m[1] in used else "", head)
    body = re.sub(r"\bd='((?:\s*[ML]?\s*-?[\d.]+,-?[\d.]+)+)\s*'", short_path, body)
    body = re.sub(r"<polygon([^>]*)\bpoints = '([^']*)'", short_polygon, body)
    body = re.sub(r"<g[^>]*>\s*</g>", "", body)
    source = re.sub(r"\s*\n\s*", "\n", head + end + body.replace(PEN, "<g class='p'>"))
    source = source.replace("<defs>", f"<defs><style>.p {{ {PEN_STYLE} }}</style>", 1)
    return source.replace('font-family="sans"', 'font-family="sans-serif"')


def draw_panels(figures: Sequence[Figure]) -> list[list[str]]:
    """The plots of `figures`, one SVG each, for a page that has captions and legends."""
    with tempfile.TemporaryDirectory(prefix="lowq-report.") as name:
        jobs = [[(plot, Path(name) / f"{f}-{p}.svg") for p, plot in enumerate(x.plots)]
                for f, x in enumerate(figures)]
        run_gnuplot([text for job in jobs for plot, out in job for text in
                     (*begin(plot.size, out), *panel_commands(plot, Place(0, 0, 1, 1)),
                      "unset output")])
        return [[plain(read_text(out)) for _, out in job] for job in jobs]


def draw_file(figure: Figure, source: str) -> str:
    """A figure as one SVG file."""
    if figure.dots:
        return draw_dots(figure, source)
    with tempfile.TemporaryDirectory(prefix="lowq-report.") as name:
        out = Path(name) / "figure.svg"
        run_gnuplot(figure_commands(figure, source, out))
        return plain(read_text(out))
