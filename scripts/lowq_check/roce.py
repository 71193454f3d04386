# SPDX-License-Identifier: GPL-2.0
"""RoCEv2: a queue pair at the peer, packets for it that look marked, and the CNPs for them.

The queue pair is connected with one that does not exist here, so no other connection is touched.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import select
import socket
import struct
import time
import zlib

from lowq_common.errors import Refused
from lowq_common.values import Json

from .packets import ETH_P_ALL, PACKET_OUTGOING, SNAP, Sender, Way, attach, ip_header, port_filter

PORT = 4791
SEND_ONLY, CNP = 0x04, 0x81
CE = 3
REMOTE_QP, FIRST_PSN = 0x0B1F00, 0x100
TIMES, GAP_S = 4, 0.02  # with the first one roce_rcm learns of the queue pair
MOST = 16  # packets, as long as no CNP comes: some may be lost

# infiniband/verbs.h
QPT_RC, INIT, RTR, MTU_1024 = 2, 1, 2, 3
STATE, ACCESS, PKEY, PORT_BIT, AV, PATH_MTU = 1 << 0, 1 << 3, 1 << 4, 1 << 5, 1 << 7, 1 << 8
RQ_PSN, RNR_TIMER, RD_ATOMIC, DEST_QPN = 1 << 12, 1 << 15, 1 << 17, 1 << 20
GIDS = 32


class Cap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("send_wr", "recv_wr", "send_sge", "recv_sge", "inline")]


class InitAttr(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("send_cq", ctypes.c_void_p), ("recv_cq", ctypes.c_void_p),
                ("srq", ctypes.c_void_p), ("cap", Cap), ("type", ctypes.c_int), ("all", ctypes.c_int)]


class Grh(ctypes.Structure):
    _fields_ = [("gid", ctypes.c_uint64 * 2), ("flow_label", ctypes.c_uint32), ("gid_index", ctypes.c_uint8),
                ("hop_limit", ctypes.c_uint8), ("traffic_class", ctypes.c_uint8)]


class Ah(ctypes.Structure):
    _fields_ = [("grh", Grh), ("lid", ctypes.c_uint16), ("sl", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("rate", ctypes.c_uint8), ("is_global", ctypes.c_uint8), ("port", ctypes.c_uint8)]


class Attr(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in (
            "state", "current", "mtu", "migration", "qkey", "rq_psn", "sq_psn", "dest_qpn", "access")],
        ("cap", Cap), ("ah", Ah), ("alternative", Ah), ("pkey", ctypes.c_uint16), ("alt_pkey", ctypes.c_uint16),
        *[(name, ctypes.c_uint8) for name in (
            "notify", "draining", "rd_atomic", "dest_rd_atomic", "rnr_timer", "port", "timeout", "retries",
            "rnr_retries", "alt_port", "alt_timeout")],
        ("rate_limit", ctypes.c_uint32),
    ]


def gid_of(address: str) -> bytes:
    packed = ipaddress.ip_address(address).packed
    return packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed


class QueuePair:
    """Ready to receive from an address; gone with the object"""

    def __init__(self, local: str, remote: str) -> None:
        try:
            self.verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
        except OSError:
            raise Refused("no libibverbs1") from None
        for name in ("get_device_list", "open_device", "alloc_pd", "create_cq", "create_qp"):
            getattr(self.verbs, "ibv_" + name).restype = ctypes.c_void_p
        self.context, index = self.device_with(gid_of(local))
        self.pd = self.made("alloc_pd", self.context)
        self.cq = self.made("create_cq", self.context, 1, None, None, 0)
        init = InitAttr(None, self.cq, self.cq, None, Cap(1, 1, 1, 1, 0), QPT_RC, 0)
        self.qp = self.made("create_qp", self.pd, ctypes.byref(init))
        self.number = ctypes.c_uint32.from_address(self.qp + 6 * ctypes.sizeof(ctypes.c_void_p) + 4).value
        attr = Attr(state=INIT, port=1)
        self.modify(attr, STATE | PKEY | PORT_BIT | ACCESS)
        attr = Attr(state=RTR, mtu=MTU_1024, dest_qpn=REMOTE_QP, rq_psn=FIRST_PSN, dest_rd_atomic=1, rnr_timer=12)
        attr.ah.is_global, attr.ah.port = 1, 1
        attr.ah.grh.gid_index, attr.ah.grh.hop_limit = index, 64
        ctypes.memmove(attr.ah.grh.gid, gid_of(remote), 16)
        self.modify(attr, STATE | AV | PATH_MTU | DEST_QPN | RQ_PSN | RD_ATOMIC | RNR_TIMER)

    def made(self, name: str, first: int, *rest: object) -> int:
        got = getattr(self.verbs, "ibv_" + name)(ctypes.c_void_p(first), *rest)
        if not got:
            raise Refused(f"ibv_{name}: {os.strerror(ctypes.get_errno())}")
        return int(got)

    def modify(self, attr: Attr, mask: int) -> None:
        error = self.verbs.ibv_modify_qp(ctypes.c_void_p(self.qp), ctypes.byref(attr), mask)
        if error:
            raise Refused(f"ibv_modify_qp: {os.strerror(error)}")

    def device_with(self, gid: bytes) -> tuple[int, int]:
        """-> an open RDMA device that has this address, and the index of its GID"""
        count = ctypes.c_int(0)
        devices = self.verbs.ibv_get_device_list(ctypes.byref(count))
        found = (ctypes.c_uint8 * 16)()
        for at in range(count.value if devices else 0):
            device = ctypes.c_void_p.from_address(devices + at * ctypes.sizeof(ctypes.c_void_p))
            context = self.verbs.ibv_open_device(device)
            if not context:
                continue
            for index in range(GIDS):
                if self.verbs.ibv_query_gid(ctypes.c_void_p(context), 1, index, ctypes.byref(found)):
                    break
                if bytes(found) == gid:
                    return int(context), index
            self.verbs.ibv_close_device(ctypes.c_void_p(context))
        raise Refused("no RDMA device")

    def close(self) -> None:
        for name, what in (("destroy_qp", self.qp), ("destroy_cq", self.cq), ("dealloc_pd", self.pd),
                           ("close_device", self.context)):
            getattr(self.verbs, "ibv_" + name)(ctypes.c_void_p(what))


# --- packets --------------------------------------------------------------------------


def icrc(packet: bytes, ip_bytes: int) -> bytes:
    """Of an IP packet up to where the ICRC begins: fields that routers change count as ones"""
    covered = bytearray(packet)
    if ip_bytes == 20:
        ones = [1, 8, 10, 11]
    else:
        ones = [1, 2, 3, 7]
        covered[0] |= 0x0F
    for at in (*ones, ip_bytes + 6, ip_bytes + 7, ip_bytes + 12):
        covered[at] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(covered)))


def marked_packet(way: Way, number: int) -> bytes:
    """An older packet of the connection, with CE: the receiver discards it as a duplicate"""
    body = struct.pack("!BBHII", SEND_ONLY, 0, 0xFFFF, number, FIRST_PSN - 1) + bytes(16)
    udp = struct.pack("!HHHH", 0xC000, PORT, 8 + len(body) + 4, 0)
    head = ip_header(way, socket.IPPROTO_UDP, len(udp) + len(body) + 4, CE, 64)
    packet = head + udp + body
    return packet + icrc(packet, len(head))


def cnps(sock: socket.socket, seconds: float) -> int:
    """How many CNPs for our queue pair arrive"""
    count = 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and select.select([sock], [], [], left)[0]:
        data, address = sock.recvfrom(SNAP)
        at = (40 if data[0] >> 4 == 6 else (data[0] & 15) * 4) + 8
        if address[2] != PACKET_OUTGOING and len(data) >= at + 12 and data[at] == CNP:
            count += int.from_bytes(data[at + 5:at + 8], "big") == REMOTE_QP
    return count


def marked(sender: Sender, way: Way, number: int) -> Json:
    """Sends marked packets to the peer's queue pair; -> how many, and the CNPs that came back"""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as sock:
        attach(sock, port_filter(socket.IPPROTO_UDP, PORT))
        count = 0
        sent = 0
        while sent < TIMES or sent < MOST and not count:
            sender.send(way, marked_packet(way, number))
            sent += 1
            count += cnps(sock, GAP_S)
        return {"sent": sent, "cnps": count + cnps(sock, 0.2)}


def counters() -> Json:
    """Of roce_rcm; {} without root or module"""
    try:
        with open("/sys/kernel/debug/roce_rcm/counters", encoding="ascii") as file:
            words = file.read().split()
    except OSError:
        return {}
    return {key: int(value) for key, value in zip(words[::2], words[1::2]) if value.isdigit()}
