# SPDX-License-Identifier: GPL-2.0
"""run - runs scenarios in the lab, in parallel, and reports on them.

See bench/run --help and man/lowq-bench.1.
"""
from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, NoReturn

RUNNER = Path(__file__).resolve().parent
ROOT = RUNNER.parents[1]
BENCH, LAB, ONE, REPORT = ROOT / "bench", ROOT / "lab/lab", RUNNER / "one", ROOT / "lab/report"
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "scripts")]
sys.dont_write_bytecode = True

from lowq_lab.describe import describe, words  # noqa: E402
from lowq_lab.scenario import lines_of, load, Scenario  # noqa: E402
from lowq_lab.source import check, where  # noqa: E402
from lowq_tc.profiles import PROFILES  # noqa: E402
from rows import file_of, options, project_rows, Row, row_of, scenario_names, version  # noqa: E402

# Where the project is installed, programs are built, and results go to the current directory
CLONE = (BENCH / "results").is_dir()
HERE, ME = (ROOT, "bench/run") if CLONE else (Path.cwd(), "lowq-bench")
PACKAGES = {"bench-roce": r"roce-|papers-dcqcn|validate-pfc$", "bench-app": "app-page$"}
USAGE = """%(prog)s [OPTIONS] SCENARIO...
       %(prog)s --all | --demo | --list
       bench/check [--seeds N] [--tolerance SHARE] [--out DIR] [SCENARIO...]: see bench/check --help
       bench/publish: see bench/publish --help"""
TEXT = """Runs scenarios of bench/scenarios/, groups of them (papers: all papers-*), or files of your own (./mine.py), each
combination of variant, row and seed separately, and prints a table. A run that has succeeded is not repeated, so an
interrupted sweep continues where it stopped, unless kernel, compiler, sources or scenario have changed since."""


def die(why: object) -> NoReturn:
    print(f"bench: {why}", file=sys.stderr)
    sys.exit(2)


def cannot_write(place: Path) -> NoReturn:
    print(f"bench: cannot write to {place}", file=sys.stderr)
    sys.exit(1)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = re.match("unrecognized arguments: ([^ ]+)", message)
        missing = re.match("argument (--[a-z]+): expected one argument", message)
        die(f"unknown option '{unknown[1]}' (see --help)" if unknown else
            f"{missing[1]} needs a value" if missing else message)


# --- what is asked for -----------------------------------------------------------------------------------------------


def own_row(text: str, rows: dict[str, Row]) -> str:
    """A row of the command line, in its usual form"""
    if not (re.fullmatch(r" *\w+ *\| *[\w-]+( [^|]*)?(\| *[^ |][^|]*){2}", text, re.ASCII) and text.isprintable()):
        shown_text = "".join(letter if letter.isprintable() else " " for letter in text)
        die(f"--row takes 'NAME | CONTROL | QUEUE | LABEL', not '{shown_text}'")
    row = row_of(text)
    for word in row.parameters:
        if not re.fullmatch("[A-Za-z0-9_]+=.+", word):
            die(f"--row {row.name}: a control's parameter is NAME=VALUE, not '{word}'")
    if row.name in rows:
        die(f"--row: there is a row '{row.name}' already")
    if row.queue.split()[0] not in PROFILES:
        die(f"--row {row.name}: no queue '{row.queue.split()[0]}' (see lowq-tc list)")
    rows[row.name] = row
    return " | ".join((row.name, " ".join((row.control, *row.parameters)), row.queue, row.label))


def kernel(text: str) -> str:
    """A kernel as the lab takes it anywhere"""
    if re.fullmatch(r"[0-9]+\.[0-9]+", text):
        return text
    return existing(text, f"no kernel '{text}': a series such as 6.12, or the path of a kernel tree")


def existing(text: str, why: str) -> str:
    try:
        return str(Path(text).resolve(strict=True))
    except OSError:
        die(why)


def own_module(text: str) -> str:
    place = Path(existing(text, f"--module: no Kbuild in '{text}'"))
    if not (place / "Kbuild").is_file() and not (place / "Makefile").is_file():
        die(f"--module: no Kbuild in '{text}'")
    return str(place)


