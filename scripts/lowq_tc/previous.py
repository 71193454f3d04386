# SPDX-License-Identifier: GPL-2.0
"""The user's own queue: the commands that make it again once the root has been deleted."""

from __future__ import annotations

from lowq_common.devices import handle_of, root_of
from lowq_common.values import Json
from lowq_common.units import decimal

from .command import Command, tc

PFIFO_FAST = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]

# The options that are put back, per kind. One that is not listed here is not put back
# exactly, and the queue is not touched.
KNOWN: dict[str, tuple[str, ...]] = {
    "noqueue": (), "mq": (), "pfifo": ("limit",), "bfifo": ("limit",),
    "prio": ("bands", "priomap", "multiqueue"),
    "codel": ("limit", "target", "interval", "ecn", "ce_threshold"),
    "fq_codel": ("limit", "flows", "quantum", "target", "interval", "ecn", "ce_threshold",
                 "memory_limit", "drop_batch"),
    "fq": ("limit", "flow_limit", "buckets", "orphan_mask", "quantum", "initial_quantum",
           "low_rate_threshold", "refill_delay", "ce_threshold", "timer_slack", "horizon",
           "horizon_drop", "horizon_cap", "maxrate", "pacing"),
    "netem": ("limit", "delay", "ecn", "gap"),
}


class CannotRemake(Exception):
    """It cannot be put back exactly."""


def codel_us(shown: int) -> str:
    """CoDel's clock ticks every 1.024 us and is shown rounded down."""
    exact = shown * 1000 // 1024 * 1024 // 1000 == shown
    return f"{shown if exact else shown + 1}us"


def seconds(value: float) -> str:
    return decimal(round(value * 10**9), 9) + "s"


def words(qdisc: Json) -> list[str]:
    """Its kind and options as tc takes them."""
    kind, options = qdisc["kind"], qdisc.get("options") or {}
    if kind == "pfifo_fast":
        if options.get("priomap", PFIFO_FAST) != PFIFO_FAST:
            raise CannotRemake("its priomap")
        return [kind]
    if kind not in KNOWN:
        raise CannotRemake("a kind lowq-tc does not know to make again")
    for name in options:
        if name not in KNOWN[kind]:
            raise CannotRemake("its option " + name)
    made = [kind]

    def give(*names: str, text: object = str) -> None:
        for name in names:
            if options.get(name) is not None:
                made.extend((name, text(options[name])))  # type: ignore[operator]

    if kind == "prio":
        if options.get("multiqueue"):
            raise CannotRemake("its multiqueue")
        give("bands")
        made += ["priomap", *map(str, options["priomap"])]
    elif kind in ("codel", "fq_codel"):
        give("limit", "flows", "quantum")
        give("target", "interval", "ce_threshold", text=codel_us)
        give("memory_limit", "drop_batch")
        made.append("ecn" if options.get("ecn") else "noecn")
    elif kind == "fq":
        give("limit", "flow_limit", "buckets", "orphan_mask", "quantum", "initial_quantum")
        give("low_rate_threshold", "maxrate", text=lambda value: f"{value * 8}bit")
        give("refill_delay", "ce_threshold", "horizon", text=lambda value: f"{value}us")
        give("timer_slack", text=lambda value: f"{value}ns")
        if options.get("pacing") is False:
            made.append("nopacing")
        made += [name for name in ("horizon_cap", "horizon_drop") if name in options][:1]
    elif kind == "netem":
        delay = options.get("delay") or {}
        if options.get("ecn") or options.get("gap") or delay.get("correlation"):
            raise CannotRemake("its options")
        give("limit")
        if delay:
            made += ["delay", seconds(delay["delay"])]
            if delay.get("jitter"):
                made.append(seconds(delay["jitter"]))
    else:
        give("limit")
    return made


def size_table(qdisc: Json) -> list[str]:
    """stab: what a packet counts for"""
    shown = qdisc.get("stab") or {}
    made = [str(word) for name, value in shown.items() for word in (name, value)]
    return ["stab", *made] if made else []


def kernels_choice(tree: Json, default: str | None) -> str | None:
    """The kind in a tree of the kernel's own that it would not choose today, if any"""
    if not default:
        return None
    own = (default, "mq", "noqueue", "noop", "pfifo_fast")
    return next((qdisc["kind"] for qdisc in tree["qdiscs"] if qdisc["kind"] not in own), None)


def remake(tree: Json, device: str, default: str | None) -> list[Command]:
    """The commands that make the tree again on a device without root qdisc."""
    root = root_of(tree)
    if root is None:
        return []
    if handle_of(root) == "0:":
        # The kernel's own choice comes back by itself, if it still is its choice.
        other = kernels_choice(tree, default)
        if other:
            raise CannotRemake(f"'{other}', while the kernel's default is '{default}' now")
        return []
    children = [qdisc for qdisc in tree["qdiscs"] if not qdisc.get("root")]
    try:
        words(root)
        if root["kind"] != "mq" and children:
            raise CannotRemake("its classes")
        if tree["filters"]:
            raise CannotRemake("its filters")
        made = [root, *(child for child in children if handle_of(child) != "0:")]
        return [
            tc("qdisc", "add", "dev", device, *size_table(one),
               *(("root",) if one.get("root") else ("parent", one["parent"])), "handle", handle_of(one), *words(one))
            for one in made
        ]
    except CannotRemake as reason:
        raise CannotRemake(f"'{root['kind']}' ({reason})") from None
