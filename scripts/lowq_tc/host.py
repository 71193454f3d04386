# SPDX-License-Identifier: GPL-2.0
"""lowq-tc host: what controls need of their host, set, shown and put back.

Sysctls and routes belong to one network namespace. Modules, their parameters and the list
of allowed controls are shared by all: the last namespace that uses them puts them back.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from lowq_common import queues, routes, system
from lowq_common.controls import CONTROLS, Host
from lowq_common.errors import Failed, Refused
from lowq_common.values import Json, matched

from .command import Command
from .device import OF_DEVICES, Result, given_words, replace, undoing_raw
from .execute import carry_out, undoing
from .journal import SHARED, Journal, Space, Thing
from .options import HOST, Options
from .report import Report
from .routes import wanted_routes
from .things import ALLOWED_KEY, GONE, KINDS, effect, prefix_of, undo
from .world import World

DEFAULT_KEY = "net.ipv4.tcp_congestion_control"
AVAILABLE_KEY = "net.ipv4.tcp_available_congestion_control"


def first_namespace() -> bool:
    """Only there the list of allowed controls can be written."""
    try:
        return os.stat("/proc/sys/" + ALLOWED_KEY.replace(".", "/")).st_mode & 0o777 == 0o644
    except OSError:
        return False


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
        self.first: list[Command] = []  # load modules of controls, which stay loaded
        self.wanted: dict[tuple[str, str], Wanted] = {}
        self.default = ""

    def own(self, kind: str, target: str) -> Thing | None:
        """What lowq-tc has set, if it stands"""
        thing = self.mine.thing(kind, target)
        now = KINDS[kind].read(self.world, target) if thing else None
        return thing if thing and any(KINDS[kind].same(now, each) for each in thing.ours) else None

    def unset(self, key: str) -> str | None:
        """The value of a sysctl that counts: wanted already, or as it is; with alone, as before lowq-tc"""
        if ("sysctl", key) in self.wanted:
            return str(self.wanted["sysctl", key].value)
        thing = self.own("sysctl", key)
        return str(thing.before) if thing and self.alone else self.world.space.sysctl(key)

    def want(self, control: str, kind: str, target: str, value: Json) -> None:
        other = self.wanted.get((kind, target))
        if other and not KINDS[kind].same(other.value, value):
            name = KINDS[kind].described(self.world, target)
            raise Refused(f"{control} and {other.control} want {name} differently: '{KINDS[kind].text(self.world, value)}'"
                          f" and '{KINDS[kind].text(self.world, other.value)}'")
        self.wanted[kind, target] = Wanted(kind, target, value, control)

    def sysctl(self, control: str, key: str, value: str) -> None:
        if self.world.space.sysctl(key) is None:
            raise Refused(f"this kernel has no sysctl '{key}'")
        if self.unset(key) != value or self.own("sysctl", key) and not self.alone:
            self.want(control, "sysctl", key, value)

    def parameter(self, control: str, module: str, name: str, value: str) -> None:
        if system.module_loaded(module) and system.read_file(system.parameter_path(f"{module}.{name}")) is None:
            raise Refused(f"this '{module}' has no parameter '{name}'")
        self.want(control, "parameter", f"{module}.{name}", value)

    def allow(self, control: str, must: bool) -> None:
        """Unprivileged use is a property of the first namespace: one list for all."""
        if self.first and not first_namespace():
            # only once its module is loaded it is known whether it is restricted
            self.report.note(f"if '{control}' is restricted, only the first namespace can allow it ({ALLOWED_KEY})")
            return
        now = system.sysctl_everywhere(ALLOWED_KEY) or ""
        if control in now.split() and not self.mine.thing("allowed", control):
            if any(one.thing("allowed", control) for one in self.others()):
                self.want(control, "allowed", control, True)
            return
        if not first_namespace():
            if control in now.split():
                return
            if must:
                raise Refused(f"'{control}' is restricted and only the first namespace can allow it: run there"
                              f" 'sysctl -w {ALLOWED_KEY}=\"{now} {control}\"'")
            self.report.note(f"'{control}' is restricted: here only root can choose it per socket, until the first"
                             f" namespace allows it ({ALLOWED_KEY})")
            return
        self.want(control, "allowed", control, True)

    def others(self) -> list[Space]:
        return [one for one in self.journal.spaces.values() if one is not self.mine]

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
        available = self.world.space.sysctl(AVAILABLE_KEY)
        if available is None:
            raise Refused(f"this kernel shows no {AVAILABLE_KEY}")
        if control not in available.split() and host.tcp:
            for module in host.modules:
                if not system.module_exists(module):
                    raise Refused(f"no congestion control '{control}': neither loaded nor found as module '{module}'")
                self.first.append(Command(("modprobe", module), True))
            if not first_namespace() and not self.dry:
                self.load()
        for module in host.services:
            if not system.module_exists(module):
                raise Refused(f"no module '{module}'")
            if self.mine.thing("module", module) or not system.module_loaded(module) or \
                    any(one.thing("module", module) for one in self.others()):
                self.want(control, "module", module, True)
        for parameter in host.parameters:
            self.parameter(control, *parameter)
        for name in ("initcwnd", "initrwnd", "quickack"):
            if options.has(name) and not options.has("route"):
                raise Refused("--initcwnd, --initrwnd and --quickack need --route")
        # Elsewhere than in the first namespace the default must be an allowed one.
        elsewhere = self.world.space.name is not None or not first_namespace()
        plain = host.tcp and not options.has("route") and not options.has("default")
        if options.has("allow") or plain or (options.has("default") and elsewhere):
            self.allow(control, options.has("allow") or options.has("default"))
        if options.has("default"):
            if self.default:
                raise Refused(f"{self.default} and {control} cannot both be the default")
            self.default = control
            self.sysctl(control, DEFAULT_KEY, control)
        # A route asks for ECN by itself; what is not on it stays as it is.
        if host.ecn and (options.has("default") or not options.has("route")):
            now = self.unset("net.ipv4.tcp_ecn")
            if now is None:
                raise Refused("this kernel has no sysctl 'net.ipv4.tcp_ecn'")
            if now not in map(str, host.ecn):
                self.wanted.pop(("sysctl", "net.ipv4.tcp_ecn"), None)  # prague's 3 asks for ECN, too
                self.sysctl(control, "net.ipv4.tcp_ecn", str(host.ecn[0]))
            elif self.own("sysctl", "net.ipv4.tcp_ecn") and not self.alone:
                self.want(control, "sysctl", "net.ipv4.tcp_ecn", now)
        for key, value in host.sysctls:
            self.sysctl(control, key, value)
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

    def load(self) -> None:
        """At once, elsewhere than in the first namespace: modules stay loaded anyway"""
        for command in self.first:
            status, _, said = system.output(command.argv)
            if status:
                raise Refused(f"'{command.text(None)}' fails here ({system.first_line(said)}): run it in the first"
                              " namespace, and then this again")
        self.first = []

    def routes(self, control: str, host: Host, options: Options) -> None:
        values = dict(host.route_metrics)
        for name in ("initcwnd", "initrwnd"):
            if options.has(name):
                if options.values[name] > 65535:
                    raise Refused(f"--{name} {options.given[name]}: at most 65535 packets")
                values[name] = options.values[name]
        if options.has("quickack"):
            values["quickack"] = 1

        def before(target: str) -> list[str] | None:
            thing = self.own("route", target)
            return list(thing.before) if thing else None

        self.world.prefixes |= {routes.parse_prefix(given) for given in options.get("route", [])}
        for given in options.get("route", []):
            for target, words in wanted_routes(self.world, given, before, lambda base: routes.with_metrics(
                    base, control, values, host.route_features)):
                if ("route", target) not in self.wanted or self.wanted["route", target].control != control:
                    self.want(control, "route", target, [" ".join(words)])

    # --- what has to change --------------------------------------------------------------

    def stale(self) -> list[Thing]:
        """With alone: what lowq-tc has set here and is not wanted any more"""
        return [one for one in self.mine.things if self.alone and one.kind not in OF_DEVICES
                and (one.kind, one.target) not in self.wanted]

    def changes(self, kinds: tuple[str, ...] | None = None) -> list[tuple[Thing, Json, list[Command]]]:
        """For each wanted thing that is not so: its record, what it is now, and the commands"""
        made = []
        for one in self.wanted.values():
            kind = KINDS[one.kind]
            if kinds and one.kind not in kinds:
                continue
            now, old = kind.read(self.world, one.target), self.own(one.kind, one.target)
            if kind.same(now, one.value) and (old or one.kind not in SHARED or not any(
                    each.thing(one.kind, one.target) for each in self.others())):
                if old and old.ours != [one.value]:
                    old.ours = [one.value]
                continue
            before = old.before if old else (False if one.kind == "module" else now)
            thing = Thing(one.kind, one.target, before, [*(old.ours if old else []), one.value], one.control)
            made.append((thing, now, [] if kind.same(now, one.value) else kind.set(self.world, one.target, one.value)))
        return made


def apply(world: World, journal: Journal, wishes: list[tuple[str, Options]], given: Options, alone: bool = False,
          where: list[str] | None = None) -> Result:
    """alone: and puts back what lowq-tc has set here besides. where: what file says each wish"""
    dry, report = given.has("dry-run"), Report()
    if not dry:
        journal.begin()
    mine = journal.space(world.space)
    plan = Plan(world, journal, report, alone, dry)
    for at, (control, options) in enumerate(wishes):
        try:
            plan.add(control, options)
        except Refused as error:
            raise Refused(f"{where[at]}: {error}" if where else str(error)) from None
    name = " and ".join(control for control, _ in wishes)
    stale = plan.stale()
    undone: list[Thing] = []
    left: list[Thing] = []
    commands: list[Command] = []
    for thing in reversed(stale):
        if thing.kind in SHARED and any(one.thing(thing.kind, thing.target) for one in plan.others()):
            undone.append(thing)
            continue
        done = undo(world, thing, given.has("force"))
        commands += done.commands
        (undone if done.done else left).append(thing)
        if done.said:
            report.note(done.said)
    changes = plan.changes()
    made = commands + plan.first + [command for _, _, each in changes for command in each]
    shown = [f"# {thing.kind} {KINDS[thing.kind].described(world, thing.target)}:"
             f" {KINDS[thing.kind].text(world, KINDS[thing.kind].read(world, thing.target))}"
             for thing in [*undone, *(one for one, _, _ in changes)]] if dry else []
    words = {control: given_words(options) for control, options in wishes}
    same = not made and not undone and not changes and (mine.controls == words if alone else True)
    if not made and not undone:
        report.explain("nothing to change")
    if alone and same:
        return Result("host", "unchanged", "", name, f"host for {name}: is set", report, [])
    if dry:
        if left:
            raise Failed("host: " + "; ".join(report.notes))
        return Result("host", "planned", "", name, f"host for {name}: would run", report, made, shown)
    undoing(commands, world.space, journal.lock_file)
    for thing in undone:
        if thing.kind in SHARED:
            journal.hand_over(thing)
    mine.things = [one for one in mine.things if one not in undone]
    carried_out(world, journal, mine, plan, report)
    mine.controls = words if alone else {**mine.controls, **words}
    if not mine.things and not alone:
        mine.controls = {}
    journal.save()
    if left:
        raise Failed("host: " + "; ".join(report.notes))
    return Result("host", "applied", "", name, f"host for {name}: set", report, made)


def carried_out(world: World, journal: Journal, mine: Space, plan: Plan, report: Report) -> None:
    """Modules first: only then it is known what their parameters were."""
    was = list(mine.things)
    done: list[tuple[Thing, Json]] = []

    def back() -> None:
        world.refresh()
        mine.things = was
        undoing_raw([command for thing, now in reversed(done) for command in undo(world, thing, to=now).commands],
                    world.space, journal.lock_file)
        journal.save()

    for kinds in ((None,) if not plan.first and not any(one.kind == "module" for one in plan.wanted.values())
                  else (("module",), None)):
        changes = plan.changes(kinds)
        for thing, now, _ in changes:
            replace(mine, thing)
            done.append((thing, now))
        if changes:
            journal.save()
        first, plan.first = plan.first, []
        carry_out(first + [command for _, _, each in changes for command in each], world.space, journal.lock_file, back)
        world.refresh()
    for thing, _ in done:
        thing.ours = thing.ours[-1:]
        if KINDS[thing.kind].same(thing.before, thing.ours[0]) and thing.kind not in SHARED:
            mine.things.remove(thing)
        if thing.kind == "route":
            good, bad = effect(world, thing.target, thing.control)
            where = KINDS["route"].described(world, thing.target)
            if bad and not good:
                back()
                raise Failed(f"no lookup into {where} gives {thing.control}: {'; '.join(bad)}; rolled back to what was there"
                             " before")
            if bad:
                report.note(f"{where}: without effect for {'; '.join(bad)}")


def reset(world: World, journal: Journal, options: Options) -> Result:
    dry, report = options.has("dry-run"), Report()
    if not dry:
        journal.begin(undo=True)
    mine = journal.space(world.space)
    journal.settle(world.space)
    world.prefixes |= {prefix_of(one.target)[0] for one in mine.things if one.kind == "route"}
    commands: list[Command] = []
    undone: list[Thing] = []
    left: list[Thing] = []
    for thing in reversed([one for one in mine.things if one.kind not in OF_DEVICES]):
        users = [one for one in journal.spaces.values()
                 if one is not mine and (one.thing(thing.kind, thing.target) or thing.control in one.controls)]
        if thing.kind in SHARED and users:
            stays = "stays allowed" if thing.kind == "allowed" else "stays"
            report.note(f"'{thing.target}' {stays}: another namespace was set up with the same control")
            undone.append(thing)
            continue
        done = undo(world, thing, options.has("force"))
        commands += done.commands
        (undone if done.done else left).append(thing)
        if done.said:
            report.note(done.said)
    if not undone and not left:
        had = bool(mine.controls)
        mine.controls = {}
        if not dry and (text := journal.save_undone()):
            report.note(text)
        return Result("host", "applied" if had and not dry else "unchanged", "", "reset",
                      "host: put back" if had and not dry else "host: nothing to undo", report, [])
    if dry:
        if left:
            raise Failed("host: " + "; ".join(report.notes))
        shown = [f"# {KINDS[one.kind].change(world, one)}" for one in undone]
        return Result("host", "planned", "", "reset", "host: would run", report, commands, shown)
    undoing(commands, world.space, journal.lock_file)
    for thing in undone:
        if thing.kind in SHARED:
            journal.hand_over(thing)
    mine.things = [one for one in mine.things if one not in undone]
    if not left:
        mine.controls = {}
    if text := journal.save_undone():
        report.note(text)
    if left:
        raise Failed("host: " + "; ".join(undo(world, one).said for one in left))
    return Result("host", "applied", "", "reset", "host: put back", report, commands)


def show(world: World, journal: Journal) -> Json:
    mine = journal.space(world.space)
    world.prefixes |= {prefix_of(one.target)[0] for one in mine.things if one.kind == "route"}
    sysctls = {}
    for key in ("tcp_ecn", "tcp_congestion_control", "tcp_available_congestion_control",
                "tcp_allowed_congestion_control"):
        value = world.space.sysctl("net.ipv4." + key)
        if value is not None:
            sysctls[key] = value
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
            change["stands"] = change["stands"] and bool(good or not change["without_effect"])
        changes.append(change)
    return {"sysctl": sysctls, "controls": list(mine.controls), "changes": changes}


def show_text(shown: Json, hidden: str) -> str:
    lines = [f"net.ipv4.{key} = {value}" for key, value in shown["sysctl"].items()]
    if not shown["changes"]:
        lines.append(hidden or "nothing changed by lowq-tc")
    for change in shown["changes"]:
        state = ""
        if change["cut_short"]:
            state = " (cut short)"
        elif change.get("without_effect"):
            state = f" (without effect for {'; '.join(change['without_effect'])})"
        elif not change["stands"]:
            state = " (changed by someone else since)"
        lines.append(f"changed by lowq-tc: {change['text']}{state}")
    if shown["changes"]:
        lines.append(shown.get("lasts", ""))
    return "\n".join(line for line in lines if line)
