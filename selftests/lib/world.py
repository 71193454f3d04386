#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""world.py - one situation, with every control in turn, and what is worse than the yardstick

world.py --ns PREFIX [OPTION]... CONTROL... -- STEP...

For each way (--way) and each control, one connection does the steps of talk.py: a cell. Both ends
are in this process: it enters the network namespaces PREFIXh1 and PREFIXr. '%' in a step is the
control's name. A line per cell says what was measured, then a line per fault. Faults are: a
timeout more than with either yardstick; segments discarded by PAWS; SACK reneging; a goodput below
--share of the slower yardstick's; a packet whose ECN field is not the control's; a situation that
did not occur (--shows); another control at the end; a warning of the kernel. Exit status 1 if
there are any.

steps of its own:
  pairs=BYTES       for each other control: change to it, send BYTES, change back, send BYTES
  slowly=N,BYTES,S  N messages of BYTES, S seconds apart
  sysctl=HOST:NAME=VALUE  at h1 or r
  restore           replace the socket by a new one that continues the connection, with TCP_REPAIR,
                    as checkpoint and restore do
  sendfile=BYTES    a message, from a file
"""
import argparse
import contextlib
import ctypes
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

import talk

YARDSTICK = "reno", "cubic"
NOT_ECT, ECT1, ECT0 = range(3)
FIN, SYN, RST, ACK = 1, 2, 4, 16
CLONE_NEWNET = 0x40000000
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 0x0003, 0x0800, 0x86dd
SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, PACKET_IGNORE_OUTGOING = 263, 5, 10, 23
TPACKET_V2, TP_STATUS_USER = 1, 1
LDCP_MARK = 42          # of its sockets: routes with its initial window
LONG = 1000             # bytes; what is encrypted and longer is data

# The ECN fields of a control's packets, except SYN, RST and FIN. LDCP's first RTT is Not-ECT but
# for its last packet. A control that has become Reno (NAME_reno) sends Not-ECT.
FIELDS_OF = {
    "dctcp_ref": {ECT0},
    "ldcp": {NOT_ECT, ECT0},
    "prague": {ECT1},
}

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, TCP_REPAIR_OPTIONS = 19, 20, 21, 22
TCP_TIMESTAMP, TCP_REPAIR_WINDOW, TCPI_OPTIONS, DELIVERED_CE = 24, 29, 5, 196
OPT_TIMESTAMPS, OPT_SACK, OPT_WSCALE = 1, 2, 4
RECV_QUEUE, SEND_QUEUE = 1, 2

# --with: what connections have beside their control
IPPROTO_MPTCP, SOL_TLS, TCP_ULP, TLS_TX, TLS_RX = 262, 282, 31, 1, 2
TCP_MD5SIG, TCP_AO_ADD_KEY, IP_MINTTL = 14, 38, 21
# TLS 1.2, AES-GCM-128; the same key in both directions
TLS_KEY = struct.pack("HH36x", 0x0303, 51)
KEY = b"a key of sixteen"


# --- namespaces -------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)


def enter(path: str) -> None:
    """Move this thread to another network namespace"""
    fd = os.open(path, os.O_RDONLY)
    try:
        if LIBC.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    finally:
        os.close(fd)


class Host:
    """A network namespace, and the TCP and IP counters in it"""

    def __init__(self, name: str) -> None:
        self.path = f"/run/netns/{name}"
        with self.inside():
            # an open file keeps its namespace
            self.files = [open(f"/proc/thread-self/net/{f}", encoding="ascii") for f in ("netstat", "snmp")]

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """This thread is in it meanwhile"""
        enter(self.path)
        try:
            yield
        finally:
            enter("/proc/1/ns/net")

    def set_sysctl(self, name: str, value: str) -> str:
        """net.ipv4.NAME; returns what it was"""
        path = f"/proc/sys/net/ipv4/{name}"
        with self.inside():
            with open(path, encoding="ascii") as file:
                before = file.read().strip()
            with open(path, "w", encoding="ascii") as file:
                file.write(value)
        return before

    def counters(self) -> dict[str, int]:
        """All of them now; TcpExtTCPTimeouts, for example"""
        found: dict[str, int] = {}
        for file in self.files:
            file.seek(0)
            lines = file.read().splitlines()
            for names, values in zip(lines[::2], lines[1::2]):
                prefix, *words = names.split()
                found.update(zip((prefix[:-1] + w for w in words), map(int, values.split()[1:])))
        return found


# --- packets ----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Packet:
    """An IP packet on the wire: the ECN field of each IP header that can be read, the outermost
    first; bytes; TCP's flags and ports, or None and nothing if they cannot be read"""
    ecn: tuple[int, ...]
    length: int
    flags: int | None = None
    ports: tuple[int, ...] = ()


