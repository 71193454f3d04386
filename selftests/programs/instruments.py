#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""instruments.py - what happened in a queue, from captures on both sides of it, worked out a second
time: by tshark's fields and the definitions in qdelay(1), with no code of qdelay's

usage: instruments.py [--rate BITS] [--mss BYTES] QDELAY.json OUT IN...

Compares with qdelay's result, value by value, and prints each that differs. Exit status: 0 all
agree, 1 some differ.
"""
from __future__ import annotations

import argparse
import collections
import json
import math
import subprocess
import sys
from typing import Any, NamedTuple

FIELDS = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.proto",
          "ip.id", "ip.dsfield.ecn", "ipv6.tclass.ecn", "tcp.srcport", "tcp.dstport", "udp.srcport",
          "udp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len", "tcp.hdr_len",
          "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr", "tcp.options.mss_val",
          "ipv6.flow", "icmp.seq", "udp.length", "udp.payload", "tcp.options.sack_le", "ipv6.nxt")
EXACT, CLOSE = 1e-9, 2e-4      # shares; percentiles of many values come from a histogram
ROUNDED = {"bps": 6e-4}        # what qdelay prints has so many decimals, others have six
FIELD_NAMES = ("not_ect", "ect1", "ect0", "ce")


class Packet(NamedTuple):
    """One line of tshark's"""
    time: int           # ns
    length: int         # bytes, of the frame as captured
    flow: str
    key: tuple[str, ...]
    ecn: int
    seq: int            # TCP's
    payload: int        # bytes, -1 if not TCP
    numbers: int        # TCP's sequence numbers that it takes: payload, SYN and FIN
    pure: bool          # no ACK and no SYN: not part of TCP's stream
    tcp: bool
    mss: int            # option of a SYN, or 0
    header: int         # bytes of the frame that are not payload


def read(path: str) -> list[Packet]:
    """The packets of a capture"""
    command = ["tshark", "-r", path, "-n", "-T", "fields", "-E", "occurrence=f",
               "-o", "tcp.desegment_tcp_streams:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE"]
    for field in FIELDS:
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    packets = []
    for line in lines:
        f = dict(zip(FIELDS, line.split("\t")))
        seconds, fraction = f["frame.time_epoch"].split(".")
        source, target = f["ip.src"] or f["ipv6.src"], f["ip.dst"] or f["ipv6.dst"]
        if not source:
            continue
        tcp = bool(f["tcp.srcport"])
        sport, dport = (f["tcp.srcport"] or f["udp.srcport"]), (f["tcp.dstport"] or f["udp.dstport"])
        if ":" in source:
            source, target = f"[{source}]", f"[{target}]"
        flags = int(f["tcp.flags"] or "0", 16)
        payload = int(f["tcp.len"]) if tcp else -1
        numbers = max(payload, 0) + bool(flags & 1) + bool(flags & 2)
        drop = ("frame.time_epoch", "frame.len", "ip.dsfield.ecn", "ipv6.tclass.ecn")
        packets.append(Packet(
            int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9]), int(f["frame.len"]),
            f"{source}:{sport or 0}>{target}:{dport or 0}",
            tuple(v for k, v in f.items() if k not in drop),
            int(f["ip.dsfield.ecn"] or f["ipv6.tclass.ecn"] or "0"), int(f["tcp.seq_raw"] or "0"),
            payload, numbers, tcp and not flags & 0x12, tcp, int(f["tcp.options.mss_val"] or "0"),
            int(f["frame.len"]) - max(payload, 0)))
    return sorted(packets, key=lambda p: p.time)


def segments(packet: Packet, mss: dict[str, int]) -> int:
    """How many packets of the wire this is"""
    size = mss.get(packet.flow, 0)
    if packet.payload <= 0 or not size:
        return 1
    # the MSS is of a packet without options
    options = packet.header - 14 - (40 if "[" in packet.flow else 20) - 20
    return max(1, math.ceil(packet.payload / (size - options)))


