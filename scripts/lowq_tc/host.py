# SPDX-License-Identifier: GPL-2.0
"""lowq-tc host: what controls need of their host, set, shown and put back.

Sysctls and routes belong to one network namespace. Modules, their parameters and the list
of allowed controls are shared by all: the last namespace that uses them puts them back.
"""

from __future__ import annotations

import os
from typing import Iterable, NamedTuple, Sequence

from lowq_common import queues, routes, system
from lowq_common.controls import CONTROLS, Host
from lowq_common.errors import Failed, Refused
from lowq_common.values import Json, matched

from .command import Command
from .execute import carry_out, run_all, undoing
from .journal import OF_DEVICES, SHARED, Journal, Space, Thing
from .options import HOST, Options
from .report import Report, Result
from .routes import wanted_routes
from .things import ALLOWED_KEY, GONE, KINDS, effect, prefix_of, undo
from .world import World

DEFAULT_KEY = "net.ipv4.tcp_congestion_control"
AVAILABLE_KEY = "net.ipv4.tcp_available_congestion_control"
ECN_KEY = "net.ipv4.tcp_ecn"
TRIES = 4  # while another program writes routes, too


def first_namespace() -> bool:
    """Only there the list of allowed controls can be written."""
    try:
        return os.stat("/proc/sys/" + ALLOWED_KEY.replace(".", "/")).st_mode & 0o777 == 0o644
    except OSError:
        return False


def loading(control: str, available: str, modules: Iterable[str]) -> list[Command]:
    """What makes a control available"""
    commands: list[Command] = []
    for module in modules if control not in available.split() else ():
        if not system.module_exists(module):
            raise Refused(f"no congestion control '{control}': neither loaded nor found as module '{module}'")
        commands.append(Command(("modprobe", module), True))
    return commands


class Wanted(NamedTuple):
    kind: str
    target: str
    value: Json
    control: str


