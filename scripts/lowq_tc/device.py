# SPDX-License-Identifier: GPL-2.0
"""lowq-tc PROFILE DEV, and lowq-tc reset DEV.

It replaces the kernel's own default queue, or one of its own, which its handle tells, and no other. So what was there
before comes back by itself when lowq-tc's is removed."""

from __future__ import annotations

import re
from typing import NamedTuple

from lowq_common import devices, queues
from lowq_common.devices import Link
from lowq_common.errors import Failed, Refused
from lowq_common.units import rate_text
from lowq_common.values import LOWQ_PREFS, LOWQ_ROOT, Json

from .command import Command, tc
from .execute import carry_out, run_all, undoing
from .journal import OF_DEVICES, Journal, QueueRecord, Space, Thing, address_of
from .options import Options
from .plan import HEADERS, device_facts, tc_facts, wanted
from .profiles import PROFILES
from .report import Report, Result
from .things import IFB_INDEX, KINDS, undo
from .world import CHOSEN, EGRESS, ROOT, World

# kinds of queue that tc shows in the words that it takes
WORDS = {"pfifo", "bfifo", "pfifo_fast", "prio", "mq", "codel", "fq_codel", "fq", "htb", "cake", "netem", "noqueue"}
MOST = 0x1000  # handles of lowq-tc's, from ROOT on


def the_link(world: World, name: str) -> Link:
    link = world.named(name)
    if link is None:
        raise Refused(f"no device '{name}'{world.space.suffix}")
    return link


# --- what is there --------------------------------------------------------------------


def refuse_others(world: World, link: Link, force: bool) -> None:
    """Only the kernel's own queue is replaced, and lowq-tc's"""
    if world.is_ours(link.ifindex):
        refuse_below(world, link, "replace", force)
        return
    others = [one for one in world.queues_of(link.ifindex) if one.handle]
    if others:
        away, again = by_hand(world, link)
        raise Refused(f"{link.name} has a queue that lowq-tc did not make, '{others[0].kind}'. '{away}' takes it away;"
                      f" {again}")


def by_hand(world: World, link: Link) -> tuple[str, str]:
    """The commands that take a queue away, and those that make it again, as far as tc's words tell them"""
    space = world.space
    status, shown, _ = space.output("tc", "-d", "qdisc", "show", "dev", link.name)
    found = re.findall(r"(?m)^qdisc (\S+) (?!0:)([0-9a-f]+:) (?:dev \S+ )?(root|parent \S+)(.*)$", shown if not status else "")
    made = []
    for kind, handle, place, words in found:
        words = re.sub(r" refcnt \d+| direct_\w+ \S+| r2q \S+| ver \S+|(?<= default )0x", "", words)
        words = re.sub(r"\b(limit|flow_limit|depth|quantum|initial_quantum) (\d+)[pb]\b", r"\1 \2", words).rstrip()
        made.append(tc("qdisc", "add", "dev", link.name, *place.split(), "handle", handle, kind).text(space.name)
                    + (words if kind not in ("mq", "pfifo_fast") else ""))
    away = tc("qdisc", "del", "dev", link.name, "root").text(space.name)
    if made and {kind for kind, *_ in found} <= WORDS:
        return away, f"'{'; '.join(made)}' makes it again, without its classes and filters"
    return away, f"'tc -d qdisc show dev {link.name}' says how it was made"


def refuse_below(world: World, link: Link, what: str, force: bool) -> None:
    """A queue of someone else's below lowq-tc's"""
    for one in world.queues_of(link.ifindex):
        major = one.handle >> 16
        if major and not ROOT <= major < ROOT + MOST and major < CHOSEN and not force:
            away = tc("qdisc", "del", "dev", link.name, "parent", queues.handle_text(one.parent)).text(world.space.name)
            raise Refused(f"{link.name}: someone else has put '{one.kind} {queues.handle_text(one.handle)}' below the queue"
                          f" of lowq-tc; '{away}' takes it away, --force {what}s both")


