#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Kills lowq-tc before and after each command that changes the system: while it sets, while it
resets, and while it resets after a killed reset. Then resets, and compares the machine with
what it was: tc, ip and sysctl as text, byte by byte.

The package runs in forked children. The only function in it that changes anything counts there,
and sends SIGKILL to its own process. It hands many commands to one tc: of these it then runs only
those before the point. lowq_tc.sh kills the program from outside.

FULL=1 pairs each profile with each kind of device, and both with what may be there before; some
of these pairs are THOROUGH. FULL=2: all are, and where there are hundreds of positions, each of
them is tried.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
from typing import Callable, Iterable, NamedTuple

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (os.path.dirname(os.path.realpath(os.environ.get("LOWQ_TC", HERE))), HERE + "/../../scripts",
               "/usr/share/lowq"):
    if os.path.isdir(folder + "/lowq_tc"):
        sys.path.insert(0, folder)
        break

from lowq_common import system  # noqa: E402
from lowq_tc import cli, command_line, execute, journal  # noqa: E402
from lowq_tc.command import Command  # noqa: E402

for part in ("actions", "old"):  # else each child would compile them
    importlib.import_module("lowq_tc." + part)

FULL = int(os.environ.get("FULL") or 0)
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


def ip_batch(lines: Iterable[str], space: str | None = None) -> None:
    """All of them in one process"""
    done = subprocess.run(["ip", *(["-n", space] if space else []), "-b", "-"], capture_output=True, text=True,
                          input="\n".join(lines) + "\n", check=False)
    if done.returncode:
        raise Wrong(f"ip: {done.stderr.strip()}")


# --- the program, and where it is killed ------------------------------------------


class Ended(NamedTuple):
    status: int  # -9: killed
    points: int  # how many places it came to at which it can be killed
    said: str


def lowq(argv: list[str], at: int = 0, do: Callable[[], None] | None = None, writes: bool = False) -> Ended:
    """Runs lowq-tc. At point number "at" it is killed, or something else is done. Points are
    before and after each command, with "writes" also before and after each write of the journal."""
    points = mmap.mmap(-1, 4)  # shared with the child
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")
            os._exit(counting(argv, at, do, writes, points))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        ended = Ended(status, int.from_bytes(points[:], "little"), said.read().strip())
    if ended.status not in (0, 1, 2, 4, -signal.SIGKILL):
        raise Wrong(f"lowq-tc {' '.join(argv)}: {ended.said}")
    return ended


