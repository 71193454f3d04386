# SPDX-License-Identifier: GPL-2.0
"""Network devices and their queues, as ip, tc and /sys show them. Nothing here changes the
machine."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import NamedTuple

from .errors import Refused
from .values import Json
from .system import Namespace, first_line, loads, output, read_file

PLUGINS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "lib", "lowq"))


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
    lower: tuple[str, ...] = ()  # the devices that it hands its packets to, as far as they are in this namespace
    remote: str = ""  # the other end of a tunnel


# its peer, not a lower device, is what ip shows as its link
PAIRED = ("veth", "netkit", "vxcan")


def lower_names(shown: list[Json]) -> dict[str, list[str]]:
    """device -> its lower devices, as lower_* in /sys/class/net, which belongs to the namespace in which
    it was mounted: what ip calls link (VLAN, macvlan, tunnel) and the devices whose master it is (bond,
    team, bridge, VRF)"""
    found: dict[str, list[str]] = {}
    for one in shown:
        info = one.get("linkinfo", {})
        if one.get("master"):
            found.setdefault(one["master"], []).append(one["ifname"])
        below = info.get("info_data", {}).get("link") or one.get("link")
        if below and info.get("info_kind") not in PAIRED and "link_netnsid" not in one:
            found.setdefault(one["ifname"], []).append(below)
    return found


def links(space: Namespace, name: str | None = None) -> list[Link]:
    """All devices, or the one of this name, if there is one"""
    status, text, said = output(space.tool("ip", "-d", "-j", "link", "show", *(("dev", name) if name else ())))
    if status and name:
        return []
    if status:
        raise Refused(f"'ip link show' failed: {said.strip()}")
    return read_links(loads(text))


def links_and_routes(space: Namespace) -> tuple[list[Link], list[Json]]:
    """All devices, and the routes of all tables for IPv4 and IPv6, by one ip"""
    said = output(space.tool("ip", "-d", "-j", "-batch", "-"), "link show\nroute show table all\n")[1]
    shown = [loads(line) for line in said.splitlines() if line.startswith("[")]
    if not shown:
        raise Refused(f"'ip link show' failed: {first_line(said)}")
    return read_links(shown[0]), shown[1] if len(shown) > 1 else []


def read_links(shown: list[Json]) -> list[Link]:
    """from ip's JSON"""
    shown = [one for one in shown if one]
    lower = lower_names(shown)
    return [
        Link(
            one["ifindex"], one["ifname"], tuple(one.get("altnames", ())), one.get("address", ""),
            one.get("permaddr", ""), one.get("mtu", 0), one.get("link_type", "none"),
            one.get("linkinfo", {}).get("info_kind", ""), one.get("num_tx_queues", 1),
            one.get("txqlen", 0), one.get("gso_max_size", 65536), one.get("gso_max_segs", 65535),
            "UP" in one.get("flags", ()), tuple(lower.get(one["ifname"], ())), remote_of(one),
        )
        for one in shown
    ]


def remote_of(shown: Json) -> str:
    data = shown.get("linkinfo", {}).get("info_data", {})
    found = data.get("remote") or data.get("remote6") or data.get("group") or data.get("group6") or ""
    return "" if found in ("any", "0.0.0.0", "::") else str(found)


def find_link(all_links: list[Link], name: str) -> Link | None:
    """by name, else by altname"""
    for link in all_links:
        if link.name == name:
            return link
    return next((link for link in all_links if name in link.altnames), None)


SIOCGIFTXQLEN = 0x8942
SIOCETHTOOL, ETHTOOL_GSET, ETHTOOL_GTSO = 0x8946, 0x01, 0x1E
SPEED_UNKNOWN = 0xFFFFFFFF


def queue_length(space: Namespace, name: str) -> int | None:
    """The device's txqueuelen; None: it is gone"""
    with space.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("16s24x", name.encode(errors="surrogateescape"))
        try:
            return int(struct.unpack_from("i", fcntl.ioctl(asked, SIOCGIFTXQLEN, request), 16)[0])
        except OSError:
            return None


def ethtool(name: str, command: int, size: int) -> tuple[int, ...]:
    """The answer's numbers; empty if the device does not know the question"""
    import array

    numbers = array.array("I", [command] + [0] * (size // 4 - 1))
    request = struct.pack("16sP", name.encode(errors="surrogateescape")[:15], numbers.buffer_info()[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked, SIOCETHTOOL, request)
    except OSError:
        return ()
    return tuple(numbers)


class Hardware(NamedTuple):
    speed: int  # bit/s, 0 if unknown
    queues: int  # transmit queues in use
    queue_limits: str  # of the first queue: bytes, or "none"
    tso: bool  # is TSO on?


def hardware(space: Namespace, link: Link) -> Hardware:
    """What /sys shows. /sys belongs to the namespace in which it was mounted, so it is used only
    if it shows the same device."""
    folder = f"/sys/class/net/{link.name}/"
    with space.entered():
        tso = ethtool(link.name, ETHTOOL_GTSO, 8)[1:] not in ((), (0,))
        settings = ethtool(link.name, ETHTOOL_GSET, 44)
    if link.kind not in ("", "ipoib") and link.tx_queues == 1 and not space.own:
        # no hardware: what matters of /sys, which takes a program to see, ethtool says
        mbps = settings[3] & 0xFFFF | (settings[7] & 0xFFFF) << 16 if settings and link.up else SPEED_UNKNOWN
        return Hardware(mbps * 1_000_000 if mbps != SPEED_UNKNOWN else 0, 0, "none", tso)
    limit = "queues/tx-0/byte_queue_limits/limit"
    if space.own:
        values = {name: read_file(folder + name) for name in ("ifindex", "address", "speed", limit)}
        names = os.listdir(folder + "queues") if os.path.isdir(folder + "queues") else []
    else:
        script = (
            'cd "$0" && for file; do read -r value <"$file" && echo "$file" "$value"; done; cd queues && echo names *'
        )
        within = ["ip", "netns", "exec", space.name or "", "sh", "-c", script, folder]
        values = {}
        for line in output([*within, "ifindex", "address", "speed", limit])[1].splitlines():
            file, _, value = line.partition(" ")
            values[file] = value.strip()
        names = (values.pop("names", "") or "").split() if link.tx_queues > 1 else []
    if values.get("ifindex") != str(link.ifindex) or (values.get("address") or "") != link.address:
        return Hardware(0, 0, "none", tso)
    speed = values.get("speed") or ""
    count = sum(name.startswith("tx-") for name in names)
    return Hardware(int(speed) * 1_000_000 if speed.isdigit() else 0, count, values.get(limit) or "none", tso)


# --- queues -------------------------------------------------------------------


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


def handle_of(qdisc: Json) -> str:
    return str(qdisc.get("handle", "0:"))


def root_of(tree: Json) -> Json | None:
    return next((qdisc for qdisc in tree["qdiscs"] if qdisc.get("root")), None)


def root_handle(tree: Json) -> str:
    root = root_of(tree)
    return handle_of(root) if root else "0:"
