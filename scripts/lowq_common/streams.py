# SPDX-License-Identifier: GPL-2.0
"""Standard output and standard error: closed, or where nothing can be written."""

from __future__ import annotations

import io
import os
import sys


def prepare(errors: str) -> None:
    """errors: what becomes of bytes that are no text. What is closed takes everything."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def failure(error: OSError) -> str:
    """What to say of it; nothing if who read standard output has gone. What that did not take is not tried again
    when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return ""
    return f"{error.filename + ': ' if isinstance(error.filename, str) else ''}{error.strerror or error}"