def checked_file(text: str, rows: dict[str, Row]) -> str:
    """A scenario that is a file; of the project's its name"""
    file = Path(existing(text, f"no file '{text}'"))
    if not os.access(file, os.R_OK) or not file.is_file():
        die(f"no file '{text}'")
    if file.parent == BENCH / "scenarios":
        return file.stem
    if not re.fullmatch(r"[A-Za-z0-9_.-]+\.py", file.name) or re.search("[\0-\x1f]", str(file)):
        die(f"a scenario's file has a name like mine.py, not '{file}'")
    scenario = loaded(file)
    try:
        wrong = check(scenario, file)
    except Exception as error:  # pylint: disable=broad-exception-caught
        wrong = where(file, error)
    if wrong:
        die(wrong)
    for row in scenario.rows:
        if row not in rows:
            die(f"{file}: rows: no row '{row}' in bench/rows, nor by --row")
    return str(file)


def loaded(file: Path) -> Scenario:
    try:
        return load(file)
    except Exception as error:  # pylint: disable=broad-exception-caught
        die(where(file, error))


def listing() -> None:
    print("scenarios:")
    group = ""
    for name in scenario_names():
        if name.split("-")[0] != group:
            group = name.split("-")[0]
            print(f" {group}:")
        print(f"  {name:14} {lines_of(loaded(file_of(name)).title)}")
    print("rows:")
    for row in project_rows().values():
        print(f"  {row.name:13} {row.label}")


def asked(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog=ME, usage=USAGE, description=TEXT, allow_abbrev=False, add_help=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)

    def option(name: str, metavar: str, text: str, **more: Any) -> None:
        kind: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        parser.add_argument(f"--{name}", help=text, **kind, **more)

    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=argparse.SUPPRESS)
    option("cc", "LIST", "rows of bench/rows, separated by commas (default: the scenario's)", default="")
    option("row", "ROW", "one more row, as bench/rows has them: 'NAME | CONTROL | QUEUE | LABEL'; several times",
           action="append", default=[])
    option("module", "DIR", "build DIR's kernel modules, too, such as tcp_CONTROL; several times",
           action="append", default=[])
    option("kernel", "K", "another kernel of the lab: 6.12, 6.1, or the path of a kernel tree")
    option("config", "FILE", "more options for the kernels' configuration")
    option("against", "K", "compare with this kernel: each row runs on both, the second time as ROW@against")
    option("variant", "TEXT", "only variants that contain TEXT, such as flows=8", default="")
    option("exact", "", "with --variant: only the variant that is TEXT")
    option("seeds", "N", "seeds 1 to N (default 1, of the demo 5)")
    option("seed", "K", "only seed K")
    option("jobs", "N", "runs at once on each machine (default: one per core)", default=str(os.cpu_count()))
    option("sshlogin", "LIST", "distribute over machines, with GNU parallel's syntax: the project and its packages "
           "must be there at the same path; results come back. A run whose compiler or sources differ from this "
           "machine's is refused")
    option("task", "N", "make only the Nth run, and no report: for batch systems")
    option("tar", "", "with --task: the result goes to standard output as a tar archive, to be unpacked in --out's "
           "directory, not to files here")
    option("out", "DIR", "results (default out/bench/SCENARIO)")
    option("csv", "FILE", "a line for each run, as CSV, instead of the table (-: to standard output)")
    option("expect", "FILE", "exit with 1 if a value is not within the bounds that FILE states: lines METRIC ROW LEAST "
           "MOST [SETTING=VALUE]...")
    option("fresh", "", "delete earlier results first")
    option("dry-run", "", "print the runs and do nothing")
    option("all", "", "run every scenario")
    option("demo", "", "the demo: both halves, data centre and Internet, into out/demo with one page")
    option("readme", "", "with --demo: put its tables into README.md, and its picture into docs/demo.svg")
    option("list", "", "scenarios, by group, and rows")
    option("version", "", "print the version")
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    args = parser.parse_intermixed_args(argv)
    if args.list:
        listing()
        sys.exit()
    if args.version:
        print("lowq-bench", version())
        sys.exit()
    check_options(args)
    check_scenarios(args, parser)
    return args


