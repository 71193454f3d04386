# SPDX-License-Identifier: GPL-2.0
"""Wanted against present: the steps that lead from one to the other."""

from __future__ import annotations

from typing import NamedTuple

from lowq_common.devices import Hardware, Link, handle_of, root_handle, root_of
from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.units import Line, rate_text, time_text

from .aspects import CLSACT, FILTERS, QUEUE, SEGMENTS, aspect_of
from .aspects.base import Aspect, Place
from .aspects.clsact import with_pref
from .command import EXACT, Command, tc
from .journal import DeviceRecord, Step, SavedState
from .options import Options
from .previous import CannotRemake, remake
from .profiles.base import Context, Device, Profile, Queue, Tc
from .profiles.queues import ROOT
from .report import Report

HEADERS = {"ether": 14, "loopback": 14, "infiniband": 4}  # bytes of link header


def device_facts(link: Link, hardware: Hardware, tree: Json, gso_segs: int) -> Device:
    software = link.link_type == "loopback" or link.kind not in ("", "ipoib")
    queues = hardware.queues
    root = root_of(tree)
    if not queues and root and root["kind"] == "mq":
        queues = sum(not qdisc.get("root") for qdisc in tree["qdiscs"])
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
            raise Refused(
                f"{device.name} has no line rate of its own: give --rate, to which it is then shaped, or --no-shape"
            )
        shape = True
        report.note(
            f"{device.name} has no line of its own ({device.kind}): shaped to --rate; --no-shape if something"
            " else limits it"
        )
    elif not shape and options.has("rate") and device.link_rate > rate:
        report.note(
            f"{device.name} sends at {rate_text(device.link_rate)}: its queue does not grow at --rate unless"
            " something limits it to that; --shape would"
        )
    elif not shape and options.has("rate") and 0 < device.link_rate < rate:
        report.note(f"--rate {given} is above the {rate_text(device.link_rate)} of {device.name}")
    if not rate and "rtt" in profile.options and not options.has("k"):
        raise Refused(f"{device.name} reports no link speed: give --rate")
    return Line(rate, device.frame), shape


TICK = 64  # ns: htb's clock, as tc counts it; in 32 bits


def settle_burst(context: Context) -> int:
    """What the shaper lets through at once, in bytes"""
    options, line = context.options, context.line
    if not options.has("shape-burst"):
        # One packet, and no less than two ticks.
        burst = max(line.bytes_in(2 * TICK), line.frame)
    elif not context.shape:
        raise Refused("--shape-burst needs a shaper: --shape")
    else:
        burst = context.size("shape-burst")
        given = f"--shape-burst {options.given['shape-burst']}"
        if line.drain_ns(burst) >= TICK << 32:
            raise Refused(f"{given}: takes {line.drain_ns(burst) // 10**9} s at this rate; tc sets at most 274 s")
        if burst < line.frame:
            context.report.note(f"{given}: less than one packet; htb still lets one packet through")
    drain = line.drain_ns(burst)
    if drain < 5000:
        context.report.note(
            f"the shaper lets {time_text(drain)} worth through at once: exact, but timers of real machines are"
            " later than that; --shape-burst 50us if the rate is not reached"
        )
    if context.device.queues > 1:
        context.report.note(
            f"one shaper for all {context.device.queues} queues of {context.device.name}: one lock for all CPUs"
        )
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
        rate = rate_text(context.line.rate)
        return [
            context.qdisc(("root",), ROOT, "htb", "default", 1),
            tc("class", "add", "dev", device.name, "parent", ROOT + ":", "classid", ROOT + ":1", "htb",
               "rate", rate, "ceil", rate, "burst", burst, "cburst", burst,
               "quantum", min(max(device.frame, 1000), 200_000)),
            *queue.tree(("parent", ROOT + ":1"), f"{root + 1:x}"),
        ]
    if device.queues > 1:
        made = [context.qdisc(("root",), ROOT, "mq")]
        for number in range(1, device.queues + 1):
            made += queue.tree(("parent", f"{ROOT}:{number:x}"), f"{root + number:x}")
        return made
    return queue.tree(("root",), ROOT)


# --- steps --------------------------------------------------------------------------


class Present(NamedTuple):
    """What is there, by aspect."""

    states: dict[str, Json]
    default_qdisc: str | None


def text_of_tree(tree: Json) -> str:
    """What is lost, for people: kinds, classes and filters"""
    parts = [f"{q['kind']} {handle_of(q)}" for q in tree["qdiscs"] if handle_of(q) != "0:"]
    parts += tree["classes"]
    parts += [line for lines in tree["filters"].values() for line in lines]
    return "; ".join(parts)


