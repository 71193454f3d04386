#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""lowq-tc with generated options: what the dry run accepts can be set; what it prints is what
the kernel has then, read back with tc and ip, also when the printed lines are run by a shell;
and K, limits, rates and prefixes are those that follow from the numbers and units given.

usage: lowq_tc_generated.py EXAMPLES, as root, in a network namespace of its own
Exit status: 0 all hold, 1 an example does not (it is printed), 4 hypothesis is not installed.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from fractions import Fraction
from math import ceil
from typing import Any, Callable

import lowq_tc_crash  # which finds the package

import lowq_tc

os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = lowq_tc_crash.STATE
try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ImportError:
    os.rmdir(lowq_tc_crash.STATE)
    print("no hypothesis")
    sys.exit(4)

PROGRAMS = os.path.dirname(os.path.dirname(os.path.realpath(lowq_tc.__file__)))
EXAMPLES = int(sys.argv[1])
FRAME = 1514
Json = Any
counts = {"set": 0, "refused": 0, "routes": 0, "routes refused": 0}


def run(*argv: str, check: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{shlex.join(argv)}: {done.stderr}"
    return done.stdout


def lowq(*argv: str) -> tuple[int, Json, str]:
    """-> status, what --json printed, what was said if that was not all"""
    ended = lowq_tc_crash.lowq([*argv, "--json"])
    if ended.status:
        return ended.status, None, ended.said
    return 0, json.loads(ended.said), ""


# --- numbers with units, and what they mean --------------------------------------------


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    """Whole numbers and decimals, as text"""
    whole = st.integers(low, high)
    return st.one_of(whole.map(str), st.tuples(whole, st.integers(0, 999)).map(lambda two: f"{two[0]}.{two[1]:03d}"))


def with_unit(units: dict[str, tuple[int, int]]) -> st.SearchStrategy[str]:
    return st.sampled_from(list(units)).flatmap(lambda unit: numbers(*units[unit]).map(lambda text: text + unit))


RATES = with_unit({"kbit": (100, 10_000_000), "mbit": (1, 400_000), "gbit": (1, 400), "bit": (100_000, 10**9)})
TIMES = with_unit({"ns": (2000, 10**8), "us": (2, 100_000), "ms": (1, 100)})
QUEUES = st.one_of(
    st.integers(1, 5000).map(str), st.integers(1, 5000).map("{}p".format), st.integers(1, 10_000_000).map("{}b".format),
    st.integers(1, 10_000).map("{}kb".format), st.integers(1, 20).map("{}mb".format), TIMES,
)
SCALE: dict[str, int | Fraction] = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12,
         "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": 1,
         "": FRAME, "p": FRAME, "b": 1, "kb": 1024, "mb": 1 << 20}


def meant(text: str, rate: Fraction = Fraction(0)) -> Fraction:
    """bit/s, seconds or bytes; a time with a rate is a length of queue"""
    match = re.fullmatch(r"([0-9.]+)([a-z]*)", text)
    assert match
    value = Fraction(match[1]) * SCALE[match[2]]
    return value * rate / 8 if rate and match[2] in ("ns", "us", "ms", "s") else value


def close(got: int, want: Fraction, least: int = 1) -> None:
    """to a unit, or to the kbit/s to which rates are rounded up"""
    assert abs(got - want) <= max(Fraction(least), want / 1000), f"{got}, expected {float(want)}"


# --- what the kernel has ----------------------------------------------------------------


def kernel(device: str) -> tuple[list[Json], list[str]]:
    """its qdiscs with their options, its classes and filters as lines"""
    text = re.sub(r"\[Unknown qdisc, optlen=\d+\] *", "", run("tc", "-d", "-j", "qdisc", "show", "dev", device))
    qdiscs = [q for q in json.loads(text) if q["handle"] != "0:"]
    for qdisc in qdiscs:
        for name in ("refcnt", "dev"):
            qdisc.pop(name, None)
        qdisc["options"] = {k: v for k, v in (qdisc.get("options") or {}).items() if k != "direct_packets_stat"}
    # handles that the kernel chose differ each time, and so does the order of classes
    def fixed(shown: str) -> str:
        return re.sub(r"\b[89a-f][0-9a-f]{3}:", "auto:", shown)

    lines = sorted(fixed(line) for line in run("tc", "-d", "class", "show", "dev", device).splitlines()
                   if "class fq_codel" not in line)
    for qdisc in qdiscs:
        lines += fixed(run("tc", "-d", "filter", "show", "dev", device, "parent", qdisc["handle"], check=False)).splitlines()
    qdiscs = json.loads(fixed(json.dumps(qdiscs)))
    qdiscs.sort(key=lambda q: (q.get("parent", ""), q["handle"]))
    return qdiscs, lines


