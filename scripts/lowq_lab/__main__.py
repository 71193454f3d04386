# SPDX-License-Identifier: GPL-2.0
"""What bench/run asks of a scenario in Python:

    python3 -m lowq_lab shell FILE        the scenario as bench/run knows them, in shell
    python3 -m lowq_lab check FILE        whether each variant's plan is one; needs labnet
    python3 -m lowq_lab plan FILE VARIANT ROW CONTROL QUEUE SEED
    python3 -m lowq_lab metrics FILE DIR  NAME=VALUE lines of the results in DIR

What is wrong is one line that begins with FILE:LINE, and the exit status 1."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from .scenario import Results, results_in, Run, Scenario, Setting


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


def load(path: Path) -> Scenario:
    names: dict[str, Any] = {"__name__": "scenario", "__file__": str(path)}
    sys.path.insert(1, str(path.parent))  # its own modules
    text = path.read_text(encoding="utf-8")
    exec(compile(text, str(path), "exec"), names)  # pylint: disable=exec-used
    found = [value for value in names.values() if isinstance(value, Scenario)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} scenarios, not one: SCENARIO = Scenario(...)")
    return found[0]


def words(variant: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in variant.items())


def setting(text: str) -> Setting:
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


def shell(scenario: Scenario, path: Path) -> str:
    topology = scenario.topology
    if not topology:
        first = scenario.plan(Run(scenario.rows[0], "cubic", "fifo", 1, scenario.variants[0]))
        topology = "\n".join(" ".join(filter(None, [*(end["node"] for end in link["ends"]), link.get("rate"),
                                                    link.get("delay")])) for link in first["links"][:12])
        topology += f"\n... {len(first['links'])} links" if len(first["links"]) > 12 else ""
    texts = {"TITLE": scenario.title, "QUESTION": scenario.question, "TOPOLOGY": "\n" + topology,
             "ROWS": " ".join(scenario.rows), "PARAMS": json.dumps(dict(scenario.params)),
             "GOALS": json.dumps([goal.as_json() for goal in scenario.goals]), "REFERENCE": scenario.reference}
    if scenario.shown:
        texts["COLUMNS_SHOWN"] = json.dumps(list(scenario.shown))
    lines = [f"{name}={shlex.quote(text)}" for name, text in texts.items()]
    lines.append("VARIANTS=(" + " ".join(shlex.quote(words(variant)) for variant in scenario.variants) + ")")
    lines.append(f"run_scenario() {{ python_scenario {shlex.quote(str(path))}; }}")
    return "\n".join(lines)


def check(scenario: Scenario, path: Path) -> None:
    for variant in scenario.variants:
        plan = scenario.plan(Run(scenario.rows[0], "cubic", "fifo", 1, variant))
        done = subprocess.run(["labnet", "--check", "-"], input=json.dumps(plan), text=True, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            why = done.stderr.strip().removeprefix("labnet: standard input: ")
            line, of = scenario.plan.__code__.co_firstlineno, f" of {words(variant)}" if variant else ""
            refuse(f"{path}:{line}: the plan{of}: {why}")


def queue_series(directory: Path, results: Results) -> None:
    """The first queue's part of series.csv, as the report draws it"""
    series = directory / "series.csv"
    if not results.queues or not series.exists():
        return
    node, dev = results.queues[0]["node"], results.queues[0]["dev"]
    with (series.open(encoding="utf-8", newline="") as file,
          (directory / "queue.csv").open("w", encoding="utf-8") as out):
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
        if action == "shell":
            print(shell(scenario, path))
        elif action == "check":
            check(scenario, path)
        elif action == "plan":
            variant, row, control, queue, seed = given
            pairs = (word.partition("=") for word in variant.split())
            run = Run(row, control, queue, int(seed), {key: setting(value) for key, _, value in pairs})
            json.dump(scenario.plan(run), sys.stdout)
        elif action == "metrics":
            results = results_in(Path(given[0]))
            queue_series(Path(given[0]), results)
            for name, value in scenario.measured(results).items():
                print(f"{name}={json.dumps(value)}")
    except Exception as error:  # pylint: disable=broad-exception-caught
        say_where(path, error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
