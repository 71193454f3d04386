# SPDX-License-Identifier: GPL-2.0
"""One end of the test connections. The client has one for itself and asks for the same things at
the peer's; a method that starts with "do_" is a question that a peer may ask."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from fcntl import ioctl
from termios import TIOCOUTQ

from lowq_common import system, tcpinfo
from lowq_common.errors import Refused
from lowq_common.values import Json

from . import facts, packets, roce
from .wire import whole

FLOWS = 64
LONGEST_S, SEND_S = 30, 10
TCP_NOTSENT_LOWAT = 25
CE = 3
MARKED_GAP_S = 0.02
TICK_S = 0.01
TRICKLE_WAITING = 8000  # bytes


class Flow:
    """A test connection. What arrives is counted and discarded."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = 0
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
        self.way = packets.way_of(sock)
        self.reader = threading.Thread(target=self.work, daemon=True)
        self.reader.start()

    def work(self) -> None:
        try:
            while True:
                count = len(self.sock.recv(1 << 18))
                if not count:
                    return
                self.received += count
        except OSError:
            return

    def close(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.reader.join(1)
        self.sock.close()


def waiting(sock: socket.socket) -> int:
    """Bytes that are not acknowledged"""
    return int(struct.unpack("i", ioctl(sock, TIOCOUTQ, bytes(4)))[0])


def acknowledged(sock: socket.socket, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while waiting(sock):
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def is_starved(sock: socket.socket, info: tcpinfo.Info) -> bool:
    """Is the send buffer full although the window has room and nothing waits to be sent? sndbuf_limited
    of TCP_INFO misses most of that time where a program does not block."""
    full = not select.select([], [sock], [], 0)[1]
    return full and not info["notsent_bytes"] and 5 * info["unacked"] < 4 * info["snd_cwnd"]


class End:
    def __init__(self, port: int) -> None:
        self.flows: dict[int, Flow] = {}
        self.sender = packets.Sender()
        self.pair: roce.QueuePair | None = None
        self.capture: packets.Capture | None = None
        try:
            self.capture = packets.Capture(port)
        except PermissionError:
            pass

    def add(self, number: int, sock: socket.socket) -> None:
        if number in self.flows or len(self.flows) >= FLOWS:
            raise Refused("no such flow")
        self.flows[number] = Flow(sock)

    def flow(self, asked: Json) -> Flow:
        found = self.flows.get(whole(asked, "flow", 0, 1 << 16))
        if not found:
            raise Refused("no such flow")
        return found

    def close(self) -> None:
        for flow in self.flows.values():
            flow.close()
        self.flows.clear()
        self.sender.close()
        if self.pair:
            self.pair.close()
        if self.capture:
            self.capture.close()

    def answer(self, asked: Json) -> Json:
        """To a question from the network"""
        name = asked.get("do")
        method = QUESTIONS.get(name) if isinstance(name, str) else None
        if method is None:
            return {"error": "unknown question"}
        try:
            return method(self, asked)
        except OSError as error:
            return {"error": error.strerror or "timed out"}
        except Refused as error:
            return {"error": str(error)[:200]}

    # --- questions ----------------------------------------------------------------------

    def do_host(self, asked: Json) -> Json:
        """What the client needs to know of this host"""
        space = system.Namespace()
        option = space.sysctl(facts.TCP + "ecn_option")
        return {
            "kernel": os.uname().release, "ecn": facts.number(space.sysctl(facts.TCP + "ecn"), -1),
            "accecn": option is not None, "root": self.capture is not None,
            "reflector": system.module_loaded("int_reflector"), "roce_rcm": system.module_loaded("roce_rcm"),
            **{name: facts.number((space.sysctl(facts.TCP + name) or "").split(" ")[-1], 1 << 20)
               for name in ("rmem", "wmem")},
        }

    def do_info(self, asked: Json) -> Json:
        flow = self.flow(asked)
        return {"control": tcpinfo.control_of(flow.sock), "received": flow.received, "info": tcpinfo.of(flow.sock),
                "way": list(flow.way[1:]), "ttl": packets.ttl_of(flow.sock, flow.way.family)}

    def do_numbers(self, asked: Json) -> Json:
        """The next sequence number that this end sends, and the one that it expects"""
        flow = self.flow(asked)
        if not self.capture:
            raise Refused("needs root")
        return {"next": list(packets.numbers(flow.sock))}

    def do_trickle(self, asked: Json) -> Json:
        """Sends small packets far apart; -> how many, and how many were lost. Such packets make no queue:
        what is lost of them is what the path always loses."""
        flow = self.flow(asked)
        count, gap = whole(asked, "count", 1, 2000), whole(asked, "gap_us", 100, 100_000)
        before = tcpinfo.of(flow.sock)
        for _ in range(count):
            if waiting(flow.sock) < TRICKLE_WAITING:  # more is not sent yet, as it waits for retransmissions
                flow.sock.send(bytes(100), socket.MSG_DONTWAIT)
            time.sleep(gap / 1e6)
        acknowledged(flow.sock, 2)
        after = tcpinfo.of(flow.sock)
        return {"sent": after["data_segs_out"] - before["data_segs_out"],
                "lost": after["total_retrans"] - before["total_retrans"]}

    def do_talk(self, asked: Json) -> Json:
        """Sends some messages, one after the other"""
        flow = self.flow(asked)
        size, count = whole(asked, "size", 1, 1 << 16), whole(asked, "count", 1, 100)
        for _ in range(count):
            flow.sock.sendall(bytes(size))
            if not acknowledged(flow.sock, 2):
                return {"acknowledged": False}
        return {"acknowledged": True}

    def do_load(self, asked: Json) -> Json:
        """Sends as fast as the control allows, for so long; looks at the connection meanwhile"""
        flow = self.flow(asked)
        length = whole(asked, "ms", 1, LONGEST_S * 1000) / 1000
        before = tcpinfo.of(flow.sock)
        sock = flow.sock
        sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 1 << 17)  # so that it ends soon
        data = bytes(1 << 16)
        start = look = time.monotonic()
        rtts, windows, starved = [], [], 0
        while (now := time.monotonic()) < start + length:
            if now >= look:
                info = tcpinfo.of(sock)
                rtts.append(info["rtt"])
                windows.append(info["snd_cwnd"])
                starved += is_starved(sock, info)
                look = now + TICK_S
            if select.select([], [sock], [], max(0.0, min(look, start + length) - now))[1]:
                try:
                    sock.send(data, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue
        after = tcpinfo.of(sock)
        seconds = time.monotonic() - start
        acknowledged(sock, 2)  # so that it is not in the way of what follows
        return {"before": before, "after": after, "seconds": seconds, "rtt_max": max(rtts),
                "rtt_mean": sum(rtts) / len(rtts), "cwnd_max": max(windows), "cwnd_last": windows[-1], "starved": starved / len(windows)}

    def do_seen(self, asked: Json) -> Json:
        """What the capture has counted on a flow, and which test packets have arrived"""
        if not self.capture:
            return {}
        flow = self.flow(asked)
        return {**self.capture.of(flow.way), "tests": {str(k): v for k, v in self.capture.tests.items()}}

    def do_emit(self, asked: Json) -> Json:
        """Sends test packets: [number, kind, tos] each"""
        flow = self.flow(asked)
        given = asked.get("tests")
        if not self.capture or not isinstance(given, list) or len(given) > 64:
            raise Refused("no test packets")
        now = packets.numbers(flow.sock)
        for one in given:
            if not isinstance(one, list) or len(one) != 3 or one[1] not in ("data", "ack", "synack"):
                raise Refused("not a test packet")
            fields = {"number": one[0], "tos": one[2]}
            number, tos = whole(fields, "number", 1, packets.COUNT - 1), whole(fields, "tos", 0, 255)
            self.sender.send(flow.way, packets.test_packet(flow.way, one[1], number, tos, now))
            time.sleep(0.001)
        return {}

    def do_mark(self, asked: Json) -> Json:
        """Sends data that the peer gets as if a queue had marked it. -> how many of these packets the
        connection thinks were marked"""
        flow = self.flow(asked)
        count = whole(asked, "count", 1, 20)
        if not self.capture:
            raise Refused("needs root")
        before = tcpinfo.of(flow.sock)
        for _ in range(count):
            data = bytes(100)
            seq, ack = packets.numbers(flow.sock, data)
            packet = packets.segment(flow.way, seq, ack, packets.PSH | packets.ACK, 0xFFF, data, CE)
            self.sender.send(flow.way, packet)
            time.sleep(MARKED_GAP_S)
        done = acknowledged(flow.sock, 2)
        after = tcpinfo.of(flow.sock)
        return {"sent": count, "acknowledged": done, "marked": after["delivered_ce"] - before["delivered_ce"],
                "resent": after["total_retrans"] - before["total_retrans"]}

    def do_trace(self, asked: Json) -> Json:
        """-> [distance, router, TOS as it got there] of each router that answers"""
        flow = self.flow(asked)
        if not self.capture:
            raise Refused("needs root")
        hops = packets.trace(self.sender, flow.way, whole(asked, "tos", 0, 255), packets.numbers(flow.sock),
                             whole(asked, "most", 1, 16), 1.0)
        return {"hops": [list(hop) for hop in hops]}

    def do_counters(self, asked: Json) -> Json:
        """HPCC++'s, of this namespace"""
        found = facts.telemetry_counters()
        if self.capture and (rcm := roce.counters()):
            found["roce_rcm"] = rcm
        return found

    def do_pair(self, asked: Json) -> Json:
        """Makes an RDMA queue pair that the other end of a flow can send to; -> its number"""
        flow = self.flow(asked)
        if not self.pair:
            self.pair = roce.QueuePair(flow.way.source, flow.way.target)
        return {"qp": self.pair.number}

    def do_quiet(self, asked: Json) -> Json:
        """Ends the capture, which would slow a load down"""
        if self.capture:
            self.capture.close()
            self.capture = None
        return {}

    def do_drop(self, asked: Json) -> Json:
        """Closes a flow"""
        flow = self.flow(asked)
        self.flows = {number: one for number, one in self.flows.items() if one is not flow}
        flow.close()
        return {}


QUESTIONS = {name.removeprefix("do_"): method for name, method in vars(End).items() if name.startswith("do_")}