class Plan:
    """What controls need. Alone: nothing else shall stay of what lowq-tc has set here."""

    def __init__(self, world: World, journal: Journal, report: Report, alone: bool, dry: bool):
        self.world, self.journal, self.report, self.alone, self.dry = world, journal, report, alone, dry
        self.mine = journal.space(world.space)
        self.others = [one for one in journal.spaces.values() if one is not self.mine]
        self.first: list[Command] = []  # load modules of controls, which stay loaded
        self.wanted: dict[tuple[str, str], Wanted] = {}
        self.default = ""

    def own(self, kind: str, target: str) -> Thing | None:
        """What lowq-tc has set, if it stands"""
        thing = self.mine.thing(kind, target)
        now = KINDS[kind].read(self.world, target) if thing else None
        return thing if thing and any(KINDS[kind].same(now, each) for each in thing.ours) else None

    def elsewhere(self, kind: str, target: str, control: str = "") -> bool:
        """Is this, which all namespaces share, set by another one, too, or for another one's control?"""
        return kind in SHARED and any(one.thing(kind, target) or control in one.controls for one in self.others)

    def unset(self, key: str) -> str | None:
        """The value of a sysctl that counts: wanted already, or as it is; with alone, as before lowq-tc"""
        if ("sysctl", key) in self.wanted:
            return str(self.wanted["sysctl", key].value)
        thing = self.own("sysctl", key)
        return str(thing.before) if thing and self.alone else self.world.space.sysctl(key)

    def want(self, control: str, kind: str, target: str, value: Json) -> None:
        other = self.wanted.get((kind, target))
        if other and not KINDS[kind].same(other.value, value):
            text = KINDS[kind].text
            raise Refused(f"{control} and {other.control} want {KINDS[kind].described(self.world, target)} differently:"
                          f" '{text(self.world, value)}' and '{text(self.world, other.value)}'")
        self.wanted[kind, target] = Wanted(kind, target, value, control)

    def sysctl(self, control: str, key: str, value: str) -> None:
        if self.world.space.sysctl(key) is None:
            raise Refused(f"this kernel has no sysctl '{key}'")
        if self.unset(key) != value or self.own("sysctl", key) and not self.alone:
            self.want(control, "sysctl", key, value)

    def allow(self, control: str, must: bool) -> None:
        """Unprivileged use is a property of the first namespace: one list for all."""
        first = first_namespace()
        now = system.sysctl_everywhere(ALLOWED_KEY) or ""
        if self.first and not first:
            # only once its module is loaded it is known whether it is restricted
            self.report.note(f"if '{control}' is restricted, only the first namespace can allow it ({ALLOWED_KEY})")
        elif control in now.split() and not self.mine.thing("allowed", control):
            if self.elsewhere("allowed", control):
                self.want(control, "allowed", control, True)
        elif first:
            self.want(control, "allowed", control, True)
        elif control not in now.split() and must:
            raise Refused(f"'{control}' is restricted and only the first namespace can allow it: run there"
                          f" 'sysctl -w {ALLOWED_KEY}=\"{now} {control}\"'")
        elif control not in now.split():
            self.report.note(f"'{control}' is restricted: here only root can choose it per socket, until the first"
                             f" namespace allows it ({ALLOWED_KEY})")

    def add(self, control: str, options: Options) -> None:
        known = CONTROLS.get(control)
        options.only(f"host {control}", *HOST, *(known.options if known else ()))
        if not matched(r"[A-Za-z0-9_]+", control):
            raise Refused(f"'{control}' is not the name of a congestion control")
        host = Host(options, self.unset)
        if known:
            known.needs(host)
        if not host.modules and host.tcp:
            host.modules.append("tcp_" + control)
        self.modules(control, host)
        for module, name, value in host.parameters:
            if system.module_loaded(module) and system.read_file(system.parameter_path(f"{module}.{name}")) is None:
                raise Refused(f"this '{module}' has no parameter '{name}'")
            self.want(control, "parameter", f"{module}.{name}", value)
        default, route = options.has("default"), options.has("route")
        if not route and any(options.has(name) for name in ("initcwnd", "initrwnd", "quickack")):
            raise Refused("--initcwnd, --initrwnd and --quickack need --route")
        # Elsewhere than in the first namespace the default must be an allowed one.
        elsewhere = self.world.space.name is not None or not first_namespace()
        plain = host.tcp and not route and not default
        if options.has("allow") or plain or (default and elsewhere):
            self.allow(control, options.has("allow") or default)
        if default:
            if self.default:
                raise Refused(f"{self.default} and {control} cannot both be the default")
            self.default = control
            self.sysctl(control, DEFAULT_KEY, control)
        if host.ecn and (default or not route):  # a route asks for ECN by itself; what is not on it stays as it is
            now = self.unset(ECN_KEY)
            if now not in [str(value) for value in host.ecn]:
                self.wanted.pop(("sysctl", ECN_KEY), None)  # prague's 3 asks for ECN, too
                self.sysctl(control, ECN_KEY, str(host.ecn[0]))
            elif self.own("sysctl", ECN_KEY) and not self.alone:
                self.want(control, "sysctl", ECN_KEY, now)
        for key, value in host.sysctls:
            self.sysctl(control, key, value)
        if route:
            self.routes(control, host, options)
        if host.timer_slack:
            self.timer_slack(control, host.timer_slack)
        if plain:
            self.report.explain("chosen per socket (TCP_CONGESTION); --default and --route choose it for all, or for a prefix")

    def timer_slack(self, control: str, most: int) -> None:
        """A default queue has no handle, and takes no change."""
        for ifindex, queues_there in self.world.all_qdiscs().items():
            for one in queues_there:
                target = f"{ifindex} {queues.handle_text(one.handle)}"
                if one.kind != "fq" or (queues.options(one)["timer_slack"] <= most and not self.own("timer_slack", target)):
                    continue
                if one.handle:
                    self.want(control, "timer_slack", target, most)
                else:
                    self.report.note(f"fq on {self.world.name(ifindex)} sends late, which costs {control} rate:"
                                     " lowq-check says what to do")

    def modules(self, control: str, host: Host) -> None:
        available = self.world.space.sysctl(AVAILABLE_KEY)
        if available is None:
            raise Refused(f"this kernel shows no {AVAILABLE_KEY}")
        self.first += loading(control, available, host.modules if host.tcp else ())
        # elsewhere than in the first namespace at once: modules stay loaded anyway
        while self.first and not first_namespace() and not self.dry:
            command = self.first.pop(0)
            status, _, said = system.output(command.argv)
            if status:
                raise Refused(f"'{command.text(None)}' fails here ({system.first_line(said)}): run it in the first"
                              " namespace, and then this again")
        for module in host.services:
            if not system.module_exists(module):
                raise Refused(f"no module '{module}'")
            if self.mine.thing("module", module) or not system.module_loaded(module) or self.elsewhere("module", module):
                self.want(control, "module", module, True)

    def routes(self, control: str, host: Host, options: Options) -> None:
        values = dict(host.route_metrics)
        for name in ("initcwnd", "initrwnd"):
            if options.get(name, 0) > 65535:
                raise Refused(f"--{name} {options.given[name]}: at most 65535 packets")
            if options.has(name):
                values[name] = options.values[name]
        if options.has("quickack"):
            values["quickack"] = 1

        def before(target: str) -> list[str] | None:
            thing = self.own("route", target)
            return list(thing.before) if thing else None

        self.world.prefixes |= {routes.parse_prefix(given) for given in options.values["route"]}
        for given in options.values["route"]:
            for target, words in wanted_routes(self.world, given, before, lambda base: routes.with_metrics(
                    base, control, values, host.route_features)):
                if ("route", target) not in self.wanted or self.wanted["route", target].control != control:
                    self.want(control, "route", target, [" ".join(words)])

    # --- what has to change --------------------------------------------------------------

    def stale(self) -> list[Thing]:
        """With alone: what lowq-tc has set here and is not wanted any more, the last first"""
        return [one for one in reversed(self.mine.things) if self.alone and one.kind not in OF_DEVICES
                and (one.kind, one.target) not in self.wanted]

    def changes(self, only: str = "") -> list[tuple[Thing, Json, list[Command]]]:
        """For each wanted thing that is not so: its record, what it is now, and the commands"""
        made = []
        for one in self.wanted.values():
            kind = KINDS[one.kind]
            if only and one.kind != only:
                continue
            now, old = kind.read(self.world, one.target), self.own(one.kind, one.target)
            right = kind.same(now, one.value)
            if right and (old or not self.elsewhere(one.kind, one.target)):
                if old:
                    old.ours = [one.value]
                continue
            before = old.before if old else (False if one.kind == "module" else now)
            thing = Thing(one.kind, one.target, before, [*(old.ours if old else []), one.value], one.control)
            made.append((thing, now, [] if right else kind.set(self.world, one.target, one.value)))
        return made


