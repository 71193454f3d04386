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


class Parser(argparse.ArgumentParser):
    def __init__(self, **words: Any):
        super().__init__(allow_abbrev=False, **words)

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the program says what it says of a closed pipe
        super().exit(status, message)

    def add_version(self) -> None:
        self.add_argument("--version", action="version", version=f"{self.prog} {version()}", help="print the version")

    def complete(self) -> None:
        """Ends the program with what may come next, if it is bash that asks"""
        if "_ARGCOMPLETE" in os.environ:
            import site
            from importlib import import_module

            site.main()  # the programs start without Debian's modules
            import_module("argcomplete").autocomplete(self, always_complete_options=False,
                                                      default_completer=lambda **_: [])


def completes(action: argparse.Action, words: Callable[[], list[str]]) -> None:
    action.completer = lambda **_: words()  # type: ignore[attr-defined]
