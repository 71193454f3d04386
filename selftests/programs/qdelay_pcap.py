#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""qdelay_pcap.py - writes captures with known content, for qdelay.sh

  qdelay_pcap.py [-l eth|vlan|qinq|sll|sll2|raw] [-s SNAPLEN] [-S SNAPLEN] [-u] [-g] FILE [OUT] < packets

-s cuts packets and records that in the file's header, -S cuts them silently. -u microseconds. -g pcapng.

One packet per line, time in ns:

  TIME tcp|udp|NUMBER SRC:SPORT>DST:DPORT [KEY=VALUE...]
  TIME arp

with [v6]:port for IPv6, ports 0 where the protocol has none. KEYS: len (payload), ecn (0 not, 1 ECT(1), 2 ECT(0),
3 CE), ttl, id, frag (16 bits), label, seq, ack, flags, ts, mss, fill (bytes of the payload), pad (after the packet),
ext (IPv6: a hop-by-hop header if 1).

With OUT a line has two times, before the queue and behind it: FILE and OUT get the packet. A time of - means that it
was not seen there; A>B in a value means that the queue changed it. Packets that leave have passed a router: their TTL
is 63.
"""
import argparse
import socket
import struct
import sys

BASE = 1700000000 * 10**9       # ns: time 0 of the description
LINKS = {"eth": 1, "vlan": 1, "qinq": 1, "sll": 113, "sll2": 276, "raw": 101}
TAGS = {"eth": b"", "vlan": b"\x81\0\0\x2a", "qinq": b"\x88\xa8\0\7\x81\0\0\x2a"}
KEYS = {"len": 0, "ecn": 0, "ttl": 64, "id": 0, "frag": 0, "label": 0, "seq": 0, "ack": 0, "flags": 0x10, "ts": 0,
        "mss": 0, "fill": 0, "pad": 0, "ext": 0}
TCP, UDP = 6, 17


def link(name: str, kind: int) -> bytes:
    """The header of the link"""
    if name == "raw":
        return b""
    if name == "sll2":
        return struct.pack("!H18x", kind)
    return struct.pack("!14xH", kind) if name == "sll" else b"\2" * 12 + TAGS[name] + struct.pack("!H", kind)


def endpoint(text: str) -> tuple[bytes, int]:
    """1.2.3.4:5 or [fd00::1]:5"""
    address, _, port = text.rpartition(":")
    family = socket.AF_INET6 if address[0] == "[" else socket.AF_INET
    return socket.inet_pton(family, address.strip("[]")), int(port)


def transport(protocol: int, ports: tuple[int, int], d: dict[str, int]) -> bytes:
    """The header of TCP or UDP"""
    if d["frag"] & 0x1FFF or protocol not in (TCP, UDP):
        return b""
    if protocol == UDP:
        return struct.pack("!HHHH", *ports, d["len"] + 8, d["ttl"] * 257)
    options = struct.pack("!III", 0x0101080A, d["ts"], 1) if d["ts"] else b""
    options += struct.pack("!HH", 0x0204, d["mss"]) if d["mss"] else b""
    return struct.pack("!HHIIHIH", *ports, d["seq"], d["ack"], (5 + len(options) // 4) << 12 | d["flags"], 0x12340000, 0) + options


def packet(name: str, words: list[str]) -> bytes:
    """What a line describes"""
    if words[0] == "arp":
        return link(name, 0x0806) + b"\1" * 46
    protocol = {"tcp": TCP, "udp": UDP}.get(words[0]) or int(words[0])
    (source, sport), (target, dport) = map(endpoint, words[1].split(">"))
    given = dict(word.split("=") for word in words[2:])
    if not given.keys() <= KEYS.keys():
        sys.exit(f"qdelay_pcap.py: no such key in: {' '.join(words)}")
    d = KEYS | {key: int(value, 0) for key, value in given.items()}
    head = transport(protocol, (sport, dport), d)
    size = len(head) + d["len"]
    if len(source) == 4:            # 257 times the TTL stands for a checksum
        ip = struct.pack("!BBHHHBBH", 0x45, 0xB8 | d["ecn"], size + 20, d["id"], d["frag"], d["ttl"], protocol, d["ttl"] * 257)
    else:
        ip = struct.pack("!IHBB", 6 << 28 | d["ecn"] << 20 | d["label"], size + 8 * d["ext"], 0 if d["ext"] else protocol, d["ttl"])
    ip += source + target + (struct.pack("!BBIH", protocol, 0, 0x01040000, 0) if d["ext"] else b"")
    payload = (struct.pack("<I", d["fill"]) * (d["len"] // 4 + 1))[:d["len"]]
    return link(name, 0x0800 if len(source) == 4 else 0x86DD) + ip + head + payload + b"\xee" * d["pad"]


def write(path: str, packets: list[tuple[int, bytes]], args: argparse.Namespace) -> None:
    """A capture of packets at these times"""
    snap = args.s or 262144
    cut = args.S or snap
    with open(path, "wb") as file:
        if args.g:
            file.write(struct.pack("<7I", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0xFFFFFFFF, 0xFFFFFFFF, 28))       # section
            file.write(struct.pack("<4I2H3I", 1, 32, LINKS[args.l], snap, 9, 1, 6 if args.u else 9, 0, 32))    # if_tsresol
        else:
            file.write(struct.pack("<I2H4I", 0xA1B2C3D4 if args.u else 0xA1B23C4D, 2, 4, 0, 0, snap, LINKS[args.l]))
        for time, data in packets:
            time, unit, kept = (BASE + time) // (1000 if args.u else 1), 10**6 if args.u else 10**9, data[:cut]
            if args.g:
                total = 32 + (len(kept) + 3 & ~3)
                file.write(struct.pack("<7I", 6, total, 0, time >> 32, time & 0xFFFFFFFF, len(kept), len(data)))
                file.write(kept.ljust(total - 32, b"\0") + struct.pack("<I", total))
            else:
                file.write(struct.pack("<4I", time // unit, time % unit, len(kept), len(data)) + kept)


def main() -> None:
    """Reads the lines"""
    parser = argparse.ArgumentParser()
    parser.add_argument("-l", choices=LINKS, default="eth")
    parser.add_argument("-s", type=int)
    parser.add_argument("-S", type=int)
    parser.add_argument("-u", action="store_true")
    parser.add_argument("-g", action="store_true")
    parser.add_argument("file")
    parser.add_argument("out", nargs="?")
    args = parser.parse_args()
    before, behind = [], []
    for words in filter(None, map(str.split, sys.stdin)):
        if not args.out:
            before.append((int(words[0]), packet(args.l, words[1:])))
            continue
        if words[0] != "-":
            before.append((int(words[0]), packet(args.l, [word.split(">")[0] if "=" in word else word for word in words[2:]])))
        if words[1] != "-":
            changed = [f"{word.split('=')[0]}={word.split('>')[1]}" if "=" in word and ">" in word else word for word in words[2:]]
            behind.append((int(words[1]), packet(args.l, changed + ["ttl=63"] * (words[2] != "arp"))))
    write(args.file, before, args)
    if args.out:
        write(args.out, sorted(behind, key=lambda one: one[0]), args)


main()
