# SPDX-License-Identifier: GPL-2.0
"""lowq-tc host: what a control needs of its host, set, shown and put back.

Sysctls and routes belong to one network namespace. Modules, their parameters and the list
of allowed controls are shared by all: the last namespace that uses them puts them back.
"""

from __future__ import annotations

from copy import deepcopy

from lowq_common import devices, routes, system
from lowq_common.controls import CONTROLS
from lowq_common.errors import Failed, Refused
from lowq_common.netlink import Netlink
from lowq_common.values import Json, matched
from lowq_common.system import Namespace

from .aspects import ALLOWED, KINDS, ROUTE, aspect_of
from .aspects.base import Place
from .aspects.route import named
from .command import Command
from .device import Result
from .execute import Runner, carry_out, undo
from .host_plan import Plan
from .journal import BEGUN, DONE, PLANNED, UNDONE, Damaged, HostRecord, Journal, Step
from .options import HOST, Options
from .report import Report


def settled(record: HostRecord) -> None:
    """Of calls that were cut short: drops steps that were never begun, and has those that an
    earlier call had done as that left them."""
    def settle(steps: list[Step]) -> list[Step]:
        kept = []
        for step in steps:
            if step.state == PLANNED and step.earlier:
                step.commands, step.after, step.state = step.earlier.commands, step.earlier.state, DONE
            if step.state not in (PLANNED, UNDONE):
                kept.append(step)
        return kept

    record.shared = settle(record.shared)
    for cookie in list(record.steps):
        record.steps[cookie] = settle(record.steps[cookie])


def apply(space: Namespace, journal: Journal, control: str, options: Options, alone: bool = False) -> Result:
    """alone: and puts back what lowq-tc has set here besides"""
    known = CONTROLS.get(control)
    options.only(f"host {control}", *HOST, *(known.options if known else ()))
    if not matched(r"[A-Za-z0-9_]+", control):
        raise Refused(f"'{control}' is not the name of a congestion control")
    dry = options.has("dry-run")
    if not dry:
        journal.begin()
    record = journal.host()
    before = deepcopy(record)
    settled(record)
    report = Report()
    plan = Plan(space, record, control, report, alone)
    plan.make(control, options)
    cookie = str(space.cookie)
    stale = plan.stale()
    touched = [*stale[0], *stale[1], *plan.shared, *plan.own]
    shown = [line for step in touched for line in present(plan, step)] if dry else []
    commands, left = put_back(space, journal, record, *stale, options, report) if any(stale) else ([], [])
    commands += plan.commands()
    if alone and not commands:
        status, headline = "unchanged", f"host for {control}: is set"
    elif dry:
        if left:
            raise Failed("host: " + "; ".join(left))
        return Result("host", "planned", "", control, f"host for {control}: would run", report, commands, shown)
    else:
        status, headline = "applied", f"host for {control}: set"
    if any(stale):
        before = deepcopy(record)
    register(record, space, control, plan)
    if alone:
        begun = [step for step in record.shared + record.steps.get(cookie, []) if step.state == BEGUN]
        for step in begun:  # by a call that was cut short, and all is there
            step.after, step.state = aspect_of(step).read(plan.place, step.target), DONE
        if cookie in record.own:
            record.own[cookie]["controls"] = [control]
    saves = not dry and (bool(plan.own or plan.shared) or record != before)

    def save() -> None:
        if saves:
            journal.save_host(record)

    def rolled_back() -> str:
        journal.save_host(before)
        return "rolled back to what was there before"

    def complete() -> None:
        for step in plan.own:
            if step.aspect == ROUTE.name:
                effect(plan.place, step, control, report)
        if saves:
            done = deepcopy(record)
            for step in done.shared + done.steps.get(cookie, []):
                step.earlier = None
            journal.save_host(done)

    runner = Runner(plan.place, journal.lock_file, save)
    carry_out(runner, plan.shared + plan.own, complete, rolled_back, plan.first)
    if left:
        raise Failed("host: " + "; ".join(left))
    return Result("host", status, "", control, headline, report, commands, shown)


