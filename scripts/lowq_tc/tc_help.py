# SPDX-License-Identifier: GPL-2.0
"""What this host's tc can do. Asks its help, which talks to no kernel."""

from __future__ import annotations

import re
from functools import lru_cache

from lowq_common.system import output


def tc_version() -> str:
    said = output(["tc", "-V"])[1]
    match = re.search(r"iproute2-([^,\s]+)", said)
    return match[1] if match else said.strip()


@lru_cache
def rounds_up() -> bool:
    match = re.match(r"(\d+)\.(\d+)", tc_version())
    return bool(match) and (int(match[1]), int(match[2])) >= (6, 14)


def tc_offers(kind: str, word: str, plugins: str = "") -> bool:
    """Does this tc know the word for this kind? Asks its help, which talks to no kernel."""
    extra = ["env", f"TC_LIB_DIR={plugins}"] if plugins else []
    _, out, said = output([*extra, "tc", "qdisc", "add", "dev", "lo", "root", kind, "help"])
    return word in out + said
