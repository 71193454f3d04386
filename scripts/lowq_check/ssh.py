# SPDX-License-Identifier: GPL-2.0
"""ssh://HOST: starts lowq-check on another host, and ends it there.

ssh is the user's own, with the user's configuration. The host gets lowq-check --from-ssh, which
says its port and its token over ssh and ends when its standard input does: so it also ends when this
process is killed, or ssh.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import threading
import time

from lowq_common import system
from lowq_common.errors import Refused
from lowq_common.streams import printable
from lowq_common.values import Json
from lowq_common.version import version


URL = re.compile(r"ssh://(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?",
                 re.ASCII)
START_S, END_S = 30, 3
STAY_S = 3600  # so long the other end stays if the network between fails
LONGEST = 1 << 22  # bytes of a line
KEPT = 4000  # bytes of what it writes to standard error
# no questions for a password; nothing of the user's is handed to the other host, nothing stays in the background
OPTIONS = ("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "ControlMaster=no")


def is_url(text: str) -> bool:
    return text.startswith("ssh://")


class Remote:
    """lowq-check on another host"""

    def __init__(self, url: str, port: int, there: str) -> None:
        """port: where it is to listen; there: the command that runs it"""
        if not URL.fullmatch(url):
            raise Refused(f"{printable(url)[:80]}: not ssh://[USER@]HOST[:PORT]")
        self.url, self.rest, self.said = url, b"", b""
        # the shell there knows the addresses of this connection; sudo would hide them
        command = f'{there} --from-ssh "$SSH_CONNECTION" --port {port} --timeout {STAY_S}'
        self.ssh = subprocess.Popen(
            [system.program("ssh"), *OPTIONS, "--", url, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)  # Ctrl-C is for this process, which ends ssh
        self.errors = threading.Thread(target=self.keep_errors, daemon=True)
        self.errors.start()
        try:
            self.greet()
        except BaseException:
            self.close()
            raise

    def greet(self) -> None:
        hello = self.read(START_S)
        try:
            theirs = str(hello["version"])
            self.port, self.token, self.root = int(hello["port"]), str(hello["token"]), bool(hello["root"])
            self.client, self.address = str(hello["client"]), str(hello["server"])
        except (LookupError, TypeError, ValueError):
            raise Refused(f"{self.url}: what answers there is not lowq-check") from None
        if theirs != version():
            raise Refused(f"{self.url}: lowq-check {printable(theirs)[:20]} is there, {version()} here: install the same")
        if not self.root:
            raise Refused(f"{self.url}: not root there, so most could not be checked: log in as root, or --there"
                          " 'sudo -n lowq-check'")

    def keep_errors(self) -> None:
        assert self.ssh.stderr
        while piece := os.read(self.ssh.stderr.fileno(), 4096):
            self.said = (self.said + piece)[-KEPT:]

    def write(self, message: Json) -> None:
        """A question; None only shows that somebody is here"""
        assert self.ssh.stdin
        try:
            self.ssh.stdin.write((b"" if message is None else json.dumps(message).encode()) + b"\n")
            self.ssh.stdin.flush()
        except OSError:
            raise Refused(f"{self.url}: {self.why()}") from None

    def read(self, within: float) -> Json:
        """A line of JSON"""
        assert self.ssh.stdout
        end = time.monotonic() + within
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.ssh.stdout], [], [], left)[0]:
                raise Refused(f"{self.url}: no answer for {within:g} s")
            piece = os.read(self.ssh.stdout.fileno(), 1 << 16)
            self.rest += piece
            if not piece:
                raise Refused(f"{self.url}: {self.why()}")
            if len(self.rest) > LONGEST:
                break
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            text = printable(line[:60].decode(errors="replace"))
            raise Refused(f"{self.url}: what answers there is not lowq-check: '{text}'")
        return message

    def why(self) -> str:
        """It has ended: what it, ssh or the shell there said last"""
        try:
            status = self.ssh.wait(END_S)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        self.errors.join(END_S)
        lines = [line for line in self.said.decode(errors="replace").splitlines() if line.strip()]
        last = printable(lines[-1].strip().removeprefix("lowq-check: ")) if lines else ""
        if status == 127:
            return "lowq-check is not installed there, or not in ssh's PATH (--there names the command)"
        if "unrecognized arguments" in last:
            return "another version of lowq-check is there, which does not know --from-ssh: install the same"
        if self.rest:
            return f"what answers there is not lowq-check: '{printable(self.rest[:60].decode(errors='replace'))}'"
        return last or f"it ended with status {status}"

    def close(self) -> None:
        """Its standard input ends, and so does lowq-check there. Then ssh ends, too."""
        assert self.ssh.stdin and self.ssh.stdout
        try:
            self.ssh.stdin.close()
        except OSError:
            pass
        try:
            self.ssh.wait(END_S)
        except subprocess.TimeoutExpired:
            self.ssh.send_signal(signal.SIGTERM)
            try:
                self.ssh.wait(END_S)
            except subprocess.TimeoutExpired:
                self.ssh.kill()
                self.ssh.wait()
        self.ssh.stdout.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
