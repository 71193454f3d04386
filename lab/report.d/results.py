# SPDX-License-Identifier: GPL-2.0
"""Reads a results directory of the lab: runs, rows, variants."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping, NamedTuple, NoReturn, Sequence

from metrics import EXTRA, fit_times, METRICS
from words import in_words
from plots import numbers_of

# versions that made a run: columns of results.csv, keys of scenario.json and result.json
PROVENANCE = ("commit", "kernel", "compiler", "tools")
RUN_COLUMNS = ("row", "label", "control", "queue", "seed", "status")
# Student's t for 95 %, two-sided, by degrees of freedom from 1 on
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
           2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
           2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


class Run(NamedTuple):
    """One result.json."""
    place: Path
    variant_dir: str
    variant: dict[str, Any] | None
    row: str
    label: str
    control: str
    queue: str
    seed: str
    failure: str            # "" if the run succeeded
    metrics: dict[str, float]
    made: dict[str, str]    # the versions in PROVENANCE


class Spread(NamedTuple):
    """One metric over the seeds."""
    mean: float
    low: float
    high: float
    half: float             # the mean's 95 % confidence interval is mean ± half
    seeds: int              # those that have a value


class Result(NamedTuple):
    """All seeds of one row in one variant."""
    row: str
    label: str
    colour: int
    control: str
    queue: str
    good: list[Run]
    bad: list[Run]
    metrics: dict[str, Spread]


class Block(NamedTuple):
    """One variant of the scenario."""
    variant: dict[str, Any]
    name: str
    results: list[Result]
    words: dict[str, str]   # each setting that the variant has, in words


def fail(status: int, message: str) -> NoReturn:
    """Prints one line to stderr and exits: 2 for wrong usage, 1 for wrong data."""
    print("report: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(status)


def read_text(path: Path) -> str:
    """The text of `path`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        fail(1, f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        fail(1, f"{path}: not UTF-8 text")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in `path`."""
    try:
        data = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        fail(1, f"{path}: not JSON: {error}")
    if not isinstance(data, dict):
        fail(1, f"{path}: not a JSON object")
    return data


def order(value: Any) -> tuple[Any, ...]:
    """A key that sorts 2 before 10, 100mbit before 1gbit and 50us before 1ms."""
    text = str(value).lower()
    units = {"": 1, "bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12,
             "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "k": 1e3, "m": 1e6, "g": 1e9}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text)
    if found and found[2] in units:
        return (0, float(found[1]) * units[found[2]], text)
    parts = re.split(r"(\d+)", text)
    return (1, tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts), text)


def read_run(place: Path, scenario: dict[str, Any]) -> Run:
    """The run in directory `place`, which is runs/VARIANT/ROW/SEED."""
    variant_dir, row, seed = place.parts[-3:]
    path = place / "result.json"
    if not path.exists():
        return Run(place, variant_dir, None, row, row, "", "", seed, "no result.json", {}, {})
    data = read_object(path)
    variant, status = data.get("variant", {}), data.get("status")
    numbers = data.get("metrics") or {}
    if not isinstance(variant, dict) or not isinstance(numbers, dict):
        fail(1, f"{path}: variant and metrics must be JSON objects")
    failure = ""
    if status != "ok":
        failure = re.sub(r"^failed:?\s*", "", str(status or "no status")) or "no reason given"
    name = str(data.get("row") or row)
    metrics = {str(k): float(v) for k, v in numbers.items()
               if isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)}
    return Run(place, variant_dir, variant, name, str(data.get("label") or name),
               str(data.get("control") or ""), str(data.get("queue") or ""),
               str(data.get("seed", seed)), failure, metrics,
               {k: str(v) for k in PROVENANCE if (v := data.get(k) or scenario.get(k))})


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % confidence interval of the mean (Student's t); 0 for one value."""
    freedom = len(values) - 1
    if not freedom:
        return 0.0
    t = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96
    return t * statistics.stdev(values) / math.sqrt(len(values))


def spread(runs: Iterable[Run]) -> dict[str, Spread]:
    """Each metric over the seeds, in the order of first appearance."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for key, value in run.metrics.items():
            values.setdefault(key, []).append(value)
    return {k: Spread(math.fsum(v) / len(v), min(v), max(v), half_interval(v), len(v))
            for k, v in values.items()}


def variant_name(variant: dict[str, Any]) -> str:
    """`variant` in one line."""
    return " ".join(f"{k}={v}" for k, v in variant.items())


def read_results(top: Path) -> tuple[dict[str, Any], list[Block]]:
    """The scenario and its variants, each with its rows in the order of display."""
    scenario = read_object(top / "scenario.json")
    for key in ("goals", "rows", "metrics", "runs"):
        if not isinstance(scenario.get(key, []), list):
            fail(1, f"{top}/scenario.json: {key} must be a list")
    asked = scenario.get("runs")    # what is there from other commands is not reported on
    places = sorted(p for p in top.glob("runs/*/*/*") if p.is_dir()
                    and (asked is None or "/".join(p.parts[-3:]) in asked))
    runs = [read_run(p, scenario) for p in places]
    if not runs:
        fail(1, f"{top}: no runs (expected {top}/runs/VARIANT/ROW/SEED/result.json)")
    runs.sort(key=lambda r: order(r.seed))

    first = scenario.get("rows") or [scenario.get("reference_row")]
    rows = sorted({r.row for r in runs},
                  key=lambda r: (first.index(r) if r in first else len(first), order(r)))
    colours = numbers_of(rows)
    blocks = []
    for directory in dict.fromkeys(r.variant_dir for r in runs):
        here = [r for r in runs if r.variant_dir == directory]
        variant = next((r.variant for r in here if r.variant is not None), {"variant": directory})
        results = []
        for row in rows:
            mine = [r for r in here if r.row == row]
            if not mine:
                continue
            good = [r for r in mine if not r.failure]
            best = next((r for r in good + mine if r.variant is not None), mine[0])
            results.append(Result(row, best.label, colours[row], best.control, best.queue, good,
                                  [r for r in mine if r.failure], spread(good)))
        blocks.append(Block(variant, variant_name(variant), results,
                            in_words(variant, scenario.get("words") or {})))
    blocks.sort(key=lambda b: [order(v) for v in b.variant.values()])
    return scenario, blocks


def all_metrics(blocks: Sequence[Block]) -> list[str]:
    """Every metric present: known ones first, in their order."""
    found = dict.fromkeys(k for b in blocks for r in b.results for k in r.metrics)
    return [k for k in METRICS if k in found] + [k for k in found if k not in METRICS]


def fit_units(blocks: Sequence[Block]) -> None:
    """From here on, these results' times are shown in units that fit them."""
    fit_times({k: max(abs(r.metrics[k].mean) for b in blocks for r in b.results if k in r.metrics)
               for k in all_metrics(blocks)})


def main_metrics(blocks: Sequence[Block]) -> list[str]:
    """The default columns of a table, the less important ones last."""
    found = all_metrics(blocks)
    return [k for k in found if k not in EXTRA] + [k for k in found if k in EXTRA]


def page_metrics(blocks: Sequence[Block]) -> list[str]:
    """The columns of a page whose scenario does not name any."""
    return [k for k in main_metrics(blocks) if k not in EXTRA] or all_metrics(blocks)


def all_seeds(blocks: Sequence[Block]) -> list[str]:
    """The seeds of all runs."""
    return sorted({r.seed for b in blocks for x in b.results for r in x.good + x.bad}, key=order)


def provenance(blocks: Sequence[Block]) -> dict[str, str]:
    """The versions that made the runs: each key with its values, of which a resumed sweep may have
    several."""
    runs = [run for b in blocks for r in b.results for run in r.good + r.bad]
    values = {k: list(dict.fromkeys(run.made[k] for run in runs if k in run.made))
              for k in PROVENANCE}
    return {k: ", ".join(v) for k, v in values.items() if v}


def command(scenario: dict[str, Any], blocks: Sequence[Block]) -> str:
    """The command that repeats the runs."""
    text, seeds = str(scenario.get("command") or ""), len(all_seeds(blocks))
    return f"{text} --seeds {seeds}" if text.startswith("bench/run") and seeds > 1 else text


def settings(text: str) -> dict[str, str]:
    """The settings NAME=VALUE... of a variant."""
    return dict(s.partition("=")[::2] for s in text.split())


def has(block: Block, want: Mapping[str, Any]) -> bool:
    """Whether a variant has these settings; one without a value is one that it must not have."""
    return all(str(block.variant.get(k, "")) == str(v) for k, v in want.items())


def varied(blocks: Sequence[Block]) -> list[str]:
    """The settings in which variants differ."""
    return [n for n in dict.fromkeys(k for b in blocks for k in b.variant)
            if len({str(b.variant.get(n, "")) for b in blocks}) > 1]


def same_everywhere(blocks: Sequence[Block]) -> list[str]:
    """The settings that all of several variants share, in words."""
    return [words for name, words in blocks[0].words.items() if name not in varied(blocks)]


def only_row(blocks: Sequence[Block]) -> bool:
    """Whether there are only variants to compare."""
    return len(blocks) > 1 and len({r.row for b in blocks for r in b.results}) == 1
