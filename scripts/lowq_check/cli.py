# SPDX-License-Identifier: GPL-2.0
"""The command line of lowq-check.

Exit status: 0 fine, 1 something is not fine, 2 it could not be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
from typing import TYPE_CHECKING

from lowq_common import streams
from lowq_common.arguments import Parser, completes
from lowq_common.controls import CONTROLS
from lowq_common.errors import Refused
from lowq_common.values import Json
from lowq_common.names import controls_there, names_in

from . import finding, output

if TYPE_CHECKING:
    from .facts import Facts
    from .path import Target

PORT = 5388


def port_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text}: not a port")
    return int(text)


def seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", text) or not 0 < float(text) <= 86400:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds (up to 86400)")
    return float(text)


def name_word(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.:@%-]{1,40}", text, re.ASCII) or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text[:40]}: not a name")
    return text


def devices() -> list[str]:
    return names_in("/sys/class/net")


def parser() -> Parser:
    made = Parser(
        prog="lowq-check",
        description="Tells whether a congestion control works on this host and, with PEER, on the path to it; and"
                    " if not, why.",
        epilog="Exit status: 0 fine, 1 something is not fine, 2 it could not be checked.",
    )
    add = made.add_argument
    add("peer", nargs="*", metavar="PEER",
        help="a host where lowq-check --listen runs; several: its addresses. ssh://HOST: starts it there through ssh, and"
             " checks the addresses that follow, or the one that ssh has reached")
    add("--matrix", metavar="FILE", help="check all pairs of the hosts in FILE: ssh://HOST [ADDRESS...] [role=ROLE] in a line each,"
                                          " below [RACK] those of a rack")
    add("--there", default="lowq-check", metavar="COMMAND", help="what runs lowq-check on a host of ssh:// (lowq-check)")
    completes(add("--control", "-c", type=name_word, action="append", default=[],
                  help="check this control, as a program that chooses it; default: those in use"),
              lambda: [*dict.fromkeys([*CONTROLS, *controls_there()])])
    completes(add("--device", "-d", type=name_word, action="append", default=[],
                  help="a device whose queue should mark (or stamp, for hpccpp)"), devices)
    add("--role", choices=("sender", "receiver", "router"),
        help="what this host is, or those of --matrix; default: what is set says it")
    # the type also checks this default
    add("--token", type=name_word, default=os.environ.get("LOWQ_CHECK_TOKEN") or None,
        help="what the listener prints; also from LOWQ_CHECK_TOKEN")
    add("--load", type=seconds, default=0.0, metavar="SECONDS", help="also send as fast as possible, at most 30 s a way")
    add("--listen", action="store_true", help="be the other end: answer lowq-check where the token is known")
    add("--timeout", type=seconds, default=600.0, metavar="SECONDS", help="how long to listen (600)")
    add("--port", type=port_number, default=PORT, help=f"TCP port of the listener ({PORT})")
    completes(add("--bind", type=name_word, metavar="ADDRESS|DEVICE",
                  help="connect from, or listen at, this address or device"), devices)
    add("--from-ssh", metavar="ADDRESSES", help="what ssh://HOST runs on the other host: listens, ends with standard input")
    add("--json", action="store_true", help="the result as JSON")
    made.add_version()
    return made


def listen(args: argparse.Namespace) -> int:
    from .listen import Listener

    if args.peer or args.device or args.load or args.json or args.matrix or len(args.control) > 1:
        raise Refused("--listen goes with --control, --token, --timeout, --bind and --port only")
    token = "" if args.from_ssh is not None else args.token or ""
    listener = Listener(args.port, args.control[0] if args.control else "", args.timeout, token, args.bind or "")
    if args.from_ssh is not None:
        from .from_ssh import serve

        serve(listener, args.from_ssh, answer)
        return 0
    port = "" if args.port == PORT else f" --port {args.port}"
    root = "" if os.geteuid() == 0 else "; without root, so some of it will be skipped"
    print(f"listening at port {args.port} for {args.timeout:g} s{root}. On the other host:\n"
          f"lowq-check ADDRESS{port} --token {listener.token}", flush=True)
    listener.run()
    return 0


def answer(options: list[str], token: str) -> Json:
    """To a question of --matrix"""
    args = parser().parse_args(options)
    args.token = token
    here, findings, measured, failed = checked(args)
    return {**output.as_json(here, findings, measured, status_of(findings, failed)), "failed": failed}


def addresses(peers: list[str], port: int) -> list[tuple[socket.AddressFamily, str]]:
    found: dict[str, socket.AddressFamily] = {}
    for peer in peers:
        try:
            for family, _, _, _, address in socket.getaddrinfo(peer, port, type=socket.SOCK_STREAM):
                found.setdefault(str(address[0]), family)
        except OSError as error:
            raise Refused(f"{streams.printable(peer)}: {error.strerror}") from None
        except UnicodeError:
            raise Refused(f"{streams.printable(peer)[:60]}: not the name of a host") from None
    return [(family, address) for address, family in found.items()]


def checked(args: argparse.Namespace) -> tuple[Facts, list[finding.Finding], Json, list[str]]:
    """This host, findings about it and the paths, what was measured, and what could not be checked"""
    from . import facts, verdicts

    if args.load > 30:
        raise Refused("--load: at most 30 s")
    if args.peer and not args.token:
        raise Refused("--token is missing: the listener prints it")
    wanted = addresses(args.peer, args.port)
    here = facts.read(args.control)
    names = [device.name for device in here.devices]
    for name in args.device:
        if name not in names:
            raise Refused(f"no device '{name}' that is up")
    findings = verdicts.local(here, args.control, args.device, args.role or "")
    measured: list[Json] = []
    failed: list[str] = []
    for family, address in wanted:
        from . import path

        target = path.Target(family, address, args.port, args.token or "", args.bind or "")
        for control in args.control or [""]:
            try:
                rows, found = of_path(target, control, args.load, here)
            except path.NoControl as error:
                if finding.status(findings):
                    findings.append(finding.skipped("path", str(error))._replace(where=address))
                else:
                    failed.append(str(error))
                continue
            except Refused as error:
                failed.append(str(error))
                break
            findings += rows
            measured.append(found)
    return here, findings, measured, failed


def of_path(target: Target, control: str, load: float, here: Facts) -> tuple[list[finding.Finding], Json]:
    """What the listener says is used as numbers and names of fields. If it says something else,
    it is not lowq-check."""
    from . import judge, path

    try:
        if control == "roce":
            found = path.measure_roce(target)
            return judge.roce(found), found
        found = path.measure(target, control, load)
        return judge.path(found, here), found
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
        raise Refused(f"{target.address}: the answers of the listener are not understood"
                      f" ({type(error).__name__}: {error})") from None


def status_of(findings: list[finding.Finding], failed: list[str]) -> int:
    return finding.status(findings) or (2 if failed else 0)


def checked_by_ssh(args: argparse.Namespace) -> tuple[Facts, list[finding.Finding], Json, list[str]]:
    """As checked(), with a listener that is started, and ended, through ssh"""
    from . import ssh
    from .wire import is_own

    if args.token and args.token != os.environ.get("LOWQ_CHECK_TOKEN"):
        raise Refused("--token goes with a listener that runs already, not with ssh://")
    if any(ssh.is_url(peer) for peer in args.peer[1:]):
        raise Refused("one ssh://HOST at a time; --matrix checks several")
    with ssh.Remote(args.peer[0], args.port, args.there) as remote:
        args.peer, args.token = args.peer[1:], remote.token
        if not args.peer:  # the way that ssh takes
            args.peer = [remote.address]
            args.bind = args.bind or (remote.client if is_own(remote.client) else None)
        return checked(args)


def run(argv: list[str]) -> int:
    made = parser()
    made.complete()
    args = made.parse_args(argv)
    if args.listen or args.from_ssh is not None:
        return listen(args)
    if args.matrix:
        from . import matrix

        return matrix.run(args)
    here, findings, measured, failed = (checked_by_ssh if args.peer and args.peer[0].startswith("ssh://") else checked)(args)
    if failed and not measured:
        raise Refused(failed[0])
    status = status_of(findings, failed)
    if args.json:
        print(json.dumps(output.as_json(here, findings, measured, status), indent=2))
    else:
        print(output.table(findings))
    for text in failed:
        streams.complain("lowq-check", text)
    return status


def main(argv: list[str]) -> int:
    return streams.guarded("lowq-check", run, argv, interrupted=2)
