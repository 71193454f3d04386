# SPDX-License-Identifier: GPL-2.0
"""Which profiles there are."""

from __future__ import annotations

from . import dctcp, fifo, hpccpp, ldcp, prague, red, roce, segregate
from .base import Profile

PROFILES: dict[str, Profile] = {
    module.PROFILE.name: module.PROFILE
    for module in (dctcp, fifo, hpccpp, ldcp, prague, red, roce, segregate)
}