def percentile(weighted: list[tuple[float, float]], share: float) -> float:
    """The smallest value that @share of all weight does not exceed"""
    total, below = sum(w for _, w in weighted), 0.0
    for value, weight in sorted(weighted):
        below += weight
        if below >= share * total * (1 - 1e-12):
            return value
    return math.nan


def summary(weighted: list[tuple[float, float]]) -> dict[str, float]:
    """Mean, percentiles and extremes of (value, weight)"""
    total = sum(w for _, w in weighted)
    return {"mean": sum(v * w for v, w in weighted) / total, "max": max(v for v, _ in weighted),
            "min": min(v for v, _ in weighted)} | {
                name: percentile(weighted, share)
                for name, share in (("p50", .5), ("p90", .9), ("p99", .99), ("p999", .999))}


def queue(moves: list[tuple[int, int]], begin: int, end: int) -> dict[str, float]:
    """Over time, of a queue that changes by (when, by how much)"""
    states: list[tuple[float, float]] = []
    length, since = 0, begin
    for when, change in sorted(moves):
        if when > since:
            states.append((length, when - since))
            since = when
        length += change
    if end > since:
        states.append((length, end - since))
    total = sum(w for _, w in states)
    mean = sum(v * w for v, w in states) / total
    return {"mean": mean, "max": max(v for v, _ in states), "p99": percentile(states, .99),
            "stddev": math.sqrt(sum((v - mean) ** 2 * w for v, w in states) / total)}


def fresh_bytes(packets: list[Packet]) -> int:
    """How much of TCP's stream these carry, each byte once"""
    spans = sorted((p.seq, p.seq + p.payload) for p in packets if p.payload > 0 and not p.pure)
    covered, end = 0, -1
    for first, last in spans:
        covered += max(0, last - max(first, end))
        end = max(end, last)
    return covered


def again(packets: list[Packet]) -> list[Packet]:
    """Those of which some byte, SYN or FIN was there before, in the order of capture"""
    seen: list[tuple[int, int]] = []
    found = []
    for p in packets:
        if not p.numbers or p.pure:
            continue
        if any(first < p.seq + p.numbers and p.seq < last for first, last in seen[-5000:]):
            found.append(p)
        seen.append((p.seq, p.seq + p.numbers))
    return found