def apply(world: World, journal: Journal, wishes: list[tuple[str, Options]], given: Options, alone: bool = False,
          where: Sequence[str] = ()) -> Result:
    """alone: and puts back what lowq-tc has set here besides; without wishes that is a reset. where: what file says
    each wish"""
    dry, report = given.has("dry-run"), Report()
    name = " and ".join(control for control, _ in wishes)

    def result(status: str, commands: Sequence[Command] = (), before: Sequence[str] = ()) -> Result:
        said = {"unchanged": "is set" if wishes else "nothing to undo", "planned": "would run",
                "applied": "set" if wishes else "put back"}[status]
        return Result("host", status, "", name or "reset", f"host{f' for {name}' if name else ''}: {said}", report,
                      list(commands), list(before))

    if not dry:
        journal.begin(undo=not wishes)
    mine = journal.space(world.space)
    if alone:
        journal.settle(world.space)
    world.prefixes |= {prefix_of(one.target)[0] for one in mine.things if one.kind == "route"}
    plan = Plan(world, journal, report, alone, dry)
    for at, (control, options) in enumerate(wishes):
        try:
            plan.add(control, options)
        except Refused as error:
            raise type(error)(f"{where[at]}: {error}" if where else str(error)) from None
    undone: list[Thing] = []
    left: list[str] = []  # why
    commands: list[Command] = []
    for thing in plan.stale():
        if plan.elsewhere(thing.kind, thing.target, thing.control):
            report.note(f"'{thing.target}' stays{' allowed' if thing.kind == 'allowed' else ''}: another namespace was set"
                        " up with the same control")
            undone.append(thing)
            continue
        undo_it = undo(world, thing, given.has("force"))
        commands += undo_it.commands
        if undo_it.done:
            undone.append(thing)
        else:
            left.append(undo_it.said)
            report.note(undo_it.said)
    changes = plan.changes()
    made = commands + plan.first + [command for _, _, each in changes for command in each]
    words = {control: options.words() for control, options in wishes}
    if wishes and not made and not undone:
        report.explain("nothing to change")
    if alone and not (made or undone or changes) and (mine.controls == words if wishes else not left and not mine.controls):
        if not wishes and not dry:
            report.note(journal.save_undone())
        return result("unchanged")
    if not dry:
        undoing(commands, world.space, journal.lock_file)
        for thing in undone:
            journal.hand_over(thing)
        mine.things = [one for one in mine.things if one not in undone]
        was = list(mine.things)
        done: list[tuple[Thing, Json]] = []
        for more in reversed(range(TRIES)):
            if carried_out(world, journal, mine, plan, report, was, done, more):
                break
            plan = Plan(world, journal, Report(), alone, dry)
            for control, options in wishes:
                plan.add(control, options)
        if wishes or not left:
            mine.controls = words if alone else {**mine.controls, **words} if mine.things else {}
        if wishes:
            journal.save()
        else:
            report.note(journal.save_undone())
    if left:
        raise Failed("host: " + "; ".join(left))
    if not dry:
        return result("applied", made)
    shown = [(one, KINDS[one.kind]) for one in [*undone, *(thing for thing, _, _ in changes)]]
    return result("planned", made, [f"# {one.kind} {kind.described(world, one.target)}:"
                                    f" {kind.text(world, kind.read(world, one.target))}" for one, kind in shown])


