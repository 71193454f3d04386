# SPDX-License-Identifier: GPL-2.0
"""dctcp: one step (RFC 8257). What arrives above K is marked."""

from __future__ import annotations

from .base import Context, Control, Host, Profile, Queue
from .queues import Step, step_probes


def compute(context: Context) -> Queue:
    step = Step(context)
    return Queue(lambda place, handle: [step.queue(place, handle)])


def asks_for_ecn(host: Host) -> None:
    host.ecn = (1, 3, 4)
    host.route_features.append("ecn")


def mainline(host: Host) -> None:
    host.modules.append("tcp_dctcp")
    asks_for_ecn(host)


def reference(host: Host) -> None:
    host.modules.append("tcp_dctcp_ref")
    asks_for_ecn(host)


PROFILE = Profile(
    "dctcp", "one step: what arrives above K is marked (RFC 8257)",
    ("rtt", "k", "no-tso", "coalesce", "limit", "aqm", "nodrop"), compute, step_probes, Step.AQM,
)
CONTROLS = (
    Control("dctcp", "mainline's DCTCP", (), mainline),
    Control("dctcp_ref", "DCTCP by the letter of RFC 8257", (), reference),
)
