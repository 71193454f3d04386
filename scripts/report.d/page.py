# SPDX-License-Identifier: GPL-2.0
"""The page: table, goals and plots, complete in one file."""

from __future__ import annotations

import html
import shutil
import string
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Sequence

from metrics import EXTRA, metric, show
from results import all_metrics, all_seeds, Block, main_metrics, read_text
from goals import Verdict
from tables import failures, varies
from plots import colour_number, Figure, WIDE
from figures import metric_figure, own_figures
from drawing import plot_css, render, sample

TEMPLATES = Path(__file__).resolve().parent
PAGE_BYTES = 1_900_000      # a page stays below this: plots are thinned until it fits
BINS = (320, 120, 40)       # points per curve to try, finest first

esc = html.escape


def html_table(blocks: Sequence[Block], keys: Sequence[str], caption: str,
               reference: str | None) -> str:
    """The table in a box that scrolls sideways by itself."""
    out = [f'<div class="scroll" role="region" tabindex="0" aria-label="{esc(caption)}">',
           f"<table><caption>{esc(caption)}</caption><thead><tr><th scope=\"col\">row</th>"]
    keys = keys or [""]
    for key in keys:
        how = metric(key)
        unit = f" <small>{esc(how.unit)}</small>" if how.unit else ""
        out.append(f'<th scope="col">{esc(how.name)}{unit}</th>')
    out.append("</tr></thead>")
    for block in blocks:
        out.append("<tbody>")
        if block.name:
            out.append(f'<tr class="variant"><th scope="rowgroup" colspan="{len(keys) + 1}">'
                       f"<span>{esc(block.name)}</span></th></tr>")
        for r in block.results:
            tag = " <small>reference</small>" if r.row == reference else ""
            mark = f'<i class="dot b-c{colour_number(r.colour)}"></i>'
            head = f'<th scope="row">{mark}{esc(r.label)}{tag}</th>'
            if r.good:
                cells = []
                for key in keys:
                    s = r.metrics.get(key)
                    text = "–" if s is None else show(key, s.mean)
                    if s and varies(s, key):
                        text += f"<small>{show(key, s.low)} – {show(key, s.high)}</small>"
                    cells.append(f"<td>{text}</td>")
                out.append(f"<tr>{head}{''.join(cells)}</tr>")
            for text in failures(r):
                out.append(f'<tr class="failed">{head}<td colspan="{len(keys)}">'
                           f"<span>{esc(text)}</span></td></tr>")
        out.append("</tbody>")
    return "".join(out + ["</table></div>"])


def html_goals(verdicts: Sequence[Verdict]) -> str:
    """The goals as a list, all variants of one together."""
    if not verdicts:
        return ""
    items = []
    for number in dict.fromkeys(v.goal for v in verdicts):
        mine = [v for v in verdicts if v.goal == number]
        worst = next((s for s in ("missed", "no data") if any(v.state == s for v in mine)), "met")
        details = "".join(f"<em>{esc(f'{v.variant}: ' if v.variant else '')}{esc(v.detail)}</em>"
                          for v in mine)
        items.append(f'<li class="{worst.replace(" ", "-")}"><b>{worst}</b><div>'
                     f"<span>{esc(mine[0].row)}: {esc(mine[0].text)}</span>{details}</div></li>")
    met = sum(i.startswith('<li class="met"') for i in items)
    return f'<section><h2>Goals: {met} of {len(items)} met</h2><ul class="goals">' \
           f"{''.join(items)}</ul></section>"


def html_figure(figure: Figure, drawings: Sequence[ET.Element], level: int) -> str:
    """A figure as a section of the page."""
    def svg(element: ET.Element) -> str:
        return ET.tostring(element, encoding="unicode")

    legend = "".join(f"<li>{svg(sample(colour, style))}{esc(label)}</li>"
                     for label, colour, style in figure.legend)
    panels = []
    for plot, drawing in zip(figure.plots, drawings):
        dot = f'<i class="dot b-c{colour_number(plot.colour)}"></i>' if plot.colour else ""
        extra = f"<small>{esc(plot.note)}</small>" if plot.note else ""
        caption = f"<figcaption>{dot}<b>{esc(plot.caption)}</b>{extra}</figcaption>" \
            if plot.caption else ""
        panels.append(f"<figure>{caption}{svg(drawing)}</figure>")
    kind = "single" if len(panels) == 1 and not figure.plots[0].caption else "panels"
    kind += " wide" if figure.plots[0].size == WIDE else ""
    return f"<section><h{level}>{esc(figure.heading)}</h{level}><p>{esc(figure.text)}</p>" \
           + (f'<ul class="legend">{legend}</ul>' if legend else "") \
           + f'<div class="{kind}">{"".join(panels)}</div></section>'


def html_figures(figures: Sequence[Figure], prefix: str, level: int = 2) -> str:
    """`figures` as sections; `prefix` makes their ids unique in the page."""
    return "".join(html_figure(figure, drawings, level)
                   for figure, drawings in zip(figures, render(figures, prefix)))