FLAGS = ("ecn", "nodrop", "harddrop", "relative", "sojourn")
SAME = ("limit", "min", "max", "flow_limit", "bands", "strict", "priomap", "quanta")


def in_kernel(words: list[str], qdiscs: list[Json]) -> None:
    """A printed "tc qdisc add": is there such a qdisc, with all the options that were given?"""
    words = words[words.index("dev") + 2:]
    place = words[1] if words[0] == "parent" else None
    words = words[2:] if place else words[1:]
    handle = words[1] if words[0] == "handle" else None
    words = words[2:] if handle else words
    kind, words = words[0], words[1:]
    found = [q for q in qdiscs if q["kind"] == kind and (q.get("parent") == place or handle == q["handle"])]
    assert len(found) == 1, f"{kind} at {place}: {qdiscs}"
    options = found[0]["options"]
    while words:
        name = words.pop(0)
        if name in FLAGS:
            assert options.get(name) is True, f"{kind}: {name}: {options}"
            continue
        values = [words.pop(0)]
        while name in ("priomap", "quanta") and words and words[0].isdigit():
            values.append(words.pop(0))
        shown = options.get(name)
        if name in SAME and shown is not None:
            assert list(map(str, shown)) == values if isinstance(shown, list) else str(shown) == values[0], \
                f"{kind}: {name} {values}: {shown}"
        elif name in ("target", "interval", "ce_threshold"):
            # CoDel's clock ticks every 1.024 us; tc shows microseconds
            assert abs(shown - meant(values[0]) * 10**6) <= 1.1, f"{kind}: {name} {values}: {shown}"
        elif name == "probability" and shown is not None:
            assert abs(shown - float(values[0])) < 1e-4, f"{kind}: {name} {values}: {shown}"