def ip_header(data: bytes, kind: int) -> tuple[int, int, bytes]:
    """ECN field, protocol, and what follows the header and IPv6's options"""
    if kind == ETH_P_IP:
        return data[1] & 3, data[9], data[(data[0] & 15) * 4:]
    protocol, rest = data[6], data[40:]
    while protocol == socket.IPPROTO_DSTOPTS:
        protocol, rest = rest[0], rest[(rest[1] + 1) * 8:]
    return data[1] >> 4 & 3, protocol, rest


def tunnelled(protocol: int, rest: bytes) -> tuple[int, bytes]:
    """What a tunnel's packet carries, and its Ethernet type; 0: not a tunnel that can be read"""
    if protocol == socket.IPPROTO_IPIP:
        return ETH_P_IP, rest
    if protocol == socket.IPPROTO_IPV6:
        return ETH_P_IPV6, rest
    if protocol == socket.IPPROTO_GRE:
        options, kind = struct.unpack_from("!HH", rest)
        return kind, rest[4 + 4 * (options & 0xb000).bit_count():]
    if protocol == socket.IPPROTO_UDP:
        port = struct.unpack_from("!H", rest, 2)[0]
        if port == 4789:                            # VXLAN
            return struct.unpack_from("!H", rest, 28)[0], rest[30:]
        if port == 6081:                            # Geneve
            inner = 16 + (rest[8] & 63) * 4
            return struct.unpack_from("!H", rest, inner + 12)[0], rest[inner + 14:]
    return 0, b""


def dissect(data: bytes, kind: int, length: int) -> Packet | None:
    """The packet that begins with @data"""
    fields = []
    while kind in (ETH_P_IP, ETH_P_IPV6):
        ecn, protocol, rest = ip_header(data, kind)
        fields.append(ecn)
        if protocol == socket.IPPROTO_TCP:
            return Packet(tuple(fields), length, rest[13], struct.unpack_from("!HH", rest))
        kind, data = tunnelled(protocol, rest)
    return Packet(tuple(fields), length) if fields else None


