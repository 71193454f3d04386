#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""seeds - which kselftests failed with some seed, from what selftests/run --seeds has kept.

In out/seeds, virtual-SCRIPT-SEED.log is a run's output, and virtual-SCRIPT-SEED.done holds the
state of the sources that it was run on (state.py)."""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True  # the tree stays clean
sys.path.insert(0, str(Path(__file__).resolve().parent))

from state import Tree  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "out" / "seeds"
PAGE = ROOT / "docs" / "seeds.md"


class Runs(NamedTuple):
    script: str
    seeds: int  # that it was run with
    tests: int  # results in all of them, those skipped not counted
    failed: dict[str, list[int]]  # with which seeds each test failed


def runs_of(script: str, seeds: int, state: str) -> Runs:
    ran = tests = 0
    failed: dict[str, list[int]] = collections.defaultdict(list)
    for seed in range(1, seeds + 1):
        path = KEPT / f"virtual-{script.removesuffix('.sh')}-{seed}"
        done = path.with_suffix(".done")
        if not done.exists() or done.read_text().strip() != state:
            continue
        ran += 1
        for line in path.with_suffix(".log").read_text(errors="replace").splitlines():
            result = re.match(r"(?:# )*(not )?ok (?:\d+ )?([a-z][\w-]*)\b(?!:)(.*)", line)
            if not result or "# SKIP" in result[3]:
                continue
            tests += 1
            if result[1]:
                failed[result[2]].append(seed)
    return Runs(script, ran, tests, failed)


def table(all_runs: list[Runs]) -> str:
    lines = ["| script | seeds | results | failures |", "|---|---:|---:|---|"]
    for runs in all_runs:
        failed = "; ".join(f"{test}: seed {', '.join(map(str, seeds))}"
                           for test, seeds in sorted(runs.failed.items()))
        lines.append(f"| {runs.script} | {runs.seeds} | {runs.tests} | {failed or 'none'} |")
    failures = sum(len(seeds) for runs in all_runs for seeds in runs.failed.values())
    lines.append(f"| **all** | {min(runs.seeds for runs in all_runs)} | {sum(runs.tests for runs in all_runs)} | "
                 f"**{failures}** |")
    return "\n".join(lines)


def publish(rows: str, seeds: int) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, text=True, check=True,
                            stdout=subprocess.PIPE).stdout.strip()
    PAGE.write_text(f"""# Seeds: does a test depend on chance?

**Question.** Every kselftest runs in virtual time, where a run's seed decides all that is random: which packets
are lost, when flows begin, what a hash makes of an address. Which tests fail with some of {seeds} seeds?

Made by `selftests/run --seeds {seeds} --publish` on commit {commit}. What ran before on the same sources is not
run again. A result is a test with one seed; tests that were skipped are not counted. Goal: no failure.

{rows}
""")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="seeds.py", description="Prints which kselftests failed with which of the seeds 1 to N.")
    parser.add_argument("seeds", type=int, metavar="N")
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help="such as prague.sh")
    parser.add_argument("--publish", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    tree = Tree()
    all_runs = [runs_of(script, args.seeds, tree.state(script)) for script in sorted(args.scripts)]
    rows = table(all_runs)
    print(rows)
    if args.publish:
        publish(rows, args.seeds)
    return 1 if any(runs.failed or runs.seeds < args.seeds for runs in all_runs) else 0


if __name__ == "__main__":
    sys.exit(main())
