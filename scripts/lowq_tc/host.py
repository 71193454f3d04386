# SPDX-License-Identifier: GPL-2.0
"""lowq-tc host: what a control needs of its host, set, shown and put back.

Sysctls and routes belong to one network namespace. Modules, their parameters and the list
of allowed controls are shared by all: the last namespace that uses them puts them back.
"""

from __future__ import annotations

from copy import deepcopy

from lowq_common import system
from lowq_common.controls import CONTROLS
from lowq_common.errors import Failed, Refused
from lowq_common.light import Json, matched
from lowq_common.system import Namespace

from .aspects import ALLOWED, KINDS, ROUTE, aspect_of
from .aspects.base import Place
from .aspects.route import named
from .device import Result
from .execute import Runner, carry_out, undo
from .host_plan import Plan
from .journal import DONE, PLANNED, UNDONE, Damaged, HostRecord, Journal, Step
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


def apply(space: Namespace, journal: Journal, control: str, options: Options) -> Result:
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
    plan = Plan(space, record, control, report)
    plan.make(control, options)
    if dry:
        return Result("host", "planned", "", control, f"host for {control}: would run", report, plan.commands())

    cookie = str(space.cookie)
    register(record, space, control, plan)
    saves = bool(plan.own or plan.shared or cookie in record.own)

    def save() -> None:
        if saves:
            journal.save_host(record)

    def rolled_back() -> str:
        journal.save_host(before)
        return "rolled back to what was there before"

    def complete() -> None:
        if saves:
            done = deepcopy(record)
            for step in done.shared + done.steps.get(cookie, []):
                step.earlier = None
            journal.save_host(done)

    carry_out(Runner(Place(space), journal.lock_file, save), plan.shared + plan.own, complete, rolled_back, plan.first)
    return Result("host", "applied", "", control, f"host for {control}: set", report, plan.commands())


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
    mine = []
    for step in record.shared:
        step.users.pop(cookie, None)
        if not step.users:
            mine.append(step)
        elif cookie in record.own and step.control in record.own[cookie]["controls"]:
            stays = "stays allowed" if step.aspect == ALLOWED.name else "stays"
            report.note(f"'{step.target}' {stays}: another namespace was set up with the same control")
    if not own and not mine and cookie not in record.own:
        if not dry:
            save_undone(journal, record, report)  # without the namespaces that are gone
        return Result("host", "unchanged", "", "reset", "host: nothing to undo", report, [])
    # until all is undone the namespace counts as a user, so that a next reset finds it
    for step in mine:
        step.users[cookie] = space.inode
    runner = Runner(Place(space), journal.lock_file, lambda: journal.save_host(record))
    commands, left = undo(runner, mine + own, options.has("force"), dry)
    if dry:
        if left:
            raise Failed("host: " + "; ".join(left))
        return Result("host", "planned", "", "reset", "host: would run", report, commands)
    record.shared = [step for step in record.shared if step not in mine or step.state != UNDONE]
    record.steps[cookie] = [step for step in own if step.state != UNDONE]
    if not record.steps[cookie] and not any(step in record.shared for step in mine):
        record.own.pop(cookie, None)
        record.steps.pop(cookie, None)
    save_undone(journal, record, report)
    if any(step.state != UNDONE for step in mine + own):
        raise Failed("host: " + "; ".join(left))
    return Result("host", "applied", "", "reset", "host: put back", report, commands)


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
        changes.append(change)
    return {
        "sysctl": sysctls, "controls": record.own.get(cookie, {}).get("controls", []), "changes": changes,
    }


def show_text(shown: Json) -> str:
    lines = [f"net.ipv4.{key} = {value}" for key, value in shown["sysctl"].items()]
    if not shown["changes"]:
        lines.append("nothing changed by lowq-tc")
    for change in shown["changes"]:
        what = KINDS[change["kind"]].change(change)
        state = ""
        if change["cut_short"]:
            state = " (cut short)"
        elif not change["stands"]:
            state = " (changed by someone else since)"
        lines.append(f"changed by lowq-tc: {what}{state}")
    return "\n".join(lines)