def differences(world: World, mine: Space, record: QueueRecord) -> list[str]:
    """What is not as lowq-tc left it"""
    if not world.link(record.ifindex):
        return ["the device is a new one, and the queue went with the old one; set it again"]
    now, found = world.tree(record.ifindex), []
    if record.tree is None:
        return []
    if now["qdiscs"] != record.tree["qdiscs"]:
        root = world.root(record.ifindex)
        new = [one for one in now["qdiscs"] if one not in record.tree["qdiscs"]]
        if not world.is_ours(record.ifindex):
            text = f"its root is '{root.kind if root else 'none'}'"
        elif new:
            text = f"it has '{new[0][0]} {queues.handle_text(new[0][1])}' at {queues.handle_text(new[0][2])}"
        else:
            text = "it has fewer queues"
        found.append(f"the queue was changed: {text} now")
    for name, what in (("classes", "its classes"), ("filters", "its filters"), ("egress", "the filters at clsact")):
        if now.get(name) != record.tree.get(name):
            found.append(f"{what} {'were changed' if now.get(name) else 'are gone'}")
    if any(one.kind == "ingress" and KINDS["ingress"].read(world, one.target) != "redirected"
           for one in mine.things_of(record.ifindex)):
        found.append("what arrives does not go to it any more")
    undone = [undo(world, thing) for thing in mine.things_of(record.ifindex)]
    return found + [one.said.partition(";")[0] for one in undone if not one.done]


def out_of_date(world: World, record: QueueRecord, link: Link) -> list[str]:
    """What the thresholds were computed from, and is not so any more"""
    was = record.report["params"].get("computed_for", {})
    hardware = devices.hardware(world.space, link, world.ioctl)
    found = []
    if was.get("mtu", link.mtu) != link.mtu:
        found.append(f"an MTU of {was['mtu']}, which is {link.mtu} now")
    if was.get("speed", hardware.speed) not in (0, hardware.speed) and hardware.speed:
        found.append(f"a speed of {rate_text(was['speed'])}, which is {rate_text(hardware.speed)} now")
    if was.get("tso", hardware.tso) != hardware.tso:
        found.append("TSO on, which is off now" if was["tso"] else "TSO off, which is on now")
    return found


def stray(world: World, name: str, hidden: str) -> str:
    """Of a device with lowq-tc's queue and no record. hidden: why this user sees none"""
    if hidden:
        return f"{name} has a queue of lowq-tc, and {hidden}"
    remove = Command(("lowq-tc", "reset", name)).text(world.space.name)
    return f"{name} has a queue with lowq-tc's handle {LOWQ_ROOT} but there is no record of it; '{remove}' removes it"


def commands_of(record: QueueRecord, link: Link) -> list[Command]:
    """Those that made a queue, with the name that its device has now"""
    return [Command(tuple(words)).on_device({record.name: link.name}) for words in record.commands]


# --- set --------------------------------------------------------------------------------


class Planned(NamedTuple):
    link: Link
    record: QueueRecord
    old: QueueRecord | None
    commands: list[Command]
    things: list[tuple[Thing, Json]]  # and what they are before this call
    stale: list[Thing]  # of an earlier call; undone by this one
    report: Report
    unchanged: bool
    before: list[str]


def plan(world: World, mine: Space, options: Options, name: str, keep: bool = False) -> Planned:
    """keep: nothing is to be done if all is as this call would make it"""
    profile, report = PROFILES[options.action], Report()
    link = the_link(world, name)
    old = mine.queues.get(link.ifindex)
    if old and not old.is_of(link):
        old = None
    refuse_others(world, link, options.has("force"))
    index = str(link.ifindex)
    segments = mine.thing("gso_max_segs", index)
    facts = device_facts(link, devices.hardware(world.space, link, world.ioctl), world.qdiscs(link.ifindex),
                         segments.before if segments and link.gso_segs in segments.ours else link.gso_segs)
    upper = world.link(link.ifindex - IFB_INDEX)
    if options.has("ingress") and upper:  # the header that its packets have
        facts = facts._replace(frame=link.mtu + HEADERS.get(upper.link_type, 0))
    tc_has = tc_facts(profile, options, report)
    want = wanted(profile, facts, options, tc_has, report)
    plugins = ("env", f"TC_LIB_DIR={tc_has.plugins}") if tc_has.plugins else ()  # so that commands run as printed
    made = [Command((*plugins, *command.argv)) if "dualpi2" in command.argv else command for command in want.tree]
    things: list[tuple[Thing, Json]] = []

    def note(kind: str, now: Json, value: Json) -> None:
        thing = mine.thing(kind, index)
        if thing and now in thing.ours:
            things.append((Thing(kind, index, thing.before, [*thing.ours, value]), now))
        elif now != value:
            things.append((Thing(kind, index, now, [value]), now))

    if want.gso_segs is not None:
        note("gso_max_segs", link.gso_segs, want.gso_segs)
        made.insert(0, Command(("ip", "link", "set", "dev", link.name, "gso_max_segs", str(want.gso_segs))))
    if not link.txqlen or mine.thing("txqueuelen", index):
        note("txqueuelen", link.txqlen, 1000)  # the kernel's, when such a device gets a queue
    add_clsact = []
    if want.egress:
        clsact = beside_others(world, link, mine, report)
        note("clsact", clsact, True)
        add_clsact = [] if clsact else [tc("qdisc", "add", "dev", link.name, "clsact")]
    record = QueueRecord(link.ifindex, link.name, address_of(link), profile.name, options.words(), report.to_json(),
                         [list(command.argv) for command in made + want.egress])
    stale = [one for one in mine.things_of(link.ifindex) if one.kind != "ingress" and all(one.kind != new.kind for new, _ in things)]
    away = taken_away(world, link, stale).commands
    unchanged = bool(
        keep and old and old.tree is not None and not stale and old.profile == record.profile
        and commands_of(old, link) == made + want.egress
        and old.report["params"].get("computed_for") == report.params.get("computed_for")
        and all(thing.before == (mine.thing(thing.kind, index) or thing).before and now in thing.ours for thing, now in things)
        and not differences(world, mine, old)
    )
    root = world.root(link.ifindex)
    before = [Command(tuple(words)).text(world.space.name) for words in old.commands] if old else \
        [f"# {root.kind if root else 'noqueue'}, the kernel's own queue"]
    return Planned(link, record, old, away + made + add_clsact + want.egress, things, stale, report, unchanged, before)


