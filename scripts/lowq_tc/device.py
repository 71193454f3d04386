# SPDX-License-Identifier: GPL-2.0
"""lowq-tc PROFILE DEV, and lowq-tc reset: from the journal, through steps, to the journal."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

from lowq_common import devices, system
from lowq_common.devices import Link, handle_of
from lowq_common.errors import Failed, NoDevice, Refused
from lowq_common.values import Json
from lowq_common.system import Namespace

from . import tc_help
from .aspects import CLSACT, FILTERS, QUEUE, SEGMENTS, aspect_of
from .aspects.base import Gone, Place
from .aspects.clsact import read_clsact
from .aspects.queue import read_tree, same_qdisc
from .command import Command, tc
from .execute import Runner, carry_out, rehearsal_error, rehearse, undo
from .journal import DONE, PLANNED, UNDONE, Damaged, DeviceRecord, Journal, Step, Unreadable, forgets
from .options import Options
from .plan import DELETES, Present, Wanted, device_facts, device_steps, give_up, text_of_tree, wanted, wanted_at_all
from .profiles import PROFILES
from .profiles.base import Profile, Tc
from .profiles.queues import ROOT
from .report import Report


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


def the_link(space: Namespace, links: list[Link], name: str) -> Link:
    link = devices.find_link(links, name)
    if link is None:
        raise NoDevice(f"no device '{name}'{space.suffix}")
    return link


def tc_facts(profile: Profile, options: Options, report: Report) -> tuple[Tc, str]:
    """What this tc can do, and the folder of the plugins that it needs, if any."""
    offers = {probe: tc_help.tc_offers(*probe) for probe in profile.probes(options)}
    plugins = ""
    missing = ("dualpi2", "step_thresh")
    if offers.get(missing) is False and os.path.exists(f"{devices.PLUGINS}/q_dualpi2.so"):
        plugins = devices.PLUGINS
        offers[missing] = tc_help.tc_offers(*missing, plugins)
        report.note(f"tc knows dualpi2's options by a plugin: TC_LIB_DIR={plugins}")
    return Tc(tc_help.tc_version() if offers and not all(offers.values()) else "", offers), plugins


def with_plugins(commands: list[Command], plugins: str) -> list[Command]:
    """The commands with the environment that tc needs, so that they run as printed."""
    if not plugins:
        return commands
    return [
        command._replace(argv=("env", f"TC_LIB_DIR={plugins}", *command.argv)) if "dualpi2" in command.argv else command
        for command in commands
    ]


def apply(space: Namespace, journal: Journal, profile_name: str, name: str, options: Options,
          keep: bool = False) -> Result:
    """keep: nothing is done if all is as this call would make it"""
    profile = PROFILES[profile_name]
    report = Report()
    dry = options.has("dry-run")
    if not dry:
        journal.begin()
    links = devices.links(space)
    link = the_link(space, links, name)
    place = Place(space, link)
    try:
        old = journal.device(space.cookie, link.ifindex)
    except Damaged as error:
        raise Failed(f"{error}; '{forgets(space, link.name)}' drops it and changes nothing else") from None

    if journal.hidden and with_our_root(space, link.name):
        raise Refused(stray(space, journal, link.name))
    if not dry:
        forget_unplugged(space, journal, links, link)

    first: list[Command] = []  # what puts back an earlier call that was cut short
    assumed: dict[str, Json] = {}
    if old and not old.complete:
        report.note("an earlier lowq-tc was cut short: what it did is put back first")
        first, left = undo(Runner(place, journal.lock_file, lambda: None), old.steps, dry=True)
        if left:
            raise Failed(f"{link.name}: {'; '.join(left)}")
        assumed = {step.aspect: step.before.state for step in old.steps if step.state != PLANNED or step.earlier}
        if not dry:
            put_back(place, journal, old, False, report)
            link = place.refresh()
            first, assumed = [], {}
        old = None
    shown = devices.qdiscs(space, link.name)
    states = {SEGMENTS.name: link.gso_segs, QUEUE.name: read_tree(space, link, shown),
              CLSACT.name: read_clsact(space, link.name, shown)}
    states.update(assumed)
    present = Present(states, system.sysctl_everywhere("net.core.default_qdisc") if space.own else None)
    standing = old.step(SEGMENTS.name) if old else None
    ours = standing and SEGMENTS.made_by_us(place, standing, link.gso_segs)
    gso_segs = standing.before.state if standing and ours else link.gso_segs
    facts = device_facts(link, devices.hardware(space, link), states[QUEUE.name], gso_segs)
    offers, plugins = tc_facts(profile, options, report)
    want = wanted(profile, facts, options, offers, report)
    want = want._replace(tree=with_plugins(want.tree, plugins))
    steps = device_steps(place, link, want, present, old, options.has("force"), report)
    tree = next(step for step in steps if step.aspect == QUEUE.name)
    before = ["# " + (text_of_tree(states[QUEUE.name]) or "the kernel's own queue")]
    if old:
        before = [command.text(space.name) for step in old.steps for command in made_by(step, old, link)]
        if keep and as_before(old, steps, profile_name, report, place):
            return Result("apply", "unchanged", link.name, profile_name, f"{profile_name} on {link.name}: is set",
                          report, [])
    if not dry and not options.has("no-rehearsal"):
        rehearsed(link, facts.queues, tree, steps, options.has("force"), report)
    report.params["previous_exact"] = not tree.lost
    commands = first + [command for step in steps for command in step.commands]
    if dry:
        return Result("apply", "planned", link.name, profile_name, f"{profile_name} on {link.name}: would run",
                      report, commands, before)

    record = DeviceRecord(
        space.cookie, space.inode, space.name, link.ifindex, link.name, link.address,
        link.permanent or ("" if link.kind else link.address), link.kind, profile_name, report.to_json(), steps,
    )
    forward(place, journal, record, old, want, report)
    return Result("apply", "applied", link.name, profile_name, f"{profile_name} on {link.name}: set", report, commands)


def forget_unplugged(space: Namespace, journal: Journal, links: list[Link], link: Link) -> None:
    """Drops the records of hardware that came again with another index: what they hold went with it."""
    if not link.kind:
        for record in journal.devices(space)[0]:
            if record.ifindex != link.ifindex and record.link(links) == link:
                journal.drop(journal.device_file(record.cookie, record.ifindex))


def made_by(step: Step, old: DeviceRecord, link: Link) -> list[Command]:
    return [command.on_device({old.name: link.name}) for command in step.commands if command.argv[:3] not in DELETES]


def as_before(old: DeviceRecord, steps: list[Step], profile_name: str, report: Report, place: Place) -> bool:
    """Did the call that the record is of do the same, for the same device, and does it stand?"""
    assert place.link
    made = [[(step.aspect, made_by(step, old, place.link)) for step in one] for one in (old.steps, steps)]
    was = old.report["params"].get("computed_for"), old.profile
    return made[0] == made[1] and was == (report.params.get("computed_for"), profile_name) and \
        not differences(place, old)


def differences(place: Place, record: DeviceRecord) -> list[str]:
    """What is not as lowq-tc left it"""
    found = []
    for step in record.steps:
        if step.state != DONE:
            continue
        aspect = aspect_of(step)
        try:
            now = aspect.read(place, step.target)
        except Gone:
            continue
        if not aspect.same(step.after, now):
            said = aspect.difference(place, step.after, now)
            found.append(f"{aspect.described(step.target)} was changed: {said}")
    return found


def rehearsed(link: Link, queues: int, tree: Step, steps: list[Step], force: bool, report: Report) -> None:
    """Tries what will run, and whether the user's queue would come back the same."""
    made = [command for step in steps if aspect_of(step) is not SEGMENTS for command in step.commands
            if command.argv[:3] not in DELETES]
    if any(aspect_of(step) is FILTERS for step in steps):
        made.insert(0, tc("qdisc", "add", "dev", link.name, "clsact"))
    stages = [made]
    check = bool(tree.before.commands) and tree.earlier is None
    if check:
        stages.insert(0, tree.before.commands)
    result = rehearse(link, queues, stages)
    if not result.tried:
        return
    if check:
        came = result.trees[0] if result.trees else None
        if came is None or not same_made(tree.before.state, came):
            root = next(qdisc for qdisc in tree.before.state["qdiscs"] if qdisc.get("root"))
            reason = f"'{root['kind']}' (would not come out the same)"
            if not force:
                raise Refused(
                    f"the root qdisc of {link.name}, {reason}, cannot be put back exactly by 'reset';"
                    " --force replaces it anyway"
                )
            give_up(tree, tree.before.state, reason, report)
            if came is None:
                return
    if result.failed:
        raise Refused(f"{rehearsal_error(result.failed)}; nothing was changed")