def effect(place: Place, step: Step, control: str, report: Report) -> None:
    """Do lookups into the prefix give the control? Those that do not are named; refused, and so undone, if none does."""
    good, bad = lookups(place, step.target, control)
    if bad and not good:
        raise Refused(f"no lookup into {ROUTE.described(step.target)} gives {control}: {'; '.join(bad)}")
    if bad:
        report.note(f"{ROUTE.described(step.target)}: without effect for {'; '.join(bad)}")


def lookups(place: Place, target: str, control: str) -> tuple[list[str], list[str]]:
    with Netlink(place.space) as asked:
        return routes.unreached(asked, routes.parse_prefix(target.split(" ")[1]), control, devices.read_links(asked))


def present(plan: Plan, step: Step) -> list[str]:
    """What is there now: the commands that made it, or the state"""
    aspect, old = aspect_of(step), plan.old(aspect_of(step), step.target)
    now = aspect.read(plan.place, step.target)
    if old and aspect.made_by_us(plan.place, old, now):
        return [command.text(plan.space.name) for command in old.commands]
    return [f"# {step.aspect} {aspect.described(step.target)}: {aspect.text(plan.place, now)}"]


def register(record: HostRecord, space: Namespace, control: str, plan: Plan) -> None:
    """Puts the plan's steps into the record, in place of those for the same things, and the
    namespace among the users of what the control shares."""
    cookie = str(space.cookie)

    def merged(old: list[Step], new: list[Step]) -> list[Step]:
        again = {(step.aspect, step.target) for step in new}
        return [step for step in old if (step.aspect, step.target) not in again] + new

    record.shared = merged(record.shared, plan.shared)
    used = [step for step in record.shared if step.control == control]
    for step in used:
        step.users[cookie] = space.inode
    if not plan.own and not used and cookie not in record.own:
        return
    own = record.own.setdefault(cookie, {"inode": space.inode, "name": space.name, "controls": []})
    if control not in own["controls"]:
        own["controls"].append(control)
    record.steps[cookie] = merged(record.steps.get(cookie, []), plan.own)


def prune(record: HostRecord, space: Namespace) -> None:
    """Forgets namespaces that are gone: their settings went with them."""
    known = {int(cookie): one["inode"] for cookie, one in record.own.items()}
    for step in record.shared:
        known.update({int(cookie): inode for cookie, inode in step.users.items()})
    living = {str(cookie) for cookie in system.alive(known)} | {str(space.cookie)}
    for cookie in [cookie for cookie in record.own if cookie not in living]:
        del record.own[cookie]
        record.steps.pop(cookie, None)
    for step in record.shared:
        step.users = {cookie: inode for cookie, inode in step.users.items() if cookie in living}


def reset(space: Namespace, journal: Journal, options: Options) -> Result:
    options.only("host reset", "forget")
    dry = options.has("dry-run")
    if not dry:
        journal.begin(undo=not options.has("forget"))
    report = Report()
    cookie = str(space.cookie)
    if options.has("forget"):
        return forget(space, journal, dry)
    record = journal.host()
    settled(record)
    prune(record, space)
    own = record.steps.get(cookie, [])
    if not own and cookie not in record.own and not any(set(step.users) <= {cookie} for step in record.shared):
        if not dry:
            save_undone(journal, record, report)  # without the namespaces that are gone
        return Result("host", "unchanged", "", "reset", "host: nothing to undo", report, [])
    shown = [command.text(space.name) for step in record.shared + own for command in step.commands]
    commands, left = put_back(space, journal, record, record.shared, own, options, report)
    if left:
        raise Failed("host: " + "; ".join(left))
    if dry:
        return Result("host", "planned", "", "reset", "host: would run", report, commands, shown)
    return Result("host", "applied", "", "reset", "host: put back", report, commands)


