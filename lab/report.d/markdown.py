# SPDX-License-Identifier: GPL-2.0
"""A scenario's published page, and the index of all pages, as Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from metrics import EXTRA, metric, show
from results import (
    all_metrics, all_seeds, Block, command, fail, has, main_metrics, only_row, provenance, read_text,
    Result, same_everywhere, settings, varied)
from goals import counted, Tally, Verdict, worse
from papers import about, Beside, beside, NEITHER, paper_grid
from tables import failures, shown
from words import say

MAX_COLUMNS = 7             # of a page's table
INTERVALS = "Values are means over the seeds ± half of the 95 % confidence interval (Student's t)."

# the index's sections, by the first word of a scenario's name
SECTIONS = {"dctcp": "DCTCP", "prague": "Prague", "ldcp": "LDCP", "hpccpp": "HPCC++",
            "app": "Applications: pages, requests, video, calls", "roce": "RoCEv2", "dc": "Data centres: all of them, side by side",
            "papers": "What papers show, beside their own numbers",
            "validate": "Is the lab right? Beside theory"}
OTHERS = "The modules and the lab themselves"


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(re.sub(r"\s+", " ", c).replace("|", "\\|") for c in cells) + " |"


def fill(text: str, blocks: Sequence[Block]) -> str:
    """`text` with measured values in place of {HOW METRIC ROW SETTING=VALUE...}, where HOW is
    min, max or range over the variants that have those settings."""
    def value(found: re.Match[str]) -> str:
        how, key, row, rest = [*found[1].split(maxsplit=3), ""][:4]
        means = [r.metrics[key].mean for b in blocks if has(b, settings(rest))
                 for r in b.results if r.row == row and key in r.metrics]
        if not means:
            return "(no data)"
        low, high = show(key, min(means)), show(key, max(means))
        unit = f" {metric(key).unit}" if metric(key).unit not in ("", "×") else ""
        return {"min": low, "max": high}.get(how, low if low == high else f"{low} to {high}") + unit
    return re.sub(r"\{((?:min|max|range) [^{}]+)\}", value, text)


def findings(scenario: dict[str, Any], blocks: Sequence[Block]) -> list[str]:
    """The scenario's conclusion: each of its lines is a finding."""
    return [fill(" ".join(text.split()), blocks)
            for text in str(scenario.get("conclusion") or "").splitlines() if text.strip()]


def goal_cell(block: Block, result: Result, verdicts: Sequence[Verdict]) -> str:
    """The goals of one row in one variant: each that was not met, with its numbers."""
    mine = [v for v in verdicts if v.row == result.row and v.variant == block.name]
    if not mine:
        return ""
    unmet = [f"{v.state}: {v.text} ({v.detail})" for v in mine if v.state != "met"]
    return "; ".join(unmet) or "met"


def results_table(blocks: Sequence[Block], verdicts: Sequence[Verdict], keys: Sequence[str],
                  hidden: Sequence[str] = (), rows: bool = True) -> list[str]:
    """One table of all variants and rows; the last column names the goals that a row missed.
    Without the settings in `hidden`, and without the rows' column if not `rows`."""
    named = any(set(b.words) - set(hidden) for b in blocks)
    judged = any(goal_cell(b, r, verdicts) for b in blocks for r in b.results)
    heads = [f"{metric(k).name} ({metric(k).unit})" if metric(k).unit else metric(k).name
             for k in keys]
    first = ["variant"] * named + ["row"] * rows
    out = [line([*first, *heads, *(["goals"] if judged else [])]),
           "|" + "---|" * len(first) + "---:|" * len(keys) + "---|" * judged]
    for block in blocks:
        words = say(text for name, text in block.words.items() if name not in hidden)
        for r in block.results:
            start = [words] * named + [r.label] * rows
            cells = ["–" if (s := r.metrics.get(k)) is None else shown(k, s) for k in keys]
            if r.good:
                out.append(line([*start, *cells,
                                 *([goal_cell(block, r, verdicts)] if judged else [])]))
            out += [line([*start, text, *[""] * (len(keys) - 1 + judged)])
                    for text in failures(r)]
    return out


def split(blocks: Sequence[Block], keys: Sequence[str], room: int) -> list[list[Block]]:
    """`blocks` by the setting that varies first, if there are more than `room` metrics and some
    of them belong to a part of these groups; all in one group otherwise."""
    names = varied(blocks)
    groups: dict[str, list[Block]] = {}
    for block in blocks:
        groups.setdefault(str(block.variant.get(names[0], "")) if names else "", []).append(block)
    have = [{k for b in group for r in b.results for k in keys if k in r.metrics}
            for group in groups.values()]
    apart = any(k in h for h in have for k in keys if not all(k in x for x in have))
    return list(groups.values()) if apart and len(set.union(*have)) > room else [list(blocks)]