def html_over_time(blocks: Sequence[Block], bins: int, room: int) -> tuple[str, int]:
    """Figures of each variant, folded away if there are several, in at most `room` bytes; how
    many variants were left out for that."""
    bodies = []
    for number, block in enumerate(blocks, 1):
        body = html_figures(own_figures(block, bins), f"p{number}-", 3 if len(blocks) > 1 else 2)
        if len(blocks) > 1 and body:
            body = f"<details><summary>{esc(block.name)}</summary>{body}</details>"
        room -= len(body.encode())
        if room < 0:
            break
        bodies.append(body)
    left_out = len(blocks) - len(bodies)
    if len(blocks) > 1 and any(bodies):
        bodies.insert(0, "<h2>Over time, by variant</h2>")
    if left_out:
        bodies.append(f"<p>Left out to keep this page small: plots over time of {left_out} more "
                      "variants; --svg writes them all.</p>")
    return "".join(bodies), left_out


def html_params(scenario: dict[str, Any]) -> str:
    """The scenario's parameters."""
    items = scenario.get("params")
    if not isinstance(items, dict) or not items:
        return ""
    return "<dl>" + "".join(f"<div><dt>{esc(str(k))}</dt><dd>{esc(str(v))}</dd></div>"
                            for k, v in items.items()) + "</dl>"


def html_rows(blocks: Sequence[Block]) -> str:
    """Which congestion control and queue each row stands for."""
    rows = {r.row: r for b in blocks for r in b.results}
    cells = "".join(f'<tr><th scope="row">{esc(r.label)}</th><td>{esc(r.control)}</td>'
                    f"<td><code>{esc(r.queue)}</code></td></tr>" for r in rows.values())
    heads = "".join(f'<th scope="col">{h}</th>' for h in ("row", "congestion control", "queue"))
    return '<div class="scroll" role="region" tabindex="0" aria-label="Rows"><table class="rows">' \
           f"<caption>Rows</caption><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody>" \
           "</table></div>"


def html_reading(blocks: Sequence[Block], keys: Sequence[str], scenario: dict[str, Any]) -> str:
    """What the columns and plots mean."""
    items = [f"<dt>{esc(metric(k).name)}</dt><dd>{esc(metric(k).what)}</dd>"
             for k in keys if metric(k).what]
    seeds = all_seeds(blocks)
    text = ["Each row is one congestion control with its queue, in the same network with the "
            "same traffic. A good row has a full link (utilisation near 100 %), short queueing "
            "delay, short request times and no drops."]
    if len(seeds) > 1:
        text.append("Numbers are means over the seeds, with the lowest and the highest seed in "
                    "small type where they differ; plots over time show the first seed that "
                    "did not fail, completion times all seeds.")
    if any(r.bad for b in blocks for r in b.results):
        text.append("A row that says FAILED did not give a result; its reason stands beside it.")
    if scenario.get("lab_seed_note"):
        text.append(str(scenario["lab_seed_note"]))
    return "".join(f"<p>{esc(t)}</p>" for t in text) + f'<dl class="words">{"".join(items)}</dl>'


def page(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
         chosen: Sequence[str] | None) -> str:
    """The page, complete in one file."""
    everything = all_metrics(blocks)
    keys = list(chosen or [k for k in main_metrics(blocks) if k not in EXTRA] or everything)
    title = str(scenario.get("title") or scenario.get("name") or "Results")
    topology = scenario.get("topology") or ""
    topology = "\n".join(map(str, topology)) if isinstance(topology, list) \
        else str(topology).strip("\n")
    reference = scenario.get("reference_row")
    more = ""
    if len(everything) > len(keys):
        more = "<details><summary>All metrics</summary>" \
               + html_table(blocks, everything, "All metrics", reference) + "</details>"
    across = metric_figure(blocks, keys)
    draw = shutil.which("gnuplot") is not None
    variants = html_figures([across], "a-") if across and draw else ""
    over_time = "<!-- plots -->" if draw else "<p>No plots: made without gnuplot.</p>"
    seeds = all_seeds(blocks)
    made = [("command", f"<code>{esc(str(scenario.get('command') or '–'))}</code>"),
            ("kernel", esc(str(scenario.get("kernel") or "–"))),
            ("seed" if len(seeds) == 1 else "seeds", esc(", ".join(seeds)))]
    topology = f'<pre tabindex="0" aria-label="Topology">{esc(topology)}</pre>' if topology else ""
    text = string.Template(read_text(TEMPLATES / "page.html")).substitute(
        style=plot_css() + read_text(TEMPLATES / "style.css"), title=esc(title),
        name=esc(str(scenario.get("name") or "")), topology=topology,
        question=esc(str(scenario.get("question") or "")), params=html_params(scenario),
        table=html_table(blocks, keys, "Results", reference) + more,
        goals=html_goals(verdicts), variants=variants, over_time=over_time, rows=html_rows(blocks),
        reading=html_reading(blocks, keys, scenario),
        made="".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in made))
    if not draw:
        return text
    for bins in BINS:
        figures, left_out = html_over_time(blocks, bins, PAGE_BYTES - len(text.encode()))
        if not left_out:
            break
    return text.replace(over_time, figures)
