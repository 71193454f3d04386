# SPDX-License-Identifier: GPL-2.0
"""lowq-check --matrix FILE: all pairs of the hosts of a rack, each from both ends, and a report for each rack. One ssh to
each host for the whole time. Pairs that share no host are checked side by side, unless there is a load, which would
disturb others. A receiver starts no check, and a router is checked by itself."""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
from typing import Callable, Iterator, NamedTuple

from lowq_common.errors import Refused
from lowq_common.streams import complain, printable
from lowq_common.values import Json
from lowq_common.version import version

from .finding import WRONG
from .ssh import Remote, is_url
from .verdicts import RECEIVER, ROLES, ROUTER

SCHEMA = 1
PAIR_S = 300  # a check may take so long, and what its loads need
FIELDS = ("check", "state", "says", "fault", "mend", "where")


class Entry(NamedTuple):
    """A line of the file"""

    url: str
    addresses: tuple[str, ...]
    role: str  # "": what is set there says it

    @property
    def name(self) -> str:
        return self.url.removeprefix("ssh://")


def entry(words: list[str], place: str) -> Entry:
    """place: of the line, for what is wrong with it"""
    addresses, role = [], ""
    for word in words[1:]:
        if word.startswith("role="):
            role = word.removeprefix("role=")
            if role not in ROLES:
                raise Refused(f"{place}: '{printable(role)[:60]}' is no role: {', '.join(ROLES)}")
        elif word.startswith("-"):
            raise Refused(f"{place}: '{printable(word)[:60]}' is no address")
        else:
            addresses.append(word)
    return Entry(words[0] if is_url(words[0]) else "ssh://" + words[0], tuple(addresses), role)


def racks(path: str, role: str) -> dict[str, list[Entry]]:
    """By the names in brackets, "" for hosts before the first; role: of hosts whose line names none"""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError as error:
        raise Refused(f"--matrix {printable(path)}: {error.strerror}") from None
    except UnicodeError:
        raise Refused(f"--matrix {printable(path)}: not a list of hosts") from None
    found: dict[str, list[Entry]] = {}
    rack = ""
    for number, line in enumerate(lines, 1):
        place = f"{printable(path)} line {number}"
        line = line.partition("#")[0].strip()
        if named := re.fullmatch(r"\[\s*([\w.-]{1,60})\s*\]", line):
            rack = named[1]
            if rack in found:
                raise Refused(f"{place}: rack {rack} again")
            found[rack] = []
        elif line:
            one = entry(line.split(), place)
            if one.url in [other.url for other in found.setdefault(rack, [])]:
                raise Refused(f"{place}: {printable(one.url)} again")
            found[rack].append(one if one.role else one._replace(role=role))
    if empty := [name for name, hosts in found.items() if not hosts]:
        raise Refused(f"--matrix {printable(path)}: rack {empty[0]} has no host")
    if sum(map(len, found.values())) < 2:
        raise Refused(f"--matrix {printable(path)}: at least two hosts, one in a line")
    return found


