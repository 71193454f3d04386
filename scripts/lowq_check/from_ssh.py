# SPDX-License-Identifier: GPL-2.0
"""lowq-check --from-ssh: what ssh://HOST and --matrix start on another host. It listens, and checks
what it is told over standard input, a line of JSON per question and answer. When its standard input
ends, it ends."""

from __future__ import annotations

import json
import os
import threading
from typing import Callable

from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.version import version

from .listen import Listener

Check = Callable[[list[str], str], Json]


class Answerer:
    """Reads questions from standard input. Nothing else may write to standard output."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.rest = b""

    def read(self) -> bool:
        """Has somebody said something? If not, the other side has gone."""
        piece = os.read(0, 1 << 16)
        *lines, self.rest = (self.rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                threading.Thread(target=self.answer, args=(line,), daemon=True).start()
        return bool(piece)

    def answer(self, line: bytes) -> None:
        try:
            asked = json.loads(line)
            result = self.check([str(word) for word in asked["options"]], str(asked["token"]))
        except (Refused, OSError) as error:
            result = {"error": str(error)}
        except (LookupError, TypeError, ValueError):
            result = {"error": "not a question"}
        say(result)


def say(message: Json) -> None:
    print(json.dumps(message, separators=(",", ":")), flush=True)


def serve(listener: Listener, connection: str, check: Check) -> None:
    """connection: SSH_CONNECTION"""
    words = connection.split()
    if len(words) != 4:
        raise Refused("--from-ssh: SSH_CONNECTION is not set: is the other end ssh?")
    say({"lowq-check": 1, "version": version(), "port": listener.port, "token": listener.token,
         "root": os.geteuid() == 0, "client": words[0], "server": words[2]})
    listener.run(Answerer(check).read)
