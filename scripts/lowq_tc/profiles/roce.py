# SPDX-License-Identifier: GPL-2.0
"""roce: the congestion point of RoCEv2 congestion management. CNPs go first, RoCEv2 (UDP
4791) goes through RED, and all the rest through a drop-tail queue."""

from __future__ import annotations

from lowq_common.errors import Refused

from ..command import Command
from .base import Context, Place, Profile, Queue
from .queues import TO_REST, advise, looks_at, quanta, red, rest_limit, settle_limit, settle_red

PORT = 4791
CNP = "0x81"  # a CNP is known by its opcode, never by its ECN field


def compute(context: Context) -> Queue:
    line, options, report = context.line, context.options, context.report
    defaults = not (options.has("min") and options.has("max"))
    if defaults and not line.rate:
        raise Refused("roce: give --rate, or --min and --max")
    # 16 and 80 us, tried with DCQCN's defaults at 10 Gb/s; at least 8 and 32 packets
    low = context.size("min") if options.has("min") else max(line.bytes_in(16_000), 8 * line.frame)
    high = context.size("max") if options.has("max") else max(line.bytes_in(80_000), 4 * low)
    probability = settle_red(context, low, high, "0.1")
    report.explain(f"RED for UDP {PORT}: min {line.queue_text(low)}, max {line.queue_text(high)}"
                   f"{' (default)' if defaults else ''}, probability up to {probability}")
    limit = settle_limit(context, high, "--max")
    share: int = options.get("share", 50)
    context.record(share_percent=share)
    report.explain(f"CNPs go first; RoCEv2 has at least {share} % of the link while both wait")
    rest = rest_limit(context, limit)
    looks_at(context)
    advise(context, low)

    def tree(place: Place, handle: str) -> list[Command]:
        made = [
            context.qdisc(place, handle, "ets", "bands", 3, "strict", 1, "quanta", *quanta(line.frame, share),
                          "priomap", *TO_REST[3]),
            context.qdisc(("parent", handle + ":1"), "", "bfifo", "limit", 100 * line.frame),
            red(context, ("parent", handle + ":2"), "", limit, low, high, probability, "step", "ecn", "nodrop"),
            context.qdisc(("parent", handle + ":3"), "", "bfifo", "limit", rest),
        ]
        # the opcode is the first byte behind IP and UDP headers
        for family, protocol, pref, at in (("ip", "ip", 1, 28), ("ipv6", "ip6", 3, 48)):
            match = ("u32", "match", protocol, "protocol", 17, "0xff", "match", protocol, "dport", PORT, "0xffff")
            to = ("parent", handle + ":", "protocol", family, "pref")
            made.append(context.filter(*to, pref, *match, "match", "u8", CNP, "0xff", "at", at,
                                       "classid", handle + ":1"))
            made.append(context.filter(*to, pref + 1, *match, "classid", handle + ":2"))
        return made

    return Queue(tree)


PROFILE = Profile(
    "roce", "RED for RoCEv2, CNPs first, drop-tail for the rest (DCQCN)",
    ("min", "max", "probability", "limit", "share", "rest-limit", "exact"), compute,
)
