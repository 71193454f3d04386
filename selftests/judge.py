#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""judge.py - measure what a test's captures and traces show

Each check reads captures (through tshark), traces or qdelay's output, and prints
one line of name=value words per result. The test compares them with what it
expects, so that thresholds stay beside the topology that explains them.
"""
import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

NOT_ECT, ECT1, ECT0, CE = range(4)
SYN, RST, PSH, ACK, ECE, CWR, AE = 0x02, 0x04, 0x08, 0x10, 0x40, 0x80, 0x100
SERVER = 5201  # flowgen's and iperf3's port


# --- what is read ------------------------------------------------------------

@dataclass(frozen=True)
class Packet:
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
    command = ["tshark", "-r", capture, "-n", "-o", "tcp.relative_sequence_numbers:TRUE",
               "-Y", display_filter, "-T", "fields"]
    for name in FIELDS:
        command += ["-e", name]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=True, text=True).stdout
    for line in out.splitlines():
        f = line.split("\t")
        if not f[1]:
            continue  # TCP's header was cut off
        src, dst, seq, length, ack, flags = (numbers(x)[-1] if x else 0 for x in f[1:7])
        yield Packet(nanoseconds(f[0]), src, dst, seq, length, ack, flags,
                     ecn=numbers(f[7]) + numbers(f[8]), dscp=(numbers(f[9]) + numbers(f[10]))[-1],
                     frame=int(f[11]))


@dataclass
class Event:
    """A line of a trace: its tracepoint's name, and its words NAME=VALUE"""
    time: float
    name: str
    values: dict[str, str]

    def number(self, name: str) -> int:
        """The value of @name"""
        return int(self.values[name])


EVENT = re.compile(r"(\d+\.\d+): (\w+): (.*)")


def events(trace: str, sport: int | None = None) -> list[Event]:
    """The events of a trace, or those of the socket with the local port @sport"""
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


def report(**values: float | str) -> None:
    """One result"""
    print(" ".join(f"{k}={v:.9g}" if isinstance(v, float) else f"{k}={v}"
                   for k, v in values.items()))


# --- any control -------------------------------------------------------------

def check_ecn(args: argparse.Namespace) -> None:
    """Data packets to PORT by ECN field: of the innermost header, and of the outermost where
    there are several. mixed: packets whose outer field is not RFC 6040's copy of the inner."""
    inner = [0] * 4
    outer = [0] * 4
    mixed = 0
    for p in packets(args.capture, args.filter):
        if p.dst != args.port or not p.length or not p.ecn:
            continue
        inner[p.ecn[-1]] += 1
        if len(p.ecn) > 1:
            outer[p.ecn[0]] += 1
            mixed += p.ecn[0] != (ECT0 if p.ecn[-1] == CE else p.ecn[-1]) and p.ecn[0] != CE
    report(not_ect=inner[NOT_ECT], ect0=inner[ECT0], ect1=inner[ECT1], ce=inner[CE],
           outer_not_ect=outer[NOT_ECT], outer_ect0=outer[ECT0], outer_ect1=outer[ECT1],
           outer_ce=outer[CE], mixed=mixed)


def check_gaps(args: argparse.Namespace) -> None:
    """Time between data packets from --start seconds after the first to --until (epoch):
    how many gaps are within LEAST to MOST microseconds, shorter, longer; retransmissions."""
    until = nanoseconds(args.until) if args.until else 1 << 63
    times: list[int] = []
    first = nxt = again = 0
    for p in packets(args.capture, "tcp.len > 0"):
        if p.time_ns > until:
            break
        first = first or p.time_ns
        if p.time_ns > first + args.start * 1e9:
            times.append(p.time_ns)
            again += len(times) > 1 and p.end <= nxt
        nxt = max(nxt, p.end)
    gaps = [(b - a) / 1000 for a, b in zip(times, times[1:])]
    report(packets=len(times), within=sum(args.least <= g <= args.most for g in gaps),
           sooner=sum(g < args.least for g in gaps), later=sum(g > args.most for g in gaps),
           retransmitted=again)


