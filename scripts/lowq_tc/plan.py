# SPDX-License-Identifier: GPL-2.0
"""What is wanted of a device: from its facts and the options the queue that a profile computes, in its place."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple

from lowq_common import devices
from lowq_common.devices import Hardware, Link
from lowq_common.errors import NotReady, Refused
from lowq_common.queues import Qdisc
from lowq_common.system import output
from lowq_common.units import Line, rate_text, time_text

from .command import EXACT, Command, tc
from .options import Options, Overhead
from .profiles.base import same_burst, Context, Device, Profile, Queue, Tc, TICK
from .profiles.queues import ROOT
from .report import Report

HEADERS = {"ether": 14, "loopback": 14, "infiniband": 4}  # bytes of link header


@lru_cache
def tc_version() -> str:
    said = output(["tc", "-V"])[1].strip()
    return re.sub(r".*iproute2-([^,\s]+).*", r"\1", said)


def rounds_up() -> bool:
    return [int(n) for n in re.findall(r"\d+", tc_version())] >= [6, 14]


@lru_cache
def offers(kind: str, word: str, plugins: str = "") -> bool:
    """Does this tc know the word for this kind? Asks its help, which talks to no kernel."""
    extra = ["env", f"TC_LIB_DIR={plugins}"] if plugins else []
    _, out, said = output([*extra, "tc", "qdisc", "add", "dev", "lo", "root", kind, "help"])
    return word in out + said


def tc_facts(profile: Profile, options: Options, report: Report) -> Tc:
    """What this tc can do, and the folder of the plugins that it needs, if any"""
    found = {probe: offers(*probe) for probe in profile.probes(options)}
    plugins = ""
    missing = ("dualpi2", "step_thresh")
    if found.get(missing) is False and os.path.exists(f"{devices.PLUGINS}/q_dualpi2.so"):
        plugins = devices.PLUGINS
        found[missing] = offers(*missing, plugins)
        report.note(f"tc knows dualpi2's options by a plugin: TC_LIB_DIR={plugins}")
    return Tc("" if all(found.values()) else tc_version(), found, plugins, rounds_up)


def device_facts(link: Link, hardware: Hardware, shown: list[Qdisc], gso_segs: int) -> Device:
    software = link.link_type == "loopback" or link.kind not in ("", "ipoib")
    queues = hardware.queues
    if not queues and any(one.is_root and one.kind == "mq" for one in shown):
        queues = sum(not one.is_root and one.kind not in ("clsact", "ingress") for one in shown)
    return Device(
        link.name, link.mtu, link.mtu + HEADERS.get(link.link_type, 0), queues or link.tx_queues or 1, software,
        link.kind or "software", 0 if software else hardware.speed, link.gso_size, gso_segs, hardware.queue_limits,
        hardware.tso,
    )


def settle_line(device: Device, options: Options, profile: Profile, report: Report) -> tuple[Line, bool]:
    """The rate, and whether there is a shaper."""
    given = options.given.get("rate", "")
    if options.has("shape") and options.has("no-shape"):
        raise Refused("--shape and --no-shape contradict each other")
    if options.has("shape") and not options.has("rate"):
        raise Refused("--shape needs --rate")
    rate: int = options.get("rate", device.link_rate)
    shape = options.has("shape")
    if not shape and device.software and not options.has("no-shape"):
        if not options.has("rate"):
            raise Refused(f"{device.name} has no line rate of its own: give --rate, to which it is then shaped, or --no-shape")
        shape = True
        report.note(f"{device.name} has no line of its own ({device.kind}): shaped to --rate; --no-shape if something else"
                    " limits it")
    elif not shape and device.link_rate > rate:
        report.note(f"{device.name} sends at {rate_text(device.link_rate)}: its queue does not grow at --rate unless something"
                    " limits it to that; --shape would")
    elif not shape and 0 < device.link_rate < rate:
        report.note(f"--rate {given} is above the {rate_text(device.link_rate)} of {device.name}")
    if not rate and "rtt" in profile.options and not options.has("k"):
        raise NotReady(f"{device.name} reports no link speed: give --rate")
    return Line(rate, device.frame), shape


def settle_burst(context: Context) -> int:
    """What the shaper lets through at once, in bytes"""
    options, line = context.options, context.line
    if not options.has("shape-burst"):
        burst = max(line.bytes_in(2 * TICK), line.frame)  # one packet, and no less than two ticks
    elif not context.shape:
        raise Refused("--shape-burst needs a shaper: --shape")
    else:
        burst = context.size("shape-burst")
        given = f"--shape-burst {options.given['shape-burst']}"
        if line.drain_ns(burst) >= TICK << 32:
            raise Refused(f"{given}: takes {line.drain_ns(burst) // 10**9} s at this rate; tc sets at most 274 s")
        context.report.note(f"{given}: less than one packet; htb still lets one packet through" if burst < line.frame else "")
    drain = line.drain_ns(burst)
    if drain < 5000:
        context.report.note(f"the shaper lets {time_text(drain)} worth through at once: exact, but timers of real machines are"
                            " later than that; --shape-burst 50us if the rate is not reached")
    if context.device.queues > 1:
        context.report.note(f"one shaper for all {context.device.queues} queues of {context.device.name}: one lock for all CPUs")
    return burst


class Wanted(NamedTuple):
    tree: list[Command]
    egress: list[Command]  # filters at clsact
    gso_segs: int | None


def wanted(profile: Profile, device: Device, options: Options, tc_facts: Tc, report: Report) -> Wanted:
    aqm = options.get("aqm")
    if aqm and aqm not in profile.aqm:
        listed = ", ".join(profile.aqm[:-1]) + " or " + profile.aqm[-1]
        raise Refused(f"--aqm {aqm}: {listed}")
    line, shape = settle_line(device, options, profile, report)
    context = Context(device, options, line, shape, tc_facts, report)
    if options.has("overhead") and not shape:
        raise Refused("--overhead needs a shaper: --shape")
    burst = settle_burst(context) if shape or options.has("shape-burst") else 0
    if options.has("gso-segs") and options.values["gso-segs"] > 65535:
        raise Refused(f"--gso-segs {options.given['gso-segs']}: at most 65535")
    # show compares it with the device as it is then
    context.record(computed_for={"mtu": device.mtu})
    if device.link_rate and not options.has("rate"):
        report.params["computed_for"]["speed"] = device.link_rate
    queue = profile.compute(context)
    tree = framed(context, queue, burst)
    if options.has("exact"):
        tree.append(Command((*EXACT, "dev", device.name)))
    return Wanted(tree, list(queue.egress), options.get("gso-segs"))


def framed(context: Context, queue: Queue, burst: int) -> list[Command]:
    """The tree in its place: below an htb class that shapes, below every queue of a
    multi-queue device, or at the root."""
    device, root = context.device, int(ROOT, 16)
    if context.shape:
        line = Overhead(device.frame - device.mtu)
        if context.options.has("overhead"):
            line = context.options.values["overhead"]
        own = line.bytes - (device.frame - device.mtu)  # what the kernel does not count
        if own < 0:
            raise Refused(f"--overhead {context.options.given['overhead']}: {device.name} itself has"
                          f" {device.frame - device.mtu} bytes")
        words = (*(("overhead", own) if own else ()), *(("mpu", line.least) if line.least else ()))
        rate = rate_text(context.line.rate * 64 // 65 if line.ptm else context.line.rate)
        # the same shaper with each tc
        burst = same_burst(burst, context.line.rate) if context.tc.rounds_up() else burst
        return [
            context.qdisc(("root",), ROOT, "htb", "default", 1),
            tc("class", "add", "dev", device.name, "parent", ROOT + ":", "classid", ROOT + ":1", "htb",
               "rate", rate, "ceil", rate, "burst", burst, "cburst", burst,
               "quantum", min(max(device.frame, 1000), 200_000), *words),
            *queue.tree(("parent", ROOT + ":1"), f"{root + 1:x}"),
        ]
    if device.queues > 1:
        made = [context.qdisc(("root",), ROOT, "mq")]
        for number in range(1, device.queues + 1):
            made += queue.tree(("parent", f"{ROOT}:{number:x}"), f"{root + number:x}")
        return made
    return queue.tree(("root",), ROOT)
