# SPDX-License-Identifier: GPL-2.0
"""The connections of this network namespace, counted as the kernel hands them over."""

from __future__ import annotations

import ipaddress
import os
from array import array
from typing import Iterable, NamedTuple

from lowq_common.errors import Refused
from lowq_common.tcpinfo import Connection, base_control, fallback_reason

COUNTS = ("delivered", "delivered_ce", "data_segs_out", "total_retrans")  # packets, modulo 2 ** 32
Counts = tuple[int, ...]
UNKNOWN_RTT = 0xFFFFFFFF
APP_LIMITED = 1  # in tcp_info's bits: the last rate was the program's
QUANTILES = (0.5, 0.9, 0.99)


class Group(NamedTuple):
    """Connections that are counted apart: those with a prefix, or those of a cgroup and all below it"""

    name: str
    prefix: ipaddress.IPv4Network | ipaddress.IPv6Network | None
    folder: str

    def cgroups(self) -> set[int]:
        """They come and go: read for every sample"""
        if not self.folder:
            return set()
        found = {os.stat(place).st_ino for place, _, _ in os.walk(self.folder) if os.path.isdir(place)}
        if not found:
            raise Refused(f"--group {self.name}: there is no cgroup {self.folder}")
        return found


class Row:
    """What is so of the connections of a group with a control"""

    def __init__(self) -> None:
        self.connections = 0
        self.fallen: dict[str, int] = {}  # reason -> how many
        self.rates, self.rtts, self.min_rtts = array("Q"), array("I"), array("I")  # bytes/s, us, us
        self.limited = 0  # how many of the rates are the program's
        self.counts = [0] * len(COUNTS)

    def add(self, one: Connection, reason: str, counts: Counts) -> None:
        self.connections += 1
        if reason:
            self.fallen[reason] = self.fallen.get(reason, 0) + 1
        info = one.info
        if rate := info.get("delivery_rate", 0):
            self.rates.append(rate)
            self.limited += info["bits"] & APP_LIMITED
        if rtt := info.get("rtt", 0):
            self.rtts.append(rtt)
        if 0 < (least := info.get("min_rtt", 0)) < UNKNOWN_RTT:
            self.min_rtts.append(least)
        for at, count in enumerate(counts):
            self.counts[at] += count


Rows = dict[tuple[str, str], Row]  # group, control


def quantiles(values: array[int]) -> list[int]:
    """The values below or at which so many lie; none without values"""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in QUANTILES] if ordered else []


class Sampler:
    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups
        self.before: dict[int, Counts] | None = None  # by cookie

    def group_of(self, one: Connection, cgroups: list[set[int]]) -> str:
        for group, members in zip(self.groups, cgroups):
            if group.prefix:
                address = ipaddress.ip_address(one.peer.partition("%")[0])
                if address.version == group.prefix.version and address in group.prefix:
                    return group.name
            elif one.cgroup in members:
                return group.name
        return ""

    def rows(self, connections: Iterable[Connection], keep: bool) -> Rows:
        """keep: the next sample counts from this one on. A connection that began since the last sample counts
        from its begin, one that has ended is not seen."""
        cgroups = [group.cgroups() for group in self.groups]
        found: Rows = {}
        before, now = self.before or {}, {}
        for one in connections:
            if not one.control:
                continue  # it has just ended
            counts = tuple(one.info.get(name, 0) for name in COUNTS)
            if keep:
                now[one.cookie] = counts
            old = before.get(one.cookie)
            if old:
                counts = tuple(new - then & 0xFFFFFFFF for new, then in zip(counts, old))
            base, fell = base_control(one.control)
            key = (self.group_of(one, cgroups), base)
            if key not in found:
                found[key] = Row()
            found[key].add(one, fallback_reason(base, one.info) if fell else "", counts)
        self.before = now if keep else None
        return found