def same_made(one: Json, two: Json) -> bool:
    trees = [[qdisc for qdisc in tree["qdiscs"] if handle_of(qdisc) != "0:"] for tree in (one, two)]
    return len(trees[0]) == len(trees[1]) and all(map(same_qdisc, *trees))


def forward(place: Place, journal: Journal, record: DeviceRecord, old: DeviceRecord | None, want: Wanted,
            report: Report) -> None:
    file = journal.device_file(record.cookie, record.ifindex)
    before = deepcopy(old)

    def rolled_back() -> str:
        if before:
            journal.save_device(before)
        else:
            journal.drop(file)
        tree = next(step for step in record.steps if step.aspect == QUEUE.name)
        if tree.lost and not tree.earlier and not QUEUE.is_back(tree.before, QUEUE.read(place, tree.target)):
            return f"rolled back, but what --force gave up is lost: {tree.lost}"
        return "rolled back to what was there before"

    def complete() -> None:
        kept = [replace(step, earlier=None) for step in record.steps if wanted_at_all(step, want)]
        journal.save_device(replace(record, steps=kept, complete=True, report=report.to_json()))

    class Told(Runner):
        def refused(self, said: str) -> None:
            report.not_honoured(f"--exact: this kernel refuses it ({said}): red looks at an average")

    runner = Told(place, journal.lock_file, lambda: journal.save_device(record))
    carry_out(runner, record.steps, complete, rolled_back)


