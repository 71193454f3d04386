# SPDX-License-Identifier: GPL-2.0
"""The headers of a capture's packets, in tshark's words: TCP, UDP, RoCEv2, ESP and HPCC++'s messages, over
IPv4 and IPv6 over Ethernet, beside ARP and neighbour discovery. Of other captures tshark has to say what is in
them."""
from __future__ import annotations

import functools
import socket
import struct
from collections.abc import Callable, Iterator

NANOSECONDS, ETHERNET = 0xA1B23C4D, 1
HOP_BY_HOP, TCP, UDP, ESP, ICMPV6 = 0, 6, 17, 50, 58
ROCE = 4791
TUNNELS = 4789, 6081    # of VXLAN and Geneve
NEIGHBOURS = 133, 134, 135, 136, 143    # ICMPv6 that quotes no packet: neighbour discovery, MLDv2's reports
SYN, PSH, ACK = 0x02, 0x08, 0x10
SACK = 5
INT_MAGIC, INT_HEAD, INT_HOP, INT_ROOM = b"INT1", 20, 8, 14     # include/int_wire.h defines the messages
INT_MBPS = (0, 10, 100, 1000, 2500, 5000, 10000, 20000, 25000, 40000, 50000, 100000, 200000, 400000, 800000, 1600000)

Plain = int | float | str


class NotPlain(Exception):
    """tshark has to read this capture."""


class Packet:
    """One packet. Its fields are read when somebody asks for them."""

    def __init__(self, number: int, times: tuple[int, int], length: int, data: bytes) -> None:
        self.number, self.length, self.data = number, length, data
        self.epoch, self.since = times                  # ns: when, and after the first packet
        self.tcp: tuple[int, ...] = ()                  # ports, sequence number, ACK, flags
        self.ports: tuple[int, ...] = ()                # UDP's
        self.relative: tuple[int, ...] = ()             # TCP's sequence number, ACK, SACK's left edges
        kind = data[12:14]
        if kind == b"\x08\x00" and len(data) >= 34:
            self.version, self.ip, protocol = 4, "ip", data[23]
            self.at = 14 + 4 * (data[14] & 15)          # of what is behind the IP header
            self.rest = (data[16] << 8 | data[17]) - self.at + 14       # its bytes
            if data[20] & 0x3F | data[21]:              # a fragment
                raise NotPlain
        elif kind == b"\x86\xdd" and len(data) >= 54:
            self.version, self.ip, protocol = 6, "ipv6", data[20]
            self.at, self.rest = 54, data[18] << 8 | data[19]
        elif kind == b"\x08\x06":
            self.version, self.ip, self.protocol = 0, "", "arp"
            return
        else:
            raise NotPlain
        at, room = self.at, min(self.rest, len(data) - self.at)
        if protocol == TCP and room >= 20:
            self.protocol = "tcp"
            self.tcp = struct.unpack_from("!HHIIH", data, at)
            self.header = 4 * (self.tcp[4] >> 12)
            if not 20 <= self.header <= room:
                raise NotPlain
        elif protocol == UDP and room >= 8:
            self.protocol = "udp"
            self.ports = struct.unpack_from("!HH", data, at)
            if self.ports[0] == ROCE or set(TUNNELS) & set(self.ports) or self.ports[1] == ROCE and room < 8 + 12:
                raise NotPlain
        elif protocol == ESP and room >= 8:
            self.protocol = "esp"
        elif kind == b"\x86\xdd" and room >= 9 and (
                protocol == ICMPV6 and data[at] in NEIGHBOURS or
                protocol == HOP_BY_HOP and data[at] == ICMPV6 and not data[at + 1] and data[at + 8] in NEIGHBOURS):
            self.protocol = "icmpv6"
        else:
            raise NotPlain

    def has(self, protocol: str) -> bool:
        """Whether it has this protocol's header"""
        return protocol in (self.ip, self.protocol)

    def addresses(self) -> tuple[bytes, bytes]:
        """Source and destination"""
        if self.version == 4:
            return self.data[26:30], self.data[30:34]
        return self.data[22:38], self.data[38:54]

    def options(self) -> Iterator[bytes]:
        """TCP's"""
        rest = self.data[self.at + 20:self.at + self.header]
        while rest:
            size = 1 if rest[0] < 2 else rest[1] if len(rest) > 1 else 0
            if not 0 < size <= len(rest):
                raise NotPlain
            yield rest[:size]
            rest = rest[size:] if rest[0] else b""

    def message(self) -> bytes:
        """HPCC++'s, or nothing"""
        if not self.tcp or self.tcp[4] & 0xFFF != PSH:
            return b""
        size, start = self.rest - self.header, self.at + self.header
        data = self.data[start:start + size]
        if len(data) < size:
            raise NotPlain
        if size < INT_HEAD + 8 or data[:4] != INT_MAGIC:
            return b""
        return data if data[5] <= INT_ROOM and size == INT_HEAD + 8 + INT_HOP * data[5] else b""

    def hops(self, read: Callable[[int, int], int]) -> tuple[int, ...]:
        """What each record of a message says"""
        data = self.message()
        if not data:
            return ()
        number = min(data[INT_HEAD] >> 4, data[5])
        return tuple(read(*struct.unpack_from("!II", data, INT_HEAD + 4 + INT_HOP * i)) for i in range(number))


