# SPDX-License-Identifier: GPL-2.0
"""Plots drawn by gnuplot, as SVG in the colours of the page."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Sequence

from results import fail, read_text
from plots import Axis, colour_number, DASHES, Figure, INK, MARKS, PALETTE, Plot, WIDE


def quote(text: str) -> str:
    """A gnuplot string."""
    return "'" + re.sub(r"\s+", " ", text).replace("'", "''") + "'"


def magic(kind: int, number: int) -> str:
    """A colour that stands for a style until tidy() replaces it, see magic_class()."""
    return f"rgb '#01{kind:02x}{number:02x}'"


def gnuplot_script(plot: Plot, out: Path) -> str:
    """Commands that draw `plot` into file `out`."""
    def axis(letter: str, axis_: Axis) -> list[str]:
        ticks = ", ".join(f"{quote(text.replace('%', '%%'))} {at:.9g}" for text, at in axis_.ticks)
        return [f"set {letter}range [{axis_.low:.9g}:{axis_.high:.9g}]",
                f"set {letter}tics ({ticks})",
                f"set logscale {letter}" if axis_.log else f"unset logscale {letter}"]

    slanted = plot.size == WIDE
    foot = 1.6 + min(3.4, 0.3 * max(len(text) for text, _ in plot.x.ticks)) * slanted
    lines = ["reset", "set encoding utf8",
             f"set terminal svg size {plot.size[0]},{plot.size[1]} dynamic noenhanced"
             " font 'sans,12' linewidth 1", f"set output {quote(str(out))}",
             f"set border 3 lc {magic(1, 1)}",
             f"set tics nomirror out scale 0.4,0 textcolor {magic(1, 3)}",
             f"set grid ytics lt 1 lw 1 lc {magic(1, 2)}", "unset key",
             f"set lmargin {11 if slanted else 6.5}", "set rmargin 3.2", "set tmargin 1.9",
             f"set bmargin {foot + (1.4 if plot.x.name else 0)}",
             *axis("x", plot.x), *axis("y", plot.y),
             f"set label {quote(plot.y.name)} at graph 0, graph 1 left"
             f" offset {-7 if slanted else -5.5},1.1",
             f"set xlabel {quote(plot.x.name)} offset 0,{1.2 if slanted else 0.6}"]
    if slanted:
        lines.append("set xtics rotate by 35 right")
    draws = []
    for i, s in enumerate(plot.series):
        lines += [f"$d{i} << END", *(" ".join(f"{v:.6g}" for v in p) for p in s.points), "END"]
        colour = magic(2, s.colour)
        bars = s.style == "marks" and any(p[2] != p[3] for p in s.points)
        draws.append({
            "band": f"$d{i} using 1:2:3 with filledcurves lc {colour} fs transparent solid 0.25",
            "marks": f"$d{i} using {'1:2:3:4 with yerrorbars' if bars else '1:2 with points'}"
                     f" lc {colour} lw 1 pt {MARKS[(s.colour - 1) % len(MARKS)][0]} ps 0.65",
            "edge": f"$d{i} using 1:2 with lines lc {colour} lw 0.7",
            "thin": f"$d{i} using 1:2 with lines lc {colour} lw 1",
        }.get(s.style, f"$d{i} using 1:2 with lines lc {colour} lw 1.6"))
    lines += ["set bars 0", "set pointintervalbox 0",
              "plot " + ", ".join(f"{d} notitle" for d in draws), "unset output"]
    return "\n".join(lines) + "\n"


def magic_class(colour: str) -> tuple[str, str] | None:
    """(class, plain colour) for a colour in gnuplot's output, None for a plain one."""
    found = re.fullmatch(r"rgb\(\s*1,\s*(\d+),\s*(\d+)\)", colour.strip())
    if not found:
        name = {"black": "text", "white": "paper"}.get(colour)
        return (name, INK[name][0]) if name else None
    kind, number = int(found[1]), int(found[2])
    if kind == 1:
        name = {1: "frame", 2: "grid", 3: "text"}[number]
        return name, INK[name][0]
    return f"c{colour_number(number)}", PALETTE[colour_number(number)][0]


