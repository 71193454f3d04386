# SPDX-License-Identifier: GPL-2.0
"""The queues of devices as the kernel tells them by netlink: what they are, what they have counted, and those
options that say whether they mark. tc is not asked: Debian's does not know all of them."""

from __future__ import annotations

import struct
from typing import Callable, Iterator, NamedTuple

from .netlink import (RTM_GETQDISC, TCMSG, Netlink, attributes, listed, number, text)
from .values import Json

TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2, TCA_EGRESS_BLOCK = 1, 2, 4, 7, 14
ROOT_PARENT = 0xFFFFFFFF
NEVER = 0xFFFFFFFF  # ce_threshold of a queue that has none


class Qdisc(NamedTuple):
    ifindex: int
    kind: str
    handle: int
    parent: int
    options: bytes
    xstats: bytes
    packets: int
    bytes: int
    drops: int
    backlog: int  # bytes
    qlen: int  # packets
    shared: bool = False  # do other devices share its filters at egress?

    @property
    def is_root(self) -> bool:
        return self.parent == ROOT_PARENT


def qdiscs(route: Netlink, ifindex: int = 0) -> Iterator[Qdisc]:
    """Of one device, or of all"""
    for content in route.dump(RTM_GETQDISC, TCMSG.pack(0, ifindex, 0, 0, 0)):
        _, index, handle, parent, _ = TCMSG.unpack_from(content)
        if ifindex in (0, index):
            shown = attributes(content, TCMSG.size)
            counted = attributes(shown.get(TCA_STATS2, b""))
            size, packets = struct.unpack_from("=QI", counted.get(1, bytes(12)))
            packets = number(counted.get(8), packets)  # 64 bits, where 32 are too few
            qlen, backlog, drops = struct.unpack_from("=III", counted.get(3, bytes(12)))
            yield Qdisc(index, text(shown[TCA_KIND]), handle, parent, shown.get(TCA_OPTIONS, b""),
                        counted.get(4, shown.get(TCA_XSTATS, b"")), packets, size, drops, backlog, qlen, TCA_EGRESS_BLOCK in shown)


def handle_text(handle: int) -> str:
    """As tc writes it: "1:", "1:2" """
    return f"{handle >> 16:x}:" + (f"{handle & 0xFFFF:x}" if handle & 0xFFFF else "")


# --- what each kind counts ------------------------------------------------------------


class Counted(NamedTuple):
    marked: int = 0
    details: dict[str, int | float] = {}  # by the names of the kernel's fields
    classes: dict[str, dict[str, int | float]] = {}  # of a queue with several inside


