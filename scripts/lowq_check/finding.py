# SPDX-License-Identifier: GPL-2.0
"""One line of the result."""

from __future__ import annotations

from typing import NamedTuple

from lowq_common.values import Json

FINE, NOTE, WRONG, SKIPPED = "fine", "note", "wrong", "skipped"

# conntrack does not track probes and their answers
LET_OUT = "nft insert rule inet filter output ct state untracked ip dscp 23 accept (ip6 dscp for IPv6)"
# nor does NAT translate them
NO_NAT = "telemetry ends where NAT translates: choose hpccpp between addresses that stay as they are, not for this way"
# what takes a probe to a published port, which the stack would answer by a RST
TAKE_IN = "sudo lowq-tc host hpccpp, on the host that publishes the port or forwards it"


class Finding(NamedTuple):
    check: str  # what was looked at
    state: str
    says: str
    fault: str = ""  # a name for the fault, which does not change between versions
    mend: str = ""  # what to type or to change
    where: str = "here"  # "here", "peer", or an address of the path

    def to_json(self) -> Json:
        return self._asdict()


def fine(check: str, says: str) -> Finding:
    return Finding(check, FINE, says)


def note(check: str, fault: str, says: str, mend: str = "") -> Finding:
    return Finding(check, NOTE, says, fault, mend)


def wrong(check: str, fault: str, says: str, mend: str = "") -> Finding:
    return Finding(check, WRONG, says, fault, mend)


def skipped(check: str, says: str) -> Finding:
    return Finding(check, SKIPPED, says)


def status(findings: list[Finding]) -> int:
    return 1 if any(one.state == WRONG for one in findings) else 0
