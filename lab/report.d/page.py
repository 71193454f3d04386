# SPDX-License-Identifier: GPL-2.0
"""The page: table, goals and plots in a single file."""

from __future__ import annotations

import html
import string
from pathlib import Path
from typing import Any, Sequence
from urllib.parse import quote

from metrics import metric, show
from results import all_metrics, all_seeds, Block, command, fit_units, page_metrics, provenance, read_text
from goals import Verdict
from tables import failed, failures
from plots import colour_of, Figure
from figures import metric_figure, own_figures
from drawing import draw_file

# scenario, its variants, its verdicts, the requested columns
Part = tuple[dict[str, Any], Sequence[Block], Sequence[Verdict], Sequence[str] | None]

TEMPLATES = Path(__file__).resolve().parent
PAGE_BYTES = 1_900_000      # a page stays below this: plots are thinned until it fits
BINS = (320, 120, 40)       # points per curve to try, finest first

esc = html.escape


def html_table(blocks: Sequence[Block], keys: Sequence[str], caption: str,
               reference: str | None) -> str:
    """The table in a box that scrolls sideways separately."""
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
            head = f'<th scope="row">{dot(r.colour)}{esc(r.label)}{tag}</th>'
            if r.good:
                cells = []
                for key in keys:
                    s = r.metrics.get(key)
                    text = "–" if s is None else show(key, s.mean)
                    if s and float(show(key, s.half)):
                        text += f"<small>± {show(key, s.half)}</small>"
                    cells.append(f"<td>{text}</td>")
                out.append(f"<tr>{head}{''.join(cells)}</tr>")
            for text in failures(r):
                out.append(f'<tr class="failed">{head}<td colspan="{len(keys)}">'
                           f"<span>{esc(text)}</span></td></tr>")
        out.append("</tbody>")
    return "".join(out + ["</table></div>"])


def html_goals(verdicts: Sequence[Verdict]) -> str:
    """The goals as a list."""
    if not verdicts:
        return ""
    items = [f'<li class="{v.state.replace(" ", "-")}"><b>{v.state}</b><div><span>{esc(f"{v.row}: {v.text}")}</span>'
             f"<em>{esc(v.detail)}</em></div></li>" for v in verdicts]
    return f'<section><h3>Goals: {sum(v.state == "met" for v in verdicts)} of {len(verdicts)} met</h3>' \
           f'<ul class="goals">{"".join(items)}</ul></section>'


def dot(number: int) -> str:
    """A row's colour beside its name."""
    return f'<i class="dot" style="background:{colour_of(number)}"></i>'


def html_figure(figure: Figure, level: int) -> str:
    """A figure as a section of the page."""
    drawing = draw_file(figure._replace(text=""), "")
    source = "data:image/svg+xml," + quote(drawing, safe=" '=/,;[]{}!$*+@~|^?-_.&")
    width = drawing.split(maxsplit=5)[4]    # of the viewBox; letters have the same size in all figures
    said = " ".join(filter(None, (plot.desc for plot in figure.plots))) or figure.heading
    return f"<section><h{level}>{esc(figure.heading)}</h{level}><p>{esc(figure.text)}</p>" \
           f'<figure><img alt="{esc(said)}" style="max-width:{width}px" src="{esc(source)}"></figure></section>'


def html_over_time(blocks: Sequence[Block], bins: int, room: int) -> tuple[str, int]:
    """Figures of each variant, folded if there are several, in at most `room` bytes, and the
    number of variants left out for lack of room."""
    bodies = []
    for block in blocks:
        body = "".join(html_figure(figure, 3) for figure in own_figures(block, bins))
        if len(blocks) > 1 and body:
            body = f"<details><summary>{esc(block.name)}</summary>{body}</details>"
        room -= len(body.encode())
        if room < 0:
            break
        bodies.append(body)
    left_out = len(blocks) - len(bodies)
    if len(blocks) > 1 and any(bodies):
        bodies.insert(0, "<h3>Over time, by variant</h3>")
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