def page_tables(blocks: Sequence[Block], verdicts: Sequence[Verdict],
                keys: Sequence[str]) -> list[str]:
    """The tables of a page, with MAX_COLUMNS columns at most: the first metrics of `keys` that a
    table has and that are not the same in all of its lines."""
    rows = not only_row(blocks)
    same = [n for b in blocks[:1] for n in b.words if len(blocks) > 1 and n not in varied(blocks)]
    judged = bool(verdicts)
    room = MAX_COLUMNS - (len(blocks) > 1) - rows - judged
    groups = split(blocks, keys, room)
    out = []
    if not rows:
        out += [f"All lines: {blocks[0].results[0].label}.", ""]
    for group in groups:
        hidden = list(same)
        if len(groups) > 1:
            name = varied(blocks)[0]
            hidden.append(name)
            out += [f"### {group[0].words.get(name, name)}", ""]
        results = [r for b in group for r in b.results if r.good]
        values = {k: {show(k, r.metrics[k].mean) if k in r.metrics else "–" for r in results}
                  for k in keys}
        kept = [k for k in keys if len(values[k]) > 1] or list(keys[:1])
        out += [*results_table(group, verdicts, kept[:room], hidden, rows), ""]
        fixed = [f"{metric(k).name} {next(iter(values[k]))} {metric(k).unit}".rstrip()
                 for k in keys if k not in kept and values[k] != {"–"}]
        if fixed:
            out += [f"In every line: {'; '.join(fixed)}.", ""]
        if kept[room:]:
            names = "; ".join(metric(k).name for k in kept[room:])
            out += [f"Not in this table, but in [results.csv](results.csv): {names}.", ""]
    if same:
        out += [f"All variants: {say(same_everywhere(blocks))}.", ""]
    return out


def explained(keys: Sequence[str]) -> list[str]:
    """What each metric is."""
    return [f"- *{metric(k).name}*: {metric(k).what}." for k in keys if metric(k).what]


def goals_table(verdicts: Sequence[Verdict]) -> list[str]:
    """One line for each goal, over its variants."""
    out = [line(["goal", "for", "met in"]), "|---|---|---|"]
    for number in dict.fromkeys(v.goal for v in verdicts):
        mine = [v for v in verdicts if v.goal == number]
        out.append(line([mine[0].text, mine[0].row, counted(mine)]))
    return out


def paper_table(lines: Sequence[Beside]) -> list[str]:
    """What the paper shows, and what was measured."""
    heads, *rows = paper_grid(lines)
    out = [line(heads), "|---" * len(heads) + "|", *(line(cells) for cells in rows)]
    return out + (["", NEITHER] if any(b.least is None for b in lines) else [])


def made_by(scenario: dict[str, Any], blocks: Sequence[Block]) -> list[str]:
    """The versions that made the numbers, as a list."""
    seeds = all_seeds(blocks)
    facts = {"command": f"`{command(scenario, blocks)}`" if scenario.get("command") else "",
             "seed" if len(seeds) == 1 else "seeds": ", ".join(seeds), **provenance(blocks)}
    return [f"- {name}: {value}" for name, value in facts.items() if value]


def markdown(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
             keys: Sequence[str]) -> str:
    """The table and the goals, for your own documents."""
    out = results_table(blocks, verdicts, keys)
    if verdicts:
        out += ["", *goals_table(verdicts)]
    paper = beside(scenario, blocks)
    if paper:
        out += ["", *paper_table(paper)]
    return "\n".join([*out, "", *made_by(scenario, blocks)]) + "\n"


def scenario_page(scenario: dict[str, Any], blocks: Sequence[Block], verdicts: Sequence[Verdict],
                  keys: Sequence[str], plots: Mapping[str, str]) -> str:
    """The published page of a scenario; `plots` are the drawings beside it, and what each shows."""
    name = str(scenario.get("name") or "")
    out = [f"# {scenario.get('title') or name}", "",
           f"**Question.** {scenario.get('question')}", ""]
    if scenario.get("answer"):
        out += [f"**Answer.** {fill(str(scenario['answer']), blocks)}", ""]
    out += ["```text", str(scenario.get("topology") or "").strip("\n"), "```", ""]
    params = scenario.get("params")
    if isinstance(params, dict) and params:
        out += [*(f"- {k}: {v}" for k, v in params.items()), ""]
    if scenario.get("command"):
        out += ["```sh", command(scenario, blocks), "```", ""]
    for plot, what in plots.items():
        out += [f"![{scenario.get('title') or name}: {what}]({plot})", ""]
    out += ["## Numbers", "", *page_tables(blocks, verdicts, keys),
            *explained(keys), ""]
    paper = beside(scenario, blocks)
    if paper:
        out += ["## Beside the paper", "", about(scenario), "", *paper_table(paper), "",
                "As data: [paper.csv](paper.csv).", ""]
    if len(all_seeds(blocks)) > 1:
        out += [f"{INTERVALS} A limit inside the interval is a tie: no difference.", ""]
    if scenario.get("conclusion"):
        out += ["## What to see", "",
                *(f"- {finding}" for finding in findings(scenario, blocks)), ""]
    if verdicts:
        out += ["## Goals", "", *goals_table(verdicts), ""]
    out += ["## How it was made", "", *made_by(scenario, blocks),
            "- data: [results.csv](results.csv), one line per run", ""]
    if scenario.get("command"):
        out += ["The command also writes plots over time: "
                f"`out/bench/{name}/index.html`.", ""]
    return "\n".join(out).rstrip("\n") + "\n"


