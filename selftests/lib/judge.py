#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""judge.py - measure what a test's captures and traces show

Each check reads captures (through tshark), traces or qdelay's output, and prints
one line of name=value words per result. The test compares them with what it
expects, so that thresholds stay beside the topology that explains them.
"""
import math
import re
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

import headers
from dissect import rows

NOT_ECT, ECT1, ECT0, CE = range(4)
SYN, PSH, ACK, ECE, CWR = 0x02, 0x08, 0x10, 0x40, 0x80
SERVER = 5201  # flowgen's and iperf3's port
CA_RECOVERY, CA_LOSS = 3, 4     # TCP_CA_Recovery and TCP_CA_Loss


# --- what is read ------------------------------------------------------------

class Packet(NamedTuple):
    """A TCP packet of a capture. Sequence numbers are relative to the SYN."""
    time_ns: int
    src: int            # port
    dst: int            # port
    seq: int
    length: int         # bytes of payload
    ack: int
    flags: int
    ecn: tuple[int, ...]  # ECN field of each IP header, the outermost first
    dscp: int
    frame: int          # bytes on the wire

    @property
    def end(self) -> int:
        """Sequence number after the payload"""
        return self.seq + self.length

    @property
    def ace(self) -> int:
        """The ACE field of Accurate ECN"""
        return self.flags >> 6 & 7

    def has(self, flag: int) -> bool:
        """Whether the TCP flag is set"""
        return bool(self.flags & flag)


FIELDS = ("frame.time_epoch", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.len", "tcp.ack",
          "tcp.flags", "ip.dsfield.ecn", "ipv6.tclass.ecn", "ip.dsfield.dscp",
          "ipv6.tclass.dscp", "frame.len")


def nanoseconds(text: str) -> int:
    """Nanoseconds of a decimal number of seconds; exact, unlike a float"""
    whole, _, fraction = text.partition(".")
    return int(whole) * 10**9 + int(fraction[:9].ljust(9, "0"))


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a field that may occur several times in a packet"""
    return tuple(int(n, 0) for n in text.split(",") if n)


def packets(capture: str, display_filter: str = "tcp") -> Iterator[Packet]:
    """The TCP packets of a capture, in order"""
    for f in rows(capture, display_filter, *FIELDS):
        if not f[1]:
            continue  # TCP's header was cut off
        src, dst, seq, length, ack, flags = (numbers(x)[-1] if x else 0 for x in f[1:7])
        yield Packet(nanoseconds(f[0]), src, dst, seq, length, ack, flags,
                     ecn=numbers(f[7]) + numbers(f[8]), dscp=(numbers(f[9]) + numbers(f[10]))[-1],
                     frame=int(f[11]))


class Event(NamedTuple):
    """A line of a trace: its tracepoint's name, and its words NAME=VALUE"""
    time: float
    name: str
    values: dict[str, str]

    def number(self, name: str) -> int:
        """The value of @name"""
        return int(self.values[name])


EVENT = re.compile(r"(\d+\.\d+): (\w+): (.*)")


def events(trace: str, sport: int | None = None) -> list[Event]:
    """A trace's events, or only those of the socket with the local port @sport"""
    found = []
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            match = EVENT.search(line)
            if not match:
                continue
            words = (word.partition("=") for word in match[3].split())
            event = Event(float(match[1]), match[2], {k: v for k, _, v in words})
            if sport is None or event.values.get("sport") == str(sport):
                found.append(event)
    return found


def events_of(trace: str, name: str) -> list[Event]:
    """The events of a trace with this name"""
    return [e for e in events(trace) if e.name == name]


def report(**values: float | str) -> None:
    """One result"""
    print(" ".join(f"{k}={v:.9g}" if isinstance(v, float) else f"{k}={v}"
                   for k, v in values.items()))


# --- any control -------------------------------------------------------------

def check_ecn(capture: str, *, port: int = SERVER) -> None:
    """Data packets to PORT by ECN field: of the innermost header, and of the outermost where
    there are several. mixed: packets whose outer field is not RFC 6040's copy of the inner."""
    inner = [0] * 4
    outer = [0] * 4
    mixed = 0
    for p in packets(capture):
        if p.dst != port or not p.length or not p.ecn:
            continue
        inner[p.ecn[-1]] += 1
        if len(p.ecn) > 1:
            outer[p.ecn[0]] += 1
            mixed += p.ecn[0] != (ECT0 if p.ecn[-1] == CE else p.ecn[-1]) and p.ecn[0] != CE
    report(not_ect=inner[NOT_ECT], ect0=inner[ECT0], ect1=inner[ECT1], ce=inner[CE],
           outer_not_ect=outer[NOT_ECT], outer_ect0=outer[ECT0], outer_ect1=outer[ECT1],
           outer_ce=outer[CE], mixed=mixed)


