# SPDX-License-Identifier: GPL-2.0
"""What the kernel's RED can do and tc has no word for: a weight of 1, with which it looks at the
queue itself and not at an average (Wlog 0; tc sends 1 to 31). One message of rtnetlink for each
queue, which changes the weight and repeats the rest as the kernel shows it."""

from __future__ import annotations

import os
import socket
import struct
from typing import Iterator, NamedTuple

from lowq_common.errors import Refused
from lowq_common.system import Namespace

# linux/netlink.h, linux/rtnetlink.h, linux/pkt_sched.h
NLMSG_ERROR, NLMSG_DONE, RTM_NEWQDISC, RTM_GETQDISC = 2, 3, 36, 38
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
TCA_KIND, TCA_OPTIONS = 1, 2
PARMS, STAB = 1, 2  # of TCA_RED_ and of TCA_GRED_
TCA_RED_MAX_P, TCA_RED_FLAGS, TCA_GRED_MAX_P = 3, 4, 4
MAX_DPS = 16
HEADER = struct.Struct("=IHHII")
TCMSG = struct.Struct("=BxxxiIII")  # family, index, handle, parent, info
RED = struct.Struct("=IIIBBBB")  # limit, min, max, Wlog, Plog, Scell_log, flags
GRED = struct.Struct("=10I4B2I")  # limit, min, max, DP, six counters, Wlog, Plog, Scell_log, prio, two counters
# How an average shrinks while the queue is idle, as shifts: it is 0 at once
FORGET = bytes([31]) * 256


class Qdisc(NamedTuple):
    kind: str
    handle: int
    parent: int
    options: bytes


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


class Route:
    """A socket of rtnetlink in a namespace"""

    def __init__(self, space: Namespace) -> None:
        with space.entered():
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.settimeout(10)

    def ask(self, kind: int, flags: int, body: bytes) -> Iterator[tuple[int, bytes]]:
        """-> kind and content of each message of the answer. OSError if the kernel refuses."""
        self.socket.send(HEADER.pack(HEADER.size + len(body), kind, flags | NLM_F_REQUEST, 1, 0) + body)
        while True:
            data = self.socket.recv(1 << 18)
            while len(data) >= HEADER.size:
                length, answer = HEADER.unpack_from(data)[:2]
                content, data = data[HEADER.size:length], data[(length + 3) & ~3:]
                if answer == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", content)[0]
                    if number:
                        raise OSError(number, os.strerror(number))
                    return
                if answer == NLMSG_DONE:
                    return
                yield answer, content

    def qdiscs(self, ifindex: int) -> list[Qdisc]:
        found = []
        for kind, content in self.ask(RTM_GETQDISC, NLM_F_DUMP, TCMSG.pack(0, ifindex, 0, 0, 0)):
            _, index, handle, parent, _ = TCMSG.unpack_from(content)
            if kind == RTM_NEWQDISC and index == ifindex:
                shown = attributes(content[TCMSG.size:])
                name = shown.get(TCA_KIND, b"").rstrip(b"\0").decode("ascii", "replace")
                found.append(Qdisc(name, handle, parent, shown.get(TCA_OPTIONS, b"")))
        return found

    def change(self, ifindex: int, qdisc: Qdisc, options: bytes) -> None:
        body = TCMSG.pack(0, ifindex, qdisc.handle, qdisc.parent, 0)
        body += attribute(TCA_KIND, qdisc.kind.encode() + b"\0") + attribute(TCA_OPTIONS, options)
        for _ in self.ask(RTM_NEWQDISC, NLM_F_ACK, body):
            pass


def red_options(shown: bytes) -> list[bytes]:
    """Of a red as the kernel shows it: the same with weight 1"""
    was = attributes(shown)
    limit, low, high, _, p, cell, flags = RED.unpack_from(was[PARMS])
    if TCA_RED_FLAGS in was:
        flags = 0  # the kernel takes flags here or there, not both
    made = attribute(PARMS, RED.pack(limit, low, high, 0, p, cell, flags)) + attribute(STAB, FORGET)
    for kind in (TCA_RED_MAX_P, TCA_RED_FLAGS):
        if kind in was:
            made += attribute(kind, was[kind])
    return [made]


def gred_options(shown: bytes) -> list[bytes]:
    """The same of a gred, for each of its virtual queues"""
    was, made = attributes(shown), []
    for at in range(min(MAX_DPS, len(was.get(PARMS, b"")) // GRED.size)):
        one = list(GRED.unpack_from(was[PARMS], at * GRED.size))
        if one[3] >= MAX_DPS:
            continue  # there is none of this number
        one[10] = 0
        words = attribute(PARMS, GRED.pack(*one)) + attribute(STAB, FORGET)
        if TCA_GRED_MAX_P in was:
            words += attribute(TCA_GRED_MAX_P, was[TCA_GRED_MAX_P][4 * at:4 * at + 4])
        made.append(words)
    return made


OPTIONS = {"red": red_options, "gred": gred_options}


def exact(space: Namespace, device: str, root: str, anywhere: bool = False, dry: bool = False) -> int:
    """Gives each red and gred of a device whose root (or any of its queues) has this handle a weight of 1. -> how
    many"""
    index = {name: number for number, name in space.names().items()}.get(device)
    if index is None:
        raise Refused(f"no device '{device}'{space.suffix}")
    route = Route(space)
    with route.socket:
        found = route.qdiscs(index)
        if not any((anywhere or one.parent == 0xFFFFFFFF) and one.handle == int(root, 16) << 16 for one in found):
            raise Refused(f"{device} has no queue {root}:" if anywhere else f"{device} has no queue of lowq-tc")
        count = 0
        for one in found:
            for options in OPTIONS[one.kind](one.options) if one.kind in OPTIONS else ():
                if not dry:
                    route.change(index, one, options)
                count += 1
    return count
