# SPDX-License-Identifier: GPL-2.0
"""What lowq-tc has set, on disk before it is changed: each thing with the value of before and those that are
lowq-tc's own. A queue needs no such record to be removed: its handle tells. Its record is for show.

One file for all network namespaces, in /run/lowq or LOWQ_STATE_DIR. It is replaced whole: written beside it,
synced, renamed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from dataclasses import dataclass, field

from lowq_common import records, system
from lowq_common.devices import Link
from lowq_common.errors import Failed, Refused
from lowq_common.system import Namespace, boot_id
from lowq_common.values import Json

VERSION = 3
LOCK_WAIT = 10.0  # seconds
CAP_NET_ADMIN = 12
SHARED = ("module", "parameter", "allowed")  # kinds of things that all namespaces share
OF_DEVICES = ("gso_max_segs", "txqueuelen", "clsact", "ingress")  # that belong to a device
LOOSE = stat.S_IWGRP | stat.S_IWOTH
WITHOUT = "remove it: queues of lowq-tc's are reset without it, other settings are not"


@dataclass
class Thing:
    """Something with one value"""

    kind: str  # things.py
    target: str  # the name of a sysctl, a route's prefix ...
    before: Json
    ours: list[Json]  # what lowq-tc has made of it: more than one while a call is under way
    control: str = ""


@dataclass
class QueueRecord:
    ifindex: int
    name: str
    permanent: str  # its permanent address, "" if it has none that is known
    profile: str
    words: list[str]  # options as they were given
    report: Json
    commands: list[list[str]]
    tree: Json = None  # as it was once it was set; None: cut short
    remake: list[list[str]] = field(default_factory=list)  # of lowq 0.3, which replaced queues of others, too

    def is_of(self, link: Link) -> bool:
        """Another permanent address: the index is another device's now."""
        return not self.permanent or not address_of(link) or self.permanent == address_of(link)


def address_of(link: Link) -> str:
    return link.permanent or ("" if link.kind else link.address)


@dataclass
class Space:
    """What is set in one network namespace, and from there"""

    inode: int
    name: str | None
    queues: dict[int, QueueRecord] = field(default_factory=dict)  # by index of the device
    things: list[Thing] = field(default_factory=list)
    controls: dict[str, list[str]] = field(default_factory=dict)  # control -> options as they were given

    def thing(self, kind: str, target: str) -> Thing | None:
        return next((one for one in self.things if (one.kind, one.target) == (kind, target)), None)

    def things_of(self, ifindex: int) -> list[Thing]:
        return [one for one in self.things if one.kind in OF_DEVICES and one.target == str(ifindex)]

    def put(self, thing: Thing) -> None:
        self.things = [one for one in self.things if (one.kind, one.target) != (thing.kind, thing.target)] + [thing]

    def done(self, thing: Thing) -> None:
        """It is set. What is as before needs no record, unless others share it."""
        thing.ours = thing.ours[-1:]
        if thing.before == thing.ours[0] and thing.kind not in SHARED:
            self.things.remove(thing)


def space_from(made: Json) -> Space:
    return Space(made["inode"], made["name"], {int(index): QueueRecord(**one) for index, one in made["queues"].items()},
                 [Thing(**one) for one in made["things"]], made["controls"])


