# SPDX-License-Identifier: GPL-2.0
"""What a profile and a control are: data in, wanted settings out. Nothing here reads or
changes the machine."""

from __future__ import annotations

import math
from typing import Callable, Mapping, NamedTuple

from lowq_common.errors import Refused
from lowq_common.units import Line

from ..command import Command
from ..options import Options
from ..report import Report

Place = tuple[str, ...]  # ("root",) or ("parent", "10f0:1")


class Device(NamedTuple):
    """What a profile needs to know of the device."""

    name: str
    mtu: int
    frame: int  # bytes: MTU and link header
    queues: int
    software: bool  # no line of its own: veth, bridge, VLAN, bond ...
    kind: str  # as ip shows it, "software" if it shows none
    link_rate: int  # bit/s, 0 if the device reports none
    gso_size: int  # bytes
    gso_segs: int
    queue_limits: str  # byte queue limits of the first queue: bytes, or "none"
    tso: bool  # is TSO on?


class Tc(NamedTuple):
    """What this tc can do."""

    version: str
    offers: Mapping[tuple[str, str], bool]  # (kind, word of its help)
    plugins: str  # the folder of those that it needs
    rounds_up: Callable[[], bool]  # iproute2 6.14 and later: times to its tick, not down to a microsecond

    def require(self, kind: str, word: str) -> None:
        if not self.offers.get((kind, word)):
            why = f": it lacks the plugin q_{kind}.so (make install puts it in place)" if kind == "int" else ""
            raise Refused(f"this tc ({self.version}) has no '{word}' for '{kind}'{why}")


TICK = 64  # ns: tc's clock


def tc_ticks(size: int, rate: int) -> int:
    """What tc before 6.14 makes of the time of these bytes at this rate (bit/s), in ticks: whole microseconds"""
    return size * 8_000_000 // rate * 1000 // TICK


def same_burst(size: int, rate: int) -> int:
    """The bytes of which tc from 6.14 on makes as many ticks, or the next fewer, as it did before of this size"""
    ticks, per_tick = tc_ticks(size, rate), TICK * rate / 8e9
    found = int(ticks * per_tick) + 1
    while found > 1 and math.ceil(1e6 * (found / (rate / 8)) * (1000 / TICK)) > ticks:  # as tc computes it
        found -= 1
    return found


class Context:
    def __init__(self, device: Device, options: Options, line: Line, shape: bool, tc: Tc, report: Report):
        self.device = device
        self.options = options
        self.line = line
        self.shape = shape
        self.tc = tc
        self.report = report

    def size(self, name: str) -> int:
        """--name, a length of queue, in bytes"""
        return self.line.to_bytes(name, self.options.given[name], self.options.values[name])

    def record(self, **values: object) -> None:
        self.report.params.update(values)

    def qdisc(self, place: Place, handle: str, *words: object) -> Command:
        own = ("handle", handle + ":") if handle else ()
        return Command(("tc", "qdisc", "add", "dev", self.device.name, *place, *own, *map(str, words)))

    def filter(self, *words: object) -> Command:
        return Command(("tc", "filter", "add", "dev", self.device.name, *map(str, words)))


class Queue(NamedTuple):
    """The wanted queue: how to make it at a place, with the handle of its top."""

    tree: Callable[[Place, str], list[Command]]
    egress: tuple[Command, ...] = ()  # filters at clsact


class Profile(NamedTuple):
    name: str
    about: str
    options: tuple[str, ...]
    compute: Callable[[Context], Queue]
    probes: Callable[[Options], list[tuple[str, str]]] = lambda options: []
    aqm: tuple[str, ...] = ()  # what --aqm may be
