# SPDX-License-Identifier: GPL-2.0
"""Which parts a command line needs, and what is said about it.

Exit status: 0 done, 1 a command failed and was rolled back or something is left as it was
found, 2 refused with nothing changed, 3 show --check found something that differs, 4 apply
changed something.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Iterable

from lowq_common import streams
from lowq_common.controls import CONTROLS
from lowq_common.errors import Failed, Refused

from .command_line import parse
from .options import FRAME, HOST, Options
from .profiles import PROFILES

if TYPE_CHECKING:
    from lowq_common.controls import Control
    from lowq_common.values import Json
    from .apply import Applied
    from .device import Result
    from .profiles.base import Profile


DIFFERS, CHANGED = 3, 4


def complain(text: str) -> None:
    print("lowq-tc:", text, file=sys.stderr)


def print_json(made: Json) -> None:
    import json

    print(json.dumps(made, indent=2))


def as_json(result: Result, space: str | None) -> Json:
    made: dict[str, Json] = {"action": result.action, "status": result.status}
    if result.device:
        made["device"] = result.device
    if space:
        made["netns"] = space
    if result.action == "host":
        made["control"] = result.profile
    elif result.profile:
        made["profile"] = result.profile
    made |= result.report.to_json()
    made["commands"] = [command.text(space) for command in result.commands]
    return made


def present(result: Result, options: Options) -> None:
    space = options.get("netns")
    if options.has("json"):
        print_json(as_json(result, space))
    elif options.has("dry-run"):
        if not options.has("quiet"):
            print(result.report.text(result.headline), file=sys.stderr)
        for command in result.commands:
            print(command.text(space))
    elif not options.has("quiet"):
        print(result.report.text(result.headline))


def do_list(options: Options) -> int:
    tables: list[tuple[str, Iterable[Profile | Control], tuple[str, ...]]] = [
        ("profile", PROFILES.values(), FRAME), ("control", CONTROLS.values(), HOST),
    ]
    if options.has("json"):
        print_json({
            kind + "s": [{kind: one.name, "about": one.about, "options": [*general, *one.options]} for one in table]
            for kind, table, general in tables
        })
        return 0
    for kind, table, _ in tables:
        print(kind + "s" if kind == "profile" else 'controls, for "lowq-tc host"')
        for one in table:
            print(f"  {one.name:<12} {one.about}")
            if one.options:
                print(f"  {'':<12}   " + " ".join("--" + option for option in one.options))
    return 0


def do_show(options: Options) -> int:
    from . import show
    from lowq_common.system import Namespace
    from .journal import Journal
    from .world import World

    journal = Journal()
    if options.has("check") and journal.hidden:
        raise Refused(journal.hidden)
    shown, wrong = show.show(World(Namespace(options.get("netns"))), journal, options.names)
    for text in wrong:
        complain(text)
    if options.has("prometheus"):
        from . import prometheus

        print(prometheus.text(shown))
    elif options.has("json"):
        print_json(shown)
    elif not options.has("quiet"):
        for one in shown:
            print(show.text(one))
        if not shown and not options.names:
            print("nothing set by lowq-tc on the devices of this namespace")
    return checked(options, not wrong and all(map(show.is_as_set, shown)))


def checked(options: Options, as_set: bool) -> int:
    return DIFFERS if options.has("check") and not as_set else 0


def do_reset(options: Options) -> int:
    from . import device
    from lowq_common.system import Namespace
    from .journal import Journal
    from .world import World

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
    from . import exact
    from lowq_common.system import Namespace
    from .command import EXACT, Command
    from .device import Result
    from .profiles.queues import ROOT
    from .report import Report

    words, handle, dry = list(options.names), ROOT, options.has("dry-run")
    if words[0] == "dev" and len(words) in (2, 4):
        words.pop(0)
    device = words.pop(0)
    if words and (words[0] != "handle" or len(words) != 2):
        raise Refused(f"exact: what is '{words[0]}'?")
    if words:
        handle = words[1].rstrip(":")
    try:
        exact.exact(Namespace(options.get("netns")), device, handle, anywhere=handle != ROOT, dry=dry)
    except ValueError:
        raise Refused(f"'{words[1]}' is not the handle of a qdisc") from None
    except OSError as error:
        raise Failed(f"{device}: the kernel refuses it: {error.strerror}") from None
    if dry or options.has("json"):
        present(Result("exact", "planned" if dry else "applied", device, "", f"{device}: would run", Report(),
                       [Command((*EXACT, "dev", device, *words))]), options)
    return 0


def do_host(options: Options) -> int:
    from . import apply, host, show
    from lowq_common.system import Namespace
    from .journal import Journal
    from .world import World

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
        present(host.reset(world, journal, options), options)
    else:
        present(host.apply(world, journal, [(what, options)], options), options)
    return 0


def do_save(options: Options) -> int:
    from . import apply
    from lowq_common.system import Namespace
    from .journal import Journal

    if options.action == "save":
        result = apply.save(Namespace(options.get("netns")), Journal(), options)
    else:
        result = apply.at_boot(options, options.action == "enable")
    present(result, options)
    return 0


def do_apply(options: Options) -> int:
    from . import apply
    from lowq_common.system import Namespace
    from .journal import Journal

    applied = apply.apply(Namespace(options.get("netns")), Journal(), options)
    changed = [result for result in applied.results if result.status in ("applied", "planned")]
    if options.has("json"):
        print_json({
            "action": "apply", "status": "failed" if applied.errors else "changed" if changed else "unchanged",
            "results": [as_json(result, options.get("netns")) for result in applied.results],
            "missing": applied.missing, "errors": applied.errors,
        })
    for text in applied.errors:
        complain(text)
    if not options.has("json") and not applied.refused:
        present_applied(applied, changed, options)
    if applied.errors:
        return 2 if applied.refused else 1
    return CHANGED if changed else 0


def present_applied(applied: Applied, changed: list[Result], options: Options) -> None:
    dry = options.has("dry-run")
    if options.has("diff"):
        from difflib import unified_diff

        for result in changed:
            made = [command.text(options.get("netns")) for command in result.commands]
            name = result.device or "host"
            names = (f"{name} as it is", f"{name} as it shall be")
            print("\n".join(unified_diff(result.before, made, *names, lineterm="")))
    for result in applied.results:
        if result in changed and not (dry and options.has("diff")):
            present(result, options)
        elif result.status != "failed" and not options.has("quiet"):
            print(result.headline, file=sys.stderr if dry else sys.stdout)
    if changed or not options.has("quiet"):
        verb, listed = "would change" if dry else "changed", ", ".join(result.device or "host" for result in changed)
        failed = [result.device or "host" for result in applied.results if result.status == "failed"]
        said = [f"{verb}: {listed}" if changed else "nothing was changed" if failed else "nothing to change"]
        said += [f"{word}: {', '.join(names)}" for word, names in (("failed", failed), ("missing", applied.missing)) if names]
        print("; ".join(said), file=sys.stderr if dry else sys.stdout)


def do_print(name: str, port: str, options: Options) -> int:
    from . import switches

    lines, report = switches.printed(name, port, options)
    if options.has("json"):
        made = {"action": "print", "profile": name, "device": port}
        print_json({**made, **report.to_json(), "commands": lines})
        return 0
    if not options.has("quiet"):
        print(report.text(f"{name} for {port}:"), file=sys.stderr)
    print("\n".join(lines))
    return 0


def do_profile(options: Options) -> int:
    name = options.action
    if options.has("print"):
        return do_print(name, options.names[0], options)
    from . import device
    from lowq_common.system import Namespace
    from .journal import Journal
    from .world import World

    options.only(name, *FRAME, *PROFILES[name].options)
    journal, dry = Journal(), options.has("dry-run")
    if not dry:
        journal.begin()
    world = World(Namespace(options.get("netns")))
    mine = journal.space(world.space)
    if journal.hidden and any(world.is_ours(link.ifindex) for link in [world.named(options.names[0])] if link):
        raise Refused(f"{options.names[0]} has a queue of lowq-tc, and {journal.hidden}")
    planned = device.plan(world, mine, options, options.names[0])
    present(device.result_of(world, planned, True) if dry else device.apply(world, journal, planned), options)
    return 0


def dispatch(argv: list[str]) -> int:
    options = parse(argv)
    actions = {"list": do_list, "show": do_show, "reset": do_reset, "host": do_host, "exact": do_exact,
               "apply": do_apply, "save": do_save, "enable": do_save, "disable": do_save}
    return actions.get(options.action, do_profile)(options)


def main(argv: list[str]) -> int:
    streams.prepare("surrogateescape")  # names of devices may hold any byte
    try:
        status = dispatch(argv)
        sys.stdout.flush()
        return status
    except Refused as error:
        complain(str(error))
        return 2
    except Failed as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:  # later a set is rolled back, and a reset ends what it has begun
        complain("interrupted; nothing was changed")
        return 2
    except OSError as error:
        if text := streams.failure(error):
            complain(text)
        return 1
