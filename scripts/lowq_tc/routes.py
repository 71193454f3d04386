# SPDX-License-Identifier: GPL-2.0
"""The steps that name a control on the routes to a prefix: in each table to which a lookup leads."""

from __future__ import annotations

from typing import Callable

from lowq_common import devices, routes
from lowq_common.errors import Refused
from lowq_common.netlink import Netlink
from lowq_common.routes import PREFSRC, RA, TYPES, UNICAST, Prefix, Route
from lowq_common.system import Namespace

from .aspects import ROUTE
from .aspects.base import Place
from .aspects.route import ip_words, target_of, texts
from .command import Command
from .journal import DONE, SavedState, Step

HINT = "use --default, or add a route of your own to a narrower prefix"


def usable(space: Namespace, given: str, prefix: Prefix, found: Route, names: dict[int, str], own: bool) -> None:
    """Refuses what is no way to other hosts, and routes that go by themselves: what is written here would stay."""
    if found.kind != UNICAST:
        raise Refused(f"--route {given}: " + (f"is no route to another host ({TYPES[found.kind]})" if own else
                                             "there is no way to it"))
    if found.protocol == RA and own:
        raise Refused(f"--route {given}: the route comes from router advertisements, and is withdrawn by them, but what is"
                      f" written in its place would stay; {HINT}")
    if found.protocol == RA:
        add = Command((*ip_words(prefix), "route", "add", *beside(found, prefix).words(names))).text(space.name)
        raise Refused(f"--route {given}: the way to it comes from router advertisements, and is withdrawn by them, but a"
                      f" copy would stay; add it yourself ('{add}'), or use --default")
    if found.expires and own:
        raise Refused(f"--route {given}: the route expires in {found.expires}s unless it is renewed, but what is written"
                      f" in its place would stay; {HINT}")


def plan_routes(place: Place, given: str, control: str, values: dict[str, int], features: list[str],
                old: Callable[[str], Step | None]) -> list[Step]:
    """old: finds the step of an earlier call by its target"""
    prefix = routes.parse_prefix(given)
    links = devices.links(place.space)
    names = {link.ifindex: link.name for link in links}
    found: dict[int, Route] = {}
    narrower: list[Prefix] = []
    with Netlink(place.space) as asked:
        for way in routes.ways(asked, prefix.family, links):
            reached, first = routes.towards(asked, prefix, way)
            narrower += first if reached is None else []
            if reached and (reached.kind == UNICAST or not way.label):
                found.setdefault(reached.table, reached)
        there = routes.exactly(asked, prefix)
    if not found:  # those that only packets with a TOS take
        found = {one.table: one for one in there if one.tos}
    if not found:
        if narrower:
            raise Refused(f"--route {given}: narrower routes come first everywhere: {routes.listing(narrower)}; give these")
        raise Refused(f"--route {given}: there is no way to it")
    if len(found) > 1:  # local and others, which lead nowhere, beside real ones
        found = {table: one for table, one in found.items() if one.kind == UNICAST} or found
    return [step_for(place, given, one, [each for each in there if each.table == table], names,
                     lambda words: routes.with_metrics(words, control, values, features), old(target_of(prefix, table)))
            for table, one in found.items()]


def step_for(place: Place, given: str, found: Route, there: list[Route], names: dict[int, str],
             changed: Callable[[list[str]], list[str]], old: Step | None) -> Step:
    prefix = routes.parse_prefix(given)
    if len(there) > 1:
        raise Refused(f"--route {given}: there are {len(there)} routes to it{found.where}; take a narrower prefix")
    ip, now = ip_words(prefix), texts(there)

    def command(verb: str, words: list[str]) -> Command:
        return Command((*ip, "route", verb, *words))

    usable(place.space, given, prefix, there[0] if there else found, names, bool(there))
    base = there[0] if there else beside(found, prefix)
    try:
        words = base.words({})
    except Refused as error:
        raise Refused(f"--route {given}: {error}") from None
    saved = SavedState(now, [command("replace", words) if there else command("del", base.identity())])
    earlier = None
    if old is not None and ROUTE.made_by_us(place, old, now):
        if old.state == DONE:
            earlier = SavedState(now, old.commands)
        saved = old.before
        words = saved.state[0].split() if saved.state else words
        if not saved.state:
            words = routes.without_metrics(words)
    names_of = {f"#{index}": name for index, name in names.items()}
    made = command("replace" if there else "add", changed(words)).on_device(names_of)
    return Step(ROUTE.name, target_of(prefix, found.table), [made], saved, earlier)


def beside(found: Route, prefix: Prefix) -> Route:
    """A route of its own to the prefix, beside the one that is taken today. IPv6 addresses come and go: the kernel
    chooses one well by itself."""
    left = {routes.METRICS, routes.CACHEINFO, routes.PRIORITY, *([PREFSRC] if prefix.bits == 128 else [])}
    had = {which: value for which, value in found.had.items() if which not in left}
    if prefix.bits == 128:
        had[routes.PRIORITY] = routes.IP6_PRIORITY
    return found._replace(prefix=prefix, protocol=routes.BOOT, had=had)
