#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""intact.py - checks that bytes arrive unchanged

intact.py serve PORT
    accepts connections on PORT (IPv4 and IPv6), and answers each with the SHA-256 of the
    received data when the other end has finished sending
intact.py send TO PORT [--connections N] [--parallel N] [--size BYTES] [--cc CONTROL...]
    opens N connections to TO, --parallel at a time, and sends BYTES on each; with several
    CONTROLs the socket switches between them while it sends. Prints one line of JSON:
    connections, bytes, switches, and how many were wrong (another digest) or failed
    (an error). Exits with 1 if any was wrong.
"""
import argparse
import hashlib
import json
import os
import socket
import struct
import sys
import threading

from talk import THREADS

CHUNK = 1 << 16
NOISE = os.urandom(CHUNK)


def answer(conn):
    digest = hashlib.sha256()
    with conn:
        try:
            while data := conn.recv(1 << 20):
                digest.update(data)
            conn.sendall(digest.digest())
        except OSError:
            pass  # the sender counts it


def serve(args):
    server = socket.create_server(("", args.port), family=socket.AF_INET6,
                                  dualstack_ipv6=True, backlog=1024)
    while True:
        THREADS.start(answer, server.accept()[0])


class Sender:
    def __init__(self, args):
        self.args = args
        self.left = args.connections
        self.lock = threading.Lock()
        self.said = {"connections": 0, "bytes": 0, "switches": 0, "wrong": 0, "failed": 0}

    def add(self, **what):
        with self.lock:
            for name, n in what.items():
                self.said[name] += n

    def switch(self, conn, i):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION,
                        self.args.cc[i % len(self.args.cc)].encode())

    def one(self):
        """One connection: no two of its chunks are alike."""
        digest, switches = hashlib.sha256(), 0
        family = socket.AF_INET6 if ":" in self.args.to else socket.AF_INET
        with socket.socket(family) as conn:
            if self.args.cc:
                self.switch(conn, 0)
            conn.connect((self.args.to, self.args.port))
            step = max(1, min(CHUNK, self.args.size // 16))
            for at in range(0, self.args.size, step):
                data = (struct.pack("<Q", at) + NOISE)[:min(step, self.args.size - at)]
                digest.update(data)
                conn.sendall(data)
                if len(self.args.cc) > 1:
                    switches += 1
                    self.switch(conn, switches)
            conn.shutdown(socket.SHUT_WR)
            got = b""
            while part := conn.recv(64):
                got += part
        self.add(connections=1, bytes=self.args.size, switches=switches,
                 wrong=int(got != digest.digest()))

    def work(self):
        while True:
            with self.lock:
                if self.left == 0:
                    return
                self.left -= 1
            try:
                self.one()
            except OSError as error:
                print(f"intact.py: {error}", file=sys.stderr)
                self.add(failed=1)


def send(args):
    sender = Sender(args)
    threads = [threading.Thread(target=sender.work) for _ in range(args.parallel)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps(sender.said))
    return 1 if sender.said["wrong"] else 0


def main():
    parser = argparse.ArgumentParser(description="do bytes arrive as they were sent?")
    sub = parser.add_subparsers(required=True)
    p = sub.add_parser("serve")
    p.add_argument("port", type=int)
    p.set_defaults(run=serve)
    p = sub.add_parser("send")
    p.add_argument("to")
    p.add_argument("port", type=int)
    p.add_argument("--connections", type=int, default=1)
    p.add_argument("--parallel", type=int, default=1)
    p.add_argument("--size", type=int, default=CHUNK)
    p.add_argument("--cc", nargs="+", default=[])
    p.set_defaults(run=send)
    args = parser.parse_args()
    sys.exit(args.run(args))


main()
