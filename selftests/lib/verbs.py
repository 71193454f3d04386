#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""verbs - does with one queue pair what rocegen does not, for tests

    verbs.py ud OPTIONS ADDRESS...         sends datagrams to each address in turn, ROUNDS
                                           times, and then to the last one only
    verbs.py reconnect OPTIONS A B         sends to A, then resets the queue pair, connects it
                                           to B and sends there

Nobody takes what is sent: no queue pair has the number PEER_QP. Prints the queue pair's number
first, and a line for each address when it begins with it."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import sys
import time

from pyverbs.addr import AH, AHAttr, GID, GlobalRoute  # type: ignore
from pyverbs.cq import CQ  # type: ignore
from pyverbs.device import Context  # type: ignore
from pyverbs.enums import (  # type: ignore
    IBV_ACCESS_LOCAL_WRITE, IBV_MTU_1024, IBV_QP_STATE, IBV_QPS_RESET, IBV_QPT_UC, IBV_QPT_UD, IBV_SEND_SIGNALED,
    IBV_WR_SEND)
from pyverbs.mr import MR  # type: ignore
from pyverbs.pd import PD  # type: ignore
from pyverbs.pyverbs_error import PyverbsRDMAError  # type: ignore
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr  # type: ignore
from pyverbs.wr import SendWR, SGE  # type: ignore

PEER_QP = 0xfffff0
QKEY = 0x11111111
SIZE = 1024  # bytes of each message: one packet
DEPTH = 64


def route(address: str, gid: int, traffic_class: int = 0) -> AHAttr:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        ip = ipaddress.IPv6Address(f"::ffff:{address}")
    way = GlobalRoute(dgid=GID(ip.exploded), sgid_index=gid, hop_limit=64, traffic_class=traffic_class)
    return AHAttr(gr=way, is_global=1, port_num=1)


class Sender:
    """A queue pair that sends messages and forgets them"""

    def __init__(self, device: str, gid: int, kind: int) -> None:
        self.context = Context(name=device)
        self.gid = gid
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 2 * DEPTH)
        self.mr = MR(self.pd, SIZE, IBV_ACCESS_LOCAL_WRITE)
        self.qp = QP(self.pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=DEPTH)))
        print(self.qp.qp_num, flush=True)

    def datagrams(self) -> None:
        """Brings it up for datagrams"""
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.qp.to_rts(attr)

    def connect(self, address: str) -> None:
        attr = QPAttr(port_num=1)
        attr.dest_qp_num, attr.path_mtu = PEER_QP, IBV_MTU_1024
        attr.ah_attr = route(address, self.gid)
        self.qp.to_rts(attr)

    def reset(self) -> None:
        self.qp.modify(QPAttr(qp_state=IBV_QPS_RESET), IBV_QP_STATE)

    def send(self, ah: AH | None = None) -> None:
        """Sends a message if there is room for one"""
        self.cq.poll(DEPTH)
        wr = SendWR(num_sge=1, sg=[SGE(self.mr.buf, SIZE, self.mr.lkey)], opcode=IBV_WR_SEND,
                    send_flags=IBV_SEND_SIGNALED)
        if ah:
            wr.set_wr_ud(ah, PEER_QP, QKEY)
        try:
            self.qp.post_send(wr)
        except PyverbsRDMAError as e:
            if e.error_code != errno.ENOMEM:
                raise


def ud(args: argparse.Namespace) -> None:
    sender = Sender(args.dev, args.gid, IBV_QPT_UD)
    sender.datagrams()
    handles = [AH(sender.pd, attr=route(address, args.gid, args.traffic_class)) for address in args.addresses]
    end = time.monotonic() + args.duration
    for n in range(args.rounds * len(handles)):
        sender.send(handles[n % len(handles)])
        time.sleep(args.gap)
    print("last", flush=True)
    while time.monotonic() < end:
        sender.send(handles[-1])
        time.sleep(args.gap)


def reconnect(args: argparse.Namespace) -> None:
    sender = Sender(args.dev, args.gid, IBV_QPT_UC)
    for address in args.addresses:
        sender.connect(address)
        print(address, flush=True)
        end = time.monotonic() + args.duration
        while time.monotonic() < end:
            sender.send()
            time.sleep(args.gap)
        sender.reset()


def main() -> int:
    parser = argparse.ArgumentParser(prog="verbs.py", description="Does with one queue pair what rocegen does not.")
    parser.add_argument("what", choices=("ud", "reconnect"))
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS")
    parser.add_argument("--dev", required=True, help="RDMA device")
    parser.add_argument("--gid", type=int, required=True, help="index of its own address")
    parser.add_argument("--rounds", type=int, default=1, help="of ud (1)")
    parser.add_argument("--traffic-class", type=int, default=0, help="of ud's packets (0)")
    parser.add_argument("--gap", type=float, default=0.0005, help="seconds between two messages (0.0005)")
    parser.add_argument("--duration", type=float, default=1, help="seconds, of reconnect for each address (1)")
    args = parser.parse_args()
    {"ud": ud, "reconnect": reconnect}[args.what](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