def check_gaps(capture: str, least: float, most: float, *, start: float = 0,
               until: str = "") -> None:
    """Time between data packets from --start seconds after the first to --until (epoch):
    how many gaps are within LEAST to MOST microseconds, shorter, longer; retransmissions."""
    last = nanoseconds(until) if until else 1 << 63
    times: list[int] = []
    first = nxt = again = 0
    for p in packets(capture, "tcp.len > 0"):
        if p.time_ns > last:
            break
        first = first or p.time_ns
        if p.time_ns > first + start * 1e9:
            times.append(p.time_ns)
            again += len(times) > 1 and p.end <= nxt
        nxt = max(nxt, p.end)
    gaps = [(b - a) / 1000 for a, b in zip(times, times[1:])]
    report(packets=len(times), within=sum(least <= g <= most for g in gaps),
           sooner=sum(g < least for g in gaps), later=sum(g > most for g in gaps),
           retransmitted=again)


def check_acks(capture: str, most: int, *, late_us: float = 1, accecn: bool = False) -> None:
    """A receiver's ACKs of data to PORT, as a capture at the switch shows both: ACKs; those
    whose ECE (with --accecn, ACE) is not what their packets' CE says; ACKs of marked and clean
    packets together; ACKs of more than MOST packets; CE packets, and packets whose mark is not
    that of the one before, acknowledged more than LATE microseconds after they passed; packets
    with CWR and CE, and those acknowledged without ECE."""
    data: list[Packet] = []
    marks = [0]     # CE packets among the first n
    done = acks = wrong = mixed = many = delayed = changes = late = cwr = cwr_wrong = 0
    for p in packets(capture, "tcp.flags.reset == 0"):
        if p.has(SYN):
            continue
        if p.dst == SERVER and p.length:
            data.append(p)
            marks.append(marks[-1] + (p.ecn[-1] == CE))
            continue
        if p.dst == SERVER or p.length:
            continue
        first = done
        while done < len(data) and data[done].end <= p.ack:
            changed = marks[done + 1] - marks[done] != (marks[done] - marks[done - 1] if done else 0)
            changes += changed
            late += changed and p.time_ns - data[done].time_ns > late_us * 1000
            if data[done].ecn[-1] == CE and data[done].has(CWR):
                cwr += 1
                cwr_wrong += not p.has(ECE)
            done += 1
        if done == first:
            continue
        marked = {d.ecn[-1] == CE for d in data[first:done]}
        last = data[done - 1]
        acks += 1
        many += done - first > most
        mixed += len(marked) > 1
        if accecn:
            wrong += p.ace != (5 + marks[done]) % 8
        else:
            wrong += marked != {p.has(ECE)}
        delayed += last.ecn[-1] == CE and p.time_ns - last.time_ns > late_us * 1000
    report(acks=acks, wrong=wrong, mixed=mixed, many=many, delayed=delayed, packets=len(data),
           marks=marks[-1], changes=changes, late=late, cwr_ce=cwr, cwr_ce_wrong=cwr_wrong)


