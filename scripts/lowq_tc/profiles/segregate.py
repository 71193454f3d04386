# SPDX-License-Identifier: GPL-2.0
"""segregate: a queue of its own for DCTCP, chosen by DSCP, beside a drop-tail queue for all
the rest (RFC 8257 section 5). The step is dctcp's."""

from __future__ import annotations

from lowq_common.errors import Refused

from ..command import Command
from .base import Context, Place, Profile, Queue
from .queues import TO_REST, Step, quanta, rest_limit, step_probes


def compute(context: Context) -> Queue:
    options, report, line = context.options, context.report, context.line
    sched = options.get("sched", "ets")
    if sched == "prio" and options.has("share"):
        raise Refused("--share goes with --sched ets; prio serves DCTCP first")
    share: int = options.get("share", 50)
    dscp: int = options.get("dscp", 10)
    context.record(sched=sched, dscp=dscp)
    top: tuple[object, ...]
    if sched == "ets":
        context.record(share_percent=share)
        report.explain(f"DSCP {dscp} has its own queue, with at least {share} % of the link while both wait")
        top = ("ets", "bands", 2, "quanta", *quanta(line.frame, share), "priomap", *TO_REST[2])
    else:
        report.explain(f"DSCP {dscp} has its own queue and goes first")
        report.note(f"prio lets the DSCP {dscp} queue starve the rest")
        top = ("prio", "bands", 2, "priomap", *TO_REST[2])
    step = Step(context)
    rest = rest_limit(context, step.limit)
    report.explain(f"the rest, ARP and all that is not IP included: drop-tail, limit {line.queue_text(rest)}")
    report.note(f"the hosts have to set DSCP {dscp} on DCTCP's packets, ACKs included")

    def tree(place: Place, handle: str) -> list[Command]:
        tos = f"0x{dscp << 2:02x}"
        to = ("parent", handle + ":", "protocol")
        return [
            context.qdisc(place, handle, *top),
            step.queue(("parent", handle + ":1"), ""),
            context.qdisc(("parent", handle + ":2"), "", "bfifo", "limit", rest),
            context.filter(*to, "ip", "pref", 1, "u32", "match", "ip", "dsfield", tos, "0xfc",
                           "classid", handle + ":1"),
            context.filter(*to, "ipv6", "pref", 2, "u32", "match", "ip6", "priority", tos, "0xfc",
                           "classid", handle + ":1"),
        ]

    return Queue(tree)


PROFILE = Profile(
    "segregate", "the step for one DSCP, drop-tail for the rest (RFC 8257 5)",
    ("rtt", "k", "no-tso", "coalesce", "limit", "aqm", "nodrop", "exact", "dscp", "share", "sched", "rest-limit"),
    compute, step_probes, Step.AQM,
)
