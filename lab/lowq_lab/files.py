# SPDX-License-Identifier: GPL-2.0
"""The files of simulators: topologies and lists of flows of HPCC's simulation in ns-3 and its descendants (PowerTCP),
and of htsim. What is wrong in one is said with file, line and field. Refused are hosts with two links, links with loss,
and several links between the same two switches.

With a network that such a file has made, hosts are the nodes n0, n1, ... of these numbers; with another, its list of
hosts is given, and numbers count from 0 in it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from .networks import Network
from .traffic import listed

Hosts = Sequence[str] | Network

BITS = {"": 1, "bps": 1, "b/s": 1, "Bps": 8, "B/s": 8}
SCALE = {"": 1, "k": 10 ** 3, "K": 10 ** 3, "M": 10 ** 6, "G": 10 ** 9, "T": 10 ** 12}
TIMES = {"": 10 ** 9, "s": 10 ** 9, "ms": 10 ** 6, "us": 10 ** 3, "ns": 1, "ps": 1e-3}
DECIMAL = r"(\d+\.?\d*(?:[eE][+-]?\d+)?)"
TIERS = ("host", "edge", "core")  # names of the links below each of htsim's tiers


@dataclass(frozen=True)
class Line:
    file: str
    at: int
    words: list[str]

    def wrong(self, why: str) -> ValueError:
        return ValueError(f"{self.file}: line {self.at}: {why}")

    def whole(self, field: str, word: str, most: int = 1 << 60) -> int:
        if not re.fullmatch("[0-9]{1,19}", word) or int(word) > most:
            raise self.wrong(f"{field}: '{word}' is not a whole number from 0 to {most}")
        return int(word)

    def decimal(self, field: str, word: str) -> float:
        if not re.fullmatch(DECIMAL, word) or not math.isfinite(float(word)):
            raise self.wrong(f"{field}: '{word}' is not a number of 0 or more")
        return float(word)

    def rate(self, word: str) -> str:
        """As ns-3 has it: "100Gbps", or bit/s without a unit"""
        match = re.fullmatch(DECIMAL + "([kKMGT]?)(|bps|b/s|Bps|B/s)", word)
        if not match:
            raise self.wrong(f"rate: '{word}' is not a rate such as 100Gbps")
        return f"{float(match[1]) * SCALE[match[2]] * BITS[match[3]]:.0f}bit"

    def delay(self, word: str) -> str:
        """As ns-3 has it: "1us", or seconds without a unit"""
        match = re.fullmatch(DECIMAL + "(|s|ms|us|ns|ps)", word)
        if not match:
            raise self.wrong(f"delay: '{word}' is not a time such as 1us")
        return f"{float(match[1]) * TIMES[match[2]]:.0f}ns"

    def flow(self, hosts: Hosts, source: str, to: str) -> tuple[str, str]:
        """The hosts of these numbers, two different ones"""
        ends = []
        for field, word in (("source", source), ("destination", to)):
            if isinstance(hosts, Network):
                name = f"n{self.whole(field, word)}"
                if name not in hosts.peers or name in hosts.switches:
                    raise self.wrong(f"{field}: node {word} is no host of the topology")
                ends.append(name)
            else:
                ends.append(hosts[self.whole(field, word, len(hosts) - 1)])
        if ends[0] == ends[1]:
            raise self.wrong(f"destination: the flow goes from {source} to itself")
        return ends[0], ends[1]


def lines_of(file: str | Path, comment: str = "") -> list[Line]:
    """Those that have words, and are no comments"""
    with open(file, encoding="utf-8", errors="replace") as text:
        lines = [Line(str(file), at, line.split()) for at, line in enumerate(text, 1)]
    lines = [line for line in lines if line.words and not (comment and line.words[0].startswith(comment))]
    if not lines:
        raise ValueError(f"{file}: line 1: the file is empty")
    return lines


def following(lines: list[Line], count: int, what: str) -> list[Line]:
    """So many lines after the first, which says how many. What comes later is not read, as the simulator does not"""
    if len(lines) - 1 < count:
        raise lines[0].wrong(f"number of {what}: {count} are announced, {len(lines) - 1} lines follow")
    return lines[1:count + 1]


def ns3_list(file: str | Path, hosts: Hosts, *, control: str | None = None, label: str | None = None) -> dict[str, Any]:
    """The flows of flow.txt: their number, then a line for each: source, destination, priority, in most files a port,
    bytes, start in seconds. Priority and port do not count"""
    lines = lines_of(file)
    every = []
    for line in following(lines, lines[0].whole("number of flows", lines[0].words[0]), "flows"):
        if len(line.words) not in (5, 6):
            raise line.wrong(f"{len(line.words)} fields, not source, destination, priority, (port,) size and start")
        source, to = line.flow(hosts, *line.words[:2])
        every.append((source, to, line.whole("size", line.words[-2]),
                      f"{line.decimal('start', line.words[-1]) * 1e9:.0f}ns"))
    return listed(every, control=control, label=label)


def ns3_topology(file: str | Path, *, queue: str = "", **options: Any) -> Network:
    """The network of topology.txt: the numbers of nodes, switches, with PowerTCP also of racks, and of links; the
    switches; a line for each link: two nodes, rate, delay, share of packets lost. queue: of all switches, as
    Network.link() takes it"""
    lines = lines_of(file)
    head = lines[0]
    if len(head.words) not in (3, 4):
        raise head.wrong("not the numbers of nodes, switches and links")
    nodes, switches, links = (head.whole(f"number of {what}", word) for what, word in
                              zip(("nodes", "switches", "links"), head.words[:2] + head.words[-1:]))
    if nodes < 2:
        raise head.wrong(f"number of nodes: {nodes}, not 2 or more")
    numbers = set()
    if switches:
        (line,) = following(lines, 1, "switches")
        numbers = {line.whole("switch", word, nodes - 1) for word in line.words}
        if len(line.words) != switches or len(numbers) != switches:
            raise line.wrong(f"switches: {len(numbers)} different ones, {switches} are announced")
        del lines[1]
    net = Network(**options)
    net.host(*(f"n{node}" for node in range(nodes) if node not in numbers))
    net.switch(*(f"n{node}" for node in sorted(numbers)))
    for line in following(lines, links, "links"):
        if len(line.words) != 5:
            raise line.wrong(f"{len(line.words)} fields, not two nodes, rate, delay and loss")
        one, other = (f"n{line.whole('node', word, nodes - 1)}" for word in line.words[:2])
        if one == other:
            raise line.wrong(f"node: a link from {line.words[0]} to itself")
        if line.decimal("loss", line.words[4]):
            raise line.wrong(f"loss: a link with loss ({line.words[4]}) is not possible")
        rate, delay = line.rate(line.words[2]), line.delay(line.words[3])
        try:
            net.link(one, other, rate=rate, delay=delay, queue=queue)
        except ValueError as error:
            raise line.wrong(str(error).removeprefix("link(): ")) from error
    alone = [name for name in net.hosts + net.switches if not net.peers[name]]
    if alone:
        raise head.wrong(f"number of nodes: no link reaches {alone[0].removeprefix('n')}")
    return net


def htsim_list(file: str | Path, hosts: Hosts, *, control: str | None = None,
               label: str | None = None) -> dict[str, Any]:
    """The flows of a connection matrix: the numbers of nodes and connections, then lines such as "3->0 id 1 start 0
    size 2000000", start in picoseconds. id and prio do not count; flows that wait for others (triggers) and failures
    are refused"""
    every = []
    connections = None
    for line in lines_of(file, "#"):
        what, *rest = line.words
        if what in ("Nodes", "Connections", "Triggers", "Failures") and len(rest) == 1:
            count = line.whole(what, rest[0])
            if what == "Connections":
                connections = line, count
            elif what == "Nodes" and count > len(hosts.hosts if isinstance(hosts, Network) else hosts):
                raise line.wrong(f"Nodes: the network has less than {count} hosts")
            elif what in ("Triggers", "Failures") and count:
                raise line.wrong(f"{what}: they are not possible")
            continue
        source, arrow, sink = what.partition("->")
        fields = dict(zip(rest[::2], rest[1::2]))
        if not arrow or len(rest) % 2 or fields.keys() - {"id", "prio", "start", "size"}:
            raise line.wrong("not SOURCE->SINK with pairs of id, prio, start and size")
        for field in ("start", "size"):
            if field not in fields:
                raise line.wrong(f"{field} is missing")
        if not line.whole("size", fields["size"]):
            raise line.wrong("size: 0, without an end, is not possible")
        every.append((*line.flow(hosts, source, sink), line.whole("size", fields["size"]),
                      f"{line.decimal('start', fields['start']) / 1000:.0f}ns"))
    if connections and connections[1] != len(every):
        raise connections[0].wrong(f"Connections: {connections[1]} are announced, {len(every)} follow")
    return listed(every, control=control, label=label)


class Tiers:
    """The settings of a .topo file, each with the line that has it: those before the first tier, and of each tier"""

    def __init__(self, file: str | Path) -> None:
        self.parts: list[dict[str, tuple[int, Line]]] = [{}]
        self.file = file
        known = ({"nodes", "tiers", "podsize"}, {"downlink_speed_gbps", "radix_up", "radix_down", "bundle", "queue_up",
                                                "oversubscribed", "switch_latency_ns", "downlink_latency_ns", "queue_down"})
        for line in lines_of(file, "#"):
            key, *value = line.words
            if len(value) != 1:
                raise line.wrong(f"{key}: not one number")
            number = line.whole(key, value[0])
            if key.lower() == "tier":
                if number != len(self.parts) - 1:
                    raise line.wrong(f"Tier: {number}, not {len(self.parts) - 1}")
                self.parts.append({})
                continue
            if key.lower() not in known[len(self.parts) > 1]:
                raise line.wrong(f"{key}: there is no such setting here")
            if key.lower() in self.parts[-1]:
                raise line.wrong(f"{key}: given twice")
            self.parts[-1][key.lower()] = number, line
        if not 2 <= self.get("Tiers") <= 3:
            raise self.wrong("Tiers", "not 2 or 3")
        if len(self.parts) - 1 != self.get("Tiers"):
            raise self.wrong("Tiers", f"{self.get('Tiers')} are announced, {len(self.parts) - 1} follow")

    def get(self, key: str, tier: int = -1, default: int | None = None) -> int:
        part = self.parts[tier + 1]
        if key.lower() in part:
            return part[key.lower()][0]
        if default is None:
            raise ValueError(f"{self.file}: {key} of {f'tier {tier}' if tier >= 0 else 'the network'} is missing")
        return default

    def wrong(self, key: str, why: str, tier: int = -1) -> ValueError:
        return self.parts[tier + 1][key.lower()][1].wrong(f"{key}: {why}")

    def agree(self, key: str, tier: int, needed: int) -> None:
        if self.get(key, tier) != needed:
            raise self.wrong(key, f"{self.get(key, tier)}, but the other settings need {needed}", tier)


def htsim_topology(file: str | Path, *, queue: str = "", **options: Any) -> Network:
    """The network of a .topo file: a fat-tree of two or three tiers, with switches tT, aA and cC numbered as htsim does.
    Tiers are "host", "edge" and "core". queue: of all switches; sizes of queues in the file do not count. Several links
    between the same two switches (Bundle) are refused"""
    topo = Tiers(file)
    nodes, tiers, pod = topo.get("Nodes"), topo.get("Tiers"), topo.get("Podsize")
    for tier in range(tiers):
        for key in ("Downlink_speed_Gbps", "Radix_Down") + (("Radix_Up",) if tier < tiers - 1 else ()):
            if not topo.get(key, tier):
                raise topo.wrong(key, "0", tier)
        if topo.get("Bundle", tier, 1) != 1:
            raise topo.wrong("Bundle", "several links between the same two switches are not possible", tier)
    if not nodes or not pod or nodes % pod:
        raise topo.wrong("Podsize", f"{nodes} nodes are no multiple of {pod}")
    if tiers == 2 and pod != nodes:
        raise topo.wrong("Podsize", f"{pod}, but two tiers have one pod of {nodes} nodes")
    down, aggs = topo.get("Radix_Down", 0), topo.get("Radix_Up", 0)
    if pod % down:
        raise topo.wrong("Radix_Down", f"{down} does not divide the pod of {pod}", 0)
    tors, pods, cores = pod // down, nodes // pod, topo.get("Radix_Up", 1) * aggs if tiers == 3 else 0
    topo.agree("Radix_Down", 1, tors)
    if tiers == 3:
        topo.agree("Radix_Down", 2, pods)
    speeds = [topo.get("Downlink_speed_Gbps", tier) for tier in range(tiers)]
    for tier in range(tiers - 1):
        if topo.get("Oversubscribed", tier, 1) * topo.get("Radix_Up", tier) * speeds[tier + 1] != \
                topo.get("Radix_Down", tier) * speeds[tier]:
            raise topo.wrong("Radix_Up", f"does not agree with Oversubscribed {topo.get('Oversubscribed', tier, 1)}", tier)
    net = Network(**options)
    net.host(*(f"n{node}" for node in range(nodes)))
    net.switch(*(f"t{tor}" for tor in range(pods * tors)), *(f"a{agg}" for agg in range(pods * aggs)),
               *(f"c{core}" for core in range(cores)))

    def link(tier: int, low: str, high: str) -> None:
        """A switch's own latency is part of the delay of what it sends"""
        delay = topo.get("Downlink_Latency_ns", tier)
        up, back = (topo.get("Switch_Latency_ns", of, 0) if of >= 0 else 0 for of in (tier - 1, tier))
        net.link(low, high, rate=f"{speeds[tier]}gbit", delay=f"{delay + up}ns", back=f"{delay + back}ns", queue=queue,
                 tier=TIERS[tier])

    for node in range(nodes):
        link(0, f"n{node}", f"t{node // down}")
    for tor in range(pods * tors):
        for agg in range(aggs):
            link(1, f"t{tor}", f"a{tor // tors * aggs + agg}")
    for agg in range(pods * aggs if tiers == 3 else 0):
        for core in range(agg % aggs, cores, aggs):
            link(2, f"a{agg}", f"c{core}")
    return net
