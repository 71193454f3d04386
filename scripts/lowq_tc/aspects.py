# SPDX-License-Identifier: GPL-2.0
"""The kinds of things that lowq-tc changes: how each is read, how a state is recognised, and
which commands lead back from what is there now."""

from __future__ import annotations

import json
import re

from lowq_common import devices, system
from lowq_common.devices import Link, handle_of, root_handle, root_of
from lowq_common.errors import Refused
from lowq_common.light import Json
from lowq_common.system import Namespace

from . import inspect
from .command import Command, tc
from .journal import BEGUN, UNDOING, Step, SavedState
from .profiles.queues import ROOT

TREE, CLSACT, SEGMENTS = "queue", "clsact", "gso_max_segs"
SYSCTL, PARAMETER, MODULE, ALLOWED, ROUTE = "sysctl", "parameter", "module", "allowed", "route"
ALLOWED_KEY = "net.ipv4.tcp_allowed_congestion_control"


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

    def same_device(self) -> bool:
        """Does the name still lead to the device? Asked before each command."""
        try:
            return self.link is None or self.name() == self.link.name
        except Refused:
            return False

    # --- reading ------------------------------------------------------------------

    def read(self, step: Step) -> Json:
        return self.state(step.aspect, step.target)

    def state(self, aspect: str, target: str) -> Json:
        if aspect == SYSCTL:
            return self.space.sysctl(target)
        if aspect == PARAMETER:
            return system.read_file(system.parameter_path(target))
        if aspect == MODULE:
            return system.module_loaded(target)
        if aspect == ALLOWED:
            return target in (system.sysctl_everywhere(ALLOWED_KEY) or "").split()
        if aspect == ROUTE:
            return self.portable(inspect.routes(self.space, *target.split(" ")) or [])
        if aspect == CLSACT:
            return inspect.read_clsact(self.space, self.name())
        link = self.refresh()
        return link.gso_segs if aspect == SEGMENTS else inspect.read_tree(self.space, link)

    def portable(self, routes: list[str]) -> list[str]:
        """Routes with the index of a device in place of its name, which can change."""
        index = {name: number for number, name in self.space.names().items()}
        made = []
        for route in routes:
            words = route.split()
            for at, word in enumerate(words):
                if at and words[at - 1] == "dev":
                    words[at] = f"#{index.get(word, word)}"
            made.append(" ".join(words))
        return made

    # --- recognising ----------------------------------------------------------------

    def as_before(self, saved: SavedState, step: Step, now: Json) -> bool:
        if step.aspect == PARAMETER and now is None:
            return True  # its module was unloaded, and the value with it
        if step.aspect == TREE:
            return same_tree(saved.state, now)
        return bool(saved.state == now)

    def made_by_us(self, step: Step, now: Json) -> bool:
        """Is this what the step made, or a state in the middle of its commands?"""
        if step.after is not None and self.matches(step, step.after, now):
            return True
        if step.earlier is not None and self.matches(step, step.earlier.state, now):
            return True
        under_way = step.state in (BEGUN, UNDOING) or step.after is None
        if not under_way:
            return False
        if step.aspect == TREE:
            return passing_tree(step, now)
        if step.aspect == CLSACT:
            return now is None or passing_clsact(step, now)
        if step.aspect == ROUTE:
            if not now:
                return step.state == UNDOING or step.earlier is not None
            return any(route_made(command, now, self) for command in made_by(step))
        if step.aspect == ALLOWED or step.aspect == MODULE:
            return bool(now)
        # One command, one value: it is there, or it is not.
        return now is not None and any(str(now) == value_of(command) for command in step.commands)

    @staticmethod
    def matches(step: Step, state: Json, now: Json) -> bool:
        return same_tree(state, now) if step.aspect == TREE else bool(state == now)

    # --- back -------------------------------------------------------------------------

    def commands_back(self, step: Step, saved: SavedState, now: Json) -> list[Command]:
        """The commands that lead from what is there now to that state. All of it was made by
        lowq-tc, or --force was given."""
        if step.aspect == ALLOWED:
            names = [name for name in (system.sysctl_everywhere(ALLOWED_KEY) or "").split() if name != step.target]
            return [Command(("sysctl", "-q", "-w", f"{ALLOWED_KEY}={' '.join(names)}"), everywhere=True)]
        if step.aspect == ROUTE:
            family, prefix = step.target.split(" ")
            if not saved.state:
                return [Command((*ip_words(family), "route", "del", prefix))] if now else []
            return self.renamed(saved, step)
        if step.aspect not in (TREE, CLSACT):
            return self.renamed(saved, step)
        name = self.name()
        made = []
        if step.aspect == CLSACT:
            if now is not None:
                made.append(tc("qdisc", "del", "dev", name, now["kind"]))
            return made + self.renamed(saved, step)
        if root_handle(now) != "0:":
            made.append(tc("qdisc", "del", "dev", name, "root"))
        made += self.renamed(saved, step)
        # The kernel gives a device without queue length one when it gets a queue.
        if saved.state["txqlen"] != now["txqlen"] or (not saved.state["txqlen"] and saved.commands):
            made.append(Command(("ip", "link", "set", "dev", name, "txqueuelen", str(saved.state["txqlen"]))))
        return made

    def renamed(self, saved: SavedState, step: Step) -> list[Command]:
        """Its commands, with the names that the devices have now"""
        if step.aspect == ROUTE:
            names = {f"#{number}": name for number, name in self.space.names().items()}
            return [command.on_device(names) for command in saved.commands]
        if step.aspect in (TREE, CLSACT, SEGMENTS):
            name = self.name()
            return [
                command.on_device({command.argv[command.argv.index("dev") + 1]: name}) for command in saved.commands
            ]
        return saved.commands


