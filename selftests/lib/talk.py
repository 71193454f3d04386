#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""talk.py - one TCP connection, step by step, for situations that no bulk flow meets

talk.py serve [--port P] [--cc CONTROL] [--child-cc CONTROL] [--fastopen] [--mark N]
    answers messages: a header says how many bytes follow and how many come back.
    --cc is the listener's control, --child-cc is set after accept(), --mark is SO_MARK
talk.py sink [THE SAME OPTIONS]
    reads what comes, and closes a connection when the peer does
talk.py to HOST [--port P] [--close] STEP...
    does the steps in order, and prints results as name=value words. --close: waits at the end
    until the peer has closed the connection, too

steps:
  cc=CONTROL        the congestion control; before the first data it is set before connect()
  set=LEVEL,NAME,N  a socket option by numbers, such as 6,2,536 for TCP_MAXSEG
  bind=DEVICE       SO_BINDTODEVICE
  connect           (done by the first step that needs it)
  connect-cc=CONTROL  start to connect, then set the control
  reconnect         connect(AF_UNSPEC), then connect again
  control=NAME      print NAME= and the congestion control in use
  fastopen=BYTES    send this much with the SYN, if the peer's cookie is known
  up=BYTES          send a message that asks for no answer
  talk=UP,DOWN      send UP bytes while the server sends DOWN; wait for those
  send=BYTES        send bytes to a sink: no message, no header
  writes=N,BYTES,S  send BYTES N times, S seconds apart
  flood=SECONDS     send as fast as possible for so long
  acked             wait until everything sent is acknowledged
  fate=N            wait until all that was written has left, then set SO_PRIORITY, which tells
                    qdiscs what to do with packets from now on
  get=NAME,LEVEL,N  print NAME= and the value of a socket option
  info[=PREFIX]     print cwnd=, ssthresh= and retrans= as TCP_INFO has them now, PREFIX in front
  sleep=SECONDS     wait
  run=COMMAND       a shell command
"""
import argparse
import ctypes
import fcntl
import queue
import select
import selectors
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from typing import Any

HEADER = struct.Struct("!QQ")
CHUNK = bytes(1 << 16)
ALL = 1 << 20
WAKE = ALL              # if it is less, a reader is woken for so many bytes, not for each packet
POLL = 0.0001           # seconds between two looks at what has left or is acknowledged
SLOWER = 1.0            # each pause is so much longer than the one before
PROTOCOL = 0            # of sockets; 0 is TCP
TCP_CONGESTION, TCP_FASTOPEN = 13, 23
SIOCOUTQNSD = 0x894B  # bytes that have not left
INFO_WORDS = {"ssthresh": 17, "cwnd": 18, "retrans": 23}  # of TCP_INFO, after its first 8 bytes


class Threads:
    """Each call at once, in a thread that has nothing to do, or a new one"""

    def __init__(self) -> None:
        self.idle: list[queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]]] = []

    def start(self, call: Callable[..., None], *args: Any) -> None:
        """Like Thread.start(), as a daemon"""
        try:
            calls = self.idle.pop()
        except IndexError:
            calls = queue.SimpleQueue()
            threading.Thread(target=self.work, args=(calls,), daemon=True).start()
        calls.put((call, args))

    def work(self, calls: queue.SimpleQueue[Any]) -> None:
        """What one thread does"""
        while True:
            call, args = calls.get()
            call(*args)
            self.idle.append(calls)


THREADS = Threads()


def send_bytes(conn: socket.socket, count: int) -> None:
    """Send @count bytes"""
    while count > 0:
        piece = CHUNK[:min(count, len(CHUNK))]
        conn.sendall(piece)
        count -= len(piece)


def read_bytes(conn: socket.socket, count: int) -> None:
    """Read @count bytes, at most WAKE at a time. The connection's end is an error."""
    buffer = bytearray(min(count, WAKE))
    while count > 0:
        want = min(count, WAKE)
        if WAKE < ALL:
            # select() first: a reader that has read a part is not woken for a rest below WAKE
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, want)
            select.select([conn], [], [])
        got = conn.recv_into(buffer, want)
        if not got:
            raise ConnectionError("the peer closed the connection")
        count -= got
    if WAKE < ALL:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def read_header(conn: socket.socket) -> tuple[int, int]:
    """How many bytes follow, and how many to answer"""
    data = b""
    while len(data) < HEADER.size:
        piece = conn.recv(HEADER.size - len(data))
        if not piece:
            raise ConnectionError("the peer closed the connection")
        data += piece
    up, down = HEADER.unpack(data)
    return up, down


