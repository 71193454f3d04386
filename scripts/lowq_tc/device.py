# SPDX-License-Identifier: GPL-2.0
"""lowq-tc PROFILE DEV, and lowq-tc reset DEV.

It replaces the kernel's own default queue, or one of its own, which its handle tells, and no other. So what was there
before comes back by itself when lowq-tc's is removed."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple

from lowq_common import devices, queues, system
from lowq_common.devices import Link
from lowq_common.errors import Failed, NoDevice, Refused
from lowq_common.system import Namespace
from lowq_common.units import rate_text
from lowq_common.values import LOWQ_PREFS, LOWQ_ROOT, Json

from . import tc_help
from .command import Command, tc
from .execute import carry_out, undoing
from .journal import Journal, QueueRecord, Space, Thing, address_of
from .options import Options
from .plan import device_facts, wanted
from .profiles import PROFILES
from .profiles.base import Profile, Tc
from .report import Report
from .things import undo
from .world import CHOSEN, EGRESS, ROOT, World

# kinds of queue that tc shows in the words that it takes
WORDS = ("pfifo", "bfifo", "pfifo_fast", "prio", "mq", "codel", "fq_codel", "fq", "htb", "cake", "netem", "noqueue")
OF_DEVICES = ("gso_max_segs", "txqueuelen", "clsact")  # kinds of things
MOST = 0x1000  # handles of lowq-tc's, from ROOT on


class Result(NamedTuple):
    """What an action did, for cli to print."""

    action: str
    status: str  # planned, applied, unchanged, failed
    device: str
    profile: str
    headline: str
    report: Report
    commands: list[Command]
    before: list[str] = []  # what is there now, in the words of commands


def the_link(world: World, name: str) -> Link:
    link = world.named(name)
    if link is None:
        raise NoDevice(f"no device '{name}'{world.space.suffix}")
    return link


@lru_cache
def offers(*probe: str) -> bool:
    return tc_help.tc_offers(*probe)


def tc_facts(profile: Profile, options: Options, report: Report) -> tuple[Tc, str]:
    """What this tc can do, and the folder of the plugins that it needs, if any."""
    found = {probe: offers(*probe) for probe in profile.probes(options)}
    plugins = ""
    missing = ("dualpi2", "step_thresh")
    if found.get(missing) is False and os.path.exists(f"{devices.PLUGINS}/q_dualpi2.so"):
        plugins = devices.PLUGINS
        found[missing] = offers(*missing, plugins)
        report.note(f"tc knows dualpi2's options by a plugin: TC_LIB_DIR={plugins}")
    version = tc_help.tc_version() if found and not all(found.values()) else ""
    return Tc(version, found, tc_help.rounds_up()), plugins


def with_plugins(commands: list[Command], plugins: str) -> list[Command]:
    """The commands with the environment that tc needs, so that they run as printed."""
    return [
        command._replace(argv=("env", f"TC_LIB_DIR={plugins}", *command.argv))
        if plugins and "dualpi2" in command.argv else command for command in commands
    ]


# --- what is there --------------------------------------------------------------------


def refuse_others(world: World, link: Link) -> None:
    """Only the kernel's own queue is replaced, and lowq-tc's"""
    if world.is_ours(link.ifindex):
        refuse_below(world, link, "replace")
        return
    others = [one for one in world.qdiscs(link.ifindex) if one.handle and one.kind not in ("clsact", "ingress")]
    if not others:
        return
    away, again = by_hand(world.space, link)
    raise Refused(f"{link.name} has a queue that lowq-tc did not make, '{others[0].kind}'. '{away}' takes it away;"
                  f" {again}")


def by_hand(space: Namespace, link: Link) -> tuple[str, str]:
    """The commands that take a queue away, and those that make it again, as far as tc's words tell them"""
    status, shown, _ = system.output(space.tool("tc", "-d", "qdisc", "show", "dev", link.name))
    made: list[str] = []
    kinds: set[str] = set()
    for match in re.finditer(r"(?m)^qdisc (\S+) ([0-9a-f]+:) (?:dev \S+ )?(root|parent \S+)(.*)$", shown if not status else ""):
        kind, handle, place, words = match.groups()
        if handle == "0:":
            continue
        kinds.add(kind)
        words = re.sub(r" refcnt \d+| direct_\w+ \S+| r2q \S+| ver \S+", "", words)
        words = re.sub(r"\b(limit|flow_limit|depth|quantum|initial_quantum) (\d+)[pb]\b", r"\1 \2", words).replace("default 0x", "default ")
        made.append(f"tc {f'-n {space.name} ' if space.name else ''}qdisc add dev {link.name} {place} handle {handle} {kind}"
                    + (words if kind not in ("mq", "pfifo_fast") else "").rstrip())
    away = Command(("tc", "qdisc", "del", "dev", link.name, "root")).text(space.name)
    known = made and all(match in WORDS for match in kinds)
    again = f"'{'; '.join(made)}' makes it again, without its classes and filters" if known else \
        f"'tc -d qdisc show dev {link.name}' says how it was made"
    return away, again


