#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""forge.py - probes of HPCC++ that a connection's control has not sent

    forge.py serve PORT LEAST_TTL    accepts one connection, which takes only packets with this TTL
    forge.py ADDRESS PORT            connects there, then for each line "TTL [bad|elsewhere|ifa]" of the
                                     input sends a probe of that connection, and prints a line.
                                     bad: its checksum is wrong; elsewhere: of no connection;
                                     ifa: with IFA's headers
"""
import socket
import struct
import sys

IP_MINTTL, TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, SEND_QUEUE = 21, 19, 20, 21, 2
DSCP, ROOM = 23, 5


def checksum(data: bytes) -> int:
    """RFC 1071"""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def serve(port: int, least_ttl: int) -> None:
    """Until the peer closes"""
    with socket.create_server(("0.0.0.0", port)) as listener:
        conn = listener.accept()[0]
    conn.setsockopt(socket.IPPROTO_IP, IP_MINTTL, least_ttl)
    while conn.recv(65536):
        pass


def send_next(sock: socket.socket) -> int:
    """SND.NXT, which is SND.UNA while nothing is in flight"""
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
    seq = sock.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, -1)
    return seq


def probe(sock: socket.socket, number: int, ttl: int, kind: str) -> bytes:
    """An IP packet"""
    (source, sport), (target, dport) = sock.getsockname(), sock.getpeername()
    addresses = socket.inet_aton(source) + socket.inet_aton(target)
    room = 0 if kind == "ifa" else ROOM
    message = b"INT1" + bytes([1, room, 0, 0]) + struct.pack("!IQ", number, 7) + bytes(8 + 8 * room)
    seq = (send_next(sock) - len(message) - 1) & 0xffffffff
    if kind == "elsewhere":
        dport += 1
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, 0, 5 << 4, 8, 65535, 0, 0)
    right = checksum(addresses + struct.pack("!HH", 6, len(tcp + message)) + tcp + message)
    tcp = tcp[:16] + struct.pack("!H", right ^ (0x55 if kind == "bad" else 0)) + tcp[18:]
    if kind == "ifa":
        tcp = b"\x2f\x06\0\x28" + tcp + b"\xff\0\xff\0"
    ip = struct.pack("!BBHHHBBH", 0x45, DSCP << 2, 20 + len(tcp + message), number, 0, ttl, 253 if kind == "ifa" else 6, 0)
    return ip + addresses + tcp + message


def forge(address: str, port: int) -> None:
    """Probes by the lines of the input"""
    sock = socket.create_connection((address, port))
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    print("connected", flush=True)
    for number, line in enumerate(sys.stdin, 1):
        ttl, _, kind = line.strip().partition(" ")
        raw.sendto(probe(sock, number, int(ttl), kind), (address, 0))
        print("sent", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]))
    else:
        forge(sys.argv[1], int(sys.argv[2]))
