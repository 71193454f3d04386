# SPDX-License-Identifier: GPL-2.0
"""Routes. A state is the list of routes to a prefix in a table, in ip's words, with the index of a device in
place of its name, which can change."""

from __future__ import annotations

import socket

from lowq_common import routes
from lowq_common.errors import Refused
from lowq_common.netlink import Netlink
from lowq_common.routes import MAIN, Prefix, Route as Found
from lowq_common.values import Json

from ..command import Command
from ..journal import UNDOING, SavedState, Step
from .base import Aspect, Place, made_by


class Route(Aspect):
    """Its target is "FAMILY PREFIX", or "FAMILY PREFIX TABLE" where that is not main."""

    name = "route"

    def read(self, place: Place, target: str) -> Json:
        _, prefix, *table = target.split(" ")
        wanted = routes.parse_prefix(prefix)
        with Netlink(place.space) as asked:
            return texts([one for one in routes.exactly(asked, wanted) if one.table == int(table[0] if table else MAIN)])

    def same(self, one: Json, other: Json) -> bool:
        return brief(one) == brief(other)

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        if not now:
            return step.state == UNDOING or step.earlier is not None
        return any(" ".join(portable(place, list(command.argv))).endswith(f" route {word} {one}")
                   for command in made_by(step) for one in now for word in ("add", "replace"))

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        if not saved.state and not now:
            return []
        names = {f"#{number}": name for number, name in place.space.names().items()}
        return [command.on_device(names) for command in saved.commands]

    def described(self, target: str) -> str:
        _, prefix, *table = target.split(" ")
        return prefix + (f" in table {table[0]}" if table and table[0] != str(MAIN) else "")

    def text(self, place: Place, state: Json) -> str:
        return "; ".join(named(route, place) for route in state or []) or "not there"

    def change(self, shown: Json) -> str:
        return "route " + ("; ".join(shown["new"] or []) or self.described(shown["name"]))


def target_of(prefix: Prefix, table: int) -> str:
    words = ["-6" if prefix.family == socket.AF_INET6 else "-4", prefix.text, *([str(table)] if table != MAIN else [])]
    return " ".join(words)


def ip_words(prefix: Prefix) -> tuple[str, ...]:
    return ("ip", "-6") if prefix.family == socket.AF_INET6 else ("ip",)


def texts(found: list[Found]) -> list[str]:
    made = []
    for one in found:
        try:
            made.append(" ".join(one.words({})))
        except Refused as error:
            made.append(f"{one.prefix.text}: {error}")
    return made


def brief(shown: Json) -> list[str]:
    """Records of lowq 0.2 have what ip shows"""
    made = []
    for route in shown:
        words = route.replace(" proto boot", "").replace(" scope global", "").replace(" pref medium", "").split()
        if words[1:2] != ["nexthop"] and "via" not in words:
            words = " ".join(words).replace(" scope link", "").split()
        if words[2:3] == ["1024"]:
            words = words[:1] + words[3:]
        made.append(" ".join(sorted(words)).replace(" metric 1024", "").replace("1024 metric ", ""))
    return made


def portable(place: Place, words: list[str]) -> list[str]:
    """With the index of a device in place of its name: "dev #7" """
    return list(Command(tuple(words)).on_device({name: f"#{at}" for at, name in place.space.names().items()}).argv)


def named(route: str, place: Place) -> str:
    """The other way: "dev eth0" """
    return " ".join(Command(tuple(route.split())).on_device({f"#{at}": name for at, name in place.space.names().items()}).argv)
