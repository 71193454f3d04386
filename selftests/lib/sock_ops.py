#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs a command whose connections get a congestion control from BPF.

  sock_ops.py NAME COMMAND...

A sock_ops program chooses control NAME when connect() starts, before the SYN is
sent. It is attached to a cgroup v2 of its own, which the command runs in.
"""
from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import tempfile

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine, 321)
BPF_PROG_LOAD, BPF_PROG_ATTACH = 5, 8
BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS = 13, 3
BPF_SOCK_OPS_TCP_CONNECT_CB = 3
BPF_FUNC_SETSOCKOPT = 49
IPPROTO_TCP, TCP_CONGESTION = 6, 13


def insn(code: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
    return struct.pack("<BBhi", code, src << 4 | dst, off, imm)


def program(name: str) -> bytes:
    text = name.encode().ljust(16, b"\0")
    low, high, third, fourth = struct.unpack("<iiii", text)
    body = b"".join((
        insn(0x62, 10, 0, -16, low), insn(0x62, 10, 0, -12, high),      # *(u32 *)(r10 - 16) = ...
        insn(0x62, 10, 0, -8, third), insn(0x62, 10, 0, -4, fourth),
        insn(0xb7, 2, 0, 0, IPPROTO_TCP), insn(0xb7, 3, 0, 0, TCP_CONGESTION),
        insn(0xbf, 4, 10), insn(0x07, 4, 0, 0, -16),                    # r4 = r10 - 16
        insn(0xb7, 5, 0, 0, 16), insn(0x85, 0, 0, 0, BPF_FUNC_SETSOCKOPT),
    ))
    skip = len(body) // 8
    return b"".join((
        insn(0x61, 6, 1, 0),                                            # r6 = ctx->op
        insn(0x55, 6, 0, skip, BPF_SOCK_OPS_TCP_CONNECT_CB),            # if r6 != op: skip
        body,
        insn(0xb7, 0, 0, 0, 1), insn(0x95),                             # return 1
    ))


def bpf(command: int, attr: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buf = ctypes.create_string_buffer(attr, max(len(attr), 128))
    fd = int(libc.syscall(SYS_BPF, command, buf, len(buf)))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "bpf()")
    return fd


def load(name: str) -> int:
    code = ctypes.create_string_buffer(program(name))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQ", BPF_PROG_TYPE_SOCK_OPS, (len(code) - 1) // 8,
                       ctypes.addressof(code), ctypes.addressof(licence))
    return bpf(BPF_PROG_LOAD, attr)


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: sock_ops.py NAME COMMAND...", file=sys.stderr)
        return 2
    mount = tempfile.mkdtemp()
    try:
        subprocess.run(["mount", "-t", "cgroup2", "none", mount], check=True)
        group = f"{mount}/lowq{os.getpid()}"
        os.mkdir(group)
        directory = os.open(group, os.O_RDONLY)
        bpf(BPF_PROG_ATTACH, struct.pack("<III", directory, load(sys.argv[1]),
                                         BPF_CGROUP_SOCK_OPS))
        child = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: enter(group))
        status = child.wait()
        os.close(directory)
        os.rmdir(group)
        subprocess.run(["umount", mount], check=False)
        return status
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"sock_ops.py: {e}", file=sys.stderr)
        return 1


def enter(group: str) -> None:
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


if __name__ == "__main__":
    sys.exit(main())
