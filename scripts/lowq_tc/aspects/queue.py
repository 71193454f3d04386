# SPDX-License-Identifier: GPL-2.0
"""The queue of a device: all that hangs below its root."""

from __future__ import annotations

import json
import re

from lowq_common.devices import Link, handle_of, qdiscs, root_handle, root_of
from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.system import Namespace, output

from ..command import UNBATCHED, Command, tc
from ..journal import UNDOING, SavedState, Step
from ..profiles.queues import ROOT
from .base import Aspect, Place, made_by, on_device

# Counters among the options, and what depends on who asks
VOLATILE = ("refcnt", "offloaded", "dev")
COUNTERS = ("direct_packets_stat",)
WITHOUT_FILTERS = ("mq", "pfifo", "bfifo", "pfifo_fast", "red", "gred", "netem", "codel", "fq", "int", "dualpi2")


class Queue(Aspect):
    """Its target is the device."""

    name = "queue"

    def read(self, place: Place, target: str) -> Json:
        return read_tree(place.space, place.queue_length())

    def same(self, one: Json, other: Json) -> bool:
        return same_tree(one, other)

    def made_by_us(self, place: Place, step: Step, now: Json) -> bool:
        return super().made_by_us(place, step, now) or super().made_by_us(place, step, without_added(now))

    def is_between(self, place: Place, step: Step, now: Json) -> bool:
        return part_of(step, now)

    def undo(self, place: Place, step: Step, saved: SavedState, now: Json) -> list[Command]:
        name = place.name()
        made = []
        if root_handle(now) != "0:":
            made.append(tc("qdisc", "del", "dev", name, "root"))
        made += on_device(place, saved.commands)
        # The kernel gives a device without queue length one when it gets a queue.
        if saved.state["txqlen"] != now["txqlen"] or (not saved.state["txqlen"] and saved.commands):
            made.append(Command(("ip", "link", "set", "dev", name, "txqueuelen", str(saved.state["txqlen"]))))
        return made

    def described(self, target: str) -> str:
        return "the queue"

    def difference(self, place: Place, was: Json, now: Json) -> str:
        if now is None or was is None:
            return "it cannot be read"
        if same_tree({**was, "txqlen": 0}, {**now, "txqlen": 0}):
            return f"its queue length is {now['txqlen']}, was {was['txqlen']}"
        roots = [root_of(tree) for tree in (was, now)]
        kinds = [f"{root['kind']} {handle_of(root)}" if root else "none" for root in roots]
        if kinds[0] != kinds[1]:
            return f"its root is '{kinds[1]}' now, was '{kinds[0]}'"
        for old, new in zip(was["qdiscs"], now["qdiscs"]):
            if not same_qdisc(old, new):
                return f"'{super().text(place, old)}' is '{super().text(place, new)}' now"
        for what in ("classes", "filters"):
            if was[what] != now[what]:
                return f"its {what} are others now"
        return "it has another number of queues now"


# --- reading ----------------------------------------------------------------------


def read_tree(space: Namespace, link: Link, shown: list[Json] | None = None) -> Json:
    """All that hangs below the root: {"qdiscs", "classes", "filters", "txqlen"}.

    Where lowq-tc made the tree, handles that the kernel chose are called "auto": they are
    others when the same tree is made again.
    """
    found: list[Json] = []
    shown = qdiscs(space, link.name) if shown is None else shown
    for qdisc in shown:
        if qdisc.get("kind") in ("ingress", "clsact"):
            continue
        kept = {key: value for key, value in qdisc.items() if key not in VOLATILE}
        if isinstance(kept.get("options"), dict):
            kept["options"] = {k: v for k, v in kept["options"].items() if k not in COUNTERS}
        found.append(kept)
    tree: Json = {"qdiscs": found, "classes": [], "filters": {}, "txqlen": link.txqlen}
    handles = [handle_of(qdisc) for qdisc in found if handle_of(qdisc) != "0:"]
    if handles:
        asked = [f"class show dev {link.name}"]
        filtered = [handle_of(qdisc) for qdisc in found
                    if handle_of(qdisc) != "0:" and qdisc["kind"] not in WITHOUT_FILTERS]
        asked += [f"filter show dev {link.name} parent {handle}" for handle in filtered]
        classes, *filters = batch(space, link.name, asked)
        tree["classes"] = [line for line in classes if not line.startswith("class fq_codel ")]
        tree["filters"] = {handle: lines for handle, lines in zip(filtered, filters) if lines}
    if root_handle(tree) == ROOT + ":":
        chosen = [handle for handle in handles if int(handle[:-1], 16) >= 0x8000]
        if chosen:
            pattern = "|".join(map(re.escape, chosen))
            text = re.sub(rf"(?<![0-9a-f])({pattern})(?=[^0-9a-f]|$)", "auto:", json.dumps(tree))
            tree = json.loads(text)
    tree["qdiscs"].sort(key=lambda one: (one.get("parent", ""), handle_of(one)))
    return tree


