#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""scripted.py - a TCP receiver that answers as no stack does, and what each control makes of it

scripted.py SITUATION CONTROL...

The receiver is this process, behind a TUN device that it makes in its network namespace; the sender
is a socket of the namespace's stack. Each control, and Reno and CUBIC as the yardstick, sends 1 MB,
64 packets at once at most, over a path of 10 ms that drops and marks nothing. The receiver

  division    acknowledges each segment in eight pieces, from a while after a loss on: no more may be
              sent than to a receiver that acknowledges segments
  reneging    drops data that it has reported by SACK: all must arrive, no later than with the yardstick
  ace         sends random values of ACE for five round trips: the window must grow again
  options     sends AccECN options, leaves them out, sends others, of all lengths and both orders: each
              mark must be counted once
  handshake   gets a SYN with CE, and marks its SYN-ACK: the client must report that, and not send less

A line per control, and a line per fault. Exit status 1 if there are any.

Packets are packed here: Debian 12's scapy does not know AccECN's options and takes .5 ms for each packet.
"""
import argparse
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field

from headers import checksum

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000
CLIENT, SERVER, PORT = "10.9.0.1", "10.9.0.2", 5299
FIN, SYN, PSH, ACK, ECE, CWR, AE = 1, 2, 8, 16, 64, 128, 256
CE = 3
ACE_OF_SYN = 2, 3, 4, 6             # what a SYN-ACK says of the SYN's ECN field
ACCECN0, ACCECN1 = 172, 174         # options: ECT(0), CE, ECT(1) and the other way round
SYN_OPTIONS = bytes((2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 1, 1))     # MSS 1460, SACK, window scale 7
TCP_CONGESTION = 13
DELIVERED_CE, DELIVERED_CE_BYTES = 196, 260     # offsets in TCP_INFO
RTT, SERIAL = 0.01, 0.00002         # seconds; and how long a packet takes on the link
SIZE, WINDOW = 1000000, 64 * 1460
LOST = 30                           # the packet that "division" and "reneging" lose
REPAIRED = 100                      # the packet by which that is repaired
ODD = range(5, 10)                  # the round trips in which "ace" is at random
PIECES = 8
LIMIT = 30                          # seconds of one transfer
YARDSTICK = "reno", "cubic"
SHARE = {"ldcp": 0.25}              # of the yardstick's rate, where it is not 0.8: it grows by 1/4 packet per RTT


def options_end(kind: int, fields: list[int]) -> bytes:
    """An AccECN option with these counters"""
    return bytes((kind, 2 + 3 * len(fields))) + b"".join((f & 0xffffff).to_bytes(3, "big") for f in fields)


@dataclass
class Receiver:
    """The far end: what has arrived, what it has counted, and how it answers"""
    situation: str                  # "" is an ordinary one
    syn_ecn: int = 0
    third: int | None = None        # ACE of the first ACK
    accecn: bool = False
    port: int = 0
    start: float = 0                # when the handshake's last ACK came
    next: int = 0                   # the sequence number that is expected
    first: int = 0
    early: dict[int, int] = field(default_factory=dict)     # segments beyond a gap: start, end
    packets: int = 0                # with data
    sent: int = 0                   # ACKs
    loses: bool = False
    reneged: bool = False
    ce_packets: int = 0
    ce_bytes: int = 0
    ect_bytes: int = 1
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    @property
    def received(self) -> int:
        """Bytes in order"""
        return self.next - self.first

    def packet(self, flags: int, ack: int, options: bytes = b"", tos: int = 0) -> bytes:
        """An IPv4 packet to the sender"""
        options += b"\x01" * (-len(options) % 4)
        seq = 1000 if flags & SYN else 1001
        head = struct.pack("!HHIIHHHH", PORT, self.port, seq, ack & 0xffffffff,
                           (5 + len(options) // 4) << 12 | flags,
                           65535 if flags & SYN else WINDOW >> 7, 0, 0) + options
        addresses = socket.inet_aton(SERVER) + socket.inet_aton(CLIENT)
        total = checksum(addresses + struct.pack("!HH", socket.IPPROTO_TCP, len(head)) + head)
        ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(head), 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        return ip + head[:16] + struct.pack("!H", total) + head[18:]

    def syn(self, seq: int, flags: int, ecn: int) -> bytes:
        """The answer to a SYN"""
        self.syn_ecn = ecn
        self.next = self.first = seq + 1
        self.accecn = flags & (AE | CWR | ECE) == AE | CWR | ECE
        odd = self.situation == "handshake"
        ace = 0
        if self.accecn:
            ace = ACE_OF_SYN[CE if odd else ecn]
        elif flags & ECE:
            ace = 1
        return self.packet(SYN | ACK | ace << 6, self.next, SYN_OPTIONS, CE if odd else 0)

    def accecn_option(self) -> bytes:
        """The option of this ACK: for twenty ACKs each of one kind, then none, then of another"""
        ect0, ect1 = (self.ect_bytes, 1) if self.syn_ecn == 2 else (1, self.ect_bytes)
        phase = self.sent // 20 % 8
        if self.situation != "options":
            phase = 0
        if phase % 2:
            return b""
        return (options_end(ACCECN0, [ect0, self.ce_bytes, ect1]), options_end(ACCECN1, [ect1, self.ce_bytes]),
                options_end(ACCECN0, []), options_end(ACCECN1, [ect1, self.ce_bytes, ect0]))[phase // 2]

    def answer(self, ack: int, now: float) -> bytes:
        """One ACK"""
        options, ace = b"", 0
        self.sent += 1
        if self.early and not self.reneged:
            blocks = self.blocks()[-2:]
            options = bytes((1, 1, 5, 2 + 8 * len(blocks)))
            options += b"".join(struct.pack("!II", a & 0xffffffff, b & 0xffffffff) for a, b in blocks)
        if self.accecn:
            ace = 5 + self.ce_packets & 7
            if self.situation == "ace" and int((now - self.start) / RTT) in ODD:
                ace = self.chance.randrange(8)
            else:
                options += self.accecn_option()
        return self.packet(ACK | ace << 6, ack, options)

    def blocks(self) -> list[tuple[int, int]]:
        """What is beyond the gap, joined, for SACK"""
        found: list[tuple[int, int]] = []
        for start, end in sorted(self.early.items()):
            if found and found[-1][1] == start:
                found[-1] = found[-1][0], end
            else:
                found.append((start, end))
        return found

    def data(self, seq: int, length: int, now: float) -> list[bytes]:
        """The ACKs of a segment"""
        self.packets += 1
        if self.situation == "options" and self.packets % 50 == 0:
            self.ce_packets += 1
            self.ce_bytes += length
        else:
            self.ect_bytes += length
        if self.loses and self.packets == LOST:
            return []
        before = self.next
        if seq == self.next:
            self.next += length
            while self.next in self.early:
                self.next = self.early.pop(self.next)
        elif seq > self.next:
            self.early[seq] = seq + length
        if self.situation == "reneging" and not self.reneged and len(self.early) == 5:
            answers = [self.answer(self.next, now)]
            self.reneged = True
            self.early.clear()
            return answers
        if self.situation == "division" and self.packets > REPAIRED and self.next - before == length:
            return [self.answer(before + length * (i + 1) // PIECES, now) for i in range(PIECES)]
        return [self.answer(self.next, now)]

    def take(self, packet: bytes, now: float) -> list[bytes]:
        """The answers to a packet"""
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return []
        tcp = packet[(packet[0] & 15) * 4:]
        port, to, seq, _, flags = struct.unpack_from("!HHIIH", tcp)
        if to != PORT or not flags & SYN and port != self.port:
            return []
        ace = flags >> 6 & 7
        length = struct.unpack_from("!H", packet, 2)[0] - (packet[0] & 15) * 4 - (flags >> 12) * 4
        if flags & SYN:
            self.port = port
            return [self.syn(seq, flags, packet[1] & 3)]
        if self.third is None:
            self.third, self.start = ace, now
        # sequence numbers go on from 2^32
        seq += (self.next - seq + (1 << 31)) >> 32 << 32
        return self.data(seq, length, now) if length else []


@dataclass
class Outcome:
    """A transfer"""
    control: str
    receiver: Receiver
    seconds: float
    ended_with: str
    marks: int
    marked_bytes: int
    reneging: int
    timeouts: int

    def __str__(self) -> str:
        r = self.receiver
        return (f"{self.control} {r.situation or 'ordinary'}: {self.ended_with}, {self.seconds:.6f} s, "
                f"{r.packets} packets, {r.sent} ACKs, timeouts {self.timeouts}, reneging {self.reneging}, "
                f"marks {self.marks} of {r.ce_packets}, bytes {self.marked_bytes} of {r.ce_bytes}")


def counters() -> dict[str, int]:
    """TcpExt's"""
    with open("/proc/thread-self/net/netstat", encoding="ascii") as file:
        names, values = (file.readline().split()[1:] for _ in range(2))
    return dict(zip(names, map(int, values)))


