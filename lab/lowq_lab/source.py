# SPDX-License-Identifier: GPL-2.0
"""A scenario's file: what is wrong in it, what a run depends on, its shell"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Iterator, Mapping

from .describe import words
from .scenario import Scenario, Setting

DIRECTIVE = "# shellcheck shell=bash disable=SC2034,SC2154"  # the guest sets the settings, and reads what is set


def where(path: Path, error: BaseException) -> str:
    """An error, with the line of the scenario that led to it"""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    what = f"no setting '{error.args[0]}'" if isinstance(error, KeyError) and error.args else str(error)
    return f"{path}:{lines[-1] if lines else 1}: {what or type(error).__name__}".replace("\n", " ")


def function_of(text: str) -> str:
    """The text if it defines run_scenario; otherwise run_scenario with the text as its body"""
    return text if re.search(r"(?m)^run_scenario\(\)", text) else f"run_scenario() {{ {text}\n}}"


def find_files(plan: Any, folder: Path) -> list[Path]:
    """The traces and distributions that a plan names. Names count from folder, and are absolute afterwards"""
    found = []
    for place in (*plan.get("traffic", ()), *(part for link in plan.get("links", ())
                                             for part in (link, *link.get("ends", ())))):
        for key in ("cdf", "trace"):
            if key in place:
                place[key] = str(folder / place[key])
                found.append(Path(place[key]))
    return found


def plans(scenario: Scenario, path: Path) -> Iterator[tuple[Mapping[str, Setting], Any, list[Path]]]:
    """Of each variant: the plan, and the files that it names"""
    for variant in scenario.variants if scenario.plan else ():
        assert scenario.plan
        plan = scenario.plan(scenario.example(variant))
        yield variant, plan, find_files(plan, path.parent)


def counts(scenario: Scenario, path: Path) -> bytes:
    """What a run depends on: the file without comments and the scenario's texts and goals, modules beside it that it has
    loaded, its plans, and the files that these name"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Scenario", "replace"):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg in ("plan", "metrics")]
    made = [ast.unparse(tree).encode(), re.sub(r"(?m)^\s*#.*\n", "", scenario.shell).encode()]
    for _, plan, files in plans(scenario, path):
        made += [json.dumps(plan).encode(), *(file.read_bytes() for file in files)]
    loaded = {Path(getattr(module, "__file__", None) or "/") for module in sys.modules.values()}
    return b"".join([*made, *(file.read_bytes() for file in sorted(loaded) if file.parent == path.parent)])


def alone(scenario: Scenario, path: Path) -> str:
    """The shell of a scenario, each line with its number in the file"""
    if not scenario.shell:
        return DIRECTIVE
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) \
                and node.value.value == scenario.shell:
            return DIRECTIVE + "\n" * (node.value.lineno - 1) + function_of(scenario.shell)
    return DIRECTIVE + "\n" + function_of(scenario.shell)


def check(scenario: Scenario, path: Path) -> str:
    """What is wrong, or nothing; needs labnet"""
    if scenario.shell:
        parsed = subprocess.run(["bash", "-n"], input=alone(scenario, path), text=True, check=False,
                                stderr=subprocess.PIPE)
        if parsed.returncode:
            at, _, reason = parsed.stderr.split("\n")[0].removeprefix("bash: line ").partition(": ")
            return f"{path}:{at}: shell: {reason}"
    for variant, plan, _ in plans(scenario, path):
        plan.pop("prepare", None)
        done = subprocess.run(["labnet", "--check", "-"], input=json.dumps(plan), text=True, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            why = done.stderr.strip().removeprefix("labnet: standard input: ")
            assert scenario.plan
            line, of = scenario.plan.__code__.co_firstlineno, f" of {words(variant)}" if variant else ""
            return f"{path}:{line}: the plan{of}: {why}"
    return ""