def batch(space: Namespace, device: str, lines: list[str]) -> list[list[str]]:
    """The output of several "tc ... show", each as lines. One tc for all: a device may have
    hundreds of queues. A "help" after each separates them: all that tc can say any number of
    times. -force: tc would end where a parent went away meanwhile."""
    if UNBATCHED & set(device):
        return [[text for text in output(space.tool("tc", "-d", *line.split(" ")))[1].splitlines() if text.strip()]
                for line in lines]
    parts: list[list[str]] = [[]]
    ours = False  # not usage, nor an error
    asked = "".join(f"{line}\nhelp\n" for line in lines)
    for text in output(space.tool("tc", "-d", "-force", "-batch", "-"), asked)[1].splitlines():
        if text.startswith("Usage:"):
            parts.append([])
            ours = False
        elif text.startswith(("class ", "filter ")) or (ours and text.strip()):
            parts[-1].append(text.rstrip())
            ours = True
    if len(parts) != len(lines) + 1:
        raise Refused(f"cannot read what tc printed of the queue of {device}")
    return parts[:-1]


# --- comparing --------------------------------------------------------------------


def same_qdisc(one: Json, two: Json) -> bool:
    """Options count only if tc could print them both times: that depends on its plugins."""
    if {**one, "options": 0, "unknown": 0} != {**two, "options": 0, "unknown": 0}:
        return False
    readable = [isinstance(q.get("options"), dict) and "unknown" not in q and "unknown" not in q["options"]
                for q in (one, two)]
    return not all(readable) or one.get("options") == two.get("options")


def same_tree(one: Json, two: Json) -> bool:
    if one is None or two is None:
        return one is two
    if [one[key] for key in ("classes", "filters", "txqlen")] != [two[key] for key in ("classes", "filters", "txqlen")]:
        return False
    if len(one["qdiscs"]) == len(two["qdiscs"]) and all(map(same_qdisc, one["qdiscs"], two["qdiscs"])):
        return True
    # While a device is down it may have noop or nothing, in place of the queues that the kernel
    # gives it when it comes up. Nothing with lowq-tc's handle, nor the user's, is there.
    if root_handle(one) == root_handle(two) == "0:":
        return any(root is None or root["kind"] == "noop" for root in map(root_of, (one, two)))
    return False


def explicit(tree: Json) -> list[Json]:
    """Its qdiscs without those that the kernel put there by itself"""
    return [qdisc for qdisc in tree["qdiscs"] if handle_of(qdisc) != "0:"]


def without_added(tree: Json) -> Json:
    """A tree of lowq-tc without the queues that the kernel adds below mq when the device gets more of them
    (ethtool -L)"""
    return {**tree, "qdiscs": explicit(tree)} if tree and root_handle(tree) == ROOT + ":" else tree


def place_and_kind(command: Command) -> tuple[str, str] | None:
    """Of "tc qdisc add": where, and what"""
    words = command.argv[2:] if command.argv[0] == "env" else command.argv
    if words[:3] != ("tc", "qdisc", "add"):
        return None
    rest = list(words[5:])
    place = rest.pop(0)
    if place == "parent":
        place = rest.pop(0)
    if rest[0] == "handle":
        rest = rest[2:]
    return place, rest[0]


def part_of(step: Step, now: Json) -> bool:
    """Is this part of the tree that the step makes, or of the one that it puts back?"""
    handle = root_handle(now)
    if handle == "0:":
        return True  # nothing is there: between "del" and "add"
    qdiscs = explicit(now)
    if handle == ROOT + ":":
        made = {place_and_kind(command) for command in made_by(step)}
        return all((qdisc.get("parent", "root"), qdisc["kind"]) in made for qdisc in qdiscs)
    # A part of what is put back. (A tree that --force gave up was not made again by anyone.)
    if step.state == UNDOING and not step.lost:
        return all(any(same_qdisc(qdisc, old) for old in step.before.state["qdiscs"]) for qdisc in qdiscs)
    return False
