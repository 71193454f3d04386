# SPDX-License-Identifier: GPL-2.0
"""What values from outside are: JSON, and words to be matched."""

from __future__ import annotations

import re
from typing import Any

Json = Any


def matched(pattern: str, text: str) -> re.Match[str] | None:
    """of the whole text, which is ASCII"""
    return re.fullmatch(pattern, text, re.ASCII)
