# SPDX-License-Identifier: GPL-2.0
"""Settings of one value: a sysctl of a namespace, a module's parameter, a device's
gso_max_segs."""

from __future__ import annotations

from lowq_common import system
from lowq_common.values import Json

from ..command import Command
from ..journal import SavedState, Step
from .base import Aspect, Place, on_device


class Sysctl(Aspect):
    """Its target is the key, with dots."""

    name = "sysctl"

    def read(self, place: Place, target: str) -> Json:
        return place.space.sysctl(target)


class Parameter(Aspect):
    """Its target is MODULE.PARAMETER."""

    name = "parameter"

    def read(self, place: Place, target: str) -> Json:
        return system.read_file(system.parameter_path(target))

    def is_back(self, saved: SavedState, now: Json) -> bool:
        # None: its module was unloaded, and the value with it
        return now is None or self.same(saved.state, now)

    def learn(self, place: Place, step: Step) -> None:
        """Before its first command: the value that the module, which an earlier step has loaded, came with"""
        value = self.read(place, step.target)
        if step.before.state is None and value is not None:
            step.before.state = value
            step.before.commands = [Command((value,), True, system.parameter_path(step.target))]


class Segments(Aspect):
    """Its target is the device."""

    name = "gso_max_segs"

    def read(self, place: Place, target: str) -> Json:
        return place.refresh().gso_segs

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        return on_device(place, saved.commands)

    def described(self, target: str) -> str:
        return self.name
