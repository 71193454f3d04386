# SPDX-License-Identifier: GPL-2.0
"""What tc, ip, sysctl and /sys show, as plain data. Nothing here changes the machine."""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import subprocess
from contextlib import contextmanager
from typing import Iterable, Iterator, NamedTuple

from .command import UNBATCHED
from .errors import Refused
from .light import Json

SO_NETNS_COOKIE = 71
CLONE_NEWNET = 0x40000000
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
PLUGINS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "lib", "lowq"))
NAMESPACES = "/run/netns"


def environment() -> dict[str, str]:
    """For every program that is run: English messages, and a PATH that finds tc and ip for
    users whose own has no /usr/sbin."""
    return {**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":" + SYSTEM_PATH}


def program(name: str) -> str:
    for folder in environment()["PATH"].split(":"):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
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
    return ctypes.CDLL(None, use_errno=True)


def enter(file: int) -> None:
    if c_library().setns(file, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Namespace:
    """A network namespace: the caller's own, or one of ip-netns(8) by name."""

    def __init__(self, name: str | None = None):
        self.name = name
        self.suffix = f" in network namespace '{name}'" if name else ""
        path = f"{NAMESPACES}/{name}" if name else "/proc/self/ns/net"
        try:
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

    def tool(self, name: str, *words: str) -> list[str]:
        return [name, *(("-n", self.name) if self.name else ()), *words]

    def sysctl(self, key: str) -> str | None:
        """Its value with single blanks, or None where the kernel has none."""
        with self.entered():
            return read_file("/proc/sys/" + key.replace(".", "/"))


def alive(cookies: dict[int, int]) -> set[int]:
    """Which of these namespaces (cookie: inode) still exist: held by a process or by a name."""
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
        if inode in wanted:
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


# --- links --------------------------------------------------------------------


class Link(NamedTuple):
    ifindex: int
    name: str
    altnames: tuple[str, ...]
    address: str
    permanent: str  # as ip shows it: only where it differs from the address
    mtu: int
    link_type: str
    kind: str  # veth, bridge ...; "" for hardware
    tx_queues: int
    txqlen: int
    gso_size: int
    gso_segs: int
    up: bool


def loads(text: str) -> Json:
    """tc writes "[Unknown qdisc, optlen=N]" into its JSON for what it cannot print."""
    text = re.sub(r"\[Unknown qdisc, optlen=(\d+)\] *", r'"unknown":\1', text)
    try:
        return json.loads(text or "[]")
    except ValueError:
        raise Refused(f"cannot read what tc or ip printed: {text[:80]!r}") from None


def links(space: Namespace, name: str | None = None) -> list[Link]:
    """All devices, or the one of this name, if there is one"""
    status, text, said = output(space.tool("ip", "-d", "-j", "link", "show", *(("dev", name) if name else ())))
    if status and name:
        return []
    if status:
        raise Refused(f"'ip link show' failed: {said.strip()}")
    return [
        Link(
            one["ifindex"], one["ifname"], tuple(one.get("altnames", ())), one.get("address", ""),
            one.get("permaddr", ""), one.get("mtu", 0), one.get("link_type", "none"),
            one.get("linkinfo", {}).get("info_kind", ""), one.get("num_tx_queues", 1),
            one.get("txqlen", 0), one.get("gso_max_size", 65536), one.get("gso_max_segs", 65535),
            "UP" in one.get("flags", ()),
        )
        for one in loads(text) if one
    ]


def find_link(all_links: list[Link], name: str) -> Link | None:
    """by name, else by altname"""
    for link in all_links:
        if link.name == name:
            return link
    return next((link for link in all_links if name in link.altnames), None)


class Hardware(NamedTuple):
    speed: int  # bit/s, 0 if unknown
    queues: int  # transmit queues in use
    queue_limits: str  # of the first queue: bytes, or "none"


def hardware(space: Namespace, link: Link) -> Hardware:
    """What /sys shows. /sys belongs to the namespace in which it was mounted, so it is used only
    if it shows the same device."""
    folder = f"/sys/class/net/{link.name}/"
    limit = "queues/tx-0/byte_queue_limits/limit"
    if space.own:
        values = {name: read_file(folder + name) for name in ("ifindex", "address", "speed", limit)}
        names = os.listdir(folder + "queues") if os.path.isdir(folder + "queues") else []
    else:
        within = ["ip", "netns", "exec", space.name or ""]
        files = [folder + name for name in ("ifindex", "address", "speed", limit)]
        values = {}
        for line in output([*within, "grep", "-s", "", *files])[1].splitlines():
            path, _, value = line.partition(":")
            values[path.removeprefix(folder)] = value.strip()
        names = output([*within, "ls", folder + "queues"])[1].split() if link.tx_queues > 1 else []
    if values.get("ifindex") != str(link.ifindex) or (values.get("address") or "") != link.address:
        return Hardware(0, 0, "none")
    speed = values.get("speed") or ""
    count = sum(name.startswith("tx-") for name in names)
    return Hardware(int(speed) * 1_000_000 if speed.isdigit() else 0, count, values.get(limit) or "none")


# --- queues -------------------------------------------------------------------

# Counters among the options, and what depends on who asks
VOLATILE = ("refcnt", "offloaded", "dev")
COUNTERS = ("direct_packets_stat",)
WITHOUT_FILTERS = ("mq", "pfifo", "bfifo", "pfifo_fast", "red", "gred", "netem", "codel", "fq", "int", "dualpi2")


def qdiscs(space: Namespace, device: str | None = None, counters: bool = False) -> list[Json]:
    words = ["-s"] if counters else []
    words += ["-d", "-j", "qdisc", "show"] + (["dev", device] if device else [])
    argv = space.tool("tc", *words)
    if os.path.exists(f"{PLUGINS}/q_dualpi2.so") and "TC_LIB_DIR" not in os.environ:
        argv = ["env", f"TC_LIB_DIR={PLUGINS}", *argv]
    status, text, said = output(argv)
    if status:
        raise Refused(f"'tc qdisc show' failed: {first_line(said)}")
    return list(loads(text))


def first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0]


