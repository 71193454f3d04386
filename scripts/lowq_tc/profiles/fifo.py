# SPDX-License-Identifier: GPL-2.0
"""fifo: drop-tail without marks, the baseline."""

from __future__ import annotations

from lowq_common.errors import Refused
from lowq_common.units import Size

from .base import Context, Profile, Queue


def compute(context: Context) -> Queue:
    line, options = context.line, context.options
    context.record(rate_bps=line.rate, frame_bytes=line.frame)
    limit: Size = options.get("limit") or Size(1000, "p")
    words: tuple[str, str, int]
    if limit.unit == "p":
        if limit.amount >= 1 << 32:
            raise Refused(f"--limit {options.given['limit']}: more packets than pfifo counts")
        words = ("pfifo", "limit", limit.amount)
        context.record(limit_packets=limit.amount)
        context.report.explain(f"limit {limit.amount} packets, whatever their size")
    else:
        size = context.size("limit")
        if size < line.frame:
            raise Refused(f"--limit {options.given['limit']}: less than one packet ({line.frame} bytes)")
        words = ("bfifo", "limit", size)
        context.record(limit_bytes=size)
        context.report.explain(f"limit {line.queue_text(size)}")
    return Queue(lambda place, handle: [context.qdisc(place, handle, *words)])


PROFILE = Profile("fifo", "drop-tail without marks: the baseline", ("limit",), compute)