class Wire:
    """What arrives at a device. In a ring in memory, because a system call per packet would take
    longer than everything else."""
    FRAMES, SIZE, BLOCK = 1 << 13, 256, 1 << 16
    HEADER = struct.Struct("IIIHH")     # tpacket2_hdr: status, length, captured, mac, net
    ADDRESS = 32                        # of sockaddr_ll, in a frame

    def __init__(self, host: Host, device: str) -> None:
        with host.inside():
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
        self.sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        size = self.FRAMES * self.SIZE
        self.sock.setsockopt(SOL_PACKET, PACKET_RX_RING,
                             struct.pack("IIII", self.BLOCK, size // self.BLOCK, self.SIZE, self.FRAMES))
        self.ring = mmap.mmap(self.sock.fileno(), size)
        self.next = 0
        with host.inside():
            self.sock.bind((device, ETH_P_ALL))

    def packets(self) -> list[Packet]:
        """Those since the last call, or as many as the ring has room for"""
        found: list[Packet] = []
        while True:
            at = self.next * self.SIZE
            status, length, captured, _, net = self.HEADER.unpack_from(self.ring, at)
            if not status & TP_STATUS_USER:
                return found
            kind = struct.unpack_from("!H", self.ring, at + self.ADDRESS + 2)[0]
            packet = dissect(self.ring[at + net:at + net + captured], kind, length)
            if packet:
                found.append(packet)
            struct.pack_into("I", self.ring, at, 0)
            self.next = (self.next + 1) % self.FRAMES


def ecn_faults(packets: list[Packet], control: str, data: bool) -> list[str]:
    """Those whose ECN field @control does not use, and outer headers that differ from the inner
    one (RFC 6040). @data: this end has sent data."""
    wanted = FIELDS_OF.get(control, {NOT_ECT})
    faults = []
    seen: dict[tuple[int, ...], list[int]] = {}
    for n, p in enumerate(packets):
        if p.flags is None:
            if p.length < LONG:
                continue                            # WireGuard's own, neighbour discovery
        elif p.flags & (SYN | RST | FIN) or not p.flags & ACK:
            continue                                # HPCC++'s messages have no ACK
        seen.setdefault(p.ecn, []).append(n)
    for ecn, which in seen.items():
        if not set(ecn) <= wanted or len(set(ecn)) > 1:
            faults.append(f"{len(which)} of {len(packets)} packets with ECN field {'/'.join(map(str, ecn))}, "
                          f"the first is number {which[0]}: {packets[which[0]]}")
    if not data:
        return faults
    if not any(wanted & set(ecn) for ecn in seen):
        faults.append("no packet with its own ECN field")
    if control == "ldcp" and not any(ECT0 in ecn for ecn in seen):
        faults.append("no packet is ECT(0)")
    return faults


# --- what connections have beside their control ------------------------------------------------

def key_for(kind: str, peer: str) -> tuple[int, bytes]:
    """The socket option that has the segments from and to @peer signed, and its value. @peer is IPv4's, or
    that within IPv6."""
    if ":" in peer:
        address = struct.pack("HHI16sI100x", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, peer), 0)
    else:
        address = struct.pack("HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    if kind == "md5":
        return TCP_MD5SIG, address + struct.pack("BBHi80s", 0, 0, len(KEY), 0, KEY)
    return TCP_AO_ADD_KEY, address + struct.pack("64siIHBBBBBB80s", b"hmac(sha1)", 0, 0, 0, 32, 1, 1, 0, 0,
                                                 len(KEY), KEY)


def prepare(kind: str, sock: socket.socket, peer: str) -> None:
    """Before connect() or listen()"""
    if kind in ("md5", "ao"):
        sock.setsockopt(socket.IPPROTO_TCP, *key_for(kind, peer))
    elif kind == "minttl":                          # RFC 5082; a router is between the hosts
        sock.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 254)


def connected(kind: str, sock: socket.socket) -> None:
    """After connect() or accept()"""
    if kind == "tls":
        sock.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        sock.setsockopt(SOL_TLS, TLS_TX, TLS_KEY)
        sock.setsockopt(SOL_TLS, TLS_RX, TLS_KEY)


# --- one cell ---------------------------------------------------------------------------------

@dataclass(frozen=True)
class Way:
    """How the client reaches the server"""
    name: str = "direct"
    to: str = "10.0.0.1"
    port: int = 5299
    host: str = "h1"
    device: str = ""            # to bind to
    wire: str = "p1"            # where its packets enter sw
    reno: str = ""              # a control that becomes Reno here

    @classmethod
    def parse(cls, text: str) -> "Way":
        """NAME,to=ADDRESS,port=PORT,..."""
        name, *words = text.split(",")
        values = dict(w.split("=", 1) for w in words)
        return cls(name, **{k: int(v) if k == "port" else v for k, v in values.items()})  # type: ignore[arg-type]


@dataclass
class Cell:
    """What was measured"""
    control: str
    way: Way
    seconds: float = 0.0
    cc: str = ""                # the control at the end
    port: int = 0               # the client's
    marks: int = 0              # that the sender knows of
    retransmitted: int = 0
    timeouts: int = 0
    paws: int = 0
    reneging: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (f"{self.way.name} {self.control}: cc={self.cc} seconds={self.seconds:.6f} timeouts={self.timeouts} "
                f"retransmitted={self.retransmitted} marks={self.marks} paws={self.paws} reneging={self.reneging}")


class Client(talk.Talk):
    """talk.py's client, with the steps above"""

    def __init__(self, world: "World", way: Way, control: str) -> None:
        self.world, self.way, self.under_test = world, way, control
        with world.host(way.host).inside():
            super().__init__(way.to, way.port)
        if control == "ldcp":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, LDCP_MARK)
        if way.device:
            self.do_bind(way.device)
        prepare(world.args.beside, self.sock, way.to)

    def do_connect(self, _: str = "") -> None:
        """As in talk.py"""
        if not self.connected:
            super().do_connect()
            connected(self.world.args.beside, self.sock)

    def do_pairs(self, count: str) -> None:
        """See above, as for all that follow"""
        for other in self.world.controls:
            if other != self.under_test:
                self.do_cc(other)
                self.do_up(count)
                self.do_cc(self.under_test)
                self.do_up(count)

    def do_slowly(self, value: str) -> None:
        """Messages at intervals"""
        count, size, gap = value.split(",")
        for _ in range(int(count)):
            self.do_up(size)
            time.sleep(float(gap))

    def do_sendfile(self, count: str) -> None:
        """sendfile()"""
        self.do_connect()
        size = int(count) - talk.HEADER.size
        self.sock.sendall(talk.HEADER.pack(size, 0))
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            self.sock.sendfile(file)

    def do_sysctl(self, text: str) -> None:
        """Written in this process"""
        host, _, rest = text.partition(":")
        name, _, value = rest.partition("=")
        self.world.host(host).set_sysctl(name, value)

    def do_restore(self, _: str) -> None:
        """Read the state of the old socket, close it without a FIN, give the state to the new one"""
        tcp = socket.IPPROTO_TCP
        old, queues = self.sock, {}
        old.setsockopt(tcp, TCP_REPAIR, 1)
        for queue in RECV_QUEUE, SEND_QUEUE:
            old.setsockopt(tcp, TCP_REPAIR_QUEUE, queue)
            queues[queue] = old.getsockopt(tcp, TCP_QUEUE_SEQ)
        window = old.getsockopt(tcp, TCP_REPAIR_WINDOW, 20)
        stamp = old.getsockopt(tcp, TCP_TIMESTAMP)
        info = old.getsockopt(tcp, socket.TCP_INFO, 256)
        mss, address = struct.unpack_from("I", info, 16)[0], old.getsockname()
        old.close()
        with self.world.host(self.way.host).inside():
            new = self.sock = socket.socket(self.peer[0])
        new.setsockopt(tcp, TCP_REPAIR, 1)
        new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.do_cc(self.under_test)
        for queue, seq in queues.items():
            new.setsockopt(tcp, TCP_REPAIR_QUEUE, queue)
            new.setsockopt(tcp, TCP_QUEUE_SEQ, seq)
        new.bind(address)
        new.connect(self.peer[4])
        options = [(2, mss)]
        if info[TCPI_OPTIONS] & OPT_WSCALE:
            options.append((3, info[6] & 15 | (info[6] >> 4) << 16))
        if info[TCPI_OPTIONS] & OPT_SACK:
            options.append((4, 0))
        if info[TCPI_OPTIONS] & OPT_TIMESTAMPS:
            options.append((8, 0))
        new.setsockopt(tcp, TCP_REPAIR_OPTIONS, b"".join(struct.pack("II", *o) for o in options))
        new.setsockopt(tcp, TCP_TIMESTAMP, stamp)
        new.setsockopt(tcp, TCP_REPAIR_WINDOW, window)
        new.setsockopt(tcp, TCP_REPAIR, 0)


