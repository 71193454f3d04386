#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""cnp.py - RoCEv2 packets for tests: checks those in a capture, sends forged ones

    cnp.py check FILE           a line per RoCEv2 packet of a pcap: time source
                                destination tos opcode qp length icrc(ok|bad|cut)
                                and the BTH and what follows as hex, for CNPs
    cnp.py send OPTIONS         sends CNPs (or packets of --opcode), valid or not, from
                                any address

The ICRC is computed here from the specification (zlib's CRC-32 over eight bytes of
ones and the packet, with the fields that routers change set to ones) and shares no code
with the module."""
import argparse
import random
import socket
import struct
import sys
import time
import zlib
from collections.abc import Iterator

from headers import checksum


def icrc(packet: bytes) -> bytes:
    """The ICRC of a packet, given from its IP header up to where the ICRC begins."""
    p = bytearray(packet)
    if p[0] >> 4 == 4:
        ip = 20
        for i in (1, 8, 10, 11):
            p[i] = 0xff
    else:
        ip = 40
        p[0] |= 0x0f
        for i in (1, 2, 3, 7):
            p[i] = 0xff
    p[ip + 6] = p[ip + 7] = 0xff        # UDP checksum
    p[ip + 8 + 4] = 0xff                # FECN, BECN
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(p)))


def frames(path: str) -> Iterator[tuple[str, bytes, bool]]:
    """Of each frame: time, bytes from the IP header on, and whether it is complete."""
    with open(path, 'rb') as f:
        head = f.read(24)
        if struct.unpack('<I', head[:4])[0] != 0xa1b23c4d:
            sys.exit('cnp.py: not a pcap with nanoseconds')
        while True:
            record = f.read(16)
            if len(record) < 16:
                return
            sec, nsec, have, length = struct.unpack('<IIII', record)
            data = f.read(have)
            if data[12:14] in (b'\x08\x00', b'\x86\xdd'):
                yield '%d.%09d' % (sec, nsec), data[14:], have == length


def check(path: str) -> None:
    """Prints a line per RoCEv2 packet."""
    for when, p, whole in frames(path):
        v4 = p[0] >> 4 == 4
        ip = 20 if v4 else 40
        if p[9 if v4 else 6] != 17 or p[ip + 2:ip + 4] != struct.pack('>H', 4791):
            continue
        length = struct.unpack('>H', p[ip + 4:ip + 6])[0]
        end = ip + length
        if v4:
            tos, src, dst = p[1], p[12:16], p[16:20]
        else:
            tos, src, dst = (p[0] & 15) << 4 | p[1] >> 4, p[8:24], p[24:40]
        family = socket.AF_INET if v4 else socket.AF_INET6
        verdict = 'cut'
        if whole:
            verdict = 'ok' if icrc(p[:end - 4]) == p[end - 4:end] else 'bad'
        opcode = p[ip + 8]
        print(when, socket.inet_ntop(family, src), socket.inet_ntop(family, dst), tos, opcode,
              int.from_bytes(p[ip + 13:ip + 16], 'big'), length, verdict,
              p[ip + 8:end - 4].hex() if opcode == 0x81 else '-')


def forged(a: argparse.Namespace, qp: int, rng: random.Random) -> bytes:
    """An IP packet for queue pair qp. UD's source queue pair is a.source_qp, or also qp."""
    becn = 0x40000000 if a.opcode == 0x81 else 0
    body = bytearray(struct.pack('>BBHII', a.opcode, a.tver, 0xffff, becn | qp, 0))
    source = 0
    if a.opcode >> 5 == 3:
        source = number(a.source_qp, rng) if a.source_qp else qp
    body += struct.pack('>IIQ', 0, source, 0)
    if a.length is not None:
        body = (body + bytes(2000))[:a.length]
    if a.random:
        body = bytearray(rng.randbytes(rng.randrange(0, 60)))
        if body:
            body[0] = a.opcode
    udp = struct.pack('>HHHH', 49152, 4791, 8 + len(body) + 4, 0)
    src, dst = (socket.inet_pton(a.family, x) for x in (a.src, a.dst))
    if a.family == socket.AF_INET:
        ip = struct.pack('>BBHHHBBH', 0x45, a.tos, 20 + len(udp) + len(body) + 4, 0, 0x4000, 64, 17, 0)
        ip += src + dst
        ip = ip[:10] + struct.pack('>H', checksum(ip)) + ip[12:]
    else:
        ip = struct.pack('>IHBB', 0x60000000 | a.tos << 20, len(udp) + len(body) + 4, 17, 64) + src + dst
    crc = icrc(ip + udp + bytes(body) + bytes(12)[:max(0, 12 - len(body))])
    if a.icrc == 'bad':
        crc = bytes(b ^ 0x55 for b in crc)
    datagram = udp + bytes(body) + crc
    if a.checksum != 'none':
        pseudo = src + dst + struct.pack('>II', len(datagram), socket.IPPROTO_UDP)
        check = checksum(pseudo + datagram + bytes(len(datagram) % 2))
        if a.checksum == 'bad':
            check ^= 0x5555
        datagram = datagram[:6] + struct.pack('>H', check or 0xffff) + datagram[8:]
    return ip + datagram


