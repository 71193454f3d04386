# SPDX-License-Identifier: GPL-2.0
"""lowq-tc apply: what files say, and nothing else. save, enable, disable: the way there."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import NamedTuple

from lowq_common import system
from lowq_common.errors import Failed, Refused
from lowq_common.system import Namespace

from . import config, device, host
from .command import Command
from .config import FILE, FOLDER, Wish
from .device import Result
from .journal import Journal
from .options import GENERAL, Options
from .report import Report
from .world import World

UNIT = "lowq-tc.service"
ENABLED = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"


class Applied(NamedTuple):
    results: list[Result]
    missing: list[str]  # devices
    errors: list[str]
    refused: bool  # nothing was changed


def with_general(options: Options, given: Options) -> Options:
    made = deepcopy(options)
    made.values |= {name: value for name, value in given.values.items() if name in GENERAL}
    return made


def chosen(world: World, wishes: list[Wish]) -> tuple[dict[int, Wish], list[str]]:
    """-> the wish for each device, and the names of devices that are not there. A name goes before a pattern."""
    found: dict[int, Wish] = {}
    for wish in sorted((one for one in wishes if one.by), key=lambda one: one.pattern):
        named = world.named(wish.name) if not wish.pattern else None
        for link in world.links if wish.pattern else [named] if named else []:
            if wish.pattern and (link.name == "lo" or not wish.fits(world, link)):
                continue
            other = found.get(link.ifindex)
            if other and other.pattern == wish.pattern:
                raise Refused(f"{wish.where}: {other.where} is about {link.name}, too")
            found.setdefault(link.ifindex, wish)
    there = {wish.where for wish in found.values()}
    missing = [wish.name for wish in wishes if wish.by == "device" and not wish.pattern and wish.where not in there]
    return found, missing


def apply(space: Namespace, journal: Journal, given: Options) -> Applied:
    wishes, whole = config.files(given.names)
    dry = given.has("dry-run")
    if not dry:
        journal.begin()
    world = World(space)
    mine = journal.space(space)
    by_index, missing = chosen(world, wishes)
    errors, planned, resets = [], [], []
    for index, wish in sorted(by_index.items(), key=lambda one: wishes.index(one[1])):
        link = world.link(index)
        assert link
        if not wish.options:
            resets.append(link)
            continue
        try:
            planned.append(device.plan(world, mine, with_general(wish.options, given), link.name, True))
        except (Refused, Failed) as error:
            errors.append(f"{wish.where}: {error}" + (f" ({link.name})" if wish.pattern else ""))
    if whole:
        resets += [link for link in device.touched(world, mine) if link.ifindex not in by_index]
    hosts = [one for one in wishes if not one.by]
    about_host = hosts or whole
    controls = [one for one in hosts if one.options]
    planned_host = None
    if about_host:
        try:
            planned_host = do_host(world, journal, controls, given, True)
        except (Refused, Failed) as error:
            errors.append(located(hosts, error))
    gone = [f"{next(one.where for one in wishes if one.name == name)}: no device '{name}'{space.suffix}" for name in missing]
    if errors or (gone and not planned and not resets and not about_host):
        return Applied([], [], errors + gone, True)
    results, said = device.reset_all(world, journal, resets, given) if resets else ([], [])
    errors += said
    if planned_host and not dry and planned_host.status != "unchanged":
        try:
            planned_host = do_host(world, journal, controls, given, False)
        except (Refused, Failed) as error:
            planned_host = planned_host._replace(status="failed")
            errors.append(located(hosts, error))
    results += [planned_host] if planned_host else []
    if dry:
        return Applied(results + [device.result_of(world, one, True) for one in planned], missing, errors + gone, False)
    for one, done in zip(planned, device.apply_all(world, journal, planned)):
        if isinstance(done, Failed):
            errors.append(f"{by_index[one.link.ifindex].where}: {done}")
            done = device.result_of(world, one, True)._replace(status="failed")
        results.append(done)
    return Applied(results, missing, errors + gone, False)


def located(hosts: list[Wish], error: Exception) -> str:
    said = str(error)
    if any(said.startswith(one.where) for one in hosts):
        return said
    return f"{hosts[0].where if hosts else FOLDER}: {said}"


def do_host(world: World, journal: Journal, controls: list[Wish], given: Options, dry: bool) -> Result:
    options = deepcopy(given)
    if dry:
        options.values["dry-run"] = True
    if not controls:
        return host.reset(world, journal, options)
    wishes = [(one.name, one.options) for one in controls if one.options]
    return host.apply(world, journal, wishes, options, True, [one.where for one in controls])


# --- from now on ------------------------------------------------------------------------


def saved_text(journal: Journal, space: Namespace) -> str:
    mine = journal.space(space)
    parts = ["# What lowq-tc shall set: 'lowq-tc apply', and at boot after 'lowq-tc enable'. See lowq-tc(8).\n"]
    parts += [config.table("host", {"control": control}, words) for control, words in mine.controls.items()]
    parts += [config.table("queue", {"device": one.name, "profile": one.profile}, one.words)
              for one in sorted(mine.queues.values(), key=lambda one: one.name) if one.tree is not None]
    return "\n".join(parts)


def save(space: Namespace, journal: Journal, options: Options) -> Result:
    """What is set now, as one file"""
    path = options.names[0] if options.names else f"{FOLDER}/{FILE}"
    if journal.hidden:
        raise Refused(journal.hidden)
    text = saved_text(journal, space)
    if text.count("\n") < 2:
        raise Refused("nothing is set by lowq-tc: nothing to save")
    folder = os.path.dirname(os.path.abspath(path))
    others = [name for name in sorted(os.listdir(folder)) if name.endswith((".conf", ".toml"))
              and name != os.path.basename(path) and name[0] != "."] if os.path.isdir(folder) and folder == FOLDER else []
    if others and not options.has("force"):
        raise Refused(f"{folder} has {', '.join(others)}, which may contradict it: --force removes them")
    if options.has("dry-run"):
        print(text, end="")
        return Result("save", "planned", "", "", f"{path}: would be written", Report(), [])
    try:
        with open(path, encoding="utf-8") as file:
            same = file.read() == text and not others
    except OSError:
        same = False
    if same:
        return Result("save", "unchanged", "", "", f"{path}: says so already", Report(), [])
    try:
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
    return Result("save", "applied", "", "", f"{path}: written", Report(), [])


def at_boot(options: Options, on: bool) -> Result:
    """What the files say is set at boot, or not any more"""
    verb, report = ("enable" if on else "disable"), Report()
    if options.has("netns"):
        raise Refused(f"{verb}: a network namespace is not there at boot")
    if on and not (os.path.isdir(FOLDER) and any(name.endswith((".toml", ".conf")) for name in os.listdir(FOLDER))):
        raise Refused(f"{FOLDER} says nothing: 'lowq-tc save' writes what is set now")
    if on:
        config.files([])
    try:
        system.program("systemctl")
    except Refused:
        raise Refused(f"there is no systemd here: let 'lowq-tc apply {FOLDER}' run at boot") from None
    commands = [Command(("systemctl", verb, UNIT))]
    if os.path.lexists(ENABLED) == on:
        return Result(verb, "unchanged", "", "", f"{verb}: is so already", report, [])
    if options.has("dry-run"):
        return Result(verb, "planned", "", "", f"{verb}: would run", report, commands)
    status, out, said = system.output(commands[0].argv)
    if status:
        raise Failed(f"'{commands[0].text(None)}' failed: {system.first_line(said or out)}")
    report.explain(f"what {FOLDER} says is set at boot" if on else "nothing is set at boot any more; what is set now stays")
    return Result(verb, "applied", "", "", f"{verb}: done", report, commands)


def kept(space: Namespace) -> list[Wish]:
    """What is set at boot"""
    if space.name or not os.path.lexists(ENABLED):
        return []
    try:
        return config.files([])[0]
    except Refused:
        return []
