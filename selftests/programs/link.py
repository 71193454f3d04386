#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""link.py - exact links beside the arithmetic of fractions

usage: link.py PREFIX TEST

Builds a link from a to b with labnet, sends UDP packets from a, and compares when they arrive, and which, with
what the plan says. A line for each deviation; exit status 1 if there is one.
"""
from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from fractions import Fraction
from typing import IO, Any, Callable, NamedTuple, Sequence

Plan = dict[str, Any]
PREFIX, PORT, HEADERS = sys.argv[1], 7, 42  # of Ethernet, IP and UDP
libc = ctypes.CDLL(None, use_errno=True)
faults: list[str] = []
HOME = open("/proc/self/ns/net", "rb")


class Packet(NamedTuple):
    """What b gets"""
    number: int
    at: int  # ns
    good: bool  # as it was sent


def expect(what: str, good: bool, found: object = "") -> None:
    if not good:
        faults.append(f"{what}: {found}" if found != "" else what)


def enter(node: str) -> None:
    with open(f"/run/netns/{node}", "rb") as ns:
        join(ns)


def join(ns: IO[bytes]) -> None:
    if libc.setns(ns.fileno(), 0):
        raise OSError(ctypes.get_errno(), ns.name)


def remove() -> None:
    """The network, from outside: labnet kills what is inside"""
    join(HOME)
    subprocess.run(["labnet", "--remove", PREFIX], check=True)


def plan(there: Plan, *, mtu: int = 9000, offloads: bool = False, **rest: Any) -> Plan:
    """there: from a to b; the way back is infinitely fast"""
    ends = [{"node": "a", "dev": "eth0", "addresses": ["10.0.0.1/24"]} | there,
            {"node": "b", "dev": "eth0", "addresses": ["10.0.0.2/24"]}]
    return {"prefix": PREFIX, "exact": True, "nodes": [{"name": "a"}, {"name": "b"}],
            "sysctl": {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1},
            "links": [{"ends": ends, "mtu": mtu, "offloads": offloads, "neighbours": True, "txqueuelen": 32767}]} | rest


class Path:
    """Sockets at both ends of a link"""

    def __init__(self, what: Plan, *options: str) -> None:
        subprocess.run(["labnet", *options, "-"], input=json.dumps(what), text=True, check=True)
        enter(PREFIX + "a")
        self.out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.out.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE
        enter(PREFIX + "b")
        self.in_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.in_.setsockopt(socket.SOL_SOCKET, 33, 1 << 30)  # SO_RCVBUFFORCE
        self.in_.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        self.in_.bind(("10.0.0.2", PORT))

    def send(self, sizes: Sequence[int], first: int = 0) -> None:
        """Packets of so many bytes with Ethernet's header, all at once"""
        for number, size in enumerate(sizes, first):
            self.out.sendto(number.to_bytes(4, "big") + bytes(size - HEADERS - 4), ("10.0.0.2", PORT))

    def receive(self, most: int) -> list[Packet]:
        """In a minute, of the lab's, at most so many"""
        packets = []
        time.sleep(60)
        while len(packets) < most:
            try:
                data, ancillary, _, _ = self.in_.recvmsg(65536, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            seconds, ns = struct.unpack("qq", ancillary[0][2])
            packets.append(Packet(int.from_bytes(data[:4], "big"), seconds * 10 ** 9 + ns, not any(data[4:])))
        return packets

    def __enter__(self) -> Path:
        return self

    def __exit__(self, *_: object) -> None:
        self.out.close()
        self.in_.close()
        remove()


def leave(rate: int, sizes: Sequence[int]) -> list[int]:
    """When packets arrive that wait for each other, ns after the first one's beginning"""
    bits, times = 0, []
    for size in sizes:
        bits += 8 * size
        times.append(Fraction(bits * 10 ** 9, rate).__floor__())
    return times


def rates() -> None:
    """Each packet arrives within a nanosecond of its last bit, at any rate and size"""
    mixed = [64, 9000, 1514, 66] * 250
    for rate, sizes in ((1_000_000, [64] * 50 + [9000] * 50), (10_000_000_000, mixed), (400_000_000_000, [66] * 1000),
                        (400_000_000_000, [9000] * 1000), (800_000_000_000, mixed), (1_600_000_000_000, [64] * 2000),
                        (1_600_000_000_000, mixed), (123_456_789_012, mixed)):
        # a system call takes a nanosecond: these are there before the first one has left
        sizes = [9000] * 200 + sizes if rate > 10 ** 7 else sizes
        with Path(plan({"rate": f"{rate}bit", "delay": "1ms"})) as path:
            path.send(sizes)
            packets, times = path.receive(len(sizes)), leave(rate, sizes)
            expect(f"{rate} bit/s: packets", len(packets) == len(sizes), len(packets))
            off = [packet.at - packets[0].at - (at - times[0]) for packet, at in zip(packets, times)]
            # the lab's timers are up to a nanosecond late, which does not add up
            expect(f"{rate} bit/s: ns early or late", all(abs(at) <= 1 for at in off), [at for at in off if abs(at) > 1][:5])


def segments() -> None:
    """A packet that leaves the host whole takes the time of its segments, with their headers"""
    with Path(plan({"rate": "1gbit"}, mtu=1500, offloads=True)) as path:
        path.out.setsockopt(socket.IPPROTO_UDP, 103, 1000)  # UDP_SEGMENT
        path.out.sendto(bytes(4) + bytes(40000 - 4), ("10.0.0.2", PORT))
        path.out.setsockopt(socket.IPPROTO_UDP, 103, 0)
        path.send([1042])
        packets = path.receive(41)
        expect("packets", len(packets) == 41, len(packets))
        expect("ns after it", packets[40].at - packets[0].at == 1042 * 8, packets[40].at - packets[0].at)
        expect("all at once", packets[39].at == packets[0].at, packets[39].at - packets[0].at)
    with Path(plan({"rate": "1gbit"}, mtu=1500, offloads=True)) as path:
        path.send([1042])
        path.out.setsockopt(socket.IPPROTO_UDP, 103, 1000)
        path.out.sendto(bytes(40000), ("10.0.0.2", PORT))
        packets = path.receive(41)
        expect("ns that it takes", packets[40].at - packets[0].at == 40 * 1042 * 8, packets[40].at - packets[0].at)


def events() -> None:
    """Rate and delay change while packets wait, leave and fly: all arrive, and as the rates say"""
    network = plan({"rate": "8mbit", "delay": "10ms"}, events=[
        {"at": "100500us", "node": "a", "dev": "eth0", "rate": "80mbit"},
        {"at": "105ms", "node": "a", "dev": "eth0", "delay": "1ms"},
        {"at": "110ms", "node": "a", "dev": "eth0", "rate": "8mbit"}, {"at": "110ms", "node": "a", "dev": "eth0", "delay": "0"}])
    with Path(network) as path:
        zero = (time.monotonic_ns() // 10 ** 9 + 1) * 10 ** 9
        with subprocess.Popen(["labnet", "--events", "--zero", f"{zero}ns", "-"], stdin=subprocess.PIPE, text=True) as changes:
            assert changes.stdin
            changes.stdin.write(json.dumps(network))
            changes.stdin.close()
            time.sleep((zero - time.monotonic_ns()) / 1e9)
            path.send([1000] * 300)  # 1 ms each, from 100.5 ms on 0.1 ms, from 110 ms on 1 ms again
            packets = sorted(path.receive(300))
        expect("packets", [packet.number for packet in packets] == list(range(300)), len(packets))
        start = packets[0].at - 11_000_000
        # of the packet that was leaving, a half had left
        left = [1_000_000 * k for k in range(1, 101)] + [100_550_000 + 100_000 * k for k in range(95)]
        left += [110_500_000 + 1_000_000 * k for k in range(105)]
        times = [at + (10_000_000 if at < 105_000_000 else 1_000_000 if at < 110_000_000 else 0) for at in left]
        # the events are 1 us late at most: labnet reads the clock
        off = [packet.at - start - at for packet, at in zip(packets, times) if abs(packet.at - start - at) > 20_000]
        expect("ns early or late", not off, off[:5])


def chances() -> None:
    """Losses by one state and by two, duplicates, wrong bits, jitter, reordering: by the seed, and as often as planned"""
    sent = 6000

    def run(words: Plan, seed: int = 1) -> list[Packet]:
        with Path(plan({"rate": "1gbit"} | words, mtu=1500), "--seed", str(seed)) as path:
            path.send([100] * sent)
            return path.receive(sent * 2)

    def near(what: str, found: float, want: float, most: float = 0.1) -> None:
        expect(what, abs(found - want) <= most * want, found)

    once, again, other = run({"loss": 0.05}), run({"loss": 0.05}), run({"loss": 0.05}, 2)
    near("lost", sent - len(once), sent * 0.05)
    expect("the same seed loses others", [p.number for p in once] == [p.number for p in again])
    expect("another seed loses the same", [p.number for p in once] != [p.number for p in other])
    there = {packet.number for packet in run({"loss": {"p": 0.01, "r": 0.25}})}
    runs = sum(1 for k in range(sent) if k not in there and k - 1 in there)
    near("lost of bursts", sent - len(there), sent * 0.01 / 0.26, 0.2)
    near("length of bursts", (sent - len(there)) / runs, 4, 0.2)
    packets = run({"duplicate": 0.1})
    near("duplicates", len(packets) - sent, sent * 0.1)
    packets = run({"corrupt": 0.1})  # a checksum sees all that are not in Ethernet's header
    near("corrupted", sent - len(packets), sent * 0.1)
    expect("wrong bits that UDP's checksum does not see", all(packet.good for packet in packets))
    packets = run({"jitter": "100us", "delay": "1ms"})
    expect("jitter reorders", packets == sorted(packets))
    gaps = [b.at - a.at for a, b in zip(packets, packets[1:])]
    expect("jitter has no gaps", max(gaps) > 10000, max(gaps))
    packets = run({"reorder": {"share": 0.02, "by": "100us"}})
    late = {packet.number for packet, after in zip(packets, packets[1:]) if packet.number > after.number + 1}
    expect("reordered are lost", len({packet.number for packet in packets}) == sent)
    expect("reordered", 0.01 * sent < sum(a.number > b.number for a, b in zip(packets, packets[1:])) < 0.03 * sent, len(late))


def trace() -> None:
    """A mahimahi trace is used whole, with its outages, from the traffic's start on"""
    random, instants, ms = 1, [], 0
    while ms < 6000:  # of a radio link: rates of 1 to 60 Mb/s, each for 100 ms; and two outages
        random = random * 1103515245 + 12345 & 0x7fffffff
        ahead = ms + 100
        while ms < ahead and not (2000 <= ms < 3500 or 4000 <= ms < 4800):
            ms += 1
            instants += [ms] * ((random >> 16) % 6)
        ms = ahead
    with open("/tmp/link.trace", "w", encoding="ascii") as file:
        file.write("".join(f"{at}\n" for at in instants))
    network = plan({"trace": "/tmp/link.trace", "queue": "pfifo limit 1000000"}, mtu=1500)
    with Path(network) as path:
        zero = (time.monotonic_ns() // 10 ** 9 + 1) * 10 ** 9
        subprocess.run(["labnet", "--events", "--zero", f"{zero}ns", "-"], input=json.dumps(network), text=True, check=True)
        path.send([1514] * (2 * len(instants)))
        packets = path.receive(2 * len(instants))
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    start = (zero + offset) // 1000 * 1000
    times = instants + [instants[-1] + at for at in instants]
    first = next(k for k, at in enumerate(times) if start + at * 10 ** 6 >= packets[0].at - 1000)
    off = [packet.at - start - at * 10 ** 6 for packet, at in zip(packets, times[first:])]
    expect("opportunities used, %", len(packets) == 2 * len(instants), 100 * len(packets) / (2 * len(instants)))
    expect("ns early or late", all(abs(at) < 1000 for at in off), [at for at in off if abs(at) >= 1000][:5])
    expect("opportunities before the first", first <= 6, first)


def gaps() -> None:
    """fq paces a socket: the gaps are the packet's time at the socket's rate"""
    with Path(plan({"rate": "10gbit", "queue": "fq flow_limit 1000 quantum 1514 initial_quantum 1514"}, mtu=1500)) as path:
        path.out.setsockopt(socket.SOL_SOCKET, 47, 1_250_000)  # SO_MAX_PACING_RATE, bytes/s
        path.send([1514] * 200)
        packets = path.receive(200)
    found = {b.at - a.at for a, b in zip(packets[1:], packets[2:])}
    expect("gaps, ns", len(packets) == 200 and found == {1514 * 800}, sorted(found)[:5])


def pie() -> None:
    """PIE's law (RFC 8033): its drops keep the mean delay of Reno flows at the target"""
    ends = [[{"node": "a", "dev": "eth0", "addresses": ["10.0.0.1/24"]},
             {"node": "sw", "dev": "p1", "addresses": ["10.0.0.254/24"], "delay": "20ms"}],
            [{"node": "sw", "dev": "p2", "addresses": ["10.0.1.254/24"], "rate": "20mbit", "queue": "pie target 15ms"},
             {"node": "b", "dev": "eth0", "addresses": ["10.0.1.1/24"]}]]
    network = {"prefix": PREFIX, "exact": True, "sysctl": {"net.ipv4.conf.all.forwarding": 1}, "nodes": [
        {"name": "a", "routes": [{"to": "default", "via": "10.0.0.254"}]}, {"name": "sw"},
        {"name": "b", "routes": [{"to": "default", "via": "10.0.1.254"}]}],
        "links": [{"ends": both, "neighbours": True} for both in ends],
        "traffic": [{"kind": "long", "from": "a", "to": "b", "flows": 4, "duration": "20s", "control": "reno"}],
        "observe": {"queues": [{"node": "sw", "dev": "p2"}], "from": "5s", "to": "20s"}}
    with open("/tmp/link.plan", "w", encoding="ascii") as file:
        json.dump(network, file)
    subprocess.run(["labnet", file.name], check=True)
    zero = f"{time.monotonic_ns() + 10 ** 9}ns"
    with subprocess.Popen(["qdelay", "--plan", file.name, "--zero", zero, "--json", "/tmp/link.json"],
                          stderr=subprocess.PIPE) as observer:
        assert observer.stderr and observer.stderr.readline() == b"ready\n"
        subprocess.run(["flowgen", "plan", file.name, "--zero", zero], check=True, stdout=subprocess.DEVNULL)
        observer.send_signal(signal.SIGINT)
    with open("/tmp/link.json", encoding="ascii") as result:
        (queue,) = json.load(result)["queues"]
    expect("mean delay, us", abs(queue["delay_us"]["mean"] - 15000) < 1500, queue["delay_us"]["mean"])
    expect("utilisation", 0.95 < queue["utilisation"] <= 1.0001, queue["utilisation"])
    remove()


def spread() -> None:
    """Switches of a fat-tree spread flows independently: all links to the core carry some"""
    for exact in (True, False):
        made = subprocess.run([sys.executable, os.path.join(os.environ["LIB"], "fat_tree.py"), "4", PREFIX], capture_output=True,
                              check=True).stdout
        network = json.loads(made) | {"exact": exact, "traffic": [
            {"kind": "flows", "from": "h*", "to": "h*", "size": 3000, "rate": 100000, "flows": 400}]}
        with open("/tmp/link.plan", "w", encoding="ascii") as file:
            json.dump(network, file)
        subprocess.run(["labnet", file.name], check=True)
        subprocess.run(["flowgen", "plan", file.name], check=True, stdout=subprocess.DEVNULL)
        used = 0
        for pod in range(4):
            for switch in range(2):
                enter(f"{PREFIX}a{pod}-{switch}")
                with open("/proc/self/net/dev", encoding="ascii") as devices:
                    used += sum(1 for line in devices if line.lstrip().startswith("u") and int(line.split()[10]) > 20)
        # with veth the hash of the sender decides at each switch alike
        expect(f"links to the core that are used, of 16, {'exact' if exact else 'veth'}", used == (16 if exact else 8), used)
        remove()


TESTS: dict[str, Callable[[], None]] = {one.__name__: one for one in (rates, segments, events, chances, trace, gaps, pie,
                                                                                      spread)}


def main() -> int:
    libc.prctl(29, 1)  # PR_SET_TIMERSLACK, ns: sleeps of this and of what it starts
    TESTS[sys.argv[2]]()
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