def words(at: int, *fields: str) -> Callable[[Qdisc], Counted]:
    """Of a kind whose xstats has these 32-bit fields from a place on; those with "mark" in their name are marks"""
    def counted(one: Qdisc) -> Counted:
        shown = one.xstats[at:at + 4 * len(fields)]
        values = dict(zip(fields, struct.unpack(f"={len(shown) // 4}I", shown[:len(shown) // 4 * 4])))
        return Counted(sum(value for name, value in values.items() if name in MARKS), values)

    return counted


MARKS = ("marked", "ecn_mark", "ce_mark")
RED = words(0, "early", "pdrop", "other", "marked")


def dualpi2(one: Qdisc) -> Counted:
    if len(one.xstats) < 32:
        return Counted()
    prob, delay_c, delay_l, in_c, in_l, maxq, marked, step = struct.unpack_from("=8I", one.xstats)
    # step_marks are among ecn_mark
    return Counted(marked, {"probability": prob / 0xFFFFFFFF, "step_marks": step, "maxq": maxq},
                   {"L4S": {"packets": in_l, "delay_us": delay_l}, "classic": {"packets": in_c, "delay_us": delay_c}})


def fq(one: Qdisc) -> Counted:
    return Counted(number(one.xstats[80:88]))


def pie(one: Qdisc) -> Counted:
    if len(one.xstats) < 40:
        return Counted()
    prob, delay, _, _, _, dropped, _, _, marked = struct.unpack_from("=QIIIIIIII", one.xstats)
    return Counted(marked, {"probability": prob / 0xFFFFFFFFFFFFFF, "delay_us": delay, "dropped": dropped})


def stamping(one: Qdisc) -> Counted:
    if len(one.xstats) < 40:
        return Counted()
    rate, *counts = struct.unpack_from("=5Q", one.xstats)
    return Counted(0, {"rate": rate, **dict(zip(("stamped", "over_room", "no_rate", "malformed"), counts))})


def gred(one: Qdisc) -> Counted:
    classes: dict[str, dict[str, int | float]] = {}
    for virtual in virtual_queues(one.options):
        drops, marks = number(virtual.get(6)) + number(virtual.get(8)), number(virtual.get(7)) + number(virtual.get(9))
        classes[str(number(virtual.get(2)))] = {
            "packets": number(virtual.get(4)), "marked": marks, "dropped": drops + number(virtual.get(10)),
            "backlog_bytes": number(virtual.get(5)),
        }
    return Counted(int(sum(each["marked"] for each in classes.values())), {}, classes)


def virtual_queues(options_of_gred: bytes) -> list[dict[int, bytes]]:
    return [attributes(entry) for _, entry in listed(attributes(options_of_gred).get(6, b""))]


COUNTS: dict[str, Callable[[Qdisc], Counted]] = {
    "red": RED, "choke": RED, "gred": gred, "dualpi2": dualpi2, "fq": fq, "pie": pie, "int": stamping,
    "codel": words(0, "maxpacket", "count", "lastcount", "ldelay_us", "drop_next", "drop_overlimit", "ecn_mark",
                   "dropping", "ce_mark"),
    "fq_codel": words(4, "maxpacket", "drop_overlimit", "ecn_mark", "new_flow_count", "new_flows_len",
                      "old_flows_len", "ce_mark"),
    "fq_pie": words(0, "packets_in", "dropped", "overlimit", "overmemory", "ecn_mark"),
}


def counted(one: Qdisc) -> Counted:
    return COUNTS.get(one.kind, lambda _: Counted())(one)


# --- options ----------------------------------------------------------------------------

FQ_SLACK_NS = 10_000  # sch_fq's timer_slack, unless it says another one
LIMITS = {"codel": (4, 5), "fq_codel": (4, 7), "fq": (0, 12), "pie": (6, 0), "fq_pie": (10, 0)}  # attributes: ecn, ce_threshold


def options(one: Qdisc) -> Json:
    """Those that say whether it marks, limits the rate or is late, by the names that tc gives them"""
    kind, data = one.kind, one.options
    shown = attributes(data) if kind not in ("netem", "sfq") else {}
    if kind in LIMITS:
        ecn, threshold = LIMITS[kind]
        found: Json = {"ecn": True} if number(shown.get(ecn)) else {}
        above = number(shown.get(threshold), NEVER)
        if kind == "fq":
            found["timer_slack"] = number(shown.get(13), FQ_SLACK_NS)
        return found if above == NEVER else {**found, "ce_threshold": above}
    if kind in ("red", "choke"):
        return {"ecn": True} if shown.get(1, bytes(16))[15] & 1 else {}
    if kind == "sfq":
        return {"ecn": True} if len(data) > 43 and data[43] & 1 else {}
    if kind == "gred":
        flags = shown.get(3, bytes(12))[9]
        return {"vqs": [{"vq": number(each.get(2)), "ecn": bool((number(each.get(12)) | flags) & 1)}
                        for each in virtual_queues(one.options)]}
    if kind == "dualpi2":
        return {"step_thresh": number(shown[8])} if 8 in shown else {}
    if kind == "cake":
        return {"ack-filter": bool(number(shown.get(16))), "bandwidth": number(shown.get(2))}
    if kind == "netem":
        return {"rate": number(attributes(data, 24).get(6, b"")[:4])}
    if kind == "int":
        return {"rate": number(shown.get(1)), "switch_id": number(shown.get(2)), "dscp": number(shown.get(3))}
    return {}


def as_json(one: Qdisc, device: str) -> Json:
    """By tc's names"""
    what = counted(one)
    place: Json = {"root": True} if one.is_root else {"parent": handle_text(one.parent)}
    return {"dev": device, "kind": one.kind, "handle": handle_text(one.handle), **place, "options": options(one),
            "packets": one.packets, "bytes": one.bytes, "drops": one.drops, "backlog": one.backlog, "qlen": one.qlen,
            "marked": what.marked, **({"details": what.details} if what.details else {}),
            **({"classes": what.classes} if what.classes else {})}
