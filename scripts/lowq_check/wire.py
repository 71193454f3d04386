# SPDX-License-Identifier: GPL-2.0
"""How the two instances talk: a line of JSON for each question and each answer.

A connection starts with a line that has the protocol's version, the run's token, and what the
connection is for: questions ("control"), or test traffic ("flow"). Nothing that comes over the
network is run, or used as a path or as a name.
"""

from __future__ import annotations

import json
import socket
import time

from lowq_common.errors import Refused
from lowq_common.values import Json

PROTOCOL = 1
LONGEST = 1 << 16  # bytes of a line
MARK = "lowq-check"


class Lines:
    """One side of a connection that carries messages"""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rest = b""

    def write(self, message: Json) -> None:
        self.sock.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def read(self, within: float) -> dict[str, Json] | None:
        """None at the end of the connection. What is no message ends it, too. The whole line must
        come within so many seconds."""
        end = time.monotonic() + within
        while b"\n" not in self.rest:
            if len(self.rest) > LONGEST:
                return None
            self.sock.settimeout(max(0.001, end - time.monotonic()))
            piece = self.sock.recv(4096)
            if not piece:
                return None
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None


def hello(token: str, role: str, flow: int = 0) -> Json:
    return {MARK: PROTOCOL, "token": token, "role": role, "flow": flow}


def refusal(message: Json, token: str) -> str:
    """Why a connection that starts with this is refused; "" if it is not"""
    import hmac  # which loads OpenSSL; who asks needs none

    if message is None or MARK not in message:
        return "not lowq-check"
    if message[MARK] != PROTOCOL:
        return f"protocol {PROTOCOL} is spoken here"
    given = message.get("token")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
        return "wrong token"
    if message.get("role") not in ("control", "flow"):
        return "wrong role"
    return ""


def whole(message: Json, name: str, least: int, most: int) -> int:
    """A number of a message, within bounds"""
    value = message.get(name) if isinstance(message, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refused(f"'{name}' must be a number from {least} to {most}")
    return value


def device_of(bind: str) -> str:
    """The device that "--bind" names; "" if it is an address or none"""
    return bind if bind and not is_address(bind) else ""


def is_address(text: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
            return True
        except OSError:
            continue
    return False


def is_own(address: str) -> bool:
    """Is it an address of this host?"""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
            return True
    except OSError:
        return False


def bind_to(sock: socket.socket, bind: str, port: int = 0) -> None:
    """bind: an address of this host, or a device"""
    try:
        if device_of(bind):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, bind.encode())
        elif bind:
            sock.bind((bind, port))
    except OSError as error:
        raise Refused(f"--bind {bind}{f' port {port}' if port else ''}: {error.strerror}") from None


def new_socket(family: socket.AddressFamily, control: str = "", segment: int = 0, bind: str = "") -> socket.socket:
    """For a connection whose control is set before the handshake"""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if control:
            sock.setsockopt(socket.IPPROTO_TCP, 13, control.encode())
        if segment:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bind_to(sock, bind)
        return sock
    except (OSError, Refused):
        sock.close()
        raise


def open_connection(address: tuple[str, int], family: socket.AddressFamily, timeout: float, control: str = "",
                    segment: int = 0, bind: str = "") -> socket.socket:
    sock = new_socket(family, control, segment, bind)
    try:
        sock.settimeout(timeout)
        sock.connect(address)
        return sock
    except OSError:
        sock.close()
        raise
