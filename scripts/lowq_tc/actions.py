# SPDX-License-Identifier: GPL-2.0
"""What each action does, and what is said about it."""

from __future__ import annotations

import json
import sys

from lowq_common import system
from lowq_common.errors import Failed, Refused
from lowq_common.system import Namespace
from lowq_common.values import Json

from . import apply, device, exact, export, host, ingress, prometheus, show, switches
from .command import EXACT, Command
from .command_line import CHANGED, complain, DIFFERS
from .journal import Journal
from .options import FRAME, Options
from .profiles import PROFILES
from .profiles.queues import ROOT
from .report import Report, Result
from .world import World


def print_json(made: Json) -> None:
    print(json.dumps(made, indent=2))


def as_json(result: Result, space: str | None) -> Json:
    made: dict[str, Json] = {"action": result.action, "status": result.status}
    named = {"device": result.device, "netns": space, "control" if result.action == "host" else "profile": result.profile}
    return made | {key: value for key, value in named.items() if value} | result.report.to_json() | {
        "commands": [command.text(space) for command in result.commands]}


def present(result: Result, options: Options) -> None:
    space, dry = options.get("netns"), options.has("dry-run")
    if options.has("json"):
        print_json(as_json(result, space))
        return
    if not options.has("quiet"):
        print(result.text, file=sys.stderr if dry else sys.stdout)
    for command in result.commands if dry else ():
        print(command.text(space))


def checked(options: Options, as_set: bool) -> int:
    return DIFFERS if options.has("check") and not as_set else 0


def do_show(options: Options) -> int:
    journal = Journal()
    if options.has("check") and journal.hidden:
        raise Refused(journal.hidden)
    world = World(Namespace(options.get("netns")))
    shown = show.show(world, journal, options.names)
    if journal.hidden:
        complain(journal.hidden)
    if options.has("prometheus"):
        print(prometheus.text(shown, None if options.names else host.show(world, journal)))
    elif options.has("json"):
        print_json(shown)
    elif not options.has("quiet"):
        for one in shown:
            print(show.text(one))
        if not shown and not options.names:
            print("nothing set by lowq-tc on the devices of this namespace")
    return checked(options, all(map(show.is_as_set, shown)))


def do_reset(options: Options) -> int:
    results, errors = device.reset(World(Namespace(options.get("netns"))), Journal(), options)
    if options.has("json") and (options.has("all") or len(results) != 1):
        print_json({
            "action": "reset", "status": "failed" if errors else "planned" if options.has("dry-run") else "applied",
            "devices": [as_json(result, options.get("netns")) for result in results], "errors": errors,
        })
    else:
        for result in results:
            present(result, options)
    for text in errors:
        complain(text)
    return 1 if errors else 0


def do_exact(options: Options) -> int:
    words, dry = list(options.names), options.has("dry-run")
    if words[0] == "dev" and len(words) in (2, 4):
        words.pop(0)
    if len(words) not in (1, 3) or words[1:2] not in ([], ["handle"]):
        raise Refused(f"exact: what is '{words[1]}'?")
    name, handle = words[0], words[2].rstrip(":") if words[1:] else ROOT
    try:
        exact.exact(Namespace(options.get("netns")), name, handle, anywhere=handle != ROOT, dry=dry)
    except ValueError:
        raise Refused(f"'{words[2]}' is not the handle of a qdisc") from None
    except OSError as error:
        raise Failed(f"{name}: the kernel refuses it: {error.strerror}") from None
    if dry or options.has("json"):
        present(Result("exact", "planned" if dry else "applied", name, "", f"{name}: would run", Report(),
                       [Command((*EXACT, "dev", *words))]), options)
    return 0


