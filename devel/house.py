#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""house - checks what CONTRIBUTING.md and the layout promise: rooms, arrows, pages.

Prints one line per broken promise. Exit status 0 if all hold."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Rooms from the bottom to the top. A room's files name only files of rooms further down, and start only programs
# of these. lab/tools has the programs in C that selftests/lib uses; the rest of lab/ uses selftests/lib.
ORDER = ("include", "hpccpp", "roce", ".", "tc", "scripts", "lab/link", "lab/tools", "selftests/lib", "lab", "selftests/modules", "bench",
         "selftests", "devel")
PROGRAMS = {"lowq-tc": "scripts", "lowq-check": "scripts", "lowq-stat": "scripts", "flowgen": "lab/tools", "qdelay": "lab/tools",
            "rocegen": "lab/tools", "labnet": "lab/tools", "lowq-lab": "lab", "lowq-bench": "lab", "lowq-report": "lab"}
# They install what is here, or say what it needs
# The runner runs the project's experiments where it is not told of others: bench/ is its data
DATA = ("lab/runner/", "lab/report.d/results.py"), "bench"
INSTALLERS = ("scripts/install.sh", "scripts/packages", "scripts/dkms")
# Texts that name files above them for the reader, or for git
TEXTS = re.compile(r".*\.(md|[1-8]|rst|toml|svg|csv|html|css)|bench/results/.*|\.\w+.*|debian/.*|Makefile|Kbuild|dkms\.conf")


