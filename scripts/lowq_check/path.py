# SPDX-License-Identifier: GPL-2.0
"""The client: what it does with both ends of a path. -> measurements, as plain data."""

from __future__ import annotations

import select
import socket
import time
from contextlib import contextmanager
from typing import Callable, Iterator, NamedTuple

from lowq_common import system, tcpinfo
from lowq_common.errors import Refused
from lowq_common.streams import printable
from lowq_common.values import Json

from . import facts, judge, packets, roce
from .end import End
from .wire import MARK, PROTOCOL, Lines, device_of, hello, new_socket, open_connection, whole

CONNECT_S, ANSWER_S = 5, 60
THERE, BACK = judge.THERE, judge.BACK
TWICE = 2  # each test packet, at first
AGAIN = 16  # of those that look as if the path changes them, on a new connection
CONTROLS = 40  # Not-ECT packets: their loss is the path's own
HANDSHAKES, TRIES, MARK_RUNS = 8, 4, 3
IDLE, IDLE_GAP_US = 1000, 1000  # small packets without load, to see whether losses come from load
SEGMENTS = (1400, 1360, 1280, 1220, 1000, 536)
MESSAGE, MESSAGES = 300, 10
MARKED = 6
LONGEST_RTT_US = 2_000_000
SLOW_S, LOOK_S = 1.0, 0.05
DSCPS = (10, 23, 46)  # AF11, that of HPCC++'s probes, EF


class NoControl(Refused):
    """The control cannot be chosen here: what is said about this host says why."""


class NoConnection(Refused):
    """The listener answers, but not a connection with this control"""


PLAIN = "reno"  # a control that asks for nothing


class Target(NamedTuple):
    """A listener"""

    family: socket.AddressFamily
    address: str
    port: int
    token: str
    bind: str = ""  # this end's address or device


class Session:
    """Both ends of a path to one address of the peer"""

    def __init__(self, target: Target) -> None:
        self.family, self.address, self.port, self.token, self.bind = family, address, port, token, bind = target
        self.flows = 0
        self.tests = 0
        try:
            self.lines = Lines(open_connection((address, port), family, CONNECT_S, bind=bind))
        except ConnectionRefusedError:
            raise Refused(f"no listener at {address} port {port}: it refuses; run there: lowq-check --listen") from None
        except TimeoutError:
            raise Refused(f"no answer from {address} port {port}: a firewall drops it, or the host is down") from None
        except OSError as error:
            raise Refused(f"no way to {address} port {port}: {error.strerror or error}") from None
        try:
            self.greet(self.lines, "control")
            self.here = End(port)
            self.here.sender.device = device_of(bind)
        except BaseException:
            self.lines.sock.close()
            raise

    def greet(self, lines: Lines, role: str, flow: int = 0) -> None:
        lines.write(hello(self.token, role, flow))
        answer = lines.read(CONNECT_S)
        if answer is None or answer.get(MARK) != PROTOCOL:
            theirs = answer.get(MARK) if answer else None
            what = f"another version of lowq-check (protocol {theirs}, not {PROTOCOL})" if isinstance(theirs, int) \
                else "something else than lowq-check"
            raise Refused(f"at {self.address} port {self.port} is {what}")
        if "error" in answer:
            raise Refused(f"{self.address}: {printable(str(answer['error']))}")

    def try_to(self, question: str, **fields: Json) -> Json:
        """The answer, which may be an error"""
        self.lines.write({"do": question, **fields})
        answer = self.lines.read(ANSWER_S)
        if answer is None:
            raise Refused(f"{self.address}: the listener has ended")
        return answer

    def ask(self, question: str, **fields: Json) -> Json:
        answer = self.try_to(question, **fields)
        if "error" in answer:
            raise Refused(f"{self.address}: {question}: {printable(str(answer['error']))}")
        return answer

    def flow(self, control: str, segment: int = 0) -> int:
        """A new connection whose both ends are known; -> its number"""
        try:
            sock = open_connection((self.address, self.port), self.family, CONNECT_S, control, segment, self.bind)
        except (FileNotFoundError, PermissionError) as error:
            raise NoControl(f"cannot choose the control '{control}': {error.strerror}") from None
        except OSError as error:
            raise NoConnection(f"{self.address}: no connection: {error.strerror or error}") from None
        self.flows += 1
        try:
            self.greet(Lines(sock), "flow", self.flows)
        except TimeoutError:
            sock.close()
            raise NoConnection(f"{self.address}: no answer on a connection with {control}") from None
        self.here.add(self.flows, sock)
        return self.flows

    def both(self) -> list[tuple[str, Callable[..., Json]]]:
        """Each direction with what asks its sender"""
        def local(question: str, **fields: Json) -> Json:
            answer = self.here.answer({"do": question, **fields})
            if "error" in answer:
                raise Refused(f"{self.address}: {question}: {answer['error']}")
            return answer

        return [(THERE, local), (BACK, self.ask)]

    def ends(self, way: str) -> tuple[Callable[..., Json], Callable[..., Json]]:
        """What asks the sender of this direction, and what asks its receiver"""
        asks = dict(self.both())
        return asks[way], asks[judge.OPPOSITE[way]]

    def drop(self, flow: int) -> None:
        self.here.answer({"do": "drop", "flow": flow})
        self.ask("drop", flow=flow)

    def close(self) -> None:
        self.here.close()
        self.lines.sock.close()

    def numbers(self, count: int) -> list[int]:
        """Of test packets; 0 is a trace's"""
        first = self.tests
        self.tests += count
        return [(first + i) % (packets.COUNT - 1) + 1 for i in range(count)]


