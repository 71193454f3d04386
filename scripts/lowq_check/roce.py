# SPDX-License-Identifier: GPL-2.0
"""RoCEv2: a queue pair at the peer, packets for it that look marked, and the CNPs for them.

The queue pair is connected with one that does not exist here, so no other connection is touched.
"""

from __future__ import annotations

import ipaddress
import select
import site
import socket
import struct
import time
import zlib
from importlib import import_module
from typing import Any

from lowq_common.errors import Refused
from lowq_common.values import Json

from .packets import ETH_P_ALL, PACKET_OUTGOING, SNAP, Sender, Way, attach, ip_header, port_filter

PORT = 4791
SEND_ONLY, CNP = 0x04, 0x81
CE = 3
REMOTE_QP, FIRST_PSN = 0x0B1F00, 0x100
TIMES, GAP_S = 4, 0.02  # with the first one roce_rcm learns of the queue pair
MOST = 16  # packets, as long as no CNP comes: some may be lost

QPT_RC, MTU_1024 = 2, 3  # infiniband/verbs.h; pyverbs has them elsewhere in each of its versions
GIDS = 32


def gid_of(address: str) -> ipaddress.IPv6Address:
    return ipaddress.IPv6Address(address if ":" in address else f"::ffff:{address}")


class QueuePair:
    """Ready to receive from an address; gone with the object"""

    def __init__(self, local: str, remote: str) -> None:
        site.main()  # the programs start without Debian's modules
        try:
            self.addr, self.cq, self.device, self.pd, self.qp = (
                import_module("pyverbs." + name) for name in ("addr", "cq", "device", "pd", "qp"))
        except ImportError:
            raise Refused("no python3-pyverbs") from None
        try:
            self.made = self.ready(gid_of(local), gid_of(remote))
        except Exception as error:  # pyverbs has several
            raise error if isinstance(error, Refused) else Refused(f"verbs: {error}") from None
        self.number: int = self.made[-1].qp_num

    def ready(self, local: ipaddress.IPv6Address, remote: ipaddress.IPv6Address) -> list[Any]:
        context, index = self.device_with(local)
        domain, queue = self.pd.PD(context), self.cq.CQ(context, 1)
        pair = self.qp.QP(domain, self.qp.QPInitAttr(qp_type=QPT_RC, scq=queue, rcq=queue, cap=self.qp.QPCap()))
        attr = self.qp.QPAttr(port_num=1, path_mtu=MTU_1024)
        attr.dest_qp_num, attr.rq_psn, attr.max_dest_rd_atomic, attr.min_rnr_timer = REMOTE_QP, FIRST_PSN, 1, 12
        way = self.addr.GlobalRoute(dgid=self.addr.GID(remote.exploded), sgid_index=index, hop_limit=64)
        attr.ah_attr = self.addr.AHAttr(gr=way, is_global=1, port_num=1)
        pair.to_rtr(attr)
        return [context, domain, queue, pair]

    def device_with(self, gid: ipaddress.IPv6Address) -> tuple[Any, int]:
        """-> an open RDMA device that has this address, and the index of its GID"""
        for device in self.device.get_device_list():
            context = self.device.Context(name=device.name.decode() if isinstance(device.name, bytes) else device.name)
            for index in range(GIDS):
                try:
                    if ipaddress.IPv6Address(context.query_gid(1, index).gid) == gid:
                        return context, index
                except Exception:  # the end of the table
                    break
            context.close()
        raise Refused("no RDMA device")

    def close(self) -> None:
        for one in reversed(self.made):
            one.close()


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
