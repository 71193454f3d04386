# SPDX-License-Identifier: GPL-2.0
"""Rates, times and lengths of queue: from text and to text."""

from __future__ import annotations

from .errors import Refused
from .values import matched

RATE_UNITS = {"bit": 0, "kbit": 3, "mbit": 6, "gbit": 9, "tbit": 12}
TIME_UNITS = {"ns": 0, "us": 3, "ms": 6, "s": 9}
MIN_RATE, MAX_RATE = 8_000, 1_600_000_000_000  # bit/s
MIN_TIME, MAX_TIME = 100, 5_000_000_000  # ns
MAX_QUEUE = 1 << 32  # bytes
NUMBER = r"([0-9]{1,16}(?:\.[0-9]{1,9})?)([A-Za-z]*)"

DSCP_NAMES = {
    "be": 0, "df": 0, "cs0": 0, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32, "cs5": 40,
    "cs6": 48, "cs7": 56, "af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20,
    "af23": 22, "af31": 26, "af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38,
    "va": 44, "ef": 46, "le": 1,
}


def scaled(digits: str, exponent: int) -> int:
    """DIGITS[.DIGITS] times 10^exponent; what is below one is cut off."""
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction.ljust(exponent, "0")[:exponent])


def with_unit(name: str, text: str, units: dict[str, int], what: str, example: str) -> int:
    match = matched(NUMBER, text)
    listed = ", ".join(list(units)[:-1]) + " or " + list(units)[-1]
    if not match:
        raise Refused(f"{name} {text}: not a {what} (such as {example})")
    unit = match[2].lower()
    if not unit:
        raise Refused(f"{name} {text}: a {what} needs a unit: {listed}")
    if unit not in units:
        raise Refused(f"{name} {text}: unknown unit '{match[2]}': {listed}")
    return scaled(match[1], units[unit])


def parse_rate(name: str, text: str) -> int:
    """-> bit/s"""
    rate = with_unit(name, text, RATE_UNITS, "rate", "10gbit")
    if not MIN_RATE <= rate <= MAX_RATE:
        raise Refused(f"{name} {text}: out of range (8kbit to 1600gbit)")
    return rate


def parse_time(name: str, text: str) -> int:
    """-> ns"""
    time = with_unit(name, text, TIME_UNITS, "time", "100us")
    if not MIN_TIME <= time <= MAX_TIME:
        raise Refused(f"{name} {text}: out of range (100ns to 5s)")
    return time


class Size:
    """A length of queue as given: packets, bytes, or the time to send it.

    It becomes bytes only once the device and the rate are known.
    """

    def __init__(self, amount: int, unit: str) -> None:
        self.amount = amount
        self.unit = unit  # "p", "b" or "ns"


def parse_size(name: str, text: str) -> Size:
    match = matched(r"([0-9]{1,10})(p|b|kb|mb)?", text)
    if match:
        amount = int(match[1])
        if not amount:
            raise Refused(f"{name} {text}: must not be 0")
        if match[2] == "kb":
            return Size(amount * 1024, "b")
        if match[2] == "mb":
            return Size(amount * 1048576, "b")
        return Size(amount, match[2] or "p")
    if matched(r"[0-9.]+(ns|us|ms|s)", text):
        return Size(parse_time(name, text), "ns")
    raise Refused(
        f"{name} {text}: not a length of queue: packets (65), bytes (97500b, 95kb, 1mb)"
        " or a time (50us)"
    )


def parse_number(name: str, text: str) -> int:
    if not matched(r"[0-9]{1,9}", text):
        raise Refused(f"{name} {text}: not a number")
    return int(text)


def parse_count(name: str, text: str) -> int:
    number = parse_number(name, text)
    if not number:
        raise Refused(f"{name} {text}: must not be 0")
    return number


def parse_percent(name: str, text: str) -> int:
    percent = parse_count(name, text.removesuffix("%"))
    if percent >= 100:
        raise Refused(f"{name} {text}: must be 1 to 99")
    return percent


def parse_probability(name: str, text: str) -> str:
    """-> "1" or "0.DIGITS", as tc takes it"""
    if not matched(r"0?\.[0-9]{1,9}|1(\.0*)?", text) or not set("123456789") & set(text):
        raise Refused(f"{name} {text}: a probability is above 0 and at most 1")
    if text.startswith("1"):
        return "1"
    return "0" + text if text.startswith(".") else text


def parse_dscp(name: str, text: str) -> int:
    known = DSCP_NAMES.get(text.lower())
    if known is not None:
        return known
    if not matched(r"[0-9]{1,2}", text) or int(text) > 63:
        raise Refused(f"{name} {text}: not a DSCP (0 to 63, or a name such as af11)")
    return int(text)


def parse_word(name: str, text: str) -> str:
    if not matched(r"[A-Za-z0-9._:@%+=-]+", text) or text[0] == "-" or text in (".", ".."):
        raise Refused(f"{name} {text}: not a name")
    return text


def rate_text(rate: int) -> str:
    for unit in ("bit", "kbit", "mbit", "gbit"):
        if rate % 1000 or rate < 1000:
            return f"{rate}{unit}"
        rate //= 1000
    return f"{rate}tbit"


def decimal(value: int, exponent: int) -> str:
    """An integer whose last digits are the fraction; zeros at its end are left out."""
    digits = str(value).rjust(exponent + 1, "0")
    fraction = digits[len(digits) - exponent:].rstrip("0")
    return digits[: len(digits) - exponent] + ("." + fraction if fraction else "")


def time_text(ns: int) -> str:
    if ns < 1000:
        return f"{ns}ns"
    if ns < 1_000_000:
        return decimal(ns, 3) + "us"
    return decimal(ns // 1000, 3) + "ms"


class Line:
    """The line that a queue feeds: its rate and its largest frame. Converts lengths of queue."""

    def __init__(self, rate: int, frame: int) -> None:
        self.rate = rate  # bit/s; 0 if unknown
        self.rate_k = (rate + 999) // 1000  # kbit/s, rounded up
        self.frame = frame  # bytes: MTU and link header

    def drain_ns(self, size: int) -> int:
        return (size * 8_000_000 + self.rate_k - 1) // self.rate_k

    def bytes_in(self, ns: int) -> int:
        return self.rate_k * ns // 8_000_000

    def packets(self, size: int) -> int:
        return (size + self.frame - 1) // self.frame

    def to_bytes(self, name: str, given: str, size: Size) -> int:
        """--name, given as text and parsed to size, in bytes"""
        if size.unit == "ns":
            if not self.rate:
                raise Refused(f"--{name} {given}: a time needs --rate")
            value = self.bytes_in(size.amount)
        else:
            value = size.amount * (self.frame if size.unit == "p" else 1)
        if value <= 0:
            raise Refused(f"--{name} {given}: less than a byte at this rate")
        if value >= MAX_QUEUE:
            raise Refused(f"--{name} {given}: more than 4 GB")
        return value

    def queue_text(self, size: int) -> str:
        """in packets if it is a whole number of them, in bytes, and in time if the rate is known"""
        text = f"{size} bytes"
        if size % self.frame == 0:
            text = f"{size // self.frame} packets = {text}"
        if self.rate:
            text += " = " + time_text(self.drain_ns(size))
        return text
