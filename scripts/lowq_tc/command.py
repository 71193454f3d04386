# SPDX-License-Identifier: GPL-2.0
"""A command as it will run, and as a person would type it."""

from __future__ import annotations

from typing import NamedTuple

from lowq_common.values import matched

EXACT = ("lowq-tc", "exact")  # what tc cannot do: exact.py
UNBATCHED = frozenset("#\\'\"")  # "-batch" has no way to write these in a word


def quoted(word: str) -> str:
    if matched(r"[A-Za-z0-9_./:=@%+,-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


class Command(NamedTuple):
    argv: tuple[str, ...]
    everywhere: bool = False  # not of one network namespace: modules, their parameters
    file: str = ""  # write argv[0] into this file instead of running anything

    def located(self, namespace: str | None) -> tuple[str, ...]:
        """argv with the namespace where the command belongs"""
        if namespace is None or self.everywhere:
            return self.argv
        words = list(self.argv)
        at = 2 if words[0] == "env" else 0
        if words[at] in ("tc", "ip", "lowq-tc") and "/" not in namespace:
            return (*words[: at + 1], "-n", namespace, *words[at + 1:])
        if "/" in namespace:
            return ("nsenter", f"--net={namespace}", *words)
        return ("ip", "netns", "exec", namespace, *words)

    @property
    def exact(self) -> bool:
        return self.argv[:2] == EXACT

    def batched(self) -> tuple[str, ...]:
        """The words before those that "tc -batch" or "ip -batch" takes; () if it cannot run the command."""
        at = 2 if self.argv[0] == "env" else 0
        if self.file or self.argv[at] not in ("tc", "ip") or self.argv[at + 1].startswith("-") or \
                any(UNBATCHED & set(word) for word in self.argv):
            return ()
        return self.argv[: at + 1]

    def text(self, namespace: str | None) -> str:
        if self.file:
            return f"echo {quoted(self.argv[0])} >{self.file}"
        return " ".join(quoted(word) for word in self.located(namespace))

    def on_device(self, names: dict[str, str]) -> Command:
        """the same for devices that were renamed: old name -> new name"""
        words = [
            names.get(word, word) if at and self.argv[at - 1] == "dev" else word
            for at, word in enumerate(self.argv)
        ]
        return self._replace(argv=tuple(words))


def tc(*words: object) -> Command:
    return Command(("tc", *map(str, words)))
