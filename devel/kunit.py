# SPDX-License-Identifier: GPL-2.0
"""kunit - a KUnit suite from a unit test of selftests/unit, for devel/intree

A kernel has neither floating point nor cmocka. A suite has those of the file's tests that need no
floating point, with the functions, types and tables that they use, from the oracles, too. What
assert_int_equal() and expect() are there is in kunit.h."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

# what a kernel cannot compile
FOREIGN = re.compile(r"\b(long double|double|float|_Static_assert)\b|\b\d+\.\d+L?\b|\b(printf|getenv|malloc|free|strto\w+|"
                     r"(ldexp|fabs|fmax|fmin|floor|ceil|pow|exp|log|sqrt|round|llround|trunc)l?)\(")

# what a kernel has
KERNEL = {"u128", "s128", "ARRAY_SIZE", "expect", "LLVMFuzzerTestOneInput", "_LOWQ_ORACLE_H", "fuzz_input", "fuzz_take", "crc32_le"}


class Unit(NamedTuple):
    """A definition, with the comment before it"""
    text: str
    names: set[str]

    def uses(self) -> set[str]:
        return set(re.findall(r"\b[A-Za-z_]\w*\b", strip(self.text))) - self.names


def strip(text: str) -> str:
    """Code without comments and strings"""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', " ", text, flags=re.S)


def names_of(text: str) -> set[str]:
    """What a definition defines"""
    code = strip(text).strip()
    if code.startswith("#"):
        return set(re.findall(r"^#\s*define\s+(\w+)", code))
    if code.startswith("typedef"):
        return set(re.findall(r"(\w+)\s*;$", code))
    head = re.split(r"[({=;]", code, maxsplit=1)[0]
    names = {head.split()[-1].split("[")[0]} if head.split() else set()
    for tag, body in re.findall(r"\b(?:enum|struct)\s+(\w+)?\s*\{(.*)\}", code, flags=re.S):
        names |= {tag} if tag and re.match(r"(static\s+)?(const\s+)?(enum|struct)\s+\w+\s*\{", code) else set()
        if re.match(r"(static\s+)?enum\b", code):
            names |= set(re.findall(r"(?:^|,)\s*([A-Z_]\w*)", body))
    if "[" in head:
        names = {head.split("[")[0].split()[-1]}
    return names


def expanded(text: str) -> str:
    """A file whose macros make tests: those tests in their place"""
    for name, words, body in re.findall(r"(?m)^#define (\w+)\(([^)]*)\)\s*\\\n((?:.*\\\n)*.*\n)", text):
        if not body.startswith("static void"):
            continue
        lines = [line.rstrip("\\").rstrip() for line in body.splitlines()]

        def use(found: re.Match[str], words: str = words, lines: list[str] = lines) -> str:
            made = "\n".join(lines)
            for word, value in zip(words.split(", "), found[1].split(", ")):
                made = re.sub(rf"(?:##)?\b{word}\b", value, made)
            return made.replace("##", "") + "\n"

        text = re.sub(rf"(?m)^{name}\((.*)\)$", use, text)
    return text


def units_of(path: Path) -> list[Unit]:
    """A file's definitions, in their order, each with the comment right before it"""
    units: list[Unit] = []
    held: list[str] = []
    for line in expanded(path.read_text()).splitlines():
        held.append(line)
        text = "\n".join(held)
        code = strip(text)
        if "/*" in code or held[-1].endswith("\\"):
            continue            # inside of a comment or a macro
        if not line and not code.strip():
            held = []           # a comment that stands alone
        elif code.strip().startswith("#"):
            units.append(Unit(text, names_of(text)))
            held = []
        elif code.count("{") == code.count("}") and code.rstrip().endswith((";", "}")):
            units.append(Unit(text, names_of(text)))
            held = []
    return [unit for unit in units if unit.names]


def included(path: Path) -> list[Path]:
    """The oracles that a test includes, those first that others include"""
    found: list[Path] = []
    for name in re.findall(r'(?m)^#include "([\w.]+)"$', path.read_text()):
        one = path.parent / name
        if one.is_file():
            found += [each for each in (*included(one), one) if each not in found]
    return found


def headers_of(path: Path) -> list[str]:
    """The models' headers that a test and its oracles include"""
    names: list[str] = []
    for one in (*included(path), path):
        names += [name for name in re.findall(r'(?m)^#include "([\w.]+)"$', one.read_text())
                  if not (path.parent / name).is_file() and name not in names]
    return names


def kernel_text(units: list[Unit]) -> str:
    """Definitions as a kernel takes them: u64 is an unsigned long long, and what is not used is no fault"""
    text = "\n\n".join(unit.text for unit in units)
    # cmocka passes a test's state, KUnit the test
    text = re.sub(r"\n\t\(void\)state;\n(\n)?", "\n", text).replace("(void **state)", "(struct kunit *test)")
    return re.sub(r"%(\d*)l([uxd])\b", r"%\1ll\2", text).replace("static inline ", "static __maybe_unused ")


def shared(path: Path, header: str) -> str:
    """The header of all suites: @header, and what the oracles share"""
    mine = {name for unit in units_of(path) for name in re.findall(r"#define (\w+)", header)}
    units = [unit for unit in units_of(path) if not FOREIGN.search(strip(unit.text)) and not unit.names & (mine | KERNEL)]
    mark = "#define LOWQ_SUITE"
    return header.replace(mark, kernel_text(units) + "\n\n" + mark)


class Suite(NamedTuple):
    """A KUnit suite, the tests that it has, and those that it leaves out"""
    text: str
    taken: list[str]
    left: list[str]


def suite(path: Path) -> Suite:
    """A test file's KUnit suite"""
    oracle = path.parent / "oracle.h"
    files = [*included(path), path]
    units = [unit for one in files for unit in units_of(one)]
    where = {name: number for number, unit in enumerate(units) for name in unit.names}
    general = {name for unit in units_of(oracle) for name in unit.names}
    tests = re.findall(r"cmocka_unit_test\((\w+)\)", path.read_text())
    keep: set[int] = set()
    taken: list[str] = []
    for test in tests:
        needed: set[int] = set()
        wanted = {test}
        while wanted:
            number = where.get(wanted.pop())
            if number is not None and number not in needed:
                needed.add(number)
                wanted |= units[number].uses()
        if not any(FOREIGN.search(strip(units[number].text)) for number in needed):
            taken.append(test)
            keep |= needed
    body = kernel_text([units[number] for number in sorted(keep) if not units[number].names & (general | KERNEL)])
    stem = path.stem.removeprefix("test_")
    headers = headers_of(path)
    includes = "\n".join(f'#include "{name}"' for name in headers)
    cases = "\n".join(f"\tKUNIT_CASE({name})," for name in taken)
    text = (f"// SPDX-License-Identifier: GPL-2.0\n/* Tests of {headers[-1]} that need no floating point */\n"
            f"{includes}\n#include \"kunit.h\"\n\n{body}\n\n"
            f"static struct kunit_case {stem}_cases[] = {{\n{cases}\n\t{{}}\n}};\n\n"
            f"LOWQ_SUITE({stem});\n")
    return Suite(text, taken, [name for name in tests if name not in taken])