def refuse_below(world: World, link: Link, what: str) -> None:
    """A queue of someone else's below lowq-tc's"""
    for one in world.qdiscs(link.ifindex):
        major = one.handle >> 16
        if major and not ROOT <= major < ROOT + MOST and major < CHOSEN and one.kind not in ("clsact", "ingress"):
            away = tc("qdisc", "del", "dev", link.name, "parent", queues.handle_text(one.parent)).text(world.space.name)
            raise Refused(f"{link.name}: someone else has put '{one.kind} {queues.handle_text(one.handle)}' below the queue"
                          f" of lowq-tc; '{away}' takes it away, --force {what}s both")


def differences(world: World, mine: Space, record: QueueRecord) -> list[str]:
    """What is not as lowq-tc left it"""
    now, found = world.tree(record.ifindex), []
    if record.tree is None:
        return []
    if now["qdiscs"] != record.tree["qdiscs"]:
        root = world.root(record.ifindex)
        if not world.is_ours(record.ifindex):
            found.append(f"the queue was changed: its root is '{root.kind if root else 'none'}' now")
        else:
            new = [one for one in now["qdiscs"] if one not in record.tree["qdiscs"]]
            text = f"'{new[0][0]} {queues.handle_text(new[0][1])}' at {queues.handle_text(new[0][2])}" if new else "fewer queues"
            found.append(f"the queue was changed: it has {text} now")
    for name, what in (("classes", "its classes"), ("filters", "its filters"), ("egress", "the filters at clsact")):
        if now.get(name) != record.tree.get(name):
            found.append(f"{what} {'are gone' if not now.get(name) else 'were changed'}")
    for thing in things_of(mine, record.ifindex):
        if not undo(world, thing).done:
            found.append(undo(world, thing).said.partition(";")[0])
    return found


def out_of_date(world: World, record: QueueRecord, link: Link) -> list[str]:
    """What the thresholds were computed from, and is not so any more"""
    was = record.report["params"].get("computed_for", {})
    if not was:
        return []
    hardware = devices.hardware(world.space, link, world.ioctl)
    found = []
    if was["mtu"] != link.mtu:
        found.append(f"an MTU of {was['mtu']}, which is {link.mtu} now")
    if was.get("speed", hardware.speed) not in (0, hardware.speed) and hardware.speed:
        found.append(f"a speed of {rate_text(was['speed'])}, which is {rate_text(hardware.speed)} now")
    if was.get("tso", hardware.tso) != hardware.tso:
        found.append(f"TSO {'on' if was['tso'] else 'off'}, which is {'on' if hardware.tso else 'off'} now")
    return found


def things_of(mine: Space, ifindex: int) -> list[Thing]:
    return [one for one in mine.things if one.kind in OF_DEVICES and one.target == str(ifindex)]


def stray(world: World, name: str, hidden: str) -> str:
    """Of a device with lowq-tc's queue and no record. hidden: why this user sees none"""
    if hidden:
        return f"{name} has a queue of lowq-tc, and {hidden}"
    remove = Command(("lowq-tc", "reset", name)).text(world.space.name)
    return f"{name} has a queue with lowq-tc's handle {LOWQ_ROOT} but there is no record of it; '{remove}' removes it"


# --- set --------------------------------------------------------------------------------