def transfer(tun: int, control: str, situation: str, loses: bool) -> Outcome:
    """Send with @control to a receiver of this kind"""
    receiver = Receiver(situation, loses=loses)
    before = counters()
    waiting: list[tuple[float, int, bytes]] = []        # when it leaves, a number that keeps the order, and the ACK
    count = 0
    begin = now = free = time.monotonic()
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
        sock.connect_ex((SERVER, PORT))
        left = SIZE
        while (receiver.received < SIZE or waiting) and now < begin + LIMIT:
            wait = max(0, waiting[0][0] - now) if waiting else 1
            readable, writable, _ = select.select([tun], [sock] if left else [], [], wait)
            if writable:
                left -= sock.send(bytes(min(left, 1 << 16)))
            now = time.monotonic()
            if readable:
                free = max(now, free) + SERIAL
                for answer in receiver.take(os.read(tun, 2048), now):
                    count += 1
                    heapq.heappush(waiting, (free + RTT, count, answer))
            while waiting and waiting[0][0] <= now:
                os.write(tun, heapq.heappop(waiting)[2])
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512).ljust(512, b"\0")
        ended_with = sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    after = counters()
    return Outcome(control, receiver, now - begin, ended_with, struct.unpack_from("I", info, DELIVERED_CE)[0],
                   struct.unpack_from("I", info, DELIVERED_CE_BYTES)[0],
                   *(after[name] - before[name] for name in ("TCPSACKReneging", "TCPTimeouts")))