def handle_of(qdisc: Json) -> str:
    return str(qdisc.get("handle", "0:"))


def root_of(tree: Json) -> Json | None:
    return next((qdisc for qdisc in tree["qdiscs"] if qdisc.get("root")), None)


def root_handle(tree: Json) -> str:
    root = root_of(tree)
    return handle_of(root) if root else "0:"


def read_tree(space: Namespace, link: Link, shown: list[Json] | None = None) -> Json:
    """All that hangs below the root: {"qdiscs", "classes", "filters", "txqlen"}.

    Where lowq-tc made the tree, handles that the kernel chose are called "auto": they are
    others when the same tree is made again.
    """
    found: list[Json] = []
    shown = qdiscs(space, link.name) if shown is None else shown
    for qdisc in shown:
        if qdisc.get("kind") in ("ingress", "clsact"):
            continue
        kept = {key: value for key, value in qdisc.items() if key not in VOLATILE}
        if isinstance(kept.get("options"), dict):
            kept["options"] = {k: v for k, v in kept["options"].items() if k not in COUNTERS}
        found.append(kept)
    tree: Json = {"qdiscs": found, "classes": [], "filters": {}, "txqlen": link.txqlen}
    handles = [handle_of(qdisc) for qdisc in found if handle_of(qdisc) != "0:"]
    if handles:
        asked = [f"class show dev {link.name}"]
        filtered = [handle_of(qdisc) for qdisc in found
                    if handle_of(qdisc) != "0:" and qdisc["kind"] not in WITHOUT_FILTERS]
        asked += [f"filter show dev {link.name} parent {handle}" for handle in filtered]
        classes, *filters = batch(space, link.name, asked)
        tree["classes"] = [line for line in classes if not line.startswith("class fq_codel ")]
        tree["filters"] = {handle: lines for handle, lines in zip(filtered, filters) if lines}
    if root_handle(tree) == "10f0:":
        chosen = [handle for handle in handles if int(handle[:-1], 16) >= 0x8000]
        if chosen:
            pattern = "|".join(map(re.escape, chosen))
            text = re.sub(rf"(?<![0-9a-f])({pattern})(?=[^0-9a-f]|$)", "auto:", json.dumps(tree))
            tree = json.loads(text)
    tree["qdiscs"].sort(key=lambda one: (one.get("parent", ""), handle_of(one)))
    return tree