def device_steps(place: Place, link: Link, want: Wanted, present: Present, old: DeviceRecord | None,
                 force: bool, report: Report) -> list[Step]:
    """The steps that make the wanted queue. If lowq-tc has set the device before, reset still puts
    back what was there before the first call."""
    steps = []
    foreign = foreign_clsact(place, link, want, present, old, report)
    for aspect in (SEGMENTS, QUEUE, CLSACT, FILTERS):
        standing = old.step(aspect.name) if old else None
        target = link.name
        if aspect is FILTERS:
            target = standing.target if standing else prefs_after(link, foreign, want)
            now: Json = FILTERS.among(present.states[CLSACT.name], target)
        else:
            now = present.states[aspect.name]
        if standing and not aspect.made_by_us(place, standing, now):
            if not aspect.is_back(standing.before, now):
                report.note(
                    f"the {aspect.name} of {link.name} was changed by someone else since; what is there now counts as"
                    " what was there before"
                )
            standing = None
        commands = commands_for(aspect, link, want, now, target if foreign else "")
        if commands is None and standing is None:
            continue
        step = Step(aspect.name, target, commands or [], SavedState(now, []))
        if standing:
            step.before, step.lost = standing.before, standing.lost
            step.earlier = SavedState(now, [
                command.on_device({old.name: link.name}) for command in standing.commands
                if command.argv[:3] not in DELETES
            ] if old else [])
            if commands is None:
                step.commands = aspect.undo(place, standing, standing.before, now)
        elif aspect is SEGMENTS:
            if now == want.gso_segs:
                continue
            step.before.commands = [set_segments(link, now)]
        elif aspect is QUEUE:
            previous(place, step, now, present.default_qdisc, force, report)
        steps.append(step)
    return steps


DELETES = (("tc", "qdisc", "del"), ("tc", "filter", "del"))


def foreign_clsact(place: Place, link: Link, want: Wanted, present: Present, old: DeviceRecord | None,
                   report: Report) -> Json:
    """The clsact of someone else, if there is one and filters are wanted at it"""
    now = present.states[CLSACT.name]
    standing = old.step(CLSACT.name) if old else None
    if now is None or not want.egress or (standing and CLSACT.made_by_us(place, standing, now)):
        return None
    if now["kind"] == "ingress":
        raise Refused(f"{link.name} has an ingress qdisc, beside which there can be no clsact; --simple needs none")
    if "egress_block" in now:
        raise Refused(f"{link.name} has a clsact whose egress filters other devices share; --simple needs none")
    report.note(
        f"{link.name} has a clsact: its filters come first, and what they let pass at once is taken for ECT"
    )
    return now


def prefs_after(link: Link, foreign: Json, want: Wanted) -> str:
    """Preferences of the wanted filters, behind those of someone else's"""
    last = max((pref for pref, _ in with_pref(foreign["egress"])), default=0) if foreign else 0
    if last + len(want.egress) > 0xFFFF:
        raise Refused(f"{link.name} has a clsact with a filter of preference {last}: none can come behind it")
    return " ".join(str(last + 1 + at) for at in range(len(want.egress)))


def wanted_at_all(step: Step, want: Wanted) -> bool:
    """False: the step only undoes what an earlier call did."""
    aspect = aspect_of(step)
    if aspect is SEGMENTS:
        return want.gso_segs is not None
    return aspect is QUEUE or any(command.argv[:3] == ("tc", "filter", "add") for command in step.commands)


def set_segments(link: Link, number: int) -> Command:
    return Command(("ip", "link", "set", "dev", link.name, "gso_max_segs", str(number)))


def commands_for(aspect: Aspect, link: Link, want: Wanted, now: Json, prefs: str) -> list[Command] | None:
    """None: this is not wanted. With prefs filters go to someone else's clsact."""
    if aspect is SEGMENTS:
        return [set_segments(link, want.gso_segs)] if want.gso_segs is not None else None
    if aspect is CLSACT:
        clear = [tc("qdisc", "del", "dev", link.name, "clsact")] if now else []
        made = [*clear, tc("qdisc", "add", "dev", link.name, "clsact"), *want.egress]
        return made if want.egress and not prefs else None
    if aspect is FILTERS:
        made = FILTERS.clear(link.name, now) + [
            with_word(command, "pref", pref) for command, pref in zip(want.egress, prefs.split())
        ]
        return made if want.egress and prefs else None
    clear = [tc("qdisc", "del", "dev", link.name, "root")] if root_handle(now) != "0:" else []
    return clear + want.tree


def with_word(command: Command, name: str, value: str) -> Command:
    """The command with another value after the word"""
    at = command.argv.index(name) + 1
    return command._replace(argv=(*command.argv[:at], value, *command.argv[at + 1:]))


def previous(place: Place, step: Step, now: Json, default: str | None, force: bool, report: Report) -> None:
    """How the user's own queue comes back; refused where it cannot, unless forced."""
    link = place.link
    assert link
    try:
        if root_handle(now) == ROOT + ":":
            remove = tc("qdisc", "del", "dev", link.name, "root").text(place.space.name)
            raise CannotRemake(f"'{ROOT}:' of lowq-tc, of which there is no record ('{remove}' removes it)")
        step.before.commands = remake(now, link.name, default)
    except CannotRemake as reason:
        if not force:
            raise Refused(
                f"the root qdisc of {link.name}, {reason}, cannot be put back exactly by 'reset'; --force replaces"
                " it anyway"
            ) from None
        give_up(step, now, str(reason), report)


def give_up(step: Step, now: Json, reason: str, report: Report) -> None:
    step.before.commands = []
    step.lost = text_of_tree(now)
    report.note(
        f"what was there, {reason}, cannot be put back exactly: reset will leave the kernel's default."
        f" Lost is: {step.lost}"
    )
