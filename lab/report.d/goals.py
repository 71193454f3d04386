# SPDX-License-Identifier: GPL-2.0
"""Compares the scenario's goals with the measurements."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from metrics import metric, rough, show
from results import Block, fail, has, read_text, variant_name


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
        fits = [b for b in blocks if has(b, want)]
        verdicts += [judge(number, goal, b) for b in fits]
        if not fits:
            verdicts.append(Verdict(number, "no data", goal["row"], variant_name(want),
                                    goal.get("text") or goal["metric"], None, None,
                                    "no such variant was run"))
    return verdicts


# scenario, row and text of a goal: in how many variants it is met, not met (missed or no data), and
# judged; the rest are ties
Tally = dict[tuple[str, str, str], tuple[int, int, int]]


def tally(name: str, verdicts: Sequence[Verdict]) -> Tally:
    """The goals of scenario `name`, counted over its variants."""
    found: Tally = {}
    for v in verdicts:
        met, unmet, count = found.get((name, v.row, v.text), (0, 0, 0))
        found[name, v.row, v.text] = (met + (v.state == "met"),
                                      unmet + (v.state in ("missed", "no data")), count + 1)
    return found


def read_tallies(path: Path) -> dict[str, Tally]:
    """The tallies in goals.csv, by version, oldest first."""
    versions: dict[str, Tally] = {}
    if path.exists():
        for line in csv.DictReader(io.StringIO(read_text(path))):
            try:
                versions.setdefault(line["version"], {})[
                    line["scenario"], line["row"], line["goal"]] = \
                    int(line["met"]), int(line["unmet"]), int(line["of"])
            except (KeyError, TypeError, ValueError):
                fail(1, f"{path}: no version, scenario, row, goal, met, unmet and of in a line")
    return versions


def tallies_csv(versions: Mapping[str, Tally]) -> str:
    """What read_tallies() reads."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["version", "scenario", "row", "goal", "met", "unmet", "of"])
    for version, found in versions.items():
        table.writerows([version, *key, *counts] for key, counts in found.items())
    return out.getvalue()


def worse(now: Tally, before: Tally) -> list[tuple[str, str]]:
    """Goals that are met in fewer variants than before and not met in more, each with its scenario
    and a sentence. A goal or a variant that is new or has gone, and a tie, make nothing worse."""
    return [(key[0], f"{key[2]} ({key[1]}): {met} of {count}, before {then[0]} of {then[2]}")
            for key, (met, unmet, count) in now.items()
            if (then := before.get(key)) and met < then[0] and unmet > then[1]]


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many of `verdicts` are met: "3 of 4", and what the others are."""
    states = [v.state for v in verdicts]
    rest = [f"{states.count(s)} {s}" for s in ("missed", "tie", "no data") if s in states]
    return f"{states.count('met')} of {len(states)}" + (f" ({', '.join(rest)})" if rest else "")
