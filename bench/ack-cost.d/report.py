#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""report - what bench/ack-cost has counted, as JSON, tables or a page

usage: report.py cells FOLDER KERNEL                     one machine's cells, as JSON
       report.py table [--rows LIST] [--command TEXT] [--json] [--publish DIR] FOLDER...

A FOLDER of "cells" has the guest's console and the plugin's counts; one of "table" has the JSON of
each row. Exit status of "table": 0 all goals are met, 1 one is missed.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import statistics
import sys
from typing import Any, Iterator, NamedTuple

WARM_UP = 5     # marks before the first cell's; each cell has two, of which the second counts
HOOK = "ecn_egress_hook"
MODULE = {"bbr": "tcp_bbr", "dctcp": "tcp_dctcp", "dctcp_ref": "tcp_dctcp_ref", "ldcp": "tcp_ldcp",
          "prague": "tcp_prague", "hpccpp": "tcp_hpccpp"}
# row, not above that of this one
GOALS = (("dctcp_ref", "dctcp"), ("ldcp", "dctcp"), ("prague", "bbr"), ("hpccpp", "bbr"))
HOOK_GOAL = 60

Cell = dict[str, Any]


class Key(NamedTuple):
    """What a cell measures"""
    workload: str
    marks: int
    gso: int

    def __str__(self) -> str:
        return f"{self.workload}, {self.marks} % marked, {'offloads' if self.gso else 'no offloads'}"


def read_cells(folder: pathlib.Path, kernel: str) -> Iterator[Cell]:
    """The guest's cells, with what the plugin counted in each"""
    console = (folder / "console").read_text(encoding="utf-8", errors="replace")
    told = [json.loads(line[6:]) for line in console.splitlines() if line.startswith("LOWQ: {")]
    counted = [json.loads(line) for line in (folder / "counts").read_text().splitlines()]
    counted = counted[WARM_UP + 1::2]
    if len(told) != len(counted):
        sys.exit(f"report: {len(told)} cells, {len(counted)} counts")
    for cell, counts in zip(told, counted):
        yield cell | {"kernel": kernel, "instructions": counts["instructions"],
                      "lost": counts["lost"], "functions": counts["functions"]}


def control(cell: Cell) -> list[dict[str, Any]]:
    """The functions of a cell that belong to its control, without the egress hook"""
    own = {MODULE.get(cell["row"], cell["row"]), "reno"}
    return [f for f in cell["functions"]
            if f["name"].split(":")[0] in own and not f["name"].endswith(":" + HOOK)]


def per_ack(cell: Cell) -> float:
    """Instructions of the control's functions for each ACK that the sender got"""
    return float(sum(f["sum"] for f in control(cell)) / cell["acks"])


def own_hook(cell: Cell) -> float | None:
    """Instructions of the control's own egress hook for each packet sent"""
    name = f"{MODULE.get(cell['row'])}:{HOOK}"
    found = [f["sum"] for f in cell["functions"] if f["name"] == name]
    return found[0] / cell["packets"] if found else None


def other_hook(cells: list[Cell]) -> float:
    """The egress hook's median for packets of other sockets: the largest that was seen"""
    return max(float(f["median"]) for c in cells if c["row"] in ("reno", "cubic", "bbr", "dctcp")
               for f in c["functions"] if f["name"].endswith(":" + HOOK))


def key(cell: Cell) -> Key:
    """Which cell this is"""
    return Key(cell["workload"], cell["marks"], cell["gso"])


def table(cells: list[Cell], rows: list[str], value: str) -> Iterator[str]:
    """A Markdown table: cells down, rows across"""
    yield f"| {value} | " + " | ".join(rows) + " |"
    yield "|---|" + "---:|" * len(rows)
    by = {(key(c), c["row"]): c for c in cells}
    for k in dict.fromkeys(key(c) for c in cells):
        words = []
        for row in rows:
            cell = by.get((k, row))
            if cell is None:
                words.append("–")
            elif value.startswith("all"):
                words.append(f"{cell['instructions'] / cell['packets']:.0f}")
            else:
                words.append(f"{per_ack(cell):.0f}")
        yield f"| {k} | " + " | ".join(words) + " |"


def goals(cells: list[Cell]) -> Iterator[tuple[bool, str]]:
    """Each goal: met or not, and a sentence"""
    by = {(key(c), c["row"]): c for c in cells}
    keys = list(dict.fromkeys(key(c) for c in cells))
    for row, peer in GOALS:
        ratios = [(per_ack(by[k, row]) / per_ack(by[k, peer]), k) for k in keys
                  if (k, row) in by and (k, peer) in by]
        if not ratios:
            continue
        worst, where = max(ratios)
        met = worst <= 1
        text = f"{row}: at most {peer}'s instructions per ACK"
        if met:
            yield True, f"{text}: met ({min(ratios)[0]:.2f} to {worst:.2f} times)"
        else:
            above = sum(r > 1 for r, _ in ratios)
            yield False, (f"{text}: missed in {above} of {len(ratios)} cells "
                          f"({min(ratios)[0]:.2f} to {worst:.2f} times; most: {where})")
    if any(c["row"] in ("reno", "cubic", "bbr", "dctcp") for c in cells):
        hook = other_hook(cells)
        yield hook < HOOK_GOAL, (f"egress hook, packets of other sockets: under {HOOK_GOAL} instructions: "
                                 f"{'met' if hook < HOOK_GOAL else 'missed'} ({hook:.0f})")


