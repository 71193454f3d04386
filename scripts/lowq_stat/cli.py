# SPDX-License-Identifier: GPL-2.0
"""The command line of lowq-stat."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import time

from lowq_common import streams
from lowq_common.arguments import Parser
from lowq_common.errors import Failed, Refused
from lowq_common.tcpinfo import connections

from . import output
from .sample import Group, Sampler


def seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", text) or not 0.1 <= float(text) <= 86400:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds (0.1 to 86400)")
    return float(text)


def whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text}: not a number from 1 on")
    return int(text)


def group(text: str) -> Group:
    name, _, what = text.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name, re.ASCII) or not what:
        raise argparse.ArgumentTypeError(f"{text[:60]}: not NAME=PREFIX or NAME=/sys/fs/cgroup/...")
    if what.startswith("/"):
        if not os.path.isfile(os.path.join(what, "cgroup.procs")):
            raise argparse.ArgumentTypeError(f"{what[:200]}: not a cgroup")
        return Group(name, None, what)
    try:
        return Group(name, ipaddress.ip_network(what), "")
    except ValueError:
        raise argparse.ArgumentTypeError(f"{what[:60]}: not a prefix such as 10.0.0.0/8") from None


def parser() -> Parser:
    made = Parser(
        prog="lowq-stat",
        description="Tells how the TCP connections of this host are, per congestion control: how many, their rates and"
                    " RTTs, marks, retransmissions, and how many run as Reno and why.",
        epilog="Exit status: 0 fine, 2 wrong use, or it could not be read or written.",
    )
    add = made.add_argument
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a line of JSON per sample")
    form.add_argument("--prometheus", action="store_true", help="for node_exporter's textfile collector")
    add("--output", metavar="FILE", help="write to this file, as a whole each time, not to standard output")
    add("--interval", type=seconds, metavar="SECONDS", help="again and again: counts are those of the interval")
    add("--count", type=whole, metavar="N", help="end after so many intervals")
    add("--group", type=group, action="append", default=[], metavar="NAME=PREFIX|CGROUP",
        help="count connections to this prefix, or of this cgroup, apart")
    made.add_version()
    return made


told: set[str] = set()


def queues() -> str:
    """What lowq-tc tells of this host's queues and settings; empty if it cannot, and then a line once says why"""
    from lowq_tc import prometheus  # takes as long as all else

    made, why = "", ""
    try:
        made, why = prometheus.collected()
    except (Failed, Refused) as error:
        why = str(error)
    if why and why not in told:
        told.add(why)
        streams.complain("lowq-stat", why)
    return made


def sampled(sampler: Sampler, args: argparse.Namespace, took: float) -> str:
    start = time.process_time()
    rows = sampler.rows(connections(), args.interval is not None)
    cpu = time.process_time() - start
    if args.prometheus:
        return output.prometheus(rows, cpu) + "\n" + queues()
    if args.json:
        return output.as_json(rows, round(took, 3), cpu)
    return output.table(rows)


def run(argv: list[str]) -> int:
    made = parser()
    made.complete()
    args = made.parse_args(argv)
    if args.count and args.interval is None:
        raise Refused("--count goes with --interval")
    sampler = Sampler(args.group)
    if args.interval is not None:
        sampler.rows(connections(), True)  # what was before does not count
    begin = last = time.monotonic()
    number = 0
    while True:
        number += 1
        if args.interval is not None:
            time.sleep(max(0.0, begin + number * args.interval - time.monotonic()))
        now = time.monotonic()
        text = sampled(sampler, args, now - last if args.interval is not None else 0.0)
        last = now
        if args.output:
            output.write(args.output, text + "\n")
        else:
            print(text, flush=True)
        if args.interval is None or number == args.count:
            return 0


def main(argv: list[str]) -> int:
    return streams.guarded("lowq-stat", run, argv, interrupted=130)
