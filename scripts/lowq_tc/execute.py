# SPDX-License-Identifier: GPL-2.0
"""Where anything of the machine is changed: commands, as few processes as possible."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import nullcontext
from itertools import groupby
from typing import Callable, Sequence

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


def run(part: list[Command], space: system.Namespace, lock: int) -> None:
    """The only place where anything of the machine is changed"""
    command = part[0]
    try:
        if command.file:
            write(command.file, command.argv[0])
        elif command.argv[0] == "sysctl":
            key, _, value = command.argv[-1].partition("=")
            with nullcontext() if command.everywhere else space.entered():
                write("/proc/sys/" + key.replace(".", "/"), value)
        elif command.exact:
            exact.exact(space, command.argv[-1], ROOT)
        else:
            run_program(part, space, lock)
    except OSError as error:
        raise CommandFailed(command, error.strerror or str(error)) from None
    except Refused as error:
        raise CommandFailed(command, str(error)) from None


def write(path: str, value: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def run_program(part: list[Command], space: system.Namespace, lock: int) -> None:
    """The child keeps the lock: if this process is killed, nobody else begins before the command has ended."""
    command = part[0]
    # A file and not a pipe: if this process is killed, tc still has the whole batch.
    with open(os.memfd_create("batch"), "w+", encoding="utf-8", errors="surrogateescape") as batch:
        if len(part) > 1:
            words = command.batched()
            batch.writelines(" ".join(one.argv[len(words):]) + "\n" for one in part)
            batch.seek(0)
            command = Command((*words, "-batch", "-"))
        with nullcontext() if command.everywhere else space.entered():
            done = subprocess.run(
                [system.program(command.argv[0]), *command.argv[1:]], env=system.environment(), stdin=batch,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[lock] if lock >= 0 else [], check=False,
                encoding="utf-8", errors="surrogateescape", start_new_session=True,
            )
    if done.returncode:
        at = re.search(r"^Command failed -:(\d+)$", done.stdout, re.MULTILINE)
        lines = [line for line in done.stdout.splitlines()
                 if line.strip() and not line.startswith(("We have an error talking", "Command failed -:"))]
        raise CommandFailed(part[int(at[1]) - 1] if at else part[0], "; ".join(lines) or "no reason given")


Refusals = list[tuple[Command, str]]


def run_all(commands: Sequence[Command], space: system.Namespace, lock: int) -> Refusals:
    """All of them, or an exception. -> what only netlink can ask for, and this kernel refuses: tc's words hold"""
    refused = []
    # what one process runs: neighbours for tc or ip, else a single command. A device may have hundreds of queues.
    for _, part in groupby(commands, lambda command: command.batched() or object()):
        several = list(part)
        if Interrupted.by:
            raise CommandFailed(several[0], "interrupted")
        try:
            run(several, space, lock)
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
        end = "rolled back to what was there before"
        try:
            back()
        except CommandFailed as wrong:
            end = f"rolled back only in part: {explained(wrong, space)}"
        except Refused as wrong:
            end = f"rolled back, but {wrong}"
        raise Failed(f"{explained(error, space)}; {end}") from None
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
    words = error.command.text(None)
    if re.search("kind is unknown|Unknown qdisc|classifier not found", error.said):
        sort, part = ("classifier", "cls") if " filter " in words else ("queue", "sch")
        kind = re.sub(r".* dev \S+( root| egress| ingress| (parent|handle|protocol|pref) \S+)* ", "", words).split()[0]
        return f"this kernel has no '{kind}' {sort} ({part}_{kind})"
    return f"'{error.command.text(space.name)}' failed: {error.said}"