class Planned(NamedTuple):
    link: Link
    record: QueueRecord
    old: QueueRecord | None
    away: list[Command]  # what is there of lowq-tc's
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
    if not options.has("force") or not world.is_ours(link.ifindex):
        refuse_others(world, link)
    index = str(link.ifindex)
    segments = mine.thing("gso_max_segs", index)
    if segments and link.gso_segs not in segments.ours:
        segments = None
    facts = device_facts(link, devices.hardware(world.space, link, world.ioctl), world.qdiscs(link.ifindex),
                         segments.before if segments else link.gso_segs)
    offered, plugins = tc_facts(profile, options, report)
    want = wanted(profile, facts, options, offered, report)
    made = list(with_plugins(want.tree, plugins))
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
    clsact = None
    if want.egress:
        clsact = beside_others(world, link, mine, report)
        note("clsact", clsact, True)
    stale = [one for one in things_of(mine, link.ifindex) if all(one.kind != new.kind for new, _ in things)]
    if not clsact and want.egress:
        made.append(tc("qdisc", "add", "dev", link.name, "clsact"))
    made += want.egress
    kept = [list(command.argv) for command in made if command.argv[-1] != "clsact"]
    record = QueueRecord(link.ifindex, link.name, address_of(link), profile.name, given_words(options), report.to_json(), kept)
    away = taken_away(world, link)
    for thing in stale:
        if thing.kind == "clsact":
            away = without_clsact(world, link, away)
        else:
            away += undo(world, thing).commands
    unchanged = bool(
        keep and old and old.tree is not None and not stale and same_commands(old, record)
        and old.report["params"].get("computed_for") == report.params.get("computed_for")
        and all(thing.before == (mine.thing(thing.kind, index) or thing).before and now in thing.ours for thing, now in things)
        and not differences(world, mine, old)
    )
    if old:
        before = [Command(tuple(words)).text(world.space.name) for words in old.commands]
    else:
        root = world.root(link.ifindex)
        before = [f"# {root.kind if root else 'noqueue'}, the kernel's own queue"]
    return Planned(link, record, old, away, made, things, stale, report, unchanged, before)


def given_words(options: Options) -> list[str]:
    made = []
    for name, value in options.given.items():
        if name not in ("netns", "dry-run", "json", "force", "no-rehearsal", "quiet"):
            made += [f"--{name}" + (f"={one}" if one else "") for one in (value if isinstance(value, list) else [value])]
    return made


def same_commands(old: QueueRecord, new: QueueRecord) -> bool:
    renamed = [list(Command(tuple(words)).on_device({old.name: new.name}).argv) for words in old.commands]
    return (renamed, old.profile) == (new.commands, new.profile)


def beside_others(world: World, link: Link, mine: Space, report: Report) -> bool:
    """Is there a clsact? Refused where filters cannot be put behind those of others"""
    found = next((one for one in world.qdiscs(link.ifindex) if one.kind in ("clsact", "ingress")), None)
    if not found:
        return False
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


def without_clsact(world: World, link: Link, away: list[Command], prefs: tuple[int, ...] = LOWQ_PREFS) -> list[Command]:
    """What removes the clsact that lowq-tc has added, and its filters with it; those of others keep it"""
    if not has_clsact(world, link.ifindex) or any(one.pref not in prefs for one in world.filters_at_clsact(link.ifindex)):
        return away
    return [one for one in away if "filter" not in one.argv] + [tc("qdisc", "del", "dev", link.name, "clsact")]


def taken_away(world: World, link: Link) -> list[Command]:
    """What removes all that is lowq-tc's by its handle or preferences"""
    made = [tc("qdisc", "del", "dev", link.name, "root")] if world.is_ours(link.ifindex) else []
    ours = world.ours_at_clsact(link.ifindex)
    made += [tc("filter", "del", "dev", link.name, "egress", "pref", pref) for pref in sorted({one.pref for one in ours})]
    return made


def result_of(world: World, planned: Planned, dry: bool) -> Result:
    name, profile, report = planned.link.name, planned.record.profile, planned.report
    if planned.unchanged:
        return Result("apply", "unchanged", name, profile, f"{profile} on {name}: is set", report, [])
    status, says = ("planned", "would run") if dry else ("applied", "set")
    return Result("apply", status, name, profile, f"{profile} on {name}: {says}", report,
                  planned.away + planned.commands, planned.before)


def apply(world: World, journal: Journal, planned: Planned) -> Result:
    done = apply_all(world, journal, [planned])[0]
    if isinstance(done, Failed):
        raise done
    return done


