# SPDX-License-Identifier: GPL-2.0
"""Compares results with a file of expected values (--expect)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple, NoReturn, Sequence

from results import Block, fail, has, settings, variant_name


class Band(NamedTuple):
    """A line of the file."""
    where: str              # FILE:LINE
    metric: str
    row: str
    least: float
    most: float
    settings: dict[str, str]


def wrong(where: str, text: str) -> NoReturn:
    """The file is wrong."""
    fail(2, f"{where}: {text}")


def bound(where: str, word: str, none: float) -> float:
    """A number, or "-" for `none`."""
    if word == "-":
        return none
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        wrong(where, f"'{word}' is neither a number nor -")
    return number


def read_bands(path: Path) -> list[Band]:
    """The lines METRIC ROW LEAST MOST [SETTING=VALUE...] of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        wrong(str(path), error.strerror or "cannot be read")
    except UnicodeDecodeError:
        wrong(str(path), "not UTF-8 text")
    bands = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        where = f"{path}:{number}"
        if len(words) < 4 or not all("=" in w for w in words[4:]):
            wrong(where, "expected METRIC ROW LEAST MOST [SETTING=VALUE]...")
        least, most = bound(where, words[2], -math.inf), bound(where, words[3], math.inf)
        if least > most:
            wrong(where, f"{words[2]} is more than {words[3]}")
        bands.append(Band(where, words[0], words[1], least, most, settings(" ".join(words[4:]))))
    if not bands:
        wrong(str(path), "no line with a value")
    return bands


def unexpected(bands: Sequence[Band], blocks: Sequence[Block]) -> list[str]:
    """A sentence for each mean that is outside of its band, and for each that is not there: no such run
    or metric, or a seed that failed or has no value."""
    out = []
    for band in bands:
        found = [(b, r) for b in blocks for r in b.results
                 if r.row == band.row and has(b, band.settings)]
        if not found:
            out.append(f"{band.where}: no run of {band.row}"
                       + (f" with {variant_name(band.settings)}" if band.settings else ""))
        for block, result in found:
            what = f"{band.where}: {band.metric} of {band.row}" \
                + (f" [{block.name}]" if block.name else "")
            have = result.metrics.get(band.metric)
            seeds = len(result.good) + len(result.bad)
            if have is None or have.seeds < seeds:
                out.append(f"{what}: {seeds - (have.seeds if have else 0)} of {seeds} seeds gave "
                           "no value")
            elif not band.least <= have.mean <= band.most:
                out.append(f"{what}: {have.mean:.10g}, expected {band.least:.10g} to "
                           f"{band.most:.10g}")
    return out
