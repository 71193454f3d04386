# SPDX-License-Identifier: GPL-2.0
"""What all namespaces share: loaded modules, and the list of allowed congestion controls."""

from __future__ import annotations

from lowq_common import system
from lowq_common.values import Json

from ..command import Command
from ..journal import SavedState, Step
from .base import Aspect, Place

ALLOWED_KEY = "net.ipv4.tcp_allowed_congestion_control"


class Module(Aspect):
    """Its target is the module."""

    name = "module"

    def read(self, place: Place, target: str) -> Json:
        return system.module_loaded(target)

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        return bool(now)

    def change(self, shown: Json) -> str:
        return f"{shown['name']} loaded"


class Allowed(Aspect):
    """Its target is the control. The rest of the list is not touched."""

    name = "allowed"

    def read(self, place: Place, target: str) -> Json:
        return target in (system.sysctl_everywhere(ALLOWED_KEY) or "").split()

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        return bool(now)

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        names = [name for name in (system.sysctl_everywhere(ALLOWED_KEY) or "").split() if name != step.target]
        return [Command(("sysctl", "-q", "-w", f"{ALLOWED_KEY}={' '.join(names)}"), everywhere=True)]

    def change(self, shown: Json) -> str:
        return f"{shown['name']} allowed"
