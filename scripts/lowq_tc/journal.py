# SPDX-License-Identifier: GPL-2.0
"""What was changed and how to undo it, on disk before anything changes.

One file per network namespace and device, and host.json for the settings of hosts, in
/run/lowq or LOWQ_STATE_DIR. A file is replaced whole: written beside it, synced, renamed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from lowq_common.devices import Link
from lowq_common.errors import Failed, Refused
from lowq_common.values import Json, matched
from lowq_common.system import Namespace, boot_id

from .command import Command

VERSION = 2
LOCK_WAIT = 10.0  # seconds
CAP_NET_ADMIN = 12

PLANNED, BEGUN, DONE, UNDOING, UNDONE = "planned", "begun", "done", "undoing", "undone"


@dataclass
class SavedState:
    """A state that a step can go back to, and the commands that lead there."""

    state: Json  # as aspects.read() reads it
    commands: list[Command]

    @staticmethod
    def from_json(made: Json) -> SavedState:
        return SavedState(made["state"], commands(made))


def commands(made: Json) -> list[Command]:
    return [Command(tuple(argv), everywhere, file) for argv, everywhere, file in made["commands"]]


@dataclass
class Step:
    """One thing that is changed: by which commands, and what it was before."""

    aspect: str  # what kind of thing: aspects/
    target: str  # which one: the name of a sysctl, a route's prefix ...
    commands: list[Command]
    before: SavedState  # what was there before lowq-tc first changed it
    earlier: SavedState | None = None  # what an earlier call left, until this one is complete
    after: Json = None  # what is there once all commands have run
    state: str = PLANNED
    lost: str = ""  # what cannot be put back: --force gave it up
    users: dict[str, int] = field(default_factory=dict)  # of a shared setting: cookie -> inode
    control: str = ""

    @staticmethod
    def from_json(made: Json) -> Step:
        return Step(**made | {
            "commands": commands(made), "before": SavedState.from_json(made["before"]),
            "earlier": made["earlier"] and SavedState.from_json(made["earlier"]),
        })


@dataclass
class DeviceRecord:
    cookie: int
    inode: int
    namespace: str | None
    ifindex: int
    name: str
    address: str
    permanent: str  # its permanent address, "" if it has none that is known
    kind: str
    profile: str
    report: Json
    steps: list[Step]
    complete: bool = False

    @staticmethod
    def from_json(made: Json) -> DeviceRecord:
        return DeviceRecord(**made | {"steps": [Step.from_json(one) for one in made["steps"]]})

    def step(self, aspect: str) -> Step | None:
        return next((step for step in self.steps if step.aspect == aspect), None)

    def link(self, all_links: list[Link]) -> Link | None:
        """The device, whatever its name and address are now."""
        for link in all_links:
            if link.ifindex == self.ifindex:
                # Another permanent address: the index was reused for another device.
                if self.permanent and link.permanent and link.permanent != self.permanent:
                    break
                return link
        for link in all_links:
            if self.permanent and self.permanent in (link.permanent, link.address) and not link.kind \
                    and self.name in (link.name, *link.altnames):
                return link
        return None


@dataclass
class HostRecord:
    """Settings of the hosts: per namespace (by cookie), and those shared by all of them."""

    own: dict[str, Json] = field(default_factory=dict)  # cookie -> {"inode", "name", "controls"}
    steps: dict[str, list[Step]] = field(default_factory=dict)  # cookie -> its steps
    shared: list[Step] = field(default_factory=list)

    @staticmethod
    def from_json(made: Json) -> HostRecord:
        steps = {cookie: [Step.from_json(one) for one in own] for cookie, own in made["steps"].items()}
        return HostRecord(made["own"], steps, [Step.from_json(one) for one in made["shared"]])

    @property
    def empty(self) -> bool:
        return not self.own and not self.shared


class Damaged(Failed):
    """A record that cannot be read."""


class Unreadable(NamedTuple):
    """Such a record of a device"""

    file: str
    ifindex: int
    says: str  # what is wrong, and what to type


def forgets(space: Namespace, device: str) -> str:
    """What to type so that a record is dropped"""
    return Command(("lowq-tc", "reset", device, "--forget")).text(space.name)


class Journal:
    def __init__(self) -> None:
        self.folder = os.path.abspath(os.environ.get("LOWQ_STATE_DIR") or "/run/lowq")
        self.lock_file = -1

    # --- the folder -----------------------------------------------------------

    @property
    def hidden(self) -> str:
        """Why this user cannot tell what lowq-tc has set; "" if it can be told"""
        try:
            records = [name for name in os.listdir(self.folder) if name.endswith(".json")]
            seen = all(os.access(f"{self.folder}/{name}", os.R_OK) for name in records)
        except OSError as error:
            seen = error.errno != errno.EACCES
        return "" if seen else f"the records in {self.folder} are for root to read (sudo)"

    def begin(self, undo: bool = False) -> None:
        """Before anything is read that will be changed: checks our rights and takes the lock. An undo
        does not need to write: the record says enough until all is undone."""
        if self.lock_file >= 0:
            return
        status = open("/proc/self/status", encoding="ascii").read()
        capable = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
        if not int(capable, 16) >> CAP_NET_ADMIN & 1:
            raise Refused("needs the right to administer the network (root); --dry-run does not")
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        except OSError as error:
            if undo and error.errno == errno.EROFS:
                return  # there is no record
            raise Refused(f"cannot make {self.folder}: {error.strerror}") from None
        self.check()
        try:
            self.lock_file = os.open(f"{self.folder}/lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if not undo or error.errno != errno.EROFS:
                raise Refused(f"cannot write to {self.folder}: {error.strerror}") from None
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
        path = os.path.realpath(self.folder)
        while True:
            found = os.stat(path)
            loose = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if path != os.path.realpath(self.folder) and found.st_mode & stat.S_ISVTX:
                loose = 0
            if loose or found.st_uid not in (0, os.geteuid()):
                raise Refused(f"{self.folder}: another user can write to {path}: records there are not trusted")
            if path == "/":
                return
            path = os.path.dirname(path)

    # --- files ------------------------------------------------------------------

    def read(self, name: str) -> Json:
        """The content of a file, or None where there is none."""
        path = f"{self.folder}/{name}"
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
                owner = os.fstat(file.fileno())
                if owner.st_uid not in (0, os.geteuid()) or owner.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise Damaged(f"the record {path} can be written by another user: not trusted")
                made = json.load(file)
        except FileNotFoundError:
            return None
        except PermissionError:
            return None
        except OSError as error:
            raise Damaged(f"cannot read the record {path}: {error.strerror}") from None
        except ValueError:
            raise Damaged(f"the record {path} is damaged") from None
        if not isinstance(made, dict) or made.get("version") != VERSION:
            raise Damaged(f"the record {path} is of another version of lowq-tc")
        if "boot" not in made or "record" not in made:
            raise Damaged(f"the record {path} is damaged")
        # Cookies and indices begin again with each boot.
        return made["record"] if made["boot"] == boot_id() else None

    def write(self, name: str, record: DeviceRecord | HostRecord) -> None:
        made = {"version": VERSION, "boot": boot_id(), "record": record}
        path = f"{self.folder}/{name}"
        try:
            file = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with open(file, "w", encoding="utf-8") as out:
                out.write(json.dumps(made, default=vars) + "\n")  # faster than dump() and asdict()
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
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    # --- devices ------------------------------------------------------------------

    @staticmethod
    def device_file(cookie: int, ifindex: int) -> str:
        return f"device-{cookie}-{ifindex}.json"

    def device(self, cookie: int, ifindex: int) -> DeviceRecord | None:
        name = self.device_file(cookie, ifindex)
        return self.parsed_device(name, self.read(name))

    def parsed_device(self, name: str, made: Json) -> DeviceRecord | None:
        try:
            return DeviceRecord.from_json(made) if made else None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Damaged(f"the record {self.folder}/{name} is damaged") from None

    def save_device(self, record: DeviceRecord) -> None:
        self.write(self.device_file(record.cookie, record.ifindex), record)

    def device_files(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        return sorted(name for name in names if name.startswith("device-") and name.endswith(".json"))

    @staticmethod
    def owner_of(name: str) -> tuple[int, int]:
        """Of the name of a device's file: the cookie of its namespace, and its index"""
        match = matched(r"device-(\d+)-(\d+)\.json", name)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def devices(self, space: Namespace) -> tuple[list[DeviceRecord], list[Unreadable]]:
        """The records of a namespace, and those that cannot be read"""
        found: list[DeviceRecord] = []
        wrong: list[Unreadable] = []
        for name in self.device_files():
            cookie, ifindex = self.owner_of(name)
            if cookie != space.cookie:
                continue
            try:
                record = self.parsed_device(name, self.read(name))
            except Damaged as error:
                device = space.names().get(ifindex, "--all")  # which drops those of devices that are gone
                wrong.append(Unreadable(name, ifindex, f"{error}; '{forgets(space, device)}' drops it and changes"
                                                       " nothing else"))
                continue
            if record and record.cookie == space.cookie:
                found.append(record)
        return found, wrong

    # --- the host -------------------------------------------------------------------

    HOST = "host.json"

    def host(self) -> HostRecord:
        said = f"the record {self.folder}/{self.HOST} is damaged"
        try:
            made = self.read(self.HOST)
            return HostRecord.from_json(made) if made else HostRecord()
        except Damaged as error:
            said = str(error)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise Damaged(f"{said}; 'lowq-tc host reset --forget' drops it and changes nothing else")

    def save_host(self, record: HostRecord) -> None:
        if record.empty:
            self.drop(self.HOST)
        else:
            self.write(self.HOST, record)