def index_line(name: str, question: str, answer: str, goals: str) -> str:
    """A line of the index."""
    return line([f"[{name}]({name}/README.md)", question, answer, goals])


def other_page(path: Path) -> str:
    """The index's line for a page that another program wrote: it holds lines that begin with
    **Question.**, **Answer.** and **Goal.**"""
    found = dict(re.findall(r"^\*\*(Question|Answer|Goal)\.\*\* (.+?)(?=\n\n|\Z)",
                            read_text(path), re.M | re.S))
    if "Question" not in found or "Answer" not in found:
        fail(1, f"{path}: no line that begins with **Question.** and one with **Answer.**")
    return index_line(path.parent.name, found["Question"], found["Answer"],
                      found.get("Goal", "–"))


def goals_met(mine: Tally, got_worse: Sequence[str], release: str) -> str:
    """How many goals are met, and in bold what got worse since `release`."""
    met, count = (sum(n[i] for n in mine.values()) for i in (0, 2))
    text = f"{met} of {count} goals met" if count else "–"
    return text + (f"; **worse than in {release}: {'; '.join(got_worse)}**" if got_worse else "")


def index(parts: Sequence[tuple[dict[str, Any], list[Block], Tally]], others: Sequence[Path],
          release: str, before: Tally, unpublished: Sequence[str] = (),
          questions: Sequence[str] = ()) -> str:
    """The index of all published pages; `before` has the goals of `release`, the one before.
    `unpublished` scenarios have no page yet; `questions` are the lines of its first section."""
    sections: dict[str, list[str]] = {title: [] for title in (*SECTIONS.values(), OTHERS)}
    everything = {key: counts for _, _, mine in parts for key, counts in mine.items()}
    got_worse = worse(everything, before)
    for scenario, blocks, mine in parts:
        name = str(scenario.get("name"))
        sections[SECTIONS.get(name.split("-")[0], OTHERS)].append(index_line(
            name, str(scenario.get("question")), fill(str(scenario.get("answer") or "–"), blocks),
            goals_met(mine, [text for where, text in got_worse if where == name], release)))
    sections[OTHERS] += [other_page(path) for path in others]
    names = [str(scenario.get("name")) for scenario, _, _ in parts if scenario.get("paper")]
    elsewhere = [f"[{n}]({n}/README.md)" for n in names if not n.startswith("papers-")]
    out = ["# Results", "",
           "What was measured in the lab, a page per question. Each page has the drawing of the "
           "network,", "the command that repeats it, the plot, the table, and every goal that was "
           "missed.", "`bench/run --republish` writes this index and the pages from the "
           "`results.csv` files.", "", f"{goals_met(everything, [], '')}; a goal counts once for "
           "each variant that it is judged in."]
    if release:
        out += [f"In bold: what got worse since {release} ([goals.csv](goals.csv) has both)"
                + ("." if got_worse else "; nothing did.")]
    out += ["", *questions]
    for title, lines in sections.items():
        if lines:
            out += [f"## {title}", "", line(["page", "question", "answer", "goals"]),
                    "|---|---|---|---|", *lines, ""]
        if title == SECTIONS["papers"] and elsewhere:
            out += ["A paper's values stand on these pages, too: " + ", ".join(elsewhere) + ".", ""]
    if unpublished:
        out += ["## Scenarios without a page yet", "",
                f"{', '.join(f'`{name}`' for name in unpublished)}: nobody has run them with five seeds. "
                "`bench/run NAME` measures one.", ""]
    return "\n".join(out).rstrip("\n") + "\n"


def page_metrics(blocks: Sequence[Block]) -> list[str]:
    """The columns of a page whose scenario does not name any."""
    return [k for k in main_metrics(blocks) if k not in EXTRA] or all_metrics(blocks)
