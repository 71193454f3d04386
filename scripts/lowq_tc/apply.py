# SPDX-License-Identifier: GPL-2.0
"""lowq-tc apply: what files say, and nothing else. save, enable, disable: the way there."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import NamedTuple

from lowq_common import system
from lowq_common.errors import Failed, NotReady, Refused
from lowq_common.system import Namespace

from . import config, device, host, ingress
from .command import Command
from .config import FILE, FOLDER, Wish
from .journal import Journal, QueueRecord
from .options import GENERAL, Options
from .report import Report, Result
from .things import IFB_INDEX
from .world import World

UNIT = "lowq-tc.service"
ENABLED = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"


class Applied(NamedTuple):
    results: list[Result]
    missing: list[str]  # devices
    not_ready: list[str]  # devices without a speed; "host", without a route
    errors: list[str]
    refused: bool  # nothing was changed


def with_general(options: Options, given: Options, **more: bool) -> Options:
    made = deepcopy(options)
    made.values |= {name: value for name, value in given.values.items() if name in GENERAL} | {
        name.replace("_", "-"): value for name, value in more.items()}
    return made


def chosen(world: World, wishes: list[Wish]) -> tuple[dict[int, Wish], list[Wish]]:
    """-> the wish for each device, and those whose device is not there. A name goes before a pattern."""
    found: dict[int, Wish] = {}
    for wish in sorted((one for one in wishes if one.by), key=lambda one: one.pattern):
        named = None if wish.pattern else world.named(wish.name)
        if named and wish.options and wish.options.has("ingress") and not world.link(named.ifindex - IFB_INDEX):
            named = None  # it is left of a device that is gone
        for link in world.links if wish.pattern else [named] if named else []:
            if wish.pattern and (link.name == "lo" or not wish.fits(world, link)):
                continue
            other = found.setdefault(link.ifindex, wish)
            if other is not wish and other.pattern == wish.pattern:
                raise Refused(f"{wish.where}: {other.where} is about {link.name}, too")
    return found, [wish for wish in wishes if wish.by and not wish.pattern and wish not in found.values()]


def apply(space: Namespace, journal: Journal, given: Options) -> Applied:
    wishes, whole = config.files(given.names)
    dry = given.has("dry-run")
    if not dry:
        journal.begin()
    world = World(space)
    mine = journal.space(space)
    errors: list[str] = []
    gone: list[str] = []  # errors that keep nobody else waiting
    not_ready: list[str] = []
    made: set[str] = set()  # devices for what arrives

    def note(name: str, error: Exception, text: str) -> None:
        if isinstance(error, NotReady):
            not_ready.append(name)
        (gone if isinstance(error, NotReady) else errors).append(text)

    for wish in wishes:
        if wish.options and wish.options.has("ingress") and world.named(wish.name.removeprefix(config.IFB)):
            try:
                name, more = ingress.prepare(world, journal, wish.name, dry)
                made |= {name} if more else set()
            except (Refused, Failed) as error:
                errors.append(f"{wish.where}: {error}")
    by_index, missing = chosen(world, wishes)
    planned, resets = [], []
    for index, wish in sorted(by_index.items(), key=lambda one: wishes.index(one[1])):
        name = world.name(index)
        if not wish.options:
            resets.append(device.the_link(world, name))
            continue
        try:
            planned.append(device.plan(world, mine, with_general(wish.options, given), name, name not in made))
        except (Refused, Failed) as error:
            note(name, error, f"{wish.where}: {error}" + (f" ({name})" if wish.pattern else ""))
    if whole:
        resets += [link for link in device.touched(world, mine) if link.ifindex not in by_index]
    hosts = [one for one in wishes if not one.by]
    controls = [(one.name, one.options) for one in hosts if one.options]
    host_result = None

    def do_host(**more: bool) -> Result | None:
        try:
            return host.apply(world, journal, controls, with_general(given, given, **more), True,
                              [one.where for one in hosts if one.options])
        except (Refused, Failed) as error:
            located = any(str(error).startswith(one.where) for one in hosts)
            note("host", error, str(error) if located else f"{hosts[0].where if hosts else FOLDER}: {error}")
            return None

    if hosts or whole:
        host_result = do_host(dry_run=True)
    gone += [f"{one.where}: no device '{one.name}'{space.suffix}" for one in missing]
    names = [one.name for one in missing]
    if errors and not dry:
        for name in made:
            ingress.take_back(world, journal, name)
    if errors or (gone and not planned and not resets and not host_result):
        return Applied([], [], [], errors + gone, True)
    results, said = device.reset_all(world, journal, resets, given) if resets else ([], [])
    errors += said
    if host_result and host_result.status != "unchanged" and not dry:
        host_result = do_host() or host_result._replace(status="failed")
    results += [host_result] if host_result else []
    if dry:
        return Applied(results + [device.result_of(world, one, True) for one in planned], names, not_ready, errors + gone, False)
    all_done = device.apply_all(world, journal, planned)
    for name in made:  # without a queue it is of no use
        ingress.take_back(world, journal, name)
    for one, done in zip(planned, all_done):
        if isinstance(done, Failed):
            errors.append(f"{by_index[one.link.ifindex].where}: {done}")
            done = device.result_of(world, one, True)._replace(status="failed")
        results.append(done)
    return Applied(results, names, not_ready, errors + gone, False)


# --- from now on ------------------------------------------------------------------------


def save(space: Namespace, journal: Journal, options: Options) -> Result:
    """What is set now, as one file"""
    path = options.names[0] if options.names else f"{FOLDER}/{FILE}"

    def result(status: str, said: str) -> Result:
        return Result("save", status, "", "", f"{path}: {said}", Report())

    if journal.hidden:
        raise Refused(journal.hidden)
    mine = journal.space(space)
    parts = [config.table("host", {"control": control}, words) for control, words in mine.controls.items()]
    world, queues = World(space), dict[tuple[str, bool], QueueRecord]()
    for one in sorted(mine.queues.values(), key=lambda one: bool(world.link(one.ifindex))):  # one that is gone yields
        arrives = "--ingress" in one.words
        link = world.link(one.ifindex - IFB_INDEX * arrives)
        queues[link.name if link else one.name.removeprefix(config.IFB * arrives), arrives] = one
    parts += [config.table("queue", {"device": name, "profile": one.profile}, one.words)
              for (name, _), one in sorted(queues.items()) if one.tree is not None]
    if not parts:
        raise Refused("nothing is set by lowq-tc: nothing to save")
    text = "\n".join(["# What lowq-tc shall set: 'lowq-tc apply', and at boot after 'lowq-tc enable'. See lowq-tc(8).\n", *parts])
    folder = os.path.dirname(os.path.abspath(path))
    others = [name for name in (config.in_folder(folder) if folder == FOLDER else []) if name != os.path.basename(path)]
    if others and not options.has("force"):
        raise Refused(f"{folder} has {', '.join(others)}, which may contradict it: --force removes them")
    if options.has("dry-run"):
        print(text, end="")
        return result("planned", "would be written")
    try:
        if os.path.exists(path) and not others and config.content(path) == text.encode():
            return result("unchanged", "says so already")
        os.makedirs(folder, exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
        for name in others:
            os.unlink(f"{folder}/{name}")
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from None
    return result("applied", "written")


def at_boot(options: Options, on: bool) -> Result:
    """What the files say is set at boot, or not any more"""
    verb, report = ("enable" if on else "disable"), Report()
    if options.has("netns"):
        raise Refused(f"{verb}: a network namespace is not there at boot")
    if on and not config.in_folder(FOLDER):
        raise Refused(f"{FOLDER} says nothing: 'lowq-tc save' writes what is set now")
    if on:
        config.files([])
    try:
        system.program("systemctl")
    except Refused:
        raise Refused(f"there is no systemd here: let 'lowq-tc apply {FOLDER}' run at boot") from None
    command = Command(("systemctl", verb, UNIT))
    status, said = "applied", "done"
    if os.path.lexists(ENABLED) == on:
        status, said = "unchanged", "is so already"
    elif options.has("dry-run"):
        status, said = "planned", "would run"
    else:
        failed, out, told = system.output(command.argv)
        if failed:
            raise Failed(f"'{command.text(None)}' failed: {system.first_line(told or out)}")
        report.explain(f"what {FOLDER} says is set at boot" if on else "nothing is set at boot any more; what is set now stays")
    return Result(verb, status, "", "", f"{verb}: {said}", report, [command] if status != "unchanged" else [])


def kept(space: Namespace) -> list[Wish]:
    """What is set at boot"""
    try:
        return config.files([])[0] if not space.name and os.path.lexists(ENABLED) else []
    except Refused:
        return []
