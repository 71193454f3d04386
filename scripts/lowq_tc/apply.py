# SPDX-License-Identifier: GPL-2.0
"""lowq-tc apply: what the files of /etc/lowq say, and nothing else.

DEVICE.conf has the arguments of a profile in LOWQ_TC="...", host.conf those of "host" in
LOWQ_HOST="...". A file that says nothing resets what it is about; a folder stands for its files,
and resets what they do not name.
"""

from __future__ import annotations

import os
import shlex
from copy import deepcopy
from typing import Callable, NamedTuple

from lowq_common import devices
from lowq_common.devices import Link
from lowq_common.errors import Failed, NoDevice, Refused
from lowq_common.values import matched
from lowq_common.system import Namespace

from . import device, host
from .command_line import parse
from .device import Result
from .journal import DeviceRecord, Journal
from .options import FRAME, GENERAL, Options
from .profiles import PROFILES

FOLDER = "/etc/lowq"
HOST_FILE = "host.conf"
NOT_IN_FILES = ("netns", "dry-run", "json")


class Wish(NamedTuple):
    """What a file says."""

    where: str  # FILE:LINE
    device: str  # "": the host
    options: Options | None  # None: it says nothing


class Applied(NamedTuple):
    results: list[Result]
    missing: list[str]  # devices
    errors: list[str]
    refused: bool  # nothing was changed


def read(path: str) -> Wish:
    name = os.path.basename(path)
    subject = "" if name == HOST_FILE else name.removesuffix(".conf")
    key = "LOWQ_TC" if subject else "LOWQ_HOST"
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    if subject == name or name == ".conf":
        raise Refused(f"{path}: not DEVICE.conf or {HOST_FILE}")
    found = Wish(path, subject, None)
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        where = f"{path}:{number}"
        match = matched(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)", line)
        if not match or match[1] != key:
            raise Refused(f"{where}: not {key}=\"...\"")
        if found.options is not None:
            raise Refused(f"{where}: {key} again")
        try:
            found = Wish(where, subject, options_of(subject, [word for part in shlex.split(match[2])
                                                               for word in shlex.split(part)]))
        except (Refused, ValueError) as error:
            raise Refused(f"{where}: {error}") from None
    return found


def options_of(subject: str, words: list[str]) -> Options | None:
    """The words, checked as far as they can be without the machine"""
    if not words:
        return None
    if subject and words[0] not in PROFILES:
        raise Refused(f"unknown profile '{words[0]}'")
    if not {"-h", "--help"}.isdisjoint(words):
        raise Refused("--help is not for files")
    options = parse([*words, "--", subject] if subject else ["host", *words])
    for name in NOT_IN_FILES:
        if options.has(name):
            raise Refused(f"--{name} is not for files")
    if subject:
        options.only(options.action, *FRAME, *PROFILES[options.action].options)
    return options


def wishes(names: list[str]) -> tuple[list[Wish], bool]:
    """-> what the files say, and whether that is all there shall be"""
    found: dict[str, Wish] = {}
    whole = not names
    for name in names or [FOLDER]:
        paths = [name]
        if os.path.isdir(name) or not names:
            whole = True
            try:
                paths = sorted(os.path.join(name, one) for one in os.listdir(name)
                               if one.endswith(".conf") and one[0] != ".")  # editors' and Ansible's, half written
            except OSError as error:
                raise Refused(f"{name}: {error.strerror}") from None
        for path in paths:
            wish = read(path)
            if wish.device in found:
                raise Refused(f"{wish.where}: {found[wish.device].where} is about the same")
            found[wish.device] = wish
    if whole:
        found.setdefault("", Wish(names[0] if names else FOLDER, "", None))
    return list(found.values()), whole


def apply(space: Namespace, journal: Journal, given: Options) -> Applied:
    wanted, whole = wishes(given.names)
    dry = given.has("dry-run")
    if not dry:
        journal.begin()
    actions = [(wish.where, action_of(space, journal, wish, given)) for wish in wanted]
    if whole:
        actions = unnamed(space, journal, wanted, given) + actions
    # all is planned before anything is done; a device that is not there keeps no other from being set
    planned = [attempt(where, action, True) for where, action in actions]
    errors = [str(one) for one in planned if isinstance(one, Exception)]
    missing = [wish.device for wish, one in zip(wanted, planned[-len(wanted):]) if isinstance(one, NoDevice)]
    results = [one for one in planned if isinstance(one, Result)]
    if len(errors) > len(missing) or not results:
        return Applied([], [], errors, True)
    if dry:
        return Applied(results, missing, errors, False)
    for at, action in enumerate(act for act, one in zip(actions, planned) if isinstance(one, Result)):
        if results[at].status == "unchanged":
            continue
        done = attempt(*action, False)
        if isinstance(done, Result):
            results[at] = done
        else:
            errors.append(str(done))
            results[at] = results[at]._replace(status="failed")
    return Applied(results, missing, errors, False)


Action = Callable[[bool], Result]


def attempt(where: str, action: Action, dry: bool) -> Result | Refused | Failed:
    """-> the result, or the error"""
    try:
        return action(dry)
    except (Refused, Failed) as error:
        return type(error)(f"{where}: {error}")


def with_given(options: Options | None, given: Options, names: list[str], dry: bool) -> Options:
    made = deepcopy(options) if options else Options("reset", names)
    made.values |= {name: value for name, value in given.values.items() if name in GENERAL}
    if dry:
        made.values["dry-run"] = True
    return made


def action_of(space: Namespace, journal: Journal, wish: Wish, given: Options) -> Action:
    """What makes a file come true"""
    def act(dry: bool) -> Result:
        options = with_given(wish.options, given, [wish.device], dry)
        if not wish.device:
            return (host.apply(space, journal, options.names[0], options, True) if wish.options else
                    host.reset(space, journal, options))
        if wish.options:
            return device.apply(space, journal, options.action, wish.device, options, True)
        made = device.reset(space, journal, options)
        if made.errors:
            raise Failed("; ".join(made.errors))
        return made.results[0]

    return act


def unnamed(space: Namespace, journal: Journal, wanted: list[Wish], given: Options) -> list[tuple[str, Action]]:
    """Resets the devices that lowq-tc has set and no file names."""
    links = devices.links(space)
    named: list[Link] = []
    for wish in wanted:
        link = devices.find_link(links, wish.device) if wish.device else None
        if link in named:
            raise Refused(f"{wish.where}: another file is about {wish.device}, too, by its other name")
        named += [link] if link else []
    records, wrong = journal.devices(space)
    # what is left of a device that is gone is in nobody's way
    damaged = [one.says for one in wrong if one.ifindex in {link.ifindex for link in links}]
    if damaged:
        raise Failed("; ".join(damaged))

    def reset(record: DeviceRecord) -> Action:
        return lambda dry: device.reset_one(space, journal, links, record, with_given(None, given, [], dry))

    left = [record for record in records if record.link(links) not in (None, *named)]
    return [(record.name, reset(record)) for record in left]
