# SPDX-License-Identifier: GPL-2.0
"""Compares the scenario's goals with the measurements."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

from metrics import Metric, metric, show, show_number
from results import Block, fail, has, Spread
from words import say


class Cell(NamedTuple):
    """A goal's value in one variant: a mean, or its ratio to the best peer's."""
    variant: str
    value: float
    half: float             # of its 95 % interval


class Verdict(NamedTuple):
    """A goal over all of its variants."""
    state: str              # "met", "missed", "tie" or "no data"
    row: str
    text: str
    detail: str
    worst: float | None
    median: float | None


def checked(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """The goals of scenario.json."""
    for number, goal in enumerate(scenario.get("goals") or [], 1):
        if not (isinstance(goal, dict) and all(isinstance(goal.get(k), str) for k in ("metric", "row"))
                and all(isinstance(goal.get(k, 0), (int, float)) for k in ("least", "most", "median"))
                and ("least" in goal or "most" in goal) and isinstance(goal.get("beside", []), list)
                and isinstance(goal.get("variant", {}), dict)):
            fail(1, f"scenario.json: goal {number} needs metric, row, and a number as least or most")
    return list(scenario.get("goals") or [])


def measured(key: str, row: str, block: Block) -> Spread | str | None:
    """A row's value in a variant; what is wrong where some seeds failed or have none; None where it has none at all."""
    for result in block.results:
        if result.row == row:
            seeds, have = len(result.good + result.bad), result.metrics.get(key)
            if have and have.seeds == seeds:
                return have
            if have or result.bad:
                return f"{seeds - (have.seeds if have else 0)} of {seeds} seeds of {row} gave no value"
    return None


def cell(goal: dict[str, Any], block: Block) -> Cell | str | None:
    """The goal's value in one variant, or why it has none there; None where it, or every peer, was not measured."""
    name = say(block.words.values()) if block.words else ""
    found = [measured(goal["metric"], row, block) for row in (goal["row"], *goal.get("beside", ()))]
    if found[0] is None or goal.get("beside") and not any(found[1:]):
        return None
    if wrong := [one for one in found if isinstance(one, str)]:
        return f"{name}: {wrong[0]}" if name else wrong[0]
    mine, *peers = (one for one in found if isinstance(one, Spread))
    if not peers:
        return Cell(name, mine.mean, mine.half)
    best = (min if "most" in goal else max)(peers, key=lambda one: one.mean)
    if not best.mean:       # as good as 0, or worse than any ratio
        return Cell(name, 1.0 if not mine.mean else math.inf, 0.0)
    ratio = mine.mean / best.mean
    return Cell(name, ratio, math.hypot(mine.half / best.mean, ratio * best.half / best.mean))


def state_of(one: Cell, least: float | None, most: float | None) -> str:
    """A limit inside of the interval is a tie."""
    met = (least is None or one.value >= least) and (most is None or one.value <= most)
    near = any(abs(one.value - limit) <= one.half for limit in (least, most) if limit is not None)
    return "tie" if one.half and near else "met" if met else "missed"


def excess(one: Cell, goal: dict[str, Any]) -> float:
    """How far a value is beyond the limit, the largest for the worst."""
    over, under = float(goal.get("most", math.inf)), float(goal.get("least", -math.inf))
    return max(one.value - over, under - one.value)


def wording(goal: dict[str, Any], how: Metric) -> str:
    """The goal in words: its own, or the metric's name, and the limits."""
    def number(value: float) -> str:
        return f"{value:g} x {peers}" if peers else f"{show(goal['metric'], value)} {how.unit}".rstrip()
    peers = ("the best of " if goal.get("beside", ())[1:] else "") + ", ".join(goal.get("beside", ()))
    limits = " and ".join(f"{word} {number(goal[name])}" for name, word in (("least", "at least"), ("most", "at most"))
                          if name in goal)
    middle = f", median {number(goal['median'])}" if "median" in goal else ""
    return f"{goal.get('text') or how.name}: {limits}{middle}"


def judge(goal: dict[str, Any], blocks: Sequence[Block]) -> Verdict:
    """Compares a goal with its worst cell, and with the one in the middle."""
    key, row = goal["metric"], goal["row"]
    how = metric(key)
    text = wording(goal, how)
    mine = [block for block in blocks if has(block, goal.get("variant", {}))]
    cells = [one for block in mine if (one := cell(goal, block)) is not None]
    good = sorted((one for one in cells if isinstance(one, Cell)), key=lambda one: excess(one, goal))
    missing = [one for one in cells if isinstance(one, str)]
    if not good:
        return Verdict("no data", row, text, missing[0] if missing else "nothing was measured", None, None)
    worst, middle = good[-1], good[(len(good) - 1) // 2]
    states = [state_of(worst, goal.get("least"), goal.get("most"))]
    if "median" in goal:
        states.append(state_of(middle, *((goal["median"], None) if "least" in goal else (None, goal["median"]))))

    def said(value: float) -> str:
        return "a peer with 0" if value == math.inf else \
            f"{show_number(value)} x" if goal.get("beside") else f"{show(key, value)} {how.unit}".rstrip()
    detail = said(worst.value)
    if len(good) > 1:
        detail = f"worst {detail} ({worst.variant}), median {said(middle.value)}, of {len(good)} cells"
    if missing:
        detail += f"; {missing[0]}" + (f", and {len(missing) - 1} more" if missing[1:] else "")
    state = next((s for s in ("missed", "tie") if s in states), "missed" if missing else "met")
    return Verdict(state, row, text, detail, *(None if math.isinf(v) else v for v in (worst.value, middle.value)))


def judge_all(scenario: dict[str, Any], blocks: Sequence[Block]) -> list[Verdict]:
    """Every goal."""
    return [judge(goal, blocks) for goal in checked(scenario)]
