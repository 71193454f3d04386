# SPDX-License-Identifier: GPL-2.0
"""Prefixes, and the step that names a control on a route."""

from __future__ import annotations

import socket
from typing import NamedTuple

from lowq_common import system
from lowq_common.errors import Refused
from lowq_common.light import matched
from lowq_common.system import Namespace

from .aspects import ROUTE
from .aspects.base import Place
from .aspects.route import ip_words, named, portable, read_routes
from .command import Command
from .journal import DONE, SavedState, Step


class Prefix(NamedTuple):
    family: str  # -4 or -6
    text: str  # as ip shows it
    address: str


def parse_prefix(text: str) -> Prefix:
    """A prefix as ip takes it: 10.0.0.0/8, 10/8, default, fd00::/8. Written one way only."""
    wrong = Refused(f"--route {text}: not a prefix")
    if text == "default":
        return Prefix("-4", "default", "0.0.0.0")
    address, slash, length_text = text.partition("/")
    six = ":" in address
    if not six and slash and matched(r"\d+(\.\d+){0,3}", address):
        address += ".0" * (3 - address.count("."))
    bits = 128 if six else 32
    try:
        packed = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, address)
    except (OSError, ValueError):
        raise wrong from None
    if slash and not matched(r"\d{1,3}", length_text):
        raise wrong
    length = int(length_text) if slash else bits
    if length > bits:
        raise wrong
    number = int.from_bytes(packed, "big")
    network = number >> (bits - length) << (bits - length)
    shown = socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, network.to_bytes(bits // 8, "big"))
    if number != network:
        raise Refused(f"--route {text}: has bits beyond its length set; the prefix is {shown}/{length}")
    if length == 0:
        return Prefix("-6" if six else "-4", "::/0" if six else "default", shown)
    return Prefix("-6" if six else "-4", f"{shown}/{length}", shown)


FEATURES = ("ecn", "tcp_usec_ts")
METRICS = ("congctl", "initcwnd", "initrwnd", "quickack")


class Words(NamedTuple):
    head: list[str]
    tail: list[str]  # from the first nexthop on
    features: list[str]


def split_route(line: str, replaced: list[str] | None = None) -> Words | None:
    """A route as ip shows it, in words that ip accepts. Features, and metrics named in replaced,
    are left out of it. None: the route is dead."""
    words = line.split()
    head: list[str] = []
    tail: list[str] = []
    features: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "dead":
            return None
        if replaced is not None and word in METRICS and word in replaced:
            at += 2 if words[at] == "lock" else 1
            continue
        if replaced is not None and word == "features":
            while at < len(words) and words[at] in FEATURES:
                features.append(words[at])
                at += 1
            continue
        (tail if tail or word == "nexthop" else head).append(word)
    return Words(head, tail, features)


def plan_route(space: Namespace, text: str, words: list[str], wanted_features: list[str], old: Step | None,
               place: Place) -> Step:
    prefix = parse_prefix(text)
    ip = ip_words(prefix.family)
    shown = read_routes(space, prefix.family, prefix.text)
    if shown is None:
        raise Refused(f"--route {text}: not a prefix")
    if len(shown) > 1:
        raise Refused(f"--route {text}: there are {len(shown)} routes to it; take a narrower prefix")
    target = f"{prefix.family} {prefix.text}"
    now = portable(place, shown)
    saved = SavedState(now, [Command((*ip, "route", "del", prefix.text))])
    if shown:
        first = shown[0].split()[0]
        if first in ("local", "broadcast", "multicast", "unreachable", "blackhole", "prohibit", "throw"):
            raise Refused(f"--route {text}: is no route to another host ({first})")
        # A route without metrics that names a nexthop object finds the one with metrics again
        # in the kernel's tables: they would stay.
        if "nhid" in shown[0].split():
            raise Refused(
                f"--route {text}: uses a nexthop object; the kernel does not take metrics off such a route again"
            )
        whole = split_route(shown[0])
        if whole is None:
            raise Refused(f"--route {text}: the route is dead")
        saved.commands = [Command((*ip, "route", "replace", *indexed(place, whole.head + whole.tail)))]
    earlier = None
    base = shown
    if old is not None and ROUTE.made_by_us(place, old, now):
        if old.state == DONE:
            earlier = SavedState(now, [Command(tuple(indexed(place, list(one.argv)))) for one in old.commands])
        saved = old.before
        base = [named(one, place) for one in saved.state]
    if base:
        start = split_route(base[0], words) or Words([], [], [])
    else:
        # None of its own: one beside the route that is taken today.
        towards = system.route_towards(space, prefix.family, prefix.address)
        if not towards or towards.get("type", "unicast") != "unicast" or towards.get("dev") == "lo" or "via" in towards:
            raise Refused(f"--route {text}: there is no way to it")
        head = [prefix.text]
        if towards.get("gateway"):
            head += ["via", towards["gateway"]]
        head += ["dev", towards["dev"]]
        # IPv6 addresses come and go; the kernel chooses well by itself.
        if towards.get("prefsrc") and prefix.family == "-4":
            head += ["src", towards["prefsrc"]]
        start = Words(head, [], [])
    features = list(dict.fromkeys(start.features + wanted_features))
    command = Command((
        *ip, "route", "replace" if shown else "add", *start.head, *words,
        *(["features", *features] if features else []), *start.tail,
    ))
    return Step(ROUTE.name, target, [command], saved, earlier)


def indexed(place: Place, words: list[str]) -> list[str]:
    return portable(place, [" ".join(words)])[0].split()
