# SPDX-License-Identifier: GPL-2.0
"""lowq-tc show: per device what was set, what marks now, what was counted, what differs."""

from __future__ import annotations

from lowq_common import devices
from lowq_common.devices import Link
from lowq_common.errors import Refused
from lowq_common.values import LOWQ_ROOT, Json
from lowq_common.system import Namespace
from lowq_common.units import rate_text

from .aspects import QUEUE
from .aspects.base import Place
from .device import differences, stray, the_link, with_our_root
from .journal import DeviceRecord, Journal, forgets


def counted(qdisc: Json) -> Json:
    made = {
        "kind": qdisc["kind"], "place": qdisc.get("parent", "root"), "handle": qdisc["handle"],
        "packets": qdisc["packets"], "bytes": qdisc["bytes"], "marked": qdisc["marked"], "dropped": qdisc["drops"],
        "backlog_bytes": qdisc["backlog"], "backlog_packets": qdisc["qlen"],
    }
    return made | {name: qdisc[name] for name in ("details", "classes") if name in qdisc}


def device(space: Namespace, live: list[Json], link: Link, record: DeviceRecord | None) -> Json:
    live = [one for one in live if one["dev"] == link.name and one["kind"] not in ("ingress", "clsact")]
    queues = sorted(map(counted, live), key=lambda one: (one["place"] != "root", one["place"], one["handle"]))
    differs = differences(Place(space, link), record) if record else []
    stale = out_of_date(space, link, record) if record else []
    shown: Json = {"netns": space.name} if space.name else {}
    shown |= {"device": link.name, "set": bool(record and record.complete and not differs)}
    if record:
        tree = record.step(QUEUE.name)
        shown |= {
            "profile": record.profile, **record.report,
            "previous": tree.before.state["qdiscs"] if tree else [],
            "previous_exact": not (tree and tree.lost),
            "changed_since": bool(record.complete and differs), "differs": differs, "cut_short": not record.complete,
            "out_of_date": stale,
        }
    elif any(one["place"] == "root" and one["handle"] == LOWQ_ROOT for one in queues):
        shown["differs"] = [stray(space, Journal(), link.name)]
    marks = sorted({one["kind"] for one in queues if one["marked"]})
    shown |= {
        "queues": queues, "marked": sum(one["marked"] for one in queues), "marking": marks,
        "dropped": next((one["dropped"] for one in queues if one["place"] == "root"), 0),
    }
    return shown


def out_of_date(space: Namespace, link: Link, record: DeviceRecord) -> list[str]:
    """What the thresholds were computed from, and is not so any more"""
    was = record.report["params"].get("computed_for", {})
    if not record.complete or not was:
        return []
    hardware = devices.hardware(space, link)
    found = []
    if was["mtu"] != link.mtu:
        found.append(f"an MTU of {was['mtu']}, which is {link.mtu} now")
    if was.get("speed", hardware.speed) not in (0, hardware.speed) and hardware.speed:
        found.append(f"a speed of {rate_text(was['speed'])}, which is {rate_text(hardware.speed)} now")
    if was.get("tso", hardware.tso) != hardware.tso:
        found.append(f"TSO {'on' if was['tso'] else 'off'}, which is {'on' if hardware.tso else 'off'} now")
    return found


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


def show(space: Namespace, journal: Journal, names: list[str]) -> tuple[list[Json], list[str]]:
    """-> the devices, and what is wrong with records"""
    links = devices.links(space)
    records, unreadable = journal.devices(space)
    wrong = [journal.hidden] if journal.hidden else [one.says for one in unreadable]
    by_index = {link.ifindex: record for record in records for link in [record.link(links)] if link}
    if names:
        chosen = [the_link(space, links, name) for name in names]
    else:
        chosen = [link for link in links if link.ifindex in by_index]
        roots = with_our_root(space)
        chosen += [link for link in links if link.name in roots and link.ifindex not in by_index]
        for record in records:
            if record.link(links) is None:
                wrong.append(f"{record.name} is gone; its record is kept: '{forgets(space, record.name)}' drops it")
    shown = []
    live = devices.queue_list(space)
    for link in chosen:
        try:
            shown.append(device(space, live, link, by_index.get(link.ifindex)))
        except Refused:
            if names:
                raise
    return shown, wrong
