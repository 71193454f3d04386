# SPDX-License-Identifier: GPL-2.0
"""Programs, files of /proc and /sys, network namespaces and modules: what is read with nothing
known of queues. Nothing here changes the machine."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterable, Iterator

from .errors import Refused
from .values import Json

if TYPE_CHECKING:
    import ctypes

SO_NETNS_COOKIE = 71
CLONE_NEWNET = 0x40000000
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
NAMESPACES = "/run/netns"


def environment() -> dict[str, str]:
    """For every program that is run: English messages, and a PATH that finds tc and ip for
    users whose own has no /usr/sbin."""
    return {**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":" + SYSTEM_PATH}


def program(name: str) -> str:
    """Its path. busybox has an ip and a tc that know little: those of iproute2 are meant."""
    busybox = ""
    for folder in environment()["PATH"].split(":"):
        path = os.path.join(folder, name)
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            continue
        if name in ("ip", "tc") and os.path.basename(os.path.realpath(path)) in ("busybox", "toybox"):
            busybox = busybox or path
            continue
        return path
    if busybox:
        raise Refused(f"{busybox} is busybox's: the {name} of iproute2 is needed")
    raise Refused(f"'{name}' is not installed")


def output(argv: Iterable[str], given: str | None = None) -> tuple[int, str, str]:
    """-> status, standard output, standard error; if input is given, both in their order and \"\" """
    words = list(argv)
    done = subprocess.run(
        [program(words[0]), *words[1:]], env=environment(), input=given or "", stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if given is None else subprocess.STDOUT,
        encoding="utf-8", errors="surrogateescape", check=False,
    )
    return done.returncode, done.stdout, done.stderr or ""


def c_library() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def enter(file: int) -> None:
    import ctypes

    if c_library().setns(file, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Namespace:
    """A network namespace: the caller's own, one of ip-netns(8) by name, or one by its path, which is held open:
    the processes in it may end meanwhile, and their numbers be taken by others."""

    def __init__(self, name: str | None = None):
        self.name = name
        self.suffix = f" in network namespace '{name}'" if name else ""
        self.by_path = "/" in (name or "")
        path = (name if self.by_path and name else f"{NAMESPACES}/{name}") if name else "/proc/self/ns/net"
        try:
            if self.by_path:
                path = f"/proc/{os.getpid()}/fd/{os.open(path, os.O_RDONLY | os.O_CLOEXEC)}"
            self.inode = os.stat(path).st_ino
        except OSError:
            raise Refused(f"no network namespace '{name}'" if name else "cannot tell the network namespace") from None
        self.path = path
        self.own = name is None or self.inode == os.stat("/proc/self/ns/net").st_ino
        self._cookie = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within, sockets and /proc/sys/net are those of the namespace."""
        if self.own:
            yield
            return
        here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            try:
                with open(self.path, "rb") as there:
                    enter(there.fileno())
            except OSError as error:
                raise Refused(f"cannot enter network namespace '{self.name}': {error.strerror}") from None
            try:
                yield
            finally:
                enter(here)
        finally:
            os.close(here)

    @property
    def cookie(self) -> int:
        """Identifies the namespace. Unlike its inode number, a cookie is never reused."""
        if not self._cookie:
            with self.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                self._cookie = int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little")
        return self._cookie

    def names(self) -> dict[int, str]:
        """Its devices: index -> name"""
        with self.entered():
            return dict(socket.if_nameindex())

    def output(self, *words: str) -> tuple[int, str, str]:
        """Of tc or ip there"""
        with self.entered():
            return output(words)

    def sysctl(self, key: str) -> str | None:
        """Its value with single blanks, or None where the kernel has none."""
        with self.entered():
            return read_file("/proc/sys/" + key.replace(".", "/"))


ANY_INODE = 0


def alive(cookies: dict[int, int]) -> set[int]:
    """Which of these namespaces (cookie: inode or ANY_INODE) still exist: held by a process or by a name."""
    paths: dict[int, str] = {}
    folders = [f"/proc/{pid}/ns/net" for pid in os.listdir("/proc") if pid.isdigit()]
    if os.path.isdir(NAMESPACES):
        folders += [f"{NAMESPACES}/{name}" for name in os.listdir(NAMESPACES)]
    wanted = set(cookies.values())
    for path in folders:
        try:
            inode = os.stat(path).st_ino
        except OSError:
            continue
        if inode in wanted or ANY_INODE in wanted:
            paths.setdefault(inode, path)
    found = set()
    for inode, path in paths.items():
        space = Namespace()
        space.path, space.inode, space.own = path, inode, inode == space.inode
        try:
            found.add(space.cookie)
        except (Refused, OSError):
            continue
    return found & set(cookies)


def read_file(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return " ".join(file.read().split())
    except OSError:
        return None


def boot_id() -> str:
    return read_file("/proc/sys/kernel/random/boot_id") or ""


def loads(text: str) -> Json:
    """tc writes "[Unknown qdisc, optlen=N]" into its JSON for what it cannot print."""
    text = re.sub(r"\[Unknown qdisc, optlen=(\d+)\] *", r'"unknown":\1', text)
    try:
        return json.loads(text or "[]")
    except ValueError:
        raise Refused(f"cannot read what tc or ip printed: {text[:80]!r}") from None


def first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0]


# --- modules and settings ------------------------------------------------------------


def sysctl_everywhere(key: str) -> str | None:
    return read_file("/proc/sys/" + key.replace(".", "/"))


def parameter_path(key: str) -> str:
    module, _, name = key.partition(".")
    return f"/sys/module/{module}/parameters/{name}"


def module_loaded(name: str) -> bool:
    return os.path.isdir(f"/sys/module/{name}")


def module_exists(name: str) -> bool:
    return module_loaded(name) or output(["modprobe", "-n", "-q", name])[0] == 0


def route_towards(space: Namespace, family: str, address: str) -> Json:
    status, text, _ = space.output("ip", family, "-j", "route", "get", address)
    found = loads(text) if not status else []
    return found[0] if found else None