def counting(argv: list[str], at: int, do: Callable[[], None] | None, writes: bool, points: mmap.mmap) -> int:
    """In the child, for good"""

    def point() -> None:
        count = int.from_bytes(points[:], "little") + 1
        points[:] = count.to_bytes(4, "little")
        if count == at and do:
            do()
        elif count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(real: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*given: object) -> None:
            point()
            real(*given)
            point()
        return wrapped

    real_run = execute.run

    def run(part: list[Command], space: system.Namespace, lock: int) -> None:
        begin = 0
        for number in range(len(part)):
            if int.from_bytes(points[:], "little") + 1 == at and number > begin:
                real_run(part[begin:number], space, lock)
                begin = number
            point()
        real_run(part[begin:], space, lock)
        point()

    execute.run = run
    for name in ("write", "drop") if writes else ():
        setattr(journal.Journal, name, around(getattr(journal.Journal, name)))
    status = 99
    try:
        status = cli.main(argv)
    except Exception as error:  # nothing may get here
        print(f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def must(argv: list[str]) -> Ended:
    ended = lowq(argv)
    if ended.status not in (0, command_line.CHANGED):
        raise Wrong(f"lowq-tc {' '.join(argv)}: status {ended.status}: {ended.said}")
    return ended


# --- the machine as text ------------------------------------------------------------

KEYS = ("net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", "net.ipv4.tcp_rmem", "net.ipv4.tcp_ecn_option",
        "net.ipv4.tcp_ecn_fallback", "net.ipv4.tcp_allowed_congestion_control")
MODULES = ("int_reflector", "roce_rcm")
PARAMETERS = ("tcp_hpccpp.base_rtt_ns", "tcp_hpccpp.flows", "tcp_hpccpp.line_rate_mbps",
              "int_reflector.flows", "int_host.dscp")


def picture(space: str | None = None) -> str:
    """Everything that lowq-tc could change, without counters; with space, of the host, too"""
    n = ["-n", space] if space else []

    def shown(*words: str, given: str | None = None) -> str:
        return subprocess.run([words[0], *n, *words[1:]], capture_output=True, text=True, input=given,
                              check=given is None).stdout

    qdiscs = shown("tc", "-d", "-j", "qdisc", "show")
    parts = [re.sub(r'"(refcnt|direct_packets_stat)":\d+,?', "", qdiscs)]
    asked = "link show\n" + ("route show table all\n" if space else "")
    links, *routes = map(json.loads, shown("ip", "-d", "-j", "-b", "-", given=asked).splitlines())
    asked = ""
    # below a queue of the kernel's own there can be neither classes nor filters
    own = {qdisc["dev"] for qdisc in system.loads(qdiscs) if qdisc["handle"] != "0:"}
    for name in [link["ifname"] for link in links if link["ifname"] in own]:
        asked += f"class show dev {name}\nfilter show dev {name}\n"
        for qdisc in system.loads(qdiscs):
            if qdisc["dev"] == name and qdisc["handle"] not in ("0:", "ffff:"):
                asked += f"filter show dev {name} parent {qdisc['handle']}\n"
        asked += f"filter show dev {name} ingress\nfilter show dev {name} egress\n"
    classes = shown("tc", "-d", "-force", "-b", "-", given=asked) if asked else ""
    parts.append("\n".join(line for line in classes.splitlines() if not line.startswith("class fq_codel")))
    for link in links:
        link.pop("operstate", None)  # timers of bonds and bridges
        link.pop("linkinfo", None)
    parts.append(json.dumps(links))
    if space:
        parts += [json.dumps(route) for route in routes[0] if route.get("table") != "local"]
        where = system.Namespace(space)
        parts += [f"{key} = {where.sysctl(key)}" for key in KEYS]
        parts += [f"{key} = {system.read_file(system.parameter_path(key))}" for key in PARAMETERS]
        parts += [f"{module} loaded: {system.module_loaded(module)}" for module in MODULES]
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


def chosen(number: int, every_one: bool = FULL == 2) -> list[int]:
    """Of the points 1 to number all, or, where there are hundreds, some"""
    every = 1 if number < 60 or every_one else 64
    return sorted({*range(1, number + 1, every), *range(1, min(number, 4) + 1), *range(max(1, number - 3), number + 1)})


def crash(apply: list[str], reset: list[str], earlier: list[str] | None = None, space: str | None = None,
          thorough: bool = False) -> int:
    """Kills "apply" everywhere, then "reset"; earlier: what lowq-tc has set before. Thorough: also
    around writes of the journal, with pairs of positions of two resets, and with the same
    call again after the killed one. -> positions tried"""
    before = picture(space)
    name = " ".join(apply)
    tried = 0

    def setting() -> None:
        if earlier:
            must(earlier)
        must(apply)

    def judged(what: str) -> None:
        nonlocal tried
        must(reset)
        same(before, what, space)
        tried += 1

    def killed(argv: list[str], at: int) -> Ended:
        return lowq(argv, at, writes=thorough)

    if earlier:
        must(earlier)
    forward, back = killed(apply, 0).points, killed(reset, 0).points
    same(before, f"reset of '{name}'", space)
    for at in chosen(forward):
        for again in (False, True) if thorough else (at % 4 == 0,):
            if earlier:
                must(earlier)
            ended = killed(apply, at)
            if ended.status != -signal.SIGKILL:
                raise Wrong(f"'{name}' was not killed at {at} of {forward}: {ended}")
            if again:
                must(apply)
            judged(f"'{name}' killed at {at} of {forward}{', set again' if again else ''}")
    for at in chosen(back):
        # then a reset that runs to its end, and one that is killed, too
        for second in (0, *(chosen(back, False) if thorough else [1 + at % 2])):
            setting()
            killed(reset, at)
            ended = killed(reset, second) if second else Ended(-signal.SIGKILL, 0, "")
            judged(f"reset of '{name}' killed at {at} and {second} of {back}")
            if ended.status != -signal.SIGKILL:
                break  # there was less left to undo
    return tried


# --- devices --------------------------------------------------------------------------


def fresh() -> None:
    """A network namespace of its own for what follows"""
    if system.c_library().unshare(system.CLONE_NEWNET):
        raise Wrong("no network namespace")
    for name in ("all", "default"):
        path = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
        if os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write("1")


def veth(queues: int) -> list[str]:
    count = f"numtxqueues {queues} numrxqueues {queues}"
    return [f"link add d0 {count} type veth peer name p0 {count}", "link set p0 up"]


UPPER = ["link add u0 type veth peer name p0", "link set u0 up", "link set p0 up"]
DEVICES = {
    "veth": veth(1),
    "veth4": veth(4),
    "veth128": veth(128),
    "bond": ["link add d0 type bond"],
    "bridge": ["link add d0 type bridge"],
    "vlan": [*UPPER, "link add link u0 name d0 type vlan id 7"],
    "macvlan": [*UPPER, "link add link u0 name d0 type macvlan"],
}
U32 = "protocol ip pref {} u32 match u32 0 0 classid 1:1"
# what is there before; "ours" is made by an earlier call
ROOTS: dict[str, list[str]] = {
    "none": [],
    "ours": [],
    "clsact": ["qdisc add dev d0 clsact", "filter add dev d0 egress " + U32.format(5),
               "filter add dev d0 ingress " + U32.format(6)],
    "ingress": ["qdisc add dev d0 ingress", "filter add dev d0 ingress " + U32.format(6)],
}
OURS = "ldcp d0 --rate 5gbit --rtt 100us --gso-segs 2"


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
    "all-queues": "dctcp d0 --no-shape --rate 1gbit --k 20 --aqm fq_codel",
}
DEFAULT = [("veth", "ours", "fifo"), ("veth", "none", "ldcp")]
MANY = ("veth128", "none", "all-queues")  # 129 commands each way
THOROUGH = [("veth", "none", "ldcp"), ("veth", "ours", "fifo"), ("veth4", "ours", "all-queues")]