def ip_words(family: str) -> tuple[str, ...]:
    return ("ip", "-6") if family == "-6" else ("ip",)


def value_of(command: Command) -> str:
    """The value that a command sets: sysctl KEY=VALUE, ... gso_max_segs VALUE, echo VALUE"""
    last = command.argv[-1]
    return last.partition("=")[2] if command.argv[0] == "sysctl" else last


def made_by(step: Step) -> list[Command]:
    return step.commands + (step.earlier.commands if step.earlier else [])


# --- trees ----------------------------------------------------------------------------


def same_qdisc(one: Json, two: Json) -> bool:
    """Options count only if tc could print them both times: that depends on its plugins."""
    if {**one, "options": 0, "unknown": 0} != {**two, "options": 0, "unknown": 0}:
        return False
    readable = [isinstance(q.get("options"), dict) and "unknown" not in q and "unknown" not in q["options"]
                for q in (one, two)]
    return not all(readable) or one.get("options") == two.get("options")


def same_tree(one: Json, two: Json) -> bool:
    if one is None or two is None:
        return one is two
    if [one[key] for key in ("classes", "filters", "txqlen")] != [two[key] for key in ("classes", "filters", "txqlen")]:
        return False
    if len(one["qdiscs"]) == len(two["qdiscs"]) and all(map(same_qdisc, one["qdiscs"], two["qdiscs"])):
        return True
    # A device that was never up has noop in place of the queue that the kernel gives it
    # then: lowq-tc did not change it.
    if root_handle(one) == root_handle(two) == "0:":
        return any(root["kind"] == "noop" for root in map(root_of, (one, two)) if root)
    return False


def explicit(tree: Json) -> list[Json]:
    """Its qdiscs without those that the kernel put there by itself"""
    return [qdisc for qdisc in tree["qdiscs"] if handle_of(qdisc) != "0:"]


def place_and_kind(command: Command) -> tuple[str, str] | None:
    """Of "tc qdisc add": where, and what"""
    words = command.argv[2:] if command.argv[0] == "env" else command.argv
    if words[:3] != ("tc", "qdisc", "add"):
        return None
    rest = list(words[5:])
    place = rest.pop(0)
    if place == "parent":
        place = rest.pop(0)
    if rest[0] == "handle":
        rest = rest[2:]
    return place, rest[0]


def passing_tree(step: Step, now: Json) -> bool:
    """Is this part of the tree that the step makes, or of the one that it puts back?"""
    handle = root_handle(now)
    if handle == "0:":
        return True  # nothing is there: between "del" and "add"
    qdiscs = explicit(now)
    if handle == ROOT + ":":
        made = {place_and_kind(command) for command in made_by(step)}
        return all((qdisc.get("parent", "root"), qdisc["kind"]) in made for qdisc in qdiscs)
    # A part of what is put back. (A tree that --force gave up was not made again by anyone.)
    if step.state == UNDOING and not step.lost:
        return all(any(same_qdisc(qdisc, old) for old in step.before.state["qdiscs"]) for qdisc in qdiscs)
    return False


def passing_clsact(step: Step, now: Json) -> bool:
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


def route_made(command: Command, now: list[str], place: Place) -> bool:
    """Does a route have all that the command gave it?"""
    words = command.argv
    if "route" not in words or words[words.index("route") + 1] not in ("add", "replace"):
        return False
    given = " ".join(words[words.index("route") + 2:])
    wanted = set(place.portable([given])[0].split())
    # written in another way by ip: addresses of hosts without "/32"
    return any(len(wanted - set(route.split())) <= 1 for route in now)


def difference(step: Step, was: Json, now: Json) -> str:
    """In a few words, for people"""
    if step.aspect == TREE:
        if now is None or was is None:
            return "it cannot be read"
        if same_tree({**was, "txqlen": 0}, {**now, "txqlen": 0}):
            return f"its queue length is {now['txqlen']}, was {was['txqlen']}"
        roots = [root_of(tree) for tree in (was, now)]
        kinds = [f"{root['kind']} {handle_of(root)}" if root else "none" for root in roots]
        if kinds[0] != kinds[1]:
            return f"its root is '{kinds[1]}' now, was '{kinds[0]}'"
        for old, new in zip(was["qdiscs"], now["qdiscs"]):
            if not same_qdisc(old, new):
                return f"'{text_of(old)}' is '{text_of(new)}' now"
        for what in ("classes", "filters"):
            if was[what] != now[what]:
                return f"its {what} are others now"
        return "it has another number of queues now"
    return f"it is '{text_of(now)}' now, was '{text_of(was)}'"


def text_of(state: Json) -> str:
    if state is None:
        return "not there"
    if isinstance(state, list):
        return "; ".join(map(str, state)) or "not there"
    return state if isinstance(state, str) else json.dumps(state)
