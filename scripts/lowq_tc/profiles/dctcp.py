# SPDX-License-Identifier: GPL-2.0
"""dctcp: one step (RFC 8257). What arrives above K is marked."""

from __future__ import annotations

from .base import Context, Profile, Queue
from .queues import Step, step_probes


def compute(context: Context) -> Queue:
    step = Step(context)
    return Queue(lambda place, handle: [step.queue(place, handle)])


PROFILE = Profile(
    "dctcp", "one step: what arrives above K is marked (RFC 8257)",
    ("rtt", "k", "no-tso", "coalesce", "limit", "aqm", "nodrop", "exact"), compute, step_probes, Step.AQM,
)
