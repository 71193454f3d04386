# SPDX-License-Identifier: GPL-2.0
"""What files say: /etc/lowq/lowq.toml, a table for each control of the host and for each queue.

    [[host]]
    control = "prague"
    default = true

    [[queue]]
    device = "eth*"          # a name or a pattern; or mac = "02:00:00:00:00:01", or driver = "mlx5_core"
    profile = "dctcp"
    rtt = "100us"

All other keys are the options of "lowq-tc PROFILE" and "lowq-tc host". lowq 0.3 had DEVICE.conf with
LOWQ_TC="..." and host.conf with LOWQ_HOST="...", which are read for one release.
"""

from __future__ import annotations

import json
import os
import shlex
from fnmatch import fnmatchcase
from typing import NamedTuple

from lowq_common.devices import Link, ethtool
from lowq_common.errors import Refused
from lowq_common.values import Json, matched

from .command_line import parse
from .options import FRAME, OPTIONS, Options
from .profiles import PROFILES
from .world import World

IFB = "ifb4"  # the device for what arrives at another: ifb4eth0
FOLDER, FILE, HOST_FILE = "/etc/lowq", "lowq.toml", "host.conf"
NOT_IN_FILES = ("netns", "pid", "dry-run", "json", "quiet")
SELECTORS = ("device", "mac", "driver")
ETHTOOL_GDRVINFO = 3


class Wish(NamedTuple):
    """What a file says of one thing"""

    where: str  # FILE:LINE
    by: str  # one of SELECTORS; "": the host
    name: str  # of the device, or its pattern; of the host its control
    options: Options | None  # None: it says nothing

    @property
    def pattern(self) -> bool:
        return self.by != "device" or any(char in self.name for char in "*?[")

    def fits(self, world: World, link: Link) -> bool:
        if self.by == "mac":
            return self.name.lower() in (link.address, link.permanent)
        if self.by == "driver":
            return self.name == driver(world, link.name)
        if self.pattern:
            return any(fnmatchcase(name, self.name) for name in (link.name, *link.altnames))
        return self.name in (link.name, *link.altnames)


def driver(world: World, name: str) -> str:
    told = ethtool(name, ETHTOOL_GDRVINFO, 196, world.ioctl)
    return b"".join(word.to_bytes(4, "little") for word in told[1:9]).split(b"\0")[0].decode("ascii", "replace")


def in_folder(folder: str) -> list[str]:
    """The files there; not those of editors and Ansible, half written"""
    try:
        names = os.listdir(folder) if os.path.isdir(folder) else []
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror}") from None
    return sorted(name for name in names if name.endswith((".conf", ".toml")) and name[0] != ".")


def files(names: list[str]) -> tuple[list[Wish], bool]:
    """-> what they say, and whether that is all there shall be: of a folder it is"""
    found: list[Wish] = []
    whole = not names
    for name in names or [FOLDER]:
        is_folder = os.path.isdir(name)
        whole = whole or is_folder or os.path.basename(name) == FILE
        for path in [os.path.join(name, one) for one in in_folder(name)] if is_folder else [name]:
            for wish in (from_toml if path.endswith(".toml") else from_conf)(path):
                other = next((one for one in found if (one.by, one.name) == (wish.by, wish.name)
                              or not wish.by and not one.by and one.where.partition(":")[0] != path), None)
                if other:
                    raise Refused(f"{wish.where}: {other.where} is about the same")
                found.append(wish)
    return found, whole


def content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


def from_toml(path: str) -> list[Wish]:
    import tomllib

    try:
        made = tomllib.loads(content(path).decode())
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: {error}") from None
    found = []
    for kind in made:
        if kind not in ("host", "queue") or not isinstance(made[kind], list):
            raise Refused(f"{path}: '{kind}' is neither [[host]] nor [[queue]]")
        for at, table in enumerate(made[kind], 1):
            where = f"{path}: {kind} {at}"
            if not isinstance(table, dict):
                raise Refused(f"{where}: not a table")
            try:
                found.append(wish_of(kind, where, table))
            except Refused as error:
                raise Refused(f"{where}: {error}") from None
    return found


