# SPDX-License-Identifier: GPL-2.0
"""lowq-tc host: what a control needs of its host, set, shown and put back.

Sysctls and routes belong to one network namespace. Modules, their parameters and the list
of allowed controls are shared by all: the last namespace that uses them puts them back.
"""

from __future__ import annotations

import os
import socket
from copy import deepcopy
from typing import NamedTuple

from lowq_common import system
from lowq_common.controls import CONTROLS, Host
from lowq_common.errors import Failed, Refused
from lowq_common.light import Json, matched
from lowq_common.system import Namespace

from . import inspect
from .aspects import ALLOWED, ALLOWED_KEY, MODULE, PARAMETER, ROUTE, SYSCTL, Place, ip_words
from .command import Command
from .device import Result
from .execute import Runner, carry_out, undo
from .journal import DONE, PLANNED, UNDONE, Damaged, HostRecord, Journal, Step, SavedState
from .options import HOST, Options
from .report import Report

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


# --- prefixes and routes -----------------------------------------------------------


class Prefix(NamedTuple):
    family: str  # -4 or -6
    text: str  # as ip shows it
    address: str


def parse_prefix(text: str) -> Prefix:
    """A prefix as ip takes it: 10.0.0.0/8, 10/8, default, fd00::/8. Written one way only."""
    wrong = Refused(f"--route {text}: not a prefix")
    if text == "default":
        return Prefix("-4", "default", "0.0.0.0")
    address, slash, length_text = text.partition("/")
    six = ":" in address
    if not six and slash and matched(r"\d+(\.\d+){0,3}", address):
        address += ".0" * (3 - address.count("."))
    bits = 128 if six else 32
    try:
        packed = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, address)
    except (OSError, ValueError):
        raise wrong from None
    if slash and not matched(r"\d{1,3}", length_text):
        raise wrong
    length = int(length_text) if slash else bits
    if length > bits:
        raise wrong
    number = int.from_bytes(packed, "big")
    network = number >> (bits - length) << (bits - length)
    shown = socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, network.to_bytes(bits // 8, "big"))
    if number != network:
        raise Refused(f"--route {text}: has bits beyond its length set; the prefix is {shown}/{length}")
    if length == 0:
        return Prefix("-6" if six else "-4", "::/0" if six else "default", shown)
    return Prefix("-6" if six else "-4", f"{shown}/{length}", shown)


FEATURES = ("ecn", "tcp_usec_ts")
METRICS = ("congctl", "initcwnd", "initrwnd", "quickack")


class Route(NamedTuple):
    head: list[str]
    tail: list[str]  # from the first nexthop on
    features: list[str]


def split_route(line: str, replaced: list[str] | None = None) -> Route | None:
    """A route as ip shows it, in words that ip accepts. Features, and metrics named in replaced,
    are left out of it. None: the route is dead."""
    words = line.split()
    head: list[str] = []
    tail: list[str] = []
    features: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "dead":
            return None
        if replaced is not None and word in METRICS and word in replaced:
            at += 2 if words[at] == "lock" else 1
            continue
        if replaced is not None and word == "features":
            while at < len(words) and words[at] in FEATURES:
                features.append(words[at])
                at += 1
            continue
        (tail if tail or word == "nexthop" else head).append(word)
    return Route(head, tail, features)


def plan_route(space: Namespace, text: str, words: list[str], wanted_features: list[str], old: Step | None,
               place: Place) -> Step:
    prefix = parse_prefix(text)
    ip = ip_words(prefix.family)
    shown = inspect.routes(space, prefix.family, prefix.text)
    if shown is None:
        raise Refused(f"--route {text}: not a prefix")
    if len(shown) > 1:
        raise Refused(f"--route {text}: there are {len(shown)} routes to it; take a narrower prefix")
    target = f"{prefix.family} {prefix.text}"
    now = place.portable(shown)
    saved = SavedState(now, [Command((*ip, "route", "del", prefix.text))])
    if shown:
        first = shown[0].split()[0]
        if first in ("local", "broadcast", "multicast", "unreachable", "blackhole", "prohibit", "throw"):
            raise Refused(f"--route {text}: is no route to another host ({first})")
        # A route without metrics that names a nexthop object finds the one with metrics again
        # in the kernel's tables: they would stay.
        if "nhid" in shown[0].split():
            raise Refused(
                f"--route {text}: uses a nexthop object; the kernel does not take metrics off such a route again"
            )
        whole = split_route(shown[0])
        if whole is None:
            raise Refused(f"--route {text}: the route is dead")
        saved.commands = [Command((*ip, "route", "replace", *indexed(whole.head + whole.tail, place)))]
    earlier = None
    base = shown
    if old is not None and place.made_by_us(old, now):
        if old.state == DONE:
            earlier = SavedState(now, [Command(tuple(indexed(list(one.argv), place))) for one in old.commands])
        saved = old.before
        base = [nameful(one, place) for one in saved.state]
    if base:
        start = split_route(base[0], words) or Route([], [], [])
    else:
        # None of its own: one beside the route that is taken today.
        towards = system.route_towards(space, prefix.family, prefix.address)
        if not towards or towards.get("type", "unicast") != "unicast" or towards.get("dev") == "lo" or "via" in towards:
            raise Refused(f"--route {text}: there is no way to it")
        head = [prefix.text]
        if towards.get("gateway"):
            head += ["via", towards["gateway"]]
        head += ["dev", towards["dev"]]
        # IPv6 addresses come and go; the kernel chooses well by itself.
        if towards.get("prefsrc") and prefix.family == "-4":
            head += ["src", towards["prefsrc"]]
        start = Route(head, [], [])
    features = list(dict.fromkeys(start.features + wanted_features))
    command = Command((
        *ip, "route", "replace" if shown else "add", *start.head, *words,
        *(["features", *features] if features else []), *start.tail,
    ))
    return Step(ROUTE, target, [command], saved, earlier)


def indexed(words: list[str], place: Place) -> list[str]:
    return place.portable([" ".join(words)])[0].split()


def nameful(route: str, place: Place) -> str:
    names = {f"#{number}": name for number, name in place.space.names().items()}
    return " ".join(Command(tuple(route.split())).on_device(names).argv)


# --- the plan ------------------------------------------------------------------------


class Plan:
    """The steps for a control, its own and those shared with other namespaces."""

    def __init__(self, space: Namespace, record: HostRecord, control: str, report: Report):
        self.space = space
        self.place = Place(space)
        self.record = record
        self.control = control
        self.report = report
        self.first: list[Command] = []  # load modules, which stay loaded
        self.shared: list[Step] = []
        self.own: list[Step] = []

    def old(self, aspect: str, target: str) -> Step | None:
        steps = self.record.steps.get(str(self.space.cookie), []) + self.record.shared
        return next((step for step in steps if step.aspect == aspect and step.target == target), None)

    def add(self, steps: list[Step], step: Step, now: Json) -> None:
        """Reset puts back what was there before the first call of lowq-tc."""
        old = self.old(step.aspect, step.target)
        if old and self.place.made_by_us(old, now):
            step.before, step.users = old.before, dict(old.users)
            if old.state == DONE:
                step.earlier = SavedState(now, old.commands)
        step.control = self.control
        steps.append(step)

    def sysctl(self, key: str, value: str) -> None:
        now = self.space.sysctl(key)
        if now is None:
            raise Refused(f"this kernel has no sysctl '{key}'")
        if now != value:
            self.add(self.own, Step(SYSCTL, key, [set_sysctl(key, value)], SavedState(now, [set_sysctl(key, now)])), now)

    def service(self, module: str) -> None:
        """Reset unloads it."""
        if system.module_loaded(module):
            return
        if not system.module_exists(module):
            raise Refused(f"no module '{module}'")
        load, unload = (Command(("modprobe", *flags, module), True) for flags in ((), ("-r",)))
        self.add(self.shared, Step(MODULE, module, [load], SavedState(False, [unload])), False)

    def parameter(self, module: str, name: str, value: str) -> None:
        """What it was is known now, or once its module is loaded."""
        key = f"{module}.{name}"
        path = system.parameter_path(key)
        now = system.read_file(path)
        if system.module_loaded(module):
            if now is None:
                raise Refused(f"this '{module}' has no parameter '{name}'")
            if now == value:
                return
        saved = SavedState(now, [Command((now,), True, path)] if now is not None else [])
        self.add(self.shared, Step(PARAMETER, key, [Command((value,), True, path)], saved), now)

    def allow(self, control: str, must: bool) -> None:
        """Unprivileged use is a property of the first namespace: one list for all."""
        now = system.sysctl_everywhere(ALLOWED_KEY) or ""
        if control in now.split():
            return
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
        self.add(self.shared, Step(ALLOWED, control, [command], SavedState(False, [])), False)

    def make(self, control: str, options: Options) -> None:
        known = CONTROLS.get(control)
        host = Host(options, self.space.sysctl)
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
            now = self.space.sysctl("net.ipv4.tcp_ecn")
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
        if not self.commands():
            self.report.explain("nothing to change")

    def routes(self, control: str, host: Host, options: Options) -> None:
        words = ["congctl", control, *host.route_words]
        for name in ("initcwnd", "initrwnd"):
            if options.has(name):
                if options.values[name] > 65535:
                    raise Refused(f"--{name} {options.given[name]}: at most 65535 packets")
                words += [name, str(options.values[name])]
        if options.has("quickack"):
            words += ["quickack", "1"]
        for text in options.routes:
            prefix = parse_prefix(text)
            target = f"{prefix.family} {prefix.text}"
            if all(step.target != target for step in self.own):
                step = plan_route(self.space, text, words, host.route_features, self.old(ROUTE, target), self.place)
                step.control = control
                self.own.append(step)

    def commands(self) -> list[Command]:
        return self.first + [command for step in self.shared + self.own for command in step.commands]


# --- set, reset, show ----------------------------------------------------------------


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
        journal.begin()
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
            stays = "stays allowed" if step.aspect == ALLOWED else "stays"
            report.note(f"'{step.target}' {stays}: another namespace was set up with the same control")
    if not own and not mine and cookie not in record.own:
        if not dry:
            journal.save_host(record)  # without the namespaces that are gone
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
    journal.save_host(record)
    if any(step.state != UNDONE for step in mine + own):
        raise Failed("host: " + "; ".join(left))
    return Result("host", "applied", "", "reset", "host: put back", report, commands)


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
        now = place.read(step)
        change = {
            "kind": step.aspect, "name": step.target, "old": step.before.state,
            "new": step.after, "now": now, "stands": bool(now == step.after), "cut_short": step.state != DONE,
        }
        if step.aspect == ROUTE:
            for key in ("old", "new", "now"):
                change[key] = [nameful(route, place) for route in change[key] or []]
        changes.append(change)
    return {
        "sysctl": sysctls, "controls": record.own.get(cookie, {}).get("controls", []), "changes": changes,
    }


def show_text(shown: Json) -> str:
    lines = [f"net.ipv4.{key} = {value}" for key, value in shown["sysctl"].items()]
    if not shown["changes"]:
        lines.append("nothing changed by lowq-tc")
    for change in shown["changes"]:
        if change["kind"] in (SYSCTL, PARAMETER):
            what = f"{change['name']} from {change['old']} to {change['new']}"
        elif change["kind"] == ALLOWED:
            what = f"{change['name']} allowed"
        elif change["kind"] == MODULE:
            what = f"{change['name']} loaded"
        else:
            what = "route " + ("; ".join(change["new"] or []) or change["name"].split()[1])
        state = ""
        if change["cut_short"]:
            state = " (cut short)"
        elif not change["stands"]:
            state = " (changed by someone else since)"
        lines.append(f"changed by lowq-tc: {what}{state}")
    return "\n".join(lines)
