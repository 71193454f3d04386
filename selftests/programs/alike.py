#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""alike.py CAPTURE - compares what dissect.py reads of a capture without tshark with what tshark reads: all fields
of all packets, and the packets that a filter selects. Prints the first difference and ends with 1; or how many
packets have each field, and of which kinds they are, a line each."""
import collections
import os
import sys
from typing import NoReturn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import dissect
import headers

FIELDS = [name for name in headers.FIELDS if name not in ("tcp.flags.ae", "tcp.flags.ece")]     # of SYNs only
CHOICE = ("(ip.src == 10.0.1.1 || ipv6.src == fd00:1::1) && "
          "(esp || udp.port == 4791 && infiniband.bth.opcode <= 16 || int.hop.qlen == 0) || "
          "tcp.len == 0 && tcp.option_kind != 172 && tcp.option_kind != 174 || "
          "tcp.flags.syn == 1 && (tcp.flags.ae == 1 || tcp.flags.ece == 1)")
KINDS = ("tcp.flags.syn == 1 && tcp.flags.ae == 1", "(tcp.option_kind == 172 || tcp.option_kind == 174)",
         "tcp.option_kind == 5", "int.type == 1", "int.type == 2", "infiniband.bth.opcode", "esp")
OTHERS = "arp", "icmpv6", "ipv6.dst == ff02::16"


def differ(why: str) -> NoReturn:
    """Ends the comparison"""
    print(why)
    sys.exit(1)


def own(capture: str, display_filter: str, *fields: str) -> list[list[str]]:
    """What is read without tshark"""
    rows = list(dissect.rows(capture, display_filter, *fields))
    if os.path.exists(f"{capture}.fields") or os.path.exists(f"{capture}.int.fields"):
        differ("tshark was asked")
    return rows


def alike(capture: str, display_filter: str, *fields: str) -> list[list[str]]:
    """The same, compared"""
    rows = own(capture, display_filter, *fields)
    lines = dissect.tshark(capture, display_filter, fields, True).splitlines()
    for row, line in zip(rows, lines):
        for name, text, other in zip(fields, row, map(dissect.as_number, line.split("\t"))):
            if text != other:
                differ(f"packet {row[0]}: {name} is {text!r}, to tshark {other!r}")
    if len(rows) != len(lines):
        differ(f"{len(rows)} packets, to tshark {len(lines)}: {display_filter}")
    return rows


def main() -> None:
    """Compares, then counts"""
    capture = sys.argv[1]
    have: collections.Counter[str] = collections.Counter()
    rows = alike(capture, "frame.number", *FIELDS)
    for row in rows:
        have.update(name for name, text in zip(FIELDS, row) if text)
    print("chosen", len(alike(capture, CHOICE, "frame.number")))
    for name in FIELDS:
        print(name, have[name])
    for kind in OTHERS:
        print(kind.replace(" ", ""), len(own(capture, kind, "frame.number")))
    for kind in KINDS:
        for ip in "ip", "ipv6":
            print(f"{kind}&&{ip}".replace(" ", ""), len(own(capture, f"{kind} && {ip}", "frame.number")))


main()
