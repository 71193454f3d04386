# SPDX-License-Identifier: GPL-2.0
"""lowq-tc export: what is set, as files for the program that manages the network.

systemd-networkd can name a control on a route of its own, and makes some queues. NetworkManager and ifupdown cannot:
they get a hook, which lets lowq-tc apply set again what they have written over. Sources: systemd.network(5) of 252 and
257, NetworkManager-dispatcher(8), interfaces(5), dhcpcd-run-hooks(8), dhclient-script(8)."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from lowq_common import routes
from lowq_common.devices import Link
from lowq_common.errors import Refused
from lowq_common.system import read_file
from lowq_common.values import matched

from . import config
from .apply import ENABLED
from .command import quoted
from .config import FOLDER
from .device import commands_of
from .journal import Space, Thing
from .options import MANAGERS
from .things import prefix_of
from .world import World


class File(NamedTuple):
    path: str
    lines: list[str]
    mode: int = 0o644


# --- systemd-networkd -------------------------------------------------------------------

ROUTE = {"metric": "Metric", "table": "Table", "src": "PreferredSource", "initcwnd": "InitialCongestionWindow",
         "initrwnd": "InitialAdvertisedReceiveWindow", "mtu": "MTUBytes", "advmss": "TCPAdvertisedMaximumSegmentSize",
         "hoplimit": "HopLimit", "scope": "Scope", "congctl": "TCPCongestionControlAlgorithm"}
CODEL = {"limit": "PacketLimit", "target": "TargetSec", "interval": "IntervalSec", "ce_threshold": "CEThresholdSec"}
QUEUES = {
    "fq_codel": ("FairQueueingControlledDelay", CODEL), "codel": ("ControlledDelay", CODEL),
    "fq": ("FairQueueing", {"limit": "PacketLimit", "flow_limit": "FlowLimit", "ce_threshold": "CEThresholdSec"}),
    "pfifo": ("PFIFO", {"limit": "PacketLimit"}), "bfifo": ("BFIFO", {"limit": "LimitBytes"}),
    "htb": ("HierarchyTokenBucket", {"default": "DefaultClass"}),
}
CLASS = {"rate": "Rate", "ceil": "CeilRate", "burst": "BufferBytes", "cburst": "CeilBufferBytes", "quantum": "QuantumBytes",
         "classid": "ClassId"}


def leased(world: World) -> set[str]:
    """Gateways that a lease names"""
    default = routes.parse_prefix("default")
    found = routes.exactly(world.asked, [default])[default]
    return {words[words.index("via") + 1] for words in (one.words({}) for one in found if one.protocol == routes.DHCP)
            if "via" in words}


def route_section(thing: Thing, gateways: set[str]) -> list[str]:
    """Comes before the route that networkd makes of a lease or an address, by a metric that is lower by one"""
    prefix, _ = prefix_of(thing.target)
    words = str(thing.ours[-1][0]).split()[1:]
    lease = "via" in words and words[words.index("via") + 1] in gateways
    unsaid: list[str] = []
    found = {"Destination": prefix.text if prefix.length else "0.0.0.0/0" if prefix.bits == 32 else "::/0"}
    if thing.before and prefix.bits == 128 and "metric" not in words:
        words += ["metric", "1024"]
    while words:
        word = words.pop(0)
        if word == "via":
            found["Gateway"] = "_dhcp4" if lease else words[0]
        elif word == "quickack":
            found["QuickAck"] = "yes" if words[0] == "1" else "no"
        elif word == "onlink":
            found["GatewayOnLink"] = "yes"
            continue
        elif word in ("features", "ecn"):  # the kernel asks for ECN if the control needs it
            continue
        elif word in ROUTE and not (word == "src" and (lease or thing.before)):
            found[ROUTE[word]] = words[0]
        elif word not in ("dev", "proto", "src"):
            unsaid.append(word)
        words[:1] = []
    if thing.before and not int(found.get("Metric", 0)):
        return [f"# {found['Destination']}: its route has the metric 0, before which none can come: give it another one"
                " (RouteMetric= in [Address], Metric= in [Route]), and export again"]
    if thing.before:
        found["Metric"] = str(int(found["Metric"]) - 1)
    comment = [f"# networkd has no word for '{' '.join(unsaid)}'"] if unsaid else []
    return [*comment, "[Route]", *(f"{key}={value}" for key, value in found.items())]


def queue_sections(commands: list[tuple[str, ...]]) -> list[str]:
    """Empty if networkd cannot say it"""
    made: list[str] = []
    for words in commands:
        at = {key: words[words.index(key) + 1] for key in ("parent", "handle") if key in words}
        kind = next((word for word in words[4:] if word in QUEUES), "")
        if words[:2] not in (("tc", "qdisc"), ("tc", "class")) or not kind:
            return []
        section, keys = (QUEUES[kind][0] + "Class", CLASS) if words[1] == "class" else QUEUES[kind]
        lines = ["[" + section + "]", f"Parent={at.get('parent', 'root').rstrip(':')}" + (":" if words[1] == "class" else "")]
        lines += [f"Handle={at['handle'].rstrip(':')}"] if "handle" in at else []
        rest = [*words[5:]]
        while rest:
            word = rest.pop(0)
            if word in keys:
                lines.append(f"{keys[word]}={value_of(keys[word], rest.pop(0))}")
            elif word == "ecn":
                lines.append("ECN=yes")
            elif word in ("parent", "handle"):
                rest.pop(0)
            elif word not in ("root", kind):
                return []
        made += ["", *lines]
    return made


def value_of(key: str, value: str) -> str:
    rate = matched(r"(\d+)([kmgt]?)bit", value)
    return rate[1] + rate[2].upper() if rate and key.endswith("Rate") else value


def network_file(link: Link) -> str:
    state = read_file(f"/run/systemd/netif/links/{link.ifindex}") or ""
    named = [word.partition("=")[2] for word in state.split() if word.startswith("NETWORK_FILE=")]
    return named[0] if named else ""


def networkd(world: World, mine: Space) -> list[File]:
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    unmanaged = []
    gateways = leased(world)
    for link in world.links:
        record = mine.queues.get(link.ifindex)
        named = [one for one in mine.things if one.kind == "route" and one.ours[-1]
                  and f" dev #{link.ifindex} " in f" {one.ours[-1][0]} "]
        path = network_file(link)
        if not path and (record or named):
            unmanaged.append(link.name)
        if not path or not (record or named):
            continue
        if names.setdefault(path, link.name) != link.name:
            raise Refused(f"{path} is for {names[path]} and for {link.name}: give each a .network file of its own")
        lines = [""] if record else []
        if record:
            sections = queue_sections([command.argv for command in commands_of(record, link)])
            lines += sections[1:] or [f"# networkd has no section for this queue ({record.profile}): lowq-tc.service sets it,"
                                      " and networkd leaves it alone"]
        for one in named:
            lines += ["", *route_section(one, gateways)]
        found[f"/etc/systemd/network/{path.rpartition('/')[2]}.d/lowq.conf"] = [f"# {link.name}, by 'lowq-tc export networkd'",
                                                                                *lines]
    if unmanaged and not found:
        raise Refused(f"systemd-networkd does not manage {', '.join(unmanaged)}")
    return [File(path, lines) for path, lines in found.items()]


# --- hooks ------------------------------------------------------------------------------


def hook(path: str, manager: str, case: str) -> File:
    """Does nothing after lowq-tc disable. Without a "#!" the program that has it sources it."""
    sourced = "exit-hook" in path
    lines = ["#!/bin/sh"] * (not sourced)
    lines += [f"# What was written over, lowq-tc sets again as {FOLDER} says; by 'lowq-tc export {manager}'",
              *case.splitlines()[:-1], f"{case.splitlines()[-1]}) if [ ! -d /run/systemd/system ] || [ -e {ENABLED} ]; then",
              f"\t{quoted(os.path.abspath(sys.argv[0]))} apply -q || [ $? -eq 4 ] || echo 'lowq-tc apply failed: see lowq-tc host show --check' >&2",
              "fi ;;", "esac"]
    return File(path, lines, 0o644 if sourced else 0o755)


def nm() -> list[File]:
    return [hook("/etc/NetworkManager/dispatcher.d/90-lowq", "nm",
                 'case "$2" in\nup|reapply|vpn-up|dhcp4-change|dhcp6-change|connectivity-change')]


def ifupdown() -> list[File]:
    """A client of DHCP writes routes by itself when a carrier comes back; Debian 12 has dhclient, 13 dhcpcd."""
    lease = 'case "$reason" in\nBOUND|RENEW|REBIND|REBOOT|BOUND6|RENEW6|REBIND6|REBOOT6'
    return [hook("/etc/network/if-up.d/zz-lowq", "ifupdown", 'case "$IFACE" in\nlo) ;;\n*'),
            hook("/etc/dhcp/dhclient-exit-hooks.d/zz-lowq", "ifupdown", lease),
            hook("/etc/dhcpcd.exit-hook", "ifupdown", lease + "|STATIC|ROUTERADVERT")]


def export(world: World, mine: Space, manager: str) -> list[File]:
    if manager not in MANAGERS:
        raise Refused(f"export: {', '.join(MANAGERS[:-1])} or {MANAGERS[-1]}, not '{manager}'")
    if manager == "networkd":
        if not (files := networkd(world, mine)):
            raise Refused("no queue and no route is set by lowq-tc: nothing to export")
        return files
    if not config.in_folder(FOLDER):
        raise Refused(f"{FOLDER} says nothing, and a hook would reset what is set: 'lowq-tc save' writes it")
    return nm() if manager == "nm" else ifupdown()


def script(files: list[File], reload: str) -> list[str]:
    """For sh: it writes the files. A file of someone else's stays."""
    paths = " ".join(one.path for one in files)
    made = [f"# for sh; to take it away: rm -f {paths}{' && ' + reload if reload else ''}", "set -e",
            f"for f in {paths}; do", "\tif [ -e $f ] && ! grep -q \"by 'lowq-tc export\" $f; then echo \"$f is someone else's\""
            " >&2; exit 2; fi", "done"]
    for one in files:
        made += [f"mkdir -p {one.path.rpartition('/')[0]}", f"cat >{one.path} <<'END'", *one.lines, "END",
                 *([f"chmod {one.mode:o} {one.path}"] if one.mode != 0o644 else [])]
    return made + ([reload] if reload else [])
