# SPDX-License-Identifier: GPL-2.0
"""How many times the ideal time a flow has taken: two RTTs of the idle path, one of them the handshake's, its packets
at the path's lowest rate, without a window, and one packet at the rate of each other link, as HPCC's simulator has it."""

from __future__ import annotations

import collections
import math
from typing import Any, Mapping

from .networks import nanoseconds

HEADERS = 66  # bytes of Ethernet, IPv4 and TCP with timestamps
CLASSES = (("small", 0, 100_000), ("medium", 100_000, 1_000_000), ("large", 1_000_000, math.inf))
Path = tuple[int, float, float, float]  # hops; RTT in ns; ns per bit on the slowest link, and on all links


def ns_per_bit(rate: str | None) -> float:
    """0: infinitely fast"""
    if not rate:
        return 0
    text = rate.lower().removesuffix("bit")
    scale = {"k": 1e6, "m": 1e3, "g": 1, "t": 1e-3}
    return scale[text[-1]] / float(text[:-1]) if text[-1] in scale else 1e9 / float(text)


def join(one: Path, other: Path) -> Path:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2]), one[3] + other[3]


class Paths:
    """The shortest paths of a plan's network; of several, one with the shortest RTT"""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.near: dict[str, list[tuple[str, Path]]] = collections.defaultdict(list)
        self.trees: dict[str, dict[str, Path]] = {}
        self.mtu = min((link.get("mtu", 1500) for link in plan["links"]), default=1500)
        for link in plan["links"]:
            ends = link["ends"]
            delays = [end.get("delay") or link.get("delay", "0") for end in ends]
            rtt = sum(nanoseconds(delay) for delay in delays if delay != "0")
            for end, other in (ends, ends[::-1]):
                bit = math.inf if "trace" in end or "trace" in link else ns_per_bit(end.get("rate") or link.get("rate"))
                self.near[end["node"]].append((other["node"], (1, rtt, bit, bit)))

    def tree(self, source: str) -> dict[str, Path]:
        """From a node to each"""
        if source not in self.trees:
            found: dict[str, Path] = {source: (0, 0, 0, 0)}
            queue = collections.deque([source])
            while queue:
                node = queue.popleft()
                for peer, hop in self.near[node]:
                    new = join(found[node], hop)
                    if peer not in found:
                        queue.append(peer)
                    if peer not in found or new[:2] < found[peer][:2]:
                        found[peer] = new
            self.trees[source] = found
        return self.trees[source]

    def ideal_ns(self, source: str, to: str, size: int) -> float:
        if len(self.near[source]) == 1:  # hosts at one switch have its tree in common
            (switch, first), = self.near[source]
            path = join(first, self.tree(switch)[to])
        else:
            path = self.tree(source)[to]
        _, rtt, slowest, every = path
        payload = self.mtu - HEADERS + 14
        return 2 * rtt + 8 * ((size + HEADERS * math.ceil(size / payload)) * slowest +
                              (min(size, payload) + HEADERS) * (every - slowest))


def slowdowns(plan: Mapping[str, Any], flows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Of the flows of a list and of those that start at random, by class of size; none where a trace is on the path"""
    made: dict[str, list[float]] = {name: [] for name, _, _ in CLASSES}
    paths, prefix = Paths(plan), plan.get("prefix", "")
    for flow in flows:
        if flow["kind"] in ("flows", "list") and flow["status"] == "ok":
            ideal = paths.ideal_ns(flow["client"].removeprefix(prefix), flow["server"], flow["size"])
            name = next(name for name, least, beyond in CLASSES if least <= flow["size"] < beyond)
            made[name] += [flow["since_due_ns"] / ideal] if 0 < ideal < math.inf else []
    return made
