# SPDX-License-Identifier: GPL-2.0
"""lowq-check --listen: the other end of a path."""

from __future__ import annotations

import secrets
import select
import socket
import threading
import time
from typing import Callable

from lowq_common import system
from lowq_common.errors import Refused
from lowq_common.values import Json

from . import facts
from .end import End
from .wire import MARK, PROTOCOL, Lines, bind_to, is_address, refusal, whole

STRANGER_S, QUESTION_S = 5, 60  # for the first line, and for each further one
CONNECTIONS = 80


class Listener:
    def __init__(self, port: int, control: str, timeout: float, token: str, bind: str = "") -> None:
        self.token = token or secrets.token_hex(16)
        self.port, self.timeout = port, timeout
        self.session: End | None = None
        self.lock = threading.Lock()
        self.open = threading.BoundedSemaphore(CONNECTIONS)
        six = ":" in bind if is_address(bind) else socket.has_dualstack_ipv6()
        self.sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if six:
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if control == "roce":  # no control of TCP: a module that works by itself
            if not system.module_loaded("roce_rcm"):
                raise Refused("roce_rcm is not loaded here: sudo lowq-tc host roce")
        elif control:
            if not facts.available(control):  # choosing it would load its module
                raise Refused(f"there is no control '{control}' here, or its module is not loaded")
            try:
                self.sock.setsockopt(socket.IPPROTO_TCP, 13, control.encode())
            except OSError as error:
                raise Refused(f"cannot choose the control '{control}': {error.strerror}") from None
        try:
            bind_to(self.sock, bind, port)
            if not is_address(bind):
                self.sock.bind(("::" if six else "0.0.0.0", port))
            self.sock.listen(CONNECTIONS)
        except OSError as error:
            raise Refused(f"cannot listen at port {port}: {error.strerror}") from None

    def run(self, read: Callable[[], bool] | None = None) -> None:
        """Serves until the time is over. read: reads standard input, whose end is the end; anything else
        there makes the time start again."""
        end = time.monotonic() + self.timeout
        files = [self.sock.fileno(), *([0] if read else [])]
        while (left := end - time.monotonic()) > 0:
            ready = select.select(files, [], [], left)[0]
            if read and 0 in ready:
                if not read():
                    break
                end = time.monotonic() + self.timeout
            if self.sock.fileno() not in ready:
                continue
            sock = self.sock.accept()[0]
            if not self.open.acquire(blocking=False):
                sock.close()
                continue
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        kept = False
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lines = Lines(sock)
            first = lines.read(STRANGER_S)
            why = refusal(first, self.token)
            if why:
                lines.write({MARK: PROTOCOL, "error": why})
                return
            assert first
            if first["role"] == "flow":
                kept = self.take_flow(first, sock, lines)
            else:
                self.answer_questions(sock, lines)
        except (OSError, Refused):
            return
        finally:
            self.open.release()
            if not kept:
                sock.close()

    def take_flow(self, first: Json, sock: socket.socket, lines: Lines) -> bool:
        number = whole(first, "flow", 0, 1 << 16)
        session = self.session
        if not session:
            lines.write({MARK: PROTOCOL, "error": "no session"})
            return False
        session.add(number, sock)
        lines.write({MARK: PROTOCOL})
        return True

    def answer_questions(self, sock: socket.socket, lines: Lines) -> None:
        """One session at a time"""
        if not self.lock.acquire(timeout=STRANGER_S):
            lines.write({MARK: PROTOCOL, "error": "is busy with another check"})
            return
        try:
            self.session = End(self.port)
            lines.write({MARK: PROTOCOL})
            while (asked := lines.read(QUESTION_S)) is not None:
                lines.write(self.session.answer(asked))
        finally:
            if self.session:
                self.session.close()
            self.session = None
            self.lock.release()