@contextmanager
def session_with(target: Target) -> Iterator[Session]:
    session = None
    try:
        session = Session(target)
        yield session
    except TimeoutError:
        raise Refused(f"{target.address}: the listener does not answer") from None
    except ConnectionError as error:
        raise Refused(f"{target.address}: the connection with the listener broke: {error.strerror}") from None
    finally:
        if session:
            session.close()


def measure_roce(target: Target) -> Json:
    """Does a CNP come back for a packet that arrives with CE?"""
    with session_with(target) as session:
        found: Json = {"address": target.address, "asked": "roce", "peer": session.ask("host"),
                       "here": session.here.do_host({})}
        if not found["here"]["root"]:
            return found
        flow = session.flow(PLAIN)
        before = session.ask("counters").get("roce_rcm", {})
        pair = session.try_to("pair", flow=flow)
        if "error" in pair:
            return {**found, "error": printable(str(pair["error"]))}
        way = session.here.flows[flow].way
        found["marked"] = roce.marked(session.here.sender, way, whole(pair, "qp", 1, 0xFFFFFF))
        after = session.ask("counters").get("roce_rcm", {})
        found["counted"] = {name: value - before.get(name, 0) for name, value in after.items()}
        return found


def measure(target: Target, control: str, load: float) -> Json:
    # choosing it would load its module
    if control and not facts.available(control):
        raise NoControl(f"there is no control '{control}' here, or its module is not loaded")
    with session_with(target) as session:
        return all_of(session, control, load)


def all_of(session: Session, control: str, load: float) -> Json:
    found: Json = {"address": session.address, "asked": control, "peer": session.ask("host"),
                   "here": session.here.do_host({}), "route": route(session)}
    before = [session.here.do_counters({}), session.ask("counters")]
    try:
        flow = with_ecn(session, control, found)
    except NoConnection:
        found["unreachable"], control = True, PLAIN
        flow = session.flow(control)
    found["talk"] = {way: ask("talk", flow=flow, size=MESSAGE, count=MESSAGES) for way, ask in session.both()}
    if judge.is_hpccpp(session.here.do_info({"flow": flow})["control"]):
        found["telemetry"] = probes(session, flow, before)
    found["info"] = {way: ask("info", flow=flow) for way, ask in session.both()}
    found["seen"] = {way: ask("seen", flow=flow) for way, ask in session.both()}
    if found["here"]["root"] and found["peer"]["root"]:
        found["numbers"] = {way: ask("numbers", flow=flow)["next"] for way, ask in session.both()}
    found["fits"] = sizes(session, control, found["info"])
    if found["here"]["root"]:
        test_path(session, control, found)
    if load and "unreachable" not in found:
        for _, ask in session.both():
            ask("quiet")
        found["load"] = {way: loaded(session, way, flow, load, found) for way in (THERE, BACK)}
        found["info"] = {way: ask("info", flow=flow) for way, ask in session.both()}
        found["counted"] = {"here": session.here.do_counters({}), "peer": session.ask("counters")}
    return found