def put_back(space: Namespace, journal: Journal, record: HostRecord, shared: list[Step], own: list[Step],
             options: Options, report: Report) -> tuple[list[Command], list[str]]:
    """Undoes these steps of the record, those shared only if no other namespace needs them. -> the
    commands, and what there is to say if some were left alone"""
    cookie = str(space.cookie)
    mine = []
    for step in shared:
        step.users.pop(cookie, None)
        if not step.users:
            # until it is undone the namespace counts as a user, so that a next reset finds it
            step.users[cookie] = space.inode
            mine.append(step)
        elif cookie in record.own and step.control in record.own[cookie]["controls"]:
            stays = "stays allowed" if step.aspect == ALLOWED.name else "stays"
            report.note(f"'{step.target}' {stays}: another namespace was set up with the same control")
    runner = Runner(Place(space), journal.lock_file, lambda: journal.save_host(record))
    commands, left = undo(runner, mine + own, options.has("force"), options.has("dry-run"))
    if options.has("dry-run"):
        return commands, left
    undone = {id(step) for step in mine + own if step.state == UNDONE}
    record.shared = [step for step in record.shared if id(step) not in undone]
    record.steps[cookie] = [step for step in record.steps.get(cookie, []) if id(step) not in undone]
    if not record.steps[cookie] and not any(cookie in step.users for step in record.shared):
        record.own.pop(cookie, None)
        record.steps.pop(cookie, None)
    save_undone(journal, record, report)
    return commands, left if len(undone) < len(mine + own) else []


def save_undone(journal: Journal, record: HostRecord, report: Report) -> None:
    try:
        journal.save_host(record)
    except (Failed, Refused) as error:
        report.note(f"{error}; what is undone stays so")


def forget(space: Namespace, journal: Journal, dry: bool) -> Result:
    """Drops the record of this namespace, or all of a damaged one."""
    cookie = str(space.cookie)
    try:
        record = journal.host()
        prune(record, space)
        record.own.pop(cookie, None)
        record.steps.pop(cookie, None)
        for step in record.shared:
            step.users.pop(cookie, None)
        record.shared = [step for step in record.shared if step.users]
        if not dry:
            journal.save_host(record)
    except Damaged:
        if not dry:
            journal.drop(journal.HOST)
    return Result("host", "applied", "", "reset", "host: forgotten", Report(), [])


def show(space: Namespace, journal: Journal) -> Json:
    record = journal.host()
    cookie = str(space.cookie)
    place = Place(space)
    sysctls = {}
    for key in ("tcp_ecn", "tcp_congestion_control", "tcp_available_congestion_control",
                "tcp_allowed_congestion_control"):
        value = space.sysctl("net.ipv4." + key)
        if value is not None:
            sysctls[key] = value
    changes = []
    for step in record.shared + record.steps.get(cookie, []):
        if step.state == PLANNED and not step.earlier:
            continue
        if step.users and cookie not in step.users:
            continue
        aspect = aspect_of(step)
        now = aspect.read(place, step.target)
        change = {
            "kind": step.aspect, "name": step.target, "old": step.before.state,
            "new": step.after, "now": now, "stands": aspect.same(step.after, now), "cut_short": step.state != DONE,
        }
        if aspect is ROUTE:
            for key in ("old", "new", "now"):
                change[key] = [named(route, place) for route in change[key] or []]
            good, change["without_effect"] = lookups(place, step.target, step.control or control_in(step.after))
            change["stands"] = change["stands"] and bool(good or not change["without_effect"])
        changes.append(change)
    return {
        "sysctl": sysctls, "controls": record.own.get(cookie, {}).get("controls", []), "changes": changes,
    }


def control_in(state: Json) -> str:
    """Of a route that lowq-tc has set"""
    words = state[0].split() if state else []
    return str(words[words.index("congctl") + 1]) if "congctl" in words else ""


def show_text(shown: Json, hidden: str) -> str:
    lines = [f"net.ipv4.{key} = {value}" for key, value in shown["sysctl"].items()]
    if not shown["changes"]:
        lines.append(hidden or "nothing changed by lowq-tc")
    for change in shown["changes"]:
        what = KINDS[change["kind"]].change(change)
        state = ""
        if change["cut_short"]:
            state = " (cut short)"
        elif change.get("without_effect"):
            state = f" (without effect for {'; '.join(change['without_effect'])})"
        elif not change["stands"]:
            state = " (changed by someone else since)"
        lines.append(f"changed by lowq-tc: {what}{state}")
    return "\n".join(lines)
