#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Routes made at random, with every kind of state that ip shows: while lowq-tc has set them they lose
nothing, and after reset they are as they were, to the word. What lowq-tc cannot put back it
refuses, with one line and nothing changed.

usage: lowq_tc_objects.py NUMBER [SEED], as root, in a network namespace of its own
Exit status: 0 all hold, 1 one does not (it is printed).
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from typing import Iterator

import lowq_tc_crash
from lowq_tc_crash import Wrong, ip_batch, lowq

chance = random.Random()
took: dict[str, int] = {}  # attribute -> objects with it that lowq-tc accepted


def some(share: float, *words: object) -> list[str]:
    """These words, or none"""
    return list(map(str, words)) if chance.random() < share else []


def number(low: int, high: int) -> int:
    return chance.randint(low, high)


# what must have been among them
WANTED = ("scope", "weight", "onlink", "rto_min", "mtu lock", "src", "pref", "proto", "expires (refused)", "ra (refused)")


def enough(count: int) -> Iterator[int]:
    """As many as asked for, and more until all that is wanted was among them"""
    yield from range(count)
    for at in range(count, 5 * count):
        if all(name in took for name in WANTED):
            return
        yield at


# --- routes ---------------------------------------------------------------------------

METRICS = {
    "mtu": (1280, 1500), "advmss": (500, 1400), "window": (1000, 60000), "ssthresh": (2, 99), "cwnd": (2, 99),
    "initcwnd": (1, 99), "initrwnd": (1, 99), "hoplimit": (1, 255), "reordering": (3, 99),
}


def metrics() -> list[str]:
    words: list[str] = []
    for name, (low, high) in METRICS.items():
        words += some(0.2, name, *some(0.4, "lock"), number(low, high))
    words += some(0.3, "rto_min", f"{number(200, 900)}ms") + some(0.2, "rtt", f"{8 * number(1, 99)}ms")
    words += some(0.1, "quickack", 1) + some(0.1, "fastopen_no_cookie", 1) + some(0.1, "features", "ecn")
    return words + some(0.15, "congctl", *some(0.5, "lock"), "reno")


def route(at: int) -> tuple[str, str, list[str]]:
    """-> its family, its prefix, the words of "ip route add\""""
    six = chance.random() < 0.5

    def gateway() -> str:
        return f"fd71::{number(2, 99):x}" if six else f"10.71.0.{number(2, 99)}"

    prefix = f"fd72:{at + 1:x}::/64" if six else f"10.72.{at}.0/24"
    words = [prefix] + ([] if six else some(0.2, "tos", "0x10"))
    way = chance.random()
    if way < 0.4:
        words += ["via", gateway(), "dev", "d0", *some(0.2, "onlink")]
    elif way < 0.5 and not six:
        words += ["via", "inet6", "fd71::2", "dev", "d0"]
    elif way < 0.6:
        words += ["dev", "d0", *([] if six else some(0.6, "scope", chance.choice(["global", "link", "site"])))]
    elif way < 0.7:
        words += ["via", gateway(), "dev", "d0"]
    words += some(0.4, "proto", chance.choice(["static", "boot", "77", "dhcp", "bgp"]))
    words += some(0.3, "metric", number(1, 4000))
    words += some(0.3, "src", "fd71::1" if six else "10.71.0.1")
    words += (some(0.3, "pref", chance.choice(["low", "high"])) + some(0.1, "expires", number(100, 900))
              + some(0.1, "proto", "ra") if six else some(0.2, "realm", number(1, 99)))
    if words.count("proto") == 2:
        del words[words.index("proto"):words.index("proto") + 2]
    words += metrics()
    if way >= 0.7:
        for one in range(number(2, 3)):
            words += ["nexthop", "via", gateway(), "dev", "d0", "weight", str(number(1, 99))] + some(0.2, "onlink")
    return "-6" if six else "-4", prefix, words


def routes_shown(family: str, *lines: str) -> dict[str, str]:
    """Prefix -> its route, with all that ip shows; "lines" of ip, one of which is "route show", in one process. Empty:
    one failed"""
    done = subprocess.run(["ip", family, "-d", "-b", "-"], capture_output=True, text=True, check=False,
                          input="\n".join(lines or ["route show"]) + "\n")
    found: dict[str, str] = {}
    last = ""
    for line in done.stdout.splitlines() if not done.returncode else ():
        line = re.sub(r"expires \d+sec", "expires", line).replace("linkdown", "")
        if not line.startswith("\t"):
            last = line.split()[1]
            found[last] = ""
        found[last] += " ".join(line.split()) + "\n"
    return found


def attributes(words: list[str]) -> set[str]:
    named = {word for word in words if word.isalpha() or word == "rto_min"}
    return named | {f"{one} lock" for one, two in zip(words, words[1:]) if two == "lock"}


def routes(count: int) -> None:
    ip_batch(["link add d0 numtxqueues 1 type veth peer name p0", "link set p0 up", "link set d0 up",
              "addr add 10.71.0.1/24 dev d0", "addr add fd71::1/64 dev d0 nodad"])
    for at in enough(count):
        family, prefix, words = route(at % 250)
        before = routes_shown(family, f"route add {' '.join(words)}", "route show")
        if not before:
            continue  # not a route at all
        own = (["--initcwnd", "33"], ["--quickack"], list[str]())[at % 3]
        ended = lowq(["host", "reno", "--route", prefix, *own, "-q"])
        said = f"'ip {family} route add {' '.join(words)}': "
        refused = ended.status == 2
        if not refused:
            if ended.status:
                raise Wrong(said + ended.said)
            had, has = before[prefix].split(), routes_shown(family)[prefix].split()
            lost = [word for word in had if had.count(word) > has.count(word) and word not in ("reno", "lock")
                    and not (had[had.index(word) - 1] in ("initcwnd", "lock") and "--initcwnd" in own)]
            if lost or {"expires", "ra"} & set(words):
                raise Wrong(said + f"while set it lost {lost}")
            ended = lowq(["host", "reset", "-q"])
        # all with the same prefix: those with another tos or metric, too
        now = routes_shown(family, "route show", f"route flush exact {prefix}")
        if refused:
            if now != before or len(ended.said.splitlines()) != 1:
                raise Wrong(said + "refused, but: " + ended.said)
            if not {"expires", "ra"} & set(words):
                raise Wrong(said + ended.said)
            for name in {"expires", "ra"} & set(words):
                took[f"{name} (refused)"] = took.get(f"{name} (refused)", 0) + 1
            continue
        if ended.status or now != before:
            raise Wrong(said + f"{ended.said}: is {now.get(prefix)}, was {before[prefix]}")
        for name in attributes(words):
            took[name] = took.get(name, 0) + 1


def main() -> int:
    chance.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    try:
        routes(int(sys.argv[1]))
    except Wrong as error:
        print(error)
        return 1
    finally:
        subprocess.run(["rm", "-rf", lowq_tc_crash.STATE], check=False)
    print("# accepted, or refused as they had to be: " + ", ".join(f"{name} {took[name]}" for name in sorted(took)))
    missing = [name for name in WANTED if name not in took]
    if missing:
        print(f"never tried: {missing}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
