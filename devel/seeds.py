#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""seeds - which kselftests failed with some seed, from what devel/test --seeds has kept.

In out/seeds, FLAVOUR-SCRIPT-SEED.log is a run's output, and FLAVOUR-SCRIPT-SEED.done holds the
state of the sources that it was run on (state.py). What is published, docs/seeds.csv, counts like
these: another machine goes on from there. The debug flavour runs in real time: there a seed is the
number of the run."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True  # the tree stays clean
sys.path.insert(0, str(Path(__file__).resolve().parent))

from state import Tree, git  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "out" / "seeds"
PAGE = ROOT / "docs" / "seeds.md"
RECORD = ROOT / "docs" / "seeds.csv"
# flavour: heading, what is asked there, and the rest of the command
SECTIONS = {
    "virtual": ("Virtual time", """\
A run's seed decides all that is random: which packets are lost, when flows begin, what a hash makes of an
address.""", "--publish"),
    "debug": ("Debug flavour, on two cores with two busy processes beside", """\
Time is real, and the host decides when it passes. A seed is the number of the run.""", "--busy 2 debug --publish"),
}


class Run(NamedTuple):
    """A script with a seed"""
    flavour: str  # of the lab: virtual or debug
    script: str
    seed: int
    state: str  # of the sources that it was run on
    tests: int  # results, those skipped not counted
    failed: str  # the tests that failed, a space between them


def kept(flavour: str, script: str, seed: int, state: str) -> Run | None:
    path = KEPT / f"{flavour}-{script.removesuffix('.sh')}-{seed}"
    done = path.with_suffix(".done")
    if not done.exists() or done.read_text().strip() != state:
        return None
    tests, failed = 0, []
    for line in path.with_suffix(".log").read_text(errors="replace").splitlines():
        result = re.match(r"(?:# )*(not )?ok (?:\d+ )?([a-z][\w-]*)\b(?!:)(.*)", line)
        if not result or "# SKIP" in result[3]:
            continue
        tests += 1
        if result[1]:
            failed.append(result[2])
    return Run(flavour, script, seed, state, tests, " ".join(failed))


def published() -> list[Run]:
    if not RECORD.exists():
        return []
    with RECORD.open(newline="") as file:
        return [Run(row["flavour"], row["script"], int(row["seed"]), row["state"], int(row["tests"]), row["failed"])
                for row in csv.DictReader(file)]


def known(flavour: str, states: dict[str, str], seeds: int) -> dict[tuple[int, str], Run]:
    """The runs on these states of the sources, each script's, by seed and script"""
    runs = {(run.seed, run.script): run for run in published()
            if run.flavour == flavour and run.script in states and run.state == states[run.script]}
    for script, state in states.items():
        for seed in range(1, seeds + 1):
            run = kept(flavour, script, seed, state)
            if run:
                runs[seed, script] = run
    return runs


def table(runs: list[Run], scripts: list[str]) -> str:
    lines = ["| script | seeds | results | failures |", "|---|---:|---:|---|"]
    for script in scripts:
        own = [run for run in runs if run.script == script]
        with_seeds: dict[str, list[str]] = {}
        for run in own:
            for test in run.failed.split():
                with_seeds.setdefault(test, []).append(str(run.seed))
        failed = "; ".join(f"{test}: seed {', '.join(seeds)}" for test, seeds in sorted(with_seeds.items()))
        lines.append(f"| {script} | {len(own)} | {sum(run.tests for run in own)} | {failed or 'none'} |")
    failures = sum(len(run.failed.split()) for run in runs)
    lines.append(f"| **all** | {len(runs)} | {sum(run.tests for run in runs)} | **{failures}** |")
    return "\n".join(lines)


def section(flavour: str, runs: list[Run]) -> str:
    heading, text, command = SECTIONS[flavour]
    seeds = max(run.seed for run in runs)
    return f"""\
## {heading}

{text} Command: `devel/test --seeds {seeds} {command}`
Published on commit {git("rev-parse", "--short=12", "HEAD").strip()}.

{table(runs, sorted({run.script for run in runs}))}
"""


def publish(runs: list[Run]) -> None:
    """Writes these runs, all of one flavour, and keeps what is published of the other"""
    flavour = runs[0].flavour
    others = [run for run in published() if run.flavour != flavour]
    parts = re.split(r"(?m)^(?=## )", PAGE.read_text())
    sections = {name: "".join(part for part in parts if part.startswith(f"## {SECTIONS[name][0]}\n"))
                for name in SECTIONS}
    sections[flavour] = section(flavour, runs)
    PAGE.write_text("""# Seeds: does a test depend on chance?

**Question.** Which kselftests fail with some seed, or in some run?

Each run is in [seeds.csv](seeds.csv). What ran before on the same sources is not run again. A result is a test with
one seed; tests that were skipped are not counted. Goal: no failure.
""" + "".join(f"\n{text.strip()}\n" for text in sections.values() if text))
    with RECORD.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Run._fields)
        writer.writerows(sorted(runs + others))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="seeds.py", description="Prints which kselftests failed with which of the seeds 1 to N.")
    parser.add_argument("seeds", type=int, metavar="N")
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help="such as prague.sh")
    parser.add_argument("--flavour", choices=SECTIONS, default="virtual", help="of the lab (default: virtual)")
    parser.add_argument("--left", action="store_true", help="print what is still to be run: SEED SCRIPT STATE")
    parser.add_argument("--publish", action="store_true",
                        help=f"write {PAGE.relative_to(ROOT)} and {RECORD.relative_to(ROOT)}")
    args = parser.parse_args()
    scripts = sorted(args.scripts)
    tree = Tree()
    states = {script: tree.state(script) for script in scripts}
    runs = known(args.flavour, states, args.seeds)
    wanted = [(seed, script) for seed in range(1, args.seeds + 1) for script in args.scripts]
    left = [key for key in wanted if key not in runs]
    if args.left:
        for seed, script in left:
            print(seed, script, states[script])
        return 0
    asked = [runs[key] for key in wanted if key in runs]
    print(table(asked, scripts))
    if args.publish and asked:
        publish(asked)
    return 1 if left or any(run.failed for run in asked) else 0


if __name__ == "__main__":
    sys.exit(main())
