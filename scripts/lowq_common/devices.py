# SPDX-License-Identifier: GPL-2.0
"""Network devices and their queues, as the kernel tells them. Nothing here changes the machine."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from typing import NamedTuple

from .netlink import RTM_GETLINK, Netlink, attribute, attributes, listed, number, text
from . import queues
from .system import Namespace, output, read_file
from .values import Json

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
    table: int = 0  # of a VRF


# linux/if_link.h
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_MASTER, IFLA_TXQLEN, IFLA_LINKINFO = 1, 3, 4, 5, 10, 13, 18
IFLA_EXT_MASK, IFLA_NUM_TX_QUEUES, IFLA_LINK_NETNSID, IFLA_GSO_MAX_SEGS, IFLA_GSO_MAX_SIZE = 29, 31, 37, 40, 41
IFLA_PROP_LIST, IFLA_PERM_ADDRESS, SKIP_STATS = 52, 54, 8
IFINFO = struct.Struct("=BxHiII")
TYPES = {1: "ether", 32: "infiniband", 772: "loopback"}
# its peer, not a lower device, is what the kernel calls its link
PAIRED = ("veth", "netkit", "vxcan")
# where a tunnel's own attributes have its other end, and the device that it is bound to
REMOTES = {"ipip": (3,), "sit": (3,), "ip6tnl": (3,), "gre": (7,), "gretap": (7,), "ip6gre": (7,), "ip6gretap": (7,),
           "erspan": (7,), "ip6erspan": (7,), "vti": (5,), "vti6": (5,), "vxlan": (2, 16), "geneve": (2, 7)}
BOUND = {"vxlan": 3}


def links(space: Namespace, name: str | None = None) -> list[Link]:
    """All devices, or the one of this name, if there is one"""
    with Netlink(space) as route:
        found = list(read_links(route))
    return [link for link in found if name in (None, link.name)]


def read_links(route: Netlink) -> list[Link]:
    """The lower devices are those of lower_* in /sys/class/net, which belongs to the namespace in which it was
    mounted: the kernel's "link" (VLAN, macvlan, tunnel) and the devices whose master it is (bond, bridge, VRF)"""
    shown: list[tuple[Link, int, int]] = []  # with the index of its master, and of the device below
    body = IFINFO.pack(0, 0, 0, 0, 0) + attribute(IFLA_EXT_MASK, struct.pack("=I", SKIP_STATS))
    for content in route.dump(RTM_GETLINK, body):
        _, link_type, index, flags, _ = IFINFO.unpack_from(content)
        had = attributes(content, IFINFO.size)
        info = attributes(had.get(IFLA_LINKINFO, b""))
        kind = text(info.get(1, b""))
        data = attributes(info.get(2, b"")) if kind in REMOTES or kind == "vrf" else {}
        below = number(data.get(BOUND.get(kind, 0))) or number(had.get(IFLA_LINK))
        if kind in PAIRED or IFLA_LINK_NETNSID in had:
            below = 0
        address, permanent = (had.get(which, b"").hex(":") for which in (IFLA_ADDRESS, IFLA_PERM_ADDRESS))
        shown.append((Link(
            index, text(had[IFLA_IFNAME]), tuple(text(one) for _, one in listed(had.get(IFLA_PROP_LIST, b""))),
            address, permanent if permanent != address else "", number(had.get(IFLA_MTU)),
            TYPES.get(link_type, "none"), kind, number(had.get(IFLA_NUM_TX_QUEUES), 1), number(had.get(IFLA_TXQLEN)),
            number(had.get(IFLA_GSO_MAX_SIZE), 65536), number(had.get(IFLA_GSO_MAX_SEGS), 65535), bool(flags & 1), (),
            remote_of(kind, data), number(data.get(1)) if kind == "vrf" else 0,
        ), number(had.get(IFLA_MASTER)), below))
    names = {link.ifindex: link.name for link, _, _ in shown}
    lower: dict[int, list[str]] = {}
    for link, master, below in shown:
        if master in names:
            lower.setdefault(master, []).append(link.name)
        if below in names and below != link.ifindex:
            lower.setdefault(link.ifindex, []).append(names[below])
    return [link._replace(lower=tuple(lower.get(link.ifindex, ()))) for link, _, _ in shown]