def tidy(source: str, uid: str, plot: Plot) -> ET.Element:
    """gnuplot's SVG without namespaces, scripts, own ids and own colours."""
    root = ET.fromstring(source)
    for element in root.iter():
        element.tag = element.tag.rsplit("}", 1)[-1]
        element.attrib = {k.rsplit("}", 1)[-1]: v for k, v in element.attrib.items()}
    used = {e.get("href", "")[1:] for e in root.iter("use") if not e.get("id")}
    for _ in range(3):      # a point of gnuplot may be made from another point
        used |= {e.get("href", "")[1:] for e in root.iter("use") if e.get("id") in used}

    def clean(parent: ET.Element) -> None:
        for child in list(parent):
            if child.tag == "g" and child.get("stroke") != "none":
                child.attrib = {k: v for k, v in child.attrib.items()
                                if k == "id" or k == "stroke-width" and float(v) != 1}
            clean(child)
            unused = parent.tag == "defs" and child.get("id") not in used
            empty = child.tag in ("g", "defs") and not len(child) and not child.get("id")
            halo = child.get("color") == "white"
            if unused or empty or halo or child.tag in ("script", "title", "desc", "filter") \
                    or (child.tag == "rect" and parent.get("id") == "gnuplot_canvas"):
                parent.remove(child)
            elif child.tag == "g" and not child.attrib:
                at = list(parent).index(child)
                parent[at:at + 1] = list(child)
    clean(root)
    groups = [g for g in root.iter("g") if re.search(r"plot_\d+", g.get("id", ""))]
    for group, series in zip(groups, plot.series):
        name = ET.Element("title")
        name.text = series.name
        group.insert(0, name)
        if series.style == "marks":
            group.set("color", f"rgb(1,2,{series.colour})")
        if series.style in DASHES:
            group.set("stroke-dasharray", DASHES[series.style])
        if series.style == "edge":      # keeps lone peaks of the band visible
            group.set("stroke-opacity", "0.5")
    for element in root.iter():
        element.tail = None
        if element.tag not in ("text", "title"):
            element.text = None
        attributes, classes = element.attrib, []
        for key in ("font-family", "font-size", "stroke-linecap", "stroke-linejoin"):
            attributes.pop(key, None)
        own_id = attributes.pop("id", None)
        if own_id in used:
            attributes["id"] = f"{uid}-{own_id}"
        if "href" in attributes:
            attributes["href"] = f"#{uid}-{attributes['href'][1:]}"
        for key in ("d", "points"):
            if len(attributes.get(key, "")) > 60:
                short = re.sub(r"(\d+\.\d)\d*", r"\1", attributes[key]).replace(".0", "")
                attributes[key] = " ".join(short.split())
        for key, prefix in (("stroke", "s-"), ("fill", "f-"), ("color", "k-")):
            known = magic_class(attributes.get(key, ""))
            if known:
                classes.append(prefix + known[0])
                attributes[key] = known[1]
        if classes:
            attributes["class"] = " ".join(classes)
        if element.tag == "use":        # a point: the series' group has its colour
            attributes.pop("class", None)
            attributes.pop("color", None)
    root.attrib = {"viewBox": f"0 0 {plot.size[0]} {plot.size[1]}", "role": "img", "class": "plot",
                   "fill": "none", "aria-labelledby": f"{uid}-title {uid}-desc", "font-size": "12",
                   "font-family": "system-ui, sans-serif"}
    for at, (tag, text) in enumerate((("title", plot.caption or plot.desc.split(":")[0]),
                                      ("desc", plot.desc))):
        element = ET.Element(tag, {"id": f"{uid}-{tag}"})
        element.text = text
        root.insert(at, element)
    return root


