# SPDX-License-Identifier: GPL-2.0
"""What the kinds of things that lowq-tc changes have in common, and where they are looked at."""

from __future__ import annotations

import json

from lowq_common import devices
from lowq_common.devices import Link
from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.system import Namespace

from ..command import Command
from ..journal import BEGUN, UNDOING, SavedState, Step


class Gone(Refused):
    """The device is not there any more."""


class Place:
    """Where steps are looked at: a namespace and, for queues, one of its devices."""

    def __init__(self, space: Namespace, link: Link | None = None):
        self.space = space
        self.link = link

    def name(self) -> str:
        """What the device is called now"""
        assert self.link
        name = self.space.names().get(self.link.ifindex)
        if name is None:
            raise Gone(f"{self.link.name} is gone")
        return name

    def refresh(self) -> Link:
        """The device as it is now"""
        assert self.link
        found = devices.links(self.space, self.name())
        if not found:
            raise Gone(f"{self.link.name} is gone")
        self.link = found[0]
        return self.link

    def queue_length(self) -> Link:
        """The device with the name and the queue length that it has now: what a queue depends on"""
        assert self.link
        name = self.name()
        length = devices.queue_length(self.space, name)
        if length is None:
            raise Gone(f"{self.link.name} is gone")
        self.link = self.link._replace(name=name, txqlen=length)
        return self.link

    def same_device(self) -> bool:
        """Does the name still lead to the device? Asked before each command."""
        try:
            return self.link is None or self.name() == self.link.name
        except Refused:
            return False


class Aspect:
    """A kind of thing that is changed. Records name it by its name."""

    name: str

    # --- reading ------------------------------------------------------------------

    def read(self, place: Place, target: str) -> Json:
        """What is there now, in a form that can be compared and kept"""
        raise NotImplementedError

    def same(self, one: Json, other: Json) -> bool:
        return bool(one == other)

    def is_back(self, saved: SavedState, now: Json) -> bool:
        """Is what is there now the saved state?"""
        return self.same(saved.state, now)

    # --- recognising --------------------------------------------------------------

    def made_by_us(self, place: Place, step: Step, now: Json) -> bool:
        """Is this what the step made, or a state in the middle of its commands?"""
        if step.after is not None and self.same(step.after, now):
            return True
        if step.earlier is not None and self.same(step.earlier.state, now):
            return True
        under_way = step.state in (BEGUN, UNDOING) or step.after is None
        return under_way and self.is_between(place, step, now)

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        """Of a step whose commands may have run in part: can they have led to this state?"""
        # One command, one value: it is there, or it is not.
        return now is not None and any(str(now) == command.argv[-1].rpartition("=")[2] for command in step.commands)

    # --- back ---------------------------------------------------------------------

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        """The commands that lead from what is there now to the saved state. All of it was made by
        lowq-tc, or --force was given."""
        return saved.commands

    # --- for people ---------------------------------------------------------------

    def described(self, target: str) -> str:
        """What it is called"""
        return target

    def difference(self, place: Place, was: Json, now: Json) -> str:
        """In a few words"""
        return f"it is '{self.text(place, now)}' now, was '{self.text(place, was)}'"

    def text(self, place: Place, state: Json) -> str:
        if state is None:
            return "not there"
        return state if isinstance(state, str) else json.dumps(state)

    def change(self, shown: Json) -> str:
        """Of "host show": what was changed, from its name, old and new state"""
        return f"{shown['name']} from {shown['old']} to {shown['new']}"


def made_by(step: Step) -> list[Command]:
    return step.commands + (step.earlier.commands if step.earlier else [])


def on_device(place: Place, commands: list[Command]) -> list[Command]:
    """The same for the name that the device has now"""
    name = place.name()
    return [command.on_device({command.argv[command.argv.index("dev") + 1]: name}) for command in commands]