def html_reading(blocks: Sequence[Block], keys: Sequence[str]) -> str:
    """What the columns and plots mean."""
    items = [f"<dt>{esc(metric(k).name)}</dt><dd>{esc(metric(k).what)}</dd>"
             for k in keys if metric(k).what]
    seeds = all_seeds(blocks)
    text = ["Each row is one congestion control with its queue, in the same network with the "
            "same traffic. A good row has a full link (utilisation near 100 %), short queueing "
            "delay, short request times and no drops."]
    if len(seeds) > 1:
        text.append("Numbers are means over the seeds, with half of the 95 % confidence interval "
                    "in small type; plots over time show the first seed that did not fail, "
                    "completion times all seeds.")
    if any(r.bad for b in blocks for r in b.results):
        text.append("A row that says FAILED did not give a result; its reason stands beside it.")
    return "".join(f"<p>{esc(t)}</p>" for t in text) + f'<dl class="words">{"".join(items)}</dl>'


def html_part(part: Part, bins: int, room: int) -> tuple[str, int]:
    """One scenario of the page, and the number of variants left out for lack of room."""
    scenario, blocks, verdicts, chosen = part
    fit_units(blocks)
    everything = all_metrics(blocks)
    keys = list(chosen or page_metrics(blocks))
    topology = str(scenario.get("topology") or "").strip("\n")
    reference = scenario.get("reference_row")
    across = metric_figure(blocks, keys)
    findings = [text for text in str(scenario.get("conclusion") or "").splitlines() if text.strip()]
    more = ""
    if len(everything) > len(keys):
        more = "<details><summary>All metrics</summary>" \
               + html_table(blocks, everything, "All metrics", reference) + "</details>"
    made = {"command": f"<code>{esc(command(scenario, blocks) or '–')}</code>",
            "seeds": esc(", ".join(all_seeds(blocks))),
            **{k: esc(v) for k, v in provenance(blocks).items()}}
    before = f"<h2>{esc(str(scenario.get('title') or scenario.get('name') or 'Results'))}</h2>" \
        f'<p class="question">{esc(str(scenario.get("question") or ""))}</p>' \
        + '<section class="setting">' \
        + (f'<pre tabindex="0" aria-label="Topology">{esc(topology)}</pre>' if topology else "") \
        + html_params(scenario) + "</section>" \
        + (html_figure(across, 3) if across else "") \
        + "<section><h3>Results</h3>" + html_table(blocks, keys, "Results", reference) + more \
        + "</section>" \
        + ("<section><h3>What to see</h3><ul>" + "".join(f"<li>{esc(text)}</li>" for text in findings)
           + "</ul></section>" if findings else "") + html_goals(verdicts) \
        + (f"<p>{esc(failed(blocks))}</p>" if failed(blocks) else "")
    after = '<section class="reading"><h3>How to read this</h3>' \
        + html_reading(blocks, keys) + "</section>" \
        + '<section><h3>How it was made</h3><dl class="made">' \
        + "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in made.items()) + "</dl>" \
        + html_rows(blocks) + "</section>"
    over_time, left_out = html_over_time(blocks, bins, room - len((before + after).encode()))
    return f"<article>{before}{over_time}{after}</article>", left_out


def page(parts: Sequence[Part]) -> str:
    """The page of all `parts` in a single file."""
    title = ": ".join(dict.fromkeys(str(p[0].get("title") or p[0].get("name") or "Results")
                                    for p in parts)) if len(parts) == 1 else "lowq: results"
    room = PAGE_BYTES // len(parts)
    bodies = []
    for part in parts:
        for bins in BINS:
            body, left_out = html_part(part, bins, room)
            if not left_out:
                break
        bodies.append(body)
    return string.Template(read_text(TEMPLATES / "page.html")).substitute(
        style=read_text(TEMPLATES / "style.css"), title=esc(title), body="".join(bodies))
