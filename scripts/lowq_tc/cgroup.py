# SPDX-License-Identifier: GPL-2.0
"""lowq-tc cgroup: connections of the processes in a cgroup get a control by their destination.

Two programs at connect() (IPv4, IPv6) look the destination up in one map, a trie of IPv6 prefixes (IPv4's are mapped
ones, as connect() of an IPv6 socket may name them), and set TCP_CONGESTION. The kernel has them as long as the cgroup
is there, so they are their own record: they are found by name. Written by hand, they need no compiler and no libbpf."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import Iterable, Iterator, NamedTuple

from lowq_common import routes, system
from lowq_common.errors import Failed, Refused
from lowq_common.routes import Prefix

from .command import Command
from .execute import CommandFailed, explained, run_all

ROOT = "/sys/fs/cgroup"
NEEDS = "needs Linux 5.8 with CONFIG_CGROUP_BPF"
NAME = b"lowq_connect"
MOST = 4096  # prefixes of a cgroup
KEY, CONTROL = struct.Struct("=I16s"), 16  # bits, prefix; TCP_CA_NAME_MAX
MAPPED = 0xFFFF << 32

# linux/bpf.h
SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_NEXT, PROG_LOAD, PROG_ATTACH, PROG_DETACH = 0, 1, 2, 4, 5, 8, 9
PROG_FD, MAP_FD, INFO, QUERY = 13, 14, 15, 16
LPM_TRIE, NO_PREALLOC, SOCK_ADDR, ALLOW_MULTI = 11, 1, 18, 2
CONNECT = (10, 11)  # to IPv4, to IPv6
LOOKUP_ELEM, SETSOCKOPT = 1, 49
USER_IP4, USER_IP6 = 4, 8  # in struct bpf_sock_addr
TCP_CONGESTION = 13


def bpf(command: int, form: str, *values: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Buffers go as their addresses."""
    number = SYSCALL.get(os.uname().machine)
    if not number:
        raise Refused(f"the number of bpf(2) on {os.uname().machine} is not known here")
    words = [ctypes.addressof(one) if isinstance(one, ctypes.Array) else one for one in values]
    attr = ctypes.create_string_buffer(struct.pack("=" + form, *words), 128)
    status = int(system.c_library().syscall(number, command, attr, len(attr)))
    if status < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return status


def buffer(content: bytes | int) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content)) if isinstance(content, bytes) else \
        ctypes.create_string_buffer(content)