class World:
    """The situation, and what stays from one cell to the next"""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.controls: list[str] = [*YARDSTICK, *(c for c in args.controls if c not in args.without.split(","))]
        self.hosts: dict[str, Host] = {}
        self.served: socket.socket | None = None
        self.accecn = os.path.exists("/proc/sys/net/ipv4/tcp_ecn_option")
        # the client's packets enter sw at p1 and others, the server's at egress
        self.wires = {d: Wire(self.host("sw"), d) for d in {w.wire for w in args.way} | {"egress"}}

    def host(self, name: str) -> Host:
        """A namespace of the topology"""
        if name not in self.hosts:
            self.hosts[name] = Host(self.args.ns + name)
        return self.hosts[name]

    def serve(self, control: str, way: Way) -> socket.socket:
        """Start the server. A new one for each cell: a listener whose control has no ECN refuses
        it to a SYN that is ECT."""
        child = self.args.child
        options = argparse.Namespace(port=way.port, mark=LDCP_MARK if control == "ldcp" else None,
                                     fastopen=self.args.fastopen, handle=self.answer,
                                     cc="reno" if child else control, child_cc=control if child else None)
        with self.host("r").inside():
            server = talk.listener(options)
            prepare(self.args.beside, server, "::ffff:10.0.1.1")
        talk.THREADS.start(talk.accept_all, server, options)
        return server

    def answer(self, conn: socket.socket) -> None:
        """talk.py's server; the connection's control is of interest"""
        self.served = conn
        connected(self.args.beside, conn)
        talk.answer(conn)

    def connect(self, cell: Cell) -> None:
        """The steps, and what the socket knows after them"""
        client = Client(self, cell.way, cell.control)
        start = time.monotonic()
        try:
            # a listener without ECN, such as Reno's, refuses it to a SYN that is ECT
            if not self.args.steps[0].startswith("connect-cc"):
                client.do_cc("reno" if self.args.child else cell.control)
            for step in self.args.steps:
                name, _, value = step.replace("%", cell.control).partition("=")
                client.step(name, value)
            cell.seconds = time.monotonic() - start
            judged = self.served if self.args.child and self.served else client.sock
            control = judged.getsockopt(socket.IPPROTO_TCP, talk.TCP_CONGESTION, 16)
            info = client.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            cell.cc = control.rstrip(b"\0").decode()
            cell.marks = struct.unpack_from("I", info, DELIVERED_CE)[0]
            cell.port = client.sock.getsockname()[1]
            self.look_at_packets(cell)
        finally:
            client.sock.close()

    def look_at_packets(self, cell: Cell) -> None:
        """Faults of the ECN fields at both ends"""
        # MPTCP's further subflows have other ports at the client
        port = cell.way.port if self.args.beside == "mptcp" else cell.port
        seen = {device: [p for p in wire.packets() if not p.ports or port in p.ports]
                for device, wire in self.wires.items()}
        for end, device in ("client", cell.way.wire), ("server", "egress"):
            if self.args.ecn in ("both", end):
                sends = end == "client" or self.args.ecn == end
                cell.faults += [f"{end}: {f}" for f in ecn_faults(seen[device], cell.cc, sends)]

    def run(self, control: str, way: Way) -> Cell:
        """One cell"""
        cell = Cell(control, way)
        ecn = {"prague": 3 if self.accecn else 1, "dctcp_ref": 1, "ldcp": 1}.get(control, self.args.plain_ecn)
        ends = [self.host(way.host), self.host("r")]
        for end in ends:
            end.set_sysctl("tcp_ecn", str(ecn))
        server = self.serve(control, way)
        for wire in self.wires.values():
            wire.packets()
        before = [end.counters() for end in ends]
        signal.alarm(self.args.limit)
        try:
            self.connect(cell)
        except (OSError, subprocess.CalledProcessError) as error:
            cell.faults.append(str(error))
        finally:
            signal.alarm(0)
        after = [end.counters() for end in ends]
        server.shutdown(socket.SHUT_RDWR)
        server.close()

        def more(name: str) -> int:
            return sum(now[name] - then[name] for now, then in zip(after, before))
        cell.timeouts, cell.retransmitted = more("TcpExtTCPTimeouts"), more("TcpRetransSegs")
        cell.paws, cell.reneging = more("TcpExtPAWSEstab"), more("TcpExtTCPSACKReneging")
        cell.faults += [f"{names} did not increase" for names in self.args.shows
                        if not any(more(name if "Ext" in name else "TcpExt" + name) for name in names.split(","))]
        if self.args.sees_marks and cell.cc in FIELDS_OF and not cell.marks:
            cell.faults.append("no mark reached the sender")
        time.sleep(0.1)                             # until the connection has ended
        return cell

    def judge(self, cell: Cell, yard: list[Cell]) -> None:
        """Add what is worse than with the yardstick"""
        becomes = [*self.args.becomes_reno, cell.way.reno, *([] if self.accecn else ["prague"])]
        wanted = cell.control + ("_reno" if cell.control in becomes else "")
        if cell.cc != wanted:
            cell.faults.append(f"ended with {cell.cc}")
        timeouts = max(y.timeouts for y in yard)
        if cell.timeouts > timeouts:
            cell.faults.append(f"the yardstick has {timeouts} timeouts")
        if cell.paws or cell.reneging:
            cell.faults.append("PAWS or SACK reneging")
        share = dict(self.args.yields).get(cell.control, self.args.share)
        slowest = max(y.seconds for y in yard)
        if cell.seconds * share > slowest + 0.001:
            cell.faults.append(f"the yardstick needs {slowest:.6f} s")

    def cells(self) -> list[Cell]:
        """All of them, judged"""
        found = []
        for control in self.controls:
            for way in self.args.way:
                found.append(self.run(control, way))
        for cell in found:
            self.judge(cell, [y for y in found if y.way == cell.way and y.control in YARDSTICK])
        return found