def analyse(ins: list[Packet], outs: list[Packet], rate: float | None,
            given_mss: int) -> dict[str, Any]:
    """The same names as in qdelay's JSON"""
    mss: dict[str, int] = {}
    if given_mss:
        mss = collections.defaultdict(lambda: given_mss)
    else:
        for p in ins + outs:
            if p.mss:
                source, target = p.flow.split(">")
                for name in (p.flow, f"{target}>{source}"):
                    mss[name] = min(mss.get(name, p.mss), p.mss)
    waiting: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    for number, p in enumerate(ins):
        waiting[p.key].append(number)
    fate: dict[int, Packet] = {}
    unmatched, last_in, newest = [], 0, -1
    newest_of: dict[str, int] = {}
    for p in outs:
        alike = [n for n in waiting[p.key] if ins[n].time <= p.time]
        if alike:
            # the oldest that no packet has overtaken, else that none of its flow has, else of all
            number = next((n for n in alike if n > newest),
                          next((n for n in alike if n > newest_of.get(p.flow, -1)), alike[0]))
            waiting[p.key].remove(number)
            fate[number] = p
            last_in = max(last_in, ins[number].time)
            newest = max(newest, number)
            newest_of[p.flow] = max(newest_of.get(p.flow, -1), number)
        else:
            unmatched.append(p)
    lost = [p for n, p in enumerate(ins) if n not in fate and p.time < last_in]
    begin = min(ins[0].time, outs[0].time)
    end = max(ins[-1].time, outs[-1].time)
    count = lambda packets: sum(segments(p, mss) for p in packets)  # noqa: E731
    size = lambda packets: sum(  # noqa: E731
        p.length + (segments(p, mss) - 1) * p.header for p in packets)
    pairs = [(ins[n], out) for n, out in fate.items()]
    marked = [b for a, b in pairs if b.ecn == 3 and a.ecn != 3]
    result: dict[str, Any] = {
        "packets_in": count(ins), "packets_out": count(outs), "bytes_out": size(outs),
        "matched": count(a for a, _ in pairs), "dropped": count(lost),
        "unresolved": count(ins) - count(a for a, _ in pairs) - count(lost),
        "unmatched_out": count(unmatched), "marked": count(marked), "duration_ns": end - begin,
        "throughput_bps": size(outs) * 8e9 / (end - begin),
        "mark_fraction": count(marked) / count(a for a, _ in pairs)}
    if rate:
        result["utilisation"] = result["throughput_bps"] / rate
    for code, name in enumerate(FIELD_NAMES):
        result[f"ecn.in.{name}"] = count(p for p in ins if p.ecn == code)
        result[f"ecn.out.{name}"] = count(p for p in outs if p.ecn == code)
        result[f"dropped_{name}"] = count(p for p in lost if p.ecn == code)
    waits = [((b.time - a.time) / 1000, float(segments(a, mss))) for a, b in pairs]
    result |= {f"delay_us.{k}": v for k, v in summary(waits).items()}
    for name, of in (("pkts", lambda p: segments(p, mss)), ("bytes", lambda p: size([p]))):
        moves = [m for a, b in pairs for m in ((a.time, of(a)), (b.time, -of(a)))]
        result |= {f"qlen_{name}.{k}": v for k, v in queue(moves, begin, end).items()}
    goodput = []
    for flow in dict.fromkeys(p.flow for p in ins):
        came, left = [p for p in ins if p.flow == flow], [p for p in outs if p.flow == flow]
        bits = fresh_bytes(left) if came[0].tcp else sum(max(0, p.payload) for p in left)
        result |= {f"{flow}.packets": count(left), f"{flow}.bytes": size(left),
                   f"{flow}.packets_in": count(came),
                   f"{flow}.marked": count(p for p in marked if p.flow == flow),
                   f"{flow}.dropped": count(p for p in lost if p.flow == flow)}
        if came[0].tcp:
            result |= {f"{flow}.goodput_bps": bits * 8e9 / (end - begin),
                       f"{flow}.retransmitted": count(again(came))}
            goodput.append(bits)
    if len(goodput) > 1 and all(p.tcp for p in ins):
        goodput = [g for g in goodput if g]
        result["jain"] = sum(goodput) ** 2 / (len(goodput) * sum(g * g for g in goodput))
    return result


def theirs(data: dict[str, Any]) -> dict[str, Any]:
    """qdelay's result by the names that analyse() has"""
    flat = {}
    for key, value in data.items():
        if isinstance(value, dict):
            for k, v in value.items():
                if isinstance(v, dict):
                    flat |= {f"{key}.{k}.{n}": x for n, x in v.items()}
                else:
                    flat[f"{key}.{k}"] = v
        elif key == "flows":
            for flow in value:
                flat |= {f"{flow['flow']}.{k}": v for k, v in flow.items()}
        else:
            flat[key] = value
    return flat


def main() -> None:
    """Reads, analyses, compares"""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--mss", type=int, default=0)
    parser.add_argument("result")
    parser.add_argument("out")
    parser.add_argument("into", nargs="+")
    args = parser.parse_args()
    ins = sorted((p for path in args.into for p in read(path)), key=lambda p: p.time)
    mine = analyse(ins, read(args.out), args.rate, args.mss)
    with open(args.result, encoding="utf-8") as handle:
        other = theirs(json.load(handle))
    wrong = 0
    for name, value in mine.items():
        said = other.get(name)
        room = CLOSE if ".p" in name else EXACT
        rounded = ROUNDED.get(name.rsplit("_", 1)[-1], 6e-7)
        if said is None or abs(said - value) > room * abs(value) + rounded:
            print(f"{name}: qdelay {said}, here {value:.12g}")
            wrong += 1
    print(f"values={len(mine)} differ={wrong} packets={mine['packets_in']} dropped={mine['dropped']} "
          f"marked={mine['marked']} unmatched_out={mine['unmatched_out']} "
          f"retransmitted={sum(v for k, v in mine.items() if k.endswith('.retransmitted'))}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
