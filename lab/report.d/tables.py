# SPDX-License-Identifier: GPL-2.0
"""The printed output: tables for a terminal, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import textwrap
from typing import Any, Iterable, Sequence

from metrics import metric, show
from results import (
    all_metrics, all_seeds, Block, command, main_metrics, PROVENANCE, provenance, Result,
    RUN_COLUMNS, Spread)
from goals import Verdict
from words import say

TEXT_WIDTH = 100            # columns of a table that does not go to a terminal


def failures(result: Result) -> list[str]:
    """A line for each reason for which runs of `result` failed."""
    seeds: dict[str, list[str]] = {}
    for run in result.bad:
        seeds.setdefault(run.failure, []).append(run.seed)
    return [f"FAILED (seed{'s' if len(names) > 1 else ''} {', '.join(names)}): {reason}"
            for reason, names in seeds.items()]


def failed(blocks: Sequence[Block]) -> str:
    """Rows some of whose flows did not end well; nothing if all did."""
    rows = {r.label: None for b in blocks for r in b.results if "failed" in r.metrics and r.metrics["failed"].high > 0}
    return f"Flows that did not end well: {', '.join(rows)}." if rows else ""


def markdown(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
             keys: Sequence[str]) -> str:
    """The table and the goals, for your own documents."""
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in cells) + " |"
    named = ["variant"] * any(b.words for b in blocks)
    out = [line([*named, "row", *(f"{metric(k).name} ({metric(k).unit})" if metric(k).unit else metric(k).name
                                  for k in keys)]), "|" + "---|" * (len(named) + 1) + "---:|" * len(keys)]
    for block in blocks:
        for r in block.results:
            start = [say(block.words.values())] * len(named) + [r.label]
            if r.good:
                out.append(line([*start, *(shown(k, r.metrics[k]) if k in r.metrics else "–" for k in keys)]))
            out += [line([*start, text, *[""] * (len(keys) - 1)]) for text in failures(r)]
    if verdicts:
        out += ["", line(["goal", "for", "result"]), "|---|---|---|",
                *(line([v.text, v.row, f"{v.state}: {v.detail}"]) for v in verdicts)]
    if scenario.get("command"):
        out += ["", f"`{command(scenario, blocks)}`"]
    return "\n".join([*out, "", origin(blocks)]) + "\n"


def shown(key: str, value: Spread) -> str:
    """The mean, with the interval where its digits are not all 0."""
    text, half = show(key, value.mean), show(key, value.half)
    return f"{text} ± {half}" if float(half) else text


def text_grid(results: Sequence[Result], keys: Sequence[str]) -> list[tuple[str, list[str], str]]:
    """Lines of a text table: first column, the other cells or a message in their place."""
    lines: list[tuple[str, list[str], str]] = []
    for r in results:
        have = [k for k in keys if k in r.metrics]
        if r.good:
            lines.append((r.label, [show(k, r.metrics[k].mean) if k in have else "–"
                                    for k in keys], ""))
        if any(r.metrics[k].half for k in have):
            lines.append(("    95 % ±", [show(k, r.metrics[k].half) if k in have else "–"
                                         for k in keys], ""))
        lines += [(r.label, [], message) for message in failures(r)]
    return lines


def text_table(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
               chosen: Sequence[str] | None) -> str:
    """The table for a terminal."""
    room = shutil.get_terminal_size((TEXT_WIDTH, 24)).columns if sys.stdout.isatty() \
        else TEXT_WIDTH
    keys = list(chosen or main_metrics(blocks))
    lines = [line for b in blocks for line in text_grid(b.results, keys)]
    first = min(max(len(name) for name, _, _ in lines), 32)
    widths = [max(len(text) for text in (*metric(k).head, *(c[i] for _, c, _ in lines if c)))
              for i, k in enumerate(keys)]
    while chosen is None and len(keys) > 1 and first + sum(w + 2 for w in widths) > room:
        keys.pop()
        widths.pop()

    def row(name: str, cells: Iterable[str]) -> str:
        name = name if len(name) <= first else name[:first - 1] + "…"
        return f"{name:<{first}}" + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths))

    def wrap(text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(text, max(room, 40), subsequent_indent=indent,
                             break_on_hyphens=False)

    out = wrap(str(scenario.get("title") or scenario.get("name") or ""))
    out += wrap(str(scenario.get("question") or ""))
    for block in blocks:
        out += ["", block.name] if block.name else [""]
        heads = [metric(k).head if metric(k).head[1] else ("", metric(k).head[0]) for k in keys]
        out += [row("", (top for top, _ in heads)), row("", (low for _, low in heads))]
        out.append("─" * (first + sum(w + 2 for w in widths)))
        for name, cells, message in text_grid(block.results, keys):
            out += wrap(row(name, []) + "  " + message, " " * (first + 2)) if message \
                else [row(name, cells)]
    if verdicts:
        out += ["", "Goals"]
        for v in verdicts:
            out += wrap(f"  {v.state:7}  {v.row}: {v.text}: {v.detail}", " " * 11)
    out += [""] * bool(failed(blocks)) + wrap(failed(blocks))
    out.append("")
    left = [k for k in all_metrics(blocks) if k not in keys]
    if left and chosen is None:
        out += wrap("Not shown (--metrics): " + ", ".join(left), "  ")
    out += wrap(origin(blocks), "  ")
    # in one piece, so that it can be copied
    out += [f"  {command(scenario, blocks)}"] if scenario.get("command") else []
    return "\n".join(line.rstrip() for line in out) + "\n"


def origin(blocks: Sequence[Block]) -> str:
    """The versions that made the numbers, in one line."""
    seeds = all_seeds(blocks)
    parts = [f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"]
    return "; ".join(parts + [f"{k} {v}" for k, v in provenance(blocks).items()])


def csv_table(blocks: Sequence[Block], keys: Sequence[str]) -> str:
    """One line per run, including failed ones, in the units of result.json."""
    names = list(dict.fromkeys(k for b in blocks for k in b.variant))
    runs = [(b, run) for b in blocks for r in b.results for run in r.good + r.bad]
    made = [k for k in PROVENANCE if any(k in run.made for _, run in runs)]
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([f"variant.{n}" for n in names] + [*RUN_COLUMNS, *keys, *made])
    for block, run in runs:
        status = f"failed: {run.failure}" if run.failure else "ok"
        table.writerow([block.variant.get(n, "") for n in names]
                       + [run.row, run.label, run.control, run.queue, run.seed, status]
                       + [f"{run.metrics[k]:.10g}" if k in run.metrics else "" for k in keys]
                       + [run.made.get(k, "") for k in made])
    return out.getvalue()


def json_table(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
               keys: Sequence[str]) -> str:
    """Everything that the other tables show, for programs."""
    rows = [{"variant": b.variant, "row": r.row, "label": r.label, "control": r.control,
             "queue": r.queue, "seeds": [x.seed for x in r.good],
             "failed": [{"seed": x.seed, "reason": x.failure} for x in r.bad],
             "metrics": {k: {"mean": s.mean, "min": s.low, "max": s.high, "ci95": s.half,
                             "seeds": s.seeds}
                         for k in keys if (s := r.metrics.get(k))}}
            for b in blocks for r in b.results]
    data = {"name": scenario.get("name"), "title": scenario.get("title"),
            "command": command(scenario, blocks), **provenance(blocks),
            "rows": rows, "goals": [v._asdict() for v in verdicts]}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
