# SPDX-License-Identifier: GPL-2.0
"""Filters at the egress of a device: at a clsact qdisc that lowq-tc adds, or at someone else's."""

from __future__ import annotations

import re

from lowq_common.devices import qdiscs
from lowq_common.values import Json
from lowq_common.system import Namespace

from ..command import Command, tc
from ..journal import SavedState, Step
from .base import Aspect, Place, made_by, on_device
from .queue import batch


class Clsact(Aspect):
    """Its target is the device. A state is None, or the kind of qdisc and all of its filters."""

    name = "clsact"

    def read(self, place: Place, target: str) -> Json:
        return read_clsact(place.space, place.name())

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        return now is None or only_ours(step, now)

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        clear = [tc("qdisc", "del", "dev", place.name(), now["kind"])] if now is not None else []
        return clear + on_device(place, saved.commands)

    def described(self, target: str) -> str:
        return self.name


class Filters(Aspect):
    """Its target is the preferences that lowq-tc uses at a clsact of someone else, whose filters
    come first. A state is the lines of the filters with these preferences."""

    name = "filters"

    def read(self, place: Place, target: str) -> Json:
        return self.among(read_clsact(place.space, place.name()), target)

    @staticmethod
    def among(shown: Json, target: str) -> list[str]:
        """Those of what read_clsact() has read"""
        used = target.split()
        return [line for pref, line in with_pref(shown["egress"] if shown else []) if str(pref) in used]

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        return kinds_of(now) <= made_filters(step)

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        return self.clear(place.name(), now) + on_device(place, saved.commands)

    @staticmethod
    def clear(device: str, now: Json) -> list[Command]:
        """The commands that remove these filters"""
        found = [re.match(r"filter protocol (\S+) pref (\d+)", line) for line in now]
        each = dict.fromkeys((one[1], one[2]) for one in found if one)
        return [tc("filter", "del", "dev", device, "egress", "protocol", protocol, "pref", pref)
                for protocol, pref in each]

    def described(self, target: str) -> str:
        return "the filters at clsact"

    def difference(self, place: Place, was: Json, now: Json) -> str:
        return "they are gone" if not now else "they are others now"


def with_pref(lines: list[str]) -> list[tuple[int, str]]:
    """Each line with its filter's preference"""
    found, pref = [], 0
    for line in lines:
        if match := re.match(r"filter (?:protocol \S+ )?pref (\d+)", line):
            pref = int(match[1])
        found.append((pref, line))
    return found


def kinds_of(lines: list[str]) -> set[tuple[str, str]]:
    """Preference and kind of each filter"""
    found = [re.match(r"filter protocol \S+ pref (\d+) (\S+)", line) for line in lines]
    return {(match[1], match[2]) for match in found if match}


def made_filters(step: Step) -> set[tuple[str, str]]:
    """Preference and kind of each filter that the step makes"""
    made = set()
    for command in made_by(step):
        words = command.argv
        if words[:3] == ("tc", "filter", "add"):
            made.add((words[words.index("pref") + 1], words[words.index("pref") + 2]))
    return made


def read_clsact(space: Namespace, device: str, shown: list[Json] | None = None) -> Json:
    """What is at the device's ingress: None, or its kind and filters."""
    shown = qdiscs(space, device) if shown is None else shown
    found = next((qdisc for qdisc in shown if qdisc["kind"] in ("ingress", "clsact")), None)
    if found is None:
        return None
    ingress, egress = batch(space, device, [f"filter show dev {device} {way}" for way in ("ingress", "egress")])
    blocks = {name: found[name] for name in ("ingress_block", "egress_block") if name in found}
    return {"kind": found["kind"], "ingress": ingress, "egress": egress, **blocks}


def only_ours(step: Step, now: Json) -> bool:
    """Only filters that the step makes: as many as it makes at most, of its kinds"""
    return now["kind"] == "clsact" and not now["ingress"] and kinds_of(now["egress"]) <= made_filters(step)