def time_over(_signal: int, _frame: FrameType | None) -> None:
    """SIGALRM's handler"""
    raise TimeoutError("not done in time")


def share_of(text: str) -> tuple[str, float]:
    """CONTROL=SHARE"""
    control, _, share = text.partition("=")
    return control, float(share)


def main() -> int:
    """Run the cells that the command line describes"""
    parser = argparse.ArgumentParser(prog="world.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ns", required=True, help="what the names of the namespaces begin with")
    parser.add_argument("--share", type=float, default=0.8, help="least goodput, of the slower yardstick's")
    parser.add_argument("--yields", type=share_of, action="append", default=[], metavar="CONTROL=SHARE",
                        help="another share: the control's task is to be slower here")
    parser.add_argument("--way", type=Way.parse, action="append", default=[],
                        metavar="NAME,to=ADDRESS,port=PORT,host=HOST,device=DEVICE,wire=DEVICE")
    parser.add_argument("--ecn", choices=("both", "client", "server", "off"), default="both",
                        help="whose ECN fields are checked")
    parser.add_argument("--plain-ecn", type=int, default=2, help="tcp_ecn for controls without ECN")
    parser.add_argument("--sees-marks", action="store_true", help="marks must reach senders with ECN")
    parser.add_argument("--shows", action="append", default=[], metavar="COUNTER,...",
                        help="of these counters one increases in each cell; TcpExt's without that prefix")
    parser.add_argument("--with", dest="beside", default="", choices=("mptcp", "tls", "md5", "ao", "minttl"),
                        help="MPTCP, TLS in the kernel, signatures, or segments from one hop away only")
    parser.add_argument("--becomes-reno", default="", help="controls that fall back to Reno here")
    parser.add_argument("--without", default="", help="controls that have no cell here")
    parser.add_argument("--child", action="store_true", help="set the server's control after accept()")
    parser.add_argument("--fastopen", action="store_true",
                        help="the server allows Fast Open; a first connection gets the cookie")
    parser.add_argument("--sysctl", action="append", default=[], metavar="HOST:NAME=VALUE",
                        help="of net.ipv4, until the end")
    parser.add_argument("--limit", type=int, default=30, help="seconds for one cell")
    parser.add_argument("words", nargs="+", metavar="CONTROL... -- STEP", help="controls, then steps")
    argv = sys.argv[1:]
    at = argv.index("--") if "--" in argv else len(argv)
    args = parser.parse_args(argv[:at])
    args.controls, args.steps = args.words, argv[at + 1:]
    args.way = args.way or [Way()]
    args.becomes_reno = args.becomes_reno.split(",")
    talk.WAKE, talk.POLL, talk.SLOWER = 1 << 15, 0.0005, 1.02       # system calls are slow in the lab
    talk.PROTOCOL = IPPROTO_MPTCP if args.beside == "mptcp" else 0
    signal.signal(signal.SIGALRM, time_over)
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    world = World(args)
    old = []
    for text in args.sysctl:
        host, name, value = text.replace("=", ":", 1).split(":")
        old.append((host, name, world.host(host).set_sysctl(name, value)))
    if args.fastopen:
        world.run(world.controls[0], args.way[0])
    cells = world.cells()
    for host, name, value in old:
        world.host(host).set_sysctl(name, value)
    bad = False
    for cell in cells:
        print(cell)
        for fault in cell.faults:
            bad = True
            print(f"FAULT {cell.way.name} {cell.control}: {fault}")
    with contextlib.suppress(BlockingIOError):
        while True:
            line = os.read(log, 8192).decode(errors="replace")
            if any(word in line for word in ("WARNING", "BUG:", "Oops")):
                bad = True
                print(f"FAULT kernel: {line.strip()}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