def check_acks(args: argparse.Namespace) -> None:
    """A receiver's ACKs of data to PORT, as a capture at the switch shows both: ACKs; those
    whose ECE (with --accecn, ACE) is not what their packets' CE says; ACKs of more than MOST
    packets; CE packets acknowledged more than LATE microseconds after they passed."""
    data: list[Packet] = []
    marks = [0]     # CE packets among the first n
    done = acks = wrong = many = delayed = 0
    for p in packets(args.capture, "tcp.flags.reset == 0"):
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
            done += 1
        if done == first:
            continue
        marked = {d.ecn[-1] == CE for d in data[first:done]}
        last = data[done - 1]
        acks += 1
        many += done - first > args.most
        if args.accecn:
            wrong += p.ace != (5 + marks[done]) % 8
        else:
            wrong += marked != {p.has(ECE)}
        delayed += last.ecn[-1] == CE and p.time_ns - last.time_ns > args.late * 1000
    report(acks=acks, wrong=wrong, many=many, delayed=delayed, packets=len(data), marks=marks[-1])


# LDCP's window grows by alpha, 1/4 packet per RTT, after its first window (draft 2.3): a
# transfer of a few hundred kB takes longer by design.
SHARE_OF = {"ldcp": 0.25}


def check_cells(args: argparse.Namespace) -> None:
    """Cells of world.sh, a line each (CONTROL NAME=VALUE... TEXT): what is worse with a control
    than with both of the yardstick's. TEXT is a fault that the test has found itself."""
    cells: dict[str, dict[str, str]] = {}
    faults = []
    with open(args.capture, encoding="utf-8") as lines:
        for line in lines:
            control, *words = line.split()
            cells[control] = dict(w.split("=", 1) for w in words if "=" in w)
            text = " ".join(w for w in words if "=" not in w)
            if text:
                faults.append(f"{control}: {text}")
    yard = [cells[c] for c in args.yardstick.split()]
    slowest = max(float(y["seconds"]) for y in yard)
    timeouts = max(int(y["timeouts"]) for y in yard)
    for control, cell in cells.items():
        if int(cell["timeouts"]) > timeouts:
            faults.append(f"{control}: {cell['timeouts']} timeouts, the yardstick has {timeouts}")
        for counter in ("paws", "reneging"):
            if int(cell[counter]):
                faults.append(f"{control}: {cell[counter]} times {counter}")
        share = min(args.share, SHARE_OF.get(control, 1.0))
        if float(cell["seconds"]) * share > slowest + 0.01:
            faults.append(f"{control}: {cell['seconds']} s, the yardstick needs {slowest} s")
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)


# --- LDCP --------------------------------------------------------------------

def draft_windows(capture: str, cw: float, alpha: float, beta: float, mss: int) -> list[float]:
    """The draft's window (eq. 2 and the rule below one packet) after each ACK that comes
    while there is new data to send"""
    gamma, eta = 1 / 16, 1 / 2
    una = sent = 0
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
        if cw >= 1:
            cw += -n * beta if p.has(ECE) else n * alpha / cw
        else:
            cw = cw * eta if p.has(ECE) else cw + gamma
        cw = max(cw, gamma)
        windows.append(cw)
        sent += 1
    return windows[:shown]


def check_ldcp_window(args: argparse.Namespace) -> None:
    """The module's window after each ACK (TRACE) against the draft's, computed in floating
    point from the ACKs of CAPTURE at the sender; windows set by anything but an ACK; cwnd
    that is not the window in whole packets (0 while a timer holds the next one)."""
    want = draft_windows(args.capture, args.cw, args.alpha / 1024, args.beta / 1024, args.mss)
    ours = events(args.trace, args.sport)
    acks = [e for e in ours if e.name == "ldcp_ack"]
    got = [e.number("cw_q40") / 2**40 for e in acks if e.number("clean") or e.number("marked")]
    whole = [(e.number("cw_q40") >> 40, e.number("cwnd")) for e in acks]
    report(acks=len(want), traced=len(got),
           difference=max((abs(g - w) / w for g, w in zip(got, want)), default=1.0),
           set_otherwise=sum(e.name == "ldcp_window" and e.values["cause"] != "switched"
                             for e in ours),
           not_whole=sum(cwnd != cw and (cw > 0 or cwnd > 1) for cw, cwnd in whole),
           marked=sum(e.values.get("marked", "0") != "0" for e in acks))


