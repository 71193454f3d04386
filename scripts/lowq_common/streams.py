# SPDX-License-Identifier: GPL-2.0
"""Standard output and standard error: closed, or where nothing can be written."""

from __future__ import annotations

import io
import os
import sys
from typing import Callable

from .errors import Refused


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


def printable(text: str) -> str:
    """A text, parts of which may come from elsewhere, as it may be printed"""
    return "".join(char if char.isprintable() else "?" for char in text)[:1000]


def complain(program: str, text: str) -> None:
    print(f"{program}:", printable(text.partition("\n")[0]), file=sys.stderr)


def guarded(program: str, run: Callable[[list[str]], int], argv: list[str], interrupted: int) -> int:
    """A program that changes nothing: what it cannot do is one line and exit status 2"""
    prepare("backslashreplace")
    try:
        status = run(argv)
        sys.stdout.flush()
        return status
    except Refused as error:
        complain(program, str(error))
    except OSError as error:
        if text := failure(error):
            complain(program, text)
    except KeyboardInterrupt:
        return interrupted
    return 2
