# SPDX-License-Identifier: GPL-2.0
"""Stand-ins for parts of the library whose loading would be most of the time of help and of
completion: typing, which loads re. Other modules use the library itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match
    from typing import Any
    from typing import NamedTuple as NamedTuple

    Json = Any
else:
    Json = object

    class NamedTuple(tuple):
        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls.defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(lambda self, at=at: self[at]))

        def __new__(cls, *given, **named):
            known = {**cls.defaults, **dict(zip(cls._fields, given)), **named}
            return tuple.__new__(cls, [known[name] for name in cls._fields])

        def __getnewargs__(self):
            return tuple(self)

        def _replace(self, **named):
            return type(self)(**{**dict(zip(self._fields, self)), **named})


def matched(pattern: str, text: str) -> Match[str] | None:
    """of the whole text, which is ASCII"""
    import re

    return re.fullmatch(pattern, text, re.ASCII)