def faults(odd: Outcome, plain: Outcome | None, yardstick: list[Outcome]) -> list[str]:
    """What is wrong with a transfer to a receiver that is @odd; @plain is one to an ordinary receiver"""
    found = []
    r = odd.receiver
    if r.received < SIZE:
        found.append(f"{r.received} bytes arrived")
    if odd.ended_with not in (odd.control, odd.control + "_reno"):
        found.append(f"ended with {odd.ended_with}")
    if plain and r.situation == "division" and odd.seconds < 0.98 * plain.seconds:
        found.append(f"sooner than with whole ACKs, {plain.seconds:.6f} s")
    # a smaller window takes a round trip more; where in one a paced transfer ends is chance
    if plain and r.situation == "handshake" and odd.seconds > plain.seconds + 0.9 * RTT:
        found.append(f"later than without marks, {plain.seconds:.6f} s")
    if r.situation == "handshake" and r.accecn and r.third != ACE_OF_SYN[CE]:
        found.append(f"the first ACK has ACE {r.third}")
    if r.situation == "reneging" and not odd.reneging:
        found.append("no reneging was noticed")
    if r.situation == "ace" and r.accecn and not odd.marks:
        found.append("no mark was counted")
    if r.situation == "options" and (odd.marks, odd.marked_bytes) != (r.ce_packets, r.ce_bytes):
        found.append("marks were not counted once each")
    slowest = max(y.seconds for y in yardstick)
    if r.situation in ("reneging", "ace") and odd.seconds * SHARE.get(odd.control, 0.8) > slowest:
        found.append(f"the yardstick needs {slowest:.6f} s")
    return found


def main() -> int:
    """Run a situation with each control"""
    parser = argparse.ArgumentParser(prog="scripted.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situation", choices=("division", "reneging", "ace", "options", "handshake"))
    parser.add_argument("controls", nargs="+", metavar="CONTROL")
    args = parser.parse_args()
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"scripted", IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "-batch", "-"], text=True, check=True,
                   input=f"addr add {CLIENT}/24 dev scripted\nlink set scripted txqueuelen 1000 up\n")
    accecn = os.path.exists("/proc/sys/net/ipv4/tcp_ecn_option")
    with open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
        file.write("3" if accecn else "1")
    loses = args.situation in ("division", "reneging")
    yardstick: list[Outcome] = []
    bad = False
    for control in [*YARDSTICK, *args.controls]:
        plain = transfer(tun, control, "", loses) if args.situation in ("division", "handshake") else None
        odd = transfer(tun, control, args.situation, loses)
        if control in YARDSTICK:
            yardstick.append(odd)
        print(*filter(None, (plain, odd)), sep="\n")
        for fault in faults(odd, plain, yardstick):
            bad = True
            print(f"FAULT {args.situation} {control}: {fault}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
