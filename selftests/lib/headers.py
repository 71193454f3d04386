# SPDX-License-Identifier: GPL-2.0
"""The headers of a capture's packets, in tshark's words, if all are plain TCP or UDP over Ethernet."""
from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

FIELDS = (
    "frame.number", "frame.time_epoch", "frame.time_relative", "frame.len", "ip.version", "ip.src", "ip.dst",
    "ip.dsfield.ecn", "ip.dsfield.dscp", "ipv6.src", "ipv6.dst", "ipv6.tclass.ecn", "ipv6.tclass.dscp", "ipv6.flow",
    "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.len", "tcp.ack", "tcp.flags", "tcp.flags.syn", "tcp.flags.fin",
    "tcp.flags.reset", "tcp.flags.ack", "tcp.options.sack_le", "udp.srcport",
)
NANOSECONDS, ETHERNET = 0xA1B23C4D, 1
IPV4, IPV6, TCP, UDP = 0x0800, 0x86DD, 6, 17
ROCE = 4791
FLAGS = {"syn": 0x02, "fin": 0x01, "reset": 0x04, "ack": 0x10}


class NotPlain(Exception):
    """tshark has to read this capture."""


def packets(path: str) -> Iterator[dict[str, str]]:
    """Field -> text of each packet. NotPlain: not of this capture"""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 24 or struct.unpack_from("=I", data)[0] != NANOSECONDS or \
            struct.unpack_from("=I", data, 20)[0] != ETHERNET:
        raise NotPlain
    at, number, first, bases = 24, 0, 0, Bases()
    while at + 16 <= len(data):
        seconds, ns, kept, length = struct.unpack_from("=IIII", data, at)
        number, now = number + 1, seconds * 10**9 + ns
        first = first or now
        packet = {
            "frame.number": str(number), "frame.time_epoch": f"{seconds}.{ns:09}", "frame.len": str(length),
            "frame.time_relative": f"{(now - first) // 10**9}.{(now - first) % 10**9:09}",
        }
        network(packet, data[at + 16:at + 16 + kept], bases)
        yield packet
        at += 16 + kept


def network(packet: dict[str, str], frame: bytes, bases: Bases) -> None:
    """Adds the fields of the IP header, and those of what is in it"""
    kind = struct.unpack_from("!H", frame, 12)[0] if len(frame) >= 14 else 0
    if kind == IPV4 and len(frame) >= 34:
        tos, total, fragment, protocol = struct.unpack_from("!xBHxxHxB", frame, 14)
        size, ip = 4 * (frame[14] & 15), "ip"
        length = total - size
        ends = [socket.inet_ntop(socket.AF_INET, frame[at:at + 4]) for at in (26, 30)]
        if fragment & 0x3FFF:
            raise NotPlain
        packet["ip.dsfield.ecn"], packet["ip.dsfield.dscp"] = str(tos & 3), str(tos >> 2)
    elif kind == IPV6 and len(frame) >= 54:
        word, length, protocol = struct.unpack_from("!IHB", frame, 14)
        size, ip = 40, "ipv6"
        ends = [socket.inet_ntop(socket.AF_INET6, frame[at:at + 16]) for at in (22, 38)]
        packet["ipv6.tclass.ecn"], packet["ipv6.tclass.dscp"] = str(word >> 20 & 3), str(word >> 22 & 63)
        packet["ipv6.flow"] = f"0x{word & 0xFFFFF:06x}"
    else:
        raise NotPlain
    packet["ip.version"] = "4" if ip == "ip" else "6"
    packet[f"{ip}.src"], packet[f"{ip}.dst"] = ends
    rest = frame[14 + size:]
    if protocol == TCP and len(rest) >= 20 and length >= 20:
        packet["frame.protocols"] = f"{ip}:tcp"
        tcp(packet, rest, length, ends, bases)
    elif protocol == UDP and len(rest) >= 8:
        ports = struct.unpack_from("!HH", rest)
        if ROCE in ports:
            raise NotPlain
        packet["frame.protocols"] = f"{ip}:udp"
        packet["udp.srcport"] = str(ports[0])
    else:
        raise NotPlain


class Bases:
    """Where the sequence numbers of connections start"""

    def __init__(self) -> None:
        self.first: dict[tuple[str, int, str, int], int] = {}

    def relative(self, way: tuple[str, int, str, int], number: int, start: int) -> int:
        """From start on, unless the connection has an earlier one"""
        return (number - self.first.setdefault(way, start)) & 0xFFFFFFFF


def tcp(packet: dict[str, str], header: bytes, length: int, ends: list[str], bases: Bases) -> None:
    """Adds TCP's fields"""
    source, to, seq, ack, flags = struct.unpack_from("!HHIIH", header)
    size = 4 * (flags >> 12)
    way, back = (ends[0], source, ends[1], to), (ends[1], to, ends[0], source)
    if size < 20 or min(length, len(header)) < size:
        raise NotPlain
    if flags & FLAGS["syn"] and bases.first.get(way, seq) != seq:
        raise NotPlain      # the ports of an earlier connection
    packet["tcp.srcport"], packet["tcp.dstport"] = str(source), str(to)
    packet["tcp.seq"] = str(bases.relative(way, seq, seq if flags & FLAGS["syn"] else seq - 1))
    packet["tcp.ack"] = str(bases.relative(back, ack, ack - 1) if flags & FLAGS["ack"] else ack)
    packet["tcp.len"] = str(length - size)
    packet["tcp.flags"] = f"0x{flags & 0xFFF:04x}"
    for name, bit in FLAGS.items():
        packet[f"tcp.flags.{name}"] = str(int(bool(flags & bit)))
    edges = [bases.relative(back, edge, edge) for edge in left_edges(header[20:size])]
    packet["tcp.options.sack_le"] = ",".join(map(str, edges))


def left_edges(options: bytes) -> Iterator[int]:
    """Of the blocks of a SACK option"""
    while len(options) >= 2 and options[0]:
        step = 1 if options[0] == 1 else options[1]
        if not 0 < step <= len(options):
            return
        if options[0] == 5:
            yield from struct.unpack(f"!{(step - 2) // 4}I", options[2:step])[::2]
        options = options[step:]