def apply_all(world: World, journal: Journal, all_planned: list[Planned]) -> list[Result | Failed]:
    """Each device as a whole or not at all, by one tc for all of them"""
    mine = journal.space(world.space)
    rest = [one for one in all_planned if not one.unchanged]
    was: dict[int, list[Thing]] = {}
    for one in rest:
        was[one.link.ifindex] = things_of(mine, one.link.ifindex)
        mine.queues[one.link.ifindex] = one.record
        for thing, _ in one.things:
            replace(mine, thing)
        if one.old:
            one.record.remake = one.old.remake
    if rest:
        journal.save()
    failed: dict[int, Failed] = {}
    done: list[Planned] = []
    while rest:
        owner = {id(command): at for at, one in enumerate(rest) for command in one.away + one.commands}
        ordered = sorted([command for one in rest for command in one.away + one.commands], key=lambda command:
                         command.argv[0] != "ip")
        broken: list[int] = []

        def back() -> None:
            world.refresh()
            put_back(world, journal, mine, rest[broken[0]], was[rest[broken[0]].link.ifindex])

        try:
            for command, said in carry_out(ordered, world.space, journal.lock_file, back,
                                           lambda command: broken.append(owner[id(command)])):
                rest[owner[id(command)]].report.not_honoured(
                    f"--exact: this kernel refuses it ({said}): red looks at an average")
            done += rest
            rest = []
        except Failed as error:
            failed[rest[broken[0]].link.ifindex] = error
            done += rest[:broken[0]]
            rest = rest[broken[0] + 1:]
    if done:
        world.refresh()
        for one in done:
            finish(world, mine, one)
        if text := journal.save_undone():
            done[0].report.note(text.replace("what is undone stays so", "all is set, but show takes it for cut short"))
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
    commands = taken_away(world, link)
    for thing, now in reversed(planned.things):
        commands += undo(world, thing, to=now).commands
    if old:
        again = [Command(tuple(words)).on_device({old.name: link.name}) for words in old.commands]
        if any("egress" in command.argv for command in again) and not has_clsact(world, index):
            commands.append(tc("qdisc", "add", "dev", link.name, "clsact"))
        commands += again
    undoing_raw(commands, world.space, journal.lock_file)
    world.refresh()
    mine.things = [one for one in mine.things if one.kind not in OF_DEVICES or one.target != str(index)] + was
    if old:
        mine.queues[index] = old
        old.tree = world.tree(index)
    else:
        mine.queues.pop(index, None)
    journal.save()


def undoing_raw(commands: list[Command], space: Namespace, lock: int) -> None:
    from .execute import Interrupted, run_all

    Interrupted.by = 0
    run_all(commands, space, lock)


def has_clsact(world: World, ifindex: int) -> bool:
    return any(one.kind == "clsact" for one in world.qdiscs(ifindex))


def replace(mine: Space, thing: Thing) -> None:
    mine.things = [one for one in mine.things if (one.kind, one.target) != (thing.kind, thing.target)] + [thing]


def finish(world: World, mine: Space, planned: Planned) -> None:
    """It is set: what it looks like is known now"""
    planned.record.tree = world.tree(planned.link.ifindex)
    planned.record.report = planned.report.to_json()
    for thing, _ in planned.things:
        thing.ours = thing.ours[-1:]
        if thing.before == thing.ours[0]:
            mine.things.remove(thing)
    mine.things = [one for one in mine.things if one not in planned.stale]


# --- reset ------------------------------------------------------------------------------


class Reset(NamedTuple):
    link: Link
    record: QueueRecord | None
    commands: list[Command]
    things: list[Thing]
    left: list[str]  # what is left alone, and why
    report: Report


def plan_reset(world: World, journal: Journal, link: Link, force: bool) -> Reset:
    """All that is lowq-tc's on a device, with or without a record"""
    mine, index, report = journal.space(world.space), link.ifindex, Report()
    record = mine.queues.get(index)
    if record and not record.is_of(link):
        mine.queues.pop(index)
        record = None
    ours = world.is_ours(index)
    if ours and not force:
        refuse_below(world, link, "remove")
    commands = taken_away(world, link)
    remake = [list(Command(tuple(words)).on_device({record.name: link.name}).argv) for words in record.remake] if record else []
    prefs = (*LOWQ_PREFS, *(int(words[-1]) for words in remake if words[1] == "filter"))
    things, left = [], []
    for thing in reversed(things_of(mine, index)):
        undone = undo(world, thing, force)
        if thing.kind == "clsact" and undone.done:
            commands = without_clsact(world, link, commands, prefs)
            if commands and commands[-1].argv[-1] == "clsact":
                remake = [words for words in remake if words[1] != "filter"]
        else:
            commands += undone.commands
        if undone.done:
            things.append(thing)
        else:
            left.append(undone.said)
    if record:
        root = world.root(index)
        if not ours and root and root.handle:
            report.note(f"its queue is someone else's now, '{root.kind}': left alone")
        else:
            commands += [Command(tuple(words)) for words in remake]
        if link.name != record.name:
            report.note(f"{record.name} is called {link.name} now")
    return Reset(link, record, commands, things, left, report)


