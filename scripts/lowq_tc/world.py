# SPDX-License-Identifier: GPL-2.0
"""What is there: a network namespace as the kernel tells it by netlink. Read when it is first asked for, kept until
something has changed."""

from __future__ import annotations

import json
import socket
import struct
from typing import NamedTuple

from lowq_common import devices, queues, routes
from lowq_common.devices import Link
from lowq_common.errors import Refused
from lowq_common.netlink import RTM_GETTCLASS, RTM_GETTFILTER, TCMSG, Netlink, attributes, number, text
from lowq_common.queues import Qdisc
from lowq_common.routes import Prefix, Route, Way
from lowq_common.system import Namespace
from lowq_common.values import LOWQ_PREFS, LOWQ_ROOT, Json

ROOT = int(LOWQ_ROOT[:-1], 16)
EGRESS, INGRESS = 0xFFFFFFF3, 0xFFFFFFF2
CHOSEN = 0x8000  # handles from here on are the kernel's choice


class Filter(NamedTuple):
    pref: int
    kind: str
    options: str


class World:
    def __init__(self, space: Namespace) -> None:
        self.space = space
        self.asked = Netlink(space)
        self.prefixes: set[Prefix] = set()
        with space.entered():
            self.ioctl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.refresh()

    def refresh(self) -> None:
        self.allowed: list[str] = []  # controls, once the commands that were planned have run
        self._links: list[Link] | None = None
        self._qdiscs: dict[int, list[Qdisc]] | None = None
        self._routes: dict[Prefix, list[Route]] = {}
        self._ways: dict[int, list[Way]] = {}

    @property
    def links(self) -> list[Link]:
        if self._links is None:
            self._links = devices.read_links(self.asked)
            self._by_index = {link.ifindex: link for link in self._links}
            self._by_name = {link.name: link for link in self._links}
        return self._links

    def imagine(self, link: Link) -> None:
        """For a dry run: as if it were there"""
        self.links.append(link)
        self._by_index[link.ifindex] = self._by_name[link.name] = link

    def link(self, ifindex: int) -> Link | None:
        return self._by_index.get(ifindex) if self.links else None

    def name(self, ifindex: int) -> str:
        link = self.link(ifindex)
        if link is None:
            raise Refused("the device is gone")
        return link.name

    def named(self, name: str) -> Link | None:
        return (self._by_name.get(name) if self.links else None) or devices.find_link(self.links, name)

    def all_qdiscs(self) -> dict[int, list[Qdisc]]:
        if self._qdiscs is None:
            self._qdiscs = {}
            for one in queues.qdiscs(self.asked):
                self._qdiscs.setdefault(one.ifindex, []).append(one)
        return self._qdiscs

    def qdiscs(self, ifindex: int) -> list[Qdisc]:
        return self.all_qdiscs().get(ifindex, [])

    def root(self, ifindex: int) -> Qdisc | None:
        return next((one for one in self.qdiscs(ifindex) if one.is_root), None)

    def queues_of(self, ifindex: int) -> list[Qdisc]:
        return [one for one in self.qdiscs(ifindex) if one.kind not in ("ingress", "clsact")]

    def has_clsact(self, ifindex: int) -> bool:
        return any(one.kind == "clsact" for one in self.qdiscs(ifindex))

    def is_ours(self, ifindex: int) -> bool:
        root = self.root(ifindex)
        return root is not None and root.handle == ROOT << 16

    def exactly(self, prefix: Prefix) -> list[Route]:
        """The routes to exactly this prefix. All prefixes that are asked about are read at once."""
        self.prefixes.add(prefix)
        if prefix not in self._routes:
            self._routes = routes.exactly(self.asked, self.prefixes)
        return self._routes[prefix]

    def routes(self, prefix: Prefix) -> dict[int, list[str]]:
        """The same by table, in ip's words"""
        found: dict[int, list[str]] = {}
        for one in self.exactly(prefix):
            found.setdefault(one.table, []).append(words_of(one))
        return found

    def ways(self, family: socket.AddressFamily) -> list[Way]:
        """What the rules tell connections apart by"""
        if family not in self._ways:
            self._ways[family] = routes.ways(self.asked, family, self.links)
        return self._ways[family]

    # --- queues -----------------------------------------------------------------------

    def filters(self, ifindex: int, parent: int) -> list[Filter]:
        found = []
        for content in self.asked.dump(RTM_GETTFILTER, TCMSG.pack(0, ifindex, 0, parent, 0)):
            info = TCMSG.unpack_from(content)[4]
            shown = attributes(content, TCMSG.size)
            kind = text(shown.get(1, b""))
            found.append(Filter(info >> 16, kind, without_counters(kind, shown.get(2, b"")).hex()))
        return found

    def filters_at_clsact(self, ifindex: int, *ways: int) -> list[Filter]:
        if len(self.queues_of(ifindex)) == len(self.qdiscs(ifindex)):
            return []
        return [one for parent in ways or (EGRESS, INGRESS) for one in self.filters(ifindex, parent)]

    def ours_at_clsact(self, ifindex: int) -> list[Filter]:
        return [one for one in self.filters_at_clsact(ifindex, EGRESS) if one.pref in LOWQ_PREFS and one.kind in ("flower", "matchall")]

    def classes(self, ifindex: int) -> list[Json]:
        """Those of htb; others come with their qdisc"""
        found = [(TCMSG.unpack_from(content), attributes(content, TCMSG.size))
                 for content in self.asked.dump(RTM_GETTCLASS, TCMSG.pack(0, ifindex, 0, 0, 0))]
        return sorted([tcm[2], tcm[3], shown.get(2, b"").hex()] for tcm, shown in found if text(shown.get(1, b"")) == "htb")

    def tree(self, ifindex: int) -> Json:
        """All that hangs below the root, and lowq-tc's filters, in a form that can be compared and kept"""
        shown = self.queues_of(ifindex)
        made: Json = {"qdiscs": sorted([[one.kind, 0 if one.handle >> 16 >= CHOSEN else one.handle, one.parent,
                                         without_counters(one.kind, one.options).hex()] for one in shown], key=str)}
        if any(one.kind == "htb" for one in shown):
            made["classes"] = self.classes(ifindex)
        made["filters"] = {queues.handle_text(one.handle): found for one in shown if one.kind in ("ets", "prio", "htb")
                           for found in [self.filters(ifindex, one.handle)] if found}
        made["egress"] = self.ours_at_clsact(ifindex)
        return json.loads(json.dumps(made))


def words_of(route: Route) -> str:
    try:
        return " ".join(route.words({}))
    except Refused as error:
        return f"{route.prefix.text} ({error})"


def without_counters(kind: str, data: bytes) -> bytes:
    """Options as far as they were set"""
    if kind == "htb":
        shown = attributes(data)
        return shown.get(2, b"")[:16]  # its last word counts packets
    if kind == "gred":
        shown = attributes(data)
        table = shown.get(1, b"")
        size = struct.calcsize("=10I4B2I")
        kept = b"".join(table[at:at + 16] + table[at + 40:at + 44] for at in range(0, len(table) - size + 1, size))
        flags = bytes(number(each.get(12)) & 0xFF for each in queues.virtual_queues(data))
        return kept + shown.get(3, b"") + shown.get(4, b"") + shown.get(5, b"") + flags
    if kind == "u32":
        return b"".join(struct.pack("=H", which) + value for which, value in sorted(attributes(data).items()) if which in (1, 5, 7))
    if kind == "matchall":
        return attributes(data).get(1, b"")
    return data
