# SPDX-License-Identifier: GPL-2.0
"""Prefixes, and the step that names a control on a route."""

from __future__ import annotations

import socket
from typing import NamedTuple

from lowq_common import system
from lowq_common.errors import Refused
from lowq_common.values import matched
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
# What ip shows of a route, and takes as it shows it; all but these may follow the prefix
FLAGS = ("onlink", "pervasive", "nexthop")
VALUES = ("via", "dev", "proto", "scope", "src", "metric", "tos", "realm", "pref", "weight",
          "mtu", "advmss", "window", "rtt", "rttvar", "rto_min", "ssthresh", "cwnd", "hoplimit", "reordering",
          "fastopen_no_cookie", *METRICS)


class Words(NamedTuple):
    head: list[str]
    tail: list[str]  # from the first nexthop on
    features: list[str]


def split_route(line: str, replaced: list[str] | None = None) -> Words:
    """A route as ip shows it, in words that ip accepts. Features, and metrics named in replaced,
    are left out of it. Refused: ip would not make the same route of it."""
    prefix, *words = line.split()
    head = [prefix]
    tail: list[str] = []
    features: list[str] = []
    while words:
        word = words.pop(0)
        part = [word]
        if word == "features":
            while words and words[0] in FEATURES:
                part.append(words.pop(0))
            if replaced is not None:
                features += part[1:]
                continue
        elif word in VALUES:
            # "via inet6 ADDRESS", "mtu lock 1400"; ip takes no "lock" for rto_min, which has it always
            if words[0] in ("inet", "inet6", "lock"):
                part.append(words.pop(0))
            part.append(words.pop(0))
            if word == "rto_min":
                part = [word, part[-1]]
            if replaced is not None and word in METRICS and word in replaced:
                continue
        elif word not in FLAGS:
            raise Refused(f"its '{word}' could not be written back" if word != "dead" else "the route is dead")
        (tail if tail or word == "nexthop" else head).extend(part)
    return Words(head, tail, features)


def keeps(text: str, words: list[str]) -> None:
    """Refuses a route that goes by itself: what is written here would stay."""
    if "ra" in [two for one, two in zip(words, words[1:]) if one == "proto"]:
        raise Refused(
            f"--route {text}: the route comes from router advertisements, and is withdrawn by them, but what is written"
            " in its place would stay; use --default, or add a route of your own to a narrower prefix"
        )
    if "expires" in words:
        left = words[words.index("expires") + 1]
        raise Refused(
            f"--route {text}: the route expires in {left} unless it is renewed, but what is written in its place would"
            " stay; use --default, or add a route of your own to a narrower prefix"
        )


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
        keeps(text, shown[0].split())
        try:
            whole = split_route(shown[0])
        except Refused as error:
            raise Refused(f"--route {text}: {error}") from None
        saved.commands = [Command((*ip, "route", "replace", *indexed(place, whole.head + whole.tail)))]
    earlier = None
    base = shown
    if old is not None and ROUTE.made_by_us(place, old, now):
        if old.state == DONE:
            earlier = SavedState(now, [Command(tuple(indexed(place, list(one.argv)))) for one in old.commands])
        saved = old.before
        base = [named(one, place) for one in saved.state]
    if base:
        start = split_route(base[0], words)
    else:
        # None of its own: one beside the route that is taken today.
        towards = system.route_towards(space, prefix.family, prefix.address)
        if not towards or towards.get("type", "unicast") != "unicast" or towards.get("dev") == "lo" or "via" in towards:
            raise Refused(f"--route {text}: there is no way to it")
        if towards.get("protocol") == "ra":
            add = Command((*ip, "route", "add", prefix.text, "via", towards.get("gateway", ""), "dev", towards["dev"]))
            raise Refused(
                f"--route {text}: the way to it comes from router advertisements, and is withdrawn by them, but a"
                f" copy would stay; add it yourself ('{add.text(space.name)}'), or use --default"
            )
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
