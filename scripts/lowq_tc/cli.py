# SPDX-License-Identifier: GPL-2.0
"""The program: exit status and errors.

Exit status: 0 done, 1 a command failed and was rolled back or something is left as it was
found, 2 refused with nothing changed, 3 show --check found something that differs, 4 apply
changed something.
"""

from __future__ import annotations

import sys
from typing import Mapping

from lowq_common import streams
from lowq_common.controls import CONTROLS, Control
from lowq_common.errors import Failed, Refused

from .command_line import complain, parse
from .options import FRAME, HOST, Options
from .profiles import PROFILES
from .profiles.base import Profile


def do_list(options: Options) -> int:
    tables: list[tuple[str, str, Mapping[str, Profile | Control], tuple[str, ...]]] = [
        ("profile", "profiles", PROFILES, FRAME), ("control", 'controls, for "lowq-tc host"', CONTROLS, HOST)]
    if options.has("json"):
        import json

        print(json.dumps({kind + "s": [{kind: one.name, "about": one.about, "options": [*general, *one.options]}
                                       for one in table.values()] for kind, _, table, general in tables}, indent=2))
        return 0
    for _, title, table, _ in tables:
        print(title)
        for one in table.values():
            print(f"  {one.name:<12} {one.about}")
            if one.options:
                print(f"  {'':<12}   " + " ".join("--" + option for option in one.options))
    return 0


def dispatch(argv: list[str]) -> int:
    options = parse(argv)
    if options.action == "list":
        return do_list(options)
    from . import actions  # help and completion need none of it

    return actions.ACTIONS.get(options.action, actions.do_profile)(options)


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
