# SPDX-License-Identifier: GPL-2.0
"""hpccpp: a port that stamps telemetry into probes (sch_int), over a drop-tail queue."""

from __future__ import annotations

from lowq_common.errors import NotReady, Refused
from lowq_common.units import rate_text

from ..command import Command
from .base import Context, Place, Profile, Queue
from .queues import settle_limit

ETHERNET_HEADER = 14  # bytes


def compute(context: Context) -> Queue:
    device, options, report, line = context.device, context.options, context.report, context.line
    if not line.rate:
        raise NotReady(f"{device.name} reports no link speed: give --rate")
    if line.rate < 10_000_000:
        given = options.given.get("rate", rate_text(line.rate))
        raise Refused(f"--rate {given}: sch_int stamps 10mbit to 1600gbit")
    if device.queues > 1 and not context.shape:
        report.note(f"{device.queues} queues, each with an int and the whole limit: each stamps the load of the whole port;"
                    " when 'ethtool -L' changes their number, set it again, else nothing is stamped")
    context.record(rate_bps=line.rate)
    words: list[object] = ["rate", rate_text(line.rate)]
    text = f"stamps as a port of {rate_text(line.rate)}"
    if options.has("switch-id"):
        number = options.values["switch-id"]
        if not 1 <= number <= 4095:
            raise Refused(f"--switch-id {options.given['switch-id']}: must be 1 to 4095")
        words += ["switch-id", number]
        context.record(switch_id=number)
        text += f", switch ID {number}"
    else:
        report.note(f"no --switch-id: one is made from the address of {device.name}; two equal IDs on a path hide a change of"
                    " path")
    if options.has("dscp"):
        words += ["dscp", options.values["dscp"]]
        report.note(f"the hosts need it, too: lowq-tc host hpccpp --dscp {options.given['dscp']}")
    context.record(dscp=options.get("dscp", 23))
    for name, says in (("relative", "its real rate hidden"), ("sojourn", "queue as the wait of the probe")):
        if options.has(name):
            words.append(name)
            text += f", {says}"
    # A shaper's rate is of bytes as tc counts them; a link's is of all that is on the wire.
    if not context.shape and not device.software and device.frame - device.mtu == ETHERNET_HEADER:
        context.tc.require("int", "ethernet")
        words.append("ethernet")
        text += ", with preamble, FCS and gap of each frame"
    report.explain(f"{text}; probes have DSCP {options.get('dscp', 23)}")
    context.tc.require("int", "rate")
    limit = settle_limit(context, max(line.bytes_in(10_000), line.frame), "10 us at the rate")
    if not context.shape and not device.software:
        report.note(f"packets in the ring of {device.name} are not in the queue that is stamped: make the ring short, or shape"
                    " a little below the line rate (--shape)")

    def tree(place: Place, handle: str) -> list[Command]:
        return [
            context.qdisc(place, handle, "int", *words),
            context.qdisc(("parent", handle + ":1"), "", "bfifo", "limit", limit),
        ]

    return Queue(tree)


PROFILE = Profile(
    "hpccpp", "telemetry for HPCC++: the port stamps its load into probes (sch_int)",
    ("rtt", "limit", "switch-id", "dscp", "relative", "sojourn"), compute,
    lambda options: [("int", "rate"), ("int", "ethernet")],
)