# --- reset ------------------------------------------------------------------------------


def put_back(place: Place, journal: Journal, record: DeviceRecord, force: bool, report: Report) -> list[Command]:
    """Undoes what a record holds, and drops it once all of it is undone."""
    runner = Runner(place, journal.lock_file, lambda: journal.save_device(record))
    commands, said = undo(runner, record.steps, force)
    if any(step.state != UNDONE and (step.state != PLANNED or step.earlier) for step in record.steps):
        raise Failed("; ".join(said))
    try:
        journal.drop(journal.device_file(record.cookie, record.ifindex))
    except Failed as error:
        report.note(f"{error}; all that it holds is undone")
    return commands


def reset_one(space: Namespace, journal: Journal, links: list[Link], record: DeviceRecord, options: Options) -> Result:
    link = record.link(links)
    dry = options.has("dry-run")
    report = Report()
    file = journal.device_file(record.cookie, record.ifindex)
    if options.has("forget"):
        if not dry:
            journal.drop(file)
        gone = "gone" if link is None else "left as it is"
        headline = f"{record.name} is {gone}: forgotten"
        return Result("reset", "applied", record.name, record.profile, headline, report, [])
    if link is None:
        again = devices.find_link(links, record.name)
        if again:
            report.note(f"there is another device '{record.name}' now, which lowq-tc did not set")
        return Result(
            "reset", "unchanged", record.name, record.profile,
            f"{record.name} is gone, and its queue with it; '{forgets(space, record.name)}' drops the record",
            report, [],
        )
    name = link.name
    if name != record.name:
        report.note(f"{record.name} is called {name} now")
    for step in record.steps:
        if step.lost:
            report.note(f"the kernel's default is back; what was there before could not be made again: {step.lost}")
    place = Place(space, link)
    if dry:
        commands, left = undo(Runner(place, -1, lambda: None), record.steps, options.has("force"), dry=True)
        if left:
            raise Failed(f"{name}: {'; '.join(left)}")
        before = [command.text(space.name) for step in record.steps for command in made_by(step, record, link)]
        return Result("reset", "planned", name, record.profile, f"{name}: would run", report, commands, before)
    try:
        commands = put_back(place, journal, record, options.has("force"), report)
    except Failed as error:
        raise Failed(f"{name}: {error}") from None
    return Result("reset", "applied", name, record.profile, f"{name}: put back", report, commands)


