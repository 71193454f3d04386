# SPDX-License-Identifier: GPL-2.0
"""TCP_INFO as names and numbers, and the connections of this namespace with theirs."""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Iterator, NamedTuple

from .netlink import HEADER, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, attributes, number, text

TCP_CONGESTION = 13

# struct tcp_info (linux/tcp.h). Older kernels return the beginning of it.
FIELDS = (
    ("B", "state ca_state retransmits probes backoff options scale bits"),
    ("I", "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv"
          " last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space"
          " total_retrans"),
    ("Q", "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    ("I", "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    ("Q", "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    ("I", "delivered delivered_ce"),
    ("Q", "bytes_sent bytes_retrans"),
    ("I", "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash"),
    ("H", "total_rto total_rto_recoveries"),
    ("I", "total_rto_time received_ce delivered_e1 delivered_e0 delivered_ce_bytes received_e1 received_e0"
          " received_ce_bytes ecn"),
)
LAYOUT = [(letter, name) for letter, names in FIELDS for name in names.split()]
OPT_ECN, OPT_ECN_SEEN = 8, 16
NO_ECN, RFC3168, ACCECN = "none", "rfc3168", "accecn"
MODES = (NO_ECN, RFC3168, ACCECN, NO_ECN)

Info = dict[str, int]


def layout(size: int) -> tuple[struct.Struct, list[str]]:
    """Of the fields that fit into so many bytes"""
    letters, names = "=", []
    for letter, name in LAYOUT:
        if struct.calcsize(letters + letter) > size:
            break
        letters += letter
        names.append(name)
    return struct.Struct(letters), names


LAYOUTS: dict[int, tuple[struct.Struct, list[str]]] = {}


def parse(data: bytes) -> Info:
    """Fields that the kernel does not have are missing."""
    if len(data) not in LAYOUTS:
        LAYOUTS[len(data)] = layout(len(data))
    known, names = LAYOUTS[len(data)]
    return dict(zip(names, known.unpack_from(data)))


def of(sock: socket.socket) -> Info:
    return parse(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))


def control_of(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).split(b"\0")[0].decode("ascii", "replace")


def ecn_mode(info: Info) -> str:
    """What the handshake has negotiated"""
    if "ecn" in info:
        return MODES[info["ecn"] & 3]
    return RFC3168 if info.get("options", 0) & OPT_ECN else NO_ECN


def base_control(name: str) -> tuple[str, bool]:
    """-> the control that was asked for, and whether this is the Reno that it falls back to"""
    for ending in ("_reno", "-reno"):
        if name.endswith(ending):
            return name.removesuffix(ending), True
    return name, False


NO_TELEMETRY, WITHOUT_ECN, WITHOUT_ACCECN, ANOTHER = "no-telemetry", "no-ecn", "no-accecn", "other"


def fallback_reason(base: str, info: Info) -> str:
    """Why a connection of this control runs as Reno, as far as the connection shows it"""
    mode = ecn_mode(info)
    if base == "hpccpp":
        return NO_TELEMETRY
    if mode == NO_ECN:
        return WITHOUT_ECN
    return WITHOUT_ACCECN if base == "prague" and mode == RFC3168 else ANOTHER


# --- inet_diag ----------------------------------------------------------------------

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_CGROUP_ID = 2, 4, 21
ESTABLISHED = 1
ID_AT, COOKIE_AT, MESSAGE = 4, 44, 72  # of inet_diag_msg: where its addresses and its cookie are, and its length


class Connection(NamedTuple):
    peer: str
    control: str
    info: Info
    cookie: int  # unlike its ports, no other connection ever has it
    cgroup: int  # the inode of its cgroup's directory; 0: unknown


def connections() -> Iterator[Connection]:
    """The established ones of this network namespace, as the kernel hands them over: some at a time"""
    yield from dump(socket.AF_INET)
    yield from dump(socket.AF_INET6)


def dump(family: int) -> Iterator[Connection]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        link.settimeout(5)
        wanted = 1 << INET_DIAG_INFO - 1 | 1 << INET_DIAG_CONG - 1
        request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, wanted, 0, 1 << ESTABLISHED)
        request += bytes(40) + b"\xff" * 8
        link.send(HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + request)
        while True:
            data = link.recv(1 << 18)
            at = 0
            while at + HEADER.size <= len(data):
                length, kind = HEADER.unpack_from(data, at)[:2]
                if kind == NLMSG_ERROR:  # no tcp_diag
                    error = -struct.unpack_from("=i", data, at + HEADER.size)[0]
                    raise OSError(error, f"inet_diag: {os.strerror(error)}")
                if kind == NLMSG_DONE or length < HEADER.size:
                    return
                one = message(data[at + HEADER.size:at + length])
                if one:
                    yield one
                at += length + 3 & ~3


def message(data: bytes) -> Connection | None:
    if len(data) < MESSAGE:
        return None
    six = data[0] == socket.AF_INET6
    packed = data[ID_AT + 20:ID_AT + 20 + (16 if six else 4)]
    peer = socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, packed)
    had = attributes(data, MESSAGE)
    cookie = int.from_bytes(data[COOKIE_AT:COOKIE_AT + 8], sys.byteorder)
    return Connection(peer.removeprefix("::ffff:"), text(had.get(INET_DIAG_CONG, b"")), parse(had[INET_DIAG_INFO]) if INET_DIAG_INFO in had else {}, cookie,
                      number(had.get(INET_DIAG_CGROUP_ID)))
