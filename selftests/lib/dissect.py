#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Fields of a capture's packets, as tshark sees them.

usage: dissect.py CAPTURE FILTER FIELD...
       dissect.py CAPTURE FILTER --count

Prints a line per packet that the display filter selects, its fields separated by tabs; a field
that occurs several times has commas between its values, and "true" is 1. --count prints how many
these packets are.

A start of tshark takes longer than most tests' traffic. So Python evaluates a filter whose words it
knows: FIELDS, numbers, addresses, protocols, &&, || and !. As in tshark a comparison holds if it does
for one of a field's values; != if it does for all of them, and there are some. headers.py reads the
fields of most packets; of other captures tshark writes all FIELDS of all packets to CAPTURE.fields
(CAPTURE.int.fields for HPCC++'s messages) when the first question is asked. Other questions are
tshark's. TSHARK=1 leaves everything to it.
"""
import operator
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from types import CodeType

import headers

HERE = os.path.dirname(os.path.realpath(__file__))
# in a kernel tree, scripts/ is beside lib/
DISSECTOR = next(filter(os.path.exists, (f"{HERE}/../../scripts/int.lua", f"{HERE}/../scripts/int.lua")), "")

FIELDS = (
    "frame.number", "frame.time_epoch", "frame.time_relative", "frame.len", "frame.protocols",
    "ip.version", "ip.src", "ip.dst", "ip.dsfield.ecn", "ip.dsfield.dscp",
    "ipv6.src", "ipv6.dst", "ipv6.tclass.ecn", "ipv6.tclass.dscp", "ipv6.flow",
    "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.len", "tcp.ack", "tcp.flags", "tcp.flags.syn",
    "tcp.flags.fin", "tcp.flags.reset", "tcp.flags.ack", "tcp.flags.ece", "tcp.flags.ae",
    "tcp.option_kind", "tcp.options.sack_le", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
    "udp.srcport", "udp.port", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.p_key",
    "infiniband.bth.psn", "_ws.malformed",
)
INT_FIELDS = FIELDS + (
    "eth.src", "sll.pkttype", "ip.len", "ip.flags.df", "tcp.hdr_len", "int.type", "int.id",
    "int.nhop", "int.room", "int.path_id", "int.options", "int.hop.ts", "int.hop.tx",
    "int.hop.qlen", "int.hop.mbps",
)
PROTOCOLS = ("ip", "ipv6", "tcp", "udp", "esp", "arp", "icmpv6")
OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}
WORD = re.compile(r"&&|\|\||!(?!=)|[\w.:]+|[^\s=<>!()]")
NUMBER = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?")
MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:]*:[0-9a-f:]*")

Value = float | str


def value(text: str) -> Value:
    """A number, or what is none as it is"""
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text, 0)
    return text


def any_of(holds: Callable[[Value, Value], bool]) -> Callable[["Values", Value], bool]:
    """A comparison that holds if it does for one of the values"""
    def compare(values: "Values", other: Value) -> bool:
        for one in values:
            if holds(one, other):
                return True
        return False
    return compare


class Values(tuple[Value, ...]):
    """A field's values in one packet, compared as tshark does"""
    __eq__, __lt__, __le__, __gt__, __ge__ = map(any_of, (       # type: ignore[assignment]
        operator.eq, operator.lt, operator.le, operator.gt, operator.ge))
    __hash__ = None     # type: ignore[assignment]

    def __ne__(self, other: object) -> bool:
        return bool(self) and not self == other


def canonical(address: str) -> str:
    """The address as tshark prints it"""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address))


def compiled(display_filter: str, known: tuple[str, ...]) -> CodeType | None:
    """The filter as a function of a packet, by field(packet, NAME) and has(packet, PROTOCOL); None: tshark has to"""
    def in_python(word: re.Match[str]) -> str:
        text = word[0]
        if text in known:
            return f"field(packet, {text!r})"
        if text in PROTOCOLS:
            return f"has(packet, {text!r})"
        if ADDRESS.fullmatch(text):
            return repr(text if MAC.fullmatch(text) else canonical(text))
        if text in OPERATORS or NUMBER.fullmatch(text):
            return OPERATORS.get(text, text)
        raise ValueError

    try:
        code: CodeType = compile("lambda packet: " + WORD.sub(in_python, display_filter), display_filter, "eval")
    except (SyntaxError, ValueError):
        return None
    return code


