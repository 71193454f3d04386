# SPDX-License-Identifier: GPL-2.0
"""The settings of a variant in words: rate=40mbit rtt=20ms is "40 Mb/s, RTT 20 ms"."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Iterable, Mapping

# How a setting is said: {} is its value. Others are said as their name and their value. A scenario
# may have words of its own ("words" in scenario.json), which come before these.
WORDS: dict[str, str | dict[str, str]] = {
    "rate": "{}", "rtt": "RTT {}", "flows": "{} flows", "tso": {"0": "no TSO", "1": "TSO"},
    "iw": "initial window {}", "size": "{} bytes", "k": "K {}", "loss": "loss {} %",
    "other": "other RTT {}", "to": "to {}", "opts": "{}", "alpha": "alpha {/1024}",
    "beta": "beta {/1024}",
}
UNITS = {"bit": "b/s", "kbit": "kb/s", "mbit": "Mb/s", "gbit": "Gb/s", "us": "µs",
         **{unit: unit for unit in ("ns", "ms", "s", "kB", "MB", "%")}}


def with_unit(value: str) -> str:
    """`value` with its unit as one writes it: 40mbit is 40 Mb/s."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z%]+)", value)
    return f"{found[1]} {UNITS[found[2]]}" if found and found[2] in UNITS else value


def setting(name: str, value: str, words: Mapping[str, Any]) -> str:
    """One setting in words. Words with several {} take a value's parts, which commas separate;
    {/1024} is a number of 1024ths."""
    how = words.get(name, WORDS.get(name, name.replace("_", " ") + " {}"))
    if isinstance(how, dict):
        return str(how.get(value, f"{name} {with_unit(value)}"))
    if name == "opts":                  # as one sets a module's parameters
        return str(how).format(value.replace(":", "=").replace(",", ", "))
    if "{/1024}" in how and value.isdecimal():
        return str(how).replace("{/1024}", str(Fraction(int(value), 1024)))
    how = str(how).replace("{/1024}", "{}")
    parts = value.split(",") if how.count("{}") > 1 else [value]
    text = how.format(*map(with_unit, parts))
    return re.sub(r"(?<!\S)1 ([a-z]{2,})s\b", r"1 \1", text)


def in_words(variant: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, str]:
    """A variant's settings in words; those without a value have their defaults."""
    return {name: setting(name, str(value), words) for name, value in variant.items()
            if str(value) not in ("", "–")}


def say(settings: Iterable[str]) -> str:
    """Settings in words, in one text."""
    return ", ".join(settings) or "defaults"
