# SPDX-License-Identifier: GPL-2.0
"""Can it be chance? What is lost beside what is lost anyway."""

from __future__ import annotations

from math import exp, lgamma

THRESHOLD = 1e-4  # a claim that chance would make this often is not made


def log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def exact(lost: int, sent: int, control_lost: int, control_sent: int) -> float:
    """Fisher's exact test, one-sided: the probability that of all that was lost, at least @lost fall on
    these @sent packets and the rest on the control's, if both are lost at the same rate"""
    if not 0 <= lost <= sent or not 0 <= control_lost <= control_sent:
        raise ValueError("more lost than sent")
    all_lost, everything = lost + control_lost, sent + control_sent
    whole = log_choose(everything, all_lost)
    return min(1.0, sum(exp(log_choose(sent, one) + log_choose(control_sent, all_lost - one) - whole)
                        for one in range(max(lost, all_lost - control_sent), min(sent, all_lost) + 1)))


def worse(lost: int, sent: int, control: tuple[int, int]) -> bool:
    """Is more lost than of the control (lost, sent), and is that no chance?"""
    return sent > 0 and exact(lost, sent, *control) < THRESHOLD


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"
