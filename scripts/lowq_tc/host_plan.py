# SPDX-License-Identifier: GPL-2.0
"""What a control needs of its host against what is there: the steps that lead from one to the
other."""

from __future__ import annotations

import os

from lowq_common import system
from lowq_common.controls import CONTROLS, Host
from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.system import Namespace

from .aspects import ALLOWED, MODULE, PARAMETER, ROUTE, SYSCTL, aspect_of
from .aspects.base import Aspect, Place
from .aspects.module import ALLOWED_KEY
from .command import Command
from .journal import DONE, HostRecord, SavedState, Step
from .options import Options
from .report import Report
from .routes import plan_routes

DEFAULT_KEY = "net.ipv4.tcp_congestion_control"
AVAILABLE_KEY = "net.ipv4.tcp_available_congestion_control"


def set_sysctl(key: str, value: str, everywhere: bool = False) -> Command:
    return Command(("sysctl", "-q", "-w", f"{key}={value}"), everywhere)


def first_namespace() -> bool:
    """Only there the list of allowed controls can be written."""
    try:
        return os.stat("/proc/sys/" + ALLOWED_KEY.replace(".", "/")).st_mode & 0o777 == 0o644
    except OSError:
        return False


class Plan:
    """The steps for a control, its own and those shared with other namespaces. Alone: nothing else
    shall stay of what lowq-tc has set here."""

    def __init__(self, space: Namespace, record: HostRecord, control: str, report: Report, alone: bool = False):
        self.space = space
        self.place = Place(space)
        self.record = record
        self.control = control
        self.report = report
        self.alone = alone
        self.named: set[tuple[str, str]] = set()  # aspects and targets of what is wanted, also where it is there
        self.first: list[Command] = []  # load modules, which stay loaded
        self.shared: list[Step] = []
        self.own: list[Step] = []

    def old(self, aspect: Aspect, target: str) -> Step | None:
        steps = self.record.steps.get(str(self.space.cookie), []) + self.record.shared
        return next((step for step in steps if step.aspect == aspect.name and step.target == target), None)

    def unset(self, key: str) -> str | None:
        """The value of a sysctl; with alone, without what lowq-tc has made of it"""
        now = self.space.sysctl(key)
        old = self.old(SYSCTL, key)
        if self.alone and old and SYSCTL.made_by_us(self.place, old, now):
            return str(old.before.state)
        return now

    def stale(self) -> tuple[list[Step], list[Step]]:
        """With alone: what lowq-tc has set here and is not wanted any more, shared and own"""
        cookie = str(self.space.cookie)
        shared = [step for step in self.record.shared if cookie in step.users]
        return self.unnamed(shared), self.unnamed(self.record.steps.get(cookie, []))

    def unnamed(self, steps: list[Step]) -> list[Step]:
        return [step for step in steps if self.alone and (step.aspect, step.target) not in self.named]

    def add(self, steps: list[Step], step: Step, now: Json) -> None:
        """Reset puts back what was there before the first call of lowq-tc."""
        self.named.add((step.aspect, step.target))
        aspect = aspect_of(step)
        old = self.old(aspect, step.target)
        if old and aspect.made_by_us(self.place, old, now):
            step.before, step.users = old.before, dict(old.users)
            if old.state == DONE:
                step.earlier = SavedState(now, old.commands)
        step.control = self.control
        steps.append(step)

    def sysctl(self, key: str, value: str) -> None:
        now = self.space.sysctl(key)
        if now is None:
            raise Refused(f"this kernel has no sysctl '{key}'")
        if self.unset(key) == value:
            return
        self.named.add((SYSCTL.name, key))
        if now != value:
            saved = SavedState(now, [set_sysctl(key, now)])
            self.add(self.own, Step(SYSCTL.name, key, [set_sysctl(key, value)], saved), now)

    def service(self, module: str) -> None:
        """Reset unloads it."""
        self.named.add((MODULE.name, module))
        if system.module_loaded(module):
            return
        if not system.module_exists(module):
            raise Refused(f"no module '{module}'")
        load, unload = (Command(("modprobe", *flags, module), True) for flags in ((), ("-r",)))
        self.add(self.shared, Step(MODULE.name, module, [load], SavedState(False, [unload])), False)

    def parameter(self, module: str, name: str, value: str) -> None:
        """What it was is known now, or once its module is loaded."""
        key = f"{module}.{name}"
        self.named.add((PARAMETER.name, key))
        path = system.parameter_path(key)
        now = system.read_file(path)
        if system.module_loaded(module):
            if now is None:
                raise Refused(f"this '{module}' has no parameter '{name}'")
            if now == value:
                return
        saved = SavedState(now, [Command((now,), True, path)] if now is not None else [])
        self.add(self.shared, Step(PARAMETER.name, key, [Command((value,), True, path)], saved), now)

    def allow(self, control: str, must: bool) -> None:
        """Unprivileged use is a property of the first namespace: one list for all."""
        self.named.add((ALLOWED.name, control))
        if self.first and not first_namespace():
            # only once its module is loaded it is known whether it is restricted
            self.report.note(f"if '{control}' is restricted, only the first namespace can allow it ({ALLOWED_KEY})")
            return
        now = system.sysctl_everywhere(ALLOWED_KEY) or ""
        if control in now.split():
            return
        # stale ones are taken off before
        gone = [step.target for step in self.stale()[0] if step.aspect == ALLOWED.name and len(step.users) == 1]
        now = " ".join(name for name in now.split() if name not in gone)
        if not first_namespace():
            if must:
                raise Refused(
                    f"'{control}' is restricted and only the first namespace can allow it: run there"
                    f" 'sysctl -w {ALLOWED_KEY}=\"{now} {control}\"'"
                )
            self.report.note(
                f"'{control}' is restricted: here only root can choose it per socket, until the first"
                f" namespace allows it ({ALLOWED_KEY})"
            )
            return
        command = set_sysctl(ALLOWED_KEY, f"{now} {control}", True)
        self.add(self.shared, Step(ALLOWED.name, control, [command], SavedState(False, [])), False)

    def make(self, control: str, options: Options) -> None:
        known = CONTROLS.get(control)
        host = Host(options, self.unset)
        if known:
            known.needs(host)
        if not host.modules and host.tcp:
            host.modules.append("tcp_" + control)
        available = self.space.sysctl(AVAILABLE_KEY)
        if available is None:
            raise Refused(f"this kernel shows no {AVAILABLE_KEY}")
        if control not in available.split() and host.tcp:
            for module in host.modules:
                if not system.module_exists(module):
                    raise Refused(f"no congestion control '{control}': neither loaded nor found as module '{module}'")
                self.first.append(Command(("modprobe", module), True))
            if not first_namespace() and not options.has("dry-run"):
                self.load()
        for module in host.services:
            self.service(module)
        for parameter in host.parameters:
            self.parameter(*parameter)
        for name in ("initcwnd", "initrwnd", "quickack"):
            if options.has(name) and not options.has("route"):
                raise Refused("--initcwnd, --initrwnd and --quickack need --route")
        # Elsewhere than in the first namespace the default must be an allowed one.
        elsewhere = self.space.name is not None or not first_namespace()
        plain = host.tcp and not options.has("route") and not options.has("default")
        if options.has("allow") or plain or (options.has("default") and elsewhere):
            self.allow(control, options.has("allow") or options.has("default"))
        if options.has("default"):
            self.sysctl(DEFAULT_KEY, control)
        # A route asks for ECN by itself; what is not on it stays as it is.
        if host.ecn and (options.has("default") or not options.has("route")):
            now = self.unset("net.ipv4.tcp_ecn")
            if now is None:
                raise Refused("this kernel has no sysctl 'net.ipv4.tcp_ecn'")
            if now not in map(str, host.ecn):
                self.sysctl("net.ipv4.tcp_ecn", str(host.ecn[0]))
        for key, value in host.sysctls:
            self.sysctl(key, value)
        self.routes(control, host, options)
        if plain:
            self.report.explain(
                "chosen per socket (TCP_CONGESTION); --default and --route choose it for all, or for a prefix"
            )
        if not self.commands() and not any(self.stale()):
            self.report.explain("nothing to change")

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
        for text in options.get("route", []):
            for step in plan_routes(self.place, text, control, values, host.route_features,
                                    lambda target: self.old(ROUTE, target)):
                if any(one.target == step.target for one in self.own):
                    continue
                step.control = control
                self.named.add((ROUTE.name, step.target))
                old = self.old(ROUTE, step.target)
                if not (self.alone and old and is_set(old, step, self.place)):
                    self.own.append(step)

    def commands(self) -> list[Command]:
        return self.first + [command for step in self.shared + self.own for command in step.commands]


def is_set(old: Step, step: Step, place: Place) -> bool:
    """Does a route that lowq-tc has set stand as the step would make it?"""
    made = [[word for word in one.commands[0].argv if word not in ("add", "replace")] for one in (old, step)]
    return old.state == DONE and made[0] == made[1] and ROUTE.same(old.after, ROUTE.read(place, step.target))
