# SPDX-License-Identifier: GPL-2.0
"""What the kernel's RED can do and tc has no word for: a weight of 1, with which it looks at the
queue itself and not at an average (Wlog 0; tc sends 1 to 31). One message of rtnetlink for each
queue, which changes the weight and repeats the rest as the kernel shows it."""

from __future__ import annotations

import struct

from lowq_common import queues
from lowq_common.errors import Refused
from lowq_common.netlink import NLM_F_ACK, RTM_NEWQDISC, TCMSG, Netlink, attribute, attributes
from lowq_common.system import Namespace

PARMS, STAB = 1, 2  # of TCA_RED_ and of TCA_GRED_
TCA_RED_MAX_P, TCA_RED_FLAGS, TCA_GRED_MAX_P = 3, 4, 4
MAX_DPS = 16
RED = struct.Struct("=IIIBBBB")  # limit, min, max, Wlog, Plog, Scell_log, flags
GRED = struct.Struct("=10I4B2I")  # limit, min, max, DP, six counters, Wlog, Plog, Scell_log, prio, two counters
# How an average shrinks while the queue is idle, as shifts: it is 0 at once
FORGET = bytes([31]) * 256


def red_options(shown: bytes) -> list[bytes]:
    """Of a red as the kernel shows it: the same with weight 1"""
    was = attributes(shown)
    limit, low, high, _, p, cell, flags = RED.unpack_from(was[PARMS])
    if TCA_RED_FLAGS in was:
        flags = 0  # the kernel takes flags here or there, not both
    made = attribute(PARMS, RED.pack(limit, low, high, 0, p, cell, flags)) + attribute(STAB, FORGET)
    for kind in (TCA_RED_MAX_P, TCA_RED_FLAGS):
        if kind in was:
            made += attribute(kind, was[kind])
    return [made]


def gred_options(shown: bytes) -> list[bytes]:
    """The same of a gred, for each of its virtual queues"""
    was, made = attributes(shown), []
    for at in range(min(MAX_DPS, len(was.get(PARMS, b"")) // GRED.size)):
        one = list(GRED.unpack_from(was[PARMS], at * GRED.size))
        if one[3] >= MAX_DPS:
            continue  # there is none of this number
        one[10] = 0
        words = attribute(PARMS, GRED.pack(*one)) + attribute(STAB, FORGET)
        if TCA_GRED_MAX_P in was:
            words += attribute(TCA_GRED_MAX_P, was[TCA_GRED_MAX_P][4 * at:4 * at + 4])
        made.append(words)
    return made


OPTIONS = {"red": red_options, "gred": gred_options}


def exact(space: Namespace, device: str, root: str, anywhere: bool = False, dry: bool = False) -> int:
    """Gives each red and gred of a device whose root (or any of its queues) has this handle a weight of 1. -> how
    many"""
    index = {name: number for number, name in space.names().items()}.get(device)
    if index is None:
        raise Refused(f"no device '{device}'{space.suffix}")
    count = 0
    with Netlink(space) as route:
        found = list(queues.qdiscs(route, index))
        if not any((anywhere or one.is_root) and one.handle == int(root, 16) << 16 for one in found):
            raise Refused(f"{device} has no queue {root}:" if anywhere else f"{device} has no queue of lowq-tc")
        for one, options in [(one, options) for one in found if one.kind in OPTIONS for options in OPTIONS[one.kind](one.options)]:
            body = TCMSG.pack(0, index, one.handle, one.parent, 0)
            body += attribute(queues.TCA_KIND, one.kind.encode() + b"\0") + attribute(queues.TCA_OPTIONS, options)
            if not dry:
                list(route.ask(RTM_NEWQDISC, NLM_F_ACK, body))
            count += 1
    return count