def beside_others(world: World, link: Link, mine: Space, report: Report) -> bool:
    """Is there a clsact? Refused where filters cannot be put behind those of others"""
    found = next((one for one in world.qdiscs(link.ifindex) if one.kind in ("clsact", "ingress")), None)
    if not found:
        return False
    if KINDS["ingress"].read(world, str(IFB_INDEX + link.ifindex)).startswith("redirected"):
        raise Refused(f"{link.name} has a queue of lowq-tc's for what arrives, with the same clsact; --simple needs none")
    if found.kind == "ingress":
        raise Refused(f"{link.name} has an ingress qdisc, beside which there can be no clsact; --simple needs none")
    if found.shared:
        raise Refused(f"{link.name} has a clsact whose egress filters other devices share; --simple needs none")
    last = max((one.pref for one in world.filters_at_clsact(link.ifindex, EGRESS) if one.pref not in LOWQ_PREFS), default=0)
    if last > LOWQ_PREFS[0]:
        raise Refused(f"{link.name} has a clsact with a filter of preference {last}: none can come behind it")
    if not mine.thing("clsact", str(link.ifindex)):
        report.note(f"{link.name} has a clsact: its filters come first, and what they let pass at once is taken for ECT")
    return True


class Away(NamedTuple):
    commands: list[Command]
    done: list[Thing]
    left: list[str]  # what is left alone, and why


def taken_away(world: World, link: Link, things: list[Thing], force: bool = False, more: tuple[int, ...] = ()) -> Away:
    """What removes all that is lowq-tc's by its handle or preferences (and more of these), and puts things back. Filters
    go with a clsact that lowq-tc has added, which stays if others have filters there."""
    undone = [(thing, undo(world, thing, force)) for thing in reversed(things)]
    made = [tc("qdisc", "del", "dev", link.name, "root")] if world.is_ours(link.ifindex) else []
    made += [command for thing, one in undone if thing.kind != "clsact" for command in one.commands]
    added = world.has_clsact(link.ifindex) and any(thing.kind == "clsact" and one.done for thing, one in undone)
    if added and all(one.pref in (*LOWQ_PREFS, *more) for one in world.filters_at_clsact(link.ifindex)):
        made.append(tc("qdisc", "del", "dev", link.name, "clsact"))
    else:
        prefs = sorted({one.pref for one in world.ours_at_clsact(link.ifindex)})
        made += [tc("filter", "del", "dev", link.name, "egress", "pref", pref) for pref in prefs]
    return Away(made, [thing for thing, one in undone if one.done], [one.said for _, one in undone if not one.done])


def result_of(world: World, planned: Planned, dry: bool) -> Result:
    status, says = ("unchanged", "is set") if planned.unchanged else ("planned", "would run") if dry else ("applied", "set")
    return Result("apply", status, planned.link.name, planned.record.profile,
                  f"{planned.record.profile} on {planned.link.name}: {says}", planned.report,
                  [] if planned.unchanged else planned.commands, planned.before)


