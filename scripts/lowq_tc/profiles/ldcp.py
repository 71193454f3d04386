# SPDX-License-Identifier: GPL-2.0
"""ldcp: one queue with two profiles (LDCP draft 2.1 and 2.3).

ECT packets are marked with a probability that grows from --min to --max, and dropped only
when the queue is full. Not-ECT packets, those of a first RTT, are dropped from --k on.

Made of stock parts: gred in WRED mode, whose virtual queues share one backlog when they
have the same prio, and filters that pick the virtual queue by the ECN field.
"""

from __future__ import annotations

from lowq_common.errors import Refused
from lowq_common.values import LOWQ_PREFS

from ..command import Command
from .base import Context, Place, Profile, Queue
from .queues import MAX_RED, advise, held_back, looks_at, red, red_words, settle_limit, settle_red


def threshold(context: Context, option: str, bdp: int, more: int, divisor: int, least: int,
              name: str, formula: str) -> int:
    """As given, or as a part of the BDP (in packets), at least so many packets, and more.
    -> bytes"""
    if context.options.has(option):
        size = context.size(option)
        context.report.explain(f"{name} = {context.line.queue_text(size)}, as given")
    else:
        if not bdp:
            raise Refused(f"give --rtt, from which {name} is computed, or --{option}")
        size = (max(least, (bdp + divisor - 1) // divisor) + more) * context.line.frame
        with_more = f", and {more} for what is held back" if more else ""
        context.report.explain(f"{name} = {context.line.queue_text(size)} ({formula}, at least {least} packets{with_more})")
    context.report.params[option + "_bytes"] = size
    return size


def compute(context: Context) -> Queue:
    line, options, report = context.line, context.options, context.report
    context.record(rate_bps=line.rate, frame_bytes=line.frame)
    bdp = 0
    if line.rate and options.has("rtt"):
        context.record(rtt_ns=options.values["rtt"])
        bdp = line.packets(line.bytes_in(options.values["rtt"]))
    if options.has("coalesce") and options.has("min") and options.has("max"):
        raise Refused("--coalesce is for thresholds that are computed, not for --min and --max")
    # LDCP's senders pace: of what arrives while acknowledgements are held back, half waits
    more = line.packets(held_back(context)) // 2
    low = threshold(context, "min", bdp, more, 16, 4, "K_min", "BDP / 16")
    high = threshold(context, "max", bdp, more, 2, 32, "K_max", "BDP / 2")
    if low == high:
        raise Refused(f"--min ({low} bytes) must be below --max")
    probability = settle_red(context, low, high, "1")
    report.explain(f"P_max = {probability}")
    if options.has("simple"):
        queue = simple(context, low, high, probability)
    else:
        # a first RTT of one BDP finds room; without --rtt there is only K_max to go by
        k = threshold(context, "k", bdp, more, 1, 64, "K", "the BDP") if bdp or options.has("k") else high
        queue = wred(context, low, high, k, probability)
    looks_at(context)
    report.not_honoured("marks independent of each other: RED spaces them by 1 to 1 / p packets, alike, which marks 2p / (1 + p)")
    advise(context, low)
    return queue


def simple(context: Context, low: int, high: int, probability: str) -> Queue:
    if context.options.has("k"):
        raise Refused("--k is of the profile for Not-ECT, which --simple leaves out")
    context.report.explain("one profile: red, which drops Not-ECT packets where it marks ECT ones")
    limit = settle_limit(context, high, "K_max")
    return Queue(lambda place, handle: [red(context, place, handle, limit, low, high, probability, "step", "ecn")])


def wred(context: Context, low: int, high: int, k: int, probability: str) -> Queue:
    if k >= MAX_RED:
        raise Refused("--k: red takes less than 512 MB")
    context.record(k_bytes=k)
    context.report.explain(f"Not-ECT packets that find {context.line.queue_text(k)} are dropped")
    limit = settle_limit(context, max(k, high), "K and K_max")
    context.report.explain("gred in WRED mode: virtual queue 1 for ECT and what is not IP, 2 for Not-ECT, chosen by filters at"
                           " clsact")
    filters = [
        context.filter("egress", "protocol", protocol, "pref", pref, "flower", "ip_tos", "0x0/0x3", "classid", ":2")
        for protocol, pref in (("ip", LOWQ_PREFS[0]), ("ipv6", LOWQ_PREFS[1]))
    ]
    filters.append(context.filter("egress", "protocol", "all", "pref", LOWQ_PREFS[2], "matchall", "classid", ":1"))

    def virtual(place: Place, handle: str, number: int, words: list[str], *flags: str) -> Command:
        return Command((
            "tc", "qdisc", "change", "dev", context.device.name, *place, "handle", handle + ":",
            "gred", "vq", str(number), "prio", "1", *words, *flags,
        ))

    def tree(place: Place, handle: str) -> list[Command]:
        return [
            context.qdisc(place, handle, "gred", "setup", "vqs", 3, "default", 1, "grio", "limit", limit),
            virtual(place, handle, 1, red_words(context, limit, low, high, probability, "step"), "ecn"),
            virtual(place, handle, 2, red_words(context, limit, k, k, "1", "step")),
        ]

    return Queue(tree, tuple(filters))


PROFILE = Profile(
    "ldcp", "WRED: ECT is marked from --min to --max, Not-ECT dropped from --k on (LDCP)",
    ("rtt", "coalesce", "min", "max", "probability", "k", "limit", "simple", "exact"), compute,
)
