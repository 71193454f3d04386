#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""nfqueue.py - accepts all packets that NFQUEUE hands to a program, as an intrusion detection system does

nfqueue.py NUMBER: of the queue, in this network namespace. Prints "ready", and at SIGTERM how many packets
it has accepted. GSO packets are taken whole.
"""
import contextlib
import signal
import socket
import struct
import sys

NETLINK_NETFILTER, SUBSYS_QUEUE, REQUEST, ACK = 12, 3, 1, 4
PACKET, VERDICT, CONFIG = 0, 1, 2
PACKET_HDR, VERDICT_HDR = 1, 2
CFG_CMD, CFG_PARAMS, CFG_MASK, CFG_FLAGS = 1, 2, 4, 5
BIND, COPY_META, FLAG_GSO, ACCEPT = 1, 1, 4, 1


def message(kind: int, flags: int, queue: int, *attributes: tuple[int, bytes]) -> bytes:
    """For nfnetlink_queue"""
    body = struct.pack("!BBH", socket.AF_UNSPEC, 0, queue)
    for name, value in attributes:
        body += struct.pack("HH", 4 + len(value), name) + value + bytes(-len(value) % 4)
    return struct.pack("IHHII", 16 + len(body), SUBSYS_QUEUE << 8 | kind, flags, 0, 0) + body


def packet_of(data: bytes) -> int | None:
    """The number of the packet that is asked about"""
    if struct.unpack_from("H", data, 4)[0] != SUBSYS_QUEUE << 8 | PACKET:
        return None
    at = 20
    while at + 4 <= len(data):
        length, name = struct.unpack_from("HH", data, at)
        if name == PACKET_HDR:
            return int(struct.unpack_from("!I", data, at + 4)[0])
        at += length + 3 & ~3
    return None


def main() -> int:
    """Bind, then accept until SIGTERM"""
    queue, count = int(sys.argv[1]), 0
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)         # SO_RCVBUFFORCE
    sock.bind((0, 0))
    for attributes in ([(CFG_CMD, struct.pack("!BxH", BIND, 0))],
                       [(CFG_PARAMS, struct.pack("!IB", 0, COPY_META))],
                       [(CFG_MASK, struct.pack("!I", FLAG_GSO)), (CFG_FLAGS, struct.pack("!I", FLAG_GSO))]):
        sock.send(message(CONFIG, REQUEST | ACK, queue, *attributes))
        error = -struct.unpack_from("i", sock.recv(4096), 16)[0]
        if error:
            print(f"nfqueue.py: queue {queue}: error {error}", file=sys.stderr)
            return 1
    print("ready", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            number = packet_of(sock.recv(4096))
            if number is not None:
                sock.send(message(VERDICT, REQUEST, queue, (VERDICT_HDR, struct.pack("!II", ACCEPT, number))))
                count += 1
    print(count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
