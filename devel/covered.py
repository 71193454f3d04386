#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""covered - which tests run a line of the sources, as make coverage has found it.

devel/mutate tries faults against them, and devel/which names them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable

from state import git, ROOT

FILE = os.path.join(ROOT, "out", "coverage", "tests.json")


class Coverage:
    """Which tests run each line"""

    def __init__(self, program: str, file: str = FILE) -> None:
        self.program = program
        if not os.path.exists(file):
            sys.exit(f"{program}: there is no {os.path.relpath(file, ROOT)}: make coverage first")
        with open(file, encoding="utf-8") as opened:
            table = json.load(opened)
        self.seconds: dict[str, float] = table["seconds"]
        self.lines: dict[str, dict[str, list[str]]] = table["lines"]
        self.sums: dict[str, str] = table["sha256"]

    def tests(self, file: str, number: int) -> list[str]:
        """Those that run a line, the shortest first"""
        lines = self.lines[file]
        # a statement of several lines counts at one of them
        near = next((n for n in (number, number - 1, number + 1) if str(n) in lines), number)
        return sorted(lines.get(str(near), []), key=lambda test: self.seconds[test])

    def is_now(self, file: str) -> bool:
        """Is the file as it was when the tests ran?"""
        with open(os.path.join(ROOT, file), "rb") as opened:
            return hashlib.sha256(opened.read()).hexdigest() == self.sums[file]

    def text_then(self, file: str) -> str:
        """The file as it was then, from git"""
        for commit in git("log", "--format=%H", "--", file).split():
            try:
                text = git("show", f"{commit}:{file}")
            except subprocess.CalledProcessError:
                continue  # a commit that removed it
            if hashlib.sha256(text.encode()).hexdigest() == self.sums[file]:
                return text
        return sys.exit(f"{self.program}: {file} has changed since make coverage, and no commit has it as it was")

    def numbers_then(self, file: str) -> Callable[[int], list[int]]:
        """Of a line's number now, those that it had then: more than one where lines were replaced"""
        if self.is_now(file):
            return lambda number: [number]
        with open(os.path.join(ROOT, file), encoding="utf-8") as opened:
            now = opened.read().splitlines()
        blocks = difflib.SequenceMatcher(None, self.text_then(file).splitlines(), now, autojunk=False).get_opcodes()

        def then(number: int) -> list[int]:
            for kind, first, last, start, end in blocks:
                if start < number <= end:
                    if kind == "equal":
                        return [first + number - start]
                    # what is new is run by those that run what it replaces, or what is around it
                    return list(range(first + 1, last + 1)) or [first, first + 1]
            return []
        return then
