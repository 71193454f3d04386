# SPDX-License-Identifier: GPL-2.0
"""What the user is told about a result: values, how they came about, and warnings."""

from __future__ import annotations

from lowq_common.values import Json



class Report:
    def __init__(self) -> None:
        self.params: dict[str, Json] = {}
        self.explanation: list[str] = []
        self.unmet: list[str] = []  # was asked for, and stock tc cannot do it
        self.notes: list[str] = []

    def explain(self, text: str) -> None:
        self.explanation.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def not_honoured(self, text: str) -> None:
        self.unmet.append(text)

    def to_json(self) -> dict[str, Json]:
        return {
            "params": self.params,
            "explanation": self.explanation,
            "could_not_honour": self.unmet,
            "notes": self.notes,
        }

    def text(self, headline: str) -> str:
        lines = [headline]
        lines += ["  " + line for line in self.explanation]
        lines += ["  could not honour: " + line for line in self.unmet]
        lines += ["  note: " + line for line in self.notes]
        return "\n".join(lines)
