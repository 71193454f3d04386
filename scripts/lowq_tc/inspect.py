# SPDX-License-Identifier: GPL-2.0
"""What a device's queue, its filters and a host's routes are now, in a form that can be compared.
Nothing here changes the machine."""

from __future__ import annotations

import json
import re

from lowq_common.devices import Link, handle_of, qdiscs, root_handle
from lowq_common.errors import Refused
from lowq_common.light import Json
from lowq_common.system import Namespace, output

from .command import UNBATCHED

# Counters among the options, and what depends on who asks
VOLATILE = ("refcnt", "offloaded", "dev")
COUNTERS = ("direct_packets_stat",)
WITHOUT_FILTERS = ("mq", "pfifo", "bfifo", "pfifo_fast", "red", "gred", "netem", "codel", "fq", "int", "dualpi2")


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
    if root_handle(tree) == "10f0:":
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


def read_clsact(space: Namespace, device: str, shown: list[Json] | None = None) -> Json:
    """What is at the device's ingress: None, or its kind and filters."""
    shown = qdiscs(space, device) if shown is None else shown
    kind = next((qdisc["kind"] for qdisc in shown if qdisc["kind"] in ("ingress", "clsact")), None)
    if kind is None:
        return None
    ingress, egress = batch(space, device, [f"filter show dev {device} {way}" for way in ("ingress", "egress")])
    return {"kind": kind, "ingress": ingress, "egress": egress}


# --- tc itself ------------------------------------------------------------------


def tc_version() -> str:
    said = output(["tc", "-V"])[1]
    match = re.search(r"iproute2-([^,\s]+)", said)
    return match[1] if match else said.strip()


def tc_offers(kind: str, word: str, plugins: str = "") -> bool:
    """Does this tc know the word for this kind? Asks its help, which talks to no kernel."""
    extra = ["env", f"TC_LIB_DIR={plugins}"] if plugins else []
    _, out, said = output([*extra, "tc", "qdisc", "add", "dev", "lo", "root", kind, "help"])
    return word in out + said


# --- routes ---------------------------------------------------------------------

STATE_WORDS = ("linkdown", "offload", "rt_offload", "trap", "rt_trap", "offload_failed")


def routes(space: Namespace, family: str, prefix: str) -> list[str] | None:
    """The routes to exactly this prefix, without words that tell a passing state. None: ip
    does not take it for a prefix."""
    status, text, _ = output(space.tool("ip", family, "route", "show", "exact", prefix))
    if status:
        return None
    lines: list[str] = []
    for line in text.splitlines():
        words = [word for word in line.split() if word not in STATE_WORDS]
        if line[:1].isspace() and lines:
            lines[-1] += " " + " ".join(words)
        elif words:
            lines.append(re.sub(r" expires \d+sec", "", " ".join(words)))
    return lines
