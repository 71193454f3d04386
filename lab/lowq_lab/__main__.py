# SPDX-License-Identifier: GPL-2.0
"""What bench/run asks of a scenario in Python:

    python3 -m lowq_lab titles FILE...    a line for each: name, tab, title
    python3 -m lowq_lab listing FILE      a line for each variant, then one of its modules and one of its rows
    python3 -m lowq_lab describe FILE COMMAND ROWS <RUNS
                                          what is asked for, as the report reads it
    python3 -m lowq_lab guest FILE        its run, for lab/runner/guest
    python3 -m lowq_lab check FILE        whether each variant's plan is one; needs labnet
    python3 -m lowq_lab counts FILE       what its runs depend on
    python3 -m lowq_lab alone FILE        its shell, for shellcheck
    python3 -m lowq_lab plan FILE DIR VARIANT ROW CONTROL QUEUE SEED
                                          writes DIR/plan.json and DIR/prepare, what is done when it is built
    python3 -m lowq_lab metrics FILE DIR VARIANT ROW CONTROL QUEUE SEED
                                          NAME=VALUE lines of the results in DIR

What is wrong is one line that begins with FILE:LINE, and the exit status 1."""

from __future__ import annotations

import ast
import csv
import json
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from .describe import describe, words
from .scenario import lines_of, load, METRICS, Results, results_in, Run, Scenario, Setting


DIRECTIVE = "# shellcheck shell=bash disable=SC2034,SC2154"  # the guest sets the settings, and reads what is set


def refuse(why: str) -> NoReturn:
    print(why.replace("\n", " "), file=sys.stderr)
    sys.exit(1)


def say_where(path: Path, error: BaseException) -> NoReturn:
    """The line of the scenario that led to an error"""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        refuse(f"{path}:{error.lineno}: {error.msg}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    what = f"no setting '{error.args[0]}'" if isinstance(error, KeyError) and error.args else str(error)
    refuse(f"{path}:{lines[-1] if lines else 1}: {what or type(error).__name__}")


def setting(text: str) -> Setting:
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


def run_of(variant: str, row: str, control: str, queue: str, seed: str) -> Run:
    pairs = (word.partition("=") for word in variant.split())
    return Run(row, control, queue, int(seed), {key: setting(value) for key, _, value in pairs})


def function_of(text: str) -> str:
    """The text if it defines run_scenario; otherwise run_scenario with the text as its body"""
    return text if re.search(r"(?m)^run_scenario\(\)", text) else f"run_scenario() {{ {text}\n}}"


def guest(scenario: Scenario, path: Path) -> str:
    if scenario.plan:
        return f"run_scenario() {{ python_scenario {shlex.quote(str(path))}; }}"
    of_queue = ", ".join(f"{name}: .{where}" for name, where in METRICS.items())
    return f"{function_of(scenario.shell)}\nQUEUE_METRICS={shlex.quote(of_queue)}\n" \
        f"METRICS_OF={shlex.quote(str(path)) if scenario.metrics else ''}"


def asked(scenario: Scenario, path: Path, command: str, rows: str) -> dict[str, Any]:
    """What the runs on standard input are: lines of OUT, SCENARIO, VARIANT, ROW, SEED, with tabs"""
    runs = [line.rstrip("\n").split("\t") for line in sys.stdin]
    made = describe(scenario, path.stem, command, rows=rows.split(),
                    variants=list(dict.fromkeys(run[2] for run in runs)))
    return made | {"runs": ["/".join((run[2] or "all", *run[3:])) for run in runs]}


def counts(scenario: Scenario, path: Path) -> str:
    """What a run depends on: the file without comments and the scenario's texts and goals"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Scenario", "replace"):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg in ("plan", "metrics")]
    return ast.unparse(tree) + re.sub(r"(?m)^\s*#.*\n", "", scenario.shell)


def alone(scenario: Scenario, path: Path) -> str:
    """The shell of a scenario, each line with its number in the file"""
    if not scenario.shell:
        return DIRECTIVE
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) \
                and node.value.value == scenario.shell:
            return DIRECTIVE + "\n" * (node.value.lineno - 1) + function_of(scenario.shell)
    return DIRECTIVE + "\n" + function_of(scenario.shell)


def check(scenario: Scenario, path: Path) -> None:
    if scenario.shell:
        parsed = subprocess.run(["bash", "-n"], input=alone(scenario, path), text=True, check=False,
                                stderr=subprocess.PIPE)
        if parsed.returncode:
            at, _, reason = parsed.stderr.split("\n")[0].removeprefix("bash: line ").partition(": ")
            refuse(f"{path}:{at}: shell: {reason}")
    for variant in scenario.variants if scenario.plan else ():
        assert scenario.plan
        plan = scenario.plan(scenario.example(variant))
        plan.pop("prepare", None)
        done = subprocess.run(["labnet", "--check", "-"], input=json.dumps(plan), text=True, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            why = done.stderr.strip().removeprefix("labnet: standard input: ")
            line, of = scenario.plan.__code__.co_firstlineno, f" of {words(variant)}" if variant else ""
            refuse(f"{path}:{line}: the plan{of}: {why}")


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
        if action == "titles":
            for name in arguments[1:]:
                path = Path(name).resolve()
                print(f"{path.stem}\t{lines_of(load(path).title)}")
            return 0
        scenario = load(path)
        if action == "listing":
            print("\n".join([*(words(variant) for variant in scenario.variants), " ".join(scenario.modules),
                             " ".join(scenario.rows)]))
        elif action == "describe":
            json.dump(asked(scenario, path, *given), sys.stdout)
        elif action == "guest":
            print(guest(scenario, path))
        elif action == "check":
            check(scenario, path)
        elif action == "counts":
            print(counts(scenario, path))
        elif action == "alone":
            print(alone(scenario, path))
        elif action == "plan" and scenario.plan:
            plan = scenario.plan(run_of(*given[1:]))
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
        say_where(path, error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