def both_ways(conn: socket.socket, send: int, read: int) -> None:
    """Send and read so many bytes, at the same time"""
    if not send or not read:
        send_bytes(conn, send)
        read_bytes(conn, read)
        return
    sent = threading.Event()

    def sender() -> None:
        try:
            send_bytes(conn, send)
        finally:
            sent.set()

    THREADS.start(sender)
    read_bytes(conn, read)
    sent.wait()


def answer(conn: socket.socket) -> None:
    """The server's side of one connection"""
    with conn:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                up, down = read_header(conn)
                both_ways(conn, down, up)
        except OSError:
            pass


def listener(args: argparse.Namespace) -> socket.socket:
    """A socket that listens at args.port for IPv4 and IPv6"""
    server = socket.socket(socket.AF_INET6, proto=PROTOCOL)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if args.cc:
        server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, args.cc.encode())
    if args.mark:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, args.mark)
    if args.fastopen:
        server.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
    server.bind(("::", args.port))
    server.listen(128)
    return server


def serve(args: argparse.Namespace) -> None:
    """Answer on each connection, for ever"""
    args.handle = answer
    accept_all(listener(args), args)


def accept(server: socket.socket, args: argparse.Namespace) -> socket.socket:
    """The next connection, with args.child_cc"""
    conn = server.accept()[0]
    if args.child_cc:
        conn.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, args.child_cc.encode())
    return conn


def accept_all(server: socket.socket, args: argparse.Namespace) -> None:
    """Give each connection to args.handle, in a thread of its own, until @server is shut down"""
    while True:
        try:
            conn = accept(server, args)
        except OSError:
            return
        THREADS.start(args.handle, conn)


def swallow(args: argparse.Namespace) -> None:
    """Read what comes on each connection, for ever, in one thread"""
    server = listener(args)
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is server:
                    selector.register(accept(server, args), selectors.EVENT_READ)
                    continue
                assert isinstance(key.fileobj, socket.socket)
                try:
                    more = bool(key.fileobj.recv(1 << 20))
                except OSError:
                    more = False
                if not more:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()


