#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""state - a hash of the files that a test's result depends on.

What has been run on one state need not be run again: devel/coverage, devel/mutate and
devel/test --seeds keep their results by it."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# What all tests source
LIBRARY = r"(?:lib|tap|net|control|observe)\.sh"
# Of every test in the lab: the modules, the lab, the tools for users, and what tests share
SHARED = (r"Kbuild|dkms\.conf|[^/]*\.c|(include|hpccpp|roce|tc|tools)/.*|scripts/(lab|lowq)[^/]*|"
          r"scripts/(lab\.d|lowq\w*)/.*|"
          rf"selftests/(Makefile|\w+/(Makefile|config|settings)|lib/(cdf/.*|kselftest\.mk|{LIBRARY}))")
# Of those tests that name it, or name one that names it
HELPER = re.compile(rf"selftests/(lib/(?!{LIBRARY}$)\w+\.(?:py|sh)|(?:modules|programs)/\w+\.(?:py|c|sh))")
# Of some of them only
MORE = {"lowq_tc.sh": r"man/.*|debian/.*", "check.sh": r"man/.*", "instruments.sh": r"bench/[^/]*",
        "lab.sh": r"selftests/programs/\w+/.*"}


def pattern(test: str) -> str:
    """Of the files that a test depends on: prague.sh; prague.sh FUNCTION; unit test_prague_model"""
    words = test.split()
    if words[0] == "unit":
        # test_fixedpoint_portable.c includes test_fixedpoint.c
        parts = words[1].split("_")
        files = "|".join("_".join(parts[:n]) for n in range(2, len(parts) + 1))
        return rf"(include|hpccpp|roce|tools)/.*|selftests/unit/(Makefile|.*\.h|({files})\.c)"
    return f"{SHARED}|{re.escape(path_of(words[0]))}" + (f"|{MORE[words[0]]}" if words[0] in MORE else "")


def path_of(script: str) -> str:
    """Of a script that is named alone: prague.sh is selftests/modules/prague.sh"""
    for room in ("modules", "programs"):
        if os.path.exists(os.path.join(ROOT, "selftests", room, script)):
            return f"selftests/{room}/{script}"
    raise FileNotFoundError(f"no script {script} in selftests/modules or selftests/programs")


def mentions(text: str, name: str) -> bool:
    """Does a program's text use the file name?"""
    stem, ending = os.path.splitext(os.path.basename(name))
    if ending == ".c":
        return bool(re.search(rf"\b{stem}\b", text))
    return bool(re.search(rf"\b{stem}\{ending}\b|^ *(?:from|import) {stem}\b", text, re.M))


def git(*words: str, given: str = "") -> str:
    return subprocess.run(("git", *words), cwd=ROOT, text=True, check=True, input=given,
                          stdout=subprocess.PIPE).stdout


class Tree:
    """The files of a commit; without one, those in the working directory"""

    def __init__(self, commit: str = "") -> None:
        self.blobs: dict[str, str] = {}
        self.commit = commit
        self.texts: dict[str, str] = {}
        if commit:
            for line in git("ls-tree", "-r", "-z", commit).split("\0")[:-1]:
                info, name = line.split("\t")
                self.blobs[name] = info.split()[2]
            return
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")[:-1]
        names = sorted({name for name in listed if os.path.isfile(os.path.join(ROOT, name))})
        hashes = git("hash-object", "--stdin-paths", given="".join(f"{name}\n" for name in names)).split()
        self.blobs = dict(zip(names, hashes, strict=True))

    def text(self, name: str) -> str:
        if name not in self.texts:
            self.texts[name] = (git("show", f"{self.commit}:{name}") if self.commit
                                else Path(ROOT, name).read_text())
        return self.texts[name]

    def helpers(self, script: str) -> set[str]:
        """Of a script: the programs and libraries that it or one of them names"""
        library = re.compile(rf"selftests/lib/{LIBRARY}")
        found: set[str] = set()
        names = [name for name in self.blobs if HELPER.fullmatch(name)]
        users = [name for name in self.blobs if name == path_of(script) or library.fullmatch(name)]
        while users:
            text = self.text(users.pop())
            new = [name for name in names if name not in found and mentions(text, name)]
            found.update(new)
            users += new
        return found

    def state(self, test: str) -> str:
        wanted, script = re.compile(pattern(test)), test.split()[0]
        helpers = self.helpers(script) if script != "unit" else set()
        lines = [f"{self.blobs[name]} {name}\n" for name in sorted(self.blobs)
                 if name in helpers or wanted.fullmatch(name)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="state.py", description="Prints a hash of the files that a test's result depends on.")
    parser.add_argument("tests", nargs="+", metavar="TEST", help='such as prague.sh or "unit test_ldcp_model"')
    tree = Tree()
    for test in parser.parse_args().tests:
        print(tree.state(test))
    return 0


if __name__ == "__main__":
    sys.exit(main())
