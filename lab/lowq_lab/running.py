# SPDX-License-Identifier: GPL-2.0
"""Runs from Python, for notebooks: rows that pandas.DataFrame() takes."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterable, Mapping

LAB = Path(__file__).resolve().parents[1]


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
            file.write_text(json.dumps(plan), encoding="utf-8")
        output([str(LAB / "lab"), "run", "--seed", str(seed), "--out", str(flows.parent), str(file)], flows)
        lines = flows.read_text(encoding="utf-8").splitlines()
    return [{"seed": seed} | flow for flow in map(json.loads, lines) if flow["type"] == "flow"]


def run(what: Mapping[str, Any] | str | Path, *, seeds: int | Iterable[int] = 1, rows: Iterable[str] = (),
        variant: str = "", out: str | Path | None = None) -> list[dict[str, Any]]:
    """Runs a scenario, by its name or file, and returns a dictionary for each of its runs: settings ("variant.flows"),
    row, seed, status and metrics. rows and variant: as --cc and --variant of bench/run; out: where results are kept.
    Or runs a plan, a dictionary or a file that ends with .json, and returns one for each flow, as flowgen(1) has it.
    seeds: 1 to this number, or these"""
    wanted = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    if isinstance(what, Mapping) or str(what).endswith(".json"):
        if list(rows) or variant:
            raise ValueError("run(): a plan has no rows and no variants")
        plan: Mapping[str, Any] | Path = Path(what) if isinstance(what, (str, Path)) else what
        return [flow for seed in wanted for flow in flows_of(plan, seed)]
    made = []
    for seed in wanted:
        words = ["--csv", "-", "--seed", str(seed), *(["--cc", ",".join(rows)] if rows else [])]
        words += [*(["--variant", variant] if variant else []), *(["--out", str(out)] if out else []), str(what)]
        text = output([str(LAB / "runner" / "run"), *words])
        made += [{key: number(value) for key, value in row.items()} for row in csv.DictReader(text.splitlines())]
    return made