def with_ecn(session: Session, control: str, found: Json) -> int:
    """A connection. A SYN or its answer may be lost, and then Linux goes on without ECN: if it has none,
    others are tried, and their handshakes are counted beside those of a control that asks for nothing."""
    def has_its_ecn(asked: Json) -> bool:
        return tcpinfo.ecn_mode(asked["info"]) != tcpinfo.NO_ECN or not judge.wants_ecn(asked["control"])

    lost = 0
    for _ in range(TRIES):
        try:
            flow = session.flow(control)
        except NoConnection:
            lost += 1
            if lost == 2:
                raise
            continue
        if has_its_ecn(session.here.do_info({"flow": flow})):
            return flow
        if "handshakes" not in found:
            found["handshakes"] = {"ecn": handshakes(session, control), "plain": handshakes(session, PLAIN)}
            if not found["handshakes"]["ecn"]["with_ecn"]:
                break
        session.drop(flow)
        flow = 0
    return flow or session.flow(control)


def handshakes(session: Session, control: str) -> Json:
    """Several at once: how many were made without a retransmission, and how many with ECN"""
    socks = []
    found = {"tried": HANDSHAKES, "at_once": 0, "with_ecn": 0}
    try:
        for _ in range(HANDSHAKES):
            sock = new_socket(session.family, control, bind=session.bind)
            socks.append(sock)
            sock.setblocking(False)
            sock.connect_ex((session.address, session.port))
        waiting, end = list(socks), time.monotonic() + CONNECT_S
        while waiting and (left := end - time.monotonic()) > 0:
            for sock in select.select([], waiting, [], left)[1]:
                waiting.remove(sock)
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    continue
                info = tcpinfo.of(sock)
                found["at_once"] += not info["total_retrans"]
                found["with_ecn"] += tcpinfo.ecn_mode(info) != tcpinfo.NO_ECN
        return found
    finally:
        for sock in socks:
            sock.close()


def loaded(session: Session, way: str, flow: int, seconds: float, found: Json) -> Json:
    """A load one way; if packets are lost, small ones without load show whether the load is the cause"""
    ask, other = session.ends(way)
    received = [other("info", flow=flow)["info"]]
    result = ask("load", flow=flow, ms=int(seconds * 1000))
    received.append(other("info", flow=flow)["info"])
    result["receiver"] = received
    if judge.lossy(found["info"][way], result):
        rate = (result["after"]["bytes_acked"] - result["before"]["bytes_acked"]) * 8 / result["seconds"]
        gap = max(IDLE_GAP_US, int(1500e6 * 8 / 80 / max(rate, 1e4)))  # a tenth of the rate at most
        gap = min(gap, 20_000)
        count = max(50, min(IDLE, int(3e6 / gap)))
        result["idle"] = ask("trickle", flow=flow, count=count, gap_us=gap)
    return result


def route(session: Session) -> Json:
    """Where the path starts, and the window to which the route limits its connections"""
    space = system.Namespace()
    family = "-6" if session.family == socket.AF_INET6 else "-4"
    towards = system.route_towards(space, family, session.address) or {}
    cwnd = max((one.get("cwnd", 0) for one in towards.get("metrics", ())), default=0)
    # ip's JSON does not tell which metrics are locked; cwnd only counts if it is
    if cwnd and "cwnd lock" not in space.output("ip", family, "route", "get", session.address)[1]:
        cwnd = 0
    return {"dev": towards.get("dev", ""), "via": towards.get("gateway", ""), "cwnd": cwnd}


# --- sizes --------------------------------------------------------------------------------


