# SPDX-License-Identifier: GPL-2.0
"""The routes to a prefix that shall name a control: in each table to which a lookup leads."""

from __future__ import annotations

from typing import Callable, Iterator

from lowq_common import routes
from lowq_common.errors import NotReady, Refused
from lowq_common.routes import PREFSRC, RA, TYPES, UNICAST, Prefix, Route

from .command import Command
from .things import ip_words, named, target_of
from .world import World

HINT = "use --default, or add a route of your own to a narrower prefix"


def wanted_routes(world: World, given: str, before: Callable[[str], list[str] | None],
                  changed: Callable[[list[str]], list[str]]) -> Iterator[tuple[str, list[str]]]:
    """-> target and the words that it shall have. before: what was there before lowq-tc, if it has set it"""
    prefix = routes.parse_prefix(given)
    found: dict[int, Route] = {}
    narrower: list[Prefix] = []
    for way in world.ways(prefix.family):
        reached, first = routes.towards(world.asked, prefix, way)
        narrower += first if reached is None else []
        if reached and (reached.kind == UNICAST or not way.label):
            found.setdefault(reached.table, reached)
    there = world.exactly(prefix)
    if not found:  # those that only packets with a TOS take
        found = {one.table: one for one in there if one.tos}
    if not found:
        if narrower:
            raise Refused(f"--route {given}: narrower routes come first everywhere: {routes.listing(narrower)}; give these")
        raise NotReady(f"--route {given}: there is no way to it")
    if len(found) > 1:
        found = {table: one for table, one in found.items() if one.kind == UNICAST} or found
    for table, one in found.items():
        own = [each for each in there if each.table == table]
        if len(own) > 1 and any(each.identity() == one.identity() and is_so(each, changed) for each in own):
            continue  # a manager's own names the control, before its plain one: lowq-tc export networkd
        if len(own) > 1:
            raise Refused(f"--route {given}: there are {len(own)} routes to it{one.where}; take a narrower prefix")
        usable(world, given, prefix, own[0] if own else one, bool(own))
        target = target_of(prefix, table)
        was = before(target)
        try:
            if was:
                words = was[0].split()
            else:
                words = (own[0] if own else beside(one, prefix)).words({})
                words = routes.without_metrics(words) if was == [] else words
        except Refused as error:
            raise Refused(f"--route {given}: {error}") from None
        yield target, changed(words)


def is_so(found: Route, changed: Callable[[list[str]], list[str]]) -> bool:
    """ECN is asked for by the kernel itself, if the control needs it."""
    words = found.words({})
    return set(changed(words)) - set(words) <= {"features", "ecn"}


def usable(world: World, given: str, prefix: Prefix, found: Route, own: bool) -> None:
    """Refuses what is no way to other hosts, and routes that go by themselves: what is written here would stay."""
    if found.kind != UNICAST:
        if own:
            raise Refused(f"--route {given}: is no route to another host ({TYPES[found.kind]})")
        raise NotReady(f"--route {given}: there is no way to it")
    if found.protocol == RA and own:
        raise Refused(f"--route {given}: the route comes from router advertisements, and is withdrawn by them, but what is"
                      f" written in its place would stay; {HINT}")
    if found.protocol == RA:
        words = named(world, " ".join(beside(found, prefix).words({}))).split()
        add = Command((*ip_words(prefix), "route", "add", *words)).text(world.space.name)
        raise Refused(f"--route {given}: the way to it comes from router advertisements, and is withdrawn by them, but a"
                      f" copy would stay; add it yourself ('{add}'), or use --default")
    if found.expires and own:
        raise Refused(f"--route {given}: the route expires in {found.expires}s unless it is renewed, but what is written"
                      f" in its place would stay; {HINT}")


def beside(found: Route, prefix: Prefix) -> Route:
    """A route of its own to the prefix, beside the one that is taken today. IPv6 addresses come and go: the kernel
    chooses one well by itself."""
    left = {routes.METRICS, routes.CACHEINFO, routes.PRIORITY, *([PREFSRC] if prefix.bits == 128 else [])}
    had = {which: value for which, value in found.had.items() if which not in left}
    if prefix.bits == 128:
        had[routes.PRIORITY] = routes.IP6_PRIORITY
    return found._replace(prefix=prefix, protocol=routes.BOOT, had=had)