def check_flow_ecn(capture: str) -> None:
    """Per flow and direction of a capture: packets other than SYN, how many are ECT(1), how
    many of those in the second half, how many are not ECT(1); ECN field of the last SYN."""
    flows: dict[tuple[int, str], list[int]] = {}
    syn: dict[tuple[int, str], int] = {}
    for p in packets(capture):
        flow = (p.src, "client") if p.dst == SERVER else (p.dst, "server")
        if p.has(SYN):
            syn[flow] = p.ecn[-1]
        else:
            flows.setdefault(flow, []).append(p.ecn[-1])
    for flow, ecn in flows.items():
        report(port=flow[0], sender=flow[1], packets=len(ecn), ect1=ecn.count(ECT1),
               ect1_late=ecn[len(ecn) // 2:].count(ECT1), other=len(ecn) - ecn.count(ECT1),
               syn=syn.get(flow, -1))


def check_outer_ecn(capture: str, which: str) -> None:
    """Packets of more than 1000 bytes that the filter selects, by the ECN field of the
    outermost IP header: all; neither ECT(1) nor CE; CE."""
    outer = [0] * 4
    for version, ipv4, ipv6 in rows(capture, f"frame.len > 1000 && ({which})",
                                    "ip.version", "ip.dsfield.ecn", "ipv6.tclass.ecn"):
        v4, v6 = numbers(ipv4), numbers(ipv6)
        outer[v4[0] if version.startswith("4") or not v6 else v6[0]] += 1
    report(packets=sum(outer), other=outer[NOT_ECT] + outer[ECT0], ce=outer[CE])


def check_recovery_cuts(trace: str, *, port: int = 5299) -> None:
    """How often the stack went from CA_Loss to Recovery on connections to PORT, and how many of
    these had no reduction for loss before the next change of state."""
    state, due, seen, missing = 0, False, 0, 0
    for e in events(trace):
        if e.name == "tcp_cong_state_set" and e.number("dport") == port:
            missing += due
            due = e.number("cong_state") == CA_RECOVERY and state == CA_LOSS
            seen += due
            state = e.number("cong_state")
        elif e.name.endswith("_cut") and e.values["cause"] == "loss":
            due = False
    report(recoveries=seen, without_cut=missing + due)


# --- DCTCP -------------------------------------------------------------------

def rfc_alphas(capture: str) -> list[float]:
    """RFC 8257's alpha (3.3, steps 1 to 8) after each window, from the ACKs of a capture at the
    sender"""
    una = nxt = window_end = acked = marked = 0
    alpha, alphas = 1.0, []
    for p in packets(capture):
        if p.dst == SERVER:
            nxt = max(nxt, p.end)
            if p.has(SYN):
                una = nxt = window_end = p.seq + 1
        elif p.ack > una and not p.has(SYN):
            acked += p.ack - una
            marked += p.ack - una if p.has(ECE) else 0
            una = p.ack
            if una > window_end:
                alpha += (marked / acked - alpha) / 16
                alphas.append(alpha)
                window_end, acked, marked = nxt, 0, 0
    return alphas


def check_dctcp_alpha(capture: str, trace: str, sport: int) -> None:
    """The module's alpha after each window (TRACE, of the socket with the local port SPORT)
    against RFC 8257's, computed in floating point from the ACKs of CAPTURE at the sender."""
    want = rfc_alphas(capture)
    got = [e.number("alpha_q30") / 2**30 for e in events(trace, sport)
           if e.name == "dctcp_ref_window"]
    report(windows=len(want), traced=len(got), alpha=want[-1],
           difference=max(abs(g - w) for g, w in zip(got, want)))


def check_cwr(capture: str) -> None:
    """In a capture at the sender: data packets with CWR, and those sent before all data that had
    been sent at the CWR before was acknowledged: a second reduction within one window."""
    una = reduced_at = count = early = 0
    for p in packets(capture, "tcp.flags.syn == 0"):
        if p.dst != SERVER:
            una = max(una, p.ack)
        elif p.length and p.has(CWR):
            count += 1
            early += una < reduced_at
            reduced_at = p.seq
    report(cwr=count, early=early)


# --- LDCP --------------------------------------------------------------------

def draft_windows(capture: str, cw: float, alpha: float, beta: float, mss: int) -> list[float]:
    """The draft's window (eq. 2) after each ACK that comes while there is new data to send. The
    first @cw packets are fast start's"""
    una = sent = confirmed = 0
    start = cw
    windows: list[float] = []
    shown = 0
    for p in packets(capture):
        if p.has(SYN):
            if p.src == SERVER:
                una = p.seq + 1
            continue
        if p.src != SERVER:
            if p.length:
                shown = sent
            continue
        if p.ack <= una:
            continue
        n = -(-(p.ack - una) // mss)
        una = p.ack
        if confirmed >= start:
            cw += -n * beta if p.has(ECE) else n * alpha / cw
        confirmed += n
        windows.append(cw)
        sent += 1
    return windows[:shown]


def check_ldcp_window(capture: str, trace: str, sport: int, *, alpha: float, beta: float,
                      mss: int = 1448) -> None:
    """The module's window after each ACK (TRACE) against the draft's, computed in floating
    point from the ACKs of CAPTURE at the sender; windows set by anything but an ACK; cwnd
    that is not the window in whole packets."""
    want = draft_windows(capture, 10, alpha / 1024, beta / 1024, mss)
    ours = events(trace, sport)
    acks = [e for e in ours if e.name == "ldcp_ack"]
    got = [e.number("cw_q40") / 2**40 for e in acks if e.number("clean") or e.number("marked")]
    whole = [(e.number("cw_q40") >> 40, e.number("cwnd")) for e in acks]
    report(acks=len(want), traced=len(got),
           difference=max((abs(g - w) / w for g, w in zip(got, want)), default=1.0),
           set_otherwise=sum(e.name == "ldcp_window" and e.values["cause"] not in ("start", "first_rtt", "full")
                             for e in ours),
           not_whole=sum(cwnd != max(cw, 1) for cw, cwnd in whole),
           marked=sum(e.values.get("marked", "0") != "0" for e in acks))


class FirstRTT:
    """What left of one flow before the first ACK of its data, and after"""
    acked = False
    first = 0                   # packets before that ACK
    early = 0                   # of them ECT, and not the last
    last = -1                   # ECN field of the last
    late = 0                    # new packets after it that are not ECT(0)
    again = 0                   # retransmissions
    again_not_ect = 0
    big = 0                     # packets larger than MSS before it

    def __init__(self, start: int) -> None:
        self.start = self.next_seq = start      # sequence number of the first byte
        self.dscps: set[int] = set()


def check_first_rtt(capture: str, *, mss: int = 1448, server: bool = False) -> None:
    """Per flow of a capture at the sender: data packets before the first ACK of data, how many
    of them but the last are ECT (early), the last one's ECN field; later packets that are not
    ECT(0); retransmissions, those not ECT(0); packets above MSS; values of DSCP. --server: the
    server sends."""
    flows: dict[int, FirstRTT] = {}
    for p in packets(capture, "tcp && tcp.flags.reset == 0"):
        client, to_sender = (p.dst, p.dst == SERVER) if server else (p.src, p.src == SERVER)
        if to_sender:
            client = p.src if server else p.dst
        if p.has(SYN):
            if not to_sender and client not in flows:
                flows[client] = FirstRTT(p.seq + 1)
            continue
        flow = flows.get(client)
        if flow is None:
            continue
        if to_sender:
            flow.acked |= p.ack > flow.start
            continue
        if not p.length:
            continue
        flow.dscps.add(p.dscp)
        ecn = p.ecn[-1]
        if p.seq < flow.next_seq:
            flow.again += 1
            flow.again_not_ect += ecn != ECT0
            continue
        flow.next_seq = p.end
        if flow.acked:
            flow.late += ecn != ECT0
            continue
        flow.early += flow.last == ECT0
        flow.first += 1
        flow.last = ecn
        flow.big += p.length > mss
    for f in flows.values():
        report(first=f.first, early=f.early, last=f.last, late=f.late, again=f.again,
               again_not_ect=f.again_not_ect, big=f.big, dscps=len(f.dscps))


# --- Prague ------------------------------------------------------------------

PRAGUE_TARGET_US = 25000    # the virtual RTT that the draft recommends


def prague_window(event: Event, which: str = "") -> float:
    """The window in packets; with which="_after" the one that a reduction leaves"""
    return event.number("cwnd" + which) + event.number(f"frac{which}_q30") / 2**30


def prague_alpha(event: Event) -> float:
    """The average of the marked fraction"""
    return event.number("alpha_q30") / 2**30


def mean(values: list[float]) -> float:
    """The mean; not a number if there are no values, which no limit admits"""
    return sum(values) / len(values) if values else float("nan")


def gaps_of(found: list[Event], start: float, end: float) -> list[float]:
    """Seconds between an event and the next; both lie between start and end"""
    times = [e.time for e in found if start <= e.time <= end]
    return [b - a for a, b in zip(times, times[1:])]


def alpha_difference(periods: list[Event]) -> float:
    """Largest difference between alpha and the draft's EWMA of each period's marked packets
    (2.4.2). It starts at 1, in the first period with a mark."""
    expected, worst = None, 1.0
    for e in periods:
        if expected is None:
            if not e.number("marked"):
                continue
            expected, worst = 1.0, 0.0
        expected += (e.number("marked") / e.number("acked") - expected) / 16
        worst = max(worst, abs(expected - prague_alpha(e)))
    return worst


def growth_rates(periods: list[Event], first: int, last: int) -> list[float]:
    """Packets per srtt by which the window grows over each EWMA period without marks that lies
    between these rounds, divided by the draft's (srtt / rtt_virt)^2; rtt_virt is srtt in the
    first 500 rounds, then srtt + 25 ms"""
    rates = []
    for before, e in zip(periods, periods[1:]):
        if (before.number("marked") or e.number("marked") or e.number("silent") <= 2
                or e.time <= before.time or not first < e.number("rounds") < last):
            continue
        srtt = e.number("srtt_us")
        rtt_virt = srtt if e.number("rounds") < 500 else srtt + PRAGUE_TARGET_US
        grown = prague_window(e) - prague_window(before)
        rates.append(grown * srtt / ((e.time - before.time) * 1e6) / (srtt / rtt_virt)**2)
    return rates


def check_prague_response(trace: str) -> None:
    """One flow over a DualPI2 queue against the draft's formulas: alpha at the first cut, packets
    that it leaves beyond half of the window, EWMA periods after it in which the window grew by
    more than 1.5 packets; largest differences of alpha and of a cut; shortest time between two
    cuts in the first 500 rounds and afterwards, when those end; growth before and after."""
    cuts, periods = events_of(trace, "prague_cut"), events_of(trace, "prague_period")
    if not cuts or not periods:
        sys.exit("judge.py: no cuts or no EWMA periods in the trace")
    later = [prague_window(e) for e in periods if e.time >= cuts[0].time]
    independent = [e.time for e in periods if e.number("rounds") >= 500]
    change = independent[0] if independent else float("inf")
    report(cuts=len(cuts), periods=len(periods), first_alpha=prague_alpha(cuts[0]),
           first_excess=prague_window(cuts[0], "_after") - prague_window(cuts[0]) / 2,
           jumps=sum(b > a + 1.5 for a, b in zip(later, later[1:])),
           alpha_difference=alpha_difference(periods),
           cut_difference=max(abs(prague_window(e) * (1 - prague_alpha(e) / 2)
                                  - prague_window(e, "_after")) for e in cuts),
           early_gap=min(gaps_of(cuts, 0, change), default=0.0),
           late_gap=min(gaps_of(cuts, change, float("inf")), default=0.0),
           independent_after=change - periods[0].time,
           early_growth=mean(growth_rates(periods, 100, 490)),
           late_growth=mean(growth_rates(periods, 510, 1 << 32)),
           acked=sum(e.number("acked") for e in periods))


class Quotient(float):
    """A number, or two: A/B"""

    def __new__(cls, text: str) -> "Quotient":
        above, _, below = text.partition("/")
        return super().__new__(cls, float(above) / float(below or 1))


def check_prague_cuts(trace: str, cause: str, share: Quotient, slope: Quotient = Quotient("0")) -> None:
    """Reductions for CAUSE of windows above 6 packets: how many, and the largest difference of
    the share that they leave from SHARE + SLOPE * alpha."""
    found = [e for e in events_of(trace, "prague_cut")
             if e.values["cause"] == cause and e.number("cwnd") > 6]
    report(cuts=len(found),
           difference=max((abs(prague_window(e, "_after") / prague_window(e)
                               - share - slope * prague_alpha(e))
                           for e in found), default=1.0))


def check_prague_growth(trace: str, rtt_virt: float, *, plus_srtt: bool = False) -> None:
    """Growth of the window per srtt in a long time without marks, divided by the draft's
    (srtt / rtt_virt)^2. RTT_VIRT is in microseconds; --plus-srtt adds srtt to it."""
    periods = events_of(trace, "prague_period")
    grown = expected = 0.0
    start = periods[0].time + 0.4
    for before, e in zip(periods, periods[1:]):
        if before.time < start or before.number("silent") <= 20 or e.number("silent") <= 20:
            continue
        srtt = e.number("srtt_us")
        virt = rtt_virt + (srtt if plus_srtt else 0)
        grown += prague_window(e) - prague_window(before)
        expected += (e.time - before.time) * 1e6 / srtt * (srtt / virt)**2
    report(growth=grown / expected if expected else 0.0, periods=len(periods))


def check_prague_idle(trace: str) -> None:
    """Rounds, and periods without a mark, counted before and after a pause of more than 2 s; the virtual
    and the smoothed RTT (us) after it."""
    periods = events_of(trace, "prague_period")
    for before, e in zip(periods, periods[1:]):
        if e.time - before.time > 2:
            report(rounds_before=before.number("rounds"), rounds_after=e.number("rounds"),
                   silent_before=before.number("silent"), silent_after=e.number("silent"),
                   rtt_virt=e.number("rtt_virt_us"), srtt=e.number("srtt_us"))


def check_prague_rounds(trace: str, seconds: float) -> None:
    """Rounds counted just before SECONDS, and the fewest at any time after that; the most by which
    silent exceeds the periods without a mark."""
    periods = events_of(trace, "prague_period")
    change = periods[0].time + seconds
    before = [e.number("rounds") for e in periods if e.time < change]
    after = [e.number("rounds") for e in periods if e.time >= change]
    unmarked = beyond = 0
    for e in periods:
        unmarked = 0 if e.number("marked") else unmarked + 1
        beyond = max(beyond, e.number("silent") - unmarked)
    report(before=before[-1], fewest_after=min(after), silent_beyond=beyond)


def check_prague_pace(capture: str, trace: str) -> None:
    """From the fourth second on, the gaps between data packets: their mean, divided by srtt / cwnd
    of the EWMA period that each lies in; the share shorter than 0.4 of that; how many there are."""
    periods = events_of(trace, "prague_period")
    times = [p.time_ns for p in packets(capture, "tcp.len > 0")]
    begin = periods[0].time
    total = expected = 0.0
    short = count = period = 0
    for last, now in zip(times, times[1:]):
        at = begin + (now - times[0]) / 1e9
        while period < len(periods) - 1 and periods[period].time < at:
            period += 1
        if at < begin + 4:
            continue
        pace = periods[period].number("srtt_us") / periods[period].number("cwnd")
        total += (now - last) / 1000
        expected += pace
        short += (now - last) / 1000 < 0.4 * pace
        count += 1
    report(mean=total / expected, short=short / count, packets=count)


def check_prague_marked_growth(trace: str) -> None:
    """With many marks: by how much the window grew between cuts, divided by the draft's unmarked
    packets / cwnd, which all EWMA periods between the first and the last cut add up to"""
    found = list(events(trace))
    cuts = [e for e in found if e.name == "prague_cut"]
    periods = [e for e in found if e.name == "prague_period"]
    if len(cuts) < 2:
        sys.exit("judge.py: fewer than two cuts in the trace")
    grown = sum(prague_window(e) - prague_window(last, "_after") for last, e in zip(cuts, cuts[1:]))
    expected = sum((e.number("acked") - e.number("marked"))
                   / ((prague_window(last) + prague_window(e)) / 2)
                   for last, e in zip(periods, periods[1:])
                   if cuts[0].time < e.time <= cuts[-1].time)
    report(cuts=len(cuts), growth=grown / expected)


# --- HPCC++ ------------------------------------------------------------------
# A record of telemetry: timestamp in units of 64 ns (24 bits), txBytes in units of 128 bytes
# (20 bits) up to 25 Gb/s, queue length in units of 80 bytes.

TS_NS, TX_BYTES, QLEN_BYTES = 64, 128, 80


def difference_of_ts(now: int, before: int) -> int:
    """Nanoseconds between two timestamps, less than one wrap apart"""
    return (now - before) % 2**24 * TS_NS


def difference_of_tx(now: int, before: int) -> int:
    """Units of txBytes between two records, less than one wrap apart"""
    return (now - before) % 2**20


def check_int_probes(capture: str, least: float) -> None:
    """Probes in a capture at the sender: how many; kinds of 5-tuple, DSCP, DF and length; DSCP
    and bytes on the wire; pairs less than LEAST microseconds apart, mean distance; those after
    the first that are sent with no data in flight; those that do not end below SND.UNA."""
    kinds, times = set(), []
    dscp, frame = -1, -1
    for time, *kind in rows(capture, "int.type == 1", "frame.time_epoch", "ip.src", "ip.dst",
                            "tcp.srcport", "tcp.dstport", "ip.dsfield.dscp", "ip.flags.df",
                            "frame.len", "int.nhop", "tcp.hdr_len"):
        times.append(nanoseconds(time))
        kinds.add(tuple(kind))
        if dscp < 0:
            dscp, frame = int(kind[4]), int(kind[6])
    gaps = [(b - a) / 1000 for a, b in zip(times, times[1:])]
    una = nxt = count = idle = wrong = 0
    for p in packets(capture, "tcp.flags.syn == 0"):
        if p.dst != SERVER:
            if p.flags != PSH:
                una = max(una, p.ack)
        elif p.flags != PSH:
            nxt = max(nxt, p.end)
        else:
            count += 1
            idle += count > 1 and nxt == una
            wrong += una > 0 and p.end + 1 != una
    report(probes=len(times), kinds=len(kinds), dscp=dscp, frame=frame,
           sooner=sum(g < least for g in gaps), mean_gap=mean(gaps),
           without_data=idle, wrong_seq=wrong)


def link_loads(capture: str, gbps: float) -> dict[str, tuple[int, float, int]]:
    """Of each response to the probes over one hop, by its ID: nanoseconds since the response
    before, the rate in between as a share of the link, and the smaller queue of both in bits"""
    loads = {}
    before: tuple[int, int, int] | None = None
    for ident, *record in rows(capture, "int.type == 2", "int.id", "int.hop.ts", "int.hop.tx",
                               "int.hop.qlen"):
        ts, tx, qlen = (int(x) for x in record)
        if before:
            elapsed = difference_of_ts(ts, before[0])
            sent = difference_of_tx(tx, before[1]) * TX_BYTES * 8
            loads[ident] = elapsed, sent / elapsed / gbps, min(qlen, before[2]) * QLEN_BYTES * 8
        before = ts, tx, qlen
    return loads


def check_hpccpp_model(capture: str, trace: str, gbps: float) -> None:
    """The draft's U and W in floating point, from the telemetry of CAPTURE (one hop of GBPS,
    default parameters), against those of TRACE: windows, largest difference of U, largest
    relative difference of W, windows in a wrong stage."""
    eta, max_stage, mss = 0.95, 1, 1448
    newcomer = 32   # samples
    u_mean = eta    # of 64 samples; W_ai follows it
    loads = link_loads(capture, gbps)
    bytes_per_ns = gbps / 8
    u_average = worst_u = worst_w = got_u = 0.0
    ident = ""
    stage = windows = wrong = 0
    for e in events(trace):
        if e.name == "hpccpp_sample":
            ident, got_u = e.values["id"], e.number("u_q20") / 2**20
        if e.name != "hpccpp_window" or ident not in loads:
            continue
        elapsed, rate, queue = loads[ident]
        rtt = e.number("t_ns")
        weight = min(elapsed, rtt) / rtt
        u_average += weight * (queue / (gbps * rtt) + rate - u_average)
        near = min(max(u_average, eta - 4 * (1 - eta)), eta + 4 * (1 - eta))
        u_mean += (near - u_mean) / 64
        worst_u = max(worst_u, abs(u_average - got_u))
        w = e.number("wc_q8") / 256
        if u_average >= eta or stage >= max_stage:
            w *= eta / u_average
            stage = 0
        else:
            stage += 1
        halvings = 3 * max(u_mean - eta, 0) / (1 - eta)
        whole = math.floor(halvings)
        if newcomer and u_average < eta + 4 * (1 - eta):
            w += bytes_per_ns * rtt * (1 - eta)     # half of W is more: the flow is alone
        else:
            w += bytes_per_ns * rtt * (1 - eta) / 10 / 2**whole * (1 - (halvings - whole) / 2)
        newcomer -= newcomer > 0
        w = min(w, bytes_per_ns * (rtt + 1000) + 2 * mss)
        worst_w = max(worst_w, abs(w / (e.number("w_q8") / 256) - 1))
        wrong += stage != e.number("stage")
        windows += 1
    report(windows=windows, u_difference=worst_u, w_difference=worst_w, wrong_stages=wrong)


def check_first_flight(capture: str, *, rtt: float, flight: float, pace: float) -> None:
    """A flow that starts at line rate: bytes of data in the first RTT, when the last packet of the
    first FLIGHT leaves, and the share (%) of later packets less than PACE after the packet before.
    All times are in microseconds."""
    sent = [(p.time_ns, p.length) for p in packets(capture, "tcp.len > 100")
            if p.dst == SERVER]
    start = sent[0][0]
    later = [(b[0] - a[0]) / 1000 for a, b in zip(sent[999:], sent[1000:])]
    report(bytes=sum(n for t, n in sent if t - start < rtt * 1000),
           until=max(t - start for t, _ in sent if t - start < flight * 1000) / 1000,
           sooner=100 * sum(g < pace for g in later) / len(later))


def check_int_stamps(capture: str, mac: str, hop: int) -> None:
    """A port's records in the probes that it stamped, against a capture there: speeds; records;
    largest differences of time (ns) and of txBytes (units); bytes that left. MAC is the port's,
    HOP its record's number from 1."""
    total = records = 0
    worst_ts, worst_tx = 0, 0.0
    speeds = set()
    before: tuple[int, int, int, int] | None = None
    for time, length, kind, *fields in rows(capture, f"eth.src == {mac}",
                                            "frame.time_epoch", "frame.len", "int.type",
                                            "int.hop.ts", "int.hop.tx", "int.hop.mbps"):
        total += int(length)
        if kind != "1":
            continue
        ts, tx, mbps = (numbers(f)[hop - 1] for f in fields)
        records += 1
        speeds.add(mbps)
        now = nanoseconds(time), total, ts, tx
        if before:
            worst_ts = max(worst_ts, abs(difference_of_ts(ts, before[2]) - (now[0] - before[0])))
            worst_tx = max(worst_tx, abs(difference_of_tx(tx, before[3])
                                         - (total - before[1]) / TX_BYTES))
        before = now
    report(speed=",".join(str(s) for s in sorted(speeds)), records=records,
           time_difference=worst_ts, tx_difference=worst_tx, bytes=total)


def check_int_queue(capture: str, address: str) -> None:
    """The queue length in probes that leave a router, against what a capture on all its devices
    says: packets for ADDRESS that have come in and not gone out, without the probe's own bytes.
    Probes, largest difference, longest queue (bytes)."""
    waiting = probes = worst = longest = 0
    for direction, length, kind, qlen in rows(capture, f"ip.dst == {address}",
                                              "sll.pkttype", "ip.len", "int.type",
                                              "int.hop.qlen"):
        frame = int(length) + 14
        if direction == "0":        # came in
            waiting += frame
        elif direction == "4":      # goes out
            waiting -= frame
            if kind == "1":
                probes += 1
                worst = max(worst, abs(int(qlen) * QLEN_BYTES - waiting))
                longest = max(longest, waiting)
    report(probes=probes, difference=worst, longest=longest)


def check_receiver_windows(capture: str, trace: str, least: float) -> None:
    """Windows that the receiver sent, in CAPTURE at the sender; those whose probe left less than
    LEAST microseconds after the probe of the one before; those that the sender's TRACE did not
    take as they are. (Windows themselves come closer together while a queue gets shorter.)"""
    probes = {ident: nanoseconds(time) for time, ident in
              rows(capture, "int.type == 1", "frame.time_epoch", "int.id")}
    times, said = [], []
    for ident, options in rows(capture, "int.type == 3", "int.id", "int.options"):
        times.append(probes[ident])
        said.append(int(options) * 64 * 256)    # bytes, Q8
    taken = [e.number("w_q8") for e in events_of(trace, "hpccpp_window")
             if e.values["cause"] == "receiver"]
    report(windows=len(said), taken=len(taken),
           sooner=sum(b - a < least * 1000 for a, b in zip(times, times[1:])),
           different=sum(a != b for a, b in zip(said, taken)))


def data_before_probes(capture: str) -> dict[str, int]:
    """By the ID of each probe, where the data ends that was captured before it"""
    found = {}
    end = 0
    for ident, seq, length in rows(capture, f"tcp.dstport == {SERVER}", "int.id", "tcp.seq",
                                   "tcp.len"):
        if ident:
            found[ident] = end
        elif int(length):
            end = max(end, int(seq) + int(length))
    return found


def check_overtaken(capture: str, sent: str) -> None:
    """Probes in CAPTURE at the receiver, and those that do not come after the same data as in
    SENT, a capture at the sender."""
    left, arrived = data_before_probes(sent), data_before_probes(capture)
    report(probes=len(arrived), overtaken=sum(left.get(i) != end for i, end in arrived.items()))


def check_paths(trace: str) -> None:
    """The path IDs that HPCC++'s samples carry, in order of their numbers, and how often a
    flow's sample has another one than the flow's sample before."""
    last: dict[str, int] = {}
    switches = 0
    paths = set()
    for e in events_of(trace, "hpccpp_sample"):
        path = e.number("path_id")
        switches += last.get(e.values["sport"], path) != path
        last[e.values["sport"]] = path
        paths.add(path)
    report(paths=",".join(str(p) for p in sorted(paths)), switches=switches)


def check_busiest(trace: str) -> None:
    """The links (HOP:MBPS, from 0) that were the busiest for 40 measured samples in a row, in
    order, and the mean U of the last 100 samples."""
    links = []
    last, run = -1, 0
    samples = events_of(trace, "hpccpp_sample")
    for e in samples:
        if e.number("result"):
            continue
        run = run + 1 if e.number("busiest") == last else 1
        last = e.number("busiest")
        if run == 40:
            links.append(f"{last}:{e.values['mbps']}")
    report(links=",".join(links), u=mean([e.number("u_q20") / 2**20 for e in samples[-100:]]))


def check_hpccpp_timeouts(trace: str, size: int) -> None:
    """Timeouts (changes to CA_Loss) and those in mid-recovery; those that are not followed by a
    window of BYTES."""
    found = events(trace)
    state = timeouts = recovery = wrong = 0
    for e, after in zip(found, [*found[1:], None]):
        if e.name != "tcp_cong_state_set":
            continue
        if e.number("cong_state") == CA_LOSS:
            timeouts += 1
            recovery += state == CA_RECOVERY
            wrong += (after is None or after.values.get("cause") != "timeout"
                      or after.number("w_q8") != size * 256)
        state = e.number("cong_state")
    report(timeouts=timeouts, in_recovery=recovery, wrong=wrong)


def check_ifa(capture: str, device: int, mbps: int) -> None:
    """Packets of IFA, each at the only node's egress: those with its metadata, those without (answers have them by
    the receiver), and those with wrong lengths, checksums of IP or metadata"""
    codes = {10000: 0, 25000: 1, 40000: 2, 50000: 3, 100000: 4}
    found = wrong = bare = 0
    for length, data in headers.frames(capture):
        ip = data[14:]
        if ip[0] >> 4 == 4:
            words = struct.unpack("!10H", ip[:20])
            total, start, protocol = words[1], 20, ip[9]
            folded = sum(words)
            wrong += folded % 0xFFFF != 0
        else:
            total, start, protocol = int.from_bytes(ip[4:6], "big") + 40, 40, ip[6]
        if protocol != 253:
            continue
        ifa, md = ip[start:], ip[start + 24:]
        wrong += total != length - 14 or ifa[0] != 0x2F or ifa[1] != 6
        if md[3] == 0:
            bare += 1
            continue
        found += 1
        lns, dev = md[4] >> 4, int.from_bytes(md[4:8], "big") >> 8 & 0xFFFFF
        wrong += md[3] != 8 or md[2] not in (254, 0) or lns != 1 or dev != device or md[8] >> 4 != codes[mbps]
    report(found=found, bare=bare, wrong=wrong)


def check_int_md(capture: str, node: int) -> None:
    """The same of INT-MD: wrong are lengths, TCP's checksum, a time that does not grow, or a load that no port can have"""
    found = wrong = bare = 0
    last = {True: 0, False: 0}
    for _, data in headers.frames(capture):
        ip, v4 = data[14:], data[14] >> 4 == 4
        start = 20 if v4 else 40
        end = int.from_bytes(ip[2:4], "big") if v4 else 40 + int.from_bytes(ip[4:6], "big")
        tcp = ip[start:end]
        if ip[9 if v4 else 6] != 6 or tcp[13] != 8 or tcp[20] != 0x10:
            continue
        pseudo = ip[12:20] if v4 else ip[8:40]
        summed = pseudo + struct.pack("!HH", 6, len(tcp)) + tcp + bytes(len(tcp) % 2)
        # or that of the addresses alone, which a device is to complete
        partial = sum(struct.unpack(f"!{len(pseudo) // 2 + 2}H", pseudo + struct.pack("!HH", 6, len(tcp)))) % 0xFFFF
        wrong += (sum(struct.unpack(f"!{len(summed) // 2}H", summed)) % 0xFFFF != 0
                  and int.from_bytes(tcp[16:18], "big") % 0xFFFF != partial)
        md = tcp[20:]
        wrong += md[4] >> 4 != 2 or md[6] != 6 or md[8:10] != b"\xd5\0" or md[4 + 4 * md[1]:][:4] != b"INT1"
        if md[1] == 3:
            bare += 1
            continue
        found += 1
        answer = md[4 + 4 * md[1] + 4] != 1
        device, _, _, ns, load = struct.unpack("!IIIQI", md[16:40])
        wrong += md[1] != 9 or md[7] != (0 if answer else 4) or device != node or ns <= last[answer] or load > 1200000
        last[answer] = ns
    report(found=found, bare=bare, wrong=wrong)


# --- the command line --------------------------------------------------------

def main() -> int:
    """judge.py CHECK ARGUMENT... [--OPTION VALUE]...: calls check_CHECK with what its parameters' types make of the words"""
    check = globals()["check_" + sys.argv[1].replace("-", "_")]
    types = dict(check.__annotations__)
    given: list[object] = []
    options: dict[str, object] = {}
    words = iter(sys.argv[2:])
    places = check.__code__.co_varnames[:check.__code__.co_argcount]
    for word in words:
        name = word[2:].replace("-", "_")
        if word.startswith("--"):
            options[name] = True if types[name] is bool else types[name](next(words))
        else:
            given.append(types[places[len(given)]](word))
    try:
        check(*given, **options)
    except OSError as error:
        print(f"judge.py: {error}", file=sys.stderr)
        return 1
    except (ArithmeticError, LookupError, ValueError) as error:
        print(f"judge.py: the input has nothing to judge ({error!r})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
