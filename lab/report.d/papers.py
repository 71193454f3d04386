# SPDX-License-Identifier: GPL-2.0
"""What a paper shows, beside what was measured here: "paper" in scenario.json."""

from __future__ import annotations

import csv
import io
from typing import Any, Mapping, NamedTuple, Sequence

from metrics import metric, rough, show
from results import Block, fail, has, Spread, varied

HEADS = ("figure", "the paper", "in-tree", "ours", "difference of set-up")
NEITHER = "A line whose paper's value is in words has no number in the paper."


class Beside(NamedTuple):
    """One value of a paper in one variant, and the same value here."""
    figure: str
    what: str
    metric: str
    variant: dict[str, Any]
    least: float | None     # the paper's value, or its range; none: only says
    most: float | None
    says: str               # the paper in words
    in_tree: str            # the row of a control of the kernel that stands for the paper's, or ""
    measured_in_tree: Spread | None
    ours: str               # the row of ours that does
    measured_ours: Spread | None
    differs: str            # in the set-up, beyond what differs for all


def text_of(entry: Mapping[str, Any], *names: str) -> bool:
    """Whether these fields are text, or not there."""
    return all(isinstance(entry.get(name, ""), str) for name in names)


def value_of(entry: Mapping[str, Any]) -> tuple[float | None, float | None] | None:
    """The least and the most of an entry's value: a number, or a list of two; None: neither."""
    value = entry.get("value")
    pair = value if isinstance(value, list) else [value, value]
    if value is None:
        return None, None
    if len(pair) != 2 or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in pair):
        return None
    return (float(pair[0]), float(pair[1])) if pair[0] <= pair[1] else None


def well_formed(entry: Any) -> bool:
    """Whether an entry has a figure, a metric, a row and something to compare with."""
    return (isinstance(entry, dict) and bool(entry.get("figure")) and bool(entry.get("metric"))
            and text_of(entry, "figure", "what", "metric", "says", "in_tree", "ours", "differs")
            and bool(entry.get("in_tree") or entry.get("ours"))
            and bool(entry.get("says") or "value" in entry) and value_of(entry) is not None
            and isinstance(entry.get("variant", {}), dict))


def about(scenario: Mapping[str, Any]) -> str:
    """Where the paper's values are from, and what differs here for all of them."""
    paper = scenario.get("paper") or {}
    return f"The paper: {paper.get('source')}." \
        + (f" What differs here: {paper['differs']}." if paper.get("differs") else "")


def beside(scenario: Mapping[str, Any], blocks: Sequence[Block]) -> list[Beside]:
    """Every value of the scenario's paper, in each variant that it is stated for."""
    paper = scenario.get("paper") or {}
    if paper and not (isinstance(paper, dict) and isinstance(paper.get("figures"), list)
                      and isinstance(paper.get("source"), str) and text_of(paper, "differs")):
        fail(1, "scenario.json: paper needs source and a list of figures")
    out = []
    for number, entry in enumerate(paper.get("figures", []), 1):
        if not well_formed(entry):
            fail(1, f"scenario.json: figure {number} of paper needs figure, metric, in_tree or ours, "
                    "and a value (a number or [least, most]) or says")
        least, most = value_of(entry) or (None, None)
        fits = [b for b in blocks if has(b, entry.get("variant", {}))]
        if not fits:
            fail(1, f"scenario.json: figure {number} of paper: no variant has {entry['variant']}")
        for block in fits:
            measured = {r.row: r.metrics.get(entry["metric"]) for r in block.results}
            rows = [str(entry.get(name) or "") for name in ("in_tree", "ours")]
            words = ", ".join(block.words[n] for n in varied(blocks) if n in block.words)
            what = str(entry.get("what") or metric(entry["metric"]).name)
            out.append(Beside(entry["figure"], f"{what} ({words})" if words else what,
                              entry["metric"], block.variant, least, most,
                              str(entry.get("says") or ""), rows[0], measured.get(rows[0]),
                              rows[1], measured.get(rows[1]),
                              str(entry.get("differs") or "")))
    return out


def with_unit(key: str, text: str) -> str:
    """`text`, a value of metric `key`, with its unit."""
    unit = metric(key).unit
    return f"{text} {unit}" if unit else text


def stated(b: Beside) -> str:
    """What the paper says, as text."""
    if b.least is None or b.most is None:
        return b.says
    number = show(b.metric, b.least)
    if b.least != b.most:
        number += f" to {show(b.metric, b.most)}"
    return with_unit(b.metric, number) + (f" ({b.says})" if b.says else "")


def deviation(b: Beside, mean: float) -> str:
    """How far `mean` is from the paper's value: in percent of it, or in points of a share."""
    if b.least is None or b.most is None:
        return ""
    if b.least < b.most and b.least <= mean <= b.most:
        return "within"
    limit = b.least if mean < b.least else b.most
    if mean == limit:
        return "the same"
    gap, sign = abs(mean - limit), "−" if mean < limit else "+"
    if metric(b.metric).unit == "%":
        return f"{sign}{rough(gap * metric(b.metric).scale)} points"
    return f"{sign}{rough(100 * gap / abs(limit))} %" if limit else ""


def measured_cell(b: Beside, row: str, spread: Spread | None) -> str:
    """What a row showed, and its deviation."""
    if not row:
        return "–"
    if spread is None:
        return f"{row}: no value"
    number = show(b.metric, spread.mean)
    if spread.half:
        number += f" ± {show(b.metric, spread.half)}"
    far = deviation(b, spread.mean)
    return f"{row}: {with_unit(b.metric, number)}" + (f" ({far})" if far else "")


def paper_cells(b: Beside) -> list[str]:
    """The line of a table that HEADS are of."""
    return [f"{b.figure}: {b.what}", stated(b), measured_cell(b, b.in_tree, b.measured_in_tree),
            measured_cell(b, b.ours, b.measured_ours), b.differs or "–"]


def paper_grid(lines: Sequence[Beside]) -> list[list[str]]:
    """The table with its heads; without its last column if that is empty."""
    columns = len(HEADS) if any(b.differs for b in lines) else len(HEADS) - 1
    return [list(HEADS[:columns]), *(paper_cells(b)[:columns] for b in lines)]


def as_object(b: Beside) -> dict[str, Any]:
    """For JSON and CSV, in the units of result.json."""
    data: dict[str, Any] = {"figure": b.figure, "what": b.what, "metric": b.metric,
                            "variant": b.variant, "least": b.least, "most": b.most, "says": b.says}
    for name, row, spread in (("in_tree", b.in_tree, b.measured_in_tree),
                              ("ours", b.ours, b.measured_ours)):
        data |= {name: row or None, f"{name}_mean": spread.mean if spread else None,
                 f"{name}_ci95": spread.half if spread else None}
    return data | {"differs": b.differs}


def paper_csv(lines: Sequence[Beside]) -> str:
    """One line for each value of the paper."""
    out = io.StringIO()
    rows = [as_object(b) for b in lines]
    table = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    table.writeheader()
    for row in rows:
        row["variant"] = " ".join(f"{k}={v}" for k, v in row["variant"].items())
        table.writerow({k: "" if v is None else f"{v:.10g}" if isinstance(v, float) else v
                        for k, v in row.items()})
    return out.getvalue()
