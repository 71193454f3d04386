# SPDX-License-Identifier: GPL-2.0
"""Where anything of the machine is changed: commands, as few processes as possible."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import nullcontext
from itertools import groupby
from typing import Callable, Iterator, Sequence

from lowq_common import system
from lowq_common.errors import Failed, Refused

from . import exact
from .command import Command
from .profiles.queues import ROOT


class CommandFailed(Exception):
    def __init__(self, command: Command, said: str):
        super().__init__(said)
        self.command = command
        self.said = said


class Interrupted:
    """INT, TERM and HUP end a set between two commands, which is then rolled back."""

    by = 0

    @classmethod
    def note(cls, number: int, frame: object) -> None:
        cls.by = number

    @classmethod
    def handle(cls, how: Callable[[int, object], None] | signal.Handlers) -> None:
        cls.by = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, how)


def batches(commands: Sequence[Command]) -> Iterator[list[Command]]:
    """The parts that one process runs: neighbours for tc or ip, else a single command. A device may
    have hundreds of queues."""
    for _, part in groupby(commands, lambda command: command.batched() or object()):
        yield list(part)


def run(part: list[Command], space: system.Namespace, lock: int) -> None:
    """The only place where anything of the machine is changed. The child keeps the lock: if
    this process is killed, nobody else begins before the command has ended."""
    command = part[0]
    if command.file:
        try:
            with open(command.file, "w", encoding="ascii") as file:
                file.write(command.argv[0])
        except OSError as error:
            raise CommandFailed(command, error.strerror or str(error)) from None
        return
    if command.argv[0] == "sysctl":
        key, _, value = command.argv[-1].partition("=")
        try:
            with nullcontext() if command.everywhere else space.entered():
                with open("/proc/sys/" + key.replace(".", "/"), "w", encoding="ascii") as file:
                    file.write(value)
        except OSError as error:
            raise CommandFailed(command, error.strerror or str(error)) from None
        return
    if command.exact:
        try:
            exact.exact(space, command.argv[-1], ROOT)
        except (OSError, Refused) as error:
            raise CommandFailed(command, str(error)) from None
        return
    # A file and not a pipe: if this process is killed, tc still has the whole batch.
    with open(os.memfd_create("batch"), "w+", encoding="utf-8", errors="surrogateescape") as batch:
        if len(part) > 1:
            words = command.batched()
            batch.writelines(" ".join(one.argv[len(words):]) + "\n" for one in part)
            batch.seek(0)
            command = Command((*words, "-batch", "-"))
        argv = command.located(space.name)
        try:
            path = system.program(argv[0])
        except Refused as error:
            raise CommandFailed(part[0], str(error)) from None
        done = subprocess.run(
            [path, *argv[1:]], env=system.environment(), stdin=batch, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, pass_fds=[lock] if lock >= 0 else [], check=False,
            encoding="utf-8", errors="surrogateescape", start_new_session=True,
        )
    if done.returncode:
        at = re.search(r"^Command failed -:(\d+)$", done.stdout, re.MULTILINE)
        raise CommandFailed(part[int(at[1]) - 1] if at else part[0], one_line(done.stdout))


def one_line(said: str) -> str:
    noise = ("We have an error talking", "Command failed -:")
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(noise)]
    return "; ".join(lines) or "no reason given"


Refusals = list[tuple[Command, str]]


def run_all(commands: Sequence[Command], space: system.Namespace, lock: int) -> Refusals:
    """All of them, or an exception. -> what only netlink can ask for, and this kernel refuses: tc's words hold"""
    refused = []
    for part in batches(commands):
        if Interrupted.by:
            raise CommandFailed(part[0], "interrupted")
        try:
            run(part, space, lock)
        except CommandFailed as error:
            if not error.command.exact:
                raise
            refused.append((error.command, error.said))
    return refused


def carry_out(commands: Sequence[Command], space: system.Namespace, lock: int, back: Callable[[], None],
              failed_at: Callable[[Command], None] = lambda command: None) -> Refusals:
    """All of them, or none: back() undoes those that have run"""
    Interrupted.handle(Interrupted.note)
    try:
        return run_all(commands, space, lock)
    except CommandFailed as error:
        Interrupted.handle(signal.SIG_IGN)
        failed_at(error.command)
        failed = explained(error, space)
        try:
            back()
        except CommandFailed as wrong:
            raise Failed(f"{failed}; rolled back only in part: {explained(wrong, space)}") from None
        except Refused as wrong:
            raise Failed(f"{failed}; rolled back, but {wrong}") from None
        raise Failed(f"{failed}; rolled back to what was there before") from None
    finally:
        Interrupted.handle(signal.SIG_DFL)


def undoing(commands: Sequence[Command], space: system.Namespace, lock: int) -> None:
    """What is undone is not interrupted"""
    Interrupted.handle(signal.SIG_IGN)
    try:
        run_all(commands, space, lock)
    except CommandFailed as error:
        raise Failed(explained(error, space)) from None
    finally:
        Interrupted.handle(signal.SIG_DFL)


def explained(error: CommandFailed, space: system.Namespace) -> str:
    words = list(error.command.argv)
    if "kind is unknown" in error.said or "Unknown qdisc" in error.said or "classifier not found" in error.said:
        sort = "filter" if "filter" in words else "qdisc"
        skip = {"root": 1, "parent": 2, "handle": 2, "protocol": 2, "pref": 2, "egress": 1}
        at = words.index("dev") + 2
        while words[at] in skip:
            at += skip[words[at]]
        if sort == "filter":
            return f"this kernel has no '{words[at]}' classifier (cls_{words[at]})"
        return f"this kernel has no '{words[at]}' queue (sch_{words[at]})"
    return f"'{error.command.text(space.name)}' failed: {error.said}"
