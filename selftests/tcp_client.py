#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A TCP client that does what its arguments say, step by step, on one connection.

  tcp_client.py [--cc NAME] [--when before|during] [--device DEV] ADDRESS STEP...

STEP is one of
  send=BYTES          write that many bytes
  writes=N,BYTES,S    N writes of BYTES, S seconds apart
  flood=S             write as fast as possible for S seconds
  drain               wait until everything is acknowledged
  sleep=S             wait
  cc=NAME             change the control
  info                print "cc=NAME cwnd=N ssthresh=N retrans=N" (TCP_INFO)
  run=COMMAND         run a shell command
"""
from __future__ import annotations

import argparse
import errno
import fcntl
import select
import socket
import struct
import subprocess
import sys
import time

PORT = 5299
SIOCOUTQ = 0x5411
TCP_CONGESTION = 13
# TCP_INFO: 8 bytes, then 32-bit words
SSTHRESH_WORD, CWND_WORD, RETRANS_WORD = 17, 18, 23


def control(sock: socket.socket) -> str:
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16)
    return raw.split(b"\0")[0].decode()


def set_control(sock: socket.socket, name: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())


def connect(args: argparse.Namespace) -> socket.socket:
    family = socket.AF_INET6 if ":" in args.address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if args.device:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, args.device.encode())
    if args.cc and args.when == "before":
        set_control(sock, args.cc)
    sock.setblocking(False)
    err = sock.connect_ex((args.address, PORT))
    if err not in (0, errno.EINPROGRESS):
        raise OSError(err, "connect")
    if args.cc and args.when == "during":
        set_control(sock, args.cc)
    if not select.select([], [sock], [], 60)[1]:
        raise TimeoutError("connect")
    err = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if err:
        raise OSError(err, "connect")
    sock.setblocking(True)
    return sock


def unsent(sock: socket.socket) -> int:
    left = struct.unpack("i", fcntl.ioctl(sock, SIOCOUTQ, b"\0" * 4))[0]
    return int(left)


def info(sock: socket.socket) -> str:
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    words = struct.unpack_from("24I", raw, 8)
    return (f"cc={control(sock)} cwnd={words[CWND_WORD]} ssthresh={words[SSTHRESH_WORD]} "
            f"retrans={words[RETRANS_WORD]}")


def step(sock: socket.socket, text: str) -> None:
    name, _, value = text.partition("=")
    if name == "send":
        sock.sendall(b"x" * int(value))
    elif name == "writes":
        count, size, gap = value.split(",")
        for _ in range(int(count)):
            sock.sendall(b"x" * int(size))
            time.sleep(float(gap))
    elif name == "flood":
        end = time.monotonic() + float(value)
        while time.monotonic() < end:
            sock.sendall(b"x" * 10000)
    elif name == "drain":
        while unsent(sock):
            time.sleep(0.001)
    elif name == "sleep":
        time.sleep(float(value))
    elif name == "cc":
        set_control(sock, value)
    elif name == "info":
        print(info(sock), flush=True)
    elif name == "run":
        subprocess.run(value, shell=True, check=True)
    else:
        raise ValueError(f"no step {text!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description="a TCP client that follows steps")
    parser.add_argument("--cc", help="congestion control")
    parser.add_argument("--when", choices=("before", "during"), default="before",
                        help="when the control is chosen: before or during connect()")
    parser.add_argument("--device", help="bind to this device")
    parser.add_argument("address")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    args = parser.parse_args()
    try:
        sock = connect(args)
        for text in args.steps:
            step(sock, text)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
    except (OSError, ValueError, subprocess.CalledProcessError) as e:
        print(f"tcp_client.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
