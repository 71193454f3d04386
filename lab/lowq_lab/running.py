# SPDX-License-Identifier: GPL-2.0
"""Runs from Python, for notebooks: rows that pandas.DataFrame() takes."""

from __future__ import annotations

import copy
import csv
import heapq
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

from .networks import nanoseconds
from .source import find_files

LAB = Path(__file__).resolve().parents[1]
# never numbers, even if a commit is 12e4567
TEXTS = ("row", "label", "control", "queue", "status", "commit", "kernel", "compiler", "tools")


def number(text: str) -> int | float | str | None:
    """As Python has what a CSV file says; nothing: None"""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text or None


def output(command: list[str], left: Path | None = None) -> str:
    """What a command prints; status 1 means failed runs or flows, if there is output or the file left"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode > 1 or done.returncode < 0 or done.returncode and not (left.exists() if left else done.stdout):
        raise RuntimeError((done.stderr.strip() or f"{command[0]} ended with {done.returncode}").splitlines()[-1])
    return done.stdout


def flows_of(plan: Mapping[str, Any] | Path, seed: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        file, flows = Path(directory, "plan.json"), Path(directory, "out", "flows.jsonl")
        if isinstance(plan, Path):
            file = plan
        else:
            plan = copy.deepcopy(plan)
            find_files(plan, Path.cwd())
            file.write_text(json.dumps(plan), encoding="utf-8")
        output([str(LAB / "lab"), "run", "--seed", str(seed), "--out", str(flows.parent), str(file)], flows)
        lines = flows.read_text(encoding="utf-8").splitlines()
    return [{"seed": seed} | flow for flow in map(json.loads, lines) if flow["type"] == "flow"]


def events(out: str | Path) -> Iterator[dict[str, Any]]:
    """What has happened in a plan's run, from its folder of results, in the order of time: a dictionary each, with t_ns,
    which counts from the traffic's start, and what: "start" and "end" of a flow or program, as flowgen(1) has it,
    "ack", a line of acks.csv, "queue", a bin of series.csv, and "change", an event of the plan"""
    place = Path(out)
    lines = [json.loads(line) for line in (place / "flows.jsonl").read_text(encoding="utf-8").splitlines()]
    zero = next(line["zero_ns"] for line in lines if line["type"] == "summary")
    done = [line for line in lines if line["type"] in ("flow", "program")]
    made = [{"t_ns": line[f"{what}_ns"] - zero, "what": what} | line for line in done for what in ("start", "end")]
    made += [{"t_ns": round(nanoseconds(change["at"])), "what": "change"} | change
             for change in json.loads((place / "plan.json").read_text(encoding="utf-8")).get("events", [])]

    def rows(name: str, what: str) -> Iterator[dict[str, Any]]:
        if not (place / name).exists():
            return
        with (place / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                values = {key: number(value) for key, value in row.items()}
                yield {"t_ns": round(float(row["t_s"]) * 1e9) if "t_s" in row else int(row["t_ns"]), "what": what} | values

    # a series has one queue after another
    queue = sorted(rows("series.csv", "queue"), key=time_of)
    yield from heapq.merge(sorted(made, key=time_of), rows("acks.csv", "ack"), queue, key=time_of)


def time_of(event: Mapping[str, Any]) -> int:
    return int(event["t_ns"])


def run(what: Mapping[str, Any] | str | Path, *, seeds: int | Iterable[int] = 1, rows: Iterable[str] = (),
        variant: str = "", out: str | Path | None = None) -> list[dict[str, Any]]:
    """Runs a scenario, by its name or file, and returns a dictionary for each of its runs: settings ("variant.flows"),
    row, seed, status and metrics. rows and variant: as --cc and --variant of bench/run; out: where results are kept.
    Or runs a plan, a dictionary, whose files count from the current folder, or a file that ends with .json, and returns
    one for each flow, as flowgen(1) has it.
    seeds: 1 to this number, or these"""
    given = isinstance(what, Mapping) or str(what).endswith(".json")
    if given and (list(rows) or variant):
        raise ValueError("run(): a plan has no rows and no variants")
    if given:
        plan: Mapping[str, Any] | Path = Path(what) if isinstance(what, (str, Path)) else what
        wanted = range(1, seeds + 1) if isinstance(seeds, int) else seeds
        return [flow for seed in wanted for flow in flows_of(plan, seed)]
    made = []
    for seed in [["--seeds", str(seeds)]] if isinstance(seeds, int) else [["--seed", str(seed)] for seed in seeds]:
        words = ["--csv", "-", *seed, *(["--cc", ",".join(rows)] if rows else [])]
        words += [*(["--variant", variant] if variant else []), *(["--out", str(out)] if out else []), str(what)]
        text = output([str(LAB / "runner" / "run"), *words])
        made += [{key: value if key in TEXTS else number(value) for key, value in row.items()}
                 for row in csv.DictReader(text.splitlines())]
    return made