def cases() -> list[tuple[str, str, str]]:
    if not FULL:
        return DEFAULT
    names, roots = list(DEVICES), list(ROOTS)
    pairs = [
        (names[(i + d) % len(names)], roots[(2 * i + d) % len(roots)], profile)
        for d in range(len(names)) for i, profile in enumerate(PROFILES)
    ]
    return THOROUGH + [MANY] + [case for case in pairs if case not in THOROUGH]


def devices(only: str) -> None:
    global positions
    failed = False
    for device, root_name, profile in cases():
        name = f"{device}, {root_name}, {profile}"
        if only and only not in name:
            continue
        with tempfile.TemporaryFile("w+") as file:
            child = os.fork()  # which has a namespace to itself
            if child == 0:
                json.dump(one_case(device, root_name, profile), file)
                file.flush()
                os._exit(0)
            os.waitpid(child, 0)
            file.seek(0)
            said = json.loads(file.read() or '"no answer"')
        if isinstance(said, int):
            positions += said
            print(f"# {name}: {said} positions", flush=True)
        elif said.startswith("skip "):
            print(f"# {name}: skipped: {said[5:]}", flush=True)
        else:
            print(f"{name}: {said}", flush=True)
            failed = True
            subprocess.run(["rm", "-rf", STATE], check=False)
    if failed:
        raise Wrong("not all of them are as before")


def one_case(device: str, root_name: str, profile: str) -> int | str:
    try:
        fresh()
        try:
            ip_batch([*DEVICES[device], "link set d0 up"])
            for line in ROOTS[root_name]:
                sh("tc " + line)
        except Wrong as error:
            return f"skip {error}"
        before = picture()
        argv = PROFILES[profile].split()
        quick = [*argv, "-q"]
        if profile == "ldcp" and root_name == "ingress":
            if lowq(quick).status != 2:
                raise Wrong("was not refused")
            same(before, "after it was refused")
            return 1
        # what the kernel lacks is seen at once
        tried = lowq(quick)
        if tried.status:
            same(before, "after it failed")
            if "this kernel has no" not in tried.said:
                raise Wrong(tried.said)
            return "skip " + tried.said
        must(["reset", "d0", "-q"])
        earlier = [*OURS.split(), "-q"] if root_name == "ours" else None
        return crash(quick, ["reset", "d0", "-q"], earlier,
                     thorough=FULL == 2 or (FULL == 1 and (device, root_name, profile) in THOROUGH))
    except Wrong as error:
        return str(error)
    except Exception as error:  # the test's own
        return f"{type(error).__name__}: {error}"


# --- hosts ----------------------------------------------------------------------------

