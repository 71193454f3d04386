#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""field_files.py DIR: what lowq_lab says of wrong files of simulators, each made of a right one in DIR by one change"""

import re
import sys
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "scripts")]

from lowq_lab import fat_tree, htsim_list, htsim_topology, ns3_list, ns3_topology  # noqa: E402

HERE = Path(sys.argv[1])
NS3, HTSIM = ns3_topology(HERE / "topology.txt"), htsim_topology(HERE / "tiny.topo")

# a file, its reader, what is replaced (a pattern), by what, the message after "FILE: line "
WRONG: list[tuple[str, Callable[[Path], object], list[tuple[str, str, str]]]] = [
    ("flow.txt", lambda file: ns3_list(file, NS3), [
        (r"^3\n", "8\n", "1: number of flows: 8 are announced, 6 lines follow"),
        (r"^3\n", "6\n", "7: source: 'First' is not a whole number"),
        (r"^3\n", "x\n", "1: number of flows: 'x' is not a whole number"),
        (r"^1 2 3 10000", "1 2 10000", "3: 4 fields, not source"),
        (r"^1 2 3 10000", "1 2 3 1e4", "3: size: '1e4' is not a whole number"),
        (r"^1 2 3", "4 2 3", "3: source: node 4 is no host"),
        (r"^1 2 3", "1 9 3", "3: destination: node 9 is no host"),
        (r"^1 2 3", "1 1 3", "3: destination: the flow goes from 1 to itself"),
        (r"0.002", "-1", "3: start: '-1' is not a number"),
        (r"(?s).*", "", "1: the file is empty")]),
    ("flow.txt", lambda file: ns3_list(file, fat_tree(2, rate="1gbit", delay="1us").hosts), [
        (r"^3\n", "3\n", "2: destination: '3' is not a whole number from 0 to 1")]),
    ("topology.txt", ns3_topology, [
        (r"^6 2 1 5", "6 2", "1: not the numbers"),
        (r"^6 2 1 5", "6 2 6", "1: number of links: 6 are announced, 5 lines follow"),
        (r"^6 2 1 5", "7 2 5", "1: number of nodes: no link reaches 6"),
        (r"^4 5 $", "4 4", "2: switches: 1 different ones, 2 are announced"),
        (r"^4 5 $", "4 6", "2: switch: '6' is not a whole number from 0 to 5"),
        (r"^1 4", "0 4", "4: host 'n0' has a link already"),
        (r"^3 5", "5 4", "7: 'n4' and 'n5' have a link already"),
        (r"^3 5", "5 5", "6: node: a link from 5 to itself"),
        (r"^1 4 10Gbps", "1 4 fast", "4: rate: 'fast' is not a rate"),
        (r"1000ns", "soon", "4: delay: 'soon' is not a time"),
        (r"0\.000000", "0.01", "4: loss: a link with loss (0.01)"),
        (r"1000ns ", "", "4: 4 fields, not two nodes")]),
    ("flow.cm", lambda file: htsim_list(file, HTSIM), [
        (r"Connections 2", "Connections 3", "2: Connections: 3 are announced, 2 follow"),
        (r"Nodes 8", "Nodes 9", "1: Nodes: the network has less than 9 hosts"),
        (r"id 1 start 1000000", "id 1 trigger 3", "4: not SOURCE->SINK"),
        (r"id 1 start 1000000", "id 1", "4: start is missing"),
        (r"^0->7", "0->8", "4: destination: node 8 is no host"),
        (r"^0->7", "7->7", "4: destination: the flow goes from 7 to itself"),
        (r"size 10000$", "size many", "4: size: 'many' is not a whole number")]),
    ("tiny.topo", htsim_topology, [
        (r"Podsize 4", "Podsize 3", "4: Podsize: 8 nodes are no multiple of 3"),
        (r"Tiers 3", "Tiers 2", "3: Tiers: 2 are announced, 3 follow"),
        (r"Tiers 3", "Tiers 4", "3: Tiers: not 2 or 3"),
        (r"Tier 1", "Tier 2", "13: Tier: 2, not 1"),
        (r"Bundle 1", "Bundle 2", "19: Bundle: several links"),
        (r"Radix_Up 1", "Radix_Up 2", "17: Radix_Up: does not agree with Oversubscribed 2"),
        (r"Radix_Down 2(?=\nDownlink_Latency_ns 2000)", "Radix_Down 4", "23: Radix_Down: 4, but the other settings need 2"),
        (r"Bundle 1", "Colour 1", "19: Colour: there is no such setting"),
        (r"Bundle 1", "Radix_Up 1", "19: Radix_Up: given twice"),
        (r"Switch_Latency_ns 64", "Switch_Latency_ns", "11: Switch_Latency_ns: not one number")])]


def main() -> int:
    bad = 0
    for name, read, changes in WRONG:
        right = (HERE / name).read_text(encoding="utf-8")
        file = HERE / f"wrong-{name}"
        for pattern, by, expected in changes:
            file.write_text(re.sub(pattern, by, right, count=1, flags=re.M), encoding="utf-8")
            try:
                read(file)
                said = "nothing"
            except ValueError as error:
                said = str(error)
            if not said.startswith(f"{file}: line {expected}"):
                print(f"# {name}, '{pattern}' replaced by '{by}': said '{said}', not '{expected}'")
                bad += 1
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
