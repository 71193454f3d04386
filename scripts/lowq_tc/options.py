# SPDX-License-Identifier: GPL-2.0
"""The options of the command line, and what was given of them."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, NamedTuple

from lowq_common import units
from lowq_common.controls import Given
from lowq_common.errors import Refused


class Option(NamedTuple):
    about: str
    metavar: str = ""  # "": takes no value
    parse: Callable[[str, str], Any] = units.parse_word
    choices: tuple[str, ...] | None = None


class Overhead(NamedTuple):
    """What a line adds to each IP packet, and the least that it sends of one. ptm: it sends 65 bytes for 64."""

    bytes: int
    least: int = 0
    ptm: bool = False


# as tc-cake(8) names them
OVERHEADS = {"docsis": Overhead(18, 64), "ethernet": Overhead(38, 84), "pppoe-ptm": Overhead(30, 0, True),
             "bridged-ptm": Overhead(22, 0, True)}


def parse_overhead(name: str, text: str) -> Overhead:
    found = OVERHEADS.get(text) or (Overhead(int(text)) if text.isascii() and text.isdigit() else None)
    if not found or found.bytes > 256:
        raise Refused(f"{name} {text}: {', '.join(OVERHEADS)}, or up to 256 bytes")
    return found


rate = partial(Option, metavar="RATE", parse=units.parse_rate)
time = partial(Option, metavar="TIME", parse=units.parse_time)
size = partial(Option, metavar="Q", parse=units.parse_size)
count = partial(Option, metavar="N", parse=units.parse_count)

OPTIONS: dict[str, Option] = {
    # of every action
    "netns": Option("work in this network namespace, by its name or path", "NS",
                    lambda name, text: text if "/" in text else units.parse_word(name, text)),
    "pid": Option("work in the network namespace of this process", "PID"),
    "dry-run": Option("print the commands that would run, and run nothing"),
    "json": Option("plan, result or show as JSON"),
    "force": Option("with reset: put it back although someone else changed it since; with save: remove other files"),
    "no-rehearsal": Option("without effect, for calls of lowq 0.3"),
    "quiet": Option("say nothing but errors"),
    # of single actions
    "check": Option("exit status 3 if anything differs from what was set"),
    "prometheus": Option("counters of the queues, for node_exporter's textfile collector"),
    "all": Option("all devices of the namespace, or all cgroups"),
    "diff": Option("with --dry-run: what is there, and what would be"),
    # of every profile
    "rate": rate("rate of the link; default: what the device says"),
    "shape": Option("limit the device to --rate with htb; implied by --rate on a device without a line of its own"
                    " (veth, vlan ...)"),
    "no-shape": Option("do not shape, even there"),
    "shape-burst": size("let this much through at once (default: one packet)"),
    "ingress": Option("set the queue of what arrives at DEV: it goes through a device ifb4DEV"),
    "overhead": Option("bytes that the line adds to each IP packet, as tc-cake counts them: a number, or"
                       f" {', '.join(OVERHEADS)}", "N", parse_overhead),
    "gso-segs": count("let the device's own senders put at most N packets into one"),
    # of single profiles
    "rtt": time("round-trip time without queues"),
    "k": size("the threshold: of what arrives above it, packets with ECN are marked; ldcp: those without are dropped"),
    "limit": size("what the queue holds at most"),
    "nodrop": Option("let packets without ECN pass above the threshold"),
    "exact": Option("thresholds look at the queue itself, not at an average"),
    "no-tso": Option("hosts do not use TSO: K is computed without it"),
    "coalesce": time("receivers hold packets back for so long: thresholds have room for that"),
    "aqm": Option("what marks", "AQM"),
    "min": size("length from which packets are marked"),
    "max": size("length from which all are"),
    "probability": Option("of a mark just below --max", "P", units.parse_probability),
    "burst": count("packets that may come at once before the average follows"),
    "harddrop": Option("drop, not mark, above --max"),
    "no-ecn": Option("always drop"),
    "simple": Option("one profile, plain red: packets without ECN are dropped where others are marked"),
    "dscp": Option("DSCP of the traffic (hpccpp: of the probes), a number or a name", "D", units.parse_dscp),
    "share": Option("of the link, while both queues have packets (default: 50)", "PERCENT", units.parse_percent),
    "sched": Option("shares, or the DSCP always first (default: ets)", "SCHED", choices=("ets", "prio")),
    "rest-limit": size("limit of the drop-tail queue"),
    "switch-id": Option("1 to 4095, unique among the nodes of a path", "N", units.parse_number),
    "relative": Option("hide the rate: stamp as a port of 100 Gb/s with the same load would"),
    "sojourn": Option("stamp the probe's own wait times the rate in place of the queue"),
    "step": time("how long packets with ECT(1) wait until they are marked (default: 1ms)"),
    "varying": Option("the link's rate varies as that of Wi-Fi does: --step is 10ms"),
    "step-min": count("mark only if so many packets with ECT(1) were waiting"),
    "target": time("target delay of packets without ECT(1)"),
    "coupling": count("how much more often those with ECT(1) are marked (default: 2)"),
    # of those that switches that are not Linux have, too
    "print": Option("set nothing; print it for port DEV of a switch with this system, or as commands for sh", "SYSTEM",
                    choices=("sonic", "cumulus", "mlnx", "commands")),
    "mtu": Option("with --print: bytes of its largest packets (default: 1500)", "N", units.parse_count),
    # of host
    "route": Option("use it towards this prefix; may be given more than once", "PREFIX", lambda name, text: text),
    "default": Option("make it the default of the namespace"),
    "allow": Option("let every user choose it per socket, also with --default or --route"),
    "initcwnd": count("first window of a sender on these routes, in packets"),
    "initrwnd": count("first window that a receiver offers on these routes, in packets"),
    "quickack": Option("acknowledge each packet at once on these routes"),
    "flows": count("flows on a link at which queues are still near zero"),
    "format": Option("of HPCC++'s probes: IFA 2.0 or INT-MD 2.1, which switches know, or the draft's own (default: old)",
                     "FORMAT", choices=("ifa", "int", "old")),
    "cell": count("IFA, INT: bytes of a cell, in which the path's switches count their queues (default: 208)"),
}
GENERAL = ("netns", "pid", "dry-run", "json", "force", "no-rehearsal", "quiet")
SHORT = {"netns": ("-n",), "quiet": ("-q",)}
FRAME = ("rate", "shape", "no-shape", "shape-burst", "overhead", "ingress", "gso-segs")
MANAGERS = ("networkd", "nm", "ifupdown")
HOST = ("route", "default", "allow", "initcwnd", "initrwnd", "quickack")
PRINT, PRINTED = ("print", "mtu"), ("dctcp", "segregate", "red", "ldcp", "roce", "prague", "fifo")


class Options(Given):
    """What was given on the command line"""

    def __init__(self, action: str, names: list[str]) -> None:
        super().__init__()
        self.action = action
        self.names = names  # of devices or files; of host the control, "show" or "reset"

    def words(self) -> list[str]:
        """Those for what is set, as they were given"""
        return [f"--{name}" + (f"={one}" if one else "") for name, value in self.given.items() if name not in GENERAL
                for one in (value if isinstance(value, list) else [value])]

    def only(self, what: str, *allowed: str) -> None:
        """Every option that was given must mean something to what was asked."""
        for name in self.values:
            if name not in GENERAL and name not in allowed:
                raise Refused(f"--{name} does not go with '{what}'")