def render(figures: Sequence[Figure], prefix: str) -> list[list[ET.Element]]:
    """The plots of `figures` as SVG, drawn by one run of gnuplot."""
    with tempfile.TemporaryDirectory(prefix="lowq-report.") as name:
        jobs = [[(plot, Path(name) / f"{prefix}{f}-{p}.svg") for p, plot in enumerate(x.plots)]
                for f, x in enumerate(figures)]
        script = "".join(gnuplot_script(plot, out) for job in jobs for plot, out in job)
        run = subprocess.run(["gnuplot", "-d", "-"], input=script, text=True, encoding="utf-8",
                             capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        if run.returncode:
            fail(1, f"gnuplot: {run.stderr}")
        return [[tidy(read_text(out), out.stem, plot) for plot, out in job] for job in jobs]


def plot_css() -> str:
    """Colours of the plots in light and dark."""
    names = {**{f"c{i}": pair for i, pair in enumerate(PALETTE)}, **INK}

    def variables(which: int) -> str:
        return ":root{" + "".join(f"--{n}:{pair[which]};" for n, pair in names.items()) + "}"

    rules = "".join(f".s-{n}{{stroke:var(--{n})}}.f-{n}{{fill:var(--{n})}}"
                    f".k-{n}{{color:var(--{n})}}.b-{n}{{background:var(--{n})}}" for n in names)
    return variables(0) + f"@media(prefers-color-scheme:dark){{{variables(1)}}}" + rules


def sample(colour: int, style: str) -> ET.Element:
    """A piece of line for a legend."""
    name, plain = f"c{colour_number(colour)}", PALETTE[colour_number(colour)][0]
    line = {"d": "M0,5H26", "class": f"s-{name}", "stroke": plain, "stroke-width": "2.5"}
    if style in DASHES:
        line["stroke-dasharray"] = DASHES[style]
    root = ET.Element("svg", {"viewBox": "0 0 26 10", "width": "26", "height": "10",
                              "aria-hidden": "true"})
    ET.SubElement(root, "path", line)
    if style == "marks":
        line["stroke-width"] = "1"
        ET.SubElement(root, "path", {"d": MARKS[(colour - 1) % len(MARKS)][1],
                                     "class": f"f-{name}", "fill": plain})
    return root


def stand_alone(figure: Figure, drawings: Sequence[ET.Element], source: str) -> str:
    """A figure as one SVG file: heading, legend, panels in two columns."""
    columns = min(2, len(figure.plots))
    cell_w, cell_h = figure.plots[0].size
    width = columns * (cell_w + 16) + 16
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img",
                              "aria-labelledby": "title desc", "font-size": "12",
                              "font-family": "system-ui, sans-serif"})
    ET.SubElement(root, "title", {"id": "title"}).text = figure.heading
    ET.SubElement(root, "desc", {"id": "desc"}).text = figure.text
    ET.SubElement(root, "style").text = plot_css()
    paper = ET.SubElement(root, "rect", {"width": "100%", "height": "100%", "class": "f-paper",
                                         "fill": INK["paper"][0]})

    def write(x: float, y: float, text: str, **attributes: str) -> ET.Element:
        element = ET.SubElement(root, "text", {"x": f"{x:g}", "y": f"{y:g}", "class": "f-text",
                                               "fill": INK["text"][0], **attributes})
        element.text = text
        return element

    y = 26.0
    write(16, y, figure.heading, **{"font-size": "15", "font-weight": "600"})
    for line in textwrap.wrap(source, (width - 32) // 6):
        y += 17
        write(16, y, line)
    x, y = 16.0, y + 12
    need = 42 + max((6.6 * len(label) for label, _, _ in figure.legend), default=0)
    for label, colour, style in figure.legend:
        if x > 16 and x + need > width:
            x, y = 16.0, y + 18
        mark = sample(colour, style)
        mark.set("x", f"{x:g}")
        mark.set("y", f"{y + 4:g}")
        root.append(mark)
        write(x + 32, y + 13, label)
        x += need
    y += 26 if figure.legend else 6
    for i, (plot, drawing) in enumerate(zip(figure.plots, drawings)):
        x = 16 + i % columns * (cell_w + 16)
        if plot.caption:
            mark = sample(plot.colour, "line")
            if plot.colour:
                mark.set("x", f"{x}")
                mark.set("y", f"{y + 2:g}")
                root.append(mark)
            words = write(x + (32 if plot.colour else 0), y + 12, plot.caption,
                          **{"font-weight": "600"})
            ET.SubElement(words, "tspan", {"dx": "8", "font-weight": "400"}).text = plot.note
        drawing.set("x", f"{x}")
        drawing.set("y", f"{y + (18 if plot.caption else 0):g}")
        drawing.set("width", str(cell_w))
        drawing.set("height", str(cell_h))
        root.append(drawing)
        if i % columns == columns - 1 or i == len(figure.plots) - 1:
            y += cell_h + (34 if plot.caption else 12)
    root.set("viewBox", f"0 0 {width} {y:g}")
    root.set("width", str(width))
    root.set("height", f"{y:g}")
    paper.set("height", f"{y:g}")
    return ET.tostring(root, encoding="unicode") + "\n"
