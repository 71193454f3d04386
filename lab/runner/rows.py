# SPDX-License-Identifier: GPL-2.0
"""What runs are named by: scenarios' files, and the rows of bench/rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterable, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"


class Row(NamedTuple):
    """A line of bench/rows"""

    name: str
    control: str  # the congestion control
    parameters: list[str]  # of its module: NAME=VALUE
    queue: str
    label: str


def row_of(line: str) -> Row:
    name, control, queue, label = (part.strip() for part in line.split("|"))
    control, *parameters = control.split()
    return Row(name, control, parameters, queue, label)


def project_rows(more: Iterable[str] = ()) -> dict[str, Row]:
    """By name; more: lines that the project does not have"""
    lines = (BENCH / "rows").read_text(encoding="utf-8").splitlines()
    return {row.name: row for row in map(row_of, [*more, *(line for line in lines if re.match(r"\w", line))])}


def options(**given: str | list[str] | None) -> list[str]:
    """Words of a command line: of those that are given, and of a list once for each"""
    lists = {name: values if isinstance(values, list) else [values or ""] for name, values in given.items()}
    return [word for name, values in lists.items() for value in values if value for word in (f"--{name}", value)]


def scenario_names() -> list[str]:
    return sorted(file.stem for file in (BENCH / "scenarios").glob("*.py"))


def version() -> str:
    found = re.search('^PACKAGE_VERSION="(.*)"', (ROOT / "dkms.conf").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "?"


def file_of(scenario: str) -> Path:
    """Of a name, or of a path"""
    return Path(scenario) if "/" in scenario else BENCH / "scenarios" / f"{scenario}.py"
