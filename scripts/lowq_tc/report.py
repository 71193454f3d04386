# SPDX-License-Identifier: GPL-2.0
"""What the user is told about a result: values, how they came about, and warnings."""

from __future__ import annotations

from typing import NamedTuple

from lowq_common.values import Json

from .command import Command


class Report:
    def __init__(self) -> None:
        self.params: dict[str, Json] = {}
        self.explanation: list[str] = []
        self.unmet: list[str] = []  # was asked for, and stock tc cannot do it
        self.notes: list[str] = []

    def explain(self, text: str) -> None:
        self.explanation.append(text)

    def note(self, text: str) -> None:
        self.notes += [text] if text else []

    def not_honoured(self, text: str) -> None:
        self.unmet.append(text)

    def to_json(self) -> dict[str, Json]:
        return {"params": self.params, "explanation": self.explanation, "could_not_honour": self.unmet, "notes": self.notes}


def lines_of(made: Json) -> list[str]:
    """to_json() for people"""
    prefixes = {"explanation": "", "could_not_honour": "could not honour: ", "notes": "note: "}
    return [f"  {prefix}{line}" for key, prefix in prefixes.items() for line in made[key]]


class Result(NamedTuple):
    """What an action did"""

    action: str
    status: str  # planned, applied, unchanged, failed
    device: str
    profile: str
    headline: str
    report: Report
    commands: list[Command] = []
    before: list[str] = []  # what is there now, in the words of commands

    @property
    def text(self) -> str:
        return "\n".join([self.headline, *lines_of(self.report.to_json())])
