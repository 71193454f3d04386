# SPDX-License-Identifier: GPL-2.0
"""lowq-tc show: per device what was set, what marks now, what was counted, what differs."""

from __future__ import annotations

from lowq_common import queues
from lowq_common.devices import Link
from lowq_common.values import Json

from . import apply
from .config import Wish
from .device import differences, given_words, out_of_date, stray, the_link, touched
from .journal import Journal, QueueRecord, Space
from .world import World

KEPT, PASSING = "kept", "until reboot"


def counted(qdisc: Json) -> Json:
    made = {
        "kind": qdisc["kind"], "place": qdisc.get("parent", "root"), "handle": qdisc["handle"],
        "packets": qdisc["packets"], "bytes": qdisc["bytes"], "marked": qdisc["marked"], "dropped": qdisc["drops"],
        "backlog_bytes": qdisc["backlog"], "backlog_packets": qdisc["qlen"],
    }
    return made | {name: qdisc[name] for name in ("details", "classes") if name in qdisc}


def device(world: World, mine: Space, link: Link, record: QueueRecord | None, wishes: list[Wish], hidden: str) -> Json:
    live = [queues.as_json(one, link.name) for one in world.qdiscs(link.ifindex) if one.kind not in ("ingress", "clsact")]
    shown_queues = sorted(map(counted, live), key=lambda one: (one["place"] != "root", one["place"], one["handle"]))
    differs = differences(world, mine, record) if record else []
    shown: Json = {"netns": world.space.name} if world.space.name else {}
    shown |= {"device": link.name, "set": bool(record and record.tree is not None and not differs)}
    if record:
        shown |= {
            "profile": record.profile, **record.report, "changed_since": bool(differs), "differs": differs,
            "cut_short": record.tree is None, "out_of_date": out_of_date(world, record, link) if record.tree else [],
            "lasts": lasts(world, record, link, wishes),
        }
    elif world.is_ours(link.ifindex):
        shown["differs"] = [stray(world, link.name, hidden)]
    marks = sorted({one["kind"] for one in shown_queues if one["marked"]})
    shown |= {
        "queues": shown_queues, "marked": sum(one["marked"] for one in shown_queues), "marking": marks,
        "dropped": next((one["dropped"] for one in shown_queues if one["place"] == "root"), 0),
    }
    return shown


def lasts(world: World, record: QueueRecord, link: Link, wishes: list[Wish]) -> str:
    """Is it set again at boot?"""
    for wish in wishes:
        if wish.by and wish.options and wish.fits(world, link):
            same = (wish.options.action, given_words(wish.options)) == (record.profile, record.words)
            return KEPT if same else PASSING
    return PASSING


def lasts_host(controls: dict[str, list[str]], wishes: list[Wish]) -> str:
    said = {wish.name: given_words(wish.options) for wish in wishes if not wish.by and wish.options}
    return KEPT if controls and said == controls else PASSING


def is_as_set(shown: Json) -> bool:
    """For --check: False if anything differs from what lowq-tc set"""
    return bool(shown["set"] and not shown["out_of_date"]) or not (shown.get("profile") or shown.get("differs"))


def text(shown: Json) -> str:
    name = shown["device"]
    if shown.get("cut_short"):
        lines = [f"{name}: {shown['profile']}, cut short while it was being set"]
    elif shown["set"]:
        lines = [f"{name}: {shown['profile']}"]
    elif shown.get("profile"):
        lines = [f"{name}: {shown['profile']} was set, but someone else changed it since"]
    else:
        lines = [f"{name}: " + ("no record" if shown.get("differs") else "not set by lowq-tc")]
    lines += ["  differs: " + one for one in shown.get("differs", [])]
    lines += [f"  out of date: computed for {one}; set it again" for one in shown.get("out_of_date", [])]
    if shown.get("profile"):
        lines[0] += f" ({shown['lasts']})"
    if shown["set"]:
        lines += ["  " + one for one in shown["explanation"]]
        lines += ["  could not honour: " + one for one in shown["could_not_honour"]]
        lines += ["  note: " + one for one in shown["notes"]]
    for one in shown["queues"]:
        lines.append(
            f"  {one['kind']} at {one['place']}: {one['packets']} packets, {one['marked']} marked,"
            f" {one['dropped']} dropped, {one['backlog_packets']} packets ({one['backlog_bytes']} bytes) waiting"
        )
        lines += [f"    {text}" for text in within(one)]
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


def show(world: World, journal: Journal, names: list[str]) -> tuple[list[Json], list[str]]:
    """-> the devices, and what is wrong with records"""
    wrong = [journal.hidden] if journal.hidden else []
    mine = journal.space(world.space)
    if names:
        chosen = [the_link(world, name) for name in names]
    else:
        chosen = touched(world, mine)
    wishes = apply.kept(world.space)
    shown = []
    for link in chosen:
        record = mine.queues.get(link.ifindex)
        shown.append(device(world, mine, link, record if record and record.is_of(link) else None, wishes,
                            journal.hidden))
    return shown, wrong
