# SPDX-License-Identifier: GPL-2.0
"""The version: dkms.conf has it, in the source tree or where "make install" puts that."""

from __future__ import annotations

import os
import re

HERE = os.path.dirname(os.path.realpath(__file__))


def version() -> str:
    for folder in ("../..", "../tree"):
        try:
            with open(os.path.join(HERE, folder, "dkms.conf"), encoding="utf-8") as file:
                match = re.search(r'(?m)^PACKAGE_VERSION="?([^"\n]+)', file.read())
        except OSError:
            continue
        if match:
            return match[1]
    return "unknown"
