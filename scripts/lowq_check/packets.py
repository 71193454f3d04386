# SPDX-License-Identifier: GPL-2.0
"""Packets with chosen IP headers, sent and captured. Needs root (CAP_NET_RAW).

A test packet carries its number in TCP's window. It belongs to a connection of lowq-check, but
its sequence number is older than what was acknowledged: TCP discards it.
"""

from __future__ import annotations

import ctypes
import errno
import select
import socket
import struct
import threading
import time
from typing import NamedTuple

from lowq_common.values import Json

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << bit for bit in range(9))
FIRST, COUNT = 0x5000, 0x2000  # windows of test packets: FIRST + number
KINDS = {"syn": SYN, "syn-ecn": SYN | ECE | CWR, "syn-accecn": SYN | ECE | CWR | AE, "synack": SYN | ACK,
         "data": PSH | ACK, "ack": ACK}
PLAIN_ECN, ACCURATE_ECN = "syn-ecn", "syn-accecn"
TTL = 64
OLD = 600  # bytes below what was acknowledged
TELEMETRY = b"INT1"
# linux/if_packet.h, linux/filter.h
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6, PACKET_OUTGOING, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 3, 0x800, 0x86DD, 4, 26, 33
LDH, LDB, LDH_X, LDX_HEADER, JEQ, JSET, RETURN = 0x28, 0x30, 0x48, 0xB1, 0x15, 0x45, 0x06
PROTOCOL_AT = 0xFFFFF000
SNAP = 256


class Way(NamedTuple):
    """A connection as its packets see it"""

    family: socket.AddressFamily
    source: str
    target: str
    sport: int
    dport: int


def plain(address: str) -> str:
    return address.removeprefix("::ffff:").partition("%")[0]


def way_of(sock: socket.socket) -> Way:
    here, there = sock.getsockname(), sock.getpeername()
    source, target = plain(here[0]), plain(there[0])
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    return Way(family, source, target, here[1], there[1])


def ttl_of(sock: socket.socket, family: int) -> int:
    """With which this end's packets start"""
    if family == socket.AF_INET6:
        return sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS)
    return sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL)


# --- making -------------------------------------------------------------------------


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_header(way: Way, protocol: int, length: int, tos: int, ttl: int) -> bytes:
    source, target = (socket.inet_pton(way.family, one) for one in (way.source, way.target))
    if way.family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, length, protocol, ttl) + source + target
    return struct.pack("!BBHHHBBH", 0x45, tos, 20 + length, 0, 0x4000, ttl, protocol, 0) + source + target


def segment(way: Way, seq: int, ack: int, flags: int, window: int, payload: bytes, tos: int, ttl: int = TTL) -> bytes:
    """A TCP segment with its IP header"""
    head = struct.pack("!HHIIHHHH", way.sport, way.dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
                       5 << 12 | flags, window, 0, 0)
    source, target = (socket.inet_pton(way.family, one) for one in (way.source, way.target))
    pseudo = source + target + struct.pack("!II", len(head) + len(payload), socket.IPPROTO_TCP)
    check = checksum(pseudo + head + payload)
    head = head[:16] + struct.pack("!H", check) + head[18:]
    return ip_header(way, socket.IPPROTO_TCP, len(head) + len(payload), tos, ttl) + head + payload


class Sender:
    """Sends packets as they are"""

    def __init__(self) -> None:
        self.sockets: dict[int, socket.socket] = {}
        self.device = ""

    def send(self, way: Way, packet: bytes) -> None:
        raw = self.sockets.get(way.family)
        if raw is None:
            raw = self.sockets[way.family] = socket.socket(way.family, socket.SOCK_RAW, socket.IPPROTO_RAW)
            if self.device:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.device.encode())
        try:
            raw.sendto(packet, (way.target, 0))
        except OSError as error:
            if error.errno not in (errno.EMSGSIZE, errno.ENOBUFS, errno.EPERM):
                raise

    def close(self) -> None:
        for raw in self.sockets.values():
            raw.close()


# --- the connection's own numbers -----------------------------------------------------

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21
REPAIR_ON, REPAIR_OFF = 1, -1  # off without a window probe
RECEIVE_QUEUE, SEND_QUEUE = 1, 2