def remote_of(kind: str, data: dict[int, bytes]) -> str:
    for which in REMOTES.get(kind, ()):
        if any(data.get(which, b"")):
            return socket.inet_ntop(socket.AF_INET if len(data[which]) == 4 else socket.AF_INET6, data[which])
    return ""


def find_link(all_links: list[Link], name: str) -> Link | None:
    """by name, else by altname"""
    for link in all_links:
        if link.name == name:
            return link
    return next((link for link in all_links if name in link.altnames), None)


SIOCETHTOOL, ETHTOOL_GSET, ETHTOOL_GTSO, ETHTOOL_GCHANNELS = 0x8946, 0x01, 0x1E, 0x3C
SPEED_UNKNOWN = 0xFFFFFFFF


def ethtool(name: str, command: int, size: int, asked: socket.socket | None = None) -> tuple[int, ...]:
    """The answer's numbers; empty if the device does not know the question. asked: a socket of its namespace"""
    numbers = array.array("I", [command] + [0] * (size // 4 - 1))
    request = struct.pack("16sP", name.encode(errors="surrogateescape")[:15], numbers.buffer_info()[0])
    used = asked or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        fcntl.ioctl(used, SIOCETHTOOL, request)
    except OSError:
        return ()
    finally:
        if used is not asked:
            used.close()
    return tuple(numbers)


class Hardware(NamedTuple):
    speed: int  # bit/s, 0 if unknown
    queues: int  # transmit queues in use
    queue_limits: str  # of the first queue: bytes, or "none"
    tso: bool  # is TSO on?


def hardware(space: Namespace, link: Link, asked: socket.socket | None = None) -> Hardware:
    """What /sys shows. /sys belongs to the namespace in which it was mounted, so it is used only
    if it shows the same device."""
    folder = f"/sys/class/net/{link.name}/"
    if asked is None:
        with space.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            return hardware(space, link, made)
    tso = ethtool(link.name, ETHTOOL_GTSO, 8, asked)[1:] not in ((), (0,))
    settings = ethtool(link.name, ETHTOOL_GSET, 44, asked)
    channels = ethtool(link.name, ETHTOOL_GCHANNELS, 36, asked)
    if link.kind not in ("", "ipoib") and not space.own:
        # no hardware: what matters of /sys, which takes a program to see, ethtool says
        mbps = settings[3] & 0xFFFF | (settings[7] & 0xFFFF) << 16 if settings and link.up else SPEED_UNKNOWN
        queues_in_use = channels[6] + channels[8] if channels else 0
        return Hardware(mbps * 1_000_000 if mbps != SPEED_UNKNOWN else 0, queues_in_use, "none", tso)
    limit = "queues/tx-0/byte_queue_limits/limit"
    if space.own:
        values = {name: read_file(folder + name) for name in ("ifindex", "address", "speed", limit)}
        names = os.listdir(folder + "queues") if os.path.isdir(folder + "queues") else []
    else:
        script = (
            'cd "$0" && for file; do read -r value <"$file" && echo "$file" "$value"; done; cd queues && echo names *'
        )
        within = ["ip", "netns", "exec", space.name or ""]
        if space.by_path:
            within = ["nsenter", f"--net={space.path}", "unshare", "-m", "sh", "-c", 'mount -t sysfs lowq /sys && exec "$@"', "sh"]
        within += ["sh", "-c", script, folder]
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


def queue_list(space: Namespace) -> list[Json]:
    """The queues of all devices, with what they have counted"""
    names = space.names()
    with Netlink(space) as route:
        return [queues.as_json(one, names[one.ifindex]) for one in queues.qdiscs(route) if one.ifindex in names]


def handle_of(qdisc: Json) -> str:
    return str(qdisc.get("handle", "0:"))
