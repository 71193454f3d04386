#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Kills lowq-tc before and after each command that changes the system, while it sets, while
it resets, and while it resets after a killed reset. Then resets, and compares the machine
with what it was: tc, ip and sysctl as text, byte by byte.

The package runs in forked children, whose only function that changes anything counts the
commands and sends SIGKILL to its own process. lowq_tc.sh kills the program from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from typing import Callable, Iterator, NamedTuple

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (os.path.dirname(os.path.realpath(os.environ.get("LOWQ_TC", HERE))), HERE + "/../scripts",
               "/usr/share/lowq"):
    if os.path.isdir(folder + "/lowq_tc"):
        sys.path.insert(0, folder)
        break

from lowq_tc import cli, execute, host, inspect  # noqa: E402
from lowq_tc.command import Command  # noqa: E402

real_run = execute.run
STATE = tempfile.mkdtemp(prefix="lowq-crash-")
os.environ["LOWQ_STATE_DIR"] = STATE
positions = 0


class Wrong(Exception):
    """What the test is there to find."""


def sh(line: str, check: bool = True) -> str:
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise Wrong(f"{line}: {done.stderr.strip()}")
    return done.stdout


# --- the program, and where it is killed ------------------------------------------


class Ended(NamedTuple):
    status: int  # -9: killed
    commands: int  # how many had run
    said: str