HOSTS = [
    "host reno --default --route 10.71.0.0/24 --route 10.99/16 --route 0.0.0.0/0 --route fd71::/64 --initcwnd 20",
    "host dctcp --default", "host dctcp --route 10.71.0.0/24 --allow", "host ldcp --route 10.71.0.0/24 --initcwnd 87",
    "host prague --default", "host dctcp_ref", "host hpccpp --rtt 100us --flows 16 --rate 10gbit --dscp 40",
    "host roce",
]
HOST_WORLD = ("link set lo up", "link add d0 numtxqueues 1 type veth peer name p0", "link set d0 up", "link set p0 up",
              "addr add 10.71.0.1/24 dev d0", "addr add fd71::1/64 dev d0 nodad",
              "route add default via 10.71.0.2", "route add 10.72.0.0/16 via 10.71.0.2 initcwnd 5")
HOST_OURS = "host cubic --default --route 10.71.0.0/24 --route 10.72.0.0/16 --quickack"


def hosts(only: str) -> None:
    global positions
    space = f"lowqcrash{os.getpid()}"
    sh(f"ip netns add {space}")
    try:
        ip_batch(HOST_WORLD, space)
        reset = ["host", "reset", "-n", space, "-q"]
        for line in HOSTS if FULL else HOSTS[:1]:
            for ours in (False, True) if FULL else (True,):
                name = line + (", over an earlier one" if ours else "")
                if only and only not in name:
                    continue
                argv = [*line.split(), "-n", space, "-q"]
                tried = lowq(argv)  # and loads the control's module, which stays loaded
                if tried.status == 2:
                    print(f"# {name}: skipped: {tried.said}", flush=True)
                    continue
                must(reset)
                count = crash(argv, reset, [*HOST_OURS.split(), "-n", space, "-q"] if ours else None, space,
                              thorough=FULL == 2 or (FULL == 1 and ours and line == HOSTS[0]))
                positions += count
                print(f"# {name}: {count} positions", flush=True)
    finally:
        sh(f"ip netns del {space}", check=False)


# --- files ----------------------------------------------------------------------------

FILES: list[dict[str, str]] = [
    {"d0": 'LOWQ_TC="ldcp --rate 5gbit --rtt 100us --gso-segs 2"',
     "host": 'LOWQ_HOST="cubic --default --route 10.71.0.0/24 --route 10.72.0.0/16 --quickack"'},
    {"d0": 'LOWQ_TC="fifo --rate 1gbit"',
     "host": 'LOWQ_HOST="reno --allow --route 10.71.0.0/24 --route 10.99/16 --initcwnd 20"'},
    {},
]


def files(only: str) -> None:
    """"apply" of other files than before, killed everywhere: called again, it ends where one that
    was not killed ends, and then changes nothing; and files that say nothing put all back."""
    global positions
    space = f"lowqcrash{os.getpid()}"

    def apply(number: int) -> list[str]:
        return ["apply", f"{STATE}-{number}", "-n", space, "-q"]

    for number, said in enumerate(FILES):
        os.mkdir(f"{STATE}-{number}")
        for name, line in said.items():
            with open(f"{STATE}-{number}/{name}.conf", "w", encoding="ascii") as file:
                file.write(line + "\n")
    sh(f"ip netns add {space}")
    try:
        ip_batch(HOST_WORLD, space)
        before = picture(space)
        must(apply(0))
        points = lowq(apply(1), writes=True).points
        wanted = picture(space)
        must(apply(2))
        same(before, "files that say nothing", space)
        for at in range(1, points + 1) if FULL else range(5, points + 1, 6):
            must(apply(0))
            if lowq(apply(1), at, writes=True).status != -signal.SIGKILL:
                raise Wrong(f"apply was not killed at {at} of {points}")
            must(apply(1))
            if picture(space) != wanted:
                raise Wrong(f"apply after one that was killed at {at}: is not as after one that was not")
            if lowq(apply(1)).status:
                raise Wrong(f"apply after one that was killed at {at}: changes something again")
            must(apply(2))
            same(before, f"apply killed at {at} of {points}, again, and files that say nothing", space)
            positions += 1
        if FULL:
            positions += crash(apply(1), apply(2), apply(0), space, thorough=FULL == 2)
    finally:
        sh(f"ip netns del {space}", check=False)
        subprocess.run(["rm", "-rf", *(f"{STATE}-{number}" for number in range(3))], check=False)


# --- devices and namespaces that change under way ---------------------------------------