def fragments(packet: bytes, ident: int) -> list[bytes]:
    """An IPv4 packet in two fragments, the first with 24 bytes of payload."""
    parts = []
    for start, end, flags in ((20, 44, 0x2000), (44, len(packet), 3)):
        ip = bytearray(packet[:20])
        ip[2:4] = struct.pack('>H', 20 + end - start)
        ip[4:8] = struct.pack('>HH', ident & 0xffff, flags)
        ip[10:12] = bytes(2)
        ip[10:12] = struct.pack('>H', checksum(bytes(ip)))
        parts.append(bytes(ip) + packet[start:end])
    return parts


def number(text: str, rng: random.Random) -> int:
    """N, or a random number of N-M."""
    first, _, last = text.partition('-')
    return rng.randint(int(first), int(last or first))


def send(a: argparse.Namespace) -> None:
    """Sends a.count frames at a.rate."""
    a.family = socket.AF_INET6 if ':' in a.dst else socket.AF_INET
    rng = random.Random(a.seed)
    mac = [bytes.fromhex(x.replace(':', '')) for x in (a.to_mac, a.from_mac)]
    kind = b'\x08\x00' if a.family == socket.AF_INET else b'\x86\xdd'
    tags = [struct.pack('>HH', 0x8100 if i + 1 == len(a.vlan) else 0x88a8, vlan)
            for i, vlan in enumerate(a.vlan)]
    head = mac[0] + mac[1] + b''.join(tags) + kind
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((a.dev, 0))
    batch = max(1, a.rate // 1000)
    for i in range(a.count):
        packet = forged(a, number(a.qp, rng), rng)
        for part in fragments(packet, i) if a.fragment else [packet]:
            s.send(head + part[:a.truncate])
        if (i + 1) % batch == 0:
            time.sleep(batch / a.rate)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(usage=__doc__)
    sub = parser.add_subparsers(dest='what', required=True)
    sub.add_parser('check').add_argument('file')
    p = sub.add_parser('send')
    p.add_argument('--dev', default='eth0')
    p.add_argument('--src', required=True)
    p.add_argument('--dst', required=True)
    p.add_argument('--from-mac', required=True)
    p.add_argument('--to-mac', required=True)
    p.add_argument('--qp', required=True, help='N or N-M')
    p.add_argument('--count', type=int, default=1)
    p.add_argument('--rate', type=int, default=1000, help='per second')
    p.add_argument('--icrc', choices=('good', 'bad'), default='good')
    p.add_argument('--checksum', choices=('none', 'good', 'bad'), default='none', help="UDP's")
    p.add_argument('--opcode', type=lambda x: int(x, 0), default=0x81)
    p.add_argument('--tos', type=lambda x: int(x, 0), default=0xc1)
    p.add_argument('--tver', type=int, default=0)
    p.add_argument('--length', type=int, help='bytes from the BTH on, without the ICRC; 28 is valid')
    p.add_argument('--source-qp', help="N or N-M: UD's source queue pair")
    p.add_argument('--vlan', type=int, action='append', default=[], help='a tag; twice is QinQ')
    p.add_argument('--fragment', action='store_true', help='IPv4: in two fragments')
    p.add_argument('--truncate', type=int, help='only so many bytes from the IP header on')
    p.add_argument('--random', action='store_true', help='random bytes after the opcode')
    p.add_argument('--seed', type=int, default=1)
    a = parser.parse_args()
    if a.what == 'check':
        check(a.file)
    else:
        send(a)


main()
