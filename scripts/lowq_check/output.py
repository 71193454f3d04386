# SPDX-License-Identifier: GPL-2.0
"""The result, for people and for programs."""

from __future__ import annotations

from lowq_common.streams import printable
from lowq_common.values import Json
from lowq_common.version import version

from .facts import Facts
from .finding import FINE, NOTE, SKIPPED, WRONG, Finding

SCHEMA = 1
WORDS = {FINE: "ok", NOTE: "note", WRONG: "WRONG", SKIPPED: "skipped"}


def as_json(here: Facts, findings: list[Finding], measured: Json, status: int) -> Json:
    return {
        "lowq_check": SCHEMA, "version": version(), "status": status,
        "findings": [one.to_json() for one in findings], "host": here.to_json(), "measured": measured,
    }


def table(findings: list[Finding]) -> str:
    """A line each; below what is not fine, its name and what to do about it"""
    findings = [one._replace(says=printable(one.says), mend=printable(one.mend)) for one in findings]
    places = [f"{one.where}: {one.check}" for one in findings]
    width = min(44, max(map(len, places), default=0))
    lines = []
    for one, place in zip(findings, places):
        lines.append(f"{WORDS[one.state]:<8}{place:<{width}}  {one.says}")
        if one.fault:
            mend = f": {one.mend}" if one.mend else ""
            lines.append(f"{'':<8}{'':<{width}}  [{one.fault}]{mend}")
    count = sum(one.state == WRONG for one in findings)
    lines.append(f"{count} wrong" if count else "nothing wrong")
    return "\n".join(lines)
