# SPDX-License-Identifier: GPL-2.0
"""Queues that more than one profile is made of."""

from __future__ import annotations

from lowq_common.errors import Refused
from lowq_common.units import rate_text, time_text
from lowq_common.values import LOWQ_ROOT

from ..command import Command
from ..options import Options
from .base import Context, Place, tc_ticks, TICK

MAX_RED = 1 << 29  # bytes: red takes less than 512 MB
ROOT = LOWQ_ROOT[:-1]
TO_REST = {2: ("1",) * 16, 3: ("2",) * 16}  # bands: priomap that sends all to the last one


def settle_limit(context: Context, threshold: int, what: str) -> int:
    """--limit, or the largest of four thresholds, the bandwidth-delay product and 1000 packets"""
    line, options = context.line, context.options
    how = ""
    if options.has("limit"):
        limit = context.size("limit")
        if threshold + line.frame > limit:
            raise Refused(f"--limit {options.given['limit']}: {what} ({line.queue_text(threshold)}) must be at least one packet"
                          " below it")
    else:
        bdp = line.bytes_in(options.get("rtt", 0))
        limit, how = 1000 * line.frame, ", the least by default"
        if 4 * threshold > limit:
            limit, how = 4 * threshold, f", four times {what}"
        if bdp > limit:
            limit, how = bdp, ", the bandwidth-delay product"
        if limit >= 1 << 32:
            raise Refused(f"the limit would be {limit} bytes, more than 4 GB: give --limit")
    context.report.explain(f"limit {line.queue_text(limit)}{how}")
    context.record(limit_bytes=limit)
    return limit


def rest_limit(context: Context, default: int) -> int:
    """--rest-limit: the drop-tail queue beside the marked one"""
    limit = context.size("rest-limit") if context.options.has("rest-limit") else default
    if limit < context.line.frame:
        raise Refused(f"--rest-limit {context.options.given['rest-limit']}: less than one packet ({context.line.frame} bytes)")
    context.record(rest_limit_bytes=limit)
    return limit


def quanta(frame: int, share: int) -> tuple[int, int]:
    """ets quanta for share percent and the rest; the smaller one is a packet"""
    first = frame if share <= 50 else frame * share // (100 - share)
    second = frame if share >= 50 else frame * (100 - share) // share
    return first, second


def red_words(context: Context, limit: int, low: int, high: int, probability: str, burst: int | str) -> list[str]:
    """What red and gred take, as stock tc can set it.

    tc picks the weight of the average from min, avpkt and burst: with avpkt * burst = min
    it is 1/2, the smallest that it can. burst is in packets, or "step" for that weight, or
    "auto" for Floyd's recommendation.
    """
    frame = avpkt = context.line.frame
    if burst == "step":
        burst = low // frame or 1
        avpkt = (low + burst - 1) // burst
    elif low < 2 * frame:
        avpkt = (low + 1) // 2
    if burst == "auto":
        burst = floyd_burst(low, high, avpkt)
    # Only the estimate of idle time uses the bandwidth. tc takes no more than 34 Gb/s, and
    # needs a packet to last at least two of its ticks.
    bandwidth = min(context.line.rate or 1_000_000_000, 34_000_000_000, avpkt * 62_500_000)
    ticks = tc_ticks(avpkt, bandwidth)
    if ticks and context.tc.rounds_up():  # the same estimate with each tc
        bandwidth = round(avpkt * 8e9 / ((ticks - 0.5) * TICK))
    # tc turns a probability of 1 into 2^32, which is 0 in 32 bits; the kernel then takes
    # something between 1/2 and 1.
    if probability == "1" and low != high:
        probability = "0.99999999"
    return [
        "limit", str(limit), "min", str(low), "max", str(high), "avpkt", str(avpkt),
        "burst", str(burst), "bandwidth", rate_text(bandwidth), "probability", probability,
    ]


def red(context: Context, place: Place, handle: str, limit: int, low: int, high: int,
        probability: str, burst: int | str, *flags: str) -> Command:
    words = red_words(context, limit, low, high, probability, burst)
    return context.qdisc(place, handle, "red", *words, *flags)


def weight(burst: int, low: int, avpkt: int) -> int:
    """The weight that tc makes of a burst, as the exponent of 1/2."""
    a = burst + 1 - low / avpkt
    w = 0.5
    for log2 in range(1, 32):
        if a <= (1 - (1 - w) ** burst) / w:
            return log2
        w /= 2
    return 32


def floyd_burst(low: int, high: int, avpkt: int) -> int:
    """(2 min + max) / 3, as Floyd recommends, or as much of it as the kernel's average has
    room for: it has 32 bits, the fraction that the weight needs included."""
    room = 31 - high.bit_length()
    least = low // avpkt + 1
    burst = (2 * low + high) // (3 * avpkt) + 1
    while burst > least and weight(burst, low, avpkt) > room:
        burst = least + (burst - least) // 2
    return max(burst, least)


