# SPDX-License-Identifier: GPL-2.0
"""Names that a shell may complete, read without running a program."""

from __future__ import annotations

import os


def names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def controls_there() -> list[str]:
    try:
        with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []
