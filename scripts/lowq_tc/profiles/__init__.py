# SPDX-License-Identifier: GPL-2.0
"""Which profiles and controls there are."""

from __future__ import annotations

from . import dctcp, fifo, hpccpp, ldcp, prague, red, roce, segregate
from .base import Control, Profile

PROFILES: dict[str, Profile] = {
    module.PROFILE.name: module.PROFILE
    for module in (dctcp, fifo, hpccpp, ldcp, prague, red, roce, segregate)
}
CONTROLS: dict[str, Control] = {
    control.name: control
    for controls in (dctcp.CONTROLS, hpccpp.CONTROLS, ldcp.CONTROLS, prague.CONTROLS, roce.CONTROLS)
    for control in controls
}