def reset_result(world: World, plan: Reset, dry: bool) -> Result:
    name, profile = plan.link.name, plan.record.profile if plan.record else ""
    if not (plan.commands or plan.record or plan.things):
        return Result("reset", "unchanged", name, "", f"{name}: nothing to undo", plan.report, [])
    before = [Command(tuple(words)).text(world.space.name) for words in plan.record.commands] if plan.record else []
    status, says = ("planned", "would run") if dry else ("applied", "put back")
    return Result("reset", status, name, profile, f"{name}: {says}", plan.report, plan.commands, before)


def reset_all(world: World, journal: Journal, links: list[Link], options: Options) -> tuple[list[Result], list[str]]:
    """-> what was done, and errors. By one tc for all of them; one by one if that fails"""
    dry, force, mine = options.has("dry-run"), options.has("force"), journal.space(world.space)
    plans: list[Reset] = []
    errors: list[str] = []
    results: list[Result] = []
    for link in links:
        try:
            plans.append(plan_reset(world, journal, link, force))
        except (Refused, Failed) as error:
            errors.append(str(error))
    if dry:
        errors += [f"{plan.link.name}: {'; '.join(plan.left)}" for plan in plans if plan.left]
        return [reset_result(world, plan, True) for plan in plans if not plan.left], errors
    commands = [command for plan in plans for command in plan.commands]
    try:
        undoing(sorted(commands, key=lambda command: command.argv[0] == "ip"), world.space, journal.lock_file)
    except Failed as error:
        world.refresh()
        if len(plans) == 1:
            return [], [*errors, f"{plans[0].link.name}: {error}"]
        for plan in plans:
            done, said = reset_all(world, journal, [plan.link], options) if world.link(plan.link.ifindex) else ([], [])
            results, errors = results + done, errors + said
        return results, errors
    for plan in plans:
        mine.things = [one for one in mine.things if one not in plan.things]
        if plan.left:
            errors.append(f"{plan.link.name}: {'; '.join(plan.left)}")
        else:
            mine.queues.pop(plan.link.ifindex, None)
            results.append(reset_result(world, plan, False))
    if (text := journal.save_undone()) and results:
        results[0].report.note(text)
    world.refresh()
    return results, errors


def forget_gone(world: World, mine: Space) -> None:
    """Devices that are gone took their queues with them."""
    there = {link.ifindex for link in world.links}
    mine.queues = {index: one for index, one in mine.queues.items() if index in there}
    mine.things = [one for one in mine.things if one.kind not in OF_DEVICES or int(one.target) in there]


def reset(world: World, journal: Journal, options: Options) -> tuple[list[Result], list[str]]:
    if options.has("all") and options.names:
        raise Refused("reset: --all, or a device, not both")
    if not options.has("all") and not options.names:
        raise Refused("reset: which device? (or --all)")
    if not options.has("dry-run"):
        journal.begin(undo=True)
    mine = journal.space(world.space)
    if journal.hidden:
        raise Refused(journal.hidden)
    if options.has("all"):
        done = reset_all(world, journal, touched(world, mine), options)
        if not options.has("dry-run"):
            forget_gone(world, mine)
            journal.settle(world.space)
            journal.save_undone()
        return done
    name = options.names[0]
    index = next((index for index, one in mine.queues.items() if one.name == name), 0)
    link = world.named(name) or world.link(index)  # by the name that it has, or had
    if link is None and index:
        if not options.has("dry-run"):
            forget_gone(world, mine)
            journal.save_undone()
        return [Result("reset", "unchanged", name, "", f"{name} is gone, and its queue with it", Report(), [])], []
    return reset_all(world, journal, [link or the_link(world, name)], options)


def touched(world: World, mine: Space) -> list[Link]:
    """Devices with something of lowq-tc's, with or without a record"""
    things = {int(one.target) for one in mine.things if one.kind in OF_DEVICES}
    found = [link for link in world.links if link.ifindex in mine.queues or link.ifindex in things or world.is_ours(link.ifindex)]
    return sorted(found, key=lambda link: link.name)
