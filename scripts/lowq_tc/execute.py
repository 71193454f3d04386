# SPDX-License-Identifier: GPL-2.0
"""Steps forward and back. Reset is the same code as the roll-back of a set that failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from itertools import groupby
from typing import Callable, Iterator, NamedTuple, Sequence

from lowq_common import devices, system
from lowq_common.errors import Failed, Refused

from . import netlink
from .aspects import PARAMETER, aspect_of
from .aspects.base import Place
from .aspects.queue import read_tree
from .command import Command
from .journal import BEGUN, DONE, PLANNED, UNDOING, UNDONE, Step, SavedState
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
    if command.exact:
        try:
            netlink.exact(space, command.argv[-1], ROOT)
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
        raise CommandFailed(part[int(at[1]) - 1] if at else command, one_line(done.stdout))


def one_line(said: str) -> str:
    noise = ("We have an error talking", "Command failed -:")
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(noise)]
    return "; ".join(lines) or "no reason given"


class Runner:
    def __init__(self, place: Place, lock: int, save: Callable[[], None]):
        self.place = place
        self.lock = lock
        self.save = save  # writes the record with the steps' present states

    def refused(self, said: str) -> None:
        """The kernel does not take what only netlink.py can ask for."""

    def mark(self, step: Step, state: str) -> None:
        step.state = state
        self.save()

    def forward(self, steps: list[Step]) -> None:
        for step in steps:
            if step.state != PLANNED:
                continue
            if aspect_of(step) is PARAMETER:
                PARAMETER.learn(self.place, step)
            self.mark(step, BEGUN)
            for part in batches(step.commands):
                try:
                    if Interrupted.by:
                        raise CommandFailed(part[0], "interrupted")
                    if not self.place.same_device():
                        raise CommandFailed(part[0], "the device was removed or renamed meanwhile")
                    run(part, self.place.space, self.lock)
                except CommandFailed as error:
                    if error.command.exact and not Interrupted.by:
                        # tc's words hold
                        self.refused(error.said)
                        continue
                    if error.command is step.commands[0]:
                        step.state = PLANNED  # it has changed nothing
                    raise
            step.after = aspect_of(step).read(self.place, step.target)
            self.mark(step, DONE)


class Outcome(NamedTuple):
    step: Step
    done: bool  # is it as it was?
    said: str  # for the user; may be empty
    commands: list[Command]


def carry_out(runner: Runner, steps: list[Step], complete: Callable[[], None], rolled_back: Callable[[], str],
              first: Sequence[Command] = ()) -> None:
    """All steps, or none: after a failure those that were done are undone. complete() writes the
    record of all steps done; rolled_back() puts the record back that was there before and says how
    it ended. Commands in first are not undone."""
    place = runner.place
    Interrupted.handle(Interrupted.note)
    try:
        for part in batches(first):
            run(part, place.space, runner.lock)
        runner.save()
        runner.forward(steps)
        complete()
    except (CommandFailed, Refused) as error:
        Interrupted.handle(signal.SIG_IGN)
        failed = str(error)
        if isinstance(error, CommandFailed):
            failed = f"'{error.command.text(place.space.name)}' failed: {error.said}"
        elif all(step.state == PLANNED for step in steps):
            raise
        left = [outcome.said for outcome in back(runner, steps, to_earlier=True) if not outcome.done]
        if left:
            raise Failed(f"{failed}; rolled back only in part: {'; '.join(left)}") from None
        try:
            raise Failed(f"{failed}; {rolled_back()}") from None
        except Refused as wrong:
            raise Failed(f"{failed}; rolled back, but {wrong}") from None
    finally:
        Interrupted.handle(signal.SIG_DFL)


def undo(runner: Runner, steps: list[Step], force: bool = False, dry: bool = False) -> tuple[list[Command], list[str]]:
    """-> the commands, and what there is to say"""
    commands: list[Command] = []
    said: list[str] = []
    Interrupted.handle(signal.SIG_IGN)
    try:
        for outcome in back(runner, steps, force, dry):
            commands += outcome.commands
            if outcome.said:
                said.append(outcome.said)
    finally:
        Interrupted.handle(signal.SIG_DFL)
    return commands, said


def back(runner: Runner, steps: list[Step], force: bool = False, dry: bool = False,
         to_earlier: bool = False) -> Iterator[Outcome]:
    """Undoes steps, the last one first. Each is looked at first: it may be as before already, be
    as lowq-tc left it, or be something else, which is left alone."""
    for step in reversed(steps):
        # Nothing that was never begun is undone; but an earlier call may have done it.
        if step.state == UNDONE or (step.state == PLANNED and (to_earlier or not step.earlier)):
            continue
        saved = step.earlier if to_earlier and step.earlier else step.before
        try:
            yield undo_step(runner, step, saved, force, dry)
        except Refused as error:
            yield Outcome(step, False, str(error), [])


def undo_step(runner: Runner, step: Step, saved: SavedState, force: bool, dry: bool) -> Outcome:
    place, aspect = runner.place, aspect_of(step)
    name = aspect.described(step.target)
    now = aspect.read(place, step.target)
    if aspect.is_back(saved, now):
        if not dry:
            step.state = UNDONE
        return Outcome(step, True, "", [])
    forced = False
    if not aspect.made_by_us(place, step, now):
        expected = step.after if step.after is not None else saved.state
        if not force:
            return Outcome(
                step, False,
                f"{name} was changed by someone else since: {aspect.difference(place, expected, now)};"
                " left alone (--force puts it back)", [],
            )
        forced = True
    commands = aspect.undo(place, step, saved, now)
    if dry:
        return Outcome(step, True, "", commands)
    note(runner, step, UNDOING)
    try:
        for part in batches(commands):
            run(part, place.space, runner.lock)
    except CommandFailed as error:
        return Outcome(step, False, f"'{error.command.text(place.space.name)}' failed: {error.said}", commands)
    now = aspect.read(place, step.target)
    said = ""
    if not aspect.is_back(saved, now) and not step.lost:
        said = f"{name} is not as it was: {aspect.difference(place, saved.state, now)}"
        if not forced:
            return Outcome(step, False, said, commands)
    note(runner, step, UNDONE)
    return Outcome(step, True, said, commands)


def note(runner: Runner, step: Step, state: str) -> None:
    """A full disk does not keep us from undoing: the record that it holds still says enough."""
    try:
        runner.mark(step, state)
    except Refused:
        pass


# --- rehearsal --------------------------------------------------------------------------


class Rehearsal(NamedTuple):
    tried: bool  # False: no veth, or no right to make a namespace
    failed: CommandFailed | None
    trees: list[object]  # what each list of commands but the last made


def rehearse(link: devices.Link, queues: int, stages: list[list[Command]]) -> Rehearsal:
    """Runs each list of commands on a new device with the same name, MTU and number of queues,
    in a network namespace that ends with this function."""
    import ctypes
    import pickle

    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        result = Rehearsal(False, None, [])
        try:
            if system.c_library().unshare(ctypes.c_int(system.CLONE_NEWNET)) == 0:
                result = rehearse_here(link, queues, stages)
        except (Refused, OSError):
            pass
        finally:
            failed = (result.failed.command, result.failed.said) if result.failed else None
            with os.fdopen(write_end, "wb") as out:
                pickle.dump((result.tried, failed, result.trees), out)
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return Rehearsal(False, None, [])
    tried, failed, trees = pickle.loads(text)
    return Rehearsal(tried, CommandFailed(*failed) if failed else None, trees)


def rehearse_here(link: devices.Link, queues: int, stages: list[list[Command]]) -> Rehearsal:
    space = system.Namespace()
    add = Command(("ip", "link", "add", "name", link.name, "mtu", str(link.mtu), "numtxqueues", str(queues),
                   "type", "veth", "peer", "name", "lowq-peer"))
    up = [Command(("ip", "link", "set", "dev", name, "up")) for name in (link.name, "lowq-peer")]
    try:
        for part in batches([add, *up]):
            run(part, space, -1)
    except CommandFailed:
        return Rehearsal(False, None, [])
    trees: list[object] = []
    for stage, commands in enumerate(stages):
        if stage:
            system.output(["tc", "qdisc", "del", "dev", link.name, "root"])
        try:
            for part in batches(commands):
                if not part[0].exact:
                    run(part, space, -1)
        except CommandFailed as error:
            return Rehearsal(True, error, trees)
        if stage < len(stages) - 1:
            trees.append(read_tree(space, link))
    return Rehearsal(True, None, trees)


def rehearsal_error(error: CommandFailed) -> str:
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
    return f"'{error.command.text(None)}' would fail: {error.said}"
