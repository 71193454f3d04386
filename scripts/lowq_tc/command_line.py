# SPDX-License-Identifier: GPL-2.0
"""The parser of the command line, made of the actions and the table of options."""

from __future__ import annotations

import argparse
import sys
from functools import lru_cache
from typing import Callable, Iterable

from lowq_common import units
from lowq_common.arguments import Parser, asked_by_bash, completes
from lowq_common.controls import CONTROLS
from lowq_common.errors import Refused
from lowq_common.names import controls_there, names_in

from .options import FRAME, GENERAL, HOST, MANAGERS, OPTIONS, PRINT, PRINTED, SHORT, Options
from .profiles import PROFILES

ABOUT = """\
Sets queue and marking of a device, and the host side, for a congestion control, and puts both back:
lowq-tc dctcp eth2 --rtt 100us; lowq-tc host dctcp --route 10.0.0.0/8; lowq-tc reset eth2; lowq-tc host reset."""
NOTES = """\
A queue length Q is packets (65), bytes (97500b, 95kb) or time (50us). Exit status: 0 done, 1 failed and rolled back,
2 refused, nothing changed, 3 show --check: something differs, 4 apply: something was changed."""
DIFFERS, CHANGED = 3, 4

ACTIONS = frozenset((*PROFILES, "show", "reset", "apply", "host", "save", "enable", "disable", "list", "exact", "export",
                     "cgroup"))


def complain(text: str) -> None:
    print("lowq-tc:", text, file=sys.stderr)


def add_options(parser: argparse.ArgumentParser, title: str, names: Iterable[str], aqm: tuple[str, ...] = ()) -> None:
    group = parser.add_argument_group(title)
    for name in names:
        option, words = OPTIONS[name], (*SHORT.get(name, ()), "--" + name)
        if not option.metavar:
            group.add_argument(*words, action="store_true", default=argparse.SUPPRESS, help=option.about)
            continue
        added = group.add_argument(*words, action="append" if name == "route" else "store", metavar=option.metavar,
                                   default=argparse.SUPPRESS, choices=aqm if name == "aqm" else option.choices,
                                   help=option.about)
        if name == "netns":
            completes(added, lambda: names_in("/run/netns"))
        elif name == "dscp":
            completes(added, lambda: list(units.DSCP_NAMES))


def parser(given: Iterable[str] | None = None) -> Parser:
    """given: the words of the command line; an action that is not among them needs no options. None: all get theirs"""
    made = Parser(prog="lowq-tc", description=ABOUT, epilog="lowq-tc ACTION --help shows its options. " + NOTES)
    made.add_version()
    actions = made.add_subparsers(prog=made.prog, dest="action", metavar="ACTION", title="actions", required=True)

    def add(name: str, about: str, nargs: str | int = 0, what: str = "", metavar: str = "DEV",
            words: Callable[[], list[str]] = lambda: names_in("/sys/class/net")) -> Parser:
        action: Parser = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=NOTES)
        if nargs:
            completes(action.add_argument("names", nargs=nargs, metavar=metavar, help=what or None), words)
        return action

    def give(action: Parser, title: str, names: Iterable[str], aqm: tuple[str, ...] = ()) -> None:
        if given is None or action.prog.removeprefix(made.prog + " ") in given:
            add_options(action, title, names, aqm)

    for profile in PROFILES.values():
        action = add(profile.name, profile.about, 1, "the device whose outgoing queue is set")
        give(action, f"of {profile.name}", profile.options, profile.aqm)
        give(action, "of every profile", FRAME)
        if profile.name in PRINTED:
            give(action, "for other switches", [name for name in (*PRINT, "dscp") if name not in profile.options])
    give(add("show", "what is set, and its counters", "*", "default: all that were set"), "of show", ["check", "prometheus"])
    give(add("reset", "put back what was there before", "?"), "of reset", ["all"])
    give(add("apply", "what files say, and nothing else", "*", "lowq.toml, or a folder; default: /etc/lowq", "FILE",
             lambda: []), "of apply", ["diff"])
    add("save", "write what is set now into a file", "?", "default: /etc/lowq/lowq.toml", "FILE", lambda: [])
    add("enable", "set at boot what /etc/lowq says")
    add("disable", "set nothing at boot")
    give(add("cgroup", "a control for the connections that a cgroup's processes make; cgroup show, cgroup reset", "+",
             "a control and a cgroup of version 2 (its path, below /sys/fs/cgroup by default); show or reset, and cgroups",
             "WORD", lambda: [*dict.fromkeys([*CONTROLS, *controls_there()]), "show", "reset"]),
         "of cgroup", ["route", "check", "all"])
    add("export", "files for what manages the network, so that it keeps what is set", 1, f"one of {', '.join(MANAGERS)};"
        " prints a script for sh that writes them", "MANAGER", lambda: list(MANAGERS))
    host = add("host", "what a control needs of its host; host show, host reset", 1, f"{', '.join(CONTROLS)}, or any other"
               " that the kernel has; show, what is set; reset, put back what was there before", "CONTROL",
               lambda: [*dict.fromkeys([*CONTROLS, *controls_there()]), "show", "reset"])
    give(host, "of every control", HOST)
    give(host, "of single controls, as lowq-tc list says",
         dict.fromkeys(option for control in CONTROLS.values() for option in control.options))
    give(host, "of host show", ["check"])
    add("exact", "red and gred of a queue of lowq-tc's look at the queue itself, as --exact does", "+")
    add("list", "profiles, controls, and their options")
    add_options(made, "of every action", GENERAL)
    for action in actions.choices.values():
        give(action, "of every action", GENERAL)
    return made


@lru_cache
def parser_for(given: frozenset[str]) -> Parser:
    """Files have many lines with the same actions"""
    return parser(given)


def parse(argv: list[str]) -> Options:
    if asked_by_bash():
        parser().complete()
    made = parser_for(frozenset(argv) & ACTIONS)
    given, rest = made.parse_known_args(argv)
    if rest:
        word = rest[0].partition("=")[0]
        if word.removeprefix("--") in OPTIONS:
            raise Refused(f"{word} does not go with '{given.action}'")
        raise Refused(f"unknown option '{word}'" if word.startswith("-") else f"{given.action}: what is '{rest[0]}'?")
    words = vars(given)
    names = words.pop("names", [])
    found = Options(words.pop("action"), [names] if isinstance(names, str) else names)
    if "pid" in words:  # its namespace, by the path of it
        if "netns" in words:
            raise Refused("--netns or --pid, not both")
        words["netns"] = f"/proc/{units.parse_number('--pid', words.pop('pid'))}/ns/net"
    for dest, text in words.items():
        name = dest.replace("_", "-")
        if not text:
            raise Refused(f"--{name} needs a value")
        found.given[name] = "" if text is True else text
        found.values[name] = text if text is True else OPTIONS[name].parse("--" + name, text)
    return found
