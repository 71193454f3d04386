# SPDX-License-Identifier: GPL-2.0
"""The kinds of things with one value that lowq-tc changes, a class for each: how it is read, and the commands that
give it a value. All of them are undone alike."""

from __future__ import annotations

import socket
from typing import NamedTuple

from lowq_common import queues, routes, system
from lowq_common.routes import MAIN, Prefix
from lowq_common.values import INGRESS_PREF, Json

from .command import Command, tc
from .journal import Thing
from .world import INGRESS, World

ALLOWED_KEY = "net.ipv4.tcp_allowed_congestion_control"
IFB_INDEX = 0x10F00000  # of the ifb for what arrives at a device: this and the index of the device
GONE = "gone"  # of something that is not there any more, and its value with it


class Kind:
    name: str

    def read(self, world: World, target: str) -> Json:
        raise NotImplementedError

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        """What gives it this value"""
        raise NotImplementedError

    def same(self, one: Json, other: Json) -> bool:
        return bool(one == other)

    def described(self, world: World, target: str) -> str:
        return target

    def text(self, world: World, value: Json) -> str:
        return "not there" if value in (None, GONE) else str(value)

    def change(self, world: World, thing: Thing) -> str:
        return (f"{self.described(world, thing.target)} from {self.text(world, thing.before)}"
                f" to {self.text(world, thing.ours[-1])}")


class Sysctl(Kind):
    """Its target is the key, with dots."""

    name = "sysctl"

    def read(self, world: World, target: str) -> Json:
        return world.space.sysctl(target)

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        return [Command(("sysctl", "-q", "-w", f"{target}={value}"))]


class Allowed(Kind):
    """Is a control in the list of all namespaces? The rest of the list is not touched."""

    name = "allowed"

    def read(self, world: World, target: str) -> Json:
        return target in (system.sysctl_everywhere(ALLOWED_KEY) or "").split()

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        # several may be changed one after the other
        names = world.allowed or (system.sysctl_everywhere(ALLOWED_KEY) or "").split()
        world.allowed = [name for name in names if name != target] + ([target] if value else [])
        return [Command(("sysctl", "-q", "-w", f"{ALLOWED_KEY}={' '.join(world.allowed)}"), everywhere=True)]

    def change(self, world: World, thing: Thing) -> str:
        return f"{thing.target} allowed"


class Module(Kind):
    """Is it loaded?"""

    name = "module"

    def read(self, world: World, target: str) -> Json:
        return system.module_loaded(target)

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        return [Command(("modprobe", *(() if value else ("-r",)), target), everywhere=True)]

    def change(self, world: World, thing: Thing) -> str:
        return f"{thing.target} loaded"


class Parameter(Kind):
    """Its target is MODULE.PARAMETER. With the module goes its value."""

    name = "parameter"

    def read(self, world: World, target: str) -> Json:
        value = system.read_file(system.parameter_path(target))
        return GONE if value is None else value

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        return [Command((value,), True, system.parameter_path(target))]


class OfDevice(Kind):
    """An attribute of a device; the target is its index."""

    def __init__(self, name: str, field: str) -> None:
        self.name = name
        self.field = field

    def read(self, world: World, target: str) -> Json:
        return getattr(world.link(int(target)), self.field, GONE)

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        return [Command(("ip", "link", "set", "dev", world.name(int(target)), self.name, str(value)))]

    def described(self, world: World, target: str) -> str:
        return f"{self.name} of {getattr(world.link(int(target)), 'name', 'a device that is gone')}"


class Clsact(OfDevice):
    """Has the device a clsact? One that others use by now stays."""

    def read(self, world: World, target: str) -> Json:
        return world.has_clsact(int(target)) if world.link(int(target)) else GONE

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        if not value and world.filters_at_clsact(int(target)):
            return []
        return [tc("qdisc", "add" if value else "del", "dev", world.name(int(target)), "clsact")]


def redirects(world: World, upper: int) -> bool:
    return any(one.pref == INGRESS_PREF for one in world.filters_at_clsact(upper, INGRESS))


class Ingress(OfDevice):
    """Where what arrives at a device goes; the target is the index of the ifb that it goes to. "clsact" before: there
    was one."""

    def read(self, world: World, target: str) -> Json:
        upper = int(target) - IFB_INDEX
        there = world.link(int(target)), redirects(world, upper)
        if any(there):
            return "redirected" if all(there) else "redirected in part"
        return "clsact" if world.has_clsact(upper) else ""

    def same(self, one: Json, other: Json) -> bool:
        return str(one).startswith("redirected") == str(other).startswith("redirected")

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        """Only the way back"""
        upper, link, made = world.link(int(target) - IFB_INDEX), world.link(int(target)), []
        if upper and world.has_clsact(upper.ifindex):
            others = [one for one in world.filters_at_clsact(upper.ifindex) if one.pref != INGRESS_PREF]
            if not value and not others:
                made.append(tc("qdisc", "del", "dev", upper.name, "clsact"))
            elif redirects(world, upper.ifindex):
                made.append(tc("filter", "del", "dev", upper.name, "ingress", "pref", INGRESS_PREF))
        return made + ([Command(("ip", "link", "del", "dev", link.name))] if link else [])