def packets(path: str, used: set[str]) -> Iterator[Packet]:
    """Those of a capture of which these fields are used. NotPlain: not of this capture"""
    sequence = Sequence() if used & {"tcp.seq", "tcp.ack", "tcp.options.sack_le"} else None
    with open(path, "rb", buffering=1 << 18) as file:
        head = file.read(24)
        if len(head) < 24 or struct.unpack_from("=I", head)[0] != NANOSECONDS or \
                struct.unpack_from("=I", head, 20)[0] != ETHERNET:
            raise NotPlain
        number, first = 0, 0
        while len(head := file.read(16)) == 16:
            seconds, ns, kept, length = struct.unpack("=IIII", head)
            number, now = number + 1, seconds * 10**9 + ns
            first = first or now
            packet = Packet(number, (now, now - first), length, file.read(kept))
            if sequence and packet.tcp:
                packet.relative = sequence.numbers(packet)
            yield packet


def frames(path: str) -> Iterator[tuple[int, bytes]]:
    """Of a capture's packets, whatever they are, the length and the bytes that were kept"""
    with open(path, "rb") as file:
        file.read(24)
        while len(head := file.read(16)) == 16:
            kept, length = struct.unpack("=IIII", head)[2:]
            yield length, file.read(kept)


def checksum(data: bytes) -> int:
    """RFC 1071, of an even number of bytes"""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Sequence:
    """Where the sequence numbers of connections start"""

    def __init__(self) -> None:
        self.first: dict[tuple[bytes, int, bytes, int], int] = {}

    def relative(self, way: tuple[bytes, int, bytes, int], number: int, start: int) -> int:
        """From start on, unless the connection has an earlier one"""
        return (number - self.first.setdefault(way, start)) & 0xFFFFFFFF

    def numbers(self, packet: Packet) -> tuple[int, ...]:
        """Of a packet: sequence number, ACK, left edges of SACK's blocks"""
        source, to, seq, ack, flags = packet.tcp
        one, other = packet.addresses()
        way, back = (one, source, other, to), (other, to, one, source)
        if flags & SYN and self.first.get(way, seq) != seq:
            raise NotPlain      # the ports of an earlier connection
        seq = self.relative(way, seq, seq if flags & SYN else seq - 1)
        if flags & ACK:
            ack = self.relative(back, ack, ack - 1)
        edges = [self.relative(back, edge, edge) for option in packet.options() if option[0] == SACK
                 for edge in struct.unpack(f"!{(len(option) - 2) // 4}I", option[2:])[::2]]
        return seq, ack, *edges


@functools.cache
def address(packed: bytes) -> str:
    """As tshark prints it"""
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


Read = Callable[[Packet], tuple[Plain, ...]]


def ip4(read: Callable[[Packet], Plain]) -> Read:
    """A field of IPv4"""
    return lambda p: (read(p),) if p.version == 4 else ()


def ip6(read: Callable[[Packet], Plain]) -> Read:
    """A field of IPv6"""
    return lambda p: (read(p),) if p.version == 6 else ()


def tcp(read: Callable[[Packet], Plain]) -> Read:
    """A field of TCP"""
    return lambda p: (read(p),) if p.tcp else ()


def flag(bit: int) -> Read:
    """One of TCP's flags"""
    return lambda p: (int(bool(p.tcp[4] & bit)),) if p.tcp else ()


def flag_of_syn(bit: int) -> Read:
    """A flag that tshark shows as part of a counter once Accurate ECN is negotiated"""
    def values(packet: Packet) -> tuple[Plain, ...]:
        if packet.tcp and not packet.tcp[4] & SYN:
            raise NotPlain
        return flag(bit)(packet)
    return values


def bth(start: int, end: int) -> Read:
    """Bytes of RoCE's base transport header"""
    return lambda p: (int.from_bytes(p.data[p.at + 8 + start:p.at + 8 + end], "big"),) if ROCE in p.ports else ()


