# SPDX-License-Identifier: GPL-2.0
"""What lowq-tc has set, as its records say, for programs that only look."""

from __future__ import annotations

import json
import os

from .system import boot_id


def folder() -> str:
    return os.path.abspath(os.environ.get("LOWQ_STATE_DIR") or "/run/lowq")


def parameters() -> dict[str, str]:
    """MODULE.PARAMETER -> the value that lowq-tc gave it; nothing where this user may not read it"""
    try:
        with open(folder() + "/records.json", encoding="utf-8") as file:
            made = json.load(file)
        if made["boot"] != boot_id():
            return {}
        return {thing["target"]: str(thing["ours"][-1]) for one in made["spaces"].values() for thing in one["things"]
                if thing["kind"] == "parameter"}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