def apply_all(world: World, journal: Journal, all_planned: list[Planned]) -> list[Result | Failed]:
    """Each device as a whole or not at all, by one tc for all of them"""
    mine = journal.space(world.space)
    rest = [one for one in all_planned if not one.unchanged]
    was: dict[int, list[Thing]] = {}
    for one in rest:
        was[one.link.ifindex] = mine.things_of(one.link.ifindex)
        mine.queues[one.link.ifindex] = one.record
        for thing, _ in one.things:
            mine.put(thing)
        if one.old:
            one.record.remake = one.old.remake
    if rest:
        journal.save()
    failed: dict[int, Failed] = {}
    done: list[Planned] = []
    while rest:
        owner = {id(command): at for at, one in enumerate(rest) for command in one.commands}
        commands = sorted([command for one in rest for command in one.commands], key=lambda one: one.argv[0] != "ip")
        broken = [0]

        def back() -> None:
            world.refresh()
            put_back(world, journal, mine, rest[broken[-1]], was[rest[broken[-1]].link.ifindex])

        try:
            for command, said in carry_out(commands, world.space, journal.lock_file, back,
                                           lambda command: broken.append(owner[id(command)])):
                rest[owner[id(command)]].report.not_honoured(
                    f"--exact: this kernel refuses it ({said}): red looks at an average")
            broken.append(len(rest))
        except Failed as error:
            failed[rest[broken[-1]].link.ifindex] = error
        done += rest[:broken[-1]]
        rest = rest[broken[-1] + 1:]
    if done:
        world.refresh()
        for one in done:
            one.record.tree = world.tree(one.link.ifindex)  # what it looks like is known now
            one.record.report = one.report.to_json()
            for thing, _ in one.things:
                mine.done(thing)
            mine.things = [thing for thing in mine.things if thing not in one.stale]
        done[0].report.note(journal.save_undone().replace("what is undone stays so", "all is set, but show takes it for cut short"))
    return [failed.get(one.link.ifindex) or result_of(world, one, False) for one in all_planned]


def put_back(world: World, journal: Journal, mine: Space, planned: Planned, was: list[Thing]) -> None:
    """What was there before a call that failed: nothing, or the queue of an earlier one"""
    index, old = planned.link.ifindex, planned.old
    link = world.link(index)
    if link is None:
        mine.queues.pop(index, None)
        forget_gone(world, mine)
        journal.save()
        raise Refused("the device was removed meanwhile")
    commands = taken_away(world, link, []).commands
    for thing, now in reversed(planned.things):
        commands += undo(world, thing, to=now).commands
    again = commands_of(old, link) if old else []
    if any("egress" in command.argv for command in again) and not world.has_clsact(index):
        commands.append(tc("qdisc", "add", "dev", link.name, "clsact"))
    run_all(commands + again, world.space, journal.lock_file)
    world.refresh()
    mine.things = [one for one in mine.things if one not in mine.things_of(index)] + was
    mine.queues.pop(index, None)
    if old:
        mine.queues[index] = old
        old.tree = world.tree(index)
    journal.save()


# --- reset ------------------------------------------------------------------------------


class Reset(NamedTuple):
    link: Link
    record: QueueRecord | None
    commands: list[Command]
    things: list[Thing]
    left: list[str]  # what is left alone, and why
    report: Report

    def result(self, space: str | None, dry: bool) -> Result:
        name, profile = self.link.name, self.record.profile if self.record else ""
        status, says = ("planned", "would run") if dry else ("applied", "put back")
        if not (self.commands or self.record or self.things):
            status, says = "unchanged", "nothing to undo"
        before = [Command(tuple(words)).text(space) for words in self.record.commands] if self.record else []
        return Result("reset", status, name, profile, f"{name}: {says}", self.report, self.commands, before)


def plan_reset(world: World, mine: Space, link: Link, force: bool) -> Reset:
    """All that is lowq-tc's on a device, with or without a record"""
    index, report = link.ifindex, Report()
    record = mine.queues.get(index)
    if record and not record.is_of(link):
        mine.queues.pop(index)
        record = None
    root = world.root(index)
    if world.is_ours(index):
        refuse_below(world, link, "remove", force)
    remake = [Command(tuple(words)).on_device({record.name: link.name}) for words in record.remake] if record else []
    filters = tuple(int(command.argv[-1]) for command in remake if command.argv[1] == "filter")
    things = mine.things_of(index)
    if link.kind == "ifb" and index > IFB_INDEX and not things:  # its index tells
        things = [Thing("ingress", str(index), "", ["redirected"])]
    away = taken_away(world, link, things, force, filters)
    if away.commands and away.commands[-1].argv[-1] == "clsact":  # and its filters
        remake = [command for command in remake if command.argv[1] != "filter"]
    if record and not world.is_ours(index) and root and root.handle:
        report.note(f"its queue is someone else's now, '{root.kind}': left alone")
        remake = []
    if record and link.name != record.name:
        report.note(f"{record.name} is called {link.name} now")
    return Reset(link, record, away.commands + remake, away.done, away.left, report)


