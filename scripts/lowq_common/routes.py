# SPDX-License-Identifier: GPL-2.0
"""Routes as the kernel tells them by netlink, in the words that ip takes, and where lookups lead: the rules of policy
routing and VRFs decide in which table a route to a prefix has an effect."""

from __future__ import annotations

import socket
import struct
from typing import Iterable, Iterator, NamedTuple

from .devices import Link
from .errors import Refused
from .netlink import (NLM_F_DUMP, RTM_GETADDR, RTM_GETROUTE, RTM_GETRULE, Netlink, attribute, attributes, number, text)
from .values import matched

# linux/rtnetlink.h
RTMSG = struct.Struct("=8BI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
NEXTHOP = struct.Struct("=HBBi")
DST, SRC, OIF, GATEWAY, PRIORITY, PREFSRC, METRICS, MULTIPATH, FLOW, CACHEINFO = 1, 2, 4, 5, 6, 7, 8, 9, 11, 12
TABLE, MARK, VIA, PREF, UID, IP_PROTO, SPORT, DPORT, NH_ID = 15, 16, 18, 20, 25, 27, 28, 29, 30
WRITTEN = {DST, OIF, GATEWAY, PRIORITY, PREFSRC, METRICS, MULTIPATH, FLOW, CACHEINFO, TABLE, VIA, PREF}
FIB_MATCH, LOOKUP_TABLE = 0x2000, 0x1000
MAIN = 254
UNICAST = 1
TYPES = ("unspec", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw")
PROTOCOLS = {2: "kernel", 4: "static", 9: "ra", 16: "dhcp"}
BOOT, RA, DHCP = 3, 9, 16  # boot: what ip gives a route
SCOPES = {0: "global", 253: "link", 254: "host"}
DEAD, PERVASIVE, ONLINK = 1, 2, 4
LOCK, CONGESTION, FEATURES = 1, 16, 12
NAMES = {2: "mtu", 3: "window", 4: "rtt", 5: "rttvar", 6: "ssthresh", 7: "cwnd", 8: "advmss", 9: "reordering",
         10: "hoplimit", 11: "initcwnd", 13: "rto_min", 14: "initrwnd", 15: "quickack", 17: "fastopen_no_cookie"}
FEATURE = {"ecn": 1, "tcp_usec_ts": 16}
IP6_PRIORITY = struct.pack("=I", 1024)  # what ip gives a route
LOOKUPS = 256  # where more specific routes come first, how many of them are looked at


class Prefix(NamedTuple):
    family: socket.AddressFamily
    first: int
    length: int

    @property
    def bits(self) -> int:
        return 32 if self.family == socket.AF_INET else 128

    @property
    def after(self) -> int:
        return self.first + (1 << self.bits - self.length)

    @property
    def text(self) -> str:
        """As ip shows it"""
        if not self.length:
            return "default" if self.bits == 32 else "::/0"
        address = self.address(self.first)
        return address if self.length == self.bits else f"{address}/{self.length}"

    def address(self, value: int) -> str:
        return socket.inet_ntop(self.family, value.to_bytes(self.bits // 8, "big"))

    def has(self, other: Prefix) -> bool:
        return self.length <= other.length and self.first <= other.first < self.after


def parse_prefix(given: str) -> Prefix:
    """A prefix as ip takes it: 10.0.0.0/8, 10/8, default, fd00::/8."""
    wrong = Refused(f"--route {given}: not a prefix")
    if given == "default":
        return Prefix(socket.AF_INET, 0, 0)
    address, slash, length_text = given.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bits = 128 if ":" in address else 32
    if bits == 32 and slash and matched(r"\d+(\.\d+){0,3}", address):
        address += ".0" * (3 - address.count("."))
    try:
        value = int.from_bytes(socket.inet_pton(family, address), "big")
    except (OSError, ValueError):
        raise wrong from None
    if slash and not matched(r"\d{1,3}", length_text):
        raise wrong
    length = int(length_text) if slash else bits
    if length > bits:
        raise wrong
    found = Prefix(family, value >> (bits - length) << (bits - length), length)
    if found.first != value:
        raise Refused(f"--route {given}: has bits beyond its length set; the prefix is {found.address(found.first)}/{length}")
    return found


class Route(NamedTuple):
    prefix: Prefix
    table: int
    tos: int
    protocol: int
    scope: int
    kind: int  # unicast, local ...
    flags: int
    had: dict[int, bytes]  # its attributes

    @property
    def metrics(self) -> dict[int, bytes]:
        return attributes(self.had.get(METRICS, b""))

    @property
    def control(self) -> str:
        return text(self.metrics.get(CONGESTION, b""))

    @property
    def expires(self) -> int:
        """Seconds; 0: it does not"""
        shown = self.had.get(CACHEINFO, b"")
        return int(struct.unpack_from("=i", shown, 8)[0]) // 100 if len(shown) >= 12 else 0

    @property
    def where(self) -> str:
        return "" if self.table == MAIN else f" in table {self.table}"

    def identity(self) -> list[str]:
        """What finds it again, in ip's words"""
        words = [self.prefix.text]
        if self.tos:
            words += ["tos", f"0x{self.tos:02x}"]
        if self.table != MAIN:
            words += ["table", str(self.table)]
        priority = number(self.had.get(PRIORITY))
        return words + (["metric", str(priority)] if priority != (1024 if self.prefix.bits == 128 else 0) else [])

    def words(self, names: dict[int, str]) -> list[str]:
        """All of it in ip's words. Refused: ip would not make the same route of them"""
        for which in self.had:
            if which not in WRITTEN:
                raise Refused("uses a nexthop object; the kernel does not take metrics off such a route again"
                              if which == NH_ID else f"its attribute {which} could not be written back")
        made = self.identity() + hop(self.prefix.family, self.had, self.flags, number(self.had.get(OIF)), names)
        if self.protocol != BOOT:
            made += ["proto", PROTOCOLS.get(self.protocol, str(self.protocol))]
        # ip's own choice: a route without a gateway is of the link
        usual = 253 if not {GATEWAY, VIA, MULTIPATH} & set(self.had) else 0
        if self.prefix.bits == 32 and self.scope != usual:
            made += ["scope", SCOPES.get(self.scope, str(self.scope))]
        if PREFSRC in self.had:
            made += ["src", socket.inet_ntop(self.prefix.family, self.had[PREFSRC])]
        if number(self.had.get(PREF)):
            made += ["pref", {1: "high", 3: "low"}.get(number(self.had[PREF]), "medium")]
        made += self.metric_words()
        rest = self.had.get(MULTIPATH, b"")
        while rest:
            length, flags, hops, index = NEXTHOP.unpack_from(rest)
            shown = attributes(rest[NEXTHOP.size:length])
            made += ["nexthop", *hop(self.prefix.family, shown, flags, index, names), "weight", str(hops + 1)]
            rest = rest[(length + 3) & ~3:]
        return made

    def metric_words(self) -> list[str]:
        made, metrics = [], self.metrics
        locked = number(metrics.get(LOCK))
        for which, value in metrics.items():
            lock = ["lock"] if locked >> which & 1 and which not in (13, 15, 17) else []
            if which == CONGESTION:
                made += ["congctl", *lock, text(value)]
            elif which in NAMES:
                made += [NAMES[which], *lock, str(number(value))]
            elif which == FEATURES:
                named = [name for name, bit in FEATURE.items() if number(value) & bit]
                made += ["features", *named] if named else []
            elif which != LOCK:
                raise Refused(f"its metric {which} could not be written back")
        return made


def with_metrics(words: list[str], control: str, values: dict[str, int], features: list[str]) -> list[str]:
    """A route's words with other metrics; those that are not named stay"""
    given = {"congctl": control, **{name: str(value) for name, value in values.items()}}
    made: list[str] = []
    rest = list(words)
    tail: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "nexthop":
            tail = [word, *rest]
            break
        if word == "features":
            while rest and rest[0] in FEATURE:
                features = [*features, rest.pop(0)]
        elif made and word in given and made[-1] not in ("dev", "via"):
            if rest.pop(0) == "lock":
                rest.pop(0)
        else:
            made.append(word)
    for name, value in given.items():
        made += [name, value]
    return made + (["features", *dict.fromkeys(features)] if features else []) + tail


def without_metrics(words: list[str]) -> list[str]:
    made: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "features":
            while rest and rest[0] in FEATURE:
                rest.pop(0)
        elif word in ("congctl", *NAMES.values()) and made and made[-1] not in ("dev", "via"):
            if rest.pop(0) == "lock":
                rest.pop(0)
        else:
            made.append(word)
    return made


def hop(family: socket.AddressFamily, had: dict[int, bytes], flags: int, index: int, names: dict[int, str]) -> list[str]:
    made = []
    if flags & DEAD:
        raise Refused("the route is dead")
    if set(had) & {21, 22}:
        raise Refused("its encapsulation could not be written back")
    if GATEWAY in had:
        made += ["via", socket.inet_ntop(family, had[GATEWAY])]
    if VIA in had:
        other = struct.unpack_from("=H", had[VIA])[0]
        six = other == socket.AF_INET6
        made += ["via", "inet6" if six else "inet", socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, had[VIA][2:])]
    if index:
        made += ["dev", names.get(index, f"#{index}")]
    if FLOW in had:
        realms = number(had[FLOW])
        made += ["realm", f"{realms >> 16}/{realms & 0xFFFF}" if realms >> 16 else str(realms)]
    return made + (["onlink"] if flags & ONLINK else []) + (["pervasive"] if flags & PERVASIVE else [])


def read(content: bytes) -> Route:
    family, length, _, tos, table, protocol, scope, kind, flags = RTMSG.unpack_from(content)
    had = attributes(content, RTMSG.size)
    prefix = Prefix(socket.AddressFamily(family), int.from_bytes(had.get(DST, b""), "big"), length)
    return Route(prefix, number(had.get(TABLE), table), tos, protocol, scope, kind, flags & 0xFF, had)


def dump(family: int) -> bytes:
    return RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)


def exactly(route: Netlink, prefixes: Iterable[Prefix]) -> dict[Prefix, list[Route]]:
    """The routes to exactly these prefixes, in all tables"""
    found: dict[Prefix, list[Route]] = {prefix: [] for prefix in prefixes}
    for family in {prefix.family for prefix in found}:
        mine = [prefix for prefix in found if prefix.family == family]
        wanted = tuple(attribute(DST, one.first.to_bytes(one.bits // 8, "big")) for one in mine)
        lengths = {one.length for one in mine}
        for content in route.ask(RTM_GETROUTE, NLM_F_DUMP, dump(family), wanted if 0 not in lengths else ()):
            if content[1] in lengths and (not content[1] or any(part in content for part in wanted)):
                one = read(content)
                if one.prefix in found:
                    found[one.prefix].append(one)
    return found


def with_control(route: Netlink, names: list[str]) -> Iterator[Route]:
    """Those of all tables that name a control, one of these names"""
    for family in (socket.AF_INET, socket.AF_INET6):
        for content in route.ask(RTM_GETROUTE, NLM_F_DUMP, dump(family), tuple(name.encode() for name in names)):
            if has_control(content):
                yield read(content)


def has_control(content: bytes) -> bool:
    at, end = RTMSG.size, len(content)
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", content, at)
        if length < 4:
            break
        if kind & 0x3FFF == METRICS:
            return CONGESTION in attributes(content[at + 4:at + length])
        at += (length + 3) & ~3
    return False


# --- lookups --------------------------------------------------------------------------------


class Way(NamedTuple):
    """What a rule tells connections of this host apart by"""

    label: str  # "" of a socket that is bound to nothing and marked with nothing
    words: bytes  # attributes of the lookup
    to: Prefix | None = None  # only to these addresses


RULE = struct.Struct("=8BI")  # family, dst_len, src_len, tos, table, two reserved, action, flags


def ways(route: Netlink, family: socket.AddressFamily, links: list[Link]) -> list[Way]:
    """Those that the rules name, and all others"""
    found = [Way("", b"")]
    indices = {link.name: link.ifindex for link in links}
    local: list[bytes] | None = None
    for content in list(route.ask(RTM_GETRULE, NLM_F_DUMP, RULE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))):
        _, dst_len, src_len, *_ = RULE.unpack_from(content)
        had = attributes(content, RULE.size)
        if text(had.get(3, b"lo")) != "lo":
            continue  # of packets that come in
        labels, words = [], b""
        if src_len:
            source = Prefix(family, int.from_bytes(had[2], "big"), src_len)
            if local is None:
                local = own_addresses(route, family)
            mine = next((one for one in local if source.has(Prefix(family, int.from_bytes(one, "big"), source.bits))), None)
            if mine is None:
                continue  # of no address of this host
            labels.append("from " + socket.inet_ntop(family, mine))
            words += attribute(SRC, mine)
        if number(had.get(10)):
            labels.append(f"with mark 0x{number(had[10]):x}")
            words += attribute(MARK, had[10])
        if 17 in had:
            if text(had[17]) not in indices:
                continue
            labels.append(f"bound to {text(had[17])}")
            words += attribute(OIF, struct.pack("=I", indices[text(had[17])]))
        if 20 in had:
            labels.append(f"of user {number(had[20][:4])}")
            words += attribute(UID, had[20][:4])
        if number(had.get(22)) not in (0, socket.IPPROTO_TCP):
            continue
        for which, at in ((23, SPORT), (24, DPORT)):
            if which in had:
                port = struct.unpack_from("=H", had[which])[0]
                labels.append(f"{'from' if at == SPORT else 'to'} port {port}")
                words += attribute(IP_PROTO, bytes([socket.IPPROTO_TCP])) if at == SPORT or 23 not in had else b""
                words += attribute(at, struct.pack("!H", port))
        to = Prefix(family, int.from_bytes(had[1], "big"), dst_len) if dst_len else None
        if to:
            labels.append("to " + to.text)
        if number(had.get(19)):  # a rule for all VRFs
            found += [Way(f"in VRF {link.name}", attribute(OIF, struct.pack("=I", link.ifindex)))
                      for link in links if link.kind == "vrf" and link.up]
        elif labels:
            found.append(Way(" ".join(labels), words, to))
    return list(dict.fromkeys(found))


def own_addresses(route: Netlink, family: socket.AddressFamily) -> list[bytes]:
    found = []
    for content in route.ask(RTM_GETADDR, NLM_F_DUMP, struct.pack("=BBBBI", family, 0, 0, 0, 0)):
        had = attributes(content, 8)
        found.append(had.get(2, had.get(1, b"")))
    return found


def lookup(route: Netlink, prefix: Prefix, value: int, way: Way) -> Route | None:
    """The route that a packet to this address takes"""
    source = prefix.bits if struct.pack("=H", SRC) in way.words[2:4] else 0
    body = RTMSG.pack(prefix.family, prefix.bits, source, 0, 0, 0, 0, 0, FIB_MATCH | LOOKUP_TABLE)
    body += attribute(DST, value.to_bytes(prefix.bits // 8, "big")) + way.words
    try:
        return next((read(content) for content in route.ask(RTM_GETROUTE, 0, body)), None)
    except OSError:
        return None


# documentation's and benchmarks' addresses: nobody has a narrower route to them
NOWHERE = [Prefix(socket.AF_INET, value, 32) for value in (0xC0000201, 0xC6336401, 0xC6120001)] + \
    [Prefix(socket.AF_INET6, 0x20010DB8 << 96 | 1, 128)]


class Reached(NamedTuple):
    route: Route | None  # taken by what no narrower route takes
    narrower: list[Prefix]  # routes that come first


def towards(route: Netlink, prefix: Prefix, way: Way) -> Reached:
    """Where this way leads into the prefix, beside narrower routes"""
    narrower: list[Prefix] = []
    within = prefix
    if way.to:
        if not way.to.has(prefix) and not prefix.has(way.to):
            return Reached(None, [])
        within = way.to if prefix.has(way.to) else prefix
    for one in NOWHERE if not prefix.length else ():
        if within.has(one):
            found = lookup(route, prefix, one.first, way)
            if found and found.prefix.length <= prefix.length:
                return Reached(found, [])
    value = within.first or 1 << within.bits - 8
    while value < within.after and len(narrower) < LOOKUPS:
        found = lookup(route, prefix, value, way)
        if not found or found.prefix.length <= prefix.length:
            return Reached(found, narrower)
        narrower.append(found.prefix)
        value = found.prefix.after
    return Reached(None, narrower)


def unreached(route: Netlink, prefix: Prefix, control: str, there: list[Way]) -> tuple[list[str], list[str]]:
    """Which lookups into the prefix give this control, and which do not, in words"""
    good, bad = [], []
    for way in there:
        found, narrower = towards(route, prefix, way)
        label = way.label or "other lookups"
        if found and found.control == control:
            good.append(label)
        elif found and found.kind == UNICAST:
            bad.append(f"{label}: {found.prefix.text}{found.where} comes first")
        elif narrower and not found:
            bad.append(f"{label}: {listing(narrower)} come first")
    return good, bad


def listing(prefixes: list[Prefix]) -> str:
    shown = ", ".join(one.text for one in prefixes[:4])
    return shown + (f" and {len(prefixes) - 4} more" if len(prefixes) > 4 else "")