def tshark(capture: str, display_filter: str, names: tuple[str, ...], with_int: bool) -> str:
    """Its lines for these fields of the packets that the filter selects"""
    import subprocess       # takes longer than most questions, which do not come here
    command = ["tshark", "-r", capture, "-n", "-o", "tcp.relative_sequence_numbers:TRUE",
               "-T", "fields"]
    if display_filter:
        command += ["-Y", display_filter]
    if with_int:
        command += ["-X", f"lua_script:{DISSECTOR}"]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True)
    if done.returncode:
        raise OSError(f"tshark cannot read {capture}: exit status {done.returncode}")
    return done.stdout


def cached(capture: str, known: tuple[str, ...], with_int: bool) -> list[str]:
    """A line of all known fields per packet; from the file beside the capture, if it is of it"""
    path = capture + (".int.fields" if with_int else ".fields")
    status = os.stat(capture)
    made_of = f"{status.st_size} {status.st_mtime_ns}"
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        if lines[0] == made_of:
            return lines[1:-1]
    except FileNotFoundError:
        pass
    text = tshark(capture, "", known, with_int)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{made_of}\n{text}")
    return text.split("\n")[:-1]


def as_number(text: str) -> str:
    """tshark 4.2 and later print flags as words"""
    return {"True": "1", "False": "0"}.get(text, text)


def rows(capture: str, display_filter: str, *names: str) -> Iterator[list[str]]:
    """The named fields of each packet that the filter selects, in order"""
    with_int = not {"int", "int_md", "ifa"}.isdisjoint(re.findall(r"\w+", " ".join((display_filter, *names))))
    known = INT_FIELDS if with_int else FIELDS
    code = compiled(display_filter, known) if set(names) <= set(known) else None
    if code is None:
        lines = tshark(capture, display_filter, names, with_int).splitlines()
        return iter([[as_number(text) for text in line.split("\t")] for line in lines])
    try:
        return iter(plain(capture, code, names, set(WORD.findall(display_filter)) & set(known)))
    except headers.NotPlain:
        return of_lines(cached(capture, known, with_int), code, names, known)


def plain(capture: str, code: CodeType, names: tuple[str, ...], used: set[str]) -> list[list[str]]:
    """The same, where tshark is not needed"""
    if (used | set(names)) - set(headers.FIELDS) or os.environ.get("TSHARK"):
        raise headers.NotPlain
    selects = function(code, lambda packet, name: Values(headers.FIELDS[name](packet)), headers.Packet.has)
    return [[headers.text(packet, name) for name in names]
            for packet in headers.packets(capture, used | set(names)) if selects(packet)]


def of_lines(lines: list[str], code: CodeType, names: tuple[str, ...], known: tuple[str, ...]) -> Iterator[list[str]]:
    """The same, of lines with all known fields"""
    column = {name: known.index(name) for name in known}
    selects = function(
        code, lambda texts, name: Values(value(as_number(v)) for v in texts[column[name]].split(",") if v),
        lambda texts, name: name in texts[column["frame.protocols"]].split(":"))
    for line in lines:
        texts = line.split("\t")
        if selects(texts):
            yield [as_number(texts[column[name]]) for name in names]


def function(code: CodeType, field: Callable[..., Values], has: Callable[..., bool]) -> Callable[..., object]:
    """A filter of packets of which these tell the fields and the protocols"""
    # of nothing but what compiled() puts in
    made: Callable[..., object] = eval(code, {"field": field, "has": has})    # noqa: S307
    return made


def main() -> None:
    """Prints what was asked for"""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if sys.argv[3] == "--count":
        print(sum(1 for _ in rows(*sys.argv[1:3], "frame.number")))
        return
    out = ["\t".join(row) for row in rows(*sys.argv[1:])]
    if out:
        print("\n".join(out))


if __name__ == "__main__":
    main()