def do_host(options: Options) -> int:
    world, journal, what = World(Namespace(options.get("netns"))), Journal(), options.names[0]
    if what == "show":
        options.only("host show", "check")
        if options.has("check") and journal.hidden:
            raise Refused(journal.hidden)
        shown = host.show(world, journal)
        shown["lasts"] = show.lasts_host(journal.space(world.space).controls, apply.kept(world.space))
        if options.has("json"):
            print_json(shown)
        elif not options.has("quiet"):
            print(host.show_text(shown, journal.hidden))
        return checked(options, all(one["stands"] and not one["cut_short"] for one in shown["changes"]))
    if what == "reset":
        options.only("host reset")
        present(host.apply(world, journal, [], options, True), options)
    else:
        present(host.apply(world, journal, [(what, options)], options), options)
    return 0


def loaded() -> str:
    """The controls that there are"""
    return system.sysctl_everywhere(host.AVAILABLE_KEY) or ""


def show_cgroups(options: Options, paths: list[str]) -> int:
    from . import cgroup  # with ctypes, which takes its time

    options.only("cgroup show", "check")
    available = loaded().split()
    shown = list(cgroup.show(paths))
    stands = [one.whole and set(one.prefixes.values()) <= set(available) for one in shown]
    if options.has("json"):
        print_json([{"cgroup": one.path, "prefixes": {prefix.text: name for prefix, name in one.prefixes.items()},
                     "stands": good} for one, good in zip(shown, stands)])
    elif not options.has("quiet"):
        print("\n".join([f"{one.path}: {name} to {prefix.text}{'' if one.whole else ' (cut short)'}"
                         f"{'' if name in available else ' (not loaded: connections keep their own)'}"
                         for one in shown for prefix, name in one.prefixes.items()] or ["nothing set by lowq-tc"]))
    return checked(options, all(stands) and len(shown) >= len(paths))


def reset_cgroups(options: Options, paths: list[str]) -> Result:
    from . import cgroup

    options.only("cgroup reset", "all")
    if bool(paths) == options.has("all"):
        raise Refused("cgroup reset: which one? Or --all")
    there = [one.path for one in cgroup.show(paths)]
    if options.has("dry-run"):
        return Result("cgroup", "planned", "", "reset", f"cgroup: would put back: {', '.join(there) or 'nothing'}", Report(), [])
    gone = [path for path in there if cgroup.reset(path)]
    return Result("cgroup", "applied" if gone else "unchanged", "", "reset", f"cgroup: put back: {', '.join(gone) or 'nothing'}",
                  Report(), [])


def set_cgroup(options: Options, control: str, paths: list[str]) -> Result:
    from . import cgroup

    options.only(f"cgroup {control}", "route")
    if len(paths) != 1:
        raise Refused(f"cgroup {control}: which cgroup? One path, of /sys/fs/cgroup")
    given = options.get("route", ["default", "::/0"])
    cgroup.wanted(control, given)
    commands, to = host.loading(control, loaded(), ["tcp_" + control]), f"{control} to {', '.join(given)}"
    if options.has("dry-run"):
        cgroup.opened(paths[0])
        return Result("cgroup", "planned", "", control, f"cgroup {paths[0]}: would take {to}", Report(), commands)
    cgroup.set_control(paths[0], control, given, commands)
    return Result("cgroup", "applied", "", control, f"cgroup {paths[0]}: takes {to}", Report(), commands)


def do_cgroup(options: Options) -> int:
    what, *paths = options.names
    if what == "show":
        return show_cgroups(options, paths)
    present(reset_cgroups(options, paths) if what == "reset" else set_cgroup(options, what, paths), options)
    return 0


def do_save(options: Options) -> int:
    present(apply.save(Namespace(options.get("netns")), Journal(), options), options)
    return 0


def do_at_boot(options: Options) -> int:
    present(apply.at_boot(options, options.action == "enable"), options)
    return 0