def sizes(session: Session, control: str, info: Json) -> Json:
    """Do full segments arrive? If not, which do?"""
    found: Json = {}
    for way, _ in session.both():
        full = info[way]["info"]["snd_mss"]
        arrives = full if any(full_segment(session, control, way, 0, full) for _ in range(2)) else 0
        if not arrives:
            for segment in SEGMENTS:
                if segment < full and full_segment(session, control, way, segment, segment):
                    arrives = segment
                    break
        found[way] = {"full": full, "arrives": arrives}
    return found


def full_segment(session: Session, control: str, way: str, segment: int, size: int) -> bool:
    flow = session.flow(control, segment)
    ask = dict(session.both())[way]
    now = ask("info", flow=flow)["info"]["snd_mss"]
    done = ask("talk", flow=flow, size=min(size, now) if segment else now, count=2)["acknowledged"]
    session.drop(flow)
    return bool(done)


# --- header fields ------------------------------------------------------------------------


def test_path(session: Session, control: str, found: Json) -> None:
    """Test packets of each kind with each ECN field and some DSCPs, both ways; then where they are
    changed; then whether marks are echoed"""
    flow = talking(session, control)
    both = found["peer"]["root"]
    found["tests"], found["flags"] = {THERE: {}}, {}
    syn_tests(session, both, found, [(kind, tos) for kind, tos in SYNS for _ in range(TWICE)])
    suspects = judge.suspects(found["tests"][THERE])
    if suspects:
        syn_tests(session, both, found, repeated(suspects))
    if not both:
        return
    found["hops"], found["traces"] = {}, {}
    for way, ask in session.both():
        kinds = ("data", "ack") if way == THERE else ("synack", "data", "ack")
        tests = [(kind, tos) for kind in kinds for tos in range(4)] + [("data", dscp << 2) for dscp in DSCPS]
        results, distance = test_packets(session, way, flow, found, TWICE * tests + CONTROLS * [("data", 0)])
        if suspects := judge.suspects(results):
            again = talking(session, control)
            fresh, other = test_packets(session, way, again, found, repeated(suspects))
            distance = distance or other
            for kind, by_tos in fresh.items():
                results[kind].update(by_tos)
            session.drop(again)
        found["tests"].setdefault(way, {}).update(results)
        found["hops"][way] = distance
        odd = judge.odd(results.get("data", {}))
        found["traces"][way] = {
            str(tos): ask("trace", flow=flow, tos=tos, most=min(16, distance + 1 if distance else 8))["hops"]
            for tos in odd[:2]
        }
    found["marks"] = {}
    for way, _ in session.both():
        found["marks"][way] = runs = [mark_run(session, way, flow)]
        while not judge.echo_is_clear(runs, found, way) and len(runs) < MARK_RUNS:
            again = talking(session, control)
            runs.append(mark_run(session, way, again))
            session.drop(again)
    session.drop(flow)


def talking(session: Session, control: str) -> int:
    """A connection that has sent some data each way"""
    flow = session.flow(control)
    for _, ask in session.both():
        ask("talk", flow=flow, size=MESSAGE, count=MESSAGES)
    return flow


