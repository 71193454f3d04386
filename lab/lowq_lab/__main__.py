# SPDX-License-Identifier: GPL-2.0
"""What lab/runner/guest and devel/lint ask of a scenario:

    python3 -m lowq_lab alone FILE        its shell, for shellcheck
    python3 -m lowq_lab guest FILE VARIANT ROW CONTROL QUEUE SEED
                                          its run, for lab/runner/guest
    python3 -m lowq_lab plan FILE DIR VARIANT ROW CONTROL QUEUE SEED
                                          writes DIR/plan.json and DIR/prepare, what is done when it is built
    python3 -m lowq_lab metrics FILE DIR VARIANT ROW CONTROL QUEUE SEED
                                          NAME=VALUE lines of the results in DIR

What is wrong is one line that begins with FILE:LINE, and the exit status 1."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from pathlib import Path

from .scenario import load, Results, results_in, Run, Scenario, Setting
from .source import alone, find_files, function_of, where


def setting(text: str) -> Setting:
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


def run_of(variant: str, row: str, control: str, queue: str, seed: str) -> Run:
    pairs = (word.partition("=") for word in variant.split())
    return Run(row, control, queue, int(seed), {key: setting(value) for key, _, value in pairs})


def guest(scenario: Scenario, path: Path, run: Run) -> str:
    file = shlex.quote(str(path))
    if scenario.plan:
        return f"run_scenario() {{ python_scenario {file}; }}"
    phases = " ".join(str(run.phase(number)) for number in range(256))  # of as many hosts as a network of shell can have
    return f"{function_of(scenario.shell)}\nPHASES=({phases}) METRICS_OF={file}"


def first_series(directory: Path, results: Results) -> None:
    """The first queue's part of the series, as the report draws it"""
    for name, drawn in (("series.csv", "queue.csv"), ("flow-series.csv", "flows.csv")):
        series = directory / name
        if not results.queues or not series.exists():
            continue
        node, dev = results.queues[0]["node"], results.queues[0]["dev"]
        with series.open(encoding="utf-8", newline="") as file, (directory / drawn).open("w", encoding="utf-8") as out:
            for number, row in enumerate(csv.reader(file)):
                if number == 0 or row[:2] == [node, dev]:
                    print(",".join(row[2:]), file=out)


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    action, path, given = arguments[0], Path(arguments[1]).resolve(), arguments[2:]
    try:
        scenario = load(path)
        if action == "guest":
            print(guest(scenario, path, run_of(*given)))
        elif action == "alone":
            print(alone(scenario, path))
        elif action == "plan" and scenario.plan:
            plan = scenario.plan(run_of(*given[1:]))
            find_files(plan, path.parent)
            Path(given[0], "prepare").write_text("\n".join(plan.pop("prepare", [])), encoding="utf-8")
            Path(given[0], "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        elif action == "metrics":
            directory, run = Path(given[0]), run_of(*given[1:])
            results = results_in(directory, run)
            if scenario.plan:
                first_series(directory, results)
            for name, value in scenario.measured(results).items():
                print(f"{name}={json.dumps(value)}")
    except Exception as error:  # pylint: disable=broad-exception-caught
        print(where(path, error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
