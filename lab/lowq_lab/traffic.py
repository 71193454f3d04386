# SPDX-License-Identifier: GPL-2.0
"""Traffic: entries of a plan's list. labnet(1) explains each field.

from_ and to are a node, a pattern such as "h*", or a list of these; sizes are bytes or such as "20k"; times such as
"10ms"; control is that of both sides, usually run.control; a flow that takes longer than timeout has failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterable, Sequence

Nodes = str | list[str]
Size = int | str


def entry(kind: str, from_: Nodes, to: Nodes, fields: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "from": from_, "to": to} | {key: value for key, value in fields.items() if value is not None}


def long(from_: Nodes, to: Nodes, *, duration: str | None = None, size: Size | None = None, flows: int | None = None,
         stagger: str | None = None, start: str | None = None, timeout: str | None = None, control: str | None = None,
         label: str | None = None) -> dict[str, Any]:
    """Bulk transfers of a size or a duration: one from each sender, or as many as flows says"""
    return entry("long", from_, to, {"duration": duration, "size": size, "flows": flows, "stagger": stagger,
                                     "start": start, "timeout": timeout, "control": control, "label": label})


def requests(from_: Nodes, to: Nodes, *, size: Size | None = None, cdf: str | None = None, flows: int | None = None,
             duration: str | None = None, rate: float | None = None, load: Any = None, closed: int | None = None,
             persist: bool | None = None, start: str | None = None, timeout: str | None = None,
             control: str | None = None, label: str | None = None) -> dict[str, Any]:
    """The nodes of to ask those of from_, which answer: rate per second, a load, or as many at once as closed says"""
    return entry("requests", from_, to, {"size": size, "cdf": cdf, "flows": flows, "duration": duration, "rate": rate,
                                         "load": load, "closed": closed, "persist": persist, "start": start,
                                         "timeout": timeout, "control": control, "label": label})


def flows(from_: Nodes, to: Nodes, *, size: Size | None = None, cdf: str | None = None, flows: int | None = None,
          duration: str | None = None, rate: float | None = None, load: Any = None, start: str | None = None,
          timeout: str | None = None, control: str | None = None, label: str | None = None) -> dict[str, Any]:
    """New connections that start at random: rate per second, or a load such as {"tier": "core", "share": 0.4}"""
    return entry("flows", from_, to, {"size": size, "cdf": cdf, "flows": flows, "duration": duration, "rate": rate,
                                      "load": load, "start": start, "timeout": timeout, "control": control,
                                      "label": label})


def incast(from_: Nodes, to: Nodes, *, size: Size, fan: int | None = None, rounds: int | None = None,
           period: str | None = None, jitter: str | None = None, start: str | None = None,
           timeout: str | None = None, control: str | None = None, label: str | None = None) -> dict[str, Any]:
    """to asks all at once, in rounds"""
    return entry("incast", from_, to, {"size": size, "fan": fan, "rounds": rounds, "period": period, "jitter": jitter,
                                       "start": start, "timeout": timeout, "control": control, "label": label})


def listed(every: Iterable[tuple[str, str, Size, str]], *, control: str | None = None,
           label: str | None = None) -> dict[str, Any]:
    """Given flows: (source, destination, size, start) of each"""
    made: dict[str, Any] = {"kind": "list", "flows": [{"from": source, "to": to, "size": size, "start": start}
                                                      for source, to, size, start in every]}
    return made | {key: value for key, value in (("control", control), ("label", label)) if value is not None}


def host_of(number: str, hosts: Sequence[str]) -> str:
    """The host that a file of a simulator has as a number"""
    if not 0 <= int(number) < len(hosts):
        raise ValueError(f"hosts have the numbers 0 to {len(hosts) - 1}")
    return hosts[int(number)]


def ns3_list(file: str | Path, hosts: Sequence[str], *, control: str | None = None,
             label: str | None = None) -> dict[str, Any]:
    """The flows of a file as HPCC's simulation in ns-3 and its descendants read it: their number, then a line for each:
    source, destination, priority, in most of them a port, bytes, start in seconds. Nodes are numbers into hosts.
    Priority and port do not count"""
    every = []
    for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines()[1:], 2):
        words = line.split()
        try:
            if words and len(words) not in (5, 6):
                raise ValueError("not 5 or 6 numbers")
            if words:
                every.append((host_of(words[0], hosts), host_of(words[1], hosts), int(words[-2]),
                              f"{float(words[-1]) * 1e9:.0f}ns"))
        except ValueError as error:
            raise ValueError(f"{file}: line {number}: {error}") from error
    return listed(every, control=control, label=label)


def htsim_list(file: str | Path, hosts: Sequence[str], *, control: str | None = None,
               label: str | None = None) -> dict[str, Any]:
    """The flows of a connection matrix of htsim: lines such as "3->0 id 1 start 0 size 2000000", start in picoseconds,
    after the counts of nodes and connections. Nodes are numbers into hosts. id and prio do not count; flows that wait
    for others (triggers) and failures are refused"""
    every = []
    for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        try:
            if not words or words[0][0] == "#" or words[0] in ("Nodes", "Connections"):
                continue
            source, arrow, sink = words[0].partition("->")
            fields = dict(zip(words[1::2], words[2::2]))
            if not arrow or len(words) % 2 == 0 or fields.keys() - {"id", "prio", "start", "size"}:
                raise ValueError("not SOURCE->SINK with pairs of id, prio, start and size")
            if not {"start", "size"} <= fields.keys():
                raise ValueError("start or size is missing")
            every.append((host_of(source, hosts), host_of(sink, hosts), int(fields["size"]),
                          f"{float(fields['start']) / 1000:.0f}ns"))
        except ValueError as error:
            raise ValueError(f"{file}: line {number}: {error}") from error
    return listed(every, control=control, label=label)