def check_options(args: argparse.Namespace) -> None:
    args.rows = project_rows()
    args.row = [own_row(text, args.rows) for text in args.row]
    args.module = [own_module(text) for text in args.module]
    args.kernel, args.against = (kernel(text) if text else "" for text in (args.kernel, args.against))
    args.config = existing(args.config, f"--config: cannot read '{args.config}'") if args.config else ""
    args.cc = [row for row in args.cc.split(",") if row]
    args.all_seeds = args.seeds or ("5" if args.demo else "1")
    for name in ("seeds", "seed", "task", "jobs"):
        value = args.all_seeds if name == "seeds" else getattr(args, name)
        if value is not None and not re.fullmatch("[1-9][0-9]*", value):
            die(f"--{name} takes a number of 1 or more, not '{value}'")
    if args.task and (args.demo or args.all or args.sshlogin or args.expect):
        die("--task makes one run here: without --demo, --all, --expect and --sshlogin")
    if args.readme and not (args.demo and CLONE):
        die("--readme goes with --demo, in a checkout")
    if args.tar and not args.task:
        die("--tar goes with --task")


def check_scenarios(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    names = scenario_names()
    args.fresh |= args.demo
    every = args.scenario + (["demo", "demo-internet"] if args.demo else [])
    if args.all:
        every = [name for name in names if not name.startswith("demo")]
    if not every:
        parser.print_help(sys.stderr)
        sys.exit(2)
    args.scenario = []
    for name in every:  # the name of a group stands for its scenarios
        group = [one for one in names if one.startswith(f"{name}-")]
        args.scenario += group if group and name not in names else [name]
    if (args.out or args.task or args.csv or args.expect) and len(args.scenario) != 1:
        die("--out, --csv, --expect and --task go with one scenario")
    if args.expect and subprocess.run([REPORT, "--expect", args.expect], check=False).returncode:
        sys.exit(2)
    for row in args.cc:
        if row not in args.rows:
            die(f"no row '{row}' in bench/rows (see --list); --row '{row} | CONTROL | QUEUE | LABEL' adds one")
    for number, name in enumerate(args.scenario):
        if "/" in name or name.endswith(".py"):
            args.scenario[number] = checked_file(name, args.rows)
        elif name not in names:
            die(f"no scenario '{name}' (see --list)")


# --- runs ------------------------------------------------------------------------------------------------------------


def lab_state(args: argparse.Namespace, word: str) -> str:
    """needs, build or cache, as lab/runner/run has them"""
    return subprocess.run([RUNNER / "run", "--state", word, args.config, args.kernel, *options(module=args.module)],
                          check=False, text=True, stdout=subprocess.PIPE).stdout.strip()


def packages(args: argparse.Namespace) -> None:
    """Installs or names what these scenarios need, before anything is compiled"""
    targets = ["bench", *lab_state(args, "needs").split()]
    targets += [target for target, which in PACKAGES.items() if any(re.match(which, name) for name in args.scenario)]
    done = subprocess.run([ROOT / "scripts/packages", *targets], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def shown(path: str) -> str:
    """As seen from the project, where the report's command is to be run"""
    return path.removeprefix(f"{HERE}/")


def command_of(args: argparse.Namespace, scenario: str) -> str:
    """The command that repeats these runs; the report adds --seeds"""
    parts = options(cc=",".join(args.cc))
    parts += ["--variant", args.variant] if args.variant or args.exact else []
    parts += ["--exact"] if args.exact else []
    parts += map(shown, options(seed=args.seed, **lab_words(args), row=args.row))
    if not args.demo:
        return shlex.join([ME, shown(scenario), *parts])
    if not parts and args.all_seeds == "5" and CLONE:
        return "make demo"
    return shlex.join([ME, "--demo", *parts, *(["--seeds", "1"] if args.all_seeds == "1" and not args.seed else [])])


def lab_words(args: argparse.Namespace) -> dict[str, str | list[str]]:
    return {name: getattr(args, name) for name in ("module", "kernel", "config", "against")}


def only_one(place: Path) -> int:
    """Nobody else's runs go there until this and what it starts has ended, which has the file that is returned open"""
    try:
        place.mkdir(parents=True, exist_ok=True)
        held = os.open(place, os.O_RDONLY)
    except OSError:
        cannot_write(place)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"bench: waiting for another bench/run, which writes to {place}", file=sys.stderr, flush=True)
        fcntl.flock(held, fcntl.LOCK_EX)
    return held


def rows_of(args: argparse.Namespace, scenario: Scenario) -> list[str]:
    own = [row_of(line).name for line in args.row]
    rows = list(dict.fromkeys([*(args.cc or scenario.rows), *own]))
    return [name for row in rows for name in (row, *([f"{row}@against"] if args.against else []))]


def runs_of(args: argparse.Namespace, scenario: Scenario, rows: list[str]) -> Iterator[tuple[str, str, str]]:
    """Variant, row and seed of each"""
    seeds = [args.seed] if args.seed else [str(seed) for seed in range(1, int(args.all_seeds) + 1)]
    for variant in map(words, scenario.variants):
        if variant == args.variant if args.exact else args.variant in variant:
            yield from ((variant, row, seed) for row in rows for seed in seeds)


class Sweep:
    """The runs of a scenario"""

    def __init__(self, args: argparse.Namespace, name: str) -> None:
        self.args, self.name, file = args, name, file_of(name)
        self.stem, self.scenario = file.stem, loaded(file)
        self.out = HERE / "out" / ("demo" if args.demo else "bench") / self.stem
        if args.out:
            self.out = Path(args.out).absolute()
        self.rows = rows_of(args, self.scenario)
        self.runs = list(runs_of(args, self.scenario, self.rows))
        if not self.runs:
            die(f"no variant of {self.stem} contains '{args.variant}'")
        if int(args.task or 1) > len(self.runs):
            die(f"--task {args.task}: there are {len(self.runs)} runs")
        needed = [str(ROOT / place) for place in self.scenario.modules]
        self.one = options(**lab_words(args) | {"module": args.module + needed}, row=args.row)
        self.made = ""

    def lines(self) -> str:
        """A line for each run: OUT, SCENARIO, VARIANT, ROW, SEED"""
        return "".join("\t".join((str(self.out), self.name, *run)) + "\n" for run in self.runs)

    def find_made(self) -> None:
        done = subprocess.run([ONE, *self.one, "--made", self.name], check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.returncode)
        self.made = done.stdout.strip()

    def task(self) -> NoReturn:
        run = self.runs[int(self.args.task) - 1]
        tar = ["--tar"] if self.args.tar else []
        os.execv(ONE, [str(ONE), *self.one, *tar, str(self.out), self.name, *run, self.made])

    def describe(self) -> None:
        """scenario.json, for the report"""
        asked_for = describe(self.scenario, self.stem, command_of(self.args, self.name), rows=self.rows,
                             variants=list(dict.fromkeys(variant for variant, _, _ in self.runs)))
        made = {key: value for key, value in json.loads(self.made).items() if key != "scenario"}
        runs = ["/".join((variant or "all", row, seed)) for variant, row, seed in self.runs]
        try:
            (self.out / "scenario.json").write_text(json.dumps(asked_for | {"runs": runs} | made), encoding="utf-8")
        except OSError:
            (self.out / "scenario.json").unlink(missing_ok=True)
            if not any(self.out.iterdir()):
                self.out.rmdir()
            cannot_write(self.out)

    def parallel(self, held: int) -> bool:
        """Whether all runs have succeeded. What remains when this is killed, parallel kills, which gives its words to a
        shell"""
        lines, far = self.lines(), ["--tar"] if self.args.sshlogin else []
        if far:  # what is here is not made again
            lines = subprocess.run([ONE, *self.one, "--missing", self.made], input=lines, text=True, check=True,
                                   stdout=subprocess.PIPE).stdout
        command = ["setpriv", "--pdeathsig", "TERM", "parallel", "--will-cite",
                   *options(sshlogin=self.args.sshlogin, jobs=self.args.jobs),
                   *(["--bar"] if sys.stderr.isatty() else []), "--colsep", "\t", str(ONE), *far, "--count",
                   f"{{#}}/{len(self.runs)}", *map(shlex.quote, self.one), "{1}", "{2}", "{3}", "{4}", "{5}",
                   shlex.quote(self.made)]
        runs = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE if far else None, pass_fds=[held])
        assert runs.stdin
        # the others come back as one archive after another
        archive = subprocess.Popen(["tar", "-xiC", self.out], stdin=runs.stdout) if far else None
        runs.stdin.write(lines.encode())
        runs.stdin.close()
        unpacked = archive.wait() == 0 if archive else True
        return runs.wait() == 0 and unpacked

    def report(self) -> bool:
        csv = self.args.csv
        page = self.out / "index.html"
        given = options(format="csv" if csv else "", expect=self.args.expect, html=str(page))
        command = [str(REPORT), *given, str(self.out)]
        sys.stdout.flush()
        try:
            with open(csv, "w", encoding="utf-8") if csv and csv != "-" else os.fdopen(os.dup(1), "w") as to:
                good = subprocess.run(command, check=False, stdout=to).returncode == 0
        except OSError as error:
            die(f"--csv: {csv}: {error.strerror}")
        if not csv and page.exists():
            print(f"plots: {page}", flush=True)
        return good

    def run(self) -> bool:
        if self.args.dry_run:
            for run in self.runs[int(self.args.task or 1) - 1:int(self.args.task or len(self.runs))]:
                print("\t".join((self.name, *run)))
            return True
        self.find_made()
        if self.args.task:
            self.task()
        held = only_one(self.out)
        if self.args.fresh:
            for left in self.out.iterdir():
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        self.describe()
        print(f"bench: {self.stem}: {len(self.runs)} runs", file=sys.stderr, flush=True)
        good = self.parallel(held)
        # The report names the runs that failed. The demo is reported on when both halves have run.
        told = self.args.demo or self.report()
        os.close(held)
        if told and not good:
            print(f"bench: {self.stem}: runs failed; their logs are in {self.out}/runs", file=sys.stderr)
        return bool(good and told)


