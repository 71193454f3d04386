# SPDX-License-Identifier: GPL-2.0
"""The kinds of things that lowq-tc changes, a class for each: how it is read, when two states are
the same, whether a state was made by lowq-tc, which commands undo it, how it is described.

The journal's steps name them; nothing else tells one kind from another by its name.
"""

from __future__ import annotations

from ..journal import Step
from .base import Aspect
from .clsact import Clsact, Filters
from .module import Allowed, Module
from .queue import Queue
from .route import Route
from .setting import Parameter, Segments, Sysctl

QUEUE, CLSACT, FILTERS, SEGMENTS = Queue(), Clsact(), Filters(), Segments()
SYSCTL, PARAMETER, MODULE, ALLOWED, ROUTE = Sysctl(), Parameter(), Module(), Allowed(), Route()
KINDS: dict[str, Aspect] = {
    one.name: one for one in (QUEUE, CLSACT, FILTERS, SEGMENTS, SYSCTL, PARAMETER, MODULE, ALLOWED, ROUTE)
}


def aspect_of(step: Step) -> Aspect:
    return KINDS[step.aspect]