def do_export(options: Options) -> int:
    journal, manager = Journal(), options.names[0]
    if journal.hidden:
        raise Refused(journal.hidden)
    world = World(Namespace(options.get("netns")))
    files = export.export(world, journal.space(world.space), manager)
    if options.has("json"):
        print_json([{"path": one.path, "mode": f"{one.mode:o}", "text": "\n".join(one.lines) + "\n"} for one in files])
    else:
        print("\n".join(export.script(files, "networkctl reload" if manager == "networkd" else "")))
    return 0


def do_apply(options: Options) -> int:
    applied = apply.apply(Namespace(options.get("netns")), Journal(), options)
    changed = [result for result in applied.results if result.status in ("applied", "planned")]
    if options.has("json"):
        print_json({
            "action": "apply", "status": "failed" if applied.errors else "changed" if changed else "unchanged",
            "results": [as_json(result, options.get("netns")) for result in applied.results],
            "missing": applied.missing, "not_ready": applied.not_ready, "errors": applied.errors,
        })
    for text in applied.errors:
        complain(text)
    if not options.has("json") and not applied.refused:
        present_applied(applied, changed, options)
    if applied.errors:
        return 2 if applied.refused else 1
    return CHANGED if changed else 0


def present_applied(applied: apply.Applied, changed: list[Result], options: Options) -> None:
    dry = options.has("dry-run")
    out = sys.stderr if dry else sys.stdout
    for result in changed if options.has("diff") else ():
        from difflib import unified_diff

        name = result.device or "host"
        made = [command.text(options.get("netns")) for command in result.commands]
        print("\n".join(unified_diff(result.before, made, f"{name} as it is", f"{name} as it shall be", lineterm="")))
    for result in applied.results:
        if result in changed and not (dry and options.has("diff")):
            present(result, options)
        elif result.status != "failed" and not options.has("quiet"):
            print(result.headline, file=out)
    if changed or not options.has("quiet"):
        failed = [result.device or "host" for result in applied.results if result.status == "failed"]
        said = ["nothing was changed" if failed else "nothing to change"]
        if changed:
            said = [("would change: " if dry else "changed: ") + ", ".join(result.device or "host" for result in changed)]
        said += [f"{word}: {', '.join(names)}" for word, names in (
            ("failed", failed), ("missing", applied.missing), ("not ready", applied.not_ready)) if names]
        print("; ".join(said), file=out)


def do_print(name: str, port: str, options: Options) -> int:
    lines, report = switches.printed(name, port, options)
    if options.has("json"):
        print_json({"action": "print", "profile": name, "device": port, **report.to_json(), "commands": lines})
        return 0
    if not options.has("quiet"):
        print(Result("print", "planned", port, name, f"{name} for {port}:", report).text, file=sys.stderr)
    print("\n".join(lines))
    return 0


def do_profile(options: Options) -> int:
    profile, name = options.action, options.names[0]
    if options.has("print"):
        return do_print(profile, name, options)
    options.only(profile, *FRAME, *PROFILES[profile].options)
    journal, dry = Journal(), options.has("dry-run")
    if not dry:
        journal.begin()
    world = World(Namespace(options.get("netns")))
    mine, more = journal.space(world.space), list[Command]()
    if options.has("ingress"):
        name, more = ingress.prepare(world, journal, name, dry)
    if journal.hidden and any(world.is_ours(link.ifindex) for link in [world.named(name)] if link):
        raise Refused(f"{name} has a queue of lowq-tc, and {journal.hidden}")
    try:
        planned = device.plan(world, mine, options, name)
        done = device.result_of(world, planned, True) if dry else device.apply_all(world, journal, [planned])[0]
        if isinstance(done, Failed):
            raise done
    except (Refused, Failed):
        if more and not dry:
            ingress.take_back(world, journal, name)
        raise
    present(done._replace(commands=more + list(done.commands)), options)
    return 0


ACTIONS = {"show": do_show, "reset": do_reset, "host": do_host, "exact": do_exact, "apply": do_apply, "save": do_save,
           "cgroup": do_cgroup, "export": do_export, "enable": do_at_boot, "disable": do_at_boot}