def files() -> list[str]:
    """All that is tracked, or would be after "git add"; without git what there is, except what is built"""
    done = subprocess.run(("git", "ls-files", "--cached", "--others", "--exclude-standard"), cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        return [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*"))
                if path.is_file() and "out" not in path.parts and "bin" not in path.parts]
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


FILES = files()


def text(name: str) -> str:
    return (ROOT / name).read_text(errors="replace")


def room(name: str) -> str:
    return next((one for one in ORDER if name.startswith(one + "/")), name.split("/")[0] if "/" in name else ".")


def sources() -> list[str]:
    return [name for name in FILES if re.fullmatch(r"([^/]+\.c|(include|hpccpp|roce)/[^/]+\.[ch])", name)]


def module(name: str) -> str:
    """The module that a .c file is part of"""
    return {"roce": "roce_rcm", "hpccpp": "tcp_hpccpp"}.get(room(name), Path(name).stem)


def included(name: str) -> list[str]:
    """The project's headers that a file includes itself"""
    found = []
    for header in re.findall(r'#include "([^"]+)"', text(name)):
        near = [f"{place}/{header}" for place in (room(name), "include")] + [header]
        found += [path for path in near if path in FILES][:1]
    return found


# --- the promises: each yields what breaks it ------------------------------------------------


def shared_headers() -> Iterator[str]:
    """include/ keeps what several modules share; *_trace.h stand there because the kernel looks there"""
    users: dict[str, set[str]] = {}
    for name in sources():
        if not name.endswith(".c"):
            continue
        seen: set[str] = set()
        todo = [name]
        while todo:
            for header in included(todo.pop()):
                if header not in seen:
                    seen.add(header)
                    todo.append(header)
        for header in seen:
            users.setdefault(header, set()).add(module(name))
    for header, modules in sorted(users.items()):
        # a model has its unit test as a second user
        if header.startswith("include/") and header.endswith("_impl.h") and len(modules) < 2:
            yield f"{header}: only {modules.pop()} uses it: it belongs to that module's folder"


def file_order() -> Iterator[str]:
    """A module of several files lists them in its header from the top to the bottom: each calls only those below it"""
    for folder, header, prefix in ("roce", "roce_rcm.h", "rcm_"), ("hpccpp", "hpccpp.h", "hpccpp_"):
        order = re.findall(r"(?m)^ \*\t(\w+\.c)\t", text(f"{folder}/{header}"))
        for name in sources():
            if name.startswith(folder + "/") and name.endswith(".c") and Path(name).name not in order:
                yield f"{name}: {folder}/{header} does not list it"
        owner = {}
        for name in order:
            for function in re.findall(rf"(?m)^(?!static)[\w ]+[ *]({prefix}\w+)\(", text(f"{folder}/{name}")):
                owner[function] = name
        for name in order:
            for function, other in owner.items():
                if order.index(other) < order.index(name) and re.search(rf"\b{function}\(", text(f"{folder}/{name}")):
                    yield f"{folder}/{name} calls {function}() of {other}, which stands above it"


def arrows() -> Iterator[str]:
    """Files name only files of rooms below their own"""
    # selftests/modules and lib go to a kernel tree, where the rooms beside them are not
    for name in FILES:
        if TEXTS.fullmatch(name) or room(name) not in ORDER or name in INSTALLERS or (ROOT / name).is_symlink():
            continue
        # comments may point anywhere, and so may a Python program's texts
        code = re.sub(r"(?m)^\s*(#(?!include)|//|\*|/\*).*$", "", text(name))
        before = "\"'/" if code.lstrip().startswith('"""') else "\"'/= \\s"
        for above in ORDER[ORDER.index(room(name)) + 1:]:
            if above == "." or name.startswith(DATA[0]) and above == DATA[1]:
                continue
            # a path in code: quoted, after a slash or a blank, with a file behind it
            for path in set(re.findall(rf"[{before}]({above}/[\w.-][\w./-]*)", code)):
                if room(path + "/") == above and \
                        any(known == path or known.startswith(path.rstrip("/") + "/") for known in FILES):
                    yield f"{name} names {path}: {room(name)} may not know {above}"
        for program in set(re.findall(r'[\[{(] ?"([a-z-]+)", ', code)) & set(PROGRAMS):
            if ORDER.index(PROGRAMS[program]) > ORDER.index(room(name)):
                yield f"{name} starts {program}: {room(name)} may not know {PROGRAMS[program]}"


def pages() -> Iterator[str]:
    """A man page for each module and each program for users"""
    man = {name: text(name) for name in FILES if re.fullmatch(r"man/.*\.[1-8]", name)}
    wanted = set(re.findall(r"[\w-]+(?=\.o\b)", "\n".join(re.findall(r"(?m)^obj-.*", text("Kbuild")))))
    for name in sorted(wanted | set(PROGRAMS)):
        known = f"{name}." in " ".join(path.split("/")[-1] for path in man)
        if not known and not any(re.search(rf"^\.(Nm|Nd).*\b{name}\b", page, re.M) for page in man.values()):
            yield f"man/: no page for {name}"


def constants() -> Iterator[str]:
    """A parameter of an inline function that the modules only ever give one constant is none"""
    code = {name: text(name) for name in sources()}
    for name, whole in code.items():
        for function, given in re.findall(r"(?m)^static inline [\w *]+?(\w+)\(([^)]*bool (?:\w+))\)$", whole):
            place = given.count(",")
            calls = [call for one in code.values() for call in re.findall(rf"\b{function}\(([^;{{]*?)\)[;) ]", one)]
            last = {call.split(",")[place].strip() for call in calls if call.count(",") == place and "bool" not in call}
            if len(last) == 1 and last <= {"true", "false"}:
                yield f"{name}: every caller gives {function}() {last.pop()}"


def ceilings() -> Iterator[str]:
    """What may not grow without a word: devel/ceilings.toml. The processes are make test's to count"""
    table = tomllib.loads(text("devel/ceilings.toml"))
    lines: dict[str, int] = {}
    for name in FILES:
        if not name.endswith((".csv", ".svg")) and not (ROOT / name).is_symlink():
            top = name.split("/")[0] if "/" in name else "."
            lines[top] = lines.get(top, 0) + len(text(name).splitlines())
    lines["all"] = sum(lines.values())
    parameters: dict[str, int] = {}
    for name in sources():
        if name.endswith(".c"):
            count = len(re.findall(r"(?m)^(?:CC_PARAM\w*|module_param\w*)\(", text(name)))
            parameters[module(name)] = parameters.get(module(name), 0) + count
    words = {name: len(text(name).split()) for name in table["words"] if name in FILES}
    for what, found in (("lines", lines), ("parameters", parameters), ("words", words)):
        for name, count in sorted(found.items()):
            most = table[what].get(name, 0 if what == "parameters" else 1000)
            if count > most:
                yield f"{name}: {count} {what}, and devel/ceilings.toml allows {most}"


def generated() -> Iterator[str]:
    """Nothing is tracked that a command makes: tables and plots, except the few that docs/release.md publishes"""
    for name in FILES:
        if name.endswith((".csv", ".svg")) and name not in ("bench/digits.csv", "docs/demo.svg", "lab/report.d/metrics.csv") \
                and not re.fullmatch(r"bench/results/[\w-]+\.svg", name):
            yield f"{name}: a command makes it: it is not kept"
    pages = [name for name in FILES if name.startswith("bench/results/") and name.endswith(".md")]
    if len(pages) > 11:
        yield f"bench/results/: {len(pages)} pages, at most the page of questions and ten others"


PROMISES: tuple[Callable[[], Iterator[str]], ...] = (shared_headers, file_order, arrows, pages, constants, ceilings,
                                                       generated)


def main() -> int:
    broken = [line for promise in PROMISES for line in promise()]
    print("\n".join(broken), end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
