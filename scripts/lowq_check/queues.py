# SPDX-License-Identifier: GPL-2.0
"""Which queues of a device signal congestion, from what "tc -j qdisc show" shows."""

from __future__ import annotations

from typing import NamedTuple

from lowq_common.devices import handle_of
from lowq_common.values import Json

MARKS, DROPS, NEITHER = "marks", "drops", "neither"
CLASSFUL = ("mq", "mqprio", "htb", "hfsc", "drr", "ets", "prio", "int", "tbf", "multiq", "netem", "taprio")
ALWAYS = ("dualpi2", "cake")
BY_OPTION = ("red", "codel", "fq_codel", "pie", "fq_pie", "choke", "sfq", "gred")
STAMPS = "int"
NO_FILTER = "no-ack-filter"  # cake's word


class Queue(NamedTuple):
    kind: str
    place: str
    signal: str
    marked: int
    dropped: int


def options_of(qdisc: Json) -> Json:
    options = qdisc.get("options")
    return options if isinstance(options, dict) else {}


def signal_of(qdisc: Json) -> str:
    """What a leaf does with an ECT packet while it is congested"""
    kind, options = qdisc.get("kind", ""), options_of(qdisc)
    if kind in ALWAYS or options.get("ecn"):
        return MARKS
    if options.get("ce_threshold"):
        return MARKS
    if any(queue_marks(one) for one in options.get("vqs", [])):
        return MARKS
    return DROPS if kind in BY_OPTION else NEITHER


def filters_acks(qdisc: Json) -> bool:
    return qdisc.get("kind") == "cake" and options_of(qdisc).get("ack-filter") in (True, "enabled", "aggressive")


def timer_slack_ns(qdisc: Json) -> int:
    """How much later than its time sch_fq may send a packet; 0: it is another queue, or tc does not say"""
    slack = options_of(qdisc).get("timer_slack")
    return slack if qdisc.get("kind") == "fq" and isinstance(slack, int) else 0


def l4s_step_us(qdisc: Json) -> int:
    """Above how long a wait dualpi2 marks ECT(1); 0: it is another queue, or tc does not say"""
    step = options_of(qdisc).get("step_thresh")
    return step if qdisc.get("kind") == "dualpi2" and isinstance(step, int) else 0


def limits_rate(qdisc: Json) -> bool:
    kind, options = qdisc.get("kind", ""), options_of(qdisc)
    if kind in ("htb", "hfsc", "tbf"):
        return True
    return kind in ("cake", "netem") and options.get("bandwidth", options.get("rate")) not in (None, 0, "unlimited")


def queue_marks(virtual: Json) -> bool:
    return bool(virtual.get("ecn")) or "ecn" in (virtual.get("flags") or [])


def counted(qdisc: Json) -> int:
    marked: int = sum(qdisc.get(name) or 0 for name in ("marked", "ce_mark", "ecn_mark"))
    vqs = options_of(qdisc).get("vqs", [])
    marked += sum(one.get("prob_mark", 0) + one.get("forced_mark", 0) for one in vqs)
    return marked


def leaves(qdiscs: list[Json]) -> list[Queue]:
    """The queues where packets wait: those that have no other one below them"""
    qdiscs = [one for one in qdiscs if one.get("kind") not in ("ingress", "clsact")]
    above = {str(one.get("parent", "")).partition(":")[0] + ":" for one in qdiscs if not one.get("root")}
    found = []
    for one in qdiscs:
        handle = handle_of(one)
        if one.get("kind") in CLASSFUL and (handle in above or one["kind"] in ("mq", "mqprio")):
            continue
        found.append(Queue(one["kind"], one.get("parent", "root"), signal_of(one), counted(one), one.get("drops") or 0))
    return found


def unmarked_leaves(qdiscs: list[Json]) -> list[str]:
    """Of a device with several transmit queues: the places that do not mark although others do"""
    roots = [one for one in qdiscs if one.get("root")]
    if not roots or roots[0].get("kind") not in ("mq", "mqprio"):
        return []
    below = leaves(qdiscs)
    if all(one.signal != MARKS for one in below):
        return []
    return [one.place for one in below if one.signal != MARKS]


def place_of(qdisc: Json) -> str:
    """In tc's words"""
    return "root" if qdisc.get("root") else f"parent {qdisc.get('parent')}"


def outline(qdiscs: list[Json]) -> str:
    """The tree in a few words: "htb > red", "mq > 3 red, fq_codel" """
    root = next((one["kind"] for one in qdiscs if one.get("root")), "no queue")
    below = [one.kind for one in leaves(qdiscs)]
    if below in ([root], []):
        return root
    counts = {kind: below.count(kind) for kind in dict.fromkeys(below)}
    return f"{root} > " + ", ".join(kind if n == 1 else f"{n} {kind}" for kind, n in counts.items())
