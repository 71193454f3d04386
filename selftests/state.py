#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""state - a hash of the files that a test's result depends on.

What has been run on one state need not be run again: scripts/coverage, scripts/mutate and
selftests/run --seeds keep their results by it."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# Of every test in the lab: the modules, the lab, the tools for users, and what tests share
SHARED = (r"Kbuild|dkms\.conf|[^/]*\.c|(include|roce|tc|tools)/.*|scripts/(lab|lowq)[^/]*|scripts/(lab\.d|lowq_\w+)/.*|"
          r"selftests/(Makefile|config|settings|lib.*\.sh|tap\.sh|[^/]*\.(py|c)|(cdf|lab_warn)/.*)")
# Of some of them only
MORE = {"lowq_tc.sh": r"man/.*|debian/.*", "check.sh": r"man/.*", "instruments.sh": r"bench/[^/]*"}


def pattern(test: str) -> str:
    """Of the files that a test depends on: prague.sh; prague.sh FUNCTION; unit test_prague_model"""
    words = test.split()
    if words[0] == "unit":
        return rf"include/.*|tools/.*|selftests/unit/(Makefile|.*\.h|{words[1]}\.c)"
    return f"{SHARED}|selftests/{re.escape(words[0])}" + (f"|{MORE[words[0]]}" if words[0] in MORE else "")


def git(*words: str, given: str = "") -> str:
    return subprocess.run(("git", *words), cwd=ROOT, text=True, check=True, input=given,
                          stdout=subprocess.PIPE).stdout


class Tree:
    """The files of a commit; without one, those in the working directory"""

    def __init__(self, commit: str = "") -> None:
        self.blobs: dict[str, str] = {}
        if commit:
            for line in git("ls-tree", "-r", "-z", commit).split("\0")[:-1]:
                info, name = line.split("\t")
                self.blobs[name] = info.split()[2]
            return
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")[:-1]
        names = sorted({name for name in listed if os.path.isfile(os.path.join(ROOT, name))})
        hashes = git("hash-object", "--stdin-paths", given="".join(f"{name}\n" for name in names)).split()
        self.blobs = dict(zip(names, hashes, strict=True))

    def state(self, test: str) -> str:
        wanted = re.compile(pattern(test))
        lines = [f"{self.blobs[name]} {name}\n" for name in sorted(self.blobs) if wanted.fullmatch(name)]
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