def lowq(argv: list[str], at: int = 0, do: Callable[[], None] | None = None) -> Ended:
    """Runs lowq-tc. At point 2n - 1, before its n-th command, or 2n, after it, it is killed, or
    something else is done."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        count = 0

        def point(number: int) -> None:
            if number == at:
                if do:
                    do()
                else:
                    os.kill(os.getpid(), signal.SIGKILL)

        def run(command: Command, space: inspect.Namespace, lock: int) -> None:
            nonlocal count
            count += 1
            os.write(write_end, b"+")
            point(2 * count - 1)
            real_run(command, space, lock)
            point(2 * count)

        execute.run = host.run = run
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")
        status = cli.main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    commands = len(said) - len(said.lstrip("+")) if status == 0 else said.count("+")
    return Ended(status, commands, said.strip("+\n"))


def must(argv: list[str]) -> Ended:
    ended = lowq(argv)
    if ended.status:
        raise Wrong(f"lowq-tc {' '.join(argv)}: status {ended.status}: {ended.said}")
    return ended


# --- the machine as text ------------------------------------------------------------

KEYS = ("net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_allowed_congestion_control")


def picture(space: str | None = None) -> str:
    """Everything that lowq-tc could change, without counters"""
    n = ["-n", space] if space else []
    within = ["ip", "netns", "exec", space] if space else []
    qdiscs = subprocess.run(["tc", *n, "-d", "-j", "qdisc", "show"], capture_output=True, text=True, check=True).stdout
    parts = [re.sub(r'"(refcnt|direct_packets_stat)":\d+,?', "", qdiscs)]
    links = json.loads(subprocess.run(["ip", *n, "-d", "-j", "link", "show"], capture_output=True, text=True,
                                      check=True).stdout)
    asked = ""
    for link in links:
        asked += f"class show dev {link['ifname']}\nfilter show dev {link['ifname']}\n"
        for qdisc in inspect.loads(qdiscs):
            if qdisc["dev"] == link["ifname"] and qdisc["handle"] not in ("0:", "ffff:"):
                asked += f"filter show dev {link['ifname']} parent {qdisc['handle']}\n"
        asked += f"filter show dev {link['ifname']} ingress\nfilter show dev {link['ifname']} egress\n"
    shown = subprocess.run(["tc", *n, "-d", "-force", "-b", "-"], input=asked, capture_output=True, text=True,
                           check=False).stdout
    parts.append("\n".join(line for line in shown.splitlines() if not line.startswith("class fq_codel")))
    for link in links:
        link.pop("operstate", None)  # timers of bonds and bridges
        link.pop("linkinfo", None)
    parts.append(json.dumps(links))
    for words in (["-d", "route", "show"], ["-6", "-d", "route", "show"]):
        parts.append(subprocess.run(["ip", *n, *words], capture_output=True, text=True, check=True).stdout)
    parts.append(subprocess.run([*within, "sysctl", *KEYS], capture_output=True, text=True, check=False).stdout)
    return "\n".join(parts)


def same(before: str, what: str, space: str | None = None) -> None:
    now = picture(space)
    if now != before:
        lines = [f"- {old}\n+ {new}" for old, new in zip(before.splitlines(), now.splitlines()) if old != new]
        raise Wrong(f"{what}: the machine is not as before:\n" + "\n".join(lines)[:2000])
    left = [name for name in os.listdir(STATE) if name != "lock"]
    if left:
        raise Wrong(f"{what}: a record is left: {left}")


# --- one case -----------------------------------------------------------------------


def crash(apply: list[str], reset: list[str], full: bool, stride: int = 1, space: str | None = None) -> int:
    """-> positions tried"""
    before = picture(space)
    commands = must(apply).commands
    back = must(reset).commands
    same(before, f"reset of '{' '.join(apply)}'", space)
    tried = 0

    def points(number: int) -> Iterator[int]:
        return iter(sorted({*range(1, 2 * number + 1, stride), *range(max(1, 2 * number - 3), 2 * number + 1)}))

    for at in points(commands):
        ended = lowq(apply, at)
        if ended.status != -signal.SIGKILL:
            raise Wrong(f"'{' '.join(apply)}' was not killed at {at} of {2 * commands}: {ended}")
        must(reset)
        same(before, f"'{' '.join(apply)}' killed at {at} of {2 * commands}", space)
        tried += 1
    for at in points(back):
        must(apply)
        lowq(reset, at)
        must(reset)
        same(before, f"reset of '{' '.join(apply)}' killed at {at} of {2 * back}", space)
        tried += 1
        for again in range(1, 2 * back + 1):
            if not full and (again != 1 + at % (2 * back) or stride > 1):
                continue
            must(apply)
            lowq(reset, at)
            lowq(reset, again)  # it may end before that
            must(reset)
            same(before, f"reset of '{' '.join(apply)}' killed at {at} and at {again}", space)
            tried += 1
    return tried


# --- devices --------------------------------------------------------------------------


def quiet(name: str) -> None:
    for path in (f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6",):
        if os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write("1")


def fresh() -> None:
    """A network namespace of its own for what follows"""
    if inspect.c_library().unshare(inspect.CLONE_NEWNET):
        raise Wrong("no network namespace")
    for name in ("all", "default"):
        quiet(name)


DEVICES = {
    "veth": ["link add d0 numtxqueues 1 type veth peer name p0", "link set p0 up"],
    "veth4": ["link add d0 numtxqueues 4 numrxqueues 4 type veth peer name p0 numtxqueues 4 numrxqueues 4",
              "link set p0 up"],
    "veth128": ["link add d0 numtxqueues 128 numrxqueues 128 type veth peer name p0 numtxqueues 128 numrxqueues 128",
                "link set p0 up"],
    "dummy": ["link add d0 type dummy"],
    "bond": ["link add d0 type bond"],
    "bridge": ["link add d0 type bridge"],
    "vlan": ["link add u0 type veth peer name p0", "link set u0 up", "link set p0 up",
             "link add link u0 name d0 type vlan id 7"],
    "macvlan": ["link add u0 type veth peer name p0", "link set u0 up", "link set p0 up",
                "link add link u0 name d0 type macvlan"],
}

ROOTS = {
    "none": [],
    "pfifo": ["qdisc add dev d0 root handle 77: pfifo limit 77"],
    "mq": ["qdisc add dev d0 root handle 77: mq", "qdisc add dev d0 parent 77:2 handle 78: fq_codel limit 500",
           "qdisc add dev d0 parent 77:3 handle 79: pfifo limit 9"],
    "clsact": ["qdisc add dev d0 clsact", "filter add dev d0 egress protocol ip pref 5 u32 match u32 0 0 classid 1:1",
               "filter add dev d0 ingress protocol ip pref 6 u32 match u32 0 0 classid 1:1"],
    "ingress": ["qdisc add dev d0 ingress",
                "filter add dev d0 ingress protocol ip pref 6 u32 match u32 0 0 classid 1:1"],
    "htb": ["qdisc add dev d0 root handle 1: htb default 1",
            "class add dev d0 parent 1: classid 1:1 htb rate 3gbit quantum 1514",
            "filter add dev d0 parent 1: protocol ip pref 1 u32 match ip dsfield 0x28 0xfc classid 1:1"],
}

PROFILES = {
    "fifo": "fifo d0 --rate 1gbit --gso-segs 1",
    "dctcp": "dctcp d0 --rate 10gbit --rtt 100us",
    "codel": "dctcp d0 --rate 1gbit --k 20 --aqm codel",
    "fq_codel": "dctcp d0 --rate 1gbit --k 20 --aqm fq_codel",
    "fq": "dctcp d0 --rate 1gbit --k 20 --aqm fq",
    "red": "red d0 --rate 1gbit --min 10 --max 30",
    "segregate": "segregate d0 --rate 1gbit --k 20",
    "prio": "segregate d0 --rate 1gbit --k 20 --sched prio",
    "ldcp": "ldcp d0 --rate 10gbit --rtt 100us --gso-segs 1",
    "simple": "ldcp d0 --rate 10gbit --rtt 100us --simple",
    "prague": "prague d0 --rate 100mbit",
    "roce": "roce d0 --rate 10gbit",
    "hpccpp": "hpccpp d0 --rate 10gbit --switch-id 7",
    "all-queues": "fifo d0 --no-shape",
}

# By default a few; FULL=1: every profile, every kind of device and every root; FULL=2: all
# with all
DEFAULT = [("veth", "none", "fifo"), ("veth4", "none", "all-queues"), ("veth", "clsact", "fifo"),
           ("veth", "htb", "fifo")]
ONCE = [
    *(("veth", "none", profile) for profile in PROFILES
      if profile not in ("all-queues", "codel", "fq", "prio", "simple")),
    ("veth4", "mq", "all-queues"), ("veth128", "none", "all-queues"),
    ("veth", "pfifo", "simple"), ("veth", "clsact", "fifo"), ("veth", "ingress", "codel"), ("veth", "htb", "fifo"),
    ("dummy", "pfifo", "fq"), ("bond", "none", "fifo"), ("bridge", "pfifo", "fifo"), ("vlan", "none", "red"),
    ("macvlan", "none", "prio"),
]


def devices(full: bool, only: str) -> None:
    global positions
    chosen = ONCE if full else DEFAULT
    if os.environ.get("FULL") == "2":
        chosen = [(d, r, p) for d in DEVICES for r in ROOTS for p in PROFILES if r != "mq" or d.startswith("veth4")]
    for device, root, profile in chosen:
        name = f"{device}, {root}, {profile}"
        if only and only not in name:
            continue
        read_end, write_end = os.pipe()
        child = os.fork()  # which has the namespace to itself
        if child == 0:
            said = one_case(device, root, profile, full)
            os.write(write_end, json.dumps(said).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        said = json.loads(text)
        if isinstance(said, int):
            positions += said
            print(f"# {name}: {said} positions", flush=True)
        elif said.startswith("skip "):
            print(f"# {name}: skipped: {said[5:]}", flush=True)
        else:
            print(f"{name}: {said}", flush=True)
            sys.exit(1)


def one_case(device: str, root: str, profile: str, full: bool) -> int | str:
    try:
        fresh()
        try:
            for line in DEVICES[device]:
                sh("ip " + line)
            sh("ip link set d0 up")
            for line in ROOTS[root]:
                sh("tc " + line)
        except Wrong as error:
            return f"skip {error}"
        before = picture()
        argv = PROFILES[profile].split() + ["--no-rehearsal", "--quiet"]
        tried = lowq([*argv, "--dry-run"])
        if root == "htb" or (root == "clsact" and profile == "ldcp") or (root == "ingress" and profile == "ldcp"):
            # cannot be put back exactly: refused, and killed before its first command with --force
            if lowq(argv).status != 2:
                raise Wrong("was not refused")
            same(before, "after it was refused")
            if root == "htb":
                lowq([*argv, "--force"], 1)
                must(["reset", "d0", "-q"])
                same(before, "--force, killed before the first command")
            return 2
        if tried.status == 2:
            return f"skip {tried.said.strip()}"
        # what this kernel lacks is refused by the rehearsal
        if lowq([*PROFILES[profile].split(), "--quiet"]).status == 2:
            same(before, "after it was refused")
            return "skip " + lowq(PROFILES[profile].split()).said
        must(["reset", "d0", "-q"])
        return crash(argv, ["reset", "d0", "-q"], full and device != "veth128", 64 if device == "veth128" else 1)
    except Wrong as error:
        return str(error)


# --- hosts ----------------------------------------------------------------------------

HOSTS = [
    "host reno --default --route 10.71.0.0/24 --route 10.99/16 --route 0.0.0.0/0 --route fd71::/64 --initcwnd 20",
    "host dctcp --default", "host dctcp --route 10.71.0.0/24 --allow", "host ldcp --route 10.71.0.0/24 --initcwnd 87",
    "host prague --default", "host dctcp_ref", "host hpccpp --rtt 100us --flows 16 --rate 10gbit --dscp 40",
]


def hosts(full: bool, only: str) -> None:
    global positions
    space = f"lowqcrash{os.getpid()}"
    sh(f"ip netns add {space}")
    try:
        for line in ("link set lo up", "link add d0 type veth peer name p0", "link set d0 up", "link set p0 up",
                     "addr add 10.71.0.1/24 dev d0", "addr add fd71::1/64 dev d0 nodad",
                     "route add default via 10.71.0.2"):
            sh(f"ip -n {space} {line}")
        for line in HOSTS if full else HOSTS[:1]:
            if only and only not in line:
                continue
            argv = [*line.split(), "-n", space, "-q"]
            if lowq([*argv, "--dry-run"]).status == 2:
                print(f"# {line}: skipped: {lowq([*argv, '--dry-run']).said}", flush=True)
                continue
            # a control's module stays loaded: load it first
            must(argv)
            must(["host", "reset", "-n", space, "-q"])
            tried = crash(argv, ["host", "reset", "-n", space, "-q"], full, space=space)
            positions += tried
            print(f"# {line}: {tried} positions", flush=True)
    finally:
        sh(f"ip netns del {space}", check=False)


# --- devices that change under way ------------------------------------------------------


def moving(kind: str) -> None:
    """The device is renamed, gets another address, is deleted, or deleted and made again, before
    and after each command."""
    global positions
    fresh()
    make = "link add d0 numtxqueues 1 type veth peer name p0"
    do = {
        "rename": ["ip link set d0 down", "ip link set d0 name other", "ip link set other up"],
        "address": ["ip link set d0 address 02:00:00:00:00:77"],
        "deletion": ["ip link del d0"],
        "re-creation": ["ip link del d0", "ip " + make, "ip link set d0 up"],
    }[kind]

    def disturb() -> None:
        for line in do:
            sh(line)

    def made() -> None:
        for name in ("d0", "other"):
            sh(f"ip link del {name}", check=False)
        sh("ip " + make)
        sh("ip link set d0 up")
        sh("ip link set d0 address 02:00:00:00:00:01")

    apply, number = ["fifo", "d0", "--rate", "1gbit", "--gso-segs", "1", "--no-rehearsal", "-q"], 4
    for at in range(1, 2 * number + 1):
        for reset_too in (False, True):
            made()
            before = picture()
            if reset_too:
                must(apply)
                ended = lowq(["reset", "d0", "-q"], at, disturb)
                if "+" * ((at + 1) // 2) not in "+" * ended.commands:
                    continue
            else:
                lowq(apply, at, disturb)
            positions += 1
            if kind in ("rename", "address"):
                for _ in range(2):
                    last = lowq(["reset", "other" if kind == "rename" else "d0", "-q"])
                if last.status:
                    raise Wrong(f"{kind} at {at}: reset: {last.said}")
                if kind == "rename":
                    for line in ("ip link set other down", "ip link set other name d0", "ip link set d0 up"):
                        sh(line)
                sh("ip link set d0 address 02:00:00:00:00:01")
                same(before, f"{kind} at {at}")
            else:
                lowq(["reset", "d0", "-q"])
                lowq(["reset", "--all", "--forget", "-q"])
                left = [name for name in os.listdir(STATE) if name != "lock"]
                if left:
                    raise Wrong(f"{kind} at {at}: --forget left {left}")
                if kind == "re-creation" and "10f0:" in sh("tc qdisc show dev d0"):
                    if lowq(["reset", "d0"]).status != 1:
                        raise Wrong(f"{kind} at {at}: a queue is left and not reported")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["devices", "hosts", "rename", "address", "deletion", "re-creation"])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    full = os.environ.get("FULL") in ("1", "2")
    try:
        if given.part == "devices":
            devices(full, given.only)
        elif given.part == "hosts":
            hosts(full, given.only)
        else:
            moving(given.part)
    except Wrong as error:
        print(error)
        return 1
    finally:
        subprocess.run(["rm", "-rf", STATE], check=False)
    print(f"# {positions} positions")
    return 0 if positions else 4


if __name__ == "__main__":
    sys.exit(main())