def tso_segments(context: Context) -> int:
    """How many packets a sender with this device hands over as one"""
    device = context.device
    return int(min(device.gso_size // context.line.frame, context.options.get("gso-segs", device.gso_segs)))


def sent_at_once(context: Context, rtt: int) -> int:
    """What hosts like this one send at once with TSO: no more than the path holds. -> bytes"""
    if context.options.has("no-tso"):
        return 0
    context.report.params["computed_for"]["tso"] = context.device.tso
    if not context.device.tso:
        context.report.explain(f"hosts send packet by packet: TSO is off on {context.device.name}")
        return 0
    segments = tso_segments(context)
    if segments < 2:
        return 0
    line = context.line
    burst = min(segments, line.packets(line.bytes_in(rtt))) * line.frame
    context.report.explain(f"hosts send {line.queue_text(burst)} at once (TSO, as {context.device.name} does; --no-tso: they do"
                           " not)")
    return burst


def held_back(context: Context) -> int:
    """What receivers hold back, and acknowledge at once (--coalesce) -> bytes"""
    if not context.options.has("coalesce"):
        return 0
    line = context.line
    held: int = line.packets(line.bytes_in(context.options.values["coalesce"])) * line.frame
    context.record(coalesce_ns=context.options.values["coalesce"])
    context.report.explain(f"receivers hold back up to {line.queue_text(held)} (--coalesce)")
    return held


def advise(context: Context, threshold: int) -> None:
    """What keeps packets from being marked one by one. Threshold in bytes."""
    device, report = context.device, context.report
    segments = tso_segments(context)
    if segments > 1:
        more = ", more than the threshold" if threshold < segments * context.line.frame else ""
        report.note(f"GSO/TSO: up to {segments} packets reach the queue as one, and are marked or dropped as one{more}: where"
                    f" {device.name} sends itself, --gso-segs 1; where it forwards, 'ethtool -K IN gro off' on the devices"
                    " that feed it")
    if not device.software and not context.shape and device.queue_limits in ("none", "", "0"):
        report.note(f"{device.name} has no active byte queue limits: packets wait in its ring, where nothing marks them; make"
                    f" it short ('ethtool -G {device.name} tx N') or shape a little below the line rate (--shape)")
    elif not device.software and not context.shape:
        report.note("byte queue limits let packets wait below this queue, unmarked, and more of them the busier the device is;"
                    f" cap them in /sys/class/net/{device.name}/queues/tx-*/byte_queue_limits/limit_max")
    if not context.shape and device.queues > 1:
        report.note(f"{device.queues} queues, each with the whole threshold and limit; when 'ethtool -L' changes their number,"
                    " set it again")


def settle_red(context: Context, low: int, high: int, default: str) -> str:
    """Thresholds that RED takes -> the probability of a mark just below the upper one"""
    if low > high:
        raise Refused(f"--min ({low} bytes) is above --max ({high} bytes)")
    if high >= MAX_RED:
        raise Refused("--max: red takes less than 512 MB")
    probability: str = context.options.get("probability", default)
    context.record(rate_bps=context.line.rate, frame_bytes=context.line.frame, min_bytes=low, max_bytes=high,
                   probability=float(probability) if probability != "1" else 1)
    return probability


def looks_at(context: Context, otherwise: str = "thresholds on the instantaneous queue: tc halves the distance to it with"
             " every packet (EWMA weight 1/2); --exact sets it") -> None:
    """Does RED look at the queue itself, or at an average?"""
    if context.options.has("exact"):
        context.report.explain("red looks at the queue itself (weight 1, by netlink; tc has no word for it)")
    else:
        context.report.not_honoured(otherwise)


class Step:
    """One threshold (RFC 8257): what arrives above K is marked."""

    # Fewer would mark the pair of packets that a delayed ACK releases.
    LEAST = 4
    AQM = ("red", "codel", "fq_codel", "fq")

    def __init__(self, context: Context) -> None:
        self.context = context
        options, report, line = context.options, context.report, context.line
        self.aqm: str = options.get("aqm", "red")
        context.record(rate_bps=line.rate, frame_bytes=line.frame)
        self.k = self.threshold()
        if self.k >= MAX_RED:
            raise Refused(f"K is {self.k} bytes: the most is 512 MB")
        context.record(k_packets=line.packets(self.k), k_bytes=self.k)
        if line.rate:
            context.record(k_ns=line.drain_ns(self.k))
        context.record(aqm=self.aqm)
        self.limit = settle_limit(context, self.k, "K")
        self.us = 0  # K as time, for queues that mark by sojourn time
        self.settle_engine()
        if self.k < line.frame:
            report.note("K is less than one packet: every packet that finds another one waiting is marked")
        advise(context, self.k)

    def threshold(self) -> int:
        """K from --k, or from --rate and --rtt"""
        options, report, line = self.context.options, self.context.report, self.context.line
        rtt = options.get("rtt", 0)
        seventh = line.rate_k * rtt // 56_000_000  # RTT * C / 7 in bytes
        if line.rate and rtt:
            self.context.record(rtt_ns=rtt)
        if options.has("k"):
            for name in ("no-tso", "coalesce"):
                if options.has(name):
                    raise Refused(f"--{name} is for a K that is computed, not for --k")
            size = self.context.size("k")
            report.explain(f"K = {line.queue_text(size)}, as given (packets of {line.frame} bytes)")
            if line.rate and rtt and size <= seventh:
                report.note(f"K is not above RTT*C/7 = {seventh} bytes: the queue will run empty, and the link with it")
            return size
        if not rtt:
            raise Refused("give --rtt, from which the threshold is computed, or --k")
        packets = line.rate_k * rtt // (56_000_000 * line.frame) + 1
        in_packets = seventh * 100 // line.frame
        report.explain(
            f"K > RTT*C/7 = {time_text(rtt)} * {rate_text(line.rate)} / 7 = {seventh} bytes ="
            f" {in_packets // 100}{fraction(in_packets)} packets of {line.frame} bytes (RFC 8257 3.1)"
        )
        least = ""
        if packets < self.LEAST:
            packets, least = self.LEAST, ", the least that lets pairs of packets pass"
        size = packets * line.frame
        held = held_back(self.context)
        burst = sent_at_once(self.context, rtt) + held
        # Beside short answers RTT*C/7 leaves a quarter of the link idle: they fill the queue, and the
        # marks are those of the long flow, too. Half of the BDP leaves a twelfth.
        half = (line.bytes_in(rtt) // 2 + line.frame - 1) // line.frame * line.frame + held
        more = ""
        if half > size + burst:
            size, least, more = half, "", ", half of what the path holds"
            if held:
                more += ", and what is held back"
        elif burst:
            size += burst
            more, least = f", with {packets} for RTT*C/7{least}", ""
        report.explain(f"K = {line.queue_text(size)}{least}{more}")
        return size

    def settle_engine(self) -> None:
        options, report, line = self.context.options, self.context.report, self.context.line
        if self.aqm == "red":
            report.explain("red, min = max = K: above K ECT is marked and Not-ECT " + (
                "let pass, up to the limit" if options.has("nodrop") else "dropped, ARP and UDP too (--nodrop lets it pass)"))
            looks_at(self.context, "a threshold on the instantaneous queue: tc's red halves the distance to it with every"
                     " packet (EWMA weight 1/2); --exact sets it; --aqm codel or fq mark by the time that each packet waited")
            return
        if options.has("exact"):
            raise Refused(f"--exact goes with --aqm red; {self.aqm} looks at each packet")
        if options.has("nodrop"):
            raise Refused(f"--nodrop goes with --aqm red; {self.aqm} does not drop Not-ECT at the threshold")
        if not line.rate:
            raise Refused(f"--aqm {self.aqm} marks by time: give --rate")
        self.context.tc.require(self.aqm, "ce_threshold")
        wanted = line.drain_ns(self.k)
        if self.aqm == "fq":
            self.us = (wanted + 999) // 1000
            actual = self.us * 1000
        else:
            # CoDel's clock ticks every 1024 ns.
            actual = (wanted + 1023) // 1024 * 1024
            self.us = (actual + 999) // 1000
        if self.us >= 1 << 32:
            raise Refused(f"K is {time_text(wanted)} of this rate: {self.aqm} takes less than 4295 s")
        self.context.record(threshold_ns=actual)
        rounded = "" if actual == wanted else " (K as time, rounded up to its clock)"
        report.explain(f"{self.aqm}: what waited longer than {time_text(actual)} is marked{rounded}; Not-ECT is not dropped at"
                       " the threshold")

    def queue(self, place: Place, handle: str) -> Command:
        context = self.context
        if self.aqm == "red":
            flags = ["ecn"] + (["nodrop"] if context.options.has("nodrop") else [])
            return red(context, place, handle, self.limit, self.k, self.k, "1", "step", *flags)
        packets = context.line.packets(self.limit)
        # CoDel's own law is for traffic that does not answer the marks: keep it above them.
        target = max(5000, 2 * self.us)
        if self.aqm == "fq":
            return context.qdisc(place, handle, "fq", "limit", packets, "flow_limit", packets,
                                 "ce_threshold", f"{self.us}us")
        return context.qdisc(place, handle, self.aqm, "limit", packets, "target", f"{target}us",
                             "interval", f"{20 * target}us", "ecn", "ce_threshold", f"{self.us}us")


def fraction(hundredths: int) -> str:
    text = f"{hundredths % 100:02d}".rstrip("0")
    return "." + text if text else ""


def step_probes(options: Options) -> list[tuple[str, str]]:
    aqm = options.get("aqm", "red")
    return [] if aqm == "red" else [(aqm, "ce_threshold")]
