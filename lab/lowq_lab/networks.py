# SPDX-License-Identifier: GPL-2.0
"""Networks: hosts and switches with links. Addresses and routes follow from the links."""

from __future__ import annotations

import collections
import re
from typing import Any, Iterable

Plan = dict[str, Any]


def nanoseconds(time: str) -> float:
    """A time such as "100us" """
    match = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", time)
    if not match:
        raise ValueError(f"'{time}' is not a time such as 100us")
    return float(match[1]) * {"ns": 1, "us": 10 ** 3, "ms": 10 ** 6, "s": 10 ** 9}[match[2]]


class Network:
    """A network that is made link by link.

    A host has one link; what is no host is a switch, and forwards. A device has the name of the node at the other end:
    sw's queue towards r is at its device "r". Routes are the shortest, by ECMP where there are several."""

    def __init__(self, *, mtu: int = 1500, offloads: bool = False, buffer: int = 6291456,
                 exact: bool | None = None) -> None:
        """buffer: the most that TCP's buffers grow to, bytes. exact: as labnet(1) says; by default without offloads, since
        GRO needs a device with NAPI, such as veth"""
        self.mtu, self.offloads, self.buffer = mtu, offloads, buffer
        self.exact = not offloads if exact is None else exact
        self.prepared: list[str] = []
        self.path: tuple[str, str] = ("", "")  # of a dumbbell: rate and base RTT between h1 and r
        self.sysctls: dict[str, Plan] = collections.defaultdict(dict)  # of a node, or "": of all
        self.hosts: list[str] = []
        self.switches: list[str] = []
        self.links: list[Plan] = []
        self.ends: dict[tuple[str, str], Plan] = {}  # of a node towards a neighbour
        self.peers: dict[str, dict[str, str]] = collections.defaultdict(dict)  # of a node: neighbour, its address

    def host(self, *names: str) -> None:
        self.hosts += names

    def switch(self, *names: str) -> None:
        self.switches += names

    def link(self, one: str, other: str, *, rate: str = "", delay: str = "", back: str = "", queue: str = "",
             tier: str = "", **words: Any) -> None:
        """A link in both directions. rate: without one it is infinitely fast. delay: of each direction; back: of
        that from other to one alone. queue: of the switches' ends, in the words of tc or lowq-tc; a queue needs a rate.
        tier: a name for all links of a kind, for a load. words: loss, jitter, trace and others, as labnet(1) has them"""
        for node in (one, other):
            if node not in self.hosts and node not in self.switches:
                raise ValueError(f"link(): no node '{node}'")
            if node in self.hosts and self.peers[node]:
                raise ValueError(f"link(): host '{node}' has a link already")
        if other in self.peers[one]:
            raise ValueError(f"link(): '{one}' and '{other}' have a link already")
        net = f"10.{len(self.links) >> 8}.{len(self.links) & 255}"
        ends: list[Plan] = [{"node": one, "dev": other, "addresses": [f"{net}.1/24"]},
                            {"node": other, "dev": one, "addresses": [f"{net}.2/24"]}]
        self.peers[one][other], self.peers[other][one] = f"{net}.2", f"{net}.1"
        if back:
            ends[1]["delay"] = back
        link: Plan = {"ends": ends, "mtu": self.mtu, "offloads": self.offloads, "neighbours": True}
        link |= words | {key: value for key, value in (("rate", rate), ("delay", delay), ("tier", tier)) if value}
        self.links.append(link)
        self.ends |= {(one, other): ends[0], (other, one): ends[1]}
        for node, to in ((one, other), (other, one)):
            if queue and node in self.switches:
                self.queue(node, to, queue)

    def queue(self, node: str, to: str, words: str, *, rate: str = "") -> None:
        """The queue of a node towards a neighbour, in the words of tc or lowq-tc. rate: of this direction alone"""
        if (node, to) not in self.ends:
            raise ValueError(f"queue(): no link from '{node}' to '{to}'")
        self.ends[node, to] |= {key: value for key, value in (("queue", words), ("rate", rate)) if value}

    @property
    def place(self) -> str:
        """Where a queue stands, in tc's words"""
        return "root" if self.exact else "parent 1:1"

    def prepare(self, node: str, command: str) -> None:
        """A command in a node, or with "" outside of all, when the network is built, before the traffic. A device has
        the other end's name"""
        if node and node not in self.hosts and node not in self.switches:
            raise ValueError(f"prepare(): no node '{node}'")
        self.prepared.append(f"ip netns exec {node} {command}" if node else command)

    def afresh(self, node: str, to: str) -> None:
        """A new queue, if it is in tc's words, in place of one that has measured the path, which leaves an average"""
        words = self.ends[node, to]["queue"]
        if not words.startswith("lowq-tc"):
            self.prepare(node, f"tc qdisc replace dev {to} {self.place} handle 3: {words}")

    def sysctl(self, name: str, value: int | str, *nodes: str) -> None:
        """A value of all nodes, or of these. A new plan() has it"""
        for node in nodes or ("",):
            self.sysctls[node][name] = value

    def line_rate(self, rate: str, *hosts: str) -> None:
        """Hosts send at this rate. With offloads they send 64 kB at once, which their NIC segments at that rate"""
        for host in hosts:
            (switch,) = self.peers[host]
            if self.offloads:  # tbf segments what is longer than mtu; the peak rate, that mtu needs, limits nothing
                self.prepare(host, f"tc qdisc add dev {switch} root tbf rate {rate} burst 1600 peakrate 1000gbit mtu 1514 "
                                   "limit 64mb")
            else:
                self.ends[host, switch]["rate"] = rate

    def merging(self, *hosts: str) -> None:
        """With offloads, hosts merge what arrives (GRO)"""
        for host in hosts if self.offloads else ():
            (switch,) = self.peers[host]
            # veth does it only for what comes from a device without TSO
            self.prepare(switch, f"ethtool -K {host} tso off")
            self.prepare(host, f"ethtool -K {switch} gro on")

    def initcwnd(self, packets: int, *hosts: str) -> None:
        """Hosts begin with a window of so many packets"""
        for host in hosts:
            (address,) = self.peers[host].values()
            self.prepare(host, f"ip route replace default via {address} initcwnd {packets}")

    def stated(self, from_: str, to: str, *, rate: str, rtt: str | None, mark_at: int | None = None,
               burst: int | None = None) -> None:
        """The run ends unless the idle path between these hosts has this rate and, if they are given, this base RTT
        and marks from so many packets on. burst: packets that a shaper lets through at once, 2 without it"""
        words = ["--rate", rate] + [word for option, value in (("--rtt", rtt), ("--mark-at", mark_at), ("--burst", burst))
                                    if value is not None for word in (option, str(value))]
        self.prepared.append(f'"$RUNNER/path" {" ".join(words)} {from_} {to} {self.address(to)}')

    def address(self, host: str) -> str:
        (switch,) = self.peers[host]
        return self.peers[switch][host]

    def packets_held(self, node: str, to: str, ns: int) -> None:
        """The node takes what comes from this neighbour only so long after the first packet, and merges it (NAPI)"""
        self.prepare(to, f"ethtool -K {node} tso off")
        self.prepare(node, f"ethtool -K {to} gro on")
        for name, value in (("napi_defer_hard_irqs", 1), ("gro_flush_timeout", ns)):
            self.prepare(node, f"sh -c 'echo {value} >/sys/class/net/{to}/{name}'")

    def routes(self) -> dict[str, list[Plan]]:
        """Of each node"""
        made: dict[str, list[Plan]] = {}
        at: dict[str, list[str]] = collections.defaultdict(list)  # of a node, the hosts beside it
        for host in self.hosts:
            for near, address in self.peers[host].items():
                at[near].append(host)
                made[host] = [{"to": "default", "via": address}]
        towards: dict[str, list[tuple[str, tuple[str, ...]]]] = collections.defaultdict(list)
        for near, hosts in at.items():
            if near in self.hosts:
                continue
            distance, queue = {near: 0}, collections.deque([near])
            while queue:
                node = queue.popleft()
                for peer in self.peers[node]:
                    if peer in self.switches and peer not in distance:
                        distance[peer] = distance[node] + 1
                        queue.append(peer)
            for node in distance:
                via = tuple(address for peer, address in self.peers[node].items()
                            if distance.get(peer, len(distance)) < distance[node])
                if via:
                    towards[node] += [(self.peers[near][host].rsplit(".", 1)[0] + ".0/24", via) for host in hosts]
        for node, routes in towards.items():
            # what most hosts are reached by is the default
            default = collections.Counter(via for _, via in routes).most_common(1)[0][0]
            made[node] = [{"to": "default", "via": list(default)}]
            made[node] += [{"to": to, "via": list(via)} for to, via in routes if via != default]
        return made

    def plan(self, *traffic: Plan, observe: Iterable[tuple[str, str]] = (), count: tuple[str, str] | None = None,
             bin_: str = "1ms", events: Iterable[Plan] = ()) -> Plan:
        """The whole plan. observe: queues, as (node, neighbour), of which the first is the scenario's bottleneck.
        count: from when to when after the first flow's start. bin_: of the queue's plot over time. events: as labnet(1)
        has them"""
        routes = self.routes()
        plan: Plan = {
            "machine_sysctl": {"net.ipv4.tcp_mem": "262144 393216 524288", "net.core.netdev_max_backlog": 1000000,
                               "net.core.rmem_max": 268435456, "net.core.wmem_max": 268435456,
                               "net.core.somaxconn": 65535, "net.core.optmem_max": 1048576},
            # without forwarding IPv6 would solicit routers at random instants
            "sysctl": {"net.ipv4.conf.all.forwarding": 1, "net.ipv6.conf.all.forwarding": 1,
                       "net.ipv6.conf.all.accept_dad": 0, "net.ipv6.conf.default.accept_dad": 0,
                       "net.ipv4.fib_multipath_hash_policy": 1,
                       "net.ipv4.tcp_rmem": f"4096 131072 {self.buffer}",
                       "net.ipv4.tcp_wmem": f"4096 16384 {self.buffer}",
                       "net.ipv4.tcp_no_metrics_save": 1} | self.sysctls[""],
            "nodes": [{"name": name} | ({"routes": routes[name]} if name in routes else {})
                      | ({"sysctl": self.sysctls[name]} if self.sysctls[name] else {})
                      for name in self.hosts + self.switches],
            "exact": self.exact, "links": self.links, "traffic": list(traffic), "events": list(events)}
        queues = [{"node": node, "dev": to} for node, to in observe]
        if queues:
            plan["observe"] = {"queues": queues, "bin": bin_}
            first = min((nanoseconds(entry.get("start", "0ns")) for entry in traffic), default=0)
            for name, time in zip(("from", "to"), count or ()):
                plan["observe"][name] = f"{first + nanoseconds(time):.0f}ns"
        if self.prepared:
            plan["prepare"] = self.prepared
        return plan

    def measured(self, *traffic: Plan, count: tuple[str, str] | None = None, bin_: str = "1ms",
                 events: Iterable[Plan] = (), mark_at: int | None = None, also: Iterable[str] = (),
                 afresh: bool = False) -> Plan:
        """The plan of a dumbbell whose path is as stated and whose queue is observed, made afresh or not. With offloads
        r merges what arrives. also: commands for sw before the traffic, which change the path"""
        self.stated("h1", "r", rate=self.path[0], rtt=self.path[1], mark_at=mark_at)
        self.merging("r")
        if afresh:
            self.afresh("sw", "r")
        for command in also:
            self.prepare("sw", command)
        return self.plan(*traffic, observe=[("sw", "r")], count=count, bin_=bin_, events=events)


