# SPDX-License-Identifier: GPL-2.0
"""Records of lowq 0.2 and 0.3 as today's, so that what they set can be reset. For one release."""

from __future__ import annotations

from lowq_common.values import Json

from .journal import QueueRecord, Space, Thing


def convert(spaces: dict[int, Space], made: list[Json]) -> None:
    for one in made:
        if one and "record" in one:
            (device if "ifindex" in one["record"] else host)(spaces, one["record"])


def was_done(record: Json) -> list[Json]:
    return [step for step in record if step["state"] not in ("planned", "undone") or step["earlier"]]


def device(spaces: dict[int, Space], record: Json) -> None:
    mine = spaces.setdefault(record["cookie"], Space(record["inode"], record["namespace"]))
    index, commands, remake = record["ifindex"], [], []
    for step in was_done(record["steps"]):
        before, made, filters = step["before"]["state"], [argv for argv, _, _ in step["commands"]], []
        if step["aspect"] == "gso_max_segs":
            mine.things.append(Thing("gso_max_segs", str(index), before, [step["after"] or int(made[0][-1])]))
        elif step["aspect"] == "queue":
            remake = [argv for argv, _, _ in step["before"]["commands"]]
            commands = [argv for argv in made if argv[2] != "del"]
            if before["txqlen"] == 0:
                mine.things.append(Thing("txqueuelen", str(index), 0, [1000]))
        elif step["aspect"] == "clsact" and not before:
            mine.things.append(Thing("clsact", str(index), False, [True]))
            filters = [argv[argv.index("pref") + 1] for argv in made if argv[1] == "filter"]
        elif step["aspect"] == "filters":
            filters = step["target"].split()
        remake += [["tc", "filter", "del", "dev", record["name"], "egress", "pref", pref] for pref in filters]
    mine.queues[index] = QueueRecord(index, record["name"], record["permanent"], record["profile"], [], record["report"],
                                     commands, None, remake)


def host(spaces: dict[int, Space], record: Json) -> None:
    for cookie, own in record["own"].items():
        mine = spaces.setdefault(int(cookie), Space(own["inode"], own["name"]))
        mine.controls = {control: [] for control in own["controls"]}
        mine.things += [thing_of(step) for step in was_done(record["steps"].get(cookie, []))]
    for step in was_done(record["shared"]):
        for cookie, inode in step["users"].items():
            spaces.setdefault(int(cookie), Space(inode, None)).things.append(thing_of(step))


def thing_of(step: Json) -> Thing:
    """"after" is not known of a step that was cut short: then its command tells"""
    words, ours = step["commands"][0][0] if step["commands"] else [""], step["after"]
    if ours is None and step["aspect"] == "route":
        ours = [" ".join(words[words.index("route") + 2:])]
    elif ours is None:
        ours = step["aspect"] in ("module", "allowed") or words[-1].rpartition("=")[2]
    return Thing(step["aspect"], step["target"], step["before"]["state"], [ours], step["control"])