def program(attach: int, trie: int) -> bytes:
    def insn(code: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
        return struct.pack("=BBhi", code, src << 4 | dst, off, imm)

    key = [insn(0x62, 10, 0, -20, 128)]  # *(u32 *)(r10 - 20) = 128
    if attach == CONNECT[0]:  # ::ffff:a.b.c.d
        key += [insn(0x62, 10, 0, -16), insn(0x62, 10, 0, -12), insn(0x62, 10, 0, -8, -65536)]
        key += [insn(0x61, 2, 6, USER_IP4), insn(0x63, 10, 2, -4)]
    else:
        for at in range(0, 16, 4):
            key += [insn(0x61, 2, 6, USER_IP6 + at), insn(0x63, 10, 2, at - 16)]
    return b"".join((
        insn(0xbf, 6, 1), *key,
        insn(0x18, 1, 1, 0, trie), insn(0), insn(0xbf, 2, 10), insn(0x07, 2, 0, 0, -20), insn(0x85, imm=LOOKUP_ELEM),
        insn(0x15, 0, 0, 6),  # no prefix has it
        insn(0xbf, 1, 6), insn(0xb7, 2, imm=socket.IPPROTO_TCP), insn(0xb7, 3, imm=TCP_CONGESTION), insn(0xbf, 4, 0),
        insn(0xb7, 5, imm=CONTROL), insn(0x85, imm=SETSOCKOPT),
        insn(0xb7, 0, imm=1), insn(0x95)))  # the connection goes on, whatever setsockopt said


def load(attach: int, trie: int) -> int:
    code = program(attach, trie)
    return bpf(PROG_LOAD, "IIQQIIQII16sII", SOCK_ADDR, len(code) // 8, buffer(code), buffer(b"GPL\0"), 0, 0, 0, 0, 0, NAME, 0,
               attach)


def new_trie() -> int:
    return bpf(MAP_CREATE, "IIIIIII16s", LPM_TRIE, KEY.size, CONTROL, MOST, NO_PREALLOC, 0, 0, b"lowq_prefixes")


class Found(NamedTuple):
    programs: dict[int, int]  # where it is attached -> file
    trie: int  # -1: none


def found(group: int) -> Found:
    """Those of lowq-tc at this cgroup itself"""
    programs, trie = {}, -1
    for attach in CONNECT:
        ids = buffer(4 * 64)
        attr = ctypes.create_string_buffer(struct.pack("=IIIIQI", group, attach, 0, 0, ctypes.addressof(ids), 64), 128)
        if system.c_library().syscall(SYSCALL.get(os.uname().machine, -1), QUERY, attr, 128):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        count = struct.unpack_from("=I", attr.raw, 24)[0]
        for number in struct.unpack_from(f"={min(count, 64)}I", ids.raw):
            file = bpf(PROG_FD, "III", number, 0, 0)
            maps = buffer(4)
            info = buffer(struct.pack("=52xIQ", 1, ctypes.addressof(maps)).ljust(256, b"\0"))
            bpf(INFO, "IIQ", file, 256, info)
            if info.raw[64:80].rstrip(b"\0") == NAME:
                programs[attach] = file
                trie = bpf(MAP_FD, "III", struct.unpack("=I", maps.raw)[0], 0, 0) if trie < 0 else trie
            else:
                os.close(file)
    return Found(programs, trie)


def entries(trie: int) -> dict[Prefix, str]:
    made: dict[Prefix, str] = {}
    key, following, value = buffer(KEY.size), buffer(KEY.size), buffer(CONTROL)
    first = True
    while trie >= 0:
        try:
            bpf(MAP_NEXT, "I4xQQ", trie, 0 if first else key, following)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            break
        first, key = False, buffer(following.raw)
        bpf(MAP_LOOKUP, "I4xQQQ", trie, key, value, 0)
        made[prefix_of(key.raw)] = value.raw.rstrip(b"\0").decode("ascii", "replace")
    return made


def key_of(prefix: Prefix) -> bytes:
    v4 = prefix.bits == 32
    return KEY.pack(prefix.length + 96 * v4, (prefix.first | MAPPED * v4).to_bytes(16, "big"))


def prefix_of(key: bytes) -> Prefix:
    length, address = KEY.unpack(key)
    first = int.from_bytes(address, "big")
    if length >= 96 and first >> 32 == 0xFFFF:
        return Prefix(socket.AF_INET, first & 0xFFFFFFFF, length - 96)
    return Prefix(socket.AF_INET6, first, length)


def opened(path: str) -> int:
    path = os.path.join(ROOT, path)
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    if not os.path.exists(f"/proc/self/fd/{file}/cgroup.procs") or os.path.exists(f"/proc/self/fd/{file}/tasks"):
        raise Refused(f"{path} is no cgroup (of version 2)")
    return file


def because(error: OSError, path: str) -> str:
    if error.errno in (errno.ENODEV, errno.ENOENT):
        return f"{path} is gone, and its processes with it"
    if error.errno == errno.EPERM and os.geteuid():
        return "needs root"
    if error.errno == errno.EPERM:
        return f"{path}: refused: bpf(2) is forbidden here, or a program that tolerates no other is attached to it or above"
    return f"this kernel ({os.uname().release}) refuses the program ({error.strerror}): it {NEEDS}"


def wanted(control: str, given: Iterable[str]) -> dict[Prefix, str]:
    if not 0 < len(control.encode()) < CONTROL:
        raise Refused(f"'{control}' is not the name of a congestion control")
    return {routes.parse_prefix(one): control for one in given}


def set_control(path: str, control: str, given: Iterable[str], loading: list[Command]) -> None:
    """All prefixes, or none"""
    new = wanted(control, given)
    group, attached = opened(path), []
    try:
        there = found(group)
        before = entries(there.trie)
        if len(before | new) > MOST:
            raise Refused(f"{path}: more than {MOST} prefixes")
        trie = there.trie if there.trie >= 0 else new_trie()
        missing = {attach: load(attach, trie) for attach in CONNECT if attach not in there.programs}
        run_all(loading, system.Namespace(), -1)
        for prefix, name in new.items():
            bpf(MAP_UPDATE, "I4xQQQ", trie, buffer(key_of(prefix)), buffer(name.encode().ljust(CONTROL, b"\0")), 0)
        for attach, file in missing.items():
            bpf(PROG_ATTACH, "IIIII", group, file, attach, ALLOW_MULTI, 0)
            attached.append((attach, file))
    except OSError as error:
        for attach, file in attached:
            try:
                bpf(PROG_DETACH, "III", group, file, attach)
            except OSError:  # it went with the cgroup
                pass
        raise Refused(because(error, path)) from None
    except CommandFailed as failed:
        raise Refused(explained(failed, system.Namespace())) from None
    finally:
        os.close(group)


def groups() -> Iterator[str]:
    for folder, _, _ in os.walk(ROOT):
        yield folder


class Shown(NamedTuple):
    path: str
    prefixes: dict[Prefix, str]
    whole: bool  # are both programs there?


def show(paths: list[str]) -> Iterator[Shown]:
    for path in paths or groups():
        try:
            group = opened(path)
        except Refused:
            if paths:
                raise
            continue
        try:
            there = found(group)
            if there.programs:
                yield Shown(path, entries(there.trie), len(there.programs) == len(CONNECT))
        except OSError as error:
            if not paths and error.errno in (errno.EINVAL, errno.ENOSYS):
                return  # this kernel has none
            if paths or error.errno not in (errno.ENODEV, errno.ENOENT):
                raise Refused(because(error, path)) from None
        finally:
            os.close(group)


def reset(path: str) -> bool:
    """-> was anything there?"""
    group = opened(path)
    try:
        there = found(group)
        for attach, file in there.programs.items():
            bpf(PROG_DETACH, "III", group, file, attach)
        return bool(there.programs)
    except OSError as error:
        raise Failed(because(error, path)) from None
    finally:
        os.close(group)
