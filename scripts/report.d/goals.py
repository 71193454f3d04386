# SPDX-License-Identifier: GPL-2.0
"""Compares the scenario's goals with the measurements."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

from metrics import metric, rough, show
from results import Block, fail, variant_name


class Verdict(NamedTuple):
    """One goal in one variant."""
    goal: int
    state: str              # "met", "missed", "tie" or "no data"
    row: str
    variant: str
    text: str
    measured: float | None
    limit: float | None
    detail: str

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    "<": lambda a, b: a < b, "==": lambda a, b: a == b}


def judge(number: int, goal: dict[str, Any], block: Block) -> Verdict:
    """Compares `goal` with `block`: all seeds must have a value, and a limit inside the 95 %
    confidence interval is a tie."""
    key, row, value, other = goal["metric"], goal["row"], goal["value"], goal.get("relative_to")
    how = metric(key)
    unit = f" {how.unit}" if how.unit else ""
    wanted = f"{value:g} × {other}" if other else show(key, value) + unit
    text = goal.get("text") or f"{how.name} {goal['op']} {wanted}"
    have = {r.row: r for r in block.results if key in r.metrics}
    for need in (row, other or row):
        if need not in have:
            return Verdict(number, "no data", row, block.name, text, None, None,
                           f"{need} has no {key}")
    mine = have[row].metrics[key]
    reference = have[other].metrics[key] if other else None
    measured, limit = mine.mean, value * (reference.mean if reference else 1)
    against = f" against {show(key, limit)}{unit}" if other else ""
    for need in (row, other or row):
        seeds, count = len(have[need].good + have[need].bad), have[need].metrics[key].seeds
        if count < seeds:   # a seed that failed or has no value is not ignored
            return Verdict(number, "missed" if need == row else "no data", row, block.name, text,
                           measured, limit, f"{show(key, measured)}{unit}{against}, but "
                           f"{seeds - count} of {seeds} seeds of {need} gave no value")
    gap = abs(measured - limit)
    half = math.hypot(mine.half, value * reference.half) if reference else mine.half
    state = "met" if OPERATORS[goal["op"]](measured, limit) else "missed"
    if half and gap <= half:
        return Verdict(number, "tie", row, block.name, text, measured, limit,
                       f"{show(key, measured)}{unit}{against}: no difference, the 95 % interval "
                       f"is ±{show(key, half)}{unit}")
    detail = f"{show(key, measured)}{unit}{against}, {state}"
    if how.style == "percent" and gap:
        detail += f" by {rough(gap * how.scale)} points"
    elif gap:
        share = f" ({rough(100 * gap / abs(limit))} %)" if limit else ""
        detail += f" by {rough(gap * how.scale)}{unit}{share}"
    else:
        detail += " exactly"
    return Verdict(number, state, row, block.name, text, measured, limit, detail)


def judge_all(scenario: dict[str, Any], blocks: Sequence[Block]) -> list[Verdict]:
    """Every goal in every variant that it applies to."""
    verdicts = []
    for number, goal in enumerate(scenario.get("goals") or [], 1):
        good = (isinstance(goal, dict) and goal.get("op") in OPERATORS
                and isinstance(goal.get("value"), (int, float))
                and all(isinstance(goal.get(k), str) for k in ("metric", "row"))
                and all(isinstance(goal.get(k) or "", str) for k in ("relative_to", "text")))
        if not good:
            fail(1, f"scenario.json: goal {number} needs metric, row, op (one of "
                    f"{' '.join(OPERATORS)}) and a number as value")
        want = goal.get("variant", "*")
        want = want if isinstance(want, dict) else {}
        fits = [b for b in blocks if all(str(b.variant.get(k)) == str(v) for k, v in want.items())]
        verdicts += [judge(number, goal, b) for b in fits]
        if not fits:
            verdicts.append(Verdict(number, "no data", goal["row"], variant_name(want),
                                    goal.get("text") or goal["metric"], None, None,
                                    "no such variant was run"))
    return verdicts


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many of `verdicts` are met: "3 of 4", and what the others are."""
    states = [v.state for v in verdicts]
    rest = [f"{states.count(s)} {s}" for s in ("missed", "tie", "no data") if s in states]
    return f"{states.count('met')} of {len(states)}" + (f" ({', '.join(rest)})" if rest else "")