class Journal:
    FILE = "records.json"

    def __init__(self) -> None:
        self.folder = records.folder()
        self.lock_file = -1
        self.spaces: dict[int, Space] = {}  # by cookie
        self.written = ""
        self.old: list[str] = []  # files of lowq 0.3
        self.loaded = False

    def space(self, space: Namespace) -> Space:
        """Its part; an empty one is not kept"""
        self.load()
        return self.spaces.setdefault(space.cookie, Space(space.inode, space.name))

    @property
    def hidden(self) -> str:
        """Why this user cannot tell what lowq-tc has set; "" if it can be told"""
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(".json")]
            seen = all(os.access(f"{self.folder}/{name}", os.R_OK) for name in names)
        except OSError as error:
            seen = error.errno != errno.EACCES
        return "" if seen else f"the records in {self.folder} are for root to read (sudo)"

    def begin(self, undo: bool = False) -> None:
        """Before anything is read that will be changed: checks our rights and takes the lock. An undo does not need
        to write: what is its own is its own until it is undone."""
        if self.lock_file >= 0:
            return
        with open("/proc/self/status", encoding="ascii") as status:
            capable = next(line.split()[1] for line in status if line.startswith("CapEff"))
        if not int(capable, 16) >> CAP_NET_ADMIN & 1:
            raise Refused("needs the right to administer the network (root); --dry-run does not")
        what = "make"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            what = "write to"
            self.check()
            self.lock_file = os.open(f"{self.folder}/lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if not undo or error.errno != errno.EROFS:
                raise Refused(f"cannot {what} {self.folder}: {error.strerror}") from None
            if what == "make":
                return
            self.lock_file = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        end = time.monotonic() + LOCK_WAIT
        while True:
            try:
                fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                    return  # a file system without locks
            if time.monotonic() > end:
                raise Refused("another lowq-tc is running")
            time.sleep(0.02)

    def check(self) -> None:
        """Commands in records run as root: no other user may be able to write them."""
        path = folder = os.path.realpath(self.folder)
        while True:
            found = os.stat(path)
            sticky = path != folder and found.st_mode & stat.S_ISVTX
            if found.st_mode & LOOSE and not sticky or found.st_uid not in (0, os.geteuid()):
                raise Refused(f"{self.folder}: another user can write to {path}: records there are not trusted")
            if path == "/":
                return
            path = os.path.dirname(path)

    def read(self, name: str) -> Json:
        """The content of a file of this boot, or None: indices and cookies begin again with each boot."""
        path = f"{self.folder}/{name}"
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
                owner = os.fstat(file.fileno())
                if owner.st_uid not in (0, os.geteuid()) or owner.st_mode & LOOSE:
                    raise Failed(f"the record {path} can be written by another user: not trusted")
                made = json.load(file)
            return made if made["boot"] == boot_id() else None
        except (FileNotFoundError, PermissionError):
            return None
        except OSError as error:
            raise Failed(f"cannot read the record {path}: {error.strerror}") from None

    def load(self) -> None:
        if self.loaded:
            return
        self.loaded = True
        try:
            made = self.read(self.FILE)
            if made and made["version"] != VERSION:
                raise Failed(f"the record {self.folder}/{self.FILE} is of another version of lowq-tc")
            self.spaces = {int(cookie): space_from(one) for cookie, one in made["spaces"].items()} if made else {}
            names = os.listdir(self.folder) if os.path.isdir(self.folder) and not self.hidden else []
            self.old = [name for name in sorted(names) if name == "host.json" or name.startswith("device-")]
            if self.old:
                from . import old

                old.convert(self.spaces, [self.read(name) for name in self.old if name.endswith(".json")])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Failed(f"a record in {self.folder} is damaged; {WITHOUT}") from None

    def save(self) -> None:
        kept = {str(cookie): vars(one) for cookie, one in self.spaces.items() if one.queues or one.things or one.controls}
        said = json.dumps({"version": VERSION, "boot": boot_id(), "spaces": kept}, default=vars)  # faster than dump()
        if said == self.written:
            return
        if kept:
            self.write(said)
        else:
            self.drop(self.FILE)
        self.written = said
        while self.old:
            self.drop(self.old.pop())

    def write(self, said: str) -> None:
        path = f"{self.folder}/{self.FILE}"
        try:
            file = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with open(file, "w", encoding="utf-8") as out:
                out.write(said + "\n")
                out.flush()
                os.fsync(out.fileno())
            os.rename(path + ".new", path)
            self.sync()
        except OSError as error:
            if os.path.exists(path + ".new"):
                os.unlink(path + ".new")
            raise Refused(f"cannot write the record {path}: {error.strerror}") from None

    def drop(self, name: str) -> None:
        for path in (f"{self.folder}/{name}", f"{self.folder}/{name}.new"):
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Failed(f"cannot remove the record {path}: {error.strerror}") from None
        self.sync()

    def sync(self) -> None:
        if os.path.isdir(self.folder):
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)

    def save_undone(self) -> str:
        """What is undone stays so, also where the record cannot be written: it holds no lie. -> what there is to say"""
        try:
            self.save()
        except (Failed, Refused) as error:
            return f"{error}; what is undone stays so"
        return ""

    def settle(self, space: Namespace) -> None:
        """Of namespaces that are gone only what all share is left: it becomes this one's."""
        mine = self.space(space)
        living = system.alive({cookie: one.inode for cookie, one in self.spaces.items()}) | {space.cookie}
        for cookie in [cookie for cookie in self.spaces if cookie not in living]:
            for thing in self.spaces.pop(cookie).things:
                if not self.hand_over(thing):
                    mine.things.insert(0, thing)

    def hand_over(self, thing: Thing) -> bool:
        """Of a shared thing: another record of it puts back what was there before this one, or that of a namespace with
        the same control takes it over"""
        if thing.kind not in SHARED:
            return True
        for other in self.spaces.values():
            found = other.thing(thing.kind, thing.target)
            if found and found is not thing:
                if found.before in thing.ours:
                    found.before = thing.before
                return True
        for other in self.spaces.values():
            if thing.control in other.controls and not any(one is thing for one in other.things):
                other.things.insert(0, thing)
                return True
        return False