def batch(space: Namespace, device: str, lines: list[str]) -> list[list[str]]:
    """The output of several "tc ... show", each as lines. One tc for all: a device may have
    hundreds of queues. A "help" after each separates them: all that tc can say any number of
    times. -force: tc would end where a parent went away meanwhile."""
    if UNBATCHED & set(device):
        return [[text for text in output(space.tool("tc", "-d", *line.split(" ")))[1].splitlines() if text.strip()]
                for line in lines]
    parts: list[list[str]] = [[]]
    ours = False  # not usage, nor an error
    asked = "".join(f"{line}\nhelp\n" for line in lines)
    for text in output(space.tool("tc", "-d", "-force", "-batch", "-"), asked)[1].splitlines():
        if text.startswith("Usage:"):
            parts.append([])
            ours = False
        elif text.startswith(("class ", "filter ")) or (ours and text.strip()):
            parts[-1].append(text.rstrip())
            ours = True
    if len(parts) != len(lines) + 1:
        raise Refused(f"cannot read what tc printed of the queue of {device}")
    return parts[:-1]


def read_clsact(space: Namespace, device: str, shown: list[Json] | None = None) -> Json:
    """What is at the device's ingress: None, or its kind and filters."""
    shown = qdiscs(space, device) if shown is None else shown
    kind = next((qdisc["kind"] for qdisc in shown if qdisc["kind"] in ("ingress", "clsact")), None)
    if kind is None:
        return None
    ingress, egress = batch(space, device, [f"filter show dev {device} {way}" for way in ("ingress", "egress")])
    return {"kind": kind, "ingress": ingress, "egress": egress}


# --- tc itself ------------------------------------------------------------------


def tc_version() -> str:
    said = output(["tc", "-V"])[1]
    match = re.search(r"iproute2-([^,\s]+)", said)
    return match[1] if match else said.strip()


def tc_offers(kind: str, word: str, plugins: str = "") -> bool:
    """Does this tc know the word for this kind? Asks its help, which talks to no kernel."""
    extra = ["env", f"TC_LIB_DIR={plugins}"] if plugins else []
    _, out, said = output([*extra, "tc", "qdisc", "add", "dev", "lo", "root", kind, "help"])
    return word in out + said


# --- the host -------------------------------------------------------------------


def sysctl_everywhere(key: str) -> str | None:
    return read_file("/proc/sys/" + key.replace(".", "/"))


def parameter_path(key: str) -> str:
    module, _, name = key.partition(".")
    return f"/sys/module/{module}/parameters/{name}"


def module_loaded(name: str) -> bool:
    return os.path.isdir(f"/sys/module/{name}")


def module_exists(name: str) -> bool:
    return module_loaded(name) or output(["modprobe", "-n", "-q", name])[0] == 0


STATE_WORDS = ("linkdown", "offload", "rt_offload", "trap", "rt_trap", "offload_failed")


def routes(space: Namespace, family: str, prefix: str) -> list[str] | None:
    """The routes to exactly this prefix, without words that tell a passing state. None: ip
    does not take it for a prefix."""
    status, text, _ = output(space.tool("ip", family, "route", "show", "exact", prefix))
    if status:
        return None
    lines: list[str] = []
    for line in text.splitlines():
        words = [word for word in line.split() if word not in STATE_WORDS]
        if line[:1].isspace() and lines:
            lines[-1] += " " + " ".join(words)
        elif words:
            lines.append(re.sub(r" expires \d+sec", "", " ".join(words)))
    return lines


def route_towards(space: Namespace, family: str, address: str) -> Json:
    status, text, _ = output(space.tool("ip", family, "-j", "route", "get", address))
    found = loads(text) if not status else []
    return found[0] if found else None
