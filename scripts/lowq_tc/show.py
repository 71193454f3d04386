# SPDX-License-Identifier: GPL-2.0
"""lowq-tc show: per device what was set, what marks now, what was counted, what differs."""

from __future__ import annotations

from typing import Iterator

from lowq_common import queues
from lowq_common.devices import Link
from lowq_common.values import Json

from . import apply
from .config import Wish
from .device import differences, out_of_date, stray, the_link, touched
from .journal import Journal, QueueRecord, Space
from .report import lines_of
from .things import IFB_INDEX
from .world import World

KEPT, PASSING = "kept", "until reboot"


def counted(qdisc: Json) -> Json:
    made = {
        "kind": qdisc["kind"], "place": qdisc.get("parent", "root"), "handle": qdisc["handle"],
        "packets": qdisc["packets"], "bytes": qdisc["bytes"], "marked": qdisc["marked"], "dropped": qdisc["drops"],
        "backlog_bytes": qdisc["backlog"], "backlog_packets": qdisc["qlen"],
    }
    return made | {name: qdisc[name] for name in ("details", "classes") if name in qdisc}


def device(world: World, journal: Journal, link: Link, wishes: list[Wish]) -> Json:
    mine = journal.space(world.space)
    record = mine.queues.get(link.ifindex) or made_again(world, mine).get(link)
    live = [counted(queues.as_json(one, link.name)) for one in world.queues_of(link.ifindex)]
    live.sort(key=lambda one: (one["place"] != "root", one["place"], one["handle"]))
    shown: Json = {"netns": world.space.name} if world.space.name else {}
    shown |= {"device": link.name, "set": False}
    if record and record.is_of(link):
        differs = differences(world, mine, record)
        shown |= {
            "set": record.tree is not None and not differs, "profile": record.profile, **record.report,
            "changed_since": bool(differs), "differs": differs, "cut_short": record.tree is None,
            "out_of_date": out_of_date(world, record, link) if record.tree else [], "lasts": lasts(world, record, link, wishes),
        }
    elif world.is_ours(link.ifindex):
        shown["differs"] = [stray(world, link.name, journal.hidden)]
    return shown | {
        "queues": live, "marked": sum(one["marked"] for one in live),
        "marking": sorted({one["kind"] for one in live if one["marked"]}),
        "dropped": next((one["dropped"] for one in live if one["place"] == "root"), 0),
    }


def made_again(world: World, mine: Space) -> dict[Link, QueueRecord]:
    """Devices that have the name of one that is gone, and not its queue: a new session of PPP, a driver loaded again"""
    found = {world.named(one.name): one for index, one in mine.queues.items() if not world.link(index)}
    return {link: one for link, one in found.items() if link and link.ifindex not in mine.queues and one.is_of(link)}


def lasts(world: World, record: QueueRecord, link: Link, wishes: list[Wish]) -> str:
    """Is it set again at boot?"""
    for wish in wishes:
        if wish.by and wish.options and wish.fits(world, link):
            return KEPT if (wish.options.action, wish.options.words()) == (record.profile, record.words) else PASSING
    return PASSING


def lasts_host(controls: dict[str, list[str]], wishes: list[Wish]) -> str:
    said = {wish.name: wish.options.words() for wish in wishes if not wish.by and wish.options}
    return KEPT if controls and said == controls else PASSING


def is_as_set(shown: Json) -> bool:
    """For --check: False if anything differs from what lowq-tc set"""
    return bool(shown["set"] and not shown["out_of_date"]) or not (shown.get("profile") or shown.get("differs"))


def text(shown: Json) -> str:
    profile = shown.get("profile", "")
    if not profile:
        said = "no record" if shown.get("differs") else "not set by lowq-tc"
    elif shown["cut_short"]:
        said = f"{profile}, cut short while it was being set"
    else:
        said = profile + ("" if shown["set"] else " was set, but someone else changed it since")
    lines = [f"{shown['device']}: {said}" + (f" ({shown['lasts']})" if profile else "")]
    lines += ["  differs: " + one for one in shown.get("differs", [])]
    lines += [f"  out of date: computed for {one}; set it again" for one in shown.get("out_of_date", [])]
    lines += lines_of(shown) if shown["set"] else []
    for one in shown["queues"]:
        lines.append(
            f"  {one['kind']} at {one['place']}: {one['packets']} packets, {one['marked']} marked,"
            f" {one['dropped']} dropped, {one['backlog_packets']} packets ({one['backlog_bytes']} bytes) waiting"
        )
        lines += [f"    {line}" for line in within(one)]
    return "\n".join(lines)


def within(queue: Json) -> list[str]:
    """What a queue with several inside, or one that computes a probability, tells"""
    details = queue.get("details", {})
    made = []
    if "probability" in details:
        step = f", {details['step_marks']} marked by the step" if "step_marks" in details else ""
        made.append(f"probability {details['probability']:.4g}{step}")
    if "stamped" in details:
        made.append(f"{details['stamped']} probes stamped")
    for name, values in queue.get("classes", {}).items():
        made.append(f"{name}: " + ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in values.items()))
    return made


def show(world: World, journal: Journal, names: list[str]) -> list[Json]:
    mine = journal.space(world.space)
    links = [the_link(world, name) for name in names] or list(dict.fromkeys([*touched(world, mine), *made_again(world, mine)]))
    wishes = apply.kept(world.space)
    return [device(world, journal, link, wishes) for link in links] + list(lost(world, journal, names))


def lost(world: World, journal: Journal, names: list[str]) -> Iterator[Json]:
    """Devices for what arrives that someone has removed"""
    mine = journal.space(world.space)
    for thing in mine.things:
        upper = world.link(int(thing.target) - IFB_INDEX) if thing.kind == "ingress" else None
        if upper and not world.link(int(thing.target)) and (not names or upper.name in names):
            yield {"device": "ifb4" + upper.name, "set": False, "queues": [], "marked": 0, "marking": [], "dropped": 0,
                   "differs": [f"someone has removed it, and what arrives at {upper.name} is dropped; reset, or set it again"]}