def rounds(hosts: list[Entry], alone: bool) -> Iterator[list[tuple[Entry, Entry]]]:
    """All ordered pairs whose first may send, in rounds in which each host is in one pair; alone: a round for each pair"""
    ends = [host for host in hosts if host.role != ROUTER]
    ring: list[Entry | None] = [*ends, *([None] if len(ends) % 2 else [])]
    for _ in range(len(ring) - 1):
        pairs = [(one, other) for one, other in zip(ring, reversed(ring[len(ring) // 2:])) if one and other]
        for some in (pairs, [(other, one) for one, other in pairs]):
            some = [pair for pair in some if pair[0].role != RECEIVER]
            yield from ([pair] for pair in some) if alone else [some]
        ring.insert(1, ring.pop())


class Matrix:
    def __init__(self, hosts: list[Entry], args: argparse.Namespace) -> None:
        self.hosts, self.args = hosts, args
        self.remotes: dict[str, Remote] = {}
        self.errors: dict[str, str] = {}  # of hosts that cannot be used
        self.findings: dict[str, list[Json]] = {}  # of the hosts themselves
        self.pairs: list[Json] = []
        self.limit = PAIR_S + 4 * args.load * max(1, len(args.control))

    def options(self, host: Entry, target: Entry | None) -> list[str]:
        words = [word for control in self.args.control for word in ("--control", control)]
        words += ["--role", host.role] if host.role else []
        if target:
            to = target.addresses or (self.remotes[target.url].address,)
            words += ["--load", str(self.args.load)] if self.args.load else []
            words += ["--port", str(self.args.port), "--", *to]
        return words

    def lose(self, host: Entry, why: str) -> None:
        """Go on without it"""
        self.errors[host.url] = why
        remote = self.remotes.pop(host.url, None)
        if remote:
            remote.close()

    def ask(self, host: Entry, target: Entry | None) -> str:
        """-> why it cannot be asked"""
        for one in (host, target):
            if one and one.url in self.errors:
                return self.errors[one.url]
        try:
            self.remotes[host.url].write({"options": self.options(host, target),
                                          "token": self.remotes[target.url].token if target else ""})
            return ""
        except Refused as error:
            self.lose(host, str(error))
            return str(error)

    def answer(self, host: Entry) -> tuple[list[Json], str]:
        """-> findings, and what could not be checked"""
        if host.url in self.errors:
            return [], self.errors[host.url]
        try:
            answer = self.remotes[host.url].read(self.limit)
        except Refused as error:
            self.lose(host, str(error))
            return [], str(error)
        if "error" in answer:
            return [], printable(str(answer["error"]))
        try:
            rows = [{name: printable(str(one[name])) for name in FIELDS} for one in answer["findings"]]
            failed = [printable(str(text)) for text in answer["failed"]]
        except (LookupError, TypeError):
            return [], "the answer is not understood"
        return rows, failed[0] if failed else ""

    def check(self, progress: Callable[[str], None]) -> None:
        for host in self.hosts:
            progress(f"ssh to {host.name}")
            try:
                self.remotes[host.url] = Remote(host.url, self.args.port, self.args.there)
            except Refused as error:
                self.lose(host, str(error))
        for host in self.hosts:
            self.ask(host, None)
        for host in self.hosts:
            self.findings[host.url], failed = self.answer(host)
            if failed and host.url not in self.errors:
                self.lose(host, f"{host.url}: {failed}")
        turns = list(rounds(self.hosts, bool(self.args.load)))
        count = sum(map(len, turns))
        for some in turns:
            self.show_presence()
            failed_first = {pair: self.ask(*pair) for pair in some}
            for (host, target), failed in failed_first.items():
                progress(f"{len(self.pairs) + 1} of {count}: {host.name} -> {target.name}")
                rows, failed = ([], failed) if failed else self.answer(host)
                rows = [one for one in rows if one["where"] != "here"]  # these are the host's own
                status = 1 if any(one["state"] == WRONG for one in rows) else 2 if failed else 0
                self.pairs.append({"from": host.name, "to": target.name, "status": status, "findings": rows,
                                   "error": failed})

    def show_presence(self) -> None:
        """Or else hosts that are not asked for long end"""
        for host in self.hosts:
            if host.url in self.remotes:
                try:
                    self.remotes[host.url].write(None)
                except Refused as error:
                    self.lose(host, str(error))

    def status(self) -> int:
        rows = [one for some in self.findings.values() for one in some]
        statuses = {pair["status"] for pair in self.pairs} | {2 for _ in self.errors}
        return 1 if 1 in statuses or any(one["state"] == WRONG for one in rows) else 2 if 2 in statuses else 0

    def close(self) -> None:
        for remote in self.remotes.values():
            remote.close()

    # --- the result -------------------------------------------------------------------------

    def as_json(self) -> Json:
        hosts = []
        for host in self.hosts:
            addresses = host.addresses or ((self.remotes[host.url].address,) if host.url in self.remotes else ())
            hosts.append({"host": host.name, "role": host.role, "addresses": list(addresses), "error": self.errors.get(host.url, ""),
                          "findings": self.findings.get(host.url, [])})
        return {"lowq_check_matrix": SCHEMA, "version": version(), "status": self.status(), "hosts": hosts,
                "pairs": self.pairs}

    def table(self) -> str:
        """A row for each host that checks, a column for each that is checked; then each fault once, with the pairs"""
        numbers = {host.name: number for number, host in enumerate(self.hosts, 1)}
        names = [f"{number} {name}" for name, number in numbers.items()]
        width = max(map(len, names))
        cells = {(one.name, other.name): "-" for one in self.hosts for other in self.hosts}
        cells |= {(pair["from"], pair["to"]): cell(pair["findings"], pair["error"]) for pair in self.pairs}
        for host in self.hosts:
            cells[host.name, host.name] = f"({cell(self.findings.get(host.url, []), self.errors.get(host.url, ''))})"
        wide = max(max(map(len, cells.values())), len(str(len(names))))
        lines = [" ".join([f"{'from, to':<{width}}", *(f"{number:>{wide}}" for number in numbers.values())])]
        lines += [" ".join([f"{name:<{width}}", *(f"{cells[host.name, other.name]:>{wide}}" for other in self.hosts)])
                  for name, host in zip(names, self.hosts)]
        lines += ["", "ok: nothing wrong; a number: how many things are wrong; ?: not checked; in brackets: the host itself"
                  + ("; -: by their roles no pair" if "-" in cells.values() else "")]
        faults: dict[tuple[str, str], list[str]] = {}
        wheres = [(host.name, rows) for host in self.hosts for rows in [self.findings.get(host.url, [])]]
        wheres += [(f"{pair['from']} -> {pair['to']}", pair["findings"]) for pair in self.pairs]
        for place, rows in wheres:
            for one in rows:
                if one["state"] == WRONG:
                    faults.setdefault((one["fault"], one["check"]), []).append(f"{place}: {one['says']}")
        for (fault, check), places in faults.items():
            lines += ["", f"WRONG {check} [{fault}]", *(f"  {place}" for place in places)]
        lines += ["", f"{sum(map(len, faults.values()))} wrong" if faults else "nothing wrong"]
        return "\n".join(lines)

    def complaints(self) -> list[str]:
        """What could not be checked, once for each host and pair"""
        lines = list(self.errors.values())
        return lines + [f"{pair['from']} -> {pair['to']}: {pair['error']}" for pair in self.pairs
                        if pair["error"] and pair["error"] not in lines]


def cell(rows: list[Json], error: str) -> str:
    count = sum(one["state"] == WRONG for one in rows)
    return str(count) if count else "?" if error else "ok"


def progress(rack: str, text: str) -> None:
    """In place of the line before; "" takes it away"""
    if sys.stderr.isatty():
        print(f"\r\033[K{rack + ': ' if rack and text else ''}{text}", end="", file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> int:
    if args.peer or args.device or args.bind or args.listen:
        raise Refused("--matrix goes with --control, --role, --load, --port, --there and --json only")
    if args.load > 30:
        raise Refused("--load: at most 30 s")
    reports: dict[str, Matrix] = {}
    several = racks(args.matrix, args.role or "")
    for rack, hosts in several.items():
        found = reports[rack] = Matrix(hosts, args)
        try:
            found.check(functools.partial(progress, rack))
        finally:
            progress(rack, "")
            found.close()
        if not args.json:
            print((f"rack {rack}\n" if rack else "") + found.table() + ("" if rack == list(several)[-1] else "\n"), flush=True)
        for text in found.complaints():
            complain("lowq-check", text)
    statuses = [found.status() for found in reports.values()]
    status = 1 if 1 in statuses else max(statuses)
    if args.json:
        made = [found.as_json() | ({"rack": rack} if rack else {}) for rack, found in reports.items()]
        print(json.dumps(made[0] if list(reports) == [""] else
                         {"lowq_check_matrix": SCHEMA, "version": version(), "status": status, "racks": made}, indent=2))
    return status
