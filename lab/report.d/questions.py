# SPDX-License-Identifier: GPL-2.0
"""Pages that answer one question across controls, from the results of several scenarios.

bench/questions.toml says them. Each part of a page takes from one scenario the variants, rows and
metrics that the question needs, and names the page that has the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Mapping, Sequence

from markdown import explained, fill, INTERVALS, line, MAX_COLUMNS, results_table
from results import Block, fail, has, read_text, same_everywhere, settings, varied
from words import say

PAGE = {"name": str, "title": str, "question": str, "answer": str, "part": list}
PART = {"scenario": str, "title": str, "variants": list, "rows": list, "metrics": list,
        "findings": str}
OPTIONAL = ("rows", "findings")


def check(path: Path, what: str, given: Any, fields: Mapping[str, type]) -> None:
    """Refuses a table that lacks a field, or has an unknown one or one of a wrong type."""
    if not isinstance(given, dict):
        fail(1, f"{path}: {what} is no table")
    for name in given.keys() - fields.keys():
        fail(1, f"{path}: {what}: unknown field '{name}'")
    for name, kind in fields.items():
        if name not in given and name not in OPTIONAL:
            fail(1, f"{path}: {what}: no field '{name}'")
        if name in given and not isinstance(given[name], kind):
            fail(1, f"{path}: {what}: '{name}' is no {kind.__name__}")


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The questions in a TOML file, in its order."""
    try:
        pages = tomllib.loads(read_text(path)).get("question", [])
    except tomllib.TOMLDecodeError as error:
        fail(1, f"{path}: {error}")
    for page in pages:
        check(path, f"question '{page.get('name', '?')}'", page, PAGE)
        for part in page["part"]:
            check(path, f"question '{page['name']}', part '{part.get('scenario', '?')}'", part, PART)
    return list(pages)


def chosen(part: Mapping[str, Any], blocks: Sequence[Block]) -> list[Block]:
    """The variants of a part, in its order, with its rows and metrics."""
    rows, keys = part.get("rows"), part["metrics"]
    out = []
    for text in part["variants"]:
        for block in blocks:
            results = [r for r in block.results if rows is None or r.row in rows]
            if has(block, settings(text)) and results:
                out.append(block._replace(results=results))
    if not out or not any(k in r.metrics for b in out for r in b.results for k in keys):
        fail(1, f"{part['scenario']}: no variant has {part['variants']} with {keys}")
    return out


def filled(text: str, scenarios: Mapping[str, Sequence[Block]]) -> str:
    """`text` with measured values in place of {SCENARIO HOW METRIC ROW SETTING=VALUE...}."""
    def value(found: re.Match[str]) -> str:
        said = fill("{" + found[2] + "}", scenarios.get(found[1], []))
        if said == "(no data)":
            fail(1, f"no data for {found[0]}")
        return said
    return re.sub(r"\{([\w-]+) ((?:min|max|range) [^{}]+)\}", value, " ".join(text.split()))


def part_lines(part: Mapping[str, Any], blocks: Sequence[Block],
               scenarios: Mapping[str, Sequence[Block]]) -> list[str]:
    """One part of a page: its table, without the settings that all of its variants share."""
    mine, name = chosen(part, blocks), part["scenario"]
    shared = [n for n in mine[0].words if n not in varied(mine)]
    keys = part["metrics"][:MAX_COLUMNS - 2]
    out = [f"## {part['title']}", "", *results_table(mine, (), keys, shared), ""]
    facts = [f"All lines: {say(same_everywhere(mine))}."] if shared else []
    out += [" ".join([*facts, f"More, and how it was made: [{name}](../{name}/README.md)."]), ""]
    found = [filled(text, scenarios) for text in part.get("findings", "").splitlines() if text]
    return out + [f"- {text}" for text in found] + [""] * bool(found)


def question_page(page: Mapping[str, Any], scenarios: Mapping[str, Sequence[Block]]) -> str:
    """The page of one question."""
    out = [f"# {page['title']}", "", f"**Question.** {page['question']}", "",
           f"**Answer.** {filled(page['answer'], scenarios)}", ""]
    keys: dict[str, None] = {}
    for part in page["part"]:
        if part["scenario"] not in scenarios:
            fail(1, f"question '{page['name']}': '{part['scenario']}' has no published results")
        out += part_lines(part, scenarios[part["scenario"]], scenarios)
        keys |= dict.fromkeys(part["metrics"])
    return "\n".join([*out, *explained(list(keys)), "", INTERVALS]) + "\n"


def question_index(pages: Sequence[Mapping[str, Any]],
                   scenarios: Mapping[str, Sequence[Block]]) -> list[str]:
    """The index's first section."""
    if not pages:
        return []
    return ["## Questions that people have, across the controls", "",
            line(["page", "question", "answer"]), "|---|---|---|",
            *(line([f"[{p['title']}](questions/{p['name']}.md)", p["question"],
                    filled(p["answer"], scenarios)]) for p in pages), ""]