def dumbbell(hosts: int, *, rate: str, rtt: str | list[str], queue: str = "", line: str = "",
             back: tuple[str, str] | None = None, via: tuple[str, str] | None = None, **options: Any) -> Network:
    """h1 to hN at a switch sw, which sends to r over the bottleneck: the queue is at ("sw", "r"). rtt: of all hosts,
    or a list for h1, h2, ..., whose last one is that of all others; the way back has all of the delay. line: the rate
    of the hosts' own links, which are infinitely fast without one. back, via: rate and queue of a second queue, at
    ("sw", "in") for all that goes back to hosts, at ("in", "sw") before the other one"""
    net, rtts = Network(**options), [rtt] if isinstance(rtt, str) else rtt
    net.path = rate, rtts[0]
    near = "in" if back or via else "sw"
    net.switch(*dict.fromkeys(("sw", near)))
    net.host(*(f"h{i}" for i in range(1, hosts + 1)), "r")
    for i in range(1, hosts + 1):
        net.link(f"h{i}", near, back=rtts[min(i, len(rtts)) - 1])
    if near != "sw":
        net.link("in", "sw")
        for node, to, second in (("sw", "in", back), ("in", "sw", via)):
            if second:
                net.queue(node, to, second[1], rate=second[0])
    net.link("sw", "r")
    net.queue("sw", "r", queue, rate=rate)
    if line:
        net.line_rate(line, *net.hosts[:-1])
    return net


