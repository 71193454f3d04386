# SPDX-License-Identifier: GPL-2.0
"""scenario.json: what was asked for, as lab/report reads it."""

from __future__ import annotations

from typing import Any, Sequence

from .scenario import lines_of, Scenario, settings_of, Variant


def words(variant: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in variant.items())


def drawing(scenario: Scenario) -> str:
    """The topology; where it is not drawn, the plan's links"""
    if scenario.topology or not scenario.plan:
        return scenario.topology.strip("\n")
    first = scenario.plan(scenario.example(scenario.variants[0]))
    links = [" ".join(filter(None, [*(end["node"] for end in link["ends"]), link.get("rate"), link.get("delay")]))
             for link in first["links"]]
    return "\n".join(links[:12] + ([f"... {len(links)} links"] if len(links) > 12 else []))


def question_of(scenario: Scenario, rows: Sequence[str], all_rows: bool) -> str:
    if all_rows:
        return lines_of(scenario.question)
    if len(rows) == 1:
        return f"How does {rows[0]} do here?"
    return f"How do {', '.join(rows[:-1])} and {rows[-1]} compare here?"


def describe(scenario: Scenario, name: str, command: str, *, rows: Sequence[str],
             variants: Sequence[str]) -> dict[str, Any]:
    """Question, findings and goals are those of what is run: goals of rows and variants that are not are left out, and
    so are findings unless all is run"""
    all_rows = sorted(rows) == sorted(scenario.rows)
    whole = all_rows and list(variants) == [words(variant) for variant in scenario.variants]
    run = [dict(word.split("=", 1) for word in variant.split()) for variant in variants]

    def is_run(wanted: Variant | None, *of: str) -> bool:
        want = settings_of(wanted).items()
        return (all(row in rows for row in of if row)
                and any(all(variant.get(key, "") == str(value) for key, value in want) for variant in run))

    goals = [goal.as_json() for goal in scenario.goals if whole or is_run(goal.variant, goal.row, *goal.beside)]
    made: dict[str, Any] = {
        "name": name, "title": lines_of(scenario.title), "topology": "\n" + drawing(scenario),
        "params": dict(scenario.params), "command": command, "question": question_of(scenario, rows, all_rows),
        "rows": list(rows), "metrics": list(scenario.shown), "words": dict(scenario.words), "goals": goals}
    if whole:
        made["conclusion"] = lines_of(scenario.conclusion)
    if scenario.reference in rows:
        made["reference_row"] = scenario.reference
    needed = ("params", "goals")
    return {key: value for key, value in made.items() if value or key in needed}
