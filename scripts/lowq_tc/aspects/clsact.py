# SPDX-License-Identifier: GPL-2.0
"""The clsact qdisc that lowq-tc adds to a device, with filters at its egress."""

from __future__ import annotations

import re

from lowq_common.devices import qdiscs
from lowq_common.light import Json
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


def read_clsact(space: Namespace, device: str, shown: list[Json] | None = None) -> Json:
    """What is at the device's ingress: None, or its kind and filters."""
    shown = qdiscs(space, device) if shown is None else shown
    kind = next((qdisc["kind"] for qdisc in shown if qdisc["kind"] in ("ingress", "clsact")), None)
    if kind is None:
        return None
    ingress, egress = batch(space, device, [f"filter show dev {device} {way}" for way in ("ingress", "egress")])
    return {"kind": kind, "ingress": ingress, "egress": egress}


def only_ours(step: Step, now: Json) -> bool:
    """Only filters that the step makes: as many as it makes at most, of its kinds"""
    if now["kind"] != "clsact" or now["ingress"]:
        return False
    made = set()
    for command in made_by(step):
        words = command.argv
        if words[:3] == ("tc", "filter", "add"):
            made.add((words[words.index("pref") + 1], words[words.index("pref") + 2]))
    for line in now["egress"]:
        match = re.match(r"filter protocol \S+ pref (\d+) (\S+)", line)
        if match and (match[1], match[2]) not in made:
            return False
    return True