@dataclass
class FirstRTT:
    """What left of one flow before the first ACK of its data, and after"""
    start: int                  # sequence number of the first byte
    next_seq: int
    acked: bool = False
    first: int = 0              # packets before that ACK
    early: int = 0              # of them ECT, and not the last
    last: int = -1              # ECN field of the last
    late: int = 0               # new packets after it that are not ECT(0)
    again: int = 0              # retransmissions
    again_not_ect: int = 0
    big: int = 0                # packets larger than MSS before it
    dscps: set[int] = field(default_factory=set)


def check_first_rtt(args: argparse.Namespace) -> None:
    """Per flow of a capture at the sender: data packets before the first ACK of data, how many
    of them but the last are ECT (early), the last one's ECN field; later packets that are not
    ECT(0); retransmissions, those not ECT(0); packets above MSS; values of DSCP. --server: the
    server sends."""
    flows: dict[int, FirstRTT] = {}
    for p in packets(args.capture, "tcp && tcp.flags.reset == 0"):
        client, to_sender = (p.dst, p.dst == SERVER) if args.server else (p.src, p.src == SERVER)
        if to_sender:
            client = p.src if args.server else p.dst
        if p.has(SYN):
            if not to_sender and client not in flows:
                flows[client] = FirstRTT(p.seq + 1, p.seq + 1)
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
        flow.big += p.length > args.mss
    for f in flows.values():
        report(first=f.first, early=f.early, last=f.last, late=f.late, again=f.again,
               again_not_ect=f.again_not_ect, big=f.big, dscps=len(f.dscps))


# --- the command line --------------------------------------------------------

def parser() -> argparse.ArgumentParser:
    """judge.py CHECK ARGS"""
    top = argparse.ArgumentParser(prog="judge.py", description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    checks = top.add_subparsers(metavar="CHECK", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        text = " ".join((run.__doc__ or "").split())
        sub = checks.add_parser(name, help=text.split(":")[0], description=text)
        sub.set_defaults(run=run)
        sub.add_argument("capture")
        return sub

    sub = add("ecn", check_ecn)
    sub.add_argument("--port", type=int, default=SERVER)
    sub.add_argument("--filter", default="tcp", help="tshark's display filter")

    sub = add("gaps", check_gaps)
    sub.add_argument("least", type=float)
    sub.add_argument("most", type=float)
    sub.add_argument("--start", type=float, default=0)
    sub.add_argument("--until")

    sub = add("acks", check_acks)
    sub.add_argument("most", type=int)
    sub.add_argument("--late", type=float, default=1)
    sub.add_argument("--accecn", action="store_true")

    sub = add("cells", check_cells)
    sub.add_argument("--yardstick", required=True, help="controls, by spaces")
    sub.add_argument("--share", type=float, required=True, help="least goodput, of the slowest's")

    sub = add("ldcp-window", check_ldcp_window)
    sub.add_argument("trace")
    sub.add_argument("sport", type=int)
    sub.add_argument("--cw", type=float, default=10, help="window at the start, packets")
    sub.add_argument("--alpha", type=float, required=True, help="in 1/1024, as the module's")
    sub.add_argument("--beta", type=float, required=True, help="in 1/1024, as the module's")
    sub.add_argument("--mss", type=int, default=1448)

    sub = add("first-rtt", check_first_rtt)
    sub.add_argument("--mss", type=int, default=1448)
    sub.add_argument("--server", action="store_true")
    return top


def main() -> int:
    """Run the check that the command line names"""
    args = parser().parse_args()
    try:
        args.run(args)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"judge.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
