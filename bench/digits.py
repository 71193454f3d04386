# SPDX-License-Identifier: GPL-2.0
"""bench/digits.csv: results that are kept, for bench/check and bench/publish.

A line is a metric of a row in a variant of a scenario: which kernel and compiler made it, and its value with seed 1, 2
and so on. Kept are the numbers of the pages of questions, with all seeds, and for regressions the first metrics of
each row of each scenario, in its first variant, with seed 1; all variants of those beside theory (validate-*)."""
from __future__ import annotations

import csv
import json
import sys
import tomllib
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

BENCH = Path(__file__).resolve().parent
sys.path[1:1] = [str(BENCH.parent / "lab"), str(BENCH.parent / "scripts")]
sys.dont_write_bytecode = True

from lowq_lab import load, Scenario  # noqa: E402

FILE, QUESTIONS = BENCH / "digits.csv", BENCH / "questions.toml"
SEEDS = 5           # of a page's numbers
FIRST = 4           # metrics of a row that are kept for regressions
HEAD = ["scenario", "variant", "row", "metric", "made", *map(str, range(1, SEEDS + 1))]


class Key(NamedTuple):
    """What is measured."""
    scenario: str
    variant: str            # as the scenario writes it
    row: str
    metric: str


class Digits(NamedTuple):
    """What was measured: with which kernel and compiler, and the value of each seed from 1 on."""
    made: str
    values: tuple[str, ...]


class DigitsError(Exception):
    """The reason why there are no digits."""


def made_by(result: Mapping[str, Any]) -> str:
    """Kernel and compiler of a result, in short."""
    kernel, compiler = str(result.get("kernel") or "?").split(), str(result.get("compiler") or "?").split()
    return f"{kernel[min(1, len(kernel) - 1)]} {compiler[0]} {compiler[-1]}"


def shown(value: float) -> str:
    """A value as it is kept."""
    return f"{value:.10g}"


def read() -> dict[Key, Digits]:
    """All of digits.csv."""
    with FILE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or lines[0] != HEAD:
        raise DigitsError(f"{FILE}: not a file of digits")
    return {Key(*line[:4]): Digits(line[4], tuple(filter(None, line[5:]))) for line in lines[1:]}


def write(digits: Mapping[Key, Digits]) -> None:
    """Writes digits.csv, in the order of scenarios, variants and rows."""
    with FILE.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEAD)
        out.writerows([*key, kept.made, *kept.values] for key, kept in digits.items())


def words(variant: Mapping[str, Any]) -> str:
    """A variant as bench/run takes it."""
    return " ".join(f"{key}={value}" for key, value in variant.items())


def place(top: Path, key: Key, seed: int) -> Path:
    """Where a run's result is."""
    return top / "runs" / (key.variant or "all") / key.row / str(seed) / "result.json"


def measured(top: Path, key: Key, seed: int) -> Digits | None:
    """A run's value in a results directory of bench/run, if it is there and good."""
    try:
        result = json.loads(place(top, key, seed).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    value = result["metrics"].get(key.metric)
    return Digits(made_by(result), (shown(value),)) if result["status"] == "ok" and value is not None else None


def scenarios() -> dict[str, Scenario]:
    """Every scenario of the project by name, except the demo's, whose numbers are in README.md."""
    return {file.stem: load(file) for file in sorted(BENCH.glob("scenarios/*.py")) if not file.stem.startswith("demo")}


class Cell(NamedTuple):
    """One number of a page: the column's label, what it is, and its scale to the line's unit."""
    label: str
    key: Key


class Line(NamedTuple):
    """One line of a page: what is measured, its unit, and the columns that have it."""
    says: str
    unit: str
    cells: tuple[Cell, ...]


class Question(NamedTuple):
    """A page."""
    name: str
    title: str
    question: str
    group: str              # the title of its columns
    columns: dict[str, str]  # labels, and the row whose mark each has in the figure
    against: str            # what 1 is in the figure; "": the first column is the reference
    lines: tuple[Line, ...]
    findings: tuple[str, ...]
    missed: str


def matching(name: str, scenario: Scenario, settings: Mapping[str, str]) -> str:
    """The variant that has just these settings, or else the only one with them; an empty one is one that it lacks."""
    every = [{key: str(value) for key, value in variant.items()} for variant in scenario.variants]
    found = [one for one in every if one == {key: value for key, value in settings.items() if value}] or \
        [one for one in every if all(one.get(key, "") == value for key, value in settings.items())]
    if len(found) != 1:
        raise DigitsError(f"{QUESTIONS}: {len(found)} variants of {name} have {words(settings)}, not one")
    return words(found[0])


def line_of(text: str, columns: Mapping[str, Sequence[str]], every: Mapping[str, Scenario]) -> Line:
    """A line of a question in questions.toml."""
    says, unit, metric, where, *others = (part.strip() for part in text.split("|"))
    name, *settings = where.split()
    if name not in every:
        raise DigitsError(f"{QUESTIONS}: no scenario '{name}'")
    changed = {label.strip(): change.split() for label, _, change in (other.partition(":") for other in others)}
    cells = []
    for label, rows in columns.items():
        own = changed.get(label, [])
        rows = [word for word in own if "=" not in word] or rows
        row = next((row for row in rows if row in every[name].rows), None)
        if row:
            merged = dict(word.split("=", 1) for word in [*settings, *(word for word in own if "=" in word)])
            cells.append(Cell(label, Key(name, matching(name, every[name], merged), row, metric)))
    if not cells:
        raise DigitsError(f"{QUESTIONS}: {name} has none of the rows of '{says}'")
    return Line(says, unit, tuple(cells))


def questions(every: Mapping[str, Scenario]) -> list[Question]:
    """The pages that questions.toml asks for."""
    data = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))
    made = []
    for one in data["question"]:
        columns = {label: rows for label, rows in data["columns"][one["columns"]].items() if label != "title"}
        lines = tuple(line_of(text, columns, every) for text in one["lines"].strip().splitlines())
        made.append(Question(one["name"], one["title"], one["question"], data["columns"][one["columns"]]["title"],
                             {label: rows[0] for label, rows in columns.items()}, one.get("against", ""), lines,
                             tuple(one["findings"]), one["missed"]))
    return made


def wanted(every: Mapping[str, Scenario], pages: Sequence[Question]) -> Iterator[tuple[Key, int]]:
    """What is kept, in the order of the file, and with how many seeds."""
    of_pages = {cell.key for page in pages for line in page.lines for cell in line.cells}
    for name, scenario in every.items():
        first = words(scenario.variants[0])
        for variant in map(words, scenario.variants):
            for row in scenario.rows:
                metrics = [*scenario.shown[:FIRST], *([] if scenario.shown else ["utilisation", "delay_p99_us"])]
                metrics += [key.metric for key in of_pages if key[:3] == (name, variant, row)]
                for metric in dict.fromkeys(sorted(metrics)):
                    key = Key(name, variant, row, metric)
                    if key in of_pages:
                        yield key, SEEDS
                    elif variant == first or name.startswith("validate-"):
                        yield key, 1
