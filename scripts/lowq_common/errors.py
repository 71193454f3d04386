# SPDX-License-Identifier: GPL-2.0
"""How lowq-tc ends when it does not do what was asked."""

from __future__ import annotations


class Refused(Exception):
    """Nothing was changed: exit status 2."""


class NotReady(Refused):
    """What may come by itself: a link and its speed, a route"""


class Failed(Exception):
    """Something was tried and did not work: exit status 1."""
