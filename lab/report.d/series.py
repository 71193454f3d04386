# SPDX-License-Identifier: GPL-2.0
"""Series of numbers for the plots, from the files beside a result.json."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any, Callable, Sequence

from results import fail, read_text
from plots import Point


def finite(text: str) -> float:
    """The number in `text`."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def read_csv(path: Path, numbers: Sequence[str], texts: Sequence[str] = ()) -> list[list[Any]]:
    """The named columns of a CSV file: first `numbers`, then `texts`; nothing without a file."""
    if not path.exists():
        return []
    reader = csv.reader(io.StringIO(read_text(path)))
    head: list[str] = next(reader, [])
    absent = [name for name in (*numbers, *texts) if name not in head]
    if absent:
        fail(1, f"{path}: no column {', '.join(absent)}")
    columns: list[tuple[int, Callable[[str], Any], list[Any]]] = \
        [(head.index(n), finite, []) for n in numbers] + [(head.index(n), str, []) for n in texts]
    try:
        for cells in filter(None, reader):
            for at, convert, values in columns:
                values.append(convert(cells[at]))
    except (ValueError, IndexError, csv.Error):
        fail(1, f"{path}: line {reader.line_num}: a value is missing or wrong")
    return [values for _, _, values in columns] if columns[0][2] else []


def read_flows(path: Path) -> list[dict[str, Any]]:
    """The flows in a flows.jsonl."""
    flows = []
    if path.exists():
        for number, line in enumerate(read_text(path).splitlines(), 1):
            try:
                data = json.loads(line) if line.strip() else None
            except json.JSONDecodeError as error:
                fail(1, f"{path}: line {number}: not JSON: {error.msg}")
            if isinstance(data, dict) and data.get("type") == "flow":
                flows.append(data)
    return flows


def thin(bins: int, times: Sequence[float], means: Sequence[float],
         tops: Sequence[float]) -> list[Point]:
    """At most `bins` points (time, mean of means, highest of tops): peaks stay."""
    if len(times) <= bins:
        return list(zip(times, means, tops))
    start, width = min(times), (max(times) - min(times)) / bins or 1.0
    found: dict[int, list[float]] = {}
    for t, mean, top in zip(times, means, tops):
        cell = found.setdefault(min(int((t - start) / width), bins - 1), [0, 0.0, -math.inf])
        cell[0] += 1
        cell[1] += mean
        cell[2] = max(cell[2], top)
    return [(start + (i + 0.5) * width, total / count, top)
            for i, (count, total, top) in sorted(found.items())]
