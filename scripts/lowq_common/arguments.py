# SPDX-License-Identifier: GPL-2.0
"""argparse as the programs here use it: an error is one line, and bash completes from the same
parser, by python3-argcomplete."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Callable, NoReturn

from .errors import Refused
from .version import version


class ShowVersion(argparse.Action):
    """As argparse's, but the file that has the version is read only now"""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(parser.prog, version())
        parser.exit()


class Parser(argparse.ArgumentParser):
    def __init__(self, **words: Any):
        super().__init__(allow_abbrev=False, **words)

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the program says what it says of a closed pipe
        super().exit(status, message)

    def add_version(self) -> None:
        self.add_argument("--version", action=ShowVersion, nargs=0, dest=argparse.SUPPRESS, default=argparse.SUPPRESS,
                          help="print the version")

    def complete(self) -> None:
        """Ends the program with what may come next, if it is bash that asks"""
        if asked_by_bash():
            import site
            from importlib import import_module

            site.main()  # the programs start without Debian's modules
            import_module("argcomplete").autocomplete(self, always_complete_options=False,
                                                      default_completer=lambda **_: [])


def asked_by_bash() -> bool:
    """for what may come next"""
    return "_ARGCOMPLETE" in os.environ


def completes(action: argparse.Action, words: Callable[[], list[str]]) -> None:
    action.completer = lambda **_: words()  # type: ignore[attr-defined]