def carried_out(world: World, journal: Journal, mine: Space, plan: Plan, report: Report, was: list[Thing],
                done: list[tuple[Thing, Json]], more: int) -> bool:
    """False: another program has written a route meanwhile, and all is to be planned again. was, done: what was there
    before the first of these attempts, and what all of them did. more: how many may follow"""

    def moved(expected: list[tuple[Thing, Json]]) -> bool:
        kind = KINDS["route"]
        for thing, value in expected:
            if thing.kind == "route" and not kind.same(kind.read(world, thing.target), value):
                if more:
                    return True
                back()
                raise Failed(f"another program writes the route {kind.described(world, thing.target)} again each time that it is"
                             " set; rolled back. 'lowq-tc export' has files with which it keeps a control")
        return False

    def back() -> None:
        world.refresh()
        mine.things = was
        run_all([command for thing, now in reversed(done) for command in undo(world, thing, to=now).commands],
                world.space, journal.lock_file)
        journal.save()

    for only in ("module", ""):  # modules first: only then it is known what their parameters were
        changes, things = plan.changes(only), list(mine.things)
        for thing, _, _ in changes:
            mine.put(thing)
        if changes:
            journal.save()
            world.refresh()
        if moved([(thing, now) for thing, now, _ in changes]):
            mine.things = things
            return False
        done += [(thing, now) for thing, now, _ in changes]
        if commands := plan.first + [command for _, _, each in changes for command in each]:
            plan.first = []
            carry_out(commands, world.space, journal.lock_file, back)
            world.refresh()
    if moved([(thing, thing.ours[-1]) for thing, _ in done if thing in mine.things]):
        return False
    for thing in [thing for thing, _ in done if thing in mine.things]:
        mine.done(thing)
        if thing.kind == "route":
            good, bad = effect(world, thing.target, thing.control)
            where = KINDS["route"].described(world, thing.target)
            if bad and not good:
                back()
                raise Failed(f"no lookup into {where} gives {thing.control}: {'; '.join(bad)}; rolled back to what was there"
                             " before")
            if bad:
                report.note(f"{where}: without effect for {'; '.join(bad)}")
    return True


def show(world: World, journal: Journal) -> Json:
    mine = journal.space(world.space)
    world.prefixes |= {prefix_of(one.target)[0] for one in mine.things if one.kind == "route"}
    values = {key: world.space.sysctl("net.ipv4." + key) for key in (
        "tcp_ecn", "tcp_congestion_control", "tcp_available_congestion_control", "tcp_allowed_congestion_control")}
    changes = []
    for thing in mine.things:
        if thing.kind in OF_DEVICES:
            continue
        kind = KINDS[thing.kind]
        now = kind.read(world, thing.target)
        change = {"kind": thing.kind, "name": kind.described(world, thing.target),
                  "old": thing.before, "new": thing.ours[-1], "now": None if now == GONE else now,
                  "stands": kind.same(thing.ours[-1], now), "cut_short": len(thing.ours) > 1, "text": kind.change(world, thing)}
        if thing.kind == "route":
            change |= {key: kind.text(world, change[key]) for key in ("old", "new", "now")}
            good, change["without_effect"] = effect(world, thing.target, thing.control)
            without = change["without_effect"]
            several = isinstance(now, list) and len(now) > 1  # a manager's own comes first: lowq-tc export networkd
            change["stands"] = bool(change["stands"] and (good or not without) or several and good and not without)
        changes.append(change)
    covered = {prefix_of(one.target)[0] for one in mine.things if one.kind == "route"}
    for control, given in mine.controls.items():
        for prefix in {routes.parse_prefix(one.partition("=")[2]) for one in given if one.startswith("--route=")} - covered:
            good, bad = routes.unreached(world.asked, prefix, control, world.ways(prefix.family))
            changes.append({"kind": "route", "name": prefix.text, "old": "", "new": control, "now": "", "stands": not bad,
                            "cut_short": False, "text": f"nothing for {prefix.text}: another program's route names {control}",
                            "without_effect": bad})
    return {"sysctl": {key: value for key, value in values.items() if value is not None}, "controls": list(mine.controls),
            "changes": changes}


def show_text(shown: Json, hidden: str) -> str:
    lines = [f"net.ipv4.{key} = {value}" for key, value in shown["sysctl"].items()]
    for change in shown["changes"]:
        state = ""
        if change["cut_short"]:
            state = " (cut short)"
        elif change.get("without_effect"):
            state = f" (without effect for {'; '.join(change['without_effect'])})"
        elif not change["stands"]:
            state = " (changed by someone else since)"
        lines.append(f"changed by lowq-tc: {change['text']}{state}")
    lines.append(shown.get("lasts", "") if shown["changes"] else hidden or "nothing changed by lowq-tc")
    return "\n".join(line for line in lines if line)