class TimerSlack(Kind):
    """How much later than its time an fq may send a packet, ns; the target is "INDEX HANDLE"."""

    name = "timer_slack"

    def read(self, world: World, target: str) -> Json:
        index, handle = target.split(" ")
        return next((queues.options(one)["timer_slack"] for one in world.qdiscs(int(index))
                     if one.kind == "fq" and queues.handle_text(one.handle) == handle), GONE)

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        index, handle = target.split(" ")
        return [tc("qdisc", "change", "dev", world.name(int(index)), "handle", handle, "fq", "timer_slack", f"{value}ns")]

    def described(self, world: World, target: str) -> str:
        link = world.link(int(target.split(" ")[0]))
        return f"timer_slack of fq on {link.name if link else 'a device that is gone'}"

    def text(self, world: World, value: Json) -> str:
        return super().text(world, value if value == GONE else f"{value}ns")


class OfRoute(Kind):
    """The routes to a prefix in a table: "FAMILY PREFIX", or "FAMILY PREFIX TABLE" where that is not main. In ip's
    words, with the index of a device in place of its name, which can change."""

    name = "route"

    def read(self, world: World, target: str) -> Json:
        prefix, table = prefix_of(target)
        return world.routes(prefix).get(table, [])

    def set(self, world: World, target: str, value: Json) -> list[Command]:
        prefix, _ = prefix_of(target)
        now = self.read(world, target)
        if value:
            return [Command((*ip_words(prefix), "route", "replace" if now else "add", *named(world, value[0]).split()))]
        words = now[0].split()
        kept = [word for name in ("tos", "table", "metric") if name in words for word in (name, words[words.index(name) + 1])]
        return [Command((*ip_words(prefix), "route", "del", prefix.text, *kept))]

    def same(self, one: Json, other: Json) -> bool:
        return isinstance(one, list) and isinstance(other, list) and list(map(plain, one)) == list(map(plain, other))

    def replaced(self, now: Json, thing: Thing) -> bool:
        """Has a manager put a route of its own beside what was there before lowq-tc? Then nothing here is lowq-tc's."""
        there = list(map(plain, now))
        return bool(thing.before) and all(plain(one) in there for one in thing.before) and not any(
            plain(one) in there for ours in thing.ours for one in ours)

    def described(self, world: World, target: str) -> str:
        prefix, table = prefix_of(target)
        return prefix.text + (f" in table {table}" if table != MAIN else "")

    def text(self, world: World, value: Json) -> str:
        return "; ".join(named(world, route) for route in value or []) or "not there"

    def change(self, world: World, thing: Thing) -> str:
        return "route " + self.text(world, thing.ours[-1])


def plain(route: str) -> list[str]:
    """Without what is so anyway: records of lowq 0.3 have what ip shows"""
    words = f" {route} "
    for usual in (" proto boot ", " scope global ", " scope link ", " pref medium ", " metric 1024 "):
        words = words.replace(usual, " ")
    return sorted(words.split())


def target_of(prefix: Prefix, table: int) -> str:
    words = ["-6" if prefix.family == socket.AF_INET6 else "-4", prefix.text, *([str(table)] if table != MAIN else [])]
    return " ".join(words)


def prefix_of(target: str) -> tuple[Prefix, int]:
    family, prefix, *table = target.split(" ")
    return routes.parse_prefix("::/0" if (family, prefix) == ("-6", "default") else prefix), int(table[0]) if table else MAIN


def ip_words(prefix: Prefix) -> tuple[str, ...]:
    return ("ip", "-6") if prefix.family == socket.AF_INET6 else ("ip",)


def named(world: World, route: str) -> str:
    """With names of devices in place of their indices"""
    return " ".join(Command(tuple(route.split())).on_device({f"#{one.ifindex}": one.name for one in world.links}).argv)


KINDS: dict[str, Kind] = {one.name: one for one in (
    Sysctl(), Allowed(), Module(), Parameter(), OfDevice("gso_max_segs", "gso_segs"), OfDevice("txqueuelen", "txqlen"),
    Clsact("clsact", ""), Ingress("ingress", ""), TimerSlack(), OfRoute())}


class Undo(NamedTuple):
    commands: list[Command]
    done: bool  # it needs no record any more, once the commands have run
    said: str = ""


def undo(world: World, thing: Thing, force: bool = False, to: Json = None) -> Undo:
    """What puts back one thing, if it is still its own. to: not what was there before lowq-tc first changed it"""
    kind = KINDS[thing.kind]
    before = thing.before if to is None else to
    now = kind.read(world, thing.target)
    if now == GONE or kind.same(now, before) or isinstance(kind, OfRoute) and kind.replaced(now, thing):
        return Undo([], True)
    if not any(kind.same(now, each) for each in thing.ours) and not force:
        return Undo([], False, f"{kind.described(world, thing.target)} was changed by someone else since: it is"
                               f" '{kind.text(world, now)}' now, was '{kind.text(world, thing.ours[-1])}'; left alone"
                               " (--force puts it back)")
    return Undo(kind.set(world, thing.target, before), True)


def effect(world: World, target: str, control: str) -> tuple[list[str], list[str]]:
    """Of a route: which lookups give the control, and which do not"""
    prefix, _ = prefix_of(target)
    return routes.unreached(world.asked, prefix, control, world.ways(prefix.family))


