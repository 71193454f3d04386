# SPDX-License-Identifier: GPL-2.0
"""Traffic: entries of a plan's list. labnet(1) explains each field.

from_ and to are a node, a pattern such as "h*", or a list of these; sizes are bytes or such as "20k"; times such as
"10ms"; control is that of both sides, usually run.control, or {"from": ..., "to": ...}; a flow that takes longer than
timeout has failed; stop is an instant, or "end": when all has ended that does not stop so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterable

CDF = Path(__file__).resolve().parents[2] / "selftests" / "lib" / "cdf"  # distributions of sizes: websearch, hadoop
Nodes = str | list[str]
Size = int | str
Control = str | dict[str, str]


def entry(kind: str, from_: Nodes, to: Nodes, fields: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "from": from_, "to": to} | {key: value for key, value in fields.items() if value is not None}


def long(from_: Nodes, to: Nodes, *, duration: str | None = None, size: Size | None = None, flows: int | None = None,
         stagger: str | None = None, start: str | None = None, stop: str | None = None, timeout: str | None = None,
         control: Control | None = None, label: str | None = None, pull: bool | None = None) -> dict[str, Any]:
    """Bulk transfers of a size, of a duration or until stop: one from each sender, or as many as flows says. pull:
    receivers open the connections"""
    return entry("long", from_, to, {"duration": duration, "size": size, "flows": flows, "stagger": stagger,
                                     "start": start, "stop": stop, "timeout": timeout, "control": control,
                                     "label": label, "pull": pull})


def requests(from_: Nodes, to: Nodes, *, size: Size | None = None, cdf: str | None = None, flows: int | None = None,
             duration: str | None = None, rate: float | None = None, load: Any = None, closed: int | None = None,
             persist: bool | None = None, start: str | None = None, timeout: str | None = None,
             control: Control | None = None, label: str | None = None) -> dict[str, Any]:
    """The nodes of to ask those of from_, which answer: rate per second, a load, or as many at once as closed says"""
    return entry("requests", from_, to, {"size": size, "cdf": cdf, "flows": flows, "duration": duration, "rate": rate,
                                         "load": load, "closed": closed, "persist": persist, "start": start,
                                         "timeout": timeout, "control": control, "label": label})


def flows(from_: Nodes, to: Nodes, *, size: Size | None = None, cdf: str | None = None, flows: int | None = None,
          duration: str | None = None, rate: float | None = None, load: Any = None, start: str | None = None,
          timeout: str | None = None, control: Control | None = None, label: str | None = None) -> dict[str, Any]:
    """New connections that start at random: rate per second, or a load such as {"tier": "core", "share": 0.4}"""
    return entry("flows", from_, to, {"size": size, "cdf": cdf, "flows": flows, "duration": duration, "rate": rate,
                                      "load": load, "start": start, "timeout": timeout, "control": control,
                                      "label": label})


def incast(from_: Nodes, to: Nodes, *, size: Size, fan: int | None = None, rounds: int | None = None,
           period: str | None = None, jitter: str | None = None, start: str | None = None,
           timeout: str | None = None, control: Control | None = None, label: str | None = None) -> dict[str, Any]:
    """to asks all at once, in rounds"""
    return entry("incast", from_, to, {"size": size, "fan": fan, "rounds": rounds, "period": period, "jitter": jitter,
                                       "start": start, "timeout": timeout, "control": control, "label": label})


def udp(from_: Nodes, to: Nodes, *, rate: str | None = None, every: str | None = None, burst: int | None = None,
        size: int | None = None, flows: int | None = None, random: bool | None = None, on: str | None = None,
        off: str | None = None, ecn: str | None = None, start: str | None = None, duration: str | None = None,
        stop: str | None = None, label: str | None = None) -> dict[str, Any]:
    """Packets of size bytes, with ecn "not-ect", "ect0" or "ect1": at a rate, or a burst of them every so often"""
    return entry("udp", from_, to, {"rate": rate, "every": every, "burst": burst, "size": size, "flows": flows,
                                    "random": random, "on": on, "off": off, "ecn": ecn, "start": start,
                                    "duration": duration, "stop": stop, "label": label})


def program(node: Nodes, command: str, *, start: str | None = None, stop: str | None = None,
            timeout: str | None = None, environment: dict[str, str] | None = None, status: int | None = None,
            label: str | None = None) -> dict[str, Any]:
    """A command of the shell in a node, which ends with this exit status. Results.program() reads what it prints"""
    fields = {"start": start, "stop": stop, "timeout": timeout, "environment": environment, "status": status,
              "label": label}
    return {"kind": "program", "node": node, "command": command} | {
        key: value for key, value in fields.items() if value is not None}


def listed(every: Iterable[tuple[str, str, Size, str]], *, control: Control | None = None,
           label: str | None = None) -> dict[str, Any]:
    """Given flows: (source, destination, size, start) of each"""
    made: dict[str, Any] = {"kind": "list", "flows": [{"from": source, "to": to, "size": size, "start": start}
                                                      for source, to, size, start in every]}
    return made | {key: value for key, value in (("control", control), ("label", label)) if value is not None}