def message(read: Callable[[bytes], int]) -> Read:
    """A field of HPCC++'s messages"""
    def values(packet: Packet) -> tuple[int, ...]:
        data = packet.message()
        return (read(data),) if data else ()
    return values


def traffic_class(packet: Packet) -> int:
    """IPv6's"""
    return (packet.data[14] & 15) << 4 | packet.data[15] >> 4


FIELDS: dict[str, Read] = {
    "frame.number": lambda p: (p.number,),
    "frame.time_epoch": lambda p: (p.epoch / 1e9,),
    "frame.time_relative": lambda p: (p.since / 1e9,),
    "frame.len": lambda p: (p.length,),
    "eth.src": lambda p: (p.data[6:12].hex(":"),),
    "ip.version": lambda p: (p.version,) if p.version else (),
    "ip.src": ip4(lambda p: address(p.data[26:30])),
    "ip.dst": ip4(lambda p: address(p.data[30:34])),
    "ip.len": ip4(lambda p: p.data[16] << 8 | p.data[17]),
    "ip.flags.df": ip4(lambda p: p.data[20] >> 6 & 1),
    "ip.dsfield.ecn": ip4(lambda p: p.data[15] & 3),
    "ip.dsfield.dscp": ip4(lambda p: p.data[15] >> 2),
    "ipv6.src": ip6(lambda p: address(p.data[22:38])),
    "ipv6.dst": ip6(lambda p: address(p.data[38:54])),
    "ipv6.tclass.ecn": ip6(lambda p: traffic_class(p) & 3),
    "ipv6.tclass.dscp": ip6(lambda p: traffic_class(p) >> 2),
    "ipv6.flow": ip6(lambda p: int.from_bytes(p.data[15:18], "big") & 0xFFFFF),
    "tcp.srcport": tcp(lambda p: p.tcp[0]),
    "tcp.dstport": tcp(lambda p: p.tcp[1]),
    "tcp.seq": lambda p: p.relative[:1],
    "tcp.ack": lambda p: p.relative[1:2],
    "tcp.options.sack_le": lambda p: p.relative[2:],
    "tcp.len": tcp(lambda p: p.rest - p.header),
    "tcp.hdr_len": tcp(lambda p: p.header),
    "tcp.option_kind": lambda p: tuple(option[0] for option in p.options()) if p.tcp else (),
    "tcp.flags": tcp(lambda p: p.tcp[4] & 0xFFF),
    "tcp.flags.fin": flag(0x01),
    "tcp.flags.syn": flag(SYN),
    "tcp.flags.reset": flag(0x04),
    "tcp.flags.ack": flag(ACK),
    "tcp.flags.ece": flag_of_syn(0x40),
    "tcp.flags.ae": flag_of_syn(0x100),
    "udp.srcport": lambda p: p.ports[:1],
    "udp.port": lambda p: p.ports,
    "infiniband.bth.opcode": bth(0, 1),
    "infiniband.bth.p_key": bth(2, 4),
    "infiniband.bth.destqp": bth(5, 8),
    "infiniband.bth.psn": bth(9, 12),
    "int.type": message(lambda m: m[4]),
    "int.room": message(lambda m: m[5]),
    "int.id": message(lambda m: int.from_bytes(m[8:12], "big")),
    "int.nhop": message(lambda m: m[INT_HEAD] >> 4),
    "int.path_id": message(lambda m: int.from_bytes(m[INT_HEAD:INT_HEAD + 2], "big") & 0xFFF),
    "int.options": message(lambda m: int.from_bytes(m[-4:-1], "big")),
    "int.hop.mbps": lambda p: p.hops(lambda a, b: INT_MBPS[a >> 28]),
    "int.hop.ts": lambda p: p.hops(lambda a, b: a >> 4 & 0xFFFFFF),
    "int.hop.tx": lambda p: p.hops(lambda a, b: (a & 15) << 16 | b >> 16),
    "int.hop.qlen": lambda p: p.hops(lambda a, b: b & 0xFFFF),
}
DIGITS = {"ipv6.flow": 6, "tcp.flags": 4, "infiniband.bth.destqp": 6, "int.path_id": 4}    # of what is hexadecimal


def text(packet: Packet, name: str) -> str:
    """A field's values as tshark prints them"""
    if name.startswith("frame.time_"):
        ns = packet.epoch if name == "frame.time_epoch" else packet.since
        return f"{ns // 10**9}.{ns % 10**9:09}"
    values = FIELDS[name](packet)
    if name in DIGITS:
        return ",".join(f"0x{value:0{DIGITS[name]}x}" for value in values)
    return ",".join(map(str, values))
