# SPDX-License-Identifier: GPL-2.0
"""Help, the list of profiles, and completion: all from the tables of options, profiles and
controls. Nothing here runs a program."""

from __future__ import annotations

from lowq_common.controls import CONTROLS
from lowq_common.light import Json
from lowq_common.names import controls_there, names_in

from .options import APPLY, FRAME, GENERAL, HOST, OPTIONS, PRINT, PRINTED, RESET, SHORT, SHOW
from .profiles import PROFILES

HELP = """\
lowq-tc - queue and marking on a device, and the host side, for a congestion control

  lowq-tc PROFILE DEV [--rate R] [options]   set the queue of DEV
  lowq-tc show [DEV] [--check]               what is set, and its counters
  lowq-tc reset DEV | --all                  put back what was there before
  lowq-tc apply [FILE]... [--diff]           what /etc/lowq's files say, and nothing else
  lowq-tc host CONTROL [--default] [--route PREFIX]... [--allow]
               [--initcwnd N] [--initrwnd N] [--quickack] [options of the control]
  lowq-tc host show [--check] | host reset
  lowq-tc exact DEV                          red and gred of a queue of lowq-tc's look at
                                             the queue itself, as --exact does
  lowq-tc list                               profiles, their options, controls

profiles
{profiles}

controls, for "lowq-tc host"
{controls}

for every profile
  --rate R          rate of the link: 10gbit, 40mbit. Default: what the device says
  --shape           limit the device to --rate with htb. Implied by --rate on a device
                    without a line of its own (veth, vlan ...); --no-shape turns it off
  --shape-burst Q   let this much through at once (default: one packet)
  --gso-segs N      let the device's own senders put at most N packets into one
  --print SYSTEM    set nothing; print it for port DEV of a switch with this system:
                    sonic, cumulus or mlnx, whose packets have at most --mtu N bytes,
                    and this --dscp D
  -n, --netns NS    DEV is in this network namespace
  --dry-run         print the commands that would run, and run nothing
  --json            plan, result or show as JSON
  --force           go on where what was there before cannot be put back exactly;
                    with reset: put it back although someone else changed it since
  --forget          with reset: drop the record and change nothing
  --diff            with apply and --dry-run: what is there, and what would be
  --check           with show: exit status 3 if anything differs from what was set
  --no-rehearsal    do not try the commands in a scratch namespace first
  -q, --quiet       say nothing but errors
  --version         print the version

A queue length Q is packets (65), bytes (97500b, 95kb) or time (50us).
Exit status: 0 done, 1 failed and rolled back, 2 refused, nothing changed,
3 show --check: something differs, 4 apply: something was changed.
"""


def table(rows: list[tuple[str, str, tuple[str, ...]]]) -> str:
    lines = []
    for name, about, options in rows:
        lines.append(f"  {name:<12} {about}")
        if options:
            lines.append(f"  {'':<12}   " + " ".join("--" + option for option in options))
    return "\n".join(lines)


def profiles_text() -> str:
    return table([(one.name, one.about, one.options) for one in PROFILES.values()])


def controls_text() -> str:
    return table([(one.name, one.about, one.options) for one in CONTROLS.values()])


def help_text() -> str:
    return HELP.format(profiles=profiles_text(), controls=controls_text()).rstrip("\n")


def listed() -> Json:
    return {
        "profiles": [
            {"profile": one.name, "about": one.about, "options": [*FRAME, *one.options]} for one in PROFILES.values()
        ],
        "controls": [
            {"control": one.name, "about": one.about, "options": [*HOST, *one.options]} for one in CONTROLS.values()
        ],
    }


def list_text() -> str:
    return f'profiles\n{profiles_text()}\ncontrols, for "lowq-tc host"\n{controls_text()}'


# --- completion -----------------------------------------------------------------------


def completions(words: list[str]) -> list[str]:
    """What may stand at the end of these words, the last of which may be begun only."""
    current = words[-1] if words else ""
    given: list[str] = []
    value_of = ""  # the option whose value comes next
    for word in words[:-1]:
        if value_of:
            value_of = ""
        elif word.startswith("-"):
            name = SHORT.get(word, word.removeprefix("--"))
            value_of = name if name in OPTIONS and OPTIONS[name].parse is not None else ""
        else:
            given.append(word)
    profile = PROFILES.get(given[0]) if given else None
    if value_of:
        choices = list(OPTIONS[value_of].choices)
        if value_of == "netns":
            choices = names_in("/run/netns")
        elif value_of == "aqm" and profile:
            choices = list(profile.aqm)
    elif current.startswith("-"):
        choices = ["--" + name for name in options_for(given)]
    elif not given:
        choices = [*PROFILES, "show", "reset", "apply", "host", "exact", "list"]
    elif given[0] == "host" and len(given) == 1:
        choices = [*dict.fromkeys([*CONTROLS, *controls_there()]), "show", "reset"]
    elif given[0] == "apply":
        choices = paths(current)
    elif (profile and len(given) == 1) or given[0] == "show" or (given[0] in ("reset", "exact") and len(given) == 1):
        choices = names_in("/sys/class/net")
    else:
        choices = ["--" + name for name in options_for(given)]
    return [choice for choice in choices if choice.startswith(current)]


def paths(begun: str) -> list[str]:
    folder = begun.rpartition("/")[0] + "/" if "/" in begun else ""
    return [folder + name for name in names_in(folder or ".") if name.endswith(".conf")]


def options_for(given: list[str]) -> list[str]:
    if not given:
        return list(GENERAL)
    if given[0] == "host":
        if given[1:] == ["reset"]:
            return ["forget", *GENERAL]
        if given[1:] == ["show"]:
            return [*SHOW, *GENERAL]
        control = CONTROLS.get(given[1]) if len(given) > 1 else None
        return [*HOST, *(control.options if control else ()), *GENERAL]
    if given[0] == "show":
        return [*SHOW, *GENERAL]
    if given[0] == "reset":
        return [*RESET, *GENERAL]
    if given[0] == "apply":
        return [*APPLY, *GENERAL]
    profile = PROFILES.get(given[0])
    more = PRINT if given[0] in PRINTED else ()
    return [*FRAME, *profile.options, *more, *GENERAL] if profile else list(GENERAL)
