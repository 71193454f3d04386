# SPDX-License-Identifier: GPL-2.0
"""The command line: which options there are, and what was given.

Help, completion and the parser read the same table.
"""

from __future__ import annotations

from lowq_common import units
from lowq_common.controls import Given
from lowq_common.errors import Refused
from lowq_common.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any, Callable


class Option(NamedTuple):
    parse: Callable[[str, str], Any] | None  # None: takes no value
    choices: tuple[str, ...] = ()


RATE, TIME = Option(units.parse_rate), Option(units.parse_time)
SIZE, COUNT = Option(units.parse_size), Option(units.parse_count)
WORD, FLAG = Option(units.parse_word), Option(None)

OPTIONS: dict[str, Option] = {
    # of every command
    "dry-run": FLAG, "json": FLAG, "force": FLAG, "quiet": FLAG, "no-rehearsal": FLAG,
    "netns": WORD, "help": FLAG, "version": FLAG,
    # of reset
    "all": FLAG, "forget": FLAG,
    # of show, of apply
    "check": FLAG, "diff": FLAG,
    # of every profile
    "rate": RATE, "shape": FLAG, "no-shape": FLAG, "shape-burst": SIZE, "gso-segs": COUNT,
    # of single profiles
    "rtt": TIME, "k": SIZE, "limit": SIZE, "nodrop": FLAG, "exact": FLAG, "no-tso": FLAG, "coalesce": TIME,
    "aqm": Option(units.parse_word, ("red", "codel", "fq_codel", "fq", "dualpi2")),
    "min": SIZE, "max": SIZE, "probability": Option(units.parse_probability),
    "burst": COUNT, "harddrop": FLAG, "no-ecn": FLAG, "simple": FLAG,
    "dscp": Option(units.parse_dscp, tuple(units.DSCP_NAMES)),
    "share": Option(units.parse_percent), "sched": Option(units.parse_word, ("ets", "prio")),
    "rest-limit": SIZE, "switch-id": Option(units.parse_number),
    "relative": FLAG, "sojourn": FLAG,
    "step": TIME, "varying": FLAG, "step-min": COUNT, "target": TIME, "coupling": COUNT,
    # of those that switches that are not Linux have, too
    "print": Option(units.parse_word, ("sonic", "cumulus", "mlnx")), "mtu": COUNT,
    # of host
    "route": Option(lambda name, text: text), "default": FLAG, "allow": FLAG,
    "initcwnd": COUNT, "initrwnd": COUNT, "quickack": FLAG, "flows": COUNT,
}
GENERAL = ("dry-run", "json", "force", "quiet", "no-rehearsal", "netns", "help", "version")
FRAME = ("rate", "shape", "no-shape", "shape-burst", "gso-segs")
HOST = ("route", "default", "allow", "initcwnd", "initrwnd", "quickack")
RESET = ("all", "forget")
SHOW = ("check",)
APPLY = ("diff",)
PRINT, PRINTED = ("print", "mtu"), ("dctcp", "segregate", "red", "ldcp", "roce")
SHORT = {"-n": "netns", "-q": "quiet", "-h": "help"}


class Options(Given):
    """What was given on the command line"""

    def __init__(self) -> None:
        super().__init__()
        self.routes: list[str] = []
        self.words: list[str] = []

    def only(self, what: str, *allowed: str) -> None:
        """Every option that was given must mean something to what was asked."""
        for name in self.values:
            if name not in GENERAL and name not in allowed:
                raise Refused(f"--{name} does not go with '{what}'")

    def expect_words(self, most: int, what: str) -> None:
        if len(self.words) > most:
            raise Refused(f"{what}: what is '{self.words[most]}'?")


def parse(argv: list[str]) -> Options:
    found = Options()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words += rest
            break
        name, equals, value = word.removeprefix("--").partition("=")
        if word in SHORT:
            name = SHORT[word]
        elif not word.startswith("--"):
            if word.startswith("-") and word != "-":
                raise Refused(f"unknown option '{word}'")
            found.words.append(word)
            continue
        if name not in OPTIONS:
            raise Refused(f"unknown option '--{name}'")
        convert = OPTIONS[name].parse
        if convert is None:
            if equals:
                raise Refused(f"--{name} takes no value")
            found.values[name], found.given[name] = True, ""
            continue
        if not equals:
            if not rest:
                raise Refused(f"--{name} needs a value")
            value = rest.pop(0)
        if not value:
            raise Refused(f"--{name} needs a value")
        found.values[name], found.given[name] = convert("--" + name, value), value
        if name == "route":
            found.routes.append(value)
    return found