class Move(NamedTuple):
    make: list[str]  # of ip: how d0 comes to be
    do: list[str]  # what happens to it at the point
    undo: list[str]  # what the user does about it before the comparison
    names: tuple[str, ...]  # under which reset finds it


ADDRESS = ["link set d0 address 02:00:00:00:00:01"]
MAKE = ["link add d0 numtxqueues 1 type veth peer name p0", *ADDRESS]
MOVES = {
    "rename": [Move(MAKE, ["link set d0 down", "link set d0 name other", "link set other up"],
                    ["link set other down", "link set other name d0", "link set d0 up"], ("other", "d0"))],
    "address": [Move([make, *ADDRESS], ["link set d0 address 02:00:00:00:00:77"], ADDRESS, ("d0",))
                for make in (MAKE[0], *DEVICES["bridge"], *DEVICES["bond"])],
    "deletion": [Move(MAKE, ["link del d0"], [], ("d0",))],
    "re-creation": [Move(MAKE, ["link del d0", *MAKE, "link set d0 up"], [], ("d0",))],
    "namespace": [Move(MAKE, ["netns del NS"], ["netns add NS"], ("d0",))],
}


def moving(kind: str, _: str) -> None:
    """At each point of a set and of a reset the device, or its namespace, changes."""
    profile = PROFILES["ldcp" if FULL else "fifo"]
    for move in MOVES[kind]:
        for resets in (False, True):
            at = 1
            while one_move(kind, move, profile, resets, at):
                at += 1
            print(f"# {kind}, {move.make[0].split('type ')[1].split()[0]}, {'reset' if resets else 'set'}:"
                  f" {at - 1} positions", flush=True)


def one_move(kind: str, move: Move, profile: str, resets: bool, at: int) -> bool:
    """-> was there such a point?"""
    global positions
    space = f"lowqmove{os.getpid()}"
    what = f"{kind} at {at} of {'reset' if resets else 'set'}, {move.make[0]}"
    reached_file = f"{STATE}/reached"

    def ip(lines: list[str]) -> None:
        if lines:
            ip_batch([line.replace("NS", space) for line in lines], None if "NS" in " ".join(lines) else space)

    def world() -> None:
        sh(f"ip netns add {space}", check=False)
        ip([*move.make, "link set d0 up"])

    def disturb() -> None:
        with open(reached_file, "w", encoding="ascii"):
            pass
        ip(move.do)

    def reset(*words: str) -> Ended:
        return lowq(["reset", *words, "-n", space, "-q"])

    sh(f"ip netns del {space}", check=False)
    world()
    try:
        before = picture(space)
        apply = [*profile.split(), "-n", space, "-q"]
        if resets:
            must(apply)
            lowq(["reset", "d0", "-n", space, "-q"], at, disturb)
        else:
            lowq(apply, at, disturb)
        if not os.path.exists(reached_file):
            reset("d0")
            return False
        os.unlink(reached_file)
        positions += 1
        last = reset(move.names[at % len(move.names)])
        if kind in ("rename", "address"):
            if last.status and reset(move.names[0]).status:
                raise Wrong(f"{what}: reset: {last.said}")
            ip(move.undo)
            same(before, what, space)
            return True
        if kind == "namespace":
            if "no network namespace" not in last.said:
                raise Wrong(f"{what}: reset in a namespace that is gone: {last.said}")
            world()
            # a new one: it inherits nothing, also if it has the inode of the old one
            if "nothing to undo" not in lowq(["reset", "d0", "-n", space]).said:
                raise Wrong(f"{what}: the new namespace inherits a record")
        elif kind == "re-creation":
            must(["reset", "--all", "-n", space, "-q"])
            if "10f0:" in sh(f"tc -n {space} qdisc show dev d0"):
                raise Wrong(f"{what}: a queue is left")
        reset("--all")
        left = [name for name in os.listdir(STATE) if name != "lock"]
        if left:
            raise Wrong(f"{what}: reset --all left {left}")
        return True
    finally:
        sh(f"ip netns del {space}", check=False)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["devices", "hosts", "files", *MOVES])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    try:
        parts = {"devices": devices, "hosts": hosts, "files": files}
        parts.get(given.part, functools.partial(moving, given.part))(given.only)
    except Wrong as error:
        print(error)
        return 1
    finally:
        subprocess.run(["rm", "-rf", STATE], check=False)
    print(f"# {positions} positions")
    return 0 if positions else 4


if __name__ == "__main__":
    sys.exit(main())
