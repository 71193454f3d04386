# SPDX-License-Identifier: GPL-2.0
"""Routes. A state is the list of routes to a prefix, as ip shows them, with the index of a
device in place of its name, which can change."""

from __future__ import annotations

from lowq_common.values import Json
from lowq_common.system import Namespace, output

from ..command import Command
from ..journal import UNDOING, SavedState, Step
from .base import Aspect, Place, made_by

STATE_WORDS = ("linkdown", "offload", "rt_offload", "trap", "rt_trap", "offload_failed")


class Route(Aspect):
    """Its target is "FAMILY PREFIX"."""

    name = "route"

    def read(self, place: Place, target: str) -> Json:
        return portable(place, read_routes(place.space, *target.split(" ")) or [])

    def same(self, one: Json, other: Json) -> bool:
        if all(" proto " in route and " scope " in route for route in [*one, *other]):
            return bool(one == other)
        # records of lowq 0.2 lack what only "ip -d" shows
        return brief(one) == brief(other)

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        if not now:
            return step.state == UNDOING or step.earlier is not None
        return any(has_all(command, now, place) for command in made_by(step))

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        family, prefix = step.target.split(" ")
        if not saved.state:
            return [Command((*ip_words(family), "route", "del", prefix))] if now else []
        names = names_by_index(place)
        return [command.on_device(names) for command in saved.commands]

    def text(self, place: Place, state: Json) -> str:
        return "; ".join(named(route, place) for route in state or []) or "not there"

    def change(self, shown: Json) -> str:
        return "route " + ("; ".join(shown["new"] or []) or shown["name"].split()[1])


def ip_words(family: str) -> tuple[str, ...]:
    return ("ip", "-6") if family == "-6" else ("ip",)


def brief(routes: list[str]) -> list[str]:
    """As ip shows them without -d"""
    return [route.replace(" proto boot", "").replace(" scope global", "") for route in routes]


def read_routes(space: Namespace, family: str, prefix: str) -> list[str] | None:
    """The routes to exactly this prefix, without words that tell a passing state. None: ip
    does not take it for a prefix."""
    status, text, _ = output(space.tool("ip", "-d", family, "route", "show", "exact", prefix))
    if status:
        return None
    lines: list[str] = []
    for line in text.splitlines():
        words = [word for word in line.split() if word not in STATE_WORDS]
        if line[:1].isspace() and lines:
            lines[-1] += " " + " ".join(words)
        elif words:
            lines.append(" ".join(words).removeprefix("unicast "))
    return lines


def names_by_index(place: Place) -> dict[str, str]:
    return {f"#{number}": name for number, name in place.space.names().items()}


def portable(place: Place, routes: list[str]) -> list[str]:
    """With the index of a device in place of its name: "dev #7" """
    index = {name: f"#{number}" for number, name in place.space.names().items()}
    return [with_devices(route, index) for route in routes]


def named(route: str, place: Place) -> str:
    """The other way: "dev eth0" """
    return with_devices(route, names_by_index(place))


def with_devices(route: str, names: dict[str, str]) -> str:
    return " ".join(Command(tuple(route.split())).on_device(names).argv)


def has_all(command: Command, now: list[str], place: Place) -> bool:
    """Does a route have all that the command gave it?"""
    words = command.argv
    if "route" not in words or words[words.index("route") + 1] not in ("add", "replace"):
        return False
    given = " ".join(words[words.index("route") + 2:])
    wanted = set(portable(place, [given])[0].split())
    # written in another way by ip: addresses of hosts without "/32"
    return any(len(wanted - set(route.split())) <= 1 for route in now)
