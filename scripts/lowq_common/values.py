# SPDX-License-Identifier: GPL-2.0
"""What values from outside are: JSON, words to be matched, and the mark of a queue of lowq-tc's."""

from __future__ import annotations

import re
from typing import Any

Json = Any

LOWQ_ROOT = "10f0:"  # the handle at the root of every queue that lowq-tc makes
LOWQ_PREFS = (0xF0F1, 0xF0F2, 0xF0F3)  # of its filters at clsact: behind those of others
INGRESS_PREF = 0xF0F4  # of that which redirects what arrives


def label(text: str) -> str:
    """The value of a label of Prometheus"""
    return text.replace("\\", r"\\").replace('"', r'\"').replace("\n", r"\n").encode("utf-8", "replace").decode()


def matched(pattern: str, text: str) -> re.Match[str] | None:
    """of the whole text, which is ASCII"""
    return re.fullmatch(pattern, text, re.ASCII)
