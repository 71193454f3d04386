# SPDX-License-Identifier: GPL-2.0
"""lowq-check --matrix FILE: all pairs of a list of hosts, each from both ends. One ssh to each host for
the whole time. Pairs that share no host are checked side by side, unless there is a load, which would disturb others."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Callable, Iterator, NamedTuple

from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.version import version

from .finding import WRONG, printable
from .ssh import Remote, is_url

SCHEMA = 1
PAIR_S = 300  # a check may take so long, and what its loads need
FIELDS = ("check", "state", "says", "fault", "mend", "where")


class Entry(NamedTuple):
    """A line of the file"""

    url: str
    addresses: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.url.removeprefix("ssh://")


def entries(path: str) -> list[Entry]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError as error:
        raise Refused(f"--matrix {printable(path)}: {error.strerror}") from None
    except UnicodeError:
        raise Refused(f"--matrix {printable(path)}: not a list of hosts") from None
    found: dict[str, Entry] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        url = words[0] if is_url(words[0]) else "ssh://" + words[0]
        if url in found:
            raise Refused(f"{printable(path)} line {number}: {printable(url)} again")
        if any(word.startswith("-") for word in words[1:]):
            raise Refused(f"{printable(path)} line {number}: '{printable(words[1])[:60]}' is no address")
        found[url] = Entry(url, tuple(words[1:]))
    if len(found) < 2:
        raise Refused(f"--matrix {printable(path)}: at least two hosts, one in a line")
    return list(found.values())


def rounds(hosts: list[Entry], alone: bool) -> Iterator[list[tuple[Entry, Entry]]]:
    """All ordered pairs, in rounds in which each host is in one pair; alone: a round for each pair"""
    ring: list[Entry | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    for _ in range(len(ring) - 1):
        pairs = [(one, other) for one, other in zip(ring, reversed(ring[len(ring) // 2:])) if one and other]
        for some in (pairs, [(other, one) for one, other in pairs]):
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

    def options(self, target: Entry | None) -> list[str]:
        words = [word for control in self.args.control for word in ("--control", control)]
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
            self.remotes[host.url].write({"options": self.options(target),
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
        count = len(self.hosts) * (len(self.hosts) - 1)
        for some in rounds(self.hosts, bool(self.args.load)):
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
            hosts.append({"host": host.name, "addresses": list(addresses), "error": self.errors.get(host.url, ""),
                          "findings": self.findings.get(host.url, [])})
        return {"lowq_check_matrix": SCHEMA, "version": version(), "status": self.status(), "hosts": hosts,
                "pairs": self.pairs}

    def table(self) -> str:
        """A row for each host that checks, a column for each that is checked; then each fault once, with the pairs"""
        numbers = {host.name: number for number, host in enumerate(self.hosts, 1)}
        names = [f"{number} {name}" for name, number in numbers.items()]
        width = max(map(len, names))
        cells = {(pair["from"], pair["to"]): cell(pair["findings"], pair["error"]) for pair in self.pairs}
        for host in self.hosts:
            cells[host.name, host.name] = f"({cell(self.findings.get(host.url, []), self.errors.get(host.url, ''))})"
        wide = max(max(map(len, cells.values())), len(str(len(names))))
        lines = [" ".join([f"{'from, to':<{width}}", *(f"{number:>{wide}}" for number in numbers.values())])]
        lines += [" ".join([f"{name:<{width}}", *(f"{cells[host.name, other.name]:>{wide}}" for other in self.hosts)])
                  for name, host in zip(names, self.hosts)]
        lines += ["", "ok: nothing wrong; a number: how many things are wrong; ?: not checked; in brackets: the host itself"]
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


def run(args: argparse.Namespace, complain: Callable[[str], None]) -> int:
    if args.peer or args.device or args.bind or args.listen:
        raise Refused("--matrix goes with --control, --load, --port, --there and --json only")
    if args.load > 30:
        raise Refused("--load: at most 30 s")
    found = Matrix(entries(args.matrix), args)

    def progress(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        found.check(progress)
    finally:
        progress("")
        found.close()
    print(json.dumps(found.as_json(), indent=2) if args.json else found.table())
    for text in found.complaints():
        complain(text)
    return found.status()