class Talk:
    """The client's side: a method per step"""

    def __init__(self, host: str, port: int) -> None:
        self.peer = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.sock = socket.socket(self.peer[0], proto=PROTOCOL)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connected = False
        self.results: dict[str, str | int | float] = {}

    def step(self, name: str, value: str) -> None:
        """Do one step"""
        method = getattr(self, "do_" + name.replace("-", "_"), None)
        if method is None:
            sys.exit(f"talk.py: unknown step '{name}'")
        method(value)

    def do_connect(self, _: str = "") -> None:
        """See above, as for all that follow"""
        if not self.connected:
            self.sock.connect(self.peer[4])
        self.connected = True

    def do_reconnect(self, _: str) -> None:
        """The same socket, another connection"""
        unspecified = ctypes.create_string_buffer(16)
        if ctypes.CDLL(None, use_errno=True).connect(self.sock.fileno(), unspecified, 16):
            raise OSError(ctypes.get_errno(), "connect(AF_UNSPEC)")
        self.sock.connect(self.peer[4])

    def control(self) -> str:
        """The congestion control in use"""
        return self.sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()

    def do_control(self, name: str) -> None:
        """See above"""
        self.results[name] = self.control()

    def do_cc(self, control: str) -> None:
        """TCP_CONGESTION"""
        self.sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())

    def do_connect_cc(self, control: str) -> None:
        """TCP_CONGESTION between SYN and SYN-ACK"""
        self.sock.setblocking(False)
        self.sock.connect_ex(self.peer[4])
        self.do_cc(control)
        select.select([], [self.sock], [])
        self.sock.setblocking(True)
        self.connected = True

    def do_bind(self, device: str) -> None:
        """SO_BINDTODEVICE"""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())

    def do_set(self, value: str) -> None:
        """setsockopt"""
        level, name, number = (int(x) for x in value.split(","))
        self.sock.setsockopt(level, name, number)

    def do_get(self, value: str) -> None:
        """getsockopt"""
        word, level, name = value.split(",")
        self.results[word] = self.sock.getsockopt(int(level), int(name))

    def do_fastopen(self, count: str) -> None:
        """MSG_FASTOPEN"""
        size = int(count)
        data = HEADER.pack(size - HEADER.size, 0) + bytes(size - HEADER.size)
        self.sock.sendto(data, socket.MSG_FASTOPEN, self.peer[4])
        self.connected = True

    def do_up(self, count: str) -> None:
        """A message, no answer. Its header is part of it"""
        self.do_connect()
        size = int(count) - HEADER.size
        self.sock.sendall(HEADER.pack(size, 0) + CHUNK[:min(size, 1000)])
        send_bytes(self.sock, size - min(size, 1000))

    def do_talk(self, value: str) -> None:
        """A message and its answer, at the same time"""
        self.do_connect()
        up, down = (int(x) for x in value.split(","))
        self.sock.sendall(HEADER.pack(up, down))
        both_ways(self.sock, up, down)

    def do_send(self, count: str) -> None:
        """Bytes without a header"""
        self.do_connect()
        send_bytes(self.sock, int(count))

    def do_writes(self, value: str) -> None:
        """Bytes, a pause, and again"""
        count, size, gap = value.split(",")
        for _ in range(int(count)):
            self.do_send(size)
            time.sleep(float(gap))

    def do_flood(self, seconds: str) -> None:
        """Bytes until the time is over"""
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            self.do_send("10000")

    def wait_for_none(self, request: int) -> None:
        """Wait until an ioctl that counts bytes returns 0"""
        pause = POLL
        while struct.unpack("i", fcntl.ioctl(self.sock, request, bytes(4)))[0]:
            time.sleep(pause)
            pause *= SLOWER

    def do_acked(self, _: str) -> None:
        """SIOCOUTQ is 0"""
        self.wait_for_none(termios.TIOCOUTQ)

    def do_fate(self, number: str) -> None:
        """SIOCOUTQNSD is 0, then SO_PRIORITY"""
        if self.connected:
            self.wait_for_none(SIOCOUTQNSD)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, int(number))

    def do_info(self, prefix: str) -> None:
        """TCP_INFO"""
        self.do_connect()
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        for name, word in INFO_WORDS.items():
            self.results[prefix + name] = struct.unpack_from("I", info, 8 + 4 * word)[0]

    def do_sleep(self, seconds: str) -> None:
        """Wait"""
        time.sleep(float(seconds))

    def do_run(self, command: str) -> None:
        """A shell command"""
        subprocess.run(command, shell=True, check=True)


def talk(args: argparse.Namespace) -> None:
    """The steps, then the results"""
    client = Talk(args.host, args.port)
    start = time.monotonic()
    for step in args.steps:
        name, _, value = step.partition("=")
        client.step(name, value)
    client.results.update(seconds=round(time.monotonic() - start, 6), cc=client.control(),
                          sport=client.sock.getsockname()[1])
    print(" ".join(f"{k}={v}" for k, v in client.results.items()), flush=True)
    if args.close:
        client.sock.shutdown(socket.SHUT_WR)
        client.sock.recv(1)


def main() -> None:
    """Serve or talk, as the command line says"""
    parser = argparse.ArgumentParser(prog="talk.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for name, run in ("serve", serve), ("sink", swallow):
        sub = kinds.add_parser(name)
        sub.set_defaults(run=run)
        sub.add_argument("--port", type=int, default=5299)
        sub.add_argument("--cc")
        sub.add_argument("--child-cc")
        sub.add_argument("--fastopen", action="store_true")
        sub.add_argument("--mark", type=int)
    sub = kinds.add_parser("to")
    sub.set_defaults(run=talk)
    sub.add_argument("host")
    sub.add_argument("--port", type=int, default=5299)
    sub.add_argument("--close", action="store_true")
    sub.add_argument("steps", nargs="+", metavar="STEP")
    args = parser.parse_args()
    try:
        args.run(args)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"talk.py: {error}")


if __name__ == "__main__":
    main()
