# SPDX-License-Identifier: GPL-2.0
"""prague: a queue for L4S. ECT(1) is marked at a very short delay; the rest has a queue and
a law of its own, coupled to it (dualpi2, RFC 9332), or of its flow (fq_codel)."""

from __future__ import annotations

from lowq_common.errors import Refused
from lowq_common.units import time_text

from ..options import Options
from .base import Context, Profile, Queue

STEP_US, TARGET_US = 1000, 15000  # the kernel's
VARYING_STEP_US = 10000  # bench/run prague-field-links: use against delay
AQM = ("dualpi2", "fq_codel")


def compute(context: Context) -> Queue:
    aqm = context.options.get("aqm", "dualpi2")
    context.record(aqm=aqm, rate_bps=context.line.rate)
    words = fq_codel(context) if aqm == "fq_codel" else dualpi2(context)
    return Queue(lambda place, handle: [context.qdisc(place, handle, aqm, *words)])


def whole_us(options: Options, name: str) -> int:
    ns: int = options.values[name]
    if ns % 1000:
        raise Refused(f"--{name} {options.given[name]}: tc sets whole microseconds")
    return ns // 1000


def packets_us(context: Context, packets: float) -> int:
    """Their time at the rate, rounded up; 0 if the rate is not known"""
    if not context.line.rate:
        return 0
    return -int(-packets * context.line.frame * 8 * 1_000_000 // context.line.rate)


def least_step_us(context: Context) -> int:
    return VARYING_STEP_US if context.options.has("varying") else STEP_US


def is_slow(context: Context) -> bool:
    """At low rates the least step would mark every packet of L4S that waits while the other queue's
    packet is sent."""
    return not context.options.has("step") and packets_us(context, 2) > least_step_us(context)


def step_us(context: Context, slow_packets: float) -> int:
    """--step, or 1 ms (--varying: 10 ms), but at low rates at least the time of slow_packets"""
    if context.options.has("step"):
        if context.options.has("varying"):
            raise Refused("--varying sets the step: it does not go with --step")
        return whole_us(context.options, "step")
    if not is_slow(context):
        return least_step_us(context)
    step = max(packets_us(context, slow_packets), least_step_us(context))
    context.report.explain(f"ECT(1) should be marked above {time_text(step * 1000)}: {slow_packets:g} packets take"
                           f" {time_text(packets_us(context, slow_packets) * 1000)}")
    return step


def target_us(context: Context) -> int:
    """--target, or 15 ms, but at least the time of two packets: a target that a queue of one packet
    exceeds marks and drops more and more, until nothing of L4S arrives."""
    if context.options.has("target"):
        return whole_us(context.options, "target")
    return max(packets_us(context, 2), TARGET_US)


def packets(context: Context, name: str) -> int:
    return context.line.packets(context.size(name))


def dualpi2(context: Context) -> list[object]:
    options, report = context.options, context.report
    words: list[object] = []
    if options.has("limit"):
        words += ["limit", packets(context, "limit")]
    # bench/run prague-slow: shorter queues than with two packets' time, and the same shares
    step = step_us(context, 1.5)
    if options.has("step") or step != STEP_US:
        words += ["step_thresh", f"{step}us"]
    if options.has("step-min") or is_slow(context):
        words += ["min_qlen_step", options.get("step-min", 1)]
    target = target_us(context)
    if options.has("target") or target != TARGET_US:
        words += ["target", f"{target}us"]
    if options.has("coupling"):
        if options.values["coupling"] > 255:
            raise Refused(f"--coupling {options.given['coupling']}: must be 1 to 255")
        words += ["coupling_factor", options.values["coupling"]]
    if context.tc.offers.get(("dualpi2", "step_thresh")):
        text = "".join(", " + " ".join(map(str, words)) for _ in words[:1])
        report.explain(f"dualpi2{text}; what is not given is the kernel's")
        return words
    # A tc that does not know dualpi2 can still add it, with the kernel's options.
    for name in ("limit", "step", "varying", "step-min", "target", "coupling"):
        if options.has(name):
            report.not_honoured(f"--{name} {options.given[name]}".rstrip() + f": this tc ({context.tc.version}) does not know"
                                " dualpi2's options; it has the kernel's")
    report.explain("dualpi2 as the kernel sets it: ECT(1) marked above 1 ms, target 15 ms for the rest, coupling factor 2,"
                   " limit 10000 packets")
    return []


def fq_codel(context: Context) -> list[object]:
    options, report = context.options, context.report
    for name in ("coupling", "step-min"):
        if options.has(name):
            raise Refused(f"--{name} goes with --aqm dualpi2")
    context.tc.require("fq_codel", "ce_threshold_selector")
    step = step_us(context, 2)
    limit = packets(context, "limit") if options.has("limit") else 10240
    words: list[object] = ["limit", limit, "ecn", "ce_threshold", f"{step}us", "ce_threshold_selector", "0x01/0x03"]
    if options.has("target"):
        target = whole_us(options, "target")
        words += ["target", f"{target}us", "interval", f"{20 * target}us"]
    context.record(step_ns=step * 1000)
    report.explain(f"fq_codel: a queue for each flow; ECT(1) that waited longer than {time_text(step * 1000)} is marked, CoDel's"
                   " law above that")
    report.note("CoDel's law marks ECT(1) too, when its target is missed for long")
    return words


def probes(options: Options) -> list[tuple[str, str]]:
    if options.get("aqm", "dualpi2") == "fq_codel":
        return [("fq_codel", "ce_threshold_selector")]
    return [("dualpi2", "step_thresh")]


PROFILE = Profile(
    "prague", "L4S: ECT(1) marked at 1 ms or less, the rest apart (RFC 9332)",
    ("limit", "aqm", "step", "varying", "step-min", "target", "coupling"), compute, probes, AQM,
)