def wish_of(kind: str, where: str, table: Json) -> Wish:
    by = [one for one in SELECTORS if one in table] if kind == "queue" else ["control"]
    if len(by) != 1:
        raise Refused("needs one of " + ", ".join(SELECTORS))
    named = (by[0], "profile") if kind == "queue" else ("control",)
    for key in named:
        if not isinstance(table.get(key), str) or not table[key]:
            raise Refused(f"needs {key} = \"...\"")
    words = []
    for key, value in table.items():
        if key in named:
            continue
        if key not in OPTIONS:
            raise Refused(f"unknown option '{key}'")
        for one in value if isinstance(value, list) else [value]:
            if one is True and not OPTIONS[key].metavar:
                words.append("--" + key)
            elif isinstance(one, (str, int, float)) and not isinstance(one, bool) and OPTIONS[key].metavar:
                words.append(f"--{key}={one}")
            elif one is not False:
                raise Refused(f"'{key}' cannot be {one!r}")
    if kind == "host":
        return Wish(where, "", table["control"], checked("host", [table["control"], *words]))
    options = checked(table["profile"], words)
    name = table[by[0]]
    if options.has("ingress") and (by[0] != "device" or any(char in name for char in "*?[")):
        raise Refused("ingress goes with the name of a device")
    return Wish(where, by[0], (IFB if options.has("ingress") else "") + name, options)


def checked(action: str, words: list[str]) -> Options:
    """As far as they can be without the machine"""
    if action != "host" and action not in PROFILES:
        raise Refused(f"unknown profile '{action}'")
    if not {"-h", "--help"}.isdisjoint(words):
        raise Refused("--help is not for files")
    options = parse(["host", *words] if action == "host" else [action, *words, "--", "DEVICE"])
    for name in NOT_IN_FILES:
        if options.has(name):
            raise Refused(f"--{name} is not for files")
    if action != "host":
        options.only(action, *FRAME, *PROFILES[action].options)
    elif options.names[0] in ("show", "reset"):
        raise Refused(f"'{options.names[0]}' is not a control")
    return options


def from_conf(path: str) -> list[Wish]:
    """Of lowq 0.3"""
    name = os.path.basename(path)
    by, subject, key = ("", "", "LOWQ_HOST") if name == HOST_FILE else ("device", name.removesuffix(".conf"), "LOWQ_TC")
    lines = content(path).decode("utf-8", "surrogateescape").splitlines()
    if subject == name or name == ".conf":
        raise Refused(f"{path}: not DEVICE.conf, {HOST_FILE} or {FILE}")
    found: list[Wish] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        where = f"{path}:{number}"
        match = matched(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)", line)
        if not match or match[1] != key:
            raise Refused(f"{where}: not {key}=\"...\"")
        if found:
            raise Refused(f"{where}: {key} again")
        try:
            words = [each for part in shlex.split(match[2]) for each in shlex.split(part)]
            options = None if not words else checked(words[0], words[1:]) if subject else checked("host", words)
            found.append(Wish(where, by, subject or "".join(words[:1]), options))
        except (Refused, ValueError) as error:
            raise Refused(f"{where}: {error}") from None
    return found or [Wish(path, by, subject, None)]


# --- from what is set to a file ---------------------------------------------------------


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def table(kind: str, first: dict[str, str], words: list[str]) -> str:
    values: dict[str, list[str]] = {}
    for option in words:
        name, _, value = option.removeprefix("--").partition("=")
        values.setdefault(name, []).append(value)
    lines = [f"[[{kind}]]", *(f"{key} = {quoted(value)}" for key, value in first.items())]
    for name, several in values.items():
        said = quoted(several[-1]) if OPTIONS[name].metavar else "true"
        lines.append(f"{name} = " + (f"[{', '.join(map(quoted, several))}]" if name == "route" else said))
    return "\n".join(lines) + "\n"