def reset_all(world: World, journal: Journal, links: list[Link], options: Options) -> tuple[list[Result], list[str]]:
    """-> what was done, and errors. By one tc for all of them; one by one if that fails"""
    dry, mine = options.has("dry-run"), journal.space(world.space)
    plans: list[Reset] = []
    errors: list[str] = []
    results: list[Result] = []
    for link in links:
        try:
            plans.append(plan_reset(world, mine, link, options.has("force")))
        except (Refused, Failed) as error:
            errors.append(str(error))
    try:
        if not dry:
            undoing(sorted([command for plan in plans for command in plan.commands], key=lambda one: one.argv[0] == "ip"),
                    world.space, journal.lock_file)
    except Failed as error:
        world.refresh()
        if len(plans) == 1:
            return [], [*errors, f"{plans[0].link.name}: {error}"]
        for plan in plans:
            done, said = reset_all(world, journal, [plan.link], options) if world.link(plan.link.ifindex) else ([], [])
            results, errors = results + done, errors + said
        return results, errors
    for plan in plans:
        if plan.left:
            errors.append(f"{plan.link.name}: {'; '.join(plan.left)}")
        else:
            results.append(plan.result(world.space.name, dry))
        if not dry:
            mine.things = [one for one in mine.things if one not in plan.things]
            if not plan.left:
                mine.queues.pop(plan.link.ifindex, None)
    if not dry:
        note = journal.save_undone()
        if results:
            results[0].report.note(note)
        world.refresh()
    return results, errors


def forget_gone(world: World, mine: Space) -> None:
    """Devices that are gone took their queues with them."""
    there = {link.ifindex for link in world.links}
    mine.queues = {index: one for index, one in mine.queues.items() if index in there}
    mine.things = [one for one in mine.things if one.kind not in OF_DEVICES or int(one.target) in there
                   or one.kind == "ingress" and KINDS["ingress"].read(world, one.target).startswith("redirected")]


def reset(world: World, journal: Journal, options: Options) -> tuple[list[Result], list[str]]:
    dry = options.has("dry-run")
    if options.has("all") == bool(options.names):
        raise Refused("reset: --all, or a device, not both" if options.names else "reset: which device? (or --all)")
    if not dry:
        journal.begin(undo=True)
    mine = journal.space(world.space)
    if journal.hidden:
        raise Refused(journal.hidden)
    results: list[Result]
    errors: list[str]
    if options.names:
        name = options.names[0]  # which it has, or had
        index = next((index for index, one in mine.queues.items() if one.name == name), 0)
        link = world.named(name) or world.link(index)
        arrives = world.link(IFB_INDEX + link.ifindex) if link else None
        lost_ones(world, journal, [name], dry)
        if link or not index:
            return reset_all(world, journal, [link or the_link(world, name), *([arrives] if arrives else [])], options)
        results = [Result("reset", "unchanged", name, "", f"{name} is gone, and its queue with it", Report())]
        errors = []
    else:
        lost_ones(world, journal, [], dry)
        results, errors = reset_all(world, journal, touched(world, mine), options)
        journal.settle(world.space)
    if not dry:
        forget_gone(world, mine)
        journal.save_undone()
    return results, errors


def lost_ones(world: World, journal: Journal, names: list[str], dry: bool) -> None:
    """What arrives at a device is dropped if it shall go to one that someone has removed"""
    mine = journal.space(world.space)
    for thing in [one for one in mine.things if one.kind == "ingress" and not world.link(int(one.target))]:
        upper = world.link(int(thing.target) - IFB_INDEX)
        if not dry and (not names or upper and {upper.name, "ifb4" + upper.name} & set(names)):
            undoing(KINDS["ingress"].set(world, thing.target, thing.before), world.space, journal.lock_file)
            mine.things.remove(thing)
            mine.queues.pop(int(thing.target), None)
            world.refresh()


def touched(world: World, mine: Space) -> list[Link]:
    """Devices with something of lowq-tc's, with or without a record"""
    known = {*mine.queues, *(int(one.target) for one in mine.things if one.kind in OF_DEVICES)}
    return sorted((link for link in world.links if link.ifindex in known or world.is_ours(link.ifindex)),
                  key=lambda link: link.name)
