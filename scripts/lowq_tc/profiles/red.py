# SPDX-License-Identifier: GPL-2.0
"""red: RED with the thresholds that the user gives."""

from __future__ import annotations

from lowq_common.errors import Refused

from .base import Context, Profile, Queue
from .queues import advise, red, settle_limit, settle_red


def compute(context: Context) -> Queue:
    line, options, report = context.line, context.options, context.report
    for name in ("min", "max"):
        if not options.has(name):
            raise Refused(f"red: give --{name}")
    low, high = context.size("min"), context.size("max")
    report.explain(f"min {line.queue_text(low)}, max {line.queue_text(high)}")
    probability = settle_red(context, low, high, "0.1")
    # tc: P / (max - min) has to be more than 2^-31
    if (high - low) * 10**9 >= round(float(probability) * 10**9) * 2**31:
        raise Refused(f"--max {options.given['max']}: too far above --min for this probability")
    if options.has("no-ecn") and (options.has("nodrop") or options.has("harddrop")):
        raise Refused("--nodrop and --harddrop say what ECN does; they do not go with --no-ecn")
    limit = settle_limit(context, high, "--max")
    burst: int | str = "auto"
    text = "burst as Floyd recommends"
    if options.has("burst"):
        burst = int(options.values["burst"])
        least = low // line.frame + 1
        if burst < least:
            raise Refused(f"--burst {options.given['burst']}: must be at least {least} packets with this --min")
        text = f"burst {burst} packets"
    report.explain(f"probability up to {probability}, {text}")
    advise(context, low)

    flags = [] if options.has("no-ecn") else ["ecn"]
    flags += [name for name in ("nodrop", "harddrop") if options.has(name)]
    return Queue(lambda place, handle: [red(context, place, handle, limit, low, high, probability, burst, *flags)])


PROFILE = Profile(
    "red", "RED: marks with growing probability between --min and --max",
    ("min", "max", "probability", "limit", "burst", "nodrop", "harddrop", "no-ecn"), compute,
)