def class_in_kernel(words: list[str], lines: list[str]) -> None:
    line = next(line for line in lines if line.startswith(f"class htb {words[words.index('classid') + 1]} "))
    shown = line.split()
    units = {"bit": 1, "Kbit": 1000, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
    match = re.fullmatch(r"(\d+)([KMGT]?bit)", shown[shown.index("rate") + 1])
    assert match, line
    close(int(match[1]) * units[match[2]], meant(words[words.index("rate") + 1]), 8)
    assert shown[shown.index("quantum") + 1] == words[words.index("quantum") + 1], line


def checked(profile: str, *argv: str) -> Json:
    """Dry run, set, and the printed lines run by a shell on another device; all have to agree.
    -> what was reported, or None if it was refused"""
    dry_status, dry, said = lowq(profile, "d0", *argv, "--dry-run")
    assert dry_status in (0, 2), said
    status, result, said = lowq(profile, "d0", *argv, "--no-rehearsal")
    assert status == dry_status, f"dry run {dry_status}, then {status}: {said}"
    if status:
        counts["refused"] += 1
        return None
    counts["set"] += 1
    assert dry["commands"] == result["commands"]
    assert dry["params"] == result["params"]
    qdiscs, lines = kernel("d0")
    for text in dry["commands"]:
        words = shlex.split(text)
        if "qdisc" in words and "add" in words and "clsact" not in words:
            in_kernel(words, qdiscs)
        elif "class" in words:
            class_in_kernel(words, lines)
    subprocess.run(["sh", "-e"], input="\n".join(dry["commands"]).replace("dev d0", "dev d1"), text=True, check=True,
                   env={**os.environ, "PATH": PROGRAMS + ":" + os.environ["PATH"]})
    by_hand = kernel("d1")
    assert by_hand == (qdiscs, lines), f"as printed: {by_hand}, by lowq-tc: {(qdiscs, lines)}"
    for kind in ("root", "clsact"):
        run("tc", "qdisc", "del", "dev", "d1", kind, check=False)
    status, _, said = lowq("reset", "d0")
    assert status == 0 and not kernel("d0")[0], f"reset: {said} {kernel('d0')}"
    return result["params"]


# --- properties --------------------------------------------------------------------------


def property_of(share: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(max_examples=max(2, int(EXAMPLES * share)), deadline=None, database=None, derandomize=True,
                    phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def options(**possible: st.SearchStrategy[Any]) -> st.SearchStrategy[list[str]]:
    """Some of these; None is a flag"""
    def one(name: str, value: object) -> list[str]:
        return [] if value is False else ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]

    def words(made: dict[str, object]) -> list[str]:
        return list(itertools.chain.from_iterable(one(name, value) for name, value in made.items()))

    nothing: dict[str, st.SearchStrategy[object]] = {}
    return st.fixed_dictionaries(nothing, optional=possible).map(words)


FRAMES = options(shape_burst=QUEUES, gso_segs=st.integers(1, 65535))


@property_of(0.1)
@given(RATES, st.one_of(st.none(), QUEUES), FRAMES)
def fifo(rate: str, limit: str | None, frame: list[str]) -> None:
    params = checked("fifo", "--rate", rate, *(["--limit", limit] if limit else []), *frame)
    if params:
        close(params["rate_bps"], meant(rate))
        if "limit_bytes" in params and limit:
            close(params["limit_bytes"], meant(limit, meant(rate)))


@property_of(0.3)
@given(RATES, st.one_of(st.none(), QUEUES), TIMES, options(limit=QUEUES, aqm=st.sampled_from(["red", "codel", "fq_codel", "fq"]),
                                                         nodrop=st.booleans(), exact=st.booleans()), FRAMES)
def dctcp(rate: str, k: str | None, rtt: str, more: list[str], frame: list[str]) -> None:
    params = checked("dctcp", "--rate", rate, "--rtt", rtt, *(["--k", k] if k else []), *more, *frame)
    if not params:
        return
    bits = meant(rate)
    if k:
        close(params["k_bytes"], meant(k, bits))
    else:
        # half of what the path holds, or the first whole packet above RTT * C / 7, at least 4, and a burst of TSO
        path = bits * meant(rtt) / 8
        segments = min(65536 // FRAME, int(frame[frame.index("--gso-segs") + 1]) if "--gso-segs" in frame else 65535)
        burst = min(segments, ceil(path / FRAME)) if segments > 1 and params["computed_for"]["tso"] else 0
        packets = max(ceil(path / 2 / FRAME), max(4, path / 7 // FRAME + 1) + burst)
        close(params["k_bytes"], Fraction(packets * FRAME), FRAME)
        assert params["k_bytes"] % FRAME == 0
    if "--limit" in more:
        close(params["limit_bytes"], meant(more[more.index("--limit") + 1], bits))


@property_of(0.15)
@given(RATES, QUEUES, QUEUES, options(limit=QUEUES, burst=st.integers(1, 5000), nodrop=st.booleans(), harddrop=st.booleans(),
                                      probability=st.integers(1, 10**9).map(lambda n: f"{n / 10**9:.9f}")))
def red(rate: str, low: str, high: str, more: list[str]) -> None:
    params = checked("red", "--rate", rate, "--min", low, "--max", high, *more)
    if params:
        close(params["min_bytes"], meant(low, meant(rate)))
        close(params["max_bytes"], meant(high, meant(rate)))


@property_of(0.1)
@given(RATES, QUEUES, options(dscp=st.integers(0, 63), share=st.integers(1, 99), rest_limit=QUEUES))
def segregate(rate: str, k: str, more: list[str]) -> None:
    checked("segregate", "--rate", rate, "--k", k, *more)


@property_of(0.1)
@given(RATES, st.sampled_from(["fq_codel", "dualpi2"]),
       options(limit=QUEUES, step=TIMES, target=TIMES, coupling=st.integers(1, 300), step_min=st.integers(1, 100)))
def prague(rate: str, aqm: str, more: list[str]) -> None:
    checked("prague", "--rate", rate, "--aqm", aqm, *more)


@property_of(0.1)
@given(RATES, TIMES, options(min=QUEUES, max=QUEUES, k=QUEUES, limit=QUEUES, simple=st.booleans(), exact=st.booleans(),
                             probability=st.sampled_from(["1", "1.0", "0.5", ".25", "0.000000001"])))
def ldcp(rate: str, rtt: str, more: list[str]) -> None:
    checked("ldcp", "--rate", rate, "--rtt", rtt, *more)


@property_of(0.05)
@given(RATES, options(min=QUEUES, max=QUEUES, share=st.integers(1, 99), limit=QUEUES, rest_limit=QUEUES))
def roce(rate: str, more: list[str]) -> None:
    checked("roce", "--rate", rate, *more)


# Anything at all: an answer in one line, and no change
ODD = st.one_of(RATES, TIMES, QUEUES, st.sampled_from(["", "-1", "0", "1e9", "0x10", "٣gbit", "1..2mbit", "1.gbit", ".5gbit",
                                                       "1600gbit", "1601gbit", "9" * 17 + "bit", "1 gbit", "10Gbit", "K", "p"]))


@property_of(0.1)
@given(st.sampled_from(["rate", "rtt", "k", "limit", "shape-burst", "gso-segs"]), ODD)
def odd(name: str, value: str) -> None:
    given_words = {"rate": "1gbit", "rtt": "100us", name: value}
    status, made, said = lowq("dctcp", "d0", *(f"--{key}={text}" for key, text in given_words.items()), "--dry-run")
    assert (status == 0 and made["commands"]) or (status == 2 and len(said.splitlines()) == 1), said


def shortened(network: ipaddress.IPv4Network, parts: int) -> str:
    """10.72.0.0/16 as 10.72/16, if nothing is lost by it"""
    words = str(network.network_address).split(".")
    while len(words) > parts and words[-1] == "0":
        words.pop()
    return ".".join(words) + f"/{network.prefixlen}"


@property_of(0.3)
@given(st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1).map(lambda n: n & 0xffff0000)), st.integers(0, 32),
       st.booleans(), st.integers(1, 4), st.integers(1, 70_000))
def routes(address: int, length: int, exact: bool, parts: int, window: int) -> None:
    network = ipaddress.ip_network((address, length), strict=False)
    assert isinstance(network, ipaddress.IPv4Network)
    text = shortened(network, parts) if exact else f"{ipaddress.ip_address(address)}/{length}"
    valid = exact or int(network.network_address) == address
    before = run("ip", "route", "show", "table", "all")
    words = ["host", "reno", "--route", text, "--initcwnd", str(window)]
    dry_status, dry, said = lowq(*words, "--dry-run")
    status, result, said = lowq(*words)
    assert status == dry_status, f"dry run {dry_status}, then {status}: {said}"
    if not valid:
        assert status == 2 and "the prefix is " + str(network) in said, said
    if window > 65535:
        assert status == 2, said
    if status:
        counts["routes refused"] += 1
        return
    counts["routes"] += 1
    assert dry["commands"] == result["commands"]
    shown = run("ip", "route", "show", "exact", str(network))
    assert f"initcwnd {window}" in shown and "congctl reno" in shown, shown
    status, _, said = lowq("host", "reset")
    assert status == 0 and run("ip", "route", "show", "table", "all") == before, said


def main() -> int:
    for line in ("link set lo up", "link add d0 numtxqueues 1 type veth peer name p0",
                 "link add d1 numtxqueues 1 type veth peer name p1", "link set d0 up", "link set p0 up", "link set d1 up",
                 "link set p1 up", "addr add 10.71.0.1/24 dev d0", "route add default via 10.71.0.2"):
        run("ip", *line.split())
    failed = False
    for test in (fifo, dctcp, red, segregate, prague, ldcp, roce, odd, routes):
        try:
            test()
        except Exception as error:
            notes = [note for each in (error, *getattr(error, "exceptions", ())) for note in getattr(each, "__notes__", [])]
            print("\n".join([f"{test.__name__}: {type(error).__name__}: {error}", *notes]))
            failed = True
    print("# generated: " + ", ".join(f"{number} {what}" for what, number in counts.items()))
    return 0 if counts["set"] and counts["routes"] and not failed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        subprocess.run(["rm", "-rf", lowq_tc_crash.STATE], check=False)