def parking_lot(hops: int, *, rate: str, delay: str, queue: str = "", **options: Any) -> Network:
    """A chain of switches s0 to sN, N = hops, each link a bottleneck. h0 and r0 are at its ends; hI sends to rI,
    I = 1 to N, over the Ith hop alone. The queues are at ("s0", "s1") and so on"""
    net = Network(**options)
    net.switch(*(f"s{i}" for i in range(hops + 1)))
    for i in range(hops + 1):
        net.host(f"h{i}", f"r{i}")
        net.link(f"h{i}", f"s{max(i - 1, 0)}")
        net.link(f"s{i or hops}", f"r{i}")
        if i:
            net.link(f"s{i - 1}", f"s{i}", rate=rate, delay=delay, queue=queue)
    return net


def leaf_spine(leaves: int, spines: int, hosts: int, *, rate: str, delay: str, uplink: str = "", queue: str = "",
               **options: Any) -> Network:
    """Hosts hL-I, with that many at each leaf lL, and spines sS above all leaves. uplink: the rate between leaves and
    spines, default: rate. Tiers are "host" and "spine" """
    net = Network(**options)
    net.switch(*(f"l{leaf}" for leaf in range(leaves)), *(f"s{spine}" for spine in range(spines)))
    for leaf in range(leaves):
        for i in range(hosts):
            net.host(f"h{leaf}-{i}")
            net.link(f"h{leaf}-{i}", f"l{leaf}", rate=rate, delay=delay, queue=queue, tier="host")
        for spine in range(spines):
            net.link(f"l{leaf}", f"s{spine}", rate=uplink or rate, delay=delay, queue=queue, tier="spine")
    return net


def fat_tree(k: int, *, rate: str, delay: str, queue: str = "", **options: Any) -> Network:
    """k pods of k/2 edge switches eP-E and k/2 aggregation switches aP-A, with k/2 hosts hP-E-I at each edge switch
    and core switches cA-C. Tiers are "host", "edge" and "core" """
    if k % 2 or k < 2:
        raise ValueError(f"fat_tree(): k is even, not {k}")
    net, half = Network(**options), range(k // 2)
    kind = {"rate": rate, "delay": delay, "queue": queue}
    net.switch(*(f"c{a}-{c}" for a in half for c in half))
    for p in range(k):
        net.switch(*(f"{letter}{p}-{i}" for letter in "ea" for i in half))
        for e in half:
            for i in half:
                net.host(f"h{p}-{e}-{i}")
                net.link(f"h{p}-{e}-{i}", f"e{p}-{e}", tier="host", **kind)
            for a in half:
                net.link(f"e{p}-{e}", f"a{p}-{a}", tier="edge", **kind)
        for a in half:
            for c in half:
                net.link(f"a{p}-{a}", f"c{a}-{c}", tier="core", **kind)
    return net