def repeated(suspects: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each often, beside as many Not-ECT packets of its kind"""
    controls = [(judge.plain(kind), 0) for kind, _ in suspects]
    return AGAIN * list(dict.fromkeys([*controls, *suspects]))


def test_packets(session: Session, way: str, flow: int, found: Json, tests: list[tuple[str, int]]) -> tuple[Json, int]:
    """-> kind -> TOS -> TOS of each as it arrived, and how many routers have forwarded them"""
    ask, other = session.ends(way)
    numbers = session.numbers(len(tests))
    for at in range(0, len(tests), 40):
        some = [[number, kind, tos] for number, (kind, tos) in zip(numbers, tests)][at:at + 40]
        ask("emit", flow=flow, tests=some)
    arrived = arrivals(other, flow, numbers, settle(found))
    results: Json = {}
    distance = 0
    for number, (kind, tos) in zip(numbers, tests):
        got = arrived.get(str(number))
        results.setdefault(kind, {}).setdefault(str(tos), []).append(got[0] if got else None)
        distance = packets.TTL - got[1] if got else distance
    return results, max(0, distance)


def mark_run(session: Session, way: str, flow: int) -> Json:
    """Packets with CE: how many have arrived, how many were reported"""
    ask, other = session.ends(way)

    def arrived() -> int:
        counts: dict[str, int] = other("seen", flow=flow).get("in", {}).get("data", {})
        return sum(count for tos, count in counts.items() if int(tos) & 3 == judge.CE)

    before = arrived()
    result = ask("mark", flow=flow, count=MARKED)
    return {**result, "arrived": arrived() - before}


def settle(found: Json) -> float:
    """How long test packets may take, also on a slow machine"""
    longest: int = max(found["info"][way]["info"]["rtt"] for way in (THERE, BACK))
    return SLOW_S + 4e-6 * min(longest, LONGEST_RTT_US)


def arrivals(ask: Callable[..., Json], flow: int, numbers: list[int], within: float) -> Json:
    """The test packets that have arrived when all have, or when their time is over"""
    end = time.monotonic() + within
    while True:
        tests: Json = ask("seen", flow=flow)["tests"]
        if all(str(number) in tests for number in numbers) or time.monotonic() > end:
            return tests
        time.sleep(LOOK_S)


SYNS = [("syn", tos) for tos in range(4)] + [("syn-ecn", 0), ("syn-accecn", 0)]


def syn_tests(session: Session, both: bool, found: Json, tests: list[tuple[str, int]]) -> None:
    """SYNs to the listener from ports of their own; the kernel resets what comes of them. A SYN has
    arrived if the peer's capture has it, or if it is answered."""
    here = session.here
    assert here.capture
    main = next(iter(here.flows.values())).way
    held, ports = [], []
    try:
        for _ in tests:
            bound = socket.socket(session.family, socket.SOCK_STREAM)
            held.append(bound)
            bound.bind((main.source, 0))
            ports.append(bound.getsockname()[1])
        numbers = session.numbers(len(tests))
        for number, port, (kind, tos) in zip(numbers, ports, tests):
            way = main._replace(sport=port)
            here.sender.send(way, packets.test_packet(way, kind, number, tos, (0, 0)))
            time.sleep(0.001)
        if both:
            arrived = arrivals(session.ask, next(iter(here.flows)), numbers, SLOW_S)
        else:
            time.sleep(SLOW_S)
            arrived = {}
    finally:
        for bound in held:
            bound.close()
    results: Json = {}
    flags: Json = {}
    for number, port, (kind, tos) in zip(numbers, ports, tests):
        answered = "synack" in here.capture.of(main._replace(sport=port)).get("in", {})
        got = arrived.get(str(number))
        value = got[0] if got else tos if answered and not both else None
        results.setdefault(kind, {}).setdefault(str(tos), []).append(value)
        if got and tos == 0:
            flags.setdefault(kind, []).append(got[2] ^ packets.KINDS[kind])
    for kind, by_tos in results.items():
        found["tests"][THERE].setdefault(kind, {}).update(by_tos)
    found["flags"].update(flags)


# --- telemetry ------------------------------------------------------------------------------


def probes(session: Session, flow: int, before: list[Json]) -> Json:
    """HPCC++ sends probes while data flows; -> what was counted, and the last messages"""
    for _ in range(10):
        session.here.do_talk({"flow": flow, "size": 5000, "count": 2})
        time.sleep(0.02)
    after = [session.here.do_counters({}), session.ask("counters")]
    found: Json = {}
    for end, old, new in zip(("here", "peer"), before, after):
        found[end] = {name: {key: value - old.get(name, {}).get(key, 0) for key, value in counts.items()}
                      for name, counts in new.items()}
    found["start"] = {"here": before[0], "peer": before[1]}
    found["seen"] = {"here": session.here.do_seen({"flow": flow}), "peer": session.ask("seen", flow=flow)}
    found["seen"]["here"].pop("tests", None)
    found["seen"]["peer"].pop("tests", None)
    return found