def functions(cells: list[Cell], rows: list[str]) -> Iterator[str]:
    """Where the instructions go, in the first cell"""
    yield "| control | function | calls | median | instructions per ACK |"
    yield "|---|---|---:|---:|---:|"
    first = key(cells[0])
    for row in rows:
        for cell in cells:
            if cell["row"] != row or key(cell) != first:
                continue
            shown = sorted(control(cell), key=lambda f: -int(f["sum"]))
            for f in shown[:5]:
                if f["sum"] / cell["acks"] >= 1:
                    yield (f"| {row} | `{f['name'].split(':')[1]}` | {f['calls']} | {f['median']} | "
                           f"{f['sum'] / cell['acks']:.0f} |")


def page(kernels: dict[str, list[Cell]], rows: list[str], command: str) -> Iterator[str]:
    """The whole text"""
    yield "# What an ACK costs, in instructions"
    yield ""
    yield "**Question.** How many instructions does each congestion control execute per ACK?"
    yield ""
    newest = kernels[list(kernels)[-1]]
    mean = {row: statistics.mean(per_ack(c) for c in newest if c["row"] == row) for row in rows
            if any(c["row"] == row for c in newest)}
    yield ("**Answer.** On average over the cells: "
           + ", ".join(f"{row} {value:.0f}" for row, value in mean.items()) + f" ({list(kernels)[-1]}).")
    yield ""
    verdicts = [met for cells in kernels.values() for met, _ in goals(cells)]
    yield f"**Goal.** {'all met' if all(verdicts) else f'**missed**: met in {sum(verdicts)} of {len(verdicts)}'}"
    yield ""
    yield """```
 h  6 MB, or 150 requests -- sw ==== 200 Mb/s ==== r
                              marks, at fixed packets
                               base RTT 10 ms
```

Debian's kernel and modules built for it, in QEMU with `-icount shift=0`: one CPU that executes one
instruction per nanosecond. A plugin counts the functions of each control with what they call, and
without the interrupts between. Nothing is added to what the guest executes, so neither the machine
nor its load change the numbers."""
    yield ""
    yield f"    {command}"
    for kernel, cells in kernels.items():
        yield ""
        yield f"## Linux {kernel}"
        yield ""
        yield from table(cells, rows, "instructions of the control per ACK")
        yield ""
        for met, text in goals(cells):
            yield f"- Goal: {text}." if met else f"- Goal: **{text}**."
    yield ""
    yield "HPCC++'s instructions have those of probes and responses in them. On 6.12, which has no AccECN,"
    yield "Prague grows as Reno and does not respond to marks."
    yield ""
    yield f"## Where they go: {key(newest[0])}, {list(kernels)[-1]}"
    yield ""
    yield from functions(newest, rows)
    yield ""
    yield f"## All instructions of the machine per packet that h sent, {list(kernels)[-1]}"
    yield ""
    yield "Both hosts, the switch and the programs; what else the controls change is in it."
    yield ""
    yield from table(newest, rows, "all instructions per packet")
    yield ""
    yield "Every function of every cell is in [results.csv](results.csv)."


def publish(to: pathlib.Path, text: str, kernels: dict[str, list[Cell]]) -> None:
    """Writes the page and the numbers"""
    to.mkdir(parents=True, exist_ok=True)
    (to / "README.md").write_text(text)
    with (to / "results.csv").open("w", newline="") as handle:
        out = csv.writer(handle, lineterminator="\n")
        out.writerow(["kernel", "row", "workload", "marks_percent", "gso", "acks", "packets",
                      "function", "calls", "outer_calls", "instructions", "median"])
        for cells in kernels.values():
            for c in cells:
                head = [c["kernel"], c["row"], c["workload"], c["marks"], c["gso"], c["acks"], c["packets"]]
                out.writerow(head + ["all", "", "", c["instructions"], ""])
                for f in c["functions"]:
                    if f in control(c) or f["name"].endswith(":" + HOOK):
                        out.writerow(head + [f["name"], f["calls"], f["outer"], f["sum"], f["median"]])


def main() -> int:
    """Reads the command line"""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    if sys.argv[1] == "cells":
        json.dump(list(read_cells(pathlib.Path(sys.argv[2]), sys.argv[3])), sys.stdout)
        return 0
    parser = argparse.ArgumentParser(prog="report.py table")
    parser.add_argument("--rows", default="")
    parser.add_argument("--command", default="bench/ack-cost")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--publish", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args(sys.argv[2:])
    rows = args.rows.split(",")
    kernels: dict[str, list[Cell]] = {}
    for folder in args.folders:
        for row in rows:
            for cell in json.loads((folder / f"{row}.json").read_text()):
                kernels.setdefault(cell["kernel"], []).append(cell)
    text = "\n".join(page(kernels, rows, args.command)) + "\n"
    if args.json:
        print(json.dumps([c | {"per_ack": per_ack(c), "own_hook": own_hook(c)}
                          for cells in kernels.values() for c in cells]))
    else:
        print(text, end="")
    if args.publish:
        publish(args.publish, text, kernels)
    return 0 if all(met for cells in kernels.values() for met, _ in goals(cells)) else 1


if __name__ == "__main__":
    sys.exit(main())
