# SPDX-License-Identifier: GPL-2.0
"""What is printed: tables for a terminal, Markdown, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from typing import Any, Iterable, Sequence

from metrics import metric, show
from results import all_metrics, all_seeds, Block, main_metrics, only_row, Result, Spread
from goals import Verdict

TEXT_WIDTH = 100            # columns of a table that does not go to a terminal


def failures(result: Result) -> list[str]:
    """A line for each reason for which runs of `result` failed."""
    seeds: dict[str, list[str]] = {}
    for run in result.bad:
        seeds.setdefault(run.failure, []).append(run.seed)
    return [f"FAILED (seed{'s' if len(names) > 1 else ''} {', '.join(names)}): {reason}"
            for reason, names in seeds.items()]


def varies(spread_: Spread, key: str) -> bool:
    """Whether the seeds differ in the digits that are shown."""
    return show(key, spread_.low) != show(key, spread_.high)


def text_grid(results: Sequence[Result], keys: Sequence[str]) -> list[tuple[str, list[str], str]]:
    """Lines of a text table: first column, the other cells or a message in their place."""
    lines: list[tuple[str, list[str], str]] = []
    for r in results:
        have = [k for k in keys if k in r.metrics]
        parts = [(r.label, 0)] if r.good else []
        if any(varies(r.metrics[k], k) for k in have):
            parts += [("    min", 1), ("    max", 2)]
        lines += [(name, [show(k, r.metrics[k][part]) if k in have else "–" for k in keys], "")
                  for name, part in parts]
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
            where = f" [{v.variant}]" if v.variant else ""
            out += wrap(f"  {v.state:7}  {v.row}{where}: {v.text}: {v.detail}", " " * 11)
    out.append("")
    left = [k for k in all_metrics(blocks) if k not in keys]
    if left and chosen is None:
        out += wrap("Not shown (--metrics): " + ", ".join(left), "  ")
    out += wrap(origin(scenario, blocks), "  ")
    return "\n".join(line.rstrip() for line in out) + "\n"


def origin(scenario: dict[str, Any], blocks: Sequence[Block]) -> str:
    """What made the numbers, in one line."""
    seeds = all_seeds(blocks)
    parts = [f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"]
    for key in ("command", "kernel"):
        if scenario.get(key):
            parts.append(f"{key} {scenario[key]}" if key == "kernel" else str(scenario[key]))
    return "; ".join(parts)


def markdown_table(scenario: dict[str, Any], blocks: Sequence[Block],
                   verdicts: Sequence[Verdict], keys: Sequence[str]) -> str:
    """Tables for a README."""
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(re.sub(r"\s+", " ", c).replace("|", "\\|") for c in cells) + " |"

    def cells(result: Result) -> list[str]:
        texts = []
        for key in keys:
            s = result.metrics.get(key)
            text = "–" if s is None else show(key, s.mean)
            if s and varies(s, key):
                text += f" ({show(key, s.low)}–{show(key, s.high)})"
            texts.append(text)
        return texts

    def table(first: Sequence[str], lines: Iterable[tuple[Sequence[str], Result]]) -> list[str]:
        text = [line([*first, *heads]), "|" + "---|" * len(first) + "---:|" * len(keys)]
        for start, result in lines:
            if result.good:
                text.append(line([*start, *cells(result)]))
            text += [line([*start, failure] + [""] * (len(keys) - 1))
                     for failure in failures(result)]
        return text + [""]

    out: list[str] = []
    keys = keys or [""]
    heads = [f"{metric(k).name} ({metric(k).unit})" if metric(k).unit else metric(k).name
             for k in keys]
    if only_row(blocks):
        names = list(dict.fromkeys(k for b in blocks for k in b.variant))
        out += [f"{blocks[0].results[0].label}:", ""]
        out += table(names, (([str(b.variant.get(n, "–")) for n in names], b.results[0])
                             for b in blocks))
    else:
        for block in blocks:
            if block.name:
                out += [f"### {block.name}", ""]
            out += table(["row"], (([r.label], r) for r in block.results))
    for v in verdicts:
        where = f" ({v.variant})" if v.variant else ""
        out.append(f"- **{v.state}**: {v.row}{where}: {v.text}: {v.detail}")
    out += [""] if verdicts else []
    out += [*textwrap.wrap(str(scenario["conclusion"]), 100), ""] if "conclusion" in scenario else []
    return "\n".join(out + [origin(scenario, blocks)]) + "\n"


def csv_table(blocks: Sequence[Block], keys: Sequence[str]) -> str:
    """One line per row and variant in the units of result.json, one more per failed run."""
    names = list(dict.fromkeys(k for b in blocks for k in b.variant))
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([f"variant.{n}" for n in names]
                   + ["row", "label", "control", "queue", "seeds", "status"]
                   + [k + part for k in keys for part in ("", "_min", "_max")])
    for block in blocks:
        for r in block.results:
            start = [block.variant.get(n, "") for n in names] + [r.row, r.label, r.control, r.queue]
            if r.good:
                cells = [f"{v:.10g}" if v is not None else ""
                         for k in keys for v in r.metrics.get(k, (None, None, None))]
                table.writerow(start + [" ".join(x.seed for x in r.good), "ok"] + cells)
            for run in r.bad:
                table.writerow(start + [run.seed, f"failed: {run.failure}"]
                               + [""] * (3 * len(keys)))
    return out.getvalue()


def json_table(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
               keys: Sequence[str]) -> str:
    """Everything the other tables show, for programs."""
    rows = [{"variant": b.variant, "row": r.row, "label": r.label, "control": r.control,
             "queue": r.queue, "seeds": [x.seed for x in r.good],
             "failed": [{"seed": x.seed, "reason": x.failure} for x in r.bad],
             "metrics": {k: {"mean": s.mean, "min": s.low, "max": s.high}
                         for k in keys if (s := r.metrics.get(k))}}
            for b in blocks for r in b.results]
    data = {"name": scenario.get("name"), "title": scenario.get("title"),
            "command": scenario.get("command"), "kernel": scenario.get("kernel"),
            "rows": rows, "goals": [v._asdict() for v in verdicts]}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