def announce(args: argparse.Namespace) -> None:
    """What the demo will do, and what it takes, before it begins"""
    seeds = 1 if args.seed else int(args.all_seeds)
    there = lab_state(args, "build")
    text = f"The lab's kernel is there: {there}." if there else f"""\
First it builds the lab's kernel, once: 160 MB of source to download, about 5 minutes on two
cores, 1.3 GB in {lab_state(args, 'cache')}, where 2.6 GB have to be free. Every number comes from that kernel: there
is none before.
The package lowq-lab-kernel (make deb) or "scripts/lab import FILE" saves this."""
    took = (40 * seeds // int(args.jobs) + 9) // 10 * 10
    print(f"""\
This demo compares congestion controls in two networks: CUBIC, BBR, DCTCP, LDCP and HPCC++ at 10 Gb/s, and
CUBIC, BBR and Prague at 100 Mb/s.
{text}
Then {12 * seeds} runs, {seeds} of each row, take about {took} seconds, and two tables like those in README.md are
printed. Except for packages, it writes only to the cache and to this folder. Ctrl-C stops it.
""", file=sys.stderr, flush=True)


def prepare(args: argparse.Namespace) -> None:
    packages(args)
    if CLONE and (status := subprocess.run(["make", "-s", "-C", ROOT / "selftests", "tools"], check=False).returncode):
        sys.exit(status)
    # what does not build is said once, before all runs
    kernels = [options(kernel=one, config=args.config) for one in (args.kernel, args.against) if one or one == args.kernel]
    builds = [["build", *one] for one in kernels]
    for command in (*builds, ["run", *options(module=args.module), *kernels[0], "--", "true"]):
        if subprocess.run([LAB, *command], check=False).returncode:
            sys.exit(1)


def demo_report(args: argparse.Namespace) -> bool:
    page = HERE / "out/demo/index.html"
    done = subprocess.run([REPORT, "--html", page, *(page.parent / name for name in args.scenario)], check=False)
    print(f"plots: {page}", flush=True)
    return done.returncode == 0


def outcome(args: argparse.Namespace, name: str) -> bool:
    """Whether all has succeeded that is asked for of a scenario, which does not stop the others"""
    try:
        return Sweep(args, name).run()
    except SystemExit as end:
        if len(args.scenario) == 1 and args.task:
            raise
        return not end.code


def main() -> int:
    for end in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(end, signal.SIG_DFL)
    # an ordinary user's lacks the last ones
    os.environ["PATH"] = f"{ROOT}/lab/tools/bin:{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin"
    args = asked(sys.argv[1:])
    if args.demo and not args.dry_run:
        announce(args)
    if not args.dry_run:
        prepare(args)
    held = only_one(HERE / "out/demo") if args.demo and not args.dry_run else -1
    good = all([outcome(args, name) for name in args.scenario])
    if held >= 0:
        good = demo_report(args) and good
        os.close(held)
        if good and args.readme:
            good = subprocess.run([BENCH / "publish", "--demo"], check=False).returncode == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