def numbers(sock: socket.socket, data: bytes = b"") -> tuple[int, int]:
    """-> the next sequence number of each direction. data: the socket takes it for sent, but it is
    not: the caller sends it."""
    option = sock.setsockopt
    option(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_ON)
    try:
        option(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, RECEIVE_QUEUE)
        ack = sock.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ)
        option(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
        seq = sock.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ)
        if data:
            sock.send(data)
    finally:
        option(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_OFF)
        # leaving the mode clears it; the port of a listener that was killed would stay in use
        option(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return seq & 0xFFFFFFFF, ack & 0xFFFFFFFF


# --- capturing ------------------------------------------------------------------------


def port_filter(protocol: int, port: int) -> bytes:
    """A BPF program: packets of IPv4 or IPv6 of this protocol with this port"""
    yes, no = 18, 19
    program = [  # code, where to go if it is true and if not, operand
        (LDH, 0, 0, PROTOCOL_AT), (JEQ, 2, 11, ETH_P_IP),
        (LDB, 0, 0, 9), (JEQ, 4, no, protocol),
        (LDH, 0, 0, 6), (JSET, no, 6, 0x1FFF),  # not a later fragment
        (LDX_HEADER, 0, 0, 0), (LDH_X, 0, 0, 0), (JEQ, yes, 9, port), (LDH_X, 0, 0, 2), (JEQ, yes, no, port),
        (JEQ, 12, no, ETH_P_IPV6),
        (LDB, 0, 0, 6), (JEQ, 14, no, protocol),
        (LDH, 0, 0, 40), (JEQ, yes, 16, port), (LDH, 0, 0, 42), (JEQ, yes, no, port),
        (RETURN, 0, 0, SNAP), (RETURN, 0, 0, 0),
    ]
    # jumps are relative to the next instruction
    return b"".join(
        struct.pack("HBBI", code, max(0, true - at - 1), max(0, false - at - 1), operand)
        for at, (code, true, false, operand) in enumerate(program)
    )


def attach(sock: socket.socket, instructions: bytes) -> None:
    program = ctypes.create_string_buffer(instructions, len(instructions))
    count = len(instructions) // 8
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", count, ctypes.addressof(program)))


class Packet(NamedTuple):
    out: bool
    tos: int
    ttl: int
    local: int  # port
    remote: int
    flags: int
    ack: int
    window: int
    size: int  # of the payload
    payload: bytes  # its beginning


def parse(data: bytes, out: bool, port: int) -> Packet | None:
    """None: not a TCP segment with this port"""
    if len(data) < 40:
        return None
    if data[0] >> 4 == 4:
        at = (data[0] & 15) * 4
        if data[9] != socket.IPPROTO_TCP or struct.unpack_from("!H", data, 6)[0] & 0x1FFF:
            return None
        tos, ttl, end = data[1], data[8], struct.unpack_from("!H", data, 2)[0]
    elif data[0] >> 4 == 6 and data[6] == socket.IPPROTO_TCP:
        at, tos, ttl = 40, (data[0] & 15) << 4 | data[1] >> 4, data[7]
        end = 40 + struct.unpack_from("!H", data, 4)[0]
    else:
        return None
    if len(data) < at + 20:
        return None
    source, target, _, ack, bits, window = struct.unpack_from("!HHIIHH", data, at)
    if port not in (source, target):
        return None
    body = at + (bits >> 12) * 4
    local, remote = (source, target) if out else (target, source)
    return Packet(out, tos, ttl, local, remote, bits & 0x1FF, ack, window, max(0, end - body), data[body:])


def kind_of(packet: Packet) -> str:
    flags = packet.flags & ~(ECE | CWR | AE)
    if flags == PSH and packet.payload[:4] == TELEMETRY:
        return "telemetry"
    if flags & (RST | FIN):
        return "end"
    if flags & SYN:
        return "synack" if flags & ACK else "syn"
    return "data" if packet.size else "ack"


def telemetry(packet: Packet) -> Json:
    """The message of HPCC++ in a packet (int_wire.h); None if it is malformed"""
    data = packet.payload
    if len(data) < 28:
        return None
    nhop, room = data[20] >> 4, data[5]
    hops = []
    for at in range(24, min(24 + 8 * min(nhop, room), len(data) - 7), 8):
        first, second = struct.unpack_from("!II", data, at)
        hops.append([SPEEDS[first >> 28], (second & 0xFFFF) * 80])
    return {"type": data[4], "nhop": nhop, "hops": hops, "ttl": packet.ttl,
            "path": struct.unpack_from("!H", data, 20)[0] & 0xFFF}


# Mb/s
SPEEDS = (0, 10, 100, 1000, 2500, 5000, 10000, 20000, 25000, 40000, 50000, 100000, 200000, 400000, 800000, 1600000)


class Capture:
    """Counts the segments of one port by connection, direction, kind and TOS, and keeps the TOS, TTL
    and flags of each test packet that arrives"""

    MOST = 4096  # connections that it counts

    def __init__(self, port: int) -> None:
        self.port = port
        self.flows: dict[tuple[int, int], Json] = {}
        self.tests: dict[int, list[int]] = {}
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        attach(self.sock, port_filter(socket.IPPROTO_TCP, port))
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
        except OSError:
            pass  # CAP_NET_RAW without CAP_NET_ADMIN
        self.stopped = False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while not self.stopped:
            if not select.select([self.sock], [], [], 0.2)[0]:
                continue
            data, address = self.sock.recvfrom(SNAP)
            packet = parse(data, address[2] == PACKET_OUTGOING, self.port)
            if packet:
                with self.lock:
                    self.note(packet)

    def note(self, packet: Packet) -> None:
        number = packet.window - FIRST
        if 0 <= number < COUNT and packet.size in (0, TEST_SIZE):
            if not packet.out:
                self.tests[number] = [packet.tos, packet.ttl, packet.flags]
            return
        key = (packet.local, packet.remote)
        if key not in self.flows and len(self.flows) >= self.MOST:
            return
        flow = self.flows.setdefault(key, {"out": {}, "in": {}, "ttl": 0, "messages": {}})
        kind = kind_of(packet)
        kinds = flow["out" if packet.out else "in"].setdefault(kind, {})
        kinds[str(packet.tos)] = kinds.get(str(packet.tos), 0) + 1
        if not packet.out:
            flow["ttl"] = packet.ttl
            if kind == "telemetry":
                message = telemetry(packet)
                if message:
                    flow["messages"][str(message["type"])] = message

    def of(self, way: Way) -> Json:
        with self.lock:
            return self.flows.get((way.sport, way.dport), {})

    def close(self) -> None:
        self.stopped = True
        self.thread.join()
        self.sock.close()


TEST_SIZE = 24  # payload of test packets of the kind "data"


def test_packet(way: Way, kind: str, number: int, tos: int, next_numbers: tuple[int, int], ttl: int = TTL) -> bytes:
    seq, ack = next_numbers
    if kind.startswith("syn") and kind != "synack":
        seq, ack = 0x6C710000 + number, 0
    else:
        seq -= OLD
    payload = bytes(TEST_SIZE) if kind == "data" else b""
    return segment(way, seq, ack, KINDS[kind], FIRST + number, payload, tos, ttl)


# --- where on the path ------------------------------------------------------------------


class Hop(NamedTuple):
    ttl: int
    router: str
    tos: int  # of the packet as the router got it


def trace(sender: Sender, way: Way, tos: int, next_numbers: tuple[int, int], most: int, wait: float) -> list[Hop]:
    """Sends a test packet to each router up to the one at distance most; the routers answer with the
    header that has reached them"""
    six = way.family == socket.AF_INET6
    protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
    found: dict[int, Hop] = {}
    with socket.socket(way.family, socket.SOCK_RAW, protocol) as icmp:
        for ttl in range(1, most + 1):
            # the number identifies the answer: it is in the quoted TCP header's sequence number
            sender.send(way, test_packet(way, "data", 0, tos, (next_numbers[0] - 64 * ttl, next_numbers[1]), ttl))
        end = time.monotonic() + wait
        while len(found) < most and time.monotonic() < end:
            if not select.select([icmp], [], [], max(0.0, end - time.monotonic()))[0]:
                break
            data, address = icmp.recvfrom(1024)
            hop = quoted(data if six else data[(data[0] & 15) * 4:], six, way, next_numbers[0], address[0])
            if hop and 1 <= hop.ttl <= most:
                found.setdefault(hop.ttl, hop)
    return [found[ttl] for ttl in sorted(found)]


def quoted(icmp: bytes, six: bool, way: Way, seq: int, router: str) -> Hop | None:
    """An ICMP message of the kind "time exceeded" about one of our packets"""
    if len(icmp) < 8 + (48 if six else 28) or icmp[0] != (3 if six else 11):
        return None
    inner = icmp[8:]
    at = 40 if six else (inner[0] & 15) * 4
    if len(inner) < at + 8:
        return None
    sport, dport, number = struct.unpack_from("!HHI", inner, at)
    tos = (inner[0] & 15) << 4 | inner[1] >> 4 if six else inner[1]
    behind = (seq - OLD - number) & 0xFFFFFFFF
    if (sport, dport) != (way.sport, way.dport) or behind % 64:
        return None
    return Hop(behind // 64, router, tos)
