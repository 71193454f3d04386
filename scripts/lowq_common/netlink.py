# SPDX-License-Identifier: GPL-2.0
"""A reader of rtnetlink: dumps of devices, queues, filters, rules and routes, one message at a time.

Not python3-pyroute2: importing it takes .15 s of CPU and 26 MB (0.7.2), more than most calls here."""

from __future__ import annotations

import os
import socket
import struct
from typing import Iterator

from .system import Namespace

# linux/netlink.h, linux/rtnetlink.h
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETRULE = 18, 22, 26, 34
RTM_NEWQDISC, RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER = 36, 38, 42, 46
HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
TCMSG = struct.Struct("=BxxxiIII")  # family, index, handle, parent, info
BUFFER = 1 << 16


def attribute(kind: int, data: bytes) -> bytes:
    return ATTRIBUTE.pack(len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def attributes(data: bytes, start: int = 0) -> dict[int, bytes]:
    found = {}
    end = len(data)
    while start + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(data, start)
        if not 4 <= length <= end - start:
            break
        found[kind & 0x3FFF] = data[start + 4:start + length]
        start += (length + 3) & ~3
    return found


def listed(data: bytes) -> list[tuple[int, bytes]]:
    """The attributes of a list, in which a kind may be there more than once"""
    found, start = [], 0
    while start + 4 <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, start)
        if not 4 <= length <= len(data) - start:
            break
        found.append((kind & 0x3FFF, data[start + 4:start + length]))
        start += (length + 3) & ~3
    return found


def text(data: bytes) -> str:
    return data.split(b"\0")[0].decode("utf-8", "surrogateescape")


def number(data: bytes | None, default: int = 0) -> int:
    return int.from_bytes(data, "little" if LITTLE else "big") if data else default


LITTLE = struct.pack("=H", 1) == b"\1\0"


class Netlink:
    """A socket of rtnetlink in a namespace. Ends with the "with" that it is used in."""

    def __init__(self, space: Namespace) -> None:
        with space.entered():
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self.socket.settimeout(10)
        self.buffer = bytearray(BUFFER)

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, kind: int, flags: int, body: bytes, containing: tuple[bytes, ...] = ()) -> Iterator[bytes]:
        """The content of each message of the answer. OSError if the kernel refuses. containing: messages without any of
        these may be left out, which is fast: of a million routes few are wanted."""
        self.socket.send(HEADER.pack(HEADER.size + len(body), kind, flags | NLM_F_REQUEST, 1, 0) + body)
        view = memoryview(self.buffer)
        while True:
            end = self.socket.recv_into(self.buffer)
            at = 0
            if containing and not any(self.buffer.find(part, 0, end) >= 0 for part in containing) and \
                    HEADER.unpack_from(self.buffer)[1] not in (NLMSG_ERROR, NLMSG_DONE):
                at = end
                if end >= 20 and struct.unpack_from("=IH", self.buffer, end - 20) == (20, NLMSG_DONE):
                    return
            while at + HEADER.size <= end:
                length, answer = HEADER.unpack_from(self.buffer, at)[:2]
                content = bytes(view[at + HEADER.size:at + length])
                at += (length + 3) & ~3
                if answer == NLMSG_ERROR:
                    error = -struct.unpack_from("=i", content)[0]
                    if error:
                        raise OSError(error, os.strerror(error))
                    return
                if answer == NLMSG_DONE:
                    return
                yield content
            if not flags & (NLM_F_DUMP | NLM_F_ACK):
                return

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        return self.ask(kind, NLM_F_DUMP, body)
