#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""ci_scripts - prints the shell in a file for CI, a GitHub workflow or a .gitlab-ci.yml, for shellcheck

usage: devel/ci_scripts.py FILE

Exit status 1 if there is none: the file is not what its name says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml


def scripts(document: dict[str, Any]) -> Iterator[str]:
    """One per step in GitHub's; one per job, with what comes before, in GitLab's. The runner stops at a command that
    fails"""
    for job in (document.get("jobs") or document).values():
        if not isinstance(job, dict):
            continue
        for step in job.get("steps", []):
            if "run" in step:
                yield re.sub(r"\$\{\{.*?\}\}", "expression", step["run"])
        if "script" in job:
            yield "\n".join((*job.get("before_script", []), *job["script"]))


def main(name: str) -> int:
    found = list(scripts(yaml.safe_load(Path(name).read_text(encoding="utf-8"))))
    print("set -e", *found, sep="\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