def with_our_root(space: Namespace, device: str | None = None) -> set[str]:
    """The names of devices whose root has lowq-tc's handle"""
    return {q.get("dev", device) for q in devices.qdiscs(space, device) if q.get("root") and handle_of(q) == ROOT + ":"}


def stray(space: Namespace, journal: Journal, name: str) -> str:
    """Of such a device that has no record: what to do about it"""
    if journal.hidden:
        return f"{name} has a queue of lowq-tc, and {journal.hidden}"
    remove = Command(("tc", "qdisc", "del", "dev", name, "root")).text(space.name)
    return (
        f"{name} has a queue with lowq-tc's handle {ROOT}: but there is no record of it: what was there"
        f" before is not known; '{remove}' removes it"
    )


class Reset(NamedTuple):
    results: list[Result]
    errors: list[str]


def reset(space: Namespace, journal: Journal, options: Options) -> Reset:
    if options.has("all"):
        if options.names:
            raise Refused("reset: --all, or a device, not both")
    elif not options.names:
        raise Refused("reset: which device? (or --all)")
    if not options.has("dry-run"):
        journal.begin(undo=not options.has("forget"))
    links = devices.links(space)
    records, wrong = journal.devices(space)
    results: list[Result] = []
    errors: list[str] = []
    if options.has("all"):
        covered = {link.ifindex for record in records for link in [record.link(links)] if link}
        if options.has("forget"):
            records = [record for record in records if record.link(links) is None]
            wrong = forget_dead(space, journal, links, wrong) if not options.has("dry-run") else wrong
        errors += [one.says for one in wrong]
        for record in records:
            try:
                results.append(reset_one(space, journal, links, record, options))
            except (Failed, Refused) as error:
                errors.append(str(error))
        roots = with_our_root(space)
        errors += [stray(space, journal, link.name) for link in links
                   if link.name in roots and link.ifindex not in covered]
        return Reset(results, errors)

    name = options.names[0]
    found = devices.find_link(links, name)
    mine = [record for record in records if found and record.link(links) == found]
    if not mine and not found:
        # by the name that it had: renamed since, or gone
        mine = [record for record in records if record.name == name]
    if not mine and found:
        file = journal.device_file(space.cookie, found.ifindex)
        if options.has("forget") and any(one.file == file for one in wrong) and not options.has("dry-run"):
            journal.drop(file)
            return Reset([Result("reset", "applied", name, "", f"{name}: its record is dropped", Report(), [])], [])
        damaged = [one.says for one in wrong if one.file == file]
        if damaged:
            return Reset([], damaged)
        if with_our_root(space, found.name):
            return Reset([], [stray(space, journal, found.name)])
        mine = [record for record in records if record.name == name and record.link(links) is None]
    if not mine:
        if not found:
            raise NoDevice(f"no device '{name}'{space.suffix}")
        return Reset([Result("reset", "unchanged", name, "", f"{name}: nothing to undo", Report(), [])], [])
    for record in mine:
        try:
            results.append(reset_one(space, journal, links, record, options))
        except Failed as error:
            errors.append(str(error))
    return Reset(results, errors)


def forget_dead(space: Namespace, journal: Journal, links: list[Link], wrong: list[Unreadable]) -> list[Unreadable]:
    """Drops the records of namespaces that are gone, and of those that cannot be read those of devices that are
    gone. -> which of these are left"""
    spaces: dict[str, tuple[int, int]] = {}
    for file in journal.device_files():
        try:
            record = journal.parsed_device(file, journal.read(file))
        except Damaged:
            cookie, _ = journal.owner_of(file)
            if cookie:
                spaces[file] = (cookie, system.ANY_INODE)
            continue
        if record:
            spaces[file] = (record.cookie, record.inode)
        else:
            journal.drop(file)  # of an earlier boot
    living = system.alive(dict(spaces.values())) | {space.cookie}
    for file, (cookie, _) in spaces.items():
        if cookie not in living:
            journal.drop(file)
    there = {link.ifindex for link in links}
    for one in wrong:
        if one.ifindex not in there:
            journal.drop(one.file)
    return [one for one in wrong if one.ifindex in there]
