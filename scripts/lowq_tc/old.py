# SPDX-License-Identifier: GPL-2.0
"""Records of lowq 0.2 and 0.3 as today's, so that what they set can be reset. For one release."""

from __future__ import annotations

from lowq_common.values import Json

from .journal import QueueRecord, Space, Thing


def convert(spaces: dict[int, Space], made: list[Json]) -> None:
    for one in made:
        if one and "record" in one:
            (device if "ifindex" in one["record"] else host)(spaces, one["record"])


def device(spaces: dict[int, Space], record: Json) -> None:
    mine = spaces.setdefault(record["cookie"], Space(record["inode"], record["namespace"]))
    index, commands, remake = record["ifindex"], [], []
    for step in record["steps"]:
        if step["state"] in ("planned", "undone") and not step["earlier"]:
            continue
        if step["aspect"] == "gso_max_segs":
            number = int(step["commands"][0][0][-1]) if step["commands"] else step["after"]
            mine.things.append(Thing("gso_max_segs", str(index), step["before"]["state"], [step["after"] or number]))
        elif step["aspect"] == "queue":
            remake = [argv for argv, _, _ in step["before"]["commands"]]
            commands = [argv for argv, _, _ in step["commands"] if argv[2] != "del"]
            if step["before"]["state"]["txqlen"] == 0:
                mine.things.append(Thing("txqueuelen", str(index), 0, [1000]))
        elif step["aspect"] == "clsact" and not step["before"]["state"]:
            mine.things.append(Thing("clsact", str(index), False, [True]))
            remake += [["tc", "filter", "del", "dev", record["name"], "egress", "pref", argv[argv.index("pref") + 1]]
                       for argv, _, _ in step["commands"] if argv[1] == "filter"]
        elif step["aspect"] == "filters":
            remake = [*remake, *(["tc", "filter", "del", "dev", record["name"], "egress", "pref", pref]
                                 for pref in step["target"].split())]
    mine.queues[index] = QueueRecord(index, record["name"], record["permanent"], record["profile"], [], record["report"],
                                     commands, None, remake)


def host(spaces: dict[int, Space], record: Json) -> None:
    for cookie, own in record["own"].items():
        mine = spaces.setdefault(int(cookie), Space(own["inode"], own["name"]))
        mine.controls = {control: [] for control in own["controls"]}
        mine.things += [thing for step in record["steps"].get(cookie, []) for thing in [thing_of(step)] if thing]
    for step in record["shared"]:
        for cookie, inode in step["users"].items():
            thing = thing_of(step)
            if thing:
                spaces.setdefault(int(cookie), Space(inode, None)).things.append(thing)


def thing_of(step: Json) -> Thing | None:
    if step["state"] in ("planned", "undone") and not step["earlier"]:
        return None
    ours = [step["after"]] if step["after"] is not None else [True] if step["aspect"] in ("module", "allowed") else \
        [step["commands"][0][0][-1].rpartition("=")[2]] if step["aspect"] != "route" else []
    if step["aspect"] == "route":
        ours = [step["after"]] if step["after"] is not None else [[" ".join(step["commands"][0][0]).partition(" route ")[2]
                                                                   .partition(" ")[2]]]
    return Thing(step["aspect"], step["target"], step["before"]["state"], ours, step["control"])
